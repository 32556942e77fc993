"""A plugin for the runs on a copy: writes down which `tacit` was tested, and the first failure by its exception."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

found: dict[str, object] = {"passed": 0}


@pytest.hookimpl(tryfirst=True)  # the first who returns something is the last to be asked
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    if call.excinfo is None:
        found["passed"] = int(str(found["passed"])) + (call.when == "call")
    elif "failed" not in found and not call.excinfo.errisinstance(pytest.skip.Exception):
        # "DID NOT RAISE" is an assertion too.
        asserted = call.excinfo.errisinstance((AssertionError, pytest.fail.Exception))
        found.update(failed=item.nodeid, error=call.excinfo.typename, asserted=asserted and call.when == "call")


def pytest_sessionfinish() -> None:
    import tacit

    text = json.dumps({"tacit": tacit.__file__, "verdict": found})
    Path(os.environ["TACIT_VERDICT"]).write_text(text)
