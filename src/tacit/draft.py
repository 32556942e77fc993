"""`tacit init`: a first, commented configuration from the names and types of a table's columns.

Column names and types are taken to be public. Their values are not: they are looked at only when the owner says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from tacit.load.columns import Column
from tacit.load.peek import Seen
from tacit.model.domain import toml_key, toml_value

_HEAD = """\
# What Tacit may be asked about {shown}. Fill in what is missing, then:  tacit ask "SELECT COUNT(*) FROM data"

[data]
source = {source}
{table}# person = "patient_id"  # whose row it is, where a person may have several; then their privacy is protected
# rows_per_person = 3    # of each person's rows at most so many are counted, and the noise is so many times as wide

[budget]               # ONE budget for everything that will ever be answered from this table
epsilon = 1.0          # smaller is more private; 1.0 is a common choice
delta = 1e-9           # well below 1/rows; 0 for pure differential privacy

[session]
ledger = {ledger}      # records every charge and every answer; keep it as secret as the data, and never delete it
mechanism = "auto"     # auto | direct | histogram | iterative | median; `tacit plan` says what auto chooses
questions = 10000      # about how many are expected; direct: how many new questions share the budget
# hits = 5             # iterative, median: how many hard answers share the budget, if you know better than the plan
# warm = 0.8           # iterative: the share of the budget for the tables it starts from
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
    named = f"table = {toml_value(table)}\n" if table else ""
    head = _HEAD.format(shown=shown, source=toml_value(source), table=named, ledger=toml_value(ledger))
    parts = [_attribute(column, seen.get(column.name) if seen is not None else None) for column in columns]
    return head + (_PEEKED if seen is not None else "") + "\n" + "\n".join(parts)


def _attribute(column: Column, seen: Seen | None) -> str:
    title = f"[domain.{toml_key(column.name)}]\n"
    missing = 'missing = "unknown"   # seen: some rows have no value\n' if seen and seen.has_missing else ""
    if column.type in ("number", "decimal"):
        return title + _number(seen) + missing
    if column.type == "boolean":
        return title + 'kind = "boolean"\n' + missing
    if column.type in ("date", "timestamp"):
        return title + _dates(seen) + missing
    if column.type not in ("text", "empty"):
        return _commented(
            title, "This type of column cannot be asked about; make it text, a number or a date in a view."
        )
    if seen is not None and seen.values is None:
        return _commented(title + _ASK_CATEGORY, "Too many values to list. A name or an identifier is better left out.")
    return title + _category(seen) + missing


def _number(seen: Seen | None) -> str:
    if seen is None or seen.low is None:
        return _ASK_NUMBER
    low, high = float(seen.low), float(seen.high)
    if seen.whole:
        width = max(1, round(_round_step((high - low) / 40)))
        first, last = math.floor(low / width) * width, math.floor(high / width) * width + width - 1
        return f'kind = "integer"\nlow = {first}   # seen\nhigh = {last}   # seen\nwidth = {width}\nclamp = true\n'
    step = _round_step((high - low) / 10)
    edges = [float(f"{i * step:.12g}") for i in range(math.floor(low / step), math.floor(high / step) + 2)]
    return f'kind = "numeric"\nedges = {toml_value(edges)}   # seen\nclamp = true\n'


def _round_step(wanted: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that is at least `wanted`: round bounds say less than exact ones."""
    power = 10.0 ** math.floor(math.log10(wanted)) if wanted > 0 else 1.0
    return next(step * power for step in (1, 2, 5, 10) if step * power >= wanted)


def _dates(seen: Seen | None) -> str:
    if seen is None or seen.low is None:
        return _ASK_DATE
    first, last = seen.low.year, seen.high.year
    return (
        f'kind = "date"\nlow = {first:04}-01-01   # seen\nhigh = {last:04}-12-31   # seen\nby = "month"\nclamp = true\n'
    )


def _category(seen: Seen | None) -> str:
    if seen is None or seen.values is None:
        return _ASK_CATEGORY
    return f'kind = "category"\nvalues = {toml_value(list(seen.values))}   # seen\nother = "other"\n'


def _commented(text: str, why: str) -> str:
    return f"# {why}\n" + "".join(f"# {line}\n" for line in text.splitlines())
