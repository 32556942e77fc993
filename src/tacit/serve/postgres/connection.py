"""One client: its statements and portals, and what it is told. Started by `listener`; runs on the event loop.

The protocol is a conversation: messages are done one after the other, so nothing here is done twice at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.serve.key import Key
from tacit.serve.postgres import messages
from tacit.serve.postgres.answer import Row, notice, rows_of
from tacit.serve.postgres.catalogue import Lookup
from tacit.serve.postgres.channel import Channel, Gone
from tacit.serve.postgres.command import REPORTED, TRANSACTIONS, Command, Settings
from tacit.serve.postgres.messages import Field, Malformed
from tacit.serve.postgres.metadata import DATABASE
from tacit.serve.postgres.named import ALL, Execution, Fetching
from tacit.serve.postgres.portals import Named, Names, Portal
from tacit.serve.postgres.source import Statement, split
from tacit.serve.postgres.sqlstate import (
    CANCELLED,
    NO_TRANSACTION,
    NOT_ALLOWED,
    PROTOCOL,
    SHUTDOWN,
    SYNTAX,
    UNSUPPORTED,
    WireError,
    error_of,
)
from tacit.serve.postgres.statement import NESTED, QUERY, Bound, Explained, NamedStatement, Prepared
from tacit.serve.postgres.translation import Caller
from tacit.serve.postgres.types import decode, encoder
from tacit.serve.question import SHORT_SQL

if TYPE_CHECKING:
    from tacit.serve.postgres.listener import Listener

TURN = 0.005  # seconds after which others are served, however much one client has sent
T = TypeVar("T")
_QUIET = ("warning", "error", "fatal", "panic")  # settings of client_min_messages that want no notices


@dataclass(frozen=True)
class Result:
    """What comes of a statement: rows, or only its tag; and what is said beside it."""

    tag: str
    rows: Iterator[Row] | None = None
    notices: tuple[str, ...] = ()


class Connection:
    """One connection. `process` and `secret` are what a request to cancel has to name."""

    def __init__(self, listener: Listener, process: int, secret: int) -> None:
        self._listener, self.process, self.secret = listener, process, secret
        self.channel = Channel(listener.limits, self._begin, self._give_up)
        self.key: Key | None = None
        self.counted = False  # among the connections of its key
        self.settings = Settings()
        self.database = ""
        self._names = Names()
        self._in_transaction, self._told, self._skips = False, False, False
        self._checked: Key | None = None  # the key as it was when the message was begun
        self._asking: asyncio.Future[Any] | None = None
        self._cancelled = False
        self._enter = listener.door.enter

    @property
    def caller(self) -> Caller:
        """What the catalogues know of it."""
        user = "" if self.key is None else self.key.name
        return Caller(user, self.database or DATABASE, self.process, self.settings.values)

    # -- what others call ---------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Give up what is being waited for, as its client wishes."""
        self._cancelled = True
        self._give_up()

    def leave(self) -> None:
        """End the connection now, or when what it waits for is answered."""
        if self._asking is None:
            self.shut(WireError(SHUTDOWN, "The server is closing down.", fatal=True))

    def shut(self, error: WireError) -> None:
        """End the connection, and say why."""
        self.channel.say(error.message())
        self.channel.close()

    def _give_up(self) -> None:
        """Who went away while waiting is not asked for."""
        if self._asking is not None:
            self._asking.cancel()

    # -- its life -----------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self.task = asyncio.get_running_loop().create_task(self._live())
        self._listener.began(self)

    async def _live(self) -> None:
        try:
            async with asyncio.timeout(self._listener.limits.login_seconds):
                entered = await self._enter(self.channel)
            if isinstance(entered, messages.Cancel):
                self._listener.cancel(entered)
            else:
                self._welcome(*entered)
                await self._serve()
        except (Gone, ConnectionError):
            pass
        except TimeoutError:
            self._end_with(WireError(NOT_ALLOWED, "The login took too long."))
        except Malformed:
            self._end_with(WireError(PROTOCOL, "What was sent is no message of PostgreSQL's protocol."))
        except Exception as error:
            self._end_with(error_of(error))  # logs what may be logged
        finally:
            self._names.clear()
            self.channel.close()
            self._listener.left(self)

    def _end_with(self, error: WireError) -> None:
        error.fatal = True
        self._say(error.message())

    def _welcome(self, key: Key, parameters: Mapping[str, str]) -> None:
        self.key = key
        self._listener.entered(self, key)
        self.channel.reader.most = messages.MAX_MESSAGE
        self.database = self._listener.database(parameters.get("database", ""), parameters.get("user", ""))
        self.settings.begin(parameters, key.name)
        self._say(messages.AUTHENTICATED)
        for known in REPORTED:
            self._say(messages.parameter(known, self.settings.values[known]))
        self._say(messages.backend_key(self.process, self.secret), messages.ready(b"I"))

    def _say(self, *said: bytes) -> None:
        self.channel.say(*said)

    # -- messages -----------------------------------------------------------------------------------------------------

    async def _serve(self) -> None:
        loop = asyncio.get_running_loop()
        since = loop.time()
        while True:
            if self._listener.closing:
                raise WireError(SHUTDOWN, "The server is closing down.", fatal=True)
            if loop.time() - since > TURN:  # many messages may have come at once, and others wait
                await asyncio.sleep(0)
                since = loop.time()
            message = await self.channel.next()
            self._checked = None
            if isinstance(message, messages.Terminate):
                return
            if isinstance(message, messages.Sync):
                self._skips = False
                if not self._in_transaction:
                    self._names.end_transaction()
                self._ready()
            elif isinstance(message, messages.Query):
                self._skips = False
                await self._query(message.text)
                self._ready()
            elif not self._skips:
                await self._step(message)

    def _ready(self) -> None:
        self._say(messages.ready(b"T" if self._in_transaction else b"I"))

    async def _step(self, message: messages.Message) -> None:
        """One message of the extended protocol. After an error all are skipped until the client says Sync."""
        try:
            match message:
                case messages.Parse():
                    await self._parse(message)
                case messages.Bind():
                    await self._bind(message)
                case messages.Describe():
                    self._describe(message)
                case messages.Execute():
                    await self._execute(message)
                case messages.Close():
                    self._names.close(message.name, portal=message.portal)
                    self._say(messages.CLOSED)
                case messages.Flush():
                    await self.channel.flush()
                case messages.CopyIn():
                    pass
                case messages.Password():
                    raise Malformed
                case _:
                    raise WireError(UNSUPPORTED, "Function calls of the protocol are not answered here.")
        except (Gone, Malformed, ConnectionError):
            raise
        except Exception as error:
            self._skips = True
            self._failed(error)

    def _failed(self, error: BaseException) -> None:
        told = error_of(error)
        if told.fatal:
            raise told
        self._say(told.message())

    async def _query(self, text: str) -> None:
        """The simple protocol: all statements of a text, until one fails."""
        try:
            known = self._listener.known(self.database, text)
            statements = await self._split(text) if known is None else []
            if known is not None:
                self._take()
                await self._do_all(known, 0)
            elif not statements:
                self._say(messages.EMPTY)
            for statement in statements:
                await self._do_all(await self._read(statement), statement.start)
        except (Gone, ConnectionError):
            raise
        except Exception as error:
            self._failed(error)

    async def _do_all(self, prepared: Prepared, start: int) -> None:
        if prepared.types(()):
            raise WireError(SYNTAX, "$1 stands for a parameter, and here are none.", at=start)
        bound = await self._listener.bound(prepared, ())
        result = await self._do(bound)
        for words in result.notices:
            self._notice(words)
        fields, count = self._fields(bound), 0
        if fields is not None and result.rows is not None:
            if prepared.copies is None:
                self._say(messages.described(fields, [0] * len(fields)))
                count, _ = await self._rows(fields, [0] * len(fields), result.rows, 0)
            else:
                count = await self._copy(prepared, fields, result.rows)
        self._say(messages.complete(_tag(result.tag if prepared.copies is None else prepared.tag, fields, count)))

    async def _parse(self, message: messages.Parse) -> None:
        self._names.check_statement(message.name)
        prepared = self._listener.known(self.database, message.text)
        if prepared is None:
            statements = await self._split(message.text)
            if len(statements) > 1:
                raise WireError(SYNTAX, "a prepared statement is one statement.", at=statements[1].start)
            prepared = await self._read(statements[0]) if statements else None
        named = Named(prepared, prepared.types(message.types) if prepared else (), len(message.text))
        self._names.keep_statement(message.name, named)
        self._say(messages.PARSED)

    def _take(self) -> Key:
        """One of the key's requests is used; refused where it has none left. The key as it is now."""
        key = self._current_key()
        self._listener.server.traffic.take(key.id)
        return key

    async def _split(self, text: str) -> list[Statement]:
        if len(text) <= SHORT_SQL:
            return split(text)
        self._take()
        return await asyncio.to_thread(split, text)

    async def _read(self, statement: Statement) -> Prepared:
        """Read what was not read before, which takes one of the key's requests unless it is a command."""
        key = self._take() if statement.words[0] in (*QUERY, *NESTED, "EXECUTE") else self._current_key()
        return await self._listener.read(statement, self, key)

    async def _bind(self, message: messages.Bind) -> None:
        named = self._names.statement(message.statement)
        self._names.check_portal(message.portal)
        if len(message.values) != len(named.types):
            words = f"the statement takes {len(named.types)} parameters, and {len(message.values)} were given."
            raise WireError(PROTOCOL, words)
        codes = _spread(message.formats, len(named.types))
        if named.prepared is not None and not isinstance(named.prepared.asked, Command | Fetching):
            self._take()  # executing it takes no more
        values = tuple(map(decode, message.values, named.types, codes))
        bound = None if named.prepared is None else await self._listener.bound(named.prepared, values)
        fields = None if bound is None else self._fields(bound)
        if len(message.result_formats) not in (0, 1, len(fields or ())):
            raise WireError(PROTOCOL, "there is a format for every column, for all of them, or none.")
        formats = _spread(message.result_formats, len(fields or ()))
        self._names.keep_portal(message.portal, None if bound is None else Portal(bound, formats))
        self._say(messages.BOUND)

    def _describe(self, message: messages.Describe) -> None:
        if message.portal:
            portal = self._names.portal(message.name)
            fields = None if portal is None else self._fields(portal.bound)
            formats = () if portal is None else portal.formats
            copies = portal is not None and portal.bound.prepared.copies is not None
        else:
            named = self._names.statement(message.name)
            if named.types:
                self._take()  # the statement is read with samples of its parameters
            self._say(messages.parameters_described(named.types))
            fields = None if named.prepared is None else self._described(named.prepared)
            formats = (0,) * len(fields or ())
            copies = named.prepared is not None and named.prepared.copies is not None
        self._say(messages.NO_DATA if fields is None or copies else messages.described(fields, formats))

    async def _execute(self, message: messages.Execute) -> None:
        portal = self._names.portal(message.portal)
        if portal is None:
            self._say(messages.EMPTY)
            return
        prepared, fields, tag = portal.bound.prepared, self._fields(portal.bound), portal.bound.prepared.tag
        if portal.rows is None:
            result = await self._do(portal.bound)
            for words in result.notices:
                self._notice(words)
            tag, portal.rows = result.tag, result.rows
        if fields is None or portal.rows is None:
            self._say(messages.complete(tag))
            return
        if prepared.copies is not None:
            count = await self._copy(prepared, fields, portal.rows)
            self._say(messages.complete(_tag(prepared.tag, fields, count)))
            return
        count, more = await self._rows(fields, portal.formats, portal.rows, message.most)
        portal.sent += count
        if more:
            self._say(messages.SUSPENDED)
        else:
            self._say(messages.complete(_tag(prepared.tag, fields, portal.sent)))

    def _fields(self, bound: Bound) -> tuple[Field, ...] | None:
        """The columns of what is done: where it uses another statement, they are those of that."""
        return self._described(bound.prepared) if bound.asked is None else bound.fields

    def _described(self, prepared: Prepared) -> tuple[Field, ...] | None:
        if isinstance(prepared.asked, Execution):
            used = self._names.statement(prepared.asked.name).prepared
            return None if used is None else used.fields
        if isinstance(prepared.asked, Fetching):
            portal = self._names.portal(prepared.asked.name)
            return None if portal is None or prepared.asked.moves else portal.bound.fields
        return prepared.fields

    # -- results ------------------------------------------------------------------------------------------------------

    async def _rows(
        self, fields: Sequence[Field], formats: Sequence[int], rows: Iterator[Row], most: int
    ) -> tuple[int, bool]:
        """Send rows, `most` of them unless that is 0. How many they were, and whether the limit ended them."""
        writers = [encoder(field.type, code) for field, code in zip(fields, formats, strict=True)]
        count = 0

        def lines() -> Iterator[bytes]:
            nonlocal count
            for row in islice(rows, most) if most else rows:
                count += 1
                yield messages.row([write(value) for write, value in zip(writers, row, strict=True)])

        await self.channel.say_rows(lines())
        return count, bool(most) and count == most

    async def _copy(self, prepared: Prepared, fields: Sequence[Field], rows: Iterator[Row]) -> int:
        copies, count = prepared.copies, 0
        assert copies is not None
        self._say(messages.copying(len(fields), binary=copies.binary))

        def lines() -> Iterator[bytes]:
            nonlocal count
            for data in copies.lines(fields, rows):
                count += data.rows
                yield messages.copied(data.line)

        await self.channel.say_rows(lines())
        self._say(messages.COPY_DONE)
        return count

    def _notice(self, words: str) -> None:
        if self.settings.values.get("client_min_messages", "").lower() not in _QUIET:
            self._say(messages.said(b"N", "NOTICE", "00000", words))

    # -- statements ---------------------------------------------------------------------------------------------------

    async def _do(self, bound: Bound) -> Result:
        asked = bound.prepared.asked
        if isinstance(asked, Command):
            return self._command(asked)
        if isinstance(asked, NamedStatement):
            return await self._name(asked, bound)
        if isinstance(asked, Execution):
            return await self._do(await self._executed(asked))
        if isinstance(asked, Fetching):
            return await self._fetched(asked)
        key = self._current_key()
        with self._listener.server.traffic.slot(key.id):
            if isinstance(asked, Lookup):
                return Result("SELECT", await self._listener.looked_up(asked, bound.values, self, key))
            assert bound.asked is not None
            if isinstance(asked, Explained):
                lines = await self._listener.explained(key, asked.select.dataset, bound.asked.question, self._waited)
                return Result("EXPLAIN", iter([(line,) for line in lines]))
            answering = self._listener.server.ask(key, asked.dataset, [bound.asked.question], datetime.now(UTC))
            (answer,) = await self._waited(asyncio.ensure_future(answering))
            return Result("SELECT", rows_of(bound.asked.places, answer), (notice(answer),))

    async def _name(self, asked: NamedStatement, bound: Bound) -> Result:
        """PREPARE and DECLARE. Nothing is asked before it is executed or fetched."""
        named = asked.named
        if not named.cursor:
            types = asked.inner.types(named.types)
            self._names.keep_statement(named.name, Named(asked.inner, types, len(named.inner.text)))
            return Result("PREPARE")
        if not (self._in_transaction or named.holds):
            words = "DECLARE … CURSOR outlives its statement in a transaction, or WITH HOLD."
            raise WireError(NO_TRANSACTION, words)
        inner = await self._listener.bound(asked.inner, bound.values)
        formats = _spread((), len(inner.fields or ()))
        self._names.keep_portal(named.name, Portal(inner, formats, named.holds))
        return Result("DECLARE CURSOR")

    async def _executed(self, asked: Execution) -> Bound:
        """The statement that EXECUTE is about, with its values."""
        named = self._names.statement(asked.name)
        if len(asked.values) != len(named.types) or named.prepared is None:
            words = f"the statement takes {len(named.types)} parameters, and {len(asked.values)} were given."
            raise WireError(SYNTAX, words)
        given = (None if value is None else value.encode() for value in asked.values)
        values = tuple(decode(value, type, 0) for value, type in zip(given, named.types, strict=True))
        return await self._listener.bound(named.prepared, values)

    async def _fetched(self, asked: Fetching) -> Result:
        portal = self._names.portal(asked.name)
        assert portal is not None  # a cursor has a name
        notices = tuple[str, ...]()
        if portal.rows is None:
            result = await self._do(portal.bound)
            notices, portal.rows = result.notices, result.rows or iter(())
        rows = portal.rows if asked.most == ALL else islice(portal.rows, asked.most)
        if asked.moves:
            return Result(f"MOVE {sum(1 for _ in rows)}", None, notices)
        return Result("FETCH", rows, notices)

    async def _waited(self, asking: asyncio.Future[T]) -> T:
        """What is waited for, unless the client cancels it or goes away."""
        self._asking, self._cancelled = asking, False
        try:
            return await asking
        except asyncio.CancelledError:
            if self.channel.ended:
                raise Gone from None
            if not self._cancelled:  # the loop is ending
                raise
            words = (
                "The statement was cancelled. What was asked already is answered all the same, and free to ask again."
            )
            raise WireError(CANCELLED, words, nothing_spent=False) from None
        finally:
            self._asking = None

    def _current_key(self) -> Key:
        """The key as it was found in this message, or is now: one that was revoked ends the connection."""
        if self._checked is not None:
            return self._checked
        assert self.key is not None
        ring = self._listener.server.keys
        key = self.key if ring is None else ring.get(self.key.id)
        if key is None:
            raise WireError(NOT_ALLOWED, "The key was revoked.", fatal=True)
        if self._listener.closing:
            raise WireError(SHUTDOWN, "The server is closing down.", fatal=True)
        self._checked = key
        return key

    def _command(self, command: Command) -> Result:
        if command.transaction is not None:
            self._in_transaction = command.transaction
            if not command.transaction:
                self._names.end_transaction()
        notices = () if command.transaction is None or self._told else (TRANSACTIONS,)
        self._told |= bool(notices)
        if command.resets:
            self.settings.reset()
        for name, value in command.changes.items():
            changed = self.settings.set(name, value)
            if changed in REPORTED:
                self._say(messages.parameter(changed, self.settings.values[changed]))
        if command.forgets is not None:
            self._names.forget(command.forgets)
        if command.closes is not None:
            self._names.close_cursor(command.closes)
        if not command.shows:
            return Result(command.tag, None, notices)
        if command.shows == "ALL":
            return Result("SHOW", iter([(name, value, "") for name, value in sorted(self.settings.values.items())]))
        return Result("SHOW", iter([(self.settings.get(command.shows),)]))


def _spread(codes: Sequence[int], count: int) -> tuple[int, ...]:
    """A format for each of so many: none given means text, one given is everybody's."""
    return tuple(codes) if len(codes) == count else (codes[0] if codes else 0,) * count


def _tag(tag: str, fields: Sequence[Field] | None, count: int) -> str:
    return f"{tag} {count}" if fields is not None and tag in ("SELECT", "COPY", "FETCH") else tag
