"""Whether each entry of a published file says what it may say, at the price that it states. No data are needed.

Called by `read` and `verify`. Prices are worked out again from the public form of each question.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from tacit.errors import ConfigError, InvalidBudget, InvalidQuery, LedgerError, TacitError
from tacit.exact.price import Sensitivity, carried, gate_price, price, raised_to, threshold_of, values_price
from tacit.model.budget import Loss, Measure
from tacit.model.domain import Domain
from tacit.model.entry import (
    MOST_BESIDE,
    Carried,
    Closed,
    Comparison,
    Discovered,
    Dropped,
    Entry,
    Found,
    FreeAnswer,
    GateTerms,
    Intent,
    LaterTerms,
    Limit,
    Measurement,
    Selection,
    Shut,
    beside,
    decisions,
    decode,
    discovery_key,
    spells,
)
from tacit.model.factor import GRID
from tacit.model.noise_law import Noise
from tacit.model.query import Query
from tacit.model.request import Declared
from tacit.model.statistic import Statistic, definition
from tacit.model.workload import Question, key, unit
from tacit.model.workload import check as check_question
from tacit.public.file import Contents
from tacit.public.lines import HASH, refuse
from tacit.public.quick import QuickJudge
from tacit.public.work import NEXT_KEY, TooMuch, Work, steps_of
from tacit.store.chain import Mark, Override, Sealed, State, follow
from tacit.trusted.rules import step
from tacit.trusted.sensitivity import sensitivity

_MOST_LEFT = 2**20  # purchases of a start
_MOST_WORDS = 2**16  # characters of a note, which may name many attributes


@lru_cache(maxsize=4096)  # many answers have the same noise
def _price(noise: Noise, moves: Sensitivity, people: int, grid: int, measure: Measure) -> Loss:
    return price(noise, moves.times(people), grid, measure)


def check(path: Path, found: Contents, *, unlimited: bool = False) -> None:
    """Derive the chain, the running total and every price again. Refuses the file, naming the first bad entry.

    It also refuses one whose entries are more work than those of a file of its size may be, unless it is `unlimited`.
    """
    declared = Declared(found.domain, found.header.rows, found.header.rows_per_person, found.header.total)
    rules = partial(step, total=declared.total.atoms, continues=found.header.continues is not None)
    at, state = Mark(0, found.header.origin, 0), State(0, {})
    aside, raising = found.header.aside or 0.0, list[Sealed]()
    entries = _Entries(declared, aside, Work(found.size, unlimited=unlimited))
    try:
        for lines in found.lines.parts():
            at, state = follow(lines, at, state, rules)
            entries.check(lines)
            raising += [line for line in lines if line.kind == "extended"]
        entries.end()
        if found.header.continues is not None and found.lines:
            before = decode(found.lines[0].kind, found.lines[0].body)
            if not isinstance(before, Carried) or before.ledger != found.header.continues:
                raise LedgerError("its first entry goes on from another ledger than it says")
        raised_to(found.header.budget, declared.total, decisions(raising), aside=aside)
    except (LedgerError, InvalidBudget) as error:
        refuse(path, error.sentence.rstrip("."))
    except TooMuch as error:
        raise ConfigError(
            f"{path.name} is more work to check than a file of its size may be: {error}. "
            "Whoever trusts its maker reads it with unlimited=True, or --unlimited."
        ) from None
    if not found.sealed:  # said last, so that an edited entry is named
        refuse(path, "it was changed: its entries follow from one another, and its last line is not the digest of all")


class _Entries:
    """Judges entries in their order. `aside` is the part of delta that was kept for discovered values."""

    def __init__(self, public: Declared, aside: float, work: Work) -> None:
        self._public, self._aside, self._work = public, aside, work
        # Among how many an intent shares its delta, and how many there were.
        self._shared = dict[int, tuple[int, int]]()
        self._intents, self._keyed, self._keys = dict[int, _Intended](), set[int](), set[str]()
        self._unpaid = dict[int, int]()  # what of a settled intent no outcome was charged
        self._quick = QuickJudge(public)

    def check(self, lines: Sequence[Sealed]) -> None:
        steps = self._quick.judged(lines)
        right = [one is not None for one in steps]
        for quick, run in groupby(range(len(lines)), right.__getitem__):
            places = list(run)
            some = [lines[place] for place in places]
            if quick and self._pass(some):
                for place in places:
                    if announced := steps[place]:
                        self._work.take(lines[place].seq, announced)
            else:
                for line in some:
                    self._take(line, self._judge(line))

    def _pass(self, lines: Sequence[Sealed]) -> bool:
        """Take lines that are what they say, for their price, all of them or none: it remains whom they belong to."""
        opened = {line.seq: _Intended(line.atoms, False) for line in lines if line.kind == "intent"}
        outcomes = [line for line in lines if line.kind != "intent"]
        new = {line.key for line in outcomes if line.key is not None}
        charged = dict[int | None, int]()
        for line in outcomes:
            charged[line.intent] = charged.get(line.intent, 0) + line.atoms
        free = charged.pop(None, 0)
        paid = {seq: opened.get(seq) or self._intents.get(seq) for seq in charged if seq is not None}
        belong = all(one is not None and not one.gate for one in paid.values()) and not free
        if not belong or len(new) < len(outcomes) or not new.isdisjoint(self._keys):
            return False
        self._keys |= new
        self._keyed.update([line.seq for line in outcomes])
        self._intents.update(opened)
        for seq in paid:
            self._unpaid[seq] = self._unpaid.get(seq, self._intents[seq].atoms) - charged[seq]
        return True

    def _take(self, line: Sealed, entry: Entry) -> None:
        """Remember an entry that was found right, for those after it."""
        if line.key is not None:
            self._keyed.add(line.seq)
            self._keys.add(line.key)
        if isinstance(entry, Intent):
            self._intents[line.seq] = _Intended(line.atoms, isinstance(entry.purpose, GateTerms))
        if line.intent is not None:
            reserved = self._intents[line.intent].atoms
            self._unpaid[line.intent] = self._unpaid.get(line.intent, reserved) - line.atoms

    def _judge(self, line: Sealed) -> Entry:
        self._work.take(line.seq, steps_of(line, self._public.domain))
        try:
            entry = _entry(line)
            _judge(line, entry, self._public, self._intents, self._keyed, self._work)
            if isinstance(entry, Found):
                _found(entry, line, self._public, self._aside, self._shared)
            if isinstance(entry, Override | Carried):
                # What was discovered in lost lines, or in the ledger before, is not known: so nothing more may be.
                self._aside = 0.0
            if line.key is not None and line.key in self._keys:
                raise _Wrong("another entry has the same key")
        except _Wrong as error:
            raise _bad(line.seq, str(error)) from None
        except TacitError as error:
            raise _bad(line.seq, error.sentence.rstrip(".")) from None
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError):
            raise _bad(line.seq, "it is not one that this program wrote") from None
        return entry

    def end(self) -> None:
        for seq, atoms in self._unpaid.items():  # the curator charges what it reserved, also for what is dropped unseen
            if atoms:
                raise _bad(seq, "its answers are not charged what was set aside for them")


class _Wrong(Exception):
    """What is wrong with an entry."""


class _Intended(NamedTuple):
    """What an intent reserved, and whether it was a gate."""

    atoms: int
    gate: bool


def _bad(seq: int, why: str) -> LedgerError:
    return LedgerError(f"Entry {seq} is wrong: {why}.")


def _need(holds: bool, why: str) -> None:
    if not holds:
        raise _Wrong(why)


def _words(text: object, most: int, what: str) -> None:
    """Refuse what a terminal would obey instead of showing, and what nobody would read."""
    _need(isinstance(text, str) and text.isprintable() and len(text) <= most, f"{what} is not a printable text")


def _entry(line: Sealed) -> Entry:
    """The entry of a line. Encoded again it must be the line: so every field has its type, and there is no other."""
    entry = decode(line.kind, line.body)
    _need(spells(entry, line.kind, line.body), "its body is not in the one spelling that is used here")
    return entry


def _judge(
    line: Sealed, entry: Entry, public: Declared, intents: Mapping[int, _Intended], keyed: set[int], work: Work
) -> None:
    """Refuse an entry that does not belong to its line, or is not charged its price."""
    outcome = not isinstance(entry, Intent | Override | LaterTerms | Limit)
    _need(outcome or (line.key is None and line.intent is None), "only outcomes have keys and intents")
    _need((line.key is None) == (not outcome or isinstance(entry, Dropped)), "outcomes have keys")
    if line.intent is not None:
        intended = intents.get(line.intent)
        _need(intended is not None, "it was reserved for something else")
        assert intended is not None
        _need(intended.gate == isinstance(entry, Shut), "a gate ends with its own outcome, or stays open")
        single = isinstance(entry, Shut | Selection | Comparison)
        _need(not single or intended.atoms == line.atoms, "it is not charged what was reserved for it")
    match entry:
        case Intent(GateTerms() as gate):
            _gate(gate, line, public)
        case Intent(purpose):
            _words(purpose, _MOST_WORDS, "its purpose")
        case Measurement():
            _measured(entry, line, public, work)
        case Discovered(rows=rows):
            _need(type(rows) is int and 1 <= rows < 2**42, "its number of rows is none")
            _measured(entry.measured, line, public._replace(domain=entry.domain), work, entry.key)
        case Carried(ledger, number, seal, spent):
            _need(type(number) is int and number >= 1, "it does not name the entry that it goes on from")
            _need(HASH.fullmatch(ledger) is not None and HASH.fullmatch(seal) is not None, "its seal is none")
            _need(line.atoms == carried(spent, public.total.measure).atoms, f"{spent} is another charge here")
        case Closed(by):
            _need(HASH.fullmatch(by) is not None, "its seal is none")
        case LaterTerms(seal):
            _need(HASH.fullmatch(seal) is not None, "its seal is none")
        case FreeAnswer(question, note=note, bars=bars):
            _need(line.key == key(_asked(question, public.domain)), "its key is not that of its question")
            _words(note, _MOST_WORDS, "its note")
            for bar in bars:
                _words(bar.about.words, _MOST_WORDS, "what its bar is about")
        case Shut(gate):
            same = gate == line.intent and line.key == f"gate {line.intent}"
            _need(same, "it is not the end of the gate that it names")
        case Selection(index, among, question):
            whole = type(among) is int and (index is None or (type(index) is int and 0 <= index < among))
            _need(whole, "no such candidate")
            _need(question is None or index is not None, "no candidate")
            if question is not None:
                _asked(question, public.domain)
        case Comparison(question):
            _asked(question, public.domain)
        case Dropped(earlier):
            _need(type(earlier) is int and earlier in keyed, "it has neither a key nor an earlier answer")


def _gate(gate: GateTerms, line: Sealed, public: Declared) -> None:
    _words(gate.owner, _MOST_WORDS, "the owner of the gate")
    scales = gate.threshold_scale, gate.comparison_scale
    real = all(type(x) is float and math.isfinite(x) for x in (*scales, gate.threshold))
    _need(real and min(scales) > 0, "a gate has real scales")
    first, second = (scale * GRID for scale in scales)
    move = Sensitivity(1, 1).times(public.rows_per_person).l1 * GRID
    cost = gate_price(first, second, move, public.total.measure)
    _need(gate.atoms == cost.atoms == line.atoms, f"its noise costs {cost}, and it states another price")


def _found(entry: Found, line: Sealed, public: Declared, aside: float, shared: dict[int, tuple[int, int]]) -> None:
    """Refuse values that were told too early, or for too little; `shared`: among how many, and how many there were."""
    assert line.intent is not None  # it is charged
    people, whole = public.rows_per_person, (*entry.counts, entry.threshold, entry.among)
    numbers = all(type(x) is int for x in whole) and entry.among >= 1
    _need(aside > 0 and numbers and entry.noise.kind == "gaussian", "no delta was kept for it")
    nearly = aside * (1 + 1e-9)  # the last bits of a float may differ between machines
    least = threshold_of(entry.noise, people, nearly, line.intent, entry.among)
    _need(entry.threshold >= least, f"its values are told from {least:,} rows on")
    _need(len(entry.values) == len(entry.counts) == len(set(entry.values)), "its values have one count each")
    _need(min(entry.counts, default=entry.threshold) >= entry.threshold, "a value that too few rows have")
    for value in (entry.name, *entry.values):
        _need(value is None or type(value) is int or str(value).isprintable(), "a value that cannot be printed")
    _need(line.key == discovery_key(entry.name), "its key is not that of its column")
    cost = values_price(entry.noise, people, public.total.measure)
    _need(line.atoms == cost.atoms, f"its noise costs {cost}, and it states another price")
    among, told = shared.get(line.intent, (entry.among, 0))
    _need(entry.among == among, "another number of columns than its look has")
    _need(told < among, "more columns than share its delta")
    shared[line.intent] = among, told + 1


def _measured(entry: Measurement, line: Sealed, public: Declared, work: Work, known: str = "") -> None:
    question = _asked(entry.question, public.domain)
    known = known or key(question)
    for _ in range(MOST_BESIDE):  # a measurement may be kept beside others of the same question
        if line.key == known:
            break
        work.take(line.seq, NEXT_KEY)
        known = beside(known)
    _need(line.key == known, "its key is not that of its question")
    if _registered(question):
        _need(entry.unit == unit(question), "its grid is not that of its question")
        moves = sensitivity(question, public.domain)
    else:  # the owner's own function, of which only the promise is known here
        _need(entry.unit >= 1, "its grid is not a whole number")
        moves = Sensitivity(1, 1)
    cost = _price(entry.noise, moves, public.rows_per_person, entry.unit, public.total.measure)
    if line.atoms != cost.atoms:
        raise _Wrong(f"its noise costs {cost}, and it states another price")
    if entry.start is not None:
        marks = entry.start.left, *entry.start.beside
        _need(all(type(mark) is int and 0 <= mark < line.seq + _MOST_LEFT for mark in marks), "its mark is none")
    size = 1 if isinstance(question, Query | Statistic) else question.size(public.domain)
    if entry.values.shape != (size,):
        raise _Wrong(f"its question has {size:,} answers")


def _asked(question: Question, domain: Domain) -> Question:
    """The question itself, if it is about this domain. It is in canonical form: encoded again it is its line."""
    if _registered(question):
        check_question(question, domain)
    elif isinstance(question, Statistic):  # all that is ever made of it is words
        _words(question.name + "".join(question.scope), _MOST_WORDS, "its question")
    return question


def _registered(question: Question) -> bool:
    """Whether this process has the code: a statistic that the owner registered elsewhere is known by name only."""
    if isinstance(question, Statistic):
        try:
            definition(question.name)
        except InvalidQuery:
            return False
    return True
