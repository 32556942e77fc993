"""Names and values as SQL has them: what pages and prompts put into a statement, and offer while one is typed. Pure."""

from __future__ import annotations

import re

from sqlglot.dialects.duckdb import DuckDB

from tacit.model.attribute import Attribute
from tacit.model.values import Listed

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def column(name: str) -> str:
    """An attribute's name as SQL has it: quoted only where it has to be.

    >>> column("age"), column("home town"), column("select")
    ('age', '"home town"', '"select"')
    """
    if _PLAIN.fullmatch(name) and name.upper() not in DuckDB.Tokenizer.KEYWORDS:
        return name
    return '"' + name.replace('"', '""') + '"'


def literal(attribute: Attribute, place: int) -> str:
    """A value as SQL has it, by its place; a bin of an ordered attribute by its label."""
    values = attribute.values
    if isinstance(values, Listed) and place < attribute.bins:
        value = values.values[place]
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, int):
            return str(value)
    return quoted(attribute.label(place))


def span(attribute: Attribute, place: int) -> tuple[str, str]:
    """The two ends of a bin as people write them: for whole numbers and days the last value, else the edge."""
    assert not isinstance(attribute.values, Listed)
    last = attribute.edge(place + 1) - (1 if attribute.values.whole else 0)
    return attribute.values.show(attribute.edge(place)), attribute.values.show(last)


def ends(attribute: Attribute, most: int) -> list[tuple[str, str]]:
    """The two ends of the first bins as SQL has them: days are texts there."""
    spans = (span(attribute, place) for place in range(min(attribute.bins, most)))
    return [(quoted(low), quoted(high)) if attribute.kind == "date" else (low, high) for low, high in spans]


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
