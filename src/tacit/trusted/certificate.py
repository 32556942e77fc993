"""How far off a public guess is, over a public list of questions. Called by the curator through `sensitivity.truth`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tacit.model.certificate import Certificate, Conjunctions
from tacit.model.query import GRID

if TYPE_CHECKING:
    from tacit.trusted.records import Records

Counts = NDArray[np.int64]


def order_statistics(certificate: Certificate, records: Records) -> Counts:
    """The errors of a guess, less a public offset, at some ranks among all the questions of a list.

    Guarantee: replacing one row moves each of them by at most 1, however long the list is. The count of a question
        moves by at most 1, as its weights lie in [0, 1]; so its error |truth - guess| does, and the offset does not
        move. If no number of a list rises by more than 1, neither does the k-th smallest; and if none falls by more
        than 1, neither does that. Rounding to whole steps and up to whole rows keeps it: ceil(x + 1) = ceil(x) + 1.
    Formula: ceil of the order statistics of |q(D) - g_q| - offset(g_q) over all listed q. Exact: whole numbers of grid
        steps whose sums stay below 2^53 in floats, by what `Conjunctions` and `Declared.check` refuse.
    Source: docs/understand/guarantees.md, "Certificates".
    """
    errors = np.concatenate([_errors(one, certificate, records) for one in certificate.lists])
    places = np.array(certificate.ranks) - 1
    found: Counts = np.partition(errors, places)[places]
    return -(-found // GRID)


def _errors(listed: Conjunctions, certificate: Certificate, records: Records) -> Counts:
    """|truth - guess| - offset of each question, in grid steps."""
    gaps = listed.sums(records.table(listed.names) * GRID - listed.guess)
    found: Counts = np.abs(gaps) - certificate.offset(listed.sums(listed.guess)) * GRID
    return found
