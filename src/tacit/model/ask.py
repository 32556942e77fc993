"""What is asked, whichever way: one record that SQL, Python, JSON and the page's form are read into. Public words.

Every kind of question is a frozen class, bound to the domain when it is made: names are resolved, conditions are
queries, and what can be refused without data is refused. A session answers and prices these records and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.model.aggregate import (
    EVERYONE,
    RANGE_SHARE,
    Aggregate,
    Count,
    Covariance,
    Fraction,
    Mean,
    Sum,
    Variance,
    mean,
)
from tacit.model.curve import Cdf, Histogram, Quantile, Range
from tacit.model.derived import Derived
from tacit.model.describe import describe
from tacit.model.domain import Domain
from tacit.model.select import Column, Crosstab, Group, Select
from tacit.model.statistic import Statistic

__all__ = [
    "EVERYONE", "RANGE_SHARE", "Aggregate", "Ask", "Cdf", "Column", "Count", "Covariance", "Crosstab", "Derived",
    "Fraction", "Group", "Histogram", "Mean", "Quantile", "Range", "Select", "Stat", "Sum", "Variance", "mean",
]  # fmt: skip


@dataclass(frozen=True)
class Stat:
    """A statistic: one number that is no sum over rows, with a proved sensitivity."""

    statistic: Statistic

    def words(self, domain: Domain) -> str:
        return describe(self.statistic, domain)


Ask = Aggregate | Stat | Crosstab | Quantile | Cdf | Histogram | Range | Select | Derived
