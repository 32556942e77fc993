"""Wider bins: where they begin, by one multiple after the other, and at once."""

from __future__ import annotations

import math
from bisect import bisect_left
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import InvalidQuery
from tacit.model.attribute import Attribute, date, integer, numeric
from tacit.model.bands import by_width
from tacit.model.formula import edges_of
from tacit.model.values import Listed

STEPS = [0.1, 0.3, 0.5, 1, 2, 2.5, 3, 7, 10, 1e-3, 2**60, 1e300, 3e-17]


def one_by_one(attribute: Attribute, width: float) -> list[tuple[int, float]] | None:
    """The first bin of each wider one, and where that begins; None where a declared bin would be cut."""
    assert not isinstance(attribute.values, Listed)
    step, starts = Fraction(str(width)), attribute.values.starts
    first = math.floor(Fraction(str(starts[0])) / step)
    last = math.ceil(Fraction(str(attribute.values.end)) / step)
    if last - first - 2 >= attribute.bins:
        return None
    found = [(0, float(first * step))]
    for k in range(first + 1, last):
        at = bisect_left(starts, float(k * step))
        if at == len(starts) or starts[at] != float(k * step):
            return None
        found.append((at, float(k * step)))
    return found


@st.composite
def attributes(draw: st.DrawFn) -> Attribute:
    if draw(st.booleans()):
        low, width = draw(st.integers(-50, 50) | st.just(2**51)), draw(st.integers(1, 7))
        return integer(low, low + width * draw(st.integers(1, 200)) - 1, width=width)
    tenth = draw(st.sampled_from([0.1, 0.5, 1, 2.5]))
    steps = draw(st.lists(st.integers(1, 4), min_size=1, max_size=150))
    at = accumulate(steps, initial=draw(st.integers(-40, 40)))
    return numeric([float(Fraction(str(tenth)) * k) for k in at])


@given(attributes(), st.sampled_from(STEPS) | st.integers(1, 40))
def test_wider_bins_begin_where_each_multiple_says(attribute: Attribute, width: float) -> None:
    announced = list[int]()
    wanted = one_by_one(attribute, width)
    if wanted is None:
        with pytest.raises(InvalidQuery, match="would cut the declared ones"):
            by_width("a", attribute, width, announced.append)
        assert announced == []
        return
    bands = by_width("a", attribute, width, announced.append)
    assert announced == [len(wanted)]
    assert [part[0] for part in bands.parts] == [at for at, _ in wanted]
    assert list(bands.values) == [begin for _, begin in wanted]
    assert all(type(one) is (int if isinstance(width, int) else float) for one in bands.values)


@pytest.mark.parametrize(
    "attribute", [integer(-3, 96, width=5), numeric([0, 0.1, 7, 1e20]), date("2024-01-01", "2024-12-31", by="month")]
)
def test_edges_at_once_are_those_of_each_bin(attribute: Attribute) -> None:
    assert np.array_equal(edges_of(attribute), [float(attribute.edge(i)) for i in range(attribute.bins + 1)])
