"""A question as a server reads it: SQL stays text, everything else is the JSON of docs/reference/http.md. Pure."""

from __future__ import annotations

from typing import Any

from tacit.errors import InvalidQuery
from tacit.model.ask import (
    Ask,
    Cdf,
    Count,
    Covariance,
    Crosstab,
    Derived,
    Fraction,
    Histogram,
    Mean,
    Quantile,
    Range,
    Select,
    Stat,
    Sum,
    Variance,
)
from tacit.model.query import Query

Json = dict[str, Any]


def written(ask: Ask | str) -> str | Json:
    """The JSON of a question. Conditions are written as weights, which mean the same rows wherever they are read."""
    match ask:
        case str():
            return ask
        case Count():
            return {"count": _rows(ask.query)}
        case Stat():
            form = ask.statistic.to_dict()
            return {"statistic": form["name"], "scope": form["scope"], "arguments": form["arguments"]}
        case Crosstab():
            return {"table": list(ask.names), **_where(ask.where)}
        case Fraction():
            return {"fraction": _rows(ask.where), "given": _rows(ask.given)}
        case Sum():
            return {"sum": ask.name, **_where(ask.where)}
        case Mean():
            return {"mean": ask.name, **_where(ask.where), **_given(share=ask.share)}
        case Variance():
            return {"stddev" if ask.root else "variance": ask.name, **_where(ask.where), "sample": ask.sample}
        case Covariance() if ask.correlation:
            return {"correlation": list(ask.names), **_where(ask.where)}
        case Covariance():
            return {"covariance": list(ask.names), **_where(ask.where), "sample": ask.sample}
        case Quantile():
            return {"quantile": ask.name, "q": ask.q, **_where(ask.where), **_given(share=ask.share)}
        case Cdf():
            return {"cdf": ask.name, **_given(share=ask.share, strategy=ask.strategy)}
        case Histogram():
            return {"histogram": ask.name, **_given(width=ask.width, share=ask.share)}
        case Range():
            return {"range": _rows(ask.query), **_given(share=ask.share)}
        case Select() | Derived() if ask.text:
            return ask.text
    raise InvalidQuery("a statement is asked of a server by its text, with ask.")


def _rows(query: Query) -> list[Json]:
    return [query.to_dict()]


def _where(where: Query) -> Json:
    return {} if where.is_everyone else {"where": _rows(where)}


def _given(**options: object) -> Json:
    return {name: value for name, value in options.items() if value is not None}
