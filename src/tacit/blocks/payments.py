"""Trusted with budgets: what a thread may spend of the blocks of a series, and what each was charged for it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from tacit.errors import TacitError
from tacit.model.budget import Loss
from tacit.session import Session


class _Conditions(threading.local):
    """Under which a thread asks blocks: whether it may spend nothing, how much of each, and when it came."""

    free = False
    most: tuple[Callable[[str], int], Counter[str]] | None = None  # atoms of a block, and what went of them
    arrived: datetime | None = None
    paid: Counter[str] | None = None


class BlockPayments:
    """The conditions of every thread that asks, of whichever block it comes to."""

    def __init__(self) -> None:
        self._thread = _Conditions()

    @contextmanager
    def under(self, **conditions: Any) -> Iterator[None]:
        """What this thread asks within it is asked under these conditions: see `_Conditions`."""
        before = {name: getattr(self._thread, name) for name in conditions}
        for name, value in conditions.items():
            setattr(self._thread, name, value)
        try:
            yield
        finally:
            for name, value in before.items():
                setattr(self._thread, name, value)

    @property
    def arrived(self) -> datetime | None:
        """When the request of this thread came, where that is known."""
        return self._thread.arrived

    @contextmanager
    def at_one_time(self) -> Iterator[None]:
        """What this thread does within it has one time in all ledgers: that of its request, or of now.

        Guarantee: the times of a ledger's lines, which are published, do not tell how long the rows of other blocks
            were read or looked at before.
        """
        with self.under(arrived=self.arrived or datetime.now(UTC)):
            yield

    @contextmanager
    def asked(self, labels: Sequence[str], session: Session) -> Iterator[None]:
        """Ask the session of these blocks under this thread's conditions, and count what is bought before an error."""
        now = self._thread
        with ExitStack() as conditions:
            if now.free:
                conditions.enter_context(session.free())
            if now.most is not None:
                most, gone = now.most
                left = min(most(label) - gone[label] for label in labels)
                conditions.enter_context(session.spending(Loss(session.total.measure, left)))
            if now.arrived is not None:
                conditions.enter_context(session.asked_at(now.arrived))
            try:
                yield
            except TacitError as error:
                if not error.nothing_spent and error.after is not None:
                    with suppress(TacitError):  # a ledger that tells nothing any more: the first error says why
                        self.charge(labels, sum(atoms for _, atoms in session.paid_since(error.after)))
                raise

    def may_spend(self) -> bool:
        return not self._thread.free

    def charge(self, labels: Sequence[str], atoms: int) -> None:
        """Count what a ledger of these blocks was charged for this thread: the rows of each of them pay for it."""
        for counted in (self._thread.paid, None if self._thread.most is None else self._thread.most[1]):
            if counted is not None and atoms:
                counted.update(dict.fromkeys(labels, atoms))

    @contextmanager
    def paying(self) -> Iterator[Counter[str]]:
        """What blocks are charged for this thread within it, by label; an error that comes meanwhile says so."""
        outer, paid = self._thread.paid, Counter[str]()
        self._thread.paid = paid
        try:
            yield paid
        except TacitError as error:
            if paid and error.nothing_spent:
                error.nothing_spent = False
                error.sentence += " What was paid for before that stays spent."
            raise
        finally:
            self._thread.paid = outer
            if outer is not None:
                outer.update(paid)
