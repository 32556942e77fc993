"""What an online construction pays and promises, from public parameters alone. For `online`, plans and forecasts."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacit.errors import ConfigError
from tacit.exact.price import gate_scales
from tacit.model.budget import Loss
from tacit.model.factor import GRID
from tacit.model.request import Distance, Lens

GATE_SHARE = 0.8  # of a hard answer's price: what decides that it is hard; the rest buys the answer itself
FALSE_HITS = 0.1  # the share of hard answers that may be wasted on questions whose guess was perfect


@dataclass(frozen=True)
class Terms:
    """What an online construction pays and promises, from public parameters alone; in counts, not fractions.

    A gate has one-sided noise of scale s1 on its threshold and s2 on each comparison, both less their means. A perfect
    guess passes the threshold T with probability at most exp(-(T + s2 - s1)/s2), so T = s2 (ln(k/f) - 1) + s1 wastes at
    most f hits on k such questions. A question whose lens shows more than T + s2 - s1 + t passes for easy only if the
    threshold's noise is above t, however many questions are asked; over c gates that has probability c exp(-t/s1).
    """

    hits: int
    gate_loss: Loss
    answer_loss: Loss
    threshold_scale: float
    comparison_scale: float
    confidence: float

    @classmethod
    def of(cls, total: Loss, *, hits: int, confidence: float, rows_per_person: int = 1) -> Terms:
        each = total.split(hits)
        gate_loss = Loss(each.measure, int(each.atoms * GATE_SHARE))
        if gate_loss.atoms == 0:
            raise ConfigError(f"{hits:,} hard answers are too many for a budget of {total}.")
        # as the gate itself will have them
        s1, s2 = (scale / GRID for scale in gate_scales(gate_loss, rows_per_person * GRID))
        return cls(hits, gate_loss, each - gate_loss, s1, s2, confidence)

    def threshold(self, questions: int) -> float:
        """Where a gate stands, by how many questions will be put to it."""
        wasted = max(1.0, FALSE_HITS * self.hits)
        return self.comparison_scale * (math.log(max(questions / wasted, math.e)) - 1) + self.threshold_scale

    def shown(self, threshold: float, most_gates: float | None = None) -> float:
        """With probability `confidence`, the lens of every easy question of the whole session shows at most this."""
        gates = most_gates or self.hits / GATE_SHARE  # a gate lost in a crash leaves its answer's share to buy others
        rare = math.log(gates / (1 - self.confidence))
        return threshold + self.comparison_scale + self.threshold_scale * (rare - 1)

    def shown_alone(self, threshold: float) -> float:
        """A question put to a gate passes for easy while its lens shows more than this with a chance of 1 - confidence.

        For one question by itself: docs/understand/guarantees.md, "One answer by itself". In grid steps, with noises R
        and Z of scales S1 and S2, the chance is at most Pr[R >= Z + d] = K exp(-d/S1) with
        K = (1 - q2)/(1 - q1 q2) and q = exp(-1/S).
        """
        first, second = 1 / (self.threshold_scale * GRID), 1 / (self.comparison_scale * GRID)
        share = math.expm1(-second) / math.expm1(-first - second)
        rare = math.log(share / (1 - self.confidence))
        return max(0.0, threshold + self.comparison_scale + self.threshold_scale * (rare - 1))

    @property
    def each(self) -> Loss:
        """The price of a hard answer, with the gate that found it."""
        return self.gate_loss + self.answer_loss


def farthest(lens: Lens, shown: float) -> float | None:
    """How far off a guess can be whose lens shows at most this; None if any distance is possible.

    The lens of a distance is the error itself. The median of databases is off by more than e only if half of them are,
    so their lens shows at least

        reach (1 - exp(-e/reach)) / 2,

    which is at most `shown` up to e = -reach ln(1 - 2 shown/reach): about 2 shown for a long reach.
    """
    if isinstance(lens, Distance):
        return shown
    twice = 2 * shown * (1 + 2.0**-11) / lens.reach  # the lens is a little lower than it should be
    return -lens.reach * math.log1p(-twice) + 1 if twice < 1 else None
