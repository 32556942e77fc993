"""Trusted words: nonlinear questions, named functions of a table that one replaced row moves by at most one count.

A `Statistic` says *which* function, of which attributes, with which arguments; it holds no code. Code is found by name
in this process's registry: the library's four functions, and what the owner registered with `model.statistic_check`. A
statistic that was read from JSON can therefore name code but never bring any. `model.expression` writes them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.model.statistic_library import LIBRARY, Argument, Arguments, Definition

MAX_STATISTIC_CELLS = 2**22  # of the table that a statistic is a function of
MAX_ARGUMENTS = 2**12
MAX_ARGUMENT_TEXT = 2**16  # characters of all texts among them
_registry: dict[str, Definition] = dict(LIBRARY)


@dataclass(frozen=True)
class Statistic:
    """A function of the table over `scope` (axes in that order), by name, with whole numbers and texts as arguments.

    Its value lies between 0 and n counts and moves by at most one count when one row is replaced: f/n is 1/n-sensitive
    with values in [0, 1], which is all that the mechanisms ask of a question.

    >>> from tacit.model.attribute import boolean, integer
    >>> domain = Domain({"age": integer(0, 3), "ill": boolean()})
    >>> errors = Statistic("stump", ("age", "ill"), (4, 1))
    >>> errors.fits(domain), errors.words(domain)
    (True, 'errors of the best threshold on age that tells ill = true')
    >>> errors.evaluate(np.array([[[9, 0], [7, 2], [1, 8], [0, 9]]]))
    array([3])
    """

    name: str
    scope: tuple[str, ...]
    arguments: Arguments = ()

    def __post_init__(self) -> None:
        texts = type(self.name) is str and type(self.scope) is tuple and all(type(name) is str for name in self.scope)
        if not texts or type(self.arguments) is not tuple or any(type(one) not in (int, str) for one in self.arguments):
            raise InvalidQuery("a statistic has a name, attributes, and whole numbers and texts as arguments.")
        if any(abs(one) >= 2**63 for one in self.arguments if isinstance(one, int)):
            raise InvalidQuery("the arguments of a statistic are of 64 bits.")

    @cached_property
    def key(self) -> str:
        """A hash of name, scope and arguments: the identity of the question."""
        form = json.dumps(["tacit statistic 1", self.name, list(self.scope), list(self.arguments)])
        return hashlib.sha256(form.encode()).hexdigest()

    @property
    def unit(self) -> int:
        """Grid steps in a count."""
        return definition(self.name).unit

    @property
    def core(self) -> Statistic:
        """Itself: one less a statistic is not asked about."""
        return self

    @property
    def complement(self) -> bool:
        return False

    @property
    def is_constant(self) -> bool:
        return False

    def check(self, domain: Domain) -> None:
        """Refuse a statistic that is unknown, or that means nothing in this domain."""
        found = definition(self.name)
        if not self.scope or len(set(self.scope)) < len(self.scope) or not all(name in domain for name in self.scope):
            raise InvalidQuery(f"a statistic names each of its attributes once, out of {', '.join(domain)}.")
        cells = domain.size_of(self.scope)
        if cells > MAX_STATISTIC_CELLS:
            raise InvalidQuery(
                f"a statistic is of at most {MAX_STATISTIC_CELLS:,} cells; {', '.join(self.scope)} have {cells:,}."
            )
        text = sum(len(argument) for argument in self.arguments if isinstance(argument, str))
        if len(self.arguments) > MAX_ARGUMENTS or text > MAX_ARGUMENT_TEXT:
            raise InvalidQuery(
                f"a statistic has at most {MAX_ARGUMENTS:,} arguments of {MAX_ARGUMENT_TEXT:,} characters in all."
            )
        found.check(domain, self.scope, self.arguments)

    def fits(self, domain: Domain) -> bool:
        """Whether the statistic is known and was made for this domain, or one that looks the same to it."""
        try:
            self.check(domain)
        except InvalidQuery:
            return False
        return True

    def evaluate(self, tables: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
        """The value on each database, in grid steps; as a fraction it is that / (size · unit).

        tables: one database for each entry of the first axis, counts over the scope in the others. A database's size is
            the sum of its table, so that databases of different sizes can be compared by their fractions.

        Values below 0 or above the size are moved to these ends. No function here has such values, but an owner's may,
        where its check did not look: clipping moves no two values apart, so that nothing is lost that was promised,
        while a refusal would tell the analyst something about the rows that nobody has paid for.
        """
        sizes = tables.reshape(len(tables), -1).sum(axis=1, dtype=np.int64)  # before anybody's function sees the tables
        found = apply(definition(self.name), tables, self.arguments)
        return np.clip(found, 0, sizes * self.unit)

    def words(self, domain: Domain) -> str:
        """The statistic in words; one that this process does not know is only named."""
        if self.fits(domain):
            return definition(self.name).words(domain, self.scope, self.arguments)
        return plain_words(self.name, self.scope, self.arguments)

    def to_dict(self) -> dict[str, Any]:
        """A JSON form, for transcripts; `from_dict` reads it back."""
        return {"name": self.name, "scope": list(self.scope), "arguments": list(self.arguments)}

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> Statistic:
        """Read a JSON form. A name that nobody registered can be read and shown, but neither asked nor evaluated."""
        scope, arguments = form["scope"], form["arguments"]
        if not isinstance(scope, list) or not isinstance(arguments, list):
            raise InvalidQuery("a statistic is written with a name, a list of attributes and a list of arguments.")
        return cls(form["name"], tuple(scope), tuple(arguments))


@dataclass(frozen=True)
class Unbound:
    """A statistic as people write it, not yet tied to a domain: `bind` does that, and refuses what it cannot mean."""

    name: str
    make: Callable[[Domain], Statistic]

    def bind(self, domain: Domain) -> Statistic:
        """The statistic about this domain's attributes."""
        bound = self.make(domain)
        bound.check(domain)
        return bound

    def __repr__(self) -> str:
        return f"{self.name}(…)"


def definition(name: str) -> Definition:
    """What a name stands for in this process."""
    found = _registry.get(name) if isinstance(name, str) else None
    if found is None:
        raise InvalidQuery(f"no statistic called {str(name)[:60]!r} is registered in this process.")
    return found


def register(name: str, new: Definition) -> None:
    """Add a name to the registry, for good. Called by `model.statistic_check` with what passed its checks."""
    if _registry.setdefault(name, new) is not new:
        raise InvalidQuery(
            f"a statistic called {name!r} is registered already; answers are kept by name, so give a new one its own."
        )


def apply(found: Definition, tables: NDArray[np.integer[Any]], arguments: Arguments) -> NDArray[np.int64]:
    """What the function gives, before it is clipped: one whole number for each table. It sees a read-only view."""
    view = tables.astype(np.int64, copy=False).view()
    view.setflags(write=False)
    with np.errstate(all="ignore"):  # a warning on the console would depend on the counts
        values = found.function(view, *arguments)
    if type(values) is not np.ndarray or values.dtype != np.int64 or values.shape != (len(tables),):
        raise InvalidQuery("a statistic gives each table one whole number, in an array of int64.")
    return values


def plain_words(name: str, scope: Sequence[str], arguments: Sequence[Argument]) -> str:
    """A statistic named with its attributes and arguments, cut short; what a terminal would obey is not shown."""
    listed = "".join(c if c.isprintable() else "?" for c in ", ".join(map(str, arguments))[:40])
    given = f" ({listed})" if arguments else ""
    return f"{name} of {', '.join(scope)}{given}"
