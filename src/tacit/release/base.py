"""The base: a hypothesis that is certified, and answers from then on without a gate, for nothing, the same for ever.

Two figures are bought. The first says how far off 95 % of all conjunctions of a few conditions are, 95 % of the parts
of means among their rows, and 95 % of sums, from public random lists of each: it is the largest of what these come to.
The second says how far off the worst of all boxes is. All are order statistics of |truth - guess|, which one row moves
by at most 1 however long the list is: `trusted.sensitivity`. What is learned later changes no such answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tacit.model.budget import Loss
from tacit.model.certificate import MOST_STEPS, Certificate, Certificates, Conjunctions
from tacit.model.domain import Domain
from tacit.model.entry import Measured
from tacit.model.factor import GRID, Factor
from tacit.model.facts import Bar, Facts, all_of, share_of
from tacit.model.noise_law import quantile, variance
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.status import Expected
from tacit.release.classes import (
    BOXES,
    MEANS,
    MOST_QUESTION_CELLS,
    MOST_RUNS,
    MOST_SCOPES,
    MOST_SUMMED,
    SAMPLE,
    SUMS,
    Hypothesis,
    Miss,
    Missed,
    attributes,
    boxes,
    guessed,
    left_out,
    ramps,
    refitted,
    sample,
    sampled,
    sums,
)
from tacit.release.corner_sums import MOST_MIXED, Side, Sums, certified_by
from tacit.release.estimate import Ceiling, Estimate
from tacit.release.noise_sum import Draws
from tacit.release.prospect import SHARE, CertifiedError, Prospect
from tacit.release.public import Public
from tacit.release.purchases import split
from tacit.release.warm_start import WarmStart

if TYPE_CHECKING:
    from tacit.trusted.curator import Curator

EARLIER = "conjunctions"  # what earlier versions have certified in place of the first: their ranges are one run each
SHARES = {SAMPLE: 0.82, BOXES: 0.18}  # of what a certificate costs; means and sums share the figure of conjunctions
_MOST_ROWS = MOST_STEPS // GRID - 1  # of error that are not counted
# Conditions of a long conjunction of which some are taken together: those that the fewest rows meet.
MOST_TRIED_SIDES = 6
# Times the error to expect of sums: so the figure is seldom theirs, and counts have the narrower bars. What is summed
# apart from means is often one attribute, whose errors hang together: what a second fit says of them is less to go by.
_ROOM_FOR = {MEANS: 1.2, SUMS: 1.6}
_KEPT = "expected"  # the kind of thing that a second fit says, where it is kept


class CertifiedFigure:
    """One certified figure: with the noise's own quantile on top it is a bar, which follows the size of the answer."""

    def __init__(self, measured: Measured, certificate: Certificate, miss: float) -> None:
        self.certificate = certificate
        # The noise is symmetric, so it is below minus its quantile at 1 - 2 miss with a chance of `miss` at most. One
        # more row for the answer, which is rounded.
        beyond = quantile(measured.noise, 1 - 2 * miss) if miss < 0.5 else 0
        self._value, self._noise = int(measured.values[0]), measured.noise
        self._above = self._value + beyond + 1

    def ceiling(self, guess: int, times: float) -> Ceiling:
        """So many times what the certified error around a guess is at most, by the law of its one draw."""
        least = times * (self._offset(guess) + self._value + 1)
        return Ceiling(least, Draws(self._noise).times(times), self.certificate.questions)

    @property
    def seen(self) -> CertifiedError:
        """The figure itself, for a forecast: nothing on top of it."""
        return CertifiedError(self.certificate.questions, self._value, math.sqrt(variance(self._noise)))

    def _offset(self, guess: int) -> int:
        return int(self.certificate.offset(np.array([guess * GRID]))[0])

    def width(self, guess: int) -> int:
        """The bar around a guess, in rows: one row at least, whatever the noise was."""
        return max(1, self._offset(guess) + self._above)


class Base:
    """A hypothesis that never changes, and what was certified of it.

    The bar of an answer is the certified share's: it is drawn with a chance that leaves a tenth of 1 - confidence to
    bars that are read off other releases, so that the narrowest may be shown. Answers are sums of the whole numbers
    that were certified, so they are the same in every process and in every published file. (Where a processor rounds
    otherwise, the fit differs in its last bits, and an answer by a row at most where it is just between two.)
    """

    def __init__(
        self,
        public: Public,
        hypothesis: Hypothesis,
        certificates: dict[str, Certified],
        confidence: float,
        prospect: Prospect | None = None,
    ) -> None:
        self._domain, self._rows, self._confidence = public.domain, public.rows, confidence
        self._free = Loss.nothing(public.total.measure)
        self.hypothesis, self.prospect = hypothesis, prospect
        self.certificates = tuple({one.measured.receipt.entry: one.measured for one in certificates.values()}.values())
        self.receipt = certificates[SAMPLE].measured.receipt
        misses = {BOXES: 1 - of_the_base(confidence)}
        share = Miss.of(of_the_base(confidence)).noise
        self._figures = {kind: CertifiedFigure(*one, misses.get(kind, share)) for kind, one in certificates.items()}
        self.share, self.largest = self._figures[SAMPLE], self._figures.get(BOXES)
        self._runs = runs_of(self.share.certificate)
        self.summed = {kind: self._figures[kind] for kind in (MEANS, SUMS) if kind in self._figures}
        # Earlier versions had one list of sums, by itself, with the weights p of means and without 1 - p.
        one_list = SUMS in certificates and not isinstance(certificates[SUMS].measured.question, Certificates)
        self._one_list = one_list and MEANS not in self.summed
        self._most = {kind: figure.certificate.attributes for kind, figure in self._figures.items()}
        self._earlier = public.keys_before(self.receipt.entry)
        self._known: dict[tuple[str, int, bytes, bool], Side] = {}
        self._tables = lru_cache(maxsize=MOST_SCOPES)(self._table)
        self._facts = lru_cache(maxsize=2**14)(self._said)

    def bars_of(self, rows: int) -> tuple[Bar, ...]:
        """The bars of a count of so many rows: of a question of the class, and of all boxes at once."""
        return self._said(SAMPLE, rows, rows, 1, 1.0)[0].bars

    def expects(self, questions: int) -> tuple[Expected, ...]:
        """The errors to expect of that many questions, by what was released; none where that was not kept."""
        if self.prospect is None:
            return ()
        conditions = self.share.certificate.attributes
        found = self.prospect.expects(questions, self.share.seen, None if self.largest is None else self.largest.seen)
        return (
            Expected(found.mean, f"the mean of questions with up to {conditions} conditions"),
            Expected(found.most, f"{SHARE:.0%} of these"),
            Expected(found.largest, f"the largest of {questions:,} of these"),
        )

    def estimate(self, query: Query | Statistic) -> Estimate | None:
        """The answer to a question that is certified and was not answered before; None to any other.

        Certified are conjunctions of the random list's class, and whatever is a mixture of a few boxes: see `Side`.
        """
        if not isinstance(query, Query) or not 0 < len(query.factors) <= self.share.certificate.attributes:
            return None
        sides, unit = list[Side](), 1
        for factor in query.factors:
            side = self._side(factor, len(query.factors) == 1)
            if side is None:
                return None
            sides.append(side)
            unit *= side.unit
        table = self._tables(tuple([side.name for side in sides]))
        if table is None or unit > GRID or (self._earlier and query.core.key in self._earlier):
            return None
        kind, boxes = certified_by(sides, self._most)
        if not kind and not boxes:
            return None
        value = (table.inside([side.ends for side in sides]) + GRID // 2) // GRID
        around = value if unit == 1 else table.inside([side.whole for side in sides]) // GRID + 1
        size = -(-value // unit)
        if sides[0].flipped:  # what was certified is for a guess of that size
            size = around = self._rows - value // unit
        facts, ceiling = self._facts(kind, size, around, unit, boxes)
        return Estimate(self._rows * unit - value if query.complement else value, facts, ceiling=ceiling)

    def bounded(self, query: Query | Statistic, most: float) -> Estimate | None:
        """The answer to a conjunction of more conditions than are certified, or to its complement: if a bar of `most`
        rows holds for it.

        No more rows meet all of the conditions than meet a few of them, and what these are at most is certified for
        all boxes at once. It has no fewer than 0. So the bar reaches from the answer to both ends.
        """
        if not isinstance(query, Query) or query.unit > 1 or self.largest is None:
            return None
        sides = [self._side(factor, alone=False) for factor in query.factors]
        known = [side for side in sides if side is not None and side.boxes <= MOST_MIXED]
        if not self.share.certificate.attributes < len(known) == len(sides) or query.core.key in self._earlier:
            return None
        fewest = sorted(known, key=lambda side: (self._most_of((side,)), side.name))[:MOST_TRIED_SIDES]
        ends = [self._most_of(some) for some in combinations(fewest, min(len(fewest), self._most[BOXES]))]
        end = min([self._rows, *ends])
        value = min(round(self.hypothesis.answer(query.core) * self._rows), end)
        width = max(1, value, end - value)
        if width > most:
            return None
        bar = Bar(width, all_of(self.largest.certificate.questions), self._confidence)
        shown = self._rows - value if query.complement else value  # both are one question, since n is public
        return Estimate(shown, Facts("hypothesis", self._free, self._confidence, self.receipt, bars=(bar,)))

    def _most_of(self, sides: Sequence[Side]) -> int:
        """How many rows meet these conditions at most, by what is certified of all boxes at once."""
        assert self.largest is not None
        in_order = sorted(sides, key=lambda side: side.name)
        boxes, table = math.prod(side.boxes for side in sides), self._tables(tuple(side.name for side in in_order))
        if table is None or boxes > MOST_MIXED:
            return self._rows
        value = (table.inside([side.ends for side in in_order]) + GRID // 2) // GRID
        return value + math.ceil(boxes * self.largest.width(value))

    def _side(self, factor: Factor, alone: bool) -> Side | None:
        if len(factor.scope) > 1:
            return None
        known = (factor.scope[0], factor.unit, factor.weights.tobytes(), alone)
        if known not in self._known:
            side = (Side.alone if alone else Side.of)(factor, self._domain, self._runs)
            self._known[known] = self._as_it_was_listed(side, factor, alone) if self._one_list else side
        return self._known[known]

    def _as_it_was_listed(self, side: Side, factor: Factor, alone: bool) -> Side:
        """A side as the one list of sums of an earlier version had it: with the weights p, and without 1 - p."""
        if side.ramp != MEANS:
            return side
        has = ramps(self._domain, side.name)[MEANS][0]
        if np.array_equal(factor.weights, has):
            return side._replace(ramp=SUMS, flipped=False)
        if alone and np.array_equal(factor.flipped().weights, has):
            return side._replace(ramp=SUMS, flipped=True)
        return side._replace(ramp="", listed=False)

    def _table(self, scope: tuple[str, ...]) -> Sums | None:
        """The certified table of these attributes; None where it has too many cells to be one."""
        if self._domain.size_of(scope) > MOST_QUESTION_CELLS:
            return None
        return Sums.of(guessed(self.hypothesis, self._rows, scope))

    def _said(self, kind: str, size: int, around: int, unit: int, boxes: float) -> tuple[Facts, Ceiling | None]:
        """The facts about an answer of `size` among `around` rows: of a list's class, a mixture of boxes, or both.

        Every box of the mixture lies in these rows, and offsets rise with the size of a guess.
        """
        bars, ceiling = list[Bar](), None
        if kind:
            figure = self._figures[kind]
            like = share_of(self._confidence, figure.certificate.questions)
            bars.append(Bar(unit * figure.width(size), like, self._confidence))
        if boxes and self.largest is not None:
            width = math.ceil(boxes * unit * self.largest.width(around))
            bars.append(Bar(width, all_of(self.largest.certificate.questions), self._confidence))
            ceiling = self.largest.ceiling(around, boxes * unit)
        return Facts("hypothesis", self._free, self._confidence, self.receipt, bars=tuple(bars)), ceiling


class Certified(NamedTuple):
    """What was measured, and the certificate that it is, or one of those that it is the largest figure of."""

    measured: Measured
    certificate: Certificate


def certify(public: Public, curator: Curator | None, start: WarmStart, loss: Loss, confidence: float) -> Base | None:
    """The base of a start, certified for at most `loss` where it is not yet; None where it cannot be.

    What was bought is read back, whatever this version would list; without a curator nothing else is.
    """
    bought = certificates(public, start.name, confidence)
    each, prospect = _each(loss), _kept(public, start)
    price = certificate_price(public, bought, loss, confidence)
    if price.atoms and price <= public.left and curator is not None:
        wanted, prospect = _wanted(public, start, confidence)
        if public.shelf is not None and prospect is not None:
            public.shelf.put(_KEPT, start.name, prospect.packed())
        # The one without which there is no base comes last: whoever finds it finds all of them.
        for kind in (BOXES, SAMPLE):
            if kind in wanted and kind not in bought:
                measured = curator.measure([wanted[kind]], each[kind])[0]
                bought = _together(bought | {one.certificate.kind: one for one in _certified(measured)}, confidence)
    return Base(public, start.hypothesis, bought, confidence, prospect) if SAMPLE in bought else None


def runs_of(certificate: Certificate) -> int:
    """How many runs of values the conditions of its list have at most, on attributes with an order."""
    return 1 if certificate.kind == EARLIER else MOST_RUNS


def certificates(public: Public, name: str, confidence: float) -> dict[str, Certified]:
    """What was certified of the guess with this name, by its kind."""
    found = dict[str, Certified]()
    for one in public.released():
        for certified in _certified(one):
            if _is_ours(certified.certificate, name, confidence):
                kind = certified.certificate.kind
                found.setdefault(SAMPLE if kind == EARLIER else kind, certified)
    return _together(found, confidence)


def _together(found: dict[str, Certified], confidence: float) -> dict[str, Certified]:
    """What was certified, without sums of an earlier version that stand before it: no condition of theirs had two runs.

    Sums are certified together with conjunctions. A start that an earlier version began may have bought some by itself.
    """
    first = found.get(SAMPLE)
    if first is None or first.certificate.kind == EARLIER:
        return found
    ours = [one for one in _certified(first.measured) if _is_ours(one.certificate, first.certificate.base, confidence)]
    others = {kind: one for kind, one in found.items() if kind not in (MEANS, SUMS)}
    return others | {one.certificate.kind: one for one in ours if one.certificate.kind in (MEANS, SUMS)}


def _certified(measured: Measured) -> list[Certified]:
    asked = measured.question
    each = asked.each if isinstance(asked, Certificates) else [asked] if isinstance(asked, Certificate) else []
    return [Certified(measured, one) for one in each]


def certifiable(public: Public, loss: Loss, confidence: float) -> bool:
    """Whether a start can be certified for so much: by what is public before it is bought."""
    if min(one.atoms for one in _each(loss).values()) <= 0:
        return False
    listed = sampled(public.domain, attributes(public.domain))
    questions = sum(one.questions for one in listed)
    return bool(listed) and rank_of(questions, (one.scope for one in listed), public.domain, confidence) <= questions


def certificate_price(public: Public, bought: Iterable[str], loss: Loss, confidence: float) -> Loss:
    """What is missing of a certificate for so much, by what was bought of it; nothing where none can be."""
    known = set(bought)
    worth = SAMPLE not in known and certifiable(public, loss, confidence)
    return Loss(loss.measure, sum(one.atoms for kind, one in _each(loss).items() if worth and kind not in known))


def _each(loss: Loss) -> dict[str, Loss]:
    return {kind: Loss(loss.measure, int(loss.atoms * share)) for kind, share in SHARES.items()}


def rank_of(questions: int, scopes: Iterable[tuple[str, ...]], domain: Domain, confidence: float) -> int:
    """Which error of a list about these attributes is bought."""
    return Miss.of(of_the_base(confidence)).rank(questions, left_out(scopes, len(domain)))


def _kept(public: Public, start: WarmStart) -> Prospect | None:
    """What whoever bought the certificate has kept of its second fit."""
    content = None if public.shelf is None else public.shelf.get(_KEPT, start.name)
    return None if content is None else Prospect.unpacked(content)


def _is_ours(certificate: Certificate, name: str, confidence: float) -> bool:
    """Whether a certificate is of this guess, and says as much as is made of it."""
    (rank, *more), questions = certificate.ranks, certificate.questions
    least = questions if certificate.kind == BOXES else Miss.of(of_the_base(confidence)).rank(questions)
    rows = [offset for _, offset in certificate.steps]
    return certificate.base == name and not more and rank >= least and rows == sorted(rows)


def _wanted(
    public: Public, start: WarmStart, confidence: float
) -> tuple[dict[str, Certificate | Certificates], Prospect | None]:
    """What is certified of a start: shares of random lists, and the largest of all boxes if these can be listed.

    And which errors to expect of it, as the second fit that this takes says that too.
    """
    domain, hypothesis, rows = public.domain, start.hypothesis, public.rows
    miss, most, again = Miss.of(of_the_base(confidence)), attributes(domain), refitted(public, start)

    def share(
        kind: str, attributes: int, lists: Sequence[Conjunctions], more: float = 1.0
    ) -> tuple[Certificate, Missed] | None:
        questions = sum(one.size for one in lists)
        rank = rank_of(questions, (one.names for one in lists), domain, confidence) if lists else 1
        if rank > questions:
            return None
        missed = Missed.of(lists, again, rows)
        by_size = tuple((size, min(_MOST_ROWS, math.ceil(more * off))) for size, off in missed.steps(rows, miss.share))
        return Certificate(
            base=start.name,
            kind=kind,
            attributes=attributes,
            questions=questions,
            ranks=(rank,),
            steps=by_size,
            lists=tuple(lists),
        ), missed

    found = share(SAMPLE, most, sample(domain, hypothesis, rows, most))
    if found is None:
        return {}, None
    first, missed = found
    of_sums = [share(kind, MOST_SUMMED, sums(domain, hypothesis, rows, kind), room) for kind, room in _ROOM_FOR.items()]
    together = Certificates((first, *(found[0] for found in of_sums if found is not None)))
    wanted: dict[str, Certificate | Certificates] = {SAMPLE: together}
    lists, reached = boxes(domain, hypothesis, rows, most)
    if reached:
        questions = sum(one.size for one in lists)
        wanted[BOXES] = Certificate(
            base=start.name,
            kind=BOXES,
            attributes=reached,
            questions=questions,
            ranks=(questions,),
            steps=first.steps,
            lists=tuple(lists),
        )
    offsets, drawn = first.offset(missed.sizes * GRID).astype(np.float64), start.prior is not None
    return wanted, Prospect.of(missed.gaps, offsets, first.ranks[0], drawn=drawn)


def of_the_base(confidence: float) -> float:
    """The confidence of a certified bar by itself: see `Base`."""
    return split(confidence).others
