"""Markov moves over N databases of m records: the numpy kernel, and the law that both kernels keep. For the sampler.

The state is N chains. A chain is a sequence of m records, and the target is the uniform law on the sequences whose
counts lie in all slabs. Three moves, each reversible for it, because each is symmetric, P(S, S') = P(S', S), and is
refused if it leaves the target's support:

- *resample*: a uniform record, and one to three neighbouring attributes that are drawn anew, uniformly.
- *toggle*: a uniform record i and query j, of scope size T and |in| cells inside. A record inside has its scope drawn
  anew, uniformly: 1/T for each cell. A record outside is, with probability |in|/T, given a uniform cell inside: also
  1/T for each. So pairs of cells with at least one inside are proposed with 1/T in both directions, and other pairs
  never. This is the draw of a uniform cell with Metropolis's ratio, without the wasted proposals from outside to
  outside; without the factor |in|/T, records would be drawn into small cells.
- *swap*: two uniform records exchange a cyclic block of attributes. It is its own inverse.

A move that would push any count by two is refused: so is its inverse. Steps follow a palindrome of kinds, and a product
K1 K2 K3 K2 K1 of reversible kernels is reversible; so is any power of it.

A draw from `size` values uses 32 bits, so its probabilities are off by at most size / 2^32, relatively.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.model.query import GRID
from tacit.release.samplers.slabs import Ints, Program, Words

RESAMPLE, TOGGLE, SWAP = 0, 1, 2
KINDS = (RESAMPLE, SWAP, RESAMPLE, TOGGLE, RESAMPLE, SWAP, RESAMPLE)  # a palindrome
LONGEST = 3  # attributes that a resampling draws together, at most
_GAMMA, _MIX_1, _MIX_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_ONE, _LOWER, _32 = np.uint64(1), np.uint64(0xFFFFFFFF), np.uint64(32)

Codes = NDArray[np.unsignedinteger[Any]]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Chains:
    """What the moves change in place: codes [N, A, m], and all that follows from them.

    members [N, m, words]: bit j of a record says whether it lies in query j. counts [N, h]: how many records do.
    full and bare [N, words]: the queries whose count may not rise, may not fall. sums [N, g]: of the gauges.
    """

    codes: Codes
    members: Words
    counts: Ints
    full: Words
    bare: Words
    sums: Ints

    def take(self, rows: Ints) -> Chains:
        """A copy of some chains."""
        members, counts, sums = self.members[rows], self.counts[rows], self.sums[rows]
        return Chains(self.codes[rows], members, counts, self.full[rows], self.bare[rows], sums)

    def put(self, rows: Ints, others: Chains) -> None:
        """Overwrites some chains."""
        for name in ("codes", "members", "counts", "full", "bare", "sums"):
            getattr(self, name)[rows] = getattr(others, name)


def chains(codes: Codes, program: Program) -> Chains:
    """The working state of these databases, which it takes over."""
    number, _, records = codes.shape
    members = np.full((number, records, program.words), ~np.uint64(0), dtype=np.uint64)
    for a in program.moving:
        members &= program.masks[program.offsets[a] + codes[:, a, :].astype(np.int64)]
    cells = codes.transpose(0, 2, 1).reshape(-1, codes.shape[1])
    if len(program.joint_parts):
        _look_up(members.reshape(-1, program.words), cells, program)
    used = _pack(np.ones((1, len(program.low)), dtype=bool), program.words)
    members &= used
    counts = np.empty((number, len(program.low)), dtype=np.int64)
    for j in range(len(program.low)):
        counts[:, j] = np.count_nonzero(members[:, :, j // 64] & np.uint64(1 << (j % 64)), axis=1)
    full, bare = (np.zeros((number, program.words), dtype=np.uint64) for _ in range(2))
    sums = np.zeros((number, len(program.gauge_low)), dtype=np.int64)
    if sums.size:
        sums += weights_of(cells, program).reshape(number, records, -1).sum(axis=1)
    state = Chains(codes, members, counts, full, bare, sums)
    _mark(state, program, np.arange(number))
    return state


def random_words(key: int, counters: Words) -> Words:
    """SplitMix64 (Steele, Lea & Flood 2014) at any places of its sequence: both kernels draw the same words."""
    z = np.uint64(key) + (counters + _ONE) * np.uint64(_GAMMA)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(_MIX_1)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(_MIX_2)
    return np.asarray(z ^ (z >> np.uint64(31)))


def advance(state: Chains, program: Program, key: int, first: int, steps: int) -> None:
    """Steps first, first + 1, ... of every chain, in place. A pure function of the state and these numbers."""
    number = np.uint64(len(state.codes) * program.stride)
    here = np.arange(number, dtype=np.uint64).reshape(-1, program.stride)
    for t in range(first, first + steps):
        kind = KINDS[t % len(KINDS)]
        used = here[:, :2] if kind == SWAP else here
        step(state, program, kind, random_words(key, np.uint64(t) * number + used))


def step(state: Chains, program: Program, kind: int, words: Words) -> None:
    """One step of one kind on every chain, from `stride` random words for each (a swap needs two)."""
    if kind == RESAMPLE:
        _resample(state, program, words)
    elif kind == TOGGLE and len(program.low):
        _toggle(state, program, words)
    elif kind == SWAP and len(program.moving) > 1:
        _swap(state, program, words)


def upper(words: Words, number: Any) -> Ints:
    """A number below `number` from the upper half of each word."""
    return np.asarray(((words >> _32) * np.asarray(number, dtype=np.uint64)) >> _32).astype(np.int64)


def lower(words: Words, number: Any) -> Ints:
    return np.asarray(((words & _LOWER) * np.asarray(number, dtype=np.uint64)) >> _32).astype(np.int64)


def _resample(state: Chains, program: Program, words: Words) -> None:
    rows, width = np.arange(len(state.codes)), len(program.moving)
    record = upper(words[:, 0], state.codes.shape[2])
    start, length = lower(words[:, 0], width), 1 + upper(words[:, 1], min(LONGEST, width))
    fresh = cells_of(state, rows, record)
    for k in range(min(LONGEST, width)):
        some = np.flatnonzero(k < length)
        attribute = program.moving[(start[some] + k) % width]
        fresh[some, attribute] = upper(words[some, 2 + k], program.sizes[attribute])
    _settle(state, program, rows, record, fresh)


def _toggle(state: Chains, program: Program, words: Words) -> None:
    record = upper(words[:, 0], state.codes.shape[2])
    query = lower(words[:, 0], len(program.low))
    inside = is_member(state, np.arange(len(record)), record, query)
    rows = np.flatnonzero(inside | (words[:, 1] < program.chance[query]))
    if len(rows):
        record, query, inside = record[rows], query[rows], inside[rows]
        fresh = drawn(state, program, rows, record, query, ~inside, words[rows, 2:])
        _settle(state, program, rows, record, fresh)


def _swap(state: Chains, program: Program, words: Words) -> None:
    rows, width = np.arange(len(state.codes)), len(program.moving)
    one, other = (half(words[:, 0], state.codes.shape[2]) for half in (upper, lower))
    start, length = upper(words[:, 1], width), 1 + lower(words[:, 1], width - 1)
    chosen = (np.arange(width) - start[:, None]) % width < length[:, None]
    here, there = cells_of(state, rows, one), cells_of(state, rows, other)
    mine, theirs = here[:, program.moving], there[:, program.moving]
    here[:, program.moving] = np.where(chosen, theirs, mine)
    there[:, program.moving] = np.where(chosen, mine, theirs)
    old, new = state.members[rows, one], memberships(here, program)
    old_2, new_2 = state.members[rows, other], memberships(there, program)
    up, up_2, down, down_2 = new & ~old, new_2 & ~old_2, old & ~new, old_2 & ~new_2
    ups, downs = np.bitwise_or(up, up_2), np.bitwise_or(down, down_2)
    rise, fall = ups & ~downs, downs & ~ups
    bad = (rise & state.full) | (fall & state.bare) | (up & up_2) | (down & down_2)
    keep = np.flatnonzero(~bad.any(axis=1) & (one != other))
    if len(program.gauge_low):
        keep = keep[_weigh(state, program, keep, [(one[keep], here[keep]), (other[keep], there[keep])])]
    for record, cells, member in ((one, here, new), (other, there, new_2)):
        state.codes[keep, :, record[keep]] = cells[keep, :-1]
        state.members[keep, record[keep]] = member[keep]
    _count(state, program, keep, rise[keep], fall[keep])


def _settle(state: Chains, program: Program, rows: Ints, record: Ints, fresh: Ints) -> None:
    """Replaces one record in each of these chains by a proposal, where no slab objects."""
    old, new = state.members[rows, record], memberships(fresh, program)
    rise, fall = new & ~old, old & ~new
    keep = np.flatnonzero(~((rise & state.full[rows]) | (fall & state.bare[rows])).any(axis=1))
    if len(program.gauge_low):
        keep = keep[_weigh(state, program, rows[keep], [(record[keep], fresh[keep])])]
    replace(state, program, rows[keep], record[keep], fresh[keep], new[keep])


def replace(state: Chains, program: Program, rows: Ints, record: Ints, fresh: Ints, new: Words) -> None:
    """Puts a new record, with these memberships, into each of these chains."""
    old = state.members[rows, record]
    state.codes[rows, :, record] = fresh[:, :-1]
    state.members[rows, record] = new
    _count(state, program, rows, new & ~old, old & ~new)


def _weigh(state: Chains, program: Program, rows: Ints, changes: list[tuple[Ints, Ints]]) -> Bools:
    """Where no gauge objects to these new records in these chains; its sums are then brought up to date."""
    before = state.sums[rows]
    after = before.copy()
    for record, fresh in changes:
        after += weights_of(fresh, program) - weights_of(cells_of(state, rows, record), program)
    fine = (gauge_excess(after, program) <= gauge_excess(before, program)).all(axis=1)
    state.sums[rows[fine]] = after[fine]
    return np.asarray(fine)


def gauge_excess(sums: Ints, program: Program) -> Ints:
    """How far the gauges' sums are outside their slabs, in grid steps."""
    return np.asarray(np.maximum(np.maximum(program.gauge_low - sums, sums - program.gauge_high), 0))


def weights_of(fresh: NDArray[Any], program: Program) -> Ints:
    """The gauges' weights of these records [n, g], rounded as `tacit.model.query.multiply` does."""
    result = np.ones((len(fresh), len(program.gauge_low)), dtype=np.int64)
    padding = len(program.sizes) - 1
    for g in range(result.shape[1]):
        fine = 0
        for part in range(program.gauge_start[g], program.gauge_start[g + 1]):
            entry = np.full(len(fresh), program.gauge_first[part])
            for attribute, stride in zip(program.gauge_attributes[part], program.gauge_strides[part], strict=True):
                if attribute < padding:
                    entry += fresh[:, attribute].astype(np.int64) * stride
            result[:, g] *= program.gauge_weights[entry]
            if fine and program.gauge_fine[part]:
                result[:, g] = (result[:, g] + GRID // 2) // GRID
            fine |= program.gauge_fine[part]
    return result


def drawn(state: Chains, program: Program, rows: Ints, record: Ints, query: Ints, into: Bools, words: Words) -> Ints:
    """Records with the query's scope drawn anew: uniformly inside the query, or (not `into`) from all its cells."""
    fresh = cells_of(state, rows, record)
    out = np.flatnonzero(~into)
    for k in range(program.scope.shape[1]):
        attribute = program.scope[query[out], k]
        fresh[out, attribute] = upper(words[out, k], program.sizes[attribute])
    within = np.flatnonzero(into)
    for k in range(program.parts.shape[1]):
        some = within[k < program.part_count[query[within]]]
        part = program.parts[query[some], k]
        cell = program.cells[program.first_cell[part] + upper(words[some, k], program.cell_count[part])]
        for slot in range(program.attributes_of.shape[1]):
            attribute = program.attributes_of[part, slot]
            fresh[some, attribute] = cell // program.strides[part, slot] % program.sizes[attribute]
    return fresh


def is_member(state: Chains, rows: Ints, record: Ints, query: Ints) -> Bools:
    bits: Words = state.members[rows, record, query // 64] >> (query % 64).astype(np.uint64)
    return np.asarray((bits & _ONE).astype(bool))


def memberships(fresh: Ints, program: Program) -> Words:
    """The words of these records [n, A + 1]."""
    index = program.offsets[program.moving] + fresh[:, program.moving]
    members: Words = np.bitwise_and.reduce(program.masks[index], axis=1)
    if len(program.joint_parts):
        _look_up(members, fresh, program)
    return members


def _look_up(members: Words, fresh: NDArray[Any], program: Program) -> None:
    """Clears the bits of the queries whose joint parts do not allow these records."""
    for index, part in enumerate(program.joint_parts):
        entry = np.full(len(fresh), program.first_entry[index])
        for attribute, stride in zip(program.attributes_of[part], program.strides[part], strict=True):
            if attribute < len(program.sizes) - 1:
                entry += fresh[:, attribute].astype(np.int64) * stride
        query = int(program.joint_query[index])
        members[:, query // 64] &= ~(np.uint64(1 << (query % 64)) * (1 - program.entries[entry]).astype(np.uint64))


def cells_of(state: Chains, rows: Ints, record: Ints) -> Ints:
    """The chosen records' values, and a column for padding's attribute."""
    fresh = np.zeros((len(rows), state.codes.shape[1] + 1), dtype=np.int64)
    fresh[:, :-1] = state.codes[rows, :, record]
    return fresh


def _count(state: Chains, program: Program, rows: Ints, rise: Words, fall: Words) -> None:
    changed = np.flatnonzero((rise | fall).any(axis=1))
    if len(changed):
        number, rows = len(program.low), rows[changed]
        state.counts[rows] += unpack(rise[changed], number)
        state.counts[rows] -= unpack(fall[changed], number)
        _mark(state, program, rows)


def _mark(state: Chains, program: Program, rows: Ints) -> None:
    counts = state.counts[rows]
    state.full[rows] = _pack(counts >= program.high, program.words)
    state.bare[rows] = _pack(counts <= program.low, program.words)


def unpack(words: Words, number: int) -> NDArray[np.uint8]:
    """The first bits of each row of words, one byte each."""
    octets = np.ascontiguousarray(words, dtype="<u8").view(np.uint8)
    return np.unpackbits(octets, axis=1, count=number, bitorder="little")


def _pack(bits: Bools, words: int) -> Words:
    octets = np.zeros((len(bits), words * 8), dtype=np.uint8)
    packed = np.packbits(bits, axis=1, bitorder="little")
    octets[:, : packed.shape[1]] = packed
    return octets.view("<u8").astype(np.uint64)
