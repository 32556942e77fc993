"""Writes api.md beside it from the docstrings: `python docs/reference/api.py`. A test fails when it is out of date."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property
from pathlib import Path
from types import FunctionType
from typing import Any

import tacit

PAGE = Path(__file__).parent / "api.md"
SECTIONS = {
    "Opening, planning, publishing": ["open", "series", "plan", "publish", "read", "verify", "report"],
    "Asking": ["Session", "Series", "count", "weigh", "Query"],
    "Answers": ["Answer", "Table", "Listing", "Bar", "About", "Facts", "Receipt", "frame"],
    "Declaring": ["Domain", "Attribute", "category", "boolean", "integer", "numeric", "date", "Budget", "Loss"],
    "Nonlinear questions": ["Statistic", "statistic", "stump", "largest_mean", "matching", "quantile_distance"],
    "Bins": ["bin_widths", "bin_width_chart"],
}


def page() -> str:
    listed = [name for names in SECTIONS.values() for name in names]
    errors = sorted(name for name in tacit.__all__ if _is_error(getattr(tacit, name)))
    rest = sorted(set(tacit.__all__) - set(listed) - set(errors))
    lines = [
        "# API reference",
        "",
        "Everything that `import tacit` gives, from its own docstrings. Written by `docs/reference/api.py`. The",
        "records that `answer` and `price` take are in `tacit.model.ask`: [by example](../do/analysts.md).",
    ]
    for title, names in {**SECTIONS, "More": rest}.items():
        if names:
            lines += ["", f"## {title}"]
        for name in names:
            lines += _entry(name, getattr(tacit, name))
    lines += ["", "## Errors", ""]
    lines += [_item(f"tacit.{name}", _words(getattr(tacit, name))) for name in errors]
    return "\n".join(lines) + "\n"


def _is_error(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Exception)


def _entry(name: str, thing: Any) -> Iterator[str]:
    yield from ("", f"### tacit.{name}", "")
    if isinstance(thing, FunctionType):
        yield from (_code(name, thing), "")
    yield _words(thing)
    if isinstance(thing, type):
        if is_dataclass(thing):
            public = [field.name for field in fields(thing) if not field.name.startswith("_")]
            yield from ("", "Fields: " + ", ".join(f"`{name}`" for name in public) + ".")
        members = [_item(f".{own}{_arguments(member)}", _words(member)) for own, member in _members(thing)]
        yield from ("", *members) if members else ()


def _item(what: str, words: str) -> str:
    """A line of a list; further lines of the words belong to it."""
    return f"- **`{what}`** " + words.replace("\n", "\n  ").replace("\n  \n", "\n\n")


def _members(thing: type) -> Iterator[tuple[str, Any]]:
    """Its own members, then those that it has from other classes of ours."""
    ours = [base for base in thing.__mro__ if base.__module__.startswith("tacit")]
    for name in dict.fromkeys(name for base in ours for name in vars(base)):
        member = inspect.getattr_static(thing, name)
        if isinstance(member, classmethod | staticmethod):
            member = member.__func__
        if (
            not name.startswith("_")
            and isinstance(member, FunctionType | property | cached_property)
            and inspect.getdoc(member)
        ):
            yield name, member


def _arguments(member: Any) -> str:
    """What a method takes, by name, and what it gives: `(name, where=None) -> Answer`."""
    if isinstance(member, property | cached_property):
        return ""
    parts = [part.split(": ")[0] + (f"={part.split(' = ')[1]}" if " = " in part else "") for part in _parts(member)]
    return f"({', '.join(parts)}) -> {inspect.signature(member).return_annotation}"


def _code(name: str, function: FunctionType) -> str:
    parts, after = _parts(function), f" -> {inspect.signature(function).return_annotation}"
    line = f"{name}({', '.join(parts)}){after}"
    if len(line) <= 120:
        return f"`{line}`"
    return f"```\n{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){after}\n```"


def _parts(function: FunctionType) -> list[str]:
    """Each parameter with its type and its default."""
    signature = inspect.signature(function)
    parts, starred = [], False
    for parameter in signature.parameters.values():
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        starred = starred or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parts.append(f"{stars}{parameter.name}: {parameter.annotation}{default}")
    return parts


def _words(thing: Any) -> str:
    """The docstring as prose, without its examples; what it says about each parameter is a list."""
    text = inspect.getdoc(thing) or ""
    text = re.split(r"^>>> ", text, maxsplit=1, flags=re.MULTILINE)[0].strip()
    if isinstance(thing, FunctionType):
        named = "|".join(inspect.signature(thing).parameters)
        text = re.sub(rf"^((?:{named})(?:, (?:{named}))*): ", r"- `\1`: ", text, flags=re.MULTILINE)
    return text


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
