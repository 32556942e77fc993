"""What was paid for and what may be spent, as the lines of a ledger or of a published file say it. For `Public`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import takewhile
from typing import Any, NamedTuple, Protocol

from msgspec.json import Decoder

from tacit.model.body import ScopedAnswer
from tacit.model.budget import Loss, Measure
from tacit.model.description import describe
from tacit.model.entry import (
    Carried,
    Closed,
    Comparison,
    Discovered,
    Entry,
    Extended,
    Found,
    FreeAnswer,
    GateTerms,
    Intent,
    Measured,
    Measurement,
    Selection,
    Shut,
    Told,
    decode,
    released,
)
from tacit.model.facts import Receipt
from tacit.model.status import Extension
from tacit.model.workload import Question
from tacit.store.chain import Line, Mark

# The lines that somebody got something from.
_RELEASES = ("measured", "told", "chosen", "compared", "shut", "found", "discovered")


class Lines(Protocol):
    """The lines of a ledger or of a published file, for reading."""

    def head(self) -> Mark: ...
    def keyed(self, keys: Sequence[str]) -> dict[str, Line]: ...
    def look(self, keys: Sequence[str]) -> tuple[Mark, dict[str, Line]]: ...
    def lines(self, after: int = 0, kinds: Sequence[str] = ()) -> Iterator[Line]: ...
    def since(self, after: int, most: int = ...) -> tuple[Mark, Iterator[Line]]: ...
    def newest(self, before: int, most: int, *, told: bool = ...) -> list[Line]: ...
    def limits(self) -> list[Line]: ...
    def unpaid_count(self) -> int: ...
    def kept_intents(self) -> list[Line]: ...
    def snapshot(self) -> tuple[str, list[Line]]: ...
    @property
    def origin(self) -> str: ...
    def turn(self) -> AbstractContextManager[Any]: ...


class Purchased(NamedTuple):
    """What was bought, or told for nothing: its kind, the question if there is one, its price and its receipt.

    What was discovered is about another domain, so it is told in words.
    """

    kind: str
    about: Question | str | None
    cost: Loss
    receipt: Receipt


class Account:
    """Everything that was paid for, with its prices in one measure."""

    def __init__(self, lines: Lines, measure: Measure) -> None:
        self._lines, self._measure = lines, measure

    def since(self, after: int = 0, most: int = 500) -> Iterator[Purchased]:
        """Everything that was charged and settled since entry `after`, in order; read `most` at a time."""
        for line in self._lines.since(after, most)[1]:
            if _is_paid(line):
                yield self._purchased(line)

    def open_gates(self) -> Iterator[Purchased]:
        """The gates that are open: they are paid for, and no hard question was found yet."""
        for line in self._lines.kept_intents():
            entry = decode(line.kind, line.body)
            if isinstance(entry, Intent) and owner_of(entry) is not None:
                cost = Loss(self._measure, line.atoms)
                yield Purchased("gate", "a gate that is open", cost, Receipt(line.seq, line.hash))

    def latest(self, most: int, before: int, *, told: bool) -> Iterator[tuple[Purchased, Measured | Told | None]]:
        """The last purchases before an entry, newest first, and if wanted what was told for nothing; with answers."""
        found = 0
        while found < most and (lines := self._lines.newest(before, most - found, told=told)):
            before = lines[-1].seq
            for line in lines:
                if line.kind == "told" or _is_paid(line):
                    found += 1
                    yield self.recalled(line)

    def records(self, after: int, until: int) -> Iterator[tuple[str, Line]]:
        """What was bought or told after one entry, up to another, in order: kinds as in `charges`, and lines.

        No question is made: `recalled` makes that of a line.
        """
        for line in takewhile(lambda line: line.seq <= until, self._lines.lines(after, _RELEASES)):
            if _is_paid(line) or line.kind in ("measured", "told"):
                yield _kind(line), line

    def recalled(self, line: Line) -> tuple[Purchased, Measured | Told | None]:
        """What a line says, with the answer if it has one."""
        answer = released(line, self._measure)
        return self._purchased(line, answer), answer

    def charges(self, after: int) -> Iterator[tuple[str, int, int]]:
        """What was charged and settled since entry `after`, without making the questions: kind, atoms and entry.

        The kind is that of the question where something was measured, and else of the line.
        """
        for line in self._lines.since(after)[1]:
            if _is_paid(line):
                yield _kind(line), line.atoms, line.seq

    def _purchased(self, line: Line, answer: Measured | Told | None = None) -> Purchased:
        entry = decode(line.kind, line.body) if answer is None else answer  # wide questions are not made twice
        return Purchased(*_said(entry, line.kind), Loss(self._measure, line.atoms), Receipt(line.seq, line.hash))

    def paid_since(self, after: int) -> list[tuple[str | None, int]]:
        """What was spent since entry `after`, in order: the key of what was bought for it, and atoms.

        A gate is paid for when it is opened, and has no key. Neither has a reservation whose answer was lost.
        """
        found, open_ones = list[tuple[str | None, int]](), dict[int, int]()
        for line in self._lines.lines(after):
            if line.kind == "intent":
                entry = decode(line.kind, line.body)
                if isinstance(entry, Intent) and owner_of(entry) is not None:
                    found.append((None, line.atoms))
                else:
                    open_ones[line.seq] = line.atoms
            elif line.intent is not None and line.kind != "shut":
                open_ones.pop(line.intent, None)
                found.append((line.key, line.atoms))
        return [*found, *((None, atoms) for atoms in open_ones.values())]


def _is_paid(line: Line) -> bool:
    """Whether somebody got something for the price of a line. What was dropped, nobody saw."""
    return line.atoms > 0 and line.kind != "dropped"


def _said(entry: Entry | Measured | Told, kind: str) -> tuple[str, Question | str | None]:
    """What an entry of a kind is called as a purchase, and the question that it is about, if there is one."""
    match entry:
        case Measurement() | Measured() | FreeAnswer() | Told() | Comparison():
            return kind, entry.question
        case Selection(question=question):
            return "choice", question
        case Found(name):
            return "discovered", f"the values of {name}"
        case Discovered(domain, measured=measured):
            return kind, describe(measured.question, domain)
        case Shut():
            return "gate", None
        case _:
            return kind, None


def owner_of(intent: Intent) -> str | None:
    """Whose gate an intent opens, if it does."""
    return intent.purpose.owner if isinstance(intent.purpose, GateTerms) else None


_peek = Decoder(ScopedAnswer).decode


def _kind(line: Line) -> str:
    """The kind of the question where something was measured, and else of the line: no question is made."""
    return _peek(line.body).question.kind if line.kind == "measured" else line.kind


def scope_of_single(body: str) -> frozenset[str] | None:
    """The attributes of a single count or sum that was measured, without making the question; None of anything else."""
    question = _peek(body).question
    return frozenset(name for f in question.factors for name in f.scope) if question.kind == "query" else None


# -- what may be spent -------------------------------------------------------------------------------------------------


class Spendable(NamedTuple):
    """The whole budget, and what has made it so.

    extensions: the decisions to raise it, in order.
    continues, carried: what another ledger had spent that this one goes on from, and the atoms that this charged here.
    closing: the entry and the line with which another ledger took over what was left.
    """

    whole: Loss
    extensions: tuple[Extension, ...] = ()
    continues: Carried | None = None
    carried: int = 0
    closing: tuple[Closed, Line] | None = None

    def after(self, line: Line) -> Spendable:
        """The limits after one more line that says what may be spent."""
        match entry := decode(line.kind, line.body):
            case Extended(budget):
                whole = self.whole + Loss(self.whole.measure, line.atoms)
                one = Extension(budget, whole, line.time, Receipt(line.seq, line.hash))
                return self._replace(whole=whole, extensions=(*self.extensions, one))
            case Carried():
                return self._replace(continues=entry, carried=line.atoms)
            case Closed():
                return self._replace(closing=(entry, line))
            case _:
                return self


def spendable(total: Loss, lines: Iterable[Line]) -> Spendable:
    """What may be spent of a ledger that was made with `total`, after these lines, by a fold over them."""
    limits = Spendable(total)
    for line in lines:
        limits = limits.after(line)
    return limits
