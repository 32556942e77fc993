"""The gate: one run of AboveThreshold, shut at its first hit.

It says whether a question's value passes a noisy threshold, for as many questions as are asked, at one price, until the
first that does. Then it is shut, for good and for everybody.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from tacit.errors import AnswerWithheld, InvalidQuery
from tacit.exact.price import Sensitivity, gate_price, gate_scales
from tacit.model.budget import Loss
from tacit.model.entry import FreeAnswer, GateTerms, Intent, Shut, decode, encode
from tacit.model.facts import Receipt
from tacit.model.query import GRID, Query
from tacit.model.request import Comparisons, Declared, Lens, count, look
from tacit.model.statistic import Statistic
from tacit.store.chain import Line
from tacit.store.transaction import Held
from tacit.trusted.copy import AnyRecords
from tacit.trusted.ledger import Ledger, Outcome
from tacit.trusted.noise import draw_geometric

T = TypeVar("T")
_CHUNK = 256  # comparisons drawn at a time


class Gate:
    """An open gate. Only its first hit is ever told; the numeric answer to that question needs fresh noise.

    Guarantee: everything a gate says, over its whole life, costs its one price. While it compares, no reader of the
        ledger gets its noise: if anything goes wrong before what it said is stored, the gate is lost, hit or not.
    Formula: lens(truth) + Geometric(comparison) >= threshold + Geometric(threshold's), each noise less its scale.
    Source: Dwork, Naor, Reingold, Rothblum & Vadhan 2009; Lyu, Su & Li 2017, algorithm 1; the proof for one-sided noise
        is in docs/understand/privacy.md, "The gate".
    """

    def __init__(self, ledger: Ledger, records: AnyRecords, intent: int, terms: GateTerms) -> None:
        self._ledger, self._records, self._intent = ledger, records, intent
        self._declared = Declared(records.domain, records.rows, records.rows_per_person, ledger.total, records.counted)
        self._held: Held | None = None  # the threshold's noise, while no reader gets it and it may be put back
        self._asked: str | None = None  # when it was last asked, before it looked
        self.terms, self.threshold = terms, terms.threshold  # in counts

    @classmethod
    def open(cls, ledger: Ledger, records: AnyRecords, *, threshold: float, loss: Loss, owner: str) -> Gate:
        """Pay for a gate and draw its threshold.

        Guarantee: the whole price is reserved, durably, before anything is compared; the threshold's noise is stored
            with it, outside everything that is hashed or shown.
        Formula: `exact.price.gate_scales`, for a value that moves by one count for each row that a person may have: a
            lens is 1-Lipschitz, so m replaced rows move it by at most m counts.
        """
        threshold = count(threshold, "a threshold")
        move = Sensitivity(1, 1).times(records.rows_per_person).l1 * GRID
        first, second = gate_scales(loss, move)
        cost = gate_price(first, second, move, loss.measure)
        terms = GateTerms(owner, threshold, first / GRID, second / GRID, cost.atoms)
        noise = int(draw_geometric(first, 1)[0])
        return cls(ledger, records, ledger.reserve(cost, purpose=terms, private=str(noise)), terms)

    @classmethod
    def resume(cls, ledger: Ledger, records: AnyRecords, *, owner: str) -> Gate | None:
        """The newest gate of this owner that is still open, if there is one.

        Guarantee: the same threshold noise as before, so that nothing is paid or learned by stopping and starting.
        """
        for line in reversed(ledger.log.kept_intents()):
            intent = decode(line.kind, line.body)
            terms = intent.purpose if isinstance(intent, Intent) else None
            if isinstance(terms, GateTerms) and terms.owner == owner:
                return cls(ledger, records, line.seq, terms)
        return None

    def first_above(self, queries: Sequence[Query | Statistic], lenses: Sequence[Lens]) -> tuple[int, Receipt] | None:
        """The first question whose value passes the noisy threshold, and the receipt of the shut gate; or None.

        Guarantee: fresh comparison noise for every question. A hit is told only after the gate is durably shut.
            Without a hit the gate is held, and says nothing more until `tell` has stored what followed from it.
        """
        asked = Comparisons.of(self._declared, queries, lenses, self.terms.threshold)
        with self._ledger.log.turn():
            self._asked = self._ledger.log.time()
            held = self._ledger.take_private(self._intent)
            if held is None:
                raise InvalidQuery("the gate is shut, or held until what it said is stored.")
            found: int | None = -1
            scales = self.terms.threshold_scale * GRID, self.terms.comparison_scale * GRID
            try:
                found = unseen(lambda: first_passing(self._records, asked, scales, int(held.value)), found)
            finally:
                if found is not None:
                    del held  # the noise is of no more use, and no traceback shows it
            if found == -1:
                raise AnswerWithheld("The answers could not be worked out, and the gate is lost with what it cost.")
            if found is not None:
                return found, self._shut()
            self._held = held  # only now: whatever failed before has lost the gate
            return None

    def _shut(self) -> Receipt:
        outcome = Outcome(f"gate {self._intent}", self.terms.atoms, *encode(Shut(self._intent)))
        line = _store(self._ledger, self._intent, [outcome])[0]
        return Receipt(line.seq, line.hash)


def tell(ledger: Ledger, answers: Sequence[tuple[str, FreeAnswer]], gate: Gate | None = None) -> list[Line]:
    """Store free answers under their keys, so that they never change. The lines that may be shown.

    Guarantee: an earlier answer to the same question stays. The gate that let them pass may be asked again once they
        are stored, and only if it held its noise till then. Nothing is charged: who tells has no data, so that a free
        answer is a function of what is public.
    """
    if not answers or (gate is not None and (type(gate) is not Gate or gate._ledger is not ledger)):
        raise InvalidQuery("there is at least one answer to tell, and the gate is one of this ledger.")
    if any(type(key) is not str or not isinstance(one.question, Query | Statistic) for key, one in answers):
        raise InvalidQuery("free answers are told one by one, each under the key of its question.")
    ledger.log.conditions.check_writing()  # before the gate lets go of its noise
    outcomes = [Outcome(key, 0, *encode(answer)) for key, answer in answers]
    with ledger.log.turn():
        if gate is None:
            return _store(ledger, None, outcomes)
        held, gate._held = gate._held, None  # once
        return _store(ledger, None, outcomes, held, gate._asked)


def _store(
    ledger: Ledger, intent: int | None, outcomes: Sequence[Outcome], held: Held | None = None, time: str | None = None
) -> list[Line]:
    """Settle what a gate said. Guarantee: when it fails, it fails in the same words, hit or not."""
    try:
        return ledger.settle(intent, outcomes, private=held, time=time)
    except (AnswerWithheld, ValueError):
        pass
    raise AnswerWithheld(
        "The answers could not be stored, so none is shown; a gate that was open is lost with its cost."
    )


def unseen(look: Callable[[], T], failed: T) -> T:
    """What a look at the data comes to.

    Guarantee: of an error in it, which may depend on the data, nothing is told: `failed` is returned. An interrupt goes
        on without the frames that it met, in which true values and noise stand.
    """
    try:
        return look()
    except Exception:
        return failed
    except BaseException as error:
        interrupt = error.with_traceback(None)
    interrupt.__context__ = None
    raise interrupt


def first_passing(records: AnyRecords, asked: Comparisons, scales: tuple[float, float], noise: int) -> int | None:
    """One run of AboveThreshold with the threshold's noise already drawn: the place of the first hit, or None.

    Guarantee: `exact.price.gate_price(*scales)` for all that is ever learned with one draw of `noise` of scales[0].
    Formula: lens(truth) + Geometric(scales[1]) >= threshold + noise, each noise less its scale, on the fine grid.
    Source: docs/understand/privacy.md, "The gate".
    """
    bar = round(asked.threshold * GRID) + noise - round(scales[0])
    records.prepare(asked.queries)
    for start in range(0, len(asked.queries), _CHUNK):
        part = range(start, min(start + _CHUNK, len(asked.queries)))
        drawn = draw_geometric(scales[1], len(part)) - round(scales[1])
        for i, more in zip(part, drawn.tolist(), strict=True):
            if shown(records, asked.queries[i], asked.lenses[i]) + more >= bar:
                return i
    return None


def shown(records: AnyRecords, query: Query | Statistic, lens: Lens) -> int:
    """What a lens shows of a true value, in steps of the fine grid: it moves by at most GRID for each replaced row."""
    return look(lens, records.answer(query) * (GRID // query.unit))
