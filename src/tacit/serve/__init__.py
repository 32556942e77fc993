"""The HTTP server: one budget behind one door. The command line calls what is listed below.

Starlette and uvicorn come with the extra `serve`; nothing here loads them before a server is started.
"""

from __future__ import annotations

from tacit.serve.keys import Key, Role, list_keys, make_key, revoke_key
from tacit.serve.run import serve, serve_demo

__all__ = ["Key", "Role", "list_keys", "make_key", "revoke_key", "serve", "serve_demo"]
