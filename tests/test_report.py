"""The report: a page that stands by itself, shows what was released and nothing else, and costs nothing."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import tacit
from support import events, once
from tacit.errors import ConfigError
from tacit.model.entry import decode
from tacit.session import Session
from tacit.show.chart import Polyline, Ticks
from tacit.show.chronicle import Chronicle
from tacit.show.events import SpendingTally, spending
from tacit.show.report import guess, page
from tacit.store.chain import Line

EVIL = "<script>alert('x')</script>"
DOMAIN = tacit.Domain(
    {
        "sex": tacit.category(["F", "M"]),
        "age": tacit.integer(0, 99, width=5),
        "region": tacit.category(["north", EVIL, '"><img src=x>'], missing="unknown & gone"),
        "income": tacit.numeric([0, 10, 20, 30]),
    }
)
N = 3000
VOID = {"meta", "br", "img", "link", "hr", "input"}


def people() -> pd.DataFrame:
    i = np.arange(N)
    return pd.DataFrame(
        {"sex": np.where(i % 3, "F", "M"), "age": i % 100, "region": np.where(i % 2, "north", EVIL), "income": i % 30}
    )


SOURCE = once(people())


def start(folder: Path, **changes: Any) -> Session:
    settings: dict[str, Any] = {
        "data": SOURCE,
        "domain": DOMAIN,
        "budget": tacit.Budget(epsilon=2.0, delta=1e-9),
        "ledger": folder / "people.tacit",
        "anchor": folder / "anchor.sqlite",
        "mechanism": "direct",
    }
    return tacit.open(start=True, **(settings | changes))


class Reader(HTMLParser):
    """Elements, their attributes and the text between; refuses elements that are closed in the wrong order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Session, str]:
    session = start(tmp_path_factory.mktemp("asked"))
    session.table("sex", "region")
    session.table("age", "income", "sex")
    session.table("sex", where=tacit.count(region=EVIL, income=(0, 10)))
    session.cdf("age", share=0.1)
    session.rectangle({"age": (0, 49), "income": (0, 20)}, share=0.1)
    for region in ("north", EVIL):
        session.ask(tacit.count(region=region, age=(20, 39)))
    spent = session.spent
    text = page(session, "A & B " + EVIL)
    assert session.spent == spent
    return session, text


def test_it_is_one_well_formed_page_that_loads_and_runs_nothing(asked: tuple[Session, str]) -> None:
    read = Reader(asked[1])
    tags = [tag for tag, _ in read.found]
    assert tags.count("h1") == tags.count("main") == 1
    assert not {"script", "img", "link", "iframe", "object", "form"} & set(tags)
    for _, attributes in read.found:
        assert not [name for name in attributes if name.startswith("on") or name in ("src", "srcset", "action")]
        assert (attributes.get("href") or "#").startswith("#")
    styles = " ".join(re.findall(r"<style>(.*?)</style>", asked[1], re.DOTALL))
    assert "url(" not in styles
    assert "@import" not in styles
    policy = [attributes["content"] for tag, attributes in read.found if "Content-Security-Policy" in str(attributes)]
    assert "default-src 'none'" in str(policy[0])


def test_labels_are_never_markup(asked: tuple[Session, str]) -> None:
    assert EVIL not in asked[1]
    assert "<img" not in asked[1]
    assert "&lt;script&gt;" in asked[1]
    assert "<h1>A &amp; B &lt;script&gt;" in asked[1]
    with pytest.raises(AssertionError):  # a control: the test sees a label that is not escaped
        Reader(asked[1].replace("<h1>A &amp; B", "<h1>A &amp; B <script>"))


def test_it_can_be_read_by_keyboard_and_ear(asked: tuple[Session, str]) -> None:
    read = Reader(asked[1])
    headings = [int(tag[1]) for tag, _ in read.found if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(b - a <= 1 for a, b in pairwise(headings))
    assert all("scope" in attributes for tag, attributes in read.found if tag == "th")
    assert [tag for tag, _ in read.found].count("table") == [tag for tag, _ in read.found].count("caption")
    ids = [attributes["id"] for _, attributes in read.found if "id" in attributes]
    linked = {(attributes.get("href") or "")[1:] for tag, attributes in read.found if tag == "a"}
    assert linked <= set(ids)
    svgs = re.findall(r"<figure>(<svg.*?</svg>)\s*(?:<figcaption|</figure>)", asked[1], re.DOTALL)
    assert len(svgs) >= 8
    for svg in svgs:
        tree = ElementTree.fromstring(svg)
        assert tree.get("role") == "img"
        assert any(child.tag.endswith("title") and child.text for child in tree)
    assert "prefers-color-scheme:dark" in asked[1]
    assert "@media print" in asked[1]


def test_every_release_is_in_it(asked: tuple[Session, str]) -> None:
    session, text = asked
    for past in session.history:
        assert past.receipt.seal[:16] in text
    for title in ("table of region, sex", "cumulative counts of age", "rows by age and income, from all their ranges"):
        assert f">{title}</title>" in text
    assert "age, from the table of age, income, sex" in text  # a table of three attributes: each by itself
    answer = session.ask(tacit.count(region="north", age=(20, 39)))
    assert isinstance(answer, tacit.Answer)
    assert answer.error is not None
    assert f'<td class="number">{answer.value:,.0f}</td><td class="number">{answer.error:,.0f}</td>' in text


def test_the_figures_are_those_of_the_session(asked: tuple[Session, str]) -> None:
    session, text = asked
    lines = spending(SpendingTally().catch_up(session), session)
    assert sum(cost.atoms for _, _, cost in lines) == session.spent.atoms
    assert {name: many for name, many, _ in lines} == {"tables": 3, "ranges": 2, "single counts": 2}
    assert f"epsilon = {session.epsilon_spent:.4g}" in text
    assert f"{math.exp(2.0):.3g} times as likely" in text


def test_the_guess_is_the_best_test_between_two_neighbours() -> None:
    # Randomised response attains it: right with probability (e^eps + delta) / (1 + e^eps).
    assert guess(0.0, 0.0) == 0.5
    assert guess(math.log(3), 0.0) == pytest.approx(0.75)
    for epsilon, delta in ((0.5, 0.1), (2.0, 1e-3)):
        law = np.array([delta, (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon)), 0, 0])
        law[2] = 1 - law.sum()
        best = 0.5 + 0.25 * np.abs(law - law[[3, 2, 1, 0]]).sum()
        assert guess(epsilon, delta) == pytest.approx(best)


@pytest.mark.parametrize(
    "changes",
    [{"mechanism": "iterative", "warm": 0.3, "hits": 5}, {"mechanism": "histogram"}],
    ids=lambda changes: changes["mechanism"],
)
def test_every_mechanism_has_one_and_easy_and_hard_are_told_apart(changes: dict[str, Any], tmp_path: Path) -> None:
    small = tacit.Domain({name: DOMAIN[name] for name in ("sex", "region", "income")})
    with start(tmp_path, domain=small, **changes) as session:
        empty = page(session)
        Reader(empty)
        assert "Nothing was asked yet." in empty
        session.ask_many([tacit.count(sex="F", income=(0, high)) for high in (10, 20)])
        session.ask(tacit.count(region="north"))
        spent = session.spent
        text = page(session)
        Reader(text)
        assert session.spent == spent
        told = [event for event in events(session) if event.free]
        assert ("Answers told for nothing" in text) == bool(told)
        if changes["mechanism"] == "iterative":
            assert told
            assert "iterative, warm start: asked for" in text


def test_what_is_published_has_the_same_page(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        session.table("sex", "region")
        session.cdf("age")
        file = tmp_path / "people-public.tacit"
        tacit.publish(session, file)
        assert page(tacit.read(file)) == page(session)


def test_it_is_written_whole(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        session.ask(tacit.count(sex="F"))
        path = tacit.report(session, tmp_path / "report.html", title="Ours")
        assert path.read_text(encoding="utf-8") == page(session, "Ours")
        tacit.report(session, path)
        assert "<h1>Private answers</h1>" in path.read_text(encoding="utf-8")
        with pytest.raises(ConfigError, match="cannot be written"):
            tacit.report(session, tmp_path / "no" / "report.html")
        with pytest.raises(ConfigError, match="about a session"):
            tacit.report("people.tacit", path)  # type: ignore[arg-type]
        assert "<svg" in session._repr_html_()
    assert not list(tmp_path.glob(".*part"))


def test_long_lists_are_cut_with_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.show.chronicle.MOST_REPORTED_LINES", 3)
    monkeypatch.setattr("tacit.show.chronicle.MOST_REPORTED_PICTURES", 1)
    monkeypatch.setattr("tacit.show.chronicle.MOST_REPORTED_CELLS", 4)
    monkeypatch.setattr("tacit.show.chronicle.MOST_COUNT_BARS", 2)
    with start(tmp_path) as session:
        session.ask_many([tacit.count(age=(0, high)) for high in (9, 29, 49, 69, 89)])
        session.table("region")
        session.table("sex", "income")
        text = page(session)
    Reader(text)
    assert "(the first 3 of 5)" in text
    assert "the first 2 of 5" in text
    assert "1 more in the ledger below, but not drawn." in text
    assert "(the first 3 of 7)" in text


@pytest.mark.parametrize("distinguisher", ["exponential", "sparse"])
def test_a_choice_is_called_one_by_its_kind(distinguisher: Any, tmp_path: Path) -> None:
    with start(tmp_path, domain=tacit.Domain({name: DOMAIN[name] for name in ("sex", "income")})) as session:
        session.release(
            [tacit.count(sex="F"), tacit.count(income=(0, 10))], rounds=2, share=0.4, distinguisher=distinguisher
        )
        chosen = {past.receipt.entry for past in session.history if past.kind == "choice"}
        assert chosen
        assert {event.receipt.entry for event in events(session) if event.kind == "choice"} == chosen
        assert ">choices and comparisons<" in page(session)


def test_what_says_nothing_is_grey_and_each_bar_says_what_it_is_about(tmp_path: Path) -> None:
    with start(tmp_path, mechanism="direct", questions=2, budget=tacit.Budget(epsilon=1e-6, delta=0.0)) as session:
        session.ask(tacit.count(sex="F"))
        text = page(session)
    assert re.search(r'<tr class="nothing">.*?<td>this noise · says nothing</td>', text, re.DOTALL)
    assert re.search(r'class="tc-f-6"[^>]*><rect[^>]*><title>sex = M · says nothing', text)  # grey in the picture


def test_certificates_are_no_ranges(tmp_path: Path) -> None:
    """A start is tables and what certifies them; no ranges were bought."""
    with start(tmp_path, mechanism="iterative", questions=50, warm=0.6, certify=0.3) as session:
        first = str(session.start())
        names = [name for name, _, _ in spending(SpendingTally().catch_up(session), session)]
        assert "certificates of what was bought" in names
        assert "ranges" not in names
        # Whoever comes second is told that it was there.
        assert ", bought for " in first
        assert ", bought already." in str(session.start())


@pytest.mark.parametrize("mechanism", ["direct", "iterative"])
def test_it_says_where_a_table_is_not_what_a_question_is_answered_with(tmp_path: Path, mechanism: str) -> None:
    settings = {"warm": 0.6} if mechanism == "iterative" else {}
    with start(tmp_path, mechanism=mechanism, questions=50, **settings) as session:
        session.table("sex") if mechanism == "direct" else session.start()
        assert ("answered from all of them together" in page(session)) == (mechanism == "iterative")


def test_no_question_is_made_of_what_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.show.chronicle.MOST_REPORTED_LINES", 3)
    monkeypatch.setattr("tacit.show.chronicle.MOST_COUNT_BARS", 2)
    with start(tmp_path) as session:
        session.ask_many([tacit.count(age=(0, 4 + 5 * i), sex=sex) for i in range(10) for sex in ("F", "M")])
        made = list[str]()
        for module in ("tacit.release.account", "tacit.model.entry"):
            monkeypatch.setattr(f"{module}.decode", lambda kind, *given: made.append(kind) or decode(kind, *given))
        assert "(the first 3 of 20)" in page(session)
        assert made.count("measured") == 3


@pytest.mark.parametrize("mechanism", ["direct", "iterative"])
def test_a_page_goes_on_from_what_was_read_before(
    tmp_path: Path, mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.show.chronicle.MOST_REPORTED_LINES", 4)
    monkeypatch.setattr("tacit.show.chronicle.MOST_REPORTED_PICTURES", 2)
    settings = {"warm": 0.3, "hits": 5} if mechanism == "iterative" else {}
    small = tacit.Domain({name: DOMAIN[name] for name in ("sex", "region", "income")})
    with start(tmp_path, mechanism=mechanism, domain=small, **settings) as session:
        past, tally = Chronicle(), SpendingTally()
        for do in (
            lambda: None,
            lambda: session.ask("SELECT COUNT(*) FROM data WHERE sex = 'F'"),
            lambda: session.ask_many([tacit.count(sex="M", income=(0, high)) for high in (10, 20)]),
            lambda: mechanism == "direct" and session.table("sex", "region"),
            lambda: mechanism == "direct" and session.table("income"),
            lambda: mechanism == "direct" and [session.table("region"), session.table("sex", "income")],
            lambda: session.ask_many([tacit.count(region=name, income=(0, 10)) for name in ("north", EVIL)]),
        ):
            do()
            before = past.entry
            past.catch_up(session, session.entries).read(session)
            assert page(session, past=past) == page(session)
            tally.catch_up(session)
            assert (past.tally.number, past.tally.atoms) == (tally.number, tally.atoms)
            assert not list(session.records(past.entry, session.entries))
            assert before <= past.entry
        assert past.tally.number.total() + past.free > 4


def test_the_line_of_what_was_spent_is_no_longer_than_it_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.show.chronicle.MOST_PLACES", 8)
    with start(tmp_path) as session:
        session.ask_many([tacit.count(age=(0, 4 + 5 * i), sex=sex) for i in range(10) for sex in ("F", "M")])
        past = Chronicle().catch_up(session, session.entries).read(session)
        line, *lanes = past.timeline([], session).marks
        assert isinstance(line, Polyline)
        assert 4 < np.size(line.x) <= 9
        assert np.asarray(line.y)[-1] == pytest.approx(session.spent.atoms / session.total.atoms)
        assert all(np.size(lane.x) <= 8 for lane in lanes if isinstance(lane, Ticks))


def test_more_than_may_be_drawn_and_listed_is_left_out_in_words(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        session.ask_many([tacit.count(age=(0, high)) for high in (9, 29, 49)])
        session.table("sex")
        session.table("age", "income")
        session.table("region")

        def weigh(line: Line, kind: str, _: object) -> tuple[int, int]:
            return 1, line.body.count(",")

        past = Chronicle(weigh, 4, 20).catch_up(session, session.entries)
        assert past.work < 4 + 4 + 20
        text = page(session, past=past.read(session))
    Reader(text)
    assert text.count("is too large to be drawn here") == 1
    assert ">table of sex</title>" in text
    assert ">table of region</title>" in text
    assert "(the first 4 of 6)" in text


def test_what_is_drawn_depends_on_the_ledger_and_not_on_when_it_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.show.chronicle.MOST_REPORTED_PICTURES", 2)
    # The first table has as many pictures as there may be: those after it are read, and then left out.
    three = ("sex", "region", "age"), ("sex", "region", "income"), ("sex", "age", "income"), ("region", "age", "income")
    taller = tacit.Domain({**dict(DOMAIN.items()), "height": tacit.integer(0, 39)})
    with start(tmp_path, data=people().assign(height=np.arange(N) % 40), domain=taller) as session:
        ways = [Chronicle(lambda *_: (0, 1), drawing=3), Chronicle(lambda *_: (0, 1), drawing=3)]
        for names in three:
            session.table(*names)
            ways[0].catch_up(session, session.entries).read(session)
        session.cdf("height")
        pages = [page(session, past=one.catch_up(session, session.entries).read(session)) for one in ways]
    assert pages[0] == pages[1]
    assert "more in the ledger below, but not drawn" in pages[0]
