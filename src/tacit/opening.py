"""How a session is opened: what the owner gives is checked, the mechanism chosen, the ledger bound to all of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tacit.errors import ConfigError, LedgerError
from tacit.load.source import open_source
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.model.workload import MAX_ANSWERS
from tacit.release.direct import Direct
from tacit.release.estimate import Mechanism
from tacit.release.histogram import Histogram
from tacit.release.iterative import iterative
from tacit.release.median import Sampling, median
from tacit.release.plan import plan
from tacit.release.public import Public
from tacit.session import Choice, Session
from tacit.store.anchor import Anchor
from tacit.trusted.cells import read_records
from tacit.trusted.curator import Curator
from tacit.trusted.ledger import Binding, Ledger, MadeWith
from tacit.trusted.loss import total

MECHANISMS = ("auto", "direct", "histogram", "iterative", "median")
ONLINE = ("iterative", "median")  # those that have hard answers and a gate
_KINDS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("mechanism", "reason", "sampler"), str),
    **dict.fromkeys(("questions", "hits", "databases", "records", "seed"), int),
    **dict.fromkeys(("warm", "confidence"), float),
}


def open_session(
    *,
    data: Any,
    domain: Domain | str | Path,
    budget: Budget,
    ledger: str | Path,
    table: str | None = None,
    person: str | None = None,
    rows_per_person: int | None = None,
    mechanism: str = "auto",
    questions: int | None = None,
    hits: int | None = None,
    halt: bool = False,
    warm: float | None = None,
    databases: int | None = None,
    records: int | None = None,
    seed: int | None = None,
    sampler: str | None = None,
    confidence: float | None = None,
    anchor: str | Path | None = None,
    accept_rollback: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    loading: Callable[[float], None] | None = None,
) -> Session:
    """Open a table for private questions. The ledger is made on the first call and continued ever after.

    The first call writes the mechanism and its settings into the ledger, chosen or defaults included. Later calls read
    them from there: what is not named again is as it was, and a setting that is named with another value is refused.

    data: a CSV, Parquet or DuckDB file, a SELECT over files, a DataFrame, an Arrow table, a DuckDB relation, a Spark
        DataFrame or a postgresql:// URL (with `table`).
    domain: what may be asked about: a `Domain`, or the path of its TOML form.
    budget: the one (epsilon, delta) that all answers together stay within.
    ledger: the SQLite file that records every charge and answer. The owner's secret, like the data.
    person, rows_per_person: the column that says whose row it is, and how many rows of one person are protected
        together. At most so many of each person's rows are counted; those that name nobody are left out. Without them
        the privacy of a row is protected.
    mechanism: "direct" (fresh noise for every new question), "histogram" (one noisy histogram of the whole domain, for
        small domains), "iterative" (free answers from a hypothesis, which learns from the questions it gets wrong),
        "median" (the same with public databases that vote; also for nonlinear questions and domains too large to list),
        or "auto": what `tacit.plan` chooses between the first three, from the public sizes.
    questions: how many new questions the budget is shared among ("direct", 100 unless given), or are expected (the
        others, 10,000 unless given).
    hits: how many hard answers the budget is shared among, for "iterative" and "median": 200, or the plan's choice.
    halt: for these two, refuse after the last hard answer instead of going on without a guarantee.
    warm: for "iterative", the share of the budget for a warm start: noisy tables of all pairs of attributes, which the
        first question buys, and the hypothesis that fits them. 0 starts from the uniform hypothesis; 0 unless given,
        or the plan's choice.
    databases, records, seed: how many databases vote in "median" (200), of how many records each (1,000), and the
        public seed that they are drawn with (0).
    sampler: "databases" of records, or "fractions": fractional ones, for linear questions that cut X into few parts.
    confidence: of the error bars; 0.95 unless given.
    anchor: where the newest state of the ledger is remembered, so that restoring an old copy is noticed.
    accept_rollback: the owner's reason to go on with an older copy; recorded in the ledger.
    progress: called while the first question's warm start is fitted, with how many steps are done and how many at most.
    loading: called while the table is read, with the share that is done, where the engine tells it (DuckDB does).
    """
    if not isinstance(domain, Domain):
        domain = Domain.from_toml(_read_text(Path(domain)))
    if not isinstance(budget, Budget):
        raise ConfigError("budget is a tacit.Budget, like tacit.Budget(epsilon=1.0, delta=1e-9).")
    for name, number in (("questions", questions), ("hits", hits)):
        if number is None:
            continue
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= 10**9:
            raise ConfigError(f"{name} is a whole number from 1 to 1,000,000,000, not {number!r}.")
    if confidence is not None and (not isinstance(confidence, float) or not 0.5 <= confidence <= 1 - 1e-9):
        raise ConfigError(f"confidence is a number from 0.5 to 0.999999999, not {confidence!r}.")
    if warm is not None and (isinstance(warm, bool) or not isinstance(warm, int | float) or not 0 <= warm < 1):
        raise ConfigError(f"warm is a share of the budget, from 0 to below 1, not {warm!r}.")
    if mechanism not in MECHANISMS:
        raise ConfigError(f"mechanism is one of {', '.join(MECHANISMS)}, not {mechanism!r}.")
    if mechanism == "histogram" and domain.size > MAX_ANSWERS:
        raise ConfigError(f"a histogram takes at most {MAX_ANSWERS:,} cells; the domain has {domain.size:,}.")
    if (person is None) != (rows_per_person is None):
        raise ConfigError("person and rows_per_person are given together: whose row it is, and how many count.")
    sampling: dict[str, Any] = {"databases": databases, "records": records, "seed": seed, "sampler": sampler}
    Sampling(**_named(sampling))  # refuses before anything is read
    given = {"questions": questions, "hits": hits, "warm": warm, "confidence": confidence, **sampling}
    path, remembered = Path(ledger), Anchor(None if anchor is None else Path(anchor))
    made_with = Ledger.made_with(path, remembered)
    if made_with is not None:
        named = {} if mechanism == "auto" else {"mechanism": mechanism}
        _refuse_others(path.name, made_with, budget, named | _named(given))
    people = 1 if rows_per_person is None else rows_per_person
    rows = read_records(open_source(data, table), domain, person=person, rows_per_person=people, progress=loading)
    if made_with is not None:
        choice = _choice_of(made_with, mechanism, questions)
        confidence = _settings_of(made_with).get("confidence", confidence or 0.95)
        written = dict(made_with.settings)  # as it was written, whatever this version would write
    else:
        wanted: dict[str, Any] = {"questions": questions, "hits": hits, "warm": warm, "rows_per_person": people}
        choice = choose(mechanism, domain, budget, rows.rows, **wanted)
        choice = replace(choice, sampling=Sampling(**_named(sampling)) if choice.mechanism == "median" else None)
        confidence = confidence or 0.95
        written = _written(choice, confidence)
    choice = replace(choice, halt=halt)
    binding: Binding = {"domain": domain.key, "data": rows.fingerprint, **written}
    if person is not None:  # ledgers where a row is the unit say nothing of it, as those from before could not
        binding = {**binding, "person": person, "rows_per_person": str(people)}
    book = _open_ledger(path, budget, binding, remembered, accept_rollback)
    curator = Curator(rows, book)
    made = build(curator, curator, choice, confidence, progress)
    return Session(curator, curator, book, budget, choice, made, confidence)


def build(
    public: Public,
    curator: Curator | None,
    choice: Choice,
    confidence: float,
    progress: Callable[[int, int], None] | None = None,
) -> Mechanism:
    """The mechanism of a choice. What is published is read with the same, so it must depend on nothing else."""
    if choice.mechanism == "direct":
        return Direct(public, curator, questions=choice.questions, confidence=confidence)
    if choice.mechanism == "histogram":
        return Histogram(public, curator, confidence=confidence)
    online: dict[str, Any] = {
        "questions": choice.questions,
        "hits": choice.hits,
        "confidence": confidence,
        "halt": choice.halt,
    }
    if choice.mechanism == "iterative":
        return iterative(public, curator, **online, warm=choice.warm, progress=progress)
    return median(public, curator, **online, sampling=choice.sampling or Sampling())


def choose(
    mechanism: str,
    domain: Domain,
    budget: Budget,
    rows: int,
    *,
    questions: int | None = None,
    hits: int | None = None,
    warm: float | None = None,
    rows_per_person: int = 1,
) -> Choice:
    """The mechanism and its settings for these public parameters: as asked for, or as planned."""
    expected = questions or (100 if mechanism == "direct" else 10_000)
    if mechanism != "auto":
        return Choice(mechanism, "asked for", expected, hits or 200, float(warm or 0))
    made = plan(rows=rows, domain=domain, budget=budget, questions=expected, rows_per_person=rows_per_person)
    start = warm if warm is not None else made.warm or 0.0
    return Choice(made.mechanism, made.reason, expected, hits or made.hits or 200, float(start))


def _named(settings: dict[str, Any]) -> dict[str, Any]:
    """Those of the settings that the owner named."""
    return {name: value for name, value in settings.items() if value is not None}


def _written(choice: Choice, confidence: float) -> dict[str, str]:
    """The choice as the ledger keeps it: the settings that its mechanism has, by name. `_settings_of` reads it back."""
    found: dict[str, Any] = {"mechanism": choice.mechanism, "reason": choice.reason}
    if choice.mechanism != "histogram":
        found["questions"] = choice.questions
    if choice.mechanism in ONLINE:
        # free answers are kept with their error bars, so these must go on meaning the same
        found |= {"hits": choice.hits, "confidence": confidence}
    if choice.mechanism == "iterative":
        found["warm"] = choice.warm
    if choice.sampling is not None:
        found |= asdict(choice.sampling)
    return {name: str(value) for name, value in found.items()}


def _settings_of(made_with: MadeWith) -> dict[str, Any]:
    """What a ledger says about its mechanism, by the names that `open_session` has for it."""
    written = dict(made_with.settings)
    if "sampling" in written:  # older ledgers say "none" for what a mechanism has not, and the sampler in words
        sampling = written.pop("sampling")
        written = {name: value for name, value in written.items() if value not in ("none", "any", "any number")}
        written |= {} if sampling == "none" else {k: str(v) for k, v in asdict(Sampling.of(sampling)).items()}
    try:
        return {name: _KINDS[name](value) for name, value in written.items()}
    except (KeyError, ValueError):
        raise LedgerError("The ledger has settings that this version of the program does not know.") from None


def _choice_of(made_with: MadeWith, mechanism: str, questions: int | None) -> Choice:
    """The choice that was made when the ledger was."""
    found = _settings_of(made_with)
    sampling = {name: found[name] for name in ("databases", "records", "seed", "sampler") if name in found}
    return Choice(
        found["mechanism"],
        found.get(
            "reason", "as its ledger was made" if mechanism == "auto" else "asked for"
        ),  # older ledgers have none
        found.get("questions", questions or 10_000),
        found.get("hits", 200),
        found.get("warm", 0.0),
        sampling=Sampling(**sampling) if sampling else None,
    )


def _refuse_others(ledger: str, made_with: MadeWith, budget: Budget, named: dict[str, Any]) -> None:
    """Refuse a budget or a setting that is not the ledger's. All of these are public, so both values are told."""
    theirs = {"budget": made_with.budget, **_settings_of(made_with)}
    differ = [
        f"{name} is {theirs[name]}, not {given}"
        for name, given in {"budget": budget, **named}.items()
        if name in theirs and theirs[name] != given
    ]
    if differ:
        raise LedgerError(
            f"The ledger {ledger} was made with other terms: {', '.join(differ)}. Open it with what it was made with; "
            "a setting that is left out is read from the ledger."
        )


def _open_ledger(path: Path, budget: Budget, binding: Binding, anchor: Anchor, accept_rollback: str | None) -> Ledger:
    return Ledger.open_or_create(
        path, budget=budget, total=total(budget), binding=binding, anchor=anchor, accept_rollback=accept_rollback
    )


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"{path.name} cannot be read as a text file.") from None
