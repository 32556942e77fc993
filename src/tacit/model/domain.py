"""Trusted words: privacy rests on this file.

The declared universe X: a product of named attributes. It may be astronomically large and is never listed here."""

from __future__ import annotations

import datetime as dt
import difflib
import hashlib
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from html import escape
from typing import Any, NamedTuple

from numpy.typing import NDArray

from tacit.errors import DataError, InvalidDomain, InvalidQuery
from tacit.model.attribute import Attribute, boolean, category, date, hour, integer, month, numeric, weekday
from tacit.model.values import Days, Integers, Listed, Value

MAX_ATTRIBUTES = 256
WORD_BITS = 62


class Slot(NamedTuple):
    """Where an attribute's code lies in a packed cell: in which word, above how many bits, and how wide."""

    word: int
    shift: int
    bits: int


class Domain:
    """Named attributes in a fixed order. Declared by the owner, never inferred from private rows silently.

    >>> domain = Domain({"sex": category(["F", "M"]), "age": integer(0, 99, width=10)})
    >>> domain.size, domain.shape, domain.index({"sex": "M", "age": 30})
    (20, (2, 10), (1, 3))
    >>> domain.project(["age"])
    Domain(age: integer 10 · 10 cells)
    """

    def __init__(self, attributes: Mapping[str, Attribute]) -> None:
        if not isinstance(attributes, Mapping) or not 1 <= len(attributes) <= MAX_ATTRIBUTES:
            raise InvalidDomain(f"a domain maps 1 to {MAX_ATTRIBUTES} names to attributes.")
        for name, attribute in attributes.items():
            if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > 128:
                raise InvalidDomain(f"an attribute's name is printable text of 1 to 128 characters, not {name!r}.")
            if not isinstance(attribute, Attribute):
                raise InvalidDomain(f"{name} is declared with tacit.category, integer, numeric, boolean or date.")
        self._attributes = dict(attributes)
        self._folded = {name.lower(): name for name in attributes}  # engines do not tell upper from lower case
        if len(self._folded) < len(attributes):
            raise InvalidDomain("two attributes have the same name but for upper and lower case.")

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(self._attributes)

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """How many values each attribute takes."""
        return {name: attribute.size for name, attribute in self._attributes.items()}

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.sizes.values())

    @cached_property
    def size(self) -> int:
        """|X|, a Python integer: 10^30 is fine."""
        return math.prod(self.shape)

    def shape_of(self, names: Iterable[str]) -> tuple[int, ...]:
        """The shape of the table of these attributes."""
        return tuple([self[name].size for name in names])

    def size_of(self, names: Iterable[str]) -> int:
        """How many cells the table of these attributes has."""
        return math.prod(self.shape_of(names))

    @cached_property
    def clamps(self) -> bool:
        """Whether values of some attribute are moved to the ends of its range."""
        return any(attribute.clamp for attribute in self._attributes.values())

    @cached_property
    def slots(self) -> list[Slot]:
        """Each attribute's slot. Codes 0..size+1 fit, two of them reserved, and no two attributes share a bit."""
        found: list[Slot] = []
        word = shift = 0
        for size in self.shape:
            bits = (size + 1).bit_length()
            if shift + bits > WORD_BITS:
                word, shift = word + 1, 0
            found.append(Slot(word, shift, bits))
            shift += bits
        return found

    def __getitem__(self, name: str) -> Attribute:
        found = self._attributes.get(name) if type(name) is str else None
        return self._attributes[self.resolve(name)] if found is None else found

    def named(self, name: str) -> tuple[str, Attribute]:
        """An attribute and its name as it was declared, however it is spelled."""
        known = self._folded.get(str(name).lower()) or self.resolve(name)  # the declared string, or a refusal
        return known, self._attributes[known]

    def __iter__(self) -> Iterator[str]:
        return iter(self._attributes)

    def __len__(self) -> int:
        return len(self._attributes)

    def __contains__(self, name: object) -> bool:
        return name in self._attributes

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Domain) and self.key == other.key  # to Python False == 0, but these are two domains

    def __hash__(self) -> int:
        return hash(self.key)

    def items(self) -> Iterable[tuple[str, Attribute]]:
        return self._attributes.items()

    def resolve(self, name: str, where: Callable[[], str] = str) -> str:
        """The declared spelling of a name, upper and lower case aside; refuses an unknown one with a suggestion.

        `where` says at which place of a statement it stands.
        """
        found = self._folded.get(str(name).lower())  # the declared string itself, never the caller's object
        if found is None:
            near = difflib.get_close_matches(str(name).lower(), list(self._folded), n=1)
            meant = self._folded[near[0]] if near else None
            hint = f"the columns are {', '.join(self.names)}." if meant is None else f"did you mean {meant!r}?"
            raise InvalidQuery(f"unknown column {name!r}{where()}; {hint}", meant)
        return found

    def project(self, names: Iterable[str]) -> Domain:
        """The domain of these attributes alone, in the given order."""
        return Domain({self.resolve(name): self[name] for name in names})

    def index(self, values: Mapping[str, Value]) -> tuple[int, ...]:
        """The cell that holds these values, one for each attribute."""
        if set(map(self.resolve, values)) != set(self.names):
            raise InvalidQuery(f"a cell has one value for each of {', '.join(self.names)}.")
        found = {self.resolve(name): self[name].locate(name, value) for name, value in values.items()}
        return tuple(found[name] for name in self.names)

    def check_declared(self, codes: Iterable[NDArray[Any]]) -> None:
        """Refuse the codes of rows whose value of an attribute is not declared, or missing: those that are reserved."""
        undeclared = [
            attribute.undeclared(name, missing=missing)
            for (name, attribute), code in zip(self.items(), codes, strict=True)
            for missing in sorted(set((code[code >= attribute.size] == attribute.size + 1).tolist()))
        ]
        if undeclared:
            raise DataError("; ".join(undeclared) + ".")

    @cached_property
    def key(self) -> str:
        """A hash of everything declared: equal domains, and only they, have equal keys."""
        return hashlib.sha256(self.to_toml().encode()).hexdigest()

    def to_toml(self) -> str:
        """The TOML form; `Domain.from_toml` reads it back to an equal domain."""
        return "\n".join(
            f"[domain.{toml_key(name)}]\n" + "".join(f"{k} = {toml_value(v)}\n" for k, v in _fields(attribute).items())
            for name, attribute in self.items()
        )

    def to_dict(self) -> dict[str, dict[str, Any]]:
        """For JSON; `Domain.from_dict` reads it back to an equal domain, if the order of names is kept."""
        return {
            name: {k: v.isoformat() if isinstance(v, dt.date) else v for k, v in _fields(attribute).items()}
            for name, attribute in self.items()
        }

    @classmethod
    def from_toml(cls, text: str) -> Domain:
        try:
            parsed = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # plain ones too, for numbers or nesting beyond Python's limits
            raise InvalidDomain(f"the domain is not valid TOML: {error}.") from None
        return cls.from_dict(parsed.get("domain", {}))

    @classmethod
    def from_dict(cls, tables: Mapping[str, Mapping[str, Any]]) -> Domain:
        """From parsed TOML: one table for each attribute."""
        if not isinstance(tables, Mapping):
            raise InvalidDomain("[domain] holds one table for each attribute, like [domain.age].")
        made, wrong = dict[str, Attribute](), list[str]()
        for name, fields in tables.items():
            try:
                made[name] = _attribute(name, fields)
            except InvalidDomain as error:
                wrong.append(error.sentence)
        if wrong:  # all of it at once: an owner mends a draft in one round
            raise InvalidDomain("\n".join(wrong))
        return cls(made)

    def _repr_html_(self) -> str:
        rows = (
            f"<tr><td>{escape(name)}</td><td>{a.kind}</td><td>{escape(a.takes)}</td><td>{a.size:,} values</td></tr>"
            for name, a in self.items()
        )
        return f"<table>{''.join(rows)}</table>"

    def __repr__(self) -> str:
        parts = ", ".join(f"{name}: {a.kind} {a.size}" for name, a in self.items())
        return f"Domain({parts} · {self.size:,} cells)"


# Each kind's constructor and the fields it takes: the only vocabulary of the TOML form.
_KINDS: dict[str, tuple[Callable[..., Attribute], set[str], set[str]]] = {
    "category": (category, {"values"}, {"other", "missing"}),
    "boolean": (boolean, set(), {"other", "missing"}),
    "integer": (integer, {"low", "high"}, {"width", "clamp", "other", "missing"}),
    "numeric": (numeric, {"edges"}, {"clamp", "other", "missing"}),
    "date": (date, {"low", "high"}, {"by", "clamp", "other", "missing"}),
    "hour": (hour, {"of"}, {"width", "missing"}),
    "weekday": (weekday, {"of"}, {"missing"}),
    "month": (month, {"of"}, {"missing"}),
}


def _attribute(name: str, fields: Mapping[str, Any]) -> Attribute:
    kind = fields.get("kind") if isinstance(fields, Mapping) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InvalidDomain(f"[domain.{name}] needs kind = one of {', '.join(_KINDS)}.")
    make, required, optional = _KINDS[kind]
    given = {k: v for k, v in fields.items() if k != "kind"}
    if not required <= set(given) <= required | optional:
        needs = f"needs {' and '.join(sorted(required))}, " if required else ""
        raise InvalidDomain(f"[domain.{name}]: kind {kind!r} {needs}and may have {', '.join(sorted(optional))}.")
    try:
        return make(**given)
    except InvalidDomain as error:
        raise InvalidDomain(f"[domain.{name}]: {error.sentence}") from None


def _fields(attribute: Attribute) -> dict[str, Any]:
    values = attribute.values
    fields: dict[str, Any] = {"kind": attribute.part or attribute.kind}
    if attribute.part is not None:  # its values follow from the part, all but the width of hours
        fields |= {"of": attribute.of}
        if attribute.part == "hour" and isinstance(values, Integers):
            fields |= {"width": values.width}
    elif isinstance(values, Listed):
        fields |= {} if attribute.kind == "boolean" else {"values": list(values.values)}
    elif isinstance(values, Integers):
        fields |= {"low": values.low, "high": values.high, "width": values.width}
    elif isinstance(values, Days):
        fields |= {"low": values.low, "high": values.high, "by": values.by}
    else:
        fields |= {"edges": list(values.edges)}
    fields |= {"clamp": True} if attribute.clamp else {}
    return fields | {k: v for k, v in (("other", attribute.other), ("missing", attribute.missing)) if v is not None}


def toml_key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_value(name)


def toml_value(value: object) -> str:
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
