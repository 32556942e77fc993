"""Which blocks a series has, in order: a log of its own, chained and anchored like a ledger, that spends nothing.

It knows of every block its label, its number of rows, a fingerprint of them, where its ledger is and the hash that the
ledger's chain starts from. It knows the same of ledgers for groups of blocks, and how the budget was divided among
their levels before there was a block. The owner's secret, like the ledgers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tacit.errors import LedgerError
from tacit.model.budget import Budget
from tacit.model.entry import Extended, decisions, encode
from tacit.release.groups import ALONE, BlockGroup, Levels
from tacit.store.anchor import Anchor
from tacit.store.chain import Draft, Line, State, Unsound, canonical
from tacit.store.log import Log, made_of
from tacit.store.transaction import Transaction

FOLDER = ".blocks"  # what the folder of the ledgers is called, after the name of the manifest
SERIES = "series"  # the term by which a manifest is told from a ledger
FORM = "1"
_KINDS = ("levels", "block", "group", "missed", "extended")


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

    level = 0  # of groups of blocks: a block by itself


@dataclass(frozen=True)
class GroupLedger:
    """The ledger of a group of blocks. `label` names its blocks for people."""

    level: int
    place: int
    label: str
    rows: int
    ledger: str
    origin: str
    prior: str | None = None

    @property
    def group(self) -> BlockGroup:
        return BlockGroup(self.level, self.place)


class _Said(NamedTuple):
    """What the lines of a manifest say, up to this number."""

    up_to: int = 0
    blocks: tuple[Block, ...] = ()
    groups: tuple[GroupLedger, ...] = ()
    missed: frozenset[BlockGroup] = frozenset()
    levels: tuple[Levels, str] = (ALONE, "")
    raised: tuple[tuple[Budget, Line], ...] = ()


def step(state: State, seq: int, line: Draft | Line) -> State:
    """A manifest has a division of the budget, blocks, groups, decisions to raise the budget, and overrides.

    Nothing in it costs anything, or adds to what may be spent: that is for the ledgers. That the budget is divided
    before there is a block is seen to by who writes the division, and by who reads it.
    """
    if line.kind not in (*_KINDS, "override") or line.atoms or line.intent is not None:
        raise Unsound("a manifest lists blocks")
    return State(0, {})


class Manifest:
    """An open manifest, for several threads and processes.

    Guarantee: a label and a set of rows stand in one block each, for good, and a ledger in one block or group; of two
        processes that append the same at once, one is refused. A group has one ledger. The levels that the budget is
        divided among are written before the first block, and stay. An old copy is noticed by the anchor, like that of a
        ledger. Where the owner goes on with it, nothing is added any more: the lost blocks are not known here, and
        their rows could be appended again with a new budget, or more blocks than were declared.
    """

    def __init__(self, log: Log) -> None:
        self._log, self._said = log, _Said()

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
        return list(self._newest().blocks)

    def groups(self) -> list[GroupLedger]:
        """The ledgers of groups of blocks, in the order in which they were made."""
        return list(self._newest().groups)

    def missed(self) -> frozenset[BlockGroup]:
        """The groups that have no ledger, and never get one."""
        return self._newest().missed

    def levels(self) -> tuple[Levels, str]:
        """How the budget of a row is divided among blocks and groups, and why."""
        return self._newest().levels

    def raised(self) -> list[tuple[Budget, Line]]:
        """The decisions to raise the budget of the series, in order, and where they stand."""
        return list(self._newest().raised)

    def _newest(self) -> _Said:
        """What was read so far, and what was written since.

        It is put in its place as a whole. So a block is listed once where two threads read its line, and where one that
        reads is interrupted, or its process forks; there is no lock for a forked child to wait for.
        """
        said, head = self._said, self._log.head().seq
        if head != said.up_to:
            said = self._said = self._read_on(said, head)
        return said

    def _read_on(self, said: _Said, head: int) -> _Said:
        """`head` was the newest line before these are read: one that is written after them is for the next time."""
        up_to, levels = head, said.levels
        blocks, groups, missed, raised = list(said.blocks), list(said.groups), set(said.missed), list(said.raised)
        for line in self._log.lines(said.up_to, _KINDS):
            try:
                told = json.loads(line.body)
                if line.kind == "extended":
                    ((budget, _),) = decisions([line])
                    raised.append((budget, line))
                elif line.kind == "block":
                    blocks.append(Block(**told))
                elif line.kind == "group":
                    groups.append(GroupLedger(**told))
                elif line.kind == "missed":
                    missed.add(BlockGroup(**told))
                elif blocks:
                    raise ValueError("the budget is divided before there is a block")
                else:
                    levels = Levels(*map(tuple, told["levels"])), told["why"]
            except (ValueError, TypeError, KeyError):
                raise LedgerError(f"The manifest is damaged: entry {line.seq} is no {line.kind}.") from None
            up_to = max(up_to, line.seq)
        return _Said(up_to, tuple(blocks), tuple(groups), frozenset(missed), levels, tuple(raised))

    def divide(self, levels: Levels, why: str) -> None:
        """Divide the budget of a row among levels, before there is a block."""
        body = canonical({"levels": [levels.sizes, levels.weights, levels.spreads], "why": why})
        with self.turn():
            if self.blocks() or self.levels() != (ALONE, ""):
                raise LedgerError("The budget of the series is divided already, and stays so.")
            self._write(Draft("levels", 0, body, key="levels"))

    @property
    def went_back(self) -> bool:
        """Whether the owner has ever gone on from an older copy: then nothing is added any more."""
        return any(self._log.lines(kinds=["override"]))

    def check(self, label: str, fingerprint: str) -> None:
        """Refuse a label, or rows, that a block has already, and any where blocks may have been lost."""
        if self.went_back:
            raise self._went_back()
        _check(self.blocks(), label, fingerprint)

    def add(self, block: Block) -> None:
        """One more block, durable and known to the anchor when it returns."""
        with self.turn():  # whoever appends asks for it, so nobody adds a block between the check and the line
            self.check(block.label, block.fingerprint)
            self._check_ledger(block.ledger)
            self._write(Draft("block", 0, canonical(asdict(block)), key=f"block {block.label}"))

    def extend(self, budget: Budget) -> None:
        """The owner's decision that the budget of the series is this from now on. It is for all ledgers, one by one."""
        kind, body = encode(Extended(budget))
        with self.turn():
            self._write(Draft(kind, 0, body))

    def add_group(self, made: GroupLedger) -> None:
        """The ledger of a group all of whose blocks are there, and which has none yet."""
        with self.turn():
            blocks, (levels, _) = self.blocks(), self.levels()
            if made.group not in levels.complete(len(blocks)) or made.group in (one.group for one in self.groups()):
                raise LedgerError("A group has one ledger, and all its blocks are there before it.")
            if made.group in self.missed():
                raise LedgerError("A group that was missed when its last block was appended gets no ledger later.")
            self._check_ledger(made.ledger)
            self._write(Draft("group", 0, canonical(asdict(made)), key=f"group {made.level} {made.place}"))

    def miss(self, group: BlockGroup) -> None:
        """A group has no ledger, for good: its rows could not be read when its last block was appended.

        So what is asked over its blocks is answered by them from the first time on, and by no group that comes later.
        """
        with self.turn():
            self._write(Draft("missed", 0, canonical(group._asdict()), key=f"group {group.level} {group.place}"))

    def _check_ledger(self, ledger: str) -> None:
        if ledger in {one.ledger for one in self.blocks()} | {one.ledger for one in self.groups()}:
            raise LedgerError(f"{ledger} is the ledger of another block or group.")

    def _write(self, draft: Draft) -> None:
        def work(transaction: Transaction) -> None:
            if transaction.newest("override") is not None:  # who accepts a rollback waits for no turn
                raise self._went_back()
            try:
                state = step(transaction.state, transaction.at.seq + 1, draft)
            except Unsound as error:
                raise LedgerError(f"The manifest takes no such line: {error}.") from None
            transaction.append(draft, state, time=self._log.time())

        self._log.check_room()
        self._log.write(work)

    def _went_back(self) -> LedgerError:
        return LedgerError(
            f"The series {self._log.path.name} went on from an older copy, or in the place of another, and which "
            "blocks were lost is not known: their rows could be appended again with a new budget. So it takes no more "
            "blocks, and no more budget. It answers about those that it lists, unless the budget was raised after that "
            "copy: then their ledgers have a decision that it does not know, and are refused until the newer copy is "
            "back. New blocks need a new series, under another name, and its loss adds to this one's for people who "
            "are in both."
        )

    def close(self) -> None:
        self._log.close()


def check_listed(ledger: Path, origin: str, anchor: Anchor) -> None:
    """Refuse a block's ledger that the manifest beside it does not list: nothing of it is in what the series says.

    A manifest that the anchor refuses lists nothing: what another copy appended may be the same rows with a budget of
    their own. Where the manifest is not in its place, nothing is known of it.
    """
    name = ledger.parent.name
    manifest = ledger.parent.with_name(name.removesuffix(FOLDER))
    if not name.endswith(FOLDER) or not manifest.is_file():
        return
    log = Log(manifest, anchor, step)
    try:
        why = log.problem()
        if why is not None:
            raise LedgerError(
                f"{ledger.name} is the ledger of a block, and its series {manifest.name} is refused: {why} "
                "`tacit.series(..., accept_rollback=REASON)` goes on with the series, if the loss is real."
            )
        # Reading checks that every line follows, and only then lets the anchor know the newest.
        origins = {json.loads(line.body)["origin"] for line in log.lines(kinds=("block", "group"))}
    finally:
        log.close()
    if origin not in origins:
        raise LedgerError(
            f"{ledger.name} is the ledger of a block that its series does not list: it was left by an append that was "
            "cut short. Nothing is bought in it."
        )


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
