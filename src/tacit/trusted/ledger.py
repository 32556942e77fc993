"""The durable record of every charge and every released answer. Called by the curator and the session.

Keys and bodies are opaque here: the ledger knows of no questions and no data. Entries are appended, never changed, and
each carries the hash of the one before it. An `intent` reserves; an `outcome` is one released answer and ends its
intent; an `override` is the owner's acceptance that entries were lost.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from tacit.errors import AnswerWithheld, BudgetExhausted, LedgerError
from tacit.model.budget import Budget, Loss
from tacit.trusted.accountant import Filter
from tacit.trusted.anchor import Anchor
from tacit.trusted.chain import Entry, Mark, canonical, chain_hash, check, digest, mark
from tacit.trusted.durable import DurableFile

_FORMAT = "2"
# What a ledger belongs to. A value may be made from the ledger's own secret, so that a fingerprint of the data says
# nothing to somebody who does not hold the ledger: receipts, which are hashes over all of this, are public.
Binding = Mapping[str, str | Callable[[bytes], str]]
Purpose = str | Mapping[str, Any]  # public, and JSON
_PAGE = 500  # rows read at a time, so that no reader holds up a checkpoint for long
_SCHEMA = [
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE entries (seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT, intent INTEGER, atoms INTEGER"
    " NOT NULL, spent INTEGER NOT NULL, body TEXT NOT NULL, time TEXT NOT NULL, hash TEXT NOT NULL)",
    "CREATE UNIQUE INDEX answers ON entries (key) WHERE key IS NOT NULL",  # one answer per question, whoever races
    "CREATE INDEX settled ON entries (intent) WHERE intent IS NOT NULL",
    "CREATE INDEX intents ON entries (seq) WHERE kind = 'intent'",
    # What a mechanism must remember and nobody may learn, such as a noisy threshold: receipts are public, so it stays
    # outside the chain, and it goes when its intent is settled.
    "CREATE TABLE private (entry INTEGER PRIMARY KEY, value TEXT NOT NULL)",
    *(
        f"CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table} BEGIN SELECT RAISE(ABORT, 'append-only'); END"
        for table in ("meta", "entries")
        for verb in ("UPDATE", "DELETE")
    ),
]


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


class Ledger:
    """An open ledger, for several threads and processes.

    Guarantee: no answer returns before its charge and itself are durable; an intent without outcome counts as spent;
        the running total never passes the total; a key keeps its first answer; an old copy is refused.
    Formula: commit(intent) → draw → commit(outcomes) → sync(anchor) → show.
    Source: write-ahead intent logging (Gray & Reuter 1993); hash chains (Haber & Stornetta 1991).
    """

    def __init__(self, path: Path, anchor: Anchor) -> None:
        self.path = path
        self._file = DurableFile(path)
        self._anchor = anchor
        with self._file.use() as db:
            tables = db.execute("SELECT name FROM sqlite_master WHERE name IN ('meta', 'entries')").fetchall()
            meta = dict(db.execute("SELECT key, value FROM meta").fetchall() if len(tables) == 2 else ())
        if meta.get("format") != _FORMAT:
            self.close()
            raise LedgerError(f"{path.name} is not a ledger, or one of another version of this program.")
        self.id = meta["id"]
        self._meta = meta
        self._origin = Mark(0, digest(meta), 0)
        self.total = Loss(*json.loads(meta["total"]))
        self._known = self._origin  # the newest entry that this process has seen: it must never be gone again
        self._anchored = -1  # everything up to here is known to the anchor

    @classmethod
    def create(cls, path: str | Path, *, budget: Budget, total: Loss, binding: Binding, anchor: Anchor) -> Self:
        """A new, empty ledger.

        Guarantee: the file appears whole or not at all, with mode 0600, and never replaces another.
        Formula: build beside, sync, link. Source: see the class.
        """
        path = Path(path)
        secret = secrets.token_hex(32)
        meta = {"format": _FORMAT, "id": secrets.token_hex(16), "secret": secret}
        meta |= _terms(budget, total, binding, secret)
        rows: list[tuple[str, tuple[object, ...]]] = [(statement, ()) for statement in _SCHEMA]
        rows += [("INSERT INTO meta VALUES (?, ?)", item) for item in meta.items()]
        try:
            made = DurableFile.create(path, rows)
        except (OSError, sqlite3.Error):
            raise LedgerError(f"{path.name} cannot be created there.") from None
        if not made:
            raise LedgerError(f"{path.name} exists already; open it, or choose another name.")
        return cls.open(path, budget=budget, total=total, binding=binding, anchor=anchor)

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

        Guarantee: refused if older than, or different from, the newest one seen. `accept_rollback` gives the owner's
            reason to go on: it is recorded, and what the anchor saw spent stays spent. With no anchor at all, what was
            lost cannot be known: the ledger's own total is carried on, and the override says so.
        Formula: terms equal ∧ the anchor's mark in the chain; an override carries max(ledger, anchor), or their sum if
            the ledger had an override before, because the two may then be different continuations of one copy.
        Source: see the class.
        """
        path = Path(path)
        if not path.exists():
            raise LedgerError(f"There is no ledger {path.name}.")
        self = cls(path, anchor)
        try:
            self._check_terms(_terms(budget, total, binding, self._meta["secret"]))
            self._check_ends()
            with self._file.transaction() as db:
                problem = self._problem()
                if problem and not accept_rollback:
                    raise LedgerError(
                        f"{problem} If the loss is real, `tacit.open(..., accept_rollback=REASON)`, or "
                        "`--accept-rollback REASON` on the command line, goes on and records it."
                    )
                if problem and accept_rollback:
                    self._override(db, accept_rollback)
            self._known = self._head()
            anchor.advance(self.id, self._known)
            self._anchored = self._known.seq
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
        found: list[Entry] = []
        for start in range(0, len(wanted), _PAGE):
            part = tuple(wanted[start : start + _PAGE])
            found += self._select(f"WHERE key IN ({','.join('?' * len(part))})", *part)
        stored = {entry.key: entry for entry in self._shown(found)}
        return {key: stored[key] for key in wanted if key in stored}

    def reserve(self, loss: Loss, *, purpose: Purpose, private: str | None = None) -> Reservation:
        """Set `loss` aside, before the data are looked at. `purpose` is public; `private` is the mechanism's state.

        Guarantee: durable when it returns, and never more than what is left; refused, it writes nothing. `private`
            enters no hash and no entry, and is deleted when the reservation is settled.
        Formula: spent + loss <= total, read and written in one transaction.
        Source: privacy filter of plain sums (Rogers et al. 2016).
        """
        if loss.measure != self.total.measure or loss.atoms < 0:
            raise ValueError(f"this ledger counts {self.total.measure} of at least 0, not {loss!r}")
        with self._file.transaction() as db:
            head = self._sound()
            left = self._left(head)
            if not Filter(self.total).admits(Loss(loss.measure, head.spent), loss):
                shown = "slightly less" if str(left) == str(loss) else left
                raise BudgetExhausted(f"The question costs {loss} and {shown} is left of {self.total}.")
            body = canonical({"purpose": purpose})
            entry = self._append(db, head, "intent", atoms=loss.atoms, spent=head.spent + loss.atoms, body=body)
            if private is not None:
                db.execute("INSERT INTO private VALUES (?, ?)", (entry.seq, private))
        # The anchor need not know of intents: nothing is shown on the strength of one alone, and the anchor moves past
        # it with the next outcome. An old copy that lacks only intents has lost nothing that anybody saw.
        self._known = max(self._known, mark(entry))
        return Reservation(entry.seq, entry.atoms)

    def settle(self, reservation: Reservation | None, outcomes: Sequence[Outcome]) -> list[Entry]:
        """Store the answers that a reservation paid for; without one, free answers. Returns what may be shown.

        Guarantee: all or none, durable in the ledger and known to the anchor when it returns. A key that was answered
            meanwhile keeps its earlier answer, which is returned; ours is dropped unseen and its charge stays.
        Formula: spent := spent - reserved + sum(charged), with sum(charged) <= reserved.
        Source: see the class.
        """
        reserved = 0 if reservation is None else reservation.atoms
        if not outcomes or any(o.atoms < 0 for o in outcomes) or sum(o.atoms for o in outcomes) > reserved:
            raise ValueError(f"outcomes charge at least 0 each and at most the {reserved} atoms reserved together")
        try:
            with self._file.transaction() as db:
                head = self._sound()
                if reservation is not None:
                    self._check_unsettled(reservation)
                    db.execute("DELETE FROM private WHERE entry = ?", (reservation.seq,))
                    head = head._replace(spent=head.spent - reserved)
                entries = []
                for outcome in outcomes:
                    earlier = self._select("WHERE key = ?", outcome.key)
                    entry = self._append(
                        db,
                        head,
                        "outcome",
                        key=None if earlier else outcome.key,
                        intent=None if reservation is None else reservation.seq,
                        atoms=outcome.atoms,
                        spent=head.spent + outcome.atoms,
                        body=canonical({"answered_by": earlier[0].seq}) if earlier else outcome.body,
                    )
                    head = mark(entry)
                    entries.append(earlier[0] if earlier else entry)
            self._known = max(self._known, head)
            self._anchor.advance(self.id, head)
            self._anchored = max(self._anchored, head.seq)
        except LedgerError as error:
            raise AnswerWithheld(
                f"The answer is withheld, because it could not be stored: {error.sentence} What was reserved for it "
                "stays spent."
            ) from None
        return entries

    def private_of(self, seq: int) -> str | None:
        """The private state that intent `seq` was reserved with, until it is settled.

        Guarantee: for the mechanism that stored it only; never shown, never hashed. Formula: the row. Source: class.
        """
        with self._file.use() as db:
            row = db.execute("SELECT value FROM private WHERE entry = ?", (seq,)).fetchone()
        return None if row is None else str(row[0])

    def open_intents(self) -> list[Entry]:
        """The intents without outcome, newest last: what a restart may go on with, and what counts as spent in full.

        Guarantee: as for `find`. Formula: intents that no outcome names. Source: see the class.
        """
        unsettled = "kind = 'intent' AND NOT EXISTS (SELECT 1 FROM entries AS o WHERE o.intent = entries.seq)"
        return self._shown(self._select(f"WHERE {unsettled} ORDER BY seq"))

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
        while page := self._select(
            f"WHERE seq > ? AND kind = coalesce(?, kind) ORDER BY seq LIMIT {_PAGE}", after, kind
        ):
            yield from self._shown(page)
            after = page[-1].seq

    def verify(self) -> int:
        """Derive the whole chain and every running total again; the number of entries.

        Guarantee: raises, naming the first bad entry, if anything was changed, removed or put in.
        Formula: hash = SHA-256(previous hash, entry); totals as in `reserve` and `settle`.
        Source: Haber & Stornetta 1991.
        """
        count = check(self.entries(), self._origin, self.total)
        with self._file.transaction():
            self._sound()  # the end was not cut off
        return count

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Take turns at "look up, reserve, draw, settle", so that the same new question is paid once.

        Guarantee: one holder among all threads and processes; no promise of the ledger depends on it.
        Formula: a thread lock, then flock on PATH.lock. Source: flock(2).
        """
        with self._file.turn():
            yield

    def close(self) -> None:
        """Let go of the file. Guarantee: nothing is pending. Formula: close. Source: see the class."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the chain ----------------------------------------------------------------------------------------------------

    def _append(
        self,
        db: Any,
        head: Mark,
        kind: str,
        *,
        atoms: int,
        spent: int,
        body: str,
        seq: int = 0,
        key: str | None = None,
        intent: int | None = None,
    ) -> Entry:
        time = datetime.now(UTC).isoformat(timespec="milliseconds")
        entry = Entry(seq or head.seq + 1, kind, key, intent, atoms, spent, body, time, hash="")
        entry = replace(entry, hash=chain_hash(head.hash, entry))
        db.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", astuple(entry))
        return entry

    def _override(self, db: Any, reason: str) -> None:
        head, seen = self._head(), self._anchor.newest(self.id)
        carried = head.spent
        if seen is not None:
            # Only an override can set an old copy going again. So a ledger without one is a shortened copy of what the
            # anchor saw, and its charges are among the anchor's; with one, they may all have come on top.
            forked = bool(self._select("WHERE kind = 'override' LIMIT 1"))
            carried = head.spent + seen.spent if forked else max(head.spent, seen.spent)
        body = {"reason": reason, "anchor": seen, "lost": "unknown" if seen is None else "counted as spent"}
        # The sequence jumps past the lost entries, so that the anchor still only ever moves forward.
        seq = max(head.seq, seen.seq if seen else 0) + 1
        atoms = carried - head.spent
        self._append(db, head, "override", atoms=atoms, spent=carried, body=canonical(body), seq=seq)

    def _problem(self) -> str | None:
        seen = self._anchor.newest(self.id)
        newest = self._head().seq
        if seen is None:
            return "The anchor does not know this ledger, so it may be an old copy." if newest else None
        if self._holds(seen) or any(
            json.loads(entry.body)["anchor"] == list(seen) for entry in self._select("WHERE kind = 'override'")
        ):
            return None
        return (
            "This ledger is older than, or differs from, the newest one seen: "
            f"its last entry is {newest}, the anchor has seen {seen.seq}."
        )

    def _holds(self, mark: Mark) -> bool:
        return mark == self._origin or any(e.hash == mark.hash for e in self._select("WHERE seq = ?", mark.seq))

    def _sound(self) -> Mark:
        """The head, if the file is still the one that we and the anchor know. Called while nobody else can commit."""
        problem = self._problem()
        if problem or not self._holds(self._known):
            raise LedgerError(problem or "The ledger was replaced by another copy while in use.")
        return self._head()

    def _check_ends(self) -> None:
        links = [(self._origin.hash, first) for first in self._select("ORDER BY seq LIMIT 1")]
        last = self._select("ORDER BY seq DESC LIMIT 2")
        links += [(before.hash, last[0]) for before in last[1:]]
        for previous, entry in links:
            if entry.hash != chain_hash(previous, entry):
                raise LedgerError(f"The ledger is damaged: entry {entry.seq} does not follow from the one before it.")

    def _check_unsettled(self, reservation: Reservation) -> None:
        intent = self._select("WHERE seq = ? AND kind = 'intent'", reservation.seq)
        if not intent or intent[0].atoms != reservation.atoms:
            raise ValueError("the reservation is not one of this ledger")
        if self._select("WHERE intent = ? LIMIT 1", reservation.seq):
            raise ValueError("the reservation was settled before")

    def _check_terms(self, given: Mapping[str, str]) -> None:
        ours, theirs = (json.loads(meta["binding"]) for meta in (self._meta, given))
        names = [name for name in ("budget", "total") if self._meta[name] != given[name]]
        names += sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
        if names:
            raise LedgerError(f"The ledger {self.path.name} was made with another {' and '.join(names)}.")

    def _shown(self, entries: list[Entry]) -> list[Entry]:
        """Another process may have stored these and died before it could tell the anchor: tell it first."""
        if any(entry.seq > self._anchored for entry in entries):
            head = self._head()
            self._anchor.advance(self.id, head)
            self._anchored = max(self._anchored, head.seq)
        return entries

    def _head(self) -> Mark:
        last = self._select("ORDER BY seq DESC LIMIT 1")
        return mark(last[0]) if last else self._origin

    def _left(self, head: Mark) -> Loss:
        return Loss(self.total.measure, max(0, self.total.atoms - head.spent))

    def _select(self, condition: str, *values: object) -> list[Entry]:
        with self._file.use() as db:
            rows = db.execute(f"SELECT {_COLUMNS} FROM entries {condition}", values).fetchall()
        return [Entry(*row) for row in rows]


_COLUMNS = ", ".join(field.name for field in fields(Entry))


def _terms(budget: Budget, total: Loss, binding: Binding, secret: str) -> dict[str, str]:
    made = {name: value if isinstance(value, str) else value(bytes.fromhex(secret)) for name, value in binding.items()}
    return {
        "budget": canonical([budget.epsilon, budget.delta]),
        "total": canonical([total.measure, total.atoms]),
        "binding": canonical(made),
    }
