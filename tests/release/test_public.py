"""The public door: what was told is what is read, and little is read for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from curators import public_of
from tacit.errors import InvalidQuery
from tacit.exact.price import total
from tacit.load import open_source
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.model.entry import FreeAnswer, Told
from tacit.model.facts import NOISE, Bar, about_of
from tacit.model.query import Query
from tacit.model.workload import marginal
from tacit.release.online import measure_around
from tacit.store import chain
from tacit.store import file as durable
from tacit.store.anchor import Anchor
from tacit.trusted.cells import read_records
from tacit.trusted.curator import Curator
from tacit.trusted.ledger import Ledger

SIZES = {"a": 6, "b": 5, "c": 4}
DOMAIN = Domain({name: tacit.integer(0, size - 1) for name, size in SIZES.items()})
BUDGET = Budget(epsilon=50.0, delta=0.0)
PRICE = Loss.of("epsilon", 1.0)


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[Curator]:
    anchor = Anchor(tmp_path / "a.sqlite")
    rows = {name: [i * (k + 2) % size for i in range(120)] for k, (name, size) in enumerate(SIZES.items())}
    ledger = Ledger.open(
        tmp_path / "l.tacit", make="new", budget=BUDGET, total=total(BUDGET), binding={}, anchor=anchor
    )
    yield Curator(read_records(open_source(pa.table(rows)), DOMAIN), ledger)
    ledger.close()


def noise(width: int) -> Bar:
    return Bar(width, NOISE, 0.95)


@pytest.mark.parametrize(
    ("note", "value"),
    [("", 0), ('quotes " and \\', -3), ("é … \u2028", 2**62), ("\x00", 1)],
)
def test_what_is_told_now_is_what_is_read_ever_after(curator: Curator, note: str, value: int) -> None:
    public = public_of(curator)
    queries = [Query.among(DOMAIN, "a", [0]), ~Query.among(DOMAIN, "b", [0, 1]), Query.among(DOMAIN, "a", [0])]
    bars = [(), (noise(3), Bar(4, about_of(note), 0.5)), (noise(0),)]
    said = [FreeAnswer(query, value, note, some) for query, some in zip(queries, bars, strict=True)]
    told = public.tell(said)
    read = public.find(queries)
    stored = [answer for answer in public.answers() if isinstance(answer, Told)]
    assert told == read == [stored[0], stored[1], stored[0]]  # the same question told twice keeps its first answer
    assert {type(one.value) for one in told if isinstance(one, Told)} == {int}


@pytest.mark.parametrize("value", [True, 1.0, np.int64(5), 2**63, None])
def test_what_is_no_whole_number_cannot_be_told(value: Any) -> None:
    with pytest.raises(InvalidQuery, match="whole number"):
        FreeAnswer(Query.among(DOMAIN, "a", [0]), value, "")


@pytest.mark.parametrize(("width", "note"), [(2**63, ""), (-1, ""), (3, "\ud83d\ude00"), (3, "\ud800")])
def test_what_would_not_be_read_back_is_refused_unpaid(curator: Curator, width: int, note: str) -> None:
    public, query = public_of(curator), Query.among(DOMAIN, "a", [0])
    with pytest.raises(InvalidQuery):
        public.tell([FreeAnswer(query, 1, note, (noise(width),))])
    with pytest.raises(InvalidQuery):
        measure_around(public, curator, query, PRICE, noise(width), note)
    assert public.entries == public.spent.atoms == 0


def test_a_table_of_other_noise_is_not_told_from(curator: Curator) -> None:
    table = marginal(DOMAIN, "a")
    curator.measure([table], Loss.of("epsilon", 0.01))
    with pytest.raises(InvalidQuery, match="other noise"):
        measure_around(public_of(curator), curator, Query.among(DOMAIN, "a", [0]), PRICE, noise(6), "")


def test_an_answer_found_is_in_the_steps_of_its_question(curator: Curator) -> None:
    public = public_of(curator)
    plain, weighted = Query.among(DOMAIN, "a", [0]), Query.weighted(DOMAIN, ["a"], [1.0, 0, 0, 0, 0, 0])
    public.tell([FreeAnswer(plain, 40, "")])
    found = public.find([weighted])[0]
    assert isinstance(found, Told)
    assert (found.value, found.question.unit) == (40, 1)


def test_many_answers_take_few_statements(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []
    connect = durable._connect

    def traced(path: Path) -> Any:
        db = connect(path)
        db.set_trace_callback(statements.append)
        return db

    monkeypatch.setattr(durable, "_connect", traced)
    curator._ledger.log._file.release()
    public, rng = public_of(curator), np.random.default_rng(5)
    queries = list({Query.weighted(DOMAIN, ["a"], rng.random(6)): None for _ in range(1100)})
    public.tell([FreeAnswer(query, 1, "") for query in queries])
    assert len(statements) < 40 + len(queries) / 50
    statements.clear()
    public.find(queries)
    assert len(statements) < 10 + len(queries) / 400


def test_free_answers_are_not_read_to_find_the_bought_ones(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    public = public_of(curator)
    measured = curator.measure([Query.among(DOMAIN, "a", [0])], PRICE)[0]
    public.tell([FreeAnswer(Query.among(DOMAIN, "b", [k]), 1, "") for k in range(4)])
    later = curator.measure([Query.among(DOMAIN, "a", [1])], PRICE)[0]
    read: list[int] = []
    line_of = chain.line_of

    def spy(row: Any) -> chain.Line:
        read.append(row[0])
        return line_of(row)

    monkeypatch.setattr("tacit.store.rows.line_of", spy)
    found = [one.receipt.entry for one in public.released()]
    assert found == read == [measured.receipt.entry, later.receipt.entry]
    assert [one.receipt.entry for one in public.released(after=found[0])] == found[1:]
    assert [receipt.entry for _, _, _, receipt in public.account.since()] == found
    with curator._ledger.log._file.mutex:
        db = curator._ledger.log._file._connected()
        plan = db.execute(
            "EXPLAIN QUERY PLAN SELECT seq FROM entries INDEXED BY settled WHERE intent IS NOT NULL AND +seq > 5"
        ).fetchall()
    assert "COVERING INDEX settled" in str(plan)
