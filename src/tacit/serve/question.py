"""A question as it comes in JSON: SQL text, or one object of the structured form (`forms`); and what was read before.

Pure; for the server.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from tacit.errors import InvalidQuery
from tacit.model import sql
from tacit.model.ask import Ask, Count, Crosstab, Derived, Select, Stat
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.model.table import Answers
from tacit.questions import NOT_PLAIN
from tacit.serve.forms import KINDS, as_weights
from tacit.serve.refusal import Refusal
from tacit.serve.schema import Json, shaped

MAX_CELLS = 100_000  # of one table
MOST_ASKED = 1_000  # characters of a question that the audit log keeps
MAX_WORK = 2**27  # of one request, see `Question.work`
SHORT_SQL = 500  # characters of SQL that is read at once: a thread would take longer to wake
LIGHT = 2**17  # work of a question that is kept, in cells: see `Question.light`
COUNT_WORK = 2**12  # what a count takes, however few its cells are
_EACH, _CELL = 4, 64  # what a cell of a question's weights takes, and one of a table that is bought whole
_ONE_BY_ONE = 10_000  # cells of a table that may be counts of their own
MOST = 2_000  # things of one memory
K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, eq=False)
class Question:
    """A question that was read: what it asks, and as what it came. `key` names it in the audit log."""

    kind: str
    key: str
    ask: Ask
    within: float | None = None  # the half width that is asked for
    work: int = COUNT_WORK  # what it takes to answer, at most: by public things alone, in cells that are gone through
    given: str | Json | None = None

    @property
    def asked(self) -> str:
        """The question as it came, for the audit log: SQL, or JSON, on one line where it can be; cut short."""
        text = self.given if isinstance(self.given, str) else json.dumps(self.given, ensure_ascii=False)
        if self.given is None:
            return ""
        # A comment ends with its line: on one line with it, the statement would be a part of it.
        return text[:MOST_ASKED].strip() if "--" in text else " ".join(text[:MOST_ASKED].split())

    @property
    def is_count(self) -> bool:
        return isinstance(self.ask, Count)

    @property
    def light(self) -> bool:
        """Whether it takes little memory: the conditions of a question about wide attributes can take megabytes."""
        return self.work <= LIGHT and not isinstance(self.ask, Stat)

    @cached_property
    def plain(self) -> bool:
        """Whether it is a count that may share a batch with others, and whose answer never changes."""
        return isinstance(self.ask, Count) and self.within is None


def read(body: Any, domain: Domain, within: float | None = None) -> Question:
    """Read a question and tie it to the domain; everything that can be refused without the data is refused here."""
    if isinstance(body, str):
        kind, ask = "sql", sql.parse(body, domain)
    elif isinstance(body, dict) and (kinds := [kind for kind in KINDS if kind in body]):
        kind = kinds[0]
        ask = shaped(body, KINDS[kind], "bad_question").ask(domain)
    else:
        raise Refusal(400, "bad_question", f"a question is SQL text, or an object with one of {', '.join(KINDS)}.")
    work = _work(ask, domain)
    check_work(work)
    told = ask.words(domain) if isinstance(body, dict) and as_weights(body) else body
    return Question(kind, _key(body, ask), ask, within, work, told)


def read_batch(batch: Sequence[Any], domain: Domain) -> list[Question]:
    """Read several counts, or statistics; refused as soon as together they are more work than one request may be."""
    questions, work = list[Question](), 0
    for body in batch:
        questions.append(read(body, domain))
        if not isinstance(questions[-1].ask, Count | Stat):
            raise Refusal(422, "bad_batch", NOT_PLAIN)
        work += questions[-1].work
        check_work(work)
    return questions


def check_work(work: int) -> None:
    if work > MAX_WORK:
        raise Refusal(
            422,
            "too_much_work",
            f"the request goes through more than {MAX_WORK:,} cells: the values of the attributes that each question "
            "is about, for all its questions. Ask fewer at once.",
        )


def _work(ask: Ask, domain: Domain) -> int:
    """How much work a question is, at most, whatever the data and the mechanism: see `Question.work`."""
    match ask:
        case Count():
            return COUNT_WORK + _EACH * _weights(ask.query)
        case Crosstab():
            return _table_work(ask.table.size(domain), _named(ask.names, domain) + _weights(ask.where))
        case Select() | Derived():
            work = cells = 0
            for one in ask.selects:
                own = len(one.columns) * math.prod(len(group.parts(domain)) for group in one.groups)
                about = sum(_about(column.value, domain) for column in one.columns)
                work += _table_work(own, _named([group.name for group in one.groups], domain) + about)
                cells += own
            _table_work(cells, 0)  # which refuses too large ones
            return work
    return COUNT_WORK + _CELL * _about(ask, domain)


def _about(ask: object, domain: Domain) -> int:
    """The values of the attributes that a question names, and of those that its conditions are about."""
    fields = [getattr(ask, name, None) for name in getattr(ask, "__dataclass_fields__", ())]
    named = _named([name for name in fields if isinstance(name, str) and name in domain.sizes], domain)
    return named + sum(_weights(part) for part in fields if isinstance(part, Query))


def _named(names: Sequence[str], domain: Domain) -> int:
    return sum(domain.sizes[name] for name in names)


def _weights(query: Query) -> int:
    return sum(factor.weights.size for factor in query.factors)


def _table_work(cells: int, each: int) -> int:
    """The work of a table: a few of its cells are counts of their own, which go through several values each."""
    if cells > MAX_CELLS:
        raise InvalidQuery(f"the table would have {cells:,} cells; over HTTP the most is {MAX_CELLS:,}.")
    if cells > _ONE_BY_ONE:
        return COUNT_WORK + _CELL * cells
    return COUNT_WORK + cells * each


def _key(body: str | Json, ask: Ask) -> str:
    """The canonical key of a count; for the others, which have several in the ledger, a hash of what was given."""
    if isinstance(ask, Count):
        return ask.query.key
    return hashlib.sha256(json.dumps(["asked", body], sort_keys=True).encode()).hexdigest()


class Memory(Generic[K, V]):
    """The last things by their keys: what need not be worked out again.

    Nothing here is told to anybody by itself: who sends the same text again is counted, noted and charged as before.
    """

    def __init__(self, most: int = MOST) -> None:
        self._kept: OrderedDict[K, V] = OrderedDict()
        self._most = most

    def get(self, key: K) -> V | None:
        return self._kept.get(key)

    def keep(self, key: K, value: V) -> None:
        """Keep something, and let the oldest go where there is too much."""
        self._kept[key] = value
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)


@dataclass(slots=True)
class Remembered:
    """A question that was read before; and the answer that was last sent, with its text."""

    question: Question
    answer: Answers | None = None
    text: bytes = b""
