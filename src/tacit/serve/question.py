"""A question as it comes in JSON: SQL text, or one object of the structured form. Pure; called by the server.

A condition is a value (equal to it), null (missing), a pair [low, high] (both ends included, for numeric attributes the
upper end excluded) or {"in": [values]} (any of them).
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, cast

from msgspec import UNSET, Meta, UnsetType, field

from tacit.errors import InvalidQuery
from tacit.model import sql
from tacit.model.ask import (
    Ask,
    Cdf,
    Count,
    Crosstab,
    Derived,
    Fraction,
    Histogram,
    Quantile,
    Range,
    Select,
    Stat,
    Sum,
    Variance,
    mean,
)
from tacit.model.domain import Domain
from tacit.model.expression import count, largest_mean, matching, quantile_distance, stump
from tacit.model.query import Query
from tacit.model.statistic_check import owners
from tacit.model.values import Value
from tacit.serve.refusal import Refusal
from tacit.serve.schema import AnyOf, Closed, Json, Number, Pair, Scalar, Text, Where, given, shaped

MAX_CELLS = 100_000  # of one table
MAX_NAMES = 16  # attributes of one table
Share = Annotated[float, Meta(gt=0, le=1, description="Of the whole budget, for a sharper release.")]


class Asked(Closed):
    """One kind of object: its fields are what is read, and described."""

    def ask(self, domain: Domain) -> Ask:
        """What it asks."""
        raise NotImplementedError


class CountBody(Asked):
    """A count is asked like {"count": {"sex": "F", "age": [20, 39]}}."""

    count: Where

    def ask(self, domain: Domain) -> Ask:
        return Count(_rows(self.count, domain))


class TableBody(Asked):
    """A table is asked like {"table": ["sex", "age"], "where": {"region": {"in": ["north", "east"]}}}."""

    table: Annotated[list[Text], Meta(min_length=1, max_length=MAX_NAMES)]
    where: Where = field(default_factory=dict)

    def ask(self, domain: Domain) -> Ask:
        return Crosstab(domain, tuple(self.table), _rows(self.where, domain))


class CdfBody(Asked):
    """A cumulative distribution is asked like {"cdf": "age"}."""

    cdf: Text
    share: Share | UnsetType = UNSET

    def ask(self, domain: Domain) -> Ask:
        return Cdf(domain, self.cdf, given(self.share))


class QuantileBody(Asked):
    """A quantile is asked like {"quantile": "age", "q": 0.5}."""

    quantile: Text
    q: Annotated[float, Meta(gt=0, lt=1)]
    where: Where = field(default_factory=dict)
    share: Share | UnsetType = UNSET

    def ask(self, domain: Domain) -> Ask:
        return Quantile(domain, self.quantile, self.q, _rows(self.where, domain), given(self.share))


class MeanBody(Asked):
    """A mean is asked like {"mean": "age", "where": {"sex": "F"}}."""

    mean: Text
    where: Where = field(default_factory=dict)
    share: Share | UnsetType = UNSET

    def ask(self, domain: Domain) -> Ask:
        return mean(domain, self.mean, _rows(self.where, domain), given(self.share))


class SumBody(Asked):
    """A sum is asked like {"sum": "age", "where": {"sex": "F"}}."""

    sum: Text
    where: Where = field(default_factory=dict)

    def ask(self, domain: Domain) -> Ask:
        return Sum(domain, self.sum, _rows(self.where, domain))


class VarianceBody(Asked):
    """A variance is asked like {"variance": "age", "where": {"sex": "F"}}."""

    variance: Text
    where: Where = field(default_factory=dict)

    def ask(self, domain: Domain) -> Ask:
        return Variance(domain, self.variance, _rows(self.where, domain))


class StddevBody(Asked):
    """A standard deviation is asked like {"stddev": "age", "where": {"sex": "F"}}."""

    stddev: Text
    where: Where = field(default_factory=dict)

    def ask(self, domain: Domain) -> Ask:
        return Variance(domain, self.stddev, _rows(self.where, domain), root=True)


class FractionBody(Asked):
    """A fraction is asked like {"fraction": {"smoker": true}, "given": {"sex": "F"}}."""

    fraction: Where
    given: Where = field(default_factory=dict)

    def ask(self, domain: Domain) -> Ask:
        return Fraction(_rows(self.fraction, domain), _rows(self.given, domain))


class RangeBody(Asked):
    """A range of one or two attributes is asked like {"range": {"age": [20, 39]}}."""

    range: Annotated[dict[Text, Pair], Meta(min_length=1, max_length=2)]
    share: Share | UnsetType = UNSET

    def ask(self, domain: Domain) -> Ask:
        return Range.between(domain, _conditions(self.range), given(self.share))


class HistogramBody(Asked):
    """A histogram is asked like {"histogram": "age", "width": 10}."""

    histogram: Text
    width: Annotated[float, Meta(gt=0)] | UnsetType = UNSET
    share: Share | UnsetType = UNSET

    def ask(self, domain: Domain) -> Ask:
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
    """The owner's own is asked by its name, like {"statistic": "fullest ward", "arguments": []}."""

    statistic: Text
    arguments: Annotated[list[Text | Number], Meta(max_length=MAX_NAMES)] = field(default_factory=list)

    def ask(self, domain: Domain) -> Ask:
        return Stat(owners(self.statistic, self.arguments, domain))


KINDS = {kind.__struct_fields__[0]: kind for kind in Asked.__subclasses__()}  # its first field names a kind


@dataclass(frozen=True, eq=False)
class Question:
    """A question that was read: what it asks, and as what it came. `key` names it in the audit log."""

    kind: str
    key: str
    ask: Ask
    within: float | None = None  # the half width that is asked for

    @property
    def is_count(self) -> bool:
        return isinstance(self.ask, Count)

    @cached_property
    def plain(self) -> bool:
        """Whether it is a count that may share a batch with others, and whose answer never changes."""
        return isinstance(self.ask, Count) and self.within is None


def read(body: Any, domain: Domain, within: float | None = None) -> Question:
    """Read a question and tie it to the domain; everything that can be refused without the data is refused here."""
    if isinstance(body, str):
        kind, ask = "sql", sql.parse(body, domain)
    elif isinstance(body, dict) and (kinds := [kind for kind in KINDS if kind in body]):
        kind = kinds[0]
        ask = shaped(body, KINDS[kind], "bad_question").ask(domain)
    else:
        raise Refusal(400, "bad_question", f"a question is SQL text, or an object with one of {', '.join(KINDS)}.")
    _check_size(ask, domain)
    return Question(kind, _key(body, ask), ask, within)


def _scalar(value: object) -> Value | None:
    """A value that may be left out."""
    return None if value is UNSET else cast(Value, value)


def _rows(where: Where, domain: Domain) -> Query:
    """The rows that meet all conditions of a field."""
    return count(**_conditions(where)).bind(domain)


def _conditions(where: Where | dict[Text, Pair]) -> dict[str, Any]:
    """Conditions in the words of `tacit.count`: a pair is a range, a list is any of its values."""
    return {
        name: tuple(value) if isinstance(value, list) else value.values if isinstance(value, AnyOf) else value
        for name, value in where.items()
    }


def _check_size(ask: Ask, domain: Domain) -> None:
    cells = 1
    if isinstance(ask, Crosstab):
        cells = ask.table.size(domain)
    elif isinstance(ask, Select | Derived):
        sizes = ((len(one.columns), (len(group.parts(domain)) for group in one.groups)) for one in ask.selects)
        cells = sum(columns * math.prod(parts) for columns, parts in sizes)
    if cells > MAX_CELLS:
        raise InvalidQuery(f"the table would have {cells:,} cells; over HTTP the most is {MAX_CELLS:,}.")


def _key(body: str | Json, ask: Ask) -> str:
    """The canonical key of a count; for the others, which have several in the ledger, a hash of what was given."""
    if isinstance(ask, Count):
        return ask.query.key
    return hashlib.sha256(json.dumps(["asked", body], sort_keys=True).encode()).hexdigest()
