"""The page of an audit: every section, with what was kept and without; names are text wherever they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import audit_record
from audit_record import ROOT, record
from audit_report import ABSOLUTE, SECTIONS, main, page, publish

# What pytest writes about three tests of a run, of which one fails; it says on which machine, which the page does not.
TESTS = """<?xml version="1.0" encoding="utf-8"?>
<testsuites name="pytest tests">
<testsuite name="pytest" errors="0" failures="1" skipped="1" tests="3" time="120.5" hostname="somebodys-machine">
<testcase classname="tests.test_a" name="test_good" time="1" />
<testcase classname="tests.test_a" name="test_bad[&lt;b&gt;]"><failure>/home/somebody/a.py</failure></testcase>
<testcase classname="tests.test_a" name="test_not"><skipped message="no" /></testcase>
</testsuite></testsuites>"""


def test_a_page_of_nothing_says_of_every_section_that_it_was_not_run(tmp_path: Path) -> None:
    assert page(tmp_path).count("Not run,") == len(SECTIONS)


def test_everything_that_is_kept_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_record, "FOLDER", tmp_path)
    about = {"commit": "0abc123d", "date": "18 November 2026", "size": 0.01, "machine": "2 cores"}
    record("run", "run", **about, passed=2_345, skipped=1, failed=[], minutes=49.5)
    record("mutants", "<b>noise</b>", promise="p", file="f.py", failed="", caught=False, taken="1.0 s")
    record("adversaries", "direct", bound=0.5, price=1.0, delta=0.0, transcripts=12_345, bug="b", control=2.5)
    record("reconstruction", "bits, direct", share=0.501, most=0.731, guesses=30_000)
    record("crashes", "kill -9", times=1_000, shown=4_321, broken=0)
    record("requests", "HTTP", sent=1_000_000, refused=400_000, wrong=0)
    one = {"minutes": 0.0, "requests": 0, "lines": 0, "memory": 1, "descriptors": 20, "ledger": 1, "audit": 1}
    record(
        "soak", "soak", samples=[one, one | {"minutes": 60.0, "requests": 777_777}], wrong=["it grew"], commit="1abc"
    )
    shown = page(tmp_path)
    assert "Not run," not in shown
    assert "&lt;b&gt;noise&lt;/b&gt;" in shown
    for words in (
        "0abc123d",
        "18 November 2026",
        "0.01",
        "2,345",
        "failed: none",
        "2 cores",
        "commit 1abc",
        "survived",
        "12,345",
        "0.501",
        "4,321",
        "1,000,000",
        "777,777",
        "it grew",
        "<svg",
    ):
        assert words in shown, words
    for forbidden in ("<script", "<b>", "http://", "https://"):
        assert forbidden not in shown.replace("http://www.w3.org/2000/svg", ""), forbidden


def test_the_run_is_told_by_its_commit_its_size_and_its_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_record, "FOLDER", tmp_path / "build" / "audit")
    monkeypatch.setattr("audit_report.FOLDER", tmp_path / "build" / "audit")
    monkeypatch.setattr("audit_report.ROOT", tmp_path)
    tests, copy = tmp_path / "tests.xml", tmp_path / "audit.html"
    tests.write_text(TESTS)
    main(["--commit", "0abc123d-dirty", "--size", "0.25", "--tests", str(tests), "--publish", str(copy)])
    shown = page(tmp_path / "build" / "audit")
    assert copy.read_text() == (tmp_path / "build" / "audit" / "report.html").read_text()
    (run,) = audit_record.recorded("run", tmp_path / "build" / "audit")
    assert (run["passed"], run["skipped"], run["failed"]) == (1, 1, ["tests.test_a::test_bad[<b>]"])
    for words in ("0abc123d-dirty", "0.25", "tests.test_a::test_bad[&lt;b&gt;]", "cores, ", "Python 3."):
        assert words in shown, words
    assert "somebody" not in shown
    main([])  # as `make soak` calls it: the run stays what it was
    assert "0abc123d-dirty" in (tmp_path / "build" / "audit" / "report.html").read_text()


@pytest.mark.parametrize(
    "place", ["/home/somebody/tacit", "in /tmp/a", "'/work/here.py'", '"/dev/shm/x"', "file:///a/b"]
)
def test_a_page_that_names_a_place_on_a_machine_is_not_published(tmp_path: Path, place: str) -> None:
    with pytest.raises(ValueError, match="names places on this machine"):
        publish(f"<p>{place}</p>", tmp_path / "audit.html")
    assert not (tmp_path / "audit.html").exists()


def test_the_published_page_names_no_place_on_a_machine_and_is_one_of_this_program() -> None:
    shown = (ROOT / "docs/log/audit.html").read_text()
    assert not ABSOLUTE.findall(shown)
    assert re.findall("<h2>(.*?)</h2>", shown) == re.findall("<h2>(.*?)</h2>", page(ROOT / "nowhere"))
    for link in ("docs/log/benchmarks.md", "docs/understand/threats.md"):
        assert "audit.html)" in (ROOT / link).read_text(), link


def test_whatever_an_attack_records_is_on_the_page() -> None:
    tests = Path(__file__).parent
    kept = {name for file in tests.rglob("test_*.py") for name in re.findall(r'record\(\s*"(\w+)"', file.read_text())}
    assert kept == set(re.findall(r'recorded\("(\w+)"', (tests / "audit_report.py").read_text()))
