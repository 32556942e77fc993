"""A place for what takes long to work out again from what was released: beside a ledger, or in a reader's cache.

It holds public things only, under a name that says what they were worked out from, and may be deleted at any time. A
file is sealed with the ledger's secret: one that is torn, damaged, of other origin or not there is passed over. What a
published file says has no secret: a seal shows there that a file is whole, and that it is about this very file.
"""

from __future__ import annotations

import hmac
import os
import re
import uuid
from contextlib import suppress
from pathlib import Path

_HEAD = b"tacit kept 1"
MOST_SHELVED = 2**26  # bytes of one thing; what is larger is worked out again
MOST_FILES = 20  # in a reader's cache
_OURS = re.compile(r"[0-9a-f]{64}\.[a-z]+(\.[0-9a-f]{32}\.new)?")
READ = "read"  # the folder of what was read, in a folder of all that Tacit remembers


class Shelf:
    """One file for each kind of thing, beside the ledger and named after it."""

    def __init__(self, ledger: Path, secret: bytes) -> None:
        self._ledger, self._secret = ledger, secret

    def get(self, kind: str, name: str) -> bytes | None:
        """What was put here under this very name, whole."""
        try:
            with self._path(kind).open("rb") as file:
                head, said, seal = (file.readline(200).rstrip(b"\n") for _ in range(3))
                content = file.read(MOST_SHELVED + 1)
        except OSError:
            return None
        whole = head == _HEAD and said == name.encode() and hmac.compare_digest(seal, self._seal(kind, name, content))
        return content if whole else None

    def put(self, kind: str, name: str, content: bytes) -> None:
        """Keep this in the place of what was kept of its kind. Where that cannot be written, nothing is kept."""
        path = self._path(kind)
        # Of this process and no other: in containers that share a folder, all have the same number.
        made = path.with_name(f"{path.name}.{uuid.uuid4().hex}.new")
        if len(content) > MOST_SHELVED:
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

    state: the folder that takes the place of $TACIT_STATE, whatever that is. Several processes may share it.
    most: how many files are kept.
    """

    def __init__(self, digest: str, state: Path | None = None, *, most: int = MOST_FILES) -> None:
        self._digest, self._state, self._most = digest, state, most

    def get(self, kind: str, name: str) -> bytes | None:
        folder = self._folder()
        return None if folder is None else self._in(folder).get(kind, name)

    def put(self, kind: str, name: str, content: bytes) -> None:
        folder = self._folder()
        if folder is None:
            return
        with suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._in(folder).put(kind, name, content)
            # The folder is as it was named, and may hold what is not ours.
            ours = filter(lambda file: _OURS.fullmatch(file.name), folder.iterdir())
            oldest_first = sorted(ours, key=lambda file: file.stat().st_mtime_ns)
            for file in oldest_first[: -self._most]:
                file.unlink()

    def _in(self, folder: Path) -> Shelf:
        return Shelf(folder / self._digest, self._digest.encode())

    def _folder(self) -> Path | None:
        """Where it is; None for a user without a home."""
        if self._state is not None:
            return self._state / READ
        if folder := os.environ.get("TACIT_STATE"):
            return Path(folder) / READ
        if folder := os.environ.get("XDG_CACHE_HOME"):
            return Path(folder) / "tacit"
        try:
            return Path.home() / ".cache" / "tacit"
        except RuntimeError:
            return None
