"""Conditions of a statement: comparisons of declared columns with plain values. Called by `sql.parse` alone."""

from __future__ import annotations

import fnmatch
import glob
import re
from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
from sqlglot import exp

from tacit.errors import InvalidQuery
from tacit.model.ask import GroupBy
from tacit.model.bands import by_label
from tacit.model.expression import All, Among, Between, Compare, Comparison, Expression, Not
from tacit.model.query import Query
from tacit.model.sql.band import (
    AmongPlaces,
    banded,
    between,
    check_cells,
    checked_label,
    compare,
    edge_value,
    equal,
    missing,
)
from tacit.model.sql.idiom import instead_of
from tacit.model.sql.reading import (
    COMPARISONS,
    VALUE_WORK,
    Grouped,
    Reading,
    choice,
    column,
    only,
    plain_value,
    start_of,
    stripped,
    text,
)
from tacit.model.values import Listed, Value

MAX_PATTERN = 100  # characters of a LIKE pattern
MAX_MATCHED = 1_000_000  # characters of patterns that a statement holds against listed values, in all
_MOST_TRIED = 2**23  # values that the conditions of a CASE are tried on, one condition after the other
_MIRRORED: dict[Comparison, Comparison] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True)
class Rounded:
    """A value that may be moved to the nearest edge: ROUND(23)."""

    value: Value


def condition(node: exp.Expr, read: Reading) -> Expression:
    """The expression that a condition stands for."""
    if isinstance(node, exp.Paren):
        return condition(node.this, read)
    if isinstance(node, exp.Not):
        return Not(condition(node.this, read))
    if isinstance(node, exp.And | exp.Or):
        # A long chain is a left-deep tree: flattened, so that a thousand conditions do not recurse.
        parts = tuple(_attempted(part, read) for part in node.flatten())
        return All(parts) if isinstance(node, exp.And) else Not(All(tuple(Not(part) for part in parts)))
    if isinstance(node, exp.Boolean):
        return All(()) if node.this else Not(All(()))
    if isinstance(node, exp.Column):
        name = column(node, read)
        if read.domain[name].kind != "boolean":
            raise InvalidQuery(f"{name} is not true or false; compare it with a value.")
        return Among(name, (True,))
    return _comparison(node, read)


def _attempted(node: exp.Expr, read: Reading) -> Expression:
    """A part of a condition; what is wrong with it is said with all the other mistakes."""
    try:
        return condition(node, read)
    except InvalidQuery as refusal:
        read.refuse(refusal.sentence, start_of(node) if refusal.at is None else refusal.at)
        return All(())


def checked(node: exp.Expr, read: Reading) -> Expression:
    """The expression of a condition, with everything said that is wrong with any part of it."""
    found = condition(node, read)
    try:
        read.bind(found)
    except InvalidQuery as refusal:
        known = len(read.mistakes)
        _check_each(node, read)
        if len(read.mistakes) == known:  # the parts are right, and not what they are together
            read.refuse(refusal.sentence, start_of(node))
    return found


def _check_each(node: exp.Expr, read: Reading) -> None:
    while isinstance(node, exp.Paren | exp.Not):
        node = node.this
    if isinstance(node, exp.And | exp.Or):
        for part in node.flatten():
            _check_each(part, read)
    else:
        with read.attempt(node):
            condition(node, read).bind(read.domain)


def _comparison(node: exp.Expr, read: Reading) -> Expression:
    if node.find(exp.Select):
        raise InvalidQuery(
            f"{text(node)} is not a condition that can be asked: WHERE compares declared columns with plain values. "
            "Sub-selects stand in FROM, or in the place of a number beside released values."
        )
    found = _of_groups(node, read)
    if found is not None:
        return found
    for side in (node.args.get("this"), node.args.get("expression")):
        if isinstance(side, exp.Expr) and (instead := instead_of(side)):
            raise InvalidQuery(instead)
    if isinstance(node, exp.EQ | exp.NEQ):
        name, value, _ = _sides(node, read)
        same = _in_bin(name, value.value, read) if isinstance(value, Rounded) else Among(name, (value,))
        return same if isinstance(node, exp.EQ) else Not(same)
    if type(node) in COMPARISONS:
        name, value, mirrored = _sides(node, read)
        sign = COMPARISONS[type(node)]
        return _compare(name, _MIRRORED[sign] if mirrored else sign, value, read)
    if isinstance(node, exp.Between) and only(node, "this", "low", "high"):
        name = column(node.this, read)
        low, high = (_maybe_rounded(node.args[end]) for end in ("low", "high"))
        first, last = _compare(name, ">=", low, read), _compare(name, "<=", high, read)
        return Between(name, first.value, last.value, last.operator)
    if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
        return Among(column(node.this, read), tuple(plain_value(item) for item in node.expressions))
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return Among(column(node.this, read), (None,))
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean):
        name = column(node.this, read)  # IS TRUE is false, not unknown, where the value is missing
        return All((Among(name, (bool(node.expression.this),)), Not(Among(name, (None,)))))
    if isinstance(node, exp.Like | exp.ILike | exp.Escape):
        return _like(node, read)
    raise InvalidQuery(
        f"{text(node)} is not a condition that can be asked; use =, <>, <, <=, >, >=, BETWEEN, IN, LIKE, "
        "IS NULL, AND, OR and NOT on the declared columns."
    )


def _of_groups(node: exp.Expr, read: Reading) -> Expression | None:
    """A comparison of groups of a column's values: YEAR(d) = 2022, date_trunc('month', d) IN (…)."""
    if isinstance(node, exp.EQ | exp.NEQ) or type(node) in COMPARISONS:
        return _group_and_value(node, read)
    group = grouping(node.this, read) if isinstance(node, exp.Between | exp.In | exp.Is) else None
    if group is None:
        return None
    if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
        return equal(group, [plain_value(item) for item in node.expressions], read)
    if isinstance(node, exp.Between) and only(node, "this", "low", "high"):
        return between(group, plain_value(node.args["low"]), plain_value(node.args["high"]), read)
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return missing(group)
    return None


def _group_and_value(node: exp.Expr, read: Reading) -> Expression | None:
    value, mirrored = node.expression, False
    group = grouping(node.this, read)
    if group is None:
        group, value, mirrored = grouping(node.expression, read), node.this, True
    if group is None:
        return None
    if type(node) in COMPARISONS:
        sign = COMPARISONS[type(node)]
        return compare(group, _MIRRORED[sign] if mirrored else sign, plain_value(value), read)
    same = equal(group, [plain_value(value)], read)
    return same if isinstance(node, exp.EQ) else Not(same)


def grouping(node: exp.Expr, read: Reading) -> GroupBy | None:
    """The column and the groups of its values that an expression is, by its wider bins or a CASE; None for others.

    They are read once, wherever in the statement the same words stand: of a wide attribute there may be many.
    """
    if isinstance(node, exp.Column | exp.Literal) or read.groups:
        return banded(node, read) or _cased(node, read)
    known = read.grouped.get(node)
    if known is None:
        said, mistakes = len(read.notes), len(read.mistakes)
        group, refusal = None, None
        try:
            group = banded(node, read) or _cased(node, read)
        except InvalidQuery as error:
            refusal = error
        known = Grouped(group, refusal, tuple(read.notes[said:]))
        if len(read.mistakes) == mistakes:  # a mistake belongs to whoever reads it
            read.grouped[node] = known
    else:
        read.notes.extend(note for note in known.notes if note not in read.notes)
    if known.refusal is not None:
        raise known.refusal
    return known.group


def _cased(node: exp.Expr, read: Reading) -> GroupBy | None:
    """CASE WHEN age < 20 THEN 'young' ELSE 'old' END: a value has the label of the first branch that it meets.

    A comparison with a missing value is not true, so that ELSE has it, as in SQL.
    """
    written = choice(node)
    if written is None:
        return None
    labels = [_label(then) for _, then in written.branches]
    default = None if written.otherwise is None else _label(written.otherwise)
    if len({isinstance(label, str) for label in (*labels, default) if label is not None}) != 1:
        raise InvalidQuery(f"{text(node)} is nothing to group by: its labels are texts, or they are numbers.")
    tried = [condition(when, read) for when, _ in written.branches]
    met = [one.truth(read.domain, True) for one in tried]
    names = sorted({name for query in met for name in query.scope})
    if not names:
        raise InvalidQuery(f"{text(node)} is the same for every row, so there is nothing to group by.")
    if len(names) > 1:
        raise InvalidQuery(
            f"{text(node)} is about {' and '.join(names)}, and a CASE to group by is about one column. Ask for each of "
            "its groups, like COUNT(*) FILTER (WHERE …), or group by the columns themselves."
        )
    (name,) = names
    attribute = read.domain[name]
    check_cells(attribute.size)
    if len(met) * attribute.size > _MOST_TRIED:
        raise InvalidQuery(f"{text(node):.60} tries {len(met):,} conditions on {attribute.size:,} values, too many.")
    read.meter.takes((len(met) + VALUE_WORK) * attribute.size)
    left = np.ones(attribute.size, dtype=np.bool_)
    found = dict[str | int | float | None, list[int]]()
    for one, query, label in zip(tried, met, labels, strict=True):
        if attribute.other_index is not None and left[attribute.other_index]:
            _note_undecided(one, query, name, read)
        holds = left & (query.table([name], [attribute.size]) > 0)
        found.setdefault(label, []).extend(np.flatnonzero(holds).tolist())
        left &= ~holds
    found.setdefault(default, []).extend(np.flatnonzero(left).tolist())
    numbers = [label for label in found if isinstance(label, int | float)]
    if numbers:  # in their own order
        found = {label: found[label] for label in (*sorted(numbers), None) if label in found}
    return GroupBy(name, text(node), by_label(name, found))


def _note_undecided(when: Expression, met: Query, name: str, read: Reading) -> None:
    """Say of values that are declared as other, of which a condition is neither true nor false, that it is not met."""
    attribute = read.domain[name]
    tables = [query.table([name], [attribute.size]) for query in (met, when.truth(read.domain, False))]
    if not any(table[attribute.other_index] for table in tables):
        note = f"of {name} that is {attribute.other} no comparison is known: it counts as not met"
        if note not in read.notes:
            read.notes.append(note)


def _label(node: exp.Expr) -> str | int | float | None:
    """The label of a group as a CASE gives it; None for NULL."""
    return None if isinstance(node, exp.Null) else checked_label(plain_value(stripped(node)))


def _like(node: exp.Expr, read: Reading) -> Expression:
    escape = ""
    if isinstance(node, exp.Escape):
        mark = plain_value(node.expression)
        if not isinstance(mark, str) or len(mark) != 1:
            raise InvalidQuery("ESCAPE takes one character, like ESCAPE '!'.")
        node, escape = node.this, mark
    if not isinstance(node, exp.Like | exp.ILike) or not only(node, "this", "expression", "negate"):
        raise InvalidQuery(f"{text(node)} is not a condition that can be asked; write region LIKE 'n%'.")
    name, pattern = column(node.this, read), plain_value(node.expression)
    attribute = read.domain[name]
    if not isinstance(attribute.values, Listed) or not isinstance(attribute.values.values[0], str):
        raise InvalidQuery(f"LIKE is for listed text; {name} takes {attribute.takes}.")
    if not isinstance(pattern, str) or len(pattern) > MAX_PATTERN:
        raise InvalidQuery(f"LIKE takes a text of at most {MAX_PATTERN} characters.")
    read.matched.append(attribute.bins * (len(pattern) + 1))
    if sum(read.matched) > MAX_MATCHED:
        raise InvalidQuery(f"the patterns are too many for the {attribute.bins:,} values of {name}; list some with IN.")
    fold = str.lower if isinstance(node, exp.ILike) else str
    wanted, listed = _pattern(fold(pattern), fold(escape)), attribute.values.values
    matched = frozenset(i for i, value in enumerate(listed) if wanted.match(fold(str(value))))
    found = AmongPlaces(name, matched, frozenset(range(attribute.bins)) - matched)  # other values are not known by text
    return Not(found) if node.args.get("negate") else found


def _pattern(pattern: str, escape: str) -> re.Pattern[str]:
    """A LIKE pattern for `re`, by way of a file name's: since Python 3.11 no such pattern takes long."""
    found, letters = "", iter(pattern)
    for letter in letters:
        if escape and letter == escape:
            following = next(letters, None)
            if following is None:
                raise InvalidQuery("the pattern of LIKE ends with its ESCAPE character.")
            found += glob.escape(following)
        else:
            found += {"%": "*", "_": "?"}.get(letter) or glob.escape(letter)
    return re.compile(fnmatch.translate(found))


def _compare(name: str, operator: Comparison, value: Value | Rounded, read: Reading) -> Compare:
    if not isinstance(value, Rounded):
        return Compare(name, operator, value)
    attribute = read.domain[name]
    if isinstance(attribute.values, Listed):
        raise InvalidQuery(f"{name} has no order, so nothing is rounded to its edges.")
    point = attribute.point(name, value.value)
    cut = point + (attribute.values.whole and operator in ("<=", ">"))  # the first point beyond
    at = bisect_left(attribute.values.starts, cut)
    near = min((max(at - 1, 0), at), key=lambda i: abs(attribute.edge(i) - cut))  # of two that are as near, the lower
    found: Comparison = "<" if operator.startswith("<") else ">="
    if attribute.edge(near) != cut or (operator in ("<=", ">") and not attribute.values.whole):
        shown = attribute.values.show(attribute.edge(near))
        asked = value.value if isinstance(value.value, str) else f"{value.value:.15g}"
        read.notes.append(f"{name} {found} {shown} stands for {name} {operator} {asked}")
    return Compare(name, found, edge_value(attribute, near))


def _in_bin(name: str, value: Value, read: Reading) -> Expression:
    """The whole bin that holds a value, where the statement allows it."""
    attribute = read.domain[name]
    index = attribute.locate(name, value)
    if isinstance(attribute.values, Listed) or index >= attribute.bins:
        return Among(name, (value,))
    if not (attribute.values.whole and attribute.edge(index + 1) - attribute.edge(index) == 1):
        read.notes.append(f"the bin {attribute.label(index)} of {name} stands for {name} = {value}")
    low, high = edge_value(attribute, index), edge_value(attribute, index + 1)
    return All((Compare(name, ">=", low), Compare(name, "<", high)))


def _sides(node: exp.Expr, read: Reading) -> tuple[str, Value | Rounded, bool]:
    """The column and the value of a comparison, and whether the value stands first."""
    left, right = node.this, node.expression
    if isinstance(right, exp.Column) and not isinstance(left, exp.Column):
        return column(right, read), _maybe_rounded(left), True
    return column(left, read), _maybe_rounded(right), False


def _maybe_rounded(node: exp.Expr) -> Value | Rounded:
    if isinstance(node, exp.Round) and only(node, "this"):
        return Rounded(plain_value(node.this))
    return plain_value(node)
