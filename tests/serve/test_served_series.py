"""A series of blocks at every door of a server: the same answers as here, and quotas and charges of each block."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from bridge import bridge
from serving import Served, running, write_month, write_series
from test_conformance import same, same_rows, tried
from test_page import Site, started
from test_page import ask as click

import seeded_noise
import tacit
from tacit import Client, Series, count
from tacit.config import read_config
from tacit.errors import BudgetExhausted
from tacit.model.budget import Loss
from tacit.serve.admission import Limits
from tacit.serve.key import Key
from tacit.serve.refusal import Refusal
from tacit.serve.series import ServedSeries

LONG = "SELECT COUNT(*) FROM data WHERE stay >= 4"
MONTHS = "SELECT block, COUNT(*) FROM data WHERE stay >= 4 GROUP BY block"
STATEMENTS = [
    "SELECT COUNT(*) FROM data",
    LONG,
    f"{LONG} AND block BETWEEN '2026-01' AND '2026-02'",
    MONTHS,
    "SELECT ward, block, COUNT(*) FROM data GROUP BY ward, block",
    "SELECT block, AVG(stay) FROM data WHERE ward = 'a' GROUP BY block",
    "SELECT MEDIAN(stay) FROM data",
    "SELECT COUNT(*) FILTER (WHERE block = '2026-01') / COUNT(*) AS share FROM data WHERE ward = 'a'",
]
Asker = Series | Client
ALL: dict[str, Callable[[Asker], Any]] = {sql: partial(lambda sql, at: at.ask(sql), sql) for sql in STATEMENTS} | {
    "count": lambda at: at.ask(count(stay=(4, 5), block=["2026-01", "2026-03"])),
    "many": lambda at: at.ask_many([LONG, count(ward="b", block="2026-02")]),
    "table": lambda at: at.table("block", where="stay >= 6"),
    "cdf": lambda at: at.cdf("stay"),
    "quantile": lambda at: at.quantile("stay", 0.25, where="ward = 'a'"),
    "price": lambda at: at.dry_run("SELECT COUNT(*) FROM data WHERE stay = 1 AND block = '2026-01'"),
    "price of what is known": lambda at: at.dry_run(LONG),
    "within": lambda at: at.ask(LONG, within=3),
    "a statistic": lambda at: at.ask("SELECT STUMP(stay, ward) FROM data"),
    "a label that there is not": lambda at: at.ask(count(block="2027-01")),
    "status": lambda at: at.status(),
    "started": lambda at: at.started,
    "base": lambda at: at.base,
    "terms": lambda at: (at.rows, at.total, at.budget, at.confidence, at.domain, at.rows_per_person, at.choice.reason),
    "blocks": lambda at: at.blocks,
}


def asked(at: Asker) -> dict[str, Any]:
    return {name: tried(ask, at) for name, ask in ALL.items()}  # type: ignore[arg-type]


@dataclass
class Doors:
    """One series, asked through a server, and another one of the same rows, asked here with the same noise."""

    served: Served
    client: Client
    first: dict[str, Any]
    here: dict[str, Any]
    local: Series


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    folder, other = tmp_path_factory.mktemp("doors"), tmp_path_factory.mktemp("other")
    limits = Limits(rate=1e9, burst=10**9)
    with (
        running(folder, limits=limits, series=write_series(folder)) as served,
        bridge(served) as way,
        tacit.connect(way.url, served.keys["olga"]) as client,
        read_config(write_series(other)).series() as alone,
        read_config(folder / "stays.toml").series() as local,
    ):
        seeded_noise.begin()
        first = asked(client)
        seeded_noise.begin()
        yield Doors(served, client, first, asked(alone), local)


@pytest.mark.parametrize("name", ALL)
def test_what_a_server_answers_is_what_a_series_answers(doors: Doors, name: str) -> None:
    same(doors.first[name], doors.here[name], seals=False)


@pytest.mark.parametrize("name", ALL)
def test_a_client_tells_what_a_series_tells(doors: Doors, name: str) -> None:
    before = doors.local.status().blocks
    same(tried(ALL[name], doors.client), tried(ALL[name], doors.local), seals=False)  # type: ignore[arg-type]
    assert doors.local.status().blocks == before


@pytest.mark.parametrize("statement", STATEMENTS[:6])
def test_the_wire_tells_what_a_series_tells(doors: Doors, statement: str) -> None:
    given = {"host": "127.0.0.1", "port": doors.served.wire, "user": "olga", "dbname": "stays"}
    with psycopg.connect(password=doors.served.keys["olga"], autocommit=True, **given) as wire:  # type: ignore[arg-type]
        found = wire.execute(statement).fetchall()
    same_rows(found, doors.local.ask(statement))


@pytest.fixture
def stays(tmp_path: Path) -> Iterator[Served]:
    with running(tmp_path, limits=Limits(rate=1e9, burst=10**9), series=write_series(tmp_path)) as served:
        yield served


def spent(served: Served) -> dict[str, float]:
    """What each block's ledger was charged, as the server tells the owner."""
    found = served.olga.get("/v1/stays/budget").json()
    return {one["block"]: one["spent"]["gdp"] for one in found["blocks"]}


def ask(served: Served, question: Any, who: str = "ana") -> Any:
    return served.clients[who].post("/v1/stays/ask", json={"question": question})


def test_a_question_is_charged_to_the_blocks_that_it_is_about_and_once(stays: Served) -> None:
    one = f"{LONG} AND block = '2026-02'"
    assert ask(stays, one).json()["answer"]["source"] == "measured"
    first = spent(stays)
    assert [atoms > 0 for atoms in first.values()] == [False, True, False]
    assert ask(stays, one, "bob").json()["answer"]["source"] == "repeat"
    assert spent(stays) == first
    ask(stays, LONG)
    assert len(set(spent(stays).values())) == 1  # of 2026-02 it was known
    assert spent(stays)["2026-02"] == first["2026-02"]
    assert ask(stays, MONTHS, "rea").status_code == 200  # for a reader: all of it is known
    refused = ask(stays, "SELECT COUNT(*) FROM data WHERE stay = 1", "rea")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "would_spend")
    assert len(set(spent(stays).values())) == 1


def test_a_quota_is_of_each_block(stays: Served, tmp_path: Path) -> None:
    """mia may spend a tenth: of 40 questions four in each month, and in a new month four again."""
    kinds = [f"SELECT COUNT(*) FROM data WHERE stay = {i} AND block = '{{}}'" for i in range(6)]
    said = [ask(stays, kind.format("2026-01"), "mia").status_code for kind in kinds]
    assert said == [200] * 4 + [403] * 2
    assert [ask(stays, kind.format("2026-02"), "mia").status_code for kind in kinds] == [200] * 4 + [403] * 2
    over = ask(stays, "SELECT COUNT(*) FROM data WHERE stay = 7", "mia").json()["error"]
    assert (over["code"], over["nothing_spent"]) == ("quota", True)
    assert spent(stays)["2026-03"] == 0
    with read_config(tmp_path / "stays.toml").series() as series:
        series.append(str(write_month(tmp_path, 4)), "2026-04")
    assert [ask(stays, kind.format("2026-04"), "mia").status_code for kind in kinds] == [200] * 4 + [403] * 2
    quota = stays.mia.get("/v1/stays/budget").json()["quota"]
    assert quota["share"] == 0.1
    assert quota["used"]["gdp"] == pytest.approx(quota["of"]["gdp"])
    most = max(spent(stays).values())
    assert most == pytest.approx(quota["of"]["gdp"])
    batch = [kind.format("2026-03") for kind in kinds]
    found = stays.mia.post("/v1/stays/ask_many", json={"questions": batch})
    assert (found.status_code, found.json()["error"]["code"]) == (403, "quota")
    assert spent(stays)["2026-03"] <= quota["of"]["gdp"] * (1 + 1e-9)


def test_what_was_paid_before_a_refusal_is_said_and_counted(stays: Served) -> None:
    """2026-01 is used up for mia and the others are not: whoever comes first is charged, and that is said."""
    for i in range(4):
        ask(stays, f"SELECT COUNT(*) FROM data WHERE stay = {i} AND block = '2026-03'", "mia")
    over = ask(stays, "SELECT COUNT(*) FROM data WHERE stay = 7", "mia").json()["error"]
    assert (over["code"], over["nothing_spent"]) == ("quota", False)
    assert "stays spent" in over["message"]
    after = spent(stays)
    assert after["2026-01"] == after["2026-02"] > 0
    line = stays.olga.get("/v1/stays/audit").json()["audit"][0]
    assert line["refused"] == "quota"
    assert {label: one["gdp"] for label, one in line["blocks"].items()} == {
        label: after[label] for label in ("2026-01", "2026-02")
    }
    data = stays.state.datasets["stays"]
    assert isinstance(data, ServedSeries)
    measure = data.session.total.measure
    used = {label: data._keys.used(f"stays/{label}", "mia") for label in after}
    assert {label: Loss(measure, used[label]).to_dict()["gdp"] for label in used} == after


def test_what_cannot_be_noted_counts_all_the_same(stays: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are withheld while the audit log cannot be written; they are paid for, and mia's quota is used up."""

    def full(file: int, text: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("tacit.serve.audit.os.write", full)
        told = [
            ask(stays, f"SELECT COUNT(*) FROM data WHERE stay = {i} AND block = '2026-01'", "mia") for i in range(6)
        ]
    said = [one.json()["error"]["code"] for one in told]
    assert said == ["audit"] * 4 + ["quota"] * 2
    quota = stays.mia.get("/v1/stays/budget").json()["quota"]
    assert quota["used"]["gdp"] == pytest.approx(spent(stays)["2026-01"])


def test_a_server_that_refuses_half_way_says_that_something_was_spent(
    stays: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = stays.state.datasets["stays"]
    assert isinstance(data, ServedSeries)
    left = data._left

    def gone(key: Key, pot: str) -> int:
        if pot == "stays/2026-02":
            raise Refusal(503, "keys", "The keys cannot be read now.")
        return left(key, pot)

    monkeypatch.setattr(data, "_left", gone)
    said = ask(stays, LONG, "mia").json()["error"]
    assert (said["code"], said["nothing_spent"]) == ("keys", False)
    assert data._keys.used("stays/2026-01", "mia") == data.session.known("2026-01").spent.atoms > 0


def test_a_block_that_is_appended_beside_the_server_is_seen_and_charged_once(stays: Served, tmp_path: Path) -> None:
    before = ask(stays, LONG).json()["answer"]["value"]
    assert len(ask(stays, MONTHS).json()["answer"]["rows"]) == 3
    given = {"host": "127.0.0.1", "port": stays.wire, "user": "ana", "dbname": "stays"}
    with (
        psycopg.connect(password=stays.keys["ana"], autocommit=True, **given) as wire,  # type: ignore[arg-type]
        bridge(stays) as way,
        tacit.connect(way.url, stays.keys["ana"]) as client,
    ):
        assert len(wire.execute(MONTHS).fetchall()) == 3
        assert client.blocks == ["2026-01", "2026-02", "2026-03"]
        with read_config(tmp_path / "stays.toml").series() as series:
            series.append(str(write_month(tmp_path, 4)), "2026-04")
            assert len(wire.execute(MONTHS).fetchall()) == 4  # bought by the server
            once = series.status().blocks[-1].spent
            assert once.atoms > 0
            here: Any = series.ask(MONTHS)  # and known here
            assert here.cost.atoms == 0
            after = ask(stays, LONG).json()["answer"]
            assert (after["source"], after["value"]) == ("repeat", series.ask(LONG).value)  # type: ignore[union-attr]
            assert after["value"] != before
            assert series.status().blocks[-1].spent == once
        assert client.domain["block"].size == 4
        assert client.ask(count(stay=[4, 5, 6, 7], block="2026-04")).value == here.values[-1]  # type: ignore[union-attr]
        assert client.rows == 1600


def test_ledgers_are_those_of_blocks(stays: Served, tmp_path: Path) -> None:
    ask(stays, LONG)
    lines = stays.ana.get("/v1/stays/history", params={"block": "2026-02"}).json()["history"]
    assert len(lines) == 1
    for path in ("history", "published"):
        refused = stays.ana.get(f"/v1/stays/{path}")
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "no_such_block")
        assert "2026-01" in refused.json()["error"]["message"]
    (tmp_path / "one.jsonl").write_bytes(stays.ana.get("/v1/stays/published", params={"block": "2026-02"}).content)
    alone: Any = tacit.read(tmp_path / "one.jsonl").ask(LONG)
    assert alone.value == ask(stays, f"{LONG} AND block = '2026-02'").json()["answer"]["value"]


def test_what_one_question_buys_in_parts_stays_within_the_quota(tmp_path: Path) -> None:
    """Two looks at one block under one cap: the second has what the first left of it."""
    with read_config(write_series(tmp_path, months=1)).series() as series:
        one = series.dry_run("SELECT COUNT(*) FROM data WHERE stay = 1").cost_at_most.atoms
        with series.spending(lambda _: one):
            series.ask("SELECT COUNT(*) FROM data WHERE stay = 1")
            with pytest.raises(tacit.errors.WouldSpend):
                series.ask("SELECT COUNT(*) FROM data WHERE stay = 2")
        assert series.spent.atoms == one
        with series.paying() as paid:
            series.ask("SELECT COUNT(*) FROM data WHERE stay = 2")
        assert paid == {"2026-01": one}


def test_a_wrong_price_lets_nobody_spend(stays: Served) -> None:
    data = stays.state.datasets["stays"]
    assert isinstance(data, ServedSeries)
    before = spent(stays)
    with data.session.free(), pytest.raises(tacit.errors.WouldSpend):
        data.session.ask(LONG)
    assert spent(stays) == before
    assert data.session._ledgers._with_data == set()  # not even its rows are read
    assert ask(stays, LONG).status_code == 200


def test_a_batch_costs_each_block_what_its_questions_cost(stays: Served) -> None:
    batch = [f"SELECT COUNT(*) FROM data WHERE stay = {i}" for i in range(3)]
    found = stays.ana.post("/v1/stays/ask_many", json={"questions": [*batch, batch[0]]}).json()["answers"]
    assert len(found) == 4
    each = found[1]["cost"]["gdp"]
    assert list(spent(stays).values()) == [pytest.approx(3 * each)] * 3


def test_an_error_here_says_what_was_spent_before_it(tmp_path: Path) -> None:
    """The last block is used up: the first two are charged, and nobody is told that nothing was spent."""
    with read_config(write_series(tmp_path)).series() as series:
        last = series.block("2026-03")
        last.cdf("stay", share=1.0)
        with pytest.raises(BudgetExhausted) as refused:
            series.ask("SELECT COUNT(*) FROM data WHERE ward = 'a' AND stay = 2")
        assert not refused.value.nothing_spent
        assert "stays spent" in str(refused.value)
        assert [one.spent.atoms > 0 for one in series.status().blocks] == [True] * 3


def test_a_start_is_bought_of_every_block(tmp_path: Path) -> None:
    path = write_series(tmp_path, months=0)
    path.write_text(
        path.read_text().replace('mechanism = "direct"', 'mechanism = "histogram"').replace("questions = 40", "")
    )
    (tmp_path / "stays.tacit").unlink()
    for name in tmp_path.glob("stays.anchor*"):
        name.unlink()
    with read_config(path).series() as series:
        for number in (1, 2):
            series.append(str(write_month(tmp_path, number)), f"2026-{number:02}")
    with running(tmp_path, series=path) as served:
        assert not served.ana.get("/v1/stays/base").json()["bought"]
        assert ask(served, LONG).json()["error"]["code"] == "not_started"
        assert set(spent(served).values()) == {0}
        assert served.ana.post("/v1/stays/start").status_code == 403
        begun = served.olga.post("/v1/stays/start").json()
        assert begun["bought"]
        assert list(spent(served).values()) == [begun["cost"]["gdp"]] * 2
        assert served.olga.post("/v1/stays/start").json()["cost"]["gdp"] == 0
        assert ask(served, LONG).status_code == 200
        (line,) = (one for one in served.olga.get("/v1/stays/audit").json()["audit"] if "cost" in one)
        assert line["question"] == "start"


def test_a_series_without_blocks_is_not_served(tmp_path: Path) -> None:
    path = write_series(tmp_path, months=0)
    with pytest.raises(tacit.TacitError, match="no block yet"), running(tmp_path, series=path):
        pass


def test_what_is_wrong_with_the_rows_of_a_group_is_for_the_owner_alone(tmp_path: Path) -> None:
    """A file that was changed is refused as for one block: in words that repeat nothing of it."""
    path = write_series(tmp_path, months=0)
    (tmp_path / "stays.tacit").unlink()
    for name in tmp_path.glob("stays.anchor*"):
        name.unlink()
    path.write_text(path.read_text().replace("[blocks]", "[blocks]\nexpected = 3\nwindows = [3]"))
    with read_config(path).series() as series:
        for number in (1, 2, 3):
            series.append(str(write_month(tmp_path, number)), f"2026-{number:02}")
        assert series.groups == ["2026-01 to 2026-03"]
    first, rows = tmp_path / "1.csv", (tmp_path / "1.csv").read_text()
    with running(tmp_path, series=path) as served:
        for text in (
            rows.replace("stay", "secret_study"),
            f"{rows}a,positive\n",
            f"{rows}zzz,3\n",
            f"{rows}a,3\n",
            None,
        ):
            first.unlink(missing_ok=True)
            if text is not None:
                first.write_text(text)
            window, block = (ask(served, f"{LONG} AND block <= '2026-0{last}'") for last in (3, 1))
            assert (window.status_code, window.json()) == (block.status_code, block.json())
            assert window.status_code in (500, 503)
        first.write_text(rows)
        assert ask(served, LONG).status_code == 200


# -- pages -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with started(tmp_path, {"stays": write_series(tmp_path)}) as found:
        yield found


def test_a_time_series_is_one_click(site: Site, tmp_path: Path) -> None:
    ana = site.browser("ana")
    look = ana.get("/data/stays").text
    assert "1,200 rows in 3 blocks" in look
    assert "2026-01 to 2026-03" in look
    (column,) = re.findall(r'href="(/data/stays\?what=table&amp;by=0)"', look)
    price = ana.get(html.unescape(column)).text
    assert "Free" in price  # how many rows a block has is public
    answer = by_clicking(ana, {"what": "count", "from.2": "4", "to.2": "7"}).text
    (over,) = re.findall(r'href="([^"]*)" class="chip" data-look>Over time', answer)
    shown = ana.get(html.unescape(over)).text
    (figure,) = re.findall(r'<figure class="chart.*?</figure>', shown.partition('id="answer"')[2], re.DOTALL)
    assert figure.count("<path") == 4  # the grid, the axis, the line and its band
    assert "2026-02" in figure
    assert "Over time" not in shown  # it is
    assert "click its bar" not in re.sub(r"<span[^>]*hidden>.*?</span>", "", shown)
    with read_config(tmp_path / "stays.toml").series() as series:
        series.append(str(write_month(tmp_path, 4)), "2026-04")
    assert "2026-01 to 2026-04" in ana.get("/data/stays").text


def test_pages_of_a_series(site: Site) -> None:
    olga = site.browser("olga")
    by_clicking(olga, {"what": "count", "from.2": "4", "to.2": "7"})
    budget = olga.get("/data/stays").text
    assert "Every block has epsilon = 1" in budget
    for label in ("2026-01", "2026-03"):
        assert f"/data/stays/published?block={label}" in budget
        assert olga.get(f"/data/stays/published?block={label}").status_code == 200
        assert olga.get(f"/data/stays/report?block={label}").status_code == 200
    history = olga.get("/data/stays/history").text
    assert "History of 2026-03" in history
    (entry,) = re.findall(r'href="(/data/stays/entry/[^"]+)"', history)
    (other,) = re.findall(
        r'href="(/data/stays/entry/[^"]+)"', olga.get("/data/stays/history", params={"block": "2026-01"}).text
    )
    assert entry != other
    for one in (entry, other, "/data/stays/plan", "/data/stays/audit", "/data/stays/questions", "/keys"):
        assert olga.get(one).status_code == 200
    assert olga.get("/data/stays/history", params={"block": "2027"}).status_code == 404


def by_clicking(browser: Any, fields: dict[str, str]) -> Any:
    return click(browser, {"way": "click", **fields}, "stays")
