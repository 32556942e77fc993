"""What several things that are needed cost for certain. For `parts`, before the first of them is paid.

Counts are one purchase, which is refused as a whole; a table and a release of ranges are others, and each may tell what
would come after it. So only what nothing before it can tell is certain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal, Question
from tacit.release.estimate import Answerer
from tacit.release.evidence import Need, RangesOf
from tacit.release.hypothesis.noisy_table import NoisyTable, unmeasured
from tacit.release.public import Public
from tacit.release.range_parts import RangeParts
from tacit.release.recall import expected_price

Cells = Callable[[Marginal], Sequence[Query] | None]  # the cells of a table that nothing tells yet; None: too many


class Sales:
    """The prices of what is bought whatever the data are, for one session."""

    def __init__(self, public: Public, mechanism: Answerer, ranges: RangeParts) -> None:
        self._public, self._mechanism, self._ranges = public, mechanism, ranges

    def may_exceed(self, needs: Sequence[Need]) -> bool:
        """Whether these are several purchases that might cost more than is left: what is known is not looked up."""
        sold = self._sold(needs)
        return len(sold) > 1 and sum(loss.atoms for _, loss in sold) > self._public.left.atoms

    def least(self, new: Sequence[Need], cells: Cells) -> Loss:
        """What is paid for new needs at least: for those that have a price, and that none of the others can tell."""
        asked = _in_turn([need for need in new if self._sold([need])])
        bought = self._sold(_certain(asked, cells, self._public.domain))
        return Loss(self._public.total.measure, sum(expected_price(self._public, *one).atoms for one in bought))

    def _sold(self, needs: Iterable[Need]) -> list[tuple[Question, Loss]]:
        """What is measured for needs, each for at most how much: not where the mechanism first sees whether it must."""
        mechanism, found = self._mechanism, list[tuple[Question, Loss] | None]()
        for need in needs:
            if isinstance(need, RangesOf):
                found.append(self._ranges.sold(need))
            elif isinstance(need, Marginal):
                found.append((need, mechanism.most(need)) if mechanism.fresh else None)
            elif not need.is_constant:
                alone = mechanism.by_itself(need) if isinstance(need, Statistic) else None
                loss = mechanism.most(need.core) if mechanism.fresh else alone
                found.append(None if loss is None else (need.core, loss))
        return [one for one in found if one is not None]


def _in_turn(needs: Sequence[Need]) -> list[Need]:
    """The needs in the order in which they are bought: counts first, unless ranges are among them."""
    whole = [need for need in needs if isinstance(need, Marginal | RangesOf)]
    single = [need.core for need in needs if isinstance(need, Query | Statistic)]
    ranged = any(isinstance(need, RangesOf) for need in whole)
    return list(dict.fromkeys([*whole, *single] if ranged else [*single, *whole]))


def _certain(new: Sequence[Need], cells: Cells, domain: Domain) -> list[Need]:
    """Those of these, which are new and in turn, that will be bought whatever those before them tell."""
    found, tables, singles = list[Need](), list[NoisyTable | RangesOf](), set[Need]()
    for need in new:
        if isinstance(need, Marginal):
            inside = cells(need)
            if inside is None:
                alone = not any(_about(need, one) for one in tables)
            else:
                alone = any(cell.core not in singles and not _told(cell, tables) for cell in inside)
            # As it will be, but for its counts: what it tells does not depend on them.
            tables.append(unmeasured(need, np.zeros(need.size(domain), dtype=np.int64), domain, 0))
        elif isinstance(need, RangesOf):
            alone = not any(_about(need, one) for one in tables)
            tables.append(need)
        else:
            alone = isinstance(need, Statistic) or not _told(need, tables)
            singles.add(need)
        if alone:
            found.append(need)
    return found


def _told(query: Query, tables: Iterable[NoisyTable | RangesOf]) -> bool:
    """Whether one of these would tell a count, or might."""
    around = (one for one in tables if set(query.scope) <= _scope(one))
    return any(isinstance(one, RangesOf) or one.covers(query) for one in around)


def _about(need: Marginal | RangesOf, table: NoisyTable | RangesOf) -> bool:
    """Whether what a table or a release is about holds all that another one is about, so that it might tell it.

    All ranges are not told by a table of some rows.
    """
    if isinstance(need, RangesOf) and isinstance(table, NoisyTable) and not table.where.is_everyone:
        return False
    asked = {*need.names, *need.where.scope} if isinstance(need, Marginal) else set(need.names)
    return asked <= _scope(table)


def _scope(table: NoisyTable | RangesOf) -> set[str]:
    return set(table.names) if isinstance(table, RangesOf) else {*table.names, *table.where.scope}
