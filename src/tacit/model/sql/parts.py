"""Parts of dates and times in SQL, hour(t), dayname(t), month(t), EXTRACT: the attributes that are them.

Years and what date_trunc gives are groups of a date's own bins: `band` reads them.
"""

from __future__ import annotations

from sqlglot import exp

from tacit.errors import InvalidQuery
from tacit.model.attribute import TimePart
from tacit.model.domain import Domain
from tacit.model.sql.band import TRUNCATED
from tacit.model.values import Days

_FUNCTIONS: dict[type[exp.Expr], TimePart] = {exp.Hour: "hour", exp.Month: "month", exp.Dayname: "weekday"}
_WORDS: dict[str, TimePart] = {"HOUR": "hour", "MONTH": "month"}
_NUMBERED = (
    "WEEKDAY",
    "DOW",
    "DAYOFWEEK",
    "ISODOW",
)  # SQL counts days from Sunday or Monday, 0 or 1: names are clearer
_TO_DECLARE = 'the owner can declare an attribute with kind = "{}" and of = "{}"'
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In)


def with_attributes(statement: exp.Select, domain: Domain) -> exp.Select:
    """The statement with the declared attribute in the place of every part of a date or a time."""
    for node in statement.find_all(exp.Anonymous, exp.DayOfWeek, exp.DayOfWeekIso):
        shown, of = node.sql("duckdb"), node.find(exp.Column)
        if of is not None and shown.partition("(")[0] in _NUMBERED:
            if _declared("weekday", of.name, domain) is not None:
                raise InvalidQuery(f"{shown} cannot be asked; ask dayname({of.name}), which is Monday to Sunday.")
            raise InvalidQuery(
                f"{shown} cannot be asked, and dayname({of.name}), which is Monday to Sunday, is not declared: "
                f"{_TO_DECLARE.format('weekday', of.name)}."
            )
    read = (*_FUNCTIONS, exp.Extract, *TRUNCATED, exp.Cast)
    if not any(isinstance(node, read) or _is_date_part(node) for node in statement.walk()):
        return statement
    made = statement.transform(lambda node: _attribute(node, domain), copy=True)
    assert isinstance(made, exp.Select)
    return made


def _attribute(node: exp.Expr, domain: Domain) -> exp.Expr:
    if _is_date_part(node):
        unit, of = node.expressions
        return _attribute(exp.Extract(this=exp.var(unit.name.upper()), expression=of), domain)
    if isinstance(node, exp.Cast) and node.to.this == exp.DType.DATE:
        return _day(node, domain)
    if isinstance(node, TRUNCATED):
        return _truncated(node, domain)
    part = _FUNCTIONS.get(type(node))
    of = node.this if part is not None else None
    if isinstance(node, exp.Extract):
        if node.name.upper() == "YEAR":
            return node
        part, of = _WORDS.get(node.name.upper()), node.expression
    if part is None and not isinstance(node, exp.Extract):
        return node
    shown = node.sql("duckdb")
    if part is None or not isinstance(of, exp.Column):
        raise InvalidQuery(
            f"{shown} cannot be asked; year(t), hour(t), dayname(t) and month(t) can, where they are declared."
        )
    name = _declared(part, of.name, domain)
    if name is None:
        raise InvalidQuery(f"{shown} is not declared: {_TO_DECLARE.format(part, of.name)}.")
    return exp.column(name, quoted=True)


def _declared(part: TimePart, of: str, domain: Domain) -> str | None:
    """The attribute that is a part of a column's dates or times, if one is declared."""
    given = ((name, attribute) for name, attribute in domain.items() if attribute.part == part)
    return next((name for name, attribute in given if (attribute.of or "").lower() == of.lower()), None)


def _is_date_part(node: exp.Expr) -> bool:
    """date_part('year', d), which is EXTRACT(year FROM d)."""
    named = isinstance(node, exp.Anonymous) and node.name.lower() in ("date_part", "datepart")
    return named and len(node.expressions) == 2 and node.expressions[0].is_string


def _day(node: exp.Cast, domain: Domain) -> exp.Expr:
    """A date as a date is itself: tools write CAST(date_trunc('month', d) AS DATE)."""
    if isinstance(node.this, TRUNCATED):
        return _truncated(node.this, domain)
    dates = {name.lower() for name, attribute in domain.items() if isinstance(attribute.values, Days)}
    return node.this if isinstance(node.this, exp.Column) and node.this.name.lower() in dates else node


def _truncated(node: exp.Expr, domain: Domain) -> exp.Expr:
    """date_trunc('month', d) of a column by month is that column. In a comparison it is a day, the first of a month."""
    of, parent = node.this, node.parent
    while isinstance(parent, exp.Paren | exp.Cast):
        parent = parent.parent
    if not isinstance(of, exp.Column) or isinstance(parent, _COMPARISONS):
        return node
    values = domain[domain.resolve(of.name)].values
    same = isinstance(values, Days) and values.by == node.text("unit").lower()
    return exp.column(domain.resolve(of.name), quoted=True) if same else node
