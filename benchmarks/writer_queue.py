"""What the one writer of a data set sees: its service times, measured here, and a simulation of its queue.

    python -m benchmarks.writer_queue [--rows 2_000_000] [--hours 1]

Measured, in seconds of the processor, since other programs run here as well: what answering a batch of new questions
takes that a gate has to check, one commit for all of them, as a session on a made table in memory does it (a disk's
sync is not in it); and what one row of an encoded copy (12 attributes, a byte each, Parquet, one thread) takes to be
counted in all 66 pairs at once, and in one count of three attributes. --answers is what one second of a processor gives
of a server of a published file, as `bench_replicas` prints it.

Simulated: requests of one question each arrive at random (Poisson). The writer takes all that wait, up to 2,000
questions, answers them in one go, and begins again; more than 256 that wait are refused, as the server refuses them. If
one of a batch has to be counted in the engine, all of them wait for that one scan, which they share.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
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
RATES = (0.1, 1, 10, 40, 100, 500, 1_000, 2_000, 4_000, 5_000)  # requests a second
ROWS, NODES, CORES, DAILY = 1e12, 100, 16, 1e9
ANSWERS = 1_000  # of a certified base, a processor second of a server of a published file


@dataclass(frozen=True)
class Service:
    """Seconds that a batch takes: for itself, and for each of its questions."""

    batch: float
    each: float

    def time(self, questions: int) -> float:
        return self.batch + self.each * questions


@dataclass(frozen=True)
class Seen:
    """What came of a rate: the part of the time that the writer works, waits in seconds, and the part refused."""

    busy: float
    median: float
    worst: float  # of 99 in 100
    refused: float


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--answers", type=float, default=ANSWERS)
    options = parser.parse_args(arguments)
    print(f"load average {os.getloadavg()[0]:.1f}")
    with tempfile.TemporaryDirectory() as made:
        service = measured(Path(made))
        pairs, count, size = scanned(Path(made), options.rows)
    print(f"a batch of new questions: {1e3 * service.batch:.2f} ms and {1e3 * service.each:.3f} ms for each of them")
    print(
        f"an encoded row of {ATTRIBUTES} attributes: {size:.1f} bytes, {1e9 * pairs:.0f} ns for all 66 pairs, "
        f"{1e9 * count:.1f} ns for one count"
    )
    cores = NODES * CORES
    scan = ROWS * count / cores
    print(
        f"{ROWS:.0e} rows on {cores:,} cores: all pairs {ROWS * pairs / cores:,.0f} s, one count {scan:,.1f} s; "
        f"{ROWS * size / 1e12:.1f} TB"
    )
    second = DAILY / 86_400
    print(
        f"{DAILY:.0e} free answers a day: {second:,.0f} a second, {second / options.answers:,.1f} processors of servers"
    )
    for words, each in (("tables are remembered", 0.0), ("every batch is counted in the engine", scan)):
        print(f"\n{words}\n{'a second':>10}{'busy':>8}{'median s':>10}{'99 in 100':>11}{'refused':>9}")
        for rate in RATES:
            seen = simulated(rate, service, each, options.hours * 3600)
            print(f"{rate:>10,g}{seen.busy:>8.1%}{seen.median:>10.3f}{seen.worst:>11.3f}{seen.refused:>9.1%}")


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


def scanned(folder: Path, rows: int) -> tuple[float, float, float]:
    """Seconds of one thread for one row: of all pairs, and of a count of three attributes; and the bytes of a row."""
    names = [f"a{i}" for i in range(ATTRIBUTES)]
    with duckdb.connect(config={"threads": 1}) as engine:
        columns = ", ".join(f"CAST(FLOOR({VALUES} * random()) AS UTINYINT) AS {name}" for name in names)
        path = folder / "codes.parquet"
        engine.execute(f"COPY (SELECT {columns} FROM range({rows})) TO '{path}' (FORMAT parquet)")
        sets = ", ".join(f"({a}, {b})" for i, a in enumerate(names) for b in names[i + 1 :])
        pairs = (
            f"SELECT COUNT(*) FROM (SELECT {', '.join(names)}, COUNT(*) FROM '{path}' GROUP BY GROUPING SETS ({sets}))"
        )
        count = f"SELECT COUNT(*) FROM '{path}' WHERE a0 < 20 AND a1 IN (1, 2, 3) AND a2 >= 7"
        found = []
        for statement in (pairs, count):
            best = float("inf")
            for _ in range(2):
                start = time.process_time()
                engine.execute(statement).fetchall()
                best = min(best, time.process_time() - start)
            found.append(best / rows)
    return found[0], found[1], path.stat().st_size / rows


def simulated(rate: float, service: Service, scan: float, seconds: float) -> Seen:
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
        took = scan + service.time(len(taken))
        # Who arrives while it works waits, as long as there is room.
        now, busy = now + took, busy + took
        waits += [now - arrived for arrived in taken]
    found = np.array(waits)
    return Seen(busy / now, float(np.median(found)), float(np.quantile(found, 0.99)), refused / many)


if __name__ == "__main__":
    main()
