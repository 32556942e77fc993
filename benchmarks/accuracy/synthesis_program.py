"""OpenDP's AIM or MST on a table of codes, as a program of its own: run by `synthesis`, in an environment of its own.

    python synthesis_program.py AIM 128 codes.npz tables.npz RHO

128 is the number of AIM's rounds, 16 for each attribute in OpenDP's own setting. The program reads columns of codes
and their sizes, releases a model for RHO (zCDP, one row added or removed), and writes its tables of the workload,
in rows, with the seconds and the memory that it took. The workload is every three attributes, unless the file names
some. It imports nothing of Tacit: `opendp[mbi]` asks for other versions than Tacit's tests do.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from itertools import combinations
from typing import Any

import numpy as np
import opendp.prelude as dp
import polars as pl

INTERACTIONS = 3  # the workload that AIM is told in advance, unless it is named: every table of so many attributes
TRIES, SMALLER = 50, 1e-5  # MST adds up its parts in floating point, and may find the last one too dear


def main(method: str, rounds: int, source: str, target: str, rho: float) -> None:
    dp.enable_features("contrib")
    with np.load(source) as given:
        sizes = json.loads(str(given["sizes"]))
        named = [tuple(names) for names in json.loads(str(given["workload"]))]
        frame = pl.DataFrame({name: given[name].astype(np.int64) for name in sizes}).lazy()
    workload = named or list(combinations(sizes, min(INTERACTIONS, len(sizes))))
    told_aim = [dp.mbi.Count(names) for names in workload]
    algorithm = dp.mbi.AIM(queries=told_aim, rounds=rounds) if method == "AIM" else dp.mbi.MST()
    start, before = time.perf_counter(), _processor_seconds()
    released = None
    for attempt in range(TRIES):
        try:
            released = release(frame, sizes, algorithm, rho * (1 - attempt * SMALLER))
            break
        except dp.OpenDPException as error:
            if "insufficient budget" not in str(error):
                raise
            start, before = time.perf_counter(), _processor_seconds()
    assert released is not None
    print(f"released in {time.perf_counter() - start:.0f} s", flush=True)
    tables = {"|".join(names): np.asarray(released.project(names), dtype=np.float64) for names in workload}
    told = {
        "seconds": time.perf_counter() - start,
        "processor": _processor_seconds() - before,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "measured": sorted("|".join(clique) for clique in released.marginals.cliques()),
    }
    np.savez_compressed(target, told=np.array(json.dumps(told)), **tables)  # type: ignore[arg-type]


def release(frame: pl.LazyFrame, sizes: dict[str, int], algorithm: Any, rho: float) -> Any:
    context = dp.Context.compositor(
        data=frame, privacy_unit=dp.unit_of(contributions=1), privacy_loss=dp.loss_of(rho=rho), split_evenly_over=1
    )
    # cuts between all codes name every value; `keys` would add a value for "missing" to each attribute
    cuts = {name: list(range(size - 1)) for name, size in sizes.items()}
    return context.query().contingency_table(cuts=cuts, algorithm=algorithm).release()


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], float(sys.argv[5]))
