"""Words, colours, strokes and the frame of the SVG file. For the chart package, and `Picture` for everybody.

Every colour is written twice: as an attribute, for viewers without CSS variables, and as a class, which follows the
reader's light or dark setting. The paper is painted, because a notebook may be light on a dark desktop.
"""

from __future__ import annotations

import html
import math
import unicodedata
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

# These would reorder the words beside a label.
_STEERING = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def clean(words: str) -> str:
    """One line of text that any XML reader takes and that disturbs no neighbour; not yet escaped."""
    words = str(words)
    if not words.isascii() or not words.isprintable():
        words = "".join(letter if _allowed(letter) else "\ufffd" for letter in words if letter not in _STEERING)
    return " ".join(words.split())


def escape(words: str) -> str:
    return html.escape(clean(words))


def width(words: str, size: float = 12) -> float:
    """Pixels, on the large side: the letters of a wide font, since the reader's font is not known."""
    return size * sum(map(_em, words))


def clip(words: str, most: float, size: float = 12) -> str:
    """The beginning that fits, with an ellipsis if that is not all."""
    words = clean(words)
    if len(words) * size * 1.25 <= most or width(words, size) <= most:
        return words
    left = most - width("…", size)
    for place, letter in enumerate(words):
        left -= size * _em(letter)
        if left < 0:
            return words[:place].rstrip(" \u200d") + "…"
    return words


def wrap(words: str, most: float, size: float = 12, lines: int = 2) -> list[str]:
    """A text broken at spaces into a number of lines at most; the last one is cut."""
    found: list[str] = []
    rest = clean(words)
    while rest and len(found) < lines - 1 and width(rest, size) > most:
        line = ""
        for word in rest.split(" "):
            if line and width(f"{line} {word}", size) > most:
                break
            line = f"{line} {word}".lstrip()
        found.append(clip(line, most, size))
        rest = rest[len(line) :].lstrip()
    return [*found, clip(rest, most, size)] if rest else found


def number(value: float) -> str:
    """A single number: thousands separated, three digits and a unit from a million on, powers of ten at the extremes.

    >>> number(1234), number(2_500_000), number(-0.12345), number(3e-7)
    ('1,234', '2.5M', '−0.123', '3×10⁻⁷')
    """
    size = abs(value)
    if size == 0:
        return "0"
    if size < 1e-3 or size >= 1e15:
        return power(value)
    if size >= 999_500:  # rounds to a million in three digits
        unit, name = next((u, n) for u, n in _UNITS if size >= u * 0.9995)
        return sign(f"{float(f'{value / unit:.3g}'):g}{name}")
    if size >= 100 or float(value).is_integer():
        return sign(f"{value:,.0f}")
    return sign(f"{float(f'{value:.3g}'):g}")


def power(value: float) -> str:
    """A number as m×10ⁿ, or 10ⁿ alone."""
    digits, exponent = f"{value:.2e}".split("e")
    digits = digits.rstrip("0").rstrip(".")
    ten = "10" + str(int(exponent)).translate(_RAISED)
    return sign({"1": "", "-1": "-"}.get(digits, f"{digits}×") + ten)


def ladder(values: list[float], step: float, *, percent: bool = False) -> list[str]:
    """Labels of evenly spaced ticks: all in the same unit, with as many decimals as the step needs."""
    top = max((abs(v) for v in values), default=0.0)
    if percent:
        return [sign(f"{100 * v:,.{_decimals(100 * step)}f}%") for v in values]
    if top and (top >= 1e15 or top < 1e-3):
        return [power(v) if v else "0" for v in values]
    unit, name = next(((u, n) for u, n in _UNITS[:3] if top >= u), (1.0, ""))
    if _decimals(step / unit) > 2:
        unit, name = 1.0, ""
    return [sign(f"{v / unit:,.{_decimals(step / unit)}f}{name}") if v else "0" for v in values]


def sign(words: str) -> str:
    return words.replace("-", "−")


def _allowed(letter: str) -> bool:
    """Whether XML 1.0 takes it at all."""
    return letter in "\t\n\r" or " " <= letter <= "\ud7ff" or "\ue000" <= letter <= "\ufffd" or letter >= "\U00010000"


def _decimals(step: float) -> int:
    return max(0, -math.floor(math.log10(step) + 1e-9))


def _em(letter: str) -> float:
    if letter in " .,:;'|!iljIftr()[]/":
        return 0.42
    if letter in "mwMW@%…":
        return 0.99
    if letter < "\u0250":
        return 0.72 if letter.isupper() else 0.63
    if unicodedata.combining(letter) or letter in "\u200d\ufe0f":
        return 0.0
    return 1.25 if unicodedata.east_asian_width(letter) in "WF" else 0.75


# Each role in light and in dark. The series are Okabe & Ito's colours (2008), darkened or lightened for contrast.
COLOUR_ROLES = {
    "paper": ("#ffffff", "#0f141a"),
    "ink": ("#1f2328", "#e6edf3"),
    "soft": ("#57606a", "#9aa4af"),
    "grid": ("#e3e7eb", "#29313a"),
    "heat": ("#08519c", "#9ecbff"),
    "0": ("#0072b2", "#56a9e8"),
    "1": ("#d55e00", "#f2894a"),
    "2": ("#00886a", "#3cc7a0"),
    "3": ("#b4508f", "#e59bc6"),
    "4": ("#b58900", "#f0c54c"),
    "5": ("#4a9fd8", "#a5dcff"),
    "6": ("#6e7781", "#aab4bf"),
}
SERIES_COLOURS = 7
GREY = 6  # the place of what says nothing
_TEXT, SMALL = 12, 11  # sizes of letters
FONT = "system-ui,-apple-system,Segoe UI,Roboto,Helvetica,Arial,sans-serif"


@dataclass(frozen=True)
class Drawing:
    """A finished piece: its size in pixels, its SVG elements, and what it shows in words."""

    width: float
    height: float
    body: str
    words: str


class Picture:
    """What charts, grids and gauges have in common: one SVG text, for a notebook, a page or a file."""

    title: str

    def drawing(self) -> Drawing:
        """The pieces, to be put together with others."""
        raise NotImplementedError

    def svg(self, *, name: str = "", styled: bool = True) -> str:
        """The whole picture. The same data give the same text.

        name: what a picture without a title is called, for those who hear it.
        styled: with its own style sheet; a page that has `CSS` in its own needs none.
        """
        drawn = self.drawing()
        own = f"tc-{zlib.crc32((self.title + drawn.words + drawn.body).encode('utf-8', 'replace')):08x}"
        w, h = p(drawn.width), p(drawn.height)
        called = escape(self.title) or escape(name) or "Chart"
        style = f"<style>{CSS}</style>\n" if styled else ""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="tacit-chart" width="{w}" height="{h}" '
            f'viewBox="0 0 {w} {h}" role="img" aria-labelledby="{own}-t {own}-d" font-family="{FONT}" '
            f'font-size="{_TEXT}" direction="ltr">\n<title id="{own}-t">{called}</title>\n'
            f'<desc id="{own}-d">{escape(drawn.words)}</desc>\n{style}'
            f'<rect width="{w}" height="{h}" rx="6" {paint(fill="paper")}/>\n{drawn.body}\n</svg>\n'
        )

    def save(self, path: str | Path) -> Path:
        """Write the picture as a file, and say where it is."""
        place = Path(path)
        place.write_text(self.svg(), encoding="utf-8")
        return place

    def _repr_html_(self) -> str:
        return self.svg()


def _css() -> str:
    def values(which: int) -> str:
        return ".tacit-chart{" + "".join(f"--tc-{role}:{both[which]};" for role, both in COLOUR_ROLES.items()) + "}"

    rules = "".join(
        f".tacit-chart .tc-f-{role}{{fill:var(--tc-{role})}}.tacit-chart .tc-s-{role}{{stroke:var(--tc-{role})}}"
        for role in COLOUR_ROLES
    )
    return (
        f"{values(0)}\n@media (prefers-color-scheme: dark){{{values(1)}}}\n"
        f"@supports (color:var(--tc-ink)){{.tacit-chart{{max-width:100%;height:auto}}{rules}}}"
    )


CSS = _css()


def paint(*, fill: str = "", stroke: str = "", width: float = 1.0, dashed: bool = False, opacity: float = 1.0) -> str:
    """The attributes for an element filled or stroked with the colours of these roles."""
    classes = " ".join([f"tc-f-{fill}"] * bool(fill) + [f"tc-s-{stroke}"] * bool(stroke))
    parts = [f'class="{classes}" fill="{COLOUR_ROLES[fill][0] if fill else "none"}"']
    if stroke:
        parts.append(f'stroke="{COLOUR_ROLES[stroke][0]}" stroke-width="{p(width)}"')
    if dashed:
        parts.append('stroke-dasharray="5 4"')
    if opacity < 1:
        parts.append(f'opacity="{opacity:.2f}"')
    return " ".join(parts)


def p(value: float) -> str:
    """A coordinate, to a tenth of a pixel."""
    short = f"{value:.1f}".removesuffix(".0")
    return "0" if short == "-0" else short


def text(
    x: float,
    y: float,
    words: str,
    *,
    role: str = "soft",
    size: float = _TEXT,
    anchor: str = "start",
    most: float | None = None,
    bold: bool = False,
    turn: float = 0,
) -> str:
    """One line of words. What had to be cut is shown in full when pointed at."""
    full = clean(words)
    shown = full if most is None else clip(full, most, size)
    more = f"<title>{escape(full)}</title>" if shown != full else ""
    extra = "" if anchor == "start" else f' text-anchor="{anchor}"'
    extra += "" if size == _TEXT else f' font-size="{p(size)}"'
    extra += ' font-weight="600"' if bold else ""
    extra += f' transform="rotate({p(turn)} {p(x)} {p(y)})"' if turn else ""
    return f'<text x="{p(x)}" y="{p(y)}"{extra} {paint(fill=role)}>{escape(shown)}{more}</text>'


def box(x: float, y: float, wide: float, high: float) -> str:
    """The attributes of a rectangle, from its upper left corner."""
    return f'x="{p(x)}" y="{p(y)}" width="{p(wide)}" height="{p(high)}"'


def rectangles(boxes: Iterable[tuple[float, float, float, float]]) -> str:
    """The path around boxes, each from its upper left corner (x, y), with its width and height."""
    return "".join(f"M{p(x)} {p(y)}h{p(w)}v{p(h)}h{p(-w)}z" for x, y, w, h in boxes)
