"""What the owner opens and the analyst talks to: one table, one domain, one budget, any number of questions."""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery, NotStarted
from tacit.model.ask import Ask, Count, check_bound
from tacit.model.budget import Budget, Loss, percent_of
from tacit.model.description import describe_many
from tacit.model.expression import Expression
from tacit.model.facts import Facts
from tacit.model.noise_law import quantile
from tacit.model.query import Query
from tacit.model.request import Candidate
from tacit.model.statistic import Statistic
from tacit.model.status import DryRun, Expected, Started, rows_in_words
from tacit.model.table import Answers
from tacit.model.workload import Marginal, marginal, unit
from tacit.questions import Askable
from tacit.release.answering import bar_to_expect, combine, parts
from tacit.release.dial import Wanted, wanted
from tacit.release.estimate import Answerer, Estimate, repeated
from tacit.release.evidence import AnswerPart, Need, Setting, one_answer
from tacit.release.parts import Parts
from tacit.release.public import Public
from tacit.standing import Standing

if TYPE_CHECKING:  # what a session may never need is imported where it does
    from tacit.release.mechanisms import Choice
    from tacit.release.offline import Constructed, Distinguisher
    from tacit.release.rules import UpdateRule
    from tacit.release.synthetic import Synthetic
    from tacit.trusted.curator import Curator
    from tacit.trusted.ledger import Ledger

MAX_SYNTHETIC = 10_000_000


class Session(Standing):
    """Answers questions about one table under one budget. Made by `tacit.open`; closes with `close()` or `with`."""

    def __init__(
        self,
        public: Public,
        curator: Curator | None,
        ledger: Ledger | None,
        budget: Budget,
        choice: Choice,
        mechanism: Answerer,
        confidence: float,
        *,
        start: bool = False,
    ) -> None:
        """`start`: the first question that needs the base buys it, and `start()` need not be called."""
        self._public, self._curator, self._ledger, self._mechanism = public, curator, ledger, mechanism
        self._budget, self._choice, self._confidence = budget, choice, confidence
        self._starts_itself, self._is_started = start, False
        mechanism.starts_itself = start
        self._parts = Parts(public, curator, mechanism, confidence)
        free = Loss.nothing(public.total.measure)
        know = self._parts
        self._setting = Setting(
            domain=public.domain,
            rows=public.rows,
            confidence=confidence,
            free=free,
            fresh=mechanism.fresh,
            piecewise=know.ranges.piecewise,
            offer=know.ranges.offer,
            band=know.bought.band,
            certifies=mechanism.certifies,
        )

    # -- the base -----------------------------------------------------------------------------------------------------

    @property
    def base(self) -> Started:
        """What `start` buys: in words, for how much of the budget, and which errors to expect. Spends nothing."""
        ahead = self._mechanism.ahead()
        what, expects = self._choice.base(self._public, ahead, self._confidence)
        bought = self._mechanism.bought()
        return Started(what, ahead, self.total, bought, tuple(expects) or self._expected(), self._certified())

    @property
    def started(self) -> bool:
        """Whether nothing has to be bought any more before questions are asked: it was, or there is nothing to buy."""
        if self._is_started:
            return True
        mechanism = self._mechanism
        nothing_to_buy = not mechanism.ahead().atoms
        # What is bought stays so, but too little of a budget may become enough. A start itself knows what is missing.
        stays = not mechanism.knows and (not mechanism.everything or mechanism.bought())
        self._is_started = nothing_to_buy and stays
        return nothing_to_buy

    def start(self) -> Started:
        """Buy what the answers start from, once: the largest purchase of most sessions. `base` says it before.

        After it most questions are free. Where it was bought before, or there is nothing to buy, nothing happens.
        """
        with self._public.turn(), self._public.honest():
            base = self.base
            paid = self._mechanism.begin()
            expects = self._expected() or base.expects
            bought = self._mechanism.bought()
            return replace(base, cost=paid, bought=bought, expects=expects, certified=self._certified())

    def _expected(self) -> tuple[Expected, ...]:
        base = getattr(self._mechanism, "base", None)
        return () if base is None else base.expects(self._choice.settings.questions)

    def _certified(self) -> tuple[Expected, ...]:
        base = getattr(self._mechanism, "base", None)
        if base is None:
            return ()
        of_few, of_all = base.bars_of(0), base.bars_of(self.rows)
        both = zip(of_few, of_all, strict=True)
        return tuple(Expected(bar.width, f"{bar.about} (± {few.width:,.0f} where few rows count)") for few, bar in both)

    def _check_started(self, needs: Sequence[tuple[Need, ...]]) -> None:
        """Refuse what would buy the base, which is for `start` to do, unless the owner said that questions may."""
        if self._starts_itself or self.started:
            return
        if self._parts.wants_base(need for one in needs for need in one):
            raise NotStarted(
                f"The session is not started, and this question needs what it starts from. {self.base} Start it first: "
                "session.start(), `tacit start`, or the owner on the page. Or let questions start it: start = true."
            )

    # -- two verbs ----------------------------------------------------------------------------------------------------

    def answer(self, ask: Ask, *, within: float | None = None) -> Answers:
        if within is None:
            return self.answer_many([ask])[0]
        one = self._wanted(ask, within)
        found = {**self._parts.fetch(one.public), one.query: self._parts.within(one)}
        plain = replace(self._setting, offer=lambda _: "")  # it is as sharp as was asked for
        return self._priced(combine(ask, found, plain))

    def answer_many(self, asks: Sequence[Ask]) -> list[Answers]:
        counts = [ask.query for ask in asks if isinstance(ask, Count) and not ask.notes]
        plain = len(counts) == len(asks)
        settled = self._parts.settled(counts) if plain else []
        known = [estimate for estimate in settled if estimate is not None]
        if plain and len(known) == len(asks):  # a certified base answers all of them: no ledger is looked at
            with no_collection():
                each = zip(describe_many(counts, self.domain), counts, known, strict=True)
                return [one_answer(*one, self.rows) for one in each]
        needs = [self._needs(ask) for ask in asks]
        self._check_started(needs)
        with no_collection(), nullcontext(False) if plain else self._parts.turn_for_ranges(needs) as again:
            if again:
                needs = [self._needs(ask) for ask in asks]
            found = self._parts.fetch((need for one in needs for need in one), unsettled=plain and not known)
        # Conditions that several counts share are put into words once.
        said: Sequence[str | None] = describe_many(counts, self._public.domain) if plain else [None] * len(asks)
        every = zip(asks, said, needs, strict=True)
        if len(asks) == 1:  # what it needs twice is one part
            return [self._priced(combine(ask, found, self._setting, words)) for ask, words, _ in every]
        answers, given = list[Answers](), set[Need]()
        for ask, words, mine in every:
            own = {need: _again(found[need]) if need in given else found[need] for need in mine}
            answers.append(self._priced(combine(ask, own, self._setting, words)))
            given.update(mine)
        return answers

    def _needs(self, ask: Ask) -> tuple[Need, ...]:
        check_bound(ask, self._public.domain)
        return parts(ask, self._setting)

    def _wanted(self, ask: Ask, within: float) -> Wanted:
        check_bound(ask, self._public.domain)
        return wanted(ask, within, self.domain, self.rows)

    def settles(self, ask: Ask) -> bool:
        """Whether a certified base answers a count, so that nothing can change its answer any more."""
        return isinstance(ask, Count) and self._mechanism.settled([ask.query])[0] is not None

    @property
    def fresh(self) -> bool:
        """Whether every new question has noise of its own, and a price."""
        return self._mechanism.fresh

    def certifies(self, query: Query) -> bool:
        """Whether what the session starts from answers a question, by what is public."""
        return self._mechanism.certifies(query)

    @property
    def learns(self) -> bool:
        """Whether tables are put together from counts, of which each is a question of its own."""
        return self._mechanism.learns

    def found(self, needs: Sequence[Need]) -> dict[Need, AnswerPart]:
        """The parts that answers are put together from, each with what a sum over several tables needs of it."""
        self._check_started([tuple(needs)])
        with no_collection():
            found = self._parts.fetch(needs)
        self._parts.bought.catch_up()
        return {need: self._centred(need, part) for need, part in found.items()}

    def known(self, needs: Sequence[Need]) -> dict[Need, AnswerPart] | None:
        """What `found` gives, where all of it is known; None where something would have to be bought, or checked."""
        queries = [need for need in needs if isinstance(need, Query)]
        if len(queries) < len(needs):
            return self.found(needs) if self._parts.price(needs).known else None
        found = self._parts.settled(queries)
        if None in found:
            self._parts.bought.catch_up()
            found = self._parts.known(queries)
        told = [one for one in found if one is not None]
        if len(told) < len(queries):
            return None
        return {query: self._centred(query, one) for query, one in zip(queries, told, strict=True)}

    def _centred(self, need: Need, part: AnswerPart) -> AnswerPart:
        if isinstance(need, Query) and isinstance(part, Estimate):
            return replace(part, centre=self._parts.bought.centre(need, part))
        return part

    def priced(self, needs: Sequence[Need]) -> DryRun:
        """What `found` would cost at most."""
        return self._parts.price(needs)

    def in_steps(self, ask: Ask, most: int) -> Generator[list[Facts], None, Answers]:
        """What `answer` gives, worked out in steps of at most `most` counts, each of which yields the facts of its own.

        Others may ask between two steps. Only a table whose cells are questions of their own takes several: each cell
        has the answer that its question has, so it does not matter when they are asked.
        """
        cells = self._parts.cells(self._needs(ask))
        if len(cells) <= most:
            return self.answer(ask)
        facts = list[Facts]()
        for start in range(0, len(cells), most):
            step = [Count(cell) for cell in cells[start : start + most]]
            own = [answer.facts for answer in self.answer_many(step)]
            facts += own
            yield own
        whole = self.answer(ask)
        paid = Facts.of([*facts, whole.facts], self.confidence)  # it may need more than the cells
        return self._priced(replace(whole, facts=replace(whole.facts, source=paid.source, cost=paid.cost)))

    def buys_start(self, ask: Ask) -> bool:
        """Whether this question would first buy what the answers start from, as the owner lets questions do."""
        return self._starts_itself and not self.started and self._parts.wants_base(self._needs(ask))

    def _priced(self, answer: Answers) -> Answers:
        """An answer that knows which part of the budget it cost, if it cost something."""
        return replace(answer, facts=replace(answer.facts, total=self.total)) if answer.facts.cost.atoms else answer

    def price(self, ask: Ask, *, within: float | None = None) -> DryRun:
        if within is not None:
            found = self._parts.price_within(self._wanted(ask, within))
            return replace(found, total=self.total)
        needs = self._needs(ask)
        found = replace(self._parts.price(needs), total=self.total)
        try:
            self._check_started([needs])
        except NotStarted:
            return replace(found, why="the session is not started, and would have to be first")
        return found

    def expects(self, ask: Ask) -> Expected | None:
        """The half width of the bar of what is bought for a question, and what it is of. Spends nothing.

        None where nothing is bought, or it is no count: what the session starts from says what to expect then.
        """
        from tacit.release.recall import expected_noise

        for need in self._needs(ask):
            cost = self._parts.price([need]).cost_at_most
            if cost.atoms and isinstance(need, Query | Statistic | Marginal):
                noise = expected_noise(self._public, need, cost)
                return bar_to_expect(ask, quantile(noise, self._confidence) / unit(need), self.rows)
        return None

    # -- whole releases -----------------------------------------------------------------------------------------------

    def synthetic(self, rows: int, *, seed: int = 0) -> Synthetic:
        """Made-up rows that look like what has been published so far. Costs nothing; the same seed, the same rows."""
        from tacit.release.synthetic import Synthetic, counted, draw

        if isinstance(rows, bool) or not isinstance(rows, int) or not 1 <= rows <= MAX_SYNTHETIC:
            raise InvalidQuery(f"rows is a whole number from 1 to {MAX_SYNTHETIC:,}, not {rows!r}.")
        if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed < 2**63:
            raise InvalidQuery(f"seed is a whole number from 0, not {seed!r}.")
        with self._public.turn():
            codes = draw(self._public, self._mechanism, rows, np.random.Generator(np.random.PCG64(seed)))
            released = [counted(one, self.domain, self.rows) for one in self._public.released()]
        return Synthetic.of(self.domain, codes, self.rows, released)

    def votes(self, question: Askable) -> NDArray[np.float64]:
        """What each public database of "median" answers to a count or a statistic, in rows, in ascending order.

        Costs nothing. The databases agree with everything published so far, so the middle 95 % of their answers say how
        much that leaves open. It is no error bar: no proof says how often the truth lies there, as one does of `error`.
        """
        ask = self._plain(question)
        asked = ask.query if isinstance(ask, Count) else ask.statistic
        from tacit.release.mechanisms import MECHANISMS
        from tacit.release.online import Online

        if not MECHANISMS[self._choice.mechanism].votes:
            voting = " or ".join(f'mechanism="{name}"' for name, row in MECHANISMS.items() if row.votes)
            raise InvalidQuery(f"there are votes with {voting} only.")
        assert isinstance(self._mechanism, Online)
        with self._public.turn():
            self._mechanism.knowledge.check([asked])
            found: NDArray[np.float64] = self._mechanism.known().voted(asked)
            return found

    def arrays(self) -> list[NDArray[Any]]:
        """What is known beyond the released answers, to the last bit: the hypothesis, or the databases that vote."""
        with self._public.turn():
            return list(self._mechanism.arrays())

    def release(
        self,
        workload: Sequence[Askable | Sequence[str]],
        *,
        alpha: float | None = None,
        share: float | None = None,
        rounds: int | None = None,
        distinguisher: Distinguisher = "exponential",
        rule: str | UpdateRule[Any] = "multiplicative_weights",
    ) -> Constructed[Any]:
        """Learn a hypothesis that answers a whole workload, announced in advance: the offline construction.

        workload: questions, statistics too, or tables as lists of attribute names: `[["age", "sex"], ["age", "pay"]]`.
            A question whose answer follows from the number of rows is left out, and the note says so.
        alpha: stop when the worst candidate found is within 3/4 of this fraction of the rows.
        share: the share of the whole budget that this may spend.
        rounds: how many candidates may be measured, at most.
            Name alpha, share or both; what is left out is what the theorem has for the others: see `offline.plan`.
        rule: how the hypothesis learns from an answer: a name of `release/rules`, or a rule itself. Whole tables are
            for rules whose hypothesis answers them, such as one that lists all cells; statistics too, such as "median":
            the databases of a net that are not ruled out, all those of n records where they can be listed.

        Where it stops by itself, every question of the workload has an answer from then on, with a bar that holds for
        all of them at once, and `ask` gives it for nothing. Asked again with the same words, the same hypothesis is
        rebuilt from the ledger for nothing.
        """
        from tacit.release.offline import release_workload

        if isinstance(workload, str | Expression | Query) or not isinstance(workload, Sequence) or not workload:
            raise InvalidQuery("a workload is a list of questions, or of tables given as lists of attribute names.")
        return release_workload(
            self._public,
            self._curator,
            [self._candidate(item) for item in workload],
            self._parts.known,
            self.confidence,
            effort=(alpha, share, rounds),
            distinguisher=distinguisher,
            rule=rule,
        )

    def _candidate(self, item: Askable | Sequence[str]) -> Candidate:
        if isinstance(item, list | tuple):
            return marginal(self.domain, *item)
        ask = self._plain(item)  # type: ignore[arg-type]
        return ask.query if isinstance(ask, Count) else ask.statistic

    def publish(self, path: str | Path, *, overwrite: bool = False) -> str:
        """`tacit.publish`: all that was released so far, as one open file. Returns the file's SHA-256."""
        import tacit

        digest: str = tacit.publish(self, path, overwrite=overwrite)
        return digest

    def free(self) -> AbstractContextManager[None]:
        """While this lasts, what this thread asks is answered if it is known, and else refused with `WouldSpend`.

        Whatever a dry run says: the ledger takes nothing from this thread, so nothing can be spent.
        """
        return nullcontext() if self._ledger is None else self._ledger.log.conditions.read_only()

    def spending(self, most: Loss) -> AbstractContextManager[None]:
        """While this lasts, what this thread asks spends no more than this, and else is refused with `WouldSpend`."""
        return nullcontext() if self._ledger is None else self._ledger.log.conditions.spending(max(0, most.atoms))

    def asked_at(self, arrived: datetime) -> AbstractContextManager[None]:
        """What this thread asks within it has this time in the ledger and in what is published: see `Log.asked_at`."""
        return nullcontext() if self._ledger is None else self._ledger.log.conditions.asked_at(arrived)

    def warm_up(self) -> None:
        """Load now what the first question would load, which takes seconds: before it has reserved anything, not after.

        Nothing is asked of the data, and nothing is spent.
        """
        self.dry_run("SELECT COUNT(*) FROM data")
        if self._curator is not None:
            self._curator.load_samplers()

    def rest(self) -> None:
        """Let go of the ledger's files until something is asked that needs them."""
        if self._ledger is not None:
            self._ledger.log.rest()

    def close(self) -> None:
        if self._ledger is not None:
            self._ledger.close()

    def __repr__(self) -> str:
        sizes = f"{rows_in_words(self.rows, self.rows_per_person)}, {self.domain.size:,} cells"
        return f"Session({sizes}, {self.choice.mechanism}; {percent_of(self.left, self.total)} left of {self.budget})"


def _again(part: AnswerPart) -> AnswerPart:
    """The same part for the second question of a batch that needs it."""
    return part if part.facts.source == "public" else replace(part, facts=repeated(part.facts))


@contextmanager
def no_collection() -> Iterator[None]:
    """A batch makes many small objects and no cycles: looking for some would be a third of its time."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
