"""A served data set for the tests: five keys, and clients that use them."""

from __future__ import annotations

import os
import socket
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from browsing import keep_failure
from serving import WHO, Serve, Served, write_config
from starlette.testclient import TestClient

from support import PATIENCE
from tacit.serve.admission import Limits
from tacit.serve.app import LOOPBACK, make_app
from tacit.serve.keys import KeyRing, make_key
from tacit.serve.postgres.channel import WireLimits
from tacit.serve.postgres.listener import Listener
from tacit.serve.series import open_data
from tacit.serve.server import Server

# Limits of time guard a server from its clients. The tests are on a machine that may stop for seconds, and those that
# are about such a limit set it themselves.
PATIENT = WireLimits(
    login_seconds=PATIENCE, message_seconds=PATIENCE, send_seconds=PATIENCE, lookup_seconds=PATIENCE
)  # fmt: skip


@contextmanager
def running(
    folder: Path,
    *,
    limits: Limits | None = None,
    wire: WireLimits | None = None,
    series: Path | None = None,
    **settings: Any,
) -> Iterator[Served]:
    """An application with both ways in, of a table or of the series of a configuration; it is shut down in the end."""
    config = write_config(folder, **settings) if series is None else series
    file = folder / "tacit.keys"
    secrets = {name: make_key(file, name, role, quota) for name, (role, quota) in WHO.items()}
    ring = KeyRing(file)
    state = Server(
        {config.stem: open_data(config.stem, config, ring)},
        ring,
        limits or Limits(body_seconds=PATIENCE),
        LOOPBACK,
        8470,
    )
    door = socket.create_server(("127.0.0.1", 0))
    app = make_app(state, beside=lambda: Listener(state, limits=wire or PATIENT).open(door))
    with TestClient(app, base_url="http://127.0.0.1:8470") as lasting:
        served = Served(folder, state, secrets, door.getsockname()[1])
        served.clients["nobody"] = lasting
        for name, secret in secrets.items():
            headers = {"authorization": f"Bearer {secret}"}
            served.clients[name] = TestClient(app, base_url="http://127.0.0.1:8470", headers=headers)
        yield served


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
