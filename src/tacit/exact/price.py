"""What noise costs, how much noise an amount of loss buys, and what a budget amounts to. Exact; laws alone, no rows.

Neighbours replace one row, and the number of rows is public. So, written once for all of Tacit:

- one count moves by at most 1: L1 = 1, L2² = 1;
- a partition (a marginal, a histogram: each row in exactly one cell) loses 1 in one cell and gains 1 in another:
  L1 = 2, L2² = 2, that is sqrt(2) in L2.

Where people have up to m rows each, neighbours replace those of one person: all moves m times as far (`times`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from tacit.errors import DataError, InvalidBudget
from tacit.exact.bounds import float_above, passing_count, rho_from, root_above
from tacit.exact.gaussian import half_from
from tacit.model.budget import ATOMS, PURE, Budget, Loss, Measure
from tacit.model.noise_law import MAX_SCALE, Noise

MOST_PER_PERSON = 10_000  # rows of one person that neighbours may differ in
_THRESHOLD_SHARE = Fraction(1) / (1 + Fraction(2 ** (2 / 3)))  # of a gate's epsilon
_BETWEEN = Fraction(1, 10)  # grid steps²: by how much whole noise is worth less than continuous noise, in gdp


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """How far a vector of counts can move between neighbours: its L1 distance and its squared L2 distance."""

    l1: int
    l2_squared: int

    def __post_init__(self) -> None:
        if self.l1 < 0 or not bool(self.l1) <= self.l2_squared <= self.l1**2:
            raise ValueError(f"no vector has L1 = {self.l1} and squared L2 = {self.l2_squared}")

    def times(self, rows: int) -> Sensitivity:
        """How far the same vector can move when up to that many rows are replaced, from how far one moves it.

        Guarantee: never too small, since replacing `rows` rows is that many steps between tables that differ in one.
        Formula: rows L1, and rows² L2² (all rows may leave the same cell for the same other one).
        Source: the triangle inequality, in L1 and in L2; group privacy, Dwork & Roth 2014, theorem 2.2.
        """
        if rows < 1:
            raise ValueError(f"{rows} rows cannot be replaced")
        return Sensitivity(rows * self.l1, rows**2 * self.l2_squared)


def check_person(person: str | None, rows_per_person: int) -> None:
    """Refuse a bound without a column to keep it by, and one that is no bound: prices are multiplied by it."""
    if type(rows_per_person) is not int or not 1 <= rows_per_person <= MOST_PER_PERSON:
        raise DataError(f"rows_per_person is a whole number from 1 to {MOST_PER_PERSON:,}, not {rows_per_person!r}.")
    if person is None and rows_per_person != 1:
        raise DataError('rows_per_person needs the column that says whose row it is, like person="patient_id".')
    if person is not None and (type(person) is not str or not person):
        raise DataError(f"person is the name of a column, not {person!r}.")


def price(noise: Noise, sensitivity: Sensitivity, unit: int, measure: Measure) -> Loss:
    """The loss of adding `noise` to every entry of a vector of that sensitivity, with `unit` grid steps to a count.

    Guarantee: the noisy vector is epsilon-DP, rho-zCDP or mu-GDP; returned is epsilon, rho or mu²/2, rounded up.
    Formula: laplace epsilon = L1 unit/scale, then `Loss.of_pure`; gaussian rho = L2² unit²/(2 scale²), for gdp the same
        with max(scale² - 1/10, scale²/4) for scale²; no epsilon.
    Source: Ghosh, Roughgarden & Sundararajan 2009; Canonne, Kamath & Steinke 2020; privacy.md, "Whole Gaussian noise".
    """
    scale = Fraction(noise.scale)  # the very number the sampler uses, not its decimal
    if noise.kind == "laplace":
        return Loss.of_pure(measure, sensitivity.l1 * unit / scale)
    if measure == "epsilon":
        raise ValueError("gaussian noise has no finite price in pure epsilon")
    square = max(scale**2 - _BETWEEN, scale**2 / 4) if measure == "gdp" else scale**2
    return Loss.of(measure, sensitivity.l2_squared * unit**2 / (2 * square))


def noise_for(loss: Loss, sensitivity: Sensitivity, unit: int) -> Noise:
    """The least noise whose price is at most `loss`: laplace for epsilon, gaussian for rho and gdp.

    Guarantee: price(noise_for(loss, ...), ...) <= loss, in exact arithmetic.
    Formula: L1 unit/epsilon; sqrt(v) for rho, v = L2² unit²/(2 loss); sqrt(min(v + 1/10, 4 v)) for gdp; rounded up.
    Source: the inverse of `price`.
    """
    if sensitivity.l1 == 0:
        raise ValueError("what does not depend on the data needs no noise")
    if loss.atoms <= 0:
        raise InvalidBudget(f"An answer costs more than {loss}.")
    if loss.measure == "epsilon":
        scale = float_above(sensitivity.l1 * unit / loss.exact)
    else:
        square = sensitivity.l2_squared * unit**2 / (2 * loss.exact)
        scale = root_above(square if loss.measure == "rho" else min(square + _BETWEEN, 4 * square))
    if scale > MAX_SCALE:
        raise InvalidBudget(f"{loss} is too little: the noise it buys exceeds 64-bit integers.")
    return Noise("laplace" if loss.measure == "epsilon" else "gaussian", scale)


def choice_price(scale: float, move: int, measure: Measure) -> Loss:
    """The loss of one `noisy_max` over scores that move by at most `move` between neighbours.

    Guarantee: the choice is epsilon-DP, rho-zCDP or mu-GDP; returned is epsilon, rho or mu²/2, rounded up.
    Formula: epsilon = 2 move/scale; otherwise `Loss.of_pure` of epsilon/2, as the choice has bounded range epsilon.
    Source: McSherry & Talwar 2007; Cesar & Rogers 2021; McKenna & Sheldon 2020 for permute-and-flip.
    """
    return Loss.of_pure(measure, (2 if measure == "epsilon" else 1) * move / Fraction(scale))


def choice_scale(loss: Loss, move: int) -> float:
    """The least scale of `noisy_max` whose price is at most `loss`.

    Guarantee: choice_price(choice_scale(loss, move), move, ...) <= loss.
    Formula: 2 move/epsilon, with epsilon = 2 sqrt(loss/w) for rho and gdp, w as in `Loss.of_pure`.
    Source: the inverse of `choice_price`.
    """
    if loss.atoms <= 0:
        raise InvalidBudget(f"A choice costs more than {loss}.")
    if loss.measure == "epsilon":
        return float_above(2 * move / loss.exact)
    return root_above(move**2 * PURE[loss.measure] / loss.exact)


def gate_price(threshold_scale: float, comparison_scale: float, move: int, measure: Measure) -> Loss:
    """The loss of one gate (AboveThreshold, shut at its first hit) over values that move by at most `move`.

    Guarantee: all that a gate ever says, to any number of questions, is epsilon-DP, and so costs what is returned.
    Formula: epsilon = move/threshold_scale + 2 move/comparison_scale, then `Loss.of_pure`.
    Source: docs/understand/privacy.md, "The gate": one-sided exponential noise.
    """
    return Loss.of_pure(measure, move / Fraction(threshold_scale) + 2 * move / Fraction(comparison_scale))


def gate_scales(loss: Loss, move: int) -> tuple[float, float]:
    """The scales of the threshold's and the comparisons' noise that `loss` buys.

    Guarantee: gate_price(*gate_scales(loss, move), move, ...) <= loss.
    Formula: epsilon split 1 : 2^(2/3), which makes the variance of their difference least; scales move/epsilon_1 and
        2 move/epsilon_2, rounded up.
    Source: Lyu, Su & Li 2017, section 4.2, for one hit; exponential noise halves all variances alike.
    """
    if loss.atoms <= 0:
        raise InvalidBudget(f"A gate costs more than {loss}.")
    # sqrt(loss/w), rounded down; the split need not be exact, only its sum must not exceed what is paid for
    epsilon = loss.exact if loss.measure == "epsilon" else 1 / Fraction(root_above(PURE[loss.measure] / loss.exact))
    first = epsilon * _THRESHOLD_SHARE
    scales = float_above(move / first), float_above(2 * move / (epsilon - first))
    if max(scales) > 2.0**53:  # one-sided noise must never meet the limit of 64 bits: here the chance is e^-1024
        raise InvalidBudget(f"{loss} is too little for a gate: its noise would exceed 64-bit integers.")
    return scales


def values_noise(loss: Loss, rows_per_person: int) -> Noise:
    """The noise that `loss` buys for the counts of all values of a column: each row has one of them."""
    return noise_for(loss, Sensitivity(2, 2).times(rows_per_person), 1)


def values_price(noise: Noise, rows_per_person: int, measure: Measure) -> Loss:
    """What the counts of all values of a column cost with this noise."""
    return price(noise, Sensitivity(2, 2).times(rows_per_person), 1, measure)


def threshold_of(noise: Noise, rows_per_person: int, aside: float, intent: int, among: int) -> int:
    """From which noisy count on a value is told, by the look of this intent, at `among` columns.

    Guarantee: that any value which one of two neighbours lacks is told of the other has a chance of at most
        aside / 2^intent, over all these columns. So for all intents of a ledger together it is below `aside`.
    Formula: `passing_count`: one person's m rows bring at most m values that nobody else has, of counts of at most m.
    Source: docs/understand/privacy.md, "Discovery".
    """
    if noise.kind != "gaussian" or intent < 1 or not aside:
        raise ValueError("values are told with Gaussian noise, by a look that is paid for, where delta is set aside")
    delta = aside / among / 2.0 ** min(intent, 1000)
    if intent > 900:
        raise InvalidBudget("so late in a ledger no delta is left to discover values.")
    return passing_count(noise.scale, rows_per_person, rows_per_person, delta)


def total(budget: Budget, measure: Measure | None = None, *, aside: float = 0.0) -> Loss:
    """The whole budget as an amount that charges are summed against; in `budget.measure` by default.

    `aside` is the part of delta that is kept for values that are discovered.

    Guarantee: mechanisms whose losses in this measure sum to at most this are together (epsilon, delta - aside)-DP.
    Formula: epsilon itself, or the exact curve of the Gaussian for gdp, zCDP's for rho; rounded down to whole atoms.
    Source: see `exact.gaussian.within` and `exact.bounds.delta_from`.
    """
    measure = budget.counted_in(measure)
    if measure == "epsilon":
        exact = Fraction(repr(budget.epsilon))  # the decimal the owner wrote
    else:
        if not 0 <= aside < budget.delta:
            raise InvalidBudget(f"of delta = {budget.delta}, {aside} cannot be set aside.")
        delta = math.nextafter(budget.delta - aside, 0.0) if aside else budget.delta  # never more than is left
        exact = Fraction((half_from if measure == "gdp" else rho_from)(budget.epsilon, delta))
    atoms = math.floor(exact * ATOMS)
    if atoms == 0:
        raise InvalidBudget(f"{budget} is less than the smallest amount that is counted, {measure} = 1e-12.")
    return Loss(measure, atoms)


def extension(whole: Loss, before: Budget, budget: Budget, *, aside: float = 0.0) -> Loss:
    """What a larger budget adds to `whole`, which the budget before amounts to.

    Guarantee: as `total`, of the larger budget: for all charges together, those before it was raised and those after.
    Formula: total(budget) - whole, in the measure that charges are summed in from the first.
    Source: `total`; docs/understand/privacy.md, "More budget".
    """
    if (before.delta == 0) != (budget.delta == 0):
        raise InvalidBudget(
            f"A budget of {before} is counted in {whole.measure}, and one of {budget} is not: raise epsilon"
            + (", and leave delta 0." if before.delta == 0 else ", and keep a delta.")
        )
    more = total(budget, whole.measure, aside=aside) - whole
    if budget.epsilon < before.epsilon or budget.delta < before.delta or more.atoms <= 0:
        raise InvalidBudget(f"{budget} is not more than {before}, which was promised before: a budget is only raised.")
    return more


def raised_to(
    first: Budget, whole: Loss, decisions: Iterable[tuple[Budget, int]], *, aside: float = 0.0
) -> tuple[Budget, Loss]:
    """What a budget and its total are after decisions to raise them, each a budget and the atoms that it added.

    Guarantee: refuses a decision that has added another amount than its budget is worth, but for 2 atoms and two
        billionths of the total: floats of the machine that worked it out may differ by so much.
    """
    budget = first
    for larger, atoms in decisions:
        more = extension(whole, budget, larger, aside=aside)
        if atoms < 1 or abs(atoms - more.atoms) > 2 + (whole.atoms + more.atoms) // (5 * 10**8):
            raise InvalidBudget(f"{larger} adds {more}, and another amount is stated.")
        budget, whole = larger, whole + Loss(whole.measure, atoms)
    return budget, whole


def carried(spent: Loss, measure: Measure) -> Loss:
    """What was spent in one ledger, as the first charge of another that goes on from it.

    Guarantee: at least what all mechanisms there together lose in this measure.
    Formula: the same in the same measure; of epsilon, `Loss.of_pure` of the sum, since a sum of squares is at most the
        square of the sum. What was charged in rho or gdp says too little about its price in another measure.
    Source: docs/understand/privacy.md, "Other terms".
    """
    if spent.measure == measure:
        return spent
    if spent.measure != "epsilon":
        raise InvalidBudget(f"What was spent in {spent.measure} cannot be counted in {measure}: keep a delta.")
    return Loss.of_pure(measure, spent.exact)


def admits(spent: int, request: int, total: int) -> bool:
    """A privacy filter: whether one more charge may follow what was spent, all in atoms of one measure.

    Guarantee: all releases together are epsilon-DP, rho-zCDP or mu-GDP, of total or mu²/2 = total. The questions, their
        mechanisms and their prices may depend on everything released before; only `total` is fixed.
    Formula: spent + request <= total.
    Source: docs/understand/privacy.md, step 4 and "The filter".
    """
    if spent < 0 or request < 0:
        raise ValueError("a charge cannot be negative: nothing gives budget back")
    return spent + request <= total
