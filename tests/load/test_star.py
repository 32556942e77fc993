"""Several tables as one: a join adds columns and never rows, on every engine; whose facts they are is declared."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tacit
from people import answered, refused
from people import tacit as run
from tacit.errors import ConfigError, DataError
from tacit.load import Source, open_source
from tacit.load.star import Join, Star, check_keys
from tacit.trusted.cells import read_cells

VISITS = pd.DataFrame(
    {
        "patient": ["a", "a", "b", "c", "c", "c", None],
        "clinic": [1, 2, 1, 1, 9, 2, 2],
        "cost": [10, 20, 30, 40, 50, 60, 70],
    }
)
PATIENTS = pd.DataFrame({"id": ["a", "b", "d"], "sex": ["F", "M", "M"], "cost": [1, 2, 3]})
CLINICS = pd.DataFrame({"clinic": [1, 2, 3], "region": ["n", "s", "s"]})
REGIONS = pd.DataFrame({"region": ["n", "s"], "size": [5, 7]})
DOMAIN = tacit.Domain(
    {
        "sex": tacit.category(["F", "M"], missing="none"),
        "region": tacit.category(["n", "s"], missing="none"),
        "size": tacit.integer(0, 9, missing="none"),
        "cost": tacit.integer(0, 99, width=10),
    }
)
JOINS = (
    {"name": "patients", "on": "patient", "to": "id", "holds": "person"},
    {"name": "clinics", "on": "clinic", "holds": "public"},
    {"name": "regions", "on": "region", "holds": "public"},
)
TABLES = (VISITS, PATIENTS, CLINICS, REGIONS)


def star(tables: Any = TABLES, **more: Any) -> Star:
    fact, *others = tables
    joins = [Join(**{**join, "source": one, **more}) for join, one in zip(JOINS, others, strict=True)]  # type: ignore[arg-type]
    return Star(fact, joins)


def cells(data: Any, domain: tacit.Domain = DOMAIN, **whose: Any) -> Counter[tuple[Any, ...]]:
    whose = whose or {"person": "patient", "rows_per_person": 9}
    codes_of, counts = read_cells(open_source(data), domain, **whose)
    found = Counter[tuple[Any, ...]]()
    for *codes, count in zip(*codes_of, counts, strict=True):
        row = (domain[name].label(int(code)) for name, code in zip(domain, codes, strict=True))
        found[tuple(row)] += int(count)
    return found


JOINED = Counter(
    [
        ("F", "n", "5", "10–19"),
        ("F", "s", "7", "20–29"),
        ("M", "n", "5", "30–39"),
        ("none", "n", "5", "40–49"),
        ("none", "none", "none", "50–59"),
        ("none", "s", "7", "60–69"),
    ]
)


def files(folder: Path, suffix: str) -> list[Any]:
    paths = []
    for name, table in zip(("visits", "patients", "clinics", "regions"), TABLES, strict=True):
        path = folder / f"{name}{suffix}"
        table.to_csv(path, index=False) if suffix == ".csv" else table.to_parquet(path)
        paths.append(str(path))
    return paths


@pytest.mark.parametrize("form", ["frames", "csv", "parquet", "arrow", "mixed", "query", "database"])
def test_every_row_of_the_fact_table_has_the_columns_of_its_partners(form: str, tmp_path: Path) -> None:
    if form == "database":
        with duckdb.connect(str(tmp_path / "all.duckdb")) as engine:
            for name, table in zip(("visits", "patients", "clinics", "regions"), TABLES, strict=True):
                engine.register("given", table)
                engine.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        joins = [Join(**{**join, "table": join["name"]}) for join in JOINS]  # type: ignore[arg-type]
        assert cells(Star(str(tmp_path / "all.duckdb"), joins, "visits")) == JOINED
        return
    tables: dict[str, Any] = {
        "frames": TABLES,
        "csv": files(tmp_path, ".csv"),
        "parquet": files(tmp_path, ".parquet"),
        "arrow": [pa.Table.from_pandas(table) for table in TABLES],
    }
    tables["mixed"] = [tables["parquet"][0], tables["csv"][1], tables["frames"][2], tables["csv"][3]]
    tables["query"] = [f"SELECT * FROM '{tables['csv'][0]}'", *tables["parquet"][1:]]
    assert cells(star(tables[form])) == JOINED


def test_the_rows_whose_keys_are_checked_are_those_that_are_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is written anew between the check and the join adds no rows, whether or not anybody notices."""
    monkeypatch.setattr(Source, "version", lambda _: "")
    visits, patients, *_ = files(tmp_path, ".parquet")

    def checked_and_changed(joins: Any, shared: Any) -> None:
        check_keys(joins, shared)
        pd.concat([PATIENTS] * 9).to_parquet(patients)

    monkeypatch.setattr("tacit.load.star.check_keys", checked_and_changed)
    joined = Star(visits, [Join(name="patients", on="patient", to="id", holds="person", source=patients)])
    assert sum(cells(joined, DOMAIN.project(["sex", "cost"])).values()) == sum(JOINED.values())


def test_a_column_whose_name_is_taken_has_its_table_in_front() -> None:
    names = [column.name for column in open_source(star()).describe()]
    assert names == ["patient", "clinic", "cost", "sex", "patients_cost", "region", "size"]
    clash = star((VISITS.assign(patients_cost=0), *TABLES[1:]))
    with pytest.raises(DataError, match="two columns would be called patients_cost"):
        open_source(clash).describe()


def test_a_key_that_two_rows_share_is_refused_and_no_value_is_told() -> None:
    for at, name in ((1, "patients"), (2, "clinics"), (3, "regions")):
        tables = list(TABLES)
        tables[at] = pd.concat([tables[at], tables[at].tail(1)])
        with pytest.raises(DataError, match=f"{name}: several of its rows have the same") as error:
            cells(star(tables))
        assert not any(secret in str(error.value) for secret in ("'d'", "3", "'s'"))
    nobody = pd.concat([PATIENTS, PATIENTS.tail(2).assign(id=None)])  # what has no key is joined to nothing
    assert cells(star((VISITS, nobody, *TABLES[2:]))) == JOINED


@pytest.mark.parametrize(
    ("whose", "more", "said"),
    [
        ({"person": None, "rows_per_person": 1}, {}, "patients holds people, who have rows under patient"),
        ({"person": "clinic", "rows_per_person": 2}, {}, "patients holds people"),
        ({}, {"on": "nothing", "holds": "public"}, "has no column nothing; there are patient, clinic, cost"),
        ({}, {"to": "nothing"}, "patients has no column nothing; there are id, sex, cost"),
    ],
)
def test_what_is_declared_is_checked(whose: dict[str, Any], more: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match=said):
        cells(star(**more), **whose)


def test_a_join_says_whose_facts_it_holds() -> None:
    with pytest.raises(ConfigError, match='holds is "public" or "person"'):
        Join(name="x", source=CLINICS, on="clinic", holds="both")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="has a source"):
        Join(name="x", on="clinic", holds="public")
    with duckdb.connect() as engine:
        relation = engine.from_df(CLINICS)
        with pytest.raises(DataError, match="within one engine"):
            open_source(Star(VISITS, [Join(name="x", source=relation, on="clinic", holds="public")]))


KEYED = tacit.Domain({"v": tacit.category(["x"]), "kind": tacit.category(["x", "y"], missing="none")})
UUIDS = ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11")
BIG = 2**53
TWO_KINDS, INEXACT = "keys have to be of one kind", "a key is whole numbers, text"
# The type and value of a fact table's column; the type of a key and two values that differ there. Where an engine
# compares the one type with the other, a value may meet both.
PAIRS: list[tuple[str, Any, str, Any, Any, str]] = [
    ("INTEGER", 1, "VARCHAR", "1", "01", TWO_KINDS),
    ("VARCHAR", "1", "INTEGER", 1, 2, TWO_KINDS),
    ("DATE", "2020-01-01", "VARCHAR", "2020-01-01", "2020-1-1", TWO_KINDS),
    ("DATE", "2020-01-01", "TIMESTAMP", "2020-01-01", "2020-01-02", TWO_KINDS),
    ("UUID", UUIDS[0], "VARCHAR", *UUIDS, TWO_KINDS),
    ("BOOLEAN", True, "INTEGER", 1, 2, TWO_KINDS),
    ("TIMESTAMP", "2020-01-01", "TIMESTAMP_NS", "2020-01-01", "2020-01-01 00:00:00.000000001", TWO_KINDS),
    ("HUGEINT", BIG, "UHUGEINT", BIG, BIG + 1, TWO_KINDS),
    ("DOUBLE", BIG, "BIGINT", BIG, BIG + 1, INEXACT),
    ("FLOAT", 2**24, "INTEGER", 2**24, 2**24 + 1, INEXACT),
    ("BIGINT", BIG, "DOUBLE", BIG, 1, INEXACT),
    ("DOUBLE", 0, "DOUBLE", "0.0", "-0.0", INEXACT),
    ("DECIMAL(18, 0)", 1, "DECIMAL(18, 1)", 1, 2, INEXACT),
    ("TIME", "10:00", "TIME", "10:00", "11:00", INEXACT),
]


def keyed(folder: Path, on: str, value: Any, key: str, *keys: Any) -> Star:
    """One row, and the keys that it may meet."""
    with duckdb.connect(str(folder / "keys.duckdb")) as engine:
        engine.execute(f"CREATE TABLE fact (v VARCHAR, key {on})")
        engine.execute("INSERT INTO fact VALUES ('x', ?)", [value])
        engine.execute(f"CREATE TABLE keys (key {key}, kind VARCHAR)")
        for one, kind in zip(keys, "xy", strict=False):
            engine.execute("INSERT INTO keys VALUES (?, ?)", [one, kind])
    joins = [Join(name="keys", table="keys", on="key", holds="public")]
    return Star(str(folder / "keys.duckdb"), joins, "fact")


@pytest.mark.parametrize(("on", "value", "key", "one", "other", "said"), PAIRS)
def test_keys_whose_types_are_compared_inexactly_are_refused(
    on: str, value: Any, key: str, one: Any, other: Any, said: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=said):
        cells(keyed(tmp_path, on, value, key, one, other), KEYED, person=None)


@pytest.mark.parametrize(("on", "key", "said"), [("INTEGER", "VARCHAR", TWO_KINDS), ("DOUBLE", "BIGINT", INEXACT)])
def test_keys_are_refused_by_their_types_whatever_they_hold(on: str, key: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=said):
        cells(keyed(tmp_path, on, 1, key), KEYED, person=None)


@pytest.mark.parametrize(
    ("on", "value", "key", "one", "other"),
    [
        ("VARCHAR COLLATE NOCASE", "a", "VARCHAR", "a", "A"),
        ("VARCHAR", "a", "VARCHAR COLLATE NOCASE", "a", "A"),
        ("VARCHAR COLLATE NOCASE", "a", "VARCHAR COLLATE NOCASE", "a", "A"),
        ("VARCHAR COLLATE NOACCENT", "e", "VARCHAR", "e", "é"),
        ("ENUM ('a', 'b')", "a", "VARCHAR", "a", "A"),
        ("VARCHAR", "a", "VARCHAR", "a", "a "),
        ("SMALLINT", 1, "BIGINT", 1, 2),
        ("UBIGINT", BIG + 1, "BIGINT", BIG, BIG + 1),
        ("UBIGINT", BIG + 1, "HUGEINT", BIG + 1, BIG),
        ("DATE", "2020-01-01", "DATE", "2020-01-01", "2020-01-02"),
        ("BOOLEAN", True, "BOOLEAN", True, False),
        ("UUID", UUIDS[0], "UUID", UUIDS[0], UUIDS[0][:-1] + "2"),
        ("TIMESTAMP", "2020-01-01", "TIMESTAMP", "2020-01-01", "2020-01-02"),
    ],
)
def test_keys_of_one_kind_are_told_apart_exactly(
    on: str, value: Any, key: str, one: Any, other: Any, tmp_path: Path
) -> None:
    found = cells(keyed(tmp_path, on, value, key, one, other), KEYED, person=None)
    assert found == Counter([("x", "y" if other == value else "x")])


def test_keys_that_are_one_where_they_are_compared_are_refused(tmp_path: Path) -> None:
    """Here, equal bytes; the collation of the column is not asked."""
    with pytest.raises(DataError, match="several of its rows have the same key"):
        cells(keyed(tmp_path, "VARCHAR", "a", "VARCHAR COLLATE NOCASE", "a", "a"), KEYED, person=None)


def test_keys_of_files_and_frames_are_of_one_kind(tmp_path: Path) -> None:
    texts = pd.DataFrame({"clinic": ["1", "01"], "kind": ["x", "y"]})
    texts.to_parquet(tmp_path / "texts.parquet")
    (tmp_path / "fact.csv").write_text("v,clinic\nx,1\nx,01\nx,\n")

    def joined(fact: Any, other: Any, **declared: Any) -> Counter[tuple[Any, ...]]:
        join = Join(name="clinics", source=other, on="clinic", holds="public")
        domain = tacit.Domain({"v": KEYED["v"], "kind": KEYED["kind"], **declared})
        return cells(Star(fact, [join]), domain, person=None)

    fact, whole = str(tmp_path / "fact.csv"), tacit.integer(0, 9, missing="none")
    # What a CSV file's key is read as is declared, or is what it is joined to.
    with pytest.raises(DataError, match=TWO_KINDS):
        joined(fact, str(tmp_path / "texts.parquet"), clinic=whole)
    with pytest.raises(DataError, match=INEXACT):
        joined(fact, str(tmp_path / "texts.parquet"), clinic=tacit.numeric(edges=[0, 1.5, 9], missing="none"))
    numbers = pd.DataFrame({"clinic": [1, 2], "kind": ["x", "y"]})
    numbers.to_csv(tmp_path / "numbers.csv", index=False)
    assert joined(fact, str(tmp_path / "texts.parquet")) == Counter([("x", "x"), ("x", "y"), ("x", "none")])
    assert joined(fact, numbers) == Counter({("x", "x"): 2, ("x", "none"): 1})
    for other in (numbers, str(tmp_path / "numbers.csv")):
        assert joined(fact, other, clinic=whole) == Counter({("x", "x", "1"): 2, ("x", "none", "none"): 1})
    # pandas makes floats of whole numbers with gaps; two neighbours above 2**53 are one of them.
    gaps = pd.DataFrame({"v": ["x", "x"], "clinic": [float(BIG), None]})
    beyond = pd.DataFrame({"clinic": [BIG, BIG + 1], "kind": ["x", "y"]})
    with pytest.raises(DataError, match=INEXACT):
        joined(gaps, beyond)
    assert joined(gaps.astype({"clinic": "Int64"}), beyond) == Counter([("x", "x"), ("x", "none")])
    nobody = gaps.assign(clinic=pd.Series([None, None], dtype=object))
    assert joined(nobody, beyond) == Counter({("x", "none"): 2})


# -- neighbours -------------------------------------------------------------------------------------------------------

SMALL = tacit.Domain({"v": tacit.category(["x", "y"]), "sex": tacit.category(["F", "M"], missing="none")})


def small(visits: tuple[tuple[str, str], ...], sexes: dict[str, str]) -> Star:
    fact = pd.DataFrame({"who": [who for who, _ in visits], "v": [v for _, v in visits]})
    people = pd.DataFrame({"who": list(sexes), "sex": list(sexes.values())}, dtype="object")
    return Star(fact, [Join(name="people", source=people, on="who", holds="person")])


def test_all_that_is_about_a_person_moves_at_most_their_rows() -> None:
    """A person's rows of the fact table and of the table of people are replaced, by any others.

    As many rows are kept as before, since n is public.
    """
    most, rest, tables = 2, (("b", "x"), ("b", "y")), []
    for count in (1, 2, 3):
        for mine in itertools.combinations_with_replacement([("a", v) for v in "xy"], count):
            for sex in ("F", "M", None):
                sexes = {"b": "F"} | ({} if sex is None else {"a": sex})
                tables.append(cells(small((*rest, *mine), sexes), SMALL, person="who", rows_per_person=most))
    pairs = [(one, other) for one, other in itertools.combinations(tables, 2) if one.total() == other.total()]
    assert max((one - other).total() for one, other in pairs) == most


# -- sessions and commands --------------------------------------------------------------------------------------------


def configured(folder: Path, **change: str) -> None:
    rng = np.random.default_rng(1)
    visits = pd.DataFrame({"patient": rng.integers(0, 400, 2000), "clinic": rng.integers(0, 6, 2000)})
    visits.to_csv(folder / "visits.csv", index=False)
    pd.DataFrame({"id": range(390), "sex": ["F", "M"] * 195}).to_csv(folder / "patients.csv", index=False)
    pd.DataFrame({"clinic": range(6), "region": list("nnssss")}).to_csv(folder / "clinics.csv", index=False)
    text = """
[data]
source = "visits.csv"
person = "patient"
rows_per_person = 3

[[data.join]]
name = "patients"
source = "patients.csv"
on = "patient"
to = "id"
holds = "person"

[[data.join]]
name = "clinics"
source = "clinics.csv"
on = "clinic"
holds = "public"

[budget]
epsilon = 50.0
delta = 1e-9

[session]
ledger = "visits.tacit"
mechanism = "direct"
questions = 10

[domain.sex]
kind = "category"
values = ["F", "M"]
missing = "unknown"

[domain.region]
kind = "category"
values = ["n", "s"]
"""
    for old, new in change.items():
        text = text.replace(f"{old} = ", f"{new} = ", 1)
    (folder / "tacit.toml").write_text(text)


def test_a_configuration_declares_a_star(here: Path) -> None:
    configured(here)
    assert run("check").exit_code == 0
    (found,) = answered("ask", "SELECT COUNT(*) FROM data WHERE region = 'n' AND sex = 'F'")
    visits = pd.read_csv("visits.csv").groupby("patient").head(3)
    expected = len(visits) / 3 / 2
    assert abs(found["value"] - expected) < 0.25 * expected
    (status,) = answered("status")
    assert status["rows"] == len(visits)


def test_a_configuration_says_what_is_wrong_with_a_join(here: Path) -> None:
    configured(here, holds="hold")
    refused(run("status"), "[data.join] has no setting hold", "name, on, holds, source, table, to")
    configured(here)
    text = (here / "tacit.toml").read_text()
    (here / "tacit.toml").write_text(text.replace('on = "patient"\n', ""))
    refused(run("ask", "SELECT COUNT(*) FROM data"), "[data.join] needs on")
    (here / "tacit.toml").write_text(text.replace('person = "patient"\nrows_per_person = 3\n', ""))
    refused(run("ask", "SELECT COUNT(*) FROM data WHERE sex = 'F'"), "patients holds people", "Nothing was spent")
    (here / "tacit.toml").write_text(text.replace("[[data.join]]", "[data.join]", 1).split("[[data.join]]")[0])
    refused(run("ask", "SELECT COUNT(*) FROM data"), "[[data.join]]")


@pytest.mark.parametrize("held", ["memory", "engine"])
def test_a_session_of_a_star_is_known_again(tmp_path: Path, held: str) -> None:
    settings: dict[str, Any] = {
        "domain": DOMAIN,
        "budget": tacit.Budget(epsilon=1.0),
        "ledger": tmp_path / "visits.tacit",
        "anchor": tmp_path / "anchors.sqlite",
        "mechanism": "direct",
        "person": "patient",
        "rows_per_person": 3,
        "held": held,
    }
    with tacit.open(data=star(), **settings) as session:
        value = session.ask(tacit.count(sex="F")).value
    with tacit.open(data=star(), **settings) as session:
        assert session.ask(tacit.count(sex="F")).value == value
    other = star((VISITS, PATIENTS.assign(sex="M"), *TABLES[2:]))
    if held == "memory":  # a copy is what was counted from the first
        with pytest.raises(tacit.LedgerError, match="data"):  # another table of people is another table
            tacit.open(data=other, **settings)
