"""What the online loop teaches: what is known, what that guesses, and what is bought before the first guess.

That is a start, `TableStart`, and `Reach` says which questions its certificate answers: by the ledger once it is
bought, and before by what is public.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.budget import Loss
from tacit.model.certificate import Certificates
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.factor import GRID
from tacit.model.query import Query
from tacit.model.request import Lens
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal
from tacit.release.base import (
    Base,
    Certified,
    certifiable,
    certificate_price,
    certificates,
    certify,
    rank_of,
    runs_of,
)
from tacit.release.classes import (
    BOXES,
    MEANS,
    MOST_QUESTION_CELLS,
    MOST_RUNS,
    MOST_SUMMED,
    SAMPLE,
    SUMS,
    attributes,
    boxed,
    summed,
)
from tacit.release.corner_sums import Side, certified_by
from tacit.release.hypothesis.fit import StepProgress
from tacit.release.public import Public
from tacit.release.warm_start import Begun, WarmStart, begun_with, recalled, still_to_buy, warm_start

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator

Spent = tuple[int, int]  # atoms, and of how many
_LEAST_SHARE = 0.1  # of its plan, that a start is begun with
_LEAST_CERTIFIED = 0.25  # of what was planned for a certificate, below which its bars would be too wide


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
    """What a start would still cost, its tables and the certificate of what fits them; and what each is bought for."""

    tables: Loss
    certificate: Loss
    warm: Loss
    sure: Loss


class TableStart:
    """Noisy tables for the loss `warm` at most, and for `sure` a certificate of the hypothesis that fits them.

    With a certificate the hypothesis is a `base`, which answers for itself from then on. `cost` is what was paid for
    all of it: this much is certainly not spent on gates. Where less is left than that when it is begun, both are bought
    for the same shares of what is left, down to a tenth of the budget. One that was cut off goes on as it was begun.
    """

    def __init__(
        self,
        public: Public,
        curator: Curator | None,
        knowledge: Knowledge,
        warm: Loss,
        sure: Loss,
        confidence: float,
        progress: StepProgress | None,
    ) -> None:
        self._public, self._curator, self._knowledge = public, curator, knowledge
        self._warm, self._sure = warm, sure
        self._confidence, self._progress = confidence, progress
        self.made = False  # whether all is ready, and nothing is left to do
        self.cost = self._nothing = Loss.nothing(warm.measure)
        self.base: Base | None = None  # what was bought and certified, here or in another process
        self._found: WarmStart | None = None
        self._known: tuple[Spent, Missing] | None = None  # what was missing, by what was spent then
        self._tried: Spent | None = None  # what was spent when it was last looked for
        self._reach: tuple[Spent | None, Reach | None] | None = None  # as of what was spent; for ever without that

    @property
    def taken(self) -> bool:
        """Whether what is known here starts from it."""
        return self._found is not None

    def ahead(self) -> Loss:
        """What it would cost at most if it were bought now; nothing if all of it was, or too little is left for it."""
        if self.made and self._curator is not None:  # a file stays what it is
            return self._nothing
        missing = self._missing()
        return missing.tables + missing.certificate

    def bought(self) -> bool:
        """Whether it was bought, or a part of it."""
        return any(one.start is not None for one in self._public.released())

    def reach(self) -> Reach | None:
        """Which questions its certificate answers: the ledger decides, once one is bought."""
        if not self._sure.atoms:
            return None
        if self._reach is None or self._reach[0] not in (None, self._spent()):
            now, sold = self._spent(), self._sold(begun_with(self._public))
            found = _reach_of(self._public, sold, self._sure, self._confidence)
            self._reach = None if SAMPLE in sold else now, found
        return self._reach[1]

    def _sold(self, begun: Begun | None) -> dict[str, Certified]:
        """What was certified of a start that was bought; nothing of one that is not whole."""
        if begun is None or begun.left:
            return {}
        return certificates(self._public, begun.name(self._public), self._confidence)

    def make(self, *, buy: bool, must: bool = False) -> Loss:
        """Have it ready for the first guess, as far as it was bought, and buy what `ahead` says if that is wanted.

        must: refuse where it is not there and could be bought. What was paid is returned.
        """
        now = self._spent()
        if self.made or not (buy or must or self._tried != now):
            return self._nothing
        before, found, missing, self._tried = self._public.spent, self._found, self._missing(), now
        if found is None:
            found = recalled(self._public, progress=self._progress)
        if found is None and self._curator is None and missing.tables.atoms and self.bought():
            found = warm_start(self._public, None, loss=missing.warm)  # refused: the rest is where the data are
        if found is None and buy and missing.tables.atoms:
            found = warm_start(self._public, self._curator, loss=missing.warm, progress=self._progress)
        if found is None:
            if must and missing.tables.atoms:
                raise InvalidQuery("nothing is published yet to make rows from: start the session.")
            self._knowledge.note = "there was too little left for the warm start"
            if missing.tables.atoms:  # the budget was raised after the session was found to have none
                self._knowledge.note = "the warm start was not bought"
            return self._nothing
        if self._found is None:  # once: what is learned after it stays learned
            self._knowledge.note = ""  # whatever was said while it was not there
            self._knowledge.start_from(found, tables=not self._sure.atoms)
            self._found = found
        curator = self._curator if buy and missing.certificate.atoms else None
        self.base = certify(self._public, curator, found, missing.sure, self._confidence)
        bought = [*found.measured, *(() if self.base is None else self.base.certificates)]
        self.cost = Loss(self._warm.measure, sum(one.cost.atoms for one in bought))
        # Whoever may buys a certificate that is missing, now or when the budget was raised; then it is found here too.
        never = self._curator is None or not certifiable(self._public, self._sure, self._confidence)
        self.made = self.base is not None or never
        return self._public.spent - before

    def _spent(self) -> Spent:
        """What changes with every purchase, and when the budget is raised."""
        return self._public.spent.atoms, self._public.whole.atoms

    def _missing(self) -> Missing:
        """What is still to be bought. It is worked out once for all questions between two purchases."""
        now = self._spent()
        if self._known is None or self._known[0] != now:
            self._known = now, self._work_out()
        return self._known[1]

    def _work_out(self) -> Missing:
        """What is still to be bought, in one go: nothing where what is left does not pay for it.

        How much it is bought for follows from what was left when it was begun, so that whoever goes on with it asks for
        the same tables.
        """
        public, begun = self._public, begun_with(self._public)
        left = public.left
        before = left if begun is None else public.left_before(begun.first)
        share = 1.0 if self._warm + self._sure <= before else before.atoms / public.divided.atoms
        warm, sure = (Loss(one.measure, int(one.atoms * share)) for one in (self._warm, self._sure))
        none = Missing(self._nothing, self._nothing, warm, sure)
        if begun is None and (share < _LEAST_SHARE or max(public.domain.sizes.values()) < 2):
            return none
        tables = warm if begun is None else self._nothing
        if begun is not None and begun.left:
            tables = still_to_buy(public, warm)
        if not tables <= left:  # something else was bought before the rest of it
            return none
        sold = self._sold(begun)
        sure = self._affordable(sold, sure, Loss(left.measure, left.atoms - tables.atoms))
        return Missing(tables, certificate_price(public, sold, sure, self._confidence), warm, sure)

    def _affordable(self, sold: Iterable[str], sure: Loss, left: Loss) -> Loss:
        """What a certificate is bought for: nine tenths of what is left, where that is less; nothing, if far less."""
        price = certificate_price(self._public, sold, sure, self._confidence)
        if price <= left:
            return sure
        part = 0.9 * left.atoms / price.atoms
        return Loss(sure.measure, int(sure.atoms * part)) if part >= _LEAST_CERTIFIED else self._nothing


class Reach(NamedTuple):
    """What a certificate answers: by the name of a list, how many attributes its questions have at most.

    runs: how many runs of values its conditions on ordered attributes have at most.
    """

    domain: Domain
    most: Mapping[str, int]
    runs: int

    def answers(self, query: Query) -> bool:
        """Whether `Base.estimate` has an answer to a question that nothing told before; to a constant there is one."""
        factors = query.factors
        if not factors:
            return True
        if len(factors) > self.most[SAMPLE] or any(len(factor.scope) > 1 for factor in factors):
            return False
        if (
            math.prod(factor.unit for factor in factors) > GRID
            or self.domain.size_of(query.scope) > MOST_QUESTION_CELLS
        ):
            return False
        asked = Side.alone if len(factors) == 1 else Side.of
        kind, boxes = certified_by([asked(factor, self.domain, self.runs) for factor in factors], self.most)
        return bool(kind or boxes)


def _reach_of(public: Public, bought: Mapping[str, Certified], loss: Loss, confidence: float) -> Reach | None:
    """What is answered by the certificate that was bought, or would be for this loss.

    None where there is none, and for one of an earlier version, which had no list of the parts of means: whatever was
    answered by it is answered as it was.
    """
    if SAMPLE in bought:
        if not isinstance(bought[SAMPLE].measured.question, Certificates):
            return None
        most = {kind: one.certificate.attributes for kind, one in bought.items()}
        return Reach(public.domain, most, runs_of(bought[SAMPLE].certificate))
    if not certifiable(public, loss, confidence):
        return None
    return Reach(public.domain, planned_lists(public.domain, confidence), MOST_RUNS)


@lru_cache(maxsize=64)
def planned_lists(domain: Domain, confidence: float) -> dict[str, int]:
    """What `certify` would list of any start: how many attributes the questions of each list have at most."""
    most = attributes(domain)
    found = {SAMPLE: most, BOXES: boxed(domain, most)}
    for kind in (MEANS, SUMS):
        listed = summed(domain, kind)
        questions = sum(one.questions for one in listed)
        if listed and rank_of(questions, (one.scope for one in listed), domain, confidence) <= questions:
            found[kind] = MOST_SUMMED
    return found
