"""The columns of a table: their names, roughly what they hold, and which of them is which attribute. All public."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from tacit.errors import DataError
from tacit.model.domain import Domain
from tacit.model.values import Listed

ColumnType = Literal["number", "decimal", "text", "boolean", "date", "timestamp", "zoned", "empty", "other"]

HOLDS: dict[ColumnType, str] = {
    "number": "numbers",
    "decimal": "decimal numbers",
    "text": "text",
    "boolean": "true and false",
    "date": "dates",
    "timestamp": "timestamps",
    "zoned": "timestamps with a time zone",
    "empty": "nothing",
    "other": "a type without bins",
}
_NUMBERS = "TINYINT SMALLINT INTEGER BIGINT HUGEINT UTINYINT USMALLINT UINTEGER UBIGINT UHUGEINT FLOAT DOUBLE REAL INT"
_TYPES: dict[str, ColumnType] = {
    **dict.fromkeys(_NUMBERS.split(), "number"),
    **dict.fromkeys(("DECIMAL", "NUMERIC"), "decimal"),
    **dict.fromkeys(("VARCHAR", "ENUM", "STRING", "CHAR", "TEXT"), "text"),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP_NTZ"), "timestamp"),
    **dict.fromkeys(('"NULL"', "NULL", "VOID"), "empty"),
    "TIMESTAMP WITH TIME ZONE": "zoned",
    "UUID": "text",
    "BOOLEAN": "boolean",
    "DATE": "date",
}


class TableColumn(NamedTuple):
    """A column of the table: its own spelling and roughly what it holds."""

    name: str
    type: ColumnType


def coarse(kind: str) -> ColumnType:
    """What a column of an engine's type holds."""
    name = kind.upper()
    if name in _TYPES or name.endswith("]"):  # a list of numbers is not a number
        return _TYPES.get(name, "other")
    return _TYPES.get(re.split(r"[( ]", name)[0], "other")


def match(columns: Iterable[TableColumn], domain: Domain, person: str | None) -> dict[str, TableColumn]:
    """The column of each declared attribute, and of the person; refuses names that the table does not have."""
    exact = {column.name: column for column in columns}
    found: dict[str, TableColumn] = {}
    for name in (*domain, *([] if person is None else [person])):
        # DuckDB calls the second of two columns that differ in case only AGE_1, so that is a likeness too.
        alike = [c for c in exact.values() if name.lower() in (c.name.lower(), re.sub(r"_\d+$", "", c.name.lower()))]
        near = [exact[name]] if name in exact else alike
        if len(near) != 1 or name.lower() != near[0].name.lower():
            has = ", ".join(list(exact)[:20]) + ", …" * (len(exact) > 20)
            lacks = "several columns like" if len(near) > 1 else "no column"
            raise DataError(f"the table has {lacks} {name}; its columns are {has}.")
        found[name] = near[0]
    return found


def is_text(column: TableColumn) -> bool:
    """Whether a person's column holds text rather than numbers; refuses columns that hold neither."""
    if column.type not in ("text", "number", "decimal"):
        raise DataError(
            f"column {column.name} holds {HOLDS[column.type]}; people are told apart by text or by numbers: cast it "
            "in a view or a query."
        )
    return column.type == "text"


def csv_type(domain: Domain, name: str) -> str | None:
    """What a column of a CSV file is read as: what is declared, not what its first private rows look like."""
    if name not in domain:
        return "VARCHAR"  # the person: any text will do
    values = domain[name].values
    if isinstance(values, Listed):
        return {"category": "VARCHAR" if isinstance(values.values[0], str) else "DOUBLE"}.get(values.kind)
    return "TIMESTAMP" if values.kind == "date" else "DOUBLE"
