"""The rows of a series' blocks, as they were appended: kept where this process read them, or read again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tacit.blocks.terms import SeriesTerms
from tacit.errors import DataError, LedgerError, NeedsData
from tacit.load import open_source
from tacit.owner.manifest import Block
from tacit.trusted.cells import read_records
from tacit.trusted.records import MAX_ROWS, Records

# Why the rows of a group cannot be had now. A DataError and a LedgerError are for the owner alone: their words may
# repeat what is in a file. So they are never turned into a NeedsData, whose words a server shows to analysts.
UNREADABLE = (NeedsData, DataError, LedgerError)


class BlockTables:
    """What groups are made from. Nothing of it is kept on disk."""

    def __init__(self, terms: SeriesTerms, secret: bytes) -> None:
        self._terms, self._secret = terms, secret
        self._read: dict[str, Records] = {}  # by the names of their blocks' ledgers

    def read(self, data: Any, table: str | None) -> Records:
        people = 1 if self._terms.rows_per_person is None else self._terms.rows_per_person
        source = open_source(data, table)
        return read_records(source, self._terms.domain, person=self._terms.person, rows_per_person=people)

    def fingerprint(self, rows: Records) -> str:
        return rows.fingerprint(self._secret)

    def keep(self, ledger: str, rows: Records) -> None:
        self._read[ledger] = rows

    def joined(self, blocks: Iterable[Block]) -> Records:
        """The rows of several blocks, as they were appended; one of `UNREADABLE` where they cannot be had."""
        blocks = list(blocks)
        if len({block.ledger for block in blocks}) < len(blocks):  # its rows would move twice as far as is paid for
            raise LedgerError("Each block of a group is in it once.")
        if sum(block.rows for block in blocks) >= MAX_ROWS:
            raise LedgerError(f"A group has fewer than {MAX_ROWS:,} rows.")
        first, *others = [self._again(block) for block in blocks]
        return first.joined(others)

    def _again(self, block: Block) -> Records:
        if block.ledger in self._read:
            return self._read[block.ledger]
        if block.source is None:
            raise needs_rows(block.label)
        rows = self.read(block.source, block.table)
        if self.fingerprint(rows) != block.fingerprint:
            raise changed(block.label)
        return rows


def needs_rows(label: str) -> NeedsData:
    return NeedsData(
        f"The rows of the block {label} were not given as a file or an address, so they cannot be read again here."
    )


def changed(label: str) -> LedgerError:
    return LedgerError(
        f"The rows of the block {label} are not those that it was appended with. What was spent on them stays "
        f"spent, so they stay: late rows and corrections are a block of their own, like {label}-late."
    )
