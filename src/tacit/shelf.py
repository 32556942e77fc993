"""A place beside a ledger for what takes long to work out again from what the ledger has released.

Nothing rests on it: it holds public things only, under a name that says what they were worked out from, and may be
deleted at any time. A file that is torn, damaged, of other origin or not there is passed over.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from pathlib import Path

_HEAD = b"tacit kept 1"
MOST = 2**26  # bytes of one thing; what is larger is worked out again


class Shelf:
    """One file for each kind of thing, beside the ledger and named after it."""

    def __init__(self, ledger: Path) -> None:
        self._ledger = ledger

    def get(self, kind: str, name: str) -> bytes | None:
        """What was put here under this very name, whole."""
        try:
            with self._path(kind).open("rb") as file:
                head, said, seal = (file.readline(200).rstrip(b"\n") for _ in range(3))
                content = file.read(MOST + 1)
        except OSError:
            return None
        whole = head == _HEAD and said == name.encode() and seal == _seal(name, content)
        return content if whole else None

    def put(self, kind: str, name: str, content: bytes) -> None:
        """Keep this in the place of what was kept of its kind. Where that cannot be written, nothing is kept."""
        path = self._path(kind)
        made = path.with_name(f"{path.name}.{os.getpid()}.new")
        if len(content) > MOST:
            return
        with suppress(OSError):
            with open(made, "wb", opener=lambda file, flags: os.open(file, flags, 0o600)) as file:
                file.write(b"\n".join((_HEAD, name.encode(), _seal(name, content), content)))
            os.replace(made, path)  # whoever reads sees the old one or the new one
        with suppress(OSError):
            made.unlink()

    def _path(self, kind: str) -> Path:
        return self._ledger.with_name(f"{self._ledger.name}.{kind}")


def _seal(name: str, content: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + content).hexdigest().encode()
