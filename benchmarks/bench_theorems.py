"""The theorems in experiment: every construction, run many times where its theorem applies; draws docs/pictures.

    python -m benchmarks.bench_theorems [--only theorems|trivial|almost-all]

For each case the theorem says how many rows are needed for all answers to be within alpha, except with probability
beta. Tables of just so many rows are made (as counts: they cost nothing), a third of them with all rows in one cell,
which is farthest from the uniform start. A run's error is the largest over all answers. Every run may go on to twice
its number of updates B, each at the price that the theorem plans for it, so that B is observed and not imposed.

Two more tables: the notes' theorem for nonlinear queries, with the net of all databases of n records, which has the
data themselves; and corollaries 5.8 and 5.9 of Roth & Roughgarden, on which databases the efficient median mechanism is
useful: their constants ask for more rows than there are people, so what is counted is the share of sampled databases on
which all answers of the calibrated mechanism are within alpha.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations, product
from multiprocessing import get_context
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

import tacit
from benchmarks.bench_almost_all import play
from tacit.exact.price import total
from tacit.model.budget import ATOMS, Budget, Loss
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.model.request import Distance
from tacit.model.statistic import Statistic
from tacit.owner.opening import doors
from tacit.release.hypothesis.cell_weights import Dense
from tacit.release.offline import construct
from tacit.release.public import Public
from tacit.release.rules.median_net import Databases, MedianNet
from tacit.release.rules.multiplicative_weights import MultiplicativeWeights
from tacit.show.chart import Axis, Chart, Points, Polyline
from tacit.show.chart.marks import Mark, Shape
from tacit.store.anchor import Anchor
from tacit.theory import lecture_8, lecture_12
from tacit.trusted.curator import Curator
from tacit.trusted.ledger import Ledger
from tacit.trusted.records import Records

RUNS = 40
PICTURE = Path(__file__).parents[1] / "docs" / "pictures" / "bounds.svg"
MEMORY = Path("/dev/shm")  # the ledgers of these runs need not survive anything
ASKED = 5  # by the online adversary: this many times as many questions as there are conjunctions
ALLOWED = 2  # times B
STRICTLY = 0.99  # a net is made for a little less than alpha, as its elements must be strictly within it

Construction = Literal["exponential", "sparse", "online"]
Rule = Literal["textbook", "exact", "median"]
Hypothesis = Dense | Databases
Fractions = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """One construction with one update rule, and the parameters of its theorem. |X| = 2^attributes."""

    construction: Construction
    rule: Rule
    attributes: int
    conjunctions: int
    alpha: float
    delta: float = 0.0
    epsilon: float = 1.0
    beta: float = 0.1
    fewer: int = 1  # for controls: the table has so many times fewer rows than the theorem asks for

    @cached_property
    def domain(self) -> Domain:
        return Domain({f"c{i}": tacit.boolean() for i in range(self.attributes)})

    @cached_property
    def queries(self) -> list[Query]:
        """Conjunctions of up to three conditions, the same in every run."""
        found: dict[Query, None] = {}
        for size in (1, 2, 3):
            for names in combinations(self.domain.names, size):
                for values in product((0, 1), repeat=size):
                    parts = [Query.among(self.domain, name, [v]) for name, v in zip(names, values, strict=True)]
                    found[Query.all(parts).core] = None
        chosen = np.random.default_rng(1).permutation(len(found))[: self.conjunctions]
        return [list(found)[i] for i in chosen]

    @cached_property
    def weights(self) -> Fractions:
        """The queries as a matrix: one row each, one column for each cell."""
        names, shape = self.domain.names, self.domain.shape
        return np.array([query.table(names, shape).ravel() for query in self.queries], dtype=np.float64)

    @property
    def update_at(self) -> float:
        """How far off a query is, at least, on which the hypothesis is updated."""
        return self.alpha / (2 if self.construction == "exponential" else 3)

    @cached_property
    def max_updates(self) -> lecture_8.MaxUpdates:
        if self.rule == "textbook":
            return lecture_12.weights_updates(cells=self.domain.size)
        if self.rule == "exact":
            return lambda alpha: 2 * math.log(self.domain.size) / alpha**2
        return lecture_8.net_updates(math.log2(len(self.net)))

    @property
    def net(self) -> MedianNet:
        rows = lecture_8.sampled_net_rows(alpha=STRICTLY * self.update_at, queries=len(self.queries))
        return _net(self.attributes, rows)

    @cached_property
    def bound(self) -> lecture_8.Bound:
        k = len(self.queries)
        if self.construction == "exponential":
            return lecture_8.offline(self.max_updates, lecture_8.Task(queries=k, beta=self.beta, delta=self.delta))
        if self.construction == "sparse":  # each round goes through all queries again
            compared = k * self.max_updates(self.update_at)
            setting = lecture_8.Task(queries=compared, beta=self.beta, delta=self.delta)
            return lecture_12.online(self.max_updates, setting, sparse=lecture_12.EQUAL_HALVES)
        return lecture_12.online(self.max_updates, self.asking)

    @property
    def asking(self) -> lecture_8.Task:
        return lecture_8.Task(queries=ASKED * len(self.queries), beta=self.beta, delta=self.delta)

    @cached_property
    def n_needed(self) -> int:
        return math.ceil(self.bound.n_needed(alpha=self.alpha, epsilon=self.epsilon))

    @property
    def n(self) -> int:
        return self.n_needed // self.fewer

    @property
    def most_updates(self) -> int:
        """B at the alpha of the updates, in whole ones."""
        return math.floor(max(1.0, self.max_updates(self.update_at)))

    @property
    def budget(self) -> Budget:
        return Budget(epsilon=self.epsilon, delta=self.delta)


@dataclass(frozen=True)
class Run:
    """What one run gave: the largest error of an answer, as a fraction of n, and the number of updates."""

    error: float
    updates: int


CASES = (
    Case("exponential", "textbook", 3, 23, alpha=0.4),
    Case("exponential", "textbook", 3, 23, alpha=0.2, delta=1e-9),
    Case("exponential", "textbook", 4, 30, alpha=0.2, epsilon=0.5),
    Case("exponential", "textbook", 6, 30, alpha=0.3, delta=1e-9),
    Case("exponential", "textbook", 8, 30, alpha=0.4, delta=1e-9),
    Case("exponential", "exact", 4, 30, alpha=0.1),
    Case("exponential", "exact", 6, 30, alpha=0.05, delta=1e-9),
    Case("exponential", "exact", 8, 30, alpha=0.1, delta=1e-9),
    Case("exponential", "median", 2, 6, alpha=0.3),
    Case("exponential", "median", 3, 8, alpha=0.6, delta=1e-9),
    Case("sparse", "textbook", 3, 23, alpha=0.6),
    Case("sparse", "textbook", 6, 30, alpha=0.4, delta=1e-9),
    Case("sparse", "exact", 6, 30, alpha=0.1, delta=1e-9),
    Case("online", "textbook", 3, 23, alpha=0.6),
    Case("online", "textbook", 4, 30, alpha=0.3, delta=1e-9),
    Case("online", "textbook", 6, 40, alpha=0.4, epsilon=0.5),
    Case("online", "textbook", 8, 40, alpha=0.5, delta=1e-9),
    Case("online", "exact", 6, 40, alpha=0.1, delta=1e-9),
    Case("online", "median", 2, 6, alpha=0.45),
)


def main(arguments: Sequence[str] = ()) -> None:
    parts = {"theorems": theorems, "trivial": trivial_nets, "almost-all": almost_all}
    parser = argparse.ArgumentParser(prog="benchmarks.bench_theorems", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", choices=parts)
    options = parser.parse_args(arguments)
    for name, part in parts.items():
        if options.only in (None, name):
            part()


def theorems() -> None:
    work = [(case, seed) for seed in range(RUNS) for case in CASES]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:  # a fork would inherit opened libraries
        done = list(pool.map(_run, work, chunksize=8))
    results = [(case, done[i :: len(CASES)]) for i, case in enumerate(CASES)]
    print(f"theorems: {RUNS} runs of each case; errors are fractions of n, beta = 0.1")
    print(
        f"  {'construction':<14}{'rule':<10}{'|X|':>4}{'k':>5}{'eps':>5}{'delta':>7}{'n':>14}{'alpha':>7}{'within':>8}"
        f"{'largest':>9}{'ratio':>7}{'updates':>9}{'B':>7}"
    )
    good = True
    for case, runs in results:
        errors, updates = [run.error for run in runs], max(run.updates for run in runs)
        within = sum(error <= case.alpha for error in errors) / len(runs)
        good &= within >= 1 - case.beta and updates <= case.most_updates
        k = int(case.asking.queries) if case.construction == "online" else len(case.queries)
        print(
            f"  {case.construction:<14}{case.rule:<10}{case.domain.size:>4}{k:>5}{case.epsilon:>5g}{case.delta:>7g}"
            f"{case.n:>14,}{case.alpha:>7g}{within:>8.0%}{max(errors):>9.4f}{max(errors) / case.alpha:>7.2f}"
            f"{updates:>9,}{case.most_updates:>7,}"
        )
    print(f"  all within alpha in at least 1 - beta of the runs, and at most B updates: {'ok' if good else 'BROKEN'}")
    PICTURE.parent.mkdir(exist_ok=True)
    picture(results).save(PICTURE)


@dataclass(frozen=True)
class TrivialCase:
    """The trivial net over the integers below `cells`, for a dozen questions of which ten are nonlinear."""

    cells: int
    alpha: float
    epsilon: float
    delta: float = 1e-9
    beta: float = 0.1

    @cached_property
    def domain(self) -> Domain:
        return Domain({"x": tacit.integer(0, self.cells - 1)})

    @cached_property
    def queries(self) -> list[Query | Statistic]:
        """How many rows must be replaced for a quantile to be the least value, or the largest; and two counts."""
        shares, last = (0.1, 0.25, 0.5, 0.75, 0.9), self.cells - 1
        asked = [tacit.quantile_distance("x", q, high=0) for q in shares]
        asked += [tacit.quantile_distance("x", q, low=last) for q in shares]
        return [one.bind(self.domain) for one in (*asked, tacit.count(x=0), tacit.count(x=last))]

    @cached_property
    def theorem(self) -> lecture_8.TrivialNet:
        task = lecture_8.Task(queries=len(self.queries), beta=self.beta, delta=self.delta)
        return lecture_8.TrivialNet(task, cells=self.cells)

    @cached_property
    def n(self) -> int:
        return math.ceil(self.theorem.n_needed(alpha=self.alpha, epsilon=self.epsilon))

    @property
    def most_updates(self) -> int:
        """B = n log2|X|, as the theorem counts the net."""
        return math.floor(self.n * math.log2(self.cells))


# Cells, rows, alpha and hard answers. Corollary 5.9 excepts n²/|X| of all databases, so that it says something of few
# rows alone; these pay for few hard answers, and a coarser alpha.
POPULATIONS = (
    (8, 20_000, 0.05, 40),
    (16, 20_000, 0.05, 40),
    (32, 20_000, 0.05, 40),
    (64, 20_000, 0.05, 40),
    (65_536, 200, 0.15, 5),
    (262_144, 300, 0.15, 5),
)
TRIVIAL = (TrivialCase(2, 0.3, 20.0), TrivialCase(2, 0.1, 100.0), TrivialCase(3, 0.9, 160.0))


def trivial_nets(runs: int = RUNS) -> bool:
    """The notes' theorem: n as it asks for, every error within alpha, and at most log2 of the net's size updates."""
    print(f"\ntrivial net, nonlinear queries: {runs} runs a case (a tenth for |X| = 3), k = 12, delta = 1e-9")
    columns = {
        "|X|": 4,
        "eps": 5,
        "n": 12,
        "net": 12,
        "alpha": 7,
        "within": 8,
        "largest": 9,
        "updates": 9,
        "log2 net": 10,
    }
    print("  " + "".join(f"{name:>{width}}" for name, width in columns.items()))
    good = True
    for case in TRIVIAL:
        net = MedianNet.databases(case.domain, case.n)
        done = [trivial(case, net, seed) for seed in range(runs if case.cells == 2 else max(1, runs // 10))]
        within = sum(run.error <= case.alpha for run in done) / len(done)
        updates, most = max(run.updates for run in done), math.log2(len(net))
        good &= within >= 1 - case.beta and updates <= most
        print(
            f"  {case.cells:>4}{case.epsilon:>5g}{case.n:>12,}{len(net):>12,}{case.alpha:>7g}{within:>8.0%}"
            f"{max(run.error for run in done):>9.4f}{updates:>9,}{most:>7.1f}"
        )
    print(f"  all within alpha in at least 1 - beta of the runs, and at most log2 of the net updates: {_said(good)}")
    return good


def trivial(case: TrivialCase, net: MedianNet, seed: int) -> Run:
    rng = np.random.default_rng(seed)
    shares = np.eye(case.cells)[seed % case.cells] if seed % 3 == 0 else rng.dirichlet(np.ones(case.cells))
    counts = rng.multinomial(case.n, shares).astype(np.int64)
    codes = np.flatnonzero(counts)
    records = Records(case.domain, [codes.astype(np.uint8)], counts[codes])
    budget = Budget(epsilon=case.epsilon, delta=case.delta)
    with _held(records, budget) as (public, curator):
        built = construct(
            public,
            curator,
            case.queries,
            net,
            rounds=case.most_updates,
            loss=public.total,
            alpha=case.alpha,
            confidence=1 - case.beta,
        )
        errors = [
            abs(built.hypothesis.answer(query) - records.answer(query) / (query.unit * records.rows))
            for query in case.queries
        ]
        return Run(max(errors), len(built.steps) - int(built.accurate))


@contextmanager
def _held(records: Records, budget: Budget) -> Iterator[tuple[Public, Curator]]:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        ledger = Ledger.open(
            Path(folder) / "theorem.tacit",
            make="new",
            budget=budget,
            total=total(budget),
            binding={"domain": records.domain.key, "data": records.fingerprint},
            anchor=Anchor(Path(folder) / "anchors.sqlite"),
        )
        try:
            yield doors(records, ledger)
        finally:
            ledger.close()


def almost_all(databases: int = 10) -> None:
    """Corollaries 5.8 and 5.9: databases of random populations, and uniformly random ones."""
    print(f"\nalmost all databases: {databases} a row, 100 random predicates, epsilon = 2, delta = 1e-9")
    print(f"  {'drawn':<16}{'|X|':>9}{'n':>8}{'but for':>9}{'alpha':>7}{'useful':>8}{'largest':>9}{'hard':>6}{'of':>4}")
    budget = Budget(epsilon=2.0, delta=1e-9)
    for drawn in ("DatabaseSample", "uniformly"):
        for cells, n, alpha, hits in POPULATIONS:
            done = [play(cells, hits, 100, seed, drawn=drawn, rows=n, budget=budget) for seed in range(databases)]
            useful = sum(run.largest <= alpha for run in done) / databases
            excepted = "few" if drawn == "DatabaseSample" else f"{n**2 / cells:.2f}" if n**2 < cells else "all"
            print(
                f"  {drawn:<16}{cells:>9,}{n:>8,}{excepted:>9}{alpha:>7g}{useful:>8.0%}"
                f"{max(run.largest for run in done):>9.4f}{max(run.hard for run in done):>6}{hits:>4}",
                flush=True,
            )


def _said(good: bool) -> str:
    return "ok" if good else "BROKEN"


def run(case: Case, seed: int) -> Run:
    """One run on one table, with a ledger of its own."""
    records = _table(case, seed)
    truth = case.weights @ (records.table(case.domain.names).ravel() / records.rows)
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name:
        folder = Path(name)
        ledger = Ledger.open(
            folder / "theorem.tacit",
            make="new",
            budget=case.budget,
            total=_times(ALLOWED, total(case.budget, "rho" if case.delta else "epsilon")),
            binding={"domain": case.domain.key, "data": records.fingerprint},
            anchor=Anchor(folder / "anchors.sqlite"),
        )
        try:
            public, curator = doors(records, ledger)
            if case.construction == "online":
                return _online(case, curator, truth)
            return _offline(case, public, curator, truth)
        finally:
            ledger.close()


def _run(work: tuple[Case, int]) -> Run:
    return run(*work)


def _table(case: Case, seed: int) -> Records:
    """All rows in one cell, in a few, or in more: n of them, whatever n."""
    rng = np.random.default_rng(seed)
    cells = case.domain.size
    shares = rng.permutation(np.eye(1, cells)[0]) if seed % 3 == 0 else rng.dirichlet(np.full(cells, seed % 3 / cells))
    counts = rng.multinomial(case.n, shares).astype(np.int64)
    places = np.array(list(np.ndindex(*case.domain.shape)))[counts > 0]
    return Records(case.domain, [codes.astype(np.uint8) for codes in places.T], counts[counts > 0])


def _rule(case: Case, alpha: float, tolerance: float) -> MultiplicativeWeights | MedianNet:
    if case.rule == "median":
        return case.net
    return MultiplicativeWeights(case.domain, alpha, step=case.rule, tolerance=tolerance)


def _offline(case: Case, public: Public, curator: Curator, truth: Fractions) -> Run:
    """Lecture 8, algorithm 1. With the sparse distinguisher 3F is alpha, and its threshold 2F is half of 4F."""
    exponential = case.construction == "exponential"
    built = construct(
        public,
        curator,
        case.queries,
        _rule(case, case.update_at, case.alpha / 8 if exponential else case.update_at),  # type: ignore[arg-type]
        rounds=ALLOWED * case.most_updates,
        loss=public.total,
        alpha=case.alpha if exponential else 4 * case.alpha / 3,
        distinguisher="exponential" if exponential else "sparse",
    )
    looked = int(exponential and built.accurate)  # the last round found nothing to learn
    return Run(float(np.abs(_answers(case, built.hypothesis) - truth).max()), len(built.steps) - looked)


def _online(case: Case, curator: Curator, truth: Fractions) -> Run:
    """Lecture 12, algorithm 1, with one gate for each hit and a fresh answer; the analyst asks the worst query first.

    The analyst knows the data. Whatever is easy stays as it is, so the next worst is asked then; when something was
    learned, all are asked again. It ends when all were easy, or when all questions were asked.
    """
    plan = lecture_12.online_plan(case.max_updates, case.asking, n=case.n_needed, epsilon=case.epsilon)
    rule = _rule(case, plan.update_at, plan.update_at)
    hypothesis: Hypothesis = rule.initial()
    gate_loss, answer_loss = _loss(plan.gate_epsilon, case), _loss(plan.answer_epsilon, case)
    gate = curator.open_gate(plan.threshold * case.n, gate_loss)
    asked, hits, worst, most = 0, 0, 0.0, ALLOWED * plan.hits
    while asked < case.asking.queries:
        answers = _answers(case, hypothesis)
        errors = np.abs(answers - truth)
        order = np.argsort(-errors)[: int(case.asking.queries) - asked].tolist()
        place = None
        if hits < most:
            queries = [case.queries[i] for i in order]
            found = gate.first_above(queries, [Distance(float(answers[i] * case.n)) for i in order])
            place = None if found is None else found[0]
        easy = order if place is None else order[:place]
        worst = max(worst, float(errors[easy].max(initial=0.0)))
        asked += len(easy)
        if place is None:
            break
        hard, asked, hits = order[place], asked + 1, hits + 1
        measured = curator.measure([case.queries[hard]], answer_loss)[0]
        answer = float(measured.values[0]) / case.n
        worst = max(worst, abs(answer - float(truth[hard])))
        hypothesis = rule.update(hypothesis, case.queries[hard], answer)  # type: ignore[arg-type]
        if hits < most:
            gate = curator.open_gate(plan.threshold * case.n, gate_loss)
    return Run(worst, hits)


def _times(factor: int, loss: Loss) -> Loss:
    return Loss(loss.measure, factor * loss.atoms)


def _loss(epsilon: float, case: Case) -> Loss:
    """An epsilon of the theorem in the ledger's measure; a pure epsilon costs epsilon²/2 in rho."""
    return Loss("rho" if case.delta else "epsilon", math.floor((epsilon**2 / 2 if case.delta else epsilon) * ATOMS))


def _answers(case: Case, hypothesis: Hypothesis) -> Fractions:
    if isinstance(hypothesis, Dense):
        found: Fractions = case.weights @ hypothesis.marginal(case.domain.names).ravel()
        return found
    return np.array([hypothesis.answer(query) for query in case.queries])


@cache
def _net(attributes: int, rows: int) -> MedianNet:
    return MedianNet.databases(Domain({f"c{i}": tacit.boolean() for i in range(attributes)}), rows)


# --- the picture ----------------------------------------------------------------------------------------------------

LOW, HIGH = 0.02, 1.0
ASIDE = 1.05  # constructions that promise the same stand side by side
CONSTRUCTIONS: dict[Construction, str] = {
    "exponential": "offline, exponential",
    "sparse": "offline, sparse vector",
    "online": "online, worst first",
}
RULES: dict[Rule, tuple[str, Shape]] = {
    "textbook": ("textbook step", "circle"),
    "exact": ("exact step", "triangle"),
    "median": ("median", "diamond"),
}


def picture(results: Sequence[tuple[Case, Sequence[Run]]]) -> Chart:
    """Largest and middle error of each case against what its theorem promises, on logarithmic axes."""
    marks: list[Mark] = [Polyline([LOW, HIGH], [LOW, HIGH], name="the bound", colour=6, dashed=True)]
    for place, (construction, name) in enumerate(CONSTRUCTIONS.items()):
        for rule, (step, shape) in RULES.items():
            own = [(case, runs) for case, runs in results if (case.construction, case.rule) == (construction, rule)]
            if not own:
                continue
            errors = np.array([[max(LOW, run.error) for run in runs] for _, runs in own])
            marks.append(
                Points(
                    [case.alpha * ASIDE ** (place - 1) for case, _ in own],
                    errors.max(axis=1),
                    low=np.median(errors, axis=1),
                    name=f"{name}, {step}",
                    colour=place,
                    shape=shape,
                )
            )
    return Chart(
        "Observed error against the bound of the theorem",
        x=Axis("error promised by the theorem (alpha)", log=True, low=LOW, high=HIGH),
        y=Axis("error observed", log=True, low=LOW, high=HIGH),
        marks=marks,
        height=560,
        note="Mark: the largest error of all runs. Polyline: down to that of the middle run.",
    )


if __name__ == "__main__":
    main(sys.argv[1:])
