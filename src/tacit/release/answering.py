"""A question taken apart, and its answer put together: two pure functions of the question and of what is public.

`parts` says what has to be known to answer; `combine` makes the answer of it. A dry run prices the parts; an answer
fetches them. A bar for one answer holds at the session's confidence c; a value made of k noisy answers holds at
1 - k(1 - c), by the union bound, whatever their noise has to do with each other.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from tacit.model.answer import Answer, percent
from tacit.model.ask import (
    Aggregate,
    Ask,
    Cdf,
    Count,
    Crosstab,
    Derived,
    Fraction,
    Histogram,
    Mean,
    Quantile,
    Range,
    Select,
    Stat,
    Sum,
)
from tacit.model.block import column_of_blocks
from tacit.model.clamped import clamped_values
from tacit.model.derivation import identity
from tacit.model.facts import EXACT, joined
from tacit.model.formula import IF_ANY, Figure, Weighed
from tacit.model.possible import possible
from tacit.model.query import Query
from tacit.model.status import Expected
from tacit.model.table import Answers, Listing, Table
from tacit.model.workload import Marginal
from tacit.release import composition, curves, quantiles, statement
from tacit.release.estimate import TableEstimate
from tacit.release.evidence import Found, Need, Setting, answer_to, need_of_table, once, release_of
from tacit.release.quotients import formula_of, formulas_of


def parts(ask: Ask, setting: Setting) -> tuple[Need, ...]:
    """All that a question needs to be answered, each once. Refuses what has no answer."""
    domain = setting.domain
    match ask:
        case Count():
            return (ask.query,)
        case Stat():
            return (ask.statistic,)
        case Crosstab():
            return (need_of_table(ask.table, domain),)
        case Cdf() | Histogram() | Range():
            return curves.needs_of(ask, setting)
        case Quantile() | Mean() if ask.from_ranges:
            return curves.needs_of(ask, setting)
        case Quantile():
            return quantiles.needs_of(ask, setting)
        case Fraction() if ask.certain is not None:
            return ()
        case Select() if ask.crosstab is not None:
            return parts(ask.crosstab, setting)
        case Select(groups=()):
            return once(need for column in ask.columns for need in parts(column.value, setting))
        case Derived():
            # What would be refused with rows is refused without.
            wanted = {select: parts(select, setting) for select in ask.selects}
            return once(need for select in ask.needed(domain) for need in wanted[select])
        case Select():
            needs = (composition.needs_of(part, ask.groups, setting) for part in _weighed(ask, setting))
            counted = [one for need in needs for one in ([need] if isinstance(need, Marginal) else need)]
            ranked = [column.value for column in ask.columns if isinstance(column.value, Quantile)]
            return once(
                [*counted, *(need for one in ranked for need in quantiles.number_needs(one, ask.groups, setting))]
            )
    return once(part.query(domain) for part in formula_of(ask, setting).parts)


def combine(ask: Ask, found: Found, setting: Setting, words: str | None = None) -> Answers:
    """The answer to a question from its parts; `words` are the question's own, where they are known already."""
    made = _made(ask, found, setting, words)
    if made.facts.bars and made.facts.bars[0].confidence >= setting.confidence:
        return made
    why = _why_less_sure(made, setting)
    return replace(made, facts=replace(made.facts, note=joined((why, made.facts.note)))) if why else made


def _why_less_sure(made: Answers, setting: Setting) -> str:
    """Why an answer is less sure than the session was told to be: several bars have to hold together."""
    sure = made.confidence
    if not made.facts.bars and not (isinstance(made, Listing) and made.unbarred()[0] < made.unbarred()[1]):
        return ""  # nothing is promised
    together = (1 - sure) / (1 - setting.confidence)
    if not 0 < sure < setting.confidence or abs(together - round(together)) > 1e-6:
        return ""
    return f"{percent(sure)}: {round(together):,} answers of {percent(setting.confidence)} together"


def _made(ask: Ask, found: Found, setting: Setting, words: str | None = None) -> Answers:
    made = _combined(ask, found, setting, words if words is not None else ask.words(setting.domain))
    if isinstance(ask, Count):  # nearly every question is one, and has said what there is to say
        return made
    ranged = isinstance(ask, Cdf | Histogram | Range) or (isinstance(ask, Quantile | Mean) and ask.from_ranges)
    more = joined((*clamped_values(ask, setting.domain), curves.offer(ask, found, setting) if ranged else ""))
    return replace(made, facts=replace(made.facts, note=joined((made.facts.note, more)))) if more else made


def bar_to_expect(ask: Ask, width: float, rows: int) -> Expected:
    """What the half width of each count that is bought for a question says of its answer, before there is one."""
    if isinstance(ask, Select) and ask.crosstab is not None:
        return bar_to_expect(ask.crosstab, width, rows)
    if isinstance(ask, Select) and len(ask.columns) == 1 and not ask.groups:
        return bar_to_expect(ask.columns[0].value, width, rows)
    match ask:
        case Count() | Stat():
            return Expected(width, "rows")
        case Crosstab():
            return Expected(width, "rows in each group")
        case Sum() if len(ask.formula.parts) == 1:  # it is linear: its bar is the same whatever the value
            error = ask.formula.put_together([Figure(0.0, width)], rows).error
            if error is not None:
                return Expected(error, f"in the unit of {ask.name}")
    return Expected(width, "rows in each count that it is made of")  # what that makes of it depends on the answer


def _combined(ask: Ask, found: Found, setting: Setting, text: str) -> Answers:
    match ask:
        case Count():
            one = answer_to(text, ask.query, found, setting.rows)
            return replace(one, facts=replace(one.facts, note=joined((one.note, *ask.notes)))) if ask.notes else one
        case Stat():
            return answer_to(text, ask.statistic, found, setting.rows)
        case Crosstab():
            return _table(text, ask, found, setting)
        case Cdf():
            return curves.cdf(text, ask, found, setting)
        case Histogram():
            return curves.histogram(text, ask, found, setting)
        case Range():
            return curves.range_count(text, ask, found, setting)
        case Quantile():
            return quantiles.quantile(text, ask, found, setting)
        case Mean() if ask.from_ranges and (released := release_of(ask.name, ask.share, found)):
            return curves.mean(text, ask, released, setting)
        case Fraction() if ask.certain is not None:
            facts = setting.public("" if ask.given.is_everyone else IF_ANY)  # how many rows there are is public
            return Answer(text, ask.certain, facts.within(0, EXACT), (0, 1))
        case Select():
            return _selected(ask, found, setting)
        case Derived():
            return _worked_out(ask, found, setting)
    values, formula = composition.figures(ask, (), found, setting), ask.formula
    return Answer(
        text, values.figures[0].value, values.facts, formula.limits(setting.rows), formula.beyond(setting.rows)
    )


# -- single numbers and tables ----------------------------------------------------------------------------------------


def _table(text: str, ask: Crosstab, found: Found, setting: Setting) -> Table:
    domain = setting.domain
    labels = tuple(tuple(domain[n].label(i) for i in range(domain[n].size)) for n in ask.names)
    along = next((name for name in ask.names if name == column_of_blocks(domain)), None)
    made = partial(Table, question=text, names=ask.names, labels=labels, along=along)
    need = need_of_table(ask.table, domain)
    if isinstance(need, Query):
        one = answer_to(text, need, found, setting.rows)
        values = np.full((1,) * len(ask.names), float(one.value))
        return made(values=values, facts=one.facts, limits=one.limits)
    estimate = found[need]
    assert isinstance(estimate, TableEstimate)
    order = [ask.table.names.index(name) for name in ask.names]
    values = np.ascontiguousarray(estimate.values.transpose(order))
    own = None if estimate.own is None else np.ascontiguousarray(estimate.own.transpose(order))
    ruled_out = ~possible(ask.where, ask.names, values.shape)
    if not ruled_out.any():
        return made(values=values, facts=estimate.facts, limits=(0, setting.rows), own=own)
    # What the condition rules out has noise in a table that was bought whole.
    said = f"the condition leaves no row for {ruled_out.sum():,} of {ruled_out.size:,} groups, which are 0 exactly"
    facts = replace(estimate.facts, note=joined((estimate.facts.note, said)))
    values, width = np.where(ruled_out, 0, values), np.inf if facts.width is None else facts.width
    own = np.where(ruled_out, 0.0, width if own is None else own)
    return made(values=values, facts=facts, limits=(0, setting.rows), own=own)


# -- statements -------------------------------------------------------------------------------------------------------


def _weighed(select: Select, setting: Setting) -> list[Weighed]:
    return [
        part
        for column in select.columns
        if not isinstance(column.value, Quantile)
        for formula in formulas_of(column.value, select.groups, setting)
        for part in formula.parts
    ]


def _selected(select: Select, found: Found, setting: Setting) -> Answers:
    if len(select.columns) == 1 and not select.groups:
        return _noted(_made(select.columns[0].value, found, setting), select)
    if select.crosstab is not None:
        return _noted(_made(select.crosstab, found, setting), select)
    return _worked_out(identity(select), found, setting)


def _noted(answer: Answers, select: Select) -> Answers:
    return replace(answer, facts=replace(answer.facts, note=joined((answer.facts.note, *select.notes))))


def _worked_out(derived: Derived, found: Found, setting: Setting) -> Answers:
    if not derived.most_rows(setting.domain):
        return statement.columns_alone(derived, setting)

    def single(ask: Aggregate) -> Answer:
        one = _made(ask, found, setting)
        assert isinstance(one, Answer)
        return one

    # What was found is what was needed. To work that out again is no use: what was bought meanwhile changes it.
    return statement.answer(derived, tuple(found), found, setting, single)
