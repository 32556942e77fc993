"""Groups that the condition leaves no row for: what is declared says all about them, and they spoil nothing else."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.client.message import read_answer
from tacit.model.possible import possible
from tacit.model.query import Query
from tacit.model.table import Listing, Table
from tacit.questions import Questions
from tacit.replies import AnswerLine
from tacit.session import Session

N = 4_000
WARDS = ["north", "east", "south", "west"]
DOMAIN = tacit.Domain(
    {
        "age": tacit.integer(0, 99, width=5),
        "sex": tacit.category(["F", "M"]),
        "ward": tacit.category(WARDS),
        "pay": tacit.integer(0, 99, width=10, missing="unknown"),
    }
)
MECHANISMS = ["direct", "histogram", "iterative"]
# What each is of a group without rows: 0 where it is added up, NULL where it is divided by their number.
ASKED = {
    "COUNT(*) AS n": 0.0,
    "SUM(age)": 0.0,
    "AVG(age)": math.nan,
    "STDDEV(age)": math.nan,
    "CORR(age, pay)": math.nan,
    "MEDIAN(age)": math.nan,
    "ROUND(AVG(age) / 2, 1)": math.nan,
}


def opened(folder: Path, mechanism: str = "direct", epsilon: float = 8.0) -> Session:
    rng = np.random.default_rng(1)
    rows = pd.DataFrame(
        {
            "age": rng.integers(0, 100, N),
            "sex": rng.choice(["F", "M"], N),
            "ward": rng.choice(WARDS, N),
            "pay": np.where(rng.random(N) < 0.2, np.nan, rng.integers(0, 100, N)),
        }
    )
    budget = tacit.Budget(epsilon=epsilon, delta=1e-9)
    more = {} if mechanism == "histogram" else {"questions": 100}
    return tacit.open(
        data=rows, domain=DOMAIN, budget=budget, ledger=folder / "l.tacit", mechanism=mechanism, start=True, **more
    )


def table(session: Questions, sql: str) -> Table:
    found = session.ask(sql)
    assert isinstance(found, Table)
    return found


def listing(session: Questions, sql: str) -> Listing:
    found = session.ask(sql)
    assert isinstance(found, Listing)
    return found


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_table_has_no_noise_where_no_row_can_be(tmp_path: Path, mechanism: str) -> None:
    with opened(tmp_path, mechanism) as session:
        found = table(session, "SELECT age, COUNT(*) FROM data WHERE age < 15 GROUP BY age")
        assert found.values[3:].tolist() == [0] * 17
        assert found.errors[3:].tolist() == [0] * 17
        assert found.error is not None
        assert (found.errors[:3] == found.error).all()
        assert found.frame().to_pandas()["error"].tolist() == found.errors.tolist()
        assert "no row for 17 of 20 groups" in found.note
        # It says as much as the cell in the middle of those that rows can be in.
        values, own = (np.where(found.errors, many, 0.0) for many in (200.0, 5.0))
        sharp = replace(found, values=values, own=own, facts=found.facts.within(5))
        assert sharp.says == "sharp"
        assert replace(sharp, own=None).says == "rough"
        alone = table(session, "SELECT age, COUNT(*) FROM data GROUP BY age")
        assert (alone.errors > 0).all()


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("asked", ASKED)
def test_what_is_impossible_is_known_and_leaves_the_others_their_bars(
    tmp_path: Path, mechanism: str, asked: str
) -> None:
    with opened(tmp_path, mechanism, epsilon=50.0) as session:
        found = listing(session, f"SELECT ward, {asked} FROM data WHERE ward = 'north' GROUP BY ward")
        north, *others = found.listed
        for row in others:
            np.testing.assert_equal(row.values, (ASKED[asked],))
            assert row.errors == (0,)
        # About 1,000 rows, with bars of a few dozen at most.
        assert north.errors[0] is not None
        assert north.errors[0] == found.error
        assert "nothing is" not in str(found)


def test_a_part_of_a_value_may_be_impossible_by_itself(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        found = listing(
            session, "SELECT ward, COUNT(*) FILTER (WHERE ward = 'north') AS n, COUNT(*) FROM data GROUP BY ward"
        )
        for row in found.listed[1:]:
            assert (row.values[0], row.errors[0]) == (0, 0)
            assert row.errors[1]
        # Nobody in the group of unknown pay has a pay, and the other groups have their means.
        *known, unknown = listing(session, "SELECT pay, AVG(pay) FROM data GROUP BY pay").listed
        assert math.isnan(unknown.values[0])
        assert unknown.errors == (0,)
        assert all(row.errors[0] is not None for row in known)


def test_what_is_put_together_of_groups_counts_those_that_rows_can_be_in(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        counts = "(SELECT ward, COUNT(*) AS n FROM data WHERE ward = 'north' GROUP BY ward) t"
        (row,) = listing(session, f"SELECT SUM(n), MAX(n) FROM {counts}").listed
        one = table(session, "SELECT ward, COUNT(*) FROM data WHERE ward = 'north' GROUP BY ward")
        assert row.values == (one.values[0], one.values[0])
        assert row.errors == (one.error, one.error)
        assert one.values.sum() == session.ask("SELECT COUNT(*) FROM data WHERE ward = 'north'").value  # type: ignore[union-attr]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_median_is_in_a_bin_that_the_condition_leaves(tmp_path: Path, mechanism: str) -> None:
    with opened(tmp_path, mechanism, epsilon=0.01) as session:  # noise alone
        for row in listing(session, "SELECT sex, MEDIAN(age) FROM data WHERE age >= 40 AND age < 50 GROUP BY sex"):
            assert math.isnan(row[1][0]) or 40 <= row[1][0] < 50
        found = session.quantile("age", 0.5, where="age >= 40 AND age < 50")
        assert {found.value, found.low, found.high} <= {"40–44", "45–49"}
        assert found.limits == ("40–44", "45–49")


def test_nothing_is_bought_where_no_row_has_a_value(tmp_path: Path) -> None:
    with opened(tmp_path) as session:
        for sql in ("SELECT MEDIAN(pay) FROM data", "SELECT sex, MEDIAN(pay) FROM data"):
            by = " GROUP BY sex" if "sex" in sql else ""
            with pytest.raises(tacit.InvalidQuery, match="no row that meets the condition has a value of pay"):
                session.ask(f"{sql} WHERE pay IS NULL{by}")
        assert not session.status().spent.atoms


def test_a_published_file_and_a_server_say_the_same(tmp_path: Path) -> None:
    statements = [
        "SELECT ward, COUNT(*) FROM data WHERE ward = 'north' GROUP BY ward",
        "SELECT ward, COUNT(*) AS n, AVG(age), MEDIAN(age) FROM data WHERE ward = 'north' GROUP BY ward",
    ]
    with opened(tmp_path) as session:
        for sql in statements:
            session.ask(sql)
        here = [session.ask(sql).to_dict() for sql in statements]
        tacit.publish(session, tmp_path / "p.jsonl")
    read = tacit.read(tmp_path / "p.jsonl")
    for sql, mine in zip(statements, here, strict=True):
        theirs = read.ask(sql).to_dict()
        assert {name: theirs[name] for name in ("rows", "says", "note")} == {
            name: mine[name] for name in ("rows", "says", "note")
        }
    line = msgspec.convert({"kind": "table", **here[0]}, AnswerLine)
    sent = read_answer(line)
    assert isinstance(sent, Table)
    assert sent.own is not None
    assert (sent.own == 0).tolist() == [False, True, True, True]


def test_the_possible_values_are_those_of_the_rows_that_meet_a_condition() -> None:
    """Against all rows of a small domain, for conditions of every form."""
    domain = tacit.Domain({name: tacit.category(["0", "1", "2"]) for name in "abc"})
    among = {name: Query.among(domain, name, [1]) for name in "abc"}
    a, b, c = among.values()
    conditions = [a, ~a, a & b, ~(a & b), a | (b & c), ~(a | (b & c)), (a | b) & c, a & ~a, a | ~a, (a & b) | (~a & ~b)]
    for where in conditions:
        weights = where.table("abc", (3, 3, 3))
        for names in ("a", "b", "ab", "ba", "cb", "acb"):
            true = np.zeros([3] * len(names), dtype=bool)
            for row in product(range(3), repeat=3):
                if weights[row]:
                    true[tuple(row["abc".index(name)] for name in names)] = True
            assert (possible(where, list(names), true.shape) == true).all()
