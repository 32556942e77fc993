"""The drawing of noise: shapes, types, limits, and where the randomness comes from. Its law is in statistical/."""

from __future__ import annotations

import random
import subprocess
import sys

import numpy as np
import pytest

from support import PATIENCE
from tacit.exact.opendp import sampler
from tacit.model.noise_law import Noise, NoiseKind
from tacit.trusted.noise import add_noise

KINDS: tuple[NoiseKind, ...] = ("laplace", "gaussian")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (2, 3), (2, 0, 3)])
def test_the_shape_is_kept_and_the_input_left_alone(kind: NoiseKind, shape: tuple[int, ...]) -> None:
    values = np.full(shape, 5, dtype=np.int64)
    noisy = add_noise(values, Noise(kind, 1e6))
    assert noisy.shape == shape
    assert noisy.dtype == np.int64
    assert (values == 5).all()


@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_gets_its_own_value_back_in_place(kind: NoiseKind) -> None:
    # Catches entries out of order in strided views; at this scale the noise is 0 but for a chance below e^-1000.
    values = np.arange(24, dtype=np.int64).reshape(4, 6).T[::-1, ::2]
    assert (add_noise(values, Noise(kind, 0.001)) == values).all()


@pytest.mark.parametrize("kind", KINDS)
def test_values_at_the_limits_of_64_bits_saturate(kind: NoiseKind) -> None:
    # Catches wrap-around, which would turn the largest count into the smallest.
    top, bottom = np.iinfo(np.int64).max, np.iinfo(np.int64).min
    noisy = add_noise(np.array([top, bottom] * 200, dtype=np.int64), Noise(kind, 1000.0))
    assert (noisy[::2] > top - 10**6).all()
    assert (noisy[1::2] < bottom + 10**6).all()
    assert top in noisy
    assert bottom in noisy


@pytest.mark.parametrize("values", [[1, 2], np.zeros(2), np.zeros(2, dtype=np.int32), np.zeros(2, dtype=np.uint64)])
def test_only_int64_arrays_are_taken(values: object) -> None:
    # Catches floats and 32-bit integers, whose noise would be of another law.
    with pytest.raises(TypeError):
        add_noise(values, Noise("laplace", 1.0))  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_seeds_do_not_repeat_the_noise(kind: NoiseKind) -> None:
    # Catches noise from numpy or random, which a seed, or a forked worker, would repeat.
    drawn = []
    for _ in range(3):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002
        drawn.append(tuple(add_noise(np.zeros(3, dtype=np.int64), Noise(kind, 1e15)).tolist()))
    assert len(set(drawn)) == 3


FORKED = """
import os, numpy as np
from tacit.model.noise_law import Noise
from tacit.trusted.noise import add_noise
draw = lambda: [add_noise(np.zeros(2, dtype=np.int64), Noise(k, 1e15)).tolist() for k in ("laplace", "gaussian")]
draw()  # the sampler has its state before the fork
for _ in range(3):
    if os.fork() == 0:
        print(draw(), flush=True)
        os._exit(0)
    os.wait()
print(draw(), flush=True)
"""


def test_forked_processes_draw_different_noise() -> None:
    # Catches a generator whose state is copied by fork: two workers would then release the same noise. Two of 16 draws
    # are equal by chance below 1e-13.
    out = subprocess.run(
        [sys.executable, "-c", FORKED], capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout
    numbers = [int(n) for line in out.splitlines() for n in line.replace("[", "").replace("]", "").split(",")]
    assert len(numbers) == len(set(numbers)) == 16


def test_samplers_are_kept_but_not_for_ever() -> None:
    # Catches an unbounded cache: adaptive scales would leak memory.
    add_noise(np.zeros(1, dtype=np.int64), Noise("laplace", 2.0))
    before = sampler.cache_info().hits
    add_noise(np.zeros(1, dtype=np.int64), Noise("laplace", 2.0))
    assert sampler.cache_info().hits == before + 1
    assert sampler.cache_info().maxsize is not None


def test_importing_the_module_does_not_import_the_sampler() -> None:
    code = "import sys, tacit.trusted.noise; sys.exit('opendp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=PATIENCE).returncode == 0
