"""Servers of published files: the answers of the session that published them, for everybody, and nothing to buy."""

from __future__ import annotations

import json
import random
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin

import pandas as pd
import psycopg
import pytest
from bridge import bridge
from click.testing import CliRunner
from serving import Served
from starlette.testclient import TestClient

import tacit
from tacit.cli import main
from tacit.serve.admission import Limits
from tacit.serve.app import LOOPBACK, make_app
from tacit.serve.page import routes
from tacit.serve.postgres.listener import Listener
from tacit.serve.served_data import Replica
from tacit.serve.server import Server

GOLDEN = Path(__file__).parents[1] / "golden" / "published"
OWNER = "https://tacit.example.org"
BASE = "http://127.0.0.1:8470"
ASK = "/v1/people/ask"
AGES = "SELECT age, COUNT(*) FROM data GROUP BY age"
SMOKERS = "SELECT COUNT(*) FROM data WHERE smoker"
DEAR = {"cdf": "pay", "share": 0.01}  # a release that nobody bought


@contextmanager
def replicas(count: int, path: Path, door: socket.socket | None = None) -> Iterator[list[TestClient]]:
    """Clients of so many servers of one file; the first also speaks PostgreSQL's protocol where there is a door."""
    limits = Limits(rate=1e9, burst=10**9)
    made = [Server({"people": Replica.open("people", path, OWNER)}, None, limits, LOOPBACK, 8470) for _ in range(count)]
    for one in made:
        one.elsewhere = OWNER
    clients = []
    for one in made:
        more: dict[str, Any] = {} if door is None or clients else {"beside": lambda: Listener(made[0]).open(door)}
        clients.append(TestClient(make_app(one, pages=routes(), **more), base_url=BASE))
    try:
        for client in clients:
            client.__enter__()
        yield clients
    finally:
        for client in clients:
            client.__exit__(None, None, None)


@pytest.fixture(scope="module")
def replica() -> Iterator[TestClient]:
    with replicas(1, GOLDEN / "iterative.jsonl") as (one,):
        yield one


def look(client: TestClient, question: Any, **headers: str) -> Any:
    """What a link to a question gives."""
    asked = {"sql": question} if isinstance(question, str) else {"question": json.dumps(question)}
    return client.get(ASK, params=asked, headers=headers)


def asked(rng: random.Random, domain: tacit.Domain) -> Any:
    """A question of any kind about the golden table."""
    name = rng.choice(list(domain))
    values = rng.sample([domain[name].label(i) for i in range(domain[name].bins)], 1)
    where = {name: values[0]} if domain[name].kind == "category" else {"smoker": rng.random() < 0.5}
    low = rng.randrange(0, 60, 20)
    return rng.choice(
        [
            {"count": where},
            {"count": {**where, "age": [low, low + 19]}},
            {"table": rng.sample(list(domain), rng.choice([1, 2])), "where": where},
            {"mean": "age", "where": where},
            {"fraction": {"smoker": True}, "given": where},
            {"quantile": "age", "q": rng.choice([0.1, 0.5, 0.9])},
            {"range": {"age": [low, low + 19]}},
            {"cdf": "pay"},
            SMOKERS,
            "SELECT region, COUNT(*) AS n, AVG(age) FROM data GROUP BY region ORDER BY n DESC",
        ]
    )


@pytest.mark.parametrize("mechanism", ["direct", "histogram", "iterative", "discovered", "person", "median"])
def test_a_replica_answers_what_a_read_file_does_with_the_same_bytes(mechanism: str) -> None:
    path, rng = GOLDEN / f"{mechanism}.jsonl", random.Random(7)
    session, told = tacit.read(path), 0
    kinds: list[Any] = [{"table": [name]} for name in session.domain] + [{"count": {}}]
    if mechanism not in ("discovered", "person"):
        kinds += [asked(rng, session.domain) for _ in range(15)]
    with replicas(2, path) as (first, second):
        for question in kinds:
            one, other = (client.post(ASK, json={"question": question}) for client in (first, second))
            assert one.content == other.content
            link = look(first, question)
            assert link.status_code == one.status_code
            if one.status_code == 200:
                told += 1
                assert link.content == one.content
                found = session.answer(_read(question, session.domain))
                assert {**one.json()["answer"], "kind": 0} == {**json.loads(json.dumps(found.to_dict())), "kind": 0}
            else:
                assert one.json()["error"]["code"] in ("needs_data", "invalid_query"), one.text
    assert told >= 1


def _read(question: Any, domain: tacit.Domain) -> Any:
    from tacit.serve.question import read

    return read(question, domain).ask


def test_an_answer_does_not_depend_on_what_else_is_asked(replica: TestClient) -> None:
    """In a session the second of two questions alike is a repeat: here nobody can tell which server had the first."""
    unchecked = [{"count": {"age": [low, low + 19], "smoker": True, "region": "east"}} for low in (0, 20, 40, 60)]
    others = ["SELECT COUNT(*) FROM data WHERE NOT (age BETWEEN 0 AND 19 AND smoker AND region = 'east')", SMOKERS]
    batch = [*unchecked, *others, *unchecked, *others]
    many = [replica.post(f"{ASK}_many", json={"questions": batch}).json()["answers"] for _ in range(2)]
    with replicas(1, GOLDEN / "iterative.jsonl") as (other,):
        single = [other.post(ASK, json={"question": question}).json()["answer"] for question in batch]
    assert many[0] == many[1] == single
    assert "not checked" in single[0]["note"]


def test_purchases_are_refused_with_the_address_of_the_server_that_can(replica: TestClient) -> None:
    for response in (
        replica.post(ASK, json={"question": DEAR}),
        look(replica, DEAR),
        replica.post(ASK, json={"question": SMOKERS, "within": 0.5}),
        replica.post("/v1/people/start"),
    ):
        assert response.status_code == 409, response.text
        error = response.json()["error"]
        assert (error["code"], error["nothing_spent"], error["server"]) == ("needs_data", True, OWNER)
        assert OWNER in error["message"]
    for path in ("/v1/keys", "/v1/people/audit"):
        assert replica.get(path).json()["error"]["code"] == "needs_data"
    page = replica.get("/data/people", params={"what": "cdf", "of": "4", "sql": ""})
    assert page.status_code == 200
    bought = replica.post("/data/people/start", data={"sure": "yes"}, headers={"origin": BASE})
    assert bought.status_code == 409
    assert OWNER in bought.text


def test_everybody_reads_without_a_key_and_nothing_is_kept_of_them(replica: TestClient) -> None:
    assert replica.get("/v1/whoami").json() == {"name": "anyone", "role": "reader"}
    assert replica.get("/v1/datasets").json() == {"datasets": ["people"]}
    assert replica.get("/v1/people/budget").json()["quota"] is None
    assert replica.get("/v1/people/history").json()["history"]
    assert (
        replica.post("/v1/login", json={"key": "tacit_" + "a" * 43}, headers={"origin": BASE}).json()["error"]["code"]
        == "no_keys"
    )
    assert replica.get("/", follow_redirects=False).headers["location"] == "/data/people"
    shown = replica.get("/data/people", params={"sql": SMOKERS})
    assert "307" in shown.text
    assert OWNER in shown.text
    assert "Log out" not in shown.text
    assert replica.get("/data/people/answer.csv", params={"sql": AGES}).text.startswith("age,")
    assert replica.get("/data/people/questions").status_code == 403
    assert replica.get("/data/people/history").status_code == 200


def test_the_file_is_handed_on_as_it_is(replica: TestClient) -> None:
    assert replica.get("/v1/people/published").content == (GOLDEN / "iterative.jsonl").read_bytes()


def test_what_never_changes_may_be_kept_by_every_cache(replica: TestClient) -> None:
    brief = look(replica, SMOKERS)
    assert brief.headers["cache-control"] == "public, max-age=60"
    origin = tacit.read(GOLDEN / "iterative.jsonl").origin
    assert brief.headers["content-location"] == f"?{urlencode({'sql': SMOKERS, 'ledger': origin})}"
    first = replica.get(urljoin(ASK, brief.headers["content-location"]))
    assert first.content == brief.content
    assert first.headers["etag"] == brief.headers["etag"]
    assert first.headers["cache-control"] == "public, max-age=31536000, immutable"
    again = replica.get(
        ASK, params={"sql": SMOKERS, "ledger": origin}, headers={"if-none-match": first.headers["etag"]}
    )
    assert (again.status_code, again.headers["cache-control"]) == (304, first.headers["cache-control"])
    first = brief
    again = look(replica, SMOKERS, **{"if-none-match": f'"other", W/{first.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert again.headers["cache-control"] == first.headers["cache-control"]
    assert look(replica, AGES, **{"if-none-match": first.headers["etag"]}).status_code == 200
    assert replica.head(ASK, params={"sql": SMOKERS}).headers["etag"] == first.headers["etag"]
    refused = look(replica, DEAR, **{"if-none-match": "*"})
    assert refused.status_code == 409
    assert refused.headers["cache-control"] == "no-store"


def test_what_a_later_file_may_say_better_is_kept_for_a_moment_only(replica: TestClient) -> None:
    """A hypothesis answers what nobody asked before it was published: the file says that it was not checked."""
    session = tacit.read(GOLDEN / "iterative.jsonl")
    domain, origin = session.domain, session.origin
    questions: list[Any] = [
        {"count": {"smoker": smoker, "region": region}}
        for smoker in (True, False)
        for region in ("north", "south", "east")
    ]
    questions += [{"table": ["age", "smoker"]}, {"table": ["age"]}, {"mean": "age", "where": {"smoker": True}}]
    seen = set()
    for question in questions:
        found = look(replica, question)
        checked = "not checked" not in found.json()["answer"].get("note", "")
        assert found.headers["cache-control"] == "public, max-age=60"
        assert ("content-location" in found.headers) is checked, question
        bound = replica.get(ASK, params={**found.request.url.params, "ledger": origin})
        assert bound.content == found.content
        assert ("immutable" in bound.headers["cache-control"]) is checked, question
        assert bound.headers["cache-control"].startswith("public, max-age=")
        seen.add((_read(question, domain).__class__.__name__, checked))
    assert {checked for _, checked in seen} == {True, False}


def test_another_ledger_under_the_same_name_is_another_answer_to_caches(tmp_path: Path) -> None:
    """The same terms, rows and question: only the ledger is another one."""
    paths = [tmp_path / "first.jsonl", tmp_path / "second.jsonl"]
    for path in paths:
        frame = pd.DataFrame({"smoker": [True, False] * 50})
        with tacit.open(
            data=frame, domain={"smoker": tacit.boolean()}, budget=tacit.Budget(epsilon=1, delta=1e-9),
            ledger=path.with_suffix(".tacit"), anchor=tmp_path / "anchor", mechanism="direct",
        ) as session:  # fmt: skip
            session.ask(SMOKERS)
            tacit.publish(session, path)
    everybody = "SELECT COUNT(*) FROM data"  # exact, and the same in both
    tags = list[set[str]]()
    for path in paths:
        with replicas(1, path) as (one,):
            served = [look(one, question) for question in (SMOKERS, everybody)]
            tags.append({found.headers["etag"] for found in served})
            assert "immutable" not in served[0].headers["cache-control"]
            lasting = urljoin(ASK, served[0].headers["content-location"])
            assert "immutable" in one.get(lasting).headers["cache-control"]
    assert not tags[0] & tags[1]
    with replicas(1, paths[0]) as (one,):
        other = one.get(lasting, headers={"if-none-match": "*"})  # which is of the second ledger
        assert other.status_code == 404
        assert other.json()["error"]["code"] == "other_ledger"
        assert other.headers["cache-control"] == "no-store"


def test_a_long_address_is_not_repeated(replica: TestClient) -> None:
    found = look(replica, f"{SMOKERS} {' ' * 2_000}")
    assert (found.status_code, found.headers["cache-control"]) == (200, "public, max-age=60")
    assert "content-location" not in found.headers


def test_a_link_takes_one_question(replica: TestClient) -> None:
    assert look(replica, SMOKERS).status_code == 200
    assert replica.get(ASK, params={"ledger": "0" * 64}).json()["error"]["code"] == "bad_parameter"
    long = {"sql": f"{SMOKERS} {' ' * 10_000}"}
    for params in ({}, {"sql": SMOKERS, "question": "{}"}, {"q": SMOKERS}, {"sql": [SMOKERS, SMOKERS]}, long):
        response = replica.get(ASK, params=params)
        assert (response.status_code, response.json()["error"]["code"]) == (400, "bad_parameter")
    assert look(replica, "SELECT").json()["error"]["code"] == "invalid_query"
    assert replica.get(ASK, params={"question": "{"}).json()["error"]["code"] == "bad_json"


def test_with_the_data_a_link_never_spends(served: Served) -> None:
    question = "SELECT COUNT(*) FROM data WHERE sex = 'F'"
    before = served.people.session.spent
    refused = look(served.ana, question)
    assert served.people.session.spent == before
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "would_spend")
    value = served.ask(question)["value"]
    found = look(served.ana, question)
    assert found.json()["answer"]["value"] == value
    assert found.headers["cache-control"] == "no-store"  # it is for this key
    assert "content-location" not in found.headers
    assert look(served.ana, question, **{"if-none-match": found.headers["etag"]}).status_code == 304
    for ledger, status in ((served.people.session.origin, 200), ("0" * 64, 404)):
        assert served.ana.get(ASK, params={"sql": question, "ledger": ledger}).status_code == status


def test_the_clients_of_postgresql_need_no_password() -> None:
    door = socket.create_server(("127.0.0.1", 0))
    with (
        replicas(1, GOLDEN / "iterative.jsonl", door) as (client,),
        psycopg.connect(host="127.0.0.1", port=door.getsockname()[1], user="whoever", autocommit=True) as wire,
    ):
        rows = wire.execute("SELECT age, COUNT(*) FROM people GROUP BY age").fetchall()
        assert [row[1] for row in rows] == [row[1] for row in look(client, AGES).json()["answer"]["rows"]]
        assert wire.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall() == [("people",)]
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState) as refused:
            wire.execute("SELECT STUMP(age, smoker) FROM people")
        assert OWNER in str(refused.value.diag.message_hint)


_ALONE = """
import json, sys, threading, urllib.request
from tacit.serve import serve_published

def ask(address):
    def get(path):
        with urllib.request.urlopen(address + path) as response:
            return response.read()
    get("/v1/people/ask?sql=SELECT+COUNT(*)+FROM+data+WHERE+smoker")
    get("/v1/people/ask?sql=SELECT+age,COUNT(*)+FROM+data+GROUP+BY+age")
    get("/data/people?sql=SELECT+AVG(age)+FROM+data")
    print(json.dumps(sorted(sys.modules)), flush=True)

serve_published([sys.argv[1]], port=0, ready=lambda address: threading.Thread(target=ask, args=[address]).start())
"""


def test_no_engine_no_sqlite_and_no_sampler_is_in_the_process(tmp_path: Path) -> None:
    path = tmp_path / "people.json"
    path.write_bytes((GOLDEN / "iterative.jsonl").read_bytes())
    process = subprocess.Popen([sys.executable, "-c", _ALONE, path], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        loaded = set(json.loads(process.stdout.readline()))
    finally:
        process.terminate()
        process.communicate()
    assert "tacit.serve.served_data" in loaded
    assert not loaded & {"duckdb", "sqlite3", "_sqlite3", "opendp", "psycopg", "pyspark", "numba", "pyarrow", "pandas"}
    ours = {"curator", "gate", "ledger", "noise", "records", "cells"}
    assert not loaded & {f"tacit.trusted.{name}" for name in ours}
    assert not loaded & {"tacit.owner", "tacit.load"}
    assert not loaded & {f"tacit.exact.{name}" for name in ("opendp", "table", "rejection")}
    assert not loaded & {"tacit.serve.keys", "tacit.serve.dataset", "tacit.serve.audit", "tacit.config"}
    assert not {name for name in loaded if name.startswith(("tacit.store.", "tacit.release.samplers"))} - {
        "tacit.store.chain"
    }
    assert list(tmp_path.iterdir()) == [path]  # nothing was written beside it


def test_the_command_says_what_does_not_go_together(tmp_path: Path) -> None:
    file = tmp_path / "people.json"
    file.write_text("{}")
    for words, said in (
        (["--published"], "needs the files"),
        (["--published", str(file), "--keys", "k"], "for everybody"),
        ([str(file), "--owner-url", OWNER], "is for --published"),
        (["--published", str(file), "--owner-url", "owner"], "begins with http"),
        (["--published", str(file), str(file)], "a name of its own"),
        (["--published", str(file)], "not published knowledge"),
        (["--published", str(tmp_path / "A b.json")], "small letters"),
    ):
        result = CliRunner().invoke(main, ["serve", *words, "--port", "0"])
        assert result.exit_code != 0
        assert said in " ".join(result.output.split()), result.output


@pytest.mark.parametrize("named", [True, False], ids=["an owner's address", "none"])
def test_the_command_says_at_the_start_that_refusals_name_nobody(monkeypatch: pytest.MonkeyPatch, named: bool) -> None:
    monkeypatch.setattr("tacit.serve.serve_published", lambda *_, ready, **__: ready("http://127.0.0.1:1"))
    owner = ["--owner-url", OWNER] if named else []
    result = CliRunner().invoke(main, ["serve", "--published", "people.json", *owner])
    assert result.stdout == ""
    first, *more = result.stderr.splitlines()
    assert first.startswith("Serving at http://127.0.0.1:1")
    assert ["--owner-url" in line for line in more] == [] if named else [True]


def test_a_client_needs_no_key_and_hears_where_to_buy(replica: TestClient) -> None:
    there = tacit.read(GOLDEN / "iterative.jsonl")
    with bridge(replica) as way, tacit.connect(way.url) as client:
        for question in (SMOKERS, AGES):
            assert client.ask(question).to_dict() == there.ask(question).to_dict()
        assert client.status() == there.status()
        assert list(client.history) == list(there.history)
        with pytest.raises(tacit.NeedsData, match=OWNER):
            client.cdf("pay", share=0.01)
