"""Which questions the certificate of a start answers: by the ledger once it is bought, and before by what is public."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from tacit.model.budget import Loss
from tacit.model.certificate import Certificates
from tacit.model.domain import Domain
from tacit.model.factor import GRID, Factor
from tacit.model.query import Query
from tacit.release.base import BOXES, MOST_MIXED, SAMPLE, Certified, certifiable, rank_of, runs_of
from tacit.release.classes import MEANS, MOST_CELLS, MOST_RUNS, MOST_SUMMED, SUMS, attributes, boxed, summed
from tacit.release.corner_sums import Side
from tacit.release.public import Public


class Reach(NamedTuple):
    """What a certificate answers: by the name of a list, how many attributes its questions have at most.

    runs: how many runs of values its conditions on ordered attributes have at most.
    """

    domain: Domain
    most: Mapping[str, int]
    runs: int

    def answers(self, query: Query) -> bool:
        """Whether `Base.estimate` has an answer to a question that nothing told before; to a constant there is one."""
        factors = query.factors
        if not factors:
            return True
        if len(factors) > self.most[SAMPLE] or any(len(factor.scope) > 1 for factor in factors):
            return False
        if math.prod(factor.unit for factor in factors) > GRID or self.domain.size_of(query.scope) > MOST_CELLS:
            return False
        sides = [self._side(factor, alone=len(factors) == 1) for factor in factors]
        kind = next((side.ramp for side in sides if side.unit > 1), SAMPLE)
        if len(sides) <= self.most.get(kind, 0) and all(side.listed for side in sides):
            return True
        return len(sides) <= self.most.get(BOXES, 0) and math.prod(side.boxes for side in sides) <= MOST_MIXED

    def _side(self, factor: Factor, *, alone: bool) -> Side:
        """What is asked of an attribute; of one alone, what is asked of it or its rest, whichever is certified."""
        side = Side.of(factor, self.domain, self.runs)
        if not alone:
            return side
        other = Side.of(factor.flipped(), self.domain, self.runs)
        return max(side, other, key=lambda one: (one.listed, -one.boxes))


def reach_of(public: Public, bought: Mapping[str, Certified], loss: Loss, confidence: float) -> Reach | None:
    """What is answered by the certificate that was bought, or would be for this loss.

    None where there is none, and for one of an earlier version, which had no list of the parts of means: whatever was
    answered by it is answered as it was.
    """
    if SAMPLE in bought:
        if not isinstance(bought[SAMPLE].measured.question, Certificates):
            return None
        most = {kind: one.certificate.attributes for kind, one in bought.items()}
        return Reach(public.domain, most, runs_of(bought[SAMPLE].certificate))
    if not certifiable(public, loss, confidence):
        return None
    return Reach(public.domain, planned(public.domain, public.rows, confidence), MOST_RUNS)


@lru_cache(maxsize=64)
def planned(domain: Domain, rows: int, confidence: float) -> dict[str, int]:
    """What `certify` would list of any start: how many attributes the questions of each list have at most."""
    most = attributes(domain)
    found = {SAMPLE: most, BOXES: boxed(domain, most)}
    for kind in (MEANS, SUMS):
        listed = summed(domain, rows, kind)
        questions = sum(one.questions for one in listed)
        if listed and rank_of(questions, (one.scope for one in listed), domain, confidence) <= questions:
            found[kind] = MOST_SUMMED
    return found
