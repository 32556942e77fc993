"""Whether the sampled databases can be trusted: public figures from public values only. For both samplers.

A chain that has not mixed reports a fine effective sample size, so we ask the ensemble instead: are all databases
inside their slabs, does the ensemble drift while it is stirred, and do the databases forget where they were?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.model.domain import Domain
from tacit.model.query import Query

PROBES = 40
_SEED = 20_100_605  # of the probes: fixed and public
MOST_DRIFT = 4.0  # standard errors; the largest of 40 of a mixed ensemble is beyond with probability below 0.3 %
MOST_MEMORY = 0.5
NOT_MIXED = "the databases have not mixed well, so more questions than needed may be hard"


@dataclass(frozen=True)
class Diagnostics:
    """What one run of moves shows. drift and memory compare the probes' values halfway with those at the end.

    infeasible: databases outside their slabs. drift: the largest change of a probe's mean, in standard errors of a
    difference of two independent ensembles. memory: the mean correlation, over databases, of a probe's value with its
    value half the sweeps before; 0 means forgotten.
    """

    databases: int
    infeasible: int
    drift: float
    memory: float

    @property
    def mixed(self) -> bool:
        """No database outside, a drift of at most MOST_DRIFT, and a memory of at most MOST_MEMORY."""
        return self.infeasible == 0 and self.drift <= MOST_DRIFT and self.memory <= MOST_MEMORY


def probes(domain: Domain, names: Sequence[str]) -> list[Query]:
    """PROBES random conjunctions of one to three of these attributes (of all, if none are named): always the same."""
    generator = np.random.Generator(np.random.PCG64(_SEED))
    names = [name for name in names or domain.names if domain[name].size > 1]
    found = []
    for k in range(PROBES if names else 0):
        chosen = generator.permutation(len(names))[: 1 + k % 3]
        conditions = []
        for a in chosen:
            size = domain[names[a]].size
            length = int(generator.integers(1, 1 + max(1, size // 2)))
            first = int(generator.integers(0, size - length + 1))
            conditions.append(Query.among(domain, names[a], range(first, first + length)))
        found.append(Query.all(conditions))
    return found


def diagnose(halfway: NDArray[np.float64], final: NDArray[np.float64], infeasible: int) -> Diagnostics:
    """From the probes' values [k, N] halfway through the sweeps and at their end."""
    databases = final.shape[1]
    change = np.abs(final.mean(axis=1) - halfway.mean(axis=1))
    spread = np.sqrt((final.var(axis=1) + halfway.var(axis=1)) / databases)
    return Diagnostics(
        databases=databases,
        infeasible=infeasible,
        drift=float((change[spread > 0] / spread[spread > 0]).max(initial=0.0)),
        memory=memory(halfway, final),
    )


def memory(before: NDArray[np.float64], after: NDArray[np.float64]) -> float:
    """The mean correlation, over databases, of a probe's value [k, N] with its earlier value."""
    a, b = (values - values.mean(axis=1, keepdims=True) for values in (before, after))
    scale = np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))
    moving = scale > 0  # probes on which the databases differ at all
    return float(((a * b).sum(axis=1)[moving] / scale[moving]).mean()) if moving.any() else 0.0
