"""Made-up rows of a declared domain, for `tacit try`. Nobody's data: drawn at random from what is public."""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tacit.model.attribute import Attribute
from tacit.model.domain import Domain
from tacit.model.values import Listed, Value

TILT = 0.7  # below 1, shares of values differ much from each other: as in most tables


def write_rows(path: Path, domain: Domain, rows: int, seed: int, person: str | None, rows_per_person: int) -> None:
    """Write made-up rows with the columns that the domain is read from, and the person's."""
    rng = np.random.default_rng(seed)
    columns = {name: _column(attribute, rows, rng) for name, attribute in domain.items() if attribute.part is None}
    for name in _sources(domain):
        if name not in columns:
            columns[name] = _times(dt.date(2020, 1, 1), dt.date(2023, 12, 31), rows, rng)
        else:  # the day is that of the declared date; its hour is made up
            hours = rng.integers(0, 24, rows)
            days = columns[name] if _may_miss(domain, name) else _filled(columns[name])
            columns[name] = [f"{day} {hour:02d}:00:00" if day else day for day, hour in zip(days, hours, strict=True)]
    if person is not None:
        columns[person] = [str(i // rows_per_person) for i in range(rows)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _sources(domain: Domain) -> Iterator[str]:
    """The columns of times of which parts are declared; spelled like the attribute where there is one of that name."""
    declared = {name.lower(): name for name in domain}
    wanted = {attribute.of for attribute in (domain[name] for name in domain) if attribute.of is not None}
    yield from dict.fromkeys(declared.get(of.lower(), of) for of in sorted(wanted))


def _may_miss(domain: Domain, column: str) -> bool:
    """Whether all parts of a column of times have a label for rows without a value: else no such row is made up."""
    parts = (domain[name] for name in domain if (domain[name].of or "").lower() == column.lower())
    return all(part.missing is not None for part in parts)


def _filled(values: list[str]) -> list[str]:
    some = next(filter(None, values), "2020-01-01")
    return [value or some for value in values]


def _column(attribute: Attribute, rows: int, rng: np.random.Generator) -> list[str]:
    """Values of one attribute; each has a share of its own. What lies outside an ordered one is not made up."""
    places = [i for i in range(attribute.size) if i != attribute.other_index or isinstance(attribute.values, Listed)]
    shares = rng.dirichlet(np.full(len(places), TILT)) if len(places) <= 10_000 else None
    drawn = rng.choice(len(places), rows, p=shares)
    written = {i: _written(attribute.typical(places[i])) for i in np.unique(drawn).tolist()}
    return [written[i] for i in drawn.tolist()]


def _written(value: Value | None) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _times(first: dt.date, last: dt.date, rows: int, rng: np.random.Generator) -> list[str]:
    days, hours = rng.integers(first.toordinal(), last.toordinal() + 1, rows), rng.integers(0, 24, rows)
    return [
        f"{dt.date.fromordinal(day)} {hour:02d}:00:00" for day, hour in zip(days.tolist(), hours.tolist(), strict=True)
    ]
