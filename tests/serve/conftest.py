"""A served data set for the tests: five keys, and clients that use them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import WHO, Serve, Served, write_config
from starlette.testclient import TestClient

from tacit.serve.admission import Limits
from tacit.serve.api import Server
from tacit.serve.app import LOOPBACK, make_app
from tacit.serve.dataset import Dataset
from tacit.serve.keys import KeyRing, make_key


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start an application; it is shut down when the test ends."""
    running: list[TestClient] = []

    def start(*, limits: Limits | None = None, **settings: Any) -> Served:
        config = write_config(tmp_path, **settings)
        file = tmp_path / "tacit.keys"
        secrets = {name: make_key(file, name, role, quota) for name, (role, quota) in WHO.items()}
        ring = KeyRing(file)
        state = Server({"people": Dataset.open("people", config, ring)}, ring, limits or Limits(), LOOPBACK, 8470)
        app = make_app(state)
        lasting = TestClient(app, base_url="http://127.0.0.1:8470")
        lasting.__enter__()
        running.append(lasting)
        served = Served(tmp_path, state, secrets)
        served.clients["nobody"] = lasting
        for name, secret in secrets.items():
            headers = {"authorization": f"Bearer {secret}"}
            served.clients[name] = TestClient(app, base_url="http://127.0.0.1:8470", headers=headers)
        return served

    yield start
    for client in running:
        client.__exit__(None, None, None)


@pytest.fixture
def served(serve: Serve) -> Served:
    return serve()
