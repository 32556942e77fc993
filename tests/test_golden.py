"""Golden files: ledgers, answers, prices, keys, published files and the HTTP interface are what they were.

After a change on purpose, `python tests/golden/make.py` writes them anew, and the diff shows what changed.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tacit
from golden import cases
from tacit.serve.openapi import document
from tacit.store import rows


def agree(found: Any, name: str) -> None:
    wrong = cases.differences(found, cases.kept(name))
    assert not wrong, "\n".join(wrong[:20])


@pytest.mark.parametrize("name", cases.SESSIONS)
def test_a_kept_ledger_answers_as_ever_for_nothing_and_publishes_the_same_bytes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tacit, "__version__", cases.PROGRAM)
    cases.restore(tmp_path, name)
    before = cases.dump(tmp_path / "golden.tacit")
    with cases.open_at(tmp_path, name) as session:
        agree(cases.observe(session), f"answers/{name}.json")
        tacit.publish(session, tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes() == (cases.HERE / "published" / f"{name}.jsonl").read_bytes()
    after = cases.dump(tmp_path / "golden.tacit")
    for index in (rows.OUTCOMES, rows.LIMIT_LINES):  # which earlier ones had not
        made = index.replace(" IF NOT EXISTS", "") + ";\n"
        before, after = before.replace(made, ""), after.replace(made, "")
    assert after == before


@pytest.mark.parametrize("name", cases.SESSIONS)
def test_a_published_file_is_verified_and_answers_as_ever(name: str) -> None:
    agree(cases.observe_published(cases.HERE / "published" / f"{name}.jsonl"), f"published/{name}.json")


def test_the_ledgers_hold_what_the_formats_can_say() -> None:
    """Each kind of entry stands in some ledger, so that the files above are a test of all of them."""
    told = "".join((cases.HERE / "published" / f"{name}.jsonl").read_text() for name in cases.SESSIONS)
    for word in (
        "gate",
        "told",
        "bars",
        "choice",
        "among",
        "noise",
        "statistic",
        "tree",
        "convolution",
        "product",
        "threshold",
        "terms",
    ):
        assert f'\\"{word}\\"' in told, word
    shut = cases.kept("answers/iterative.json")["history"]
    assert any(line[0] == "a hard question found" for line in shut)
    private = [(cases.HERE / "ledgers" / f"{name}.tacit.sql").read_text() for name in ("iterative", "median")]
    assert all('INSERT INTO "private"' in text for text in private)  # a gate that is open


def test_the_http_interface_is_as_ever(tmp_path: Path) -> None:
    assert document() == json.loads((cases.HERE / "openapi.json").read_text())
    cases.restore(tmp_path, "direct")
    agree(cases.observe_http(tmp_path), "http.json")


def test_canonical_keys_are_as_ever() -> None:
    agree(cases.keys(), "keys.json")


def test_prices_are_as_ever() -> None:
    agree(cases.prices(), "prices.json")


def test_plans_are_as_ever() -> None:
    agree(cases.plans(), "plans.json")
