"""How far a question's true answer can move when one row is replaced. Called by the curator before every price."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tacit.model.domain import Domain
from tacit.model.query import MAX_TABLE, Query
from tacit.model.statistic import Statistic
from tacit.model.strategy import Strategy
from tacit.model.workload import Intervals, Marginal, Prefixes, Question
from tacit.trusted.loss import Sensitivity
from tacit.trusted.strategies import strategy_sensitivity


def sensitivity(question: Question, domain: Domain) -> Sensitivity:
    """The joint sensitivity of all the answers to a question, in counts.

    Guarantee: between databases that differ in one replaced row, the vector of answers moves by at most l1 in L1 and
        by at most l2_squared in squared L2 distance.
    Formula: a query 1; a statistic 1; a table 2 (a row leaves one cell and enters another); D prefixes D-1, or D where
        rows can lie in none; all intervals of D bins floor((D+1)²/4); k listed queries min(k, 2 max over cells of their
        weights); a strategy as `strategies.strategy_sensitivity` says.
    Source: for intervals, a row at bin x is in x(D-x+1) of them and two rows x < y share x(D-y+1), which makes the
        difference s(D+1-s) with s = x + (D-y+1); the others are immediate. Checked by enumeration in tests/exact.
    """
    if isinstance(question, Query):
        return _both(0 if question.is_constant else 1)
    if isinstance(question, Statistic):
        return _both(1)  # proved in `model.statistic_library`, or vouched for by the owner who registered it
    if isinstance(question, Marginal):
        cells = question.size(domain)
        if question.where == Query.constant(everyone=False):
            return _both(0)  # no row is counted; a constant weight between 0 and 1 does count rows
        return _both(2 if cells > 1 else 0 if question.where.is_everyone else 1)
    if isinstance(question, Strategy):
        return strategy_sensitivity(question, domain)
    if isinstance(question, Prefixes):
        bins = domain[question.name].bins
        return _both(bins if domain[question.name].extras else bins - 1)
    if isinstance(question, Intervals):
        bins = domain[question.name].bins
        return _both((bins + 1) ** 2 // 4 if bins > 1 or domain[question.name].extras else 0)
    return _both(_listed(question.listed, domain))


def _both(bound: int) -> Sensitivity:
    # Every single answer moves by at most 1, so a bound on the sum of the moves bounds the sum of their squares too.
    return Sensitivity(bound, bound)


def _listed(queries: Sequence[Query], domain: Domain) -> int:
    """min(k, 2 max over cells of the total weight): for a, b >= 0, a - b is at most a + b, in L1 and in squared L2."""
    moving = [query for query in queries if not query.is_constant]
    names = sorted({name for query in moving for name in query.scope})
    shape = [domain[name].size for name in names]
    if math.prod(shape) > MAX_TABLE:
        return len(moving)
    heaviest = np.zeros(shape, dtype=np.int64)
    for query in moving:  # a total in whole counts, each weight rounded up: never too small
        heaviest += -(-query.table(names, shape) // query.unit)
    return min(len(moving), 2 * int(heaviest.max(initial=0)))
