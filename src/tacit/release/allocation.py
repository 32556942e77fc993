"""How a release divides its budget among the interactions of attributes: from public sizes, before any look.

The mean squared error of a question is a sum over the interactions of its attributes (see `hypothesis.terms`). An
interaction that is measured with precision p and whose numbers have variance v by themselves is off by v/(1 + v p) once
it is shrunk as the fit shrinks it; one that is not measured by v, which is nothing where it is weak. So the budget goes
where it takes most off the error of the questions that are expected: the precisions at which one more unit of budget
takes off the same everywhere (water-filling). How strong interactions are is not known, but of which order they are on
tables at large is: `STRENGTHS`. So single attributes come first, pairs join where rows times epsilon are some, triples
where they are many, and an interaction with so many cells that its noise would drown it gets nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import combinations
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from tacit.model.budget import Measure
from tacit.model.domain import Domain
from tacit.model.residuals import MAX_ENTRY, MAX_TOTAL, Residuals
from tacit.release.hypothesis.cell_weights import MAX_LISTED_CELLS
from tacit.release.hypothesis.prior import Awaited, awaited

# The energy of an interaction (the sum of its squared shares of the rows, over its reach), by its number of attributes:
# the median, and the deviation of its logarithm. Of Adult, bank, diamonds and three others; docs/do/planning.md.
STRENGTHS = {1: (1e-1, 0.7), 2: (1.5e-3, 2.0), 3: (3e-5, 1.5)}
ATTRIBUTES = 3  # of an expected question, at most: one, two and three equally often
MAX_BOUGHT_CELLS = 2**18  # cells of a table that may be bought
MAX_TRIPLED_CELLS = 2**24  # cells of a domain, all of which a fit of triples goes through often
MAX_TRIPLES = 700
MAX_MIXED = 2**15  # cells of a table of three attributes that a mixture of products is fitted to
_GRID = np.linspace(-3, 3, 13)  # deviations at which a strength is looked at
_PRICES = np.exp(np.linspace(-70, 60, 521))  # of a unit of budget, in squared rows, at which precisions are tabulated
_FINE = 2**7  # the smallest weight: precisions are met to half a per cent
_PAIRS, _KEPT = (0.15, 0.3, 0.45, 0.6, 0.75, 0.88), (1.0, 0.7, 0.5, 0.35, 0.2)  # of a pure budget, and of all pairs
_LOOKED_AT = 2_000  # sets of attributes, for what is not measured
_HALVINGS = 40
_STEPS = 3  # to a factor of e of the budget, at which it is worked out what a prior does
_GOLDEN, _NONE = (math.sqrt(5) - 1) / 2, 1e-100
_NEGLIGIBLE = 1e-5  # of the budget: what gets less gets nothing

Floats = NDArray[np.float64]


@lru_cache(maxsize=32)
def allocation(domain: Domain, rows: int) -> Allocation:
    """The allocation for a domain and a number of rows; both are public."""
    names = [name for name in domain.names if domain[name].size > 1]
    sizes = {name: domain[name].size for name in names}
    scopes = [
        tuple(sorted(scope))
        for size, most in ((1, MAX_BOUGHT_CELLS), (2, MAX_BOUGHT_CELLS), (3, _largest_triple(domain.size, len(names))))
        for scope in combinations(names, size)
        if math.prod(sizes[name] for name in scope) <= most
    ]
    return Allocation(tuple(sorted(scopes, key=lambda scope: (len(scope), scope))), sizes, rows)


def _largest_triple(cells: int, attributes: int) -> int:
    """How many cells a table of three attributes may have: none where triples are too many, or too slow to fit."""
    if math.comb(attributes, 3) > MAX_TRIPLES or MAX_TRIPLED_CELLS < cells <= MAX_LISTED_CELLS:
        return 0
    return MAX_BOUGHT_CELLS if cells <= MAX_TRIPLED_CELLS else MAX_MIXED


@dataclass(frozen=True, eq=False)
class Allocation:
    """Precisions of all interactions for any budget, and the errors to expect of them."""

    scopes: tuple[tuple[str, ...], ...]
    sizes: dict[str, int]
    rows: int

    def precisions(self, rho: float) -> Floats:
        """The precision of every interaction's numbers (one over a variance in rows) that this much rho or gdp buys."""
        found = np.exp([np.interp(math.log(rho), self._costs, line) for line in self._logs.T])
        found[found * self._reaches < _NEGLIGIBLE * rho] = 0.0
        kept = dict(zip(self.scopes, found[self._kind].tolist(), strict=True))
        for scope in self.scopes:  # what is measured rests on all that is within it
            if not all(kept[some] for size in range(1, len(scope)) for some in combinations(scope, size)):
                kept[scope] = 0.0
        return np.array(list(kept.values()))

    def question(self, rho: float) -> Residuals:
        """What is measured: weights are whole numbers in proportion to the roots of the precisions."""
        cells = np.array([self._cells[scope] for scope in self.scopes], dtype=np.float64)
        roots = np.sqrt(self.precisions(rho)) / cells
        most = min(MAX_ENTRY, MAX_TOTAL // self.rows)
        scale = min(_FINE / roots[roots > 0].min(), most / (roots * cells).max())
        weights = np.maximum(1, np.floor(roots * scale * (1 - 1e-9)))
        chosen = [i for i, root in enumerate(roots) if root > 0]
        return Residuals(tuple(self.scopes[i] for i in chosen), tuple(int(weights[i]) for i in chosen))

    def share(self, scope: tuple[str, ...], rho: float) -> float:
        """The share of the budget that one interaction gets."""
        costs = self.precisions(rho) * self._reaches[self._kind]
        return float(costs[self.scopes.index(scope)] / costs.sum())

    def tables(self, epsilon: float) -> dict[tuple[str, ...], float]:
        """The shares of a pure epsilon that tables of one and of two attributes get: the split of least error.

        Tried are several shares for all pairs together, and several numbers of pairs, those with the fewest cells
        first. Among the tables of as many attributes shares are in proportion to cells^(2/9): noise of variance
        8/epsilon² in each of c cells does c/epsilon² to sums over many of them, of which the fit leaves about c^(2/3)
        (found by trying powers on Adult), and a sum of such terms is least for these.
        """
        ones = [scope for scope in self.scopes if len(scope) == 1]
        pairs = sorted(
            (scope for scope in self.scopes if len(scope) == 2), key=lambda scope: (self._cells[scope], scope)
        )
        best, least = dict[tuple[str, ...], float](), math.inf
        for part in (0.0, *_PAIRS) if pairs else (0.0,):
            for some in (pairs[: math.ceil(len(pairs) * kept)] for kept in _KEPT) if part else ([],):
                shares = self._by_size(ones, 1 - part) | self._by_size(some, part)
                if (error := self.error(self._table_precisions(shares, epsilon))) < least:
                    best, least = shares, error
        return best

    def expected(self, measure: Measure, amount: float, prior_rows: int = 0) -> float:
        """The error to expect of a question after a release for so much of a measure; see `error`."""
        if not prior_rows:
            return self.error(self._bought(measure, amount))
        # What a prior does takes long to work out, and hardly bends: between steps it is drawn as a straight line.
        place = _STEPS * math.log(amount)
        ends = [math.log(max(_NONE, _with_prior(self, measure, math.floor(place) + i, prior_rows))) for i in (0, 1)]
        return math.exp(float(np.interp(place - math.floor(place), (0, 1), ends)))

    def _bought(self, measure: Measure, amount: float) -> Floats:
        """The precisions of all interactions after a release for so much of a measure."""
        if measure != "epsilon":
            return self.precisions(amount)
        return self._table_precisions(self.tables(amount), amount)

    def _by_size(self, scopes: Sequence[tuple[str, ...]], part: float) -> dict[tuple[str, ...], float]:
        weights = [self._cells[scope] ** (2 / 9) for scope in scopes]
        whole = sum(weights)
        return {scope: part * weight / whole for scope, weight in zip(scopes, weights, strict=True)}

    def _table_precisions(self, shares: Mapping[tuple[str, ...], float], epsilon: float) -> Floats:
        """A table says every interaction within it: of the variance of its cells, times the cells to one of theirs."""
        found = dict.fromkeys(self.scopes, 0.0)
        for scope, share in shares.items():
            bought, cells = (share * epsilon) ** 2 / 8, self._cells[scope]
            for size in range(1, len(scope) + 1):
                for some in combinations(scope, size):
                    found[some] += bought * self._cells[some] / cells
        return np.array(list(found.values()))

    @cached_property
    def _cells(self) -> dict[tuple[str, ...], int]:
        """How many cells the table of every scope has."""
        return {scope: math.prod(self.sizes[name] for name in scope) for scope in self.scopes}

    def error(self, precisions: Floats, prior_rows: int = 0) -> float:
        """The root of the mean squared error to expect of a question, in rows.

        prior_rows: of a public table that the fit is drawn to, and that is of the same population as the rows.
        """
        by_kind = np.zeros(len(self._kinds))
        by_kind[self._kind] = precisions
        left = self._variances / (1 + self._variances * by_kind[:, None])
        weight = 0.0
        if prior_rows:
            weight, drawn = self._drawn(by_kind, prior_rows)
            left = np.minimum(left, drawn)
        every = float((self._counts * (self._chances * left).sum(axis=1))[self._kind].sum())
        return math.sqrt(every + self._unseen(weight, prior_rows))

    # Interactions of attributes with as many values are alike: all that follows is worked out once for each kind.

    @cached_property
    def _kinds(self) -> list[tuple[str, ...]]:
        """One scope of each kind."""
        found = {tuple(sorted(self.sizes[name] for name in scope)): scope for scope in reversed(self.scopes)}
        return [found[key] for key in sorted(found, key=lambda key: (len(key), key))]

    @cached_property
    def _kind(self) -> NDArray[np.intp]:
        """The place of every scope's kind."""
        places = {tuple(sorted(self.sizes[name] for name in scope)): i for i, scope in enumerate(self._kinds)}
        return np.array([places[tuple(sorted(self.sizes[name] for name in scope))] for scope in self.scopes])

    @cached_property
    def _reaches(self) -> Floats:
        """Half of what a replaced row moves an interaction by, squared: the product of 1 - 1/size."""
        return np.array([math.prod(1 - 1 / self.sizes[name] for name in scope) for scope in self._kinds])

    @cached_property
    def _variances(self) -> Floats:
        """The variance of one number of an interaction, in rows squared, for each strength it may have."""
        energies = np.array([strengths(len(scope)) for scope in self._kinds])
        return np.asarray(energies * self._of_energy[:, None])

    @cached_property
    def _of_energy(self) -> Floats:
        """The variance of one number, in rows squared, of an interaction whose energy is 1."""
        return np.asarray(self._reaches / np.array(self._freedom) * float(self.rows) ** 2)

    @cached_property
    def _freedom(self) -> list[int]:
        return [math.prod(self.sizes[name] - 1 for name in scope) for scope in self._kinds]

    def _drawn(self, precisions: Floats, prior_rows: int) -> tuple[float, Floats]:
        """The weight of a prior of that many rows, and the variances that are left; see `hypothesis.prior`.

        The fit does not know that the prior is right. It draws single attributes and pairs to it as far as noisy
        tables bear it out: the less they say, the larger the rests that it must allow for.
        """
        noise = 1 / np.maximum(precisions * self._of_energy, _NONE)
        places: dict[int, list[int]] = {1: [], 2: []}
        lists: dict[int, list[Awaited]] = {1: [], 2: []}
        for kind in self._kind[precisions[self._kind] > 0].tolist():
            if (order := len(self._kinds[kind])) in lists:
                median, deviation = STRENGTHS[order]
                middle = (0.5 + len(places[order])) * _GOLDEN % 1  # strengths of all sizes, in a fixed order
                strength = median * math.exp(deviation * NormalDist().inv_cdf(middle))
                lists[order].append(Awaited(float(noise[kind]), strength, self._freedom[kind]))
                places[order].append(kind)
        weight, *rests = awaited(lists[1], lists[2], 1 / self.rows + 1 / prior_rows, prior_rows)
        left = self._started(weight, prior_rows)
        left = left / (1 + left * precisions[:, None])
        for order, found in zip((1, 2), rests, strict=True):
            for kind in set(places[order]):
                rest = np.mean([one for one, place in zip(found, places[order], strict=True) if place == kind])
                learned = rest / (rest + noise[kind])
                begun = self._started(weight, prior_rows)[kind]
                left[kind] = learned**2 * noise[kind] * self._of_energy[kind] + (1 - learned) ** 2 * begun
        return weight, left

    def _started(self, weight: float, prior_rows: int) -> Floats:
        """The variances that are left before anything is measured but the single attributes.

        Two samples of one population are apart by an energy of 1/n + 1/m in every interaction. Where cells cannot be
        listed, the fit takes single attributes and pairs from a prior, and nothing else.
        """
        if not weight:
            return self._variances
        orders = np.array([len(scope) for scope in self._kinds])
        apart = (1 / self.rows + 1 / prior_rows) * self._of_energy[:, None]
        mixed = weight**2 * apart + (1 - weight) ** 2 * self._variances
        known = (orders <= 2) | (math.prod(self.sizes.values()) <= MAX_LISTED_CELLS)
        return np.where((orders == 1)[:, None], apart, np.where(known[:, None], mixed, self._variances))

    @cached_property
    def _chances(self) -> Floats:
        weights = np.exp(-(_GRID**2) / 2)
        return np.asarray(weights / weights.sum())

    @cached_property
    def _counts(self) -> Floats:
        """By how much the variance of an interaction's numbers counts in the mean squared error of a question."""
        return np.array([self._count(scope) for scope in self._kinds])

    def _count(self, scope: Sequence[str]) -> float:
        """A condition on a random set of k of n values, each k as likely: its part of this interaction, squared.

        Along an attribute of the interaction that is E[k (n - k)/n] = (n + 1)/6, along another of the question's
        E[(k/n)²] = (2 n - 1)/(6 n); the latter summed over all sets of others that make up a question.
        """
        own = math.prod((self.sizes[name] + 1) / 6 for name in scope)
        others = [(2 * size - 1) / (6 * size) for name, size in self.sizes.items() if name not in scope]
        most, many = min(ATTRIBUTES, len(self.sizes)), len(self.sizes)
        sums = [1.0] + [0.0] * (most - len(scope))  # of products of 0, 1, 2, … of the others
        for other in others:
            for place in range(len(sums) - 1, 0, -1):
                sums[place] += sums[place - 1] * other
        return own * sum(total / math.comb(many, len(scope) + i) for i, total in enumerate(sums)) / most

    def _unseen(self, weight: float, prior_rows: int) -> float:
        """The mean squared error of interactions that are not measured whatever the budget; by a public sample."""
        return sum(
            every * float((one._counts * one._left(weight, prior_rows))[one._kind].sum()) for every, one in self._others
        )

    def _left(self, weight: float, prior_rows: int) -> Floats:
        """The mean over all strengths of the variances that nothing is measured of."""
        left = np.minimum(self._variances, self._started(weight, prior_rows))
        return np.asarray((self._chances * left).sum(axis=1))

    @cached_property
    def _others(self) -> list[tuple[float, Allocation]]:
        """Interactions that are not measured, by their number of attributes; each stands for that many."""
        rng, names, known = np.random.Generator(np.random.PCG64(1)), sorted(self.sizes), set(self.scopes)
        found = list[tuple[float, Allocation]]()
        for size in range(2, min(ATTRIBUTES, len(names)) + 1):
            every = math.comb(len(names), size)
            if every <= _LOOKED_AT:
                some = list(combinations(names, size))
            else:
                drawn = [sorted(rng.choice(len(names), size, replace=False).tolist()) for _ in range(_LOOKED_AT)]
                some = [tuple(names[i] for i in places) for places in drawn]
            left = tuple(scope for scope in some if scope not in known)
            if left:
                found.append((every / len(some), Allocation(left, self.sizes, self.rows)))
        return found

    @cached_property
    def _logs(self) -> Floats:
        """The logarithms of the precisions at every price of `_PRICES`, from the dearest: a line for each."""
        target = (2 * self._reaches / self._counts)[None, :] * _PRICES[::-1, None]
        low, high = np.full(target.shape, -80.0), np.full(target.shape, 40.0)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            gains = np.zeros(target.shape)
            for chance, variances in zip(self._chances, self._variances.T, strict=True):
                gains += chance * (variances / (1 + variances * np.exp(middle))) ** 2
            more = gains > target
            low, high = np.where(more, middle, low), np.where(more, high, middle)
        return np.asarray(low)

    @cached_property
    def _costs(self) -> Floats:
        """The logarithms of the rho that these cost, about: what a replaced row moves on average."""
        many = np.bincount(self._kind, minlength=len(self._kinds))
        return np.asarray(np.log((np.exp(self._logs) * self._reaches * many).sum(axis=1) + 1e-300))


@lru_cache(maxsize=512)
def _with_prior(plan: Allocation, measure: Measure, step: int, prior_rows: int) -> float:
    return plan.error(plan._bought(measure, math.exp(step / _STEPS)), prior_rows)


@lru_cache
def strengths(attributes: int) -> Floats:
    """The energies that an interaction of that many attributes may have."""
    median, deviation = STRENGTHS[attributes]
    return np.asarray(median * np.exp(deviation * _GRID))
