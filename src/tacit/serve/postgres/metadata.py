"""What the catalogues hold: the data sets as tables, their columns and types, and the values that these may take. Pure.

All of it is public: the declared domain and the number of rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from sqlglot.dialects.postgres import Postgres

from tacit.model.attribute import Attribute
from tacit.serve.postgres.command import DEFAULTS
from tacit.serve.postgres.types import ARRAY_OF, BOOL, FLOAT8, TEXT, TYPES, UNKNOWN, declared_type, group_type, size_of
from tacit.serve.served import MAX_LABELS, ServedData

DATABASE = "tacit"  # the one that has every data set
OWNER = "tacit"
_PG, _PUBLIC, _INFORMATION, _TACIT, _ROLE = 11, 2200, 13_000, 13_001, 10  # numbers that PostgreSQL has for some of them
_SPACES = {"pg": _PG, "information": _INFORMATION, "tacit": _TACIT}
_CLASS, _TYPE, _NAMESPACE = 1259, 1247, 2615
_SYSTEM = {"pg_class": _CLASS, "pg_type": _TYPE, "pg_namespace": _NAMESPACE, "pg_database": 1262, "pg_proc": 1255}
_FIRST_SYSTEM, _FIRST_TABLE = 12_000, 20_000

Filled = Iterator[tuple[str, dict[str, Any]]]  # a table's name, and a row of it


def metadata(datasets: Mapping[str, ServedData], system: Iterable[tuple[str, str]]) -> Filled:
    """Every row of the catalogues. `system` are their own tables, by schema and name: clients ask for their numbers."""
    spaces = {_PG: "pg_catalog", _PUBLIC: "public", _INFORMATION: "information_schema", _TACIT: "tacit"}
    for number, name in spaces.items():
        yield "pg.pg_namespace", {"oid": number, "nspname": name, "nspowner": _ROLE, "tableoid": _NAMESPACE}
        yield "information.schemata", {"catalog_name": DATABASE, "schema_name": name, "schema_owner": OWNER}
    for i, name in enumerate([DATABASE, *sorted(datasets)]):
        known = {"oid": 5 + i, "datname": name, "datdba": _ROLE, "encoding": 6, "datcollate": "C", "datctype": "C"}
        more = {"datistemplate": False, "datallowconn": True, "datconnlimit": -1, "datlocprovider": "c"}
        yield "pg.pg_database", known | more
    role = {"oid": _ROLE, "rolname": OWNER, "rolsuper": False, "rolinherit": True, "rolcanlogin": False}
    yield "pg.pg_roles", role | {"rolcreaterole": False, "rolcreatedb": False, "rolreplication": False}
    yield "pg.pg_am", {"oid": 2, "amname": "heap", "amhandler": "heap_tableam_handler", "amtype": "t"}
    for name, value in DEFAULTS.items():
        yield "pg.pg_settings", {"name": name, "setting": value, "context": "user", "vartype": "string"}
    for word in sorted(Postgres.Tokenizer.KEYWORDS):
        if word.isalpha():
            yield "pg.pg_get_keywords", {"word": word.lower(), "catcode": "U", "catdesc": "unreserved"}
    yield from _types()
    for i, (schema, name) in enumerate(sorted(system)):
        kind = "v" if schema == "information" else "r"
        yield "pg.pg_class", _class(_SYSTEM.get(name, _FIRST_SYSTEM + i), name, _SPACES[schema], kind)
    for i, (name, dataset) in enumerate(sorted(datasets.items())):
        yield from _dataset(_FIRST_TABLE + i, name, dataset)


def _types() -> Filled:
    for number, fact in TYPES.items():
        shared = {
            "typnamespace": _PG, "typowner": _ROLE, "typbyval": 0 < fact.size <= 8, "typisdefined": True,
            "typtype": "p" if number == UNKNOWN else "b", "typispreferred": number in (TEXT, FLOAT8, BOOL),
            "typdelim": ",", "typrelid": 0, "typnotnull": False, "typbasetype": 0, "typtypmod": -1, "typndims": 0,
            "typcollation": 0, "tableoid": _TYPE,
        }  # fmt: skip
        array = ARRAY_OF.get(number, 0)
        own = {"typname": fact.name, "typlen": fact.size, "typcategory": fact.category, "typelem": 0, "typarray": array}
        functions = {"typinput": f"{fact.name}in", "typoutput": f"{fact.name}out"}
        yield "pg.pg_type", {"oid": number, **own, **functions, **shared}
        yield "pg.type_words", {"oid": number, "words": fact.sql}
        if array:
            own = {"typname": f"_{fact.name}", "typlen": -1, "typcategory": "A", "typelem": number, "typarray": 0}
            functions = {"typinput": "array_in", "typoutput": "array_out"}
            yield "pg.pg_type", {"oid": array, **own, **functions, **shared}
            yield "pg.type_words", {"oid": array, "words": f"{fact.sql}[]"}


def _class(number: int, name: str, space: int, kind: str, rows: int = -1, columns: int = 0) -> dict[str, Any]:
    return {
        "oid": number, "relname": name, "relnamespace": space, "reltype": 0, "reloftype": 0, "relowner": _ROLE,
        "relam": 2, "relfilenode": 0, "reltablespace": 0, "relpages": 0, "reltuples": float(rows), "relkind": kind,
        "relallvisible": 0, "reltoastrelid": 0, "relhasindex": False, "relisshared": False, "relpersistence": "p",
        "relnatts": columns, "relchecks": 0, "relhasrules": False, "relhastriggers": False, "relreplident": "d",
        "relhassubclass": False, "relrowsecurity": False, "relforcerowsecurity": False, "relispopulated": True,
        "relispartition": False, "relrewrite": 0, "tableoid": _CLASS,
    }  # fmt: skip


def _dataset(number: int, name: str, dataset: ServedData) -> Filled:
    session = dataset.session
    yield "pg.pg_class", _class(number, name, _PUBLIC, "r", session.rows, len(session.domain))
    about = f"{session.rows:,} rows. Questions about it are answered with noise: every value has an error bar."
    yield "pg.pg_description", {"objoid": number, "classoid": _CLASS, "objsubid": 0, "description": about}
    yield "pg.pg_tables", {"schemaname": "public", "tablename": name, "tableowner": OWNER, "hasindexes": False}
    yield "pg.pg_stat_user_tables", {"relid": number, "schemaname": "public", "relname": name}
    table = {"table_catalog": DATABASE, "table_schema": "public", "table_name": name}
    yield "information.tables", table | {"table_type": "BASE TABLE", "is_insertable_into": "NO", "is_typed": "NO"}
    facts = {"mechanism": session.choice.mechanism, "confidence": session.confidence}
    yield "tacit.datasets", {"table_name": name, "rows": session.rows, **facts}
    for position, (column, attribute) in enumerate(session.domain.items(), 1):
        words = comment(attribute)
        yield "pg.pg_description", {"objoid": number, "classoid": _CLASS, "objsubid": position, "description": words}
        yield from _column(number, position, column, attribute, table)
        for i in range(min(attribute.size, MAX_LABELS)):
            value = {"table_name": name, "column_name": column, "position": i + 1, "value": attribute.label(i)}
            extra = {"is_other": i == attribute.other_index, "is_missing": i == attribute.missing_index}
            yield "tacit.values", value | extra


def _column(number: int, position: int, name: str, attribute: Attribute, table: dict[str, Any]) -> Filled:
    type, nullable = declared_type(attribute), attribute.missing is not None
    yield "pg.pg_attribute", {
        "attrelid": number, "attname": name, "atttypid": type, "attstattarget": -1, "attlen": size_of(type),
        "attnum": position, "attndims": 0, "attcacheoff": -1, "atttypmod": -1, "attnotnull": not nullable,
        "attbyval": False, "attalign": "d", "attstorage": "p", "attcompression": "", "atthasdef": False,
        "atthasmissing": False, "attidentity": "", "attgenerated": "", "attisdropped": False, "attislocal": True,
        "attinhcount": 0, "attcollation": 0,
    }  # fmt: skip
    yield "information.columns", table | {
        "column_name": name, "ordinal_position": position, "is_nullable": "YES" if nullable else "NO",
        "data_type": TYPES[type].sql, "udt_catalog": DATABASE, "udt_schema": "pg_catalog",
        "udt_name": TYPES[type].name, "is_identity": "NO", "is_generated": "NEVER", "is_updatable": "NO",
    }  # fmt: skip


def comment(attribute: Attribute) -> str:
    """The values that a column may take, in a few words."""
    words = f"takes {attribute.takes}"
    if group_type(attribute) == TEXT and attribute.ordered:
        words += f", in {attribute.bins:,} bins"
    words += "" if attribute.other is None else f"; anything else is {attribute.other!r}"
    return words + ("" if attribute.missing is None else "; missing is NULL")
