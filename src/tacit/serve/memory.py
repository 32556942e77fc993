"""What need not be worked out again: so many things, of which the oldest goes. Pure; for what doors have read before.

Nothing here is told to anybody by itself: whoever sends the same text again is counted, noted and charged as before.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Generic, TypeVar

from tacit.model.table import Answers
from tacit.serve.question import Question

MOST = 2_000  # things of one memory
K = TypeVar("K")
V = TypeVar("V")


class Memory(Generic[K, V]):
    """The last so many things by their keys."""

    def __init__(self, most: int = MOST) -> None:
        self._kept: OrderedDict[K, V] = OrderedDict()
        self._most = most

    def get(self, key: K) -> V | None:
        return self._kept.get(key)

    def keep(self, key: K, value: V) -> None:
        """Keep something, and let the oldest go where there is too much."""
        self._kept[key] = value
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)


@dataclass(slots=True)
class Remembered:
    """A question that was read before; and the answer that was last sent, with its text."""

    question: Question
    answer: Answers | None = None
    text: bytes = b""
