"""A Spark DataFrame; the cluster does the grouping."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
from sqlglot import exp

from tacit.load.bins import Dialect
from tacit.load.columns import TableColumn, coarse
from tacit.load.source import Numbers, Progress
from tacit.model.domain import Domain


class Spark:
    """A frame under a name that lives as long as a statement runs."""

    dialect: Dialect = "spark"
    failure = "the Spark DataFrame could not be read."

    def __init__(self, frame: Any) -> None:
        self.table = exp.table_(f"tacit_{uuid.uuid4().hex}", quoted=True)
        self._frame = frame

    def columns(self, domain: Domain | None = None, person: str | None = None) -> tuple[TableColumn, ...]:
        # Spark's plain timestamp is an instant, shown in the session's time zone; timestamp_ntz has none.
        types = {"timestamp": "TIMESTAMP WITH TIME ZONE"}
        return tuple(
            TableColumn(field.name, coarse(types.get(kind := field.dataType.simpleString(), kind)))
            for field in self._frame.schema.fields
        )

    def run(self, statements: Sequence[str], progress: Progress | None) -> list[Numbers]:
        session = self._frame.sparkSession
        self._frame.createOrReplaceTempView(self.table.name)
        try:
            found = [session.sql(sql).toArrow() for sql in statements]
        finally:
            session.catalog.dropTempView(self.table.name)
        return [[column.to_numpy().astype(np.int64) for column in table.columns] for table in found]
