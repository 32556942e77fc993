"""The files of a Spark, without Spark: what `tacit.load.spark` asks of Hadoop, done to a folder of this machine.

For what becomes of folders and marks. It runs no statement: `written` is called in its place, and writes one file.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any


class HadoopFiles:
    """As Hadoop documents it: a file is made exclusively, and its folders with it, whether they are there or not."""

    def exists(self, path: Path) -> bool:
        return path.exists()

    def create(self, path: Path, overwrite: bool) -> Any:
        path.parent.mkdir(parents=True, exist_ok=True)
        return open(path, "wb" if overwrite else "xb")

    def open(self, path: Path) -> Any:
        return open(path, "rb")

    def delete(self, path: Path, recursive: bool) -> bool:
        if path.is_dir():
            assert recursive or not any(path.iterdir())
            shutil.rmtree(path)
            return True
        found = path.exists()
        path.unlink(missing_ok=True)
        return found

    def listStatus(self, path: Path) -> list[Path]:
        return list(path.iterdir())


class HadoopPath(type(Path())):  # type: ignore[misc]
    def getFileSystem(self, _: Any) -> HadoopFiles:
        return HadoopFiles()


class Text:
    @staticmethod
    def toString(opened: Any, encoding: str) -> str:
        return str(opened.read().decode(encoding))


class Named:
    """Anything whose parts have names, as those of a Java package."""

    def __init__(self, **parts: Any) -> None:
        vars(self).update(parts)


class Writing:
    """What a statement selects, to be written. Modes as Spark documents them."""

    def __init__(self, written: Callable[[], None]) -> None:
        self._written, self._mode = written, "error"

    @property
    def write(self) -> Writing:
        return self

    def mode(self, mode: str) -> Writing:
        self._mode = mode
        return self

    def parquet(self, place: str) -> None:
        folder = Path(place)
        if folder.exists() and self._mode == "error":
            raise RuntimeError("[PATH_ALREADY_EXISTS]")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "part-0.parquet").write_text("codes")
        self._written()


class StandIn:
    """A DataFrame and its session in one; `written` is called when a part of a table was written."""

    def __init__(self, written: Callable[[], None] = lambda: None) -> None:
        self._written = written
        self.sparkSession = self
        self.catalog = Named(dropTempView=lambda name: None)
        self.read = Named(parquet=lambda place: self)
        io = Named(IOUtils=Text)
        apache = Named(hadoop=Named(fs=Named(Path=HadoopPath)), commons=Named(io=io))
        self._jvm = Named(org=Named(apache=apache))
        self._jsc = Named(hadoopConfiguration=lambda: None)

    def createOrReplaceTempView(self, name: str) -> None:
        pass

    def sql(self, _: str) -> Writing:
        return Writing(self._written)


StandIn.__module__ = "pyspark.sql.stand_in"  # by which `open_source` knows a DataFrame of Spark's
