"""Questions about many blocks, taken apart into one for each block and put together from their answers. Public.

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
from tacit.release.hypothesis.noisy_table import CellSums
from tacit.release.need import Need, Part, RangesOf, Released
from tacit.release.ranges.flat import FlatTable
from tacit.release.window import facts_of_blocks, in_steps, stacked, summed, summed_table

MOST_CELLS = 10_000  # of a table, in each block


class BlockTerms(NamedTuple):
    """What is public about the blocks: the name of their column, the domain of each, and their numbers of rows."""

    name: str
    domain: Domain
    sizes: Sequence[int]
    learns: bool  # tables are put together from counts
    confidence: float
    free: Loss


class Blockwise:
    """What questions about many blocks ask of each of them, and how the answers are put together again.

    `read` answers one more count, about something that was just told.
    """

    def __init__(self, needs: Sequence[Need], terms: BlockTerms, read: Callable[[Query], Estimate]) -> None:
        self._needs, self._terms, self._read = list(dict.fromkeys(needs)), terms, read
        self._name, self._domain, self._sizes, self._learns, self._confidence, self._free = terms
        self._each = {need: self._of_each(need) for need in self._needs}

    def of_block(self, place: int) -> list[Need]:
        """What has to be known of one block: nothing where its number of rows says it all."""
        asked = (one for each in self._each.values() for one in self._spelled(each[place]))
        return [one for one in dict.fromkeys(asked) if not _is_public(one)]

    def put_together(self, told: Sequence[Mapping[Need, Part]]) -> dict[Need, Part]:
        return {need: self._whole(need, told) for need in self._needs}

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
        return list(asked.queries(self._domain))

    def _whole(self, need: Need, told: Sequence[Mapping[Need, Part]]) -> Part:
        asked = self._each[need]
        if isinstance(need, Query):
            units = [need.unit // one.unit for one in asked if isinstance(one, Query)]
            counts = [self._count(one, place, told[place]) for place, one in enumerate(asked)]
            return summed([in_steps(*one) for one in zip(counts, units, strict=True)], self._confidence)
        if isinstance(need, Marginal):
            return self._table(need, told)
        assert isinstance(need, RangesOf)
        whole = self._table(Marginal(need.names, Query.constant(everyone=True)), told, asked)
        if whole.noise is None:
            raise InvalidQuery(f"the blocks tell {need.names[0]} in different ways: ask one block.")
        summed_cells = _SummedCells(CellSums(whole.noise, whole.values, whole.draws))
        flat = FlatTable(summed_cells, need.names[0], self._domain, sum(self._sizes), self._confidence)
        return Released(flat, whole.facts)

    def _count(self, asked: Query | Marginal, place: int, told: Mapping[Need, Part]) -> Estimate:
        """What a block says about a count. Where every row has the same weight, its number of rows says it."""
        assert isinstance(asked, Query)
        if asked.is_constant:
            value = int(asked.table((), ()).item()) * self._sizes[place]
            return Estimate(value, Facts("public", self._free, self._confidence).within(0, EXACT))
        found = told[asked]
        assert isinstance(found, Estimate)
        return found

    def _table(
        self,
        need: Marginal,
        told: Sequence[Mapping[Need, Part]],
        asked: Sequence[Query | Marginal] | None = None,
    ) -> TableEstimate:
        asked = self._each[need] if asked is None else asked
        names = [name for name in need.names if name != self._name]
        shape = tuple(self._domain[name].size for name in names)
        axis = need.names.index(self._name) if self._name in need.names else None
        if not self._learns and names and not any(isinstance(one, Query) for one in asked):
            tables = [self._bought(one, place, told[place], shape) for place, one in enumerate(asked)]
            if axis is not None:
                return replace(stacked(tables, axis, self._confidence), read=self._read)
            noisy = [table for table in tables if table.facts.source != "public"]
            whole = summed_table(noisy or tables, self._confidence)
            if whole is not None:
                return replace(whole, read=self._read)
            flat = [self._read(cell) for cell in need.queries(self._domain)]  # some cells were told before, by others
            paid = facts_of_blocks([table.facts for table in tables], self._confidence)
            return self._of_cells(flat, shape, paid)
        cells = [
            [self._count(cell, place, told[place]) for cell in self._cells_of(one)] for place, one in enumerate(asked)
        ]
        if axis is None:
            flat = [summed(each, self._confidence) for each in zip(*cells, strict=True)]
            return self._of_cells(flat, shape)
        made = self._of_cells([cell for each in cells for cell in each], (len(cells), *shape))
        return replace(made, values=np.ascontiguousarray(np.moveaxis(made.values, 0, axis)))

    def _of_cells(self, cells: Sequence[Estimate], shape: tuple[int, ...], paid: Facts | None = None) -> TableEstimate:
        """A table of cells that have an answer each."""
        facts = paid or facts_of_blocks([cell.facts for cell in cells], self._confidence)
        facts = replace(facts, bars=for_each([cell.facts.bars for cell in cells]))
        values = np.array([cell.value for cell in cells], dtype=np.int64).reshape(shape)
        return TableEstimate(values, facts, read=None if self._learns else self._read)

    def _cells_of(self, asked: Query | Marginal) -> list[Query]:
        return [asked] if isinstance(asked, Query) else list(asked.queries(self._domain))

    def _bought(
        self, asked: Query | Marginal, place: int, told: Mapping[Need, Part], shape: tuple[int, ...]
    ) -> TableEstimate:
        """A table that a block tells as a whole; of no rows it is known."""
        if _is_public(asked):
            facts = Facts("public", self._free, self._confidence).within(0, EXACT)
            return TableEstimate(np.zeros(shape, dtype=np.int64), facts)
        found = told[asked]
        assert isinstance(found, TableEstimate)
        return found


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
