"""A bar for wide tables: all 3-way tables of all 14 attributes of Adult, released once with Gaussian noise.

    python -m benchmarks.bench_three_way

Every count of rows with three given values is a cell of one of 364 tables, so its error is that cell's noise. All
cells are drawn. Tacit's own mechanisms do not list so many cells (about 10^20): this is what they would have to beat.
Two conventions and two ways to pay are shown, because published figures differ in them: neighbours that replace a row
(a table moves by sqrt(2) in L2) or add or remove one (by 1); rho added up and turned into (epsilon, delta), or the
exact curve of one Gaussian release of everything (Balle & Wang 2018).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from benchmarks.accuracy.residual_planner import gaussian_shift
from benchmarks.accuracy.tables import ADULT, ALL, MILD, SEED, adult_codes
from tacit.exact.bounds import rho_from
from tacit.model.noise_law import Noise
from tacit.trusted.noise import add_noise

DRAW = 2**20  # numbers drawn at a time
SAMPLE = 20_000  # cells of all, for the largest error that so many questions would see


def main(arguments: Sequence[str] = ()) -> None:
    if not ADULT.exists():
        print("three-way tables: skipped, as ../shared/data/adult/adult.csv is not there.")
        return
    columns = adult_codes()
    scopes = list(combinations(ALL, 3))
    rows = len(next(iter(columns.values())))
    cells = sum(math.prod(ALL[name] for name in scope) for scope in scopes)
    print(
        f"three-way tables: Adult, {rows:,} rows, {len(ALL)} attributes, {len(scopes)} tables, {cells:,} cells; {MILD}"
    )
    print("neighbours      paid by      deviation       mean        max  of 20,000  mean, met   max, met   cut at 0")
    for neighbours, squared in (("replace", 2.0), ("add or remove", 1.0)):
        for paid, deviation in (("zCDP", _zcdp(squared)), ("exact curve", _exact(squared))):
            scale = deviation * math.sqrt(len(scopes))
            figures = measure(columns, scopes, scale, rows)
            words = "  ".join(f"{figure:9.5f}" for figure in figures)
            print(
                f"{neighbours:<15} {paid:<12} {scale / rows:9.5f}    {words}",
                flush=True,
            )
    print(
        "  Fractions of n, over every cell; of 20,000: the largest of so many random ones; met: cells that rows are in."
    )
    print("  cut at 0: the mean where noisy counts below 0 are taken for 0.")


def measure(
    columns: dict[str, np.ndarray], scopes: Sequence[tuple[str, ...]], scale: float, rows: int
) -> tuple[float, ...]:
    """Mean and largest of all cells, largest of 20,000 of them, mean and largest of those met, mean if cut at 0."""
    noise, rng = Noise("gaussian", scale), np.random.Generator(np.random.PCG64(SEED))
    share = SAMPLE / sum(math.prod(ALL[name] for name in scope) for scope in scopes)
    added, largest, number, met_added, met_largest, met_number, cut_added = 0.0, 0, 0, 0.0, 0, 0, 0.0
    sampled = 0
    for scope in scopes:
        shape = [ALL[name] for name in scope]
        flat = np.ravel_multi_index([columns[name] for name in scope], shape)
        counts = np.bincount(flat, minlength=math.prod(shape)).astype(np.int64)
        for part in np.split(counts, range(DRAW, counts.size, DRAW)):
            noisy = add_noise(part, noise)
            errors = np.abs(noisy - part)
            met = errors[part > 0]
            added, largest, number = added + errors.sum(), max(largest, int(errors.max())), number + errors.size
            sampled = max(sampled, int(errors[rng.random(errors.size) < share].max(initial=0)))
            cut_added += np.abs(np.maximum(noisy, 0) - part).sum()
            if met.size:
                met_added, met_number = met_added + met.sum(), met_number + met.size
                met_largest = max(met_largest, int(met.max()))
    shares = (added / number, largest, sampled, met_added / met_number, met_largest, cut_added / number)
    return tuple(float(one) / rows for one in shares)


def _zcdp(squared: float) -> float:
    """The deviation for one table of this squared sensitivity with the whole budget, by rho."""
    return math.sqrt(squared / (2 * rho_from(MILD.epsilon, MILD.delta)))


def _exact(squared: float) -> float:
    """The same by the exact curve of one Gaussian release."""
    return math.sqrt(squared) / gaussian_shift(MILD)


if __name__ == "__main__":
    main()
