"""What is kept beside a ledger spares a fit, changes no bit, and is passed over where it is not what it says."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.release import iterative, warm_start
from tacit.release.hypothesis import fit_mixture
from tacit.release.warm_start import packed, unpacked
from tacit.shelf import MOST_SHELVED, Cache, Shelf

QUESTIONS = [
    "SELECT COUNT(*) FROM data WHERE a = 1 AND b < 5",
    "SELECT COUNT(*) FROM data WHERE (a = 1 AND b < 5) OR (b >= 5 AND c = 'y') OR (a = 2 AND c = 'x')",
    "SELECT SUM(b) FROM data WHERE c = 'y'",
]


def opened(folder: Path) -> tacit.Session:
    draw = np.random.default_rng(1)
    a = draw.integers(0, 3, 4_000)
    b = np.minimum(9, 2 * a + draw.integers(0, 6, 4_000))
    text = "a,b,c\n" + "".join(f"{i},{j},{'xyz'[(i + j) % 3]}\n" for i, j in zip(a, b, strict=True))
    (folder / "rows.csv").write_text(text)
    return tacit.open(
        data=folder / "rows.csv",
        domain={
            "a": tacit.integer(0, 2),
            "b": tacit.integer(0, 9),
            "c": tacit.category(["x", "y", "z"]),
        },
        budget=tacit.Budget(epsilon=4.0, delta=1e-9),
        ledger=folder / "kept.tacit",
        mechanism="iterative",
        warm=0.5,
        certify=0.1,
        hits=20,
        start=True,
    )


def observed(folder: Path) -> list[object]:
    with opened(folder) as session:
        answers = [session.ask(question) for question in QUESTIONS]
        return [*(one.to_dict() | {"cost": None, "percent": None, "total": None, "source": None} for one in answers),
                *(one.tobytes() for one in session.arrays())]  # fmt: skip


@pytest.fixture(params=["listed", "mixture"])
def folder(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if request.param == "mixture":  # as if the cells of X could not be listed
        for module in (iterative, warm_start):
            monkeypatch.setattr(module, "MAX_LISTED_CELLS", 1)
        monkeypatch.setattr(fit_mixture, "STEPS", 100)  # how good the fit is does not matter here
        monkeypatch.setattr(fit_mixture, "FURTHER", 10)
    return tmp_path


def test_what_is_kept_spares_the_fit_and_changes_no_bit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = observed(folder)
    assert observed(folder) == first
    base = folder / "kept.tacit.base"
    assert base.stat().st_mode & 0o777 == 0o600
    fits: list[int] = []
    fit_all = warm_start.fit_all

    def counted(*given: object, **more: object) -> object:
        fits.append(1)
        return fit_all(*given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(warm_start, "fit_all", counted)
    monkeypatch.setattr(iterative, "fit_all", counted)
    assert observed(folder) == first
    assert not fits
    for harm in (lambda: base.unlink(), lambda: base.write_bytes(base.read_bytes()[:-1] + b"?"), _swapped(base)):
        harm()
        assert observed(folder) == first  # worked out again, and kept again
        assert fits
        fits.clear()


def _swapped(base: Path):  # type: ignore[no-untyped-def]
    """Of another ledger: its name is another, whatever it holds."""

    def swap() -> None:
        lines = base.read_bytes().split(b"\n", 3)
        base.write_bytes(b"\n".join((lines[0], b"0" * 64, *lines[2:])))

    return swap


def test_one_more_answer_is_one_more_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (iterative, warm_start):
        monkeypatch.setattr(module, "MAX_LISTED_CELLS", 1)
    with opened(tmp_path) as session:
        session.ask(QUESTIONS[0])
        for low in range(3):  # bought by themselves, and learned like anything that is public
            session.ask(f"SELECT COUNT(*) FROM data WHERE a = {low} AND b < 5", within=20)
        first = [one.tobytes() for one in session.arrays()]
    assert (tmp_path / "kept.tacit.learned").exists()
    monkeypatch.setattr(iterative, "fit_all", lambda *_, **__: pytest.fail("it was learned before"))
    with opened(tmp_path) as session:
        assert [one.tobytes() for one in session.arrays()] == first


def test_a_folder_that_takes_no_files_is_no_reason_to_fail(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError("read-only")

    monkeypatch.setattr("tacit.shelf.os.replace", refuse)
    assert observed(folder) == observed(folder)
    assert not list(folder.glob("kept.tacit.base*"))


def test_what_is_no_fit_is_passed_over(folder: Path) -> None:
    with opened(folder) as session:
        session.ask(QUESTIONS[0])
        mixture = warm_start.MAX_LISTED_CELLS == 1
        found = warm_start.recalled(session._public)
        assert found is not None
        content = packed(found.fitted)
        assert content is not None
        assert unpacked(content, session.domain, mixture=mixture) is not None
        for wrong in (b"", b"x" * 100, content[:-50], content.replace(b"misfit", b"nothin")):
            assert unpacked(wrong, session.domain, mixture=mixture) is None
        other = tacit.Domain({"a": tacit.integer(0, 5)})
        assert unpacked(content, other, mixture=mixture) is None


def test_a_shelf_gives_back_what_was_put_there_and_nothing_else(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path / "l.tacit", b"secret")
    assert shelf.get("base", "n") is None
    shelf.put("base", "n", b"one\ntwo\n")
    assert shelf.get("base", "n") == b"one\ntwo\n"
    assert shelf.get("base", "m") is None
    assert shelf.get("learned", "n") is None
    shelf.put("base", "m", b"")
    assert shelf.get("base", "n") is None
    assert shelf.get("base", "m") == b""
    assert Shelf(tmp_path / "l.tacit", b"another").get("base", "m") is None  # sealed by who has no secret
    shelf.put("learned", "n", bytes(MOST_SHELVED + 1))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["l.tacit.base"]


def test_processes_of_one_number_that_share_a_folder_do_not_step_on_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In a container every server is process 1, and many of them start at once.
    replace, inner = os.replace, list[bool]()

    def both_at_once(made: Path, place: Path) -> None:
        if not inner:
            inner.append(True)
            Cache("one", tmp_path).put("base", "n", b"content")
        replace(made, place)

    monkeypatch.setattr("tacit.shelf.os.getpid", lambda: 1)
    monkeypatch.setattr("tacit.shelf.os.replace", both_at_once)
    Cache("one", tmp_path).put("base", "n", b"content")
    assert inner
    assert Cache("one", tmp_path).get("base", "n") == b"content"
    assert [file.name for file in (tmp_path / "read").iterdir()] == ["one.base"]


def test_a_published_file_is_fitted_once_by_its_reader_and_afresh_by_who_verifies_it(
    folder: Path, own_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(folder) as session:
        session.ask(QUESTIONS[0])
        tacit.publish(session, folder / "public.tacit")
    fits: list[int] = []
    fit_all = warm_start.fit_all

    def counted(*given: object, **more: object) -> object:
        fits.append(1)
        return fit_all(*given, **more)  # type: ignore[arg-type]

    for module in (warm_start, iterative):
        monkeypatch.setattr(module, "fit_all", counted)

    def read() -> tuple[int, list[bytes]]:
        fits.clear()
        with tacit.read(folder / "public.tacit") as reading:
            found = [one.tobytes() for one in reading.arrays()]
        return len(fits), found

    (first, arrays), kept = read(), own_state / "read"
    assert first
    assert read() == (0, arrays)
    tacit.verify(folder / "public.tacit")
    assert fits  # it takes nobody's word
    for file in kept.iterdir():
        file.write_bytes(file.read_bytes()[:-1] + b"?")
    assert read() == (first, arrays)
    # Entries may be the same and the file another, which says something else about them: nothing of one is the other's.
    (one,) = (file for file in kept.iterdir() if file.suffix == ".base")
    name = one.read_bytes().split(b"\n")[1].decode()
    assert Cache(one.stem).get("base", name) is not None
    one.rename(kept / f"{'0' * 64}.base")
    assert Cache("0" * 64).get("base", name) is None


def test_a_readers_cache_is_small_and_no_reason_to_fail(
    tmp_path: Path, own_state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = [own_state / "read" / name for name in ("a letter", f"{'0' * 64}.base.txt")]
    theirs[0].parent.mkdir()
    for file in theirs:  # what is not ours is never deleted, however old it is
        file.write_text("theirs")
    for i in range(25):
        Cache(f"{i:064}").put("base", "n", b"content")
    assert len(list((own_state / "read").iterdir())) == 20 + len(theirs)
    assert {file.read_text() for file in theirs} == {"theirs"}
    assert Cache(f"{24:064}").get("base", "n") == b"content"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TACIT_STATE", str(tmp_path / "file"))  # where no folder can be made
    Cache("one").put("base", "n", b"content")
    assert Cache("one").get("base", "n") is None
    monkeypatch.delenv("TACIT_STATE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    Cache("one").put("base", "n", b"content")
    assert (tmp_path / "tacit" / "one.base").stat().st_mode & 0o777 == 0o600
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    Cache("one").put("base", "n", b"content")
    assert Cache("one").get("base", "n") is None
