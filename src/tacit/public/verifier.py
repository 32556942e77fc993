"""`verify`: everything in a file derived again, for anybody."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

from tacit.errors import ConfigError, LedgerError, NeedsData
from tacit.model.budget import Loss, percent_of
from tacit.model.facts import Receipt
from tacit.public import file
from tacit.public.check import check
from tacit.public.publisher import contents
from tacit.public.reader import opened
from tacit.session import Session


@dataclass(frozen=True)
class Verified:
    """What was derived again from a published file. `knowledge` is a digest of the hypothesis, to the last bit."""

    entries: int
    measured: int
    told: int
    gates: int
    spent: Loss
    total: Loss
    seal: str
    knowledge: str
    digest: str

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        amounts = {"spent": {self.spent.measure: float(self.spent)}, "total": {self.total.measure: float(self.total)}}
        return asdict(self) | amounts

    def __str__(self) -> str:
        return (
            f"{self.entries:,} entries follow from one another: {self.measured:,} measured, {self.told:,} told for "
            f"nothing, {self.gates:,} gates shut.\n{percent_of(self.spent, self.total)} of the budget is spent.\n"
            f"seal {self.seal[:16]}… · knowledge {self.knowledge[:16]}… · file {self.digest[:16]}…"
        )


def verify(path: str | Path, *, receipt: Receipt | None = None, session: Session | None = None) -> Verified:
    """Derive a published file again: every hash, every running total, every price, and the hypothesis.

    receipt: one that an analyst was given; refused unless the file holds that entry with that seal.
    session: the owner's open one; refused unless its ledger begins with this very file.

    Raises, naming the first entry that is wrong.
    """
    path = Path(path)
    found = file.load(path)
    check(path, found)
    header, lines = found.header, found.lines
    seals = {0: header.origin} | {line.seq: line.hash for line in lines}
    if receipt is not None and seals.get(receipt.entry) != receipt.seal:
        raise LedgerError(f"{path.name} does not hold the receipt {receipt}.")
    if session is not None:
        theirs, all_of_them = contents(session)
        if replace(theirs, program=header.program) != header or all_of_them[: len(lines)] != lines:
            raise LedgerError(f"{path.name} is not what this session has published: terms or entries differ.")
    reading, kinds = opened(found), [line.kind for line in lines]
    return Verified(
        entries=len(lines),
        measured=kinds.count("measured"),
        told=kinds.count("told"),
        gates=kinds.count("shut"),
        spent=reading.spent,
        total=header.total,
        seal=lines[-1].hash if lines else header.origin,
        knowledge=knowledge(path, reading),
        digest=found.digest,
    )


def knowledge(path: Path, reading: Session) -> str:
    """A digest of what is known, derived afresh: the hypothesis, the databases, or the released answers themselves."""
    digest = hashlib.sha256()
    try:
        arrays = reading.arrays()
    except NeedsData:
        raise ConfigError(f"the hypothesis of {path.name} cannot be derived: its start was cut short.") from None
    for array in arrays:
        little = array.astype(array.dtype.newbyteorder("<"))
        digest.update(np.ascontiguousarray(little).tobytes())
    if not arrays:
        for past in reading.history:
            digest.update(past.receipt.seal.encode("ascii"))
    return digest.hexdigest()
