"""Trusted with budgets: a series of blocks is opened; what is given is checked, its manifest made or read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tacit.blocks.ledgers import BlockLedgers, folder_of
from tacit.blocks.series import Series
from tacit.blocks.terms import ROW, WITHIN, SeriesTerms, check_new
from tacit.errors import ConfigError, LedgerError
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.owner.binding import choose
from tacit.owner.manifest import Manifest
from tacit.owner.opening import declared
from tacit.release.mechanisms import check_names
from tacit.store.anchor import Anchor


def open_series(
    *,
    ledger: str | Path,
    domain: Domain | Mapping[str, Any] | str | Path | None = None,
    budget: Budget | None = None,
    name: str = "block",
    protects: str | None = None,
    most_blocks: int | None = None,
    person: str | None = None,
    rows_per_person: int | None = None,
    prior: bool | None = None,
    expected: int | None = None,
    windows: Sequence[int] | None = None,
    anchor: str | Path | None = None,
    accept_rollback: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> Series:
    """Open a table of blocks, each of different rows, that grows by `append`. It is made on the first call.

    Each block has a ledger of its own, with the whole budget. What is asked over blocks is the sum of their answers.

    ledger: the manifest of the series, which lists its blocks. Their ledgers lie beside it, in a folder of its name.
    domain, budget: as for `tacit.open`; they hold for every block. Left out, they are what the series was made with.
    name: what the column of blocks is called in questions: `WHERE block BETWEEN '2026-01' AND '2026-06'`.
    protects: "row" (one row, in its block), "person within a block" (what is known of a person from any one block), or
        "person over blocks" (from all of them together): then `most_blocks` is how many blocks there may ever be, and
        each of them has that part of the budget. With a `person`, the second is the default.
    person, rows_per_person: as for `tacit.open`, in each block.
    prior: whether a block's start is drawn to what was released of the block before it, as far as its own noisy tables
        bear that out. It costs nothing, and makes single blocks sharper and sums of several less so: by default it is
        done unless `windows` names longer ones.
    expected: about how many blocks there will be. From this and public sizes, a plan is made when the first block is
        appended: whether groups of blocks get ledgers too, with a part of each block's budget. They make the answers
        for long windows sharper, and those for single blocks less so. Their rows are read again from the same sources.
    windows: lengths of windows, in blocks, that this is planned for, like [1, 3, 12]; by default all lengths count.
    settings: the mechanism, and its settings, for all blocks. What is planned for the first block holds for all.

    >>> months = tacit.series(ledger="stays.tacit", domain=domain, budget=budget)   # doctest: +SKIP
    >>> months.append("march.csv", label="2026-03")   # doctest: +SKIP
    >>> months.ask("SELECT block, COUNT(*) FROM data WHERE stay >= 5 GROUP BY block")   # doctest: +SKIP
    """
    path, remembered = Path(ledger), Anchor(None if anchor is None else Path(anchor))
    written = Manifest.terms(path)
    named = {key: value for key, value in settings.items() if value is not None}
    mechanism, rest = named.get("mechanism", "auto"), {key: one for key, one in named.items() if key != "mechanism"}
    lengths = None if windows is None else list(windows)
    if "continues" in named:
        raise ConfigError(
            "a series continues nothing: continues is for the ledger of one table. Other bins or another mechanism are "
            "a new series, with its blocks appended again; for people who are in both, the losses add up."
        )
    check_names(mechanism, rest)
    if written is None:
        if domain is None or budget is None:
            raise ConfigError(f"there is no series {path.name} yet: a new one needs a domain and a budget.")
        if not isinstance(budget, Budget):
            raise ConfigError("budget is a tacit.Budget, like tacit.Budget(epsilon=1.0, delta=1e-9).")
        if mechanism != "auto":
            choose(mechanism, declared(domain), budget, 1, rest)  # refuses settings that it has not
        # What a start is drawn to makes the errors of blocks alike, so that they add up over a window.
        draws = lengths is None or all(length == 1 for length in lengths)
        terms = SeriesTerms(
            domain=declared(domain),
            budget=budget,
            name=name,
            protects=protects or (ROW if person is None else WITHIN),
            most=most_blocks,
            person=person,
            rows_per_person=rows_per_person,
            prior=draws if prior is None else prior,
            settings=named,
            expected=expected,
            windows=lengths,
        )
        check_new(terms)
    else:
        terms = SeriesTerms.read(written)
        given = {
            "domain": None if domain is None else declared(domain),
            "name": name if name != "block" else None,
            "protects": protects,
            "most": most_blocks,
            "person": person,
            "rows_per_person": rows_per_person,
            "expected": expected,
            "windows": lengths,
            "settings": named or None,
        }
        differ = [word for word, value in given.items() if value is not None and value != getattr(terms, word)]
        if differ:
            raise LedgerError(
                f"The series {path.name} was made with another {' and another '.join(differ)}. Open it with what it "
                "was made with; what is left out is read from it."
            )
    if written is None and any(folder_of(path).glob("*.tacit")):
        raise LedgerError(
            f"There are ledgers of blocks in {folder_of(path).name}, and {path.name}, the manifest that lists them, is "
            "gone. Bring it back: a new one would give their rows a second budget. A new series has another name."
        )
    manifest = Manifest.open(path, terms.written(), remembered, accept_rollback, make=written is None)
    ledgers = BlockLedgers(path, manifest, terms, anchor=anchor, accept_rollback=accept_rollback, progress=progress)
    now = ledgers.budgets.decided()[-1]
    if budget not in (None, now):
        ledgers.close()
        raise LedgerError(
            f"The series {path.name} was made with another budget: it is {now}, not {budget}. A budget is raised by a "
            "decision of its own, `tacit extend` or series.extend; what is left out is read from the series."
        )
    return Series(ledgers)
