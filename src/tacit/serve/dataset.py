"""One data set as the server holds it: session, writer, audit log, and the lock that keeps a second server away.

Nothing here has to survive: what was asked and answered is in the ledger, and a new server goes on from there.
"""

from __future__ import annotations

import fcntl
import os
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import to_builtins

from tacit.config import AboutSection, Config, read_config
from tacit.errors import ConfigError, LedgerError, WouldSpend
from tacit.model.ask import Count
from tacit.model.budget import Loss
from tacit.model.status import DryRun, Started
from tacit.model.table import Answers
from tacit.replies import QuotaLine
from tacit.serve.audit import Audit, entry_of, line_of, named
from tacit.serve.edition import Published
from tacit.serve.key import Key
from tacit.serve.keys import KeyRing
from tacit.serve.question import Question
from tacit.serve.refusal import Refusal, Seldom, code_of, log
from tacit.serve.served_data import ServedData, check_name, ticket
from tacit.serve.turns import SLICE, SLICE_WORK, Steps, Ticket
from tacit.serve.writer import Cut, accounted
from tacit.session import Session

if TYPE_CHECKING:  # a server of published files loads no ledger
    from tacit.blocks.series import Series

MOST_LOOKED = 16  # questions of one request that are looked at for being answered for ever
T = TypeVar("T")
FAIRNESS = "a quota is fairness between analysts; what protects the rows is the one budget that all of them share"


class ServerLock:
    """An exclusive lock on LEDGER.server for as long as the server lives; the system ends it with the process."""

    def __init__(self, ledger: Path) -> None:
        path = Path(f"{os.path.realpath(ledger)}.server")
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            raise ConfigError(f"{path.name} cannot be written beside the ledger.") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise LedgerError(
                f"another server holds {ledger.name}: a ledger has one server at a time. "
                "(The command line and Python may use it beside the server.)"
            ) from None

    def close(self) -> None:
        os.close(self._file)


class Dataset(ServedData):
    """Answers for keys: who may spend spends, readers get what is known. Everything here is safe from any thread."""

    fairness = FAIRNESS  # what is said of a quota

    def __init__(
        self,
        name: str,
        session: Session | Series,
        ledger: Path,
        keys: KeyRing,
        lock: ServerLock,
        about: AboutSection | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        """`about` and `columns` are the owner's words, for people to read."""
        self._keys, self._lock = keys, lock
        self.audit = Audit(Path(f"{os.path.realpath(ledger)}.audit"))
        # What names have spent on requests that are not finished, of the table or of each block.
        self._unnoted: Counter[tuple[str, str]] = Counter()
        self._due = Seldom()
        said = to_builtins(about) if about is not None else {}
        super().__init__(name, session, Published(self.table), about=said, columns=columns, sync=self._sync)

    @classmethod
    def open(cls, name: str, config: str | Path | Config, keys: KeyRing) -> Dataset:
        """Open the data set of a configuration; refused while another server has its ledger."""
        check_name(name)
        settings = config if isinstance(config, Config) else read_config(config)
        lock = ServerLock(settings.ledger)
        try:
            session = cls.opened(settings)
            session.warm_up()
            return cls(name, session, settings.ledger, keys, lock, settings.about, settings.columns)
        except BaseException:
            lock.close()
            raise

    @staticmethod
    def opened(settings: Config) -> Session | Series:
        """The session of a configuration."""
        return settings.open()

    def ask(
        self, key: Key, questions: list[Question], arrived: datetime | None = None, *, free: bool = False
    ) -> Future[list[Answers]] | list[Answers]:
        remembered = self.recall(questions)
        if remembered is not None:  # has been told before, word for word, so it need not wait for the writer
            self._note(key, questions, remembered)
            return remembered

        def note(result: Any) -> None:
            self._note(key, questions, result)
            if isinstance(result, list):
                self._remember(list(zip(questions, result, strict=True)))

        waits = ticket(key, questions, arrived)
        counts = [question.ask for question in questions if isinstance(question.ask, Count) and question.plain]
        plain = len(counts) == len(questions)
        if key.may_spend_all and not free:
            if plain:
                return self.writer.count(counts, note, waits)
            paying = partial(accounted, self.session)
            return self.writer.do_in_steps(lambda: self.in_turn(questions, paying), note, waits)
        if free or not key.may_spend:
            return self.writer.do_in_steps(lambda: self._all_free(questions), note, waits)
        within = partial(self._within_quota, key, questions)
        if plain and len(counts) <= SLICE and sum(waits.work) <= SLICE_WORK:
            claim = partial(self._claim, key, questions)
            return self.writer.count(counts, note, waits, claim=claim, otherwise=within)
        return self.writer.do_in_steps(within, note, waits)

    def price(self, key: Key, question: Question) -> Future[DryRun]:
        """The most that a question could cost now. Asks nothing."""
        return self.writer.do(lambda: price(self.session, question), ticket=ticket(key, [question]))

    def spent_by(self, key: Key) -> Loss:
        """What a key's name has spent here, of the pot of which it has spent most."""
        used = (self._used(key, pot) for pot in self._pots())
        return Loss(self.session.total.measure, max(used, default=0))

    def start(self, key: Key) -> Future[Started]:
        """Buy what the answers start from, and note who did. For the owner."""

        def note(result: Any) -> None:
            line = line_of(key, question="start")
            if not isinstance(result, Started):
                self._note_refused(key, line, result)
                return
            cost = result.cost
            self._count(key, cost.atoms)
            self._audit([line | ({"cost": cost.to_dict()} if cost.atoms else {"free": 1})], paid=cost.atoms > 0)

        return self.writer.do(lambda: self._begin(key), note, Ticket(key.id))

    def _begin(self, key: Key) -> Started:
        session = self.table()
        return accounted(session, session.start)

    def quota(self, key: Key) -> QuotaLine | None:
        """What a key may spend, and has spent, of the pot of which most is used; None if it may spend all there is."""
        if key.quota is None or key.may_spend_all:
            return None
        pots, total = self._pots(), self.session.total
        used = {pot: self._used(key, pot) for pot in pots}
        touched = [pot for pot in pots if used[pot]] or pots[-1:]
        most = max(touched, key=lambda pot: used[pot] / max(1, self._allowed(key, pot)))
        allowed = self._allowed(key, most)
        share = allowed / total.atoms if key.of_left else key.quota
        spent, of = (Loss(total.measure, atoms).to_dict() for atoms in (used[most], allowed))
        return QuotaLine(share, spent, of, self.fairness)

    def _pots(self) -> list[str]:
        """Under which names the file of keys counts: a quota is of each. The last one is the newest."""
        return [self.name]

    def _in_pot(self, pot: str) -> Loss:
        """What is left of the budget that a pot is a share of."""
        return self.session.left

    def noted(self, limit: int) -> list[dict[str, Any]]:
        try:
            return self.audit.last(limit)
        except OSError as error:
            self._due.error("reading", "the audit log cannot be read: %s", error.strerror)
            words = "The audit log cannot be read now; the server's log tells the owner why."
            raise Refusal(503, "audit", words, retry_after=30) from None

    def close(self) -> None:
        super().close()
        self.audit.close()
        self._lock.close()

    def _all_free(self, questions: list[Question]) -> Steps:
        answers = list[Answers]()
        for question in questions:
            answers.append((yield from self._free(question)))
            yield question.work
        return answers

    def _free(self, question: Question) -> Generator[int, None, Answers]:
        """For who may not spend. What is known stays known, so nothing can come between the price and the answer.

        Were a price ever wrong, nothing would be spent all the same: the ledger takes nothing from a free question.
        """

        def free(work: Callable[[], T], _: int) -> T:
            with self.session.free():
                return work()

        try:
            found = free(lambda: price(self.session, question), 0)
            if found.known:
                return (yield from self.in_steps(question, free))
        except WouldSpend:
            log.error("a question was priced as known and is not: %s", question.key)
            raise
        words = f"A reader's key and a link tell what is known, and this is not: {found.why}."
        raise Refusal(403, "would_spend", words)

    def _claim(self, key: Key, questions: list[Question], claims: Counter[str]) -> bool:
        """Whether plain counts fit into a quota beside what others of the same name claim, whatever they will cost."""
        if key.of_left and any(self.table().buys_start(question.ask) for question in questions):
            return False
        most = sum(price(self.session, question).cost_at_most.atoms for question in questions)
        if not most:
            return True
        claims[key.name] += most
        return claims[key.name] <= self._left(key, self.name)

    def _within_quota(self, key: Key, questions: list[Question]) -> Steps:
        """Answers for who has a quota. The ledger itself refuses what would take them past it."""
        answers, unnoted = list[Answers](), 0

        def capped(work: Callable[[], T], before: int) -> T:
            def spend() -> T:
                left = Loss(self.session.total.measure, self._left(key, self.name) + unnoted - before)
                with self.table().spending(left):
                    return work()

            try:
                return accounted(self.session, spend, before)
            except WouldSpend as error:
                raise past_quota(key, error) from None
            except Cut as cut:
                if isinstance(cut.error, WouldSpend):
                    cut.error = past_quota(key, cut.error)
                raise

        try:
            while len(answers) < len(questions):
                rest = questions[len(answers) :]
                if key.of_left and self.table().buys_start(rest[0].ask):
                    accounted(self.session, partial(self._start_for, key), unnoted)
                if all(question.plain for question in rest[:SLICE]):
                    some = [question.ask for question in rest[:SLICE]]
                    found = capped(partial(self.session.answer_many, some), unnoted)
                else:
                    found = [(yield from self.in_steps(rest[0], capped, unnoted))]
                answers += found
                more = sum(answer.facts.cost.atoms for answer in found)
                unnoted += more
                self._unnoted[self.name, key.name] += more
                yield sum(question.work for question in rest[: len(found)])
            return answers
        finally:
            self._unnoted[self.name, key.name] -= unnoted  # from here on the note of the whole request has it

    def _start_for(self, key: Key) -> None:
        """Buy what the answers start from, where a question may. It is for all, so no default quota is charged."""
        started = self.table().start()
        self._audit([line_of(key, question="start", cost=started.cost.to_dict())], paid=True)

    def _allowed(self, key: Key, pot: str) -> int:
        """What a key may spend in all: a share of the budget, or of what was left when it first asked."""
        share = 1 if key.quota is None else key.quota
        if not key.of_left:
            return int(self.session.total.atoms * share)
        return self._keys.granted(pot, key.name, int(self._in_pot(pot).atoms * share))

    def _left(self, key: Key, pot: str) -> int:
        return max(0, self._allowed(key, pot) - self._used(key, pot))

    def _used(self, key: Key, pot: str) -> int:
        """What the file of keys knows of a name, and what was paid since and is not written there."""
        return self._keys.used(pot, key.name) + self._unnoted[pot, key.name]

    def _note(self, key: Key, questions: list[Question], result: Any, charged: dict[str, Any] | None = None) -> None:
        """Write down who asked, before anybody is told the answers: paid ones by themselves, free ones together.

        `charged` is what else is known of the charges of the request. It stands in its first line.
        """
        who = line_of(key)
        if isinstance(result, BaseException):
            one = named(questions[0]) if len(questions) == 1 else {"questions": len(questions)}
            self._note_refused(key, who | one | (charged or {}), result)
            return
        pairs = list(zip(questions, result, strict=True))
        paid = [
            who | named(question) | {"cost": answer.facts.cost.to_dict(), **entry_of(answer)}
            for question, answer in pairs
            if answer.facts.cost.atoms
        ]
        free = [pair for pair in pairs if not pair[1].facts.cost.atoms]
        if len(free) == 1:
            paid.append(who | named(free[0][0]) | {"free": 1, **entry_of(free[0][1])})
        elif free:
            paid.append(who | {"free": len(free)})
        if len(free) < len(pairs):  # first: what cannot be noted was paid for all the same
            self._count(key, sum(answer.facts.cost.atoms for answer in result))
        self._audit([paid[0] | (charged or {}), *paid[1:]], paid=len(free) < len(pairs))

    def _note_refused(self, key: Key, line: dict[str, Any], error: BaseException) -> None:
        if isinstance(error, Cut):  # a part of it was paid for
            cost = Loss(self.session.total.measure, error.atoms)
            self._count(key, cost.atoms)
            self._audit([line | {"refused": code_of(error.error), "cost": cost.to_dict()}], paid=True)
        else:
            self._audit([line | {"refused": code_of(error)}], paid=False)

    def _audit(self, records: list[dict[str, Any]], *, paid: bool) -> None:
        self._noted(lambda: self.audit.write(records, paid=paid), paid=paid)

    def _sync(self) -> None:
        self._noted(self.audit.sync, paid=True)

    def _noted(self, work: Callable[[], None], *, paid: bool) -> None:
        try:
            work()
        except OSError:
            self._due.error("audit", "the audit log cannot be written")
            raise Refusal(
                503,
                "audit",
                "The answer cannot be noted in the audit log, so it is not shown. It is kept: ask again later.",
                nothing_spent=not paid,
                retry_after=30,
            ) from None

    def _count(self, key: Key, atoms: int) -> None:
        if atoms:
            self._use(self.name, key.name, atoms)

    def _use(self, pot: str, name: str, atoms: int) -> None:
        try:
            self._keys.use(pot, name, atoms)
        except Refusal:  # what was paid is shown all the same; as long as this server lives it is counted here
            self._due.error("quota", "what a quota has used could not be written down")
            self._unnoted[pot, name] += atoms

    def _remember(self, pairs: list[tuple[Question, Answers]]) -> None:
        """Keep what the session says the same of for ever: a repeat, and what a certified base answers.

        In the writer's thread, as the session is asked. Of many questions at once nobody asks for one soon again.
        """
        looked = pairs if len(pairs) <= MOST_LOOKED else []
        guessed = [question for question, one in looked if one.facts.source == "hypothesis" and question.plain]
        settled = {question.key for question in guessed if self.table().settles(question.ask)}
        for question, answer in pairs:
            if question.within is not None and answer.cost.atoms:
                self._repeats.clear()  # what was told before stays, but says now that a sharper answer was bought
            stays = answer.facts.source in ("repeat", "public") or question.key in settled
            if question.plain and stays:
                self._repeats.keep(question.key, answer)


def past_quota(key: Key, error: WouldSpend) -> Refusal:
    words = f"The question would take {key.name} past its quota ({FAIRNESS}). The owner can give a larger one."
    stays = "" if error.nothing_spent else " What was paid for before that stays spent."
    return Refusal(403, "quota", words + stays, nothing_spent=error.nothing_spent)


def price(session: Session | Series, question: Question) -> DryRun:
    """The price now. `known` means for certain, without the data and for ever: nothing later makes it unknown."""
    with session.free():
        return session.price(question.ask, within=question.within)
