"""The door: takes connections, counts them, and hands them what they share. Started beside the application by `run`."""

from __future__ import annotations

import asyncio
import secrets
import socket
import ssl
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from tacit.model.status import DryRun, Expected
from tacit.model.table import Answers
from tacit.serve.app import is_loopback
from tacit.serve.connections import BACKLOG
from tacit.serve.key import Key, visitor
from tacit.serve.postgres import messages
from tacit.serve.postgres.answer import Row, notice
from tacit.serve.postgres.catalogue import DATABASE, Catalogue, Lookup
from tacit.serve.postgres.channel import Channel, WireLimits
from tacit.serve.postgres.connection import Connection
from tacit.serve.postgres.conversation import Conversation
from tacit.serve.postgres.messages import Cancel, Malformed
from tacit.serve.postgres.select import Read, TableSelect, TakesLong, at_once, metered, table_select
from tacit.serve.postgres.source import SentStatement
from tacit.serve.postgres.sqlstate import BAD_LOGIN, NO_DATABASE, NOT_ALLOWED, TOO_MANY, UNSUPPORTED, WireError
from tacit.serve.postgres.statement import NESTED, QUERY, BoundStatement, Prepared, prepare
from tacit.serve.postgres.translation import Caller
from tacit.serve.postgres.types import WireValue
from tacit.serve.question import SHORT_SQL, Memory, Question
from tacit.serve.scram import Login, LoginFailed, Verifier
from tacit.serve.served_data import ServedData, ticket
from tacit.serve.server import Server
from tacit.session import Session

if TYPE_CHECKING:
    from tacit.serve.keys import KeyRing

T = TypeVar("T")
_PORT = 5470
_GRACE = 30  # seconds for what is being answered when the server is told to stop
MAX_KEPT_TEXT = 2_000  # characters of a statement that need not be read again


@dataclass(frozen=True)
class Door:
    """Who is let in, and how: encryption, the version, and SCRAM with a key as the password.

    `seed` makes the salts of names that have no key; `insecure` needs no TLS anywhere.
    `end_point` is the fingerprint of the certificate that a login over TLS may be bound to. Without keys everybody is
    let in, by any name and without a password.
    """

    keys: KeyRing | None
    seed: bytes
    tls: ssl.SSLContext | None = None
    insecure: bool = False
    end_point: bytes | None = None

    async def enter(self, channel: Channel) -> tuple[Key, Mapping[str, str]] | Cancel:
        """Whose connection it is, and the settings it begins with; or all that it wanted, a request to cancel."""
        first, secure = await channel.first(), False
        while isinstance(first, messages.Encryption):
            if first.tls and self.tls is not None and not secure:
                await channel.encrypt(self.tls)
                secure = True
            else:
                channel.say(b"N")
            first = await channel.first()
        if isinstance(first, Cancel):
            return first
        if first.version >> 16 != 3:
            raise WireError(UNSUPPORTED, "This server speaks version 3 of the protocol.", fatal=True)
        if not (secure or self.insecure or is_loopback(channel.peer)):
            raise WireError(NOT_ALLOWED, "From other machines TLS is needed: sslmode=require.", fatal=True)
        options = [name for name in first.parameters if name.startswith("_pq_.")]
        if first.version & 0xFFFF or options:
            channel.say(messages.negotiated(0, options))
        key = await self._login(channel, first.parameters.get("user", ""), self.end_point if secure else None)
        return key, first.parameters

    async def _login(self, channel: Channel, name: str, end_point: bytes | None) -> Key:
        """A name without a key takes as long as one with a key, and fails at the same place."""
        if self.keys is None:
            return visitor(channel.peer)
        found = self.keys.named(name)
        login = Login(found[1] if found else Verifier.nobody(name, self.seed), end_point)
        channel.say(messages.sasl(login.mechanisms))
        try:
            body = messages.Body(await _password(channel))
            mechanism, first = body.text(), body.value()
            body.end()
            channel.say(messages.sasl_more(login.first((first or b"").decode(), mechanism), final=False))
            reply = login.final((await _password(channel)).decode())
            if found is None:
                raise LoginFailed
        except (LoginFailed, UnicodeDecodeError):
            words = "The login failed: the user is the name of a key, and the password is the key."
            raise WireError(BAD_LOGIN, words, fatal=True) from None
        channel.say(messages.sasl_more(reply, final=True))
        return found[0]


async def _password(channel: Channel) -> bytes:
    message = await channel.next()
    if not isinstance(message, messages.Password):
        raise Malformed
    return message.data


class Listener:
    """All connections of one server."""

    def __init__(
        self,
        server: Server,
        *,
        tls: ssl.SSLContext | None = None,
        end_point: bytes | None = None,
        insecure: bool = False,
        limits: WireLimits | None = None,
    ) -> None:
        self.server, self.limits = server, limits or WireLimits()
        self.door = Door(server.keys, secrets.token_bytes(32), tls, insecure, end_point)
        self.closing = False
        self._connections: dict[int, Connection] = {}
        self._unknown: OrderedDict[int, Connection] = OrderedDict()
        self._of_key: Counter[int] = Counter()
        self._kept = Memory[tuple[str, str], Prepared]()
        self._bound = Memory[tuple[int, tuple[WireValue, ...], tuple[type, ...]], BoundStatement]()
        self._catalogue = Catalogue(server.datasets, seconds=self.limits.lookup_seconds)

    @asynccontextmanager
    async def open(self, listening: socket.socket) -> AsyncIterator[None]:
        """Take connections on a socket as long as this lasts; then end them, when what was asked is answered."""
        loop = asyncio.get_running_loop()
        door = await loop.create_server(lambda: self._connection().channel, sock=listening, backlog=BACKLOG)
        try:
            yield
        finally:
            self.closing = True
            door.close()
            for connection in list(self._connections.values()):
                connection.leave()
            living = [connection.task for connection in self._connections.values()]
            if living:
                await asyncio.wait(living, timeout=_GRACE)
            self._catalogue.close()

    def _connection(self) -> Connection:
        numbers = iter(lambda: secrets.randbelow(2**31 - 1) + 1, 0)
        number = next(number for number in numbers if number not in self._connections)
        return Connection(self, number, secrets.randbits(32))

    def began(self, connection: Connection) -> None:
        """Somebody has connected, and is not known yet."""
        self._connections[connection.process] = self._unknown[connection.process] = connection
        if len(self._unknown) > self.limits.unknown:
            # The oldest goes, not the newest: who knows a key is in within milliseconds, and a flood pushes out itself.
            _, oldest = self._unknown.popitem(last=False)
            oldest.shut(WireError(TOO_MANY, "Too many clients are logging in.", fatal=True))

    def entered(self, connection: Connection, key: Key) -> None:
        """A client has logged in; refused where it has too many connections, or all have."""
        self._unknown.pop(connection.process, None)
        known = len(self._connections) - len(self._unknown)
        if known > self.limits.connections or self._of_key[key.id] >= self.limits.of_one_key:
            raise WireError(TOO_MANY, "There are too many connections, or too many of this key.", fatal=True)
        self._of_key[key.id] += 1
        connection.counted = True

    def left(self, connection: Connection) -> None:
        self._connections.pop(connection.process, None)
        self._unknown.pop(connection.process, None)
        if connection.counted and connection.key is not None:
            self._of_key[connection.key.id] -= 1
            self._of_key += Counter()  # drops what is 0

    def cancel(self, request: Cancel) -> None:
        """Give up what a connection waits for, if the request knows its secret."""
        found = self._connections.get(request.process)
        if found is not None and secrets.compare_digest(
            request.secret.to_bytes(4, "big"), found.secret.to_bytes(4, "big")
        ):
            found.cancel()

    def database(self, asked: str, user: str) -> str:
        """The data set that `data` is for whoever connects to this database; "" where none is meant."""
        if asked in self.server.datasets:
            return asked
        if asked not in ("", DATABASE, user, "postgres"):
            words = f"The databases are {', '.join([DATABASE, *sorted(self.server.datasets)])}."
            raise WireError(NO_DATABASE, words, fatal=True)
        return next(iter(self.server.datasets)) if len(self.server.datasets) == 1 else ""

    # -- what connections share ---------------------------------------------------------------------------------------

    async def read(self, statement: SentStatement, talk: Conversation, key: Key) -> Prepared:
        """Read a statement: at once if it is a plain count of a data set, or a command, else in a thread."""
        caller = talk.caller

        def find(name: str) -> ServedData | None:
            datasets = self.server.datasets
            return datasets.get(name) or (datasets.get(talk.database) if name == "data" else None)

        select = None
        if statement.first in QUERY:
            select = await self._reads(key, statement.text, partial(table_select, statement, find))
        if select is not None:
            found = Prepared(select)
        else:
            with self.server.reading(key) as meter:

                def query(part: SentStatement) -> TableSelect | Lookup:
                    return table_select(part, find, metered(meter)) or self._catalogue.lookup(part, caller)

                if statement.first not in (*QUERY, *NESTED):
                    found = prepare(statement, query)
                else:
                    async with self._catalogue.turn(key.id):
                        found = await asyncio.to_thread(prepare, statement, query)
        if isinstance(found.asked, TableSelect) and not statement.start and len(statement.text) <= MAX_KEPT_TEXT:
            self._kept.keep((talk.database, statement.text), found)
        return found

    async def _reads(self, key: Key, text: str, work: Callable[[Read], T]) -> T:
        """Do what reads a statement: at once if it is a plain count, else in a thread, where its work is counted."""
        with suppress(TakesLong):
            if len(text) <= SHORT_SQL:
                return work(at_once)
        with self.server.reading(key) as meter:
            return await asyncio.to_thread(work, metered(meter))

    async def bound(self, key: Key, prepared: Prepared, values: tuple[WireValue, ...]) -> BoundStatement:
        """A statement with values for its parameters, as it was read before where it was."""
        asked = prepared.asked
        if not isinstance(asked, TableSelect) or asked.asked is not None:
            return prepared.bound(values)
        kept = id(prepared), values, tuple(map(type, values))  # to Python 0 and FALSE are one value
        found = self._bound.get(kept)
        if found is None or found.prepared is not prepared:
            found = await self._reads(key, asked.statement.text, partial(prepared.bound, values))
            light = found.asked is not None and found.asked.question.light and not asked.dataset.grows
            if light and len(asked.statement.text) <= MAX_KEPT_TEXT:
                self._bound.keep(kept, found)
        return found

    def known(self, database: str, text: str) -> Prepared | None:
        """A statement about a data set that was read before, for the same database."""
        return self._kept.get((database, text))

    async def explained(
        self, key: Key, dataset: ServedData, question: Question, waited: Callable[[asyncio.Future[Any]], Awaitable[Any]]
    ) -> list[str]:
        """The price of a question, and the error to expect: that of its answer, if it has one already."""

        def done(work: Callable[[], T]) -> asyncio.Future[T]:
            return asyncio.wrap_future(dataset.writer.do(work, ticket=ticket(key, [question])))

        price: DryRun = await waited(asyncio.wrap_future(dataset.price(key, question)))
        # In brackets as PostgreSQL has it, for programs that read it there: its unit is one per cent of the budget.
        lines = [f"{str(price)[0].upper()}{str(price)[1:]} (cost=0.00..{price.percent or 0:.2f})"]
        if price.known:
            with self.server.traffic.working(key.id, question.work):  # it takes what asking it would take
                answer: Answers | None = await waited(done(lambda: dataset.known(question.ask)))
            return lines if answer is None else [*lines, notice(answer)]
        session = dataset.session
        base = await asyncio.to_thread(lambda: session.base)
        if isinstance(session, Session) and price.cost_at_most.atoms and not base.what:
            # Nothing is started from: counts are measured by themselves, and the law of that noise is known beforehand.
            found: Expected | None = await waited(done(partial(_expected, session, question)))
            if found is not None:
                lines.append(f"± {found.error:,.0f} {found.about} ({100 * session.confidence:.10g} %)")
        return lines + [f"± {one.error:,.0f} rows: {one.about}" for one in base.certified or base.expects]

    async def looked_up(self, lookup: Lookup, values: Sequence[WireValue], caller: Caller, key: Key) -> Iterator[Row]:
        """The rows of a look into the catalogues."""
        async with self._catalogue.turn(key.id):
            return iter(await asyncio.to_thread(self._catalogue.rows, lookup, values, caller))


def _expected(session: Session, question: Question) -> Expected | None:
    """The bar to expect. Were a price ever wrong, nothing would be spent all the same."""
    with session.free():
        return session.expects(question.ask)
