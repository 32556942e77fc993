"""Databases that are plausible after a warm start: draws of what its noisy release leaves open. Public.

The fit of the start is the most probable distribution, given the release. Around it, an interaction of some attributes
(see `hypothesis.terms`) is uncertain by its noise, or, where that drowns it, by how strong such interactions are: a
cell of share p has the variance 1 / (1/v + 1/(e p)), with v the noise's and e the interaction's energy, 1/(n pull) in a
fit over all cells and the public prior of `allocation` in a mixture. So

1. M records are drawn from the fit, and weighted so that their small tables are the fit's (raking: Deming & Stephan
   1940). From there on nothing touches |X|.
2. Every database draws a deviation of each interaction that was released, and is raked to the tables with these.
3. All weights of a record are scaled so that their mean is what the fit gives it. So the databases are spread around
   the fit, and their median answers as well as it does.

Post-processing of what was released, with a recorded seed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.model.domain import Domain
from tacit.release.allocation import STRENGTHS
from tacit.release.hypothesis.fit import Fitted, StepProgress, axis_order
from tacit.release.hypothesis.terms import Axes, Interaction, interactions_of, subsets, terms_of
from tacit.release.samplers.compilation import shared_out
from tacit.release.samplers.weighted_records import Array, SmallPlaces, Weighted, places, rake
from tacit.release.warm_start import WarmStart

_SWEEPS = 2  # of a database over the released tables
FIT_SWEEPS = 4  # of the records over the fit's tables
CENTRINGS = 3
_MOST = 5.0  # what one step of raking scales a cell by, at most
_LEAST = 0.3  # of a cell's share: a draw leaves so much of it
_FEW_SCOPES = 200  # tables of the fit that the records are raked to, beside those that were released
_RECORDS_A_CELL = 4  # a table has fewer cells than records: at most one for this many records
_TINY = 1e-12


class Uncertain(NamedTuple):
    """An interaction that was released, by the names of its attributes: the noise's variance, and its energy."""

    names: tuple[str, ...]
    variance: float
    energy: float


def plausible(
    found: WarmStart,
    domain: Domain,
    rows: int,
    *,
    databases: int,
    records: int,
    seed: int,
    progress: StepProgress | None = None,
) -> Weighted:
    """Databases over common records. `progress` is told how many steps are done, and of how many."""
    rng = np.random.Generator(np.random.PCG64(seed))
    kind = np.min_scalar_type(max(domain.shape) - 1)
    codes = np.stack(found.hypothesis.draw(records, rng, even=True)).astype(kind)
    uncertain = {one.names: one for one in _uncertain(found, domain, rows)}
    largest = max(2, records // _RECORDS_A_CELL)
    tables = [names for names in _scopes(domain, uncertain) if domain.size_of(names) <= largest]
    base = np.full((1, records), 1 / records)
    for _ in range(FIT_SWEEPS):
        for names in reversed(tables):  # the small ones last, which are to be met best
            shares = found.hypothesis.marginal(names).reshape(1, -1)
            rake(base, places(domain, codes, names), shares, _MOST, 0, 1)
    drawn = {
        names: _deviation(one, base[0], domain, codes, databases, rng)
        for names, one in uncertain.items()
        if domain.size_of(names) <= largest
    }
    widest = [names for names in drawn if not any(set(names) < set(other) for other in drawn)]
    weights = np.repeat(base, databases, axis=0)
    levels = list(_levels(found, domain, rows, base[0], codes, databases, rng))
    for sweep in range(_SWEEPS):
        for step, names in enumerate(widest):
            where = places(domain, codes, names)
            targets = _targets(names, drawn, _table(base[0], where, domain, names))
            _rake_all(weights, where, targets)
            if progress is not None:
                progress(sweep * len(widest) + step + 1, _SWEEPS * len(widest))
        for where, targets in levels:
            _rake_all(weights, where, targets)
    for _ in range(CENTRINGS):
        weights *= base / np.maximum(weights.mean(axis=0), _TINY)
        weights /= weights.sum(axis=1, keepdims=True)
    return Weighted(domain, codes, weights)


def _uncertain(found: WarmStart, domain: Domain, rows: int) -> Iterator[Uncertain]:
    order, pulls = axis_order(domain), found.fitted.pulls if isinstance(found.fitted, Fitted) else {}
    known: dict[Axes, Interaction] = interactions_of(found.measured, domain, rows, order)
    for axes, one in known.items():
        names = tuple(domain.names[place] for place in sorted(order[axis] for axis in axes))
        # A mixture has no pulls. With the middle of the prior its spread is too narrow: half a deviation above it.
        middle, deviation = STRENGTHS[min(len(axes), max(STRENGTHS))]
        usual = middle * math.exp(deviation / 2)
        yield Uncertain(names, one.variance, 1 / (rows * pulls[axes]) if axes in pulls else usual)


def _scopes(
    domain: Domain, released: Sequence[tuple[str, ...]] | dict[tuple[str, ...], Uncertain]
) -> list[tuple[str, ...]]:
    """The tables of the fit that the records shall have: those that were released, and all small ones if few."""
    found = dict.fromkeys(released)
    names = [name for name in domain.names if domain[name].size > 1]
    for size in (1, 2, 3):
        if math.comb(len(names), size) <= _FEW_SCOPES:
            found |= dict.fromkeys(combinations(names, size))
    return sorted(found, key=len)


def _deviation(
    one: Uncertain, base: Array, domain: Domain, codes: NDArray[np.integer], databases: int, rng: np.random.Generator
) -> NDArray[np.float32]:
    """What each database adds to the fit's table in this interaction: [N, *shape], sums of 0 along every axis."""
    shares = _table(base, places(domain, codes, one.names), domain, one.names)
    spread = 1 / np.sqrt(1 / one.variance + 1 / (one.energy * np.maximum(shares, _TINY)))
    drawn = rng.standard_normal((databases, *shares.shape), dtype=np.float32) * spread.astype(np.float32)
    for axis in range(1, drawn.ndim):
        drawn -= drawn.mean(axis=axis, keepdims=True)
    return drawn


def _targets(names: tuple[str, ...], drawn: dict[tuple[str, ...], NDArray[np.float32]], shares: Array) -> Array:
    """The tables that the databases shall have: the fit's and all deviations within, and no cell quite empty."""
    number = len(next(iter(drawn.values())))
    found = np.repeat(shares[None], number, axis=0)
    for some in subsets(tuple(range(len(names)))):
        part = drawn.get(tuple(names[place] for place in some))
        if part is not None:
            spread = [number, *(size if place in some else 1 for place, size in enumerate(shares.shape))]
            found += part.reshape(spread) * (part[0].size / shares.size)
    np.maximum(found, _LEAST * shares, out=found)
    flat = found.reshape(number, -1)
    return np.asarray(flat / np.maximum(flat.sum(axis=1, keepdims=True), _TINY))


def _levels(
    found: WarmStart,
    domain: Domain,
    rows: int,
    base: Array,
    codes: NDArray[np.integer],
    databases: int,
    rng: np.random.Generator,
) -> Iterator[tuple[SmallPlaces, Array]]:
    """The coarse levels of trees: the group of every record, and the shares that the databases' groups shall have."""
    for term in terms_of(found.measured, domain, rows, range(len(domain))):
        if term.groups is not None:
            where = term.groups[codes[term.axes[0]]].astype(np.int32)
            shares = np.bincount(where, weights=base, minlength=term.shares.size)
            drawn = shares + math.sqrt(term.variance) * rng.standard_normal((databases, shares.size))
            targets = np.maximum(drawn, _LEAST * shares)
            yield where, targets / targets.sum(axis=1, keepdims=True)


def _rake_all(weights: Array, where: SmallPlaces, targets: Array) -> None:
    shared_out(len(weights), lambda begin, end: rake(weights, where, targets, _MOST, begin, end))


def _table(weights: Array, where: SmallPlaces, domain: Domain, names: Sequence[str]) -> Array:
    shape = domain.shape_of(names)
    return np.asarray(np.bincount(where, weights=weights, minlength=math.prod(shape)).reshape(shape))
