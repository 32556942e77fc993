"""A file that is written to while it is read, or copied, is refused, also where its number of rows stays."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tacit
from tacit.errors import DataError
from tacit.load.engines import DuckDB
from tacit.load.files import files_of, patterns_of
from tacit.load.star import Join, Star
from tacit.model.attribute import integer
from tacit.model.domain import Domain

DOMAIN = Domain({"a": integer(0, 9), "b": integer(0, 9)})
BEFORE, AFTER = "a,b\n" + "1,0\n" * 30, "a,b\n" + "9,1\n" * 30


def replaced(path: Path) -> None:
    """By one of equal length and time, as `cp -p` and `mv` leave it."""
    other, was = path.with_suffix(".other"), path.stat()
    other.write_bytes(path.read_bytes())
    os.utime(other, ns=(was.st_atime_ns, was.st_mtime_ns))
    os.replace(other, path)


def overwritten(path: Path) -> None:
    path.write_text(AFTER)


def touched(path: Path) -> None:
    os.utime(path, ns=(1, 1))


def table(folder: Path, what: str) -> tuple[Any, str | None, Path]:
    """What is opened, its table, and the file of it that somebody writes to."""
    csv, parquet = folder / "t.csv", folder / "parts" / "2024" / "t.parquet"
    csv.write_text(BEFORE)
    parquet.parent.mkdir(parents=True)
    duckdb.execute(f"COPY (SELECT 1 AS a, 0 AS b FROM range(30)) TO '{parquet}'")
    if what == "database":
        with duckdb.connect(folder / "t.duckdb") as made:
            made.execute("CREATE TABLE t AS SELECT 1 AS a, 0 AS b FROM range(30)")
    (folder / "link.csv").symlink_to(csv)
    largest = f"SELECT max(a) FROM read_parquet('{parquet}')"
    (joined := folder / "joined.csv").write_text("a,c\n1,0\n9,1\n")
    found: dict[str, tuple[Any, Path]] = {
        "csv": (csv, csv),
        "link": (folder / "link.csv", csv),
        "pattern": (f"{folder}/t*.csv", csv),
        "parquet": (parquet, parquet),
        "folder": (parquet.parent, parquet),
        "database": (folder / "t.duckdb", folder / "t.duckdb"),
        "query of a name": (f"SELECT * FROM '{csv}' WHERE a < 10", csv),
        "query of a pattern": (f"SELECT a, b FROM read_csv('{folder}/t*.csv', sep = ',', header = true)", csv),
        "query of a list": (f"WITH t AS (FROM read_parquet(['{parquet}'])) SELECT a, b FROM t", parquet),
        "query beside =": (f"SELECT a, b FROM '{csv}' WHERE a = ({largest})", parquet),
        "query of a folder": (f"SELECT a, b FROM read_parquet('{parquet.parent}')", parquet),
        "query of all below": (f"SELECT a, b FROM read_parquet('{folder}/parts/**')", parquet),
        "query of a URL": (f"SELECT a, b FROM 'file://{parquet}'", parquet),
        "query of dollars": (f"SELECT a, b FROM read_csv($${csv}$$)", csv),
        "query of escapes": (f"SELECT a, b FROM read_csv(E'{str(csv).replace('t.csv', chr(92) + 'x74.csv')}')", csv),
        "join": (Star(csv, [Join(name="p", source=joined, on="a", holds="public")]), joined),
    }
    data, file = found[what]
    touched(file)  # long ago: whatever is done now has another time, however coarse the clock is
    os.utime(file, ns=(0, 0))
    return data, "t" if what == "database" else None, file


WHERE = ["csv", "link", "pattern", "parquet", "folder", "database", "query of a name", "query of a pattern",
         "query of a list", "query beside =", "query of a folder", "query of all below", "query of a URL",
         "query of dollars", "query of escapes", "join"]  # fmt: skip


def meanwhile(monkeypatch: pytest.MonkeyPatch, name: str, do: Callable[[], None], *, after: bool) -> None:
    """Somebody does this just before, or just after, the engine does its own."""
    work = getattr(DuckDB, name)

    def done(self: DuckDB, *given: Any) -> Any:
        if not after:
            do()
        found = work(self, *given)
        if after:
            do()
        return found

    monkeypatch.setattr(DuckDB, name, done)


@pytest.mark.parametrize("what", WHERE)
@pytest.mark.parametrize("done", [replaced, touched])
def test_a_file_that_is_changed_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, done: Callable[[Path], None]
) -> None:
    data, name, file = table(tmp_path, what)
    same: dict[str, Any] = {"data": data, "table": name, "domain": DOMAIN, "ledger": tmp_path / "t.tacit"}
    terms: dict[str, Any] = {"budget": tacit.Budget(epsilon=1, delta=1e-9), "anchor": tmp_path / "anchor"}
    for held, work in (("memory", "run"), ("engine", "run"), ("engine", "keep")):
        with monkeypatch.context() as patched:
            meanwhile(patched, work, lambda: done(file), after=work == "run")
            with pytest.raises(DataError, match="it changed while it was read"):
                tacit.open(**same, **terms, mechanism="direct", held=held)
        assert not (tmp_path / "t.tacit").exists()
        assert not (tmp_path / "t.tacit.codes").exists()
        os.utime(file, ns=(0, 0))
    tacit.encode(**same)  # nobody writes to it, and it is read
    tacit.open(**same, **terms, mechanism="direct", held="engine").close()


@pytest.mark.parametrize("held", ["memory", "engine"])
def test_rows_of_two_states_of_a_file_are_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: str) -> None:
    """All that a second statement counts is their number, which stays."""
    path, _, _ = table(tmp_path, "csv")
    meanwhile(monkeypatch, "run" if held == "memory" else "keep", lambda: overwritten(path), after=False)
    with pytest.raises(DataError, match="it changed while it was read"):
        tacit.open(
            data=path, domain=DOMAIN, budget=tacit.Budget(epsilon=1, delta=1e-9), ledger=tmp_path / "t.tacit",
            anchor=tmp_path / "anchor", mechanism="direct", held=held,
        )  # fmt: skip
    assert not (tmp_path / "t.tacit.codes").exists()


def test_values_are_not_discovered_in_rows_of_two_states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, _, _ = table(tmp_path, "csv")
    meanwhile(monkeypatch, "fetch", lambda: overwritten(path), after=False)
    with pytest.raises(DataError, match="it changed while it was read"):
        tacit.discover(
            data=path, columns={"a": {"kind": "category", "discover": True}}, ledger=tmp_path / "t.tacit",
            budget=tacit.Budget(epsilon=1, delta=1e-9), anchor=tmp_path / "anchor",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("query", "files"),
    [
        ("SELECT * FROM 'a.csv', \"b.parquet\" AS b", ["a.csv", "b.parquet"]),
        ("FROM read_parquet(['x/*.parquet', 'y.parquet']) SELECT i", ["x/*.parquet", "y.parquet"]),
        ("WITH t AS (SELECT * FROM read_csv_auto('a.csv')) SELECT * FROM t JOIN 'b.csv' USING (i)", ["a.csv", "b.csv"]),
        ("FROM read_csv('a.csv', sep = '.*', nullstr := '?.', dateformat => '%d.%m')", ["a.csv"]),
        ("SELECT 'c.csv' FROM range(3)", []),
        ("FROM ('a.csv' JOIN 'b.csv' ON i LIKE '/**.c')", ["a.csv", "b.csv"]),
        ("FROM 'a.csv' WHERE i = (SELECT max(i) FROM read_csv('b.csv', sep = '.')) AND j = '.c'", ["a.csv", "b.csv"]),
        ("SELECT i = (FROM read_parquet(['b.parquet'])) AS j FROM 'a.csv'", ["a.csv", "b.parquet"]),
        (r"FROM read_csv($$a.csv$$), read_csv(E'\x62.csv'), read_csv(c.csv)", ["a.csv", "b.csv", "c.csv"]),
        ("SELECT FROM WHERE", []),
        # Too deep for the parser, and perhaps not for the engine.
        pytest.param(f"SELECT {'(' * 200}i{')' * 200} FROM 'a.csv'", [], id="deep"),
    ],
)
def test_which_files_a_query_names(query: str, files: list[str]) -> None:
    assert {one for one in patterns_of(query) if "." in one and "/**/" not in one} == set(files)


def test_which_folders_a_query_names() -> None:
    for query, folders in (
        ("FROM read_csv('x')", ["x/**/*.csv"]),
        ("FROM READ_JSON_AUTO(['x', 'y[1]'])", ["x/**/*.json", "y[[]1]/**/*.json"]),
        ("FROM read_parquet(x, filename = 'y')", ["x/**/*.parquet"]),
        ("FROM read_csv('')", ["./**/*.csv"]),
        ("FROM read_csv(concat('/', 'x'))", []),  # all of the file system would be looked through
        ("FROM repeat('/', 3), read_text('/'), x", []),
    ):
        assert [one for one in patterns_of(query) if "/**/" in one] == folders, query


def test_files_are_those_that_the_engine_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = tmp_path / "t" / "y=2024" / "m=1"
    deep.mkdir(parents=True)
    for place in (tmp_path / "t", deep):
        for name in ("x.csv", ".hidden.csv"):
            (place / name).write_text("a\n1\n")
    for name in ("latest", "current"):  # which would be looked through for ever
        (tmp_path / "t" / name).symlink_to(".")
    (tmp_path / "t" / "link.csv").symlink_to("x.csv")
    (tmp_path / "t" / "gone.csv").symlink_to("nowhere.csv")
    (tmp_path / "other").symlink_to("t")
    (tmp_path / "t" / "notes.txt").write_text("none of it")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with duckdb.connect() as connection:
        for place in ("t", "t/", "other", "t/**/*.csv", "t/**.csv", "t/*/*/?.csv", "other/*.csv", "~/t/*.csv",
                      "t/[w-y].csv", f"file://{tmp_path}/t", f"file:{tmp_path}/t/x.csv", "t/../t/x.csv"):  # fmt: skip
            read = f"SELECT DISTINCT filename FROM read_csv('{place}', filename = true) ORDER BY 1"
            expected = {os.path.realpath(file) for (file,) in connection.execute(read).fetchall()}
            found = files_of(patterns_of(f"FROM read_csv('{place}')"), connection)
            assert {os.path.realpath(file) for file in found if os.path.isfile(file)} == expected, place
        assert files_of(["nothing/**/here", "[x]", "s3://b/*.csv"], connection) == [
            "[x]", "nothing/**/here", "s3://b/*.csv"
        ]  # fmt: skip


def test_a_folder_with_the_name_of_a_table_is_no_file_of_it(here: Path) -> None:
    (here / "data").mkdir()
    (here / "x.csv").write_text(BEFORE)
    query = "WITH data AS (SELECT * FROM 'x.csv') SELECT * FROM data"
    budget = tacit.Budget(epsilon=1, delta=1e-9)
    with tacit.open(data=query, domain=DOMAIN, budget=budget, ledger="data/l.tacit", held="engine") as session:
        assert session.rows == 30
