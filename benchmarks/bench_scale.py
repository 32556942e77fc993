"""Tables larger than memory: what an encoded copy, its start and its bound cost, beside the engine's own statement.

    python -m benchmarks.bench_scale                                    10 million rows of 12 attributes
    python -m benchmarks.bench_scale --rows 10_000_000 100_000_000      how it grows; 30 bytes of disk a row meanwhile
    python -m benchmarks.bench_scale --postgres                         in a PostgreSQL server of its own
    python -m benchmarks.bench_scale --rows 600_000 --spark             in a local Spark with too little memory

Every step is a process of its own, so that its memory is its own. Rows are drawn by the engine, nearly all different.
The engine's own statement counts the same `GROUPING SETS` of the same file, in DuckDB with the same limit of memory.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import duckdb

import tacit
from benchmarks.serving.postgresql import PostgreSQL
from tacit.load import open_source
from tacit.load.copies import Copy
from tacit.load.engines import ENGINE_MEMORY
from tacit.model.counting import Group
from tacit.model.domain import Domain
from tacit.model.workload import marginal
from tacit.owner.rows import Rows

SIZES = (2, 3, 5, 7, 8, 9, 10, 12, 16, 20, 25, 40)
ROWS = 10_000_000
THREADS = 2
FIGURES: Path | None = None  # what the steps have found so far
HEAP = "1g"  # of Spark
SHARE = "0.04"  # of its heap for what it sorts and groups, 29 MB: it has to spill
EACH = 4  # rows of a person, on average; 2 of them count
BUDGET = tacit.Budget(epsilon=1.0, delta=1e-9)
DOMAIN = Domain({f"x{i}": tacit.integer(0, size - 1) for i, size in enumerate(SIZES)})


def made(rows: int, source: str = "range({})") -> str:
    """The statement that draws the rows: the larger a value, the rarer, and each attribute leans on the one before."""
    drawn = ", ".join(f"random() AS u{i}" for i in range(len(SIZES)))
    leant = ["u0", *(f"(0.7 * u{i} + 0.3 * u{i - 1})" for i in range(1, len(SIZES)))]
    columns = ", ".join(
        f"CAST(FLOOR(POWER({u}, 1.5) * {size}) AS INTEGER) AS x{i}"
        for i, (u, size) in enumerate(zip(leant, SIZES, strict=True))
    )
    who = f"CAST(FLOOR(random() * {max(1, rows // EACH)}) AS BIGINT)"
    return f"SELECT {columns}, who FROM (SELECT {drawn}, {who} AS who FROM {source.format(rows)}) AS drawn"


def drawn(rows: int) -> str:
    """As `made`, for DuckDB: a query that draws the same rows whenever it is asked, at a third of the price."""
    words = ", ".join(f"hash(range * 4 + {k}) AS h{k}" for k in range(4))
    uniform = ", ".join(
        f"CAST((h{i // 4} >> {i % 4 * 16}) & 65535 AS FLOAT) / 65536 AS u{i}" for i in range(len(SIZES))
    )
    leant = ["u0", *(f"(CAST(0.7 AS FLOAT) * u{i} + CAST(0.3 AS FLOAT) * u{i - 1})" for i in range(1, len(SIZES)))]
    columns = ", ".join(
        f"CAST(FLOOR({u} * SQRT({u}) * {size}) AS TINYINT) AS x{i}"
        for i, (u, size) in enumerate(zip(leant, SIZES, strict=True))
    )
    who = f"h3 % {max(1, rows // EACH)}"
    return f"SELECT {columns}, who FROM (SELECT {uniform}, {who} AS who FROM (SELECT {words} FROM range({rows})))"


def measured(work: Callable[[], Any]) -> tuple[dict[str, Any], Any]:
    """How long it took, in seconds and in seconds of processor, the bytes it read, and what it gave."""
    before, clock, used = _read_bytes(), time.perf_counter(), time.process_time()
    found = work()
    took = {"seconds": time.perf_counter() - clock, "processor": time.process_time() - used}
    return took | {"read": _read_bytes() - before}, found


def _read_bytes() -> int:
    """All that this process has asked files for, from the disk or its cache."""
    lines = Path("/proc/self/io").read_text().splitlines() if Path("/proc/self/io").exists() else ["rchar: 0"]
    return int(dict(line.split(": ") for line in lines)["rchar"])


def make(folder: str, rows: int) -> dict[str, Any]:
    connection = _limited(folder)
    took, _ = measured(lambda: connection.execute(f"COPY ({made(rows)}) TO '{folder}/table.parquet' (FORMAT parquet)"))
    return took | {"bytes": os.path.getsize(f"{folder}/table.parquet")}


def data_of(folder: str, rows: int) -> str:
    """The table: a file where it was made, and else the query that draws its rows."""
    made_there = f"{folder}/table.parquet"
    return made_there if os.path.exists(made_there) else drawn(rows)


def encode(folder: str, rows: int, bound: int = 0) -> dict[str, Any]:
    """The copy; with a bound, of at most so many rows of each person."""
    whose: dict[str, Any] = {"person": "who", "rows_per_person": bound} if bound else {}
    table = Rows(data_of(folder, rows), DOMAIN, Path(folder, f"bound{bound}.tacit"), held="engine", **whose)
    source = open_source(table.data)
    took, copy = measured(lambda: table.encode(source))
    return took | {"bytes": os.path.getsize(copy.place), "kept": copy.rows()}


def start(folder: str, rows: int, certify: float) -> dict[str, Any]:
    """A session from its opening to its start: the tables of all pairs, those of its certificate, and some triples."""
    steps = list[dict[str, Any]]()
    prepare = Copy.prepare

    def timed(self: Copy, wanted: Sequence[Group]) -> None:
        took, _ = measured(lambda: prepare(self, wanted))
        names = {frozenset(one.names) for one in wanted}
        place = {name: f"c{i}" for i, name in enumerate(self.domain)}
        largest = [one for one in names if not any(one < other for other in names)]
        if len(largest) > 1 and took["read"] > 2**20:  # else all of it was remembered
            steps.append(took | {"sets": [sorted(place[name] for name in one) for one in largest]})

    Copy.prepare = timed  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as beside:
        ledger, copy = Path(beside, "l.tacit"), f"{folder}/bound0.tacit.codes"
        given: dict[str, Any] = {"data": data_of(folder, rows), "domain": DOMAIN, "budget": BUDGET}
        given |= {"ledger": ledger, "anchor": Path(beside, "anchor"), "held": "engine", "copy": copy}
        opening, session = measured(lambda: tacit.open(**given, mechanism="iterative", warm=0.8, certify=certify))
        starting, _ = measured(session.start)
        chosen = [marginal(DOMAIN, *one) for one in combinations(DOMAIN.names[-6:], 3)]
        session._curator._records.prepare(chosen)  # type: ignore[union-attr]
        asking, _ = measured(lambda: session.ask("SELECT COUNT(*) FROM data WHERE x1 = 1 AND x7 < 5 AND x11 > 20"))
        session.close()
    return {"opening": opening, "starting": starting, "asking": asking, "steps": steps}


def tables(folder: str, rows: int, pairs: int, triples: int) -> dict[str, Any]:
    """Pairs and triples of attributes, all those of so many attributes of the most values, without a session."""
    table = Rows(
        data_of(folder, rows),
        DOMAIN,
        Path(folder, "tables.tacit"),
        held="engine",
        copy=f"{folder}/bound0.tacit.codes",
    )
    records = table.read()
    chosen = [
        one for many, of in ((2, pairs), (3, triples)) for one in combinations(DOMAIN.names[len(DOMAIN) - of :], many)
    ]
    counting, _ = measured(lambda: records.prepare([marginal(DOMAIN, *one) for one in chosen]))
    place = {name: f"c{i}" for i, name in enumerate(DOMAIN)}
    names = [set(one) for one in chosen]
    sets = [sorted(place[name] for name in one) for one in names if not any(one < other for other in names)]
    return {"counting": counting, "sets": sets}


def own(folder: str, rows: int, sets: Sequence[Sequence[str]]) -> dict[str, Any]:
    """What somebody would write for the engine: one statement for the same tables."""
    connection = _limited(folder)
    columns = ", ".join(sorted({column for one in sets for column in one}))
    by = ", ".join(f"({', '.join(one)})" for one in sets)
    copy = f"read_parquet('{folder}/bound0.tacit.codes')"
    sql = f"SELECT {columns}, COUNT(*) AS n FROM {copy} GROUP BY GROUPING SETS ({by})"
    return measured(lambda: connection.execute(sql).fetchnumpy())[0]


def _limited(folder: str) -> duckdb.DuckDBPyConnection:
    settings: dict[str, Any] = {"memory_limit": ENGINE_MEMORY, "threads": THREADS, "temp_directory": f"{folder}/spill"}
    return duckdb.connect(config=settings | {"preserve_insertion_order": False})


def there(work: Callable[[], Any], server: int) -> tuple[dict[str, Any], Any]:
    """As `measured`, with the processor time of a server's process and of those that it has started and seen end."""

    def used() -> float:
        times = Path(f"/proc/{server}/stat").read_text().rsplit(")", 1)[1].split()[11:15]
        return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")

    before, begin = used(), time.time()
    took, found = measured(work)
    end = time.time()
    time.sleep(1)  # until the server has noticed that a connection was closed
    return took | {"processor": used() - before, "begin": begin, "end": end}, found


def wanted() -> tuple[list[Group], str]:
    """The tables of all pairs and of some triples, and the engine's own statement for those that do not follow."""
    names = DOMAIN.names
    triples = [set(one) for one in combinations(names[-6:], 3)]
    groups = [Group(one) for many in (2, 3) for one in combinations(names if many == 2 else names[-6:], many)]
    largest = [one.names for one in groups if not any(set(one.names) < triple for triple in triples)]
    columns = ", ".join(f"c{i}" for i in range(len(SIZES)))
    by = ", ".join(f"({', '.join(f'c{names.index(name)}' for name in one)})" for one in largest)
    return groups, f"SELECT {columns}, COUNT(*) AS n FROM bench_codes GROUP BY GROUPING SETS ({by})"


def postgres(folder: str, rows: int, url: str) -> dict[str, Any]:
    import psycopg

    groups, by_hand = wanted()
    found = dict[str, Any]()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS bench_scale, bench_codes")
        connection.execute(f"CREATE UNLOGGED TABLE bench_scale AS {made(rows, 'generate_series(1, {})')}")
        connection.execute("ANALYZE bench_scale")
        ((told,),) = connection.execute("SELECT pg_read_file('postmaster.pid')").fetchall()
        server = int(told.split()[0])
        table = Rows(url, DOMAIN, Path(folder, "l.tacit"), "bench_scale", held="engine", copy="bench_codes")
        found["written"], copy = there(lambda: table.encode(open_source(url, "bench_scale")), server)
        ((found["size"],),) = connection.execute("SELECT pg_table_size('bench_codes')").fetchall()
        found["counted"], _ = there(lambda: copy.prepare(groups), server)
        found["own"], _ = there(lambda: open_source(url, "bench_codes").fetch(by_hand), server)
        connection.execute("DROP TABLE bench_scale, bench_codes")
    return found | {"tables": by_hand.count("(c")}


def spark(folder: str, rows: int) -> dict[str, Any]:
    from pyspark.sql import SparkSession

    settings = {"ui.enabled": "false", "driver.memory": HEAP, "sql.shuffle.partitions": "2", "local.dir": folder}
    settings |= {"memory.fraction": SHARE, "eventLog.enabled": "true", "eventLog.dir": folder}
    settings |= {"eventLog.compress": "false"}
    builder = SparkSession.builder.master(f"local[{THREADS}]")
    for name, value in settings.items():
        builder = builder.config(f"spark.{name}", value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    server = session.sparkContext._gateway.proc.pid
    session.sql(made(rows)).write.parquet(f"{folder}/spark")
    groups, by_hand = wanted()
    ledger, found = Path(folder, "l.tacit"), dict[str, Any]()
    table = Rows(session.read.parquet(f"{folder}/spark"), DOMAIN, ledger, held="engine")
    found["written"], copy = there(lambda: table.encode(open_source(table.data)), server)
    session.read.parquet(copy.place).createOrReplaceTempView("bench_codes")
    for _ in range(2):  # the better of two by turns: what Java has compiled for one is there for the other
        copy._tables.clear()
        ours, _ = there(lambda: copy.prepare(groups), server)
        theirs, _ = there(lambda: session.sql(by_hand).toArrow(), server)
        found["counted"] = min(found.get("counted", ours), ours, key=lambda took: took["processor"])
        found["own"] = min(found.get("own", theirs), theirs, key=lambda took: took["processor"])
    whose = Rows(table.data, DOMAIN, ledger, person="who", rows_per_person=2, held="engine", copy=f"{folder}/bound")
    found["bounded"], _ = there(lambda: whose.encode(open_source(table.data)), server)
    size = sum(file.stat().st_size for file in Path(copy.place).rglob("*.parquet"))
    session.stop()
    for step in found.values():
        step["spilled"] = _spilled(folder, step["begin"], step["end"])
    return found | {"size": size, "tables": by_hand.count("(c")}


def _spilled(folder: str, begin: float, end: float) -> int:
    """The bytes that Spark's tasks wrote to the disk for want of memory between two times, by its log of events."""
    found = 0
    for log in Path(folder).rglob("events_*"):
        for event in map(json.loads, log.read_text().splitlines()):
            if begin <= event.get("Task Info", {}).get("Finish Time", 0) / 1000 <= end:
                found += (event.get("Task Metrics") or {}).get("Disk Bytes Spilled", 0)
    return found


STEPS: dict[str, Callable[..., dict[str, Any]]] = {
    "make": make, "encode": encode, "tables": tables, "start": start, "own": own, "postgres": postgres, "spark": spark,
}  # fmt: skip


def child(step: str, folder: str, *given: Any) -> dict[str, Any]:
    """A step in a process of its own, with its largest memory. With `--figures` it is not done twice."""
    name = json.dumps([step, *given])
    done = FIGURES.read_text().splitlines() if FIGURES is not None and FIGURES.exists() else []
    for line in done:
        if (kept := json.loads(line))["step"] == name:
            return dict(kept)
    command = [sys.executable, "-m", "benchmarks.bench_scale", "--step", step, json.dumps([folder, *given])]
    told = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    found = dict(json.loads(told.splitlines()[-1]))
    if FIGURES is not None:
        with FIGURES.open("a") as file:
            file.write(json.dumps({"step": name} | found) + "\n")
    return found


def shown(name: str, took: dict[str, Any], memory: float | None = None, more: str = "") -> None:
    held = "" if memory is None else f"{memory:>8.2f}"
    figures = f"{took['seconds']:>8.1f}{took['processor']:>8.1f}{took['read'] / 1e9:>8.2f}"
    print(f"  {name:<44}{figures}{held}{more}", flush=True)


def one_size(
    folder: str, rows: int, *, query: bool, bound: bool, certify: float, pairs: int, triples: int, only: bool
) -> dict[str, float]:
    print(f"{rows:,} rows of {len(SIZES)} attributes, {DOMAIN.size:.1e} cells")
    print(f"  {'':<44}{'s':>8}{'cpu s':>8}{'GB read':>8}{'GB held':>8}")
    if not query:
        step = child("make", folder, rows)
        shown("made by DuckDB", step, step["memory"], f"  {step['bytes'] / 1e9:.2f} GB of Parquet")
    plain = child("encode", folder, rows)
    name = "tacit encode, of a query" if query else "tacit encode"
    shown(name, plain, plain["memory"], f"  {plain['bytes'] / rows:.1f} bytes a row")
    if not only:
        started = child("start", folder, rows, certify)
        shown("open a session: count and fingerprint", started["opening"])
        shown("start: tables, certificate and fit", started["starting"], started["memory"])
        for step in started["steps"]:
            many = step["sets"]
            shown(f"  of it, {len(many)} tables of {len(many[0])} attributes", step)
        shown("a free answer", started["asking"])
    counted = child("tables", folder, rows, pairs, triples)
    sets = counted["sets"]
    shown(f"{len(sets)} tables of {len(sets[0])} to {len(sets[-1])} attributes", counted["counting"], counted["memory"])
    by_hand = child("own", folder, rows, sets)
    clock, work = (counted["counting"][unit] / by_hand[unit] for unit in ("seconds", "processor"))
    more = f"  ratio {clock:.2f} by the clock, {work:.2f} of the work"
    shown("the engine's own GROUPING SETS, these tables", by_hand, by_hand["memory"], more)
    if bound:
        kept = child("encode", folder, rows, 2)
        more = f"  {kept['processor'] / plain['processor']:.1f} times the work; {kept['kept']:,} rows kept"
        shown("tacit encode, 2 rows of each person", kept, kept["memory"], more)
        Path(folder, "bound2.tacit.codes").unlink(missing_ok=True)
    for name in ("table.parquet", "bound0.tacit.codes"):
        Path(folder, name).unlink(missing_ok=True)
    held = max(counted["memory"], 0 if only else started["memory"])
    return {"rows": rows, "encoding": plain["processor"], "counting": counted["counting"]["processor"], "memory": held}


def other_engine(rows: int, where: str, took: dict[str, Any]) -> None:
    print(f"{where}: {rows:,} rows; the processor time is the engine's")
    print(f"  {'':<44}{'s':>8}{'cpu s':>8}")

    def line(name: str, step: str, more: str = "") -> None:
        spilled = f"  {took[step]['spilled'] / 1e6:,.0f} MB spilled" if "spilled" in took[step] else ""
        print(f"  {name:<44}{took[step]['seconds']:>8.1f}{took[step]['processor']:>8.1f}{spilled}{more}")

    line("tacit encode", "written", f"  {took['size'] / rows:.1f} bytes a row")
    if "bounded" in took:
        line("tacit encode, 2 rows of each person", "bounded")
    line(f"{took['tables']} tables in one scan", "counted", f"  our process held {took['memory']:.2f} GB")
    clock, work = (took["counted"][unit] / took["own"][unit] for unit in ("seconds", "processor"))
    line("its own GROUPING SETS", "own", f"  ratio {clock:.2f} by the clock, {work:.2f} of the work")


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.bench_scale", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[ROWS])
    parser.add_argument("--folder", help="where tables are made and deleted again [default: a temporary one]")
    parser.add_argument("--query", action="store_true", help="the table is a query that draws its rows, and no file")
    parser.add_argument("--bound", action="store_true", help="also with 2 rows of each person")
    parser.add_argument("--certify", type=float, default=0.1, help="0: without the tables of a certificate")
    parser.add_argument("--pairs", type=int, default=len(SIZES), help="attributes whose pairs are counted")
    parser.add_argument("--triples", type=int, default=6, help="attributes whose triples are counted")
    parser.add_argument("--only", action="store_true", help="these tables, and no session")
    parser.add_argument("--figures", type=Path, help="a file for what is found, so that a run can go on: give a folder")
    parser.add_argument(
        "--postgres", metavar="URL", nargs="?", const="", help="in PostgreSQL instead [default: its own]"
    )
    parser.add_argument("--spark", action="store_true", help="in a local Spark instead")
    parser.add_argument("--step", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.step:
        facts = STEPS[chosen.step[0]](*json.loads(chosen.step[1]))
        held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(json.dumps(facts | {"memory": held}))
        return
    global FIGURES
    FIGURES = chosen.figures
    kept = contextlib.nullcontext(chosen.folder) if FIGURES and chosen.folder else None
    with kept or tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        for rows in chosen.rows if chosen.postgres is not None else ():
            with contextlib.nullcontext(chosen.postgres) if chosen.postgres else PostgreSQL() as server:
                url = server if isinstance(server, str) else server.url
                other_engine(rows, "PostgreSQL", child("postgres", folder, rows, url))
        for rows in chosen.rows if chosen.spark else ():
            other_engine(rows, f"Spark, {SHARE} of a heap of {HEAP}", child("spark", folder, rows))
        if chosen.spark or chosen.postgres is not None:
            return
        found = [
            one_size(
                folder,
                rows,
                query=chosen.query,
                bound=chosen.bound,
                certify=chosen.certify,
                pairs=chosen.pairs,
                triples=chosen.triples,
                only=chosen.only,
            )
            for rows in chosen.rows
        ]
    for small, large in pairwise(found):
        rows, encoding, counting, held = (
            large[name] / small[name] for name in ("rows", "encoding", "counting", "memory")
        )
        print(f"{rows:.0f} times the rows: {encoding:.1f} times the work of encoding, {counting:.1f} times that of")
        print(f"  counting, {held:.2f} times the memory")


if __name__ == "__main__":
    main(sys.argv[1:])
