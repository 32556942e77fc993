"""One client: its life and its messages. Started by `listener`; runs on the event loop. `conversation` has the rest.

The protocol is a conversation: messages are done one after the other, so nothing here is done twice at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tacit.serve.key import Key
from tacit.serve.postgres import messages
from tacit.serve.postgres.channel import Channel, Gone
from tacit.serve.postgres.command import REPORTED, Command
from tacit.serve.postgres.conversation import Conversation, Named, Portal, keep_portal, keep_statement, spread, tagged
from tacit.serve.postgres.messages import Malformed
from tacit.serve.postgres.source import SentStatement, split
from tacit.serve.postgres.sqlstate import (
    NOT_ALLOWED,
    PROTOCOL,
    SHUTDOWN,
    SYNTAX,
    UNSUPPORTED,
    WireError,
    error_of,
)
from tacit.serve.postgres.statement import EMPTY, NESTED, QUERY, Fetching, Prepared
from tacit.serve.postgres.types import decode
from tacit.serve.question import SHORT_SQL

if TYPE_CHECKING:
    from tacit.serve.postgres.listener import Listener

TURN = 0.005  # seconds after which others are served, however much one client has sent


class Connection:
    """One connection. `process` and `secret` are what a request to cancel has to name."""

    def __init__(self, listener: Listener, process: int, secret: int) -> None:
        self._listener, self.process, self.secret = listener, process, secret
        self.channel = Channel(listener.limits, self._begin, self._give_up)
        self.counted = False  # among the connections of its key
        self._talk = Conversation(listener, self.channel, process)
        self._skips = False
        self._enter = listener.door.enter  # the fuzzer lets itself in by another door

    @property
    def key(self) -> Key | None:
        """Whose connection it is, once somebody has logged in."""
        return self._talk.key

    # -- what others call ---------------------------------------------------------------------------------------------

    def cancel(self) -> None:
        """Give up what is being waited for, as its client wishes."""
        self._talk.cancelled = True
        self._give_up()

    def leave(self) -> None:
        """End the connection now, or when what it waits for is answered."""
        if self._talk.asking is None:
            self.shut(WireError(SHUTDOWN, "The server is closing down.", fatal=True))

    def shut(self, error: WireError) -> None:
        """End the connection, and say why."""
        self.channel.say(error.message())
        self.channel.close()

    def _give_up(self) -> None:
        """Who went away while waiting is not asked for."""
        if self._talk.asking is not None:
            self._talk.asking.cancel()

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
            self._talk.statements.forget("")
            self._talk.portals.forget("")
            self.channel.close()
            self._listener.left(self)

    def _end_with(self, error: WireError) -> None:
        error.fatal = True
        self._say(error.message())

    def _welcome(self, key: Key, parameters: Mapping[str, str]) -> None:
        self._talk.key = key
        self._listener.entered(self, key)
        self.channel.reader.most = messages.MAX_MESSAGE
        self._talk.database = self._listener.database(parameters.get("database", ""), parameters.get("user", ""))
        self._talk.settings.begin(parameters, key.name)
        self._say(messages.AUTHENTICATED)
        for known in REPORTED:
            self._say(messages.parameter(known, self._talk.settings.values[known]))
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
            self._talk.checked = None
            if isinstance(message, messages.Terminate):
                return
            if isinstance(message, messages.Sync):
                self._skips = False
                if not self._talk.in_transaction:
                    self._talk.end_portals()
                self._ready()
            elif isinstance(message, messages.Query):
                self._skips = False
                await self._query(message.text)
                self._ready()
            elif not self._skips:
                await self._step(message)

    def _ready(self) -> None:
        self._say(messages.ready(b"T" if self._talk.in_transaction else b"I"))

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
                    await self._do(self._talk.portals.get(message.portal), message.most)
                case messages.Close():
                    kept: dict[str, Any] = (self._talk.portals if message.portal else self._talk.statements).kept
                    kept.pop(message.name, None)  # what the protocol closes need not be there
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
            known = self._listener.known(self._talk.database, text)
            statements = await self._split(text) if known is None else []
            if known is not None:
                self._take()
                await self._do_all(known, 0)
            elif not statements:
                self._say(messages.EMPTY_QUERY)
            for statement in statements:
                await self._do_all(await self._read(statement), statement.start)
        except (Gone, ConnectionError):
            raise
        except Exception as error:
            self._failed(error)

    async def _do_all(self, prepared: Prepared, start: int) -> None:
        if prepared.types(()):
            raise WireError(SYNTAX, "$1 stands for a parameter, and here are none.", at=start)
        bound = await self._listener.bound(self._talk.current_key(), prepared, ())
        portal = Portal(bound, spread((), len(self._talk.fields(bound) or ())))
        await self._do(portal, 0, describe=True)

    async def _do(self, portal: Portal, most: int, *, describe: bool = False) -> None:
        """Do what a portal is for, or go on with it, and send `most` of its rows; 0 for all."""
        prepared, fields, tag = portal.bound.prepared, self._talk.fields(portal.bound), portal.bound.prepared.tag
        if portal.rows is None:
            result = await self._talk.do(portal.bound)
            for words in result.notices:
                self._talk.notice(words)
            tag, portal.rows = result.tag, result.rows
        if fields is None or portal.rows is None:
            self._say(messages.complete(tag))
            return
        if prepared.copies is not None:
            count, more = await self._talk.copy(prepared, fields, portal.rows), False
        else:
            if describe:
                self._say(messages.described(fields, portal.formats))
            count, more = await self._talk.rows(fields, portal.formats, portal.rows, most)
        portal.sent += count
        self._say(messages.SUSPENDED if more else messages.complete(tagged(prepared.tag, fields, portal.sent)))

    async def _parse(self, message: messages.Parse) -> None:
        self._talk.statements.check(message.name)
        prepared = self._listener.known(self._talk.database, message.text)
        if prepared is None:
            statements = await self._split(message.text)
            if len(statements) > 1:
                raise WireError(SYNTAX, "a prepared statement is one statement.", at=statements[1].start)
            prepared = await self._read(statements[0]) if statements else EMPTY
        named = Named(prepared, prepared.types(message.types), len(message.text))
        keep_statement(self._talk.statements, message.name, named)
        self._say(messages.PARSED)

    def _take(self) -> Key:
        """One of the key's requests is used; refused where it has none left. The key as it is now."""
        key = self._talk.current_key()
        self._listener.server.traffic.take(key.id)
        return key

    async def _split(self, text: str) -> list[SentStatement]:
        if len(text) <= SHORT_SQL:
            return split(text)
        self._take()
        return await asyncio.to_thread(split, text)

    async def _read(self, statement: SentStatement) -> Prepared:
        """Read what was not read before, which takes one of the key's requests unless it is a command."""
        key = self._take() if statement.first in (*QUERY, *NESTED, "EXECUTE") else self._talk.current_key()
        return await self._listener.read(statement, self._talk, key)

    async def _bind(self, message: messages.Bind) -> None:
        named = self._talk.statements.get(message.statement)
        self._talk.portals.check(message.portal)
        if len(message.values) != len(named.types):
            words = f"the statement takes {len(named.types)} parameters, and {len(message.values)} were given."
            raise WireError(PROTOCOL, words)
        codes = spread(message.formats, len(named.types))
        if not isinstance(named.prepared.asked, Command | Fetching):
            self._take()  # executing it takes no more
        values = tuple(map(decode, message.values, named.types, codes))
        bound = await self._listener.bound(self._talk.current_key(), named.prepared, values)
        many = len(self._talk.fields(bound) or ())
        if len(message.result_formats) not in (0, 1, many):
            raise WireError(PROTOCOL, "there is a format for every column, for all of them, or none.")
        keep_portal(self._talk.portals, message.portal, Portal(bound, spread(message.result_formats, many)))
        self._say(messages.BOUND_REPLY)

    def _describe(self, message: messages.Describe) -> None:
        if message.portal:
            portal = self._talk.portals.get(message.name)
            fields, formats, prepared = self._talk.fields(portal.bound), portal.formats, portal.bound.prepared
        else:
            named = self._talk.statements.get(message.name)
            if named.types:
                self._take()  # the statement is read with samples of its parameters
            self._say(messages.parameters_described(named.types))
            fields, prepared = self._talk.described(named.prepared), named.prepared
            formats = (0,) * len(fields or ())
        if fields is None or prepared.copies is not None:
            self._say(messages.NO_DATA)
        else:
            self._say(messages.described(fields, formats))
