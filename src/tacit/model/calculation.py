"""The outer part of a statement: what is worked out from released values, as a tree. Public words and arithmetic.

The inner part of a statement is released: groups, and values with error bars. The outer part (arithmetic, CASE,
HAVING, ORDER BY, whole statements over the rows of another one) is post-processing of that: free, and sound, as
intervals are worked out along with values (`span`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Literal, NamedTuple, cast

import numpy as np

from tacit.errors import InvalidQuery
from tacit.model import span
from tacit.model.query import Query
from tacit.model.span import Spans, Texts, Values, Verdicts, Wholes

ValueKind = Literal["number", "truth", "text"]
Ending = Literal["error", "low", "high", "confidence"]
NO_LIMITS = (-np.inf, np.inf)
_FIRST = np.zeros(1, dtype=np.int64)
Risks = Mapping[object, float]  # what a column rests on, and how likely each of that is not within its bar
# Of the expressions of a statement. Whatever goes through them meets an alias as often as it is used: one that doubles
# another one, 40 times over, is a trillion parts in a line of text.
MOST_PARTS, MOST_DEEP = 10_000, 200


@dataclass(frozen=True)
class Constant:
    """A number or a text that was written; None for NULL."""

    value: float | str | None


@dataclass(frozen=True)
class Given:
    """A column of the rows that the outer part is worked out from, by its position."""

    index: int


@dataclass(frozen=True)
class Belongs:
    """Whether the group of a row meets a condition on its attributes: known, as groups are declared."""

    meets: Query
    fails: Query
    said: str  # in words


@dataclass(frozen=True)
class Operation:
    """An operator or a function, by its name in `OPERATIONS`, of other expressions."""

    name: str
    of: tuple[Outer, ...]
    digits: int = 0  # of ROUND, and the exponent of POWER
    extent: Extent = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "extent", Extent.over(parts_of(self)))


@dataclass(frozen=True)
class Case:
    """The value of the first branch whose condition is met."""

    branches: tuple[tuple[Outer, Outer], ...]
    otherwise: Outer
    extent: Extent = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "extent", Extent.over(parts_of(self)))


@dataclass(frozen=True)
class End:
    """A fact about an error bar, as a number: its half width, its ends, its confidence (of all, without a value)."""

    what: Ending
    of: Outer | None
    extent: Extent = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "extent", Extent.over(parts_of(self)))


@dataclass(frozen=True)
class Elsewhere:
    """The value of another statement, by its position among those of the outer part, for the same groups."""

    index: int


Outer = Constant | Given | Belongs | Operation | Case | End | Elsewhere


class Extent(NamedTuple):
    """How many parts an expression has, and how many of them stand one in the other."""

    parts: int
    depth: int

    @classmethod
    def over(cls, parts: Iterable[Outer]) -> Extent:
        """That of an expression of these. Refuses what would take too long, or too deep a stack, to go through."""
        each = [getattr(part, "extent", _ONE_PART) for part in parts]
        found = cls(1 + sum(one.parts for one in each), 1 + max((one.depth for one in each), default=0))
        if found.parts > MOST_PARTS or found.depth > MOST_DEEP:
            raise InvalidQuery(
                f"expressions over released values have at most {MOST_PARTS:,} parts, {MOST_DEEP} of them one in the "
                "other; a name that is used again counts as all that it stands for."
            )
        return found


_ONE_PART = Extent(1, 1)


@dataclass(frozen=True, eq=False)
class Relation:
    """Rows of released values: the kind, the values and the risks of each column.

    `groups` has the attribute of each column of labels, and which of its values, by index, each row starts at.
    """

    rows: int
    columns: tuple[Values, ...]
    risks: tuple[Risks, ...]
    groups: Mapping[str, tuple[int, Wholes]]  # by the attribute's name: its size, and an index for each row
    limits: tuple[tuple[float, float], ...]  # the least and the most that each column can be at all
    confidence: float = 0.0  # of all bars that are shown
    elsewhere: tuple[tuple[Spans, Risks], ...] = ()
    errors: Mapping[int, span.Floats] = field(default_factory=dict)  # the bars of columns as they were released, uncut
    chosen: bool = False  # by noisy values: that a row is not there says nothing for certain

    def at(self, rows: Wholes) -> Relation:
        """Some of the rows."""
        return replace(
            self,
            rows=len(rows),
            columns=tuple(column.at(rows) for column in self.columns),
            groups={name: (size, at[rows]) for name, (size, at) in self.groups.items()},
            elsewhere=tuple((spans.at(rows), risks) for spans, risks in self.elsewhere),
            errors={i: error[rows] for i, error in self.errors.items()},
        )


_ONE_ROW = Relation(1, (), (), {}, ())


def _numbers(function: Callable[..., Spans | Verdicts]) -> Callable[[Operation, list[Values]], Values]:
    return lambda _, of: function(*of)


def _strict(function: Callable[..., Spans]) -> Callable[[Operation, list[Values]], Values]:
    """A function that is NULL wherever one of its arguments is."""
    return lambda _, of: span.of_numbers(*cast(list[Spans], of), found=function(*of))


# Every operation: how it is written in words, what it takes, what it gives, and how.
OPERATIONS: dict[str, tuple[str, ValueKind, ValueKind, Callable[[Operation, list[Values]], Values]]] = {
    "+": ("{} + {}", "number", "number", _strict(span.plus)),
    "-": ("{} - {}", "number", "number", _strict(span.minus)),
    "*": ("{} * {}", "number", "number", _strict(span.times)),
    "/": ("{} / {}", "number", "number", _strict(span.over)),
    "negative": ("-{}", "number", "number", _strict(span.negative)),
    "abs": ("abs({})", "number", "number", _strict(span.absolute)),
    "floor": ("floor({})", "number", "number", _strict(span.floor)),
    "ceil": ("ceil({})", "number", "number", _strict(span.ceiling)),
    "sqrt": ("sqrt({})", "number", "number", _strict(span.root)),
    "ln": ("ln({})", "number", "number", _strict(span.logarithm)),
    "exp": ("exp({})", "number", "number", _strict(span.exponential)),
    "round": (
        "round({})",
        "number",
        "number",
        lambda node, of: _strict(lambda a: span.rounded(a, node.digits))(node, of),
    ),
    "power": (
        "power({})",
        "number",
        "number",
        lambda node, of: _strict(lambda a: span.power(a, node.digits))(node, of),
    ),
    "least": ("least", "number", "number", _numbers(span.least)),
    "greatest": ("greatest", "number", "number", _numbers(span.greatest)),
    "coalesce": ("coalesce", "number", "number", _numbers(span.first_known)),
    "nullif": ("nullif({}, {})", "number", "number", _numbers(span.null_if)),
    "<": ("{} < {}", "number", "truth", lambda _, of: span.below(*cast(list[Spans], of), equal=False)),
    "<=": ("{} <= {}", "number", "truth", lambda _, of: span.below(*cast(list[Spans], of), equal=True)),
    ">": ("{} > {}", "number", "truth", lambda _, of: span.below(*cast(list[Spans], of[::-1]), equal=False)),
    ">=": ("{} >= {}", "number", "truth", lambda _, of: span.below(*cast(list[Spans], of[::-1]), equal=True)),
    "=": ("{} = {}", "number", "truth", _numbers(span.same)),
    "same text": ("{} = {}", "text", "truth", _numbers(span.same_text)),
    "is null": ("{} is null", "number", "truth", _numbers(span.missing)),
    "not": ("not ({})", "truth", "truth", _numbers(span.negated)),
    "and": ("and", "truth", "truth", lambda _, of: reduce(span.both, cast(list[Verdicts], of))),
    "or": ("or", "truth", "truth", lambda _, of: reduce(span.either, cast(list[Verdicts], of))),
}


def evaluate(node: Outer, given: Relation) -> Values:
    """The value of an expression in each row."""
    match node:
        case Constant(str() as text):
            return Texts.of([text] * given.rows)
        case Constant(value):
            return Spans.none(given.rows) if value is None else Spans.exact(cast(float, value), given.rows)
        case Given(index):
            return given.columns[index]
        case Elsewhere(index):
            return given.elsewhere[index][0]
        case Belongs():
            meets, fails = (_member(query, given) for query in (node.meets, node.fails))
            return Verdicts.known(np.where(meets, 1, np.where(fails, 0, -1)))
        case Case():
            return _case(node, given)
        case End():
            return Spans.known(_end(node, given))
    with np.errstate(all="ignore"):
        found = OPERATIONS[node.name][3](node, [evaluate(one, given) for one in node.of])
    return span.countable(found) if isinstance(found, Spans) else found


def _member(query: Query, given: Relation) -> span.Bools:
    names = list(query.scope)
    sizes = [given.groups[name][0] for name in names]
    table = query.table(names, sizes)
    return np.broadcast_to(np.asarray(table[tuple(given.groups[name][1] for name in names)] == 1), (given.rows,))


def _case(node: Case, given: Relation) -> Values:
    values = [evaluate(value, given) for value in (*(value for _, value in node.branches), node.otherwise)]
    if any(isinstance(value, Texts) for value in values):  # NULL is the empty text among them
        values = [value if isinstance(value, Texts) else Texts.of([""] * given.rows) for value in values]
    *values, found = values
    for (condition, _), then in zip(reversed(node.branches), reversed(values), strict=True):
        met = cast(Verdicts, evaluate(condition, given))
        if isinstance(found, Texts):
            found = span.chosen_text(met, cast(Texts, then), found)
        else:
            found = span.chosen(met, cast(Spans, then), cast(Spans, found))
    return found


def _end(node: End, given: Relation) -> span.Floats:
    if node.what == "confidence":
        sure = given.confidence if node.of is None else confidence(risks_of(node.of, given))
        return np.full(given.rows, sure if sure > 0 else np.nan)
    assert node.of is not None
    of = cast(Spans, evaluate(node.of, given))
    promised = confidence(risks_of(node.of, given)) > 0
    released = given.errors.get(node.of.index) if isinstance(node.of, Given) else None
    ends = {"error": of.error if released is None else released, "low": of.low, "high": of.high}
    return np.where(np.isfinite(ends[node.what]) & promised, ends[node.what], np.nan)


def parts_of(node: Outer) -> Sequence[Outer]:
    """The expressions that an expression is made of directly."""
    match node:
        case Operation():
            return node.of
        case Case():
            return [*(one for branch in node.branches for one in branch), node.otherwise]
        case End(of=of) if of is not None:
            return [of]
    return ()


def nodes(node: Outer) -> Iterator[Outer]:
    """An expression and everything in it."""
    yield node
    for one in parts_of(node):
        yield from nodes(one)


def bare(node: Outer) -> bool:
    """Whether an expression is about bars, or was written: it has no bar of its own."""
    return isinstance(node, End) or (not isinstance(node, Given | Elsewhere) and all(map(bare, parts_of(node))))


def never(node: Outer) -> bool:
    """Whether a condition is met by no row, as its words alone say: whatever is released."""
    if isinstance(node, Operation) and node.name in ("and", "or"):
        return (any if node.name == "and" else all)(map(never, node.of))
    if any(isinstance(one, Given | Belongs | End | Elsewhere) for one in nodes(node)):
        return False
    return bool(cast(Verdicts, evaluate(node, _ONE_ROW)).value[0] != 1)


def risks_of(node: Outer, given: Relation) -> Risks:
    """What an expression rests on: every bar that it was worked out from."""
    found = dict[object, float]()
    for one in nodes(node):
        if isinstance(one, Given):
            found.update(given.risks[one.index])
        elif isinstance(one, Elsewhere):
            found.update(given.elsewhere[one.index][1])
    return found


def confidence(risks: Risks) -> float:
    """How sure all bars are at once that an expression rests on: the union bound."""
    return round(max(0.0, 1 - sum(risks.values())), 12)


def limits_of(node: Outer, given: Relation) -> tuple[float, float]:
    """The least and the most that an expression can be at all: its interval where all that it is of may be anything."""
    if not given.rows:
        return NO_LIMITS
    columns = tuple(
        Spans(np.zeros(1), np.full(1, float(low)), np.full(1, float(high)))
        if isinstance(column, Spans)
        else column.at(_FIRST)
        for column, (low, high) in zip(given.columns, given.limits, strict=True)
    )
    wide = tuple((Spans(np.zeros(1), *(np.array([end]) for end in NO_LIMITS)), risks) for _, risks in given.elsewhere)
    found = evaluate(node, replace(given.at(_FIRST), columns=columns, elsewhere=wide))
    return (float(found.low[0]), float(found.high[0])) if isinstance(found, Spans) and not found.gone[0] else NO_LIMITS


def kinds_of(labels: int, numbers: int) -> list[ValueKind]:
    """The kinds of the columns of released rows: labels, then numbers."""
    texts: list[ValueKind] = ["text"] * labels
    values: list[ValueKind] = ["number"] * numbers
    return texts + values


def kind(node: Outer, columns: Sequence[ValueKind]) -> ValueKind:
    """What an expression gives, over columns of these kinds."""
    match node:
        case Constant(str()):
            return "text"
        case Given(index):
            return columns[index]
        case Belongs():
            return "truth"
        case Operation(name):
            return OPERATIONS[name][2]
        case Case(branches, otherwise):
            values = (*(value for _, value in branches), otherwise)
            return "text" if any(kind(value, columns) == "text" for value in values) else "number"
    return "number"


def words(node: Outer, columns: Sequence[str], elsewhere: Sequence[str] = ()) -> str:
    """An expression in words, with those of its columns."""

    def said(one: Outer) -> str:
        found = words(one, columns, elsewhere)
        return f"[{found}]" if isinstance(one, Given) and " " in found else found

    match node:
        case Constant(str() as text):
            return f"'{text}'"
        case Constant(value):
            return "null" if value is None else f"{value:.15g}"
        case Given(index):
            return columns[index]
        case Elsewhere(index):
            return f"[{elsewhere[index]}]"
        case Belongs():
            return node.said
        case Case(branches, otherwise):
            listed = " ".join(f"when {said(condition)} then {said(value)}" for condition, value in branches)
            return f"case {listed} else {said(otherwise)} end"
        case End(what, of):
            return f"{what}({'' if of is None else said(of)})"
    form, parts = OPERATIONS[node.name][0], [said(one) for one in node.of]
    if node.name in ("and", "or"):
        return f" {form} ".join(f"({part})" for part in parts)
    if node.name in ("round", "power"):
        parts = [f"{parts[0]}, {node.digits}"]
    if "{" not in form:
        return f"{form}({', '.join(parts)})"
    inner = ("(" not in form and isinstance(one, Operation) and " {}" in OPERATIONS[one.name][0] for one in node.of)
    return form.format(*(f"({part})" if deep else part for part, deep in zip(parts, inner, strict=True)))
