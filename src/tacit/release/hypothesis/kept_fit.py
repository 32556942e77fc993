"""A fit as bytes and back, to the last bit: so that another process need not fit the same releases again."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from tacit.errors import TacitError
from tacit.model.domain import Domain
from tacit.release.hypothesis.cell_weights import Dense
from tacit.release.hypothesis.fit import Fitted
from tacit.release.hypothesis.fit_mixture import FittedMixture
from tacit.release.hypothesis.mixture import Mixture

MOST_CELLS = 2**22  # of a distribution that is kept: above that its file would be larger than it is worth


def packed(fitted: Fitted | FittedMixture) -> bytes | None:
    """All of a fit; None where that is too much."""
    if isinstance(fitted, FittedMixture):
        arrays: list[NDArray[Any]] = [fitted.logits, fitted.log_weights, *fitted.hypothesis.arrays()]
        return _written({"misfit": fitted.misfit, "numbers": fitted.numbers}, arrays)
    if fitted.hypothesis.domain.size > MOST_CELLS:
        return None
    facts = {
        "misfit": fitted.misfit,
        "sweeps": fitted.sweeps,
        "moving": fitted.moving,
        "pulls": list(fitted.pulls.items()),
        "tilts": list(fitted.tilts),
        "term_tilts": list(fitted.term_tilts),
    }
    return _written(facts, [fitted.hypothesis.weights, *fitted.tilts.values(), *fitted.term_tilts.values()])


def unpacked(content: bytes, domain: Domain, *, mixture: bool) -> Fitted | FittedMixture | None:
    """The fit that was packed; None where the bytes are no such thing for this domain."""
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            facts = json.loads(bytes(file["facts"]))
            arrays = [file[f"array{i}"] for i in range(len(file.files) - 1)]
        return _mixture(facts, arrays, domain) if mixture else _listed(facts, arrays, domain)
    except (OSError, ValueError, KeyError, TypeError, IndexError, EOFError, BadZipFile, TacitError):
        return None


def _written(facts: Mapping[str, Any], arrays: list[NDArray[Any]]) -> bytes:
    buffer = io.BytesIO()
    said = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    np.savez(buffer, allow_pickle=False, facts=said, **{f"array{i}": one for i, one in enumerate(arrays)})
    return buffer.getvalue()


def _mixture(facts: Mapping[str, Any], arrays: list[NDArray[Any]], domain: Domain) -> FittedMixture:
    logits, log_weights, weights, *laws = arrays
    return FittedMixture(Mixture(domain, weights, laws), facts["misfit"], facts["numbers"], logits, log_weights)


def _listed(facts: Mapping[str, Any], arrays: list[NDArray[Any]], domain: Domain) -> Fitted:
    cells, *tilts = arrays
    axes = [tuple(one) for one in facts["tilts"]]
    return Fitted(
        hypothesis=Dense(domain, cells),
        pulls={tuple(one): pull for one, pull in facts["pulls"]},
        misfit=facts["misfit"],
        sweeps=facts["sweeps"],
        moving=facts["moving"],
        tilts=dict(zip(axes, tilts[: len(axes)], strict=True)),
        term_tilts=dict(zip(facts["term_tilts"], tilts[len(axes) :], strict=True)),
    )
