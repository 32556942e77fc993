"""Conditions at the ends of a clamped attribute: an answer says that what lies outside counts there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.model.aggregate import EVERYONE
from tacit.model.formula import Formula, Middles
from tacit.model.query import Query
from tacit.model.select import Column, GroupBy, Select
from tacit.session import Session

NOTE = "stay is clamped: what lies outside 1 to 30 counts at the nearest end"


def opened(folder: Path, **more: object) -> Session:
    rows = pd.DataFrame({"stay": [day % 40 for day in range(1000)], "sex": ["F", "M"] * 500})
    domain = tacit.Domain({"stay": tacit.integer(1, 30, clamp=True), "sex": tacit.category(["F", "M"])})
    budget = tacit.Budget(epsilon=5.0, delta=1e-9)
    settings = {"mechanism": "direct", "questions": 50} | more
    return tacit.open(data=rows, domain=domain, budget=budget, ledger=folder / "l.tacit", start=True, **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "where",
    ["stay > 30", "stay <= 30", "stay >= 1", "stay = 30", "stay BETWEEN 20 AND 30", "NOT (stay <= 30 OR sex = 'F')"],
)
def test_a_condition_at_an_end_says_that_values_were_moved_there(tmp_path: Path, where: str) -> None:
    with opened(tmp_path) as session:
        for sql in (
            f"SELECT COUNT(*) FROM data WHERE {where}",
            f"SELECT COUNT(*) FILTER (WHERE {where}) / COUNT(*) FROM data",
            f"SELECT COUNT(*) FILTER (WHERE {where}) AS n, COUNT(*) FROM data",
        ):
            assert NOTE in session.ask(sql).note


@pytest.mark.parametrize("where", ["stay >= 25", "stay > 29", "stay < 30", "stay <= 29", "stay IN (2, 29)"])
def test_what_is_right_about_values_outside_has_no_note(tmp_path: Path, where: str) -> None:
    with opened(tmp_path) as session:
        assert NOTE not in session.ask(f"SELECT COUNT(*) FROM data WHERE {where}").note


def test_expressions_batches_tables_and_sharper_answers_have_it_too(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        month = tacit.count(stay=(1, 30))
        assert NOTE in session.ask(month).note
        assert [NOTE in one.note for one in session.ask_many([month, tacit.count(sex="F")])] == [True, False]
        assert NOTE in session.ask("SELECT sex, COUNT(*) FROM data WHERE stay = 30 GROUP BY sex").note
        assert NOTE in session.ask("SELECT COUNT(*) FROM data WHERE stay = 30", within=60).note
        assert NOTE in session.ask("SELECT SUM(stay) FROM data WHERE stay <= 30", within=900).note
        assert session.table("sex", where="stay = 30").values.sum()  # a condition is a condition


def test_a_certified_session_says_so_as_well(tmp_path: Path) -> None:
    with opened(tmp_path, mechanism="iterative", warm=0.7, certify=0.2) as session:
        assert NOTE in session.ask("SELECT COUNT(*) FROM data WHERE stay > 30").note


def test_values_that_were_moved_are_told_of_wherever_they_count(tmp_path: Path) -> None:
    """Sums, means, spreads, quantiles, groups and curves of a clamped attribute say so, unless no end is among them."""
    domain = tacit.Domain({"los": tacit.integer(1, 14, clamp=True), "ward": tacit.category(["a", "b"])})
    rows = pd.DataFrame({"los": [1 + i % 40 for i in range(2_000)], "ward": ["a", "b"] * 1_000})
    budget, said = tacit.Budget(epsilon=8.0, delta=1e-9), "los is clamped: what lies outside 1 to 14 counts at"
    between = "FROM data WHERE los BETWEEN 3 AND 10"
    with tacit.open(
        data=rows, domain=domain, budget=budget, ledger=tmp_path / "l.tacit", mechanism="direct"
    ) as session:
        told = [
            *(
                f"SELECT {what} FROM data"
                for what in ("SUM(los)", "AVG(los)", "STDDEV(los)", "QUANTILE_CONT(los, 0.9)")
            ),
            "SELECT los, COUNT(*) FROM data GROUP BY los",
            "SELECT ward, AVG(los), MEDIAN(los) FROM data GROUP BY ward",
            "SELECT COUNT(*) * 2 FROM data WHERE los = 14",
        ]
        untold = [
            *(f"SELECT {what} {between}" for what in ("SUM(los)", "AVG(los)", "MEDIAN(los)", "COUNT(*)")),
            f"SELECT los, COUNT(*) {between} GROUP BY los",
            "SELECT ward, COUNT(*) FROM data GROUP BY ward",
        ]
        for sql in told:
            assert str(session.ask(sql)).count(said) == 1, sql
        for sql in untold:
            assert said not in str(session.ask(sql)), sql
        for shown in (session.cdf("los"), session.histogram("los", width=7), session.mean("los")):
            assert said in shown.note


@dataclass(frozen=True)
class Whole:
    """An aggregate that the library does not know: how many rows have a value at all. A class and nothing else."""

    domain: tacit.Domain
    name: str
    where: Query = EVERYONE

    def __post_init__(self) -> None:
        inside = Middles.of(self.domain, self.name, self.where)
        formula = Formula((inside.weighed(np.where(inside.inside, 1.0, 0.0)),), lambda parts, _: parts[0])
        object.__setattr__(self, "formula", formula)

    @property
    def valued(self) -> tuple[str, ...]:
        return (self.name,)

    def words(self, domain: tacit.Domain) -> str:
        return f"the rows with a value of {self.name}"


def test_a_new_aggregate_says_what_was_moved_without_being_named_anywhere(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        domain = session.domain
        inside = tacit.count(stay=(5, 20)).bind(domain)
        whole, middle = (cast(Any, Whole(domain, "stay", where)) for where in (EVERYONE, inside))
        assert NOTE in session.answer(whole).note
        assert NOTE not in session.answer(middle).note
        by_sex = (GroupBy("sex", "sex"),)
        assert NOTE in session.answer(Select(domain, (Column(whole, "n"),), by_sex)).note
        assert NOTE not in session.answer(Select(domain, (Column(middle, "n"),), by_sex)).note
