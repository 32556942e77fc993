"""The sampler of consistent databases: feasibility, determinism, the same bits compiled and plain, values, tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType

import numba
import numpy as np
import pytest
from uncompiled import uncompiled

from tacit.errors import InvalidQuery
from tacit.model.attribute import category, integer
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.samplers import databases as database_sampler
from tacit.release.samplers import moves as database_moves
from tacit.release.samplers.compilation import compiled
from tacit.release.samplers.databases import Ensemble
from tacit.release.samplers.diagnostics import Diagnostics, diagnose, probes
from tacit.release.samplers.moves import COLD, WARM, chains, violation
from tacit.release.samplers.slabs import program, slab

LARGE = Domain({f"a{i}": category([f"v{v}" for v in range(10)]) for i in range(12)})  # 10^12 cells
MIXED = Domain({"sex": category(["F", "M"]), "zip": integer(0, 999), "year": integer(1900, 1909)})


def conjunctions(domain: Domain, number: int, seed: int) -> list[Query]:
    generator = np.random.default_rng(seed)
    found: dict[str, Query] = {}
    while len(found) < number:
        names = generator.permutation(domain.names)[: generator.integers(1, 4)]
        values = [int(generator.integers(domain[name].size)) for name in names]
        query = Query.all(Query.among(domain, n, [v]) for n, v in zip(names, values, strict=True)).core
        found[query.key] = query
    return list(found.values())


def answers(domain: Domain, number: int) -> list[tuple[Query, float]]:
    """Conjunctions with the answers of one hidden database: it exists, so the slabs are consistent."""
    hidden = Ensemble.start(domain, databases=1, records=300, seed=99)
    skewed = replace(hidden, codes=(hidden.codes // 2).astype(hidden.codes.dtype))
    return [(query, float(skewed.values(query)[0])) for query in conjunctions(domain, number, 5)]


def restricted(domain: Domain, ensemble: Ensemble, number: int, *, sweeps: int = 4) -> Ensemble:
    for k, (query, answer) in enumerate(answers(domain, number)):
        ensemble = ensemble.restrict(query, answer, 0.01, seed=k, sweeps=sweeps)
    return ensemble


def test_all_databases_come_inside_and_nothing_lists_the_domain() -> None:
    ensemble = Ensemble.start(LARGE, databases=30, records=300, seed=1)
    slabs = tuple(slab(query, answer, 0.01, 300) for query, answer in answers(LARGE, 66))
    ensemble = replace(ensemble, slabs=slabs).stir(seed=3, sweeps=4)  # all at once: a cold start
    found = ensemble.diagnostics
    assert found is not None
    assert found.infeasible == 0
    for one in ensemble.slabs:  # 66 slabs: two words of bits
        values = ensemble.values(one.query) * 300
        assert one.low <= values.min()
        assert values.max() <= one.high


def test_the_slabs_change_the_answers() -> None:
    # The control of the test before: unrestricted databases are outside.
    ensemble = Ensemble.start(LARGE, databases=30, records=300, seed=1)
    after = restricted(LARGE, ensemble, 10)
    assert any((ensemble.values(one.query) * 300 < one.low).any() for one in after.slabs)


def test_an_ensemble_is_a_function_of_its_arguments() -> None:
    def run(seed: int) -> Ensemble:
        ensemble = Ensemble.start(MIXED, databases=20, records=50, seed=seed)
        return restricted(MIXED, ensemble, 3).stir(seed=7, sweeps=2)

    first, second, third = run(1), run(1), run(2)
    assert (first.codes == second.codes).all()
    assert first.diagnostics == second.diagnostics
    assert (first.codes != third.codes).any()


def test_moves_leave_the_ensemble_that_they_start_from_alone() -> None:
    ensemble = Ensemble.start(MIXED, databases=20, records=50, seed=1)
    before = ensemble.codes.copy()
    ensemble.restrict(Query.among(MIXED, "sex", [0]), 0.9, 0.01, seed=1)
    assert (ensemble.codes == before).all()
    with pytest.raises(ValueError, match="read-only"):
        ensemble.codes[0, 0, 0] = 1


def joint_queries() -> list[Query]:
    woman, early = Query.among(MIXED, "sex", [0]), Query.among(MIXED, "year", [0, 1, 2])
    zips = [Query.among(MIXED, "zip", range(k, k + 300)) for k in (0, 200, 500)]
    return [woman, (woman & zips[0]).core, (zips[1] | early).core, ((woman & zips[2]) | (~woman & zips[0])).core]


@pytest.fixture(scope="module")
def plain() -> ModuleType:
    return uncompiled(database_moves, "_advance", "_survey", "step", "redraw")


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("kind", ["conjunctions", "joint", "weighted"])
def test_compiled_moves_give_the_same_bits_as_plain_python(kind: str, plain: ModuleType) -> None:
    domain = LARGE if kind == "conjunctions" else MIXED
    queries = conjunctions(domain, 70, 3) if kind == "conjunctions" else joint_queries()
    if kind == "weighted":
        queries = [*queries[:2], Query.weighted(MIXED, ["year"], np.linspace(0, 1, 10))]
    ensemble = Ensemble.start(domain, databases=12, records=60, seed=4)
    slabs = [slab(query, float(ensemble.values(query).mean()), 0.06, 60) for query in queries]
    made = program(domain, slabs)
    states = []
    for moves in (plain, database_moves):
        state = moves.chains(ensemble.codes.copy(), made)
        moves.advance(state, made, 54321, 0, 40, (COLD, WARM), made.stride + 1)  # those that are outside come nearer
        for first in (0, 133):  # in two pieces: a step's words depend on its number only
            moves.advance(state, made, 12345, first, 133)
        states.append(state)
    for name, one, other in zip(states[0]._fields, *states, strict=True):
        assert (one == other).all(), name
    anew = chains(states[0].codes.copy(), made)  # what is kept up to date is what follows from the codes
    for name, one, other in zip(anew._fields, states[0], anew, strict=True):
        assert (one == other).all(), name
    assert (states[0].codes != ensemble.codes).any()
    assert (violation(chains(ensemble.codes.copy(), made), made) > 0).any()


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_compiled_and_plain_moves_give_the_same_ensemble(plain: ModuleType) -> None:
    def run() -> Ensemble:
        ensemble = Ensemble.start(MIXED, databases=8, records=40, seed=4)
        ensemble = restricted(MIXED, ensemble, 2, sweeps=2)
        weighted = Query.weighted(MIXED, ["year"], np.linspace(0, 1, 10))
        return ensemble.restrict(weighted, 0.55, 0.03, seed=3, sweeps=2)

    compiled_run = run()
    with pytest.MonkeyPatch.context() as patch:
        for name in ("advance", "chains", "redraw"):
            patch.setattr(database_sampler, name, getattr(plain, name))
        plain_run = run()
    assert (compiled_run.codes == plain_run.codes).all()
    assert compiled_run.diagnostics == plain_run.diagnostics


def test_compiled_moves_do_without_a_place_for_their_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(function: object, *, cache: bool = False, **options: object) -> object:
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return function

    monkeypatch.setattr(numba, "njit", read_only)
    assert compiled(len) is len


def test_caches_keep_no_record_by_its_name() -> None:
    # numba reads the types of a cached loop before it asks whether its file has changed: a record that was renamed
    # since would not be found, and the loop fail.
    Ensemble.start(MIXED, databases=2, records=10, seed=1).restrict(Query.among(MIXED, "sex", [0]), 0.5, 0.3, seed=1)
    for loop in (database_moves._advance, database_moves._survey, database_moves.redraw):
        assert loop.signatures  # type: ignore[attr-defined]
        assert not any(isinstance(kind, numba.types.NamedTuple) for one in loop.signatures for kind in parts_of(one))  # type: ignore[attr-defined]


def parts_of(kind: object) -> Iterator[object]:
    """A type of numba, and all that it is made of."""
    yield kind
    for part in kind if isinstance(kind, tuple | numba.types.BaseTuple) else ():
        yield from parts_of(part)


def test_another_key_gives_other_bits() -> None:
    # The control of the two tests before.
    ensemble = Ensemble.start(MIXED, databases=16, records=60, seed=4)
    made = program(MIXED, [slab(Query.among(MIXED, "sex", [0]), 0.5, 0.2, 60)])
    states = [chains(ensemble.codes.copy(), made) for _ in range(2)]
    for key, state in enumerate(states):
        database_moves.advance(state, made, key, 0, 20)
    assert (states[0].codes != states[1].codes).any()


def test_values_are_exact_fractions_of_the_records() -> None:
    ensemble = Ensemble.start(MIXED, databases=7, records=40, seed=2)
    scattered = Query.among(MIXED, "zip", range(0, 1000, 3))  # too many runs for comparisons
    weighted = Query.weighted(MIXED, ["sex", "year"], np.linspace(0, 1, 20).reshape(2, 10))
    tilted = Query.weighted(MIXED, ["zip"], np.linspace(0, 1, 1000))
    several = [*joint_queries(), ~joint_queries()[1], scattered, weighted, ~weighted, weighted & tilted]
    for query in [*several, Query.constant(everyone=True), Query.constant(everyone=False)]:
        table = query.table(query.scope, [MIXED[name].size for name in query.scope])
        cells = tuple(ensemble.column(name) for name in query.scope)
        expected = np.broadcast_to(table[cells], (7, 40)).sum(axis=1) / (40 * query.unit)
        assert (ensemble.values(query) == expected).all()
    assert (ensemble.values_many(several) == np.array([ensemble.values(query) for query in several])).all()
    assert ensemble.values_many([]).shape == (0, 7)


def test_tables_and_columns() -> None:
    ensemble = Ensemble.start(MIXED, databases=7, records=40, seed=2)
    tables = ensemble.tables(["year", "sex"])
    assert tables.shape == (7, 10, 2)
    assert (
        tables[:, :3, 0].sum(axis=1) == 40 * ensemble.values(joint_queries()[0] & Query.among(MIXED, "year", [0, 1, 2]))
    ).all()
    years = ensemble.column("year").ravel()
    assert (np.bincount(years, minlength=10) == tables.sum(axis=(0, 2))).all()
    with pytest.raises(InvalidQuery, match="cells allowed"):
        Ensemble.start(LARGE, databases=1, records=1, seed=1).tables(LARGE.names)


def test_contradictory_answers_are_flagged_and_keep_the_least_violation() -> None:
    ensemble = Ensemble.start(MIXED, databases=10, records=50, seed=1)
    women = Query.among(MIXED, "sex", [0])
    ensemble = ensemble.restrict(women, 0.2, 0.02, seed=1, sweeps=2)
    ensemble = ensemble.restrict(women, 0.6, 0.02, seed=2, sweeps=2)
    assert ensemble.diagnostics is not None
    assert ensemble.diagnostics.infeasible == len(ensemble)
    assert not ensemble.diagnostics.mixed
    values = ensemble.values(women)
    assert values.min() >= 0.18 - 1e-9  # anything between the two slabs violates them least
    assert values.max() <= 0.62 + 1e-9


def test_slabs_are_rounded_outwards_into_the_possible_counts() -> None:
    first = Query.among(MIXED, "year", [0])  # its own core
    cases = {(0.3, 0.0, 10): (3, 3), (0.33, 0.0, 10): (3, 4), (1.4, 0.1, 10): (10, 10), (0.5, 2.0, 10): (0, 10)}
    for (centre, width, m), (low, high) in cases.items():
        one, other = slab(first, centre, width, m), slab(~first, 1 - centre, width, m)
        assert (one.low, one.high, one.query) == (low, high, first)
        assert (other.low, other.high, other.query) == (low, high, first)


def test_attributes_under_no_answer_are_drawn_anew() -> None:
    ensemble = Ensemble.start(LARGE, databases=20, records=100, seed=1)
    after = ensemble.restrict(Query.among(LARGE, "a3", [0]), 0.3, 0.02, seed=1)
    assert abs((after.column("a0") == ensemble.column("a0")).mean() - 0.1) < 0.03  # sd 0.007
    assert abs((after.column("a0") == 4).mean() - 0.1) < 0.03


def test_bad_arguments_are_refused() -> None:
    ensemble = Ensemble.start(MIXED, databases=5, records=10, seed=1)
    women = Query.among(MIXED, "sex", [0])
    with pytest.raises(InvalidQuery, match="another domain"):
        ensemble.restrict(Query.among(LARGE, "a0", [0]), 0.5, 0.1, seed=1)
    with pytest.raises(InvalidQuery, match="width"):
        ensemble.restrict(women, 0.5, -0.1, seed=1)
    with pytest.raises(InvalidQuery, match="centre"):
        ensemble.restrict(women, float("nan"), 0.1, seed=1)
    with pytest.raises(InvalidQuery, match="every row the same"):
        ensemble.restrict(Query.constant(everyone=True), 0.5, 0.1, seed=1)
    with pytest.raises(InvalidQuery, match="one finite number"):
        ensemble.restrict(lambda trial: np.zeros(3), 0.5, 0.1, seed=1)
    with pytest.raises(InvalidQuery, match="at least 1"):
        Ensemble.start(MIXED, databases=0, records=10, seed=1)


def test_diagnostics_tell_a_frozen_and_a_drifting_ensemble_from_a_mixed_one() -> None:
    generator = np.random.default_rng(1)
    halfway, final = generator.normal(size=(2, 40, 200))
    assert diagnose(halfway, final, 0).mixed
    assert not diagnose(halfway, halfway, 0).mixed  # remembers everything
    assert not diagnose(halfway, final + 0.5, 0).mixed  # drifts
    assert not diagnose(halfway, final, 1).mixed  # one outside
    assert isinstance(diagnose(halfway[:0], final[:0], 0), Diagnostics)


def test_probes_are_fixed_and_about_the_given_attributes() -> None:
    assert probes(MIXED, ["sex", "year"]) == probes(MIXED, ["sex", "year"])
    assert {name for query in probes(MIXED, ["sex", "year"]) for name in query.scope} == {"sex", "year"}
    assert len(probes(MIXED, [])) == 40
