"""One table as several: the rows of each value of a column. Called by a series; sees rows, like all of this package."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

from sqlglot import exp

from tacit.errors import DataError
from tacit.load import is_address, is_query, open_source, quietly

MOST_SPLIT = 10_000  # values


def split_by(data: Any, column: str, table: str | None = None) -> Iterator[tuple[str, Any]]:
    """The values of a column as text, in order, each with its rows: a query for DuckDB, or a DataFrame.

    Refuses a table in which a row has no value: it would be in no part.
    """
    failure = f"the table could not be split by {column}."
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(data, pandas.DataFrame):
        if column not in data:
            raise DataError(f"the table has no column {column}.")
        values = data[column].astype("string")
        labels = _checked(column, values.unique().tolist())
        for label in labels:
            yield label, data[values == label]
        return
    if not isinstance(data, str) or is_address(data) or table is not None:
        raise DataError(
            f"a file, a query for DuckDB or a pandas DataFrame is split by {column}; append others in parts."
        )
    # A file that is not there, or of a kind that is not read, is refused in the words of the one door to rows.
    source = open_source(data)
    inner = f"({data.rstrip().rstrip(';')})" if is_query(data) else _literal(os.path.abspath(data))
    as_text = f"CAST({exp.to_identifier(column, quoted=True).sql('duckdb')} AS VARCHAR)"
    _, name, _ = source.names()
    found = quietly(lambda: source.fetch(f"SELECT DISTINCT {as_text} FROM {name.sql('duckdb')}"), failure)
    for label in _checked(column, [row[0] for row in found]):
        yield label, f"SELECT * FROM {inner} WHERE {as_text} = {_literal(label)}"


def _literal(text: str) -> str:
    return exp.Literal.string(text).sql("duckdb")


def _checked(column: str, labels: list[Any]) -> list[str]:
    if any(not isinstance(label, str) for label in labels):
        raise DataError(f"some rows have no {column}, so they would be in no block.")
    if len(labels) > MOST_SPLIT:
        raise DataError(f"{column} has more than {MOST_SPLIT:,} values.")
    return sorted(labels)
