"""The check at the end of the server's benchmark: it passes after an honest run, and notices what it is there for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from benchmarks import bench_server
from benchmarks.serving import table
from benchmarks.serving.launch import Server

from tacit.serve import make_key

Tamper = Callable[[dict[str, Any]], None]


def test_clients_and_ledger_agree_and_a_difference_is_noticed(tmp_path: Path) -> None:
    config = table.write(tmp_path, "direct", 10_000)
    keys = [make_key(tmp_path / table.KEYS, f"client {number}", "analyst", quota=1.0) for number in range(2)]
    seen, easy = bench_server.Seen(), table.easy(2)
    with Server(config) as server:
        asyncio.run(bench_server._first(server.address, keys[0], seen, easy))
        mixed = bench_server._mixed(server.address, keys, seen, easy)
        asyncio.run(bench_server._together(8, 0.5, mixed))
        assert server.stop() in (0, -15)
    assert not seen.failed
    assert "none lost" in bench_server.compare(config, seen)
    for words, tamper in TAMPERED.items():
        kind, questions, seconds, body = seen.told[0]
        answer = json.loads(body)
        tamper(answer["answer"])
        changed = bench_server.Seen([(kind, questions, seconds, json.dumps(answer).encode()), *seen.told[1:]])
        with pytest.raises(AssertionError, match=words):
            bench_server.compare(config, changed)
    lost = bench_server.Seen(seen.told[1:])
    with pytest.raises(AssertionError, match=r"sum of the charges|charged twice"):
        bench_server.compare(config, lost)


def _value(answer: dict[str, Any]) -> None:
    answer["value"] += 1


def _cost(answer: dict[str, Any]) -> None:
    answer["cost"]["gdp"] *= 2


TAMPERED: dict[str, Tamper] = {"two answers|lost or changed": _value, "not the sum of the charges": _cost}
