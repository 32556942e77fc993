"""What the tests of the server share: a small table with secrets in it, its configuration, and clients with keys."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from people import CSV, configuration
from support import PATIENCE
from tacit.config import read_config
from tacit.serve.admission import Limits
from tacit.serve.app import LOOPBACK, make_app
from tacit.serve.dataset import Dataset
from tacit.serve.keys import KeyRing, Role, make_key
from tacit.serve.postgres.channel import WireLimits
from tacit.serve.postgres.listener import Listener
from tacit.serve.series import open_data
from tacit.serve.server import Server


def write_config(
    folder: Path,
    name: str = "people",
    mechanism: str = "direct",
    questions: int = 20,
    *,
    start: bool = True,
    **more: Any,
) -> Path:
    (folder / "people.csv").write_text(CSV)
    path = folder / f"{name}.toml"
    session = {"ledger": f"{name}.tacit", "mechanism": mechanism, "questions": questions, "anchor": f"{name}.anchor"}
    path.write_text(configuration("sex", "age", "active", "pay", start=start, **session, **more))
    return path


SERIES = """
[budget]
epsilon = 1.0
delta = 1e-9
[session]
ledger = "stays.tacit"
anchor = "stays.anchor"
mechanism = "direct"
questions = 40
[blocks]
[domain.ward]
kind = "category"
values = ["a", "b"]
[domain.stay]
kind = "integer"
low = 0
high = 7
"""


def write_month(folder: Path, number: int, rows: int = 400) -> Path:
    """The rows of a month: every ward and every stay is in it."""
    path = folder / f"{number}.csv"
    lines = (f"{'ab'[i * number % 7 % 2]},{(i * i + number) % 8}" for i in range(rows))
    path.write_text("\n".join(["ward,stay", *lines]) + "\n")
    return path


def write_series(folder: Path, months: int = 3, more: str = "") -> Path:
    """A series of so many months, of which nothing is bought yet: its configuration."""
    path = folder / "stays.toml"
    path.write_text(SERIES + more)
    with read_config(path).series() as series:
        for number in range(1, months + 1):
            series.append(str(write_month(folder, number)), f"2026-{number:02}")
    return path


@dataclass
class Served:
    """A running application and its folder; `ana`, `bob`, `rea` and `olga` are clients with keys of their own."""

    folder: Path
    state: Server
    keys: dict[str, str]
    wire: int  # the port of PostgreSQL's protocol
    clients: dict[str, TestClient] = field(default_factory=dict)

    def __getattr__(self, name: str) -> TestClient:
        try:
            return self.__dict__["clients"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def people(self) -> Dataset:
        return self.state.datasets["people"]

    def ask(self, question: Any, who: str = "ana", path: str = "/v1/people/ask") -> Any:
        """The answer, which must be there."""
        response = self.clients[who].post(path, json={"question": question})
        assert response.status_code == 200, response.text
        return response.json().get("answer", response.json())


Serve = Callable[..., Served]
WHO: dict[str, tuple[Role, float | None]] = {
    "ana": ("analyst", 1.0),
    "bob": ("analyst", 1.0),
    "mia": ("analyst", 0.1),
    "rea": ("reader", None),
    "olga": ("owner", None),
}


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
