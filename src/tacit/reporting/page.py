"""The pieces of a page: escaped text, tables, pictures, and one style for light, dark and paper. For the report.

No script, no font, no address: the page's own policy forbids all of them, so that a label could not smuggle one in.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

from tacit.show.chart.paint import FONT, ROLES
from tacit.show.chart.text import clean

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src 'none'; base-uri 'none'; form-action 'none'"


def escaped(words: object) -> str:
    """Text for a page: nothing in it is markup, and it disturbs no neighbour."""
    return html.escape(clean(str(words)))


def number(value: float) -> str:
    """A figure as people read it: whole, or with as many digits as it takes to see it.

    >>> number(12345.0), number(0.5), number(0.000012345)
    ('12,345', '0.5', '1.23e-05')
    """
    return f"{value:,.0f}" if abs(value) >= 100 or float(value).is_integer() else f"{value:.3g}"


def percent(share: float) -> str:
    """
    >>> percent(0.5), percent(0.00012)
    ('50 %', '0.012 %')
    """
    return f"{100 * share:.3g} %"


def paragraph(words: str) -> str:
    return f"<p>{escaped(words)}</p>"


def listed(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{escaped(item)}</li>' for item in items)}</ul>"


def code(lines: str) -> str:
    return f'<pre tabindex="0"><code>{html.escape(lines)}</code></pre>'


def cards(facts: Sequence[tuple[str, str]]) -> str:
    """A few figures that stand out."""
    each = "".join(f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}</dd></div>" for name, value in facts)
    return f'<dl class="cards">{each}</dl>'


def grid(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> str:
    """A table of text; `right` are the columns that hold numbers. Wide ones scroll by themselves."""
    if not rows:
        return ""
    heads = "".join(f'<th scope="col"{_side(i, right)}>{escaped(name)}</th>' for i, name in enumerate(head))
    body = "".join(
        "<tr>" + "".join(f"<td{_side(i, right)}>{escaped(cell)}</td>" for i, cell in enumerate(row)) + "</tr>"
        for row in rows
    )
    return (
        f'<div class="wide" role="region" aria-label="{escaped(caption)}" tabindex="0"><table>'
        f"<caption>{escaped(caption)}</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def figure(svg: str, caption: str = "") -> str:
    said = f"<figcaption>{escaped(caption)}</figcaption>" if caption else ""
    return f"<figure>{svg}{said}</figure>"


def folded(title: str, body: str) -> str:
    """Shown when asked for."""
    return f"<details><summary>{escaped(title)}</summary>{body}</details>" if body else ""


def document(title: str, lead: str, sections: Sequence[tuple[str, str]]) -> str:
    """The whole page: a heading, what it is about, a table of contents, and the sections."""
    parts = [(heading, _anchor(heading, i), body) for i, (heading, body) in enumerate(sections)]
    links = "".join(f'<li><a href="#{anchor}">{escaped(heading)}</a></li>' for heading, anchor, _ in parts)
    body = "".join(
        f'<section aria-labelledby="{anchor}"><h2 id="{anchor}">{escaped(heading)}</h2>{inside}</section>'
        for heading, anchor, inside in parts
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f"<title>{escaped(title)}</title>\n<style>{_style()}</style>\n</head>\n<body>\n"
        f'<a class="skip" href="#main">Skip to the contents</a>\n<header><h1>{escaped(title)}</h1>{lead}</header>\n'
        f'<nav aria-label="Contents"><ul>{links}</ul></nav>\n<main id="main">{body}</main>\n'
        "<footer><p>Written by Tacit. Everything here was released under the budget above; no private row was looked "
        "at to write it.</p></footer>\n</body>\n</html>\n"
    )


def _side(column: int, right: Sequence[int]) -> str:
    return ' class="number"' if column in right else ""


def _anchor(heading: str, place: int) -> str:
    return f"s{place}-{re.sub('[^a-z]+', '-', heading.lower()).strip('-')}"


def _style() -> str:
    def colours(which: int) -> str:
        return (
            ":root{"
            + "".join(f"--{role}:{ROLES[role][which]};" for role in ("paper", "ink", "soft", "grid", "0"))
            + "}"
        )

    return (
        f"{colours(0)}@media (prefers-color-scheme:dark){{{colours(1)}}}"
        f"*{{box-sizing:border-box}}body{{margin:0 auto;padding:2rem 1.2rem 4rem;max-width:56rem;font:16px/1.55 {FONT};"
        "color:var(--ink);background:var(--paper)}h1{font-size:2rem;line-height:1.2;margin:0 0 .4rem}"
        "h2{font-size:1.35rem;margin:3rem 0 .6rem;padding-top:.8rem;border-top:1px solid var(--grid)}"
        "h3{font-size:1.05rem;margin:1.8rem 0 .4rem}p{margin:.5rem 0;max-width:44rem}a{color:var(--0)}"
        ":focus-visible{outline:2px solid var(--0);outline-offset:2px}"
        ".skip{position:absolute;left:-999px}.skip:focus{left:1rem;top:1rem;background:var(--paper);padding:.4rem}"
        "nav ul{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;padding:0;margin:1.2rem 0 0}"
        ".cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(7.5rem,1fr));gap:.7rem;margin:1.4rem 0}"
        ".cards div{border:1px solid var(--grid);border-radius:8px;padding:.7rem .9rem}"
        "dt{color:var(--soft);font-size:.85rem}dd{margin:0;font-size:1.25rem;font-weight:600}"
        "figure{margin:1rem 0;overflow-x:auto}figure svg{display:block;max-width:100%;min-width:34rem;height:auto;"
        "border:1px solid var(--grid);border-radius:8px}figcaption,footer,caption{color:var(--soft);font-size:.88rem}"
        ".wide{overflow-x:auto;margin:1rem 0}table{border-collapse:collapse;font-size:.92rem;min-width:50%}"
        "caption{text-align:left;padding-bottom:.3rem}th,td{text-align:left;padding:.28rem .8rem .28rem 0;"
        "border-bottom:1px solid var(--grid);vertical-align:top;overflow-wrap:break-word;max-width:30rem}"
        "th{white-space:nowrap}"
        ".number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
        "pre{overflow-x:auto;border:1px solid var(--grid);border-radius:8px;padding:.8rem;font-size:.88rem}"
        "summary{cursor:pointer;color:var(--0)}details{margin:.6rem 0}footer{margin-top:3rem}"
        "@media print{nav,.skip{display:none}body{max-width:none;padding:0;font-size:11pt}"
        "figure,tr{break-inside:avoid}h2,h3{break-after:avoid}figure,.wide{overflow:visible}figure svg{min-width:0}}"
    )
