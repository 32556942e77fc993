"""Answers from the cells of a noisy table: a query and its complement add up to n, whatever the noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.model.budget import Loss
from tacit.model.entry import Measured
from tacit.model.facts import Receipt
from tacit.model.noise_law import Noise
from tacit.model.query import Query
from tacit.model.table import Listing, Table
from tacit.model.workload import Marginal
from tacit.release.hypothesis.noisy_table import NoisyTable, answer_from, smaller_side

DOMAIN = tacit.Domain({"a": tacit.integer(0, 3), "b": tacit.category(["x", "y"])})
NAMES, SHAPE, N = ("a", "b"), (4, 2), 1000


def queries() -> list[Query]:
    """Every condition on one attribute, conjunctions, a condition on both, and weights: halves among all of them."""
    chosen = [Query.among(DOMAIN, "a", [i for i in range(4) if bits >> i & 1]) for bits in range(1, 15)]
    women = [Query.among(DOMAIN, "b", [i]) for i in (0, 1)]
    weighted = [Query.weighted(DOMAIN, ["a"], w) for w in ([0, 0.5, 1, 1], [0.5, 0.5, 0, 1], [0.25, 1, 0, 0])]
    both = Query.weighted(DOMAIN, ["a", "b"], [[0, 1], [1, 0], [0, 1], [1, 0]])
    return [*chosen, *women, *weighted, both, *(one & woman for one in chosen for woman in women)]


def test_a_query_and_its_complement_add_up_and_use_as_few_cells() -> None:
    cells = np.random.default_rng(1).integers(-50, 300, SHAPE)  # noisy: they add up to something else than n
    assert cells.sum() != N
    halves = 0
    for query in queries():
        other = ~query
        found = [answer_from(one, NAMES, cells, N) for one in (query, other)]
        assert sum(found) == N * query.unit
        mine, theirs = (smaller_side(one, NAMES, SHAPE)[0] for one in (query, other))
        assert np.count_nonzero(mine) == np.count_nonzero(theirs)
        inside = query.core.table(NAMES, SHAPE)
        few, many = np.count_nonzero(inside), np.count_nonzero(query.unit - inside)
        halves += few == many
        core = answer_from(query.core, NAMES, cells, N)
        direct, rest = int((inside * cells).sum()), int(((query.unit - inside) * cells).sum())
        assert core == (direct if few <= many else N * query.unit - rest)
    assert halves > 5  # where only the tie decides


@pytest.mark.parametrize("mechanism", ["histogram", "direct"])
def test_women_and_men_are_all_rows(tmp_path: Path, mechanism: str) -> None:
    rows = pd.DataFrame({"sex": ["F", "M"] * 500, "age": np.arange(1000) % 4})
    domain = tacit.Domain({"sex": tacit.category(["F", "M"]), "age": tacit.integer(0, 3)})
    budget = tacit.Budget(epsilon=0.1, delta=0.0)
    with tacit.open(
        start=True, data=rows, domain=domain, budget=budget, ledger=tmp_path / "l", mechanism=mechanism
    ) as session:
        session.table("sex", "age")  # noise of scale 20 or more in each of 8 cells
        for first, second in (("sex = 'F'", "sex = 'M'"), ("age < 2", "age >= 2"), ("age = 1", "age <> 1")):
            both = [session.ask(f"SELECT COUNT(*) FROM data WHERE {where}") for where in (first, second)]
            assert sum(answer.value for answer in both) == 1000  # type: ignore[union-attr]


TIED = tacit.Domain({"a": tacit.integer(0, 3), "b": tacit.integer(0, 2), "c": tacit.category(["x", "y"])})
SIZES = TIED.sizes


def tied_conditions() -> list[Query]:
    """Conditions on two or three attributes: products, and such that tie what a table has to what it has not."""
    a, b, c = (Query.among(TIED, name, some) for name, some in (("a", [1, 2]), ("b", [0]), ("c", [1])))
    return [b, a & b, ~(~a & ~b), ~(a & b), ~(~a & ~b & ~c), ~(~a & ~b) & c, (a & b) | (~a & c), ~(~(a & b) & ~c)]


@pytest.mark.parametrize("names", [("a",), ("b",), ("a", "c"), ("a", "b")])
def test_a_table_tells_what_is_a_sum_of_its_cells_and_nothing_else(names: tuple[str, ...]) -> None:
    """Of cells without noise every sum is the truth. All unions of cells are told, whatever the condition is."""
    rng = np.random.default_rng(2)
    truth = rng.integers(0, 1000, tuple(SIZES.values()))
    n, told, refused = int(truth.sum()), 0, 0

    def count(query: Query) -> int:
        return int((query.table(tuple(SIZES), tuple(SIZES.values())) * truth).sum())

    for where in tied_conditions():
        asked = Marginal(names, where)
        cells = [count(cell) for cell in asked.queries(TIED)]
        noise, receipt = Noise("laplace", 1.0), Receipt(1, "0" * 64)
        measured = Measured(
            key="k",
            question=asked,
            values=np.array(cells),
            unit=1,
            noise=noise,
            cost=Loss("epsilon", 1),
            receipt=receipt,
        )
        table = NoisyTable(measured, TIED, n, 0.95)
        shape = TIED.shape_of(names)
        for _ in range(40):
            some = Query.weighted(TIED, list(names), rng.integers(0, 2, shape).tolist())
            union = where & some
            if union.is_constant:
                continue
            for query in (union, ~union, where & Query.weighted(TIED, list(names), rng.random(shape).tolist())):
                assert table.covers(query)
                assert table.value(query) == count(query)
                told += 1
        for name, size in SIZES.items():
            for other in (where & Query.among(TIED, name, [0]), Query.among(TIED, name, [size - 1])):
                if table.covers(other):
                    assert table.value(other) == count(other)
                else:
                    refused += 1
    assert told > 500
    assert refused > 10


def test_a_table_whose_condition_ties_its_groups_to_others_is_bought_once(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"a": rng.integers(0, 12, 3_000), "b": rng.integers(0, 5, 3_000)})
    domain = tacit.Domain({"a": tacit.integer(0, 11), "b": tacit.category(list(range(5)))})
    files, budget = tmp_path / "l.tacit", tacit.Budget(epsilon=1.0, delta=0.0)
    table = "SELECT a, COUNT(*) FROM data WHERE a = 7 OR b = 4 GROUP BY a"
    coarse = "SELECT FLOOR(a / 3) * 3 AS g, COUNT(*), SUM(a) FROM data WHERE a = 7 OR b = 4 GROUP BY g"
    with tacit.open(data=rows, domain=domain, budget=budget, ledger=files, mechanism="direct") as session:
        session.ask("SELECT COUNT(*) FROM data WHERE a = 1")
        first = session.ask(table)
        paid = session.spent
        assert isinstance(first, Table)
        cells = first.values.tolist()
        for a in range(12):
            cell = session.ask(f"SELECT COUNT(*) FROM data WHERE (a = 7 OR b = 4) AND a = {a}")
            assert cell.value == cells[a]
        sums = session.ask(coarse)
        assert isinstance(sums, Listing)
        assert [row.values[0] for row in sums.listed] == [sum(cells[i : i + 3]) for i in range(0, 12, 3)]
        again = session.ask(table)
        assert isinstance(again, Table)
        assert again.values.tolist() == cells
        assert session.spent == paid
    with tacit.series(ledger=tmp_path / "s.tacit", domain=domain, budget=budget, mechanism="direct") as series:
        series.append(rows[:1_500], label="2026-01")
        series.append(rows[1_500:], label="2026-02")
        most = series.dry_run(coarse).cost_at_most.atoms
        assert 0 < series.ask(coarse).cost.atoms <= most


@pytest.mark.parametrize(
    "table",
    [
        "SELECT a, COUNT(*) FROM data WHERE b < 700 GROUP BY a",
        "SELECT c, COUNT(*) FROM data WHERE NOT (a < 700 AND b < 700) GROUP BY c",
    ],
)
def test_a_table_refuses_no_question_that_it_does_not_tell(tmp_path: Path, table: str) -> None:
    """As a product of factors, some of these would be a table of 4 million values, which no question may have."""
    sizes = {"a": 2_000, "b": 2_000, "c": 20_000}
    rows = pd.DataFrame({name: np.arange(500) % size for name, size in sizes.items()})
    domain = tacit.Domain({name: tacit.integer(0, size - 1) for name, size in sizes.items()})
    budget = tacit.Budget(epsilon=1.0, delta=0.0)
    with tacit.open(data=rows, domain=domain, budget=budget, ledger=tmp_path / "l", mechanism="direct") as session:
        session.ask(table)
        for asked in ("a < 100 AND b < 500", "b < 100 AND c < 500", "NOT (a < 100 AND b < 300)", "c < 100"):
            assert session.ask(f"SELECT COUNT(*) FROM data WHERE {asked}").cost.atoms


CELLS = [f"SELECT COUNT(*) FROM data WHERE inc = {inc} AND g = '{g}'" for inc in range(4) for g in "ab"]
APART = "SELECT inc, COUNT(*) FROM data WHERE g = 'a' GROUP BY inc"
WHOLE = "SELECT inc, COUNT(*) FROM data GROUP BY inc"


@pytest.mark.parametrize(
    ("before", "sql"),
    [
        (CELLS[::2], "SELECT MEDIAN(inc) FROM data WHERE g = 'a'"),
        (CELLS, "SELECT g, AVG(inc) FROM data GROUP BY g"),
        (CELLS, "SELECT g, MEDIAN(inc), COUNT(*) FROM data GROUP BY g"),
        ([APART, WHOLE], "SELECT MEDIAN(inc), STDDEV(inc) FROM data WHERE g = 'a' OR inc = 3"),
    ],
)
def test_sums_of_cells_that_were_told_one_by_one_are_read_and_stay(tmp_path: Path, before: list[str], sql: str) -> None:
    rng = np.random.default_rng(5)
    rows = pd.DataFrame({"g": rng.choice(["a", "b"], 4_000), "inc": rng.integers(0, 4, 4_000)})
    domain = tacit.Domain({"g": tacit.category(["a", "b"]), "inc": tacit.integer(0, 3)})
    budget = tacit.Budget(epsilon=20.0, delta=1e-9)
    with tacit.open(data=rows, domain=domain, budget=budget, ledger=tmp_path / "l", mechanism="direct") as session:
        for one in before:
            session.ask(one)
        most, spent = session.dry_run(sql).cost_at_most.atoms, session.spent.atoms
        first = session.ask(sql)
        assert first.cost.atoms == session.spent.atoms - spent <= most
        for condition in ("inc < 2 AND g = 'a'", "inc < 3 AND g = 'a'", "g = 'a'"):  # such sums, bought later
            session.ask(f"SELECT COUNT(*) FROM data WHERE {condition}")
        session.ask("SELECT SUM(inc) FROM data WHERE g = 'a'")
        again = session.ask(sql)
        assert again.to_dict()["says"] == first.to_dict()["says"]
        if isinstance(first, Listing) and isinstance(again, Listing):
            assert [row.values for row in again.listed] == [row.values for row in first.listed]
        else:
            assert again.value == first.value
