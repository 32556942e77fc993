"""A server of a published file that is given a folder for its state: the second start fits nothing, and nobody is told
anything else. The folder may be missing, unwritable, damaged or deleted at any time.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

import tacit
from tacit.cli import main
from tacit.release import iterative, warm_start
from tacit.release.hypothesis import fit_mixture
from tacit.serve import run, serve_published
from tacit.serve.admission import Limits
from tacit.serve.app import LOOPBACK, make_app
from tacit.serve.served_data import Replica
from tacit.serve.server import Server

QUESTIONS = [
    "SELECT COUNT(*) FROM data WHERE a = 1 AND b < 5",
    "SELECT COUNT(*) FROM data WHERE a = 2 AND b >= 5 AND c = 'x'",
    "SELECT c, COUNT(*) FROM data GROUP BY c",
]
Start = Callable[[Path | None], tuple[int, list[bytes]]]


@pytest.fixture(params=["listed", "mixture"])
def shape(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests that ask for it are run of both kinds of hypotheses."""
    if request.param == "mixture":  # as if the cells of X could not be listed
        for module in (iterative, warm_start):
            monkeypatch.setattr(module, "MAX_LISTED_CELLS", 1)
        monkeypatch.setattr(fit_mixture, "STEPS", 100)  # how good the fit is does not matter here
        monkeypatch.setattr(fit_mixture, "FURTHER", 10)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """What was published of a table that was started."""
    draw = np.random.default_rng(1)
    a = draw.integers(0, 3, 4_000)
    b = np.minimum(9, 2 * a + draw.integers(0, 6, 4_000))
    text = "a,b,c\n" + "".join(f"{i},{j},{'xyz'[(i + j) % 3]}\n" for i, j in zip(a, b, strict=True))
    (tmp_path / "rows.csv").write_text(text)
    domain = {"a": tacit.integer(0, 2), "b": tacit.integer(0, 9), "c": tacit.category(["x", "y", "z"])}
    with tacit.open(
        data=tmp_path / "rows.csv",
        domain=domain,
        budget=tacit.Budget(epsilon=4.0, delta=1e-9),
        ledger=tmp_path / "rows.tacit",
        mechanism="iterative",
        warm=0.5,
        certify=0.1,
        hits=20,
        start=True,
    ) as session:
        session.ask(QUESTIONS[0])
        session.publish(tmp_path / "rows.json")
    return tmp_path / "rows.json"


@pytest.fixture
def start(file: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Starts a server with a folder for its state, and says how often it fitted and what it answers."""
    fits, servers, fit_all = list[int](), list[Server](), warm_start.fit_all

    def counted(*given: Any, **more: Any) -> Any:
        fits.append(1)
        return fit_all(*given, **more)

    def open_only(open_all: Callable[[ExitStack], Any], *_: object) -> None:
        with ExitStack() as undo:
            datasets, ring = open_all(undo)
            undo.pop_all()
        servers.append(Server(datasets, ring, Limits(rate=1e9, burst=10**9), LOOPBACK, 8470))

    for module in (warm_start, iterative):
        monkeypatch.setattr(module, "fit_all", counted)
    monkeypatch.setattr(run, "_run", open_only)

    def started(state: Path | None) -> tuple[int, list[bytes]]:
        fits.clear()
        serve_published({"rows": file}, state=state)
        with TestClient(make_app(servers.pop()), base_url="http://127.0.0.1:8470") as client:
            said = [client.get("/v1/rows/ask", params={"sql": question}) for question in QUESTIONS]
        assert {one.status_code for one in said} == {200}
        return len(fits), [one.content for one in said]

    return started


@pytest.mark.usefixtures("shape")
def test_a_second_start_fits_nothing_and_answers_the_same_bytes(start: Start, tmp_path: Path, own_state: Path) -> None:
    before = sorted(own_state.rglob("*"))
    first, said = start(None)
    assert first
    assert start(None) == (first, said)
    assert sorted(own_state.rglob("*")) == before  # nothing is written where no folder was named
    state = tmp_path / "made" / "state"
    assert start(state) == (first, said)
    assert start(state) == (0, said)
    for kept in (state / "read").iterdir():
        assert kept.stat().st_mode & 0o777 == 0o600
        kept.unlink()
    assert start(state) == (first, said)  # whatever of it is deleted
    shutil.rmtree(state)
    assert start(state) == (first, said)
    assert start(state) == (0, said)


def test_what_a_reader_has_kept_serves_too(start: Start, file: Path, own_state: Path) -> None:
    with tacit.read(file) as reading:
        reading.arrays()
    assert start(own_state)[0] == 0


@pytest.mark.usefixtures("shape")
def test_a_kept_file_that_was_changed_is_not_believed(start: Start, tmp_path: Path) -> None:
    first, said = start(tmp_path)
    whole = {kept: kept.read_bytes() for kept in (tmp_path / "read").iterdir()}
    assert whole
    for harm in (lambda said: said[:-1] + b"?", lambda said: said[: len(said) // 2], lambda _: b""):
        for kept, content in whole.items():
            kept.write_bytes(harm(content))
        assert start(tmp_path) == (first, said)
    assert start(tmp_path) == (0, said)  # it was worked out again, and kept again
    for kept in whole:  # of another published file, though with this one's name
        kept.rename(tmp_path / "kept")
        lines = (tmp_path / "kept").read_bytes().split(b"\n", 3)
        kept.write_bytes(b"\n".join((lines[0], b"0" * 64, *lines[2:])))
    assert start(tmp_path) == (first, said)


def test_a_folder_that_cannot_be_written_is_no_reason_to_fail(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, said = start(None)
    (tmp_path / "file").write_text("")
    assert start(tmp_path / "file") == (first, said)  # where no folder can be made
    assert start(tmp_path / "file" / "below") == (first, said)
    state = tmp_path / "state"

    def refuse(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    with monkeypatch.context() as patch:
        patch.setattr("tacit.shelf.os.replace", refuse)
        assert start(state) == (first, said)
        assert not list((state / "read").iterdir())
    assert start(state) == (first, said)
    with monkeypatch.context() as patch:  # what another has kept there can be read all the same
        patch.setattr("tacit.shelf.os.replace", refuse)
        assert start(state) == (0, said)


def test_a_folder_that_everybody_may_write_to_is_refused(start: Start, file: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    (state / "read").mkdir(parents=True)
    for folder in (state, state / "read"):
        folder.chmod(0o777)
        with pytest.raises(tacit.ConfigError, match="everybody on this machine may write"):
            start(state)
        said = CliRunner().invoke(main, ["serve", "--published", str(file), "--state", str(state), "--port", "0"])
        assert said.exit_code != 0
        assert "everybody on this machine may write" in " ".join(said.output.split())
        assert not list((state / "read").iterdir())
        folder.chmod(0o755)
    start(state)
    assert list((state / "read").iterdir())


def test_servers_of_many_files_keep_something_of_each(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    places = list[Any]()

    def open_only(open_all: Callable[[ExitStack], Any], *_: object) -> None:
        open_all(ExitStack())

    def keep_two(name: str, path: Path, *_: object, keep: Callable[[str], Any], **__: object) -> Any:
        places.append(keep(f"{len(places):064}"))
        for kind in ("base", "learned"):
            places[-1].put(kind, "n", b"content")
        return SimpleNamespace(close=lambda: None)

    monkeypatch.setattr(run, "_run", open_only)
    monkeypatch.setattr(Replica, "open", keep_two)
    serve_published({f"f{i}": f"f{i}.json" for i in range(30)}, state=tmp_path)
    assert all(place.get(kind, "n") == b"content" for place in places for kind in ("base", "learned"))


def test_the_command_hands_the_folder_on(monkeypatch: pytest.MonkeyPatch, file: Path, tmp_path: Path) -> None:
    given = list[Any]()
    monkeypatch.setattr("tacit.serve.serve_published", lambda *_, **more: given.append(more["state"]))
    for words in ([], ["--state", str(tmp_path)]):
        assert CliRunner().invoke(main, ["serve", "--published", str(file), *words]).exit_code == 0
    assert given == [None, str(tmp_path)]
    said = CliRunner().invoke(main, ["serve", str(file), "--state", str(tmp_path)])
    assert said.exit_code != 0
    assert "--state is for --published" in said.output
