"""An application of the tests on a port of its own, and a way to it that loses things: for tests of clients.

What a client sends arrives at the application, which answers and charges. What comes back is up to the test.
"""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from serving import Served
from starlette.testclient import TestClient

# What a client gets instead of a response: another one, or these bytes, after which the connection ends.
Fault = Callable[["Reply"], "Reply | bytes"]


@dataclass
class Reply:
    """A response on its way back."""

    method: str
    path: str
    status: int
    headers: dict[str, str]
    body: bytes

    def whole(self) -> bytes:
        lines = [f"HTTP/1.1 {self.status} .", *(f"{name}: {value}" for name, value in self.headers.items())]
        return "\r\n".join([*lines, "", ""]).encode() + self.body


@dataclass
class Bridge:
    """Where the application is, what was asked of it, and what happens to its next answers, one after the other."""

    url: str
    asked: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


@contextmanager
def bridge(served: Served | TestClient, tls: ssl.SSLContext | None = None) -> Iterator[Bridge]:
    there = served.clients["nobody"] if isinstance(served, Served) else served

    class Door(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()} | {"host": "127.0.0.1:8470"}
            found = there.request(self.command, self.path, headers=headers, content=body)
            kept = {name: found.headers[name] for name in ("content-type", "retry-after") if name in found.headers}
            kept["content-length"] = str(len(found.content))
            reply = Reply(self.command, self.path, found.status_code, kept, found.content)
            made.asked.append(f"{self.command} {self.path}")
            instead = made.faults.pop(0)(reply) if made.faults else reply
            if isinstance(instead, Reply):
                self.wfile.write(instead.whole())
            else:
                self.wfile.write(instead)
                self.close_connection = True

        do_POST = do_GET

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    made = Bridge(f"http{'' if tls is None else 's'}://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
