"""In which form an answer is sent: JSON, CSV, Arrow's stream or Parquet. Called by endpoints and pages.

Columns are those of `frame()`, so they are the same as in Python.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from tacit.serve.refusal import Refusal
from tacit.show.frames import Framed
from tacit.show.streams import FrameWords, has_arrow, to_arrow, to_csv, to_parquet

Format = Literal["json", "csv", "arrow", "parquet"]
MEDIA: dict[Format, str] = {
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "arrow": "application/vnd.apache.arrow.stream",
    "parquet": "application/vnd.apache.parquet",
}
_RANGE = re.compile(r"\s*([\w.+*-]{1,100}/[\w.+*-]{1,100})\s*(?:;(.*))?", re.ASCII)
_QUALITY = re.compile(r"(?:.*;)?\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*(?:;.*)?", re.ASCII)
_MOST_RANGES = 32  # of one header


def wanted(request: Request) -> Format:
    """The form that the client likes best; JSON where it names none of these. Refused where it cannot be made here."""
    best, form = 0.0, "json"
    for one in request.headers.get("accept", "").split(",")[:_MOST_RANGES]:
        if (match := _RANGE.fullmatch(one)) is None:
            continue
        quality = _QUALITY.fullmatch(match[2] or "")
        weight = float(quality[1]) if quality else 1.0
        named = next((name for name, media in MEDIA.items() if media.partition(";")[0] == match[1].lower()), None)
        named = named or ("json" if match[1] in ("*/*", "application/*") else None)
        if named is not None and weight > best:
            best, form = weight, named
    return checked(form)


def checked(form: str) -> Format:
    """A form that can be made here; asked before anything is, so that nothing is paid for what cannot be sent."""
    if form in ("arrow", "parquet") and not has_arrow():
        words = 'Arrow and Parquet need pyarrow on the server (pip install "tacit-dp[arrow]"); it sends JSON and CSV.'
        raise Refusal(406, "not_acceptable", words)
    found: Format = next(one for one in MEDIA if one == form)
    return found


def sent(answer: Framed, form: Format, words: FrameWords, headers: dict[str, str] | None = None) -> Response:
    """An answer in a form that is no JSON, a part at a time. `words` say of it what is not in its columns."""
    return StreamingResponse(_bytes(answer, form, words), headers=headers, media_type=MEDIA[form])


def _bytes(answer: Framed, form: Format, words: FrameWords) -> Iterator[bytes]:
    frame = answer.frame()
    if form == "csv":
        return to_csv(frame)
    return to_arrow(frame, words) if form == "arrow" else to_parquet(frame, words)
