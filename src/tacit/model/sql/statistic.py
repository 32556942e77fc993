"""Statistics of a statement: functions of the whole table that are no sums over rows. Called by `sql.parse` alone.

Columns and values may come in any order that can be told apart, as the columns are declared and the values are plain:
STUMP(age, ill), QUANTILE_DISTANCE(age, 0.5, 30, 39), LARGEST_MEAN(pay, region, 0.05), MATCHING(role, 'donor',
'patient', blood), and what the owner registered, by its name: FULLEST_WARD(), or STATISTIC('fullest ward').
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sqlglot import exp

from tacit.errors import InvalidQuery
from tacit.model.ask import Stat
from tacit.model.expression import largest_mean, matching, quantile_distance, stump
from tacit.model.sql.reading import Reading, column, only, plain_value, stripped, text
from tacit.model.statistic import Unbound
from tacit.model.statistic_check import owned, owners


class Function(NamedTuple):
    """How a statistic is written, how many columns and values it takes at least and at most, and what it means."""

    form: str
    columns: tuple[int, int]
    values: tuple[int, int]
    make: Callable[[list[str], list[Any]], Unbound]


FUNCTIONS = {
    "STUMP": Function(
        "STUMP(age, ill), or STUMP(age, ward, 'east')",
        (2, 2),
        (0, 1),
        lambda names, values: stump(names[0], predicts=names[1], value=values[0] if values else None),
    ),
    "QUANTILE_DISTANCE": Function(
        "QUANTILE_DISTANCE(age, 0.5, 30, 39), with NULL for an end that is open",
        (1, 1),
        (3, 3),
        lambda names, values: quantile_distance(names[0], values[0], low=values[1], high=values[2]),
    ),
    "LARGEST_MEAN": Function(
        "LARGEST_MEAN(pay, region, 0.05)",
        (2, 16),
        (1, 1),
        lambda names, values: largest_mean(names[0], by=names[1:], smallest=values[0]),
    ),
    "MATCHING": Function(
        "MATCHING(role, 'donor', 'patient', blood)",
        (2, 2),
        (2, 2),
        lambda names, values: matching(names[0], values[0], values[1], on=names[1]),
    ),
}


def statistic(node: exp.Expr, read: Reading) -> Stat | None:
    """The statistic that a function of the select list asks for; None if it is none."""
    if not isinstance(node, exp.Anonymous) or not only(node, "this", "expressions"):
        return None
    name = str(node.this).upper()
    function, own = FUNCTIONS.get(name), {_spelled(known): known for known in owned}
    if function is None and name != "STATISTIC" and name not in own:
        return None
    names, values = list[str](), list[Any]()
    for given in map(stripped, node.expressions):
        if isinstance(given, exp.Column):
            names.append(column(given, read))
        else:
            values.append(None if isinstance(given, exp.Null) else plain_value(given))
    if name == "STATISTIC" and not values:
        raise InvalidQuery("STATISTIC is given a name, like STATISTIC('fullest ward').")
    if function is None:
        found = owners(own.get(name) or values.pop(0), values, read.domain)
        if names and tuple(names) != found.scope:
            raise InvalidQuery(f"{found.name!r} is about {', '.join(found.scope)}.")
        return Stat(found)
    fits = all(a <= len(some) <= b for some, (a, b) in ((names, function.columns), (values, function.values)))
    if not fits:
        raise InvalidQuery(f"{text(node)} is not answered here; write {function.form}.")
    if name == "STUMP" and not values and (labels := read.domain[names[1]]).size != 2 and read.domain[names[0]].ordered:
        one = exp.convert(labels.typical(0)).sql("duckdb")
        raise InvalidQuery(
            f"{names[1]} has {labels.size} values; name the one that is told from the others, like "
            f"STUMP({names[0]}, {names[1]}, {one})."
        )
    return Stat(function.make(names, values).bind(read.domain))


def _spelled(name: str) -> str:
    """A registered name as a function is written."""
    return "".join(c if c.isalnum() else "_" for c in name).upper()
