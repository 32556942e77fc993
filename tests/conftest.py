"""What all tests share: an anchor of their own, not the user's, and the same noise and examples in every run."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

import seeded_noise
from audit_record import budget

# The same examples in every run, and no clock: a test fails because of a change, never by chance. To look for examples
# that nobody has seen: pytest --hypothesis-profile=explore
no_clock = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", no_clock, derandomize=True)
settings.register_profile("explore", no_clock)
settings.load_profile("same")
ORDINARY = "not audit and not crash and not spark"
_states = count()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--size", type=float, default=1.0, help="of the audit: 0.1 is a tenth of it")


def pytest_configure(config: pytest.Config) -> None:
    """Whoever names no kind of test runs the ordinary ones: the audit takes hours."""
    if not config.option.markexpr:
        config.option.markexpr = ORDINARY


def pytest_report_header(config: pytest.Config) -> str | None:
    return budget(config.getoption("--size")) if config.getoption("-m") == "audit" else None


@pytest.fixture
def size(request: pytest.FixtureRequest) -> float:
    """How much of the audit is run: all of it is 1."""
    return float(request.config.getoption("--size"))


def pytest_collection_finish() -> None:
    """What is there before the first test stays: looking through all of it for cycles, again and again, takes long."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(3_000, 10, 10)


def pytest_unconfigure() -> None:
    """Cycles are taken apart at the end of the process, before the libraries that their objects are of."""
    gc.unfreeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """The same private noise in every run of a test."""
    seeded_noise.begin(real=item.get_closest_marker("real_noise") is not None)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Generator[None]:
    """What several tests share draws for itself: whichever of them comes first, each starts from the seed's start."""
    if fixturedef.scope == "function":
        return (yield)
    real = request.node.get_closest_marker("real_noise") is not None
    seeded_noise.begin(real=real)
    found = yield
    seeded_noise.begin(real=real)
    return found


@pytest.fixture(autouse=True, scope="session")
def state_of_all(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """For what several tests share, which is made before any of them has a state of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TACIT_STATE", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    # numbered here: pytest would look through all folders of the tests before, thousands of them, for the next number
    folder = tmp_path_factory.mktemp(f"state-of-test-{next(_states)}", numbered=False)
    monkeypatch.setenv("TACIT_STATE", str(folder))
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own, in which it works."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
