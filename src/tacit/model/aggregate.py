"""One number about the rows of a condition: count, fraction, sum, mean, variance. Public words and arithmetic.

An aggregate is bound to the domain, and refused if it must be, when it is made. It knows what it is called in words,
the `name` or the `names` of the attributes with whose values it works, if there are any, and its formula: which
weighted counts it is made of, and how they are put together. To add an aggregate is to add a class here, and an entry
to each parser that should read it. JSON has two: a server reads it (`serve/forms.py`), and a client writes it
(`client/message.py`).

Everything is post-processing of noisy counts: a bug here costs accuracy, never privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tacit.errors import InvalidQuery
from tacit.model import span
from tacit.model.description import describe
from tacit.model.domain import Domain
from tacit.model.factor import MAX_TABLE, Factor
from tacit.model.facts import joined
from tacit.model.formula import IF_ANY, IF_TWO, Figure, Formula, Middles, Weighed, check_unweighted, ratio, share
from tacit.model.query import Query, plain_product
from tacit.model.values import Days
from tacit.model.workload import check

RANGE_SHARE = 0.1  # of the budget, for the release of all ranges of one attribute
EVERYONE = Query.constant(everyone=True)
_MAY_BE_ZERO = "nothing is guaranteed where the count that is divided by may be 0"


@dataclass(frozen=True)
class Count:
    """How many rows meet a condition, or the sum of their weights. `notes` are about how the condition was read."""

    query: Query
    notes: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        check_condition(self.query)

    @property
    def where(self) -> Query:
        return self.query

    @property
    def formula(self) -> Formula:
        return Formula((Weighed(self.query),), lambda parts, _: parts[0], limits=lambda rows: (0, rows))

    def words(self, domain: Domain) -> str:
        return describe(self.query, domain)


@dataclass(frozen=True)
class Fraction:
    """The share of the rows of `given` that also meet `where`."""

    where: Query
    given: Query = EVERYONE
    formula: Formula = field(init=False, compare=False, repr=False)
    by_rest: Formula | None = field(init=False, compare=False, repr=False)
    telling: Factor | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        for condition in (self.where, self.given):
            check_condition(condition)
            check_unweighted(condition)
        if self.given.is_constant and not self.given.is_everyone:
            raise InvalidQuery("no row can meet the condition below the line, so there is no fraction.")
        some = Query.all([self.where, self.given])
        telling = _telling(some, self.given)
        rest = None if telling is None else self._others([telling])
        object.__setattr__(self, "telling", telling)
        object.__setattr__(self, "where", some)
        object.__setattr__(self, "formula", self._of(self.given, ratio))
        object.__setattr__(self, "by_rest", None if rest is None else self._of(rest, share))

    @cached_property
    def by_others(self) -> Formula | None:
        """By the rest of the rows, whatever tells them apart: in a group it may be one condition. None if too large."""
        if self.by_rest is not None or self.certain is not None:
            return self.by_rest
        with suppress(InvalidQuery):  # they tie too many attributes together
            return self._of(self._others(_beyond(self.where, self.given)), share)
        return None

    def _others(self, told_by: Sequence[Factor]) -> Query:
        """The rows of `given` that do not meet all of these conditions."""
        return Query.all([Query.product(told_by, complement=True), self.given])

    def _of(self, other: Query, quotient: Callable[[Figure, Figure], Figure]) -> Formula:
        """By all rows of `given`; or by those that meet `where` and the rest, with a narrower bar: see `share`."""
        parts = (Weighed(self.where), Weighed(other))
        return Formula(parts, lambda parts, _: quotient(*parts), doubt=_MAY_BE_ZERO, limits=lambda _: (0, 1))

    @property
    def certain(self) -> float | None:
        """What it is whichever rows there are, if that is decided: 1 where all meet `where`, 0 where none can."""
        if self.where == self.given:
            return 1.0
        return 0.0 if self.where.is_constant else None

    def words(self, domain: Domain) -> str:
        among = "" if self.given.is_everyone else f", among {describe(self.given, domain)}"
        return f"the fraction of rows with {describe(self.where, domain)}{among}"


def _telling(some: Query, given: Query) -> Factor | None:
    """The condition on one attribute, which `given` says nothing of, by which some rows are told from all of them.

    It depends on which rows they are, and not on how they were written. None where there is no such one.
    """
    if some.complement and len(some.factors) > 1:
        return None
    more = _beyond(some, given)
    alone = len(more) == 1 and len(more[0].scope) == 1 and more[0].scope[0] not in given.scope
    return more[0] if alone else None


def _beyond(some: Query, given: Query) -> list[Factor]:
    """The conditions by which some rows are told from all of them."""
    known = {(factor.scope, factor.weights.tobytes()) for factor in plain_product(given)}
    return [factor for factor in plain_product(some) if (factor.scope, factor.weights.tobytes()) not in known]


@dataclass(frozen=True)
class Sum:
    """The sum of a numeric attribute over the rows of a condition; a value counts as the middle of its bin."""

    domain: Domain = field(compare=False, repr=False)
    name: str
    where: Query = EVERYONE
    formula: Formula = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_rows(self.where, self.domain)
        object.__setattr__(self, "name", self.domain.resolve(self.name))
        object.__setattr__(self, "formula", self._formula(self.domain))

    def _formula(self, domain: Domain) -> Formula:
        """One question about positive values, and one about negative ones: weights lie in [0, 1]."""
        middles = Middles.of(domain, self.name, self.where)
        parts, factors = list[Weighed](), list[float]()
        for sign in (1.0, -1.0):
            part = np.where(np.isnan(middles.values), 0.0, np.maximum(sign * middles.values, 0.0))
            if part.max(initial=0.0) > 0:
                parts.append(middles.weighed(part / part.max()))
                factors.append(sign * float(part.max()))

        def added(figures: Sequence[Figure], rows: int) -> Figure:
            value = sum((factor * figure.value for factor, figure in zip(factors, figures, strict=True)), start=0.0)
            if any(figure.error is None for figure in figures):
                return Figure(value, None)
            moved = sum(rows * abs(factor) * part.rounding for factor, part in zip(factors, parts, strict=True))
            return Figure(value, moved + sum(abs(f) * (x.error or 0.0) for f, x in zip(factors, figures, strict=True)))

        said = middles.note(
            # All values can be off the same way, so the sum is off by their number times as much.
            "a value is taken for the middle of its bin, off by at most {0:g}, so the sum by at most {0:g} times the "
            "number of its rows beyond the error bar"
        )
        nothing = f"no row that meets the condition has a value of {self.name} other than 0."
        least, most = min([0.0, *factors]), max([0.0, *factors])  # what a row can add
        ends = lambda rows: (rows * least, rows * most)  # noqa: E731
        beyond = lambda rows: rows * middles.rounding  # noqa: E731
        return Formula(tuple(parts), added, said, constant=nothing, limits=ends, beyond=beyond)

    def words(self, domain: Domain) -> str:
        return f"the sum of {self.name}{rows_where(self.where, domain)}"


@dataclass(frozen=True)
class Mean:
    """The mean of a numeric attribute over the rows of a condition; a value counts as the middle of its bin.

    That of all rows is bought like `ask.Cdf`.
    """

    domain: Domain = field(compare=False, repr=False)
    name: str
    where: Query = EVERYONE
    share: float | None = None
    from_ranges: bool = field(init=False)
    formula: Formula = field(init=False, compare=False, repr=False)
    by_rest: Formula = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        domain = self.domain
        check_rows(self.where, domain)
        object.__setattr__(self, "name", domain.resolve(self.name))
        check_share(self.share)
        if isinstance(domain[self.name].values, Days):
            raise InvalidQuery(f"{self.name} has dates, which have a median but no mean.")
        object.__setattr__(self, "from_ranges", self.where.is_everyone and domain[self.name].ordered)
        object.__setattr__(self, "formula", self._formula(domain, by_rest=False))
        object.__setattr__(self, "by_rest", self._formula(domain, by_rest=True))

    def _formula(self, domain: Domain, *, by_rest: bool) -> Formula:
        """Where values lie between the least and the largest that the condition allows, on average.

        So a narrow condition has a narrow error bar. With p in [0, 1] where a value lies, it is the sum of p by the
        number of rows; or `by_rest`, by the sums of p and of 1 - p, whose bars make a narrower one of it: see `share`.
        """
        size = domain[self.name].size
        if self.from_ranges and size > MAX_TABLE:  # the release of its ranges has the mean; groups have none
            too_many = f"{self.name} has {size:,} values; at most {MAX_TABLE:,} can be weighed."
            return Formula((), lambda _, __: Figure(math.nan, None), constant=too_many)
        middles = Middles.of(domain, self.name, self.where)
        low, span = middles.low, middles.span
        if not span:
            return middles.alike(low, middles.note(), IF_ANY)
        top = middles.weighed(middles.places)

        def mean(figures: Sequence[Figure], _: int) -> Figure:
            found, error = share(*figures) if by_rest else ratio(*figures)
            within = None if error is None else min(span, span * error + top.rounding * span)
            return Figure(low + span * found, within)

        below = np.where(middles.inside, 1 - middles.places, 0.0) if by_rest else middles.inside
        parts = (top, middles.weighed(below))
        ends = lambda _: (low, low + span)  # noqa: E731
        return Formula(parts, mean, middles.note(), _MAY_BE_ZERO, limits=ends, beyond=lambda _: middles.rounding)

    def words(self, domain: Domain) -> str:
        return f"the mean of {self.name}{rows_where(self.where, domain)}"


@dataclass(frozen=True)
class Variance:
    """The variance of a numeric attribute over the rows of a condition, or its root, the standard deviation.

    With `sample`, the sum of squares is divided by the number of rows less one, as VARIANCE and STDDEV are in SQL.
    """

    domain: Domain = field(compare=False, repr=False)
    name: str
    where: Query = EVERYONE
    sample: bool = True
    root: bool = False
    formula: Formula = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_rows(self.where, self.domain)
        check_choices(self.sample, self.root)
        object.__setattr__(self, "name", self.domain.resolve(self.name))
        object.__setattr__(self, "formula", self._formula(self.domain))

    def _formula(self, domain: Domain) -> Formula:
        """With p in [0, 1] where a value lies, Var = span² (E[(2p - 1)²]/4 - (E[p] - 1/2)²): three counts.

        About the middle instead of 0, the two terms are small, and so are their bars.
        """
        middles = Middles.of(domain, self.name, self.where)
        span = middles.span
        said = middles.note(
            "a value is taken for the middle of its bin, off by at most {0:g}, which the error bar leaves out"
        )
        if not span:
            return middles.alike(0.0, said, IF_TWO if self.sample else IF_ANY)
        _check_squared(span, span, [self.name])
        places = middles.weighed(middles.places)
        squares = middles.weighed(np.where(middles.inside, (2 * middles.places - 1) ** 2, 0.0))

        def variance(figures: Sequence[Figure], _: int) -> Figure:
            rows = figures[2]
            second, first = ratio(figures[0], rows), ratio(figures[1], rows)
            value = max(0.0, second.value / 4 - (first.value - 0.5) ** 2)
            if second.error is None or first.error is None or rows.error is None:
                return self._scaled(value, None, span, rows)
            far, off = abs(first.value - 0.5), first.error + places.rounding
            spread = (second.error + squares.rounding) / 4
            # (E[p] - 1/2)² lies between the squares of the ends of its interval, or starts at 0 where that holds 0.
            low = max(0.0, second.value / 4 - spread - min(far + off, 0.5) ** 2)
            high = min(0.25, second.value / 4 + spread - max(0.0, far - off) ** 2)
            return self._scaled(value, (low, max(low, high)), span, rows)

        parts = (squares, places, middles.weighed(middles.inside))
        # Half of the rows at each end; n/(n - 1) is 2 at most.
        most = span**2 / (2 if self.sample else 4)
        limits = 0.0, math.sqrt(most) if self.root else most
        return Formula(parts, variance, said, _MAY_BE_ZERO, limits=lambda _: limits)

    def _scaled(self, value: float, ends: tuple[float, float] | None, span: float, rows: Figure) -> Figure:
        """From places to values; n/(n-1) times that for a sample; the root of it for a standard deviation."""

        def shown(part: float, n: float) -> float:
            found = part * span**2 * (n / (n - 1) if self.sample else 1.0)
            return math.sqrt(found) if self.root else found

        n = max(rows.value, 2.0)
        middle = shown(value, n)
        if ends is None or rows.error is None or (self.sample and rows.value - rows.error <= 1):
            return Figure(middle, None)
        low = shown(ends[0], rows.value + rows.error)
        high = shown(ends[1], rows.value - rows.error)
        return Figure(middle, max(high - middle, middle - low, 0.0))

    def words(self, domain: Domain) -> str:
        what = "standard deviation" if self.root else "variance"
        whole = "" if self.sample else "population "
        return f"the {whole}{what} of {self.name}{rows_where(self.where, domain)}"


@dataclass(frozen=True)
class Covariance:
    """The covariance of two numeric attributes over the rows of a condition, or their correlation.

    Of the rows where both have a value. With `sample`, divided by the number of these rows less one.
    """

    domain: Domain = field(compare=False, repr=False)
    names: tuple[str, str]
    where: Query = EVERYONE
    sample: bool = True
    correlation: bool = False
    formula: Formula = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_rows(self.where, self.domain)
        check_choices(self.sample, self.correlation)
        check_texts(self.names, "the attributes of a covariance")
        names = tuple(self.domain.resolve(name) for name in self.names)
        if len(set(names)) != 2:
            raise InvalidQuery("a covariance is of two attributes; of one with itself it is the variance.")
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "formula", self._formula(self.domain))

    def _formula(self, domain: Domain) -> Formula:
        """With p and q in [0, 1] where the values lie, Cov = E[(p - 1/2)(q - 1/2)] - (E[p] - 1/2)(E[q] - 1/2) spans.

        The product is weighed as ((2p - 1)(2q - 1) + 1)/2, which lies in [0, 1] and has half the error of p q.
        """
        sides = [Middles.of(domain, name, self.where) for name in self.names]
        said = joined(
            one.note("a value is taken for the middle of its bin, off by at most {0:g}, which the error bar leaves out")
            for one in sides
        )
        for one in sides:
            if not one.span:
                settled = one.alike(0.0, said, IF_TWO if self.sample else IF_ANY)
                if self.correlation:
                    raise InvalidQuery(f"{settled.constant[:-1]}, which is correlated with nothing.")
                return settled
        if len(sides[0].values) * len(sides[1].values) > MAX_TABLE:
            raise InvalidQuery(f"{' and '.join(self.names)} have too many values together; the most is {MAX_TABLE:,}.")
        both = [one.known(sides[1 - i]) for i, one in enumerate(sides)]
        places = [one.weighed(one.places) for one in both]
        parts = [both[0].weighed(both[0].inside), *places, both[0].weighed_with(both[1])]
        if self.correlation:
            parts += [one.weighed(np.where(one.inside, (2 * one.places - 1) ** 2, 0.0)) for one in both]
        if not self.correlation:
            _check_squared(sides[0].span, sides[1].span, self.names)
        span_of_both = sides[0].span * sides[1].span

        def covariance(figures: Sequence[Figure], _: int) -> Figure:
            rows = figures[0]
            means = [
                _spread_out(ratio(figure, rows), part.rounding) for figure, part in zip(figures, parts, strict=True)
            ]
            half, quarter = span.Spans.exact(0.5, 1), span.Spans.exact(0.25, 1)
            p, q = (span.minus(one, half) for one in means[1:3])
            product = span.times(span.minus(means[3], half), half)
            found = span.minus(product, span.times(p, q))
            if self.correlation:
                squares = zip(means[4:], (p, q), strict=True)
                spreads = [span.minus(span.times(two, quarter), span.power(one, 2)) for two, one in squares]
                found = span.over(found, span.root(span.times(*(span.greatest(one, _NOTHING) for one in spreads))))
                value, error = _figure(found, 1.0)
                return Figure(min(max(value, -1.0), 1.0), error)
            if self.sample and (rows.error is None or rows.value - rows.error <= 1):
                n = max(rows.value, 2.0)
                return Figure(float(found.value[0]) * span_of_both * n / (n - 1), None)
            if self.sample:
                one = span.Spans.exact(1.0, 1)
                found = span.over(found, span.minus(one, span.over(one, _spread_out(rows, 0.0, most=math.inf))))
            return _figure(found, span_of_both)

        def quietly(figures: Sequence[Figure], rows: int) -> Figure:
            with np.errstate(all="ignore"):  # what is divided by 0 has no bar
                return covariance(figures, rows)

        most = 1.0 if self.correlation else span_of_both / (2 if self.sample else 4)
        return Formula(tuple(parts), quietly, said, _MAY_BE_ZERO, limits=lambda _: (-most, most))

    def words(self, domain: Domain) -> str:
        what = "correlation" if self.correlation else "covariance" if self.sample else "population covariance"
        return f"the {what} of {' and '.join(self.names)}{rows_where(self.where, domain)}"


def _check_squared(one: float, other: float, names: Sequence[str]) -> None:
    """Refuse values so far apart that no number holds the product of what they span."""
    if not math.isfinite(one * other):
        raise InvalidQuery(f"the values of {' and '.join(names)} are so far apart that no number holds their square.")


_NOTHING = span.Spans.exact(0.0, 1)


def _spread_out(figure: Figure, rounding: float, most: float = 1.0) -> span.Spans:
    """A mean of weights, which lies between 0 and `most`, with its interval."""
    error = math.inf if figure.error is None else figure.error + rounding
    return span.around(np.full(1, figure.value), np.full(1, error), 0.0, most)


def _figure(found: span.Spans, factor: float) -> Figure:
    value, error = float(found.value[0]) * factor, float(found.error[0]) * factor
    return Figure(value, error if math.isfinite(error) else None)


Aggregate = Count | Fraction | Sum | Mean | Variance | Covariance


def mean(domain: Domain, name: str, where: Query = EVERYONE, share: float | None = None) -> Mean | Fraction:
    """The mean of an attribute. That of true and false is a fraction, among the rows where it is known."""
    if domain[name].kind != "boolean":
        return Mean(domain, name, where, share)
    true, known = (Query.among(domain, name, values) for values in ([1], [0, 1]))
    return Fraction(true, Query.all([where, known]))


def check_condition(where: Query) -> None:
    """Refuse what is no condition on rows."""
    if not isinstance(where, Query):
        raise InvalidQuery(f"rows are chosen by a condition that is bound to a domain, not by {type(where).__name__}.")


def check_domain(domain: Domain) -> None:
    """Refuse what is no domain, which a question is bound to."""
    if not isinstance(domain, Domain):
        raise InvalidQuery(f"a question is bound to a domain, not to {type(domain).__name__}.")


def check_texts(given: tuple[str, ...], what: str) -> None:
    """Refuse what is no tuple of texts."""
    if not isinstance(given, tuple) or not all(isinstance(one, str) for one in given):
        raise InvalidQuery(f"{what} are texts in a tuple, not {given!r}.")


def check_choices(*choices: bool) -> None:
    """Refuse what is neither True nor False."""
    for one in choices:
        if not isinstance(one, bool):
            raise InvalidQuery(f"a choice is True or False, not {one!r}.")


def check_rows(where: Query, domain: Domain) -> None:
    """Refuse what is no condition on rows of this domain."""
    check_domain(domain)
    check_condition(where)
    check(where, domain)


def check_share(share: float | None) -> None:
    """Refuse what is not a share of the budget; None where none is named."""
    if share is None:
        return
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise InvalidQuery(f"share is a fraction of the budget, above 0 and at most 1, not {share!r}.")


def rows_where(where: Query, domain: Domain) -> str:
    """Which rows a value is of, in words that follow it."""
    return "" if where.is_everyone else f" where {describe(where, domain)}"
