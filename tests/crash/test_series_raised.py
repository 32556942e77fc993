"""Raising the budget of a series through crashes: no ledger ever has more than the manifest says, and all of it is
finished when the series is opened next."""

from __future__ import annotations

import os
import random
import select
import shutil
import signal
from pathlib import Path

import pytest
from power_cut import Disk, Event, recording, write_files
from test_append import append, opened

import tacit
from support import PATIENCE, pause
from tacit.blocks import budgets as block_budgets
from tacit.blocks.series import Series
from tacit.exact.price import total
from tacit.model.budget import Budget
from tacit.owner.manifest import Manifest

BLOCKS = 4


def raise_once(series: Series) -> None:
    series.extend(Budget(epsilon=series.budget_of_all.epsilon + 1))


def prepared(folder: Path) -> None:
    with opened(folder) as series:
        for number in range(BLOCKS):
            append(series, number)


def broken(folder: Path, told: float) -> list[str]:
    """What does not hold any more after a crash; `told` is the epsilon that an owner was told of."""
    found = list[str]()
    try:
        with opened(folder, raised=True) as series:
            budget = series.budget_of_all
            if budget.epsilon < told:
                found.append(f"epsilon = {told} was told, and it is {budget.epsilon}")
            blocks = series._ledgers.newest()
            for block in blocks:  # before anything is finished: made_of reads the file alone
                has = series._ledgers.budgets.of(block.ledger, 0)
                if has.epsilon > budget.epsilon:
                    found.append(f"{block.label} has more than the series promises")
            for one in series.status().blocks:
                if one.total != total(budget, one.total.measure):
                    found.append(f"{one.label} was not finished")
                if one.spent.atoms > one.total.atoms:
                    found.append(f"{one.label} has spent more than it may")
            raise_once(series)  # and it goes on
            label, _ = append(series, 10**8)
            if series.status().blocks[-1].total != total(series.budget_of_all, "epsilon"):
                found.append(f"{label}, which is new, has another budget")
    except tacit.TacitError as error:
        found.append(f"it is refused: {error}")
    return found


def raise_until_killed(folder: Path, pipe: int) -> None:
    try:
        with opened(folder, raised=True) as series:
            while True:
                raise_once(series)
                os.write(pipe, f"{series.budget_of_all.epsilon}\n".encode())
    except BaseException as error:  # in a fork of the test runner: report, and leave by the shortest way
        os.write(pipe, f"error {error!r}\n".encode())
    finally:
        os._exit(1)


def kill_raising(folder: Path, kills: int, seed: int) -> tuple[float, list[str]]:
    rng, told, violations = random.Random(seed), 1.0, list[str]()
    prepared(folder)
    for at in range(kills):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            raise_until_killed(folder, writer)
        os.close(writer)
        if rng.random() < 0.7:
            select.select([reader], [], [], PATIENCE)
        pause(rng, 0.002, 0.08)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with open(reader, "rb") as pipe:
            for line in pipe.read().decode().splitlines():
                if line.startswith("error"):
                    violations.append(line)
                else:
                    told = max(told, float(line))
        copy = folder.with_name(f"after{at}")
        shutil.copytree(folder, copy)
        violations += broken(copy, told)
        shutil.rmtree(copy)
    return told, violations


@pytest.mark.parametrize("kills", [2, pytest.param(40, marks=pytest.mark.crash)])
def test_kill_9_while_the_budget_of_a_series_is_raised(disk: Path, kills: int) -> None:
    told, violations = kill_raising(disk / "series", kills, seed=1)
    assert violations == []
    assert told > 1


@pytest.mark.parametrize("cuts", [6, pytest.param(200, marks=pytest.mark.crash)])
def test_power_cuts_while_the_budget_of_a_series_is_raised(disk: Path, cuts: int) -> None:
    rng, here, log = random.Random(1), disk / "trace", list[Event]()
    here.mkdir()
    with recording(here, log), opened(here) as series:
        for number in range(2):
            append(series, number)
        begun = len(log)
        for _ in range(2):
            raise_once(series)
            log.append(("show", {"epsilon": series.budget_of_all.epsilon}))
    violations = list[str]()
    for at in range(cuts):
        cut = rng.randint(begun, len(log))
        left = disk / f"cut{at}"
        write_files(left, Disk(log[:cut]).lose_power(rng))
        shown = [event[1]["epsilon"] for event in log[:cut] if event[0] == "show"]
        violations += broken(left, max(shown, default=1.0))
        shutil.rmtree(left)
    assert violations == []


def test_ledgers_that_are_raised_before_the_manifest_are_noticed(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: the other order, cut short, leaves a ledger that has more than the series promises."""
    prepared(disk / "series")

    def first(self: Manifest, budget: Budget) -> None:
        with opened(disk / "series", raised=True) as other:
            path = other._ledgers._folder / other._ledgers.listed[0].ledger
            anchor = disk / "series" / "state" / "anchors.sqlite"
            block_budgets.raise_budget(path, budget, anchor, self.origin)
        raise KeyboardInterrupt

    with opened(disk / "series") as series, monkeypatch.context() as patched:
        patched.setattr(Manifest, "extend", first)
        with pytest.raises(KeyboardInterrupt):
            raise_once(series)
    assert broken(disk / "series", 1.0) != []
