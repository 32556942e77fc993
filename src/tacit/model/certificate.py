"""Trusted words: how far off is a public guess? Order statistics of its errors over a public list of questions.

A list has one `Conjunctions` for each set of attributes: the guess at their table, and conditions on each one. What is
asked are conjunctions of these conditions, so that the errors of all of them are products of small matrices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.model.factor import GRID, frozen

MAX_LISTED_QUESTIONS = 2**25  # questions of one list
MOST_STEPS = 2**62  # grid steps of all rows: as many as a table may have
MOST_GUESSED = MOST_STEPS * 3 // 2  # grid steps of a guess; what is between it and the rows stays below 2^63
MOST_WEIGHED = 2**22  # values of a weighted attribute: so many grid steps times a weight stay below 2^62
MAX_STATISTICS = 64
_AS_ONE = 2**53  # steps that floats add up exactly
_AT_ONCE = 2**22  # numbers that are worked on together


@dataclass(frozen=True, eq=False)
class Conjunctions:
    """Questions about some attributes, and a guess at the table of these attributes, in steps of the fine grid.

    conditions: for each attribute a matrix of 0 and 1: a condition in each row, a value in each column.
    paired: the i-th question joins the i-th condition on every attribute; else all combinations are asked.
    weights: of each value of the last attribute, from 0 to GRID, which then has no conditions: weighted counts.
    """

    names: tuple[str, ...]
    guess: NDArray[np.int64]
    conditions: tuple[NDArray[np.uint8], ...]
    paired: bool
    weights: NDArray[np.int64] | None = None

    def __post_init__(self) -> None:
        guess = _whole(self.guess, np.int64)
        conditions = tuple(_whole(one, np.uint8) for one in self.conditions)
        weights = None if self.weights is None else _whole(self.weights, np.int64)
        names = type(self.names) is tuple and all(type(name) is str for name in self.names)
        sides = len(conditions) + (weights is not None)
        if not names or not 1 <= len(self.names) == len(set(self.names)) == sides == guess.ndim:
            raise InvalidQuery("a list of questions has a guess and conditions for each of its attributes.")
        if any(one.ndim != 2 or not one.size or one.max() > 1 for one in conditions):
            raise InvalidQuery("a condition gives every value of an attribute 0 or 1.")
        if weights is not None and weights.size > MOST_WEIGHED:
            raise InvalidQuery(f"at most {MOST_WEIGHED:,} values are weighed, not {weights.size:,}.")
        if weights is not None and (weights.ndim != 1 or not weights.size or min(weights) < 0 or max(weights) > GRID):
            raise InvalidQuery("the weights of values lie between 0 and 1, all of them.")
        if (*(one.shape[1] for one in conditions), *(() if weights is None else weights.shape)) != guess.shape:
            raise InvalidQuery("a guess has a count for each combination of values.")
        if guess.min() < 0 or guess.sum(dtype=np.float64) >= MOST_GUESSED:
            raise InvalidQuery("the counts of a guess are from 0, and fewer than 1.5 times the rows of any table.")
        if type(self.paired) is not bool or (self.paired and len({len(one) for one in conditions}) > 1):
            raise InvalidQuery("questions in pairs have as many conditions on each attribute.")
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "guess", guess)
        object.__setattr__(self, "conditions", conditions)

    def __reduce__(self) -> tuple[type[Conjunctions], tuple[object, ...]]:
        return Conjunctions, (self.names, self.guess, self.conditions, self.paired, self.weights)  # checked again

    @property
    def size(self) -> int:
        """How many questions there are."""
        if self.paired and self.conditions:
            return len(self.conditions[0])
        return math.prod(len(one) for one in self.conditions)

    def fits(self, shape: tuple[int, ...]) -> bool:
        """Whether it is about tables of this shape, and as it was checked: the bytes of a frozen array cannot be
        changed, but it can be told that they are numbers of another type.
        """
        weighed = () if self.weights is None else (self.weights,)
        return (
            self.guess.shape == shape
            and all(one.shape == shape[-1:] for one in weighed)
            and all(one.dtype == np.int64 for one in (self.guess, *weighed))
            and all(one.dtype == np.uint8 and one.ndim == 2 for one in self.conditions)
            and all(one.shape[1] == size for one, size in zip(self.conditions, shape, strict=False))
        )

    def sums(self, table: NDArray[np.int64], less: NDArray[np.int64] | int = 0) -> NDArray[np.int64]:
        """For each question, the sum of the cells that meet its conditions, weighted ones rounded down; of a table in
        grid steps, less those of another. Both have numbers from 0.

        Exact. Floats add up whole numbers below 2^53, in any order. Where both tables have more together, whole rows
        are added up by themselves, and what is left in each cell, less than a row, by itself. Which of the two it is
        tells nothing: how many rows there are is public, and so is a guess.
        """
        as_one = int(table.sum()) + int(np.sum(less)) < _AS_ONE
        table = table - less
        parts = [part.astype(np.float64) for part in ([table] if as_one else np.divmod(table, GRID))]
        if self.paired and self.conditions:
            # The longest side first: what is left of the table for each question is smallest then.
            sides = sorted(range(len(self.conditions)), key=lambda axis: -table.shape[axis])
            parts = [part.transpose([*sides, *range(len(sides), table.ndim)]) for part in parts]
            longest = parts[0].shape[0]
            block = max(1, _AT_ONCE // max(longest, table.size // longest))
            blocks = [slice(i, i + block) for i in range(0, self.size, block)]
            return np.concatenate([self._joined([self._paired(part, sides, one) for part in parts]) for one in blocks])
        return self._joined([self._crossed(part) for part in parts])

    def _paired(self, table: NDArray[np.float64], sides: list[int], some: slice) -> NDArray[np.float64]:
        first, *others = (self.conditions[side][some].astype(np.float64) for side in sides)
        found = np.tensordot(first, table, axes=(1, 0))
        for one in others:
            found = np.einsum("qv...,qv->q...", found, one)
        return found

    def _crossed(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        for one in self.conditions:  # each time the first axis is answered and becomes the last
            table = np.tensordot(table, one.astype(np.float64), axes=(0, 1))
        # The weighted attribute has come to the front.
        return table if self.weights is None else np.moveaxis(table, 0, -1)

    def _joined(self, parts: list[NDArray[np.float64]]) -> NDArray[np.int64]:
        """Sums in grid steps, of steps alone or of rows and steps."""
        *rows, steps = (part.astype(np.int64) for part in parts)
        if self.weights is None:
            return np.ravel(rows[0] * GRID + steps if rows else steps)
        # Steps that make up a row are one: what is left is below GRID, so that its products fit as well.
        carried, left = steps >> GRID.bit_length() - 1, steps & GRID - 1  # np.divmod, as GRID is a power of two
        return np.ravel((rows[0] + carried if rows else carried) @ self.weights + (left @ self.weights) // GRID)


@dataclass(frozen=True)
class Certificate:
    """The errors of a guess, in order, over a list of questions: those at some ranks, from 1 to the number of them.

    base: which guess it is, and `kind`, which list, up to how many attributes: words for those who made them.
    steps: (from, rows): of a guess of `from` rows or more, `rows` rows of error are not counted. With them a figure
        follows the size of the answer: a public function of the guess, taken off before the errors are put in order.
    lists: the questions themselves, for whoever has them measured. Its identity is in the words.
    """

    base: str
    kind: str
    attributes: int
    questions: int
    ranks: tuple[int, ...]
    steps: tuple[tuple[int, int], ...] = ()
    lists: tuple[Conjunctions, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ranks", tuple(self.ranks))
        object.__setattr__(self, "steps", tuple(tuple(step) for step in self.steps))
        object.__setattr__(self, "lists", tuple(self.lists))
        numbers = [self.attributes, self.questions, *self.ranks, *(number for step in self.steps for number in step)]
        words = type(self.base) is type(self.kind) is str and len(self.base) + len(self.kind) < 1000
        if not words or not all(type(number) is int and 0 <= number < 2**42 for number in numbers):
            raise InvalidQuery("a certificate is about a guess and a list, both named, in whole numbers.")
        if not 1 <= self.questions <= MAX_LISTED_QUESTIONS or not 1 <= len(self.ranks) <= MAX_STATISTICS:
            raise InvalidQuery(
                f"a certificate has 1 to {MAX_STATISTICS} figures on at most {MAX_LISTED_QUESTIONS:,} questions."
            )
        if not all(1 <= rank <= self.questions for rank in self.ranks):
            raise InvalidQuery(f"the ranks of {self.questions:,} errors are 1 to {self.questions:,}.")
        froms = [start for start, _ in self.steps]
        if any(len(step) != 2 for step in self.steps) or froms != sorted(set(froms)):
            raise InvalidQuery("the steps of a certificate rise.")
        if not all(type(one) is Conjunctions for one in self.lists):
            raise InvalidQuery("the lists of a certificate are lists of conjunctions.")

    @property
    def each(self) -> tuple[Certificate]:
        """It alone, as one of several: see `Certificates`."""
        return (self,)

    def check(self, domain: Domain) -> None:
        """Refuse a list that is not about this domain, or is not the one that was announced."""
        for one in self.lists:
            if not all(name in domain for name in one.names):
                raise InvalidQuery(f"the list is about attributes other than {', '.join(domain)}.")
            if not one.fits(domain.shape_of(one.names)):
                raise InvalidQuery("the list was made for another domain.")
        if self.lists and sum(one.size for one in self.lists) != self.questions:
            raise InvalidQuery("the list has another number of questions than its certificate says.")

    def exact(self, rows: int) -> bool:
        """Whether there is a list, and sums over that many rows are exact."""
        return bool(self.lists) and rows * GRID < MOST_STEPS

    def size(self, domain: Domain) -> int:
        """How many numbers are released."""
        return len(self.ranks)

    def to_dict(self) -> dict[str, Any]:
        """Its JSON form, without the list."""
        return {
            "base": self.base,
            "list": self.kind,
            "attributes": self.attributes,
            "questions": self.questions,
            "ranks": list(self.ranks),
            "steps": [list(step) for step in self.steps],
        }

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> Certificate:
        steps = tuple((start, rows) for start, rows in form["steps"])
        return cls(form["base"], form["list"], form["attributes"], form["questions"], tuple(form["ranks"]), steps)

    def offset(self, guesses: NDArray[Any]) -> NDArray[np.int64]:
        """The rows of error that are not counted, for guesses in grid steps of whole questions."""
        if not self.steps:
            return np.zeros(np.shape(guesses), dtype=np.int64)
        froms = np.array([start for start, _ in self.steps], dtype=np.int64) * GRID
        rows = np.array([0, *(rows for _, rows in self.steps)], dtype=np.int64)
        found: NDArray[np.int64] = rows[np.searchsorted(froms, guesses, side="right")]
        return found


@dataclass(frozen=True)
class Certificates:
    """The largest figure of several certificates of one guess, each of one rank: one number that holds for all."""

    each: tuple[Certificate, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "each", tuple(self.each))
        if not 1 <= len(self.each) <= MAX_STATISTICS or not all(type(one) is Certificate for one in self.each):
            raise InvalidQuery(f"1 to {MAX_STATISTICS} certificates have a largest figure.")
        if any(len(one.ranks) != 1 for one in self.each) or len({one.base for one in self.each}) > 1:
            raise InvalidQuery("certificates that are taken together have one rank each, and are of the same guess.")

    @property
    def questions(self) -> int:
        return sum(one.questions for one in self.each)

    def check(self, domain: Domain) -> None:
        """Refuse what `Certificate.check` refuses of one of them."""
        for one in self.each:
            one.check(domain)

    def exact(self, rows: int) -> bool:
        """Whether all of them have a list, and sums over that many rows are exact."""
        return all(one.exact(rows) for one in self.each)

    def size(self, domain: Domain) -> int:
        """How many numbers are released."""
        return 1

    def to_dict(self) -> dict[str, Any]:
        """Their JSON form, without the lists."""
        return {"each": [one.to_dict() for one in self.each]}

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> Certificates:
        return cls(tuple(Certificate.from_dict(one) for one in form["each"]))


def _whole(values: Any, kind: type[np.integer[Any]]) -> NDArray[Any]:
    made = np.asarray(values)
    if made.dtype.kind not in "iu":
        raise InvalidQuery("the numbers of a list are whole.")
    if made.size and not (np.iinfo(kind).min <= int(made.min()) and int(made.max()) <= np.iinfo(kind).max):
        raise InvalidQuery("a number of a list is too large.")
    return frozen(made, kind)
