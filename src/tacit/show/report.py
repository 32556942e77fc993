"""A page about a session that can be handed on: what was spent, on what, and what came of it. For anybody.

`report` writes one HTML file from what has been released. It costs nothing, and works for what `tacit.read` gives too.
The words stand in `templates/report.html`; here are the figures.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tacit.errors import ConfigError, TacitError
from tacit.model.budget import Loss, percent_of
from tacit.model.status import rows_in_words
from tacit.release.mechanisms import MECHANISMS
from tacit.release.plan import Plan, plan
from tacit.session import Session
from tacit.show.chart.paint import COLOUR_ROLES, FONT
from tacit.show.chronicle import Chronicle, Sheet
from tacit.show.events import counts, gauge, spending
from tacit.show.pages import environment, percent
from tacit.whole_file import write_whole

MOST_OPEN = 20  # free answers that are shown without being asked for
MEASURED = ("table", "range", "certificate", "count", "statistic")  # kinds of `BOUGHT` that have answers


def report(session: Session, path: str | Path, title: str | None = None) -> Path:
    """Write a page about a session, or about what `tacit.read` gives, and say where it is. Costs nothing.

    One HTML file without scripts, and nothing is loaded from elsewhere. It shows every question that was asked, and
    what was released: no more than an analyst may see, so it may be handed on.
    """
    place = Path(path)
    write_whole(place, [page(session, title).encode()], overwrite=True)
    return place


def page(session: Session, title: str | None = None, past: Chronicle | None = None) -> str:
    """The page as text.

    past: what is known already of what the page shows, by whoever keeps it; by default the whole ledger is read.
    """
    if not isinstance(session, Session):
        raise ConfigError("a report is about a session, or what tacit.read gives.")
    past = Chronicle().catch_up(session, session.entries).read(session) if past is None else past
    gates = session.open_gates()
    tally = past.sums(gates)
    lines = spending(tally, session)
    return (
        environment("tacit.show")
        .get_template("report.html")
        .render(
            title=title or "Private answers",
            session=session,
            rows_in_words=rows_in_words(session.rows, session.rows_per_person),
            font=FONT,
            roles={role: COLOUR_ROLES[role] for role in ("paper", "ink", "soft", "grid", "0")},
            bought=tally.number.total(),
            free=past.told_free(),
            many_free=past.free,
            most_open=MOST_OPEN,
            gauge=gauge(tally, session),
            spending=_spending(lines, session),
            reserved=any(name == "reserved" for name, _, _ in lines),
            timeline=past.timeline(gates, session),
            measured=any(tally.number[kind] for kind in MEASURED),
            counts=counts(past.first_counts, tally.number["count"], session),
            singles=past.singles(),
            ranges=past.exhibitions["range"].exhibits(),
            tables=past.exhibitions["table"].exhibits(),
            expected=expectation(session),
            attributes=_attributes(session),
            attribute=repr(session.domain.names[0]),
            ledger=past.ledger(gates, session),
            odds=odds(session),
        )
    )


def expectation(session: Session) -> dict[str, Any]:
    """The mechanism and why, and what to expect of all of them, for the macro `plan`. For the server's page too."""
    choice, made = session.choice, _planned(session)
    said = [f"{MECHANISMS[choice.mechanism].words}: {choice.reason.rstrip('.')}."]
    if made is None:
        return {"said": said, "forecasts": None}
    if made.mechanism != choice.mechanism:
        said.append(f"The planner would choose {made.name}: {made.reason}")
    rows = [
        [MECHANISMS[one.mechanism].words, *(_share(error) for error in (one.mean, one.largest, one.bar, one.promised))]
        for one in made.forecasts
    ]
    head = ["mechanism", "mean error", "largest error", "bar", "all at once"]
    forecasts = Sheet(f"What to expect of {made.questions:,} questions, of all rows", head, rows, [1, 2, 3, 4])
    return {"said": said, "forecasts": forecasts, "chart": made.chart(), "notes": made.footnotes}


def odds(session: Session) -> dict[str, str]:
    """What the loss means, now and once all is spent, for the macro `guarantees`. For the server's page too."""
    now, whole, delta = session.epsilon_spent, session.budget.epsilon, session.budget.delta
    return {
        "times_now": _times(now),
        "times_whole": _times(whole),
        "guess_now": percent(guess(now, delta)),
        "guess_whole": percent(guess(whole, delta)),
    }


def guess(epsilon: float, delta: float) -> float:
    """The most that a test between two neighbours can be right with, from even odds.

    (e^epsilon + delta) / (1 + e^epsilon): Kairouz, Oh & Viswanath 2015, from the region of errors of any test.
    """
    if epsilon == 0:
        return 0.5
    return min(1.0, (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon)))


def _spending(lines: Sequence[tuple[str, int, Loss]], session: Session) -> Sheet:
    rows = [
        [name, f"{many:,}" if many else "", percent_of(cost, session.total)]
        for name, many, cost in [*lines, ("left", 0, session.left)]
    ]
    return Sheet("What the budget was spent on", ["on", "how many", "of the budget"], rows, [1, 2])


def _planned(session: Session) -> Plan | None:
    """What the planner says about these public parameters; None where it says nothing."""
    try:
        return plan(
            rows=session.rows,
            domain=session.domain,
            budget=session.budget,
            questions=session.choice.settings.questions,
            confidence=session.confidence,
            rows_per_person=session.rows_per_person,
            prior_rows=0 if session.prior is None else session.prior.counts_on(session.domain),
        )
    except TacitError:
        return None


def _attributes(session: Session) -> Sheet:
    rows = [[name, a.kind, f"{a.size:,}", " and ".join([a.takes, *a.extras])] for name, a in session.domain.items()]
    return Sheet("The declared attributes", ["attribute", "kind", "values", "takes"], rows, [2])


def _share(error: float | None) -> str:
    return "–" if error is None else "says nothing" if error >= 1 else percent(error)


def _times(epsilon: float) -> str:
    return f"e^{epsilon:.3g}" if epsilon > 20 else f"{math.exp(epsilon):.3g}"
