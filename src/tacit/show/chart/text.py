"""Words in a picture: how wide, cut to fit, escaped; and numbers as people read them. For the chart package."""

from __future__ import annotations

import math
import unicodedata

# These would reorder the words beside a label.
_STEERING = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;"})
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def clean(words: str) -> str:
    """One line of text that any XML reader takes and that disturbs no neighbour; not yet escaped."""
    words = str(words)
    if not words.isascii() or not words.isprintable():
        words = "".join(letter if _allowed(letter) else "\ufffd" for letter in words if letter not in _STEERING)
    return " ".join(words.split())


def escape(words: str) -> str:
    return clean(words).translate(_ESCAPES)


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
    """Broken at spaces into at most so many lines; the last one is cut."""
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
    """As m×10ⁿ, or 10ⁿ alone."""
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
