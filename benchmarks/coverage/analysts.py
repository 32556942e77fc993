"""Who asks in `bench_coverage`: each analyst holds the answers of one session against the truth, kind by kind of bar.

What is kept are errors over the bars that were said of them. Of answers that share their noise one counts for each
session; where a bar is about many answers at once, the worst of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import tacit
from benchmarks.coverage.tables import Table, Where, boxes, drawn, some
from tacit.model.aggregate import Sum
from tacit.model.answer import Answer, Answered
from tacit.model.certificate import Certificate, Conjunctions
from tacit.model.factor import GRID
from tacit.model.facts import ANSWER, FREE, NOISE, About, Bar
from tacit.model.query import Query
from tacit.release.base import CertifiedFigure
from tacit.release.classes import boxes as all_boxes
from tacit.release.evidence import sure
from tacit.release.iterative import Weights
from tacit.release.online import Online
from tacit.session import Session
from tacit.trusted.records import Records

Floats = NDArray[np.float64]
CONFIDENCE = 0.9  # at which failures can be seen
TROUBLE = 20  # questions of the analyst who knows the data


class Promise(NamedTuple):
    """What a bar is about; of how many noisy answers it is put together; and whether it promises anything here."""

    words: str
    noisy: int = 1
    meant: bool = True

    @property
    def stated(self) -> float:
        return sure(self.noisy, CONFIDENCE)


EACH, HARD = Promise("a count: this noise"), Promise("a hard answer: this noise")
EASY, ALL_EASY = Promise("a free answer: this answer"), Promise("all free answers at once")
BAND, INTERVAL, RANGE = Promise("cdf: all steps at once"), Promise("a quantile's interval"), Promise("a range")
MEAN, BINS = Promise("the mean of all rows"), Promise("a bin of a histogram")
RECTANGLE = Promise("a rectangle")
SUM, SHARE, RATIO = Promise("SUM"), Promise("a fraction of all rows"), Promise("a fraction of some rows", 2)
AVG, SPREAD, GROUP = Promise("AVG under a condition", 2), Promise("VARIANCE", 3), Promise("AVG of a group", 2)
CELL, INSIDE = Promise("a cell of a table"), Promise("a count read off a bought table")
FEW_COUNTS = Promise("a quantile put together of counts", 3)
STATISTIC = Promise("a statistic: this noise")
DIAL, DIAL_SUM = Promise("a count with within="), Promise("a SUM with within=")
SURPRISE, SHARP_SURPRISE = Promise("the largest surprise"), Promise("the largest surprise, within=")
UNMEANT = Promise("the emptiest cell of all", meant=False)
SHOWN, READ = Promise("the bar that is shown"), Promise("read off a bought release")
LIKELY, LIKELY_SUM = Promise("a share of questions like this"), Promise("a share of sums like this")
LISTED_SUM = Promise("SUM, drawn like those")
EVERY, MIXED = Promise("all boxes at once"), Promise("all sets of two ranges at once")


class Seen(dict[Promise, list[float]]):
    """For each promise the errors over their bars, in the order of the answers. No bar, no promise."""

    def __init__(self, confidence: float) -> None:
        super().__init__()
        self._confidence = confidence

    def add(self, promise: Promise, answer: Answered, value: float, truth: float, width: float | None = None) -> None:
        """An answer with the bar that is shown, or with one of the same confidence that is said otherwise."""
        if answer.bars:
            assert math.isclose(answer.confidence, sure(promise.noisy, self._confidence)), promise
            width = answer.bars[0].width if width is None else width
            self.setdefault(promise, []).append(over(abs(value - truth), width))

    def one(self, promise: Promise, answer: Answer, truth: float) -> None:
        self.add(promise, answer, answer.value, truth)

    def kind(self, promise: Promise, answer: Answer, truth: float, says: Callable[[Bar], bool]) -> None:
        """The bar of an answer that is of this kind, if it has one, whether it is shown or not."""
        for bar in answer.bars:
            if says(bar):
                self.add(promise, answer, answer.value, truth, bar.width)
                return


def over(error: float, width: float) -> float:
    """An error as a multiple of its bar; floats that are equal but for rounding are equal."""
    if error <= width + 1e-9:
        return min(1.0, error / width) if width else 0.0
    return error / width if width else math.inf


# -- every kind of question, drawn at random ---------------------------------------------------------------------------


def values(session: Session, table: Table, seed: int, seen: Seen) -> None:
    """One question of each kind that counts are put together to, about conditions drawn at random."""
    rng, names = np.random.default_rng(seed), [name for name in table.domain.names if name != "a"]
    where = drawn(table.domain, some(names, 1, rng), rng)
    asked, rows = table.where(where), table.count(where)
    seen.one(SUM, session.sum("a", asked), table.sum("a", where))
    seen.one(AVG, session.mean("a", asked), table.sum("a", where) / rows)
    squares = float(table.along("a", where) @ np.arange(16) ** 2)
    spread = (squares - table.sum("a", where) ** 2 / rows) / (rows - 1)
    seen.one(SPREAD, session.variance("a", asked), spread)
    both = where | drawn(table.domain, ["a"], rng)
    seen.one(SHARE, session.fraction(table.where(both)), table.count(both) / session.rows)
    seen.one(RATIO, session.fraction(table.where(both), asked), table.count(both) / rows)
    _table(session, table, rng, seen)


def _table(session: Session, table: Table, rng: np.random.Generator, seen: Seen) -> None:
    """A cell of a table, a sum of some cells, and the mean of a group."""
    first, second = table.domain.names[1:3]
    counts = session.table(first, second)
    i, j = (int(rng.integers(size)) for size in counts.values.shape)
    seen.add(CELL, counts, counts.values[i, j], table.count({first: [i], second: [j]}))
    if not isinstance(session._mechanism, Online):
        inside = drawn(table.domain, [first, second], rng)
        seen.one(INSIDE, session.ask_many([table.where(inside)])[0], table.count(inside))
    listing = session.ask(f"SELECT {first}, AVG(a), COUNT(*) FROM data GROUP BY {first}")
    assert isinstance(listing, tacit.Listing)
    row, rows = listing.listed[i], table.count({first: [i]})
    seen.add(GROUP, listing, row.values[0], table.sum("a", {first: [i]}) / rows, row.errors[0])


def curves(session: Session, table: Table, seed: int, seen: Seen, *, share: float | None = None) -> None:
    """A curve and what follows from it, about places that differ from session to session."""
    rng, name = np.random.default_rng(seed), table.domain.names[0]
    counts, size = table.along(name, {}), table.domain[name].size
    below = counts.cumsum()
    cdf = session.cdf(name, share=share)
    seen.add(BAND, cdf, float(np.abs(cdf.values - below).max()), 0.0)
    q = float(rng.uniform(0.05, 0.95))
    place, right = session.quantile(name, q), int(np.argmax(below >= q * session.rows))
    low, value, high = int(place.low), int(place.value), int(place.high)
    side = abs((high if right > value else low) - value)
    alone = math.isclose(place.confidence, session.confidence)
    seen.add(INTERVAL if alone else FEW_COUNTS, place, right, value, max(side, 0.5))  # its own bin: half of one
    first = int(rng.integers(size // 2))
    last = first + int(rng.integers(size // 2 - 1))
    seen.one(RANGE, session.range(name, first, last), int(counts[first : last + 1].sum()))
    mean = session.mean(name)
    seen.one(MEAN, mean, float(counts @ np.arange(size)) / session.rows)
    bins, at = session.histogram(name, width=size // 8), int(rng.integers(8))
    seen.add(BINS, bins, bins.values[at], int(counts.reshape(8, -1)[at].sum()))


def released(session: Session, table: Table, seed: int, seen: Seen) -> None:
    """The same off a release of ranges that is bought for a part of the budget."""
    curves(session, table, seed, seen, share=0.02)


def rectangles(session: Session, table: Table, seed: int, seen: Seen) -> None:
    rng = np.random.default_rng(seed)
    sides = {name: drawn(table.domain, [name], rng)[name] for name in table.domain.names}
    ends = {name: (codes[0], codes[-1]) for name, codes in sides.items()}
    seen.one(RECTANGLE, session.rectangle(ends, share=0.1), table.count(sides))


# -- fresh noise -------------------------------------------------------------------------------------------------------


def fresh(session: Session, table: Table, seed: int, seen: Seen) -> None:
    """Counts that are bought one by one, a statistic, everything else, and the dial; the last of them after a look."""
    queries = boxes(table.domain, 10, seed)
    for query, answer in zip(queries, session.ask_many(queries), strict=True):
        seen.one(EACH, answer, table.records.answer(query) / query.unit)
    errors = session.ask_many([tacit.stump("a", predicts="d")])[0]
    below = table.records.table(("a", "d")).cumsum(axis=0)
    yes, no = (np.r_[0, below[:, i]] for i in (1, 0))
    split = np.minimum(yes + no[-1] - no, no + yes[-1] - yes)
    seen.one(STATISTIC, errors, int(split.min()))
    values(session, table, seed, seen)
    where = {"b": [seed % 4], "c": [seed % 3], "d": [seed % 2]}
    for promise, truth, question, within in (
        (DIAL, table.count(where), "COUNT(*)", 150),
        (DIAL_SUM, table.sum("a", where), "SUM(a)", 3_000),
    ):
        conditions = " AND ".join(f"{name} = {codes[0]}" for name, codes in where.items())
        answer = session.ask(f"SELECT {question} FROM data WHERE {conditions}", within=within)
        assert isinstance(answer, Answer)
        assert answer.error is not None
        assert answer.error <= within
        seen.one(promise, answer, truth)


def hunter(session: Session, table: Table, seed: int, seen: Seen) -> None:
    """Asks for what surprised most once more, within less; and then always for that with one more condition."""
    asked = surprising(session, table, ("b", "c"))
    sharp = session.ask(table.where(asked), within=150)
    assert isinstance(sharp, Answer)
    seen.one(SHARP_SURPRISE, sharp, table.count(asked))
    names = [name for name in table.domain.names if name not in asked]
    for name in names:
        finer = [{**asked, name: [code]} for code in range(min(4, table.domain[name].size))]
        answers = session.ask_many([table.where(where) for where in finer])
        for where, answer in zip(finer, answers, strict=True):
            seen.one(SURPRISE, answer, table.count(where))
        even = np.mean([answer.value for answer in answers])
        asked = finer[int(np.argmax([abs(answer.value - even) for answer in answers]))]


def surprising(session: Session, table: Table, names: tuple[str, str]) -> dict[str, list[int]]:
    """The cell of a table of published answers that is farthest from what independence foretells."""
    counts = session.table(*names).values
    expected = counts.sum(1, keepdims=True) * counts.sum(0, keepdims=True) / max(1.0, counts.sum())
    cell = np.unravel_index(np.argmax(np.abs(counts - expected)), counts.shape)
    return {name: [int(code)] for name, code in zip(names, cell, strict=True)}


# -- one histogram -----------------------------------------------------------------------------------------------------


def readings(session: Session, table: Table, seed: int, seen: Seen) -> None:
    """What is read off one histogram; and the cell that has the least of all, for which no bar is meant.

    Who looks at the noise first finds the cell where it is largest: docs/understand/limits.md.
    """
    query = boxes(table.domain, 1, seed)[0]
    seen.one(EACH, session.ask_many([query])[0], table.records.answer(query) / query.unit)
    values(session, table, seed, seen)
    curves(session, table, seed, seen)
    names, counts = table.domain.names, session.table(*table.domain.names).values
    where = {name: [int(at)] for name, at in zip(names, np.unravel_index(counts.argmin(), counts.shape), strict=True)}
    seen.one(UNMEANT, session.ask_many([table.where(where)])[0], table.count(where))


# -- gates -------------------------------------------------------------------------------------------------------------


def passing(session: Session, table: Table, seed: int, seen: Seen) -> None:
    """Questions at random; then one of each kind."""
    _judge(session, boxes(table.domain, 40, seed), table.records, seen, (EASY, SHOWN, READ, ALL_EASY, HARD))
    values(session, table, seed, seen)


def counting(session: Session, table: Table, seed: int, seen: Seen) -> None:
    """Questions at random, where each is dear."""
    _judge(session, boxes(table.domain, 12, seed), table.records, seen, (EASY, SHOWN, ALL_EASY, HARD))


def trouble(session: Session, table: Table, seed: int, seen: Seen, *, about: About = FREE, most: int = TROUBLE) -> None:
    """Knows the data. Asks for the guess that is wrong by the least above a bar; where all are within, for the worst.

    An easy answer's bar follows from the gate alone, and most guesses are far better: this finds those that are not.
    """
    pool, weights, truth = _pool(table)
    mechanism, waiting = session._mechanism, np.ones(len(pool), dtype=bool)
    assert isinstance(mechanism, Online)
    session.start()
    asked: list[int] = []
    for _ in range(most):
        known = mechanism.knowledge
        of_one = known.guess(pool[:1])
        if isinstance(known, Weights):
            guesses = weights @ known.hypothesis.marginal(table.domain.names).ravel() * session.rows
        else:
            guesses = known.guess(pool).values
        threshold = mechanism.terms.threshold(mechanism._questions) + of_one.floor
        bars = {bar.about: bar.width for bar in mechanism._promised(of_one.lenses[0], threshold, 1)}
        errors = np.where(waiting, np.abs(guesses - truth), -1.0)
        above = np.flatnonzero(errors > bars.get(about, math.inf) + 1)
        asked.append(int(above[errors[above].argmin()] if above.size else errors.argmax()))
        waiting[asked[-1]] = False
        if not session.ask_many([pool[asked[-1]]])[0].bars:  # no hard answers are left, and no promise
            break
    told = (ALL_EASY, HARD) if about == FREE else (EASY, HARD)
    _judge(session, [pool[at] for at in asked], table.records, seen, told)


@cache
def _pool(table: Table) -> tuple[list[Query], Floats, Floats]:
    """What the analyst who knows the data chooses from: the questions, as a matrix too, and their true answers."""
    pool = boxes(table.domain, 400, 0)
    shape = table.domain.shape
    weights = np.array([query.table(table.domain.names, shape).ravel() for query in pool], dtype=np.float64)
    return pool, weights, np.array([table.records.answer(query) / query.unit for query in pool])


def first(session: Session, table: Table, seed: int, seen: Seen) -> None:
    """Asks one question alone, whose guess is wrong by just more than the bar of one answer by itself."""
    trouble(session, table, seed, seen, about=ANSWER, most=1)


def _judge(session: Session, queries: list[Query], records: Records, seen: Seen, promises: Sequence[Promise]) -> None:
    """The answers of a session, by what is said of them.

    All free ones together; the first question by itself (told as easy and farther off is what fails: where it is
    bought, it is not told as easy); the first bar that is read off a release; and the first hard answer, which is
    settled before its noise is drawn.
    """
    found: dict[Promise, list[float]] = {promise: [] for promise in promises}
    for query, answer in zip(queries, session.ask_many(queries), strict=True):
        error = abs(answer.value - records.answer(query) / query.unit)
        kinds = {bar.about: over(error, bar.width) for bar in answer.bars}
        said = {EASY: kinds.get(ANSWER, 0.0), SHOWN: over(error, answer.bars[0].width) if FREE in kinds else 0.0}
        said |= {ALL_EASY: kinds[FREE]} if FREE in kinds else {HARD: kinds[NOISE]} if kinds else {}
        said |= {READ: kinds[NOISE]} if {FREE, NOISE} <= kinds.keys() else {}
        for promise in found.keys() & said.keys():
            found[promise].append(said[promise])
    for promise, errors in found.items():
        if promise == ALL_EASY:
            seen[promise] = [max(errors, default=0.0)]
        elif errors:
            seen[promise] = errors[:1]


# -- a certified base --------------------------------------------------------------------------------------------------


def certified(session: Session, table: Table, seed: int, seen: Seen) -> None:
    """A conjunction and a sum that are drawn as certificates list them, all boxes, and what is put together of them."""
    rng, domain, mechanism = np.random.default_rng(seed), table.domain, session._mechanism
    assert isinstance(mechanism, Online)
    session.start()
    base = mechanism.base
    assert base is not None
    where = drawn(domain, some(domain.names, len(domain), rng), rng)
    answer, truth = session.ask_many([table.where(where)])[0], table.count(where)
    seen.one(SHOWN, answer, truth)
    seen.kind(LIKELY, answer, truth, lambda bar: bar.about.kind in ("share", "like"))
    seen.kind(READ, answer, truth, lambda bar: bar.about == NOISE)
    among = drawn(domain, some(["b", "c"], 2, rng), rng)
    total = session.sum("a", table.where(among))
    seen.one(LISTED_SUM, total, table.sum("a", among))
    query = Sum(domain, "a", table.where(among)).formula.parts[0].query(domain)
    weighed = session.ask_many([query])[0]
    seen.kind(LIKELY_SUM, weighed, table.sum("a", among) / 15, lambda bar: bar.about.kind in ("share", "like"))
    assert base.largest is not None
    listed, _ = all_boxes(domain, base.hypothesis, session.rows, base.largest.certificate.attributes)
    seen[EVERY] = [_largest(listed, base.largest, table.records)]
    seen[MIXED] = [max(_two_ranges(session, table, rng))]
    surprise = surprising(session, table, ("a", "b"))
    answer = session.ask_many([table.where(surprise)])[0]
    seen.one(SURPRISE, answer, table.count(surprise))
    sharp = session.ask(table.where(surprise), within=100)
    assert isinstance(sharp, Answer)
    seen.one(SHARP_SURPRISE, sharp, table.count(surprise))
    values(session, table, seed, seen)
    seen.pop(INSIDE, None)
    curves(session, table, seed, seen)


def _largest(lists: Iterable[Conjunctions], figure: CertifiedFigure, records: Records) -> float:
    """The largest error of all boxes over its own bar."""
    worst, certificate = 0.0, figure.certificate
    assert isinstance(certificate, Certificate)
    for one in lists:
        guesses = np.rint(one.sums(one.guess) / GRID).astype(np.int64)
        errors = np.abs(one.sums(records.table(one.names)) - guesses)
        sizes, places = np.unique(guesses, return_inverse=True)
        widths = np.array([figure.width(size) for size in sizes.tolist()])[places]
        worst = max(worst, float((errors / np.maximum(widths, 1e-9)).max()))
    return worst


def _two_ranges(session: Session, table: Table, rng: np.random.Generator) -> Iterable[float]:
    """Sets of two ranges, which are two boxes each: by the bar for all at once."""
    asked = list[Where]()
    for _ in range(100):
        a, b, c, d = np.sort(rng.choice(17, 4, replace=False)).tolist()
        asked.append({"a": [*range(a, b), *range(c, d)], **drawn(table.domain, some("bc", 2, rng), rng)})
    for where, answer in zip(asked, session.ask_many([table.where(where) for where in asked]), strict=True):
        width = next((bar.width for bar in answer.bars if bar.about.kind == "all"), None)
        if width is not None:
            yield over(abs(answer.value - table.count(where)), width)


Analyst = Callable[[Session, Table, int, Seen], None]
