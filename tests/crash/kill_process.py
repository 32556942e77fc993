"""kill -9: processes that ask questions are killed at random moments, again and again, on one ledger."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import time
from pathlib import Path

from crash_workload import Report, broken, make, reopen, step

from tacit.trusted.ledger import Ledger


def ask_until_killed(folder: Path, pipe: int, seed: int, kind: type[Ledger]) -> None:
    try:
        ledger, rng = reopen(folder, kind), random.Random(seed)
        while True:
            for entry in step(ledger, rng):
                os.write(pipe, json.dumps([entry.key, entry.body, entry.atoms]).encode() + b"\n")
    except BaseException as error:  # in a fork of the test runner: report, and leave by the shortest way
        os.write(pipe, json.dumps(["error", repr(error), 0]).encode() + b"\n")
        time.sleep(60)
    finally:
        os._exit(1)


def kill_processes(
    folder: Path, *, kills: int, seed: int, kind: type[Ledger] = Ledger, enough: int | None = None
) -> Report:
    """Two processes at a time share the ledger. Forks, because starting Python anew would take most of the time."""
    rng, report = random.Random(seed), Report()
    make(folder)
    shown: dict[str, tuple[str, int]] = {}
    spent = 0
    while report.crashes < kills and (enough is None or len(report.violations) < enough):
        children = []
        for _ in range(2):
            reader, writer = os.pipe()
            child_seed = rng.getrandbits(32)
            child = os.fork()
            if child == 0:
                ask_until_killed(folder, writer, child_seed, kind)
            os.close(writer)
            children.append((child, reader))
        for child, reader in children:
            if rng.random() < 0.5:
                select.select([reader], [], [], 30)  # until the first answer, however slow the machine is today
            time.sleep(rng.uniform(0.002, 0.03))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            report.crashes += 1
            with open(reader, "rb") as pipe:
                for line in pipe.read().splitlines():
                    key, body, atoms = json.loads(line)
                    if key == "error":
                        report.violations.append(f"a process failed: {body}")
                    elif shown.setdefault(key, (body, atoms))[0] != body:
                        report.violations.append(f"the question {key} got two answers")
        report.shown = len(shown)
        now, found = broken(folder, shown, kind)
        report.violations += found
        if now < spent:
            report.violations.append("less is spent than before")
        spent = now
    return report
