"""A made table behind a server, and questions for it: easy ones, hard ones, and their JSON. For the server's benchmark.

`code` is the parity of three other attributes. No table of two attributes shows that, so a hypothesis that was fitted
to those is wrong about it, and a question about it is hard until it was asked.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROWS, SEED = 50_000, 1
SIZES = {"age": 20, "region": 8, "job": 10, "hours": 10, "sex": 2, "union": 2, "code": 2}
KEYS = "tacit.keys"
CONFIG = """
[data]
source = "served.csv"
[budget]
epsilon = 1.0
delta = 1e-9
[session]
start = true
ledger = "served.tacit"
anchor = "served.anchor"
mechanism = "{mechanism}"
questions = {questions}
"""


def write(folder: Path, mechanism: str, questions: int) -> Path:
    """The rows, the configuration, and its path."""
    rng = np.random.Generator(np.random.PCG64(SEED))
    group = rng.integers(4, size=ROWS)
    columns = {
        name: np.minimum(size - 1, (rng.beta(1 + group, 2, size=ROWS) * size).astype(int))
        for name, size in SIZES.items()
    }
    columns["code"] = (columns["sex"] + columns["union"] + columns["job"]) % 2
    rows = np.column_stack(list(columns.values()))
    np.savetxt(folder / "served.csv", rows, fmt="%d", delimiter=",", header=",".join(columns), comments="")
    domain = "".join(f'[domain.{name}]\nkind = "integer"\nlow = 0\nhigh = {size - 1}\n' for name, size in SIZES.items())
    path = folder / "served.toml"
    path.write_text(CONFIG.format(mechanism=mechanism, questions=questions) + domain)
    return path


def easy(seed: int) -> Iterator[dict[str, Any]]:
    """Random conditions on one to three attributes, no two of them one question."""
    names = [name for name in SIZES if name != "code"]
    return _distinct(np.random.Generator(np.random.PCG64(seed)), lambda rng: list(rng.permutation(names)))


def hard(seed: int) -> Iterator[dict[str, Any]]:
    """Conditions on the parity and what it is made of, and on the hours, without which there are only 8,176 of them."""
    names = ["code", "sex", "union", "job", "hours"]
    return _distinct(np.random.Generator(np.random.PCG64(seed)), lambda rng: names, least=len(names))


def body(question: Any) -> bytes:
    return json.dumps({"question": question}).encode()


def batch(questions: list[Any]) -> bytes:
    return json.dumps({"questions": questions}).encode()


def _distinct(rng: np.random.Generator, order: Any, least: int = 1) -> Iterator[dict[str, Any]]:
    seen: set[str] = set()
    while True:
        chosen = {}
        for name in order(rng)[: max(least, int(rng.integers(1, 4)))]:
            size = SIZES[name]
            values = rng.choice(size, size=int(rng.integers(1, size)), replace=False)
            chosen[str(name)] = {"in": sorted(values.tolist())}
        words = json.dumps(chosen, sort_keys=True)
        if words not in seen:
            seen.add(words)
            yield {"count": chosen}
