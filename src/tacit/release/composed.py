"""Fractions, sums, means and quantiles under a condition, composed of public answers. Called by the session.

Everything here is post-processing: questions are put to the session's own mechanism, and what comes back is public. A
bar for one answer holds at the session's confidence c; a value made of k noisy answers holds at 1 - k(1 - c), by the
union bound, whatever their noise has to do with each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.answer import Answer, Receipt, Source, Table
from tacit.model.attribute import Attribute
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.query import GRID, MAX_TABLE, Query
from tacit.model.statement import Group
from tacit.model.values import Days, Listed
from tacit.model.workload import Marginal, marginal

Floats = NDArray[np.float64]
FEW = 3  # from so many questions on, one table is the better bargain where every question has fresh noise
MAX_SEPARATE = 2_000  # questions that one value, or one column of values, is composed of
_SOURCES: tuple[Source, ...] = ("measured", "hypothesis", "repeat", "public")


@dataclass(frozen=True)
class Facts:
    """Where a composed value comes from: the newest of its sources, all its cost, and the latest receipt.

    A receipt seals all entries before it, so the latest one covers every part.
    """

    source: Source
    cost: Loss
    receipt: Receipt | None
    note: str = ""

    @classmethod
    def of(cls, parts: Sequence[Answer | Table | Facts]) -> Facts:
        source = min((part.source for part in parts), key=_SOURCES.index)
        cost = Loss(parts[0].cost.measure, sum(part.cost.atoms for part in parts))
        receipts = [part.receipt for part in parts if part.receipt is not None]
        latest = max(receipts, key=lambda receipt: receipt.entry, default=None)
        return cls(source, cost, latest, joined(part.note for part in parts))


def joined(notes: Iterable[str]) -> str:
    """Several notes as one, in which nothing is said twice."""
    return "; ".join(dict.fromkeys(one for note in notes if note for one in note.split("; ")))


@dataclass(frozen=True)
class Composed:
    """A value for each group (one, without groups) with its error bar; None: nothing is guaranteed."""

    values: list[float]
    errors: list[float | None]
    confidence: float
    facts: Facts


@dataclass(frozen=True)
class Column:
    """For each group, the sum over its rows that meet a condition of a weight in [0, 1] that one attribute gives."""

    groups: tuple[Group, ...]
    where: Query
    name: str = ""
    weights: tuple[float, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether it counts, in the declared bins."""
        return not self.name and all(group.width is None for group in self.groups)

    def questions(self, domain: Domain, *, fresh: bool) -> list[Query] | Marginal:
        """What is asked: a question for each group, or one table that has them all."""
        names = tuple(group.name for group in self.groups)
        if not self.groups:
            return [self._query(domain, ())]
        sizes = [len(group.parts(domain)) for group in self.groups]
        if self.is_plain or (fresh and math.prod(sizes) >= FEW):
            return marginal(domain, *dict.fromkeys((*names, self.name) if self.name else names), where=self.where)
        marginal(domain, *names, where=self.where)  # refuses what has no table
        if math.prod(sizes) > MAX_SEPARATE:
            raise InvalidQuery(
                f"a value for each of {math.prod(sizes):,} groups is asked in parts; {MAX_SEPARATE:,} go."
            )
        return [self._query(domain, cell) for cell in product(*(group.parts(domain) for group in self.groups))]

    def _query(self, domain: Domain, cell: Sequence[range]) -> Query:
        inside = [Query.among(domain, group.name, part) for group, part in zip(self.groups, cell, strict=True)]
        weighed = [Query.weighted(domain, [self.name], self.weights)] if self.name else []
        return Query.all([self.where, *inside, *weighed])

    @property
    def rounding(self) -> float:
        """How far a weight is from the grid that questions live on, at most."""
        w = np.asarray(self.weights, dtype=np.float64)
        return float(np.abs(np.rint(w * GRID) / GRID - w).max(initial=0.0))


@dataclass(frozen=True)
class Plan:
    """The columns that a composed value needs, and how it is put together: low + span * ratio, or a sum of them.

    A ratio is one column / another, of which it is a part, so that it lies in [0, 1].
    """

    columns: tuple[Column, ...]
    factors: tuple[float, ...]  # of a sum; of a ratio: (span,)
    ratio: bool = False
    low: float = 0.0
    rows: int = 0
    note: str = ""

    def put_together(self, parts: Sequence[Composed], confidence: float, free: Loss) -> Composed:
        if not parts:
            return Composed([self.low], [0.0], confidence, Facts("public", free, None, self.note))
        facts = Facts.of([*(part.facts for part in parts), Facts("public", free, None, self.note)])
        noisy = sum(any(error != 0 for error in part.errors) for part in parts)
        confidence = sure(noisy, confidence) if noisy else confidence
        values: list[float] = []
        errors: list[float | None] = []
        for i in range(len(parts[0].values)):
            if self.ratio:
                top, bottom = parts
                share, error = ratio(top.values[i], top.errors[i], bottom.values[i], bottom.errors[i])
                span = self.factors[0]
                moved = self.columns[0].rounding * span
                values.append(self.low + span * share)
                errors.append(None if error is None else min(span, span * error + moved))
            else:
                bars = [part.errors[i] for part in parts]
                moved = sum(self.rows * abs(f) * c.rounding for f, c in zip(self.factors, self.columns, strict=True))
                values.append(sum(f * part.values[i] for f, part in zip(self.factors, parts, strict=True)))
                added = sum(abs(f) * (bar or 0.0) for f, bar in zip(self.factors, bars, strict=True))
                errors.append(None if None in bars else added + moved)
        if confidence <= 0:
            errors = [None] * len(errors)
        if self.ratio and None in errors:
            said = "the count that is divided by may be 0: nothing is guaranteed"
            facts = replace(facts, note=joined((facts.note, said)))
        return Composed(values, errors, confidence, facts)


def fraction(where: Query, given: Query, groups: tuple[Group, ...] = ()) -> Plan:
    """The share of the rows of `given` that also meet `where`, in each group."""
    if given.is_constant and not given.is_everyone:
        raise InvalidQuery("no row can meet the condition below the line, so there is no fraction.")
    return Plan((Column(groups, Query.all([where, given])), Column(groups, given)), (1.0,), ratio=True)


def total(domain: Domain, rows: int, name: str, where: Query, groups: tuple[Group, ...] = ()) -> Plan:
    """The sum of an attribute's values, in each group: a question about positive values, and one about negative."""
    values, note = _amounts(domain, name, where, summed=True)
    columns, factors = [], []
    for sign in (1.0, -1.0):
        part = np.where(np.isnan(values), 0.0, np.maximum(sign * values, 0.0))
        if part.max(initial=0.0) > 0:
            columns.append(_weighed(domain, name, where, groups, part / part.max()))
            factors.append(sign * float(part.max()))
    if not columns and groups:
        raise InvalidQuery(f"no row that meets the condition has a value of {name} other than 0.")
    return Plan(tuple(columns), tuple(factors), rows=rows, note=note)


def mean(domain: Domain, name: str, where: Query, groups: tuple[Group, ...] = ()) -> Plan:
    """The mean of an attribute's values, in each group: where they lie between the least and the largest, on average.

    Only values that the condition allows count for that, so a narrow condition has a narrow error bar.
    """
    values, note = _amounts(domain, name, where, summed=False)
    inside = ~np.isnan(values)
    if not inside.any():
        raise InvalidQuery(f"no row that meets the condition has a value of {name}, so there is no mean.")
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if low == high:
        if groups:
            raise InvalidQuery(f"every row that meets the condition has the same {name}, {low:g}.")
        return Plan((), (), low=low, note=note)
    place = np.where(inside, (values - low) / (high - low), 0.0)
    top = _weighed(domain, name, where, groups, place)
    return Plan((top, _weighed(domain, name, where, groups, inside)), (high - low,), ratio=True, low=low, note=note)


def ratio(top: float, top_error: float | None, bottom: float, bottom_error: float | None) -> tuple[float, float | None]:
    """A part by its whole, cut to [0, 1], and how far off it can be where both bars hold.

    The extremes of t/b over the two intervals are at their ends, since b stays above 0; where it may not, the truth may
    have no value at all, and nothing is promised.
    """
    value = min(max(top / max(bottom, 1.0), 0.0), 1.0)
    if top_error is None or bottom_error is None or bottom - bottom_error <= 0:
        return value, None
    high = min(1.0, max(0.0, top + top_error) / (bottom - bottom_error))
    low = max(0.0, top - top_error) / (bottom + bottom_error)
    return value, max(high - value, value - low, 0.0)


def sure(parts: int, confidence: float) -> float:
    """How sure several bars are at once: the union bound."""
    return round(max(0.0, 1 - parts * (1 - confidence)), 12)


def _weighed(
    domain: Domain, name: str, where: Query, groups: tuple[Group, ...], weights: NDArray[np.generic]
) -> Column:
    padded = np.zeros(domain[name].size)
    padded[: len(weights)] = np.minimum(weights.astype(np.float64), 1.0)
    return Column(groups, where, domain.resolve(name), tuple(padded.tolist()))


def _amounts(domain: Domain, name: str, where: Query, *, summed: bool) -> tuple[Floats, str]:
    """The number that stands for each bin, NaN where the condition allows no row, and what has to be said of it."""
    name, attribute = domain.resolve(name), domain[name]
    if attribute.size > MAX_TABLE:
        raise InvalidQuery(f"{name} has {attribute.size:,} values; at most {MAX_TABLE:,} can be weighed.")
    values, rounding = _middles(name, attribute)
    said = f"a value is taken for the middle of its bin, off by at most {rounding:g} beyond the error bar"
    if summed:  # all values can be off the same way
        said = (
            f"a value is taken for the middle of its bin, off by at most {rounding:g}, "
            f"so the sum by at most {rounding:g} times the number of its rows beyond the error bar"
        )
    note = said if rounding else ""
    if attribute.other is not None:
        note = joined((note, f"rows whose {name} is {attribute.other} are left out"))
    return np.where(_possible(where, name, attribute.size)[: attribute.bins], values, np.nan), note


def _middles(name: str, attribute: Attribute) -> tuple[Floats, float]:
    if isinstance(attribute.values, Listed):
        if isinstance(attribute.values.values[0], str):
            raise InvalidQuery(f"{name} is not a number, so it has no sum and no mean.")
        return np.array([float(value) for value in attribute.values.values]), 0.0
    if isinstance(attribute.values, Days):
        raise InvalidQuery(f"{name} has dates, which have a median but no sum and no mean.")
    edges = np.array([attribute.edge(i) for i in range(attribute.bins + 1)], dtype=np.float64)
    lows, highs = edges[:-1], edges[1:] - attribute.values.whole
    return (lows + highs) / 2, float((highs - lows).max() / 2)


def _possible(where: Query, name: str, size: int) -> NDArray[np.bool_]:
    """Which values of an attribute a row that meets the condition can have (all, where that is not plain to see)."""
    factor = next((factor for factor in where.factors if name in factor.scope), None)
    if where.is_constant:
        return np.full(size, where.is_everyone)
    if factor is None or (where.complement and len(where.factors) > 1):
        return np.ones(size, dtype=np.bool_)
    weights = factor.flipped().weights if where.complement else factor.weights
    others = tuple(axis for axis, other in enumerate(factor.scope) if other != name)
    return np.asarray(weights.max(axis=others) > 0)
