"""What a forked child must not inherit: open connections to SQLite. Called by the durable file only.

SQLite's own table of locks would come with a connection, and a parent that closes deletes the log under the child. So
nobody is connected while the process forks: each file is let go of, and opened again at its next use.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import Protocol

PATIENCE = 60.0  # seconds to wait for the transactions of other threads


class Forkable(Protocol):
    """Something with a connection that one thread at a time may use."""

    mutex: threading.RLock

    def before_fork(self) -> None:
        """Let go of the connection, unless the forking thread itself is in the middle of using it."""

    def after_fork(self) -> None:
        """In the child: start anew, and refuse what was not let go of."""


registry = threading.RLock()  # held while a process forks, and by those who must not be forked
_live = weakref.WeakSet[Forkable]()
_held = threading.local()


def watch(file: Forkable) -> None:
    """Have `file` let go of before every fork.

    Guarantee: a child finds it without connection, or refuses it. Formula: os.register_at_fork. Source: see the module.
    """
    with registry:
        _live.add(file)


def _before() -> None:
    registry.acquire()
    _held.mutexes, files, deadline = [], list(_live), time.monotonic() + PATIENCE
    # All or none, because a ledger's user also waits for the anchor: taking them one by one could wait in a circle.
    while not all(_take(file) for file in files) and time.monotonic() < deadline:
        _give_back()
        time.sleep(0.001)
    if len(_held.mutexes) == len(files):
        for file in files:
            file.before_fork()


def _take(file: Forkable) -> bool:
    taken = file.mutex.acquire(blocking=False)
    if taken:
        _held.mutexes.append(file.mutex)
    return taken


def _give_back() -> None:
    while _held.mutexes:
        _held.mutexes.pop().release()


def _in_parent() -> None:
    try:
        _give_back()
    finally:
        registry.release()


def _in_child() -> None:
    global registry
    registry = threading.RLock()
    for file in list(_live):
        file.mutex = threading.RLock()
        file.after_fork()


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
