"""Trusted with counts: several tables as one, in which a row has at most one row of each table that is joined.

A join adds columns and never rows. So a key that two rows of a joined table share is refused before anything is
counted; a row without a partner has no value in the new columns, which is `missing`. Two keys that differ where they
are checked must differ where they are joined: both compare the same expressions, of one type whose equality is exact.
Which type that is follows from the types of the two columns, never from their values.

What a joined table holds is the owner's word: facts that are public, or what belongs to the person whose rows the fact
table has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeVar

from sqlglot import exp

from tacit.errors import ConfigError, DataError
from tacit.load import Source, open_source
from tacit.load.columns import BYTE_ORDER, Dialect, TableColumn, csv_type, match, table_column
from tacit.load.engines import DuckDB, Postgres, copied
from tacit.load.spark import Spark
from tacit.model.domain import Domain

T = TypeVar("T")
_HOLDS = ("public", "person")
_JOINED = "tacit_joined"
_FAILURE = "the joined tables could not be read: values of a key do not have its type."
_WHOLE = "whole numbers"
_WIDEST: dict[Dialect, str] = {"duckdb": "int128", "postgres": "bigint", "spark": "bigint"}  # of whole numbers


@dataclass(frozen=True, kw_only=True)
class Join:
    """A table that is joined to the fact table, on a column there, to a key here that no two rows share.

    source, table: where it is, as `data` and `table` of `tacit.open`; a table of the same database needs no source.
    on: a column of the fact table, or of a table that was joined before. to: the key; called like `on` by default.
    holds: "public" where it holds facts that everybody may know (clinics, regions), "person" where it holds what
        belongs to the person whose rows the fact table has. Then it is joined on the person's column.
    name: what it is called in messages, and in front of a column whose name is taken: clinics_name.
    """

    on: str
    holds: Literal["public", "person"]
    name: str
    source: Any = None
    table: str | None = None
    to: str | None = None

    def __post_init__(self) -> None:
        if self.holds not in _HOLDS:
            raise ConfigError(f'{self.name}: holds is "public" or "person", not {self.holds!r}.')
        if self.source is None and self.table is None:
            raise ConfigError(f"{self.name}: a table that is joined has a source, or is a table of the same database.")

    @property
    def key(self) -> str:
        return self.to or self.on

    def check_person(self, person: str | None, columns: Sequence[str]) -> None:
        """Refuse a table of people whose rows are not protected together with the fact table's."""
        alike = [name for name in columns if name.lower() == self.on.lower()]
        # PostgreSQL may have `id` beside "ID": then only the same spelling is the same column.
        same = person == self.on or (person is not None and person.lower() == self.on.lower() and len(alike) < 2)
        if self.holds == "person" and not same:
            raise DataError(
                f"{self.name} holds people, who have rows under {self.on}: say person = {self.on!r}, so that all that "
                'is about one of them is protected together. A table that holds nobody\'s own facts says "public".'
            )


@dataclass(frozen=True)
class Star:
    """A fact table and what is joined to it, as `data` of `tacit.open`.

    >>> visits = Star("visits.csv", [Join(name="clinics", source="clinics.csv", on="clinic", holds="public")])
    """

    fact: Any
    joins: Sequence[Join]
    table: str | None = None

    def open(self) -> Source:
        """The engine that joins them; all are in one."""
        parts = [open_source(self.fact, self.table).engine]
        for join in self.joins:
            parts.append(open_source(self.fact if join.source is None else join.source, join.table).engine)
        joins = tuple(self.joins)
        if all(isinstance(part, DuckDB) and part.ours for part in parts):
            return Source(JoinedDuckDB([part for part in parts if isinstance(part, DuckDB)], joins))
        servers = [part for part in parts if isinstance(part, Postgres)]
        if len(servers) == len(parts) and len({part.url for part in servers}) == 1:
            return Source(JoinedPostgres(servers, joins))
        frames = [part for part in parts if isinstance(part, Spark)]
        if len(frames) == len(parts):
            return Source(JoinedSpark(frames, joins))
        raise DataError(
            "tables are joined within one engine: all of them files and frames, tables of one PostgreSQL database, or "
            "Spark DataFrames. A DuckDB relation has a connection of its own: join in its query."
        )


class StarColumn(NamedTuple):
    """A column of the joined table: its name there, the number of the table that it comes from, its name in that."""

    name: str
    part: int
    column: str


@dataclass(frozen=True)
class Layout:
    """Which columns the joined table has, and which column of which table each join is on, with the key there."""

    shown: list[StarColumn] = field(default_factory=list)
    keys: list[tuple[StarColumn, str]] = field(default_factory=list)
    kinds: Sequence[str] = ()  # what each key is compared as: see `key_kind`

    @classmethod
    def of(cls, names: Sequence[Sequence[str]], joins: Sequence[Join]) -> Layout:
        found = cls([StarColumn(name, 0, name) for name in names[0]])
        for part, (join, own) in enumerate(zip(joins, names[1:], strict=True), start=1):
            by_name = {one.name: one for one in found.shown}
            on, key = by_name[_find(join.on, by_name, "what it is joined to")], _find(join.key, own, join.name)
            found.keys.append((on, key))
            for name in own:
                taken = {one.name.lower() for one in found.shown}
                called = name if name.lower() not in taken else f"{join.name}_{name}"
                if name == key:
                    continue
                if called.lower() in taken:
                    raise DataError(f"two columns would be called {called}: rename one in a view or a query.")
                found.shown.append(StarColumn(called, part, name))
        return found

    def typed(self, types: Sequence[Mapping[str, str]], joins: Sequence[Join]) -> Layout:
        """This layout with what each key is compared as, given the types of all columns; refuses keys of two kinds."""
        kinds = []
        for join, (on, key), own in zip(joins, self.keys, types[1:], strict=True):
            kinds.append(_common(join, types[on.part][on.column], own[key]))
        return replace(self, kinds=kinds)

    def select(self, tables: Sequence[exp.Table], dialect: Dialect) -> str:
        """The joined table as a query."""
        columns = [exp.alias_(_column(one.part, one.column), one.name, quoted=True) for one in self.shown]
        query = exp.select(*columns).from_(_aliased(tables[0], 0))
        for part, ((on, key), kind) in enumerate(zip(self.keys, self.kinds, strict=True), start=1):
            ours, theirs = _column(on.part, on.column), _column(part, key)
            meets = exp.EQ(this=_compared(ours, kind, dialect), expression=_compared(theirs, kind, dialect))
            query = query.join(_aliased(tables[part], part), on=meets, join_type="left")
        return query.sql(dialect)

    def shared(self, tables: Sequence[exp.Table], dialect: Dialect) -> list[str]:
        """For each join, the statement that counts the keys which several rows have."""
        found = []
        for part, ((_, key), kind) in enumerate(zip(self.keys, self.kinds, strict=True), start=1):
            column = _compared(exp.column(key, quoted=True), kind, dialect)  # what the join compares
            several = exp.GT(this=exp.Count(this=exp.Star()), expression=exp.Literal.number(1))
            known = exp.Not(this=exp.Is(this=column.copy(), expression=exp.Null()))
            twice = exp.select(exp.alias_(column, "key")).from_(tables[part].copy()).where(known)
            twice = twice.group_by(column.copy()).having(several)
            counted = exp.cast(exp.Count(this=exp.Star()), "bigint")
            found.append(exp.select(exp.alias_(counted, "n")).from_(twice.subquery("twice")).sql(dialect))
        return found


def key_kind(kind: str) -> str | None:
    """What a key of an engine's type is compared as; None if its equality is not exact.

    Whole numbers are of one kind, and so is text. All others are a kind of their own, by their engine's name.
    """
    column = table_column("", kind)
    if kind.upper() in ("UUID", "UHUGEINT"):  # a UUID has several texts; no signed whole numbers hold all UHUGEINTs
        return kind.upper()
    if column.type == "number":
        return None if column.fractions else _WHOLE
    if column.type in ("text", "empty"):
        return column.type
    return kind.upper() if column.type in ("boolean", "date", "timestamp", "zoned") else None


def _common(join: Join, on: str, key: str) -> str:
    """What both columns of a join are compared as, by their types alone."""
    for name, kind in ((join.on, on), (join.key, key)):
        if key_kind(kind) is None:
            rounded = table_column(name, kind).fractions
            why = "holds numbers with fractions, which are rounded" if rounded else "has another type"
            raise DataError(
                f"{join.name}: {name} {why}: a key is whole numbers, text, a date, a timestamp, a UUID, or true and "
                'false. Cast it in a view or a query; in pandas, astype("Int64").'
            )
    # A column of nothing but NULL, which some frames have, meets no key.
    kinds = {str(key_kind(on)), str(key_kind(key))} - {"empty"} or {"text"}
    if len(kinds) > 1:
        raise DataError(
            f"{join.name}: keys have to be of one kind: {join.key} there is {key_kind(key)}, and {join.on}, which it "
            f"is joined to, is {key_kind(on)}. Cast one of them in a view or a query."
        )
    return kinds.pop()


def _compared(column: exp.Expr, kind: str, dialect: Dialect) -> exp.Expr:
    """A key as what it is compared as, where it is joined and where it is checked."""
    if kind == _WHOLE:
        return exp.cast(column, _WIDEST[dialect])
    if kind == "text":  # byte by byte, whatever the columns' collations; CHAR(n) has lost its blanks on both sides
        return exp.Collate(this=exp.cast(column, "text"), expression=BYTE_ORDER[dialect].copy())
    return column  # of the same type on both sides


def _find(name: str, among: Iterable[str], where: str) -> str:
    among = list(among)
    alike = [name] if name in among else [one for one in among if one.lower() == name.lower()]
    if len(alike) != 1:
        has = ", ".join(among[:20]) + ", …" * (len(among) > 20)
        raise DataError(f"{where} has {'several columns like' if alike else 'no column'} {name}; there are {has}.")
    return alike[0]


def _column(part: int, name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=f"t{part}")


def _aliased(table: exp.Table, part: int) -> exp.Expr:
    return exp.alias_(table.copy(), f"t{part}", table=True)


def check_keys(joins: Sequence[Join], shared: Iterable[int]) -> None:
    """Refuse a key that is none. Whether it is, is about the rows: for the owner, as all that a load refuses is."""
    for join, number in zip(joins, shared, strict=True):
        if number:
            raise DataError(
                f"{join.name}: several of its rows have the same {join.key}, so a row would be joined to more than "
                "one: keep one of each in a view or a query."
            )


class JoinedDuckDB(DuckDB):
    """Files and frames, joined in one DuckDB."""

    def __init__(self, parts: Sequence[DuckDB], joins: Sequence[Join]) -> None:
        super().__init__("the join", lambda connection, _: self._join(connection))
        self.failure = _FAILURE
        self._parts, self.joins = parts, joins
        self._kinds: list[dict[str, str]] | None = None
        self._tables = [exp.table_(f"tacit_part{number}", quoted=True) for number in range(len(parts))]
        self._unique = False

    def version(self) -> str:
        return "\n".join(part.version() for part in self._parts)

    def columns(self, domain: Domain | None = None, person: str | None = None) -> tuple[TableColumn, ...]:
        if domain is not None:
            self._kinds = self._declared(domain, person)
            vars(self).pop("_relation", None)  # it is read as the types say
        return super().columns()

    def _join(self, connection: Any) -> Any:
        if self._kinds is None:
            self._kinds = self._declared(None, None)
        self._held = [part.related(connection, kinds) for part, kinds in zip(self._parts, self._kinds, strict=True)]
        for part, (table, relation) in enumerate(zip(self._tables, self._held, strict=True)):
            relation.create_view(table.name if not part else f"tacit_read{part}", replace=True)
            if part:  # read once: the rows whose keys are checked are those that are joined
                connection.execute(f'CREATE OR REPLACE TEMP TABLE "{table.name}" AS SELECT * FROM tacit_read{part}')
        types = [_types(relation) for relation in self._held]
        self._layout = Layout.of([list(own) for own in types], self.joins).typed(types, self.joins)
        self._unique = False
        return connection.sql(self._layout.select(self._tables, "duckdb"))

    def checked(self) -> None:
        joined = self._relation  # which has made the views
        if not self._unique:
            statements = self._layout.shared(self._tables, "duckdb")
            check_keys(self.joins, [int(self._connection.execute(sql).fetchall()[0][0]) for sql in statements])
            self._unique = joined is not None

    def _declared(self, domain: Domain | None, person: str | None) -> list[dict[str, str]]:
        """What the columns of each CSV file are read as: what is declared; a key, as what it is joined to."""
        files = [part.header(self._connection) for part in self._parts]
        plain = [
            {} if header is not None else _types(part.related(self._connection, {}))
            for part, header in zip(self._parts, files, strict=True)
        ]
        layout = Layout.of([header or list(types) for header, types in zip(files, plain, strict=True)], self.joins)
        by_name = {one.name: one for one in layout.shown}
        kinds: list[dict[str, str]] = [{} for _ in files]
        columns = [table_column(one.name, "VARCHAR") for one in layout.shown]
        matched = {} if domain is None else match(columns, domain, person)
        keys = {on for on, _ in layout.keys}
        for name, column in matched.items():
            found = by_name[column.name]
            if domain is None or files[found.part] is None or (name not in domain and found in keys):
                continue  # a person's key is read as what it is joined to
            kind = csv_type(domain, name)
            if found in keys and kind == "DOUBLE" and domain[name].kind != "numeric":
                kind = "BIGINT"  # whole numbers are told apart exactly
            if kind:
                kinds[found.part][found.column] = kind
        for part, (on, key) in enumerate(layout.keys, start=1):
            theirs = "VARCHAR" if files[part] is not None else _plain(plain[part][key])
            csv = files[on.part] is not None
            ours = kinds[on.part].setdefault(on.column, theirs) if csv else _plain(plain[on.part][on.column])
            if files[part] is not None:
                kinds[part][key] = ours
        return kinds


def _plain(kind: str) -> str:
    """What a CSV file's key is read as, to meet a key of that type: text where a type lists its values."""
    return "VARCHAR" if key_kind(kind) in ("text", "empty") else kind


def _types(relation: Any) -> dict[str, str]:
    return {name: str(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}


class JoinedPostgres(Postgres):
    """Tables of one PostgreSQL database. Nothing is made there: each statement begins with the join."""

    def __init__(self, parts: Sequence[Postgres], joins: Sequence[Join]) -> None:
        super().__init__(parts[0].url, exp.table_(_JOINED, quoted=True), "join")
        self.failure = _FAILURE
        self._parts, self.joins = parts, joins

    @cached_property
    def _layout(self) -> Layout:
        types = [dict(part.types()) for part in self._parts]
        return Layout.of([list(own) for own in types], self.joins).typed(types, self.joins)

    def stated(self, sql: str) -> str:
        tables = [part.table for part in self._parts]
        return f'WITH "{_JOINED}" AS ({self._layout.select(tables, "postgres")}) {sql}'

    def checked(self, connection: Any) -> None:
        tables = [part.table for part in self._parts]
        shared = [int(copied(connection, sql)[0][0]) for sql in self._layout.shared(tables, "postgres")]
        check_keys(self.joins, shared)


class JoinedSpark(Spark):
    """Spark DataFrames, joined in their session."""

    def __init__(self, parts: Sequence[Spark], joins: Sequence[Join]) -> None:
        self._parts, self.joins = parts, joins
        self._tables = [part.table for part in parts]
        types = [dict(part.types()) for part in parts]
        self._layout = Layout.of([part.frame.columns for part in parts], joins).typed(types, joins)
        joined = self._within(lambda session: session.sql(self._layout.select(self._tables, "spark")))
        super().__init__(joined)
        self.failure = _FAILURE

    def _named(self, work: Callable[[Any], T]) -> T:
        statements = self._layout.shared(self._tables, "spark")
        shared = self._within(lambda session: [int(session.sql(sql).collect()[0][0]) for sql in statements])
        check_keys(self.joins, shared)
        return super()._named(work)

    def _within(self, work: Callable[[Any], T]) -> T:
        """What is done while the tables have names."""
        session = self._parts[0].frame.sparkSession
        for part in self._parts:
            part.frame.createOrReplaceTempView(part.table.name)
        try:
            return work(session)
        finally:
            for part in self._parts:
                session.catalog.dropTempView(part.table.name)
