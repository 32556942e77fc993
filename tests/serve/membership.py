"""Membership inference from the counts of many attributes, over HTTP.

Homer et al. 2008; Dwork, Smith, Steinke, Ullman & Vadhan 2015: whoever publishes the counts of d attributes of n people
nearly exactly, with d well above n, tells who of those that somebody knows is among them. A person's score is how far
the counts lean to what that person has, against what everybody has.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from attack import SESSION
from benchmarks.serving.wire import Plain
from numpy.typing import NDArray

MEMBERS, ATTRIBUTES, BATCH = 20, 250, 50
Array = NDArray[Any]


def write(folder: Path, name: str, seed: int, epsilon: float = 1.0, delta: float = 1e-9) -> Array:
    """A table of members and its configuration. Returned are the members, and after them as many others like them.

    Everybody has each attribute with chance 1/2, which is public.
    """
    rng = np.random.Generator(np.random.PCG64([3, seed]))
    people = (rng.random((2 * MEMBERS, ATTRIBUTES)) < 0.5).astype(int)
    names = [f"a{number}" for number in range(ATTRIBUTES)]
    rows = [",".join(map(str, row)) for row in people[:MEMBERS]]
    (folder / f"{name}.csv").write_text("\n".join([",".join(names), *rows, ""]))
    domain = "".join(f'[domain.{one}]\nkind = "integer"\nlow = 0\nhigh = 1\n' for one in names)
    terms = {"name": name, "mechanism": "direct", "epsilon": epsilon, "delta": delta, "questions": ATTRIBUTES}
    (folder / f"{name}.toml").write_text(SESSION.format(**terms) + domain)
    return people


def right(server: Plain, dataset: str, people: Array) -> float:
    """The share of the people of whom the attack says rightly whether they are members: it takes half for members."""
    answers: list[float] = []
    for start in range(0, ATTRIBUTES, BATCH):
        asked = [{"count": {f"a{number}": 1}} for number in range(start, start + BATCH)]
        response = server.call("POST", f"/v1/{dataset}/ask_many", {"questions": asked})
        assert response.status == 200, response.body
        answers += [answer["value"] for answer in json.loads(response.body)["answers"]]
    scores = (people - 0.5) @ (np.array(answers) / MEMBERS - 0.5)
    guessed = np.zeros(len(people), dtype=bool)
    guessed[np.argsort(-scores, kind="stable")[:MEMBERS]] = True
    return float((guessed == (np.arange(len(people)) < MEMBERS)).mean())
