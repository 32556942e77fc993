"""A served data set for the tests: five keys, and clients that use them."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from browsing import keep_failure
from serving import Serve, Served, running

from tacit.serve.admission import Limits


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the page at which a test in the browser failed, and say where."""
    report = yield
    driver = getattr(item, "funcargs", {}).get("browser")
    if report.failed and driver is not None:
        folder = Path(os.environ.get("TACIT_PICTURES", item.config.rootpath / ".browser")) / "failed"
        report.sections.append(("browser", keep_failure(driver, folder, f"{item.name}-{report.when}")))
    return report


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start an application; it is shut down when the test ends."""
    with ExitStack() as lasting:
        yield lambda **settings: lasting.enter_context(running(tmp_path, **settings))


@pytest.fixture
def served(serve: Serve) -> Served:
    return serve()


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One application for all tests of a module that do not mind what the others asked."""
    limits = Limits(rate=1e9, burst=10**9)
    with running(tmp_path_factory.mktemp("lasting"), limits=limits, questions=2_000) as served:
        yield served
