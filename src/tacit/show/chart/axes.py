"""Labels along an axis: as many as fit without touching, cut, skipped or turned. For the chart package."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.show.chart.paint import text
from tacit.show.chart.scale import Scale
from tacit.show.chart.text import clean, clip, width

SLANT = -40  # degrees, of long names below upright bars
LONGEST = 150  # pixels of a slanted name
_STEPS: tuple[int, ...] = tuple(m * 10**e for e in range(12) for m in (1, 2, 5))
APART = 10  # pixels between two labels


@dataclass(frozen=True)
class Labels:
    """Places and words, the pixels they need beside or below the axis, and how far they reach past its two ends."""

    places: list[float]
    words: list[str]
    room: float
    turned: bool = False
    before: float = 0.0
    over: float = 0.0
    most: float = math.inf

    def beside(self, scale: Scale, x: float) -> str:
        return "".join(
            text(x, scale.place(v) + 4, word, anchor="end", most=self.most)
            for v, word in zip(self.places, self.words, strict=True)
        )

    def below(self, scale: Scale, y: float) -> str:
        if self.turned:
            return "".join(
                text(scale.place(v) + 4, y + 8, word, anchor="end", most=LONGEST, turn=SLANT)
                for v, word in zip(self.places, self.words, strict=True)
            )
        return "".join(
            text(scale.place(v), y + 10, word, anchor="middle", most=self.most)
            for v, word in zip(self.places, self.words, strict=True)
        )


def upright(scale: Scale, tall: float, most: float, lanes: list[str]) -> Labels:
    """Beside the y axis, and the names of the lanes below it."""
    if scale.axis.categories is not None:
        places, words = scale.ticks(0)
        every = _every(tall / len(words), 14)
        places, words = places[::every], words[::every]
    else:
        places, words = scale.ticks(max(4, min(8, int(tall / 36))))
    room = max([width(clip(word, most)) for word in words] + [width(clip(lane, most), 11) for lane in lanes] + [0.0])
    return Labels(places, words, min(room, most), most=most)


def across(scale: Scale, wide: float) -> Labels:
    """Below the x axis."""
    if scale.axis.categories is not None:
        return _categories(scale, wide)
    for most in range(max(2, min(10, int(wide / 50))), 0, -1):
        places, words = scale.ticks(most)
        at = [_share(scale, v) * wide for v in places]
        widths = [width(word) for word in words]
        gaps = [b - a - (u + v) / 2 for a, b, u, v in zip(at, at[1:], widths, widths[1:], strict=False)]
        if min(gaps, default=APART) >= APART:
            break
    if not places:
        return Labels([], [], 16)
    return Labels(places, words, 16, before=widths[0] / 2 - at[0], over=widths[-1] / 2 - (wide - at[-1]))


def _categories(scale: Scale, wide: float) -> Labels:
    places, words = scale.ticks(0)
    band = wide / len(words)
    widest = max(width(clean(word)) for word in words)
    if widest + APART <= band:
        return Labels(places, words, 16)
    numbered = all(
        clean(word)[:1].isdigit() or clean(word)[:1] in "<>≤≥−-[(" for word in words
    )  # in order: may be skipped
    if not numbered or widest > 90:
        every = _every(band, 15)
        places, words = places[::every], words[::every]
        long = [width(clip(word, LONGEST)) for word in words]
        across, down = math.cos(math.radians(SLANT)), math.sin(math.radians(-SLANT))
        before = max(one * across - (v + 0.5) * band for v, one in zip(places, long, strict=True))
        return Labels(places, words, 14 + max(long) * down, turned=True, before=before)
    every = _every(band, widest + APART)
    return Labels(places[::every], words[::every], 16)


def _every(band: float, needed: float) -> int:
    """Label each first, second, fifth, tenth, …: the first of these that leaves enough pixels."""
    return next(every for every in _STEPS if every * band >= needed)


def _share(scale: Scale, value: float) -> float:
    return (scale.place(value) - scale.start) / (scale.end - scale.start)
