"""The only holder of the data: it pays, looks, and gives back what is public.

Release algorithms ask it to measure, to choose and to compare. Each operation checks what is asked, reserves its worst
case in the ledger, looks at the data, settles, and only then returns. What was asked before in the same words is read
back for nothing. Whatever it returns may be published.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import AnswerWithheld
from tacit.exact import opendp
from tacit.exact.charges import Charge, choice_terms, far_terms, passing_terms
from tacit.model.budget import Loss
from tacit.model.entry import (
    MOST_BESIDE,
    Comparison,
    Entry,
    Measured,
    Measurement,
    Selection,
    Start,
    beside,
    encode,
    released,
)
from tacit.model.noise_law import Noise
from tacit.model.query import GRID, Query
from tacit.model.request import Candidate, Chosen, Compared, Comparisons, Declared, Lens, WorstOf, far
from tacit.model.statistic import Statistic
from tacit.model.workload import Question, key, unit
from tacit.store.chain import Line
from tacit.trusted.copy import AnyRecords
from tacit.trusted.gate import Gate, first_passing, shown, unseen
from tacit.trusted.ledger import Ledger, Outcome
from tacit.trusted.noise import add_noise, draw_geometric, noisy_max
from tacit.trusted.sensitivity import noise_of, price_of, truth

Counts = NDArray[np.int64]


class Curator:
    """Holds the records, and the ledger that all charges go to."""

    def __init__(self, records: AnyRecords, ledger: Ledger) -> None:
        self._records, self._ledger = records, ledger
        self.declared = Declared(records.domain, records.rows, records.rows_per_person, ledger.total, records.counted)

    @staticmethod
    def load_samplers() -> None:
        """Load what noise is drawn with before anybody has reserved something and waits for it."""
        opendp.load()

    def measure(
        self,
        questions: Sequence[Question],
        loss: Loss,
        start: Start | None = None,
        *,
        anew: bool = False,
    ) -> list[Measured]:
        """Noisy answers to questions, for at most `loss` each; a question measured before is read back for nothing.

        With `anew` it is measured once more, for a new price, and kept beside what there is.

        `start` is a public mark, kept with what is new.

        Guarantee: each new question is charged at most `loss`, and the ledger admits no charge with which all of them
            together would pass the budget; no answer returns before it and its charge are durable.
        Formula: true integer answers + discrete Laplace or Gaussian noise, of a scale that follows from the question's
            public form alone (sensitivity, grid, loss).
        Source: Dwork, McSherry, Nissim & Smith 2006; Canonne, Kamath & Steinke 2020.
        """
        questions = tuple(questions)  # what is checked is what is measured, however long the turn takes to come
        self.declared.check(loss, questions)
        keys = [key(question) for question in questions]
        with self._ledger.log.turn():
            found = self._ledger.find_many(keys)
            # What was told for nothing stays as it was told; what is measured now is kept beside it.
            for _ in range(MOST_BESIDE):
                kept = {k for k, line in found.items() if anew or line.kind == "told"}
                if not kept:
                    break
                keys = [beside(k) if k in kept else k for k in keys]
                found = self._ledger.find_many(keys)
            new = {k: question for k, question in zip(keys, questions, strict=True) if k not in found}
            if new:
                found |= self._measure(new, loss, start)
        measured = [one for k in keys if isinstance(one := released(found[k], loss.measure), Measured)]
        if len(measured) < len(keys):  # told meanwhile, by somebody who did not wait for a turn
            raise AnswerWithheld("The question was answered meanwhile; ask again. What was reserved stays spent.")
        return measured

    def select_worst(self, candidates: Sequence[Candidate], guesses: Sequence[ArrayLike], loss: Loss) -> Chosen:
        """The candidate whose true answers are far from a public guess (both in counts): see `choice_terms`."""
        self.declared.check(loss, ())
        worst = WorstOf.of(self.declared, candidates, guesses)
        terms, scale = choice_terms(worst, loss, self.declared.rows_per_person)

        def choose() -> Selection:
            self._records.prepare(worst.candidates)
            scores = [
                int(np.abs(truth(candidate, self._records) * (GRID // unit(candidate)) - guess).sum())
                for candidate, guess in zip(worst.candidates, worst.guesses, strict=True)
            ]
            index = noisy_max(np.array(scores, dtype=np.int64), scale, loss.measure)
            return Selection(index, len(scores), worst.candidates[index])

        return Chosen.of(*self._once(terms, "choose", choose))

    def first_far(
        self, queries: Sequence[Query | Statistic], guesses: Sequence[float], threshold: float, loss: Loss
    ) -> Chosen:
        """The first query whose answer is farther than about `threshold` from a public guess, or none: `far_terms`."""
        self.declared.check(loss, ())
        asked = far(self.declared, queries, guesses, threshold)
        terms, scales = far_terms(asked, loss, self.declared.rows_per_person)

        def distinguish() -> Selection:
            noise = int(draw_geometric(scales[0], 1)[0])
            return Selection(first_passing(self._records, asked, scales, noise), len(asked.queries))

        return Chosen.of(*self._once(terms, "distinguish", distinguish))

    def compare(self, query: Query | Statistic, lens: Lens, threshold: float, loss: Loss) -> Compared:
        """Whether what a lens shows of the true answer, with noise, is at least a public threshold: `passing_terms`."""
        self.declared.check(loss, ())
        asked = Comparisons.of(self.declared, [query], [lens], threshold)
        terms, noise = passing_terms(asked, loss, self.declared.rows_per_person)

        def passes() -> Comparison:
            value = np.array([shown(self._records, asked.queries[0], asked.lenses[0])], dtype=np.int64)
            return Comparison(query, bool(add_noise(value, noise)[0] >= round(asked.threshold * GRID)))

        return Compared.of(*self._once(terms, "compare", passes))

    def open_gate(self, threshold: float, loss: Loss, *, owner: str = "") -> Gate:
        """A new gate at `threshold` (in counts), for at most `loss`: see `Gate.open`."""
        self.declared.check(loss, ())
        return Gate.open(self._ledger, self._records, threshold=threshold, loss=loss, owner=owner)

    def resume_gate(self, *, owner: str = "") -> Gate | None:
        """The owner's gate that is still open, whoever opened it: see `Gate.resume`."""
        return Gate.resume(self._ledger, self._records, owner=owner)

    # -- pay, then look ------------------------------------------------------------------------------------------------

    def _once(self, terms: Charge, purpose: str, draw: Callable[[], Entry]) -> tuple[Line, Loss]:
        """What was drawn for a request, and what is paid for it now: nothing if it was drawn before."""
        with self._ledger.log.turn():
            found = self._ledger.find(terms.key)
            if found is not None:
                return found, Loss.nothing(terms.cost.measure)
            (line,) = paid(
                self._ledger,
                terms.cost,
                purpose,
                lambda _: [Outcome(terms.key, terms.cost.atoms, *encode(draw()))],
            )
        return line, terms.cost

    def _measure(self, questions: dict[str, Question], loss: Loss, start: Start | None) -> dict[str, Line]:
        """New measurements, by their keys."""
        domain, people = self.declared.domain, self.declared.rows_per_person
        noises = {k: noise_of(question, domain, loss, people) for k, question in questions.items()}
        prices = {k: price_of(q, domain, noises[k], loss.measure, people).atoms for k, q in questions.items()}

        def draw(_: int) -> list[Outcome]:
            outcomes = list[Outcome]()
            self._records.prepare(questions.values())
            drawn = _add_noise_together({k: truth(q, self._records) for k, q in questions.items()}, noises)
            for k, question in questions.items():
                measurement = Measurement(question, drawn[k], unit(question), noises[k], start)
                outcomes.append(Outcome(k, prices[k], *encode(measurement)))
            return outcomes

        cost = Loss(loss.measure, sum(prices.values()))
        lines = paid(self._ledger, cost, f"measure {len(questions)}", draw)
        return dict(zip(questions, lines, strict=True))


def paid(ledger: Ledger, cost: Loss, purpose: str, draw: Callable[[int], list[Outcome]]) -> list[Line]:
    """Reserve, look, settle. What is true, and the noise, stay within `draw`: no later traceback shows them.

    `draw` is told the number of the intent, which no other look has.
    """
    intent = ledger.reserve(cost, purpose=purpose)
    # From here on the data are looked at. Whatever goes wrong now, the reservation stays spent.
    outcomes = unseen(lambda: draw(intent), list[Outcome]())
    if not outcomes:
        raise AnswerWithheld("The answer could not be worked out. What was reserved for it stays spent.")
    return ledger.settle(intent, outcomes)


def _add_noise_together(truths: dict[str, Counts], noises: dict[str, Noise]) -> dict[str, Counts]:
    """One vector draw for all questions with the same noise: a draw by itself costs ten times a drawn entry."""
    drawn: dict[str, Counts] = {}
    for noise in set(noises.values()):
        keys = [k for k in truths if noises[k] == noise]
        together = add_noise(np.concatenate([truths[k] for k in keys]), noise)
        drawn |= zip(keys, np.split(together, np.cumsum([truths[k].size for k in keys])[:-1]), strict=True)
    return drawn
