"""OpenDP's AIM and MST on the same table, each run a process of its own with a time limit. For benchmarks.

They know the workload in advance, and answer any number of questions from the model that they release. Their
neighbours add or remove one row; ours replace one, which is fair only at another price. A replaced row moves a table by
sqrt(2) in L2 instead of 1, so Gaussian noise costs twice the rho, and a score by 2 instead of 1, so a choice costs four
times. Half of rho goes to one-way tables, and of the other half 90 % to tables and 10 % to choices: in all 2.1 times.
The public number of rows is given to them too: their tables are scaled to it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.noisy_tables import Released, Scope, averaged
from benchmarks.accuracy.tables import Table, codes
from tacit.exact.bounds import rho_from
from tacit.model.budget import Budget

PROGRAM = Path(__file__).with_name("synthesis_program.py")
PYTHON = Path(sys.prefix) / "synthesis/bin/python"  # made by `make peers`
REPLACED = 0.5 * 2 + 0.5 * (0.9 * 2 + 0.1 * 4)
LIMIT = 600.0  # seconds for one run


@dataclass(frozen=True)
class Peer:
    """A method and its rounds, if it has any."""

    name: str
    method: str
    rounds: int = 128


PEERS = (Peer("MST, OpenDP", "MST"), Peer("AIM, OpenDP, 16 rounds", "AIM", 16), Peer("AIM, OpenDP, 128 rounds", "AIM"))


@dataclass(frozen=True)
class Run:
    """What a process came back with; `answers` is None if it did not finish."""

    answers: Released | None
    seconds: float
    processor: float = 0.0
    gigabytes: float = 0.0
    why: str = ""


def synthesise(
    table: Table,
    budget: Budget,
    peer: Peer,
    *,
    workload: Sequence[Scope] = (),
    columns: Mapping[str, NDArray[np.integer]] | None = None,
    limit: float = LIMIT,
    python: Path = PYTHON,
) -> Run:
    """The workload is all tables of three attributes, unless named. `columns` are codes of cells too many to list."""
    domain = table.domain
    rho = rho_from(budget.epsilon, budget.delta) / REPLACED
    with tempfile.TemporaryDirectory() as name:
        source, target = Path(name) / "codes.npz", Path(name) / "tables.npz"
        sizes = {attribute: domain[attribute].size for attribute in domain.names}
        given = codes(table.records) if columns is None else columns
        np.savez(source, sizes=json.dumps(sizes), workload=json.dumps(workload), **given)
        command = [str(python), str(PROGRAM), peer.method, str(peer.rounds), str(source), str(target), repr(rho)]
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            said = process.communicate(timeout=limit)[1]
        except subprocess.TimeoutExpired:
            process.kill()  # this process, by its own id
            used = os.wait4(process.pid, 0)[2]
            process.communicate()
            taken = f"processor {used.ru_utime + used.ru_stime:.0f} s, {used.ru_maxrss / 2**20:.1f} GB"
            return Run(None, time.perf_counter() - start, why=f"not finished in {limit:.0f} s; {taken}")
        seconds = time.perf_counter() - start
        if process.returncode:
            return Run(None, seconds, why=f"failed: {said.strip().splitlines()[-1][:80] if said.strip() else ''}")
        with np.load(target) as found:
            told = json.loads(str(found["told"]))
            tables = {name: found[name] for name in found.files if name != "told"}
    return Run(_answers(table, tables), seconds, told["processor"], told["gigabytes"])


def _answers(table: Table, found: dict[str, NDArray[np.float64]]) -> Released:
    tables: dict[Scope, NDArray[np.float64]] = {}
    for joined, values in found.items():
        names = joined.split("|")
        scaled = values * (table.rows / values.sum())
        tables[tuple(sorted(names))] = scaled.transpose(np.argsort(names))
    return Released(table.domain, table.rows, lambda scope: averaged(table.domain, tables, scope))
