"""JSON as the server reads and writes it: stricter than Python, which takes NaN, doubled keys and any depth. Pure.

Everything refused here is refused before a question is looked at, so nothing can have been spent.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection
from typing import Any, NoReturn

from tacit.serve.refusal import Refusal

MAX_BODY = 2**20  # bytes
MAX_DEPTH = 8
MAX_VALUES = 50_000  # numbers, texts, lists and objects together
MAX_TEXT = 10_000  # characters of one text
MAX_DIGITS = 24
_SURROGATE = re.compile("[\ud800-\udfff]")

Json = dict[str, Any]


def parse(body: bytes) -> Any:
    """The value of a JSON text.

    >>> parse(b'{"count": {"sex": "F"}}')
    {'count': {'sex': 'F'}}
    """
    if len(body) > MAX_BODY:
        raise too_large()
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        _refuse("the body is not UTF-8.")
    if text.startswith("\ufeff"):
        _refuse("the body begins with a byte order mark; plain UTF-8 has none.")
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_int=_whole, parse_float=_decimal
        )
    except json.JSONDecodeError as error:
        _refuse(f"the body is not JSON (line {error.lineno}, column {error.colno}).")
    except RecursionError:
        _refuse(f"the body nests deeper than {MAX_DEPTH} levels.")
    _check(value)
    return value


def encode(value: Json) -> bytes:
    """The JSON text of a value."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def fields(value: Any, what: str, required: Collection[str] = (), optional: Collection[str] = ()) -> Json:
    """The value as an object with these fields and no others."""
    known = [*required, *optional]
    if not isinstance(value, dict):
        _refuse(f"{what} is an object with {', '.join(known)}.")
    unknown = [name for name in value if name not in known]
    if unknown:
        _refuse(f"{what} has no field {unknown[0][:60]!r}; it has {', '.join(known)}.", "unknown_field")
    missing = [name for name in required if name not in value]
    if missing:
        _refuse(f"{what} needs {missing[0]}.")
    return value


def too_large() -> Refusal:
    return Refusal(413, "body_too_large", f"a body has at most {MAX_BODY:,} bytes.")


def _refuse(sentence: str, code: str = "bad_json") -> NoReturn:
    raise Refusal(400, code, sentence)


def _object(pairs: list[tuple[str, Any]]) -> Json:
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        _refuse(f"the field {twice[:60]!r} is given twice.")
    return made


def _constant(word: str) -> NoReturn:
    _refuse(f"{word} is not a number in JSON.")


def _whole(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        _refuse(f"a number has at most {MAX_DIGITS} digits.")
    return int(digits)


def _decimal(digits: str) -> float:
    if len(digits) > MAX_DIGITS + 8:
        _refuse(f"a number has at most {MAX_DIGITS} digits.")
    number = float(digits)
    if not math.isfinite(number):
        _refuse("a number is too large.")
    return number


def _check(value: Any) -> None:
    """Depth, size and texts. Not recursive: what was parsed may nest as deep as the parser could go."""
    level, seen = [value], 0
    for _ in range(MAX_DEPTH + 1):
        seen += len(level)
        if seen > MAX_VALUES:
            _refuse(f"a body has at most {MAX_VALUES:,} values.")
        below: list[Any] = []
        for item in level:
            if isinstance(item, str):
                _check_text(item)
            elif isinstance(item, list):
                below += item
            elif isinstance(item, dict):
                for name in item:
                    _check_text(name)
                below += item.values()
        if not below:
            return
        level = below
    _refuse(f"the body nests deeper than {MAX_DEPTH} levels.")


def _check_text(text: str) -> None:
    if len(text) > MAX_TEXT:
        _refuse(f"a text has at most {MAX_TEXT:,} characters; one has {len(text):,}.")
    if _SURROGATE.search(text):
        _refuse("a text has half of a surrogate pair, which is no character.")
