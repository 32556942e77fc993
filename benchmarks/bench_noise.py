"""What our noise costs over OpenDP's own vector draw, in the same run: `python -m benchmarks.bench_noise`."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import opendp.prelude as dp

from tacit.trusted.noise import Noise, add_noise

SIZES = {1: 300, 1_000: 20, 100_000: 3}  # draws of that many numbers, and how often each is timed
SCALE = 100.0


def seconds(first: Callable[[], object], second: Callable[[], object], repeat: int) -> tuple[float, float]:
    """The best time of each, taken in turns so that a busy machine slows both."""
    best = [float("inf"), float("inf")]
    for _ in range(repeat):
        for i, call in enumerate((first, second)):
            start = time.perf_counter()
            call()
            best[i] = min(best[i], time.perf_counter() - start)
    return best[0], best[1]


def main() -> None:
    dp.enable_features("contrib")
    vector = dp.vector_domain(dp.atom_domain(T="i64"))
    peers = {
        Noise("laplace", SCALE): dp.m.make_laplace(vector, dp.l1_distance(T="i64"), scale=SCALE),
        Noise("gaussian", SCALE): dp.m.make_gaussian(vector, dp.l2_distance(T="f64"), scale=SCALE),
    }
    print(f"{'noise':<9} {'numbers':>8} {'tacit, µs each':>15} {'OpenDP, µs each':>16} {'ratio':>6}")
    for noise, peer in peers.items():
        for size, repeat in SIZES.items():
            values = np.zeros(size, dtype=np.int64)
            ours, theirs = seconds(lambda: add_noise(values, noise), lambda: peer(values), repeat)  # noqa: B023
            each = (ours / size * 1e6, theirs / size * 1e6)
            print(f"{noise.kind:<9} {size:>8,} {each[0]:>15.2f} {each[1]:>16.2f} {ours / theirs:>6.2f}")


if __name__ == "__main__":
    main()
