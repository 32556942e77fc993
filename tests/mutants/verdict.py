"""A plugin for the runs on a copy: writes down which `tacit` was tested, and the first failure by an assertion.

Some cases of a test may fail by accident first, say by another refusal than the one that they expect.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import tacit

found: dict[str, object] = {"passed": 0}


@pytest.hookimpl(tryfirst=True)  # the first who returns something is the last to be asked
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    if call.excinfo is None:
        found["passed"] = int(str(found["passed"])) + (call.when == "call")
    elif not found.get("asserted") and not call.excinfo.errisinstance(pytest.skip.Exception):
        # "DID NOT RAISE" is an assertion too.
        asserted = call.excinfo.errisinstance((AssertionError, pytest.fail.Exception)) and call.when == "call"
        found.update(failed=item.nodeid, error=call.excinfo.typename, asserted=asserted)
        if asserted:
            item.session.shouldstop = "caught"


def pytest_sessionfinish() -> None:
    text = json.dumps({"tacit": tacit.__file__, "verdict": found})
    Path(os.environ["TACIT_VERDICT"]).write_text(text)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Leave at once: a test that fails may leave a thread behind that waits for what never comes."""
    sys.stdout.flush()
    os._exit(0)
