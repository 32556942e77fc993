"""The owner's configuration file: where the data are, the domain, the budget and the ledger, in TOML."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from msgspec.structs import fields

from tacit.errors import ConfigError, LedgerError, TacitError
from tacit.load import is_address, is_query
from tacit.model.attribute import boolean
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.release.mechanisms import check_names, setting_names
from tacit.release.settings import checked, names_of

if TYPE_CHECKING:
    from tacit.blocks.series import Series
    from tacit.owner.rows import Rows
    from tacit.session import Session


class DataSection(Struct, frozen=True, kw_only=True):
    """[data]. The blocks of a series may have sources of their own."""

    source: str = ""
    table: str | None = None
    person: str | None = None
    rows_per_person: int | None = None
    held: str = "auto"
    copy: str | None = None


class JoinSection(Struct, frozen=True, kw_only=True):
    """[[data.join]]: a table that is joined to the one of [data]."""

    name: str
    on: str
    holds: str
    source: str | None = None
    table: str | None = None
    to: str | None = None


class AboutSection(Struct, frozen=True, kw_only=True):
    """[about]: what people read about the table. Nothing rests on it."""

    title: str = ""
    text: str = ""
    row: str = ""
    source: str = ""
    licence: str = ""


class BudgetSection(Struct, frozen=True, kw_only=True):
    """[budget]"""

    epsilon: float
    delta: float = 0.0


class SessionSection(Struct, frozen=True, kw_only=True):
    """[session], beside the settings of the mechanism."""

    ledger: str
    mechanism: str = "auto"
    anchor: str | None = None
    start: bool = False
    prior: str | None = None
    continues: str | None = None


class BlocksSection(Struct, frozen=True, kw_only=True):
    """[blocks]: the table is a series of blocks. With a `column`, one table is split by it."""

    name: str | None = None
    column: str | None = None
    protects: str | None = None
    most_blocks: int | None = None
    prior: bool | None = None
    expected: int | None = None
    windows: list[int] | None = None


S = TypeVar("S", bound=Struct)
T = TypeVar("T")


@dataclass(frozen=True)
class Config:
    """A parsed configuration: the arguments of `tacit.open`, and what people read about the table and its columns."""

    data: Any  # what `tacit.open` takes: a path, a query, an address, or a `Star` of several tables
    table: str | None
    domain: Domain
    budget: Budget
    ledger: Path
    options: Mapping[str, Any]
    about: AboutSection = field(default_factory=AboutSection)
    columns: Mapping[str, str] = field(default_factory=dict)
    blocks: BlocksSection | None = None

    def series(self, **more: Any) -> Series:
        """The series of blocks that it describes. `more` are arguments of `tacit.series` beside these."""
        from tacit.blocks.opening import open_series

        if self.blocks is None:
            raise ConfigError("the configuration has no section [blocks], so its table is one table.")
        said: dict[str, Any] = {"name": self.blocks.name or self.blocks.column or "block", "prior": self.blocks.prior}
        said |= {name: getattr(self.blocks, name) for name in ("protects", "most_blocks", "expected", "windows")}
        for name in ("held", "copy"):
            if name in self.options:
                raise ConfigError(f"{name} is for one table, and not for a series of blocks.")
        options = {key: value for key, value in self.options.items() if key not in ("prior", "start")}
        return open_series(ledger=self.ledger, domain=self.domain, budget=self.budget, **{**options, **said, **more})

    def open(self, **more: Any) -> Session:
        """The session that it describes. `more` are arguments of `tacit.open` beside these, or in their place."""
        from tacit.owner.opening import open_session  # it brings an engine along, which planning does without

        self.check_one_table()
        return open_session(
            data=self.data,
            table=self.table,
            domain=self.domain,
            budget=self.budget,
            ledger=self.ledger,
            **{**self.options, **more},
        )

    @property
    def is_new(self) -> bool:
        """Whether there is no ledger yet, and none that the anchor remembers: opening it would make one."""
        from tacit.store.anchor import Anchor, lost_at

        place = Path(os.path.realpath(self.ledger))
        if any(os.path.lexists(name) for name in (place, f"{place}-wal")) or not place.parent.is_dir():
            return False
        with closing(Anchor(self.options.get("anchor"))) as anchor:
            return not (anchor.is_there and lost_at(anchor, place) is not None)

    @contextmanager
    def unbound(self) -> Iterator[Config]:
        """For who only looks: where there is no ledger yet, the same with one that is thrown away afterwards.

        A ledger is bound to its domain for good, and whoever asks for a price may still want to change it. Where the
        anchor remembers a ledger that is gone, nothing takes its place: opening it says so.
        """
        from tempfile import TemporaryDirectory

        if not self.is_new or self.blocks is not None:
            yield self
            return
        options = self.options
        if "continues" in options:
            before = Path(options["continues"]).name
            raise LedgerError(
                f"{self.ledger.name} is not made yet, and making it closes {before} for good: `tacit start`, or the "
                f"first question without --dry-run, does that. `tacit status` of {before} says what is left."
            )
        # An encoded copy that is there is looked at: making another one may take long. One that is not is thrown away
        # too, since it is of the domain as it is now.
        rows = self.rows()
        copied, kept = rows.place, rows.copied
        others = {name: value for name, value in options.items() if name != "copy"}
        with TemporaryDirectory(prefix="tacit-") as folder:
            here = {"anchor": Path(folder) / "anchors.sqlite", **({"copy": copied} if kept else {})}
            trial = replace(self, ledger=Path(folder) / self.ledger.name, options={**others, **here})
            try:
                yield trial
            finally:
                if copied is not None and not kept:
                    trial.rows().forget()

    def check_one_table(self) -> None:
        """Refuse a series of blocks where one table is wanted."""
        if self.blocks is not None:
            raise ConfigError("the table is a series of blocks: `tacit append` adds to it, --block LABEL names one.")

    def rows(self) -> Rows:
        """The rows of the table, as a session of this configuration would read them."""
        from tacit.owner.rows import Rows

        self.check_one_table()
        names = ("person", "rows_per_person", "held", "copy")
        options = {name: value for name, value in self.options.items() if name in names}
        return Rows(self.data, self.domain, self.ledger, self.table, **options)

    def reopen(self) -> tuple[Session, list[str]] | None:
        """What the ledger knows by itself, and in which words the configuration says other things than it.

        None where there is no ledger yet, or one of an earlier version, which tells too little.
        """
        from tacit.owner.terms import MadeWith, reopen

        self.check_one_table()
        made_with = MadeWith.of(self.ledger)
        if made_with is not None and not made_with.settings:  # a session would bind it to the domain as it is now
            raise LedgerError(
                f"{self.ledger.name} holds a discovery and no session yet: `tacit start` begins one, with the domain "
                f"as you leave it; `tacit verify {self.ledger.name}` says what was spent."
            )
        if made_with is None or made_with.domain is None:
            return None
        prior = self.options.get("prior")
        if prior is not None:
            from tacit.owner.prior import read_prior

            prior = read_prior(prior, made_with.domain)
        named = {name: value for name, value in self.options.items() if name in setting_names()}
        asked_for = {"mechanism": self.options.get("mechanism", "auto"), **named}
        differ = made_with.differences(self.budget, self.domain, asked_for)
        return reopen(self.ledger, anchor=self.options.get("anchor"), prior=prior, **named), differ


@dataclass(frozen=True)
class Columns:
    """A configuration of which some attributes are still to be discovered: the arguments of `tacit.discover`."""

    data: Any  # what `tacit.open` takes: a path, a query, an address, or a `Star` of several tables
    table: str | None
    columns: Mapping[str, Any]
    budget: Budget
    ledger: Path
    options: Mapping[str, Any]


def read_config(path: str | Path) -> Config:
    """Read a configuration file. Paths in it are relative to its folder."""
    path = Path(path)
    return _read(path, _parsed(path), _domain)


def read_columns(path: str | Path) -> Columns:
    """Read a configuration file some of whose attributes are to be discovered."""
    path = Path(path)
    parsed = _parsed(path)
    found = _read(path, parsed, lambda _: Domain({"_": boolean()}))  # which is all that a look is for
    tables, _ = _described(parsed.get("domain", {}))
    options = {name: value for name, value in found.options.items() if name in ("person", "rows_per_person", "anchor")}
    return Columns(found.data, found.table, tables, found.budget, found.ledger, options)


def _domain(tables: Mapping[str, Any]) -> Domain:
    named = [name for name, table in tables.items() if isinstance(table, Mapping) and "discover" in table]
    if named:
        raise ConfigError(f"{', '.join(named)}: still to be discovered. `tacit discover` does; or declare the values.")
    return Domain.from_dict(tables)


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path}. `tacit init DATA` drafts one.") from None
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"{path} cannot be read as a text file.") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None


def _read(path: Path, parsed: Mapping[str, Any], declared: Callable[[Mapping[str, Any]], Domain]) -> Config:
    """The configuration, whose domain is what `declared` makes of its tables."""
    unknown = sorted(set(parsed) - {"about", "data", "budget", "session", "blocks", "domain"})
    if unknown:
        raise ConfigError(
            f"{path}: unknown section [{unknown[0]}]; there are [about], [data], [budget], [session], [blocks], "
            "[domain.NAME]."
        )
    wrong: list[TacitError] = []

    def read(work: Callable[[], T]) -> T | None:
        """One part of the file; what is wrong with it is told together with what is wrong with the others."""
        try:
            return work()
        except TacitError as error:
            wrong.append(error)
            return None

    joins = read(lambda: _joins(path, parsed))
    data = read(lambda: _section(path, _without_joins(parsed), "data", DataSection))
    budget = read(lambda: _budget(_section(path, parsed, "budget", BudgetSection)))
    session = read(lambda: _section(path, parsed, "session", SessionSection, setting_names()))
    about = read(lambda: _section(path, parsed, "about", AboutSection))
    blocks = read(lambda: _section(path, parsed, "blocks", BlocksSection)) if "blocks" in parsed else None
    if data is not None and not data.source and (blocks is None or blocks.column is not None):
        wrong.append(ConfigError(f"{path}: [data] needs source."))
    tables, columns = _described(parsed.get("domain", {}))
    domain = read(lambda: declared(tables))
    if len(wrong) == 1:
        raise wrong[0]
    if data is None or budget is None or session is None or domain is None or about is None:
        raise ConfigError("\n".join(error.sentence for error in wrong))
    if (data.person is None) != (data.rows_per_person is None):
        raise ConfigError(f"{path}: [data] has person and rows_per_person, or neither.")
    options = {name: value for name, value in parsed["session"].items() if name != "ledger"}
    if data.person is not None:
        options |= {"person": data.person, "rows_per_person": data.rows_per_person}
    options |= {name: value for name in ("held", "copy") if (value := parsed.get("data", {}).get(name)) is not None}
    if session.anchor is not None:
        options["anchor"] = path.parent / session.anchor
    if session.continues is not None:
        options["continues"] = path.parent / session.continues
    if session.prior is not None:
        options["prior"] = _place(path, session.prior)
    source: Any = _place(path, data.source)
    ledger, table = path.parent / session.ledger, data.table
    if joins:
        from tacit.load.star import Star

        source, table = Star(source, joins, table), None
    return Config(
        data=source,
        table=table,
        domain=domain,
        budget=budget,
        ledger=ledger,
        options=options,
        about=about,
        columns=columns,
        blocks=blocks,
    )


def _without_joins(parsed: Mapping[str, Any]) -> Mapping[str, Any]:
    data = parsed.get("data", {})
    return {**parsed, "data": {k: v for k, v in data.items() if k != "join"}} if isinstance(data, Mapping) else parsed


def _joins(path: Path, parsed: Mapping[str, Any]) -> list[Any]:
    """The tables that are joined to the one of [data], as `tacit.Join` has them."""
    data = parsed.get("data", {})
    given = data.get("join", []) if isinstance(data, Mapping) else []
    if not isinstance(given, list):
        raise ConfigError(f"{path}: each table that is joined has a section [[data.join]].")
    if not given:
        return []
    from tacit.load.star import Join

    found = []
    for one in given:
        section = _section(path, {"data.join": one}, "data.join", JoinSection)
        fields_of = {name: getattr(section, name) for name in names_of(JoinSection)}
        place = None if section.source is None else _place(path, section.source)
        found.append(Join(**fields_of | {"source": place}))
    return found


def _described(tables: Any) -> tuple[Any, dict[str, str]]:
    """The domain without the descriptions of its columns, and these: words are no part of what privacy rests on."""
    if not isinstance(tables, Mapping):
        return tables, {}
    declared, columns = dict[str, Any](), dict[str, str]()
    for name, fields_of in tables.items():
        declared[name] = fields_of
        if isinstance(fields_of, Mapping) and isinstance(fields_of.get("description"), str):
            columns[name] = fields_of["description"]
            declared[name] = {key: value for key, value in fields_of.items() if key != "description"}
    return declared, columns


def _budget(section: BudgetSection) -> Budget:
    return Budget(epsilon=section.epsilon, delta=section.delta)


def _place(path: Path, source: str) -> str:
    """Where a table is: files are beside the configuration."""
    return source if is_query(source) or is_address(source) else str(path.parent / source)


def _section(path: Path, parsed: Mapping[str, Any], name: str, kind: type[S], settings: tuple[str, ...] = ()) -> S:
    """One section of the file; `settings` are names that the mechanisms have beside its own."""
    given, allowed = parsed.get(name, {}), (*names_of(kind), *settings)
    if not isinstance(given, Mapping):
        raise ConfigError(f"{path}: [{name}] is a section.")
    for key in given:
        if key not in allowed:
            raise ConfigError(f"{path}: [{name}] has no setting {key}; it has {', '.join(allowed)}.")
    for one in fields(kind):
        if one.required and one.name not in given:
            raise ConfigError(f"{path}: [{name}] needs {one.name}.")
    try:
        if settings:
            check_names("auto", {key: value for key, value in given.items() if key in settings})
        return checked(kind, given)
    except ConfigError as error:
        raise ConfigError(f"{path}: in [{name}] {error.sentence}") from None
