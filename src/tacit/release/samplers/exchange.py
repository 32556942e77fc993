"""The inner loops of the pair moves: compiled where numba is installed, else in numpy. Called by polytope.py only.

All chains make the same exchange at the same time, with their own random numbers. So the slabs that an exchange
touches are found once for all of them, and the rest is arithmetic on rows with one entry for each chain. Both forms
take the same random numbers. For cells (`uniform_moves`) they give the same bits; for atoms (`beta_moves`) the same up
to the last bits of the logarithm. The numpy form is in plain.py.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from tacit.release.samplers.exchange_plain import Array, Pairs, beta_moves_numpy, uniform_moves_numpy

_numba: Any = importlib.import_module("numba") if importlib.util.find_spec("numba") else None  # the extra `fast`

COMPILED = _numba is not None
_TINY = 1e-300
_F = TypeVar("_F", bound=Callable[..., Any])


def _compiled(function: _F) -> _F:
    """Compiled, once for each machine where a cache can be written; left as it is where numba is not installed.

    No fast-math: it would fuse multiplications with additions, and the bits would depend on the machine.
    """
    if not COMPILED:
        return function
    try:
        return cast(_F, _numba.njit(function, nogil=True, cache=True, error_model="numpy"))
    except RuntimeError:  # no place for a cache
        return cast(_F, _numba.njit(function, nogil=True, error_model="numpy"))


@_compiled
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


@_compiled
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


@_compiled
def _bound(t: float, edge_left: float, edge_right: float, rise: float, fall: float) -> float:
    """The envelope's logarithm."""
    if t < edge_left:
        return (t - edge_left) * rise
    if t > edge_right:
        return (edge_right - t) * fall
    return 0.0


@_compiled
def _limits(
    masses: Array,
    values: Array,
    weights: Array,
    low: Array,
    high: Array,
    a: int,
    b: int,
    least: Array,
    most: Array,
) -> None:
    """Where the exchange of a and b may end, for each chain, into `least` and `most`."""
    chains = masses.shape[1]
    for c in range(chains):
        least[c], most[c] = -masses[b, c], masses[a, c]
    for j in range(len(low)):
        change = weights[b, j] - weights[a, j]
        bottom, top = low[j], high[j]
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


@_compiled
def _apply(masses: Array, values: Array, weights: Array, a: int, b: int, moved: Array) -> None:
    chains = masses.shape[1]
    for c in range(chains):
        masses[a, c] = max(masses[a, c] - moved[c], 0.0)
        masses[b, c] = max(masses[b, c] + moved[c], 0.0)
    for j in range(len(values)):
        change = weights[b, j] - weights[a, j]
        if change != 0:
            for c in range(chains):
                values[j, c] += change * moved[c]


@_compiled
def _uniform_moves(
    masses: Array, values: Array, weights: Array, low: Array, high: Array, pairs: Pairs, uniforms: Array
) -> None:
    chains = masses.shape[1]
    least, most = np.empty(chains), np.empty(chains)
    for k in range(len(pairs)):
        a, b = pairs[k]
        _limits(masses, values, weights, low, high, a, b, least, most)
        for c in range(chains):
            least[c] += (most[c] - least[c]) * uniforms[k, c]
        _apply(masses, values, weights, a, b, least)


@_compiled
def _beta_moves(
    masses: Array,
    values: Array,
    weights: Array,
    low: Array,
    high: Array,
    sizes: Array,
    pairs: Pairs,
    uniforms: Array,
    coins: Array,
) -> None:
    chains = masses.shape[1]
    least, most = np.empty(chains), np.empty(chains)
    for k in range(len(pairs)):
        a, b = pairs[k]
        _limits(masses, values, weights, low, high, a, b, least, most)
        for c in range(chains):
            least[c] = _exchange(
                masses[a, c], masses[b, c], sizes[a] - 1, sizes[b] - 1, least[c], most[c], uniforms[k, c], coins[k, c]
            )
        _apply(masses, values, weights, a, b, least)


uniform_moves: Callable[..., None] = _uniform_moves if COMPILED else uniform_moves_numpy
beta_moves: Callable[..., None] = _beta_moves if COMPILED else beta_moves_numpy
