"""Noise from tables: which draws it serves, where its bits come from, sums and limits. Its law is in exact/."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from support import PATIENCE
from tacit.exact import table as noise_table
from tacit.exact.table import Law, draw, draw_noise, draw_one_sided, enclose, suits
from tacit.model.noise_law import Noise, NoiseKind
from tacit.trusted import noise
from tacit.trusted.noise import add_noise, draw_geometric

KINDS: tuple[NoiseKind, ...] = ("laplace", "gaussian")
LONG = 5000
TOP, BOTTOM = np.iinfo(np.int64).max, np.iinfo(np.int64).min


def refuse(*args: object, **kwargs: object) -> None:
    raise AssertionError("not to be used here")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [0.001, 1.0, 3000.0])
def test_long_vectors_come_from_tables_and_short_ones_do_not(
    kind: NoiseKind, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(noise.opendp, "sampler", refuse)
        add_noise(np.zeros(LONG, dtype=np.int64), Noise(kind, scale))
        draw_geometric(scale, LONG)
    monkeypatch.setattr(noise_table, "draw", refuse)
    add_noise(np.zeros(1, dtype=np.int64), Noise(kind, scale))
    assert draw_geometric(scale, 1).size == 1


def test_noise_too_wide_for_tables_is_left_to_the_other_sampler() -> None:
    # Catches a table of 10^8 entries, and one-sided draws that could wrap around.
    assert not suits(Noise("gaussian", 1e5), 10**9)
    assert not suits(Noise("laplace", 2.0**41), 10**9)
    assert suits(Noise("gaussian", 1e4), 2**20)
    assert suits(Noise("laplace", 2.0**40), 2**20)
    assert not suits(Noise("laplace", 1.0), 0)


def test_the_route_is_a_matter_of_size_and_scale_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # Catches a route, and so a duration, chosen by looking at the values.
    seen: list[tuple[Noise, int]] = []
    monkeypatch.setattr(noise_table, "suits", lambda noise, size: bool(seen.append((noise, size))))
    for value in (0, 1, -5, TOP, BOTTOM):
        add_noise(np.full(3, value, dtype=np.int64), Noise("laplace", 1.0))
    assert seen == [(Noise("laplace", 1.0), 3)] * 5


@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_of_a_long_view_gets_its_own_value_back(kind: NoiseKind) -> None:
    # Catches entries out of order in strided views; at this scale the noise is 0 but for a chance below e^-1000.
    values = np.arange(6000, dtype=np.int64).reshape(60, 100).T[::-1, ::2]
    before = values.copy()
    noisy = add_noise(values, Noise(kind, 0.001))
    assert (noisy == values).all()
    assert (add_noise(values, Noise(kind, 100.0)) != values).any()
    assert (values == before).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [noise_table._CHUNK - 1, noise_table._CHUNK, noise_table._CHUNK + 1])
def test_sizes_around_a_chunk_are_served_whole(kind: NoiseKind, size: int) -> None:
    # Catches entries that no chunk fills: memory from numpy's empty is not noise.
    drawn = draw_noise(Noise(kind, 1000.0), size)
    assert drawn.shape == (size,)
    assert np.abs(drawn).max() < 10**5
    assert np.count_nonzero(drawn[-1000:]) > 900  # 0 has a chance below 1/1000 each


@pytest.mark.parametrize("kind", KINDS)
def test_long_vectors_stop_at_the_limits_of_64_bits(kind: NoiseKind) -> None:
    noisy = add_noise(np.array([TOP, BOTTOM] * LONG, dtype=np.int64), Noise(kind, 1000.0))
    assert (noisy[::2] > TOP - 10**6).all()
    assert (noisy[1::2] < BOTTOM + 10**6).all()
    assert TOP in noisy
    assert BOTTOM in noisy


def test_sums_are_exact_up_to_the_limits_and_stop_there() -> None:
    numbers = [BOTTOM, BOTTOM + 1, -(2**62), -5, -1, 0, 1, 5, 2**62, TOP - 1, TOP]
    left, right = (
        np.array(side, dtype=np.int64) for side in zip(*((a, b) for a in numbers for b in numbers), strict=True)
    )
    exact = [min(max(a + b, BOTTOM), TOP) for a, b in zip(left.tolist(), right.tolist(), strict=True)]
    assert noise._sum(left, right).tolist() == exact


def test_a_draw_beyond_64_bits_is_no_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    # It has a chance below exp(-2^22). Wrapped around it would be a small number that the law does not allow.
    monkeypatch.setattr(noise_table, "draw", lambda law, size: np.full(size, 2**25, dtype=np.int64))
    assert draw_one_sided(1.0, 3).tolist() == [2**25] * 3
    with pytest.raises(OverflowError):
        draw_one_sided(2.0**40, 3)


# Where the bits come from


def counting(real: Callable[[int], bytes], asked: list[int]) -> Callable[[int], bytes]:
    def urandom(count: int) -> bytes:
        asked.append(count)
        return real(count)

    return urandom


@pytest.mark.parametrize(("law", "words", "signs"), [
    (Noise("gaussian", 10.0), 1, True),
    (Noise("laplace", 5.0), 2, False),  # a sign and a digit
    (Noise("laplace", 100.0), 3, False),
    (Noise("laplace", 1e6), 5, False),
])  # fmt: skip
def test_every_entry_has_fresh_bits_of_its_own_from_the_system(
    law: Noise, words: int, signs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Catches bits used twice, for two entries or for a sign and a magnitude, and bits from anywhere else.
    size = noise_table._CHUNK + 7
    asked: list[int] = []
    monkeypatch.setattr(os, "urandom", counting(os.urandom, asked))
    draw_noise(law, size)
    assert sum(asked) == words * size * 8 + signs * -(-size // 8)  # one word more has a chance below 2^-30


@pytest.mark.parametrize("kind", KINDS)
def test_the_systems_bits_alone_make_the_noise(kind: NoiseKind, monkeypatch: pytest.MonkeyPatch) -> None:
    def repeated(count: int) -> bytes:
        return np.random.Generator(np.random.PCG64(7)).bytes(count)

    monkeypatch.setattr(os, "urandom", repeated)
    first, second = (draw_noise(Noise(kind, 50.0), LONG) for _ in range(2))
    assert (first == second).all()
    monkeypatch.undo()
    assert (draw_noise(Noise(kind, 50.0), LONG) != first).any()


@pytest.mark.parametrize("kind", KINDS)
def test_seeds_do_not_repeat_long_noise(kind: NoiseKind) -> None:
    drawn = set()
    for _ in range(3):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        drawn.add(add_noise(np.zeros(LONG, dtype=np.int64), Noise(kind, 100.0)).tobytes())
    assert len(drawn) == 3


FORKED = """
import hashlib, os, numpy as np
from tacit.model.noise_law import Noise
from tacit.trusted.noise import add_noise, draw_geometric
def draw():
    drawn = [add_noise(np.zeros(5000, dtype=np.int64), Noise(k, 100.0)) for k in ("laplace", "gaussian")]
    return " ".join(hashlib.sha256(d.tobytes()).hexdigest() for d in [*drawn, draw_geometric(100.0, 5000)])
draw()  # the tables are there before the fork
for _ in range(3):
    if os.fork() == 0:
        print(draw(), flush=True)
        os._exit(0)
    os.wait()
print(draw(), flush=True)
"""


def test_forked_processes_draw_different_long_noise() -> None:
    # Catches bits drawn ahead and kept: a fork would copy them.
    out = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout
    assert len(set(out.split())) == 12


def test_no_words_are_kept_between_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(os, "urandom", counting(os.urandom, asked))
    for _ in range(5):
        draw(Law(Fraction(1)), 3)
    assert asked == [24] * 5


def test_undecided_entries_read_further_words() -> None:
    # The largest word decides nothing; its entry alone reads on, and keeps its place.
    words = iter([[1, 2**64 - 1, 3], [0]])

    def given(count: int) -> NDArray[np.uint64]:
        taken = next(words)
        assert len(taken) == count
        return np.array(taken, dtype=np.uint64)

    drawn = draw(Law(Fraction(1)), 3, given)
    assert drawn[0] == drawn[2] == 0
    assert drawn[1] == 44  # 64 ln 2 = 44.4
    assert next(words, None) is None


def test_undecided_entries_keep_their_place_in_every_chunk() -> None:
    size = noise_table._CHUNK + 5
    words = iter([np.zeros(noise_table._CHUNK), [0, 0, 2**64 - 1, 0, 0], [0]])
    drawn = draw(Law(Fraction(1)), size, lambda count: np.array(next(words), dtype=np.uint64))
    assert np.flatnonzero(drawn).tolist() == [size - 3]


def test_the_largest_word_is_decided_for_a_law_with_an_end() -> None:
    # 2^64 does not fit into the table, so the last of finitely many takes one word more, and no more than that.
    words = iter([2**64 - 1, 2**64 - 1])
    assert draw(Law(Fraction(1), end=2), 1, lambda count: np.array([next(words)], dtype=np.uint64)).tolist() == [1]


def test_a_law_too_wide_for_its_bits_is_refused() -> None:
    # Catches a table that would never end: each weight looks like the one before.
    with pytest.raises(ArithmeticError):
        enclose(Law(Fraction(1, 2**200)), 64)


def test_digits_are_put_in_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    laws = noise_table._digits(2.0**39)
    digits = {law: 200 - 7 * place for place, law in enumerate(laws)}
    monkeypatch.setattr(noise_table, "draw", lambda law, size: np.full(size, digits[law], dtype=np.int64))
    assert len(laws) == 6
    assert draw_one_sided(2.0**39, 2).tolist() == [sum((200 - 7 * place) * 256**place for place in range(6))] * 2


def test_tables_are_kept_but_not_for_ever() -> None:
    # Catches an unbounded cache: adaptive scales would leak memory.
    draw_noise(Noise("gaussian", 12.5), 10)
    before = noise_table._table.cache_info().hits
    draw_noise(Noise("gaussian", 12.5), 10)
    assert noise_table._table.cache_info().hits == before + 1
    for cache in (noise_table._table, noise_table._finer, noise_table._digits):
        assert cache.cache_info().maxsize is not None


def test_tables_stay_small() -> None:
    largest = max(len(noise_table._table(law, 64)[0]) for law in noise_table._digits(2.0**40 - 0.5))
    assert largest <= 512
    assert suits(Noise("gaussian", 13_000.0), 10**6)
    assert not suits(Noise("gaussian", 13_200.0), 10**6)  # 10 entries for each step of the scale, up to 2^17


def test_long_vectors_do_not_import_the_other_sampler() -> None:
    code = (
        "import sys, numpy as np; from tacit.model.noise_law import Noise; from tacit.trusted.noise import add_noise;"
        "add_noise(np.zeros(5000, dtype=np.int64), Noise('gaussian', 3.0)); sys.exit('opendp' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=PATIENCE).returncode == 0
