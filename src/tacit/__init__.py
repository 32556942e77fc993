"""Tacit: unlimited, adaptively chosen questions about a sensitive table under one differential privacy budget.

>>> import tacit
>>> domain = tacit.Domain({"sex": tacit.category(["F", "M"]), "age": tacit.integer(0, 99, width=10)})
>>> domain.size
20
"""

from importlib import import_module
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
    NeedsData,
    NotStarted,
    ServerError,
    TacitError,
    WouldSpend,
)

if TYPE_CHECKING:
    from tacit.blocks.opening import open_series as series
    from tacit.blocks.series import Series
    from tacit.client import Client, connect
    from tacit.load.star import Join, Star
    from tacit.model.answer import Answer
    from tacit.model.attribute import Attribute, boolean, category, date, hour, integer, month, numeric, weekday
    from tacit.model.budget import Budget, Loss
    from tacit.model.domain import Domain
    from tacit.model.expression import count, largest_mean, matching, quantile_distance, stump, weigh
    from tacit.model.facts import About, Bar, Facts, Receipt
    from tacit.model.query import Query
    from tacit.model.statistic import Statistic
    from tacit.model.statistic_check import statistic
    from tacit.model.table import Listing, Table
    from tacit.owner.copies import encode, forget
    from tacit.owner.discovery import discover
    from tacit.owner.opening import open_session as open
    from tacit.owner.terms import extend, reopen
    from tacit.public import publish, read, verify
    from tacit.release.plan import plan
    from tacit.release.ranges.bin_width import bin_width_chart, bin_widths
    from tacit.session import Session
    from tacit.show.frames import frame
    from tacit.show.report import report

__version__ = "0.1.0"
__all__ = [
    "About", "Answer", "AnswerWithheld", "Attribute", "Bar", "Budget", "BudgetExhausted", "Client", "ConfigError",
    "DataError", "Domain", "Facts", "InvalidBudget", "InvalidDomain", "InvalidQuery", "Join", "LedgerError", "Listing",
    "Loss", "NeedsData", "NotStarted", "Query", "Receipt", "Series", "ServerError", "Session", "Star", "Statistic",
    "Table", "TacitError", "WouldSpend", "bin_width_chart", "bin_widths", "boolean", "category", "connect", "count",
    "date", "discover", "encode", "extend", "forget", "frame", "hour", "integer", "largest_mean", "matching", "month",
    "numeric", "open", "plan", "publish", "quantile_distance", "read", "reopen", "report", "series", "statistic",
    "stump", "verify", "weekday", "weigh",
]  # fmt: skip


# Where each name comes from. Nothing is loaded before it is used: the help of the command line needs no numpy, and to
# declare a domain no engine.
_HOMES = {
    "tacit.client": ("Client", "connect"),
    "tacit.show.frames": ("frame",),
    "tacit.show.report": ("report",),
    "tacit.owner.copies": ("encode", "forget"),
    "tacit.owner.discovery": ("discover",),
    "tacit.load.star": ("Join", "Star"),
    "tacit.model.answer": ("Answer",),
    "tacit.model.attribute": (
        "Attribute",
        "boolean",
        "category",
        "date",
        "hour",
        "integer",
        "month",
        "numeric",
        "weekday",
    ),
    "tacit.model.budget": ("Budget", "Loss"),
    "tacit.model.domain": ("Domain",),
    "tacit.model.expression": ("count", "largest_mean", "matching", "quantile_distance", "stump", "weigh"),
    "tacit.model.facts": ("About", "Bar", "Facts", "Receipt"),
    "tacit.model.query": ("Query",),
    "tacit.model.table": ("Listing", "Table"),
    "tacit.model.statistic": ("Statistic",),
    "tacit.model.statistic_check": ("statistic",),
    "tacit.owner.opening": ("open",),
    "tacit.public": ("publish", "read", "verify"),
    "tacit.release.ranges.bin_width": ("bin_width_chart", "bin_widths"),
    "tacit.release.plan": ("plan",),
    "tacit.blocks.series": ("Series",),
    "tacit.blocks.opening": ("series",),
    "tacit.session": ("Session",),
    "tacit.owner.terms": ("extend", "reopen"),
}  # fmt: skip
_HOME = {name: module for module, names in _HOMES.items() for name in names}
_CALLED_THERE = {"open": "open_session", "series": "open_series"}  # where the name is another one in its module


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), _CALLED_THERE.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """All names, also those that nobody has asked for yet: so that they can be completed."""
    return sorted({*globals(), *_HOME})
