"""OpenDP's exact samplers, for what is short or very wide. Drawn from by `trusted.noise` only."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tacit.model.noise_law import NoiseKind


def load() -> None:
    """Load the samplers, which takes a second or two. Nothing is drawn."""
    import opendp.measurements  # noqa: F401


@lru_cache(maxsize=256)  # construction costs as much as a draw, and the scales in use are few
def sampler(kind: NoiseKind, scale: float) -> Any:
    """What adds independent draws of discrete Laplace or Gaussian noise of this scale to whole numbers."""
    # Imported here, because planning and reading a public file need not wait for it; and in parts, because OpenDP's
    # prelude also brings in every data frame library that it finds, which takes seconds.
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_gaussian, make_laplace
    from opendp.metrics import l1_distance, l2_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    # i64 by name: Python's int would mean 32 bits. The metrics matter only to OpenDP's own privacy maps, which are not
    # used: prices are in price.py. For integer vectors the sampler is the discrete one at exactly this scale.
    vector = vector_domain(atom_domain(T="i64"))
    if kind == "laplace":
        return make_laplace(vector, l1_distance(T="i64"), scale=scale)
    return make_gaussian(vector, l2_distance(T="f64"), scale=scale)


@lru_cache(maxsize=256)
def selector(scale: float, *, pure: bool) -> Any:
    """What finds the place of a large score: permute-and-flip if `pure`, else the exponential mechanism."""
    from opendp.domains import atom_domain, vector_domain
    from opendp.measurements import make_noisy_max
    from opendp.measures import max_divergence, zero_concentrated_divergence
    from opendp.metrics import linf_distance
    from opendp.mod import enable_features

    enable_features("contrib")
    vector = vector_domain(atom_domain(T="i64"))
    divergence = max_divergence() if pure else zero_concentrated_divergence()
    return make_noisy_max(vector, linf_distance(T="i64"), divergence, scale=scale)
