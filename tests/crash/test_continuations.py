"""Two ledgers, two files: whenever the power fails or a process dies, they spend one budget between them."""

from __future__ import annotations

import os
import random
import select
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
import pytest
from power_cut import Disk, Event, recording, write_files

import tacit
from audit_record import record
from support import PATIENCE, Stopwatch, once, pause
from tacit.errors import BudgetExhausted, InvalidBudget, LedgerError
from tacit.model.budget import ATOMS
from tacit.store import file as durable

ROWS = once(pd.DataFrame({"sex": ["F", "M"] * 50, "age": [i % 10 for i in range(100)]}))
FINE = tacit.Domain({"sex": tacit.category(["F", "M"]), "age": tacit.integer(0, 9)})
COARSE = tacit.Domain({"age": tacit.integer(0, 9)})


def opened(folder: Path, name: str, **more: Any) -> tacit.Session:
    files = {"ledger": folder / name, "anchor": folder / "anchors.sqlite"}
    settings: dict[str, Any] = {"domain": FINE, "mechanism": "direct", "questions": 4, **files, **more}
    return tacit.open(data=ROWS, budget=tacit.Budget(epsilon=1.0), **settings)


def go_on(folder: Path) -> tacit.Session:
    return opened(folder, "new.tacit", domain=COARSE, questions=3, continues=folder / "old.tacit")


def begin(folder: Path) -> None:
    with opened(folder, "old.tacit") as session:
        session.ask(tacit.count(age=0))


def released(folder: Path, rng: random.Random) -> int:
    """The atoms of all that both ledgers ever answer, where each is asked for as much as it gives."""
    both = [lambda: opened(folder, "old.tacit"), lambda: go_on(folder)]
    rng.shuffle(both)
    spent = 0
    for one in both:
        try:
            session = one()
        except InvalidBudget:  # the old one was not closed, and has spent all
            continue
        with session:
            for age in range(10):
                try:
                    session.ask(tacit.count(age=age))
                except BudgetExhausted:
                    break
            spent += session.spent.atoms - session.carried - session.moved
    with opened(folder, "old.tacit") as session:  # what was left is in the new one, or was spent here before
        assert session.left.atoms == 0
    return spent


def cut_power(folder: Path, cuts: int, seed: int) -> int:
    """How many answers were shown before the cuts, of which 50 are of one trace."""
    rng, shown = random.Random(seed), 0
    for first in range(0, cuts, 50):
        log, here = list[Event](), folder / f"trace{first}"
        here.mkdir()
        often = mock.patch.object(durable, "_CHECKPOINT_EVERY", rng.choice((3, 20, 256)))
        with often, recording(here, log):
            begin(here)
            made = len(log)
            with go_on(here) as session:
                for age in (5, 6, 7):
                    log.append(("show", age, session.ask(tacit.count(age=age)).value))
        for number in range(first, min(first + 50, cuts)):
            left, cut = folder / f"cut{number}", rng.randint(made, len(log))
            write_files(left, Disk(log[:cut]).lose_power(rng))
            told = {event[1]: event[2] for event in log[:cut] if event[0] == "show"}
            shown += len(told)
            if told:  # the same again, and so within the budget of both
                with go_on(left) as session:
                    assert {age: session.ask(tacit.count(age=age)).value for age in told} == told
            assert released(left, rng) == ATOMS // 4 * 4
            shutil.rmtree(left)
        shutil.rmtree(here)
    return shown


def kill_those_that_go_on(folder: Path, kills: int, seed: int) -> int:
    """Two at once, again and again from the same beginning; how many answers they showed."""
    rng, shown = random.Random(seed), 0
    begin(folder)
    shutil.copytree(folder, folder / "begun")
    for number in range(0, kills, 2):
        here = folder / f"kill{number}"
        shutil.copytree(folder / "begun", here)
        children = []
        for _ in range(2):
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                go_on_until_killed(here, writer)
            os.close(writer)
            children.append((child, reader))
        told = set[str]()
        for child, reader in children:
            if rng.random() < 0.5:
                select.select([reader], [], [], PATIENCE)  # until its answer, or its end
            pause(rng, 0.0, 0.05)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            with open(reader) as pipe:
                told |= set(pipe.read().split())
        assert len(told) <= 1  # both were told the same
        shown += len(told)
        for value in told:
            with go_on(here) as session:
                assert str(session.ask(tacit.count(age=5)).value) == value
        assert released(here, rng) == ATOMS // 4 * 4
        shutil.rmtree(here)
    return shown


def go_on_until_killed(folder: Path, pipe: int) -> None:
    try:
        with go_on(folder) as session:
            os.write(pipe, f"{session.ask(tacit.count(age=5)).value} ".encode())
    except LedgerError:
        pass
    finally:
        os._exit(0)


@pytest.mark.parametrize("cuts", [15, pytest.param(150, marks=pytest.mark.crash)])
def test_power_cuts(disk: Path, cuts: int) -> None:
    assert cut_power(disk, cuts, seed=5) > 0


@pytest.mark.parametrize("kills", [8, pytest.param(120, marks=pytest.mark.crash)])
def test_kill_9_of_two_that_go_on_at_once(disk: Path, kills: int) -> None:
    kill_those_that_go_on(disk, kills, seed=6)


@pytest.mark.audit
@pytest.mark.parametrize(
    ("name", "crash", "times"),
    [("kill -9 of two that continue a ledger", kill_those_that_go_on, 1_000),
     ("power cuts while a ledger is continued", cut_power, 1_000)],
)  # fmt: skip
def test_going_on_in_the_audit(
    disk: Path, size: float, name: str, crash: Callable[[Path, int, int], int], times: int
) -> None:
    watch, times = Stopwatch(), max(2, round(size * times))
    shown = crash(disk, times, 4)  # which refuses whatever breaks a promise
    record("crashes", name, times=times, shown=shown, broken=0, taken=str(watch))
    assert shown > 0 or times < 100
