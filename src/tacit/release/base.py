"""The base: a hypothesis that is certified, and answers from then on without a gate, for nothing, the same for ever.

Two certificates are bought. One says how far off 95 % of all conjunctions of a few conditions are, from a public random
list of them; the other, how far off the worst of all boxes is. Both are order statistics of |truth - guess|, which one
row moves by at most 1 however long the list is: `trusted.certificate`. What is learned later changes no such answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, takewhile
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.model.attribute import Attribute
from tacit.model.budget import Loss
from tacit.model.certificate import Certificate, Listed
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.facts import Bar, Facts, all_of, share_of
from tacit.model.noise_law import Noise, quantile, variance
from tacit.model.query import GRID, Factor, Query
from tacit.model.statistic import Statistic
from tacit.model.strategy import Tree
from tacit.model.workload import Marginal
from tacit.release.estimate import Estimate
from tacit.release.hypothesis.dense import Dense
from tacit.release.hypothesis.mixture import Mixture
from tacit.release.public import Public
from tacit.release.warm_start import WarmStart, fit_all
from tacit.store.chain import digest

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator

Hypothesis = Dense | Mixture
Conditions = NDArray[np.uint8]

SAMPLE, BOXES = "conjunctions", "boxes"  # the lists, by name
SHARES = {SAMPLE: 0.75, BOXES: 0.25}  # of what a certificate costs
SAMPLED = 2**18  # questions of the random list
MOST_ATTRIBUTES = 4
MOST_SCOPES = 500  # of all sizes; where there are more, fewer attributes, or a public sample of three
MOST_CELLS = 2**18  # of the table of a question's attributes
MOST_BOXES = 2**23
MOST_MIXED = 3  # boxes that an answer is a mixture of: the gate does better on more
FEW_VALUES = 4  # of an attribute without an order: all sets of them are boxes
MOST_ROWS = 2**31 - 1  # of a table that can be certified: sums stay exact
_OF_SHARE = 0.78  # of what a bar may miss: for questions that the share leaves out; the rest is for the noise
_OF_SAMPLE = 0.01  # for a random list that is not like the class it was drawn from
_SEED = 1
OTHERS = 0.1  # of what a bar may miss: for bars that are read off other releases


@dataclass(frozen=True)
class Miss:
    """How a bar's chance to be wrong is divided.

    With probability 1 - noise - sample the bar is at least the error of a share of `share` of the class, and a question
    drawn from the class is among these with that probability: (1 - noise - sample) * share >= confidence.
    """

    share: float
    noise: float
    sample: float

    @classmethod
    def of(cls, confidence: float) -> Miss:
        share = 1 - _OF_SHARE * (1 - confidence)
        both = 1 - confidence / share
        return cls(share, both * (1 - _OF_SAMPLE), both * _OF_SAMPLE)

    def rank(self, questions: int) -> int:
        """Of the error in a random list that is at least the share of the class, but for the chance `sample`.

        Formula: share + sqrt(ln(1/sample) / (2 questions)). Source: Dvoretzky, Kiefer & Wolfowitz 1956; Massart 1990.
        """
        more = math.sqrt(math.log(1 / self.sample) / (2 * questions))
        return min(questions, math.ceil((self.share + more) * questions))


# -- the lists --------------------------------------------------------------------------------------------------------


def attributes(domain: Domain) -> int:
    """How many attributes a certified question has at most."""
    many = len(_names(domain))
    fits = [k for k in range(1, MOST_ATTRIBUTES + 1) if sum(math.comb(many, i) for i in range(1, k + 1)) <= MOST_SCOPES]
    return min(many, max(3, *fits))


def scopes(domain: Domain, most: int) -> list[list[tuple[str, ...]]]:
    """The attributes that certified questions are about, by their number; a public sample where there are too many."""
    rng, found = np.random.Generator(np.random.PCG64([_SEED, 0])), []
    for k in range(1, most + 1):
        names = _names(domain)
        if math.comb(len(names), k) <= MOST_SCOPES:
            of_size = list(combinations(names, k))
        else:
            drawn = {tuple(sorted(rng.choice(len(names), k, replace=False).tolist())) for _ in range(MOST_SCOPES)}
            of_size = [tuple(names[i] for i in one) for one in sorted(drawn)]
        of_size = [scope for scope in of_size if _cells(domain, scope) <= MOST_CELLS]
        if of_size:
            found.append(of_size)
    return found


def sample(domain: Domain, hypothesis: Hypothesis, rows: int, most: int) -> list[Listed]:
    """A public random list: as many questions of each number of attributes, each a range or a set of values."""
    by_size = scopes(domain, most)
    found = list[Listed]()
    for i, of_size in enumerate(by_size):
        each = SAMPLED // len(by_size) // len(of_size)
        for j, scope in enumerate(of_size):
            rng = np.random.Generator(np.random.PCG64([_SEED, 1, i, j]))
            found.append(_listed(hypothesis, rows, scope, [_random(domain[name], each, rng) for name in scope], True))
    return found


def boxes(domain: Domain, hypothesis: Hypothesis, rows: int, most: int) -> tuple[list[Listed], int]:
    """Every box of up to so many attributes, and how many these are: as many as there are few enough boxes of."""
    found, total, reached = list[Listed](), 0, 0
    for k in range(1, most + 1):
        of_size = list(combinations(_names(domain), k))
        conditions = [[_all(domain[name]) for name in scope] for scope in of_size]
        total += sum(math.prod(len(one) for one in some) for some in conditions)
        if total > MOST_BOXES or any(_cells(domain, scope) > MOST_CELLS for scope in of_size):
            break
        found += [_listed(hypothesis, rows, *both, False) for both in zip(of_size, conditions, strict=True)]
        reached = k
    return found, reached


def _listed(
    hypothesis: Hypothesis, rows: int, scope: tuple[str, ...], conditions: Sequence[Conditions], paired: bool
) -> Listed:
    return Listed(scope, guessed(hypothesis, rows, scope), tuple(conditions), paired)


def guessed(hypothesis: Hypothesis, rows: int, scope: Sequence[str]) -> NDArray[np.int64]:
    """The table of these attributes in the hypothesis, in grid steps."""
    return np.rint(hypothesis.marginal(scope) * (rows * GRID)).astype(np.int64)


def _names(domain: Domain) -> list[str]:
    return [name for name in domain.names if domain[name].size > 1]


def _cells(domain: Domain, scope: Sequence[str]) -> int:
    return math.prod(domain[name].size for name in scope)


def _random(attribute: Attribute, count: int, rng: np.random.Generator) -> Conditions:
    """Random conditions: a range, each as likely; or a set of values, of a size that is as likely as any other."""
    size = attribute.size
    if attribute.ordered:
        starts, ends = _ranges(size)
        drawn = rng.integers(len(starts), size=count)
        return _between(starts[drawn], ends[drawn], size)
    ranks = rng.random((count, size)).argsort(axis=1).argsort(axis=1)
    return (ranks < rng.integers(1, size, size=(count, 1))).astype(np.uint8)


def _all(attribute: Attribute) -> Conditions:
    """Every range; every set of values of an attribute with few, and every single one of another."""
    size = attribute.size
    if attribute.ordered:
        return _between(*_ranges(size), size)
    if size <= FEW_VALUES:
        return (np.arange(1, 2**size - 1)[:, None] >> np.arange(size) & 1).astype(np.uint8)
    return np.eye(size, dtype=np.uint8)


@lru_cache(maxsize=64)
def _ranges(size: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """All ranges of so many values but the whole: where they start, and the first value after them."""
    starts, ends = np.triu_indices(size)
    proper = ends - starts < size - 1
    return starts[proper], ends[proper] + 1


def _between(starts: NDArray[np.intp], ends: NDArray[np.intp], size: int) -> Conditions:
    values = np.arange(size)
    return ((values >= starts[:, None]) & (values < ends[:, None])).astype(np.uint8)


# -- how errors grow with the answer ----------------------------------------------------------------------------------


def steps(public: Public, start: WarmStart, lists: Sequence[Listed], share: float) -> tuple[tuple[int, int], ...]:
    """By how many rows answers of a size are likely to be off: from a table that is known, the hypothesis itself.

    The same tables are drawn from the hypothesis with noise of the same law, and fitted again: what that fit gets wrong
    is public, and so is how that grows with the size of the answer. The certificate then counts only what goes beyond.
    """
    again = fit_all(public.domain, _simulated(public, start), public.rows)
    sizes, gaps = list[NDArray[np.int64]](), list[NDArray[np.int64]]()
    for one in lists:
        other = guessed(again.hypothesis, public.rows, one.names)
        sizes.append(one.sums(one.guess))
        gaps.append(np.abs(one.sums(other) - sizes[-1]))
    size, gap = np.concatenate(sizes) / GRID, np.concatenate(gaps) / GRID
    found, highest = list[tuple[int, int]](), 0
    edges = [0, *(round(10 ** (i / 2)) for i in range(1, 2 * math.ceil(math.log10(public.rows + 1)) + 1))]
    for low, high in zip(edges, [*edges[1:], math.inf], strict=True):
        within = gap[(size >= low) & (size < high)]
        if within.size >= 100:
            highest = max(highest, math.ceil(np.quantile(within, share)))
            if not found or found[-1][1] < highest:
                found.append((low, highest))
    return tuple(found)


def _simulated(public: Public, start: WarmStart) -> list[Measured]:
    """What would have been measured on a table that is just like the hypothesis. Public: it is drawn with a seed."""
    rng = np.random.Generator(np.random.PCG64([_SEED, 2]))
    found = list[Measured]()
    for one in start.measured:
        assert isinstance(one.question, Marginal | Tree)
        names = (one.question.name,) if isinstance(one.question, Tree) else one.question.names
        table = start.hypothesis.marginal(names) * public.rows
        exact = _nodes(one.question, table) if isinstance(one.question, Tree) else table.ravel()
        found.append(replace(one, values=np.rint(exact + _noise(one.noise, exact.size, rng)).astype(np.int64)))
    return found


def _noise(noise: Noise, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    if noise.kind == "laplace":
        return rng.laplace(0, noise.scale, size)
    return rng.normal(0, math.sqrt(variance(noise)), size)


def _nodes(tree: Tree, counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """The answers to a tree over all values of an attribute, level by level."""
    levels = zip(tree.spans(), tree.weights, strict=True)
    return np.concatenate([w * np.add.reduceat(counts, np.arange(0, counts.size, span)) for span, w in levels])


# -- the base ---------------------------------------------------------------------------------------------------------


class Figure:
    """One certified figure: with the noise's own quantile on top it is a bar, which follows the size of the answer."""

    def __init__(self, measured: Measured, miss: float) -> None:
        assert isinstance(measured.question, Certificate)
        self.certificate = measured.question
        # The noise is symmetric, so it is below minus its quantile at 1 - 2 miss with a chance of `miss` at most. One
        # more row for the answer, which is rounded.
        self._above = int(measured.values[0]) + quantile(measured.noise, 1 - 2 * miss) + 1

    def width(self, guess: int) -> int:
        """The bar around a guess of so many rows."""
        return max(0, int(self.certificate.offset(np.array([guess * GRID]))[0]) + self._above)


class Base:
    """A hypothesis that never changes, and what was certified of it.

    The bar of an answer is the certified share's: it is drawn with a chance that leaves a tenth of 1 - confidence to
    bars that are read off other releases, so that the narrowest may be shown. Answers are sums of the whole numbers
    that were certified, so they are the same in every process and in every published file.
    """

    def __init__(
        self, public: Public, hypothesis: Hypothesis, share: Measured, largest: Measured | None, confidence: float
    ) -> None:
        self._domain, self._rows, self._confidence = public.domain, public.rows, confidence
        self.hypothesis, self._free, self.receipt = hypothesis, Loss(public.total.measure, 0), share.receipt
        self.certificates = (share,) if largest is None else (share, largest)
        self.share = Figure(share, Miss.of(of_the_base(confidence)).noise)
        self.largest = None if largest is None else Figure(largest, 1 - confidence)
        self._largest_box = 0 if self.largest is None else self.largest.certificate.attributes
        before = takewhile(lambda one: one.receipt.entry < share.receipt.entry, public.answers())
        self._earlier = frozenset(one.key for one in before if isinstance(one.question, Query))
        self._known: dict[tuple[str, int, bytes], Side] = {}
        self._sums = lru_cache(maxsize=MOST_SCOPES)(self._summed)
        self._facts = lru_cache(maxsize=2**14)(self._said)

    def estimate(self, query: Query | Statistic) -> Estimate | None:
        """The answer to a question that is certified and was not answered before; None to any other.

        Certified are conjunctions of the random list's class, and whatever is a mixture of a few boxes: see `Side`.
        """
        if not isinstance(query, Query) or not 0 < len(query.factors) <= self.share.certificate.attributes:
            return None
        sides, boxes, unit, listed = list[Side](), 1.0, 1, True
        for factor in query.factors:
            side = self._side(factor)
            if side is None:
                return None
            sides.append(side)
            boxes, unit, listed = boxes * side.boxes, unit * side.unit, listed and side.listed
        sums = self._sums(tuple([side.name for side in sides]))
        if sums is None or unit > GRID or (self._earlier and query.core.key in self._earlier):
            return None
        within = boxes <= MOST_MIXED and len(sides) <= self._largest_box
        if not listed and not within:
            return None
        value = (sums.inside([side.ends for side in sides]) + GRID // 2) // GRID
        around = value if unit == 1 else sums.inside([side.whole for side in sides]) // GRID + 1
        facts = self._facts(around, unit, listed, boxes if within else 0.0)
        return Estimate(self._rows * unit - value if query.complement else value, facts)

    def _side(self, factor: Factor) -> Side | None:
        if len(factor.scope) > 1:
            return None
        known = (factor.scope[0], factor.unit, factor.weights.tobytes())
        if known not in self._known:
            self._known[known] = Side.of(factor, self._domain[factor.scope[0]])
        return self._known[known]

    def _summed(self, scope: tuple[str, ...]) -> Sums | None:
        """The certified table of these attributes; None where it has too many cells to be one."""
        if _cells(self._domain, scope) > MOST_CELLS:
            return None
        return Sums.of(guessed(self.hypothesis, self._rows, scope))

    def _said(self, guess: int, unit: int, listed: bool, boxes: float) -> Facts:
        """The facts about an answer among so many rows: the bars of the class, of a mixture of boxes, or both."""
        bars = list[Bar]()
        if listed:
            like = share_of(self._confidence, self.share.certificate.questions)
            bars.append(Bar(self.share.width(guess), like, self._confidence))
        if boxes and self.largest is not None:
            width = math.ceil(boxes * unit * self.largest.width(guess))
            bars.append(Bar(width, all_of(self.largest.certificate.questions), self._confidence))
        return Facts("hypothesis", self._free, self._confidence, self.receipt, bars=tuple(bars))


class Side(NamedTuple):
    """What a question asks of one attribute: a condition, or weights from 0 to 1.

    ends: (place, weight): the answer is the sum of these weights times what comes before their places.
    whole: the same for every value of the attribute.
    listed: it is a condition of the random list's class: a range, or any set of values without order.
    boxes: how many boxes it is a mixture of, at most. Weights w are the mixture of the sets {w >= t} over all t from 0
        to 1, and a set is as many boxes as it has runs: over all t that is half of what w rises and falls in all. So
        an answer's error is at most so many times the largest error of all boxes.
    """

    name: str
    ends: tuple[tuple[int, int], ...]
    whole: tuple[tuple[int, int], ...]
    unit: int
    listed: bool
    boxes: float

    @classmethod
    def of(cls, factor: Factor, attribute: Attribute) -> Side:
        weights, unit = factor.weights.astype(np.int64), factor.unit
        steps = np.diff(weights, prepend=0, append=0)
        ends = tuple((place, -int(steps[place])) for place in np.flatnonzero(steps).tolist() if place)
        if attribute.ordered:
            boxes = float(np.abs(steps).sum()) / 2
        else:
            boxes = float(weights.max() if attribute.size <= FEW_VALUES else weights.sum())
        listed = unit == 1 and (not attribute.ordered or boxes == 1)
        return cls(factor.scope[0], ends, ((attribute.size, 1),), unit, listed, boxes / unit)


class Sums(NamedTuple):
    """The cumulative sums of a table: what comes before some value of each attribute, in one line of numbers."""

    values: NDArray[np.int64]
    strides: tuple[int, ...]

    @classmethod
    def of(cls, table: NDArray[np.int64]) -> Sums:
        table = np.pad(table, [(1, 0)] * table.ndim)
        for axis in range(table.ndim):
            table = np.cumsum(table, axis=axis)
        return cls(table.ravel(), tuple(math.prod(table.shape[axis + 1 :]) for axis in range(table.ndim)))

    def inside(self, sides: Sequence[Sequence[tuple[int, int]]]) -> int:
        """The weighted sum of the cells: inclusion and exclusion at the ends of each side."""
        corners = [(0, 1)]
        for stride, ends in zip(self.strides, sides, strict=True):
            corners = [(at + end * stride, weight * more) for at, weight in corners for end, more in ends]
        item = self.values.item
        return sum([weight * item(at) for at, weight in corners])


def certify(public: Public, curator: Curator | None, start: WarmStart, loss: Loss, confidence: float) -> Base | None:
    """The base of a start, certified for at most `loss` where it is not yet; None where it cannot be.

    What was bought is read back, whatever this version would list; without a curator nothing else is.
    """
    bought = {
        one.question.kind: one
        for one in public.released()
        if isinstance(one.question, Certificate) and one.question.base == _name(start)
    }
    each = {kind: Loss(loss.measure, int(loss.atoms * share)) for kind, share in SHARES.items()}
    if curator is not None and public.rows <= MOST_ROWS and min(price.atoms for price in each.values()) > 0:
        for one in _wanted(public, start, confidence) if SAMPLE not in bought else ():
            if each[one.kind] <= public.left:
                bought[one.kind] = curator.measure([one], each[one.kind])[0]
    if SAMPLE not in bought:
        return None
    return Base(public, start.hypothesis, bought[SAMPLE], bought.get(BOXES), confidence)


def _wanted(public: Public, start: WarmStart, confidence: float) -> Iterator[Certificate]:
    """What is certified of a start: a share of a random list, and the largest of all boxes if these can be listed."""
    domain, hypothesis, rows = public.domain, start.hypothesis, public.rows
    miss, most = Miss.of(of_the_base(confidence)), attributes(domain)
    lists = sample(domain, hypothesis, rows, most)
    by_size, questions = steps(public, start, lists, miss.share), sum(one.size for one in lists)
    yield Certificate(_name(start), SAMPLE, most, questions, (miss.rank(questions),), by_size, tuple(lists))
    lists, reached = boxes(domain, hypothesis, rows, most)
    if reached:
        questions = sum(one.size for one in lists)
        yield Certificate(_name(start), BOXES, reached, questions, (questions,), by_size, tuple(lists))


def of_the_base(confidence: float) -> float:
    """The confidence of a share's bar by itself: see `Base`."""
    return 1 - (1 - OTHERS) * (1 - confidence)


def _name(start: WarmStart) -> str:
    """Which guess a certificate is about: the hypothesis that fits these releases."""
    return digest([one.receipt.seal for one in start.measured])
