"""A plain count is read from its words, and what is read is what the tree says, to the last weight."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

import tacit.model.sql as sql
from tacit.errors import InvalidQuery
from tacit.model.ask import Ask
from tacit.model.attribute import boolean, category, date, integer, numeric
from tacit.model.domain import Domain
from tacit.model.sql import count

DOMAIN = Domain(
    {
        "sex": category(["F", "M", "it's"], other="another", missing="unknown"),
        "Age": integer(0, 99, width=10),
        "hours": integer(-5, 40),
        "pay": numeric([0, 10, 20.5, 40]),
        "active": boolean(missing="unknown"),
        "born": date("2020-01-01", "2020-03-31"),
        "limit": integer(0, 3),
        "data": integer(0, 3),
    }
)
VALUES = {
    "sex": ["'F'", "'M'", "'it''s'", "'nobody'", "5"],
    "Age": ["0", "20", "39", "40", "100", "23", "-1", "1e1", "'20'", "20.0"],
    "hours": ["-5", "0", "7", "41", "12.0", "-6", "007"],
    "pay": ["0", "10", "20.5", "40.", ".5", "-0.0"],
    "active": ["TRUE", "false", "'true'", "1"],
    "born": ["'2020-02-01'", "DATE '2020-02-01'", "'2021-01-01'"],
    "limit": ["0", "3", "4"],
    "data": ["1", "2"],
}
Reader = Callable[[str], Ask | str]


@pytest.fixture
def by_tree(monkeypatch: pytest.MonkeyPatch) -> Reader:
    def read(statement: str) -> Ask | str:
        with monkeypatch.context() as patched:
            patched.setattr(sql, "simple_count", lambda *_: None)
            return told(statement)

    return read


def told(statement: str) -> Ask | str:
    try:
        return sql.parse(statement, DOMAIN)
    except InvalidQuery as refusal:
        return refusal.sentence


def made(rng: random.Random) -> str:
    """A statement of the simple form or near it."""

    def comparison() -> str:
        name = rng.choice(list(VALUES))
        shown = rng.choice([name, name.upper(), f'"{name}"', name, name, f"data.{name}"])

        def value() -> str:
            return rng.choice(VALUES[name])

        listed = ", ".join(value() for _ in range(rng.randint(1, 4)))
        between = f"{shown} BETWEEN {value()} AND {value()}"
        signs = [f"{shown} {sign} {value()}" for sign in ("=", "<>", "!=", "<", "<=", ">", ">=", "==")]
        others = [f"{shown} IS NULL", f"{shown} NOT IN ({listed})", f"NOT {between}", f"({between})", shown]
        return rng.choice([*signs, f"{shown} IN ({listed})", between, *others])

    joined = f" {rng.choice(['AND', 'AND', 'AND', 'OR', 'and'])} ".join(comparison() for _ in range(rng.randint(1, 4)))
    where = rng.choice(["", f" WHERE {joined}", f" WHERE {joined}", f" WHERE {joined}"])
    count = rng.choice(["COUNT(*)", "count(*)", "COUNT(*) AS n", "COUNT(*) AS limit", "COUNT( * )", "COUNT(1)"])
    source = rng.choice(["data", "DATA", 'data AS "people"', "data AS d", '"data"', "data d", "people"])
    end = rng.choice(["", "", "", ";", " LIMIT 1", " -- a comment", ";;"])
    return f"SELECT {count} FROM {source}{where}{end}"


def test_what_is_read_is_what_the_tree_says(by_tree: Reader) -> None:
    rng = random.Random(1)
    found = answered = 0
    for _ in range(700):
        statement = made(rng)
        read, wanted = told(statement), by_tree(statement)
        assert read == wanted, statement
        assert repr(read) == repr(wanted), statement  # a 20 is no 20.0
        found += _simple(statement) is not None
        answered += not isinstance(wanted, str)
    assert 50 < found < answered < 700  # both ways were taken, and refusals were among them


def _simple(statement: str) -> Ask | None:
    tokens = list(sql.DIALECT.tokenize(statement))
    return count.simple_count(tokens, DOMAIN)


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT COUNT(*) FROM data",
        "SELECT COUNT(*) FROM data WHERE Age < 20 AND hours BETWEEN -5 AND 7 AND sex IN ('F', 'M') AND active = TRUE",
        "SELECT COUNT(*) AS n FROM data AS \"people\" WHERE pay >= 10 AND sex <> 'F'",
    ],
)
def test_the_commonest_statements_need_no_tree(statement: str) -> None:
    assert _simple(statement) is not None


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT COUNT(*), 1 FROM data",
        "SELECT SUM(*) FROM data",
        "SELECT COUNT(*) FROM other",
        "SELECT COUNT(*) FROM data WHERE Age < 20 OR hours < 0",
        "SELECT COUNT(*) FROM data WHERE NOT Age < 20",
        "SELECT COUNT(*) FROM data WHERE Age < 20 GROUP BY sex",
        "SELECT COUNT(*) FROM data WHERE Age < 20 LIMIT 1",
        "SELECT COUNT(*) FROM data; SELECT COUNT(*) FROM data",
        "SELECT COUNT(*) FROM data WHERE Age < 23",
        "SELECT COUNT(*) FROM data WHERE agee < 20",
        "SELECT COUNT(*) FROM data WHERE hours IN (" + ", ".join(["1"] * 200) + ")",
        "SELECT COUNT(*) FROM data WHERE Age < " + "0" * 5_000 + "20",
        "SELECT COUNT(*) FROM data WHERE",
        "SELECT COUNT(*)",
        "",
    ],
)
def test_everything_else_is_read_by_way_of_the_tree(statement: str) -> None:
    assert _simple(statement) is None


@pytest.mark.parametrize(
    ("column", "suggestion"), [("person", None), ("did you mean", None), ("a'; did you mean 'b", None), ("agee", "Age")]
)
def test_who_counts_persons_is_told_what_counts_them_unless_another_column_was_meant(
    column: str, suggestion: str | None
) -> None:
    for counted in ("COUNT(", "COUNT(DISTINCT "):
        with pytest.raises(InvalidQuery) as refusal:
            sql.parse(f'SELECT {counted}"{column}") FROM data', DOMAIN)
        assert ("how many persons" in refusal.value.sentence) == (suggestion is None)
