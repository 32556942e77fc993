"""The moves of `moves` compiled by numba, bit for bit the same, for the sampler. Needs the extra `fast`.

One chain is moved through all its steps before the next: a chain's state fits in the processor's nearest cache.
Chains are independent, so they are shared out to threads, and the result does not depend on how many there are.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from typing import Any

import numba
import numpy as np

from tacit.model.query import GRID
from tacit.release.samplers.moves import KINDS, LONGEST, Chains
from tacit.release.samplers.slabs import Program

_KINDS = np.array(KINDS, dtype=np.int64)  # an argument: what is compiled and cached must not depend on another file
_GAMMA, _MIX_1, _MIX_2 = (
    np.uint64(0x9E3779B97F4A7C15),
    np.uint64(0xBF58476D1CE4E5B9),
    np.uint64(0x94D049BB133111EB),
)
_0, _1, _27, _30, _31, _32, _63 = (np.uint64(n) for n in (0, 1, 27, 30, 31, 32, 63))
_LOWER = np.uint64(0xFFFFFFFF)


def _compiled(function: Callable[..., Any]) -> Any:
    """Compiled once per machine where a cache can be written, beside this file or in the user's own; else once per run.

    nogil, and threads of our own: numba's thread pools do not bear forks, or calls from several threads.
    """
    try:
        return numba.njit(function, nogil=True, cache=True, boundscheck=False)
    except RuntimeError:  # no place for a cache
        return numba.njit(function, nogil=True, boundscheck=False)


def advance(state: Chains, program: Program, key: int, first: int, steps: int) -> None:
    """`moves.advance`, compiled."""
    number = len(state.codes)
    shares = min(number, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)
    edges = [number * share // shares for share in range(shares + 1)]

    chains = (state.codes, state.members, state.counts, state.full, state.bare, state.sums)
    slabs = tuple(getattr(program, field.name) for field in fields(program))

    def run(share: int) -> None:
        begin, end = edges[share], edges[share + 1]
        _advance(begin, end, np.uint64(key), first, steps, program.stride, _KINDS, LONGEST, chains, slabs)

    if shares == 1:
        run(0)
    else:
        with ThreadPoolExecutor(shares) as pool:
            list(pool.map(run, range(shares)))


@_compiled
def _word(key: Any, counter: Any) -> Any:
    z = key + (counter + _1) * _GAMMA
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return z ^ (z >> _31)


@_compiled
def _upper(word: Any, number: Any) -> Any:
    return np.int64(((word >> _32) * np.uint64(number)) >> _32)


@_compiled
def _lower(word: Any, number: Any) -> Any:
    return np.int64(((word & _LOWER) * np.uint64(number)) >> _32)


@_compiled
def _memberships(fresh: Any, new: Any, moving: Any, offsets: Any, masks: Any, joint: Any) -> None:
    attributes_of, strides, joint_parts, joint_query, first_entry, entries = joint
    padding = offsets.shape[0] - 1
    row = offsets[moving[0]] + fresh[moving[0]]
    for w in range(new.shape[0]):
        new[w] = masks[row, w]
    for k in range(1, moving.shape[0]):
        row = offsets[moving[k]] + fresh[moving[k]]
        for w in range(new.shape[0]):
            new[w] &= masks[row, w]
    for index in range(joint_parts.shape[0]):
        query = joint_query[index]
        bit = _1 << (np.uint64(query) & _63)
        if new[query // 64] & bit:
            entry = first_entry[index]
            for slot in range(attributes_of.shape[1]):
                attribute = attributes_of[joint_parts[index], slot]
                if attribute < padding:
                    entry += fresh[attribute] * strides[joint_parts[index], slot]
            if entries[entry] == 0:
                new[query // 64] &= ~bit


@_compiled
def _weight(g: Any, fresh: Any, gauge: Any) -> Any:
    padding, start, attributes, strides, first, fine, weights = gauge
    result, on_grid = 1, False
    for part in range(start[g], start[g + 1]):
        entry = first[part]
        for slot in range(attributes.shape[1]):
            if attributes[part, slot] < padding:
                entry += fresh[attributes[part, slot]] * strides[part, slot]
        result *= weights[entry]
        if on_grid and fine[part]:
            result = (result + GRID // 2) // GRID
        on_grid = on_grid or fine[part] > 0
    return result


@_compiled
def _count(rise: Any, fall: Any, counts: Any, full: Any, bare: Any, low: Any, high: Any) -> None:
    for w in range(rise.shape[0]):
        changed = rise[w] | fall[w]
        j = w * 64
        while changed:
            if changed & _1:
                bit = _1 << np.uint64(j - w * 64)
                counts[j] += 1 if rise[w] & bit else -1
                full[w] = full[w] | bit if counts[j] >= high[j] else full[w] & ~bit
                bare[w] = bare[w] | bit if counts[j] <= low[j] else bare[w] & ~bit
            changed >>= _1
            j += 1


@_compiled
def _advance(
    begin: Any,
    end: Any,
    key: Any,
    first: Any,
    steps: Any,
    stride: Any,
    kinds: Any,
    longest: Any,
    chains: Any,
    slabs: Any,
) -> None:
    all_codes, all_members, all_counts, all_full, all_bare, all_sums = chains
    (
        moving, sizes, offsets, masks, low, high, chance, scope, scope_length, parts, part_count,
        attributes_of, strides, first_cell, cell_count, cells, joint_parts, joint_query, first_entry, entries,
        gauge_start, gauge_attributes, gauge_strides, gauge_first, gauge_fine, gauge_weights, gauge_low, gauge_high,
    ) = slabs  # fmt: skip  # in the order of Program's fields
    number, attributes, records = all_codes.shape
    words, width, queries = masks.shape[1], moving.shape[0], low.shape[0]
    fresh, second = np.zeros(attributes + 1, dtype=np.int64), np.zeros(attributes + 1, dtype=np.int64)
    new, new_2 = np.zeros(words, dtype=np.uint64), np.zeros(words, dtype=np.uint64)
    rise, fall = np.zeros(words, dtype=np.uint64), np.zeros(words, dtype=np.uint64)
    gauges, sums = gauge_low.shape[0], np.zeros(gauge_low.shape[0], dtype=np.int64)
    before, before_2 = np.zeros(attributes + 1, dtype=np.int64), np.zeros(attributes + 1, dtype=np.int64)
    joint = (attributes_of, strides, joint_parts, joint_query, first_entry, entries)
    gauge = (attributes, gauge_start, gauge_attributes, gauge_strides, gauge_first, gauge_fine, gauge_weights)
    for c in range(begin, end):
        codes, members, counts, full, bare = all_codes[c], all_members[c], all_counts[c], all_full[c], all_bare[c]
        for t in range(first, first + steps):
            counter = np.uint64((t * number + c) * stride)
            kind = kinds[t % kinds.shape[0]]
            word, word_1 = _word(key, counter), _word(key, counter + _1)
            record, other = _upper(word, records), -1
            if kind == 0:  # resample
                for k in range(width):
                    fresh[moving[k]] = codes[moving[k], record]
                start, length = _lower(word, width), 1 + _upper(word_1, min(longest, width))
                for k in range(length):
                    attribute = moving[start + k if start + k < width else start + k - width]
                    fresh[attribute] = _upper(_word(key, counter + np.uint64(2 + k)), sizes[attribute])
            elif kind == 1:  # toggle
                if queries == 0:
                    continue
                query = _lower(word, queries)
                inside = (members[record, query // 64] >> (np.uint64(query) & _63)) & _1
                if not inside and word_1 >= chance[query]:
                    continue
                for k in range(width):
                    fresh[moving[k]] = codes[moving[k], record]
                if inside:
                    for k in range(scope_length[query]):
                        attribute = scope[query, k]
                        fresh[attribute] = _upper(_word(key, counter + np.uint64(2 + k)), sizes[attribute])
                else:
                    for k in range(part_count[query]):
                        part = parts[query, k]
                        drawn = _upper(_word(key, counter + np.uint64(2 + k)), cell_count[part])
                        cell = cells[first_cell[part] + drawn]
                        for slot in range(attributes_of.shape[1]):
                            attribute = attributes_of[part, slot]
                            fresh[attribute] = cell // strides[part, slot] % sizes[attribute]
            else:  # swap
                other = _lower(word, records)
                if width < 2 or other == record:
                    continue
                start, length = _upper(word_1, width), 1 + _lower(word_1, width - 1)
                for k in range(width):
                    attribute = moving[k]
                    mine, theirs = codes[attribute, record], codes[attribute, other]
                    place = k - start if k >= start else k - start + width
                    fresh[attribute] = theirs if place < length else mine
                    second[attribute] = mine if place < length else theirs
            _memberships(fresh, new, moving, offsets, masks, joint)
            bad = _0
            for w in range(words):
                old = members[record, w]
                rise[w], fall[w] = new[w] & ~old, old & ~new[w]
            if other >= 0:
                _memberships(second, new_2, moving, offsets, masks, joint)
                for w in range(words):
                    old = members[other, w]
                    up, down = new_2[w] & ~old, old & ~new_2[w]
                    bad |= (rise[w] & up) | (fall[w] & down)
                    all_up, all_down = rise[w] | up, fall[w] | down
                    rise[w], fall[w] = all_up & ~all_down, all_down & ~all_up
            for w in range(words):
                bad |= (rise[w] & full[w]) | (fall[w] & bare[w])
            if bad:
                continue
            if gauges:
                for k in range(width):
                    before[moving[k]] = codes[moving[k], record]
                    if other >= 0:
                        before_2[moving[k]] = codes[moving[k], other]
                for g in range(gauges):
                    sums[g] = all_sums[c, g] + _weight(g, fresh, gauge) - _weight(g, before, gauge)
                    if other >= 0:
                        sums[g] += _weight(g, second, gauge) - _weight(g, before_2, gauge)
                    now = max(gauge_low[g] - sums[g], sums[g] - gauge_high[g], 0)
                    if now > max(gauge_low[g] - all_sums[c, g], all_sums[c, g] - gauge_high[g], 0):
                        bad = _1
                        break
                if bad:
                    continue
                for g in range(gauges):
                    all_sums[c, g] = sums[g]
            for k in range(width):
                codes[moving[k], record] = fresh[moving[k]]
                if other >= 0:
                    codes[moving[k], other] = second[moving[k]]
            for w in range(words):
                members[record, w] = new[w]
                if other >= 0:
                    members[other, w] = new_2[w]
            _count(rise, fall, counts, full, bare, low, high)
