"""The structured form of a question: one class for each kind of object, and what it asks. Pure; read by `question`.

A condition is a value (equal to it), null (missing), a pair [low, high] (both ends included, for numeric attributes the
upper end excluded) or {"in": [values]} (any of them).
"""

from __future__ import annotations

from typing import Annotated, Any, cast

from msgspec import UNSET, Meta, UnsetType, field, to_builtins

from tacit.errors import InvalidQuery
from tacit.model.ask import (
    Ask,
    Cdf,
    Count,
    Covariance,
    Crosstab,
    Fraction,
    Histogram,
    Quantile,
    Range,
    Stat,
    Sum,
    Variance,
    mean,
)
from tacit.model.domain import MAX_ATTRIBUTES, Domain
from tacit.model.expression import count, largest_mean, matching, quantile_distance, stump
from tacit.model.query import Query
from tacit.model.statistic import MAX_ARGUMENTS, Statistic
from tacit.model.statistic_check import owners
from tacit.model.values import Value
from tacit.model.workload import check
from tacit.replies import StrictStruct, given
from tacit.serve.schema import AnyOf, Json, JsonInteger, Pair, Scalar, Text, WhereBody
from tacit.serve.work import check_bins

MAX_NAMES = 16  # attributes of one table
BudgetShare = Annotated[float, Meta(gt=0, le=1, description="Of the whole budget, for a sharper release.")]


class FactorForm(StrictStruct):
    """Weights over the values of a few attributes, as `Query.to_dict` writes them."""

    scope: Annotated[list[Text], Meta(max_length=MAX_NAMES)]
    shape: Annotated[list[Annotated[int, Meta(ge=1)]], Meta(max_length=MAX_NAMES)]
    unit: int
    weights: Text | list[JsonInteger]


class QueryForm(StrictStruct):
    """A product of weights, or one minus that: any condition, as programs write it."""

    complement: bool
    factors: Annotated[list[FactorForm], Meta(max_length=MAX_ATTRIBUTES)]

    def query(self, domain: Domain) -> Query:
        # Before any array is made: a body is short, and what it announces need not be.
        named = [name for factor in self.factors for name in factor.scope]
        fits = (factor.shape == [domain.sizes.get(name) for name in factor.scope] for factor in self.factors)
        if len(set(named)) < len(named) or not all(fits):
            raise InvalidQuery(f"the question was made for another domain than that of {', '.join(domain)}.")
        try:
            found = Query.from_dict(to_builtins(self))
        except (ValueError, TypeError, OverflowError):  # numpy's
            raise InvalidQuery("the weights of a question are not written as Query.to_dict does.") from None
        check(found, domain)
        return found


WeightsForm = Annotated[list[QueryForm], Meta(min_length=1, max_length=1)]  # as a list, to be told from {name: value}
RowsForm = WhereBody | WeightsForm


class Asked(StrictStruct):
    """One kind of object: its fields are what is read, and described."""

    def ask(self, domain: Domain) -> Ask:
        """What it asks."""
        raise NotImplementedError


class CountBody(Asked):
    """A count is asked like {"count": {"sex": "F", "age": [20, 39]}}."""

    count: RowsForm

    def ask(self, domain: Domain) -> Ask:
        return Count(_rows(self.count, domain))


class TableBody(Asked):
    """A table is asked like {"table": ["sex", "age"], "where": {"region": {"in": ["north", "east"]}}}."""

    table: Annotated[list[Text], Meta(min_length=1, max_length=MAX_NAMES)]
    where: RowsForm = field(default_factory=dict)

    def ask(self, domain: Domain) -> Ask:
        return Crosstab(domain, tuple(self.table), _rows(self.where, domain))


class CdfBody(Asked):
    """A cumulative distribution is asked like {"cdf": "age"}."""

    cdf: Text
    share: BudgetShare | UnsetType = UNSET
    strategy: Text | UnsetType = UNSET

    def ask(self, domain: Domain) -> Ask:
        return Cdf(domain, self.cdf, given(self.share), given(self.strategy))


class QuantileBody(Asked):
    """A quantile is asked like {"quantile": "age", "q": 0.5}."""

    quantile: Text
    q: Annotated[float, Meta(gt=0, lt=1)]
    where: RowsForm = field(default_factory=dict)
    share: BudgetShare | UnsetType = UNSET

    def ask(self, domain: Domain) -> Ask:
        return Quantile(domain, self.quantile, self.q, _rows(self.where, domain), given(self.share))


class MeanBody(Asked):
    """A mean is asked like {"mean": "age", "where": {"sex": "F"}}."""

    mean: Text
    where: RowsForm = field(default_factory=dict)
    share: BudgetShare | UnsetType = UNSET

    def ask(self, domain: Domain) -> Ask:
        return mean(domain, self.mean, _rows(self.where, domain), given(self.share))


class SumBody(Asked):
    """A sum is asked like {"sum": "age", "where": {"sex": "F"}}."""

    sum: Text
    where: RowsForm = field(default_factory=dict)

    def ask(self, domain: Domain) -> Ask:
        return Sum(domain, self.sum, _rows(self.where, domain))


class VarianceBody(Asked):
    """A variance is asked like {"variance": "age", "where": {"sex": "F"}}."""

    variance: Text
    where: RowsForm = field(default_factory=dict)
    sample: bool = True

    def ask(self, domain: Domain) -> Ask:
        return Variance(domain, self.variance, _rows(self.where, domain), self.sample)


class StddevBody(Asked):
    """A standard deviation is asked like {"stddev": "age", "where": {"sex": "F"}}."""

    stddev: Text
    where: RowsForm = field(default_factory=dict)
    sample: bool = True

    def ask(self, domain: Domain) -> Ask:
        return Variance(domain, self.stddev, _rows(self.where, domain), self.sample, root=True)


class CovarianceBody(Asked):
    """A covariance is asked like {"covariance": ["age", "pay"], "where": {"sex": "F"}}."""

    covariance: Annotated[list[Text], Meta(min_length=2, max_length=2)]
    where: RowsForm = field(default_factory=dict)
    sample: bool = True

    def ask(self, domain: Domain) -> Ask:
        return Covariance(domain, (self.covariance[0], self.covariance[1]), _rows(self.where, domain), self.sample)


class CorrelationBody(Asked):
    """A correlation is asked like {"correlation": ["age", "pay"], "where": {"sex": "F"}}."""

    correlation: Annotated[list[Text], Meta(min_length=2, max_length=2)]
    where: RowsForm = field(default_factory=dict)

    def ask(self, domain: Domain) -> Ask:
        names = self.correlation[0], self.correlation[1]
        return Covariance(domain, names, _rows(self.where, domain), sample=False, correlation=True)


class FractionBody(Asked):
    """A fraction is asked like {"fraction": {"smoker": true}, "given": {"sex": "F"}}."""

    fraction: RowsForm
    given: RowsForm = field(default_factory=dict)

    def ask(self, domain: Domain) -> Ask:
        return Fraction(_rows(self.fraction, domain), _rows(self.given, domain))


class RangeBody(Asked):
    """A range of one or two attributes is asked like {"range": {"age": [20, 39]}}."""

    range: Annotated[dict[Text, Pair], Meta(min_length=1, max_length=2)] | WeightsForm
    share: BudgetShare | UnsetType = UNSET

    def ask(self, domain: Domain) -> Ask:
        if isinstance(self.range, list):
            return Range(domain, _rows(self.range, domain), given(self.share))
        return Range.between(domain, _conditions(self.range), given(self.share))


class HistogramBody(Asked):
    """A histogram is asked like {"histogram": "age", "width": 10}."""

    histogram: Text
    width: Annotated[float, Meta(gt=0)] | UnsetType = UNSET
    share: BudgetShare | UnsetType = UNSET

    def ask(self, domain: Domain) -> Ask:
        check_bins(domain, self.histogram, given(self.width))
        return Histogram(domain, self.histogram, given(self.width), given(self.share))


class StumpBody(Asked):
    """The errors of the best threshold are asked like {"stump": "age", "predicts": "ill"}."""

    stump: Text
    predicts: Text
    value: Scalar | UnsetType = UNSET

    def ask(self, domain: Domain) -> Ask:
        return Stat(stump(self.stump, predicts=self.predicts, value=_scalar(self.value)).bind(domain))


class QuantileDistanceBody(Asked):
    """How far a quantile is from a range is asked like {"quantile_distance": "age", "q": 0.5, "high": 39}."""

    quantile_distance: Text
    q: Annotated[float, Meta(gt=0, le=1)]
    low: Scalar | UnsetType = UNSET
    high: Scalar | UnsetType = UNSET

    def ask(self, domain: Domain) -> Ask:
        asked = quantile_distance(self.quantile_distance, self.q, low=_scalar(self.low), high=_scalar(self.high))
        return Stat(asked.bind(domain))


class LargestMeanBody(Asked):
    """The largest mean of groups is asked like {"largest_mean": "pay", "by": ["region"], "smallest": 0.05}."""

    largest_mean: Text
    by: Annotated[list[Text], Meta(min_length=1, max_length=MAX_NAMES)]
    smallest: Annotated[float, Meta(gt=0, le=1)]

    def ask(self, domain: Domain) -> Ask:
        return Stat(largest_mean(self.largest_mean, by=self.by, smallest=self.smallest).bind(domain))


class MatchingBody(Asked):
    """A largest matching is asked like {"matching": "role", "left": "donor", "right": "patient", "on": "blood"}."""

    matching: Text
    left: Scalar
    right: Scalar
    on: Text

    def ask(self, domain: Domain) -> Ask:
        return Stat(matching(self.matching, self.left, self.right, on=self.on).bind(domain))


class StatisticBody(Asked):
    """The owner's own is asked by its name, like {"statistic": "fullest ward", "arguments": []}.

    With its attributes, any statistic is asked as `Statistic.to_dict` writes it.
    """

    statistic: Text
    arguments: Annotated[list[Text | JsonInteger], Meta(max_length=MAX_ARGUMENTS)] = field(default_factory=list)
    scope: Annotated[list[Text], Meta(max_length=MAX_NAMES)] | UnsetType = UNSET

    def ask(self, domain: Domain) -> Ask:
        if not isinstance(self.scope, UnsetType):
            asked = Statistic(self.statistic, tuple(self.scope), tuple(self.arguments))
            check(asked, domain)
            return Stat(asked)
        return Stat(owners(self.statistic, self.arguments, domain))


KINDS = {kind.__struct_fields__[0]: kind for kind in Asked.__subclasses__()}  # its first field names a kind


def as_weights(body: Json) -> bool:
    """Whether a question is written as weights, which takes longer to read than words of the same length."""
    parts = (part[0] for part in body.values() if isinstance(part, list) and part)
    return "scope" in body or any(isinstance(part, dict) for part in parts)


def _rows(where: RowsForm, domain: Domain) -> Query:
    """The rows that meet all conditions of a field."""
    if isinstance(where, list):
        return where[0].query(domain)
    return count(**_conditions(where)).bind(domain)


def _conditions(where: WhereBody | dict[Text, Pair]) -> dict[str, Any]:
    """Conditions in the words of `tacit.count`: a pair is a range, a list is any of its values."""
    return {
        name: tuple(value) if isinstance(value, list) else value.values if isinstance(value, AnyOf) else value
        for name, value in where.items()
    }


def _scalar(value: object) -> Value | None:
    """A value that may be left out."""
    return None if value is UNSET else cast(Value, value)
