"""The mixture of products that fits all released answers as well as their noise asks for. Post-processing.

`fit_mixture` minimises over weights w and laws p of a mixture of K products

    sum over noisy numbers y of (q(P) - y)² / (2 variance)  +  pull * sum over k of w_k KL(p_k || start),

with shares and variances of shares, where `start` makes the attributes independent. The second term is at least
pull * KL(P || start), since relative entropy is convex: the prior of `fit`, from above. It holds components back that
only noise asks for. How far above depends on how many components the answers can tell apart, so the pull grows with
their precision: of 50 to 800 the best was about 100 on Adult with 14 attributes and on diamonds for epsilon 0.1, 200
for 0.3 and 400 for 1, and `PULL` over the fourth root of the noise's energy was within 4 % of the best in all of them.

`mixture_problem` has the misfit and its slope. The minimum is looked for by Adam (Kingma & Ba 2015) on logarithms, from
a start drawn with a public seed; it is a local one. Where interactions of three are known so precisely that the
components cannot follow them all, every component becomes two, and the search goes on. Where there is a graphics card
and the matrices are large, they lie there: the minimum fits as well, and its last digits differ.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.release.hypothesis.arrays import MEMORY, room, torch_device
from tacit.release.hypothesis.fit import StepProgress
from tacit.release.hypothesis.mixture import Mixture
from tacit.release.hypothesis.mixture_problem import AnyArray, Problem, softmax
from tacit.release.hypothesis.prior import Prior

COMPONENTS, STEPS, AGAIN = 200, 1000, 60  # of a first fit, and steps of one that goes on from an earlier one
DOUBLINGS, FURTHER = 2, 400  # of the components at most, and the steps after each
SETTLED = 1.5  # times the number of noisy numbers: a larger misfit is not the noise's
_ENOUGH = 1.0  # times that number: a misfit at which more components would follow the noise
_APART = 0.3  # the deviation of logarithms between the two that a component becomes
_FAST, _SLOW = 0.1, 0.03  # the size of a step on logarithms, in a first fit and when going on
_MEMORY = (0.9, 0.99)  # Adam's
_FOR_A_CARD = 10**8  # multiplications of a step: a graphics card, where there is one, is faster from here on
Floats32 = NDArray[np.float32]
Logarithms = tuple[Floats32, Floats32]  # of the laws, a line for each component, and of the weights


@dataclass(frozen=True, eq=False)
class FittedMixture:
    """A mixture, the sum of squared residuals in standard deviations, and how many noisy numbers it was fitted to."""

    hypothesis: Mixture
    misfit: float
    numbers: int
    logits: Floats32
    log_weights: Floats32

    @property
    def settled(self) -> bool:
        """Whether what is left is about as large as the noise."""
        return self.misfit <= SETTLED * self.numbers


def fit_mixture(
    domain: Domain,
    measured: Iterable[Measured],
    rows: int,
    *,
    components: int = COMPONENTS,
    prior: Prior | None = None,
    steps: int | None = None,
    before: FittedMixture | None = None,
    progress: StepProgress | None = None,
) -> FittedMixture:
    """Fit released answers to linear questions; others say nothing here. With `before`, go on from an earlier fit."""
    number = components if before is None else len(before.log_weights)
    on_card = sum(domain.shape) ** 2 * number >= _FOR_A_CARD and room()
    problem = Problem(domain, list(measured), rows, device=torch_device() if on_card else MEMORY, prior=prior)
    rng = np.random.Generator(np.random.PCG64(0))  # public, and the same for everybody
    if before is None:
        noise = rng.standard_normal((components, problem.width))
        start = (problem.start + noise).astype(np.float32), np.zeros(components, dtype=np.float32)
        counts = [STEPS if steps is None else steps]
        counts += [FURTHER] * DOUBLINGS if problem.tables and steps is None else []
    else:
        start = before.logits, before.log_weights
        counts = [AGAIN if steps is None else steps]
    done, every = 0, sum(counts)
    for count in counts:
        if done:
            start = _doubled(*start, rng)
        tell = None if progress is None else partial(_told, progress, done, every)
        start = _descended(problem, start, count, _FAST if before is None else _SLOW, rng, tell)
        done += count
        fitted = _fitted(problem, domain, *start)
        if fitted.misfit <= _ENOUGH * fitted.numbers:
            break
    if progress is not None:
        progress(every, every)
    return fitted


def _told(progress: StepProgress, done: int, every: int, step: int) -> None:
    progress(done + step, every)


def _fitted(problem: Problem, domain: Domain, logits: Floats32, log_weights: Floats32) -> FittedMixture:
    shares = softmax(np, log_weights.astype(np.float64)[None], [slice(0, len(log_weights))])[0]
    laws = softmax(np, logits.astype(np.float64), problem.blocks)
    hypothesis = Mixture(domain, shares, [laws[:, block] for block in problem.blocks])
    misfit = problem.misfit(problem.device.hold(laws), problem.device.hold(shares))
    return FittedMixture(hypothesis, misfit, problem.numbers, logits, log_weights)


def _descended(
    problem: Problem,
    start: Logarithms,
    count: int,
    fast: float,
    rng: np.random.Generator,
    tell: Callable[[int], None] | None,
) -> Logarithms:
    """Where `count` steps of Adam lead; the last half of them are smaller and smaller."""
    device = problem.device
    logits, log_weights = (device.hold(one) for one in start)
    adam = _Adam(logits, device.xp), _Adam(log_weights, device.xp)
    turns = problem.turns(rng)
    for step in range(1, count + 1):
        size = fast * min(1.0, 2 * (1 - step / count) + 0.02)
        for one, slope in zip(adam, problem.slopes(logits, log_weights, next(turns)), strict=True):
            one.move(slope, size, step)
        if tell is not None:
            tell(step)
    return device.back(logits), device.back(log_weights)


def _doubled(logits: Floats32, log_weights: Floats32, rng: np.random.Generator) -> Logarithms:
    """Two components in the place of each, a little apart: the same mixture, nearly."""
    apart = _APART * rng.standard_normal((2 * len(logits), logits.shape[1]))
    return (np.tile(logits, (2, 1)) + apart).astype(np.float32), np.tile(log_weights, 2)


class _Adam:
    """Moves values in place, along slopes that it remembers."""

    def __init__(self, values: AnyArray, xp: Any) -> None:
        self.values, self.xp, self.mean, self.square = values, xp, xp.zeros_like(values), xp.zeros_like(values)

    def move(self, slope: AnyArray, size: float, step: int) -> None:
        first, second = _MEMORY
        self.mean += (1 - first) * (slope - self.mean)
        self.square += (1 - second) * (slope * slope - self.square)
        spread = self.xp.sqrt(self.square / (1 - second**step)) + 1e-12
        self.values -= size / (1 - first**step) * self.mean / spread
