"""A laboratory: the seeds' own algorithms, run on an open session. docs/understand/seeds.md shows every call.

What is bought here is charged to the session's ledger like anything else, so its budget holds whatever is tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.errors import InvalidQuery, NeedsData
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.release.public import Public
from tacit.release.samplers.polytope import Slabs
from tacit.session import Session
from tacit.theory.figure_1 import FigureOne, MedianBasic, MedianDoubling
from tacit.theory.median_efficient import grid_masses, grid_start, grid_step
from tacit.theory.median_paper import Phase

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator

Floats = NDArray[np.float64]


def figure_1(
    session: Session,
    *,
    questions: int,
    alpha: float,
    records: int,
    hard: int,
    tolerance: float | None = None,
    seed: int = 0,
) -> MedianBasic:
    """The median mechanism as printed (Roth & Roughgarden 2010, figure 1), with constants that the budget pays for.

    `records` of each database, `hard` answers at most, and `tolerance`, alpha/50 in the figure, are free: they decide
    how accurate it is. `MedianBasic.of_paper` has the paper's own, and says how many rows these need.
    """
    public, curator = _doors(session)
    phase = Phase(questions, float(public.total), 0.0, 1 - session.confidence)
    figure = FigureOne.of_phase(phase, alpha=alpha, records=records, hard=hard, rows=public.rows, tolerance=tolerance)
    return MedianBasic(public, curator, figure, seed=seed, confidence=session.confidence)


def figure_1_doubling(
    session: Session,
    *,
    first: int,
    alpha: float,
    records: int,
    hard: int,
    most: int | None = None,
    tolerance: float | None = None,
    seed: int = 0,
) -> MedianDoubling:
    """The same where nobody knows how many questions will come: phases of first, 2 first, 4 first, ... questions."""
    public, curator = _doors(session)

    def figure(phase: Phase) -> FigureOne:
        return FigureOne.of_phase(phase, alpha=alpha, records=records, hard=hard, rows=public.rows, tolerance=tolerance)

    return MedianDoubling(public, curator, figure, first=first, most=most, seed=seed, confidence=session.confidence)


def every_interval(session: Session, name: str) -> dict[tuple[int, int], float]:
    """Rung 1 of Smith & Ullman's ladder: each interval of bins first <= i < end is a question of its own.

    Ask it of a session with `mechanism="direct"` and as many questions as there are intervals.
    """
    bins = _bins(session, name)
    cuts = [pair for pair in combinations(range(bins + 1), 2) if pair != (0, bins)]
    answers = session.ask_many([Query.among(session.domain, name, range(*pair)) for pair in cuts])
    found = {pair: float(answer.value) for pair, answer in zip(cuts, answers, strict=True)}
    return found | {(0, bins): float(session.rows)}


def prefixes_and_differences(session: Session, name: str) -> Floats:
    """Rung 2: rows below the start of each bin and below the end of the last, each a question; intervals subtract two.

    Ask it of a session with `mechanism="direct"` and one question less than there are bins.
    """
    bins = _bins(session, name)
    answers = session.ask_many([Query.among(session.domain, name, range(end)) for end in range(1, bins)])
    return np.array([0.0, *(float(answer.value) for answer in answers), float(session.rows)])


def grid_walk(
    domain: Domain,
    told: Sequence[tuple[Query, float, float]],
    *,
    start: Floats,
    step: float,
    steps: int,
    chains: int,
    seed: int = 0,
) -> Floats:
    """The random walk of section 5.1 on the fractional databases that fit some answers: a column of masses a chain.

    told: (question, answer, width): the answer as a fraction of n, and how far from it a database may be.
    start: the masses of one database that fits them all, from which every chain sets out.
    """
    slabs = Slabs.whole(np.ones(domain.size))
    for query, centre, width in told:
        slabs = slabs.within(query.table(domain.names, domain.shape).ravel() / query.unit, centre, width)
    masses = np.repeat(np.asarray(start, dtype=np.float64)[:, None], chains, axis=1)
    rng = np.random.Generator(np.random.PCG64(seed))
    return grid_masses(grid_step(rng, slabs, grid_start(slabs, masses, step), steps))


def _bins(session: Session, name: str) -> int:
    attribute = session.domain[name]
    if not attribute.ordered or attribute.bins < attribute.size:
        raise InvalidQuery(f"the ladder is for ordered attributes whose values all lie in bins; {name} is none.")
    return attribute.bins


def _doors(session: Session) -> tuple[Public, Curator]:
    if session._curator is None:
        raise NeedsData("A laboratory needs the data; here is only what was published.")
    return session._public, session._curator
