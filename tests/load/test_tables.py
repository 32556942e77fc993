"""What is remembered of a copy: so much of it, with what each table takes, and without adding it up again and again."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.load.tables import LEAST_CELLS, Key, Tables, weight

TWO = np.zeros(2, dtype=np.int64)


def condition(number: int, codes: int = 50) -> Key:
    """A table of the rows that meet a condition, and of the others."""
    return frozenset(), (("a", number.to_bytes(codes)),)


def plain(*names: str) -> Key:
    return frozenset(names), ()


class Sized:
    """A table that notes how often somebody asks for its size."""

    asked = 0

    @property
    def size(self) -> int:
        Sized.asked += 1
        return 2


def test_small_tables_count_as_what_they_take() -> None:
    tables: Any = Tables()
    for number in range(1_000):
        tables.keep(condition(number), TWO)
        tables.shrink(100 * LEAST_CELLS)
    assert 90 < len(tables) <= 100
    assert condition(999) in tables
    assert condition(0) not in tables
    # A condition on an attribute of many values has a long key.
    assert weight(condition(1, 80_000), 2) == LEAST_CELLS + 10_000
    assert weight(plain("a"), 10_000) == 10_000


def test_forgetting_many_tables_looks_at_none_of_those_that_stay() -> None:
    tables: Any = Tables()
    for number in range(2_000):
        tables.keep(condition(number), Sized())
    Sized.asked = 0
    for place in range(2_000):
        tables.keep(plain(f"a{place}"), TWO)
        tables.shrink(2_000 * LEAST_CELLS)
    assert Sized.asked == 0


def test_the_weight_of_tables_is_kept_as_they_come_and_go() -> None:
    tables, rng = Tables(), np.random.default_rng(0)
    keys = [condition(i) for i in range(20)] + [plain(f"a{i}") for i in range(20)]
    for _ in range(300):
        tables.keep(keys[rng.integers(40)], np.zeros(rng.integers(1, 1_000), dtype=np.int64))
        tables.shrink(8_000)
        known = [key for key in keys if key in tables]
        assert tables.weight == sum(map(tables.weight_of, known)) <= 8_000
        assert len(known) == len(tables)
        assert tables.nearest(plain()) == min(
            (key for key in known if not key[1]), key=lambda key: tables[key].size, default=None
        )
    tables.clear()
    assert (tables.weight, len(tables), tables.nearest(plain())) == (0, 0, None)


def test_what_is_used_is_forgotten_last() -> None:
    tables = Tables()
    for name in "abc":
        tables.keep(plain(name), TWO)
    tables.use(plain("a"))
    tables.shrink(2 * LEAST_CELLS)
    assert [name for name in "abc" if plain(name) in tables] == ["a", "c"]
