"""The offline iterative construction (Roth, lecture 8, algorithm 1): find what is wrong, measure it, learn it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, Literal

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery
from tacit.model.budget import Loss
from tacit.model.entry import Measured
from tacit.model.noise_law import quantile
from tacit.model.query import Query
from tacit.model.workload import Marginal
from tacit.release.hypothesis.dense import Dense
from tacit.release.public import Public, Recall, buyer, expected_noise
from tacit.release.rules import H, Hypothesis, TableRule, UpdateRule

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator

Candidate = Query | Marginal
Distinguisher = Literal["exponential", "sparse"]
LEAST = 0.5  # rows: a noisy cell below this is taken for this much, so that no cell is ruled out for good


@dataclass(frozen=True)
class Round:
    """One round: the candidate that was found, and how far off its noisy answer was, as a fraction of n."""

    candidate: int
    gap: float


@dataclass
class Constructed(Generic[H]):
    """What an offline construction learned. `accurate` if it stopped because nothing was found to be wrong any more."""

    hypothesis: H
    steps: list[Round] = field(default_factory=list)
    accurate: bool = False


def construct(
    public: Public,
    curator: Curator | None,
    candidates: Sequence[Candidate],
    rule: UpdateRule[H],
    *,
    rounds: int,
    loss: Loss,
    alpha: float,
    distinguisher: Distinguisher = "exponential",
    hypothesis: H | None = None,
) -> Constructed[H]:
    """Run the construction on queries, or on whole tables, for at most `rounds` rounds and `loss` in all.

    In each round a distinguisher finds a candidate on which hypothesis and data differ, for half of its price, and the
    other half measures it; then the hypothesis learns the answer. "exponential" finds the worst candidate, by
    `Curator.select_worst`, so when its noisy answer is within 3 alpha/4 of the hypothesis, nothing else is far off and
    that is the result. "sparse" (lecture 12, SparseDistinguish; queries only) finds the first that passes a gate
    at alpha/2, which need not be the worst; when none passes, that is the result.

    A candidate that was bought before is read back as it was bought. Where its noise is too wide for alpha, the
    construction ends without calling itself accurate.

    Everything that is drawn is kept under the question asked for it, so that running the same construction again costs
    nothing and gives the same result: that is how it is replayed.
    """
    if rounds < 1 or not 0 < alpha <= 1 or not candidates:
        raise InvalidQuery("a construction has candidates, at least one round, and an alpha above 0 and at most 1.")
    if distinguisher == "sparse" and not all(isinstance(candidate, Query) for candidate in candidates):
        raise InvalidQuery("the sparse distinguisher goes through queries, not tables.")
    if distinguisher not in ("exponential", "sparse"):
        raise InvalidQuery(f"the distinguisher is 'exponential' or 'sparse', not {distinguisher!r}.")
    each = loss.split(2 * rounds)
    for candidate in candidates:
        expected_noise(public, candidate, each)  # refuses, before anything is paid, what cannot be measured for that
    built = Constructed(hypothesis or rule.initial())
    for _ in range(rounds):
        guesses = [guess(built.hypothesis, candidate) * public.rows for candidate in candidates]
        found = _distinguish(public, buyer(public, curator), candidates, guesses, each, alpha, distinguisher)
        if found is None:
            built.accurate = True
            break
        measured = buyer(public, curator).measure([candidates[found]], each)[0]
        answer = measured.values / measured.unit
        gap = float(np.abs(answer - guesses[found]).max()) / public.rows
        built.steps.append(Round(found, gap))
        sharp = quantile(measured.noise, 0.99) / measured.unit <= alpha / 8 * public.rows
        if distinguisher == "exponential" and gap < 0.75 * alpha:
            built.accurate = sharp
            break
        if any(step.candidate == found for step in built.steps[:-1]) and not sharp:
            break  # bought before with more noise than this needs; buying it again would be another answer to it
        built.hypothesis = learn(built.hypothesis, rule, measured, public.rows)
    return built


def guess(hypothesis: Hypothesis, candidate: Candidate) -> NDArray[np.float64]:
    """The hypothesis' answers to a candidate, as fractions of n: one, or one for each cell of a table."""
    if isinstance(candidate, Query):
        return np.array([hypothesis.answer(candidate)])
    if not isinstance(hypothesis, Dense):
        raise InvalidQuery("whole tables are for rules whose hypothesis lists all cells; this one takes queries.")
    if candidate.where.is_everyone:
        return hypothesis.marginal(candidate.names).ravel()
    return hypothesis.answer_many(list(candidate.queries(hypothesis.domain)))


def learn(hypothesis: H, rule: UpdateRule[H], measured: Measured, rows: int) -> H:
    """The next hypothesis: a query by the update rule, a whole table cell by cell, or at once if the rule can."""
    question = measured.question
    if isinstance(question, Query):
        answer = float(measured.values[0]) / (rows * measured.unit)
        return rule.update(hypothesis, question, min(max(answer, 0.0), 1.0))
    assert isinstance(question, Marginal)
    assert isinstance(hypothesis, Dense)
    shares = np.maximum(measured.values, LEAST) / rows
    if isinstance(rule, TableRule) and question.where.is_everyone:
        found: H = rule.update_table(hypothesis, question.names, shares / shares.sum())
        return found
    for query, share in zip(question.queries(hypothesis.domain), shares, strict=True):
        if not query.is_constant:
            hypothesis = rule.update(hypothesis, query, min(float(share), 1.0))
    return hypothesis


def _distinguish(
    public: Public,
    curator: Curator | Recall,
    candidates: Sequence[Candidate],
    guesses: Sequence[NDArray[np.float64]],
    loss: Loss,
    alpha: float,
    distinguisher: Distinguisher,
) -> int | None:
    if distinguisher == "exponential":
        return curator.select_worst(candidates, guesses, loss).index
    queries = [candidate for candidate in candidates if isinstance(candidate, Query)]
    return curator.first_far(queries, [float(g[0]) for g in guesses], alpha / 2 * public.rows, loss).index
