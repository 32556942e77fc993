"""The inner loops of the pair moves in numpy, many chains at a time. Called by compiled.py only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Pairs = NDArray[np.intp]
TINY = 1e-300


def _room(values: Array, low: Array, high: Array, change: Array) -> tuple[Array, Array]:
    """How far each chain can go down and up before one of these slabs is left, or left further than it is."""
    below = (np.minimum(low[:, None], values) - values) / change[:, None]
    above = (np.maximum(high[:, None], values) - values) / change[:, None]
    return np.minimum(below, above).max(axis=0), np.maximum(below, above).min(axis=0)


def uniform_moves_numpy(
    masses: Array, values: Array, weights: Array, low: Array, high: Array, pairs: Pairs, uniforms: Array
) -> None:
    """For each pair of cells in turn, a uniform point of the segment on which they can exchange mass. In place."""
    for (a, b), u in zip(pairs, uniforms, strict=True):
        least, most = -masses[b], masses[a].copy()
        change = weights[b] - weights[a]
        touched = np.flatnonzero(change)
        if len(touched):
            down, up = _room(values[touched], low[touched], high[touched], change[touched])
            least, most = np.maximum(least, down), np.minimum(most, up)
        moved = least + (most - least) * u
        masses[a] = np.maximum(masses[a] - moved, 0.0)
        masses[b] = np.maximum(masses[b] + moved, 0.0)
        if len(touched):
            values[touched] += change[touched, None] * moved


def beta_moves_numpy(
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
    """For each pair of atoms in turn, a step that leaves the truncated Beta law of their exchange alone. In place."""
    for (a, b), u, coin in zip(pairs, uniforms, coins, strict=True):
        least, most = -masses[b], masses[a].copy()
        change = weights[b] - weights[a]
        touched = np.flatnonzero(change)
        if len(touched):
            down, up = _room(values[touched], low[touched], high[touched], change[touched])
            least, most = np.maximum(least, down), np.minimum(most, up)
        moved = _exchange_numpy(masses[a], masses[b], sizes[a] - 1, sizes[b] - 1, least, most, u, coin)
        masses[a] = np.maximum(masses[a] - moved, 0.0)
        masses[b] = np.maximum(masses[b] + moved, 0.0)
        if len(touched):
            values[touched] += change[touched, None] * moved


def _exchange_numpy(x: Array, y: Array, a: float, b: float, least: Array, most: Array, u: Array, coin: Array) -> Array:
    """`compiled._exchange` for many chains, step by step the same: the explanation is there."""
    frozen = ~(least < most)
    if a == 0 and b == 0:
        return np.where(frozen, 0.0, least + (most - least) * u)
    x, y = np.where(frozen, 1.0, x), np.where(frozen, 1.0, y)
    least, most = np.where(frozen, -0.5, least), np.where(frozen, 0.5, most)
    p, q = (x + y) * (a / (a + b)), (x + y) * (b / (a + b))
    free = x - p if a < b else q - y
    mode = np.clip(free, least, most)
    p, q = (
        np.where(mode == free, p, np.maximum(x - mode, TINY)),
        np.where(mode == free, q, np.maximum(y + mode, TINY)),
    )
    slope = (b / q if b > 0 else 0.0) - (a / p if a > 0 else 0.0)
    bend = (b / q / q if b > 0 else 0.0) + (a / p / p if a > 0 else 0.0)
    scale = 2 / (np.abs(slope) + np.sqrt(slope * slope + 2 * bend))
    left = mode - np.minimum(scale, 0.5 * (mode - least))
    right = mode + np.minimum(scale, 0.5 * (most - mode))

    def height(t: Array) -> Array:
        total = np.zeros_like(t)
        with np.errstate(divide="ignore"):
            if a > 0:
                total = total + a * np.log1p(np.maximum((mode - t) / p, -1.0))
            if b > 0:
                total = total + b * np.log1p(np.maximum((t - mode) / q, -1.0))
        return total

    def steepness(t: Array) -> Array:
        slope: Array = (b / (y + t) if b > 0 else 0.0) - (a / (x - t) if a > 0 else np.zeros_like(t))
        return slope

    rise, fall = np.maximum(steepness(left), 0.0), np.maximum(-steepness(right), 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        edge_left = np.where(rise > 0, np.clip(left - height(left) / rise, least, mode), least)
        edge_right = np.where(fall > 0, np.clip(right + height(right) / fall, mode, most), most)

    def area(rate: Array, width: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(rate * width < 1e-12, width, -np.expm1(-rate * width) / rate)

    width_left, width_right = edge_left - least, most - edge_right
    area_left, area_right = area(rise, width_left), area(fall, width_right)
    flat = edge_right - edge_left
    at = u * (area_left + flat + area_right)

    def tail(part: Array, rate: Array, width: Array) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            far = np.where(rate * width < 1e-12, part, -np.log1p(-np.minimum(part * rate, 1.0)) / rate)
        return np.minimum(far, width)

    proposal = np.where(
        at < flat,
        edge_left + at,
        np.where(
            at < flat + area_right,
            edge_right + tail(at - flat, fall, width_right),
            edge_left - tail(at - flat - area_right, rise, width_left),
        ),
    )

    def excess(t: Array) -> Array:
        bound = np.where(t < edge_left, (t - edge_left) * rise, np.where(t > edge_right, (edge_right - t) * fall, 0.0))
        return height(t) - bound

    with np.errstate(divide="ignore", invalid="ignore"):
        accepted = np.log(coin) < excess(proposal) - excess(np.zeros_like(x))
    return np.where(frozen | ~accepted, 0.0, proposal)
