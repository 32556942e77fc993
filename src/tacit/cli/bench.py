"""`tacit bench`: seconds and errors of the mechanisms on a made table. Called by the command line.

The table is made up from a public seed, so its truth may be looked at; the answers have fresh noise each time.
"""

from __future__ import annotations

import csv
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.model.attribute import category
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.model.expression import Expression, count
from tacit.opening import open_session
from tacit.release.hypothesis.dense import MAX_CELLS

if TYPE_CHECKING:
    from rich.console import Console

DELTA = 1e-9
MOST_HISTOGRAM = 200_000  # cells: drawing more noise would take most of the minute
BASELINE = "independent noise"


@dataclass(frozen=True)
class Measured:
    """One mechanism: seconds to open, for the first answer and for all of them; errors as fractions of the rows."""

    mechanism: str
    open_seconds: float
    first_seconds: float
    all_seconds: float
    mean_error: float
    largest_error: float
    mean_ratio: float = 1.0
    largest_ratio: float = 1.0


@dataclass(frozen=True)
class Bench:
    """What was measured, on what."""

    rows: int
    cells: int
    questions: int
    epsilon: float
    seed: int
    measured: tuple[Measured, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def measure(
    *, rows: int, columns: int, values: int, questions: int, epsilon: float, seed: int, median: bool = False
) -> Bench:
    """Open the same made table with each mechanism, each with a budget of its own, and ask the same questions."""
    budget = Budget(epsilon=epsilon, delta=DELTA)
    draw = np.random.Generator(np.random.PCG64(seed))
    table = _table(draw, rows, columns, values)
    names = [f"c{i}" for i in range(columns)]
    domain = Domain({name: category(list(range(values))) for name in names})
    asked = [_question(draw, names, values, table) for _ in range(questions)]
    runs: dict[str, dict[str, Any]] = {BASELINE: {"mechanism": "direct"}, "auto": {"mechanism": "auto"}}
    if domain.size <= MOST_HISTOGRAM:
        runs["noisy histogram"] = {"mechanism": "histogram"}
    if domain.size <= MAX_CELLS:
        runs["iterative, uniform start"] = {"mechanism": "iterative"}
    if median:
        runs["median"] = {"mechanism": "median"}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "made.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            writer.writerows(table.T.tolist())
        _run("warming up", {"mechanism": "direct"}, folder, domain, budget, asked[:2], rows)  # imports are not counted
        found = [_run(name, options, folder, domain, budget, asked, rows) for name, options in runs.items()]
    base = found[0]
    compared = tuple(_against(base, one) for one in found)
    return Bench(rows, domain.size, questions, epsilon, seed, compared)


def _table(draw: np.random.Generator, rows: int, columns: int, values: int) -> NDArray[np.int64]:
    """Correlated columns: a hidden class of each row tilts every column, as in tables of people."""
    hidden = draw.integers(0, 3, rows)
    shares = draw.dirichlet(np.full(values, 0.7), (columns, 3))
    made = np.empty((columns, rows), np.int64)
    for column in range(columns):
        ends = shares[column].cumsum(axis=1)[hidden]
        made[column] = np.minimum((draw.random(rows)[:, None] > ends).sum(axis=1), values - 1)
    return made


def _question(
    draw: np.random.Generator, names: list[str], values: int, table: NDArray[np.int64]
) -> tuple[Expression, int]:
    """A condition on one to three columns, and how many rows of the made table meet it."""
    chosen = draw.choice(len(names), size=int(draw.integers(1, min(3, len(names)) + 1)), replace=False)
    truth = np.ones(table.shape[1], bool)
    wanted: dict[str, list[int]] = {}
    for column in chosen.tolist():
        listed = draw.choice(values, size=int(draw.integers(1, values)), replace=False).tolist()
        wanted[names[column]] = listed
        truth &= np.isin(table[column], listed)
    return count(**wanted), int(truth.sum())


def _run(
    name: str,
    options: dict[str, Any],
    folder: Path,
    domain: Domain,
    budget: Budget,
    asked: list[tuple[Expression, int]],
    rows: int,
) -> Measured:
    start = time.perf_counter()
    with open_session(
        data=str(folder / "made.csv"),
        domain=domain,
        budget=budget,
        ledger=folder / f"{name}.tacit",
        anchor=folder / "anchors.sqlite",
        questions=len(asked),
        **options,
    ) as session:
        opened = time.perf_counter()
        first = session.ask_many([asked[0][0]])
        answered = time.perf_counter()
        rest = session.ask_many([question for question, _ in asked[1:]])
        done = time.perf_counter()
        name += f": {session.choice.mechanism}" if name == "auto" else ""
    errors = [abs(float(a.value) - truth) / rows for a, (_, truth) in zip([*first, *rest], asked, strict=True)]
    return Measured(
        mechanism=name,
        open_seconds=opened - start,
        first_seconds=answered - opened,
        all_seconds=done - opened,
        mean_error=float(np.mean(errors)),
        largest_error=max(errors),
    )


def _against(base: Measured, one: Measured) -> Measured:
    from dataclasses import replace

    return replace(
        one,
        mean_ratio=_ratio(one.mean_error, base.mean_error),
        largest_ratio=_ratio(one.largest_error, base.largest_error),
    )


def _ratio(one: float, other: float) -> float:
    return one / other if other else 1.0


def print_bench(found: Bench, to: Console) -> None:
    """The figures as a table."""
    from rich.table import Table as Grid

    sizes = f"{found.rows:,} rows, {found.cells:,} cells, {found.questions:,} questions, epsilon = {found.epsilon:g}"
    to.print(f"[bold]A made table[/]: {sizes}, delta = {DELTA:g}")
    grid = Grid("mechanism")
    for heading in ("open (s)", "first answer (s)", "all (s)", "mean error", "largest error", "mean ×", "largest ×"):
        grid.add_column(heading, justify="right", no_wrap=True)
    for one in found.measured:
        seconds = (one.open_seconds, one.first_seconds, one.all_seconds)
        errors = (one.mean_error, one.largest_error, one.mean_ratio, one.largest_ratio)
        grid.add_row(one.mechanism, *(f"{s:.2f}" for s in seconds), *(f"{e:.2g}" for e in errors))
    to.print(grid, soft_wrap=False)
    to.print("Errors are fractions of the rows; × is against independent noise in this run.", style="dim")
