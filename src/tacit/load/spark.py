"""The engine of a Spark cluster, which does the grouping where the rows are. Made by `open_source`."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
from sqlglot import exp

from tacit.load import Check, JoinedTable, Numbers, Progress
from tacit.load.columns import Dialect, TableColumn, table_column
from tacit.model.domain import Domain

T = TypeVar("T")

_MARK = "_tacit"  # Spark takes files that begin so for none of the table's
_STATUS = re.compile(r"path=(.*?);.*?length=(\d+);.*?modification_time=(\d+)")  # of a file, in Hadoop's words


class Spark:
    """A Spark DataFrame, under a name that lives as long as a statement runs."""

    dialect: Dialect = "spark"
    joins: Sequence[JoinedTable] = ()
    failure = "the Spark DataFrame could not be read."

    def __init__(self, frame: Any) -> None:
        self.table = exp.table_(f"tacit_{uuid.uuid4().hex}", quoted=True)
        self.frame = frame

    def columns(self, domain: Domain | None = None, person: str | None = None) -> tuple[TableColumn, ...]:
        return tuple(table_column(name, kind) for name, kind in self.types())

    def types(self) -> list[tuple[str, str]]:
        """The names and types of the columns."""
        # Spark's plain timestamp is an instant, shown in the session's time zone; timestamp_ntz has none.
        zoned = {"timestamp": "TIMESTAMP WITH TIME ZONE"}
        fields = self.frame.schema.fields
        return [(field.name, zoned.get(kind := field.dataType.simpleString(), kind)) for field in fields]

    def run(self, statements: Sequence[str], progress: Progress | None) -> list[Numbers]:
        found = self._named(lambda session: [session.sql(sql).toArrow() for sql in statements])
        return [[column.to_numpy().astype(np.int64) for column in table.columns] for table in found]

    def fetch(self, statement: str) -> list[tuple[Any, ...]]:
        return self._named(lambda session: [tuple(row) for row in session.sql(statement).collect()])

    def keep(self, select: str, place: str, about: str, check: Check, progress: Progress | None) -> None:
        self._named(lambda session: session.sql(select).write.mode("error").parquet(place))
        try:
            check(self.kept(place))
            # Last, in a file that is no part of the table: not every place that Spark writes to can rename a folder.
            files, mark = self._files(f"{place}/{_MARK}")
            written = files.create(mark, False)
            written.write(about.encode())
            written.close()
        except BaseException:
            self.drop(place)
            raise

    def kept(self, place: str) -> Spark:
        return Spark(self.frame.sparkSession.read.parquet(place))

    def made_for(self, place: str) -> str | None:
        files, folder = self._files(place)
        if not files.exists(folder):
            return None
        files, mark = self._files(f"{place}/{_MARK}")
        if not files.exists(mark):  # a run that was cut short, or nothing of ours
            return ""
        opened = files.open(mark)
        try:
            return str(self.frame.sparkSession._jvm.org.apache.commons.io.IOUtils.toString(opened, "UTF-8"))
        finally:
            opened.close()

    def state(self, place: str) -> str:
        files, folder = self._files(place)
        # All files in one call: the folder of a large table has thousands. Reading one changes its access time.
        listed = self.frame.sparkSession._jvm.scala.collection.mutable.ArraySeq.make(
            files.listStatus(folder)
        ).toString()
        told = str(sorted(_STATUS.findall(listed)))
        return f"{self.made_for(place)} {hashlib.sha256(told.encode()).hexdigest()}"

    def drop(self, place: str) -> None:
        files, folder = self._files(place)
        files.delete(folder, True)

    def _files(self, place: str) -> tuple[Any, Any]:
        """The file system that a place is in, and the place."""
        found = self.frame.sparkSession._jvm.org.apache.hadoop.fs.Path(place)
        return found.getFileSystem(self.frame.sparkSession._jsc.hadoopConfiguration()), found

    def _named(self, work: Callable[[Any], T]) -> T:
        session = self.frame.sparkSession
        self.frame.createOrReplaceTempView(self.table.name)
        try:
            return work(session)
        finally:
            session.catalog.dropTempView(self.table.name)
