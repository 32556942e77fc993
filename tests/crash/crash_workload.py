"""What every crash test shares: a process that asks questions, and the promises checked after it died."""

from __future__ import annotations

import contextlib
import random
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.errors import InvalidBudget, TacitError
from tacit.exact.price import raised_to
from tacit.extension import extend
from tacit.model.budget import Budget, Loss
from tacit.model.entry import decisions
from tacit.store.anchor import Anchor
from tacit.store.chain import Line
from tacit.trusted.ledger import Ledger, Outcome

LEDGER, ANCHOR = "people.tacit", "state/anchors.sqlite"
PLENTY = Loss.of("epsilon", 1.0)
Shown = dict[str, tuple[str, int, int]]  # key: body, atoms, number of the entry


def terms(folder: Path, total: Loss) -> dict[str, Any]:
    binding = {"domain": "d", "data": "f"}
    anchor = Anchor(folder / ANCHOR)
    return {"budget": Budget(epsilon=1.0, delta=0.0), "total": total, "binding": binding, "anchor": anchor}


def make(folder: Path, total: Loss = PLENTY) -> str:
    """A new ledger; its id."""
    with Ledger.open(folder / LEDGER, make="new", **terms(folder, total)) as ledger:
        return ledger.log.identity.id


def reopen(folder: Path, kind: type[Ledger] = Ledger, total: Loss = PLENTY) -> Ledger:
    return kind.open(folder / LEDGER, **terms(folder, total))


def step(ledger: Ledger, rng: random.Random, between: Callable[[], object] = lambda: None) -> list[Line]:
    """Ask one question or a batch, new or old, free or not; sometimes die of one's own accord after reserving.

    Or raise the budget, where it is plenty: at its end that would be the end of the test.
    """
    if ledger.total == PLENTY and rng.random() < 0.05:
        return raise_budget(ledger, rng)
    keys = [
        f"q{rng.randrange(50)}" if rng.random() < 0.3 else f"q{rng.getrandbits(60)}"
        for _ in range(rng.choice((1, 1, 1, 3)))
    ]
    found = ledger.find_many(keys)
    new = [key for key in dict.fromkeys(keys) if key not in found]
    if new:
        free = rng.random() < 0.2
        reservation = None if free else ledger.reserve(Loss("epsilon", 10 * len(new)), purpose="count")
        between()
        if free or rng.random() < 0.9:
            price = (0,) if free else (0, 7, 10)
            kind = "told" if free else "measured"
            drawn = [Outcome(key, rng.choice(price), kind, f'{{"value":{rng.getrandbits(40)}}}') for key in new]
            found |= zip(new, ledger.settle(reservation, drawn), strict=True)
    return list(found.values())


def raise_budget(ledger: Ledger, rng: random.Random) -> list[Line]:
    """The line that raises it; none if another process has raised it further meanwhile."""
    first = Budget(epsilon=1.0)
    now = max([first.epsilon, *(budget.epsilon for budget, _ in decisions(extensions(ledger).values()))])
    with contextlib.suppress(InvalidBudget):
        entry = extend(ledger, first, Budget(epsilon=now + 0.001 * rng.random())).receipt.entry
        return [extensions(ledger)[f"extended {entry}"]]
    return []


def extensions(ledger: Ledger) -> dict[str, Line]:
    return {f"extended {line.seq}": line for line in ledger.log.lines(kinds=("extended",))}


def seen(entries: list[Line]) -> Shown:
    return {entry.key or f"extended {entry.seq}": (entry.body, entry.atoms, entry.seq) for entry in entries}


def raises(shown: Shown) -> int:
    return sum(key.startswith("extended ") for key in shown)


@dataclass
class Report:
    """What a run of crashes did, and every promise it saw broken."""

    crashes: int = 0
    shown: int = 0
    raised: int = 0  # of what was shown: lines that raise the budget
    refused: int = 0
    violations: list[str] = field(default_factory=list)


def broken(
    folder: Path, shown: Shown, ledger_id: str, kind: type[Ledger] = Ledger, total: Loss = PLENTY
) -> tuple[int, list[str]]:
    """The atoms spent, and which promises the files in `folder` break, given the answers that were shown."""
    found = []
    known = Anchor(folder / ANCHOR).newest(ledger_id)  # before opening, which tells the anchor of everything
    if max((seq for _, _, seq in shown.values()), default=0) > (known.seq if known else 0):
        found.append("the anchor does not know of an answer that was shown")
    # Open beside ours until the end: the last to close would write the log into the file.
    with contextlib.closing(sqlite3.connect(folder / LEDGER)) as beside:
        try:
            before = beside.execute("SELECT spent FROM entries ORDER BY seq DESC LIMIT 1").fetchall()
        except sqlite3.DatabaseError:
            before = []  # the ledger will say so itself
        try:
            with reopen(folder, kind, total) as ledger:
                spent = ledger.spent.atoms
                if before and spent < before[0][0]:
                    found.append("opening the ledger gave budget back")
                return spent, [*found, *_broken(ledger, shown)]
        except TacitError as error:
            return 0, [*found, f"does not open: {error}"]


def _broken(ledger: Ledger, shown: Shown) -> Iterator[str]:
    spent, raised = ledger.spent.atoms, extensions(ledger)
    stored = ledger.find_many(shown) | raised
    for key, (body, _, _) in shown.items():
        if key not in stored:
            yield f"the answer to {key} was shown and is lost"
        elif stored[key].body != body:
            yield f"the answer to {key} was shown and is another now"
    if spent < sum(atoms for key, (_, atoms, _) in shown.items() if key not in raised):
        yield "less is spent than the answers shown were charged"
    if spent > ledger.total.atoms + sum(line.atoms for line in raised.values()):
        yield "more is spent than the budget"
    if ledger.total == PLENTY:
        try:
            raised_to(Budget(epsilon=1.0), PLENTY, decisions(raised.values()))
        except TacitError as error:
            yield f"the budget was raised by what it is not worth: {error}"
    entries = list(ledger.log.lines())
    answered = {entry.intent for entry in entries if entry.intent is not None}
    counted = sum(
        entry.atoms for entry in entries if entry.kind not in ("override", "extended") and entry.seq not in answered
    )
    if spent < counted:
        yield "a reservation without outcome does not count as spent"
    try:
        ledger.log.verify()
    except TacitError as error:
        yield f"does not verify: {error}"
