"""The frame of every page: head, navigation, messages, and the files that a page loads. Called by the pages.

The pieces inside (escaped text, tables, folded parts) are those of the report.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from starlette.responses import Response

from tacit.chart import Gauge
from tacit.chart.paint import FONT, ROLES, Picture
from tacit.reporting.page import escaped, paragraph
from tacit.serve.keys import Key
from tacit.serve.refusal import Refusal

# Scripts and styles from this server alone, none inside a page. A form goes nowhere else, and nobody may frame it.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    # With no-referrer a browser would send its forms with "Origin: null", which tells them from no other site's.
    "referrer-policy": "same-origin",
}
ASSETS = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
_STYLE = re.compile(r"<style>.*?</style>\n?", re.DOTALL)
_SUGGESTIONS = {
    "budget_exhausted": "What was answered before stays free, and so does what follows from it.",
    "would_spend": "Ask somebody whose key may spend; once it is answered, you can read it here.",
    "quota": "What is known already stays free for you.",
    "rate_limited": "Wait a moment and try again.",
}
_TITLES = {
    "budget_exhausted": "The budget does not allow it",
    "would_spend": "Not known yet",
    "quota": "Your quota does not allow it",
    "invalid_query": "This cannot be asked",
    "unauthorized": "This key is not known",
    "internal": "Something went wrong",
}


@dataclass(frozen=True)
class Place:
    """Where a reader is: whose key, which data set (none before one is chosen), and which of its pages."""

    key: Key | None = None
    dataset: str = ""
    page: str = ""
    several: bool = False


def document(title: str, place: Place, body: str) -> str:
    """The whole page."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escaped(title)} · Tacit</title>\n"
        f'<link rel="icon" href="{address("icon.svg")}">\n<link rel="stylesheet" href="{address("page.css")}">\n'
        f'<script src="{address("page.js")}" defer></script>\n</head>\n<body>\n'
        f'<a class="skip" href="#main">Skip to the contents</a>\n{_header(place)}\n'
        f'<main id="main" tabindex="-1">\n{body}\n</main>\n'
        "<footer><p>Every answer here has noise of a known size, so that no single row can be told from it.</p>"
        "</footer>\n</body>\n</html>\n"
    )


def _header(place: Place) -> str:
    brand = '<a class="brand" href="/">Tacit</a>'
    if place.key is None:
        return f'<header class="top">{brand}</header>'
    links = ""
    if place.dataset:
        here = f"/data/{escaped(place.dataset)}"
        pages = [("Ask", ""), ("History", "/history"), ("Plan", "/plan")]
        pages += [("Audit log", "/audit")] if place.key.role == "owner" else []
        links = "".join(
            f'<li><a href="{here}{path}"{" aria-current=page" if path.strip("/") == place.page else ""}>{name}</a></li>'
            for name, path in pages
        )
        links = f'<nav aria-label="Pages"><ul>{links}</ul></nav>'
        other = ' <a class="other" href="/">change<span class="hidden"> the data set</span></a>'
        brand += f'<span class="dataset">{escaped(place.dataset)}</span>{other if place.several else ""}'
    who = f"<span>{escaped(place.key.name)} <small>({escaped(place.key.role)})</small></span>"
    leave = '<form method="post" action="/logout"><button class="quiet">Log out</button></form>'
    return f'<header class="top"><div class="title">{brand}</div>{links}<div class="who">{who}{leave}</div></header>'


def message(refusal: Refusal, *, heading: str = "h2", spending: bool = True) -> str:
    """A refusal, for people: what it is, its sentence, that nothing was spent, and its code."""
    title = _TITLES.get(refusal.code, "This did not work")
    spent = (
        "Nothing was spent." if refusal.nothing_spent else "Something may have been spent; what was answered is kept."
    )
    said = refusal.sentence + ("" if refusal.sentence.endswith((".", "?")) else ".")
    about = f"<p>{spent} {_SUGGESTIONS.get(refusal.code, '')}</p>" if spending else ""
    return (
        f'<div class="message" role="alert"><{heading} id="answer-title">{title}</{heading}>'
        f'<p class="said">{escaped(said)}</p>{about}'
        f'<p class="code-name">Code: <code>{escaped(refusal.code)}</code></p></div>'
    )


def picture(chart: Picture, name: str) -> str:
    """A picture that stands below its title on the page, and is called so by those who hear it."""
    svg = unstyled(chart.svg()).replace(">Chart</title>", f">{escaped(name)}</title>", 1)
    return f'<figure class="chart">{svg}</figure>'


def unstyled(body: str) -> str:
    """Pictures without their own styles, which the page's policy forbids and its style sheet has."""
    return _STYLE.sub("", body)


def page(title: str, place: Place, body: str, status: int = 200) -> Response:
    return Response(document(title, place, body), status, HEADERS, media_type="text/html")


def refused_page(refusal: Refusal, place: Place) -> Response:
    """A page with nothing but a refusal."""
    back = f'<p><a href="/data/{escaped(place.dataset)}">Back to asking</a></p>' if place.dataset else ""
    body = f"{message(refusal, heading='h1')}{back}" if back else message(refusal, heading="h1") + _HOME
    return page("Refused", place, body, refusal.status)


_HOME = '<p><a href="/">To the start</a></p>'


def heading(title: str, words: str = "") -> str:
    return f"<h1>{escaped(title)}</h1>" + (paragraph(words) if words else "")


def options(values: Sequence[tuple[str, str]], chosen: str) -> str:
    """The options of a select: (value, words)."""
    return "".join(
        f'<option value="{escaped(value)}"{" selected" if value == chosen else ""}>{escaped(words)}</option>'
        for value, words in values
    )


@cache
def asset(name: str) -> bytes:
    """A file that pages load. The style begins with the colours of the charts, and their rules."""
    text = files("tacit.serve.page").joinpath("static", name).read_text(encoding="utf-8")
    if name == "page.css":
        text = _colours() + _chart_rules() + text
    return text.encode()


@cache
def address(name: str) -> str:
    """Where a file is; a new version has a new address, so that browsers may keep it."""
    return f"/page/{name}?v={hashlib.sha256(asset(name)).hexdigest()[:12]}"


def _colours() -> str:
    def values(which: int) -> str:
        return ":root{" + "".join(f"--{role}:{both[which]};" for role, both in ROLES.items()) + "}"

    return f"{values(0)}\n@media (prefers-color-scheme:dark){{{values(1)}}}\nbody{{font-family:{FONT}}}\n"


def _chart_rules() -> str:
    found = _STYLE.search(Gauge("", [], 1).svg())
    assert found is not None
    return found[0].strip().removeprefix("<style>").removesuffix("</style>") + "\n"
