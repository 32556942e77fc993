"""Trusted words: how far off is a public guess? Order statistics of its errors over a public list of questions.

A list has one `Listed` for each set of attributes: the guess at their table, and conditions on each of them. What is
listed are conjunctions of these conditions, so that the errors of all of them are products of small matrices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.model.query import GRID

MAX_LISTED = 2**25  # questions of one list
MAX_STATISTICS = 64


@dataclass(frozen=True, eq=False)
class Listed:
    """Questions about some attributes, and a guess at the table of these attributes, in steps of the fine grid.

    conditions: for each attribute a matrix of 0 and 1: a condition in each row, a value in each column.
    paired: the i-th question joins the i-th condition on every attribute; else all combinations are asked.
    """

    names: tuple[str, ...]
    guess: NDArray[np.int64]
    conditions: tuple[NDArray[np.uint8], ...]
    paired: bool

    def __post_init__(self) -> None:
        # Copies that nobody else holds: what is checked is what is looked at.
        guess = np.array(self.guess, dtype=np.int64)
        conditions = tuple(np.array(one, dtype=np.uint8) for one in self.conditions)
        names = type(self.names) is tuple and all(type(name) is str for name in self.names)
        if not names or not 1 <= len(self.names) == len(set(self.names)) == len(conditions) == guess.ndim:
            raise InvalidQuery("a list of questions has a guess and conditions for each of its attributes.")
        if any(one.ndim != 2 or not one.size or one.max() > 1 for one in conditions):
            raise InvalidQuery("a condition gives every value of an attribute 0 or 1.")
        if tuple(one.shape[1] for one in conditions) != guess.shape:
            raise InvalidQuery("a guess has a count for each combination of values.")
        if guess.min() < 0 or guess.max() >= 2**52 or guess.sum(dtype=np.float64) >= 2**52:
            raise InvalidQuery("the counts of a guess are from 0, and fewer than 2^32 rows in all.")
        if self.paired and len({len(one) for one in conditions}) > 1:
            raise InvalidQuery("questions in pairs have as many conditions on each attribute.")
        guess.flags.writeable = False
        for one in conditions:
            one.flags.writeable = False
        object.__setattr__(self, "guess", guess)
        object.__setattr__(self, "conditions", conditions)

    @property
    def size(self) -> int:
        """How many questions there are."""
        return len(self.conditions[0]) if self.paired else math.prod(len(one) for one in self.conditions)

    def sums(self, table: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each question, the sum of the cells of a table that meet its conditions. Exact below 2^53, in floats."""
        found = table.astype(np.float64)
        if self.paired:
            found = np.tensordot(self.conditions[0].astype(np.float64), found, axes=(1, 0))
            for one in self.conditions[1:]:
                found = np.einsum("qv...,qv->q...", found, one.astype(np.float64))
        else:
            for one in self.conditions:  # each time the first axis is answered and becomes the last
                found = np.tensordot(found, one.astype(np.float64), axes=(0, 1))
        return found.ravel().astype(np.int64)


@dataclass(frozen=True)
class Certificate:
    """The errors of a guess, in order, over a list of questions: those at some ranks, from 1 to the number of them.

    base: which guess it is, and `kind`, which list, up to how many attributes: words for those who made them.
    steps: (from, rows): of a guess of so many rows or more, so many rows of error are not counted. With them a figure
        follows the size of the answer: a public function of the guess, taken off before the errors are put in order.
    lists: the questions themselves, for whoever has them measured. Its identity is in the words.
    """

    base: str
    kind: str
    attributes: int
    questions: int
    ranks: tuple[int, ...]
    steps: tuple[tuple[int, int], ...] = ()
    lists: tuple[Listed, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ranks", tuple(self.ranks))
        object.__setattr__(self, "steps", tuple(tuple(step) for step in self.steps))
        object.__setattr__(self, "lists", tuple(self.lists))
        numbers = [self.attributes, self.questions, *self.ranks, *(number for step in self.steps for number in step)]
        words = type(self.base) is type(self.kind) is str and len(self.base) + len(self.kind) < 1000
        if not words or not all(type(number) is int and 0 <= number < 2**40 for number in numbers):
            raise InvalidQuery("a certificate is about a guess and a list, both named, in whole numbers.")
        if not 1 <= self.questions <= MAX_LISTED or not 1 <= len(self.ranks) <= MAX_STATISTICS:
            raise InvalidQuery(f"a certificate has 1 to {MAX_STATISTICS} figures on at most {MAX_LISTED:,} questions.")
        if not all(1 <= rank <= self.questions for rank in self.ranks):
            raise InvalidQuery(f"the ranks of {self.questions:,} errors are 1 to {self.questions:,}.")
        froms = [start for start, _ in self.steps]
        if any(len(step) != 2 for step in self.steps) or froms != sorted(set(froms)):
            raise InvalidQuery("the steps of a certificate rise.")

    def check(self, domain: Domain) -> None:
        """Refuse a list that is not about this domain, or is not the one that was announced."""
        for one in self.lists:
            if not all(name in domain for name in one.names):
                raise InvalidQuery(f"the list is about attributes other than {', '.join(domain)}.")
            if one.guess.shape != tuple(domain[name].size for name in one.names):
                raise InvalidQuery("the list was made for another domain.")
        if self.lists and sum(one.size for one in self.lists) != self.questions:
            raise InvalidQuery("the list has another number of questions than its certificate says.")

    def size(self, domain: Domain) -> int:
        """How many numbers are released."""
        return len(self.ranks)

    def offset(self, guesses: NDArray[Any]) -> NDArray[np.int64]:
        """The rows of error that are not counted, for guesses in grid steps of whole questions."""
        if not self.steps:
            return np.zeros(np.shape(guesses), dtype=np.int64)
        froms = np.array([start for start, _ in self.steps], dtype=np.int64) * GRID
        rows = np.array([0, *(rows for _, rows in self.steps)], dtype=np.int64)
        found: NDArray[np.int64] = rows[np.searchsorted(froms, guesses, side="right")]
        return found


def form(certificate: Certificate) -> dict[str, Any]:
    """Its JSON form, without the list."""
    return {
        "kind": "certificate",
        "base": certificate.base,
        "list": certificate.kind,
        "attributes": certificate.attributes,
        "questions": certificate.questions,
        "ranks": list(certificate.ranks),
        "steps": [list(step) for step in certificate.steps],
    }


def from_form(form: dict[str, Any]) -> Certificate:
    steps = tuple((start, rows) for start, rows in form["steps"])
    names = form["base"], form["list"], form["attributes"], form["questions"]
    return Certificate(*names, tuple(form["ranks"]), steps)
