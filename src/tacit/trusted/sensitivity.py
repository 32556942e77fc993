"""How far a question's true answer can move when one row is replaced. Called by the curator before every price."""

from __future__ import annotations

from tacit.errors import InvalidQuery
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.noise_law import Noise
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal, Question
from tacit.trusted.loss import Sensitivity, noise_for
from tacit.trusted.questions import unit
from tacit.trusted.strategies import strategy_sensitivity


def sensitivity(question: Question, domain: Domain) -> Sensitivity:
    """The joint sensitivity of all the answers to a question, in counts.

    Guarantee: between databases that differ in one replaced row, the vector of answers moves by at most l1 in L1 and
        by at most l2_squared in squared L2 distance.
    Formula: a query 1; a statistic 1; a table 2 (a row leaves one cell and enters another); a strategy as
        `strategies.strategy_sensitivity` says.
    Source: immediate; checked by enumeration in tests/exact.
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
    return strategy_sensitivity(question, domain)


def noise_of(question: Question, domain: Domain, loss: Loss, rows_per_person: int) -> Noise:
    """The noise that `loss` buys for one of the curator's own copies of a question.

    Guarantee: noise of this law makes the answers cost at most `loss`; it follows from what is public.
    Formula: `loss.noise_for`, for what `rows_per_person` replaced rows move. Source: `loss.noise_for`.
    """
    moves = sensitivity(question, domain).times(rows_per_person)
    if moves.l1 == 0:
        raise InvalidQuery("the answer follows from the number of rows, which is public: nothing to measure.")
    return noise_for(loss, moves, unit(question))


def _both(bound: int) -> Sensitivity:
    # Every single answer moves by at most 1, so a bound on the sum of the moves bounds the sum of their squares too.
    return Sensitivity(bound, bound)
