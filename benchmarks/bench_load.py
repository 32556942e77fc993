"""Loading: 10 million rows with 6 binned attributes from Parquet, against DuckDB's own GROUP BY of the same cells.

    python -m benchmarks.bench_load

Limit: at most 1.3 times DuckDB's time in the same run. The two take turns, and the best of several rounds counts.
"""

from __future__ import annotations

import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import duckdb

import tacit
from tacit.model.domain import Domain
from tacit.trusted.records import Records

ROWS = 10_000_000
ROUNDS = 5
LIMIT = 1.3
OCCUPATIONS = [f"occupation {i}" for i in range(16)]
DOMAIN = Domain(
    {
        "age": tacit.integer(17, 91, width=5),
        "sex": tacit.category(["F", "M"]),
        "income": tacit.numeric([0, 10_000, 25_000, 50_000, 100_000]),
        "occupation": tacit.category(OCCUPATIONS),
        "hours": tacit.integer(0, 99, width=10),
        "day": tacit.date("2015-01-01", "2024-12-31", by="month"),
    }
)
MAKE = f"""
    SELECT 17 + CAST(FLOOR(random() * 74) AS INTEGER) AS age,
           CASE WHEN random() < 0.5 THEN 'F' ELSE 'M' END AS sex,
           random() * 100000 AS income,
           'occupation ' || CAST(FLOOR(random() * 16) AS INTEGER) AS occupation,
           CAST(FLOOR(random() * 100) AS INTEGER) AS hours,
           DATE '2015-01-01' + CAST(FLOOR(random() * 3650) AS INTEGER) AS day
    FROM range({ROWS})
"""
BY_HAND = """
    SELECT (age - 17) // 5 AS a, sex, occupation, hours // 10 AS h, year(day) * 12 + month(day) AS m,
           CASE WHEN income < 10000 THEN 0 WHEN income < 25000 THEN 1 WHEN income < 50000 THEN 2 ELSE 3 END AS i,
           COUNT(*) AS n
    FROM read_parquet(?) GROUP BY ALL
"""


def by_hand(path: str) -> int:
    # As Arrow: numpy would get a Python object for every text, which is not DuckDB's time.
    connection = duckdb.connect()
    return int(connection.sql(BY_HAND, params=[path]).to_arrow_table().num_rows)


def by_hand_coded(path: str) -> int:
    coded = BY_HAND.replace("sex, occupation,", "sex = 'M' AS s, CAST(substr(occupation, 12) AS TINYINT) AS o,")
    return len(duckdb.connect().execute(coded, [path]).fetchnumpy()["n"])


def load(path: str) -> int:
    return Records.load(path, DOMAIN).cells


def peak_memory(name: str, path: str) -> int:
    """The most memory, in MB, that a process of its own has held."""
    command = [sys.executable, "-m", "benchmarks.bench_load", name, path]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def high_water() -> int:
    # getrusage would also count what the parent held when it started this process; Linux tells our own share.
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s*(\d+)", status.read_text())[1]) // 1024  # type: ignore[index]
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main() -> None:
    ways: dict[str, Callable[[str], int]] = {"by_hand": by_hand, "by_hand_coded": by_hand_coded, "load": load}
    if len(sys.argv) == 3 and sys.argv[1] in ways:  # a child of peak_memory
        ways[sys.argv[1]](sys.argv[2])
        print(high_water())
        return
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "people.parquet")
        duckdb.connect().execute(f"COPY ({MAKE}) TO '{path}' (FORMAT parquet)")
        best, cells = dict.fromkeys(ways, float("inf")), {}
        for _ in range(ROUNDS):
            for name, way in ways.items():
                start = time.perf_counter()
                cells[name] = way(path)
                best[name] = min(best[name], time.perf_counter() - start)
        assert len(set(cells.values())) == 1, cells
        memory = {name: peak_memory(name, path) for name in ways}
    ratio = best["load"] / min(best["by_hand"], best["by_hand_coded"])
    print(f"load: {ROWS:,} rows, {len(DOMAIN)} attributes, {cells['load']:,} distinct cells, best of {ROUNDS}")
    shown = ("DuckDB's GROUP BY, to Arrow", "DuckDB's GROUP BY of small integers, to numpy", "Records.load")
    for name, what in zip(ways, shown, strict=True):
        print(f"  {what:46}{best[name]:6.2f} s  {memory[name]:6,} MB")
    print(f"  ratio to the faster {ratio:.2f} (limit {LIMIT}) {'ok' if ratio <= LIMIT else 'TOO SLOW'}")


if __name__ == "__main__":
    main()
