"""Multiplicative weights: free answers on 3 million cells, and a step on 10^8 cells against touching its cells once.

    python -m benchmarks.bench_multiplicative_weights

Limits: 1 ms an answer on average, the marginals they need after an update included; and a step (which reads its cells
once to know where it stands and scales them once) at most 3 times numpy's in-place product over the same cells.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import numpy as np

import tacit
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.hypothesis.cell_weights import Dense
from tacit.release.rules.multiplicative_weights import MultiplicativeWeights

QUESTIONS = 10_000
ROUNDS = 7
ANSWER_LIMIT = 1e-3
STEP_LIMIT = 3.0
PEOPLE = (15, 9, 16, 7, 5, 2, 10, 2)
LARGE = (50, 40, 50, 20, 50)


def main() -> None:
    answers()
    steps()
    print(f"  peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")


def answers() -> None:
    domain = _domain(PEOPLE)
    rng = np.random.default_rng(1)
    questions = [_conjunction(domain, rng) for _ in range(QUESTIONS)]
    rule = MultiplicativeWeights(domain, alpha=0.02, tolerance=0.005)
    hypothesis = rule.initial()
    for query in questions[:20]:
        rule.update(hypothesis, query, float(rng.uniform(0, 1)))
    print(f"answers: {domain.size:,} cells, {QUESTIONS:,} random conjunctions of up to 3 attributes")
    first = _seconds(lambda: [hypothesis.answer(query) for query in questions]) / QUESTIONS
    again = _seconds(lambda: [hypothesis.answer(query) for query in questions]) / QUESTIONS
    fresh = []
    for query in questions[:100]:  # the worst case: every answer is followed by an update
        rule.update(hypothesis, query, float(rng.uniform(0, 1)))
        fresh.append(_seconds(lambda query=query: hypothesis.answer(query)))  # type: ignore[misc]
    print(f"  after an update            {1000 * first:7.3f} ms each")
    print(f"  with all marginals cached  {1000 * again:7.3f} ms each")
    print(f"  an update before each      {1000 * float(np.mean(fresh)):7.3f} ms each")
    print(f"  limit {1000 * ANSWER_LIMIT:.0f} ms {'ok' if first <= ANSWER_LIMIT else 'TOO SLOW'}")


def steps() -> None:
    domain = _domain(LARGE)
    hypothesis = Dense(domain)
    rule = MultiplicativeWeights(domain, alpha=0.01, tolerance=0.001)
    weights = hypothesis._weights
    boxes: dict[str, dict[int, slice]] = {
        "outer attributes": {0: slice(3, 8), 1: slice(5, 15)},
        "middle attributes": {1: slice(3, 5), 3: slice(0, 10)},
        "inner attributes": {3: slice(3, 4), 4: slice(0, 25)},
        "four attributes": {0: slice(0, 20), 1: slice(10, 30), 2: slice(0, 25), 4: slice(10, 22)},
    }
    print(f"steps: {domain.size:,} cells, conjunctions that select about 2.5 % of them, best of {ROUNDS}")
    worst = 0.0
    for name, box in boxes.items():
        view = weights[tuple(box.get(axis, slice(None)) for axis in range(len(LARGE)))]
        query = Query.all(
            Query.among(domain, f"c{axis}", range(chosen.start, chosen.stop)) for axis, chosen in box.items()
        )
        targets = [0.4, 0.1]
        once = step = float("inf")
        for i in range(ROUNDS):
            once = min(once, _seconds(lambda: np.multiply(view, 1.0001, out=view)))  # noqa: B023
            step = min(step, _seconds(lambda: rule.update(hypothesis, query, targets[i % 2])))  # noqa: B023
        worst = max(worst, step / once)
        times = f"once {1000 * once:7.2f} ms  step {1000 * step:7.2f} ms  {step / once:5.2f}"
        print(f"  {name:20}{100 * view.size / domain.size:5.1f} %  {times}")
    print(f"  worst ratio {worst:.2f} (limit {STEP_LIMIT}) {'ok' if worst <= STEP_LIMIT else 'TOO SLOW'}")


def _domain(shape: tuple[int, ...]) -> Domain:
    return Domain({f"c{i}": tacit.integer(0, size - 1) for i, size in enumerate(shape)})


def _conjunction(domain: Domain, rng: np.random.Generator) -> Query:
    names = rng.choice(domain.names, size=rng.integers(1, 4), replace=False)
    return Query.all(
        Query.among(domain, name, rng.choice(domain[name].size, size=rng.integers(1, domain[name].size), replace=False))
        for name in names
    )


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
