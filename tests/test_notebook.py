"""Answers as Python and notebooks take them: as numbers, rows, HTML and pictures of other libraries."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tacit
from support import PATIENCE
from tacit.errors import ConfigError, InvalidQuery

DOMAIN = tacit.Domain({"sex": tacit.category(["F", "M"]), "age": tacit.integer(0, 99, width=10, clamp=True)})


@pytest.fixture
def session(tmp_path: Path) -> Iterator[tacit.Session]:
    (tmp_path / "people.csv").write_text("sex,age\n" + "".join(f"{'FM'[i % 2]},{i % 90}\n" for i in range(500)))
    with tacit.open(
        data=str(tmp_path / "people.csv"), domain=DOMAIN, budget=tacit.Budget(epsilon=5.0, delta=1e-9),
        ledger=tmp_path / "people.tacit", mechanism="direct", questions=10,
    ) as opened:  # fmt: skip
        yield opened


def test_answers_are_numbers_and_rows(session: tacit.Session) -> None:
    count = session.ask("SELECT COUNT(*) FROM data WHERE sex = 'F'")
    assert float(count) == count.value
    table = session.table("sex", "age")
    assert len(table) == 20 == len(list(table))
    assert next(iter(table))[0] == ("F", "0–9")
    listing = session.ask("SELECT sex, COUNT(*) AS n FROM data GROUP BY sex ORDER BY n LIMIT 1")
    assert len(listing) == 1
    none = session.ask("SELECT sex, COUNT(*) AS n FROM data GROUP BY sex ORDER BY n LIMIT 0")
    assert len(none) == 0
    assert none  # an answer without rows is an answer


def test_what_a_notebook_shows(session: tacit.Session) -> None:
    assert "<td>age</td><td>integer</td><td>0 to 99</td><td>10 values</td>" in DOMAIN._repr_html_()
    assert "<b>" not in tacit.Domain({"<b>": tacit.boolean()})._repr_html_()
    dry = session.dry_run("SELECT COUNT(*) FROM data WHERE sex = 'F'")
    assert "at most 10 % of the budget" in dry._repr_html_()
    session.ask("SELECT COUNT(*) FROM data WHERE sex = 'F'")
    session.ask("SELECT COUNT(*) FROM data WHERE age < 10")
    assert "<td>age = 0–9</td>" in session.history._repr_html_()
    assert session.history == list(session.history)
    plan = tacit.plan(rows=500, domain=DOMAIN, budget=session.budget, questions=100)
    assert "<svg" in plan._repr_html_()


class Axes:
    """What is asked of matplotlib's axes."""

    def __init__(self) -> None:
        self.drawn: dict[str, Any] = {}

    def bar(self, places: list[int], values: list[float], *, yerr: Any, capsize: int) -> None:
        self.drawn |= {"places": places, "values": values, "yerr": yerr}

    def set_xticks(self, places: list[int], labels: list[str], *, rotation: int) -> None:
        self.drawn |= {"labels": labels, "upright": rotation == 90}

    def set_ylabel(self, words: str) -> None:
        self.drawn["name"] = words

    def set_title(self, words: str) -> None:
        self.drawn["title"] = words


def test_a_plot_has_the_error_bars(session: tacit.Session) -> None:
    table = session.table("sex")
    drawn = table.plot(ax=Axes()).drawn
    assert drawn["labels"] == ["F", "M"]
    assert not drawn["upright"]
    assert session.table("sex", "age").plot(ax=Axes()).drawn["upright"], "twenty labels have no room side by side"
    assert session.ask("SELECT sex, AVG(age) FROM data GROUP BY sex").plot(ax=Axes()).drawn["name"] == "AVG(age)"
    assert drawn["values"] == table.values.tolist()
    assert drawn["yerr"] == [[table.error] * 2] * 2
    curve = session.cdf("age")
    below, above = curve.plot(ax=Axes()).drawn["yerr"]
    assert len(below) == len(above) == len(curve.values)
    one = session.ask("SELECT COUNT(*) FROM data WHERE sex = 'F'")
    assert one.plot(ax=Axes()).drawn["values"] == [one.value]
    with pytest.raises(InvalidQuery, match="no numbers to draw"):
        session.quantile("age", 0.5).plot(ax=Axes())


def test_a_plot_by_whichever_library_is_there(session: tacit.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    table, axes = session.table("sex"), Axes()
    matplotlib, pyplot = ModuleType("matplotlib"), ModuleType("matplotlib.pyplot")
    pyplot.subplots = lambda **form: (None, axes)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "matplotlib", matplotlib)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", pyplot)
    monkeypatch.setattr("tacit.show.plot.find_spec", lambda name: True if name == "matplotlib" else None)
    assert table.plot() is axes
    monkeypatch.setattr("tacit.show.plot.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="needs matplotlib or altair"):
        table.plot()


def test_every_name_can_be_completed_before_it_was_ever_used() -> None:
    program = "import sys, tacit; assert set(tacit.__all__) <= set(dir(tacit)); assert 'duckdb' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=PATIENCE)
