"""A question as it comes in JSON: SQL text, or one object of the structured form. Pure; called by the server.

    "SELECT COUNT(*) FROM data WHERE sex = 'F'"
    {"count": {"sex": "F", "age": [20, 39]}}
    {"table": ["sex", "age"], "where": {"region": {"in": ["north", "east"]}}}
    {"cdf": "age"}   {"quantile": "age", "q": 0.5}   {"mean": "age"}   {"sum": "age"}
    {"fraction": {"smoker": true}, "given": {"sex": "F"}}   {"range": {"age": [20, 39]}}   {"histogram": "age"}

A condition is a value (equal to it), null (missing), a pair [low, high] (both ends included, for numeric attributes the
upper end excluded) or {"in": [values]} (any of them).
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol, cast

from tacit.errors import InvalidQuery
from tacit.model import sql
from tacit.model.answer import Shown
from tacit.model.domain import Domain
from tacit.model.expression import count
from tacit.model.query import Query
from tacit.serve.refusal import Refusal
from tacit.serve.strict import Json, fields
from tacit.session import DryRun, Method, Session

MAX_CELLS = 100_000  # of one table
MAX_NAMES = 16  # attributes of one table
MAX_LISTED = 10_000  # values of one {"in": …}

# Each kind of the structured form: the fields it may have beside its own.
KINDS: dict[str, tuple[str, ...]] = {
    "count": (),
    "table": ("where",),
    "cdf": ("share",),
    "quantile": ("q", "where", "share"),
    "mean": ("where", "share"),
    "sum": ("where",),
    "fraction": ("given",),
    "range": ("share",),
    "histogram": ("width", "share"),
}
_NUMBERS: dict[str, tuple[str, Callable[[float], bool]]] = {
    "q": ("a share above 0 and below 1", lambda q: 0 < q < 1),
    "share": ("a share of the budget, above 0 and at most 1", lambda share: 0 < share <= 1),
    "width": ("a number above 0", lambda width: width > 0),
}


class Given(Shown, Protocol):
    """Any kind of answer."""

    def to_dict(self) -> Json: ...


@dataclass(frozen=True, eq=False)
class Question:
    """A question that was read. `query` is there for a plain count, which may share a batch with others.

    `key` names it in the audit log; `form` is what was given. `foresee` prices the very question that `ask` asks.
    """

    kind: str
    key: str
    form: str | Json
    query: Query | None
    ask: Callable[[Session], Given]
    foresee: Callable[[Session], DryRun]


Ways = tuple[Callable[[Session], Given], Callable[[Session], DryRun]]


def read(given: Any, domain: Domain) -> Question:
    """Read a question and tie it to the domain; everything that can be refused without the data is refused here."""
    if isinstance(given, str):
        select = sql.parse(given, domain)
        plain = select.is_count and not select.notes  # a note, like that of ROUND, comes with an answer by itself
        query = select.aggregates[0].where.bind(domain) if plain else None
        _check_size((len(group.parts(domain)) for group in select.groups), len(select.aggregates))
        asked = given if query is None else query
        ways = (lambda session: session.ask(given)), (lambda session: session.dry_run(asked))
        return Question("sql", _key(given, query), given, query, *ways)
    if not isinstance(given, dict) or not (kinds := [kind for kind in KINDS if kind in given]):
        raise Refusal(400, "bad_question", f"a question is SQL text, or an object with one of {', '.join(KINDS)}.")
    kind = kinds[0]
    fields(given, f"a question about a {kind}", (kind,), KINDS[kind])
    query = _rows(given["count"], "count", domain) if kind == "count" else None
    return Question(kind, _key(given, query), given, query, *_ways(kind, given, domain, query))


def _ways(kind: str, given: Json, domain: Domain, query: Query | None) -> Ways:
    """How the session is asked, and how it is asked what that costs: both from the same bound words.

    Everything is checked now, so that nothing wrong waits in the queue.
    """
    numbers = {field: _number(given, field) for field in _NUMBERS if field in given}
    chosen: dict[str, Any] = {"share": numbers["share"]} if "share" in numbers else {}
    if "where" in given:
        chosen["where"] = _rows(given["where"], "where", domain)
    match kind:
        case "count":
            assert query is not None
            return (lambda session: session.ask_many([query])[0]), (lambda session: session.dry_run(query))
        case "table":
            names = [domain.resolve(name) for name in _names(given["table"])]
            _check_size(domain[name].size for name in names)
            return (
                lambda session: session.table(*names, **chosen),
                lambda session: session.foresee("table", *names, **chosen),
            )
        case "fraction":
            part, whole = _rows(given["fraction"], "fraction", domain), _rows(given.get("given", {}), "given", domain)
            return (
                lambda session: session.fraction(part, given=whole),
                lambda session: session.foresee("fraction", where=part, given=whole),
            )
        case "range":
            ends = _conditions(given["range"], "range")
            if not 1 <= len(ends) <= 2 or not all(isinstance(pair, tuple) for pair in ends.values()):
                raise Refusal(
                    400, "bad_question", 'a range has two ends for each of one or two attributes: {"age": [20, 39]}.'
                )
            count(**ends).bind(domain)
            return (
                lambda session: session.rectangle(ends, **chosen),
                lambda session: session.foresee_rectangle(ends, **chosen),
            )
    name, method = _attribute(given, kind, domain), cast(Method, kind)
    more: dict[str, Any] = {}
    if kind == "histogram":
        more["width"] = numbers.get("width")
    if kind == "quantile":
        if "q" not in given:
            raise Refusal(400, "bad_question", "a question about a quantile needs q, like 0.5 for the median.")
        more["quantile"] = numbers["q"]
    return (
        lambda session: getattr(session, method)(name, **more, **chosen),
        lambda session: session.foresee(method, name, **chosen),
    )


def _check_size(sizes: Iterable[int], columns: int = 1) -> None:
    cells = math.prod(sizes) * columns
    if cells > MAX_CELLS:
        raise InvalidQuery(f"the table would have {cells:,} cells; over HTTP the most is {MAX_CELLS:,}.")


def _rows(given: Any, what: str, domain: Domain) -> Query:
    """The rows that meet all conditions of a field."""
    return count(**_conditions(given, what)).bind(domain)


def _conditions(given: Any, what: str) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise Refusal(400, "bad_question", f'{what} is an object of conditions, like {{"sex": "F", "age": [20, 39]}}.')
    return {name: _value(name, value) for name, value in given.items()}


def _value(name: str, given: Any) -> Any:
    """A condition in the words of `tacit.count`: a pair is a range, a list is any of its values."""
    if isinstance(given, list):
        if len(given) != 2 or any(isinstance(end, list | dict) or end is None for end in given):
            raise Refusal(
                400, "bad_question", f'{name[:60]}: a range is [low, high]; several values are {{"in": [a, b, c]}}.'
            )
        return tuple(given)
    if isinstance(given, dict):
        listed = fields(given, f"the condition on {name[:60]}", ("in",))["in"]
        if not isinstance(listed, list) or not 1 <= len(listed) <= MAX_LISTED:
            raise Refusal(400, "bad_question", f"{name[:60]}: in lists 1 to {MAX_LISTED:,} values.")
        if any(isinstance(value, list | dict) for value in listed):
            raise Refusal(400, "bad_question", f"{name[:60]}: in lists plain values.")
        return listed
    return given


def _attribute(given: Json, field: str, domain: Domain) -> str:
    if not isinstance(given[field], str):
        raise Refusal(400, "bad_question", f"{field} names an attribute.")
    return domain.resolve(given[field])


def _names(given: Any) -> list[str]:
    if not isinstance(given, list) or not 1 <= len(given) <= MAX_NAMES or not all(isinstance(n, str) for n in given):
        raise Refusal(400, "bad_question", f"table lists the names of 1 to {MAX_NAMES} attributes.")
    return given


def _number(given: Json, field: str) -> float:
    number, (what, allowed) = given[field], _NUMBERS[field]
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise Refusal(400, "bad_question", f"{field} is a number.")
    if not allowed(number):
        raise InvalidQuery(f"{field} is {what}, not {number!r}.")
    return number


def _key(given: str | Json, query: Query | None) -> str:
    """The canonical key of a count; for the others, which have several in the ledger, a hash of what was given."""
    if query is not None:
        return query.key
    return hashlib.sha256(json.dumps(["asked", given], sort_keys=True).encode()).hexdigest()
