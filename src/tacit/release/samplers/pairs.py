"""Pair moves: the walk that samples the fractional databases. For `fractions`; public post-processing.

All chains make the same exchange at the same time, with their own random numbers. So the slabs that an exchange touches
are found once for all of them, and the rest is arithmetic on rows with one entry for each chain.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.release.samplers.compilation import compiled, inlined
from tacit.release.samplers.polytope import Array, Samples, Slabs, settled

Pairs = NDArray[np.intp]
_BATCH = 2**20  # random numbers that are drawn at a time
_TINY = 1e-300


def pair_step(rng: np.random.Generator, slabs: Slabs, samples: Samples, sweeps: int = 1) -> Samples:
    """Gibbs steps that exchange mass between two atoms within the slabs: the best plain walk we know.

    A sweep pairs all atoms at random, twice. Of two cells the masses are uniform on a segment; of two atoms the share
    of one is a truncated Beta. A chain outside a slab never moves further out, so that chains also find their way in.
    """
    moved = Samples(samples.masses.copy(), samples.values.copy())
    atoms, chains = moved.masses.shape
    plain = bool((slabs.sizes == 1).all())
    rows = max(1, _BATCH // chains)
    for _ in range(2 * sweeps):
        pairs = rng.permutation(atoms)[: atoms // 2 * 2].reshape(-1, 2)
        for start in range(0, len(pairs), rows):
            some = pairs[start : start + rows]
            if plain:
                uniforms = rng.random((len(some), chains))
                uniform_moves(moved, slabs, some, uniforms)
            else:
                uniforms, coins = rng.random((2, len(some), chains))
                beta_moves(moved, slabs, some, uniforms, coins)
    return settled(slabs, moved.masses)  # the sums had drifted by rounding


def uniform_moves(samples: Samples, slabs: Slabs, pairs: Pairs, uniforms: Array) -> None:
    """For each pair of cells in turn, a uniform point of the segment on which they can exchange mass. In place."""
    _uniform_moves(tuple(samples), tuple(slabs), pairs, uniforms)


def beta_moves(samples: Samples, slabs: Slabs, pairs: Pairs, uniforms: Array, coins: Array) -> None:
    """For each pair of atoms in turn, a step that leaves the truncated Beta law of their exchange alone. In place."""
    _beta_moves(tuple(samples), tuple(slabs), pairs, uniforms, coins)


@compiled
def _uniform_moves(samples_: tuple[Any, ...], slabs_: tuple[Any, ...], pairs: Pairs, uniforms: Array) -> None:
    samples, slabs = Samples(*samples_), Slabs(*slabs_)
    chains = samples.masses.shape[1]
    least, most = np.empty(chains), np.empty(chains)
    for k in range(len(pairs)):
        a, b = pairs[k]
        _limits(samples, slabs, a, b, least, most)
        for c in range(chains):
            least[c] += (most[c] - least[c]) * uniforms[k, c]
        _move(samples, slabs, a, b, least)


@compiled
def _beta_moves(
    samples_: tuple[Any, ...], slabs_: tuple[Any, ...], pairs: Pairs, uniforms: Array, coins: Array
) -> None:
    samples, slabs = Samples(*samples_), Slabs(*slabs_)
    chains = samples.masses.shape[1]
    least, most = np.empty(chains), np.empty(chains)
    for k in range(len(pairs)):
        a, b = pairs[k]
        _limits(samples, slabs, a, b, least, most)
        more, less = slabs.sizes[a] - 1, slabs.sizes[b] - 1
        for c in range(chains):
            x, y = samples.masses[a, c], samples.masses[b, c]
            least[c] = _exchange(x, y, more, less, least[c], most[c], uniforms[k, c], coins[k, c])
        _move(samples, slabs, a, b, least)


@inlined
def _exchange(x: float, y: float, a: float, b: float, least: float, most: float, u: float, coin: float) -> float:
    """How much moves from mass x to mass y, if t has density (x - t)^a (y + t)^b on [least, most]; a, b >= 0.

    The density is log-concave. So it lies below the lowest of its height at the mode and two tangents of its logarithm:
    a flat middle and two exponential tails, from which one point is drawn by inversion. It is proposed to a Metropolis
    step, which takes it with probability about 0.9. Any tangents would be right; those where the logarithm has fallen
    by about 1 are the best for a Gaussian. Logarithms are of ratios to the mode, by log1p: with exponents of 10^12 the
    law is 10^-6 wide, and a difference of logarithms would drown in rounding.
    """
    if not least < most:
        return 0.0
    if a == 0 and b == 0:
        return least + (most - least) * u
    p, q = (x + y) * (a / (a + b)), (x + y) * (b / (a + b))  # the masses at the mode
    free = x - p if a < b else q - y
    mode = min(max(free, least), most)
    if mode != free:
        p, q = max(x - mode, _TINY), max(y + mode, _TINY)
    slope = (b / q if b > 0 else 0.0) - (a / p if a > 0 else 0.0)
    bend = (b / q / q if b > 0 else 0.0) + (a / p / p if a > 0 else 0.0)
    scale = 2 / (abs(slope) + math.sqrt(slope * slope + 2 * bend))
    left = mode - min(scale, 0.5 * (mode - least))
    right = mode + min(scale, 0.5 * (most - mode))
    rise = max((b / (y + left) if b > 0 else 0.0) - (a / (x - left) if a > 0 else 0.0), 0.0)
    fall = max((a / (x - right) if a > 0 else 0.0) - (b / (y + right) if b > 0 else 0.0), 0.0)
    edge_left, edge_right = least, most
    if rise > 0:
        edge_left = min(max(left - _height(left, mode, p, q, a, b) / rise, least), mode)
    if fall > 0:
        edge_right = max(min(right + _height(right, mode, p, q, a, b) / fall, most), mode)
    width_left, width_right = edge_left - least, most - edge_right
    area_left = width_left if rise * width_left < 1e-12 else -math.expm1(-rise * width_left) / rise
    area_right = width_right if fall * width_right < 1e-12 else -math.expm1(-fall * width_right) / fall
    flat = edge_right - edge_left
    at = u * (area_left + flat + area_right)
    if at < flat:
        t = edge_left + at
    elif at < flat + area_right:
        part = at - flat
        far = part if fall * width_right < 1e-12 else -math.log1p(-min(part * fall, 1 - 1e-16)) / fall
        t = edge_right + min(far, width_right)
    else:
        part = at - flat - area_right
        far = part if rise * width_left < 1e-12 else -math.log1p(-min(part * rise, 1 - 1e-16)) / rise
        t = edge_left - min(far, width_left)
    proposed = _height(t, mode, p, q, a, b) - _bound(t, edge_left, edge_right, rise, fall)
    current = _height(0.0, mode, p, q, a, b) - _bound(0.0, edge_left, edge_right, rise, fall)
    return t if math.log(coin) < proposed - current else 0.0


@inlined
def _height(t: float, mode: float, p: float, q: float, a: float, b: float) -> float:
    """The logarithm of the density at t, less that at the mode."""
    total = 0.0
    if a > 0:
        ratio = (mode - t) / p
        if ratio <= -1:
            return -math.inf
        total += a * math.log1p(ratio)
    if b > 0:
        ratio = (t - mode) / q
        if ratio <= -1:
            return -math.inf
        total += b * math.log1p(ratio)
    return total


@inlined
def _bound(t: float, edge_left: float, edge_right: float, rise: float, fall: float) -> float:
    """The envelope's logarithm."""
    if t < edge_left:
        return (t - edge_left) * rise
    if t > edge_right:
        return (edge_right - t) * fall
    return 0.0


@inlined
def _limits(samples: Samples, slabs: Slabs, a: int, b: int, least: Array, most: Array) -> None:
    """Where the exchange of a and b may end, for each chain, into `least` and `most`."""
    masses, values = samples.masses, samples.values
    chains = masses.shape[1]
    for c in range(chains):
        least[c], most[c] = -masses[b, c], masses[a, c]
    for j in range(len(slabs.low)):
        change = slabs.weights[b, j] - slabs.weights[a, j]
        bottom, top = slabs.low[j], slabs.high[j]
        if change == 1:  # predicates: a division by 1 or -1 changes no bit, so it is left out
            for c in range(chains):
                v = values[j, c]
                least[c] = max(least[c], min(bottom, v) - v)
                most[c] = min(most[c], max(top, v) - v)
        elif change == -1:
            for c in range(chains):
                v = values[j, c]
                least[c] = max(least[c], v - max(top, v))
                most[c] = min(most[c], v - min(bottom, v))
        elif change > 0:
            for c in range(chains):
                v = values[j, c]
                least[c] = max(least[c], (min(bottom, v) - v) / change)
                most[c] = min(most[c], (max(top, v) - v) / change)
        elif change < 0:
            for c in range(chains):
                v = values[j, c]
                least[c] = max(least[c], (max(top, v) - v) / change)
                most[c] = min(most[c], (min(bottom, v) - v) / change)


@inlined
def _move(samples: Samples, slabs: Slabs, a: int, b: int, moved: Array) -> None:
    """Moves so much mass, in each chain, from a to b."""
    masses, values = samples.masses, samples.values
    chains = masses.shape[1]
    for c in range(chains):
        masses[a, c] = max(masses[a, c] - moved[c], 0.0)
        masses[b, c] = max(masses[b, c] + moved[c], 0.0)
    for j in range(len(values)):
        change = slabs.weights[b, j] - slabs.weights[a, j]
        if change != 0:
            for c in range(chains):
                values[j, c] += change * moved[c]
