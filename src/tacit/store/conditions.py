"""Under which conditions a thread writes into a log: not at all, up to a number of atoms, as asked for when."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from tacit.errors import WouldSpend
from tacit.store.chain import Accepted


class Conditions(threading.local):
    """The conditions of every thread that uses a log; each thread sees its own."""

    reading = False  # whether it may write nothing
    most: int | None = None  # atoms that it may still add to the total; None: as many as the log allows
    arrived: str | None = None  # when what it does was asked for, where that is known
    asked: str | None = None  # when it asked for its turn

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """What this thread does within it adds nothing to the log; other threads go on as before.

        Guarantee: `write` and `check_room` refuse before they do anything, so no line is added and nothing is taken.
        """
        before, self.reading = self.reading, True
        try:
            yield
        finally:
            self.reading = before

    @contextmanager
    def spending(self, most: int) -> Iterator[None]:
        """What this thread does within it adds at most `most` atoms to the total; other threads go on as before.

        Guarantee: `write` undoes and refuses a transaction that would add more, so it is as if it had not been tried.
        """
        before, self.most = self.most, most
        try:
            yield
        finally:
            self.most = before

    @contextmanager
    def asked_at(self, arrived: datetime) -> Iterator[None]:
        """Turns that this thread asks for within it count as asked for at `arrived`, in whole seconds.

        For a server: when a request arrived is the client's doing. When its turn came may depend on how long the data
        were looked at for others; and for what reads the data before it asks for a turn.
        """
        before, self.arrived = self.arrived, _whole_seconds(arrived)
        try:
            yield
        finally:
            self.arrived = before

    def check_writing(self) -> None:
        """Refuse where this thread may write nothing: see `read_only`."""
        if self.reading:
            raise WouldSpend("The answer is not known yet: it would have to be bought, and here nothing may be.")

    def count(self, more: int) -> None:
        """Count what this thread adds, and refuse what it may not: see `spending`."""
        if self.most is not None:
            if more > self.most:
                raise WouldSpend("The answer would cost more than may be spent here.")
            self.most -= more


def accepted(reason: str | None, at: datetime) -> Accepted | None:
    """An owner's reason to accept a rollback, if one was given, in whole seconds."""
    return Accepted(reason, _whole_seconds(at)) if reason else None


def now() -> str:
    """The time in whole seconds."""
    return _whole_seconds(datetime.now(UTC))


def _whole_seconds(time: datetime) -> str:
    return time.astimezone(UTC).replace(microsecond=0).isoformat(timespec="milliseconds")
