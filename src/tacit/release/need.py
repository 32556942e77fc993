"""What an answer can need, and what is found for it: plain records.

`answering` says which needs a question has, and `parts` fetches or prices them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tacit.model.aggregate import RANGE_SHARE
from tacit.model.budget import Loss
from tacit.model.facts import Facts
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal
from tacit.release.estimate import Estimate, TableEstimate
from tacit.release.purchases import Ranged

Interval = tuple[int, int]


@dataclass(frozen=True)
class RangesOf:
    """All ranges of one ordered attribute, or of two: from what is bought already or, with a share, from a release.

    The release is bought for that share of the budget; without a share, for the usual one, where nothing tells the
    ranges yet. `intervals` are those of them that are counts of their own: first bin, and the bin after the last.
    """

    names: tuple[str, ...]
    share: float | None
    intervals: tuple[Interval, ...] = ()
    strategy: str | None = None  # a name of `ranges.choice.LADDER`; the best one without it

    def loss(self, total: Loss) -> Loss:
        return Loss(total.measure, int(total.atoms * (RANGE_SHARE if self.share is None else self.share)))


@dataclass(frozen=True, eq=False)
class Released:
    """What one release says about all ranges, the facts about it, and why it was measured this way.

    `told` has the intervals that something else had told before: these answers stay.
    """

    ranges: Ranged
    facts: Facts
    why: str = ""
    told: Mapping[Interval, Estimate] = field(default_factory=dict)


Need = Query | Statistic | Marginal | RangesOf
Part = Estimate | TableEstimate | Released
