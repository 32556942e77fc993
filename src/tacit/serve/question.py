"""A question as it comes in JSON: SQL text, or one object of the structured form (`forms`); and what was read before.

Pure; for the server.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from tacit.model import sql
from tacit.model.ask import Ask, Cdf, Count, Stat
from tacit.model.domain import Domain
from tacit.model.table import Answers
from tacit.questions import NOT_PLAIN
from tacit.serve.forms import KINDS, as_weights
from tacit.serve.refusal import Refusal
from tacit.serve.schema import Json, shaped
from tacit.serve.work import COUNT_WORK, Meter, work_of

MOST_ASKED = 1_000  # characters of a question that the audit log keeps
SHORT_SQL, _SMALL = 500, 2**12  # characters and values of an attribute, of what is read at once: see `read_at_once`
LIGHT = 2**17  # work of a question that is kept, in cells: see `Question.light`
MOST_REMEMBERED = 2_000  # things of one memory
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
    def light(self) -> bool:
        """Whether it takes little memory: the conditions of a question about wide attributes can take megabytes."""
        return isinstance(self.ask, Cdf) or (self.work <= LIGHT and not isinstance(self.ask, Stat))

    @cached_property
    def plain(self) -> bool:
        """Whether it is a count that may share a batch with others, and whose answer never changes."""
        return isinstance(self.ask, Count) and self.within is None


def read(body: Any, domain: Domain, within: float | None = None, meter: Meter | None = None) -> Question:
    """Read a question and tie it to the domain; everything that can be refused without the data is refused here.

    meter: counts the work, also that of what is refused in the end.
    """
    meter = meter or Meter()
    before = meter.work
    if isinstance(body, str):
        kind, ask = "sql", sql.parse(body, domain, meter)
    elif isinstance(body, dict) and (kinds := [kind for kind in KINDS if kind in body]):
        kind = kinds[0]
        ask = shaped(body, KINDS[kind], "bad_question").ask(domain)
    else:
        raise Refusal(400, "bad_question", f"a question is SQL text, or an object with one of {', '.join(KINDS)}.")
    meter.takes(work_of(ask, domain))
    told = ask.words(domain) if isinstance(body, dict) and as_weights(body) else body
    return Question(kind, _key(body, ask), ask, within, meter.work - before, told)


def read_at_once(body: Any, domain: Domain, within: float | None = None) -> Question | None:
    """Read a question on the event loop: a short one that is a plain count about small attributes, for which a thread
    would take longer to wake. None for any other, however short it is: what it takes is not told by its length.
    """
    if max(domain.shape) > _SMALL:
        return None
    if isinstance(body, str):
        ask = sql.plain_count(body, domain) if len(body) <= SHORT_SQL else None
        return None if ask is None else Question("sql", ask.query.key, ask, within, work_of(ask, domain), body)
    plain = isinstance(body, dict) and "count" in body and not as_weights(body)
    return read(body, domain, within) if plain else None


def read_batch(batch: Sequence[Any], domain: Domain, meter: Meter | None = None) -> list[Question]:
    """Read several counts, or statistics; refused as soon as together they are more work than one request may be."""
    questions, meter = list[Question](), meter or Meter()
    for body in batch:
        questions.append(read(body, domain, None, meter))
        if not isinstance(questions[-1].ask, Count | Stat):
            raise Refusal(422, "bad_batch", NOT_PLAIN)
    return questions


def _key(body: str | Json, ask: Ask) -> str:
    """The canonical key of a count; for the others, which have several in the ledger, a hash of what was given."""
    if isinstance(ask, Count):
        return ask.query.key
    return hashlib.sha256(json.dumps(["asked", body], sort_keys=True).encode()).hexdigest()


class Memory(Generic[K, V]):
    """The last things by their keys: what need not be worked out again.

    Nothing here is told to anybody by itself: who sends the same text again is counted, noted and charged as before.
    One thread keeps and clears; any may get.
    """

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        self._kept: OrderedDict[K, V] = OrderedDict()
        self._most = most

    def get(self, key: K) -> V | None:
        return self._kept.get(key)

    def __len__(self) -> int:
        return len(self._kept)

    def clear(self) -> None:
        self._kept.clear()

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
