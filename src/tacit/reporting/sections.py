"""The report itself: which sections, in which order, with which words. For anybody who has a session."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tacit.errors import ConfigError, TacitError
from tacit.model.answer import Measured, Table
from tacit.model.distribution_answer import CdfAnswer
from tacit.model.workload import Marginal
from tacit.release.plan import NAMES, Plan, plan
from tacit.reporting import pictures
from tacit.reporting.page import (
    cards,
    code,
    document,
    figure,
    folded,
    grid,
    listed,
    number,
    paragraph,
    percent,
)  # fmt: skip
from tacit.reporting.steps import Step, bought_by_kind, single, steps
from tacit.session import Session

MOST_PICTURES = 40
MOST_LINES = 500  # of the ledger, or of free answers
MOST_CELLS = 200  # of a table, in numbers


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
    found = steps(session)
    bought = sum(not step.free for step in found)
    lead = cards(
        [
            ("rows", f"{session.rows:,}"),
            ("budget, epsilon", f"{session.budget.epsilon:g}"),
            ("spent", percent(session.spent.atoms / session.total.atoms)),
            ("bought", f"{bought:,}"),
            ("told for nothing", f"{len(found) - bought:,}"),
            ("mechanism", session.choice.mechanism),
        ]
    )
    sections = [
        ("Budget", _budget(found, session)),
        ("Over time", _time(found, session)),
        ("What was released", _released(found, session)),
        ("Free answers", _free(found, session)),
        ("The plan", plan_section(session)),
        ("What can be asked", _domain(session)),
        ("The ledger", _ledger(found)),
        ("Reproduce an answer", _reproduce(found, session)),
        ("What is guaranteed", guarantees_section(session)),
    ]
    about = f"{session.rows:,} rows, {len(session.domain)} attributes, {session.domain.size:,} cells; {session.budget}"
    return document(
        title or "Private answers", paragraph(about) + lead, [(name, body) for name, body in sections if body]
    )


def _budget(found: Sequence[Step], session: Session) -> str:
    lines = bought_by_kind(found, session)
    rows = [
        [name, f"{many:,}" if many else "", f"{float(cost):.4g}", percent(cost.atoms / session.total.atoms)]
        for name, many, cost in lines
    ]
    rows.append(["left", "", f"{float(session.left):.4g}", percent(session.left.atoms / session.total.atoms)])
    measure = session.total.measure
    words = f"Everything released so far amounts to epsilon = {session.epsilon_spent:.4g}"
    words += f" at delta = {session.budget.delta:g}." if session.budget.delta else "."
    if measure == "rho":
        words += f" Losses are added up in rho (zero-concentrated privacy); the whole budget is {session.total}."
    if any(name == "reserved" for name, _, _ in lines):
        words += " What is reserved counts as spent: for a gate that is still open, or a question that was cut off."
    table = grid("What the budget was spent on", ["on", "how many", measure, "of the budget"], rows, right=[1, 2, 3])
    return paragraph(words) + figure(pictures.gauge(found, session).svg()) + table


def _time(found: Sequence[Step], session: Session) -> str:
    words = (
        "Each stroke below the curve is one entry of the ledger: a purchase, or an answer told for nothing because "
        "what was published already determined it. The curve is what was spent by then. A question that was answered "
        "before is free too, and makes no entry."
    )
    return paragraph(words) + figure(pictures.timeline(found, session).svg())


def _released(found: Sequence[Step], session: Session) -> str:
    bought = [step for step in found if isinstance(step.answer, Measured)]
    if not bought:
        return paragraph("Nothing was bought yet.")
    parts = []
    singles = pictures.counts(found, session)
    if singles is not None:
        parts += ["<h3>Counts</h3>", figure(singles.svg())]
    rows = [_line(step, session) for step in bought if single(step, session)]
    parts.append(
        _cut("All counts and statistics", ["entry", "question", "value", "±", "cost"], rows, right=[0, 2, 3, 4])
    )
    for kind, heading in (("range", "Ranges"), ("table", "Tables")):
        own = [step for step in bought if step.kind == kind]
        if own:
            parts += [f"<h3>{heading}</h3>", *_drawn(own, session)]
    return "".join(parts)


def _drawn(own: Sequence[Step], session: Session) -> list[str]:
    shown: list[str] = []
    left_out = 0
    for step in own:
        drawn = list(pictures.pictures(step, session))
        if len(shown) + len(drawn) > MOST_PICTURES and shown:
            left_out += 1
            continue
        shown += [_with_numbers(one, step) for one in drawn]
        answer = step.answer
        if isinstance(answer, Measured) and isinstance(answer.question, Marginal) and len(answer.question.names) > 2:
            shown.append(_numbers(pictures.table(answer, session)))
        elif not drawn:
            shown.append(paragraph(f"{step.question} (entry {step.receipt.entry}) has no picture."))
    more = [paragraph(f"{left_out:,} more in the ledger below, but not drawn.")] if left_out else []
    return [*shown, *more]


def _with_numbers(one: CdfAnswer | Table, step: Step) -> str:
    sure = f"{100 * one.confidence:.10g} %"
    error = "no error bar" if one.error is None else f"± {number(one.error)} rows at {sure}"
    each = "each count by itself" if isinstance(one, Table) else "all at once"
    caption = f"Entry {step.receipt.entry}: {error}, {each}; cost {step.cost}."
    return figure(replace(one.chart(), width=pictures.WIDTH, note="").svg(), caption) + _numbers(one)


def _numbers(one: CdfAnswer | Table) -> str:
    if isinstance(one, Table):
        cells = one.values.size
        rows = [[*labels, number(value)] for (labels, value), _ in zip(one.rows(), range(MOST_CELLS), strict=False)]
        head, right = [*one.names, "rows"], [len(one.names)]
    else:
        cells = len(one.values)
        columns = zip(one.labels, one.values, *one.band, strict=True)
        rows = [
            [label, *map(number, figures)] for (label, *figures), _ in zip(columns, range(MOST_CELLS), strict=False)
        ]
        head, right = [one.name, "rows up to its end", "at least", "at most"], [1, 2, 3]
    note = f"; the first {MOST_CELLS:,} of {cells:,}" if cells > MOST_CELLS else ""
    return folded(f"Numbers: {one.question}{note}", grid(one.question, head, rows, right=right))


def _free(found: Sequence[Step], session: Session) -> str:
    rows = [_line(step, session)[:4] for step in found if step.free]
    if not rows:
        return ""
    words = "Worked out from what was published, and recorded so that they never change."
    table = _cut("Answers told for nothing", ["entry", "question", "value", "±"], rows, right=[0, 2, 3])
    return paragraph(words) + (table if len(rows) <= 20 else folded(f"{len(rows):,} free answers", table))


def plan_section(session: Session) -> str:
    """The mechanism and why, and what to expect of all of them. For the server's page too."""
    choice = session.choice
    said = [paragraph(f"{NAMES.get(choice.mechanism, choice.mechanism)}: {choice.reason.rstrip('.')}.")]
    made = _planned(session)
    if made is None:
        return "".join(said)
    if made.mechanism != choice.mechanism:
        said.append(paragraph(f"The planner would choose {made.name}: {made.reason}"))
    rows = [
        [NAMES[one.mechanism], *(_share(error) for error in (one.mean, one.largest, one.promised))]
        for one in made.forecasts
    ]
    head = ["mechanism", "mean error", "largest error", "promised"]
    table = grid(f"What to expect of {made.questions:,} questions, of all rows", head, rows, right=[1, 2, 3])
    return "".join([*said, table, figure(made.chart().svg()), folded("What the columns mean", listed(made.footnotes))])


def _planned(session: Session) -> Plan | None:
    """What the planner says about these public parameters; None where it says nothing."""
    try:
        return plan(
            rows=session.rows,
            domain=session.domain,
            budget=session.budget,
            questions=session.choice.questions,
            confidence=session.confidence,
            rows_per_person=session.rows_per_person,
        )
    except TacitError:
        return None


def _share(error: float | None) -> str:
    return "–" if error is None else "says nothing" if error >= 1 else percent(error)


def _domain(session: Session) -> str:
    rows = [[name, a.kind, f"{a.size:,}", " and ".join([a.takes, *a.extras])] for name, a in session.domain.items()]
    return grid("The declared attributes", ["attribute", "kind", "values", "takes"], rows, right=[2])


def _ledger(found: Sequence[Step]) -> str:
    rows = [
        [str(step.receipt.entry), step.kind, step.question, f"{float(step.cost):.4g}", step.receipt.seal[:16]]
        for step in found
        if not step.free
    ]
    words = "The seal is a hash of the entry and of all before it: two people with the same seal have the same past."
    return paragraph(words) + _cut("Everything bought", ["entry", "kind", "what", "cost", "seal"], rows, right=[0, 3])


def _reproduce(found: Sequence[Step], session: Session) -> str:
    name = session.domain.names[0]
    lines = (
        "import tacit\n\n"
        'session = tacit.read("people-public.tacit")  # what the owner published; no data, nothing to spend\n'
        'tacit.verify("people-public.tacit")         # derives every seal and every total again\n'
        f"answer = session.table({name!r})\n"
        "answer.receipt                              # entry and seal, as listed above\n"
    )
    words = (
        "The same question gets the same answer, for everybody, however it is written and after every restart. It is "
        "read from the ledger and costs nothing. With the published file, this works without the data:"
    )
    return paragraph(words) + code(lines)


def guarantees_section(session: Session) -> str:
    """What is promised about rows and error bars, and what is not. For the server's page too."""
    budget, now = session.budget, session.epsilon_spent
    but = f", but for a probability of {budget.delta:g}" if budget.delta else ""
    several = session.rows_per_person > 1
    unit = f"up to {session.rows_per_person:,} rows of one person by as many others" if several else "any one row"
    by, yours = ("", "them") if several else (" of the table by any other", "it")
    said = [
        f"One budget for everything, for ever: {budget}. Replace {unit}{by}, and no outcome "
        f"becomes more than {_times(budget.epsilon)} times as likely{but}. So far it is {_times(now)} times.",
        f"Somebody who knows all rows but yours, and wavers between two values for {yours}, guesses right with a "
        f"probability of at most {percent(_guess(now, budget.delta))} from what was released so far, and at most "
        f"{percent(_guess(budget.epsilon, budget.delta))} once all is spent; {percent(0.5)} is a coin.",
        f"Error bars hold with {100 * session.confidence:.10g} % confidence: each by itself, the band of a cumulative "
        "curve for the whole curve. They cover the noise that was added, not how the table was collected.",
        "The noise is exact, drawn from the operating system, and its size depends on public facts alone.",
        f"The number of rows, {session.rows:,}, is public. "
        + (
            "At most so many rows of a person were counted, by the column that the owner says tells people apart."
            if several
            else "The privacy of one row is protected; somebody with several rows is protected less."
        ),
        "Not promised: anything about the owner of the data, who has them; or about what was published elsewhere.",
    ]
    return listed(said)


def _times(epsilon: float) -> str:
    return f"e^{epsilon:.3g}" if epsilon > 20 else f"{math.exp(epsilon):.3g}"


def _guess(epsilon: float, delta: float) -> float:
    """The most that a test between two neighbours can be right with, from even odds.

    (e^epsilon + delta) / (1 + e^epsilon): Kairouz, Oh & Viswanath 2015, from the region of errors of any test.
    """
    if epsilon == 0:
        return 0.5
    return min(1.0, (1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon)))


def _line(step: Step, session: Session) -> list[str]:
    value, error = single(step, session) or (0.0, None)
    bar = "no guarantee" if error is None else number(error)
    return [str(step.receipt.entry), step.question, number(value), bar, f"{float(step.cost):.4g}"]


def _cut(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int]) -> str:
    note = f" (the first {MOST_LINES:,} of {len(rows):,})" if len(rows) > MOST_LINES else ""
    return grid(caption + note, head, rows[:MOST_LINES], right=right)
