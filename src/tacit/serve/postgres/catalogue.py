"""What clients ask about tables and columns, answered from public metadata alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tacit.serve.dataset import Dataset
from tacit.serve.postgres.answer import Row
from tacit.serve.postgres.messages import Field
from tacit.serve.postgres.source import Statement
from tacit.serve.postgres.sqlstate import NO_TABLE, WireError
from tacit.serve.postgres.types import Value

if TYPE_CHECKING:
    from tacit.serve.postgres.connection import Connection


@dataclass(frozen=True)
class Lookup:
    fields: tuple[Field, ...]

    def types(self, given: Sequence[int]) -> tuple[int, ...]:
        return ()


class Catalogue:
    def __init__(self, datasets: Mapping[str, Dataset], *, seconds: float) -> None:
        self._tables = sorted(datasets)

    def lookup(self, statement: Statement, connection: Connection) -> Lookup:
        raise WireError(NO_TABLE, f"The tables are {', '.join(self._tables)}.", at=statement.start)

    async def rows(self, lookup: Lookup, values: Sequence[Value], connection: Connection) -> Iterator[Row]:
        return iter(())

    def close(self) -> None:
        pass
