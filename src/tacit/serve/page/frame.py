"""The frame of every page: the templates, where a reader is, and the files that a page loads. Called by the routes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment
from markupsafe import Markup
from starlette.responses import Response

from tacit.serve.keys import Key
from tacit.serve.page.form import KINDS, column, span
from tacit.serve.refusal import Refusal
from tacit.show.chart.paint import CSS, FONT, ROLES, Picture
from tacit.show.pages import drawn, environment

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


@dataclass(frozen=True)
class Place:
    """Where a reader is: whose key, which data set (none before one is chosen), and which of its pages."""

    key: Key | None = None
    dataset: str = ""
    page: str = ""
    several: bool = False

    @property
    def address(self) -> str:
        return f"/data/{self.dataset}"

    @property
    def pages(self) -> list[tuple[str, str]]:
        """The pages that this key may open, in the order of the navigation."""
        owner = self.key is not None and self.key.role == "owner"
        return [("Ask", ""), ("History", "history"), ("Plan", "plan"), *([("Audit log", "audit")] if owner else [])]


def page(template: str, place: Place, status: int = 200, **words: Any) -> Response:
    """The page of a template. `words` are what the template names."""
    text = _templates().get_template(template).render(place=place, **words)
    return Response(text, status, HEADERS, media_type="text/html")


def refused_page(refusal: Refusal, place: Place) -> Response:
    """A page with nothing but a refusal."""
    return page("refused.html", place, refusal.status, refusal=refusal)


def picture(chart: Picture, name: str) -> Markup:
    """A picture that stands below its title on the page, and is called so by those who hear it."""
    return Markup('<figure class="chart">{}</figure>').format(drawn(chart, name, styled=False))


@cache
def asset(name: str) -> bytes:
    """A file that pages load. The style begins with the colours of the charts, and their rules."""
    text = files("tacit.serve.page").joinpath("static", name).read_text(encoding="utf-8")
    if name == "page.css":
        text = f"{_colours()}{CSS}\n{text}"
    return text.encode()


@cache
def address(name: str) -> str:
    """Where a file is; a new version has a new address, so that browsers may keep it."""
    return f"/page/{name}?v={hashlib.sha256(asset(name)).hexdigest()[:12]}"


@cache
def _templates() -> Environment:
    made = environment("tacit.serve.page", styled=False)
    made.filters["picture"] = picture
    made.globals |= {"address": address, "column": column, "span": span, "kinds": KINDS}
    return made


def _colours() -> str:
    def values(which: int) -> str:
        return ":root{" + "".join(f"--{role}:{both[which]};" for role, both in ROLES.items()) + "}"

    return f"{values(0)}\n@media (prefers-color-scheme:dark){{{values(1)}}}\nbody{{font-family:{FONT}}}\n"
