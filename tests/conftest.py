"""What all tests share: an anchor of their own, so that no test touches the user's, and examples that do not change."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples in every run, and no clock: a test fails because of a change, never by chance. To look for examples
# that nobody has seen: pytest --hypothesis-profile=explore
no_clock = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", no_clock, derandomize=True)
settings.register_profile("explore", no_clock)
settings.load_profile("same")


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("TACIT_STATE", str(folder))
    return folder
