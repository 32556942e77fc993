"""Questions about many blocks, taken apart into one for each ledger and put together from their answers. Public.

The column of blocks is known for every row, so a question about all blocks is, for each, the question that is left
there; counts and tables add up. Used by `tacit.blocks.series` alone.

Blocks have ledgers of their own, and so have groups of blocks, so their noise is independent. A sum may have terms that
are taken off: noise is symmetric, and the size of an error is that of its negative. Three bars of a sum are proved.

- By the law of noise. Where a block tells a centre around which its truth lies by the law of some draws, the sum of the
  truths lies around the sum of the centres by the law of all draws together: like the root of the sum of squares. What
  is shown may be another sum, whose distance from that one is public, and is added.
- By certified largest errors. No error of a block is above its certified one, so the sum's is not above theirs; each is
  known but for one draw, and these draws again add up like independent ones. The errors themselves add linearly: they
  are those of a guess, and may all have one sign.
- By the blocks' own bars, which add linearly, and hold all at once with what the union bound leaves.

Which of them there are is decided by what was bought and how, never by a value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tacit.errors import InvalidQuery
from tacit.model.block import of_each_block, table_of_each_block
from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.model.facts import EXACT, NEWEST_FIRST, NOISE, Bar, Facts, about, all_of, joined
from tacit.model.noise_law import Noise
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal
from tacit.release.estimate import Centre, Estimate, TableEstimate, for_each
from tacit.release.evidence import AnswerPart, Need, RangesOf, Released, sure
from tacit.release.groups import BlockGroup, Taken, runs
from tacit.release.hypothesis.noisy_table import CellSums
from tacit.release.noise_sum import Draws, width_of_all
from tacit.release.purchases import split
from tacit.release.ranges.flat_table import FlatTable

MOST_BLOCK_CELLS = 10_000  # of a table, in each block
_MANY = 3  # blocks whose notes a sum repeats


@dataclass(frozen=True, kw_only=True)
class BlockTerms:
    """What is public about the blocks: the name of their column, the domain of each, and their numbers of rows."""

    name: str
    domain: Domain
    sizes: Sequence[int]
    learns: bool  # tables are put together from counts
    confidence: float
    free: Loss
    rows: Callable[[BlockGroup], int]  # of a ledger
    cover: Callable[[int, int], Sequence[Taken]]  # the ledgers that some blocks in a row are put together from


class LedgerAsk(NamedTuple):
    """What is asked of one ledger, and whether what it says is added (1) or taken off (-1)."""

    group: BlockGroup
    sign: int
    asked: Query | Marginal


Told = Mapping[BlockGroup, Mapping[Need, AnswerPart]]


class Blockwise:
    """What questions about many blocks ask of their ledgers, and how the answers are put together again.

    Blocks in a row of which the same is asked may be asked as groups of blocks. `read` answers one more count, about
    something that was just told.
    """

    def __init__(self, needs: Sequence[Need], terms: BlockTerms, read: Callable[[Query], Estimate]) -> None:
        self._needs, self._terms, self._read = list(dict.fromkeys(needs)), terms, read
        self._asks = {need: self._of_ledgers(need) for need in self._needs}

    def asked(self) -> dict[BlockGroup, list[Need]]:
        """What has to be known of each ledger: nothing where numbers of rows say it all."""
        found = dict[BlockGroup, dict[Need, None]]()
        for asks in self._asks.values():
            for group, _, asked in asks:
                if not _is_public(asked):
                    found.setdefault(group, {}).update(dict.fromkeys(self._spelled(asked)))
        return {group: list(needs) for group, needs in found.items()}

    def put_together(self, told: Told) -> dict[Need, AnswerPart]:
        return {need: self._whole(need, told) for need in self._needs}

    def _of_ledgers(self, need: Need) -> list[LedgerAsk]:
        each = self._of_each(need)
        apart = isinstance(need, Marginal) and self._terms.name in need.names
        found = list[LedgerAsk]()
        for first, end in runs(each):
            if apart or end - first == 1 or _is_public(each[first]):
                found += [LedgerAsk(BlockGroup(0, place), 1, each[place]) for place in range(first, end)]
            else:
                found += [LedgerAsk(group, sign, each[first]) for group, sign in self._terms.cover(first, end)]
        return found

    def _of_each(self, need: Need) -> Sequence[Query | Marginal]:
        name, domain, blocks = self._terms.name, self._terms.domain, len(self._terms.sizes)
        if isinstance(need, Query):
            return of_each_block(need, name, blocks)
        if isinstance(need, Marginal):
            if math.prod(domain[one].size for one in need.names if one != name) > MOST_BLOCK_CELLS:
                raise InvalidQuery(
                    f"a table over blocks has at most {MOST_BLOCK_CELLS:,} cells in each; ask one block."
                )
            each = table_of_each_block(need, name, blocks)
            return [one.where if isinstance(one, Marginal) and one.size(domain) == 1 else one for one in each]
        if isinstance(need, Statistic):
            raise InvalidQuery(
                "a statistic is no sum over rows, so that of several blocks does not follow from theirs: ask one, "
                "like series.block('2026-03')."
            )
        if need.share is not None or len(need.names) > 1:
            raise InvalidQuery(
                "a release of all ranges is bought for one block: series.block('2026-03').cdf(…, share=…)."
            )
        return [Marginal(need.names, Query.constant(everyone=True))] * blocks

    def _spelled(self, asked: Query | Marginal) -> list[Query | Marginal]:
        """A table as it is asked for: whole, or cell by cell where each is a question of its own."""
        if isinstance(asked, Query) or not self._terms.learns:
            return [asked]
        return [cell for cell in asked.queries(self._terms.domain) if not cell.is_constant]

    def _whole(self, need: Need, told: Told) -> AnswerPart:
        asks = self._asks[need]
        if isinstance(need, Query):
            counts, levels = list[Estimate](), [one.group.level for one in asks]
            for group, sign, asked in asks:
                assert isinstance(asked, Query)
                counts.append(in_steps(self._count(asked, group, told), sign * (need.unit // asked.unit)))
            return summed(counts, self._terms.confidence, levels)
        if isinstance(need, Marginal):
            return self._table(need, asks, told)
        assert isinstance(need, RangesOf)
        whole = self._table(Marginal(need.names, Query.constant(everyone=True)), asks, told)
        if whole.noise is None:
            raise InvalidQuery(f"the blocks tell {need.names[0]} in different ways: ask one block.")
        rows, confidence = sum(self._terms.sizes), self._terms.confidence
        cells = CellSums(whole.noise, whole.values, whole.draws)
        return Released(FlatTable(cells, need.names[0], self._terms.domain, rows, confidence), whole.facts)

    def _count(self, asked: Query, group: BlockGroup, told: Told) -> Estimate:
        """What a ledger says about a count. Where every row has the same weight, its number of rows says it."""
        if asked.is_constant:
            value = int(asked.table((), ()).item()) * self._terms.rows(group)
            return Estimate(value, Facts("public", self._terms.free, self._terms.confidence).within(0, EXACT))
        found = told[group][asked]
        assert isinstance(found, Estimate)
        return found

    def _table(self, need: Marginal, asks: Sequence[LedgerAsk], told: Told) -> TableEstimate:
        block, domain = self._terms.name, self._terms.domain
        names = [name for name in need.names if name != block]
        shape = domain.shape_of(names)
        axis = need.names.index(block) if block in need.names else None
        levels = [one.group.level for one in asks]
        if not self._terms.learns and names and not any(isinstance(one.asked, Query) for one in asks):
            tables = [self._bought(one, told, shape) for one in asks]
            if axis is not None:
                return replace(stacked(tables, axis, self._terms.confidence), read=self._read)
            noisy = [(one, level) for one, level in zip(tables, levels, strict=True) if one.facts.source != "public"]
            some = noisy or [(one, 0) for one in tables]
            whole = summed_table([one for one, _ in some], self._terms.confidence, [level for _, level in some])
            if whole is not None:
                return replace(whole, read=self._read)
            flat = [self._read(cell) for cell in need.queries(domain)]  # some cells were told before, by others
            return self._of_cells(flat, shape, [table.facts for table in tables], levels)
        cells = [
            [in_steps(self._count(cell, group, told), sign) for cell in self._cells_of(asked)]
            for group, sign, asked in asks
        ]
        ledgers = [Facts.of([cell.facts for cell in each], self._terms.confidence) for each in cells]
        if axis is None:
            flat = [summed(each, self._terms.confidence, levels) for each in zip(*cells, strict=True)]
            return self._of_cells(flat, shape, ledgers, levels)
        made = self._of_cells([cell for each in cells for cell in each], (len(cells), *shape), ledgers, levels)
        return replace(made, values=np.ascontiguousarray(np.moveaxis(made.values, 0, axis)))

    def _of_cells(
        self, cells: Sequence[Estimate], shape: tuple[int, ...], ledgers: Sequence[Facts], levels: Sequence[int]
    ) -> TableEstimate:
        """A table of cells that have an answer each; `ledgers` are the facts of what each ledger says of them."""
        facts = facts_of_blocks(ledgers, self._terms.confidence, levels)
        facts = replace(facts, bars=for_each([cell.facts.bars for cell in cells]))
        values = np.array([cell.value for cell in cells], dtype=np.int64).reshape(shape)
        return TableEstimate(values, facts, read=None if self._terms.learns else self._read)

    def _cells_of(self, asked: Query | Marginal) -> list[Query]:
        return [asked] if isinstance(asked, Query) else list(asked.queries(self._terms.domain))

    def _bought(self, ask: LedgerAsk, told: Told, shape: tuple[int, ...]) -> TableEstimate:
        """A table that a ledger tells as a whole; of no rows it is known."""
        if _is_public(ask.asked):
            facts = Facts("public", self._terms.free, self._terms.confidence).within(0, EXACT)
            return TableEstimate(np.zeros(shape, dtype=np.int64), facts)
        found = told[ask.group][ask.asked]
        assert isinstance(found, TableEstimate)
        return found if ask.sign == 1 else replace(found, values=-found.values)


def _is_public(asked: Need) -> bool:
    """Whether what is asked of a block follows from its number of rows."""
    if isinstance(asked, Marginal):
        return asked.where.is_constant and not asked.where.is_everyone
    return isinstance(asked, Query) and asked.is_constant


# -- sums over blocks, and how far off they are ------------------------------------------------------------------------


def in_steps(estimate: Estimate, times: int) -> Estimate:
    """An answer on a grid with `times` steps for each of its own; below 0, as it is taken off a sum."""
    if times == 1:
        return estimate
    size = abs(times)
    bars = tuple(replace(bar, width=bar.width * size) for bar in estimate.facts.bars)
    centre, ceiling = estimate.centre, estimate.ceiling
    if centre is not None:
        centre = Centre(centre.value * times, centre.draws.times(times), centre.rounded * size)
    if ceiling is not None:
        ceiling = ceiling._replace(least=ceiling.least * size, draws=ceiling.draws.times(times))
    return Estimate(estimate.value * times, replace(estimate.facts, bars=bars), centre, ceiling)


def summed(blocks: Sequence[Estimate], confidence: float, levels: Sequence[int] = ()) -> Estimate:
    """The count over blocks whose own counts these are, on one grid; `levels` are those of their ledgers."""
    noisy = [one for one in blocks if one.facts.bars[:1] == () or one.facts.bars[0].about != EXACT]
    value = sum(one.value for one in blocks)
    facts = facts_of_blocks([one.facts for one in (noisy or blocks)], confidence)
    facts = replace(facts, cost=paid([one.facts for one in blocks], levels))
    if len(noisy) == 1:  # all else is public: the bars of one block are those of the sum
        return replace(noisy[0], value=value, facts=replace(facts, bars=noisy[0].facts.bars))
    if not noisy:
        return Estimate(value, facts.within(0, EXACT))
    bars = _bars(noisy, confidence)
    return Estimate(value, replace(facts, bars=bars))


def _bars(noisy: Sequence[Estimate], confidence: float) -> tuple[Bar, ...]:
    """Every bar of a sum that is proved at the confidence, the narrowest first; else the one at what is left of it."""
    centres = [one.centre for one in noisy if one.centre is not None]
    ceilings = [one.ceiling for one in noisy if one.ceiling is not None]
    whole, capped = len(centres) == len(noisy), len(ceilings) == len(noisy)
    bars = list[Bar]()
    # Where the narrower of two bars is shown, both must hold: what may go wrong is parted between them.
    read, others = (split(confidence).read, split(confidence).others) if whole and capped else (confidence, confidence)
    if whole:
        bars.append(Bar(_reach(noisy, read), NOISE, confidence))
    if capped:
        # The draws are symmetric, and only what they may hide counts: one side of them.
        beyond = width_of_all([one.draws for one in ceilings], 1 - 2 * (1 - others)) if others > 0.5 else 0.0
        width = max(1.0, math.ceil(sum(one.least for one in ceilings) + beyond))
        bars.append(Bar(width, all_of(sum(one.questions for one in ceilings)), confidence))
    if bars:
        return tuple(sorted(bars, key=lambda bar: bar.width))
    rest = [one for one in noisy if one.centre is None]
    shown = [one.facts.bars[0] for one in rest if one.facts.bars]
    # Every block counts, as which of them have a bar of their own may follow from what gates said.
    left = sure(len(noisy) + bool(centres), confidence)
    if len(shown) < len(rest) or left <= 0:
        return ()
    together = _reach([one for one in noisy if one.centre is not None], confidence) if centres else 0.0
    parts = [*shown, *([Bar(together, NOISE, confidence)] if centres else [])]
    return (Bar(together + sum(bar.width for bar in shown), about(parts, left), left),)


def _reach(noisy: Sequence[Estimate], confidence: float) -> float:
    """How far the truth of a sum is from what is shown: the law of all draws, and the way from their centre."""
    centres = [one.centre for one in noisy if one.centre is not None]
    off = abs(sum(one.value for one in noisy) - sum(centre.value for centre in centres))
    width = width_of_all([centre.draws for centre in centres], confidence)
    return math.ceil(off + width + sum(centre.rounded for centre in centres))


def paid(ledgers: Sequence[Facts], levels: Sequence[int] = ()) -> Loss:
    """The most that a row's ledgers were charged together: it is in one of each level."""
    most = dict[int, int]()
    for one, level in zip(ledgers, levels or [0] * len(ledgers), strict=True):
        most[level] = max(most.get(level, 0), one.cost.atoms)
    return Loss(ledgers[0].cost.measure, sum(most.values()))


def facts_of_blocks(blocks: Sequence[Facts], confidence: float, levels: Sequence[int] = ()) -> Facts:
    """The facts of what several ledgers say: the newest source, and the most that any one of them was charged.

    Every row is in one block, so what a row's ledger was charged is what the answer costs for it. A receipt is of one
    ledger: of several there is none.
    """
    source = min((one.source for one in blocks), key=NEWEST_FIRST.index)
    notes = list(dict.fromkeys(one.note for one in blocks if one.note))
    more = f"and {len(notes) - _MANY:,} more notes" if len(notes) > _MANY else ""
    receipt = blocks[0].receipt if len(blocks) == 1 else None
    return Facts(source, paid(blocks, levels), confidence, receipt, joined((*notes[:_MANY], more)))


def summed_table(
    blocks: Sequence[TableEstimate], confidence: float, levels: Sequence[int] = ()
) -> TableEstimate | None:
    """The table over blocks all whose cells have noise of one law; None where they have not."""
    law = _law(blocks)
    if law is None:
        return None
    draws = sum(one.draws for one in blocks)
    facts = facts_of_blocks([one.facts for one in blocks], confidence, levels)
    width = width_of_all([Draws(law, draws, 1.0, draws)], confidence)
    values = np.sum([one.values for one in blocks], axis=0)
    return TableEstimate(values, facts.within(width), law, draws)


def stacked(blocks: Sequence[TableEstimate], axis: int, confidence: float) -> TableEstimate:
    """The table with one more attribute, the block: every cell is that of its block, with its bar."""
    facts = facts_of_blocks([one.facts for one in blocks], confidence)
    facts = replace(facts, bars=for_each([one.facts.bars for one in blocks]))
    values = np.stack([one.values for one in blocks], axis=axis)
    return TableEstimate(values, facts, _law(blocks), max(one.draws for one in blocks))


def _law(blocks: Sequence[TableEstimate]) -> Noise | None:
    """The noise that every cell of these has; None where one does not say, or has another."""
    laws = {one.noise for one in blocks}
    return laws.pop() if len(laws) == 1 else None
