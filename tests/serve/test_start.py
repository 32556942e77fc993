"""Starting over HTTP and on the page: everybody may see what it would cost, the owner buys it, and it is noted."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from serving import Serve, Served, running, write_series
from starlette.testclient import TestClient

import tacit.serve
from tacit.serve.app import make_app
from tacit.serve.page import routes
from tacit.trusted.curator import Curator

WOMEN = "SELECT COUNT(*) FROM data WHERE sex = 'F'"


def test_the_owner_starts_and_nobody_else(serve: Serve) -> None:
    served = serve(mechanism="histogram", start=False)
    offered = served.rea.get("/v1/people/base").json()
    assert (offered["bought"], offered["percent"]) == (False, 100.0)
    asked = served.ana.post("/v1/people/ask", json={"question": WOMEN})
    assert (asked.status_code, asked.json()["error"]["code"]) == (409, "not_started")
    assert asked.json()["error"]["nothing_spent"] is True
    assert "not started" in served.ana.post("/v1/people/cost", json={"question": WOMEN}).json()["why"]
    for who in ("ana", "rea"):
        assert served.clients[who].post("/v1/people/start").status_code == 403
    assert served.people.session.spent.atoms == 0
    bought = served.olga.post("/v1/people/start").json()
    assert bought["bought"] is True
    assert bought["cost"] == {"gdp": float(served.people.session.spent)}
    assert served.olga.post("/v1/people/start").json()["percent"] == 0
    assert served.ask(WOMEN, "rea")["cost"] == {"gdp": 0.0}
    lines = [line for line in served.people.audit.last(10) if line.get("question") == "start"]
    assert [(line["who"], "cost" in line) for line in lines] == [("olga", False), ("olga", True)]


def test_the_page_has_a_card_until_it_is_started(serve: Serve) -> None:
    served = serve(mechanism="histogram", start=False)
    app = make_app(served.state, pages=routes())
    owner, reader = _browser(app, served, "olga"), _browser(app, served, "rea")
    assert "Start for 100 % of the budget" in owner.get("/data/people").text
    shown = reader.get("/data/people").text
    assert "Not started yet" in shown
    assert "<button" not in _card(shown)
    headers = {"origin": "http://127.0.0.1:8470"}
    assert reader.post("/data/people/start", data={"sure": "yes"}, headers=headers).status_code == 403
    assert owner.post("/data/people/start", data={"sure": ""}, headers=headers).status_code == 400
    refused = owner.post("/data/people/ask", data={"way": "sql", "sql": WOMEN, "do": "ask"}, headers=headers)
    assert refused.status_code == 409
    assert "not started" in refused.text
    assert served.people.session.spent.atoms == 0
    bought = owner.post("/data/people/start", data={"sure": "yes"}, headers=headers, follow_redirects=False)
    assert (bought.status_code, bought.headers["location"]) == (303, "/data/people")
    assert served.people.session.started
    assert "Not started yet" not in owner.get("/data/people").text


def _browser(app: object, served: Served, who: str) -> TestClient:
    client = TestClient(app, base_url="http://127.0.0.1:8470")  # type: ignore[arg-type]
    client.post("/login", data={"key": served.keys[who]}, headers={"origin": "http://127.0.0.1:8470"})
    return client


def _card(page: str) -> str:
    found = re.search(r'<section id="start".*?</section>', page, re.DOTALL)
    assert found is not None
    return found[0]


def test_a_server_is_warm_before_it_is_asked(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session or a series knows what its first question would load: the server names no engine and no sampler."""
    loaded = list[str]()
    monkeypatch.setattr(Curator, "load_samplers", staticmethod(lambda: loaded.append("samplers")))
    served = serve()
    assert loaded == ["samplers"]
    assert served.people.session.spent.atoms == 0
    (folder := tmp_path / "months").mkdir()
    with running(folder, series=write_series(folder)) as months:
        assert loaded == ["samplers"] * 2
        assert all(not one.spent.atoms for one in months.state.datasets["stays"].session.status().blocks)
    named = set[str]()
    for file in Path(tacit.serve.__path__[0]).rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") in ("import_module", "__import__"):
                named.add(ast.unparse(call.args[0]))
    assert named == {"f'tacit.serve.{module}'"}


def test_samplers_are_there_once_they_were_loaded() -> None:
    code = (
        "import sys; from tacit.trusted.curator import Curator; before = 'opendp.measurements' in sys.modules;"
        "Curator.load_samplers(); print(before, 'opendp.measurements' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
