"""PostgreSQL's protocol with anything at all in its messages: no crash, no hang, no charge.

A few thousand messages here, a million in `make audit`.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from itertools import pairwise

import pytest
from benchmarks.serving.frontend import query
from serving import Served
from wire_fuzzing import Maker, converse

from audit_record import record
from support import Stopwatch
from tacit.serve.postgres.listener import Listener
from tacit.serve.postgres.messages import Malformed, Reader

MESSAGES = 1_000_000  # in the whole audit
EACH = 40  # messages of one connection


async def send(served: Served, messages: int, seed: int) -> Counter[str]:
    """So many messages, of strangers and of a reader, who may spend nothing."""
    listener, told, sent = Listener(served.state), Counter[str](), 0
    reader = next(key for key in served.state.keys.all() if key.name == "rea")
    while sent < messages:
        maker = Maker(seed + sent)
        sent += await converse(listener, maker, None if maker.rng.random() < 0.1 else reader, EACH, told)
    assert not listener._connections
    assert not listener._of_key
    told["messages"] = sent
    return told


def fuzz(served: Served, messages: int, seed: int) -> Counter[str]:
    before = served.people.session.spent, len(served.people.session.history)
    told = asyncio.run(send(served, messages, seed))
    assert (served.people.session.spent, len(served.people.session.history)) == before
    assert served.ask("SELECT COUNT(*) FROM data")["value"] == 301
    return told


def test_whatever_is_sent(lasting: Served) -> None:
    told = fuzz(lasting, 3_000, seed=1)
    assert told["D"] > 50  # some of it was asked as it should be
    assert told["08P01"] > 20  # and some was no message


@pytest.mark.audit
def test_whatever_is_sent_a_million_times(lasting: Served, size: float) -> None:
    watch = Stopwatch()
    told = fuzz(lasting, round(size * MESSAGES), seed=10**6)
    codes = {code: many for code, many in sorted(told.items()) if len(code) == 5}
    record("requests", "PostgreSQL's protocol", sent=told["messages"], refused=sum(codes.values()), wrong=0,
           statuses=codes, taken=str(watch))  # fmt: skip


def test_bytes_in_any_pieces_are_the_same_messages() -> None:
    rng = random.Random(7)
    for seed in range(300):
        maker = Maker(seed)
        data = b"".join(maker.next() for _ in range(8))
        assert (
            _messages([data]) == _messages(_pieces(data, rng)) == _messages([data[i : i + 1] for i in range(len(data))])
        )


def test_a_message_is_not_copied_for_every_byte_of_it() -> None:
    """A megabyte in small pieces takes a time that grows with its length, not with the square."""
    data, reader = query("x" * 900_000), Reader()
    reader.most = 2**20
    for i in range(0, len(data), 16):
        reader.feed(data[i : i + 16])
        if i + 16 < len(data):
            assert reader.next() is None
    assert reader.next() is not None


def _pieces(data: bytes, rng: random.Random) -> list[bytes]:
    ends = sorted({0, len(data), *(rng.randrange(len(data) + 1) for _ in range(5))})
    return [data[a:b] for a, b in pairwise(ends)]


def _messages(pieces: list[bytes]) -> list[object]:
    reader, found = Reader(), list[object]()
    reader.most = 2**20
    try:
        for piece in pieces:
            reader.feed(piece)
            while (message := reader.next()) is not None:
                found.append(message)
    except Malformed:
        found.append("malformed")
    return found
