"""The only place private noise comes from: exact samplers, seeded by the system. Called by the mechanisms.

OpenDP draws what is short, or wider than 2**40; long vectors come from `exact.table`, and wide Gaussian ones from
`exact.rejection`, tens of times faster. All have exactly the same law, and which of them draws is a matter of kind,
size and scale, which are public.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.exact import opendp, rejection, table
from tacit.model.budget import Measure
from tacit.model.noise_law import Noise

MAX_ONE_SIDED = 2.0**53  # a draw beyond 63 bits then has chance e^-1024


def add_noise(values: NDArray[np.int64], noise: Noise) -> NDArray[np.int64]:
    """`values` plus fresh, independent draws of `noise`, one for each entry.

    Guarantee: each draw has exactly the law of `noise` over the integers; a sum beyond 64 bits stops at the limit.
    Formula: Pr[z] ∝ exp(-|z|/scale) or exp(-z²/(2 scale²)), by rejection in rational arithmetic, or by inversion or
        rejection with lazy bits; no float is sampled.
    Source: Canonne, Kamath & Steinke 2020, algorithms 1-3, as implemented by OpenDP (make_laplace, make_gaussian); for
        the others see `exact.table` and `exact.rejection`.
    """
    # Exactly an array: a masked one would keep its masked values as they are.
    if type(values) is not np.ndarray or values.dtype != np.int64:
        raise TypeError("noise is added to a numpy array of int64")
    if rejection.suits(noise, values.size):
        return _sum(values, rejection.draw_gaussian(noise.scale, values.size).reshape(values.shape))
    if table.suits(noise, values.size):
        return _sum(values, table.draw_noise(noise, values.size).reshape(values.shape))
    drawn = opendp.sampler(noise.kind, noise.scale)(values.ravel())
    return np.array(drawn, dtype=np.int64).reshape(values.shape)


def draw_geometric(scale: float, size: int) -> NDArray[np.int64]:
    """`size` fresh draws of one-sided exponential noise over 0, 1, 2, …

    Guarantee: each draw has exactly the law Pr[z] ∝ exp(-z/scale), z >= 0.
    Formula: inversion for many; for few, discrete Laplace draws, those below 0 thrown away: on z >= 0 the two laws are
        proportional.
    Source: as `add_noise`.
    """
    noise = Noise("laplace", scale)
    if scale > MAX_ONE_SIDED:
        raise ValueError("one-sided noise of this scale could meet the limits of 64 bits")
    if table.suits(noise, size):
        return table.draw_one_sided(noise.scale, size)
    drawn = np.empty(0, dtype=np.int64)
    while drawn.size < size:  # at least half of the draws are kept, on average
        more = add_noise(np.zeros(2 * (size - drawn.size) + 2, dtype=np.int64), noise)
        drawn = np.concatenate([drawn, more[more >= 0]])
    return drawn[:size]


def noisy_max(scores: NDArray[np.int64], scale: float, measure: Measure) -> int:
    """The place of a large score.

    Guarantee: if scores move by at most d between neighbours: 2d/scale-DP, and for rho and gdp of that bounded range.
    Formula: epsilon: permute-and-flip, the largest of scores plus exponential noise, which is never worse than this:
        rho, gdp: Pr[i] ∝ exp(score_i/scale), the exponential mechanism, as the largest of scores plus Gumbel noise.
    Source: McSherry & Talwar 2007; McKenna & Sheldon 2020; Cesar & Rogers 2021; OpenDP's make_noisy_max.
    """
    return int(opendp.selector(scale, pure=measure == "epsilon")(scores))


def _sum(values: NDArray[np.int64], drawn: NDArray[np.int64]) -> NDArray[np.int64]:
    """The sums, stopped at the limits of 64 bits, where numpy would wrap around."""
    total = values + drawn
    limits = np.iinfo(np.int64)
    wrapped = ((values ^ total) & (drawn ^ total)) < 0  # two numbers of one sign, and a sum of the other
    return np.where(wrapped, np.where(drawn < 0, limits.min, limits.max), total)
