"""Trusted words: what stands in a ledger. One record for each kind of line, one encoder, one decoder.

A line's kind says which record its body is. `decode(*encode(entry)) == entry`, and a body that this program wrote is
encoded to the very same text again: whoever reads lines that others may have written checks that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.budget import Budget, Loss, Measure
from tacit.model.domain import Domain
from tacit.model.facts import Bar, Receipt, about_of
from tacit.model.noise_law import Noise
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import Question, from_dict, to_dict
from tacit.model.workload import key as key_of
from tacit.store.chain import Line, Override, Sealed, canonical, digest

_MOST = 2**63  # whole numbers are of 64 bits
MOST_BESIDE = 1000  # measurements of one question that are kept beside each other


def discovery_key(*about: object) -> str:
    """Where what was discovered is kept: under a column, or under a question and the domain that it is about."""
    return digest(["discovered", *about])


def beside(key: str) -> str:
    """Where a measurement is kept beside what a key has already: an answer, once given, stays as it was given."""
    return digest(["measured", key])


@dataclass(frozen=True, slots=True)
class GateTerms:
    """A gate as it was opened: whose it is, where it stands and the scales of its noise, in counts; and its price."""

    owner: str
    threshold: float
    threshold_scale: float
    comparison_scale: float
    atoms: int


@dataclass(frozen=True, slots=True)
class Intent:
    """Something that is about to be done, and was paid for: in words, or a gate that is open until it is shut."""

    purpose: str | GateTerms


@dataclass(frozen=True, slots=True)
class Start:
    """A mark on what was bought to start with, before the first question was answered: a replay reads it, and no more.

    left: how many purchases were still to come without which there is no start. Those after the last one are rounds.
    beside: the lines of earlier purchases that it starts with as well.
    """

    left: int
    beside: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False, slots=True)
class Measurement:
    """The noisy answers to a question: whole numbers on a grid of `unit` steps to a count."""

    question: Question
    values: NDArray[np.int64]
    unit: int
    noise: Noise
    start: Start | None = None


@dataclass(frozen=True, slots=True)
class FreeAnswer:
    """An answer that was told for nothing: a value and bars in grid steps, and a note in words."""

    question: Query | Statistic
    value: int
    note: str
    bars: tuple[Bar, ...] = ()

    def __post_init__(self) -> None:
        if type(self.value) is not int or not -_MOST <= self.value < _MOST:
            raise InvalidQuery("what is told is a whole number of grid steps of 64 bits.")
        for bar in self.bars:
            if type(bar.width) is not int or not 0 <= bar.width < _MOST:
                raise InvalidQuery("a half width is a whole number of grid steps of 64 bits.")
            if not isinstance(bar.confidence, float) or not 0 < bar.confidence < 1:
                raise InvalidQuery("the confidence of a bar is above 0 and below 1.")
        # A lone surrogate would come back as another text.
        for words in (self.note, *(bar.about.words for bar in self.bars)):
            if type(words) is not str or any("\ud800" <= character <= "\udfff" for character in words):
                raise InvalidQuery("what is told has a note in words, and so has each bar.")


@dataclass(frozen=True, slots=True)
class Selection:
    """The place of the candidate that was chosen, out of how many; None where none was."""

    index: int | None
    among: int
    question: Question | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Whether a value passed a public threshold."""

    question: Query | Statistic
    passed: bool


@dataclass(frozen=True, slots=True)
class Found:
    """The values of a column that so many rows have, noise included, that they are told; each with its noisy count.

    None stands for no value. among: how many columns shared the delta of the look.
    """

    name: str
    values: tuple[str | int | None, ...]
    counts: tuple[int, ...]
    threshold: int
    among: int
    noise: Noise


@dataclass(frozen=True, eq=False, slots=True)
class Discovered:
    """A measurement from before the session's domain was declared: about a domain of its own, in the order of names.

    rows: how many there were, which is public.
    """

    domain: Domain
    rows: int
    measured: Measurement

    @property
    def key(self) -> str:
        return discovery_key(self.domain.key, key_of(self.measured.question))


@dataclass(frozen=True, slots=True)
class LaterTerms:
    """The terms of the session that follows a discovery, by their hash."""

    seal: str


@dataclass(frozen=True, slots=True)
class Extended:
    """The owner's decision to raise the budget, to this. Its line has what that adds to the total, in atoms."""

    budget: Budget


@dataclass(frozen=True, slots=True)
class Carried:
    """What another ledger about the same people had spent, which this one begins with. Its line charges that here.

    ledger: where that one's chain starts. entry, seal: the line with which it was closed.
    """

    ledger: str
    entry: int
    seal: str
    spent: Loss


@dataclass(frozen=True, slots=True)
class Closed:
    """The end of purchases: another ledger goes on, whose chain starts here. Its line charges all that was left."""

    by: str


@dataclass(frozen=True, slots=True)
class Shut:
    """The end of a gate, by the number of the intent that opened it."""

    gate: int


@dataclass(frozen=True, slots=True)
class Dropped:
    """An answer that nobody saw, because its question had been answered meanwhile, in the line of this number."""

    answered_by: int


@dataclass(frozen=True, eq=False, kw_only=True)
class Measured:
    """Noisy answers as the curator released them: integers on a grid of `unit` steps to a count. Public."""

    key: str
    question: Question
    values: NDArray[np.int64]
    unit: int
    noise: Noise
    cost: Loss
    receipt: Receipt
    start: Start | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A free answer as it was told: a value and bars in grid steps, worked out from what was public then."""

    key: str
    question: Query | Statistic
    value: int
    note: str
    bars: tuple[Bar, ...]
    free: Loss
    receipt: Receipt


Discovery = Found | Discovered | LaterTerms
Limit = Carried | Closed | Extended
Entry = Intent | Measurement | FreeAnswer | Selection | Comparison | Discovery | Limit | Shut | Dropped | Override


def encode(entry: Entry) -> tuple[str, str]:
    """The kind of an entry's line, and its body in canonical JSON."""
    match entry:
        case Intent(GateTerms(owner, threshold, first, second, atoms)):
            scales = {"threshold_scale": first, "comparison_scale": second}
            gate = {"kind": "gate", "owner": owner, "threshold": threshold, "atoms": atoms, **scales}
            return "intent", canonical({"purpose": gate})
        case Intent(purpose):
            return "intent", canonical({"purpose": purpose})
        case Measurement(question, values, unit, Noise(kind, scale), start):
            noise = {"kind": kind, "scale": scale}
            form = {"question": to_dict(question), "values": values.tolist(), "unit": unit, "noise": noise}
            form |= {} if start is None else {"start": [start.left, *start.beside]}
            return "measured", canonical(form)
        case FreeAnswer(question, value, note, bars):
            said = [[bar.width, bar.about.words, bar.confidence] for bar in bars]
            return "told", canonical({"question": to_dict(question), "told": value, "note": note, "bars": said})
        case Selection(index, among, question):
            asked = {} if question is None else {"question": to_dict(question)}
            return "chosen", canonical({"choice": index, "among": among, **asked})
        case Comparison(question, passed):
            return "compared", canonical({"question": to_dict(question), "compared": int(passed)})
        case Found(name, listed, counts, threshold, among, Noise(kind, scale)):
            about = {"name": name, "threshold": threshold, "among": among, "noise": {"kind": kind, "scale": scale}}
            return "found", canonical(about | {"values": list(listed), "counts": list(counts)})
        case Discovered(domain, rows, measured):
            about = {"domain": domain.to_dict(), "rows": rows}
            return "discovered", canonical({**about, "measured": json.loads(encode(measured)[1])})
        case LaterTerms(seal):
            return "terms", canonical({"terms": seal})
        case Extended(Budget(epsilon=epsilon, delta=delta)):
            return "extended", canonical({"epsilon": epsilon, "delta": delta})
        case Carried(ledger, number, seal, Loss(measure=measure, atoms=atoms)):
            before = {"ledger": ledger, "entry": number, "seal": seal}
            return "carried", canonical(before | {"spent": [measure, atoms]})
        case Closed(by):
            return "closed", canonical({"by": by})
        case Shut(gate):
            return "shut", canonical({"kind": "gate", "gate": gate})
        case Dropped(answered_by):
            return "dropped", canonical({"answered_by": answered_by})
        case Override():
            return "override", entry.body()


def spells(entry: Entry, kind: str, body: str) -> bool:
    """Whether a line says an entry in its one spelling."""
    return (kind, body) == encode(entry)


def decode(kind: str, body: str, asked: Query | Statistic | None = None) -> Entry:
    """The entry of a line. A reader who `asked` a single question has it already: it is not made again.

    What is no body of this kind raises one of Python's own errors, or `InvalidQuery`.
    """
    if kind == "override":
        return Override.of(body)
    form: dict[str, Any] = json.loads(body)
    if kind == "intent":
        return Intent(_purpose(form["purpose"]))
    if kind == "measured":
        noise = Noise(form["noise"]["kind"], form["noise"]["scale"])
        values = np.array(form["values"], dtype=np.int64)
        left, *beside = form.get("start", [None])
        start = None if left is None else Start(left, tuple(beside))
        return Measurement(from_dict(form["question"]), values, int(form["unit"]), noise, start)
    if kind == "found":
        noise = Noise(form["noise"]["kind"], form["noise"]["scale"])
        lists = tuple(form["values"]), tuple(form["counts"])
        return Found(form["name"], *lists, form["threshold"], form["among"], noise)
    if kind == "discovered":
        measured = decode("measured", canonical(form["measured"]))
        assert isinstance(measured, Measurement)
        return Discovered(Domain.from_dict(form["domain"]), form["rows"], measured)
    if kind == "terms":
        return LaterTerms(form["terms"])
    if kind == "extended":
        return Extended(Budget(**form))
    if kind == "carried":
        return Carried(**form | {"spent": Loss(*form["spent"])})
    if kind == "closed":
        return Closed(**form)
    if kind == "told":
        question = _single(form["question"]) if asked is None else asked
        bars = tuple(Bar(width, about_of(said), confidence) for width, said, confidence in form["bars"])
        return FreeAnswer(question, form["told"], form["note"], bars)
    if kind == "chosen":
        question_or_none = from_dict(form["question"]) if "question" in form else None
        return Selection(form["choice"], form["among"], question_or_none)
    if kind == "compared":
        return Comparison(_single(form["question"]), bool(form["compared"]))
    if kind == "shut":
        return Shut(form["gate"])
    if kind == "dropped":
        return Dropped(form["answered_by"])
    raise ValueError(f"there is no kind of entry called {kind!r}")


def released(line: Line, measure: Measure, asked: Query | Statistic | None = None) -> Measured | Told | None:
    """The answer that a line holds, with its cost and its receipt; None where it holds a choice, or a gate."""
    entry, receipt = decode(line.kind, line.body, asked), Receipt(line.seq, line.hash)
    key, cost = str(line.key), Loss(measure, line.atoms)
    if isinstance(entry, Measurement):
        return Measured(
            key=key,
            question=entry.question,
            values=entry.values,
            unit=entry.unit,
            noise=entry.noise,
            cost=cost,
            receipt=receipt,
            start=entry.start,
        )
    if isinstance(entry, FreeAnswer):
        return Told(
            key=key,
            question=entry.question,
            value=entry.value,
            note=entry.note,
            bars=entry.bars,
            free=cost,
            receipt=receipt,
        )
    return None


def decisions(lines: Iterable[Sealed]) -> Iterator[tuple[Budget, int]]:
    """What each line that raises the budget raises it to, and the atoms that it adds."""
    for line in lines:
        entry = decode(line.kind, line.body)
        if isinstance(entry, Extended):
            yield entry.budget, line.atoms


def _purpose(given: str | dict[str, Any]) -> str | GateTerms:
    if isinstance(given, str):
        return given
    scales = given["threshold_scale"], given["comparison_scale"]
    return GateTerms(given["owner"], given["threshold"], *scales, given["atoms"])


def _single(form: dict[str, Any]) -> Query | Statistic:
    question = from_dict(form)
    if not isinstance(question, Query | Statistic):
        raise InvalidQuery("a single value is asked for here, not a table.")
    return question
