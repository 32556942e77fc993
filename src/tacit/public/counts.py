"""Entries that are counts, which a ledger may have a million of, judged many at a time. Called by `check`.

What is said here is only ever yes: of a line that is not waved through, `check` finds out by the slow way whether it is
right, and says what is wrong with it. So everything here may be narrower than the format, and nothing wider.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from msgspec import MsgspecError, Raw, Struct
from msgspec.json import Decoder, Encoder

from tacit.errors import TacitError
from tacit.exact.price import Sensitivity, price
from tacit.model.factor import sealed_digits
from tacit.model.noise_law import Noise
from tacit.model.query import query_key
from tacit.model.request import Declared
from tacit.store.chain import Line

_FACTORS = 4096  # that are kept: many questions share theirs
_DIGITS = 4096  # of the weights of one
_MOST_WORDS = 2**16  # characters of a note
_LEAST, _MOST = 1e-3, 1e15  # between which msgspec spells a number as `canonical` does
_LONG = 2**63  # whole numbers are of 64 bits


class WrittenFactor(Struct, forbid_unknown_fields=True):
    """A factor as it is written, in the order of names."""

    scope: tuple[str, ...]
    shape: tuple[int, ...]
    unit: Literal[1]
    weights: str


class WrittenNoise(Struct, forbid_unknown_fields=True, gc=False):
    """Noise as it is written."""

    kind: str
    scale: float


class WrittenQuestion(Struct, forbid_unknown_fields=True, gc=False):
    """A question as it is written; each factor is looked at once, however many questions have it."""

    complement: bool
    factors: list[Raw]
    kind: Literal["query"]


class MeasuredCount(Struct, forbid_unknown_fields=True, gc=False):
    """What is written of a single count that was bought."""

    noise: WrittenNoise
    question: WrittenQuestion
    unit: Literal[1]
    values: list[int]


class ToldCount(Struct, forbid_unknown_fields=True, gc=False):
    """What is written of a single count that was told for nothing."""

    bars: list[tuple[int, str, float]]
    note: str
    question: WrittenQuestion
    told: int


class Condition(NamedTuple):
    """A factor that is a condition on one attribute: some of its values meet it, others do not."""

    name: str
    sealed: bytes  # what it adds to the key of a question
    alone: bool  # whether it is in its canonical orientation, where it is the only one


Form = MeasuredCount | ToldCount
Read = Callable[[str], Sequence[Form]]
_KINDS: dict[str, Read] = {"measured": Decoder(MeasuredCount).decode_lines, "told": Decoder(ToldCount).decode_lines}
_read_weights, _encoder = Decoder(WrittenFactor).decode, Encoder()


class CountJudge:
    """Judges the counts among lines, about what was declared."""

    def __init__(self, public: Declared) -> None:
        self._public = public
        self._conditions = dict[bytes, Condition]()
        self._cost = lru_cache(maxsize=_FACTORS)(self._cost_of)

    def judged(self, lines: Sequence[Line]) -> list[bool]:
        """For each line whether it is a count in its one spelling, with the key of its question, for its price.

        Guarantee: where it is, `decode` reads its body, `encode` writes it so again, the question is about the declared
            domain and in canonical form, the key is that of the question (not one beside it), the grid is that of
            counts, and the atoms are what the noise costs. Of its intent nothing is said, and of its number.
        Formula: a body is its fields, spelled by msgspec, which spells printable ASCII and numbers of this size as
            `canonical` does. Conditions on different attributes, in the order of their names, are a canonical query.
        """
        right = [False] * len(lines)
        for kind, read in _KINDS.items():
            places = [i for i, line in enumerate(lines) if line.kind == kind and '"kind":"query"}' in line.body]
            for i, form in zip(places, _forms([lines[i].body for i in places], read), strict=True):
                if form is not None:
                    right[i] = lines[i].key == self._key(form.question) and lines[i].atoms == self._atoms(form)
        return right

    def _key(self, asked: WrittenQuestion) -> str | None:
        """The key of a question, if its factors are conditions on different attributes as a query has them."""
        factors, one, before, seals = asked.factors, None, "", list[bytes]()
        for factor in factors:
            text = bytes(factor)
            one = self._conditions.get(text) or self._condition(text)
            if one is None or one.name <= before:
                return None
            before = one.name
            seals.append(one.sealed)
        if len(factors) > 1 or (one is not None and one.alone):
            return query_key(asked.complement, seals)
        return None

    def _atoms(self, form: Form) -> int | None:
        """What an answer costs, if it is one."""
        if isinstance(form, MeasuredCount):
            single = len(form.values) == 1 and -_LONG <= form.values[0] < _LONG
            return self._cost(form.noise.kind, form.noise.scale) if single else None
        said = (form.note, *(about for _, about, _ in form.bars))
        words = all(one.isprintable() and len(one) <= _MOST_WORDS for one in said)
        bars = all(0 <= width < _LONG and _LEAST < confidence < 1 for width, _, confidence in form.bars)
        return 0 if words and bars and -_LONG <= form.told < _LONG else None

    def _condition(self, text: bytes) -> Condition | None:
        """A factor, if it is a condition on one attribute of the domain, in its one spelling and in few digits."""
        try:
            form = _read_weights(text)
            size = self._public.domain.sizes.get(form.scope[0]) if len(form.scope) == 1 else None
            if size is None or form.shape != (size,) or len(form.weights) > _DIGITS or _encoder.encode(form) != text:
                return None
            found = sealed_digits(form.scope[0], size, form.weights)
        except (MsgspecError, ValueError):
            return None
        if found is None:
            return None
        if len(self._conditions) >= _FACTORS:
            self._conditions.clear()
        self._conditions[text] = one = Condition(form.scope[0], *found)
        return one

    def _cost_of(self, kind: str, scale: float) -> int | None:
        """What a count costs in atoms, by its noise."""
        if not _LEAST < scale < _MOST:
            return None
        try:
            moves = Sensitivity(1, 1).times(self._public.rows_per_person)  # of every query that is not constant
            return price(Noise(kind, scale), moves, 1, self._public.total.measure).atoms  # type: ignore[arg-type]
        except (ValueError, TacitError):
            return None


def _forms(bodies: Sequence[str], read: Read) -> Sequence[Form | None]:
    """Bodies as counts, each in its one spelling; None of any that is not. All are read at once, or half of them."""
    text = "\n".join(bodies)
    if text.isascii() and "\x7f" not in text:
        try:
            forms = read(text)
        except MsgspecError:
            forms = ()
        # Spelled alike all together, so one by one: what is written here has no line break within.
        if len(forms) == len(bodies) and _encoder.encode_lines(forms) == text.encode() + b"\n":
            return forms
    if len(bodies) < 2:
        return [None] * len(bodies)
    half = len(bodies) // 2
    return [*_forms(bodies[:half], read), *_forms(bodies[half:], read)]
