"""The endpoints of the HTTP API, one function each, and the table that lists them. Called by `serve.app`.

An endpoint gets a `Call` whose key, data set, parameters and body were checked, and returns what becomes JSON. One that
may take a while is a plain function, and is called in a thread of the pool.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from inspect import iscoroutinefunction
from typing import Any, Literal

from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tacit.model.answer import Answer
from tacit.release.answering import Answers
from tacit.serve import schema
from tacit.serve.admission import MAX_BODY, MAX_LOGIN, QUESTIONS_A_TOKEN, Limits, Logins, Traffic, address_of, unknown
from tacit.serve.dataset import Dataset
from tacit.serve.keys import Key, KeyRing
from tacit.serve.published import download
from tacit.serve.question import Question, check_work, read, read_batch
from tacit.serve.refusal import Refusal
from tacit.serve.schema import Json, encode, given

Access = Literal["anyone", "reader", "owner"]
SHORT = 2_000  # bytes of a body whose question is read at once: a thread would take longer to wake
SENT_AT_ONCE = 100  # answers of a batch that are one part of the response
HISTORY_TOKENS, PUBLISHED_TOKENS = 4, 10  # more of a key's rate, for reading the whole ledger


@dataclass
class Server:
    """One server. `hosts` are the names it goes by, None for any; `port` and `secure` are for its cookies."""

    datasets: Mapping[str, Dataset]
    keys: KeyRing
    limits: Limits = field(default_factory=Limits)
    hosts: frozenset[str] | None = None
    port: int = 0
    secure: bool = False

    def __post_init__(self) -> None:
        self.traffic = Traffic(self.limits)
        self.logins = Logins(self.keys, self.secure, self.port)

    def find(self, name: str) -> Dataset:
        """The data set of that name, or a refusal."""
        if name not in self.datasets:
            raise Refusal(404, "no_such_dataset", f"The data sets are {', '.join(sorted(self.datasets))}.")
        return self.datasets[name]

    def recognise(self, secret: str, address: str) -> Key:
        """Whose key a login shows, or a refusal.

        A key is 256 random bits, so nobody finds one by trying. Wrong ones are counted against the address that they
        come from, and right ones against the key itself: whatever others send, the right key is let in.
        """
        key = self.keys.find(secret)
        self.traffic.take(address if key is None else key.id)
        if key is None:
            raise unknown()
        return key

    async def ask(self, key: Key, about: Dataset, questions: list[Question], arrived: datetime) -> list[Answers]:
        """What a data set answers: at once where all was told before, else when its writer has it. Every way of asking
        comes through here, so that the work is priced before it is queued; `arrived` is the time that is published.
        """
        work = sum(question.work for question in questions)
        check_work(work)
        with self.traffic.working(key.id, work):
            found = about.ask(key, questions, arrived)
            return found if isinstance(found, list) else await asyncio.wrap_future(found)

    def close(self) -> None:
        """Finish what is queued, and let go of everything."""
        for dataset in self.datasets.values():
            dataset.close()
        self.keys.close()


def server_of(request: Request) -> Server:
    """The server that a request came to."""
    server = request.app.state.tacit
    assert isinstance(server, Server)
    return server


@dataclass(frozen=True)
class Call:
    """A checked request. `body` is of the endpoint's own kind, or the fields of a page's form."""

    request: Request
    server: Server
    key: Key | None
    dataset: Dataset | None
    parameters: Mapping[str, int]
    body: Any
    size: int = 0  # of the body, in bytes
    arrived: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def asker(self) -> Key:
        assert self.key is not None
        return self.key

    @property
    def about(self) -> Dataset:
        assert self.dataset is not None
        return self.dataset


@dataclass(frozen=True)
class Endpoint:
    """One line of the API: who may call it, what it takes and gives; parameters are (least, most, default).

    bad: the code of the refusal of a body that has another shape.
    most: bytes of the body.
    tokens: more of a key's rate than other requests take.
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


async def outcome(do: Callable[[Call], Any], call: Call, tokens: int = 0) -> Response:
    """The response of an endpoint or a page."""
    if tokens:
        call.server.traffic.take(call.asker.id, tokens)
    if iscoroutinefunction(do):
        return _response(await do(call))
    return await run_in_threadpool(lambda: _response(do(call)))


def _response(result: Json | Struct | Response) -> Response:
    return result if isinstance(result, Response) else Response(encode(result), media_type="application/json")


async def health(call: Call) -> schema.HealthReply:
    """Whether the server is up. Says nothing about any data."""
    return schema.HealthReply("ok")


async def openapi(call: Call) -> Json:
    """This description of the API."""
    from tacit.serve.openapi import document  # it reads the table below

    return document()


async def login(call: Call) -> Response:
    """Exchange a key for a session cookie, for pages of this server."""
    response = Response(status_code=204)
    call.server.logins.start(call.server.recognise(call.body.key, address_of(call.request)), response)
    return response


async def logout(call: Call) -> Response:
    """End the session of the cookie."""
    response = Response(status_code=204)
    call.server.logins.end(call.request, response)
    return response


async def whoami(call: Call) -> schema.WhoamiReply:
    """The name and the role of the key."""
    return schema.WhoamiReply(call.asker.name, call.asker.role)


async def datasets(call: Call) -> schema.DatasetsReply:
    """The names of the data sets that are served."""
    return schema.DatasetsReply(sorted(call.server.datasets))


async def keys(call: Call) -> schema.KeysReply:
    """Every key that was made, without its secret."""
    return schema.KeysReply(
        [schema.KeyLine(key.name, key.role, key.quota, key.created, key.revoked) for key in call.server.keys.all()]
    )


async def ask(call: Call) -> Json | Response:
    """Answer one question."""
    question = await _question(call)
    (answer,) = await answers(call, [question])
    if isinstance(answer, Answer):
        return {"answer": shown(question, answer)}
    return await run_in_threadpool(lambda: _response({"answer": shown(question, answer)}))  # it may be large


async def ask_many(call: Call) -> Response:
    """Answer a batch of counts, which share their commits."""
    batch = call.body.questions
    call.server.traffic.take(call.asker.id, len(batch) // QUESTIONS_A_TOKEN)
    questions = await run_in_threadpool(read_batch, batch, call.about.session.domain)
    found = await answers(call, questions)
    if len(found) <= SENT_AT_ONCE:
        body = await run_in_threadpool(lambda: b"".join(_parts(questions, found)))
        return Response(body, media_type="application/json")
    return StreamingResponse(_parts(questions, found), media_type="application/json")


def _parts(questions: list[Question], found: list[Answers]) -> Iterator[bytes]:
    """The JSON of a batch, some answers at a time: a client that reads slowly holds no more than that in memory."""
    begin, pairs = b'{"answers":[', list(zip(questions, found, strict=True))
    for start in range(0, len(pairs), SENT_AT_ONCE):
        yield begin + b",".join(encode(shown(*pair)) for pair in pairs[start : start + SENT_AT_ONCE])
        begin = b","
    yield b"]}"


async def cost(call: Call) -> schema.CostReply:
    """The most that a question could cost if it were asked now. Asks nothing."""
    found = await asyncio.wrap_future(call.about.price(call.asker, await _question(call)))
    return schema.CostReply(found.known, found.cost_at_most.to_dict(), found.percent or 0.0, found.why)


def base(call: Call) -> Json:
    """What the answers start from: what it is, for how much of the budget, which errors to expect. Buys nothing."""
    return call.about.session.base.to_dict()


async def start(call: Call) -> Json:
    """Buy what the answers start from. Nothing happens where it is bought already."""
    return (await asyncio.wrap_future(call.about.start(call.asker))).to_dict()


def domain(call: Call) -> schema.DomainReply:
    """What may be asked about: the declared attributes. All of it is public."""
    return call.about.described


def budget(call: Call) -> schema.BudgetReply:
    """The one budget of the data set: fixed, spent and left; and the asker's quota, if there is one."""
    session = call.about.session
    spent, total = session.spent, session.total
    left = type(total)(total.measure, max(0, total.atoms - spent.atoms))
    return schema.BudgetReply(
        budget=schema.BudgetLine(session.budget.epsilon, session.budget.delta),
        total=total.to_dict(),
        spent=spent.to_dict(),
        left=left.to_dict(),
        percent_spent=100 * spent.atoms / total.atoms,
        epsilon_spent=session.epsilon_spent,
        quota=call.about.quota(call.asker),
    )


def history(call: Call) -> schema.HistoryReply:
    """What was bought so far, oldest first, after an entry of the ledger."""
    after, limit = call.parameters["after"], call.parameters["limit"]
    found = call.about.session.history_after(after, limit + 1)
    page = [
        schema.HistoryLine(p.question, p.cost.to_dict(), p.percent, p.receipt.entry, p.receipt.seal)
        for p in found[:limit]
    ]
    return schema.HistoryReply(page, page[-1].entry if len(found) > limit else None)


def published(call: Call) -> Response:
    """All that was ever released, as one file that answers without the data (`tacit.read`)."""
    return download(call.about.published.edition(), f"{call.about.name}.tacit.jsonl")


def audit(call: Call) -> Json:
    """Who asked what, newest first: names, times, questions, costs and entries, no values."""
    return {"audit": call.about.audit.last(call.parameters["limit"])}


ENDPOINTS = (
    Endpoint("GET", "/v1/health", "anyone", health, result=schema.HealthReply),
    Endpoint("GET", "/v1/openapi.json", "anyone", openapi, result=schema.DocumentReply),
    Endpoint("POST", "/v1/login", "anyone", login, schema.LoginBody, most=MAX_LOGIN),
    Endpoint("POST", "/v1/logout", "anyone", logout),
    Endpoint("GET", "/v1/whoami", "reader", whoami, result=schema.WhoamiReply),
    Endpoint("GET", "/v1/datasets", "reader", datasets, result=schema.DatasetsReply),
    Endpoint("GET", "/v1/keys", "owner", keys, result=schema.KeysReply),
    Endpoint("POST", "/v1/{dataset}/ask", "reader", ask, schema.AskBody, schema.AskReply),
    Endpoint(
        "POST", "/v1/{dataset}/ask_many", "reader", ask_many, schema.AskManyBody, schema.AskManyReply, bad="bad_batch"
    ),
    Endpoint("POST", "/v1/{dataset}/cost", "reader", cost, schema.AskBody, schema.CostReply),
    Endpoint("GET", "/v1/{dataset}/base", "reader", base, result=schema.BaseReply),
    Endpoint("POST", "/v1/{dataset}/start", "owner", start, result=schema.BaseReply),
    Endpoint("GET", "/v1/{dataset}/domain", "reader", domain, result=schema.DomainReply),
    Endpoint("GET", "/v1/{dataset}/budget", "reader", budget, result=schema.BudgetReply),
    Endpoint(
        "GET",
        "/v1/{dataset}/history",
        "reader",
        history,
        result=schema.HistoryReply,
        parameters={"after": (0, 2**53, 0), "limit": (1, 1_000, 100)},
        tokens=HISTORY_TOKENS,
    ),
    Endpoint("GET", "/v1/{dataset}/published", "reader", published, tokens=PUBLISHED_TOKENS),
    Endpoint(
        "GET", "/v1/{dataset}/audit", "owner", audit, result=schema.AuditReply, parameters={"limit": (1, 10_000, 100)}
    ),
)


def shown(question: Question, answer: Answers) -> Json:
    """An answer as JSON: what Python's `to_dict` gives, and what kind it is."""
    kind = "count" if question.is_count else question.kind
    return {"kind": kind, **answer.to_dict()}


async def _question(call: Call) -> Question:
    body, domain = call.body, call.about.session.domain
    within = given(body.within)
    if isinstance(body.question, dict) and call.size <= SHORT:
        return read(body.question, domain, within)
    return await run_in_threadpool(read, body.question, domain, within)


async def answers(call: Call, questions: list[Question]) -> list[Answers]:
    """What the data set answers: at once where all were told before, else when its writer has them."""
    return await call.server.ask(call.asker, call.about, questions, call.arrived)
