"""Everything that was bought of a table, in words, with what it cost. For `Session.history`."""

from __future__ import annotations

from itertools import islice

from tacit.model.description import describe
from tacit.model.past import History, Past
from tacit.model.workload import Question
from tacit.release.public import Public, Purchased

_WORDS = {"measured": "", "choice": "chosen: ", "compared": "compared: ", "discovered": "discovered: "}


def history(public: Public, after: int = 0, most: int | None = None) -> History:
    """What was bought, oldest first: all, or at most `most` after an entry. No more than that is read."""
    bought = public.purchases(after) if most is None else islice(public.purchases(after, most), most)
    return History(past(one, public) for one in bought)


def past(one: Purchased, public: Public) -> Past:
    """A purchase as a line of the history."""
    words = _words(one.kind, one.about, public)
    return Past(words, one.cost, one.receipt, one.kind, one.cost.atoms / (public.whole.atoms / 100))


def _words(kind: str, about: Question | str | None, public: Public) -> str:
    if about is None:
        return "a hard question found"
    return _WORDS.get(kind, "") + (about if isinstance(about, str) else describe(about, public.domain))
