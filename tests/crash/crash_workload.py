"""What every crash test shares: a process that asks questions, and the promises checked after it died."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit.errors import TacitError
from tacit.model.budget import Budget, Loss
from tacit.trusted.anchor import Anchor
from tacit.trusted.ledger import Entry, Ledger, Outcome

LEDGER, ANCHOR = "people.tacit", "state/anchors.sqlite"
TERMS: dict[str, Any] = {
    "budget": Budget(epsilon=1.0, delta=0.0),
    "total": Loss.of("epsilon", 1.0),
    "binding": {"domain": "d", "data": "f"},
}


def make(folder: Path) -> None:
    anchor = Anchor(folder / ANCHOR)
    Ledger.create(folder / LEDGER, anchor=anchor, **TERMS).close()
    anchor.close()


def reopen(folder: Path, kind: type[Ledger] = Ledger) -> Ledger:
    return kind.open(folder / LEDGER, anchor=Anchor(folder / ANCHOR), **TERMS)


def shut(ledger: Ledger) -> None:
    ledger.close()
    ledger._anchor.close()


def step(ledger: Ledger, rng: random.Random, between: Callable[[], object] = lambda: None) -> list[Entry]:
    """Ask one question or a batch, new or old, free or not; sometimes die of one's own accord after reserving."""
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
            drawn = [Outcome(key, rng.choice(price), f'{{"value":{rng.getrandbits(40)}}}') for key in new]
            found |= zip(new, ledger.settle(reservation, drawn), strict=True)
    return list(found.values())


@dataclass
class Report:
    """What a run of crashes did, and every promise it saw broken."""

    crashes: int = 0
    shown: int = 0
    violations: list[str] = field(default_factory=list)


def broken(folder: Path, shown: dict[str, tuple[str, int]], kind: type[Ledger] = Ledger) -> tuple[int, list[str]]:
    """The atoms spent, and which promises the ledger in `folder` breaks, given the answers that were shown."""
    try:
        ledger = reopen(folder, kind)
    except TacitError as error:
        return 0, [f"does not open: {error}"]
    try:
        return ledger.spent.atoms, list(_broken(ledger, shown))
    finally:
        shut(ledger)


def _broken(ledger: Ledger, shown: dict[str, tuple[str, int]]) -> Iterator[str]:
    spent, stored = ledger.spent.atoms, ledger.find_many(shown)
    for key, (body, _) in shown.items():
        if key not in stored:
            yield f"the answer to {key} was shown and is lost"
        elif stored[key].body != body:
            yield f"the answer to {key} was shown and is another now"
    if spent < sum(atoms for _, atoms in shown.values()):
        yield "less is spent than the answers shown were charged"
    entries = list(ledger.entries())
    settled = {entry.intent for entry in entries if entry.kind == "outcome"}
    counted = sum(e.atoms for e in entries if e.kind == "outcome" or (e.kind == "intent" and e.seq not in settled))
    if spent < counted:
        yield "a reservation without outcome does not count as spent"
    try:
        ledger.verify()
    except TacitError as error:
        yield f"does not verify: {error}"
