"""Questions on the page and what comes of them: the page itself, prices, answers, and answers as files.

Asking goes through the data set's writer, as in the API. What only looks never spends.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from tacit.model.answer import sure_words
from tacit.model.ask import Quantile
from tacit.model.budget import Loss, percent_of
from tacit.model.table import Answers
from tacit.serve.api import about_all, shown
from tacit.serve.endpoint import Call
from tacit.serve.formats import MEDIA, checked, sent
from tacit.serve.page import view
from tacit.serve.page.answer import drawing, panel, price_words, sharper, ways
from tacit.serve.page.form import Fields, Forms, last, linked, question, read_forms, width, words_of
from tacit.serve.page.link import link, unclicked
from tacit.serve.page.overview import known_tables, listed
from tacit.serve.page.view import page, place_of
from tacit.serve.question import Question, read
from tacit.serve.refusal import Refusal, refusal_of
from tacit.serve.schema import Json, encode
from tacit.serve.served_data import ServedData
from tacit.serve.work import Meter

_FILES = MEDIA | {"svg": "image/svg+xml"}


async def main(call: Call) -> Response:
    """The page, and with a question its answer if it is known already, else its price: a link never spends.

    A question is ?sql=STATEMENT, or the fields of the form that is clicked.
    """
    fields = call.request.query_params.multi_items()
    if not last(fields, "sql").strip() and not last(fields, "what"):
        return await _show(call, Forms())
    do = "filter" if last(fields, "do") == "filter" else "look"
    return await ask(replace(call, body=[*linked(fields), ("do", do)]))


async def ask(call: Call) -> Response:
    """Answer the form, or say what it would cost. A refusal stands where the answer would.

    The field `do` is "ask" to buy what is not known, "look" to see an answer only if it is, and "filter" to make a
    condition.
    """
    session, asked = call.about.session, Forms()
    try:
        asked = await run_in_threadpool(read_forms, call.body, session.domain)
        do = last(call.body, "do")
        if do == "filter":
            return await _show(call, asked)
        asked, given, parsed = await read_question(call, call.body)
        within = parsed.within
        if call.asker.is_visitor:
            do = "ask"  # nothing can be spent here, so what is published is shown at once
        if do != "ask":  # whoever says nothing spends nothing
            found = await call.price(parsed)
        if do != "ask" and not (do == "look" and found.known):
            left = found.left or session.left
            words = price_words(found, left, session.total, may_spend=call.asker.may_spend)
            title = parsed.ask.words(session.domain)
            may = call.asker.may_spend and found.cost_at_most <= left
            return await _show(
                call, asked, "price.html", within=within, known=found.known, words=words, title=title, may=may
            )
        (answer,) = await call.answers([parsed])
        told = await run_in_threadpool(panel, parsed.ask, answer, session, asked.built if asked.clicked else None)
        same = ways(given, call.about.name, _base(call), within, published=not call.about.grows)
        offers = await _offers(call, parsed, answer) if isinstance(given, str) else []
        return await _show(
            call, asked, "answer.html", within=within, answer=told, ways=same, given=given, offers=offers
        )
    except Exception as error:
        return await _show(call, asked, refusal=refusal_of(error))


async def read_question(call: Call, fields: Fields) -> tuple[Forms, str | Json, Question]:
    """What the fields ask: as both forms show it, as it is asked, and read. Refused where it cannot be asked."""
    domain = call.about.session.domain

    def work(meter: Meter) -> tuple[Forms, str | Json, Question]:
        asked = read_forms(fields, domain)
        given = question(asked, domain)
        if asked.clicked:  # the box shows what was clicked
            asked = replace(asked, sql=given if isinstance(given, str) else "")
        parsed = read(given, domain, width(last(fields, "within")), meter)
        if not asked.clicked and (built := unclicked(parsed.ask, domain)) is not None:
            asked = replace(asked, built=built, clicked=True)  # the form shows what was written, where it can
        return asked, given, parsed

    with call.server.reading(call.asker) as meter:
        return await run_in_threadpool(work, meter)


async def _offers(call: Call, parsed: Question, answer: Answers) -> list[tuple[str, str]]:
    """Sharper answers that can be bought: the half width, and the words of the button."""
    session, found, quota = call.about.session, [], call.about.quota(call.asker)
    most = session.left.atoms
    if quota is not None:  # what the ledger would refuse is not offered
        of, used = (Loss.of(*next(iter(amount.items()))).atoms for amount in (quota.of, quota.used))
        most = min(most, of - used)
    for half in sharper(parsed.ask, answer) if call.asker.may_spend and not call.about.grows else []:
        price = await call.price(replace(parsed, within=half))
        if price.known:
            found.append((f"{half:g}", f"± {half:,g}, known already and free"))
        elif price.cost_at_most.atoms <= most:
            share = percent_of(price.cost_at_most, session.total)
            found.append((f"{half:g}", f"± {half:,g} for {share} of the budget"))
    return found


async def begin(call: Call) -> Response:
    """Buy what the answers start from, if the owner ticked that it is meant."""
    try:
        if last(call.body, "sure") != "yes":
            raise Refusal(400, "not_sure", "Tick the box first: what is spent cannot be had back.")
        await asyncio.wrap_future(call.about.start(call.asker))
    except Exception as error:
        return await _show(call, Forms(), refusal=refusal_of(error))
    return RedirectResponse(place_of(call).address, 303)


async def _show(
    call: Call,
    asked: Forms,
    panel: str = "",
    *,
    refusal: Refusal | None = None,
    within: float | None = None,
    **words: Any,
) -> Response:
    """The page where questions are asked, with what came of the last one."""
    tables = await known_tables(call.about, asked.built)
    query = link(asked, call.about.session.domain)
    if query and within is not None:
        query += f"&within={within:g}"

    def make() -> Response:
        about, session = call.about, call.about.session
        facts = words | {
            "base": None if session.started or call.asker.is_visitor else session.base,
            "elsewhere": about.elsewhere,
            "asked": asked,
            "query": query,
            "domain": session.domain,
            "columns": listed(about, asked.built, tables),
            "pictured": tables.words,
            "conditions": view.conditions(asked, session.domain),
            "about": view.about(about),
            "budget": view.budget(about, about.quota(call.asker)),
        }
        status = 200 if refusal is None else refusal.status
        return page("ask.html", place_of(call), status, panel=panel, refusal=refusal, **facts)

    return await run_in_threadpool(make)


async def price(call: Call) -> Json:
    """For the script: what the form stands for and would cost, as one sentence."""
    session = call.about.session
    told: dict[str, Any] = {"sql": "", "text": "", "level": "free"}
    try:
        asked = await run_in_threadpool(read_forms, call.body, session.domain)
        given = await run_in_threadpool(question, asked, session.domain)
        told["sql"] = given if asked.clicked and isinstance(given, str) else ""
        with call.server.reading(call.asker) as meter:
            parsed = await run_in_threadpool(read, given, session.domain, None, meter)
        found = await call.price(parsed)
        left = found.left or session.left
        told["text"] = price_words(found, left, session.total, may_spend=call.asker.may_spend)
        if found.cost_at_most.atoms:
            told["level"] = "cost" if found.cost_at_most <= left and call.asker.may_spend else "much"
    except Exception as error:
        told |= {"text": refusal_of(error).sentence, "level": "wrong"}
    return told


def words(call: Call) -> Json:
    return words_of(call.about.session.domain)


async def file(call: Call) -> Response:
    """An answer that is known, as a file: for spreadsheets, programs and papers."""
    kind, fields = call.request.path_params["kind"], call.request.query_params.multi_items()
    if kind not in _FILES:
        raise Refusal(404, "no_such_address", f"An answer is a file of {', '.join(_FILES)}.")
    if kind != "svg":
        checked(kind)
    _, _, parsed = await read_question(call, linked(fields))
    found = await call.price(parsed)
    if not (found.known or call.asker.is_visitor):
        raise Refusal(
            403, "would_spend", "This is not known yet, and a file is made of what is: ask it on the page first."
        )
    (answer,) = await call.answers([parsed])
    return await run_in_threadpool(_written, call.about, parsed, answer, kind)


def _written(dataset: ServedData, asked: Question, answer: Answers, kind: str) -> Response:
    attached = {"content-disposition": f'attachment; filename="{dataset.name}-answer.{kind}"'}
    if kind not in ("json", "svg"):
        return sent(answer, checked(kind), about_all(asked, answer), attached)
    if kind == "json":
        text = encode(shown(asked, answer)).decode()
    else:
        attribute = dataset.session.domain[asked.ask.name] if isinstance(asked.ask, Quantile) else None
        chart = drawing(answer, attribute)
        if chart is None:
            raise Refusal(404, "no_such_address", "This answer has no picture.")
        text = replace(chart, title=answer.question, note=sure_words(answer)).svg()
    return Response(text, headers=attached, media_type=_FILES[kind])


def _base(call: Call) -> str:
    """This server's address as the browser has it: a proxy may have added TLS."""
    scheme = "https" if call.server.secure else "http"
    return call.request.headers.get("origin") or f"{scheme}://{call.request.headers['host']}"
