"""A workload that is announced in advance: planned for, learned, and from then on answered. For `Session.release`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tacit.errors import InvalidQuery
from tacit.model.aggregate import check_share
from tacit.model.budget import Loss
from tacit.model.description import describe
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.model.request import Candidate
from tacit.model.workload import Marginal, key
from tacit.release.offline import MAX_ROUNDS, Constructed, Distinguisher, announce, construct, plan
from tacit.release.public import Public
from tacit.release.purchases import split
from tacit.release.rules import Learner, UpdateRule

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator

Effort = tuple[float | None, float | None, int | None]  # alpha, share of the budget, rounds; None: by the theorem


def announced(
    public: Public,
    curator: Curator | None,
    workload: Sequence[Candidate],
    known: Callable[..., Any],
    confidence: float,
    *,
    effort: Effort,
    distinguisher: Distinguisher,
    rule: str | UpdateRule[Any],
) -> Constructed[Any]:
    """The construction of `offline`, with what was left out of its effort; its answers are told.

    known: gives the answers that questions have already, which stay.
    """
    alpha, share, rounds = effort
    if rounds is not None and (type(rounds) is not int or not 1 <= rounds <= MAX_ROUNDS):
        raise InvalidQuery(f"rounds is a whole number from 1 to {MAX_ROUNDS:,}, not {rounds!r}.")
    if alpha is not None and (not isinstance(alpha, float) or not 0 < alpha <= 1):
        raise InvalidQuery(f"alpha is a fraction of the rows, above 0 and at most 1, not {alpha!r}.")
    check_share(share)
    loss = None if share is None else Loss(public.total.measure, int(public.total.atoms * share))
    constant = [one for one in workload if isinstance(one, Query) and one.is_constant]
    # A question and the one for all other rows are one candidate: what is proved of it is what is told.
    cores = [one if isinstance(one, Marginal) else one.core for one in workload]
    candidates = list({key(one): one for one in cores if not (isinstance(one, Query) and one.is_constant)}.values())
    if not candidates:
        raise InvalidQuery("every question of the workload follows from the number of rows, which is public.")
    learner = Learner(rule, public.domain, public.rows)
    with public.honest():
        planned = plan(
            public,
            learner.max_updates,
            len(candidates),
            # The sparse distinguisher finds what is wrong, not what is worst, and comes back more often.
            measured=len(candidates) * (3 if distinguisher == "sparse" else 1),
            confidence=split(confidence).others,
            rounds=rounds,
            loss=loss,
            alpha=alpha,
        )
        built = construct(
            public,
            curator,
            candidates,
            learner.of(planned.alpha),
            rounds=planned.rounds,
            loss=planned.loss,
            alpha=planned.alpha,
            distinguisher=distinguisher,
            confidence=confidence,
        )
        with public.turn():
            announce(public, built, candidates, known, confidence)
    built.note = _left_out(constant, public.domain)
    return built


def _left_out(constant: Sequence[Query], domain: Domain) -> str:
    """What is said of questions that nothing has to be learned for."""
    if not constant:
        return ""
    words = ", ".join(describe(one, domain) for one in constant[:3])
    more = f" and {len(constant) - 3:,} more" if len(constant) > 3 else ""
    return f"left out, as the number of rows tells it: {words}{more}"
