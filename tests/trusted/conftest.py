"""A new ledger for the tests of ledgers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from ledger_tools import terms

from tacit.trusted.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger.open(tmp_path / "people.tacit", make="new", **terms(tmp_path)) as made:
        yield made
