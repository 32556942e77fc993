"""Encoded copies: a table's binned codes, written once into its engine and counted there. Secret as the data are.

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
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.errors import DataError
from tacit.load import Engine, Progress, Source, quietly
from tacit.load.columns import Dialect
from tacit.load.scan import Scan, bits_of
from tacit.model.counting import Group
from tacit.model.domain import Domain
from tacit.model.factor import Factor

Counts = NDArray[np.int64]

PER_SCAN = 2**21  # cells that are counted in one scan: what the engine holds meanwhile, whatever the rows are
KEPT = 2**24  # cells of tables that are remembered
_COLUMNS = 62  # of one scan: a bit each
_FEW = 2**12  # cells of a table that is remembered although it follows from another
_JOINT = 18  # bits of the codes of a joint table: see `_joined`
_MOST_TRIED = 50_000  # tables times attributes, beyond which joint tables are not looked for
_PRIME = 2**31 - 1
_TABLED = 2**12  # entries of one random table: see `sums`
# A number out of a list by its place. As one text: thousands of numbers by themselves take seconds to parse.
_LISTS: dict[Dialect, str] = {
    "duckdb": "(CAST('[{}]' AS BIGINT[]))[{} + 1]",
    "postgres": "(CAST('{{{}}}' AS BIGINT[]))[{} + 1]",
    "spark": "from_json('[{}]', 'array<bigint>')[{}]",
}
_SHIFTED: dict[Dialect, str] = {
    "duckdb": "(w{} >> {}) & {}",
    "postgres": "(w{} >> {}) & {}",
    "spark": "shiftright(w{}, {}) & {}",
}
_TYPES: dict[Dialect, tuple[tuple[int, str], ...]] = {
    "duckdb": ((2**8, "UTINYINT"), (2**16, "USMALLINT"), (2**32, "UINTEGER")),
    "postgres": ((2**15, "SMALLINT"), (2**31, "INTEGER")),
    "spark": ((2**7, "TINYINT"), (2**15, "SMALLINT"), (2**31, "INT")),
}

Where = tuple[tuple[str, bytes], ...]
Key = tuple[frozenset[str], Where]


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
    _tables: OrderedDict[Key, Counts] = field(default_factory=OrderedDict, repr=False)
    _opened: Source | None = field(default=None, repr=False)
    _was: str = field(default="", repr=False)

    @property
    def about(self) -> str:
        """What it was made for, in a word: another table, domain or bound has another copy."""
        told = json.dumps([self.of, self.domain.key, self.person, self.rows_per_person])
        return hashlib.sha256(told.encode()).hexdigest()[:32]

    @property
    def made_for(self) -> str | None:
        """What the copy that is there was made for; None where none is."""
        engine = self.source.engine
        return quietly(lambda: engine.made_for(self.place), self._unread)

    @property
    def exists(self) -> bool:
        """Whether it is there; refuses one that was made for something else."""
        found = self.made_for
        if found is not None and found.partition(" ")[0] != self.about:
            raise DataError(
                f"{self.place} is the copy of another table, domain or bound, or one that was cut short: delete it "
                "with `tacit forget`, or name another place."
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

    def write(self, kept: str, check: Callable[[Sequence[Counts]], None], progress: Progress | None = None) -> None:
        engine = self.source.engine
        parts = _SHIFTED[engine.dialect]
        codes = ", ".join(
            f"CAST({parts.format(slot.word, slot.shift, 2**slot.bits - 1)} AS {self._type(size)}) AS c{i}"
            for i, (slot, size) in enumerate(zip(self.domain.slots, self.domain.shape, strict=True))
        )
        # PostgreSQL would put the sum of all codes in the place of each of its parts, and work it out so many times.
        fence = " OFFSET 0" if engine.dialect == "postgres" else ""
        sql = f"SELECT {codes} FROM ({kept}{fence}) AS kept"
        failure = f"{self.place} could not be written: check the room there and your rights."

        def checked(written: Engine) -> None:
            source = Source(written)
            check(self._each(source.names()[1].sql(dialect=engine.dialect), source.run))

        word = f"{self.about} {self._told_state}".rstrip()
        quietly(lambda: engine.keep(sql, self.place, word, checked, progress), failure)

    def delete(self) -> None:
        self._tables.clear()
        self._opened = None
        engine = self.source.engine
        quietly(lambda: engine.drop(self.place), f"{self.place} could not be deleted: check your rights.")

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
            self._scan([one])
            found = self._remembered(one)
            assert found is not None
        return found

    def prepare(self, wanted: Sequence[Group]) -> None:
        asked = {_key(one): one for one in wanted if one.names or one.where}
        new = [one for key, one in asked.items() if self._nearest(key) is None]
        # A table that follows from another one by adding up is not counted by itself.
        scopes = sorted((frozenset(one.names) for one in new if not one.where), key=len, reverse=True)
        larger = {size: [scope for scope in scopes if len(scope) > size] for size in {len(scope) for scope in scopes}}
        new = [
            one for one in new if one.where or not any(scope.issuperset(one.names) for scope in larger[len(one.names)])
        ]
        if self.source.engine.dialect == "duckdb" and len(new) * len(self.domain) <= _MOST_TRIED:
            new = [*(one for one in new if one.where), *self._joined([one for one in new if not one.where])]
        room, chosen = KEPT, list[Group]()
        for one in new:
            room -= self._cells(one)
            if room >= 0:  # the others are counted when they are asked for
                chosen.append(one)
        self._scan(chosen)

    def sums(self, key: bytes) -> tuple[list[int], Counts]:
        """The spans of all codes, and two sums over the rows of products of random numbers below 2^31 - 1.

        A product has a number for each part of a row.

        As polynomials in the random numbers, those of two different tables differ (each cell has a product of its own),
        and their degree is the number of parts. So different tables have equal sums with a chance of at most
        (parts / 2^31)² (Schwartz 1980, Zippel 1979), where no count differs by a multiple of 2^31 - 1.
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
        """The parts of a row, some attributes as one number each, and a random number for each value of a part."""
        parts = list[tuple[str, list[int]]]()
        sizes = list[tuple[str, int]]()
        for i, size in enumerate(self.domain.shape):
            if sizes and sizes[-1][1] * size <= _TABLED:
                sizes[-1] = f"({sizes[-1][0]} * {size} + c{i})", sizes[-1][1] * size
            else:
                sizes.append((f"CAST(c{i} AS INTEGER)", size))
        for number, (index, size) in enumerate(sizes):
            drawn = hashlib.shake_256(key + bytes([which]) + number.to_bytes(4)).digest(8 * size)
            parts.append((index, [1 + x % (_PRIME - 1) for x in np.frombuffer(drawn, ">u8").tolist()]))
        return parts

    def _type(self, size: int) -> str:
        return next(name for most, name in _TYPES[self.source.engine.dialect] if size + 2 <= most)

    @property
    def _unread(self) -> str:
        return f"{self.place} could not be read: make it with `tacit encode`."

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
        """Refuse what was put in the place of the copy since it was opened: prices are for that one."""
        if self._state() != self._was:
            raise DataError(f"{self.place} is another copy than the one that was opened: open the session again.")

    def _run(self, statements: Sequence[str], progress: Progress | None = None) -> list[list[Counts]]:
        reader = self._reader
        self.check()
        found = reader.run(statements, progress)
        self.check()
        return found

    def _cells(self, one: Group) -> int:
        return math.prod(one.shape(self.domain))

    def _scan(self, groups: Sequence[Group]) -> None:
        """Count these, as many at a time as memory allows, and remember them."""
        scans = self._together(groups)
        for done, some in enumerate(scans):
            scan = self._scan_of(some)
            tables = scan.tables(*self._run([scan.sql(self._table)], self._share(done, len(scans))))
            for one, table in zip(some, tables, strict=True):
                self._tables[_key(one)] = table
        room = max(KEPT, sum(map(self._cells, groups)))
        while sum(table.size for table in self._tables.values()) > room:
            self._tables.popitem(last=False)  # the oldest

    def _joined(self, groups: Sequence[Group]) -> list[Group]:
        """Fewer, larger tables that all of these follow from by adding up, each small enough to be counted directly.

        DuckDB counts by up to 20 bits of codes without hashing, in one scan of just these columns, and takes as long
        for five attributes as for two; `GROUPING SETS` hashes every row once for each set. Each time the largest table
        that is left is joined with the attributes that bring the most others along.
        """
        bits = [bits_of(size) for size in self.domain.shape]
        place = {name: i for i, name in enumerate(self.domain)}
        scopes = {sum(1 << place[name] for name in one.names) for one in groups}
        left = sorted(scopes, key=lambda scope: -_sum(scope, bits))
        found = list[Group]()
        while left:
            joint = left[0]
            while True:
                fits = [joint | 1 << i for i in range(len(bits)) if not joint >> i & 1]
                fits = [wider for wider in fits if _sum(wider, bits) <= _JOINT]
                if not fits:
                    break
                joint = max(fits, key=lambda wider: sum(not scope & ~wider for scope in left))
            left = [scope for scope in left if scope & ~joint]
            found.append(Group(tuple(name for name, i in place.items() if joint >> i & 1)))
        return found

    def _together(self, groups: Sequence[Group]) -> list[list[Group]]:
        """The groups that each scan counts: as many as memory allows, whatever the rows are; a larger one by itself."""
        scans = list[list[Group]]()
        cells, columns = PER_SCAN, set[object]()
        alone = self.source.engine.dialect == "duckdb"  # see `_joined`
        for one in groups:
            cells += self._cells(one)
            columns |= {*one.names, *([_key(one)[1]] if one.where else [])}
            if cells > PER_SCAN or len(columns) > _COLUMNS or (alone and not one.where):
                scans.append([])
                cells, columns = self._cells(one), {*one.names, *([_key(one)[1]] if one.where else [])}
            scans[-1].append(one)
        return scans

    def _scan_of(self, groups: Sequence[Group]) -> Scan:
        place = {name: f"c{i}" for i, name in enumerate(self.domain)}
        used = {name for one in groups for name in one.names}
        sizes = {place[name]: self.domain.sizes[name] for name in self.domain if name in used}
        met, marks, sets = dict[str, str](), dict[Where, str](), list[list[str]]()
        for one in groups:
            sets.append([place[name] for name in self.domain if name in one.names])
            if one.where:
                mark = marks.setdefault(_key(one)[1], f"m{len(marks)}")
                sizes[mark], met[mark] = 2, _conditions(one.where, place)
                sets[-1].append(mark)
        return Scan(sets, sizes, met)

    def _share(self, done: int, scans: int) -> Progress | None:
        told = self.progress
        return None if told is None else lambda share: told((done + share) / scans)

    def _nearest(self, wanted: Key) -> Key | None:
        """The remembered table that this one is, or follows from by adding up: the smallest such."""
        if wanted in self._tables or wanted[1]:
            return wanted if wanted in self._tables else None
        larger = [key for key in self._tables if wanted[0] < key[0] and not key[1]]
        return min(larger, key=lambda key: self._tables[key].size, default=None)

    def _remembered(self, one: Group) -> Counts | None:
        """The table of a group, if it is known; axes in the order of the group's names."""
        names, where = wanted = _key(one)
        nearest = self._nearest(wanted)
        if nearest is None:
            return None
        ordered = [name for name in self.domain if name in nearest[0]]
        found = self._tables[nearest].sum(axis=tuple(i for i, name in enumerate(ordered) if name not in names))
        if nearest != wanted and found.size <= _FEW:
            self._tables[wanted] = found
        left = [name for name in ordered if name in names]
        axes = [left.index(name) for name in one.names]
        return np.asarray(found.transpose(*axes, *([len(axes)] if where else [])))


def _sum(scope: int, bits: Sequence[int]) -> int:
    """The bits of the attributes in a scope, which is a set of places as a number."""
    return sum(many for i, many in enumerate(bits) if scope >> i & 1)


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


def _product(parts: Sequence[tuple[str, list[int]]], dialect: Dialect) -> str:
    """The product of each part's random number, modulo the prime after each step: nothing overflows 64 bits."""
    found = ""
    for index, numbers in parts:
        number = _LISTS[dialect].format(",".join(map(str, numbers)), index)
        found = f"({found} * {number} % {_PRIME})" if found else number
    return found
