"""What the one writer of a data set sees: its service times, measured here, and a simulation of its queue.

    python -m benchmarks.writer_queue [--rows 2_000_000] [--hours 1] [--spark]

Measured, in seconds of the processor, since other programs run here as well: what answering a batch of new questions
takes that a gate has to check, one commit for all of them, as a session on a made table in memory does it (a disk's
sync is not in it); and what one row of an encoded copy (12 attributes of 50 values, a byte each, Parquet, one thread)
takes to be counted: in all 66 pairs at once, in 20 triples at once, in the table of three attributes that a hard answer
is read from, and in one count under a condition, which no answer of Tacit is. By DuckDB; with --spark also by a local
Spark, as the difference between two sizes, so that its start is not in it. --answers is what one second of a processor
gives of a server of a published file, as `bench_replicas` prints it.

Beside them stands what `bench_scale` found of other engines, for 71 tables in one statement: `ELSEWHERE`. One table is
taken for a 71st of that.

Simulated: requests of one question each arrive at random (Poisson). The writer takes all that wait, up to 2,000
questions, answers them in one go, and begins again; more than 256 that wait are refused, as the server refuses them. If
one of a batch has to be counted in the engine, all of them wait for that. Questions about one table share its count;
those about others are counted in one statement together, as the triples are.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path

import duckdb
import numpy as np

from benchmarks.serving import table
from tacit.config import read_config
from tacit.model.ask import Count
from tacit.serve.question import read
from tacit.serve.turns import MAX_TOGETHER, MAX_WAITING

SIZES, ROUNDS = (1, 10, 100, 500), 4
ATTRIBUTES, VALUES = 12, 50
TRIPLES = math.comb(ATTRIBUTES, 3)
RATES = (0.001, 0.01, 0.1, 0.2, 1, 10, 40, 100, 500, 1_000, 2_000, 5_000, 10_000, 20_000)  # requests a second
ROWS, NODES, CORES, DAILY = 1e12, 100, 16, 1e9
ANSWERS = 1_050  # asked one at a time, a processor second of a server of a published file


NAMES = [f"a{i}" for i in range(ATTRIBUTES)]


@dataclass(frozen=True)
class Service:
    """Seconds that a batch takes: for itself, and for each of its questions."""

    batch: float
    each: float

    def time(self, questions: int) -> float:
        return self.batch + self.each * questions


@dataclass(frozen=True)
class Engine:
    """Seconds of one processor that a row takes to be counted. `count` is NaN where it was not measured."""

    name: str
    pairs: float
    triples: float
    table: float
    count: float

    @classmethod
    def of_sets(cls, name: str, seconds: float, rows: float, tables: int) -> Engine:
        """By what so many tables of so many rows took in one statement, each as much as another."""
        each = seconds / rows / tables
        return cls(name, 66 * each, 20 * each, each, math.nan)


@dataclass(frozen=True)
class Scan:
    """Seconds that one table takes to be counted alone, and each of several in one statement.

    tables: how many a question may be about, each as likely.
    """

    alone: float
    tables: int = 1
    among: float = 0.0

    def time(self, questions: int) -> float:
        if self.tables == 1 or questions == 1:
            return self.alone
        return self.among * self.tables * (1 - (1 - 1 / self.tables) ** questions)


@dataclass(frozen=True)
class Seen:
    """What came of a rate: the part of the time that the writer works, waits in seconds, and the part refused."""

    busy: float
    median: float
    worst: float  # of 99 in 100
    refused: float


# docs/log/benchmarks.md#tables-larger-than-memory: the work of 71 tables in one statement.
ELSEWHERE = (
    Engine.of_sets("PostgreSQL, 1e8 rows", 1410.9, 1e8, 71),
    Engine.of_sets("Spark, spilling, with its start", 28.8, 6e5, 71),
)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--answers", type=float, default=ANSWERS)
    parser.add_argument("--spark", action="store_true", help="also count in a local Spark: some minutes")
    options = parser.parse_args(arguments)
    print(f"load average {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as made:
        service = measured(Path(made))
        engine, size = scanned(Path(made), options.rows)
        engines = [engine, *ELSEWHERE, *([sparked(Path(made), options.rows)] if options.spark else [])]
    print(f"a batch of new questions: {1e3 * service.batch:.2f} ms and {1e3 * service.each:.3f} ms for each of them")
    print(f"an encoded row of {ATTRIBUTES} attributes: {size:.1f} bytes; {ROWS:.0e} rows: {ROWS * size / 1e12:.1f} TB")
    second = DAILY / 86_400
    print(
        f"{DAILY:.0e} free answers a day: {second:,.0f} a second, {second / options.answers:,.1f} processors of servers"
    )
    print_engines(engines)
    cases = [("tables are remembered", Scan(0.0))]
    for one in engines:
        alone, among = (ROWS * each / (NODES * CORES) for each in (one.table, one.triples / 20))
        cases += [(f"{one.name}: every question of a batch is about the same table", Scan(alone))]
        cases += [(f"{one.name}: every question is about any of {TRIPLES} tables", Scan(alone, TRIPLES, among))]
    for words, scan in cases:
        print(f"\n{words}\n{'a second':>10}{'busy':>8}{'median s':>13}{'99 in 100':>13}{'refused':>9}")
        for rate in RATES:
            if scan.alone and rate > MAX_WAITING / scan.alone:  # most are refused by then
                break
            seen = simulated(rate, service, scan, options.hours * 3600)
            print(f"{rate:>10,g}{seen.busy:>8.1%}{seen.median:>13,.3f}{seen.worst:>13,.3f}{seen.refused:>9.1%}")


def print_engines(engines: Sequence[Engine]) -> None:
    cores = NODES * CORES
    heads = ("66 pairs", "20 triples", "one table", "one count")
    print(f"\n{'ns a row, of one thread':<34}" + "".join(f"{head:>13}" for head in heads))
    for one in engines:
        print(_line(one, 1e9))
    print(f"{f'{ROWS:.0e} rows on {cores:,} cores, s':<34}")
    for one in engines:
        print(_line(one, ROWS / cores))


def _line(one: Engine, times: float) -> str:
    figures = (one.pairs, one.triples, one.table, one.count)
    return f"{one.name:<34}" + "".join(f"{'-' if math.isnan(each) else f'{times * each:,.1f}':>13}" for each in figures)


def measured(folder: Path) -> Service:
    """Least squares over batches of several sizes; of each size the best of some rounds."""
    questions = table.easy(5)
    with read_config(table.write(folder, "iterative", 10_000)).open() as session:
        session.start()
        session.answer_many([read(next(questions), session.domain).ask])
        taken = []
        for size in SIZES:
            best = float("inf")
            for _ in range(ROUNDS):
                asks = [read(one, session.domain).ask for one in islice(questions, size)]
                assert all(isinstance(ask, Count) for ask in asks)
                start = time.process_time()
                session.answer_many(asks)
                best = min(best, time.process_time() - start)
            taken.append(best)
    each, batch = np.polyfit(SIZES, taken, 1, w=1 / np.array(taken))
    return Service(max(float(batch), 0.0), float(each))


def statements(table: str) -> list[str]:
    """All pairs, 20 triples (those of six attributes), one table of three attributes, and one count."""

    def sets(names: Sequence[str], many: int) -> str:
        by = ", ".join(f"({', '.join(one)})" for one in combinations(names, many))
        grouped = f"SELECT {', '.join(names)}, COUNT(*) AS n FROM {table} GROUP BY GROUPING SETS ({by})"
        return f"SELECT COUNT(*) FROM ({grouped}) AS t"

    return [
        sets(NAMES, 2),
        sets(NAMES[:6], 3),
        f"SELECT COUNT(*) FROM (SELECT a0, a1, a2, COUNT(*) AS n FROM {table} GROUP BY a0, a1, a2) AS t",
        f"SELECT COUNT(*) FROM {table} WHERE a0 < 20 AND a1 IN (1, 2, 3) AND a2 >= 7",
    ]


def drawn(engine: duckdb.DuckDBPyConnection, path: Path, rows: int) -> Path:
    columns = ", ".join(f"CAST(FLOOR({VALUES} * random()) AS TINYINT) AS {name}" for name in NAMES)
    engine.execute(f"COPY (SELECT {columns} FROM range({rows})) TO '{path}' (FORMAT parquet)")
    return path


def scanned(folder: Path, rows: int) -> tuple[Engine, float]:
    """What one row takes one thread of DuckDB, and its bytes."""
    with duckdb.connect(config={"threads": 1}) as engine:
        path = drawn(engine, folder / "codes.parquet", rows)
        found = []
        for statement in statements(f"'{path}'"):
            best = float("inf")
            for _ in range(2):
                start = time.process_time()
                engine.execute(statement).fetchall()
                best = min(best, time.process_time() - start)
            found.append(best / rows)
    return Engine("DuckDB", *found), path.stat().st_size / rows


def sparked(folder: Path, rows: int) -> Engine:
    """What one row more takes a local Spark of one thread that has compiled what it runs, with room for all groups."""
    from pyspark.sql import SparkSession

    settings = {"ui.enabled": "false", "driver.memory": "4g", "sql.shuffle.partitions": "2", "local.dir": str(folder)}
    builder = SparkSession.builder.master("local[1]")
    for name, value in settings.items():
        builder = builder.config(f"spark.{name}", value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    server, found = session.sparkContext._gateway.proc.pid, list[float]()

    def used() -> float:
        times = Path(f"/proc/{server}/stat").read_text().rsplit(")", 1)[1].split()[11:15]
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")

    # A single table takes so little that it needs more rows to be told from the rest.
    sizes = [(rows // 8, rows // 2)] * 2 + [(rows, 8 * rows)] * 2
    with duckdb.connect() as engine:
        for many in {size for both in sizes for size in both}:
            path = drawn(engine, folder / f"{many}.parquet", many)
            session.read.parquet(str(path)).createOrReplaceTempView(f"rows_{many}")
    for number, (few, many) in enumerate(sizes):
        took = dict[int, float]()
        for size in (few, many):
            for _ in range(3):
                start = used()
                session.sql(statements(f"rows_{size}")[number]).collect()
                took[size] = min(took.get(size, math.inf), used() - start)
        found.append((took[many] - took[few]) / (many - few))
    session.stop()
    return Engine("Spark, without its start", *found)


def simulated(rate: float, service: Service, scan: Scan, seconds: float) -> Seen:
    """The queue for so long. At most 200,000 requests are made, so that a high rate is followed for less time."""
    rng = np.random.default_rng(7)
    many = int(min(200_000, max(1_000, rate * seconds)))
    arrivals = np.cumsum(rng.exponential(1 / rate, many))
    waiting, waits, refused, now, busy, at = deque[float](), list[float](), 0, 0.0, 0.0, 0
    while at < many or waiting:
        if not waiting:
            now = max(now, arrivals[at])
        while at < many and arrivals[at] <= now:
            if len(waiting) < MAX_WAITING:
                waiting.append(arrivals[at])
            else:
                refused += 1
            at += 1
        if not waiting:
            continue
        taken = [waiting.popleft() for _ in range(min(MAX_TOGETHER, len(waiting)))]
        took = scan.time(len(taken)) + service.time(len(taken))
        # Who arrives while it works waits, as long as there is room.
        now, busy = now + took, busy + took
        waits += [now - arrived for arrived in taken]
    found = np.array(waits)
    return Seen(busy / now, float(np.median(found)), float(np.quantile(found, 0.99)), refused / many)


if __name__ == "__main__":
    main()
