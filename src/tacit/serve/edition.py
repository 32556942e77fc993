"""What a data set has released as one file, for all who download it at once. Held by the data set.

The lines of a published file never change, and a newer file begins with those of an older one: only the last line, the
digest, is another. So there is one file, which grows, and a download is its beginning with a last line of its own. It
has no name in the file system: it goes with the process, however that ends.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import IO, NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from tacit.errors import ConfigError
from tacit.public import header
from tacit.public.file import last_line, written
from tacit.serve.refusal import Refusal, Seldom
from tacit.session import Session

CHUNK = 2**18  # bytes sent at a time


class Edition(NamedTuple):
    """A published file: the first `size` bytes of what `file` holds, and the last line."""

    file: int
    size: int
    last: bytes


class Published:
    """The file of one session. Safe from any thread."""

    def __init__(self, session: Callable[[], Session]) -> None:
        self._session, self._lock = session, threading.Lock()
        self._file: IO[bytes] | None = None
        self._size, self._entry, self._digest = 0, 0, hashlib.sha256()
        self._due = Seldom()

    def edition(self) -> Edition:
        """The file with everything that is released by now. Only what is new is read from the ledger."""
        try:
            with self._lock:
                return self._newest()
        except OSError as error:
            what = "the file of what was published cannot be written to the folder for temporary files: %s"
            self._due.error("edition", what, error.strerror)
            words = "The file of what was published cannot be written now; the server's log tells the owner why."
            raise Refusal(503, "published", words, retry_after=30) from None

    def _newest(self) -> Edition:
        if self._file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  # `close` closes it
        session = self._session()
        if not self._size:
            self._append(written(header(session)))
        for line in session.lines(self._entry):
            self._append(written(line))
            self._entry = line.seq
        return Edition(self._file.fileno(), self._size, last_line(self._digest))

    def close(self) -> None:
        with self._lock:
            if self._file is not None:
                self._file.close()

    def _append(self, line: bytes) -> None:
        """Write a line after those that are there; where the disk is full the next try writes it there again."""
        assert self._file is not None
        done = 0
        while done < len(line):
            done += os.pwrite(self._file.fileno(), line[done:], self._size + done)
        self._digest.update(line)
        self._size += len(line)


class PublishedFile:
    """A file that was published elsewhere: it is handed on as it is."""

    def __init__(self, path: Path, digest: str) -> None:
        """`digest` is the SHA-256 of what was read from this path."""
        self._file = open(path, "rb")  # noqa: SIM115  # `close` closes it
        if hashlib.file_digest(self._file, "sha256").hexdigest() != digest:
            self._file.close()
            raise ConfigError(f"{path.name} was changed while it was being read.")
        size = os.fstat(self._file.fileno()).st_size
        last = len(last_line(hashlib.sha256()))
        self._edition = Edition(self._file.fileno(), size - last, os.pread(self._file.fileno(), last, size - last))

    def edition(self) -> Edition:
        return self._edition

    def close(self) -> None:
        self._file.close()


def download(edition: Edition, name: str) -> StreamingResponse:
    """An edition as a response, a chunk at a time."""
    length = edition.size + len(edition.last)
    headers = {"content-length": str(length), "content-disposition": f'attachment; filename="{name}"'}
    return StreamingResponse(_chunks(edition), headers=headers, media_type="application/jsonl")


async def _chunks(edition: Edition) -> AsyncIterator[bytes]:
    for start in range(0, edition.size, CHUNK):
        yield await run_in_threadpool(os.pread, edition.file, min(CHUNK, edition.size - start), start)
    yield edition.last
