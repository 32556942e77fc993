"""The HTTP server: one budget behind one door. The command line calls what is listed below.

Nothing is loaded before it is used: Starlette and uvicorn come with the extra `serve`, and a server of published files
needs no file of keys.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.serve.key import Key, Role
    from tacit.serve.keys import list_keys, make_key, revoke_key
    from tacit.serve.run import serve, serve_demo, serve_published

__all__ = ["Key", "Role", "list_keys", "make_key", "revoke_key", "serve", "serve_demo", "serve_published"]
_FROM = {
    "key": ("Key", "Role"),
    "keys": ("list_keys", "make_key", "revoke_key"),
    "run": ("serve", "serve_demo", "serve_published"),
}


def __getattr__(name: str) -> Any:
    for module, names in _FROM.items():
        if name in names:
            return getattr(import_module(f"tacit.serve.{module}"), name)
    raise AttributeError(f"module 'tacit.serve' has no attribute {name!r}")
