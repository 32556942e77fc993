"""Entries that a ledger may have a million of, judged by their text: counts, sums, tables, intents. Called by `check`.

What is said here is only ever yes: of a line that is not waved through, `check` finds out by the slow way whether it is
right, and says what is wrong with it. So everything here may be narrower than the format, and nothing wider.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from msgspec import MsgspecError, Struct, to_builtins
from msgspec.json import Decoder, Encoder, decode

from tacit.errors import TacitError
from tacit.exact.price import Sensitivity, price
from tacit.model.body import MeasuredQuery, MeasuredTable, SaidIntent, ToldQuery, WrittenNoise
from tacit.model.factor import GRID, alone_in_digits, alone_in_rows, alone_in_runs, alone_in_steps, conditions_in_digits
from tacit.model.noise_law import Noise
from tacit.model.query import MOST_READ, query_key
from tacit.model.request import Declared
from tacit.model.workload import table_key
from tacit.public.work import of_weights
from tacit.store.chain import Sealed, canonical

_KEPT = 2**24  # characters of texts that are remembered: many questions share theirs
_DIGITS = 2**12  # characters of the weights of one condition
_MOST_CELLS = 2**12  # of a table
_MOST_BEFORE = 2**20  # characters before the weights
_MOST_NAMED = 2**12  # characters of the names of two attributes
_FEW = 16  # conditions that are matched together: what is no match is tried once for each of them
_LITTLE = 2**16  # steps of work that a line may always take: a file may take so many for each 64 characters
_MOST_LISTED = 2**16  # characters of weights as a list
_SHORT = 100  # characters of an intent that is remembered
_MOST_WORDS = 2**16  # characters of a note
_LEAST, _MOST = 1e-3, 1e15  # between which msgspec spells a number as `canonical` does
_LONG = 2**63  # whole numbers are of 64 bits

# A body is what stands before its weights, the weights on each attribute, and what was released.
_BEFORE, _BETWEEN = '"factors":[{"scope":["', '},{"scope":["'
_AND, _SHAPE, _WEIGHTS = '","', '"],"shape":', ',"weights":'
_RUNS = re.compile(r"\[(?:0|[1-9][0-9]{0,7})(?:,[1-9][0-9]{0,7})+\]")
_STEP = "(?:0|[1-9][0-9]{0,6})"
# Matching a list takes a hundred times its memory, and more where it is a group: so only short ones are matched.
_STEPS, _LISTED = re.compile(rf"\[{_STEP}(?:,{_STEP})+\]"), r"\[[0-9,]+\]"
_WHOLE = "(?:0|-?[1-9][0-9]{0,17})"  # below 2^63 in size


class FactorSubject(NamedTuple):
    """What a factor is about: one attribute or two, how many values they have, and its grid."""

    scope: tuple[str, ...]
    rows: int  # values of the first of two; 0 where there is only one
    size: int  # values of the last
    cells: int
    steps: int  # of work, to make it
    unit: int


class JudgedFactor(NamedTuple):
    """A factor: which values of its attributes count, wholly or in steps of `unit`."""

    scope: tuple[str, ...]
    cells: int
    steps: int
    unit: int
    alone: bool  # whether it may stand by itself: in its canonical orientation it may


class _Form(NamedTuple):
    """How bodies of one form are read, what ends their weights, the end of one of them, and all their ends by grid."""

    read: Callable[[str], MeasuredQuery | MeasuredTable | ToldQuery]
    after: str
    end: str
    ends: Mapping[int, re.Pattern[str]]


class _Ending(NamedTuple):
    """How a body ends on one grid, and what an answer on that costs."""

    match: Callable[[str], re.Match[str] | None]
    atoms: int


class Beginning(NamedTuple):
    """What a body says before its weights, and what follows from that."""

    after: str
    complement: bool
    endings: Mapping[int, _Ending]  # by the unit of the weights
    names: tuple[str, ...] = ()  # of a table
    answers: int = 1


_QUERY, _TABLE, _NUMBER = '}],"kind":"query"}', "}]}}", re.compile(rf',"told":{_WHOLE}\}}')
_FORMS = {
    "measured": (
        _Form(
            Decoder(MeasuredQuery).decode,
            _QUERY,
            ',"unit":1,"values":[0]}',
            {unit: re.compile(rf',"unit":{unit},"values":\[{_WHOLE}\]\}}') for unit in (1, GRID)},
        ),
        _Form(
            Decoder(MeasuredTable).decode,
            _TABLE,
            ',"unit":1,"values":[0]}',
            {1: re.compile(rf',"unit":1,"values":\[{_WHOLE}(?:,{_WHOLE})*\]\}}')},
        ),
    ),
    "told": (_Form(Decoder(ToldQuery).decode, _QUERY, ',"told":0}', {1: _NUMBER, GRID: _NUMBER}),),
}
_said = Decoder(SaidIntent).decode
_encode = Encoder().encode
Form = TypeVar("Form", bound=Struct)


class QuickJudge:
    """Judges lines, about what was declared."""

    def __init__(self, public: Declared) -> None:
        self._public = public
        self._beginnings: dict[str, dict[str, Beginning]] = {kind: {} for kind in _FORMS}
        self._weighed = dict[str, JudgedFactor]()
        self._about = dict[str, FactorSubject]()
        self._spelled = {canonical(name)[1:-1]: name for name in public.domain.sizes}
        self._intents = set[str]()
        self._narrow = _products(public.domain.sizes)
        self._room = _KEPT

    def judged(self, lines: Sequence[Sealed]) -> list[int | None]:
        """For each line the steps of work that it announces; None unless it is an answer or an intent, as it must be.

        What is announced is not made here, but a report reads all questions. Little work is none.

        Guarantee: where it says a number, `decode` reads the body and `encode` writes it so again. The question is
            about the declared domain and in canonical form, the key is that of the question (not one beside it), the
            grid is its own, there are as many numbers as it has answers, and the atoms are what the noise costs. An
            intent says its purpose in words. Nothing is said of the intent that a line belongs to, and of the numbers.
        Formula: a body is beginning, weights and end, each in its one spelling. Canonical factors about different
            attributes, in the order of these, are a canonical query.
        """
        return [self._answered(line) if line.kind in _FORMS else self._intended(line) for line in lines]

    def _intended(self, line: Sealed) -> int | None:
        """An intent in few words announces nothing. What is asked by itself has one, and most of these say the same."""
        if line.kind != "intent" or line.key is not None or line.intent is not None:
            return None
        text = line.body
        if text in self._intents:
            return 0
        said = _read(_said, text) if len(text) <= _SHORT else None
        if said is None or not said.purpose.isprintable():
            return None
        self._remember(len(text))
        self._intents.add(text)
        return 0

    def _answered(self, line: Sealed) -> int | None:
        """The steps that the question of an answer takes."""
        start, _, rest = line.body.partition(_BEFORE)
        begun = self._beginnings[line.kind].get(start) or self._beginning(line.kind, start)
        if begun is None:
            return None
        factors, _, end = rest.rpartition(begun.after)
        asked = self._asked(factors)
        if asked is None:
            return None
        unit, steps = asked
        ending = begun.endings.get(unit)
        if ending is None or ending.atoms != line.atoms:
            return None
        if (begun.names and end.count(",") - 1 != begun.answers) or ending.match(end) is None:
            return None
        key = query_key(f'{{"scope":["{factors}}}'.encode(), complement=begun.complement)
        right = line.key == (table_key(begun.names, key) if begun.names else key)
        return steps if right else None

    def _asked(self, factors: str) -> tuple[int, int] | None:
        """The grid of a query and the steps that it takes; None unless its factors are its canonical form."""
        found = self._narrow.match(factors) if factors.count(_BETWEEN) < _FEW else None
        if found is None:
            asked = self._product(factors)
        elif found.lastindex is None:
            asked = 1, 0
        else:
            listed = zip(self._narrow.before_steps, found.groups(), strict=True)
            known = [self._known(before + written) for before, written in listed if written is not None]
            asked = (GRID, 0) if all(known) else None
        if asked is None or _BETWEEN in factors:
            return asked
        only = self._weighed.get(factors) or self._factor(factors)
        return asked if only is not None and only.alone else None

    def _product(self, factors: str) -> tuple[int, int] | None:
        """The same of factors about different attributes, in the order of these, that can be read again."""
        before: tuple[str, ...] = ()
        names: list[str] = []
        tied, weights, work, whole = False, 0, 0, 1
        for text in factors.split(_BETWEEN):
            one = self._weighed.get(text) or self._known(text)
            if one is None or one.scope <= before:
                return None
            before, cells, steps, unit, _ = one  # at once: names are read at thrice the price
            weights += cells
            work += steps
            if unit > whole:
                whole = unit
            names += before
            if len(before) > 1:
                tied = True
        if weights > MOST_READ or (tied and len(set(names)) < len(names)):
            return None
        return whole, work if work > _LITTLE else 0

    def _beginning(self, kind: str, start: str) -> Beginning | None:
        """What stands before the weights of a body, if it is what this kind begins with, in its one spelling."""
        if len(start) > _MOST_BEFORE:
            return None
        for form in _FORMS[kind]:
            text = f'{start}"factors":[{form.after[1:]}{form.end}'  # a body without weights
            if (found := self._begun(form, text)) is not None:
                self._remember(len(text))
                self._beginnings[kind][start] = found
                return found
        return None

    def _begun(self, form: _Form, text: str) -> Beginning | None:
        read = _read(form.read, text)
        if read is None:
            return None
        if isinstance(read, ToldQuery):
            free = _at({1: 0, GRID: 0}, form)
            return Beginning(form.after, read.question.complement, free) if _sayable(read) else None
        if isinstance(read, MeasuredQuery):
            return Beginning(form.after, read.question.complement, self._priced(form, read.noise, moves=1))
        names, sizes = tuple(read.question.names), self._public.domain.sizes
        if list(names) != sorted(set(names)) or not all(name in sizes for name in names):
            return None
        answers = math.prod(sizes[name] for name in names)
        if not 1 < answers <= _MOST_CELLS:  # a table of one cell moves less than others
            return None
        endings = self._priced(form, read.noise, moves=2)
        return Beginning(form.after, read.question.where.complement, endings, names, answers)

    def _priced(self, form: _Form, noise: WrittenNoise, *, moves: int) -> dict[int, _Ending]:
        """The ends of answers that move so far, in L1 and in squared L2, and what they cost with this noise."""
        if not _LEAST < noise.scale < _MOST:
            return {}
        try:
            law, measure = Noise(noise.kind, noise.scale), self._public.total.measure  # type: ignore[arg-type]
            far = Sensitivity(moves, moves).times(self._public.rows_per_person)
            return _at({unit: price(law, far, unit, measure).atoms for unit in form.ends}, form)
        except (ValueError, TacitError):
            return {}

    def _known(self, text: str) -> JudgedFactor | None:
        """A factor, which is remembered: many questions have the same."""
        found = self._weighed.get(text)
        if found is None and (found := self._factor(text)) is not None:
            self._remember(len(text))
            self._weighed[text] = found
        return found

    def _factor(self, text: str) -> JudgedFactor | None:
        """A factor, if it is about attributes of the domain, in its one spelling and in few characters."""
        said, _, weights = text.rpartition(_WEIGHTS)
        about = self._about.get(said) or self._attributes(said)
        alone = None if about is None or not weights else _alone(about, weights)
        if about is None or alone is None:
            return None
        return JudgedFactor(about.scope, about.cells, about.steps, about.unit, alone)

    def _attributes(self, text: str) -> FactorSubject | None:
        """What a factor is about, by what is written before its weights."""
        named, _, rest = text.partition(_SHAPE)
        if len(named) > _MOST_NAMED:
            return None
        scope = tuple(self._spelled[name] for name in named.split(_AND) if name in self._spelled)
        shape = tuple(self._public.domain.sizes[name] for name in scope)
        written = {f"[{','.join(map(str, shape))}]" + f',"unit":{unit}': unit for unit in (1, GRID)}
        whole = _AND.join(canonical(name)[1:-1] for name in scope) == named
        if not whole or rest not in written or len(scope) not in (1, 2) or list(scope) != sorted(set(scope)):
            return None
        self._remember(len(text))
        rows = shape[0] if len(shape) > 1 else 0
        self._about[text] = about = FactorSubject(
            scope, rows, shape[-1], math.prod(shape), of_weights(shape), written[rest]
        )
        return about

    def _remember(self, size: int) -> None:
        """Forget everything, where there is no room for so much more."""
        self._room -= size
        if self._room < 0:
            for known in self._beginnings.values():
                known.clear()
            self._weighed.clear()
            self._about.clear()
            self._intents.clear()
            self._room = _KEPT - size


class _Narrow(NamedTuple):
    """Matches products of weights on attributes with few values; and, for its groups, what stands before steps."""

    match: Callable[[str], re.Match[str] | None]
    before_steps: tuple[str, ...]


def _products(sizes: Mapping[str, int]) -> _Narrow:
    """Products of weights on attributes with few values, at a third of what each factor by itself takes.

    A group for each attribute has its weights where they are in steps, which are still to be judged.
    """
    some = {name: digits for name in sorted(sizes) if (digits := conditions_in_digits(sizes[name])) is not None}
    named = {name: f'{canonical(name)[1:-1]}{_SHAPE}[{sizes[name]}],"unit":' for name in some}
    each = [
        f"{re.escape(before)}(?:1{_WEIGHTS}{some[name]}|{GRID}{_WEIGHTS}({_LISTED}))" for name, before in named.items()
    ]
    between = re.escape(_BETWEEN)
    # Each may be left out, and none stands first behind what stands between two.
    match = re.compile("".join(f"(?:(?:^|(?<!^){between}){one})?" for one in each) or "(?!)").fullmatch
    return _Narrow(match, tuple(f"{before}{GRID}{_WEIGHTS}" for before in named.values()))


def _at(prices: Mapping[int, int], form: _Form) -> dict[int, _Ending]:
    return {unit: _Ending(ends.fullmatch, prices[unit]) for unit, ends in form.ends.items()}


def _alone(about: FactorSubject, weights: str) -> bool | None:
    """Whether these weights may stand by themselves. None of what are none."""
    _, rows, size, _, _, unit = about
    if unit == 1 and weights[0] == '"':
        digits = weights[1:-1]
        if weights[-1] != '"' or len(digits) > _DIGITS:
            return None
        return alone_in_rows(rows, size, digits) if rows else alone_in_digits(size, digits)
    if rows or len(weights) > _MOST_LISTED:
        return None
    if unit == 1:
        return alone_in_runs(size, decode(weights)) if _RUNS.fullmatch(weights) else None
    whole = weights.count(",") == size - 1 and _STEPS.fullmatch(weights)
    return alone_in_steps(size, decode(weights)) if whole else None


def _sayable(told: ToldQuery) -> bool:
    """Whether a free answer has words that can be printed, and bars that are some."""
    said = (told.note, *(about for _, about, _ in told.bars))
    words = all(one.isprintable() and len(one) <= _MOST_WORDS for one in said)
    return words and all(0 <= width < _LONG and _LEAST < confidence < 1 for width, _, confidence in told.bars)


def _read(decoded: Callable[[str], Form], text: str) -> Form | None:
    """What a text says, if it can be decoded and is in its one spelling."""
    try:
        read = decoded(text)
    except (MsgspecError, UnicodeError):
        return None
    # msgspec spells printable ASCII as `canonical` does, and what is beyond it in another way.
    quickly = text.isascii() and "\x7f" not in text and _encode(read) == text.encode()
    return read if quickly or canonical(to_builtins(read)) == text else None
