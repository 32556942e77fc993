"""Noise from tables has exactly its law: the bounds hold, the decisions follow, and the parts make up the whole.

The reference is mpmath at 500 bits, by other formulas: closed forms for geometric laws, one exponential for each weight
and Poisson's summation for the total of Gaussian ones. No statistics: the measure of all bit strings that lead to an
outcome is added up by enumeration, with words of a few bits. Planted bugs must fail the same check.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.exact import table as noise_table
from tacit.exact.table import Cuts, Law, draw, draw_noise, draw_one_sided, enclose
from tacit.model.noise_law import Noise

mp = mpmath.mp.clone()
mp.prec = 500
SLACK = mp.ldexp(1, -300)  # of the reference
SCALES = (0.05, 0.3, 1.0, math.pi, 0.1 + 0.2, 7.999999999999999, 40.0, 1000.5)


def real(x: Fraction) -> mpmath.mpf:
    return mp.mpf(x.numerator) / x.denominator


def geometric(scale: float, end: int | None = None) -> Law:
    return Law(1 / Fraction(scale), end=end)


def gaussian(scale: float) -> Law:
    return Law(1 / (2 * Fraction(scale) ** 2), 1 / Fraction(scale) ** 2, folded=True)


def cumulative(law: Law, count: int) -> list[mpmath.mpf]:
    """F(0), …, F(count - 1), and not by the recurrence under test."""
    x = real(law.first)
    if law.then == 0:
        whole = 1 - mp.exp(-x * law.end) if law.end else mp.one
        return [(1 - mp.exp(-x * (k + 1))) / whole for k in range(count)]
    total = both_sides(x)
    return list(itertools.accumulate((1 if k == 0 else 2) * mp.exp(-x * k * k) / total for k in range(count)))


def both_sides(x: mpmath.mpf) -> mpmath.mpf:
    """The sum of exp(-x k²) over all integers: by Poisson, sqrt(pi/x) times the same sum for pi²/x instead of x."""
    if x < mp.pi:  # the one of the two that needs but a handful of terms
        return mp.sqrt(mp.pi / x) * both_sides(mp.pi**2 / x)
    return 1 + 2 * mp.fsum(mp.exp(-x * k * k) for k in range(1, 20))  # what is left out is below exp(-1200)


LAWS = [
    *(geometric(s) for s in SCALES),
    *(geometric(s, end) for s in SCALES for end in (2, 256)),
    *(gaussian(s) for s in SCALES),
]
FEW = [
    geometric(0.3),
    geometric(1.3),
    geometric(1.3, 2),
    geometric(2.5, 5),
    gaussian(0.4),
    gaussian(1.7),
    gaussian(5.5),
]


def check_bounds(law: Law, bits: int, cuts: Cuts) -> None:
    upper, lower = cuts
    assert len(lower) == len(upper) + 1
    assert upper == sorted(upper)
    for k, f in enumerate(cumulative(law, len(lower))):
        exact = mp.ldexp(f, bits)
        assert lower[k] <= exact + SLACK
        bound = upper[k] if k < len(upper) else 2**bits
        assert exact <= bound + SLACK
        assert bound - lower[k] <= 2  # wide bounds would hold, and decide nothing
    assert lower[-1] >= 2**bits - 2  # and the table goes on to the end


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_the_bounds_enclose_the_law(law: Law) -> None:
    check_bounds(law, 64, enclose(law, 64))


@pytest.mark.parametrize("bits", [1, 6, 63, 128, 192])
@pytest.mark.parametrize("law", FEW, ids=str)
def test_the_bounds_enclose_the_law_at_every_precision(law: Law, bits: int) -> None:
    check_bounds(law, bits, enclose(law, bits))


@pytest.mark.parametrize("law", [geometric(1.0), geometric(40.0, 256), gaussian(math.pi)], ids=str)
def test_bounds_wrong_in_their_last_bits_are_caught(law: Law) -> None:
    upper, lower = enclose(law, 64)
    nearby = Law(law.first * (1 + Fraction(1, 2**56)), law.then, law.end, law.folded)
    for wrong in (
        ([bound - 1 for bound in upper], lower),
        (upper, [bound + 1 for bound in lower]),
        (upper[:-9], lower[:-9]),  # without its end
        ([bound + 2 for bound in upper], lower),
        enclose(nearby, 64),
    ):
        with pytest.raises(AssertionError):
            check_bounds(law, 64, wrong)


@pytest.mark.audit
@pytest.mark.parametrize("scale", [6543.21, 13_000.0])
def test_the_bounds_enclose_the_widest_gaussian(scale: float) -> None:
    check_bounds(gaussian(scale), 64, enclose(gaussian(scale), 64))


@pytest.mark.parametrize("unit", [70, 128, 256])
@pytest.mark.parametrize("x", [0, 1e-300, 2.0**-80, 1 / 3, 0.5, 1, math.pi, 20.1, 127.9, 128.1, 255.5, 256.5, 1e300])
def test_the_exponential_is_enclosed(x: float, unit: int) -> None:
    low, high = noise_table.enclose_exp(Fraction(x), unit)
    exact = mp.ldexp(mp.exp(-mp.mpf(x)), unit)
    assert low <= exact + SLACK
    assert exact <= high + SLACK
    assert high - low <= 2


# The decisions, by enumeration of bit strings


class ReadOn(Exception):
    """The bits given do not decide the draw."""


def given(bits: tuple[int, ...]) -> Callable[[int], NDArray[np.uint64]]:
    left = iter(bits)

    def words(count: int) -> NDArray[np.uint64]:
        taken = list(itertools.islice(left, count))
        if len(taken) < count:
            raise ReadOn
        return np.array(taken, dtype=np.uint64)

    return words


def outcomes(law: Law, width: int, depth: int) -> Iterator[tuple[tuple[int, ...], int | None]]:
    """All strings of up to `depth` words that decide the draw; and those of `depth` words that do not, with None."""
    strings: list[tuple[int, ...]] = [()]
    for level in range(1, depth + 1):
        undecided = []
        for string in ((*s, w) for s in strings for w in range(2**width)):
            try:
                yield string, int(draw(law, 1, given(string), width)[0])
            except ReadOn:
                undecided.append(string)
                if level == depth:
                    yield string, None
        strings = undecided


def check_decisions(law: Law, width: int, depth: int) -> None:
    """Every decided string lies where its outcome does, no outcome gets too much, and little is left undecided."""
    found = list(outcomes(law, width, depth))
    reach = max(k for _, k in found if k is not None) + 1
    edges = [mp.zero, *cumulative(law, reach)]
    measure = [mp.zero] * reach
    undecided = mp.zero
    for string, k in found:
        size = mp.ldexp(1, -width * len(string))
        start = sum(mp.ldexp(w, -width * (i + 1)) for i, w in enumerate(string))
        if k is None:
            undecided += size
            continue
        assert edges[k] - SLACK <= start
        assert start + size <= edges[k + 1] + SLACK
        measure[k] += size
    for k, total in enumerate(measure):
        exact = edges[k + 1] - edges[k]
        assert total <= exact + SLACK
        assert exact <= total + undecided + SLACK
    assert undecided <= mp.ldexp(3 * (reach + 1), -width * depth)  # at most 3 strings at each edge: this goes to 0
    assert abs(sum(measure) + undecided - 1) < SLACK


@pytest.fixture
def _fresh_tables() -> Iterator[None]:
    for cache in (noise_table._table, noise_table._finer):
        cache.cache_clear()
    yield
    for cache in (noise_table._table, noise_table._finer):
        cache.cache_clear()


@pytest.mark.usefixtures("_fresh_tables")
@pytest.mark.parametrize(("width", "depth"), [(1, 14), (3, 5), (6, 3), (8, 2)])
@pytest.mark.parametrize("law", FEW, ids=str)
def test_the_bits_that_lead_to_an_outcome_measure_its_probability(law: Law, width: int, depth: int) -> None:
    check_decisions(law, width, depth)


def floors(cuts: Cuts, bits: int) -> Cuts:
    return cuts[1][:-1], cuts[1]


def undecided_to_the_left(cuts: Cuts, bits: int) -> Cuts:
    upper, lower = cuts
    return upper, [*upper, lower[-1]]


def no_tail(cuts: Cuts, bits: int) -> Cuts:
    upper, lower = cuts
    return upper, [*lower[:-1], 2**bits]


def off_by_one(cuts: Cuts, bits: int) -> Cuts:
    upper, lower = cuts
    return upper[1:], lower[1:]


def equal_weights(cuts: Cuts, bits: int) -> Cuts:
    count = len(cuts[1])
    even = [2**bits * (k + 1) // count for k in range(count)]
    return even[:-1], even


@pytest.mark.usefixtures("_fresh_tables")
@pytest.mark.parametrize("bug", [floors, undecided_to_the_left, no_tail, off_by_one, equal_weights])
@pytest.mark.parametrize("law", [geometric(1.3), gaussian(1.7)], ids=str)
@pytest.mark.parametrize(("width", "depth"), [(3, 5), (6, 3)])
def test_planted_bugs_are_caught(
    bug: Callable[[Cuts, int], Cuts], law: Law, width: int, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noise_table, "enclose", lambda law, bits: bug(enclose(law, bits), bits))
    with pytest.raises(AssertionError):
        check_decisions(law, width, depth)


@pytest.mark.usefixtures("_fresh_tables")
def test_a_scale_wrong_in_its_ninth_digit_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = geometric(1.3 * (1 + 1e-9))
    monkeypatch.setattr(noise_table, "enclose", lambda law, bits: enclose(wrong, bits))
    with pytest.raises(AssertionError):
        check_decisions(geometric(1.3), 6, 6)


@pytest.mark.usefixtures("_fresh_tables")
@pytest.mark.parametrize("law", FEW, ids=str)
def test_a_vector_is_decided_like_its_entries(law: Law) -> None:
    # Catches undecided entries put back in another's place: the words of each are known by their first.
    first = np.random.Generator(np.random.PCG64(3)).permutation(np.arange(2**6, dtype=np.uint64))
    zeros = (0,) * 20
    one_by_one = [int(draw(law, 1, given((int(w), *zeros)), 6)[0]) for w in first]
    calls = iter([first])
    together = draw(law, len(first), lambda n: next(calls, np.zeros(n, dtype=np.uint64)), 6)
    assert together.tolist() == one_by_one


@pytest.mark.parametrize(("law", "full"), [(geometric(1.0), 2), (gaussian(3.0), 3), (geometric(5.0), 4)], ids=str)
def test_what_lies_beyond_the_table_is_drawn_and_not_cut(law: Law, full: int) -> None:
    # All bits set, for some words: U is just below 1, far beyond the last entry of the first table.
    first_table = len(enclose(law, 64)[1])
    k = int(draw(law, 1, given((*[2**64 - 1] * full, 0)))[0])
    below, above = cumulative(law, k + 1)[-2:]
    assert below <= 1 - mp.ldexp(1, -64 * full) < above
    assert k > first_table


# The parts make up the whole


def weights(law: Law, count: int) -> NDArray[np.object_]:
    f = cumulative(law, count)
    return np.array([f[0], *(b - a for a, b in itertools.pairwise(f))], dtype=object)


@pytest.mark.parametrize("scale", [8.5, 30.0, 100.7, 700.1])
def test_sign_and_digits_make_up_the_discrete_laplace(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    # Every combination of parts is drawn once; its probability is the product of the parts'.
    s = Fraction(scale)
    sign, low, high = Law(1 / s, end=2), Law(1 / s, end=256), Law(256 / s)
    grid = np.array(list(itertools.product(range(2), range(256), range(4))), dtype=np.int64)
    parts = {sign: grid[:, 0], low: grid[:, 1], high: grid[:, 2]}
    asked: list[Law] = []

    def fake(law: Law, size: int) -> NDArray[np.int64]:
        asked.append(law)
        return parts[law].copy()

    monkeypatch.setattr(noise_table, "draw", fake)
    digits = weights(low, 256)[grid[:, 1]] * weights(high, 4)[grid[:, 2]]
    chances = weights(sign, 2)[grid[:, 0]] * digits
    drawn = draw_noise(Noise("laplace", scale), len(grid))
    assert len(asked) == 3
    assert set(asked) == {sign, low, high}  # each drawn once, on its own
    assert sorted(drawn.tolist()) == list(range(-1024, 1024))
    p = mp.tanh(1 / (2 * real(s)))
    for z, chance in zip(drawn.tolist(), chances, strict=True):
        assert abs(chance - p * mp.exp(-abs(z) / real(s))) < SLACK
    one_sided = draw_one_sided(scale, len(grid))
    assert set(one_sided.tolist()) == set(range(1024))
    for z, chance in zip(one_sided.tolist(), digits, strict=True):
        assert abs(chance - (1 - mp.exp(-1 / real(s))) * mp.exp(-z / real(s))) < SLACK


def test_magnitude_and_sign_make_up_the_discrete_gaussian(monkeypatch: pytest.MonkeyPatch) -> None:
    scale = 1.7
    magnitudes = np.repeat(np.arange(12, dtype=np.int64), 2)  # each with either sign

    def fake(law: Law, size: int) -> NDArray[np.int64]:
        assert law == gaussian(scale)
        return magnitudes[:size].copy()

    monkeypatch.setattr(noise_table, "draw", fake)
    monkeypatch.setattr(os, "urandom", lambda count: b"\x55" * count)  # the signs +, -, +, -, …
    drawn = draw_noise(Noise("gaussian", scale), 24)
    each = np.repeat(weights(gaussian(scale), 12), 2) / 2
    x = 1 / (2 * real(Fraction(scale)) ** 2)
    for z in range(-11, 12):
        exact = mp.exp(-x * z * z) / both_sides(x)
        assert abs(sum(each[drawn == z]) - exact) < SLACK


@pytest.mark.parametrize("scale", [0.3, 8.0, 8.1, 2048.0, 1e6 + 0.1, 2.0**40])
def test_the_digits_of_a_scale_are_exact_and_small(scale: float) -> None:
    laws = noise_table._digits(scale)
    for place, law in enumerate(laws):
        assert law.first == 256**place / Fraction(scale)
        assert law.then == 0
        assert law.end == (256 if place < len(laws) - 1 else None)
    assert 1 / laws[-1].first <= 8


# With hardly any guard bits, every rounding in the wrong direction shows


def nearly(bits: int, guard: int) -> Iterator[Law]:
    """Laws whose first cumulative probability is a hair's breadth from a whole number of steps of 2**-bits."""
    for m in range(2**bits // 4 + 1, 2**bits - 1, max(1, 2**bits // 8)):
        for hair in (2 ** -(guard + 2), -(2 ** -(guard + 2)), 2 ** -(guard + 4)):
            p = (m + mp.mpf(hair)) / 2**bits
            for x, end in ((-mp.log(1 - p), None), (mp.log(p / (1 - p)), 2)):  # F(0) = 1 - exp(-x) and 1/(1 + exp(-x))
                if x > 0:
                    yield Law(Fraction(int(mp.ldexp(x, 400)), 2**400), end=end)


def check_coarse(laws: Iterable[Law], bits: int) -> None:
    for law in laws:
        upper, lower = enclose(law, bits)
        for k, f in enumerate(cumulative(law, len(lower))):
            exact = mp.ldexp(f, bits)
            assert lower[k] <= exact + SLACK
            assert k >= len(upper) or exact <= upper[k] + SLACK


@pytest.mark.parametrize("guard", [10, 11, 12, 14, 16])  # with fewer the sums may never end
@pytest.mark.parametrize("bits", [2, 4, 8, 16])
def test_the_bounds_hold_with_few_guard_bits(guard: int, bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(noise_table, "_GUARD", guard)
    scales = [0.05, 0.3, 1.0, math.pi, 6.5, 8.0]
    laws = [*(geometric(s, end) for s in scales for end in (None, 2, 5, 40)), *(gaussian(s) for s in scales)]
    check_coarse([*laws, *nearly(bits, guard)], bits)


def test_a_law_that_is_off_by_less_than_the_guard_bits_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    guard, bits = 10, 8
    monkeypatch.setattr(noise_table, "_GUARD", guard)
    exp = noise_table.enclose_exp
    monkeypatch.setattr(noise_table, "enclose_exp", lambda x, unit: (exp(x, unit)[0],) * 2)  # both rounded down
    with pytest.raises(AssertionError):
        check_coarse(nearly(bits, guard), bits)
