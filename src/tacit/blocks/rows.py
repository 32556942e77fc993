"""Trusted with budgets: the rows that blocks are opened with, as they were appended, and what a start is drawn to.

Their own are kept where this process read them, or read again, and never written. A start is drawn to what was released
of another block, a public table, which is kept beside the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.blocks.terms import SeriesTerms
from tacit.errors import DataError, LedgerError, NeedsData
from tacit.load import open_source
from tacit.owner.manifest_entry import Block, GroupLedger
from tacit.session import Session
from tacit.trusted.cells import read_records
from tacit.trusted.records import MAX_ROWS, Records
from tacit.whole_file import whole

if TYPE_CHECKING:
    from tacit.release.hypothesis.prior import Prior

# Why the rows of a group cannot be had now. A DataError and a LedgerError are for the owner alone: their words may
# repeat what is in a file. So they are never turned into a NeedsData, whose words a server shows to analysts.
UNREADABLE = (NeedsData, DataError, LedgerError)


class BlockTables:
    """What groups are made from. Nothing of it is kept on disk."""

    def __init__(self, terms: SeriesTerms, secret: bytes) -> None:
        self._terms, self._secret = terms, secret
        self._read: dict[str, Records] = {}  # by the names of their blocks' ledgers

    def read(self, data: Any, table: str | None) -> Records:
        terms, source = self._terms, open_source(data, table)
        return read_records(source, terms.domain, person=terms.person, rows_per_person=terms.people)

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


def released(session: Session) -> Prior:
    """What was released of a block, as a public table like the next one."""
    from tacit.release.hypothesis.prior import MOST_PRIOR_CELLS, Prior

    drawn = session.synthetic(min(session.rows, MOST_PRIOR_CELLS))
    cells, counts = np.unique(np.stack(drawn.codes).astype(np.intp), axis=1, return_counts=True)
    return Prior.of(list(drawn.domain), list(cells), counts)


def keep_prior(ledger: Path, prior: Prior) -> None:
    """Write it beside the ledger: it cannot be worked out again once more is bought of the block before."""
    names = np.array(prior.attributes)
    with whole(_beside(ledger), overwrite=False, mode=0o600) as made, made.open("wb") as file:
        np.savez_compressed(file, names=names, codes=np.array(prior.codes), counts=np.array(prior.counts))


def kept_prior(ledger: Path, block: Block | GroupLedger) -> Prior | None:
    """What was written beside the ledger; None where the block was started from nothing."""
    if block.prior is None:
        return None
    from tacit.release.hypothesis.prior import Prior

    path = _beside(ledger)
    try:
        with np.load(path, allow_pickle=False) as kept:
            names, codes, counts = kept["names"].tolist(), list(kept["codes"]), kept["counts"]
        found = Prior.of(names, codes, counts)
    except (OSError, ValueError, KeyError):
        raise LedgerError(f"{path.name}, which the block {block.label} was started from, cannot be read.") from None
    if found.digest != block.prior:
        raise LedgerError(f"{path.name} is not what the block {block.label} was started from.")
    return found


def _beside(ledger: Path) -> Path:
    return ledger.with_name(f"{ledger.name}.prior")
