"""What an endpoint of the API or of the pages is, and the checked request that it is called with. For `api` and `page`.

One that may take a while is a plain function, and is called in a thread of the pool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from inspect import iscoroutinefunction
from typing import Any, Literal

from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from tacit.model.status import DryRun
from tacit.model.table import Answers
from tacit.serve.admission import MAX_BODY
from tacit.serve.key import Key
from tacit.serve.question import Question, Remembered
from tacit.serve.schema import Json, encode
from tacit.serve.served_data import ServedData
from tacit.serve.server import Server

Access = Literal["anyone", "reader", "owner"]


@dataclass(frozen=True)
class Call:
    """A checked request. `body` is of the endpoint's own kind, or the fields of a page's form."""

    request: Request
    server: Server
    key: Key | None
    dataset: ServedData | None
    parameters: Mapping[str, int]
    body: Any
    texts: Mapping[str, str] = field(default_factory=dict)  # of the address
    text: bytes = b""  # of the body
    before: Remembered | None = None  # what was read from the same text before; there is no body then
    arrived: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def asker(self) -> Key:
        assert self.key is not None
        return self.key

    @property
    def about(self) -> ServedData:
        assert self.dataset is not None
        return self.dataset

    async def answers(self, questions: list[Question]) -> list[Answers]:
        """What the data set answers: at once where all were told before, else when its writer has them."""
        return await self.server.ask(self.asker, self.about, questions, self.arrived)

    async def price(self, question: Question) -> DryRun:
        """The most that a question could cost now. Asks nothing."""
        return await asyncio.wrap_future(self.about.price(self.asker, question))


@dataclass(frozen=True)
class Endpoint:
    """One line of the API: who may call it, what it takes and gives; parameters are (least, most, default).

    bad: the code of the refusal of a body that has another shape.
    most: bytes of the body.
    tokens: more of a key's rate than other requests take.
    texts: parameters that are texts, each with what it is; of those in `one_of` exactly one is given.
    framed: the answer is also sent as a table, see `formats`.
    """

    method: Literal["GET", "POST"]
    path: str
    access: Access
    answer: Callable[[Call], Any]
    body: type[Struct] | None = None
    result: type[Struct] | None = None  # None: no JSON
    parameters: Mapping[str, tuple[int, int, int]] = field(default_factory=dict)
    tokens: int = 0
    bad: str = "bad_json"
    most: int = MAX_BODY
    texts: Mapping[str, str] = field(default_factory=dict)
    one_of: tuple[str, ...] = ()
    framed: bool = False


async def outcome(do: Callable[[Call], Any], call: Call, tokens: int = 0) -> Response:
    """The response of an endpoint or a page."""
    if tokens:
        call.server.traffic.take(call.asker.id, tokens)
    if iscoroutinefunction(do):
        return response_of(await do(call))
    return await run_in_threadpool(lambda: response_of(do(call)))


def response_of(result: Json | Struct | Response) -> Response:
    """What an endpoint returns, as a response."""
    return result if isinstance(result, Response) else Response(encode(result), media_type="application/json")
