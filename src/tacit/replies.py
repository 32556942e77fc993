"""The JSON of the API's results, one class for each: what the server writes, its description says, and clients read."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from tacit.model.budget import MEASURES, Measure

Role = Literal["owner", "analyst", "reader"]
MAX_BATCH = 1_000  # questions of one request
Number = int | float  # a whole number stays one
Whole = Annotated[int, Meta(ge=0)]
Amount = Annotated[
    dict[Measure, float],
    Meta(
        min_length=1,
        max_length=1,
        description="Privacy loss: in pure epsilon, in zCDP's rho, or in gdp, half the square of Gaussian DP's mu.",
        extra_json_schema={"propertyNames": {"enum": list(MEASURES)}},
    ),
]


T = TypeVar("T")


def given(value: T | UnsetType) -> T | None:
    """The value of a field that may be left out."""
    return None if isinstance(value, UnsetType) else value


class StrictStruct(Struct, forbid_unknown_fields=True):
    """An object that has these fields and no others."""


class HealthReply(StrictStruct):
    status: Literal["ok"]


class DocumentReply(Struct):
    openapi: str
    paths: dict[str, Any]


class WhoamiReply(StrictStruct):
    name: str
    role: Role


class DatasetsReply(StrictStruct):
    datasets: list[str]


class KeyLine(StrictStruct):
    """A key without its secret."""

    name: str
    role: Role
    quota: float | None
    created: str
    revoked: str | None


class KeysReply(StrictStruct):
    keys: list[KeyLine]


class BarLine(StrictStruct):
    """A half width that is proved at its confidence, and what it is about."""

    width: Number
    about: str
    confidence: float


class AnswerLine(Struct, kw_only=True):
    """With probability `confidence` the truth is within `error` of the value: the first of `bars`; null: none."""

    # An answer writes its own fields (`to_dict`), and may have more than these.

    kind: str
    question: str
    share: Annotated[float, Meta(description="Of a quantile: 0.5 is the median.")] | UnsetType = UNSET
    value: Number | str | UnsetType | None = UNSET
    columns: list[str] | UnsetType = UNSET
    labels: Annotated[int, Meta(description="How many columns have labels; they come first.")] | UnsetType = UNSET
    plain: Annotated[list[bool], Meta(description="Which columns of values have no bars, if any.")] | UnsetType = UNSET
    rows: list[list[Any]] | UnsetType = UNSET
    errors: list[list[Number | None]] | UnsetType = UNSET
    error: Annotated[Number, Meta(description="The half width of the first bar, the narrowest.")] | UnsetType | None = (
        UNSET
    )
    interval: Annotated[list[Any], Meta(min_length=2, max_length=2)] | UnsetType | None = UNSET
    beyond: (
        Annotated[Number, Meta(description="How far the bins of values move it at most, which the bar leaves out.")]
        | UnsetType
    ) = UNSET
    shape: Annotated[list[int], Meta(description="How many values each attribute of a table has.")] | UnsetType = UNSET
    along: Annotated[str, Meta(description="The attribute whose values follow one another.")] | UnsetType = UNSET
    own: (
        Annotated[list[Number | None], Meta(description="The error of each row of a table, where they differ.")]
        | UnsetType
    ) = UNSET
    start: Annotated[Number, Meta(description="Where the first step of a curve begins.")] | UnsetType = UNSET
    ends: Annotated[list[Number], Meta(description="Where each step ends.")] | UnsetType = UNSET
    dated: Annotated[bool, Meta(description="Whether start and ends are days.")] | UnsetType = UNSET
    simultaneous: Annotated[bool, Meta(description="Whether the bar holds for all rows at once.")] | UnsetType = UNSET
    why: Annotated[str, Meta(description="Why a curve was measured this way.")] | UnsetType = UNSET
    limits: (
        Annotated[
            list[Any],
            Meta(description="The least and the most that a value can be; null: no end. Of rows, by column."),
        ]
        | UnsetType
    ) = UNSET
    confidence: float
    asked_confidence: (
        Annotated[float, Meta(description="The confidence that was asked for, where the bar has another.")] | UnsetType
    ) = UNSET
    says: Annotated[Literal["sharp", "rough", "nothing"], Meta(description="Whether the answer says anything.")]
    bars: Annotated[list[BarLine], Meta(description="Every bar that is proved, the narrowest first.")]
    source: Literal["measured", "repeat", "hypothesis", "public"]
    cost: Amount
    percent: Annotated[float, Meta(description="The cost, of the budget.")]
    total: Annotated[Amount, Meta(description="The whole budget, where something was paid.")] | UnsetType = UNSET
    entry: Annotated[int, Meta(ge=0, description="Where the answer stands in the ledger.")] | UnsetType = UNSET
    seal: Annotated[str, Meta(description="The hash that seals that entry and all before it.")] | UnsetType = UNSET
    note: str | UnsetType = UNSET


class AskReply(StrictStruct):
    answer: AnswerLine


class AskManyReply(StrictStruct):
    answers: list[AnswerLine]


class CostReply(StrictStruct):
    known: bool
    cost_at_most: Amount
    total: Annotated[Amount, Meta(description="Of the whole budget.")]
    percent: float
    why: str
    left: Annotated[Amount | None, Meta(description="Of a question about blocks, the least left of any of them.")] = (
        None
    )


class ExpectedLine(StrictStruct):
    """An error to expect, in rows, and what it is about."""

    error: float
    about: str


class BaseReply(StrictStruct):
    """What the answers start from: in words, whether it is bought, its price, and the errors to expect of it."""

    what: str
    bought: bool
    percent: Annotated[float, Meta(ge=0, le=100, description="Of the budget.")]
    cost: Amount
    total: Annotated[Amount, Meta(description="Of the whole budget.")]
    expects: list[ExpectedLine]
    certified: list[ExpectedLine]


class AttributeLine(StrictStruct):
    name: str
    kind: str
    ordered: bool
    size: Whole
    labels: list[str]
    takes: str


class BudgetLine(StrictStruct):
    epsilon: float
    delta: float


class DomainReply(StrictStruct):
    """What is public: the attributes, the number of rows, and how the budget is spent. Of a series it grows."""

    rows: Whole
    cells: Whole
    attributes: list[AttributeLine]
    confidence: float
    mechanism: str
    reason: Annotated[str, Meta(description="Why this mechanism.")]
    rows_per_person: Whole
    measure: Annotated[Measure, Meta(description="What losses are counted in.")]
    declared: Annotated[str, Meta(description="The attributes as the owner declared them, in TOML.")]
    blocks: Annotated[str, Meta(description="What the column of blocks is called; empty where there are none.")] = ""


class QuotaLine(StrictStruct):
    share: Annotated[float, Meta(ge=0, le=1)]  # 0 where nothing was left when it was first asked
    used: Amount
    of: Amount
    note: str


class ExtensionLine(StrictStruct):
    budget: BudgetLine
    total: Amount
    time: str
    entry: Whole
    seal: str


class BlockLine(StrictStruct):
    """One block of a series, and what is spent of its budget."""

    block: str
    rows: Whole
    started: bool
    spent: Amount
    total: Amount


class BudgetReply(StrictStruct):
    budget: BudgetLine
    extensions: list[ExtensionLine]
    continues: str | None
    continued_by: str | None
    total: Amount
    spent: Amount
    left: Amount
    percent_spent: float
    epsilon_spent: float
    quota: QuotaLine | None
    blocks: list[BlockLine] = []


class HistoryLine(StrictStruct):
    question: str
    kind: str
    cost: Amount
    percent: float
    entry: Whole
    seal: str


class HistoryReply(StrictStruct):
    history: list[HistoryLine]
    next: int | None


class AuditLine(Struct):
    time: str
    who: str
    role: str


class AuditReply(StrictStruct):
    audit: list[AuditLine]


class ErrorLine(StrictStruct):
    code: str
    message: str
    nothing_spent: bool
    server: Annotated[str, Meta(description="Where the data are, if they are elsewhere.")] | UnsetType = UNSET


class ErrorReply(StrictStruct):
    error: ErrorLine
