"""What is asked, whichever way: one record that SQL, Python, JSON and the page's form are read into. Public words.

Every kind of question is a frozen class, bound to the domain when it is made: names are resolved, conditions are
queries, and what can be refused without data is refused. A session answers and prices these records and nothing else,
and refuses those that were made for another domain.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.errors import InvalidQuery
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
from tacit.model.derivation import Derived
from tacit.model.description import describe
from tacit.model.domain import Domain
from tacit.model.select import Column, Crosstab, GroupBy, Select, check_made_for
from tacit.model.statistic import Statistic
from tacit.model.workload import check

__all__ = [
    "EVERYONE", "RANGE_SHARE", "Aggregate", "Ask", "Cdf", "Column", "Count", "Covariance", "Crosstab", "Derived",
    "Fraction", "GroupBy", "Histogram", "Mean", "Quantile", "Range", "Select", "Stat", "Sum", "Variance",
    "check_bound", "check_within", "mean",
]  # fmt: skip
MOST_WITHIN = 2.0**60


@dataclass(frozen=True)
class Stat:
    """A statistic: one number that is no sum over rows, with a proved sensitivity."""

    statistic: Statistic

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, Statistic):
            raise InvalidQuery(
                f"a statistic is made with tacit.stump and the like, not {type(self.statistic).__name__}."
            )

    def words(self, domain: Domain) -> str:
        return describe(self.statistic, domain)


Ask = Aggregate | Stat | Crosstab | Quantile | Cdf | Histogram | Range | Select | Derived


def check_bound(ask: Ask, domain: Domain) -> None:
    """Refuse what is no question, or one that was made for another domain."""
    match ask:
        case Stat():
            check(ask.statistic, domain)
        case Derived():
            for select in ask.selects:
                check_made_for(select, domain)
        case _:
            check_made_for(ask, domain)


def check_within(within: float) -> None:
    """Refuse what is not the half width of a bar."""
    if isinstance(within, bool) or not isinstance(within, int | float) or not 0 < within <= MOST_WITHIN:
        raise InvalidQuery(f"within is a half width above 0, in the unit of the answer, not {within!r}.")
