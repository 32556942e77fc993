"""A series of blocks as the server holds it: every block has a budget of its own, and so has every key's quota.

The owner appends beside the running server, which sees the new block at the next question: the manifest lists it, and
what is bought about it is charged to its own ledger, whoever asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tacit.blocks.series import Series
from tacit.config import Config, read_config
from tacit.errors import InvalidQuery, TacitError, WouldSpend
from tacit.model.budget import Loss
from tacit.model.status import Started
from tacit.model.table import Answers
from tacit.replies import DomainReply
from tacit.serve.dataset import FAIRNESS, Dataset, past_quota
from tacit.serve.edition import Edition, Published
from tacit.serve.key import Key
from tacit.serve.keys import KeyRing
from tacit.serve.question import Question
from tacit.serve.refusal import Refusal
from tacit.serve.served_data import describe, ticket
from tacit.serve.turns import SLICE, Steps
from tacit.serve.writer import Cut
from tacit.session import Session

T = TypeVar("T")


def open_data(name: str, config: str | Path | Config, keys: KeyRing) -> Dataset:
    """Open what a configuration describes, a table or a series; refused while another server has its ledger."""
    settings = config if isinstance(config, Config) else read_config(config)
    return (Dataset if settings.blocks is None else ServedSeries).open(name, settings, keys)


class ServedSeries(Dataset):
    """Answers for keys about all blocks of a series. No answer is kept here: a new block may change it."""

    session: Series
    fairness = f"it is a share of each block's budget, and a new block brings a new one; {FAIRNESS}"

    def __init__(self, *given: Any, **named: Any) -> None:
        self._editions: dict[str, Published] = {}
        self._described: DomainReply | None = None
        super().__init__(*given, **named)

    @staticmethod
    def opened(settings: Config) -> Series:
        return settings.series()

    @property
    def described(self) -> DomainReply:
        """What may be asked about, with the blocks that there are by now."""
        known, blocks = self._described, self.session.blocks
        if known is None or len(known.attributes[0].labels) != len(blocks):
            known = self._described = describe(self.session)
        return known

    def table(self, block: str = "") -> Session:
        try:
            return self.session.known(block)
        except InvalidQuery as error:
            raise Refusal(404, "no_such_block", f"Every block has a ledger of its own: {error.sentence}") from None

    @property
    def newest(self) -> str:
        return self.session.blocks[-1]

    def tables(self) -> Iterator[Session]:
        return map(self.session.known, reversed(self.session.blocks))

    def edition(self, block: str = "") -> Edition:
        self.table(block)  # refuses a label that there is not
        return self._editions.setdefault(block, Published(partial(self.table, block))).edition()

    def close(self) -> None:
        for one in self._editions.values():
            one.close()
        super().close()

    def ask(
        self, key: Key, questions: list[Question], arrived: datetime | None = None, *, free: bool = False
    ) -> Future[list[Answers]] | list[Answers]:
        paid, waits = Counter[str](), ticket(key, questions, arrived)

        def note(result: Any) -> None:
            self._count_blocks(key, paid)  # first, as for one table
            self._note(key, questions, result, self._charged(paid))

        if free or not key.may_spend:
            return self.writer.do_in_steps(lambda: self._all_free(questions), note, waits)
        return self.writer.do_in_steps(lambda: self._answered(key, questions, paid), note, waits)

    def _answered(self, key: Key, questions: list[Question], paid: Counter[str]) -> Steps:
        """Answers for who may spend. `paid` is told what blocks are charged, also where that fails in the end."""
        answers = list[Answers]()
        try:
            while len(answers) < len(questions):
                some = questions[len(answers) :][:SLICE]
                some = some if all(question.plain for question in some) else some[:1]
                answers += self._pay(key, paid, partial(self._ask, some))
                yield sum(question.work for question in some)
            return answers
        finally:
            for label, atoms in paid.items():  # from here on the note of the whole request has it
                self._unnoted[self._pot(label), key.name] -= atoms

    def _ask(self, questions: list[Question]) -> list[Answers]:
        if len(questions) == 1:
            return [self.session.answer(questions[0].ask, within=questions[0].within)]
        return self.session.answer_many([question.ask for question in questions])

    def _pay(self, key: Key, paid: Counter[str], work: Callable[[], T]) -> T:
        """Do it, within what the key may spend of each block; what that costs is added to `paid`, whatever happens."""

        def left(label: str) -> int:
            return self._left(key, self._pot(label))

        capped = nullcontext() if key.may_spend_all else self.session.spending(left)
        now = Counter[str]()
        try:
            with capped, self.session.paying() as now:
                return work()
        except (TacitError, Refusal) as error:
            said = past_quota(key, error) if isinstance(error, WouldSpend) else error
            if not paid and not now:
                raise said from None
            said.nothing_spent = False
            raise Cut(said, max((paid + now).values())) from None
        finally:
            paid.update(now)
            for label, atoms in now.items():
                self._unnoted[self._pot(label), key.name] += atoms

    def _begin(self, key: Key) -> Started:
        base, paid = self.session.base, Counter[str]()
        try:
            with self.session.paying() as paid:
                self.session.start()
        except TacitError as error:
            if not paid:
                raise
            raise Cut(error, max(paid.values())) from None
        finally:
            self._count_blocks(key, paid)
        cost = Loss(self.session.total.measure, max(paid.values(), default=0))
        return replace(base, cost=cost, bought=base.bought or bool(paid))

    def _pots(self) -> list[str]:
        return list(map(self._pot, self.session.blocks))

    def _in_pot(self, pot: str) -> Loss:
        return self.session.known(pot.removeprefix(self._pot(""))).left

    def _pot(self, label: str) -> str:
        """A block's pot: no name of a data set has a slash."""
        return f"{self.name}/{label}"

    def _charged(self, paid: Counter[str]) -> dict[str, Any]:
        """What blocks were charged, for the audit log."""
        measure = self.session.total.measure
        return {"blocks": {label: Loss(measure, atoms).to_dict() for label, atoms in paid.items()}} if paid else {}

    def _count(self, key: Key, atoms: int) -> None:
        """Nothing: what is counted is what each block was charged."""

    def _count_blocks(self, key: Key, paid: Counter[str]) -> None:
        for label, atoms in paid.items():
            self._use(self._pot(label), key.name, atoms)
