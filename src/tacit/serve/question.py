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
from tacit.serve.schema import KINDS, Json, shaped
from tacit.session import DryRun, Method, Session

MAX_CELLS = 100_000  # of one table


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
    shaped(given, KINDS[kind], "bad_question")
    query = _rows(given["count"], domain) if kind == "count" else None
    return Question(kind, _key(given, query), given, query, *_ways(kind, given, domain, query))


def _ways(kind: str, given: Json, domain: Domain, query: Query | None) -> Ways:
    """How the session is asked, and how it is asked what that costs: both from the same bound words.

    Everything is checked now, so that nothing wrong waits in the queue.
    """
    chosen: dict[str, Any] = {"share": given["share"]} if "share" in given else {}
    if "where" in given:
        chosen["where"] = _rows(given["where"], domain)
    match kind:
        case "count":
            assert query is not None
            return (lambda session: session.ask_many([query])[0]), (lambda session: session.dry_run(query))
        case "table":
            names = [domain.resolve(name) for name in given["table"]]
            _check_size(domain[name].size for name in names)
            return (
                lambda session: session.table(*names, **chosen),
                lambda session: session.foresee("table", *names, **chosen),
            )
        case "fraction":
            part, whole = _rows(given["fraction"], domain), _rows(given.get("given", {}), domain)
            return (
                lambda session: session.fraction(part, given=whole),
                lambda session: session.foresee("fraction", where=part, given=whole),
            )
        case "range":
            ends = _conditions(given["range"])
            count(**ends).bind(domain)
            return (
                lambda session: session.rectangle(ends, **chosen),
                lambda session: session.foresee_rectangle(ends, **chosen),
            )
    name, method = domain.resolve(given[kind]), cast(Method, kind)
    more: dict[str, Any] = {}
    if kind == "histogram":
        more["width"] = given.get("width")
    if kind == "quantile":
        more["quantile"] = given["q"]
    return (
        lambda session: getattr(session, method)(name, **more, **chosen),
        lambda session: session.foresee(method, name, **chosen),
    )


def _check_size(sizes: Iterable[int], columns: int = 1) -> None:
    cells = math.prod(sizes) * columns
    if cells > MAX_CELLS:
        raise InvalidQuery(f"the table would have {cells:,} cells; over HTTP the most is {MAX_CELLS:,}.")


def _rows(given: Json, domain: Domain) -> Query:
    """The rows that meet all conditions of a field."""
    return count(**_conditions(given)).bind(domain)


def _conditions(given: Json) -> Json:
    """Conditions in the words of `tacit.count`: a pair is a range, a list is any of its values."""
    return {
        name: tuple(value) if isinstance(value, list) else value["in"] if isinstance(value, dict) else value
        for name, value in given.items()
    }


def _key(given: str | Json, query: Query | None) -> str:
    """The canonical key of a count; for the others, which have several in the ledger, a hash of what was given."""
    if query is not None:
        return query.key
    return hashlib.sha256(json.dumps(["asked", given], sort_keys=True).encode()).hexdigest()
