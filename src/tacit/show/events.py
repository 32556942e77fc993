"""A session's past as events, one for each thing bought or told, and in pictures. For the report and the server.

Everything here is worked out from what was released, so it costs nothing and adds no private fact.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tacit.model.answer import Answer, says_words
from tacit.model.attribute import Attribute
from tacit.model.budget import Loss
from tacit.model.description import describe
from tacit.model.entry import Measured, Told
from tacit.model.facts import Facts, Receipt
from tacit.model.noise_law import quantile
from tacit.model.query import Query
from tacit.model.residuals import Residuals
from tacit.model.statistic import Statistic
from tacit.model.status import Past
from tacit.model.table import CdfAnswer, Table
from tacit.model.workload import Convolution, Marginal, Product, Tree, marginal
from tacit.release.curves import curve
from tacit.release.estimate import of_stored
from tacit.release.evidence import one_answer
from tacit.release.hypothesis.noisy_residuals import NoisyResiduals
from tacit.release.hypothesis.noisy_table import NoisyTable
from tacit.release.ranges.distribution import Distribution
from tacit.release.ranges.rectangles import Rectangles
from tacit.session import Session
from tacit.show.chart import Axis, Chart, Gauge, Polyline, Ticks
from tacit.show.pages import whiskered
from tacit.store.chain import Line

# What is bought, by kind, in the order in which a budget is shown.
BOUGHT = {
    "table": "tables",
    "range": "ranges",
    "certificate": "certificates of what was bought",
    "count": "single counts",
    "statistic": "statistics",
    "gate": "hard questions found",
    "choice": "choices and comparisons",
    "discovered": "values and bins that were discovered",
}
EVENT_WIDTH = 840  # pixels
MOST_BINS = 20  # along each side of a picture of rectangles
Entries = NDArray[np.int64]
_WITHOUT_ANSWER = {"gate": "gate", "choice": "choice", "compared": "choice", "discovered": "discovered", "told": "told"}
# The kinds of `BOUGHT` by those of `Session.charges`; all others are of ranges.
_CHARGED = {
    "query": "count",
    "statistic": "statistic",
    "marginal": "table",
    "residuals": "table",
    "certificate": "certificate",
    "certificates": "certificate",
    "shut": "gate",
    "chosen": "choice",
    "compared": "choice",
    "found": "discovered",
    "discovered": "discovered",
}


@dataclass(frozen=True, eq=False)
class Event:
    """One entry of the ledger: something bought, of a kind in `BOUGHT`, or "told" for nothing.

    `answer` is None for a gate, a choice or a comparison, and for what was discovered.
    """

    receipt: Receipt
    kind: str
    question: str
    cost: Loss
    answer: Measured | Told | None

    @classmethod
    def of(cls, past: Past, answer: Measured | Told | None) -> Event:
        kind = charged(type(answer.question).__name__.lower()) if isinstance(answer, Measured) else None
        return cls(past.receipt, kind or _WITHOUT_ANSWER[past.kind], past.question, past.cost, answer)

    @property
    def free(self) -> bool:
        return self.kind == "told"


def latest(session: Session, most: int, before: int = 0, *, free: bool) -> list[Event]:
    """The last `most` events before an entry, newest first; no more are read. `free`: also those that cost nothing."""
    found = session.latest(most, before=before or 2**62, told=free)
    return [Event.of(past, answer) for past, answer in found]


def of_record(line: Line, session: Session) -> Event:
    """What a line of `Session.records` says."""
    return Event.of(*session.recalled(line))


@dataclass
class SpendingTally:
    """What was paid for each kind of `BOUGHT` up to an entry: how many times, and how many atoms."""

    entry: int = 0
    number: Counter[str] = field(default_factory=Counter)
    atoms: Counter[str] = field(default_factory=Counter)

    def catch_up(self, session: Session) -> SpendingTally:
        """The same up to the newest entry. What was counted before is not read again."""
        for kind, atoms, entry in session.charges(self.entry):
            self.add(charged(kind), atoms)
            self.entry = entry
        return self

    def add(self, kind: str, atoms: int) -> None:
        """Count something of a kind of `BOUGHT`."""
        self.number[kind] += 1
        self.atoms[kind] += atoms


def charged(kind: str) -> str:
    """The kind of `BOUGHT` that a kind of `Session.charges` is."""
    return _CHARGED.get(kind, "range")


def spending(tally: SpendingTally, session: Session) -> list[tuple[str, int, Loss]]:
    """What was paid for each kind: its name, how many, the cost; then what is reserved without an outcome.

    What the ledger before had spent comes first, and last what went to the one that continues this one.
    """
    lines = [("the ledger before", 0, Loss(session.total.measure, session.carried))] if session.carried else []
    for kind, name in BOUGHT.items():
        if tally.number[kind]:
            lines.append((name, tally.number[kind], Loss(session.total.measure, tally.atoms[kind])))
    rest = session.spent.atoms - session.moved - sum(cost.atoms for _, _, cost in lines)
    if rest > 0:
        lines.append(("reserved", 0, Loss(session.total.measure, rest)))
    if session.moved:
        lines.append(("the ledger after", 0, Loss(session.total.measure, session.moved)))
    return lines


def single(event: Event, session: Session) -> Answer | None:
    """The answer of an event that has just one value."""
    stored = event.answer
    if stored is None or not isinstance(question := stored.question, Query | Statistic):
        return None
    estimate = of_stored(stored, question, session.rows, session.confidence)
    return one_answer(event.question, question, estimate, session.rows)


# -- pictures ----------------------------------------------------------------------------------------------------------


def gauge(tally: SpendingTally, session: Session) -> Gauge:
    """The budget as one bar, by what it was spent on."""
    parts = [(name, 100 * cost.atoms / session.total.atoms) for name, _, cost in spending(tally, session)]
    return Gauge(f"The budget: {session.budget}", parts, 100, "% of it", width=EVENT_WIDTH)


def timeline(places: Entries, spent: Entries, lanes: Sequence[tuple[str, Entries]], session: Session) -> Chart:
    """What was spent after each entry, in atoms, and which entries were bought and which were free."""
    strokes = [Ticks(x, name=name) for name, x in lanes if x.size]
    shares = spent / session.total.atoms
    line = Polyline(np.append(0, places), np.append(0, shares), name="spent", steps=True)
    return Chart(
        "Spent over time",
        x=Axis("entry of the ledger"),
        y=Axis("share of the budget", percent=True, low=0),
        marks=[line, *strokes] if places.size else [],
        width=EVENT_WIDTH,
        height=300,
        empty="Nothing was asked yet.",
    )


def counts(shown: Sequence[Answer], many: int, session: Session) -> Chart | None:
    """The first single counts that were bought, with their error bars, of so many."""
    if not shown:
        return None
    more = f"the first {len(shown)} of {many:,}" if many > len(shown) else ""
    values, errors = np.array([one.value for one in shown]), np.array([one.error or 0.0 for one in shown])
    bars = whiskered(values, errors, (0, session.rows), grey=all(one.says == "nothing" for one in shown))
    axis = Axis(categories=[f"{one.question}{says_words(one)}" for one in shown])
    return Chart("Single counts", x=Axis("rows"), y=axis, marks=[bars], width=EVENT_WIDTH, note=more)


def pictures(event: Event, session: Session) -> Iterator[CdfAnswer | Table]:
    """What of a release can be drawn: its cumulative counts, its table, or its attributes one by one."""
    answer = event.answer
    if not isinstance(answer, Measured):
        return
    if isinstance(answer.question, Tree | Convolution):
        found = Distribution(answer, session.domain, session.rows, session.confidence)
        yield curve(f"cumulative counts of {found.name}", found, _facts(answer, session))
    elif isinstance(answer.question, Product):
        yield _rectangles(answer, session)
    elif isinstance(answer.question, Marginal) and len(answer.question.names) <= 2:
        yield table(answer, session)
    elif isinstance(answer.question, Residuals):
        yield from _one_by_one(
            NoisyResiduals(answer, session.domain, session.rows, session.confidence), answer, session
        )
    elif isinstance(answer.question, Marginal) and answer.question.where.is_everyone:
        yield from _one_by_one(NoisyTable(answer, session.domain, session.rows, session.confidence), answer, session)


def _one_by_one(noisy: NoisyTable | NoisyResiduals, answer: Measured, session: Session) -> Iterator[Table]:
    """The counts of each attribute that a release of several tells."""
    assert isinstance(answer.question, Marginal | Residuals)
    for name in answer.question.names:
        asked = marginal(session.domain, name)
        if session.domain[name].size > 1 and noisy.has(asked):
            told = noisy.table(asked)
            words = f"{name}, from the {describe(answer.question, session.domain)}"
            yield _shown(words, (name,), told.values.astype(np.float64), told.facts.width, answer, session)


def table(answer: Measured, session: Session) -> Table:
    """A released table as it is, each cell with the error of its own noise."""
    assert isinstance(answer.question, Marginal)
    names = answer.question.names
    shape = session.domain.shape_of(names)
    error = quantile(answer.noise, session.confidence) / answer.unit
    words = describe(answer.question, session.domain)
    return _shown(words, names, answer.values.reshape(shape) / answer.unit, error, answer, session)


def _rectangles(answer: Measured, session: Session) -> Table:
    """The counts of a grid of rectangles, no finer than can be seen."""
    strategy = answer.question
    assert isinstance(strategy, Product)
    names = strategy.first.name, strategy.second.name
    cuts = [_cuts(session.domain[name].bins) for name in names]
    first, second = np.meshgrid(*(cut[:-1] for cut in cuts), indexing="ij")
    last, end = np.meshgrid(*(cut[1:] - 1 for cut in cuts), indexing="ij")
    told = Rectangles(answer, session.domain, session.rows, session.confidence).counts((first, second), (last, end))
    labels = tuple(
        tuple(_between(session.domain[name], a, b) for a, b in pairwise(cut.tolist()))
        for name, cut in zip(names, cuts, strict=True)
    )
    error = float(told.errors.max())
    words = f"rows by {names[0]} and {names[1]}, from all their ranges"
    return _shown(words, names, told.values, error, answer, session, labels)


def _cuts(bins: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return np.unique(np.linspace(0, bins, min(bins, MOST_BINS) + 1).astype(np.intp))


def _between(attribute: Attribute, first: int, end: int) -> str:
    return attribute.label(first) if end == first + 1 else f"{attribute.label(first)} … {attribute.label(end - 1)}"


def _shown(
    words: str,
    names: tuple[str, ...],
    values: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
    error: float | None,
    answer: Measured,
    session: Session,
    labels: tuple[tuple[str, ...], ...] | None = None,
) -> Table:
    declared = tuple(tuple(session.domain[n].label(i) for i in range(session.domain[n].size)) for n in names)
    return Table(words, names, labels or declared, values, _facts(answer, session).within(error), (0, session.rows))


def _facts(answer: Measured, session: Session) -> Facts:
    return Facts("measured", answer.cost, session.confidence, answer.receipt)
