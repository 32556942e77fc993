"""How a session stands: its budget, what was spent of it and for what, all that was released. It looks at no data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from tacit.errors import NeedsData
from tacit.model.budget import Budget, Loss
from tacit.model.description import describe
from tacit.model.domain import Domain
from tacit.model.entry import Carried, Measured, Told
from tacit.model.status import Extension, History, Past, Status
from tacit.questions import Questions
from tacit.release.account import Purchased
from tacit.release.epsilon import epsilon_spent
from tacit.release.estimate import Answerer
from tacit.release.public import Public
from tacit.store.chain import Line

if TYPE_CHECKING:  # what a session may never need is imported where it does
    from tacit.release.hypothesis.prior import Prior
    from tacit.release.knowledge import Knowledge
    from tacit.release.mechanisms import Choice
    from tacit.trusted.ledger import Ledger


_BOUGHT = {"measured": "", "choice": "chosen: ", "compared": "compared: ", "discovered": "discovered: "}


class Standing(Questions):
    """What everybody may know of a session, from its public door. A `Session` answers, too."""

    _public: Public
    _ledger: Ledger | None
    _budget: Budget  # that the ledger was made with
    _choice: Choice
    _mechanism: Answerer
    _confidence: float

    @property
    def budget(self) -> Budget:
        extensions = self._public.extensions
        return extensions[-1].budget if extensions else self._budget

    @property
    def made_with(self) -> tuple[Budget, Loss]:
        """The budget that the ledger was made with, and its total. Prices are shares of it, and stay as they were."""
        return self._budget, self._public.total

    @property
    def continues(self) -> Carried | None:
        """What the ledger that this one goes on from had spent, and the entry with which it was closed."""
        return self._public.limits.continues

    @property
    def continued_by(self) -> str | None:
        """Where the chain of the ledger starts that goes on from this one; what was left is there."""
        closing = self._public.limits.closing
        return None if closing is None else closing[0].by

    @property
    def carried(self) -> int:
        """The atoms that the ledger before had spent, as they are counted here."""
        return self._public.limits.carried

    @property
    def moved(self) -> int:
        """The atoms that went to the ledger that continues this one: nothing was released for them."""
        closing = self._public.limits.closing
        return 0 if closing is None else closing[1].atoms

    def extend(self, budget: Budget) -> Extension:
        """Raise the budget to this one. It is written into the ledger, shown wherever the budget is, and never undone.

        Nothing that was bought changes, and prices stay as they were: there are more hard answers, or more questions,
        at the same price. From then on everything ever released is (epsilon, delta)-private by the new budget: what the
        old one promised is given up. So decide it by what you need to know, not by what the answers so far have said.

        >>> session.extend(tacit.Budget(epsilon=2.0, delta=1e-9))   # doctest: +SKIP
        """
        if self._ledger is None:
            raise NeedsData("Here is only what was published: its budget is raised where the ledger is.")
        from tacit.extension import extend

        return extend(self._ledger, self._budget, budget)

    @property
    def choice(self) -> Choice:
        """The mechanism, and why."""
        return self._choice

    @property
    def confidence(self) -> float:
        return self._confidence

    @property
    def domain(self) -> Domain:
        return self._public.domain

    @property
    def rows(self) -> int:
        return self._public.rows

    @property
    def rows_per_person(self) -> int:
        """How many rows of one person are protected together: 1 unless the owner declared more."""
        return self._public.rows_per_person

    @property
    def prior(self) -> Prior | None:
        """The public table that the start is drawn to, where the owner gave one."""
        return self._public.prior

    @property
    def aside(self) -> float:
        """The part of delta that was kept for values that were discovered: 0 in most sessions."""
        return self._public.aside

    @property
    def total(self) -> Loss:
        return self._public.whole

    @property
    def spent(self) -> Loss:
        return self._public.spent

    @property
    def left(self) -> Loss:
        return self._public.left

    def status(self) -> Status:
        budget, spent = self.budget, self.spent
        rest = replace(budget, delta=budget.delta - self.aside)
        return Status(
            rows=self.rows,
            cells=self.domain.size,
            budget=budget,
            mechanism=self.choice.mechanism,
            reason=self.choice.reason,
            total=self.total,
            spent=spent,
            left=self.left,
            epsilon_spent=epsilon_spent(Loss(spent.measure, spent.atoms - self.moved), rest),
            extensions=self._public.extensions,
            continues=None if self.continues is None else self.continues.ledger,
            continued_by=self.continued_by,
            rows_per_person=self.rows_per_person,
        )

    @property
    def knowledge(self) -> Knowledge | None:
        """What is public so far, in the mechanisms that learn: the hypothesis, or the databases that vote."""
        return getattr(self._mechanism, "knowledge", None)

    @property
    def history(self) -> History:
        """Everything bought so far, oldest first; gates that are open come last."""
        return History([*map(self._past, self._public.account.since()), *self.open_gates()])

    def history_after(self, entry: int, most: int) -> History:
        """The next `most` purchases after an entry of the ledger, oldest first. No more than these are read."""
        return History(map(self._past, islice(self._public.account.since(entry, most), most)))

    def open_gates(self) -> History:
        """The gates that are open: they are paid for, and stand last in the history until a hard question is found."""
        return History(map(self._past, self._public.account.open_gates()))

    def latest(
        self, most: int, *, before: int = 2**62, told: bool = False
    ) -> Iterator[tuple[Past, Measured | Told | None]]:
        """The last `most` purchases before an entry, newest first, with answers; with `told`, free answers too."""
        for one, answer in self._public.account.latest(most, before, told=told):
            yield self._past(one), answer

    def records(self, after: int, until: int) -> Iterator[tuple[str, Line]]:
        """What was bought or told after one entry, up to another, in order: kinds as in `charges`, and lines.

        No question is made; `recalled` makes that of a line.
        """
        return self._public.account.records(after, until)

    def recalled(self, line: Line) -> tuple[Past, Measured | Told | None]:
        """What a line says, with the answer if it has one."""
        one, answer = self._public.account.recalled(line)
        return self._past(one), answer

    def _past(self, one: Purchased) -> Past:
        """A purchase as a line of the history."""
        words = "a hard question found"
        if one.about is not None:
            said = one.about if isinstance(one.about, str) else describe(one.about, self.domain)
            words = _BOUGHT.get(one.kind, "") + said
        return Past(words, one.cost, one.receipt, one.kind, one.cost.atoms / (self.total.atoms / 100))

    @property
    def told(self) -> int:
        """How many answers were told for nothing, and kept."""
        return self._public.told

    def charges(self, after: int) -> Iterator[tuple[str, int, int]]:
        """What was bought since entry `after`: kinds of questions, costs in atoms, and entries, in order."""
        return self._public.account.charges(after)

    def answers(self) -> Iterator[Measured | Told]:
        """Every answer in the ledger, oldest first: noisy ones that were bought, and those told for nothing."""
        return self._public.answers()

    @property
    def entries(self) -> int:
        """The number of the ledger's newest entry."""
        return self._public.entries

    def paid_since(self, after: int) -> list[tuple[str | None, int]]:
        """What was spent since entry `after`, in order: keys of what was bought, and atoms; a gate has no key."""
        return self._public.account.paid_since(after)

    def transcript(self) -> tuple[str, list[Line]]:
        """Everything released so far, sealed: the hash that the ledger's chain starts from, and its entries."""
        return self._public.transcript()

    @property
    def origin(self) -> str:
        """The hash that the ledger's chain starts from."""
        return self._public.origin

    def lines(self, after: int = 0) -> Iterator[Line]:
        """The entries of the transcript after one of them, read as they are asked for."""
        return self._public.lines(after)
