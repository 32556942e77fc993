"""One server: its data sets, its keys, who is being served, and the one way in which anything is asked. For every door.

HTTP, the pages and PostgreSQL's protocol have no way to ask but `Server.ask`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from starlette.requests import Request

from tacit.model.table import Answers
from tacit.serve.admission import Limits, Logins, Traffic, unknown
from tacit.serve.key import Key
from tacit.serve.question import Memory, Question, Remembered
from tacit.serve.refusal import Refusal, not_here
from tacit.serve.served_data import ServedData
from tacit.serve.work import Meter

if TYPE_CHECKING:
    from tacit.serve.keys import KeyRing


@dataclass
class Server:
    """One server. `hosts` are the names it goes by, None for any; `port` and `secure` are for its cookies.

    A server of published files has no keys: `elsewhere` is then the address of the one that has the data.
    """

    datasets: Mapping[str, ServedData]
    keys: KeyRing | None
    limits: Limits = field(default_factory=Limits)
    hosts: frozenset[str] | None = None
    port: int = 0
    secure: bool = False
    elsewhere: str = ""

    def __post_init__(self) -> None:
        self.traffic = Traffic(self.limits)
        self.logins = Logins(self.keys, self.secure, self.port)
        self.read_before = Memory[tuple[str, bytes], Remembered]()  # by data set and body

    @property
    def ring(self) -> KeyRing:
        """The file of keys; refused where there is none."""
        if self.keys is None:
            raise Refusal(403, "no_keys", "This server has no keys: everybody reads what was published.")
        return self.keys

    def check_owner(self, key: Key) -> None:
        """Refuse what is for the owner alone; where there is no owner, with the address of the server that has one."""
        if self.keys is None:
            raise not_here(self.elsewhere)
        if key.role != "owner":
            raise Refusal(403, "owner_only", "This is for the owner's key.")

    def find(self, name: str) -> ServedData:
        """The data set of that name, or a refusal."""
        if name not in self.datasets:
            raise Refusal(404, "no_such_dataset", f"The data sets are {', '.join(sorted(self.datasets))}.")
        return self.datasets[name]

    def recognise(self, secret: str, address: str) -> Key:
        """Whose key a login shows, or a refusal.

        A key is 256 random bits, so nobody finds one by trying. Wrong ones are counted against the address that they
        come from, and right ones against the key itself: whatever others send, the right key is let in.
        """
        key = self.ring.find(secret)
        self.traffic.take(address if key is None else key.id)
        if key is None:
            raise unknown()
        return key

    @contextmanager
    def reading(self, key: Key) -> Iterator[Meter]:
        """What counts the work while a key's question is read. Where it is refused, that takes of the key's rate: else
        whoever asks too much, again and again, would hold the machine for the price of a few bytes.
        """
        meter = Meter()
        try:
            yield meter
        except BaseException:  # also where the client goes away
            self.traffic.charge(key.id, meter.work)
            raise

    async def ask(
        self, key: Key, about: ServedData, questions: list[Question], arrived: datetime, *, free: bool = False
    ) -> list[Answers]:
        """What a data set answers: at once where all was told before, else when its writer has it. Every way of asking
        comes through here, so that the work is priced before it is queued; `arrived` is the time that is published.
        With `free` nothing is spent, whatever the key may spend.
        """
        work = sum(question.work for question in questions)
        with self.reading(key) as meter:
            meter.takes(work)
        with self.traffic.working(key.id, work):
            found = about.ask(key, questions, arrived, free=free)
            try:
                return found if isinstance(found, list) else await asyncio.wrap_future(found)
            except Refusal as refusal:
                if refusal.code == "needs_data" and self.keys is None:
                    raise not_here(about.elsewhere) from None
                raise

    def close(self) -> None:
        """Finish what is queued, and let go of everything."""
        for dataset in self.datasets.values():
            dataset.close()
        if self.keys is not None:
            self.keys.close()


def server_of(request: Request) -> Server:
    """The server that a request came to."""
    server = request.app.state.tacit
    assert isinstance(server, Server)
    return server
