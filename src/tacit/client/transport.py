"""One server as a client has it: its address, the key to it, and requests, which are sent again. Knows no question.

What a request asks for is paid for once, however often it is sent: an answer that was stored is told again for nothing,
and what was bought stays bought. So a request whose answer was lost is sent again, and so is one that the server was
too busy for. `Sent.again` says that an earlier try may have reached the server, so that what it cost may be paid.

Connections stay open from one request to the next. The key that goes with each is an argument, or it is in the
environment, a file of one's own or the system's keyring.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import select
import shutil
import socket
import ssl
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import msgspec

from tacit.errors import ConfigError, ServerError
from tacit.replies import ErrorReply

SERVICE = "tacit"  # in the keyring, where the user is the server's address
TRIES = 5
SECONDS = 60.0  # that a connection waits for the next bytes
_KEY = re.compile(r"tacit_[A-Za-z0-9_-]{1,200}")
_LONGEST_FILE = 4096  # bytes of a file that holds a key
_WAITS = 0.1, 0.5, 2.0, 5.0  # seconds before each try but the first, where the server names none
_LONGEST_WAIT = 30.0
_BUSY = (429, 502, 503, 504)
_CHUNK = 2**18
_ASK_AGAIN = "What was asked may have been paid for: ask again, and what was stored is told for nothing."


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


def find_key(given: str | Path | None, address: str) -> str | None:
    """The key for a server: a text is the key itself, a path is a file that holds it.

    Without either it is TACIT_KEY, the file that TACIT_KEY_FILE names, what the keyring has for the address, or none:
    a server of published files needs none.
    """
    if isinstance(given, Path):
        return _checked_key(_key_file(given), str(given))
    if given is not None:
        return _checked_key(given, "what was given")
    if (key := os.environ.get("TACIT_KEY")) is not None:
        return _checked_key(key, "TACIT_KEY")
    if (path := os.environ.get("TACIT_KEY_FILE")) is not None:
        return _checked_key(_key_file(Path(path)), path)
    key = _from_keyring(address)
    return None if key is None else _checked_key(key, "what the keyring has")


def no_key(address: str) -> ConfigError:
    """What is said where a server wants a key, and there is none."""
    return ConfigError(
        f"there is no key for {address}: give one to connect, set TACIT_KEY, or name a file in TACIT_KEY_FILE; or "
        f"`keyring set {SERVICE} {address}`, where Python's keyring is installed."
    )


@dataclass(frozen=True)
class Sent:
    """What came back: the status, the body, and whether an earlier try may have reached the server."""

    status: int
    body: bytes
    again: bool


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


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _checked_key(key: str, where: str) -> str:
    """The key without spaces around it. What is no key is not repeated: it may be another secret."""
    key = key.strip()
    if not _KEY.fullmatch(key):
        raise ConfigError(f"a key begins with tacit_, and {where} does not.")
    return key


def _key_file(path: Path) -> str:
    """What a file holds that nobody else may read. It is looked at once it is open: a name can be given away."""
    try:
        file = os.open(path.expanduser(), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        raise ConfigError(f"the key file {path} cannot be read.") from None
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(f"the key file {path} is no plain file.")
        if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO) or found.st_uid not in (os.getuid(), 0):
            raise ConfigError(f"others can read the key file {path}: `chmod 600 {path}`, and think of a new key.")
        return os.read(file, _LONGEST_FILE).decode("ascii", "replace")
    finally:
        os.close(file)


def _from_keyring(address: str) -> str | None:
    try:
        import keyring
    except ImportError:
        return None
    try:
        found = keyring.get_password(SERVICE, address)
    except Exception:  # a keyring that is locked, or has no place to keep anything, is as good as none
        return None
    return found if isinstance(found, str) else None


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
        return msgspec.json.decode(refusal, type=ErrorReply).error.nothing_spent
    except msgspec.MsgspecError:
        return False


def _is_json(body: bytes) -> bool:
    """Whether a body can be whole. Where the head of a response is cut, what is left of it has no length."""
    try:
        json.loads(body)
    except ValueError:
        return False
    return True
