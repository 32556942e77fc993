"""Trusted with budgets: a session is opened, and the ledger bound to all that the owner gives and to the mechanism."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tacit.errors import ConfigError, DataError, LedgerError
from tacit.exact.price import total
from tacit.extension import PART_OF
from tacit.load import is_address, is_query
from tacit.load.copies import has_digits
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.owner.binding import DIGITS, binding_of, bound_on_rows, kept_terms, planned_terms, unit_terms
from tacit.owner.continuation import Before, take_over
from tacit.owner.manifest import check_listed
from tacit.owner.prior import check_prior, read_prior
from tacit.owner.rows import Rows
from tacit.owner.terms import MadeWith, made_with
from tacit.release.mechanisms import MECHANISMS, check_names
from tacit.release.public import Public
from tacit.session import Session
from tacit.shelf import Shelf
from tacit.store.anchor import Anchor, OtherTerms
from tacit.store.conditions import accepted
from tacit.trusted.copy import AnyRecords
from tacit.trusted.curator import Curator
from tacit.trusted.gate import tell
from tacit.trusted.ledger import Ledger
from tacit.trusted.records import Records

if TYPE_CHECKING:  # most sessions have no prior, and read none
    from tacit.release.hypothesis.prior import Prior


@dataclass(frozen=True)
class BlockRows:
    """The rows of a new block, as its series has read them to compare them with those of its other blocks."""

    records: Records
    series: str  # the hash that the chain of its manifest starts from


def open_session(
    *,
    data: Any,
    domain: Domain | Mapping[str, Any] | str | Path,
    budget: Budget,
    ledger: str | Path,
    table: str | None = None,
    person: str | None = None,
    rows_per_person: int | None = None,
    mechanism: str = "auto",
    start: bool = False,
    prior: Any = None,
    continues: str | Path | None = None,
    anchor: str | Path | None = None,
    accept_rollback: str | None = None,
    held: str = "auto",
    copy: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    loading: Callable[[float], None] | None = None,
    **settings: Any,
) -> Session:
    """Open a table for private questions. The ledger is made on the first call and continued ever after.

    The first call writes the mechanism and its settings into the ledger, chosen or defaults included. Later calls read
    them from there: what is not named again is as it was, and a setting that is named with another value is refused.

    data: a CSV, Parquet or DuckDB file, a SELECT over files, a DataFrame, an Arrow table, a DuckDB relation, a Spark
        DataFrame or a postgresql:// URL (with `table`).
    domain: what may be asked about: a `Domain`, the dict that one is made of, or the path of its TOML form.
    budget: the one (epsilon, delta) that all answers together stay within.
    ledger: the SQLite file that records every charge and answer. The owner's secret, like the data.
    person, rows_per_person: the column that says whose row it is, and how many rows of one person are protected
        together. At most that many of each person's rows are counted; those that name nobody are left out. Without them
        the privacy of a row is protected.
    mechanism: "direct" (fresh noise for every new question), "histogram" (one noisy histogram of the whole domain, for
        small domains), "iterative" (free answers from a hypothesis, which learns from the questions it gets wrong),
        "median" (the same with public databases that vote; also for nonlinear questions),
        or "auto": what `tacit.plan` chooses between the first three, from the public sizes.
    start: what the answers start from (the tables of "iterative", the histogram) is bought by `session.start()`: the
        largest purchase of most sessions. With True, the first question that needs it buys it.
    prior: a public table like this one, which a warm start is drawn to as far as what it measures bears it out: a file
        that `tacit.publish` wrote last year, or whatever `data` takes, with some of the attributes at least. It costs
        nothing, and is told to whoever reads what is published.
    continues: an earlier ledger about the same people, with other bins, attributes or another mechanism. What it has
        spent is charged here first, and nothing can be bought there from then on: what was left is here.
    settings: any of these, by name.
        confidence: the confidence of the error bars, 0.95 by default.
        questions: how many new questions the budget is shared among ("direct", 100 by default), or how many are
            expected (the others, 10,000 by default).
        hits: how many hard answers the budget is shared among, for "iterative" (200, or the plan's choice) and "median"
            (5, or 200 without a warm start).
        halt: for these two, refuse after the last hard answer instead of going on without a guarantee.
        warm: for these two, the share of the budget for a warm start: one noisy release of tables of up to three
            attributes, which `start` buys, and the hypothesis that fits them. For "iterative" 0, or the plan's choice;
            for "median" 0.7, and 0 is the mechanism of the paper, whose databases start from nothing.
        certify: the share for a certificate of that hypothesis, which then answers conjunctions of a few conditions for
            nothing, with a bar that says how far off 95 % of all of them are. 0, or the plan's choice with its `warm`;
            0.1 for "median", where no `warm` is named.
        databases, records, seed: how many databases vote in "median" (100), over how many records (50,000), and the
            public seed that they are drawn with (0). Without a warm start, 200 databases of 1,000 records each.
        sampler: "databases" of records, or "fractions": fractional ones, for linear questions that cut X into few
            parts. Both start from nothing.
    anchor: where the newest state of the ledger is remembered, so that restoring an old copy is noticed.
    accept_rollback: the owner's reason to go on with an older copy; recorded in the ledger.
    held: where the rows are while the session is open: their cells in "memory"; or in the "engine", which counts what
        is asked about in an encoded copy of the table, so that a table may be larger than memory; or "auto": in memory,
        unless a file has more than 2^25 rows and the domain more cells than that. With a `person`, "auto" is "memory"
        however many rows there are, unless a copy is there: their number is not public. The answers are the same.
    copy: where that copy is kept: a file or folder, beside the ledger by default, or a table's name in PostgreSQL. It
        is made when it is missing, and as secret as the data.
    progress: called while a warm start is fitted, with how many steps are done and how many at most.
    loading: called while the table is read, copied or counted, with the share that is done: by DuckDB all along, by
        Spark by its tasks, by PostgreSQL after each scan.
    """
    asked = datetime.now(UTC)  # before the data are looked at
    domain = declared(domain)
    named = _named(budget, mechanism, settings)
    people = bound_on_rows(person, rows_per_person)
    if not isinstance(start, bool):
        raise ConfigError(f"start is true or false, not {start!r}.")
    path, remembered = Path(ledger), Anchor(None if anchor is None else Path(anchor))
    made = MadeWith.of(path)
    if made is not None:
        if made.part_of is not None:
            check_listed(path, made.origin, remembered)
        _refuse_others(path.name, made.differences(budget, domain, {"mechanism": mechanism, **named}))
    before = _before(path, made, continues, remembered, accept_rollback)
    if before is not None:
        before.check_unit(person, people)
    check_prior(prior, data)
    if isinstance(data, BlockRows):
        rows = _Read(data.records, data.records.fingerprint, None)
    else:
        source = Rows(
            data=data,
            domain=domain,
            ledger=path,
            table=table,
            person=person,
            rows_per_person=people,
            held=held,
            copy=copy,
        )
        rows = _read(source, made, loading)
    drawn_to = None if prior is None else read_prior(prior, domain, rows.records)
    if made is not None and made.settings:
        terms = kept_terms(made, named)
    else:
        terms = planned_terms(
            mechanism=mechanism,
            named=named,
            domain=domain,
            budget=budget,
            rows=rows.records.rows,
            people=people,
            drawn_to=drawn_to,
            made=made,
            before=before,
        )
    choice, confidence = terms.choice, terms.confidence
    MECHANISMS[choice.mechanism].check(domain)
    if drawn_to is not None and not choice.settings.warm:
        raise ConfigError(f"a prior is for a warm start, and mechanism = {choice.mechanism}, as it is set, has none.")
    binding = binding_of(domain, rows.records, rows.fingerprint, terms, drawn_to, made, before)
    series = data.series if isinstance(data, BlockRows) else None if made is None else made.part_of
    if series is not None:
        binding = {**binding, PART_OF: series}
    first = budget if made is None else made.budget  # which the ledger is bound to, whatever came later
    aside = before.made.aside if before is not None else 0.0 if made is None else made.aside
    open_ledger = partial(
        Ledger.open,
        path,
        budget=first,
        total=total(first, terms.measure, aside=aside),
        anchor=remembered,
        aside=aside,
        accept_rollback=accepted(accept_rollback, asked),
    )
    whose = unit_terms(person, people)
    if made is not None and not made.settings:  # made by a discovery, which knew no domain
        book = open_ledger(binding=whose)
        with book.log.conditions.asked_at(asked), book.log.turn():
            book.log.complete(binding)
    else:
        try:
            book = open_ledger(make="missing", binding={**binding, **whose})
        except OtherTerms as error:
            raise _of_other_rows(error, rows, data, path.name) from None
    if before is not None:
        take_over(book, before, remembered, asked)
    public, curator = doors(rows.records, book, drawn_to, Shelf(path, book.log.identity.secret))
    mechanism_of = choice.build(public, curator, confidence, progress)
    return Session(
        public=public,
        curator=curator,
        ledger=book,
        budget=first,
        choice=choice,
        mechanism=mechanism_of,
        confidence=confidence,
        start=start,
    )


def _named(budget: Budget, mechanism: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that the owner names, which are some mechanism's, as the budget is a budget."""
    if not isinstance(budget, Budget):
        raise ConfigError("budget is a tacit.Budget, like tacit.Budget(epsilon=1.0, delta=1e-9).")
    named = {name: value for name, value in settings.items() if value is not None}
    check_names(mechanism, named)
    return named


class _Read(NamedTuple):
    """The rows as they were read, how a ledger knows them again, and from where; None for rows that a series read."""

    records: AnyRecords
    fingerprint: Callable[[bytes], str]
    source: Rows | None


def _read(source: Rows, made: MadeWith | None, loading: Callable[[float], None] | None) -> _Read:
    """The rows of a table, in the way in which its ledger was made with them."""
    with_session = made is not None and bool(made.settings)
    if made is not None and made.held == "engine" and has_digits(source.domain) and made.digits != DIGITS:
        wide = max(source.domain, key=lambda name: source.domain.sizes[name])
        raise LedgerError(
            f"The ledger {source.ledger.name} was made by an earlier version of Tacit, which knew the encoded copy of "
            f"an attribute of so many values ({wide}, {source.domain.sizes[wide]:,}) again by a fingerprint that this "
            "version does not make. Open it with that version, or let a new ledger continue this one, for the same "
            f'people: another name, and continues = "{source.ledger.name}". {_WITHOUT_DATA}'
        )
    try:
        records = source.read(made.held if made is not None and with_session else None, loading)
    except DataError as error:
        if with_session and _is_gone(source.data):
            error.sentence += f" {_WITHOUT_DATA}"
        raise
    return _Read(records, partial(source.fingerprint, records), source)


def _before(
    path: Path, made: MadeWith | None, continues: str | Path | None, anchor: Anchor, accept_rollback: str | None
) -> Before | None:
    """The ledger that a new one goes on from, where that is still to be done; refuses to go on from another one."""
    if made is None and continues is not None:
        if accept_rollback:
            raise ConfigError("a ledger that continues another is made where no ledger was lost: choose another name.")
        before = Before.of(Path(continues), anchor)
        if before.closed:
            raise before.taken()
        return before
    if continues is None and (made is None or made.begun or made.continues is None):
        return None
    if continues is None:
        raise LedgerError(f"{path.name} has not taken over yet what it continues: name that ledger again (continues).")
    if made is None or made.continues is None:
        raise LedgerError(f"{path.name} continues no other ledger: name a new one, which can.")
    if made.begun and not Path(continues).exists():
        return None
    if made_with(Path(continues)).origin != made.continues:
        raise LedgerError(f"{path.name} continues another ledger than {Path(continues).name}.")
    return None if made.begun else Before.of(Path(continues), anchor)


def doors(
    records: AnyRecords, ledger: Ledger, prior: Prior | None = None, shelf: Shelf | None = None
) -> tuple[Public, Curator]:
    """The two doors of a table: what everybody may know, and what pays and looks at the data."""
    curator = Curator(records, ledger)
    keep = partial(tell, ledger)
    return Public(ledger.log, curator.declared, keep, prior=prior, aside=ledger.aside, shelf=shelf), curator


def _refuse_others(ledger: str, differ: list[str]) -> None:
    if differ:
        raise LedgerError(
            f"The ledger {ledger} was made with other terms: {'; '.join(differ)}. Open it with what it was made with, "
            f"which `tacit init --from {ledger}` writes down; a setting that is left out is read from the ledger. Or "
            f'go on with other terms in a new ledger that continues this one: another name, and continues = "{ledger}".'
        )


_WITHOUT_DATA = (
    "What was answered is there without the data: `tacit publish -o FILE` writes it down, and `tacit ask --published "
    "FILE` asks it."
)


def _is_gone(data: Any) -> bool:
    """Whether the data are a file that is not there."""
    if not isinstance(data, str | Path) or is_query(str(data)) or is_address(str(data)):
        return False
    return not Path(data).exists()


class ChangedRows(LedgerError):
    """The rows are not those that the ledger was made about."""


def _of_other_rows(error: OtherTerms, rows: _Read, data: Any, ledger: str) -> LedgerError:
    """The refusal of terms that a ledger has not; where only the rows are others, it says what can be done."""
    copy_left = rows.source.withdraw() if rows.source is not None and "data" in error.names else None
    return _changed(data, ledger, copy_left) if error.names <= {"data", "rows"} else error


def _changed(data: Any, ledger: str, copy_left: str | None) -> ChangedRows:
    """The refusal of other rows; `copy_left` is where a copy of them stays, which was there before."""
    is_file = isinstance(data, str | Path) and os.path.isfile(data)
    what = Path(data).name if is_file else "the table"
    if copy_left is None:
        happened, remedy = f"{what} has changed since the ledger {ledger} was made", "Open it with those."
    else:
        happened = f"the encoded copy {copy_left} has other rows than the ledger {ledger} was made about"
        remedy = (
            "Delete the copy with `tacit forget`, in Python with tacit.forget: opening makes it again, and takes it if "
            f"{what} has those."
        )
    return ChangedRows(
        f"{happened}, and the ledger's answers are about the rows of then. {remedy} Or let a new ledger continue this "
        f'one, for the same people: another name, and continues = "{ledger}". {_WITHOUT_DATA}'
    )


def declared(domain: Domain | Mapping[str, Any] | str | Path) -> Domain:
    """The domain in any of its forms: a dict has attributes, or tables as TOML has them."""
    if isinstance(domain, Domain):
        return domain
    if isinstance(domain, Mapping):
        tables = bool(domain) and all(isinstance(fields, Mapping) for fields in domain.values())
        return Domain.from_dict(domain) if tables else Domain(domain)
    if isinstance(domain, str | Path):
        return Domain.from_toml(_read_text(Path(domain)))
    raise ConfigError(
        'domain is a tacit.Domain, a dict like {"age": tacit.integer(0, 99)}, or the path of a TOML file, '
        f"not {type(domain).__name__}."
    )


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"{path.name} cannot be read as a text file.") from None
