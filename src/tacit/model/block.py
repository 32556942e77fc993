"""Blocks in words: many blocks of rows are one table with one more column, whose value for every row is public.

A question about that table is one question for each block: the one that is left where the column has that block's
label. Nothing here is trusted: what is asked of a block is checked, priced and answered like any other question to it.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import ConfigError, InvalidQuery
from tacit.model.attribute import Attribute
from tacit.model.domain import Domain
from tacit.model.factor import Factor
from tacit.model.query import Query
from tacit.model.values import Listed, Value
from tacit.model.workload import Marginal

HOLDS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Labels(Listed):
    """The labels of blocks, which are compared as text is: '2026-02' comes before '2026-10'."""

    def compared(self, name: str, comparison: str, value: Value) -> list[int]:
        """The places of the labels for which the comparison holds; none where there are none."""
        if not isinstance(value, str):
            raise InvalidQuery(f"{name} is compared with a label, like '{self.values[0]}', not with {value!r}.")
        holds = HOLDS[comparison]
        return [place for place, label in enumerate(self.values) if holds(str(label), value)]


def check_label(label: object) -> str:
    """A label that can be shown, asked for and typed."""
    if not isinstance(label, str) or not 0 < len(label) <= 64 or not label.isprintable() or label != label.strip():
        raise ConfigError(f"a block's label is printable text of 1 to 64 characters, not {label!r}.")
    return label


def slug(label: str) -> str:
    """A label as part of a file's name."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", label).strip("-.")[:32] or "block"


def with_blocks(domain: Domain, name: str, labels: Sequence[str]) -> Domain:
    """The domain with the column of blocks before its attributes."""
    return Domain({name: Attribute(Labels(tuple(labels))), **dict(domain.items())})


def column_of_blocks(domain: Domain) -> str | None:
    """What the column of blocks is called; None in the domain of one table."""
    return next((name for name, attribute in domain.items() if isinstance(attribute.values, Labels)), None)


def check_name(name: str, domain: Domain) -> None:
    """Refuse a name of the column that an attribute has."""
    if name.lower() in (known.lower() for known in domain):
        raise ConfigError(f"{name} is an attribute of the domain; the column of blocks needs another name.")


def of_each_block(query: Query, name: str, blocks: int) -> list[Query]:
    """What a question about all blocks asks of each of them. Blocks of which the same is asked share one query."""
    if name not in query.scope:
        return [query] * blocks
    (tied,) = (factor for factor in query.factors if name in factor.scope)
    axis = tied.scope.index(name)
    scope = tied.scope[:axis] + tied.scope[axis + 1 :]
    others = [factor for factor in query.factors if factor is not tied]
    known = dict[bytes, Query]()
    found = list[Query]()
    for block in range(blocks):
        weights = np.asarray(tied.weights.take(block, axis))
        same = weights.tobytes()
        if same not in known:
            known[same] = Query.product([*others, Factor(scope, weights, tied.unit)], complement=query.complement)
        found.append(known[same])
    return found


def table_of_each_block(table: Marginal, name: str, blocks: int) -> list[Query | Marginal]:
    """What a table asks of each block: one count, where the column of blocks is all that it is grouped by."""
    names = tuple(one for one in table.names if one != name)
    rows = of_each_block(table.where, name, blocks)
    return [Marginal(names, where) if names else where for where in rows]
