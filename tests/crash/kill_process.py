"""kill -9: processes that ask questions are killed at random moments, again and again, on one ledger."""

from __future__ import annotations

import json
import os
import random
import re
import select
import signal
from pathlib import Path

from crash_workload import PLENTY, Report, Shown, broken, make, raises, reopen, seen, step

from support import PATIENCE, pause
from tacit.errors import BudgetExhausted
from tacit.model.budget import Loss
from tacit.trusted.ledger import Ledger


def ask_until_killed(folder: Path, pipe: int, seed: int, kind: type[Ledger], total: Loss) -> None:
    def say(*words: object) -> None:
        os.write(pipe, json.dumps(words).encode() + b"\n")

    try:
        ledger, rng = reopen(folder, kind, total), random.Random(seed)
        while True:
            try:
                for key, (body, atoms, seq) in seen(step(ledger, rng)).items():
                    say(key, body, atoms, seq)
            except BudgetExhausted:
                say("refused", "", 0, 0)
    except BaseException as error:  # in a fork of the test runner: report, and leave by the shortest way
        say("error", repr(error), 0, 0)
    finally:
        os._exit(1)


def kill_processes(
    folder: Path,
    *,
    kills: int,
    seed: int,
    kind: type[Ledger] = Ledger,
    total: Loss = PLENTY,
    until: str | None = None,
    shown_least: int = 0,
    refused_least: int = 0,
) -> Report:
    """Two processes at a time share the ledger. Forks, because starting Python anew would take most of the time.

    It goes on until as much was shown and refused as it should be at least. Every second process, as coins of the seed
    fall, is killed after it has said something; so however slow the machine is, a few more kills are enough. `until`:
    it ends sooner where such a promise is seen broken; a bug may break others before, which other processes meet.
    """
    rng, report = random.Random(seed), Report()
    ledger_id = make(folder, total)
    shown: Shown = {}
    spent = 0

    def done() -> bool:
        if until is not None and re.search(until, " ".join(report.violations)):
            return True
        did_something = report.shown >= shown_least and report.refused >= refused_least
        return report.crashes >= (kills if did_something else 20 * kills)

    while not done():
        children = []
        for _ in range(2):
            reader, writer = os.pipe()
            child_seed = rng.getrandbits(32)
            child = os.fork()
            if child == 0:
                ask_until_killed(folder, writer, child_seed, kind, total)
            os.close(writer)
            children.append((child, reader))
        for child, reader in children:
            if rng.random() < 0.5:
                select.select([reader], [], [], PATIENCE)  # until the first answer
            pause(rng, 0.002, 0.03)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            report.crashes += 1
            with open(reader, "rb") as pipe:
                for line in pipe.read().splitlines():
                    key, body, atoms, seq = json.loads(line)
                    if key == "error":
                        report.violations.append(f"a process failed: {body}")
                    elif key == "refused":
                        report.refused += 1
                    elif shown.setdefault(key, (body, atoms, seq))[0] != body:
                        report.violations.append(f"the question {key} got two answers")
        report.shown, report.raised = len(shown), raises(shown)
        now, found = broken(folder, shown, ledger_id, kind, total)
        report.violations += found
        if now < spent:
            report.violations.append("less is spent than before")
        spent = now
    return report
