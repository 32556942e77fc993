"""Trusted with budgets: what holds for all blocks of a series, what is protected, and the budget of a block."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from tacit.errors import ConfigError
from tacit.exact.price import total
from tacit.model.block import check_name
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.owner.binding import bound_on_rows
from tacit.release.groups import Levels
from tacit.store.chain import canonical

ROW, WITHIN, OVER = "row", "person within a block", "person over blocks"  # what a series can protect
MOST_BLOCKS = 10_000


@dataclass(frozen=True)
class SeriesTerms:
    """What a series was made with, and what holds for all its blocks."""

    domain: Domain
    budget: Budget
    name: str  # of the column of blocks
    protects: str
    most: int | None  # blocks
    person: str | None
    rows_per_person: int | None
    prior: bool
    settings: Mapping[str, Any]  # of the mechanism, as the owner named them
    expected: int | None = None  # blocks
    windows: list[int] | None = None  # the lengths, in blocks, of what will be asked about

    def written(self) -> dict[str, str]:
        return {
            "declared": self.domain.to_toml(),
            "budget": canonical([self.budget.epsilon, self.budget.delta]),
            **{
                name: canonical(getattr(self, name))
                for name in ("name", "protects", "most", "person", "rows_per_person", "prior", "settings")
            },
            # A series of which no number of blocks is expected has the terms that it always had.
            **{name: canonical(said) for name in ("expected", "windows") if (said := getattr(self, name)) is not None},
        }

    @classmethod
    def read(cls, written: Mapping[str, str]) -> SeriesTerms:
        epsilon, delta = json.loads(written["budget"])
        rest = {name: json.loads(text) for name, text in written.items() if name not in ("declared", "budget")}
        return cls(Domain.from_toml(written["declared"]), Budget(epsilon=epsilon, delta=delta), **rest)

    @property
    def people(self) -> int:
        """How many rows of one person in a block are protected together."""
        return 1 if self.rows_per_person is None else self.rows_per_person

    @property
    def each(self) -> Budget:
        """The budget that one block was made with."""
        return self.of_block(self.budget)

    def of_block(self, budget: Budget) -> Budget:
        """The budget of one block, where this is that of the series.

        For a person over blocks it is such that all blocks together stay within the whole: in whichever measure a
        ledger counts, a block has at most so much that as many as there may be add up to what the whole budget has.
        """
        return budget if self.protects != OVER or self.most is None else part_of(budget, Fraction(1, self.most))

    def of_level(self, levels: Levels, level: int, budget: Budget | None = None) -> Budget:
        """The budget of a ledger of a level: a row is in one of each, and they add up to that of one block at most."""
        return part_of(self.of_block(budget or self.budget), levels.share(level))


@lru_cache(maxsize=256)  # asked for whenever a ledger is opened
def part_of(budget: Budget, share: Fraction) -> Budget:
    """The largest budget that, in the measure of its ledger, is at most this share of another one.

    So budgets whose shares add up to 1 add up, in whichever measure their ledgers count, to no more than the whole.
    """
    if share == 1:
        return budget
    if budget.delta == 0:
        return Budget(epsilon=math.nextafter(float(Fraction(budget.epsilon) * share), 0.0))

    def fits(epsilon: float) -> bool:
        one = Budget(epsilon=epsilon, delta=budget.delta)
        return all(total(one, m).atoms <= share * total(budget, m).atoms for m in ("gdp", "rho"))

    low, high = 0.0, budget.epsilon
    for _ in range(30):
        middle = float(f"{(low + high) / 2:.6g}")  # a budget that can be written down
        if middle in (low, high):
            break
        low, high = (middle, high) if fits(middle) else (low, middle)
    if not low:
        raise ConfigError(f"{budget} is too small to be divided: {share} of it is nothing.")
    return Budget(epsilon=low, delta=budget.delta)


def check_new(terms: SeriesTerms) -> None:
    """Refuse terms that no new series can have."""
    check_name(terms.name, terms.domain)
    bound_on_rows(terms.person, terms.rows_per_person)
    protects, most, expected, windows = terms.protects, terms.most, terms.expected, terms.windows
    if protects not in (ROW, WITHIN, OVER) or (protects == ROW) != (terms.person is None):
        raise ConfigError(
            f'protects is "{ROW}" where no person is named, and else "{WITHIN}" or "{OVER}", not {protects!r}.'
        )
    if (protects == OVER) != (most is not None):
        raise ConfigError(f'most_blocks goes with protects = "{OVER}": how many blocks there may ever be.')
    if most is not None and (type(most) is not int or not 1 <= most <= MOST_BLOCKS):
        raise ConfigError(f"most_blocks is a whole number from 1 to {MOST_BLOCKS:,}, not {most!r}.")
    if expected is not None and (type(expected) is not int or not 1 <= expected <= MOST_BLOCKS):
        raise ConfigError(f"expected is a whole number of blocks from 1 to {MOST_BLOCKS:,}, not {expected!r}.")
    if windows is not None and (
        expected is None or not windows or any(type(one) is not int or not 1 <= one <= expected for one in windows)
    ):
        raise ConfigError("windows are lengths in blocks, like [1, 3, 12], and none is longer than expected says.")
    terms.each  # refuses what cannot be divided  # noqa: B018
