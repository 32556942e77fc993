"""What stands in the place of a curator where there are no data: what was bought before, read back.

And purchases that go on from what was bought before, whoever sells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import InvalidQuery, NeedsData
from tacit.exact.charges import Charge, choice_terms, far_terms
from tacit.model.budget import Loss
from tacit.model.entry import FreeAnswer, Measured, Told
from tacit.model.facts import Bar
from tacit.model.noise_law import Noise
from tacit.model.query import Query
from tacit.model.request import Candidate, Chosen, WorstOf, far
from tacit.model.statistic import Statistic
from tacit.model.workload import Question, check, marginal
from tacit.release.hypothesis.noisy_table import answer_from
from tacit.release.public import Public
from tacit.trusted.sensitivity import noise_of, price_of

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator


class Recall:
    """In the place of a curator where there are no data: what was bought before is read back, the rest is refused."""

    def __init__(self, public: Public) -> None:
        self._public = public

    def measure(
        self,
        questions: Sequence[Question],
        loss: Loss,
        start: object = None,
        *,
        anew: bool = False,
    ) -> list[Measured]:
        if anew:
            _refuse()
        found = [self._public.measured(question) for question in questions]
        return [one if one is not None else _refuse() for one in found]

    def select_worst(self, candidates: Sequence[Candidate], guesses: Sequence[ArrayLike], loss: Loss) -> Chosen:
        declared = self._public.declared
        declared.check(loss, ())
        worst = WorstOf.of(declared, candidates, guesses)
        return self._chosen(choice_terms(worst, loss, declared.rows_per_person)[0], loss)

    def first_far(
        self, queries: Sequence[Query | Statistic], guesses: Sequence[float], threshold: float, loss: Loss
    ) -> Chosen:
        declared = self._public.declared
        declared.check(loss, ())
        asked = far(declared, queries, guesses, threshold)
        return self._chosen(far_terms(asked, loss, declared.rows_per_person)[0], loss)

    def _chosen(self, terms: Charge, loss: Loss) -> Chosen:
        line = self._public.line(terms.key)
        return _refuse() if line is None else Chosen.of(line, Loss.nothing(loss.measure))


def _refuse() -> NoReturn:
    raise NeedsData("This question has to be bought, which needs the data; here is only what was published.")


def buyer(public: Public, curator: Curator | None) -> Curator | Recall:
    """The curator, where there is one; else what was bought before. A published file never gets any further."""
    return Recall(public) if curator is None else curator


def expected_noise(public: Public, question: Question, loss: Loss) -> Noise:
    """The noise that `loss` buys for a question, as the curator will draw it. It follows from what is public."""
    check(question, public.domain)
    return noise_of(question, public.domain, loss, public.rows_per_person)


def expected_price(public: Public, question: Question, loss: Loss) -> Loss:
    """What a question will be charged that may cost `loss`: a little less, as scales of noise are rounded up."""
    noise = expected_noise(public, question, loss)
    return price_of(question, public.domain, noise, loss.measure, public.rows_per_person)


def measure_around(
    public: Public, curator: Curator | Recall, query: Query, loss: Loss, bar: Bar, note: str
) -> tuple[Measured, Measured | Told]:
    """The whole table of a query's attributes, for at most `loss`, and the query's answer from that table.

    A table that was measured before with the same noise is read back for nothing: so a crash between the table and its
    answer loses nothing, as whoever asks again finds the table, and the answer follows from it. `bar` is for that
    noise: the caller works it out from `expected_noise`.
    """
    if query.is_constant or query.complement:
        raise InvalidQuery("a table is measured around a query that depends on some attributes, not a complement.")
    table = marginal(public.domain, *query.scope)
    shape = public.domain.shape_of(query.scope)

    def told(cells: NDArray[np.int64]) -> FreeAnswer:
        value = answer_from(query, query.scope, cells.reshape(shape), public.rows)
        return FreeAnswer(query, int(value), note, (bar,))

    told(np.zeros(shape, dtype=np.int64))  # refuses widths and words that cannot be stored before anything is paid
    with public.turn():
        measured = curator.measure([table], loss)[0]
        if measured.noise != expected_noise(public, table, loss):
            raise InvalidQuery("the table was measured before with other noise, which the bar is not for.")
        answer = public.find([query])[0]
        if answer is None:
            answer = public.tell([told(measured.values)])[0]
    return measured, answer
