"""A good public guess before the first question: noisy tables of few attributes, and the distribution that fits them.

This is the offline construction (Roth, lecture 8) over whole tables. What it buys is marked as bought for the start, so
that `recalled` finds the same start again, to the last bit, by reading what was released: nothing is chosen again then.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np

from tacit.errors import BudgetExhausted, InvalidBudget, InvalidQuery
from tacit.model.budget import Loss, percent_of
from tacit.model.domain import Domain
from tacit.model.entry import Measured, Start
from tacit.model.noise_law import Noise, variance
from tacit.model.workload import Marginal, Tree, leaves, marginal
from tacit.release.hypothesis.dense import MAX_CELLS, Dense
from tacit.release.hypothesis.fit import Fitted, check_pull, fit
from tacit.release.hypothesis.fit_mixture import FittedMixture, fit_mixture
from tacit.release.hypothesis.mixture import Mixture
from tacit.release.public import Public, buyer, expected_noise
from tacit.release.ranges.choice import two_levels

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator

StartPlan = Literal["auto", "pairs", "adaptive"]
Interest = int | Sequence[Sequence[str]]
Progress = Callable[[int, int], None]
AnyFit = Fitted | FittedMixture

MAX_TABLE = 2**18  # cells of one table that may be bought
CHOICE_SHARE = 0.1  # of a round's price: choosing is cheap beside measuring (McKenna, Mullins, Sheldon & Miklau 2022)
_ROUND_SWEEPS = 6  # of the fit between two rounds; the last fit goes on until it stands still


@dataclass(frozen=True)
class TableBought:
    """A table that was bought: how noisy each cell is, and by how much L1 it differed from what was known before it."""

    names: tuple[str, ...]
    noise: float  # standard deviation, in rows
    gap: float | None  # in rows; None for what was bought before there was a guess


@dataclass(frozen=True, eq=False)
class WarmStart:
    """What was learned and how. `bought` is what the steps cost in all, whenever they were paid."""

    hypothesis: Dense | Mixture
    fitted: AnyFit
    steps: tuple[TableBought, ...]
    plan: StartPlan
    bought: Loss
    measured: tuple[Measured, ...] = ()


def warm_start(
    public: Public,
    curator: Curator | None,
    *,
    loss: Loss,
    interest: Interest = 3,
    plan: StartPlan = "auto",
    pull: float | None = None,
    progress: Progress | None = None,
) -> WarmStart:
    """Buy tables for at most `loss` in all, and fit them.

    `interest` is what questions will be about: tables, each a list of attributes, or everything of up to so many
    attributes. "pairs" buys every attribute and every pair within it, once, at the prices of `prices`. "adaptive"
    buys every attribute, and then in rounds the table, of any size within the interest, that is guessed worst by more
    than its noise (AIM: McKenna, Mullins, Sheldon & Miklau 2022). It can learn what no pair shows, and leaves out pairs
    that say nothing new; but it pays for its choices. "auto" is decided by `choose_plan`, from what is public.
    """
    domain = public.domain
    check_pull(pull)
    if domain.size > MAX_CELLS:
        Mixture.uniform(domain)  # refuses a domain too wide for it, before anything is paid
    tables = closure(domain, interest)
    if plan not in ("auto", "pairs", "adaptive"):
        raise InvalidQuery(f"a plan is 'auto', 'pairs' or 'adaptive', not {plan!r}.")
    if loss.measure != public.total.measure or loss.atoms <= 0:
        raise InvalidBudget(f"a warm start costs some {public.total.measure}, not {loss}.")
    chosen = choose_plan(public, tables, loss) if plan == "auto" else plan
    if chosen == "pairs":
        return _pairs(public, curator, tables, loss, pull, progress)
    return _adaptive(public, curator, tables, loss, pull, progress)


def recalled(public: Public, *, progress: Progress | None = None) -> WarmStart | None:
    """The start that was bought, folded from what was released; None where there is none, or only a part of one.

    The purchases without which there is no start are fitted together, in the order of the domain. The rounds after them
    are fitted one by one, as they were bought. Rounds that an interrupted process did not come to are not made up for.
    """
    released = {one.receipt.entry: one for one in public.released()}
    marks = [(one.start, one) for one in released.values() if one.start is not None]
    if not marks or marks[-1][0].left:
        return None
    first = 1 + next(i for i, (mark, _) in enumerate(marks) if not mark.left)
    beside = [released[entry] for mark, _ in marks for entry in mark.beside if entry in released]
    together = sorted([*beside, *(one for _, one in marks[:first])], key=lambda one: _place(one, public.domain))
    rounds = [one for _, one in marks[first:]]
    fitted = fit_all(public.domain, together, public.rows, progress=progress)
    for i, _ in enumerate(rounds, start=1):
        some = [*together, *rounds[:i]]
        fitted = fit_all(public.domain, some, public.rows, before=fitted, sweeps=_ROUND_SWEEPS)
    measured = [*together, *rounds]
    if rounds:
        fitted = fit_all(public.domain, measured, public.rows, before=fitted, progress=progress)
    steps = tuple(_step(one, None) for one in measured)
    plan: StartPlan = "adaptive" if rounds else "pairs"
    return WarmStart(fitted.hypothesis, fitted, steps, plan, _sum(public.total, measured), tuple(measured))


def fit_all(
    domain: Domain,
    measured: Sequence[Measured],
    rows: int,
    *,
    pull: float | None = None,
    before: AnyFit | None = None,
    sweeps: int | None = None,
    progress: Progress | None = None,
) -> AnyFit:
    """Fit everything measured: over all cells of X where they can be listed, else by a mixture of products."""
    if domain.size > MAX_CELLS:
        earlier = before if isinstance(before, FittedMixture) else None
        return fit_mixture(domain, measured, rows, before=earlier, progress=progress)
    listed, most = before if isinstance(before, Fitted) else None, {} if sweeps is None else {"sweeps": sweeps}
    return fit(domain, measured, rows, pull=pull, before=listed, progress=progress, **most)


def closure(domain: Domain, interest: Interest) -> list[Marginal]:
    """Every table within the interest that may be bought, those of few attributes first, in the domain's order."""
    if isinstance(interest, bool) or not isinstance(interest, int | list | tuple):
        raise InvalidQuery("an interest is a number of attributes, or lists of them.")
    if isinstance(interest, int):
        if not 1 <= interest <= 8:
            raise InvalidQuery(f"an interest is everything of up to 1 to 8 attributes, not {interest}.")
        scopes = set(combinations(range(len(domain)), min(interest, len(domain))))
    else:
        if not interest or any(isinstance(names, str) or not 1 <= len(names) <= 8 for names in interest):
            raise InvalidQuery("an interest has tables, and each of them 1 to 8 attributes.")
        scopes = {tuple(sorted({domain.names.index(domain.resolve(n)) for n in names})) for names in interest}
    within = {part for scope in scopes for size in range(1, len(scope) + 1) for part in combinations(scope, size)}
    tables = [marginal(domain, *(domain.names[i] for i in axes)) for axes in sorted(within, key=lambda a: (len(a), a))]
    return [table for table in tables if table.size(domain) <= MAX_TABLE]


def prices(domain: Domain, tables: Sequence[Marginal], loss: Loss) -> list[Loss]:
    """How `loss` is shared among tables that are all bought: rho in proportion to cells^(1/3), epsilon to cells^(2/9).

    Noise of variance 1/rho in each of c cells does c/rho to sums over many cells. The fit, which knows that shares are
    not negative and shrinks what is uncertain, leaves about c^(2/3)/rho of that (found by trying powers on Adult);
    the sum over tables is least for rho in proportion to c^(1/3). In pure epsilon the variance is 1/epsilon².
    """
    power = 1 / 3 if loss.measure == "rho" else 2 / 9
    weights = [table.size(domain) ** power for table in tables]
    return [Loss(loss.measure, int(loss.atoms * (weight / sum(weights)) * (1 - 1e-9))) for weight in weights]


def choose_plan(public: Public, tables: Sequence[Marginal], loss: Loss) -> Literal["pairs", "adaptive"]:
    """Pairs, unless the noise in their cells would add up to more rows than there are, on average over them.

    Where it does, so much of the budget goes to tables that tell nothing that it is better to choose among them. Not so
    for a mixture of products, which learns from all of them together what each by itself does not tell: on Adult with
    14 attributes pairs err half as much as what is chosen.
    """
    if public.domain.size > MAX_CELLS:
        return "pairs"
    small = [table for table in tables if len(table.names) <= 2]
    noises = [
        table.size(public.domain) * mean_size(expected_noise(public, table, price))
        for table, price in zip(small, prices(public.domain, small, loss), strict=True)
        if len(table.names) == 2
    ]
    return "pairs" if not noises or sum(noises) / len(noises) <= public.rows else "adaptive"


def wanted(public: Public, table: Marginal) -> Marginal | Tree:
    """What is measured for a table: of an ordered attribute with many bins, a tree of two levels over them.

    By `intervals.choice.two_levels`, from what is public. What was bought before as a plain table stays one.
    """
    domain, name = public.domain, table.names[0]
    attribute = domain[name]
    if len(table.names) > 1 or not attribute.ordered or leaves(attribute) != attribute.size:
        return table
    tree = two_levels(name, attribute.size, public.total.measure)
    if tree is None or (public.find([tree])[0] is None and public.find([table])[0] is not None):
        return table
    return tree


def _pairs(
    public: Public,
    curator: Curator | None,
    tables: Sequence[Marginal],
    loss: Loss,
    pull: float | None,
    progress: Progress | None,
) -> WarmStart:
    small = [table for table in tables if len(table.names) <= 2]
    measured = _buy(public, curator, small, prices(public.domain, small, loss))
    fitted = fit_all(public.domain, measured, public.rows, pull=pull, progress=progress)
    steps = tuple(_step(one, None) for one in measured)
    return WarmStart(fitted.hypothesis, fitted, steps, "pairs", _sum(loss, measured), tuple(measured))


def _adaptive(
    public: Public,
    curator: Curator | None,
    tables: Sequence[Marginal],
    loss: Loss,
    pull: float | None,
    progress: Progress | None,
) -> WarmStart:
    """Rounds of equal price. One that learns less than its noise makes the next ones cost twice as much; when that is
    more than what is left, nothing more is worth its price, and the rest is not spent.
    """
    domain, rows = public.domain, public.rows
    small = [table for table in tables if len(table.names) <= 2]
    ones = [table for table in tables if len(table.names) == 1]
    # What others have bought has said what it can, and is learned as theirs.
    many = [table for table in tables if len(table.names) > 1]
    waiting = [
        table
        for table, found in zip(many, public.find(many), strict=True)
        if not isinstance(found, Measured) or found.start is not None
    ]
    if not any(public.find([wanted(public, one) for one in ones])) and not loss <= public.left:
        raise _too_little(public)
    measured = _buy(public, curator, ones, prices(domain, small, loss)[: len(ones)])
    steps = [_step(one, None) for one in measured]
    fitted = fit_all(domain, measured, rows, pull=pull)
    bought = _sum(loss, measured)
    each = (loss - bought).split(max(1, len(small) - len(ones)))
    total = len(waiting)
    while waiting and each.atoms > 0 and each <= loss - bought:
        choice_loss = Loss(each.measure, int(each.atoms * CHOICE_SHARE))
        table_loss = each - choice_loss
        guesses = [fitted.hypothesis.marginal(table.names).ravel() * rows for table in waiting]
        noises = [t.size(domain) * mean_size(expected_noise(public, t, table_loss)) for t in waiting]
        penalties = [min(noise, 2.0**39) for noise in noises]
        found = buyer(public, curator).select_worst(waiting, guesses, choice_loss, penalties).index
        assert found is not None
        one = buyer(public, curator).measure([waiting[found]], table_loss, start=Start(0))[0]
        gap = float(np.abs(one.values - guesses[found]).sum())
        measured.append(one)
        steps.append(_step(one, gap))
        bought += choice_loss + table_loss
        before, fitted = fitted, fit_all(domain, measured, rows, pull=pull, before=fitted, sweeps=_ROUND_SWEEPS)
        learned = rows * _distance(before.hypothesis, fitted.hypothesis, waiting.pop(found))
        if learned <= noises[found]:
            each += each
        if progress is not None:
            progress(total - len(waiting), total)
    if len(measured) > len(ones):
        fitted = fit_all(domain, measured, rows, pull=pull, before=fitted)
    if progress is not None:
        progress(total, total)
    return WarmStart(fitted.hypothesis, fitted, tuple(steps), "adaptive", bought, tuple(measured))


def _buy(public: Public, curator: Curator | None, tables: Sequence[Marginal], each: Sequence[Loss]) -> list[Measured]:
    """All of them or none: what cannot be paid for is refused before anything is."""
    questions = [wanted(public, table) for table in tables]
    for question, price in zip(questions, each, strict=True):
        expected_noise(public, question, price)
    known = public.find(questions)
    left = [found is None for found in known].count(True)
    if sum(price.atoms for price, found in zip(each, known, strict=True) if found is None) > public.left.atoms:
        raise _too_little(public)
    # The first new purchase names those of others that the start begins with; all of them count down to the last.
    beside = tuple(one.receipt.entry for one in known if isinstance(one, Measured) and one.start is None)
    seller, measured = buyer(public, curator), list[Measured]()
    for question, price, found in zip(questions, each, known, strict=True):
        if found is None:
            left -= 1
        measured += seller.measure([question], price, start=Start(left, beside))
        if found is None:
            beside = ()
    return measured


def _too_little(public: Public) -> BudgetExhausted:
    return BudgetExhausted(
        f"this warm start costs more than the {percent_of(public.left, public.total)} that are left."
    )


def _distance(before: Dense | Mixture, after: Dense | Mixture, table: Marginal) -> float:
    return float(np.abs(before.marginal(table.names) - after.marginal(table.names)).sum())


def _place(one: Measured, domain: Domain) -> tuple[int, tuple[int, ...]]:
    """Where a table stands among those of a domain: tables of few attributes first, in the domain's order."""
    question = one.question
    assert isinstance(question, Marginal | Tree)
    names = question.names if isinstance(question, Marginal) else (question.name,)
    return len(names), tuple(sorted(domain.names.index(name) for name in names))


def _step(measured: Measured, gap: float | None) -> TableBought:
    question, noise = measured.question, math.sqrt(variance(measured.noise))
    assert isinstance(question, Marginal | Tree)
    return TableBought(question.names if isinstance(question, Marginal) else (question.name,), noise, gap)


def _sum(kind: Loss, measured: Sequence[Measured]) -> Loss:
    return Loss(kind.measure, sum(one.cost.atoms for one in measured))


def mean_size(noise: Noise) -> float:
    """The expected distance from 0, but for the steps of the grid."""
    return noise.scale if noise.kind == "laplace" else noise.scale * math.sqrt(2 / math.pi)
