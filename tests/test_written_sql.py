"""SQL as people and reporting tools write it is the same question as its plain form: one answer, paid for once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from support import once
from tacit.model.sql import parse
from tacit.serve.postgres.answer import places_of
from tacit.serve.postgres.types import DATE, FLOAT8, INT8, TEXT
from tacit.session import Session

N = 3_000
RNG = np.random.default_rng(3)
ROWS = pd.DataFrame(
    {
        "age": RNG.integers(0, 80, N),
        "sex": RNG.choice(["F", "M"], N),
        "region": np.where(RNG.random(N) < 0.1, None, RNG.choice(["north", "south"], N)),
        "pay": np.where(RNG.random(N) < 0.1, None, RNG.integers(0, 40, N)),
        "hired": pd.Timestamp("2020-03-01") + pd.to_timedelta(RNG.integers(0, 1400, N), unit="D"),
        "seen": np.where(RNG.random(N) < 0.1, None, np.datetime64("2024-01-01") + RNG.integers(0, 60, N)),
    }
)
DOMAIN = tacit.Domain(
    {
        "age": tacit.integer(0, 79, width=10),
        "sex": tacit.category(["F", "M"]),
        "region": tacit.category(["north", "south"], missing="unknown"),
        "pay": tacit.integer(0, 39, width=10, missing="unknown"),
        "hired": tacit.date("2020-03-01", "2023-12-31", by="month"),
        "seen": tacit.date("2024-01-01", "2024-02-29", missing="never"),
    }
)
SOURCE = once(ROWS)
MECHANISMS = ["direct", "histogram", "iterative"]


def start(folder: Path, mechanism: str) -> Session:
    return tacit.open(
        data=SOURCE,
        domain=DOMAIN,
        budget=tacit.Budget(epsilon=30.0, delta=1e-9),
        ledger=folder / "people.tacit",
        mechanism=mechanism,
        questions=100,
        start=True,
    )


def told(answer: Any) -> dict[str, Any]:
    """All that an answer says, apart from what it cost this time."""
    return {k: v for k, v in answer.to_dict().items() if k not in ("source", "cost", "percent", "total", "listed")}


def check_same(session: Session, written: str, plain: str) -> None:
    """Ask a statement as it is written, at the price that was foretold, and then in its plain form, for nothing."""
    before, foreseen = session.spent.atoms, session.dry_run(written)
    answer = session.ask(written)
    assert session.spent.atoms - before <= foreseen.cost_at_most.atoms, written
    assert not foreseen.known or session.spent.atoms == before
    spent = session.spent
    assert told(session.ask(plain)) == told(answer), written
    assert session.spent == spent, written
    assert session.dry_run(written).cost_at_most.atoms == 0


AGGREGATES = [
    ("SUM(CASE WHEN sex = 'F' THEN age ELSE 0 END)", "SUM(age) FILTER (WHERE sex = 'F')"),
    ("SUM(CASE WHEN sex = 'M' THEN age END)", "SUM(age) FILTER (WHERE sex = 'M')"),
    ("SUM(IF(age < 30, pay, 0))", "SUM(pay) FILTER (WHERE age < 30)"),
    ("AVG(CASE sex WHEN 'F' THEN pay END)", "AVG(pay) FILTER (WHERE sex = 'F')"),
    ("COUNT(CASE WHEN age < 50 THEN pay END)", "COUNT(pay) FILTER (WHERE age < 50)"),
    ("COUNT(CASE WHEN age >= 60 THEN 'old' END)", "COUNT(*) FILTER (WHERE age >= 60)"),
    ("SUM(CASE WHEN age < 20 THEN 2.5 ELSE 0 END)", "2.5 * COUNT(*) FILTER (WHERE age < 20)"),
    ("AVG(CASE WHEN age < 40 THEN 100 ELSE 0 END)", "100 * COUNT(*) FILTER (WHERE age < 40) / COUNT(*)"),
    ("AVG(CASE WHEN sex = 'F' THEN age ELSE 0 END)", "SUM(age) FILTER (WHERE sex = 'F') / COUNT(*)"),
    ("SUM(COALESCE(pay, 0))", "SUM(pay)"),
    ("STDDEV(CASE WHEN age < 40 THEN pay END)", "STDDEV(pay) FILTER (WHERE age < 40)"),
    ("MEDIAN(CASE WHEN sex = 'F' THEN age END)", "MEDIAN(age) FILTER (WHERE sex = 'F')"),
]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_an_aggregate_of_a_case_is_one_of_some_rows(tmp_path: Path, mechanism: str) -> None:
    with start(tmp_path, mechanism) as session:
        for written, plain in AGGREGATES:
            check_same(session, f"SELECT {written} AS v FROM data", f"SELECT {plain} AS v FROM data")
            tables = (f"SELECT sex, {value} AS v FROM data GROUP BY sex" for value in (written, plain))
            check_same(session, *tables)
        check_same(
            session,
            "SELECT COUNT(DISTINCT CASE WHEN sex = 'F' THEN age END) AS v FROM data",
            "SELECT COUNT(DISTINCT age) AS v FROM data WHERE sex = 'F'",
        )


DATES = [
    ("YEAR(hired) = 2022", "hired BETWEEN '2022-01-01' AND '2022-12-31'"),
    ("EXTRACT(YEAR FROM hired) <> 2022", "hired < '2022-01-01' OR hired > '2022-12-31'"),
    ("date_part('year', hired) IN (2020, 2023)", "hired <= '2020-12-31' OR hired >= '2023-01-01'"),
    ("YEAR(hired) BETWEEN 2021 AND 2022", "hired >= '2021-01-01' AND hired < '2023-01-01'"),
    ("2021 < YEAR(hired)", "hired >= '2022-01-01'"),
    ("YEAR(hired) < 2024 AND sex = 'F'", "sex = 'F'"),
    ("date_trunc('year', hired) = '2022-01-01'", "hired BETWEEN '2022-01-01' AND '2022-12-31'"),
    ("date_trunc('quarter', hired) >= DATE '2023-07-01'", "hired >= '2023-07-01'"),
    ("date_trunc('quarter', hired) > '2022-05-15'", "hired >= '2022-07-01'"),
    ("CAST(date_trunc('month', hired) AS DATE) = '2022-02-01'", "hired = '2022-02'"),
    ("strftime(hired, '%Y-%m') = '2022-02'", "hired = '2022-02'"),
    ("strftime(seen, '%Y-%m') >= '2024-02'", "seen >= '2024-02-01'"),
    ("NOT strftime(seen, '%Y-%m') = '2024-01'", "seen >= '2024-02-01'"),
    ("date_trunc('week', seen) = '2024-01-08'", "seen BETWEEN '2024-01-08' AND '2024-01-14'"),
    ("NOT date_trunc('month', seen) = '2024-01-01'", "seen >= '2024-02-01'"),
    ("date_trunc('month', seen) IS NULL", "seen IS NULL"),
    ("FLOOR(age / 20) * 20 IN (20, 60)", "age BETWEEN 20 AND 39 OR age >= 60"),
]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_years_and_other_periods_in_conditions_are_ranges_of_days(tmp_path: Path, mechanism: str) -> None:
    with start(tmp_path, mechanism) as session:
        for written, plain in DATES:
            check_same(session, *(f"SELECT COUNT(*) FROM data WHERE {rows}" for rows in (written, plain)))
            check_same(session, *(f"SELECT AVG(age) FROM data WHERE {rows}" for rows in (written, plain)))


WEEKS = [str(day.date()) for day in pd.date_range("2024-01-01", "2024-02-29", freq="W-MON")]
PERIODS = [
    ("YEAR(hired)", ["2020", "2021", "2022", "2023"], "YEAR(hired) = {}"),
    ("date_trunc('year', hired)", ["2020-01-01", "2021-01-01", "2022-01-01", "2023-01-01"], "YEAR(hired) = {:.4}"),
    ("date_trunc('month', seen)", ["2024-01-01", "2024-02-01", "never"], "date_trunc('month', seen) = '{}'"),
    ("date_trunc('week', seen)", [*WEEKS, "never"], "date_trunc('week', seen) = '{}'"),
]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_groups_of_days_are_counted_as_by_conditions(tmp_path: Path, mechanism: str) -> None:
    with start(tmp_path, mechanism) as session:
        for period, labels, rows in PERIODS:
            check_groups(session, period, {label: rows.format(label) for label in labels})


YOUNG = "CASE WHEN age < 20 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END"
CASES = [
    (YOUNG, {"young": "age < 20", "middle": "age >= 20 AND age < 60", "old": "age >= 60"}),
    (
        "CASE WHEN age BETWEEN 20 AND 59 THEN 1 ELSE -1 END",
        {"-1": "age < 20 OR age >= 60", "1": "age BETWEEN 20 AND 59"},
    ),
    ("CASE sex WHEN 'F' THEN 'woman' END", {"woman": "sex = 'F'", "": "sex <> 'F'"}),
    ("CASE WHEN pay < 20 THEN 'low' ELSE 'rest' END", {"low": "pay < 20", "rest": "pay >= 20 OR pay IS NULL"}),
    (
        "CASE WHEN pay < 20 THEN 'low' WHEN pay >= 20 THEN 'high' END",
        {"low": "pay < 20", "high": "pay >= 20", "": "pay IS NULL"},
    ),
    ("COALESCE(region, 'none')", {"north": "region = 'north'", "south": "region = 'south'", "none": "region IS NULL"}),
    ("COALESCE(region, 'south')", {"north": "region = 'north'", "south": "region = 'south' OR region IS NULL"}),
    ("IF(YEAR(hired) = 2022, 'then', 'else')", {"then": "YEAR(hired) = 2022", "else": "YEAR(hired) <> 2022"}),
]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_groups_of_a_case_are_counted_as_by_conditions(tmp_path: Path, mechanism: str) -> None:
    with start(tmp_path, mechanism) as session:
        for case, groups in CASES:
            check_groups(session, case, groups)
        table = f"SELECT {YOUNG} AS band, sex, COUNT(*) AS n FROM data GROUP BY band, sex"
        split = session.ask(f"{table} ORDER BY band DESC, sex")
        assert [labels for labels, _ in split.rows()][:2] == [("old", "F"), ("old", "M")]
        old = session.ask("SELECT COUNT(*) FROM data WHERE age >= 60 AND sex = 'F'")
        assert old.cost.atoms == 0
        assert next(iter(split.rows()))[1] == (old.value,)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_case_in_a_condition_is_the_values_that_it_chooses(tmp_path: Path, mechanism: str) -> None:
    with start(tmp_path, mechanism) as session:
        for written, plain in [
            (f"{YOUNG} = 'middle'", "age BETWEEN 20 AND 59"),
            (f"{YOUNG} IN ('young', 'old')", "age < 20 OR age >= 60"),
            ("CASE WHEN pay < 20 THEN 'low' WHEN pay >= 20 THEN 'high' END <> 'low'", "pay >= 20"),
            ("CASE WHEN pay < 20 THEN 'low' WHEN pay >= 20 THEN 'high' END IS NULL", "pay IS NULL"),
            ("COALESCE(region, 'none') <> 'north'", "region = 'south' OR region IS NULL"),
            ("CASE WHEN age < 20 THEN 1 WHEN age < 60 THEN 3 ELSE 2 END >= 2", "age >= 20"),
        ]:
            check_same(session, *(f"SELECT COUNT(*) FROM data WHERE {rows}" for rows in (written, plain)))


def check_groups(session: Session, written: str, groups: dict[str, str]) -> None:
    """A table by what is written has these labels, and in each group the values that its rows have by themselves."""
    values = f"COUNT(*) AS n, AVG({'pay' if 'age' in written else 'age'})"
    statement = f"SELECT {written} AS g, {values} FROM data GROUP BY g"
    before, foreseen = session.spent.atoms, session.dry_run(statement)
    table = session.ask(statement)
    assert session.spent.atoms - before <= foreseen.cost_at_most.atoms
    spent = session.spent
    assert [group for (group,), _ in table.rows()] == list(groups)
    for (_, found), rows in zip(table.rows(), groups.values(), strict=True):
        alone = session.ask(f"SELECT {values} FROM data WHERE {rows}")
        assert [found] == [one for _, one in alone.rows()], (written, rows)
    for by in (written, "1"):
        assert told(session.ask(f"SELECT {written} AS g, {values} FROM data GROUP BY {by}")) == told(table)
    assert session.spent == spent


def test_a_year_that_is_declared_in_part_is_said_to_be() -> None:
    """Days beyond the declared ones are other values: the year of 2020 begins in March."""
    domain = tacit.Domain({"day": tacit.date("2020-03-01", "2021-12-31", by="month", other="later")})
    table = "SELECT YEAR(day), COUNT(*) FROM data GROUP BY 1"
    for statement in (table, "SELECT COUNT(*) FROM data WHERE YEAR(day) = 2020"):
        said = parse(statement, domain).words(domain)
        assert said.endswith("day takes 2020-03-01 to 2021-12-31: days before and after are later")
    whole = tacit.Domain({"day": tacit.date("2020-01-01", "2021-12-31", by="month", other="later")})
    assert parse(table, whole).words(whole) == "table of day by year"


def test_groups_have_the_types_of_their_values_in_postgresql() -> None:
    for group, type in [
        ("YEAR(hired)", INT8),
        ("date_trunc('quarter', hired)", DATE),
        ("date_trunc('week', seen)", DATE),
        ("FLOOR(age / 20) * 20", TEXT),
        ("CASE WHEN age < 20 THEN 'young' END", TEXT),
        ("CASE WHEN age < 20 THEN 1 END", INT8),
        ("CASE WHEN age < 20 THEN 1 ELSE 2.5 END", FLOAT8),
    ]:
        column, _ = places_of(parse(f"SELECT {group}, COUNT(*) FROM data GROUP BY 1", DOMAIN), DOMAIN)
        assert (column.label, column.type) == (True, type), group


def test_new_names_for_the_declared_values_are_free(tmp_path: Path) -> None:
    """Where the table of regions is bought, it is known with another label for missing values too."""
    with start(tmp_path, "direct") as session:
        bought = [count for _, count in session.ask("SELECT region, COUNT(*) FROM data GROUP BY region").rows()]
        spent = session.spent
        named = session.ask("SELECT COALESCE(region, 'none') AS r, COUNT(*) AS n FROM data GROUP BY r")
        assert list(named.rows()) == list(zip([("north",), ("south",), ("none",)], [(n,) for n in bought], strict=True))
        assert session.spent == spent


def test_what_was_published_is_read_in_these_words_too(tmp_path: Path) -> None:
    statements = [
        f"SELECT {YOUNG} AS band, COUNT(*) AS n FROM data GROUP BY band",
        "SELECT YEAR(hired) AS y, COUNT(*) AS n FROM data GROUP BY y",
        "SELECT SUM(CASE WHEN sex = 'F' THEN age ELSE 0 END) FROM data",
    ]
    with start(tmp_path, "direct") as session:
        asked = [told(session.ask(statement)) for statement in statements]
        tacit.publish(session, tmp_path / "people.jsonl")
    published = tacit.read(tmp_path / "people.jsonl")
    assert [told(published.ask(statement)) for statement in statements] == asked


# -- what a review found -----------------------------------------------------------------------------------------------

ODD = pd.DataFrame(
    {
        "c": [1, 2, 3, 9, None] * 60,
        "y": ["2021-02-03", "2021-11-30", "2020-05-05", "2021-06-01", None] * 60,
        "k": [3, 12, 19, 77, 15] * 60,
    }
)
ODD_DOMAIN = tacit.Domain(
    {
        "c": tacit.category([1, 2, 3], other="more", missing="none"),
        "y": tacit.date("2021-01-01", "2021-12-31", by="month", other="another year", missing="never"),
        "k": tacit.integer(0, 19, other="large"),
    }
)


@pytest.fixture
def odd(tmp_path: Path) -> Session:
    data = ODD.assign(y=pd.to_datetime(ODD["y"]))
    budget = tacit.Budget(epsilon=30.0, delta=1e-9)
    files = {"ledger": tmp_path / "l.tacit", "anchor": tmp_path / "a"}
    return tacit.open(data=data, domain=ODD_DOMAIN, budget=budget, mechanism="direct", questions=60, **files)


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_labels_that_are_those_of_other_values_stay_where_they_were_given(tmp_path: Path, mechanism: str) -> None:
    with start(tmp_path, mechanism) as session:
        swapped = "SELECT CASE WHEN sex = 'M' THEN 'F' ELSE 'M' END AS g, COUNT(*) FROM data GROUP BY g"
        found = {row[0]: row[1] for row in session.ask(swapped).to_dict()["rows"]}  # type: ignore[union-attr]
        for sex, label in (("F", "M"), ("M", "F")):
            plain = session.ask(f"SELECT COUNT(*) FROM data WHERE sex = '{sex}'")
            assert found[label] == plain.value  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "group",
    [
        "COALESCE(region, 'unknown')",
        "CASE region WHEN 'south' THEN 'south' WHEN 'north' THEN 'north' ELSE 'unknown' END",
    ],
)
def test_a_label_like_that_of_missing_values_is_not_null(tmp_path: Path, group: str) -> None:
    with start(tmp_path, "direct") as session:
        grouped = f"SELECT {group} AS g, COUNT(*) FROM data GROUP BY g"
        kept = session.ask(f"{grouped} HAVING g <> 'north'").to_dict()["rows"]  # type: ignore[union-attr]
        assert "unknown" in [row[0] for row in kept]
        assert not session.ask(f"{grouped} HAVING g IS NULL").to_dict()["rows"]  # type: ignore[union-attr]


def test_texts_are_not_added_up_and_nothing_is_paid_for_it(tmp_path: Path) -> None:
    with start(tmp_path, "direct") as session:
        for fold, inner in (
            ("MAX(y)", "SELECT YEAR(hired) AS y, COUNT(*) AS n FROM data GROUP BY y"),
            ("SUM(g)", "SELECT CASE WHEN age < 30 THEN 1 ELSE 2 END AS g, COUNT(*) AS n FROM data GROUP BY g"),
            ("MAX(sex)", "SELECT sex, COUNT(*) AS n FROM data GROUP BY sex"),
        ):
            with pytest.raises(tacit.InvalidQuery, match="where a number is needed"):
                session.ask(f"SELECT {fold} FROM ({inner}) t")
        assert session.spent.atoms == 0


def test_a_sum_of_rows_that_may_all_be_left_out_may_be_null(tmp_path: Path) -> None:
    with start(tmp_path, "direct") as session:
        counts = "SELECT sex, COUNT(*) AS n FROM data GROUP BY sex"
        most = max(row[1] for row in session.ask(counts).to_dict()["rows"])  # type: ignore[union-attr]
        summed = f"SUM(n * 0) FILTER (WHERE n > {most - 0.5})"  # the bar of the larger group reaches below that
        assert session.ask(f"SELECT {summed} FROM ({counts}) t").error is None  # type: ignore[union-attr]
        here = session.ask(f"SELECT CASE WHEN {summed} IS NULL THEN 1 ELSE 0 END FROM ({counts}) t")
        assert here.error != 0  # type: ignore[union-attr]


def test_what_is_declared_as_other_is_in_no_group_of_the_declared_range(odd: Session) -> None:
    with odd as session:
        other = session.ask("SELECT COUNT(*) FROM data WHERE y = 'another year'")
        for written in ("YEAR(y) <> 2021", "NOT (YEAR(y) = 2021)", "YEAR(y) NOT IN (2021)"):
            answer = session.ask(f"SELECT COUNT(*) FROM data WHERE {written}")
            assert (answer.value, answer.cost.atoms) == (other.value, 0)  # type: ignore[union-attr]
        check_same(
            session,
            "SELECT COUNT(*) FROM data WHERE FLOOR(k / 10) * 10 <> 0",
            "SELECT COUNT(*) FROM data WHERE k >= 10 OR k = 'large'",
        )
        banded = session.ask(
            "SELECT CASE WHEN y < DATE '2021-07-01' THEN 'h1' ELSE 'h2' END AS g, COUNT(*) FROM data GROUP BY g"
        )
        assert "no comparison is known" in banded.note  # type: ignore[union-attr]
        counted = "CASE WHEN k = 'large' THEN 'out' WHEN k < 10 THEN 'low' ELSE 'high' END"
        sure = session.ask(f"SELECT {counted} AS g, COUNT(*) FROM data GROUP BY g")
        assert "no comparison is known" not in sure.note  # type: ignore[union-attr]


def test_numbers_beside_another_word_are_compared_as_numbers(odd: Session) -> None:
    with odd as session:
        check_same(
            session,
            "SELECT COUNT(*) FROM data WHERE COALESCE(c, 0) < 2",
            "SELECT COUNT(*) FROM data WHERE c = 1 OR c IS NULL",
        )
        check_same(
            session,
            "SELECT COUNT(*) FROM data WHERE NOT (COALESCE(c, 0) < 2)",
            "SELECT COUNT(*) FROM data WHERE c IN (2, 3)",
        )
        for label in ("''", f"'{'x' * 500}'"):
            with pytest.raises(tacit.InvalidQuery):
                session.dry_run(f"SELECT COALESCE(y, {label}) AS g, COUNT(*) FROM data GROUP BY g")


def test_a_case_of_many_conditions_on_a_wide_column_is_refused_before_it_is_tried() -> None:
    domain = tacit.Domain({"a": tacit.integer(0, 99_999)})
    whens = " ".join(f"WHEN a = {i} THEN 'l{i}'" for i in range(200))
    with pytest.raises(tacit.InvalidQuery, match="tries 200 conditions on 100,000 values"):
        parse(f"SELECT CASE {whens} ELSE 'x' END AS g, COUNT(*) FROM data GROUP BY g", domain)
    with pytest.raises(tacit.InvalidQuery, match="is the same for every row"):
        parse("SELECT CASE WHEN a >= 0 THEN 'all' END AS g, COUNT(*) FROM data GROUP BY g", domain)
    with pytest.raises(tacit.InvalidQuery, match="below 1e300"):
        parse("SELECT 1e299 * (1e299 * COUNT(*)) FROM data WHERE a < 5", domain)


def test_a_spread_of_one_value_needs_two_rows(odd: Session) -> None:
    with odd as session:
        assert "if two rows meet" in session.ask("SELECT STDDEV(k) FROM data WHERE k = 3").note  # type: ignore[union-attr]
        assert "if a row meets" in session.ask("SELECT VAR_POP(k) FROM data WHERE k = 3").note  # type: ignore[union-attr]
        assert session.spent.atoms == 0
