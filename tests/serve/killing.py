"""kill -9 of a server while clients ask it: what they saw is remembered, and every new server is held against it."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.serving.wire import Gone, Plain
from serving import write_config

import tacit
from support import PATIENCE, pause, until
from tacit.config import read_config
from tacit.serve import make_key

CLIENTS, ATOMS, PAGE = 6, 10**12, 200
ASK, ASK_MANY, BUDGET = "/v1/people/ask", "/v1/people/ask_many", "/v1/people/budget"
Same = tuple[Any, ...]


@dataclass
class Witness:
    """Everything that clients were shown, and every promise that was broken."""

    kills: int = 0
    refused: int = 0  # because the budget was used up
    charged: int = 0  # atoms, as the answers said
    spent: int = 0  # atoms, as the last server said
    shown: dict[str, Same] = field(default_factory=dict)
    fresh: list[str] = field(default_factory=list)  # shown since the last start
    violations: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def saw(self, questions: list[Any], answers: list[dict[str, Any]]) -> None:
        with self.lock:
            for question, answer in zip(questions, answers, strict=True):
                words, same = json.dumps(question), same_of(answer)
                if self.shown.setdefault(words, same) != same:
                    self.violations.append(f"two answers to {words}")
                self.charged += round(sum(answer["cost"].values()) * ATOMS)
                self.fresh.append(words)


def same_of(answer: dict[str, Any]) -> Same:
    return tuple(answer[name] for name in ("value", "error", "confidence", "entry", "seal"))


def kill_servers(
    folder: Path,
    *,
    kills: int,
    seed: int,
    mechanism: str,
    questions: int,
    bug: str | None = None,
    enough: int = 10**9,
    shown_least: int = 0,
    refused_least: int = 0,
) -> Witness:
    """Start, look, load, kill; again and again on one ledger. Ends early when `enough` promises were broken.

    It goes on until as much was shown and refused as it should be at least: four of five servers are killed after an
    answer, so however slow the machine is, a few more kills are enough.
    """
    config = write_config(folder, mechanism=mechanism, questions=questions)
    config.write_text(config.read_text().replace("width = 10", "width = 1"))  # for more questions than can be asked
    # The whole budget is the analyst's: it is to run out.
    keys = {"analyst": make_key(folder / "tacit.keys", "analyst", "analyst", quota=1.0)}
    keys["reader"] = make_key(folder / "tacit.keys", "reader", "reader")
    rng, seen = random.Random(seed), Witness()
    with _launcher(config, bug) as start:
        while True:
            stored = _stored(folder / "people.tacit")
            pid, address = start()
            try:
                _look(seen, Plain(address, keys["reader"]), stored, rng)
                did_something = len(seen.shown) >= shown_least and seen.refused >= refused_least
                if seen.kills >= (kills if did_something else 20 * kills) or len(seen.violations) >= enough:
                    break
                _load_and_kill(seen, address, keys["analyst"], pid, rng)
            finally:
                _kill(pid)
            seen.kills += 1
    if not seen.violations:
        seen.violations += _whole(config, seen)
    return seen


@contextmanager
def _launcher(config: Path, bug: str | None) -> Iterator[Any]:
    program = [sys.executable, str(Path(__file__).with_name("forked_server.py")), str(config), *([bug] if bug else [])]
    paths = os.pathsep.join((str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])))
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(program, env=os.environ | {"PYTHONPATH": paths}, **pipes) as launcher:
        assert launcher.stdin is not None
        assert launcher.stdout is not None
        stdin, stdout = launcher.stdin, launcher.stdout
        assert stdout.readline() == "ready\n"

        def start() -> tuple[int, str]:
            stdin.write("\n")
            stdin.flush()
            pid, address = stdout.readline().split()
            return int(pid), address

        yield start
        stdin.close()
        launcher.wait(PATIENCE)


def _load_and_kill(seen: Witness, address: str, key: str, pid: int, rng: random.Random) -> None:
    first = threading.Event()
    clients = [
        threading.Thread(target=_client, args=(seen, Plain(address, key), random.Random(rng.getrandbits(32)), first))
        for _ in range(CLIENTS)
    ]
    for client in clients:
        client.start()
    if rng.random() < 0.8:
        first.wait(PATIENCE)  # until the first answer
    pause(rng, 0.0, 0.1)
    _kill(pid)
    for client in clients:
        client.join()


def _client(seen: Witness, server: Plain, rng: random.Random, first: threading.Event) -> None:
    """Ask until the server is gone."""
    try:
        while True:
            questions = [_question(seen, rng) for _ in range(rng.choice((1, 1, 1, 5)))]
            if len(questions) == 1:
                response = server.call("POST", ASK, {"question": questions[0]})
            else:
                response = server.call("POST", ASK_MANY, {"questions": questions})
            if response.status == 200:
                got = response.json()
                seen.saw(questions, got.get("answers") or [got["answer"]])
            elif response.status == 409:
                with seen.lock:
                    seen.refused += 1
            else:
                with seen.lock:
                    seen.violations.append(f"status {response.status}: {response.body!r}")
                return
            first.set()
    except Gone:
        return
    finally:
        first.set()


def _question(seen: Witness, rng: random.Random) -> Any:
    with seen.lock:
        if seen.fresh and rng.random() < 0.3:
            return json.loads(rng.choice(seen.fresh))
    where: dict[str, Any] = {"age": {"in": sorted(rng.sample(range(100), rng.randint(1, 9)))}}
    if rng.random() < 0.5:
        where["sex"] = rng.choice("FM")
    if rng.random() < 0.5:
        where["pay"] = rng.choice(([0, 10], [10, 20], [0, 20], [20, 50]))
    return {"count": where}


def _look(seen: Witness, server: Plain, stored: int, rng: random.Random) -> None:
    """Hold a new server against what was seen. A reader asks: what is lost is refused to one, never bought again."""
    budget = server.call("GET", BUDGET).json()
    spent, total = (round(sum(budget[name].values()) * ATOMS) for name in ("spent", "total"))
    if spent < max(stored, seen.spent):
        seen.violations.append(f"the budget grew: {spent} atoms are spent and {max(stored, seen.spent)} were")
    if not seen.charged <= spent <= total:
        seen.violations.append(f"{spent} atoms are spent of {total}; the answers seen cost {seen.charged}")
    older = list(seen.shown)
    asked = list(dict.fromkeys([*seen.fresh, *rng.sample(older, min(PAGE, len(older)))]))
    for start in range(0, len(asked), PAGE):
        some = [json.loads(words) for words in asked[start : start + PAGE]]
        response = server.call("POST", ASK_MANY, {"questions": some})
        if response.status != 200:
            seen.violations.append(f"an answer was seen and is lost: {response.body!r}")
            continue
        for question, answer in zip(some, response.json()["answers"], strict=True):
            if same_of(answer) != seen.shown[json.dumps(question)]:
                seen.violations.append(f"an answer was seen and is another now: {question}")
            if sum(answer["cost"].values()):
                seen.violations.append(f"a repeat was charged: {question}")
    seen.spent, seen.fresh = spent, []
    server.close()


def _whole(config: Path, seen: Witness) -> Iterator[str]:
    """At the end: the whole ledger, read without a server."""
    settings = read_config(config)
    files = {"data": settings.data, "domain": settings.domain, "ledger": settings.ledger}
    with tacit.open(budget=settings.budget, **files, **settings.options) as session:
        before = session.spent
        session._ledger.log.verify()
        _, entries = session.transcript()
        settled = {entry.intent for entry in entries if entry.intent is not None}
        counted = sum(e.atoms for e in entries if e.kind != "override" and e.seq not in settled)
        if counted != before.atoms:
            yield f"{before.atoms} atoms are spent and the entries add up to {counted}"
        known = {(entry.seq, entry.hash) for entry in entries}
        for words, same in seen.shown.items():
            if same[3] is not None and same[3:] not in known:
                yield f"the receipt of an answer that was seen is not in the ledger: {words}"
        if session.spent != before:
            yield "reading spent something"


def _stored(ledger: Path) -> int:
    """What is spent by the file that a dead server left, read beside everything."""
    if not ledger.exists():
        return 0
    with closing(sqlite3.connect(ledger)) as db:
        rows = db.execute("SELECT spent FROM entries ORDER BY seq DESC LIMIT 1").fetchall()
    return int(rows[0][0]) if rows else 0


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    until(lambda: not Path(f"/proc/{pid}").exists())
