"""The durable record of every charge and every released answer. Called by the curator, its gates and the public door.

Keys and bodies are opaque here: the ledger knows of no questions and no data. An `intent` reserves before the data are
looked at; the outcomes that name it are what was released. Bytes, hashes, syncs and old copies are the log's, in
`tacit.store`; what may be spent is `rules.step`, asked here before a line is written and by the log when it reads some.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, Self

from tacit.errors import AnswerWithheld, BudgetExhausted, LedgerError
from tacit.model.budget import Budget, Loss, exhausted
from tacit.model.entry import Dropped, GateTerms, Intent, encode
from tacit.store.anchor import Anchor, Binding
from tacit.store.chain import Acceptance, Draft, Line, Unsound, canonical
from tacit.store.log import Log
from tacit.store.transaction import Held, Transaction
from tacit.trusted.rules import step


@dataclass(frozen=True, slots=True)
class Outcome:
    """One answer to be released: the question's key, what it is charged, and its entry, encoded."""

    key: str
    atoms: int
    kind: str
    body: str


class Ledger:
    """An open ledger, for several threads and processes.

    Guarantee: no answer returns before its charge and itself are durable; an intent without outcome counts as spent;
        the running total never passes `total` and what the owner has added to it, but for what an override carries; a
        key keeps its first answer; an old copy is refused, and of several copies in use one answers.
    Formula: commit(intent), swap(anchor), draw, commit(outcomes), swap(anchor), show.
    Source: write-ahead intent logging (Gray & Reuter 1993); `rules.step`; `Log`.
    """

    def __init__(self, log: Log, total: Loss, aside: float = 0.0) -> None:
        self.log, self.total, self.aside = log, total, aside

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        budget: Budget,
        total: Loss,
        binding: Binding,
        anchor: Anchor,
        aside: float = 0.0,
        accept_rollback: Acceptance = None,
        make: Literal["never", "missing", "new"] = "never",
    ) -> Self:
        """The ledger at `path`, with the budget and the binding that it was made with.

        `aside` is the part of delta that is kept for what is discovered, and not in `total`: see `discovery.discover`.
        `make` says whether it may be made, if it is missing, or must be, and never replaces another. Guarantee: as
        `Log.open` and `make_log`: an old copy, and a new ledger in the place of one that is gone, are refused unless
        the owner gives a reason; what was spent stays spent.
        """
        if total.atoms >= 2**62:  # an override may carry twice the total, and SQLite counts to 2^63
            raise LedgerError("The budget is too large to be counted.")
        terms = {"budget": canonical([budget.epsilon, budget.delta]), "total": canonical([total.measure, total.atoms])}
        if aside:
            terms["aside"] = canonical(aside)
        rules = partial(step, total=total.atoms, continues="continues" in binding)
        bound = terms | dict(binding)
        if make == "never":
            log = Log.open(Path(path), bound, anchor, rules, accept_rollback)
        else:
            log = Log.create(Path(path), bound, anchor, rules, accept_rollback, new=make == "new")
        return cls(log, total, aside)

    def reserve(self, loss: Loss, *, purpose: str | GateTerms, private: str | None = None) -> int:
        """Set `loss` aside, before the data are looked at: the number of the intent, which `settle` asks for.

        `purpose` is public; `private` is the mechanism's state.

        Guarantee: durable and known to the anchor when it returns; where too little is left, nothing is written.
            `private` enters no hash and no line, and is deleted when the reservation is settled; the file, the owner's
            secret like the data, may hold its bytes until SQLite uses their place again.
        Formula: `rules.step`, read and written in one transaction.
        """
        if loss.measure != self.total.measure or loss.atoms < 0:
            raise ValueError(f"this ledger counts {self.total.measure} of at least 0, not {loss!r}")
        kind, body = encode(Intent(purpose))
        draft = Draft(kind, loss.atoms, body)

        def work(transaction: Transaction) -> int:
            try:
                state = self.log.step(transaction.state, transaction.at.seq + 1, draft)
            except Unsound:
                known = transaction.state
                whole = self.total.atoms + known.raised
                raise BudgetExhausted(exhausted(loss, known.spent, whole, closed=known.closed)) from None
            line = transaction.append(draft, state, time=self.log.time())
            if private is not None:
                transaction.keep(line.seq, private)
            return line.seq

        # A full disk is met before the charge rather than after it.
        self.log.check_room()
        # The anchor knows of the intent before anything is looked at: of two copies of this ledger one gets so far.
        return self.log.write(work)

    def settle(
        self, intent: int | None, outcomes: Sequence[Outcome], *, private: Held | None = None, time: str | None = None
    ) -> list[Line]:
        """Store the answers that an intent paid for; without one, free answers. Returns what may be shown.

        `private` puts an open intent's private state back that `take_private` had taken, in the same transaction.
        `time` is when free answers were asked for: now, by default.

        Guarantee: all or none, durable in the ledger and known to the anchor when it returns. A key that was answered
            meanwhile keeps its earlier answer, which is returned; ours is dropped unseen and its charge stays.
        Formula: `rules.step`.
        """
        if not outcomes:
            raise ValueError("there is at least one outcome")

        def work(transaction: Transaction) -> list[Line]:
            # How long it took to look at the data may tell about them, and lines are published. So an outcome has the
            # time of its intent, and what a gate let pass the time at which the gate began to look, hit or not.
            at = self.log.time() if time is None else time
            if intent is not None:
                at = transaction.time_of(intent)
                transaction.forget(intent)
            if private is not None:
                transaction.put_back(private)
            answered, shown = transaction.keyed([outcome.key for outcome in outcomes]), list[Line]()
            for outcome in outcomes:
                draft = Draft(outcome.kind, outcome.atoms, outcome.body, outcome.key, intent)
                if outcome.key in answered:
                    kind, body = encode(Dropped(answered[outcome.key].seq))
                    draft = Draft(kind, outcome.atoms, body, None, intent)
                state = self.log.step(transaction.state, transaction.at.seq + 1, draft)
                line = transaction.append(draft, state, time=at)
                shown.append(answered.setdefault(outcome.key, line))
            return shown

        try:
            return self.log.write(work)
        except Unsound as error:
            raise ValueError(f"these outcomes do not settle intent {intent}: {error}") from None
        except LedgerError as error:
            stays = "" if intent is None else " What was reserved for it stays spent."
            raise AnswerWithheld(
                f"The answer is withheld, because it could not be stored: {error.sentence}{stays}"
            ) from None

    def take_private(self, seq: int) -> Held | None:
        """The private state of an open intent, for one taker: it is gone from the file when this returns.

        Guarantee: of all threads, processes and forks at most one gets it, and it can be put back once, by `settle`;
            what is lost with it stays spent.
        Formula: read, and replace by a random token, in one transaction; open intents only.
        """
        self.log.check_room()  # so that what follows from it can be stored
        return self.log.write(lambda transaction: transaction.take(seq))

    def find(self, key: str) -> Line | None:
        """The stored answer to a question."""
        return self.find_many([key]).get(key)

    def find_many(self, keys: Iterable[str]) -> dict[str, Line]:
        """The stored answers among `keys`, in their order."""
        wanted = list(dict.fromkeys(keys))
        found = self.log.keyed(wanted)
        return {key: found[key] for key in wanted if key in found}

    @property
    def spent(self) -> Loss:
        """What is spent, intents without outcome included."""
        return Loss(self.total.measure, self.log.head().spent)

    def close(self) -> None:
        """Let go of the files: nothing is pending, and later use is refused."""
        self.log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
