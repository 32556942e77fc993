"""Appending through crashes: what was appended stays, what was told stays, and a half-made block is nowhere."""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from power_cut import Disk, Event, recording, write_files

import tacit
from audit_record import record
from support import PATIENCE, Stopwatch, pause
from tacit.blocks import rows as block_rows
from tacit.blocks.series import Series
from tacit.model.domain import Domain
from tacit.owner.manifest import Manifest
from tacit.owner.manifest_entry import Block
from tacit.store import file as durable
from tacit.trusted.records import Records

DOMAIN = Domain({"ill": tacit.boolean()})
ASKED = "SELECT COUNT(*) FROM data WHERE ill AND block = '{}'"
Told = dict[str, float]
Crash = Callable[[Path, int, int], tuple[int, list[str]]]


@contextmanager
def opened(folder: Path, *, raised: bool = False) -> Iterator[Series]:
    """A series whose rows are the numbers that `append` is given: no engine, which a fork could not have.

    raised: its budget may be another one by now.
    """

    def read(source: int, *_: object, **__: object) -> Records:
        return Records(DOMAIN, [np.array([0, 1], dtype=np.uint8)], np.array([source + 1, source + 2]))

    given = {"domain": DOMAIN, "budget": tacit.Budget(epsilon=1.0), "mechanism": "direct", "questions": 4}
    given = {} if raised else given
    with (
        mock.patch.object(block_rows, "open_source", lambda data, *_: data),
        mock.patch.object(block_rows, "read_records", read),
        tacit.series(ledger=folder / "s.tacit", anchor=folder / "state" / "anchors.sqlite", **given) as series,  # type: ignore[arg-type]
    ):
        yield series


def append(series: Series, number: int) -> tuple[str, float]:
    """One more block, and a question that is bought about it."""
    label = f"b{number:09d}"
    series.append(number, label)
    return label, float(series.ask(ASKED.format(label)))  # type: ignore[arg-type]


def broken(folder: Path, told: Told) -> list[str]:
    """What does not hold any more after a crash."""
    if not (folder / "s.tacit").exists():
        return [f"{len(told)} blocks are gone with their manifest"] if told else []
    found = list[str]()
    try:
        with opened(folder) as series:
            labels = series.blocks
            if len(set(labels)) < len(labels):
                found.append("a label stands twice")
            found += [f"{label} is gone" for label in told if label not in labels]
            status = series.status().blocks  # opens every ledger that is listed
            found += [f"{one.label} has spent more than it may" for one in status if one.spent.atoms > one.total.atoms]
            for label, value in told.items():
                if label in labels and float(series.ask(ASKED.format(label))) != value:  # type: ignore[arg-type]
                    found.append(f"{label} got two answers")
            append(series, 10**8)  # and it goes on
    except tacit.TacitError as error:
        found.append(f"it is refused: {error}")
    return found


def append_until_killed(folder: Path, pipe: int, seed: int) -> None:
    rng = random.Random(seed)
    try:
        with opened(folder) as series:
            while True:
                os.write(pipe, json.dumps(append(series, rng.randrange(10**7))).encode() + b"\n")
    except BaseException as error:  # in a fork of the test runner: report, and leave by the shortest way
        os.write(pipe, json.dumps(["error", repr(error)]).encode() + b"\n")
    finally:
        os._exit(1)


def kill_appending(folder: Path, kills: int, seed: int) -> tuple[int, list[str]]:
    """How many blocks were told of, and what does not hold; in a new series after every 20 kills, two at a time."""
    rng, shown, violations = random.Random(seed), 0, list[str]()
    for first in range(0, kills, 20):
        here = folder / f"series{first}"
        told = Told()
        with opened(here):
            pass
        for _ in range(first, min(first + 20, kills), 2):
            violations += kill_two(here, told, rng)
        shown += len(told)
        shutil.rmtree(here)
    return shown, violations


def kill_two(folder: Path, told: Told, rng: random.Random) -> list[str]:
    children, violations = [], list[str]()
    for _ in range(2):
        reader, writer = os.pipe()
        child_seed = rng.getrandbits(32)
        child = os.fork()
        if child == 0:
            append_until_killed(folder, writer, child_seed)
        os.close(writer)
        children.append((child, reader))
    for child, reader in children:
        if rng.random() < 0.5:
            select.select([reader], [], [], PATIENCE)
        pause(rng, 0.002, 0.05)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with open(reader, "rb") as pipe:
            for line in pipe.read().splitlines():
                label, value = json.loads(line)
                if label == "error":
                    violations.append(str(value))
                else:
                    told[label] = value
    copy = folder.with_name("after")
    shutil.copytree(folder, copy)
    violations += broken(copy, told)
    shutil.rmtree(copy)
    return violations


def cut_power(folder: Path, cuts: int, seed: int) -> tuple[int, list[str]]:
    """The same for power cuts, of which 50 are of one trace."""
    rng, shown, violations = random.Random(seed), 0, list[str]()
    for first in range(0, cuts, 50):
        here, log = folder / f"trace{first}", list[Event]()
        here.mkdir()
        often = mock.patch.object(durable, "_CHECKPOINT_EVERY", rng.choice((3, 20, 256)))
        with often, recording(here, log), opened(here) as series:
            for number in range(3):
                log.append(("show", dict([append(series, number)])))
        for at in range(first, min(first + 50, cuts)):
            cut, left = rng.randint(0, len(log)), folder / f"cut{at}"
            write_files(left, Disk(log[:cut]).lose_power(rng))
            told: Told = {}
            for event in log[:cut]:
                if event[0] == "show":
                    told |= event[1]
            shown += len(told)
            violations += broken(left, told)
            shutil.rmtree(left)
        shutil.rmtree(here)
    return shown, violations


@pytest.mark.parametrize("kills", [4, pytest.param(80, marks=pytest.mark.crash)])
def test_kill_9_while_two_append(disk: Path, kills: int) -> None:
    shown, violations = kill_appending(disk, kills, seed=1)
    assert violations == []
    assert shown


@pytest.mark.parametrize("cuts", [10, pytest.param(300, marks=pytest.mark.crash)])
def test_power_cuts_while_appending(disk: Path, cuts: int) -> None:
    shown, violations = cut_power(disk, cuts, seed=1)
    assert violations == []
    assert shown


@pytest.mark.audit
@pytest.mark.parametrize(
    ("name", "crash", "times"),
    [("kill -9 while two append", kill_appending, 1_000), ("power cuts while appending", cut_power, 2_500)],
)
def test_appending_in_the_audit(disk: Path, size: float, name: str, crash: Crash, times: int) -> None:
    watch, times = Stopwatch(), max(2, round(size * times))
    shown, violations = crash(disk, times, 4)
    record("crashes", name, times=times, shown=shown, broken=len(violations), taken=str(watch))
    assert violations == []
    assert shown


def test_a_manifest_that_is_written_before_its_ledger_is_noticed(disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: a block that is listed before it is there."""
    plain = Manifest.check

    def early(self: Manifest, label: str, fingerprint: str) -> None:
        plain(self, label, fingerprint)
        if fingerprint and label.startswith("b"):
            monkeypatch.setattr(Manifest, "check", plain)
            self.add(Block(label, 3, "nowhere.tacit", "", fingerprint))
            raise KeyboardInterrupt

    monkeypatch.setattr(Manifest, "check", early)
    with pytest.raises(KeyboardInterrupt), opened(disk / "series") as series:
        append(series, 1)
    assert broken(disk / "series", {}) != []
