"""Arithmetic over released values and where the truth lies: columns of numbers, of truths and of texts.

A column of numbers has a value for each row and an interval that holds its true value wherever the intervals that it
was made of hold theirs. Ends are rounded outwards, so that holds for the numbers of the machine too. Where the truth
may not exist (something is divided by what may be 0), or nothing is known of it, the interval is without ends. NaN is
SQL's NULL; where the truth is NULL for certain, both ends are NaN too. Everything is post-processing of released
values: a bug here costs accuracy, never privacy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Wholes = NDArray[np.int64]


class Spans(NamedTuple):
    """A number for each row: its value, and the ends of the interval that holds the truth."""

    value: Floats
    low: Floats
    high: Floats

    @classmethod
    def exact(cls, number: float, rows: int) -> Spans:
        """The same number in every row, which is the truth."""
        return cls.known(np.full(rows, float(number)))

    @classmethod
    def known(cls, values: Floats) -> Spans:
        """Numbers, or NULLs, that are the truth themselves."""
        return cls(values, values, values)

    @classmethod
    def none(cls, rows: int) -> Spans:
        """NULL in every row, for certain."""
        return cls.known(np.full(rows, np.nan))

    @classmethod
    def unknown(cls, rows: int) -> Spans:
        """NULL in every row, where the truth may be anything."""
        return cls(np.full(rows, np.nan), np.full(rows, -np.inf), np.full(rows, np.inf))

    @property
    def gone(self) -> Bools:
        """Where the truth is NULL for certain."""
        return np.isnan(self.low)

    @property
    def bounded(self) -> Bools:
        """Where the interval has two ends: the truth exists, and something is known of it."""
        return np.isfinite(self.low) & np.isfinite(self.high)

    @property
    def error(self) -> Floats:
        """How far the value can be from the truth; infinite where nothing is known. NULL for certain is the truth."""
        with np.errstate(invalid="ignore"):
            off = np.maximum(_added(self.high, -self.value, np.inf), _added(self.value, -self.low, np.inf))
        return np.where(self.bounded & ~np.isnan(off), np.maximum(off, 0.0), np.where(self.gone, 0.0, np.inf))

    def at(self, rows: Wholes) -> Spans:
        return Spans(*(column[rows] for column in self))


class Verdicts(NamedTuple):
    """Whether a condition holds in each row, by the values (1, 0, and -1 for unknown), and what the truth may be."""

    value: Wholes
    true: Bools
    false: Bools
    null: Bools

    @classmethod
    def known(cls, value: NDArray[Any]) -> Verdicts:
        found = np.asarray(value, dtype=np.int64)
        return cls(found, found == 1, found == 0, found < 0)

    @property
    def unsure(self) -> Bools:
        """Where the truth may meet what the value fails, or the other way round."""
        return np.where(self.value == 1, self.false | self.null, self.true)

    def at(self, rows: Wholes) -> Verdicts:
        return Verdicts(self.value[rows], self.true[rows], self.false[rows], self.null[rows])


class Texts(NamedTuple):
    """A text for each row, what it is sorted by, and whether the truth may have another one."""

    text: NDArray[np.object_]
    rank: NDArray[Any]
    unsure: Bools

    @classmethod
    def of(cls, texts: Sequence[str], rank: Sequence[int] | None = None) -> Texts:
        """Texts that are known, sorted by themselves or by a rank."""
        column = np.empty(len(texts), dtype=np.object_)
        column[:] = texts
        return cls(column, column if rank is None else np.asarray(rank), np.zeros(len(texts), dtype=np.bool_))

    def at(self, rows: Wholes) -> Texts:
        return Texts(self.text[rows], self.rank[rows], self.unsure[rows])


Values = Spans | Verdicts | Texts


def _added(a: Floats, b: Floats, towards: float) -> Floats:
    """A sum of ends, moved `towards` infinity by its last digit where the machine rounded it: whole numbers stay so."""
    total = a + b
    back = total - a
    lost = (a - (total - back)) + (b - back)  # Knuth's two-sum: what the machine's sum leaves out, exactly
    return np.where(lost == 0, total, np.nextafter(total, towards))


def _outward(value: Floats, low: Floats, high: Floats) -> Spans:
    """A result with its ends rounded outwards; an end that is no number is no end."""
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    return Spans(value, np.nextafter(low, -np.inf), np.nextafter(high, np.inf))


def _unless(possible: Bools, found: Spans) -> Spans:
    """The result where the truth certainly exists, and no ends elsewhere."""
    return Spans(found.value, np.where(possible, found.low, -np.inf), np.where(possible, found.high, np.inf))


def _null(where: Bools, found: Spans) -> Spans:
    """The result, and NULL for certain in some rows."""
    return Spans(*(np.where(where, np.nan, part) for part in found))


def of_numbers(*columns: Spans, found: Spans) -> Spans:
    """The result of a function that is NULL wherever one of its arguments is."""
    return _null(np.any([column.gone for column in columns], axis=0), found)


def countable(found: Spans) -> Spans:
    """The result; NULL, with nothing known of the truth, where it is too large for a number of the machine."""
    beyond = np.isinf(found.value)
    return _unless(~beyond, found._replace(value=np.where(beyond, np.nan, found.value))) if beyond.any() else found


def plus(a: Spans, b: Spans) -> Spans:
    ends = _added(a.low, b.low, -np.inf), _added(a.high, b.high, np.inf)
    return _unless(a.bounded & b.bounded, Spans(a.value + b.value, *ends))


def around(value: Floats, error: Floats, least: float, most: float) -> Spans:
    """Values with their error bars, cut to what they can be at all; no ends where a bar is infinite."""
    with np.errstate(invalid="ignore"):
        low, high = _added(value, -error, -np.inf), _added(value, error, np.inf)
    low, high = np.minimum(np.maximum(low, least), most), np.maximum(np.minimum(high, most), least)
    return _unless(np.isfinite(error), Spans(value, low, high))


def negative(a: Spans) -> Spans:
    return Spans(-a.value, -a.high, -a.low)


def minus(a: Spans, b: Spans) -> Spans:
    return plus(a, negative(b))


def times(a: Spans, b: Spans) -> Spans:
    ends = np.array([x * y for x in (a.low, a.high) for y in (b.low, b.high)])
    found = _outward(a.value * b.value, ends.min(axis=0), ends.max(axis=0))
    # A product of whole numbers that the machine can count up to is one of them.
    whole = np.all([np.floor(end) == end for end in (a.low, a.high, b.low, b.high)], axis=0)
    whole &= np.abs(ends).max(axis=0) < 2.0**53
    low, high = (np.where(whole, np.rint(end), end) for end in (found.low, found.high))
    return _unless(a.bounded & b.bounded, Spans(found.value, low, high))


def over(a: Spans, b: Spans) -> Spans:
    """A quotient; NULL where the value below is 0, and no interval where the truth below may be."""
    away = (b.low > 0) | (b.high < 0)
    below = [np.where(away, end, 1.0) for end in (b.low, b.high)]
    ends = np.array([x / y for x in (a.low, a.high) for y in below])
    value = np.divide(a.value, b.value, out=np.full_like(a.value, np.nan), where=b.value != 0)
    found = _unless(away & a.bounded & b.bounded, _outward(value, ends.min(axis=0), ends.max(axis=0)))
    return _null((b.low == 0) & (b.high == 0), found)


def absolute(a: Spans) -> Spans:
    low = np.where(a.low > 0, a.low, np.where(a.high < 0, -a.high, 0.0))
    return _unless(a.bounded, Spans(np.abs(a.value), low, np.maximum(np.abs(a.low), np.abs(a.high))))


def _rising(function: Callable[[Floats], Floats], ulps: int = 0) -> Callable[[Spans], Spans]:
    """A function that never falls, of a column: the ends of its interval are those of the column's.

    `ulps`: how far the machine's function may be from the real one.
    """

    def applied(a: Spans) -> Spans:
        low, high = (function(np.where(a.bounded, end, 0.0)) for end in (a.low, a.high))
        off = [ulps * np.spacing(np.abs(np.where(np.isfinite(end), end, 0.0))) for end in (low, high)]
        return _unless(a.bounded, _outward(function(a.value), low - off[0], high + off[1]))

    return applied


def _domain(function: Callable[[Spans], Spans], least: Callable[[Floats], Bools]) -> Callable[[Spans], Spans]:
    """The same for a function that only some numbers have: elsewhere it is NULL, and has no interval."""

    def applied(a: Spans) -> Spans:
        safe = Spans(np.where(least(a.value), a.value, np.nan), *(np.where(least(a.low), e, 1.0) for e in a[1:]))
        return _null(a.bounded & ~least(a.high), _unless(least(a.low) & a.bounded, function(safe)))

    return applied


floor, ceiling = _rising(np.floor), _rising(np.ceil)
exponential = _rising(np.exp, ulps=4)
root = _domain(_rising(np.sqrt), lambda x: x >= 0)
logarithm = _domain(_rising(np.log, ulps=4), lambda x: x > 0)


def rounded(a: Spans, digits: int) -> Spans:
    """Rounded to a number of digits; halves away from 0, as in SQL."""
    scale = 10.0**digits
    return _rising(lambda x: np.copysign(np.floor(np.abs(x) * scale + 0.5) / scale, x))(a)


def power(a: Spans, exponent: int) -> Spans:
    """A whole power from 1 on."""
    ends = np.array([a.low**exponent, a.high**exponent])
    low = np.where((a.low < 0) & (a.high > 0) & (exponent % 2 == 0), 0.0, ends.min(axis=0))
    # A power is rounded by more than its last digit, unlike a product.
    off = exponent * np.finfo(np.float64).eps * np.abs(ends).max(axis=0)
    return _unless(a.bounded, _outward(a.value**exponent, low - off, ends.max(axis=0) + off))


def least(*columns: Spans) -> Spans:
    """The least of several; NULLs are passed over."""
    found = columns[0]
    for other in columns[1:]:
        # Of one that is NULL for certain nothing is left but the other.
        left, right = (
            Spans(a.value, *(np.where(a.gone, y, x) for x, y in zip(a[1:], b[1:], strict=True)))
            for a, b in ((found, other), (other, found))
        )
        ends = np.minimum(left.low, right.low), np.minimum(left.high, right.high)
        made = _unless(left.bounded & right.bounded, Spans(np.fmin(found.value, other.value), *ends))
        found = _null(found.gone & other.gone, made)
    return found


def greatest(*columns: Spans) -> Spans:
    return negative(least(*map(negative, columns)))


def first_known(*columns: Spans) -> Spans:
    """COALESCE. What has an interval exists, so nothing after it matters."""
    found = columns[-1]
    for other in reversed(columns[:-1]):
        value = np.where(np.isnan(other.value), found.value, other.value)
        # The truth may be there where the released value is not, and the other way round: then nothing is known.
        known = _unless(other.bounded, Spans(value, other.low, other.high))
        ends = (np.where(other.gone, next_, end) for next_, end in zip(found[1:], known[1:], strict=True))
        found = Spans(value, *ends)
        found = _null(found.gone, found)
    return found


def null_if(a: Spans, b: Spans) -> Spans:
    """NULLIF: NULL where the two are equal."""
    apart = (b.bounded & ((a.low > b.high) | (a.high < b.low))) | b.gone
    found = _unless(apart & a.bounded, Spans(np.where(a.value == b.value, np.nan, a.value), a.low, a.high))
    points = (a.low == a.high) & (b.low == b.high)
    return _null(a.gone | (points & (a.low == b.low)), found)


# -- conditions -------------------------------------------------------------------------------------------------------


def _judged(value: Bools, true: Bools, false: Bools, a: Spans, b: Spans) -> Verdicts:
    """A comparison of two columns; where nothing is known of a side, it may come out in any way."""
    null, gone = np.isnan(a.value) | np.isnan(b.value), a.gone | b.gone
    open_ = ~(a.bounded & b.bounded) & ~gone
    return Verdicts(
        np.where(null, -1, value.astype(np.int64)), (true | open_) & ~gone, (false | open_) & ~gone, open_ | gone
    )


def below(a: Spans, b: Spans, *, equal: bool) -> Verdicts:
    """a < b, or a <= b with `equal`."""
    compare = np.less_equal if equal else np.less
    return _judged(compare(a.value, b.value), compare(a.low, b.high), ~compare(a.high, b.low), a, b)


def same(a: Spans, b: Spans) -> Verdicts:
    meet = (a.low <= b.high) & (b.low <= a.high)
    points = (a.low == a.high) & (b.low == b.high)
    return _judged(a.value == b.value, meet, ~(points & meet), a, b)


def same_text(a: Texts, b: Texts) -> Verdicts:
    found = np.asarray(a.text == b.text, dtype=np.bool_)
    unsure = a.unsure | b.unsure
    return Verdicts(found.astype(np.int64), found | unsure, ~found | unsure, np.zeros_like(found))


def missing(a: Spans) -> Verdicts:
    """IS NULL. Where there is an interval the truth exists."""
    null = np.isnan(a.value)
    return Verdicts(null.astype(np.int64), ~a.bounded, ~a.gone, np.zeros_like(null))


def negated(a: Verdicts) -> Verdicts:
    return Verdicts(np.where(a.value < 0, -1, 1 - a.value), a.false, a.true, a.null)


def both(a: Verdicts, b: Verdicts) -> Verdicts:
    value = np.where((a.value == 0) | (b.value == 0), 0, np.where((a.value < 0) | (b.value < 0), -1, 1))
    null = (a.null & (b.true | b.null)) | (b.null & (a.true | a.null))
    return Verdicts(value, a.true & b.true, a.false | b.false, null)


def either(a: Verdicts, b: Verdicts) -> Verdicts:
    return negated(both(negated(a), negated(b)))


def chosen(condition: Verdicts, then: Spans, otherwise: Spans) -> Spans:
    """CASE: the interval of the branch that the truth takes; of both together where it may take either."""
    fails = condition.false | condition.null
    low, high = (
        np.where(condition.true, np.where(fails, wider(a, b), a), b)
        for wider, a, b in ((np.minimum, then.low, otherwise.low), (np.maximum, then.high, otherwise.high))
    )
    # Where one of both is NULL the truth may not exist.
    perhaps = condition.true & fails & (then.gone != otherwise.gone)
    found = _unless(~perhaps, Spans(np.where(condition.value == 1, then.value, otherwise.value), low, high))
    return _null(found.gone, found)


def chosen_text(condition: Verdicts, then: Texts, otherwise: Texts) -> Texts:
    met = condition.value == 1
    text = np.where(met, then.text, otherwise.text)
    return Texts(text, text, condition.unsure | np.where(met, then.unsure, otherwise.unsure))
