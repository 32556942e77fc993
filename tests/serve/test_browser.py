"""The pages as people use them: a real server, a real Chromium, by mouse and by keyboard.

Run by `make test` wherever Chromium and its driver are on the path; `make browser` runs them alone and keeps pictures.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from browsing import (
    SCRIPT,
    Server,
    choose,
    chromium,
    click,
    keep_picture,
    many,
    need_chromium,
    one,
    press,
    serving,
    text,
    value,
    visit,
    wait,
    write,
)

from support import PATIENCE

pytestmark = pytest.mark.browser
WOMEN = "SELECT COUNT(*) FROM data WHERE sex = 'F'"
Picture = Callable[[Any, str], None]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    need_chromium()
    with serving(tmp_path_factory.mktemp("served")) as found:
        yield found


@pytest.fixture
def picture() -> Picture:
    """Keep the page for people to look at, where a folder is named for it."""
    if "TACIT_PICTURES" not in os.environ:
        return lambda driver, name: None
    folder = Path(os.environ["TACIT_PICTURES"])
    folder.mkdir(exist_ok=True)
    return lambda driver, name: keep_picture(driver, folder, name)


@pytest.fixture(scope="module")
def browser(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    visit(browser)
    yield browser
    calm(browser)


def calm(driver: Any) -> None:
    """Nothing was blocked, nothing failed in the script, and nothing came from elsewhere."""
    said = [line["message"] for line in driver.get_log("browser") if line["level"] == "SEVERE"]
    assert not [line for line in said if "status of 4" not in line], said
    loaded = driver.execute_script("return performance.getEntriesByType('resource').map(e => new URL(e.name).origin)")
    assert set(loaded) <= {driver.execute_script("return location.origin")}


def enter(driver: Any, server: Server, who: str, dataset: str = "people", *, script: bool = True) -> None:
    driver.get(server.address)
    write(driver, "#key", server.keys[who])
    click(driver, ".login button")
    click(driver, f".sets a[href='/data/{dataset}']")
    one(driver, "#sql[role=combobox]" if script else "#sql")  # the script, too, is ready for what is typed


@contextmanager
def another(driver: Any) -> Iterator[None]:
    """What is done inside brings another answer; it is there afterwards."""
    turn = "return Number(document.querySelector('#answer').dataset.turn || 0)"
    before = driver.execute_script(turn)
    yield
    wait(driver, lambda: driver.execute_script(turn) > before)


def ask(driver: Any, statement: str) -> str:
    """Ask in the box, and wait for what stands where answers do."""
    from selenium.webdriver.common.keys import Keys

    driver.execute_script("document.querySelector('#written details').open = true")
    write(driver, "#sql", Keys.CONTROL, "a", Keys.NULL, statement, Keys.ESCAPE)
    with another(driver):
        click(driver, "[data-ask=sql] [value=ask]")
    return text(driver, "#answer")


def test_asking_in_sql_with_completion_and_a_price_first(page: Any, server: Server, picture: Picture) -> None:
    from selenium.webdriver.common.keys import Keys

    page.get(server.address)
    picture(page, "login")
    enter(page, server, "ana")
    picture(page, "start")
    click(page, "#written summary")
    write(page, "#sql", "SELECT COUNT(*) FROM data WHERE se")
    options = "return [...document.querySelectorAll('[role=option] span')].map(o => o.innerText)"
    wait(page, lambda: page.execute_script(options) == ["sex", "SELECT"])
    write(page, "#sql", Keys.ARROW_DOWN, Keys.ENTER, "= ")
    wait(page, lambda: page.execute_script(options) == ["'F'", "'M'"])
    picture(page, "completion")
    write(page, "#sql", Keys.ARROW_DOWN)
    assert one(page, "#sql").get_attribute("aria-activedescendant") == "sql-option-0"
    write(page, "#sql", Keys.TAB)
    assert value(page, "#sql").strip() == WOMEN
    wait(page, lambda: "At most 2.5 % of the budget" in text(page, "#sql-price"))
    with another(page):
        click(page, "[data-ask=sql] [value=price]")
    assert "Nothing was asked" in text(page, "#answer")
    assert "100 %" in text(page, "#budget")
    with another(page):
        write(page, "#sql", Keys.CONTROL, Keys.ENTER)
    assert "Paid 2.5 % of the budget" in text(page, "#answer")
    assert one(page, "#answer svg").is_displayed()
    assert re.search(r"^\d+ ± \d+$", text(page, "#answer .figure"))
    assert "97.5 %" in text(page, "#budget")
    assert "Sex = F" in one(page, "#status").get_attribute("textContent")
    assert text(page, ".chip summary") == "sex: F", "the form shows what was written"
    picture(page, "count")
    told = text(page, "#answer .figure strong")
    assert "Free" in ask(page, "select count(*) from data where sex <> 'M'")
    assert text(page, "#answer .figure strong") == told
    picture(page, "repeat")
    click(page, ".same summary")
    curl = page.execute_script("return [...document.querySelectorAll('.same pre code')].pop().innerText")
    assert curl.startswith("curl")
    again = subprocess.run(
        ["bash", "-c", curl], env=os.environ | {"TACIT_KEY": server.keys["rea"]}, capture_output=True, check=True
    )
    assert f'"value":{told},'.encode() in again.stdout


def test_from_a_column_to_its_table_to_a_bar_and_back(page: Any, server: Server, picture: Picture) -> None:
    enter(page, server, "bob")
    with another(page):
        click(page, ".list a[href*='by=1']")
    assert "Ask it" in text(page, "#answer"), "looking buys nothing"
    with another(page):
        click(page, "#answer [value=ask]")
    assert many(page, "#answer .whisker") == 10
    assert many(page, ".list a[aria-current] .small-picture") == 1, "what was bought is drawn in the list"
    picture(page, "column")
    with another(page):
        click(page, "#answer tr:nth-child(5) td.bar")
    assert text(page, ".chip summary") == "age: 40 to 49"
    assert value(page, "#sql") == "SELECT COUNT(*) FROM data WHERE age BETWEEN 40 AND 49"
    with another(page):
        click(page, ".list a[href*='by=0']")
    assert value(page, "#sql") == "SELECT sex, COUNT(*) FROM data WHERE age BETWEEN 40 AND 49 GROUP BY sex"
    with another(page):
        click(page, ".chip .away")
    assert many(page, ".chip") == 0
    with another(page):
        page.back()
    assert text(page, ".chip summary") == "age: 40 to 49", "the browser's way back works"
    with another(page):
        page.back()
    assert text(page, "#answer-title") == "Age = 40–49"
    page.refresh()
    one(page, "#sql[role=combobox]")
    assert text(page, ".chip summary") == "age: 40 to 49", "the address is the question"


def test_asking_by_clicking(page: Any, server: Server, picture: Picture) -> None:
    enter(page, server, "bob")
    choose(page, "#what", "A table, all combinations")
    choose(page, "[aria-label='by column 1']", "sex")
    choose(page, "[aria-label='by column 2']", "age")
    with another(page):
        choose(page, "[name=add]", "pay")
    choose(page, "[name='from.3']", "10")
    wait(page, lambda: "10 to the most" in text(page, ".chip summary"))
    statement = "SELECT sex, age, COUNT(*) FROM data WHERE pay >= 10 GROUP BY sex, age"
    wait(page, lambda: text(page, "[data-stands]") == statement)
    with another(page):
        click(page, "[data-ask=click] [value=ask]")
    assert "Numbers: 20 rows" in text(page, "#answer")
    assert value(page, "#sql") == statement
    assert many(page, "#answer figure.leads svg g > rect") >= 20
    picture(page, "heat-map")
    with another(page):
        cell = "document.querySelectorAll('figure.leads g > rect > title')[14].parentNode"
        page.execute_script(f"{cell}.dispatchEvent(new MouseEvent('click', {{bubbles: true}}))")
    assert value(page, "#sql") == "SELECT COUNT(*) FROM data WHERE sex = 'M' AND age BETWEEN 40 AND 49 AND pay >= 10"
    click(page, ".brand")
    click(page, ".sets a[href='/data/people']")
    one(page, "#sql[role=combobox]")
    choose(page, "#what", "A distribution, up to each value")
    assert not one(page, "[name=by]").is_displayed()
    choose(page, "#of", "age")
    with another(page):
        click(page, "[data-ask=click] [value=ask]")
    assert "All of the curve" in text(page, "#answer")
    picture(page, "distribution")
    choose(page, "#what", "A quantile, the median, say")
    with another(page):
        click(page, "[data-ask=click] [value=ask]")
    assert "quantile of age" in text(page, "#answer")
    assert "Free" in text(page, "#answer")
    picture(page, "quantile")


@pytest.mark.parametrize("telephone", [False, True])
def test_a_count_over_time_is_one_click(browser: Any, server: Server, picture: Picture, *, telephone: bool) -> None:
    visit(browser, telephone=telephone)
    enter(browser, server, "ana", "stays")
    assert "12 blocks" in text(browser, ".about")
    ask(browser, "SELECT COUNT(*) FROM data WHERE stay >= 4")
    with another(browser):
        click(browser, "#answer a.chip")
    assert "2026-11" in one(browser, "#answer .chart").get_attribute("innerHTML")
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    picture(browser, f"over-time-{'telephone' if telephone else 'desk'}")
    with another(browser):
        click(browser, "#columns a[href*='by=0']")  # the column of blocks itself
    assert one(browser, "#answer .chart").is_displayed()
    calm(browser)


def test_many_columns_are_searched(page: Any, server: Server, picture: Picture) -> None:
    enter(page, server, "ana", "wide")
    seen = "return [...document.querySelectorAll('.list li:not([hidden]) .name')].map(n => n.innerText)"
    assert len(page.execute_script(seen)) == 30
    write(page, "#search", "column 17")
    wait(page, lambda: page.execute_script(seen) == ["column 17"])
    picture(page, "searched")
    write(page, "#search", "x")
    wait(page, lambda: "No column is called like that." in text(page, "#columns"))


def test_a_picture_is_saved_as_png(page: Any, server: Server) -> None:
    enter(page, server, "ana")
    ask(page, "SELECT sex, COUNT(*) FROM data GROUP BY sex")
    page.execute_script(
        "window.saved = []; const click = HTMLAnchorElement.prototype.click;"
        "HTMLAnchorElement.prototype.click = function () {"
        "  if (this.download) window.saved.push([this.download, this.href.slice(0, 5)]); else click.call(this); }"
    )
    page.execute_script("[...document.querySelectorAll('.files button')].find(b => b.innerText === 'PNG').click()")
    wait(page, lambda: page.execute_script("return window.saved") == [["people-answer.png", "blob:"]])


def test_what_takes_a_while_says_for_how_long(page: Any, server: Server) -> None:
    enter(page, server, "ana")
    page.execute_script(
        "const plain = window.fetch;"
        "window.fetch = (...asked) => new Promise((go) => { window.go = go; }).then(() => plain(...asked));"
    )
    with another(page):
        click(page, ".list a[href*='by=2']")
        wait(page, lambda: re.fullmatch(r"Working, [1-9]\d* s", text(page, "#answer .working")))
        assert one(page, "#answer").get_attribute("aria-busy") == "true"
        page.execute_script("window.go()")
    assert many(page, ".working, [aria-busy]") == 0


def test_keys_and_saved_questions(page: Any, server: Server, picture: Picture) -> None:
    enter(page, server, "olga")
    ask(page, "SELECT sex, COUNT(*) FROM data GROUP BY sex")
    write(page, "[name=title]", "Women and men")
    click(page, ".save button")
    wait(page, lambda: text(page, ".board h2") == "Women and men")
    assert many(page, ".board .whisker") == 2
    picture(page, "questions")
    click(page, "a", "Keys")
    write(page, "#name", "zoe")
    write(page, "#quota", "10")
    click(page, "[value=make]")
    wait(page, lambda: text(page, ".made code").startswith("tacit_"))
    picture(page, "keys")
    click(page, "[aria-label='Take back the key of zoe']")
    wait(page, lambda: "taken back" in text(page, "main"))


def test_a_link_from_elsewhere_finds_who_is_logged_in(page: Any, server: Server) -> None:
    enter(page, server, "ana")
    query = urlencode({"data": "people", "sql": "SELECT COUNT(*) FROM data WHERE pay < 10"})
    page.get(f"data:text/html,<a href='{server.address}/ask?{query}'>a letter</a>")
    click(page, "a")
    wait(page, lambda: text(page, "#answer-title") == "Pay = [0, 10)")
    assert value(page, "#sql") == "SELECT COUNT(*) FROM data WHERE pay < 10"


def test_a_tiny_budget_runs_out_and_says_so(page: Any, server: Server, picture: Picture) -> None:
    enter(page, server, "ana", "tiny")
    assert "Paid" in ask(page, f"SELECT COUNT(*) FROM data WHERE kind = '{SCRIPT}'")
    picture(page, "escaped")
    ask(page, "SELECT kind, COUNT(*) FROM data GROUP BY kind")
    assert page.execute_script("return window.hit") is None
    ask(page, "SELECT COUNT(*) FROM data WHERE size < 3")  # the table was known from the first question
    refused = ask(page, "SELECT COUNT(*) FROM data WHERE size < 2")
    for words in ("The budget does not allow it", "Nothing was spent", "stays free", "budget_exhausted"):
        assert words in refused
    assert "The budget is used up." in text(page, "#budget")
    wait(page, lambda: "more than is left" in text(page, "#sql-price"))
    picture(page, "used-up")
    assert "Free" in ask(page, f"SELECT COUNT(*) FROM data WHERE kind = '{SCRIPT}'")


def test_a_mistake_is_explained(page: Any, server: Server, picture: Picture) -> None:
    enter(page, server, "ana")
    said = ask(page, "SELECT COUNT(*) FROM data WHERE sx = 'F'")
    assert "did you mean 'sex'?" in said
    assert "Nothing was spent." in said
    picture(page, "mistake")


def test_the_other_pages(page: Any, server: Server, picture: Picture) -> None:
    enter(page, server, "olga")
    ask(page, WOMEN)
    for name, words in (("History", "seal"), ("Plan", "What is guaranteed"), ("Audit log", "role")):
        click(page, "a", name)
        wait(page, lambda name=name: text(page, "nav [aria-current]") == name)  # the next page is there
        assert words in text(page, "main")
        picture(page, name.lower().replace(" ", "-"))


def test_dark_and_narrow(page: Any, server: Server, picture: Picture) -> None:
    colours = {}
    for dark in (False, True):
        visit(page, dark=dark, telephone=True)
        enter(page, server, "ana")
        ask(page, "SELECT sex, COUNT(*) FROM data GROUP BY sex")
        style = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
        seen = [("body", "backgroundColor"), ("body", "color"), ("#answer .bar rect", "fill")]
        colours[dark] = [page.execute_script(style, *each) for each in seen]
        wide, room = page.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert room == 390
        assert wide <= room, "the page scrolls sideways on a telephone"
        picture(page, f"narrow-{'dark' if dark else 'light'}")
        calm(page)
    assert all(light != dark for light, dark in zip(colours[False], colours[True], strict=True))


def test_keyboard_alone(page: Any, server: Server, picture: Picture) -> None:
    from selenium.webdriver.common.keys import Keys

    def focus(wanted: str) -> bool:
        return bool(page.execute_script("return document.activeElement.matches(arguments[0])", wanted))

    def tab_to(wanted: str) -> None:
        outline = "return getComputedStyle(document.activeElement).outlineStyle"
        for _ in range(60):
            before = page.execute_script("return document.activeElement")
            press(page, Keys.TAB)
            wait(page, lambda before=before: page.execute_script("return document.activeElement") != before)
            wait(page, lambda: page.execute_script(outline) != "none")  # the focus can be seen
            if focus(wanted):
                return
        raise AssertionError(f"tab never got to {wanted}")

    page.get(server.address)
    wait(page, lambda: focus("[name=key]"))  # from the start, once it is drawn
    press(page, server.keys["ana"], Keys.ENTER)
    one(page, ".sets")
    tab_to("a[href='/data/people']")
    press(page, Keys.ENTER)
    one(page, "#sql[role=combobox]")
    press(page, Keys.TAB)
    wait(page, lambda: focus(".skip"))
    press(page, Keys.ENTER)
    wait(page, lambda: focus("#main"))
    again = "dispatchEvent(new PopStateEvent('popstate')); return document.querySelector('#answer.busy') !== null"
    assert not page.execute_script(again), "a link within the page does not load it again, and empty its form"
    tab_to("#what")
    press(page, Keys.ARROW_DOWN)  # letters would be quicker, but a list forgets them after a second
    wait(page, lambda: value(page, "#what") == "table")
    tab_to("[aria-label='by column 1']")
    press(page, Keys.ARROW_DOWN)
    wait(page, lambda: value(page, "[aria-label='by column 1']") == "0")
    tab_to("[data-ask=click] [value=ask]")
    with another(page):
        press(page, Keys.ENTER)
    assert focus("[data-ask=click] [value=ask]"), "the answer does not take the focus away"
    assert "table of sex" in text(page, "#answer-title").lower()
    tab_to("[data-drill]")
    picture(page, "keyboard")
    with another(page):
        press(page, Keys.ENTER)
    assert text(page, ".chip summary") == "sex: F"
    assert focus("#answer")
    tab_to("#written summary")
    press(page, Keys.ENTER)
    tab_to("#sql")
    press(page, "a", held=Keys.CONTROL)
    press(page, "SELECT COUNT(*) FROM data WHERE active = TRUE", Keys.ESCAPE)
    with another(page):
        press(page, Keys.ENTER, held=Keys.CONTROL)
    assert focus("#sql")
    assert text(page, ".chip summary") == "active: true"


def test_without_the_script(page: Any, server: Server, picture: Picture) -> None:
    visit(page, script=False)
    enter(page, server, "ana", script=False)
    click(page, "#written summary")
    write(page, "#sql", WOMEN)
    click(page, "[data-ask=sql] [value=ask]")
    wait(page, lambda: one(page, "#answer .figure").is_displayed())
    click(page, ".chip .away")
    wait(page, lambda: text(page, ".chips > span") == "among all rows")
    choose(page, "#what", "A mean, an average")
    choose(page, "#of", "age")
    choose(page, "[name=add]", "sex")
    click(page, "[value=filter]")
    click(page, "details[open].condition [value='1']")
    click(page, "[data-ask=click] [value=price]")
    wait(page, lambda: "SELECT AVG(age) FROM data WHERE sex = 'M'" in value(page, "#sql"))
    click(page, "#answer [value=ask]")
    wait(page, lambda: "mean of age" in text(page, "#answer-title").lower())
    picture(page, "without-script")


def test_everything_has_a_name_for_those_who_hear_it(page: Any, server: Server) -> None:
    enter(page, server, "ana")
    ask(page, "SELECT sex, active, COUNT(*) FROM data GROUP BY sex, active")
    nodes = page.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    roles: dict[str, list[str]] = {}
    for node in nodes:
        if not node.get("ignored"):
            name = node.get("name", {}).get("value", "").strip()
            roles.setdefault(node["role"]["value"], []).append(name)
    for role in (
        "button",
        "link",
        "checkbox",
        "radio",
        "combobox",
        "textbox",
        "image",
        "region",
        "navigation",
        "table",
    ):
        assert all(roles.get(role, ["there may be none"])), (role, roles[role])
    for role in ("main", "banner", "contentinfo", "navigation", "status", "heading", "combobox", "image"):
        assert role in roles, role


def test_the_demonstration_opens_with_its_link(page: Any, picture: Picture) -> None:
    start = "from tacit.serve import serve_demo; serve_demo(0, say=lambda words: print(words, flush=True))"
    process = subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        page.get(process.stdout.readline().split()[-1])
        assert many(page, "#answer .whisker") == 21, "it opens on an answer"
        assert many(page, ".small-picture") == 6
        answer = ask(page, "SELECT COUNT(*) FROM data WHERE health = 'poor'")
        assert "±" in answer
        picture(page, "demonstration")
    finally:
        process.terminate()
        process.wait(PATIENCE)
