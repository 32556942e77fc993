"""A question as it comes in JSON: SQL text, or one object of the structured form. Pure; called by the server.

    "SELECT COUNT(*) FROM data WHERE sex = 'F'"
    {"count": {"sex": "F", "age": [20, 39]}}
    {"table": ["sex", "age"], "where": {"region": {"in": ["north", "east"]}}}
    {"cdf": "age"}   {"quantile": "age", "q": 0.5}   {"mean": "age"}   {"sum": "age"}   {"stddev": "age"}
    {"fraction": {"smoker": true}, "given": {"sex": "F"}}   {"range": {"age": [20, 39]}}   {"histogram": "age"}

A condition is a value (equal to it), null (missing), a pair [low, high] (both ends included, for numeric attributes the
upper end excluded) or {"in": [values]} (any of them).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tacit.errors import InvalidQuery
from tacit.model import sql
from tacit.model.ask import (
    RANGE_SHARE,
    Ask,
    Cdf,
    Count,
    Crosstab,
    Fraction,
    Histogram,
    Quantile,
    Range,
    Select,
    Sum,
    Variance,
    mean,
)
from tacit.model.domain import Domain
from tacit.model.expression import count
from tacit.model.query import Query
from tacit.serve.refusal import Refusal
from tacit.serve.schema import KINDS, Json, shaped

MAX_CELLS = 100_000  # of one table


@dataclass(frozen=True, eq=False)
class Question:
    """A question that was read: what it asks, and as what it came.

    `key` names it in the audit log; `form` is what was given.
    """

    kind: str
    key: str
    form: str | Json
    ask: Ask

    @property
    def query(self) -> Query | None:
        """The query of a plain count, which may share a batch with others."""
        return self.ask.query if isinstance(self.ask, Count) else None


def read(given: Any, domain: Domain) -> Question:
    """Read a question and tie it to the domain; everything that can be refused without the data is refused here."""
    if isinstance(given, str):
        kind, ask = "sql", sql.parse(given, domain)
    elif isinstance(given, dict) and (kinds := [kind for kind in KINDS if kind in given]):
        kind = kinds[0]
        shaped(given, KINDS[kind], "bad_question")
        ask = _READ[kind](given, domain)
    else:
        raise Refusal(400, "bad_question", f"a question is SQL text, or an object with one of {', '.join(KINDS)}.")
    _check_size(ask, domain)
    return Question(kind, _key(given, ask), given, ask)


# How each kind is read, after its shape was checked.
_READ: dict[str, Callable[[Json, Domain], Ask]] = {
    "count": lambda given, domain: Count(_rows(given["count"], domain)),
    "table": lambda given, domain: Crosstab(domain, tuple(given["table"]), _where(given, domain)),
    "fraction": lambda given, domain: Fraction(_rows(given["fraction"], domain), _rows(given.get("given", {}), domain)),
    "sum": lambda given, domain: Sum(domain, given["sum"], _where(given, domain)),
    "mean": lambda given, domain: mean(domain, given["mean"], _where(given, domain), _share(given)),
    "variance": lambda given, domain: Variance(domain, given["variance"], _where(given, domain)),
    "stddev": lambda given, domain: Variance(domain, given["stddev"], _where(given, domain), root=True),
    "quantile": lambda given, domain: Quantile(
        domain, given["quantile"], given["q"], _where(given, domain), _share(given)
    ),
    "cdf": lambda given, domain: Cdf(domain, given["cdf"], _share(given)),
    "histogram": lambda given, domain: Histogram(domain, given["histogram"], given.get("width"), _share(given)),
    "range": lambda given, domain: Range.between(domain, _conditions(given["range"]), _share(given)),
}


def _share(given: Json) -> float:
    share: float = given.get("share", RANGE_SHARE)
    return share


def _where(given: Json, domain: Domain) -> Query:
    return _rows(given.get("where", {}), domain)


def _rows(given: Json, domain: Domain) -> Query:
    """The rows that meet all conditions of a field."""
    return count(**_conditions(given)).bind(domain)


def _conditions(given: Json) -> Json:
    """Conditions in the words of `tacit.count`: a pair is a range, a list is any of its values."""
    return {
        name: tuple(value) if isinstance(value, list) else value["in"] if isinstance(value, dict) else value
        for name, value in given.items()
    }


def _check_size(ask: Ask, domain: Domain) -> None:
    cells = 1
    if isinstance(ask, Crosstab):
        cells = ask.table.size(domain)
    elif isinstance(ask, Select):
        cells = len(ask.columns) * math.prod(len(group.parts(domain)) for group in ask.groups)
    if cells > MAX_CELLS:
        raise InvalidQuery(f"the table would have {cells:,} cells; over HTTP the most is {MAX_CELLS:,}.")


def _key(given: str | Json, ask: Ask) -> str:
    """The canonical key of a count; for the others, which have several in the ledger, a hash of what was given."""
    if isinstance(ask, Count):
        return ask.query.key
    return hashlib.sha256(json.dumps(["asked", given], sort_keys=True).encode()).hexdigest()
