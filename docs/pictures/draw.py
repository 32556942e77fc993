"""Draws the pictures that explain the mechanisms: `python docs/pictures/draw.py` writes them beside this file, or
only those that are named after it.

The tree and the triangle are geometry, and come out the same each time. The others are real sessions with real
noise.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path

import numpy as np
import pandas as pd

import tacit
from tacit import demo
from tacit.demo.contest import ONE_MORE, Contestant, Truth, conditions
from tacit.demo.contest import contest as race
from tacit.model.expression import Expression
from tacit.show.chart import Axis, Chart, Grid, Points, Polyline, Ticks
from tacit.show.chart.axes import round_number
from tacit.show.chart.paint import Drawing, Picture, p, paint, text

HERE = Path(__file__).parent
WIDTH = 640


@dataclass(frozen=True)
class Tree(Picture):
    """A binary tree over 16 bins, and the nodes whose sum is a range of bins."""

    title: str = "A range is the sum of a few nodes"
    bins: int = 16
    first: int = 3
    last: int = 12

    def drawing(self) -> Drawing:
        body = text(20, 30, self.title, role="ink", size=15, bold=True)
        wide, levels, used = (WIDTH - 40) / self.bins, self.bins.bit_length(), []
        for level in range(levels):
            size, y = self.bins >> level, 50 + 44 * level
            for start in range(0, self.bins, size):
                inside = self.first <= start and start + size - 1 <= self.last
                parent = start // (2 * size) * (2 * size)
                parent_inside = self.first <= parent and parent + 2 * size - 1 <= self.last
                chosen = inside and not parent_inside
                if chosen:
                    used.append(f"{start}" if size == 1 else f"{start} to {start + size - 1}")
                box = f'x="{p(20 + wide * start + 1)}" y="{p(y)}" width="{p(wide * size - 2)}" height="34" rx="3"'
                role = "1" if chosen else "5" if inside else "grid"
                body += f"<rect {box} {paint(fill=role, opacity=0.35 if role == '5' else 1)}/>"
        y = 50 + 44 * levels
        for bin_ in range(self.bins):
            asked = self.first <= bin_ <= self.last
            body += text(20 + wide * (bin_ + 0.5), y + 12, str(bin_), anchor="middle", role="ink" if asked else "soft")
        left, right = 20 + wide * self.first, 20 + wide * (self.last + 1)
        body += f'<path d="M{p(left)} {p(y + 22)}h{p(right - left)}" {paint(stroke="1", width=3)}/>'
        many = self.last - self.first + 1
        said = f"bins {self.first} to {self.last} = {' + '.join(used)}: {len(used)} noisy counts instead of {many}"
        return Drawing(WIDTH, y + 62, body + text(20, y + 46, said), said)


@dataclass(frozen=True)
class Triangle(Picture):
    """All databases over three cells are a triangle; each hard answer keeps a slab of it."""

    title: str = "Each hard answer cuts the set of plausible databases"
    truth: tuple[float, float, float] = (0.52, 0.30, 0.18)
    width: float = 0.06

    def drawing(self) -> Drawing:
        questions = [
            ("a", (1.0, 0.0, 0.0), 0.02),
            ("b", (0.0, 1.0, 0.0), -0.025),
            ("a or b", (1.0, 1.0, 0.0), 0.05),
        ]
        body, side, gap = text(20, 30, self.title, role="ink", size=15, bold=True), 132.0, 20.0
        kept = [np.eye(3)[i] for i in range(3)]
        whole = _area(kept)
        words = []
        for step in range(len(questions) + 1):
            left = 20 + step * (side + gap)
            if step:
                _, weights, noise = questions[step - 1]
                middle = float(np.dot(weights, self.truth)) + noise
                kept = _clip(
                    _clip(kept, np.array(weights), middle + self.width), -np.array(weights), -(middle - self.width)
                )
            corners = [np.eye(3)[i] for i in range(3)]
            body += _polygon(corners, left, side, paint(fill="grid"))
            body += _polygon(kept, left, side, paint(fill="0", opacity=0.75))
            x, y = _place(np.array(self.truth), left, side)
            body += f'<circle cx="{p(x)}" cy="{p(y)}" r="3.5" {paint(fill="1")}/>'
            share = _area(kept) / whole
            name = "at first" if step == 0 else f"after {questions[step - 1][0]}"
            words.append(f"{name}: {share:.0%}")
            body += text(left + side / 2, 196, name, anchor="middle", role="ink")
            body += text(left + side / 2, 212, f"{share:.0%} is left", anchor="middle")
        body += text(20, 240, "Each point is a table of shares (a, b, c); the dot is the true one, which nobody sees.")
        return Drawing(WIDTH, 256, body, "; ".join(words))


def _place(point: np.ndarray, left: float, side: float) -> tuple[float, float]:
    corners = np.array([[0.5, 0.0], [0.0, 1.0], [1.0, 1.0]]) * [side, side * 0.87] + [left, 56]
    x, y = point @ corners
    return float(x), float(y)


def _polygon(points: list[np.ndarray], left: float, side: float, style: str) -> str:
    places = " ".join(f"{p(x)},{p(y)}" for x, y in (_place(point, left, side) for point in points))
    return f'<polygon points="{places}" {style}/>'


def _area(points: list[np.ndarray]) -> float:
    x, y = np.array([point[:2] for point in points]).T
    return float(abs(np.dot(x, np.roll(y, -1)) - np.dot(y, np.roll(x, -1))) / 2)


def _clip(points: list[np.ndarray], weights: np.ndarray, most: float) -> list[np.ndarray]:
    """What is left of a convex polygon where weights · point <= most."""
    kept: list[np.ndarray] = []
    for here, after in zip(points, [*points[1:], points[0]], strict=True):
        a, b = (float(weights @ point) - most for point in (here, after))
        if a <= 0:
            kept.append(here)
        if a * b < 0:
            kept.append(here + (after - here) * a / (a - b))
    return kept


def timeline() -> Grid:
    """One session with the iterative mechanism: which questions were bought, and the spending."""
    rng = np.random.default_rng(3)
    stage = rng.choice(6, 30_000, p=[0.4, 0.3, 0.1, 0.1, 0.05, 0.05])
    table = pd.DataFrame(
        {
            "stage": stage,
            "ward": stage % 3,
            "smoker": rng.random(30_000) < stage / 8,
            "age": (stage * 7 + rng.integers(0, 20, 30_000)) // 5,
        }
    )
    sizes = {"stage": 6, "ward": 3, "age": 11}
    domain = tacit.Domain(
        {**{name: tacit.integer(0, size - 1) for name, size in sizes.items()}, "smoker": tacit.boolean()}
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        tacit.open(
            data=table, domain=domain, budget=tacit.Budget(epsilon=3.0, delta=1e-9), ledger=Path(folder) / "t.tacit",
            anchor=Path(folder) / "anchor", mechanism="iterative", hits=90, questions=600,
        ) as session,
    ):  # fmt: skip
        spent, bought = [], []
        for _ in range(600):
            names = rng.choice(list(sizes), int(rng.integers(1, 4)), replace=False)
            ends = {str(n): tuple(sorted(int(v) for v in rng.integers(0, sizes[n], 2))) for n in names}
            answer = session.ask_many([tacit.count(**ends)])[0]
            bought.append(answer.source == "measured")
            spent.append(session.spent.atoms / session.total.atoms)
    asked, hard = np.arange(1, 601), np.array(bought)
    shares = [hard[start : start + 50].mean() for start in range(0, 600, 50)]
    x = Axis("question")
    money = Chart(
        "Budget spent",
        x=x,
        y=Axis("share", low=0),
        height=240,
        marks=[
            Polyline(asked, spent, name="spent", steps=True),
            Points(asked[hard], np.array(spent)[hard], name="bought"),
        ],
    )
    rare = Chart(
        "Hard questions among the last 50",
        x=x,
        y=Axis("share", low=0, high=1),
        height=240,
        marks=[Polyline(asked[::50], shares, name="hard", steps=True)],
    )
    return Grid("Hard questions become rare", [money, rare], columns=1)


def median() -> Grid:
    """One session with the median mechanism: 2,000 questions over 4,320 cells, and the databases that vote."""
    rng = np.random.default_rng(7)
    age = rng.choice(12, 100_000, p=np.arange(12, 0, -1) / 78)
    regions = ["north", "east", "south", "west", "islands"]
    table = pd.DataFrame(
        {
            "age": 20 + 5 * age,
            "region": np.array(regions)[(age + rng.integers(0, 3, 100_000)) % 5],
            "smoker": rng.random(100_000) < 0.15 + age / 40,
            "ill": rng.random(100_000) < 0.05 + age / 30,
            "visits": np.minimum(rng.poisson(1 + age / 4), 11),
        }
    )
    domain = tacit.Domain(
        {
            "age": tacit.integer(20, 79, width=5),
            "region": tacit.category(regions),
            "smoker": tacit.boolean(),
            "ill": tacit.boolean(),
            "visits": tacit.integer(0, 11),
        }
    )

    def random_question() -> Expression:
        low, visits = rng.integers(0, 12, 2)
        conditions = {"age": (20 + 5 * int(low), 79), "visits": (0, int(visits)), "smoker": bool(rng.integers(2))}
        conditions |= {"ill": bool(rng.integers(2)), "region": str(rng.choice(regions))}
        chosen = rng.choice(list(conditions), size=rng.integers(1, 4), replace=False)
        return tacit.count(**{name: conditions[name] for name in chosen})

    with (
        tempfile.TemporaryDirectory() as folder,
        tacit.open(
            data=table, domain=domain, budget=tacit.Budget(epsilon=1.0, delta=1e-9), ledger=Path(folder) / "t.tacit",
            anchor=Path(folder) / "anchor", mechanism="median", warm=0, hits=40, questions=2_000,
            databases=50, records=400,
        ) as session,
    ):  # fmt: skip
        questions = [random_question() for _ in range(2_000)]
        probes = [question.bind(domain) for question in questions[:50]]

        def apart() -> float:
            """How far the databases are from each other, on average over some questions."""
            return float(np.mean([session.knowledge.votes.values(probe).std() for probe in probes]))

        sources, spread = [], [apart()]
        for first in range(0, 2_000, 100):
            sources += [answer.source for answer in session.ask_many(questions[first : first + 100])]
            spread.append(apart())
    hard = [i for i, source in enumerate(sources) if source == "measured"]
    easy = [i for i, source in enumerate(sources) if source == "hypothesis"]
    bought = Chart(
        "Hard questions become rare",
        x=Axis("question"),
        y=Axis("bought so far"),
        marks=[
            Polyline(hard, range(1, len(hard) + 1), name="bought", steps=True),
            Ticks(hard, name="hard"),
            Ticks(easy, name="easy"),
        ],
    )
    shrinking = Chart(
        "The consistent databases draw together",
        x=Axis("question"),
        y=Axis("standard deviation of their answers", percent=True, low=0),
        marks=[Polyline(range(0, 2_001, 100), spread)],
    )
    return Grid("The median mechanism at work", [bought, shrinking], columns=1)


def visits() -> Chart:
    """The first picture of the README: a cumulative distribution with its band, from the demonstration's table."""
    with (
        tempfile.TemporaryDirectory() as folder,
        as_file(files("tacit.demo") / "randhie.csv.gz") as path,
        tacit.open(
            data=demo.view(path), domain=demo.DOMAIN, budget=demo.BUDGET, ledger=Path(folder) / "t.tacit",
            anchor=Path(folder) / "anchor", mechanism="direct",
        ) as session,
    ):  # fmt: skip
        chart: Chart = session.cdf("visits", share=0.001).chart()  # so little that the band is seen
    return replace(chart, title="The share of the rows with fewer visits to a doctor than so many")


def story() -> Chart:
    """How visits spread among those who pay nothing: docs/do/story.md."""
    with tempfile.TemporaryDirectory() as folder, demo.open_demo(Path(folder), questions=1_000) as session:
        session.start()
        table = session.ask("SELECT visits, COUNT(*) FROM data WHERE coinsurance = 0 GROUP BY visits")
        chart: Chart = table.chart()
    return replace(chart, title="Visits to the doctor in a year, of those who pay nothing")


@dataclass(frozen=True)
class Contest(Picture):
    """How far off the demonstration's thousand answers are, fresh noise beside Tacit, on one scale."""

    title: str
    both: tuple[Contestant, ...]
    after: tuple[str, ...]

    def drawing(self) -> Drawing:
        wide, high, gap, top = 262.0, 200.0, 24.0, 62.0
        most = max(one.worst for one in self.both)
        step = round_number(most / 2, up=False)
        body = text(20, 30, self.title, role="ink", size=15, bold=True)
        body += text(20, 50, "Each dot is an answer: how many rows it is above or below the truth.")
        said = []
        for panel, (one, role, next_one) in enumerate(zip(self.both, ("1", "0"), self.after, strict=True)):
            left = 72 + panel * (wide + gap)
            middle = top + high / 2

            def y(rows: float, middle: float = middle) -> float:
                return middle - rows / most * (high / 2 - 4)

            for rows in (-step, 0, step):
                line = paint(stroke="grid" if rows else "soft")
                body += f'<path d="M{p(left)} {p(y(rows))}h{p(wide)}" {line}/>'
                if not panel:
                    body += text(left - 8, y(rows) + 4, f"{rows:+,.0f}" if rows else "truth", anchor="end")
            across = wide / len(one.errors)
            dots = "".join(f"M{p(left + across * (i + 0.5))} {p(y(rows))}h0" for i, rows in enumerate(one.errors))
            body += f'<path d="{dots}" stroke-linecap="round" {paint(stroke=role, width=2.6, opacity=0.7)}/>'
            below = top + high + 28
            body += text(left, below, one.name, role=role, size=15, bold=True)
            figures = f"off by {one.mean:,.0f} rows on average, {one.worst:,} at worst"
            budget = f"{100 * one.left[-1]:.0f} % of the budget is left"
            more = f"one question more: {next_one}"
            for line, words in enumerate((figures, budget, more)):
                body += text(left, below + 21 + 18 * line, words, role="ink")
            said.append(f"{one.name}: {figures}; {budget}; {more}")
        return Drawing(WIDTH, top + high + 100, body, ". ".join(said))


def contest() -> Contest:
    """The README's first picture: one real run of the demonstration."""
    number = 1_000
    with (
        tempfile.TemporaryDirectory() as folder,
        demo.open_demo(Path(folder), mechanism="direct", questions=number) as fresh,
        demo.open_demo(Path(folder), questions=number) as ours,
    ):
        ours.start()
        both = Contestant("Fresh noise for every question", fresh), Contestant("Tacit", ours)
        for _ in race(both, conditions(number), Truth()):
            pass
        after = tuple(one.answers_one_more(ONE_MORE) for one in both)
        title = (
            f"{number:,} questions about {ours.rows:,} rows, epsilon = {ours.budget.epsilon:g} for all of them together"
        )
    return Contest(title, both, after)


def main(names: list[str]) -> None:
    """Draw the pictures of these names, or all."""
    pictures = {"tree": Tree, "triangle": Triangle, "timeline": timeline, "median": median, "visits": visits}
    pictures |= {"contest": contest, "story": story}
    for name in names or pictures:
        print(pictures[name]().save(HERE / f"{name}.svg").name)


if __name__ == "__main__":
    main(sys.argv[1:])
