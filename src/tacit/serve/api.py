"""The endpoints of the HTTP API, one function each, and the table that lists them. Called by `serve.app`.

An endpoint gets a `Call` whose key, data set, parameters and body were checked, and returns what becomes JSON. One that
may take a while is a plain function, and is called in a thread of the pool.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tacit import replies
from tacit.model.answer import Answer
from tacit.model.domain import Domain
from tacit.model.table import Answers
from tacit.serve import schema
from tacit.serve.admission import (
    MAX_BODY,
    MAX_LOGIN,
    QUESTIONS_A_TOKEN,
    Limits,
    Logins,
    Traffic,
    address_of,
    check_owner,
    unknown,
)
from tacit.serve.formats import Format, sent, wanted
from tacit.serve.key import Key
from tacit.serve.published import download
from tacit.serve.question import Question, as_weights, check_work, read, read_batch
from tacit.serve.refusal import Refusal, not_here
from tacit.serve.schema import Json, encode, given
from tacit.serve.served import ServedData
from tacit.show.frames import frame as framed

if TYPE_CHECKING:
    from tacit.serve.keys import KeyRing

Access = Literal["anyone", "reader", "owner"]
SHORT = 2_000  # bytes of a body whose question is read at once: a thread would take longer to wake
SENT_AT_ONCE = 100  # answers of a batch that are one part of the response
LASTING = "public, max-age=31536000, immutable"  # for caches: an answer that never changes
BRIEF = "public, max-age=60"  # one that a newer file may change
HISTORY_TOKENS, PUBLISHED_TOKENS = 4, 10  # more of a key's rate, for reading the whole ledger


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
        check_owner(key)

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

    async def ask(
        self, key: Key, about: ServedData, questions: list[Question], arrived: datetime, *, free: bool = False
    ) -> list[Answers]:
        """What a data set answers: at once where all was told before, else when its writer has it. Every way of asking
        comes through here, so that the work is priced before it is queued; `arrived` is the time that is published.
        With `free` nothing is spent, whatever the key may spend.
        """
        work = sum(question.work for question in questions)
        check_work(work)
        with self.traffic.working(key.id, work):
            found = about.ask(key, questions, arrived, free=free)
            try:
                return found if isinstance(found, list) else await asyncio.wrap_future(found)
            except Refusal as refusal:
                if refusal.code == "needs_data":
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
    size: int = 0  # of the body, in bytes
    arrived: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def asker(self) -> Key:
        assert self.key is not None
        return self.key

    @property
    def about(self) -> ServedData:
        assert self.dataset is not None
        return self.dataset


@dataclass(frozen=True)
class Endpoint:
    """One line of the API: who may call it, what it takes and gives; parameters are (least, most, default).

    bad: the code of the refusal of a body that has another shape.
    most: bytes of the body.
    tokens: more of a key's rate than other requests take.
    texts: parameters that are texts, one of which is given.
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
    texts: Mapping[str, str] = field(default_factory=dict)  # each with what it is
    framed: bool = False  # whether the answer is also sent as a table: see `formats`


async def outcome(do: Callable[[Call], Any], call: Call, tokens: int = 0) -> Response:
    """The response of an endpoint or a page."""
    if tokens:
        call.server.traffic.take(call.asker.id, tokens)
    if iscoroutinefunction(do):
        return _response(await do(call))
    return await run_in_threadpool(lambda: _response(do(call)))


def _response(result: Json | Struct | Response) -> Response:
    return result if isinstance(result, Response) else Response(encode(result), media_type="application/json")


async def health(call: Call) -> replies.HealthReply:
    """Whether the server is up. Says nothing about any data."""
    return replies.HealthReply("ok")


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


async def whoami(call: Call) -> replies.WhoamiReply:
    """The name and the role of the key."""
    return replies.WhoamiReply(call.asker.name, call.asker.role)


async def datasets(call: Call) -> replies.DatasetsReply:
    """The names of the data sets that are served."""
    return replies.DatasetsReply(sorted(call.server.datasets))


async def keys(call: Call) -> replies.KeysReply:
    """Every key that was made, without its secret."""
    return replies.KeysReply(
        [replies.KeyLine(key.name, key.role, key.quota, key.created, key.revoked) for key in call.server.ring.all()]
    )


async def ask(call: Call) -> Json | Response:
    """Answer one question."""
    form = wanted(call.request)
    question = await _question(call)
    (answer,) = await answers(call, [question])
    if form != "json":
        return await run_in_threadpool(sent, answer, form, about_all(question, answer))
    if isinstance(answer, Answer):
        return {"answer": shown(question, answer)}
    return await run_in_threadpool(lambda: _response({"answer": shown(question, answer)}))  # it may be large


async def known(call: Call) -> Response:
    """Answer one question if the answer is known. Never spends, so that caches and links may ask it."""
    form = wanted(call.request)
    body, domain = call.texts.get("sql"), call.about.session.domain
    question = await run_in_threadpool(_read_text, body, call.texts.get("question", ""), domain)
    (answer,) = await call.server.ask(call.asker, call.about, [question], call.arrived, free=True)
    lasts = call.key is not None and call.key.is_visitor and await _lasts(call, question, answer)
    made = await run_in_threadpool(lambda: _response({"answer": shown(question, answer)}))
    found = cached(call, made, form, lasts=lasts)
    if form == "json" or found.status_code == 304:
        return found
    headers = {name: found.headers[name] for name in ("etag", "vary", "cache-control") if name in found.headers}
    return await run_in_threadpool(sent, answer, form, about_all(question, answer), headers)


def _read_text(sql: str | None, structured: str, domain: Domain) -> Question:
    """A question of an address: SQL, or the JSON of the structured form."""
    return read(schema.parse(structured.encode()) if sql is None else sql, domain)


async def _lasts(call: Call, question: Question, answer: Answers) -> bool:
    """Whether an answer stays as it is, whatever is published later: it was told, bought or certified.

    What a hypothesis says that nobody has checked may be said better by a later one.
    """
    if question.plain and answer.facts.source in ("repeat", "public"):
        return True
    return (await asyncio.wrap_future(call.about.price(call.asker, question))).known


def cached(call: Call, response: Response, form: Format = "json", *, lasts: bool) -> Response:
    """A response with its tag, or 304 where the client has it. Where everybody may read, caches may keep it.

    The tag is a digest of what is sent as JSON: every server that answers the same gives the same tag. Of another form
    it says that the content is the same; its bytes depend on the version of pyarrow.
    """
    tag = f'"{hashlib.sha256(bytes(response.body)).hexdigest()[:32]}{"" if form == "json" else f"-{form}"}"'
    headers = {"etag": tag if form == "json" else f"W/{tag}", "vary": "accept"}
    if call.asker.is_visitor:
        headers["cache-control"] = LASTING if lasts else BRIEF
    given = [one.strip().removeprefix("W/") for one in call.request.headers.get("if-none-match", "").split(",")]
    if tag in given or given == ["*"]:
        return Response(status_code=304, headers=headers)
    response.headers.update(headers)
    return response


async def ask_many(call: Call) -> Response:
    """Answer a batch of counts, which share their commits."""
    form = wanted(call.request)
    batch = call.body.questions
    call.server.traffic.take(call.asker.id, len(batch) // QUESTIONS_A_TOKEN)
    questions = await run_in_threadpool(read_batch, batch, call.about.session.domain)
    found = await answers(call, questions)
    if form != "json":
        return await run_in_threadpool(lambda: sent(framed(found), form, {"questions": len(found)}))
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


async def cost(call: Call) -> replies.CostReply:
    """The most that a question could cost if it were asked now. Asks nothing."""
    found = await asyncio.wrap_future(call.about.price(call.asker, await _question(call)))
    total = found.total or call.about.session.total
    return replies.CostReply(
        found.known, found.cost_at_most.to_dict(), total.to_dict(), found.percent or 0.0, found.why
    )


def base(call: Call) -> Json:
    """What the answers start from: what it is, for how much of the budget, which errors to expect. Buys nothing."""
    return call.about.session.base.to_dict()


async def start(call: Call) -> Json:
    """Buy what the answers start from. Nothing happens where it is bought already."""
    return (await asyncio.wrap_future(call.about.start(call.asker))).to_dict()


def domain(call: Call) -> replies.DomainReply:
    """What may be asked about: the declared attributes. All of it is public."""
    return call.about.described


def budget(call: Call) -> replies.BudgetReply:
    """The one budget of the data set: whole, how it was raised, spent, left; and the asker's quota, if there is one."""
    now = call.about.session.status()
    return replies.BudgetReply(
        budget=replies.BudgetLine(now.budget.epsilon, now.budget.delta),
        extensions=[
            replies.ExtensionLine(
                replies.BudgetLine(one.budget.epsilon, one.budget.delta),
                one.total.to_dict(),
                one.time,
                one.receipt.entry,
                one.receipt.seal,
            )
            for one in now.extensions
        ],
        continues=now.continues,
        continued_by=now.continued_by,
        total=now.total.to_dict(),
        spent=now.spent.to_dict(),
        left=now.left.to_dict(),
        percent_spent=100 * now.spent.atoms / now.total.atoms,
        epsilon_spent=now.epsilon_spent,
        quota=call.about.quota(call.asker),
    )


def history(call: Call) -> replies.HistoryReply:
    """What was bought so far, oldest first, after an entry of the ledger."""
    after, limit = call.parameters["after"], call.parameters["limit"]
    found = call.about.session.history_after(after, limit + 1)
    page = [
        replies.HistoryLine(p.question, p.kind, p.cost.to_dict(), p.percent, p.receipt.entry, p.receipt.seal)
        for p in found[:limit]
    ]
    return replies.HistoryReply(page, page[-1].entry if len(found) > limit else None)


def published(call: Call) -> Response:
    """All that was ever released, as one file that answers without the data (`tacit.read`)."""
    found = call.about.published.edition()
    return download(found, f"{call.about.name}.tacit.jsonl")


def audit(call: Call) -> Json:
    """Who asked what, newest first: names, times, questions, costs and entries, no values."""
    return {"audit": call.about.noted(call.parameters["limit"])}


ENDPOINTS = (
    Endpoint("GET", "/v1/health", "anyone", health, result=replies.HealthReply),
    Endpoint("GET", "/v1/openapi.json", "anyone", openapi, result=replies.DocumentReply),
    Endpoint("POST", "/v1/login", "anyone", login, schema.LoginBody, most=MAX_LOGIN),
    Endpoint("POST", "/v1/logout", "anyone", logout),
    Endpoint("GET", "/v1/whoami", "reader", whoami, result=replies.WhoamiReply),
    Endpoint("GET", "/v1/datasets", "reader", datasets, result=replies.DatasetsReply),
    Endpoint("GET", "/v1/keys", "owner", keys, result=replies.KeysReply),
    Endpoint("POST", "/v1/{dataset}/ask", "reader", ask, schema.AskBody, replies.AskReply, framed=True),
    Endpoint(
        "GET",
        "/v1/{dataset}/ask",
        "reader",
        known,
        result=replies.AskReply,
        texts={"sql": "A question in SQL.", "question": "Or one of the other forms, as JSON."},
        framed=True,
    ),
    Endpoint(
        "POST",
        "/v1/{dataset}/ask_many",
        "reader",
        ask_many,
        schema.AskManyBody,
        replies.AskManyReply,
        bad="bad_batch",
        framed=True,
    ),
    Endpoint("POST", "/v1/{dataset}/cost", "reader", cost, schema.AskBody, replies.CostReply),
    Endpoint("GET", "/v1/{dataset}/base", "reader", base, result=replies.BaseReply),
    Endpoint("POST", "/v1/{dataset}/start", "owner", start, result=replies.BaseReply),
    Endpoint("GET", "/v1/{dataset}/domain", "reader", domain, result=replies.DomainReply),
    Endpoint("GET", "/v1/{dataset}/budget", "reader", budget, result=replies.BudgetReply),
    Endpoint(
        "GET",
        "/v1/{dataset}/history",
        "reader",
        history,
        result=replies.HistoryReply,
        parameters={"after": (0, 2**53, 0), "limit": (1, 1_000, 100)},
        tokens=HISTORY_TOKENS,
    ),
    Endpoint("GET", "/v1/{dataset}/published", "reader", published, tokens=PUBLISHED_TOKENS),
    Endpoint(
        "GET", "/v1/{dataset}/audit", "owner", audit, result=replies.AuditReply, parameters={"limit": (1, 10_000, 100)}
    ),
)


def shown(question: Question, answer: Answers) -> Json:
    """An answer as JSON: what Python's `to_dict` gives, and what kind it is."""
    kind = "count" if question.is_count else question.kind
    return {"kind": kind, **answer.to_dict()}


def about_all(question: Question, answer: Answers) -> Json:
    """What an answer says beside its rows, for forms that are a table."""
    return {name: value for name, value in shown(question, answer).items() if name not in ("rows", "errors")}


async def _question(call: Call) -> Question:
    body, domain = call.body, call.about.session.domain
    within = given(body.within)
    if isinstance(body.question, dict) and call.size <= SHORT and not as_weights(body.question):
        return read(body.question, domain, within)
    return await run_in_threadpool(read, body.question, domain, within)


async def answers(call: Call, questions: list[Question]) -> list[Answers]:
    """What the data set answers: at once where all were told before, else when its writer has them."""
    return await call.server.ask(call.asker, call.about, questions, call.arrived)
