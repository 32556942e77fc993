"""A place for what takes long to work out again from what was released: beside a ledger, or in the reader's cache.

It holds public things only, under a name that says what they were worked out from, and may be deleted at any time. A
file is sealed with the ledger's secret: one that is torn, damaged, of other origin or not there is passed over. What a
published file says has no secret: a seal shows there that a file is whole, and that it is about this very file.
"""

from __future__ import annotations

import hmac
import os
from contextlib import suppress
from pathlib import Path

_HEAD = b"tacit kept 1"
MOST = 2**26  # bytes of one thing; what is larger is worked out again
_MOST_FILES = 20  # in a reader's cache


class Shelf:
    """One file for each kind of thing, beside the ledger and named after it."""

    def __init__(self, ledger: Path, secret: bytes) -> None:
        self._ledger, self._secret = ledger, secret

    def get(self, kind: str, name: str) -> bytes | None:
        """What was put here under this very name, whole."""
        try:
            with self._path(kind).open("rb") as file:
                head, said, seal = (file.readline(200).rstrip(b"\n") for _ in range(3))
                content = file.read(MOST + 1)
        except OSError:
            return None
        whole = head == _HEAD and said == name.encode() and hmac.compare_digest(seal, self._seal(kind, name, content))
        return content if whole else None

    def put(self, kind: str, name: str, content: bytes) -> None:
        """Keep this in the place of what was kept of its kind. Where that cannot be written, nothing is kept."""
        path = self._path(kind)
        made = path.with_name(f"{path.name}.{os.getpid()}.new")
        if len(content) > MOST:
            return
        with suppress(OSError):
            with open(made, "wb", opener=lambda file, flags: os.open(file, flags | os.O_EXCL, 0o600)) as file:
                file.write(b"\n".join((_HEAD, name.encode(), self._seal(kind, name, content), content)))
            os.replace(made, path)  # whoever reads sees the old one or the new one
        with suppress(OSError):
            made.unlink()

    def _path(self, kind: str) -> Path:
        return self._ledger.with_name(f"{self._ledger.name}.{kind}")

    def _seal(self, kind: str, name: str, content: bytes) -> bytes:
        sealed = b"\n".join((b"shelf", kind.encode(), name.encode(), content))
        return hmac.new(self._secret, sealed, "sha256").hexdigest().encode()


class Cache:
    """The same for whoever reads a published file, by the file's digest: in a folder of the user's own, that is made.

    It is in $TACIT_STATE, else in $XDG_CACHE_HOME/tacit, else in ~/.cache/tacit. The digest is of all that the file
    says, so that what was worked out from one file is never taken for another's. The newest few are kept.
    """

    def __init__(self, digest: str) -> None:
        self._digest = digest

    def get(self, kind: str, name: str) -> bytes | None:
        folder = _folder()
        return None if folder is None else self._in(folder).get(kind, name)

    def put(self, kind: str, name: str, content: bytes) -> None:
        folder = _folder()
        if folder is None:
            return
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._in(folder).put(kind, name, content)
            oldest_first = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime_ns)
            for file in oldest_first[:-_MOST_FILES]:
                file.unlink()

    def _in(self, folder: Path) -> Shelf:
        return Shelf(folder / self._digest, self._digest.encode())


def _folder() -> Path | None:
    """Where a reader's cache is; None for a user without a home."""
    if folder := os.environ.get("TACIT_STATE"):
        return Path(folder) / "read"
    if folder := os.environ.get("XDG_CACHE_HOME"):
        return Path(folder) / "tacit"
    try:
        return Path.home() / ".cache" / "tacit"
    except RuntimeError:
        return None
