"""The update rules that a user may name: `session.release(rule=...)`. One line each, from the domain and an alpha."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tacit.errors import InvalidQuery
from tacit.model.domain import Domain
from tacit.release.rules.multiplicative_weights import MultiplicativeWeights
from tacit.release.rules.update_rule import UpdateRule

RULES: dict[str, Callable[[Domain, float], UpdateRule[Any]]] = {
    "multiplicative_weights": lambda domain, alpha: MultiplicativeWeights(domain, alpha, tolerance=alpha / 2),
    "textbook_weights": lambda domain, alpha: MultiplicativeWeights(domain, alpha, step="textbook"),
}


def rule_of(name: str, domain: Domain, alpha: float) -> UpdateRule[Any]:
    """The rule of this name."""
    if name not in RULES:
        raise InvalidQuery(f"rule is one of {', '.join(RULES)}, not {name!r}.")
    return RULES[name](domain, alpha)
