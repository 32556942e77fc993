"""A thread that only reads: the ledger takes no charge, no answer and no gate's state from it, and others go on."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from ledger_tools import PRICE, ask

from curators import private_of
from support import PATIENCE
from tacit.errors import WouldSpend
from tacit.trusted.ledger import Ledger, Outcome


def test_nothing_is_written_by_a_thread_that_only_reads(ledger: Ledger) -> None:
    ask(ledger, "known")
    gate = ledger.reserve(PRICE, purpose="gate", private="7")
    waiting = ledger.reserve(PRICE, purpose="count")
    before = ledger.log.head()[:2], ledger.spent
    writes: list[Callable[[], object]] = [
        lambda: ledger.reserve(PRICE, purpose="count"),
        lambda: ledger.reserve(PRICE - PRICE, purpose="count"),  # also what costs nothing
        lambda: ledger.settle(waiting, [Outcome("new", PRICE.atoms, "measured", "{}")]),
        lambda: ledger.settle(None, [Outcome("free", 0, "told", "{}")]),
        lambda: ledger.take_private(gate),
    ]
    with ledger.log.conditions.read_only():
        with ledger.log.conditions.read_only():
            pass  # the end of an inner one does not end the outer one
        for write in writes:
            with pytest.raises(WouldSpend):
                write()
        assert (ledger.log.head()[:2], ledger.spent) == before
        assert private_of(ledger.log, gate) == "7"
        assert ledger.find("known") is not None
        other = threading.Thread(target=ask, args=(ledger, "theirs"))
        other.start()
        other.join(PATIENCE)
        assert ledger.find("theirs") is not None
    for write in writes:  # and each of them would have written
        head = ledger.log.head()[:2]
        write()
        assert ledger.log.head()[:2] != head or private_of(ledger.log, gate) is None
    ledger.log.verify()


def test_an_error_inside_ends_it(ledger: Ledger) -> None:
    with pytest.raises(KeyError), ledger.log.conditions.read_only():
        raise KeyError
    ask(ledger, "question")


def test_a_thread_that_may_spend_so_much_spends_no_more(ledger: Ledger) -> None:
    with ledger.log.conditions.spending(2 * PRICE.atoms):
        ask(ledger, "first")
        other = threading.Thread(target=ask, args=(ledger, "theirs"))  # counts for nothing here
        other.start()
        other.join(PATIENCE)
        ask(ledger, "second")
        before = ledger.log.head()
        with pytest.raises(WouldSpend, match="more than may be spent"):
            ask(ledger, "third")
        assert ledger.log.head() == before  # it is as if it had not been tried
        assert ledger.find("first") is not None
    ask(ledger, "third")
    ledger.log.verify()
