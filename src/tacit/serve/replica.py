"""A published file as the server holds it: what was released is answered, what would have to be bought is refused.

There are no data, no ledger, no keys and no secrets here, and nothing is ever written: any number of processes answer
from copies of one file, and whichever is asked gives the same bytes.
"""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from tacit.errors import NeedsData
from tacit.model.status import DryRun, Started
from tacit.model.table import Answers
from tacit.public import opened, sound
from tacit.serve.edition import PublishedFile
from tacit.serve.key import Key
from tacit.serve.question import Question
from tacit.serve.refusal import not_here
from tacit.serve.served_data import ServedData, check_name, ticket
from tacit.serve.turns import SLICE, Steps

MAX_REMEMBERED = 10_000  # counts


class Replica(ServedData):
    """Answers for everybody from one published file. Everything here is safe from any thread."""

    _known: dict[str, Answers]  # plain counts that were asked before, by their keys

    @classmethod
    def open(cls, name: str, path: Path, elsewhere: str = "", *, unlimited: bool = False) -> Replica:
        """Read and check a file, and work out what its answers start from: before the first question, not at it.

        elsewhere: the address of the server that has the data.
        unlimited: as for `tacit.read`.
        """
        check_name(name)
        found = sound(path, unlimited=unlimited)
        session = opened(found)
        with suppress(NeedsData):  # published before its start, or while that was being bought
            session.arrays()
        made = cls(name, session, PublishedFile(path, found.digest))
        made.elsewhere = elsewhere
        made._known = {}
        return made

    def ask(
        self, key: Key, questions: list[Question], arrived: datetime | None = None, *, free: bool = False
    ) -> Future[list[Answers]] | list[Answers]:
        known = self._known
        found = [known.get(question.key) if question.plain else None for question in questions]
        if all(answer is not None for answer in found):
            return [answer for answer in found if answer is not None]
        waits = ticket(key, questions, arrived)
        if all(question.plain for question in questions):
            return self.writer.do_in_steps(lambda: self._counts(questions), ticket=waits)
        return self.writer.do_in_steps(lambda: self.in_turn(questions, lambda work, _: work()), ticket=waits)

    def price(self, key: Key, question: Question) -> Future[DryRun]:
        return self.writer.do(
            lambda: self.session.price(question.ask, within=question.within), ticket=ticket(key, [question])
        )

    def start(self, key: Key) -> Future[Started]:
        raise not_here(self.elsewhere)

    def _counts(self, questions: list[Question]) -> Steps:
        """Answers to plain counts. A question that comes twice is asked once: the second answer would be a repeat of
        the first, and say so, where another server says nothing of it.

        Nothing here can change an answer, so it is kept, and the next who asks need not wait.
        """
        asks = {question.key: question.ask for question in questions}
        work, keys, answers = {question.key: question.work for question in questions}, list(asks), dict[str, Answers]()
        for start in range(0, len(keys), SLICE):
            some = keys[start : start + SLICE]
            answers |= zip(some, self.session.answer_many([asks[one] for one in some]), strict=True)
            yield sum(work[one] for one in some)
        self._known = (self._known if len(self._known) < MAX_REMEMBERED else {}) | answers
        return [answers[question.key] for question in questions]
