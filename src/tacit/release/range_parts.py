"""What answers about ranges of one attribute or two are made of: releases of all ranges, fetched or only priced.

Called by `Parts` and the session. Whatever comes back is public.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tacit.errors import InvalidQuery
from tacit.model.aggregate import RANGE_SHARE
from tacit.model.budget import Loss, percent_of
from tacit.model.facts import Facts, joined
from tacit.model.query import Query
from tacit.model.workload import Strategy, leaves, marginal
from tacit.release.estimate import Answerer, Estimate
from tacit.release.evidence import Interval, RangesOf, Released
from tacit.release.public import Public
from tacit.release.purchases import Bought, Purchase, Ranged
from tacit.release.ranges.choice import choose, rung, signal
from tacit.release.ranges.distribution import Distribution
from tacit.release.ranges.rectangles import choose_product
from tacit.release.recall import buyer

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator


class RangeParts:
    """Fetches and prices releases of ranges for one session.

    known: the answers that counts have already, of purchases before an entry alone.
    """

    def __init__(
        self,
        public: Public,
        curator: Curator | None,
        mechanism: Answerer,
        confidence: float,
        bought: Bought,
        known: Callable[[Sequence[Query], int | None], list[Estimate | None]],
    ) -> None:
        self._public, self._curator, self._mechanism, self._confidence = public, curator, mechanism, confidence
        self._bought, self._known = bought, known

    def fetch(self, need: RangesOf) -> Released:
        """The release that tells these ranges, which is bought where there is none."""
        source = self._source(need)
        bought = None
        if source is None:
            bought = self._buy_ranges(need)
            self._bought.catch_up()
            source = self._source(need)
            assert source is not None
        purchase, ranges = source
        free = Loss.nothing(self._public.total.measure)
        facts = Facts("repeat", free, self._confidence, purchase.measured.receipt)
        if bought is not None and bought.atoms:
            facts = replace(facts, source="measured", cost=bought)
        told = self._told_intervals(need, purchase)
        if told:
            said = f"{len(told):,} of its counts told before, which stay"
            facts = replace(facts, note=joined((facts.note, said)))
        return Released(ranges, facts, self._why(need, ranges), told)

    def cost(self, need: RangesOf) -> Loss | None:
        """The most that they could cost; None if a release tells them already."""
        if self._source(need) is not None:
            return None
        flat = self._flat(need)
        return (
            self._mechanism.most(marginal(self._public.domain, *need.names)) if flat else need.loss(self._public.total)
        )

    def sold(self, need: RangesOf) -> tuple[Strategy, Loss] | None:
        """What would be measured for these, for at most how much; None where the release of everything has them."""
        return None if self._flat(need) else (self.strategy(need), need.loss(self._public.total))

    def _source(self, need: RangesOf) -> tuple[Purchase, Ranged] | None:
        """The first purchase that tells all these ranges; with a share, the release that was bought for them."""
        if need.share is None or self._flat(need):
            return self._bought.source(need.names)
        return self._bought.ranges_of(need.names, None if need.strategy is None else self.strategy(need))

    def _flat(self, need: RangesOf) -> bool:
        """Whether the ranges of an attribute are read off the one release that answers everything."""
        return self._mechanism.everything and len(need.names) == 1 and need.strategy is None

    def _buy_ranges(self, need: RangesOf) -> Loss:
        if self._flat(need):
            found = self._mechanism.table(marginal(self._public.domain, *need.names))
            assert found is not None  # it has one release for everything, so it buys tables
            return found.facts.cost
        strategy = self.strategy(need)
        return buyer(self._public, self._curator).measure([strategy], need.loss(self._public.total))[0].cost

    def _told_intervals(self, need: RangesOf, source: Purchase) -> dict[Interval, Estimate]:
        """The counts of neighbouring bins that something before a release has told."""
        if need.share is not None or not need.intervals:
            return {}
        # What learns has been told free answers, and others have in the base that they start from.
        if not self._mechanism.learns and not self._bought.tells_before(frozenset(need.names), source.entry):
            return {}
        name, domain = need.names[0], self._public.domain
        queries = {interval: Query.among(domain, name, range(*interval)) for interval in need.intervals}
        asked = {interval: query for interval, query in queries.items() if not query.is_constant}
        told = dict(zip(asked, self._known(list(asked.values()), source.entry), strict=True))
        mine = source.measured.receipt
        return {at: one for at, one in told.items() if one is not None and one.facts.receipt != mine}

    def _why(self, need: RangesOf, ranges: Ranged) -> str:
        if not isinstance(ranges, Distribution):
            return ""
        if need.strategy is not None:
            return f"asked for: {need.strategy}."
        size, measure = leaves(self._public.domain[ranges.name]), self._public.total.measure
        plain, now = choose(ranges.name, size, measure), choose(ranges.name, size, measure, signal=self._signal)
        return next((one.why for one in (now, plain) if one.strategy == ranges.decoder.strategy), "")

    @property
    def _signal(self) -> float:
        """By the usual share, whatever is paid: so that what would be bought is the same every time."""
        rows, people = self._public.rows, self._public.rows_per_person  # for more rows of a person the noise is larger
        return signal(rows, RangesOf((), None).loss(self._public.total)) / people

    def strategy(self, need: RangesOf) -> Strategy:
        """What would be bought for one attribute or two, from public parameters alone."""
        domain, measure = self._public.domain, self._public.total.measure
        sizes = {name: leaves(domain[name]) for name in need.names}
        if min(sizes.values()) < 2:
            raise InvalidQuery("an attribute with a single bin has no ranges.")
        if need.strategy is not None:
            return rung(need.strategy, *next(iter(sizes.items())), measure)
        if len(sizes) == 1:
            return choose(*next(iter(sizes.items())), measure, signal=self._signal).strategy
        (first, m), (second, n) = sorted(sizes.items())
        return choose_product(first, m, second, n, measure, self._signal)

    def piecewise(self, names: tuple[str, ...], pieces: Sequence[Query]) -> bool:
        """Whether what is asked about ranges is put together from counts, each of which is a question of its own.

        It is where all of them were told before a release told the ranges, so that what was once said stays; and where
        no release tells the ranges and the mechanism knows about everything.
        """
        with self._public.turn():
            self._bought.catch_up()
            asked = [query for query in dict.fromkeys(pieces) if not query.is_constant]
            source = self._bought.source(names)
            entry = None if source is None else source[0].entry

            def told(some: Sequence[Query]) -> bool:
                receipts = [None if one is None else one.facts.receipt for one in self._known(some, entry)]
                return all(at is not None and (entry is None or at.entry < entry) for at in receipts)

            # Mostly the first says no, and none of the others is looked up.
            if told(asked[:1]) and told(asked):
                return True
        one_release = self._mechanism.everything and len(pieces) == 1
        return source is None and (self._mechanism.knows or one_release)

    def offer(self, names: tuple[str, ...]) -> str:
        """What would be sharper about ranges that are answered from something else, and its price; or nothing."""
        loss = RangesOf(names, None).loss(self._public.total)
        if self._curator is None or self._mechanism.everything or not loss <= self._public.left:
            return ""
        if self._bought.ranges_of(names) is not None:
            return ""
        price = percent_of(loss, self._public.whole)
        words = " and ".join(names)
        return f"a release of all ranges of {words} is usually sharper, for {price} of the budget: share={RANGE_SHARE}"
