"""Public lists of questions that a hypothesis is certified on, and how its errors are likely to grow with the answer.

Nothing here depends on the data: the same domain and the same hypothesis have the same lists, in every process.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.aggregate import Mean, Sum
from tacit.model.attribute import Attribute
from tacit.model.certificate import Conjunctions
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.factor import GRID
from tacit.model.noise_law import Noise, variance
from tacit.model.residuals import Residuals
from tacit.model.workload import Marginal, Question, Tree
from tacit.release.hypothesis.cell_weights import Dense
from tacit.release.hypothesis.mixture import Mixture
from tacit.release.public import Public
from tacit.release.warm_start import WarmStart, fit_all

Hypothesis = Dense | Mixture
Conditions = NDArray[np.uint8]
WholeWeights = NDArray[np.int64]

SAMPLE, BOXES = "conjunctions of runs", "boxes"  # lists, by name
MEANS, SUMS = "means", "sums"  # and those of sums: of the parts of means, and of others
SAMPLED, SAMPLED_SUMS = 2**18, 2**16  # questions of the random lists
MOST_ATTRIBUTES = 4
MOST_RUNS, TWICE = 2, 1 / 4  # runs that a listed condition on an ordered attribute has; questions that have such
MOST_SUMMED = 3  # attributes of a sum, with the one that is summed
MOST_SCOPES = 500  # of all sizes; where there are more, fewer attributes, or a public sample of three
MOST_QUESTION_CELLS = 2**18  # of the table of a question's attributes
MOST_BOXES = 2**23
FEW_VALUES = 4  # of an attribute without an order: all sets of them are boxes
_SEED = 1
_LISTED = 2**14  # sets of attributes
_WORK = 2**31  # questions about a table, times its cells: a second or two
_MATRIX = 2**25  # conditions on an attribute, times its values
_OF_SHARE = 0.78  # of what a bar may miss: for questions that the share leaves out; the rest is for the noise
_OF_SAMPLE = 0.01  # for a random list that is not like the class it was drawn from


def attributes(domain: Domain) -> int:
    """How many attributes a certified question has at most."""
    many = len(names_of(domain))
    fits = [k for k in range(1, MOST_ATTRIBUTES + 1) if sum(math.comb(many, i) for i in range(1, k + 1)) <= MOST_SCOPES]
    return min(many, max(3, *fits))


def scopes(domain: Domain, most: int) -> list[list[tuple[str, ...]]]:
    """The attributes that certified questions are about, by their number; a public sample where there are too many."""
    names = names_of(domain)
    found = [_some(_sets(names, k), domain, k) for k in range(1, most + 1)]
    return [of_size for of_size in found if of_size]


def left_out(listed: Iterable[tuple[str, ...]], attributes: int) -> float:
    """What a list of m sets of attributes, drawn at random, allows for a question about another: 1/(m + 1).

    All m + 1 sets are as likely to be the one that was not drawn. The s-quantile of the errors of m of them is at least
    the quantile at s m/(m + 1) of all, so on average at most 1 - s + 1/(m + 1) of the last one's errors are above it.
    """
    allowed = 0.0
    for k, m in Counter(map(len, set(listed))).items():
        if m == MOST_SCOPES or math.comb(attributes, k) > _LISTED:
            allowed = max(allowed, 1 / (m + 1))
    return allowed


class Sampled(NamedTuple):
    """Some of a public random list: so many questions about these attributes, drawn from this seed."""

    scope: tuple[str, ...]
    questions: int
    seed: tuple[int, int]


def sampled(domain: Domain, most: int) -> list[Sampled]:
    """What a public random list is made of: as many questions of each number of attributes."""
    by_size = scopes(domain, most)
    if not by_size:  # every attribute has too many values
        return []
    # As many of each number of attributes, and few enough of the largest tables.
    of_each = min(SAMPLED // len(by_size), *(len(some) * _most(domain, some) for some in by_size))
    return [
        Sampled(scope, max(1, of_each // len(of_size)), (i, j))
        for i, of_size in enumerate(by_size)
        for j, scope in enumerate(of_size)
    ]


def sample(domain: Domain, hypothesis: Hypothesis, rows: int, most: int) -> list[Conjunctions]:
    """A public random list: each question is about a range or a set of values of each attribute."""
    found = list[Conjunctions]()
    for scope, questions, seed in sampled(domain, most):
        rng = np.random.Generator(np.random.PCG64([_SEED, 1, *seed]))
        found.append(_listed(hypothesis, rows, scope, _conditions(domain, scope, questions, rng), True))
    return found


def _most(domain: Domain, scopes: Sequence[tuple[str, ...]]) -> int:
    """How many questions about each of these take neither too long nor too much memory."""
    largest = max(domain.size_of(scope) for scope in scopes)
    longest = max(domain[name].size for scope in scopes for name in scope)
    return min(_WORK // largest, _MATRIX // longest)


def boxes(domain: Domain, hypothesis: Hypothesis, rows: int, most: int) -> tuple[list[Conjunctions], int]:
    """Every box of up to a number of attributes, and that number: the largest of which there are few enough boxes."""
    reached = boxed(domain, most)
    listed = (scope for k in range(1, reached + 1) for scope in combinations(names_of(domain), k))
    return [_listed(hypothesis, rows, s, [_all(domain[name]) for name in s], False) for s in listed], reached


def boxed(domain: Domain, most: int) -> int:
    """How many attributes certified boxes have at most: by what is public before they are."""
    total, reached = 0, 0
    for k in range(1, most + 1):
        if math.comb(len(names_of(domain)), k) > _LISTED:
            break
        of_size = list(combinations(names_of(domain), k))
        total += sum(math.prod(_sides(domain[name]) for name in scope) for scope in of_size)
        if total > MOST_BOXES or any(domain.size_of(scope) > MOST_QUESTION_CELLS for scope in of_size):
            break
        if any(_sides(domain[name]) * domain[name].size > _MATRIX for name in names_of(domain)):
            break
        reached = k
    return reached


def sums(domain: Domain, hypothesis: Hypothesis, rows: int, kind: str) -> list[Conjunctions]:
    """A public random list of sums of an attribute's values, with the weights of `kind`, under up to two conditions.

    As many with one condition as with two, and each sum over all rows once.
    """
    found = list[Conjunctions]()
    for scope, weights, questions, seed in summed(domain, kind):
        rng = np.random.Generator(np.random.PCG64([_SEED, 4, *seed]))
        conditions = tuple(_conditions(domain, scope[:-1], questions, rng))
        found.append(Conjunctions(scope, guessed(hypothesis, rows, scope), conditions, True, weights))
    return found


class Summed(NamedTuple):
    """Some of a public random list of sums: so many questions about these attributes, of which the last is weighed."""

    scope: tuple[str, ...]
    weights: WholeWeights
    questions: int
    seed: tuple[int, int, int]


def summed(domain: Domain, kind: str) -> list[Summed]:
    """What a public random list of sums is made of."""
    weighed = [(name, weights) for name in names_of(domain) for weights in ramps(domain, name)[kind]]
    if not weighed:
        return []
    found = list[Summed]()
    for k in range(MOST_SUMMED):
        names = list(dict.fromkeys(name for name, _ in weighed))
        others = {name: [other for other in names_of(domain) if other != name] for name in names}
        kept = _some(((*some, name) for name in names for some in _sets(others[name], k)), domain, MOST_ATTRIBUTES + k)
        for j, scope in enumerate(kept):
            of_scope = [weights for name, weights in weighed if name == scope[-1]]
            most = _most(domain, kept) // len(of_scope)
            each = max(1, min(most, SAMPLED_SUMS // (MOST_SUMMED - 1) // len(kept) // len(of_scope)))
            found += [Summed(scope, weights, each if k else 1, (k, j, i)) for i, weights in enumerate(of_scope)]
    return found


@lru_cache(maxsize=256)
def ramps(domain: Domain, name: str) -> dict[str, tuple[WholeWeights, ...]]:
    """The weights by which an attribute's means are asked, and its sums where they are others, in grid steps.

    None where it has no numbers. The list of means has two weights, those of its parts: so where one in twenty of the
    list is beyond its bar, a part of at most one mean in ten is.
    """
    found, known = dict[str, tuple[WholeWeights, ...]](), set[bytes]()
    for kind in (MEANS, SUMS):
        some = dict[bytes, WholeWeights]()
        with suppress(InvalidQuery):
            formula = Mean(domain, name).by_rest if kind == MEANS else Sum(domain, name).formula
            for part in formula.parts:
                weights = np.rint(np.asarray(part.weights) * GRID).astype(np.int64)
                some[weights.tobytes()] = weights
        found[kind] = tuple(weights for key, weights in some.items() if key not in known)
        known |= some.keys()
    return found


def _sets(names: Sequence[str], k: int) -> Iterator[tuple[str, ...]]:
    """Sets of k attributes: all of them, or some that are drawn in public where nobody could list them."""
    if math.comb(len(names), k) <= _LISTED:
        yield from combinations(names, k)
        return
    rng = np.random.Generator(np.random.PCG64([_SEED, 0, k]))
    for _ in range(_LISTED):
        yield tuple(names[i] for i in sorted(rng.choice(len(names), k, replace=False).tolist()))


def _some(sets: Iterable[tuple[str, ...]], domain: Domain, seed: int) -> list[tuple[str, ...]]:
    """The sets whose table is small enough, or a public sample of `MOST_SCOPES` of them."""
    small = list(dict.fromkeys(one for one in sets if domain.size_of(one) <= MOST_QUESTION_CELLS))
    if len(small) <= MOST_SCOPES:
        return small
    rng = np.random.Generator(np.random.PCG64([_SEED, 3, seed]))
    return [small[i] for i in sorted(rng.choice(len(small), MOST_SCOPES, replace=False).tolist())]


def _listed(
    hypothesis: Hypothesis, rows: int, scope: tuple[str, ...], conditions: Sequence[Conditions], paired: bool
) -> Conjunctions:
    return Conjunctions(scope, guessed(hypothesis, rows, scope), tuple(conditions), paired)


def guessed(hypothesis: Hypothesis, rows: int, scope: Sequence[str]) -> NDArray[np.int64]:
    """The table of these attributes in the hypothesis, in grid steps."""
    return np.rint(hypothesis.marginal(scope) * (rows * GRID)).astype(np.int64)


def names_of(domain: Domain) -> list[str]:
    return [name for name in domain.names if domain[name].size > 1]


def _conditions(domain: Domain, scope: Sequence[str], count: int, rng: np.random.Generator) -> list[Conditions]:
    """Random conditions on each of some attributes, for so many questions.

    In some questions some conditions have two ranges, which may be any number of them: so that a share of the list is
    about questions with several such conditions too.
    """
    if not scope:
        return []
    many = np.where(rng.random(count) < TWICE, rng.integers(1, len(scope) + 1, size=count), 0)
    places = rng.random((count, len(scope))).argsort(axis=1)
    return [_random(domain[name], places[:, i] < many, rng) for i, name in enumerate(scope)]


def _random(attribute: Attribute, twice: NDArray[np.bool_], rng: np.random.Generator) -> Conditions:
    """Random conditions: a range, each as likely; or a set of values, of a size that is as likely as any other.

    Where it is `twice`, two ranges, apart from each other: such are all values but those of a range, and a range with
    what is missing.
    """
    size, count = attribute.size, twice.size
    if attribute.ordered:  # two different ends, each pair as likely; the whole is no condition
        starts, ends = np.zeros(count, dtype=np.intp), np.full(count, size)
        while (whole := ends - starts == size).any():
            one, other = rng.integers(size + 1, size=whole.sum()), rng.integers(size, size=whole.sum())
            other += other >= one
            starts[whole], ends[whole] = np.minimum(one, other), np.maximum(one, other)
        found = _between(starts, ends, size)
        if size >= 3:  # four different ends, each set of them as likely
            four = np.sort(np.argsort(rng.random((twice.sum(), size + 1)), axis=1)[:, :4], axis=1)
            found[twice] = _between(four[:, 0], four[:, 1], size) | _between(four[:, 2], four[:, 3], size)
        return found
    ranks = rng.random((count, size)).argsort(axis=1).argsort(axis=1)
    return (ranks < rng.integers(1, size, size=(count, 1))).astype(np.uint8)


def _sides(attribute: Attribute) -> int:
    """How many conditions `_all` has."""
    size = attribute.size
    if attribute.ordered:
        return size * (size + 1) // 2 - 1
    return 2**size - 2 if size <= FEW_VALUES else size


def _all(attribute: Attribute) -> Conditions:
    """Every range; every set of values of an attribute with few, and every single one of another."""
    size = attribute.size
    if attribute.ordered:
        starts, ends = np.triu_indices(size)
        proper = ends - starts < size - 1
        return _between(starts[proper], ends[proper] + 1, size)
    if size <= FEW_VALUES:
        return (np.arange(1, 2**size - 1)[:, None] >> np.arange(size) & 1).astype(np.uint8)
    return np.eye(size, dtype=np.uint8)


def _between(starts: NDArray[np.intp], ends: NDArray[np.intp], size: int) -> Conditions:
    # Attributes have far fewer than 2^31 values, and narrow numbers are compared several at once.
    values, first, end = np.arange(size, dtype=np.int32), starts.astype(np.int32), ends.astype(np.int32)
    return ((values >= first[:, None]) & (values < end[:, None])).view(np.uint8)


# -- how errors grow with the answer ----------------------------------------------------------------------------------


def refitted(public: Public, start: WarmStart) -> Hypothesis:
    """What a start would have learned of a table that is just like its hypothesis, with noise of the same law."""
    return fit_all(public.domain, _simulated(public, start), public.rows, prior=start.prior).hypothesis


@dataclass(frozen=True, eq=False)
class Missed:
    """What a second fit gets wrong of a first one, question by question. All of it is public, and no promise.

    sizes: of its answer by the first fit. gaps: what the second is off by. Both in rows.
    """

    sizes: NDArray[np.float64]
    gaps: NDArray[np.float64]

    @classmethod
    def of(cls, lists: Sequence[Conjunctions], again: Hypothesis, rows: int) -> Missed:
        sizes, gaps = list[WholeWeights](), list[WholeWeights]()
        for one in lists:
            sizes.append(one.sums(one.guess))
            gaps.append(np.abs(one.sums(guessed(again, rows, one.names)) - sizes[-1]))
        return cls(np.concatenate(sizes) / GRID, np.concatenate(gaps) / GRID)

    def steps(self, rows: int, share: float) -> tuple[tuple[int, int], ...]:
        """By how many rows answers of a size are likely to be off; the certificate counts what goes beyond."""
        found, highest = list[tuple[int, int]](), 0
        edges = [0, *(round(10 ** (i / 2)) for i in range(1, 2 * math.ceil(math.log10(rows + 1)) + 1))]
        for low, high in zip(edges, [*edges[1:], math.inf], strict=True):
            within = self.gaps[(self.sizes >= low) & (self.sizes < high)]
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
        exact = _answers(one.question, start.hypothesis, public.rows)
        found.append(replace(one, values=np.rint(exact + _noise(one.noise, exact.size, rng)).astype(np.int64)))
    return found


def _answers(question: Question, hypothesis: Hypothesis, rows: int) -> NDArray[np.float64]:
    """What would be answered without noise about a table that is just like the hypothesis."""
    if isinstance(question, Residuals):
        tables: list[NDArray[Any]] = [rows * hypothesis.marginal(scope) for scope in question.scopes]
        return question.answers(tables).astype(np.float64)
    assert isinstance(question, Marginal | Tree)
    if isinstance(question, Tree):
        leaves: NDArray[Any] = hypothesis.marginal((question.name,)) * rows
        return question.nodes(leaves).astype(np.float64)
    return (hypothesis.marginal(question.names) * rows).ravel()


def _noise(noise: Noise, size: int, rng: np.random.Generator) -> NDArray[np.float64]:
    if noise.kind == "laplace":
        return rng.laplace(0, noise.scale, size)
    return rng.normal(0, math.sqrt(variance(noise)), size)


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

    def rank(self, questions: int, left_out: float = 0.0) -> int:
        """Which error of a random list, by rank, bounds the share of the class, but for the chance `sample`.

        `left_out` is for lists of some sets of attributes only: see `classes.left_out`. A rank beyond the list: it is
        too short to say so much.

        Formula: the least r with questions * KL(r/questions || share + left_out) >= ln(1/sample).
        Source: Hoeffding 1963, theorem 1, for independent draws of which each set of attributes has as many.
        """
        p = self.share + left_out
        if p >= 1:
            return questions + 1
        low, high = math.ceil(p * questions), questions + 1
        while low < high:
            middle = (low + high) // 2
            enough = middle <= questions and questions * _divergence(middle / questions, p) >= math.log(1 / self.sample)
            low, high = (low, middle) if enough or middle > questions else (middle + 1, high)
        return low


def _divergence(a: float, p: float) -> float:
    """KL(a || p) of two coins, a >= p."""
    rest = (1 - a) * math.log((1 - a) / (1 - p)) if a < 1 else 0.0
    return a * math.log(a / p) + rest
