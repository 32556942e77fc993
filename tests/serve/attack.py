"""A linear program that reconstructs a column of secret bits from answers to random subset counts, over HTTP.

Dinur & Nissim 2003: whoever answers enough random subset counts of n bits with errors well below sqrt(n) gives away
nearly all bits. The program is the least sum of absolute errors, as in Cohen & Nissim 2018.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.serving.wire import Plain
from numpy.typing import NDArray
from scipy import sparse
from scipy.optimize import linprog

PEOPLE, QUESTIONS, BATCH = 200, 600, 100
SESSION = """
[data]
source = "{name}.csv"
[budget]
epsilon = {epsilon}
delta = {delta}
[session]
ledger = "{name}.tacit"
anchor = "{name}.anchor"
mechanism = "{mechanism}"
questions = {questions}
"""
DOMAIN = """start = true
[domain.id]
kind = "integer"
low = 0
high = {last}
[domain.bit]
kind = "integer"
low = 0
high = 1
"""
Array = NDArray[Any]


def write(
    folder: Path, name: str, seed: int, mechanism: str = "direct", epsilon: float = 1.0, delta: float = 1e-9
) -> tuple[Path, Array]:
    """A table in which everybody has a public number and a secret bit; its configuration, and the bits.

    Half of the bits are 1, which is public: whoever guesses is right half of the time, whatever the guess.
    """
    bits = np.random.Generator(np.random.PCG64([1, seed])).permutation(np.repeat([0, 1], PEOPLE // 2))
    (folder / f"{name}.csv").write_text("id,bit\n" + "".join(f"{i},{bit}\n" for i, bit in enumerate(bits)))
    path = folder / f"{name}.toml"
    terms = {"epsilon": epsilon, "delta": delta, "questions": QUESTIONS, "last": PEOPLE - 1}
    path.write_text((SESSION + DOMAIN).format(name=name, mechanism=mechanism, **terms))
    return path, bits


def subsets(seed: int) -> Array:
    """A row for each question: 1 for those whom it asks about, half of all."""
    return (np.random.Generator(np.random.PCG64([2, seed])).random((QUESTIONS, PEOPLE)) < 0.5).astype(float)


def ask(server: Plain, dataset: str, chosen: Array) -> Array:
    """How many of each subset have the bit, as the server answers."""
    questions = [{"count": {"bit": 1, "id": {"in": np.flatnonzero(row).tolist()}}} for row in chosen]
    answers: list[float] = []
    for start in range(0, len(questions), BATCH):
        response = server.call("POST", f"/v1/{dataset}/ask_many", {"questions": questions[start : start + BATCH]})
        assert response.status == 200, response.body
        answers += [answer["value"] for answer in json.loads(response.body)["answers"]]
    return np.array(answers)


def reconstruct(chosen: Array, answers: Array) -> Array:
    """The bits that fit the answers best: minimise |answers - chosen x| over x in [0, 1], and round."""
    questions, people = chosen.shape
    cost = np.concatenate([np.zeros(people), np.ones(2 * questions)])
    above = sparse.eye_array(questions)
    fits = sparse.hstack([sparse.csr_array(chosen), above, -above], format="csr")
    bounds = [(0, 1)] * people + [(0, None)] * (2 * questions)
    found = linprog(cost, A_eq=fits, b_eq=answers, bounds=bounds, method="highs")
    assert found.status == 0, found.message
    return np.asarray(found.x[:people] > 0.5).astype(int)


def right(server: Plain, dataset: str, bits: Array, seed: int) -> float:
    """The share of the bits that an attack gets right."""
    chosen = subsets(seed)
    return float((reconstruct(chosen, ask(server, dataset, chosen)) == bits).mean())
