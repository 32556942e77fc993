"""One question has one answer, in every form in which it can be asked, and is paid once: for every mechanism."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from support import once
from tacit.model.table import Listing
from tacit.session import Session

N = 3_000
RNG = np.random.default_rng(5)
SEXES, REGIONS = ["F", "M"], ["north", "east", "south", "west"]
ROWS = pd.DataFrame(
    {
        "sex": RNG.choice(SEXES, N, p=[0.6, 0.4]),
        "region": RNG.choice(REGIONS, N, p=[0.4, 0.3, 0.2, 0.1]),
        "age": np.where(RNG.random(N) < 0.05, None, np.clip(RNG.normal(40, 18, N), 0, 79).astype(int)),
        "pay": RNG.integers(0, 40, N),
        "smoker": RNG.integers(0, 2, N),
    }
)
DOMAIN = tacit.Domain(
    {
        "sex": tacit.category(SEXES),
        "region": tacit.category(REGIONS),
        "age": tacit.integer(0, 79, width=10, missing="unknown"),
        "pay": tacit.integer(0, 39, width=10),
        "smoker": tacit.integer(0, 1),
    }
)
SOURCE = once(ROWS)
MECHANISMS: dict[str, dict[str, Any]] = {
    "direct": {"questions": 20},
    "histogram": {},
    "iterative": {"questions": 100, "hits": 20, "warm": 0.5},
    "iterative from nothing": {"mechanism": "iterative", "questions": 100, "hits": 30, "warm": 0.0},
    "median": {"warm": 0, "questions": 50, "hits": 20, "databases": 20},
}
BUDGETS = {"gaussian": tacit.Budget(epsilon=8.0, delta=1e-9), "laplace": tacit.Budget(epsilon=8.0, delta=0.0)}


class Told(NamedTuple):
    """A count as one form of asking shows it: the value, its bar where that is this count's alone, and what it cost."""

    value: float
    error: float | None
    alone: bool


Form = Callable[[Session], Told]


def told(answer: Any, *, scale: float = 1.0) -> Told:
    assert isinstance(answer, tacit.Answer)
    error = None if answer.error is None else answer.error * scale
    return Told(round(answer.value * scale, 6), None if error is None else round(error, 6), True)


def cell(table: Any, *labels: str) -> Told:
    """A cell of a table, whose bar holds for every cell and may be wider than this one's own."""
    if isinstance(table, Listing):
        row = next(row for row in table.listed if row.labels == labels)
        return Told(row.values[0], row.errors[0], False)
    assert isinstance(table, tacit.Table)
    return Told(next(value for names, value in table.rows() if names == labels), table.error, False)


def count(**conditions: Any) -> Form:
    return lambda s: told(s.ask(tacit.count(**conditions)))


def sql(where: str) -> Form:
    return lambda s: told(s.ask(f"SELECT COUNT(*) FROM data WHERE {where}"))


def rest(where: str) -> Form:
    def ask(session: Session) -> Told:
        found = told(session.ask(f"SELECT COUNT(*) FROM data WHERE NOT ({where})"))
        return Told(N - found.value, found.error, found.alone)

    return ask


def share(**conditions: Any) -> Form:
    return lambda s: told(s.fraction(tacit.count(**conditions)), scale=N)


def group(names: str, where: str, *labels: str) -> Form:
    condition = f"WHERE {where}" if where else ""
    return lambda s: cell(s.ask(f"SELECT {names}, COUNT(*) FROM data {condition} GROUP BY {names}"), *labels)


def wider(name: str, width: int, label: str) -> Form:
    words = f"SELECT FLOOR({name} / {width}) * {width} AS part, COUNT(*) AS n FROM data GROUP BY part"
    return lambda s: cell(s.ask(words), label)


def between(name: str, low: int, high: int) -> Form:
    return lambda s: told(s.range(name, low, high))


def bar_of(name: str, label: str, width: int | None = None) -> Form:
    return lambda s: cell(s.histogram(name, width=width), label)


def step(name: str, at: int) -> Form:
    def ask(session: Session) -> Told:
        found = session.cdf(name)
        return Told(float(found.values[at]), found.error, False)

    return ask


# Forms of the same question.
QUESTIONS: dict[str, tuple[Form, ...]] = {
    "women": (
        count(sex="F"), sql("sex = 'F'"), sql("NOT sex <> 'F'"), rest("sex = 'F'"), share(sex="F"),
        group("sex", "", "F"),
        lambda s: told(s.ask("SELECT SUM(CASE WHEN sex = 'F' THEN 1 ELSE 0 END) FROM data")),
        lambda s: cell(s.table("sex"), "F"),
        lambda s: cell(s.ask("SELECT sex, COUNT(*) AS n FROM data GROUP BY sex ORDER BY n DESC"), "F"),
    ),
    "in the east": (
        count(region="east"), sql("region = 'east'"), rest("region = 'east'"), share(region="east"),
        group("region", "", "east"), lambda s: cell(s.table("region"), "east"),
    ),
    "in their twenties": (
        count(age=(20, 29)), sql("age BETWEEN 20 AND 29"), between("age", 20, 29), share(age=(20, 29)),
        bar_of("age", "20–29"), group("age", "", "20–29"), group("age", "age < 40", "20–29"),
    ),
    "below forty": (
        count(age=(0, 39)), sql("age < 40"), between("age", 0, 39), step("age", 3), bar_of("age", "0–39", 40),
        wider("age", 40, "0–39"), share(age=(0, 39)),
    ),
    "of any age": (
        count(age=(0, 79)), sql("age IS NOT NULL"), between("age", 0, 79), step("age", 7), rest("age IS NOT NULL"),
    ),
    "paid up to twenty": (count(pay=(0, 19)), between("pay", 0, 19), step("pay", 1), wider("pay", 20, "0–19")),
    "smokers": (
        count(smoker=1), sql("smoker = 1"), lambda s: told(s.sum("smoker")), group("smoker", "", "1"),
        between("smoker", 1, 1), bar_of("smoker", "1"),
    ),
    "eastern women": (
        count(sex="F", region="east"), sql("sex = 'F' AND region = 'east'"), group("region", "sex = 'F'", "east"),
        group("sex", "region = 'east'", "F"), group("region, sex", "", "east", "F"),
        share(sex="F", region="east"), rest("sex = 'F' AND region = 'east'"),
    ),
    "a rectangle": (
        count(age=(20, 39), pay=(0, 19)), sql("age BETWEEN 20 AND 39 AND pay < 20"),
        lambda s: told(s.rectangle({"age": (20, 39), "pay": (0, 19)})), share(age=(20, 39), pay=(0, 19)),
    ),
}  # fmt: skip
# What is bought in between, which tells some of these questions, and may tell them better.
BETWEEN: tuple[Callable[[Session], object], ...] = (
    lambda s: s.table("age", "sex"),
    lambda s: s.table("region", "sex"),
    lambda s: s.table("pay", where=tacit.count(sex="F")),
    lambda s: s.cdf("age", share=0.2),
    lambda s: s.cdf("pay", share=0.1),
    lambda s: s.quantile("age", 0.5),
    lambda s: s.mean("pay"),
    lambda s: s.ask("SELECT region, AVG(age) FROM data GROUP BY region"),
    lambda s: s.rectangle({"age": (0, 39), "pay": (0, 19)}, share=0.1),
    lambda s: s.release([["sex"], ["age"]], rounds=1, share=0.05, alpha=0.0001),
)
FORMS = [(name, at) for name, forms in QUESTIONS.items() for at in range(len(forms))]
Step = tuple[str, int] | int
STEPS = st.lists(
    st.one_of(st.sampled_from(FORMS), st.sampled_from(FORMS), st.integers(0, len(BETWEEN) - 1)), min_size=3, max_size=14
)


def opened(folder: Path, mechanism: str, noise: str) -> Session:
    given = {"mechanism": mechanism} | MECHANISMS[mechanism]
    return tacit.open(data=SOURCE, domain=DOMAIN, budget=BUDGETS[noise], ledger=folder / "l.tacit", start=True, **given)


def follow(folder: Path, mechanism: str, noise: str, steps: list[Step]) -> None:
    """Ask as the steps say, in sessions that are opened anew now and then; every question keeps its first answer."""
    first: dict[str, Told] = {}
    session = opened(folder, mechanism, noise)
    try:
        for number, now in enumerate(steps):
            if number % 5 == 4:
                session.close()
                session = opened(folder, mechanism, noise)
            spent = session.spent
            if isinstance(now, int):
                try:
                    BETWEEN[now](session)
                except tacit.TacitError:
                    continue  # used up, or not for this mechanism: what was told stays told
                continue
            name, at = now
            try:
                found = QUESTIONS[name][at](session)
            except tacit.BudgetExhausted:
                assert name not in first, f"{name} was told before"
                continue
            before = first.setdefault(name, found)
            assert found.value == before.value, (steps, number, found, before)
            if found.alone and before.alone:
                assert found.error == before.error, (steps, number, found, before)
            if name in first and before is not found and found.alone:
                assert session.spent == spent, (steps, number)
        tacit.publish(session, folder / "p.jsonl")
    finally:
        session.close()
    reading = tacit.read(folder / "p.jsonl")
    for name, before in first.items():
        found = QUESTIONS[name][0](reading)
        assert found.value == before.value, (steps, name, found, before)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("mechanism", ["direct", "histogram", "iterative", "iterative from nothing"])
@settings(max_examples=12)
@given(steps=STEPS)
def test_every_form_gives_the_first_answer(mechanism: str, noise: str, steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        follow(Path(folder), mechanism, noise, steps)


@settings(max_examples=4)
@given(steps=STEPS)
def test_every_form_gives_the_first_answer_of_databases_that_vote(steps: list[Step]) -> None:
    pytest.importorskip("numba")
    with tempfile.TemporaryDirectory() as folder:
        follow(Path(folder), "median", "gaussian", steps[:8])


@pytest.mark.parametrize("mechanism", ["direct", "histogram", "iterative", "iterative from nothing"])
@pytest.mark.parametrize("name", QUESTIONS)
def test_whichever_form_comes_first(mechanism: str, name: str, tmp_path: Path) -> None:
    forms: list[Step] = [(name, at) for at in range(len(QUESTIONS[name]))]
    for at in range(len(forms)):
        folder = tmp_path / str(at)
        folder.mkdir()
        follow(folder, mechanism, "gaussian", forms[at:] + forms[:at])


@pytest.mark.parametrize("mechanism", ["direct", "histogram", "iterative"])
def test_a_group_that_makes_its_condition_needless_has_the_count_of_the_group(mechanism: str, tmp_path: Path) -> None:
    """Of two halves one is n less the other, which a sum of noisy cells is not."""
    given = {"mechanism": mechanism} | MECHANISMS[mechanism]
    budget = tacit.Budget(epsilon=0.1, delta=1e-9)
    with tacit.open(data=SOURCE, domain=DOMAIN, budget=budget, ledger=tmp_path / "l", start=True, **given) as session:
        for name, label, condition in (
            ("sex", "F", "sex = 'F'"),
            ("smoker", "0", "smoker = 0"),
            ("sex", "M", "sex = 'M'"),
        ):
            for other in ("region = 'east'", "pay < 10", "region = 'east' AND pay < 10"):
                where = f"{condition} OR ({other})"
                listed = cell(session.ask(f"SELECT {name}, COUNT(*) FROM data WHERE {where} GROUP BY {name}"), label)
                alone = told(session.ask(f"SELECT COUNT(*) FROM data WHERE {condition} AND ({where})"))
                assert listed.value == alone.value, (condition, other)
                assert alone.error is None or (listed.error or np.inf) >= alone.error
