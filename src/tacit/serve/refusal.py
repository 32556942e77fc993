"""What the server says instead of an answer: a status, a machine's code and one public sentence. Called within serve.

An error inside may quote the data, so only the errors below are ever shown; for everything else there is one constant
sentence, and the log gets the error's type and place.
"""

from __future__ import annotations

import logging
import time
import traceback
from pathlib import Path

from starlette.requests import ClientDisconnect

from tacit.errors import TacitError

log = logging.getLogger("tacit.serve")

WENT_WRONG = "Something went wrong inside. What was reserved for the question, if anything, stays spent."
# The errors that an analyst can meet, each with its status. Those about data, configuration and ledger are the owner's.
STATUS = {
    "invalid_query": 422,
    "invalid_budget": 422,
    "invalid_domain": 422,
    "budget_exhausted": 409,
    "not_started": 409,
    "needs_data": 409,
    "would_spend": 403,
    "answer_withheld": 500,
    "ledger": 503,
}
_OWNERS = {"ledger": "The ledger cannot be used now; the server's log tells the owner why."}


_MINUTE = 60.0
_MOST_KINDS = 100


class Seldom:
    """Says of each kind of line whether it is due in the log: once a minute, so that nobody can fill it."""

    def __init__(self) -> None:
        self._last: dict[str, float] = {}

    def __call__(self, kind: str) -> bool:
        now = time.monotonic()
        due = now >= self._last.get(kind, -_MINUTE) + _MINUTE
        if due:
            if len(self._last) >= _MOST_KINDS:
                self._last.clear()
            self._last[kind] = now
        return due

    def error(self, kind: str, words: str, *given: object) -> None:
        """A line about an error, where one of its kind is due. `given` are for the `%s` of the words."""
        if self(kind):
            log.error(f"{words}; more of it in this minute is not noted", *given)


_due = Seldom()  # of what is said of ledgers


class Refusal(Exception):
    """A request is refused. `retry_after` is in seconds, where trying again makes sense.

    `server` is the address of another server, where the same request may be answered.
    """

    def __init__(
        self,
        status: int,
        code: str,
        sentence: str,
        *,
        nothing_spent: bool = True,
        retry_after: int | None = None,
        server: str = "",
    ) -> None:
        super().__init__(sentence)
        self.status, self.code, self.sentence = status, code, sentence
        self.nothing_spent, self.retry_after, self.server = nothing_spent, retry_after, server

    def body(self) -> dict[str, dict[str, str | bool]]:
        said: dict[str, str | bool] = {
            "code": self.code,
            "message": self.sentence,
            "nothing_spent": self.nothing_spent,
        }
        return {"error": said | ({"server": self.server} if self.server else {})}


def not_here(elsewhere: str) -> Refusal:
    """What a server of published files says of all that needs the data: where they are, if it was told."""
    at = f"; the server that has them is {elsewhere}" if elsewhere else ""
    words = f"This has to be bought, which needs the data, and here is only what was published{at}."
    return Refusal(STATUS["needs_data"], "needs_data", words, server=elsewhere)


def code_of(error: BaseException) -> str:
    """The machine's name of an error, whoever it is for."""
    return error.code if isinstance(error, Refusal | TacitError) else "internal"


def refusal_of(error: BaseException) -> Refusal:
    """What may be said about an error: its own sentence if it is a public one, else the constant.

    Where the client has gone away nobody is left to be told, and the error goes on.
    """
    if isinstance(error, ClientDisconnect):
        raise error
    if isinstance(error, Refusal):
        return error
    if isinstance(error, TacitError) and error.code in STATUS:
        if error.code in _OWNERS and _due(error.sentence):
            log.error("%s: %s", error.code, error.sentence)
        sentence = _OWNERS.get(error.code, error.sentence)
        retry = 5 if error.code == "ledger" else None
        return Refusal(STATUS[error.code], error.code, sentence, nothing_spent=error.nothing_spent, retry_after=retry)
    log.error("unexpected %s at %s", type(error).__name__, _place(error))  # never its words: they may quote the data
    return Refusal(500, "internal", WENT_WRONG, nothing_spent=False)


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "an unknown place"
