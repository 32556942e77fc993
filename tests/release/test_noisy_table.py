"""Answers from the cells of a noisy table: a query and its complement add up to n, whatever the noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.model.query import Query
from tacit.release.hypothesis.noisy_table import answer_from, summed

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
        assert summed(query, NAMES, SHAPE) == summed(other, NAMES, SHAPE)
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
