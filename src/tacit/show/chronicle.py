"""What a report shows of a session's past: sums over all of it, and the first lines of each list. For the report.

A ledger may have a million entries, and a page shows a thousand of them. So each entry is read once, in order, and of
most no question is made; whoever keeps a chronicle goes on from where it was.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from tacit.model.answer import Answer, bar_line, says_words
from tacit.model.budget import percent_of
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.status import Past
from tacit.model.table import CdfAnswer, Table
from tacit.model.workload import Marginal
from tacit.session import Session
from tacit.show.chart import Chart
from tacit.show.events import (
    EVENT_WIDTH,
    Event,
    SpendingTally,
    charged,
    of_record,
    pictures,
    single,
    table,
    timeline,
)
from tacit.show.pages import drawn, number
from tacit.store.chain import Line

MOST_REPORTED_PICTURES = 40
MOST_REPORTED_LINES = 500  # of the ledger, or of free answers
MOST_COUNT_BARS = 30  # single counts in the chart of counts
MOST_REPORTED_CELLS = 200  # of a table, in numbers
MOST_PLACES = 2**16  # entries on the line of what was spent: it has no room for more
SEAL = 16  # letters of a seal
Weigh = Callable[[Line, str, Domain], tuple[int, int]]  # of a line of `Session.records`, and its kind there
_SINGLE = ("query", "statistic", "told")  # lines of one value
_RELEASED = ("range", "table")  # what is exhibited


class Sheet(NamedTuple):
    """A table of text, in the order of the macro `grid`.

    By place, `right` are the columns that hold numbers and `grey` the rows that say nothing.
    """

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[int]
    grey: Container[int] = ()


@dataclass(frozen=True)
class Exhibit:
    """A release on the page: its picture with a caption, and the first of its `cells` in numbers.

    Without a picture `words` stands by itself, if there is something to say.
    """

    words: str
    picture: Markup | None = None
    numbers: Sheet | None = None
    cells: int = 0


@dataclass
class Exhibition:
    """The releases of one kind that are drawn, and how many are not."""

    shown: list[Exhibit] = field(default_factory=list)
    left_out: int = 0
    missed: int = 0  # of those that are left out, the ones that were not even read

    def add(self, event: Event, session: Session) -> None:
        drawn_ones = list(pictures(event, session))
        if not self._has_room(len(drawn_ones)):
            return
        self.shown += [_exhibit(one, event, session) for one in drawn_ones]
        answer = event.answer
        # A table of many attributes is drawn one attribute at a time; its own numbers follow.
        if isinstance(answer, Measured) and isinstance(answer.question, Marginal) and len(answer.question.names) > 2:
            self.shown.append(_in_numbers("", None, table(answer, session)))
        elif not drawn_ones:
            self.shown.append(Exhibit(f"{event.question} (entry {event.receipt.entry}) has no picture."))

    def name(self, entry: int) -> None:
        """Say of a release only that it is there."""
        if self._has_room(1):
            words = "is too large to be drawn here; `tacit report` draws it, of the published file too."
            self.shown.append(Exhibit(f"Entry {entry} {words}"))

    def _has_room(self, more: int) -> bool:
        """Whether so many more fit. Once one was left out, those after it are too."""
        fits = not self.shown or (not self.left_out and len(self.shown) + more <= MOST_REPORTED_PICTURES)
        self.left_out += not fits
        return fits

    def exhibits(self) -> list[Exhibit]:
        rest = self.left_out + self.missed
        more = [Exhibit(f"{rest:,} more in the ledger below, but not drawn.")] if rest else []
        return [*self.shown, *more]


class _Waiting(NamedTuple):
    """A line of which something is shown, and what: whether it is in lists, and whether it is exhibited."""

    line: Line
    kind: str  # of `BOUGHT`, or "told"
    listed: bool
    exhibited: bool
    too_large: bool


class Chronicle:
    """The past of one session, up to an entry. What it keeps does not grow with the ledger.

    weigh: how much work it is to read a line, and to draw it. `listing` of the first is done for the lists, and
        `drawing` of the second: what is more is not shown, and the page says so. By default all is.
    """

    def __init__(self, weigh: Weigh = lambda *_: (0, 0), listing: float = math.inf, drawing: float = math.inf) -> None:
        self._weigh, self._listing, self._drawing = weigh, listing, drawing
        self.entry = 0
        self.tally = SpendingTally()
        self.free = self._free_singles = self._singles = 0
        self.work = 0  # that `read` would do
        self._waiting: list[_Waiting] = []
        self._exhibited = Counter[str]()
        self._room = {
            "ledger": MOST_REPORTED_LINES,
            "singles": MOST_REPORTED_LINES,
            "free": MOST_REPORTED_LINES,
            "counts": MOST_COUNT_BARS,
        }
        self._ledger: list[tuple[int, list[str]]] = []
        self._single_rows: list[tuple[list[str], bool]] = []
        self._free_rows: list[tuple[list[str], bool]] = []
        self.first_counts: list[Answer] = []
        self.exhibitions = {kind: Exhibition() for kind in _RELEASED}
        self._places, self._spent = array("q"), array("q")
        self._lanes = array("q"), array("q")  # what was bought, and what was free

    def catch_up(self, session: Session, until: int) -> Chronicle:
        """The same up to an entry: `work` says what `read` then takes. What was read before is not read again."""
        for kind, line in session.records(self.entry, until):
            self._count(kind, line)
            self._choose(kind, line, session.domain)
        self.entry = max(self.entry, until)
        return self

    def read(self, session: Session) -> Chronicle:
        """Make what is shown of the lines that were found."""
        for line, kind, listed, exhibited, too_large in self._waiting:
            if too_large:
                self.exhibitions[kind].name(line.seq)
            if not listed and (too_large or not exhibited):
                continue
            event = of_record(line, session)
            if listed:
                self._list(event, kind, session)
            if exhibited and not too_large:
                self.exhibitions[kind].add(event, session)
        self._waiting, self.work = [], 0
        return self

    # -- one line ------------------------------------------------------------------------------------------------------

    def _count(self, kind: str, line: Line) -> None:
        bought = line.atoms > 0
        if bought:
            self.tally.add(charged(kind), line.atoms)
            self._singles += kind in _SINGLE
        else:
            self.free += 1
            self._free_singles += kind in _SINGLE
        self._places.append(line.seq)
        self._spent.append((self._spent[-1] if self._spent else 0) + line.atoms)
        self._lanes[not bought].append(line.seq)
        for kept in (self._places, self._spent, *self._lanes):
            if len(kept) > MOST_PLACES:
                del kept[-2::-2]  # every other one, and not the last

    def _choose(self, kind: str, line: Line, domain: Domain) -> None:
        """Whether something is shown of a line, while there is room for it."""
        bought, about = line.atoms > 0, charged(kind)
        listed = self._takes("ledger") if bought else kind in _SINGLE and self._takes("free")
        if bought and kind in _SINGLE:
            listed |= self._takes("singles") | (about == "count" and self._takes("counts"))
        exhibited = bought and about in self.exhibitions and self._exhibits(about)
        if not listed and not exhibited:
            return
        weight, picture = self._weigh(line, kind, domain)
        if listed and weight > self._listing:  # the lists end here
            self._room, listed = dict.fromkeys(self._room, 0), False
        self._listing -= weight * listed
        too_large = exhibited and picture > self._drawing
        draws = exhibited and not too_large
        self._drawing -= picture * draws
        self.work += weight * (listed or draws) + picture * draws
        self._waiting.append(_Waiting(line, about if bought else "told", listed, exhibited, too_large))

    def _exhibits(self, kind: str) -> bool:
        """Whether one more release of a kind may be shown, whatever was read of those before it."""
        self._exhibited[kind] += 1
        fits = self._exhibited[kind] <= MOST_REPORTED_PICTURES + 1
        self.exhibitions[kind].missed += not fits
        return fits

    def _takes(self, what: str) -> bool:
        """Whether a list has room for one more, which is then taken."""
        room = self._room[what]
        self._room[what] = max(0, room - 1)
        return room > 0

    def _list(self, event: Event, kind: str, session: Session) -> None:
        if kind != "told" and len(self._ledger) < MOST_REPORTED_LINES:
            self._ledger.append((event.receipt.entry, _of_ledger(event, session)))
        answer = single(event, session)
        if answer is None:
            return
        rows = self._free_rows if kind == "told" else self._single_rows
        if len(rows) < MOST_REPORTED_LINES:
            rows.append((_of_answer(event, answer, session), answer.says == "nothing"))
        if kind == "count" and len(self.first_counts) < MOST_COUNT_BARS:
            self.first_counts.append(answer)

    # -- what the page shows -------------------------------------------------------------------------------------------

    def told_free(self) -> Sheet:
        return _answers("Answers told for nothing", self._free_rows, self._free_singles, ["for"])

    def singles(self) -> Sheet:
        return _answers("All counts and statistics", self._single_rows, self._singles, ["for", "of the budget"])

    def ledger(self, gates: Sequence[Past], session: Session) -> Sheet:
        """Everything bought, with the gates that are open."""
        open_ones = [(gate.receipt.entry, _of_ledger(gate, session)) for gate in gates]
        rows = [row for _, row in sorted([*self._ledger, *open_ones], key=lambda one: one[0])]
        many = self.tally.number.total() + len(gates)
        return _cut("Everything bought", ["entry", "kind", "what", "of the budget", "seal"], rows, [0, 3], many)

    def timeline(self, gates: Sequence[Past], session: Session) -> Chart:
        """What was spent over time, with the gates that are open."""
        places, spent = (np.array(one, dtype=np.int64) for one in (self._places, self._spent))
        bought, free = (np.array(one, dtype=np.int64) for one in self._lanes)
        for gate in gates:
            at = int(np.searchsorted(places, gate.receipt.entry))
            before = int(spent[at - 1]) if at else 0
            spent[at:] += gate.cost.atoms
            places = np.insert(places, at, gate.receipt.entry)
            spent = np.insert(spent, at, before + gate.cost.atoms)
            bought = np.sort(np.append(bought, gate.receipt.entry))
        return timeline(places, spent, [("bought", bought), ("free", free)], session)

    def sums(self, gates: Sequence[Past]) -> SpendingTally:
        """What was paid for each kind, with the gates that are open."""
        found = SpendingTally(self.entry, self.tally.number.copy(), self.tally.atoms.copy())
        for gate in gates:
            found.add("gate", gate.cost.atoms)
        return found


def _of_ledger(one: Event | Past, session: Session) -> list[str]:
    at = one.receipt
    return [str(at.entry), one.kind, one.question, percent_of(one.cost, session.total), at.seal[:SEAL]]


def _of_answer(event: Event, answer: Answer, session: Session) -> list[str]:
    bar = number(answer.bars[0].width) if answer.bars else ""
    about = f"{answer.bars[0].about if answer.bars else 'nothing is promised'}{says_words(answer)}"
    row = [str(event.receipt.entry), event.question, number(answer.value), bar, about]
    return row if event.free else [*row, percent_of(event.cost, session.total)]


def _answers(caption: str, found: Sequence[tuple[list[str], bool]], many: int, last: Sequence[str]) -> Sheet:
    """Answers of one value each, and what they cost if any did."""
    head, right = ["entry", "question", "value", "±", *last], [0, 2, 3, 5]
    grey = {i for i, (_, nothing) in enumerate(found) if nothing}
    return _cut(caption, head, [row for row, _ in found], right, many)._replace(grey=grey)


def _exhibit(one: CdfAnswer | Table, event: Event, session: Session) -> Exhibit:
    each = "each count by itself" if isinstance(one, Table) else "all at once"
    cost = f"{percent_of(event.cost, session.total)} of the budget"
    caption = f"Entry {event.receipt.entry}: {each} {bar_line(one.bars[0])}; {cost}{says_words(one)}."
    return _in_numbers(caption, replace(one.chart(), width=EVENT_WIDTH, note=""), one)


def _in_numbers(words: str, chart: Chart | None, one: CdfAnswer | Table) -> Exhibit:
    if isinstance(one, Table):
        rows = [[*labels, number(value)] for labels, value in islice(one.rows(), MOST_REPORTED_CELLS)]
        sheet = Sheet(one.question, [*one.names, "rows"], rows, [len(one.names)])
    else:
        columns = zip(one.labels, one.values, *one.band, strict=True)
        rows = [[label, *map(number, figures)] for label, *figures in islice(columns, MOST_REPORTED_CELLS)]
        sheet = Sheet(one.question, [one.name, "rows up to its end", "at least", "at most"], rows, [1, 2, 3])
    return Exhibit(words, None if chart is None else drawn(chart), sheet, one.values.size)


def _cut(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int], many: int) -> Sheet:
    """The first rows, of so many."""
    shown = rows[:MOST_REPORTED_LINES]
    note = f" (the first {len(shown):,} of {many:,})" if many > len(shown) else ""
    return Sheet(caption + note, head, shown, right)
