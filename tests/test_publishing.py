"""Published knowledge: the same answers without data, to the last bit, for every mechanism; and what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from support import PATIENCE, once
from tacit.model.query import Query
from tacit.public import Transcript, knowledge
from tacit.release import median as median_module
from tacit.release.iterative import Weights
from tacit.release.mechanisms import Choice
from tacit.release.public import UNCHECKED
from tacit.release.recall import Recall, buyer
from tacit.release.settings import MedianSettings, names_of
from tacit.session import Session
from tacit.trusted.curator import Curator

SIZES = {"a": 10, "b": 6, "c": 4, "d": 2}
CODES = ["w", "x", "y", "z"]
DOMAIN = tacit.Domain(
    {
        "a": tacit.integer(0, 9),
        "b": tacit.integer(0, 5),
        "c": tacit.category(CODES),
        "d": tacit.boolean(),
    }
)
N = 20_000
FAINT, PURE = tacit.Budget(epsilon=0.01, delta=1e-9), tacit.Budget(epsilon=3.0, delta=0.0)
MECHANISMS: dict[str, dict[str, Any]] = {
    "direct": {"mechanism": "direct", "questions": 50},
    "histogram": {"mechanism": "histogram"},
    "iterative": {"mechanism": "iterative", "hits": 6, "questions": 5_000},
    "warm": {"mechanism": "iterative", "hits": 4, "questions": 5_000, "warm": 0.6},
    "faint": {"mechanism": "iterative", "hits": 2, "questions": 500, "warm": 0.7, "budget": FAINT},
    "pure": {"mechanism": "iterative", "hits": 4, "questions": 5_000, "warm": 0.3, "budget": PURE},
    "median": {
        "mechanism": "median",
        "hits": 4,
        "questions": 5_000,
        "databases": 20,
        "records": 60,
        "seed": 7,
        "warm": 0,
    },
    "voters": {
        "mechanism": "median",
        "hits": 4,
        "questions": 5_000,
        "databases": 20,
        "records": 600,
        "warm": 0.4,
    },
    "fractions": {"mechanism": "median", "hits": 4, "questions": 5_000, "databases": 20, "sampler": "fractions"},
}
LEARNING = ("iterative", "warm", "faint", "pure", "median", "voters", "fractions")


def rows() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    a = rng.binomial(9, 0.4, N)
    b = np.minimum(5, a // 2 + rng.integers(0, 2, N))
    c = np.array(CODES)[rng.choice(4, N, p=[0.1, 0.2, 0.3, 0.4])]
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": rng.random(N) < b / 6})


ROWS = rows()
SOURCE = once(ROWS)


def start(folder: Path, name: str, **changes: Any) -> Session:
    budget = tacit.Budget(epsilon=2.0, delta=1e-9)
    settings = {"data": SOURCE, "domain": DOMAIN, "budget": budget, "ledger": folder / "l.tacit"}
    return tacit.open(start=True, **(settings | MECHANISMS[name] | changes))


def boxes(count: int, seed: int) -> list[Query]:
    """Different questions about three attributes; which ones another seed gives is another matter."""
    rng = np.random.default_rng(seed)
    found: dict[str, Query] = {}
    while len(found) < count:
        sides = [np.flatnonzero(rng.random(SIZES[name]) < 0.5).tolist() for name in ("a", "b", "c")]
        if all(sides):
            made = Query.all([Query.among(DOMAIN, name, side) for name, side in zip("abc", sides, strict=True)])
            found.setdefault(made.core.key, made.core)
    return list(found.values())


def unasked(session: Session, queries: list[Query]) -> list[Query]:
    found = session._public.find(queries)
    return [query for query, before in zip(queries, found, strict=True) if before is None]


def use(session: Session) -> None:
    """A bit of everything that this mechanism can be asked."""
    session.cdf("a", share=0.05)  # first, while something is left
    if session.choice.mechanism in ("direct", "iterative"):
        session.release([["a", "b"], ["c", "d"]], rounds=2, share=0.05, alpha=0.2)
    if session.choice.mechanism in ("direct", "median") and not _fractional(session):
        session.ask(tacit.stump("a", predicts="d"))
    session.ask_many(boxes(25, seed=1))
    session.ask("SELECT COUNT(*) FROM data WHERE a BETWEEN 2 AND 5 AND d = true")
    session.ask(tacit.weigh("b", weights=[0, 0.2, 0.4, 0.6, 0.8, 1.0]))
    session.table("c", "d")


def _fractional(session: Session) -> bool:
    return getattr(session.choice.settings, "sampler", "") == "fractions"


def again(session: Session) -> list[Any]:
    """Everything of `use` as it is answered now, in a form that shows every bit."""
    answers: list[Any] = [answer.to_dict() for answer in session.ask_many(boxes(25, seed=1))]
    answers.append(session.ask("SELECT COUNT(*) FROM data WHERE a BETWEEN 2 AND 5 AND d = true").to_dict())
    answers.append(session.ask(tacit.weigh("b", weights=[0, 0.2, 0.4, 0.6, 0.8, 1.0])).to_dict())
    answers.append(session.ask(tacit.count(a=(0, 9))).to_dict())
    answers.append(session.table("c", "d").to_dict())
    answers += [session.cdf("a").to_dict(), session.quantile("a", 0.5).to_dict(), session.range("a", 2, 6).to_dict()]
    answers += [session.histogram("a", width=2).to_dict(), session.mean("a").to_dict()]
    answers += [session.dry_run(query).known for query in boxes(25, seed=1)]
    if session.choice.mechanism in ("direct", "median") and not _fractional(session):
        answers.append(session.ask(tacit.stump("a", predicts="d")).to_dict())
    if session.choice.mechanism in ("direct", "iterative"):
        built = session.release([["a", "b"], ["c", "d"]], rounds=2, share=0.05, alpha=0.2)
        answers += [built.hypothesis.marginal(DOMAIN.names).tobytes(), repr(built.steps), built.accurate]
    if session.choice.mechanism != "direct" and not _fractional(session):
        answers.append([column.tobytes() for column in session._mechanism.draw(500, np.random.default_rng(1))])
    return answers


@pytest.mark.parametrize("name", MECHANISMS)
def test_what_was_answered_before_is_answered_the_same_and_fresh_questions_byte_for_byte(
    tmp_path: Path, name: str
) -> None:
    with start(tmp_path, name) as live:
        use(live)
        tacit.publish(live, tmp_path / "p.jsonl")
        reading = tacit.read(tmp_path / "p.jsonl")
        assert reading.history == live.history
        about = ("domain", "rows", "budget", "total", "spent", "left", "epsilon_spent", "choice", "confidence")
        assert [getattr(reading, what) for what in about] == [getattr(live, what) for what in about]
        # The whole hypothesis, or all the databases, to the last bit: the live session's and the one derived again.
        assert knowledge(tmp_path, live) == tacit.verify(tmp_path / "p.jsonl").knowledge
        fresh = unasked(live, boxes(300, seed=2))[:200]
        if name == "direct":  # nothing but what tables say is known beyond the answers
            fresh = [tacit.count(c=value) for value in CODES]  # type: ignore[list-item]
        ours, theirs = reading.ask_many(fresh), live.ask_many(fresh)
        easy = next((i for i, answer in enumerate(theirs) if answer.source == "measured"), len(fresh))
        assert [a.value.hex() for a in map(_float, ours[:easy])] == [a.value.hex() for a in map(_float, theirs[:easy])]
        if name in LEARNING:
            # What a release tells has the bar of that release, by the law of its noise; the rest has none.
            guessed = [a for a in ours if a.source == "hypothesis"]
            assert guessed
            assert {bar.about.words for a in guessed for bar in a.bars} <= {"this noise"}
            assert all(a.note.startswith(UNCHECKED) for a in guessed) or "guarantee has ended" in guessed[0].note
            assert all(a.error is not None for a in ours if a.source != "hypothesis")
        else:  # the bar is that of the released tables, and needs no gate
            assert [a.to_dict() for a in ours] == [a.to_dict() for a in theirs]
        assert {a.cost.atoms for a in ours} == {0}
        assert again(reading) == again(tacit.read(tmp_path / "p.jsonl"))
        if name in ("histogram", *LEARNING) and easy == len(fresh):  # composed of fresh questions, so live at last
            where = tacit.count(b=(1, 3))
            ours = [reading.fraction(where), reading.sum("b", where), reading.mean("b", where)]
            theirs = [live.fraction(where), live.sum("b", where), live.mean("b", where)]
            bought = {"measured"} & {answer.source for answer in theirs}
            assert bought or [a.value for a in ours] == [a.value for a in theirs]
            easy -= len(bought)
        if easy == len(fresh):  # nothing was bought since
            assert again(reading) == again(live)


def _float(answer: tacit.Answer) -> Any:
    return type("Value", (), {"value": float(answer.value)})


CHILD = """
import json, sqlite3, sys
import duckdb, tacit
duckdb.connect = sqlite3.connect = None  # neither data nor a ledger could be read if they were there
from tacit.model.query import Query
reading = tacit.read(sys.argv[1])
questions = [Query.from_dict(form) for form in json.load(open(sys.argv[2]))]
answers = reading.ask_many(questions)
print(json.dumps([[float(a.value).hex(), a.source, a.note] for a in answers]))
"""


LOADED = """
import json, sys
import tacit.public
first = sorted(sys.modules)
reading = tacit.read(sys.argv[1])
reading.ask(tacit.count(a=1))
second = sorted(sys.modules)
reading.ask("SELECT COUNT(*) FROM data WHERE b = 2")
print(json.dumps([first, second, sorted(sys.modules)]))
"""
DATA = {
    "duckdb",
    "sqlite3",
    "opendp",
    "tacit.exact.opendp",
    "tacit.exact.table",
    "tacit.exact.rejection",
    "tacit.load",
    "tacit.owner",
}
DATA |= {f"tacit.trusted.{name}" for name in ("cells", "curator", "gate", "ledger", "noise", "records")}
DATA |= {f"tacit.store.{name}" for name in ("anchor", "file", "log", "rows")}


@pytest.mark.parametrize("name", ["direct", "histogram", "warm", "median"])
def test_what_is_published_is_read_without_an_engine_a_sampler_or_a_ledger(tmp_path: Path, name: str) -> None:
    with start(tmp_path, name) as live:
        live.ask_many([tacit.count(a=1), tacit.count(b=2)])
        live.publish(tmp_path / "p.jsonl")
    command = [sys.executable, "-c", LOADED, str(tmp_path / "p.jsonl")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    for i, loaded in enumerate(json.loads(done.stdout)):
        assert not {module for module in loaded if any(f"{module}.".startswith(f"{bad}.") for bad in DATA)}
        assert ("sqlglot" in loaded) == (i == 2)  # for what is asked in SQL alone
        assert "tacit.public.check" in loaded  # the control: the names are those of modules


@pytest.mark.parametrize("name", ["warm", "median"])
def test_a_thousand_fresh_questions_in_a_process_without_data_or_ledger(tmp_path: Path, name: str) -> None:
    folder, away = tmp_path / "owner", tmp_path / "away"
    folder.mkdir()
    ROWS.to_csv(folder / "rows.csv", index=False)
    with start(folder, name, data=str(folder / "rows.csv")) as live:
        live.ask_many(boxes(20, seed=1))
        for attempt in range(20):  # a hard question teaches the live session something new: publish that, ask others
            path = tmp_path / f"p{attempt}.jsonl"
            tacit.publish(live, path)
            fresh = unasked(live, boxes(1200, seed=attempt + 5))[:1000]
            assert len(fresh) == 1000
            answers = live.ask_many(fresh)
            if all(answer.source == "hypothesis" for answer in answers):
                break
        else:
            pytest.fail("every thousand questions had a hard one among them")
    (folder / "rows.csv").unlink()
    os.rename(folder, away)
    (tmp_path / "questions.json").write_text(json.dumps([query.to_dict() for query in fresh]))
    command = [sys.executable, "-c", CHILD, str(path), str(tmp_path / "questions.json")]
    nowhere = {**os.environ, "TACIT_STATE": str(tmp_path / "none")}
    done = subprocess.run(command, cwd=tmp_path, env=nowhere, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [value for value, _, _ in found] == [float(answer.value).hex() for answer in answers]
    assert {source for _, source, _ in found} == {"hypothesis"}
    assert not list((tmp_path / "none").glob("anchors*"))  # it needs no anchor either


def test_the_databases_of_the_median_are_those_of_the_last_published_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The live session stirs its databases as its ledger grows; the file keeps those of the moment it was written."""
    monkeypatch.setattr(median_module, "STIR_EVERY", 40)
    with start(tmp_path, "median") as live:
        use(live)
        for turn in range(3):
            tacit.publish(live, tmp_path / f"{turn}.jsonl")
            reading = tacit.read(tmp_path / f"{turn}.jsonl")
            fresh = unasked(live, boxes(200, seed=turn + 20))[:80]
            ours, theirs = reading.ask_many(fresh), live.ask_many(fresh)
            easy = next((i for i, answer in enumerate(theirs) if answer.source == "measured"), len(fresh))
            assert [a.value for a in ours[:easy]] == [a.value for a in theirs[:easy]]
            assert [a.value for a in reading.ask_many(fresh)] == [a.value for a in ours]
        first = [tacit.read(tmp_path / f"{turn}.jsonl").ask_many(fresh) for turn in (0, 2)]
        assert [a.value for a in first[0]] != [a.value for a in first[1]]  # the control: stirring does move them


def test_what_would_have_to_be_bought_is_refused_and_says_so(tmp_path: Path) -> None:
    for name in ("direct", "histogram", "warm"):
        folder = tmp_path / name
        folder.mkdir()
        with start(folder, name) as live:
            tacit.publish(live, folder / "empty.jsonl")
        reading = tacit.read(folder / "empty.jsonl")
        for ask in (
            lambda s: s.ask(tacit.count(a=1)),
            lambda s: s.table("a", "b"),
            lambda s: s.cdf("a"),
            lambda s: s.rectangle({"a": (1, 3), "b": (0, 2)}),
            lambda s: s.release([["a"], ["b"]], rounds=1, share=0.1),
        ):
            with pytest.raises(tacit.NeedsData, match=r"needs the data.* Nothing was spent\.") as refused:
                ask(reading)
            assert refused.value.code == "needs_data"
        assert reading.ask(tacit.count(a=(0, 9))).value == N  # n is public
        with pytest.raises(tacit.InvalidQuery):
            reading.synthetic(5)
        assert reading.spent.atoms == 0


def test_what_is_read_has_no_curator(tmp_path: Path) -> None:
    """Whatever looks at data is a method of the curator, and there is none: `Public` only reads."""
    with start(tmp_path, "direct") as live:
        tacit.publish(live, tmp_path / "p.jsonl")
        assert isinstance(live._curator, Curator)
    reading = tacit.read(tmp_path / "p.jsonl")
    assert (reading._curator, reading._ledger) == (None, None)
    assert {"measure", "select_worst", "first_far", "compare", "open_gate"} <= set(dir(Curator))
    assert not {name for name in vars(Curator) if not name.startswith("_")} & set(dir(reading._public))
    recall, one, loss = buyer(reading._public, reading._curator), Query.among(DOMAIN, "a", [1]), reading.total.split(10)
    assert isinstance(recall, Recall)
    looks: dict[str, Any] = {
        "measure": lambda: recall.measure([one], loss),
        "select_worst": lambda: recall.select_worst([one], [3.0], loss),
        "first_far": lambda: recall.first_far([one], [3.0], 10.0, loss),
    }
    assert set(looks) == {name for name in vars(Recall) if not name.startswith("_")}
    for look in looks.values():
        with pytest.raises(tacit.NeedsData):
            look()


def test_threads_take_turns_and_learn_everything_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    budget = tacit.Budget(epsilon=20.0, delta=1e-9)
    with start(tmp_path, "iterative", questions=10, budget=budget) as live:
        live.ask_many(boxes(60, seed=1))
        tacit.publish(live, tmp_path / "p.jsonl")
    fresh, learn, learned = boxes(80, seed=9)[-8:], Weights._learn, list[int]()

    def slowly(self: Weights, measured: Any) -> None:
        learned.append(measured.receipt.entry)
        if len(learned) <= meeting:
            met.wait(PATIENCE)
        learn(self, measured)

    def together() -> Session:
        learned.clear()
        reading = tacit.read(tmp_path / "p.jsonl")
        with ThreadPoolExecutor(8) as pool:
            wait([pool.submit(reading.ask, query) for query in fresh])
        return reading

    meeting, met = 0, threading.Barrier(8)
    monkeypatch.setattr(Weights, "_learn", slowly)
    reading = together()
    once = [measured.receipt.entry for measured in reading._public.released()]
    assert learned == once
    assert knowledge(tmp_path, reading) == tacit.verify(tmp_path / "p.jsonl").knowledge
    assert len(once) > 0
    monkeypatch.setattr(Transcript, "turn", lambda self: nullcontext())
    meeting = 8  # no thread goes on before all have begun to learn the first answer
    together()
    assert len(learned) > len(once)  # the control: without turns the same answer is learned twice


def test_a_session_that_halts_or_has_ended_says_the_same_when_read(tmp_path: Path) -> None:
    for halt in (False, True):
        folder = tmp_path / str(halt)
        folder.mkdir()
        budget = tacit.Budget(epsilon=20.0, delta=1e-9)  # so sharp that the uniform hypothesis is wrong at once
        with start(folder, "iterative", hits=2, questions=10, budget=budget, halt=halt) as live:
            for query in boxes(60, seed=1):
                if "hard answers are used" in live.dry_run(query).why:  # no gate is open, and none can be opened
                    break
                live.ask(query)
            tacit.publish(live, folder / "p.jsonl")
            fresh = boxes(80, seed=8)[-1]
            reading = tacit.read(folder / "p.jsonl")
            if halt:
                for session in (live, reading):
                    with pytest.raises(tacit.BudgetExhausted, match="halts"):
                        session.ask(fresh)
            else:
                assert "guarantee has ended" in reading.ask(fresh).note
                assert reading.ask(fresh).value == live.ask(fresh).value  # type: ignore[union-attr]


def test_every_setting_of_the_mechanism_is_in_the_file(tmp_path: Path) -> None:
    with start(tmp_path, "median", halt=True, confidence=0.9) as live:
        tacit.publish(live, tmp_path / "p.jsonl")
    header = json.loads((tmp_path / "p.jsonl").read_text().splitlines()[0])
    assert set(header["mechanism"]) == {field.name for field in fields(Choice)}
    assert set(header["mechanism"]["settings"]) == set(names_of(MedianSettings))
    assert header["mechanism"]["settings"]["halt"] is True
    sampler = {"databases": 20, "records": 60, "seed": 7, "sampler": "databases"}
    assert sampler.items() <= header["mechanism"]["settings"].items()
    assert header["confidence"] == 0.9
    assert tacit.read(tmp_path / "p.jsonl").choice == live.choice


def test_a_statistic_that_this_process_does_not_know_can_be_read_past(tmp_path: Path) -> None:
    with start(tmp_path, "direct") as live:
        live.ask(tacit.stump("a", predicts="d"))
        live.ask(tacit.count(a=1))
        tacit.publish(live, tmp_path / "p.jsonl")
    child = (
        "import sys, tacit; from tacit.model import statistic; statistic._registry.clear()\n"
        "reading = tacit.read(sys.argv[1]); print(reading.ask(tacit.count(a=1)).value, len(reading.history))\n"
        "tacit.verify(sys.argv[1])"
    )
    done = subprocess.run([sys.executable, "-c", child, str(tmp_path / "p.jsonl")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1] == "2"
