"""A program that has imported everything and forks a server whenever it reads a line, so that restarts are quick.

    python forked_server.py CONFIG [BUG]

Each server says its process's number and its address. BUG names a fault that is planted in it, which the tests of kills
must notice. When nobody writes lines any more, the last server is killed and the program ends.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from curators import open_intents
from tacit.config import Config
from tacit.serve import run
from tacit.serve.admission import Limits
from tacit.session import Session
from tacit.store.chain import Line, Mark
from tacit.store.log import Log
from tacit.trusted.ledger import Ledger, Outcome

LOADED = ("duckdb", "uvicorn", "tacit.serve.app", "tacit.owner.opening", "tacit.session", "opendp.prelude", "sqlglot")
LIMITS = Limits(rate=1e9, burst=10**9, together=10_000, together_of_one=10_000)


def answer_before_commit() -> None:
    """Every answer is shown at once, and stored with the next one."""
    settle = Ledger.settle
    late: list[tuple[Ledger, int | None, Sequence[Outcome]]] = []

    def early(ledger: Ledger, reservation: int | None, outcomes: Sequence[Outcome]) -> list[Line]:
        while late:
            settle(*late.pop())
        late.append((ledger, reservation, outcomes))
        head, spent = ledger.log.head()[:2][0], ledger.spent.atoms
        return [Line(head, o.kind, o.key, None, o.atoms, spent, o.body, "", "") for o in outcomes]

    Ledger.settle = early  # type: ignore[assignment,method-assign]


def refund_at_start() -> None:
    """What a server that died had reserved is given back by the next one."""
    opened = Config.open

    def generous(config: Config, **terms: Any) -> Session:
        session = opened(config, **terms)
        for intent in open_intents(session._ledger.log):
            back = Outcome(f"refund of {intent.seq}", 0, "told", "{}")
            session._ledger.settle(intent.seq, [back])
        return session

    Config.open = generous  # type: ignore[method-assign]


def another_answer() -> None:
    """A new server draws new noise for what an old one had answered."""
    look, started = Log.look, set[str]()

    def forgetful(log: Log, keys: Sequence[str]) -> tuple[Mark, dict[str, Line]]:
        newest, found = look(log, keys)
        started.update(key for key in keys if key not in found)
        return newest, {key: entry for key, entry in found.items() if key in started}

    Log.look = forgetful  # type: ignore[method-assign]


BUGS = {"answer before commit": answer_before_commit, "refund at start": refund_at_start, "forgets": another_answer}


def main(config: str, bug: str | None = None) -> None:
    for name in LOADED:
        import_module(name)
    if bug is not None:
        BUGS[bug]()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system takes them away when they were killed
    child = 0
    print("ready", flush=True)
    for _ in iter(sys.stdin.readline, ""):
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            run.serve([config], port=0, limits=LIMITS, ready=lambda address: print(os.getpid(), address, flush=True))
            os._exit(0)
    if child:
        try:
            os.kill(child, signal.SIGKILL)
        except ProcessLookupError:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
