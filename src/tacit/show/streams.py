"""A frame as bytes, a part of its rows at a time: CSV, Arrow's stream and Parquet. Anybody may call it.

pyarrow is needed for the last two, and no engine for any: a server of published files has none. What is held in memory
is one part, however long the frame is.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tacit.show.frames import KIND_FACTS, Frame, FrameColumn

PART = 10_000  # rows
FrameWords = Mapping[str, Any]  # what is said of the whole, as JSON beside the columns


def has_arrow() -> bool:
    """Whether pyarrow is installed."""
    try:
        return find_spec("pyarrow") is not None
    except ValueError:  # it was taken away
        return False


def to_csv(frame: Frame) -> Iterator[bytes]:
    """CSV with the names first."""
    for number, part in enumerate(_parts(frame)):
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(part.cells()[1 if number else 0 :])
        yield out.getvalue().encode()


def to_arrow(frame: Frame, words: FrameWords) -> Iterator[bytes]:
    """Arrow's IPC stream; its schema has `words` as the metadata "tacit"."""
    return _written(frame, words, lambda sink, schema: import_module("pyarrow").ipc.new_stream(sink, schema))


def to_parquet(frame: Frame, words: FrameWords) -> Iterator[bytes]:
    """A Parquet file with a row group for each part; its schema has `words` as the metadata "tacit"."""
    return _written(frame, words, lambda sink, schema: import_module("pyarrow.parquet").ParquetWriter(sink, schema))


def _written(frame: Frame, words: FrameWords, opened: Callable[[Any, Any], Any]) -> Iterator[bytes]:
    """What one of pyarrow's writers writes, which is `opened` with where to write and the schema."""
    pa, sink = import_module("pyarrow"), _Sink()
    schema = _schema(pa, frame, words)
    with opened(pa.PythonFile(sink, "w"), schema) as writer:
        for part in _parts(frame):
            writer.write_batch(_batch(pa, part, schema))
            yield sink.taken()
    yield sink.taken()


class _Sink(io.RawIOBase):
    """Where a writer writes to: what was written is taken away, and how much that was is remembered."""

    def __init__(self) -> None:
        self._written, self._length = list[bytes](), 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._length

    def write(self, text: Any) -> int:
        self._written.append(bytes(text))
        self._length += len(self._written[-1])
        return len(self._written[-1])

    def taken(self) -> bytes:
        text = b"".join(self._written)
        self._written.clear()
        return text


def _parts(frame: Frame) -> Iterator[Frame]:
    """The frame in parts, one at least."""
    for start in range(0, max(1, len(frame)), PART):
        yield Frame(tuple(_part(column, start, start + PART) for column in frame.columns))


def _part(column: FrameColumn, start: int, stop: int) -> FrameColumn:
    if column.places is not None:
        return FrameColumn(column.name, column.kind, column.values, column.places[start:stop])
    return FrameColumn(column.name, column.kind, column.values[start:stop])


def _schema(pa: Any, frame: Frame, words: FrameWords) -> Any:
    fields = [pa.field(column.name, getattr(pa, KIND_FACTS[column.kind].arrow)()) for column in frame.columns]
    return pa.schema(fields, metadata={"tacit": json.dumps(words, ensure_ascii=False)})


def _batch(pa: Any, part: Frame, schema: Any) -> Any:
    arrays = []
    for column, field in zip(part.columns, schema, strict=True):
        values, missing = column.stored()
        if column.kind == "day":
            values = values.astype("datetime64[D]")
        arrays.append(pa.array(values, type=field.type, mask=missing, from_pandas=False))
    return pa.record_batch(arrays, schema=schema)
