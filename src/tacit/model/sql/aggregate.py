"""The values of a statement: COUNT, fractions, SUM, AVG, VARIANCE, CORR, quantiles. For `sql.statement` alone."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tacit.errors import InvalidQuery
from tacit.model.ask import (
    Aggregate,
    Column,
    Count,
    Covariance,
    Fraction,
    GroupBy,
    Mean,
    Quantile,
    Select,
    Sum,
    Variance,
)
from tacit.model.calculation import Belongs, Constant, Given, Operation, Outer
from tacit.model.clamped import clamped_ends
from tacit.model.derivation import Fold, Folded
from tacit.model.description import describe
from tacit.model.expression import All, Among, Expression, Not
from tacit.model.query import Query
from tacit.model.sql.condition import condition
from tacit.model.sql.group import check_size
from tacit.model.sql.reading import Reading, choice, column, finite, only, plain_value, stripped, text, uncast

# fmt: off
_CONDITIONS = (
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Is,
    exp.And, exp.Or, exp.Not, exp.Like, exp.ILike, exp.Escape,
)
# fmt: on
_ONE_COLUMN = "COUNT(DISTINCT …) takes one declared column."
_EXTREMES: dict[type[exp.Expr], float] = {exp.Min: 0.01, exp.Max: 0.99}  # and the share of a quantile that is near
# Functions that leave out NULL: of a CASE without ELSE they are those of the rows that meet its condition.
_OF_KNOWN = (
    exp.Count, exp.Sum, exp.Avg, exp.Median, exp.Quantile, exp.PercentileCont, exp.PercentileDisc, exp.Variance,
    exp.VariancePop, exp.Stddev, exp.StddevSamp, exp.StddevPop,
)  # fmt: skip

# Each function of the spread: whether it is about a sample, and whether its root is taken.
_SPREADS: dict[type[exp.Expr], tuple[bool, bool]] = {
    exp.Variance: (True, False),
    exp.VariancePop: (False, False),
    exp.Stddev: (True, True),
    exp.StddevSamp: (True, True),
    exp.StddevPop: (False, True),
}


# Each function of two columns: whether it is about a sample, and whether it is a correlation.
_PAIRS: dict[type[exp.Expr], tuple[bool, bool]] = {
    exp.CovarSamp: (True, False),
    exp.CovarPop: (False, False),
    exp.Corr: (False, True),
}
Valued = tuple[Aggregate | Quantile, float]  # what is asked, and a factor: 100 for a percentage


def aggregate(node: exp.Expr, where: Expression, read: Reading) -> Valued | None:
    """The value that a node asks for, about the rows of `where`, and a factor; None if it is none."""
    node = uncast(node)
    if isinstance(node, exp.Mul | exp.Div):
        return _arithmetic(node, where, read)
    if isinstance(node, exp.Filter) and isinstance(node.expression, exp.Where):
        if isinstance(node.this, exp.Filter):
            return None
        return aggregate(node.this, _both(where, condition(node.expression.this, read)), read)
    chosen = _narrowed(node)
    if chosen is not None:
        of, met = chosen
        return aggregate(of, _both(where, condition(met, read)), read)
    if isinstance(node, exp.Count) and only(node, "this", "big_int"):
        return _count(node.this, where, read)
    if isinstance(node, exp.CountIf) and only(node, "this"):
        return _counted(_both(where, condition(node.this, read)), read)
    if isinstance(node, exp.Sum | exp.Avg) and only(node, "this"):
        return _sum_or_mean(node, where, read)
    if type(node) in _SPREADS and only(node, "this"):
        return _spread(node, where, read)
    if type(node) in _PAIRS and only(node, "this", "expression"):
        sample, correlation = _PAIRS[type(node)]
        names = column(stripped(node.this), read), column(stripped(node.expression), read)
        read.weighs(*names)
        return Covariance(read.domain, names, read.bind(where), sample, correlation), 1.0
    if type(node) in _EXTREMES:
        raise InvalidQuery(_extreme(node, read))
    return _quantile(node, where, read)


def _arithmetic(node: exp.Mul | exp.Div, where: Expression, read: Reading) -> Valued | None:
    """A fraction of two counts, or a value times a number: COUNT(*) FILTER (WHERE a) * 100.0 / COUNT(*).

    Any other quotient is worked out from what its sides are answered.
    """
    if isinstance(node, exp.Mul):
        number, other = (node.this, node.expression) if _is_number(node.this) else (node.expression, node.this)
        value = aggregate(other, where, read) if _is_number(number) else None
        if value is None or isinstance(value[0], Quantile):
            return None
        return _times(value, number)
    top, bottom = aggregate(node.this, where, read), aggregate(node.expression, where, read)
    if top is None or bottom is None or bottom[1] != 1:
        return None
    if not isinstance(top[0], Count) or not isinstance(bottom[0], Count):
        return None
    some, all_rows = top[0].query, bottom[0].query
    if some & all_rows != some:
        return None
    return Fraction(some, all_rows), top[1]


def _extreme(node: exp.Expr, read: Reading) -> str:
    """Why a least or largest value is not answered, and the quantile that is, where the column has an order."""
    said = f"{text(node)} is decided by single rows, so it is not answered"
    if not isinstance(node.this, exp.Column):
        return f"{said}; QUANTILE_CONT takes a declared column, and a share like {_EXTREMES[type(node)]}."
    name = column(node.this, read)
    if not read.domain[name].ordered:
        return f"{said}; SELECT DISTINCT {text(node.this)} FROM data lists the declared values."
    return f"{said}; ask for a quantile, like QUANTILE_CONT({text(node.this)}, {_EXTREMES[type(node)]})."


def _count(inner: exp.Expr, where: Expression, read: Reading) -> Valued | None:
    if isinstance(inner, exp.Star) and only(inner):
        return _counted(where, read)
    if isinstance(inner, exp.Column):
        return _counted(_both(where, Not(Among(_counted_column(inner, read), (None,)))), read)
    if isinstance(inner, exp.Literal | exp.Boolean):
        return _counted(where, read)
    return None


def _sum_or_mean(node: exp.Sum | exp.Avg, where: Expression, read: Reading) -> Valued | None:
    mean = isinstance(node, exp.Avg)
    inner = _without_missing(stripped(node.this), mean=mean)
    if _is_number(inner):
        if mean:
            raise InvalidQuery(f"the mean of {text(inner)} is {text(inner)}; for a share, write ELSE 0.")
        return _times(_counted(where, read), inner)
    case = choice(inner)
    if case is not None:  # the mean of numbers and zeros; `_narrowed` has made something else of all others
        ((met, then),) = case.branches
        if not _is_number(then):
            return None
        return _times(_part(_both(where, condition(met, read)), where, read), then)
    if isinstance(inner, _CONDITIONS):
        true = condition(inner, read)  # where it is neither true nor false, a mean leaves the row out
        known = _both(where, Not(All((Not(true), true))))
        some = _both(where, true)
        return _part(some, known, read) if mean else _counted(some, read)
    if not isinstance(inner, exp.Column):
        return None
    name = column(inner, read)
    if read.domain[name].kind == "boolean":
        some = _both(where, Among(name, (True,)))
        known = _both(where, Among(name, (True, False)))
        return _part(some, known, read) if mean else _counted(some, read)
    read.weighs(name)
    rows = read.bind(where)
    return (Mean(read.domain, name, rows) if mean else Sum(read.domain, name, rows)), 1.0


def _without_missing(inner: exp.Expr, *, mean: bool) -> exp.Expr:
    """What COALESCE(a, 0) is in a sum: a, as missing values add nothing to it. In a mean they count."""
    column = inner.this if isinstance(inner, exp.Coalesce) and len(inner.expressions) == 1 else None
    if not isinstance(column, exp.Column) or not _is(inner.expressions[0], 0):
        return inner
    if mean:
        raise InvalidQuery(f"the mean of {text(inner)} is not answered here; write SUM({text(column)}) / COUNT(*).")
    return column


def _spread(node: exp.Expr, where: Expression, read: Reading) -> Valued | None:
    """VARIANCE(a), VAR_SAMP(a), VAR_POP(a), STDDEV(a), STDDEV_SAMP(a), STDDEV_POP(a)."""
    inner = stripped(node.this)
    if not isinstance(inner, exp.Column):
        return None
    name, (sample, root) = column(inner, read), _SPREADS[type(node)]
    read.weighs(name)
    return Variance(read.domain, name, read.bind(where), sample, root), 1.0


def _quantile(node: exp.Expr, where: Expression, read: Reading) -> Valued | None:
    """MEDIAN(a), QUANTILE(a, 0.9), QUANTILE_CONT(a, 0.9), PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY a)."""
    if isinstance(node, exp.Median) and only(node, "this"):
        return Quantile(read.domain, column(node.this, read), 0.5, read.bind(where)), 1.0
    turned = False
    if isinstance(node, exp.Quantile) and only(node, "this", "quantile"):
        by, share = node.this, node.args["quantile"]
    elif isinstance(node, exp.PercentileCont | exp.PercentileDisc) and only(node, "this", "expression"):
        by, share = node.this, node.expression
    elif isinstance(node, exp.WithinGroup) and isinstance(node.this, exp.PercentileCont | exp.PercentileDisc):
        order = node.expression.expressions if isinstance(node.expression, exp.Order) else []
        if len(order) != 1 or not only(node.this, "this"):
            return None
        by, share, turned = order[0].this, node.this.this, bool(order[0].args.get("desc"))
    else:
        return None
    name = column(by, read)
    number = plain_value(share) if isinstance(share, exp.Expr) else None
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 < number < 1:
        raise InvalidQuery("a quantile is a share above 0 and below 1, like QUANTILE_CONT(age, 0.9).")
    q = round(1 - number, 15) if turned else float(number)
    return Quantile(read.domain, name, q, read.bind(where)), 1.0


def _narrowed(node: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """What a function of a CASE or an IF is: the function of what THEN gives, and the condition of its rows.

    That needs the other rows to count for nothing. NULL does so everywhere, and 0 does in a sum.
    """
    found = choice(node.this) if isinstance(node, _OF_KNOWN) and isinstance(node.this, exp.Expr) else None
    if found is None:
        return None
    if len(found.branches) != 1:
        raise InvalidQuery(
            f"{text(node)} is not answered here: a CASE inside an aggregate has one WHEN. Ask for each with "
            "FILTER (WHERE …), and add them up."
        )
    zero = _is(found.otherwise, 0)
    if zero and isinstance(node, exp.Avg):
        return None  # 0 counts there: a share, or a sum over the number of rows
    if found.otherwise is not None and not (zero and isinstance(node, exp.Sum)):
        instead = "leave out ELSE" + (", or write ELSE 0" if isinstance(node, exp.Sum | exp.Avg) else "")
        raise InvalidQuery(f"{text(node)} is not answered here: what ELSE gives would count too; {instead}.")
    ((met, then),) = found.branches
    made = node.copy()
    made.set("this", then.copy())
    return made, met


def mean_with_zeros(node: exp.Expr, read: Reading) -> exp.Expr | None:
    """AVG(CASE WHEN c THEN a ELSE 0 END) as it is worked out: the sum of a over c by the number of all rows."""
    rows = node.expression.this if isinstance(node, exp.Filter) and isinstance(node.expression, exp.Where) else None
    mean = node if rows is None else node.this
    found = choice(mean.this) if isinstance(mean, exp.Avg) and only(mean, "this") else None
    if found is None or len(found.branches) != 1 or not _is(found.otherwise, 0):
        return None
    ((met, then),) = found.branches
    if not isinstance(stripped(then), exp.Column):
        return None
    name = column(stripped(then), read)
    if read.domain[name].extras:
        raise InvalidQuery(
            f"{text(mean)} is not answered here, as {name} has no number in some rows: write SUM({text(then)}) FILTER "
            f"(WHERE {text(met)}) over the rows that are meant, like COUNT({text(then)}) or COUNT(*)."
        )
    some = met if rows is None else exp.and_(rows, met)
    total = exp.Filter(this=exp.Sum(this=then.copy()), expression=exp.Where(this=some.copy()))
    every: exp.Expr = exp.Count(this=exp.Star(), big_int=True)
    if rows is not None:
        every = exp.Filter(this=every, expression=exp.Where(this=rows.copy()))
    return exp.Div(this=total, expression=every)


def _times(value: Valued, number: exp.Expr) -> Valued:
    return value[0], finite(value[1] * finite(plain_value(number)))


def _is(node: object, number: int) -> bool:
    return isinstance(node, exp.Literal) and _is_number(node) and plain_value(node) == number


def _is_number(node: object) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string


def _counted(where: Expression, read: Reading) -> Valued:
    return Count(read.bind(where), clamped_ends(where, read.domain)), 1.0


def _part(some: Expression, given: Expression, read: Reading) -> Valued:
    return Fraction(read.bind(some), read.bind(given)), 1.0


def _both(a: Expression, b: Expression) -> Expression:
    return b if a == All(()) else All((a, b))


def _counted_column(node: exp.Expr, read: Reading) -> str:
    """The column whose values are counted. Often one that tells persons apart is tried, which nobody can ask about."""
    try:
        return column(node, read)
    except InvalidQuery as refusal:
        if refusal.suggestion is not None:
            raise
        raise InvalidQuery(
            f"{refusal.sentence} COUNT(*) counts rows, which are persons where each has one row; how many persons "
            "there are otherwise is not answered."
        ) from None


def distinct_values(node: exp.Distinct, where: Expression, groups: Sequence[GroupBy], read: Reading) -> Folded:
    """How many declared values of an attribute have a row: from the table of the attribute, for each group."""
    if len(node.expressions) != 1 or not only(node, "expressions"):
        raise InvalidQuery(_ONE_COLUMN)
    inner = stripped(node.expressions[0])
    some = choice(inner)
    if some is not None and len(some.branches) == 1 and some.otherwise is None:  # CASE WHEN c THEN a END
        ((met, inner),) = some.branches
        where = _both(where, condition(met, read))
    if not isinstance(inner, exp.Column):
        raise InvalidQuery(_ONE_COLUMN)
    name = _counted_column(inner, read)
    attribute = read.domain[name]
    if name in (group.name for group in groups):
        raise InvalidQuery(f"COUNT(DISTINCT {name}) is 1 or 0 in each group by {name}.")
    if attribute.other is not None:
        raise InvalidQuery(
            f"{name} has values beyond those that are listed, so they cannot be counted; SELECT DISTINCT lists "
            "the declared ones."
        )
    by = (*groups, GroupBy(name, name))
    check_size(by, read)
    counted = Select(read.domain, (Column(Count(read.bind(where)), "rows"),), by)
    there: list[Outer] = [Operation("<=", (Constant(1), Given(len(by))))]
    if attribute.missing_index is not None:
        missing = Query.among(read.domain, name, [attribute.missing_index])
        known = Query.among(read.domain, name, range(attribute.bins))
        there.append(Belongs(known, missing, f"{name} is known"))
    fold = Fold("count", None, Operation("and", tuple(there)))
    said = f"how many values of {name} have a row"
    if where != All(()):
        said += f" where {describe(read.bind(where), read.domain)}"
    return Folded(counted, tuple(range(len(groups))), (fold,), said=said)
