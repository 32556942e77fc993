"""The page where questions are asked: the budget, a box for SQL, a form to click, and room for the answer. Pure.

It shows the declared domain, the budget and what the caller gives it: nothing else.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tacit.chart import Gauge
from tacit.model.attribute import Attribute
from tacit.model.domain import Domain
from tacit.model.values import Days, Listed
from tacit.reporting.page import escaped, folded, grid, percent
from tacit.serve.keys import Key
from tacit.serve.page.builder import OF_ONE, WHAT, Built, column, literal, span
from tacit.serve.page.layout import options, picture
from tacit.session import Session

MOST_TICKS = 60  # values with a box each
MOST_LISTED = 2_000  # values in a list to choose from
MOST_WORDS = 300  # values of one attribute that the script can complete
_HINTS = {
    "count": "one number",
    "table": "all combinations",
    "cdf": "up to each value",
    "quantile": "the median, say",
    "mean": "an average",
    "sum": "a total",
}
_NEARLY_NOTHING = 1e-6  # of the budget: nothing that anybody could buy
_RESERVED = '<p class="small">What is reserved counts as spent: it pays for finding the next hard question.</p>'
_FINISHED = (
    '<p class="banner" role="status"><strong>The budget is used up.</strong> Nothing new can be bought, by anybody. '
    "Everything that was answered stays free: ask it again, or download all of it.</p>"
)


@dataclass(frozen=True)
class Asked:
    """What the forms hold: the SQL, what was clicked, and whether the clicking form was used."""

    sql: str = ""
    built: Built = field(default_factory=Built)
    clicked: bool = False


def asking(dataset: str, domain: Domain, asked: Asked, key: Key, budget: str, panel: str) -> str:
    """The contents of the page."""
    here = f"/data/{escaped(dataset)}/ask#answer"
    spends = key.may_spend
    reader = "" if spends else '<p class="note">Your key reads what is known already. It never spends.</p>'
    empty = (
        '<h2 id="answer-title">Answer</h2><p class="empty">Ask something, and the answer stands here with its error '
        "bar. See the price first if you like: that asks nothing.</p>"
    )
    return (
        f'<h1 class="hidden">Ask about {escaped(dataset)}</h1>'
        f'<div class="columns"><div class="ask">{reader}{_sql_form(here, asked.sql, domain)}'
        f"{_click_form(here, asked, domain)}{_about(domain)}</div>"
        '<div class="told"><p id="status" class="hidden" role="status" aria-live="polite"></p>'
        f'<section id="answer" class="card" aria-labelledby="answer-title">{panel or empty}</section>'
        f'<section id="budget" class="card" aria-labelledby="budget-title">{budget}</section></div></div>'
    )


def budget_html(session: Session, gauge: Gauge, quota: Mapping[str, Any] | None, dataset: str) -> str:
    """The one budget: what is left, what was bought, and a quota if the key has one."""
    total, spent = session.total, session.spent
    share = min(1.0, spent.atoms / total.atoms)
    over = _FINISHED if total.atoms - spent.atoms < _NEARLY_NOTHING * total.atoms else ""
    words = (
        f"<strong>{percent(1 - share)}</strong> left of {escaped(session.budget)}. Everything released so far amounts "
        f"to epsilon = {session.epsilon_spent:.4g}."
    )
    own = _RESERVED if any(name == "reserved" for name, _ in gauge.parts) else ""
    if quota is not None:
        used, most = (float(next(iter(quota[name].values()))) for name in ("used", "of"))
        own += (
            f'<p class="small">Your quota is {percent(quota["share"])} of it, and {percent(min(1, used / most))} of '
            f"that is used: {escaped(quota['note'])}.</p>"
        )
    links = (
        f'<p class="links"><a href="/data/{escaped(dataset)}/published" download>Download all that was published</a> '
        f'<a href="/data/{escaped(dataset)}/report" download>Download a report</a></p>'
    )
    drawn = picture(gauge, "What the budget was spent on")
    return f'<h2 id="budget-title">Budget</h2>{over}<p>{words}</p>{drawn}{own}{links}'


def words_of(domain: Domain) -> dict[str, Any]:
    """What the script completes: names and values as SQL has them, from the declared domain alone."""
    columns = []
    for name, attribute in domain.items():
        most = min(attribute.size, MOST_WORDS)
        found: dict[str, Any] = {"name": column(name), "kind": attribute.kind, "takes": attribute.takes}
        found["values"] = [literal(attribute, place) for place in range(most)]
        if attribute.ordered:
            spans = [span(attribute, place) for place in range(min(attribute.bins, MOST_WORDS))]
            quote = "'" if isinstance(attribute.values, Days) else ""
            found["starts"], found["ends"] = ([f"{quote}{s[side]}{quote}" for s in spans] for side in (0, 1))
        columns.append(found)
    return {"columns": columns}


def _sql_form(here: str, sql: str, domain: Domain) -> str:
    first = column(domain.names[0])
    return (
        f'<form class="card" method="post" action="{here}" data-ask="sql" aria-labelledby="sql-title">'
        '<h2 id="sql-title"><label for="sql">Ask in SQL</label></h2><input type="hidden" name="way" value="sql">'
        '<div class="box"><textarea id="sql" name="sql" rows="4" required maxlength="10000" spellcheck="false" '
        f'autocapitalize="off" autocomplete="off" aria-describedby="sql-help sql-price" '
        f'placeholder="SELECT COUNT(*) FROM data WHERE {escaped(first)} = …">\n{html.escape(sql)}</textarea></div>'
        '<p id="sql-help" class="small">One table, <code>data</code>. Counts, fractions, sums, means, medians; WHERE, '
        'GROUP BY, ORDER BY.<span class="scripted"> ↓ opens suggestions, Ctrl+Enter asks.</span></p>'
        f'<p id="sql-price" class="price" data-price></p>{_buttons()}</form>'
    )


def _buttons() -> str:
    return (
        '<p class="buttons"><button name="do" value="ask">Ask</button> '
        '<button name="do" value="price" class="quiet">See the price first</button></p>'
    )


def _click_form(here: str, asked: Asked, domain: Domain) -> str:
    built = asked.built
    kinds = "".join(
        f'<label class="kind"><input type="radio" name="what" value="{what}"{" checked" if what == built.what else ""}>'
        f"<span>{words}<small>{_HINTS[what]}</small></span></label>"
        for what, words in WHAT.items()
    )
    ordered = [
        (str(i), name) for i, name in enumerate(domain) if domain[name].ordered or domain[name].kind == "boolean"
    ]
    of = str(domain.names.index(built.of)) if built.of else ""
    ticks = "".join(
        f'<label class="tick"><input type="checkbox" name="by" value="{i}"{" checked" if name in built.by else ""}>'
        f"<span>{escaped(name)}</span></label>"
        for i, name in enumerate(domain)
    )
    conditions = "".join(_conditions(i, name, domain[name], built) for i, name in enumerate(domain))
    one = " ".join(f"for-{what}" for what in OF_ONE)
    return (
        f'<details class="card" id="click"{"" if asked.sql and not asked.clicked else " open"}>'
        "<summary><h2>Or put a question together</h2></summary>"
        f'<form method="post" action="{here}" data-ask="click"><input type="hidden" name="way" value="click">'
        f'<fieldset class="kinds"><legend>What do you want to know?</legend>{kinds}</fieldset>'
        f'<fieldset class="for for-table"><legend>For every combination of</legend>{ticks}</fieldset>'
        f'<p class="for {one}"><label for="of">Of which attribute</label> '
        f'<select id="of" name="of">{options([("", "choose"), *ordered], of)}</select></p>'
        '<p class="for for-quantile"><label for="q">Which quantile (0.5 is the median)</label> '
        f'<input id="q" name="q" inputmode="decimal" size="6" value="{escaped(built.q)}"></p>'
        f"<fieldset><legend>Among the rows where</legend>"
        f"{conditions}</fieldset>"
        '<p class="price" data-price></p>'
        '<p class="stands" data-stands hidden>It stands for <code class="sql"></code></p>'
        f"{_buttons()}</form></details>"
    )


def _conditions(place: int, name: str, attribute: Attribute, built: Built) -> str:
    chosen, (low, high) = built.among.get(name, frozenset()), built.ends.get(name, ("", ""))
    said = " or ".join(
        [f"{low or 'the least'} to {high or 'the most'}"] * bool(low or high) + [f"{len(chosen)} chosen"] * bool(chosen)
    )
    if attribute.ordered:
        extras = range(attribute.bins, attribute.size)
        inside = _ends(place, name, attribute, low, high) + _ticks(place, attribute, extras, chosen)
    elif attribute.size <= MOST_TICKS:
        inside = _ticks(place, attribute, range(attribute.size), chosen)
    elif attribute.size <= MOST_LISTED:
        listed = "".join(
            f'<option value="{i}"{" selected" if i in chosen else ""}>{escaped(attribute.label(i))}</option>'
            for i in range(attribute.size)
        )
        inside = f'<select multiple size="10" name="in.{place}" aria-label="{escaped(name)}: any of">{listed}</select>'
    else:
        inside = f'<p class="small">{attribute.size:,} values: name them in SQL.</p>'
    return (
        f'<details class="condition"{" open" if said else ""}><summary>{escaped(name)} '
        f'<span class="chosen" data-chosen>{escaped(said) or "any"}</span></summary>'
        f'<fieldset><legend class="hidden">{escaped(name)}</legend>{inside}</fieldset></details>'
    )


def _ticks(place: int, attribute: Attribute, places: range, chosen: frozenset[int]) -> str:
    return "".join(
        f'<label class="tick"><input type="checkbox" name="in.{place}" value="{i}"{" checked" if i in chosen else ""}>'
        f"<span>{escaped(attribute.label(i))}</span></label>"
        for i in places
    )


def _ends(place: int, name: str, attribute: Attribute, low: str, high: str) -> str:
    assert not isinstance(attribute.values, Listed)
    until = "to" if attribute.values.whole else "to below"
    fields = []
    for side, (key, word, now) in enumerate((("from", "from", low), ("to", until, high))):
        named = f'name="{key}.{place}" aria-label="{escaped(name)} {word}"'
        if attribute.bins <= MOST_TICKS * 4:
            spans = [span(attribute, i)[side] for i in range(attribute.bins)]
            any_end = ("", "the least" if side == 0 else "the most")
            fields.append(f"<select {named}>{options([any_end, *((end, end) for end in spans)], now)}</select>")
        else:
            kind = "date" if isinstance(attribute.values, Days) else "text"
            shown = span(attribute, 0 if side == 0 else attribute.bins - 1)[side]
            fields.append(
                f'<input {named} type="{kind}" size="10" value="{escaped(now)}" placeholder="{escaped(shown)}">'
            )
    return f'<p class="ends">from {fields[0]} {until} {fields[1]}</p>'


def _about(domain: Domain) -> str:
    rows = [[name, a.kind, f"{a.size:,}", " and ".join([a.takes, *a.extras])] for name, a in domain.items()]
    table = grid("The declared attributes", ["attribute", "kind", "values", "takes"], rows, right=[2])
    return f'<div class="card about">{folded("What can be asked about", table)}</div>'
