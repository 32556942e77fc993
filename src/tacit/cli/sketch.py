"""Small pictures made of letters: error bars and curves. Called by `cli.show`; knows only numbers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

WIDTH, HEIGHT = 56, 10  # letters, of a curve
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a braille letter: four down, two across


def error_bar(value: float, error: float | None, most: float, width: int = 24) -> str:
    """A bar up to `value` on a scale from 0 to `most`, with the interval around its end.

    >>> error_bar(50, 20, 100, width=20)
    '━━━━━━├───┼───┤     '
    >>> error_bar(50, 1, 100, width=20)
    '━━━━━━━━━━┃         '
    >>> error_bar(50, None, 100, width=20)
    '━━━━━━━━━━          '
    """
    if not most > 0:
        return " " * width

    def place(number: float) -> int:
        return min(max(int(width * number / most), 0), width - 1)

    if error is None:
        return ("━" * round(width * min(max(value / most, 0), 1))).ljust(width)
    low, middle, high = place(value - error), place(value), place(value + error)
    if high - low < 2:
        return ("━" * middle + "┃").ljust(width)
    letters = list("━" * low + "─" * (high - low + 1) + " " * (width - high - 1))
    letters[low], letters[high], letters[middle] = "├", "┤", "┼"
    return "".join(letters)


def curve(
    x: Sequence[float], shares: Sequence[float], error: float, *, width: int = WIDTH, height: int = HEIGHT
) -> list[str]:
    """A curve of shares of the rows from 0 to 1, with its band dotted around it: lines of text, the top one first."""
    canvas = [[0] * width for _ in range(height)]
    across, down = 2 * width, 4 * height

    def dot(column: int, share: float) -> None:
        row = min(max(round((1 - min(max(share, 0.0), 1.0)) * (down - 1)), 0), down - 1)
        canvas[row // 4][column // 2] |= _DOTS[row % 4][column % 2]

    lowest, span = x[0], (x[-1] - x[0]) or 1.0
    before: float | None = None
    for column in range(across):
        share = _between(x, shares, lowest + span * column / (across - 1))
        steps = 1 if before is None else max(1, round(abs(share - before) * down))  # steep parts have no gaps
        for step in range(1, steps + 1):
            dot(column, share if before is None else before + (share - before) * step / steps)
        if column % 3 == 0 and error * down >= 2:  # a band thinner than the line is not drawn
            dot(column, share - error)
            dot(column, share + error)
        before = share
    words = {0: "100%", height // 2: " 50%", height - 1: "  0%"}
    return [f"{words.get(i, ''):>4} ┤" + "".join(chr(0x2800 + cell) for cell in line) for i, line in enumerate(canvas)]


def _between(x: Sequence[float], y: Sequence[float], at: float) -> float:
    for (left, right), (low, high) in zip(pairwise(x), pairwise(y), strict=True):
        if at <= right:
            return low + (high - low) * ((at - left) / (right - left) if right > left else 1.0)
    return y[-1]
