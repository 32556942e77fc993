"""Brings databases into their slabs after a new answer: directed moves on those that are outside. For the sampler.

Nothing is claimed of the law of a database while it is outside: the exact moves that follow forget it. So a repair may
choose what helps: a violated slab, a record on its wrong side, and a new value on the right side. This is the stiff
limit of an annealed penalty, in which one record's violation outweighs any ln(|out|/|in|): a move that lowers the
violation is always accepted, one that raises it only in the warm rounds. The violation is how many records, over all
slabs, are too few or too many, in grid steps. A database that stays outside keeps the least violation that it had.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tacit.model.query import GRID
from tacit.release.samplers.moves import (
    KINDS,
    Chains,
    cells_of,
    drawn,
    gauge_excess,
    is_member,
    lower,
    memberships,
    random_words,
    replace,
    unpack,
    upper,
    weights_of,
)
from tacit.release.samplers.slabs import Ints, Program

Advance = Callable[[Chains, Program, int, int, int], None]
_WINDOW = 32  # records that are searched for one on the wrong side
_COLD_ROUNDS = 2  # before every other round is warm
_PATIENCE = 6  # rounds without any progress, after which the slabs are held to contradict each other
_WARM = np.uint64(int(2**64 * 0.05))  # the chance that one record more of violation is accepted


def violation(state: Chains, program: Program) -> Ints:
    """How many records, in grid steps, are too few or too many in each database, over all slabs."""
    return np.asarray(_outside(state.counts, state.sums, program).sum(axis=1))


def repair(state: Chains, program: Program, key: int, rounds: int, advance: Advance) -> int:
    """Moves the databases outside their slabs, in place, until all are inside or the rounds are over: the rounds used.

    A round is a directed step for every four records, or fewer if all are inside before, and then a quarter of a sweep
    of exact moves, which never make any slab worse.
    """
    records = state.codes.shape[2]
    directed, plain = max(16, records // 4), len(KINDS) * -(-records // (4 * len(KINDS)))
    outside = np.flatnonzero(violation(state, program))
    best, least = state.take(outside), violation(state, program)[outside]
    progress = done = 0
    for done in range(rounds):
        rows = np.flatnonzero(violation(state, program))
        if not len(rows):
            return done
        if done - progress >= _PATIENCE:
            break
        part = state.take(rows)
        keys = [(key + 2 * done + k) % 2**64 for k in range(2)]
        _directed(part, program, keys[0], directed, warm=done >= _COLD_ROUNDS and done % 2 == 1)
        advance(part, program, keys[1], 0, plain)
        state.put(rows, part)
        now = violation(state, program)[outside]
        better = np.flatnonzero(now < least)
        best.put(better, state.take(outside[better]))
        least[better] = now[better]
        progress = done + 1 if len(better) else progress
    state.put(outside, best)
    return done + 1


def _directed(state: Chains, program: Program, key: int, steps: int, *, warm: bool) -> None:
    number, records = len(state.codes), state.codes.shape[2]
    stride, h = program.stride + 1, len(program.low)
    for t in range(steps):
        beyond = _outside(state.counts, state.sums, program)
        rows = np.flatnonzero(beyond.any(axis=1))
        if not len(rows):
            return
        counters = (t * number + rows[:, None]) * stride + np.arange(stride)
        words = random_words(key, counters.astype(np.uint64))
        wrong = beyond[rows] > 0
        rank = upper(words[:, 0], wrong.sum(axis=1))
        query = np.argmax(np.cumsum(wrong, axis=1) > rank[:, None], axis=1)
        gauge = query >= h
        counted = np.where(gauge, 0, query)
        into = ~gauge & (state.counts[rows, counted] < program.low[counted]) if h else np.zeros(len(rows), dtype=bool)
        near = (lower(words[:, 0], records)[:, None] + np.arange(min(_WINDOW, records))) % records
        found = (is_member(state, rows[:, None], near, counted[:, None]) != into[:, None]) | gauge[:, None]
        record = near[np.arange(len(rows)), np.argmax(found, axis=1)]
        some = np.flatnonzero(found.any(axis=1))
        rows, record, query, into, words = rows[some], record[some], query[some], into[some], words[some]
        fresh = drawn(state, program, rows, record, query, into, words[:, 2:])
        old, new = state.members[rows, record], memberships(fresh, program)
        after = state.counts[rows] + unpack(new & ~old, h) - unpack(old & ~new, h)
        sums = state.sums[rows] + weights_of(fresh, program) - weights_of(cells_of(state, rows, record), program)
        worse = _outside(after, sums, program).sum(axis=1) - beyond[rows].sum(axis=1)
        keep = np.flatnonzero((worse <= 0) | (warm & (worse <= GRID) & (words[:, 1] < _WARM)))
        replace(state, program, rows[keep], record[keep], fresh[keep], new[keep])
        state.sums[rows[keep]] = sums[keep]


def _outside(counts: Ints, sums: Ints, program: Program) -> Ints:
    """The violation of each counted slab and then of each gauge, in grid steps [n, h + g]."""
    beyond = np.maximum(np.maximum(program.low - counts, counts - program.high), 0)
    return np.concatenate([beyond * GRID, gauge_excess(sums, program)], axis=1)
