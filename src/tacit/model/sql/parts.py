"""Parts of dates and times in SQL, hour(t), dayname(t), month(t), EXTRACT, date_trunc: the attributes that are them."""

from __future__ import annotations

from sqlglot import exp

from tacit.errors import InvalidQuery
from tacit.model.attribute import Part
from tacit.model.domain import Domain
from tacit.model.values import Days

_FUNCTIONS: dict[type[exp.Expr], Part] = {exp.Hour: "hour", exp.Month: "month", exp.Dayname: "weekday"}
_WORDS: dict[str, Part] = {"HOUR": "hour", "MONTH": "month"}
_TRUNCATED = (exp.DateTrunc, exp.TimestampTrunc)
_NUMBERED = (
    "WEEKDAY",
    "DOW",
    "DAYOFWEEK",
    "ISODOW",
)  # SQL counts days from Sunday or Monday, 0 or 1: names are clearer


def with_attributes(statement: exp.Select, domain: Domain) -> exp.Select:
    """The statement with the declared attribute in the place of every part of a date or a time."""
    for node in statement.find_all(exp.Anonymous, exp.DayOfWeek, exp.DayOfWeekIso):
        shown, of = node.sql("duckdb"), node.find(exp.Column)
        if of is not None and shown.partition("(")[0] in _NUMBERED:
            raise InvalidQuery(f"{shown} cannot be asked; ask dayname({of.name}), which is Monday to Sunday.")
    if not any(isinstance(node, (*_FUNCTIONS, exp.Extract, *_TRUNCATED)) for node in statement.walk()):
        return statement
    made = statement.transform(lambda node: _attribute(node, domain), copy=True)
    assert isinstance(made, exp.Select)
    return made


def _attribute(node: exp.Expr, domain: Domain) -> exp.Expr:
    if isinstance(node, _TRUNCATED):
        return _truncated(node, domain)
    part = _FUNCTIONS.get(type(node))
    of = node.this if part is not None else None
    if isinstance(node, exp.Extract):
        part, of = _WORDS.get(node.name.upper()), node.expression
    if part is None and not isinstance(node, exp.Extract):
        return node
    shown = node.sql("duckdb")
    if part is None or not isinstance(of, exp.Column):
        raise InvalidQuery(f"{shown} cannot be asked; hour(t), dayname(t) and month(t) can, where they are declared.")
    for name, attribute in domain.items():
        if attribute.part == part and (attribute.of or "").lower() == of.name.lower():
            return exp.column(name, quoted=True)
    raise InvalidQuery(
        f'{shown} is not declared: the owner can declare an attribute with kind = "{part}" and of = "{of.name}".'
    )


def _truncated(node: exp.Expr, domain: Domain) -> exp.Expr:
    """date_trunc('month', day) of a column that is declared by month is that column."""
    unit, of = node.text("unit").lower(), node.this
    if isinstance(of, exp.Column):
        name = domain.resolve(of.name)
        values = domain[name].values
        if isinstance(values, Days) and values.by == unit:
            return exp.column(name, quoted=True)
        by = f"by {values.by}" if isinstance(values, Days) else f"as {domain[name].kind}"
        raise InvalidQuery(f"{node.sql('duckdb')} cannot be asked: {name} is declared {by}.")
    raise InvalidQuery(f"{node.sql('duckdb')} cannot be asked; date_trunc takes a unit and a declared column.")
