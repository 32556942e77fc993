"""The pages: each is sound HTML that works without its script, escapes everything, and asks through the same door."""

from __future__ import annotations

import html
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlencode

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from serving import WHO, write_config
from starlette.testclient import TestClient

import tacit
from support import PATIENCE
from tacit.cli import main
from tacit.config import read_config
from tacit.errors import ConfigError, InvalidQuery
from tacit.model import sql
from tacit.model.answer import Answer
from tacit.model.facts import ANSWER, FREE, Bar, Facts
from tacit.model.sql.spelling import column, span
from tacit.model.statistic_check import owned
from tacit.serve.admission import Limits
from tacit.serve.app import LOOPBACK, make_app
from tacit.serve.keys import MAX_SAVED, KeyRing, make_key
from tacit.serve.page import overview, routes
from tacit.serve.page.answer import _barred, panel, ways
from tacit.serve.page.form import FORM_KINDS, Built, clicked, read_built
from tacit.serve.page.link import fields_of, unclicked
from tacit.serve.page.view import Location, _templates, asset
from tacit.serve.refusal import Refusal
from tacit.serve.series import open_data
from tacit.serve.server import Server
from tacit.show.chart.paint import GREY
from tacit.store import rows

BASE = "http://127.0.0.1:8470"
WOMEN = "SELECT COUNT(*) FROM data WHERE sex = 'F'"
SCRIPT = "<script>alert(1)</script>"
ODD_CSV = "kind,day,size\n" + "".join(f"{['plain', SCRIPT][i % 2]},2024-0{1 + i % 3}-15,{i % 9}.5\n" for i in range(90))
ODD = f"""
[data]
source = "odd.csv"
[budget]
epsilon = 3.0
delta = 0.0
[session]
ledger = "odd.tacit"
mechanism = "direct"
questions = 3
anchor = "odd.anchor"
[domain.kind]
kind = "category"
values = ["plain", "{SCRIPT}", "it's"]
missing = "not <b>said</b>"
[domain.day]
kind = "date"
low = 2024-01-01
high = 2024-06-30
by = "month"
[domain.size]
kind = "numeric"
edges = [0, 2, 4, 10]
"""
PLACES = ("", "/history", "/history?free=1", "/plan")


@dataclass
class Site:
    """A running application with pages; a browser for each key, logged in."""

    state: Server
    keys: dict[str, str]
    open: Callable[[], TestClient]

    def browser(self, who: str) -> TestClient:
        client = self.open()
        response = client.post("/login", data={"key": self.keys[who]}, headers={"origin": BASE}, follow_redirects=False)
        assert response.status_code == 303
        return client

    def spent(self, name: str = "people") -> int:
        return self.state.datasets[name].session.spent.atoms


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with started(tmp_path, {"people": write_config(tmp_path)}) as found:
        yield found


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Site]:
    (tmp_path / "odd.csv").write_text(ODD_CSV)
    (tmp_path / "odd.toml").write_text(ODD)
    with started(tmp_path, {"people": write_config(tmp_path), "odd": tmp_path / "odd.toml"}) as found:
        yield found


@contextmanager
def started(folder: Path, configs: dict[str, Path]) -> Iterator[Site]:
    file = folder / "tacit.keys"
    keys = {name: make_key(file, name, role, quota) for name, (role, quota) in WHO.items()}
    ring = KeyRing(file)
    state = Server({n: open_data(n, c, ring) for n, c in configs.items()}, ring, Limits(), LOOPBACK, 8470)
    app = make_app(state, pages=routes({"come-in": keys["ana"]}))
    with TestClient(app, base_url=BASE):
        yield Site(state, keys, lambda: TestClient(app, base_url=BASE))


def ask(client: TestClient, fields: dict[str, Any], name: str = "people", do: str | None = "ask") -> Any:
    sent = fields | ({} if do is None else {"do": do})
    return client.post(f"/data/{name}/ask", data=sent, headers={"origin": BASE})


def by_sql(text: str) -> dict[str, str]:
    return {"way": "sql", "sql": text}


class Sound(HTMLParser):
    """Checks a page as it is read: tags close in order, ids are unique, controls have names, nothing is inline."""

    VOID = frozenset({"meta", "link", "input", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.ids: list[str] = []
        self.wanted: list[str] = []
        self.problems: list[str] = []
        self.headings: list[int] = []
        self.seen: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.seen.add(tag)
        self.ids += [found["id"]] if "id" in found else []
        self.wanted += found.get("for", "").split() + found.get("aria-labelledby", "").split()
        self.wanted += found.get("aria-describedby", "").split()
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag in ("input", "select", "textarea") and found.get("type") != "hidden":
            named = "label" in self.stack or "aria-label" in found or found.get("id") in self.wanted
            if not named:
                self.problems.append(f"{tag} {found} has no label")
        if tag == "script" and set(found) != {"src", "defer"}:
            self.problems.append("a script inside the page")
        if tag == "style" or "style" in found or any(name.startswith("on") for name in found):
            self.problems.append(f"{tag} {found} is forbidden by the policy")
        for name in ("src", "href", "action"):
            if name in found and not found[name].startswith(("/", "#")):
                self.problems.append(f"{tag} goes to {found[name]}")
        if tag == "th" and "scope" not in found:
            self.problems.append("a table's heading without a scope")
        if tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.stack.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.stack or self.stack.pop() != tag:
            self.problems.append(f"</{tag}> closes nothing")


def sound(text: str) -> Sound:
    page = Sound()
    page.feed(text)
    assert not page.problems, page.problems
    assert not page.stack
    assert len(set(page.ids)) == len(page.ids), "an id is used twice"
    assert set(page.wanted) <= set(page.ids), set(page.wanted) - set(page.ids)
    assert page.headings.count(1) == 1 or page.headings[0] == 1
    assert {"main", "header", "footer"} <= page.seen
    assert SCRIPT not in text
    return page


def test_the_checker_sees_what_is_wrong() -> None:
    wrong = [
        "<script>alert(1)</script>",
        '<p style="color:red">x</p>',
        "<p onclick=x>x</p>",
        "<input name=a>",
        "<a href=https://example.org>x</a>",
        "<b><i></b></i>",
        "<table><tr><th>x</th></tr></table>",
    ]
    for text in wrong:
        page = Sound()
        page.feed(text)
        assert page.problems, text


def test_a_key_opens_a_session_and_only_a_key(two: Site) -> None:
    nobody = two.open()
    first = nobody.get("/")
    sound(first.text)
    assert 'name="key"' in first.text
    for place in ("/data/people", "/data/people/history", "/data/people/published", "/data/people/audit"):
        assert nobody.get(place, follow_redirects=False).headers["location"] == "/?" + urlencode({"then": place})
    wrong = nobody.post("/login", data={"key": "tacit_" + "x" * 43}, headers={"origin": BASE})
    assert wrong.status_code == 401
    sound(wrong.text)
    assert "This key is not known" in wrong.text
    ana = two.open()
    entered = ana.post(
        "/login", data={"key": f" {two.keys['ana']}\n"}, headers={"origin": BASE}, follow_redirects=False
    )
    cookie = entered.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert two.keys["ana"] not in entered.headers["set-cookie"]
    assert "Data sets" in ana.get("/").text
    ana.post("/logout", headers={"origin": BASE})
    assert 'name="key"' in ana.get("/").text


def test_an_invitation_opens_once(site: Site) -> None:
    first, second = site.open(), site.open()
    assert "Ask" in first.get("/enter/come-in").text
    again = second.get("/enter/come-in")
    assert again.status_code == 404
    sound(again.text)
    assert 'name="key"' in second.get("/").text
    assert site.open().get("/enter/other").status_code == 404


def test_a_link_shows_what_is_known_and_never_spends(site: Site) -> None:
    ana, session = site.browser("ana"), site.state.datasets["people"].session
    before, link = session.spent, "/data/people?" + urlencode({"sql": "SELECT COUNT(*) FROM data WHERE age >= 40"})
    unknown = ana.get(link)
    sound(unknown.text)
    assert session.spent == before
    assert "At most" in unknown.text
    ask(ana, by_sql("SELECT COUNT(*) FROM data WHERE age >= 40"))
    paid = session.spent
    known = ana.get(link)
    sound(known.text)
    assert paid != before
    assert session.spent == paid
    assert '<span class="badge free">Free</span>' in known.text
    assert ana.get("/data/people?sql=nonsense").status_code == 422


def test_another_site_can_do_nothing(site: Site) -> None:
    ana = site.browser("ana")
    elsewhere: list[dict[str, str]] = [
        {},
        {"origin": "null"},
        {"origin": "https://evil.example"},
        {"origin": BASE, "sec-fetch-site": "same-site"},
    ]
    for headers in elsewhere:
        for path in ("/data/people/ask", "/data/people/price"):
            refused = ana.post(path, data=by_sql(WOMEN) | {"do": "ask"}, headers=headers)
            assert refused.status_code == 403
        assert ana.post("/logout", headers=headers).status_code == 403
        assert site.open().post("/login", data={"key": site.keys["ana"]}, headers=headers).status_code == 403
    assert site.spent() == 0
    assert "Log out" in ana.get("/data/people").text


def test_every_page_is_sound(two: Site) -> None:
    ana = two.browser("ana")
    ask(ana, by_sql("SELECT size, COUNT(*) FROM data GROUP BY size"), "odd")
    ask(ana, by_sql(WOMEN))
    addresses = [f"/data/{name}{place}" for name in two.state.datasets for place in PLACES]
    shown = [(two.browser(who), address) for who in ("ana", "mia", "rea", "olga") for address in addresses]
    for client, address in [*shown, (two.browser("olga"), "/data/people/audit"), (ana, "/")]:
        response = client.get(address)
        assert response.status_code == 200
        sound(response.text)
        assert response.headers["content-security-policy"].startswith(
            "default-src 'none'; script-src 'self'; style-src"
        )
        assert "unsafe" not in response.headers["content-security-policy"]
        assert response.headers["cache-control"] == "no-store"
        assert "Wilhelmina" not in response.text


def test_the_card_and_the_offers_are_sound(tmp_path: Path) -> None:
    """What stands on the page only before the start, and only below an answer that could be sharper."""
    config = write_config(tmp_path, mechanism="histogram", start=False)
    with started(tmp_path, {"people": config}) as site:
        for who in ("olga", "rea"):
            shown = site.browser(who).get("/data/people").text
            assert "Not started yet" in shown
            sound(shown)
    (tmp_path / "other").mkdir()
    with started(tmp_path / "other", {"people": write_config(tmp_path / "other", questions=1000)}) as site:
        shown = ask(site.browser("ana"), by_sql("SELECT COUNT(*)\n FROM data WHERE sex = 'F'")).text
        assert "Sharper, bought by itself" in shown
        sound(shown)


def test_asking_in_sql_and_again_for_nothing(site: Site) -> None:
    ana, rea = site.browser("ana"), site.browser("rea")
    priced = ask(ana, by_sql(WOMEN), do="price")
    assert "At most 5 % of the budget" in priced.text
    assert site.spent() == 0
    assert "Nothing was asked." in ask(ana, by_sql(WOMEN), do=None).text
    assert site.spent() == 0, "who does not say ask spends nothing"
    first = ask(ana, by_sql(WOMEN))
    sound(first.text)
    spent = site.spent()
    assert spent > 0
    headers = {"authorization": f"Bearer {site.keys['ana']}"}
    told = site.open().post("/v1/people/ask", json={"question": WOMEN}, headers=headers).json()["answer"]
    assert f"<strong>{told['value']}</strong> <span>± {told['error']}</span>" in first.text
    assert f"Entry {told['entry']}, seal {told['seal'][:12]}" in first.text
    assert '<span class="badge paid">Paid 5 % of the budget</span>' in first.text
    assert told["says"] == "rough" or f'<span class="badge {told["says"]}">' in first.text  # rough needs no word
    assert "(95%, for this noise)." in first.text
    assert "All error bars" not in first.text  # there is but one
    assert "<svg" in first.text
    again = ask(rea, by_sql(" select count(*) from DATA where sex in ('F') "))
    assert f"<strong>{told['value']}</strong>" in again.text
    assert 'class="badge free"' in again.text
    assert "answered before" in again.text
    assert site.spent() == spent
    assert "Known already and free" in ask(rea, by_sql(WOMEN), do="price").text


def test_all_bars_are_behind_a_word_and_what_says_nothing_is_grey(site: Site) -> None:
    session = site.state.datasets["people"].session
    ask = session.question(WOMEN)
    bars = Bar(30, ANSWER, 0.95), Bar(45, FREE, 0.95)
    facts = Facts("hypothesis", session.total - session.total, 0.95, bars=bars)
    one = Answer("sex = F", 40, facts, (0, 100))
    shown = panel(ask, one, session)
    assert (shown["error"], shown["bars"]) == ("30", ["± 45 (95%, for all free answers at once)"])
    assert shown["said"] == "The truth lies between 10 and 70 (95%, for this answer)."
    # Of a mean by the middles of bins no more is said than that: its values may lie anywhere in them.
    binned = panel(ask, replace(one, facts=facts.within(2), beyond=20.0), session)
    assert binned["says"] == "rough"
    assert binned["said"].startswith("With each value at the middle of its bin, it lies between 38 and 42")
    assert binned["said"].endswith("The values themselves may move it by up to 20 more.")
    for width, word, colour in ((2, "sharp", "0"), (30, "rough", "0"), (70, "nothing", str(GREY))):
        told = panel(ask, replace(one, facts=facts.within(width)), session)
        assert told["says"] == word
        assert f"tc-s-{colour}" in told["chart"].svg(styled=False)
        assert ("tc-s-6" in told["chart"].svg(styled=False)) == (word == "nothing")
    words = {"answer": told | {"bars": shown["bars"]}, "ways": {}, "offers": [], "place": Location(), "query": ""}
    page = _templates().get_template("answer.html").render(words)
    assert '<p class="figure nothing">' in page
    assert "<summary>All error bars</summary>" in page
    assert "Says nothing" in page


def test_bars_stay_within_what_a_value_can_be() -> None:
    bars = _barred(np.array([50.0, -80.0, 120.0]), np.full(3, 60.0), (0, 100), [False, True, True])
    assert [(bar.start, bar.wide) for bar in bars] == [(0, 50), (0, 0), (0, 100)]
    assert [(bar.low, bar.high) for bar in bars] == [(0, 100), (0, 0), (60, 100)]
    assert all(bar.whisker for bar in bars), "also where it is cut down to a point"
    means = _barred(np.array([-1.0, 3.0]), np.array([0.5, 1.0]), (-np.inf, np.inf), [False, False])
    places = [place for bar in means for place in (bar.low, bar.high, bar.start, bar.start + bar.wide)]
    assert min(places) > -1e-9
    assert max(places) < 100 + 1e-9


def test_null_has_no_bar_and_a_bare_value_has_one(site: Site) -> None:
    ana = site.browser("ana")
    for value, filled in (
        ("CASE WHEN COUNT(*) > 20 THEN COUNT(*) END", 2),
        ("CASE WHEN COUNT(*) > 100000 THEN COUNT(*) END", 0),
        ("LOW(COUNT(*))", 2),
    ):
        shown = ask(ana, by_sql(f"SELECT sex, {value} FROM data GROUP BY sex"))
        assert shown.status_code == 200, shown.text
        sound(shown.text)
        assert "nan" not in shown.text.lower().replace("finan", "")
        widths = re.findall(r'<rect x="[\d.]+" y="3" width="([\d.]+)"', shown.text)
        covers = re.findall(r'<path class="paper" d="M0 2H([\d.]+)V18H0zM([\d.]+)', shown.text)
        wide = [float(one) for one in widths] + [float(end) - float(start) for start, end in covers]
        assert sum(one > 0 for one in wide) == filled


CLICKED: list[tuple[dict[str, Any], str]] = [
    ({"what": "count"}, "SELECT COUNT(*) FROM data"),
    ({"what": "count", "in.0": ["0"]}, WOMEN),
    ({"what": "count", "in.0": ["0", "1"]}, "SELECT COUNT(*) FROM data"),
    (
        {"what": "count", "from.1": "20", "to.1": "39", "in.2": "1"},
        "SELECT COUNT(*) FROM data WHERE age BETWEEN 20 AND 39 AND active = TRUE",
    ),
    ({"what": "table", "by": ["0", "2"]}, "SELECT sex, active, COUNT(*) FROM data GROUP BY sex, active"),
    (
        {"what": "table", "by": "1", "from.3": "10", "to.3": "50"},
        "SELECT age, COUNT(*) FROM data WHERE pay >= 10 AND pay < 50 GROUP BY age",
    ),
    ({"what": "quantile", "of": "1", "q": ".9"}, "SELECT QUANTILE_CONT(age, 0.9) FROM data"),
    ({"what": "mean", "of": "1", "to.3": "20"}, "SELECT AVG(age) FROM data WHERE pay < 20"),
    ({"what": "sum", "of": "1", "from.1": "50"}, "SELECT SUM(age) FROM data WHERE age >= 50"),
    ({"what": "stddev", "of": "1"}, "SELECT STDDEV(age) FROM data"),
    ({"what": "variance", "of": "1"}, "SELECT VARIANCE(age) FROM data"),
    ({"what": "stump", "of": "1", "told": "2"}, "SELECT STUMP(age, active) FROM data"),
    (
        {"what": "quantile_distance", "of": "1", "q": "0.5", "from.1": "20", "to.1": "39"},
        "SELECT QUANTILE_DISTANCE(age, 0.5, 20, 39) FROM data",
    ),
    (
        {"what": "quantile_distance", "of": "1", "q": "0.5", "to.1": "39"},
        "SELECT QUANTILE_DISTANCE(age, 0.5, NULL, 39) FROM data",
    ),
    ({"what": "stump", "of": "1", "told": "0.1"}, "SELECT STUMP(age, sex, 'M') FROM data"),
    (
        {"what": "largest_mean", "of": "1", "by": ["0", "2"], "smallest": "0.1"},
        "SELECT LARGEST_MEAN(age, sex, active, 0.1) FROM data",
    ),
    (
        {"what": "matching", "left": "0.0", "right": "0.1", "on": "1"},
        "SELECT MATCHING(sex, 'F', 'M', age) FROM data",
    ),
]


def test_clicking_stands_for_sql(site: Site) -> None:
    ana = site.browser("ana")
    for fields, statement in CLICKED:
        _click_and_write(site, ana, fields, statement)


def test_the_owners_statistics_are_clicked_by_their_words(site: Site) -> None:
    ana, domain = site.browser("ana"), site.state.datasets["people"].session.domain
    with mock.patch.dict(owned, clear=True):
        assert 'value="statistic"' not in ana.get("/data/people").text, "nothing is offered where none was registered"

        @tacit.statistic("the page's own", domain, "sex", arguments=[(1,), (2,)])
        def largest(tables: Any, times: int) -> Any:
            return tables.max(axis=1) // times

        shown = ana.get("/data/people").text
        sound(shown)
        assert "the page's own of sex (2)" in html.unescape(shown)
        _click_and_write(
            site, ana, {"what": "statistic", "own": "1"}, "SELECT STATISTIC('the page''s own', 2) FROM data"
        )


WRONG_STATISTICS = [
    ({"what": "largest_mean", "of": "1"}, "the largest mean is of one attribute or more: tick them"),
    ({"what": "largest_mean", "of": "1", "by": "0", "smallest": "5"}, "a share of all rows above 0 and below 1"),
    ({"what": "matching", "left": "0.0", "right": "2.1", "on": "1"}, "values of one attribute"),
    ({"what": "matching", "left": "0.0", "right": "0.1"}, "what fits: choose them"),
    ({"what": "matching", "left": "0.0", "right": "0.1", "on": "1", "in.0": "1"}, "is about all rows"),
    ({"what": "matching", "left": "0.77", "right": "0.1", "on": "1"}, "does not fit this data set"),
    ({"what": "statistic"}, "choose one"),
    ({"what": "statistic", "own": "99"}, "does not fit this data set"),
]


def test_a_statistic_that_is_not_put_together_is_refused_with_what_is_missing(site: Site) -> None:
    ana = site.browser("ana")
    for fields, words in WRONG_STATISTICS:
        refused = ask(ana, {"way": "click", **fields})
        assert refused.status_code in (400, 422), fields
        assert words in refused.text, fields
    assert site.spent() == 0


def _click_and_write(site: Site, ana: TestClient, fields: dict[str, Any], statement: str) -> None:
    spent = site.spent()
    priced = ask(ana, {"way": "click", **fields}, do="price")
    assert site.spent() == spent
    shown = re.findall(r'<code class="sql" data-stands>([^<]+)</code>', priced.text)
    assert [html.unescape(one) for one in shown] == [statement]
    told = ana.post("/data/people/price", data={"way": "click", **fields}, headers={"origin": BASE}).json()
    assert told["sql"] == statement
    clicked = ask(ana, {"way": "click", **fields})
    assert clicked.status_code == 200, clicked.text
    sound(clicked.text)
    spent, before = site.spent(), re.findall(r"<strong>(.*?)</strong>|<td[^>]*>(.*?)</td>", clicked.text)
    written = ask(ana, by_sql(statement))
    assert site.spent() == spent, "the same question in SQL is free"
    assert re.findall(r"<strong>(.*?)</strong>|<td[^>]*>(.*?)</td>", written.text) == before


def test_a_distribution_is_drawn_with_its_band(site: Site) -> None:
    ana = site.browser("ana")
    curve = ask(ana, {"way": "click", "what": "cdf", "of": "1"})
    sound(curve.text)
    assert "All of the curve is within" in curve.text
    assert "95 %, all at once" in curve.text
    assert "cdf(&#39;age&#39;)" in curve.text
    for fields, words in (
        ({"what": "cdf"}, "choose it"),
        ({"what": "cdf", "of": "1", "in.0": "0"}, "take the conditions away"),
        ({"what": "table"}, "tick them"),
        ({"what": "quantile", "of": "1", "q": "2"}, "above 0 and below 1"),
        ({"what": "count", "from.1": "23"}, "nearest bin edges"),
        ({"what": "count", "from.1": "1 OR 1=1"}, "age takes 0 to 99"),
        ({"what": "count", "in.0": "7"}, "load the page again"),
        ({"what": "count", "in.99": "0"}, "load the page again"),
        ({"what": "all"}, "what is one of"),
    ):
        refused = ask(ana, {"way": "click", **fields})
        assert refused.status_code in (400, 422), fields
        assert words in refused.text
        assert "Nothing was spent." in refused.text
        sound(refused.text)


WEIRD = tacit.Domain(
    {
        "sex": tacit.category(["F", "M"], missing="unknown"),
        "age": tacit.integer(0, 99, width=10, missing="none given"),
        "select": tacit.category([0, 25, -50], other="else"),
        "ok": tacit.boolean(),
        "pay": tacit.numeric([-1.5, 0, 10, 1e17], other="beyond"),
        "date": tacit.date("2020-01-01", "2020-12-31", by="month"),
        'we"ird <b>': tacit.category([SCRIPT, "it's", "-- x"]),
        "größe": tacit.integer(0, 1),
    }
)


@drawn(st.data())
@settings(max_examples=80)
def test_whatever_is_clicked_means_what_python_means(data: st.DataObject) -> None:
    fields: list[tuple[str, str]] = []
    cells: dict[str, set[int]] = {}
    for place, (name, attribute) in enumerate(WEIRD.items()):
        if attribute.ordered and data.draw(st.booleans()):
            first = data.draw(st.integers(0, attribute.bins - 1))
            last = data.draw(st.integers(first, attribute.bins - 1))
            fields += [(f"from.{place}", span(attribute, first)[0]), (f"to.{place}", span(attribute, last)[1])]
            cells[name] = set(range(first, last + 1))
        choices = range(attribute.bins if attribute.ordered else 0, attribute.size)
        if len(choices):
            ticked = data.draw(st.sets(st.sampled_from(choices)))
            fields += [(f"in.{place}", str(i)) for i in ticked]
            if ticked:
                cells[name] = cells.get(name, set()) | ticked
    built = read_built(fields, WEIRD)
    statement = clicked(built, WEIRD)
    assert isinstance(statement, str)
    query = sql.parse(statement, WEIRD).query
    expected = tacit.count()
    for name, chosen in cells.items():
        parts = [_cell(name, i) for i in sorted(chosen)]
        either = parts[0]
        for other in parts[1:]:
            either = either | other
        expected = expected & either
    assert query.key == expected.bind(WEIRD).key


def _cell(name: str, place: int) -> Any:
    attribute = WEIRD[name]
    if place < attribute.bins and attribute.ordered:
        read = {"integer": int, "numeric": float, "date": str}[attribute.kind]
        return tacit.count(**{name: tuple(map(read, span(attribute, place)))})
    return tacit.count(**{name: attribute.typical(place) if place < attribute.bins else attribute.label(place)})


@drawn(st.data())
@settings(max_examples=60)
def test_what_is_written_is_shown_as_what_would_be_clicked(data: st.DataObject) -> None:
    """SQL that the form can say is shown by the form, a link leads back to it, and the rest is left as it is."""
    among, ends = {}, {}
    for name, attribute in WEIRD.items():
        if attribute.ordered and data.draw(st.booleans()):
            first = data.draw(st.integers(0, attribute.bins - 1))
            last = data.draw(st.integers(first, attribute.bins - 1))
            ends[name] = span(attribute, first)[0], span(attribute, last)[1]
        choices = range(attribute.bins if attribute.ordered else 0, attribute.size)
        ticked = data.draw(st.sets(st.sampled_from(choices))) if len(choices) else set()
        if ticked and len(ticked) < attribute.size:
            among[name] = frozenset(ticked)
    by = tuple(data.draw(st.lists(st.sampled_from(WEIRD.names), min_size=1, max_size=2, unique=True)))
    # Of values that no row lacks: those of the rows that lack them are refused.
    of_one = ["quantile", *(name for name, kind in FORM_KINDS.items() if kind.asks is not None)]
    whats: list[dict[str, Any]] = [{"what": "count"}, {"what": "table", "by": by}]
    what = data.draw(st.sampled_from([*whats, *({"what": name, "of": "größe"} for name in of_one)]))
    built = Built(among=among, ends=ends, **what)
    assert clicked(read_built(list(fields_of(built, WEIRD)), WEIRD), WEIRD) == clicked(built, WEIRD)
    ask = sql.parse(str(clicked(built, WEIRD)), WEIRD)
    again = unclicked(ask, WEIRD)
    assert again is not None
    assert again.what == built.what
    assert sql.parse(str(clicked(again, WEIRD)), WEIRD) == ask
    other = sql.parse("SELECT COUNT(*) FROM data WHERE sex = 'F' OR ok = TRUE", WEIRD)
    assert unclicked(other, WEIRD) is None


def test_names_are_quoted_only_where_they_must_be() -> None:
    assert [column(name) for name in ("age", "select", "a b", 'x"y')] == ["age", '"select"', '"a b"', '"x""y"']
    with pytest.raises(Refusal):
        read_built([("by", "8")], WEIRD)
    with pytest.raises(InvalidQuery):
        clicked(Built("mean"), WEIRD)


def test_everything_is_escaped(two: Site) -> None:
    ana = two.browser("ana")
    for text in (
        f"SELECT COUNT(*) FROM data WHERE kind = '{SCRIPT}'",
        f"SELECT COUNT(*) FROM data WHERE kind = '{SCRIPT}x'",
        f'SELECT COUNT(*) FROM data WHERE "{SCRIPT}" = 1',
        f"SELECT {SCRIPT}",
        "</textarea><script>alert(1)</script>",
        "SELECT kind, COUNT(*) FROM data GROUP BY kind",
    ):
        for do in ("price", "ask"):
            page = ask(ana, by_sql(text), "odd", do)
            sound(page.text)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.text
    missing = ana.get("/data/<script>alert(1)")
    assert missing.status_code == 404
    sound(missing.text)
    assert "<script>alert" not in missing.text
    sound(ask(ana, {"way": "click", "what": SCRIPT}).text)
    sound(ask(ana, {"way": "click", "what": "quantile", "of": "1", "q": SCRIPT}).text)
    sound(ask(ana, {"way": "click", "what": "count", "from.1": SCRIPT}).text)
    assert SCRIPT not in ana.get("/data/people/history?before=<script>").text
    words = ana.get("/data/odd/words")
    assert words.headers["content-type"] == "application/json"
    assert words.headers["x-content-type-options"] == "nosniff"
    assert [c["name"] for c in words.json()["columns"]] == ["kind", "day", "size"]
    assert words.json()["columns"][0]["values"] == ["'plain'", f"'{SCRIPT}'", "'it''s'", "'not <b>said</b>'"]


def test_roles(site: Site) -> None:
    ana, rea, olga = (site.browser(who) for who in ("ana", "rea", "olga"))
    unknown = ask(rea, by_sql(WOMEN))
    assert unknown.status_code == 403
    assert "Not known yet" in unknown.text
    assert "It never spends." in unknown.text
    assert site.spent() == 0
    told = rea.post("/data/people/price", data=by_sql(WOMEN), headers={"origin": BASE}).json()
    assert told["level"] == "much"
    ask(ana, by_sql(WOMEN))
    assert ask(rea, by_sql(WOMEN)).status_code == 200
    for client in (ana, rea):
        assert client.get("/data/people/audit").status_code == 403
        history = client.get("/data/people/history").text
        assert "sex = " in history  # a question and its complement are one purchase
        assert "<td>ana</td>" not in history
    assert "<td>ana</td>" in olga.get("/data/people/history").text
    log = olga.get("/data/people/audit").text
    assert "<td>rea</td>" in log
    assert "refused: would_spend" in log
    assert "Your quota is 10 % of it" in site.browser("mia").get("/data/people").text


def test_a_quota_of_nothing_that_was_left_is_used_up(tmp_path: Path) -> None:
    with started(tmp_path, {"people": write_config(tmp_path, mechanism="histogram", start=False)}) as site:
        people = site.state.datasets["people"]
        assert people.start(site.state.ring.all()[-1]).result(PATIENCE).bought
        site.keys["late"] = make_key(tmp_path / "tacit.keys", "late", "analyst")
        late = site.browser("late")
        for address in ("/data/people", "/"):
            shown = late.get(address)
            assert shown.status_code == 200
            assert "Your quota is 0 % of it, and 100 % of that is used." in shown.text


def test_a_used_up_budget_is_said_clearly(two: Site) -> None:
    ana = two.browser("ana")
    values = ("plain", "it''s", SCRIPT)
    for value in values:
        assert ask(ana, by_sql(f"SELECT COUNT(*) FROM data WHERE kind = '{value}'"), "odd").status_code == 200
    more = ask(ana, by_sql("SELECT COUNT(*) FROM data WHERE size < 2"), "odd")
    assert more.status_code == 409
    sound(more.text)
    for words in ("The budget does not allow it", "Nothing was spent.", "<code>budget_exhausted</code>"):
        assert words in more.text
    assert "The budget is used up." in ana.get("/data/odd").text
    assert "more than is left" in ask(ana, by_sql("SELECT COUNT(*) FROM data WHERE size < 2"), "odd", "price").text
    again = ask(ana, by_sql("SELECT COUNT(*) FROM data WHERE kind = 'plain'"), "odd")
    assert 'class="badge free"' in again.text
    session = two.state.datasets["odd"].session
    larger = replace(session.budget, epsilon=2 * session.budget.epsilon)
    entry = session.extend(larger).receipt.entry
    page = ana.get("/data/odd").text
    sound(page)
    assert "The budget is used up." not in page
    assert f": raised to epsilon = {larger.epsilon:g} on " in page
    assert f"(entry {entry})" in page
    assert ask(ana, by_sql("SELECT COUNT(*) FROM data WHERE size < 2"), "odd").status_code == 200


def test_history_comes_in_pages(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    ana = site.browser("ana")
    session = site.state.datasets["people"].session
    for age in range(0, 90, 10):
        session.ask(f"SELECT COUNT(*) FROM data WHERE age BETWEEN {age} AND {age + 9}")
    from tacit.serve.page import view

    monkeypatch.setattr(view, "_PAGE", 4)
    read = list[int]()
    line_of = rows.line_of
    monkeypatch.setattr(rows, "line_of", lambda row: read.append(row[0]) or line_of(row))
    first = ana.get("/data/people/history").text
    assert first.count("<tr>") == view._PAGE + 1
    assert "?before=" in first
    assert len(read) <= 2 * (view._PAGE + 1)  # of nine purchases, with an intent each
    monkeypatch.undo()
    newest = session.history[-1].receipt.entry
    second = ana.get(f"/data/people/history?before={newest}").text
    assert f">{newest}<" not in second
    assert second.count("<tr>") == 9
    assert "Newest" in second


def test_the_same_answer_elsewhere(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ana = site.browser("ana")
    statement = "SELECT COUNT(*) FROM data WHERE sex = 'F' -- isn't it \\ \"odd\""
    shown = ask(ana, by_sql(statement)).text
    curve = ask(ana, {"way": "click", "what": "cdf", "of": "1"}).text
    value = re.search(r"<strong>(\d+)</strong>", shown)
    assert value is not None
    file = ana.get("/data/people/published")
    assert 'filename="people.tacit.jsonl"' in file.headers["content-disposition"]
    (tmp_path / "people.tacit.jsonl").write_bytes(file.content)
    monkeypatch.chdir(tmp_path)
    for given, page in ((statement, shown), ({"cdf": "age"}, curve)):
        texts = ways(given, "people", BASE)
        for text in texts.values():
            assert text in html.unescape(page), "the page shows what is tested"
        said = subprocess.run([sys.executable, "-c", texts["Python"]], capture_output=True, text=True, check=True)
        by_cli = CliRunner().invoke(main, shlex.split(texts["Command line"])[1:])
        assert by_cli.exit_code == 0, by_cli.output
        if given == statement:
            assert said.stdout.startswith(value[1])
            assert value[1] in by_cli.output
        else:
            assert "cumulative counts of age" in said.stdout
        words = shlex.split(texts["curl"].replace("$TACIT_KEY", site.keys["ana"]))
        assert words[-1] == f"{BASE}/v1/people/ask"
        headers = dict(words[i + 1].split(": ", 1) for i, word in enumerate(words) if word == "-H")
        body = words[words.index("-d") + 1].encode()
        answer = site.open().post("/v1/people/ask", content=body, headers=headers).json()["answer"]
        assert answer["cost"] == {"gdp": 0.0}
        if given == statement:
            assert str(answer["value"]) == value[1]


def links(text: str, mark: str) -> list[str]:
    return [html.unescape(one) for one in re.findall(rf'<a (?:class="away" )?href="([^"]+)" {mark}', text)]


def test_columns_show_what_is_known_and_looking_is_free(site: Site) -> None:
    ana = site.browser("ana")
    assert ana.get("/data/people").text.count("not known yet") == 4
    ask(ana, by_sql("SELECT age, COUNT(*) FROM data GROUP BY age"))
    spent, shown = site.spent(), ana.get("/data/people").text
    assert shown.count("not known yet") == 3
    assert shown.count('class="small-picture') == 1
    assert "0 to 99 in steps of 10" in shown
    known = ana.get(links(shown, "data-look")[1]).text
    assert 'class="badge free"' in known
    assert known.count('<path class="whisker"') == 10
    unknown = ana.get(links(shown, "data-look")[0])
    assert "At most 5 % of the budget" in unknown.text
    assert "Ask it" in unknown.text
    assert site.spent() == spent
    sound(unknown.text)


def test_small_pictures_follow_the_conditions_where_that_is_free(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "small", lambda table: table.question)  # noise may draw two tables alike

    def paths(text: str) -> list[tuple[str, str]]:
        return re.findall(r'<svg class="small-picture([^"]*)".*?<path d="([^"]*)"', text)

    ana, women = site.browser("ana"), {"what": "count", "in.0": "0"}
    ask(ana, by_sql("SELECT age, COUNT(*) FROM data GROUP BY age"))
    whole, chosen = (ana.get("/data/people", params=params).text for params in ({}, women))
    assert "Pictures show" not in whole
    assert "Pictures show all rows: of the chosen ones no table is known." in chosen
    assert paths(whole) == [("", "table of age")]
    assert paths(chosen) == [(" pale", "table of age")]
    folder = tmp_path / "known"
    folder.mkdir()
    with started(folder, {"people": write_config(folder, mechanism="histogram", start=True)}) as everything:
        everything.state.datasets["people"].session.start()
        ana, spent = everything.browser("ana"), everything.spent()
        chosen = ana.get("/data/people", params=women).text
        assert "Pictures show the chosen rows." in chosen
        # A condition on a column is not one on its own picture, which leads to its other values.
        others = [("", f"table of {name} where sex = F") for name in ("age", "active", "pay")]
        assert paths(chosen) == [("", "table of sex"), *others]
        assert everything.spent() == spent
        sound(chosen)


def test_a_bar_leads_to_its_rows_and_chips_lead_back(site: Site) -> None:
    ana = site.browser("ana")
    table = ask(ana, by_sql("SELECT age, COUNT(*) FROM data WHERE sex = 'F' GROUP BY age")).text
    drills = re.findall(r'href="([^"]+)" data-look data-drill>([^<]+)<', table)
    assert [label for _, label in drills] == [f"{age}–{age + 9}" for age in range(0, 100, 10)]
    rows = ana.get(html.unescape(drills[2][0])).text
    sound(rows)
    assert "SELECT COUNT(*) FROM data WHERE sex = &#39;F&#39; AND age BETWEEN 20 AND 29" in rows
    assert "age: <span data-chosen>20 to 29</span>" in rows
    women = ana.get(links(rows, 'data-look aria-label="Take away')[1]).text
    assert "SELECT COUNT(*) FROM data WHERE sex = &#39;F&#39;" in women
    other = ana.get(next(one for one in links(rows, "data-look") if "by=2" in one)).text
    assert (
        "SELECT active, COUNT(*) FROM data WHERE sex = &#39;F&#39; AND age BETWEEN 20 AND 29 GROUP BY active" in other
    )
    adding = ana.get("/data/people?what=count&in.0=0&add=3&do=filter").text
    sound(adding)
    assert '<details class="condition" open>' in adding
    assert "Ask something" not in adding


def test_what_a_condition_rules_out_is_not_drawn(site: Site) -> None:
    both = ask(
        site.browser("ana"), by_sql("SELECT sex, age, COUNT(*) FROM data WHERE sex = 'F' GROUP BY sex, age")
    ).text
    assert "Numbers: 10 rows" in both or both.count("data-drill") == 10
    assert ">M<" not in re.sub(r"<form.*?</form>", "", both, flags=re.DOTALL)


def test_an_answer_is_a_file_once_it_is_known(site: Site) -> None:
    ana = site.browser("ana")
    query = urlencode({"sql": "SELECT sex, COUNT(*) FROM data GROUP BY sex"})
    for kind in ("csv", "json", "svg"):
        assert ana.get(f"/data/people/answer.{kind}?{query}").status_code == 403
    assert site.spent() == 0
    page = ask(ana, by_sql("SELECT sex, COUNT(*) FROM data GROUP BY sex")).text
    spent = site.spent()
    files = {kind: ana.get(f"/data/people/answer.{kind}?{query}") for kind in ("csv", "json", "svg")}
    for kind, file in files.items():
        assert f'href="/data/people/answer.{kind}?' in page
        assert file.headers["content-disposition"] == f'attachment; filename="people-answer.{kind}"'
    lines = files["csv"].text.splitlines()
    assert lines[0] == "sex,value,error"
    assert [line.split(",")[0] for line in lines[1:]] == ["F", "M"]
    assert [row[1] for row in files["json"].json()["rows"]] == [float(line.split(",")[1]) for line in lines[1:]]
    assert files["svg"].text.startswith("<svg")
    assert ana.get(f"/data/people/answer.pdf?{query}").status_code == 404
    assert ana.get(f"/data/people/answer.csv?{urlencode({'what': 'cdf', 'of': '1'})}").status_code == 403
    assert site.spent() == spent


def test_a_receipt_is_an_address(site: Site) -> None:
    ana = site.browser("ana")
    page = ask(ana, by_sql(WOMEN)).text
    address = re.search(r'href="(/data/people/entry/(\d+)-[0-9a-f]{12})"', page)
    assert address is not None
    told = ana.get(address[1])
    sound(told.text)
    assert "Bought for 5 % of the budget." in told.text
    assert address[1] in ana.get("/data/people/history").text
    again = ana.get(html.unescape(links(page, "data-copy")[0]))
    assert again.url.path == address[1]
    assert 'class="badge free"' in again.text
    assert re.findall(r"<strong>(\d+)</strong> <span>±", again.text) == re.findall(
        r"<strong>(\d+)</strong> <span>±", page
    )
    for wrong in (
        f"/data/people/entry/{address[2]}-000000000000?{urlencode({'sql': WOMEN})}",
        f"/data/people/entry/{address[2]}-000000000000",
        f"/data/people/entry/{address[2]}",
        "/data/people/entry/x-",
    ):
        assert ana.get(wrong).status_code == 404


def test_a_question_is_an_address_also_for_who_has_to_log_in(two: Site) -> None:
    asked = urlencode({"sql": WOMEN})
    nobody = two.open()
    first = nobody.get(f"/ask?{asked}&data=people", follow_redirects=True)
    then = re.search(r'action="(/login\?then=[^"]+)"', first.text)
    assert then is not None
    sent = {"key": two.keys["ana"]}
    entered = nobody.post(html.unescape(then[1]), data=sent, headers={"origin": BASE})
    assert "Nothing was asked." in entered.text
    assert WOMEN in html.unescape(entered.text)
    assert two.spent() == 0
    several = nobody.get(f"/ask?{asked}").text
    sound(several)
    assert f"/data/odd?{html.escape(asked)}" in several
    for elsewhere in ("https://evil.example", "//evil.example", "/data/../x", "/logout", "/data/people\n"):
        address = "/login?" + urlencode({"then": elsewhere})
        login = two.open().post(address, data=sent, headers={"origin": BASE}, follow_redirects=False)
        assert login.headers["location"] == "/"


def test_a_link_on_another_site_finds_who_is_logged_in(site: Site) -> None:
    """The cookie is SameSite=Strict, so the browser sends it with the second request, which comes from here."""
    nobody, link = site.open(), f"/data/people?{urlencode({'sql': WOMEN})}"
    for address in (link, "/ask?sql=x"):
        first = nobody.get(address, headers={"sec-fetch-site": "cross-site"})
        sound(first.text)
        assert '<meta http-equiv="refresh" content="0">' in first.text
        second = nobody.get(address, headers={"sec-fetch-site": "same-origin"}, follow_redirects=False)
        assert second.headers["location"] == "/?" + urlencode({"then": address})
    known = site.browser("ana").get(link, headers={"sec-fetch-site": "cross-site"})
    assert "Nothing was asked." in known.text


def test_a_data_set_says_what_it_is_and_who_is_protected(tmp_path: Path) -> None:
    config = write_config(tmp_path)
    about = f'[about]\ntitle = "Members & friends"\nrow = "one member"\nsource = "{SCRIPT}"\nlicence = "CC0"\n'
    described = config.read_text().replace("[domain.sex]", '[domain.sex]\ndescription = "As registered"')
    config.write_text(about + described)
    (tmp_path / "odd.csv").write_text(ODD_CSV)
    (tmp_path / "odd.toml").write_text(ODD)
    with started(tmp_path, {"people": config, "odd": tmp_path / "odd.toml"}) as site:
        ana = site.browser("ana")
        for text in (ana.get("/data/people").text, ana.get("/").text):
            sound(text)
            assert "Members &amp; friends" in text
            assert "Protected: every single row, which is one member." in text
            assert "Licence: CC0." in text
            assert "100 %</strong> of the budget left" in text
        assert "As registered · F, M" in ana.get("/data/people").text
    config.write_text("[about]\nauthor = 1\n" + described)
    with pytest.raises(ConfigError, match=r"\[about\] has no setting author"):
        read_config(config)


def test_the_owner_makes_keys_and_takes_them_back(two: Site) -> None:
    olga, ana = two.browser("olga"), two.browser("ana")
    assert ana.get("/keys").status_code == 403
    assert "Keys" not in ana.get("/data/people").text
    sound(olga.get("/keys").text)

    def change(client: TestClient, **fields: str) -> Any:
        return client.post("/keys", data=fields, headers={"origin": BASE})

    assert change(ana, name="eve", role="owner", do="make").status_code == 403
    assert olga.post("/keys", data={"name": "eve", "role": "owner"}, headers={"origin": "null"}).status_code == 403
    made = change(olga, name="zoe", role="analyst", quota="12.5 %", do="make")
    sound(made.text)
    secret = re.search(r"<code>(tacit_[\w-]+)</code>", made.text)
    assert secret is not None
    two.keys["zoe"] = secret[1]
    zoe = two.browser("zoe")
    assert "Your quota is 12.5 % of it" in zoe.get("/data/people").text
    ask(zoe, by_sql(WOMEN))
    listed = olga.get("/keys").text
    assert "<td>people 5 %</td>" in listed
    assert secret[1] not in listed
    for fields, words in (
        ({"name": "zoe", "role": "analyst"}, "has a key already"),
        ({"name": "<b>", "role": "analyst"}, "1 to 64 letters"),
        ({"name": "yan", "role": "king"}, "a role is one of"),
        ({"name": "yan", "role": "analyst", "quota": "200"}, "at most 100"),
        ({"name": "yan", "role": "analyst", "quota": "nan"}, "number of per cent"),
        ({"name": "olga", "do": "revoke"}, "nobody could let you in again"),
        ({"name": "yan", "do": "revoke"}, "no key in use"),
    ):
        refused = change(olga, **fields)
        assert refused.status_code >= 400
        assert words in html.unescape(refused.text)
        sound(refused.text)
    assert "taken back" in change(olga, name="zoe", do="revoke").text
    assert 'name="key"' in zoe.get("/data/people").text
    assert two.open().post("/login", data={"key": secret[1]}, headers={"origin": BASE}).status_code == 401


def test_questions_are_found_again_and_saved_ones_are_a_board(two: Site) -> None:
    ana, bob, olga = (two.browser(who) for who in ("ana", "bob", "olga"))
    by_age = "SELECT age, COUNT(*) FROM data GROUP BY age"
    for statement in (WOMEN, by_age, WOMEN):
        ask(ana, by_sql(statement))
    ask(ana, {"way": "click", "what": "cdf", "of": "1"})
    mine = ana.get("/data/people/questions").text
    sound(mine)
    assert [html.unescape(one) for one in re.findall(r"<a href=[^>]+><code>([^<]+)</code>", mine)] == [
        "cumulative counts of age",
        WOMEN,
        by_age,
    ]
    assert WOMEN not in html.unescape(bob.get("/data/people/questions").text)
    for question in ({"quantile": "age", "q": 0.25}, {"count": {"sex": "F"}}, {"fraction": {"sex": "F"}}):
        headers = {"authorization": f"Bearer {two.keys['bob']}"}
        two.open().post("/v1/people/ask", json={"question": question}, headers=headers)
    theirs = html.unescape(bob.get("/data/people/questions").text)
    assert "{" not in theirs.partition("<table")[2], "what came as JSON is told in words, and leads to its answer"
    for words in ("<code>the 25% quantile of age</code></a>", "<code>sex = F</code></a>", "fraction"):
        assert words in theirs
    for one in re.findall(r'<a href="(/data/people\?what=[^"]+)"><code>', theirs):
        assert "Not known yet" not in bob.get(one).text
    log = html.unescape(olga.get("/data/people/audit").text)
    assert f"<code>{WOMEN}</code>" in log
    spent, lines = two.spent(), len(two.state.datasets["people"].audit.last(100))

    def save(client: TestClient, title: str, question: str, do: str = "") -> Any:
        sent = {"title": title, "question": question, "do": do}
        return client.post("/data/people/save", data=sent, headers={"origin": BASE})

    for title, query in (
        (f"Women {SCRIPT}", urlencode({"sql": WOMEN})),
        ("By age", "what=table&by=1"),
        ("Later", urlencode({"sql": "SELECT COUNT(*) FROM data WHERE active = TRUE"})),
    ):
        board = save(ana, title, query)
        assert board.status_code == 200
        sound(board.text)
    assert board.text.count('<path class="whisker"') == 10
    assert "Not known yet" in board.text
    assert two.spent() == spent
    assert len(two.state.datasets["people"].audit.last(100)) == lines, "looking at the board asks nothing"
    assert "Nothing is saved yet" in bob.get("/data/people/questions").text
    assert "By age" not in save(ana, "By age", "", "forget").text
    for title, query in (("", "what=count"), ("x" * 101, "what=count"), ("Wrong", "what=nonsense"), ("Wrong", "")):
        assert save(ana, title, query).status_code in (400, 422)
    for i in range(MAX_SAVED - 2):
        two.state.keys.save("people", "ana", f"{i}", "what=count")
    assert save(ana, "one too many", "what=count").status_code == 409


def test_the_report_is_a_download(site: Site) -> None:
    response = site.browser("rea").get("/data/people/report")
    assert response.headers["content-disposition"] == 'attachment; filename="people.html"'
    assert "Private answers" in response.text or "people" in response.text


def test_forms_have_limits(site: Site) -> None:
    ana = site.browser("ana")
    form = {"origin": BASE, "content-type": "application/x-www-form-urlencoded"}
    for content, headers, status in (
        (b"sql=" + b"x" * 2**18, form, 413),
        (b"way=sql&sql=%ff", form, 400),
        (b"way=sql&sql=\xff", form, 400),
        (b"{}", form | {"content-type": "application/json"}, 415),
        (b"a=&" * 30_000, form, 400),
        (b"", form, 400),
        (b"way=sql&do=ask&sql=" + b"x" * 20_000, form, 422),
    ):
        response = ana.post("/data/people/ask", content=content, headers=headers)
        assert response.status_code == status
        sound(response.text)
    assert site.spent() == 0


def test_assets_are_ours_and_cached_by_content(site: Site) -> None:
    nobody = site.open()
    page = nobody.get("/").text
    for name, kind in (("page.css", "text/css"), ("page.js", "text/javascript"), ("icon.svg", "image/svg+xml")):
        found = re.search(rf'"(/page/{name}\?v=[0-9a-f]+)"', page)
        assert found is not None
        response = nobody.get(found[1])
        assert response.headers["content-type"].startswith(kind)
        assert "immutable" in response.headers["cache-control"]
        assert nobody.get(f"/page/{name}").headers["cache-control"] == "no-cache"
        assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", response.text)
    assert nobody.get("/page/../keys.py").status_code == 404
    assert nobody.get("/page/builder.py").status_code == 404
    script = asset("page.js").decode()
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert forbidden not in script
