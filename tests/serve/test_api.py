"""The HTTP API: the same answers as everywhere, one charge, roles that hold, and a description that is true."""

from __future__ import annotations

import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator
from serving import Serve, Served
from starlette.testclient import TestClient

import tacit
from support import PATIENCE, until
from tacit.cli import main
from tacit.config import read_config
from tacit.errors import LedgerError
from tacit.model.status import DryRun
from tacit.serve import dataset
from tacit.serve.admission import Limits
from tacit.serve.api import ENDPOINTS
from tacit.serve.keys import KeyRing, make_key, revoke_key
from tacit.serve.openapi import document
from tacit.serve.question import read
from tacit.serve.refusal import WENT_WRONG, Refusal, refusal_of

WOMEN = "SELECT COUNT(*) FROM data WHERE sex = 'F'"
DOCUMENT = document()
KINDS: list[Any] = [
    WOMEN,
    "SELECT sex, COUNT(*) FROM data GROUP BY sex",
    {"count": {"sex": "F", "age": [20, 39]}},
    {"count": {}},
    {"table": ["sex", "active"]},
    {"table": ["sex"], "where": {"age": [20, 39], "active": {"in": [True]}}},
    {"cdf": "age"},
    {"quantile": "age", "q": 0.5},
    {"mean": "age"},
    {"mean": "age", "where": {"sex": "F", "pay": [10, 50]}},
    {"sum": "age"},
    {"fraction": {"sex": "F"}, "given": {"active": True}},
    "SELECT sex, COUNT(*) AS n, AVG(age) FROM data GROUP BY sex ORDER BY n DESC",
    {"range": {"age": [20, 39]}},
    {"range": {"age": [20, 39], "pay": [0, 20]}},
    {"histogram": "age", "width": 20},
    "SELECT STUMP(age, active) FROM data",
    {"stump": "age", "predicts": "active"},
    {"quantile_distance": "age", "q": 0.5, "high": 39},
    {"largest_mean": "age", "by": ["sex"], "smallest": 0.1},
    {"matching": "sex", "left": "F", "right": "M", "on": "active"},
]


def valid(body: Any, schema: str) -> None:
    reference = {"$ref": f"#/components/schemas/{schema}", "components": DOCUMENT["components"]}
    Draft202012Validator(reference).validate(body)


def refused(response: Any, status: int, code: str) -> str:
    """The refusal's sentence; its body is as described, and the status is one that its address may answer with."""
    assert response.status_code == status, response.text
    valid(response.json(), "ErrorReply")
    error = response.json()["error"]
    assert error["code"] == code
    for path, methods in DOCUMENT["paths"].items():
        if response.request.url.path == path.replace("{dataset}", "people"):
            operation = methods[response.request.method.lower()]
            assert str(status) in operation["responses"]
    return str(error["message"])


def test_a_value_too_large_for_a_number_is_null(served: Served) -> None:
    """It was paid, and the answer was an error of the server: JSON has no infinite number."""
    large = served.ask(f"SELECT EXP(COUNT(*) * 1000) {WOMEN.removeprefix('SELECT COUNT(*) ')}")
    assert (large["value"], large["error"]) == (None, None)
    grouped = served.ask("SELECT sex, EXP(COUNT(*) * 1000), COUNT(*) FROM data GROUP BY sex")
    assert [row[1] for row in grouped["rows"]] == [None] * len(grouped["rows"])


def test_the_same_answer_by_every_way_in_and_one_charge(served: Served) -> None:
    by_ana, by_bob = served.ask(WOMEN), served.ask({"count": {"sex": "F"}}, "bob")
    with read_config(served.folder / "people.toml").open() as session:
        python = session.ask(tacit.count(sex="F")).to_dict()
    by_cli = CliRunner().invoke(main, ["ask", "--json", "-c", str(served.folder / "people.toml"), WOMEN])
    assert by_cli.exit_code == 0, by_cli.output
    same = [{k: a[k] for k in ("value", "error", "entry", "seal")} for a in (by_ana, by_bob, python)]
    same.append({k: json.loads(by_cli.stdout)[k] for k in ("value", "error", "entry", "seal")})
    assert all(answer == same[0] for answer in same)
    assert [by_ana["source"], by_bob["source"]] == ["measured", "repeat"]
    assert served.people.session.spent.atoms == round(sum(by_ana["cost"].values()) * 10**12)
    assert by_bob["cost"] == {"gdp": 0.0}


def test_every_kind_of_question_is_answered_as_described(serve: Serve) -> None:
    served = serve(questions=200)
    for question in KINDS:
        valid(question, "Question")
        priced = served.ask(question, path="/v1/people/cost")
        valid(priced, "CostReply")
        before = served.people.session.spent
        answer = served.ask(question)
        valid(answer, "AnswerLine")
        charged = served.people.session.spent - before
        most = round(sum(priced["cost_at_most"].values()) * 10**12)
        assert charged.atoms == round(sum(answer["cost"].values()) * 10**12) <= most, question
        again = served.ask(question, "rea")  # what was told once is free for everybody
        assert again["cost"] == {"gdp": 0.0}
        same = [
            {k: v for k, v in told.items() if k not in ("cost", "percent", "source", "total")}
            for told in (answer, again)
        ]
        assert same[0] == same[1], question


def test_a_batch_shares_its_commit(served: Served) -> None:
    questions = [WOMEN, {"count": {"age": [20, 29]}}, {"count": {"sex": "F"}}]
    before = served.people.writer.batches
    response = served.ana.post("/v1/people/ask_many", json={"questions": questions})
    valid(response.json(), "AskManyReply")
    first, second, third = response.json()["answers"]
    assert served.people.writer.batches == before + 1
    assert first["value"] == third["value"]
    assert third["source"] == "repeat"
    spent = round((sum(first["cost"].values()) + sum(second["cost"].values())) * 10**12)
    assert served.people.session.spent.atoms == spent
    too_many = served.ana.post("/v1/people/ask_many", json={"questions": [WOMEN] * 1001})
    refused(too_many, 400, "bad_batch")
    refused(served.ana.post("/v1/people/ask_many", json={"questions": [{"cdf": "age"}]}), 422, "bad_batch")


def test_reads_are_as_described(served: Served) -> None:
    served.ask(WOMEN)
    served.ask({"count": {"active": True}}, "bob")
    for path, schema in (
        ("/v1/health", "HealthReply"), ("/v1/openapi.json", "DocumentReply"), ("/v1/whoami", "WhoamiReply"),
        ("/v1/datasets", "DatasetsReply"), ("/v1/keys", "KeysReply"), ("/v1/people/domain", "DomainReply"),
        ("/v1/people/budget", "BudgetReply"), ("/v1/people/history", "HistoryReply"),
        ("/v1/people/audit", "AuditReply"),
    ):  # fmt: skip
        response = served.olga.get(path)
        assert response.status_code == 200
        valid(response.json(), schema)
    first = served.rea.get("/v1/people/history?limit=1").json()
    assert first["history"][0]["question"] in ("sex = F", "sex = M")  # one of them is the canonical one
    rest = served.rea.get(f"/v1/people/history?after={first['next']}").json()
    assert [past["question"] for past in rest["history"]] in (["active = true"], ["active = false"])
    assert rest["next"] is None
    domain = served.rea.get("/v1/people/domain").json()
    assert [a["name"] for a in domain["attributes"]] == ["sex", "age", "active", "pay"]
    assert domain["rows"] == 301


def test_the_audit_names_who_and_holds_no_values(served: Served) -> None:
    answer = served.ask(WOMEN)
    served.ask(WOMEN, "bob")
    refused(served.rea.post("/v1/people/ask", json={"question": {"count": {"active": True}}}), 403, "would_spend")
    newest = served.olga.get("/v1/people/audit").json()["audit"]
    assert [(r["who"], r.get("refused")) for r in newest] == [("rea", "would_spend"), ("bob", None), ("ana", None)]
    assert newest[2]["entry"] == newest[1]["entry"] == answer["entry"]
    assert newest[2]["question"] == newest[1]["question"]
    assert set(newest[2]) == {"time", "who", "key", "role", "question", "asked", "cost", "entry"}
    assert newest[0]["asked"] == '{"count": {"active": true}}'
    assert served.people.audit.path.stat().st_mode & 0o777 == 0o600


def test_a_reader_cannot_spend(served: Served) -> None:
    for question in KINDS:
        if question == {"count": {}}:
            continue
        refused(served.rea.post("/v1/people/ask", json={"question": question}), 403, "would_spend")
    many = {"questions": [WOMEN]}
    refused(served.rea.post("/v1/people/ask_many", json=many), 403, "would_spend")
    assert served.people.session.spent.atoms == 0
    assert served.ask({"count": {}}, "rea")["value"] == 301
    served.ask(WOMEN)
    assert served.rea.post("/v1/people/ask_many", json=many).status_code == 200


def test_a_link_never_spends_whoever_follows_it(served: Served) -> None:
    for who in (served.ana, served.rea):
        said = refused(who.get("/v1/people/ask", params={"sql": WOMEN}), 403, "would_spend")
        assert said == "A reader's key and a link tell what is known, and this is not: 1 new question to buy."
    assert served.people.session.spent.atoms == 0
    told = served.ask(WOMEN)
    assert served.rea.get("/v1/people/ask", params={"sql": WOMEN}).json()["answer"]["value"] == told["value"]


def test_a_wrong_price_does_not_let_a_reader_spend(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def planted(session: tacit.Session, _: Any) -> DryRun:
        return DryRun(True, session.spent, "everything is known")

    monkeypatch.setattr(dataset, "price", planted)
    refused(served.rea.post("/v1/people/ask", json={"question": WOMEN}), 403, "would_spend")
    assert served.people.session.spent.atoms == 0
    monkeypatch.setattr(tacit.Session, "free", lambda _: nullcontext())
    assert served.rea.post("/v1/people/ask", json={"question": WOMEN}).status_code == 200
    assert served.people.session.spent.atoms > 0  # without both it would, so the tests above can fail


def test_a_reader_opens_no_gate(serve: Serve) -> None:
    served = serve(mechanism="iterative", questions=1000)
    answer = served.ask({"count": {"sex": "F", "age": [20, 29]}})  # opens one
    before = served.people.session.spent
    entries = len(list(served.people.session.transcript()[1]))
    refused(served.rea.post("/v1/people/ask", json={"question": {"count": {"age": [30, 39]}}}), 403, "would_spend")
    assert len(list(served.people.session.transcript()[1])) == entries
    assert served.people.session.spent == before
    assert served.ask({"count": {"sex": "F", "age": [20, 29]}}, "rea")["value"] == answer["value"]


def test_keys_and_roles(served: Served) -> None:
    refused(served.nobody.get("/v1/people/budget"), 401, "unauthorized")
    wrong = {"authorization": "Bearer tacit_" + "x" * 43}
    assert "www-authenticate" in served.nobody.get("/v1/datasets", headers=wrong).headers
    refused(served.nobody.get("/v1/people/budget", headers={"authorization": "Basic eDp5"}), 401, "unauthorized")
    for path in ("/v1/keys", "/v1/people/audit"):
        refused(served.ana.get(path), 403, "owner_only")
        refused(served.rea.get(path), 403, "owner_only")
    assert "ana" in {key["name"] for key in served.olga.get("/v1/keys").json()["keys"]}
    assert served.bob.get("/v1/whoami").json() == {"name": "bob", "role": "analyst"}
    revoke_key(served.folder / "tacit.keys", "bob")
    refused(served.bob.get("/v1/whoami"), 401, "unauthorized")
    refused(served.bob.post("/v1/people/ask", json={"question": WOMEN}), 401, "unauthorized")
    assert served.people.session.spent.atoms == 0


def test_what_is_refused_charges_nothing(serve: Serve) -> None:
    served = serve(questions=1)
    for question in ("SELECT * FROM data", {"count": {"height": 3}}, {"count": {"age": [20, 25]}}, {"cdf": "sex"}):
        message = refused(served.ana.post("/v1/people/ask", json={"question": question}), 422, "invalid_query")
        assert message
    assert served.people.session.spent.atoms == 0
    served.ask(WOMEN)
    spent = served.people.session.spent
    broke = served.ana.post("/v1/people/ask", json={"question": {"count": {"active": True}}})
    refused(broke, 409, "budget_exhausted")
    assert broke.json()["error"]["nothing_spent"] is True
    assert served.people.session.spent == spent


def test_a_quota_is_fair_and_says_so(served: Served) -> None:
    quota = served.mia.get("/v1/people/budget").json()["quota"]
    assert quota["share"] == 0.1
    assert "fairness" in quota["note"]
    assert served.ana.get("/v1/people/budget").json()["quota"] is None
    first, second = {"count": {"sex": "F"}}, {"count": {"active": True}}
    served.ask(first, "mia")
    served.ask(second, "mia")
    third = served.mia.post("/v1/people/ask", json={"question": {"count": {"age": [20, 29]}}})
    assert "fairness" in refused(third, 403, "quota")
    assert served.ask({"count": {"sex": "M"}}, "mia")["cost"] == {"gdp": 0.0}  # n less what is known: free
    used = sum(served.mia.get("/v1/people/budget").json()["quota"]["used"].values())
    assert round(used * 10**12) == served.people.session.spent.atoms
    served.ask({"count": {"age": [20, 29]}})  # somebody else may


def test_a_quota_that_ends_within_a_batch(served: Served) -> None:
    ages = [{"count": {"age": [low, low + 9]}} for low in (20, 30, 40)]
    cut = served.mia.post("/v1/people/ask_many", json={"questions": ages})  # two of twenty parts are a tenth
    refused(cut, 403, "quota")
    assert cut.json()["error"]["nothing_spent"] is True  # the ledger refused the reservation for all of them
    assert served.people.session.spent.atoms == 0
    assert served.mia.post("/v1/people/ask_many", json={"questions": ages[:2]}).status_code == 200
    paid = [record for record in served.olga.get("/v1/people/audit").json()["audit"] if "cost" in record]
    assert len(paid) == 2
    assert round(sum(sum(record["cost"].values()) for record in paid) * 10**12) == served.people.session.spent.atoms
    used = sum(served.mia.get("/v1/people/budget").json()["quota"]["used"].values())
    assert round(used * 10**12) == served.people.session.spent.atoms
    refused(served.mia.post("/v1/people/ask", json={"question": ages[2]}), 403, "quota")


def default_key(served: Served, name: str) -> TestClient:
    secret = make_key(served.folder / "tacit.keys", name, "analyst")
    return TestClient(served.ana.app, base_url="http://127.0.0.1:8470", headers={"authorization": f"Bearer {secret}"})


def test_no_new_key_takes_all_there_is_in_one_request(served: Served) -> None:
    session = served.people.session
    total = session.total.atoms
    greedy = default_key(served, "greedy")
    all_of_it = {"question": {"cdf": "age", "share": 1.0}}
    assert refused(greedy.post("/v1/people/ask", json=all_of_it), 403, "quota")
    assert session.spent.atoms == 0
    a_fifth = {"question": {"cdf": "age", "share": 0.2}}
    assert greedy.post("/v1/people/ask", json=a_fifth).status_code == 200
    quota = greedy.get("/v1/people/budget").json()["quota"]
    assert quota["share"] == pytest.approx(0.25)
    assert refused(greedy.post("/v1/people/ask", json={"question": {"cdf": "pay", "share": 0.2}}), 403, "quota")
    later = default_key(served, "later").get("/v1/people/budget").json()["quota"]
    assert later["share"] == pytest.approx(0.25 * (1 - session.spent.atoms / total))  # of what is left
    served.ask({"count": {"sex": "F"}}, "olga")
    assert greedy.get("/v1/people/budget").json()["quota"]["share"] == quota["share"]  # it stays what it was


def test_a_default_quota_is_not_charged_for_the_start(serve: Serve) -> None:
    served = serve(mechanism="histogram", start=True)
    ask = default_key(served, "first").post("/v1/people/ask", json={"question": {"count": {"sex": "F"}}})
    assert ask.status_code == 200, ask.text
    spent = served.people.session.spent.atoms
    assert spent > served.people.session.total.atoms / 4  # the start costs more than the quota is
    lines = [record for record in served.olga.get("/v1/people/audit").json()["audit"] if "cost" in record]
    assert lines[-1]["question"] == "start"
    assert lines[-1]["who"] == "first"
    assert round(sum(sum(line["cost"].values()) for line in lines) * 10**12) <= spent


def test_plain_counts_of_default_keys_share_a_commit(served: Served) -> None:
    for name in ("one", "two"):
        default_key(served, name)
    people, held, go = served.people, threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        assert go.wait(PATIENCE)

    people.writer.do(hold)
    assert held.wait(PATIENCE)
    arrived = datetime(2031, 1, 1, tzinfo=UTC)
    before = people.writer.batches
    keys = {key.name: key for key in served.state.keys.all()}
    questions = [read({"count": {"age": [low, low + 9]}}, people.session.domain) for low in (20, 30, 40)]
    asked = [
        people.ask(keys[name], [question], arrived)
        for name, question in zip(("one", "one", "two"), questions, strict=True)
    ]
    go.set()
    for future in asked:
        assert not isinstance(future, list)
        future.result(PATIENCE)
    assert people.writer.batches == before + 1
    lines = people.session.transcript()[1]
    assert {line.time for line in lines} == {"2031-01-01T00:00:00.000+00:00"}


def test_what_a_certified_base_answers_is_asked_of_the_session_once(serve: Serve) -> None:
    """Nothing changes such an answer any more, so that whoever asks again need not wait for the writer."""
    served = serve(mechanism="iterative", warm=0.6, certify=0.2)
    people = served.people
    people.session.start()
    key = next(key for key in served.state.keys.all() if key.name == "ana")
    question = read({"count": {"age": [20, 29]}}, people.session.domain)
    assert people.session.settles(question.ask)
    first = people.ask(key, [question])
    assert not isinstance(first, list)  # by the writer
    (told,) = first.result(PATIENCE)
    (again,) = people.ask(key, [question])  # type: ignore[misc]
    assert (again.value, again.error, again.source) == (told.value, told.error, "hypothesis")


def test_a_body_that_came_before_is_not_read_again_and_is_all_the_same_counted(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    bodies = [{"question": "SELECT COUNT(*) FROM data WHERE sex = 'F'"}, {"question": {"count": {"age": [20, 39]}}}]
    told = [[served.ana.post("/v1/people/ask", json=body).json() for body in bodies] for _ in range(2)][1]
    monkeypatch.setattr("tacit.serve.api.read", lambda *_: pytest.fail("it was read"))
    monkeypatch.setattr("tacit.serve.app.parse", lambda *_: pytest.fail("it was read"))
    noted = len(served.people.noted(100))
    for body, answer in zip(bodies, told, strict=True):
        for who in (served.ana, served.rea):  # whoever asks, and whatever may be spent
            assert who.post("/v1/people/ask", json=body).json() == answer
        assert served.ana.post("/v1/people/cost", json=body).json()["known"]
    lines = served.people.noted(100)
    assert [line["who"] for line in lines[: len(lines) - noted]] == ["rea", "ana"] * 2
    assert all(line["free"] == 1 and line["asked"] for line in lines[:4])
    revoke_key(served.folder / "tacit.keys", "rea")
    assert served.rea.post("/v1/people/ask", json=bodies[0]).status_code == 401


def test_a_body_is_remembered_for_one_data_set_and_to_the_letter(served: Served) -> None:
    sql = "SELECT COUNT(*) FROM data WHERE sex = 'M'"
    plain = served.ask(sql)
    assert served.ana.post("/v1/nobody/ask", json={"question": sql}).status_code == 404
    half = plain["error"] / 2
    sharp = served.ana.post("/v1/people/ask", json={"question": sql, "within": half}).json()["answer"]
    assert sharp["error"] <= half
    twice = f'{{"question": "SELECT COUNT(*) FROM data", "question": "{sql}"}}'
    headers = {"content-type": "application/json"}
    for _ in range(2):  # what is refused is not remembered
        assert served.ana.post("/v1/people/ask", content=twice, headers=headers).status_code == 400
        assert served.ana.post("/v1/people/ask", json={"question": "SELECT age FROM data"}).status_code == 422


def test_limits_on_rate_and_requests(serve: Serve) -> None:
    served = serve(limits=Limits(rate=0.001, burst=3))
    served.state.traffic.clock = lambda: 0.0
    for _ in range(3):
        assert served.ana.get("/v1/whoami").status_code == 200
    stopped = served.ana.get("/v1/whoami")
    refused(stopped, 429, "rate_limited")
    assert int(stopped.headers["retry-after"]) >= 1
    assert served.bob.get("/v1/whoami").status_code == 200
    assert served.nobody.get("/v1/health").status_code == 200


def test_too_many_at_once_are_turned_away(serve: Serve) -> None:
    served = serve(limits=Limits(together_of_one=1))
    go, started = threading.Event(), threading.Event()

    def hold() -> None:
        started.set()
        assert go.wait(PATIENCE)

    blocked = served.people.writer.do(hold)
    assert started.wait(PATIENCE)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(served.ana.post, "/v1/people/ask", json={"question": WOMEN})
        try:
            until(lambda: served.state.traffic._active.total() > 0)
            refused(served.ana.get("/v1/whoami"), 503, "busy")
            assert served.bob.get("/v1/people/budget").status_code == 200  # reads do not wait for the writer
            assert served.bob.get("/v1/people/history").status_code == 200
        finally:
            go.set()  # so that a failure is told and nobody waits for it
        assert waiting.result().status_code == 200
    blocked.result()


def test_a_failure_inside_shows_nothing_of_its_words(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: Any) -> Any:
        raise ValueError("row 300 is Wilhelmina, 31337")

    caplog.set_level(logging.DEBUG)
    monkeypatch.setattr(served.people.session._mechanism, "estimate", fail)
    for path, body in (("ask", {"question": WOMEN}), ("ask_many", {"questions": [WOMEN]})):
        response = served.ana.post(f"/v1/people/{path}", json=body)
        assert refused(response, 500, "internal") == WENT_WRONG
        assert response.json()["error"]["nothing_spent"] is False
    monkeypatch.setattr(type(served.people.session), "history_after", fail)
    assert refused(served.ana.get("/v1/people/history"), 500, "internal") == WENT_WRONG
    told = caplog.text + "".join(capfd.readouterr()) + served.people.audit.path.read_text()
    assert "ValueError" in told  # the owner learns that something failed, and where
    assert "Wilhelmina" not in told
    assert "31337" not in told
    assert served.people.session.spent.atoms == 0


def test_headers_hosts_and_unknown_addresses(served: Served) -> None:
    for response in (served.nobody.get("/v1/health"), served.nobody.get("/v1/nothing"), served.ana.get("/v1/datasets")):
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["x-frame-options"] == "DENY"
        assert response.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert "access-control-allow-origin" not in response.headers
    for host in ("evil.example", "evil.example:8470", "127.0.0.1.evil.example"):
        refused(served.ana.get("/v1/whoami", headers={"host": host}), 421, "wrong_host")
    refused(served.ana.get("/v1/whoami", headers={"host": "a b"}), 400, "bad_host")
    assert served.ana.get("/v1/whoami", headers={"host": "localhost:9"}).status_code == 200
    assert served.ana.get("/v1/nothing").json()["error"]["code"] == "no_such_address"
    assert served.ana.get("/v1/health/").status_code == 404
    wrong_method = served.ana.get("/v1/people/cost")
    assert (wrong_method.status_code, wrong_method.headers["allow"]) == (405, "POST")
    refused(served.ana.get("/v1/people/history?limit=0"), 400, "bad_parameter")
    refused(served.ana.get("/v1/people/history?limit=1&limit=2"), 400, "bad_parameter")
    refused(served.ana.get("/v1/people/budget?limit=1"), 400, "bad_parameter")
    elsewhere = served.ana.get("/v1/others/budget")
    assert (elsewhere.status_code, elsewhere.json()["error"]["code"]) == (404, "no_such_dataset")
    assert served.nobody.get("/v1/others/budget").status_code == 401  # names are for those with a key


def test_a_cookie_works_from_our_own_pages_only(served: Served) -> None:
    key, ours = {"key": served.keys["ana"]}, {"origin": "http://127.0.0.1:8470"}
    browser = served.nobody
    refused(browser.post("/v1/login", json=key), 403, "foreign_origin")
    refused(browser.post("/v1/login", json=key, headers={"origin": "http://127.0.0.1:9999"}), 403, "foreign_origin")
    refused(browser.post("/v1/login", json={"key": "tacit_wrong"}, headers=ours), 401, "unauthorized")
    response = browser.post("/v1/login", json=key, headers=ours)
    assert response.status_code == 204
    cookie = response.headers["set-cookie"]
    assert served.keys["ana"] not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert browser.get("/v1/whoami").json()["name"] == "ana"
    body = {"question": WOMEN}
    assert browser.post("/v1/people/ask", json=body, headers=ours).status_code == 200
    for foreign in ({}, {"origin": "null"}, {"origin": "http://evil.example"}, {"sec-fetch-site": "same-site"}):
        refused(browser.post("/v1/people/ask", json=body, headers=foreign), 403, "foreign_origin")
    refused(browser.get("/v1/people/budget", headers={"sec-fetch-site": "cross-site"}), 403, "foreign_origin")
    revoke_key(served.folder / "tacit.keys", "ana")
    refused(browser.get("/v1/whoami"), 401, "unauthorized")
    assert browser.post("/v1/logout", headers=ours).status_code == 204


def test_the_document_is_the_one_handed_out(served: Served) -> None:
    assert served.nobody.get("/v1/openapi.json").json() == DOCUMENT
    described = {(m.upper(), path) for path, methods in DOCUMENT["paths"].items() for m in methods}
    assert described == {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}
    Draft202012Validator.check_schema({"$defs": DOCUMENT["components"]["schemas"]})
    named = json.dumps(DOCUMENT)
    for schema in DOCUMENT["components"]["schemas"]:
        assert f"#/components/schemas/{schema}" in named


def test_what_is_published_answers_without_the_data(served: Served, tmp_path: Path) -> None:
    answer = served.ask(WOMEN)
    response = served.rea.get("/v1/people/published")
    assert response.status_code == 200
    path = tmp_path / "got.tacit.jsonl"
    path.write_bytes(response.content)
    with tacit.read(path) as at_home:
        told = at_home.ask(WOMEN)
    assert (told.value, told.receipt.entry) == (answer["value"], answer["entry"])


@pytest.mark.parametrize("mechanism", ["direct", "iterative"])
def test_sixteen_threads_pay_what_the_ledger_says(serve: Serve, mechanism: str) -> None:
    served = serve(mechanism=mechanism, questions=40)
    ages = [{"count": {"age": [low, low + 9]}} for low in range(10, 80, 10)]
    mixed: list[Any] = [WOMEN, *ages, {"table": ["sex", "active"]}, {"cdf": "age"}, {"count": {"height": 1}}]

    def work(number: int) -> float:
        who, paid = ("ana", "bob", "rea", "olga")[number % 4], 0.0
        for step in range(len(mixed)):
            question = mixed[(step + number) % len(mixed)]
            response = served.clients[who].post("/v1/people/ask", json={"question": question})
            assert response.status_code in (200, 403, 409, 422), response.text
            if response.status_code == 200:
                paid += sum(response.json()["answer"]["cost"].values())
                assert who != "rea" or not sum(response.json()["answer"]["cost"].values())
        return paid

    with ThreadPoolExecutor(16) as pool:
        paid = sum(pool.map(work, range(16)))
    gates = [e.atoms for e in served.people.session.transcript()[1] if e.kind == "intent"]  # an open one is spent too
    spent = float(served.people.session.spent)
    open_gate = 0.0
    if mechanism == "iterative":
        settled = sum(past.cost.atoms for past in served.people.session.history)
        open_gate = (served.people.session.spent.atoms - settled) / 10**12
        assert round(open_gate * 10**12) in (0, *gates)
    assert paid + open_gate == pytest.approx(spent, abs=1e-9)
    assert spent <= float(served.people.session.total)


@pytest.mark.parametrize("call", ["fsync", "write"])
def test_an_audit_log_that_cannot_be_written_is_said_to_be_that(
    served: Served, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(f"tacit.serve.audit.os.{call}", full)
        withheld = served.ana.post("/v1/people/ask", json={"question": {"count": {"sex": "F"}}})
    refused(withheld, 503, "audit")
    assert withheld.json()["error"]["nothing_spent"] is False
    used = served.state.keys.used("people", "ana")  # it counts for a quota, too
    assert used == served.people.session.spent.atoms > 0
    assert served.ask({"count": {"sex": "F"}})["cost"] == {"gdp": 0.0}  # it was kept, and is told once it is noted


def test_a_full_disk_is_in_the_log_once(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    served.ask({"count": {"sex": "F"}})
    monkeypatch.setattr("tacit.serve.audit.os.write", full)
    for _ in range(20):
        refused(served.ana.post("/v1/people/ask", json={"question": {"count": {"sex": "F"}}}), 503, "audit")
    assert [line.getMessage().split(";")[0] for line in caplog.records] == ["the audit log cannot be written"]


def test_a_ledger_that_cannot_be_used_is_in_the_log_once(caplog: pytest.LogCaptureFixture) -> None:
    for said in [*["the disk is full"] * 20, "it is damaged"]:
        assert refusal_of(LedgerError(said)).status == 503
    assert len(caplog.records) == 2


def test_an_audit_log_that_cannot_be_read_is_said_to_be_that(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    path = served.people.audit.path
    path.unlink()
    path.mkdir()
    for _ in range(3):
        response = served.olga.get("/v1/people/audit")
        refused(response, 503, "audit")
        assert response.json()["error"]["nothing_spent"] is True
    assert len(caplog.records) == 1
    path.rmdir()


def test_a_full_folder_for_temporary_files_is_said_to_be_that(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    served.ask({"count": {"sex": "F"}})
    for call in ("tempfile.TemporaryFile", "os.pwrite"):
        with monkeypatch.context() as patch:
            patch.setattr(f"tacit.serve.edition.{call}", full)
            response = served.rea.get("/v1/people/published")
        refused(response, 503, "published")
        assert response.json()["error"]["nothing_spent"] is True
        assert response.headers["retry-after"]
    assert len(caplog.records) == 1
    assert "No space left" in caplog.text
    assert served.rea.get("/v1/people/published").status_code == 200


def test_what_was_paid_is_shown_noted_and_counted_where_the_keys_cannot_be_written(served: Served) -> None:
    """mia may spend a tenth, which is two counts."""
    ring = served.state.ring
    ring._db.execute("PRAGMA query_only = ON")
    told = [served.mia.post("/v1/people/ask", json={"question": {"count": {"age": [0, 9 + 10 * i]}}}) for i in range(3)]
    ring._db.execute("PRAGMA query_only = OFF")
    assert [one.status_code for one in told] == [200, 200, 403]
    refused(told[2], 403, "quota")
    used = served.mia.get("/v1/people/budget").json()["quota"]["used"]
    assert round(sum(used.values()) * 10**12) == served.people.session.spent.atoms > 0
    paid = [line["who"] for line in served.olga.get("/v1/people/audit").json()["audit"] if "cost" in line]
    assert paid == ["mia", "mia"]


def test_what_was_paid_before_the_keys_could_not_be_read_is_said_and_counted(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, used = list[str](), KeyRing.used

    def gone(ring: KeyRing, about: str, name: str) -> int:
        looked.append(name)
        if len(looked) == 2:
            raise Refusal(503, "keys", "The keys cannot be read now.")
        return used(ring, about, name)

    with monkeypatch.context() as patch:
        patch.setattr(dataset, "SLICE", 1)
        patch.setattr(KeyRing, "used", gone)
        batch = {"questions": [{"count": {"sex": "F"}}, {"count": {"sex": "M"}}]}
        withheld = served.mia.post("/v1/people/ask_many", json=batch)
    refused(withheld, 503, "keys")
    assert withheld.json()["error"]["nothing_spent"] is False
    assert served.state.ring.used("people", "mia") == served.people.session.spent.atoms > 0


def test_a_file_of_keys_that_is_moved_away_is_no_internal_error(served: Served) -> None:
    path = served.state.keys.path
    path.rename(path.with_name("elsewhere"))
    refused(served.ana.get("/v1/whoami"), 503, "keys")
    path.with_name("elsewhere").rename(path)
    assert served.ana.get("/v1/whoami").status_code == 200
