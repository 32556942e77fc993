"""What a choice, a gate over a list and a single comparison cost, and what noise that calls for. No row is looked at.

Called by the curator before it looks, and by whoever forecasts what something will cost.
"""

from __future__ import annotations

from typing import NamedTuple

from tacit.exact.price import Sensitivity, choice_price, choice_scale, gate_price, gate_scales, noise_for, price
from tacit.model.budget import Loss
from tacit.model.factor import GRID
from tacit.model.noise_law import Noise
from tacit.model.request import Comparisons, WorstOf
from tacit.model.workload import Marginal
from tacit.store.chain import digest


class Charge(NamedTuple):
    """Under which key the outcome of a request is kept, and what it costs."""

    key: str
    cost: Loss


def choice_terms(worst: WorstOf, loss: Loss, rows_per_person: int) -> tuple[Charge, float]:
    """What a choice costs, and the scale of its noise.

    Guarantee: the choice costs what is charged, at most `loss`.
    Formula: score = L1 distance between truth and guess, rounded to the grid; the score of a query or statistic moves
        by at most 1 count for each replaced row, a table's by 2; then `noise.noisy_max`.
    Source: Roth, lecture 8 (the exponential mechanism as a distinguisher); Hardt, Ligett & McSherry 2012.
    """
    tables = any(isinstance(one, Marginal) for one in worst.candidates)
    one = 2 if tables else 1
    move = Sensitivity(one, one).times(rows_per_person).l1 * GRID
    scale = choice_scale(loss, move)
    return Charge(digest(["choice", worst.form, scale]), choice_price(scale, move, loss.measure)), scale


def far_terms(asked: Comparisons, loss: Loss, rows_per_person: int) -> tuple[Charge, tuple[float, float]]:
    """What one run of a gate over a list costs, and the scales of its noises.

    Guarantee: one gate's price, at most `loss`, for the whole list.
    Formula: `gate.first_passing`, with a threshold drawn for this list alone.
    Source: Roth, lecture 12, SparseDistinguish.
    """
    move = Sensitivity(1, 1).times(rows_per_person).l1 * GRID
    scales = gate_scales(loss, move)
    form = [[query.key, lens.words[1]] for query, lens in zip(asked.queries, asked.lenses, strict=True)]
    key = digest(["far", form, asked.threshold.hex(), scales])
    return Charge(key, gate_price(*scales, move, loss.measure)), scales


def passing_terms(asked: Comparisons, loss: Loss, rows_per_person: int) -> tuple[Charge, Noise]:
    """What a single comparison costs, and its noise.

    Guarantee: it costs what is charged, at most `loss`, hit or not.
    Formula: lens(truth) + noise of `exact.price.noise_for` >= threshold, on the fine grid.
    Source: Roth & Roughgarden 2010, figure 1, steps 2(a)-(c); the crude bound (10) of their privacy proof.
    """
    (query,), (lens,), bar = asked.queries, asked.lenses, round(asked.threshold * GRID)
    moves = Sensitivity(1, 1).times(rows_per_person)
    noise = noise_for(loss, moves, GRID)
    key = digest(["compare", query.key, lens.words, bar, noise.scale])
    return Charge(key, price(noise, moves, GRID, loss.measure)), noise
