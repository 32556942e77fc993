"""The gate: one run of AboveThreshold (sparse vector). Opened by the curator.

It says whether a question's value passes a noisy threshold, for as many questions as are asked, at one price, until the
first that does. Then it is shut, for good and for everybody.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from tacit.errors import AnswerWithheld, InvalidQuery
from tacit.model.budget import Loss
from tacit.model.entry import GateTerms, Intent, Shut, decode, encode
from tacit.model.facts import Receipt
from tacit.model.query import GRID, Query
from tacit.model.statistic import Statistic
from tacit.store.chain import Line
from tacit.store.log import Held
from tacit.trusted.ledger import Ledger, Outcome
from tacit.trusted.lens import Lens, look, own_lens
from tacit.trusted.loss import Sensitivity, gate_price, gate_scales
from tacit.trusted.noise import draw_geometric
from tacit.trusted.questions import own, own_loss
from tacit.trusted.records import Records

_CHUNK = 256  # comparisons drawn at a time


class Gate:
    """An open gate. Only its first hit is ever told; the numeric answer to that question needs fresh noise.

    Guarantee: everything a gate says, over its whole life, costs its one price. While it compares, the noise of its
        threshold is in no file: if anything goes wrong before what it said is stored, the gate is lost, hit or not.
    Formula: lens(truth) + Geometric(comparison) >= threshold + Geometric(threshold's), both noises less their means.
    Source: Dwork, Naor, Reingold, Rothblum & Vadhan 2009; Lyu, Su & Li 2017, algorithm 1; the proof for one-sided noise
        is in docs/understand/privacy.md, "The gate".
    """

    def __init__(self, ledger: Ledger, records: Records, intent: int, terms: GateTerms) -> None:
        self._ledger, self._records, self._intent = ledger, records, intent
        self._held: Held | None = None  # the threshold's noise, while it is in no file and may be put back
        self._threshold: float = terms.threshold
        self._scales: tuple[float, float] = terms.threshold_scale, terms.comparison_scale  # in counts
        self.cost = Loss(ledger.total.measure, terms.atoms)

    @property
    def threshold(self) -> float:
        """Where it stands, in counts. Guarantee: public. Formula: as opened. Source: the caller."""
        return self._threshold

    @property
    def threshold_scale(self) -> float:
        """Of the threshold's noise, in counts. Guarantee: public. Formula, source: `loss.gate_scales`."""
        return self._scales[0]

    @property
    def comparison_scale(self) -> float:
        """Of each comparison's noise, in counts. Guarantee: public. Formula, source: `loss.gate_scales`."""
        return self._scales[1]

    @classmethod
    def open(cls, ledger: Ledger, records: Records, *, threshold: float, loss: Loss, owner: str) -> Gate:
        """Pay for a gate and draw its threshold.

        Guarantee: the whole price is reserved, durably, before anything is compared; the threshold's noise is stored
            with it, outside everything that is hashed or shown.
        Formula: `loss.gate_scales`, for a value that moves by one count for each row that a person may have.
        Source: see the class; a lens is 1-Lipschitz, so m replaced rows move it by at most m counts.
        """
        if type(threshold) not in (int, float) or not abs(threshold) < 2**40:
            raise InvalidQuery(f"a threshold is a count, not {threshold!r}.")
        loss = own_loss(loss, ledger.total.measure)
        move = Sensitivity(1, 1).times(records.rows_per_person).l1 * GRID
        first, second = gate_scales(loss, move)
        cost = gate_price(first, second, move, loss.measure)
        terms = GateTerms(owner, float(threshold), first / GRID, second / GRID, cost.atoms)
        noise = int(draw_geometric(first, 1)[0])
        intent = ledger.reserve(cost, purpose=terms, private=json.dumps(noise))
        return cls(ledger, records, intent, terms)

    @classmethod
    def resume(cls, ledger: Ledger, records: Records, *, owner: str) -> Gate | None:
        """The gate of this owner that is still open, if there is one.

        Guarantee: the same threshold noise as before, so that nothing is paid or learned by stopping and starting.
        Formula: the newest gate among the ledger's unanswered intents. Source: see the class.
        """
        for entry in reversed(ledger.log.open_intents()):
            intent = decode(entry.kind, entry.body)
            terms = intent.purpose if isinstance(intent, Intent) else ""
            ours = isinstance(terms, GateTerms) and terms.owner == owner
            if isinstance(terms, GateTerms) and ours and ledger.log.private_of(entry.seq) is not None:
                return cls(ledger, records, entry.seq, terms)
        return None

    def first_above(self, queries: Sequence[Query | Statistic], lenses: Sequence[Lens]) -> tuple[int, Receipt] | None:
        """The first question whose value passes the noisy threshold, and the receipt of the shut gate; or None.

        Guarantee: fresh comparison noise for every question. A hit is told only after the gate is durably shut.
            Without a hit the gate is held, and says nothing more until `Curator.tell` has stored what followed from it.
        Formula: see the class. Source: see the class.
        """
        copies, lenses = own_pairs(queries, lenses, self._records)
        with self._ledger.log.turn():
            held = self._ledger.take_private(self._intent)
            if held is None:
                raise InvalidQuery("the gate is shut, or held until what it said is stored.")
            try:
                scales = self._scales[0] * GRID, self._scales[1] * GRID
                found = first_passing(self._records, copies, lenses, self._threshold, scales, json.loads(held.value))
            except Exception:  # what went wrong may depend on the data, so nothing is said about it
                found = -1
            if found is not None:
                del held  # the noise is of no more use, and no traceback shows it
            if found == -1:
                raise AnswerWithheld("The answers could not be worked out, and the gate is lost with what it cost.")
            if found is not None:
                return found, self._shut()
            self._held = held  # only now: whatever failed before has lost the gate
            return None

    def put_back(self) -> Held | None:
        """What `Ledger.settle` stores so that a held gate goes on. Guarantee: once. Formula, source: see the class."""
        held, self._held = self._held, None
        return held

    def is_of(self, ledger: Ledger) -> bool:
        """Whether the gate belongs to this ledger. Guarantee: public. Formula: identity. Source: see the class."""
        return self._ledger is ledger

    def _shut(self) -> Receipt:
        key = f"gate {self._intent}"
        outcome = Outcome(key, self.cost.atoms, *encode(Shut(self._intent)))
        entry = store(self._ledger, self._intent, [outcome])[0]
        return Receipt(entry.seq, entry.hash)


def store(ledger: Ledger, intent: int | None, outcomes: Sequence[Outcome], held: Held | None = None) -> list[Line]:
    """Settle what a gate said, a hit or free answers.

    Guarantee: when it fails, it fails in the same words, hit or not. Formula, source: `Ledger.settle`.
    """
    try:
        return ledger.settle(intent, outcomes, private=held)
    except (AnswerWithheld, ValueError):
        pass
    raise AnswerWithheld(
        "The answers could not be stored, so none is shown; a gate that was open is lost with its cost."
    )


def own_pairs(
    queries: Sequence[Query | Statistic], lenses: Sequence[Lens], records: Records
) -> tuple[list[Query | Statistic], list[Lens]]:
    """The gate's own copies of what is compared.

    Guarantee: as `questions.own` and `lens.own_lens`. Formula, source: see those.
    """
    if not queries or len(queries) != len(lenses):
        raise InvalidQuery("there is at least one question, and every question has one lens.")
    copies = [c for c in [own(query, records.domain) for query in queries] if isinstance(c, Query | Statistic)]
    if len(copies) < len(queries):
        raise InvalidQuery("a gate compares single values, not tables.")
    return copies, [own_lens(lens) for lens in lenses]


def first_passing(
    records: Records,
    queries: Sequence[Query | Statistic],
    lenses: Sequence[Lens],
    threshold: float,
    scales: tuple[float, float],
    noise: int,
) -> int | None:
    """One run of AboveThreshold with the threshold's noise already drawn: the place of the first hit, or None.

    Guarantee: `loss.gate_price(*scales)` for all that is ever learned with one draw of `noise` of scale scales[0].
    Formula: lens(truth) + Geometric(scales[1]) >= threshold + noise, both noises less their means, on the fine grid.
    Source: docs/understand/privacy.md, "The gate".
    """
    bar = round(threshold * GRID) + noise - round(scales[0])
    for start in range(0, len(queries), _CHUNK):
        part = range(start, min(start + _CHUNK, len(queries)))
        drawn = draw_geometric(scales[1], len(part)) - round(scales[1])
        for i, more in zip(part, drawn.tolist(), strict=True):
            if _value(records, queries[i], lenses[i]) + more >= bar:
                return i
    return None


def _value(records: Records, query: Query | Statistic, lens: Lens) -> int:
    """The lens of the true value, in steps of the fine grid. It moves by at most GRID for each replaced row."""
    return look(lens, records.answer(query) * (GRID // query.unit))
