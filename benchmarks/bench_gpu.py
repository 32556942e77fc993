"""The listed hypothesis on a graphics card: milliseconds a step and an answer, against the card's memory bandwidth.

`python -m benchmarks.bench_gpu 8 9 10` takes powers of ten cells. Needs PyTorch and a card; else it says so.
Bandwidth is measured in the same run, by copying an array of the same size.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

import tacit
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.hypothesis.arrays import MEMORY, room, torch_device
from tacit.release.hypothesis.cell_weights import Dense
from tacit.release.hypothesis.mixture_problem import Problem

ROUNDS = 5


def domain_of(power: int) -> Domain:
    """So many attributes of ten values."""
    return Domain({f"a{i}": tacit.integer(0, 9) for i in range(power)})


def conjunction(domain: Domain, rng: np.random.Generator, attributes: int) -> Query:
    names = rng.choice(domain.names, attributes, replace=False)
    halves = [Query.among(domain, str(name), range(low := int(rng.integers(0, 5)), low + 5)) for name in names]
    return Query.all(halves)


def check(device: str) -> float:
    """The largest difference from the ordinary hypothesis, over steps, answers and tables of a million cells."""
    domain, rng = domain_of(6), np.random.default_rng(0)
    plain, card = Dense(domain), Dense(domain, device=torch_device(device))
    worst = 0.0
    for i in range(20):
        query = conjunction(domain, rng, 1 + i % 3)
        if i % 5 == 4:
            query = query & Query.weighted(domain, ["a0", "a3"], rng.random((10, 10)))
        tilt = float(rng.normal())
        for one in (plain, card):
            one.scale(query, tilt)
        asked = [conjunction(domain, rng, 1 + j % 3) for j in range(20)]
        worst = max(worst, float(np.abs(plain.answer_many(asked) - card.answer_many(asked)).max()))
        names = list(rng.choice(domain.names, 2, replace=False))
        worst = max(worst, float(np.abs(plain.marginal(names) - card.marginal(names)).max()))
    rows = card.draw(100_000, rng)
    seen = np.bincount(rows[0], minlength=10) / 100_000
    assert np.abs(seen - card.marginal(["a0"])).max() < 0.02
    return worst


def mixtures(sizes: list[int]) -> None:
    """The fit of a mixture to all pairs of 14 attributes: the gradient against the processor's, and the time."""
    from tacit.model.budget import Loss
    from tacit.model.entry import Measured
    from tacit.model.facts import Receipt
    from tacit.model.noise_law import Noise
    from tacit.model.workload import marginal
    from tacit.release.hypothesis import fit_mixture

    print("\nvalues  components  gradient off by  numpy s   card s  ratio  misfit, numpy  card")
    for size in sizes:
        domain = Domain({f"a{i}": tacit.integer(0, size - 1) for i in range(14)})
        rng = np.random.default_rng(2)
        kinds = rng.dirichlet(np.ones(8))
        laws = [rng.dirichlet(np.full(size, 0.3), 8) for _ in range(14)]
        measured = []
        for i in range(14):
            for j in range(i + 1, 14):
                cells = (laws[i] * kinds[:, None]).T @ laws[j] * 50_000 + rng.normal(0, 30, (size, size))
                table = marginal(domain, f"a{i}", f"a{j}")
                cells = cells if table.names == (f"a{i}", f"a{j}") else cells.T
                counts = np.rint(cells).astype(np.int64).ravel()
                noise, free = Noise("gaussian", 30.0), Loss("rho", 0)
                measured.append(
                    Measured(
                        key=f"{i} {j}",
                        question=table,
                        values=counts,
                        unit=1,
                        noise=noise,
                        cost=free,
                        receipt=Receipt(0, ""),
                    )
                )
        devices = MEMORY, torch_device()
        problem, card = (Problem(domain, measured, 50_000, device=device) for device in devices)
        components = fit_mixture.COMPONENTS
        place = rng.normal(0, 1, (components, problem.width)).astype(np.float32), np.zeros(components, np.float32)
        theirs = [card.device.back(one) for one in card.slopes(*(card.device.hold(one) for one in place))]
        pairs = zip(problem.slopes(*place), theirs, strict=True)
        off = max(float(np.abs(a - b).max() / np.abs(a).max()) for a, b in pairs)
        seconds, misfits = [], []
        for limit in (10**30, 0):  # never a card, always
            fit_mixture._FOR_A_CARD = limit
            start = time.perf_counter()
            found = fit_mixture.fit_mixture(domain, measured, 50_000)
            seconds.append(time.perf_counter() - start)
            misfits.append(found.misfit / found.numbers)
        print(
            f"{problem.width:>6}{components:>12}{off:>17.1e}{seconds[0]:>9.1f}{seconds[1]:>9.1f}"
            f"{seconds[0] / seconds[1]:>6.1f}x{misfits[0]:>15.3f}{misfits[1]:>6.3f}",
            flush=True,
        )


def timed(work: Callable[[], object], sync: Callable[[], object]) -> float:
    """Milliseconds, the least of a few rounds."""
    found = []
    for _ in range(ROUNDS):
        sync()
        start = time.perf_counter()
        work()
        sync()
        found.append(1000 * (time.perf_counter() - start))
    return min(found)


def main() -> None:
    if not room():
        print("There is no card, or no PyTorch: the hypothesis is kept in memory instead.")
        return
    import torch

    print(f"{torch.cuda.get_device_name()}; largest difference from numpy at 10^6 cells: {check('cuda'):.1e}")
    print("cells      copy ms   GB/s   step ms  of copy  narrow ms  answer ms  of read  fresh table ms")
    for power in map(int, sys.argv[1:] or ["8", "9"]):
        domain, rng = domain_of(power), np.random.default_rng(1)
        if domain.size > room():
            print(f"10^{power:<7} does not fit: room for {room():,} cells")
            continue
        hypothesis, sync = Dense(domain, device=torch_device()), torch.cuda.synchronize
        weights = hypothesis._weights
        copy = timed(lambda w=weights: w.mul_(1.0), sync)  # type: ignore[misc]  # reads and writes each cell once
        wide = Query.among(domain, "a0", range(5))  # half of all cells
        narrow = conjunction(domain, rng, 3)

        def step(query: Query, which: Dense = hypothesis) -> None:
            which.scale(query, 0.1)

        wide_ms, narrow_ms = timed(lambda q=wide: step(q), sync), timed(lambda q=narrow: step(q), sync)  # type: ignore[misc]
        asked = [conjunction(domain, rng, 3) for _ in range(200)]

        def answers(which: Dense = hypothesis, queries: list[Query] = asked) -> None:
            which.answer_many(queries)

        hypothesis.scale(wide, 0.0001)  # forget the tables
        sync()
        start = time.perf_counter()
        hypothesis.marginal(["a1", "a2", "a3"])
        sync()
        table = 1000 * (time.perf_counter() - start)
        answers()
        each = timed(answers, sync) / len(asked)
        bandwidth = 16 * domain.size / copy / 1e6
        print(
            f"10^{power:<7} {copy:8.2f} {bandwidth:6.0f} {wide_ms:9.2f} {wide_ms / copy:7.2f}x {narrow_ms:9.2f} "
            f"{each:10.3f} {table / (copy / 2):7.2f}x {table:10.2f}"
        )
        del hypothesis, weights
        torch.cuda.empty_cache()
    mixtures([20, 60, 140])


if __name__ == "__main__":
    main()
