"""Which arrays get noise, and that every entry gets its own: on the short route, by OpenDP, and on both long ones."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.exact import opendp as noise_opendp
from tacit.exact import rejection
from tacit.exact import table as noise_table
from tacit.model.noise_law import Noise, NoiseKind
from tacit.trusted import noise as noise_module
from tacit.trusted.noise import MAX_ONE_SIDED, add_noise, draw_geometric

KINDS: tuple[NoiseKind, ...] = ("laplace", "gaussian")
SIDE = 150  # of a square that is long enough for the tables
WIDE = 2.0**45  # a scale at which two draws are equal with a chance below 2^-45


class Sub(np.ndarray[Any, Any]):
    """An array that could answer for itself."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [4, 5000])
def test_only_plain_arrays_are_taken(kind: NoiseKind, size: int) -> None:
    # A masked array keeps its masked entries as they are when something is added to it: they would be told exactly.
    values = np.arange(size, dtype=np.int64)
    add_noise(values, Noise(kind, 100.0))
    for wrong in (np.ma.MaskedArray(values, mask=values % 2 == 0), values.view(Sub), values.astype(">i8")):
        with pytest.raises(TypeError):
            add_noise(wrong, Noise(kind, 100.0))


ROUTES = [
    (Noise("laplace", WIDE), (3, 4), "opendp"),
    (Noise("gaussian", WIDE), (3, 4), "opendp"),
    (Noise("laplace", 2.0**39), (SIDE, SIDE), "table"),
    (Noise("gaussian", 1000.0), (SIDE, SIDE), "table"),
    (Noise("gaussian", 2.0**39), (SIDE, SIDE), "wide"),
]


def check_independent(noisy: NDArray[np.int64]) -> None:
    """No row or column is another one's, even but for a shift by one value, and few entries are equal at all.

    Honest noise of the scales above fails this with a chance below 2^-35: two of a dozen draws at 2^45 are equal.
    """
    for lines in (noisy, noisy.T, np.diff(noisy), np.diff(noisy.T)):
        assert len(np.unique(lines, axis=0)) == len(lines)
    assert len(np.unique(noisy)) > noisy.size // 16


@pytest.mark.parametrize(("noise", "shape", "route"), ROUTES, ids=str)
def test_every_entry_of_a_table_gets_noise_of_its_own(noise: Noise, shape: tuple[int, int], route: str) -> None:
    # Catches one draw for a whole row, or for a whole column.
    size = math.prod(shape)
    wide, table = rejection.suits(noise, size), noise_table.suits(noise, size)
    assert route == ("wide" if wide else "table" if table else "opendp")
    check_independent(add_noise(np.zeros(shape, dtype=np.int64), noise))
    check_independent(add_noise(np.zeros(shape[::-1], dtype=np.int64).T, noise))


@pytest.mark.parametrize(("noise", "shape", "route"), ROUTES, ids=str)
def test_every_way_to_draw_is_asked_for_this_very_law(
    noise: Noise, shape: tuple[int, int], route: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The samplers are held against their laws elsewhere; here is what they are asked for.
    asked: list[tuple[str, NoiseKind, float, int]] = []
    sevens = np.full(math.prod(shape), 7, dtype=np.int64)

    def sampler(kind: NoiseKind, scale: float) -> Any:
        return lambda values: (asked.append(("opendp", kind, scale, len(values))), values + 7)[1]

    def draw_noise(law: Noise, size: int) -> NDArray[np.int64]:
        asked.append(("table", law.kind, law.scale, size))
        return sevens

    def draw_gaussian(scale: float, size: int) -> NDArray[np.int64]:
        asked.append(("wide", "gaussian", scale, size))
        return sevens

    monkeypatch.setattr(noise_opendp, "sampler", sampler)
    monkeypatch.setattr(noise_table, "draw_noise", draw_noise)
    monkeypatch.setattr(rejection, "draw_gaussian", draw_gaussian)
    assert (add_noise(np.ones(shape, dtype=np.int64), noise) == 8).all()
    assert asked == [(route, noise.kind, noise.scale, sevens.size)]


@pytest.mark.parametrize(("noise", "shape", "route"), ROUTES, ids=str)
def test_planted_noise_that_is_shared_is_caught(noise: Noise, shape: tuple[int, int], route: str) -> None:
    line = add_noise(np.zeros(shape[1], dtype=np.int64), noise)
    column = add_noise(np.zeros((shape[0], 1), dtype=np.int64), noise)
    for shared in (np.broadcast_to(line, shape), np.broadcast_to(column, shape), line + column):
        with pytest.raises(AssertionError):
            check_independent(np.ascontiguousarray(shared))


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_more_than_32_bits_are_kept_on_the_short_route(kind: NoiseKind) -> None:
    # At this scale the noise is 0 but for a chance below e^-1000.
    noise = Noise(kind, 0.001)
    assert not noise_table.suits(noise, 1)
    for value in (2**40, -(2**40), 2**31, -(2**31) - 1, 2**53 + 1, 2**62 + 1, -(2**62) - 1):
        assert add_noise(np.array([value], dtype=np.int64), noise).tolist() == [value]


@pytest.mark.parametrize("count", [0, 1, 3, 1000])
def test_words_are_exactly_the_systems_bytes(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Catches words with bits that are always 0, or that come twice.
    given: list[bytes] = []
    urandom = os.urandom

    def recorded(size: int) -> bytes:
        given.append(urandom(size))
        return given[-1]

    monkeypatch.setattr(os, "urandom", recorded)
    words = noise_table.system_words(count)
    assert words.dtype == np.uint64
    assert words.tobytes() == b"".join(given)
    assert len(words) == count


def test_few_one_sided_draws_are_two_sided_ones_that_are_not_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    # On 0, 1, 2, … both laws are proportional, 0 included; folding the negative ones over would count them twice.
    given = iter([[-3, 0, 5, -1, -1, -7, -2, -2], [-4, -4, 0, 2, -1, 9]])
    asked: list[Noise] = []

    def add_noise(values: NDArray[np.int64], noise: Noise) -> NDArray[np.int64]:
        asked.append(noise)
        return values + np.array(next(given)[: values.size])

    monkeypatch.setattr(noise_module, "add_noise", add_noise)
    assert draw_geometric(WIDE, 3).tolist() == [0, 5, 0]
    assert asked == [Noise("laplace", WIDE)] * 2


@pytest.mark.parametrize("size", [1, 5000])
def test_one_sided_noise_stays_away_from_the_limits_of_64_bits(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Draws that stop at the limit would not have their law; at 2^53 one is there with chance e^-1024.
    assert draw_geometric(MAX_ONE_SIDED, 1).tolist()[0] >= 0
    assert MAX_ONE_SIDED == 2.0**53
    monkeypatch.setattr(noise_module, "add_noise", lambda *_: pytest.fail("drawn"))
    for scale in (math.nextafter(MAX_ONE_SIDED, math.inf), 2.0**60):
        with pytest.raises(ValueError, match="64 bits"):
            draw_geometric(scale, size)
