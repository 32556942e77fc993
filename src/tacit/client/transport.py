"""Requests to one server over connections that stay open, and when they are sent again. Knows no question.

What a request asks for is paid for once, however often it is sent: an answer that was stored is told again for nothing,
and what was bought stays bought. So a request whose answer was lost is sent again, and so is one that the server was
too busy for. `Sent.again` says that an earlier try may have reached the server, so that what it cost may be paid.
"""

from __future__ import annotations

import http.client
import json
import select
import shutil
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import IO
from urllib.parse import urlsplit

from tacit.errors import ConfigError, ServerError

TRIES = 5
SECONDS = 60.0  # that a connection waits for the next bytes
_WAITS = 0.1, 0.5, 2.0, 5.0  # seconds before each try but the first, where the server names none
_LONGEST_WAIT = 30.0
_BUSY = (429, 502, 503, 504)
_CHUNK = 2**18
_ASK_AGAIN = "What was asked may have been paid for: ask again, and what was stored is told for nothing."


@dataclass(frozen=True)
class Sent:
    """What came back: the status, the body, and whether an earlier try may have reached the server."""

    status: int
    body: bytes
    again: bool


@dataclass(frozen=True)
class Address:
    """Where a server is."""

    secure: bool
    host: str
    port: int
    path: str

    @classmethod
    def of(cls, url: str, *, plain_http: bool = False) -> Address:
        """Read a URL. Over plain HTTP a key travels in the clear, so off this machine that must be asked for."""
        try:
            parts = urlsplit(url if isinstance(url, str) else "")
            host, port = parts.hostname, parts.port
        except ValueError:
            host = port = None
        if host is None or parts.scheme not in ("http", "https"):
            raise ConfigError("a server's address is like https://tacit.example.org or http://127.0.0.1:8470.")
        if parts.username is not None or parts.query or parts.fragment:
            raise ConfigError("a server's address has no user, no ? and no #: the key is given by itself.")
        secure = parts.scheme == "https"
        if not secure and not plain_http and not _is_loopback(host):
            raise ConfigError(
                f"{host} would be sent the key in the clear: connect to https://{host}, or say plain_http=True "
                "(--plain-http) where nobody can listen."
            )
        return cls(secure, host, port or (443 if secure else 80), parts.path.rstrip("/"))

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == (443 if self.secure else 80) else f":{self.port}"
        return f"{'https' if self.secure else 'http'}://{host}{port}{self.path}"


class Transport:
    """Sends requests with a key. Safe from any thread: each request has a connection to itself."""

    def __init__(
        self,
        address: Address,
        key: str | None,
        *,
        seconds: float = SECONDS,
        context: ssl.SSLContext | None = None,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self.address, self._seconds, self._wait = address, seconds, wait
        self._context = (context or ssl.create_default_context()) if address.secure else None
        self._headers = {"Accept": "application/json"} | ({} if key is None else {"Authorization": f"Bearer {key}"})
        self._idle: list[http.client.HTTPConnection] = []
        self._lock = threading.Lock()

    def send(self, method: str, path: str, body: bytes | None = None, *, into: IO[bytes] | None = None) -> Sent:
        """Send a request until it is answered, or was tried often enough.

        into: where the body of a good answer goes, a chunk at a time, instead of into memory.
        """
        again, why, pause = False, "", 0.0
        for trial in range(TRIES):
            if trial:
                self._wait(pause)
            pause = _WAITS[min(trial, len(_WAITS) - 1)]
            try:
                status, later, answer = self._once(method, path, body, into)
            except ssl.SSLCertVerificationError as error:  # another try would change nothing
                raise self._lost(f"its certificate is not trusted ({error.verify_message})", again=again) from None
            except _Unsent as error:
                why = error.why
            except (OSError, http.client.HTTPException) as error:
                again, why = True, _words(error)
            else:
                if status not in _BUSY or trial == TRIES - 1:
                    return Sent(status, answer, again)
                again = again or not _says_nothing_spent(answer)
                pause = pause if later is None else min(max(later, pause), _LONGEST_WAIT)
        raise self._lost(why, again=again)

    def close(self) -> None:
        """Close the connections that nobody uses; later requests open new ones."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _once(
        self, method: str, path: str, body: bytes | None, into: IO[bytes] | None
    ) -> tuple[int, float | None, bytes]:
        with self._connection() as connection:
            headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}
            connection.request(method, self.address.path + path, body, headers)
            response = connection.getresponse()
            measured = response.chunked or response.length is not None  # then a part that is missing is noticed
            if into is None or response.status != 200:
                answer = response.read()
                if not measured and not _is_json(answer):
                    raise http.client.IncompleteRead(answer)
            else:
                answer = b""
                into.seek(0)
                into.truncate()
                shutil.copyfileobj(response, into, _CHUNK)
                if response.length or not measured:  # it was announced to be longer
                    raise http.client.IncompleteRead(b"", response.length)
            later = response.headers.get("retry-after", "")
            return response.status, float(later) if later.isdecimal() else None, answer

    @contextmanager
    def _connection(self) -> Iterator[http.client.HTTPConnection]:
        """A connection of one's own, which is open; one that failed is not used again."""
        connection = self._waiting() or self._opened()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        with self._lock:
            self._idle.append(connection)

    def _waiting(self) -> http.client.HTTPConnection | None:
        """A connection that was used before. One that the server has closed meanwhile has an end to be read."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection = self._idle.pop()
            if connection.sock is not None and not _has_news(connection.sock):
                return connection
            connection.close()

    def _opened(self) -> http.client.HTTPConnection:
        where = self.address
        if self._context is None:
            connection = http.client.HTTPConnection(where.host, where.port, timeout=self._seconds)
        else:
            connection = http.client.HTTPSConnection(
                where.host, where.port, timeout=self._seconds, context=self._context
            )
        try:
            connection.connect()
        except ssl.SSLCertVerificationError:
            raise
        except OSError as error:
            raise _Unsent(_words(error)) from None
        return connection

    def _lost(self, why: str, *, again: bool) -> ServerError:
        error = ServerError(f"The server at {self.address} gave no answer: {why}.{f' {_ASK_AGAIN}' if again else ''}")
        error.code, error.nothing_spent = "unreachable", not again
        return error


class _Unsent(Exception):
    """Nothing of a request has left: there is no connection."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def _words(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "it took too long"
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there"
    if (
        isinstance(error, OSError)
        and error.errno is not None
        and error.strerror
        and not isinstance(error, ssl.SSLError)
    ):
        return error.strerror[0].lower() + error.strerror[1:]
    return "the connection broke"


def _has_news(connection: socket.socket) -> bool:
    """Whether there is something to be read, or the end."""
    waiting = select.poll()  # unlike select, for any number of open files
    waiting.register(connection, select.POLLIN)
    return bool(waiting.poll(0))


def _says_nothing_spent(refusal: bytes) -> bool:
    """Whether a Tacit server says so. What stands between may have passed the request on, and lost the answer."""
    try:
        return json.loads(refusal)["error"]["nothing_spent"] is True
    except (ValueError, TypeError, LookupError):
        return False


def _is_json(body: bytes) -> bool:
    """Whether a body can be whole. Where the head of a response is cut, what is left of it has no length."""
    try:
        json.loads(body)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
