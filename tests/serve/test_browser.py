"""The pages as people use them: a real server, a real Chromium, by mouse and by keyboard. Run by `make browser`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import SCRIPT, Server, chromium, keep_picture, need_chromium, serving

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
def picture(tmp_path: Path) -> Picture:
    folder = Path(os.environ.get("TACIT_PICTURES", tmp_path))
    folder.mkdir(exist_ok=True)
    return lambda driver, name: keep_picture(driver, folder, name)


@pytest.fixture
def page(server: Server) -> Iterator[Any]:
    with chromium() as driver:
        yield driver
        calm(driver)


def calm(driver: Any) -> None:
    """Nothing was blocked, nothing failed in the script, and nothing came from elsewhere."""
    said = [line["message"] for line in driver.get_log("browser") if line["level"] == "SEVERE"]
    assert not [line for line in said if "status of 4" not in line], said
    loaded = driver.execute_script("return performance.getEntriesByType('resource').map(e => new URL(e.name).origin)")
    assert set(loaded) <= {driver.execute_script("return location.origin")}


def one(driver: Any, selector: str) -> Any:
    return driver.find_element("css selector", selector)


def press(driver: Any, *keys: str) -> None:
    """Keys to whatever has the focus."""
    from selenium.webdriver import ActionChains

    ActionChains(driver).send_keys(*keys).perform()


def together(driver: Any, held: str, key: str) -> None:
    from selenium.webdriver import ActionChains

    ActionChains(driver).key_down(held).send_keys(key).key_up(held).perform()


def wait(driver: Any, found: Callable[[], Any]) -> Any:
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, PATIENCE, ignored_exceptions=[StaleElementReferenceException]).until(lambda _: found())


def enter(driver: Any, server: Server, who: str, dataset: str = "people", *, script: bool = True) -> None:
    driver.get(server.address)
    one(driver, "#key").send_keys(server.keys[who])
    one(driver, ".login button").click()
    one(driver, f"a[href='/data/{dataset}']").click()
    one(driver, "#sql[role=combobox]" if script else "#sql")  # the script, too, is ready for what is typed


def ask(driver: Any, statement: str) -> str:
    """Ask in the box, and wait for what stands where answers do."""
    from selenium.webdriver.common.keys import Keys

    box = one(driver, "#sql")
    box.clear()
    box.send_keys(statement, Keys.ESCAPE)
    before = one(driver, "#answer > *").id
    one(driver, "[data-ask=sql] [value=ask]").click()
    wait(driver, lambda: one(driver, "#answer > *").id != before)
    return str(one(driver, "#answer").text)


def test_asking_in_sql_with_completion_and_a_price_first(page: Any, server: Server, picture: Picture) -> None:
    from selenium.webdriver.common.keys import Keys

    page.get(server.address)
    picture(page, "login")
    enter(page, server, "ana")
    picture(page, "start")
    box = one(page, "#sql")
    box.send_keys("SELECT COUNT(*) FROM data WHERE se")
    wait(page, lambda: [o.text for o in page.find_elements("css selector", "[role=option] span")] == ["sex", "SELECT"])
    box.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
    box.send_keys("= ")
    wait(page, lambda: [o.text for o in page.find_elements("css selector", "[role=option]")] == ["'F'", "'M'"])
    picture(page, "completion")
    box.send_keys(Keys.ARROW_DOWN)
    assert box.get_attribute("aria-activedescendant") == "sql-option-0"
    box.send_keys(Keys.TAB)
    assert box.get_attribute("value").strip() == WOMEN
    wait(page, lambda: "At most 2.5 % of the budget" in one(page, "#sql-price").text)
    one(page, "[data-ask=sql] [value=price]").click()
    wait(page, lambda: "Nothing was asked" in one(page, "#answer").text)
    assert "100 %" in one(page, "#budget").text
    one(page, "#sql").send_keys(Keys.CONTROL, Keys.ENTER)
    wait(page, lambda: "Paid" in one(page, "#answer").text)
    assert one(page, "#answer svg").is_displayed()
    assert re.search(r"^\d+ ± \d+$", one(page, "#answer .figure").text)
    assert "97.5 %" in one(page, "#budget").text
    assert "Answer" in one(page, "#status").get_attribute("textContent")
    picture(page, "count")
    value = one(page, "#answer .figure strong").text
    assert "Free" in ask(page, "select count(*) from data where sex <> 'M'")
    assert one(page, "#answer .figure strong").text == value
    picture(page, "repeat")
    one(page, ".same summary").click()
    curl = page.find_elements("css selector", ".same code")[-2].text
    assert curl.startswith("curl")
    told = subprocess.run(
        ["bash", "-c", curl], env=os.environ | {"TACIT_KEY": server.keys["rea"]}, capture_output=True, check=True
    )
    assert f'"value":{value},'.encode() in told.stdout


def test_asking_by_clicking(page: Any, server: Server, picture: Picture) -> None:
    from selenium.webdriver.support.ui import Select

    enter(page, server, "bob")
    one(page, "[name=what][value=table]").click()
    one(page, "[name=by][value='0']").click()
    one(page, "[name=by][value='1']").click()
    page.find_elements("css selector", ".condition summary")[3].click()
    Select(one(page, "[name='from.3']")).select_by_visible_text("10")
    wait(page, lambda: "10 to the most" in page.find_elements("css selector", ".condition summary")[3].text)
    statement = "SELECT sex, age, COUNT(*) FROM data WHERE pay >= 10 GROUP BY sex, age"
    wait(page, lambda: one(page, "[data-stands] code").text == statement)
    one(page, "[data-ask=click] [value=ask]").click()
    wait(page, lambda: "Numbers: 20 rows" in one(page, "#answer").text)
    assert one(page, "#sql").get_attribute("value") == statement
    assert len(page.find_elements("css selector", "#answer svg rect")) >= 20
    picture(page, "heat-map")
    one(page, "[name=what][value=cdf]").click()
    assert not one(page, "[name=by]").is_displayed()
    Select(one(page, "#of")).select_by_visible_text("age")
    wait(page, lambda: "take the conditions away" in one(page, "[data-ask=click] [data-price]").text)
    Select(one(page, "[name='from.3']")).select_by_visible_text("the least")
    one(page, "[data-ask=click] [value=ask]").click()
    wait(page, lambda: "All of the curve" in one(page, "#answer").text)
    picture(page, "distribution")
    one(page, "[name=what][value=quantile]").click()
    one(page, "[data-ask=click] [value=ask]").click()
    wait(page, lambda: "quantile of age" in one(page, "#answer").text)
    assert "Free" in one(page, "#answer").text
    picture(page, "quantile")
    one(page, "[name=what][value=table]").click()
    one(page, "[name=by][value='1']").click()
    one(page, "[data-ask=click] [value=ask]").click()
    wait(page, lambda: "table of sex" in one(page, "#answer").text)
    picture(page, "bars")


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
    assert "The budget is used up." in one(page, "#budget").text
    wait(page, lambda: "more than is left" in one(page, "#sql-price").text)
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
        page.find_element("link text", name).click()
        wait(page, lambda name=name: one(page, "nav [aria-current]").text == name)  # the next page is there
        assert words in one(page, "main").text
        picture(page, name.lower().replace(" ", "-"))


def test_dark_and_narrow(server: Server, picture: Picture) -> None:
    colours = {}
    for dark in (False, True):
        with chromium(dark=dark, width=390) as driver:
            enter(driver, server, "ana")
            ask(driver, "SELECT sex, COUNT(*) FROM data GROUP BY sex")
            style = "return getComputedStyle(document.querySelector(arguments[0]))[arguments[1]]"
            seen = [("body", "backgroundColor"), ("body", "color"), ("#answer svg rect", "fill")]
            colours[dark] = [driver.execute_script(style, *each) for each in seen]
            wide, room = driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
            assert wide <= room, "the page scrolls sideways on a telephone"
            picture(driver, f"narrow-{'dark' if dark else 'light'}")
            calm(driver)
    assert all(light != dark for light, dark in zip(colours[False], colours[True], strict=True))
    with chromium(dark=True) as driver:
        enter(driver, server, "rea")
        ask(driver, "SELECT sex, COUNT(*) FROM data GROUP BY sex")
        picture(driver, "reader-dark")


def test_keyboard_alone(page: Any, server: Server, picture: Picture) -> None:
    from selenium.webdriver.common.keys import Keys

    def focus() -> Any:
        return page.switch_to.active_element

    def tab_to(wanted: Callable[[Any], bool]) -> None:
        for _ in range(60):
            press(page, Keys.TAB)
            outline = page.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
            held = page.execute_script("return document.activeElement.closest('.kind') !== null")
            assert outline != "none" or held, "the focus can be seen"
            if wanted(focus()):
                return
        raise AssertionError("tab never got there")

    page.get(server.address)
    press(page, server.keys["ana"], Keys.ENTER)  # the field has the focus from the start
    one(page, "a[href='/data/people']")
    tab_to(lambda e: e.text == "people")
    press(page, Keys.ENTER)
    one(page, "#sql")
    press(page, Keys.TAB)
    assert focus().text == "Skip to the contents"
    press(page, Keys.ENTER)
    tab_to(lambda e: e.get_attribute("id") == "sql")
    press(page, "SELECT COUNT(*) FROM data WHERE active = TRUE", Keys.ESCAPE)
    together(page, Keys.CONTROL, Keys.ENTER)
    wait(page, lambda: page.find_elements("css selector", "#answer .figure"))
    assert focus().get_attribute("id") == "sql", "the answer does not take the focus away"
    tab_to(lambda e: e.get_attribute("value") == "count")
    press(page, Keys.ARROW_DOWN)
    assert focus().get_attribute("value") == "table"
    tab_to(lambda e: e.get_attribute("name") == "by")
    press(page, Keys.SPACE)
    picture(page, "keyboard")
    tab_to(lambda e: e.get_attribute("value") == "ask")
    press(page, Keys.ENTER)
    wait(page, lambda: "table of sex" in one(page, "#answer").text)


def test_without_the_script(server: Server, picture: Picture) -> None:
    with chromium(script=False) as driver:
        enter(driver, server, "ana", script=False)
        one(driver, "#sql").send_keys(WOMEN)
        one(driver, "[data-ask=sql] [value=ask]").click()
        wait(driver, lambda: one(driver, "#answer .figure").is_displayed())
        one(driver, "#click summary").click()
        one(driver, "[name=what][value=mean]").click()
        one(driver, "#of").send_keys("age")
        one(driver, "[data-ask=click] [value=price]").click()
        wait(driver, lambda: "SELECT AVG(age) FROM data" in one(driver, "#answer").text)
        one(driver, "[data-ask=click] [value=ask]").click()
        wait(driver, lambda: "mean of age" in one(driver, "#answer .asked").text)
        picture(driver, "without-script")


def test_everything_has_a_name_for_those_who_hear_it(page: Any, server: Server) -> None:
    enter(page, server, "ana")
    ask(page, "SELECT sex, COUNT(*) FROM data GROUP BY sex")
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
    for role in ("main", "banner", "contentinfo", "navigation", "status", "heading", "radio", "image"):
        assert role in roles, role


def test_the_demonstration_opens_with_its_link(page: Any, picture: Picture) -> None:
    start = "from tacit.serve import serve_demo; serve_demo(0, say=lambda words: print(words, flush=True))"
    process = subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        page.get(process.stdout.readline().split()[-1])
        answer = ask(page, "SELECT COUNT(*) FROM data WHERE health = 'poor'")
        assert "±" in answer
        picture(page, "demonstration")
    finally:
        process.terminate()
        process.wait(PATIENCE)
