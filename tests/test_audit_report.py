"""The page of an audit: every section, with what was kept and without; names are text wherever they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import audit_record
from audit_record import record
from audit_report import SECTIONS, page


def test_a_page_of_nothing_says_of_every_section_that_it_was_not_run(tmp_path: Path) -> None:
    assert page(tmp_path).count("Not run,") == len(SECTIONS)


def test_everything_that_is_kept_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_record, "FOLDER", tmp_path)
    record("mutants", "<b>noise</b>", promise="p", file="f.py", failed="", caught=False, seconds=1.0)
    record("adversaries", "direct", bound=0.5, price=1.0, delta=0.0, transcripts=12_345, bug="b", control=2.5)
    record("reconstruction", "bits, direct", share=0.501, most=0.731, guesses=30_000)
    record("crashes", "kill -9", times=1_000, shown=4_321, broken=0)
    record("requests", "HTTP", sent=1_000_000, refused=400_000, wrong=0)
    one = {"minutes": 0.0, "requests": 0, "lines": 0, "memory": 1, "descriptors": 20, "ledger": 1, "audit": 1}
    record("soak", "soak", samples=[one, one | {"minutes": 60.0, "requests": 777_777}], wrong=["it grew"])
    shown = page(tmp_path)
    assert "Not run," not in shown
    assert "&lt;b&gt;noise&lt;/b&gt;" in shown
    for words in ("survived", "12,345", "0.501", "4,321", "1,000,000", "777,777", "it grew", "<svg"):
        assert words in shown, words
    for forbidden in ("<script", "<b>", "http://", "https://"):
        assert forbidden not in shown.replace("http://www.w3.org/2000/svg", ""), forbidden


def test_whatever_an_attack_records_is_on_the_page() -> None:
    tests = Path(__file__).parent
    kept = {name for file in tests.rglob("test_*.py") for name in re.findall(r'record\("(\w+)"', file.read_text())}
    assert kept == set(re.findall(r'recorded\("(\w+)"', (tests / "audit_report.py").read_text()))
