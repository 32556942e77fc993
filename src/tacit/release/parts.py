"""The parts that answers are made of: fetched from what is known or through the mechanism, or only priced.

Called by the session. Whatever comes back is public.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.errors import BudgetExhausted, InvalidQuery
from tacit.model.budget import Loss, exhausted, percent_of
from tacit.model.entry import Measured, Told
from tacit.model.facts import EXACT, Facts, joined, widest
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.status import DryRun
from tacit.model.workload import Marginal
from tacit.release.dial import Dial, Wanted
from tacit.release.estimate import Answerer, Estimate, TableEstimate, for_each, of_stored, repeated
from tacit.release.evidence import AnswerPart, Need, RangesOf
from tacit.release.hypothesis.noisy_table import unmeasured
from tacit.release.public import Public
from tacit.release.purchases import Bought, Purchase
from tacit.release.range_parts import RangeParts
from tacit.release.recall import buyer
from tacit.release.sales import Sales
from tacit.store.chain import Mark

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator

Stored = Sequence[Measured | Told | None]  # what was answered before, of each question
MOST_NOTES = 3  # of a table's cells
MAX_LOOKED_UP = 10_000  # cells of a table that are looked up one by one, where each is a question of its own


class Parts:
    """Fetches and prices parts for one session."""

    def __init__(self, public: Public, curator: Curator | None, mechanism: Answerer, confidence: float) -> None:
        self._public, self._curator, self._mechanism, self._confidence = public, curator, mechanism, confidence
        self.bought = Bought(public, confidence, learned=mechanism.learns)
        self._dial = Dial(public, curator, confidence)
        self.ranges = RangeParts(public, curator, mechanism, confidence, self.bought, self.known)
        self._sales = Sales(public, mechanism, self.ranges)

    def fetch(self, needs: Iterable[Need], *, unsettled: bool = False) -> dict[Need, AnswerPart]:
        """The answer to each need. New questions share one batch, and one turn at the ledger.

        unsettled: as the caller has just found, nothing settles any of them.
        """
        wanted = list(dict.fromkeys(needs))
        found = dict[Need, AnswerPart]()
        asked = list[Query | Statistic]()
        for need in wanted:
            if isinstance(need, Query) and need.is_constant:
                found[need] = self._constant(need)
            elif isinstance(need, Query | Statistic):
                asked.append(need)
        if not unsettled:
            settled, asked = _parted(asked, self.settled(asked))
            found |= settled
        if len(found) == len(wanted):
            return found
        tables = [need for need in wanted if isinstance(need, Marginal | RangesOf)]
        with self._public.turn():
            newest, stored = self._public.look([query.core for query in asked])
            with self._public.honest(newest):
                self.bought.catch_up(newest)
                self._check_enough(wanted)
                if any(isinstance(need, RangesOf) for need in tables):
                    # A mean or a quantile is read off a release unless its counts were told before: so the release
                    # comes first, or the same question would have another answer once they are.
                    found |= {need: self._whole(need) for need in tables}
                    found |= self._asked(asked)
                else:
                    found |= self._asked(asked, newest, stored)
                    found |= {need: self._whole(need) for need in tables}
        return found

    @contextmanager
    def turn_for_ranges(self, needs: Iterable[Iterable[Need]]) -> Iterator[bool]:
        """A turn at the ledger where ranges are to be bought, and whether to look again what is needed.

        Whether an answer is read off a release of ranges depends on what was told before it: until it is bought,
        nobody else may tell more.
        """
        ranges = (need for one in needs for need in one if isinstance(need, RangesOf))
        if all(self.ranges.cost(need) is None for need in ranges):
            yield False
            return
        with self._public.turn():
            yield True

    def _whole(self, need: Marginal | RangesOf) -> AnswerPart:
        return self._table(need) if isinstance(need, Marginal) else self.ranges.fetch(need)

    def settled(self, queries: Sequence[Query | Statistic]) -> list[Estimate | None]:
        """For each query the answer that nothing can change any more, if it has one: from what is public alone.

        What a release of ranges had told before that is answered by the release.
        """
        found = self._mechanism.settled(queries)
        first = next((one.facts.receipt for one in found if one is not None), None)
        if first is None:
            return found
        found = self._dial.beside(queries, found)
        self.bought.read_to(first.entry)
        return [
            self.bought.settled(query, one) if isinstance(query, Query) and one is not None else one
            for query, one in zip(queries, found, strict=True)
        ]

    def _asked(
        self, queries: Sequence[Query | Statistic], newest: Mark | None = None, stored: Stored | None = None
    ) -> dict[Need, AnswerPart]:
        """The answers to questions that nothing settles: those that they have already, and new ones."""
        if not queries:
            return {}
        found, new = _parted(queries, self._told(queries, stored))
        alone = [query for query in new if isinstance(query, Statistic)]
        prices = {one: price for one in alone if (price := self._mechanism.by_itself(one)) is not None}
        for statistic, price in prices.items():
            measured = buyer(self._public, self._curator).measure([statistic], price)[0]
            found[statistic] = of_stored(measured, statistic, self._public.rows, self._confidence, paid_now=True)
        if prices:
            self.bought.catch_up()
            newest, new = None, [query for query in new if query not in prices]
        if new:
            made = self._mechanism.estimate(new, newest)
            if any(one.facts.cost.atoms for one in made):
                self.bought.catch_up()
            else:
                self.bought.pass_over(made)
            found |= {query: self.bought.barred(query, one) for query, one in zip(new, made, strict=True)}
        return found

    def _by_itself(self, need: Need) -> Loss | None:
        """The price of a statistic that the mechanism cannot answer, and that is bought like this."""
        return self._mechanism.by_itself(need) if isinstance(need, Statistic) else None

    def known(self, queries: Sequence[Query | Statistic], before: int | None = None) -> list[Estimate | None]:
        """The answers that questions have already, each from the first that told it; see `Bought.told`."""
        found = self.settled(queries)
        rest = [query for query, one in zip(queries, found, strict=True) if one is None]
        told = iter(self._told(rest, before=before))
        return [next(told) if one is None else one for one in found]

    def _told(
        self, queries: Sequence[Query | Statistic], stored: Stored | None = None, before: int | None = None
    ) -> list[Estimate | None]:
        """The answers that questions which nothing settles have already; `stored` is what the ledger has under them."""
        if not queries:
            return []
        if stored is None:
            stored = self._public.find([query.core for query in queries])
        found = list[Estimate | None]()
        for query, one in zip(queries, stored, strict=True):
            if isinstance(query, Query):
                found.append(self.bought.told(query, one, before))
            elif one is not None:
                found.append(of_stored(one, query, self._public.rows, self._confidence))
            else:
                found.append(None)
        again = [query.core for query, one in zip(queries, found, strict=True) if one is not None]
        later = iter(self._public.sharpest(again) if again else ())
        return [
            one and self._dial.noted(query, self.bought.barred(query, one), next(later))
            for query, one in zip(queries, found, strict=True)
        ]

    def within(self, one: Wanted) -> Estimate:
        """An answer as sharp as wanted: the one that is known if that is, else a fresh one, which is kept beside it."""
        with self._public.turn(), self._public.honest():
            return self._sharp_enough(one) or self._dial.buy(one)

    def price_within(self, one: Wanted) -> DryRun:
        """What that would cost. Looks at the ledger and at public parameters, never at data."""
        if self._sharp_enough(one) is not None:
            return DryRun(True, Loss.nothing(self._public.total.measure), "it is known as well as that")
        return self._dial.dry_run(one)

    def _sharp_enough(self, one: Wanted) -> Estimate | None:
        if self.price([one.query]).known:
            plain = self.fetch([one.query])[one.query]
            if isinstance(plain, Estimate) and self._dial.enough(plain, one):
                return plain
        return None if one.query.is_constant else self._dial.known(one)

    def _constant(self, query: Query) -> Estimate:
        """Every row has the same weight, and the number of rows is public."""
        free = Loss.nothing(self._public.total.measure)
        value = int(query.table((), ()).item()) * self._public.rows
        return Estimate(value, Facts("public", free, self._confidence).within(0, EXACT))

    # -- tables -------------------------------------------------------------------------------------------------------

    def _table(self, need: Marginal) -> TableEstimate:
        """Every cell has the answer that its own question has, or would have."""
        if self._mechanism.learns:
            return self._of_cells(need)
        whole = next(self.bought.tables(need), None)
        told = self._told_cells(need) if self._may_be_told(need, whole) else {}
        if whole is None and (not told or len(told) < len(self._unsaid(need))):
            bought = self._mechanism.table(need)
            assert bought is not None  # it does not learn, so it buys tables
            self.bought.catch_up()
            whole = next(self.bought.tables(need))
            own = replace(whole[1], facts=replace(bought.facts, bars=whole[1].facts.bars))
        elif whole is not None:
            asked_before = whole[0].measured.question == need
            own = replace(whole[1], facts=repeated(whole[1].facts)) if asked_before else whole[1]
        else:
            made = self._put_together(need, list(need.queries(self._public.domain)), told)
            return replace(made, facts=repeated(made.facts))
        own = self._by_their_cores(need, own)
        mine = whole[0].measured.receipt
        receipts = {cell: one.facts.receipt for cell, one in told.items()}
        others = {cell: told[cell] for cell, one in receipts.items() if one is not None and one.entry < mine.entry}
        return self._patched(need, own, others)

    def _by_their_cores(self, need: Marginal, own: TableEstimate) -> TableEstimate:
        """A table whose cells are n less the rest where their own questions are: of two halves, the first.

        A condition may leave a group as the half of all rows that it is: sex = 'F' OR smoker, by sex. The other half is
        a sum of as many cells, so that the bar is the same.
        """
        if need.where.is_everyone or need.size(self._public.domain) > 2:
            return own
        cells = enumerate(need.queries(self._public.domain))
        turned = {at: self._read(cell).value for at, cell in cells if cell.complement and not cell.is_constant}
        values = [turned.get(at, value) for at, value in enumerate(own.values.ravel().tolist())]
        return replace(own, values=np.array(values, dtype=np.int64).reshape(own.values.shape)) if turned else own

    def _of_cells(self, need: Marginal) -> TableEstimate:
        """A table every cell of which is a question of its own."""
        domain = self._public.domain
        if need.size(domain) > MAX_LOOKED_UP:
            raise InvalidQuery(
                f"a table of {need.size(domain):,} cells is asked in parts of at most {MAX_LOOKED_UP:,}."
            )
        cells, asked = list(need.queries(domain)), self._unsaid(need)
        found, rest = _parted(asked, self.settled(asked))
        found |= self._asked(rest)
        told = {cell: one for cell in cells if isinstance(one := found.get(cell), Estimate)}
        return self._put_together(need, cells, told)

    def cells(self, needs: Iterable[Need]) -> list[Query]:
        """The counts that tables among these are put together from, each once; none where a table is bought whole."""
        tables = [need for need in needs if isinstance(need, Marginal)] if self._mechanism.learns else []
        if any(need.size(self._public.domain) > MAX_LOOKED_UP for need in tables):
            return []  # it is refused
        queries = (query for need in tables for query in need.queries(self._public.domain))
        return [query for query in dict.fromkeys(queries) if not query.is_constant]

    def _may_be_told(self, need: Marginal, whole: tuple[Purchase, TableEstimate] | None) -> bool:
        """Whether something else may have told a cell of the table before."""
        scope, entry = frozenset({*need.names, *need.where.scope}), None if whole is None else whole[0].entry
        return need.size(self._public.domain) <= MAX_LOOKED_UP and self.bought.tells_before(scope, entry)

    def _told_cells(self, need: Marginal) -> dict[Query, Estimate]:
        """The cells that have an answer already."""
        cells = self._unsaid(need)
        return {cell: one for cell, one in zip(cells, self.known(cells), strict=True) if one is not None}

    def _unsaid(self, need: Marginal) -> list[Query]:
        """The cells of a table that what is declared does not say."""
        return [cell for cell in dict.fromkeys(need.queries(self._public.domain)) if not cell.is_constant]

    def _patched(self, need: Marginal, own: TableEstimate, others: Mapping[Query, Estimate]) -> TableEstimate:
        """A table with the cells that were told before as they were told."""
        read = self._read
        if not others:
            return replace(own, read=read)
        cells = list(need.queries(self._public.domain))
        values = np.array([others[c].value if c in others else v for c, v in zip(cells, own.values.flat, strict=True)])
        entries = sorted({one.facts.receipt.entry for one in others.values() if one.facts.receipt is not None})
        said = f"{len(others):,} of its counts told before ({', '.join(f'#{entry}' for entry in entries[:3])})"
        bars = widest([own.facts.bars, *(one.facts.bars for one in others.values())])
        facts = replace(own.facts, note=joined((own.facts.note, said)), bars=bars)
        rest = [own.facts.width] * len(cells) if own.own is None else own.own.ravel().tolist()
        widths = [others[c].facts.width if c in others else width for c, width in zip(cells, rest, strict=True)]
        return TableEstimate(values.reshape(own.values.shape), facts, read=read, own=_bars(widths, own.values.shape))

    def _put_together(self, need: Marginal, cells: Sequence[Query], told: Mapping[Query, Estimate]) -> TableEstimate:
        """A table of cells that have an answer each."""
        domain = self._public.domain
        known = [told[cell] if cell in told else self._constant(cell) for cell in cells]
        once = {id(one): one.facts for one in known}.values()  # a cell and its complement may be paid by one of them
        facts = Facts.of([replace(one, note="") for one in once], self._confidence)
        notes = [note for note in dict.fromkeys(one.note for one in once) if note]
        more = f"and {len(notes) - MOST_NOTES:,} more notes" if len(notes) > MOST_NOTES else ""
        bars = for_each([one.facts.bars for one in known])
        facts = replace(facts, note=joined((*notes[:MOST_NOTES], more)), bars=bars)
        shape = domain.shape_of(need.names)
        values = np.array([one.value for one in known], dtype=np.int64).reshape(shape)
        read = None if self._mechanism.learns else self._reader(need, values, told)
        return TableEstimate(values, facts, read=read, own=_bars([one.facts.width for one in known], shape))

    def _reader(
        self, need: Marginal, values: NDArray[np.int64], told: Mapping[Query, Estimate]
    ) -> Callable[[Query], Estimate]:
        """Reads sums of the cells of a table that was never bought, since each cell was told by itself.

        A sum that was told before the last of them stays. Of others the cells are added up, and nothing is promised: it
        stays so whatever is bought later, so that an answer made of it does not change.
        """
        receipts = [one.facts.receipt for one in told.values() if one.facts.receipt is not None]
        latest = max(receipts, key=lambda receipt: receipt.entry)
        free = Loss.nothing(self._public.total.measure)
        table = unmeasured(need, values.ravel(), self._public.domain, self._public.rows)

        def read(query: Query) -> Estimate:
            found = self._constant(query) if query.is_constant else self.known([query])[0]
            if found is not None and (found.facts.receipt is None or found.facts.receipt.entry <= latest.entry):
                return found
            return Estimate(table.value(query), Facts("repeat", free, self._confidence, latest))

        return read

    def _read(self, query: Query) -> Estimate:
        """The answer to what a table tells that was just fetched."""
        found = self._constant(query) if query.is_constant else self.known([query])[0]
        assert found is not None
        return found

    # -- prices -------------------------------------------------------------------------------------------------------

    def _check_enough(self, needs: Sequence[Need]) -> None:
        """Refuse what costs more than is left before a part of it is paid: the ledger refuses each purchase by itself.

        Where nothing is left, the ledger refuses the first of them, and says why.
        """
        if self._curator is None or all(isinstance(need, Query) for need in needs) or not self._sales.may_exceed(needs):
            return
        left, least = self._public.left, self._least(needs, self._costs(needs))
        if left.atoms and not least <= left:
            whole = self._public.whole.atoms
            raise BudgetExhausted(exhausted(least, whole - left.atoms, whole, closed=False))

    def _least(self, needs: Sequence[Need], costs: Sequence[Loss | None]) -> Loss:
        """What is paid for these for certain."""
        return self._sales.least(
            [need for need, cost in zip(needs, costs, strict=True) if cost is not None], self._untold
        )

    def _untold(self, need: Marginal) -> list[Query] | None:
        """The cells of a table that nothing tells yet; None where they are too many to be looked up."""
        if need.size(self._public.domain) > MAX_LOOKED_UP:
            return None
        told = self._told_cells(need)
        return [cell for cell in self._unsaid(need) if cell not in told]

    def price(self, needs: Iterable[Need]) -> DryRun:
        """What fetching these would cost at most. Looks at the ledger and at public parameters, never at data."""
        wanted = list(dict.fromkeys(needs))
        mechanism, left = self._mechanism, self._public.left
        free = Loss.nothing(left.measure)
        self.bought.catch_up()
        costs = self._costs(wanted)
        if all(cost is None for cost in costs):
            declared = all(isinstance(need, Query) and need.is_constant for need in wanted)
            return DryRun(
                True,
                free,
                "it follows from what is declared" if declared else "it is answered already, or follows from what is",
            )
        atoms = sum(cost.atoms for cost in costs if cost is not None)
        known = not atoms  # before it is cut to what is left: where that is nothing, nothing can be bought
        new = sum(cost is not None for cost in costs)
        why = f"{new} new question{'s' * (new > 1)} to buy"
        if 0 < left.atoms < atoms and not (least := self._least(wanted, costs)) <= left:
            rest = percent_of(left, self._public.whole)
            return DryRun(False, least, f"{why}, for more than is left, {rest}: it is refused")
        if len(costs) > 1:  # more than is left is never spent; where that is nothing it is refused, and so not free
            atoms = min(atoms, left.atoms or self._public.whole.atoms)
        alone = [isinstance(need, RangesOf) or self._by_itself(need) is not None for need in wanted]
        learned = any(cost is not None and not own for cost, own in zip(costs, alone, strict=True))
        if learned and (refused := mechanism.refuses()) is not None:
            return refused
        if mechanism.learns and not any(alone):
            if known:
                return DryRun(False, free, "all hard answers are used: it is free, and nothing is guaranteed")
            well = "free if what is public answers it well"
            if mechanism.checking.atoms:
                opened = percent_of(mechanism.checking, self._public.whole)
                well = f"{opened} if what is public answers it well, to open the gate that finds that out"
            return DryRun(False, Loss(free.measure, atoms), f"{well}, else bought")
        if known:
            return DryRun(True, free, "a release that was bought before tells it")
        if not left.atoms:
            why += ", and the budget is used up: it is refused"
        return DryRun(False, Loss(free.measure, atoms), why)

    def wants_base(self, needs: Iterable[Need]) -> bool:
        """Whether one of these is neither known nor public, nor bought by itself, as ranges and some statistics are."""
        self.bought.catch_up()
        flat = self._mechanism.everything
        about = [need for need in dict.fromkeys(needs) if flat or not isinstance(need, RangesOf)]
        about = [need for need in about if self._by_itself(need) is None]
        return any(cost is not None for cost in self._costs(about))

    def _costs(self, needs: Sequence[Need]) -> list[Loss | None]:
        """The most that each could cost; None if it was answered before, or follows from what is public."""
        asked = [need for need in needs if isinstance(need, Query | Statistic) and not need.is_constant]
        known = {need for need, one in zip(asked, self.known(asked), strict=True) if one is not None}
        return [None if need in known else self._cost(need) for need in needs]

    def _cost(self, need: Need) -> Loss | None:
        public, mechanism = self._public, self._mechanism
        if isinstance(need, RangesOf):
            return self.ranges.cost(need)
        if isinstance(need, Query | Statistic):
            alone = self._by_itself(need)
            return alone if alone is not None else None if need.is_constant else mechanism.most(need.core)
        if not mechanism.learns and next(self.bought.tables(need), None) is not None:
            return None
        if self._may_be_told(need, None) or (mechanism.learns and need.size(public.domain) <= MAX_LOOKED_UP):
            return mechanism.most(need) if len(self._told_cells(need)) < len(self._unsaid(need)) else None
        return mechanism.most(need)


def _parted(
    queries: Sequence[Query | Statistic], answers: Sequence[Estimate | None]
) -> tuple[dict[Need, AnswerPart], list[Query | Statistic]]:
    """The answers that there are, and the questions that have none."""
    found: dict[Need, AnswerPart] = {query: one for query, one in zip(queries, answers, strict=True) if one is not None}
    return found, [query for query, one in zip(queries, answers, strict=True) if one is None]


def _bars(widths: Sequence[float | None], shape: tuple[int, ...]) -> NDArray[np.float64] | None:
    """The bar that each cell of a table is shown with; None where all have the same, or one has none."""
    if len(set(widths)) == 1 or None in widths:
        return None
    return np.array(widths, dtype=np.float64).reshape(shape)
