"""A parsed statement answered through the session's own methods, so that SQL and Python give the same. Session only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, Protocol, TypeVar

from tacit.errors import InvalidQuery
from tacit.model.answer import Answer, Measured, Table, Told
from tacit.model.budget import Loss
from tacit.model.distribution_answer import QuantileAnswer
from tacit.model.domain import Domain
from tacit.model.listing import Listing, Row
from tacit.model.query import Query
from tacit.model.statement import Aggregate, Select, summary
from tacit.model.statistic import Statistic
from tacit.model.values import Days
from tacit.model.workload import Marginal, marginal
from tacit.release import composed
from tacit.release.composed import Facts, Plan, joined
from tacit.release.composer import Composer
from tacit.release.estimate import Mechanism
from tacit.release.online import MAX_TABLE, Online
from tacit.release.ranges import Ranges
from tacit.trusted.curator import Curator

T = TypeVar("T")
# A question, or what ranges are bought of: the name of an attribute, or those of two.
Need = Query | Statistic | Marginal | str | tuple[str, str]

Method = Literal["table", "fraction", "cdf", "histogram", "quantile", "mean", "sum"]  # of the session


class Asks(Protocol):
    """What of a session a statement is answered with."""

    @property
    def domain(self) -> Domain: ...
    @property
    def rows(self) -> int: ...
    @property
    def confidence(self) -> float: ...
    @property
    def total(self) -> Loss: ...
    def fraction(self, where: Query, given: Query | None = None) -> Answer: ...
    def sum(self, name: str, where: Query | None = None) -> Answer: ...
    def mean(self, name: str, where: Query | None = None) -> Answer: ...
    def quantile(self, name: str, quantile: float, where: Query | None = None) -> QuantileAnswer: ...
    def table(self, *names: str, where: Query | None = None) -> Table: ...
    def ask_many(self, questions: Sequence[Query]) -> list[Answer]: ...


@dataclass(frozen=True)
class DryRun:
    """What would happen if a question were asked now: whether its answer is known already, and the most it can cost."""

    known: bool
    cost_at_most: Loss
    why: str


def answer(select: Select, asks: Asks, composer: Composer) -> Answer | Table | QuantileAnswer | Listing:
    """The answer to a statement. Everything that can be refused is refused before anything is asked."""
    if not select.aggregates:
        return _declared(select, asks)
    needs(select, asks, composer)
    if not select.groups and len(select.aggregates) == 1:
        one = _single(select.aggregates[0], asks)
        return replace(one, note=joined((one.note, *select.notes)))
    first, ordered = select.aggregates[0], select.order or select.offset or select.limit is not None
    renamed = first.named or any(group.title != group.name or group.width is not None for group in select.groups)
    if len(select.aggregates) == 1 and first.kind == "count" and not ordered and not renamed:
        table = asks.table(*select.group, where=first.where.bind(asks.domain))
        return replace(table, note=joined((table.note, *select.notes)))
    return _listing(select, asks, composer)


def needs(select: Select, asks: Asks, composer: Composer) -> list[Need]:
    """All that a statement asks of the mechanism, each once."""
    asked: list[Need] = []
    for aggregate in select.aggregates:
        where = aggregate.where.bind(asks.domain)
        if aggregate.kind == "quantile" and (select.groups or len(select.aggregates) > 1):
            raise InvalidQuery("a quantile is asked by itself, without GROUP BY; choose a group with WHERE.")
        if from_ranges(aggregate.kind, aggregate.name, where, asks.domain) and not select.groups:
            asked.append(asks.domain.resolve(aggregate.name))
        elif aggregate.kind == "quantile":
            asked += composer.quantile_questions(aggregate.name, where)
        else:
            asked += composer.questions(plan(aggregate, select, asks).columns)
    return list(dict.fromkeys(asked))


def needs_of(
    method: Method, names: Sequence[str], where: Query, given: Query, asks: Asks, composer: Composer
) -> list[Need]:
    """All that one of the session's methods asks of the mechanism, from the same bound form that it goes by."""
    domain = asks.domain
    if method == "table":
        return [marginal(domain, *(domain.resolve(name) for name in names), where=where)]
    if method == "fraction":
        return list(composer.questions(composed.fraction(Query.all([where, given]), given).columns))
    (name,) = (domain.resolve(name) for name in names)
    if method == "mean" and domain[name].kind == "boolean":
        true, known = whether(domain, name, where)
        return list(composer.questions(composed.fraction(Query.all([true, known]), known).columns))
    if method in ("cdf", "histogram") or from_ranges(method, name, where, domain):
        return [name]
    if method == "quantile":
        return list(composer.quantile_questions(name, where))
    if method == "sum":
        return list(composer.questions(composed.total(domain, asks.rows, name, where).columns))
    return list(composer.questions(composed.mean(domain, name, where).columns))


def whether(domain: Domain, name: str, where: Query) -> tuple[Query, Query]:
    """The mean of a boolean attribute as a fraction: the rows for which it is true, among those where it is known."""
    true, known = (Query.among(domain, name, values) for values in ([1], [0, 1]))
    return true, Query.all([where, known])


def from_ranges(kind: str, name: str, where: Query, domain: Domain) -> bool:
    """Whether a value is read off the release of all ranges of an attribute: means and quantiles of all rows are."""
    if kind == "mean" and isinstance(domain[name].values, Days):
        raise InvalidQuery(f"{domain.resolve(name)} has dates, which have a median but no mean.")
    return where.is_everyone and (kind == "quantile" or (kind == "mean" and domain[name].ordered))


def plan(aggregate: Aggregate, select: Select, asks: Asks) -> Plan:
    """How a count, fraction, sum or mean is composed, for each group."""
    where, groups, domain = aggregate.where.bind(asks.domain), select.groups, asks.domain
    if aggregate.kind == "count":
        return Plan((composed.Column(groups, where),), (1.0,))
    if aggregate.kind == "fraction":
        assert aggregate.given is not None
        return composed.fraction(where, aggregate.given.bind(domain), groups)
    if aggregate.kind == "sum":
        return composed.total(domain, asks.rows, aggregate.name, where, groups)
    return composed.mean(domain, aggregate.name, where, groups)


def dry_run(needs: Sequence[Need], curator: Curator, mechanism: Mechanism, ranges: Ranges, range_loss: Loss) -> DryRun:
    """What answering these would cost at most. Looks at the ledger and at public parameters, never at data."""
    free = Loss(curator.total.measure, 0)
    costs = [_cost(need, curator, mechanism, ranges, range_loss) for need in needs]
    if not costs or all(cost is None for cost in costs):
        public = all(isinstance(need, Query) and need.is_constant for need in needs)
        return DryRun(True, free, "it follows from what is declared" if public else "it is answered already")
    atoms = sum(cost.atoms for cost in costs if cost is not None)
    known = not atoms  # before it is cut to what is left: where that is nothing, nothing can be bought
    if len(costs) > 1:
        aside = mechanism.set_aside.atoms if isinstance(mechanism, Online) else 0
        atoms = min(atoms, curator.left.atoms + aside)  # more than is left is never spent
    new = sum(cost is not None for cost in costs)
    if isinstance(mechanism, Online) and not any(isinstance(need, str | tuple) for need in needs):
        if known:
            return DryRun(False, free, "all hard answers are used: it is free, and nothing is guaranteed")
        return DryRun(False, Loss(free.measure, atoms), "free if what is public answers it well, else bought")
    if known:
        return DryRun(True, free, "a release that was bought before tells it")
    why = f"{new} new question{'s' * (new > 1)} to buy"
    if not curator.left.atoms:
        why += ", and the budget is used up: it is refused"
    return DryRun(False, Loss(free.measure, atoms), why)


def _cost(need: Need, curator: Curator, mechanism: Mechanism, ranges: Ranges, range_loss: Loss) -> Loss | None:
    """The most that one question could cost; None if it was answered before, or follows from what is public."""
    if isinstance(need, str | tuple):
        strategy = ranges.strategy(need) if isinstance(need, str) else ranges.strategy(*need)
        if isinstance(need, str) and ranges.from_histogram:
            return mechanism.most(marginal(curator.domain, need))
        return range_loss if curator.find([strategy])[0] is None else None
    if isinstance(need, Marginal) and need.size(curator.domain) == 1:
        need = need.where
    if isinstance(need, Query | Statistic):
        known = need.is_constant or curator.find([need.core])[0] is not None
        return None if known else mechanism.most(need.core)
    if isinstance(mechanism, Online) and need.size(curator.domain) <= MAX_TABLE:
        cells = [cell.core for cell in need.queries(curator.domain) if not cell.is_constant]
        found: list[Measured | Told | None] = curator.find(cells) if cells else []
        return mechanism.most(need) if any(one is None for one in found) else None
    return mechanism.most(need)


def _single(aggregate: Aggregate, asks: Asks) -> Answer | QuantileAnswer:
    where = aggregate.where.bind(asks.domain)
    match aggregate.kind:
        case "count":
            return asks.ask_many([where])[0]
        case "sum":
            return asks.sum(aggregate.name, where)
        case "mean":
            return asks.mean(aggregate.name, where)
        case "quantile":
            return asks.quantile(aggregate.name, aggregate.share, where)
    assert aggregate.given is not None
    found = asks.fraction(where, aggregate.given.bind(asks.domain))
    error = None if found.error is None else aggregate.scale * found.error
    return replace(found, value=aggregate.scale * found.value, error=error)


def _listing(select: Select, asks: Asks, composer: Composer) -> Listing:
    columns: list[tuple[list[float], list[float | None]]] = []
    confidences, facts = [], []
    for aggregate in select.aggregates:
        if select.groups:
            found = composer.answer(plan(aggregate, select, asks))
            scale = aggregate.scale
            values, errors = [scale * v for v in found.values], [None if e is None else scale * e for e in found.errors]
            confidences.append(found.confidence)
            facts.append(found.facts)
        else:
            one = _single(aggregate, asks)
            assert isinstance(one, Answer)
            values, errors = [one.value], [one.error]
            confidences.append(one.confidence)
            facts.append(Facts.of([one]))
        columns.append((values, errors))
    cells = list(product(*(range(len(group.parts(asks.domain))) for group in select.groups)))
    labels = [group.labels(asks.domain) for group in select.groups]
    order = list(range(len(cells)))
    for key in reversed(select.order):  # sorts keep the order of equals, so the first key is sorted by last
        if key.by == "group":
            order.sort(key=lambda i, at=key.index: cells[i][at], reverse=key.descending)  # type: ignore[misc]
        else:
            order.sort(key=lambda i, at=key.index: columns[at][0][i], reverse=key.descending)  # type: ignore[misc]
    rows = [
        Row(
            tuple(names[at] for names, at in zip(labels, cells[i], strict=True)),
            tuple(values[i] for values, _ in columns),
            tuple(errors[i] for _, errors in columns),
        )
        for i in _cut(order, select)
    ]
    told = Facts.of(facts)
    return Listing(
        question=summary(replace(select, notes=()), asks.domain),
        names=tuple(group.title for group in select.groups),
        titles=_distinct([aggregate.title for aggregate in select.aggregates]),
        listed=tuple(rows),
        confidence=min(confidences),
        source=told.source,
        cost=told.cost,
        receipt=told.receipt,
        note=joined((told.note, *select.notes)),
    )


def _declared(select: Select, asks: Asks) -> Listing:
    """What SELECT DISTINCT gives: all combinations of declared values, whether a row has them or not."""
    labels = [group.labels(asks.domain) for group in select.groups]
    cells = list(product(*(range(len(names)) for names in labels)))
    for key in reversed(select.order):
        cells.sort(key=lambda cell, at=key.index: cell[at], reverse=key.descending)  # type: ignore[misc]
    rows = [Row(tuple(n[at] for n, at in zip(labels, cell, strict=True)), (), ()) for cell in _cut(cells, select)]
    return Listing(
        question=summary(select, asks.domain),
        names=tuple(group.title for group in select.groups),
        titles=(),
        listed=tuple(rows),
        confidence=asks.confidence,
        source="public",
        cost=Loss(asks.total.measure, 0),
        receipt=None,
        note="declared values, whether a row has them or not",
    )


def _cut(rows: list[T], select: Select) -> list[T]:
    end = None if select.limit is None else select.offset + select.limit
    return rows[select.offset : end]


def _distinct(titles: list[str]) -> tuple[str, ...]:
    """Titles that differ: the second of two equal ones is numbered."""
    seen: list[str] = []
    for title in titles:
        same = sum(title == other for other in titles[: len(seen)])
        seen.append(f"{title} ({same + 1})" if same else title)
    return tuple(seen)
