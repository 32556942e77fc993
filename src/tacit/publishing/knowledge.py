"""The three verbs of published knowledge: publish, read, verify. Anybody may call them; only the first needs a session.

Everything in the file was released and paid for, so what is done with it is post-processing (Dwork, McSherry, Nissim &
Smith 2006): no question to it costs anything, ever.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from tacit.errors import ConfigError, LedgerError, NeedsData
from tacit.model.budget import Loss
from tacit.model.facts import Receipt
from tacit.model.request import Declared
from tacit.publishing import entries as checks
from tacit.publishing import file
from tacit.publishing.file import Terms
from tacit.publishing.transcript import Transcript
from tacit.release.public import Public
from tacit.session import Session
from tacit.store.chain import Line


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
            f"nothing, {self.gates:,} gates shut.\nSpent {self.spent} of {self.total}.\n"
            f"seal {self.seal[:16]}… · knowledge {self.knowledge[:16]}… · file {self.digest[:16]}…"
        )


def publish(session: Session, path: str | Path, *, overwrite: bool = False) -> str:
    """Write all that a session has released, and nothing else, to an open file. Returns the file's SHA-256.

    The file holds the sealed entries of the ledger, the declared domain, the number of rows, the budget and the
    mechanism's public settings. It holds no private state: no threshold of a gate, no secret and no fingerprint of the
    data. The same ledger gives the same bytes.

    >>> tacit.publish(session, "survey.tacit.jsonl")   # doctest: +SKIP
    """
    if not isinstance(session, Session):
        raise ConfigError("publish takes an open session and a path.")
    terms, released = _published(session)
    digest = hashlib.sha256()
    file.write(Path(path), file.lines(terms, released, digest), overwrite=overwrite)
    return digest.hexdigest()


def read(path: str | Path) -> Session:
    """A session that answers from a published file alone, free for ever, with the hypothesis that was published.

    What was answered before is answered the same: value, error bar and receipt. What follows from it is worked out as
    where the data are. Answers of a hypothesis that a gate would have to check have no error bar here, and say so.
    What would have to be bought is refused with `NeedsData`.

    >>> tacit.read("survey.tacit.jsonl").ask("SELECT COUNT(*) FROM data WHERE sex = 'F'")   # doctest: +SKIP
    """
    return _read(Path(path))[0]


def verify(path: str | Path, *, receipt: Receipt | None = None, session: Session | None = None) -> Verified:
    """Derive a published file again: every hash, every running total, every price, and the hypothesis.

    receipt: one that an analyst was given; refused unless the file holds that entry with that seal.
    session: the owner's open one; refused unless its ledger begins with this very file.

    Raises, naming the first entry that is wrong.
    """
    path = Path(path)
    reading, terms, released, counted, digest = _read(path)
    held = {0: terms.origin} | {entry.seq: entry.hash for entry in released}
    if receipt is not None and held.get(receipt.entry) != receipt.seal:
        raise LedgerError(f"{path.name} does not hold the receipt {receipt}.")
    if session is not None:
        theirs, all_of_them = _published(session)
        if replace(theirs, program=terms.program) != terms or all_of_them[: len(released)] != released:
            raise LedgerError(f"{path.name} is not what this session has published: terms or entries differ.")
    seal = released[-1].hash if released else terms.origin
    return Verified(
        counted.entries,
        counted.measured,
        counted.told,
        counted.gates,
        reading.spent,
        terms.total,
        seal,
        _knowledge(path, reading),
        digest,
    )


def _published(session: Session) -> tuple[Terms, list[Line]]:
    origin, released = session.transcript()
    return (
        Terms(
            domain=session.domain,
            rows=session.rows,
            rows_per_person=session.rows_per_person,
            budget=session.budget,
            total=session.total,
            confidence=session.confidence,
            choice=session.choice,
            origin=origin,
            program=tacit.__version__,
        ),
        released,
    )


def _read(path: Path) -> tuple[Session, Terms, list[Line], checks.Counted, str]:
    terms, released, digest = file.load(path)
    try:
        counted = checks.check(released, terms.origin, terms.domain, terms.total, terms.rows_per_person)
    except LedgerError as error:
        file.refuse(path, error.sentence.rstrip("."))
    declared = Declared(terms.domain, terms.rows, terms.rows_per_person, terms.total)
    public = Public(Transcript(terms.origin, released), declared)
    mechanism = terms.choice.build(public, None, terms.confidence)
    reading = Session(public, None, None, terms.budget, terms.choice, mechanism, terms.confidence)
    return reading, terms, released, counted, digest


def _knowledge(path: Path, reading: Session) -> str:
    """A digest of what is known, derived afresh: the hypothesis, the databases, or the released answers themselves."""
    digest = hashlib.sha256()
    try:
        arrays = list(reading.arrays())
    except NeedsData:
        raise ConfigError(
            f"the hypothesis of {path.name} cannot be derived again here: the arithmetic of this machine or version "
            "leads to questions that were not asked."
        ) from None
    for array in arrays:
        little = array.astype(array.dtype.newbyteorder("<"))
        digest.update(np.ascontiguousarray(little).tobytes())
    if not arrays:
        for past in reading.history:
            digest.update(past.receipt.seal.encode("ascii"))
    return digest.hexdigest()
