"""The accuracy benchmark's own programs: questions are what they should be, and peers are as good as they claim."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from benchmarks import bench_accuracy, bench_almost_all, bench_choice, bench_tails, writer_queue
from benchmarks.accuracy import ways
from benchmarks.accuracy.analysts import conjunctions, drill_down, query_of, stream
from benchmarks.accuracy.catalogue import independent, parity, tree
from benchmarks.accuracy.forecasts import breaks_even
from benchmarks.accuracy.fresh import opendp_rho
from benchmarks.accuracy.noisy_tables import every, released, size
from benchmarks.accuracy.questions import Truth, boxes, cells, families
from benchmarks.accuracy.residual_planner import (
    ResidualPlanner,
    centred,
    gaussian_shift,
    planned,
    positive,
    squared_sensitivity,
)
from benchmarks.accuracy.scores import Scores, picture, printed
from benchmarks.accuracy.synthesis import PYTHON, synthesise
from benchmarks.accuracy.tables import MILD, Table, codes, made_up
from numpy.typing import NDArray

import tacit
from tacit.exact.bounds import rho_from
from tacit.load import open_source
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.allocation import allocation
from tacit.release.forecast import direct
from tacit.trusted.cells import read_records

DOMAIN = Domain(
    {
        "a": tacit.integer(0, 9, width=2),
        "b": tacit.integer(0, 3),
        "c": tacit.category(["x", "y", "z"]),
        "d": tacit.integer(0, 1),
    }
)
ROWS = 3_000


@pytest.fixture(scope="module")
def table() -> Table:
    data = made_up(DOMAIN, ROWS, seed=5)
    return Table("made-up", data, read_records(open_source(data), DOMAIN))


def truthful(table: Table) -> Callable[[Sequence[Query]], NDArray[np.float64]]:
    return lambda queries: np.array([table.records.answer(query) for query in queries], dtype=np.float64)


def test_made_up_rows_and_their_codes(table: Table) -> None:
    columns = codes(table.records)
    assert {len(column) for column in columns.values()} == {ROWS}
    for name, column in columns.items():
        assert np.array_equal(np.bincount(column, minlength=DOMAIN[name].size), table.records.table([name]))


def test_random_conjunctions_are_valid_and_asked_in_order(table: Table) -> None:
    queries = conjunctions(DOMAIN, 2_500, np.random.default_rng(3))
    assert all(query.fits(DOMAIN) and not query.is_constant and len(query.scope) <= 3 for query in queries)
    asked = stream(queries)(truthful(table))
    assert asked.queries == queries
    assert np.array_equal(asked.answers, truthful(table)(queries))


def test_the_drill_down_asks_distinct_valid_questions_and_goes_deep(table: Table) -> None:
    asked = drill_down(DOMAIN, ROWS, questions=150)(truthful(table))
    assert len(asked.queries) == len(asked.answers) == 150
    cells = {(query.key, query.complement) for query in asked.queries}
    assert len(cells) == 150
    assert all(query.fits(DOMAIN) and not query.is_constant for query in asked.queries)
    depths = [len(query.scope) for query in asked.queries]
    assert set(depths[: sum(DOMAIN.shape)]) == {1}
    assert max(depths) == 3
    assert np.array_equal(asked.answers, truthful(table)(asked.queries))  # answers stay beside their questions


def test_the_drill_down_follows_the_surprise() -> None:
    """Independent attributes but for one cell: that cell is refined before all other pairs of its kind."""
    counts = np.full((3, 3, 4), 100.0)
    counts[1, 2] *= 5
    domain = Domain({"u": tacit.integer(0, 2), "v": tacit.integer(0, 2), "w": tacit.integer(0, 3)})
    rows = int(counts.sum())

    def ask(queries: Sequence[Query]) -> NDArray[np.float64]:
        return np.array([float((query.table(("u", "v", "w"), (3, 3, 4)) * counts).sum()) for query in queries])

    asked = drill_down(domain, rows, questions=100)(ask)
    threes = [query for query in asked.queries if len(query.scope) == 3]
    planted = query_of(domain, ((0, 1), (1, 2)))
    first = threes[0].table(("u", "v", "w"), (3, 3, 4)) * (1 - planted.table(("u", "v", "w"), (3, 3, 4)))
    assert first.sum() == 0  # it lies within the planted cell
    shuffled = drill_down(domain, rows, questions=100)(lambda queries: np.zeros(len(queries)))
    assert [q.key for q in shuffled.queries] != [q.key for q in asked.queries]  # it does react


def test_the_drill_down_ends_when_there_is_nothing_left(table: Table) -> None:
    asked = drill_down(DOMAIN, ROWS, questions=10_000, deepest=2)(truthful(table))
    pairs = sum(size(DOMAIN, scope) for scope in every(DOMAIN, 2))
    assert len(asked.queries) == sum(DOMAIN.shape) + pairs


def test_families_are_boxes_whose_truth_is_counted_at_once(table: Table) -> None:
    truth = Truth(table.records)
    for family in families(DOMAIN, ROWS, np.random.default_rng(3), scale=0.02):
        assert all(query.fits(DOMAIN) and not query.is_constant for query in family.queries)
        answers = truth.answer(family.queries)
        assert np.array_equal(answers, truthful(table)(family.queries))
        read = family.read(answers)
        assert ((read >= 0) & (read <= 1)).all()
        assert np.isnan(family.read(np.full_like(answers, np.nan))).all()
    assert {query.scope for query in cells(DOMAIN, 2, 10**6, np.random.default_rng(3))} == set(every(DOMAIN, 2))
    assert len(cells(DOMAIN, 2, 10**6, np.random.default_rng(3))) == sum(size(DOMAIN, one) for one in every(DOMAIN, 2))
    ranges = [query for query in boxes(DOMAIN, 300, np.random.default_rng(3), (1,)) if query.scope == ("a",)]
    for query in ranges:
        met = np.flatnonzero(query.table(("a",), (5,)))
        others = np.flatnonzero(query.table(("a",), (5,)) == 0)  # canonical form may tell a range by what is outside
        assert (np.diff(met) == 1).all() or (np.diff(others) == 1).all()


def test_means_and_medians_of_groups_are_read_from_counts() -> None:
    domain = Domain({"v": tacit.integer(0, 4), "g": tacit.category(["x", "y"])})
    of = {family.name: family for family in families(domain, 100, np.random.default_rng(3), scale=0.02)}
    groups = len(of["means of groups"].queries) // 5
    counts = np.tile([0.0, -3.0, 1.0, 1.0, 2.0], groups)  # what is below zero counts for nothing
    assert np.allclose(of["means of groups"].read(counts), (2 + 3 + 8) / 4 / 4)
    assert np.allclose(of["medians of groups"].read(counts), 3 / 4)
    assert np.allclose(of["medians of groups"].read(0 * counts), 1 / 2)


def test_a_replaced_row_moves_the_residuals_by_no_more_than_was_paid_for() -> None:
    """All pairs of cells of a small domain, one by one."""
    domain = Domain({"a": tacit.integer(0, 3), "b": tacit.integer(0, 2), "c": tacit.integer(0, 1)})
    for order in (1, 2, 3):
        deviations = planned(domain, order, MILD)
        vectors = []
        for place in product(*map(range, domain.shape)):
            row = np.zeros(domain.shape)
            row[place] = 1
            parts = []
            for scope, deviation in deviations.items():
                others = tuple(axis for axis, name in enumerate(domain.names) if name not in scope)
                parts.append(centred(row.sum(axis=others)).ravel() / deviation)
            vectors.append(np.concatenate(parts))
        distances = [float(np.sum((one - other) ** 2)) for one in vectors for other in vectors]
        variances = {scope: deviation**2 for scope, deviation in deviations.items()}
        assert max(distances) == pytest.approx(squared_sensitivity(domain, variances))
        assert max(distances) == pytest.approx(gaussian_shift(MILD) ** 2)


def test_the_exact_curve_of_a_gaussian_is_better_than_zcdp_and_holds_at_its_delta() -> None:
    shift = gaussian_shift(MILD)
    assert math.sqrt(2 * rho_from(MILD.epsilon, MILD.delta)) < shift < 1.1 * math.sqrt(2 * rho_from(1.0, 1e-9))
    points = np.random.Generator(np.random.PCG64(3)).normal(size=10**6)  # E (1 - exp(epsilon - loss))+ is delta
    budget = Budget(epsilon=0.5, delta=0.01)
    shift = gaussian_shift(budget)
    delta = np.maximum(0, -np.expm1(budget.epsilon - (shift * points + shift**2 / 2))).mean()
    assert delta == pytest.approx(0.01, rel=0.05)


def test_the_residual_planner_is_unbiased_with_the_variance_it_planned(table: Table) -> None:
    """700 releases: a sample variance is within a factor of 1.6 but for a chance of 1e-15."""
    scope = ("a", "b")
    deviations = planned(DOMAIN, 2, MILD)
    true = table.records.table(scope)
    errors = np.array([ResidualPlanner(table.records, MILD, order=2).table(scope) - true for _ in range(700)])
    foretold = sum(
        deviations[part] ** 2
        * math.prod(1 - 1 / DOMAIN.sizes[name] for name in part)
        / math.prod(DOMAIN.sizes[name] for name in scope if name not in part) ** 2
        for part in (("a",), ("b",), scope)
    )
    ratios = (errors**2).mean(axis=0) / foretold
    assert ((ratios > 1 / 1.6) & (ratios < 1.6)).all()
    assert (abs(errors.mean(axis=0)) < 7 * math.sqrt(foretold / 700)).all()
    plenty = Budget(epsilon=900.0, delta=1e-9)
    one = ResidualPlanner(table.records, plenty, order=3)
    queries = conjunctions(DOMAIN, 50, np.random.default_rng(4))
    assert np.abs(one.answer(queries) - truthful(table)(queries)).max() < 5
    assert np.abs(one.table(("a", "b", "c")) - table.records.table(("a", "b", "c"))).max() < 5


def test_the_nearest_table_without_negative_cells() -> None:
    found = positive(np.array([[5.0, -1.0], [3.0, -3.0]]), 6.0)
    assert np.allclose(found, [[4.0, 0.0], [2.0, 0.0]])
    assert np.allclose(positive(np.array([1.0, 2.0]), 3.0), [1.0, 2.0])


def test_tables_of_known_structure() -> None:
    assert independent().rows == tree().rows
    table = parity()
    pair = table.records.table(("b0", "b2")) / table.rows
    assert np.abs(pair - 0.25).max() < 0.02  # no pair shows it
    triple = table.records.table(("b0", "b1", "b2")) / table.rows
    assert triple[0, 0, 0] > 0.2
    assert triple[0, 0, 1] < 0.03


def test_opendp_and_tacit_turn_a_budget_into_the_same_rho() -> None:
    assert opendp_rho(1.0, 1e-9) == pytest.approx(rho_from(1.0, 1e-9), rel=1e-6)


HERE = [way for way in ways.WAYS if way.name not in {"MST", "AIM", "median", "median, nothing known"}]


@pytest.mark.parametrize("way", HERE, ids=lambda way: way.name)
def test_every_way_answers_both_analysts(table: Table, way: ways.Way) -> None:
    queries = conjunctions(DOMAIN, 40, np.random.default_rng(6))
    for analyst in (stream([*queries, ~queries[0]]), drill_down(DOMAIN, ROWS, questions=60)):
        with way.open(table, Budget(epsilon=5.0, delta=1e-9), 100) as opened:
            asked = analyst(opened.answer)
        errors = np.abs(asked.answers - truthful(table)(asked.queries)) / ROWS
        assert errors.shape == (len(asked.queries),)
        assert errors.max() < (0.6 if way in (ways.TEXTBOOK, ways.SINGLES) else 0.25)
        if len(asked.queries) == 41 and way is not ways.PAIRS:  # a question and its complement are one
            assert asked.answers[0] + asked.answers[-1] == pytest.approx(ROWS, abs=1e-6)


def test_scores_are_printed_with_ratios_to_the_best_peer_and_drawn() -> None:
    peer, worse, ours = Scores("a peer"), Scores("worse"), Scores("ours", ours=True)
    for scores, factor in ((peer, 1.0), (worse, 3.0), (ours, 0.5)):
        scores.add("boxes", np.array([0.01, 0.02, 0.03]) * factor)
        scores.add_relative(np.array([5.0, 50.0, 0.0]), np.array([6.0, 40.0, 1.0]))
        scores.seconds.append(1.0)
    missing = Scores("AIM", note="not finished in 600 s")
    text = printed([peer, worse, ours, missing])
    mean = next(line for line in text.splitlines() if line.startswith("boxes, mean"))
    assert mean.split() == ["boxes,", "mean", "200", "600", "100", "0.5"]
    assert "10 to 100 rows" in text
    assert "AIM: not finished in 600 s" in text
    assert picture("Errors", [peer, worse, ours, missing], "boxes", "a note").svg().startswith("<svg")


def test_the_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    bench_accuracy.main(["--quick", "--tables", "parity", "--epsilon", "1", "pure", "--ways", "1-way", "RP3", "auto"])
    told = capsys.readouterr().out
    assert told.count("parity: ") == 2
    assert "3-way cells, largest" in told


def test_what_is_foretold_stands_beside_what_happens(capsys: pytest.CaptureFixture[str]) -> None:
    bench_accuracy.main(["--forecast", "--tables", "tree", "--epsilon", "1"])
    *_, alone, drawn = capsys.readouterr().out.splitlines()
    assert (alone.split()[:2], drawn.split()[:2]) == (["1", "none"], ["1", "half"])
    for line in (alone, drawn):
        ratios = [float(part.split()[i].rstrip("*")) for part in line.split("|")[1:4] for i in (2, 5)]
        assert all(1 / 2.5 < ratio < 2.5 for ratio in ratios)


def test_fresh_noise_breaks_even_where_its_law_says() -> None:
    assert breaks_even(MILD, direct(MILD, questions=700, confidence=0.95).mean) in range(690, 711)


def test_one_database_of_a_random_population_is_played() -> None:
    found = bench_almost_all.play(16, hits=4, questions=12, seed=1)
    assert found.hard == 4 <= found.last <= 12
    assert 0 < found.largest < 1


def test_the_share_of_databases_that_are_served_is_a_curve() -> None:
    drawn = bench_almost_all.picture({(15, 16): 1.0, (15, 64): 0.0, (60, 16): 1.0, (60, 64): 0.5}).svg()
    assert "15 hard answers" in drawn
    assert "60 hard answers" in drawn


def test_variances_of_plain_tables_are_what_a_simulation_shows(table: Table) -> None:
    """700 releases of all 3-way tables: a sample variance is within a factor of 1.6 but for a chance of 1e-15."""
    scopes = every(DOMAIN, 3)
    query = query_of(DOMAIN, ((0, 1), (1, 2), (2, 0)))
    errors = np.array([released(table.records, 3, MILD).answer([query]) - truthful(table)([query]) for _ in range(700)])
    foretold = len(scopes) / rho_from(MILD.epsilon, MILD.delta)  # each moves by sqrt(2) and has an equal part
    assert 1 / 1.6 < float((errors**2).mean()) / foretold < 1.6


@pytest.mark.skipif(not PYTHON.exists(), reason="mbi is not installed: see `make peers`")
@pytest.mark.parametrize("method", ["MST", "AIM"])
def test_mst_and_aim_fit_what_they_measure(table: Table, method: str) -> None:
    run = synthesise(table.records, Budget(epsilon=500.0, delta=1e-9), method, workload=every(DOMAIN, 2))
    queries = [query for query in conjunctions(DOMAIN, 100, np.random.default_rng(4)) if len(query.scope) <= 2]
    errors = np.abs(run.answers.answer(queries) - truthful(table)(queries)) / ROWS
    assert errors.max() < (0.1 if method == "MST" else 0.01)


def test_the_writers_queue_waits_and_refuses_as_arithmetic_says() -> None:
    service = writer_queue.Service(0.004, 0.0002)
    alone = writer_queue.simulated(0.01, service, writer_queue.Scan(0.0), 1e6)
    assert alone.median == pytest.approx(service.time(1))
    assert alone.refused == 0
    assert alone.busy == pytest.approx(0.01 * service.time(1), rel=0.1)
    scan = 5.0  # whoever comes while a scan runs has the next one: between one and two of them, at a high rate
    shared = writer_queue.simulated(20.0, service, writer_queue.Scan(scan), 3600)
    assert scan < shared.median < 2.1 * scan
    assert shared.refused == 0
    full = writer_queue.simulated(200.0, service, writer_queue.Scan(scan), 3600)
    most = writer_queue.MAX_WAITING / (scan + service.time(writer_queue.MAX_WAITING))  # answered in a second, at most
    assert full.refused == pytest.approx(1 - most / 200, abs=0.01)
    # Where all are about other tables, nothing is shared: as many are answered as tables are counted.
    apart = writer_queue.simulated(1.0, service, writer_queue.Scan(scan, 10**9, scan), 36_000)
    assert apart.refused == pytest.approx(1 - 1 / scan, abs=0.02)
    # And where they are about a few, a batch waits for those few at most.
    few = writer_queue.simulated(1.0, service, writer_queue.Scan(scan, 10, scan), 3600)
    assert few.refused == 0
    assert few.worst < 2.1 * 10 * scan


def test_what_a_row_takes_is_said_of_each_statement(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    engine, size = writer_queue.scanned(tmp_path, 1_000)
    assert 5 < size < 100
    assert min(engine.pairs, engine.triples, engine.table, engine.count) > 0
    postgres, _ = writer_queue.ELSEWHERE
    assert postgres.table == pytest.approx(198.7e-9, rel=0.01)  # 14.1 µs for 71 of them
    writer_queue.print_engines([postgres])
    *_, seconds = capsys.readouterr().out.splitlines()
    assert seconds.split()[-4:] == ["8,197.1", "2,484.0", "124.2", "-"]  # 66 and 20 times as much


def test_tails_stand_beside_a_plain_fit(capsys: pytest.CaptureFixture[str]) -> None:
    bench_tails.main(["--runs", "1", "--shapes", "exponential, 60 bins"])
    lines = capsys.readouterr().out.splitlines()
    tails = next(line for line in lines if "tails of x" in line).split()[-7:]
    assert float(tails[2]) == pytest.approx(float(tails[0]) / float(tails[1]), abs=0.02)
    longest = lines[-1].split()
    assert longest[0] == "7"
    assert float(longest[1]) < float(longest[2])  # a bar that is wider than a gate's is not shown


def test_an_oracle_of_strengths_is_never_worse_for_the_same_price(table: Table) -> None:
    plan = allocation(table.domain, table.rows)
    known = bench_choice.strengths(table, plan)
    prices = np.array([math.prod(1 - 1 / plan.sizes[name] for name in scope) for scope in plan.scopes])
    for rho in (0.001, 0.1, 10.0):
        usual = plan.precisions(rho)
        best = bench_choice.oracle(plan, usual, known)
        assert (best * prices).sum() == pytest.approx((usual * prices).sum(), rel=1e-6)
        assert bench_choice.expected(plan, best, known) <= bench_choice.expected(plan, usual, known) * (1 + 1e-9)


def test_what_pairs_foretell_has_no_strength() -> None:
    """Every value of a with every value of b, equally often; c is a: all that three of them say, two say."""
    rows = [(a, b, a) for a, b in product(range(3), range(4)) for _ in range(10)]
    domain = Domain({"a": tacit.integer(0, 2), "b": tacit.integer(0, 3), "c": tacit.integer(0, 2)})
    data = pd.DataFrame(rows, columns=["a", "b", "c"])
    made = Table("foretold", data, read_records(open_source(data), domain))
    plan = allocation(domain, made.rows)
    known = dict(zip(plan.scopes, bench_choice.strengths(made, plan), strict=True))
    assert known["a", "c"] > 1
    assert max(known["a", "b"], known["b", "c"], known["a", "b", "c"]) < 1e-6
