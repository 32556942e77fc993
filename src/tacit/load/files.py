"""Trusted with counts: which files a table is read from, and whether somebody wrote to them. Called by the engines."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

_KINDS = ("csv", "json", "parquet")  # of files that DuckDB reads in a folder: in the names of functions, and their own
_TEXTS = (exp.Literal, exp.RawString, exp.ByteString)  # as DuckDB writes them: 'a.csv', $$a.csv$$, E'a.csv'
_APART = (exp.EQ, exp.Kwarg, exp.PropertyEQ, exp.Table)  # an option of a function, like `sep = '*'`, or another table


def files_of(patterns: Iterable[str], connection: Any) -> list[str]:
    """The files that these names and patterns stand for now, in one order. A name of nothing stands for itself."""
    found = set[str]()
    for pattern in patterns:
        found.update(_matches(pattern, connection) or [pattern])
    return sorted(found)


def _matches(pattern: str, connection: Any) -> list[str]:
    """What DuckDB itself finds there when it reads: it knows `**`, `~` and `file:`, and which links it goes through."""
    try:
        return [file for (file,) in connection.execute("SELECT file FROM glob($1)", [pattern]).fetchall()]
    except duckdb.Error:  # of what is elsewhere
        return []


def patterns_of(query: str) -> list[str]:
    """The names and patterns that a query of DuckDB has where its tables stand.

    What it puts together from texts, reads by a macro, or names after TABLE or SUMMARIZE is not found.
    """
    try:
        tree = sqlglot.parse_one(query, dialect="duckdb")
    except Exception:  # whatever the parser fails with, too deep a stack included: the engine says what is wrong
        return []
    found = list[str]()
    for table in tree.find_all(exp.Table):
        # A file stands there by itself or in a function. Tables that are joined to it, and on what, belong to it, too.
        if isinstance(table.this, exp.Identifier):
            found.append(".".join(part.name for part in table.parts))
        else:
            found += _given(table.this)
    return found


def _given(function: exp.Expr) -> Iterator[str]:
    """The names and patterns that a function of tables is given, and those of the files in a folder of such a name."""
    called = function.name if isinstance(function, exp.Anonymous) else function.key
    kinds = [kind for kind in _KINDS if kind in called.lower()]
    for node in function.walk(prune=lambda node: isinstance(node, _APART)):
        if isinstance(node, exp.Column):  # which such a function takes for a text
            text = ".".join(part.name for part in node.parts)
        elif isinstance(node, _TEXTS) and not node.is_number:
            text = node.name
        else:
            continue
        yield text
        if node.parent is function or isinstance(node.parent, exp.Array):  # else it is a part of what is put together
            yield from (f"{glob.escape(text or '.')}/**/*.{kind}" for kind in kinds)


def state_of(place: str) -> str:
    """Another one after a file was written to, replaced or moved, or a link on the way to it turned.

    What is written within a tick of the file system's clock after it was looked at may go unseen.
    """
    # A link on the way to the file is another one when it was turned elsewhere and back.
    seen = [os.stat(place), *(link.lstat() for link in links_to(Path(place).absolute()))]
    return " ".join(f"{one.st_dev} {one.st_ino} {one.st_size} {one.st_mtime_ns} {one.st_ctime_ns}" for one in seen)


def links_to(place: Path) -> list[Path]:
    """The links on the way to a file: in its own name, and in the names that these stand for."""
    found, ways = list[Path](), [place]
    while ways:
        way = ways.pop()
        links = [one for one in (way, *way.parents) if one.is_symlink() and one not in found]
        ways += [link.parent / link.readlink() for link in links]
        found += links
    return found
