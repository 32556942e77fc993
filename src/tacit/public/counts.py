"""Entries that are counts, which a ledger may have a million of, judged by their text. Called by `check`.

What is said here is only ever yes: of a line that is not waved through, `check` finds out by the slow way whether it is
right, and says what is wrong with it. So everything here may be narrower than the format, and nothing wider.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec import MsgspecError
from msgspec.json import Decoder, Encoder, decode

from tacit.errors import TacitError
from tacit.exact.price import Sensitivity, price
from tacit.model.body import MeasuredCount, ToldCount
from tacit.model.factor import alone_in_digits, alone_in_runs, conditions_in_digits
from tacit.model.noise_law import Noise
from tacit.model.query import MOST_READ, query_key
from tacit.model.request import Declared
from tacit.public.work import MADE, Work
from tacit.store.chain import Sealed

_KEPT = 2**24  # characters of texts that are remembered: many questions share theirs
_WIDEST = 2**16  # values of an attribute whose conditions are no work: few characters may announce many more
_DIGITS = 4098  # characters of the weights of one condition, quotes included
_MOST_WORDS = 2**16  # characters of a note
_LEAST, _MOST = 1e-3, 1e15  # between which msgspec spells a number as `canonical` does
_LONG = 2**63  # whole numbers are of 64 bits

# A body is what stands before its conditions, the conditions, and the number that was released.
_BEFORE, _BETWEEN, _AFTER = '"factors":[{"scope":["', '},{"scope":["', '}],"kind":"query"}'
_NONE = '"factors":[],"kind":"query"}'
_WHOLE = "(0|-?[1-9][0-9]{0,17})"  # below 2^63 in size
_NAMED = re.compile(r'([ !#-\[\]-~]+)"\],"shape":\[([1-9][0-9]{0,7})\],"unit":1')
_WEIGHTS = ',"weights":'
_RUNS = re.compile(r"\[(0|[1-9][0-9]{0,7})(,[1-9][0-9]{0,7})+\]")


class Condition(NamedTuple):
    """A factor that is a condition on one attribute: some of its values meet it, others do not."""

    name: str
    size: int  # how many values the attribute has


class CountedBody(NamedTuple):
    """What a body says before its conditions: whether its question is a complement, and what it costs."""

    complement: bool
    atoms: int


class _Form(NamedTuple):
    """How bodies of one kind are read, the end of one of them, and what all their ends are."""

    read: Decoder[MeasuredCount] | Decoder[ToldCount]
    end: str
    ends: re.Pattern[str]


_FORMS = {
    "measured": _Form(
        Decoder(MeasuredCount), ',"unit":1,"values":[0]}', re.compile(rf',"unit":1,"values":\[{_WHOLE}\]\}}')
    ),
    "told": _Form(Decoder(ToldCount), ',"told":0}', re.compile(rf',"told":{_WHOLE}\}}')),
}
_encoder = Encoder()


class CountJudge:
    """Judges the counts among lines, about what was declared."""

    def __init__(self, public: Declared, work: Work) -> None:
        self._public, self._work = public, work
        self._wide = max(public.domain.sizes.values(), default=0) > _WIDEST
        self._beginnings: dict[str, dict[str, CountedBody]] = {kind: {} for kind in _FORMS}
        self._conditions = dict[str, Condition]()
        self._attributes = dict[str, tuple[str, int]]()
        self._narrow = _conjunctions(public.domain.sizes)
        self._room = _KEPT

    def judged(self, lines: Sequence[Sealed]) -> list[bool]:
        """For each line whether it is a count in its one spelling, with the key of its question, for its price.

        Guarantee: where it is, `decode` reads its body, `encode` writes it so again, the question is about the declared
            domain and in canonical form, the key is that of the question (not one beside it), the grid is that of
            counts, and the atoms are what the noise costs. Nothing is said of its intent and of its number.
        Formula: a body is beginning, conditions and end, each in its one spelling. Conditions on different attributes,
            in the order of their names, are a canonical query.
        """
        return [line.kind in _FORMS and self._right(line) for line in lines]

    def _right(self, line: Sealed) -> bool:
        kind = line.kind
        start, _, rest = line.body.partition(_BEFORE)
        factors, _, end = rest.rpartition(_AFTER)
        begun = self._beginnings[kind].get(start) or self._beginning(kind, start)
        if begun is None or begun.atoms != line.atoms or _FORMS[kind].ends.fullmatch(end) is None:
            return False
        if self._narrow(factors) is None and not self._conjunction(line, factors):
            return False
        if _BETWEEN not in factors and not self._alone(factors):
            return False
        return line.key == query_key(f'{{"scope":["{factors}}}'.encode(), complement=begun.complement)

    def _conjunction(self, line: Sealed, factors: str) -> bool:
        """Whether these are conditions on different attributes, in the order of their names, and can be read again."""
        before, weights = "", 0
        for text in factors.split(_BETWEEN):
            one = self._conditions.get(text) or self._condition(text)
            if one is None or one[0] <= before:
                return False
            before, size = one  # at once: names are read at thrice the price, and there are many of them
            weights += size
        return not self._wide or self._readable(line, weights)

    def _readable(self, line: Sealed, weights: int) -> bool:
        """Whether a question with so many weights can be read again, which is counted: a report reads all of them.

        `Query.from_dict` says what is wrong with one that cannot.
        """
        if weights > MOST_READ:
            return False
        self._work.take(line.seq, MADE * weights)
        return True

    def _beginning(self, kind: str, start: str) -> CountedBody | None:
        """What stands before the conditions of a body, if it is what this kind begins with, in its one spelling."""
        form = _FORMS[kind]
        text = start + _NONE + form.end  # a body without conditions
        if not _plain(text):
            return None
        try:
            read = form.read.decode(text)
        except MsgspecError:
            return None
        atoms = self._atoms(read) if _encoder.encode(read) == text.encode() else None
        if atoms is None:
            return None
        self._remember(len(text))
        self._beginnings[kind][start] = found = CountedBody(read.question.complement, atoms)
        return found

    def _atoms(self, form: MeasuredCount | ToldCount) -> int | None:
        """What an answer costs, if it is one."""
        if isinstance(form, MeasuredCount):
            return self._cost(form.noise.kind, form.noise.scale)
        said = (form.note, *(about for _, about, _ in form.bars))
        words = all(one.isprintable() and len(one) <= _MOST_WORDS for one in said)
        bars = all(0 <= width < _LONG and _LEAST < confidence < 1 for width, _, confidence in form.bars)
        return 0 if words and bars else None

    def _condition(self, text: str) -> Condition | None:
        """A factor, if it is a condition on one attribute of the domain, in its one spelling and in few characters."""
        if self._alone(text) is None:
            return None
        self._remember(len(text))
        self._conditions[text] = one = Condition(*self._attributes[text.rpartition(_WEIGHTS)[0]])
        return one

    def _alone(self, text: str) -> bool | None:
        """Whether a condition may stand by itself: in its canonical orientation it may. None of what is none."""
        about, _, weights = text.rpartition(_WEIGHTS)
        attribute = self._attributes.get(about) or self._attribute(about)
        if attribute is None or len(weights) > _DIGITS:
            return None
        if weights[:1] == weights[-1:] == '"':
            return alone_in_digits(attribute[1], weights[1:-1])
        return alone_in_runs(attribute[1], decode(weights)) if _RUNS.fullmatch(weights) else None

    def _attribute(self, text: str) -> tuple[str, int] | None:
        """The attribute of a condition and how many values it has, by what is written before its weights."""
        found = _NAMED.fullmatch(text)
        if found is None or self._public.domain.sizes.get(found[1]) != int(found[2]):
            return None
        self._attributes[text] = attribute = found[1], int(found[2])
        return attribute

    def _remember(self, size: int) -> None:
        """Forget everything, where there is no room for so much more."""
        self._room -= size
        if self._room < 0:
            for known in self._beginnings.values():
                known.clear()
            self._conditions.clear()
            self._room = _KEPT - size

    def _cost(self, kind: str, scale: float) -> int | None:
        """What a count costs in atoms, by its noise."""
        if not _LEAST < scale < _MOST:
            return None
        try:
            moves = Sensitivity(1, 1).times(self._public.rows_per_person)  # of every query that is not constant
            return price(Noise(kind, scale), moves, 1, self._public.total.measure).atoms  # type: ignore[arg-type]
        except (ValueError, TacitError):
            return None


def _conjunctions(sizes: Mapping[str, int]) -> Callable[[str], object]:
    """Matches all conjunctions of conditions on attributes with few values, at a third of what each by itself takes."""
    some = {name: digits for name in sorted(sizes) if (digits := conditions_in_digits(sizes[name])) is not None}
    plain = [name for name in some if _NAMED.fullmatch(f'{name}"],"shape":[1],"unit":1')]
    each = [f'{re.escape(name)}"\\],"shape":\\[{sizes[name]}\\],"unit":1,"weights":{some[name]}' for name in plain]
    between = re.escape(_BETWEEN)
    # Each may be left out, and none stands first behind what stands between two.
    return re.compile("".join(f"(?:(?:^|(?<!^){between}){one})?" for one in each) or "(?!)").fullmatch


def _plain(text: str) -> bool:
    """Whether msgspec spells it as `canonical` does: printable ASCII it does."""
    return text.isascii() and "\x7f" not in text
