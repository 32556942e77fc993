"""What tells a question is found among many releases, as if each of them were tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import cast

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import tacit
from tacit.model.budget import Loss
from tacit.model.entry import Measured
from tacit.model.facts import Receipt
from tacit.model.noise_law import Noise
from tacit.model.query import Query
from tacit.model.residuals import Residuals
from tacit.model.workload import Marginal, Product, Strategy, Tree
from tacit.release.public import Public
from tacit.release.purchases import Bought, Purchase

DOMAIN = tacit.Domain({"a": tacit.integer(0, 3), "b": tacit.integer(0, 2), "c": tacit.category(["x", "y", "z"])})
ROWS = 100
EVERYONE = Query.constant(everyone=True)
TREES = [Tree("a", (4,), (1,)), Tree("b", (3,), (1,))]
WITHOUT_CONDITIONS: list[Residuals | Strategy] = [
    Residuals((("a",), ("b",), ("a", "b")), (2, 3, 1)),
    *TREES,
    Product(*TREES),
]


class OneByOne(Bought):
    """Tries every purchase."""

    def _covering(self, query: Query, after: int = 0) -> Iterator[Purchase]:
        return (one for one in self._telling if one.entry > after and one.covers(query))


class Released:
    """What was bought, without a ledger."""

    domain, rows = DOMAIN, ROWS

    def __init__(self, questions: Sequence[Marginal | Residuals | Strategy], scales: Sequence[float]) -> None:
        self._measured = [
            Measured(
                key=str(entry),
                question=question,
                values=np.zeros(_answers(question), dtype=np.int64),
                unit=1,
                noise=Noise("laplace", scale),
                cost=Loss.of("epsilon", 1.0),
                receipt=Receipt(entry, "s"),
            )
            for entry, (question, scale) in enumerate(zip(questions, scales, strict=True), start=1)
        ]
        self.entries = len(self._measured)

    def tables(self, after: int) -> tuple[list[Measured], dict[frozenset[str], int], int]:
        return self._measured[after:], {}, self.entries

    def bought(self, kind: type[Bought]) -> Bought:
        found = kind(cast(Public, self), 0.95, learned=False)
        found.catch_up()
        return found


def _answers(question: Marginal | Residuals | Strategy) -> int:
    if not isinstance(question, Residuals):
        return question.size(DOMAIN)
    counts = (np.zeros(DOMAIN.shape_of(scope), dtype=np.int64) for scope in question.scopes)
    return question.answers(counts).size


@st.composite
def literals(draw: st.DrawFn) -> Query:
    name = draw(st.sampled_from(DOMAIN.names))
    return Query.among(DOMAIN, name, draw(st.sets(st.integers(0, DOMAIN[name].size - 1), min_size=1, max_size=2)))


@st.composite
def conditions(draw: st.DrawFn) -> Query:
    """Conjunctions, and what ties attributes together: a = 1 OR b = 2, the complement of that, everyone."""
    some = draw(st.lists(literals(), max_size=3))
    found = reduce(Query.__or__ if draw(st.booleans()) else Query.__and__, some, some[0]) if some else EVERYONE
    return ~found if draw(st.integers(0, 3)) == 0 and not found.is_constant else found


@st.composite
def tables(draw: st.DrawFn) -> Marginal:
    names = draw(st.sets(st.sampled_from(DOMAIN.names), min_size=1, max_size=2))
    return Marginal(tuple(sorted(names)), draw(conditions()))


@st.composite
def queries_within(draw: st.DrawFn, table: Marginal) -> Query:
    """A sum of cells of a table, or n less such a sum."""
    shape, most = DOMAIN.shape_of(table.names), draw(st.sampled_from([1, 4]))
    weights = draw(st.lists(st.integers(0, most), min_size=int(np.prod(shape)), max_size=int(np.prod(shape))))
    found = table.where & Query.weighted(DOMAIN, table.names, np.reshape(weights, shape) / most)
    return ~found if draw(st.booleans()) else found


def test_what_tells_a_question_is_what_is_found_by_trying_one_after_the_other() -> None:
    told = Counter[str]()

    # Many draws make an example: to look for a smaller one that fails takes a minute, and says no more.
    @settings(max_examples=200, phases=[Phase.generate])
    @given(st.data())
    def check(data: st.DataObject) -> None:
        under_conditions = data.draw(st.lists(tables(), min_size=1, max_size=6))
        others = data.draw(st.lists(st.sampled_from(WITHOUT_CONDITIONS), max_size=2))
        questions = data.draw(st.permutations([*under_conditions, *others]))
        scales = data.draw(st.lists(st.sampled_from([0.5, 8.0]), min_size=len(questions), max_size=len(questions)))
        released = Released(questions, scales)
        indexed, one_by_one = released.bought(Bought), released.bought(OneByOne)
        for query in [data.draw(conditions()), *(data.draw(queries_within(one)) for one in under_conditions)]:
            first, same = indexed.first(query), one_by_one.first(query)
            assert (first and first.entry) == (same and same.entry)
            found = indexed.told(query, None)
            assert found == one_by_one.told(query, None)  # and which later release is sharper
            if first is None or found is None:
                told["nothing"] += 1
                continue
            question = first.measured.question
            told["sharper"] += "sharper" in found.facts.note
            told["later"] += first.entry > 1
            if isinstance(question, Marginal) and not question.where.is_everyone:
                apart = set(question.where.scope).isdisjoint(question.names)
                told["apart" if apart else "tied or within"] += 1
                told["complement"] += len(query.factors) > 1 and query.complement
            else:
                told["everyone"] += 1

    check()
    assert min(told[kind] for kind in ("nothing", "sharper", "later", "everyone", "apart", "tied or within")) > 20, told
    assert told["complement"] > 20, told
