"""MST and AIM on the same table, each run a process of its own with a time limit. For benchmarks.

They are told the workload in advance, all tables of three attributes unless some are named, and answer any number of
questions from the model that they release. `synthesis_program` says how they are written, and that its neighbours
replace one row, as ours do.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.accuracy.noisy_tables import Released, Scope, averaged, every, shape
from benchmarks.accuracy.tables import codes
from tacit.exact.bounds import rho_from
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.trusted.records import Records

PROGRAM = Path(__file__).with_name("synthesis_program.py")
PYTHON = Path(os.environ.get("SYNTHESIS_PYTHON", Path(sys.prefix) / "synthesis/bin/python"))  # made by `make peers`
LIMIT = 1_200.0  # seconds for one run


class NotFinished(Exception):
    """A run that was stopped, failed, or could not begin; what it says is shown in place of figures."""


@dataclass(frozen=True)
class Run:
    """What a process came back with."""

    answers: Released
    seconds: float
    gigabytes: float


def synthesise(
    records: Records, budget: Budget, method: str, *, workload: Sequence[Scope] = (), limit: float = LIMIT
) -> Run:
    if not PYTHON.exists():
        raise NotFinished("not installed: see `make peers`")
    domain = records.domain
    wanted = list(workload) or every(domain, 3)
    with tempfile.TemporaryDirectory() as name:
        source, target = Path(name) / "table.npz", Path(name) / "model.npz"
        columns = {f"column {name}": column for name, column in codes(records).items()}
        np.savez(source, sizes=json.dumps(dict(domain.sizes)), workload=json.dumps(wanted), **columns)  # type: ignore[arg-type]
        rho = rho_from(budget.epsilon, budget.delta)
        command = [str(PYTHON), "-W", "ignore", str(PROGRAM), method, str(source), str(target), repr(rho)]
        start = time.perf_counter()
        try:
            process = subprocess.run(command, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            raise NotFinished(f"not finished in {limit:.0f} s") from None
        if process.returncode:
            raise NotFinished(f"failed: {process.stderr.strip().splitlines()[-1][:100]}")
        with np.load(target) as found:
            told = json.loads(str(found["told"]))
            model = {name: found[name] for name in found.files if name != "told"}
    seconds = time.perf_counter() - start
    return Run(Released(domain, records.rows, _tables(domain, records.rows, model)), seconds, told["gigabytes"])


def _tables(domain: Domain, rows: int, model: dict[str, NDArray[np.float64]]) -> Callable[[Scope], NDArray[np.float64]]:
    """From the whole distribution or the tables of the workload; what neither tells, from the rows made up."""
    made_up = {name.removeprefix("made up "): model.pop(name) for name in list(model) if name.startswith("made up ")}
    if "joint" in model:
        order = np.argsort(domain.names)
        tables = {tuple(sorted(domain.names)): model["joint"].astype(np.float64).transpose(order)}
    else:
        tables = {tuple(name.split("|")): table for name, table in model.items()}

    def make(scope: Scope) -> NDArray[np.float64]:
        if any(set(scope) <= set(names) for names in tables):
            return averaged(domain, tables, scope)
        sizes = shape(domain, scope)
        places = np.ravel_multi_index([made_up[name] for name in scope], sizes)
        counts = np.bincount(places, minlength=math.prod(sizes)).reshape(sizes)
        return np.asarray(counts * (rows / counts.sum()))

    return make
