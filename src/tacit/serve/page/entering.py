"""The way in: a key, or an invitation, for a session; a data set among several; and the files that pages load.

Called by the routes. Nobody has to be logged in for these.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping

from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tacit.reporting.page import escaped
from tacit.serve.keys import PREFIX
from tacit.serve.page.form import last, read_form
from tacit.serve.page.layout import ASSETS, Place, address, asset, heading, message, page, refused_page
from tacit.serve.refusal import Refusal, refusal_of
from tacit.serve.state import state_of


def entering(invitations: Mapping[str, str]) -> list[Route]:
    """Routes of the way in. An invitation is a word that logs its holder in once, with the key beside it."""
    open_ones = dict(invitations)

    async def enter(request: Request) -> Response:
        try:
            state = state_of(request)
            state.traffic.take(0)
            given = request.path_params["word"].encode("utf-8", "surrogatepass")
            word = next((one for one in open_ones if secrets.compare_digest(one.encode(), given)), None)
            if word is None:
                raise Refusal(404, "no_such_invitation", "This invitation is not known, or was used: it opens once.")
            response = RedirectResponse("/", 303)
            state.logins.start(open_ones.pop(word), response)
            return response
        except Exception as error:
            return refused_page(refusal_of(error), Place())

    return [
        Route("/", _start, methods=["GET"]),
        Route("/login", _start, methods=["GET"]),
        Route("/login", _login, methods=["POST"]),
        Route("/logout", _logout, methods=["POST"]),
        Route("/enter/{word}", enter, methods=["GET"]),
        Route("/page/{file}", _asset, methods=["GET"]),
    ]


async def _asset(request: Request) -> Response:
    name = request.path_params["file"]
    if name not in ASSETS:
        return refused_page(Refusal(404, "no_such_address", "There is nothing at this address."), Place())
    fresh = request.url.query == address(name).partition("?")[2]
    lasting = {"cache-control": "public, max-age=31536000, immutable" if fresh else "no-cache"}
    return Response(asset(name), headers=lasting, media_type=ASSETS[name])


async def _start(request: Request) -> Response:
    """The way in: a key, then a data set."""
    state = state_of(request)
    key = state.logins.by_cookie(request)
    if key is None:
        return _ask_for_key()
    names = sorted(state.datasets)
    if len(names) == 1:
        return RedirectResponse(f"/data/{names[0]}", 303)
    links = "".join(f'<li><a href="/data/{escaped(name)}">{escaped(name)}</a></li>' for name in names)
    body = heading("Data sets", "Each has one budget of its own.") + f'<ul class="choose card">{links}</ul>'
    return page("Data sets", Place(key), body)


def _ask_for_key(refusal: Refusal | None = None) -> Response:
    problem = "" if refusal is None else message(refusal, spending=False)
    invalid = "" if refusal is None else ' aria-invalid="true" aria-describedby="answer-title"'
    body = (
        f'<div class="login">{heading("Log in")}{problem}<form class="card" method="post" action="/login">'
        '<p><label for="key">Your key</label></p><p><input id="key" name="key" type="password" required autofocus '
        f'autocomplete="current-password" placeholder="{PREFIX}…"{invalid}></p><p class="small">The owner of the data '
        "made it for you. It is sent once; afterwards this browser holds a session that ends after twelve hours.</p>"
        '<p class="buttons"><button>Log in</button></p></form></div>'
    )
    return page("Log in", Place(), body, 200 if refusal is None else refusal.status)


async def _login(request: Request) -> Response:
    state = state_of(request)
    try:
        state.logins.check_origin(request)
        state.traffic.take(0)
        with state.traffic.slot(0):
            secret = last(await read_form(request, state), "key").strip()
            response = RedirectResponse("/", 303)
            state.logins.start(secret, response)
            return response
    except ClientDisconnect:
        raise
    except Exception as error:
        refusal = refusal_of(error)
        if refusal.code == "unauthorized":
            refusal = Refusal(401, "unauthorized", "No key in use reads like this one. Was it pasted whole?")
        return _ask_for_key(refusal)


async def _logout(request: Request) -> Response:
    state = state_of(request)
    try:
        state.logins.check_origin(request)
    except Refusal as refusal:
        return refused_page(refusal, Place())
    response = RedirectResponse("/", 303)
    state.logins.end(request, response)
    return response
