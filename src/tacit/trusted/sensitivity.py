"""What a question's true answers are, how far they move between neighbours, and what noise that calls for.

The three stand together because a price is right only if they agree: `truth` moves by at most `sensitivity`, which is
checked by enumeration in tests/exact, and `noise_of` is scaled to it. Called by the curator before every look.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.exact.bounds import convolve, shift_distances
from tacit.exact.price import Sensitivity, noise_for, price
from tacit.model.budget import Loss, Measure
from tacit.model.certificate import Certificate, Certificates
from tacit.model.counting import in_turn
from tacit.model.domain import Domain
from tacit.model.noise_law import Noise
from tacit.model.query import GRID, Query
from tacit.model.residuals import Residuals
from tacit.model.statistic import Statistic
from tacit.model.workload import Convolution, Marginal, Product, Question, Tree, kernel, leaf_counts, leaves, unit

if TYPE_CHECKING:
    from tacit.trusted.copy import AnyRecords

Counts = NDArray[np.int64]


def sensitivity(question: Question, domain: Domain) -> Sensitivity:
    """The joint sensitivity of all the answers to a question, in counts.

    Guarantee: between databases that differ in one replaced row, the vector of answers moves by at most l1 in L1 and
        by at most l2_squared in squared L2 distance.
    Formula: a query or a statistic 1; a table 2, as a row leaves one cell and enters another; a tree with weights w
        2 Σ w and 2 Σ w², as a row leaves one path of nodes and enters another; so does a product of trees, w being the
        weights of the pairs of levels that it asks; a convolution the largest distance between two columns of its
        matrix (`_convolution`); so do residuals (`Residuals.moves`); a certificate 1 for each of its figures
        (`order_statistics`), and so 1 for the largest figure of several.
    Source: Smith & Ullman, claim 2.2, for trees; statistics are proved in `model.statistic_library`, or vouched for by
        the owner who registered them; the others are immediate.
    """
    if isinstance(question, Query):
        return _both(0 if question.is_constant else 1)
    if isinstance(question, Statistic | Certificates):
        return _both(1)
    if isinstance(question, Marginal):
        if question.where == Query.constant(everyone=False):
            return _both(0)  # no row is counted
        return _both(2 if question.size(domain) > 1 else 0 if question.where.is_everyone else 1)
    if isinstance(question, Certificate):
        return _both(len(question.ranks))
    if isinstance(question, Residuals):
        return Sensitivity(*question.moves(domain))
    if isinstance(question, Convolution):
        return _convolution(leaves(domain[question.name]), question.exponent, question.cyclic)
    trees = (question.first, question.second) if isinstance(question, Product) else (question,)
    if all(leaves(domain[tree.name]) == 1 for tree in trees):
        return _both(0)  # every row lies in the only leaf
    return Sensitivity(2 * sum(question.weights), 2 * sum(w * w for w in question.weights))


def noise_of(question: Question, domain: Domain, loss: Loss, rows_per_person: int) -> Noise:
    """The noise that `loss` buys for a question. It follows from what is public; no data are looked at.

    Guarantee: answers with noise of this law cost at most `loss`.
    Formula: `exact.price.noise_for`, for what `rows_per_person` replaced rows move.
    """
    moves = sensitivity(question, domain).times(rows_per_person)
    if moves.l1 == 0:
        raise InvalidQuery("the answer follows from the number of rows, which is public: nothing to measure.")
    return noise_for(loss, moves, unit(question))


def price_of(question: Question, domain: Domain, noise: Noise, measure: Measure, rows_per_person: int) -> Loss:
    """What answers with this noise cost. Formula: `exact.price.price`, as in `noise_of`."""
    return price(noise, sensitivity(question, domain).times(rows_per_person), unit(question), measure)


def truth(question: Question, records: AnyRecords) -> Counts:
    """The exact answers to a question, in grid steps. Private: they never leave the curator without noise.

    Guarantee: replacing one row moves them by at most `sensitivity`, times the question's unit.
    """
    if isinstance(question, Query | Statistic):
        return np.array([records.answer(question)], dtype=np.int64)
    if isinstance(question, Marginal):
        return records.table(question.names, question.where).ravel()
    if isinstance(question, Certificate | Certificates):
        return order_statistics(question, records)
    if isinstance(question, Residuals):
        return question.answers(map(records.table, question.scopes))
    if isinstance(question, Product):
        names = question.first.name, question.second.name
        table = records.table(names)
        for name in names:  # each time the first axis is summed up to leaves and becomes the last
            table = np.moveaxis(leaf_counts(table, records.domain[name]), 0, -1)
        return question.nodes(table)
    counts = leaf_counts(records.table((question.name,)), records.domain[question.name])
    if isinstance(question, Tree):
        return question.nodes(counts)
    full = convolve(counts, kernel(counts.size, question.exponent), most=records.rows)
    answers = full[: counts.size].copy()
    if question.cyclic:
        answers[: full.size - counts.size] += full[counts.size :]
    return answers


@lru_cache(maxsize=64)
def _convolution(size: int, exponent: int, cyclic: bool) -> Sensitivity:
    return Sensitivity(*shift_distances(kernel(size, exponent), cyclic=cyclic))


def _both(bound: int) -> Sensitivity:
    # Every single answer moves by at most 1, so a bound on the sum of the moves bounds the sum of their squares too.
    return Sensitivity(bound, bound)


def order_statistics(asked: Certificate | Certificates, records: AnyRecords) -> Counts:
    """The errors of a guess, less a public offset, at some ranks among all questions of a list; the largest of several.

    Guarantee: replacing one row moves each of them by at most 1, however long the list is. The count of a question
        moves by at most 1, as its weights lie in [0, 1]; so its error |truth - guess| does, and the offset does not
        move. If no number of a list rises by more than 1, neither does the k-th smallest; and if none falls by more
        than 1, neither does that. Rounding to whole steps and up to whole rows keeps it: ceil(x + 1) = ceil(x) + 1.
    Formula: ceil of the order statistics of |q(D) - g_q| - offset(g_q) over all listed q. Exact: whole numbers of grid
        steps, added up by `Conjunctions.sums`, of fewer rows than `Declared.check` refuses.
    Source: docs/understand/guarantees.md, "Certificates".
    """
    errors = [list[Counts]() for _ in asked.each]
    for i, listed in in_turn(asked):  # so that a table is counted once: the order of errors does not matter
        gaps = listed.sums(records.table(listed.names) * GRID, listed.guess)
        errors[i].append(np.abs(gaps) - asked.each[i].offset(listed.sums(listed.guess)) * GRID)
    places = [np.array(one.ranks) - 1 for one in asked.each]
    each = [np.partition(np.concatenate(found), at)[at] for found, at in zip(errors, places, strict=True)]
    largest: Counts = np.max(each, axis=0)
    return -(-largest // GRID)
