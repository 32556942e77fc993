"""Answers as columns, for every library that reads Arrow. Anybody may call it; it knows only names and values.

Columns are handed over by DuckDB, in memory, as an Arrow stream (the PyCapsule interface of the Arrow project), so that
neither pyarrow nor pandas nor polars is needed unless its own kind of table is asked for. A stream written in Python
would be freed by Python code, whenever its reader likes: also while an exception is on its way, which ends in a crash.
"""

from __future__ import annotations

import atexit
import datetime as dt
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.errors import ConfigError, InvalidQuery
from tacit.whole_file import whole

ColumnKind = Literal["text", "real", "whole", "truth", "day"]
ENDINGS = (".csv", ".parquet")
_EPOCH = dt.date(1970, 1, 1).toordinal()


class KindFact(NamedTuple):
    """What a kind of column is called: in DuckDB and in pyarrow, and how its values are stored here."""

    sql: str
    arrow: str
    stored: type[Any]


KIND_FACTS: dict[ColumnKind, KindFact] = {
    "text": KindFact("VARCHAR", "string", object),
    "real": KindFact("DOUBLE", "float64", np.float64),
    "whole": KindFact("BIGINT", "int64", np.int64),
    "truth": KindFact("BOOLEAN", "bool_", np.bool_),
    "day": KindFact("DATE", "date32", np.int64),
}


@dataclass(frozen=True, eq=False)
class FrameColumn:
    """A name, and a value or None for each row; with `places`, each row's place among the values instead."""

    name: str
    kind: ColumnKind
    values: Sequence[Any] | NDArray[Any]
    places: NDArray[np.integer[Any]] | None = None

    def __len__(self) -> int:
        return len(self.values if self.places is None else self.places)

    def stored(self) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """The values as an array (days counted from 1970), and which of them are missing, unless none is."""
        if isinstance(self.values, np.ndarray):
            plain: NDArray[Any] = self.values.astype(KIND_FACTS[self.kind].stored)
            missing = np.zeros(len(plain), dtype=np.bool_)
        else:
            missing = np.array([value is None for value in self.values], dtype=np.bool_)
            plain = np.empty(len(self.values), dtype=KIND_FACTS[self.kind].stored)
            plain[:] = [_stored(value, self.kind) for value in self.values]
        if self.places is not None:
            plain, missing = plain[self.places], missing[self.places]
        return plain, missing if missing.any() else None

    def texts(self) -> list[str]:
        """The values as text, in rows: days as dates, and nothing where a value is missing."""
        plain, missing = self.stored()
        gone = [False] * len(plain) if missing is None else missing.tolist()
        return ["" if no else _text(value, self.kind) for value, no in zip(plain.tolist(), gone, strict=True)]


class Framed:
    """What an answer has that can be read as a table."""

    __slots__ = ()

    def frame(self) -> Frame:
        """The answer as columns."""
        raise NotImplementedError

    def to_arrow(self) -> Any:
        """A `pyarrow.Table`."""
        return _load("pyarrow").table(self)

    def to_polars(self) -> Any:
        """A `polars.DataFrame`."""
        return _load("polars").DataFrame(self)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`."""
        pandas = _load("pandas")
        return pandas.DataFrame({column.name: _series(pandas, column) for column in self.frame().columns})

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A new Arrow stream: `pyarrow.table(x)`, `polars.DataFrame(x)` and `duckdb.sql("FROM x")` take `x` itself."""
        return _relation(self.frame(), _engine().cursor()).__arrow_c_stream__(requested_schema)


@dataclass(frozen=True, eq=False)
class Frame(Framed):
    """Columns of the same length. Names that differ in their case alone get an underscore.

    >>> Frame((FrameColumn("sex", "text", ["F", "M"]), FrameColumn("value", "real", [3.0, 4.0])))
    Frame(2 rows of sex, value)
    """

    columns: tuple[FrameColumn, ...]

    def __post_init__(self) -> None:
        if not self.columns or len({len(column) for column in self.columns}) > 1:
            raise ValueError("A frame has at least one column, and all are of the same length.")
        object.__setattr__(self, "columns", tuple(_apart(self.columns)))

    def __len__(self) -> int:
        return len(self.columns[0])

    def frame(self) -> Frame:
        return self

    def cells(self) -> list[list[str]]:
        """The names, then each row, as text; empty where a value is missing."""
        rows = zip(*(column.texts() for column in self.columns), strict=True)
        return [[column.name for column in self.columns], *map(list, rows)]

    def csv(self) -> str:
        """The frame as CSV."""
        from tacit.show.streams import to_csv

        return b"".join(to_csv(self)).decode()

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write a .csv or .parquet file: all of it or nothing."""
        place = Path(path)
        ending = place.suffix.lower()
        if ending not in ENDINGS:
            raise ConfigError(f"the file's name ends in .csv or .parquet; {place.name} does not.")
        if place.exists() and not overwrite:
            raise ConfigError(f"{place.name} is there already; overwrite=True replaces it.")
        import duckdb

        with whole(place, overwrite=overwrite) as part, duckdb.connect() as connection:
            try:
                relation = _relation(self, connection)
                if ending == ".csv":
                    relation.write_csv(str(part), header=True)
                else:
                    relation.write_parquet(str(part))
            except duckdb.Error:
                raise ConfigError(f"{place.name} cannot be written.") from None
        return place

    def __repr__(self) -> str:
        return f"Frame({len(self):,} rows of {', '.join(column.name for column in self.columns)})"


def frame(answers: Sequence[Framed]) -> Frame:
    """Several answers as one table, a row each: what `ask_many` gives, or any list of answers of one kind."""
    if isinstance(answers, Framed) or not isinstance(answers, Sequence) or not answers:
        raise InvalidQuery("a frame is made of a list of answers.")
    if not all(isinstance(answer, Framed) for answer in answers):
        raise InvalidQuery("a frame is made of answers, and one in the list is something else.")
    parts = [answer.frame().columns for answer in answers]
    shapes = {tuple((column.name, column.kind) for column in part) for part in parts}
    if len(shapes) > 1 or parts[0][0].name != "question":
        raise InvalidQuery("a frame is made of answers of one kind, with a value each; a table is one by itself.")
    return Frame(
        tuple(
            FrameColumn(same[0].name, same[0].kind, [value for one in same for value in one.values])
            for same in zip(*parts, strict=True)
        )
    )


def _apart(columns: Sequence[FrameColumn]) -> Iterator[FrameColumn]:
    taken: set[str] = set()
    for column in columns:
        name = column.name
        while name.casefold() in taken:
            name += "_"
        taken.add(name.casefold())
        yield FrameColumn(name, column.kind, column.values, column.places)


def _stored(value: Any, kind: ColumnKind) -> Any:
    if value is None:
        return "" if kind == "text" else 0
    if kind == "text":
        return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    return value.toordinal() - _EPOCH if kind == "day" else value


def _text(value: Any, kind: ColumnKind) -> str:
    """A value as text: a number without a fraction that says nothing, 12 and not 12.0, and none where it is NaN."""
    if kind == "day":
        return dt.date.fromordinal(value + _EPOCH).isoformat()
    if kind == "truth":
        return str(value).lower()
    if kind == "real" and (value != value or (value.is_integer() and abs(value) < 1e15)):
        return "" if value != value else str(int(value))
    return str(value)


def _relation(frame: Frame, connection: Any) -> Any:
    """The columns as a DuckDB relation. They go by numbers there, so that no name is ever part of a search."""
    given, shown = {}, []
    for i, column in enumerate(frame.columns):
        values, missing = column.stored()
        if missing is not None and column.kind == "text":
            values[missing] = None
        elif missing is not None:
            values = np.ma.masked_array(values, missing)
        given[f"c{i}"] = values
        cell = f"DATE '1970-01-01' + c{i}::INTEGER" if column.kind == "day" else f"c{i}"
        name = column.name.replace('"', '""')
        shown.append(f'CAST({cell} AS {KIND_FACTS[column.kind].sql}) AS "{name}"')
    connection.register("given", given)
    return connection.sql(f"SELECT {', '.join(shown)} FROM given")


_engines: dict[int, Any] = {}  # by process: a forked one has its own, and lets the other's be, whose threads it lacks


def _engine() -> Any:
    """One engine in memory for all streams, since it takes long to start."""
    process = os.getpid()
    if process not in _engines:
        import duckdb

        _engines[process] = duckdb.connect(":memory:", config={"enable_external_access": False})
        atexit.register(_engines.pop, process, None)  # before the interpreter takes its modules apart
    return _engines[process]


def _series(pandas: Any, column: FrameColumn) -> Any:
    values, missing = column.stored()
    if column.kind == "day":
        values = (values * np.timedelta64(1, "D") + np.datetime64("1970-01-01")).astype("datetime64[s]")
        if missing is not None:
            values[missing] = np.datetime64("NaT", "s")
    elif missing is not None and column.kind == "whole":
        return pandas.arrays.IntegerArray(values, missing)
    elif missing is not None and column.kind == "truth":
        return pandas.arrays.BooleanArray(values, missing)
    elif missing is not None:
        values[missing] = None if column.kind == "text" else np.nan
    return values


def _load(library: str) -> Any:
    try:
        return import_module(library)
    except ImportError:
        raise ConfigError(f"{library} is not installed; it comes with the extra `frames` of tacit.") from None
