"""What the browser's tests share: a real server in a process of its own, and a real Chromium that is driven."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from serving import WHO, write_config, write_series

from support import PATIENCE
from tacit.serve.keys import make_key

# Memory from the disk, where containers have little shared memory; nothing drawn by a card; no traffic of its own, and
# timers and frames that go on whatever window is in front.
SWITCHES = (
    "no-sandbox",
    "disable-dev-shm-usage",
    "disable-gpu",
    "disable-component-update",
    "disable-extensions",
    "disable-background-timer-throttling",
    "disable-renderer-backgrounding",
    "disable-backgrounding-occluded-windows",
)
# A key is typed into a field for passwords: the question whether to keep it would take the keyboard away from the page.
NO_BUBBLES = {
    "credentials_enable_service": False,
    "profile.password_manager_enabled": False,
    "profile.password_manager_leak_detection": False,
}
SCRIPT = "<script>window.hit=1</script>"
TINY = f"""
[data]
source = "tiny.csv"
[budget]
epsilon = 1.0
delta = 0.0
[session]
ledger = "tiny.tacit"
mechanism = "direct"
questions = 2
anchor = "tiny.anchor"
[domain.kind]
kind = "category"
values = ["plain", "{SCRIPT}"]
[domain.size]
kind = "integer"
low = 0
high = 9
"""
WIDE = """
[data]
source = "wide.csv"
[budget]
epsilon = 1.0
[session]
ledger = "wide.tacit"
mechanism = "direct"
anchor = "wide.anchor"
""" + "".join(f'[domain."column {i}"]\nkind = "boolean"\n' for i in range(30))
START = (
    "import sys; from tacit.serve import serve; "
    "serve(sys.argv[1:], port=0, ready=lambda address: print(address, flush=True))"
)


@dataclass
class Server:
    """A running server: its address, and keys by name."""

    address: str
    keys: dict[str, str]


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A server of a table, one with a budget for two questions, one with many columns, and a series of blocks."""
    (folder / "tiny.csv").write_text("kind,size\n" + "".join(f"{'plain'},{i % 10}\n" for i in range(80)))
    (folder / "tiny.toml").write_text(TINY)
    rows = [[f"column {i}" for i in range(30)], *([str((i + j) % 3 == 0) for j in range(30)] for i in range(60))]
    (folder / "wide.csv").write_text("\n".join(map(",".join, rows)) + "\n")
    (folder / "wide.toml").write_text(WIDE)
    configs = [str(write_config(folder, questions=40)), str(folder / "tiny.toml"), str(folder / "wide.toml")]
    configs.append(str(write_series(folder, months=12)))
    keys = {name: make_key(folder / "tacit.keys", name, role, quota) for name, (role, quota) in WHO.items()}
    process = subprocess.Popen([sys.executable, "-c", START, *configs], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), "the server did not start"
        yield Server(address, keys)
    finally:
        process.terminate()
        process.wait(PATIENCE)


def need_chromium() -> None:
    """Skip, and say what is missing, where there is no browser, unless one was promised."""
    missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    if find_spec("selenium") is None:
        missing.append("selenium")
    if missing and not os.environ.get("TACIT_REQUIRE_BROWSER"):
        pytest.skip(f"{' and '.join(missing)} not found: the pages are not tried; `make browser` sets it up")


@contextmanager
def chromium(profile: Path) -> Iterator[Any]:
    """A headless Chromium with a fresh profile. No call of its driver takes longer than `PATIENCE`."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for word in ("headless=new", *SWITCHES, f"user-data-dir={profile}", "window-size=1366,900"):
        options.add_argument(f"--{word}")
    options.add_experimental_option("prefs", NO_BUBBLES)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        driver.command_executor.client_config.timeout = PATIENCE
        driver.set_page_load_timeout(PATIENCE)
        driver.set_script_timeout(PATIENCE)
        driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        yield driver
    finally:
        driver.quit()


def visit(driver: Any, *, dark: bool = False, telephone: bool = False, script: bool = True) -> None:
    """The tab of somebody whom no server knows yet, with these habits and no others.

    It is a new one: what was emulated in the last one, a finger or a small screen, ends with it.
    """
    last = driver.current_window_handle
    driver.switch_to.new_window("tab")
    new = driver.current_window_handle
    driver.switch_to.window(last)
    driver.close()
    driver.switch_to.window(new)
    driver.get_log("browser")  # what the last one said is not held against this one
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    driver.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})  # keys come whatever is in front
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not script})
    driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    if telephone:
        screen = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


def wait(driver: Any, found: Callable[[], Any]) -> Any:
    """What is found, once it is: the page may be replaced while it is looked at."""
    from selenium.common.exceptions import (
        ElementClickInterceptedException,
        ElementNotInteractableException,
        StaleElementReferenceException,
    )
    from selenium.webdriver.support.ui import WebDriverWait

    early = [StaleElementReferenceException, ElementNotInteractableException, ElementClickInterceptedException]
    return WebDriverWait(driver, PATIENCE, poll_frequency=0.05, ignored_exceptions=early).until(lambda _: found())


def one(driver: Any, selector: str, words: str = "") -> Any:
    """The first such element, with exactly these words where some are given, once it is there."""
    found = (
        "return [...document.querySelectorAll(arguments[0])]"
        ".find(e => !arguments[1] || e.innerText.trim() === arguments[1])"
    )
    return wait(driver, lambda: driver.execute_script(found, selector, words))


def act(driver: Any, selector: str, what: Callable[[Any], None], words: str = "") -> None:
    """Do something to an element that stands still: what moves or is replaced meanwhile is found again."""
    place = "const r = arguments[0].getBoundingClientRect(); return [document.readyState, r.x, r.y, r.width, r.height]"

    def done() -> bool:
        element = one(driver, selector, words)
        before = driver.execute_script(place, element)
        if before[0] != "complete" or driver.execute_script(place, element) != before:
            return False
        what(element)
        return True

    wait(driver, done)


def click(driver: Any, selector: str, words: str = "") -> None:
    act(driver, selector, lambda element: element.click(), words)


def write(driver: Any, selector: str, *keys: str) -> None:
    act(driver, selector, lambda element: element.send_keys(*keys))


def choose(driver: Any, selector: str, words: str) -> None:
    from selenium.webdriver.support.ui import Select

    act(driver, selector, lambda element: Select(element).select_by_visible_text(words))


def text(driver: Any, selector: str) -> str:
    """The words that stand there now, read in one step: an element that is held may be replaced meanwhile."""
    words = "const found = document.querySelector(arguments[0]); return found ? found.innerText : ''"
    return str(driver.execute_script(words, selector))


def value(driver: Any, selector: str) -> str:
    return str(driver.execute_script("return document.querySelector(arguments[0])?.value", selector))


def many(driver: Any, selector: str) -> int:
    return int(driver.execute_script("return document.querySelectorAll(arguments[0]).length", selector))


def press(driver: Any, *keys: str, held: str = "") -> None:
    """Keys to whatever has the focus, while another is held down."""
    from selenium.webdriver import ActionChains

    chain = ActionChains(driver)
    chain = chain.key_down(held).send_keys(*keys).key_up(held) if held else chain.send_keys(*keys)
    chain.perform()


def keep_failure(driver: Any, folder: Path, name: str) -> str:
    """The picture, the source and the messages of a page whose test failed, as files. Says where."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        where = folder / name
        where.with_suffix(".html").write_text(f"<!-- {driver.current_url} -->\n{driver.page_source}")
        where.with_suffix(".log").write_text("\n".join(map(str, driver.get_log("browser"))))
        driver.save_screenshot(str(where.with_suffix(".png")))
    except Exception as broken:
        # a driver that does not answer would make every other test wait as long
        driver.service.process.kill()
        return f"The browser does not answer ({type(broken).__name__}); it was ended."
    return f"The page is kept in {where}.png, .html and .log"


def keep_picture(driver: Any, folder: Path, name: str) -> None:
    """The whole page as a picture, for people to look at. A page that has just come has no size yet."""

    def laid_out() -> Any:
        size = driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        return size if size["width"] and size["height"] else None

    size = wait(driver, laid_out)
    clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 4000), "scale": 1}
    made = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    (folder / f"{name}.png").write_bytes(base64.b64decode(made["data"]))
