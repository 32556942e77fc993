"""What the online loop teaches: what is known, what that guesses, and what is bought before the first guess."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.budget import Loss
from tacit.model.entry import Measured
from tacit.model.query import Query
from tacit.model.request import Lens
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal
from tacit.release.base import SAMPLE, Base, certifiable, certificates, certify
from tacit.release.hypothesis.fit import Progress
from tacit.release.public import Public
from tacit.release.warm_start import WarmStart, begun_with, recalled, warm_start

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator

_LEAST_SHARE = 0.1  # of its plan, that a start is begun with


@dataclass(frozen=True, eq=False)
class Guesses:
    """What public knowledge says about some questions. Values are in counts, and so is whatever is not said otherwise.

    lenses: what shows how far each truth is from what is known; all of one kind.
    floor: what a lens shows where what is known is as good as it can be.
    note: a warning that belongs to every answer given now, or nothing.
    """

    values: NDArray[np.float64]
    lenses: Sequence[Lens]
    floor: float = 0.0
    note: str = ""


class Knowledge(Protocol):
    """What is public so far: a fold over released answers and public seeds, and so never a matter of privacy."""

    note: str

    def start_from(self, found: WarmStart, *, tables: bool) -> None:
        """Go on from a start, before anything is learned. Without `tables`, hard questions are bought one by one."""
        ...

    def check(self, queries: Sequence[Query | Statistic]) -> None:
        """Refuse what cannot be guessed, before anything is paid."""
        ...

    def learn(self, measured: Iterable[Measured], entries: int) -> None:
        """Take in what was measured since the last time, in order. The ledger has `entries` entries now."""
        ...

    def guess(self, queries: Sequence[Query | Statistic]) -> Guesses: ...

    def purchase(self, query: Query | Statistic) -> Query | Statistic | Marginal:
        """What to buy when a question was hard: itself, or the whole table of its attributes. By what is public."""
        ...

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        """Rows that look like what is known: a column of codes for each attribute."""
        ...

    def arrays(self) -> Iterable[NDArray[Any]]:
        """All that is known, in numbers whose bits can be compared."""
        ...


class Missing(NamedTuple):
    """What a start would still cost: its tables, and the certificate of what fits them."""

    tables: Loss
    certificate: Loss

    @property
    def price(self) -> Loss:
        return self.tables + self.certificate


class TableStart:
    """Noisy tables for the loss `warm` at most, and for `sure` a certificate of the hypothesis that fits them.

    With a certificate the hypothesis is a `base`, which answers for itself from then on. `cost` is what was paid for
    all of it: this much is certainly not spent on gates. Where less is left than that, both are bought for the same
    shares of what is left, down to a tenth of the budget.
    """

    def __init__(
        self,
        public: Public,
        curator: Curator | None,
        knowledge: Knowledge,
        warm: Loss,
        sure: Loss,
        confidence: float,
        progress: Progress | None,
    ) -> None:
        self._public, self._curator, self._knowledge = public, curator, knowledge
        self._warm, self._sure = warm, sure
        self._confidence, self._progress = confidence, progress
        self.made = False  # whether all is ready, and nothing is left to do
        self.cost = self._nothing = Loss(warm.measure, 0)
        self._base: Base | None = None
        self._found: WarmStart | None = None
        self._short_of: Loss | None = None  # the whole budget, when too little of it was left

    @property
    def taken(self) -> bool:
        """Whether what is known here starts from it."""
        return self._found is not None

    @property
    def base(self) -> Base | None:
        """What was bought and certified, here or in another process."""
        if not self.made and self.bought():
            with suppress(InvalidQuery):  # a start that was cut off is made by whoever may buy the rest
                self.make(buy=False)
        return self._base

    def ahead(self) -> Loss:
        """What it would cost at most if it were bought now; nothing if all of it was, or too little is left for it."""
        return self._nothing if self.made or self._is_short() else self._missing().price

    def bought(self) -> bool:
        """Whether it was bought, or a part of it."""
        return any(one.start is not None for one in self._public.released())

    def make(self, *, buy: bool) -> Loss:
        """Have it ready for the first guess, buying what `ahead` says (or refusing to); what was paid."""
        if self.made or self._is_short():
            return self._nothing
        before, found, missing = self._public.spent, self._found, self._missing()
        if found is None:
            found = recalled(self._public, progress=self._progress)
        if found is None:
            begun = self.bought()
            if not buy and not (begun and self._curator is None):
                raise InvalidQuery("nothing is published yet to make rows from: start the session.")
            if not begun and not missing.tables.atoms:
                self._knowledge.note = "there was too little left for the warm start"
                self._short_of = self._public.whole
                return self._nothing
            loss = missing.tables if missing.tables.atoms else self._warm  # which then is refused
            found = warm_start(self._public, self._curator, loss=loss, progress=self._progress)
        if self._found is None:  # once: what is learned after it stays learned
            self._knowledge.start_from(found, tables=not self._sure.atoms)
            self._found = found
        curator = self._curator if buy and missing.certificate.atoms else None
        self._base = certify(self._public, curator, found, missing.certificate, self._confidence)
        bought = [*found.measured, *(() if self._base is None else self._base.certificates)]
        self.cost = Loss(self._warm.measure, sum(one.cost.atoms for one in bought))
        # A start that was cut off before its certificate is made once more, by whoever may buy that.
        self.made = buy or self._base is not None or not self._sure.atoms or self._curator is None
        return self._public.spent - before

    def _is_short(self) -> bool:
        """Whether too little was left, and the budget was not raised since: what is left only becomes less."""
        return self._short_of is not None and self._short_of == self._public.whole

    def _missing(self) -> Missing:
        """What is still to be bought. A start that was begun goes on; else a tenth of what was planned must be left."""
        public, whole = self._public, self._public.divided.atoms
        left, begun = public.left.atoms, begun_with(public)
        sold = {} if begun is None or begun.left else certificates(public, begun.name(public), self._confidence)
        certified = sum(one.cost.atoms for one in sold.values())
        tables = 0 if begun is None else begun.paid.atoms
        share = _share(self._warm + self._sure, left + tables + certified, whole)
        if begun is None and share < _LEAST_SHARE:
            return Missing(self._nothing, self._nothing)
        rest = 0
        if begun is None or begun.left:
            rest = int(self._warm.atoms * share)
            if rest - tables > left:  # something else was bought before the rest of it
                rest = int(self._warm.atoms * left / whole)
        sure = min(int(self._sure.atoms * share), left - max(0, rest - tables) + certified)
        worth = SAMPLE not in sold and certifiable(
            public, loss := Loss(self._sure.measure, max(0, sure)), self._confidence
        )
        return Missing(Loss(self._warm.measure, rest), loss if worth else self._nothing)


def _share(planned: Loss, left: int, whole: int) -> float:
    """Which part of its plan a start is bought for: all of it, or as much of it as is left of the budget."""
    return 1.0 if planned.atoms <= left else left / whole
