"""A server for an hour at mixed load: what it holds in memory, descriptors and files over time, and why that grows.

    python tests/serve/soak.py [--minutes 60]
    python tests/serve/soak.py --questions 12500

New questions, repeats, batches, requests from the API's own description (right and wrong), bytes that are no requests,
logins and downloads, from eight clients at once. What grows is compared with the number of the ledger's lines: a
file's bytes and the memory may grow with these, and descriptors with nothing. The figures and pictures go to
`build/audit`; `make audit` puts them into its report. With `--questions`, one client asks so many new ones, and nothing
else: what they leave in memory is printed, on a busy machine as on a quiet one.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.serving.launch import PROGRAM, Server
from benchmarks.serving.wire import Gone, Plain
from fuzzing import Judge, Maker, send_bytes
from serving import WHO, write_config

from audit_record import FOLDER, commit, record
from support import until
from tacit.serve import make_key
from tacit.show.chart import Axis, Chart, Grid, Polyline

SAMPLES = 240  # of a whole run
READY = 100  # requests before the first sample: by then every client is connected, however busy the machine is
PAUSE = 0.01  # seconds between a client's requests, about
WARM = 0.25  # of a run: caches fill up
MOST_A_LINE = 4096  # bytes of a file that a line of the ledger, or a request, may cost
MEMORY_A_LINE = 256  # bytes of memory that a line may cost for good
MOST_DESCRIPTORS = 8  # more after the caches are warm than before: a connection may be there when one looks, or not
MOST_BESIDE = 24 * 2**20  # bytes of memory, whatever the lines: bounded caches of questions, and what threads keep
ALLOWED = "what grew is within what lines and bounded caches are allowed"
ASK, ASK_MANY, PUBLISHED = "/v1/people/ask", "/v1/people/ask_many", "/v1/people/published"


@dataclass(frozen=True)
class Sample:
    """What a server holds at a moment."""

    minutes: float
    requests: int
    lines: int
    memory: int
    descriptors: int
    ledger: int
    audit: int


def questions(rng: random.Random) -> dict[str, Any]:
    """One of more counts than are ever asked. No table that the others buy has all of its attributes."""
    ages = sorted(rng.sample(range(100), rng.randint(1, 9)))
    pay = rng.choice(([0, 10], [10, 20], [0, 20], [20, 50]))
    return {"count": {"age": {"in": ages}, "sex": rng.choice("FM"), "active": rng.random() < 0.5, "pay": pay}}


class Load:
    """Eight clients until `stop`; what they send is counted, and what comes back is judged as in `fuzzing.py`."""

    def __init__(self, address: str, keys: dict[str, str], seed: int = 0) -> None:
        self.address, self.keys, self.judge, self.stop = address, keys, Judge(), threading.Event()
        kinds = [self.described, self.described, self.new, self.new, self.batches, self.repeats, self.bytes, self.rare]
        self._threads = [threading.Thread(target=self._run, args=(kind, at)) for at, kind in enumerate(kinds, seed)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join()

    def _run(self, kind: Callable[[int, Plain, random.Random], Callable[[], None]], seed: int) -> None:
        rng, client = random.Random(seed), Plain(self.address, self.keys["ana"])
        step = kind(seed, client, rng)
        while not self.stop.is_set():
            try:
                step()
            except Gone:  # a connection that waited for too long, or bytes that were no request
                client.close()
            self.stop.wait(rng.expovariate(1 / PAUSE))
        client.close()

    def _call(self, client: Plain, method: str, path: str, body: Any = None) -> None:
        sent = None if body is None else json.dumps(body).encode()
        self.judge.see(method, path, sent, client.call(method, path, sent))

    def described(self, seed: int, client: Plain, rng: random.Random) -> Callable[[], None]:
        made = Maker(seed).requests()
        # What is made at random may ask for sharp answers, and must not use up what others ask with.
        spends_little = {name: self.keys["mia" if name in ("ana", "mia") else "rea"] for name in WHO}

        def step() -> None:
            method, path, who, body, more = next(made)
            one = Plain(self.address, spends_little.get(who or "", "tacit_wrong" if who else None))
            try:
                self.judge.see(method, path, body, one.call(method, path, body, more))
            finally:
                one.close()

        return step

    def new(self, seed: int, client: Plain, rng: random.Random) -> Callable[[], None]:
        return lambda: self._call(client, "POST", ASK, {"question": questions(rng)})

    def repeats(self, seed: int, client: Plain, rng: random.Random) -> Callable[[], None]:
        asked = [questions(rng) for _ in range(100)]
        return lambda: self._call(client, "POST", ASK, {"question": rng.choice(asked)})

    def batches(self, seed: int, client: Plain, rng: random.Random) -> Callable[[], None]:
        return lambda: self._call(client, "POST", ASK_MANY, {"questions": [questions(rng) for _ in range(5)]})

    def bytes(self, seed: int, client: Plain, rng: random.Random) -> Callable[[], None]:
        maker = Maker(seed)
        return lambda: send_bytes(self.address, maker.raw(self.keys["rea"]), self.judge)

    def rare(self, seed: int, client: Plain, rng: random.Random) -> Callable[[], None]:
        """What people do now and then: a login, a page of the history, the budget; sometimes a download."""

        def step() -> None:
            self._call(client, "GET", rng.choice(["/v1/people/budget", "/v1/people/history", "/v1/health"]))
            if rng.random() < 0.02:
                visitor = Plain(self.address)
                self._call(visitor, "POST", "/v1/login", {"key": self.keys["ana"]})
                visitor.close()
            if rng.random() < 0.002:
                client.call("GET", PUBLISHED)

        return step


def sample(server: Server, folder: Path, load: Load, began: float) -> Sample:
    ledger = folder / "people.tacit"
    with closing(sqlite3.connect(f"file:{ledger}?mode=ro", uri=True)) as db:
        (lines,) = db.execute("SELECT COALESCE(MAX(seq), 0) FROM entries").fetchone()
    size = sum(path.stat().st_size for path in (ledger, Path(f"{ledger}-wal")) if path.exists())
    audit = sum(path.stat().st_size for path in folder.glob("people.tacit.audit*"))
    opened = len(list(Path(f"/proc/{server.pid}/fd").iterdir()))
    with load.judge.lock:
        requests = load.judge.statuses.total()
    minutes = (time.perf_counter() - began) / 60
    return Sample(minutes, requests, lines, server.resident, opened, size, audit)


def unexplained(samples: Sequence[Sample]) -> list[str]:
    """What grew more than the ledger's lines explain, after the caches are warm."""
    warm = samples[math.ceil(WARM * len(samples)) :]  # by number: a busy machine may take the last one much later
    first, last = warm[0], warm[-1]
    lines = last.lines - first.lines
    found = []
    if last.memory - first.memory > MOST_BESIDE + MEMORY_A_LINE * lines:
        found.append(f"{(last.memory - first.memory) / 2**20:.0f} MB of memory for {lines:,} lines")
    for name in ("ledger", "audit"):
        more = getattr(last, name) - getattr(first, name)
        if name == "ledger" and more > 2**22 + MOST_A_LINE * lines:
            found.append(f"{more / 2**20:.0f} MB of the ledger for {lines:,} lines")
        if name == "audit" and more > 2**20 + MOST_A_LINE * (last.requests - first.requests):
            found.append(f"{more / 2**20:.0f} MB of the audit log for {last.requests - first.requests:,} requests")
    half = len(warm) // 2
    before, after = (int(np.median([one.descriptors for one in part])) for part in (warm[:half], warm[half:]))
    if after - before > MOST_DESCRIPTORS:
        found.append(f"{after} descriptors after {before}")
    return found


def picture(samples: Sequence[Sample]) -> Grid:
    """Memory, descriptors, the ledger and its lines over time."""
    minutes = [one.minutes for one in samples]
    shown = {
        "Memory": ("MB", [one.memory / 2**20 for one in samples]),
        "Open descriptors": ("descriptors", [one.descriptors for one in samples]),
        "The ledger and the audit log": ("MB", [(one.ledger + one.audit) / 2**20 for one in samples]),
        "Lines of the ledger": ("lines", [one.lines for one in samples]),
    }
    charts = [
        Chart(title, x=Axis("minutes", low=0), y=Axis(unit, low=0), marks=[Polyline(minutes, values)])
        for title, (unit, values) in shown.items()
    ]
    return Grid(f"{samples[-1].minutes:.0f} minutes at mixed load, {samples[-1].requests:,} requests", charts)


def soak(folder: Path, minutes: float, samples: int = SAMPLES, say: Callable[[str], None] = print) -> list[str]:
    """Run it, keep figures and picture, and say what went wrong or grew without a reason."""
    config, keys = prepared(folder)
    seen = list[Sample]()
    with Server(config, PROGRAM) as server:
        load = Load(server.address, keys)
        load.start()
        try:
            until(lambda: load.judge.statuses.total() >= READY)
            began = time.perf_counter()
            for number in range(samples + 1):
                seen.append(sample(server, folder, load, began))
                if number % max(1, samples // 20) == 0:
                    one = seen[-1]
                    say(f"{one.minutes:6.1f} min {one.requests:10,} requests {one.lines:10,} lines "
                        f"{one.memory / 2**20:8.1f} MB {one.descriptors:5} descriptors "
                        f"{one.ledger / 2**20:8.1f} MB ledger {one.audit / 2**20:8.1f} MB audit log")  # fmt: skip
                time.sleep(max(0.0, began + (number + 1) * minutes * 60 / samples - time.perf_counter()))
        finally:
            load.end()
        running = server.running
    wrong = [*load.judge.wrong[:5], *unexplained(seen), *([] if running else ["the server ended"])]
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "soak.svg").write_text(picture(seen).svg())
    record("soak", "soak", samples=[asdict(one) for one in seen], wrong=wrong, commit=commit())
    return wrong


def ask_new(folder: Path, count: int, say: Callable[[str], None] = print) -> None:
    """What a server holds after each fifth of so many new questions."""
    config, keys = prepared(folder)
    rng = random.Random(0)
    with Server(config, PROGRAM) as server:
        load, began = Load(server.address, keys), time.perf_counter()
        client = Plain(server.address, keys["ana"])
        step = load.new(0, client, rng)
        for number in range(1, count + 1):
            step()
            if number % max(1, count // 5) == 0:
                one = sample(server, folder, load, began)
                say(f"{number:10,} questions {one.lines:10,} lines {one.memory / 2**20:8.1f} MB")
        client.close()


def prepared(folder: Path) -> tuple[Path, dict[str, str]]:
    """The configuration of a server, and its keys."""
    config = write_config(folder, questions=10_000_000)
    config.write_text(config.read_text().replace("width = 10", "width = 1"))  # for more questions than can be asked
    return config, {name: make_key(folder / "tacit.keys", name, role, quota) for name, (role, quota) in WHO.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--questions", type=int, help="instead: so many new questions, one after another")
    minutes, count = (given := parser.parse_args(arguments)).minutes, given.questions
    if count:
        with tempfile.TemporaryDirectory() as folder:
            ask_new(Path(folder), count, say=lambda line: print(line, flush=True))
        return 0
    print(f"a soak of {minutes:g} minutes; the picture goes to {FOLDER.name}/soak.svg", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        wrong = soak(Path(folder), minutes, say=lambda line: print(line, flush=True))
    print("\n".join(wrong) or ALLOWED)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
