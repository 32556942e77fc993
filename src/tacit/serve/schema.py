"""The JSON of the API: what a body may hold, and how bodies and results are read and written. Pure.

What results hold stands in `tacit.replies`, which clients read too.

The description of the API is made of the same classes (`serve.openapi`), so that it cannot differ from what is read.
What is refused here is refused before a question is looked at, so nothing can have been spent.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from tacit.replies import MAX_BATCH, StrictStruct
from tacit.serve.refusal import Refusal

MAX_JSON_DEPTH = 8
MAX_NESTED = 2**15  # lists and objects of a body: they take longer to read than anything else of their length
MAX_LIST = 50_000  # values of any one list
MAX_JSON_TEXT = 10_000  # characters of one text
MAX_IN_VALUES = 10_000  # values of one {"in": …}
_LONGEST = 120  # characters of what a refusal repeats

Json = dict[str, Any]
S = TypeVar("S", bound=Struct)

Text = Annotated[str, Meta(max_length=MAX_JSON_TEXT)]


# Conditions. A pair is a list of two: a fixed tuple beside a text of limited length crashes msgspec 0.22.
JsonInteger = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Scalar = Text | JsonInteger | float | bool
Pair = Annotated[list[Scalar], Meta(min_length=2, max_length=2)]


class AnyOf(StrictStruct):
    """Any of these values."""

    values: Annotated[list[Scalar | None], Meta(min_length=1, max_length=MAX_IN_VALUES)] = msgspec.field(name="in")


WhereBody = Annotated[
    dict[Text, Scalar | Pair | AnyOf | None],
    Meta(description="Equal to a value, missing (null), between [low, high], or any of {in: [...]}."),
]


QuestionBody = Annotated[Any, Meta(extra_json_schema={"$ref": "#/components/schemas/Question"})]


# Whole bodies.
class LoginBody(StrictStruct):
    """The body of a login is like {"key": "tacit_…"}."""

    key: Annotated[str, Meta(max_length=MAX_JSON_TEXT, pattern="^tacit_")]


class AskBody(StrictStruct):
    """The body of a question is like {"question": "SELECT COUNT(*) FROM data"}."""

    question: QuestionBody
    within: (
        Annotated[float, Meta(gt=0, description="Buy a count or a sum by itself, to this half width at most.")]
        | UnsetType
    ) = UNSET


class AskManyBody(StrictStruct):
    """The body of a batch is like {"questions": ["SELECT COUNT(*) FROM data"]}."""

    questions: Annotated[list[QuestionBody], Meta(min_length=1, max_length=MAX_BATCH)]


def parse(body: bytes) -> Any:
    """The value of a JSON text: no NaN, no doubled fields, no half characters, and within limits.

    >>> parse(b'{"count": {"sex": "F"}}')
    {'count': {'sex': 'F'}}
    """
    if body.count(b"[") + body.count(b"{") > MAX_NESTED:
        raise Refusal(400, "bad_json", f"the body has more than {MAX_NESTED:,} lists and objects.")
    try:
        value = _SHAPE.decode(body)
        _ONCE.decode(body.decode())
    except (ValueError, RecursionError) as error:
        raise Refusal(
            400, "bad_json", f"the body is not plain JSON of at most {MAX_JSON_DEPTH} levels: {error}."
        ) from None
    return value


def shaped(value: Any, kind: type[S], code: str = "bad_json") -> S:
    """The value as an object of a kind, or a refusal that says how such an object looks."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        words = str(error)
    # msgspec has one class for all of its refusals: only its words tell them apart.
    status = 400
    if words.startswith("Object contains unknown field"):
        code = "unknown_field"
    elif words.startswith("Expected `float` "):  # a number out of its range; another type is "Expected `float`, got …"
        status, code = 422, "invalid_query"
    example = (kind.__doc__ or "").rstrip(".")
    given = "" if kind is LoginBody else f", not like {_short(value)}"  # a key is never repeated
    raise Refusal(status, code, f"{example}{given}: {words}.")


def encode(value: Json | Struct) -> bytes:
    """The JSON text of a value."""
    if isinstance(value, Struct):
        return msgspec.json.encode(value)
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _once(pairs: list[tuple[str, Any]]) -> None:
    """msgspec takes the last of two fields with one name: here they are refused."""
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise ValueError(f"the field {name[:60]!r} is given twice")
        seen.add(name)


def _any_json(depth: int) -> Any:
    """The type of any JSON that nests no deeper."""
    if not depth:
        return Scalar | None
    below = _any_json(depth - 1)
    return Scalar | Annotated[list[below], Meta(max_length=MAX_LIST)] | dict[Text, below] | None  # type: ignore[valid-type]


_SHAPE = msgspec.json.Decoder(_any_json(MAX_JSON_DEPTH))
_ONCE = json.JSONDecoder(object_pairs_hook=_once)
