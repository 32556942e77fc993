"""What the start of a block is drawn to: what was released of another, kept beside its ledger.

It cannot be worked out again once more is bought of the block before.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import LedgerError
from tacit.owner.manifest import Block, GroupLedger
from tacit.session import Session

if TYPE_CHECKING:
    from tacit.release.hypothesis.prior import Prior


def released(session: Session) -> Prior:
    """What was released of a table, as a public table like the next one."""
    from tacit.release.hypothesis.prior import MOST_CELLS, Prior

    drawn = session.synthetic(min(session.rows, MOST_CELLS))
    cells, counts = np.unique(np.stack(drawn.codes).astype(np.intp), axis=1, return_counts=True)
    return Prior.of(list(drawn.domain), list(cells), counts)


def keep(ledger: Path, prior: Prior) -> None:
    path = ledger.with_name(f"{ledger.name}.prior")
    names = np.array(prior.attributes)
    with open(path, "xb", opener=lambda file, flags: os.open(file, flags, 0o600)) as file:
        np.savez_compressed(file, names=names, codes=np.array(prior.codes), counts=np.array(prior.counts))
        file.flush()
        os.fsync(file.fileno())


def kept(ledger: Path, block: Block | GroupLedger) -> Prior | None:
    if block.prior is None:
        return None
    from tacit.release.hypothesis.prior import Prior

    path = ledger.with_name(f"{ledger.name}.prior")
    try:
        with np.load(path, allow_pickle=False) as kept:
            names, codes, counts = kept["names"].tolist(), list(kept["codes"]), kept["counts"]
        found = Prior.of(names, codes, counts)
    except (OSError, ValueError, KeyError):
        raise LedgerError(f"{path.name}, which the block {block.label} was started from, cannot be read.") from None
    if found.digest != block.prior:
        raise LedgerError(f"{path.name} is not what the block {block.label} was started from.")
    return found
