"""What the statements of one client do, and what it has said so far: settings, names, a transaction.

It gives names to prepared statements, and to portals, which SQL calls cursors.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tacit.serve.key import Key
from tacit.serve.postgres import messages
from tacit.serve.postgres.answer import Row, notice, rows_of
from tacit.serve.postgres.catalogue import DATABASE, Lookup
from tacit.serve.postgres.channel import Channel, Gone
from tacit.serve.postgres.command import REPORTED, TRANSACTIONS, Command, ConnectionSettings
from tacit.serve.postgres.messages import Field
from tacit.serve.postgres.sqlstate import (
    CANCELLED,
    NO_PORTAL,
    NO_STATEMENT,
    NO_TRANSACTION,
    NOT_ALLOWED,
    PORTAL_TAKEN,
    SHUTDOWN,
    SYNTAX,
    TAKEN,
    TOO_LARGE,
    WireError,
)
from tacit.serve.postgres.statement import ALL, BoundStatement, Execution, Fetching, NamedStatement, Prepared
from tacit.serve.postgres.translation import Caller
from tacit.serve.postgres.types import decode, encoder

if TYPE_CHECKING:
    from tacit.serve.postgres.listener import Listener

MAX_PREPARED, MAX_PREPARED_TEXT = 500, 2**20  # statements of one client, and their characters
MAX_PORTALS = 32
STATEMENTS, PORTALS = ("prepared statement", NO_STATEMENT, TAKEN), ("portal", NO_PORTAL, PORTAL_TAKEN)
T = TypeVar("T")
_QUIET = ("warning", "error", "fatal", "panic")  # settings of client_min_messages that want no notices


class CountedRows:
    """Rows that are sent one after the other, and how many they have been."""

    def __init__(self, rows: Iterator[Row]) -> None:
        self._rows, self.many = rows, 0

    def __iter__(self) -> Iterator[Row]:
        for row in self._rows:
            self.many += 1
            yield row


@dataclass(frozen=True)
class Result:
    """What comes of a statement: rows, or only its tag; and what is said beside it."""

    tag: str
    rows: Iterator[Row] | None = None
    notices: tuple[str, ...] = ()


class Conversation:
    """One client: who it is, what it has named and set, and what is being asked for it."""

    def __init__(self, listener: Listener, channel: Channel, process: int) -> None:
        self._listener, self.channel, self.process = listener, channel, process
        self.key: Key | None = None
        self.settings = ConnectionSettings()
        self.database = ""
        self.statements, self.portals = Names[Named](*STATEMENTS), Names[Portal](*PORTALS)
        self.in_transaction, self._told = False, False
        self.checked: Key | None = None  # the key as it was when the message was begun
        self.asking: asyncio.Future[Any] | None = None
        self.cancelled = False

    @property
    def caller(self) -> Caller:
        """What the catalogues know of it."""
        user = "" if self.key is None else self.key.name
        return Caller(user, self.database or DATABASE, self.process, self.settings.values)

    def fields(self, bound: BoundStatement) -> tuple[Field, ...] | None:
        """The columns of what is done: where it uses another statement, they are those of that."""
        return self.described(bound.prepared) if bound.asked is None else bound.fields

    def described(self, prepared: Prepared) -> tuple[Field, ...] | None:
        if isinstance(prepared.asked, Execution):
            return self.statements.get(prepared.asked.name).prepared.fields
        if isinstance(prepared.asked, Fetching):
            portal = self.portals.get(prepared.asked.name)
            return None if prepared.asked.moves else portal.bound.fields
        return prepared.fields

    def end_portals(self) -> None:
        """Those that do not outlive their transaction."""
        self.portals.kept = {name: portal for name, portal in self.portals.kept.items() if portal.holds}

    # -- results ------------------------------------------------------------------------------------------------------

    async def rows(
        self, fields: Sequence[Field], formats: Sequence[int], rows: Iterator[Row], most: int
    ) -> tuple[int, bool]:
        """Send rows, `most` of them unless that is 0. How many they were, and whether the limit ended them."""
        writers = [encoder(field.type, code) for field, code in zip(fields, formats, strict=True)]
        sent = CountedRows(islice(rows, most) if most else rows)
        await self.channel.say_rows(
            messages.row([write(value) for write, value in zip(writers, row, strict=True)]) for row in sent
        )
        return sent.many, bool(most) and sent.many == most

    async def copy(self, prepared: Prepared, fields: Sequence[Field], rows: Iterator[Row]) -> int:
        copies, sent = prepared.copies, CountedRows(rows)
        assert copies is not None
        self.channel.say(messages.copying(len(fields), binary=copies.binary))
        await self.channel.say_rows(map(messages.copied, copies.lines(fields, sent)))
        self.channel.say(messages.COPY_DONE)
        return sent.many

    def notice(self, words: str) -> None:
        if self.settings.values.get("client_min_messages", "").lower() not in _QUIET:
            self.channel.say(messages.said(b"N", "NOTICE", "00000", words))

    # -- statements ---------------------------------------------------------------------------------------------------

    async def do(self, bound: BoundStatement) -> Result:
        asked = bound.prepared.asked
        if isinstance(asked, Command):
            return self._command(asked)
        if isinstance(asked, NamedStatement):
            return await self._name(asked, bound)
        if isinstance(asked, Execution):
            return await self.do(await self._executed(asked))
        if isinstance(asked, Fetching):
            return await self._fetched(asked)
        key = self.current_key()
        with self._listener.server.traffic.slot(key.id):
            if isinstance(asked, Lookup):
                return Result("SELECT", await self._listener.looked_up(asked, bound.values, self.caller, key))
            assert bound.asked is not None
            if bound.prepared.explains:
                lines = await self._listener.explained(key, asked.dataset, bound.asked.question, self._waited)
                return Result("EXPLAIN", iter([(line,) for line in lines]))
            answering = self._listener.server.ask(key, asked.dataset, [bound.asked.question], datetime.now(UTC))
            (answer,) = await self._waited(asyncio.ensure_future(answering))
            return Result("SELECT", rows_of(bound.asked.places, answer), (notice(answer),))

    async def _name(self, asked: NamedStatement, bound: BoundStatement) -> Result:
        """PREPARE and DECLARE. Nothing is asked before it is executed or fetched."""
        if not asked.cursor:
            types = asked.inner.types(asked.types)
            keep_statement(self.statements, asked.name, Named(asked.inner, types, asked.length))
            return Result("PREPARE")
        if not (self.in_transaction or asked.holds):
            words = "DECLARE … CURSOR outlives its statement in a transaction, or WITH HOLD."
            raise WireError(NO_TRANSACTION, words)
        inner = await self._listener.bound(self.current_key(), asked.inner, bound.values)
        formats = spread((), len(inner.fields or ()))
        keep_portal(self.portals, asked.name, Portal(inner, formats, asked.holds))
        return Result("DECLARE CURSOR")

    async def _executed(self, asked: Execution) -> BoundStatement:
        """The statement that EXECUTE is about, with its values."""
        named = self.statements.get(asked.name)
        if len(asked.values) != len(named.types):
            words = f"the statement takes {len(named.types)} parameters, and {len(asked.values)} were given."
            raise WireError(SYNTAX, words)
        given = (None if value is None else value.encode() for value in asked.values)
        values = tuple(decode(value, type, 0) for value, type in zip(given, named.types, strict=True))
        return await self._listener.bound(self.current_key(), named.prepared, values)

    async def _fetched(self, asked: Fetching) -> Result:
        portal = self.portals.get(asked.name)
        notices = tuple[str, ...]()
        if portal.rows is None:
            result = await self.do(portal.bound)
            notices, portal.rows = result.notices, result.rows or iter(())
        rows = portal.rows if asked.most == ALL else islice(portal.rows, asked.most)
        if asked.moves:
            return Result(f"MOVE {sum(1 for _ in rows)}", None, notices)
        return Result("FETCH", rows, notices)

    async def _waited(self, asking: asyncio.Future[T]) -> T:
        """What is waited for, unless the client cancels it or goes away."""
        self.asking, self.cancelled = asking, False
        try:
            return await asking
        except asyncio.CancelledError:
            if self.channel.ended:
                raise Gone from None
            if not self.cancelled:  # the loop is ending
                raise
            words = (
                "The statement was cancelled. What was asked already is answered all the same, and free to ask again."
            )
            raise WireError(CANCELLED, words, nothing_spent=False) from None
        finally:
            self.asking = None

    def current_key(self) -> Key:
        """The key as it was found in this message, or is now: one that was revoked ends the connection."""
        if self.checked is not None:
            return self.checked
        assert self.key is not None
        ring = self._listener.server.keys
        key = self.key if ring is None else ring.get(self.key.id)
        if key is None:
            raise WireError(NOT_ALLOWED, "The key was revoked.", fatal=True)
        if self._listener.closing:
            raise WireError(SHUTDOWN, "The server is closing down.", fatal=True)
        self.checked = key
        return key

    def _command(self, command: Command) -> Result:
        if command.transaction is not None:
            self.in_transaction = command.transaction
            if not command.transaction:
                self.end_portals()
        notices = () if command.transaction is None or self._told else (TRANSACTIONS,)
        self._told |= bool(notices)
        if command.resets:
            self.settings.reset()
        for name, value in command.changes.items():
            changed = self.settings.set(name, value)
            if changed in REPORTED:
                self.channel.say(messages.parameter(changed, self.settings.values[changed]))
        if command.forgets is not None:
            self.statements.forget(command.forgets)
        if command.closes is not None:
            self.portals.forget(command.closes)
        if not command.shows:
            return Result(command.tag, None, notices)
        if command.shows == "ALL":
            return Result("SHOW", iter([(name, value, "") for name, value in sorted(self.settings.values.items())]))
        return Result("SHOW", iter([(self.settings.get(command.shows),)]))


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


def spread(codes: Sequence[int], count: int) -> tuple[int, ...]:
    """A format for each value: none given means text, one given is everybody's."""
    return tuple(codes) if len(codes) == count else (codes[0] if codes else 0,) * count


def tagged(tag: str, fields: Sequence[Field] | None, count: int) -> str:
    return f"{tag} {count}" if fields is not None and tag in ("SELECT", "COPY", "FETCH") else tag
