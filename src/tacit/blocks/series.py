"""A table that grows: blocks of different rows, each with a ledger and a budget of its own, asked about together.

What is asked over several blocks is the sum of what each of them answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from typing import Any

from tacit.blocks.budgets import Listed
from tacit.blocks.ledgers import BlockLedgers
from tacit.blocks.terms import SeriesTerms
from tacit.errors import InvalidQuery, NotStarted, WouldSpend
from tacit.exact.price import total
from tacit.load.split import split_by
from tacit.model.ask import Ask
from tacit.model.block import of_each_block, with_blocks
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.model.facts import Facts
from tacit.model.query import Query
from tacit.model.status import BlockStatus, DryRun, Extension, Started, Status
from tacit.model.table import Answers
from tacit.model.workload import Marginal
from tacit.owner.manifest_entry import Block
from tacit.questions import Questions
from tacit.release.answering import combine, parts
from tacit.release.block_parts import BlockTerms, Blockwise
from tacit.release.epsilon import epsilon_spent
from tacit.release.estimate import Estimate
from tacit.release.evidence import FEW, AnswerPart, Need, Setting
from tacit.release.groups import BlockGroup
from tacit.release.mechanisms import Choice
from tacit.session import Session
from tacit.trusted.curator import Curator

MOST_KEPT_ANSWERS = 200_000  # answers of blocks that are kept in memory


class Series(Questions):
    """Answers questions about all blocks of a series, or some. Made by `tacit.series`; closes like a session.

    What it says of a budget is about one block: `total` is each block's, `spent` that of the block that has spent most.
    """

    def __init__(self, ledgers: BlockLedgers) -> None:
        self._ledgers = ledgers
        self._answers: dict[str, dict[Need, AnswerPart]] = {}
        self._domain: tuple[int, Domain] = (0, ledgers.terms.domain)

    # -- what is public -----------------------------------------------------------------------------------------------

    @property
    def terms(self) -> SeriesTerms:
        """What the series was made with."""
        return self._ledgers.terms

    @property
    def origin(self) -> str:
        """The hash that the manifest's chain starts from."""
        return self._ledgers.origin

    @property
    def blocks(self) -> list[str]:
        """The labels of the blocks, in the order in which they were appended."""
        return [block.label for block in self._ledgers.newest()]

    @property
    def sizes(self) -> dict[str, int]:
        """How many rows each block has. Public."""
        return {block.label: block.rows for block in self._ledgers.newest()}

    @property
    def rows(self) -> int:
        """The number of rows of all blocks, which is public."""
        return sum(block.rows for block in self._ledgers.listed)

    @property
    def domain(self) -> Domain:
        """The declared attributes, and the column of blocks before them."""
        return self._over(self._ledgers.newest())

    def _over(self, blocks: Sequence[Block]) -> Domain:
        """The domain of a table that has these first blocks."""
        known, found = self._domain  # once: another thread may be asking about more blocks
        if known != len(blocks):
            labels = [block.label for block in blocks]
            found = with_blocks(self.terms.domain, self.terms.name, labels)
            self._domain = len(blocks), found
        return found

    @property
    def confidence(self) -> float:
        return self._ledgers.any().confidence

    @property
    def each(self) -> Budget:
        """The budget of one block as it is now."""
        return self._ledgers.budgets.each

    @property
    def budget_of_all(self) -> Budget:
        """The budget of the guarantee as it is now: of each block, or of a person over all blocks together."""
        return self._ledgers.budgets.decided()[-1]

    @property
    def extensions(self) -> tuple[Extension, ...]:
        """The owner's decisions to raise the budget, in order: of one block, and where they stand in the manifest."""
        return self._ledgers.extensions()

    def extend(self, budget: Budget) -> Extension:
        """Raise the budget of the series to this one, for every block that there is and for those to come.

        It is a line of the manifest and of the ledger of every block, shown wherever the budget is, and never undone.
        Nothing that was bought changes, and prices stay as they were. Where it is cut short, blocks have less until
        they are opened next, or until it is asked for again: see `Session.extend` for what is given up by it.

        >>> months.extend(tacit.Budget(epsilon=2.0, delta=1e-9))   # doctest: +SKIP
        """
        self._ledgers.extend(budget)
        return self.extensions[-1]

    @property
    def total(self) -> Loss:
        """The budget of one block, with what groups have of it."""
        return total(self.each, self._ledgers.any().total.measure if self._ledgers.listed else None)

    @property
    def plan(self) -> str:
        """Why groups of blocks have ledgers too, or have none; empty where no number of blocks is expected."""
        return self._ledgers.why

    @property
    def groups(self) -> list[str]:
        """The groups of blocks that have ledgers: from which to which block, in the order in which they were made."""
        self._ledgers.newest()
        return [one.label for one in self._ledgers.groups.values()]

    def status(self) -> Status:
        """Every block: its rows, and what is spent of its budget. No rows are read.

        A group whose ledger is lost counts as spent, all of it: what it had spent is not known.
        """
        blocks, groups = list[BlockStatus](), list[BlockStatus]()
        name, why, spent = self.terms.settings.get("mechanism", "auto"), "", Counter[str]()  # of the rows of each block
        for one, session in self._sessions():
            stands = BlockStatus(one.label, one.rows, session.spent, session.total, session.started)
            (groups if one.level else blocks).append(stands)
            name, why = session.choice.mechanism, session.choice.reason
            spent.update(dict.fromkeys(self._ledgers.labels(one), session.spent.atoms))
        for gone in self._ledgers.lost_groups():
            all_of_it = self._ledgers.budgets.whole(gone.level, self.total.measure)
            groups.append(BlockStatus(gone.label, gone.rows, all_of_it, all_of_it, started=False))
            spent.update(dict.fromkeys(self._ledgers.labels(gone), all_of_it.atoms))
        whole, budget = self.total, self.each
        most = Loss(whole.measure, max(spent.values(), default=0))
        return Status(
            rows=self.rows,
            cells=self.domain.size,
            budget=budget,
            mechanism=name,
            reason=why,
            total=whole,
            spent=most,
            left=Loss(whole.measure, max(0, whole.atoms - most.atoms)),
            epsilon_spent=epsilon_spent(most, budget),
            extensions=self.extensions,
            blocks=tuple(blocks),
            groups=tuple(groups),
        )

    @property
    def choice(self) -> Choice:
        """The mechanism of all blocks, and why."""
        return self._ledgers.any().choice

    @property
    def rows_per_person(self) -> int:
        """How many rows of one person in a block are protected together: 1 unless the owner declared more."""
        return self.terms.people

    @property
    def entries(self) -> int:
        """How many blocks there are, and entries of their ledgers: another number once anything was added."""
        return sum(1 + session.entries for _, session in self._sessions())

    # -- blocks -------------------------------------------------------------------------------------------------------

    def append(self, data: Any, label: str, *, table: str | None = None, start: bool = False) -> Session:
        """One more block: rows that are in no other. Returns its session.

        Block sizes and labels are public. Rows that a block has already are refused; so is a label that there is. Late
        rows and corrections are a block of their own. With `start`, what answers start from is bought at once.
        """
        return self._ledgers.append(data, label, table, start=start)

    def append_by(self, data: Any, column: str, *, table: str | None = None, start: bool = False) -> list[str]:
        """Split a table by the values of a column, and append those that are no blocks yet: their labels, in order.

        Which values there are, and how many rows have each, is public from then on. Every row has one.
        """
        begun = list[str]()
        payments = self._ledgers.payments
        with payments.at_one_time(), payments.paying():
            for label, rows in split_by(data, column, table):
                if label not in self.blocks:
                    self.append(rows, label, start=start)
                    begun.append(label)
        return begun

    def block(self, label: str) -> Session:
        """The session of one block, or of a group like "2026-01 to 2026-12", with its rows where they can be read."""
        return self._ledgers.full(self._ledgers.named(label))

    def start(self, label: str | None = None) -> list[str]:
        """Buy what answers start from, for one block or all that are not started, and groups: the labels of these."""
        return self._ledgers.start(label)

    @property
    def base(self) -> Started:
        """What `start` buys of each block that is not started, or what the newest block started from."""
        new = [session for _, session in self._sessions() if not session.started]
        return (new or [self._ledgers.any()])[-1].base

    @property
    def started(self) -> bool:
        """Whether nothing has to be bought any more of any block before questions are asked."""
        return all(session.started for _, session in self._sessions())

    def _sessions(self) -> Iterator[tuple[Listed, Session]]:
        """What the ledger of every block knows, and of every group that is not lost."""
        blocks, gone = self._ledgers.newest(), self._ledgers.lost_groups()
        listed: list[Listed] = [*blocks, *(one for one in self._ledgers.groups.values() if one not in gone)]
        for one in listed:
            session = self._ledgers.light(one)
            yield one, session
            self._ledgers.rest(one, session)

    # -- two verbs ----------------------------------------------------------------------------------------------------

    def answer(self, ask: Ask, *, within: float | None = None) -> Answers:
        _refuse_within(within)
        return self.answer_many([ask])[0]

    def answer_many(self, asks: Sequence[Ask]) -> list[Answers]:
        blocks, setting, needs = self._bound(asks)
        payments = self._ledgers.payments
        with payments.at_one_time(), payments.paying() as paid:
            found = self._found([need for one in needs for need in one], blocks)
            own = [{need: found[need] for need in mine} for mine in needs]
            made = [combine(ask, mine, setting) for ask, mine in zip(asks, own, strict=True)]
        if len(made) == 1:  # its parts may be about different blocks, and a row pays what its own was charged
            cost = Loss(setting.free.measure, max(paid.values(), default=0))
            made = [replace(made[0], facts=replace(made[0].facts, cost=cost))]
        return [
            replace(one, facts=replace(one.facts, total=self.total)) if one.facts.cost.atoms else one for one in made
        ]

    def price(self, ask: Ask, *, within: float | None = None) -> DryRun:
        _refuse_within(within)
        blocks, setting, (needs,) = self._bound([ask])
        asked = self._apart(needs, blocks).asked()
        if not asked:
            return DryRun(True, setting.free, "it follows from what is declared", self.total)
        # A row is in one ledger of each level: what it pays is what the dearest of each of them cost.
        most, left = dict[int, DryRun](), list[Loss]()
        for group, wanted in asked.items():
            session = self._ledgers.light(self._ledgers.of(group))
            one, before = session.priced(wanted), most.get(group.level)
            most[group.level] = one if before is None else max(before, one, key=_dearness)
            left.append(session.left)
        dearest, atoms = max(most.values(), key=_dearness), sum(one.cost_at_most.atoms for one in most.values())
        least = min(left, key=lambda one: one.atoms)
        return replace(dearest, cost_at_most=Loss(least.measure, atoms), total=self.total, left=least)

    def _bound(self, asks: Sequence[Ask]) -> tuple[Sequence[Block], Setting, list[tuple[Need, ...]]]:
        """The blocks that questions are about, and what they need: those that there were when they were put.

        Blocks are only ever added, so these are the first ones; somebody may have appended since.
        """
        blocks: Sequence[Block] = self._ledgers.listed
        setting = self._setting(blocks)
        needs = [parts(ask, setting) for ask in asks]
        known = min((size for one in needs for need in one for size in self._tied(need)), default=len(blocks))
        if known < len(blocks):
            blocks = blocks[:known]
            setting = self._setting(blocks)
            needs = [parts(ask, setting) for ask in asks]
        return blocks, setting, needs

    def _tied(self, need: Need) -> Iterator[int]:
        """How many blocks there were when a question that names some was put."""
        query = need.where if isinstance(need, Marginal) else need
        for factor in query.factors if isinstance(query, Query) else ():
            if self.terms.name in factor.scope:
                yield factor.weights.shape[factor.scope.index(self.terms.name)]

    def _setting(self, blocks: Sequence[Block]) -> Setting:
        one = self._ledgers.any()

        def piecewise(names: tuple[str, ...], pieces: Sequence[Query]) -> bool:
            return not one.fresh or len(pieces) < FEW

        def certifies(query: Query) -> bool:
            """Whether what is asked of each block is answered by what it starts from."""
            return all(map(one.certifies, dict.fromkeys(of_each_block(query, self.terms.name, len(blocks)))))

        return Setting(
            domain=self._over(blocks),
            rows=sum(block.rows for block in blocks),
            confidence=one.confidence,
            free=Loss.nothing(one.total.measure),
            fresh=one.fresh,
            piecewise=piecewise,
            certifies=certifies,
        )

    def _found(self, needs: Sequence[Need], blocks: Sequence[Block]) -> dict[Need, AnswerPart]:
        apart = self._apart(needs, blocks)
        told = {group: self._told(self._ledgers.of(group), asked) for group, asked in apart.asked().items()}
        return apart.put_together(told)

    def _apart(self, needs: Sequence[Need], blocks: Sequence[Block]) -> Blockwise:
        one, terms = self._ledgers.any(), self.terms

        def read(query: Query) -> Estimate:
            found = self._found([query], blocks)[query]
            assert isinstance(found, Estimate)
            return found

        def rows(group: BlockGroup) -> int:
            return self._ledgers.of(group).rows

        said = BlockTerms(
            name=terms.name,
            domain=terms.domain,
            sizes=[block.rows for block in blocks],
            learns=one.learns,
            confidence=one.confidence,
            free=Loss.nothing(one.total.measure),
            rows=rows,
            cover=self._ledgers.cover,
        )
        return Blockwise(needs, said, read)

    def _told(self, block: Listed, needs: Sequence[Need]) -> dict[Need, AnswerPart]:
        """What a ledger says; it is opened where something is asked of it, with its rows where that is not known.

        An answer that is known stays what it is, so it is kept here: most questions need no ledger.
        """
        kept = self._answers.setdefault(block.ledger, {})
        new = [need for need in needs if need not in kept]
        found = {need: kept[need] for need in needs if need in kept}
        if not new:
            return found
        session, payments, labels = self._ledgers.light(block), self._ledgers.payments, self._ledgers.labels(block)
        try:
            with payments.asked(labels, session):
                known = session.known(new)
            if known is not None:
                kept.update({need: part for need, part in known.items() if isinstance(part, Estimate)})
            elif not payments.may_spend():  # nor are its rows read
                raise WouldSpend("The answer is not known yet: it would have to be bought, and here nothing may be.")
            else:
                session = self._ledgers.full(block)
                with payments.asked(labels, session):
                    known = session.found(new)
            payments.charge(labels, sum(part.facts.cost.atoms for part in known.values()))
        except NotStarted as error:
            raise NotStarted(f"In the block {block.label}: {error.sentence}") from None
        found |= known
        if sum(map(len, self._answers.values())) > MOST_KEPT_ANSWERS:
            self._answers.clear()
        self._ledgers.rest(block, session)
        return found

    # -- as a server asks ---------------------------------------------------------------------------------------------

    def warm_up(self) -> None:
        """Load now what the first question would load: see `Session.warm_up`."""
        self.dry_run("SELECT COUNT(*) FROM data")
        Curator.load_samplers()

    def known(self, label: str) -> Session:
        """What the ledger of one block knows, without its rows."""
        return self._ledgers.light(self._ledgers.named(label))

    def free(self) -> AbstractContextManager[None]:
        """While this lasts, what this thread asks is answered if it is known: as `Session.free`, of every block."""
        return self._ledgers.payments.under(free=True)

    def spending(self, most: Callable[[str], int]) -> AbstractContextManager[None]:
        """While this lasts, what this thread asks spends no more atoms of a block than `most` says of its label."""
        return self._ledgers.payments.under(most=(most, Counter()))

    def asked_at(self, arrived: datetime) -> AbstractContextManager[None]:
        """What this thread asks within it has this time in the ledgers and in what is published."""
        return self._ledgers.payments.under(arrived=arrived)

    def in_steps(self, ask: Ask, most: int) -> Generator[list[Facts], None, Answers]:
        """What `answer` gives, in one step: see `Session.in_steps`."""
        yield from ()
        return self.answer(ask)

    def paying(self) -> AbstractContextManager[Counter[str]]:
        """The atoms that each block is charged for what this thread asks within it, whatever comes of it."""
        return self._ledgers.payments.paying()

    def close(self) -> None:
        self._ledgers.close()

    def __repr__(self) -> str:
        blocks = self._ledgers.listed
        labels = f", {blocks[0].label} to {blocks[-1].label}" if blocks else ""
        return f"Series({len(blocks):,} blocks{labels}; {self.rows:,} rows; {self.each} for each)"


def _dearness(one: DryRun) -> tuple[bool, int]:
    return not one.known, one.cost_at_most.atoms


def _refuse_within(within: float | None) -> None:
    if within is not None:
        raise InvalidQuery("an answer as sharp as wanted is bought of one block: series.block('2026-03').ask(…).")
