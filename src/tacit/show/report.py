"""A page about a session that can be handed on: what was spent, on what, and what came of it. For anybody.

`report` writes one HTML file from what has been released. It costs nothing, and works for what `tacit.read` gives too.
The words stand in `templates/report.html`; here are the figures.
"""

from __future__ import annotations

import math
import os
from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from tacit.errors import ConfigError, TacitError
from tacit.model.answer import bar_line, says_words
from tacit.model.budget import Loss, percent_of
from tacit.model.entry import Measured
from tacit.model.status import rows_in_words
from tacit.model.table import CdfAnswer, Table
from tacit.model.workload import Marginal
from tacit.release.mechanisms import MECHANISMS
from tacit.release.plan import Plan, plan
from tacit.session import Session
from tacit.show.chart import Chart
from tacit.show.chart.paint import FONT, ROLES
from tacit.show.events import (
    WIDTH,
    Event,
    SpendingTally,
    counts,
    events,
    gauge,
    pictures,
    single,
    spending,
    table,
    timeline,
)
from tacit.show.pages import environment, number, percent

MOST_PICTURES = 40
MOST_LINES = 500  # of the ledger, or of free answers
MOST_CELLS = 200  # of a table, in numbers
MOST_OPEN = 20  # free answers that are shown without being asked for
SEAL = 16  # letters of a seal


class Sheet(NamedTuple):
    """A table of text, in the order of the macro `grid`.

    By place, `right` are the columns that hold numbers and `grey` the rows that say nothing.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[int]
    grey: Container[int] = ()


@dataclass(frozen=True)
class Exhibit:
    """A release on the page: its picture with a caption, and the first of its `cells` in numbers.

    Without a picture `words` stands by itself, if there is something to say.
    """

    words: str
    chart: Chart | None = None
    numbers: Sheet | None = None
    cells: int = 0


def report(session: Session, path: str | Path, title: str | None = None) -> Path:
    """Write a page about a session, or about what `tacit.read` gives, and say where it is. Costs nothing.

    One HTML file without scripts, and nothing is loaded from elsewhere. It shows every question that was asked, and
    what was released: no more than an analyst may see, so it may be handed on.
    """
    place = Path(path)
    text = page(session, title)
    part = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(place)
    except OSError:
        raise ConfigError(f"{place.name} cannot be written.") from None
    finally:
        part.unlink(missing_ok=True)
    return place


def page(session: Session, title: str | None = None) -> str:
    """The page as text."""
    if not isinstance(session, Session):
        raise ConfigError("a report is about a session, or what tacit.read gives.")
    found = events(session)
    free = [event for event in found if event.free]
    bought = [event for event in found if not event.free]
    measured = [event for event in bought if isinstance(event.answer, Measured)]
    lines = spending(SpendingTally.of(found), session)
    return (
        environment("tacit.show")
        .get_template("report.html")
        .render(
            title=title or "Private answers",
            session=session,
            rows_in_words=rows_in_words(session.rows, session.rows_per_person),
            font=FONT,
            roles={role: ROLES[role] for role in ("paper", "ink", "soft", "grid", "0")},
            bought=len(bought),
            free=_answers("Answers told for nothing", free, session),
            many_free=len(free),
            most_open=MOST_OPEN,
            gauge=gauge(found, session),
            spending=_spending(lines, session),
            reserved=any(name == "reserved" for name, _, _ in lines),
            timeline=timeline(found, session),
            measured=bool(measured),
            counts=counts(found, session),
            singles=_answers("All counts and statistics", measured, session),
            ranges=_exhibits([event for event in measured if event.kind == "range"], session),
            tables=_exhibits([event for event in measured if event.kind == "table"], session),
            expected=expectation(session),
            attributes=_attributes(session),
            attribute=repr(session.domain.names[0]),
            ledger=_ledger(bought, session),
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


def _answers(caption: str, found: Sequence[Event], session: Session) -> Sheet:
    """Answers of one value each, and what they cost if any did."""
    columns = ["entry", "question", "value", "±", "for"] + (
        [] if all(event.free for event in found) else ["of the budget"]
    )
    told = [(event, answer) for event in found if (answer := single(event, session))]
    rows = []
    for event, answer in told:
        bar = number(answer.bars[0].width) if answer.bars else ""
        about = f"{answer.bars[0].about if answer.bars else 'nothing is promised'}{says_words(answer)}"
        cost = percent_of(event.cost, session.total)
        line = [str(event.receipt.entry), event.question, number(answer.value), bar, about, cost]
        rows.append(line[: len(columns)])
    grey = {i for i, (_, answer) in enumerate(told) if answer.says == "nothing"}
    return _cut(caption, columns, rows, [0, 2, 3, 5])._replace(grey=grey)


def _exhibits(found: Sequence[Event], session: Session) -> list[Exhibit]:
    shown: list[Exhibit] = []
    left_out = 0
    for event in found:
        drawn = list(pictures(event, session))
        if len(shown) + len(drawn) > MOST_PICTURES and shown:
            left_out += 1
            continue
        shown += [_exhibit(one, event, session) for one in drawn]
        answer = event.answer
        # A table of many attributes is drawn one attribute at a time; its own numbers follow.
        if isinstance(answer, Measured) and isinstance(answer.question, Marginal) and len(answer.question.names) > 2:
            shown.append(_in_numbers("", None, table(answer, session)))
        elif not drawn:
            shown.append(Exhibit(f"{event.question} (entry {event.receipt.entry}) has no picture."))
    if left_out:
        shown.append(Exhibit(f"{left_out:,} more in the ledger below, but not drawn."))
    return shown


def _exhibit(one: CdfAnswer | Table, event: Event, session: Session) -> Exhibit:
    each = "each count by itself" if isinstance(one, Table) else "all at once"
    cost = f"{percent_of(event.cost, session.total)} of the budget"
    caption = f"Entry {event.receipt.entry}: {each} {bar_line(one.bars[0])}; {cost}{says_words(one)}."
    return _in_numbers(caption, replace(one.chart(), width=WIDTH, note=""), one)


def _in_numbers(words: str, chart: Chart | None, one: CdfAnswer | Table) -> Exhibit:
    if isinstance(one, Table):
        rows = [[*labels, number(value)] for labels, value in islice(one.rows(), MOST_CELLS)]
        sheet = Sheet(one.question, [*one.names, "rows"], rows, [len(one.names)])
    else:
        columns = zip(one.labels, one.values, *one.band, strict=True)
        rows = [[label, *map(number, figures)] for label, *figures in islice(columns, MOST_CELLS)]
        sheet = Sheet(one.question, [one.name, "rows up to its end", "at least", "at most"], rows, [1, 2, 3])
    return Exhibit(words, chart, sheet, one.values.size)


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


def _ledger(bought: Sequence[Event], session: Session) -> Sheet:
    rows = [
        [str(at.entry), event.kind, event.question, percent_of(event.cost, session.total), at.seal[:SEAL]]
        for event in bought
        for at in [event.receipt]
    ]
    return _cut("Everything bought", ["entry", "kind", "what", "of the budget", "seal"], rows, [0, 3])


def _share(error: float | None) -> str:
    return "–" if error is None else "says nothing" if error >= 1 else percent(error)


def _times(epsilon: float) -> str:
    return f"e^{epsilon:.3g}" if epsilon > 20 else f"{math.exp(epsilon):.3g}"


def _cut(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int]) -> Sheet:
    note = f" (the first {MOST_LINES:,} of {len(rows):,})" if len(rows) > MOST_LINES else ""
    return Sheet(caption + note, head, rows[:MOST_LINES], right)
