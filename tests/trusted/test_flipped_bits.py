"""One bit of a ledger's file is another: it is refused in plain words, or nothing that anybody sees has changed."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from ledger_tools import PRICE, ask, reopen, terms

from tacit.errors import TacitError
from tacit.store import rows
from tacit.trusted.ledger import Ledger

KEYS = [f"{number:064x}" for number in range(30)]


def body(number: int) -> str:
    return json.dumps({"question": {"factors": []}, "values": [1000 + 17 * number], "unit": 1})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed ledger with answers, a reservation without one and an open gate's noise."""
    folder = tmp_path_factory.mktemp("whole")
    with Ledger.open(folder / "people.tacit", make="new", **terms(folder)) as ledger:
        for number, key in enumerate(KEYS):
            ask(ledger, key, body(number))
        ledger.reserve(PRICE, purpose="a gate", private="123456789")
    with closing(sqlite3.connect(folder / "people.tacit")) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


def flipped(whole: Path, folder: Path, bit: int) -> str:
    """What comes of opening a copy with one other bit, of reading every answer and of asking one more question."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(whole, folder)
    content = bytearray((folder / "people.tacit").read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    (folder / "people.tacit").write_bytes(content)
    try:
        with reopen(folder) as ledger:
            assert ledger.spent.atoms >= 310
            found = ledger.find_many(KEYS)
            assert {key: line.body for key, line in found.items()} == {key: body(n) for n, key in enumerate(KEYS)}
            ask(ledger, "new", '"new"')
            assert ledger.spent.atoms >= 320
    except TacitError as error:
        return f"refused: {error.sentence}"
    return "harmless"


def positions(whole: Path, count: int) -> list[int]:
    """Bits all over the file, and one of each byte of an answer."""
    content = (whole / "people.tacit").read_bytes()
    rng, start = random.Random(7), content.index(body(11).encode())
    return [rng.randrange(8 * len(content)) for _ in range(count)] + [
        8 * byte + rng.randrange(8) for byte in range(start, start + len(body(11)))
    ]


@pytest.mark.parametrize("count", [150, pytest.param(5_000, marks=pytest.mark.crash)])
def test_no_flipped_bit_is_shown_as_an_answer(whole: Path, tmp_path: Path, count: int) -> None:
    found = [flipped(whole, tmp_path / "copy", bit) for bit in positions(whole, count)]
    refused = sum(one.startswith("refused") for one in found)
    print(f"\n{len(found):,} bits flipped: {refused:,} refused, {len(found) - refused:,} harmless")
    assert all(one.startswith("refused") for one in found[count:])  # each byte of the answer is one that matters


def test_planted_lines_that_are_not_checked_when_read(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trusting(db: Any, condition: str, *values: object) -> list[Any]:
        query = f"SELECT {rows._COLUMNS} FROM entries {condition}"
        return list(map(rows.line_of, db.execute(query, values).fetchall()))

    monkeypatch.setattr(rows, "select", trusting)
    with pytest.raises(AssertionError):
        test_no_flipped_bit_is_shown_as_an_answer(whole, tmp_path, 0)


def test_an_answer_that_is_changed_while_in_use_is_not_shown(ledger: Ledger, tmp_path: Path) -> None:
    for key in "abc":
        ask(ledger, key)
    with closing(sqlite3.connect(tmp_path / "people.tacit", isolation_level=None)) as db:
        db.execute("DROP TRIGGER entries_UPDATE")
        db.execute("UPDATE entries SET body = '{\"value\":2}' WHERE key = 'a'")
    with pytest.raises(TacitError, match="is damaged: entry 2"):
        ledger.find("a")
    assert ledger.find("b") is not None
    with pytest.raises(TacitError, match="is damaged: entry 2"):
        list(ledger.log.lines())
    with pytest.raises(TacitError, match="is damaged: entry 2"):
        ledger.log.snapshot()
