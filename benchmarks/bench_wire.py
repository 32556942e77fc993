"""PostgreSQL's protocol beside HTTP, the session itself and PostgreSQL: answers a second, and how long each takes.

    python -m benchmarks.bench_wire [--seconds 5] [--clients 1 16 64] [--logins 200] [--only KIND …] [--output FILE]

One process serves a made table over both protocols on loopback; another holds all clients, each with a connection that
it keeps and one question at a time. Questions are counts that a certified base answers: with a text that nobody sent
before (new), with one of 200 texts (known), and as a prepared statement with new values (prepared). A second server has
no base, so that it buys fresh noise for every new text: the data are looked at, and two lines and the anchor are on the
disk before the answer leaves (hard); what was bought once is asked again (repeat). Each session answers the same texts
in this process, one after the other, and a PostgreSQL server, where one is installed, from the raw rows. Then: how long
a login takes, and how much memory connections take, open and closed. All that is said of it in docs/log/benchmarks.md
is printed by `--seconds 2 --logins 10000`, in three minutes.
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
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.serving import frontend, postgresql, table
from benchmarks.serving.launch import BOTH, Server
from benchmarks.serving.wire import Client, port_of
from tacit.config import read_config
from tacit.serve import make_key

SECONDS, CLIENTS = 5.0, (1, 16, 64)
POOL, OPEN, LOGINS = 200, 800, 200
KEYS = 8
ASK = "/v1/served/ask"
BOUGHT = ("repeat", "hard")  # of the server that buys
KINDS = ("new", "known", "prepared", *BOUGHT)
PREPARED = "SELECT COUNT(*) FROM data WHERE age BETWEEN $1 AND $2 AND region = $3 AND hours < $4"
Ask = Callable[[], Awaitable[None]]


def sql(question: dict[str, Any]) -> str:
    """A made question as SQL."""
    parts = (f'"{name}" IN ({", ".join(map(str, given["in"]))})' for name, given in question["count"].items())
    return f"SELECT COUNT(*) FROM data WHERE {' AND '.join(parts)}"


def values(seed: int) -> Iterator[list[bytes | None]]:
    """Values for the prepared statement, no two the same."""
    sizes = table.SIZES
    every = itertools.product(
        range(sizes["age"]), range(sizes["age"]), range(sizes["region"]), range(1, sizes["hours"])
    )
    found = [(a, b, c, d) for a, b, c, d in every if a <= b and b - a < sizes["age"] - 1]
    np.random.Generator(np.random.PCG64(seed)).shuffle(found)  # type: ignore[arg-type]
    yield from itertools.cycle([[str(one).encode() for one in line] for line in found])


class Bench:
    """What a server needs, its keys, and the texts that are asked: with a certified base, or one that buys them all."""

    def __init__(self, folder: Path, seconds: float, *, buys: bool = False) -> None:
        folder.mkdir()
        self.seconds = seconds
        if buys:
            self.config = table.write(folder, "direct", 1_000_000)
        else:
            self.config = table.write(folder, "iterative", 1_000_000)
            certified = self.config.read_text().replace("[session]\n", "[session]\nwarm = 0.6\ncertify = 0.2\n")
            self.config.write_text(certified)
            with read_config(self.config).open() as session:
                session.start()
        keys = folder / table.KEYS
        self.keys = [(f"k{i}", make_key(keys, f"k{i}", "analyst", 1.0)) for i in range(KEYS)]
        fresh = table.easy(1)
        self.fresh = (sql(question) for question in fresh)
        self.pool = [sql(next(fresh)) for _ in range(POOL)]
        self.values = values(1)

    def texts(self, kind: str) -> Iterator[str]:
        return self.fresh if kind in ("new", "hard") else itertools.cycle(self.pool)

    def session(self, kind: str) -> dict[str, float]:
        """The session itself, one question after the other, through SQL."""
        times = list[float]()
        with read_config(self.config).open() as session:
            texts, until, busy = self.texts(kind), time.perf_counter() + self.seconds, time.process_time()
            while (start := time.perf_counter()) < until:
                session.ask(next(texts))
                times.append(time.perf_counter() - start)
            busy = time.process_time() - busy
        told = figures(times, sum(times))
        return told | {"µs of a core, each": 1e6 * busy / told.pop("answers")}

    async def load(self, clients: list[Ask]) -> dict[str, float]:
        times, until = list[float](), time.perf_counter() + self.seconds

        async def go(ask: Ask) -> None:
            while (start := time.perf_counter()) < until:
                await ask()
                times.append(time.perf_counter() - start)

        start = time.perf_counter()
        await asyncio.gather(*map(go, clients))
        return figures(times, time.perf_counter() - start)

    async def wire(self, port: int, kind: str, count: int, who: tuple[str, ...] | None = None) -> dict[str, float]:
        """Clients of a server that speaks PostgreSQL's protocol; `who` is everybody's name, password and database."""
        made = [frontend.Asking(port, *(who or self.keys[i % KEYS])) for i in range(count)]
        for one in made:
            await one.open()
        texts = self.texts(kind)

        def asks(client: frontend.Asking) -> Ask:
            async def simple() -> None:
                check(await client.ask(frontend.query(next(texts))))

            async def prepared() -> None:
                sent = frontend.bind(next(self.values), name="s") + frontend.execute() + frontend.SYNC
                check(await client.ask(sent))

            return prepared if kind == "prepared" else simple

        if kind == "prepared":
            for one in made:
                check(await one.ask(frontend.parse(PREPARED, "s", (20, 20, 20, 20)) + frontend.SYNC))
        found = await self.load([asks(one) for one in made])
        for one in made:
            await one.close()
        return found

    async def warm_up(self, port: int, address: str) -> None:
        """Ask every known text once at each door; where there is no base, this buys them."""
        client = frontend.Asking(port, *self.keys[0])
        await client.open()
        for text in self.pool:
            said = await client.ask(frontend.query(text))
            check(said)
        await client.close()
        self.told = [one.fields["M"] for one in said if one.kind == b"N"]
        other = Client(address, self.keys[0][1])
        for text in self.pool:
            assert (await other.call("POST", ASK, table.body(text))).status == 200
        await other.close()

    async def http(self, address: str, kind: str, count: int) -> dict[str, float]:
        made = [Client(address, self.keys[i % KEYS][1]) for i in range(count)]
        texts = self.texts(kind)

        def asks(client: Client) -> Ask:
            async def ask() -> None:
                response = await client.call("POST", ASK, table.body(next(texts)))
                assert response.status == 200, response.body

            return ask

        found = await self.load([asks(one) for one in made])
        for one in made:
            await one.close()
        return found


def check(said: list[frontend.Said]) -> None:
    wrong = [one.fields for one in said if one.kind == b"E"]
    assert not wrong, wrong


def figures(times: list[float], seconds: float) -> dict[str, float]:
    p50, p99 = np.percentile(times, [50, 99]) * 1000
    return {"answers": len(times), "a second": len(times) / seconds, "p50 ms": float(p50), "p99 ms": float(p99)}


def connections(server: Server, port: int, keys: list[tuple[str, str]], logins: int) -> dict[str, float]:
    """How long a login takes, and the memory of connections that stay open, and after many that were closed."""
    frontend.Frontend(port, *keys[0]).close()
    before, start = server.resident, time.perf_counter()
    for i in range(logins):
        frontend.Frontend(port, *keys[i % KEYS]).close()
    each = (time.perf_counter() - start) / logins * 1000
    closed = server.resident
    opened = [frontend.Frontend(port, *keys[i % KEYS]) for i in range(OPEN)]
    during = server.resident
    for one in opened:
        one.close()
    found = {"login ms": each, "logins": logins, "open": OPEN, "KB each": (during - closed) / OPEN / 1024}
    return found | {"MB before": before / 2**20, "MB after the logins": closed / 2**20, "MB open": during / 2**20}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--clients", type=int, nargs="*", default=CLIENTS)
    parser.add_argument("--logins", type=int, default=LOGINS)
    parser.add_argument("--only", nargs="*", choices=KINDS, default=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--output", type=Path)
    given = parser.parse_args(arguments)
    found: dict[str, Any] = {}

    def say(name: str, told: dict[str, float]) -> None:
        found[name] = told
        print(f"{name:32} " + "   ".join(f"{key} {value:,.1f}" for key, value in told.items()), flush=True)

    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors", flush=True)
    with tempfile.TemporaryDirectory() as made:
        bench = Bench(Path(made, "certified"), given.seconds)
        buying = Bench(Path(made, "buying"), given.seconds, buys=True)
        free = [kind for kind in given.only if kind not in BOUGHT]
        for one, kinds in ((bench, free), (buying, [kind for kind in given.only if kind in BOUGHT])):
            with Server(one.config, BOTH) as server:
                port = port_of(server.line().replace("postgresql:", "http:"))
                asyncio.run(one.warm_up(port, server.address))
                print("the last of the known ones:", *one.told, flush=True)
                for count, kind in itertools.product(given.clients, kinds):
                    for way in ("wire", "HTTP") if kind != "prepared" else ("wire",):
                        busy = server.busy
                        asking = one.wire(port, kind, count) if way == "wire" else one.http(server.address, kind, count)
                        told = asyncio.run(asking)
                        told["server's µs of a core, each"] = 1e6 * (server.busy - busy) / told.pop("answers")
                        say(f"{way}, {kind}, {count} clients", told)
                if one is bench:
                    say("connections", connections(server, port, one.keys, given.logins))
            for kind in (kind for kind in kinds if kind != "prepared"):
                say(f"session, {kind}", one.session(kind))
        if postgresql.programs() is not None:
            with postgresql.PostgreSQL(bench.config.with_name("served.csv")) as other:
                who = (postgresql.USER, postgresql.PASSWORD, "postgres")
                for count, kind in itertools.product(given.clients, free):
                    busy = other.busy
                    told = asyncio.run(bench.wire(other.port, kind, count, who))
                    told["its µs of a core, each"] = 1e6 * (other.busy - busy) / told.pop("answers")
                    say(f"PostgreSQL, {kind}, {count} clients", told)
    if given.output:
        given.output.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
