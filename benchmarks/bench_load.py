"""Loading: 10 million rows with 6 binned attributes from Parquet, against DuckDB's own GROUP BY of the same cells.

    python -m benchmarks.bench_load
    python -m benchmarks.bench_load --rows 100_000_000 --rounds 2     (1.2 GB of Parquet in the temporary folder)
    python -m benchmarks.bench_load --spark                           (needs pyspark and Java 17)
    python -m benchmarks.bench_load --person                          (three rows of each person, chosen by the engine)

Limit: at most 1.3 times DuckDB's time in the same run. The two take turns, and the best of several rounds counts. With
--spark the same file also goes through a local Spark, against Spark's own GROUP BY, and must give the same cells.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

import tacit
from tacit.load import open_source
from tacit.model.domain import Domain
from tacit.trusted.cells import read_records

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
MAKE = """
    SELECT 17 + CAST(FLOOR(random() * 74) AS INTEGER) AS age,
           CASE WHEN random() < 0.5 THEN 'F' ELSE 'M' END AS sex,
           random() * 100000 AS income,
           'occupation ' || CAST(FLOOR(random() * 16) AS INTEGER) AS occupation,
           CAST(FLOOR(random() * 100) AS INTEGER) AS hours,
           DATE '2015-01-01' + CAST(FLOOR(random() * 3650) AS INTEGER) AS day
    FROM range({rows})
"""
EACH = 3  # rows of one person that are counted; each has about four
BY_HAND = """
    SELECT (age - 17) // 5 AS a, sex, occupation, hours // 10 AS h, year(day) * 12 + month(day) AS m,
           CASE WHEN income < 10000 THEN 0 WHEN income < 25000 THEN 1 WHEN income < 50000 THEN 2 ELSE 3 END AS i,
           COUNT(*) AS n
    FROM read_parquet(?) GROUP BY ALL
"""


BY_HAND_ON_SPARK = BY_HAND.replace("//", "div").replace("read_parquet(?) GROUP BY ALL", "people GROUP BY ALL")


def by_hand(path: str) -> int:
    # As Arrow: numpy would get a Python object for every text, which is not DuckDB's time.
    connection = duckdb.connect()
    return int(connection.sql(BY_HAND, params=[path]).to_arrow_table().num_rows)


def by_hand_coded(path: str) -> int:
    coded = BY_HAND.replace("sex, occupation,", "sex = 'M' AS s, CAST(substr(occupation, 12) AS TINYINT) AS o,")
    return len(duckdb.connect().execute(coded, [path]).fetchnumpy()["n"])


def load(path: str) -> int:
    return read_records(open_source(path), DOMAIN).cells


def load_by_person(path: str) -> int:
    return read_records(open_source(path), DOMAIN, person="id", rows_per_person=EACH).cells


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


WAYS: dict[str, Callable[[str], int]] = {"by_hand": by_hand, "by_hand_coded": by_hand_coded, "load": load}
SHOWN = {
    "by_hand": "DuckDB's GROUP BY, to Arrow",
    "by_hand_coded": "DuckDB's GROUP BY of small integers, to numpy",
    "load": "Tacit's load",
    "load_by_person": f"Tacit's load, {EACH} rows a person",
}


class Best(NamedTuple):
    """The shortest time of each way, in seconds on the clock and of all processors, and what it found."""

    clock: dict[str, float]
    work: dict[str, float]
    found: dict[str, Any]


def best_of(rounds: int, ways: dict[str, Callable[[], Any]]) -> Best:
    """The ways take turns, so that all see the same machine."""
    best = Best(dict.fromkeys(ways, float("inf")), dict.fromkeys(ways, float("inf")), {})
    for _ in range(rounds):
        for name, way in ways.items():
            start, worked = time.perf_counter(), time.process_time()
            best.found[name] = way()
            best.clock[name] = min(best.clock[name], time.perf_counter() - start)
            best.work[name] = min(best.work[name], time.process_time() - worked)
    return best


def through_duckdb(path: str, rows: int, rounds: int, person: bool) -> None:
    ways = WAYS | ({"load_by_person": load_by_person} if person else {})
    best = best_of(rounds, {name: partial(way, path) for name, way in ways.items()})
    cells = best.found
    assert len({cells[name] for name in WAYS}) == 1, cells
    memory = {name: peak_memory(name, path) for name in ways}
    ratio, work = (time["load"] / min(time["by_hand"], time["by_hand_coded"]) for time in (best.clock, best.work))
    print(f"load: {rows:,} rows, {len(DOMAIN)} attributes, {cells['load']:,} distinct cells, best of {rounds}")
    for name in ways:
        print(f"  {SHOWN[name]:46}{best.clock[name]:6.2f} s  {memory[name]:6,} MB  {best.work[name]:6.1f} s of work")
    verdict = "ok" if ratio <= LIMIT else "TOO SLOW"
    print(f"  ratio to the faster {ratio:.2f} (limit {LIMIT}) {verdict}; of the work {work:.2f}")


@contextmanager
def local_spark(folder: str) -> Iterator[Any]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[*]").appName("tacit benchmark")
    settings = {
        "ui.enabled": "false",
        "ui.showConsoleProgress": "false",
        "driver.memory": "4g",
        "driver.host": "127.0.0.1",
        "driver.bindAddress": "127.0.0.1",
        "sql.shuffle.partitions": "8",
        "sql.warehouse.dir": folder,
    }
    for name, value in settings.items():
        builder = builder.config(f"spark.{name}", value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()


def spark_memory(session: Any) -> int:
    """The most memory, in MB, that Spark's own process has held."""
    pid = session.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
    status = Path(f"/proc/{pid}/status")
    return int(re.search(r"VmHWM:\s*(\d+)", status.read_text())[1]) // 1024 if status.exists() else 0  # type: ignore[index]


def through_spark(path: str, rows: int, rounds: int, folder: str) -> None:
    same = read_records(open_source(path), DOMAIN).fingerprint(b"benchmark")
    with local_spark(folder) as session:
        frame = session.read.parquet(path)
        frame.createOrReplaceTempView("people")
        ways = {
            "by_hand": lambda: session.sql(BY_HAND_ON_SPARK).toArrow().num_rows,
            "load": lambda: read_records(open_source(frame), DOMAIN),
        }
        best, _, found = best_of(rounds, ways)
        memory = spark_memory(session)
    assert found["load"].fingerprint(b"benchmark") == same, "Spark and DuckDB disagree"
    assert found["load"].cells == found["by_hand"]
    print(f"load through Spark: {rows:,} rows, {found['by_hand']:,} distinct cells, the same as DuckDB's")
    print(f"  {'Spark GROUP BY, to Arrow':46}{best['by_hand']:6.2f} s")
    print(f"  {'Tacit':46}{best['load']:6.2f} s")
    print(f"  ratio {best['load'] / best['by_hand']:.2f}; best of {rounds}; Spark's process held {memory:,} MB at most")


def main(arguments: Sequence[str] = ()) -> None:
    if len(arguments) == 2 and arguments[0] in SHOWN:  # a child of peak_memory
        (WAYS | {"load_by_person": load_by_person})[arguments[0]](arguments[1])
        print(high_water())
        return
    parser = argparse.ArgumentParser(description="How long a table takes to load.")
    parser.add_argument("--rows", type=int, default=ROWS, help="like 100_000_000; 12 bytes of disk each")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--spark", action="store_true", help="through a local Spark, too")
    parser.add_argument("--person", action="store_true", help="also with a bounded number of rows a person")
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "people.parquet")
        people = f"CAST(FLOOR(random() * {chosen.rows // 4}) AS BIGINT) AS id," if chosen.person else ""
        made = MAKE.format(rows=chosen.rows).replace("SELECT", f"SELECT {people}", 1)
        duckdb.connect().execute(f"COPY ({made}) TO '{path}' (FORMAT parquet)")
        if chosen.rows != ROWS:
            print(f"{Path(path).stat().st_size / 1e9:.2f} GB of Parquet")
        through_duckdb(path, chosen.rows, chosen.rounds, chosen.person)
        if chosen.spark:
            through_spark(path, chosen.rows, chosen.rounds, folder)


if __name__ == "__main__":
    main(sys.argv[1:])
