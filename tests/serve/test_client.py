"""The client: keys from where they are kept, errors as a session's, and retries that never pay twice."""

from __future__ import annotations

import json
import os
import select
import socket
import ssl
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bridge import Bridge, Fault, Reply, bridge
from hypothesis import given
from hypothesis import strategies as st
from serving import Serve, Served, running

import tacit
from support import until
from tacit import Client, Loss
from tacit.client.client import parts_of
from tacit.client.message import LOST, loss
from tacit.client.transport import TRIES, Address, Transport, find_key
from tacit.model.budget import ATOMS, MEASURES
from tacit.serve import make_key
from tacit.serve.admission import Limits

WOMEN = "SELECT COUNT(*) FROM data WHERE sex = 'F'"
HERE = "http://127.0.0.1:8470"


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Bridge]]:
    limits = Limits(rate=1e9, burst=10**9)
    with (
        running(tmp_path_factory.mktemp("there"), limits=limits, questions=2_000) as served,
        bridge(served) as way,
    ):
        yield served, way


@pytest.fixture
def way(there: tuple[Served, Bridge]) -> Bridge:
    there[1].faults.clear()
    there[1].asked.clear()
    return there[1]


@pytest.fixture
def served(there: tuple[Served, Bridge]) -> Served:
    return there[0]


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def client(served: Served, way: Bridge, waits: list[float]) -> Iterator[Client]:
    """One that notes how long it would wait, and does not."""
    with Client(Transport(Address.of(way.url), served.keys["ana"], wait=waits.append)) as made:
        way.asked.clear()
        yield made


# -- retries ----------------------------------------------------------------------------------------------------------


def dropped(reply: Reply) -> bytes:
    """The application has answered and charged, and nothing of it arrives."""
    return b""


def cut(reply: Reply) -> bytes:
    """The connection breaks in the middle of the answer."""
    return reply.whole()[:-20]


def in_the_head(reply: Reply) -> bytes:
    return reply.whole()[:25]


def busy(status: int, later: str = "") -> Fault:
    def respond(reply: Reply) -> Reply:
        headers = {"content-length": "2", **({"retry-after": later} if later else {})}
        return Reply(reply.method, reply.path, status, headers, b"{}")

    return respond


@pytest.mark.parametrize("fault", [dropped, cut, in_the_head])
def test_an_answer_that_is_lost_after_the_charge_is_paid_once(
    served: Served, way: Bridge, client: Client, fault: Fault
) -> None:
    question = f"{WOMEN} AND age >= {[dropped, cut, in_the_head].index(fault) * 10 + 10}"
    before, bought = served.people.session.spent, len(served.people.session.history)
    way.faults[:] = [fault]
    answer = client.ask(question)
    charged = served.people.session.spent - before
    assert charged.atoms > 0
    assert len(served.people.session.history) == bought + 1
    assert way.asked == ["POST /v1/people/ask"] * 2
    told = served.people.session.ask(question)
    assert (answer.value, answer.error, answer.receipt) == (told.value, told.error, told.receipt)  # type: ignore[union-attr]
    assert (answer.cost.atoms, answer.source, answer.note) == (0, "repeat", LOST)  # nobody knows that it was free
    assert client.ask(question).note == ""
    assert served.people.session.spent - before == charged


def test_the_same_for_all_that_costs_more_than_once_could(served: Served, way: Bridge, client: Client) -> None:
    """Sharper answers, releases of ranges and batches: whatever is lost is known when it is asked for again."""
    session = served.people.session
    for ask in (
        lambda: client.ask(f"{WOMEN} AND NOT active", within=30),
        lambda: client.cdf("age", share=0.1),
        lambda: client.table("sex", "active", where="pay < 10"),
        lambda: client.ask_many([f"{WOMEN} AND pay < 20", tacit.count(sex="M", active=True)]),
    ):
        way.faults[:] = [dropped, cut]
        before = session.spent
        ask()  # type: ignore[no-untyped-call]
        after = session.spent
        assert after.atoms > before.atoms
        ask()  # type: ignore[no-untyped-call]
        assert session.spent == after


def test_a_busy_server_is_asked_again_when_it_says(way: Bridge, client: Client, waits: list[float]) -> None:
    way.faults[:] = [busy(429, "3"), busy(503), busy(503, "9999"), busy(502)]
    assert client.ask(WOMEN).value == client.ask(WOMEN).value
    assert waits == [3.0, 0.5, 30.0, 5.0]
    way.faults[:] = [busy(503, "1")] * TRIES
    with pytest.raises(tacit.ServerError, match=r"status 503, and not as a Tacit server does\.$"):
        client.ask(WOMEN)
    assert len(waits) == 4 + TRIES - 1


def test_a_refusal_that_may_have_been_paid_for_is_asked_again_and_says_so(
    served: Served, way: Bridge, client: Client
) -> None:
    """The audit log could not be written, or a proxy lost the answer: what was bought is kept."""
    body = {"error": {"code": "audit", "message": "It is kept: ask again later.", "nothing_spent": False}}

    def unnoted(reply: Reply) -> Reply:
        text = json.dumps(body).encode()
        return Reply(reply.method, reply.path, 503, {"content-length": str(len(text)), "retry-after": "30"}, text)

    for fault, ages in ((unnoted, "30"), (busy(504), "40")):
        before = served.people.session.spent
        way.faults[:] = [fault]
        answer = client.ask(f"SELECT COUNT(*) FROM data WHERE active AND age < {ages} AND pay < 20")
        assert (answer.note, answer.cost.atoms) == (LOST, 0)
        assert served.people.session.spent.atoms > before.atoms
    way.faults[:] = [unnoted] * TRIES
    with pytest.raises(tacit.ServerError, match=r"ask again later\.$") as refused:
        client.ask(WOMEN)
    assert (refused.value.code, refused.value.nothing_spent) == ("audit", False)


def test_a_part_of_a_batch_that_was_paid_for_is_not_forgotten(
    served: Served, way: Bridge, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.client.client.MAX_BATCH", 1)
    text = json.dumps({"error": {"code": "quota", "message": "Too much.", "nothing_spent": True}}).encode()

    def refuse(reply: Reply) -> Reply:
        return Reply(reply.method, reply.path, 403, {"content-length": str(len(text))}, text)

    way.faults[:] = [lambda reply: reply, refuse]
    with pytest.raises(tacit.ServerError, match=r"Too much\. What was paid for before that stays spent\.$"):
        client.ask_many(["SELECT COUNT(*) FROM data WHERE NOT active AND pay < 20 AND age >= 50", WOMEN])


def test_whoever_gives_up_says_that_something_may_be_spent(served: Served, way: Bridge, client: Client) -> None:
    question, before = f"{WOMEN} AND age < 40 AND pay < 20", served.people.session.spent
    way.faults[:] = [dropped] * TRIES
    with pytest.raises(tacit.ServerError, match="may have been paid for: ask again") as lost:
        client.ask(question)
    assert (lost.value.code, lost.value.nothing_spent) == ("unreachable", False)
    after = served.people.session.spent
    assert after.atoms > before.atoms
    assert client.ask(question).cost.atoms == 0
    assert served.people.session.spent == after


def test_where_nobody_listens_nothing_was_spent(waits: list[float]) -> None:
    with socket.socket() as taken:  # held, so that nobody else begins to listen there
        taken.bind(("127.0.0.1", 0))
        address = Address.of(f"http://127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(tacit.ServerError, match=r"nobody listens there\. Nothing was spent\.$"):
            Client(Transport(address, "tacit_x", wait=waits.append), "people")
    assert waits == [0.1, 0.5, 2.0, 5.0]


def test_a_silent_server_takes_too_long(waits: list[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = Address.of(f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(tacit.ServerError, match="it took too long"):
            Client(Transport(address, "tacit_x", seconds=0.01, wait=waits.append), "people")


def test_a_connection_that_the_server_closed_is_not_used_again(way: Bridge, client: Client) -> None:
    """An idle one that has ended is replaced, and the answer does not say that anything was lost."""
    client.ask(WOMEN)
    way.faults[:] = [Reply.whole]  # and the connection ends
    client.ask(WOMEN)
    (idle,) = client._transport._idle
    until(lambda: select.select([idle.sock], [], [], 0)[0])
    assert (client.ask(WOMEN).note, len(way.asked)) == ("", 3)


# -- what it is like --------------------------------------------------------------------------------------------------


def test_one_request_for_a_question_and_one_for_a_batch(
    way: Bridge, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.ask(WOMEN)
    client.ask_many([WOMEN, tacit.count(sex="F")] * 10)
    assert way.asked == ["POST /v1/people/ask", "POST /v1/people/ask_many"]
    way.asked.clear()
    monkeypatch.setattr("tacit.client.client.MAX_BATCH", 10)
    answers = client.ask_many([WOMEN, tacit.count(sex="F")] * 6)
    assert (len(answers), len({answer.value for answer in answers})) == (12, 1)
    assert way.asked == ["POST /v1/people/ask_many"] * 2
    with pytest.raises(tacit.InvalidQuery, match="unknown column"):  # before the first part is sent
        client.ask_many([WOMEN] * 11 + ["SELECT COUNT(*) FROM data WHERE agee < 3"])
    assert len(way.asked) == 2


def test_long_questions_are_sent_in_parts_that_a_server_takes() -> None:
    parts = list(parts_of([b"x" * 10_000] * 150))
    assert sum(map(len, parts)) == 150
    assert len(parts) == 2
    assert all(len(b",".join(part)) < 2**20 - 20 for part in parts)
    assert [len(part) for part in parts_of([b"x"] * 2_500)] == [1_000, 1_000, 500]


def test_what_is_published_is_the_same_file(served: Served, client: Client, tmp_path: Path) -> None:
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    assert client.publish(one) == served.people.session.publish(other)
    assert one.read_bytes() == other.read_bytes()
    with pytest.raises(tacit.ConfigError, match="exists already"):
        client.publish(one)
    client.publish(one, overwrite=True)
    assert tacit.verify(one).spent == client.spent


def test_half_a_file_is_never_left(served: Served, way: Bridge, client: Client, tmp_path: Path) -> None:
    path = tmp_path / "public.jsonl"
    way.faults[:] = [cut] * TRIES
    with pytest.raises(tacit.ServerError, match="gave no answer"):
        client.publish(path)
    assert list(tmp_path.iterdir()) == []
    way.faults[:] = [cut, dropped]
    client.publish(path)
    tacit.verify(path)


@pytest.mark.parametrize(
    ("who", "ask", "kind", "code"),
    [
        ("rea", lambda at: at.ask(f"{WOMEN} AND age < 20 AND pay < 10"), tacit.WouldSpend, "would_spend"),
        ("mia", lambda at: at.ask(WOMEN, within=4), tacit.ServerError, "quota"),
        ("ana", lambda at: at.start(), tacit.ServerError, "owner_only"),
        ("ana", lambda at: at.ask("SELECT COUNT(*) FROM data " + "x" * 10_001), tacit.InvalidQuery, "bad_json"),
    ],
)
def test_what_only_a_server_refuses(
    served: Served, way: Bridge, who: str, ask: Any, kind: type[tacit.TacitError], code: str
) -> None:
    with tacit.connect(way.url, served.keys[who]) as at, pytest.raises(kind) as refused:
        ask(at)
    assert (type(refused.value), refused.value.code, refused.value.nothing_spent) == (kind, code, True)


def test_a_wrong_key_and_a_wrong_name(served: Served, way: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(tacit.ServerError) as refused:
        tacit.connect(way.url, "tacit_nobody")
    assert refused.value.code == "unauthorized"
    with pytest.raises(tacit.ServerError, match=r"The data sets are people\."):
        tacit.connect(way.url, served.keys["ana"], data="poeple")
    monkeypatch.setattr(served.state, "datasets", {**served.state.datasets, "wards": served.people})
    with pytest.raises(tacit.ConfigError, match=r'data="…": the server has people, wards\.'):
        tacit.connect(way.url, served.keys["ana"])
    assert tacit.connect(way.url, served.keys["ana"], data="wards").rows == 301


def test_a_session_that_is_not_started(serve: Serve) -> None:
    served = serve(mechanism="histogram", start=False)
    with bridge(served) as way, tacit.connect(way.url, served.keys["ana"]) as client:
        with pytest.raises(tacit.NotStarted, match="is not started"):
            client.ask(WOMEN)
        assert not client.started
        with tacit.connect(way.url, served.keys["olga"]) as owner:
            assert "bought for" in str(owner.start())
            assert owner.base == served.people.session.base
        assert client.started
        assert client.ask(WOMEN).source == "hypothesis"


def test_a_default_quota_where_nothing_was_left_is_used_up(serve: Serve) -> None:
    """A histogram takes the whole budget: what an analyst who comes later has of what is left is nothing."""
    served = serve(mechanism="histogram", start=False)
    assert served.olga.post("/v1/people/start").status_code == 200
    assert not served.people.session.left.atoms
    key = make_key(served.folder / "tacit.keys", "late", "analyst")
    with bridge(served) as way, tacit.connect(way.url, key) as client:
        quota = client.status().quota
        assert quota is not None
        assert (quota.of.atoms, quota.used.atoms) == (0, 0)
        assert "of your quota, 100 %" in str(client.status())
        assert client.ask(WOMEN).source == "hypothesis"


@given(st.integers(0, 10**15), st.sampled_from(MEASURES))
def test_json_tells_a_loss_exactly(atoms: int, measure: Any) -> None:
    """Budgets have at most 1,000 units: so far no two amounts look alike."""
    whole = Loss(measure, atoms)
    assert loss(whole.to_dict()) == whole
    assert atoms <= 1000 * ATOMS


def test_a_client_loads_no_engine_and_no_sampler(served: Served, way: Bridge) -> None:
    program = f"""
import sys, tacit
client = tacit.connect({way.url!r})
client.ask("{WOMEN}"); client.ask_many(["{WOMEN}"]); client.status(); client.history
client.ask("SELECT sex, COUNT(*) FROM data GROUP BY sex")
print(*sorted(name for name in sys.modules if name.split(".")[0] not in sys.stdlib_module_names or name == "sqlite3"))
"""
    env = {**os.environ, "TACIT_KEY": served.keys["ana"]}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "tacit.client.client" in loaded
    heavy = ("opendp", "duckdb", "scipy", "numba", "sqlite3", "sqlglot", "starlette", "jinja2", "rich", "click")
    rooms = ("session", "release", "trusted", "exact", "load", "public", "serve", "opening", "config")
    assert not loaded & {*heavy, *(f"tacit.{room}" for room in rooms)}


# -- keys and addresses -----------------------------------------------------------------------------------------------


def test_a_key_comes_from_where_it_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "my.key"
    file.write_text("tacit_of-file\n")
    file.chmod(0o600)
    ring = types.ModuleType("keyring")
    ring.get_password = lambda service, user: f"tacit_{service}_{user[-4:]}"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "keyring", ring)
    assert find_key(None, HERE) == "tacit_tacit_8470"
    monkeypatch.setenv("TACIT_KEY_FILE", str(file))
    assert find_key(None, HERE) == "tacit_of-file"
    monkeypatch.setenv("TACIT_KEY", "tacit_of-environment")
    assert find_key(None, HERE) == "tacit_of-environment"
    assert find_key(file, HERE) == "tacit_of-file"
    assert find_key(" tacit_given ", HERE) == "tacit_given"


def test_a_keyring_is_not_needed(served: Served, way: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TACIT_KEY", "TACIT_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    broken = types.ModuleType("keyring")
    monkeypatch.setitem(sys.modules, "keyring", broken)  # it has no get_password
    assert find_key(None, HERE) is None
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(tacit.ConfigError, match="set TACIT_KEY, or name a file in TACIT_KEY_FILE; or `keyring set"):
        tacit.connect(way.url)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "my.key"
    file.write_text("tacit_secret")
    file.chmod(mode)
    with pytest.raises(tacit.ConfigError, match="others can read the key file") as refused:
        find_key(file, HERE)
    assert "secret" not in str(refused.value)


def test_what_is_no_key_is_refused_and_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "my.key"
    file.write_text("hunter2")
    file.chmod(0o600)
    for given_key in (file, "hunter2", "tacit_a\r\nX-Injected: b", "tacit_é"):
        with pytest.raises(tacit.ConfigError, match="a key begins with tacit_") as refused:
            find_key(given_key, HERE)
        assert "hunter2" not in str(refused.value)
    for wrong in (tmp_path, tmp_path / "none", Path("/dev/null")):
        with pytest.raises(tacit.ConfigError, match="the key file"):
            find_key(wrong, HERE)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://tacit.example.org", "https://tacit.example.org"),
        ("https://tacit.example.org:8470/stat/", "https://tacit.example.org:8470/stat"),
        ("http://localhost:8470", "http://localhost:8470"),
        ("http://[::1]:8470", "http://[::1]:8470"),
        ("HTTP://127.0.0.1", "http://127.0.0.1"),
    ],
)
def test_an_address_is_read(url: str, address: str) -> None:
    assert str(Address.of(url)) == address


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://tacit.example.org", "the key in the clear"),
        ("http://127.0.0.1.example.org", "the key in the clear"),
        ("tacit.example.org", "a server's address is like"),
        ("ftp://tacit.example.org", "a server's address is like"),
        ("https://tacit.example.org:99999", "a server's address is like"),
        ("https://ana:tacit_x@tacit.example.org", "no user"),
        ("https://tacit.example.org/?data=people", "no user"),
        (8470, "a server's address is like"),
    ],
)
def test_an_address_that_is_none_is_refused(url: Any, words: str) -> None:
    with pytest.raises(tacit.ConfigError, match=words):
        Address.of(url)


def test_a_certificate_is_checked(served: Served, tmp_path: Path) -> None:
    """Before the key is sent. One's own is trusted by a context, for the name that it is made out to."""
    cert, private = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made += ["-days", "2", "-subj", "/CN=here", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*made, "-keyout", str(private), "-out", str(cert)], check=True, capture_output=True)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(cert, private)
    with bridge(served, server) as way:
        with pytest.raises(tacit.ServerError, match="its certificate is not trusted") as refused:
            tacit.connect(way.url, served.keys["ana"])
        assert (refused.value.nothing_spent, way.asked) == (True, [])
        ours = ssl.create_default_context(cafile=cert)
        with tacit.connect(way.url, served.keys["ana"], context=ours) as client:
            assert client.ask_many([WOMEN])[0].value == client.ask(WOMEN).value
        with pytest.raises(tacit.ServerError, match="its certificate is not trusted"):
            tacit.connect(way.url.replace("127.0.0.1", "localhost"), served.keys["ana"], context=ours)


def test_plain_http_to_another_machine_has_to_be_said() -> None:
    assert Address.of("http://tacit.example.org", plain_http=True).port == 80


# -- questions as weights ---------------------------------------------------------------------------------------------

SEX = {"scope": ["sex"], "shape": [2], "unit": 1, "weights": "80"}


@pytest.mark.parametrize(
    ("factors", "status", "words"),
    [
        ([SEX | {"scope": ["sxe"]}], 422, "made for another domain"),
        ([SEX | {"shape": [3]}], 422, "made for another domain"),
        ([SEX, SEX], 422, "made for another domain"),
        ([SEX | {"weights": "8"}], 422, "do not have its shape"),
        ([SEX | {"weights": "zz"}], 422, "do not have its shape"),
        ([SEX | {"weights": [0, 1]}], 422, "do not have its shape"),
        ([SEX | {"unit": 2**20, "weights": [0, 2**21]}], 422, "between 0 and 1"),
        ([SEX | {"unit": 2**20, "weights": "ab"}], 422, "do not have its shape"),
        ([SEX | {"unit": 7, "weights": [0, 7]}], 422, "whole steps of its grid"),
        ([SEX | {"unit": 2**20, "weights": [0.5, 1]}], 400, "Expected"),
        ([SEX | {"more": 1}], 400, "unknown field"),
        ([SEX] * 257, 400, "length"),
    ],
)
def test_weights_that_are_none_are_refused(served: Served, factors: list[Any], status: int, words: str) -> None:
    before = served.people.session.spent
    body = {"question": {"count": [{"complement": False, "factors": factors}]}}
    refused = served.ana.post("/v1/people/ask", json=body)
    assert (refused.status_code, refused.json()["error"]["nothing_spent"]) == (status, True), refused.text
    assert words in refused.json()["error"]["message"]
    assert served.people.session.spent == before


def test_weights_are_the_question_that_they_mean(served: Served, client: Client) -> None:
    """However it is written: one key, one charge; and the audit log says it in words."""
    first = client.ask(f"{WOMEN} AND age BETWEEN 50 AND 69")
    again = client.ask(tacit.count(age=(50, 69), sex="F"))
    assert (again.receipt, again.cost.atoms) == (first.receipt, 0)
    assert served.people.audit.last(1)[0]["asked"] == "age in 50–59 … 60–69 and sex = F"
    client.mean("age", where=tacit.count(sex="F"))
    assert served.people.audit.last(1)[0]["asked"] == "the mean of age where sex = F"
