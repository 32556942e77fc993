"""`tacit init`: a first, commented configuration from the names and types of a table's columns.

Column names and types are taken to be public. Their values are not: they are looked at only when the owner says so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from tacit.trusted.peek import Seen
from tacit.trusted.statement import Column

_HEAD = """\
# What Tacit may be asked about {shown}. Fill in what is missing, then:  tacit ask "SELECT COUNT(*) FROM data"

[data]
source = {source}
{table}
[budget]               # ONE budget for everything that will ever be answered from this table
epsilon = 1.0          # smaller is more private; 1.0 is a common choice
delta = 1e-9           # well below 1/rows; 0 for pure differential privacy

[session]
ledger = {ledger}      # records every charge and every answer; keep it as secret as the data, and never delete it
mechanism = "auto"     # auto | direct | histogram
questions = 100        # direct: how many new questions the budget is shared among
confidence = 0.95      # of the error bars

# The domain: every attribute that may be asked about, with its values or bins. It is public, so declare it from what
# everybody knows, not from the rows. Delete the attributes that nobody should ask about.
# Where rows may have no value, add     missing = "unknown"
# Where values may lie outside, add     clamp = true     (numbers and dates)     or     other = "other"
# Without these, such a row refuses the load.
"""
_PEEKED = """\
# The bounds and values marked `seen` were read from the rows, because you asked for it: by keeping them you decide to
# treat them as public. An extreme value can point to one person: round it to what everybody knows.
"""


_ASK_NUMBER = """\
kind = "integer"          # or "numeric", with edges = [0, 10.5, 20]
# low = 0                 # the lowest and the highest value, both included
# high = 99
# width = 5               # of the bins
"""
_ASK_DATE = """\
kind = "date"
# low = 2020-01-01        # the first and the last day, both included
# high = 2024-12-31
by = "month"              # day | month | year
"""
_ASK_CATEGORY = """\
kind = "category"
# values = ["F", "M"]     # list them
other = "other"           # for what is not listed
"""


def draft(
    source: str,
    shown: str,
    table: str | None,
    ledger: str,
    columns: tuple[Column, ...],
    seen: Mapping[str, Seen] | None,
) -> str:
    """The text of a configuration. `seen` holds what was read from the rows, if the owner allowed it."""
    named = f"table = {json.dumps(table)}\n" if table else ""
    head = _HEAD.format(shown=shown, source=_text(source), table=named, ledger=_text(ledger))
    parts = [_attribute(column, seen.get(column.name) if seen is not None else None) for column in columns]
    return head + (_PEEKED if seen is not None else "") + "\n" + "\n".join(parts)


def _attribute(column: Column, seen: Seen | None) -> str:
    title = f"[domain.{_text(column.name)}]\n"
    missing = 'missing = "unknown"   # seen: some rows have no value\n' if seen and seen.has_missing else ""
    if column.type in ("number", "decimal"):
        return title + _number(seen) + missing
    if column.type == "boolean":
        return title + 'kind = "boolean"\n' + missing
    if column.type in ("date", "timestamp"):
        return title + _dates(seen) + missing
    if column.type in ("text", "empty"):
        return title + _category(seen) + missing
    commented = f"{title}# this type of column cannot be asked about; turn it into text, a number or a date in a view"
    return "\n".join("# " + line.removeprefix("# ") for line in commented.splitlines()) + "\n"


def _number(seen: Seen | None) -> str:
    if seen is None or seen.low is None:
        return _ASK_NUMBER
    low, high = float(seen.low), float(seen.high)
    if seen.whole:
        width = max(1, math.ceil((high - low + 1) / 100))
        return (
            f'kind = "integer"\nlow = {int(low)}   # seen\nhigh = {int(high)}   # seen\nwidth = {width}\nclamp = true\n'
        )
    step = (high - low) / 10 or 1.0
    edges = sorted({float(f"{low + step * i:.6g}") for i in range(11)})
    return f'kind = "numeric"\nedges = {edges}   # seen\nclamp = true\n'


def _dates(seen: Seen | None) -> str:
    if seen is None or seen.low is None:
        return _ASK_DATE
    first, last = seen.low.year, seen.high.year
    return f'kind = "date"\nlow = {first:04}-01-01   # seen\nhigh = {last:04}-12-31   # seen\nby = "month"\n'


def _category(seen: Seen | None) -> str:
    if seen is None:
        return _ASK_CATEGORY
    if seen.values is None:
        return (
            "# Too many different values to list. A name or an identifier? Such columns are better left out.\n"
            + _ASK_CATEGORY
        )
    return f'kind = "category"\nvalues = [{", ".join(map(_text, seen.values))}]   # seen\nother = "other"\n'


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
