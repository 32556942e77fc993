"""The commands that ask a server: what they print is what they print of a table, and so are their exit codes."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from bridge import Bridge, bridge
from serving import Served, running

import tacit as package
from people import answered, refused, tacit
from tacit.cli import prompt
from tacit.cli.show import console
from tacit.serve.admission import Limits

WOMEN = "SELECT COUNT(*) FROM data WHERE sex = 'F'"


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, Bridge]]:
    limits = Limits(rate=1e9, burst=10**9)
    with running(tmp_path_factory.mktemp("there"), limits=limits) as served, bridge(served) as way:
        yield served, way


@pytest.fixture
def at(there: tuple[Served, Bridge], here: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The options that lead to the server, in a folder with a key."""
    monkeypatch.delenv("TACIT_KEY", raising=False)
    (here / "my.key").write_text(there[0].keys["ana"])
    (here / "my.key").chmod(0o600)
    return ["--server", there[1].url, "-k", "my.key"]


def test_what_is_printed_of_a_server_is_what_is_printed_of_the_table(
    there: tuple[Served, Bridge], at: list[str]
) -> None:
    config = ["-c", str(there[0].folder / "people.toml")]
    for command in (
        ["ask", WOMEN, "SELECT sex, AVG(age) FROM data GROUP BY sex", "--bars"],
        ["ask", WOMEN, "--dry-run"],
        ["ask", "--within", "40", "--yes", WOMEN],
        ["table", "sex", "active", "--where", "age < 50"],
        ["cdf", "age"],
        ["quantile", "age", "0.25", "0.5", "--where", "active"],
        ["history", "--all"],
    ):
        assert tacit(*command, *at).exit_code == 0  # bought, by whichever comes first
        for form in ([], ["--json"]) if command[0] == "table" else (["--json"],):
            remote, local = tacit(*command, *at, *form), tacit(*command, *config, *form)
            assert (remote.exit_code, remote.stdout) == (local.exit_code, local.stdout) == (0, remote.stdout), command
    remote, local = answered("status", *at)[0], answered("status", *config)[0]
    assert remote.pop("quota", None) is None
    assert remote == local
    assert tacit("status", *at).stdout == tacit("status", *config).stdout


def test_refusals_have_the_same_sentences_and_exit_codes(there: tuple[Served, Bridge], at: list[str]) -> None:
    config = ["-c", str(there[0].folder / "people.toml")]
    for command, code in (
        (["ask", "SELECT COUNT(*) FROM data WHERE agee < 30"], 1),
        (["ask", "--within", "0.01", "--yes", WOMEN], 3),
        (["table", "sexx"], 1),
        (["ask", WOMEN, "SELECT COUNT(*) FROM data WHERE"], 1),
    ):
        remote, local = tacit(*command, *at), tacit(*command, *config)
        assert remote.stderr == local.stderr
        refused(remote, code=code)
        assert tacit(*command, *at, "--json").stderr == tacit(*command, *config, "--json").stderr


def test_a_published_file_of_a_server(there: tuple[Served, Bridge], at: list[str], here: Path) -> None:
    tacit("ask", WOMEN, *at)
    (wrote,) = answered("publish", "-o", "public.jsonl", *at)
    assert wrote["sha256"] == package.verify(here / "public.jsonl").digest
    refused(tacit("publish", "-o", "public.jsonl", *at), "--force replaces it")
    there_is = answered("ask", WOMEN, "--published", "public.jsonl")[0]
    assert there_is["value"] == answered("ask", WOMEN, *at)[0]["value"]


def test_the_prompt(there: tuple[Served, Bridge], capsys: pytest.CaptureFixture[str]) -> None:
    lines = iter([f"{WOMEN};", f"\\c {WOMEN} AND active;", "\\b", "\\d", "SELECT agee FROM data;"])
    with package.connect(there[1].url, there[0].keys["ana"]) as client:
        said = str(client.ask(WOMEN).value)

        def read(_: str) -> str:
            try:
                return next(lines)
            except StopIteration:
                raise EOFError from None

        prompt.talk(client, console(), read)
    shown = capsys.readouterr().out
    for words in ("301 rows, 4 columns", said, "of it is spent", "F, M", "tacit: "):
        assert words in shown


def test_the_examples_of_the_help_run(there: tuple[Served, Bridge], at: list[str]) -> None:
    for command in ("ask", "status", "history", "publish"):
        lines = re.findall(r"^ +(tacit .+--server .+)$", tacit(command, "--help").stdout, re.MULTILINE)
        assert lines, command
        for line in lines:
            _, *words = shlex.split(line)
            words[words.index("--server") + 1] = there[1].url
            shown = tacit(*words)
            assert shown.exit_code == 0, shown.output


def test_options_that_do_not_go_together(there: tuple[Served, Bridge], at: list[str], here: Path) -> None:
    refused(tacit("ask", WOMEN, *at, "-c", "x.toml"), "instead of --config", code=2)
    refused(tacit("ask", WOMEN, *at, "--published", "x"), "instead of --config", code=2)
    refused(tacit("ask", WOMEN, "--data", "people"), "say --server URL too", code=2)
    refused(tacit("ask", WOMEN, "--server", there[1].url, "-k", "tacit_abc"), "seen by others", code=2)
    refused(tacit("ask", WOMEN, "--server", "http://tacit.example.org"), "in the clear")
    refused(tacit("ask", WOMEN, *at, "--data", "poeple"), "The data sets are people")
    (here / "my.key").chmod(0o644)
    refused(tacit("ask", WOMEN, *at), "others can read the key file my.key: `chmod 600 my.key`")


def test_what_others_spend_is_not_said_to_be_spent_here(
    there: tuple[Served, Bridge], at: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A question that is refused while somebody else buys: nothing was spent by this run."""
    served, way = there
    tacit("ask", WOMEN, *at)

    def meanwhile(reply):  # type: ignore[no-untyped-def]
        served.ask("SELECT COUNT(*) FROM data WHERE pay < 10 AND age < 30 AND active", "bob")
        return reply

    way.faults[:] = [lambda reply: reply] * 2 + [meanwhile]
    shown = tacit("ask", "--file", "-", "--json", *at, given=f"{WOMEN}; SELECT COUNT(*) FROM data WHERE agee < 3")
    assert json.loads(shown.stderr)["error"]["nothing_spent"] is True
