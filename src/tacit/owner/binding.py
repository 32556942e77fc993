"""Trusted with budgets: the mechanism of a session, as its ledger keeps it or as planned, and what binds a ledger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tacit.errors import ConfigError
from tacit.exact.price import check_person, total
from tacit.load.copies import has_digits
from tacit.model.budget import Budget, Measure
from tacit.model.domain import Domain
from tacit.owner.continuation import Before
from tacit.owner.terms import MadeWith, written
from tacit.release.mechanisms import MECHANISMS, Choice
from tacit.release.settings import Common, checked
from tacit.store.anchor import Binding
from tacit.trusted.copy import AnyRecords

if TYPE_CHECKING:  # most sessions have no prior, and read none
    from tacit.release.hypothesis.prior import Prior


DIGITS = "4096"  # the base that a fingerprint of an encoded copy splits long codes to: see `Copy.sums`


class SessionTerms(NamedTuple):
    """The mechanism of a session and its confidence, how a ledger keeps them, and in what it counts losses."""

    choice: Choice
    confidence: float
    kept: dict[str, str]
    measure: Measure


def kept_terms(made: MadeWith, named: Mapping[str, Any]) -> SessionTerms:
    """The terms of a session that there is: as they were written, whatever this version would write."""
    choice, confidence = made.choice(named)
    return SessionTerms(choice, confidence, made.settings, made.total.measure)


def planned_terms(
    *,
    mechanism: str,
    named: Mapping[str, Any],
    domain: Domain,
    budget: Budget,
    rows: int,
    people: int,
    drawn_to: Prior | None,
    made: MadeWith | None,
    before: Before | None,
) -> SessionTerms:
    """The terms of a new session: as asked for, or as planned for what is left where another ledger spent before."""
    rest = budget
    if before is not None:
        rest = before.left_of(budget, total(budget, before.measure(budget), aside=before.made.aside))
    prior_rows = 0 if drawn_to is None else drawn_to.counts_on(domain)
    choice = choose(mechanism, domain, rest, rows, named, rows_per_person=people, prior_rows=prior_rows)
    confidence = checked(Common, named).confidence
    measure = choice.measure(budget) if made is None else made.total.measure
    measure = measure if before is None else before.measure(budget, measure)
    return SessionTerms(choice, confidence, written(choice, confidence), measure)


def binding_of(
    domain: Domain,
    records: AnyRecords,
    fingerprint: Callable[[bytes], str],
    terms: SessionTerms,
    drawn_to: Prior | None,
    made: MadeWith | None,
    before: Before | None,
) -> Binding:
    """What a ledger belongs to for good: one domain, one table, one mechanism, and the ledger that it continues."""
    binding: Binding = {"domain": domain.key, "data": fingerprint, **terms.kept}
    # What lets a ledger be read without the data; one of an earlier version has not got it.
    if made is None or made.domain is not None or not made.settings:
        binding = {**binding, "declared": domain.to_toml(), "rows": str(records.rows)}
    if drawn_to is not None:
        binding = {**binding, "prior": drawn_to.digest}
    if records.counted:  # another fingerprint than that of loaded rows
        binding = {**binding, "held": "engine"}
        if has_digits(domain):
            binding = {**binding, "digits": DIGITS}
    if before is not None:
        return {**binding, "continues": before.made.origin}
    if made is not None and made.continues is not None:
        return {**binding, "continues": made.continues}
    return binding


def choose(
    mechanism: str,
    domain: Domain,
    budget: Budget,
    rows: int,
    named: Mapping[str, Any],
    *,
    rows_per_person: int = 1,
    prior_rows: int = 0,
) -> Choice:
    """The mechanism and its settings for these public parameters: as asked for, or as planned."""
    if mechanism != "auto":
        row = MECHANISMS[mechanism]
        return Choice(mechanism, "asked for", row.set(row.usual(named, domain)))
    from tacit.release.plan import plan  # only a new ledger is planned for

    questions = named.get("questions", 10_000)
    made = plan(
        rows=rows,
        domain=domain,
        budget=budget,
        questions=questions,
        rows_per_person=rows_per_person,
        prior_rows=prior_rows,
    )
    row = MECHANISMS[made.mechanism]
    return Choice(made.mechanism, made.reason, row.set(row.completed(made.options, named)))


def bound_on_rows(person: str | None, rows_per_person: int | None) -> int:
    """How many rows are protected together; refuses what no ledger can be bound to."""
    if (person is None) != (rows_per_person is None):
        raise ConfigError("person and rows_per_person are given together: whose row it is, and how many count.")
    bound = 1 if rows_per_person is None else rows_per_person
    check_person(person, bound)
    return bound


def unit_terms(person: str | None, rows_per_person: int) -> dict[str, str]:
    """Who is protected, as the ledger keeps it: where a row is the unit it says nothing of it."""
    return {} if person is None else {"person": person, "rows_per_person": str(rows_per_person)}
