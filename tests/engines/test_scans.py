"""How often an encoded copy is read: what a step needs is counted once, however few cells are remembered."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pytest

from tacit.load import Progress, Source, copies, open_source, scan, tables
from tacit.load.copies import Copy, Counts
from tacit.model.attribute import integer
from tacit.model.certificate import Certificate, Certificates, Conjunctions
from tacit.model.counting import in_turn
from tacit.model.domain import Domain
from tacit.model.factor import GRID
from tacit.model.query import Query
from tacit.model.workload import Question, marginal
from tacit.owner.rows import Rows
from tacit.trusted.cells import read_records
from tacit.trusted.copy import Counted
from tacit.trusted.records import Records
from tacit.trusted.sensitivity import truth

DOMAIN = Domain({f"a{i}": integer(0, 3) for i in range(6)})
TRIPLES = list(combinations(DOMAIN.names, 3))
FEW = 4 * 64 + 100  # cells that are remembered: of four triples, and of what follows from them


class Both(NamedTuple):
    """The same rows in memory and in the engine, and the statements that were run there."""

    loaded: Records
    counted: Counted
    copy: Copy
    ran: list[str]


@pytest.fixture
def both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Both:
    path = str(tmp_path / "t.parquet")
    columns = ", ".join(f"hash(i * 6 + {k}) % 4 AS {name}" for k, name in enumerate(DOMAIN))
    duckdb.execute(f"COPY (SELECT {columns} FROM range(300) AS t(i)) TO '{path}'")
    counted = Rows(path, DOMAIN, tmp_path / "l.tacit", held="engine").read()
    assert isinstance(counted, Counted)
    assert isinstance(counted._copy, Copy)
    loaded, ran, run = read_records(open_source(path), DOMAIN), list[str](), Source.run

    def noted(self: Source, statements: Sequence[str], progress: Progress | None = None) -> list[list[Counts]]:
        ran.extend(statements)
        found = run(self, statements)
        for share in (0.5, 1.0) if progress is not None else ():
            progress(share)  # as DuckDB tells of what takes long
        return found

    monkeypatch.setattr(Source, "run", noted)
    monkeypatch.setattr(scan, "JOINT", 1)  # each table by itself
    monkeypatch.setattr(tables, "LEAST_CELLS", 1)  # and the cells that are remembered are its own
    return Both(loaded, counted, counted._copy, ran)


def certificate(kind: str, scopes: Sequence[Sequence[str]]) -> Certificate:
    """All single cells of some tables."""
    lists = [
        Conjunctions(tuple(one), np.full((4,) * len(one), GRID), (np.eye(4, dtype=np.uint8),) * len(one), False)
        for one in scopes
    ]
    questions = sum(one.size for one in lists)
    return Certificate("base", kind, 3, questions, (questions // 2,), (), tuple(lists))


def certificates() -> Certificates:
    """Of tables of one, two and three attributes, and of the triples again, in two other orders."""
    rng = np.random.default_rng(0)
    by_size = [scope for k in (1, 2, 3) for scope in combinations(DOMAIN.names, k)]
    mixed = [[rng.permutation(TRIPLES[i]).tolist() for i in rng.permutation(len(TRIPLES))] for _ in range(2)]
    return Certificates(tuple(certificate(str(i), scopes) for i, scopes in enumerate([by_size, *mixed])))


def test_a_certificate_has_every_table_counted_once(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    for kept in (copies.KEPT, FEW):
        monkeypatch.setattr(copies, "KEPT", kept)
        both.copy._tables.clear()
        both.ran.clear()
        both.counted.prepare([certificates()])
        assert (truth(certificates(), both.counted) == truth(certificates(), both.loaded)).all()
        assert len(both.ran) == len(set(both.ran)) == len(TRIPLES)
        assert both.copy._tables.weight <= kept + 64  # and what was just added up


def test_a_batch_has_every_table_counted_once(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Question] = [question for one in TRIPLES for question in (marginal(DOMAIN, *one), cell(one))]
    monkeypatch.setattr(copies, "KEPT", FEW)
    both.counted.prepare(asked)
    for question in asked:
        assert (truth(question, both.counted) == truth(question, both.loaded)).all()
    assert len(both.ran) == len(TRIPLES)
    both.counted.prepare(asked[:2])  # which was counted first, and so forgotten
    truth(asked[0], both.counted)
    assert len(both.ran) == len(TRIPLES) + 1


def test_a_table_that_is_remembered_is_not_forgotten_before_it_is_used(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "KEPT", 4 * 64)
    first, *others = (marginal(DOMAIN, *one) for one in TRIPLES[:5])
    for question in (first, *others[:3]):
        truth(question, both.counted)
    both.ran.clear()
    both.counted.prepare([first, others[3]])
    truth(others[3], both.counted)
    truth(first, both.counted)
    assert len(both.ran) == 1


def test_what_was_planned_is_not_counted_for_a_question_that_was_not(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gate stops at its first hit; the rest of its batch is counted for nobody."""
    monkeypatch.setattr(copies, "KEPT", FEW)
    *batch, other = (marginal(DOMAIN, *one) for one in TRIPLES)
    both.counted.prepare(batch)
    both.ran.clear()
    truth(other, both.counted)
    assert len(both.ran) == 1
    both.counted.prepare([other])
    truth(batch[-1], both.counted)
    assert len(both.ran) == 2


def test_larger_tables_that_others_follow_from_are_used_before_they_are_forgotten(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Joint tables of four attributes, of which two are remembered."""
    monkeypatch.setattr(scan, "JOINT", 12)
    monkeypatch.setattr(copies, "KEPT", 2 * 4**4)
    asked: list[Question] = [marginal(DOMAIN, *one) for one in TRIPLES]
    both.counted.prepare(asked)
    for question in asked:
        assert (truth(question, both.counted) == truth(question, both.loaded)).all()
    assert len(both.ran) <= len(TRIPLES) // 2


def test_one_certificate_has_one_bar(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its progress is told as a whole, whatever is counted at a time."""
    told = list[float]()
    both.copy.progress = told.append
    for kept in (copies.KEPT, FEW):
        monkeypatch.setattr(copies, "KEPT", kept)
        both.copy._tables.clear()
        told.clear()
        both.counted.prepare([certificates()])
        truth(certificates(), both.counted)
        assert told == sorted(told)
        assert told[-1] == 1


def test_every_list_of_a_certificate_is_evaluated_for_it() -> None:
    """Whichever tables are counted together."""
    asked = certificates()
    found = in_turn(asked)
    for i, one in enumerate(asked.each):
        assert sorted(map(id, one.lists)) == sorted(id(listed) for place, listed in found if place == i)
    scopes = [frozenset(listed.names) for _, listed in found]
    largest = [scope for scope in dict.fromkeys(scopes) if len(scope) == 3]
    assert [one for one in scopes if len(one) == 3] == [one for one in largest for _ in range(3)]
    assert in_turn(asked.each[0]) == [(0, listed) for place, listed in found if place == 0]


def cell(names: Sequence[str]) -> Query:
    return Query.all([Query.among(DOMAIN, name, [1]) for name in names])
