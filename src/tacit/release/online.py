"""The online loop (Roth, lecture 12, algorithm 1): easy questions are free, hard ones are bought and teach.

What is taught is the caller's choice: a hypothesis with multiplicative weights, or the databases of the median
mechanism.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BudgetExhausted, InvalidQuery, NeedsData, WouldSpend
from tacit.model.budget import Loss
from tacit.model.entry import FreeAnswer, Measured, Told
from tacit.model.facts import ANSWER, FREE, NOISE, Bar
from tacit.model.query import Query
from tacit.model.request import Distance, Lens
from tacit.model.statistic import Statistic
from tacit.model.status import DryRun, Extension
from tacit.model.workload import Marginal
from tacit.release.account import Spendable
from tacit.release.base import Base
from tacit.release.estimate import Estimate, of_stored
from tacit.release.hypothesis.fit import StepProgress
from tacit.release.hypothesis.noisy_table import half_width_within
from tacit.release.knowledge import Guesses, Knowledge, TableStart
from tacit.release.online_terms import Terms, farthest
from tacit.release.public import Public, Unchecked, past
from tacit.release.purchases import split
from tacit.release.recall import buyer, expected_noise, measure_around
from tacit.release.settings import IterativeSettings
from tacit.store.chain import Mark

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator
    from tacit.trusted.gate import Gate

OWNER = "online"  # whose gates these are, in the ledger
_NO_CHANCE = 1e-9  # of being wrong: what is left of it where all gates were opened before the budget was raised


K = TypeVar("K", bound=Knowledge)


class Online(Generic[K]):
    """Answers from public knowledge while it is good; the questions on which it is not are bought, and teach it.

    The number of questions is a guess: whenever it is passed, the next gates stand as if there were twice as many (Roth
    & Roughgarden 2010, end of section 3). After the last hard answer what is known goes on answering, without a
    guarantee and saying so; with `halt`, it refuses instead.
    """

    fresh, learns, everything = False, True, False
    starts_itself = False

    def __init__(
        self,
        public: Public,
        curator: Curator | None,
        know: Callable[[Terms], K],
        settings: IterativeSettings,
        confidence: float,
        progress: StepProgress | None,
        *,
        at_once: int,
    ) -> None:
        """From public parameters. `progress` is told how many steps of the start are done, and of how many at most.

        know: what is known before anything is bought. at_once: how many questions are best guessed together.
        """
        self._public, self._curator, self._know, self._progress = public, curator, know, progress
        self._questions, self._halt, self._at_once = settings.questions, settings.halt, at_once
        total = public.divided
        warm, sure = (Loss(total.measure, int(total.atoms * share)) for share in (settings.warm, settings.certify))
        self._warm, self._sure = warm, sure
        self.terms = Terms.of(
            total - warm - sure, hits=settings.hits, confidence=confidence, rows_per_person=public.rows_per_person
        )
        self._nothing, self._read_to = Loss.nothing(public.total.measure), 0
        self._opened_before = dict[int, int]()  # how many gates were, by an entry that raised the budget
        self._bars: tuple[object, tuple[Bar, ...]] = None, ()  # what the last gate promised, and for what it holds
        self._open: Gate | None = None  # the gate that let the last answers pass, while nothing else was written since
        self._restart()

    def estimate(self, queries: Sequence[Query | Statistic], newest: Mark | None = None) -> list[Estimate]:
        if not queries:
            return []
        self.knowledge.check(queries)
        paid = self._catch_up(newest, buy=self.starts_itself)
        settled = self.settled(queries)  # by a base that was bought just now
        told: dict[Query | Statistic, Measured | Told] = {}
        cores = [query.core for query in queries]
        waiting = list(dict.fromkeys(core for core, known in zip(cores, settled, strict=True) if known is None))
        bought: dict[Query | Statistic, Loss] = {}
        checked: dict[Query | Statistic, Loss] = {}  # what was paid for a gate by questions that found none open
        while waiting:
            now = waiting[: self._at_once]
            guesses = self.knowledge.guess(now)
            before = self._left
            gate = self._gate(guesses.floor)
            if self._left < before:
                opened = Loss(self._nothing.measure, before - self._left)
                checked[now[0]] = checked.get(now[0], self._nothing) + opened
            try:
                found = None if gate is None else gate.first_above(now, guesses.lenses)
            except InvalidQuery:
                if self._open is None:
                    raise
                self._open = None  # another process died while it held this gate, which leaves no entry
                continue
            easy = len(now) if found is None else found[0]
            if easy:
                told |= self._tell(now[:easy], guesses, gate)
            if found is not None:
                hard = now[easy]
                told[hard], cost = self._buy(hard)
                self._catch_up(buy=False)
                before = self._left
                with suppress(WouldSpend, BudgetExhausted):  # the answer is paid, and the next who asks may open it
                    self._open = self._next_gate(guesses.floor)
                # A hard question pays for the next gate, so that easy ones after it are free.
                bought[hard] = cost + Loss(cost.measure, before - self._left)
                easy += 1
            waiting = waiting[easy:]
        estimates = [
            # A query and its complement are paid once.
            known or self._dress(query, told[core], bought.pop(core, None), checked.pop(core, self._nothing))
            for query, core, known in zip(queries, cores, settled, strict=True)
        ]
        if paid.atoms:  # the first question pays for the start
            first = estimates[0].facts
            estimates[0] = replace(estimates[0], facts=replace(first, source="measured", cost=first.cost + paid))
        return estimates

    @property
    def base(self) -> Base | None:
        """What is certified, once it is bought, here or in another process."""
        if self._start is None:
            return None
        if not self._start.made:
            with suppress(InvalidQuery, NeedsData):  # a start that was cut off is made by whoever may buy the rest
                self._begin(self._start, buy=False)
        return self._start.base

    def settled(self, queries: Sequence[Query | Statistic]) -> list[Estimate | None]:
        base = self.base
        if base is None:
            return [None] * len(queries)
        # A bar that is proved without the gate spares it, where it is no wider than the first gate's.
        most = self.terms.shown_alone(self.terms.threshold(self._questions))
        return [base.estimate(query) or base.bounded(query, most) for query in queries]

    def certifies(self, query: Query) -> bool:
        reach = None if self._start is None else self._start.reach()
        return reach is not None and reach.answers(query)

    def table(self, asked: Marginal) -> None:
        """Every cell is a question of its own; a hard one is bought and learned like any other."""

    def ahead(self) -> Loss:
        return self._nothing if self._start is None else self._start.ahead()

    def bought(self) -> bool:
        return self._start is not None and self._start.bought()

    def begin(self) -> Loss:
        return self._catch_up(buy=True)

    def draw(self, rows: int, rng: np.random.Generator) -> list[NDArray[np.intp]]:
        return self.known().draw(rows, rng)

    def known(self) -> K:
        """What is public, up to the newest entry. Buys nothing."""
        self._catch_up(buy=False, must=True)
        return self.knowledge

    def arrays(self) -> Iterable[NDArray[Any]]:
        with suppress(InvalidQuery):  # nothing was bought to begin with; what there is is known all the same
            self._catch_up(buy=False, must=True)
        return self.knowledge.arrays()

    @property
    def knows(self) -> bool:
        return self._start is not None

    def by_itself(self, statistic: Statistic) -> Loss | None:
        """The price of a hard answer, gate and all, for what the knowledge has no guess for."""
        try:
            self.knowledge.check([statistic])
        except InvalidQuery:
            return self.terms.each
        return None

    def most(self, question: Query | Statistic | Marginal) -> Loss:
        questions = question.size(self._public.domain) if isinstance(question, Marginal) else 1
        ahead, left = self.ahead(), self._public.left
        # The start may cost less than what was foretold, and leave more.
        return Loss(left.measure, min(left.atoms, ahead.atoms + self._most_of(questions, left.atoms)))

    def _most_of(self, questions: int, left: int) -> int:
        """What so many questions cost at most, in atoms, with so much left: all are hard, and have gates opened."""
        each, answer = self.terms.each.atoms, self.terms.answer_loss.atoms
        before = self.checking.atoms
        if left < before + answer:
            return 0  # no gate can be opened, or what an open one finds not be paid
        hits = min(questions, 1 + (left - before - answer) // each)
        cost = before + hits * each - self.terms.gate_loss.atoms
        return cost + self.terms.gate_loss.atoms if left - cost >= each else cost

    @property
    def checking(self) -> Loss:
        return self._nothing if self._public.has_gate(OWNER) else self.terms.gate_loss

    def refuses(self) -> DryRun | None:
        if not self._halt or self._most_of(1, self._public.left.atoms):
            return None
        return DryRun(False, self.terms.each, f"all {self._used_up}, and this session halts then: it is refused")

    @property
    def hits_left(self) -> int:
        """How many more hard answers can be paid for, gate and all, beside the gate that is open now."""
        return self._public.left.atoms // self.terms.each.atoms

    @property
    def most_gates(self) -> float:
        """How many gates can ever be opened: more than planned, where a start was not bought or cost less.

        The bar for all free answers divides its chance of being wrong among these. Where the budget was raised, each
        gate before that has had its share, and the rest of the chance is divided among the gates that can follow.
        """
        return self._most_gates(self._public.extensions)

    def _most_gates(self, extensions: Iterable[Extension]) -> float:
        start = 0 if self._start is None else self._start.cost.atoms
        most, chance, opened = (self._public.divided.atoms - start) / self.terms.gate_loss.atoms, 1.0, 0
        whole = self._public.total.atoms
        in_all = most
        for raised in extensions:
            before = self._gates_before(raised.receipt.entry)
            in_all += (raised.total.atoms - whole) / self.terms.gate_loss.atoms
            chance -= (before - opened) / most
            if chance < _NO_CHANCE:
                return math.inf
            most, opened, whole = (in_all - before) / chance, before, raised.total.atoms
        return most

    def _gates_before(self, entry: int) -> int:
        if entry not in self._opened_before:
            self._opened_before[entry] = self._public.gates_before(entry, OWNER)
        return self._opened_before[entry]

    @property
    def _used_up(self) -> str:
        """How many hard answers are used up: those planned, and what was added; begins after "all"."""
        added = (self._public.whole.atoms - self._public.total.atoms) // self.terms.each.atoms
        return f"{self.terms.hits + added:,} hard answers are used"

    def _gate(self, floor: float) -> Gate | Unchecked | None:
        """The gate that is open, or a new one while there is enough for it and for the answer that it may call for."""
        gate: Gate | Unchecked | None
        if self._curator is None:
            gate = Unchecked() if self._public.has_gate(OWNER) else None
        else:
            gate = self._open or self._curator.resume_gate(owner=OWNER)
        if gate is not None and self._left < self.terms.answer_loss.atoms:
            gate = None  # a hit could not be answered
        elif gate is None and self.hits_left > 0:
            gate = self._next_gate(floor) or Unchecked()
        if gate is None and self._halt:
            raise BudgetExhausted(f"All {self._used_up}, and this session halts then.")
        return gate

    def _next_gate(self, floor: float) -> Gate | None:
        """A new gate, while there is enough for it and for the answer that it may call for."""
        if self._curator is None or self.hits_left < 1:
            return None
        doublings = math.ceil(math.log2(max(1.0, self._public.entries / self._questions)))
        threshold = self.terms.threshold(self._questions * 2**doublings) + floor
        gate = self._curator.open_gate(threshold, self.terms.gate_loss, owner=OWNER)
        self._left -= gate.terms.atoms
        return gate

    def _tell(
        self, queries: Sequence[Query | Statistic], guesses: Guesses, gate: Gate | Unchecked | None
    ) -> dict[Query | Statistic, Measured | Told]:
        ended = "" if gate else f"all {self._used_up}: the guarantee has ended"
        note = "; ".join(filter(None, (ended, guesses.note)))
        units = {query.unit for query in queries}
        bars = {unit: () if gate is None else self._promised(guesses.lenses[0], gate.threshold, unit) for unit in units}
        said = [
            FreeAnswer(query, round(float(guess) * query.unit), note, bars[query.unit])
            for query, guess in zip(queries, guesses.values, strict=False)
        ]
        told = self._public.tell(said, gate)
        self._read_to = past(self._read_to, (one.receipt for one in told))
        self._open = None if isinstance(gate, Unchecked) else gate
        return dict(zip(queries, told, strict=True))

    def _promised(self, lens: Lens, threshold: float, unit: int) -> tuple[Bar, ...]:
        """What a gate proves about the answers that it lets pass, in grid steps: of one by itself first.

        That is the narrower one by public parameters, so showing it costs no confidence. As long as a gate stands, both
        stay what they are.
        """
        gates = self.most_gates if self._limits is None else self._most_gates(self._limits.extensions)
        known = (threshold, unit, None if isinstance(lens, Distance) else lens.reach, gates)
        if self._bars[0] != known:
            # Both are compared with bars that are read off releases.
            sure = replace(self.terms, confidence=split(self.terms.confidence).others)
            shown = {ANSWER: sure.shown_alone(threshold), FREE: sure.shown(threshold, gates)}
            reach = {about: farthest(lens, most) for about, most in shown.items()}
            self._bars = (
                known,
                tuple(
                    Bar(math.ceil(width * unit), about, self.terms.confidence)
                    for about, width in reach.items()
                    if width is not None and width < math.inf
                ),
            )
        return self._bars[1]

    def _buy(self, hard: Query | Statistic) -> tuple[Measured | Told, Loss]:
        """The answer to a hard question, and what it cost: by itself, or from the table that is bought around it."""
        wanted, loss = self.knowledge.purchase(hard), self.terms.answer_loss
        if isinstance(wanted, Marginal) and isinstance(hard, Query):
            noise = expected_noise(self._public, wanted, loss)
            width = half_width_within(hard, self._public.domain, noise, self.terms.confidence)
            bar = Bar(width, NOISE, self.terms.confidence)
            note = f"from the table of {' and '.join(wanted.names)}, bought with it"
            before = self._public.spent
            _, told = measure_around(self._public, buyer(self._public, self._curator), hard, loss, bar, note)
            return told, self._public.spent - before
        answer = buyer(self._public, self._curator).measure([hard], loss)[0]
        return answer, answer.cost

    def _dress(self, query: Query | Statistic, stored: Measured | Told, cost: Loss | None, gate: Loss) -> Estimate:
        """An answer with what was paid now: for itself if it was bought, and for a gate if it found none open."""
        estimate = of_stored(stored, query, self._public.rows, self.terms.confidence)
        if cost is not None:
            return replace(estimate, facts=replace(estimate.facts, source="measured", cost=cost + gate))
        if isinstance(stored, Told):
            return replace(estimate, facts=replace(estimate.facts, source="hypothesis", cost=gate))
        return estimate

    def _restart(self) -> None:
        self.knowledge: K = self._know(self.terms)
        self._start: TableStart | None = None
        if self._warm.atoms:
            bought = self._warm, self._sure, self.terms.confidence
            self._start = TableStart(self._public, self._curator, self.knowledge, *bought, self._progress)
        self._read_to = 0
        self._left = 0  # atoms, by the last look and less what was paid since
        self._limits: Spendable | None = None  # by the last look: they change by entries alone
        self._open = None

    def _begin(self, start: TableStart, *, buy: bool, must: bool = False) -> Loss:
        """Have the start; what was paid for it."""
        before = start.taken
        paid = start.make(buy=buy, must=must)
        if self._read_to and start.taken > before:
            # The budget was raised, and it was bought after others: they are learned after it, as in other processes.
            self._restart()
            assert self._start is not None
            self._start.make(buy=False)
        return paid

    def _catch_up(self, newest: Mark | None = None, *, buy: bool, must: bool = False) -> Loss:
        """Learn what this or another process has bought since the last look: a fold over the ledger, in its order.

        What had to be paid to begin is returned. `newest` is the newest entry, where it is known. `buy`, `must`: see
        `TableStart.make`.
        """
        try:
            start, paid = self._start, self._nothing
            if start is not None and not start.made:
                paid = self._begin(start, buy=buy, must=must)
            if newest is not None and newest.seq == self._read_to and self._limits is not None and not paid.atoms:
                self.knowledge.learn((), newest.seq)  # voters are stirred by what was only told, too
                self._left = self._limits.whole.atoms - newest.spent
                return paid
            self._open = None
            head, news = self._public.since(self._read_to)
            bought = list(news)
            read_to = max([head.seq, *(one.receipt.entry for one in bought)])
            self.knowledge.learn(bought, read_to)
            # What is only told after that need not be looked at again.
            self._limits = self._public.limits
            self._read_to, self._left = read_to, self._limits.whole.atoms - head.spent
            return paid
        except BaseException:  # an interrupt may have cut an update in half: start over at the next question
            self._restart()
            raise
