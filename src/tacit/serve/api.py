"""The endpoints of the HTTP API, one function each, and the table that lists them. Called by `serve.app`.

An endpoint gets a `Call` whose key, data set, parameters and body were checked, and returns what becomes JSON. One that
may take a while is a plain function, and is called in a thread of the pool: see `endpoint`.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from tacit import replies
from tacit.model.answer import Answer
from tacit.model.ask import Count
from tacit.model.block import slug
from tacit.model.table import Answers
from tacit.serve import schema
from tacit.serve.admission import MAX_LOGIN, QUESTIONS_A_TOKEN, address_of
from tacit.serve.edition import download
from tacit.serve.endpoint import Call, Endpoint, response_of
from tacit.serve.formats import Format, sent, wanted
from tacit.serve.question import Question, Remembered, read, read_at_once, read_batch
from tacit.serve.refusal import Refusal
from tacit.serve.schema import Json, encode
from tacit.serve.work import Meter
from tacit.show.frames import frame as framed

SHORT = 2_000  # bytes of a body whose question is read at once: a thread would take longer to wake
SENT_AT_ONCE = 100  # answers of a batch that are one part of the response
LASTING = "public, max-age=31536000, immutable"  # for caches: an answer that its ledger never changes
BRIEF = "public, max-age=60"  # what a newer file may change, and what another ledger of the same name may
MOST_ADDRESS = 2_000  # characters of an address that a header repeats
CACHED = ("etag", "vary", "cache-control", "content-location")
HISTORY_TOKENS, PUBLISHED_TOKENS = 4, 10  # more of a key's rate, for reading the whole ledger


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
    read = await _read(call)
    (answer,) = await call.answers([read.question])
    if form != "json":
        return await run_in_threadpool(sent, answer, form, about_all(read.question, answer))
    if isinstance(answer, Answer):
        if read.answer is not answer:  # what the data set remembers is one object: its text stays the same
            read.answer, read.text = answer, encode({"answer": shown(read.question, answer)})
        return Response(read.text, media_type="application/json")
    return await run_in_threadpool(lambda: response_of({"answer": shown(read.question, answer)}))  # it may be large


async def known(call: Call) -> Response:
    """Answer one question if the answer is known. Never spends, so that caches and links may ask it."""
    form, ledger = wanted(call.request), call.texts.get("ledger")
    if ledger not in (None, call.about.session.origin):
        raise Refusal(404, "other_ledger", "The address is of another ledger than the one that is served here now.")
    domain = call.about.session.domain

    def read_text(meter: Meter) -> Question:
        body = call.texts["sql"] if "sql" in call.texts else schema.parse(call.texts["question"].encode())
        return read(body, domain, None, meter)

    with call.server.reading(call.asker) as meter:
        question = await run_in_threadpool(read_text, meter)
    (answer,) = await call.server.ask(call.asker, call.about, [question], call.arrived, free=True)
    lasts = call.key is not None and call.key.is_visitor and await _lasts(call, question, answer)
    made = await run_in_threadpool(lambda: response_of({"answer": shown(question, answer)}))
    found = cached(call, made, form, lasts=lasts)
    if form == "json" or found.status_code == 304:
        return found
    headers = {name: found.headers[name] for name in CACHED if name in found.headers}
    return await run_in_threadpool(sent, answer, form, about_all(question, answer), headers)


async def _lasts(call: Call, question: Question, answer: Answers) -> bool:
    """Whether an answer stays as it is, whatever is published later: it was told, bought or certified.

    What a hypothesis says that nobody has checked may be said better by a later one.
    """
    if question.plain and answer.facts.source in ("repeat", "public"):
        return True
    return (await call.price(question)).known


def cached(call: Call, response: Response, form: Format = "json", *, lasts: bool) -> Response:
    """A response with its tag, or 304 where the client has it. Where everybody may read, caches may keep it.

    The tag is a digest of the ledger and of what is sent as JSON: every server that answers the same of one ledger
    gives the same tag. Of another form it says that the content is the same; its bytes depend on the version of
    pyarrow.

    An answer stays for as long as its ledger does, and under one name another ledger may be served tomorrow: so it is
    for ever only under an address that has the ledger, which others are told.
    """
    ledger = call.about.session.origin
    digest = hashlib.sha256(ledger.encode() + bytes(response.body)).hexdigest()[:32]
    tag = f'"{digest}{"" if form == "json" else f"-{form}"}"'
    headers = {"etag": tag if form == "json" else f"W/{tag}", "vary": "accept"}
    if call.asker.is_visitor:
        headers["cache-control"] = LASTING if lasts and "ledger" in call.texts else BRIEF
        address = f"?{urlencode({**call.texts, 'ledger': ledger})}"
        if lasts and len(address) <= MOST_ADDRESS:
            headers["content-location"] = address
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
    with call.server.reading(call.asker) as meter:
        questions = await run_in_threadpool(read_batch, batch, call.about.session.domain, meter)
    found = await call.answers(questions)
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
    found = await call.price((await _read(call)).question)
    total = found.total or call.about.session.total
    return replies.CostReply(
        found.known,
        found.cost_at_most.to_dict(),
        total.to_dict(),
        found.percent or 0.0,
        found.why,
        None if found.left is None else found.left.to_dict(),
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
        blocks=[
            replies.BlockLine(one.label, one.rows, one.started, one.spent.to_dict(), one.total.to_dict())
            for one in now.blocks
        ],
    )


def history(call: Call) -> replies.HistoryReply:
    """What was bought so far, oldest first, after an entry of the ledger; gates that are open end the last page."""
    after, limit = call.parameters["after"], call.parameters["limit"]
    session = call.about.table(call.texts.get("block", ""))
    found = session.history_after(after, limit + 1)
    last = len(found) <= limit
    page = [
        replies.HistoryLine(p.question, p.kind, p.cost.to_dict(), p.percent, p.receipt.entry, p.receipt.seal)
        for p in (*found[:limit], *(session.open_gates() if last else ()))
    ]
    return replies.HistoryReply(page, None if last else page[-1].entry)


def published(call: Call) -> Response:
    """All that was ever released, as one file that answers without the data (`tacit.read`)."""
    block = call.texts.get("block", "") or call.request.query_params.get("block", "")
    name = f"{call.about.name}-{slug(block)}" if block else call.about.name
    return download(call.about.edition(block), f"{name}.tacit.jsonl")


def audit(call: Call) -> Json:
    """Who asked what, newest first: names, times, questions, costs and entries, no values."""
    return {"audit": call.about.noted(call.parameters["limit"])}


_BLOCK = {"block": "The label of a block, where the data set is a series: each has a ledger of its own."}
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
        texts={
            "sql": "A question in SQL.",
            "question": "Or one of the other forms, as JSON.",
            "ledger": "The ledger that the answer is of, by the hash that its chain starts from: another one is "
            "refused.",
        },
        one_of=("sql", "question"),
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
        texts=_BLOCK,
    ),
    Endpoint("GET", "/v1/{dataset}/published", "reader", published, tokens=PUBLISHED_TOKENS, texts=_BLOCK),
    Endpoint(
        "GET", "/v1/{dataset}/audit", "owner", audit, result=replies.AuditReply, parameters={"limit": (1, 10_000, 100)}
    ),
)


def shown(question: Question, answer: Answers) -> Json:
    """An answer as JSON: what Python's `to_dict` gives, and what kind it is."""
    kind = "count" if isinstance(question.ask, Count) else question.kind
    return {"kind": kind, **answer.to_dict()}


def about_all(question: Question, answer: Answers) -> Json:
    """What an answer says beside its rows, for forms that are a table."""
    return {name: value for name, value in shown(question, answer).items() if name not in ("rows", "errors")}


async def _read(call: Call) -> Remembered:
    """The question of a body. One that was read before is not read again; all but the plainest are read in the pool."""
    if call.before is not None:
        return call.before
    about, body, within = call.about, call.body.question, replies.given(call.body.within)
    domain = about.session.domain
    short = len(call.text) <= SHORT
    question = read_at_once(body, domain, within) if short else None
    if question is None:
        with call.server.reading(call.asker) as meter:
            question = await run_in_threadpool(read, body, domain, within, meter)
    found = Remembered(question)
    if short and question.light and not about.grows:  # a new block may change what is meant
        call.server.read_before.keep((about.name, call.text), found)
    return found
