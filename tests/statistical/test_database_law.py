"""The databases' law against exact enumeration: first the moves' transition matrices, then the sampler as it is used.

Exact: a step is a function of a state and of random words, so running it on all states with all words that matter gives
integer transition counts. They must be symmetric and must not leave the slabs: then the uniform law on the sequences
within the slabs is stationary, exactly. Statistical: many chains, each a sequence of few records over a tiny domain,
against the uniform law on all consistent sequences, by a G-test with a false-alarm rate of 1e-9. Controls, which must
be rejected: a toggle without its factor |in|/T, slabs that are one record too wide, and the law without a block.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numba
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from tacit.model.attribute import category
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.samplers import databases as database_sampler
from tacit.release.samplers.databases import Ensemble
from tacit.release.samplers.moves import CYCLE, RESAMPLE, SWAP, TOGGLE, blank, chain_of, chains, step
from tacit.release.samplers.slabs import LONGEST, Chains, Program, program, slab

FALSE_ALARM = 1e-9
CHAINS = 12_000


def domain_of(*sizes: int) -> Domain:
    return Domain({f"a{i}": category([f"v{v}" for v in range(size)]) for i, size in enumerate(sizes)})


SIX, EIGHT = domain_of(2, 3), domain_of(2, 2, 2)
RIGHT = Query.among(SIX, "a0", [0])
CELL = RIGHT & Query.among(SIX, "a1", [2])
EARLY = Query.among(SIX, "a1", [0, 1])
DIAGONAL = (RIGHT & Query.among(SIX, "a1", [0])) | (~RIGHT & Query.among(SIX, "a1", [1]))  # one joint factor
ODD = Query.product(
    [replace(Query.weighted(EIGHT, ["a0", "a1"], np.eye(2)).factors[0])], complement=False
)  # a0 = a1: a swap may move its count by two
CORNER = Query.all(Query.among(EIGHT, name, [1]) for name in EIGHT.names)


WEIGHTS = np.array([[0.0, 0.5, 0.25], [1.0, 0.75, 0.5]])
MEAN = Query.weighted(SIX, SIX.names, WEIGHTS)


@dataclass(frozen=True)
class Case:
    domain: Domain
    records: int
    slabs: tuple[tuple[Query, float, float], ...]

    def program(self, wider: int = 0) -> Program:
        made = [slab(query, centre, width, self.records) for query, centre, width in self.slabs]
        made = [replace(one, high=one.high + wider) for one in made]
        return program(self.domain, made, self.domain.names)

    def sequences(self) -> NDArray[np.uint8]:
        """All databases [states, A, m]."""
        cells = list(itertools.product(*map(range, self.domain.shape)))
        every = itertools.product(cells, repeat=self.records)
        return np.array([np.transpose(one) for one in every], dtype=np.uint8)

    def inside(self) -> NDArray[np.bool_]:
        """Which of them the slabs allow, from the queries' own tables."""
        allowed = np.ones(len(self.sequences()), dtype=bool)
        for query, centre, width in self.slabs:
            table = query.table(self.domain.names, self.domain.shape)
            sums = table[tuple(self.sequences().transpose(1, 0, 2))].sum(axis=1)
            most = self.records * query.unit
            low = min(max(np.floor(most * (centre - width) + 1e-9), 0), most)
            high = min(max(np.ceil(most * (centre + width) - 1e-9), 0), most)
            allowed &= (low <= sums) & (sums <= high)
        return allowed


CASES = {
    "no slab": Case(SIX, 2, ()),
    "one": Case(SIX, 3, ((CELL, 1 / 3, 0.1),)),
    "complement": Case(SIX, 2, ((~CELL, 0.5, 0.1),)),
    "overlapping": Case(SIX, 3, ((CELL, 1 / 3, 0.0), (EARLY, 0.5, 0.17), (RIGHT, 2 / 3, 0.0))),
    "joint": Case(SIX, 3, ((DIAGONAL, 2 / 3, 0.0), (RIGHT, 1 / 3, 1 / 3))),
    "joint swap": Case(EIGHT, 2, ((ODD, 0.5, 0.5), (CORNER, 0.25, 0.3))),
    "weighted": Case(SIX, 3, ((MEAN, 0.5, 0.13),)),
    "weighted and counted": Case(SIX, 3, ((CELL, 1 / 3, 0.34), (MEAN & EARLY, 0.25, 0.2), (~MEAN, 0.5, 0.13))),
}


def word(upper: tuple[int, int], lower: tuple[int, int] = (0, 1)) -> int:
    """A word whose halves draw k of n, for (k, n)."""
    high, low = (((2 * k + 1) << 32) // (2 * n) for k, n in (upper, lower))
    return (high << 32) | low


def all_words(case: Case, made: Program, kind: int) -> NDArray[np.uint64]:
    """Words that draw every outcome of a step, each as often as its probability says."""
    m, width, fine = case.records, len(case.domain), np.lcm.reduce(case.domain.shape)
    drawn = [word((k, int(fine))) for k in range(fine)]
    firsts: Sequence[int]
    if kind == SWAP:
        firsts = [word((i, m), (k, m)) for i in range(m) for k in range(m)]
        seconds = [word((s, width), (k, width - 1)) for s in range(width) for k in range(width - 1)]
        return np.array(list(itertools.product(firsts, seconds)), dtype=np.uint64)
    if kind == RESAMPLE:
        firsts = [word((i, m), (s, width)) for i in range(m) for s in range(width)]
        seconds = [word((k, min(LONGEST, width))) for k in range(min(LONGEST, width))]
    else:
        h, cells = len(made.counted.low), case.domain.size
        firsts = [word((i, m), (j, h)) for i in range(m) for j in range(h)]
        seconds = [((2 * k + 1) << 64) // (2 * cells) for k in range(cells)]
    rest = itertools.repeat(drawn, width)
    found = np.array(list(itertools.product(firsts, seconds, *rest)), dtype=np.uint64)
    padding = np.zeros((len(found), made.stride - found.shape[1]), dtype=np.uint64)
    return np.concatenate([found, padding], axis=1)


def transitions(case: Case, made: Program, kind: int) -> NDArray[np.int64]:
    """How many of the equally likely draws take each state to each other one."""
    states, words = case.sequences(), all_words(case, made, kind)
    counts = np.zeros((len(states), len(states)), dtype=np.int64)
    for s, one in enumerate(states):
        state = chains(np.repeat(one[None], len(words), axis=0), made)
        step_each(state, made, kind, words)
        counts[s] = np.bincount(number_of(state.codes, case.domain), minlength=len(states))
    return counts


@numba.njit  # not cached: a cache of this file would not notice that the step has changed
def step_each(state: Chains, made: Program, kind: int, words: NDArray[np.uint64]) -> None:
    """The same step of each chain, with its own words."""
    proposal = blank(made)
    for c in range(len(words)):
        step(chain_of(state, c), made, kind, words[c], proposal)


def without_its_ratio(made: Program) -> Program:
    """A toggle that goes into its query as often as out of it."""
    return made._replace(counted=made.counted._replace(chance=np.full_like(made.counted.chance, 2**64 - 1)))


def number_of(codes: NDArray[np.uint8], domain: Domain) -> NDArray[np.int64]:
    """The place of each database in the list of all sequences."""
    cells = np.ravel_multi_index(tuple(codes.transpose(1, 0, 2)), domain.shape)
    return np.ravel_multi_index(tuple(cells.T), (domain.size,) * codes.shape[2])


MOVES = [  # without a 0/1 query there is nothing to toggle
    (name, kind)
    for name, case in CASES.items()
    for kind in (RESAMPLE, TOGGLE, SWAP)
    if kind != TOGGLE or len(case.program().counted.low)
]


@pytest.mark.parametrize(("name", "kind"), MOVES)
def test_a_move_is_symmetric_and_stays_within_the_slabs(name: str, kind: int) -> None:
    case = CASES[name]
    counts, inside = transitions(case, case.program(), kind), case.inside()
    assert inside.any()
    assert (counts[inside][:, inside] == counts[inside][:, inside].T).all()  # integers: exactly symmetric
    assert not counts[inside][:, ~inside].any()


@pytest.mark.parametrize("name", CASES)
def test_the_moves_together_reach_every_consistent_database(name: str) -> None:
    case = CASES[name]
    made, inside = case.program(), case.inside()
    kinds = [kind for kind in set(CYCLE) if kind != TOGGLE or len(made.counted.low)]
    linked = sum(transitions(case, made, kind) for kind in kinds)[inside][:, inside] > 0
    reached = np.zeros(len(linked), dtype=bool)
    reached[0] = True
    for _ in range(len(linked)):
        reached |= linked[reached].any(axis=0)
    assert reached.all()
    assert linked.diagonal().any()  # not periodic


def test_the_schedule_is_a_palindrome() -> None:
    assert CYCLE[::-1] == CYCLE  # so that a run of whole schedules is reversible, as blocks need


def test_a_toggle_without_its_ratio_is_not_symmetric() -> None:
    # Must fail: otherwise the check accepts anything.
    case = CASES["one"]
    made, inside = case.program(), case.inside()
    always = without_its_ratio(made)
    counts = transitions(case, always, TOGGLE)[inside][:, inside]
    assert (counts != counts.T).any()


def test_slabs_that_are_too_wide_are_left() -> None:
    case = CASES["overlapping"]
    inside = case.inside()
    assert transitions(case, case.program(wider=1), RESAMPLE)[inside][:, ~inside].any()


def test_the_share_of_a_query_is_exact() -> None:
    assert Fraction(int(CASES["one"].program().counted.chance[0]), 2**64) - Fraction(1, 6) <= Fraction(1, 2**64)


# The sampler as it is used: repaired, swept, and compared with all consistent sequences.


def p_value(ensemble: Ensemble, inside: NDArray[np.bool_]) -> float:
    """Of a G-test that the databases are uniform on these sequences; 0 if any is elsewhere."""
    seen = np.bincount(number_of(ensemble.codes, ensemble.domain), minlength=len(inside))
    if seen[~inside].any():
        return 0.0
    expected = len(ensemble) / np.count_nonzero(inside)
    assert expected > 20
    counts = seen[inside].astype(float)
    statistic = 2 * (counts[counts > 0] * np.log(counts[counts > 0] / expected)).sum()
    return float(chi2.sf(statistic, np.count_nonzero(inside) - 1))


def sampled(case: Case, sweeps: int = 30, number: int = CHAINS) -> Ensemble:
    ensemble = Ensemble.start(case.domain, databases=number, records=case.records, seed=11)
    for seed, (query, centre, width) in enumerate(case.slabs):
        ensemble = ensemble.restrict(query, centre, width, seed=seed, sweeps=sweeps)
    return ensemble


@pytest.mark.parametrize("name", CASES)
def test_the_databases_are_uniform_on_the_consistent_sequences(name: str) -> None:
    assert p_value(sampled(CASES[name]), CASES[name].inside()) > FALSE_ALARM


def test_a_sampler_whose_toggle_lacks_its_ratio_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*arguments: object) -> Program:
        made = program(*arguments)  # type: ignore[arg-type]
        return without_its_ratio(made)

    monkeypatch.setattr(database_sampler, "program", broken)
    assert p_value(sampled(CASES["one"]), CASES["one"].inside()) < FALSE_ALARM


def test_a_sampler_with_slabs_that_are_too_wide_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_sampler, "slab", lambda q, c, w, m: slab(q, c, w + 1 / m, m))
    assert p_value(sampled(CASES["one"]), CASES["one"].inside()) < FALSE_ALARM


@pytest.mark.parametrize("name", ["no slab", "one"])
def test_databases_within_a_block_are_uniform(name: str) -> None:
    case = CASES[name]
    ensemble = sampled(case).restrict(lambda trial: trial.values(MEAN), 0.5, 0.13, seed=5, sweeps=60)
    both = replace(case, slabs=(*case.slabs, (MEAN, 0.5, 0.13)))
    assert 2 < np.count_nonzero(both.inside()) < np.count_nonzero(case.inside())
    assert p_value(ensemble, both.inside()) > FALSE_ALARM
    assert p_value(ensemble, case.inside()) < FALSE_ALARM  # the control: the law without the block


def test_databases_within_any_statistic_are_uniform() -> None:
    case = CASES["one"]

    def distinct(trial: Ensemble) -> NDArray[np.float64]:
        return np.array([len(set(row)) for row in trial.column("a1").tolist()], dtype=np.float64)

    ensemble = sampled(case, number=5_000).restrict(distinct, 2.0, 0.5, seed=5, sweeps=40)
    values = np.array([len(set(row[1])) for row in case.sequences().tolist()])
    inside = case.inside() & (values == 2)
    assert p_value(ensemble, inside) > FALSE_ALARM
    assert p_value(ensemble.stir(seed=9, sweeps=7), inside) > FALSE_ALARM
