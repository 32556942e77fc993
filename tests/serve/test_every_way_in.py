"""One question by two analysts over HTTP, in Python and on the command line: the same bytes, and one charge."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from benchmarks.serving.launch import Server
from benchmarks.serving.wire import Plain
from serving import write_config

import tacit
from tacit.config import read_config
from tacit.serve import make_key

SQL = "SELECT COUNT(*) FROM data WHERE sex = 'F' AND age BETWEEN 20 AND 39"
FORM = {"count": {"age": [20, 39], "sex": "F"}}
FIELDS = ("value", "error", "confidence", "entry", "seal")


def told(answer: dict[str, Any]) -> bytes:
    """What must never differ, as bytes."""
    return json.dumps({name: answer[name] for name in FIELDS}).encode()


@pytest.mark.parametrize("mechanism", ["direct", "iterative"])
def test_the_same_bytes_and_one_charge(tmp_path: Path, mechanism: str) -> None:
    config = write_config(tmp_path, mechanism=mechanism)
    ana, bob = (make_key(tmp_path / "tacit.keys", name, "analyst") for name in ("ana", "bob"))
    with Server(config) as server:
        first = Plain(server.address, ana).call("POST", "/v1/people/ask", {"question": SQL}).json()["answer"]
        spent = Plain(server.address, ana).call("GET", "/v1/people/budget").json()["spent"]
        other = Plain(server.address, bob).call("POST", "/v1/people/ask", {"question": FORM}).json()["answer"]
        command = [sys.executable, "-m", "tacit", "ask", "--json", "-c", str(config), SQL]
        shell = subprocess.run(command, capture_output=True, text=True, check=True)  # beside the running server
        settings = read_config(config)
        files = {"data": settings.data, "domain": settings.domain, "ledger": settings.ledger}
        with tacit.open(budget=settings.budget, **files, **settings.options) as session:
            python = session.ask(tacit.count(sex="F", age=(20, 39))).to_dict()
            charges = [past.cost for past in session.history]
        with tacit.connect(server.address, bob) as client:
            remote = client.ask(SQL).to_dict()
        later = Plain(server.address, bob).call("GET", "/v1/people/budget").json()["spent"]
    answers = [first, other, json.loads(shell.stdout), python, remote]
    assert len({told(answer) for answer in answers}) == 1, answers
    assert [answer["source"] for answer in answers[1:]] == ["repeat"] * 4
    assert [sum(answer["cost"].values()) for answer in answers[1:]] == [0.0] * 4
    assert spent == later
    if mechanism == "direct":
        assert [float(cost) for cost in charges] == [sum(first["cost"].values())] == [sum(spent.values())]
