"""The audit log: who asked what, when, and what it cost, in files for the owner. Written by the data set."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tacit.model.table import Answers
from tacit.serve.key import Key
from tacit.serve.question import Question
from tacit.serve.refusal import log

MAX_FILE, _FILES = 16 * 2**20, 8  # bytes of one file, and how many files there are


class Audit:
    """An append-only log: PATH, and the older PATH.1, PATH.2, …

    It has questions as they were asked, with their keys, and names answers by their entries in the ledger: it holds no
    values. It is bounded: the oldest file goes when the newest is full. The ledger, not this log, is the record of the
    budget.
    """

    def __init__(self, path: Path, *, max_file: int = MAX_FILE, files: int = _FILES) -> None:
        self.path, self._max, self._files = path, max_file, files
        self._lock, self._unsynced = threading.Lock(), False
        self._file, self._torn = self._open(), True  # a crash may have cut the last line short

    def write(self, records: Sequence[dict[str, Any]], *, paid: bool) -> None:
        """Append records, one line each, with the time. Where something was paid, `sync` has to follow."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        lines = (json.dumps({"time": now, **record}, ensure_ascii=False, allow_nan=False) + "\n" for record in records)
        text = "".join(lines).encode()
        with self._lock:
            here = os.fstat(self._file)
            if not self._in_place(here):
                # What was in it is gone, or somebody has it elsewhere. The new file begins by saying so.
                log.error("the audit log %s was taken away; a new one is begun", self.path.name)
                taken, self._file = self._file, self._open()
                os.close(taken)
                about = {
                    "time": now,
                    "who": "the server",
                    "role": "owner",
                    "note": "the log before this was taken away",
                }
                text = (json.dumps(about) + "\n").encode() + text
            elif here.st_size + len(text) > self._max:
                self._rotate()
            if self._torn and self._tail() != b"\n":
                text = b"\n" + text  # so that this is not read as the end of what a full disk cut short
            written, self._torn = 0, True
            while written < len(text):
                written += os.write(self._file, text[written:])
            self._torn, self._unsynced = False, self._unsynced or paid

    def sync(self) -> None:
        """On the disk by now: everything that was paid for."""
        with self._lock:
            if not self._unsynced:
                return
            file, self._unsynced = os.dup(self._file), False
        try:  # without the lock, so that what is free need not wait for the disk
            os.fsync(file)
        except OSError:
            self._unsynced = True  # whoever comes next is not shown anything either before it is on the disk
            raise
        finally:
            os.close(file)

    def last(self, limit: int) -> list[dict[str, Any]]:
        """The newest records, newest first. A line that a crash cut short is left out."""
        found: list[dict[str, Any]] = []
        # Without the lock: what is written meanwhile is missed, or seen twice, and nobody has to wait.
        for path in (self.path, *map(self._older, range(1, self._files))):
            if not path.exists():
                break
            for line in reversed(path.read_bytes().splitlines()):
                if len(found) >= limit:
                    return found
                try:
                    found.append(json.loads(line))
                except ValueError:
                    continue
        return found

    def close(self) -> None:
        with self._lock:
            os.fsync(self._file)
            os.close(self._file)

    def _open(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _in_place(self, here: os.stat_result) -> bool:
        """Whether what is written still arrives in the file that the owner reads."""
        try:
            return os.path.samestat(os.stat(self.path), here)
        except FileNotFoundError:
            return False

    def _tail(self) -> bytes:
        size = os.fstat(self._file).st_size
        return os.pread(self._file, 1, size - 1) if size else b"\n"

    def _older(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")

    def _rotate(self) -> None:
        os.fsync(self._file)
        for number in range(self._files - 1, 0, -1):
            source = self.path if number == 1 else self._older(number - 1)
            if source.exists():
                source.replace(self._older(number))
        full, self._file = self._file, self._open()
        os.close(full)


def line_of(key: Key, **more: Any) -> dict[str, Any]:
    """A line of the audit log about what somebody has asked."""
    return {"who": key.name, "key": key.id, "role": key.role, **more}


def named(question: Question) -> dict[str, str]:
    """A question as the audit log names it: by its key, and as it was asked."""
    asked = question.asked
    return {"question": question.key} | ({"asked": asked} if asked else {})


def entry_of(answer: Answers) -> dict[str, int]:
    """Where an answer stands in the ledger, if it does."""
    receipt = answer.facts.receipt
    return {} if receipt is None else {"entry": receipt.entry}
