"""A form that a browser sends, read within limits. Called by the pages."""

from __future__ import annotations

import asyncio
import re
from urllib.parse import parse_qsl

from starlette.requests import Request

from tacit.serve.refusal import Refusal
from tacit.serve.state import State

MAX_FORM = 2**18  # bytes
MAX_FIELDS = 20_000
Fields = list[tuple[str, str]]
_TYPE = re.compile(r"application/x-www-form-urlencoded(?:\s*;\s*charset=utf-8)?", re.IGNORECASE)


async def read_form(request: Request, state: State) -> Fields:
    """The fields in their order. Nothing was looked at before this, so a refusal spends nothing."""
    if not _TYPE.fullmatch(request.headers.get("content-type", "").strip()):
        raise Refusal(415, "wrong_content_type", "A page's form is sent as application/x-www-form-urlencoded.")
    body = bytearray()
    try:
        async with asyncio.timeout(state.limits.body_seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > MAX_FORM:
                    raise Refusal(413, "body_too_large", f"a form has at most {MAX_FORM:,} bytes.")
    except TimeoutError:
        raise Refusal(408, "slow_body", f"A body is sent within {state.limits.body_seconds:g} seconds.") from None
    try:
        fields = parse_qsl(
            bytes(body).decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS
        )
    except ValueError:
        raise Refusal(400, "bad_form", "The form cannot be read.") from None
    return [(name, text.replace("\r\n", "\n")) for name, text in fields]


def last(fields: Fields, name: str) -> str:
    """The field of that name; empty if there is none."""
    return next((text for key, text in reversed(fields) if key == name), "")
