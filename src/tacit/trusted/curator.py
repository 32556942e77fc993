"""The only holder of the data. Release algorithms ask it to measure; it pays, draws and records before it answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from tacit.errors import AnswerWithheld, InvalidQuery
from tacit.model.answer import Measured, Receipt
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.model.workload import Marginal, Prefixes, Queries, Question, from_dict, key, to_dict
from tacit.trusted.chain import Entry
from tacit.trusted.ledger import Ledger, Outcome
from tacit.trusted.loss import noise_for, price
from tacit.trusted.noise import Noise, add_noise
from tacit.trusted.questions import MAX_ANSWERS, own, unit
from tacit.trusted.records import Records
from tacit.trusted.sensitivity import sensitivity

__all__ = ["MAX_ANSWERS", "Curator", "own"]


class Curator:
    """Holds the records and the ledger. Everything it returns is public; `rows` is public by convention.

    To come beside `measure`: `select_worst` (exponential mechanism) and `open_gate` (sparse vector). Each validates,
    reserves its worst case in the ledger, looks at the data, settles, and only then returns.
    """

    def __init__(self, records: Records, ledger: Ledger) -> None:
        self._records = records
        self._ledger = ledger

    @property
    def domain(self) -> Domain:
        """The declared domain. Guarantee: public. Formula: as declared. Source: the owner."""
        return self._records.domain

    @property
    def rows(self) -> int:
        """n. Guarantee: public by convention. Formula: the number of rows. Source: docs/PRIVACY.md."""
        return self._records.rows

    @property
    def total(self) -> Loss:
        """The whole budget. Guarantee: fixed at creation. Formula: the ledger's. Source: `Ledger.total`."""
        return self._ledger.total

    @property
    def spent(self) -> Loss:
        """What is spent, reservations included. Guarantee: durable. Formula: the ledger's. Source: `Ledger.spent`."""
        return self._ledger.spent

    @property
    def left(self) -> Loss:
        """What is left. Guarantee: never negative. Formula: the ledger's. Source: `Ledger.left`."""
        return self._ledger.left

    def turn(self) -> AbstractContextManager[None]:
        """One asker at a time, so that a question is paid once. Guarantee, formula, source: `Ledger.lock`."""
        return self._ledger.lock()

    def expected_noise(self, question: Question, loss: Loss) -> Noise:
        """The noise that `loss` buys for a question: public, and free to ask.

        Guarantee: does not look at the data. Formula: `loss.noise_for`. Source: `loss.noise_for`.
        """
        return self._noise(own(question, self.domain), loss)

    def find(self, questions: Sequence[Question]) -> list[Measured | None]:
        """What was measured before, for each question.

        Guarantee: post-processing of released answers. Formula: the stored entry of the question's key. Source: ledger.
        """
        keys = [key(own(question, self.domain)) for question in questions]
        found = self._ledger.find_many(keys)
        return [self._read(found[k]) if k in found else None for k in keys]

    def released(self, after: int = 0) -> Iterator[Measured]:
        """Everything measured since entry `after`, in order: what a hypothesis is folded from.

        Guarantee: post-processing of released answers. Formula: the ledger's outcomes. Source: ledger.
        """
        for entry in self._ledger.entries(after=after, kind="outcome"):
            if entry.key is not None:
                yield self._read(entry)

    def measure(self, questions: Sequence[Question], loss: Loss) -> list[Measured]:
        """Noisy answers to questions, for at most `loss` each; a question measured before is read back for nothing.

        Guarantee: each new question costs at most `loss` of the session's total, whose sum the ledger never lets pass
            the budget; nothing is returned before it and its charge are durable.
        Formula: true integer answers + discrete Laplace or Gaussian noise, of a scale that follows from the question's
            public form alone (sensitivity, grid, loss).
        Source: Dwork, McSherry, Nissim & Smith 2006; Canonne, Kamath & Steinke 2020.
        """
        copies = [own(question, self.domain) for question in questions]
        keys = [key(copy) for copy in copies]
        with self.turn():
            found = self._ledger.find_many(keys)
            new = {k: copy for k, copy in zip(keys, copies, strict=True) if k not in found}
            if new:
                found |= self._measure(new, loss)
        return [self._read(found[k]) for k in keys]

    def _measure(self, questions: dict[str, Question], loss: Loss) -> dict[str, Entry]:
        """`questions` are the curator's own copies."""
        noises = {k: self._noise(question, loss) for k, question in questions.items()}
        prices = {
            k: price(noises[k], sensitivity(question, self.domain), unit(question), self.total.measure)
            for k, question in questions.items()
        }
        worst_case = Loss(self.total.measure, sum(p.atoms for p in prices.values()))
        reservation = self._ledger.reserve(worst_case, purpose=f"measure {len(questions)}")
        # From here on the data are looked at. Whatever goes wrong now, the reservation stays spent.
        try:
            truths = {k: self._truth(question) for k, question in questions.items()}
            drawn = _add_noise_together(truths, noises)
            outcomes = [Outcome(k, prices[k].atoms, _body(q, drawn[k], noises[k])) for k, q in questions.items()]
        except Exception:  # what went wrong may depend on the data, so nothing is said about it
            outcomes = []
        if not outcomes:
            raise AnswerWithheld("The answer could not be worked out. What was reserved for it stays spent.")
        return dict(zip(questions, self._ledger.settle(reservation, outcomes), strict=True))

    def _noise(self, question: Question, loss: Loss) -> Noise:
        moves = sensitivity(question, self.domain)
        if moves.l1 == 0:
            raise InvalidQuery("the answer follows from the number of rows, which is public: nothing to measure.")
        return noise_for(loss, moves, unit(question))

    def _truth(self, question: Question) -> NDArray[np.int64]:
        """The exact answers, in grid steps. Never leaves this class without noise."""
        if isinstance(question, Query):
            return np.array([self._records.answer(question)], dtype=np.int64)
        if isinstance(question, Marginal):
            return self._records.table(question.names, question.where).ravel()
        if isinstance(question, Queries):
            steps = unit(question)
            answers = [self._records.answer(query) * (steps // query.unit) for query in question.listed]
            return np.array(answers, dtype=np.int64)
        counts = self._records.table((question.name,))[: self.domain[question.name].bins]
        sums = np.concatenate([[0], np.cumsum(counts)])
        if isinstance(question, Prefixes):
            return np.asarray(sums[1:])
        first, last = np.triu_indices(len(counts))
        return np.asarray(sums[last + 1] - sums[first])

    def _read(self, entry: Entry) -> Measured:
        body = json.loads(entry.body)
        return Measured(
            key=str(entry.key),
            question=from_dict(body["question"]),
            values=np.array(body["values"], dtype=np.int64),
            unit=body["unit"],
            noise=Noise(body["noise"]["kind"], body["noise"]["scale"]),
            cost=Loss(self.total.measure, entry.atoms),
            receipt=Receipt(entry.seq, entry.hash),
        )


def _add_noise_together(truths: dict[str, NDArray[np.int64]], noises: dict[str, Noise]) -> dict[str, NDArray[np.int64]]:
    """One vector draw for all questions with the same noise: a draw by itself costs ten times a drawn entry."""
    drawn: dict[str, NDArray[np.int64]] = {}
    for noise in set(noises.values()):
        keys = [k for k in truths if noises[k] == noise]
        together = add_noise(np.concatenate([truths[k] for k in keys]), noise)
        drawn |= zip(keys, np.split(together, np.cumsum([truths[k].size for k in keys])[:-1]), strict=True)
    return drawn


def _body(question: Question, values: NDArray[np.int64], noise: Noise) -> str:
    """The released answer as canonical JSON: all of it public."""
    body = {
        "question": to_dict(question),
        "values": values.tolist(),
        "unit": unit(question),
        "noise": {"kind": noise.kind, "scale": noise.scale},
    }
    return json.dumps(body, sort_keys=True, separators=(",", ":"))
