"""What an owner may set, each name in one struct, for `tacit.open`, tacit.toml, ledgers and published files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeVar, get_args

from msgspec import Meta, Struct, ValidationError, convert
from msgspec.structs import FieldInfo, fields

from tacit.errors import ConfigError

WholeSetting = Annotated[int, Meta(ge=1, le=10**9, description="a whole number from 1 to 1,000,000,000")]
Share = Annotated[float, Meta(ge=0, lt=1, description="a share of the budget, from 0 to below 1")]
Confidence = Annotated[float, Meta(ge=0.5, le=1 - 1e-9, description="a number from 0.5 to 0.999999999")]

S = TypeVar("S", bound=Struct)


class Common(Struct, frozen=True, kw_only=True):
    """confidence: of the error bars."""

    confidence: Confidence = 0.95


class DirectSettings(Struct, frozen=True, kw_only=True):
    """questions: how many new questions the budget is shared among.

    Of every mechanism: `free` settings may be others each time that a ledger is opened; `gated` is the share of the
    budget that hard answers are bought from, most of it by gates; `warm` that of a warm start, if there is one.
    """

    free: ClassVar[tuple[str, ...]] = ()
    gated: ClassVar[float] = 0.0
    warm: ClassVar[float] = 0.0
    questions: WholeSetting = 100


class HistogramSettings(Struct, frozen=True, kw_only=True):
    """questions: how many are expected. The answers do not depend on it."""

    free: ClassVar[tuple[str, ...]] = ("questions",)
    gated: ClassVar[float] = 0.0
    warm: ClassVar[float] = 0.0
    questions: WholeSetting = 10_000


class IterativeSettings(Struct, frozen=True, kw_only=True):
    """questions: how many are expected. hits: how many hard answers the budget is shared among.

    warm: the share of the budget for a warm start: one noisy release of tables of up to three attributes, which the
        session's start buys, and the hypothesis that fits them. 0 starts from the uniform hypothesis.
    certify: the share of the budget for a certificate of that hypothesis, which then answers conjunctions of a few
        conditions for nothing, without a gate, and stays as it is. 0 has none, and the gate checks every answer.
    halt: refuse after the last hard answer instead of going on without a guarantee.
    """

    free: ClassVar[tuple[str, ...]] = ("halt",)
    questions: WholeSetting = 10_000
    hits: WholeSetting = 200
    warm: Share = 0.0
    certify: Share = 0.0
    halt: bool = False

    def __post_init__(self) -> None:
        if self.certify and not self.warm:
            raise ConfigError("certify is for a warm start: without one there is nothing to certify.")
        if self.warm + self.certify >= 1:
            raise ConfigError(f"warm and certify together are below 1, not {self.warm + self.certify:g}.")

    @property
    def gated(self) -> float:
        return 1 - self.warm - self.certify


class MedianSettings(IterativeSettings, frozen=True, kw_only=True):
    """questions, hits, warm, certify, halt: as for "iterative". Without a warm start the databases start from nothing,
        as in the paper. `median.usual` says what a new session has.

    databases, records, seed: how many databases vote, of how many records each, and the public seed that they are drawn
        with. The same settings give the same databases.
    sampler: "databases" of records, or "fractions": fractional ones, for linear questions that cut X into few parts.
        Both are for databases that start from nothing; after a warm start they are weights over common records.
    """

    databases: Annotated[int, Meta(ge=10, le=100_000, description="a whole number from 10 to 100,000")] = 200
    records: Annotated[int, Meta(ge=10, le=10**6, description="a whole number from 10 to 1,000,000")] = 1000
    seed: Annotated[int, Meta(ge=0, le=2**63 - 1, description="a whole number from 0 to 2^63 - 1")] = 0
    sampler: Literal["databases", "fractions"] = "databases"

    def __post_init__(self) -> None:
        if self.databases * self.records > 10**8:
            raise ConfigError(f"{self.databases:,} databases of {self.records:,} records are more than 10^8 records.")
        super().__post_init__()
        if self.warm and self.sampler == "fractions":
            raise ConfigError('sampler="fractions" starts from nothing: warm is 0.')


Settings = DirectSettings | HistogramSettings | IterativeSettings


def names_of(kind: type[Struct]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind))


def checked(kind: type[S], given: Mapping[str, object], *, strict: bool = True) -> S:
    """Settings of this kind; what is not given has its default. Refuses the first value that is none.

    With `strict=False` values may be spelled as texts, as ledgers keep them.
    """
    values = {field.name: _value(field, given[field.name], strict) for field in fields(kind) if field.name in given}
    return kind(**values)


def _value(field: FieldInfo, given: object, strict: bool) -> Any:
    try:
        return convert(given, field.type, strict=strict)
    except ValidationError:
        raise ConfigError(f"{field.name} is {_words(field.type)}, not {given!r}.") from None


def _words(kind: Any) -> str:
    described = [meta.description for meta in getattr(kind, "__metadata__", ()) if meta.description]
    if described:
        return str(described[0])
    if get_args(kind):  # a literal, or a setting that may be absent
        named = [str(arg) for arg in get_args(kind) if isinstance(arg, str)]
        return f"one of {', '.join(named)}" if named else _words(get_args(kind)[0])
    return {str: "text", int: "a whole number", float: "a number", bool: "true or false"}[kind]
