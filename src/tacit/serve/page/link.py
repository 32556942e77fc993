"""Addresses of questions: what was clicked as the fields of a link, and the links that a page offers from there. Pure.

A link only looks: it shows what is known and never spends. It names attributes by their places, as the form does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

import numpy as np

from tacit.errors import TacitError
from tacit.model import sql
from tacit.model.ask import Ask, Cdf, Count, Crosstab, Mean, Quantile, Select, Sum, Variance
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.model.sql.spelling import span
from tacit.serve.page.form import FORM_KINDS, Built, Forms, clicked
from tacit.serve.question import read
from tacit.serve.refusal import Refusal

MOST_NAMED = 3  # values that a chip names


def link(asked: Forms, domain: Domain) -> str:
    """What comes after the "?" of a question's address; empty where nothing is asked."""
    if asked.clicked:
        return urlencode(list(fields_of(asked.built, domain)))
    return urlencode({"sql": asked.sql}) if asked.sql.strip() else ""


def fields_of(built: Built, domain: Domain) -> Iterator[tuple[str, str]]:
    """The fields that `read_built` reads, without those that are as they are anyway."""
    place = {name: str(i) for i, name in enumerate(domain)}
    plain = Built()

    def text(value: Any) -> str:
        if isinstance(value, tuple):
            return f"{place[value[0]]}.{value[1]}"
        return place.get(value, value) if isinstance(value, str) else str(value)

    yield "what", built.what
    yield from (("by", place[name]) for name in built.by)
    for one in (field.name for field in fields(Built)):
        value = getattr(built, one)
        if one not in ("what", "by", "among", "ends") and value != getattr(plain, one):
            yield one, value if one in ("q", "smallest") else text(value)
    for name, chosen in built.among.items():
        yield from ((f"in.{place[name]}", str(i)) for i in sorted(chosen))
    for name, ends in built.ends.items():
        yield from ((f"{side}.{place[name]}", end) for side, end in zip(("from", "to"), ends, strict=True) if end)


def of_column(built: Built, name: str) -> Built:
    """The table of a column, among the rows that are chosen now."""
    kept = without(built, name)
    return Built("table", by=(name,), among=kept.among, ends=kept.ends)


def over_time(built: Built, blocks: str) -> Built | None:
    """The same counts for each block of a series, of all blocks; None where that is no count, or is so already."""
    if built.what not in ("count", "table") or blocks in built.by or len(built.by) > 1:
        return None
    return replace(without(built, blocks), what="table", by=(*built.by, blocks))


def without(built: Built, name: str) -> Built:
    """The same without the condition on a column."""
    among = {other: chosen for other, chosen in built.among.items() if other != name}
    return replace(built, among=among, ends={other: pair for other, pair in built.ends.items() if other != name})


def drilled(built: Built, names: tuple[str, ...], places: tuple[int, ...], domain: Domain) -> Built:
    """How many rows a cell of a table holds: a condition more for each of its columns."""
    for name, place in zip(names, places, strict=True):
        built, attribute = without(built, name), domain[name]
        if attribute.ordered and place < attribute.bins:
            built = replace(built, ends={**built.ends, name: span(attribute, place)})
        else:
            built = replace(built, among={**built.among, name: frozenset([place])})
    return Built("count", among=built.among, ends=built.ends)


def words(built: Built, name: str, domain: Domain) -> str:
    """A condition as a chip says it."""
    attribute, said = domain[name], []
    low, high = built.ends.get(name, ("", ""))
    if low or high:
        until = "to" if getattr(attribute.values, "whole", False) else "to below"
        said.append(low if low == high else f"{low or 'the least'} {until} {high or 'the most'}")
    chosen = sorted(built.among.get(name, ()))
    if len(chosen) > MOST_NAMED:
        said.append(f"{len(chosen):,} values")
    elif chosen:
        said.append(" or ".join(attribute.label(i) for i in chosen))
    return " or ".join(said) or "any"


def unclicked(ask: Ask, domain: Domain) -> Built | None:
    """What would have to be clicked for a question that was written; None where it cannot be."""
    ask = _as_table(ask)
    match ask:
        case Count():
            found, where = [Built("count")], ask.query
        case Crosstab():
            found, where = [Built("table", by=ask.names)], ask.where
        case Quantile():
            found, where = [Built("quantile", of=ask.name, q=f"{ask.q:g}")], ask.where
        case Mean() | Sum() | Variance():
            found = [Built(what, of=ask.name) for what, kind in FORM_KINDS.items() if kind.asks is type(ask)]
            where = ask.where
        case _:
            return None
    among, ends = dict[str, frozenset[int]](), dict[str, tuple[str, str]]()
    for name, places in _places(where).items():
        attribute = domain[name]
        bins = [place for place in places if place < attribute.bins] if attribute.ordered else []
        if bins and all(b == a + 1 for a, b in pairwise(bins)):
            ends[name] = span(attribute, bins[0])[0], span(attribute, bins[-1])[1]
        rest = frozenset(places) - frozenset(bins)
        if rest:
            among[name] = rest
    narrowed = (replace(built, among=among, ends=ends) for built in found)
    # Whatever was read off, it has to mean the same: two kinds may be read into one class.
    return next((built for built in narrowed if _meant(built, domain) == ask), None)


def _meant(built: Built, domain: Domain) -> Ask | None:
    """What is asked by what was clicked, as SQL says it; None where SQL cannot."""
    try:
        statement = clicked(built, domain)
        return _as_table(sql.parse(statement, domain)) if isinstance(statement, str) else None
    except TacitError:
        return None


def _as_table(ask: Ask) -> Ask:
    return (ask.crosstab or ask) if isinstance(ask, Select) else ask


def retold(text: str, domain: Domain) -> tuple[str, str]:
    """A question as the audit log has it: in words or SQL, and what comes after the "?" of its address, if it has one.

    What was cut short, or is about a column that there is no more, is told as it stands.
    """
    if not text.startswith("{"):
        return text, urlencode({"sql": text})
    try:
        ask = read(json.loads(text), domain).ask
    except (TacitError, Refusal, ValueError):
        return text, ""
    built = Built("cdf", of=ask.name) if isinstance(ask, Cdf) else unclicked(ask, domain)
    return ask.words(domain), "" if built is None else urlencode(list(fields_of(built, domain)))


def _places(where: Query) -> Mapping[str, list[int]]:
    """The values that each column may have, where a condition is on each by itself."""
    found = {}
    for factor in where.factors:
        if len(factor.scope) == 1:
            weights = factor.flipped().weights if where.complement else factor.weights
            found[factor.scope[0]] = np.flatnonzero(weights).tolist()
    return found
