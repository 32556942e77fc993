"""The dial: one answer by itself, bought fresh to the accuracy that was asked for. Called by `parts`.

The price follows from the law of the noise, so it is exact, public, and said before anything is bought. What was told
or measured before stays as it was: the new answer is kept beside it, and whoever asks the plain question hears of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from tacit.errors import BudgetExhausted, InvalidBudget, InvalidQuery
from tacit.model.ask import MOST_WITHIN, Ask, Count, Fraction, Mean, Select, Sum, check_within
from tacit.model.budget import Loss, Measure, percent_of
from tacit.model.description import describe
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.facts import ANSWER, EXACT, FREE, NOISE, joined
from tacit.model.formula import Figure
from tacit.model.noise_law import quantile
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.status import DryRun
from tacit.release.estimate import Estimate, Sharper, of_stored
from tacit.release.public import Public
from tacit.release.recall import buyer
from tacit.trusted.sensitivity import noise_of, price_of

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator

_LEAST = 1000  # parts of the budget: what is bought stays the question's answer, and less would spoil it for everybody
_ULPS = 8 * 2.0**-52  # of the range of a quotient
_IS_FOR = (
    "within is for one count, one sum of values that are all positive or all negative, a fraction of all rows, and a "
    "mean over all rows of an attribute that none of them lacks; other fractions and means are made of two answers: "
    "ask for these."
)
ITSELF = (NOISE, ANSWER, FREE, EXACT)  # what a bar is about that holds for this very answer


@dataclass(frozen=True)
class Wanted:
    """A weighted count, and the half width that is wanted of it in grid steps, each worth `per_step` of the answer.

    `public` is what the answer is made of beside that, and everybody knows: the number of rows, below a fraction.
    """

    query: Query
    steps: int
    per_step: float
    rounding: float
    public: tuple[Query, ...] = ()

    def width(self, steps: int) -> float:
        """A half width of the count as one of the answer."""
        return self.rounding + steps * self.per_step


def wanted(ask: Ask, within: float, domain: Domain, rows: int) -> Wanted:
    """What to measure for an answer within ± `within`.

    For counts and sums, and for fractions and means of all rows, which are a count or a sum over the number of rows:
    how far off these are does not depend on values.
    """
    check_within(within)
    if isinstance(ask, Select) and len(ask.columns) == 1 and not ask.groups:  # a value with a note on its condition
        return wanted(ask.columns[0].value, within, domain, rows)
    if not isinstance(ask, Count | Sum | Fraction | Mean):
        raise InvalidQuery(_IS_FOR)
    formula, half = ask.formula, rows / 2
    asked = [part.query(domain) for part in formula.parts]
    noisy = [at for at, query in enumerate(asked) if not query.is_constant] or [0]
    if not asked or len(noisy) > 1 or (isinstance(ask, Sum) and len(asked) > 1):
        raise InvalidQuery(_IS_FOR)
    query = asked.pop(noisy[0])
    if not all(one.is_everyone for one in asked):  # as of a fraction of nobody, of a group whose size is noisy
        raise InvalidQuery(_IS_FOR)

    def off(error: float) -> float:
        """How far off an answer in the middle is: there no end of what it can be cuts its bar."""
        known = [Figure(float(rows), 0.0) for _ in asked]
        return formula.put_together([*known[: noisy[0]], Figure(half, error), *known[noisy[0] :]], rows).error or 0.0

    # The error is a sum: what rounding moves, and a factor times the error of the count.
    rounding = off(0.0)
    per_step = (off(half) - rounding) / half / query.unit
    # A quotient is rounded, and so is its bar: that must not lead beyond what was asked for.
    most = within if isinstance(ask, Count | Sum) else within - _ULPS * per_step * rows * query.unit
    steps = int(min((most - rounding) / per_step, MOST_WITHIN)) if most >= rounding else -1
    while steps >= 0 and rounding + steps * per_step > most:
        steps -= 1
    if steps < 0:
        raise InvalidQuery(
            f"the weights of this sum are rounded to a grid, which alone moves it by up to {rounding:g}."
        )
    return Wanted(query, steps, per_step, rounding, tuple(asked))


class Dial:
    """Prices and buys single answers for one session."""

    def __init__(self, public: Public, curator: Curator | None, confidence: float) -> None:
        self._public, self._curator, self._confidence = public, curator, confidence
        self._sharper: dict[str, Measured] | None = None  # by the key of the core; read when first needed

    def known(self, one: Wanted) -> Estimate | None:
        """The sharpest answer that was bought of this very question, if it is sharp enough."""
        stored = self._public.sharpest([one.query.core])[0]
        if stored is None or quantile(stored.noise, self._confidence) > one.steps:
            return None
        return of_stored(stored, one.query, self._public.rows, self._confidence)

    def enough(self, estimate: Estimate, one: Wanted) -> bool:
        """Whether what is known is as sharp as wanted, by a bar that is about this answer."""
        return any(bar.width <= one.steps and bar.about in ITSELF for bar in estimate.facts.bars)

    def price(self, one: Wanted) -> Loss:
        """The least loss whose noise is as narrow as wanted, at the session's confidence; maybe more than is left."""
        public, question = self._public, one.query.core
        domain, measure, people = public.domain, public.total.measure, public.rows_per_person
        wanted = least_loss(question, one.steps, self._confidence, domain, measure, people)
        least = public.total.split(_LEAST)
        if least <= wanted or not least.atoms:
            return wanted
        return price_of(question, domain, noise_of(question, domain, least, people), measure, people)

    def dry_run(self, one: Wanted) -> DryRun:
        """What a fresh answer, as sharp as wanted, would cost."""
        price, left = self.price(one), self._public.left
        if price <= left:
            return DryRun(False, price, "bought fresh, by itself")
        rest = f"{percent_of(left, self._public.whole)}, which buys {self._at_best(one)}"
        return DryRun(False, price, f"it costs more than is left, {rest}: it is refused")

    def _at_best(self, one: Wanted) -> str:
        """The half width that all that is left buys, in words."""
        public = self._public
        try:
            noise = noise_of(one.query.core, public.domain, public.left, public.rows_per_person)
        except InvalidBudget:
            return "nothing"
        return f"± {one.width(quantile(noise, self._confidence)):,.4g} at best"

    def buy(self, one: Wanted) -> Estimate:
        """A fresh answer, as sharp as wanted."""
        price, left = self.price(one), self._public.left
        if self._curator is not None and not price <= left:
            whole = self._public.whole
            raise BudgetExhausted(
                f"± {one.width(one.steps):,.4g} costs {percent_of(price, whole)} of the budget, and "
                f"{percent_of(left, whole)} is left, which buys {self._at_best(one)}."
            )
        measured = buyer(self._public, self._curator).measure([one.query.core], price, anew=True)[0]
        if quantile(measured.noise, self._confidence) > one.steps:
            raise InvalidQuery("this question was measured too often to be measured once more.")
        if self._sharper is not None:
            self._sharper[one.query.core.key] = measured
        return of_stored(measured, one.query, self._public.rows, self._confidence, paid_now=True)

    def noted(self, query: Query | Statistic, estimate: Estimate, later: Measured | None) -> Estimate:
        """An answer that stays as it is, with a note where a sharper one was bought of the same question."""
        if later is None or later.receipt == estimate.facts.receipt:
            return estimate
        width = quantile(later.noise, self._confidence)
        if estimate.facts.width is not None and width >= estimate.facts.width:
            return estimate
        sharper = Sharper(width, later.receipt.entry)
        if query.unit > 1:  # a sum or a mean has words and a unit of its own
            return replace(estimate, sharper=sharper)
        note = sharper.note(describe(query, self._public.domain), width)
        facts = replace(estimate.facts, note=joined([estimate.facts.note, note]))
        return replace(estimate, facts=facts, sharper=sharper._replace(said=note))

    def beside(self, queries: Sequence[Query | Statistic], settled: Sequence[Estimate | None]) -> list[Estimate | None]:
        """The answers that nothing can change any more, with notes. The ledger is read once, not for each of them.

        After that only what this process buys is noted: such an answer should cost no look at the ledger.
        """
        if self._sharper is None and any(settled):
            self._sharper = {
                one.question.key: one for one in self._public.released() if isinstance(one.question, Query)
            }
        if not self._sharper:
            return list(settled)
        return [
            one if one is None else self.noted(query, one, self._sharper.get(query.core.key))
            for query, one in zip(queries, settled, strict=True)
        ]


@lru_cache(maxsize=256)
def least_loss(
    query: Query, steps: int, confidence: float, domain: Domain, measure: Measure, rows_per_person: int
) -> Loss:
    """The least loss that buys noise whose quantile is at most that many grid steps: by bisection over whole atoms.

    Noise narrows as the loss grows, and `noise_of` rounds it up, so the noise that is drawn is within as well.
    """

    def holds(atoms: int) -> bool:
        try:
            noise = noise_of(query, domain, Loss(measure, atoms), rows_per_person)
        except InvalidBudget:  # too little for anything
            return False
        return quantile(noise, confidence) <= steps

    low, high = 0, 1
    while not holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    noise = noise_of(query, domain, Loss(measure, high), rows_per_person)
    return price_of(query, domain, noise, measure, rows_per_person)
