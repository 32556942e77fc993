"""Two ledgers, two files: whenever the power fails or a process dies, they spend one budget between them."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from power_cut import Disk, Event, recording, write_files

import tacit
from tacit.errors import BudgetExhausted, InvalidBudget, LedgerError
from tacit.model.budget import ATOMS

ROWS = pd.DataFrame({"sex": ["F", "M"] * 50, "age": [i % 10 for i in range(100)]})
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


@pytest.mark.parametrize("cuts", [15, pytest.param(150, marks=pytest.mark.crash)])
def test_power_cuts(disk: Path, cuts: int) -> None:
    rng, log, here = random.Random(5), list[Event](), disk / "here"
    here.mkdir()
    with recording(here, log):
        begin(here)
        made = len(log)
        with go_on(here) as session:
            session.ask(tacit.count(age=5))
    for number in range(cuts):
        left = disk / f"cut{number}"
        write_files(left, Disk(log[: rng.randint(made, len(log))]).lose_power(rng))
        assert released(left, rng) == ATOMS // 4 * 4
        shutil.rmtree(left)


@pytest.mark.parametrize("kills", [4, pytest.param(60, marks=pytest.mark.crash)])
def test_kill_9_of_two_that_go_on_at_once(disk: Path, kills: int) -> None:
    rng = random.Random(6)
    begin(disk)
    shutil.copytree(disk, disk / "begun")
    for number in range(kills):
        here = disk / f"kill{number}"
        shutil.copytree(disk / "begun", here)
        children = []
        for _ in range(2):
            child = os.fork()
            if child == 0:
                try:
                    go_on(here).ask(tacit.count(age=5))
                except LedgerError:
                    pass
                finally:
                    os._exit(0)
            children.append(child)
        time.sleep(rng.uniform(0.0, 0.05))
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        assert released(here, rng) == ATOMS // 4 * 4
        shutil.rmtree(here)
