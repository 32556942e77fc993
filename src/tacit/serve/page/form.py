"""The page's forms: their fields, read within limits; what was clicked; and the SQL that it stands for.

Attributes and listed values are named by their places in the declared domain, so that a form carries no text of theirs;
the ends of a range are edges as the attribute shows them.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request

from tacit.errors import InvalidQuery
from tacit.model.ask import Mean, Sum, Variance
from tacit.model.attribute import Attribute
from tacit.model.domain import Domain
from tacit.model.sql.spelling import column, ends, literal, quoted
from tacit.model.statistic_check import offered
from tacit.model.values import Days, Integers, Listed
from tacit.serve.admission import Traffic, Who
from tacit.serve.refusal import Refusal
from tacit.serve.schema import Json

MAX_FORM = 2**18  # bytes
MAX_FIELDS = 20_000
MOST_COMPLETED = 300  # values of one attribute that the script can complete
_PLACE = re.compile(r"\d{1,8}", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d{1,20}", re.ASCII)
_LONGEST = 60  # of what a message repeats
_QUANTILE = "q is a share above 0 and below 1, like 0.5 for the median"
_TYPE = re.compile(r"application/x-www-form-urlencoded(?:\s*;\s*charset=utf-8)?", re.IGNORECASE)
Fields = list[tuple[str, str]]
Chosen = tuple[str, int]  # an attribute and the place of one of its values
OfOne = Mean | Sum | Variance  # of the values of one attribute, under a condition


@dataclass(frozen=True)
class FormKind:
    """One thing that can be asked by clicking: its title and a hint on the form, and its SQL."""

    title: str
    hint: str
    sql: str
    of_one: bool = True  # about one attribute, which is chosen
    all_rows: bool = False  # a statistic, which takes no conditions
    asks: type[OfOne] | None = None  # what its SQL is read into, where that says all that was clicked


FORM_KINDS = {
    "count": FormKind("How many rows", "one number", "COUNT(*)", of_one=False),
    "table": FormKind("A table", "all combinations", "{by}, COUNT(*)", of_one=False),
    "cdf": FormKind("A distribution", "up to each value", ""),  # SQL has no word for it
    "quantile": FormKind("A quantile", "the median, say", "QUANTILE_CONT({of}, {q})"),
    "mean": FormKind("A mean", "an average", "AVG({of})", asks=Mean),
    "sum": FormKind("A sum", "a total", "SUM({of})", asks=Sum),
    "stddev": FormKind("A spread", "standard deviation", "STDDEV({of})", asks=Variance),
    "variance": FormKind("A variance", "the spread squared", "VARIANCE({of})", asks=Variance),
    "stump": FormKind("A prediction", "errors of the best threshold", "STUMP({of}, {told})", all_rows=True),
    "quantile_distance": FormKind(
        "How far a quantile is", "from a range", "QUANTILE_DISTANCE({of}, {q}, {ends})", all_rows=True
    ),
    "largest_mean": FormKind("The largest mean", "among groups", "LARGEST_MEAN({of}, {by}, {smallest})", all_rows=True),
    "matching": FormKind(
        "A matching", "most pairs of two sides", "MATCHING({side}, {left}, {right}, {on})", of_one=False, all_rows=True
    ),
    "statistic": FormKind("The owner's own", "a statistic", "STATISTIC({own})", of_one=False, all_rows=True),
}


@dataclass(frozen=True)
class Built:
    """What was clicked. `among` has the places of the values that were ticked, `ends` the two ends of ranges."""

    what: str = "count"
    by: tuple[str, ...] = ()
    of: str = ""
    q: str = "0.5"
    told: str | Chosen = ""  # the attribute that another one predicts, or one of its values
    smallest: str = "0.05"  # the share of all rows from which on a group counts fully
    left: Chosen | None = None  # a matching's two sides, values of one attribute
    right: Chosen | None = None
    on: str = ""  # the attribute that decides what fits
    own: int | None = None  # which of the statistics that the owner offers
    among: Mapping[str, frozenset[int]] = field(default_factory=dict)
    ends: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def narrowed(self) -> tuple[str, ...]:
        """The attributes that conditions are on."""
        return tuple(dict.fromkeys([*self.among, *self.ends]))


@dataclass(frozen=True)
class Forms:
    """What the forms hold: the SQL, what was clicked, and whether the clicking form was used.

    `adding` is the attribute that a condition is about to be made on.
    """

    sql: str = ""
    built: Built = field(default_factory=Built)
    clicked: bool = False
    adding: str = ""


async def read_form(request: Request, traffic: Traffic, who: Who, most: int = MAX_FORM) -> Fields:
    """The fields in their order. Nothing was looked at before this, so a refusal spends nothing."""
    if not _TYPE.fullmatch(request.headers.get("content-type", "").strip()):
        raise Refusal(415, "wrong_content_type", "A page's form is sent as application/x-www-form-urlencoded.")
    body = await traffic.body(request, who, most)
    try:
        fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except ValueError:
        raise Refusal(400, "bad_form", "The form cannot be read.") from None
    return [(name, text.replace("\r\n", "\n")) for name, text in fields]


def linked(fields: Fields) -> Fields:
    """The fields of a link as those of the form that they belong to."""
    return [*fields, ("way", "click" if last(fields, "what") else "sql")]


def last(fields: Fields, name: str) -> str:
    """The field of that name; empty if there is none."""
    return next((text for key, text in reversed(fields) if key == name), "")


def width(text: str) -> float | None:
    """The half width that is asked for; None where none is."""
    return _between(text, math.inf, "within is a half width above 0, like 50") if text.strip() else None


def read_forms(fields: Fields, domain: Domain) -> Forms:
    """What was written, or clicked."""
    if last(fields, "way") == "click":
        adding = last(fields, "add")
        return Forms("", read_built(fields, domain), True, _name(adding, domain) if adding else "")
    return Forms(sql=last(fields, "sql"))


def read_built(fields: Sequence[tuple[str, str]], domain: Domain) -> Built:
    """The form's fields: those of `Built`, and in.PLACE, from.PLACE and to.PLACE."""
    found: dict[str, Any] = {}
    by: list[str] = []
    among: dict[str, set[int]] = {}
    ends: dict[str, tuple[str, str]] = {}
    for key, text in fields:
        kind, _, place = key.partition(".")
        if key in ("what", "q", "smallest"):
            found[key] = text.strip()
        elif key in ("of", "on") or (key == "told" and "." not in text):
            found[key] = _name(text, domain) if text else ""
        elif key in ("told", "left", "right"):
            found[key] = _chosen(text, domain) if text else None
        elif key == "own":
            found[key] = _number(text, len(offered(domain))) if text else None
        elif key == "by":
            by += [_name(text, domain)] if text else []
        elif kind == "in" and place:
            name = _name(place, domain)
            among.setdefault(name, set()).add(_number(text, domain[name].size))
        elif kind in ("from", "to") and place:
            name = _name(place, domain)
            low, high = ends.get(name, ("", ""))
            ends[name] = (text.strip(), high) if kind == "from" else (low, text.strip())
    ends = {name: pair for name, pair in ends.items() if any(pair)}
    if found.get("what", "count") not in FORM_KINDS:
        raise Refusal(400, "bad_question", f"what is one of {', '.join(FORM_KINDS)}.")
    kept = {name: frozenset(places) for name, places in among.items() if len(places) < domain[name].size}
    return Built(by=tuple(dict.fromkeys(by)), among=kept, ends=ends, **found)


def question(asked: Forms, domain: Domain) -> str | Json:
    """What the forms ask: SQL, or for a whole distribution, which SQL has no word for, the structured form."""
    if asked.clicked:
        return clicked(asked.built, domain)
    if not asked.sql.strip():
        raise Refusal(400, "bad_question", "The box is empty: write a statement, or put a question together.")
    return asked.sql.strip()


def clicked(built: Built, domain: Domain) -> str | Json:
    """What was put together by clicking."""
    kind = FORM_KINDS[built.what]
    if kind.of_one and not built.of:
        raise InvalidQuery(f"{kind.title.lower()} is about one attribute: choose it.")
    if built.what == "cdf":
        if built.narrowed:
            raise InvalidQuery("a distribution is about all rows: take the conditions away, or ask for a table.")
        return {"cdf": built.of}
    if built.what in ("table", "largest_mean") and not built.by:
        raise InvalidQuery(f"{kind.title.lower()} is of one attribute or more: tick them.")
    if kind.all_rows:
        return f"SELECT {kind.sql.format(**_statistic(kind, built, domain))} FROM data"
    by = ", ".join(map(column, built.by))
    q = _between(built.q, 1, _QUANTILE) if built.what == "quantile" else ""
    value = kind.sql.format(by=by, of=column(built.of), q=q)
    where = " AND ".join(_condition(name, built, domain) for name in domain if name in built.narrowed)
    grouped = f" GROUP BY {by}" if built.what == "table" else ""
    return f"SELECT {value} FROM data{f' WHERE {where}' if where else ''}{grouped}"


def _statistic(kind: FormKind, built: Built, domain: Domain) -> dict[str, Any]:
    """What stands in a statistic's SQL. It is about all rows: the only ends that it takes are a quantile's range."""
    distance = built.what == "quantile_distance"
    if set(built.narrowed) - ({built.of} if distance else set()) or built.among:
        raise InvalidQuery(f"{kind.title.lower()} is about all rows: take the conditions away.")
    words: dict[str, Any] = {"of": column(built.of), "by": ", ".join(map(column, built.by))}
    if distance:
        attribute, pair = domain[built.of], built.ends.get(built.of, ("", ""))
        ends = ", ".join(_end(built.of, end, attribute) if end and attribute.ordered else "NULL" for end in pair)
        return words | {"q": _between(built.q, 1, _QUANTILE), "ends": ends}
    if built.what == "stump":
        if not built.told:
            raise InvalidQuery("a prediction is of another attribute: choose it.")
        if isinstance(built.told, str):
            return words | {"told": column(built.told)}
        name, place = built.told
        return words | {"told": f"{column(name)}, {literal(domain[name], place)}"}
    if built.what == "largest_mean":
        share = "the smallest group that counts fully is a share of all rows above 0 and below 1, like 0.05"
        return words | {"smallest": _between(built.smallest, 1, share)}
    if built.what == "matching":
        if not (built.left and built.right and built.on and built.left[0] == built.right[0]):
            raise InvalidQuery(
                "a matching has two sides, which are values of one attribute, and what fits: choose them."
            )
        side, left, right = built.left[0], built.left[1], built.right[1]
        sides = {"left": literal(domain[side], left), "right": literal(domain[side], right)}
        return sides | {"side": column(side), "on": column(built.on)}
    if built.own is None:
        raise InvalidQuery("the owner's own are several: choose one.")
    own = offered(domain)[built.own]
    return {"own": ", ".join(quoted(one) if isinstance(one, str) else str(one) for one in (own.name, *own.arguments))}


def words_of(domain: Domain) -> dict[str, Any]:
    """What the script completes: names and values as SQL has them, from the declared domain alone."""
    columns = []
    for name, attribute in domain.items():
        most = min(attribute.size, MOST_COMPLETED)
        found: dict[str, Any] = {"name": column(name), "kind": attribute.kind, "takes": attribute.takes}
        found["values"] = [literal(attribute, place) for place in range(most)]
        if attribute.ordered:
            found["starts"], found["ends"] = zip(*ends(attribute, MOST_COMPLETED), strict=True)
        columns.append(found)
    return {"columns": columns}


def _condition(name: str, built: Built, domain: Domain) -> str:
    attribute, parts = domain[name], []
    places = sorted(built.among.get(name, ()))
    low, high = built.ends.get(name, ("", ""))
    if low or high:
        parts.append(_range(name, low, high, attribute))
    if len(places) == 1:
        parts.append(f"{column(name)} = {literal(attribute, places[0])}")
    elif places:
        parts.append(f"{column(name)} IN ({', '.join(literal(attribute, place) for place in places)})")
    return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"


def _range(name: str, low: str, high: str, attribute: Attribute) -> str:
    if isinstance(attribute.values, Listed):
        raise Refusal(400, "bad_question", f"{name} has values, not ranges.")
    first, last = (_end(name, end, attribute) if end else "" for end in (low, high))
    if first and last and attribute.values.whole:
        return f"{column(name)} BETWEEN {first} AND {last}"
    below = "<=" if attribute.values.whole else "<"
    found = [f"{column(name)} {sign} {end}" for sign, end in ((">=", first), (below, last)) if end]
    return " AND ".join(found) if len(found) == 1 or not attribute.extras else f"({' AND '.join(found)})"


def _end(name: str, text: str, attribute: Attribute) -> str:
    """An end of a range as SQL has it; the text is read and written again, never passed on."""
    assert not isinstance(attribute.values, Listed)
    try:
        if isinstance(attribute.values, Days):
            return quoted(dt.date.fromisoformat(text).isoformat())
        if isinstance(attribute.values, Integers):
            if not _WHOLE.fullmatch(text):
                raise ValueError
            return str(int(text))
        number = float(text)
        if not math.isfinite(number):
            raise ValueError
        return attribute.values.show(number)
    except ValueError:
        raise InvalidQuery(f"{name} takes {attribute.takes}, the form has {text[:_LONGEST]!r}.") from None


def _between(text: str, most: float, words: str) -> float:
    """A number above 0 and below `most`; `words` say so."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 < number < most:
        raise InvalidQuery(f"{words}, not {text[:_LONGEST]!r}.")
    return number


def _name(place: str, domain: Domain) -> str:
    return domain.names[_number(place, len(domain))]


def _chosen(text: str, domain: Domain) -> Chosen:
    """A value as the form has it, by the places of its attribute and of itself: 0.2."""
    place, _, value = text.partition(".")
    name = _name(place, domain)
    return name, _number(value, domain[name].size)


def _number(text: str, below: int) -> int:
    if not _PLACE.fullmatch(text) or int(text) >= below:
        raise Refusal(400, "bad_question", "The form does not fit this data set; load the page again.")
    return int(text)
