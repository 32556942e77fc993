"""Trusted with counts: the engine of a Spark cluster, which groups where the rows are. Made by `open_source`."""

from __future__ import annotations

import hashlib
import re
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from sqlglot import exp

from tacit.errors import DataError
from tacit.load import BEGUN, WRITTEN, Check, NumberColumns, Progress
from tacit.load.columns import Dialect, TableColumn, table_column
from tacit.load.progress import part_of, watched
from tacit.model.domain import Domain

if TYPE_CHECKING:
    from tacit.load.star import Join

T = TypeVar("T")

# Files of ours in the folder of a copy. Spark takes none that begin so for the table's.
_BEGUN = "_tacit_begun"  # there before anything else: what is in the folder is ours
_MARK = "_tacit"  # there last: it is whole and checked
_STATUS = re.compile(r"path=(.*?);.*?length=(\d+);.*?modification_time=(\d+)")  # of a file, in Hadoop's words


class Spark:
    """A Spark DataFrame, under a name that lives as long as a statement runs."""

    dialect: Dialect = "spark"
    joins: Sequence[Join] = ()
    failure = "the Spark DataFrame could not be read."

    def __init__(self, frame: Any) -> None:
        self.table = exp.table_(f"tacit_{uuid.uuid4().hex}", quoted=True)
        self.frame = frame

    def version(self) -> str:
        """None is known: what a DataFrame is made of may be anything, at any number of places."""
        return ""

    def columns(self, domain: Domain | None = None, person: str | None = None) -> tuple[TableColumn, ...]:
        return tuple(table_column(name, kind) for name, kind in self.types())

    def types(self) -> list[tuple[str, str]]:
        """The names and types of the columns."""
        # Spark's plain timestamp is an instant, shown in the session's time zone; timestamp_ntz has none.
        zoned = {"timestamp": "TIMESTAMP WITH TIME ZONE"}
        fields = self.frame.schema.fields
        return [(field.name, zoned.get(kind := field.dataType.simpleString(), kind)) for field in fields]

    def run(self, statements: Sequence[str], progress: Progress | None) -> list[NumberColumns]:
        each = 1 / len(statements)

        def work(session: Any) -> list[Any]:
            return [
                self._watched(session.sql(sql).toArrow, progress and part_of(progress, each * i, each))
                for i, sql in enumerate(statements)
            ]

        return [[column.to_numpy().astype(np.int64) for column in table.columns] for table in self._named(work)]

    def fetch(self, statement: str) -> list[tuple[Any, ...]]:
        return self._named(lambda session: [tuple(row) for row in session.sql(statement).collect()])

    def keep(self, select: str, place: str, about: str, check: Check, progress: Progress | None) -> None:
        self._begin(place)
        try:
            # To a folder that is there already: with our mark in it, and nothing else.
            writing = progress and part_of(progress, 0.0, WRITTEN)
            self._named(
                lambda session: self._watched(lambda: session.sql(select).write.mode("append").parquet(place), writing)
            )
            check(self.kept(place), self)
            # Last, in a file that is no part of the table: not every place that Spark writes to can rename a folder.
            files, mark = self._files(f"{place}/{_MARK}")
            written = files.create(mark, False)
            written.write(about.encode())
            written.close()
        except BaseException:
            self.drop(place)
            raise
        if progress:
            progress(1.0)

    def _begin(self, place: str) -> None:
        """A folder of our own, with a mark by which it is known as ours; refused where something is there.

        Hadoop makes no folder exclusively, since it takes one that is there for made. It does make a file so: of two
        runs one gets the mark. A folder that came to be in between has other files, and keeps them.
        """
        there = DataError(f"{place} is there already, and stays as it is: name another place.")
        files, folder = self._files(place)
        if files.exists(folder):
            raise there
        _, mark = self._files(f"{place}/{_BEGUN}")
        files.create(mark, False).close()
        if len(files.listStatus(folder)) != 1:
            files.delete(mark, False)
            raise there

    def kept(self, place: str) -> Spark:
        return Spark(self.frame.sparkSession.read.parquet(place))

    def made_for(self, place: str) -> str | None:
        files, folder = self._files(place)
        if not files.exists(folder):
            return None
        files, mark = self._files(f"{place}/{_MARK}")
        if not files.exists(mark):
            _, begun = self._files(f"{place}/{_BEGUN}")
            return BEGUN if files.exists(begun) else ""
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

    def sweep(self, place: str) -> None:
        """What was begun lies at the place itself."""

    def _watched(self, work: Callable[[], T], progress: Progress | None) -> T:
        """Work, while Spark says how many of its tasks are done, where somebody wants to know."""
        context = getattr(self.frame.sparkSession, "sparkContext", None)  # a client of a remote Spark has none
        if progress is None or context is None:
            found = work()
        else:
            group = f"tacit {uuid.uuid4().hex}"

            def named() -> T:
                context.setJobGroup(group, "tacit", interruptOnCancel=True)
                return work()

            def stop() -> None:
                # Also what is yet to begin: one statement is several jobs.
                context._jsc.sc().cancelJobGroupAndFutureJobs(group)

            found = watched(_as_here(self.frame.sparkSession, named), lambda: _share(context, group), stop, progress)
        if progress:
            progress(1.0)
        return found

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


def _as_here(session: Any, work: Callable[[], T]) -> Callable[[], T]:
    """The work for another thread, with what the owner has set in this one, such as a scheduler's pool."""
    from pyspark import inheritable_thread_target

    there: Callable[[], T] = inheritable_thread_target(session)(work)
    return there


def _share(context: Any, group: str) -> float:
    """The share of its tasks that Spark has done, of those that it knows of: more become known as it goes on."""
    tracker, done, known = context.statusTracker(), 0, 0
    jobs = filter(None, map(tracker.getJobInfo, tracker.getJobIdsForGroup(group)))
    for stage in filter(None, (tracker.getStageInfo(one) for job in jobs for one in job.stageIds)):
        done, known = done + stage.numCompletedTasks, known + stage.numTasks
    return done / known if known else 0.0
