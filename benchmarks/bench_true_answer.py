"""True answers: a conjunction over 3 attributes on 1 million distinct cells, against numpy reading the columns once.

    python -m benchmarks.bench_true_answer

Limit: at most 3 times numpy's comparisons and sum in the same run.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

import tacit
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.trusted.records import Records

CELLS = 1_000_000
ROUNDS = 50
LIMIT = 3.0
DOMAIN = Domain({f"c{i}": tacit.integer(0, size - 1) for i, size in enumerate((15, 8, 100, 2, 16, 40))})


def main() -> None:
    rng = np.random.default_rng(1)
    columns = [rng.integers(0, size, CELLS).astype(np.uint8) for size in DOMAIN.shape]
    counts = rng.integers(1, 20, CELLS)
    records = Records(DOMAIN, columns, counts)
    a, b, c = columns[0], columns[2], columns[4]

    def among(**values: object) -> Query:
        return Query.all(Query.among(DOMAIN, name, indices) for name, indices in values.items())  # type: ignore[arg-type]

    one = among(c0=[3], c2=[50], c4=[2])
    ranges = among(c0=range(3, 12), c2=range(20, 90), c4=range(1, 13))
    scattered = among(c0=[0, 3, 4, 9], c2=range(0, 100, 3), c4=[1, 5, 9, 13])
    weighted = Query.weighted(DOMAIN, ["c0"], np.linspace(0, 1, 15)) & among(c2=range(20, 90), c4=[2])
    ways: dict[str, Callable[[], object]] = {
        "numpy: compare and sum": lambda: counts[(a == 3) & (b == 50) & (c == 2)].sum(),
        "numpy: plain sums": lambda: (a.sum(), b.sum(), c.sum(), counts.sum()),
        "numpy: compare ranges, sum": lambda: counts[
            (a >= 3) & (a < 12) & (b >= 20) & (b < 90) & (c >= 1) & (c < 13)
        ].sum(),
        "answer: one value each": lambda: records.answer(one),
        "answer: ranges": lambda: records.answer(ranges),
        "answer: scattered values": lambda: records.answer(scattered),
        "answer: weighted": lambda: records.answer(weighted),
        "table: 2 attributes": lambda: records.table(["c0", "c2"]),
    }
    assert records.answer(one) == int(counts[(a == 3) & (b == 50) & (c == 2)].sum())
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(ROUNDS):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            best[name] = min(best[name], time.perf_counter() - start)
    baseline = best["numpy: compare and sum"]
    print(f"true answer: {CELLS:,} distinct cells, 3 attributes, best of {ROUNDS}")
    for name, seconds in best.items():
        print(f"  {name:26}{1000 * seconds:7.2f} ms  {seconds / baseline:6.2f}")
    ratio = best["answer: one value each"] / baseline
    print(f"  ratio {ratio:.2f} (limit {LIMIT}) {'ok' if ratio <= LIMIT else 'TOO SLOW'}")


if __name__ == "__main__":
    main()
