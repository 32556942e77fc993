"""The catalogues over PostgreSQL's protocol: what clients ask about tables, and that nothing else can be reached."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from serving import Served

from people import SECRETS
from support import PATIENCE
from tacit.model.attribute import boolean, category, date, integer, numeric
from tacit.model.domain import Domain
from tacit.serve.postgres.catalogue import Catalogue
from tacit.serve.postgres.command import DEFAULTS
from tacit.serve.postgres.source import split
from tacit.serve.postgres.sqlstate import WireError
from tacit.serve.postgres.translation import Caller

CALLER = Caller("ana", "people", 7, DEFAULTS)
DOMAIN = Domain(
    {
        "sex": category(["F", "M"], other="another", missing="unknown"),
        "age": integer(0, 99, width=10),
        "born": date("2020-01-01", "2020-12-31"),
        "active": boolean(missing="unknown"),
        "pay": numeric([0, 10, 20]),
    }
)


@pytest.fixture(scope="module")
def catalogue() -> Iterator[Catalogue]:
    session = SimpleNamespace(domain=DOMAIN, rows=301, choice=SimpleNamespace(mechanism="direct"), confidence=0.95)
    made = Catalogue({"people": SimpleNamespace(session=session)}, seconds=PATIENCE)  # type: ignore[dict-item]
    yield made
    made.close()


def looked(catalogue: Catalogue, statement: str, *values: Any) -> list[Any]:
    lookup = catalogue.lookup(split(statement)[0], CALLER)
    return [tuple(row) for row in catalogue.rows(lookup, values, CALLER)]


def test_columns_have_types_and_comments(catalogue: Catalogue) -> None:
    found = looked(
        catalogue,
        "SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), a.attnotnull, "
        "col_description(a.attrelid, a.attnum) FROM pg_catalog.pg_attribute a "
        "WHERE a.attrelid = 'public.people'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum",
    )
    assert found == [
        ("sex", "text", False, "takes F, M, another, unknown; anything else is 'another'; missing is NULL"),
        ("age", "bigint", True, "takes 0 to 99, in 10 bins"),
        ("born", "date", True, "takes 2020-01-01 to 2020-12-31"),
        ("active", "boolean", False, "takes false, true, unknown; missing is NULL"),
        ("pay", "double precision", True, "takes 0 to below 20, in 2 bins"),
    ]
    listed = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'people' ORDER BY "
    listed += "ordinal_position"
    assert looked(catalogue, listed) == [(name, type) for name, type, *_ in found]


def test_the_values_that_a_column_may_take_are_a_table(catalogue: Catalogue) -> None:
    asked = "SELECT value, is_other, is_missing FROM tacit.values WHERE table_name = $1 AND column_name = 'sex'"
    assert looked(catalogue, f"{asked} ORDER BY position", "people") == [
        ("F", False, False), ("M", False, False), ("another", True, False), ("unknown", False, True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("statement", "row"),
    [
        ("SELECT current_user, current_database(), current_schema()", ("ana", "people", "public")),
        ("SELECT current_setting('server_version')", ("15.0",)),
        ("SELECT 1 + 1 AS two, 'a' || 'b'", (2, "ab")),
        ("SELECT pg_catalog.pg_backend_pid()", (7,)),
        (
            "SELECT relname FROM pg_class WHERE relname OPERATOR(pg_catalog.~) '^(peo.*)$' COLLATE pg_catalog.default",
            ("people",),
        ),
        ("SELECT 'people'::regclass::oid = c.oid FROM pg_class c WHERE c.relname = 'people'", (True,)),
        ("SELECT nspname FROM pg_namespace WHERE nspname = ANY(current_schemas(false))", ("public",)),
        ("WITH a AS (SELECT 1 AS b) SELECT b FROM a", (1,)),
    ],
)
def test_what_clients_ask_when_they_connect(catalogue: Catalogue, statement: str, row: tuple[Any, ...]) -> None:
    assert looked(catalogue, statement) == [row]


REFUSED = [
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM '/etc/passwd'",
    'SELECT * FROM "/etc/passwd"',
    "SELECT * FROM glob('/*')",
    "SELECT * FROM duckdb_settings()",
    "SELECT * FROM duckdb_tables",
    "SELECT * FROM pragma_version()",
    "SELECT * FROM query('SELECT 1')",
    "SELECT getenv('HOME')",
    "SELECT pg_catalog.getenv('HOME')",
    "SELECT pg_read_file('/etc/passwd')",
    "SELECT pg_sleep(10)",
    "SELECT repeat('x', 1000000000)",
    "SELECT lpad('x', 1000000000)",
    "SELECT * INTO elsewhere FROM pg_class",
    "SELECT * FROM main.sqlite_master",
    "SELECT * FROM statement",
    "SELECT catalogue FROM pg_class",
    "WITH a AS (DELETE FROM pg_class RETURNING *) SELECT * FROM a",
    "SELECT * FROM duckdb_tables WHERE EXISTS (WITH duckdb_tables AS (SELECT 1) SELECT 1)",
    "WITH sqlite_master AS (SELECT * FROM sqlite_master) SELECT * FROM sqlite_master",
    'WITH "/etc/hostname.csv" AS (SELECT 1) SELECT * FROM "/etc/hostname.csv"',
    "SELECT nothing_of_the_kind()",
    "SELECT (" * 200 + "1" + ")" * 200,
    "SELECT " + "[" * 60 + "]" * 60,
    "SELECT " + "CASE WHEN (" * 100,
]


@pytest.mark.parametrize("statement", REFUSED)
def test_nothing_else_is_reached(catalogue: Catalogue, statement: str) -> None:
    with pytest.raises(WireError) as refused:
        looked(catalogue, statement)
    assert "root:" not in refused.value.sentence


def test_the_engine_itself_is_locked(catalogue: Catalogue) -> None:
    """Whatever passes the lists: files, extensions and settings are out of reach."""
    statements = (
        "SELECT * FROM read_csv('/etc/passwd')",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
        "INSTALL httpfs",
        "LOAD httpfs",
        "ATTACH '/tmp/x.db'",
        "COPY (SELECT 1) TO '/tmp/x'",
    )
    catalogue.lookup(split("SELECT 1")[0], CALLER)
    for statement in statements:
        with pytest.raises(WireError):
            catalogue._run(statement)


def test_a_look_is_bounded_in_time_and_rows(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    endless = "SELECT count(*) FROM pg_type a, pg_type b, pg_type c, pg_type d, pg_type e, pg_type f, pg_type g"
    with monkeypatch.context() as short:
        short.setattr(catalogue, "_seconds", 0.5)
        with pytest.raises(WireError, match="seconds"):
            looked(catalogue, endless)
    with pytest.raises(WireError, match="rows"):
        looked(catalogue, "SELECT a.oid FROM pg_type a, pg_type b, pg_type c, pg_type d")


def test_no_row_of_the_data_is_in_the_catalogues(lasting: Served, tmp_path: Path) -> None:
    given = {"host": "127.0.0.1", "port": lasting.wire, "user": "rea", "password": lasting.keys["rea"]}
    with psycopg.connect(**given, autocommit=True) as client:  # type: ignore[arg-type]
        asked = "SELECT relname, n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
        tables = client.execute(asked).fetchall()
        assert ("people", "public") in tables
        for name, schema in tables:
            if schema != "public":
                shown = str(client.execute(f'SELECT * FROM {schema}."{name}"').fetchall())  # type: ignore[arg-type]
                assert not any(secret in shown for secret in SECRETS)
    assert not lasting.people.session.spent.atoms


def test_names_of_keys_are_nobody_elses_business(catalogue: Catalogue) -> None:
    assert looked(catalogue, "SELECT rolname FROM pg_roles") == [("tacit",)]
