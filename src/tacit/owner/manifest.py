"""Trusted with budgets: which blocks a series has, in order. A log, chained and anchored, that spends nothing.

It knows of every block its label, its number of rows, a fingerprint of them, where its ledger is and the hash that the
ledger's chain starts from. It knows the same of ledgers for groups of blocks, and how the budget was divided among
their levels before there was a block. The owner's secret, like the ledgers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any, NamedTuple

from tacit.errors import LedgerError
from tacit.model.budget import Budget
from tacit.model.entry import Extended
from tacit.owner.manifest_entry import ENTRY_KINDS, Block, Divided, GroupLedger, MissedGroup, damaged, decode, draft
from tacit.release.groups import ALONE, BlockGroup, Levels
from tacit.store.anchor import Anchor
from tacit.store.chain import Charged, Draft, Line, State, Unsound
from tacit.store.log import Log, made_of
from tacit.store.transaction import Transaction

FOLDER = ".blocks"  # what the folder of the ledgers is called, after the name of the manifest
SERIES = "series"  # the term by which a manifest is told from a ledger
FORM = "1"


class Said(NamedTuple):
    """What the lines of a manifest say, up to this number, by whichever process they were written.

    blocks, groups: in the order in which they were appended, and in which the ledgers of groups were made.
    missed: the groups that have no ledger, and never get one.
    levels: how the budget of a row is divided among blocks and groups, and why.
    raised: the decisions to raise the budget of the series, in order, and where they stand.
    """

    up_to: int = 0
    blocks: tuple[Block, ...] = ()
    groups: tuple[GroupLedger, ...] = ()
    missed: frozenset[BlockGroup] = frozenset()
    levels: tuple[Levels, str] = (ALONE, "")
    raised: tuple[tuple[Budget, Line], ...] = ()


def step(state: State, seq: int, line: Charged) -> State:
    """A manifest has a division of the budget, blocks, groups, decisions to raise the budget, and overrides.

    Nothing in it costs anything, or adds to what may be spent: that is for the ledgers. That the budget is divided
    before there is a block is seen to by who writes the division, and by who reads it.
    """
    if line.kind not in (*ENTRY_KINDS, "override") or line.atoms or line.intent is not None:
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
        self._log, self._said = log, Said()

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

    @property
    def said(self) -> Said:
        """What was read so far, and what was written since.

        It is put in its place as a whole. So a block is listed once where two threads read its line, and where one that
        reads is interrupted, or its process forks; there is no lock for a forked child to wait for.
        """
        said, head = self._said, self._log.head().seq
        if head != said.up_to:
            said = self._said = self._read_on(said, head)
        return said

    def _read_on(self, said: Said, head: int) -> Said:
        """`head` was the newest line before these are read: one that is written after them is for the next time."""
        up_to, levels = head, said.levels
        blocks, groups, missed, raised = list(said.blocks), list(said.groups), set(said.missed), list(said.raised)
        for line in self._log.lines(said.up_to, ENTRY_KINDS):
            match entry := decode(line):
                case Extended(budget):
                    raised.append((budget, line))
                case Block():
                    blocks.append(entry)
                case GroupLedger():
                    groups.append(entry)
                case MissedGroup():
                    missed.add(entry.group)
                case Divided(why=why):
                    if blocks:  # the budget is divided before there is a block
                        raise damaged(line)
                    levels = entry.among, why
            up_to = max(up_to, line.seq)
        return Said(up_to, tuple(blocks), tuple(groups), frozenset(missed), levels, tuple(raised))

    def divide(self, levels: Levels, why: str) -> None:
        """Divide the budget of a row among levels, before there is a block."""
        with self.turn():
            if self.said.blocks or self.said.levels != (ALONE, ""):
                raise LedgerError("The budget of the series is divided already, and stays so.")
            self._write(draft(Divided.of(levels, why)))

    @property
    def went_back(self) -> bool:
        """Whether the owner has ever gone on from an older copy: then nothing is added any more."""
        return any(self._log.lines(kinds=["override"]))

    def check(self, label: str, fingerprint: str) -> None:
        """Refuse a label, or rows, that a block has already, and any where blocks may have been lost."""
        if self.went_back:
            raise self._went_back()
        _check(self.said.blocks, label, fingerprint)

    def add(self, block: Block) -> None:
        """One more block, durable and known to the anchor when it returns."""
        with self.turn():  # whoever appends asks for it, so nobody adds a block between the check and the line
            self.check(block.label, block.fingerprint)
            self._check_ledger(block.ledger)
            self._write(draft(block))

    def extend(self, budget: Budget) -> None:
        """The owner's decision that the budget of the series is this from now on. It is for all ledgers, one by one."""
        with self.turn():
            self._write(draft(Extended(budget)))

    def add_group(self, made: GroupLedger) -> None:
        """The ledger of a group all of whose blocks are there, and which has none yet."""
        with self.turn():
            said = self.said
            complete = said.levels[0].complete(len(said.blocks))
            if made.group not in complete or made.group in (one.group for one in said.groups):
                raise LedgerError("A group has one ledger, and all its blocks are there before it.")
            if made.group in said.missed:
                raise LedgerError("A group that was missed when its last block was appended gets no ledger later.")
            self._check_ledger(made.ledger)
            self._write(draft(made))

    def miss(self, group: BlockGroup) -> None:
        """A group has no ledger, for good: its rows could not be read when its last block was appended.

        So what is asked over its blocks is answered by them from the first time on, and by no group that comes later.
        """
        with self.turn():
            self._write(draft(MissedGroup(*group)))

    def _check_ledger(self, ledger: str) -> None:
        if ledger in {one.ledger for one in self.said.blocks} | {one.ledger for one in self.said.groups}:
            raise LedgerError(f"{ledger} is the ledger of another block or group.")

    def _write(self, line: Draft) -> None:
        def work(transaction: Transaction) -> None:
            if transaction.newest("override") is not None:  # who accepts a rollback waits for no turn
                raise self._went_back()
            try:
                state = step(transaction.state, transaction.at.seq + 1, line)
            except Unsound as error:
                raise LedgerError(f"The manifest takes no such line: {error}.") from None
            transaction.append(line, state, time=self._log.time())

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
    with closing(Log(manifest, anchor, step)) as log:
        why = log.problem()
        if why is not None:
            raise LedgerError(
                f"{ledger.name} is the ledger of a block, and its series {manifest.name} is refused: {why} "
                "`tacit.series(..., accept_rollback=REASON)` goes on with the series, if the loss is real."
            )
        # Reading checks that every line follows, and only then lets the anchor know the newest.
        entries = map(decode, log.lines(kinds=("block", "group")))
        origins = {entry.origin for entry in entries if isinstance(entry, Block | GroupLedger)}
    if origin not in origins:
        raise LedgerError(
            f"{ledger.name} is the ledger of a block that its series does not list: it was left by an append that was "
            "cut short. Nothing is bought in it."
        )


def _check(blocks: Sequence[Block], label: str, fingerprint: str) -> None:
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
