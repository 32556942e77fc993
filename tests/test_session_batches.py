"""Batches of easy questions: how much work each of them is, and several threads that ask at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from support import calls
from tacit.model import query
from tacit.model.answer import Answer
from tacit.model.ask import Count, Crosstab
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.iterative import Weights
from tacit.session import Session
from tacit.store import chain

SIZES = {"a": 8, "b": 7, "c": 6, "d": 5}
DOMAIN = Domain({name: tacit.integer(0, size - 1) for name, size in SIZES.items()})
COPIES = 12  # rows in every cell
N = COPIES * DOMAIN.size
THREADS, EACH = 4, 2


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    cells = np.indices(DOMAIN.shape).reshape(len(SIZES), -1).repeat(COPIES, axis=1)
    data = pd.DataFrame(dict(zip(SIZES, cells, strict=True)))
    files: dict[str, Any] = {"ledger": tmp_path / "l.tacit", "anchor": tmp_path / "a.sqlite"}
    # The rows are uniform, and so is the hypothesis: with this many questions to come, a gate takes an easy one for a
    # hard one with probability 1e-9 (`online.Terms`), so every question here is easy.
    options: dict[str, Any] = {"mechanism": "iterative", "hits": 5, "questions": 10**9}
    with tacit.open(
        start=True, data=data, domain=DOMAIN, budget=Budget(epsilon=1.0, delta=1e-9), **options, **files
    ) as opened:
        yield opened


def conjunctions(count: int, seed: int) -> list[Query]:
    """Different questions, all of them easy."""
    rng, made = np.random.default_rng(seed), dict[Query, None]()
    while len(made) < count:
        names = rng.choice(list(SIZES), size=rng.integers(2, 4), replace=False)
        chosen = [rng.choice(SIZES[n], size=rng.integers(1, SIZES[n]), replace=False) for n in names]
        made[Query.all(Query.among(DOMAIN, str(n), c) for n, c in zip(names, chosen, strict=True))] = None
    return list(made)


def test_the_canonical_form_of_a_question_is_worked_out_when_it_is_made(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.ask_many(conjunctions(1, 99))
    batch, made, canonical = conjunctions(400, 1), list[object](), query._canonical
    monkeypatch.setattr(query, "_canonical", lambda *given, **more: made.append(given) or canonical(*given, **more))
    answers = session.ask_many(batch)
    assert {answer.source for answer in answers} == {"hypothesis"}
    assert made == []
    conjunctions(1, 2)
    assert made  # the control


def test_past_free_answers_are_not_read_again(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(2):
        session.ask_many(conjunctions(300, seed))
    read: list[Any] = []
    line_of = chain.line_of
    monkeypatch.setattr("tacit.store.rows.line_of", lambda row: read.append(row) or line_of(row))
    session.ask_many(conjunctions(20, 77))
    assert len(read) < 30  # not the 600 from before


def test_a_repeat_in_one_batch_is_a_repeat(session: Session) -> None:
    session.ask_many(conjunctions(1, 99))  # which pays for the gate
    first, second = conjunctions(2, 3)
    answers = session.ask_many([first, second, first, ~first, first])
    assert [answer.source for answer in answers] == ["hypothesis", "hypothesis", "repeat", "hypothesis", "repeat"]
    assert answers[0].value == answers[2].value == answers[4].value == N - answers[3].value
    assert all(answer.cost.atoms == 0 for answer in answers)
    assert answers[0].question == answers[2].question != answers[3].question


def ask_in_threads(session: Session, batches: list[list[list[Query]]]) -> list[list[list[Answer]]]:
    """Each thread asks its batches, all threads at once; what went wrong in one is raised here."""
    answers: list[list[list[Answer]]] = [[] for _ in batches]
    wrong: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for batch in batches[number]:
                answers[number].append(session.ask_many(batch))
        except BaseException as error:
            wrong.append(error)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(len(batches))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if wrong:
        raise wrong[0]
    return answers


def test_threads_get_the_answers_that_one_asker_would_get(session: Session) -> None:
    shared = conjunctions(50, 5)  # everybody asks these too: they are answered once, and the same to all
    batches = [[conjunctions(60, 10 * t + i) + shared for i in range(EACH)] for t in range(THREADS)]
    answers = ask_in_threads(session, batches)
    assert isinstance(session.knowledge, Weights)
    for thread, asked in zip(answers, batches, strict=True):
        for batch, queries in zip(thread, asked, strict=True):
            guesses = session.knowledge.guess(queries).values  # nothing was hard, so nothing was learned
            assert [answer.value for answer in batch] == [round(guess) for guess in guesses.tolist()]
            assert {answer.source for answer in batch} <= {"hypothesis", "repeat"}
    told = [a for thread in answers for batch in thread for a in batch[-len(shared) :] if a.source == "hypothesis"]
    assert len(told) == len(shared)
    entries = {a.receipt.entry for thread in answers for batch in thread for a in batch if a.receipt is not None}
    different = {query.core for asked in batches for queries in asked for query in queries}
    assert len(entries) == len(different)
    assert session._ledger.log.verify() >= len(entries)


def test_threads_work_no_more_than_one_asker(session: Session) -> None:
    # Calls, of which other programs on the machine cause a few hundred of 1.7 million: four threads that wait for turns
    # look for them at most 400 times a second. A wait that spins, or an answer worked out twice, takes many times that.
    alone = conjunctions(THREADS * EACH * 200, 1234)
    session.ask_many(conjunctions(200, 4321))
    one = calls(lambda: [session.ask_many(alone[first : first + 200]) for first in range(0, len(alone), 200)])
    before = set(alone)
    fresh = [query for query in conjunctions(2 * len(alone), 1235) if query not in before][: len(alone)]
    parts = [[fresh[(t * EACH + i) * 200 :][:200] for i in range(EACH)] for t in range(THREADS)]
    assert calls(lambda: ask_in_threads(session, parts)) < 1.5 * one


def test_a_table_in_steps_is_the_table(session: Session) -> None:
    ask = Crosstab(DOMAIN, ("a", "b"))
    steps, sizes = session.in_steps(ask, 10), list[int]()
    while True:
        try:
            sizes.append(len(next(steps)))
            session.ask(tacit.count(c=len(sizes) % 6))  # others come between
        except StopIteration as finished:
            table = finished.value
            break
    assert sizes == [10] * 5 + [6]
    again = session.answer(ask)
    assert np.array_equal(table.values, again.values)
    assert table.facts.bars == again.facts.bars
    assert (table.source, again.source) == ("hypothesis", "repeat")
    with pytest.raises(StopIteration):
        next(session.in_steps(Count(tacit.count(a=1).bind(DOMAIN)), 10))  # nothing to come between
