"""What one client has given names to: prepared statements, and portals, which SQL calls cursors. For `connection`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from tacit.serve.postgres.answer import Row
from tacit.serve.postgres.sqlstate import NO_PORTAL, NO_STATEMENT, PORTAL_TAKEN, TAKEN, TOO_LARGE, WireError
from tacit.serve.postgres.statement import BoundStatement, Prepared

MAX_PREPARED, MAX_PREPARED_TEXT = 500, 2**20  # statements of one client, and their characters
MAX_PORTALS = 32
STATEMENTS, PORTALS = ("prepared statement", NO_STATEMENT, TAKEN), ("portal", NO_PORTAL, PORTAL_TAKEN)
T = TypeVar("T")


@dataclass(frozen=True)
class Named:
    """A prepared statement, the types of its parameters, and how long its text is."""

    prepared: Prepared
    types: tuple[int, ...] = ()
    length: int = 0


@dataclass
class Portal:
    """A statement with its parameters, and the rows that were not fetched yet."""

    bound: BoundStatement
    formats: tuple[int, ...]
    holds: bool = False  # it outlives its transaction
    rows: Iterator[Row] | None = None  # None: it has not been done
    sent: int = 0


class Names(Generic[T]):
    """What one client has given names to, of one kind. What has no name is replaced by the next.

    missing, taken: the codes of refusals, of a name that is not there and of one that is.
    """

    def __init__(self, kind: str, missing: str, taken: str) -> None:
        self._kind, self._missing, self._taken = kind, missing, taken
        self.kept: dict[str, T] = {}

    def get(self, name: str) -> T:
        if name not in self.kept:
            raise WireError(self._missing, f"there is no {self._kind} {name[:60]!r}.")
        return self.kept[name]

    def check(self, name: str) -> None:
        """Refuse a name that is taken, before anything is done for it."""
        if name and name in self.kept:
            raise WireError(self._taken, f"there is a {self._kind} {name[:60]!r} already.")

    def forget(self, name: str) -> None:
        """One, which there has to be; without a name all of them."""
        if name:
            self.get(name)
            del self.kept[name]
        else:
            self.kept.clear()


def keep_statement(statements: Names[Named], name: str, named: Named) -> None:
    statements.check(name)
    length = len(name) + sum(len(other) + one.length for other, one in statements.kept.items() if other != name)
    if len(statements.kept) >= MAX_PREPARED or length + named.length > MAX_PREPARED_TEXT:
        raise WireError(TOO_LARGE, f"a connection keeps at most {MAX_PREPARED} statements of a megabyte in all.")
    statements.kept[name] = named


def keep_portal(portals: Names[Portal], name: str, portal: Portal) -> None:
    portals.check(name)
    if len(portals.kept) >= MAX_PORTALS and name not in portals.kept:
        raise WireError(TOO_LARGE, f"a connection has at most {MAX_PORTALS} portals at once.")
    if name and portal.bound.asked is not None and not portal.bound.asked.question.light:
        raise WireError(TOO_LARGE, "a question of so much work has no named portal: bind it to the unnamed one.")
    portals.kept[name] = portal
