"""What one client can do to a server, and what the others feel of it: the floods of docs/understand/threats.md.

    python -m benchmarks.bench_floods

A server on loopback, in a process of its own, with the limits that it has by default, and one flood after the other:
a batch about an attribute of a million values, logins with slow and with large bodies, more connections than there are
files, pages of a long history, and a long table before another's count. The figures are seconds and megabytes of this
machine, which may be busy with other things; before and after are compared in one run of each.
"""

from __future__ import annotations

import resource
import socket
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.serving.launch import Server
from benchmarks.serving.wire import Gone, Plain, port_of, request
from tacit.config import read_config
from tacit.serve import make_key

PROGRAM = """
import resource, sys
from tacit.serve import serve
if {files}:
    resource.setrlimit(resource.RLIMIT_NOFILE, ({files}, {files}))
serve([sys.argv[1]], port=0, ready=lambda address: print(address, flush=True))
"""
WIDE, BOUGHT, FILES, CONNECTIONS, BINS = 1_000_000, 4_000, 256, 300, 5_000


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        wide(Path(made))
    with tempfile.TemporaryDirectory() as made:
        strangers(Path(made))
    with tempfile.TemporaryDirectory() as made:
        connections(Path(made))
    with tempfile.TemporaryDirectory() as made:
        turns(Path(made))


def written(folder: Path, high: int, mechanism: str = "direct", questions: int = 10_000) -> tuple[Path, str, str]:
    """A configuration of a made table, and the keys of two analysts."""
    (folder / "t.csv").write_text(
        "id,sex\n" + "".join(f"{i * 7919 % (high + 1)},{'FM'[i % 2]}\n" for i in range(2_000))
    )
    (folder / "t.toml").write_text(
        f'[data]\nsource = "t.csv"\n[budget]\nepsilon = 10.0\ndelta = 1e-9\n[session]\nledger = "t.tacit"\n'
        f'anchor = "t.anchor"\nmechanism = "{mechanism}"\nquestions = {questions}\nstart = true\n'
        f'[domain.id]\nkind = "integer"\nlow = 0\nhigh = {high}\n'
        '[domain.sex]\nkind = "category"\nvalues = ["F", "M"]\n'
    )
    keys = [make_key(folder / "tacit.keys", name, "analyst", quota=1.0) for name in ("ana", "bob")]
    return folder / "t.toml", keys[0], keys[1]


def wide(folder: Path) -> None:
    config, ana, _ = written(folder, WIDE - 1)
    with Server(config, PROGRAM.format(files=0)) as server:
        client = Plain(server.address, ana, timeout=300)
        before = server.resident
        for many in (1_000, 20):
            body = {"questions": [{"count": {"id": [low, low + 9]}} for low in range(many)]}
            start = time.perf_counter()
            status = client.call("POST", "/v1/t/ask_many", body).status
            print(
                f"{many:,} counts of {WIDE:,} values: {status} after {time.perf_counter() - start:.1f} s, "
                f"{(server.resident - before) / 2**20:,.0f} MB more, ledger {log_size(config):,.1f} MB"
            )


def log_size(config: Path) -> float:
    ledger = read_config(config).ledger
    return sum(path.stat().st_size for path in ledger.parent.glob(f"{ledger.name}*")) / 1e6


def strangers(folder: Path) -> None:
    config, ana, bob = written(folder, 99)
    with Server(config, PROGRAM.format(files=0)) as server:
        client = Plain(server.address, ana)
        for low in range(BOUGHT // 100):
            ages = [{"count": {"id": [first, first + 1 + low], "sex": "F"}} for first in range(99 - low)]
            client.call("POST", "/v1/t/ask_many", {"questions": ages})
        whole = client.call("GET", "/v1/t/history?limit=1000").json()
        taken = timed(lambda: client.call("GET", "/v1/t/history?limit=1"), 20)
        print(f"a page of one of {len(whole['history']):,} and more purchases: {1e3 * taken:.1f} ms")
        quiet = timed(lambda: repeat(client), 50)
        slow = [socket.create_connection(("127.0.0.1", port_of(server.address))) for _ in range(32)]
        for one in slow:
            one.sendall(b"POST /v1/login HTTP/1.1\r\nHost: 127.0.0.1\r\nSec-Fetch-Site: same-origin\r\n")
            one.sendall(b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        stranger = Plain(server.address)
        health = [stranger.call("GET", "/v1/health").status for _ in range(5)]
        login = stranger.call("POST", "/v1/login", {"key": bob}, "Sec-Fetch-Site: same-origin\r\n").status
        print(f"with 32 slow bodies: health {health}, a login {login}")
        stop = threading.Event()
        threads = [threading.Thread(target=large, args=(server.address, stop)) for _ in range(4)]
        for thread in threads:
            thread.start()
        flooded = timed(lambda: repeat(client), 50)
        stop.set()
        for thread in threads:
            thread.join()
        print(f"a repeat: {1e3 * quiet:.1f} ms alone, {1e3 * flooded:.1f} ms beside four connections of large logins")


def repeat(client: Plain) -> None:
    client.call("POST", "/v1/t/ask", {"question": {"count": {"sex": "F"}}})


def large(address: str, stop: threading.Event) -> None:
    body = b'{"key":[' + b",".join([b"[]"] * 300_000) + b"]}"
    while not stop.is_set():
        try:
            Plain(address).raw(request("POST", "/v1/login", None, body, "Sec-Fetch-Site: same-origin\r\n"))
        except Gone:
            continue


def connections(folder: Path) -> None:
    config, ana, _ = written(folder, 99)
    with Server(config, PROGRAM.format(files=FILES)) as server:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 2 * CONNECTIONS)), hard))
        held = [socket.create_connection(("127.0.0.1", port_of(server.address))) for _ in range(CONNECTIONS)]
        busy, start, statuses = server.busy, time.perf_counter(), list[Any]()
        for _ in range(20):
            try:
                statuses.append(Plain(server.address, ana, timeout=10).call("GET", "/v1/whoami").status)
            except Gone:
                statuses.append("gone")
        share = (server.busy - busy) / (time.perf_counter() - start)
        print(
            f"{CONNECTIONS} silent connections, {FILES} files: {statuses.count(200)} of 20 requests answered in "
            f"{time.perf_counter() - start:.1f} s, {share:.0%} of a processor"
        )
        del held


def turns(folder: Path) -> None:
    config, ana, bob = written(folder, BINS - 1, "median", 1_000)
    with Server(config, PROGRAM.format(files=0)) as server:
        one, two = Plain(server.address, ana, timeout=300), Plain(server.address, bob, timeout=300)
        two.call("POST", "/v1/t/ask", {"question": {"count": {"sex": "F"}}})
        taken: list[float] = []

        def table() -> None:
            start = time.perf_counter()
            one.call("POST", "/v1/t/ask", {"question": {"table": ["id"]}})
            taken.append(time.perf_counter() - start)

        asking = threading.Thread(target=table)
        asking.start()
        time.sleep(0.5)
        waits = [timed(lambda at=at: count(two, at), 1) for at in range(5)]
        asking.join()
        print(
            f"a table of {BINS:,} counts: {taken[0]:.1f} s; another's new counts meanwhile {max(waits):.1f} s at most"
        )


def count(client: Plain, at: int) -> None:
    client.call("POST", "/v1/t/ask", {"question": {"count": {"id": [at, at + 50], "sex": "M"}}})


def timed(work: Any, times: int) -> float:
    """The median of so many times."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


if __name__ == "__main__":
    main()
