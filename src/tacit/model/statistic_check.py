"""How the owner adds a statistic: a decorator that tries to refute what the privacy of its answers rests on.

Only code that runs in the owner's own process can call this. Nothing in SQL, JSON or a configuration leads here.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations_with_replacement, pairwise, product

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.model.factor import GRID
from tacit.model.statistic import Statistic, apply, plain_words, register
from tacit.model.statistic_library import Arguments, Definition, Tables

MAX_CHECKED_CELLS = 2**16  # of a table that an owner's statistic is a function of: the check evaluates thousands
_FEW_CELLS = 5  # cells over which all databases are listed at a time
_FEW_ROWS = 4
_STEPS = 64  # of a walk from neighbour to neighbour
_SIZES = (3, 7, 20, 60, 100, 1_000, 10**6, 10**9, 2**41)
_ENTRIES = 2**26  # counts that the walks have in all, about

TableFunction = Callable[..., NDArray[np.int64]]
owned: dict[str, list[Statistic]] = {}  # by name: one question for each list of arguments that was registered


def statistic(
    name: str, domain: Domain, *scope: str, unit: int = 1, arguments: Sequence[Arguments] = ((),)
) -> Callable[[TableFunction], Callable[..., Statistic]]:
    """Register a function of the table over some attributes, under a name: a decorator, for the owner of the data.

    The function gets int64[N, *sizes of the attributes], read-only, one database for each entry of the first axis, and
    gives int64[N]: whole numbers from 0 to size · unit that one replaced row moves by at most `unit`.

    unit: grid steps in a count, 1 or 2^20.
    arguments: all that the function may be called with beside the tables; each is checked.

    YOU VOUCH FOR IT. Before it is registered, the function is tried on all databases of up to 4 rows over some of the
    cells, on walks from neighbour to neighbour among larger ones, twice, and one by one; what breaks the promise is
    shown. That finds mistakes. It cannot prove that there are none, and the privacy of every answer rests on that: one
    row must never move the value by more than `unit`, nor decide whether the function raises an error.

    The decorated function makes the question: `session.ask(fullest())`. Answers are kept by name, scope and arguments,
    so a changed function needs a new name, and one name stands for one function until the process ends.

    >>> from tacit.model.attribute import category
    >>> domain = Domain({"ward": category(["north", "east", "south"])})
    >>> @statistic("fullest ward", domain, "ward")
    ... def fullest(tables):
    ...     return tables.max(axis=1)
    >>> fullest()
    Statistic(name='fullest ward', scope=('ward',), arguments=())
    """
    if not isinstance(name, str) or not 1 <= len(name) <= 64 or not name.isprintable():
        raise InvalidQuery("a statistic's name is printable text of 1 to 64 characters.")
    if not isinstance(domain, Domain) or not scope:
        raise InvalidQuery("a statistic is registered for a domain and the attributes it depends on.")
    if type(unit) is not int or unit not in (1, GRID):
        raise InvalidQuery(f"a statistic has 1 or {GRID:,} steps to a count.")
    onto = domain.project(scope)
    if len(onto) < len(scope) or onto.size > MAX_CHECKED_CELLS:
        raise InvalidQuery(
            f"a statistic names each attribute once, and its table has at most {MAX_CHECKED_CELLS:,} cells."
        )
    allowed = [tuple(given) for given in arguments]
    if not allowed or any(type(one) not in (int, str) for given in allowed for one in given):
        raise InvalidQuery("arguments are listed as tuples of whole numbers and texts: [(1,), (2,)].")

    def check(domain: Domain, scope: tuple[str, ...], given: Arguments) -> None:
        if domain.project(scope) != onto:
            raise InvalidQuery(f"the statistic {name!r} was registered for other attributes than these.")
        if not any(given == one and list(map(type, given)) == list(map(type, one)) for one in allowed):
            raise InvalidQuery(f"the statistic {name!r} takes other arguments than these.")

    def words(domain: Domain, scope: tuple[str, ...], given: Arguments) -> str:
        return plain_words(name, scope, given)

    def decorate(function: TableFunction) -> Callable[..., Statistic]:
        new = Definition(unit, function, check, words)
        for given in allowed:
            if problem := refute(new, onto.shape, given):
                raise InvalidQuery(f"the statistic {name!r} is refused: {problem}")
        register(name, new)

        def question(*given: int | str) -> Statistic:
            asked = Statistic(name, onto.names, given)
            asked.check(domain)
            return asked

        question.__doc__ = function.__doc__
        owned[name] = [Statistic(name, onto.names, given) for given in allowed]
        return question

    return decorate


def owners(name: object, arguments: Sequence[int | str], domain: Domain) -> Statistic:
    """The question about a statistic that was registered in this process; whatever is no such is refused."""
    known = owned.get(name) if isinstance(name, str) else None
    if known is None:
        raise InvalidQuery(f"the owner has registered no statistic called {str(name)[:60]!r}.")
    found = Statistic(known[0].name, known[0].scope, tuple(arguments))
    found.check(domain)
    return found


def offered(domain: Domain) -> list[Statistic]:
    """All questions about this domain that the owner's statistics can answer, in the order they were registered."""
    return [question for questions in owned.values() for question in questions if question.fits(domain)]


def refute(found: Definition, shape: tuple[int, ...], arguments: Arguments = ()) -> str | None:
    """A database, or two neighbours, on which a function breaks its promise; None if none was found."""
    for tables, pairs in _trials(shape):
        try:
            values = apply(found, tables, arguments)
            again = apply(found, tables.copy(), arguments)
            alone = [int(apply(found, tables[i : i + 1], arguments)[0]) for i in (0, len(tables) // 2, len(tables) - 1)]
        except InvalidQuery as refusal:
            return refusal.sentence
        except Exception as error:  # these databases are made up, so the message may be shown
            return f"it raises {type(error).__name__} ({error}) on {_show(tables[0])}, or on one like it."
        if (values != again).any():
            return f"it gives two values for the same table, {_show(tables[int(np.argmax(values != again))])}."
        if alone != [int(values[i]) for i in (0, len(tables) // 2, len(tables) - 1)]:
            return f"a table has another value by itself than among others: {_show(tables[0])}, or one like it."
        sizes = tables.reshape(len(tables), -1).sum(axis=1)
        outside = (values < 0) | (values > sizes * found.unit)
        if outside.any():
            worst = int(np.argmax(outside))
            limit = int(sizes[worst]) * found.unit
            return f"its value is {values[worst]}, outside 0 to {limit}, on {_show(tables[worst])}."
        moves = np.abs(values[pairs[:, 0]] - values[pairs[:, 1]])
        if moves.max(initial=0) > found.unit:
            before, after = pairs[int(moves.argmax())]
            return (
                f"one replaced row moves it by {moves.max()} steps, and {found.unit} is the most, "
                f"from {_show(tables[before])} to {_show(tables[after])}."
            )
    return None


def _trials(shape: tuple[int, ...]) -> Iterator[tuple[Tables, NDArray[np.intp]]]:
    """Databases, and which of them are neighbours: all small ones over a few cells, then walks among larger ones."""
    cells = math.prod(shape)
    often = max(2, min(16, _ENTRIES // (len(_SIZES) * _STEPS * cells)))  # less often for large tables
    few = min(cells, _FEW_CELLS)
    for choice, rows in product(range(often if few < cells else 1), range(1, _FEW_ROWS + 1)):
        databases, pairs = _all_databases(few, rows)
        yield _spread(databases, _choose(cells, few, f"cells {choice}"), shape), pairs
    for walk, rows in product(range(often), _SIZES):
        used = min(cells, 2 + walk)
        databases, pairs = _walk(used, rows, walk)
        yield _spread(databases, _choose(cells, used, f"walk {walk} {rows}"), shape), pairs


def _all_databases(cells: int, rows: int) -> tuple[Tables, NDArray[np.intp]]:
    """All databases of a number of rows over a few cells, and all pairs that are neighbours."""
    listed = [np.bincount(rows_in, minlength=cells) for rows_in in combinations_with_replacement(range(cells), rows)]
    place = {tuple(counts.tolist()): index for index, counts in enumerate(listed)}
    pairs = []
    for counts, index in place.items():
        for old, new in product(range(cells), repeat=2):
            if counts[old] and old < new:  # the pair is seen from its other end too
                moved = list(counts)
                moved[old] -= 1
                moved[new] += 1
                pairs.append((index, place[tuple(moved)]))
    return np.array(listed), np.array(pairs, dtype=np.intp).reshape(-1, 2)


def _walk(cells: int, rows: int, walk: int) -> tuple[Tables, NDArray[np.intp]]:
    """Databases that each differ from the last in one row; every other walk empties one cell into another.

    Emptying a cell passes every share of the rows that a threshold may stand at.
    """
    numbers = _numbers(f"steps {walk} {rows}", cells + 2 * _STEPS)
    parts = [number % 97 + 1 for number in numbers[:cells]]
    counts = [rows * part // sum(parts) for part in parts]
    counts[walk % cells] += rows - sum(counts)
    visited = [list(counts)]
    for first, second in zip(numbers[cells::2], numbers[cells + 1 :: 2], strict=False):
        filled = [cell for cell in range(cells) if counts[cell]]
        old, new = (filled[0], cells - 1) if walk % 2 else (filled[first % len(filled)], second % cells)
        counts[old] -= 1
        counts[new] += 1
        visited.append(list(counts))
    return np.array(visited, dtype=np.int64), np.array(list(pairwise(range(len(visited)))), dtype=np.intp)


def _spread(few: Tables, chosen: NDArray[np.intp], shape: tuple[int, ...]) -> Tables:
    """Counts over chosen cells as tables of the whole shape."""
    tables = np.zeros((len(few), math.prod(shape)), dtype=np.int64)
    tables[:, chosen] = few
    return tables.reshape(len(few), *shape)


def _choose(cells: int, few: int, label: str) -> NDArray[np.intp]:
    """A few different cells, among them neighbours in the order of the table."""
    if few == cells:
        return np.arange(cells)
    numbers, found = _numbers(label, 8 * few), dict[int, None]()
    for number in numbers:
        place = number % cells
        found |= dict.fromkeys((place, (place + 1) % cells) if number % 3 else (place,))
    found |= dict.fromkeys(range(few))
    return np.array(list(found)[:few], dtype=np.intp)


def _numbers(label: str, how_many: int) -> list[int]:
    """Always the same numbers for a label: the check is repeatable, and this layer draws no randomness."""
    stream = hashlib.shake_256(f"tacit statistic check 1 {label}".encode()).digest(4 * how_many)
    return [int(number) for number in np.frombuffer(stream, dtype="<u4")]


def _show(table: NDArray[np.int64]) -> str:
    places = np.argwhere(table)
    shown = ", ".join(f"{int(table[tuple(place)])} at {tuple(map(int, place))}" for place in places[:8])
    return f"{{{shown}{', …' if len(places) > 8 else ''}}}"
