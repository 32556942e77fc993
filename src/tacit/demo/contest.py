"""A thousand questions about the demonstration's table: fresh noise for each, and Tacit, with the same budget.

The table is public, so what is measured here is the error itself. Nothing else in Tacit may look at the truth.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import as_file

import duckdb
import numpy as np
from numpy.typing import NDArray

from tacit.demo import DOMAIN, FILE, view
from tacit.errors import BudgetExhausted
from tacit.model import sql
from tacit.model.answer import Answer
from tacit.model.ask import Count
from tacit.model.factor import Factor
from tacit.model.query import Query
from tacit.release.hypothesis.cell_weights import Dense
from tacit.release.iterative import Weights
from tacit.session import Session

SELECT = "SELECT COUNT(*) FROM data WHERE "
BATCH = 20  # questions between two looks at the screen
MOST_CONDITIONS = 4
ONE_MORE = "visits >= 2 AND health = 'fair' AND limited AND NOT deductible"  # asked when the others are

# Conditions of the questions that are shown one by one. The second asks for the rows of the first in other words.
_SHOWN = (
    "visits = 0",
    "NOT (visits > 0)",
    "limited AND diseases >= 20",
    "coinsurance = 0 AND visits >= 5",
    "health = 'fair' AND visits >= 5",
)


class Truth:
    """The exact counts of the demonstration's table."""

    def __init__(self) -> None:
        names = list(DOMAIN)
        columns = ", ".join("LEAST(visits, 20)" if name == "visits" else name for name in names)  # as the domain clamps
        with as_file(FILE) as path, duckdb.connect() as connection:
            found = connection.execute(f"SELECT {columns}, COUNT(*) FROM ({view(path)}) GROUP BY ALL").fetchall()
        self.counts: NDArray[np.float64] = np.zeros([DOMAIN[name].size for name in names])
        for *values, rows in found:
            place = tuple(DOMAIN[name].locate(name, value) for name, value in zip(names, values, strict=True))
            self.counts[place] += rows  # several values of a number share a bin
        self._rows = float(self.counts.sum())
        self._table = Dense(DOMAIN, self.counts / self._rows)

    def of(self, query: Query) -> int:
        """How many rows a query counts."""
        return round(self._table.answer(query) * self._rows)


@dataclass
class Contestant:
    """One way of answering: its session, and how far off its answers have been so far."""

    name: str
    session: Session
    errors: list[int] = field(default_factory=list)  # answer minus truth, in the order of asking
    within: list[bool] = field(default_factory=list)  # whether the truth was within the error bar
    left: list[float] = field(default_factory=list)  # the share of the budget, after each batch

    @property
    def mean(self) -> float:
        """The mean distance from the truth."""
        return float(np.abs(self.errors).mean())

    @property
    def worst(self) -> int:
        return int(np.abs(self.errors).max())

    @property
    def covered(self) -> float:
        """The share of the answers whose error bar holds the truth."""
        return float(np.mean(self.within))

    @property
    def share_left(self) -> float:
        """The share of the budget that is left."""
        return self.session.left.atoms / self.session.total.atoms

    def answers_one_more(self, condition: str) -> str:
        """What becomes of the next question: it is free, bought or refused."""
        try:
            answer = self.session.ask(SELECT + condition)
        except BudgetExhausted:
            return "refused"
        return "bought" if answer.cost.atoms else "free"


def conditions(number: int, seed: int = 1) -> dict[str, Query]:
    """Different random conditions on one to four columns: no two of them ask for the same rows, or for the rest."""
    rng, found = random.Random(seed), dict[str, tuple[str, Query]]()
    while len(found) < number:
        names = rng.sample(list(DOMAIN), rng.randint(1, MOST_CONDITIONS))
        words, queries = zip(*(_condition(rng, name) for name in names), strict=True)
        query = Query.all(queries)
        found.setdefault(query.core.key, (" AND ".join(words), query))
    return dict(found.values())


def _condition(rng: random.Random, name: str) -> tuple[str, Query]:
    """A condition on one column, in words and as what they are read as: reading a thousand texts would take seconds."""
    attribute = DOMAIN[name]
    chosen: Sequence[int]
    if attribute.kind == "boolean":
        words = rng.choice((name, f"NOT {name}"))
        chosen = [int(words == name)]
    elif attribute.kind == "category":
        labels = [f"'{attribute.label(i)}'" if name == "health" else attribute.label(i) for i in range(attribute.bins)]
        chosen = sorted(rng.sample(range(attribute.bins), rng.randint(1, attribute.bins - 1)))
        listed = ", ".join(labels[i] for i in chosen)
        words = f"{name} = {listed}" if len(chosen) == 1 else f"{name} IN ({listed})"
    else:
        first, end = sorted(rng.sample(range(attribute.bins + 1), 2))
        if (first, end) == (0, attribute.bins):  # everyone
            first = 1
        chosen = range(first, end)
        low, high = (f"{attribute.edge(i):g}" for i in (first, end))
        parts = [f"{name} >= {low}"] * (first > 0) + [f"{name} < {high}"] * (end < attribute.bins)
        words = " AND ".join(parts)
    return words, Query.among(DOMAIN, name, chosen)


def query_of(condition: str) -> Query:
    """The query that counts the rows of a condition."""
    asked = sql.parse(SELECT + condition, DOMAIN)
    assert isinstance(asked, Count)
    return asked.query


def contest(contestants: Sequence[Contestant], asked: Mapping[str, Query], truth: Truth) -> Iterator[str]:
    """Ask all contestants everything, in small batches. Gives the condition that was asked last, after each."""
    words, queries = list(asked), list(asked.values())
    for first in range(0, len(asked), BATCH):
        batch = queries[first : first + BATCH]
        truths = [truth.of(query) for query in batch]
        for one in contestants:
            answers = one.session.ask_many(batch)
            errors = [round(answer.value) - true for answer, true in zip(answers, truths, strict=True)]
            one.errors += errors
            one.within += [abs(error) <= (a.error or 0.0) for error, a in zip(errors, answers, strict=True)]
            one.left.append(one.share_left)
        yield words[first + len(batch) - 1]


@dataclass(frozen=True)
class Single:
    """A condition, the answer to how many rows meet it, and the truth."""

    words: str
    answer: Answer
    truth: int


def ask_singly(session: Session, truth: Truth) -> list[Single]:
    """The questions that are shown one by one."""
    queries = [query_of(condition) for condition in _SHOWN]
    return [Single(*one) for one in zip(_SHOWN, session.ask_many(queries), map(truth.of, queries), strict=True)]


@dataclass(frozen=True)
class Worst(Single):
    """The question on which what is published is most wrong, found with the truth in hand, and what came of it."""

    combinations: int  # of values, whose rows are counted
    published: int  # what follows from what is published


def ask_worst(session: Session, truth: Truth) -> Worst | None:
    """Count the rows of all combinations of values of which there are more than is published.

    No question is further off. None where a session does not publish something about every combination.
    """
    known = session.knowledge
    if not isinstance(known, Weights) or not isinstance(known.hypothesis, Dense):
        return None
    names = sorted(DOMAIN)
    published = np.asarray(known.hypothesis.marginal(names)) * session.rows
    true = truth.counts.transpose([list(DOMAIN).index(name) for name in names])
    more = true > published
    query = Query((Factor(tuple(names), more.astype(np.uint8), 1),), complement=False)
    (answer,) = session.ask_many([query])
    words, expected = "the worst question there is", round(float(published[more].sum()))
    return Worst(words, answer, int(true[more].sum()), int(more.sum()), expected)
