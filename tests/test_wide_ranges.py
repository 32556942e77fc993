"""Histograms and curves of wide attributes: what was told before stays, and finding it goes through little.

Nothing here is decided by the clock: the weights are counted that are made of conditions and gone through one by one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit
from support import counted
from tacit.model.ask import Ask, Cdf, Histogram
from tacit.model.factor import Factor
from tacit.model.query import Query
from tacit.release.evidence import MAX_SEPARATE
from tacit.release.ranges.distribution import Distribution
from tacit.serve.work import MAX_WORK, work_of
from tacit.session import Session

LOOKED_UP = 2**25  # weights of all counts that are looked up for one answer


def open_wide(folder: Path, values: int, mechanism: str = "direct") -> Session:
    frame = pd.DataFrame({"id": np.random.default_rng(3).integers(0, values, 400), "sex": ["F", "M"] * 200})
    return tacit.open(
        data=frame,
        domain=tacit.Domain({"id": tacit.integer(0, values - 1), "sex": tacit.category(["F", "M"])}),
        budget=tacit.Budget(epsilon=1, delta=1e-9),
        ledger=folder / "wide.tacit",
        mechanism=mechanism,
        start=True,
    )


def test_counts_that_a_release_tells_itself_are_not_worked_out_one_by_one(tmp_path: Path) -> None:
    session = open_wide(tmp_path, 20_000)
    first = session.ask(tacit.count(id=(20, 39)))
    for _ in range(2):  # the second is free
        with counted(Query, "table") as dense, counted(Distribution, "reach") as reaches:
            shown = session.histogram("id", width=20)
        assert shown.values.size == 1_000
        assert dense[0] == 0
        assert reaches[0] <= 1  # of the one that was told: whether the release is sharper
        assert shown.values[1] == first.value  # which was told before the release
        assert "1 of its counts told before" in shown.facts.note


def test_where_nothing_was_told_before_nothing_is_looked_up(tmp_path: Path) -> None:
    session = open_wide(tmp_path, 20_000)
    session.cdf("id", share=0.01)
    with counted(Query, "among") as made:
        session.histogram("id", width=20)
    assert made[0] <= 1_000 + 2  # once, to see whether all of them were told


@pytest.mark.parametrize("mechanism", ["direct", "histogram"])
def test_an_answer_of_too_many_weights_is_read_off_the_release(tmp_path: Path, mechanism: str) -> None:
    values = 300_000
    session = open_wide(tmp_path, values, mechanism)
    width = 1_000  # 300 counts of 300,000 weights each
    assert (values // width) * values > LOOKED_UP
    with counted(Factor, "among") as made:
        shown = session.histogram("id", width=width)
    assert shown.values.size == 300
    assert made[0] <= 2


@pytest.mark.parametrize(("values", "width"), [(2_000, 1), (16_000, 8), (200_000, 1_300), (1_000_000, 40_000)])
def test_histograms_are_priced_at_what_they_go_through(
    tmp_path: Path, values: int, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, through, among = open_wide(tmp_path, values), [0], Factor.among.__func__  # type: ignore[attr-defined]
    session.ask(tacit.count(id=(0, width - 1)))

    def counting(of: type[Factor], name: str, size: int, indices: range) -> Factor:
        through[0] += size
        return among(of, name, size, indices)  # type: ignore[no-any-return]

    asks: list[Ask] = [Histogram(session.domain, "id", width)]
    if values <= MAX_SEPARATE:
        asks.append(Cdf(session.domain, "id"))
    for ask in asks:
        session.answer(ask)
        through[0] = 0
        with monkeypatch.context() as patch:
            patch.setattr(Factor, "among", classmethod(counting))
            session.answer(ask)
        assert through[0] >= values  # the counts were looked up
        assert through[0] <= 2 * min(work_of(ask, session.domain), LOOKED_UP + values)
        assert work_of(ask, session.domain) <= MAX_WORK
