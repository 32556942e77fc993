"""The rows of a statement: released groups and values, and what is worked out from them. For `answering`.

A bar of one value holds at the session's confidence; what is worked out from k noisy ones holds at 1 - k(1 - c), by the
union bound. A value put together from several rows rests on the bars of all of them: on bars that hold for all rows at
once where there are such, and else on k times as many.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple, cast

import numpy as np

from tacit.model import span
from tacit.model.aggregate import Aggregate
from tacit.model.answer import Answer
from tacit.model.calculation import (
    NO_LIMITS,
    Given,
    Outer,
    Relation,
    Risks,
    bare,
    confidence,
    evaluate,
    limits_of,
    risks_of,
)
from tacit.model.curve import Quantile
from tacit.model.derivation import Derived, Fold, Folded, attribute_of
from tacit.model.facts import EXACT, ROWS, joined
from tacit.model.formula import Figure
from tacit.model.select import Select
from tacit.model.span import Spans, Texts, Values, Verdicts, Wholes
from tacit.model.table import Listing, Row
from tacit.release import composition, quantiles
from tacit.release.evidence import Found, Need, Setting, facts_of, with_widest

Single = Callable[[Aggregate], Answer]  # the answer to a value of all rows
Noted = list[str]
_CHOSEN = "the rows were chosen by noisy values: a bar holds for its group by itself, not for the choice"


class _Sources(NamedTuple):
    """What rows are made from, and where notes on them go. With `at_once`, a bar holds for all rows of a column."""

    found: Found
    setting: Setting
    single: Single
    notes: Noted
    at_once: bool = False


_BINS = "a quantile is the middle of its bin; its bar goes to the ends of the bins that could hold it"
_UNKNOWN = (
    "where what is divided by may be 0, a value is too large, or too many bars are used at once, nothing is guaranteed"
)


def answer(derived: Derived, needs: Sequence[Need], found: Found, setting: Setting, single: Single) -> Answer | Listing:
    """The rows of a statement, or its one number."""
    notes = Noted()
    made = _derived(derived, _Sources(found, setting, single, notes))
    shown = [(one.title, one.node, column) for one, column in zip(derived.shown, made.columns, strict=True)]
    labels = [(title, column) for title, _, column in shown if isinstance(column, Texts)]
    values = [(i, title, node) for i, (title, node, column) in enumerate(shown) if isinstance(column, Spans)]
    errors = [_errors(made, i) for i, _, _ in values]
    plain = [bare(node) for _, _, node in values]
    if any(None in column for column, free in zip(errors, plain, strict=True) if not free) and _worked_out(derived):
        notes.append(_UNKNOWN)
    facts = facts_of(needs, found, made.confidence, setting)
    shown_errors = [one for column, free in zip(errors, plain, strict=True) if not free for one in column]
    together = any(ROWS in key for i, _, _ in values for key in made.risks[i] if isinstance(key, tuple))
    if made.rows or not values:
        facts = with_widest(facts, shown_errors, needs, found, ROWS if together else None)
        some = [one for one in shown_errors if one is not None]
        if some and len(some) < len(shown_errors):  # the line below says of how many; this is what theirs are about
            (bar,) = with_widest(facts, some, needs, found, ROWS if together else None).bars
            notes.append(f"the bars that there are hold for {bar.about}")
    facts = replace(facts, note=joined((*notes, *derived.notes)))
    text = derived.summary(setting.domain)
    numbers = [cast(Spans, made.columns[i]).value.tolist() for i, _, _ in values]
    limits = tuple(made.limits[i] for i, _, _ in values)
    if not derived.grouped and len(shown) == 1 and values and not plain[0]:
        return Answer(text, numbers[0][0], facts, limits[0])
    listed = tuple(
        Row(
            tuple(str(column.text[i]) for _, column in labels),
            tuple(column[i] for column in numbers),
            tuple(column[i] for column in errors),
        )
        for i in range(made.rows)
    )
    return Listing(
        question=text,
        names=tuple(title for title, _ in labels),
        titles=_distinct([title for _, title, _ in values]),
        listed=listed,
        facts=facts,
        limits=limits,
        plain=tuple(plain),
    )


def columns_alone(derived: Derived, setting: Setting) -> Listing:
    """A statement that has no rows whatever is released: its columns, which are public."""
    shown = list(zip(derived.shown, derived.kinds, strict=True))
    values = [one for one, kind in shown if kind == "number"]
    return Listing(
        question=derived.summary(setting.domain),
        names=tuple(one.title for one, kind in shown if kind == "text"),
        titles=_distinct([one.title for one in values]),
        listed=(),
        facts=setting.public(joined(derived.notes)),
        limits=(NO_LIMITS,) * len(values),
        plain=tuple(bare(one.node) for one in values),
    )


def _worked_out(derived: Derived) -> bool:
    """Whether something else than released columns is shown: their own notes say what is to be said."""
    return not isinstance(derived.source, Select) or any(not isinstance(one.node, Given) for one in derived.shown)


def _errors(made: Relation, column: int) -> list[float | None]:
    spans = cast(Spans, made.columns[column])
    if confidence(made.risks[column]) <= 0:
        return [None] * made.rows
    errors = made.errors.get(column, spans.error)
    return [error if math.isfinite(error) else None for error in errors.tolist()]


def _distinct(titles: list[str]) -> tuple[str, ...]:
    """Titles that differ: the second of two equal ones is numbered."""
    seen: list[str] = []
    for title in titles:
        same = sum(title == other for other in titles[: len(seen)])
        seen.append(f"{title} ({same + 1})" if same else title)
    return tuple(seen)


# -- rows -------------------------------------------------------------------------------------------------------------


def _rows(source: Select | Folded | Derived, sources: _Sources) -> Relation:
    if not source.most_rows(sources.setting.domain):
        return _no_rows(source)
    if isinstance(source, Select):
        return _released(source, sources)
    if isinstance(source, Folded):
        found = _folded(source, sources)
        if sources.at_once or all(confidence(risks) >= sources.setting.confidence for risks in found.risks):
            return found
        # Values are the same either way: only bars differ. Notes were made the first time.
        surer = _folded(source, sources._replace(notes=Noted(), at_once=True))
        better = [
            isinstance(one, Spans) and bool(np.isfinite(one.error).all()) and confidence(risks) > 0
            for one, risks in zip(surer.columns, surer.risks, strict=True)
        ]
        columns, risks = (
            tuple(new if take else old for old, new, take in zip(*both, better, strict=True))
            for both in ((found.columns, surer.columns), (found.risks, surer.risks))
        )
        return replace(found, columns=columns, risks=risks)
    return _derived(source, sources)


def _no_rows(source: Select | Folded | Derived) -> Relation:
    """What has no rows whatever is released, so nothing was: its columns, in which nothing is private."""
    columns = tuple[Values, ...](Texts.of([]) if kind == "text" else Spans.none(0) for kind in source.kinds)
    labels = {attribute_of(source, i) for i, kind in enumerate(source.kinds) if kind == "text"}
    none = np.zeros(0, dtype=np.int64)
    return Relation(
        0, columns, ({},) * len(columns), {name: (0, none) for name in labels if name}, (NO_LIMITS,) * len(columns)
    )


def _with_others(source: Folded | Derived, sources: _Sources) -> Relation:
    """The rows of what a statement is of, with the values of other statements beside them."""
    given = _rows(source.source, sources)
    others = [_rows(other, sources) for other in source.elsewhere]
    return replace(given, elsewhere=tuple(_beside(other, given) for other in others))


def _released(select: Select, sources: _Sources) -> Relation:
    """The groups and values of the inner part: all that touches what is private, and released already."""
    setting, notes = sources.setting, sources.notes
    parts = [group.parts(setting.domain) for group in select.groups]
    every = list(product(*(range(len(part)) for part in parts)))
    cells = np.array(every, dtype=np.int64).reshape(len(every), len(parts))
    columns, risks, limits = list[Values](), list[Risks](), list[tuple[float, float]]()
    groups = dict[str, tuple[int, Wholes]]()
    errors = dict[int, span.Floats]()
    for at, (group, part) in enumerate(zip(select.groups, parts, strict=True)):
        names, ranks = group.labels(setting.domain), cells[:, at]
        columns.append(Texts.of([names[i] for i in ranks], ranks.tolist()))
        groups[group.name] = setting.domain[group.name].size, np.array([one[0] for one in part])[ranks]
        risks.append({})
        limits.append(NO_LIMITS)
    if select.groups and not select.columns:
        notes.append("declared values, whether a row has them or not")
    for column in select.columns:
        if isinstance(column.value, Quantile):
            made = quantiles.numbers(column.value, select.groups, sources.found, setting)
            # Its bars hold for each row by itself, so nothing is known of several rows at once.
            unknown = sources.at_once and len(cells) > 1
            nothing = Spans(made.spans.value, *(np.full(len(cells), end) for end in NO_LIMITS))
            errors[len(columns)] = nothing.error if unknown else made.errors
            columns.append(nothing if unknown else made.spans)
            risks.append({(column.value, select.groups): 1.0 if unknown else made.unsure})
            limits.append(made.limits)
            notes += [_BINS, made.note]
            continue
        figures, risk = _figures(column.value, select, sources)
        ends = column.value.formula.limits(setting.rows)
        numbers = np.array([one.value for one in figures], dtype=np.float64)
        bars = np.array([math.inf if one.error is None else one.error for one in figures], dtype=np.float64)
        errors[len(columns)] = bars
        columns.append(span.around(numbers, bars, *ends))
        risks.append(risk)
        limits.append(ends)
    return Relation(len(cells), tuple(columns), tuple(risks), groups, tuple(limits), errors=errors)


def _figures(ask: Aggregate, select: Select, sources: _Sources) -> tuple[Sequence[Figure], Risks]:
    """A value for each group, and what it rests on."""
    found, setting, single, notes, at_once = sources
    unsure = 1 - setting.confidence
    if select.groups:
        made = composition.figures(ask, select.groups, found, setting, at_once=at_once)
        notes.append(made.facts.note)
        event = (ROWS,) if at_once else ()
        return made.figures, {(part, select.groups, *event): made.unsure for part in made.noisy}
    one = single(ask)
    notes.append(one.note)
    if one.bars and one.bars[0].about == EXACT:
        return [Figure(one.value, one.error)], {}
    if getattr(ask, "from_ranges", False):  # read off a release of all ranges, whose band is one event
        return [Figure(one.value, one.error)], {ask: 1 - one.confidence}
    parts = composition.noisy(ask, found, setting)
    return [Figure(one.value, one.error)], {
        (part, ()): max(unsure, (1 - one.confidence) / len(parts)) for part in parts
    }


def _derived(derived: Derived, sources: _Sources) -> Relation:
    setting, notes = sources.setting, sources.notes
    given = _with_others(derived, sources)
    risks = [risks_of(one.node, given) for one in derived.shown]
    limits = [limits_of(one.node, given) for one in derived.shown]
    sure = [confidence(risk) for risk, kind in zip(risks, derived.kinds, strict=True) if kind == "number"]
    given = replace(given, confidence=min((one for one in sure if one > 0), default=setting.confidence))
    if derived.where is not None:
        verdict = cast(Verdicts, evaluate(derived.where, given))
        doubtful = int(verdict.unsure.sum())
        if doubtful:
            notes.append(f"{doubtful:,} of {given.rows:,} rows could be on either side of the condition, by their bars")
        if risks_of(derived.where, given):
            notes.append(_CHOSEN)
            given = replace(given, chosen=True)
        given = given.at(np.flatnonzero(verdict.value == 1))
    order = list(range(given.rows))
    for sort in reversed(derived.sort):  # sorts keep the order of equals, so the first key is sorted by last
        order = _sorted(order, evaluate(sort.node, given), descending=sort.descending)
    kept = order[derived.offset : None if derived.limit is None else derived.offset + derived.limit]
    if len(kept) < len(order) and any(risks_of(sort.node, given) for sort in derived.sort):
        notes.append(_CHOSEN)
        given = replace(given, chosen=True)
    given = given.at(np.array(kept, dtype=np.int64))
    columns = tuple(evaluate(one.node, given) for one in derived.shown)
    for one, column in zip(derived.shown, columns, strict=True):
        if isinstance(column, Texts) and column.unsure.any():
            notes.append(
                f"{column.unsure.sum():,} of {given.rows:,} texts of {one.title} could be others, by their bars"
            )
    moved = dict[int, span.Floats]()
    for i, one in enumerate(derived.shown):
        if isinstance(one.node, Given) and one.node.index in given.errors:
            moved[i] = given.errors[one.node.index]
    return replace(given, columns=columns, risks=tuple(risks), limits=tuple(limits), elsewhere=(), errors=moved)


def _sorted(order: list[int], keys: Values, *, descending: bool) -> list[int]:
    assert not isinstance(keys, Verdicts)
    ranks = (keys.rank if isinstance(keys, Texts) else keys.value).tolist()
    gone = [i for i in order if ranks[i] != ranks[i]]  # NULL
    there = [i for i in order if ranks[i] == ranks[i]]
    return sorted(there, key=ranks.__getitem__, reverse=descending) + gone


def _beside(other: Relation, given: Relation) -> tuple[Spans, Risks]:
    """The value of another statement for each row: the one that it has, or the one for the same groups."""
    column, risks = cast(Spans, other.columns[-1]), other.risks[-1]
    ours, theirs = ([list(side.groups[name][1]) for name in other.groups] for side in (given, other))
    at = {key: i for i, key in enumerate(zip(*theirs, strict=True))} if other.groups else {(): 0}
    keys = list(zip(*ours, strict=True)) if other.groups else [()] * given.rows
    rows = np.array([at.get(key, -1) if other.rows else -1 for key in keys], dtype=np.int64)
    nothing = Spans.unknown(1) if other.chosen else Spans.none(1)
    padded = Spans(*(np.append(part, end) for part, end in zip(column, nothing, strict=True)))
    return padded.at(np.where(rows < 0, other.rows, rows)), risks


# -- rows put together ------------------------------------------------------------------------------------------------


def _of_no_rows(folds: Sequence[Fold]) -> Relation:
    """What is put together from no rows, whatever is released: a count is 0, and all else NULL."""
    made = tuple(Spans.known(np.zeros(1)) if fold.kind == "count" else Spans.none(1) for fold in folds)
    return Relation(1, made, ({},) * len(made), {}, (NO_LIMITS,) * len(made))


def _folded(folded: Folded, sources: _Sources) -> Relation:
    if not folded.by and not folded.source.most_rows(sources.setting.domain):
        return _of_no_rows(folded.folds)
    given = _with_others(folded, sources)
    everything = np.arange(given.rows)
    where = _met(folded.where, given)
    if folded.by:
        keys = list(zip(*(cast(Texts, given.columns[i]).text.tolist() for i in folded.by), strict=True))
        members = dict[tuple[str, ...], list[int]]()
        for row, key in enumerate(keys):
            members.setdefault(key, []).append(row)
        groups = [np.array(rows, dtype=np.int64) for rows in members.values()]
    else:
        groups = [everything]
    first = np.array([rows[0] for rows in groups if len(rows)], dtype=np.int64)
    columns: list[Values] = [given.columns[i].at(first) for i in folded.by]
    risks: list[Risks] = [{} for _ in folded.by]
    # Each row has bars of its own, and all of them must hold, unless they do so together.
    most = 1 if sources.at_once else max(map(len, groups), default=0)
    for fold in folded.folds:
        met = span.both(where, _met(fold.where, given))
        of = None if fold.node is None else cast(Spans, evaluate(fold.node, given))
        made = [_fold(fold, met.at(rows), None if of is None else of.at(rows), given.chosen) for rows in groups]
        columns.append(Spans(*(np.array(part, dtype=np.float64) for part in zip(*made, strict=True))))
        used = [node for node in (fold.node, fold.where, folded.where) if node is not None]
        resting = [pair for node in used for pair in risks_of(node, given).items()]
        risks.append({key if sources.at_once else ("each row", key): most * risk for key, risk in resting})
    named = {attribute_of(folded.source, i) for i in folded.by}
    kept = {name: one for name, one in given.groups.items() if name in named}
    return Relation(
        len(groups),
        tuple(columns),
        tuple(risks),
        {name: (size, at[first]) for name, (size, at) in kept.items()},
        (NO_LIMITS,) * len(columns),
        chosen=given.chosen and folded.grouped,
    )


def _met(node: Outer | None, given: Relation) -> Verdicts:
    return Verdicts.known(np.ones(given.rows)) if node is None else cast(Verdicts, evaluate(node, given))


def _fold(fold: Fold, met: Verdicts, of: Spans | None, chosen: bool) -> tuple[float, float, float]:
    """A value and the ends of its interval: a row that may be left out, or be in, counts for both.

    NULLs are passed over. Of no rows it is NULL, for certain unless rows were chosen by noisy values.
    """
    met = met if of is None else span.both(met, Verdicts.known(~of.gone))
    certain, inside = met.true & ~met.false & ~met.null, met.value == 1
    count = float(inside.sum()), float(certain.sum()), float(met.true.sum())
    if of is None:
        return count
    if not met.true.any():
        return math.nan, *(NO_LIMITS if chosen else (math.nan, math.nan))
    if fold.kind in ("min", "max"):
        largest = _largest(of if fold.kind == "max" else span.negative(of), inside, certain, met.true)
        return largest if fold.kind == "max" else (-largest[0], -largest[2], -largest[1])
    there = inside & ~np.isnan(of.value)
    low = np.where(certain, of.low, np.where(met.true, np.minimum(of.low, 0.0), 0.0))
    high = np.where(certain, of.high, np.where(met.true, np.maximum(of.high, 0.0), 0.0))
    value = math.fsum(of.value[there]) if there.any() else math.nan
    exists = fold.kind != "sum" or certain.any()  # a sum of no rows is NULL
    bounded = exists and np.isfinite([low, high]).all()
    ends = (_summed(low, -math.inf), _summed(high, math.inf)) if bounded else NO_LIMITS
    if fold.kind == "sum":
        return value, *ends
    added, rows = (Spans(*(np.full(1, x) for x in one)) for one in ((value, *ends), (there.sum(), *count[1:])))
    with np.errstate(all="ignore"):
        mean = span.over(added, rows)
    return float(mean.value[0]), float(mean.low[0]), float(mean.high[0])


def _largest(of: Spans, inside: span.Bools, certain: span.Bools, possible: span.Bools) -> tuple[float, float, float]:
    """The largest is at least what each row that is certainly there is, and at most what one that may be there is."""
    found = float(np.nanmax(of.value[inside & ~np.isnan(of.value)], initial=-math.inf))
    ends = float(of.low[certain].max(initial=-math.inf)), float(of.high[possible].max(initial=-math.inf))
    return math.nan if math.isinf(found) else found, *(ends if np.isfinite(ends).all() else NO_LIMITS)


def _summed(ends: span.Floats, towards: float) -> float:
    """A sum that is rounded once, outwards; whole numbers that the machine can count up to are not."""
    total = math.fsum(ends)
    whole = abs(total) < 2.0**53 and bool((np.floor(ends) == ends).all())
    return total if whole else math.nextafter(total, towards)
