"""What has to be said of a condition on an attribute whose values were moved to the ends of its range. Public words."""

from __future__ import annotations

from collections.abc import Iterator

from tacit.model.attribute import Attribute
from tacit.model.domain import Domain
from tacit.model.expression import All, Among, Between, Compare, Expression, Not


def clamped_ends(condition: Expression, domain: Domain) -> tuple[str, ...]:
    """A sentence for each clamped attribute at whose ends the condition tells rows apart; for a condition that binds.

    What lies outside was taken for the nearest end. `stay >= 25` is right about that, and `stay > 30` is not, nor are
    `stay <= 30` and `stay = 30`.
    """
    names = dict.fromkeys(_touched(condition, domain))
    return tuple(
        f"{name} is clamped: what lies outside {domain[name].takes} counts at the nearest end" for name in names
    )


def _touched(condition: Expression, domain: Domain) -> Iterator[str]:
    match condition:
        case All(parts):
            for part in parts:
                yield from _touched(part, domain)
        case Not(part):
            yield from _touched(part, domain)
        case Among() | Between() | Compare():
            name, attribute = domain.named(condition.name)
            if attribute.clamp and _at_an_end(condition, attribute):
                yield name


def _at_an_end(condition: Among | Between | Compare, attribute: Attribute) -> bool:
    chosen, bins = set(condition.indices(attribute, True)), attribute.bins
    if isinstance(condition, Compare):  # at an end it is met by every value there is, or by none
        return len(chosen) in (0, bins)
    return not chosen.isdisjoint({0, bins - 1})
