"""What the modules of `sql` have in common: the domain and the mistakes of a statement, names, plain values, CASE."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from sqlglot import ErrorLevel, exp

from tacit.errors import InvalidQuery
from tacit.model.ask import GroupBy
from tacit.model.clamped import clamped_ends
from tacit.model.domain import Domain
from tacit.model.expression import Comparison, Expression
from tacit.model.factor import MAX_TABLE
from tacit.model.query import Query
from tacit.model.values import Value

MOST_SAID = 540  # characters of several mistakes
GROUP_WORK, VALUE_WORK = 64, 8  # cells that might be gone through while a group is named, and while a value is weighed
COMPARISONS: dict[type[exp.Expr], Comparison] = {exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_CUT = re.compile(r" cannot be cut (?:at|after) ([^:]+):")  # in the words of `Attribute.cut`
_PLACE = re.compile(r" \(line \d+, column \d+\)")


class Grouped(NamedTuple):
    """What was read of groups: the groups, if it is such an expression, or why not; and what has to be said of them."""

    group: GroupBy | None
    refusal: InvalidQuery | None
    notes: tuple[str, ...]


class Metering(Protocol):
    """Counts what reading a statement takes, before it is done; whoever reads for others may refuse it."""

    def takes(self, work: int) -> None:
        """So many cells are about to be gone through."""

    def table(self, groups: int, values: int) -> None:
        """A table has so many groups, each of which is about attributes of so many values."""


class Unmetered:
    """For whoever reads a statement of his own."""

    def takes(self, work: int) -> None:
        pass

    def table(self, groups: int, values: int) -> None:
        pass


@dataclass(frozen=True)
class Reading:
    """The domain that a statement is read for, and what has to be said about how it was read."""

    domain: Domain
    meter: Metering = field(default_factory=Unmetered)
    groups: Mapping[str, GroupBy] = field(default_factory=dict)  # that a condition on groups may name, by their titles
    notes: list[str] = field(default_factory=list)
    clamped: list[str] = field(default_factory=list)  # beside these, where an answer has several values
    matched: list[int] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)
    places: list[int | None] = field(default_factory=list)  # of the mistakes, in characters
    grouped: dict[exp.Expr, Grouped] = field(default_factory=dict)  # the same words stand in SELECT and in GROUP BY
    declared: dict[exp.Expr, bool] = field(default_factory=dict)  # whether such groups are just the declared values
    cells: int = 1  # groups of the statement that is read, each of which has all its values
    _bound: list[tuple[Expression, Query]] = field(default_factory=list)  # several values share one WHERE

    def bind(self, condition: Expression) -> Query:
        """The query of a condition, worked out once."""
        for known, query in self._bound:
            if known is condition:
                return query
        self._bound.append((condition, condition.bind(self.domain)))
        self.clamped.extend(clamped_ends(condition, self.domain))
        return self._bound[-1][1]

    def weighs(self, *names: str) -> None:
        """Say that the values of attributes are about to be weighed, those of several with each other."""
        values = math.prod(self.domain.sizes[name] for name in names)
        if len(names) > 1 and values > MAX_TABLE:
            return  # which is refused for that
        self.meter.table(self.cells, values)
        self.meter.takes(VALUE_WORK * values)

    @contextmanager
    def attempt(self, node: exp.Expr | None = None) -> Iterator[None]:
        """Read a piece of the statement: what is wrong with it is kept, and the others are read all the same."""
        try:
            yield
        except InvalidQuery as refusal:
            self.refuse(refusal.sentence, refusal.at if node is None or refusal.at is not None else start_of(node))

    def refuse(self, sentence: str, at: int | None = None) -> None:
        """Keep a mistake; the same at another place is the same, and what follows from another has no words."""
        sentence = _with_round(sentence)
        if sentence and _PLACE.sub("", sentence) not in (_PLACE.sub("", known) for known in self.mistakes):
            self.mistakes.append(sentence)
            self.places.append(at)

    def raise_mistakes(self) -> None:
        """Say everything that is wrong with the statement at once."""
        if not self.mistakes:
            return
        refusal = InvalidQuery(self.mistakes[0] if len(self.mistakes) == 1 else self._all())
        refusal.at = self.places[0]
        raise refusal

    def _all(self) -> str:
        said = ""
        for i, one in enumerate(self.mistakes, 1):
            if len(said) + len(one) > MOST_SAID and i > 1:
                said += f" And {len(self.mistakes) - i + 1} more."
                break
            said += f" ({i}) {one}"
        return f"there are {len(self.mistakes)} mistakes.{said}"


def _with_round(sentence: str) -> str:
    """A refusal to cut a bin, with what a statement can write instead."""
    cut = _CUT.search(sentence)
    if cut is None:
        return sentence
    value = f"'{cut[1]}'" if cut[1].count("-") == 2 else cut[1]  # a day
    return f"{sentence} ROUND({value}) takes the nearest."


def column(node: exp.Expr, read: Reading) -> str:
    """The declared column that a node names."""
    if not isinstance(node, exp.Column) or node.args.get("table"):
        raise InvalidQuery(f"{text(node)} is not a declared column by its plain name.")
    meta = node.this.meta
    return read.domain.resolve(node.name, lambda: place(*(meta.get(w, 1) for w in ("line", "col", "start", "end"))))


def plain_value(node: exp.Expr) -> Value:
    """The value that a literal is."""
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal) and not node.this.is_string:
        number = plain_value(node.this)
        assert isinstance(number, int | float)
        return -number
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.Cast) and node.to.this == exp.DType.DATE and node.this.is_string:
        return str(node.this.this)
    if not isinstance(node, exp.Literal):
        raise InvalidQuery(f"{text(node)} is not a plain value, like 5, 2.5, 'F' or DATE '2024-05-31'.")
    given = str(node.this)
    if node.is_string:
        return given
    for reader in (int, float):
        try:
            return reader(given)
        except ValueError:
            continue
    raise InvalidQuery(f"{given[:60]} is not a number that can be read.")


class WrittenCase(NamedTuple):
    """Conditions and what each of them gives: the first that is met. `otherwise` is None where that is NULL."""

    branches: list[tuple[exp.Expr, exp.Expr]]
    otherwise: exp.Expr | None


def choice(node: exp.Expr) -> WrittenCase | None:
    """What CASE WHEN c THEN a ELSE b END, CASE x WHEN 1 THEN a ELSE b END or IF(c, a, b) says; None for other nodes."""
    node = stripped(node)
    if isinstance(node, exp.If) and only(node, "this", "true", "false"):
        return WrittenCase([(node.this, node.args["true"])], _not_null(node.args.get("false")))
    if not isinstance(node, exp.Case) or not only(node, "this", "ifs", "default"):
        return None
    subject = node.args.get("this")
    branches = [
        (one.this if subject is None else exp.EQ(this=subject.copy(), expression=one.this.copy()), one.args["true"])
        for one in node.args.get("ifs") or ()
    ]
    return WrittenCase(branches, _not_null(node.args.get("default")))


def _not_null(node: exp.Expr | None) -> exp.Expr | None:
    return None if isinstance(node, exp.Null) else node


def finite(found: object) -> float:
    """A number that can be worked with."""
    if isinstance(found, bool) or not isinstance(found, int | float) or not abs(found) < 1e300:
        raise InvalidQuery("numbers are below 1e300.")
    return float(found)


def text(node: exp.Expr) -> str:
    """A piece of the statement for a message."""
    try:
        # What DuckDB has no words for is written all the same, and not complained about.
        return node.sql(dialect="duckdb", comments=False, unsupported_level=ErrorLevel.IGNORE).strip()[:60]
    except Exception:  # what can be read cannot always be written: DATE()
        return "this expression"


def only(node: exp.Expr, *allowed: str) -> bool:
    """Whether a node says nothing beyond these of its arguments."""
    return all(name in allowed for name, given in node.args.items() if given)


def stripped(node: exp.Expr) -> exp.Expr:
    """What stands inside any parentheses."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def uncast(node: exp.Expr) -> exp.Expr:
    """What stands inside parentheses and casts to a number with a point: released values are such."""
    while isinstance(node, exp.Paren) or (
        isinstance(node, exp.Cast) and node.to.this in (exp.DType.DOUBLE, exp.DType.FLOAT)
    ):
        node = node.this
    return node


def start_of(node: exp.Expr) -> int | None:
    """Where a piece of the statement begins, in characters, as far as the parser has kept it."""
    return min((one.meta["start"] for one in node.walk() if "start" in one.meta), default=None)


def place(line: int, col: int, start: int, end: int) -> str:
    """Where a word begins; the parser says where it ends."""
    return f" (line {line}, column {col - (end - start)})"
