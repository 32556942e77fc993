"""The blocks of a series, each with a ledger of its own: appended once, and opened as something is asked of them.

A row is in one block, and what is bought about a block is charged to its ledger alone. So each block has the whole
budget, however many there are: docs/understand/privacy.md proves it.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import to_builtins

from tacit.errors import InvalidQuery, LedgerError, NeedsData, TacitError
from tacit.load import open_source
from tacit.manifest import Block, Manifest
from tacit.model.block import check_label, slug
from tacit.model.budget import Loss
from tacit.opening import BlockRows, open_session
from tacit.series_terms import SeriesTerms
from tacit.session import Session
from tacit.store.file import make_folder
from tacit.terms import MadeWith, reopen
from tacit.trusted.cells import read_records

if TYPE_CHECKING:
    from tacit.release.hypothesis.prior import Prior

MOST_HELD = 100  # ledgers whose files are held open between questions: five files each


class _Conditions(threading.local):
    """Under which a thread asks blocks: whether it may spend nothing, how much of each, and when it came."""

    free = False
    most: tuple[Callable[[str], int], Counter[str]] | None = None  # atoms of a block, and what went of them
    arrived: datetime | None = None
    paid: Counter[str] | None = None


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
        self._anchor, self._accept_rollback, self._progress = anchor, accept_rollback, progress
        self._open: dict[str, Session] = {}
        self._with_data: set[str] = set()
        self._held: set[str] = set()
        self._replaced: list[Session] = []
        self._lock = threading.RLock()
        self._thread = _Conditions()
        self.listed = manifest.blocks()

    def newest(self) -> list[Block]:
        """All blocks, with those that this or another process has appended since; `listed` is what it said last."""
        self.listed = self._manifest.blocks()
        return self.listed

    def append(self, data: Any, label: str, table: str | None, *, start: bool) -> Session:
        check_label(label)
        terms = self.terms
        with self._manifest.turn():
            self.newest()
            self._manifest.check(label, "")  # before the rows are read
            if terms.most is not None and len(self.listed) >= terms.most:
                raise LedgerError(
                    f"The series was made for {terms.most:,} blocks, among which the budget of a person was divided, "
                    "and it has them. More need a new series, whose loss for the same people adds to this one's."
                )
            people = 1 if terms.rows_per_person is None else terms.rows_per_person
            source = open_source(data, table)
            rows = read_records(source, terms.domain, person=terms.person, rows_per_person=people)
            fingerprint = rows.fingerprint(self._manifest.secret)
            self._manifest.check(label, fingerprint)
            drawn_to = self._prior()
            make_folder(self._folder)
            ledger = f"{slug(label)}-{secrets.token_hex(4)}.tacit"
            try:
                if drawn_to is not None:
                    _keep(self._folder / ledger, drawn_to)
                new = BlockRows(rows, self._manifest.origin)
                session = self._opened(ledger, new, drawn_to, **self._settings())
                place = data if isinstance(data, str) else os.path.abspath(data) if isinstance(data, Path) else None
                if isinstance(data, str) and os.path.isfile(data):
                    place = os.path.abspath(data)
                digest = None if drawn_to is None else drawn_to.digest
                block = Block(label, session.rows, ledger, session.origin, fingerprint, place, table, digest)
                self._manifest.add(block)
            except BaseException:
                self._forget(ledger)
                raise
            self._open[label] = session
            self._with_data.add(label)
            self.newest()
        if start:
            session.start()
        self.rest(label, session)
        return session

    def _forget(self, ledger: str) -> None:
        """Remove a ledger that nothing lists: nobody has seen it. Where that cannot be told, it stays."""
        with suppress(TacitError, OSError):
            if ledger not in (block.ledger for block in self._manifest.blocks()):
                for one in self._folder.glob(f"{ledger}*"):
                    one.unlink()

    def named(self, label: str) -> Block:
        found = next((block for block in self.newest() if block.label == label), None)
        if found is None:
            some = ", ".join(block.label for block in self.listed[:8])
            raise InvalidQuery(f"there is no block {label!r}; there are {some or 'none yet'}.")
        return found

    def _settings(self) -> dict[str, Any]:
        """The mechanism and settings of a new block: as named, or as they were planned for the first block."""
        if not self.listed:
            return dict(self.terms.settings)
        made = MadeWith.of(self._folder / self.listed[0].ledger)
        if made is None:
            raise LedgerError(f"The ledger of the block {self.listed[0].label} is gone.")
        choice, confidence = made.choice(
            {key: value for key, value in self.terms.settings.items() if key != "mechanism"}
        )
        return {"mechanism": choice.mechanism, **to_builtins(choice.settings), "confidence": confidence}

    def _prior(self) -> Prior | None:
        """What was released of the newest block that is started, as a public table like the next one."""
        from tacit.release.hypothesis.prior import MOST_CELLS as MOST
        from tacit.release.hypothesis.prior import Prior

        settings = self._settings()
        if not self.terms.prior or not self.listed or not settings.get("warm"):
            return None
        for block in reversed(self.listed):
            session = self.light(block)
            if session.base.bought:
                drawn = session.synthetic(min(session.rows, MOST))
                cells, counts = np.unique(np.stack(drawn.codes).astype(np.intp), axis=1, return_counts=True)
                return Prior.of(list(drawn.domain), list(cells), counts)
        return None

    def _opened(self, ledger: str, data: Any, prior: Prior | None, **settings: Any) -> Session:
        terms = self.terms
        return open_session(
            data=data,
            domain=terms.domain,
            budget=terms.each,
            ledger=self._folder / ledger,
            person=terms.person,
            rows_per_person=terms.rows_per_person,
            prior=prior,
            progress=self._progress,
            anchor=self._anchor,
            accept_rollback=self._accept_rollback,
            **settings,
        )

    def light(self, block: Block) -> Session:
        """What a block's ledger knows, without its rows; with them where they are open already."""
        with self._lock:
            if block.label not in self._open:
                prior = None if block.prior is None else _kept(self._folder / block.ledger, block)
                found = reopen(self._folder / block.ledger, anchor=self._anchor, prior=prior)
                self._open[block.label] = self._checked(block, found)
            return self._open[block.label]

    def full(self, block: Block) -> Session:
        """The session of a block with its rows."""
        if block.label not in self._with_data:
            if block.source is None:
                raise NeedsData(
                    f"The rows of the block {block.label} were not given as a file or an address, so they cannot be "
                    "read again here."
                )
            if not (self._folder / block.ledger).exists():
                raise LedgerError(
                    f"The ledger of the block {block.label} is gone: bring it back, with what it has spent."
                )
            prior = None if block.prior is None else _kept(self._folder / block.ledger, block)
            try:
                found = self._opened(block.ledger, open_source(block.source, block.table), prior)
            except LedgerError as error:
                raise _about_block(error, block) from None
            found = self._checked(block, found)
            with self._lock:
                if block.label in self._open:  # another thread may be reading it
                    self._replaced.append(self._open[block.label])
                    self._replaced[-1].rest()
                self._open[block.label] = found
                self._with_data.add(block.label)
        return self._open[block.label]

    def _checked(self, block: Block, session: Session) -> Session:
        """Refuse the ledger of another block in the place of this one's, and one whose budget was raised by itself."""
        if session.origin != block.origin:
            session.close()
            raise LedgerError(f"The ledger of the block {block.label} is not the one that it was appended with.")
        if session.budget != self.terms.each:
            session.close()
            raise LedgerError(
                f"The budget of the block {block.label} was raised by itself: the series promises {self.terms.each} "
                "for each block, and cannot keep that."
            )
        return session

    def any(self) -> Session:
        if not self.listed:
            raise InvalidQuery("the series has no block yet: append one first.")
        with self._lock:
            return next(iter(self._open.values()), None) or self.light(self.listed[-1])

    def rest(self, label: str, session: Session) -> None:
        """Let go of a block's files where so many are held that a process could not hold all of them."""
        if label in self._held or len(self._held) < MOST_HELD:
            self._held.add(label)
        else:
            session.rest()

    # -- how this thread asks, of whichever block it comes to ----------------------------------------------------------

    @contextmanager
    def under(self, **conditions: Any) -> Iterator[None]:
        """What this thread asks within it is asked under these conditions: see `_Conditions`."""
        before = {name: getattr(self._thread, name) for name in conditions}
        for name, value in conditions.items():
            setattr(self._thread, name, value)
        try:
            yield
        finally:
            for name, value in before.items():
                setattr(self._thread, name, value)

    @contextmanager
    def asked(self, block: Block, session: Session) -> Iterator[None]:
        """Ask the session of a block under this thread's conditions, and count what is bought before an error."""
        now = self._thread
        with ExitStack() as conditions:
            if now.free:
                conditions.enter_context(session.free())
            if now.most is not None:
                most, gone = now.most
                left = most(block.label) - gone[block.label]
                conditions.enter_context(session.spending(Loss(session.total.measure, left)))
            if now.arrived is not None:
                conditions.enter_context(session.asked_at(now.arrived))
            try:
                yield
            except TacitError as error:
                if not error.nothing_spent and error.after is not None:
                    self.charge(block, sum(atoms for _, atoms in session.bought(error.after)))
                raise

    def may_spend(self) -> bool:
        return not self._thread.free

    def charge(self, block: Block, atoms: int) -> None:
        """Count what a block's ledger was charged for this thread."""
        for counted in (self._thread.paid, None if self._thread.most is None else self._thread.most[1]):
            if counted is not None and atoms:
                counted[block.label] += atoms

    @contextmanager
    def paying(self) -> Iterator[Counter[str]]:
        """What blocks are charged for this thread within it, by label; an error that comes meanwhile says so."""
        outer, paid = self._thread.paid, Counter[str]()
        self._thread.paid = paid
        try:
            yield paid
        except TacitError as error:
            if paid and error.nothing_spent:
                error.nothing_spent = False
                error.sentence += " What was paid for before that stays spent."
            raise
        finally:
            self._thread.paid = outer
            if outer is not None:
                outer.update(paid)

    def close(self) -> None:
        for session in (*self._open.values(), *self._replaced):
            session.close()
        self._manifest.close()


def folder_of(path: Path) -> Path:
    """Where the ledgers of a manifest's blocks lie."""
    return path.with_name(f"{path.name}.blocks")


def _about_block(error: LedgerError, block: Block) -> LedgerError:
    """The refusal of a block's ledger, with the way that there is where rows have changed."""
    if "other terms: data" not in error.sentence:
        return LedgerError(f"In the block {block.label}: {error.sentence}")
    return LedgerError(
        f"The rows of the block {block.label} are not those that it was appended with. What was spent on them stays "
        f"spent, so they stay: late rows and corrections are a block of their own, like {block.label}-late."
    )


# -- what a start is drawn to, which cannot be worked out again once more is bought of the block before ----------------


def _keep(ledger: Path, prior: Prior) -> None:
    path = ledger.with_name(f"{ledger.name}.prior")
    names = np.array(prior.attributes)
    with open(path, "xb", opener=lambda file, flags: os.open(file, flags, 0o600)) as file:
        np.savez_compressed(file, names=names, codes=np.array(prior.codes), counts=np.array(prior.counts))
        file.flush()
        os.fsync(file.fileno())


def _kept(ledger: Path, block: Block) -> Prior:
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
