"""Conditions against an oracle: DuckDB runs the same WHERE on random rows, NULLs and three-valued logic included."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pytest

from tacit.errors import InvalidQuery
from tacit.model.ask import Count, Select
from tacit.model.attribute import boolean, category, date, integer, numeric
from tacit.model.domain import Domain
from tacit.model.expression import Compare, Expression, count, weigh
from tacit.model.query import Query
from tacit.model.sql import parse
from tacit.model.workload import marginal

DOMAIN = Domain(
    {
        "age": integer(0, 4, missing="unknown"),
        "band": integer(-5, 4, width=5, missing="unknown"),
        "sex": category(["F", "M"], other="else", missing="unknown"),
        "code": category([7, 3, 5]),
        "flag": boolean(missing="unknown"),
        "day": date("2020-01-01", "2020-04-30", by="month", missing="unknown"),
        "seen": date("2020-02-28", "2020-03-01", missing="unknown"),
        "pay": numeric([0, 1.5, 4, 10], missing="unknown"),
    }
)
TYPES = {"age": "INTEGER", "band": "INTEGER", "sex": "VARCHAR", "code": "INTEGER", "flag": "BOOLEAN", "day": "DATE",
         "seen": "DATE", "pay": "DOUBLE"}  # fmt: skip
ROWS = 80
Row = dict[str, Any]


def random_row(chance: random.Random) -> Row:
    row: Row = {
        "age": chance.randint(0, 4),
        "band": chance.randint(-5, 4),
        "sex": chance.choice(["F", "M", "X", "f"]),  # the last two are not declared: other
        "code": chance.choice([3, 5, 7]),
        "flag": chance.random() < 0.5,
        "day": dt.date(2020, 1, 1) + dt.timedelta(days=chance.randrange(121)),
        "seen": dt.date(2020, 2, 28) + dt.timedelta(days=chance.randrange(3)),
        "pay": chance.choice([0.0, 1.0, 1.5, 3.99, 4.0, 9.5]),
    }
    return {name: None if name != "code" and chance.random() < 0.2 else value for name, value in row.items()}


def cell(row: Row) -> tuple[int, ...]:
    found = []
    for name, attribute in DOMAIN.items():
        if row[name] is None:
            index = attribute.missing_index
        elif name == "sex" and row[name] not in ("F", "M"):
            index = attribute.other_index
        else:
            index = attribute.locate(name, row[name])
        assert index is not None
        found.append(index)
    return tuple(found)


class Oracle:
    """Random rows, in DuckDB and as cells."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        rows = [random_row(self.chance) for _ in range(ROWS)]
        self.cells = tuple(np.array([cell(row) for row in rows]).T)
        self.connection = duckdb.connect()
        self.connection.execute(f"CREATE TABLE data ({', '.join(f'{name} {kind}' for name, kind in TYPES.items())})")
        marks = ", ".join("?" * len(TYPES))
        self.connection.executemany(f"INSERT INTO data VALUES ({marks})", [[row[n] for n in TYPES] for row in rows])

    def truth(self, statement: str) -> int:
        found = self.connection.execute(statement).fetchone()
        assert found is not None
        return int(found[0])

    def count(self, query: Query) -> float:
        return float(query.table(DOMAIN.names, DOMAIN.shape)[self.cells].sum() / query.unit)


def comparison(chance: random.Random, name: str, plain: list[str], cuts: list[tuple[str, str]]) -> str:
    """One condition on an ordered column: `plain` values may be compared for equality, `cuts` end and start bins."""
    last, first = chance.choice(cuts)
    kind = chance.randrange(7 if plain else 4)
    if kind == 0:
        return f"{name} < {first}" if chance.random() < 0.5 else f"{name} >= {first}"
    if kind == 1:
        return f"{first} > {name}" if chance.random() < 0.5 else f"{first} <= {name}"
    if kind == 2 and last:
        return chance.choice([f"{name} <= {last}", f"{name} > {last}", f"{last} >= {name}", f"{last} < {name}"])
    later = [end for end, _ in cuts[cuts.index((last, first)) + 1 :]]  # swapped ends are refused
    if kind == 3 and last and later:
        return f"{name} {chance.choice(['', 'NOT '])}BETWEEN {first} AND {chance.choice(later)}"
    if kind == 4:
        return f"{name} {chance.choice(['=', '<>', '!='])} {chance.choice(plain)}"
    if kind == 5:
        return f"{chance.choice(plain)} {chance.choice(['=', '<>'])} {name}"
    if kind == 6:
        listed = chance.choices(plain, k=chance.randint(1, 4))
        return f"{name} {chance.choice(['', 'NOT '])}IN ({', '.join(listed)})"
    return f"{name} < {first}"


def leaf(chance: random.Random) -> str:
    name = chance.choice(list(TYPES))
    if chance.random() < 0.15:
        return f"{name} IS {chance.choice(['', 'NOT '])}NULL"
    match name:
        case "age":
            cuts = [(str(i - 1), str(i)) for i in range(6)]
            return comparison(chance, name, [str(i) for i in range(5)] + ["2.0", "1e0"], cuts)
        case "band":
            return comparison(chance, name, [], [("-6", "-5"), ("-1", "0"), ("4", "5")])
        case "pay":
            return comparison(chance, name, [], [("", "0"), ("", "1.5"), ("", "4"), ("", "10.0")])
        case "day":
            edges = [("2019-12-31", "2020-01-01"), ("2020-01-31", "2020-02-01"), ("2020-02-29", "2020-03-01")]
            written = chance.choice(["DATE '{}'", "'{}'", "CAST('{}' AS DATE)", "'{}'::DATE"]).format
            return comparison(chance, name, [], [(written(a), written(b)) for a, b in edges])
        case "seen":
            days = ["DATE '2020-02-28'", "'2020-02-29'", "DATE '2020-03-01'"]
            cuts = [("'2020-02-27'", days[0]), (days[0], days[1]), (days[1], days[2]), (days[2], "'2020-03-02'")]
            return comparison(chance, name, days, cuts)
        case "flag":
            return chance.choice(
                ["flag", "NOT flag", "flag = TRUE", "flag <> TRUE", "FALSE = flag", "flag IN (TRUE)",
                 "flag NOT IN (FALSE)", "flag IS TRUE", "flag IS NOT TRUE", "flag IS FALSE", "flag IS NOT FALSE",
                 "TRUE", "FALSE"]
            )  # fmt: skip
        case "sex":
            plain = ["'F'", "'M'"]
        case _:
            plain = ["3", "5", "7"]
    operator = chance.choice(["=", "<>", "IN", "NOT IN"])
    if operator in ("=", "<>"):
        sides = [name, chance.choice(plain)]
        chance.shuffle(sides)
        return f"{sides[0]} {operator} {sides[1]}"
    return f"{name} {operator} ({', '.join(chance.choices(plain, k=chance.randint(1, 3)))})"


def counted(statement: str) -> Query:
    """The query of a plain count."""
    asked = parse(statement, DOMAIN)
    assert isinstance(asked, Count)
    return asked.query


def condition(chance: random.Random, depth: int) -> str:
    """Random SQL text; parentheses are left out often enough that precedence matters."""
    kind = chance.random()
    if depth == 0 or kind < 0.15:
        return leaf(chance)
    if kind < 0.3:
        return f"NOT {condition(chance, depth - 1)}"
    if kind < 0.5:
        return f"({condition(chance, depth - 1)})"
    joined = f" {chance.choice(['AND', 'OR', 'and', 'Or'])} "
    return joined.join(condition(chance, depth - 1) for _ in range(chance.randint(2, 3)))


@pytest.mark.parametrize("seed", range(8))
def test_counts_are_those_of_the_engine(seed: int) -> None:
    oracle = Oracle(seed)
    seen = set()
    for _ in range(60):
        statement = f"SELECT COUNT(*) FROM data WHERE {condition(oracle.chance, oracle.chance.randint(0, 3))}"
        truth = oracle.truth(statement)
        assert oracle.count(counted(statement)) == truth, statement
        seen.add(truth)
    assert len(seen) > 15  # the statements do tell rows apart


def test_every_leaf_and_its_negation_is_that_of_the_engine() -> None:
    # One condition at a time, so that a wrong one is not hidden by an AND with something rare.
    oracle = Oracle(99)
    leaves = {leaf(oracle.chance) for _ in range(2000)}
    assert len(leaves) > 150
    for text in sorted(leaves):
        for where in (text, f"NOT ({text})", f"NOT ({text}) AND code = 7", f"({text}) OR NOT ({text})"):
            statement = f"SELECT COUNT(*) FROM data WHERE {where}"
            assert oracle.count(counted(statement)) == oracle.truth(statement), statement


@pytest.mark.parametrize("seed", range(20, 24))
def test_tables_are_those_of_the_engine(seed: int) -> None:
    oracle = Oracle(seed)
    for _ in range(10):
        names = oracle.chance.sample(["age", "code", "flag", "seen"], oracle.chance.randint(1, 2))
        listed = ", ".join(names)
        statement = (
            f"SELECT {listed}, COUNT(*) AS n FROM data WHERE {condition(oracle.chance, 2)} "
            f"GROUP BY {', '.join(reversed(names))}"
        )
        select = parse(statement, DOMAIN)
        assert isinstance(select, Select)
        assert [group.name for group in select.groups] == names
        where = select.columns[0].value.where
        if where == Query.constant(everyone=False):
            assert oracle.connection.execute(statement).fetchall() == []
            continue
        table = marginal(DOMAIN, *names, where=where)
        counted = [oracle.count(query) for query in table.queries(DOMAIN)]
        expected = {}
        for *values, n in oracle.connection.execute(statement).fetchall():
            row = dict(zip(names, values, strict=True))
            index = tuple(
                DOMAIN[name].missing_index if row[name] is None else DOMAIN[name].locate(name, row[name])
                for name in table.names
            )
            expected[index] = n
        shape = [DOMAIN[name].size for name in table.names]
        assert counted == [expected.get(index, 0) for index in np.ndindex(*shape)], statement


def same(expression: Expression, where: str) -> bool:
    return expression.bind(DOMAIN).key == counted(f"SELECT COUNT(*) FROM data WHERE {where}").key


@pytest.mark.parametrize(
    ("expression", "where"),
    [
        (count(), "TRUE"),
        (~count(), "FALSE"),
        (count(sex="F"), "sex = 'F'"),
        (count(SEX="F"), "'F' = Sex"),
        (count(sex=["F", "M"]), "sex IN ('M', 'F')"),
        (count(sex={"F"}), "sex = 'F'"),
        (count(sex=[]), "FALSE"),
        (count(sex=None), "sex IS NULL"),
        (count(sex="unknown"), "sex IS NULL"),
        (count(sex=["F", None]), "sex = 'F' OR sex IS NULL"),
        (~count(sex="F"), "sex <> 'F'"),
        (~count(sex=None), "sex IS NOT NULL"),
        (~count(sex=["F", None]), "sex <> 'F'"),
        (count(code=None), "FALSE"),
        (~count(code=None), "TRUE"),
        (count(age=(1, 3)), "age BETWEEN 1 AND 3"),
        (count(age=range(1, 4)), "age >= 1 AND age < 4"),
        (count(age=np.array([1, 2, 3])), "age > 0 AND NOT age > 3"),
        (count(age=np.int64(2)), "age = 2"),
        (count(age=2.0), "2 = age"),
        (~count(age=(1, 3)), "age NOT BETWEEN 1 AND 3"),
        (count(pay=(1.5, 10)), "pay >= 1.5 AND pay < 10"),
        (count(flag=True), "flag"),
        (count(flag=np.bool_(False)), "NOT flag"),
        (count(day="2020-02"), "day BETWEEN '2020-02-01' AND '2020-02-29'"),
        (count(day=("2020-02-01", dt.date(2020, 3, 31))), "day >= '2020-02-01' AND day < '2020-04-01'"),
        (count(seen=dt.date(2020, 2, 29)), "seen = '2020-02-29'"),
        (count(count(sex="F"), age=2), "age = 2 AND sex = 'F'"),
        (count(sex="F") | count(age=2), "age = 2 OR sex = 'F'"),
        (~(count(sex="F") & count(age=2)), "NOT (age = 2 AND sex = 'F')"),
        (~(count(sex="F") | count(age=2)), "age <> 2 AND sex <> 'F'"),
        (weigh("flag", weights=[0, 1, 0]), "flag"),
    ],
)  # fmt: skip
def test_both_ways_of_asking_are_one_question(expression: Expression, where: str) -> None:
    assert same(expression, where)


def test_weights_count_rows_in_part() -> None:
    oracle = Oracle(5)
    half = weigh("code", "flag", weights=[[0.5, 1, 0]] * 3)
    expected = oracle.truth("SELECT SUM(CASE WHEN flag THEN 2 WHEN NOT flag THEN 1 ELSE 0 END) FROM data") / 2
    assert oracle.count(half.bind(DOMAIN)) == expected
    assert oracle.count((~half).bind(DOMAIN)) == ROWS - expected
    women = oracle.truth("SELECT SUM(CASE WHEN flag THEN 2 WHEN NOT flag THEN 1 ELSE 0 END) FROM data WHERE sex = 'F'")
    assert oracle.count((half & count(sex="F")).bind(DOMAIN)) == women / 2


def bad_conditions() -> Iterator[tuple[Any, str]]:
    yield lambda: count(sex=("F", "M", "X")), "a range is a pair"
    yield lambda: count(sex={"a": 1}), "not dict"
    yield lambda: count(sex=b"F"), "not bytes"
    yield lambda: count(sex=[["F"]]), "not list"
    yield lambda: count(sex=object()), "not object"
    yield lambda: count("sex = 'F'"), "not str"  # type: ignore[arg-type]
    yield lambda: count(True), "not bool"  # type: ignore[arg-type]
    yield lambda: count(age=np.zeros((2, 2))), "not ndarray"
    yield lambda: count(sxe="F").bind(DOMAIN), "did you mean 'sex'"
    yield lambda: count(sex="G").bind(DOMAIN), "sex has no value 'G'"
    yield lambda: count(sex=("F", "M")).bind(DOMAIN), "sex has no order"
    yield lambda: count(age=(None, 3)).bind(DOMAIN), "age takes whole numbers"
    yield lambda: count(age=10**5000).bind(DOMAIN), "age takes whole numbers"
    yield lambda: count(age=(0, -(10**5000))).bind(DOMAIN), "age takes whole numbers"
    yield lambda: count(age=float("nan")).bind(DOMAIN), "age takes whole numbers"
    yield lambda: count(age=5).bind(DOMAIN), "age takes 0 to 4, the question asks 5"
    yield lambda: count(age=(0, 9)).bind(DOMAIN), "age takes 0 to 4"
    yield lambda: count(band=(-5, 3)).bind(DOMAIN), "nearest bins end with -1 and 4"
    yield lambda: count(band=0).bind(DOMAIN), "lies in the bin 0–4"
    yield lambda: count(pay=(0, 2)).bind(DOMAIN), "nearest bin edges are 1.5 and 4"
    yield lambda: count(day="2020").bind(DOMAIN), "day takes dates"
    yield lambda: count(seen="2020-02").bind(DOMAIN), "seen takes dates"
    yield lambda: weigh("age", weights=[0, 1]).bind(DOMAIN), "have shape"
    yield lambda: weigh("age", weights="heavy").bind(DOMAIN), "are numbers"
    yield lambda: weigh("ages", weights=[1]).bind(DOMAIN), "did you mean 'age'"


@pytest.mark.parametrize(("ask", "words"), list(bad_conditions()))
def test_bad_conditions_are_refused(ask: Any, words: str) -> None:
    with pytest.raises(InvalidQuery) as refusal:
        ask()
    assert words in refusal.value.sentence


def test_a_value_outside_the_bins_is_neither_below_nor_above() -> None:
    # Catches a complement that counts rows of which only is known that they lie outside.
    domain = Domain({"age": integer(0, 99, width=10, other="outside", missing="unknown")})
    assert (~Compare("age", "<", 30)).bind(domain) == Compare("age", ">=", 30).bind(domain)
    assert (~count(age="outside")).bind(domain) == count(age=(0, 99)).bind(domain)
    assert count(age=None).bind(domain) == count(age="unknown").bind(domain)


def test_python_words_on_conditions_are_refused() -> None:
    # `count(sex="F") and count(age=(20, 29))` would silently be its second half.
    with pytest.raises(InvalidQuery, match="&"):
        count(sex="F") and count(sex="M")
    with pytest.raises(InvalidQuery):
        not count(sex="F")
