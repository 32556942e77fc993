"""The lines of a manifest: the bytes that they always had, and the refusal of what is none of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import tacit
from tacit.model.entry import Extended
from tacit.owner.manifest import Manifest, check_listed
from tacit.owner.manifest_entry import Block, Divided, GroupLedger, ManifestEntry, MissedGroup, decode, draft
from tacit.release.groups import Levels
from tacit.store.anchor import Anchor
from tacit.store.chain import Draft, Line

LEVELS = Levels((1, 3), (70, 30), (1.0, 2.5))
BLOCK = Block("März", 400, "m-1.tacit", "1" * 64, "2" * 64, "/data/\udcff.csv", "stays", "3" * 64)
GROUP = GroupLedger(1, 0, "2026-01 to 2026-03", 1_200, "group-1-0.tacit", "4" * 64)
WRITTEN: list[tuple[ManifestEntry, str, str | None, str]] = [
    (
        Divided.of(LEVELS, "groups of 3"),
        "levels",
        "levels",
        '{"levels":[[1,3],[70,30],[1.0,2.5]],"why":"groups of 3"}',
    ),
    (
        BLOCK,
        "block",
        "block März",
        f'{{"fingerprint":"{"2" * 64}","label":"M\\u00e4rz","ledger":"m-1.tacit","origin":"{"1" * 64}",'
        f'"prior":"{"3" * 64}","rows":400,"source":"/data/\\udcff.csv","table":"stays"}}',
    ),
    (
        GROUP,
        "group",
        "group 1 0",
        f'{{"label":"2026-01 to 2026-03","ledger":"group-1-0.tacit","level":1,"origin":"{"4" * 64}","place":0,'
        '"prior":null,"rows":1200}',
    ),
    (MissedGroup(1, 2), "missed", "group 1 2", '{"level":1,"place":2}'),
    (Extended(tacit.Budget(epsilon=2.0, delta=1e-9)), "extended", None, '{"delta":1e-09,"epsilon":2.0}'),
]
WRONG = [
    ("levels", "{}"),
    ("levels", '{"levels":[[1],[100]],"why":""}'),
    ("levels", '{"levels":[[1],["100"],[1.0]],"why":""}'),
    ("block", "no JSON"),
    ("block", "[]"),
    ("block", '{"label":"one"}'),
    ("block", '{"fingerprint":"f","label":"one","ledger":"1","origin":"0","rows":"many"}'),
    ("block", '{"fingerprint":"f","label":"one","ledger":"1","origin":"0","rows":-1}'),
    ("block", '{"fingerprint":"f","label":"one","ledger":"1","origin":"0","rows":1,"weight":2}'),
    ("group", '{"level":1,"place":0}'),
    ("missed", '{"level":"one","place":0}'),
    ("missed", "[" * 100_000),
    ("extended", '{"delta":0.0,"epsilon":-1.0}'),
    ("extended", '{"epsilon":1.0,"more":2}'),
    ("extended", "[]"),
]


def line(draft: Draft) -> Line:
    return Line(1, draft.kind, draft.key, None, draft.atoms, 0, draft.body, "", "")


def manifest(folder: Path) -> Manifest:
    return Manifest.open(folder / "stays.tacit", {}, Anchor(folder / "anchor"), make=True)


@pytest.mark.parametrize(("entry", "kind", "key", "body"), WRITTEN)
def test_a_line_has_the_bytes_that_it_always_had(entry: ManifestEntry, kind: str, key: str | None, body: str) -> None:
    assert draft(entry) == Draft(kind, 0, body, key=key)
    assert decode(line(draft(entry))) == entry


def test_a_block_of_an_earlier_version_says_less() -> None:
    body = '{"fingerprint":"f","label":"one","ledger":"1.tacit","origin":"0","rows":4}'
    assert decode(line(Draft("block", 0, body))) == Block("one", 4, "1.tacit", "0", "f")


@pytest.mark.parametrize(("kind", "body"), WRONG)
def test_what_is_no_line_of_a_manifest_is_refused_in_a_sentence(tmp_path: Path, kind: str, body: str) -> None:
    made = manifest(tmp_path)
    made._write(Draft(kind, 0, body))
    for _ in range(2):
        with pytest.raises(tacit.LedgerError, match=f"The manifest is damaged: entry 1 is no {kind}"):
            _ = made.said
    made.close()


def test_a_ledger_of_a_series_whose_manifest_is_damaged_is_refused_in_a_sentence(tmp_path: Path) -> None:
    made = manifest(tmp_path)
    made._write(Draft("block", 0, '{"label":"one"}'))
    made.close()
    with pytest.raises(tacit.LedgerError, match="The manifest is damaged: entry 1 is no block"):
        check_listed(tmp_path / "stays.tacit.blocks" / "one.tacit", "0" * 64, Anchor(tmp_path / "anchor"))


def test_levels_that_cost_more_than_a_budget_are_refused_where_they_are_read(tmp_path: Path) -> None:
    made = manifest(tmp_path)
    made._write(Draft("levels", 0, '{"levels":[[1,3],[70,40],[1.0,2.5]],"why":""}'))
    with pytest.raises(tacit.LedgerError, match="add up to 100 at most"):
        _ = made.said
    made.close()
