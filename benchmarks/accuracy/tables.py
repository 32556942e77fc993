"""A table that questions are asked of: Adult, or made-up rows of the same shape. For benchmarks and their tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tacit
from tacit.exact.price import Sensitivity
from tacit.load import open_source
from tacit.model.attribute import Attribute
from tacit.model.budget import Budget
from tacit.model.domain import Domain
from tacit.trusted.cells import read_records
from tacit.trusted.records import Records

MILD, PURE = Budget(epsilon=1.0, delta=1e-9), Budget(epsilon=1.0, delta=0.0)
ONE_COUNT, PARTITION = Sensitivity(1, 1), Sensitivity(2, 2)  # one row replaced moves a count by 1, two cells by 1 each
ROWS = 48_842
SEED = 1

SHARED = Path(__file__).parents[2] / "../shared/data"
ADULT = SHARED / "adult/adult.csv"
DOMAIN = Domain(
    {
        "age": tacit.integer(0, 84, width=5),
        "workclass": tacit.category(range(9)),
        "education": tacit.integer(0, 15),
        "marital": tacit.category(range(7)),
        "race": tacit.category(range(5)),
        "sex": tacit.category(range(2)),
        "hours": tacit.integer(0, 99, width=10),
        "income": tacit.category(range(2)),
    }
)
_VIEW = """
    SELECT age, workclass, "education-num" AS education, "marital-status" AS marital, race, sex,
           "hours-per-week" AS hours, "income>50K" AS income
    FROM read_csv('{path}')
"""
# all 14 attributes, with the sizes that come with the file
ALL = {
    "age": 85,
    "workclass": 9,
    "fnlwgt": 100,
    "education-num": 16,
    "marital-status": 7,
    "occupation": 15,
    "relationship": 6,
    "race": 5,
    "sex": 2,
    "capital-gain": 100,
    "capital-loss": 100,
    "hours-per-week": 99,
    "native-country": 42,
    "income>50K": 2,
}


@dataclass(frozen=True)
class Table:
    """What a session is opened on, and the truth beside it."""

    name: str
    data: Any
    records: Records

    @property
    def domain(self) -> Domain:
        return self.records.domain

    @property
    def rows(self) -> int:
        return self.records.rows


def table() -> Table:
    """Adult with 8 attributes where it lies beside the repository, made-up rows otherwise."""
    if ADULT.exists():
        data: Any = _VIEW.format(path=str(ADULT.resolve()).replace("'", "''"))
        return Table("Adult", data, read_records(open_source(data), DOMAIN))
    data = made_up(DOMAIN, ROWS, SEED)
    return Table("made-up rows", data, read_records(open_source(data), DOMAIN))


def made_up(domain: Domain, rows: int, seed: int, *, classes: int = 6, spread: float = 0.5) -> pd.DataFrame:
    """Rows of a few latent classes, each with laws of its own for the attributes, drawn from Dirichlet laws."""
    rng = np.random.Generator(np.random.PCG64(seed))
    member = rng.choice(classes, size=rows, p=rng.dirichlet(np.ones(classes)))
    columns = {}
    for name in domain.names:
        attribute = domain[name]
        laws = rng.dirichlet(np.full(attribute.size, spread), size=classes).cumsum(axis=1)
        codes = (rng.random(rows)[:, None] > laws[member]).sum(axis=1).clip(max=attribute.size - 1)
        columns[name] = [attribute.typical(code) for code in codes.tolist()]
    return pd.DataFrame(columns)


def adult_codes() -> dict[str, np.ndarray]:
    """All 14 attributes of Adult as codes; FileNotFoundError where the file is not there."""
    frame = pd.read_csv(ADULT)
    return {name: frame[name].to_numpy() for name in ALL}


def codes(records: Records) -> dict[str, np.ndarray]:
    """A column of codes for each attribute, a number for each row, in no particular order."""
    return {name: np.repeat(places, records._counts) for name, places in records._codes.items()}


def of_frame(name: str, frame: pd.DataFrame, attributes: dict[str, Attribute]) -> Table:
    domain = Domain(attributes)
    data = frame[list(attributes)].reset_index(drop=True)
    return Table(name, data, read_records(open_source(data), domain))
