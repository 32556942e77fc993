"""Reports for all who ask for them: one is made at a time, and what it was made of is kept. For the page `report`.

Everything in it is public, and a function of the ledger: so it is made once for each newest entry, whoever asks, and a
later one goes on from where the last one was. It is priced before it is begun, and made in a thread of the pool.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from tacit.model.budget import Loss
from tacit.model.domain import Domain
from tacit.public.work import steps_of
from tacit.serve.endpoint import Call
from tacit.serve.refusal import Refusal
from tacit.serve.work import MAX_WORK, line_work, picture_work, report_work
from tacit.session import Session
from tacit.show.chronicle import Chronicle
from tacit.show.report import page
from tacit.store.chain import Line

UNCURVED = ("marginal", "residuals")  # their pictures need no band that is simulated
MOST_KEPT = 8  # blocks whose report is kept


@dataclass
class KeptReport:
    """The last report about a ledger, as the bytes of its page, and what it was made of.

    `of` is the ledger and its whole budget, of which a report says shares; `entry` the newest one by then.
    """

    of: tuple[str, Loss]
    past: Chronicle
    entry: int = -1
    page: bytes = b""


class Reports:
    """The reports of one data set, one at a time. On the event loop's thread."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._kept: OrderedDict[str, KeptReport] = OrderedDict()  # by block, the oldest first

    async def page(self, call: Call, block: str, title: str) -> bytes:
        """The report as it is now. Who has left meanwhile is not worked for."""
        async with self._turn:
            if await call.request.is_disconnected():
                raise ClientDisconnect
            session = await run_in_threadpool(call.about.table, block)
            of, entry = await run_in_threadpool(lambda: ((session.origin, session.total), session.entries))
            kept = self._kept.pop(block, None)
            if kept is None or kept.of != of:
                kept = KeptReport(of, Chronicle(_weights, MAX_WORK // 2, MAX_WORK))
            if kept.entry != entry:
                try:
                    kept.page = await _made(call, session, kept.past, entry, title)
                except Refusal:  # before something was begun: what was done before it stays
                    self._keep(block, kept)
                    raise
                kept.entry = entry
            self._keep(block, kept)
            return kept.page

    def _keep(self, block: str, kept: KeptReport) -> None:
        self._kept[block] = kept
        while len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)


async def _made(call: Call, session: Session, past: Chronicle, newest: int, title: str) -> bytes:
    traffic, who = call.server.traffic, call.asker.id
    with traffic.working(who, report_work(newest - past.entry)):
        await run_in_threadpool(past.catch_up, session, newest)
    with traffic.working(who, past.work):
        return await run_in_threadpool(lambda: page(session, title, past.read(session)).encode())


def _weights(line: Line, kind: str, domain: Domain) -> tuple[int, int]:
    values = line.body.count(",")  # about as many
    return line_work(len(line.body), steps_of(line, domain)), picture_work(values, curved=kind not in UNCURVED)
