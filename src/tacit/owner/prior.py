"""The public table that an owner gives for the start to be drawn to: any table, or a file that was published."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import ConfigError, TacitError
from tacit.load import open_source
from tacit.model.attribute import Attribute
from tacit.model.domain import Domain
from tacit.trusted.cells import read_cells
from tacit.trusted.copy import AnyRecords
from tacit.trusted.records import Records

if TYPE_CHECKING:  # most sessions have no prior, and read none
    from tacit.release.hypothesis.prior import Prior

_PRIVATE = "it is the private table itself, and a prior is public: it goes into whatever is published."


def check_prior(prior: Any, data: Any) -> None:
    """Refuse the private table as its own prior, where both are one object or name one file; neither is read."""
    paths = isinstance(prior, str | Path) and isinstance(data, str | Path)
    if prior is not None and (os.path.realpath(prior) == os.path.realpath(data) if paths else prior is data):
        raise ConfigError(f"The prior cannot be used: {_PRIVATE}")


def read_prior(given: Any, domain: Domain, private: AnyRecords | None = None) -> Prior:
    """A public table over the attributes that it shares with the domain: a published file, or any other table.

    A copy of the private rows is refused, where it has all their attributes. The owner alone sees that.
    """
    from tacit.release.hypothesis.prior import Prior

    if isinstance(given, Prior):
        return given
    try:
        if _is_published(given):
            return _published(given, domain)
        source = open_source(given)
        columns = {column.name.lower() for column in source.describe()}
        names = [name for name in domain if name.lower() in columns]
        if not names:
            raise ConfigError("it has no attribute of the domain.")
        codes, counts = read_cells(source, domain.project(names))
        if private is not None and len(names) == len(domain) and _same(Records(domain, codes, counts), private):
            raise ConfigError(_PRIVATE)
        return Prior.of(names, codes, counts)
    except TacitError as error:
        raise ConfigError(f"The prior cannot be used: {error.sentence}") from None


def _same(public: Records, private: AnyRecords) -> bool:
    """Whether both have the same rows; of rows that stay in an engine, the same values of every attribute."""
    if isinstance(private, Records):
        key = secrets.token_bytes(32)
        return public.fingerprint(key) == private.fingerprint(key)
    alike = (np.array_equal(public.table((name,)), private.table((name,))) for name in public.domain)
    return public.rows == private.rows and all(alike)


def _is_published(given: Any) -> bool:
    """Whether it is a file that `tacit.publish` wrote: no table that is read here begins with a brace."""
    if not isinstance(given, str | Path) or not os.path.isfile(given):
        return False
    with open(given, "rb") as file:
        return file.read(1) == b"{"


def _published(path: str | Path, domain: Domain) -> Prior:
    """As many made-up rows as the published table has, with the codes of this domain."""
    from tacit.public import read
    from tacit.release.hypothesis.prior import MOST_PRIOR_CELLS, Prior

    with read(path) as session:
        names = [name for name in domain if name in session.domain]
        if not names:
            raise ConfigError("it has no attribute of the domain.")
        drawn = session.synthetic(min(session.rows, MOST_PRIOR_CELLS))
        codes = [_recoded(name, session.domain[name], domain[name]) for name in names]
        theirs = [drawn.codes[drawn.names.index(name)] for name in names]
    columns = [code[their] for code, their in zip(codes, theirs, strict=True)]
    cells, counts = np.unique(np.stack(columns), axis=1, return_counts=True)
    return Prior.of(names, list(cells), counts)


def _recoded(name: str, theirs: Attribute, ours: Attribute) -> NDArray[np.intp]:
    """Our code for each of theirs, by the value in the middle of a bin."""
    if theirs == ours:
        return np.arange(ours.size)
    values = [theirs.typical(code) for code in range(theirs.size)]
    if None in values and ours.missing_index is None:
        raise ConfigError(f"values of {name} are missing in it, and the domain declares none.")
    return np.array([ours.missing_index if value is None else ours.locate(name, value) for value in values])
