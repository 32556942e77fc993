"""Private noise of the right law from a fixed seed, in place of the system's: no test that uses it fails by chance.

Every test starts from the seed (`conftest.py`), and sees what one run of the real mechanism could have given it. A test
marked `real_noise` has the system's draws, and its own argument that it fails less often than once in a billion runs.
The samplers themselves are never replaced: `exact/`, `statistical/` and `trusted/test_noise*` call them directly.
"""

from __future__ import annotations

import math
import sys

import numpy as np
from numpy.typing import NDArray

from tacit.model.budget import Measure
from tacit.model.noise_law import Noise, pmf
from tacit.trusted import noise  # noqa: F401: who draws is imported before the first test

_REAL = {"add_noise": noise.add_noise, "draw_geometric": noise.draw_geometric, "noisy_max": noise.noisy_max}
_SMALL = 64  # up to this scale a Gaussian draw is looked up in its table; above, rounding a real one is as good
_rng = np.random.default_rng(0)


def begin(*, real: bool = False) -> None:
    """From here on, whoever draws noise gets it from the seed, from its start, or from the system."""
    global _rng
    _rng = np.random.default_rng(0)
    users = [module for name, module in sys.modules.items() if name.startswith(("tacit.", "benchmarks."))]
    for module in users:
        for name in _REAL:
            if module is not noise and vars(module).get(name) in (_REAL[name], _SEEDED[name]):
                setattr(module, name, (_REAL if real else _SEEDED)[name])


def _add_noise(values: NDArray[np.int64], law: Noise) -> NDArray[np.int64]:
    return noise._sum(values, _draws(law, values.size).reshape(values.shape))


def _draws(law: Noise, size: int) -> NDArray[np.int64]:
    if law.kind == "laplace":
        return _draw_geometric(law.scale, size) - _draw_geometric(law.scale, size)
    if law.scale > _SMALL:
        return np.rint(_rng.normal(0.0, law.scale, size)).astype(np.int64)
    reach = np.arange(-math.ceil(12 * law.scale), math.ceil(12 * law.scale) + 1)
    mass = pmf(law, reach)
    return _rng.choice(reach, size, p=mass / mass.sum()).astype(np.int64)


def _draw_geometric(scale: float, size: int) -> NDArray[np.int64]:
    return np.floor(_rng.exponential(scale, size)).astype(np.int64)  # Pr[z] = exp(-z/scale) - exp(-(z + 1)/scale)


def _noisy_max(scores: NDArray[np.int64], scale: float, measure: Measure) -> int:
    drawn = _rng.exponential(size=scores.size) if measure == "epsilon" else _rng.gumbel(size=scores.size)
    return int(np.argmax(scores + scale * drawn))


_SEEDED = {"add_noise": _add_noise, "draw_geometric": _draw_geometric, "noisy_max": _noisy_max}
