"""The private table as codes that stay in an engine, which counts what is asked about. It never leaves trusted/.

For tables beyond memory. `cells.encode` wrote one row of codes for each row that counts, and says what holds between
neighbours. `load/` writes the statements. What comes back must be a table of the declared shape, of whole numbers from
0, that add up to all rows: a row that is lost, counted twice or not declared refuses the answer. As in `cells`, no sum
notices a row in a wrong cell.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from tacit.errors import DataError
from tacit.model import counting
from tacit.model.domain import Domain
from tacit.model.engine import Countable
from tacit.model.query import Query
from tacit.model.statistic import Statistic
from tacit.model.workload import Question
from tacit.trusted.records import MAX_ROWS, Counts, Records

_OTHERS = "the rows that were counted are not those of the copy: forget it, and opening a session makes it again."


class Counted:
    """Integer counts over the domain, made when they are asked for; never leaves trusted/."""

    __slots__ = ("_copy", "counted", "domain", "rows", "rows_per_person")

    def __init__(self, copy: Countable, domain: Domain, rows_per_person: int = 1) -> None:
        self._copy, self.domain, self.rows_per_person = copy, domain, rows_per_person
        self.counted = copy.check  # so that nothing is paid for questions of too many cells, and on a replaced copy
        self.rows = copy.rows()
        if not 0 < self.rows < MAX_ROWS:
            raise DataError(f"the copy of the table has no rows, or {MAX_ROWS:,} and more.")

    def prepare(self, questions: Iterable[Question]) -> None:
        """Count together what these questions need. What is not prepared is counted when it is asked for."""
        self._copy.prepare([one for question in questions for one in counting.groups(question, self.domain)])

    def answer(self, query: Query | Statistic) -> int:
        """The true answer, in grid steps. Guarantee and formula: as `Records.answer`, to the last bit."""
        if isinstance(query, Statistic):
            return int(query.evaluate(self.table(query.scope)[None])[0])
        return counting.answer(query, self.rows, self.domain, self._count)

    def table(self, names: Iterable[str], where: Query | None = None) -> Counts:
        """The true counts of a marginal, among the rows that meet a condition: as `Records.table`, to the last bit."""
        onto = counting.check_table(self.domain, names, where).names
        return counting.table(onto, where, self.domain, self._count)

    def fingerprint(self, key: bytes) -> str:
        """A keyed hash by which a ledger knows its data again; another one than that of loaded records.

        Guarantee: equal for the same rows in any order, on any engine; says nothing about them without the key.
        Formula: BLAKE2b (RFC 7693) with `key` over the domain, the number of rows and `Countable.sums`.
        Refuses codes that are not declared: sums would take no notice of them, and a ledger is bound to what they say.
        """
        sums, spans = self._copy.sums(hashlib.blake2b(b"sums of codes", key=key, digest_size=32).digest())
        if spans.shape != (len(self.domain), 3) or (spans[:, 0] != self.rows).any() or (spans[:, 1] < 0).any():
            raise DataError(_OTHERS)
        self.domain.check_declared(spans[:, 1:])
        told = f"{self.domain.key} {self.rows} {list(sums)}".encode()
        return hashlib.blake2b(told, key=key, digest_size=32).hexdigest()

    def _count(self, one: counting.Group) -> Counts:
        table = self._copy.count(one)
        whole = table.dtype == np.int64 and table.shape == one.shape(self.domain)
        if not whole or int(table.min()) < 0 or int(table.sum()) != self.rows:
            self._copy.distrust()  # so that `counted` refuses what is asked next, before it is paid
            raise DataError(_OTHERS)
        return table

    def __reduce__(self) -> Any:
        raise TypeError("records stay where they were loaded")


AnyRecords = Records | Counted
