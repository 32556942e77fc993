"""How wide a band must be that holds for all prefixes, or all intervals, at once. Public; anybody may call it.

Widths follow from a plan, the law of the noise and a confidence. The largest error over a plan has no closed form, so
it is simulated, with a public seed; no data are involved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from tacit.model.noise_law import Noise, NoiseKind
from tacit.model.workload import Tree
from tacit.release.noise_sum import smoothed, wider
from tacit.release.ranges.decoder import Decoder

SEED = 1905  # of the simulation: public, and the same for everybody
_WORK = 2**24  # simulated answers in all
_FEWEST, _MOST = 199, 1999  # simulated releases
_LONG = 2**15  # leaves beyond which a convolution's band is bounded instead: simulating it would take minutes


@dataclass(frozen=True)
class Band:
    """Half widths that hold at once for all prefixes, and for all intervals."""

    prefixes: float
    intervals: float


def band(plan: Decoder, noise: Noise, confidence: float) -> Band:
    """Half widths in rows that the errors of all prefixes (all intervals) stay within, with at least this probability.

    As in `bar`, draws of integer noise are smoothed and compared with continuous ones. Its lemma holds for any convex
    set that is symmetric about 0, so for all errors at once: independent draws with symmetric unimodal laws are a
    mixture of boxes, and the volume that such a set shares with a box, cut at a height t of one draw, falls with |t|
    (Brunn & Minkowski). The way back is that of one error, the first of those that are too large.
    """
    back, sure = smoothed(noise, confidence)
    found = continuous_band(plan, noise.kind, sure)
    scale = wider(noise) / (math.sqrt(2) if noise.kind == "laplace" else 1)
    back *= math.sqrt(_largest_variance(plan))
    return Band(scale * found.prefixes + back, scale * found.intervals + 2 * back)


def simulations(answers: int) -> int:
    """How many releases of so many answers are simulated."""
    return min(_MOST, max(_FEWEST, _WORK // answers))


@lru_cache(maxsize=64)
def continuous_band(plan: Decoder, kind: NoiseKind, confidence: float) -> Band:
    """The same for continuous noise, in units of its scale.

    Simulated: of r runs, the error of run k in order of size. A real release is one run more, so it is within that with
    probability k/(r+1); k is two standard deviations higher than that asks, so that the one seed in use is good enough.
    Bounded: for a confidence that r runs cannot show, and for long convolutions, by the sum of the chances of all
    prefixes, which is a little wider.
    """
    runs = simulations(plan.answers)
    place = math.ceil((runs + 1) * confidence + 2 * math.sqrt(runs * confidence * (1 - confidence)))
    long = plan.leaves > _LONG and not isinstance(plan.strategy, Tree)
    if place > runs or long:
        width = _bounded(plan, kind, confidence)
        return Band(width, 2 * width)
    errors = np.sort(_largest(plan, kind, runs), axis=1)[:, place - 1]
    return Band(float(errors[0]), float(errors[1]))


@lru_cache(maxsize=64)
def _largest_variance(plan: Decoder) -> float:
    """Of all prefixes, for noise of variance 1. An interval's deviation is at most twice a prefix's."""
    return float(plan.interval_variance(0, np.arange(1, plan.leaves)).max(initial=0.0))


def _largest(plan: Decoder, kind: NoiseKind, runs: int) -> NDArray[np.float64]:
    """The largest error over prefixes, and over intervals, of each run with noise of scale 1."""
    chance = np.random.Generator(np.random.PCG64(SEED))
    at_once = max(1, 2**21 // plan.answers)
    found = []
    for start in range(0, runs, at_once):
        size = (min(at_once, runs - start), plan.answers)
        noise = chance.laplace(size=size) if kind == "laplace" else chance.normal(size=size)
        errors = plan.prefixes(noise, 0.0)
        high, low = errors.max(axis=1), errors.min(axis=1)
        found.append(np.array([np.maximum(high, -low), high - low]))
    return np.concatenate(found, axis=1)


def _bounded(plan: Decoder, kind: NoiseKind, confidence: float) -> float:
    """The smallest w with Σ over prefixes of a bound on Pr[|error| > w] at most 1 - confidence, by bisection.

    Gaussian: the normal tail. Laplace: an error is Σ a z over independent draws z of scale 1 with Σ 2a² = V, and |a| is
    at most A = 1/(the least weight), so it has log E exp(s error) <= V s²/2 / (1 - A² s²): Bernstein's bound with the
    best s of a grid.
    """
    from scipy.special import erfc

    variance = plan.interval_variance(0, np.arange(1, plan.leaves))
    grain = float(variance.max()) * 1e-4  # variances rounded up to few different ones
    shares, counts = np.unique(np.ceil(variance[variance > 0] / grain) * grain, return_counts=True)
    if isinstance(plan.strategy, Tree) and kind == "laplace":
        most = 1 / min(plan.strategy.weights)
        s = np.linspace(0.01, 0.99, 99)[:, None] / most
        spread = 2 * shares

        def chance(width: float) -> float:
            best = (-s * width + spread * s * s / 2 / (1 - (most * s) ** 2)).min(axis=0)
            return float(counts @ np.minimum(1.0, 2 * np.exp(np.minimum(best, 0.0))))

    elif kind == "gaussian":

        def chance(width: float) -> float:
            return float(counts @ erfc(width / np.sqrt(2 * shares)))

    else:
        raise ValueError("a convolution is for Gaussian noise")
    low, high = 0.0, float(np.sqrt(shares.max()))
    while chance(high) > 1 - confidence:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if chance(middle) <= 1 - confidence else (middle, high)
    return high
