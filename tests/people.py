"""One table of people, its configuration, and the command line in this process: for tests of commands and servers."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner, Result

from tacit.cli import main

SECRETS = ["Wilhelmina", "31337", "gold-vault"]
CSV = (
    "name,sex,age,active,joined,pay\n"
    + "".join(f"p{i},{'FM'[i % 2]},{20 + i % 50},{i % 3 == 0},2020-0{i % 9 + 1}-15,{i % 50}\n" for i in range(300))
    + "Wilhelmina,F,44,true,2020-03-03,49.5\n"
)
_BOOLEAN = 'kind = "boolean"'
_DOMAIN = {
    "sex": 'kind = "category"\nvalues = ["F", "M"]',
    "age": 'kind = "integer"\nlow = 0\nhigh = 99\nwidth = 10',
    "active": _BOOLEAN,
    "smoker": _BOOLEAN,
    "pay": 'kind = "numeric"\nedges = [0, 10, 20, 50]',
}


def configuration(*names: str, epsilon: float = 5.0, **session: str | int | bool) -> str:
    """A configuration for people.csv with these attributes; the rest stands in [session].

    The first question starts it, unless `start=False` is given.
    """
    options = {"ledger": "people.tacit", "start": True, **session}
    lines = ["[data]", 'source = "people.csv"', "[budget]", f"epsilon = {epsilon}", "delta = 1e-9", "[session]"]
    lines += [f"{name} = {json.dumps(value)}" for name, value in options.items()]
    lines += [f"[domain.{name}]\n{_DOMAIN[name]}" for name in names]
    return "\n".join(lines) + "\n"


def tacit(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), input=given)


def answered(*arguments: str, given: str | None = None) -> list[dict[str, Any]]:
    """The JSON documents of a command, one a line, and nothing else on standard output."""
    shown = tacit(*arguments, "--json", given=given)
    assert shown.exit_code == 0, shown.output
    return [json.loads(line) for line in shown.stdout.splitlines()]


def refused(result: Result, *words: str, code: int = 1) -> None:
    """One sentence on standard error, the right exit code, no traceback, nothing private."""
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("tacit: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit)
    for word in words:
        assert word in result.stderr
    for secret in SECRETS:
        assert secret not in result.stderr
