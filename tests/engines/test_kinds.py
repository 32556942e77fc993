"""Rows in memory and rows in the engine are one table: the same answers to the last bit, on every engine."""

from __future__ import annotations

import gc
import os
import stat
import uuid
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import tacit
import tacit.owner.opening  # whoever draws noise is there before the first test begins
from tacit.errors import AnswerWithheld, ConfigError, DataError, InvalidQuery, LedgerError, TacitError
from tacit.load import BEGUN, Source, copies, engines, open_source, scan, tables
from tacit.load.copies import Copy
from tacit.load.engines import UNWRITTEN, Postgres
from tacit.load.star import Join, Star
from tacit.model import counting
from tacit.model.attribute import boolean, category, integer, numeric
from tacit.model.certificate import Certificate, Conjunctions
from tacit.model.counting import Group
from tacit.model.domain import Domain
from tacit.model.factor import GRID
from tacit.model.query import Query
from tacit.model.residuals import Residuals
from tacit.model.statistic import Statistic
from tacit.model.workload import Convolution, Product, Question, Tree, marginal
from tacit.owner import binding
from tacit.owner.rows import Rows
from tacit.owner.terms import made_with
from tacit.trusted.cells import encode, read_records
from tacit.trusted.copy import AnyRecords, Counted
from tacit.trusted.records import Records
from tacit.trusted.sensitivity import truth

BUDGET = tacit.Budget(epsilon=1.0, delta=1e-9)
DOMAIN = Domain(
    {
        "sex": category(["F", "M"], missing="unknown"),
        "age": integer(0, 299),  # a code of two bytes
        "pay": numeric([0, 10, 20, 50], clamp=True),
        "ill": boolean(),
        "town": category([f"t{i}" for i in range(30)], other="other"),  # looked up in a list
    }
)
ROWS = 2_000
ANOTHER = "another copy than the one that was opened"
MAKE = (
    "SELECT CASE i % 7 WHEN 0 THEN NULL WHEN 1 THEN 'F' ELSE 'M' END AS sex, (i * i) % 300 AS age, "
    "(i * 13) % 61 - 5.5 AS pay, i % 3 = 0 AS ill, concat('t', (i * 11) % 37) AS town, (i * 17) % 700 AS who "
    "FROM {} AS made(i)"
)
ENGINES = [
    "duckdb",
    pytest.param("postgres", marks=pytest.mark.postgres),
    pytest.param("spark", marks=pytest.mark.spark),
]


@pytest.fixture(scope="module", params=ENGINES)
def table(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, str | None]]:
    """What `open_source` is given for the table, in each engine."""
    if request.param == "duckdb":
        path = tmp_path_factory.mktemp("table") / "people.parquet"
        duckdb.execute(f"COPY ({MAKE.format(f'range({ROWS})')}) TO '{path}'")
        yield str(path), None
    elif request.param == "postgres":
        import psycopg

        url = request.getfixturevalue("postgres")
        with psycopg.connect(url) as connection:
            connection.execute(f"CREATE TABLE IF NOT EXISTS people AS {MAKE.format(f'generate_series(0, {ROWS - 1})')}")
        yield url, "people"
    else:
        session = request.getfixturevalue("spark")
        made = MAKE.format(f"(SELECT id FROM range({ROWS}))")
        yield session.sql(made).repartition(3), None


@pytest.fixture(params=[1, 2], ids=["a row", "two rows of each person"], scope="module")
def both(
    request: pytest.FixtureRequest, table: tuple[Any, str | None], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Records, Counted]]:
    """The same rows in memory and in the engine."""
    whose: dict[str, Any] = {} if request.param == 1 else {"person": "who", "rows_per_person": 2}
    source = open_source(*table)
    ledger = tmp_path_factory.mktemp("ledger") / "l.tacit"
    rows = Rows(table[0], DOMAIN, ledger, table[1], held="engine", **whose)
    counted = rows.read()
    assert isinstance(counted, Counted)
    yield read_records(source, DOMAIN, **whose), counted
    rows.copy_in(source).delete()


def scripted(count: int = 60) -> list[Query]:
    """Conditions, weights, ties and complements, of one to all attributes."""
    rng = np.random.default_rng(3)
    found = [Query.constant(everyone=True), Query.constant(everyone=False)]
    while len(found) < count:
        parts = list[Query]()
        for name in rng.permutation(DOMAIN.names)[: rng.integers(1, len(DOMAIN) + 1)]:
            size = DOMAIN[name].size
            kind = rng.integers(0, 4)
            if kind == 0:
                parts.append(Query.weighted(DOMAIN, [name], rng.random(size)))
            elif kind == 1:
                low = int(rng.integers(0, size))
                parts.append(Query.among(DOMAIN, name, range(low, size)))
            else:
                parts.append(Query.among(DOMAIN, name, np.flatnonzero(rng.random(size) < 0.6).tolist()))
        if rng.random() < 0.3:
            parts.append(Query.weighted(DOMAIN, ["ill", "sex"], rng.integers(0, 2, (2, 3))))
        query = Query.all(parts)
        found.append(~query if rng.random() < 0.3 else query)
    return found


def questions() -> list[Question]:
    """One of each kind that is made of tables."""
    where = Query.among(DOMAIN, "age", range(20, 200)) & Query.among(DOMAIN, "town", [1, 5, 30])
    tied = Query.weighted(DOMAIN, ["ill", "sex"], np.array([[1, 0, 1], [0, 1, 0]]))
    boxes = tuple(np.eye(size, dtype=np.uint8) for size in (3, 3))
    listed = Conjunctions(("sex", "pay"), np.full((3, 3), 100 * GRID), boxes, False)
    return [
        marginal(DOMAIN, "sex", "town"),
        marginal(DOMAIN, "sex", "ill", where=where),
        marginal(DOMAIN, "town", where=~where),
        marginal(DOMAIN, "age", where=tied & where),
        Residuals((("age",), ("ill",), ("ill", "town"), ("ill", "sex", "town")), (1, 2, 3, 1)),
        Certificate("base", "boxes", 2, listed.size, (1, 5, listed.size), (), (listed,)),
        Tree("age", (10, 30), (1, 2)),
        Convolution("pay", 30, False),
        Product(Tree("pay", (3,), (1,)), Tree("sex", (3,), (2,))),
        Product(Tree("age", (10, 30), (1, 2)), Tree("pay", (2, 2), (1, 1)), nested=True),
        Statistic("stump", ("age", "ill"), (300, 1)),
    ]


class TestBothKinds:
    def test_counts_are_the_same(self, both: tuple[Records, Counted], monkeypatch: pytest.MonkeyPatch) -> None:
        loaded, counted = both
        assert counted.rows == loaded.rows
        for small in (counting._SMALL, 16):  # with 16, conditions are left to the engine
            monkeypatch.setattr(counting, "_SMALL", small)
            counted.prepare(scripted())
            for query in scripted():
                assert counted.answer(query) == loaded.answer(query)

    def test_whatever_is_asked_has_the_same_truth(
        self, both: tuple[Records, Counted], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        loaded, counted = both
        monkeypatch.setattr(tables, "LEAST_CELLS", 1)
        for small, kept in ((counting._SMALL, copies.KEPT), (16, copies.KEPT), (16, 40)):  # with 40, most is forgotten
            monkeypatch.setattr(counting, "_SMALL", small)
            monkeypatch.setattr(copies, "KEPT", kept)
            counted.prepare(questions())
            for question in questions():
                assert (truth(question, counted) == truth(question, loaded)).all(), question
        asked = ("town", "ill", "age")  # in an order of its own
        assert (counted.table(asked) == loaded.table(asked)).all()

    def test_a_session_answers_the_same_to_the_last_bit(self, table: tuple[Any, str | None], tmp_path: Path) -> None:
        import seeded_noise

        told = []
        for held in ("memory", "engine"):
            seeded_noise.begin()
            with tacit.open(
                data=table[0], table=table[1], domain=DOMAIN, budget=BUDGET, held=held, person="who", rows_per_person=3,
                ledger=tmp_path / f"{held}.tacit", anchor=tmp_path / held, mechanism="iterative", warm=0.5, hits=20,
            ) as session:  # fmt: skip
                session.start()
                answers = [session.ask(query) for query in scripted(30)]
                answers += [session.ask("SELECT sex, COUNT(*) FROM data WHERE age < 100 GROUP BY sex")]
                told.append([(str(one), one.cost) for one in answers])
        Rows(table[0], DOMAIN, tmp_path / "engine.tacit", table[1], "who", 3).copy_in(open_source(*table)).delete()
        assert told[0] == told[1]

    def test_the_ledger_knows_its_rows_again_and_no_others(
        self, both: tuple[Records, Counted], table: tuple[Any, str | None], tmp_path: Path
    ) -> None:
        counted = both[1]
        assert counted.fingerprint(b"k") == counted.fingerprint(b"k") != counted.fingerprint(b"l")

    def test_there_is_no_copy_before_it_is_checked(
        self, table: tuple[Any, str | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whatever stops a check, a power cut included, leaves none that anybody would count."""
        source = open_source(*table)
        rows = Rows(table[0], DOMAIN, tmp_path / "l.tacit", table[1], "who", 4)
        checked, seen = Domain.check_declared, list[str | None]()

        def stopped(self: Domain, codes: Any) -> None:
            checked(self, codes)
            seen.append(rows.copy_in(source).made_for)
            raise KeyboardInterrupt

        monkeypatch.setattr(Domain, "check_declared", stopped)
        with pytest.raises(KeyboardInterrupt):
            rows.encode(source)
        monkeypatch.undo()
        assert seen in ([None], [BEGUN])  # Spark's folder is there, and not marked as whole
        assert rows.copy_in(source).made_for is None
        rows.encode(source).delete()

    def test_a_copy_in_the_place_of_the_one_that_was_opened_is_refused(
        self, table: tuple[Any, str | None], tmp_path: Path
    ) -> None:
        source = open_source(*table)
        rows = Rows(table[0], DOMAIN, tmp_path / "l.tacit", table[1], held="engine")
        counted = rows.read()
        assert counted.table(("sex",)).sum() == ROWS
        rows.copy_in(source).delete()
        with pytest.raises(DataError, match=r"could not be read|another copy than the one that was opened"):
            counted.table(("ill",))
        rows.encode(source)  # the very same rows, which nobody can know
        with pytest.raises(DataError, match=ANOTHER):
            counted.table(("ill",))
        assert rows.read().table(("ill",)).sum() == ROWS
        rows.copy_in(source).delete()


@pytest.mark.postgres
def test_postgresql_works_out_the_codes_of_a_row_once(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each code is a part of a sum of all of them, which the planner would write into each of its places."""
    import psycopg

    written = list[str]()
    monkeypatch.setattr(Postgres, "keep", lambda self, select, *_: written.append(select))
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE TABLE IF NOT EXISTS people AS {MAKE.format(f'generate_series(0, {ROWS - 1})')}")
        Rows(postgres, DOMAIN, tmp_path / "l.tacit", "people").encode(open_source(postgres, "people"))
        plan = "\n".join(line for (line,) in connection.execute(f"EXPLAIN VERBOSE {written[0]}").fetchall())
    assert 0 < plan.count("people.pay") < 12  # 26 where it is written five times


def test_an_owner_writes_and_deletes_the_copy_in_python(table: tuple[Any, str | None], tmp_path: Path) -> None:
    """Whatever the data are: a configuration names no frame."""
    same: dict[str, Any] = {
        "data": table[0], "table": table[1], "domain": DOMAIN, "ledger": tmp_path / "l.tacit", "person": "who",
        "rows_per_person": 2,
    }  # fmt: skip
    engine = open_source(*table).engine
    place = tacit.encode(**same)
    state = engine.state(place)
    assert not (tmp_path / "l.tacit").exists()
    with pytest.raises(ConfigError, match=r"is there already.*tacit\.forget"):
        tacit.encode(**same)
    with tacit.open(**same, budget=BUDGET, mechanism="direct", held="engine", anchor=tmp_path / "anchor") as session:
        assert session.rows == 2 * 700
    assert engine.state(place) == state  # the session counted there
    assert tacit.forget(**same)
    assert engine.made_for(place) is None
    assert not tacit.forget(**same)
    for work in (tacit.encode, tacit.forget):
        with pytest.raises(ConfigError, match="given together"):
            work(**same | {"rows_per_person": None})


def test_the_copy_of_a_frame_is_forgotten_in_python(tmp_path: Path) -> None:
    import pyarrow

    same: dict[str, Any] = {"domain": SMALL, "ledger": tmp_path / "l.tacit", "copy": str(tmp_path / "codes")}
    told = list[float]()
    for frame in (duckdb.sql("SELECT 0 AS a, 1 AS b"), pyarrow.table({"a": [0], "b": [1]})):
        assert tacit.encode(data=frame, **same, loading=told.append) == same["copy"]
        # A frame is known by its ledger alone.
        with pytest.raises(DataError, match=r"another table, domain or bound.*tacit\.forget"):
            Rows(frame, SMALL, tmp_path / "other.tacit", copy=same["copy"], held="engine").read()
        assert tacit.forget(data=frame, **same)
    Path(same["copy"]).write_text("my own")
    with pytest.raises((ConfigError, DataError)):
        tacit.forget(data=frame, **same)
    assert Path(same["copy"]).read_text() == "my own"


@pytest.mark.parametrize("whose", [{}, {"person": "who", "rows_per_person": 2}], ids=["rows", "people"])
def test_a_copy_that_lacks_a_row_of_the_table_is_refused(
    table: tuple[Any, str | None], whose: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = open_source(*table)
    rows = Rows(table[0], DOMAIN, tmp_path / "l.tacit", table[1], **whose)
    kind = type(source.engine)
    keep = kind.keep

    def losing(self: Any, select: str, *more: Any) -> None:
        keep(self, f"SELECT * FROM ({select}) AS whole LIMIT {(2 * 700 if whose else ROWS) - 1}", *more)

    monkeypatch.setattr(kind, "keep", losing)
    with pytest.raises(DataError, match="not those of the table"):
        rows.encode(source)
    monkeypatch.undo()
    assert rows.copy_in(source).made_for is None
    rows.encode(source).delete()


@pytest.mark.postgres
@pytest.mark.parametrize("what", ["rows", "people", "join"])
def test_a_table_of_postgresql_that_others_write_to_is_copied_in_one_state(
    postgres: str, tmp_path: Path, what: str
) -> None:
    import psycopg

    name = f"live_{what}"
    with psycopg.connect(postgres) as connection:
        connection.execute(
            f"CREATE TABLE {name} AS SELECT i AS a, i % 2 AS b, i AS who FROM generate_series(0, 2) t(i)"
        )
        connection.execute(f"CREATE TABLE {name}_town AS SELECT 0 AS b, 0 AS flat UNION ALL SELECT 1, 1")
    data: Any = postgres
    if what == "join":
        data = Star(postgres, [Join(name="town", table=f"{name}_town", on="b", holds="public")], name)
    told = list[float]()

    def written_to(share: float) -> None:
        """Rows come after the copy was written and before it is checked."""
        if share < 1:
            with psycopg.connect(postgres) as connection:
                connection.execute(f"INSERT INTO {name} VALUES (0, 0, 7), (1, 1, 7)")
        told.append(share)

    whose: dict[str, Any] = {"person": "who", "rows_per_person": 1} if what == "people" else {}
    for number, rows in enumerate((3, 4 if what == "people" else 5)):
        ledger = tmp_path / f"{number}.tacit"
        with tacit.open(
            data=data, table=None if what == "join" else name, domain=SMALL, budget=BUDGET, ledger=ledger,
            anchor=tmp_path / "anchor", mechanism="direct", held="engine", loading=written_to, **whose,
        ) as session:  # fmt: skip
            assert session.rows == rows
        Rows(data, SMALL, ledger, None if what == "join" else name, **whose).forget()
    assert 0 < told[0] < 1


# -- what is about the copy, and not about the engine -----------------------------------------------------------------


SMALL = Domain({"a": integer(0, 2), "b": integer(0, 1)})


def written(folder: Path, rows: Sequence[tuple[int | None, ...]], name: str = "t.parquet") -> str:
    path = str(folder / name)
    values = ", ".join("(" + ", ".join("NULL" if x is None else str(x) for x in row) + ")" for row in rows)
    duckdb.execute(f"COPY (SELECT * FROM (VALUES {values}) AS t(a, b)) TO '{path}'")
    return path


def copied(folder: Path, rows: Sequence[tuple[int | None, ...]], name: str = "t") -> Copy:
    copy = Rows(written(folder, rows, f"{name}.parquet"), SMALL, folder / name).copy_in(
        open_source(str(folder / f"{name}.parquet"))
    )
    encode(copy.source, copy, SMALL)
    return copy


def opened(folder: Path, path: str, **more: Any) -> tacit.Session:
    return tacit.open(
        data=path, domain=SMALL, budget=BUDGET, ledger=folder / "l.tacit", anchor=folder / "anchor",
        **{"mechanism": "direct", "held": "engine", **more},
    )  # fmt: skip


def test_the_copy_is_secret_small_and_has_no_identifiers(tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    duckdb.execute(f"COPY (SELECT 1 AS a, 0 AS b, 'Wilhelmina' AS who FROM range(9)) TO '{path}'")
    copy = Rows(path, SMALL, tmp_path / "l.tacit", person="who", rows_per_person=2).copy_in(open_source(path))
    encode(copy.source, copy, SMALL, person="who", rows_per_person=2)
    assert stat.S_IMODE(os.stat(copy.place).st_mode) == 0o600
    assert copy.rows() == 2
    kinds = duckdb.execute(f"DESCRIBE SELECT * FROM read_parquet('{copy.place}')").fetchall()
    assert [(name, kind) for name, kind, *_ in kinds] == [("c0", "UTINYINT"), ("c1", "UTINYINT")]
    assert b"Wilhelmina" not in Path(copy.place).read_bytes()
    spilled = [path for path in tmp_path.iterdir() if ".spill." in path.name]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o700 for path in spilled)
    del copy
    gc.collect()
    assert sorted(os.listdir(tmp_path)) == ["l.tacit.codes", "t.parquet"]


def test_a_value_that_is_not_declared_refuses_the_copy_and_leaves_none(tmp_path: Path) -> None:
    for rows, says in (([(7, 0)], "outside"), ([(None, 0), (1, 1)], "missing")):
        path = written(tmp_path, rows)
        with pytest.raises(DataError) as memory:
            read_records(open_source(path), SMALL)
        with pytest.raises(DataError) as engine:
            opened(tmp_path, path)
        assert str(engine.value) == str(memory.value), says
        assert not (tmp_path / "l.tacit.codes").exists()


def test_a_ledger_is_bound_to_declared_codes_alone(tmp_path: Path) -> None:
    path = written(tmp_path, [(0, 0), (1, 1)])
    about = Rows(path, SMALL, tmp_path / "l.tacit").copy_in(open_source(path)).about
    for code in ("2", "3", "NULL"):  # of b, which has 0 and 1
        duckdb.execute(
            f"COPY (SELECT 0::UTINYINT AS c0, {code}::UTINYINT AS c1 FROM range(2)) TO '{tmp_path / 'l.tacit.codes'}' "
            f"(FORMAT parquet, KV_METADATA {{tacit: '{about}'}})"
        )
        with pytest.raises(DataError):
            opened(tmp_path, path)


def test_the_table_may_change_afterwards_and_another_copy_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, [(0, 0), (1, 1), (2, 1)])
    with opened(tmp_path, path) as session:
        assert session.rows == 3
    written(tmp_path, [(0, 0), (1, 1), (2, 0)])
    with opened(tmp_path, path) as session:  # the copy is what it was
        assert session.rows == 3
    (tmp_path / "l.tacit.codes").unlink()
    with pytest.raises(LedgerError, match="has changed since the ledger"):
        opened(tmp_path, path)
    written(tmp_path, [(2, 1), (0, 0), (1, 1)])  # the same rows in another order
    with opened(tmp_path, path) as session:
        assert session.rows == 3
    with pytest.raises(LedgerError, match="held = engine, not memory"):
        opened(tmp_path, path, held="memory")


def test_a_refused_opening_leaves_no_copy_of_the_wrong_rows(tmp_path: Path) -> None:
    path, place = written(tmp_path, [(0, 0), (1, 1)]), tmp_path / "l.tacit.codes"
    same: dict[str, Any] = {"data": path, "domain": SMALL, "ledger": tmp_path / "l.tacit"}
    opened(tmp_path, path).close()
    assert tacit.forget(**same)
    written(tmp_path, [(0, 0), (1, 0)])
    of_another_run = tmp_path / "l.tacit.codes.1.new"
    of_another_run.touch()
    with pytest.raises(LedgerError, match=r"^t\.parquet has changed since the ledger l\.tacit"):
        opened(tmp_path, path)
    assert not place.exists()
    assert of_another_run.exists()
    written(tmp_path, [(1, 1), (0, 0)])
    with opened(tmp_path, path) as session:
        assert session.rows == 2


@pytest.mark.postgres
def test_a_refused_opening_leaves_no_table_of_the_wrong_rows(postgres: str, tmp_path: Path) -> None:
    with InPostgreSQL(postgres, tmp_path) as held:
        held.open().close()
        held.forget()
        held.do("INSERT INTO {table} VALUES (0, 0)")
        with pytest.raises(LedgerError, match="the table has changed since the ledger"):
            held.open()
        assert not held.is_there
        held.do("DELETE FROM {table} WHERE ctid IN (SELECT ctid FROM {table} WHERE a = 0 AND b = 0 LIMIT 1)")
        held.open().close()
        # Somebody changes the copy itself.
        held.do(UNGUARD, "UPDATE {copy} SET c0 = 1 WHERE c0 = 2")
        with pytest.raises(LedgerError, match=rf"the encoded copy {held.place} has other rows.*`tacit forget`"):
            held.open()
        assert held.is_there
        held.forget()
        held.open().close()


def test_a_copy_that_was_there_before_is_refused_by_name_and_stays(tmp_path: Path) -> None:
    path, place = written(tmp_path, [(0, 0), (1, 1)]), tmp_path / "l.tacit.codes"
    same: dict[str, Any] = {"data": path, "domain": SMALL, "ledger": tmp_path / "l.tacit"}
    opened(tmp_path, path).close()
    tacit.forget(**same)
    written(tmp_path, [(0, 0), (1, 0)])
    tacit.encode(**same)
    written(tmp_path, [(0, 0), (1, 1)])
    content = place.read_bytes()
    with pytest.raises(LedgerError, match=rf"the encoded copy {place} has other rows.*`tacit forget`.*tacit\.forget"):
        opened(tmp_path, path)
    assert place.read_bytes() == content
    tacit.forget(**same)  # as it says
    opened(tmp_path, path).close()


def test_what_took_the_place_of_a_refused_copy_stays(tmp_path: Path) -> None:
    path, place = written(tmp_path, [(0, 0), (1, 1)]), tmp_path / "l.tacit.codes"
    rows = Rows(path, SMALL, tmp_path / "l.tacit", held="engine")
    rows.read()
    os.replace(copied(tmp_path, [(0, 1), (1, 0)], "other").place, place)
    content = place.read_bytes()
    assert rows.withdraw() == str(place)
    assert place.read_bytes() == content


def test_a_table_without_rows_leaves_no_copy(tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    for whose, says in (({}, "no rows."), ({"person": "who", "rows_per_person": 1}, "no rows that name a person.")):
        duckdb.execute(f"COPY (SELECT 0 AS a, 0 AS b, '' AS who FROM range({len(whose)})) TO '{path}'")
        for held in ("memory", "engine"):
            with pytest.raises(DataError, match=f"the table has {says}"):
                opened(tmp_path, path, held=held, **whose)
        assert os.listdir(tmp_path) == ["t.parquet"]


WRONG = "31337-or-so"  # in the place of a number


@pytest.mark.parametrize("what", ["csv", "query", "parquet"])
def test_what_is_wrong_with_the_rows_is_told_as_where_they_are_loaded(tmp_path: Path, what: str) -> None:
    path = str(tmp_path / f"t.{what}")
    columns = f"i % 3 AS a, CASE i WHEN 29999 THEN '{WRONG}' ELSE '1' END AS b FROM range(30000) AS t(i)"
    if what == "csv":  # beyond what the engine looks at to guess types
        duckdb.execute(f"COPY (SELECT {columns}) TO '{path}' (FORMAT csv, HEADER)")
    elif what == "parquet":
        duckdb.execute(f"COPY (SELECT i % 3 AS a, hash(i) % 2 AS b FROM range(30000) AS t(i)) TO '{path}'")
        content = Path(path).read_bytes()
        Path(path).write_bytes(content[:1000] + b"\xff" * 1000 + content[2000:])
    else:
        path = f"SELECT a, CAST(b AS INT) AS b FROM (SELECT {columns})"
    with pytest.raises(DataError) as memory:
        read_records(open_source(path), SMALL)
    same: dict[str, Any] = {"data": path, "domain": SMALL, "ledger": tmp_path / "l.tacit"}
    for work in (partial(opened, tmp_path, path), partial(tacit.encode, **same)):
        with pytest.raises(DataError) as engine:
            work()
        assert str(engine.value) == str(memory.value)
        assert engine.value.__context__ is None
        assert not (tmp_path / "l.tacit.codes").exists()
    told = {"csv": "column b of t.csv holds something that is not a number.", "query": "the query could not be read."}
    assert str(memory.value).startswith(told.get(what, "t.parquet could not be read as Parquet."))


@pytest.mark.postgres
def test_what_is_wrong_with_a_view_of_postgresql_is_told_as_where_it_is_loaded(postgres: str, tmp_path: Path) -> None:
    import psycopg

    with psycopg.connect(postgres) as connection:
        connection.execute(f"CREATE TABLE texts AS SELECT 0 AS a, '{WRONG}' AS b")
        connection.execute("CREATE TABLE flags AS SELECT 0 AS a, 1 AS b")
        connection.execute("CREATE VIEW cast_texts AS SELECT a, CAST(b AS INT) AS b FROM texts")
    source = open_source(postgres, "cast_texts")
    with pytest.raises(DataError) as memory:
        read_records(source, SMALL)
    with pytest.raises(DataError) as engine:
        Rows(postgres, SMALL, tmp_path / "l.tacit", "cast_texts").encode(source)
    assert str(engine.value) == str(memory.value)
    rows = Rows(postgres, SMALL, tmp_path / "l.tacit", "flags", copy="nowhere.codes")
    with pytest.raises(DataError, match=r"nowhere\.codes could not be written: check the room there, your rights"):
        rows.encode(open_source(postgres, "flags"))


def test_a_copy_that_cannot_be_written_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, [(0, 0), (1, 1)])
    for place in (
        str(tmp_path / "none" / "codes"),
        "/dev/full",
    ):  # the engine itself is refused a place, or has no room
        with monkeypatch.context() as patched:
            if place == "/dev/full":
                patched.setattr(engines, "new_file", lambda place: nullcontext(place))
                patched.setattr(engines.DuckDB, "_limit", lambda *_: None)
            copy = replace(Rows(path, SMALL, tmp_path / "l.tacit").copy_in(open_source(path)), place=place)
            with pytest.raises(DataError, match=f"^{place} could not be written: check the room there, your rights"):
                encode(copy.source, copy, SMALL)


def test_a_copy_that_nobody_touched_is_not_read_to_know_it_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, [(0, 0), (1, 1)])
    read = list[bytes]()
    sums = Copy.sums
    monkeypatch.setattr(Copy, "sums", lambda self, key: (read.append(key), sums(self, key))[1])
    opened(tmp_path, path).close()
    opened(tmp_path, path).close()
    assert len(read) == 1
    copy = tmp_path / "l.tacit.codes"
    content = copy.read_bytes()
    copy.unlink()
    copy.write_bytes(content)  # the same bytes in another file
    opened(tmp_path, path).close()
    assert len(read) == 2


def test_a_copy_of_another_domain_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, [(0, 0), (1, 1)])
    opened(tmp_path, path).close()
    other = Rows(path, Domain({"a": integer(0, 9)}), tmp_path / "l.tacit", held="engine")
    with pytest.raises(DataError, match="another table, domain or bound"):
        other.read()


def test_a_copy_of_another_table_is_refused(tmp_path: Path) -> None:
    first, second = (written(tmp_path, [(0, 0), (1, b)], f"{b}.parquet") for b in range(2))
    place = str(tmp_path / "codes")
    opened(tmp_path, first, copy=place).close()
    with pytest.raises(DataError, match="another table, domain or bound"):
        opened(tmp_path, second, copy=place)
    frames = [Rows(duckdb.sql("SELECT 0 AS a, 0 AS b"), SMALL, tmp_path / name) for name in ("l", "m")]
    assert len({rows.copy_in(open_source(rows.data)).about for rows in frames}) == 2  # frames have no name


def test_what_tells_tables_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "postgresql://ana@host/db"

    def about(data: Any, table: str | None = None) -> tuple[str, str]:
        copy = Rows(data, SMALL, tmp_path / "l.tacit", table).copy_in(open_source(url, "t"))
        return copy.about, copy.place

    clinics, towns = (Star(url, [Join(name="j", table=name, on="c", holds="public")], "p") for name in ("k", "t"))
    places = ((url, "p"), (url, "q"), (url + "2", "p"), (clinics, None), (towns, None), ("a.csv", None))
    told = [about(*place) for place in places]
    monkeypatch.chdir(tmp_path)
    told += [about("a.csv"), about("SELECT * FROM 'a.csv'"), about("b.duckdb", "p"), about("b.duckdb", "q")]
    assert len(set(told)) == len(told)
    # A password is changed now and then, and a hash of it would lie where others may read.
    assert about("postgresql://ana:secret@host/db", "P") == about(url, "p")
    other = Rows(url, SMALL, tmp_path / "m.tacit", "p").copy_in(open_source(url, "p"))
    assert other.about == about(url, "p")[0]
    assert other.place != about(url, "p")[1]  # each ledger forgets its own


def test_a_copy_that_is_replaced_is_refused_before_and_after_a_scan(tmp_path: Path) -> None:
    copy = copied(tmp_path, [(0, 0), (1, 1)])
    records = Counted(copy, SMALL)
    engine = copy._reader.engine
    run, ran = engine.run, list[int]()

    def replaced(*given: Any) -> Any:
        found = run(*given)
        os.replace(copied(tmp_path, [(0, 1), (1, 0)], "other").place, copy.place)
        ran.append(1)
        return found

    engine.run = replaced  # type: ignore[method-assign]
    for _ in range(2):
        with pytest.raises(DataError, match=ANOTHER):
            records.table(("a",))
    assert ran == [1]  # while it was counted; and then nothing is


def test_a_copy_whose_name_is_a_pattern_stands_for_itself_alone(tmp_path: Path) -> None:
    folder = tmp_path / "[2026]"
    folder.mkdir()
    (tmp_path / "2").mkdir()
    copied(tmp_path / "2", [(0, 1), (1, 0), (1, 1)])
    assert Counted(copied(folder, [(0, 0), (1, 1)]), SMALL).rows == 2


@pytest.mark.parametrize("linked", ["the file", "its folder", "what a link stands for"])
def test_a_copy_behind_a_link_that_is_turned_and_turned_back_is_refused(tmp_path: Path, linked: str) -> None:
    for version, rows in (("v2", [(0, 1), (1, 0)]), ("v1", [(0, 0), (1, 1)])):
        (tmp_path / version).mkdir()
        copy = copied(tmp_path / version, rows)
    places = [tmp_path / version / Path(copy.place).name for version in ("v2", "v1")]
    targets = places if linked == "the file" else [place.parent for place in places]
    link = tmp_path / "current"
    link.symlink_to(targets[1])
    named = link if linked == "the file" else link / places[1].name
    if linked == "what a link stands for":
        (tmp_path / "named").symlink_to(named)
        named = tmp_path / "named"
    copy = replace(copy, place=str(named))
    records = Counted(copy, SMALL)
    engine = copy._reader.engine
    run = engine.run

    def turned(*given: Any) -> Any:
        found = list[Any]()
        for target in targets:
            link.unlink()
            link.symlink_to(target)
            found.append(run(*given))
        return found[0]

    engine.run = turned  # type: ignore[method-assign]
    with pytest.raises(DataError, match=ANOTHER):
        records.table(("a",))


UNGUARD = f"ALTER TABLE {{copy}} DROP CONSTRAINT IF EXISTS {UNWRITTEN}"


class InPostgreSQL:
    """A session about a copy in PostgreSQL, and what somebody with rights there does to it."""

    def __init__(self, server: str, folder: Path, *, guarded: bool = True, mechanism: str = "direct") -> None:
        import psycopg

        self._connection = psycopg.connect(server, autocommit=True)
        self._table = f"held_{uuid.uuid4().hex}"
        self.do(f"CREATE TABLE {self._table} AS SELECT i % 3 AS a, i % 2 AS b FROM generate_series(1, 300) AS t(i)")
        rows = Rows(server, SMALL, folder / "l.tacit", self._table, held="engine")
        self.place = rows.encode(open_source(server, self._table)).place
        if not guarded:  # as copies were before PostgreSQL was told to refuse
            self.do(UNGUARD)
        self.open = partial(opened, folder, server, table=self._table, mechanism=mechanism)
        self._rows = rows

    def do(self, *statements: str) -> None:
        for statement in statements:
            self._connection.execute(statement.format(copy=getattr(self, "place", None), table=self._table))

    def forget(self) -> None:
        self._rows.forget()

    @property
    def is_there(self) -> bool:
        return self._rows.copied

    def __enter__(self) -> InPostgreSQL:
        return self

    def __exit__(self, *_: object) -> None:
        self.forget()
        self.do(f"DROP TABLE {self._table}")
        self._connection.close()


@pytest.mark.parametrize("mechanism", ["direct", "iterative"])
def test_a_copy_that_was_replaced_costs_nothing(tmp_path: Path, mechanism: str) -> None:
    path = written(tmp_path, [(0, 0), (1, 1), (2, 1)] * 100)
    with opened(tmp_path, path, mechanism=mechanism) as session:
        session.ask(tacit.count(b=1))
        spent = session.spent
        os.replace(copied(tmp_path, [(0, 1), (1, 0)], "other").place, tmp_path / "l.tacit.codes")
        for _ in range(2):
            with pytest.raises(TacitError, match=ANOTHER):
                session.ask(tacit.count(a=1, b=1))
        assert session.spent == spent
        assert session.ask(tacit.count(b=1)).value is not None  # what is known is told


@pytest.mark.postgres
@pytest.mark.parametrize("mechanism", ["direct", "iterative"])
def test_a_copy_in_postgresql_that_was_replaced_and_put_back_costs_nothing(
    postgres: str, tmp_path: Path, mechanism: str
) -> None:
    with InPostgreSQL(postgres, tmp_path, mechanism=mechanism) as held:
        with held.open() as session:
            session.ask(tacit.count(b=1))
            spent = session.spent
            held.do("ALTER TABLE {copy} RENAME TO kept", "CREATE TABLE {copy} AS SELECT * FROM kept")
            with pytest.raises(TacitError, match=ANOTHER):
                session.ask(tacit.count(a=1, b=1))
            held.do("DROP TABLE {copy}", "ALTER TABLE kept RENAME TO {copy}")
            with pytest.raises(TacitError, match=ANOTHER):  # what was done in between nobody knows
                session.ask(tacit.count(a=1, b=1))
            assert session.spent == spent
            assert session.ask(tacit.count(b=1)).value is not None  # what is known is told
        with held.open() as session:
            assert session.ask(tacit.count(a=1, b=1)).value is not None


@pytest.mark.postgres
def test_postgresql_refuses_whoever_writes_to_a_copy(postgres: str, tmp_path: Path) -> None:
    import psycopg

    with InPostgreSQL(postgres, tmp_path) as held, held.open() as session:
        for statement in ("INSERT INTO {copy} VALUES (0, 0)", "UPDATE {copy} SET c0 = 1 WHERE c1 = 1"):
            with pytest.raises(psycopg.errors.CheckViolation, match=UNWRITTEN):  # the owner, and a superuser
                held.do(statement)
        assert session.ask(tacit.count(a=1, b=1)).cost.atoms > 0


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("guarded", "done"),
    [
        (True, ["TRUNCATE {copy}"]),
        (True, ["VACUUM FULL {copy}"]),
        (True, [UNGUARD, "UPDATE {copy} SET c0 = 1 WHERE c0 = 0 AND c1 = 0"]),
        (True, [f"ALTER TABLE {{copy}} RENAME {names}" for names in ("c0 TO c2", "c1 TO c0", "c2 TO c1")]),
        (False, ["UPDATE {copy} SET c0 = 1"]),
    ],
    ids=["truncated", "rewritten", "its constraint dropped", "its columns exchanged", "without one, updated"],
)
def test_what_postgresql_knows_of_a_changed_copy_costs_nothing(
    postgres: str, tmp_path: Path, guarded: bool, done: list[str]
) -> None:
    with InPostgreSQL(postgres, tmp_path, guarded=guarded) as held, held.open() as session:
        spent = session.spent
        held.do(*done)
        for _ in range(2):
            with pytest.raises(TacitError, match=ANOTHER):
                session.ask(tacit.count(a=1))
        assert session.spent == spent


@pytest.mark.postgres
def test_rows_of_a_table_that_inherits_from_a_copy_are_not_counted(postgres: str, tmp_path: Path) -> None:
    """Who owns the copy may make such a table, with a constraint like the copy's: it looks at no row that is there."""
    with InPostgreSQL(postgres, tmp_path) as held, held.open() as session:
        child = f"{held.place}_child"
        held.do(
            f"CREATE TABLE {child} AS SELECT CAST(0 AS SMALLINT) AS c0, CAST(0 AS SMALLINT) AS c1",
            f"ALTER TABLE {child} ADD CONSTRAINT {UNWRITTEN} CHECK (false) NOT VALID",
            f"ALTER TABLE {child} INHERIT {{copy}}",
        )
        try:
            records = session._curator._records
            copy = records._copy  # type: ignore[union-attr]
            assert copy.rows() == 300
            assert records.table(("a", "b")).tolist() == [[50, 50]] * 3
            assert copy.sums(b"k" * 32)[1].tolist() == [[300, 0, 2], [300, 0, 1]]
            held.do("DELETE FROM ONLY {copy} WHERE ctid IN (SELECT ctid FROM ONLY {copy} LIMIT 1)")
            copy._tables.clear()
            with pytest.raises(AnswerWithheld):  # together they have as many rows as before
                session.ask(tacit.count(a=1))
        finally:
            held.do(f"DROP TABLE {child}")


@pytest.mark.postgres
@pytest.mark.parametrize(
    ("guarded", "done"),
    [
        (True, "DELETE FROM {copy} WHERE c0 = 0 AND c1 = 0"),
        (False, "INSERT INTO {copy} VALUES (0, 0)"),
        (False, "INSERT INTO {copy} VALUES (3, 2)"),  # which nobody declared
    ],
    ids=["deleted", "without its constraint, inserted", "without its constraint, undeclared"],
)
def test_rows_of_a_copy_in_postgresql_that_come_or_go_cost_one_question(
    postgres: str, tmp_path: Path, guarded: bool, done: str
) -> None:
    with InPostgreSQL(postgres, tmp_path, guarded=guarded) as held, held.open() as session:
        held.do(done)
        with pytest.raises(AnswerWithheld):
            session.ask(tacit.count(a=1))
        spent = session.spent
        assert spent.atoms > 0
        for _ in range(2):
            with pytest.raises(TacitError, match=ANOTHER):
                session.ask(tacit.count(b=1))
        assert session.spent == spent


@pytest.mark.parametrize("what", ["a row fewer", "a code that nobody declared"])
def test_counts_that_do_not_add_up_cost_one_question(tmp_path: Path, what: str) -> None:
    """Whatever an engine notices of it: even where it would count rightly afterwards."""
    path = written(tmp_path, [(0, 0), (1, 1), (2, 1)] * 100)
    with opened(tmp_path, path) as session:
        engine = session._curator._records._copy._reader.engine  # type: ignore[union-attr]
        run, wrong = engine.run, [True]

        def counted(*given: Any) -> Any:
            ((*words, counts),) = run(*given)
            if wrong:
                wrong.clear()
                if what == "a row fewer":
                    counts = counts - (np.arange(len(counts)) == 0)
                else:
                    words = [np.where(np.arange(len(word)) == 0, 2**61 - 1, word) for word in words]
            return [[*words, counts]]

        engine.run = counted
        with pytest.raises(AnswerWithheld):
            session.ask(tacit.count(a=1, b=1))
        spent = session.spent
        assert not wrong
        assert spent.atoms > 0
        for _ in range(2):
            with pytest.raises(TacitError, match=ANOTHER):
                session.ask(tacit.count(a=1, b=1))
        assert session.spent == spent
    with opened(tmp_path, path) as session:
        assert session.ask(tacit.count(a=1, b=1)).cost.atoms > 0


def test_a_new_ledger_refuses_the_copy_of_a_table_that_was_overwritten(tmp_path: Path) -> None:
    path, place = written(tmp_path, [(0, 0), (1, 1)]), str(tmp_path / "codes")
    Rows(path, SMALL, tmp_path / "l.tacit", copy=place).encode(open_source(path))
    opened(tmp_path, path, copy=place).close()
    written(tmp_path, [(0, 0), (1, 1), (2, 0)])
    opened(tmp_path, path, copy=place).close()  # the ledger is about the rows of then
    (tmp_path / "new").mkdir()
    with pytest.raises(DataError, match="was written to since"):
        opened(tmp_path / "new", path, copy=place)
    assert not (tmp_path / "new" / "l.tacit").exists()


def test_a_copy_is_on_the_disk_before_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done, fsync, link = list[str](), os.fsync, os.link

    def synced(file: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(file).st_mode) else "file")
        fsync(file)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "link", lambda *paths: (done.append("named"), link(*paths)))
    copied(tmp_path, [(0, 0), (1, 1)])
    assert done == ["file", "named", "folder"]


def test_a_ledger_knows_its_copy_in_one_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = Counted(copied(tmp_path, [(0, 0), (1, 1)]), SMALL)
    ran, run = list[str](), Source.run
    monkeypatch.setattr(
        Source, "run", lambda self, statements, *more: (ran.extend(statements), run(self, statements, *more))[1]
    )
    records.fingerprint(bytes(32))
    assert len(ran) == 1


@pytest.mark.spark
def test_a_part_of_sparks_copy_that_is_replaced_is_noticed(spark: Any, tmp_path: Path) -> None:
    frame = spark.sql("SELECT 0 AS a, 1 AS b UNION ALL SELECT 1, 0").repartition(1)
    counted = Rows(frame, SMALL, tmp_path / "l.tacit", held="engine").read()
    assert counted.table(("a",)).tolist() == [1, 1, 0]
    (part,) = (tmp_path / "l.tacit.codes").glob("part-*.parquet")
    content, time = part.read_bytes(), part.stat().st_mtime_ns
    part.unlink()
    part.write_bytes(content)  # by somebody who knows the folder, and not the mark in it
    for when in (0, time):  # and that what is told of it is again what it was changes nothing
        os.utime(part, ns=(when, when))
        with pytest.raises(DataError, match=ANOTHER):
            counted.table(("b",))


def test_what_is_no_copy_is_not_forgotten(tmp_path: Path) -> None:
    path = written(tmp_path, [(0, 0), (1, 1)])
    rows = Rows(path, SMALL, tmp_path / "l.tacit")
    unfinished = f"l.tacit.codes.{'0123456789abcdef' * 2}.new"
    (tmp_path / unfinished).touch()  # by a run that was cut short, as are those below
    for spilled in ("l.tacit.codes.spill.a_bc0123", f"{unfinished}.spill.zyxwv987"):
        (tmp_path / spilled).mkdir()
        (tmp_path / spilled / "rows.tmp").write_text("rows")
    assert rows.forget() == (str(tmp_path / "l.tacit.codes"), False)
    assert os.listdir(tmp_path) == ["t.parquet"]
    rows.encode(open_source(path))
    assert rows.forget()[1]
    with pytest.raises(ConfigError, match="no copy that Tacit has made"):
        Rows(path, SMALL, tmp_path / "l.tacit", copy=path).forget()
    assert Path(path).exists()


def test_what_runs_have_left_is_what_is_there_when_they_are_cut_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, place = written(tmp_path, [(0, 0), (1, 1)]), tmp_path / "l.tacit.codes"
    rows, there = Rows(path, SMALL, tmp_path / "l.tacit"), list[Path]()
    keep = engines.DuckDB.keep

    def cut_short(self: Any, select: str, place: str, about: str, check: Any, progress: Any) -> None:
        def checked(*given: Any) -> None:
            check(*given)
            there.extend(one for one in tmp_path.iterdir() if one.name != "t.parquet")

        keep(self, select, place, about, checked, progress)

    with monkeypatch.context() as patched:
        patched.setattr(engines.DuckDB, "keep", cut_short)
        rows.encode(open_source(path))
    assert len(there) == 3  # the file, and what is spilled while it is written and while it is checked
    gc.collect()
    place.unlink()
    for one in there:
        one.touch() if one.suffix == ".new" else one.mkdir()
    rows.forget()
    assert os.listdir(tmp_path) == ["t.parquet"]


def test_what_others_have_beside_a_copy_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, place, ours = written(tmp_path, [(0, 0)]), tmp_path / "visits", "0123456789abcdef" * 2
    same: dict[str, Any] = {"data": path, "domain": SMALL, "ledger": tmp_path / "l.tacit", "copy": str(place)}
    for name in ("visits.2024.new", "visits.csv.new", f"visits.{ours.upper()}.new", f"visits.{ours}.new.csv",
                 f"visits2.{ours}.new", "visits.spill.abcdefgh"):  # fmt: skip
        (tmp_path / name).write_text("the owner's")
    for name in ("visits.spill.study", "visits.old.spill.abcdefgh", f"visits.{ours}.new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "notes").write_text("the owner's")
    (tmp_path / "visits.spill.linked_1").symlink_to("visits.spill.study")
    kept = sorted(tmp_path.rglob("*"))
    assert not tacit.forget(**same)
    (tmp_path / f"visits.{ours[::-1]}.new").touch()
    (tmp_path / "visits.spill.01234567").mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: os.getuid() + 1)  # they are somebody else's
        tacit.forget(**same)
        assert len(sorted(tmp_path.rglob("*"))) == len(kept) + 2
    tacit.forget(**same)
    assert sorted(tmp_path.rglob("*")) == kept


def test_a_copy_behind_a_link_is_forgotten_and_the_link_stays(tmp_path: Path) -> None:
    path, link = written(tmp_path, [(0, 0), (1, 1)]), tmp_path / "codes"
    same: dict[str, Any] = {"data": path, "domain": SMALL, "ledger": tmp_path / "l.tacit"}
    (tmp_path / "large").mkdir()
    tacit.encode(**same, copy=str(tmp_path / "large" / "codes"))
    link.symlink_to("large/codes")
    left = tmp_path / "large" / f"codes.{'0' * 32}.new"
    left.touch()
    opened(tmp_path, path, copy=str(link)).close()
    assert tacit.forget(**same, copy=str(link))
    gc.collect()
    assert list((tmp_path / "large").iterdir()) == []
    for work in (partial(opened, tmp_path, path), partial(tacit.encode, **same), partial(tacit.forget, **same)):
        with pytest.raises(DataError, match=f"^{link} is a link to a file that is not there"):
            work(copy=str(link))
        assert os.readlink(link) == "large/codes"
        assert list((tmp_path / "large").iterdir()) == []
    link.unlink()  # as it says
    opened(tmp_path, path, copy=str(link)).close()


def test_a_copy_is_written_to_no_place_that_became_a_link_to_nothing(tmp_path: Path) -> None:
    link = tmp_path / "codes"
    link.symlink_to("elsewhere")
    with pytest.raises(DataError, match="is a link to a file that is not there"), engines.new_file(str(link)):
        pass
    assert [one.name for one in tmp_path.iterdir()] == ["codes"]
    for place in ("", f"{tmp_path}/none/", f"{tmp_path}/"):
        with pytest.raises(FileNotFoundError), engines.new_file(place):
            pass


def test_what_is_no_place_of_a_copy_is_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("the owner's")
    open_source("SELECT 0").engine.drop(f"{tmp_path}/notes/")
    assert (tmp_path / "notes").exists()


@pytest.mark.parametrize("linking", [True, False])
def test_what_comes_to_the_place_of_a_copy_meanwhile_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, linking: bool
) -> None:
    path, place = written(tmp_path, [(0, 0), (1, 1)]), tmp_path / "l.tacit.codes"
    put = engines.put

    def late(*given: Any, **how: Any) -> None:
        place.write_text("the owner's")
        put(*given, **how)

    def link(*_: object) -> None:
        raise PermissionError

    with monkeypatch.context() as patched:
        patched.setattr(engines, "put", late)
        if not linking:
            patched.setattr(os, "link", link)
        with pytest.raises(DataError, match=f"^{place} came to be while a copy was written for it, and stays"):
            tacit.encode(data=path, domain=SMALL, ledger=tmp_path / "l.tacit")
    gc.collect()
    assert place.read_text() == "the owner's"
    assert sorted(os.listdir(tmp_path)) == ["l.tacit.codes", "t.parquet"]
    place.unlink()
    opened(tmp_path, path).close()  # as it says


@pytest.mark.parametrize("what", ["broken", "somebody's table", "a folder"])
def test_what_is_in_the_place_of_a_copy_is_to_be_deleted_by_hand(tmp_path: Path, what: str) -> None:
    """Neither `tacit forget` nor `tacit encode` helps, so nothing says that they do."""
    path, place = written(tmp_path, [(0, 0), (1, 1)]), tmp_path / "l.tacit.codes"
    same: dict[str, Any] = {"data": path, "domain": SMALL, "ledger": tmp_path / "l.tacit"}
    tacit.encode(**same)
    if what == "broken":
        place.write_text("broken\n")
    elif what == "a folder":
        place.unlink()
        place.mkdir()
    else:
        duckdb.execute(f"COPY (SELECT 0 AS c0) TO '{place}' (FORMAT parquet)")
    for work in (partial(opened, tmp_path, path), partial(tacit.encode, **same), partial(tacit.forget, **same)):
        with pytest.raises((DataError, ConfigError)) as refused:
            work()
        assert str(place) in str(refused.value)
        assert "delete it by hand" in str(refused.value).lower()
        assert "tacit encode" not in str(refused.value)
        assert "tacit forget" not in str(refused.value)
    assert place.exists()
    place.rmdir() if what == "a folder" else place.unlink()  # as it says
    opened(tmp_path, path).close()


@pytest.mark.postgres
def test_postgresql_knows_the_size_of_a_copy_when_it_plans(postgres: str, tmp_path: Path) -> None:
    import psycopg

    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE planned AS SELECT i % 3 AS a, i % 2 AS b FROM generate_series(1, 5000) AS t(i)"
        )
        rows = Rows(postgres, SMALL, tmp_path / "l.tacit", "planned", held="engine")
        place = rows.encode(open_source(postgres, "planned")).place
        known = "SELECT CAST(reltuples AS INT) FROM pg_class WHERE oid = CAST(%s AS regclass)"
        assert connection.execute(known, (place,)).fetchall() == [(5000,)]
    rows.forget()


@pytest.mark.postgres
def test_a_table_is_no_copy_whatever_is_said_of_it(postgres: str, tmp_path: Path) -> None:
    import psycopg

    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 0 AS a, 0 AS b")
        connection.execute("COMMENT ON TABLE mine IS 'of value'")
    with pytest.raises(ConfigError, match="no copy that Tacit has made"):
        Rows(postgres, SMALL, tmp_path / "l.tacit", "mine", copy="mine").forget()
    assert open_source(postgres, "mine").rows() == 1


def test_every_changed_row_changes_the_sums(tmp_path: Path) -> None:
    rows = [(0, 0), (1, 1), (1, 1), (2, 0)]
    key = b"k" * 32
    sums = copied(tmp_path, rows).sums(key)[0]
    for i, other in enumerate([(0, 1), (2, 1)]):
        assert copied(tmp_path, [other, *rows[1:]], f"changed{i}").sums(key)[0] != sums
    assert copied(tmp_path, [(0, 1), (1, 0), (1, 1), (2, 0)], "swapped").sums(key)[0] != sums  # the same columns
    assert copied(tmp_path, rows[::-1], "turned").sums(key)[0] == sums


WIDE = Domain({"a": integer(0, 9_999), "b": integer(0, 1)})
SPREAD = "SELECT (i * 2503) % 10000 AS a, i % 2 AS b FROM {} AS made(i)"


@pytest.mark.parametrize("engine", ENGINES)
def test_the_sums_of_wide_attributes_are_the_same_on_every_engine(
    request: pytest.FixtureRequest, engine: str, tmp_path: Path
) -> None:
    data, name = SPREAD.format("range(500)"), None
    if engine == "postgres":
        import psycopg

        data, name = request.getfixturevalue("postgres"), "wide"
        with psycopg.connect(data) as connection:
            connection.execute(f"CREATE TABLE wide AS {SPREAD.format('generate_series(0, 499)')}")
    elif engine == "spark":
        data = request.getfixturevalue("spark").sql(SPREAD.format("(SELECT id FROM range(500))"))
    copy = Rows(data, WIDE, tmp_path / "l.tacit", name).encode(open_source(data, name))
    expected, key = list[int](), b"k" * 32
    rows = [((i * 2503) % 10_000, i % 2) for i in range(500)]
    for which in range(2):
        (_, low), (_, high) = copy._random(key, which)
        assert (len(low), len(high)) == (4096, 3 * 2)  # the higher digit is 0, 1 or 2
        expected.append(sum(low[a % 4096] * high[a // 4096 * 2 + b] for a, b in rows) % (2**31 - 1))
    sums, spans = copy.sums(key)
    assert list(sums) == expected
    assert spans.tolist() == [[500, 0, max(a for a, _ in rows)], [500, 0, 1]]
    copy.delete()


@pytest.mark.parametrize("shape", [(4096,), (4097,), (2, 10_000, 3), (2**24 + 1, 2)])
def test_every_cell_has_a_product_of_its_own_of_short_lists(tmp_path: Path, shape: tuple[int, ...]) -> None:
    most = 2**24  # bins of an attribute; with a missing value it has a third digit
    none = {False: None, True: "none"}
    attributes = [integer(0, min(size, most) - 1, missing=none[size > most]) for size in shape]
    domain = Domain({f"a{i}": one for i, one in enumerate(attributes)})
    assert domain.shape == shape
    parts = Rows("t", domain, tmp_path / "l.tacit").copy_in(open_source("SELECT 0"))._random(b"k", 0)
    assert all(len(numbers) <= 4096 for _, numbers in parts)
    # Every cell, or every 4,093rd, which is prime to the base.
    step = 1 if np.prod(shape) < 2**17 else 4093
    codes, rest = list[str](), f"n * {step}"
    for i, size in enumerate(shape):
        codes.append(f"({rest}) % {size} AS c{i}")
        rest = f"({rest}) // {size}"
    cells = f"SELECT {', '.join(codes)} FROM range({int(np.prod(shape)) // step}) AS t(n)"
    found = duckdb.sql(f"SELECT {', '.join(f'{index} AS i{i}' for i, (index, _) in enumerate(parts))} FROM ({cells})")
    columns = [np.asarray(column) for column in found.fetchnumpy().values()]
    for column, (_, numbers) in zip(columns, parts, strict=True):
        assert 0 <= column.min() <= column.max() < len(numbers)
    assert np.unique(np.stack(columns), axis=1).shape[1] == len(columns[0]) > 4000


def test_a_ledger_with_another_fingerprint_of_wide_attributes_is_refused_in_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t.parquet")
    duckdb.execute(f"COPY ({SPREAD.format('range(500)')}) TO '{path}'")
    same: dict[str, Any] = {
        "data": path, "domain": WIDE, "budget": BUDGET, "anchor": tmp_path / "anchor", "mechanism": "direct",
        "held": "engine",
    }  # fmt: skip
    with monkeypatch.context() as patched:  # as earlier versions made it
        patched.setattr(binding, "has_digits", lambda _: False)
        tacit.open(**same, ledger=tmp_path / "l.tacit").close()
    for left in (True, False):
        with pytest.raises(LedgerError, match=r"an earlier version of Tacit.*\(a, 10,000\).*continues = \"l\.tacit\""):
            tacit.open(**same, ledger=tmp_path / "l.tacit")
        assert (tmp_path / "l.tacit.codes").exists() == left  # nor is it made
        (tmp_path / "l.tacit.codes").unlink(missing_ok=True)
    for _ in range(2):  # as it says
        tacit.open(**same, ledger=tmp_path / "new.tacit", continues=tmp_path / "l.tacit").close()
    small = same | {"domain": SMALL, "data": written(tmp_path, [(0, 0)], "small.parquet")}
    tacit.open(**small, ledger=tmp_path / "small.tacit").close()
    assert made_with(tmp_path / "small.tacit").digits is None  # its fingerprint is what it was


class _Wrong:
    """A copy that counts wrongly in one way."""

    def __init__(self, copy: Copy, wrong: Any) -> None:
        self._copy, self._wrong = copy, wrong

    def __getattr__(self, name: str) -> Any:
        return getattr(self._copy, name)

    def count(self, one: Group) -> Any:
        return self._wrong(self._copy.count(one).copy())


def test_what_comes_back_is_checked(tmp_path: Path) -> None:
    rows = [(0, 0), (1, 1), (2, 0)]

    def lost(table: Any) -> Any:
        table.flat[0] -= 1
        return table

    def negative(table: Any) -> Any:
        table.flat[0] -= 5
        table.flat[-1] += 5
        return table

    for i, wrong in enumerate((lost, negative, lambda table: table[:-1], lambda table: table.astype(float))):
        records = Counted(_Wrong(copied(tmp_path, rows, f"wrong{i}"), wrong), SMALL)
        with pytest.raises(DataError, match="not those of the copy"):
            records.table(("a",))
        with pytest.raises(DataError, match=ANOTHER):  # before the next question is paid
            records.counted()
    assert Counted(copied(tmp_path, rows), SMALL).table(("a",)).tolist() == [1, 1, 1]


def test_a_code_that_slips_into_the_copy_refuses_what_meets_it(tmp_path: Path) -> None:
    copy = copied(tmp_path, [(0, 0), (1, 1)])
    records = Counted(copy, SMALL)
    for code in (2, 3):  # of b, which has 0 and 1
        other = str(tmp_path / f"other{code}")
        duckdb.execute(
            f"COPY (SELECT 0::UTINYINT AS c0, (i * {code})::UTINYINT AS c1 FROM range(2) AS t(i)) TO '{other}' "
            f"(FORMAT parquet, KV_METADATA {{tacit: '{copy.about}'}})"
        )
        for look in (
            lambda: records.table(("a", "b")),
            lambda: records.answer(Query.among(SMALL, "b", [1])),
            lambda: records.prepare([marginal(SMALL, "a"), marginal(SMALL, "b")]) or records.table(("b",)),
        ):
            copy.place, copy._opened, copy._distrusted = other, None, False
            copy._tables.clear()
            with pytest.raises(DataError, match="not those of the copy"):
                look()


def test_a_step_is_counted_in_one_scan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = copied(tmp_path, [(0, 0), (1, 1), (2, 0)])
    ran = list[str]()
    run = Source.run
    monkeypatch.setattr(Source, "run", lambda self, sql, progress=None: (ran.extend(sql), run(self, sql, progress))[1])
    records = Counted(copy, SMALL)
    ran.clear()
    asked = [*(Query.among(SMALL, "a", [i]) for i in range(3)), marginal(SMALL, "a", "b"), marginal(SMALL, "b")]
    records.prepare(asked)
    assert len(ran) == 1
    for question in asked:
        truth(question, records)
    assert len(ran) == 1  # all of it is remembered
    apart = [Query.among(SMALL, "a", [1]), Query.among(SMALL, "b", [1])]
    copy._tables.clear()
    records.prepare(apart)
    assert len(ran) == 2  # both follow from one table
    monkeypatch.setattr(scan, "JOINT", 1)
    copy._tables.clear()
    records.prepare(apart)
    assert len(ran) == 4  # where that is too large, each by itself


def test_too_large_a_table_is_refused_before_anything_is_paid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, [(0, 0), (1, 1)])
    with opened(tmp_path, path) as session:
        monkeypatch.setattr(counting, "MAX_COUNTED_CELLS", 3)
        weights = Query.weighted(SMALL, ["a"], [0.1, 0.2, 0.3]) & Query.weighted(SMALL, ["b"], [0.1, 0.2])
        with pytest.raises(InvalidQuery, match="where rows stay in the engine"):
            session.ask(weights)
        assert session.spent.atoms == 0


def test_which_way_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.owner import rows as module

    path = written(tmp_path, [(0, 0), (1, 1)])

    def way(**more: Any) -> AnyRecords:
        return Rows(path, SMALL, tmp_path / "l.tacit", **more).read()

    assert not way().counted
    monkeypatch.setattr(module, "_MANY", 1)
    assert way().counted  # a file of many rows, by itself
    monkeypatch.undo()
    assert way().counted  # the copy is there now
    assert not way(held="memory").counted
    with pytest.raises(ConfigError, match="auto, memory, engine"):
        way(held="disk")
    with pytest.raises(ConfigError, match="a copy is for"):
        way(held="memory", copy="elsewhere")


def test_which_way_is_chosen_says_nothing_of_rows_beyond_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two tables of the same kept rows, in one of which a person has many more."""
    from tacit.owner import rows as module

    monkeypatch.setattr(module, "_MANY", 4)
    for extra in (0, 100):
        path = str(tmp_path / f"{extra}.parquet")
        mine = f"SELECT 0 AS a, 0 AS b, 'Wilhelmina' AS who FROM range({1 + extra})"
        duckdb.execute(f"COPY ({mine} UNION ALL SELECT 1, 1, concat('p', i) FROM range(3) AS t(i)) TO '{path}'")
        rows = Rows(path, SMALL, tmp_path / f"{extra}.tacit", person="who", rows_per_person=1)
        assert rows.place is None
        assert not rows.read().counted
        # Where a row is protected, the number of all rows is public, and chooses.
        assert (Rows(path, SMALL, tmp_path / f"{extra}.tacit").place is None) == (not extra)
        assert replace(rows, held="engine").read().counted  # the owner's word
        assert rows.read().counted  # and the copy that is there


def test_progress_is_told(tmp_path: Path) -> None:
    copy = copied(tmp_path, [(0, 0), (1, 1)])
    told = list[float]()
    copy.progress = told.append
    share = copy._share(1, 2, (10, 30, 40))  # the second of two scans, for a half of what is planned
    assert share is not None
    share(0.5)
    assert told == [0.25 + 0.75 / 2]


@pytest.mark.postgres
def test_progress_of_postgresql_is_told_after_each_scan(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE TABLE watched AS SELECT i % 3 AS a, i % 2 AS b FROM generate_series(1, 50) AS t(i)")
    told = list[float]()
    source = open_source(postgres, "watched")
    read_records(source, SMALL, progress=told.append)
    assert told == [0.5, 1.0]  # the cells, and the control of them
    told.clear()
    rows = Rows(postgres, SMALL, tmp_path / "l.tacit", "watched", held="engine")
    copy = rows.encode(source, told.append)
    assert told == [0.5, 1.0]  # written, and checked
    told.clear()
    copy.progress = told.append
    monkeypatch.setattr(copies, "PER_SCAN", 1)  # a scan for each table
    Counted(copy, SMALL).prepare([marginal(SMALL, "a"), marginal(SMALL, "b")])
    assert told == [0.5, 1.0]
    rows.forget()


def test_records_in_an_engine_stay_there(tmp_path: Path) -> None:
    import pickle

    records = Counted(copied(tmp_path, [(0, 0), (1, 1)]), SMALL)
    with pytest.raises(TypeError, match="stay where"):
        pickle.dumps(records)
    assert "2" not in repr(records).split(" at ")[0]


def test_errors_of_a_copy_say_nothing_private(tmp_path: Path) -> None:
    copy = copied(tmp_path, [(0, 0), (1, 1)])
    Path(copy.place).write_bytes(b"s3cret-4711")
    copy._opened = None
    with pytest.raises(DataError) as error:
        Counted(copy, SMALL)
    assert "s3cret" not in str(error.value)
    assert error.value.__context__ is None
