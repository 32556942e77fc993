"""Which mechanism, with which settings, and what errors to expect: from public parameters alone. Anybody may call it.

Fresh noise is chosen where no release is expected to err less in the mean: a release answers what nobody planned, too,
and fresh noise keeps back the budget of questions that are never asked. Among releases the choice is by the bar that
answers will be shown with, because that is what people can rely on. The warm start's is a forecast and not a law: so it
must be narrower by more than it can be off by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tacit.errors import ConfigError, TacitError
from tacit.exact.price import MOST_PER_PERSON
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.model.table import aligned
from tacit.release.forecast import (
    MOST_QUESTIONS,
    Look,
    Outlook,
    Sizes,
    least_epsilon,
)  # fmt: skip
from tacit.release.mechanisms import PLANNED

if TYPE_CHECKING:
    from rich.table import Table

    from tacit.show.chart import Grid

MAX_PLANNED_ROWS = 2**40
THEOREM = "Roth, lecture 12, theorem 7, from a uniform start"
HEADINGS = ("mechanism", "mean", "largest", "bar", "all at once", "worst case", "epsilon needed")
MARGIN = 1.2  # a fitted bar is multiplied by this before it is compared
USELESS = 0.25  # of the rows: an expected largest error above this is no answer
_NOT_IN_FORECASTS = (
    "Forecasts know sizes, not the table. Attributes that depend on each other in threes, but not in pairs, can make\n"
    "errors several times as large. Once it is started, a session's base foretells them anew, from what was released."
)
_POINTS, _DRAWN = 25, 1e-3  # of a line in a picture; smaller errors, in rows, leave it


def says_nothing(error: float) -> bool:
    """Whether a promise is empty: replacing all n rows moves a count by n, so no error exceeds 1."""
    return error >= 1


@dataclass(frozen=True)
class Forecast:
    """A mechanism's figures; errors are fractions of the rows. None: there is none, and `note` may say why.

    mean, largest: expected. bar: the one that an answer will be shown with, at the plan's confidence. promised: no
    answer is farther off, at that confidence; `promise` says by what.
    worst_case: the theorem's, for any table and any questions; above 1 it says nothing.
    epsilon_needed: for the wanted accuracy of all answers at once, promised, or certified as far as can be foreseen.
    """

    mechanism: str
    mean: float | None = None
    largest: float | None = None
    bar: float | None = None
    promised: float | None = None
    promise: str = ""
    worst_case: float | None = None
    epsilon_needed: float | None = None
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For JSON, each figure labelled for what it is."""
        theorem = {"error": self.worst_case, "theorem": THEOREM, "says_nothing": says_nothing(self.worst_case or 0)}
        return {
            "mechanism": self.mechanism,
            "mean": {"error": self.mean, "kind": "expected"},
            "largest": {"error": self.largest, "kind": "expected"},
            "bar": {"error": self.bar, "kind": "forecast" if PLANNED[self.mechanism].fitted else "by law"},
            "promised": {"error": self.promised, "kind": self.promise},
            "worst_case": None if self.worst_case is None else theorem,
            "epsilon_needed": self.epsilon_needed,
            "note": self.note,
        }


@dataclass(frozen=True, eq=False)
class Plan:
    """The chosen mechanism and why, and what to expect of each. `options` are arguments for `tacit.open`."""

    mechanism: str
    reason: str
    warm: float | None
    certify: float | None
    hits: int | None
    rows: int
    domain: Domain
    budget: Budget
    questions: int
    accuracy: float | None
    confidence: float
    forecasts: tuple[Forecast, ...]
    rows_per_person: int = 1
    prior_rows: int = 0

    @property
    def expected(self) -> Forecast:
        """The figures of the chosen mechanism."""
        return next(one for one in self.forecasts if one.mechanism == self.mechanism)

    @property
    def name(self) -> str:
        """The mechanism in words."""
        return PLANNED[self.mechanism].words

    @property
    def options(self) -> dict[str, Any]:
        found: dict[str, Any] = {"mechanism": self.mechanism, "questions": self.questions}
        more = {"warm": self.warm, "certify": self.certify, "hits": self.hits}
        return found if self.warm is None else found | more

    @property
    def title(self) -> str:
        sizes = f"{self.rows:,} rows, {len(self.domain)} attributes, {self.domain.size:,} cells"
        people = f"; up to {self.rows_per_person:,} rows a person" if self.rows_per_person > 1 else ""
        prior = f"; a prior of {self.prior_rows:,} rows" if self.prior_rows else ""
        return f"{sizes}{people}{prior}; {self.budget}; {self.questions:,} questions"

    @property
    def footnotes(self) -> list[str]:
        """What the columns mean: one line each."""
        sure = f"{100 * self.confidence:.10g} %"
        found = [
            "Errors are fractions of all rows; in brackets, rows; one above 1 says nothing.",
            "mean, largest: expected, of one question and of the worst of all; the warm start's are forecasts.",
            f"bar: the half width shown with an answer, at {sure}; a warm start's is forecast, wider for large counts.",
            f"all at once: with {sure} confidence no answer is farther off: by the law of the noise, or as certified.",
            f"worst case: {THEOREM}.",
        ]
        if any(PLANNED[one.mechanism].fitted and one.mean is not None for one in self.forecasts):
            found.append(_NOT_IN_FORECASTS)
        if self.prior_rows:
            found.append("The prior is taken to be of the same population as the rows, and to have all attributes.")
        if self.accuracy is not None:
            wanted = f"{100 * self.accuracy:.10g} %"
            found.append(f"epsilon needed: for ±{wanted} on all questions at once; the warm start's is a forecast.")
        return found + [f"{PLANNED[one.mechanism].words}: {one.note}." for one in self.forecasts if one.note]

    def __str__(self) -> str:
        lines = [self._headings, *(self._cells(one) for one in self.forecasts)]
        return "\n".join([self.title, f"{self.name}: {self.reason}", "", *aligned(lines, 1), "", *self.footnotes])

    def table(self) -> Table:
        """For a terminal."""
        from rich.markup import escape
        from rich.table import Table

        grid = Table(*self._headings[:1], title=escape(self.title), title_justify="left")
        for heading in self._headings[1:]:
            grid.add_column(heading, justify="right")
        for one in self.forecasts:
            look = "bold green" if one.mechanism == self.mechanism else None
            grid.add_row(*self._cells(one), style=look)
        return grid

    def chart(self) -> Grid:
        """The expected largest error against epsilon, and against the number of questions."""
        from tacit.show.chart import Axis, Chart, Grid, Polyline, Rule

        middle, delta = self.budget.epsilon, self.budget.delta
        epsilons = _spaced(max(middle / 30, 1e-6), min(middle * 30, 999.0))
        numbers = [round(k) for k in _spaced(1, max(1e6, 10.0 * self.questions))]
        wanted = [] if self.accuracy is None else [Rule(y=self.accuracy, name="wanted")]
        error = Axis("expected largest error, of all rows", log=True)
        pictures: list[tuple[str, Axis, Sequence[float], Callable[[float], tuple[Budget, int]], Rule]] = [
            (
                f"{self.questions:,} questions",
                Axis("epsilon", log=True),
                epsilons,
                lambda x: (Budget(epsilon=x, delta=delta), self.questions),
                Rule(x=middle, name="this budget"),
            ),
            (
                str(self.budget),
                Axis("questions", log=True),
                numbers,
                lambda x: (self.budget, int(x)),
                Rule(x=self.questions, name="planned"),
            ),
        ]
        charts = []
        for title, axis, places, at, here in pictures:
            marks: list[Polyline | Rule] = []
            people, prior = self.rows_per_person, self.prior_rows
            sizes = Sizes(self.domain, self.rows, self.budget.measure, self.confidence, people, prior)
            for row in PLANNED.values():
                look = row.outlook(sizes)
                if isinstance(look, str):
                    continue
                found = [(x, y / self.rows) for x in places if (y := _largest(look, *at(x))) > _DRAWN]
                marks.append(Polyline([x for x, _ in found], [y for _, y in found], name=row.words))
            charts.append(Chart(title, x=axis, y=error, marks=[*marks, *wanted, here], width=460))
        return Grid(f"What to expect: {self.rows:,} rows, {self.domain.size:,} cells", charts, same_y=True)

    def to_dict(self) -> dict[str, Any]:
        """The plan as a dict for JSON."""
        return {
            "mechanism": self.mechanism,
            "reason": self.reason,
            "options": self.options,
            "rows": self.rows,
            "rows_per_person": self.rows_per_person,
            "prior_rows": self.prior_rows,
            "cells": self.domain.size,
            "budget": {"epsilon": self.budget.epsilon, "delta": self.budget.delta},
            "questions": self.questions,
            "accuracy": self.accuracy,
            "confidence": self.confidence,
            "forecasts": [one.to_dict() for one in self.forecasts],
        }

    def _repr_html_(self) -> str:
        from tacit.show.pages import notebook

        return notebook(lines=str(self), picture=self.chart())

    @property
    def _headings(self) -> Sequence[str]:
        return HEADINGS[:-1] if self.accuracy is None else HEADINGS

    def _cells(self, one: Forecast) -> tuple[str, ...]:
        epsilon = "none" if one.epsilon_needed is None else f"{one.epsilon_needed:.3g}"
        if one.mean is None:
            epsilon = "-"
        errors = tuple(self._error(error) for error in (one.mean, one.largest, one.bar, one.promised, one.worst_case))
        return (PLANNED[one.mechanism].words, *errors, epsilon)[: len(self._headings)]

    def _error(self, error: float | None) -> str:
        if error is None or says_nothing(error):
            return "-" if error is None else "above 1"
        rows = error * self.rows
        return f"{error:.2g} ({rows:,.0f})" if rows >= 9.5 else f"{error:.2g} ({rows:.2g})"


def plan(
    *,
    rows: int,
    domain: Domain,
    budget: Budget,
    questions: int,
    accuracy: float | None = None,
    confidence: float = 0.95,
    rows_per_person: int = 1,
    prior_rows: int = 0,
) -> Plan:
    """What to open a session with, and what to expect of it. Looks at no data.

    rows: how many rows there are: public, as everywhere in Tacit.
    questions: about how many different questions will be asked.
    accuracy: the error that all of them should stay within, as a fraction of the rows: 0.01 for ±1 %.
    rows_per_person: how many rows of one person are protected together, as in `tacit.open`.
    prior_rows: how many rows a public table has that will be the prior, as in `tacit.open`; 0 where there is none.

    >>> from tacit.model.attribute import integer
    >>> small = Domain({"sex": integer(0, 1), "age": integer(0, 99, width=10)})
    >>> plan(rows=50_000, domain=small, budget=Budget(epsilon=1.0, delta=1e-9), questions=10_000).mechanism
    'histogram'
    """
    _check(rows, domain, budget, questions, accuracy, confidence, rows_per_person, prior_rows)
    sizes = Sizes(domain, rows, budget.measure, confidence, rows_per_person, prior_rows)
    found, forecasts = dict[str, Outlook](), list[Forecast]()
    for name, row in PLANNED.items():
        look = row.outlook(sizes)
        try:
            one: Outlook | str = look if isinstance(look, str) else look(budget, questions)
        except TacitError as error:  # the budget is too small for it
            one = error.sentence.rstrip(".")
        if isinstance(one, str) or isinstance(look, str):
            forecasts.append(Forecast(name, note=str(one)))
            continue
        found[name] = one
        forecasts.append(
            Forecast(
                name,
                mean=one.mean / rows,
                largest=one.largest / rows,
                bar=one.bar / rows,
                promised=one.promised / rows,
                promise=row.promise,
                worst_case=None if one.worst_case is None else one.worst_case / rows,
                epsilon_needed=None if accuracy is None else _needed(look, questions, accuracy * rows, budget.delta),
            )
        )
    if not found:
        raise ConfigError(f"{budget} is too little for {questions:,} questions by any mechanism.")
    order = _order(found)
    best = found[order[0]]
    return Plan(
        order[0],
        _reason(order, found, rows, domain),
        warm=best.warm,
        certify=best.certify,
        hits=best.hits,
        rows=rows,
        domain=domain,
        budget=budget,
        questions=questions,
        accuracy=accuracy,
        confidence=confidence,
        forecasts=tuple(forecasts),
        rows_per_person=rows_per_person,
        prior_rows=prior_rows,
    )


def _order(found: dict[str, Outlook]) -> list[str]:
    """The mechanisms, the best first: releases that err less than fresh noise, this, and the others."""

    def judged(name: str) -> float:
        return found[name].bar * (MARGIN if PLANNED[name].fitted else 1.0)

    fresh = [name for name in found if PLANNED[name].fresh]
    least = min((found[name].mean for name in fresh), default=math.inf)
    better = [name for name in found if name not in fresh and found[name].mean <= least]
    rest = [name for name in found if name not in fresh and name not in better]
    return [*sorted(better, key=judged), *fresh, *sorted(rest, key=lambda name: found[name].mean)]


def _needed(look: Look, questions: int, wanted: float, delta: float) -> float | None:
    def error(budget: Budget) -> float:
        return look(budget, questions).promised

    return least_epsilon(error, wanted, delta)


def _largest(look: Look, budget: Budget, questions: int) -> float:
    try:
        return look(budget, questions).largest
    except TacitError:  # nothing can be bought with so little
        return 0.0


def _reason(order: Sequence[str], found: dict[str, Outlook], rows: int, domain: Domain) -> str:
    best = found[order[0]]
    words = PLANNED[order[0]].why.format(cells=domain.size)
    if len(order) == 1:
        words = f"nothing else is planned for this domain of {domain.size:,} cells"
    elif best.largest > USELESS * rows:
        words = (
            "no mechanism answers so many questions well with this budget and so few rows, and this is the least bad"
        )
    else:
        other = PLANNED[order[1]].words
        errors = any(PLANNED[name].fresh for name in order[:2])
        ours, theirs = ((one.mean if errors else one.bar) for one in (best, found[order[1]]))
        ratio = theirs / max(ours, 1e-9)  # a huge epsilon may leave no error at all
        much = f"{ratio:.2g}" if ratio < 99 else f"{ratio:,.0f}"
        times = "about as" if much == "1" else f"{much} times as"
        if ratio < 1:  # the fitted bar is narrower, but not by enough
            words += f": {other} may do better, but not by more than its figures can be off by"
        elif errors:
            words += f": the errors to expect of {other}, the next best, are {times} large"
        else:
            words += f": the bars of {other}, the next best, are {times} wide"
    if best.warm is not None:
        words += f"; {best.warm:.0%} of the budget for the warm start, {best.certify:.0%} to certify it"
    return words + "."


def _spaced(low: float, high: float) -> list[float]:
    step = math.log(high / low) / (_POINTS - 1)
    return [low * math.exp(i * step) for i in range(_POINTS)]


def _check(
    rows: int,
    domain: Domain,
    budget: Budget,
    questions: int,
    accuracy: float | None,
    confidence: float,
    rows_per_person: int,
    prior_rows: int,
) -> None:
    if not isinstance(domain, Domain):
        raise ConfigError("domain is a tacit.Domain.")
    if not isinstance(budget, Budget):
        raise ConfigError("budget is a tacit.Budget, like tacit.Budget(epsilon=1.0, delta=1e-9).")
    for name, given, least, most in (
        ("rows", rows, 1, MAX_PLANNED_ROWS),
        ("questions", questions, 1, MOST_QUESTIONS),
        ("rows_per_person", rows_per_person, 1, MOST_PER_PERSON),
        ("prior_rows", prior_rows, 0, MAX_PLANNED_ROWS),
    ):
        if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
            raise ConfigError(f"{name} is a whole number from {least} to {most:,}, not {given!r}.")
    if accuracy is not None and (not isinstance(accuracy, float) or not 1e-9 <= accuracy <= 1):
        raise ConfigError(f"accuracy is a fraction of the rows, like 0.01 for ±1 %, not {accuracy!r}.")
    if not isinstance(confidence, float) or not 0.5 <= confidence <= 1 - 1e-9:
        raise ConfigError(f"confidence is a number from 0.5 to 0.999999999, not {confidence!r}.")
