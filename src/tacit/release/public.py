"""Two doors. `Public` is what everybody may know; the `Curator` is what pays and looks at the data.

A ledger has both. A published file has the first: whatever needs the second is refused there with `NeedsData`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from tacit.errors import NeedsData
from tacit.model.answer import Measured, Told
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.facts import Receipt
from tacit.model.noise_law import Noise
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import Question
from tacit.trusted.questions import own, own_loss
from tacit.trusted.sensitivity import noise_of

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator, Gate


class Public(Protocol):
    """What everybody may know about a table and what was released of it. Nothing here costs anything."""

    @property
    def domain(self) -> Domain: ...

    @property
    def rows(self) -> int:
        """The number of rows, public by convention."""
        ...

    @property
    def rows_per_person(self) -> int:
        """How many rows of one person are protected together."""
        ...

    @property
    def total(self) -> Loss: ...

    @property
    def spent(self) -> Loss:
        """What is spent for good, reservations without an outcome included."""
        ...

    @property
    def left(self) -> Loss: ...

    @property
    def entries(self) -> int:
        """The number of the newest entry."""
        ...

    def find(self, questions: Sequence[Question]) -> list[Measured | Told | None]:
        """What was answered before, for each question."""
        ...

    def released(self, after: int = 0) -> Iterator[Measured]:
        """Everything measured since entry `after`, in order: what a hypothesis is folded from."""
        ...

    def answers(self) -> Iterator[Measured | Told]:
        """Everything measured and everything told, in order."""
        ...

    def purchases(self) -> Iterator[tuple[str, Question | None, Loss, Receipt]]:
        """Everything that was ever charged and settled, in order: its kind, the question if there is one, its price."""
        ...

    def tell(
        self,
        answers: Sequence[tuple[Query | Statistic, int, int | None, str]],
        gate: Gate | None = None,
        figures: Sequence[tuple[int | None, int | None]] | None = None,
    ) -> list[Told | Measured]:
        """Record free answers, where there is a ledger, so that they never change; an earlier answer stays.

        The gate that let them pass can go on from the same transaction on.
        """
        ...

    def turn(self) -> AbstractContextManager[None]:
        """One asker at a time, so that a question is paid once."""
        ...

    def has_gate(self, owner: str) -> bool:
        """Whether a gate of this owner is open."""
        ...


def with_data(curator: Curator | None) -> Curator:
    """The curator, where there is one. Guarantee: what is read from a published file never gets any further."""
    if curator is None:
        raise NeedsData("This question has to be bought, which needs the data; here is only what was published.")
    return curator


def expected_noise(public: Public, question: Question, loss: Loss) -> Noise:
    """The noise that `loss` buys for a question, as the curator will draw it. It follows from what is public."""
    owned = own(question, public.domain)
    return noise_of(owned, public.domain, own_loss(loss, public.total.measure), public.rows_per_person)
