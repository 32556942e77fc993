"""One writer for each ledger: shared commits, a bounded queue, one server at a time, and nothing lost by a kill."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from serving import Serve, write_config
from starlette.testclient import TestClient

import tacit
from support import PATIENCE, until
from tacit.config import read_config
from tacit.errors import ConfigError, InvalidQuery, LedgerError
from tacit.model.ask import Count
from tacit.model.query import Query
from tacit.serve import make_key, run
from tacit.serve.app import make_app
from tacit.serve.dataset import Dataset
from tacit.serve.keys import KeyRing
from tacit.serve.refusal import WENT_WRONG, Refusal
from tacit.serve.server import Server
from tacit.serve.turns import SLICE, SLICE_WORK, Steps, Ticket
from tacit.serve.writer import Writer

YES, NO = Count(Query.constant(everyone=True)), Count(Query.constant(everyone=False))


class Said(int):
    """An answer that cost an atom."""

    facts = SimpleNamespace(cost=SimpleNamespace(atoms=1))


class Slow:
    """Answers with the number of the batch; refuses batches that hold a NO together with others."""

    def __init__(self) -> None:
        self.go, self.batches, self.times = threading.Event(), list[int](), list[datetime]()
        self.entries = 0

    def bought(self, after: int) -> list[tuple[str | None, int]]:
        return []

    def asked_at(self, arrived: datetime) -> AbstractContextManager[None]:
        self.times.append(arrived)
        return nullcontext()

    def answer_many(self, questions: Sequence[Any]) -> list[Any]:
        assert self.go.wait(PATIENCE)
        self.batches.append(len(questions))
        if NO in questions:
            raise InvalidQuery("not this one.")
        return [Said(len(self.batches))] * len(questions)


def ticket(key: int = 0, second: int = 0, work: int = 1, counts: int = 1) -> Ticket:
    return Ticket(key, (work,) * counts, datetime(2031, 1, 1, 0, 0, second, tzinfo=UTC))


@pytest.fixture
def slow() -> Iterator[Slow]:
    session = Slow()
    yield session
    session.go.set()


def test_what_waits_together_shares_a_commit(slow: Slow) -> None:
    writer = Writer(slow, "test")
    first = writer.count([YES])
    until(first.running)
    rest = [writer.count([YES] * number, ticket=ticket(number % 2)) for number in (1, 2, 3)]
    slow.go.set()
    assert first.result(PATIENCE) == [1]
    assert [future.result(PATIENCE) for future in rest] == [[2], [2, 2], [2, 2, 2]]
    writer.close()
    assert slow.batches == [1, 6]


def test_one_bad_question_does_not_spoil_the_others(slow: Slow) -> None:
    writer = Writer(slow, "test")
    first = writer.do(lambda: slow.go.wait(PATIENCE))
    until(first.running)
    good, bad, also_good = (writer.count([query]) for query in (YES, NO, YES))
    slow.go.set()
    with pytest.raises(Refusal) as refused:
        bad.result(PATIENCE)
    assert (refused.value.status, refused.value.sentence) == (422, "not this one.")
    assert len(good.result(PATIENCE)) == len(also_good.result(PATIENCE)) == 1
    writer.close()


def test_the_queue_is_bounded_and_closing_finishes_it(slow: Slow) -> None:
    writer = Writer(slow, "test", most_waiting=3)
    first = writer.count([YES])
    until(first.running)
    waiting = [writer.count([YES], ticket=ticket()) for _ in range(3)]
    with pytest.raises(Refusal) as full:
        writer.count([YES])
    assert (full.value.status, full.value.code, full.value.retry_after) == (503, "queue_full", 1)
    gone = waiting.pop()
    assert gone.cancel()  # a client that went away while waiting
    with ThreadPoolExecutor() as pool:
        closing = pool.submit(writer.close)
        until(lambda: writer._closing)
        with pytest.raises(Refusal) as closed:
            writer.do(lambda: None)
        assert closed.value.code == "closing"
        slow.go.set()
        closing.result(PATIENCE)
    assert [future.result(0) for future in (first, *waiting)] == [[1], [2], [2]]
    assert sum(slow.batches) == 3  # what nobody waits for is not asked


def test_keys_take_turns_by_work_and_long_batches_are_sliced(slow: Slow) -> None:
    writer, done = Writer(slow, "test"), list[str]()

    def named(name: str) -> Any:
        return lambda _: done.append(name)

    def steps() -> Steps:
        for number in range(3):
            done.append(f"step {number}")
            yield SLICE_WORK
        return "all"

    held = writer.do(lambda: slow.go.wait(PATIENCE), ticket=ticket(9))
    until(held.running)
    # A greedy key asks first, and much; two others ask one question each, a second later.
    batch = writer.count([YES] * (2 * SLICE + 1), named("batch"), ticket(1, 0, 1, 2 * SLICE + 1))
    long = writer.do_in_steps(steps, named("steps"), ticket(1))
    few = [writer.count([YES], named(f"key {key}"), ticket(key, 1)) for key in (2, 3)]
    slow.go.set()
    assert len(batch.result(PATIENCE)) == 2 * SLICE + 1
    assert long.result(PATIENCE) == "all"
    assert [future.result(PATIENCE) for future in few] == [[2], [2]]
    writer.close()
    # The first slice of the greedy one came first; then both others at once, in one commit; then the rest of it.
    assert slow.batches == [SLICE, 2, SLICE, 1]
    assert done == ["key 2", "key 3", "batch", "step 0", "step 1", "step 2", "steps"]


def test_wide_questions_fill_a_slice_sooner(slow: Slow) -> None:
    slow.go.set()
    writer = Writer(slow, "test")
    assert len(writer.count([YES] * 5, ticket=ticket(1, 0, SLICE_WORK // 2, 5)).result(PATIENCE)) == 5
    writer.close()
    assert slow.batches == [2, 2, 1]


def test_a_refusal_in_a_later_slice_says_that_something_was_paid(slow: Slow) -> None:
    slow.go.set()
    writer, noted = Writer(slow, "test"), list[Any]()
    with pytest.raises(Refusal) as refused:
        writer.count([YES] * SLICE + [NO], noted.append, ticket(1)).result(PATIENCE)
    assert (refused.value.code, refused.value.nothing_spent) == ("invalid_query", False)
    assert noted[0].atoms == SLICE
    writer.close()


def test_what_is_published_as_time_is_when_a_request_arrived(slow: Slow) -> None:
    """However late the writer is, each request has its own second: those of two seconds do not share a commit."""
    writer = Writer(slow, "test")
    first = writer.count([YES], ticket=ticket(0, 5))
    until(first.running)
    rest = [writer.count([YES], ticket=ticket(key, second)) for key, second in ((1, 7), (2, 6), (3, 7))]
    slow.go.set()
    assert sorted(future.result(PATIENCE)[0] for future in rest) == [2, 2, 3]
    writer.close()
    assert [asked.second for asked in slow.times] == [5, 7, 6]


def test_what_cannot_be_noted_is_not_shown(slow: Slow) -> None:
    slow.go.set()
    synced = []

    def fail(_: Any) -> None:
        raise OSError("the disk is full")

    writer = Writer(slow, "test", sync=lambda: synced.append(1))
    with pytest.raises(Refusal) as refused:
        writer.count([YES], fail).result(PATIENCE)
    assert (refused.value.status, refused.value.sentence) == (500, WENT_WRONG)
    assert writer.count([YES]).result(PATIENCE) == [2]  # and the writer lives on
    writer.close()
    assert len(synced) == 2


def test_a_client_that_leaves_loses_nothing(serve: Serve) -> None:
    served = serve()
    people, question = served.people, tacit.count(sex="F").bind(served.people.session.domain)
    started, go = threading.Event(), threading.Event()

    def hold() -> None:
        started.set()
        assert go.wait(PATIENCE)

    blocked = people.writer.do(hold)
    assert started.wait(PATIENCE)
    left = people.writer.count([Count(question)])
    go.set()
    blocked.result(PATIENCE)
    answer = left.result(PATIENCE)[0]  # computed and stored although the client is gone
    again = served.ask({"count": {"sex": "F"}})
    assert (again["value"], again["entry"], again["cost"]) == (answer.value, answer.receipt.entry, {"gdp": 0.0})


def test_a_second_server_is_refused_and_python_is_not(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    make_key(tmp_path / "tacit.keys", "ana", "analyst")
    ring = KeyRing(tmp_path / "tacit.keys")
    first = Dataset.open("people", config, ring)
    with pytest.raises(LedgerError, match="one server at a time"):
        Dataset.open("people", config, ring)
    (tmp_path / "link").symlink_to(tmp_path / "people.tacit")
    (tmp_path / "alias.toml").write_text(config.read_text().replace('"people.tacit"', '"link"'))
    with pytest.raises(LedgerError, match="one server at a time"):
        Dataset.open("alias", tmp_path / "alias.toml", ring)
    with read_config(config).open() as session:
        session.ask(tacit.count(sex="F"))
        assert session.spent == first.session.spent
    first.close()
    Dataset.open("people", config, ring).close()
    ring.close()


def test_several_data_sets_have_budgets_of_their_own(tmp_path: Path) -> None:
    secret = make_key(tmp_path / "tacit.keys", "ana", "analyst")
    ring = KeyRing(tmp_path / "tacit.keys")
    names = ("people", "others")
    state = Server({name: Dataset.open(name, write_config(tmp_path, name), ring) for name in names}, ring)
    with TestClient(make_app(state), headers={"authorization": f"Bearer {secret}"}) as client:
        assert client.get("/v1/datasets").json() == {"datasets": ["others", "people"]}
        client.post("/v1/people/ask", json={"question": {"count": {"sex": "F"}}})
        spent = {name: client.get(f"/v1/{name}/budget").json()["spent"]["gdp"] for name in names}
    assert spent["people"] > 0
    assert spent["others"] == 0


START = """
import sys
from tacit.errors import TacitError
from tacit.serve import serve
try:
    serve([sys.argv[1]], port=0, ready=lambda address: print(address, flush=True))
except TacitError as error:
    print("refused:", error.sentence, flush=True)
"""


class Process:
    """A server of its own on a free port."""

    def __init__(self, config: Path) -> None:
        command = [sys.executable, "-c", START, str(config)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline().strip()

    def stop(self, how: int) -> int:
        self.process.send_signal(how)
        return self.process.wait(PATIENCE)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Any]:
    started: list[Process] = []

    def start() -> Process:
        started.append(Process(tmp_path / "people.toml"))
        return started[-1]

    yield start
    for process in started:
        process.process.kill()
        process.process.wait(PATIENCE)


def test_kill_and_restart_lose_nothing(tmp_path: Path, processes: Any) -> None:
    write_config(tmp_path, questions=50)
    key = make_key(tmp_path / "tacit.keys", "ana", "analyst")
    headers = {"authorization": f"Bearer {key}"}
    first = processes()
    assert first.said.startswith("http://127.0.0.1:")
    body = {"question": {"count": {"sex": "F"}}}
    told = httpx2.post(f"{first.said}/v1/people/ask", json=body, headers=headers, timeout=PATIENCE).json()["answer"]
    assert processes().said.startswith("refused: another server holds people.tacit")
    first.stop(signal.SIGKILL)
    second = processes()  # the lock went with the process
    again = httpx2.post(f"{second.said}/v1/people/ask", json=body, headers=headers, timeout=PATIENCE).json()["answer"]
    assert {k: again[k] for k in ("value", "error", "entry", "seal")} == {
        k: told[k] for k in ("value", "error", "entry", "seal")
    }
    assert (again["source"], again["cost"]) == ("repeat", {"gdp": 0.0})
    with (
        httpx2.Client(base_url=second.said, headers=headers, timeout=PATIENCE) as client,
        ThreadPoolExecutor(8) as pool,
    ):
        ages = [{"question": {"count": {"age": [low, low + 9]}}} for low in range(10, 90, 10)]
        pending = [pool.submit(client.post, "/v1/people/ask", json=age) for age in ages]
        until(lambda: any(future.done() for future in pending))
        second.stop(signal.SIGTERM)  # finishes what it has taken on
        answered = 0
        for future in pending:
            try:
                answered += future.result(PATIENCE).status_code == 200
            except httpx2.TransportError:  # came too late to be accepted
                continue
    assert answered >= 1
    assert "Traceback" not in second.process.stderr.read()
    with read_config(tmp_path / "people.toml").open() as session:
        assert len(session.history) >= 1 + answered
        assert sum(past.cost.atoms for past in session.history) == session.spent.atoms  # no reservation was left over


def test_what_serve_refuses_before_it_listens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = write_config(tmp_path)
    with pytest.raises(ConfigError, match="tls_cert and tls_key"):
        run.serve([config], host="0.0.0.0")
    with pytest.raises(ConfigError, match="both files"):
        run.serve([config], tls_cert="cert.pem")
    with pytest.raises(ConfigError, match="PEM"):
        run.serve([config], tls_cert=config, tls_key=config)
    with pytest.raises(ConfigError, match="make the first key"):
        run.serve([config], port=0)
    with pytest.raises(ConfigError, match="at least one"):
        run.serve([])
    with pytest.raises(ConfigError, match="same name"):
        run.serve([config, tmp_path / "sub" / "people.toml"])
    make_key(tmp_path / "tacit.keys", "ana", "analyst")
    with pytest.raises(ConfigError, match="small letters"):
        run.serve({"No Name": config}, port=0)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(ConfigError, match="cannot listen"):
            run.serve([config], port=taken.getsockname()[1])
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ConfigError, match=r"tacit-dp\[serve\]"):
        run.serve([config])
    assert not (tmp_path / "people.tacit").exists() or os.access(tmp_path / "people.tacit", os.R_OK)


def test_a_data_set_is_called_like_its_file_and_that_of_every_draft_like_its_ledger(tmp_path: Path) -> None:
    config = write_config(tmp_path, "people")
    (tmp_path / "tacit.toml").write_text(config.read_text().replace('"people.tacit"', '"Wards.tacit"'))
    assert list(run._names([config, tmp_path / "tacit.toml"])) == ["people", "wards"]
    (tmp_path / "tacit.toml").write_text(config.read_text().replace('"people.tacit"', '"Wards of 2024.tacit"'))
    assert list(run._names([tmp_path / "tacit.toml"])) == ["tacit"]  # a blank is in no name
    (tmp_path / "tacit.toml").write_text(config.read_text())
    with pytest.raises(ConfigError, match="two configurations have the same name"):
        run._names([config, tmp_path / "tacit.toml"])


def test_small_answers_do_not_wait_for_each_other() -> None:
    with run._bind("127.0.0.1", 0) as listening:  # what asyncio looks at before it turns Nagle's algorithm off
        assert listening.proto == socket.IPPROTO_TCP


def test_the_core_does_not_load_the_server() -> None:
    loaded = "{'starlette', 'uvicorn'} & set(sys.modules)"
    code = f"import sys, tacit, tacit.session, tacit.serve; sys.exit(bool({loaded}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
