"""What our noise costs beside OpenDP's own vector draw, in the same run: `python -m benchmarks.bench_noise`.

"first" includes making the tables for a scale never seen before; "then" is every later draw. OpenDP's cost for a number
no longer changes beyond a few thousand numbers, so it draws at most PEER_NUMBERS at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import opendp.prelude as dp

from tacit.exact import table as noise_table
from tacit.model.noise_law import Noise, NoiseKind
from tacit.trusted.noise import add_noise

SIZES = {1: 300, 1_000: 20, 10_000: 10, 100_000: 5, 1 << 20: 3}  # numbers in a draw, and how often it is timed
SCALES = (1.0, 10.0, 100.0, 1_000.0, 10_000.0)
WIDE = (1e5, 1e7, 2.0**30)  # gaussian only: the digits of laplace cost little more at any scale
PEER_NUMBERS = 10_000
KINDS: tuple[NoiseKind, ...] = ("laplace", "gaussian")


def seconds(*calls: Callable[[], object], repeat: int) -> list[float]:
    """The best time of each, taken in turns so that a busy machine slows all alike."""
    best = [float("inf")] * len(calls)
    for _ in range(repeat):
        for i, call in enumerate(calls):
            start = time.perf_counter()
            call()
            best[i] = min(best[i], time.perf_counter() - start)
    return best


def forget_tables() -> None:
    for cache in (noise_table._table, noise_table._finer, noise_table._digits):
        cache.cache_clear()


def main() -> None:
    dp.enable_features("contrib")
    vector = dp.vector_domain(dp.atom_domain(T="i64"))
    print(f"{'':<21} {'':>9} {'tacit, µs each':>17} {'OpenDP':>8} {'OpenDP / tacit':>17}")
    print(f"{'noise':<9} {'scale':>11} {'numbers':>9} {'first':>8} {'then':>8} {'µs each':>8} {'first':>8} {'then':>8}")
    for kind in KINDS:
        for scale in (*SCALES, *(WIDE if kind == "gaussian" else ())):
            noise = Noise(kind, scale)
            if kind == "laplace":
                peer = dp.m.make_laplace(vector, dp.l1_distance(T="i64"), scale=scale)
            else:
                peer = dp.m.make_gaussian(vector, dp.l2_distance(T="f64"), scale=scale)
            for size, repeat in SIZES.items():
                values, few = np.zeros(size, dtype=np.int64), np.zeros(min(size, PEER_NUMBERS), dtype=np.int64)
                forget_tables()
                (first,) = seconds(lambda: add_noise(values, noise), repeat=1)  # noqa: B023
                then, theirs = seconds(lambda: add_noise(values, noise), lambda: peer(few), repeat=repeat)  # noqa: B023
                a, b, c = first / size * 1e6, then / size * 1e6, theirs / len(few) * 1e6
                print(f"{kind:<9} {scale:>11,g} {size:>9,} {a:>8.3f} {b:>8.3f} {c:>8.2f} {c / a:>8.1f} {c / b:>8.1f}")


if __name__ == "__main__":
    main()
