"""Tacit: unlimited, adaptively chosen questions about a sensitive table under one differential privacy budget.

>>> import tacit
>>> domain = tacit.Domain({"sex": tacit.category(["F", "M"]), "age": tacit.integer(0, 99, width=10)})
>>> domain.size
20
"""

from typing import TYPE_CHECKING, Any

from tacit.errors import (
    AnswerWithheld,
    BudgetExhausted,
    ConfigError,
    DataError,
    InvalidBudget,
    InvalidDomain,
    InvalidQuery,
    LedgerError,
    TacitError,
)
from tacit.model.answer import Answer, Receipt, Table
from tacit.model.attribute import Attribute, boolean, category, date, integer, numeric
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.model.expression import count, weigh
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.statistic_check import statistic
from tacit.model.statistic_expression import largest_mean, matching, quantile_distance, stump

if TYPE_CHECKING:
    from tacit.opening import open_session as open
    from tacit.release.intervals.bin_width import bin_width_chart, bin_widths
    from tacit.release.plan import plan
    from tacit.session import Session

__version__ = "0.1.0"
__all__ = [
    "Answer",
    "AnswerWithheld",
    "Attribute",
    "Budget",
    "BudgetExhausted",
    "ConfigError",
    "DataError",
    "Domain",
    "InvalidBudget",
    "InvalidDomain",
    "InvalidQuery",
    "LedgerError",
    "Loss",
    "Query",
    "Receipt",
    "Session",
    "Statistic",
    "Table",
    "TacitError",
    "bin_width_chart",
    "bin_widths",
    "boolean",
    "category",
    "count",
    "date",
    "integer",
    "largest_mean",
    "matching",
    "numeric",
    "open",
    "plan",
    "quantile_distance",
    "statistic",
    "stump",
    "weigh",
]


def __getattr__(name: str) -> Any:
    # The session brings in the engine; declaring a domain or reading the help need not wait for that.
    if name == "open":
        import tacit.opening

        return tacit.opening.open_session
    if name == "Session":
        import tacit.session

        return tacit.session.Session
    if name == "plan":
        import tacit.release.plan

        return tacit.release.plan.plan
    if name in ("bin_width_chart", "bin_widths"):
        import tacit.release.intervals.bin_width

        return getattr(tacit.release.intervals.bin_width, name)
    raise AttributeError(f"module 'tacit' has no attribute {name!r}")
