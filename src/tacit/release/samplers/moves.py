"""Markov moves over N databases of m records. For the sampler of databases.

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

Two more kinds, *cold* and *warm*, bring a chain into its slabs and are not reversible. They take a violated slab, a
record on its wrong side, and a new value on the right side. Cold ones never make the violation worse; warm ones may, by
one record, with probability 1/20.

A draw from `size` values uses 32 bits, so its probabilities are off by at most size / 2^32, relatively.

The file is long on purpose: what a compiled loop calls stands beside it, or its cache would outlive a change of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.model.factor import GRID
from tacit.release.samplers.compilation import compiled, inlined, shared_out, uncached
from tacit.release.samplers.slabs import (
    LONGEST,
    Chains,
    Codes,
    CountedQueries,
    Gauges,
    Ints,
    JointParts,
    Program,
    QueryParts,
    Words,
)

RESAMPLE, TOGGLE, SWAP, COLD, WARM = range(5)
CYCLE = (RESAMPLE, SWAP, RESAMPLE, TOGGLE, RESAMPLE, SWAP, RESAMPLE)  # a palindrome
_WINDOW = 32  # records that are searched for one on the wrong side
_WARM_CHANCE = np.uint64(int(2**64 * 0.05))
_GAMMA, _MIX_1, _MIX_2 = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
_0, _1, _27, _30, _31, _32, _63 = (np.uint64(n) for n in (0, 1, 27, 30, 31, 32, 63))
_LOWER = np.uint64(0xFFFFFFFF)


class Proposal(NamedTuple):
    """New values of a record, or of two that swap, and what would change with them. All steps use the same memory.

    here, there, old: a value for each attribute, and a place for padding's. rise, fall: the queries that gain or lose a
    record. sums: of the gauges, afterwards.
    """

    here: Ints
    there: Ints
    old: Ints
    members_here: Words
    members_there: Words
    rise: Words
    fall: Words
    sums: Ints


def chains(codes: Codes, program: Program) -> Chains:
    """The working state of these databases, which it takes over."""
    number, _, records = codes.shape
    words = program.masks.shape[1]
    members = np.zeros((number, records, words), dtype=np.uint64)
    full, bare = np.zeros((2, number, words), dtype=np.uint64)
    counts = np.zeros((number, len(program.counted.low)), dtype=np.int64)
    sums = np.zeros((number, len(program.gauges.low)), dtype=np.int64)
    state = Chains(codes, members, counts, full, bare, sums)
    if len(program.moving):
        _survey(tuple(state), plain(program))
    return state


def advance(
    state: Chains, program: Program, key: int, first: int, steps: int, kinds: Sequence[int] = CYCLE, stride: int = 0
) -> None:
    """Steps first, first + 1, ... of every chain, in place. A pure function of the state and these numbers.

    One chain is moved through all its steps before the next: a chain's state fits in the processor's nearest cache.
    Chains are independent, so they are shared out to threads, and the result does not depend on how many there are.
    """
    which, stride, given = np.array(kinds, dtype=np.int64), stride or program.stride, plain(program)
    shared_out(
        len(state.codes),
        lambda begin, end: _advance(tuple(state), given, np.uint64(key), begin, end, first, steps, which, stride),
    )


def plain(program: Program) -> tuple[Any, ...]:
    """The arrays of a program as tuples of tuples. `named` makes it again."""
    return tuple(tuple(part) if isinstance(part, tuple) else part for part in program)


def violation(state: Chains, program: Program) -> Ints:
    """How many records, in grid steps, are too few or too many in each chain, over all slabs."""
    counts, sums = (
        np.maximum(np.maximum(slabs.low - values, values - slabs.high), 0).sum(axis=1)
        for slabs, values in ((program.counted, state.counts), (program.gauges, state.sums))
    )
    return np.asarray(GRID * counts + sums)


@compiled
def redraw(codes: Codes, attribute: int, size: int, key: np.uint64) -> None:
    """All records' values of one attribute drawn anew, in place."""
    number, _, records = codes.shape
    for c in range(number):
        for i in range(records):
            codes[c, attribute, i] = _upper(_word(key, np.uint64((attribute * number + c) * records + i)), size)


@compiled
def _survey(chains_: tuple[Any, ...], program_: tuple[Any, ...]) -> None:
    """Fills in all that follows from the codes."""
    state, program = Chains(*chains_), named(program_)
    proposal = blank(program)
    for c in range(len(state.codes)):
        chain = chain_of(state, c)
        for i in range(chain.codes.shape[1]):
            _copy(chain, program, i, proposal.here)
            _memberships(proposal.here, proposal.members_here, program)
            for w in range(len(proposal.members_here)):
                chain.members[i, w] = proposal.members_here[w]
            for j in range(len(chain.counts)):
                chain.counts[j] += _is_member(chain, i, j)
            for g in range(len(chain.sums)):
                chain.sums[g] += _weight(g, proposal.here, program)
        for j in range(len(chain.counts)):
            _mark(chain, program, j)


@compiled
def _advance(
    chains_: tuple[Any, ...],
    program_: tuple[Any, ...],
    key: np.uint64,
    begin: int,
    end: int,
    first: int,
    steps: int,
    kinds: Ints,
    stride: int,
) -> None:
    """Steps of the chains from `begin` to `end`."""
    state, program = Chains(*chains_), named(program_)
    proposal, words = blank(program), np.zeros(stride, dtype=np.uint64)
    number = len(state.codes)
    for c in range(begin, end):
        chain = chain_of(state, c)
        for t in range(first, first + steps):
            kind = kinds[t % len(kinds)]
            for k in range(2 if kind == SWAP else stride):
                words[k] = _word(key, np.uint64((t * number + c) * stride + k))
            step(chain, program, kind, words, proposal)


@uncached
def named(program: tuple[Any, ...]) -> Program:
    moving, sizes, offsets, masks, counted, parts, joints, gauges = program
    return Program(
        moving=moving,
        sizes=sizes,
        offsets=offsets,
        masks=masks,
        counted=CountedQueries(*counted),
        parts=QueryParts(*parts),
        joints=JointParts(*joints),
        gauges=Gauges(*gauges),
    )


@uncached
def blank(program: Program) -> Proposal:
    attributes, words = len(program.sizes), program.masks.shape[1]
    return Proposal(
        here=np.zeros(attributes, dtype=np.int64),
        there=np.zeros(attributes, dtype=np.int64),
        old=np.zeros(attributes, dtype=np.int64),
        members_here=np.zeros(words, dtype=np.uint64),
        members_there=np.zeros(words, dtype=np.uint64),
        rise=np.zeros(words, dtype=np.uint64),
        fall=np.zeros(words, dtype=np.uint64),
        sums=np.zeros(len(program.gauges.low), dtype=np.int64),
    )


@uncached
def chain_of(state: Chains, c: int) -> Chains:
    return Chains(state.codes[c], state.members[c], state.counts[c], state.full[c], state.bare[c], state.sums[c])


@inlined
def step(chain: Chains, program: Program, kind: int, words: Words, proposal: Proposal) -> None:
    """One step of one kind, from `stride` random words (a swap needs two)."""
    records, width = chain.codes.shape[1], len(program.moving)
    record, other = _upper(words[0], records), -1
    if kind == RESAMPLE:
        _copy(chain, program, record, proposal.here)
        start, length = _lower(words[0], width), 1 + _upper(words[1], min(LONGEST, width))
        for k in range(length):
            attribute = program.moving[start + k if start + k < width else start + k - width]
            proposal.here[attribute] = _upper(words[2 + k], program.sizes[attribute])
    elif kind == TOGGLE:
        if len(program.counted.low) == 0:
            return
        query = _lower(words[0], len(program.counted.low))
        inside = _is_member(chain, record, query)
        if not inside and words[1] >= program.counted.chance[query]:
            return
        _redraw_scope(chain, program, record, query, not inside, words, proposal.here)
    elif kind == SWAP:
        other = _lower(words[0], records)
        if width < 2 or other == record:
            return
        _swap(chain, program, record, other, words[1], proposal)
    else:
        record = _direct(chain, program, words, proposal.here)
        if record < 0:
            return
    by_two = _compare(chain, program, record, other, proposal)
    if kind >= COLD:
        _weigh(chain, program, record, other, proposal)
        worse = _worse(chain, program, proposal)
        fits = worse <= 0 or (kind == WARM and worse <= GRID and words[1] < _WARM_CHANCE)
    else:
        fits = not by_two and _counts_fit(chain, proposal)
        if fits and len(chain.sums):
            _weigh(chain, program, record, other, proposal)
            fits = _sums_fit(chain, program, proposal)
    if fits:
        _accept(chain, program, record, other, proposal)


@inlined
def _swap(chain: Chains, program: Program, record: int, other: int, word: np.uint64, proposal: Proposal) -> None:
    """Two records that exchange a cyclic block of attributes."""
    width = len(program.moving)
    start, length = _upper(word, width), 1 + _lower(word, width - 1)
    for k in range(width):
        attribute = program.moving[k]
        mine, theirs = chain.codes[attribute, record], chain.codes[attribute, other]
        place = k - start if k >= start else k - start + width
        proposal.here[attribute] = theirs if place < length else mine
        proposal.there[attribute] = mine if place < length else theirs


@inlined
def _direct(chain: Chains, program: Program, words: Words, values: Ints) -> Any:
    """A record on the wrong side of a violated slab, and new values for it; -1 where none is found."""
    queries, records, slabs = len(chain.counts), chain.codes.shape[1], len(chain.counts) + len(chain.sums)
    violated = 0
    for slab in range(slabs):
        violated += _beyond(chain, program, slab) > 0
    if violated == 0:
        return -1
    rank, query = _upper(words[0], violated), 0
    for slab in range(slabs):
        if _beyond(chain, program, slab) > 0:
            if rank == 0:
                query = slab
            rank -= 1
    into = query < queries and chain.counts[query] < program.counted.low[query]
    start = _lower(words[0], records)
    for k in range(min(_WINDOW, records)):
        record = (start + k) % records
        if query >= queries or _is_member(chain, record, query) != into:
            _redraw_scope(chain, program, record, query, into, words, values)
            return record
    return -1


@inlined
def _redraw_scope(
    chain: Chains, program: Program, record: int, query: int, into: bool, words: Words, values: Ints
) -> None:
    """A record with the query's scope drawn anew: uniformly inside the query, or (not `into`) from all its cells."""
    _copy(chain, program, record, values)
    counted, parts = program.counted, program.parts
    if into:
        for k in range(counted.part_count[query]):
            part = counted.parts[query, k]
            cell = parts.cells[parts.first_cell[part] + _upper(words[2 + k], parts.cell_count[part])]
            for slot in range(parts.attributes.shape[1]):
                attribute = parts.attributes[part, slot]
                values[attribute] = cell // parts.strides[part, slot] % program.sizes[attribute]
    else:
        for k in range(counted.scope_length[query]):
            attribute = counted.scope[query, k]
            values[attribute] = _upper(words[2 + k], program.sizes[attribute])


@inlined
def _compare(chain: Chains, program: Program, record: int, other: int, proposal: Proposal) -> bool:
    """The new memberships, and which counts rise and fall; whether one would do so by two."""
    _memberships(proposal.here, proposal.members_here, program)
    for w in range(len(proposal.rise)):
        old, new = chain.members[record, w], proposal.members_here[w]
        proposal.rise[w], proposal.fall[w] = new & ~old, old & ~new
    if other < 0:
        return False
    by_two = _0
    _memberships(proposal.there, proposal.members_there, program)
    for w in range(len(proposal.rise)):
        old, new = chain.members[other, w], proposal.members_there[w]
        up, down = new & ~old, old & ~new
        by_two |= (proposal.rise[w] & up) | (proposal.fall[w] & down)
        ups, downs = proposal.rise[w] | up, proposal.fall[w] | down
        proposal.rise[w], proposal.fall[w] = ups & ~downs, downs & ~ups
    return bool(by_two != _0)


@inlined
def _weigh(chain: Chains, program: Program, record: int, other: int, proposal: Proposal) -> None:
    """The gauges' sums with the proposal in place."""
    for g in range(len(chain.sums)):
        proposal.sums[g] = chain.sums[g] + _weight(g, proposal.here, program)
    _lighten(chain, program, record, proposal)
    if other >= 0:
        for g in range(len(chain.sums)):
            proposal.sums[g] += _weight(g, proposal.there, program)
        _lighten(chain, program, other, proposal)


@inlined
def _lighten(chain: Chains, program: Program, record: int, proposal: Proposal) -> None:
    _copy(chain, program, record, proposal.old)
    for g in range(len(chain.sums)):
        proposal.sums[g] -= _weight(g, proposal.old, program)


@inlined
def _counts_fit(chain: Chains, proposal: Proposal) -> bool:
    """Whether no count rises that is full, and none falls that is bare."""
    bad = _0
    for w in range(len(proposal.rise)):
        bad |= (proposal.rise[w] & chain.full[w]) | (proposal.fall[w] & chain.bare[w])
    return bool(bad == _0)


@inlined
def _sums_fit(chain: Chains, program: Program, proposal: Proposal) -> bool:
    """Whether no gauge is further outside its slab than before."""
    gauges = program.gauges
    for g in range(len(chain.sums)):
        now = _outside(proposal.sums[g], gauges.low[g], gauges.high[g])
        if now > _outside(chain.sums[g], gauges.low[g], gauges.high[g]):
            return False
    return True


@inlined
def _worse(chain: Chains, program: Program, proposal: Proposal) -> int:
    """By how much the proposal makes the violation larger, in grid steps."""
    change = 0
    for j in range(len(chain.counts)):
        count, bit = chain.counts[j], _1 << (np.uint64(j) & _63)
        count += (proposal.rise[j // 64] & bit) != _0
        count -= (proposal.fall[j // 64] & bit) != _0
        change += GRID * _outside(count, program.counted.low[j], program.counted.high[j]) - _beyond(chain, program, j)
    for g in range(len(chain.sums)):
        change += _outside(proposal.sums[g], program.gauges.low[g], program.gauges.high[g])
        change -= _beyond(chain, program, len(chain.counts) + g)
    return change


@inlined
def _accept(chain: Chains, program: Program, record: int, other: int, proposal: Proposal) -> None:
    """Puts the proposal in place, and brings up to date what follows from it."""
    for k in range(len(program.moving)):
        attribute = program.moving[k]
        chain.codes[attribute, record] = proposal.here[attribute]
        if other >= 0:
            chain.codes[attribute, other] = proposal.there[attribute]
    for g in range(len(chain.sums)):
        chain.sums[g] = proposal.sums[g]
    for w in range(len(proposal.rise)):
        chain.members[record, w] = proposal.members_here[w]
        if other >= 0:
            chain.members[other, w] = proposal.members_there[w]
        changed, j = proposal.rise[w] | proposal.fall[w], w * 64
        while changed:
            if changed & _1:
                chain.counts[j] += 1 if (proposal.rise[w] >> (np.uint64(j) & _63)) & _1 else -1
                _mark(chain, program, j)
            changed >>= _1
            j += 1


@inlined
def _mark(chain: Chains, program: Program, j: int) -> None:
    """Whether the count of query j may rise, and whether it may fall."""
    w, bit = j // 64, _1 << (np.uint64(j) & _63)
    chain.full[w] = chain.full[w] | bit if chain.counts[j] >= program.counted.high[j] else chain.full[w] & ~bit
    chain.bare[w] = chain.bare[w] | bit if chain.counts[j] <= program.counted.low[j] else chain.bare[w] & ~bit


@inlined
def _memberships(values: Ints, members: Words, program: Program) -> None:
    """The queries that hold a record with these values: the AND of its values' masks, and a look-up of joint parts."""
    row = program.offsets[program.moving[0]] + values[program.moving[0]]
    for w in range(len(members)):
        members[w] = program.masks[row, w]
    for k in range(1, len(program.moving)):
        row = program.offsets[program.moving[k]] + values[program.moving[k]]
        for w in range(len(members)):
            members[w] &= program.masks[row, w]
    joints, parts = program.joints, program.parts
    for index in range(len(joints.part)):
        query = joints.query[index]
        bit = _1 << (np.uint64(query) & _63)
        if members[query // 64] & bit:
            entry = joints.first_entry[index] + _place(values, parts.attributes, parts.strides, joints.part[index])
            if joints.entries[entry] == 0:
                members[query // 64] &= ~bit


@inlined
def _weight(g: int, values: Ints, program: Program) -> int:
    """A gauge's weight of a record, rounded as `tacit.model.query.multiply` does."""
    gauges = program.gauges
    result, on_grid = 1, False
    for part in range(gauges.start[g], gauges.start[g + 1]):
        result *= gauges.weights[gauges.first[part] + _place(values, gauges.attributes, gauges.strides, part)]
        if on_grid and gauges.fine[part]:
            result = (result + GRID // 2) // GRID
        on_grid = on_grid or gauges.fine[part] > 0
    return result


@inlined
def _place(values: Ints, attributes: Ints, strides: Ints, part: int) -> int:
    """Where a record stands in a part's table."""
    place = 0
    for slot in range(attributes.shape[1]):
        if attributes[part, slot] < len(values) - 1:
            place += values[attributes[part, slot]] * strides[part, slot]
    return place


@inlined
def _beyond(chain: Chains, program: Program, slab: int) -> int:
    """How far a chain is outside one slab, in grid steps; the gauges follow the counted queries."""
    if slab < len(chain.counts):
        return GRID * _outside(chain.counts[slab], program.counted.low[slab], program.counted.high[slab])
    g = slab - len(chain.counts)
    return _outside(chain.sums[g], program.gauges.low[g], program.gauges.high[g])


@inlined
def _outside(value: int, low: int, high: int) -> int:
    return max(low - value, value - high, 0)


@inlined
def _is_member(chain: Chains, record: int, query: int) -> bool:
    return bool((chain.members[record, query // 64] >> (np.uint64(query) & _63)) & _1)


@inlined
def _copy(chain: Chains, program: Program, record: int, values: Ints) -> None:
    for k in range(len(program.moving)):
        values[program.moving[k]] = chain.codes[program.moving[k], record]


@inlined
def _word(key: np.uint64, counter: np.uint64) -> np.uint64:
    """SplitMix64 (Steele, Lea & Flood 2014) at any place of its sequence."""
    z = key + (counter + _1) * _GAMMA
    z = (z ^ (z >> _30)) * _MIX_1
    z = (z ^ (z >> _27)) * _MIX_2
    return z ^ (z >> _31)


@inlined
def _upper(word: np.uint64, number: int) -> Any:
    """A number below `number` from the upper half of a word."""
    return np.int64(((word >> _32) * np.uint64(number)) >> _32)


@inlined
def _lower(word: np.uint64, number: int) -> Any:
    return np.int64(((word & _LOWER) * np.uint64(number)) >> _32)
