"""The mechanisms: one row each. Opening, configuration, planning, publishing and verifying read this table.

A row names its functions by their place, and what they need is imported when they are called: a session loads the one
mechanism that it has, and a configuration none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from tacit.errors import ConfigError
from tacit.model.budget import Budget, Loss, Measure
from tacit.model.domain import Domain
from tacit.release.settings import (
    Common,
    DirectSettings,
    HistogramSettings,
    IterativeSettings,
    MedianSettings,
    Settings,
    checked,
    names_of,
)

if TYPE_CHECKING:
    from tacit.model.status import Expected
    from tacit.release import forecast
    from tacit.release.estimate import Answerer
    from tacit.release.public import Public
    from tacit.trusted.curator import Curator

StepProgress = Callable[[int, int], None]
# From this share on a budget is counted in rho. In gdp it is 8 to 18 % larger, and a gate costs pi/2 times as much.
MOST_GATED = 1 / 8


def _late(module: str, name: str) -> Callable[..., Any]:
    """A function of `tacit.release` whose module is imported when it is called."""
    return lambda *given, **named: getattr(import_module(f"tacit.release.{module}"), name)(*given, **named)


def _unsplit(plan: Mapping[str, Any]) -> dict[str, Any]:
    """A plan for an owner who names a split, and so divides the budget: nothing else of it is decided there."""
    return {name: value for name, value in plan.items() if name != "certify"}


@dataclass(frozen=True)
class Planned:
    """How a mechanism is planned for: what to expect of it, and the words for that."""

    words: str
    promise: str  # what its promised error rests on
    why: str  # it is chosen
    outlook: Callable[[forecast.Sizes], forecast.Look | str]  # or why there is none for these sizes
    fresh: bool = False  # noise for every question, and no release
    fitted: bool = False  # to runs: its figures are no law, and must be better by more than they can be off by


@dataclass(frozen=True)
class Mechanism:
    """A way to spend a budget. `build` depends on what is given to it alone: what is published is read with the same.

    learns: its free answers are kept with their error bars, so a ledger keeps the confidence of these too.
    votes: what it knows are databases that vote, which `session.votes` shows.
    everything: what its first purchase is called, where that answers all questions.
    planned: None where `tacit.plan` says nothing about it.
    base: what is bought before the first question, in words and figures; None where every question is bought by itself.
    check: refuses, before anything is made, a domain or a machine that the mechanism is not for.
    usual: the settings of a new session that names some of them.
    completed: those of a new session that is planned, of the plan's and of those that are named.
    """

    name: str
    settings: Any  # the struct of its settings
    build: Callable[[Public, Curator | None, Any, float, StepProgress | None], Answerer]
    learns: bool = False
    votes: bool = False
    everything: str = ""
    planned: Planned | None = None
    base: Callable[[Public, Any, Loss, float], tuple[str, list[Expected]]] | None = None
    check: Callable[[Domain], None] = lambda _: None
    usual: Callable[[Mapping[str, Any], Domain], dict[str, Any]] = lambda named, _: dict(named)
    completed: Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Any]] = lambda plan, named: {**plan, **named}

    @property
    def words(self) -> str:
        """Its name as it is shown."""
        return self.name if self.planned is None else self.planned.words

    def set(self, given: Mapping[str, object], *, strict: bool = True) -> Settings:
        """Its settings; those of other mechanisms are ignored, so that one tacit.toml serves several."""
        found: Settings = checked(self.settings, given, strict=strict)
        return found


MECHANISMS = {
    row.name: row
    for row in (
        Mechanism(
            "direct",
            DirectSettings,
            lambda public, curator, settings, confidence, _: _late("direct", "Direct")(
                public, curator, questions=settings.questions, confidence=confidence
            ),
            planned=Planned(
                "direct",
                "by the law of the noise",
                "so few questions are best bought one by one",
                _late("forecast", "of_direct"),
                fresh=True,
            ),
        ),
        Mechanism(
            "histogram",
            HistogramSettings,
            lambda public, curator, _, confidence, __: _late("histogram", "NoisyHistogram")(
                public, curator, confidence=confidence
            ),
            everything="one noisy histogram",
            base=_late("offer", "of_histogram"),
            check=_late("histogram", "check"),
            planned=Planned(
                "histogram",
                "by the law of the noise, a union over the questions",
                "one noisy histogram of {cells:,} cells is best",
                _late("forecast", "of_histogram"),
            ),
        ),
        Mechanism(
            "iterative",
            IterativeSettings,
            _late("iterative", "iterative"),
            learns=True,
            base=_late("offer", "of_warm_start"),
            completed=lambda plan, named: {**(_unsplit(plan) if "warm" in named else plan), **named},
            planned=Planned(
                "iterative, warm start",
                "by a certificate, for all boxes at once; a forecast",
                "one noisy release of small tables answers most questions well",
                _late("forecast", "of_warm_start"),
                fitted=True,
            ),
        ),
        Mechanism(
            "median",
            MedianSettings,
            _late("median", "median"),
            learns=True,
            votes=True,
            base=_late("offer", "of_warm_start"),
            check=lambda _: _late("samplers", "check")(),
            usual=_late("median", "usual"),
        ),
    )
}
PLANNED = {row.name: row.planned for row in MECHANISMS.values() if row.planned is not None}


@dataclass(frozen=True)
class Choice:
    """The mechanism of a session with its settings, and why: from public parameters alone."""

    mechanism: str
    reason: str
    settings: Settings

    def measure(self, budget: Budget) -> Measure:
        """What a new ledger counts losses in: what gives less noise to the session that is planned."""
        return "rho" if budget.delta and self.settings.gated > MOST_GATED else budget.measure

    def build(
        self, public: Public, curator: Curator | None, confidence: float, progress: StepProgress | None = None
    ) -> Answerer:
        return MECHANISMS[self.mechanism].build(public, curator, self.settings, confidence, progress)

    def base(self, public: Public, loss: Loss, confidence: float) -> tuple[str, list[Expected]]:
        """What is bought for this loss before the first question, in words, and which errors to expect."""
        row = MECHANISMS[self.mechanism]
        return ("", []) if row.base is None else row.base(public, self.settings, loss, confidence)

    def to_dict(self) -> dict[str, Any]:
        """Its fields as a dict for JSON."""
        return {"mechanism": self.mechanism, "reason": self.reason, "settings": to_builtins(self.settings)}


def check_names(mechanism: str, given: Mapping[str, object]) -> None:
    """Refuse a mechanism or a setting that there is not, and values that no mechanism could have."""
    if mechanism != "auto" and mechanism not in MECHANISMS:
        raise ConfigError(f"mechanism is one of auto, {', '.join(MECHANISMS)}, not {mechanism!r}.")
    names = setting_names()
    for name in given:
        if name not in names:
            raise ConfigError(f"there is no setting {name}; there are {', '.join(names)}.")
    for kind in _kinds():
        checked(kind, given)


def setting_names() -> tuple[str, ...]:
    """Every setting that some mechanism has."""
    return tuple(dict.fromkeys(name for kind in _kinds() for name in names_of(kind)))


def _kinds() -> list[Any]:
    return [Common, *(row.settings for row in MECHANISMS.values())]
