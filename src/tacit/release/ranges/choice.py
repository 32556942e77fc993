"""Which strategy to buy for an ordered attribute, from public parameters alone, and why. Anybody may call it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.budget import Loss, Measure
from tacit.model.workload import Convolution, Tree
from tacit.release.ranges.decoder import Decoder

ErrorLoss = Literal["max", "mean"]
About = Literal["intervals", "thresholds"]

_PAYS, PAYS_PURE = 0.6, 0.4  # of the variance of intervals, for a tree beside a plain table, and instead of one

_PAIRS = 1500  # intervals by which trees are compared
_SEED = 20170401  # of the choice of these intervals: public, and the same for everybody
_SIMULATED = 4096  # up to this many leaves, trees are compared by simulation
_LEAF = 12  # the weight of the leaves; other levels have whole weights up to it

# Rows for every leaf, in units of the noise of one count, below which the strategy is what suits the decoder's prior.
_FAINT: dict[Measure, float] = {"epsilon": 32.0, "rho": 1.0, "gdp": 1.0}
_FAINTER = 0.5  # and under pure epsilon, where levels are dear, the lower ones are then worth less noise still
_STEP, _LOWEST = 1.55, 5  # how weights then fall, and how far
# From so many leaves on, under pure epsilon, the root then has eight children, and there is a level more: below so many
# rows for every leaf, with weights that fall by this step, if bars are no wider than this.
_LONG, _TOP, _WIDER = 256, 8, 1.4
_FEW = ((0.5, 1.4), (2.0, 1.15))


@dataclass(frozen=True)
class StrategyChoice:
    """A strategy, and why it was chosen, in a sentence."""

    strategy: Tree | Convolution
    why: str


@lru_cache(maxsize=256)
def choose(
    name: str,
    leaves: int,
    measure: Measure,
    *,
    loss: ErrorLoss = "max",
    about: About = "intervals",
    signal: float = math.inf,
) -> StrategyChoice:
    """The strategy with the least error over all intervals, or over all thresholds, of `leaves` leaves.

    loss: "max" is the expected largest error, "mean" the root mean squared error. The answer depends on no data.
    With delta > 0 a convolution: on a circle for intervals, where error depends on length alone, and in a row for
    thresholds. Its exponent was fitted once to simulated errors, which hardly change around the optimum. Under pure
    epsilon a tree of the depth, branching and weights whose variance, from the exact formula, is least; for the largest
    error, weights that rise towards the leaves, and up to 4096 leaves a simulation with a public seed decides.

    signal: the rows, in units of the noise that one count would have by itself (`signal`). Where that is little for so
    many leaves the strategy is a tree with equal weights, or falling ones, for both measures: least squares is then no
    more than what `shrinkage` starts from, and that does best with independent noise and few large nodes. Bars are up
    to 1.4 times as wide for it.

    >>> choose("age", 4096, "rho").strategy
    Convolution(name='age', exponent=50, cyclic=True)
    """
    if leaves < 2:
        raise ValueError("a single bin has no ranges: its count is n, which is public")
    if signal < _FAINT[measure] * leaves:
        tree = _flat_tree(name, leaves, measure)
        if measure == "epsilon" and leaves >= _LONG and signal < _FEW[-1][0] * leaves:
            tree = _eight_on_top(tree, leaves, [step for below, step in _FEW if signal < below * leaves])
        elif measure == "epsilon" and signal < _FAINTER * leaves:
            tree = Tree(name, tree.branching, falling(len(tree.branching), _STEP))
        shape, weights = " x ".join(map(str, tree.branching)), ", ".join(map(str, tree.weights))
        why = (
            f"the rows are few for so much noise: a {shape} tree, with level weights {weights}, from which even and "
            f"empty stretches are best recognised among {about} of {leaves:,} leaves."
        )
        return StrategyChoice(tree, why)
    if measure != "epsilon":
        exponent = _exponent(leaves, loss, about)
        cyclic = about == "intervals" and exponent > 0
        where = "on a circle (intervals; the total is public)" if cyclic else "in a row (thresholds)"
        why = (
            f"with delta noise is Gaussian, for which the factorisation (1 - x)^(-{exponent / 100:g}) of the prefixes "
            f"{where} has the least {_said(loss)} over {about} of {leaves:,} leaves."
        )
        return StrategyChoice(Convolution(name, exponent, cyclic), why)
    tree = _best_tree(name, leaves, loss, about)
    shape = " x ".join(map(str, tree.branching))
    why = (
        "pure epsilon adds Laplace noise in proportion to the number of levels: "
        f"a {shape} tree without its public root, with level weights {', '.join(map(str, tree.weights))}, "
        f"has the least {_said(loss)} over {about} of {leaves:,} leaves."
    )
    return StrategyChoice(tree, why)


def signal(rows: int, loss: Loss) -> float:
    """The rows in units of the noise of a count that is bought by itself: its scale, or its standard deviation.

    One replaced row moves the counts of a table by 2 in all, and by the root of 2 in root mean square.
    """
    amount = float(loss.exact)
    return rows * amount / 2 if loss.measure == "epsilon" else rows * math.sqrt(amount)


@lru_cache(maxsize=256)
def two_levels(name: str, leaves: int, measure: Measure) -> Tree | None:
    """A tree of two levels for whoever wants the leaves too, where it makes ranges much surer; None where it does not.

    Its leaves have sqrt(2) times the noise of a plain table of the same price. Where it is bought beside one, these
    join the table's own: it pays from 75 leaves on. In pure epsilon it stands in the table's place, and its leaves
    have twice the noise: there it must more than halve the mean variance of intervals, as it does from 820 leaves on.
    """
    if leaves < 4:
        return None
    plain, two = (next(tree for tree in trees(name, leaves) if len(tree.branching) == depth) for depth in (1, 2))
    pays = PAYS_PURE if measure == "epsilon" else _PAYS
    return two if _mean_error(two, leaves, measure) <= pays * _mean_error(plain, leaves, measure) else None


def trees(name: str, leaves: int) -> Iterator[Tree]:
    """For each depth, the tree with nearly equal branching factors; equal weights."""
    for depth in range(1, max(1, math.ceil(math.log2(leaves))) + 1):
        branching = [math.ceil(round(leaves ** (1 / depth), 9))] * depth
        for level in range(depth):  # the top levels give way, as far as all leaves are still reached
            others = math.prod(branching) // branching[level]
            branching[level] = max(2, -(-leaves // others))
        if math.prod(branching[1:]) < leaves:
            yield Tree.over(name, leaves, tuple(branching), (1,) * depth)


def regular(name: str, leaves: int, children: int) -> Tree:
    """The textbook's tree, where every node has `children` children."""
    depth = 1
    while children**depth < leaves:
        depth += 1
    return Tree.over(name, leaves, (children,) * depth, (1,) * depth)


# Other strategies that a user may name: the ladder of Smith & Ullman's notes, and what came after. One line each.
LADDER: dict[str, Callable[[str, int], Tree | Convolution]] = {
    "cells": lambda name, leaves: next(trees(name, leaves)),
    "binary tree": lambda name, leaves: regular(name, leaves, 2),
    "4-ary tree": lambda name, leaves: regular(name, leaves, 4),
    "16-ary tree": lambda name, leaves: regular(name, leaves, 16),
    "two levels": lambda name, leaves: next(tree for tree in trees(name, leaves) if len(tree.branching) == 2),
    "square root": lambda name, leaves: Convolution(name, 50, cyclic=False),
    "circle": lambda name, leaves: Convolution(name, 50, cyclic=True),
}


def rung(strategy: str, name: str, leaves: int, measure: Measure) -> Tree | Convolution:
    """The strategy of this name over that many leaves."""
    if strategy not in LADDER:
        raise InvalidQuery(f"strategy is one of {', '.join(LADDER)}, not {strategy!r}.")
    if strategy == "two levels" and leaves < 3:
        raise InvalidQuery(f"{name} has {leaves} leaves, too few for two levels.")
    found = LADDER[strategy](name, leaves)
    if isinstance(found, Convolution) and measure == "epsilon":
        raise InvalidQuery(f"the {strategy} is for Gaussian noise, which a budget with a delta above 0 buys.")
    return found


def _said(loss: ErrorLoss) -> str:
    return "expected largest error" if loss == "max" else "mean squared error"


def _exponent(leaves: int, loss: ErrorLoss, about: About) -> int:
    """Fitted to simulations with 3 to 2^18 leaves; benchmarks/bench_intervals.py compares it with its neighbours."""
    most, less = {
        ("max", "intervals"): (50, 240),
        ("mean", "intervals"): (51, 160),
        ("max", "thresholds"): (48, 220),
        ("mean", "thresholds"): (50, 120),
    }[loss, about]
    return max(0, round(most - less / leaves))


def _best_tree(name: str, leaves: int, loss: ErrorLoss, about: About) -> Tree:
    first, end = intervals_of(leaves, about)

    def error(tree: Tree) -> float:
        variance = Decoder(tree, leaves).interval_variance(first, end)
        return float(sum(tree.weights) ** 2 * (variance.max() if loss == "max" else variance.mean()))

    shapes = sorted((tree for tree in trees(name, leaves) if len(tree.branching) <= 12), key=error)[:3]
    if loss == "mean":
        return min((Tree(name, t.branching, w) for t in shapes for w in weightings(len(t.branching))), key=error)
    # The largest of many errors is mostly about those that vary on their own: the lower a level, the more it matters.
    rising = [Tree(name, t.branching, _rising(top, len(t.branching))) for t in shapes for top in (6, 8)]
    if leaves > _SIMULATED:
        return rising[0]
    largest = {tree: _largest_error(tree, leaves, about) for tree in rising}
    as_good = [tree for tree in rising if largest[tree] <= 1.02 * min(largest.values())]
    return min(as_good, key=error)  # what simulation can hardly tell apart, variance can


def _largest_error(tree: Tree, leaves: int, about: About) -> float:
    """The expected largest error, simulated with a public seed, up to a factor that all trees share."""
    plan = Decoder(tree, leaves)
    noise = _public().laplace(size=(min(1000, 2**19 // plan.answers), plan.answers))
    errors = plan.prefixes(noise[:, ::-1], 0.0)  # the leaves come last: trees share the draws of theirs
    largest = np.ptp(errors, axis=1) if about == "intervals" else np.abs(errors).max(axis=1)
    return float(sum(tree.weights) * largest.mean())


def _flat_tree(name: str, leaves: int, measure: Measure) -> Tree:
    """The tree with equal weights that has the least mean variance."""
    few = (tree for tree in trees(name, leaves) if len(tree.branching) <= 12)
    return min(few, key=lambda tree: _mean_error(tree, leaves, measure))


def _eight_on_top(flat: Tree, leaves: int, steps: list[float]) -> Tree:
    """A tree of one level more whose root has about eight children, with weights that fall by the first of the steps
    that bars allow. Its other branching factors are powers of two that hardly rise: so few leaves are beyond the last.
    """
    powers, lower = (leaves - 1).bit_length() - (_TOP - 1).bit_length(), len(flat.branching)
    below = [2 ** (powers // lower + (level >= lower - powers % lower)) for level in range(lower)]
    found = [Tree.over(flat.name, leaves, (_TOP, *below), falling(lower + 1, step)) for step in steps]
    most = _WIDER**2 * _mean_error(flat, leaves, "epsilon")
    return next((tree for tree in found if _mean_error(tree, leaves, "epsilon") <= most), flat)


def _mean_error(tree: Tree, leaves: int, measure: Measure) -> float:
    """The mean variance of intervals, up to a factor that all trees share."""
    price = sum(tree.weights) ** 2 if measure == "epsilon" else sum(w * w for w in tree.weights)
    return float(price * Decoder(tree, leaves).interval_variance(*intervals_of(leaves, "intervals")).mean())


def falling(depth: int, step: float) -> tuple[int, ...]:
    """Weights that fall from level to level by this factor, to less than half of the first."""
    return (1,) if depth == 1 else tuple(max(_LOWEST, round(_LEAF / step**level)) for level in range(depth))


def _rising(top: int, depth: int) -> tuple[int, ...]:
    """Weights that rise evenly to the leaves."""
    return (1,) if depth == 1 else tuple(round(top + (_LEAF - top) * level / (depth - 1)) for level in range(depth))


def weightings(depth: int) -> Iterator[tuple[int, ...]]:
    """The top level needs less than the others, because n is known; the inner ones a little less than the leaves."""
    if depth == 1:
        yield (1,)
        return
    for top in range(5, _LEAF + 1):
        for inner in (_LEAF,) if depth == 2 else (_LEAF - 2, _LEAF - 1, _LEAF):
            yield (top, *[inner] * (depth - 2), _LEAF)


def intervals_of(leaves: int, about: About = "intervals") -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Intervals first <= i < end: all of them where they are few, otherwise some, the same for everybody."""
    if about == "thresholds":
        end = np.arange(1, leaves) if leaves <= _PAIRS else _public().integers(1, leaves, _PAIRS)
        return np.zeros_like(end), end
    if leaves * leaves <= 2 * _PAIRS:
        first, last = np.triu_indices(leaves)
        return first.astype(np.int64), last.astype(np.int64) + 1
    ends = np.sort(_public().integers(0, leaves + 1, (_PAIRS, 2)), axis=1)
    return ends[:, 0], ends[:, 1]


def _public() -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(_SEED))
