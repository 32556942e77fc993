"""Which blocks a series has, in order: a log of its own, chained and anchored like a ledger, that spends nothing.

It knows of every block its label, its number of rows, a fingerprint of them, where its ledger is and the hash that the
ledger's chain starts from. The owner's secret, like the ledgers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tacit.errors import LedgerError
from tacit.store.anchor import Anchor
from tacit.store.chain import Draft, Line, State, Unsound, canonical
from tacit.store.log import Log, Transaction, made_of

SERIES = "series"  # the term by which a manifest is told from a ledger
FORM = "1"


@dataclass(frozen=True)
class Block:
    """One block as the manifest knows it. `source` is where its rows are, where that can be said in words."""

    label: str
    rows: int
    ledger: str  # its name, in the folder of the series
    origin: str
    fingerprint: str
    source: str | None = None
    table: str | None = None
    prior: str | None = None  # the digest of what its start is drawn to


def step(state: State, seq: int, line: Draft | Line) -> State:
    """A manifest has blocks, and overrides; nothing in it costs anything."""
    if line.kind not in ("block", "override") or line.atoms or line.intent is not None:
        raise Unsound("a manifest lists blocks")
    return State(0, {})


class Manifest:
    """An open manifest, for several threads and processes.

    Guarantee: a label, a set of rows and a ledger stand in one block each, for good; of two processes that append the
        same at once, one is refused. An old copy is noticed by the anchor, like that of a ledger. Where the owner goes
        on with it, no block is added any more: the lost ones are not known here, and their rows could be appended again
        with a new budget, or more blocks than were declared.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._blocks: list[Block] = []
        self._read_to = 0

    @classmethod
    def open(
        cls, path: Path, terms: Mapping[str, str], anchor: Anchor, accept_rollback: str | None = None, *, make: bool
    ) -> Manifest:
        given = {**terms, SERIES: FORM}
        if make:
            return cls(Log.create(path, given, anchor, step, accept_rollback, new=False))
        return cls(Log.open(path, given, anchor, step, accept_rollback))

    @staticmethod
    def terms(path: Path) -> dict[str, str] | None:
        """What a series was made with; None where nothing is there. Refuses a ledger of one table."""
        found = made_of(path)
        if found is None:
            return None
        terms = found[0].terms
        if terms.get(SERIES) != FORM:
            raise LedgerError(f"{path.name} is the ledger of one table, and no series of blocks: name another one.")
        return {name: value for name, value in terms.items() if name != SERIES}

    @property
    def secret(self) -> bytes:
        """What fingerprints of rows are keyed with here."""
        return self._log.identity.secret

    @property
    def origin(self) -> str:
        """The hash that the chain of the manifest starts from."""
        return self._log.origin

    def turn(self) -> AbstractContextManager[Any]:
        """One who appends, among all threads and processes."""
        return self._log.turn()

    def blocks(self) -> list[Block]:
        """All blocks, in the order in which they were appended, by whichever process."""
        if self._log.head().seq != self._read_to:
            for line in self._log.lines(self._read_to, ["block"]):
                self._blocks.append(_read(line))
                self._read_to = line.seq
            self._read_to = max(self._read_to, self._log.head().seq)
        return list(self._blocks)

    def check(self, label: str, fingerprint: str) -> None:
        """Refuse a label, or rows, that a block has already, and any where blocks may have been lost."""
        if any(self._log.lines(kinds=["override"])):
            raise self._went_back()
        _check(self.blocks(), label, fingerprint)

    def add(self, block: Block) -> None:
        """One more block, durable and known to the anchor when it returns."""

        def work(transaction: Transaction) -> None:
            if transaction.newest("override") is not None:  # who accepts a rollback waits for no turn
                raise self._went_back()
            draft = Draft("block", 0, canonical(asdict(block)), key=f"block {block.label}")
            state = step(transaction.state, transaction.at.seq + 1, draft)
            transaction.append(draft, state, time=self._log.time())

        self._log.check_room()
        with self.turn():  # whoever appends asks for it, so nobody adds a block between the check and the line
            self.check(block.label, block.fingerprint)
            self._log.write(work)

    def _went_back(self) -> LedgerError:
        return LedgerError(
            f"The series {self._log.path.name} went on from an older copy, or in the place of another, and which "
            "blocks were lost is not known: their rows could be appended again with a new budget. So it takes no more "
            "blocks; it answers about those that it lists. New blocks need a new series, under another name, and its "
            "loss adds to this one's for people who are in both."
        )

    def close(self) -> None:
        self._log.close()


def _check(blocks: list[Block], label: str, fingerprint: str) -> None:
    if label in (block.label for block in blocks):
        raise LedgerError(
            f"The block {label} is there already, and its rows stay what they are: what was spent on them stays spent. "
            f"Late rows and corrections are a block of their own, like {label}-late; rows that were wrong are put "
            "right in a new series, whose loss for the same people adds to this one's."
        )
    same = next((block.label for block in blocks if block.fingerprint == fingerprint), None)
    if same is not None:
        raise LedgerError(
            f"These are the rows of the block {same}: appended twice they would be asked about twice, with twice the "
            "loss. A block has rows of its own."
        )


def _read(line: Line) -> Block:
    try:
        return Block(**json.loads(line.body))
    except (ValueError, TypeError):
        raise LedgerError(f"The manifest is damaged: entry {line.seq} is no block.") from None
