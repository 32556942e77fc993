"""Hooks for schemathesis, which runs them in its own environment: a line for every response, read by schema_fuzz.py.

A line has the status, the data set, what the answers say they cost, and whether a refusal says that something may have
been spent. It is written where the request was sent, so it knows nothing of what the server thinks of itself.
"""

from __future__ import annotations

import json
import os
import threading
from typing import Any

import schemathesis

_FILE = open(os.environ["TACIT_NOTES"], "a", buffering=1)  # noqa: SIM115  (it is open as long as the process is)
_LOCK = threading.Lock()


@schemathesis.hook
def after_call(context: Any, case: Any, response: Any) -> None:
    path = case.operation.path
    note = {"status": response.status_code, "at": f"{case.method} {path}"}
    dataset = str((case.path_parameters or {}).get("dataset", ""))
    if response.status_code == 200 and path.endswith(("/ask", "/ask_many")) and case.method.upper() == "POST":
        got = json.loads(response.content)
        answers = got.get("answers") or [got["answer"]]
        note |= {"dataset": dataset, "costs": [sum(answer["cost"].values()) for answer in answers]}
    elif b'"nothing_spent": false' in response.content:
        note |= {"dataset": dataset, "unsure": True}
    with _LOCK:
        _FILE.write(json.dumps(note) + "\n")


@schemathesis.hook
def after_network_error(context: Any, case: Any, request: Any) -> None:
    with _LOCK:
        _FILE.write(json.dumps({"status": 0, "at": f"{case.method} {case.operation.path}"}) + "\n")
