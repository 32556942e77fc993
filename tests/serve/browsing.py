"""What the browser's tests share: a real server in a process of its own, and a real Chromium that is driven."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from serving import WHO, write_config

from support import PATIENCE
from tacit.serve.keys import make_key

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
    """A server of three data sets, one of which has a budget for two questions, and one many columns."""
    (folder / "tiny.csv").write_text("kind,size\n" + "".join(f"{'plain'},{i % 10}\n" for i in range(80)))
    (folder / "tiny.toml").write_text(TINY)
    rows = [[f"column {i}" for i in range(30)], *([str((i + j) % 3 == 0) for j in range(30)] for i in range(60))]
    (folder / "wide.csv").write_text("\n".join(map(",".join, rows)) + "\n")
    (folder / "wide.toml").write_text(WIDE)
    configs = [str(write_config(folder, questions=40)), str(folder / "tiny.toml"), str(folder / "wide.toml")]
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
    """Skip where there is no browser, unless one was promised."""
    try:
        import selenium  # noqa: F401

        missing = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    except ImportError:
        missing = ["selenium"]
    if missing and not os.environ.get("TACIT_REQUIRE_BROWSER"):
        pytest.skip(f"no {missing[0]} here; `make browser` sets it up")


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless Chromium."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for word in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "window-size=1366,900"):
        options.add_argument(f"--{word}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        driver.implicitly_wait(PATIENCE)
        driver.execute_cdp_cmd("Emulation.setScrollbarsHidden", {"hidden": True})
        yield driver
    finally:
        driver.quit()


def visit(driver: Any, *, dark: bool = False, telephone: bool = False, script: bool = True) -> None:
    """The browser of somebody whom no server knows yet, with these habits and no others."""
    driver.get("about:blank")
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not script})
    driver.execute_cdp_cmd("Network.clearBrowserCookies", {})
    if telephone:
        screen = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    else:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def keep_picture(driver: Any, folder: Path, name: str) -> None:
    """The whole page as a picture, for people to look at. A page that has just come has no size yet."""
    from selenium.webdriver.support.ui import WebDriverWait

    def laid_out(_: Any) -> Any:
        size = driver.execute_cdp_cmd("Page.getLayoutMetrics", {})["cssContentSize"]
        return size if size["width"] and size["height"] else None

    size = WebDriverWait(driver, PATIENCE).until(laid_out)
    clip = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 4000), "scale": 1}
    made = driver.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": clip})
    (folder / f"{name}.png").write_bytes(base64.b64decode(made["data"]))
