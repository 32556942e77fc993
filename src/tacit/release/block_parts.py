"""Questions about many blocks, taken apart into one for each ledger and put together from their answers. Public.

The column of blocks is known for every row, so a question about all blocks is, for each, the question that is left
there; counts and tables add up. Used by `tacit.series` alone.
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
from tacit.model.facts import EXACT, Facts, Receipt
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import Marginal
from tacit.release.estimate import Estimate, TableEstimate, for_each
from tacit.release.groups import BlockGroup, Taken, runs
from tacit.release.hypothesis.noisy_table import CellSums
from tacit.release.need import Need, Part, RangesOf, Released
from tacit.release.ranges.flat_table import FlatTable
from tacit.release.window import facts_of_blocks, in_steps, paid, stacked, summed, summed_table

MOST_CELLS = 10_000  # of a table, in each block


class BlockTerms(NamedTuple):
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


Told = Mapping[BlockGroup, Mapping[Need, Part]]


class Blockwise:
    """What questions about many blocks ask of their ledgers, and how the answers are put together again.

    Blocks in a row of which the same is asked may be asked as groups of blocks. `read` answers one more count, about
    something that was just told.
    """

    def __init__(self, needs: Sequence[Need], terms: BlockTerms, read: Callable[[Query], Estimate]) -> None:
        self._needs, self._terms, self._read = list(dict.fromkeys(needs)), terms, read
        self._name, self._domain, self._sizes, self._learns, self._confidence, self._free, self._rows, self._cover = (
            terms
        )
        self._asks = {need: self._of_ledgers(need) for need in self._needs}

    def asked(self) -> dict[BlockGroup, list[Need]]:
        """What has to be known of each ledger: nothing where numbers of rows say it all."""
        found = dict[BlockGroup, dict[Need, None]]()
        for asks in self._asks.values():
            for group, _, asked in asks:
                if not _is_public(asked):
                    found.setdefault(group, {}).update(dict.fromkeys(self._spelled(asked)))
        return {group: list(needs) for group, needs in found.items()}

    def put_together(self, told: Told) -> dict[Need, Part]:
        return {need: self._whole(need, told) for need in self._needs}

    def _of_ledgers(self, need: Need) -> list[LedgerAsk]:
        each = self._of_each(need)
        apart = isinstance(need, Marginal) and self._name in need.names
        found = list[LedgerAsk]()
        for first, end in runs(each):
            if apart or end - first == 1 or _is_public(each[first]):
                found += [LedgerAsk(BlockGroup(0, place), 1, each[place]) for place in range(first, end)]
            else:
                found += [LedgerAsk(group, sign, each[first]) for group, sign in self._cover(first, end)]
        return found

    def _of_each(self, need: Need) -> Sequence[Query | Marginal]:
        name, blocks = self._name, len(self._sizes)
        if isinstance(need, Query):
            return of_each_block(need, name, blocks)
        if isinstance(need, Marginal):
            if math.prod(self._domain[one].size for one in need.names if one != name) > MOST_CELLS:
                raise InvalidQuery(f"a table over blocks has at most {MOST_CELLS:,} cells in each; ask one block.")
            each = table_of_each_block(need, name, blocks)
            return [one.where if isinstance(one, Marginal) and one.size(self._domain) == 1 else one for one in each]
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
        if isinstance(asked, Query) or not self._learns:
            return [asked]
        return [cell for cell in asked.queries(self._domain) if not cell.is_constant]

    def _whole(self, need: Need, told: Told) -> Part:
        asks = self._asks[need]
        if isinstance(need, Query):
            counts, levels = list[Estimate](), [one.group.level for one in asks]
            for group, sign, asked in asks:
                assert isinstance(asked, Query)
                counts.append(in_steps(self._count(asked, group, told), sign * (need.unit // asked.unit)))
            return summed(counts, self._confidence, levels)
        if isinstance(need, Marginal):
            return self._table(need, asks, told)
        assert isinstance(need, RangesOf)
        whole = self._table(Marginal(need.names, Query.constant(everyone=True)), asks, told)
        if whole.noise is None:
            raise InvalidQuery(f"the blocks tell {need.names[0]} in different ways: ask one block.")
        summed_cells = _SummedCells(CellSums(whole.noise, whole.values, whole.draws))
        flat = FlatTable(summed_cells, need.names[0], self._domain, sum(self._sizes), self._confidence)
        return Released(flat, whole.facts)

    def _count(self, asked: Query, group: BlockGroup, told: Told) -> Estimate:
        """What a ledger says about a count. Where every row has the same weight, its number of rows says it."""
        if asked.is_constant:
            value = int(asked.table((), ()).item()) * self._rows(group)
            return Estimate(value, Facts("public", self._free, self._confidence).within(0, EXACT))
        found = told[group][asked]
        assert isinstance(found, Estimate)
        return found

    def _table(self, need: Marginal, asks: Sequence[LedgerAsk], told: Told) -> TableEstimate:
        names = [name for name in need.names if name != self._name]
        shape = self._domain.shape_of(names)
        axis = need.names.index(self._name) if self._name in need.names else None
        levels = [one.group.level for one in asks]
        if not self._learns and names and not any(isinstance(one.asked, Query) for one in asks):
            tables = [self._bought(one, told, shape) for one in asks]
            if axis is not None:
                return replace(stacked(tables, axis, self._confidence), read=self._read)
            noisy = [(one, level) for one, level in zip(tables, levels, strict=True) if one.facts.source != "public"]
            some = noisy or [(one, 0) for one in tables]
            whole = summed_table([one for one, _ in some], self._confidence, [level for _, level in some])
            if whole is not None:
                return replace(whole, read=self._read)
            flat = [self._read(cell) for cell in need.queries(self._domain)]  # some cells were told before, by others
            return self._of_cells(flat, shape, [table.facts for table in tables], levels)
        cells = [
            [in_steps(self._count(cell, group, told), sign) for cell in self._cells_of(asked)]
            for group, sign, asked in asks
        ]
        ledgers = [Facts.of([cell.facts for cell in each], self._confidence) for each in cells]
        if axis is None:
            flat = [summed(each, self._confidence, levels) for each in zip(*cells, strict=True)]
            return self._of_cells(flat, shape, ledgers, levels)
        made = self._of_cells([cell for each in cells for cell in each], (len(cells), *shape), ledgers, levels)
        return replace(made, values=np.ascontiguousarray(np.moveaxis(made.values, 0, axis)))

    def _of_cells(
        self, cells: Sequence[Estimate], shape: tuple[int, ...], ledgers: Sequence[Facts], levels: Sequence[int]
    ) -> TableEstimate:
        """A table of cells that have an answer each; `ledgers` are the facts of what each ledger says of them."""
        facts = replace(facts_of_blocks(ledgers, self._confidence), cost=paid(ledgers, levels))
        facts = replace(facts, bars=for_each([cell.facts.bars for cell in cells]))
        values = np.array([cell.value for cell in cells], dtype=np.int64).reshape(shape)
        return TableEstimate(values, facts, read=None if self._learns else self._read)

    def _cells_of(self, asked: Query | Marginal) -> list[Query]:
        return [asked] if isinstance(asked, Query) else list(asked.queries(self._domain))

    def _bought(self, ask: LedgerAsk, told: Told, shape: tuple[int, ...]) -> TableEstimate:
        """A table that a ledger tells as a whole; of no rows it is known."""
        if _is_public(ask.asked):
            facts = Facts("public", self._free, self._confidence).within(0, EXACT)
            return TableEstimate(np.zeros(shape, dtype=np.int64), facts)
        found = told[ask.group][ask.asked]
        assert isinstance(found, TableEstimate)
        return found if ask.sign == 1 else replace(found, values=-found.values)


@dataclass
class _SummedCells:
    """The counts of one attribute's values over several blocks, whose ledgers have no receipt in common."""

    cells: CellSums
    receipt = Receipt(0, "")

    def values_of(self, name: str, /) -> CellSums:
        return self.cells


def _is_public(asked: Need) -> bool:
    """Whether what is asked of a block follows from its number of rows."""
    if isinstance(asked, Marginal):
        return asked.where.is_constant and not asked.where.is_everyone
    return isinstance(asked, Query) and asked.is_constant
