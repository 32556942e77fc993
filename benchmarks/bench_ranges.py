"""Ranges over one or two ordered attributes: today's strategies against DAWA, AHP, HB and grids, as n epsilon grows.

    python -m benchmarks.bench_ranges [--runs N] [--rows 1000 10000 ...] [--attributes 1 2] [--quick]

The shapes are DPBench's where they lie beside the repository (`../shared/data/dpbench_1d`, `dpbench_2d`), and made-up
ones otherwise; n rows are drawn from each, anew in every run. 2,000 random ranges or rectangles are asked; errors are
in ten-thousandths of n, the mean over the runs of the mean and of the largest. Neighbours replace one row; epsilon = 1,
pure, and with delta = 1e-9. Noise is simulated from a public seed.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.range_peers import PEERS_1D, PEERS_2D, Floats, Prices
from benchmarks.accuracy.scores import Scores, printed
from benchmarks.accuracy.tables import MILD, PURE, SEED, SHARED
from tacit.exact.bounds import rho_from
from tacit.model.attribute import integer
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.model.workload import Convolution, Product, Tree
from tacit.release.ranges.choice import choose, signal
from tacit.release.ranges.decoder import Decoder
from tacit.release.ranges.rectangles import choose_product, least_squares, likely, sums_of
from tacit.trusted.sensitivity import sensitivity

ASKED = 2_000
NAMES_1D = ("HEPTH.n4096", "MEDCOST.n4096", "NETTRACE.n4096", "SEARCHLOGS.n4096", "PATENT.n4096", "bids_j")
Method = Callable[[Floats, Prices], Floats]


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    kinds = {
        1: ("one attribute", line_shapes(), {**PEERS_1D, "auto": ours_1d}),
        2: ("two attributes", square_shapes(), {**PEERS_2D, "auto": ours_2d}),
    }
    for words, shapes, methods in (kinds[attributes] for attributes in options.attributes):
        for budget in (PURE, MILD):
            for rows in options.rows:
                few = dict(list(shapes.items())[: 1 if options.quick else None])
                scores = compare(few, methods, budget, rows, options.runs)
                print(
                    f"\nranges of {words}, n = {rows:,}; {budget}; runs: {options.runs}\n{printed(scores)}", flush=True
                )


def compare(
    shapes: dict[str, Floats], methods: dict[str, Method], budget: Budget, rows: int, runs: int
) -> list[Scores]:
    found = [Scores(name, ours=name == "auto") for name in methods]
    for place, (shape_name, shape) in enumerate(shapes.items()):
        rng = np.random.Generator(np.random.PCG64([SEED, place, rows]))
        for _ in range(runs):
            counts = rng.multinomial(rows, (shape / shape.sum()).ravel()).reshape(shape.shape).astype(np.float64)
            ends = [np.sort(rng.integers(0, size + 1, (ASKED, 2)), axis=1) for size in shape.shape]
            truth = ranges(counts, ends)
            for scores, method in zip(found, methods.values(), strict=True):
                errors = np.abs(ranges(method(counts, Prices(budget, rng)), ends) - truth) / rows
                for words, figure in (("mean", np.mean), ("largest", np.max)):
                    scores.figures.setdefault((shape_name, words), []).append(float(figure(errors)))
                scores.seconds = [math.nan]
    return found


def ranges(counts: Floats, ends: list[NDArray[np.int64]]) -> Floats:
    sums = counts
    for axis in range(counts.ndim):
        sums = np.cumsum(np.pad(sums, [(1 if one == axis else 0, 0) for one in range(counts.ndim)]), axis=axis)
    if counts.ndim == 1:
        return np.asarray(sums[ends[0][:, 1]] - sums[ends[0][:, 0]])
    (a, b), (c, d) = ends[0].T, ends[1].T
    return np.asarray(sums[b, d] - sums[a, d] - sums[b, c] + sums[a, c])


def ours_1d(counts: Floats, prices: Prices) -> Floats:
    """The strategy that a session chooses, least squares, and what it shows instead."""
    leaves = len(counts)
    faint = signal(int(counts.sum()), _loss(prices.budget))
    strategy = choose("x", leaves, prices.budget.measure, signal=faint).strategy
    decoder = Decoder(strategy, leaves)
    noise, variance = _noise(strategy, Domain({"x": integer(0, leaves - 1)}), prices, decoder.answers)
    prefixes = np.concatenate([[0.0], counts.cumsum()]) + decoder.prefixes(noise, 0.0)
    return np.diff(decoder.likely(prefixes, variance))


def ours_2d(counts: Floats, prices: Prices) -> Floats:
    sizes = counts.shape[0], counts.shape[1]
    faint = signal(int(counts.sum()), _loss(prices.budget))
    product = choose_product("x", sizes[0], "y", sizes[1], prices.budget.measure, faint)
    domain = Domain({"x": integer(0, sizes[0] - 1), "y": integer(0, sizes[1] - 1)})
    noise, variance = _noise(product, domain, prices, product.size(domain))
    cells = counts + least_squares(noise, product, sizes, 0.0)
    return likely(sums_of(cells), product, sizes, variance, float(counts.sum()))


def _loss(budget: Budget) -> Loss:
    return (
        Loss.of("rho", rho_from(budget.epsilon, budget.delta)) if budget.delta else Loss.of("epsilon", budget.epsilon)
    )


def _noise(
    strategy: Tree | Convolution | Product, domain: Domain, prices: Prices, answers: int
) -> tuple[Floats, float]:
    """Draws for all answers, and their variance."""
    moves, budget = sensitivity(strategy, domain), prices.budget
    if not budget.delta:
        scale = moves.l1 / budget.epsilon
        return prices.rng.laplace(0, scale, answers), 2 * scale**2
    variance = moves.l2_squared / (2 * rho_from(budget.epsilon, budget.delta))
    return prices.rng.normal(0, math.sqrt(variance), answers), variance


def line_shapes() -> dict[str, Floats]:
    found = {name.split(".")[0]: _read(SHARED / f"dpbench_1d/{name}.npy") for name in NAMES_1D}
    if any(shape is None for shape in found.values()):
        places = np.arange(1024.0)
        return {"even": np.ones(1024), "spikes": 0.01 + (places % 97 == 0), "hump": np.exp(-((places / 256 - 2) ** 2))}
    return {name: shape for name, shape in found.items() if shape is not None}


def square_shapes() -> dict[str, Floats]:
    found = {name: _read(SHARED / f"dpbench_2d/{name}.npz") for name in ("Loan_2D", "cabspottingS", "twitter")}
    if any(shape is None for shape in found.values()):
        x, y = np.meshgrid(np.arange(64.0), np.arange(64.0))
        return {"even": np.ones((64, 64)), "ridge": np.exp(-((x - y) ** 2) / 20)}
    return {name: shape for name, shape in found.items() if shape is not None}


def _read(path: Path) -> Floats | None:
    if not path.exists():
        return None
    found = np.load(path)
    return np.asarray(found["counts"] if path.suffix == ".npz" else found, dtype=np.float64)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.bench_ranges", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rows", nargs="+", type=int, default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--attributes", nargs="+", type=int, default=[1, 2], choices=[1, 2])
    parser.add_argument("--quick", action="store_true", help="one shape of each kind")
    return parser.parse_args([] if arguments is None else arguments)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
