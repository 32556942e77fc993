"""Reading bounds and values from the rows, for an owner who declares them public. The only unpaid look at the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tacit.errors import DataError
from tacit.trusted.sources import DuckDB, Source, open_source
from tacit.trusted.statement import Column

MAX_LISTED = 50  # more different values than this look like names or identifiers


@dataclass(frozen=True)
class Seen:
    """What a column was seen to hold."""

    low: Any
    high: Any
    whole: bool
    values: tuple[str, ...] | None
    has_missing: bool


def columns(data: object, table: str | None) -> tuple[Column, ...]:
    """The names and types of a table's columns, which are taken to be public.

    Guarantee: no row is looked at, beyond what an engine needs to tell a CSV file's types.
    Formula: the engine's schema. Source: `Source.describe`.
    """
    return open_source(data, table).describe()


def look(data: object, table: str | None) -> Mapping[str, Seen]:
    """Bounds and values of every column.

    Guarantee: NONE. What this returns is exact and becomes public by the owner's decision to write it into a domain.
    Formula: MIN, MAX and the distinct values. Source: the rows.
    """
    source: Source = open_source(data, table)
    if not isinstance(source, DuckDB):
        raise DataError("values are looked up in files and frames only; declare the domain of this source by hand.")
    return {column.name: _look(source, column) for column in source.describe()}


def _look(source: DuckDB, column: Column) -> Seen:
    raise AssertionError
