"""Made-up rows: their values, their files, and how far they are from what was released."""

from __future__ import annotations

import datetime as dt
import math
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from markupsafe import escape

import tacit
from tacit.model.budget import Loss
from tacit.model.entry import Measured
from tacit.model.facts import Receipt
from tacit.model.noise_law import Noise
from tacit.model.workload import marginal
from tacit.release.synthetic import Synthetic, distances

DOMAIN = tacit.Domain(
    {
        "sex": tacit.category(["F", "M"], missing="unknown"),
        "age": tacit.integer(0, 99, width=10),
        "code": tacit.category([10, 20, 30]),
        "smoker": tacit.boolean(),
        "income": tacit.numeric([0, 10, 25]),
        "month": tacit.date("2024-01-01", "2024-12-31", by="month"),
        "grade": tacit.integer(1, 3, other="none of these"),
    }
)
NOISE = Noise("gaussian", 3.0)


def rows(count: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, size, count) for size in DOMAIN.shape]


def measured(question: object, values: np.ndarray, unit: int = 1) -> Measured:
    return Measured(
        key="k",
        question=question,
        values=values,
        unit=unit,
        noise=NOISE,
        cost=Loss("epsilon", 1),
        receipt=Receipt(1, "00"),
    )  # type: ignore[arg-type]


def test_values_stand_for_their_bins_and_keep_their_kinds() -> None:
    made = Synthetic.of(DOMAIN, list(np.array([[2, 3, 1, 1, 1, 1, 3], [0, 0, 1, 0, 0, 11, 0]]).T))
    first, second = made.rows()
    assert first == (None, 35, 20, True, 17.5, dt.date(2024, 2, 15), "none of these")
    assert second == ("F", 5, 20, False, 5.0, dt.date(2024, 12, 16), 1)
    assert made.to_dict()["code"] == [20, 20]
    assert made.columns[0] == (None, "F")
    read = made.to_arrow()
    kinds = ["string", "int64", "int64", "bool", "double", "date32[day]", "string"]
    assert [str(kind) for kind in read.schema.types] == kinds  # an `other` value makes the whole column text
    assert read["grade"].to_pylist() == ["none of these", "1"]
    assert made.to_polars().rows()[0][:3] == (None, 35, 20)
    assert made.to_pandas()["sex"].isna().tolist() == [True, False]


def test_equal_rows_are_equal() -> None:
    assert Synthetic.of(DOMAIN, rows(50)) == Synthetic.of(DOMAIN, rows(50))
    assert Synthetic.of(DOMAIN, rows(50)) != Synthetic.of(DOMAIN, rows(50, seed=1))
    assert Synthetic.of(DOMAIN, rows(50)) != Synthetic.of(DOMAIN, rows(49))
    assert Synthetic.of(DOMAIN, rows(50)) != 3


def test_files_hold_all_rows_in_order(tmp_path: Path) -> None:
    made = Synthetic.of(DOMAIN, rows(5000))
    csv, parquet = made.save(tmp_path / "made.csv"), made.save(tmp_path / "made.parquet")
    with duckdb.connect() as connection:
        from_parquet = connection.read_parquet(str(parquet)).fetchall()
    expected = [(*row[:-1], str(row[-1])) for row in made.rows()]
    assert from_parquet == expected
    read = pd.read_csv(csv, keep_default_na=False)
    assert read["age"].tolist() == list(made.columns[1])
    assert read["sex"].tolist() == [value or "" for value in made.columns[0]]


def test_what_is_saved_can_be_opened_with_the_same_domain(tmp_path: Path) -> None:
    domain = DOMAIN.project(["sex", "age", "code", "smoker", "income"])
    made = Synthetic.of(domain, rows(300)[:5])
    for name in ("made.csv", "made.parquet"):
        budget = tacit.Budget(epsilon=900.0, delta=0.0)
        settings = {"mechanism": "direct", "questions": 2, "ledger": tmp_path / f"{name}.tacit"}
        with tacit.open(
            start=True, data=str(made.save(tmp_path / name)), domain=domain, budget=budget, **settings
        ) as session:
            assert session.table("sex").values.tolist() == np.bincount(made.codes[0], minlength=3).tolist()


def test_distances_are_those_of_the_counts() -> None:
    codes = rows(400, seed=3)
    table = np.zeros((10, 3), dtype=np.int64)  # age, sex: names of a table are sorted
    np.add.at(table, (codes[1], codes[0]), 1)
    told = 2 * table.ravel()  # the same shares of 800 rows ...
    told[4] += 40  # ... but one cell, by 5 % of the rows
    one, age, sex = distances(DOMAIN, codes, 800, [measured(marginal(DOMAIN, "age", "sex"), told)])
    assert (one.about, one.cells) == ("table of age, sex", 30)
    assert one.largest == pytest.approx(0.05)
    assert one.mean == pytest.approx(0.05 / 30)
    assert one.noise == pytest.approx(3 / 800, rel=1e-6)
    assert {age.about, sex.about} == {"age", "sex"}
    by_name = {age.about: age, sex.about: sex}
    assert by_name["sex"].largest == pytest.approx(0.05)
    assert by_name["sex"].noise == pytest.approx(3 * math.sqrt(10) / 800, rel=1e-6)  # a sum of ten cells
    assert by_name["age"].noise == pytest.approx(3 * math.sqrt(3) / 800, rel=1e-6)
    own = measured(marginal(DOMAIN, "sex"), 2 * np.bincount(codes[0], minlength=3))
    both = distances(DOMAIN, codes, 800, [measured(marginal(DOMAIN, "age", "sex"), told), own])
    assert [line.about for line in both] == ["table of age, sex", "table of sex", "age"]  # sex has a table of its own
    share = np.bincount(codes[0], minlength=3) / 400
    assert by_name["sex"].drawing == pytest.approx(math.sqrt(np.mean(share * (1 - share)) / 400))


def test_conditions_and_single_questions_are_compared_too() -> None:
    codes = rows(400, seed=4)
    smokers = codes[3] == 1
    where = tacit.count(smoker=True).bind(DOMAIN)
    table = np.bincount(codes[0][smokers], minlength=3)
    same, overlap = (
        measured(marginal(DOMAIN, "sex", where=where), table),
        measured(marginal(DOMAIN, "smoker", where=where), np.array([0, smokers.sum()])),
    )
    query = tacit.count(sex="F", age=(0, 49)).bind(DOMAIN)
    hits = int(((codes[0] == 0) & (codes[1] < 5)).sum())
    weighed = tacit.weigh("sex", weights=[0.5, 0.25, 0.0]).bind(DOMAIN)
    value = round((0.5 * (codes[0] == 0).sum() + 0.25 * (codes[0] == 1).sum()) * weighed.unit)
    singles = [measured(query, np.array([hits + 8])), measured(weighed, np.array([value]), weighed.unit)]
    found = distances(DOMAIN, codes, 400, [same, overlap, *singles])
    assert [(one.about, one.cells) for one in found] == [
        ("table of sex where smoker = true", 3),
        ("table of smoker where smoker = true", 2),
        ("single questions", 2),
    ]
    assert [round(one.largest, 12) for one in found] == [0.0, 0.0, 0.02]
    assert found[-1].mean == pytest.approx(0.01)


def test_a_session_says_how_far_its_rows_are(tmp_path: Path) -> None:
    people = pd.DataFrame({"sex": ["F", "M", "M", "M"] * 500, "age": np.arange(2000) % 100})
    domain = DOMAIN.project(["sex", "age"])
    settings = {"domain": domain, "budget": tacit.Budget(epsilon=20.0, delta=0.0), "ledger": tmp_path / "p.tacit"}
    with tacit.open(start=True, data=people, mechanism="histogram", **settings) as session:
        session.table("sex")
        spent = session.spent
        made = session.synthetic(20_000)
        assert session.spent == spent
    cells, sex, age = sorted(made.distances, key=lambda one: ("table of age, sex", "sex", "age").index(one.about))
    assert cells.cells == 30
    assert max(sex.largest, age.largest) < 6 * math.hypot(sex.noise, sex.drawing) + 0.01
    assert "on average over 43 cells" in made.note
    assert made.note in repr(made)
    assert escape(made.note) in made._repr_html_()
    # A control: rows that ignore what was released are far off.
    wrong = Synthetic.of(domain, [np.zeros(20_000, dtype=np.intp)] * 2, 2000, made.released)
    assert max(one.largest for one in wrong.distances) > 0.5
    assert Synthetic.of(domain, made.codes).distances == ()
    assert "no released table" in Synthetic.of(domain, made.codes).note
