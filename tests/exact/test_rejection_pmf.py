"""Wide Gaussian noise by rejection has exactly its law: the exponents add up, the coin is exact, its floats stay apart.

No statistics. The exponents are compared as fractions. The measure of all bit strings that lead to an outcome is added
up by enumeration, with words of a few bits, and held against mpmath at 500 bits. The float bounds are compared as
fractions, and coins next to every threshold are decided as mpmath decides them. Planted bugs must fail the same checks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.exact import rejection
from tacit.exact.rejection import Cells, draw_gaussian, propose
from tacit.exact.table import DrawWords, Law

mp = mpmath.mp.clone()
mp.prec = 500
SLACK = mp.ldexp(1, -300)  # of the reference
Propose = Callable[[Cells, int, DrawWords, int], NDArray[np.int64]]

SMALL = [(0.7, 0), (0.7, 1), (3.0, 1), (3.0, 2), (20.5, 4), (20.5, 3), (math.pi, 2)]  # scales and shifts
LARGE = [1024.0, 13_107.3, 1e5, 1e7 / 3, 2.0**30, 2.0**40 - 0.5, 2.0**40]


def cells_of(scale: float, shift: int) -> Cells:
    return Cells(Fraction(scale), shift)


def usual(scale: float) -> Cells:
    """As `draw_gaussian` splits it; a test below says so."""
    return cells_of(scale, math.floor(math.log2(scale)) - 6)


def real(x: Fraction) -> mpmath.mpf:
    return mp.mpf(x.numerator) / x.denominator


# The exponents


def check_exponents(cells: Cells, cell: int, offset: int) -> None:
    z = (cell << cells.shift) + offset
    law = cells.law()
    proposed = cell * law.first + Fraction(cell * (cell - 1), 2) * law.then
    assert proposed + cells.growth(cell, offset) == z * z / (2 * cells.scale**2)
    assert law.end is None
    assert not law.folded
    assert cells.growth(cell, 0) == 0


@pytest.mark.parametrize("cells", [*(cells_of(*s) for s in SMALL), *map(usual, LARGE)], ids=str)
def test_proposal_and_coin_add_up_to_the_gaussian(cells: Cells) -> None:
    width = 1 << cells.shift
    offsets = range(width) if width <= 16 else (0, 1, 2, width // 3, width // 2, width - 2, width - 1)
    for cell, offset in itertools.product((0, 1, 2, 3, 100, 999, 2**27), offsets):
        check_exponents(cells, cell, offset)


def test_exponents_of_another_cell_width_or_law_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    growth, cells = Cells.growth, cells_of(20.5, 3)
    for wrong in (
        lambda self, cell, offset: growth(Cells(self.scale, self.shift + 1), cell, offset),
        lambda self, cell, offset: offset / self.scale,
    ):
        with monkeypatch.context() as patch:
            patch.setattr(Cells, "growth", wrong)
            with pytest.raises(AssertionError):
                check_exponents(cells, 3, 5)
    monkeypatch.setattr(Cells, "law", laplace)
    with pytest.raises(AssertionError):
        check_exponents(cells, 3, 5)


@pytest.mark.parametrize("scale", LARGE)
def test_a_scale_is_64_to_128_cells(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def recorded(cells: Cells, count: int) -> NDArray[np.int64]:
        seen.append(cells)
        return np.zeros(count, dtype=np.int64)

    monkeypatch.setattr(rejection, "propose", recorded)
    draw_gaussian(scale, 3)
    assert seen == [usual(scale)]
    assert seen[0].scale == Fraction(scale)
    assert 64 <= scale / 2 ** seen[0].shift < 128


# The decisions, by enumeration of bit strings


class ReadOn(Exception):
    """The bits given do not decide the draw."""


def given(bits: tuple[int, ...]) -> DrawWords:
    left = iter(bits)

    def words(count: int) -> NDArray[np.uint64]:
        taken = list(itertools.islice(left, count))
        if len(taken) < count:
            raise ReadOn
        return np.array(taken, dtype=np.uint64)

    return words


def outcomes(
    cells: Cells, width: int, depth: int, tried: Propose
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...] | None]]:
    """All strings of up to `depth` words that decide a proposal, with what it keeps; the others with None."""
    strings: list[tuple[int, ...]] = [()]
    for level in range(1, depth + 1):
        undecided = []
        for string in ((*s, w) for s in strings for w in range(2**width)):
            try:
                yield string, tuple(tried(cells, 1, given(string), width).tolist())
            except ReadOn:
                undecided.append(string)
                if level == depth:
                    yield string, None
        strings = undecided


def check_law(cells: Cells, width: int, depth: int, patch: pytest.MonkeyPatch, tried: Propose = propose) -> None:
    """Every integer is kept with Pr[cell] times the measure of its strings, and this is the Gaussian's weight of it.

    Cells are drawn by `exact.table`, which has tests of its own: here each takes its turn, and the law asked for says
    how often.
    """
    reach = 5 + math.ceil(2 * cells.scale / (1 << cells.shift))
    total = mp.fsum(mp.exp(-real((c << cells.shift) ** 2 / (2 * cells.scale**2))) for c in range(60 * reach))
    for cell in range(reach):
        asked: list[Law] = []

        def fake(
            law: Law, count: int, words: DrawWords, width: int, cell: int = cell, asked: list[Law] = asked
        ) -> object:
            asked.append(law)
            return np.full(count, cell, dtype=np.int64)

        patch.setattr(rejection, "draw", fake)
        measure: dict[int, mpmath.mpf] = {}
        refused = undecided = mp.zero
        for string, kept in outcomes(cells, width, depth, tried):
            size = mp.ldexp(1, -width * len(string))
            if kept is None:
                undecided += size
            elif kept:
                (z,) = kept
                measure[z] = measure.get(z, mp.zero) + size
            else:
                refused += size
        assert abs(sum(measure.values()) + refused + undecided - 1) < SLACK
        assert undecided <= mp.ldexp(3 << cells.shift + 1, -width * depth)  # 3 at each threshold: this goes to 0
        law = asked[0]
        chance = mp.exp(-real(cell * law.first + Fraction(cell * (cell - 1), 2) * law.then)) / total
        magnitudes = range(cell << cells.shift, cell + 1 << cells.shift)
        assert set(measure) <= {sign * z for z in magnitudes for sign in (1, -1)}
        for z in {sign * z for z in magnitudes for sign in (1, -1)}:
            exact = mp.ldexp(mp.exp(-real(z * z / (2 * cells.scale**2))) / total, -1 - cells.shift)
            found = chance * measure.get(z, mp.zero)
            assert found <= exact + SLACK
            assert exact <= found + chance * undecided + SLACK


@pytest.mark.parametrize(("scale", "shift", "width", "depth"), [
    (0.7, 0, 4, 2), (0.7, 1, 2, 6), (0.7, 1, 5, 3), (3.0, 1, 6, 2), (3.0, 2, 3, 5), (math.pi, 2, 7, 2), (20.5, 3, 6, 2),
    (20.5, 4, 5, 3),
])  # fmt: skip
def test_the_bits_that_lead_to_an_integer_measure_its_weight(
    scale: float, shift: int, width: int, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_law(cells_of(scale, shift), width, depth, monkeypatch)


def laplace(self: Cells) -> Law:
    return Law(Fraction(1 << self.shift) / self.scale)


def wide_floats(cells: Cells, cell: NDArray[np.int64], offset: NDArray[np.int64]) -> object:
    return _refusal(Cells(cells.scale, cells.shift + 1), cell, offset)


def wide_growth(self: Cells, cell: int, offset: int) -> Fraction:
    return _growth(Cells(self.scale, self.shift + 1), cell, offset)


def first_bits_decide(x: Fraction, coin: int, bits: int, words: DrawWords, width: int) -> bool:
    return coin / 2**bits >= -math.expm1(-float(x))


def tangent_decides(x: Fraction, coin: int, bits: int, words: DrawWords, width: int) -> bool:
    return coin >= x * 2**bits


def no_sign(cells: Cells, count: int, words: DrawWords, width: int) -> NDArray[np.int64]:
    return np.abs(propose(cells, count, words, width))


def two_zeros(cells: Cells, count: int, words: DrawWords, width: int) -> NDArray[np.int64]:
    seen = []

    def noted(count: int) -> NDArray[np.uint64]:
        seen.append(words(count))
        return seen[-1]

    kept = propose(cells, count, noted, width)
    zero = rejection.draw(cells.law(), 1, words, width)[0] == int(seen[0][0]) % 2 ** (cells.shift + 1) - 1 == 0
    return np.zeros(1, dtype=np.int64) if zero else kept


def no_coin(cells: Cells, count: int, words: DrawWords, width: int) -> NDArray[np.int64]:
    (word,) = words(1).tolist()
    z = int(rejection.draw(cells.law(), 1, words, width)[0] << cells.shift) + (word >> 1) % 2**cells.shift
    return np.array([-z if word & 1 else z] if z or not word & 1 else [], dtype=np.int64)


_refusal, _growth = rejection._refusal, Cells.growth


@pytest.mark.parametrize(("place", "name", "bug"), [
    (Cells, "law", laplace),
    (rejection, "_refusal", wide_floats),
    (Cells, "growth", wide_growth),
    (rejection, "_keeps", first_bits_decide),
    (rejection, "_keeps", tangent_decides),
    (None, "", no_sign),
    (None, "", two_zeros),
    (None, "", no_coin),
])  # fmt: skip
@pytest.mark.parametrize(("scale", "shift", "width", "depth"), [(3.0, 2, 6, 2), (20.5, 4, 7, 2)])
def test_planted_bugs_are_caught(
    place: object, name: str, bug: object, scale: float, shift: int, width: int, depth: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if place is not None:
        monkeypatch.setattr(place, name, bug)
        bug = propose
    with pytest.raises(AssertionError):
        check_law(cells_of(scale, shift), width, depth, monkeypatch, bug)  # type: ignore[arg-type]


# The floats


def check_floats(cells: Cells, cell: list[int], offset: list[int]) -> None:
    room, wide = Fraction(1, 2**41), Fraction(1, 2**39)
    low, high = rejection._refusal(cells, np.array(cell, dtype=np.int64), np.array(offset, dtype=np.int64))
    for k, u, least, most in zip(cell, offset, low.tolist(), high.tolist(), strict=True):
        x = u * (2 * k * 2**cells.shift + u) / (2 * cells.scale**2)
        assert Fraction(least) * (1 + room) <= x / (1 + x)
        assert x <= Fraction(most) * (1 - room)
        assert Fraction(least) >= x / (1 + x) * (1 - wide)  # loose bounds would hold, and decide little
        assert Fraction(most) <= x * (1 + wide)


def pairs(cells: Cells, count: int, seed: int) -> tuple[list[int], list[int]]:
    """Cells of every size up to the largest that 64 bits allow, and offsets up to the last."""
    rng = np.random.Generator(np.random.PCG64(seed))
    last = (1 << cells.shift) - 1
    cell = [int(2**e) - 1 for e in rng.uniform(0, 61 - cells.shift, count)]
    offset = [min(last, int(2**e)) for e in rng.uniform(0, cells.shift, count)]
    ends = list(itertools.product((0, 1, 2, 500, (1 << 61 - cells.shift) - 1), (0, min(1, last), last)))
    return [*cell, *(c for c, _ in ends)], [*offset, *(o for _, o in ends)]


@pytest.mark.parametrize("cells", [*(cells_of(*s) for s in SMALL), *map(usual, LARGE)], ids=str)
def test_the_floats_are_bounds_with_room_to_spare(cells: Cells) -> None:
    check_floats(cells, *pairs(cells, 400, seed=5))


@pytest.mark.parametrize("margin", [0.0, 2.0**-42])
@pytest.mark.parametrize("scale", LARGE)
def test_a_margin_too_small_is_caught(scale: float, margin: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rejection, "_MARGIN", margin)
    with pytest.raises(AssertionError):
        check_floats(usual(scale), *pairs(usual(scale), 400, seed=5))


def near_thresholds(cells: Cells) -> Iterator[tuple[int, int, int]]:
    """Cells, offsets and coins next to x/(1 + x), 1 - exp(-x), x, and to where the floats stop to decide."""
    bits = 63 - cells.shift
    for cell, offset in zip(*pairs(cells, 60, seed=6), strict=True):
        x = real(offset * ((2 * cell << cells.shift) + offset) / (2 * cells.scale**2))
        if x > 100:  # all bits 1 would then stay undecided beyond the precision of the reference
            continue
        edges = [x / (1 + x), -mp.expm1(-x), x]
        margin = mp.ldexp(1, -40)
        for edge in (*edges, edges[0] * (1 - margin), edges[2] * (1 + margin)):
            for step in (-2, -1, 0, 1, 2):
                coin = int(mp.floor(mp.ldexp(edge, bits))) + step
                if 0 <= coin < 2**bits:
                    yield cell, offset, coin


def disagreements(cells: Cells, decide: Callable[[int, int, int, int], bool]) -> int:
    """Of the coins near the thresholds, those decided otherwise than mpmath does: all further bits 0, and all 1."""
    bits, wrong = 63 - cells.shift, 0
    for (cell, offset, coin), rest in itertools.product(near_thresholds(cells), (0, 2**64 - 1)):
        threshold = mp.ldexp(-mp.expm1(-real(cells.growth(cell, offset))), bits)
        exact = coin + bool(rest) > threshold if rest else coin >= threshold
        wrong += decide(cell, offset, coin, rest) != exact
    return wrong


@pytest.mark.parametrize("scale", LARGE)
def test_coins_near_the_thresholds_are_decided_exactly(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    cells = usual(scale)

    def decide(cell: int, offset: int, coin: int, rest: int) -> bool:
        monkeypatch.setattr(rejection, "draw", lambda law, count, words, width: np.full(count, cell, dtype=np.int64))
        first = iter([coin << 1 + cells.shift | offset << 1])  # the sign is +
        kept = propose(cells, 1, lambda count: np.array([next(first, rest)], dtype=np.uint64))
        assert kept.tolist() in ([], [(cell << cells.shift) + offset])
        return len(kept) == 1

    assert disagreements(cells, decide) == 0


@pytest.mark.parametrize("scale", LARGE)
def test_floats_alone_decide_some_of_them_wrongly(scale: float) -> None:
    # The control: the probability in floats, without a margin, against the 64 bits at hand.
    cells = usual(scale)
    bits, rate = 63 - cells.shift, float(1 / (2 * cells.scale**2))

    def decide(cell: int, offset: int, coin: int, rest: int) -> bool:
        return coin / 2**bits >= -math.expm1(-float(offset) * float((2 * cell << cells.shift) + offset) * rate)

    assert disagreements(cells, decide) > 0


@pytest.mark.parametrize(("scale", "shift"), SMALL)
def test_a_vector_is_decided_like_its_entries(scale: float, shift: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Catches undecided entries put back in another's place, and entries kept out of order.
    cells, width = cells_of(scale, shift), 7
    first = np.random.Generator(np.random.PCG64(3)).permutation(np.arange(2**width, dtype=np.uint64))
    chosen = np.arange(2**width, dtype=np.int64) % 5
    monkeypatch.setattr(rejection, "draw", lambda law, count, words, width: chosen[:count].copy())
    calls = iter([first])
    together = propose(cells, len(first), lambda n: next(calls, np.zeros(n, dtype=np.uint64)), width)
    one_by_one: list[int] = []
    for cell, word in zip(chosen.tolist(), first.tolist(), strict=True):
        monkeypatch.setattr(rejection, "draw", lambda *a, cell=cell: np.array([cell], dtype=np.int64))
        one_by_one += propose(cells, 1, given((word, *[0] * 20)), width).tolist()
    assert together.tolist() == one_by_one
    assert 0 < len(one_by_one) < len(first)
