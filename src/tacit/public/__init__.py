"""Published knowledge: all that a session has released as one open file, read and checked without data. For anybody.

`publish` writes it, `read` answers from it with the same hypothesis, `verify` derives everything in it again. All of it
was released and paid for, so what is done with it is post-processing (Dwork, McSherry, Nissim & Smith 2006): it costs
nothing, ever. The format is described field by field in docs/reference/published.md.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace

import tacit
from tacit.errors import ConfigError, LedgerError, NeedsData
from tacit.model.budget import Budget, Loss, percent_of, raised
from tacit.model.facts import Receipt
from tacit.model.request import Declared
from tacit.public import file
from tacit.public.check import check
from tacit.public.file import ChosenMechanism, Contents, Header
from tacit.public.lines import PublishedLines
from tacit.release.public import Kept, Public
from tacit.session import Session, no_collection
from tacit.shelf import Cache
from tacit.store.chain import LIMITS, Line, Mark, mark
from tacit.whole_file import write_whole

__all__ = ["Verified", "publish", "read", "verify"]


def publish(session: Session, path: str | Path, *, overwrite: bool = False) -> str:
    """Write all that a session has released, and nothing else, to an open file. Returns the file's SHA-256.

    The file holds the sealed entries of the ledger, the declared domain, the number of rows, the budget and the
    mechanism's public settings. It holds no private state: no threshold of a gate, no secret and no fingerprint of the
    data. The same ledger gives the same bytes.

    >>> tacit.publish(session, "survey.tacit.jsonl")   # doctest: +SKIP
    """
    if not isinstance(session, Session):
        raise ConfigError("publish takes an open session and a path.")
    digest = hashlib.sha256()
    write_whole(Path(path), file.lines(*contents(session), digest), overwrite=overwrite, mode=0o644)  # it is public
    return digest.hexdigest()


def contents(session: Session) -> tuple[Header, list[Line]]:
    """What a file about this session says now."""
    return header(session), session.transcript()[1]


def header(session: Session) -> Header:
    """What a file about this session begins with. It never changes: extensions of the budget are entries."""
    return Header(
        format="tacit published",
        version=4,
        program=tacit.__version__,
        domain=session.domain.to_toml(),
        rows=session.rows,
        rows_per_person=session.rows_per_person,
        budget=session.made_with[0],
        aside=session.aside or None,
        total=session.made_with[1],
        confidence=session.confidence,
        mechanism=ChosenMechanism(**session.choice.to_dict()),
        origin=session.origin,
        continues=None if session.continues is None else session.continues.ledger,
        prior=session.prior,
    )


def read(path: str | Path, *, unlimited: bool = False) -> Session:
    """A session that answers from a published file alone, free forever, with the hypothesis that was published.

    What was answered before is answered the same: value, error bar and receipt. What follows from it is worked out as
    where the data are. Answers of a hypothesis that a gate would have to check have no error bar here, and say so.
    What would have to be bought is refused with `NeedsData`.

    unlimited: check also a file that is much more work than others of its size. It is for files of people you trust.

    >>> tacit.read("survey.tacit.jsonl").ask("SELECT COUNT(*) FROM data WHERE sex = 'F'")   # doctest: +SKIP
    """
    found = sound(Path(path), unlimited=unlimited)
    return opened(found, Cache(found.digest))


def sound(path: Path, *, unlimited: bool = False) -> Contents:
    """What a file says, once everything in it was checked."""
    with no_collection():
        found = file.load(path)
        check(path, found, unlimited=unlimited)
    return found


def opened(found: Contents, kept: Kept | None = None) -> Session:
    """A session over lines that were checked. Whatever would have to be bought is refused: there is no curator.

    kept: where a hypothesis that was derived from this file before is read back; without it, it is derived afresh.
    """
    terms = found.header
    declared = Declared(found.domain, terms.rows, terms.rows_per_person, terms.total)
    lines, aside = Transcript(terms.origin, found.lines), terms.aside or 0.0
    public = Public(lines, declared, prior=terms.prior, aside=aside, shelf=kept)
    mechanism = found.choice.build(public, None, terms.confidence)
    return Session(
        public=public,
        curator=None,
        ledger=None,
        budget=terms.budget,
        choice=found.choice,
        mechanism=mechanism,
        confidence=terms.confidence,
        start=True,
    )


class Transcript:
    """What a ledger's log has for reading, from the lines of a file. Only where they stand is kept in memory."""

    def __init__(self, origin: str, lines: PublishedLines) -> None:
        self.origin, self._lines = origin, lines
        heads = lines.heads()
        self._seqs, self._kinds = np.array(heads.seqs, dtype=np.int64), heads.kinds
        self._keyed = {key: at for at, key in enumerate(heads.keys) if key is not None}
        intents = np.array(heads.intents, dtype=np.int64)
        self._settled = np.flatnonzero(intents)
        # Few entries settle nothing: intents, what was told by itself, and what says what may be spent.
        settled, others = set(intents.tolist()), np.flatnonzero(intents == 0).tolist()
        self._open = [at for at in others if self._kinds[at] == "intent" and heads.seqs[at] not in settled]
        self._unpaid = sum(self._kinds[at] not in ("intent", "override", *LIMITS) for at in others)
        self._limits = [self._lines[at] for at in others if self._kinds[at] in LIMITS]
        self._head = mark(lines[-1]) if len(lines) else Mark(0, origin, 0)
        self._turn = threading.RLock()  # threads of one process take turns, as they do at a ledger

    def head(self) -> Mark:
        return self._head

    def look(self, keys: Sequence[str]) -> tuple[Mark, dict[str, Line]]:
        return self._head, self.keyed(keys)

    def keyed(self, keys: Sequence[str]) -> dict[str, Line]:
        return {key: self._lines[self._keyed[key]] for key in keys if key in self._keyed}

    def lines(self, after: int = 0, kinds: Sequence[str] = ()) -> Iterator[Line]:
        after_it = range(self._up_to(after), len(self._lines))
        return (self._lines[at] for at in after_it if not kinds or self._kinds[at] in kinds)

    def since(self, after: int, most: int = 0) -> tuple[Mark, Iterator[Line]]:
        first = int(np.searchsorted(self._settled, self._up_to(after)))
        return self.head(), (self._lines[at] for at in self._settled[first:].tolist())

    def newest(self, before: int, most: int, *, told: bool = False) -> list[Line]:
        end = self._up_to(before - 1)
        if told:
            among: Iterable[int] = range(end - 1, -1, -1)
        else:
            among = self._settled[: int(np.searchsorted(self._settled, end))][::-1].tolist()
        shown = (at for at in among if self._kinds[at] not in ("intent", "override", "terms", *LIMITS))
        return [self._lines[at] for at in islice(shown, most)]

    def _up_to(self, seq: int) -> int:
        """How many lines have this number or a lower one."""
        return int(np.searchsorted(self._seqs, seq, side="right"))

    def limits(self) -> list[Line]:
        return self._limits

    def unpaid_count(self) -> int:
        return self._unpaid

    def kept_intents(self) -> list[Line]:
        """The intents that are open, as far as is known: a gate that was lost with its noise looks like an open one."""
        return [self._lines[at] for at in self._open]

    def snapshot(self) -> tuple[str, list[Line]]:
        return self.origin, list(self._lines)

    def turn(self) -> AbstractContextManager[Any]:
        return self._turn


@dataclass(frozen=True)
class Verified:
    """What was derived again from a published file. `knowledge` is a digest of the hypothesis, to the last bit."""

    entries: int
    measured: int
    told: int
    gates: int
    extensions: int
    budget: Budget
    spent: Loss
    total: Loss
    seal: str
    knowledge: str
    digest: str

    def to_dict(self) -> dict[str, Any]:
        """What was verified as a dict for JSON."""
        return asdict(self) | {"spent": self.spent.to_dict(), "total": self.total.to_dict()}

    def __str__(self) -> str:
        gates = "1 gate" if self.gates == 1 else f"{self.gates:,} gates"
        return (
            f"{self.entries:,} entries follow from one another: {self.measured:,} measured, {self.told:,} told for "
            f"nothing, {gates} shut.\n{percent_of(self.spent, self.total)} of the budget is spent: "
            f"{self.budget}{raised(self.extensions)}.\n"
            f"seal {self.seal[:16]}… · knowledge {self.knowledge[:16]}… · file {self.digest[:16]}…"
        )


def verify(
    path: str | Path, *, receipt: Receipt | None = None, session: Session | None = None, unlimited: bool = False
) -> Verified:
    """Derive a published file again: every hash, every running total, every price, and the hypothesis.

    receipt: one that an analyst was given; refused unless the file holds that entry with that seal.
    session: the owner's open one; refused unless its ledger begins with this very file.
    unlimited: as for `read`.

    Raises, naming the first entry that is wrong.
    """
    path = Path(path)
    found = sound(path, unlimited=unlimited)
    terms, lines = found.header, found.lines
    seals = {0: terms.origin} | {line.seq: line.hash for line in lines}
    if receipt is not None and seals.get(receipt.entry) != receipt.seal:
        raise LedgerError(f"{path.name} does not hold the receipt {receipt}.")
    if session is not None:
        theirs, all_of_them = contents(session)
        if replace(theirs, program=terms.program) != terms or all_of_them[: len(lines)] != list(lines):
            raise LedgerError(f"{path.name} is not what this session has published: terms or entries differ.")
    reading, kinds = opened(found), [line.kind for line in lines]
    return Verified(
        entries=len(lines),
        measured=kinds.count("measured"),
        told=kinds.count("told"),
        gates=kinds.count("shut"),
        extensions=kinds.count("extended"),
        budget=reading.budget,
        spent=reading.spent,
        total=reading.total,
        seal=lines[-1].hash if lines else terms.origin,
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
