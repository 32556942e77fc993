"""Every method for ranges against the textbook's binary tree, pure and zCDP: `python -m benchmarks.bench_intervals`.

Errors in counts, neighbours replace one row, epsilon = 1 or rho = 1/2. Noise is simulated from a public seed: the error
of an estimate that is linear in the answers does not depend on the data. Where 1-D histograms have been put beside the
repository (`../shared/data/dpbench_1d/*.npy`), the last table is about them, with shrinkage.
`--full` takes more sizes and draws.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tacit.exact.price import total
from tacit.load import open_source
from tacit.model.attribute import integer
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.model.noise_law import Noise
from tacit.model.workload import Convolution, Tree, kernel, to_dict
from tacit.release.ranges.choice import choose, regular, trees
from tacit.release.ranges.decoder import Decoder
from tacit.release.ranges.distribution import Distribution
from tacit.store.anchor import Anchor
from tacit.theory.smith_ullman import best_branching, honaker, textbook
from tacit.trusted.cells import read_records
from tacit.trusted.curator import Curator
from tacit.trusted.ledger import Ledger
from tacit.trusted.noise import add_noise
from tacit.trusted.sensitivity import sensitivity as strategy_sensitivity

Floats = NDArray[np.float64]
EPSILON, RHO = 1.0, 0.5
SIZES = {2**8: 1000, 2**12: 300, 2**16: 30, 2**20: 3}
FULL = {2**4: 4000, 2**6: 4000, 2**8: 4000, 2**10: 2000, 2**12: 1000, 2**14: 400, 2**16: 100, 2**18: 30, 2**20: 10}
DATA = Path(__file__).parents[1] / "../shared/data/dpbench_1d"
COLUMNS = (("max", "thresholds"), ("max", "intervals"), ("mean", "thresholds"), ("mean", "intervals"))


@dataclass(frozen=True)
class Method:
    """How prefixes are worked out from so many noisy answers of that scale; a decoder where it is least squares."""

    name: str
    answers: int
    scale: float
    decode: Callable[[Floats], Floats]
    decoder: Decoder | None = None


def scale_of(strategy: Tree | Convolution, leaves: int, measure: str) -> float:
    """Of the noise on every answer; Laplace's own scale, or the Gaussian's standard deviation."""
    moves = strategy_sensitivity(strategy, Domain({strategy.name: integer(0, leaves - 1)}))
    return moves.l1 / EPSILON if measure == "epsilon" else math.sqrt(moves.l2_squared / (2 * RHO))


def of_plan(name: str, strategy: Tree | Convolution, leaves: int, measure: str) -> Method:
    decoder = Decoder(strategy, leaves)
    return Method(
        name, decoder.answers, scale_of(strategy, leaves, measure), lambda z: decoder.prefixes(z, 0.0), decoder
    )


def of_tree(name: str, how: Callable[..., Floats], tree: Tree, leaves: int, measure: str) -> Method:
    scale = scale_of(tree, leaves, measure)
    return Method(name, sum(tree.widths(leaves)), scale, lambda z: how(z, tree, leaves, 0.0))


def plain_root(leaves: int) -> Method:
    """Fichtenberger, Henzinger & Upadhyay's square root as it stands: the public total is not used."""
    root = kernel(leaves, 50) / 2.0**32  # both factors are this one
    length = 2 * leaves

    def decode(z: Floats) -> Floats:
        found = np.fft.irfft(np.fft.rfft(z, length) * np.fft.rfft(root, length), length)[:, :leaves]
        return np.concatenate([np.zeros((len(z), 1)), found], axis=1)

    return Method("square root", leaves, scale_of(Convolution("x", 50, cyclic=False), leaves, "rho"), decode)


def methods(leaves: int, measure: str) -> list[Method]:
    """The ladder of Smith & Ullman's notes, then what came after."""
    step = (leaves - 1) / EPSILON if measure == "epsilon" else math.sqrt((leaves - 1) / (2 * RHO))
    two = regular("x", leaves, 2)
    shapes = {max(tree.branching): tree for tree in trees("x", leaves) if len(tree.branching) <= 12}
    near = [shapes[min(shapes, key=lambda b: abs(b - wanted))] for wanted in (4, 8, 16, 32)]
    found = [
        Method("prefixes", leaves - 1, step, lambda z: np.pad(z, ((0, 0), (1, 1)))),
        of_tree("binary tree, textbook", textbook, two, leaves, measure),
        of_tree("binary tree, Honaker", honaker, two, leaves, measure),
        of_plan("binary tree, least squares", two, leaves, measure),
    ]
    wide = _wide(leaves)
    found.append(of_tree(f"{_short(wide)} tree, textbook", textbook, wide, leaves, measure))
    for tree in dict.fromkeys(near):
        found.append(of_plan(f"{_short(tree)} tree, least squares", tree, leaves, measure))
    weighted = choose("x", leaves, "epsilon", loss="mean").strategy
    assert isinstance(weighted, Tree)
    found.append(of_plan(f"{_short(weighted)} tree, weighted levels", weighted, leaves, measure))
    if measure == "rho":
        found.append(plain_root(leaves))
        found.append(of_plan("square root, total known", Convolution("x", 50, cyclic=False), leaves, measure))
        found.append(of_plan("exponent 0.46, total known", Convolution("x", 46, cyclic=False), leaves, measure))
        for exponent in (46, 50, 53):
            found.append(
                of_plan(f"circle, exponent 0.{exponent}", Convolution("x", exponent, cyclic=True), leaves, measure)
            )
    return found


def errors(method: Method, draws: int, leaves: int, measure: str) -> dict[tuple[str, str], float]:
    """Expected largest error and root mean squared error, over thresholds and over all intervals."""
    chance = np.random.Generator(np.random.PCG64(leaves))
    largest, square = np.zeros(2), np.zeros(2)
    at_once = max(1, 2**21 // leaves)
    for start in range(0, draws, at_once):
        size = (min(at_once, draws - start), method.answers)
        noise = chance.laplace(size=size) if measure == "epsilon" else chance.normal(size=size)
        wrong = method.decode(noise * method.scale)
        largest += np.abs(wrong).max(axis=1).sum(), (wrong.max(axis=1) - wrong.min(axis=1)).sum()
        square += (wrong[:, 1:-1] ** 2).mean(axis=1).sum(), 2 * wrong.var(axis=1).sum()
    largest, square = largest / draws, np.sqrt(square / draws)
    if method.decoder is not None:  # then the mean is known without simulation
        unit = method.scale**2 * (2 if measure == "epsilon" else 1)
        ends = np.sort(chance.integers(0, leaves + 1, (4000, 2)), axis=1)
        inner = np.arange(1, leaves) if leaves <= 4000 else chance.integers(1, leaves, 4000)
        square[0] = math.sqrt(unit * method.decoder.interval_variance(0, inner).mean())
        square[1] = math.sqrt(unit * method.decoder.interval_variance(ends[:, 0], ends[:, 1]).mean())
    return dict(zip(COLUMNS, (*largest, *square), strict=True))


def ladder(leaves: int, measure: str, draws: int) -> float:
    """One table; how much worse `choose` is than the best row, at most."""
    print(f"D = {leaves:,}, {'epsilon = 1' if measure == 'epsilon' else 'rho = 1/2'}, {draws} draws")
    heads = ("max, thresholds", "max, intervals", "rms, thresholds", "rms, intervals")
    print(f"{'':<34}" + "".join(f"{head:>17}" for head in heads) + f"{'tree/this':>11}")
    rows: dict[str, dict[tuple[str, str], float]] = {}
    if measure == "epsilon":
        pairs = leaves * (leaves + 1) // 2
        scale = (leaves + 1) ** 2 // 4 / EPSILON
        worst = scale * (math.log(pairs) + 0.5772)  # of so many independent Laplace draws
        few = scale * (math.log(leaves) + 0.5772)
        rms = scale * math.sqrt(2)
        rows["every interval by itself"] = dict(zip(COLUMNS, (few, worst, rms, rms), strict=True))
    for method in methods(leaves, measure):
        rows[method.name] = errors(method, draws, leaves, measure)
    auto: dict[tuple[str, str], float] = {}
    known: dict[Any, dict[tuple[str, str], float]] = {}
    for loss, about in COLUMNS:
        picked = choose("x", leaves, measure, loss=loss, about=about).strategy  # type: ignore[arg-type]
        if picked not in known:
            known[picked] = errors(of_plan("", picked, leaves, measure), draws, leaves, measure)
        auto[loss, about] = known[picked][loss, about]
    rows["auto"] = auto
    tree = rows["binary tree, textbook"]["max", "intervals"]
    for name, row in rows.items():
        print(
            f"{name:<34}" + "".join(f"{row[c]:>17,.5g}" for c in COLUMNS) + f"{tree / row['max', 'intervals']:>11.2f}"
        )
    worse = max(auto[column] / min(row[column] for row in rows.values()) - 1 for column in COLUMNS)
    print(f"auto is at most {worse:.1%} worse than the best row; for intervals it is {_shape(leaves, measure)}\n")
    return worse


def _wide(leaves: int) -> Tree:
    """Footnote 2: the branching factor that is best for sums of nodes."""
    b = best_branching(leaves)
    depth = math.ceil(round(math.log(leaves, b), 9))
    return Tree("x", (b,) * depth, (1,) * depth)


def _short(tree: Tree) -> str:
    """Like 2x8^3."""
    runs = [(b, len(list(same))) for b, same in groupby(tree.branching)]
    return "x".join(f"{b}^{times}" if times > 2 else "x".join([str(b)] * times) for b, times in runs)


def _shape(leaves: int, measure: str) -> str:
    return json.dumps(to_dict(choose("x", leaves, measure).strategy))  # type: ignore[arg-type]


def on_data(draws: int) -> None:
    """Expected largest interval error on real histograms, and what shrinkage does to it."""
    files = sorted(DATA.glob("*.npy"))
    if not files:
        print(f"no histograms in {DATA.name}: the table on data is left out")
        return
    for measure in ("epsilon", "rho"):
        print(f"largest interval error on data, D = 4096, {'epsilon = 1' if measure == 'epsilon' else 'rho = 1/2'}")
        print(f"{'':<44}{'rows':>12}{'tree':>9}{'auto':>9}{'+shrunk':>11}{'rms':>8}{'+shrunk':>11}{'ratio':>7}")
        for file in files:
            counts = np.load(file)
            leaves, rows = counts.size, int(counts.sum())
            truth = np.concatenate([[0], np.cumsum(counts)]).astype(np.float64)
            auto = of_plan("", choose("x", leaves, measure).strategy, leaves, measure)  # type: ignore[arg-type]
            tree = of_tree("", textbook, regular("x", leaves, 2), leaves, measure)
            found = np.zeros(5)
            for draw in range(draws):
                wrong = []
                for method in (tree, auto):
                    chance = np.random.Generator(np.random.PCG64(draw))
                    z = (
                        chance.laplace(size=method.answers)
                        if measure == "epsilon"
                        else chance.normal(size=method.answers)
                    )
                    wrong.append(method.decode(z[None] * method.scale)[0])
                assert auto.decoder is not None
                noise = auto.scale**2 * (2 if measure == "epsilon" else 1)
                wrong.append(auto.decoder.likely(truth + wrong[1], noise) - truth)
                found += [*(w.max() - w.min() for w in wrong), *(2 * w.var() for w in wrong[1:])]
            worst, squares = found[:3] / draws, np.sqrt(found[3:] / draws)
            numbers = f"{worst[0]:>9.1f}{worst[1]:>9.1f}{worst[2]:>11.1f}{squares[0]:>8.2f}{squares[1]:>11.2f}"
            print(f"{file.name:<44}{rows:>12,}{numbers}{worst[0] / worst[2]:>7.1f}")
        print()


def seconds(leaves: int = 2**20) -> None:
    """What a release of a million bins takes, ledger and noise and all."""
    domain = Domain({"x": integer(0, leaves - 1)})
    chance = np.random.Generator(np.random.PCG64(1))
    records = read_records(open_source(pa.table({"x": chance.integers(0, leaves, 1_000_000)})), domain)
    add_noise(np.zeros(10**5, dtype=np.int64), Noise("gaussian", 2.0**20))
    Decoder(regular("x", 8, 2), 8).likely(np.arange(9.0), 1.0)  # what these two import is not timed
    print(f"D = {leaves:,}, n = 1,000,000: seconds of a release, true answers, noise and ledger included")
    for delta in (1e-9, 0.0):
        budget = Budget(epsilon=1.0, delta=delta)
        with tempfile.TemporaryDirectory() as name:
            path, anchor = Path(name) / "l.tacit", Anchor(Path(name) / "a.sqlite")
            ledger = Ledger.open(path, make="new", budget=budget, total=total(budget), binding={}, anchor=anchor)
            curator = Curator(records, ledger)
            strategy = choose("x", leaves, ledger.total.measure).strategy
            start = time.perf_counter()
            measured = curator.measure([strategy], ledger.total)[0]
            released = time.perf_counter()
            found = Distribution(measured, domain, records.rows)
            consistent = time.perf_counter()
            ends = np.sort(chance.integers(0, leaves, (2, 100_000)), axis=0)
            asked = time.perf_counter()
            found.counts(ends[0], ends[1])
            each = (time.perf_counter() - asked) / ends.shape[1] * 1e6
            ledger.close()
        kind = "zCDP" if delta else "pure"
        print(
            f"{kind}: release {released - start:.2f} + consistency {consistent - released:.2f} = "
            f"{consistent - start:.2f} s; a range with its error bar in a batch {each:.2f} µs"
        )
    print()


def main() -> None:
    sizes = FULL if "--full" in sys.argv else SIZES
    seconds()
    worst = max(ladder(size, measure, draws) for measure in ("epsilon", "rho") for size, draws in sizes.items())
    print(f"over all tables auto is at most {worst:.1%} worse than the best row\n")
    on_data(20)


if __name__ == "__main__":
    main()
