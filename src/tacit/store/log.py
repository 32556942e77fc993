"""A durable, hash-chained, append-only log that notices old copies of itself. It knows no privacy: only whole numbers.

A line has a kind, a body, a number of atoms and a running total. An `intent` sets atoms aside before something is done;
the lines that name it settle it. What else may follow what is the business of the `Step` that a log is opened with.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tacit.errors import LedgerError
from tacit.store import rows
from tacit.store.anchor import Anchor, Binding, Identity, make_log, refusal
from tacit.store.chain import Acceptance, Accepted, Draft, Line, Mark, State, Step, canonical, follow, mark, seal
from tacit.store.conditions import Conditions, now
from tacit.store.file import DurableFile
from tacit.store.transaction import HELD, Transaction

T = TypeVar("T")
_REPLACED = "The ledger was replaced by another copy while in use."


class Log:
    """An open log, for several threads and processes.

    Guarantee: a line that was returned survives a crash and a power cut, is known to the anchor before anybody sees it,
        and never changes; an old copy is refused, and of several copies in use all but one are; nothing is added after
        a line that the step does not allow.
    Formula: commit(lines), swap and sync(anchor), return.
    Source: write-ahead logging (Gray & Reuter 1993); hash chains (Haber & Stornetta 1991).
    """

    def __init__(self, path: Path, anchor: Anchor, step: Step) -> None:
        self._file, self._anchor, self.step = DurableFile(path), anchor, step
        self.path = self._file.path
        try:
            self.identity = Identity.read(self._file)
        except BaseException:
            self.close()
            raise
        # The newest line that this process has seen, which must never be gone again, and the state by then.
        self._known = self.identity.origin, State(0, {})
        self._anchored = -1  # everything up to here is known to the anchor
        self._found: Mark | None = None  # a mark of the anchor's that is in this history: the newest, as far as we know
        self.conditions = Conditions()

    @classmethod
    def open(
        cls, path: Path, terms: Binding | None, anchor: Anchor, step: Step, accept_rollback: Acceptance = None
    ) -> Log:
        """A log that exists, with the terms that it was made with, or whatever they are where none are given.

        Guarantee: refused if older than, or different from, the newest one seen, or last used with another anchor.
            `accept_rollback` is the owner's reason to go on: it is recorded, and what the anchor saw spent stays spent.
        Formula: terms equal, file sound, `Identity.problem` is None, and all since the anchor's mark follows from it;
            else `Identity.override`.
        """
        if not path.exists():
            raise LedgerError(f"There is no ledger {path.name}.")
        log = cls(path, anchor, step)
        try:
            if terms is not None:
                log.identity.check_terms(terms)
            with log._file.mutex:
                log._known = log._file.transact(lambda db: log._resume(db, accept_rollback))
            # Where it is, is noted for who may go on with it; reading a copy says nothing of the original's place.
            told = log._file.read(partial(log._told, seq=log._known[0].seq))
            log._tell_anchor(told, None if terms is None else log.path)
        except BaseException:
            log.close()
            raise
        return log

    @classmethod
    def create(
        cls, path: Path, terms: Binding, anchor: Anchor, step: Step, accept_rollback: Acceptance = None, *, new: bool
    ) -> Log:
        """A new log, or the one that is there unless it must be `new`. Of several that start at once, one makes it."""
        path = Path(os.path.realpath(path))
        made = not path.exists() and make_log(path, terms, anchor, accept_rollback=bool(accept_rollback))
        if new and not made:
            raise LedgerError(f"{path.name} exists already; open it, or choose another name.")
        return cls.open(path, terms, anchor, step, accept_rollback)

    def complete(self, terms: Binding) -> None:
        """Bind the log to further terms, once: from then on it opens with all of them.

        Guarantee: their hash is a line of the chain, written in one transaction with them.
        """
        spelled = canonical(self.identity.spelled(terms))

        def work(transaction: Transaction) -> None:
            known = rows.later(transaction.db)
            if known is None:
                rows.keep_later(transaction.db, spelled)
                draft = Draft("terms", 0, rows.sealed_terms(spelled))
                state = self.step(transaction.state, transaction.at.seq + 1, draft)
                transaction.append(draft, state, time=self.time())
            elif known != spelled:
                raise LedgerError(f"{self.path.name} was bound to other terms meanwhile.")

        self.write(work)
        self.identity = Identity.read(self._file)

    def write(self, work: Callable[[Transaction], T]) -> T:
        """What `work` does in one transaction.

        Guarantee: when it returns, its lines are durable and the anchor knows them, so that no other copy of this log
            goes on from where they stand. If the anchor refuses them, they stay written and count.
        """
        self.conditions.check_writing()

        def whole(db: Any) -> tuple[Transaction, T, Mark | None]:
            at, state = self._sound(db)
            # A settlement is one transaction: what another one has begun does not go on here.
            transaction = Transaction(db, at, state._replace(settling=None, room=0))
            result = work(transaction)
            if not transaction.new:
                return transaction, result, None
            self.conditions.count(transaction.state.spent - state.spent)
            return transaction, result, rows.insert(db, transaction.new)

        with self._file.mutex:
            done, result, told = self._file.transact(whole)
            self._known = done.at, done.state
        if told is not None:
            try:
                self._tell_anchor(told)
            except LedgerError as error:
                error.nothing_spent = False
                raise
        return result

    def check_room(self) -> None:
        """Refuse where nothing may be written, and while a disk is nearly full."""
        self.conditions.check_writing()
        self._file.check_room()
        self._anchor.check_room()

    # -- what may be shown --------------------------------------------------------------------------------------------

    def keyed(self, keys: Sequence[str]) -> dict[str, Line]:
        """The lines that have one of these keys."""
        return self.look(keys)[1]

    def look(self, keys: Sequence[str]) -> tuple[Mark, dict[str, Line]]:
        """The newest line, and those that have one of these keys, as of one moment."""
        found, newest = self._read(lambda db: list(rows.keyed(db, keys).values()))
        return newest, {str(line.key): line for line in found}

    def lines(self, after: int = 0, kinds: Sequence[str] = ()) -> Iterator[Line]:
        """The history in order, after line `after`, of these kinds or of all."""
        return self._pages(partial(rows.page, kinds=kinds), after)

    def since(self, after: int, most: int = rows.PAGE) -> tuple[Mark, Iterator[Line]]:
        """The newest line, and those after `after` that settle an intent, in order: at least those up to the newest.

        They are read as they are asked for, `most` at a time.
        """
        return self.head(), self._pages(partial(rows.settled, most=most), after)

    def _pages(self, page_after: Callable[..., list[Line]], after: int) -> Iterator[Line]:
        """Lines page by page, each page read when the one before it is used up."""
        while page := self._read(partial(page_after, after=after))[0]:
            yield from page
            after = page[-1].seq

    def newest(self, before: int, most: int, *, told: bool = False) -> list[Line]:
        """At most `most` lines before a number, newest first, that settle an intent, or also were told for nothing."""
        return self._read(partial(rows.newest, before=before, most=most, told=told))[0]

    def limits(self) -> list[Line]:
        """The lines that say what may be spent, in order."""
        return self._read(rows.limits)[0]

    def unpaid_count(self) -> int:
        """How many lines neither are an intent, nor settle one, nor are an override, nor say what may be spent."""
        return self._read(rows.unpaid_count)[0]

    def kept_intents(self) -> list[Line]:
        """The intents beside which private state lies, so that `Transaction.take` would get it, which stays unread."""
        return self._read(lambda db: rows.keeping(db, HELD))[0]

    def snapshot(self) -> tuple[str, list[Line]]:
        """The hash that the chain starts from, and all lines, as of one moment. Nothing private is among them.

        The first hash seals the terms, among them the log's secret of 256 bits: so it tells nothing about what was made
        from the secret, such as a fingerprint of the data.
        """
        return self.origin, self._read(lambda db: rows.select(db, "ORDER BY seq"))[0]

    @property
    def origin(self) -> str:
        """The hash that the chain starts from."""
        return self.identity.origin.hash

    def head(self) -> Mark:
        """The newest line."""
        return self._read(lambda db: None)[1]

    def verify(self) -> int:
        """Derive the whole chain and every running total again, or name the first bad line: the number of lines."""
        count = 0

        def pages(after: int = 0) -> Iterator[Line]:
            nonlocal count
            while page := self._file.read(partial(rows.unchecked, after=after, most=rows.PAGE)):
                yield from page
                after, count = page[-1].seq, count + len(page)

        end, _ = follow(pages(), self.identity.origin, State(0, {}), self.step)

        def work(db: Any) -> Mark:
            newest, _ = self._sound(db)  # the end was not cut off
            if not rows.holds(db, end, self.identity.origin):
                raise LedgerError(_REPLACED)
            return self._told(db, newest.seq)

        self._tell_anchor(self._file.transact(work))
        return count

    def remember(self) -> None:
        """Let the anchor know the newest line of a log that was inspected, before anything is told of it."""
        self._tell_anchor(self._file.read(lambda db: self._told(db, (rows.head(db) or self.identity.origin).seq)))

    def inspect(self, note: Callable[[Line], None]) -> State:
        """`verify`, for a log that was not opened, hence not changed either; `note` is handed each line."""

        def work(db: Any) -> State:
            self._check_file(db)
            at, state = self.identity.origin, State(0, {})
            while page := rows.unchecked(db, at.seq, rows.PAGE):
                at, state = follow(page, at, state, self.step)
                for line in page:
                    note(line)
            return state

        return self._file.read(work)

    def problem(self) -> str | None:
        """Why this may not be the newest history, by the anchor."""
        return self._file.read(lambda db: self.identity.problem(db, rows.head(db), self._anchor))

    def turn(self) -> AbstractContextManager[Any]:
        """One holder among all threads and processes, which may nest its turns; others may still read and write."""
        if self._file.has_turn():
            return nullcontext()
        self.conditions.asked = self.conditions.arrived or now()
        return self._file.turn()

    def time(self) -> str:
        """The time that lines carry which are written now; within a turn, when that was asked for, before the wait.

        Guarantee: within a turn, it does not tell how long anything took since the turn was asked for. Lines are
            published, and how long the data were looked at may tell about them.
        """
        return str(self.conditions.asked) if self._file.has_turn() else now()

    def rest(self) -> None:
        """Let go of the files until they are used again."""
        self._file.release()
        self._anchor.close()

    def close(self) -> None:
        self._file.close()
        self._anchor.close()

    # -- whether it is still the log that is known ---------------------------------------------------------------------

    def _resume(self, db: Any, accept_rollback: Acceptance) -> tuple[Mark, State]:
        """The end to go on from. An old log beside a new file shows in SQLite's own check, not always in the chain."""
        self._check_file(db)
        for index in (rows.OUTCOMES, rows.LIMIT_LINES):  # a log of an earlier version has none
            db.execute(index)
        # The first link seals the terms. What lies between is checked when it is read, and all of it by `verify`.
        rows.select(db, "ORDER BY seq LIMIT 1")
        rows.select(db, "ORDER BY seq DESC LIMIT 1")
        why, origin = self.identity.problem(db, rows.head(db), self._anchor), self.identity.origin
        if why is None:
            seen, start = self._anchor.newest(self.identity.id), origin
            if seen is not None and seen == rows.told(db, seen.seq, origin):
                start = rows.point(db, seen.seq) or origin
            raised, closed = rows.limits_by(db, start.seq)
            state = State(start.spent, rows.open_by(db, start.seq), raised=raised, closed=closed)
            return self._derive(db, start, state)
        if not accept_rollback:
            raise refusal(why)
        accepted = Accepted(accept_rollback, now()) if isinstance(accept_rollback, str) else accept_rollback
        at, state = self._derive(db, origin, State(0, {}))
        number, draft = self.identity.override(db, self._anchor, at, accepted.reason)
        rows.forget(db)  # what is open in an old copy may have been settled since
        state = self.step(state, number, draft)
        line = seal(at, draft, state.spent, accepted.at, seq=number)
        rows.insert(db, [line])
        return mark(line), state

    def _check_file(self, db: Any) -> None:
        if db.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
            raise LedgerError(f"{self.path.name} is damaged.")
        db.execute(rows.SALTS)  # a log of an earlier version has none

    def _sound(self, db: Any) -> tuple[Mark, State]:
        """The end, if the file is still the one that we and the anchor know, and what others added follows from it.

        Called in a transaction: nobody else can commit meanwhile.
        """
        head, seen = rows.head(db) or self.identity.origin, self._anchor.newest(self.identity.id)
        if head == self._known[0] and seen == rows.told(db, head.seq, self.identity.origin):
            self._found = seen
            return self._known  # nobody has added anything
        why = self.identity.problem(db, rows.head(db), self._anchor, self._anchored)
        if why or not rows.holds(db, self._known[0], self.identity.origin):
            raise LedgerError(why or _REPLACED)
        self._known = self._derive(db, *self._known)
        return self._known

    def _derive(self, db: Any, at: Mark, state: State) -> tuple[Mark, State]:
        return follow(rows.unchecked(db, at.seq), at, state, self.step)

    def _read(self, choose: Callable[[Any], T]) -> tuple[T, Mark]:
        """What `choose` finds and the newest line, if this is still a history that holds what we have seen.

        Nothing of a line is told before the anchor knows it, not even that it is there: another process may have stored
        it and died before it could tell the anchor, or this may be a copy that was refused when it had stored it.
        """
        found, newest = self._file.read(lambda db: (choose(db), self._newest(db)))
        # Lines up to `_anchored` are known to the anchor, if they are those that it was told of: so are those we know.
        if newest != self._known[0] or newest.seq > self._anchored:
            try:
                told, found, newest = self._file.transact(
                    lambda db: (self._told(db, self._sound(db)[0].seq), choose(db), self._newest(db))
                )
                self._tell_anchor(told)
            except LedgerError as error:
                error.nothing_spent = False  # what was stored may be this caller's
                raise
        return found, newest

    def _newest(self, db: Any) -> Mark:
        head, known = rows.head(db) or self.identity.origin, self._known[0]
        if head != known:
            if not rows.holds(db, known, self.identity.origin):
                raise LedgerError(_REPLACED)
            if head.seq:
                rows.numbered(db, [head.seq])  # somebody else's: it is what it was sealed as
        return head

    def _tell_anchor(self, told: Mark, path: Path | None = None) -> None:
        """Move the anchor to the mark of a line, unless it stands further on in this same history already.

        Guarantee: when it returns, the anchor stands at `told` or after it, in the history of this file. Two copies
            that go on from one mark never both get so far: the mark that each replaces is one of its own.
        """
        seen = self._found
        if path is not None or seen is None or seen.seq >= told.seq:
            seen = self._anchor.newest(self.identity.id)
        ours = (seen is not None and seen == self._found) or self._is_ours(seen)
        while ours:
            if seen is not None and seen.seq >= told.seq:
                told = seen
                if path is None:
                    break
            there = self._anchor.advance(self.identity.id, told, seen, path)
            if there == told:
                break
            # Another copy has gone on since we looked, or another process with this same file.
            seen, ours = there, self._is_ours(there)
        if not ours:
            raise LedgerError("The anchor has seen another history of this ledger meanwhile.")
        with self._file.mutex:
            self._anchored, self._found = max(self._anchored, told.seq), told

    def _is_ours(self, seen: Mark | None) -> bool:
        """Whether what the anchor has is of this history, and not older than what it was told."""
        if seen is None or seen.seq < self._anchored:
            return self._anchored < 0  # it never heard of this log: that is new, or the owner has accepted it
        return self._file.read(partial(self.identity.knows, seen=seen))

    def _told(self, db: Any, seq: int) -> Mark:
        found = rows.told(db, seq, self.identity.origin)
        if found is None:
            raise LedgerError(_REPLACED)
        return found


def made_of(path: Path) -> tuple[Identity, list[Line]] | None:
    """What the log at `path` is before it is opened, and its lines about what may be spent; None where none is."""
    if not path.exists():
        return None
    file = DurableFile(path)
    try:
        return Identity.read(file), file.read(rows.limits)
    finally:
        file.close()
