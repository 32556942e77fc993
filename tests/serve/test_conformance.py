"""One list of questions at every door: a session, a published file, the HTTP client and PostgreSQL's protocol.

Through all of them an answer is the same, field by field: values, bars, confidences, sources, costs, receipts, notes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from bridge import bridge
from serving import Served, running, write_config

import seeded_noise
import tacit
from tacit import Client, Session, count, largest_mean, matching, quantile_distance, stump, weigh
from tacit.config import read_config
from tacit.model.answer import bar_words
from tacit.model.table import Listing, Table
from tacit.serve.admission import Limits

Asker = Session | Client
HALVES = [1.0, 0.5, 0.25, 0, 0, 0, 0, 0, 0, 1]
STATEMENTS = [
    "SELECT COUNT(*) FROM data",
    "SELECT COUNT(*) FROM data WHERE sex = 'F' AND age BETWEEN 20 AND 39",
    "SELECT COUNT(*) FROM data WHERE sex = 'F' OR age < 30 AND NOT active",
    "SELECT COUNT(*) AS women FROM data WHERE sex = 'F'",
    "SELECT AVG(pay) FROM data WHERE sex = 'F'",
    "SELECT SUM(pay) FROM data",
    "SELECT SUM(CASE WHEN sex = 'F' THEN pay ELSE 0 END) FROM data",
    "SELECT STDDEV(pay) FROM data WHERE active",
    "SELECT ROUND(AVG(age), 1) FROM data",
    "SELECT COUNT(*) FILTER (WHERE active) / COUNT(*) AS share FROM data",
    "SELECT MEDIAN(age) FROM data",
    "SELECT MEDIAN(age) FROM data WHERE active",
    "SELECT STUMP(age, sex) FROM data",
    "SELECT sex, COUNT(*) FROM data GROUP BY sex",
    "SELECT sex, active, COUNT(*) FROM data WHERE age >= 20 GROUP BY sex, active",
    "SELECT sex, COUNT(*) AS n, AVG(pay) FROM data GROUP BY sex ORDER BY n DESC LIMIT 1",
    "SELECT sex, COUNT(*) AS n, ERROR(n), LOW(n), HIGH(n), CONFIDENCE() FROM data GROUP BY sex",
    "SELECT sex, COUNT(*), MEDIAN(age) AS m FROM data GROUP BY sex ORDER BY m",
    "SELECT FLOOR(age / 20) * 20 AS twenties, COUNT(*) FROM data GROUP BY twenties",
    "SELECT sex, COUNT(*) AS n FROM data GROUP BY sex HAVING n > 1000000",
    "SELECT CASE WHEN age < 20 THEN 'young' ELSE 'old' END AS band, COUNT(*), AVG(pay) FROM data GROUP BY band",
    "SELECT DISTINCT age FROM data",
    "SELECT CASE WHEN COUNT(*) > 10 THEN 'many' ELSE 'few' END AS size, COUNT(*), sex FROM data GROUP BY sex",
    "WITH t AS (SELECT sex, active, COUNT(*) AS n FROM data GROUP BY 1, 2) SELECT MAX(n), sex FROM t GROUP BY sex",
]
BARS = [
    f"SELECT {value} AS x, ERROR(x), LOW(x), HIGH(x), CONFIDENCE() FROM data WHERE {where}"
    for value in ("COUNT(*)", "AVG(pay)", "SUM(pay)", "STDDEV(pay)")
    for where in ("sex = 'F'", "active AND age >= 20")
]
METHODS: dict[str, Callable[[Asker], Any]] = {
    "count": lambda at: at.ask(count(sex="F", age=[20, 45], pay=(0, 20))),
    "either": lambda at: at.ask(count(sex="F") | ~count(age=(20, 39))),
    "bound": lambda at: at.ask(count(active=True, sex="M").bind(at.domain)),
    "weights": lambda at: at.ask(weigh("age", weights=HALVES) & count(sex="F")),
    "within": lambda at: at.ask("SELECT COUNT(*) FROM data WHERE NOT active", within=40),
    "many": lambda at: at.ask_many([STATEMENTS[1], "SELECT COUNT(*) FROM data WHERE pay < 10", count(active=True)]),
    "a statistic among many": lambda at: at.ask_many([count(sex="M"), stump("age", predicts="active")]),
    "table": lambda at: at.table("age", "sex", where="pay < 20"),
    "fraction": lambda at: at.fraction("active", given=count(sex="F")),
    "sum": lambda at: at.sum("age", where="sex = 'F'"),
    "mean": lambda at: at.mean("pay"),
    "mean of some": lambda at: at.mean("age", where=count(sex="M")),
    "variance": lambda at: at.variance("age", sample=False),
    "stddev": lambda at: at.stddev("pay", where="active"),
    "covariance": lambda at: at.covariance("age", "pay", sample=False),
    "correlation": lambda at: at.correlation("age", "pay", where="sex = 'F'"),
    "cdf": lambda at: at.cdf("age"),
    "sharper cdf": lambda at: at.cdf("pay", share=0.2, strategy="cells"),
    "quantile": lambda at: at.quantile("age", 0.25),
    "quantile of some": lambda at: at.quantile("age", 0.75, where="active"),
    "range": lambda at: at.range("age", 20, 39),
    "rectangle": lambda at: at.rectangle({"age": (20, 59), "pay": (10, 50)}),
    "histogram": lambda at: at.histogram("age", width=20),
    "quantile distance": lambda at: at.ask(quantile_distance("age", 0.5, high=39)),
    "largest mean": lambda at: at.ask(largest_mean("pay", by=["sex", "active"], smallest=0.05)),
    "matching": lambda at: at.ask(matching("sex", "F", "M", on="pay", compatible={5: [15, 30], 15: [5]})),
    "price": lambda at: at.dry_run("SELECT COUNT(*) FROM data WHERE age < 20"),
    "price of weights": lambda at: at.dry_run(weigh("age", weights=HALVES), within=40),
    "parsed": lambda at: at.answer(at.question("SELECT sex, AVG(age) FROM data GROUP BY sex")),
    "status": lambda at: at.status(),
    "history": lambda at: list(at.history),
    "base": lambda at: at.base,
    "started": lambda at: at.started,
    "terms": lambda at: (at.rows, at.total, at.budget, at.confidence, at.domain, at.rows_per_person, at.choice.reason),
}
REFUSED: dict[str, Callable[[Asker], Any]] = {
    "column": lambda at: at.ask("SELECT COUNT(*) FROM data WHERE agee < 30"),
    "value": lambda at: at.ask(count(sex="X")),
    "rows": lambda at: at.ask("SELECT age FROM data"),
    "batch": lambda at: at.ask_many(["SELECT sex, COUNT(*) FROM data GROUP BY sex"]),
    "no batch": lambda at: at.ask_many([]),
    "no question": lambda at: at.ask(17),  # type: ignore[arg-type]
    "order": lambda at: at.cdf("sex"),
    "dear": lambda at: at.ask("SELECT COUNT(*) FROM data WHERE age < 50", within=0.1),
    "nothing": lambda at: at.ask("SELECT COUNT(*) FROM data", within=-1),
    "share": lambda at: at.cdf("age", share=2),
}


SQL: dict[str, Callable[[Asker], Any]] = {sql: partial(lambda sql, at: at.ask(sql), sql) for sql in STATEMENTS + BARS}
ALL = SQL | METHODS


def tried(ask: Callable[[Asker], Any], at: Asker) -> Any:
    """What is answered, or how it is refused."""
    try:
        return ask(at)
    except tacit.TacitError as error:
        return type(error).__name__, error.code, str(error)


def asked(at: Asker) -> dict[str, Any]:
    """Everything, in one order: what is bought first decides what is free later."""
    return {name: tried(ask, at) for name, ask in ALL.items()}


def leaves(of: Any, path: str = "", *, seals: bool) -> Iterator[tuple[str, Any]]:
    """Everything that something consists of, with its type: 158 is not 158.0, and NaN equals itself."""
    if is_dataclass(of) and not isinstance(of, type):
        for field in fields(of):
            yield from leaves(getattr(of, field.name), f"{path}.{field.name}", seals=seals)
    elif isinstance(of, list | tuple):
        yield path, len(of)
        for place, one in enumerate(of):
            yield from leaves(one, f"{path}[{place}]", seals=seals)
    elif isinstance(of, np.ndarray):
        yield path, (of.shape, of.dtype.str)
        yield from leaves(of.ravel().tolist(), path, seals=seals)
    elif isinstance(of, float) and math.isnan(of):
        yield path, "nan"
    elif seals or not path.endswith(".seal"):
        yield path, (type(of).__name__, of)


def same(one: Any, other: Any, *, seals: bool = True) -> None:
    assert type(one) is type(other)
    assert dict(leaves(one, seals=seals)) == dict(leaves(other, seals=seals))
    if hasattr(one, "to_dict") and seals:
        assert one.to_dict() == other.to_dict()
    if hasattr(one, "_repr_html_"):
        assert one._repr_html_() == other._repr_html_()
        assert str(one) == str(other)
    if hasattr(one, "frame") and seals:
        assert one.frame().csv() == other.frame().csv()
        assert one.to_pandas().equals(other.to_pandas())


@dataclass
class Doors:
    """One ledger, everything asked of it once, and three ways to ask again beside the server."""

    served: Served
    local: Session
    client: Client
    published: Session
    first: dict[str, Any]


@pytest.fixture(scope="module", params=["direct", "histogram"])
def doors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    folder = tmp_path_factory.mktemp("doors")
    limits = Limits(rate=1e9, burst=10**9)
    with (
        running(folder, limits=limits, questions=2_000, mechanism=request.param) as served,
        bridge(served) as way,
        tacit.connect(way.url, served.keys["olga"]) as client,
    ):
        seeded_noise.begin()  # whoever draws is imported by now
        first = asked(client)
        asked(client)  # by now all is told that there is to tell
        client.publish(folder / "people.jsonl")
        with read_config(folder / "people.toml").open() as local:
            yield Doors(served, local, client, tacit.read(folder / "people.jsonl"), first)


def test_what_is_bought_through_a_server_is_what_a_session_buys(doors: Doors, tmp_path: Path) -> None:
    """With the same noise two ledgers hold the same; the times in them differ, and so do the seals."""
    config = write_config(tmp_path, questions=2_000, mechanism=doors.local.choice.mechanism)
    with read_config(config).open() as session:
        seeded_noise.begin()
        bought = asked(session)
    assert any(getattr(answer, "source", "") == "measured" for answer in bought.values())
    for name, answer in bought.items():
        same(doors.first[name], answer, seals=False)


@pytest.mark.parametrize("name", ALL)
def test_a_client_tells_what_a_session_tells(doors: Doors, name: str) -> None:
    before = doors.local.spent
    same(tried(ALL[name], doors.client), tried(ALL[name], doors.local))
    assert doors.local.spent == before


@pytest.mark.parametrize("name", ALL)
def test_a_published_file_tells_what_a_session_tells(doors: Doors, name: str) -> None:
    if name.startswith(("price", "base")):  # there is nothing to buy
        return
    there, here = tried(ALL[name], doors.published), tried(ALL[name], doors.local)
    if isinstance(here, tuple) and here[0] == "BudgetExhausted":
        assert there[0] == "NeedsData"
    else:
        same(there, here)


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_session_refuses_a_client_refuses_in_the_same_words(doors: Doors, name: str) -> None:
    with pytest.raises(tacit.TacitError) as of_session:
        REFUSED[name](doors.local)
    with pytest.raises(tacit.TacitError) as of_client:
        REFUSED[name](doors.client)
    assert type(of_client.value) is type(of_session.value)
    assert str(of_client.value) == str(of_session.value)


@pytest.fixture(scope="module")
def wire(doors: Doors) -> Iterator[psycopg.Connection[Any]]:
    given = {"host": "127.0.0.1", "port": doors.served.wire, "user": "olga", "dbname": "people"}
    with psycopg.connect(password=doors.served.keys["olga"], autocommit=True, **given) as client:
        yield client


@pytest.mark.parametrize("statement", STATEMENTS)
def test_the_wire_tells_what_a_session_tells(doors: Doors, wire: psycopg.Connection[Any], statement: str) -> None:
    """Values in its columns; source, cost, confidence and the bar in the notice."""
    answer, notices = tried(ALL[statement], doors.local), list[str | None]()
    if isinstance(answer, tuple):
        with pytest.raises(psycopg.Error, match=re.escape(answer[2].removesuffix(" Nothing was spent."))):
            wire.execute(statement)
        return

    def note(one: psycopg.errors.Diagnostic) -> None:
        notices.append(one.message_primary)

    wire.add_notice_handler(note)
    found = wire.execute(statement).fetchall()
    wire.remove_notice_handler(note)
    same_rows(found, answer)
    assert len(notices) == (0 if answer.source == "public" and not notices else 1)
    for words in notices:
        assert words is not None
        said = bar_words(answer)
        if isinstance(answer, Listing) and answer.titles:  # it has a bar for each column, and none without rows
            said = answer.caption[1:]  # a notice begins with a capital
        assert words.endswith(said.removeprefix("± 0 ")) or said.split(" · ")[0] in words


def same_rows(found: list[Any], answer: Any) -> None:
    """Whether rows of the wire are those of an answer."""
    if isinstance(answer, Table):
        told = [(*names, value) for names, value in answer.rows()]
    elif isinstance(answer, Listing):
        told = [(*row.labels, *row.values) for row in answer.listed]
    else:
        told = [(answer.value,)]
    plain = [tuple(str(v).lower() if isinstance(v, bool) else v for v in row) for row in found]
    assert sorted(map(_spelled, plain)) == sorted(map(_spelled, told))


def _spelled(row: tuple[Any, ...]) -> list[str]:
    """The cells of a row, whatever their order: the wire has them as they were named, Python has labels first."""
    return sorted(f"{cell:.12g}" if isinstance(cell, int | float) else str(cell) for cell in row)


@pytest.mark.parametrize("statement", BARS)
def test_the_bar_is_one_word_away_over_the_wire(doors: Doors, wire: psycopg.Connection[Any], statement: str) -> None:
    over_wire = wire.execute(statement).fetchone()
    assert over_wire is not None
    for at in (doors.local, doors.client, doors.published):
        (row,) = at.ask(statement).listed  # type: ignore[union-attr]
        assert tuple(over_wire) == tuple(None if math.isnan(value) else value for value in row.values)
    value, where = statement.split()[1], statement.split(" WHERE ")[1]
    answer = doors.client.ask(f"SELECT {value} FROM data WHERE {where}")
    # By itself it is worked out in another order, so the last digits may differ: at every door in the same way.
    told = [answer.value, answer.error, *(answer.interval or [None, None]), answer.confidence]  # type: ignore[union-attr]
    assert told == [None if one is None else pytest.approx(one, rel=1e-12) for one in over_wire]
