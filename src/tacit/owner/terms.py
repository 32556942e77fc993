"""Trusted with budgets: what a ledger was made with, as it says itself. Enough to go on with it, or to read it.

All of it is public but for a fingerprint of the data, which is not read here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing, nullcontext
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from tacit.errors import ConfigError, LedgerError, TacitError
from tacit.exact.price import extension, raised_to
from tacit.extension import PART_OF
from tacit.extension import extend as write_extension
from tacit.model.attribute import Attribute
from tacit.model.budget import MEASURES, Budget, Loss
from tacit.model.description import values_of
from tacit.model.domain import Domain, toml_value
from tacit.model.entry import decisions
from tacit.model.request import Declared
from tacit.model.status import Extension
from tacit.owner.manifest import SERIES
from tacit.release.mechanisms import MECHANISMS, Choice
from tacit.release.public import Public
from tacit.release.settings import Common, checked, names_of
from tacit.session import Session
from tacit.shelf import Shelf
from tacit.store.anchor import Anchor
from tacit.store.chain import Step
from tacit.store.log import Log, made_of
from tacit.trusted.ledger import Ledger
from tacit.trusted.rules import step

if TYPE_CHECKING:
    from tacit.release.hypothesis.prior import Prior

# What is no setting. `declared` and `rows` are missing in a ledger of an earlier version.
_IDENTITY = (
    "budget",
    "total",
    "aside",
    "domain",
    "declared",
    "rows",
    "data",
    "person",
    "rows_per_person",
    "prior",
    "held",
    "digits",
    "continues",
    PART_OF,
)


@dataclass(frozen=True, kw_only=True)
class MadeWith:
    """The terms of a ledger, but for the data. Without settings it was made by a discovery, and no session yet.

    `budget` and `total` are those that it was made with; `now` and `whole` what the owner has raised them to since.
    """

    budget: Budget
    total: Loss
    now: Budget
    whole: Loss
    settings: dict[str, str]
    domain: Domain | None
    rows: int | None
    person: str | None
    rows_per_person: int
    prior: str | None  # its digest
    aside: float  # the part of delta that is kept for discovered values
    origin: str  # where its chain starts
    continues: str | None  # where the chain of the ledger starts that it goes on from
    begun: bool  # whether it was charged what that one had spent
    held: str = "memory"  # or "engine", where the rows were while it was made
    digits: str | None = None  # how a fingerprint of its encoded copy splits long codes
    part_of: str | None = None  # where the manifest of the series starts that it is a block of

    @classmethod
    def of(cls, path: Path) -> MadeWith | None:
        """The terms of the ledger at `path`, before it is opened; None where there is no ledger."""
        found = made_of(path)
        if found is None:
            return None
        terms, lines = found[0].terms, found[1]
        if SERIES in terms:
            raise LedgerError(
                f"{path.name} is a series of blocks, and no ledger of one table: `tacit.series` opens it."
            )
        try:
            epsilon, delta = json.loads(terms["budget"])
            measure, atoms = json.loads(terms["total"])
            if measure not in MEASURES:
                raise ValueError
            first, total = Budget(epsilon=epsilon, delta=delta), Loss(measure, atoms)
            aside = float(json.loads(terms.get("aside", "0.0")))
            now, whole = raised_to(first, total, decisions(lines), aside=aside)
            return cls(
                budget=first,
                total=total,
                now=now,
                whole=whole,
                settings={name: value for name, value in terms.items() if name not in _IDENTITY},
                domain=Domain.from_toml(terms["declared"]) if "declared" in terms else None,
                rows=int(terms["rows"]) if "rows" in terms else None,
                person=terms.get("person"),
                rows_per_person=int(terms.get("rows_per_person", "1")),
                prior=terms.get("prior"),
                aside=aside,
                origin=found[0].origin.hash,
                continues=terms.get("continues"),
                begun=any(line.kind == "carried" for line in lines),
                held=terms.get("held", "memory"),
                digits=terms.get("digits"),
                part_of=terms.get(PART_OF),
            )
        except (TacitError, KeyError, ValueError, TypeError):
            raise LedgerError(f"{path.name} is damaged.") from None

    @property
    def rules(self) -> Step:
        """What may follow what in this ledger."""
        return partial(step, total=self.total.atoms, continues=self.continues is not None)

    def choice(self, named: Mapping[str, Any] | None = None) -> tuple[Choice, float]:
        """The mechanism with its settings, and the confidence; what the ledger does not keep is as named now."""
        written, named = self.settings, named or {}
        row = MECHANISMS.get(written.get("mechanism", ""))
        if row is None or not written.keys() - {"reason"} <= {"mechanism", *names_of(Common), *names_of(row.settings)}:
            raise LedgerError("The ledger has settings that this version of the program does not know.")
        free = {name: value for name, value in named.items() if name not in written}
        settings = row.set({**written, **free}, strict=False)
        confidence = checked(Common, {**named, **written}, strict=False).confidence
        return Choice(row.name, written.get("reason", ""), settings), confidence

    def differences(self, budget: Budget, domain: Domain, named: Mapping[str, Any]) -> list[str]:
        """In which words somebody who names these terms says other things than the ledger. All of it is public."""
        theirs: dict[str, Any] = {"budget": self.now}
        if self.settings:
            choice, confidence = self.choice()
            theirs |= {"mechanism": choice.mechanism, "confidence": confidence, **to_builtins(choice.settings)}
        kept, given = {"budget", *self.settings}, {"budget": budget, **named}
        found = [
            f"{name} is {value}, not {given[name]}{self._way(budget) if name == 'budget' else ''}"
            for name, value in theirs.items()
            if name in kept and given.get(name, value) != value and (name, given[name]) != ("mechanism", "auto")
        ]
        return found + ([] if self.domain is None else _unlike(self.domain, domain))

    def _way(self, budget: Budget) -> str:
        """How the budget becomes what somebody names, where it can."""
        if self.part_of is not None:
            return ""
        try:
            extension(self.whole, self.now, budget, aside=self.aside)
        except TacitError:
            return ""
        delta = "" if budget.delta == self.now.delta else f" --delta {budget.delta:g}"
        return f" (a budget is raised by a decision of its own: `tacit extend --epsilon {budget.epsilon:g}{delta}`)"

    def to_toml(self, source: str, ledger: str) -> str:
        """The configuration that opens the ledger again."""
        if self.domain is None:
            raise LedgerError(f"{ledger} was made by an earlier version, which did not keep the domain.")
        choice, confidence = self.choice()
        settings = {name: value for name, value in to_builtins(choice.settings).items() if name in self.settings}
        sections: dict[str, dict[str, Any]] = {
            "data": {"source": source},
            "budget": {"epsilon": self.now.epsilon, "delta": self.now.delta},
            "session": {"ledger": ledger, "mechanism": choice.mechanism, **settings, "confidence": confidence},
        }
        if self.held != "memory":
            sections["data"] |= {"held": self.held}
        if self.person is not None:
            sections["data"] |= {"person": self.person, "rows_per_person": self.rows_per_person}
        text = "\n".join(
            f"[{name}]\n"
            + "".join(f"{key} = {toml_value(value)}\n" for key, value in lines.items() if value is not None)
            for name, lines in sections.items()
        )
        return f"{text}\n{self.domain.to_toml()}"


def written(choice: Choice, confidence: float) -> dict[str, str]:
    """The choice as a ledger keeps it, by name. `MadeWith.choice` reads it back."""
    row, kept = MECHANISMS[choice.mechanism], to_builtins(choice.settings)
    found = {name: value for name, value in kept.items() if name not in row.settings.free}
    if row.learns:
        found["confidence"] = confidence
    return {"mechanism": choice.mechanism, "reason": choice.reason} | {name: str(v) for name, v in found.items()}


def made_with(path: Path) -> MadeWith:
    """What the ledger of a session was made with."""
    made = MadeWith.of(path)
    if made is None:
        raise LedgerError(f"There is no ledger {path.name}.")
    if not made.settings:
        raise LedgerError(f"{path.name} holds a discovery, and no session yet: open its table.")
    return made


def newest_terms(path: Path, anchor: str | Path | None) -> MadeWith:
    """What a ledger was made with, to tell before it is opened: refused where the anchor has seen a newer state."""
    Log.open(path, None, Anchor(None if anchor is None else Path(anchor)), made_with(path).rules).close()
    return made_with(path)


def extend(ledger: str | Path, budget: Budget, *, anchor: str | Path | None = None) -> Extension:
    """Raise the budget of a ledger, to this: what `Session.extend` does, without the data.

    >>> tacit.extend("people.tacit", tacit.Budget(epsilon=2.0, delta=1e-9))   # doctest: +SKIP
    """
    return raise_budget(Path(ledger), budget, anchor)


def raise_budget(
    path: Path, budget: Budget, anchor: str | Path | None, series: str | None = None, at: datetime | None = None
) -> Extension:
    """The same, for a ledger of the series whose manifest starts there and has the decision; `at` is its time here."""
    made = made_with(path)
    log = Log.open(path, None, Anchor(None if anchor is None else Path(anchor)), made.rules)
    with Ledger(log, made.total, made.aside) as book, nullcontext() if at is None else log.conditions.asked_at(at):
        return write_extension(book, made.budget, budget, series=series)


def went_back_before(path: Path, anchor: str | Path | None) -> bool:
    """Whether the owner of a ledger has ever gone on from an older copy of it."""
    anchored = Anchor(None if anchor is None else Path(anchor))
    with closing(Log.open(path, None, anchored, made_with(path).rules)) as log:
        return any(log.lines(kinds=["override"]))


def reopen(
    ledger: str | Path,
    *,
    anchor: str | Path | None = None,
    accept_rollback: str | None = None,
    prior: Prior | None = None,
    **settings: Any,
) -> Session:
    """What a ledger knows, without the data: a session that answers, publishes and reports, and buys nothing.

    anchor: where the newest state of the ledger is remembered, as for `tacit.open`.
    accept_rollback: the owner's reason to go on with an older copy; recorded in the ledger.
    settings: those that a ledger does not keep, such as the number of questions expected.

    >>> tacit.reopen("people.tacit").history   # doctest: +SKIP
    """
    path = Path(ledger)
    made = made_with(path)
    if made.continues is not None and not made.begun:
        raise LedgerError(f"{path.name} has not taken over yet what it continues: open its table, which does.")
    if made.domain is None or made.rows is None:
        raise LedgerError(f"{path.name} was made by an earlier version, which did not keep the domain: open its table.")
    if made.prior != (None if prior is None else prior.digest):
        raise ConfigError(f"{path.name} was started with a prior, which the ledger does not hold: name the same one.")
    choice, confidence = made.choice(settings)
    remembered = Anchor(None if anchor is None else Path(anchor))
    log = Log.open(path, None, remembered, made.rules, accept_rollback)
    declared = Declared(made.domain, made.rows, made.rows_per_person, made.total)
    public = Public(log, declared, prior=prior, aside=made.aside, shelf=Shelf(path, log.identity.secret))
    mechanism = choice.build(public, None, confidence)
    book = Ledger(log, made.total, made.aside)
    return Session(
        public=public,
        curator=None,
        ledger=book,
        budget=made.budget,
        choice=choice,
        mechanism=mechanism,
        confidence=confidence,
        start=True,
    )


def _unlike(ours: Domain, theirs: Domain) -> list[str]:
    """How another declaration differs, attribute by attribute."""
    gone = [f"it has no {name}" for name in theirs if name not in ours]
    new = [f"it has {name}" for name in ours if name not in theirs]
    other = [
        f"{name} is {_shown(ours[name])}, not {_shown(theirs[name])}"
        for name in ours
        if name in theirs and ours[name] != theirs[name]
    ]
    found = gone + new + other
    return found if found or list(ours) == list(theirs) else ["its attributes stand in another order"]


def _shown(attribute: Attribute) -> str:
    return f"{attribute.kind} ({values_of(attribute)})"
