"""Trusted with budgets: the records of the lines in the manifest of a series, and the one codec of these.

A line's kind says which record its body is, and a record has one spelling: that of `canonical`.
"""

from __future__ import annotations

import json
from typing import Annotated, ClassVar

from msgspec import Meta, Struct, ValidationError, convert, to_builtins

from tacit.errors import LedgerError, TacitError
from tacit.model.entry import Extended
from tacit.model.entry import decode as decode_decision
from tacit.model.entry import encode as encode_decision
from tacit.release.groups import BlockGroup, Levels
from tacit.store.chain import Draft, Sealed, canonical

Natural = Annotated[int, Meta(ge=0)]


class Divided(Struct, frozen=True, forbid_unknown_fields=True):
    """How the budget of a row is divided among levels: sizes, weights and variances to expect of each; and why."""

    levels: tuple[tuple[int, ...], tuple[int, ...], tuple[float, ...]]
    why: str

    @classmethod
    def of(cls, levels: Levels, why: str) -> Divided:
        return cls((levels.sizes, levels.weights, levels.spreads), why)

    @property
    def among(self) -> Levels:
        sizes, weights, spreads = self.levels
        return Levels(sizes, weights, spreads)


class Block(Struct, frozen=True, forbid_unknown_fields=True):
    """One block as the manifest knows it. `source` is where its rows are, where that can be said in words."""

    label: str
    rows: Natural
    ledger: str  # its name, in the folder of the series
    origin: str
    fingerprint: str
    source: str | None = None
    table: str | None = None
    prior: str | None = None  # the digest of what its start is drawn to

    level: ClassVar[int] = 0  # of groups of blocks: a block by itself


class GroupLedger(Struct, frozen=True, forbid_unknown_fields=True):
    """The ledger of a group of blocks. `label` names its blocks for people."""

    level: Natural
    place: Natural
    label: str
    rows: Natural
    ledger: str
    origin: str
    prior: str | None = None

    @property
    def group(self) -> BlockGroup:
        return BlockGroup(self.level, self.place)


class MissedGroup(Struct, frozen=True, forbid_unknown_fields=True):
    """A group that has no ledger, and never gets one."""

    level: Natural
    place: Natural

    @property
    def group(self) -> BlockGroup:
        return BlockGroup(self.level, self.place)


ManifestEntry = Divided | Block | GroupLedger | MissedGroup | Extended
_RECORDS: dict[str, type[Divided | Block | GroupLedger | MissedGroup]] = {
    "levels": Divided,
    "block": Block,
    "group": GroupLedger,
    "missed": MissedGroup,
}
_KINDS = {record: kind for kind, record in _RECORDS.items()}
ENTRY_KINDS = (*_RECORDS, "extended")


def encode(entry: ManifestEntry) -> tuple[str, str]:
    """The kind of an entry's line, and its body in canonical JSON."""
    if isinstance(entry, Extended):
        return encode_decision(entry)
    return _KINDS[type(entry)], canonical(to_builtins(entry))


def draft(entry: ManifestEntry) -> Draft:
    """The line that says an entry. A key stands in one line: what has a key is said once."""
    kind, body = encode(entry)
    match entry:
        case Divided():
            key: str | None = "levels"
        case Block(label=label):
            key = f"block {label}"
        case GroupLedger() | MissedGroup():
            key = f"group {entry.level} {entry.place}"
        case Extended():
            key = None
    return Draft(kind, 0, body, key=key)


def decode(line: Sealed) -> ManifestEntry:
    """The entry of a line; what is none of this kind is refused."""
    try:
        if line.kind == "extended":
            entry = decode_decision(line.kind, line.body)
            assert isinstance(entry, Extended)
            return entry
        # Not by `msgspec.json`: a path on this machine may be no Unicode, and is then written as half a surrogate pair.
        return convert(json.loads(line.body), _RECORDS[line.kind])
    except (TacitError, ValidationError, LookupError, TypeError, ValueError, RecursionError):
        raise damaged(line) from None


def damaged(line: Sealed) -> LedgerError:
    """The refusal of a line that is not what its kind says."""
    return LedgerError(f"The manifest is damaged: entry {line.seq} is no {line.kind}.")
