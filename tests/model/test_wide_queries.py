"""Questions about attributes with very many values are written in runs: what they say, and not how wide they are."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace

import tacit
from support import calls
from tacit.errors import InvalidQuery, LedgerError
from tacit.model import factor
from tacit.model.domain import Domain
from tacit.model.entry import decode, spells
from tacit.model.factor import GRID, read_factor
from tacit.model.query import Query
from tacit.owner.inspection import inspect
from tacit.store.chain import canonical, chain_hash

BINS = 100_000
DOMAIN = Domain({"id": tacit.integer(0, BINS - 1), "sex": tacit.category(["F", "M"])})


def bits(form: dict[str, Any]) -> dict[str, Any]:
    """A query's form with all weights in bits."""
    query = Query.from_dict(form)
    old = [np.packbits(factor.weights).tobytes().hex() for factor in query.factors]
    return form | {"factors": [one | {"weights": digits} for one, digits in zip(form["factors"], old, strict=True)]}


@pytest.mark.parametrize("chosen", [range(10, 20), range(10), range(BINS - 7, BINS), [5, 50, 500], range(0, 900, 3)])
def test_a_wide_condition_is_written_in_runs_and_read_again(chosen: Any) -> None:
    for query in (Query.among(DOMAIN, "id", chosen), ~Query.among(DOMAIN, "id", chosen)):
        both = query & Query.among(DOMAIN, "sex", [0])
        for asked in (query, both):
            form = json.loads(json.dumps(asked.to_dict()))
            assert len(json.dumps(form)) < 4_000
            assert isinstance(form["factors"][0]["weights"], list)
            again = Query.from_dict(form)
            assert again.key == asked.key
            assert Query.from_dict(bits(form)).key == asked.key  # bits are read, too


def test_what_is_narrow_or_ragged_is_written_in_bits() -> None:
    narrow = Query.among(Domain({"a": tacit.integer(0, 2**8 - 2)}), "a", [1])
    ragged = Query.among(DOMAIN, "id", range(0, BINS, 2))
    for query in (narrow, ragged):
        assert query.to_dict() == bits(query.to_dict())


@pytest.mark.parametrize("runs", [[], [BINS], [1, 2], [-1, BINS + 1], [1.0, BINS - 1], [True, BINS - 1], [2**40]])
def test_runs_that_are_not_of_the_shape_are_refused(runs: list[Any]) -> None:
    form = Query.among(DOMAIN, "id", [3]).to_dict()
    form["factors"][0]["weights"] = runs
    if runs == [BINS]:  # nobody: which has another form, and is not refused
        assert Query.from_dict(form).is_constant
        return
    with pytest.raises(InvalidQuery, match="do not have its shape"):
        Query.from_dict(form)


def test_a_shape_that_no_attribute_has_is_refused_before_anything_is_made_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    form = {"scope": ["id"], "shape": [2**40], "unit": 1, "weights": [1, 2**40 - 1]}
    monkeypatch.setattr(np, "repeat", lambda *given: pytest.fail("nothing is made"))
    with pytest.raises(InvalidQuery, match="do not have its shape"):
        Query.from_dict({"complement": False, "factors": [form]})


def test_a_ledger_and_what_it_publishes_grow_with_what_is_said(tmp_path: Path) -> None:
    rows = pd.DataFrame({"id": range(0, BINS, 100), "sex": "F"})
    session = tacit.open(
        data=rows,
        domain=DOMAIN,
        budget=tacit.Budget(epsilon=1.0),
        ledger=tmp_path / "l",
        anchor=tmp_path / "a",
        mechanism="direct",
    )
    with session:
        session.ask_many([tacit.count(id=(low, low + 9)) for low in range(20)])
        lines = session.transcript()[1]
        assert max(len(line.body) for line in lines) < 1_000  # as bits, 25,000 digits
        session.publish(tmp_path / "p")
    tacit.verify(tmp_path / "p")
    line = next(line for line in lines if line.kind == "measured")
    said, before = decode(line.kind, line.body), json.loads(line.body)
    before["question"] = bits(before["question"])
    assert spells(said, line.kind, line.body)
    assert not spells(said, line.kind, canonical(before))  # there is one spelling
    assert not spells(said, line.kind, json.dumps(before))
    assert not spells(said, "told", line.body)


def test_what_is_kept_of_questions_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(shape: list[int], weights: object) -> None:
        read_factor({"scope": ["id"], "shape": shape, "unit": 1, "weights": weights})

    kept = factor._of_bits_or_runs
    kept.cache_clear()
    read([300], [10, 290])
    assert kept.cache_info().currsize == 1
    read([2**14], [1] * 2**14)  # as many numbers as cells
    read([BINS], [1, BINS - 1])
    assert kept.cache_info().currsize == 1
    with pytest.raises(InvalidQuery, match="do not have its shape"):
        read([2], [0] * 50_000 + [1, 1])
    for weights in ((10, 290), b"00", None, {}, 5, "00", " " * 76, ["1" * 10**6, 290], [[10], [290]]):
        with pytest.raises(InvalidQuery, match="do not have its shape"):
            read([300], weights)
    monkeypatch.setattr("math.prod", lambda sizes: pytest.fail("nothing is multiplied"))
    for shape in ([10**4_000] * 2_000, [2] * 2_000, [10**4_000]):
        with pytest.raises(InvalidQuery, match="do not have its shape"):
            read(shape, "00")


def test_numbers_of_another_kind_are_refused_before_anything_is_made_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "array", lambda *given: pytest.fail("nothing is made"))
    monkeypatch.setattr(np, "repeat", lambda *given: pytest.fail("nothing is made"))
    texts, table = ["a" * 2_000_000, *["b"] * 99], ["a", "b"]
    for weights in (texts, [[1]] * 100, [1.0] * 100, [True] * 100, [1] * 99, "0" * 100):
        form = {"scope": ["id"], "shape": [100], "unit": GRID, "weights": weights}
        with pytest.raises(InvalidQuery, match="do not have its shape"):
            read_factor(form)
    for shape, unit in (([100.0], 1), ([100], True), ([100], 1.0), ([0], 1), (["100"], 1), ([100], None)):
        with pytest.raises(InvalidQuery, match="do not have its shape"):
            read_factor({"scope": ["id"], "shape": shape, "unit": unit, "weights": [1, 99]})
    with pytest.raises(InvalidQuery, match="do not have its shape"):
        read_factor({"scope": table, "shape": [2**12, 2**13], "unit": 1, "weights": [2**25]})
    with pytest.raises(InvalidQuery, match="1,048,576"):
        read_factor({"scope": table, "shape": [2**12, 2**12], "unit": 1, "weights": [2**24]})


def test_a_question_announces_no_more_cells_than_can_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.model.query.MOST_READ", 3 * BINS)
    wide = [{"scope": [f"a{i}"], "shape": [BINS], "unit": 1, "weights": [1, BINS - 1]} for i in range(1_000)]
    assert len(Query.from_dict({"complement": False, "factors": wide[:3]}).factors) == 3
    with pytest.raises(InvalidQuery, match="at most 300,000 weights"):
        Query.from_dict({"complement": False, "factors": wide})


def test_a_short_question_that_ties_many_cells_is_not_searched_for_long() -> None:
    names, shape = [f"a{i}" for i in range(8)], [4, 4, 4, 4, 4, 4, 16, 16]
    form = {"scope": names, "shape": shape, "unit": 1, "weights": [1, 2**20 - 2, 1]}
    made = list[Query]()
    # The search would go through 162 splits, twice: for the set and for its complement.
    assert calls(lambda: made.append(Query.from_dict({"complement": False, "factors": [form]}))) < 1_000
    (factor,) = made[0].factors
    assert factor.weights.shape == tuple(shape)
    assert int(factor.weights.sum()) == 2
    assert made[0].complement


def test_what_could_not_be_read_again_is_not_paid_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pd.DataFrame({name: range(300) for name in "abc"})
    domain = tacit.Domain({name: tacit.integer(0, 299) for name in "abc"})
    monkeypatch.setattr("tacit.model.query.MOST_READ", 600)
    files = {"ledger": tmp_path / "l", "anchor": tmp_path / "a"}
    budget = tacit.Budget(epsilon=1.0)
    with tacit.open(data=rows, domain=domain, budget=budget, start=True, mechanism="direct", **files) as session:
        session.ask(tacit.count(a=(0, 9), b=(0, 9)))
        spent = session.status().spent
        for ask in (
            lambda: session.ask(tacit.count(a=(0, 9), b=(0, 9), c=(0, 9))),
            lambda: session.table("a", where=tacit.count(a=(0, 9), b=(0, 9), c=(0, 9))),
        ):
            with pytest.raises(InvalidQuery, match=r"at most 600 weights\. Nothing was spent"):
                ask()
        assert session.status().spent == spent


def test_a_line_that_nests_too_deep_is_damage_and_no_error_of_ours(tmp_path: Path) -> None:
    rows = pd.DataFrame({"id": range(100), "sex": "F"})
    files = {"ledger": tmp_path / "l", "anchor": tmp_path / "a"}
    budget, nested = tacit.Budget(epsilon=1.0), ',"x":' + "[" * 700 + "]" * 700 + "}"
    with tacit.open(data=rows, domain=DOMAIN, budget=budget, mechanism="direct", **files) as session:
        session.ask(tacit.count(id=(0, 9)))
        before, line = session.transcript()[1]
    line = replace(line, body=line.body[:-1] + nested)
    with closing(sqlite3.connect(tmp_path / "l")) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            db.execute(f"DROP TRIGGER {name}")
        db.execute("UPDATE entries SET body = ?, hash = ? WHERE seq = 2", (line.body, chain_hash(before.hash, line)))
        db.commit()
    with pytest.raises(LedgerError, match="entry 2 is not one that this program wrote"):
        inspect(tmp_path / "l", tmp_path / "a")
