"""How wide the error bar of one weighted sum of integer noise must be. Public; nothing is drawn, anybody may call it.

Noise is whole numbers, so the quantile of a continuous law is too narrow where it is a few steps wide. What holds is
shown in four steps, for independent draws Z with weights a, U uniform on (-1/2, 1/2), and E = Σ a Z:

1. *A lemma* (Birnbaum 1948). X is more peaked than Y if |X| is stochastically smaller. In a sum of independent terms
   with symmetric unimodal laws, a term that is replaced by a less peaked one leaves the sum less peaked: the chance
   that the others and a number t are within h of 0 only falls with |t|. Such sums are symmetric and unimodal (Wintner).
2. *One draw.* Z + U is more peaked than Y. Laplace: Y is a continuous draw of scale 1 / (2 tanh(1/(2s))). For |Z + U|
   is larger than a whole m with probability exp(-m/s), than m + t with that times 1 - 2 t tanh(1/(2s)) where |t| is at
   most 1/2, and 1 - y <= exp(-y). Gaussian: Y is N(0, s² + 1/4). At m + 1/2 it holds because Pr[Z = z], over the chance
   that Y rounds to z, falls with |z|. In between `tests/release/test_interval_bar.py` computes both sides, for scales
   from 1/20 to 200; 0.2 would do in place of 1/4. U is more peaked than N(0, 1/(2π)), and than a Laplace draw of scale
   1/2, because their densities are at most 1, which is its own.
3. *Smoothing.* Let draws of equal weight c be added up first: a sum of them is symmetric and unimodal, as their laws
   are log-concave. Let W = Σ c U, one U for each different weight. If |E| > b, then |E + W| > b - w unless W points
   back by more than w. With C = Σ c² and w = k √(C/(2π)) that has a probability of at most 1 - Φ(k), whatever E is. So
   Pr[|E| > b] <= Pr[|E + W| > b - w] / Φ(k).
4. *Comparison.* E + W is symmetric and unimodal, so it is more peaked than E + W + Σ a U, and that, by the lemma, than
   W + Σ a Y. Where every draw has a U of its own, W is Σ a U itself, and E + W is more peaked than Σ a Y.

What is left is a sum of continuous draws (`continuous`). For little noise two more bounds hold: Chebyshev's, and
that discrete Gaussian noise is subgaussian with its scale (Canonne, Kamath & Steinke 2020). The smallest of all counts.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.model.noise_law import Noise, NoiseKind, variance

Floats = NDArray[np.float64]

_NORMAL = NormalDist()
_BACK = tuple(step / 2 for step in range(11))  # k of step 3, of which the best counts: more noise affords a larger one
_UNIFORM = 1 / math.sqrt(2 * math.pi)  # the deviation of a normal draw that U is more peaked than
_WIDER = 1 / 4  # what a Gaussian draw's variance is more in step 2


def half_widths(noise: Noise, squares: ArrayLike, confidence: float, distinct: float = math.inf) -> Floats:
    """An h with Pr[|Σ a Z| <= h] >= confidence, for each of many sums of independent draws Z of integer noise.

    squares: at least Σ a² of each sum. distinct: at least the sum of c² over the *different* weights c that each has;
    draws with equal weights make one lattice, so that the bar of a long sum is hardly wider than that of a normal law.
    """
    spread = np.asarray(squares, dtype=np.float64)
    found = np.sqrt(spread) * _of_one(noise, _miss(confidence))
    if math.isinf(distinct):
        return np.asarray(found)
    back, deviations = _pairs(noise.kind, _miss(confidence))
    w_too = distinct * (1 / 2 if noise.kind == "laplace" else _UNIFORM**2)  # the variance of what W is compared with
    law = np.sqrt(spread * wider(noise) ** 2 + w_too)
    for way, many in zip(back.tolist(), deviations.tolist(), strict=True):
        found = np.minimum(found, way * math.sqrt(distinct) + many * law)
    return np.asarray(found)


def continuous(kind: NoiseKind, confidence: float) -> float:
    """How many standard deviations a weighted sum of *continuous* draws stays within, with at least this probability.

    A sum of Laplace draws has heavier tails than a normal one, but no heavier than one draw's by itself, so the wider
    of the two is taken: at 95% it is 2.12 instead of 1.96. From 95% on that follows from a bound that
    `tests/release/test_interval_bar.py` evaluates; below, it is checked by simulation, not proved.
    """
    return _continuous(kind, _miss(confidence))


def wider(noise: Noise) -> float:
    """The standard deviation of the continuous draw that a draw of integer noise and U are compared with: step 2."""
    if noise.kind == "laplace":
        return 1 / (math.sqrt(2) * math.tanh(1 / (2 * noise.scale)))
    return math.sqrt(noise.scale**2 + _WIDER)


def smoothed(noise: Noise, confidence: float) -> tuple[float, float]:
    """Step 3 with the best k: the w for weights whose squares add up to 1, and the confidence that E + W then needs."""
    miss = _miss(confidence)
    back, deviations = _pairs(noise.kind, miss)
    best = int(np.argmin(back + deviations * wider(noise)))
    return float(back[best]), 1 - miss * _NORMAL.cdf(_BACK[best])


@lru_cache(maxsize=4096)
def _of_one(noise: Noise, miss: float) -> float:
    """The bar of a sum whose squares are 1, where every draw has a U of its own."""
    back, deviations = _pairs(noise.kind, miss)
    found = min(float((back + deviations * wider(noise)).min()), math.sqrt(variance(noise) / miss))
    return found if noise.kind == "laplace" else min(found, noise.scale * math.sqrt(2 * math.log(2 / miss)))


@lru_cache(maxsize=256)
def _pairs(kind: NoiseKind, miss: float) -> tuple[Floats, Floats]:
    """For each k the way back w, where C is 1, and how many deviations a continuous law needs with miss * Φ(k)."""
    deviations = [_continuous(kind, miss * _NORMAL.cdf(k)) for k in _BACK]
    return np.array(_BACK) * _UNIFORM, np.array(deviations)


def _continuous(kind: NoiseKind, miss: float) -> float:
    from scipy.special import erfcinv  # imported where it is needed: it takes a while

    normal = math.sqrt(2) * float(erfcinv(miss))
    return normal if kind == "gaussian" else max(normal, -math.log(miss) / math.sqrt(2))


def _miss(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence is above 0 and below 1, not {confidence!r}")
    return 1 - confidence
