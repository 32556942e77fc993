"""A question in words, from its canonical form: what the history shows, whoever asked it and however."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tacit.model.attribute import Attribute
from tacit.model.certificate import Certificate, Certificates
from tacit.model.domain import Domain
from tacit.model.factor import Factor, Weights
from tacit.model.query import Query
from tacit.model.residuals import Residuals
from tacit.model.statistic import Statistic
from tacit.model.values import Days, Listed, Reals
from tacit.model.workload import Marginal, Product, Question, Strategy, Tree

MOST_EDGES, MOST_LISTED = 12, 12  # edges of a numeric attribute, and values of a category, that are named


def values_of(attribute: Attribute) -> str:
    """What an attribute takes, with its bins, in a few words.

    >>> from tacit.model.attribute import date, integer, numeric
    >>> values_of(integer(0, 99, width=5, clamp=True))
    '0 to 99 in steps of 5; what lies outside counts at the ends'
    >>> values_of(numeric([0, 5, 10, 30], missing="unknown"))
    '0 to below 30, cut at 5, 10; or unknown'
    >>> values_of(date("2020-01-01", "2024-12-31", by="month"))
    '2020-01-01 to 2024-12-31 by month'
    """
    values, words = attribute.values, attribute.takes
    if isinstance(values, Listed):
        words = ", ".join(values.label(i) for i in range(min(values.bins, MOST_LISTED)))
        words += f", … ({values.bins:,} values)" if values.bins > MOST_LISTED else ""
    elif isinstance(values, Reals):
        words += _cuts(values)
    elif isinstance(values, Days):
        words += f" by {values.by}"
    elif values.width > 1:
        words += f" in steps of {values.width}"
    if attribute.part is not None:
        words = f"the {attribute.part} of {attribute.of}: {words}"
    if attribute.clamp:
        words += "; what lies outside counts at the ends"
    return words + "".join(f"; or {extra}" for extra in attribute.extras)


def _cuts(values: Reals) -> str:
    steps = {round(b - a, 9) for a, b in pairwise(values.edges)}
    if len(steps) == 1 and len(values.edges) > 3:
        return f" in steps of {values.show(steps.pop())}"
    inner = [values.show(edge) for edge in values.edges[1:-1]]
    more = "" if len(inner) <= MOST_EDGES else ", …"
    return f", cut at {', '.join(inner[:MOST_EDGES])}{more}" if inner else ""


def describe(question: Question, domain: Domain) -> str:
    """
    >>> from tacit.model.attribute import category, integer
    >>> from tacit.model.expression import count
    >>> domain = Domain({"sex": category(["F", "M"]), "age": integer(0, 99, width=10)})
    >>> describe(count(sex="F", age=(20, 39)).bind(domain), domain)
    'age in 20–29 … 30–39 and sex = F'
    >>> describe((~count(sex="F", age=(20, 39))).bind(domain), domain)
    'not (age in 20–29 … 30–39 and sex = F)'
    """
    return describe_many([question], domain)[0]


def describe_many(questions: Sequence[Question], domain: Domain) -> list[str]:
    """Each question in words; conditions that several of them share are put into words once."""
    known: dict[tuple[str, bytes], str] = {}
    return [
        _query(question, domain, known) if isinstance(question, Query) else _other(question, domain, known)
        for question in questions
    ]


def _other(
    question: Statistic | Marginal | Residuals | Certificate | Certificates | Strategy,
    domain: Domain,
    known: dict[tuple[str, bytes], str],
) -> str:
    if isinstance(question, Statistic):
        return question.words(domain)
    if isinstance(question, Marginal):
        everyone = question.where == Query.constant(everyone=True)
        where = "" if everyone else f" where {_query(question.where, domain, known)}"
        return f"table of {', '.join(question.names)}{where}"
    if isinstance(question, Residuals):
        return _residuals(question)
    if isinstance(question, Certificate | Certificates):
        return f"certificate of {question.questions:,} questions"
    return _strategy(question)


def _residuals(residuals: Residuals) -> str:
    """
    >>> _residuals(Residuals((("age",), ("sex",), ("age", "sex")), (2, 2, 1)))
    '3 tables of up to 2 attributes in one release'
    """
    many, order = len(residuals.scopes), len(residuals.scopes[-1])
    most = "one attribute" if order == 1 else f"up to {order} attributes"
    return f"{many:,} table{'s' * (many > 1)} of {most} in one release"


def _strategy(strategy: Strategy) -> str:
    """What a history calls it.

    >>> _strategy(Tree("age", (16, 16), (8, 12)))
    'all ranges of age (16 x 16 tree)'
    """
    if isinstance(strategy, Product):
        shapes = [" x ".join(map(str, tree.branching)) for tree in (strategy.first, strategy.second)]
        which = f"trees {shapes[0]} and {shapes[1]}{', nested' * strategy.nested}"
        return f"all ranges of {strategy.first.name} and {strategy.second.name} ({which})"
    if isinstance(strategy, Tree):
        return f"all ranges of {strategy.name} ({' x '.join(map(str, strategy.branching))} tree)"
    where = "on a circle" if strategy.cyclic else "in a row"
    return f"all ranges of {strategy.name} (factorisation with exponent {strategy.exponent / 100:g}, {where})"


def _query(query: Query, domain: Domain, known: dict[tuple[str, bytes], str]) -> str:
    if query.is_constant:
        if query.factors:  # one weight for everyone
            return f"{int(query.table((), ())) / query.unit:.6g} of all rows"
        return "no row" if query.complement else "all rows"
    if query.complement and len(query.factors) == 1:  # a complement reads better as the other set of values
        return _factor(query.factors[0].flipped(), domain, known)
    text = " and ".join([_factor(factor, domain, known) for factor in query.factors])
    return f"not ({text})" if query.complement else text


def _factor(factor: Factor, domain: Domain, known: dict[tuple[str, bytes], str]) -> str:
    if len(factor.scope) > 1 or factor.unit > 1:
        return f"{'weights' if factor.unit > 1 else 'a condition'} on {', '.join(factor.scope)}"
    condition = factor.scope[0], factor.weights.tobytes()
    if condition not in known:
        known[condition] = f"{factor.scope[0]} {_values(domain[factor.scope[0]], factor.weights)}"
    return known[condition]


def _values(attribute: Attribute, weights: Weights) -> str:
    chosen = np.flatnonzero(weights).tolist()
    first, last = chosen[0], chosen[-1]
    if len(chosen) == 1:
        return f"= {attribute.label(first)}"
    if attribute.ordered and last < attribute.bins and last - first + 1 == len(chosen):
        return f"in {attribute.label(first)} … {attribute.label(last)}"
    if len(chosen) == weights.size - 1:
        return f"≠ {attribute.label(int(np.argmin(weights)))}"
    shown = ", ".join([attribute.label(i) for i in chosen[:6]])
    return f"in {{{shown}{', …' if len(chosen) > 6 else ''}}}"
