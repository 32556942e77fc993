"""The server under load: 64 clients at once, answers in milliseconds, and a ledger that agrees with every one of them.

    python -m benchmarks.bench_server [--quick] [--mechanism iterative|direct] [--clients 64] [--seconds 60]

One process serves a made table on loopback with every commit synced; another holds all clients, each with a connection
that it keeps and one question at a time: new easy ones, new hard ones, and repeats of what anybody asked before. Then a
few clients send new easy questions in batches of 100. At the end the server is stopped, the ledger is opened again, and
every answer that a client saw is asked once more: lost, changed or charged twice, and the program fails.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from benchmarks.serving import table
from benchmarks.serving.launch import Server
from benchmarks.serving.wire import Client
from tacit.config import read_config
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.serve import make_key

CLIENTS, SECONDS, QUICK = 64, 60.0, 5.0
KEYS = 8  # clients share them
BATCH, BATCHERS, LEAST = 100, 4, 500  # LEAST: easy answers a second that batches must reach
MIX = {"easy": 0.55, "hard": 0.05, "repeat": 0.40}
QUESTIONS = 1_000_000  # that the owner expects
ASK, ASK_MANY = "/v1/served/ask", "/v1/served/ask_many"
ATOMS = 10**12


@dataclass
class Seen:
    """What the clients were told, raw; it is read after the run, so that reading does not slow the clients down."""

    told: list[tuple[str, list[Any], float, bytes]] = field(default_factory=list)  # kind, questions, seconds, body
    asked: list[Any] = field(default_factory=list)
    failed: Counter[int] = field(default_factory=Counter)

    def answers(self) -> Iterator[tuple[Any, dict[str, Any]]]:
        for _, questions, _, body in self.told:
            got = json.loads(body)
            yield from zip(questions, got.get("answers") or [got["answer"]], strict=True)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    seconds = QUICK if options.quick else options.seconds
    for mechanism in options.mechanism or ["iterative", "direct"]:
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder), mechanism, options.clients, seconds)


def measure(folder: Path, mechanism: str, clients: int, seconds: float) -> None:
    config = table.write(folder, mechanism, QUESTIONS)
    keys = [make_key(folder / table.KEYS, f"client {number}", "analyst", quota=1.0) for number in range(KEYS)]
    seen, easy = Seen(), table.easy(2)
    with Server(config) as server:
        asyncio.run(_first(server.address, keys[0], seen, easy))  # pays for the warm start
        load, busy = os.getloadavg()[0], [server.busy]
        single = asyncio.run(_together(clients, seconds, _mixed(server.address, keys, seen, easy)))
        busy.append(server.busy)
        batches = asyncio.run(_together(BATCHERS, seconds / 2, _batches(server.address, keys, seen, easy)))
        busy.append(server.busy)
        memory = server.resident / 2**20
        server.stop()
    assert not seen.failed, f"requests that were not answered: {dict(seen.failed)}"
    report = compare(config, seen)
    taken = {kind: np.array([s for k, _, s, _ in seen.told if k == kind]) * 1e3 for kind in (*MIX, "batch")}
    count = sum(len(taken[kind]) for kind in MIX)
    print(
        f"\n{mechanism}: {clients} clients for {single:.0f} s; load average {load:.1f} on {os.cpu_count()} processors"
    )
    print(f"{'':<24}{'requests':>10}{'a second':>10}{'p50 ms':>9}{'p99 ms':>9}")
    alone = np.concatenate([taken[kind] for kind in MIX])
    for words, some, per in [
        ("all", alone, count / single),
        *((f"  {kind}", taken[kind], len(taken[kind]) / single) for kind in MIX),
    ]:
        print(f"{words:<24}{len(some):>10,}{per:>10,.0f}{np.percentile(some, 50):>9.1f}{np.percentile(some, 99):>9.1f}")
    pace, alone_busy, batch_busy = len(taken["batch"]) * BATCH / batches, busy[1] - busy[0], busy[2] - busy[1]
    verdict = "" if mechanism == "direct" else f" (at least {LEAST}: {'ok' if pace >= LEAST else 'TOO SLOW'})"
    print(f"batches of {BATCH}, {BATCHERS} at a time: {pace:,.0f} new answers a second{verdict}")
    print(
        f"the server got {alone_busy / single:.0%} of a processor, then {batch_busy / batches:.0%}: "
        f"{count / alone_busy:,.0f} requests, then {len(taken['batch']) * BATCH / batch_busy:,.0f} answers in batches, "
        f"for a second of it; {memory:,.0f} MB of memory"
    )
    print(report)


async def _first(address: str, key: str, seen: Seen, easy: Iterator[Any]) -> None:
    await _ask(Client(address, key), seen, "first", next(easy))


def _mixed(address: str, keys: list[str], seen: Seen, easy: Iterator[Any]) -> Callable[[int, float], Awaitable[None]]:
    hard, kinds, shares = table.hard(3), list(MIX), list(MIX.values())

    async def client(number: int, until: float) -> None:
        rng, own = np.random.Generator(np.random.PCG64([4, number])), Client(address, keys[number % len(keys)])
        while time.perf_counter() < until:
            kind = str(rng.choice(kinds, p=shares))
            if kind == "repeat":
                question = seen.asked[int(rng.integers(len(seen.asked)))]
            else:
                question = next(easy if kind == "easy" else hard)
            await _ask(own, seen, kind, question)
        await own.close()

    return client


def _batches(address: str, keys: list[str], seen: Seen, easy: Iterator[Any]) -> Callable[[int, float], Awaitable[None]]:
    async def client(number: int, until: float) -> None:
        own = Client(address, keys[number % len(keys)])
        while time.perf_counter() < until:
            questions = list(itertools.islice(easy, BATCH))
            await _note(own, seen, "batch", ASK_MANY, questions, table.batch(questions))
        await own.close()

    return client


async def _ask(client: Client, seen: Seen, kind: str, question: Any) -> None:
    await _note(client, seen, kind, ASK, [question], table.body(question))


async def _note(client: Client, seen: Seen, kind: str, path: str, questions: list[Any], body: bytes) -> None:
    start = time.perf_counter()
    response = await client.call("POST", path, body)
    if response.status != 200:
        seen.failed[response.status] += 1
        return
    seen.told.append((kind, questions, time.perf_counter() - start, response.body))
    seen.asked += questions


async def _together(clients: int, seconds: float, client: Callable[[int, float], Awaitable[None]]) -> float:
    """Run so many clients at once, for so long; the seconds until the last of them was answered."""
    start = time.perf_counter()
    await asyncio.gather(*(client(number, start + seconds) for number in range(clients)))
    return time.perf_counter() - start


def compare(config: Path, seen: Seen) -> str:
    """Open the ledger again and hold every answer that was seen against it. Says what was found, or fails."""
    settings = read_config(config)
    charges: Counter[str] = Counter()
    first: dict[Query, dict[str, Any]] = {}
    sources: Counter[str] = Counter()
    for question, answer in seen.answers():
        query, cost = _query(question, settings.domain), round(sum(answer["cost"].values()) * ATOMS)
        assert not (cost and charges[query.core.key]), f"charged twice: {question}"
        charges[query.core.key] += cost
        sources[answer["source"]] += 1
        assert _same(first.setdefault(query, answer)) == _same(answer), f"one question, two answers: {question}"
    files = {"data": settings.data, "domain": settings.domain, "ledger": settings.ledger}
    with tacit.open(budget=settings.budget, **files, **settings.options) as session:
        spent, distinct = session.spent.atoms, list(first.items())
        _, entries = session.transcript()
        settled = {entry.intent for entry in entries if entry.intent is not None}
        open_gates = sum(entry.atoms for entry in entries if entry.kind == "intent" and entry.seq not in settled)
        bought = sum(entry.atoms for entry in entries if entry.kind not in ("intent", "override"))
        assert spent == sum(charges.values()) + open_gates, "the ledger's total is not the sum of the charges"
        assert spent == bought + open_gates, "the ledger's total is not the sum of its own entries"
        assert spent == sum(past.cost.atoms for past in session.history) + open_gates
        assert spent <= session.total.atoms
        for start in range(0, len(distinct), 1_000):
            some = distinct[start : start + 1_000]
            again = session.ask_many([query for query, _ in some])
            for (_, answer), stored in zip(some, again, strict=True):
                assert _same(answer) == _same(stored.to_dict()), f"lost or changed: {answer['question']}"
                assert not stored.cost.atoms
        assert session.spent.atoms == spent
    told = ", ".join(f"{number:,} {source}" for source, number in sorted(sources.items()))
    return (
        f"{len(distinct):,} questions ({told}): none lost, none changed, none charged twice; "
        f"the ledger's {spent:,} atoms are the sum of the charges{' and an open gate' if open_gates else ''}"
    )


def _same(answer: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(answer[name] for name in ("value", "error", "confidence", "entry", "seal"))


def _query(question: dict[str, Any], domain: Domain) -> Query:
    return tacit.count(**{name: condition["in"] for name, condition in question["count"].items()}).bind(domain)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="benchmarks.bench_server", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{QUICK:g} seconds of each")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--mechanism", action="append", choices=["iterative", "direct"])
    return parser.parse_args([] if arguments is None else arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
