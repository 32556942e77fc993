"""Discovery: values and bins that a part of the budget finds, against oracles and against how others do it.

    python -m benchmarks.bench_discover [RUNS]

All ways spend the same part of the same (epsilon, delta) on a column, for neighbours that replace one row. Values:
ours; OpenDP's thresholded counts with Gaussian and with Laplace noise, with the least scale and threshold that OpenDP
itself prices within the part; and keyed counts as Tumult's get_groups has them, by formula: geometric noise for a row
that is added or taken away, whose price is paid twice. Bins: the edges of one public grid nearest to the nine deciles,
and the two ends. Ours is one release of all prefixes; the exponential mechanism for each quantile (OpenDP's private
quantile) and a binary search by noisy counts (Tumult's quantiles) are by formula. Others add up rho (zCDP), or epsilon
for Laplace noise; ours adds up gdp.

The error of a decile is how much further from it, as a share of the rows, the chosen edge is than the best edge of the
grid. Outside are rows beyond the ends, and within are the cells between them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.accuracy.catalogue import _packaged
from benchmarks.accuracy.tables import SEED, SHARED
from tacit.exact.bounds import rho_from
from tacit.exact.price import threshold_of, total, values_noise
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.facts import Receipt
from tacit.model.workload import leaves, unit
from tacit.owner.discovery import ASIDE
from tacit.release.ranges.choice import choose, signal
from tacit.release.ranges.distribution import Distribution
from tacit.release.sought_columns import _TRIMMED, Sought
from tacit.trusted.noise import add_noise
from tacit.trusted.records import Records
from tacit.trusted.sensitivity import noise_of, truth

EPSILON, DELTA = 1.0, 1e-9
SHARES = (0.02, 0.1)  # of the budget, for one column
DECILES = tuple(j / 10 for j in range(1, 10))
Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


class Part(NamedTuple):
    """What a column may cost, in the measures that are added up, and the delta of its values."""

    gdp: Loss
    rho: float
    epsilon: float
    delta: float


def part(share: float) -> Part:
    budget, aside = Budget(epsilon=EPSILON, delta=DELTA), DELTA * ASIDE
    whole = total(budget, "gdp", aside=aside)
    gdp = Loss("gdp", int(whole.atoms * share))
    return Part(gdp, share * rho_from(EPSILON, DELTA - aside), share * EPSILON, aside)


# -- values ------------------------------------------------------------------------------------------------------------


class Thresholded(NamedTuple):
    """Noise, and from which noisy count on a value is told."""

    threshold: float
    draw: Callable[[Counts], Floats]


def ours(given: Part) -> Thresholded:
    noise = values_noise(given.gdp, 1)
    least = threshold_of(noise, 1, given.delta, intent=1, among=1)  # the first look gets half of what is set aside
    return Thresholded(least, lambda counts: add_noise(counts, noise).astype(np.float64))


def opendp_gaussian(given: Part) -> Thresholded:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T="f64", nan=False)), _inf(dp.l02inf_distance)
    scale = math.nextafter(1 / math.sqrt(given.rho), math.inf)
    least = _least(
        lambda t: dp.m.make_gaussian_threshold(*space, scale=scale, threshold=t).map((2, math.sqrt(2), 1.0)), given
    )
    return Thresholded(least, _through(dp.m.make_gaussian_threshold(*space, scale=scale, threshold=least)))


def opendp_laplace(given: Part) -> Thresholded:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T="f64", nan=False)), _inf(dp.l01inf_distance)
    scale = math.nextafter(2 / given.epsilon, math.inf)
    least = _least(lambda t: dp.m.make_laplace_threshold(*space, scale=scale, threshold=t).map((2, 2.0, 1.0)), given)
    return Thresholded(least, _through(dp.m.make_laplace_threshold(*space, scale=scale, threshold=least)))


def get_groups(given: Part) -> Thresholded:
    """Two steps of one row each, of epsilon/2; delta is paid in both, the second time e^(epsilon/2) times."""
    epsilon = given.epsilon / 2
    delta, q = given.delta / (1 + math.exp(epsilon)), math.exp(-epsilon)
    least = 1 + math.ceil(math.log(delta * (1 + q)) / math.log(q))
    rng = np.random.default_rng(SEED)

    def draw(counts: Counts) -> Floats:
        noise = rng.geometric(1 - q, counts.size) - rng.geometric(1 - q, counts.size)
        return (counts + noise).astype(np.float64)

    return Thresholded(least, draw)


VALUES = {
    "ours": ours,
    "OpenDP, Gaussian threshold": opendp_gaussian,
    "OpenDP, Laplace threshold": opendp_laplace,
    "get_groups, as Tumult": get_groups,
}


def _inf(metric: Callable[[object], object]) -> object:
    import opendp.prelude as dp

    return metric(dp.absolute_distance(T="f64"))


def _least(priced: Callable[[float], tuple[float, float]], given: Part) -> float:
    """The least threshold whose delta, as OpenDP itself works it out, is within the part."""
    low, high = 1.0, 1e7
    while high - low > 0.5:
        middle = (low + high) / 2
        try:
            holds = priced(middle)[1] <= given.delta
        except Exception:  # OpenDP refuses a threshold below which nothing holds
            holds = False
        low, high = (low, middle) if holds else (middle, high)
    return high


def _through(measurement: Callable[[dict[str, float]], dict[str, float]]) -> Callable[[Counts], Floats]:
    def draw(counts: Counts) -> Floats:
        told = measurement({str(i): float(count) for i, count in enumerate(counts.tolist())})
        return np.array([told.get(str(i), -math.inf) for i in range(counts.size)])

    return draw


def compare_values(name: str, column: pd.Series[str], runs: int) -> None:
    counts = column.dropna().value_counts().to_numpy().astype(np.int64)
    print(f"\n{name}: {counts.size} values in {counts.sum():,} rows")
    print(f"{'':32}{'share':>7}{'threshold':>11}{'/ours':>7}{'found':>8}{'rows in them':>14}{'error of a count':>18}")
    for share in SHARES:
        first = 0.0
        for way, make in VALUES.items():
            made = make(part(share))
            noisy = np.array([made.draw(counts) for _ in range(runs)])
            told = noisy >= made.threshold
            first = first or made.threshold
            covered = (told * counts).sum(axis=1).mean() / counts.sum()
            off = np.abs(np.where(told, noisy - counts, 0.0)).sum() / max(1, told.sum())
            print(
                f"{way:32}{share:7.0%}{made.threshold:11,.0f}{made.threshold / first:7.2f}"
                f"{told.sum(axis=1).mean():8.1f}{covered:14.1%}{off:18.1f}"
            )


# -- bins --------------------------------------------------------------------------------------------------------------


class Grid(NamedTuple):
    """A column on the public grid: its domain, and the rows of each cell."""

    sought: Sought
    domain: Domain
    counts: Counts

    @property
    def prefixes(self) -> Floats:
        return np.concatenate([[0], np.cumsum(self.counts)]).astype(np.float64)


class Cut(NamedTuple):
    """The edges for deciles, and the two ends, by their places on the grid."""

    edges: list[int]
    low: int
    high: int


def gridded(name: str, kind: str, column: pd.Series[float]) -> Grid:
    sought = Sought.of(name, {"kind": kind, "discover": 10})
    domain = sought.wide()
    edges = np.array([domain[name].edge(i) for i in range(domain[name].bins + 1)], dtype=np.float64)
    known = np.clip(column.dropna().to_numpy(dtype=np.float64), edges[0], np.nextafter(edges[-1], -np.inf))
    counts = np.bincount(np.searchsorted(edges, known, side="right") - 1, minlength=len(edges) - 1)
    return Grid(sought, domain, counts.astype(np.int64))


def one_release(grid: Grid, given: Part, _: np.random.Generator) -> Cut:
    name, rows = grid.sought.name, int(grid.counts.sum())
    places = np.flatnonzero(grid.counts)
    records = Records(grid.domain, [places.astype(np.uint32)], grid.counts[places])
    strength = signal(rows, given.gdp)
    strategy = choose(name, leaves(grid.domain[name]), "gdp", about="thresholds", signal=strength).strategy
    noise = noise_of(strategy, grid.domain, given.gdp, 1)
    values = add_noise(truth(strategy, records), noise)
    measured = Measured(
        key="",
        question=strategy,
        values=values,
        unit=unit(strategy),
        noise=noise,
        cost=given.gdp,
        receipt=Receipt(0, ""),
    )
    told = Distribution(measured, grid.domain, rows)
    ends = grid.sought.ends(told)
    low, high = told.quantile(ends).bin, told.quantile(1 - ends).bin
    cells = [told.quantile(q).bin for q in DECILES]
    inside = told.prefixes[-1]
    # As `Sought.from_counts` does it: of the two edges of a cell the nearer one, by what was released.
    nearer = [
        c + (told.prefixes[c] + told.prefixes[c + 1] < 2 * q * inside) for q, c in zip(DECILES, cells, strict=True)
    ]
    return Cut([int(edge) for edge in nearer], low, high + 1)


def exact(grid: Grid, *_: object) -> Cut:
    edges = [_nearest(grid.prefixes, q) for q in (_TRIMMED, *DECILES, 1 - _TRIMMED)]
    return Cut(edges[1:-1], edges[0], edges[-1])


def exponential(grid: Grid, given: Part, rng: np.random.Generator) -> Cut:
    """For each quantile, an edge by Gumbel noise on minus its distance in rank, which one row moves by 1."""
    scale = 2 / math.sqrt(8 * given.rho / 11)
    rows, prefixes = grid.prefixes[-1], grid.prefixes
    edges = [
        int(np.argmax(-np.abs(prefixes - q * rows) / scale + rng.gumbel(size=prefixes.size)))
        for q in (_TRIMMED, *DECILES, 1 - _TRIMMED)
    ]
    return Cut(edges[1:-1], edges[0], edges[-1])


def binary_search(grid: Grid, given: Part, rng: np.random.Generator) -> Cut:
    """For each quantile, halve the grid by a noisy count of the rows below, one step for each bit of the grid."""
    steps = math.ceil(math.log2(grid.counts.size))
    deviation = math.sqrt(11 * steps / (2 * given.rho))
    rows, prefixes, edges = grid.prefixes[-1], grid.prefixes, list[int]()
    for q in (_TRIMMED, *DECILES, 1 - _TRIMMED):
        low, high = 0, grid.counts.size
        while high - low > 1:
            middle = (low + high) // 2
            below = prefixes[middle] + rng.normal(0, deviation) > q * rows
            low, high = (low, middle) if below else (middle, high)
        # Of the two edges that are left the better one: in favour of this way.
        edges.append(low + _nearest(prefixes[low : high + 1] / rows, q, 1.0))
    return Cut(edges[1:-1], edges[0], edges[-1])


BINS = {
    "exact": exact,
    "ours": one_release,
    "exponential mechanism": exponential,
    "binary search": binary_search,
}


def _nearest(prefixes: Floats, share: float, whole: float = 0.0) -> int:
    return int(np.argmin(np.abs(prefixes - share * (whole or prefixes[-1]))))


def compare_bins(grid: Grid, title: str, runs: int) -> None:
    rows = grid.prefixes[-1]
    print(f"\n{title}: {rows:,.0f} rows on {grid.counts.size:,} cells")
    print(f"{'':32}{'share':>7}{'decile, mean':>14}{'/ours':>7}{'largest':>9}{'outside':>9}{'cells within':>14}")
    for share in SHARES:
        found = {way: _errors(grid, make, part(share), runs) for way, make in BINS.items()}
        for way, (mean, largest, outside, within) in found.items():
            ratio = f"{mean / found['ours'][0]:7.1f}" if found["ours"][0] > 1e-4 else f"{'':7}"  # of what counts
            print(f"{way:32}{share:7.0%}{mean:14.2%}{ratio}{largest:9.2%}{outside:9.2%}{within:14,.0f}")


def _errors(grid: Grid, make: Callable[..., Cut], given: Part, runs: int) -> tuple[float, float, float, float]:
    rng, rows, prefixes = np.random.default_rng(SEED), grid.prefixes[-1], grid.prefixes
    misses, outside, within = list[list[float]](), list[float](), list[float]()
    for _ in range(runs):
        cut = make(grid, given, rng)
        missed = [
            abs(prefixes[edge] / rows - q) - np.abs(prefixes / rows - q).min()
            for q, edge in zip(DECILES, cut.edges, strict=True)
        ]
        misses.append(missed)
        outside.append(1 - max(0.0, prefixes[cut.high] - prefixes[cut.low]) / rows)
        within.append(max(0, cut.high - cut.low))
    largest = np.max(misses, axis=1)
    return float(np.mean(misses)), float(np.mean(largest)), float(np.mean(outside)), float(np.mean(within))


def frames() -> Iterator[tuple[str, pd.DataFrame]]:
    """The tables that are at hand."""
    for name, load in {
        "flights": lambda: _packaged("nycflights13", "flights"),
        "diamonds": lambda: _packaged("ggplot2", "diamonds"),
        "bank": lambda: pd.read_csv(SHARED / "bank/bank.csv.gz", sep=";"),
    }.items():
        try:
            yield name, load()
        except (FileNotFoundError, ModuleNotFoundError) as missing:
            print(f"{name}: skipped, as it is not here ({missing})")


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    tables = dict(frames())
    print(f"epsilon = {EPSILON:g}, delta = {DELTA:g}, {runs} runs")
    for name, column in (("flights", "dest"), ("flights", "tailnum"), ("bank", "job")):
        if name in tables:
            compare_values(f"{name}, {column}", tables[name][column], runs)
    numbers = (("flights", "dep_delay", "numeric"), ("flights", "distance", "integer"))
    for name, column, kind in (*numbers, ("diamonds", "price", "integer"), ("bank", "balance", "integer")):
        if name in tables:
            compare_bins(gridded(column, kind, tables[name][column]), f"{name}, {column}", runs)


if __name__ == "__main__":
    main()
