"""What tools ask of the catalogues when they connect, by what makes each kind of statement hard; and what they send.

The statements are written here after the habits of the tools, each as short as it shows the habit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from serving import Served

from support import PATIENCE
from tacit.model.attribute import boolean, integer
from tacit.model.domain import Domain
from tacit.serve.postgres.catalogue import Catalogue
from tacit.serve.postgres.command import DEFAULTS
from tacit.serve.postgres.source import split
from tacit.serve.postgres.sqlstate import WireError
from tacit.serve.postgres.translation import Caller

CALLER = Caller("ana", "people", 7, DEFAULTS)
PATH = "string_to_array(current_setting('search_path'), ',')"
DOMAIN = Domain({"zip": integer(0, 9), "age": integer(0, 99, width=10), "active": boolean()})
ASKED: list[tuple[str, str, list[tuple[Any, ...]]]] = [
    ("Metabase: names that are put together and looked up",
     "SELECT c.column_name, col_description(CAST(CAST(format('%I.%I', CAST(c.table_schema AS text), "
     "CAST(c.table_name AS text)) AS regclass) AS oid), c.ordinal_position) AS words "
     "FROM information_schema.columns AS c WHERE c.table_schema !~ '^pg_' AND c.table_name = 'people'",
     [("zip", "takes 0 to 9"), ("age", "takes 0 to 99, in 10 bins"), ("active", "takes false, true")]),
    ("Metabase: words of the language as names of columns",
     "WITH may AS (SELECT t.tablename AS table, t.schemaname AS schema, pg_catalog.has_any_column_privilege("
     "current_user, '\"' || replace(t.tablename, '\"', '\"\"') || '\"', 'select') AS select, false AS update, "
     "false AS insert, false AS delete FROM (SELECT schemaname, tablename FROM pg_catalog.pg_tables UNION "
     "SELECT schemaname, viewname FROM pg_catalog.pg_views) t) SELECT m.* FROM may m",
     [("people", "public", True, False, False, False)]),
    ("Metabase: foreign keys, of which there are none",
     "SELECT a.attname FROM pg_constraint AS c JOIN pg_attribute AS a ON c.conrelid = a.attrelid "
     "WHERE c.contype = 'f' AND a.attnum = ANY(c.conkey)", []),
    ("DBeaver: all columns of a catalogue beside its number",
     "SELECT n.oid, n.nspname, d.description FROM pg_catalog.pg_namespace n LEFT OUTER JOIN pg_description d "
     "ON d.objoid = n.oid AND d.objsubid = 0 AND d.classoid = 'pg_namespace'::regclass WHERE nspname = 'public'",
     [(2200, "public", None)]),
    ("DBeaver: indexes with their use, of which there are none",
     "SELECT i.indkey, pg_catalog.pg_get_expr(i.indpred, i.indrelid), pg_catalog.pg_relation_size(i.indexrelid), "
     "pg_catalog.pg_stat_get_numscans(i.indexrelid) FROM pg_catalog.pg_index i WHERE i.indrelid = 20000", []),
    ("Java: words that are not in a list",
     "SELECT string_agg(word, ',') FROM pg_catalog.pg_get_keywords() WHERE word LIKE 'sel%' "
     "AND word <> ALL ('{abs,all}'::text[])", [("select",)]),
    ("Java: the same with the word in the list",
     "SELECT string_agg(word, ',') FROM pg_catalog.pg_get_keywords() WHERE word LIKE 'sel%' "
     "AND word <> ALL ('{abs,select}'::text[])", [(None,)]),
    ("Grafana: tables of the search path, whose parts are numbered",
     f"SELECT quote_ident(table_name) FROM information_schema.tables WHERE quote_ident(table_schema) IN (SELECT "
     f"CASE WHEN trim(s[i]) = '\"$user\"' THEN user ELSE trim(s[i]) END FROM generate_series(array_lower({PATH}, 1), "
     f"array_upper({PATH}, 1)) AS i, {PATH} s)", [("people",)]),
    ("Grafana: columns of a table whose name may have a schema",
     "SELECT quote_ident(column_name) FROM information_schema.columns WHERE CASE WHEN "
     "array_length(parse_ident('public.people'), 1) = 2 THEN table_name = (parse_ident('public.people'))[2] "
     "ELSE false END", [("zip",), ("age",), ("active",)]),
    ("Grafana: the version as a number", "SELECT current_setting('server_version_num')::int / 100", [(1500,)]),
    ("ADBC: types by the function that reads their binary values, where 0 is none",
     "SELECT oid, typname, typreceive FROM pg_catalog.pg_type WHERE (typreceive != 0 OR typsend != 0) AND "
     "typtype != 'r' AND typreceive::TEXT != 'array_recv' AND typname IN ('int8', 'date', 'text') ORDER BY oid",
     [(20, "int8", "int8recv"), (25, "text", "textrecv"), (1082, "date", "date_recv")]),
    ("ADBC: kinds of tables as a text that is a list",
     "SELECT relname FROM pg_class WHERE relnamespace = 2200 AND relkind = ANY('{r,v,m}')", [("people",)]),
    ("R: columns without an order, which come in theirs",
     "SELECT a.attname FROM pg_attribute a, pg_class c, pg_tables t, pg_namespace n WHERE a.attrelid = c.oid "
     "AND c.relname = t.tablename AND c.relnamespace = n.oid AND a.attnum > 0 AND c.relname = 'people'",
     [("zip",), ("age",), ("active",)]),
    ("ODBC: an order of its own stays",
     "SELECT a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid ORDER BY a.attname DESC",
     [("zip",), ("age",), ("active",)]),
]  # fmt: skip


@pytest.fixture(scope="module")
def catalogue() -> Iterator[Catalogue]:
    session = SimpleNamespace(domain=DOMAIN, rows=301, choice=SimpleNamespace(mechanism="direct"), confidence=0.95)
    made = Catalogue({"people": SimpleNamespace(session=session)}, seconds=PATIENCE)  # type: ignore[dict-item]
    yield made
    made.close()


@pytest.mark.parametrize(("statement", "rows"), [one[1:] for one in ASKED], ids=[one[0] for one in ASKED])
def test_what_tools_ask_is_answered(catalogue: Catalogue, statement: str, rows: list[tuple[Any, ...]]) -> None:
    lookup = catalogue.lookup(split(statement)[0], CALLER)
    assert [tuple(row) for row in catalogue.rows(lookup, (), CALLER)] == rows


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT format(relname, 1) FROM pg_class",
        "SELECT format('%I %I', relname) FROM pg_class",
        "SELECT format('%1000000000s', relname) FROM pg_class",
        "SELECT * FROM pg_get_keywords(1)",
        "SELECT 1 AS select FROM pg_sleep(1)",
    ],
)
def test_what_is_near_it_is_refused(catalogue: Catalogue, statement: str) -> None:
    with pytest.raises(WireError):
        catalogue.lookup(split(statement)[0], CALLER)


@pytest.mark.parametrize(
    ("sent", "asked"),
    [
        (
            '-- Metabase\nSELECT "public"."people"."sex" AS "sex", COUNT(*) AS "count" FROM "public"."people" WHERE '
            '"public"."people"."age" >= 20 GROUP BY "public"."people"."sex" ORDER BY "public"."people"."sex" ASC',
            "SELECT sex, COUNT(*) FROM data WHERE age >= 20 GROUP BY sex ORDER BY sex ASC",
        ),
        (
            "SELECT sex AS sex, COUNT(*) AS count FROM public.people GROUP BY sex ORDER BY count DESC LIMIT 10000",
            "SELECT sex, COUNT(*) AS count FROM data GROUP BY sex ORDER BY count DESC LIMIT 10000",
        ),
        (
            'SELECT "public"."people"."sex" AS "sex" FROM "public"."people" GROUP BY "public"."people"."sex" '
            'ORDER BY "public"."people"."sex" ASC LIMIT 1000',
            "SELECT DISTINCT sex FROM data ORDER BY sex ASC LIMIT 1000",
        ),
        ('SELECT AVG("public"."people"."pay") AS "avg" FROM "public"."people"', "SELECT AVG(pay) FROM data"),
    ],
    ids=["Metabase", "Superset", "values for a filter", "Metabase, one number"],
)
def test_columns_may_be_named_with_schema_and_table(lasting: Served, sent: str, asked: str) -> None:
    told = lasting.ask(asked)
    with psycopg.connect(
        f"host=127.0.0.1 port={lasting.wire} user=ana dbname=people", password=lasting.keys["ana"], autocommit=True
    ) as client:
        rows = client.execute(sent).fetchall()
    assert rows == ([tuple(row) for row in told["rows"]] if "rows" in told else [(told["value"],)])


def test_a_price_can_be_read_by_programs(lasting: Served) -> None:
    asked = "SELECT COUNT(*) FROM people WHERE age < 30 AND pay < 10"
    price = lasting.ask(asked.replace("people", "data"), path="/v1/people/cost")
    with psycopg.connect(
        f"host=127.0.0.1 port={lasting.wire} user=ana dbname=people", password=lasting.keys["ana"], autocommit=True
    ) as client:
        (first,) = client.execute(f"EXPLAIN {asked}").fetchone() or ("",)
    cost = re.search(r"\(cost=0\.00\.\.([0-9.]+)\)$", first)
    assert cost is not None
    assert float(cost[1]) == pytest.approx(price["percent"], abs=0.005)


def test_values_for_a_filter_are_free(lasting: Served) -> None:
    before = lasting.people.session.spent
    told = lasting.ask("SELECT sex FROM data GROUP BY sex", who="rea")
    assert [row[0] for row in told["rows"]] == ["F", "M"]
    assert told["source"] == "public"
    assert lasting.people.session.spent == before


def test_what_the_audit_log_has_can_be_asked_again(lasting: Served) -> None:
    sent = "-- a tool's comment\nSELECT COUNT(*)\nFROM data WHERE sex = 'M'"
    told = lasting.ask(sent)
    noted = lasting.people.noted(1)[0]["asked"]
    assert lasting.ask(noted)["value"] == told["value"]
    lasting.ask("SELECT COUNT(*)\nFROM data WHERE sex = 'M'")
    assert lasting.people.noted(1)[0]["asked"] == "SELECT COUNT(*) FROM data WHERE sex = 'M'"
