"""The durable record of every charge and every released answer. Called by the curator and the session.

Keys and bodies are opaque here: the ledger knows of no questions and no data. Entries are appended, never changed, and
each carries the hash of the one before it. An `intent` reserves; an `outcome` is one released answer and ends its
intent; an `override` is the owner's acceptance that entries were lost.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from tacit.errors import AnswerWithheld, BudgetExhausted, LedgerError, WouldSpend
from tacit.model.budget import Budget, Loss
from tacit.store.anchor import Anchor
from tacit.store.chain import Entry, Mark, canonical, check, mark, seal
from tacit.store.file import DurableFile
from tacit.trusted import terms
from tacit.trusted.accountant import Filter
from tacit.trusted.history import PAGE, UNSETTLED, History, now
from tacit.trusted.terms import Binding, MadeWith

__all__ = ["Binding", "Entry", "Ledger", "MadeWith", "Outcome", "Purpose", "Reservation"]

Purpose = str | dict[str, Any]  # public, and JSON


@dataclass(frozen=True, slots=True)
class Reservation:
    """A durable intent: `atoms` are spent unless its outcomes charge less."""

    seq: int
    atoms: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """One answer to be released: the question's key, what it is charged, and its canonical JSON."""

    key: str
    atoms: int
    body: str


@dataclass(frozen=True, slots=True)
class Held:
    """Private state taken out of the file: whose it is, the token left in its place, and what it is."""

    seq: int
    token: str
    value: str


_HELD = "held "  # begins what stands in the place of private state that was taken


class Ledger:
    """An open ledger, for several threads and processes.

    Guarantee: no answer returns before its charge and itself are durable; an intent without outcome counts as spent;
        the running total never passes the total; a key keeps its first answer; an old copy is refused.
    Formula: commit(intent) → draw → commit(outcomes) → sync(anchor) → show.
    Source: write-ahead intent logging (Gray & Reuter 1993); hash chains (Haber & Stornetta 1991).
    """

    def __init__(self, path: Path, anchor: Anchor) -> None:
        self._file, self._anchor = DurableFile(path), anchor
        self.path = self._file.path
        try:
            self._history = History(self.path, self._file.read(terms.read), anchor)
        except BaseException:
            self.close()
            raise
        self.id, self.total = self._history.id, self._history.total
        self._known = self._history.origin  # the newest entry that this process has seen: it must never be gone again
        self._anchored = -1  # everything up to here is known to the anchor
        self._thread = threading.local()  # `reading` is there, and true, in a thread that may write nothing

    @staticmethod
    def made_with(path: Path, anchor: Anchor) -> MadeWith | None:
        """The public terms of the ledger at `path` before it is opened; None where there is none."""
        return terms.made_with(path, anchor)

    @classmethod
    def create(
        cls,
        path: str | Path,
        *,
        budget: Budget,
        total: Loss,
        binding: Binding,
        anchor: Anchor,
        accept_rollback: str | None = None,
    ) -> Self:
        """A new, empty ledger.

        Guarantee: the file appears whole or not at all, with mode 0600, and never replaces another. Where the anchor
            remembers a ledger that is gone, it is refused; with the owner's reason, what that one spent stays spent.
        Formula: build beside, sync, link. Source: see the class.
        """
        path = Path(os.path.realpath(path))
        if path.exists() or not terms.make(path, budget, total, binding, anchor, accept_rollback):
            raise LedgerError(f"{path.name} exists already; open it, or choose another name.")
        return cls.open(
            path, budget=budget, total=total, binding=binding, anchor=anchor, accept_rollback=accept_rollback
        )

    @classmethod
    def open_or_create(
        cls,
        path: str | Path,
        *,
        budget: Budget,
        total: Loss,
        binding: Binding,
        anchor: Anchor,
        accept_rollback: str | None = None,
    ) -> Self:
        """The ledger at `path`, made if there is none; of several processes that start at once, one makes it.

        Guarantee: as for `create` and `open`. Formula: create unless it exists, then open. Source: see the class.
        """
        path = Path(os.path.realpath(path))
        if not path.exists():
            terms.make(path, budget, total, binding, anchor, accept_rollback)
        return cls.open(
            path, budget=budget, total=total, binding=binding, anchor=anchor, accept_rollback=accept_rollback
        )

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        budget: Budget,
        total: Loss,
        binding: Binding,
        anchor: Anchor,
        accept_rollback: str | None = None,
    ) -> Self:
        """An existing ledger, with the budget and the binding that it was made with.

        Guarantee: refused if older than, or different from, the newest one seen, or last used with another anchor.
            `accept_rollback` gives the owner's reason to go on: it is recorded, and what the anchor saw spent stays
            spent.
        Formula: terms equal ∧ file sound ∧ `History.problem` is None ∧ all since the anchor's mark follows from it;
            else `History.override`.
        Source: see the class.
        """
        if not Path(path).exists():
            raise LedgerError(f"There is no ledger {Path(path).name}.")
        self = cls(Path(path), anchor)
        try:
            terms.check(self._history, budget, total, binding)
            head = self._file.transact(lambda db: self._resume(db, accept_rollback))
            with self._file.mutex:
                self._known = head
            self._tell_anchor(head, self.path)
        except BaseException:
            self.close()
            raise
        return self

    def find(self, key: str) -> Entry | None:
        """The stored answer to a question.

        Guarantee: the same bytes for ever, and nothing that a restored copy could take back unnoticed.
        Formula: the outcome of `key`. Source: see the class.
        """
        return self.find_many([key]).get(key)

    def find_many(self, keys: Iterable[str]) -> dict[str, Entry]:
        """The stored answers among `keys`, in their order.

        Guarantee: as for `find`. Formula: the outcomes of `keys`. Source: see the class.
        """
        wanted = list(dict.fromkeys(keys))
        found = self._show(lambda db: list(self._history.answers(db, wanted).values()))
        stored = {entry.key: entry for entry in found}
        return {key: stored[key] for key in wanted if key in stored}

    def reserve(self, loss: Loss, *, purpose: Purpose, private: str | None = None) -> Reservation:
        """Set `loss` aside, before the data are looked at. `purpose` is public; `private` is the mechanism's state.

        Guarantee: durable when it returns, and never more than what is left; refused, it writes nothing. `private`
            enters no hash and no entry, and is deleted when the reservation is settled; the file, the owner's secret
            like the data, may hold its bytes until SQLite uses their place again.
        Formula: spent + loss <= total, read and written in one transaction.
        Source: privacy filter of plain sums (Rogers et al. 2016).
        """
        if loss.measure != self.total.measure or loss.atoms < 0:
            raise ValueError(f"this ledger counts {self.total.measure} of at least 0, not {loss!r}")
        self._check_writing()
        body = canonical({"purpose": purpose})

        def work(db: Any) -> Entry:
            head = self._sound(db)
            # An override may have carried more than the total: what costs nothing still costs nothing.
            if loss.atoms and not Filter(self.total).admits(Loss(loss.measure, head.spent), loss):
                left = self._left(head)
                shown = "slightly less" if str(left) == str(loss) else left
                raise BudgetExhausted(f"The question costs {loss} and {shown} is left of {self.total}.")
            entry = self._history.append(db, head, "intent", atoms=loss.atoms, spent=head.spent + loss.atoms, body=body)
            if private is not None:
                db.execute("INSERT INTO private VALUES (?, ?)", (entry.seq, private))
            return entry

        for file in (self._file, self._anchor):
            file.check_room()
        # The anchor need not know of intents: nothing is shown on the strength of one alone, and the anchor moves past
        # it with the next outcome. An old copy that lacks only intents has lost nothing that anybody saw.
        with self._file.mutex:
            entry = self._file.transact(work)
            self._known = mark(entry)
        return Reservation(entry.seq, entry.atoms)

    def settle(
        self, reservation: Reservation | None, outcomes: Sequence[Outcome], *, private: Held | None = None
    ) -> list[Entry]:
        """Store the answers that a reservation paid for; without one, free answers. Returns what may be shown.

        `private` puts an open intent's private state back that `take_private` had taken, in the same transaction.

        Guarantee: all or none, durable in the ledger and known to the anchor when it returns. A key that was answered
            meanwhile keeps its earlier answer, which is returned; ours is dropped unseen and its charge stays.
        Formula: spent := spent - reserved + sum(charged), with sum(charged) <= reserved.
        Source: see the class.
        """
        reserved, intent = (0, None) if reservation is None else (reservation.atoms, reservation.seq)
        if not outcomes or any(o.atoms < 0 for o in outcomes) or sum(o.atoms for o in outcomes) > reserved:
            raise ValueError(f"outcomes charge at least 0 each and at most the {reserved} atoms reserved together")
        self._check_writing()

        def work(db: Any) -> tuple[Mark, list[Entry]]:
            head = self._sound(db)
            time = now()
            if reservation is not None:
                # How long it took to look at the data may tell about them, and entries are published.
                time = self._check_unsettled(db, reservation).time
                head = head._replace(spent=head.spent - reserved)
                db.execute("DELETE FROM private WHERE entry = ?", (intent,))
            if private is not None:
                where = f"WHERE entry = ? AND value = ? AND entry IN (SELECT seq FROM entries WHERE {UNSETTLED})"
                if not db.execute(f"SELECT 1 FROM private {where}", (private.seq, private.token)).fetchall():
                    raise LedgerError("What was taken is not held any more, so it is not put back.")
                db.execute("UPDATE private SET value = ? WHERE entry = ?", (private.value, private.seq))
            answered = self._history.answers(db, [o.key for o in outcomes])
            new, shown = list[Entry](), list[Entry]()
            for outcome in outcomes:
                earlier = answered.get(outcome.key)
                entry = seal(
                    head,
                    time,
                    "outcome",
                    key=None if earlier else outcome.key,
                    intent=intent,
                    atoms=outcome.atoms,
                    spent=head.spent + outcome.atoms,
                    body=canonical({"answered_by": earlier.seq}) if earlier else outcome.body,
                )
                head = mark(entry)
                new.append(entry)
                shown.append(answered.setdefault(outcome.key, entry))
            self._history.write(db, new)
            return head, shown

        try:
            with self._file.mutex:
                head, entries = self._file.transact(work)
                self._known = head
            self._tell_anchor(head)
        except LedgerError as error:
            stays = "" if reservation is None else " What was reserved for it stays spent."
            raise AnswerWithheld(
                f"The answer is withheld, because it could not be stored: {error.sentence}{stays}"
            ) from None
        return entries

    def private_of(self, seq: int) -> str | None:
        """The private state that intent `seq` was reserved with, until it is settled.

        Guarantee: for the mechanism that stored it only; never shown, never hashed. Formula: the row. Source: class.
        """
        query = "SELECT value FROM private WHERE entry = ?"
        rows = self._file.read(lambda db: db.execute(query, (seq,)).fetchall())
        return str(rows[0][0]) if rows and not rows[0][0].startswith(_HELD) else None

    def take_private(self, seq: int) -> Held | None:
        """The private state of an open intent, for one taker: it is gone from the file when this returns.

        Guarantee: of all threads, processes and forks at most one gets it, and it can be put back once, by `settle`;
            what is lost with it stays spent.
        Formula: read, and replace by a random token, in one transaction; unsettled intents only. Source: see the class.
        """
        token = _HELD + secrets.token_hex(16)

        def work(db: Any) -> Held | None:
            self._sound(db)
            where = f"WHERE entry = ? AND entry IN (SELECT seq FROM entries WHERE {UNSETTLED})"
            rows = db.execute(f"SELECT value FROM private {where}", (seq,)).fetchall()
            if not rows or rows[0][0].startswith(_HELD):
                return None
            db.execute("UPDATE private SET value = ? WHERE entry = ?", (token, seq))
            return Held(seq, token, str(rows[0][0]))

        self._check_writing()
        self._file.check_room()  # so that what follows from it can be stored
        return self._file.transact(work)

    def open_intents(self) -> list[Entry]:
        """The intents without outcome, newest last: what a restart may go on with, and what counts as spent in full.

        Guarantee: as for `find`. Formula: intents that no outcome names. Source: see the class.
        """
        return self._show(lambda db: self._history.select(db, f"WHERE {UNSETTLED} ORDER BY seq"))

    @property
    def spent(self) -> Loss:
        """What is spent. Guarantee: counts intents without outcome. Formula: the last running total. Source: class."""
        return Loss(self.total.measure, self._head().spent)

    @property
    def left(self) -> Loss:
        """What is left. Guarantee: never negative. Formula: max(0, total - spent). Source: see the class."""
        return self._left(self._head())

    @property
    def head(self) -> tuple[int, str]:
        """The newest entry. Guarantee: stands for the whole history. Formula: (seq, hash). Source: see the class."""
        return self._head()[:2]

    def entries(self, after: int = 0, kind: str | None = None) -> Iterator[Entry]:
        """The history in order, after entry `after`, of one kind or of all.

        Guarantee: as for `find`. Formula: seq ascending. Source: see the class.
        """
        while page := self._show(self._page(after, kind)):
            yield from page
            after = page[-1].seq

    def snapshot(self) -> tuple[str, list[Entry]]:
        """Everything released so far: the hash that the chain starts from, and all entries, as of one moment.

        Guarantee: as for `find`; whole transactions only. The first hash seals the terms, among them the ledger's
            secret of 256 bits, so it tells nothing about the data's fingerprint. Nothing private is among the entries.
        Formula: one SELECT. Source: see the class.
        """
        return self._history.origin.hash, self._show(lambda db: self._history.select(db, "ORDER BY seq"))

    def bought(self, after: int = 0) -> Iterator[Entry]:
        """The outcomes that a reservation paid for, after entry `after`, in order: what `entries` has but free answers.

        Guarantee: as for `find`; all of those up to the head when the first is taken. Formula: seq ascending, by the
            index of intents, so that a million free answers are not read. Source: see the class.
        """

        def numbers(db: Any) -> list[int]:
            self._check_known(db)
            return self._history.settled(db, after)

        found = self._file.read(numbers)
        for start in range(0, len(found), PAGE):
            yield from self._show(partial(self._history.numbered, numbers=found[start : start + PAGE]))

    def verify(self) -> int:
        """Derive the whole chain and every running total again; the number of entries.

        Guarantee: raises, naming the first bad entry, if anything was changed, removed or put in.
        Formula: hash = SHA-256(previous hash, entry); totals as in `reserve` and `settle`.
        Source: Haber & Stornetta 1991.
        """

        def pages(after: int = 0) -> Iterator[Entry]:
            while page := self._file.read(self._page(after)):
                yield from page
                after = page[-1].seq

        end, count = check(pages(), self._history.origin, self.total.atoms)

        def work(db: Any) -> None:
            self._sound(db)  # the end was not cut off
            if not self._history.holds(db, end):
                raise LedgerError(_REPLACED)

        self._file.transact(work)
        return count

    def lock(self) -> AbstractContextManager[Any]:
        """Take turns at "look up, reserve, draw, settle", so that the same new question is paid once.

        Guarantee: one holder among all threads and processes; no promise of the ledger depends on it.
        Formula: flock on PATH.lock. Source: flock(2).
        """
        return self._file.turn()

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """What this thread does within it writes nothing; other threads go on as before.

        Guarantee: `reserve`, `settle` and `take_private` refuse before they do anything, so nothing is charged, no
            entry is added, and no gate is asked.
        Formula: a mark of the thread's own. Source: see the class.
        """
        before = getattr(self._thread, "reading", False)
        self._thread.reading = True
        try:
            yield
        finally:
            self._thread.reading = before

    def close(self) -> None:
        """Let go of the files. Guarantee: nothing is pending, later use is refused. Formula: close. Source: class."""
        self._file.close()
        self._anchor.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _resume(self, db: Any, accept_rollback: str | None) -> Mark:
        """The end to go on from. An old log beside a new file shows in SQLite's own check, not always in the chain."""
        if db.execute("PRAGMA integrity_check(1)").fetchall() != [("ok",)]:
            raise LedgerError(f"{self.path.name} is damaged.")
        self._history.check_ends(db)
        problem = self._history.problem(db)
        if problem is None:
            return self._history.derive(db, self._history.trusted(db))
        if not accept_rollback:
            raise terms.refusal(problem)
        return self._history.override(db, self._history.derive(db, self._history.origin), accept_rollback)

    def _check_writing(self) -> None:
        if getattr(self._thread, "reading", False):
            raise WouldSpend("The answer is not known yet: it would have to be bought, and here nothing may be.")

    def _sound(self, db: Any) -> Mark:
        """The head, if the file is still the one that we and the anchor know, and what others added follows from it.

        Called in a transaction: nobody else can commit meanwhile.
        """
        problem = self._history.problem(db)
        if problem or not self._history.holds(db, self._known):
            raise LedgerError(problem or _REPLACED)
        self._known = self._history.derive(db, self._known)
        return self._known

    def _show(self, select: Callable[[Any], list[Entry]]) -> list[Entry]:
        """Entries that may be shown. Another process may have stored them and died before it could tell the anchor."""

        def known(db: Any) -> list[Entry]:
            entries = select(db)
            self._check_known(db)
            return entries

        entries = self._file.read(known)
        if any(entry.seq > self._anchored for entry in entries):
            head, entries = self._file.transact(lambda db: (self._sound(db), select(db)))
            self._tell_anchor(head)
        return entries

    def _tell_anchor(self, head: Mark, path: Path | None = None) -> None:
        newest = self._anchor.advance(self.id, head, path)
        if newest != head and not self._file.read(lambda db: self._history.holds(db, newest)):
            raise LedgerError("The anchor has seen another history of this ledger meanwhile.")
        with self._file.mutex:
            self._anchored = max(self._anchored, head.seq)

    def _head(self) -> Mark:
        def work(db: Any) -> Mark:
            self._check_known(db)
            return self._history.head(db)

        return self._file.read(work)

    def _check_known(self, db: Any) -> None:
        if not self._history.holds(db, self._known):
            raise LedgerError(_REPLACED)

    def _page(self, after: int, kind: str | None = None) -> Callable[[Any], list[Entry]]:
        condition = f"WHERE seq > ? AND kind = coalesce(?, kind) ORDER BY seq LIMIT {PAGE}"
        return lambda db: self._history.select(db, condition, after, kind)

    def _check_unsettled(self, db: Any, reservation: Reservation) -> Entry:
        intent = self._history.select(db, "WHERE seq = ? AND kind = 'intent'", reservation.seq)
        if not intent or intent[0].atoms != reservation.atoms:
            raise ValueError("the reservation is not one of this ledger")
        if self._history.select(db, "WHERE intent = ? LIMIT 1", reservation.seq):
            raise ValueError("the reservation was settled before")
        return intent[0]

    def _left(self, head: Mark) -> Loss:
        return Loss(self.total.measure, max(0, self.total.atoms - head.spent))


_REPLACED = "The ledger was replaced by another copy while in use."
