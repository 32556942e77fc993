"""The canonical form is worked out once for several looks at one question; the copies are new, and nobody else's.

The planted bugs at the end are short cuts that look safe: a memory by identity, and two that hand out what they keep.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from curators import curating
from tacit.errors import InvalidQuery
from tacit.model.answer import Told
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.model.query import GRID, Factor, Query
from tacit.model.workload import marginal
from tacit.store import chain
from tacit.store import file as durable
from tacit.trusted import curator as curator_module
from tacit.trusted import gate as gate_module
from tacit.trusted import questions, rules
from tacit.trusted.curator import Curator, Distance, own
from tacit.trusted.ledger import Outcome

SIZES = {"a": 6, "b": 5, "c": 4}
DOMAIN = Domain({name: tacit.integer(0, size - 1) for name, size in SIZES.items()})
N = 120
BUDGET = Budget(epsilon=50.0, delta=0.0)
PRICE = Loss.of("epsilon", 1.0)


def rows() -> pa.Table:
    return pa.table({name: [i * (k + 2) % size for i in range(N)] for k, (name, size) in enumerate(SIZES.items())})


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[Curator]:
    with curating(tmp_path, rows(), DOMAIN, BUDGET) as made:
        yield made


def some(rng: np.random.Generator) -> Query:
    """A conjunction, a disjunction, weights, or a complement of one."""
    parts = []
    for name in rng.choice(list(SIZES), size=rng.integers(1, 4), replace=False):
        chosen = rng.choice(SIZES[name], size=rng.integers(1, SIZES[name]), replace=False)
        weighted = rng.random() < 0.2
        parts.append(
            Query.weighted(DOMAIN, [name], rng.random(SIZES[name]))
            if weighted
            else Query.among(DOMAIN, str(name), chosen)
        )
    query = Query.any(parts) if rng.random() < 0.3 else Query.all(parts)
    return ~query if rng.random() < 0.3 else query


def test_what_is_remembered_is_what_would_be_worked_out_now() -> None:
    rng = np.random.default_rng(1)
    for query in [some(rng) for _ in range(300)]:
        first, second = own(query, DOMAIN), own(query, DOMAIN)
        assert isinstance(first, Query)
        assert isinstance(second, Query)
        assert first is not second
        assert not any(f is g or f.weights is g.weights for f, g in zip(first.factors, second.factors, strict=True))
        for copy in (first, second):
            assert copy.key == copy._hashed() == query.key
            assert (copy.complement, copy.scope) == (query.complement, query.scope)
            for ours, given in zip(copy.factors, query.factors, strict=True):
                assert (ours.scope, ours.unit, ours.weights.dtype) == (given.scope, given.unit, given.weights.dtype)
                np.testing.assert_array_equal(ours.weights, given.weights)


def plain_inside(value: object) -> bool:
    return all(map(plain_inside, value)) if type(value) is tuple else type(value) in (bool, int, str, bytes)


def test_only_plain_values_are_remembered() -> None:
    rng = np.random.default_rng(7)
    for query in [some(rng) for _ in range(100)]:
        form = questions._form(query, DOMAIN)
        assert plain_inside(form)
        assert plain_inside(questions._canonical_before(form))
    assert not plain_inside((1, np.int64(1)))  # the control


def test_the_everyday_way_comes_to_the_general_canonical_form(monkeypatch: pytest.MonkeyPatch) -> None:
    forms = []
    for general in (False, True):
        if general:
            monkeypatch.setattr("tacit.model.query._everyday", lambda factor: False)
        rng = np.random.default_rng(2)
        made = [some(rng) for _ in range(400)]
        forms.append([(query.key, query.complement, query.scope) for query in made])
    assert forms[0] == forms[1]


def test_a_key_is_a_hash_of_the_json_of_the_canonical_form() -> None:
    # Ledgers hold these keys: they must never come out otherwise.
    rng = np.random.default_rng(3)
    for query in [some(rng) for _ in range(50)] + [Query.constant(everyone=True)]:
        digest = hashlib.sha256(b"tacit query 1\x00" + bytes([query.complement]))
        for factor in query.factors:
            form = [factor.scope, factor.unit, factor.weights.shape, factor.weights.dtype.str]
            digest.update(json.dumps(form).encode() + b"\x00" + factor.weights.tobytes())
        assert query.key == digest.hexdigest()


def test_large_questions_are_not_remembered() -> None:
    wide = Domain({"x": tacit.integer(0, 4999)})
    before = questions._canonical_before.cache_info().currsize
    for start in range(20):
        own(Query.among(wide, "x", range(start + 1)), wide)
    assert questions._canonical_before.cache_info().currsize == before


# A question that is changed after it was handed over


def changed(query: Query, weights: Any) -> None:
    object.__setattr__(query.factors[0], "weights", weights)


def check_changes_are_seen(curator: Curator) -> None:
    """Fails where what was looked at once is not looked at again, or where the asker holds what is kept."""
    query, twin = Query.among(DOMAIN, "a", [0]), Query.among(DOMAIN, "a", [0])
    told = curator.tell([(query, 20, 1, "")])[0]
    assert curator.find([query])[0] is not None
    changed(query, np.array([0, 1, 0, 0, 0, 0], dtype=np.uint8))  # another question by now
    assert curator.find([query])[0] is None
    changed(query, np.array([9, 0, 0, 0, 0, 0], dtype=np.uint8))  # none at all
    for use in (
        lambda: curator.find([query]),
        lambda: curator.tell([(query, 1, 1, "")]),
        lambda: curator.open_gate(10.0, PRICE).first_above([query], [Distance(0.0)]),
    ):
        with pytest.raises(InvalidQuery):
            use()
    copy = curator_module.own(twin, DOMAIN)  # as a session takes one
    for handed_out in [copy, told.question, *(found.question for found in curator.find([twin]) if found)]:
        assert isinstance(handed_out, Query)
        changed(handed_out, np.array([1, 1, 1, 1, 1, 0], dtype=np.uint8))
    honest = Query.among(DOMAIN, "a", [0])
    again = curator.find([honest])[0]
    assert isinstance(again, Told)
    assert again.value == 20
    gate = curator.open_gate(60.0, PRICE)
    assert gate.first_above([honest], [Distance(20.0)]) is None  # 20 of 120 rows; of the changed one, 100


def test_a_question_changed_after_it_was_handed_over_is_read_again(curator: Curator) -> None:
    check_changes_are_seen(curator)


class Liar(str):
    """Passes for "a" wherever it is looked up."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return other == "a"

    def __hash__(self) -> int:
        return hash("a")


def test_a_name_that_lies_reaches_nothing_that_is_remembered(curator: Curator) -> None:
    before = questions._canonical_before.cache_info().currsize
    for scope in ((Liar("b"),), Liar("b")):
        factor = Factor(("a",), np.array([1, 0, 0, 0, 0, 0], dtype=np.uint8), 1)
        object.__setattr__(factor, "scope", scope)
        with pytest.raises(InvalidQuery):
            curator.find([Query((factor,), complement=False)])
    assert questions._canonical_before.cache_info().currsize == before


@pytest.mark.parametrize("unit", [True, np.int64(1), GRID + 1, 1.0])
def test_a_unit_that_equals_one_is_not_one(curator: Curator, unit: Any) -> None:
    honest = Query.among(DOMAIN, "a", [0])
    curator.find([honest])  # remembered: equal plain values would find it
    object.__setattr__(honest.factors[0], "unit", unit)
    with pytest.raises(InvalidQuery):
        curator.find([honest])


@pytest.mark.parametrize("complement", [0, 1, np.bool_(False), "no"])
def test_what_equals_a_truth_value_is_not_one(curator: Curator, complement: Any) -> None:
    honest = Query.among(DOMAIN, "a", [0])
    curator.find([honest])
    object.__setattr__(honest, "complement", complement)
    with pytest.raises(InvalidQuery):
        curator.find([honest])


# What is told is what will be read


@pytest.mark.parametrize(
    ("note", "value"),
    [("", 0), ('quotes " and \\', -3), ("é … \u2028", 2**62), ("\x00", True), ("a", np.int64(5))],
)
def test_what_is_told_now_is_what_is_read_ever_after(curator: Curator, note: str, value: Any) -> None:
    queries = [Query.among(DOMAIN, "a", [0]), ~Query.among(DOMAIN, "b", [0, 1]), Query.among(DOMAIN, "a", [0])]
    figures: list[tuple[int | None, int | None]] = [(None, 3), (4, None), (None, None)]
    told = curator.tell([(query, value, 2, note) for query in queries], figures=figures)
    read = curator.find(queries)
    stored = [answer for answer in curator.answers() if isinstance(answer, Told)]
    assert told == read == [stored[0], stored[1], stored[0]]  # the same question told twice keeps its first answer
    assert {type(one.value) for one in told if isinstance(one, Told)} == {int}


class Wordy(str):
    __slots__ = ()

    def __str__(self) -> str:
        return self


def test_a_note_that_is_not_plain_text_is_refused(curator: Curator) -> None:
    with pytest.raises(InvalidQuery, match="note"):
        curator.tell([(Query.among(DOMAIN, "a", [0]), 1, 1, Wordy("x"))])
    assert not list(curator._ledger.log.lines())


def test_an_entry_is_sealed_as_it_is_checked() -> None:
    head = chain.Mark(4, "ab" * 32, 7)
    entry = chain.seal(head, 5, chain.Draft("told", 0, '{"a":1}', 'k"'), 7, "now")
    form = [head.hash, 5, "told", 'k"', None, 0, 7, '{"a":1}', "now"]
    assert chain.canonical(form) == json.dumps(form, sort_keys=True, separators=(",", ":"))
    assert entry.hash == chain.chain_hash(head.hash, entry) == chain.digest(form)
    step = partial(rules.step, total=100)
    assert chain.follow([entry], head, chain.State(7, {}), step)[0] == chain.mark(entry)


# How much work it is


def test_many_answers_take_few_statements(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    statements: list[str] = []
    connect = durable._connect

    def traced(path: Path) -> Any:
        db = connect(path)
        db.set_trace_callback(statements.append)
        return db

    monkeypatch.setattr(durable, "_connect", traced)
    curator._ledger.log._file.release()
    rng = np.random.default_rng(5)
    queries = [query for query in {some(rng): None for _ in range(1500)} if not query.is_constant]
    assert len(queries) > 1000
    curator.tell([(query, 1, 1, "") for query in queries])
    assert len(statements) < 40 + len(queries) / 50
    statements.clear()
    curator.find(queries)
    assert len(statements) < 10 + len(queries) / 400


def test_free_answers_are_not_read_to_find_the_bought_ones(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = curator.measure([Query.among(DOMAIN, "a", [0])], PRICE)[0]
    curator.tell([(Query.among(DOMAIN, "b", [k]), 1, 1, "") for k in range(4)])
    later = curator.measure([Query.among(DOMAIN, "a", [1])], PRICE)[0]
    read: list[int] = []
    line_of = chain.line_of

    def spy(row: Any) -> chain.Line:
        read.append(row[0])
        return line_of(row)

    monkeypatch.setattr("tacit.store.rows.line_of", spy)
    found = [one.receipt.entry for one in curator.released()]
    assert found == read == [measured.receipt.entry, later.receipt.entry]
    assert [one.receipt.entry for one in curator.released(after=found[0])] == found[1:]
    assert [receipt.entry for _, _, _, receipt in curator.purchases()] == found
    with curator._ledger.log._file.mutex:
        db = curator._ledger.log._file._connected()
        plan = db.execute(
            "EXPLAIN QUERY PLAN SELECT seq FROM entries INDEXED BY settled WHERE intent IS NOT NULL AND +seq > 5"
        ).fetchall()
    assert "COVERING INDEX settled" in str(plan)


def test_more_rows_than_one_statement_takes_are_all_stored(curator: Curator) -> None:
    outcomes = [Outcome(f"k{i}", 0, "told", "{}") for i in range(257)]
    stored = curator._ledger.settle(None, outcomes)
    assert [entry.key for entry in curator._ledger.log.lines()] == [f"k{i}" for i in range(257)]
    assert [entry.seq for entry in stored] == list(range(1, 258))
    assert curator._ledger.verify() == 257


# Planted bugs


def by_identity() -> Callable[[Any, Domain], Any]:
    seen: dict[int, tuple[Any, Any]] = {}

    def remembered(question: Any, domain: Domain) -> Any:
        if id(question) not in seen:
            seen[id(question)] = question, own(question, domain)
        return seen[id(question)][1]

    return remembered


def by_trust() -> Callable[[Any, Domain], Any]:
    """Keeps the asker's own object for everybody who asks the same."""
    seen: dict[str, Any] = {}
    return lambda question, domain: seen.setdefault(own(question, domain).key, question)  # type: ignore[union-attr]


def by_copy() -> Callable[[Any, Domain], Any]:
    """Keeps copies of its own, and would be sound if it did not hand them out."""
    seen: dict[str, Any] = {}
    return lambda question, domain: seen.setdefault((copy := own(question, domain)).key, copy)  # type: ignore[union-attr]


@pytest.mark.parametrize("plant", [by_identity, by_trust, by_copy])
def test_planted_memories_are_caught(curator: Curator, monkeypatch: pytest.MonkeyPatch, plant: Any) -> None:
    planted = plant()
    for module in (curator_module, gate_module):
        monkeypatch.setattr(module, "own", planted)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_changes_are_seen(curator)


def test_what_is_handed_out_is_not_what_is_remembered() -> None:
    """An array over remembered bytes could be written to through its address, read-only or not."""
    query = Query.among(DOMAIN, "a", [0])
    handed = own(query, DOMAIN)
    assert isinstance(handed, Query)
    weights = handed.factors[0].weights
    address = weights.__array_interface__["data"][0]

    class Writable:
        def __init__(self) -> None:
            self.__array_interface__ = dict(weights.__array_interface__, data=(address, False))

    np.asarray(Writable())[:] = [0, 0, 255, 0, 0, 0]
    assert weights[2] == 255  # the copy that was handed out is the asker's to spoil
    again = own(query, DOMAIN)
    assert isinstance(again, Query)
    assert again.factors[0].weights.tolist() == [1, 0, 0, 0, 0, 0]


def test_many_small_factors_are_not_remembered() -> None:
    wide = Domain({f"b{i}": tacit.boolean() for i in range(64)})
    questions._canonical_before.cache_clear()
    own(Query.all(Query.among(wide, name, [1]) for name in wide.names), wide)
    assert questions._canonical_before.cache_info().currsize == 0
    own(Query.all(Query.among(wide, name, [1]) for name in wide.names[:3]), wide)
    assert questions._canonical_before.cache_info().currsize == 1


@pytest.mark.parametrize(("width", "note"), [(2**63, ""), (3, "\ud83d\ude00"), (3, "\ud800")])
def test_what_would_not_be_read_back_is_refused_unpaid(curator: Curator, width: int, note: str) -> None:
    query = Query.among(DOMAIN, "a", [0])
    with pytest.raises(InvalidQuery):
        curator.tell([(query, 1, width, note)])
    with pytest.raises(InvalidQuery):
        curator.measure_around(query, PRICE, width, note)
    assert curator.spent.atoms == 0


def test_a_table_of_other_noise_is_not_told_from(curator: Curator) -> None:
    table = marginal(DOMAIN, "a")
    curator.measure([table], Loss.of("epsilon", 0.01))
    with pytest.raises(InvalidQuery, match="other noise"):
        curator.measure_around(Query.among(DOMAIN, "a", [0]), PRICE, 6, "")


def test_an_answer_found_is_in_the_steps_of_its_question(curator: Curator) -> None:
    plain, weighted = Query.among(DOMAIN, "a", [0]), Query.weighted(DOMAIN, ["a"], [1.0, 0, 0, 0, 0, 0])
    curator.tell([(plain, 40, 0, "")])
    found = curator.find([weighted])[0]
    assert isinstance(found, Told)
    assert (found.value, found.question.unit) == (40, 1)
