"""How the inner loops of the samplers are compiled. For the samplers; needs numba, the extra `median`.

A loop is written once, in plain Python over numbers and numpy arrays. numba compiles it when it is first called; with
NUMBA_DISABLE_JIT=1 it runs as it is written, to the same bits, some hundred times slower.

No fast-math: it would fuse multiplications with additions, and the bits would depend on the machine. nogil, and threads
of our own: numba's thread pools do not bear forks, or calls from several threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """A loop that is called from Python: compiled once per machine where a cache can be written, else once per run.

    The cache of a file is renewed when that file changes, and only then. So all that a loop calls stands in its own
    file, and whoever reorders the fields of a record touches that file too. A loop takes numbers, arrays and plain
    tuples of them: a cache would keep a record by its name, and fail to load once that has changed.
    """
    try:
        return cast(F, numba.njit(function, nogil=True, error_model="numpy", cache=True))
    except RuntimeError:  # no place for a cache
        return uncached(function)


def uncached(function: F) -> F:
    """A piece of a loop that makes arrays, or records of arrays."""
    return cast(F, numba.njit(function, nogil=True, error_model="numpy"))


def inlined(function: F) -> F:
    """A piece of a loop that makes none: it takes numbers, arrays and records of arrays, and returns numbers.

    So it needs no reference counts, which would cost five times what the pieces do: an array is counted in and out
    again wherever it is handed on, and a record of thirty arrays is thirty of them.
    """
    options = {"forceinline": True, "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return cast(F, numba.njit(function, nogil=True, error_model="numpy", **options))


def shared_out(number: int, run: Callable[[int, int], None]) -> None:
    """Runs a loop over `number` independent things in parts, from one to another, in a thread for each processor.

    What comes out does not depend on how many there are.
    """
    shares = min(number, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    edges = [number * share // shares for share in range(shares + 1)]
    if shares == 1:
        run(0, number)
    else:
        with ThreadPoolExecutor(shares) as pool:
            list(pool.map(run, edges[:-1], edges[1:]))
