"""What a server's memory is made of while it grows: pages of programs, Python's objects, arrays, and what is free.

    python tests/serve/memory_parts.py --requests 0 300 3000 9000 15000 24000

The same clients as in `soak.py`, with shorter pauses. After each of these numbers of requests they stop, and the server
counts itself: Linux tells how much is of files, Python's allocator what it has taken for small objects, and the C
library what it has taken for the rest, and how much of that is free and not given back.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import soak
from benchmarks.serving.launch import PROGRAM, Server
from fuzzing import Judge
from soak import Load, prepared

from support import until

PAUSE = 0.002  # seconds between a client's requests, about
HEAD = (
    "requests",
    "resident",
    "files",
    "objects",
    "arrays",
    "free",
    "SQLite",
    "modules",
    "remembered",
    "conditions",
    "repeats",
)
# On a signal the server writes down what it holds, in a file that is whole when it is there.
COUNTS = """
import ctypes, gc, json, os, re, signal, sys, tempfile

def malloc_says():
    libc = ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    with tempfile.NamedTemporaryFile() as file:
        stream = ctypes.c_void_p(libc.fopen(file.name.encode(), b"w"))
        libc.malloc_info(0, stream)
        libc.fclose(stream)
        text = file.read().decode()
    text = text[text.rindex("</heap>"):]  # all arenas together
    sizes = {kind: int(size) for kind, size in re.findall(r'type="(\\w+)"(?: count="\\d+")? size="(\\d+)"', text)}
    return sizes["current"] + sizes["mmap"], sizes["fast"] + sizes["rest"]

def small_objects():
    # The statistics of Python's own allocator go to the descriptor of stderr, and nowhere else.
    with tempfile.TemporaryFile() as file:
        kept = os.dup(2)
        os.dup2(file.fileno(), 2)
        sys._debugmallocstats()
        os.dup2(kept, 2)
        os.close(kept)
        file.seek(0)
        text = file.read().decode()
    return int(re.search(r"# arenas allocated current\\s*=\\s*([\\d,]+)", text)[1].replace(",", "")) * 2**20

def count(*_):
    from tacit.model import factor
    gc.collect()
    status = dict(line.split(":") for line in open("/proc/self/status"))
    taken, free = malloc_says()
    sqlite = ctypes.CDLL("libsqlite3.so.0").sqlite3_memory_used
    sqlite.restype = ctypes.c_int64
    things = gc.get_objects()
    kept = sum(type(one).__name__ == "Remembered" for one in things)
    repeats = sum(len(one._repeats) for one in things if type(one).__name__ == "Dataset")
    found = [int(status[name].split()[0]) * 1024 for name in ("VmRSS", "RssFile")]
    conditions = factor._of_bits_or_runs.cache_info().currsize
    found += [small_objects(), taken - free, free, sqlite(), len(sys.modules), kept, conditions, repeats]
    place = sys.argv[1] + ".held"
    with open(place + ".new", "w") as file:
        json.dump(found, file)
    os.rename(place + ".new", place)

signal.signal(signal.SIGUSR1, count)
"""


def watch(folder: Path, stages: Sequence[int], say: Callable[[str], None] = print) -> list[list[int]]:
    """What the server holds after each of these numbers of requests: as in `HEAD`, in bytes or numbers."""
    config, keys = prepared(folder)
    held, rows, judge = Path(f"{config}.held"), list[list[int]](), Judge()
    say("".join(f"{name:>11}" for name in HEAD))
    with Server(config, COUNTS + PROGRAM) as server:
        for stage in stages:
            load = Load(server.address, keys, seed=100 * stage)  # other questions than before
            load.judge = judge
            if stage:
                load.start()
                try:
                    until(partial(_sent, judge, stage))
                finally:
                    load.end()
            os.kill(server.pid, signal.SIGUSR1)
            until(held.exists)
            rows.append([judge.statuses.total(), *json.loads(held.read_text())])
            held.unlink()
            sizes, numbers = rows[-1][1:-4], rows[-1][-4:]
            shown = [f"{rows[-1][0]:,}", *(f"{one / 2**20:.1f} MB" for one in sizes), *(f"{n:,}" for n in numbers)]
            say("".join(f"{one:>11}" for one in shown))
    assert judge.wrong == []
    return rows


def _sent(judge: Judge, least: int) -> bool:
    return judge.statuses.total() >= least


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--requests", type=int, nargs="+", default=[0, 300, 3_000, 9_000, 15_000, 24_000])
    stages = parser.parse_args(arguments).requests
    soak.PAUSE = PAUSE
    with tempfile.TemporaryDirectory() as folder:
        watch(Path(folder), stages, say=lambda line: print(line, flush=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
