"""Answers as columns: what each library reads, missing values, awkward names, and streams freed at any time."""

from __future__ import annotations

import datetime as dt
import gc
import io
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from rich.console import Console

import tacit
from tacit.cli.show import print_answer
from tacit.errors import ConfigError, InvalidQuery
from tacit.model.answer import Answer, QuantileAnswer
from tacit.model.budget import Loss
from tacit.model.facts import Facts, Receipt
from tacit.model.table import CdfAnswer, Listing, Row, Table
from tacit.show.frames import Frame, FrameColumn, Framed, frame

FREE = Loss("epsilon", 0)
DAY = dt.date(2024, 2, 29)
EVERY = Frame(
    (
        FrameColumn("a b", "text", ["x", None, 'quote " and , comma']),
        FrameColumn("Größe", "real", [1.5, None, -2.0]),
        FrameColumn("n", "whole", [2**52, None, -1]),
        FrameColumn("t", "truth", [True, None, False]),
        FrameColumn("day", "day", [DAY, None, dt.date(1, 1, 1)]),
        FrameColumn("coded", "text", ["u", None, "v"], np.array([2, 1, 0], dtype=np.uint8)),
        FrameColumn("plain", "real", np.array([1.0, 2.0, 3.0])),
    )
)
ROWS = [
    ("x", 1.5, 2**52, True, DAY, "v", 1.0),
    (None, None, None, None, None, None, 2.0),
    ('quote " and , comma', -2.0, -1, False, dt.date(1, 1, 1), "u", 3.0),
]
NAMES = ["a b", "Größe", "n", "t", "day", "coded", "plain"]


def answer(**changes: Any) -> Answer:
    error = changes.pop("error", 3.5)
    facts = Facts("measured", Loss.of("epsilon", 0.25), 0.95, Receipt(4, "ab" * 32))
    return Answer("sex = F", 12, replace(facts, **changes).within(error))


def table(*names: str, labels: tuple[tuple[str, ...], ...] = (("F", "M"), ("a", "b", "c"))) -> Table:
    values = np.arange(6.0).reshape(2, 3)
    return Table("a table", names, labels, values, Facts("measured", FREE, 0.95).within(2.0))


def cdf(*, dated: bool = False) -> CdfAnswer:
    start = float(DAY.toordinal()) if dated else 17.0
    ends = start + np.arange(1.0, 4.0)
    return CdfAnswer(
        "cumulative", "age", ("17", "18", "19"), start, ends, np.array([1.0, 50.0, 99.0]), 100,
        Facts("repeat", FREE, 0.95).within(5.0), dated=dated,
    )  # fmt: skip


def arrow(framed: Framed) -> tuple[list[str], list[tuple[Any, ...]]]:
    read = pa.table(framed)
    return read.column_names, list(zip(*(column.to_pylist() for column in read.columns), strict=True))


def test_arrow_reads_every_kind_and_what_is_missing() -> None:
    assert arrow(EVERY) == (NAMES, ROWS)
    types = dict(zip(NAMES, EVERY.to_arrow().schema.types, strict=True))
    assert pa.types.is_string(types["a b"]) or pa.types.is_large_string(types["a b"])
    wanted = [pa.float64(), pa.int64(), pa.bool_(), pa.date32()]
    assert [types[name] for name in ("Größe", "n", "t", "day")] == wanted


def test_polars_reads_the_same() -> None:
    read = EVERY.to_polars()
    assert (read.columns, read.rows()) == (NAMES, ROWS)
    assert read.schema.dtypes()[:5] == [pl.String, pl.Float64, pl.Int64, pl.Boolean, pl.Date]
    assert pl.DataFrame(answer())["value"].to_list() == [12.0]


def test_duckdb_reads_the_same() -> None:
    given = EVERY
    with duckdb.connect() as connection:
        assert connection.sql("FROM given").fetchall() == ROWS
        assert connection.sql("FROM given").columns == NAMES
    assert given is EVERY


def test_pandas_reads_the_same() -> None:
    read = EVERY.to_pandas()
    assert list(read.columns) == NAMES
    assert read["n"].dtype == "Int64"
    assert read["n"][0] == 2**52  # no detour through a float
    assert read["t"].dtype == "boolean"
    assert read["day"].dt.date[0] == DAY
    assert read.isna().sum().tolist() == [1, 1, 1, 1, 1, 1, 0]
    assert [value for value in read["coded"] if isinstance(value, str)] == ["v", "u"]
    whole = Frame((FrameColumn("n", "whole", [1, 2]), FrameColumn("t", "truth", [True, False]))).to_pandas()
    assert [str(kind) for kind in whole.dtypes] == ["int64", "bool"]
    if hasattr(pd.DataFrame, "from_arrow"):
        assert pd.DataFrame.from_arrow(EVERY)["plain"].tolist() == [1.0, 2.0, 3.0]


def test_an_answer_is_one_row_and_a_list_of_them_one_table() -> None:
    names = ["question", "value", "error", "confidence", "source", "cost", "entry", "seal", "note"]
    bought = ("sex = F", 12.0, 3.5, 0.95, "measured", 0.25, 4, "ab" * 32, "")
    assert arrow(answer()) == (names, [bought])
    free = answer(error=None, source="hypothesis", cost=FREE, receipt=None, note="no guarantee any more")
    told = ("sex = F", 12.0, None, 0.95, "hypothesis", 0.0, None, None, "no guarantee any more")
    assert arrow(tacit.frame([answer(), free])) == (names, [bought, told])
    assert frame([free]).to_pandas()["entry"].isna().all()
    assert frame([free]).to_polars()["error"].to_list() == [None]


def test_what_is_not_a_list_of_answers_of_one_kind_is_refused() -> None:
    quantile = QuantileAnswer("median", 0.5, "30–39", "20–29", "40–49", Facts("repeat", FREE, 0.95))
    assert arrow(quantile)[1][0][:5] == ("median", 0.5, "30–39", "20–29", "40–49")
    assert len(frame([quantile, quantile])) == 2
    for wrong in ([], [answer(), quantile], [table("sex", "x")], answer(), [answer(), 3], "text"):
        with pytest.raises(InvalidQuery):
            frame(wrong)  # type: ignore[arg-type]


def test_a_table_has_a_column_for_each_attribute() -> None:
    names, rows = arrow(table("sex", "x"))
    assert names == ["sex", "x", "value", "error"]
    assert rows[:2] == [("F", "a", 0.0, 2.0), ("F", "b", 1.0, 2.0)]
    assert rows[-1] == ("M", "c", 5.0, 2.0)


@pytest.mark.parametrize("names", [("value", "error"), ("Value", "ERROR"), ("value", "value_"), ('a"b', "a'b; --")])
def test_attributes_may_be_called_anything(names: tuple[str, str]) -> None:
    given, rows = arrow(table(*names))
    assert given[:2] == list(names)
    assert len({name.casefold() for name in given}) == 4
    assert rows[4] == ("M", "b", 4.0, 2.0)
    assert list(table(*names).to_pandas().columns) == given == table(*names).to_polars().columns


def test_a_cdf_has_its_edges_and_band() -> None:
    names, rows = arrow(cdf())
    assert names == ["age", "below", "count", "low", "high"]
    assert rows == [("17", 18.0, 1.0, 0.0, 6.0), ("18", 19.0, 50.0, 45.0, 55.0), ("19", 20.0, 99.0, 94.0, 100.0)]
    assert arrow(cdf(dated=True))[1][0][1] == DAY + dt.timedelta(days=1)


def test_a_notebook_shows_the_picture_with_the_numbers() -> None:
    shown = table("sex", "x", labels=(("F", "<script>"), ("a", "b", "c")))._repr_html_()
    assert shown.startswith("<svg")
    assert "<td>&lt;script&gt;</td>" in shown
    assert "<script>" not in shown
    both = cdf()._repr_html_()
    assert "<svg" in both
    assert "rows up to its end" in both
    cells = Table("t", ("a", "b", "c"), (("x",),) * 3, np.ones((1, 1, 1)), Facts("repeat", FREE, 0.95))
    assert "<svg" not in cells._repr_html_()
    long = CdfAnswer(
        "c", "age", tuple(map(str, range(1001))), 0.0, np.arange(1.0, 1002), np.arange(1001.0), 2000,
        Facts("repeat", FREE, 0.95).within(5.0),
    )._repr_html_()  # fmt: skip
    assert long.count("<tr>") < 110
    assert "<td>1000</td>" in long  # the last bin is always there


def test_a_stream_is_new_each_time_and_takes_a_wanted_schema() -> None:
    first, second = EVERY.__arrow_c_stream__(), EVERY.__arrow_c_stream__()
    assert first is not second
    assert pa.table(EVERY).equals(pa.table(EVERY))
    wanted = pa.schema([("value", pa.float32())])
    one = Frame((FrameColumn("value", "real", [1.5]),))
    assert pa.table(one, schema=wanted).schema == wanted
    assert pa.RecordBatchReader._import_from_c_capsule(first).read_all().num_rows == 3
    with pytest.raises(pa.ArrowInvalid):  # a capsule can be read once
        pa.RecordBatchReader._import_from_c_capsule(first)


def test_streams_may_be_dropped_while_an_exception_is_on_its_way() -> None:
    # What is written in Python to free a stream would run here with an exception set, and bring the process down.
    def never(*_: object) -> None: ...

    for _ in range(20):
        with pytest.raises(ZeroDivisionError):
            never(EVERY.__arrow_c_stream__(), pa.table(EVERY), pl.DataFrame(EVERY), 1 / 0)


@pytest.mark.parametrize(
    ("warming", "count", "most"), [(40, 120, 8), pytest.param(500, 10_000, 16, marks=pytest.mark.audit)]
)
def test_no_stream_is_kept(warming: int, count: int, most: float) -> None:
    if not Path("/proc/self/statm").exists():
        pytest.skip("memory is read from /proc")

    def megabytes(count: int) -> float:
        one = Frame((FrameColumn("text", "text", ["x" * 1000] * 100),))  # 100 kB a stream
        for _ in range(count):
            one.__arrow_c_stream__()  # never read
            pa.table(one)
        gc.collect()
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20

    before = megabytes(warming)
    assert megabytes(count) - before < most  # if streams stayed, 24 megabytes or more


def test_threads_read_at_once() -> None:
    with ThreadPoolExecutor(8) as pool:
        read = list(pool.map(lambda _: pa.table(EVERY).num_rows + pl.DataFrame(answer()).height, range(100)))
    assert read == [4] * 100


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_library_that_is_not_there_is_named(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    method = {"pandas": "to_pandas", "polars": "to_polars", "pyarrow": "to_arrow"}[library]
    with pytest.raises(ConfigError, match=f"{library} is not installed.*extra `frames`"):
        getattr(answer(), method)()


def test_duckdb_alone_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("pandas", "polars", "pyarrow"):
        monkeypatch.setitem(sys.modules, library, None)
    given = EVERY
    with duckdb.connect() as connection:
        assert connection.sql("SELECT count(*) FROM given").fetchall() == [(3,)]
    assert given is EVERY


def test_a_frame_without_rows() -> None:
    empty = Frame((FrameColumn("a", "text", []), FrameColumn("d", "day", []), FrameColumn("x", "real", [])))
    read = empty.to_arrow()
    assert read.num_rows == 0
    assert [str(kind) for kind in read.schema.types] == ["string", "date32[day]", "double"]
    assert len(empty.to_pandas()) == len(empty.to_polars()) == 0
    with pytest.raises(ValueError, match="same length"):
        Frame((FrameColumn("a", "text", ["x"]), FrameColumn("b", "text", [])))


def test_files(tmp_path: Path) -> None:
    csv, parquet = EVERY.save(tmp_path / "it's.CSV"), EVERY.save(tmp_path / "x.parquet")
    assert csv.read_text(encoding="utf-8").splitlines()[0] == "a b,Größe,n,t,day,coded,plain"
    with duckdb.connect() as connection:
        assert connection.read_parquet(str(parquet)).fetchall() == ROWS
    for ending in ("x.xlsx", "x", "x.csv.gz"):
        with pytest.raises(ConfigError, match=r"\.csv or \.parquet"):
            EVERY.save(tmp_path / ending)
    with pytest.raises(ConfigError, match="overwrite=True"):
        EVERY.save(parquet)
    Frame((FrameColumn("n", "whole", [1]),)).save(parquet, overwrite=True)
    with duckdb.connect() as connection:
        assert connection.read_parquet(str(parquet)).fetchall() == [(1,)]
    with pytest.raises(ConfigError, match="cannot be written"):
        EVERY.save(tmp_path / "no" / "folder.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["it's.CSV", "x.parquet"]  # nothing half written


def test_curves_quantiles_and_listings_say_whether_they_say_anything() -> None:
    assert [replace(cdf(), facts=cdf().facts.within(error)).says for error in (5.0, 6.0, 50.0)] == [
        "sharp",
        "rough",
        "nothing",
    ]
    facts = Facts("repeat", FREE, 0.95).within(5.0)
    ends = [("30–39", "30–39"), ("20–29", "40–49"), ("0–9", "90–99")]
    found = [QuantileAnswer("median", 0.5, "30–39", *end, facts, ("0–9", "90–99")) for end in ends]
    assert [one.says for one in found] == ["sharp", "rough", "nothing"]
    assert [str(one).endswith("says nothing") for one in found] == [False, False, True]
    rows = (Row(("F",), (10.0, 400.0), (None, 7.0)), Row(("M",), (0.5, 300.0), (0.5, 30.0)))
    listing = Listing("by sex", ("sex",), ("AVG(x)", "COUNT(*)"), rows, facts.within(None), ((0, 1), (0, 1000)))
    assert [listing.words(row) for row in rows] == [["nothing", "sharp"], ["nothing", "sharp"]]
    assert listing.cells() == [["F", "10 (says nothing)", "400 ± 7"], ["M", "0.5 ± 0.5 (says nothing)", "300 ± 30"]]
    assert [listing.grey(row) for row in rows] == [[True, False], [True, False]]
    assert listing.says == "sharp"  # at least half of the values say as much
    assert replace(listing, listed=(rows[0], replace(rows[1], errors=(0.5, None)))).says == "nothing"


def test_csv_has_nothing_where_a_value_is_missing_and_days_as_dates() -> None:
    names, *rows = EVERY.cells()
    assert names == NAMES
    assert rows == [
        ["x", "1.5", str(2**52), "true", DAY.isoformat(), "v", "1"],
        ["", "", "", "", "", "", "2"],
        ['quote " and , comma', "-2", "-1", "false", "0001-01-01", "u", "3"],
    ]
    nothing = answer(error=None)
    read = pd.read_csv(io.StringIO(nothing.frame().csv()))
    assert read["value"].tolist() == nothing.to_pandas()["value"].tolist()
    assert read["error"].isna().all()  # and not 0, which says that it is exact


def test_a_label_is_not_taken_for_a_value_that_says_nothing() -> None:
    facts = Facts("repeat", FREE, 0.95)
    rows = (Row(("(says nothing)",), (300.0,), (7.0,)), Row(("M",), (10.0,), (None,)))
    written = io.StringIO()
    terminal = Console(file=written, force_terminal=True, color_system="standard", width=80)
    listing = Listing("by word", ("word",), ("COUNT(*)",), rows, facts, ((0, 1000),))
    print_answer(listing, 1000, terminal)
    grey = [line for line in written.getvalue().splitlines() if "\x1b[90m" in line]
    assert ["10 (says nothing)" in line for line in grey] == [True]


def test_columns_that_no_file_can_have_are_refused_in_words(tmp_path: Path) -> None:
    nameless = Frame((FrameColumn("", "real", [1.0]), FrameColumn("n", "real", [2.0])))
    with pytest.raises(ConfigError, match=r"x\.csv cannot be written"):
        nameless.save(tmp_path / "x.csv")
    assert not list(tmp_path.iterdir())
