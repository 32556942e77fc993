"""Ctrl-C at every moment at which Python lets one in: nothing stays locked, open, or shown without being durable."""

from __future__ import annotations

import dis
import functools
import itertools
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from crash_workload import LEDGER, make, reopen

from support import PATIENCE
from tacit.errors import LedgerError
from tacit.model.budget import Loss
from tacit.store import file as durable
from tacit.store import rows
from tacit.store.chain import Draft, seal
from tacit.store.conditions import now
from tacit.trusted.ledger import Ledger, Outcome

WATCHED = ("ledger.py", "log.py", "rows.py", "store/file.py", "anchor.py", "chain.py", "contextlib.py")


def ask(ledger: Ledger, key: str) -> None:
    with ledger.log.turn():
        if ledger.find(key) is None:
            reservation = ledger.reserve(Loss("epsilon", 10), purpose="count", private="state")
            ledger.settle(reservation, [Outcome(key, 10, "measured", '"answer"')])


@functools.cache
def before(code: CodeType) -> dict[int, str]:
    """What stands before each instruction. Signals are looked for after calls and at the start of functions."""
    listed = list(dis.get_instructions(code))
    return {b.offset: a.opname for a, b in itertools.pairwise(listed)}


class Interrupt:
    """Raises KeyboardInterrupt at the n-th such moment in the watched files."""

    def __init__(self, moment: int) -> None:
        self.left, self.where = moment, ""

    def enter(self, frame: FrameType, event: str, arg: object) -> Any:
        if not frame.f_code.co_filename.endswith(WATCHED):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self.step

    def step(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "opcode" and before(frame.f_code).get(frame.f_lasti, "").startswith(("CALL", "RESUME")):
            self.left -= 1
            if self.left == 0:
                self.where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} {frame.f_code.co_name}"
                sys.settrace(None)
                raise KeyboardInterrupt
        return self.step


def interrupted(moment: int, work: Callable[[], object]) -> tuple[str, BaseException | None]:
    """Where the interrupt came, and the exception: a prompt keeps it, with every frame that it passed through."""
    interrupt, kept = Interrupt(moment), None
    tracer = sys.gettrace()
    sys._getframe().f_trace_opcodes = True  # Python 3.12 looks for it in this moment, and not in the frames to come
    sys.settrace(interrupt.enter)
    try:
        work()
    except KeyboardInterrupt as error:
        kept = error
    finally:
        sys.settrace(tracer)
    return interrupt.where, kept


def in_thread(work: Callable[[], object]) -> str:
    outcome = ["hangs"]

    def run() -> None:
        try:
            work()
            outcome[0] = ""
        except BaseException as error:
            outcome[0] = repr(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    return outcome[0]


@pytest.mark.parametrize("what", ["ask", "open"])
def test_an_interrupt_at_any_moment(disk: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    monkeypatch.setattr(durable, "_PATIENCE", 1.0)
    make(disk)
    ours, other = reopen(disk), reopen(disk)
    moment = 0
    while True:
        moment += 1
        key = f"q{moment}"
        where, kept = interrupted(
            moment, functools.partial(ask, ours, key) if what == "ask" else lambda: reopen(disk).close()
        )
        if not where:
            break
        if ours.find(key) is not None:
            assert other.find(key) is not None, f"{where}: shown, but not durable"
        assert in_thread(lambda: ask(ours, f"{key}/thread")) == "", where  # noqa: B023
        for session, name in ((ours, "ours"), (other, "other")):
            ask(session, f"{key}/{name}")
        del kept
    assert moment > 200  # the test did something
    assert other.log.verify() == ours.log.verify()
    for session in (ours, other):
        session.close()


@pytest.fixture
def heard() -> Iterator[None]:
    """Ctrl-C is heard: a shell has it ignored by what it starts in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
def test_an_interrupt_while_waiting_for_another_process(disk: Path) -> None:
    make(disk)
    ledger = reopen(disk)
    (held, hold), (ended, end) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        db = sqlite3.connect(disk / LEDGER, isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        os.write(hold, b"x")
        os.read(ended, 1)
        os._exit(0)
    os.read(held, 1)

    def strike() -> None:
        signal.raise_signal(signal.SIGINT)
        os.write(end, b"x")  # only now, so that nothing can be asked before the interrupt

    def interrupted() -> None:
        threading.Timer(0.1, strike).start()
        ask(ledger, "k")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    os.waitpid(child, 0)
    for session in (ledger, reopen(disk)):
        ask(session, "k")
        session.close()


def test_a_signal_handler_cannot_undo_what_it_interrupts(disk: Path) -> None:
    """Neither can it show what is not committed yet."""
    make(disk)
    ledger = reopen(disk)

    def work(db: Any) -> None:
        rows.insert(db, [seal(ledger.log.identity.origin, Draft("told", 0, "1", "k"), 0, now())])
        for nested in (lambda: ledger.find("k"), lambda: ledger.reserve(Loss("epsilon", 1), purpose="nested")):
            with pytest.raises(LedgerError, match="in use further up"):
                nested()

    ledger.log._file.transact(work)
    assert ledger.find("k") is not None
    assert ledger.log.verify() == 1
    ledger.close()
