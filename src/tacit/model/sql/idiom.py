"""What to write in the place of SQL that is not answered: the words of refusals. For the modules of `sql`."""

from __future__ import annotations

from sqlglot import exp

from tacit.model.sql.reading import text

_CUT_TEXT = (exp.Substring, exp.Left, exp.Right)
_OF_TEXT = "write {0} LIKE 'A%', or CASE WHEN {0} LIKE 'A%' THEN 'A' … END to group by it"
_TOTALS = "ask for totals in a statement of their own, which groups by fewer columns"
_BEGINNING = _OF_TEXT.format("a")
# By words that never reach the parser.
BY_WORD = {
    "OVER": "a share of all rows is COUNT(*) * 100.0 / (SELECT COUNT(*) FROM data), and ORDER BY sorts the groups",
    "QUALIFY": "HAVING chooses among the groups",
    "FETCH": "LIMIT 3 takes the first three",
    **dict.fromkeys(("ROLLUP", "CUBE", "GROUPING"), _TOTALS),
}
CALLED = {"LEFT": _BEGINNING, "RIGHT": _BEGINNING}  # these begin a join too


def instead_of(node: exp.Expr | None) -> str:
    """A refusal that says what works in the place of an expression; nothing where there is no such thing."""
    of = None if node is None else node.find(exp.Column)  # MAX() is of nothing
    if node is None or of is None:
        return ""
    name, called = text(of), node.name.upper() if isinstance(node, exp.Anonymous) else ""
    found = ""
    if isinstance(node, _CUT_TEXT):
        found = _OF_TEXT.format(name)
    elif isinstance(node, exp.TimeToStr | exp.ToChar):
        found = f"strftime({name}, '%Y-%m'), strftime({name}, '%Y') and date_trunc('month', {name}) are"
    elif isinstance(node, exp.Mode) or (isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.Mode)):
        found = f"SELECT {name}, COUNT(*) FROM data GROUP BY {name} ORDER BY COUNT(*) DESC LIMIT 1 is"
    elif isinstance(node, exp.Floor) and isinstance(node.this, exp.Div):
        found = f"{text(node)} * {text(node.this.expression)} is"
    elif isinstance(node, exp.RegrSlope):
        pair = f"({text(node.this)}, {text(node.expression)})"
        found = f"COVAR_POP{pair} / VAR_POP({text(node.expression)}) is"
    elif called == "IQR":
        found = f"QUANTILE_CONT({name}, 0.75) - QUANTILE_CONT({name}, 0.25) is"
    elif called in ("GEOMEAN", "GEOMETRIC_MEAN") or (isinstance(node, exp.AggFunc) and node.find(exp.Ln, exp.Log)):
        found = f"an aggregate is of a declared column as it stands; MEDIAN({name}) is answered, and needs no logarithm"
    return f"{text(node)} is not answered here: {found}." if found else ""
