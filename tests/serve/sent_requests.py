"""Requests at the application itself, on an event loop of the test's: their bodies come when the test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from serving import Served

from tacit.serve.app import make_app

JSON = (b"content-type", b"application/json")


class Sent:
    """One request at the application itself. Its body comes when the test says so."""

    def __init__(self, app: Any, method: str, path: str, *headers: tuple[bytes, bytes], address: str = "10.0.0.1"):
        self._app, self.status, self.said = app, 0, b""
        self._scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "scheme": "http",
            "headers": [(b"host", b"127.0.0.1:8470"), *headers],
            "client": (address, 1),
            "server": ("127.0.0.1", 8470),
        }
        self._parts: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.task = asyncio.ensure_future(self._go())

    async def _go(self) -> int:
        await self._app(self._scope, self._parts.get, self._send)
        return self.status

    async def _send(self, message: dict[str, Any]) -> None:
        self.status = message.get("status", self.status)
        self.said += message.get("body", b"")

    def body(self, text: bytes, *, more: bool = False) -> Sent:
        self._parts.put_nowait({"type": "http.request", "body": text, "more_body": more})
        return self


def at(served: Served, scene: Callable[[Any], Awaitable[None]]) -> None:
    """Play a scene on an event loop of its own, with the application of a server."""
    asyncio.run(scene(make_app(served.state)))
