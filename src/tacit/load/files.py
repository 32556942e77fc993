"""Trusted with counts: which files a table is read from, and whether somebody wrote to them. Called by the engines."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from pathlib import Path

import sqlglot
from sqlglot import exp


def files_of(patterns: Iterable[str]) -> list[str]:
    """The files that these names and patterns stand for now, in one order. A name of nothing stands for itself."""
    found = set[str]()
    for pattern in patterns:
        found.update(_matches(os.path.expanduser(pattern)) or [pattern])
    return sorted(found)


def _matches(pattern: str) -> list[str]:
    """What a pattern stands for. Like DuckDB's, `**` goes through no link to a folder: two that lead back to where they
    are would make Python's own look through ever more folders.
    """
    before, deep, after = pattern.partition("**/")
    if not deep or before[-1:] not in ("", "/"):
        return glob.glob(pattern, include_hidden=True)
    found = list[str]()
    for top in glob.glob(before or ".", include_hidden=True):
        for folder, _, _ in os.walk(top):
            found += _matches(os.path.join(glob.escape(folder), after))
    return found


def patterns_of(query: str) -> list[str]:
    """The names and patterns that a query of DuckDB has where its tables stand.

    What it puts together from texts, or reads by a macro, is not found.
    """
    try:
        tree = sqlglot.parse_one(query, dialect="duckdb")
    except Exception:  # whatever the parser fails with, too deep a stack included: the engine says what is wrong
        return []
    found = list[str]()
    for table in tree.find_all(exp.Table):
        # A file stands there by itself or in a function, whose options have names: `sep = '*'` is no pattern. Tables
        # that are joined to it, and on what, belong to it as well.
        found.append(".".join(part.name for part in table.parts))
        texts = [text for text in table.this.find_all(exp.Literal) if text.is_string]
        found += [text.this for text in texts if text.find_ancestor(exp.EQ, exp.Kwarg, exp.PropertyEQ) is None]
    return found


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
