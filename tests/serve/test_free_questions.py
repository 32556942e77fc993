"""A reader spends nothing whatever is asked, prices are what is charged, and what a failed batch bought has a payer."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from support import PATIENCE
from tacit.errors import InvalidQuery, TacitError, WouldSpend
from tacit.model.status import DryRun
from tacit.model.workload import Product
from tacit.release.evidence import Need, RangesOf
from tacit.release.parts import Parts
from tacit.serve import dataset, make_key
from tacit.serve.dataset import Dataset, ServerLock
from tacit.serve.keys import KeyRing
from tacit.serve.question import read
from tacit.serve.refusal import Refusal

ARRIVED = datetime(2031, 1, 1, tzinfo=UTC)  # of all requests, so that those which wait together share a commit
ROWS, MECHANISMS = 2000, ["direct", "iterative", "histogram"]
DOMAIN = tacit.Domain(
    {
        "age": tacit.integer(0, 59, width=10),
        "income": tacit.integer(0, 99, width=10, missing="unknown"),
        "pay": tacit.numeric([-20, 0, 5, 40]),
        "sex": tacit.category(["F", "M"]),
        "kids": tacit.category([0, 1, 2], other="more"),
        "smoker": tacit.boolean(),
        "day": tacit.date("2020-01-01", "2020-12-31", by="month"),
    }
)


@dataclass
class Kept:
    """A data set without HTTP around it, and its keys."""

    dataset: Dataset
    session: tacit.Session
    ring: KeyRing
    audit: Path

    def ask(self, who: str, *forms: Any) -> Any:
        """The answers, or the refusal."""
        key = next(key for key in self.ring.all() if key.name == who)
        found = self.dataset.ask(key, [read(form, DOMAIN) for form in forms], ARRIVED)
        return found if isinstance(found, list) else found.result(PATIENCE)

    def attempt(self, who: str, form: Any) -> Any:
        """The answer; None if it was refused in words."""
        try:
            return self.ask(who, form)[0]
        except (Refusal, TacitError):
            return None

    def price(self, form: Any) -> DryRun:
        return self.dataset.price(self.ring.all()[0], read(form, DOMAIN)).result(PATIENCE)

    @property
    def state(self) -> tuple[int, int]:
        return self.session.spent.atoms, self.session.entries


Keep = Callable[..., Kept]
COST = Parts._cost


@pytest.fixture
def keep(tmp_path: Path) -> Iterator[Keep]:
    running: list[Kept] = []

    def start(mechanism: str = "direct", **options: Any) -> Kept:
        rng = np.random.Generator(np.random.PCG64(1))
        rows = pd.DataFrame(
            {
                "age": rng.integers(0, 60, ROWS),
                "income": np.where(rng.random(ROWS) < 0.1, np.nan, rng.integers(0, 100, ROWS)),
                "pay": rng.uniform(-20, 40, ROWS),
                "sex": rng.choice(["F", "M"], ROWS),
                "kids": rng.choice([0, 1, 2, 7], ROWS),
                "smoker": rng.random(ROWS) < 0.3,
                "day": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, ROWS), unit="D"),
            }
        )
        ledger = tmp_path / "people.tacit"
        budget = options.pop("budget", tacit.Budget(epsilon=5, delta=1e-9))
        files = {"ledger": ledger, "anchor": tmp_path / "people.anchor"}
        session = tacit.open(
            start=True, data=rows, domain=DOMAIN, budget=budget, mechanism=mechanism, **files, **options
        )
        for name, role, quota in (("ana", "analyst", 1.0), ("bob", "analyst", 1.0), ("rea", "reader", None)):
            make_key(tmp_path / "tacit.keys", name, role, quota)
        make_key(tmp_path / "tacit.keys", "mia", "analyst", 0.15)
        ring = KeyRing(tmp_path / "tacit.keys")
        served = Dataset("people", session, ledger, ring, ServerLock(ledger))
        running.append(Kept(served, session, ring, tmp_path / "people.tacit.audit"))
        return running[-1]

    yield start
    for kept in running:
        kept.dataset.close()
        kept.ring.close()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_side_that_is_everything_is_no_side(keep: Keep, mechanism: str) -> None:
    kept = keep(mechanism)
    kept.ask("ana", {"range": {"age": [20, 39], "pay": [0, 5]}, "share": 0.1})
    before = kept.state
    open_side = {"range": {"age": [20, 39], "pay": [-20, 40]}, "share": 0.5}
    assert not kept.price(open_side).known
    with pytest.raises(Refusal, match="and this is not") as refused:
        kept.ask("rea", open_side)
    assert (refused.value.status, refused.value.code, kept.state) == (403, "would_spend", before)
    assert kept.ask("rea", {"range": {"age": [0, 49], "pay": [-20, 0]}})[0].cost.atoms == 0  # the pair is known
    paid = kept.ask("ana", open_side)[0].cost
    assert paid == kept.session.spent - tacit.Loss(paid.measure, before[0])
    assert kept.ask("rea", {"cdf": "age"})[0].cost.atoms == 0  # and now the attribute is


@pytest.mark.parametrize("form", [{"age": [0, 59]}, {"age": [0, 59], "pay": [-20, 40]}])
def test_a_range_over_everything_has_no_price(keep: Keep, form: Any) -> None:
    kept = keep()
    for way in (kept.price, lambda question: kept.ask("ana", question)):
        with pytest.raises(InvalidQuery, match="all there is"):
            way({"range": form})
    assert kept.session.spent.atoms == 0


def test_a_mean_of_dates_is_refused_before_it_is_paid_for(keep: Keep) -> None:
    kept = keep()
    for form in ({"mean": "day"}, "SELECT AVG(day) FROM data"):
        for way in (kept.price, lambda question: kept.ask("ana", question)):
            with pytest.raises(InvalidQuery, match="no mean"):
                way(form)
    with pytest.raises(InvalidQuery, match="no mean"):
        kept.session.mean("day")
    assert kept.session.spent.atoms == 0


CHARGED = [
    {"quantile": "age", "q": 0.5, "where": {}, "share": 0.35},
    {"quantile": "age", "q": 0.5, "where": {"sex": {"in": ["F", "M"]}}, "share": 0.35},
    {"mean": "pay", "where": {"smoker": {"in": [True, False]}}, "share": 0.35},
    {"mean": "kids", "share": 0.01},
    {"mean": "smoker", "share": 0.01},
    {"histogram": "income", "width": 50, "share": 0.35},
    {"table": ["sex", "kids"], "where": {"smoker": True}},
    {"range": {"income": [0, 99], "age": [0, 59]}, "share": 0.35},
]


@pytest.mark.parametrize("form", CHARGED)
def test_the_price_is_what_is_charged(keep: Keep, form: Any) -> None:
    kept = keep(questions=8)  # a new question costs an eighth
    foreseen = kept.price(form)
    fits = foreseen.cost_at_most.atoms <= 0.15 * kept.session.total.atoms
    answer = kept.attempt("mia", form)  # who has a quota of 0.15
    assert (answer is not None) == fits
    answer = answer or kept.ask("ana", form)[0]
    assert 0.9 < answer.cost.atoms / foreseen.cost_at_most.atoms <= 1
    assert kept.session.spent == answer.cost


def some_question(rng: random.Random) -> Any:
    """A question of the structured form; most can be answered."""

    def rows() -> dict[str, Any]:
        cut = sorted(rng.sample(range(7), 2))
        every: dict[str, list[Any]] = {
            "age": [[cut[0] * 10, cut[1] * 10 - 1], [0, 59]],
            "pay": [[-20, 40], [0, 5], [-20, rng.choice([0, 5])]],
            "income": [[0, 99], [0, 49], None],
            "sex": ["F", {"in": ["F", "M"]}],
            "kids": [0, {"in": [0, 1]}, {"in": [0, 1, 2]}],
            "smoker": [True, {"in": [True, False]}],
        }
        return {name: rng.choice(every[name]) for name in rng.sample(sorted(every), rng.choice([0, 1, 1, 2]))}

    def maybe(**fields: Any) -> dict[str, Any]:
        return {name: value for name, value in fields.items() if rng.random() < 0.5}

    name, share = rng.choice(["age", "pay", "income", "kids", "smoker", "day"]), rng.choice([0.002, 0.01, 0.03])
    ranges = {"age": [[0, 39], [0, 59]], "pay": [[0, 5], [-20, 40]], "income": [[0, 49], [0, 99]]}  # some are all
    sides = {name: rng.choice(ranges[name]) for name in rng.sample(sorted(ranges), rng.choice([1, 2, 2]))}
    return rng.choice(
        [
            {"count": rows()},
            {"table": rng.sample(list(DOMAIN.names), rng.choice([1, 2])), **maybe(where=rows())},
            {"cdf": name, **maybe(share=share)},
            {"quantile": name, "q": rng.choice([0.1, 0.5]), **maybe(where=rows(), share=share)},
            {"mean": name, **maybe(where=rows(), share=share)},
            {"sum": name, **maybe(where=rows())},
            {"fraction": rows(), **maybe(given=rows())},
            *[{"range": sides, **maybe(share=share)}] * 3,
            {"histogram": name, **maybe(share=share)},
        ]
    )


def fuzz(kept: Kept, seed: int, count: int) -> tuple[int, int, int]:
    """What a reader moved the budget by, what it was answered, and what an analyst was charged beyond the price."""
    rng, moved, answered, beyond = random.Random(seed), 0, 0, 0
    for _ in range(count):
        form = some_question(rng)
        before = kept.state
        answered += kept.attempt("rea", form) is not None
        moved += kept.state != before
        if rng.random() < 0.1:  # somebody buys, so that more and more is known
            bought = some_question(rng)
            try:
                most = kept.price(bought).cost_at_most.atoms
            except (Refusal, TacitError):
                continue
            answer = kept.attempt("ana", bought)
            beyond += answer is not None and answer.cost.atoms > most
    return moved, answered, beyond


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_reader_spends_nothing_whatever_is_asked(keep: Keep, mechanism: str) -> None:
    kept = keep(mechanism)
    moved, answered, beyond = fuzz(kept, 7, 250)
    assert (moved, beyond) == (0, 0)
    assert answered > 10
    assert kept.session.spent.atoms > 0


def by_the_words(parts: Parts, need: Need) -> Any:
    """A planted bug: a range of one attribute passes for known where a pair with that attribute was bought."""
    if isinstance(need, RangesOf):
        known = [one.question for one in parts._public.released() if isinstance(one.question, Product)]
        if any({pair.first.name, pair.second.name} >= set(need.names) for pair in known):
            return None
    return COST(parts, need)


def test_the_questions_find_a_price_that_goes_by_the_words(keep: Keep, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tacit.Session, "free", lambda _: nullcontext())
    monkeypatch.setattr(Parts, "_cost", by_the_words)
    kept = keep()
    kept.ask("ana", {"range": {"age": [0, 9], "pay": [0, 5]}})
    assert fuzz(kept, 7, 100)[0] > 0


def always_known(session: tacit.Session, _: Any) -> DryRun:
    return DryRun(True, tacit.Loss(session.total.measure, 0), "everything is known")


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_with_a_wrong_price_the_ledger_still_takes_nothing(
    keep: Keep, mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dataset, "price", always_known)
    kept = keep(mechanism)
    kept.ask("ana", {"count": {"sex": "F", "age": [0, 9]}})  # opens a gate, or buys
    before = kept.state
    rng = random.Random(3)
    answered = [kept.attempt("rea", some_question(rng)) for _ in range(60)]
    assert kept.state == before
    assert all(answer is None or answer.cost.atoms == 0 for answer in answered)
    with pytest.raises(Refusal) as refused:  # with a share, since a histogram has told all rectangles
        kept.ask("rea", {"range": {"age": [0, 9], "pay": [0, 5]}, "share": 0.1})
    assert (refused.value.status, refused.value.code, refused.value.nothing_spent) == (403, "would_spend", True)
    monkeypatch.setattr(tacit.Session, "free", lambda _: nullcontext())  # the control: without the guard it is spent
    kept.attempt("rea", {"range": {"age": [0, 9], "pay": [0, 5]}, "share": 0.001})
    assert mechanism == "histogram" or kept.state != before  # there everything was bought by the first question


def test_free_is_of_one_thread_and_ends(keep: Keep) -> None:
    session = keep(questions=8).session
    women, smokers = tacit.count(sex="F"), tacit.count(smoker=True)
    with session.free():
        with session.free():
            pass
        with pytest.raises(WouldSpend, match=r"Nothing was spent\.$") as refused:
            session.ask(women)
        assert refused.value.code == "would_spend"
        other = threading.Thread(target=session.ask, args=(smokers,))
        other.start()
        other.join(PATIENCE)
        assert session.spent.atoms > 0
        assert session.ask(smokers).cost.atoms == 0
    assert session.ask(women).cost.atoms > 0


def held(kept: Kept) -> threading.Event:
    """The writer waits until it is set; what is asked meanwhile shares a batch."""
    go, started = threading.Event(), threading.Event()

    def hold() -> None:
        started.set()
        assert go.wait(PATIENCE)

    kept.dataset.writer.do(hold)
    assert started.wait(PATIENCE)
    return go


def together(kept: Kept, *asked: tuple[str, list[Any]]) -> list[Any]:
    """What comes of requests that wait together: answers, or the refusal."""
    keys = {key.name: key for key in kept.ring.all()}
    go = held(kept)
    waiting = [kept.dataset.ask(keys[who], [read(form, DOMAIN) for form in forms], ARRIVED) for who, forms in asked]
    go.set()
    results: list[Any] = []
    for one in waiting:
        assert not isinstance(one, list)
        try:
            results.append(one.result(PATIENCE))
        except Refusal as refusal:
            results.append(refusal)
    return results


@pytest.fixture
def halting(keep: Keep) -> Kept:
    """One hard answer, and then it halts. At first all cells are guessed to be equal, and few smoke: that is hard."""
    return keep("iterative", hits=1, halt=True, questions=10, budget=tacit.Budget(epsilon=20, delta=0))


SMOKERS, OTHERS = {"count": {"smoker": True}}, {"count": {"smoker": False}}
YOUNG = {"count": {"age": [0, 9]}}


def records(kept: Kept) -> list[dict[str, Any]]:
    return [json.loads(line) for line in kept.audit.read_text().splitlines()]


def test_what_a_failed_batch_bought_is_its_askers(halting: Kept) -> None:
    first, second = together(halting, ("ana", [SMOKERS]), ("bob", [YOUNG]))
    assert isinstance(second, Refusal)  # halted
    assert (second.code, second.nothing_spent) == ("budget_exhausted", True)
    (answer,) = first
    assert (answer.source, answer.cost) == ("measured", halting.session.spent)
    noted = {record["who"]: record for record in records(halting)}
    assert noted["ana"]["cost"] == {"epsilon": float(halting.session.spent)}
    assert noted["bob"]["refused"] == "budget_exhausted"
    assert "cost" not in noted["bob"]
    assert halting.ask("bob", OTHERS)[0].cost.atoms == 0  # n less what is known
    assert halting.price(YOUNG).why.endswith("this session halts then: it is refused")
    assert halting.price(OTHERS).known


def test_what_a_cut_request_bought_is_noted_and_counted(halting: Kept) -> None:
    with pytest.raises(Refusal) as refused:
        halting.ask("ana", SMOKERS, YOUNG)
    assert (refused.value.code, refused.value.nothing_spent) == ("budget_exhausted", False)
    (record,) = records(halting)
    assert (record["refused"], record["cost"]) == ("budget_exhausted", {"epsilon": float(halting.session.spent)})
    assert halting.ring.used("people", "ana") == halting.session.spent.atoms
    assert halting.ask("bob", SMOKERS)[0].cost.atoms == 0
