"""What a user gets back: a value with its error bar, where it came from, what it cost, and a receipt."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any, Literal

from tacit.model.budget import Loss, percent_of
from tacit.model.facts import EXACT, Bar, Facts, Receipt, Source, share_of
from tacit.show.frames import Frame, FrameColumn, Framed

Says = Literal["sharp", "rough", "nothing"]
Limits = tuple[float, float]  # the least and the most that a value can be at all
ANY: Limits = (-inf, inf)
SHARP = 0.1  # of a value, and of what it can be: a bar up to this is small beside it
_ALL = 0.99  # of what a value can be: an interval that leaves so much says nothing


class Answered(Framed):
    """What every kind of answer has: an error bar, and the facts about it under names of their own."""

    __slots__ = ()
    question: str
    facts: Facts

    @property
    def says(self) -> Says:
        """Whether the answer says anything: "sharp", "rough" or "nothing". From public facts, like the bar."""
        raise NotImplementedError

    def _values(self) -> dict[str, Any]:
        """The part of `to_dict` that each kind has of its own."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The answer as a dict for JSON."""
        return {"question": self.question, **self._values(), **self.facts.to_dict()}

    def _unpromised(self) -> str:
        """What is said in the place of the confidence where no bar holds for all of the answer."""
        return "nothing is promised"

    def _page(self) -> dict[str, Any]:
        """What a notebook shows: see `show.pages.notebook`."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        from tacit.show.pages import notebook

        return notebook(**self._page(), grey=self.says == "nothing")

    def plot(self, **options: Any) -> Any:
        """The answer with its error bars, drawn by matplotlib, or by Altair where that is not there.

        Gives matplotlib's axes (`ax=` draws into yours) or Altair's chart. `chart` draws one that needs neither.
        """
        from tacit.show.plot import plot

        return plot(self.frame(), self.question, **options)

    @property
    def error(self) -> float | None:
        """The half width of the bar that is shown: the narrowest that is proved; None where none is."""
        return self.facts.width

    @property
    def bars(self) -> tuple[Bar, ...]:
        """Every bar that is proved, the one that is shown first."""
        return self.facts.bars

    @property
    def confidence(self) -> float:
        """The confidence of the error bar."""
        return self.bars[0].confidence if self.bars else self.facts.confidence

    @property
    def source(self) -> Source:
        """Where the answer comes from: see `Facts`."""
        return self.facts.source

    @property
    def cost(self) -> Loss:
        """What the answer cost now."""
        return self.facts.cost

    @property
    def receipt(self) -> Receipt | None:
        """Where the answer stands in the ledger."""
        return self.facts.receipt

    @property
    def note(self) -> str:
        """What else has to be said about the answer."""
        return self.facts.note


@dataclass(frozen=True, slots=True)
class Answer(Answered):
    """One answer. With probability at least `confidence`, `value` is within `error` of the truth.

    `bars` has every error bar that is proved, and says what each is about: this noise, this answer, or a share of many
    questions like it, of which this one was drawn. `error` is the width of the first, which is the narrowest. See
    `Facts` and docs/understand/guarantees.md. The truth is that of the declared bins: where their middles stand for
    what lies in them, a mean or a sum of the values themselves may be `beyond` that by so much more.
    """

    question: str
    value: float
    facts: Facts
    limits: Limits = ANY
    beyond: float = 0.0

    @property
    def interval(self) -> tuple[float, float] | None:
        """Where the truth lies, at the stated confidence, cut to the limits; None without a promise or a value."""
        error = self.error
        return None if error is None or self.value != self.value else within(self.value, error, self.limits)

    @property
    def says(self) -> Says:
        """Whether the answer says anything: "sharp", "rough" or "nothing" (see `says`)."""
        return says(self.value, self.error, self.limits, self.beyond)

    def _values(self) -> dict[str, Any]:
        error = self.facts.width
        value = None if self.value != self.value else self.value  # there is none where something is divided by 0
        interval = None if (found := self.interval) is None else list(found)
        word = says(self.value, error, self.limits, self.beyond)
        beyond = {"beyond": self.beyond} if self.beyond else {}
        told = {"value": value, "error": error, "interval": interval, "limits": ends(self.limits), "says": word}
        return told | beyond

    def frame(self) -> Frame:
        """One row: the question, its value and error, and what else the answer says of itself."""
        return Frame((*one_row(question=self.question, value=self.value, error=self.error), *fact_columns(self)))

    def __float__(self) -> float:
        return float(self.value)

    def __str__(self) -> str:
        return f"{number(self.value)} {bar_words(self)}"

    def _page(self) -> dict[str, Any]:
        said = f"({sure_words(self)} · {source_words(self)} · {cost_words(self.facts)})"
        said += f"{note_words(self)}{says_words(self)}"
        bar = "" if self.value != self.value else _plus_minus(self.error)
        return {"question": self.question, "value": number(self.value), "bar": bar, "small": said}


@dataclass(frozen=True)
class QuantileAnswer(Answered):
    """The bin that holds a quantile. With probability `confidence` the true one starts no earlier than `low` and ends
    no later than `high`. Its `bars` are those of the ranks that it was read off, in rows."""

    question: str
    share: float
    value: str
    low: str
    high: str
    facts: Facts
    limits: tuple[str, str] = ("", "")  # the first and the last bin

    @property
    def error(self) -> None:
        """None: its interval is lopsided."""

    @property
    def says(self) -> Says:
        """What the bar leaves open: "sharp" where only one bin can hold the quantile, "nothing" where every bin can."""
        if self.low == self.high:
            return "sharp"
        return "nothing" if (self.low, self.high) == self.limits else "rough"

    def _values(self) -> dict[str, Any]:
        where = {"interval": [self.low, self.high], "limits": list(self.limits)}
        return {"share": self.share, "value": self.value, **where, "says": self.says}

    def frame(self) -> Frame:
        """One row: the question, the bin that holds the quantile, and the first and last that could."""
        said = one_row(question=self.question, share=self.share, value=self.value, low=self.low, high=self.high)
        return Frame((*said, *fact_columns(self)))

    def __str__(self) -> str:
        sure, exact = sure_words(self), bool(self.bars) and self.bars[0].about == EXACT
        bins = sure if exact else f"{self.low} to {self.high} at {sure}"
        said = f"{bins}, {source_words(self)}, {cost_words(self.facts)}"
        return f"{self.value} ({said}){note_words(self)}{says_words(self)}"

    def _page(self) -> dict[str, Any]:
        return {"question": self.question, "value": str(self)}


def number(value: float, decimals_from: float = 1) -> str:
    """A value as text: whole, with two decimals or, below a size, with four digits: its error may be small."""
    if value != value:
        return "no value"
    if float(value).is_integer():
        return f"{value:,.0f}"
    return f"{value:,.2f}" if abs(value) >= decimals_from else f"{value:.4g}"


def says(value: float, error: float | None, limits: Limits, beyond: float = 0.0) -> Says:
    """What a value with its bar says.

    "nothing" without a bar, or where the interval leaves all that the value could be but a hundredth; "sharp" where the
    bar, and what it leaves out, are at most a tenth of the value, and of the range that it could be in; else "rough".
    """
    if error is None:
        return "nothing"
    (low, high), span = within(value, error, limits), limits[1] - limits[0]
    if error and high - low >= _ALL * span:
        return "nothing"
    return "sharp" if error + beyond <= SHARP * min(abs(value), span) else "rough"


def within(value: float, error: float, limits: Limits) -> tuple[float, float]:
    """The part of the interval around a value in which it can be at all."""
    least, most = limits
    return min(max(value - error, least), most), max(min(value + error, most), least)


def ends(limits: Limits) -> list[float | None]:
    """Limits for JSON, which has no infinity: None where there is no end."""
    return [None if abs(end) == inf else end for end in limits]


def bar_words(shown: Answered) -> str:
    """The error bar that is shown and its circumstances in words."""
    # What has no value has no width either: where it is exact, that says enough.
    missing = isinstance(shown, Answer) and shown.value != shown.value
    start = "" if missing else f"{_plus_minus(shown.error)} ".lstrip()
    return f"{start}{circumstances(shown)}"


def circumstances(shown: Answered) -> str:
    """How sure an answer is, where it comes from, what it cost, and its notes, without the width of its bar."""
    said = f"({sure_words(shown)}, {source_words(shown)}, {cost_words(shown.facts)})"
    return f"{said}{note_words(shown)}{says_words(shown)}"


def bar_line(bar: Bar) -> str:
    """A bar by itself, and what it is about."""
    return f"{_plus_minus(bar.width)} ({_confident(bar)})"


def _plus_minus(error: float | None) -> str:
    return "" if error is None else f"± {number(error)}"


def sure_words(shown: Answered) -> str:
    """The confidence of the bar that is shown, and what it is about."""
    return _confident(shown.bars[0]) if shown.bars else shown._unpromised()


def percent(confidence: float) -> str:
    """A confidence as text: 0.999 is not 100%."""
    return f"{100 * confidence:.10g}%"


def _confident(bar: Bar) -> str:
    sure = percent(bar.confidence)
    # A share of many questions is its own confidence: it is not said twice.
    twice = any(one == share_of(bar.confidence, one.questions) for one in bar.about.things)
    return str(bar.about) if bar.about == EXACT or twice else f"{sure}, for {bar.about}"


def source_words(shown: Answered) -> str:
    """Where an answer comes from, in words that say it without the theory."""
    return "worked out" if shown.source == "hypothesis" else shown.source


def says_words(shown: Answered) -> str:
    return " · says nothing" if shown.says == "nothing" else ""


def note_words(shown: Answered) -> str:
    """What else has to be said, behind the bar."""
    return f" · {shown.note}" if shown.note else ""


def cost_words(facts: Facts) -> str:
    """What an answer cost: in per cent of the budget, where that is known."""
    if not facts.cost.atoms:
        return "free"
    return f"cost {facts.cost}" if facts.total is None else f"{percent_of(facts.cost, facts.total)} of the budget"


def one_row(**cells: float | str | None) -> list[FrameColumn]:
    """A column of one value for each name: text, or a number."""
    return [FrameColumn(name, "text" if isinstance(cell, str) else "real", [cell]) for name, cell in cells.items()]


def fact_columns(shown: Answered) -> list[FrameColumn]:
    """What every kind of answer says of itself, as columns of one row; the cost is in the budget's own measure."""
    entry, seal = (None, None) if shown.receipt is None else (shown.receipt.entry, shown.receipt.seal)
    return [
        *one_row(confidence=shown.confidence, source=shown.source, cost=float(shown.cost)),
        FrameColumn("entry", "whole", [entry]),
        FrameColumn("seal", "text", [seal]),
        FrameColumn("note", "text", [shown.note]),
    ]
