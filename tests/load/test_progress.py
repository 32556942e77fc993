"""How far a load has come: told to the owner, never in the way of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from tacit.errors import DataError
from tacit.load import engines as engine
from tacit.load import open_source
from tacit.model.attribute import integer
from tacit.model.domain import Domain
from tacit.trusted.cells import read_records

DOMAIN = Domain({"a": integer(0, 999), "b": integer(0, 9)})
SECRET = "s3cret-4711"


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_LOOK_EVERY", 0.001)


@pytest.fixture(scope="module")
def parquet(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("progress") / "p.parquet")
    duckdb.sql("SELECT i % 1000 AS a, hash(i) % 10 AS b FROM range(3000000) AS t(i)").write_parquet(path)
    return path


def test_shares_go_up_and_the_cells_are_the_same(parquet: str) -> None:
    told: list[float] = []
    watched, plain = (
        read_records(open_source(parquet), DOMAIN, progress=told.append),
        read_records(open_source(parquet), DOMAIN),
    )
    assert watched.fingerprint(b"key") == plain.fingerprint(b"key")
    assert told == sorted(told)  # perhaps none: it may be done before anybody looks
    assert all(0 < share <= 1 for share in told)


def test_a_relation_of_the_owners_is_loaded_all_the_same(parquet: str) -> None:
    told: list[float] = []
    assert read_records(open_source(duckdb.read_parquet(parquet)), DOMAIN, progress=told.append).rows == 3_000_000
    assert told == []


def test_errors_say_nothing_private(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(f"a,b\n{SECRET},1\n")
    with pytest.raises(DataError) as error:
        read_records(open_source(str(tmp_path / "p.csv")), DOMAIN, progress=lambda share: None)
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None
    assert error.value.__context__ is None


def test_an_interrupt_stops_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float] = []
    stopped: list[str] = []

    class Watched:
        def __init__(self, connection: Any) -> None:
            self.connection = connection

        def __getattr__(self, name: str) -> Any:
            if name == "interrupt":
                stopped.append(name)
            return getattr(self.connection, name)

    def stop(share: float) -> None:
        told.append(share)
        if len(told) == 3:
            raise KeyboardInterrupt

    connect = duckdb.connect
    monkeypatch.setattr(duckdb, "connect", lambda **settings: Watched(connect(**settings)))
    with pytest.raises(KeyboardInterrupt):  # without the interrupt this would go on for minutes
        read_records(
            open_source("SELECT i % 1000 AS a, hash(i) % 10 AS b FROM range(100000000000) t(i)"), DOMAIN, progress=stop
        )
    assert len(told) == 3  # of a load that takes minutes, so that somebody looks at it meanwhile
    assert 0 < told[0] < told[1] < told[2] < 1
    assert stopped == ["interrupt"]
