"""Trusted words: the privacy budget and the losses charged against it: exact integers, so that sums never drift."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from tacit.errors import InvalidBudget

Measure = Literal["epsilon", "rho", "gdp"]
MEASURES = get_args(Measure)
ATOMS = 10**12  # one unit of a measure is this many atoms; charges round up to whole atoms, budgets down
PURE = {"rho": Fraction(1, 2), "gdp": Fraction(355, 452)}  # the price of what is epsilon-DP, over epsilon²


@dataclass(frozen=True, slots=True)
class Loss:
    """An amount of privacy loss: in pure epsilon, in zCDP's rho, or in gdp, half the square of Gaussian privacy's mu.

    >>> Loss.of("epsilon", Fraction(1, 3)) + Loss.of("epsilon", 0.1)
    Loss('epsilon', 433333333334)
    >>> print(Loss.of("rho", 0.02))
    rho = 0.02
    """

    measure: Measure
    atoms: int

    def __post_init__(self) -> None:
        if type(self.atoms) is not int or self.measure not in MEASURES:
            raise InvalidBudget(f"a loss is a whole number of atoms of {', '.join(MEASURES)}, not {self.atoms!r}.")

    @classmethod
    def of(cls, measure: Measure, amount: Fraction | float) -> Loss:
        """The loss `amount`, rounded up to whole atoms. A float means the decimal that it prints as."""
        exact = amount if isinstance(amount, Fraction) else Fraction(repr(amount))
        return cls(measure, math.ceil(exact * ATOMS))

    @classmethod
    def nothing(cls, measure: Measure) -> Loss:
        """No loss at all: the cost of what is free."""
        return cls(measure, 0)

    @classmethod
    def of_pure(cls, measure: Measure, epsilon: Fraction) -> Loss:
        """The loss of what is epsilon-DP; in rho and gdp also of what has bounded range 2 epsilon.

        Guarantee: such a mechanism is epsilon-DP, rho-zCDP or mu-GDP; returned is epsilon, rho or mu²/2, rounded up.
        Formula: epsilon; rho = epsilon²/2; mu²/2 = (pi/4) epsilon², with 355/113 for pi.
        Source: Bun & Steinke 2016, prop. 1.4; Cesar & Rogers 2021, lemma 3.4; privacy.md, "Pure pieces".
        """
        return cls.of(measure, epsilon if measure == "epsilon" else epsilon**2 * PURE[measure])

    @property
    def exact(self) -> Fraction:
        return Fraction(self.atoms, ATOMS)

    def _same(self, other: Loss) -> None:
        if self.measure != other.measure:
            raise ValueError(f"cannot combine {self.measure} with {other.measure}")

    def __add__(self, other: Loss) -> Loss:
        self._same(other)
        return Loss(self.measure, self.atoms + other.atoms)

    def __sub__(self, other: Loss) -> Loss:
        self._same(other)
        return Loss(self.measure, self.atoms - other.atoms)

    def __le__(self, other: Loss) -> bool:
        self._same(other)
        return self.atoms <= other.atoms

    def split(self, parts: int) -> Loss:
        """The largest loss that can be spent `parts` times out of this one."""
        return Loss(self.measure, self.atoms // parts)

    def __float__(self) -> float:
        return self.atoms / ATOMS

    def to_dict(self) -> dict[Measure, float]:
        """For JSON: the amount, under the name of its measure."""
        return {self.measure: float(self)}

    def __repr__(self) -> str:
        return f"Loss({self.measure!r}, {self.atoms})"

    def __str__(self) -> str:
        return f"{self.measure} = {float(self):.6g}"


def percent_of(part: Loss, total: Loss) -> str:
    """How much of the budget that is, as people read it. Of a quota of nothing all is used.

    >>> percent_of(Loss("rho", 2), Loss("rho", 50)), percent_of(Loss("rho", 1), Loss("rho", 7919))
    ('4 %', '0.0126 %')
    >>> percent_of(Loss("rho", 242), Loss("rho", 7))
    '3,457 %'
    >>> percent_of(Loss("rho", 1), Loss("rho", 10**12))
    'less than 0.0001 %'
    >>> percent_of(Loss("rho", 0), Loss("rho", 0))
    '100 %'
    """
    return percent_words(100 * part.atoms / total.atoms if total.atoms else 100.0)


def percent_words(percent: float) -> str:
    """So many per cent of the budget, as people read them."""
    if 0 < percent < 1e-4:  # which nobody reads in powers of ten
        return "less than 0.0001 %"
    return f"{percent:.3g} %" if percent < 999.5 else f"{percent:,.0f} %"


def exhausted(cost: Loss, spent: int, whole: int, *, closed: bool) -> str:
    """The refusal of what costs more than is left, in words; what is left of a closed ledger is in another one."""
    if closed:
        return "Another ledger continues this one, and has what was left."
    costs, left = (percent_words(100 * atoms / whole) for atoms in (cost.atoms, max(0, whole - spent)))
    return f"The question costs {costs} of the budget and {'slightly less' if left == costs else left} is left."


def raised(times: int) -> str:
    """How often a budget was raised, in words that follow it.

    >>> raised(0), raised(1), raised(3)
    ('', ', raised once', ', raised 3 times')
    """
    return "" if not times else ", raised once" if times == 1 else f", raised {times:,} times"


@dataclass(frozen=True, slots=True)
class Budget:
    """The one privacy budget of a data set: (epsilon, delta). delta = 0 means pure differential privacy.

    With delta = 0, losses add up in epsilon; with delta > 0, in gdp, half the square of Gaussian privacy's mu, or in
    zCDP's rho where gates take much of the budget. The total of either follows from both numbers.

    >>> Budget(epsilon=1.0, delta=1e-9)
    Budget(epsilon=1.0, delta=1e-09)
    >>> print(Budget(epsilon=1.0))
    epsilon = 1 (pure)
    """

    epsilon: float
    delta: float

    def __init__(self, epsilon: float, delta: float = 0.0) -> None:
        object.__setattr__(self, "epsilon", _number("epsilon", epsilon, low=1e-9, high=1000.0))
        object.__setattr__(self, "delta", _number("delta", delta, low=0.0, high=0.5))
        if 0 < self.delta < 1e-100:
            raise InvalidBudget(f"delta is 0 or at least 1e-100, not {self.delta:g}.")

    @property
    def measure(self) -> Measure:
        """What losses are counted in, unless gates take much of the budget (`Choice.measure`)."""
        return "epsilon" if self.delta == 0 else "gdp"

    def counted_in(self, measure: Measure | None) -> Measure:
        """The measure that is named, or this budget's own. Pure budgets have one, and others two."""
        if measure is not None and (measure == "epsilon") != (self.delta == 0):
            raise InvalidBudget(f"{self} is not counted in {measure}.")
        return measure or self.measure

    def __str__(self) -> str:
        return f"epsilon = {self.epsilon:g}" + (f", delta = {self.delta:g}" if self.delta else " (pure)")


def _number(name: str, given: object, *, low: float, high: float) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise InvalidBudget(f"{name} is a number from {low:g} to {high:g}, not {type(given).__name__}.")
    huge = abs(given) >= 1e300  # a huge int has no float
    value = (math.inf if given > 0 else -math.inf) if huge else float(given)
    if not low <= value <= high:
        raise InvalidBudget(f"{name} is a number from {low:g} to {high:g}, not {value:g}.")
    return value
