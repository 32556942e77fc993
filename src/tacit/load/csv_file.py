"""A CSV file as DuckDB reads it: how its fields are divided is guessed once, and not for every relation made of it."""

from __future__ import annotations

from typing import Any

import duckdb


class CsvFile:
    """A file, or several that a pattern names. `sep` is what divides its fields, where its name says so."""

    def __init__(self, path: str, sep: str | None = None) -> None:
        self.path = path
        self._given = {} if sep is None else {"sep": sep}
        self._form = self._given

    def header(self, connection: Any) -> list[str]:
        """The names of the columns, as `relation` finds them."""
        said = {"path": self.path, **self._given}
        tabs = ", sep = $sep" * ("sep" in said)
        try:
            sniffed = connection.execute(f"FROM sniff_csv($path, header = true, all_varchar = true{tabs})", said)
            ((*values,),) = sniffed.fetchall()
            found = dict(zip([name for name, *_ in sniffed.description], values, strict=True))
        except duckdb.Error:  # of several files it tells nothing
            sql = f"FROM read_csv($path, header = true, all_varchar = true{tabs}) LIMIT 0"
            return [name for name, *_ in connection.execute(sql, said).description]
        parts = {"sep": "Delimiter", "quotechar": "Quote", "escapechar": "Escape"}
        self._form = {part: found[told].replace("(empty)", "") for part, told in parts.items()}
        return [column["name"] for column in found["Columns"]]

    def relation(self, connection: Any, types: dict[str, str]) -> Any:
        """The rows, with columns of these types and the others as they look. What `header` guessed is so."""
        form = self._form if types else self._given
        return connection.read_csv(self.path, header=True, dtype=types or None, **form)
