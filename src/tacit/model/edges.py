"""Where the bins of an ordered attribute begin and end, as arrays. Public arithmetic."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.model.attribute import Attribute
from tacit.model.values import Listed, Point


def starts_of(starts: Sequence[Point]) -> NDArray[np.float64]:
    """Starts of bins as floats. Those of whole numbers are a range, of which no list is made."""
    if isinstance(starts, range):
        return np.arange(starts.start, starts.stop, starts.step, dtype=np.int64).astype(np.float64)
    return np.array(starts, dtype=np.float64)


def edges_of(attribute: Attribute) -> NDArray[np.float64]:
    """Where each bin of an ordered attribute starts, and where the last one ends."""
    assert not isinstance(attribute.values, Listed)
    return np.append(starts_of(attribute.values.starts), float(attribute.values.end))
