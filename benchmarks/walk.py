"""How far a question walks: the calls of one easy question, by room, asked in Python and over HTTP.

An easy question is answered from the certified base, as by default; or, without a certificate, through the gate.

python -m benchmarks.walk            counts calls inside Tacit; nothing here is a matter of time
python -m benchmarks.walk --tree     also prints every call, indented

A *station* is a room (a package) where the question's way goes on: a call into it that makes at least `WORK` further
calls, and neighbours in one room are one station. A call goes *up* from a package into one above it, by the layers that
the import linter enforces. A coroutine or a generator that goes on after a wait is still the same call.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import CO_ASYNC_GENERATOR, CO_COROUTINE, CO_GENERATOR
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

import tacit

ROOT = Path(tacit.__file__).parent
LAYERS = (  # from the top
    "cli", "serve", "demo", "config", "blocks", "owner", "client", "public", "session", "replies", "extension",
    "release", "trusted", "load", "exact", "model", "store", "errors",
)  # fmt: skip
SESSION = "questions", "standing"  # a session's own methods, in files of their own
WORK = 12
EASY = "SELECT COUNT(*) FROM data WHERE job = 'a' AND age BETWEEN 20 AND 39"
CONFIG = """[data]
source = "people.csv"
[budget]
epsilon = 1.0
delta = 1e-9
[session]
ledger = "http.tacit"
anchor = "anchor"
mechanism = "iterative"
warm = 0.8
certify = {certify}
hits = 5
start = true
"""
DOMAIN = tacit.Domain(
    {
        "age": tacit.integer(0, 99, width=10),
        "job": tacit.category(["a", "b", "c", "d"]),
        "sex": tacit.category(["F", "M"]),
        "pay": tacit.integer(0, 49, width=5),
    }
)


@dataclass
class Call:
    """One call inside Tacit, with those that it made."""

    file: str
    name: str
    handed: bool  # a function made by the caller's caller and handed down, to be called within a transaction
    made: list[Call] = field(default_factory=list)

    @property
    def calls(self) -> int:
        return 1 + sum(call.calls for call in self.made)

    def __iter__(self) -> Iterator[tuple[int, Call | None, Call]]:
        yield from self._below(0, None)

    def _below(self, depth: int, caller: Call | None) -> Iterator[tuple[int, Call | None, Call]]:
        yield depth, caller, self
        for call in self.made:
            yield from call._below(depth + 1, self)

    @property
    def room(self) -> str:
        room = self.file.split("/")[0].removesuffix(".py")
        return "session" if room in SESSION else room

    @property
    def layer(self) -> int:
        return LAYERS.index(self.room) if self.room in LAYERS else len(LAYERS)


class Walk:
    """The calls of all threads while it is watched."""

    def __init__(self) -> None:
        self.roots: list[Call] = []
        self.watching = False
        self._stack = threading.local()
        self._begun: dict[FrameType, Call] = {}  # calls that may wait and go on

    def trace(self, frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if not self.watching or not name.startswith(f"{ROOT}{os.sep}") or frame.f_code.co_name.startswith("<"):
            return
        stack: list[Call] = self._stack.__dict__.setdefault("calls", [])
        if event == "call":
            call = self._begun.get(frame)
            if call is None:
                handed = "<locals>" in frame.f_code.co_qualname
                call = Call(str(Path(name).relative_to(ROOT)), frame.f_code.co_name, handed)
                (stack[-1].made if stack else self.roots).append(call)
            if frame.f_code.co_flags & (CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR):
                self._begun[frame] = call
            stack.append(call)
        elif event == "return" and stack:
            stack.pop()

    @contextmanager
    def watched(self) -> Iterator[None]:
        self.watching = True
        sys.setprofile(self.trace)
        try:
            yield
        finally:
            sys.setprofile(None)
            self.watching = False

    def report(self, title: str, *, tree: bool) -> int:
        """Print what was seen; the number of calls."""
        seen = [(depth, caller, call) for root in self.roots for depth, caller, call in root]
        stations: list[Call] = []
        for _, caller, call in seen:
            enters = caller is None or caller.room != call.room
            if enters and call.calls >= WORK and not (stations and stations[-1].room == call.room):
                stations.append(call)
        turns = [(a, b) for _, a, b in seen if a is not None and b.layer < a.layer and not b.handed]
        rooms = Counter(call.room for _, _, call in seen)
        reads = "parse", "plain_count"  # over HTTP a plain count is read as such
        parses = sum(call.file == "model/sql/__init__.py" and call.name in reads for _, _, call in seen)
        print(f"\n{title}: {len(seen)} calls in {len({c.file for _, _, c in seen})} files, {parses} parse")
        print("  " + ", ".join(f"{room} {calls}" for room, calls in rooms.most_common()))
        print(f"  {len(stations)} stations: " + " → ".join(f"{call.room}:{call.name}" for call in stations))
        print(f"  {len(turns)} calls go up" + "".join(f"\n    {a.file}:{a.name} → {b.file}:{b.name}" for a, b in turns))
        if tree:
            for depth, _, call in seen:
                print(f"    {'  ' * depth}{call.file}:{call.name}")
        return len(seen)


def rows(n: int = 20_000) -> pd.DataFrame:
    rng = np.random.Generator(np.random.PCG64(1))
    job = rng.choice(["a", "b", "c", "d"], n)
    columns = {"age": rng.integers(0, 100, n), "job": job, "sex": rng.choice(["F", "M"], n)}
    return pd.DataFrame({**columns, "pay": rng.integers(0, 50, n)})


def in_python(folder: Path, walk: Walk, certify: float) -> None:
    settings: dict[str, Any] = {
        "mechanism": "iterative",
        "warm": 0.8,
        "certify": certify,
        "hits": 5,
        "budget": tacit.Budget(epsilon=1.0, delta=1e-9),
    }
    files = {"ledger": folder / "python.tacit", "anchor": folder / "anchor"}
    with tacit.open(data=rows(), domain=DOMAIN, start=True, **files, **settings) as session:
        session.ask("SELECT COUNT(*) FROM data WHERE sex = 'F'")  # buys the start
        session.ask("SELECT COUNT(*) FROM data WHERE job = 'b' AND age BETWEEN 20 AND 39")
        with walk.watched():
            session.ask(EASY)


def over_http(folder: Path, walk: Walk, certify: float) -> None:
    """One request to the application itself, without a socket; its threads are watched from their start."""
    from starlette.testclient import TestClient

    from tacit.serve.app import make_app
    from tacit.serve.dataset import Dataset
    from tacit.serve.keys import KeyRing, make_key
    from tacit.serve.server import Server

    rows().to_csv(folder / "people.csv", index=False)
    (folder / "people.toml").write_text(CONFIG.format(certify=certify) + DOMAIN.to_toml())
    secret = make_key(folder / "tacit.keys", "ana", "analyst", 1.0)
    threading.setprofile(walk.trace)
    try:
        ring = KeyRing(folder / "tacit.keys")
        app = make_app(Server({"people": Dataset.open("people", folder / "people.toml", ring)}, ring))
        with TestClient(app, headers={"authorization": f"Bearer {secret}"}) as client:
            for question in ("SELECT COUNT(*) FROM data WHERE sex = 'F'", EASY.replace("'a'", "'b'")):
                assert client.post("/v1/people/ask", json={"question": question}).status_code == 200
            with walk.watched():
                assert client.post("/v1/people/ask", json={"question": EASY}).status_code == 200
    finally:
        threading.setprofile(None)


def main(arguments: list[str]) -> None:
    ways: list[tuple[str, Callable[[Path, Walk, float], None]]] = [
        ("session.ask", in_python),
        ("POST /v1/people/ask", over_http),
    ]
    for words, certify in (("from the base", 0.15), ("through the gate", 0.0)):
        for title, way in ways:
            walk = Walk()
            with tempfile.TemporaryDirectory() as folder:
                way(Path(folder), walk, certify)
            walk.report(f"{title}, {words}", tree="--tree" in arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
