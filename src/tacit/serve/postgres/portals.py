"""What one client has given names to: prepared statements, and portals, which SQL calls cursors. For `connection`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tacit.serve.postgres.answer import Row
from tacit.serve.postgres.sqlstate import NO_PORTAL, NO_STATEMENT, PORTAL_TAKEN, TAKEN, TOO_LARGE, WireError
from tacit.serve.postgres.statement import BoundStatement, Prepared

MAX_PREPARED, MAX_PREPARED_TEXT = 500, 2**20  # statements of one client, and their characters
MAX_PORTALS = 32


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


class Names:
    """The names of one client. The unnamed statement and the unnamed portal are replaced by the next ones."""

    def __init__(self) -> None:
        self._statements: dict[str, Named] = {}
        self._portals: dict[str, Portal] = {}

    def statement(self, name: str) -> Named:
        if name not in self._statements:
            raise _no_statement(name)
        return self._statements[name]

    def check_statement(self, name: str) -> None:
        """Refuse a name that is taken, before anything is done for it."""
        if name and name in self._statements:
            raise WireError(TAKEN, f"there is a statement {name[:60]!r} already.")

    def keep_statement(self, name: str, named: Named) -> None:
        self.check_statement(name)
        kept = len(name) + sum(len(other) + one.length for other, one in self._statements.items() if other != name)
        if len(self._statements) >= MAX_PREPARED or kept + named.length > MAX_PREPARED_TEXT:
            raise WireError(TOO_LARGE, f"a connection keeps at most {MAX_PREPARED} statements of a megabyte in all.")
        self._statements[name] = named

    def forget(self, name: str) -> None:
        """One statement, which there has to be, or all of them."""
        if not name:
            self._statements.clear()
        elif self._statements.pop(name, None) is None:
            raise _no_statement(name)

    def portal(self, name: str) -> Portal:
        if name not in self._portals:
            raise _no_portal(name)
        return self._portals[name]

    def check_portal(self, name: str) -> None:
        """Refuse a name that is taken, before anything is done for it."""
        if name and name in self._portals:
            raise WireError(PORTAL_TAKEN, f"there is a portal {name[:60]!r} already.")

    def keep_portal(self, name: str, portal: Portal) -> None:
        self.check_portal(name)
        if len(self._portals) >= MAX_PORTALS and name not in self._portals:
            raise WireError(TOO_LARGE, f"a connection has at most {MAX_PORTALS} portals at once.")
        if name and portal.bound.asked is not None and not portal.bound.asked.question.light:
            raise WireError(TOO_LARGE, "a question of so much work has no named portal: bind it to the unnamed one.")
        self._portals[name] = portal

    def close(self, name: str, *, portal: bool) -> None:
        """What the protocol closes need not be there."""
        kept: dict[str, Named] | dict[str, Portal] = self._portals if portal else self._statements
        kept.pop(name, None)

    def close_cursor(self, name: str) -> None:
        """One cursor, which there has to be, or all of them."""
        if not name:
            self._portals.clear()
        elif self._portals.pop(name, None) is None:
            raise _no_portal(name)

    def end_transaction(self) -> None:
        self._portals = {name: portal for name, portal in self._portals.items() if portal.holds}

    def clear(self) -> None:
        self._statements.clear()
        self._portals.clear()


def _no_statement(name: str) -> WireError:
    return WireError(NO_STATEMENT, f"there is no prepared statement {name[:60]!r}.")


def _no_portal(name: str) -> WireError:
    return WireError(NO_PORTAL, f"there is no portal {name[:60]!r}.")
