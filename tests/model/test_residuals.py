"""Residuals as a question: what cannot be made or asked, and what comes back from forms, ledgers and files."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from curators import curating, public_of
from support import events
from tacit.errors import InvalidQuery
from tacit.model.attribute import Attribute, boolean, integer
from tacit.model.budget import Budget, Loss
from tacit.model.description import describe
from tacit.model.domain import Domain
from tacit.model.entry import Measured, Measurement, decode, encode
from tacit.model.noise_law import Noise
from tacit.model.residuals import Residuals
from tacit.model.workload import MAX_ANSWERS, check, from_dict, key, marginal, to_dict, unit
from tacit.public import verify
from tacit.session import Session
from tacit.show.report import page
from tacit.trusted.records import Records
from tacit.trusted.sensitivity import noise_of, sensitivity, truth

DOMAIN = Domain({"b": integer(0, 2), "a": integer(0, 3), "c": boolean(), "only": integer(0, 0)})
NAMES = "abcdefg"
ALL = Residuals((("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c")), (3, 3, 3, 2, 2, 2))

scopes = st.sets(
    st.sets(st.sampled_from(NAMES), min_size=1, max_size=4).map(lambda names: tuple(sorted(names))), min_size=1
)


@st.composite
def questions(draw: st.DrawFn) -> Residuals:
    found = sorted(draw(scopes), key=lambda scope: (len(scope), scope))
    weights = draw(st.lists(st.integers(1, 2**20), min_size=len(found), max_size=len(found)))
    return Residuals(tuple(found), tuple(weights))


@given(questions())
def test_what_is_made_comes_back_from_its_form_its_key_and_its_entry(question: Residuals) -> None:
    read = from_dict(json.loads(json.dumps(to_dict(question))))
    assert read == question
    assert hash(read) == hash(question)
    assert key(read) == key(question)
    values = np.arange(7)
    entry = decode(*encode(Measurement(question, values, 1, Noise("gaussian", 3.5))))
    assert isinstance(entry, Measurement)
    assert (entry.question, entry.values.tolist(), entry.unit) == (question, values.tolist(), 1)
    assert encode(entry) == encode(Measurement(question, values, 1, Noise("gaussian", 3.5)))


@given(questions(), questions())
def test_two_questions_have_one_key_only_if_they_are_the_same(first: Residuals, second: Residuals) -> None:
    assert (key(first) == key(second)) == (first == second)


@given(questions(), st.lists(st.integers(2, 5), min_size=7, max_size=7))
def test_answers_are_as_many_as_the_size_and_move_at_most_as_stated(question: Residuals, sizes: list[int]) -> None:
    attributes: dict[str, Attribute] = {name: integer(0, size - 1) for name, size in zip(NAMES, sizes, strict=True)}
    domain = Domain(attributes)
    check(question, domain)
    codes = [np.array([0, size - 1], dtype=np.uint8) for size in sizes]
    first, second = (truth(question, Records(domain, codes, np.array(counts))) for counts in ([3, 1], [2, 2]))
    assert first.shape == (question.size(domain),)
    moved, claimed = np.abs(first - second).astype(object), sensitivity(question, domain)
    assert moved.sum() <= claimed.l1
    assert (moved**2).sum() <= claimed.l2_squared


WRONG: dict[str, tuple[Any, Any]] = {
    "nothing": ((), ()),
    "the table of no attribute": (((),), (1,)),
    "an attribute twice": ((("a", "a"),), (1,)),
    "names out of order": ((("b", "a"),), (1,)),
    "scopes out of order": ((("b",), ("a",)), (1, 1)),
    "the larger first": ((("a", "b"), ("c",)), (1, 1)),
    "a scope twice": ((("a",), ("a",)), (1, 1)),
    "names of another type": (((1,),), (1,)),
    "no weight": ((("a",),), ()),
    "a weight too many": ((("a",),), (1, 1)),
    "weight 0": ((("a",),), (0,)),
    "a weight below 0": ((("a",),), (-1,)),
    "a weight in fractions": ((("a",),), (1.0,)),
    "a truth value as weight": ((("a",),), (True,)),
    "a weight of numpy": ((("a",),), (np.int64(1),)),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_question_cannot_be_made(wrong: str) -> None:
    with pytest.raises(InvalidQuery):
        Residuals(*WRONG[wrong])


def test_what_was_made_cannot_change() -> None:
    names, weights = ["a"], [1]
    question = Residuals((names,), weights)  # type: ignore[arg-type]
    names.append("b")
    weights[0] = 5
    assert question == Residuals((("a",),), (1,))


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (Residuals((("nobody",),), (1,)), "other than"),
        (Residuals((("A",),), (1,)), "other than"),
        (Residuals((("only",),), (1,)), "only has a single value"),
        (Residuals((("a",), ("a", "only")), (1, 1)), "only has a single value"),
        (Residuals((("a",),), (2**30 + 1,)), "at most 4,294,967,296"),
    ],
)
def test_a_question_about_another_domain_is_refused(question: Residuals, why: str) -> None:
    with pytest.raises(InvalidQuery, match=why):
        check(question, DOMAIN)


def test_weight_times_cells_may_reach_the_limit() -> None:
    check(Residuals((("a",),), (2**30,)), DOMAIN)


def test_a_question_has_no_more_answers_than_can_be_drawn() -> None:
    wide = Domain({"x": integer(0, 2**11 - 1), "y": integer(0, 2**11 - 1)})
    check(Residuals((("x", "y"),), (1,)), wide)
    with pytest.raises(InvalidQuery, match=f"{MAX_ANSWERS:,}"):
        check(Residuals((("x",), ("x", "y")), (1, 1)), wide)


def test_what_could_exceed_64_bits_is_refused_before_anything_is_paid(tmp_path: Path) -> None:
    rows = 2**30 + 4
    held = Records(DOMAIN, [np.zeros(1, dtype=np.uint8)] * 4, np.array([rows]))
    with curating(tmp_path, held, DOMAIN, Budget(epsilon=1.0, delta=1e-9)) as curator:
        loss = Loss.of("gdp", 1e-3)
        with pytest.raises(InvalidQuery, match="beyond 2\\^62"):
            curator.measure([Residuals((("a",),), (2**30,))], loss)
        assert public_of(curator).spent.atoms == 0
        (found,) = curator.measure([Residuals((("a",),), (2**29,))], loss)
        assert found.values.shape == (4,)


def test_in_words() -> None:
    assert describe(ALL, DOMAIN) == "6 tables of up to 2 attributes in one release"
    assert describe(Residuals((("a",), ("b",)), (1, 1)), DOMAIN) == "2 tables of one attribute in one release"
    assert describe(Residuals((("a", "b"),), (1,)), DOMAIN) == "1 table of up to 2 attributes in one release"


# -- through the ledger and a published file --------------------------------------------------------------------------

PEOPLE = tacit.Domain({"a": tacit.integer(0, 3), "b": tacit.integer(0, 2), "c": tacit.boolean()})
PLACES = np.arange(600)
ROWS = pd.DataFrame({"a": PLACES % 4, "b": PLACES % 3, "c": PLACES % 5 == 0})


MECHANISMS: dict[str, dict[str, Any]] = {
    "direct": {"questions": 50},
    "iterative": {"hits": 4, "questions": 50},
    "median": {"warm": 0, "hits": 4, "questions": 50, "databases": 10, "records": 30, "seed": 7},
    "histogram": {},
}


def start(folder: Path, mechanism: str, delta: float) -> Session:
    return tacit.open(
        data=ROWS,
        domain=PEOPLE,
        budget=tacit.Budget(epsilon=3.0, delta=delta),
        ledger=folder / "l.tacit",
        mechanism=mechanism,
        start=True,
        **MECHANISMS[mechanism],
    )


@pytest.mark.parametrize(("mechanism", "delta"), [("direct", 0.0), *((mechanism, 1e-9) for mechanism in MECHANISMS)])
def test_a_release_is_bought_once_kept_published_and_verified(tmp_path: Path, mechanism: str, delta: float) -> None:
    with start(tmp_path, mechanism, delta) as session:
        assert session._curator is not None
        loss = session.total.split(10)
        (bought,) = session._curator.measure([ALL], loss)
        assert bought.cost <= loss
        assert bought.noise == noise_of(ALL, PEOPLE, loss, 1)
        assert bought.unit == unit(ALL)
        spent = session.spent
        (again,) = session._curator.measure([ALL], loss)
        assert (again.values.tolist(), session.spent) == (bought.values.tolist(), spent)
        # Whatever answers, answers on beside it.
        session.ask(tacit.count(a=1, c=True))
        session.table("a", "b")
        words = [past.question for past in session.history]
        assert words.count("6 tables of up to 2 attributes in one release") == 1
        (event,) = (event for event in events(session) if event.receipt == bought.receipt)
        assert event.kind == "table"
        assert "in one release" in page(session)
        session.publish(tmp_path / "p.jsonl")
    with start(tmp_path, mechanism, delta) as later:
        assert kept(later).values.tolist() == bought.values.tolist()
    reading = tacit.read(tmp_path / "p.jsonl")
    found = kept(reading)
    assert (found.values.tolist(), found.noise, found.cost) == (bought.values.tolist(), bought.noise, bought.cost)
    assert reading._public.measured(ALL) is not None
    assert reading._public.measured(marginal(PEOPLE, "a", "c")) is None
    verify(tmp_path / "p.jsonl")


def kept(session: Session) -> Measured:
    (found,) = (one for one in session._public.released() if isinstance(one.question, Residuals))
    return found


def test_all_tables_of_a_wide_domain_are_priced_at_once() -> None:
    attributes: dict[str, Attribute] = {f"x{i:02}": integer(0, 4) for i in range(14)}
    domain = Domain(attributes)
    scopes = [scope for order in (1, 2, 3) for scope in combinations(domain.names, order)]
    question = Residuals(tuple(scopes), (1,) * len(scopes))
    check(question, domain)
    assert question.size(domain) == 14 * 5 + 91 * 25 + 364 * 125
    assert sensitivity(question, domain).l2_squared < sum(
        sensitivity(Residuals((scope,), (1,)), domain).l2_squared for scope in scopes
    )
