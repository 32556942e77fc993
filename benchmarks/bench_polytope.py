"""Samplers of the consistent polytope: effective samples a second of query values, against hopsy and polytopewalk.

`python -m benchmarks.bench_polytope [seconds]`: one process, one thread, each sampler for so many seconds (default 20).

An effective sample: the values of 40 random queries along a run, each with the variance and the autocorrelation of the
pooled run; autocorrelations are summed in pairs for as long as the pairs are positive (Geyer 1992, the initial positive
sequence). Time is that of the moves; finding a first point and compiling are left out for all, and everybody starts
from the same analytic centre and drops the first fifth. Peers get the natural full-dimensional form: the last cell is
eliminated. A row whose means disagree with ours, and that had enough effective samples to tell, is flagged.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.model.attribute import integer
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.samplers.fractions import Fractions
from tacit.release.samplers.pairs import pair_step
from tacit.release.samplers.polytope import Slabs, centre, settled

Array = NDArray[np.float64]
SIZES, SLABS, WIDTH, PROBES, CHAINS = (100, 1_000, 5_000), (0, 10, 50), 0.01, 40, 64


class Run(NamedTuple):
    """Query values along a run (chains, draws, queries) and the seconds it took."""

    values: Array
    seconds: float


class Efficiency(NamedTuple):
    median: float
    worst: float
    means: Array
    errors: Array
    enough: bool


def effective(run: Run) -> Efficiency:
    """Effective samples a second, the median and the worst query's."""
    values = run.values[:, run.values.shape[1] // 5 :]
    chains, draws, queries = values.shape
    means = values.mean(axis=(0, 1))
    centred = values - means
    variances = np.maximum((centred**2).mean(axis=(0, 1)), 1e-300)
    length = 1 << (2 * draws - 1).bit_length()
    spectrum = np.abs(np.fft.rfft(centred, length, axis=1)) ** 2
    covariances = np.fft.irfft(spectrum, length, axis=1)[:, :draws].mean(axis=0) / draws
    correlations = covariances / variances
    times = np.empty(queries)
    for i, rho in enumerate(correlations.T):
        sums = rho[: draws // 2 * 2].reshape(-1, 2).sum(axis=1)
        stop = int(np.argmax(sums <= 0)) if (sums <= 0).any() else len(sums)
        times[i] = max(2 * sums[:stop].sum() - 1, 1 / draws)
    samples = chains * draws / times
    kept = run.seconds * 0.8
    return Efficiency(
        float(np.median(samples) / kept),
        float(samples.min() / kept),
        means,
        np.sqrt(variances / samples),
        bool(np.median(samples) > 20),
    )


def problem(cells: int, slabs: int) -> tuple[Slabs, Array]:
    """Random predicates, with the answers of a population that is far from uniform; and the probes."""
    rng = np.random.default_rng([cells, slabs])
    data = rng.dirichlet(np.full(cells, 0.3))
    found = Slabs.whole(np.ones(cells))
    for _ in range(slabs):
        weights = (rng.random(cells) < 0.5).astype(float)
        found = found.within(weights, float(weights @ data), WIDTH)
    return found, (rng.random((PROBES, cells)) < 0.5).astype(float)


def timed(step: Callable[[int], Array], limit: float) -> Run:
    """Calls `step(draws)`, which gives (chains, draws, queries), with ever more draws until the time is up."""
    parts: list[Array] = []
    spent, draws = 0.0, 1
    while spent < limit:
        begun = time.perf_counter()
        values = step(draws)
        took = time.perf_counter() - begun
        parts.append(values)
        spent += took
        rate = took / values.shape[1]
        draws = int(min(4 * draws, max(1, (limit - spent) / max(rate, 1e-9)), 5_000))
        if len(parts) > 2 and rate > limit:
            break
    return Run(np.concatenate(parts, axis=1), spent)


def ours(slabs: Slabs, probes: Array, limit: float) -> Run:
    rng = np.random.default_rng(1)
    middle = centre(slabs).masses if len(slabs.low) else np.full(len(slabs.sizes), 1 / len(slabs.sizes))
    state = settled(slabs, np.repeat(middle[:, None], CHAINS, axis=1))
    pair_step(rng, slabs, state)  # compiles
    reading = 0.0

    def step(draws: int) -> Array:
        nonlocal state, reading
        values = np.empty((CHAINS, draws, PROBES))
        for i in range(draws):
            state = pair_step(rng, slabs, state)
            begun = time.perf_counter()
            values[:, i] = (probes @ state.masses).T
            reading += time.perf_counter() - begun
        return values

    run = timed(step, limit)
    return Run(run.values, run.seconds - reading)


def inequalities(slabs: Slabs) -> tuple[Array, Array]:
    """A x <= b for the cells but the last, which holds what they leave."""
    cells = len(slabs.sizes)
    rows = [-np.eye(cells - 1), np.ones((1, cells - 1))]
    bounds = [np.zeros(cells - 1), np.ones(1)]
    last = slabs.weights[-1]
    reduced = (slabs.weights[:-1] - last).T
    rows += [reduced, -reduced]
    bounds += [slabs.high - last, last - slabs.low]
    return np.concatenate(rows), np.concatenate(bounds)


def read(points: Array, probes: Array) -> Array:
    """Query values of points without their last cell: (1, draws, queries)."""
    last = probes[:, -1:]
    values: Array = (points @ (probes[:, :-1] - last).T + last.T)[None]
    return values


def hopsy_walks(slabs: Slabs, probes: Array, limit: float) -> Iterator[tuple[str, Callable[[], Run]]]:
    import hopsy

    cells = len(slabs.sizes)
    a, b = inequalities(slabs)
    start = centre(slabs).masses[:-1]
    walks: dict[str, tuple[Any, int, int]] = {  # proposal, moves for each draw, the largest size worth trying
        "hopsy coordinate hit-and-run": (hopsy.UniformCoordinateHitAndRunProposal, cells, 10**9),
        "hopsy hit-and-run": (hopsy.UniformHitAndRunProposal, max(1, cells // 100), 10**9),
        "hopsy billiard walk": (hopsy.BilliardWalkProposal, 1, 1_000),
        "hopsy Dikin walk": (hopsy.DikinWalkProposal, 1, 100),
    }
    for name, (proposal, moves, largest) in walks.items():
        if cells > largest:
            continue

        def run(proposal: Any = proposal, moves: int = moves) -> Run:
            target = hopsy.Problem(a, b, starting_point=start)
            chain = hopsy.MarkovChain(target, proposal=proposal)
            generator = hopsy.RandomNumberGenerator(seed=1)

            def step(draws: int) -> Array:
                _, states = hopsy.sample(chain, generator, n_samples=draws, thinning=moves)
                return read(states[0], probes)

            return timed(step, limit)

        yield name, run


def polytopewalk_walks(slabs: Slabs, probes: Array, limit: float) -> Iterator[tuple[str, Callable[[], Run]]]:
    from polytopewalk import dense

    cells = len(slabs.sizes)
    a, b = inequalities(slabs)
    scale = float(cells)  # in units of 1/|X|, so that its absolute tolerances are small
    first = centre(slabs).masses[:-1] * scale
    walks: dict[str, tuple[Any, int, int]] = {
        "polytopewalk hit-and-run": (lambda: dense.HitAndRun(r=1.0, err=1e-6), max(1, cells // 1000), 10**9),
        "polytopewalk Dikin walk": (lambda: dense.DikinWalk(r=0.5), 1, 1_000),
        "polytopewalk Vaidya walk": (lambda: dense.VaidyaWalk(r=0.5), 1, 100),
        "polytopewalk John walk": (lambda: dense.JohnWalk(r=0.5), 1, 100),
    }
    for name, (make, moves, largest) in walks.items():
        if cells > largest:
            continue

        def run(make: Any = make, moves: int = moves) -> Run:
            walk, at, seed = make(), first, 1

            def step(draws: int) -> Array:
                nonlocal at, seed
                points = walk.generateCompleteWalk(draws * moves, at, a, b * scale, thin=moves, seed=seed)
                at, seed = points[-1], seed + 1
                return read(points / scale, probes)

            return timed(step, limit)

        yield name, run


def peers(slabs: Slabs, probes: Array, limit: float) -> Iterator[tuple[str, Callable[[], Run]]]:
    for package, walks in (("hopsy", hopsy_walks), ("polytopewalk", polytopewalk_walks)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                yield from walks(slabs, probes, limit)
        except ImportError:
            print(f"  {package} is not installed (dependency group bench): skipped")


def verdict(mine: Efficiency, theirs: Efficiency) -> str:
    if not theirs.enough:
        return "too few effective samples to compare means"
    z = (theirs.means - mine.means) / np.hypot(theirs.errors, mine.errors)
    rms = float(np.sqrt((z**2).mean()))
    return f"means agree (z {rms:.1f})" if rms < 2.5 else f"MEANS DISAGREE (z {rms:.1f})"


def compare(limit: float) -> None:
    print(f"{limit:g} s each; effective samples a second, median (worst)")
    for cells in SIZES:
        for number in SLABS:
            slabs, probes = problem(cells, number)
            mine = effective(ours(slabs, probes, limit))
            print(f"\n|X| = {cells:,}, {number} slabs")
            print(f"  {'ours, pair moves':<30} {mine.median:>12,.1f} ({mine.worst:,.1f})", flush=True)
            best = 0.0
            for name, run in peers(slabs, probes, limit):
                try:
                    theirs = effective(run())
                except Exception as error:  # a peer's own
                    print(f"  {name:<30} failed: {str(error)[:80]}")
                    continue
                flag = verdict(mine, theirs)
                if "DISAGREE" not in flag:
                    best = max(best, theirs.median)
                print(f"  {name:<30} {theirs.median:>12,.3f} ({theirs.worst:,.3f})  {flag}", flush=True)
            if best:
                print(f"  ratio ours / best peer: {mine.median / best:,.0f}", flush=True)


def large() -> None:
    """Where the peers cannot run: atoms, their centre, and pair moves on atoms."""
    print("\nFractional ensembles of 200 samples, conjunctions of 2 or 3 equalities, width 0.005")
    print("   |X|  slabs   atoms  restrict    values infeasible  drift   memory")
    for digits in (6, 12):
        domain = Domain({f"digit {i}": integer(0, 9) for i in range(digits)})
        rng = np.random.default_rng(digits)
        classes = rng.dirichlet(np.full(10, 0.5), size=(8, digits))
        which = rng.integers(8, size=20_000)
        rows = np.array([[rng.choice(10, p=classes[c, i]) for i in range(digits)] for c in which[:5_000]])
        ensemble = Fractions.start(domain, 200, 1)
        ensemble.restrict(Query.among(domain, "digit 0", [0]) & Query.among(domain, "digit 1", [0]), 0.02, 0.005)
        for count in range(1, 31 if digits == 6 else 21):
            chosen = [int(i) for i in rng.permutation(digits)[: rng.integers(2, 4)]]
            values = [int(rng.integers(10)) for _ in chosen]
            query = Query.all(Query.among(domain, f"digit {i}", [v]) for i, v in zip(chosen, values, strict=True))
            answer = float((rows[:, chosen] == values).all(axis=1).mean())
            begun = time.perf_counter()
            ensemble = ensemble.restrict(query, answer, 0.005)
            took = time.perf_counter() - begun
            if count % 10 == 0:
                begun = time.perf_counter()
                ensemble.values(Query.among(domain, "digit 2", [1, 3]) & Query.among(domain, "digit 4", [5]))
                reading = time.perf_counter() - begun
                found = ensemble.diagnostics()
                print(
                    f"{f'10^{digits}':>6} {count:>6} {len(ensemble.atoms):>7,} {took:>7.2f} s {reading * 1e3:>6.1f} ms "
                    f"{found.infeasible / found.databases:>10.3f} {found.drift:>6.2f} {found.memory:>8.2f}",
                    flush=True,
                )


THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def main(limit: float = 20.0) -> None:
    if not THREADS.items() <= os.environ.items():  # they are read when numpy is loaded, so by a new process only
        command = [sys.executable, "-m", "benchmarks.bench_polytope", str(limit)]
        subprocess.run(command, env=os.environ | THREADS, check=True)
        return
    compare(limit)
    large()


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
