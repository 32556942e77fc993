"""Whether each entry of a published file says what it may say, at the price that it states. No data are needed.

Called by `publishing.knowledge`. Prices are worked out again from the public form of each question.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tacit.errors import InvalidQuery, LedgerError, TacitError
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.noise_law import Noise
from tacit.model.query import GRID, MAX_TABLE, Query
from tacit.model.statistic import Statistic, definition
from tacit.model.workload import Question, from_dict, key, to_dict
from tacit.store import chain
from tacit.store.chain import Entry, Mark, digest
from tacit.trusted.loss import Sensitivity, gate_price, price
from tacit.trusted.questions import own, unit
from tacit.trusted.sensitivity import sensitivity

_MORE_WIDTHS = {"alone", "likely"}  # that a free answer may have
_MOST_WORDS = 2**16  # characters of a note, which may name many attributes
_FACTOR = {"scope", "shape", "unit", "weights"}


@dataclass(frozen=True)
class Counted:
    """How many entries there are of each kind."""

    entries: int
    measured: int
    told: int
    gates: int


@dataclass(frozen=True)
class _Public:
    """What prices follow from, beside the question."""

    domain: Domain
    total: Loss
    rows_per_person: int


def check(entries: Sequence[Entry], origin: str, domain: Domain, total: Loss, rows_per_person: int = 1) -> Counted:
    """Derive the chain, the running total and every price again. Raises `LedgerError`, naming the first bad entry."""
    chain.check(entries, Mark(0, origin, 0), total.atoms)
    public = _Public(domain, total, rows_per_person)
    kinds, intents, keyed, keys = list[str](), dict[int, Entry](), set[int](), set[str]()
    unpaid = dict[int, int]()  # what of a settled intent no outcome was charged
    for entry in entries:
        try:
            kind = _kind(entry, public, intents, keyed)
            if entry.key is not None and entry.key in keys:
                raise _Wrong("another entry has the same key")
        except _Wrong as error:
            raise _bad(entry, str(error)) from None
        except TacitError as error:
            raise _bad(entry, error.sentence.rstrip(".")) from None
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError):
            raise _bad(entry, "it is not one that this program wrote") from None
        kinds.append(kind)
        if entry.key is not None:
            keyed.add(entry.seq)
            keys.add(entry.key)
        if entry.kind == "intent":
            intents[entry.seq] = entry
        if entry.intent is not None:
            unpaid[entry.intent] = unpaid.get(entry.intent, intents[entry.intent].atoms) - entry.atoms
    for seq, atoms in unpaid.items():  # the curator charges what it reserved, also for what is dropped unseen
        if atoms:
            raise _bad(intents[seq], "its answers are not charged what was set aside for them")
    return Counted(len(entries), kinds.count("measured"), kinds.count("told"), kinds.count("gate"))


class _Wrong(Exception):
    """What is wrong with an entry."""


def _bad(entry: Entry, why: str) -> LedgerError:
    return LedgerError(f"Entry {entry.seq} is wrong: {why}.")


def _need(holds: bool, why: str) -> None:
    if not holds:
        raise _Wrong(why)


def _words(text: object, most: int, what: str) -> None:
    """Refuse what a terminal would obey instead of showing, and what nobody would read."""
    _need(isinstance(text, str) and text.isprintable() and len(text) <= most, f"{what} is not a printable text")


def _kind(entry: Entry, public: _Public, intents: Mapping[int, Entry], keyed: set[int]) -> str:
    body = json.loads(entry.body)
    _need(isinstance(body, dict) and chain.canonical(body) == entry.body, "its body is not canonical JSON")
    if entry.kind != "outcome":
        _need(entry.key is None and entry.intent is None, "only outcomes have keys and intents")
        if entry.kind == "intent":
            _need(set(body) == {"purpose"}, "an intent has a purpose")
            _purpose(body["purpose"], entry, public)
        return entry.kind
    kind, names = "dropped", set(body)
    if entry.key is None:
        earlier = body.get("answered_by")
        sound = names == {"answered_by"} and type(earlier) is int and earlier in keyed
        _need(sound, "it has neither a key nor an earlier answer")
    else:
        fits = [(k, j) for k, w, j in _OUTCOMES if names == w or (k == "told" and w <= names <= w | _MORE_WIDTHS)]
        _need(bool(fits), "it is of no kind that is known")
        kind, judge = fits[0]
        judge(entry, body, public, intents)
    if entry.intent is not None and kind != "gate":
        _need(not _of_gate(intents[entry.intent]), "a gate ends with its own outcome, or stays open")
    return kind


def _purpose(purpose: object, entry: Entry, public: _Public) -> None:
    if isinstance(purpose, str):
        _words(purpose, _MOST_WORDS, "its purpose")
        return
    _need(isinstance(purpose, dict), "a purpose is a text, or a gate")
    assert isinstance(purpose, dict)
    wanted = {"kind", "owner", "threshold", "threshold_scale", "comparison_scale", "atoms"}
    _need(set(purpose) == wanted and purpose["kind"] == "gate", "no such gate")
    _words(purpose["owner"], _MOST_WORDS, "the owner of the gate")
    scales = [purpose[name] for name in ("threshold_scale", "comparison_scale")]
    numbers = [*scales, purpose["threshold"]]
    _need(all(type(x) is float and math.isfinite(x) for x in numbers) and min(scales) > 0, "a gate has real scales")
    first, second = (scale * GRID for scale in scales)
    move = Sensitivity(1, 1).times(public.rows_per_person).l1 * GRID
    cost = gate_price(first, second, move, public.total.measure)
    _need(purpose["atoms"] == cost.atoms == entry.atoms, f"its noise costs {cost}, and it states another price")


def _measured(entry: Entry, body: dict[str, Any], public: _Public, _: Mapping[int, Entry]) -> None:
    question = _question(body["question"], public.domain)
    known = key(question)
    _need(entry.key in (known, digest(["measured", known])), "its key is not that of its question")
    noise = body["noise"]
    _need(set(noise) == {"kind", "scale"} and type(noise["scale"]) is float, "noise has a kind and a scale")
    if _registered(question):
        _need(body["unit"] == unit(question), "its grid is not that of its question")
        moves = sensitivity(question, public.domain)
    else:  # the owner's own function, of which only the promise is known here
        _need(type(body["unit"]) is int and body["unit"] >= 1, "its grid is not a whole number")
        moves = Sensitivity(1, 1)
    moves = moves.times(public.rows_per_person)
    cost = price(Noise(noise["kind"], noise["scale"]), moves, body["unit"], public.total.measure)
    _need(
        entry.atoms == cost.atoms and entry.intent is not None, f"its noise costs {cost}, and it states another price"
    )
    values = body["values"]
    size = 1 if isinstance(question, Query | Statistic) else question.size(public.domain)
    _need(isinstance(values, list) and len(values) == size, f"its question has {size:,} answers")
    _need(all(type(value) is int and abs(value) < 2**63 for value in values), "answers are whole numbers of 64 bits")


def _told(entry: Entry, body: dict[str, Any], public: _Public, _: Mapping[int, Entry]) -> None:
    question = _question(body["question"], public.domain)
    _need(isinstance(question, Query | Statistic) and entry.key == key(question), "its key is not that of its question")
    _need(type(body["told"]) is int and abs(body["told"]) < 2**63, "an answer is a whole number")
    widths = [width for name in ("half_width", *_MORE_WIDTHS) if (width := body.get(name)) is not None]
    _need(all(type(width) is int and 0 <= width < 2**63 for width in widths), "a half width is a whole number from 0")
    _need(entry.atoms == 0, "free answers cost nothing")
    _words(body["note"], _MOST_WORDS, "its note")


def _gate(entry: Entry, body: dict[str, Any], public: _Public, intents: Mapping[int, Entry]) -> None:
    _opened(entry, intents, gate=True)
    same = body == {"kind": "gate", "gate": entry.intent} and entry.key == f"gate {entry.intent}"
    _need(same, "it is not the end of the gate that it names")


def _chosen(entry: Entry, body: dict[str, Any], public: _Public, intents: Mapping[int, Entry]) -> None:
    _opened(entry, intents, gate=False)
    index, among = body["choice"], body["among"]
    _need(type(among) is int and (index is None or (type(index) is int and 0 <= index < among)), "no such candidate")
    if "question" in body:
        _need(
            index is not None and not isinstance(_question(body["question"], public.domain), Statistic), "no candidate"
        )


def _compared(entry: Entry, body: dict[str, Any], public: _Public, intents: Mapping[int, Entry]) -> None:
    _opened(entry, intents, gate=False)
    _need(body["compared"] in (0, 1) and type(body["compared"]) is int, "a comparison says 0 or 1")
    _need(isinstance(_question(body["question"], public.domain), Query | Statistic), "a comparison is about one value")


def _opened(entry: Entry, intents: Mapping[int, Entry], *, gate: bool) -> None:
    """The charge is that of its intent, to the atom: choices and comparisons are paid as they were reserved."""
    intent = intents.get(entry.intent or 0)
    _need(intent is not None and intent.atoms == entry.atoms, "it is not charged what was reserved for it")
    assert intent is not None
    _need(_of_gate(intent) == gate, "it was reserved for something else")


def _of_gate(intent: Entry) -> bool:
    return isinstance(json.loads(intent.body)["purpose"], dict)


_OUTCOMES: tuple[tuple[str, set[str], Callable[..., None]], ...] = (
    ("measured", {"question", "values", "unit", "noise"}, _measured),
    ("told", {"question", "told", "half_width", "note"}, _told),
    ("gate", {"kind", "gate"}, _gate),
    ("choice", {"question", "choice", "among"}, _chosen),
    ("choice", {"choice", "among"}, _chosen),
    ("compared", {"question", "compared"}, _compared),
)


def _question(form: Any, domain: Domain) -> Question:
    """The question of a form, checked and canonical; the form must be the one that it is written in."""
    for query in _queries(form):
        _sized(query, domain)
    question = from_dict(form)
    if _registered(question):
        question = own(question, domain)
    elif isinstance(question, Statistic):  # all that is ever made of it is words
        _words(question.name + "".join(question.scope), _MOST_WORDS, "its question")
    _need(to_dict(question) == form, "its question is not in canonical form")
    return question


def _registered(question: Question) -> bool:
    """Whether this process has the code: a statistic that the owner registered elsewhere is known by name only."""
    if isinstance(question, Statistic):
        try:
            definition(question.name)
        except InvalidQuery:
            return False
    return True


def _queries(form: Any) -> list[Any]:
    listed: list[Any] = {"query": [form], "marginal": [form.get("where")]}.get(form["kind"], [])
    return listed


def _sized(query: dict[str, Any], domain: Domain) -> None:
    """Refuse shapes that are not the domain's before any array is made of them."""
    for factor in query["factors"]:
        scope, shape = factor["scope"], factor["shape"]
        _need(set(factor) == _FACTOR and all(name in domain for name in scope), "it is about other attributes")
        _need(
            shape == [domain[name].size for name in scope] and math.prod(shape) <= MAX_TABLE, "its weights do not fit"
        )
        _need(type(factor["unit"]) is int, "its grid is not a whole number")
