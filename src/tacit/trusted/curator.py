"""The only holder of the data. Release algorithms ask it to measure; it pays, draws and records before it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import AnswerWithheld, InvalidQuery
from tacit.model.answer import Measured, Told
from tacit.model.budget import Loss, Measure
from tacit.model.cell_sum import answer_from
from tacit.model.domain import Domain
from tacit.model.entry import Comparison, FreeAnswer, Measurement, Selection, decode, encode
from tacit.model.facts import Receipt
from tacit.model.query import GRID, Query
from tacit.model.statistic import Statistic
from tacit.model.workload import MAX_ANSWERS, Marginal, Question, key, marginal
from tacit.store.chain import Line, digest
from tacit.trusted.gate import Gate, first_passing, own_pairs, store
from tacit.trusted.ledger import Ledger, Outcome
from tacit.trusted.lens import Disagreement, Distance, Lens, look, words
from tacit.trusted.loss import Sensitivity, choice_price, choice_scale, gate_price, gate_scales, noise_for, price
from tacit.trusted.noise import Noise, add_noise, draw_geometric, noisy_max
from tacit.trusted.questions import own, own_loss, plain, unit
from tacit.trusted.records import Records
from tacit.trusted.sensitivity import noise_of, sensitivity
from tacit.trusted.strategies import strategy_truth

ONE_COUNT, PARTITION = Sensitivity(1, 1), Sensitivity(2, 2)  # what one replaced row moves
_MOST = 2.0**40  # counts: with GRID steps each, sums of three such numbers stay within 64 bits

__all__ = [
    "MAX_ANSWERS", "Chosen", "Compared", "Curator", "Disagreement", "Distance", "Gate", "Lens", "own",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which candidate was chosen, if any. Public."""

    index: int | None
    cost: Loss
    receipt: Receipt


@dataclass(frozen=True, slots=True)
class Compared:
    """Whether a value passed a public threshold. Public."""

    passed: bool
    cost: Loss
    receipt: Receipt


class Curator:
    """Holds the records and the ledger. Everything it returns is public; `rows` is public by convention.

    `measure` adds noise, `select_worst` chooses, `open_gate` compares. Each validates, reserves its worst case in the
    ledger, looks at the data, settles, and only then returns.
    """

    def __init__(self, records: Records, ledger: Ledger) -> None:
        self._records = records
        self._ledger = ledger

    @property
    def domain(self) -> Domain:
        """The declared domain. Guarantee: public. Formula: as declared. Source: the owner."""
        return self._records.domain

    @property
    def rows(self) -> int:
        """n. Guarantee: public by convention. Formula: the number of rows. Source: docs/understand/privacy.md."""
        return self._records.rows

    @property
    def rows_per_person(self) -> int:
        """How many rows neighbours differ in, at most. Guarantee: public. Formula: as loaded. Source: the owner."""
        return self._records.rows_per_person

    @property
    def total(self) -> Loss:
        """The whole budget. Guarantee: fixed at creation. Formula: the ledger's. Source: `Ledger.total`."""
        return self._ledger.total

    @property
    def spent(self) -> Loss:
        """What is spent, reservations included. Guarantee: durable. Formula: the ledger's. Source: `Ledger.spent`."""
        return self._ledger.spent

    @property
    def left(self) -> Loss:
        """What is left. Guarantee: never negative. Formula: the ledger's. Source: `Ledger.left`."""
        return self._ledger.left

    @property
    def entries(self) -> int:
        """The number of the newest entry. Guarantee: public. Formula: the ledger's. Source: `Ledger.head`."""
        return self._ledger.log.head().seq

    def turn(self) -> AbstractContextManager[None]:
        """One asker at a time, so that a question is paid once. Guarantee, formula, source: `Ledger.lock`."""
        return self._ledger.log.turn()

    def expected_noise(self, question: Question, loss: Loss) -> Noise:
        """The noise that `loss` buys for a question: public, and free to ask.

        Guarantee: does not look at the data. Formula: `loss.noise_for`. Source: `loss.noise_for`.
        """
        return self._noise(own(question, self.domain), own_loss(loss, self.total.measure))

    def find(self, questions: Sequence[Question]) -> list[Measured | Told | None]:
        """What was answered before, for each question.

        Guarantee: post-processing of released answers. Formula: the stored entry of the question's key. Source: ledger.
        """
        given = [own(question, self.domain) for question in questions]
        keys = [key(question) for question in given]
        found = self._ledger.find_many(keys)
        return [self._read(found[k], asked) if k in found else None for k, asked in zip(keys, given, strict=True)]

    def purchases(self) -> Iterator[tuple[str, Question | None, Loss, Receipt]]:
        """Everything that was ever charged and settled, in order: its kind, the question if there is one, its price.

        Guarantee: post-processing of what was released. Formula: the ledger's outcomes. Source: ledger.
        """
        for entry in self._ledger.log.settled():
            if entry.atoms and entry.key is not None:
                kind = {"chosen": "choice", "shut": "gate"}.get(entry.kind, entry.kind)
                question = getattr(decode(entry.kind, entry.body), "question", None)
                yield kind, question, Loss(self.total.measure, entry.atoms), Receipt(entry.seq, entry.hash)

    def released(self, after: int = 0) -> Iterator[Measured]:
        """Everything measured since entry `after`, in order: what a hypothesis is folded from.

        Guarantee: post-processing of released answers. Formula: the ledger's outcomes. Source: ledger.
        """
        for entry in self._ledger.log.settled(after):
            if entry.key is not None and isinstance(stored := self._read(entry), Measured):
                yield stored

    def answers(self) -> Iterator[Measured | Told]:
        """Everything measured and everything told, in order.

        Guarantee: post-processing of released answers. Formula: the ledger's outcomes. Source: ledger.
        """
        for line in self._ledger.log.lines(kinds=("measured", "told")):
            if (stored := self._read(line)) is not None:
                yield stored

    def tell(
        self,
        answers: Sequence[tuple[Query | Statistic, int, int | None, str]],
        gate: Gate | None = None,
        figures: Sequence[tuple[int | None, int | None]] | None = None,
    ) -> list[Told | Measured]:
        """Record free answers (query, value and half width in grid steps, a note), so that they never change.

        `figures` has two more half widths for each, or None: for the answer alone, and the one that is likely.

        Guarantee: costs nothing, since a free answer is a function of what is public; an earlier answer to the same
            question stays. The gate that let them pass can go on from the same transaction on.
        Formula: one transaction without a charge. Source: ledger.
        """
        if not answers or (gate is not None and not gate.is_of(self._ledger)):
            raise InvalidQuery("there is at least one answer to tell, and the gate is one of this ledger.")
        more = [(None, None)] * len(answers) if figures is None else figures
        if len(more) != len(answers):
            raise InvalidQuery("there are two more figures for every answer, or for none.")
        outcomes, given = list[Outcome](), list[Query | Statistic]()
        for (query, value, half_width, note), (alone, likely) in zip(answers, more, strict=True):
            copy = own(query, self.domain)
            if not isinstance(copy, Query | Statistic):
                raise InvalidQuery("free answers are told one by one, not as tables.")
            given.append(copy)
            outcomes.append(_told(copy, value, half_width, note, alone, likely))
        with self.turn():
            stored = store(self._ledger, None, outcomes, None if gate is None else gate.put_back())
        read = [self._read(line, asked) for line, asked in zip(stored, given, strict=True)]
        return [answer for answer in read if answer is not None]

    def select_worst(
        self,
        candidates: Sequence[Query | Marginal],
        guesses: Sequence[ArrayLike],
        loss: Loss,
        penalties: Sequence[float] | None = None,
    ) -> Chosen:
        """The candidate whose true answers are far from a public guess (both in counts), for at most `loss`.

        Guarantee: the choice costs what is charged; asked again with the same words, the same choice is read back.
        Formula: score = L1 distance between truth and guess, less a public penalty, rounded to the grid; the score of a
            query moves by at most 1 count for each replaced row, that of a table by 2; then `noise.noisy_max`.
        Source: Roth, lecture 8 (the exponential mechanism as a distinguisher); Hardt, Ligett & McSherry 2012.
        """
        loss = own_loss(loss, self.total.measure)
        copies = [own(candidate, self.domain) for candidate in candidates]
        less = [_steps(penalty) for penalty in ([0.0] * len(copies) if penalties is None else penalties)]
        if not copies or len(guesses) != len(copies) or len(less) != len(copies):
            raise InvalidQuery("every candidate has one guess, and one penalty if there are any.")
        if not all(isinstance(copy, Query | Marginal) for copy in copies):
            raise InvalidQuery("candidates are queries or tables.")
        rounded = [_guess(guess, copy, self.domain, self.rows) for guess, copy in zip(guesses, copies, strict=True)]
        one_row = PARTITION if any(isinstance(copy, Marginal) for copy in copies) else ONE_COUNT
        move = self._moves(one_row).l1 * GRID
        scale = choice_scale(loss, move)
        cost = choice_price(scale, move, loss.measure)
        form = [[key(c), digest(g.tolist()), p] for c, g, p in zip(copies, rounded, less, strict=True)]
        asked = digest(["choice", form, scale])
        with self.turn():
            entry = self._ledger.find(asked)
            if entry is not None:
                cost = Loss(loss.measure, 0)
            else:
                reservation = self._ledger.reserve(cost, purpose="choose")
                try:
                    index = self._noisy_choice(copies, rounded, less, scale, loss.measure)
                except Exception:  # what went wrong may depend on the data, so nothing is said about it
                    index = -1
                if index < 0:
                    raise AnswerWithheld("The choice could not be made. What was reserved for it stays spent.")
                said = encode(Selection(index, len(copies), copies[index]))
                entry = self._ledger.settle(reservation, [Outcome(asked, cost.atoms, *said)])[0]
        return Chosen(_selected(entry), cost, Receipt(entry.seq, entry.hash))

    def first_far(self, queries: Sequence[Query], guesses: Sequence[float], threshold: float, loss: Loss) -> Chosen:
        """The first query whose answer is farther than about `threshold` from a public guess (both in counts), or none.

        Guarantee: one gate's price for the whole list; asked again with the same words, the same is read back.
        Formula: `gate.first_passing`, with a threshold drawn for this list alone.
        Source: Roth, lecture 12, SparseDistinguish.
        """
        if type(threshold) not in (int, float) or not abs(threshold) < _MOST:
            raise InvalidQuery("a threshold is a count.")
        loss = own_loss(loss, self.total.measure)
        copies, lenses = own_pairs(queries, [Distance(guess) for guess in guesses], self._records)
        move = self._moves(ONE_COUNT).l1 * GRID
        scales = gate_scales(loss, move)
        cost = gate_price(*scales, move, loss.measure)
        form = [
            [key(copy), lens.guess] for copy, lens in zip(copies, lenses, strict=True) if isinstance(lens, Distance)
        ]
        asked = digest(["far", form, float(threshold).hex(), scales])
        with self.turn():
            entry = self._ledger.find(asked)
            if entry is not None:
                cost = Loss(loss.measure, 0)
            else:
                reservation = self._ledger.reserve(cost, purpose="distinguish")
                try:
                    index = self._first_passing(copies, lenses, threshold, scales)
                except Exception:  # what went wrong may depend on the data, so nothing is said about it
                    index = -1
                if index == -1:
                    raise AnswerWithheld("The comparison could not be made. What was reserved for it stays spent.")
                said = encode(Selection(index, len(copies)))
                entry = self._ledger.settle(reservation, [Outcome(asked, cost.atoms, *said)])[0]
        return Chosen(_selected(entry), cost, Receipt(entry.seq, entry.hash))

    def compare(self, query: Query | Statistic, lens: Lens, threshold: float, loss: Loss) -> Compared:
        """Whether what a lens shows of the true answer, plus fresh noise, is at least a public threshold (in counts).

        Guarantee: one comparison costs what is charged, hit or not; asked again in the same words, it is read back.
        Formula: lens(truth) + noise of `loss.noise_for` >= threshold, on the fine grid.
        Source: Roth & Roughgarden 2010, figure 1, steps 2(a)-(c); the crude bound (10) of their privacy proof.
        """
        if type(threshold) not in (int, float) or not abs(threshold) < _MOST:
            raise InvalidQuery("a threshold is a count.")
        loss, bar = own_loss(loss, self.total.measure), round(threshold * GRID)
        (copy,), (shown,) = own_pairs([query], [lens], self._records)
        moves = self._moves(ONE_COUNT)
        noise = noise_for(loss, moves, GRID)
        cost = price(noise, moves, GRID, loss.measure)
        asked = digest(["compare", key(copy), words(shown), bar, noise.scale])
        with self.turn():
            entry = self._ledger.find(asked)
            if entry is not None:
                cost = Loss(loss.measure, 0)
            else:
                reservation = self._ledger.reserve(cost, purpose="compare")
                try:
                    passed = int(self._noisy_look(copy, shown, noise) >= bar)
                except Exception:  # what went wrong may depend on the data, so nothing is said about it
                    passed = -1
                if passed < 0:
                    raise AnswerWithheld("The comparison could not be made. What was reserved for it stays spent.")
                said = encode(Comparison(copy, bool(passed)))
                entry = self._ledger.settle(reservation, [Outcome(asked, cost.atoms, *said)])[0]
        compared = decode(entry.kind, entry.body)
        assert isinstance(compared, Comparison)
        return Compared(compared.passed, cost, Receipt(entry.seq, entry.hash))

    def open_gate(self, threshold: float, loss: Loss, *, owner: str = "") -> Gate:
        """A new gate at `threshold` (in counts), for at most `loss`. Guarantee, formula, source: `Gate.open`."""
        return Gate.open(self._ledger, self._records, threshold=threshold, loss=loss, owner=owner)

    def resume_gate(self, *, owner: str = "") -> Gate | None:
        """The owner's gate that is still open, whoever opened it. Guarantee, formula, source: `Gate.resume`."""
        return Gate.resume(self._ledger, self._records, owner=owner)

    def has_gate(self, owner: str) -> bool:
        """Whether a gate of this owner is open."""
        return self.resume_gate(owner=owner) is not None

    def measure(self, questions: Sequence[Question], loss: Loss) -> list[Measured]:
        """Noisy answers to questions, for at most `loss` each; a question measured before is read back for nothing.

        Guarantee: each new question costs at most `loss` of the session's total, whose sum the ledger never lets pass
            the budget; nothing is returned before it and its charge are durable.
        Formula: true integer answers + discrete Laplace or Gaussian noise, of a scale that follows from the question's
            public form alone (sensitivity, grid, loss).
        Source: Dwork, McSherry, Nissim & Smith 2006; Canonne, Kamath & Steinke 2020.
        """
        loss = own_loss(loss, self.total.measure)
        copies = [own(question, self.domain) for question in questions]
        keys = [key(copy) for copy in copies]
        with self.turn():
            found = self._ledger.find_many(keys)
            told = {k for k, entry in found.items() if entry.kind == "told"}
            if told:  # those keep their free answer; what is measured now is kept beside it
                keys = [digest(["measured", k]) if k in told else k for k in keys]
                found = self._ledger.find_many(keys)
            new = {k: copy for k, copy in zip(keys, copies, strict=True) if k not in found}
            if new:
                found |= self._measure(new, loss)
        measured = [one for k in keys if isinstance(one := self._read(found[k]), Measured)]
        if len(measured) < len(keys):  # told meanwhile, by somebody who did not wait for a turn
            raise AnswerWithheld("The question was answered meanwhile; ask again. What was reserved stays spent.")
        return measured

    def measure_around(self, query: Query, loss: Loss, half_width: int, note: str) -> tuple[Measured, Told | Measured]:
        """The whole table of a query's attributes, for at most `loss`, and the query's answer from that table.

        Guarantee: as `measure`; the answer is a function of the noisy table and n, and durable in the same transaction,
            so that no crash parts the two. A table measured before with the same noise is read back for nothing.
        Formula: sum of weight * noisy cell over the query or its complement, whichever has fewer cells.
        Source: post-processing. `half_width` is public; the caller works it out from `expected_noise`.
        """
        loss, core = own_loss(loss, self.total.measure), own(query, self.domain)
        if not isinstance(core, Query) or core.is_constant or core.complement:
            raise InvalidQuery("a table is measured around a query that depends on some attributes, not a complement.")
        table = own(marginal(self.domain, *core.scope), self.domain)
        shape = tuple(self.domain[name].size for name in core.scope)
        _told(core, 0, half_width, note)  # refuses widths and words that cannot be stored before anything is paid
        used: list[NDArray[np.int64]] = []

        def told(cells: NDArray[np.int64]) -> Outcome:
            used.append(cells)
            value = answer_from(core, core.scope, cells.reshape(shape), self.rows)
            return _told(core, value, half_width, note)

        with self.turn():
            entries = self._ledger.find_many([key(table), key(core)])
            if key(table) not in entries:
                entries |= self._measure({key(table): table}, loss, follows=told)
            measured = self._read(entries[key(table)])
            assert isinstance(measured, Measured)
            if used and not np.array_equal(used[0], measured.values):  # stored by somebody who did not wait for a turn
                raise AnswerWithheld("The table was bought meanwhile; ask again. What was reserved stays spent.")
            if measured.noise != self._noise(table, loss):
                raise InvalidQuery("the table was measured before with other noise, which the half width is not for.")
            if key(core) not in entries:
                entries[key(core)] = self._ledger.settle(None, [told(measured.values)])[0]
        answer = self._read(entries[key(core)])
        assert answer is not None
        return measured, answer

    def _measure(
        self,
        questions: dict[str, Question],
        loss: Loss,
        follows: Callable[[NDArray[np.int64]], Outcome] | None = None,
    ) -> dict[str, Line]:
        """`questions` are the curator's own copies. What `follows` from the noisy answers is stored with them."""
        noises = {k: self._noise(question, loss) for k, question in questions.items()}
        prices = {
            k: price(noises[k], self._moves(sensitivity(question, self.domain)), unit(question), self.total.measure)
            for k, question in questions.items()
        }
        worst_case = Loss(self.total.measure, sum(p.atoms for p in prices.values()))
        reservation = self._ledger.reserve(worst_case, purpose=f"measure {len(questions)}")
        # From here on the data are looked at. Whatever goes wrong now, the reservation stays spent.
        try:
            drawn = self._noisy_answers(questions, noises)
            outcomes = [
                Outcome(k, prices[k].atoms, *encode(Measurement(q, drawn[k], unit(q), noises[k])))
                for k, q in questions.items()
            ]
            outcomes += [follows(noisy) for noisy in drawn.values()] if follows else []
        except Exception:  # what went wrong may depend on the data, so nothing is said about it
            outcomes = []
        if not outcomes:
            raise AnswerWithheld("The answer could not be worked out. What was reserved for it stays spent.")
        stored = self._ledger.settle(reservation, outcomes)
        return {outcome.key: entry for outcome, entry in zip(outcomes, stored, strict=True)}

    # What is true, and the noise, stay within these: a traceback from what follows them shows nothing private.
    def _noisy_choice(
        self,
        candidates: Sequence[Question],
        guesses: Sequence[NDArray[np.int64]],
        penalties: Sequence[int],
        scale: float,
        measure: Measure,
    ) -> int:
        scores = [self._score(c, g) - p for c, g, p in zip(candidates, guesses, penalties, strict=True)]
        return noisy_max(np.array(scores, dtype=np.int64), scale, measure)

    def _first_passing(
        self,
        queries: Sequence[Query | Statistic],
        lenses: Sequence[Lens],
        threshold: float,
        scales: tuple[float, float],
    ) -> int | None:
        noise = int(draw_geometric(scales[0], 1)[0])
        return first_passing(self._records, queries, lenses, threshold, scales, noise)

    def _noisy_answers(self, questions: dict[str, Question], noises: dict[str, Noise]) -> dict[str, NDArray[np.int64]]:
        return _add_noise_together({k: self._truth(question) for k, question in questions.items()}, noises)

    def _noisy_look(self, query: Query | Statistic, lens: Lens, noise: Noise) -> int:
        value = look(lens, self._records.answer(query) * (GRID // query.unit))
        return int(add_noise(np.array([value], dtype=np.int64), noise)[0])

    def _noise(self, question: Question, loss: Loss) -> Noise:
        return noise_of(question, self.domain, loss, self.rows_per_person)

    def _moves(self, one_row: Sensitivity) -> Sensitivity:
        """Between neighbours, from what one replaced row moves: everything that is measured or chosen is priced so."""
        return one_row.times(self.rows_per_person)

    def _truth(self, question: Question) -> NDArray[np.int64]:
        """The exact answers, in grid steps. Never leaves this class without noise."""
        if isinstance(question, Query):
            return np.array([self._records.answer(question)], dtype=np.int64)
        if isinstance(question, Statistic):
            return question.evaluate(self._records.table(question.scope)[None])
        if isinstance(question, Marginal):
            return self._records.table(question.names, question.where).ravel()
        return strategy_truth(question, self._records)

    def _score(self, candidate: Question, guess: NDArray[np.int64]) -> int:
        truth = self._truth(candidate) * (GRID // unit(candidate))
        return int(np.abs(truth - guess).sum())

    def _read(self, line: Line, asked: Question | None = None) -> Measured | Told | None:
        """What is stored. A free answer goes to whoever `asked` with the very question that was handed over."""
        entry = decode(line.kind, line.body, asked if isinstance(asked, Query | Statistic) else None)
        key, receipt = str(line.key), Receipt(line.seq, line.hash)
        if isinstance(entry, FreeAnswer):
            free = Loss(self.total.measure, 0)
            words = entry.value, entry.half_width, entry.note, free, receipt
            return Told(key, entry.question, *words, entry.alone, entry.likely)
        if isinstance(entry, Measurement):
            cost = Loss(self.total.measure, line.atoms)
            return Measured(key, entry.question, entry.values, entry.unit, entry.noise, cost, receipt)
        return None  # a choice, or a gate


def _selected(line: Line) -> int | None:
    entry = decode(line.kind, line.body)
    assert isinstance(entry, Selection)
    return entry.index


def _told(
    query: Query | Statistic,
    value: int,
    half_width: int | None,
    note: str,
    alone: int | None = None,
    likely: int | None = None,
) -> Outcome:
    """A free answer as it is stored."""
    try:
        value = int(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidQuery("what is told is a whole number of grid steps of 64 bits.") from None
    return Outcome(key(query), 0, *encode(FreeAnswer(query, value, half_width, note, alone, likely)))


def _guess(guess: ArrayLike, candidate: Question, domain: Domain, rows: int) -> NDArray[np.int64]:
    """A public guess of a candidate's answers, rounded to the grid: one number, or one for each cell of a table.

    Guesses lie between 0 and n, and what they sum to is bounded, so that no score overflows 64 bits.
    """
    size = candidate.size(domain) if isinstance(candidate, Marginal) else 1
    try:
        values: NDArray[np.float64] = plain(guess, np.float64).ravel()
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (size,) or not np.isfinite(values).all():
        raise InvalidQuery(f"a guess has {size:,} finite counts.")
    values = np.clip(values, 0, rows)
    if rows + values.sum() >= _MOST:
        raise InvalidQuery("the guesses of a table's cells add up to far more than there are rows.")
    return np.rint(values * GRID).astype(np.int64)


def _steps(penalty: float) -> int:
    if type(penalty) not in (int, float) or not -_MOST < penalty < _MOST:
        raise InvalidQuery("a penalty is a count.")
    return round(penalty * GRID)


def _add_noise_together(truths: dict[str, NDArray[np.int64]], noises: dict[str, Noise]) -> dict[str, NDArray[np.int64]]:
    """One vector draw for all questions with the same noise: a draw by itself costs ten times a drawn entry."""
    drawn: dict[str, NDArray[np.int64]] = {}
    for noise in set(noises.values()):
        keys = [k for k in truths if noises[k] == noise]
        together = add_noise(np.concatenate([truths[k] for k in keys]), noise)
        drawn |= zip(keys, np.split(together, np.cumsum([truths[k].size for k in keys])[:-1]), strict=True)
    return drawn
