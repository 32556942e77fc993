"""How far Spark has come within a statement, by its own count of tasks."""

from __future__ import annotations

import signal
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from support import PATIENCE
from tacit.load import open_source
from tacit.load.spark import Spark
from tacit.model.attribute import integer
from tacit.model.domain import Domain
from tacit.trusted.cells import read_records

SMALL = Domain({"a": integer(0, 2), "b": integer(0, 1)})


@pytest.mark.spark
def test_progress_of_spark_is_told_by_its_tasks(spark: Any, tmp_path: Path) -> None:
    source = Spark(spark.sql("SELECT id % 3 AS a, id % 2 AS b FROM range(0, 500, 1, 8)"))
    told, seen = list[float](), Event()

    def tell(share: float) -> None:
        told.append(share)
        seen.set()

    def work() -> int:
        found = source.frame.groupBy("a").count().toArrow().num_rows
        assert seen.wait(PATIENCE)  # what was told while the statement was not done
        return int(found)

    spark.sparkContext.setLocalProperty("spark.scheduler.pool", "the owner's")
    assert source._watched(work, tell) == 3
    assert 0 < told[0] <= 1
    assert told[-1] == 1.0
    assert sorted(told) == told
    told.clear()
    read_records(open_source(source.frame), SMALL, progress=tell)
    assert 0.5 in told  # the first of two statements is done
    assert (told[-1], sorted(told)) == (1.0, told)
    told.clear()
    source.keep("SELECT 1 AS c0", str(tmp_path / "copy"), "about", lambda *_: None, tell)
    assert 0.5 in told  # it is written, and not checked
    assert (told[-1], sorted(told)) == (1.0, told)
    assert spark.sparkContext.getLocalProperty("spark.scheduler.pool") == "the owner's"
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") is None  # which is set where the work is done


@pytest.mark.spark
def test_an_interrupt_ends_what_spark_does_for_us(spark: Any) -> None:
    source = Spark(spark.range(1))

    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    def work() -> None:
        source.frame.count()  # so that a share can be told
        spark.sparkContext.parallelize([0], 1).foreach(lambda _: signal.pause())

    with pytest.raises(KeyboardInterrupt):
        source._watched(work, interrupted)
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()
