"""How far a load has come: told to the owner, never in the way of it."""

from __future__ import annotations

import time
from pathlib import Path

import duckdb
import pytest

from tacit.errors import DataError
from tacit.load import duckdb as engine
from tacit.load.source import open_source
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
    assert told
    assert told == sorted(told)
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


def test_an_interrupt_stops_the_engine() -> None:
    def stop(share: float) -> None:
        raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):  # without the interrupt this would go on for minutes
        read_records(
            open_source("SELECT i % 1000 AS a, hash(i) % 10 AS b FROM range(100000000000) t(i)"), DOMAIN, progress=stop
        )
    assert time.monotonic() - start < 60
