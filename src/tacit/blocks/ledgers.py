"""Trusted with budgets: the blocks of a series, each with a ledger of its own, appended once, opened when asked.

A row is in one block, and what is bought about a block is charged to its ledger alone. So each block has the whole
budget, however many there are: docs/understand/privacy.md proves it. Where groups of blocks have ledgers too, a row is
in one of each level, and these divide that budget.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from tacit.blocks.budgets import BlockBudgets, Listed
from tacit.blocks.payments import BlockPayments
from tacit.blocks.rows import UNREADABLE, BlockTables, changed, keep_prior, kept_prior, needs_rows, released
from tacit.blocks.terms import OVER, SeriesTerms
from tacit.errors import ConfigError, InvalidQuery, LedgerError, TacitError
from tacit.exact.price import total
from tacit.load import open_source
from tacit.model.block import check_label, slug
from tacit.model.budget import Budget
from tacit.model.facts import Receipt
from tacit.model.status import Extension
from tacit.owner.binding import choose
from tacit.owner.manifest import FOLDER, Manifest
from tacit.owner.manifest_entry import Block, GroupLedger
from tacit.owner.opening import BlockRows, ChangedRows, open_session
from tacit.owner.terms import MadeWith, reopen
from tacit.release.groups import ALONE, BlockGroup, Levels, Taken, expected_error, planned
from tacit.release.mechanisms import Choice
from tacit.session import Session
from tacit.store.file import make_folder
from tacit.trusted.records import Records

if TYPE_CHECKING:
    from tacit.release.hypothesis.prior import Prior

_BETWEEN = " to "  # in the name of a group: "2026-01 to 2026-12"
MOST_HELD = 100  # ledgers whose files are held open between questions: five files each


class BlockLedgers:
    """What the manifest of a series lists, and the sessions of its blocks."""

    def __init__(
        self,
        path: Path,
        manifest: Manifest,
        terms: SeriesTerms,
        *,
        anchor: str | Path | None = None,
        accept_rollback: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.terms, self._manifest = terms, manifest
        self._folder = folder_of(path)
        self.budgets = BlockBudgets(terms, manifest, self._folder, anchor)
        self._anchor, self._accept_rollback, self._progress = anchor, accept_rollback, progress
        self._open: dict[str, Session] = {}  # by the names of their ledgers
        self._with_data: set[str] = set()
        self._held: set[str] = set()
        self._replaced: list[Session] = []
        self._lock = threading.RLock()
        self.payments = BlockPayments()
        self._tables = BlockTables(terms, manifest.secret)
        self.listed: tuple[Block, ...] = ()
        self.groups: dict[BlockGroup, GroupLedger] = {}
        self.newest()

    def newest(self) -> tuple[Block, ...]:
        """All blocks, with those that this or another process has appended since; `listed` is what it said last."""
        said = self._manifest.said
        self.listed = said.blocks
        if len(self.groups) != len(said.groups):
            self.groups = {one.group: one for one in said.groups}
        return self.listed

    @property
    def origin(self) -> str:
        """The hash that the chain of the manifest starts from."""
        return self._manifest.origin

    @property
    def levels(self) -> Levels:
        """How the budget of a row is divided among blocks and groups of them."""
        return self._manifest.said.levels[0]

    @property
    def why(self) -> str:
        """Why there are groups, or none; empty where no number of blocks is expected."""
        return self._manifest.said.levels[1]

    def append(self, data: Any, label: str, table: str | None, *, start: bool) -> Session:
        with self.payments.at_one_time():
            block, session = self._appended(data, label, table)
            if start:
                self.start(label)
        self.rest(block, session)
        return session

    def _appended(self, data: Any, label: str, table: str | None) -> tuple[Block, Session]:
        check_label(label)
        terms = self.terms
        if terms.expected is not None and _BETWEEN in label:
            raise ConfigError(f"a block of a series with groups is not called {label!r}: that is how groups are named.")
        with self._manifest.turn():
            self.newest()
            self._manifest.check(label, "")  # before the rows are read
            if terms.most is not None and len(self.listed) >= terms.most:
                raise LedgerError(
                    f"The series was made for {terms.most:,} blocks, among which the budget of a person was divided, "
                    "and it has them. More need a new series, whose loss for the same people adds to this one's."
                )
            rows = self._tables.read(data, table)
            fingerprint = self._tables.fingerprint(rows)
            self._manifest.check(label, fingerprint)
            if not self.listed and terms.expected is not None and not self.why:
                self._manifest.divide(*self._planned(rows.rows))
            drawn_to = self._prior()
            ledger = self._new_ledger(label)
            with self._new_session(ledger, rows, 0, drawn_to) as session:
                place = data if isinstance(data, str) else os.path.abspath(data) if isinstance(data, Path) else None
                if isinstance(data, str) and os.path.isfile(data):
                    place = os.path.abspath(data)
                block = Block(
                    label=label,
                    rows=session.rows,
                    ledger=ledger,
                    origin=session.origin,
                    fingerprint=fingerprint,
                    source=place,
                    table=table,
                    prior=None if drawn_to is None else drawn_to.digest,
                )
                self._manifest.add(block)
            if self.levels != ALONE:
                self._tables.keep(ledger, rows)
            self.newest()
            self.group_up(appended=True)
        return block, session

    @contextmanager
    def _new_session(self, ledger: str, rows: Records, level: int, prior: Prior | None = None) -> Iterator[Session]:
        """The session of a new ledger, which is listed within this. If it is not, nothing of the ledger stays."""
        try:
            if prior is not None:
                keep_prior(self._folder / ledger, prior)
            session = self._opened(ledger, self._rows_of(rows), level, prior, **self._settings())
            self.budgets.finish(ledger, level, self.payments.arrived)
            yield session
        except BaseException:
            self._forget(ledger)
            raise
        self._open[ledger] = session
        self._with_data.add(ledger)

    def _rows_of(self, rows: Records) -> BlockRows:
        return BlockRows(rows, self._manifest.origin)

    def _new_ledger(self, label: str) -> str:
        make_folder(self._folder)
        return f"{slug(label)}-{secrets.token_hex(4)}.tacit"

    def extensions(self) -> tuple[Extension, ...]:
        """The decisions to raise the budget: of one block, and where they stand in the manifest."""
        measure = self.any().total.measure if self.listed else None
        each = [(self.terms.of_block(budget), line) for budget, line in self._manifest.said.raised]
        return tuple(Extension(one, total(one, measure), at.time, Receipt(at.seq, at.hash)) for one, at in each)

    def extend(self, budget: Budget) -> None:
        with self._manifest.turn():
            every: list[Listed] = [*self.newest(), *self.groups.values()]
            self._manifest.check("", "")
            measure = self.any().total.measure if self.listed else self.budgets.each.measure
            self.budgets.extend(budget, every, measure)

    # -- groups of blocks ---------------------------------------------------------------------------------------------

    def _planned(self, rows: int) -> tuple[Levels, str]:
        """Whether groups pay, by how many blocks of about `rows` rows are expected."""
        terms = self.terms
        assert terms.expected is not None
        if terms.protects == OVER:
            return ALONE, "blocks alone: a person's rows in all blocks of a group would cost a group as many times."
        named = {key: value for key, value in terms.settings.items() if key != "mechanism"}
        mechanism = terms.settings.get("mechanism", "auto")
        choice = choose(mechanism, terms.domain, terms.each, rows, named, rows_per_person=terms.people)
        whole = total(terms.each, choice.measure(terms.each))
        errors = expected_error(terms.domain, rows, whole, choice.settings.warm, terms.people)
        plan = planned(terms.expected, errors, terms.windows)
        return plan.levels, plan.why

    def of(self, group: BlockGroup) -> Listed:
        return self.groups[group] if group.level else self.listed[group.place]

    def cover(self, first: int, end: int) -> list[Taken]:
        """The ledgers that the blocks from one place to before another are put together from."""
        return self.levels.cover(first, end, self._started)

    def _started(self, group: BlockGroup) -> bool:
        return group in self.groups and self.light(self.groups[group]).started

    def group_up(self, *, appended: bool = False) -> None:
        """Make the ledgers of groups whose blocks are all there, where their rows can be read.

        appended: whether a block was just appended. A group whose rows cannot be read then is given up for good: made
            later, it would answer anew what was asked over its blocks. None is made after an accepted rollback, when
            the manifest takes no more of anything.
        """
        if self._manifest.went_back:
            return
        with self._manifest.turn():
            for group in self.levels.complete(len(self.newest())):
                if group in self.groups or group in self._manifest.said.missed:
                    continue
                try:
                    rows = self._joined(group)
                except UNREADABLE:  # for this group; the others are made
                    if appended:
                        self._manifest.miss(group)
                    continue
                self._make(group, rows)

    def start(self, label: str | None = None) -> list[str]:
        """Start one block, or all that are not started, and groups: the labels of those that were started now."""
        wanted: list[Listed] = [block for block in self.newest() if label in (None, block.label)]
        begun = list[str]()
        with self.payments.at_one_time(), self.payments.paying():
            self.group_up()
            for one in (*wanted, *self.groups.values()):
                if (one.level and self.lost(one)) or self.light(one).started:
                    continue
                try:
                    session, labels = self.full(one), self.labels(one)
                except UNREADABLE:
                    if not one.level:
                        raise
                    continue  # a group whose rows are gone is not missed: its blocks answer in its place
                with self.payments.asked(labels, session):
                    self.payments.charge(labels, session.start().cost.atoms)
                begun.append(one.label)
                self.rest(one, session)
        return begun

    def labels(self, one: Listed) -> list[str]:
        """The blocks whose rows pay for what is bought in a ledger."""
        if isinstance(one, Block):
            return [one.label]
        return [self.listed[place].label for place in self.levels.blocks(one.group)]

    def _make(self, group: BlockGroup, rows: Records) -> None:
        places = self.levels.blocks(group)
        label = f"{self.listed[places[0]].label}{_BETWEEN}{self.listed[places[-1]].label}"
        ledger = self._new_ledger(f"group-{group.level}-{group.place}")
        with self._new_session(ledger, rows, group.level) as session:
            self._manifest.add_group(
                GroupLedger(
                    level=group.level,
                    place=group.place,
                    label=label,
                    rows=session.rows,
                    ledger=ledger,
                    origin=session.origin,
                )
            )
        self.newest()

    def _joined(self, group: BlockGroup) -> Records:
        return self._tables.joined(self.listed[place] for place in self.levels.blocks(group))

    def _forget(self, ledger: str) -> None:
        """Remove a ledger that nothing lists: nobody has seen it. Where that cannot be told, it stays."""
        with suppress(TacitError, OSError):
            said = self._manifest.said
            listed: list[Listed] = [*said.blocks, *said.groups]
            if ledger not in (one.ledger for one in listed):
                for one in self._folder.glob(f"{ledger}*"):
                    one.unlink()

    def named(self, label: str) -> Listed:
        """A block, or a group by its first and last block: "2026-01 to 2026-12"."""
        found: list[Listed] = [*self.newest(), *self.groups.values()]
        for one in found:
            if one.label == label:
                return one
        some = ", ".join(block.label for block in self.listed[:8])
        raise InvalidQuery(f"there is no block {label!r}; there are {some or 'none yet'}.")

    def _settings(self) -> dict[str, Any]:
        """The mechanism and settings of a new block: as named, or as they were planned for the first block."""
        if not self.listed:
            return dict(self.terms.settings)
        choice, confidence = self._choice()
        return {"mechanism": choice.mechanism, **to_builtins(choice.settings), "confidence": confidence}

    def _choice(self) -> tuple[Choice, float]:
        """The mechanism of the first block, which is that of all, with its settings; and the confidence."""
        made = MadeWith.of(self._folder / self.listed[0].ledger)
        if made is None:
            raise LedgerError(f"The ledger of the block {self.listed[0].label} is gone.")
        return made.choice({key: value for key, value in self.terms.settings.items() if key != "mechanism"})

    def _prior(self) -> Prior | None:
        """What was released of the newest block that is started."""
        if self.terms.prior and self.listed and self._choice()[0].settings.warm:
            for block in reversed(self.listed):
                session = self.light(block)
                if session.base.bought:
                    return released(session)
        return None

    def _opened(self, ledger: str, data: Any, level: int, prior: Prior | None, **settings: Any) -> Session:
        terms = self.terms
        return open_session(
            data=data,
            domain=terms.domain,
            budget=self.budgets.of(ledger, level),
            ledger=self._folder / ledger,
            person=terms.person,
            rows_per_person=terms.rows_per_person,
            prior=prior,
            progress=self._progress,
            anchor=self._anchor,
            accept_rollback=self._accept_rollback,
            **settings,
        )

    def light(self, one: Listed) -> Session:
        """What a ledger knows, without its rows; with them where they are open already."""
        with self._lock:
            if one.ledger not in self._open:
                prior = self._prior_of(one)
                path, accept = self._folder / one.ledger, self._accept_rollback
                found = reopen(path, anchor=self._anchor, accept_rollback=accept, prior=prior)
                self._open[one.ledger] = self._checked(one, found)
            return self._open[one.ledger]

    def full(self, one: Listed) -> Session:
        """The session of a block or a group with its rows."""
        if one.ledger not in self._with_data:
            if isinstance(one, Block) and one.source is None:
                raise needs_rows(one.label)
            prior = self._prior_of(one)
            try:
                if isinstance(one, Block):
                    found = self._opened(one.ledger, open_source(one.source, one.table), 0, prior)
                else:
                    found = self._opened(one.ledger, self._rows_of(self._joined(one.group)), one.level, prior)
            except LedgerError as error:
                raise _about_block(error, one) from None
            found = self._checked(one, found)
            with self._lock:
                if one.ledger in self._open:  # another thread may be reading it
                    self._replaced.append(self._open[one.ledger])
                    self._replaced[-1].rest()
                self._open[one.ledger] = found
                self._with_data.add(one.ledger)
        return self._open[one.ledger]

    def lost(self, one: Listed) -> bool:
        """Whether the file of a ledger is gone. What it has spent is not known then."""
        return one.ledger not in self._open and not (self._folder / one.ledger).exists()

    def lost_groups(self) -> list[GroupLedger]:
        return [one for one in self.groups.values() if self.lost(one)]

    def _prior_of(self, one: Listed) -> Prior | None:
        """What a ledger that is there was started with; it has all decisions then."""
        if self.lost(one):
            raise LedgerError(f"The ledger of the block {one.label} is gone: bring it back, with what it has spent.")
        prior = kept_prior(self._folder / one.ledger, one)
        self.budgets.catch_up(one.ledger, one.level, self.payments.arrived)
        return prior

    def _checked(self, one: Listed, session: Session) -> Session:
        """Refuse the ledger of another block in the place of this one's, and one whose budget was raised by itself."""
        if session.origin != one.origin:
            session.close()
            raise LedgerError(f"The ledger of the block {one.label} is not the one that it was appended with.")
        try:
            self.budgets.check(one, session)
        except LedgerError:
            session.close()
            raise
        return session

    def any(self) -> Session:
        if not self.listed:
            raise InvalidQuery("the series has no block yet: append one first.")
        with self._lock:
            return next(iter(self._open.values()), None) or self.light(self.listed[-1])

    def rest(self, one: Listed, session: Session) -> None:
        """Let go of a ledger's files where so many are held that a process could not hold all of them."""
        if one.ledger in self._held or len(self._held) < MOST_HELD:
            self._held.add(one.ledger)
        else:
            session.rest()

    def close(self) -> None:
        for session in (*self._open.values(), *self._replaced):
            session.close()
        self._manifest.close()


def folder_of(path: Path) -> Path:
    """Where the ledgers of a manifest's blocks lie."""
    return path.with_name(f"{path.name}{FOLDER}")


def _about_block(error: LedgerError, one: Listed) -> LedgerError:
    """The refusal of a block's ledger, with the way that there is where rows have changed."""
    if isinstance(error, ChangedRows):
        return changed(one.label)
    return LedgerError(f"In the block {one.label}: {error.sentence}")
