"""What a soak notices: growth that the ledger's lines explain passes, and growth that nothing explains does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import memory_parts
import pytest
import soak
from soak import Sample, picture, unexplained

import audit_record
from tacit.serve.question import MOST_REMEMBERED

SAMPLES = [
    Sample(minutes, 600 * minutes, 300 * minutes, 150 * 2**20 + 100_000 * minutes, 25 + minutes % 3, 10**6 * minutes, 0)
    for minutes in range(61)
]


def test_growth_with_the_lines_is_explained() -> None:
    assert unexplained(SAMPLES) == []
    assert "60 minutes at mixed load" in picture(SAMPLES).svg()


@pytest.mark.parametrize(
    ("name", "a_minute", "words"),
    [("memory", 2 * 2**20, "of memory"), ("descriptors", 1, "descriptors after"), ("ledger", 2**21, "of the ledger"),
     ("audit", 4 * 2**20, "of the audit log")],
)  # fmt: skip
def test_planted_growth_is_noticed(name: str, a_minute: int, words: str) -> None:
    grown = [replace(one, **{name: getattr(one, name) + int(a_minute * one.minutes)}) for one in SAMPLES]
    (found,) = unexplained(grown)
    assert words in found


def test_samples_that_a_busy_machine_takes_late_are_judged_as_others() -> None:
    assert unexplained([*SAMPLES[:2], replace(SAMPLES[2], minutes=1000.0)]) == []


def test_what_new_questions_leave_in_memory_is_printed(tmp_path: Path) -> None:
    said: list[str] = []
    soak.ask_new(tmp_path, 5, say=said.append)
    assert len(said) == 5
    assert "5 questions" in said[-1]


@pytest.mark.audit
def test_what_a_server_holds_is_told_by_parts_that_add_up(tmp_path: Path) -> None:
    said: list[str] = []
    rows = memory_parts.watch(tmp_path, [100, 200], say=said.append)
    for _, resident, files, objects, arrays, free, sqlite, _, remembered, *_ in rows:
        assert resident / 2 < files + objects + arrays + free < 2 * resident
        assert sqlite < arrays
        assert remembered <= MOST_REMEMBERED
    assert len(said) == 3


def test_a_server_is_loaded_for_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_record, "FOLDER", tmp_path / "audit")
    monkeypatch.setattr(soak, "FOLDER", tmp_path / "audit")
    said: list[str] = []
    assert soak.soak(tmp_path, 0.02, samples=2, say=said.append) == []
    assert len(said) == 3
    assert (tmp_path / "audit" / "soak.svg").read_text().startswith("<svg")
