"""Servers of one published file: answers a second of one and of two, and that they say what the session says.

    python -m benchmarks.bench_replicas [--questions 100_000] [--seconds 10] [--clients 16] [--certified]

A session on a made table answers random counts of one to three attributes, and publishes what it has released. Then it
is asked the same counts once more, and so is a server of the file, in a process without data and ledger: the JSON of
each answer has to be the same bytes. Then one server, and two servers that share nothing, are asked these counts in
random order by a process with so many clients, one at a time and in batches of 100. The clients run on the same
processors, so the answers for each second of the servers' processor time are printed as well. With `--certified` the
session has bought a certificate first, so that it tells most of these counts for nothing and writes none of them down.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from benchmarks.serving import table
from benchmarks.serving.launch import Server
from benchmarks.serving.wire import Client
from tacit.config import read_config
from tacit.serve.api import shown
from tacit.serve.question import Question, read
from tacit.serve.schema import encode
from tacit.session import Session

QUESTIONS, SECONDS, CLIENTS, BATCH = 100_000, 10.0, 16, 100
ASK, ASK_MANY = "/v1/people/ask", "/v1/people/ask_many"
PROGRAM = """
import sys
from tacit.serve import serve_published
serve_published({"people": sys.argv[1]}, port=0, ready=lambda address: print(address, flush=True))
"""
Asked = list[dict[str, Any]]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=QUESTIONS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--clients", type=int, default=CLIENTS)
    parser.add_argument("--certified", action="store_true", help="from a base that was certified")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as made:
        folder, asked = Path(made), list(islice(table.easy(3), options.questions))
        path = folder / "people.json"
        start = time.perf_counter()
        digest = published(folder, asked, path, certified=options.certified)
        took = time.perf_counter() - start
        print(f"load average {os.getloadavg()[0]:.1f}; {len(asked):,} questions asked twice in {took:.0f} s")
        print(reading(path))
        with ExitStack() as servers:
            two = [servers.enter_context(Server(path, PROGRAM)) for _ in range(2)]
            same = asyncio.run(digest_of(two[0].address, asked))
            print(f"the same bytes as the session for {len(asked):,} questions: {same == digest}")
            assert same == digest
            print(f"{'':>22}{'a second':>10}{'a processor second':>20}{'MB':>7}")
            for batch in (1, BATCH):
                for count in (1, 2):
                    print(measured(two[:count], asked, batch, options.clients, options.seconds))


def published(folder: Path, asked: Asked, path: Path, *, certified: bool) -> str:
    """Ask everything, publish, and ask everything again: the digest of what was said then."""
    config = table.write(folder, "iterative", len(asked))
    if certified:
        config.write_text(config.read_text().replace("[session]", "[session]\nwarm = 0.7\ncertify = 0.2"))
    with read_config(config).open() as session:
        questions = [read(one, session.domain) for one in asked]
        for _ in answered(session, questions):
            pass
        tacit.publish(session, path)
        digest = hashlib.sha256()
        for answer in answered(session, questions):
            digest.update(answer)
        return digest.hexdigest()


def answered(session: Session, questions: list[Question]) -> Iterator[bytes]:
    """The JSON of every answer, as the server writes it."""
    for start in range(0, len(questions), BATCH):
        some = questions[start : start + BATCH]
        for question, answer in zip(some, session.answer_many([one.ask for one in some]), strict=True):
            yield encode(shown(question, answer))


def reading(path: Path) -> str:
    taken = []
    for _ in range(3):
        start = time.process_time()
        session = tacit.read(path)
        taken.append(time.process_time() - start)
    size = path.stat().st_size / 1e6
    return f"reading {session.entries:,} entries of {size:.1f} MB: {min(taken):.2f} s of the processor"


async def digest_of(address: str, asked: Asked) -> str:
    client, digest = Client(address, "none"), hashlib.sha256()
    for start in range(0, len(asked), BATCH):
        response = await client.call("POST", ASK_MANY, table.batch(asked[start : start + BATCH]))
        assert response.status == 200, response.body
        for answer in response.json()["answers"]:
            digest.update(encode(answer))
    await client.close()
    return digest.hexdigest()


def measured(servers: list[Server], asked: Asked, batch: int, clients: int, seconds: float) -> str:
    busy = sum(server.busy for server in servers)
    start = time.perf_counter()
    answers = asyncio.run(together([server.address for server in servers], asked, batch, clients, seconds))
    took = time.perf_counter() - start
    busy = sum(server.busy for server in servers) - busy
    words = (
        f"{len(servers)} server{'s' * (len(servers) > 1)}, {'one at a time' if batch == 1 else f'batches of {batch}'}"
    )
    memory = max(server.resident for server in servers) / 2**20
    return f"{words:>26}{answers / took:>10,.0f}{answers / busy:>16,.0f}{memory:>9,.0f}"


async def together(addresses: list[str], asked: Asked, batch: int, clients: int, seconds: float) -> int:
    """How many answers so many clients get in so many seconds; each keeps one connection, to one of the servers."""
    until = time.perf_counter() + seconds

    async def one(number: int) -> int:
        client, rng, told = Client(addresses[number % len(addresses)], "none"), np.random.default_rng(number), 0
        while time.perf_counter() < until:
            some = [asked[i] for i in rng.integers(len(asked), size=batch)]
            path, body = (ASK, table.body(some[0])) if batch == 1 else (ASK_MANY, table.batch(some))
            response = await client.call("POST", path, body)
            assert response.status == 200, response.body
            told += batch
        await client.close()
        return told

    return sum(await asyncio.gather(*map(one, range(clients))))


if __name__ == "__main__":
    main()
