"""A forked child inherits no connection, no lock and no turn, whatever its parent does next."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from crash_workload import LEDGER, make, reopen

from support import PATIENCE
from tacit.errors import AnswerWithheld, LedgerError
from tacit.model.budget import Loss
from tacit.store import file as durable
from tacit.store import rows
from tacit.store.anchor import Anchor
from tacit.store.chain import Draft, Line, Mark, seal
from tacit.store.conditions import now
from tacit.trusted.ledger import Ledger, Outcome


def ask(ledger: Ledger, key: str, body: str = '"1"') -> str:
    return ledger.settle(ledger.reserve(Loss("epsilon", 10), purpose="count"), [Outcome(key, 10, "measured", body)])[
        0
    ].body


@pytest.fixture(autouse=True)
def nothing_to_collect() -> None:
    """Ledgers that other tests have dropped are closed: a thread that collected one here would be inside SQLite when
    the process forks, and the child would wait for its memory for ever (docs/understand/limits.md, "Forks").
    """
    gc.collect()


def forked(work: Callable[[], object]) -> int:
    """A child that exits with 0 if `work` is true."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    return child


def exit_of(child: int) -> int:
    """How a child ended. One that hangs is ended, and fails the test instead of stopping it."""
    end = time.monotonic() + PATIENCE
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.001)
    return os.waitstatus_to_exitcode(ended[1])


# Says which files it has opened, before it waits for their transactions, and at the end the answer.
THIRD = """
import sys
from pathlib import Path
from crash_workload import Outcome, reopen
from tacit.store.file import DurableFile

opened = DurableFile._open

def say(file):
    db = opened(file)
    print(file.path.name, flush=True)
    return db

DurableFile._open = say
with reopen(Path(sys.argv[1])) as ledger:
    answer = ledger.settle(None, [Outcome("k", 0, "told", '"third"')])[0].body
print(answer)
"""


@pytest.mark.parametrize("kind", ["intent", "measured"])
def test_a_parent_that_closes_does_not_take_the_log_away(disk: Path, kind: str) -> None:
    """The child is in the middle of a transaction; the parent closes, and a third process comes and goes."""
    make(disk)
    ledger = reopen(disk)
    ask(ledger, "before")
    (reached, reach), (resumed, resume) = os.pipe(), os.pipe()
    insert = rows.insert

    def slow(db: Any, lines: Sequence[Line]) -> Mark:
        told = insert(db, lines)
        if lines[0].kind == kind:
            os.write(reach, b"x")
            os.read(resumed, 1)
        return told

    def work() -> bool:
        with mock.patch.object(rows, "insert", slow):
            return ask(ledger, "k", '"child"') == '"child"'

    child = forked(work)
    os.read(reached, 1)
    ledger.close()
    late = subprocess.Popen(
        [sys.executable, "-c", THIRD, str(disk)], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent
    )
    assert late.stdout is not None
    while late.stdout.readline() != f"{LEDGER}\n":  # it has opened the file, in the middle of the child's transaction
        pass
    os.write(resume, b"x")
    shown, showed = late.communicate()[0].split()[-1], exit_of(child)
    again = reopen(disk)
    stored = again.find("k")
    assert stored is not None
    assert shown == stored.body
    assert (showed == 0) == (stored.body == '"child"')  # shown by the child only if that is the answer
    assert again.spent.atoms == 20
    again.log.verify()
    again.close()


def test_a_thread_in_a_transaction_delays_the_fork(disk: Path) -> None:
    make(disk)
    ledger = reopen(disk)
    inside, go = threading.Event(), threading.Event()

    def hold(_: Any) -> None:
        inside.set()
        assert go.wait(PATIENCE)

    thread = threading.Thread(target=ledger.log._file.transact, args=(hold,))
    thread.start()
    assert inside.wait(PATIENCE)
    threading.Timer(0.2, go.set).start()  # a fork that did not wait would come long before, within the transaction
    child = forked(lambda: ask(ledger, "child"))
    ask(ledger, "parent")
    assert exit_of(child) == 0
    thread.join()
    assert len(ledger.find_many(["child", "parent"])) == 2
    ledger.close()


def test_threads_that_ask_do_not_stop_a_fork(disk: Path) -> None:
    make(disk)
    ledger = reopen(disk)
    stop = threading.Event()

    def keep_asking(name: int) -> None:
        i = 0
        while not stop.is_set():
            with ledger.log.turn():
                ask(ledger, f"{name}/{i}")
            i += 1

    threads = [threading.Thread(target=keep_asking, args=(name,)) for name in range(3)]
    for thread in threads:
        thread.start()

    def turn() -> bool:
        with ledger.log.turn():
            return bool(ask(ledger, f"child {os.getpid()}"))

    children = [forked(turn) for _ in range(10)]
    stop.set()
    assert [exit_of(child) for child in children] == [0] * 10
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert sum(str(entry.key).startswith("child") for entry in ledger.log.lines(kinds=["measured"])) == 10
    ledger.log.verify()
    ledger.close()


def test_a_child_forked_inside_a_transaction_refuses(disk: Path) -> None:
    make(disk)
    ledger, child = reopen(disk), 0

    def refused() -> bool:
        for use in (lambda: ledger.find("k"), lambda: ask(ledger, "k"), lambda: reopen(disk)):
            with pytest.raises(LedgerError, match="when this process was forked"):
                use()
        return True

    def work(db: Any) -> None:
        nonlocal child
        rows.insert(db, [seal(ledger.log.identity.origin, Draft("told", 0, "1", "k"), 0, now())])
        child = forked(refused)

    ledger.log._file.transact(work)
    assert exit_of(child) == 0
    assert ledger.log.verify() == 1
    ledger.close()


def test_a_turn_ends_with_its_parent_and_is_not_the_childs(disk: Path) -> None:
    make(disk)
    ledger = reopen(disk)
    (refused, refuse), (resumed, resume) = os.pipe(), os.pipe()

    def work() -> bool:
        with mock.patch.object(durable, "_PATIENCE", 0.1), pytest.raises(LedgerError, match="held by another process"):
            ledger.log.turn()
        os.write(refuse, b"x")
        return os.read(resumed, 1) == b"x"

    with ledger.log.turn():
        child = forked(work)
        os.close(refuse)
        assert os.read(refused, 1) == b"x"
    with ledger.log.turn():  # although the child, which inherited the file, still runs
        os.write(resume, b"x")
    assert exit_of(child) == 0
    ledger.close()


def test_another_history_told_to_the_anchor_meanwhile_withholds_the_answer(disk: Path) -> None:
    """Should two histories ever run side by side, the anchor's mark shows it: same number, another hash."""
    make(disk)
    ledger = reopen(disk)
    advance = Anchor.advance

    def raced(anchor: Anchor, ledger_id: str, mark: Any, *rest: Any) -> Any:
        advance(anchor, ledger_id, mark._replace(hash="another"), *rest)
        return advance(anchor, ledger_id, mark, *rest)

    intent = ledger.reserve(Loss("epsilon", 10), purpose="count")
    with mock.patch.object(Anchor, "advance", raced), pytest.raises(AnswerWithheld, match="another history"):
        ledger.settle(intent, [Outcome("k", 10, "measured", "1")])
    ledger.close()
    assert (disk / LEDGER).exists()
