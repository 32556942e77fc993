"""Trusted with counts: encoded copies, written once into a table's engine and counted there. Secret as the data are.

A copy has a column of small whole numbers for each attribute, c0, c1 and so on, and a row for each row that counts: the
bound on rows per person is kept when it is written, so no identifier is in it. It is there when it was checked; nobody
writes to it afterwards, and what is put in its place is refused. So all that is ever counted is of one state of the
table. `trusted/` checks what comes back.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.errors import DataError
from tacit.load import Engine, Progress, Source, quietly
from tacit.load.columns import Dialect
from tacit.load.scan import Scan, joined
from tacit.load.tables import EncodedWhere, Key, Tables, weight
from tacit.model.counting import Group, within
from tacit.model.domain import Domain
from tacit.model.engine import Run
from tacit.model.factor import Factor

Counts = NDArray[np.int64]

PER_SCAN = 2**21  # cells that are counted in one scan: what the engine holds meanwhile, whatever the rows are
KEPT = 2**24  # cells of tables that are remembered: see `tables.weight`
_COLUMNS = 62  # of one scan: a bit each
_FEW = 2**12  # cells of a table that is remembered although it follows from another
_PRIME = 2**31 - 1
_DIGIT = 12  # bits of a code that are one part of a row at most: see `sums`
_TABLED = 2**_DIGIT  # entries of one random table: the engine's time for each row grows with it
# A number out of a list by its place. As one text: thousands of numbers by themselves take seconds to parse.
_LISTS: dict[Dialect, str] = {
    "duckdb": "(CAST('[{}]' AS BIGINT[]))[{} + 1]",
    "postgres": "(CAST('{{{}}}' AS BIGINT[]))[{} + 1]",
    "spark": "from_json('[{}]', 'array<bigint>')[{}]",
}
_SHIFTED: dict[Dialect, str] = {
    "duckdb": "(({} >> {}) & {})",
    "postgres": "(({} >> {}) & {})",
    "spark": "(shiftright({}, {}) & {})",
}
_TYPES: dict[Dialect, tuple[tuple[int, str], ...]] = {
    "duckdb": ((2**8, "UTINYINT"), (2**16, "USMALLINT"), (2**32, "UINTEGER")),
    "postgres": ((2**15, "SMALLINT"), (2**31, "INTEGER")),
    "spark": ((2**7, "TINYINT"), (2**15, "SMALLINT"), (2**31, "INT")),
}

Portion = tuple[int, int, int]  # from, to, and of how many


@dataclass(eq=False)
class Copy:
    """The copy at `place`, of a table in `source`, for one domain and one bound on the rows of a person.

    place: a file for DuckDB, a table's name for PostgreSQL, a folder for Spark.
    of: which table it is, by its name and address: see `address`.
    state_of: the state of the table when a copy is made of it, or now, where that is known: a file's is.
    progress: told the share of each scan that is done, where the engine knows it.
    """

    source: Source
    place: str
    domain: Domain
    person: str | None = None
    rows_per_person: int = 1
    of: str = ""
    state_of: str = ""
    progress: Progress | None = None
    _tables: Tables = field(default_factory=Tables, repr=False)
    _ahead: list[Group] = field(default_factory=list, repr=False)  # what will be asked for, in order
    _planned: int = field(default=0, repr=False)  # how many that were at first
    _opened: Source | None = field(default=None, repr=False)
    _was: str = field(default="", repr=False)
    _distrusted: bool = field(default=False, repr=False)

    @property
    def about(self) -> str:
        """What it was made for, in a word: another table, domain or bound has another copy."""
        told = json.dumps([self.of, self.domain.key, self.person, self.rows_per_person])
        return hashlib.sha256(told.encode()).hexdigest()[:32]

    @property
    def made_for(self) -> str | None:
        """What the copy that is there was made for; None where none is, and nothing where what is there is none."""
        engine = self.source.engine
        # It is not known for ours, so no command deletes it or writes another in its place.
        failure = (
            f"{self.place} cannot be read as an encoded copy: it is none, is broken, or is out of your reach. If it is "
            "none or broken, delete it by hand, or name another place."
        )
        return quietly(lambda: engine.made_for(self.place), failure)

    @property
    def exists(self) -> bool:
        """Whether it is there; refuses one that was made for something else."""
        found = self.made_for
        if found == "":
            raise DataError(f"{self.place} is no encoded copy: delete it by hand, or name another place.")
        if found is not None and found.partition(" ")[0] != self.about:
            raise DataError(
                f"{self.place} is the copy of another table, domain or bound, or one that was cut short: delete it "
                "with `tacit forget`, in Python with tacit.forget, or name another place."
            )
        return found is not None

    @property
    def is_older(self) -> bool:
        """Whether the table was written to since the copy was made of it, as far as that is known."""
        then = (self.made_for or "").partition(" ")[2]
        return bool(then and self.state_of) and then != self._told_state

    @property
    def _told_state(self) -> str:
        return hashlib.sha256(self.state_of.encode()).hexdigest()[:32] if self.state_of else ""

    @property
    def state(self) -> str | None:
        """Another one after whatever is done to the file; None where a copy is no file."""
        if not os.path.isfile(self.place) or self.source.engine.dialect != "duckdb":
            return None
        return f"{self.about} {self._state()}"

    def write(
        self, kept: str, check: Callable[[Sequence[Counts], Run], None], progress: Progress | None = None
    ) -> None:
        engine = self.source.engine
        parts = _SHIFTED[engine.dialect]
        codes = ", ".join(
            f"CAST({parts.format(f'w{slot.word}', slot.shift, 2**slot.bits - 1)} AS {self._type(size)}) AS c{i}"
            for i, (slot, size) in enumerate(zip(self.domain.slots, self.domain.shape, strict=True))
        )
        # PostgreSQL would put the sum of all codes in the place of each of its parts, and work it out so many times.
        fence = " OFFSET 0" if engine.dialect == "postgres" else ""
        sql = f"SELECT {codes} FROM ({kept}{fence}) AS kept"
        failure = f"{self.place} could not be written: check the room there, your rights, and the table itself."

        def checked(written: Engine, table: Engine) -> None:
            source = Source(written)
            found = self._each(source.names()[1].sql(dialect=engine.dialect), source.run)
            check(found, Source(table).run)
            if not found[0].any():  # a copy that nothing can be asked about would be in the way of the rows to come
                raise DataError(f"the table has no rows{' that name a person' * (self.person is not None)}.")

        word = f"{self.about} {self._told_state}".rstrip()
        quietly(lambda: engine.keep(sql, self.place, word, checked, progress), failure)

    def delete(self, *, left_over: bool = True) -> None:
        """Delete it, and what runs that were cut short have left beside it."""
        self._tables.clear()
        self._opened = None
        engine, failure = self.source.engine, f"{self.place} could not be deleted: check your rights."
        quietly(lambda: engine.drop(self.place), failure)
        if left_over:
            quietly(lambda: engine.sweep(self.place), failure)

    def rows(self) -> int:
        (((rows,),),) = self._run([f"SELECT CAST(COUNT(*) AS BIGINT) AS n FROM {self._table}"])
        return int(rows)

    def _each(self, table: str, run: Callable[[Sequence[str]], list[list[Counts]]]) -> list[Counts]:
        found = list[Counts]()
        for first in range(0, len(self.domain), _COLUMNS):
            sizes = {f"c{i + first}": size + 2 for i, size in enumerate(self.domain.shape[first : first + _COLUMNS])}
            scan = Scan([[column] for column in sizes], sizes)
            found += scan.tables(*run([scan.sql(table)]))
        return found

    def count(self, one: Group) -> Counts:
        if not one.names and not one.where:
            return np.array(self.rows(), dtype=np.int64)
        found = self._remembered(one)
        if found is None:
            keys = [_key(other) for other in self._ahead]
            if _key(one) in keys:
                self._count_ahead(keys.index(_key(one)))
            else:
                self._scan([one])
            found = self._remembered(one)
            assert found is not None
        return found

    def prepare(self, wanted: Sequence[Group]) -> None:
        self._ahead = [one for one in wanted if one.names or one.where]
        self._planned = len(self._ahead)
        self._count_ahead()

    def _count_ahead(self, first: int = 0) -> None:
        """Count what will be asked for from there on: all of it, or half, or a quarter, until it can be remembered.

        The rest is counted when the first of it is asked for, so that nothing is forgotten before it was used.
        """
        some = self._ahead[first:]
        while (groups := self._missing(some)) is None:
            some = some[: len(some) // 2]
        begun = self._planned - len(self._ahead) + first
        self._ahead = self._ahead[first + len(some) :]
        self._scan(groups, (begun, begun + len(some), self._planned))

    def _missing(self, wanted: Sequence[Group]) -> list[Group] | None:
        """The tables to count so that all of these are known; None where not all of that could be remembered."""
        asked = {_key(one): one for one in wanted}
        nearest = {key: self._tables.nearest(key) for key in asked}
        known = {key for key in nearest.values() if key is not None}
        for key in known:
            self._tables.use(key)
        room = KEPT - sum(map(self._tables.weight_of, known))
        new = [one for key, one in asked.items() if nearest[key] is None]
        # A table that follows from another one by adding up is not counted by itself.
        wider = within(frozenset(one.names) for one in new if not one.where)
        new = [one for one in new if one.where or wider[frozenset(one.names)] == frozenset(one.names)]
        if self.source.engine.dialect == "duckdb" and self._weight(new) <= room:
            plain = [one for one in new if not one.where]
            new = [*(one for one in new if one.where), *joined(plain, self.domain)]
        return new if len(wanted) <= 1 or self._weight(new) <= room else None

    def sums(self, key: bytes) -> tuple[list[int], Counts]:
        """The spans of all codes, and two sums over the rows of products of random numbers below 2^31 - 1.

        A product has a number for each part of a row: of a few attributes of few values together, or of one digit of a
        code, to the base of 4,096.

        Each cell has a product of its own, as its parts tell it apart from all others. So as polynomials in the random
        numbers, modulo 2^31 - 1, the sums of two tables differ where a count differs by no multiple of that, and their
        degree is the number of parts, digits counted each. Then they are equal with a chance of at most
        (parts / (2^31 - 3))² (Schwartz 1980, Zippel 1979): no number is drawn with a larger one than 1 / (2^31 - 3).
        """
        dialect = self.source.engine.dialect
        found = [_product(parts, dialect) for parts in (self._random(key, i) for i in range(2))]
        total = "CAST(SUM({}) % {} AS BIGINT) AS s{}"
        wide = "CAST({} AS DECIMAL(38, 0))" if dialect == "spark" else "{}"  # Spark's sums of BIGINT stay BIGINT
        chosen = [total.format(wide.format(one), _PRIME, i) for i, one in enumerate(found)]
        for i in range(len(self.domain)):
            chosen += [f"CAST({told}(c{i}) AS BIGINT) AS {told}{i}" for told in ("COUNT", "MIN", "MAX")]
        ((*numbers,),) = self._run([f"SELECT {', '.join(chosen)} FROM {self._table}"])
        first, second, *spans = (int(number[0]) for number in numbers)
        return [first, second], np.array(spans, dtype=np.int64).reshape(-1, 3)

    def _random(self, key: bytes, which: int) -> list[tuple[str, list[int]]]:
        """The parts of a row, each below `_TABLED`, and a random number for each value of a part."""
        parts = list[tuple[str, list[int]]]()
        sizes = list[tuple[str, int]]()
        for i, whole in enumerate(self.domain.shape):
            for digit, size in _digits(f"CAST(c{i} AS INTEGER)", whole, self.source.engine.dialect):
                if sizes and sizes[-1][1] * size <= _TABLED:
                    sizes[-1] = f"({sizes[-1][0]} * {size} + {digit})", sizes[-1][1] * size
                else:
                    sizes.append((digit, size))
        for number, (index, size) in enumerate(sizes):
            drawn = hashlib.shake_256(key + bytes([which]) + number.to_bytes(4)).digest(8 * size)
            parts.append((index, [1 + x % (_PRIME - 1) for x in np.frombuffer(drawn, ">u8").tolist()]))
        return parts

    def _type(self, size: int) -> str:
        return next(name for most, name in _TYPES[self.source.engine.dialect] if size + 2 <= most)

    @property
    def _unread(self) -> str:
        return f"{self.place} could not be read: make it with `tacit encode`, in Python with tacit.encode."

    @property
    def _table(self) -> str:
        table = self._reader.names()[1]
        return table.sql(dialect=self.source.engine.dialect)

    @property
    def _reader(self) -> Source:
        if self._opened is None:
            engine = self.source.engine
            self._was = self._state()
            if not self.exists:
                raise DataError(self._unread)
            self._opened = Source(quietly(lambda: engine.kept(self.place), self._unread))
        return self._opened

    def _state(self) -> str:
        engine = self.source.engine
        return quietly(lambda: engine.state(self.place), self._unread)

    def check(self) -> None:
        """Refuse what was put in the place of the copy since it was opened: prices are for that one.

        Once is for good, also where the state is again what it was: what was done in between nobody knows.
        """
        if self._distrusted or self._state() != self._was:
            self.distrust()
            raise DataError(
                f"{self.place} is another copy than the one that was opened, or was written to: open the session again."
            )

    def distrust(self) -> None:
        self._distrusted = True

    def _run(self, statements: Sequence[str], progress: Progress | None = None) -> list[list[Counts]]:
        reader = self._reader
        self.check()
        found = reader.run(statements, progress)
        self.check()
        return found

    def _cells(self, one: Group) -> int:
        return math.prod(one.shape(self.domain))

    def _weight(self, groups: Iterable[Group]) -> int:
        """What these take where they are remembered."""
        return sum(weight(_key(one), self._cells(one)) for one in groups)

    def _scan(self, groups: Sequence[Group], part: Portion = (0, 1, 1)) -> None:
        """Count these, as many at a time as memory allows, and remember them. `part`: of what is planned."""
        scans = self._together(groups)
        for done, some in enumerate(scans):
            scan = self._scan_of(some)
            tables = scan.tables(*self._run([scan.sql(self._table)], self._share(done, len(scans), part)))
            for one, table in zip(some, tables, strict=True):
                self._tables.keep(_key(one), table)
        self._tables.shrink(max(KEPT, self._weight(groups)))

    def _together(self, groups: Sequence[Group]) -> list[list[Group]]:
        """The groups that each scan counts: as many as memory allows, whatever the rows are; a larger one by itself."""
        scans = list[list[Group]]()
        cells, columns = PER_SCAN, set[object]()
        alone = self.source.engine.dialect == "duckdb"  # see `scan.joined`
        for one in groups:
            own: set[object] = {*one.names, *([_key(one)[1]] if one.where else [])}
            cells, columns = cells + self._cells(one), columns | own
            if cells > PER_SCAN or len(columns) > _COLUMNS or (alone and not one.where):
                scans.append([])
                cells, columns = self._cells(one), own
            scans[-1].append(one)
        return scans

    def _scan_of(self, groups: Sequence[Group]) -> Scan:
        place = {name: f"c{i}" for i, name in enumerate(self.domain)}
        used = {name for one in groups for name in one.names}
        sizes = {place[name]: self.domain.sizes[name] for name in self.domain if name in used}
        met, marks, sets = dict[str, str](), dict[EncodedWhere, str](), list[list[str]]()
        for one in groups:
            sets.append([place[name] for name in self.domain if name in one.names])
            if one.where:
                mark = marks.setdefault(_key(one)[1], f"m{len(marks)}")
                sizes[mark], met[mark] = 2, _conditions(one.where, place)
                sets[-1].append(mark)
        return Scan(sets, sizes, met)

    def _share(self, done: int, scans: int, part: Portion) -> Progress | None:
        """What is told the share of one scan, of those of one part of what is planned."""
        told, (begun, end, planned) = self.progress, part
        if told is None:
            return None
        return lambda share: told((begun + (end - begun) * (done + share) / scans) / planned)

    def _remembered(self, one: Group) -> Counts | None:
        """The table of a group, if it is known; axes in the order of the group's names."""
        names, where = wanted = _key(one)
        nearest = self._tables.nearest(wanted)
        if nearest is None:
            return None
        ordered = [name for name in self.domain if name in nearest[0]]
        found = self._tables[nearest].sum(axis=tuple(i for i, name in enumerate(ordered) if name not in names))
        if nearest != wanted and found.size <= _FEW:
            self._tables.keep(wanted, found)
        left = [name for name in ordered if name in names]
        axes = [left.index(name) for name in one.names]
        return np.asarray(found.transpose(*axes, *([len(axes)] if where else [])))


def _key(one: Group) -> Key:
    return frozenset(one.names), tuple(sorted((factor.scope[0], factor.weights.tobytes()) for factor in one.where))


def _conditions(where: Iterable[Factor], place: dict[str, str]) -> str:
    """1 for the rows whose codes meet all of these, else 0."""
    met = []
    for factor in where:
        column, codes = place[factor.scope[0]], np.flatnonzero(factor.weights).tolist()
        run = codes and codes[-1] - codes[0] == len(codes) - 1
        listed = ", ".join(map(str, codes))
        met.append(f"{column} BETWEEN {codes[0]} AND {codes[-1]}" if run else f"{column} IN ({listed})")
    return f"CASE WHEN {' AND '.join(met)} THEN 1 ELSE 0 END"


def has_digits(domain: Domain) -> bool:
    """Whether a code of the domain has several digits in `sums`. Earlier versions had one number for each value."""
    return any(size > _TABLED for size in domain.shape)


def _digits(code: str, size: int, dialect: Dialect) -> Iterable[tuple[str, int]]:
    """The digits of a code, the lowest first, and how many values each has: together they say which code it is."""
    shift = 0
    while size > _TABLED:
        yield _SHIFTED[dialect].format(code, shift, _TABLED - 1), _TABLED
        size, shift = -(-size // _TABLED), shift + _DIGIT
    yield (_SHIFTED[dialect].format(code, shift, _TABLED - 1) if shift else code), size


def _product(parts: Sequence[tuple[str, list[int]]], dialect: Dialect) -> str:
    """The product of each part's random number, modulo the prime after each step: nothing overflows 64 bits."""
    found = ""
    for index, numbers in parts:
        number = _LISTS[dialect].format(",".join(map(str, numbers)), index)
        found = f"({found} * {number} % {_PRIME})" if found else number
    return found
