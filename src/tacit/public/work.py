"""How much work the entries of a published file are, counted before it is done. Called by `check` and `quick`.

A few characters of a question may announce millions of weights, and entries that were told for nothing are as many as
the writer of a file likes. So all entries together have so many steps, by the size of their file. A step is what a
processor does in about a nanosecond; no clock is read, and every machine refuses the same files.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from msgspec import MsgspecError
from msgspec.json import Decoder

from tacit.model.body import Announced, Announcement
from tacit.model.domain import Domain
from tacit.model.factor import MAX_JOINED
from tacit.model.query import MOST_READ
from tacit.store.chain import Sealed

MOST_READ_STEPS, PER_BYTE = 2**32, 2**10  # steps of any file, and more for each of its bytes
MADE = 4  # steps for a weight that is made, looked at, written and perhaps kept
NEXT_KEY = 2**11  # steps from a key to the one beside it

_TIED, _SET = 50, 15_000  # steps for a weight of a table over several attributes, and for each set of these
_RESIDUALS = ((12, 40), (20, 4))  # up to so many attributes, steps for each of them and each set of them
_TRIED, _ENTRY = 6, 200  # attributes of a residual, and steps for each kind of its entries: 5 for each attribute
_ASKING = ("measured", "told", "chosen", "compared", "discovered")  # entries that have questions


_read = Decoder(Announcement).decode


class TooMuch(Exception):
    """A file is more work than one of its size may be."""


class Work:
    """What is left of the steps that a file of this many bytes may take."""

    def __init__(self, size: int, *, unlimited: bool = False) -> None:
        self.most = self.left = math.inf if unlimited else MOST_READ_STEPS + PER_BYTE * size

    def take(self, seq: int, steps: int) -> None:
        """Count steps for an entry. Refused before they are done, where there are not so many left."""
        if steps > self.left:
            raise TooMuch(f"entry {seq} takes about {steps:,} steps, and {self.left:,} of {self.most:,} are left")
        self.left -= steps


def steps_of(line: Sealed, domain: Domain) -> int:
    """The steps that it takes to make the question of an entry and to find its key and its price."""
    if line.kind not in _ASKING:
        return 0
    try:
        body = _read(line.body)
    except (MsgspecError, UnicodeError, RecursionError):
        return MADE * MOST_READ  # no question is more work, and one that is written so is refused
    if body.measured is not None:  # it is about a domain of its own
        return _steps(body.measured.question, {})
    return _steps(body.question, domain.sizes)


def _steps(asked: Announced | None, sizes: Mapping[str, int]) -> int:
    if asked is None:
        return 0
    weights = sum(of_weights(factor.shape) for factor in asked.factors)
    return weights + _of_residuals(asked.scopes, sizes) + (0 if asked.where is None else _steps(asked.where, sizes))


def of_weights(shape: Sequence[int]) -> int:
    """Steps for a factor: a table over several attributes is tried for being a product of smaller ones."""
    if not 0 < len(shape) <= MAX_JOINED or not all(0 < size <= MOST_READ for size in shape):
        return 0  # it is refused before anything is made of it
    if len(shape) == 1:
        return MADE * shape[0]
    return _TIED * min(math.prod(shape), MOST_READ) + (_SET << len(shape))


def _of_residuals(scopes: list[list[str]], sizes: Mapping[str, int]) -> int:
    """Steps for the sensitivity of residuals: over all sets of their attributes, and over the entries of each table.

    Tables of the same sizes are looked at once.
    """
    attributes = len({name for scope in scopes for name in scope})
    each = next((steps for most, steps in _RESIDUALS if attributes <= most), 0)
    together = each * attributes << attributes if each else 0
    tables = {tuple(sorted(str(sizes.get(name, name)) for name in scope)) for scope in scopes if len(scope) <= _TRIED}
    return together + sum(_ENTRY * math.prod([5] * len(table)) for table in tables)
