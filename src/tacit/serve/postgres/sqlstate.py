"""What is said instead of a result: PostgreSQL's five letters for each refusal, its sentence and its place. Pure."""

from __future__ import annotations

from tacit.serve.postgres import messages
from tacit.serve.refusal import Refusal, refusal_of

PROTOCOL, SYNTAX, UNSUPPORTED, READ_ONLY, CANCELLED = "08P01", "42601", "0A000", "25006", "57014"
NO_TABLE, NO_FUNCTION, NO_COLUMN, NO_SETTING, BAD_SETTING = "42P01", "42883", "42703", "42704", "22023"
NO_STATEMENT, NO_PORTAL, TAKEN, PORTAL_TAKEN, NO_DATABASE = "26000", "34000", "42P05", "42P03", "3D000"
NO_TRANSACTION, BAD_VALUE, BAD_QUESTION = "25P01", "22P02", "42000"
BAD_LOGIN, NOT_ALLOWED, TOO_MANY, TOO_LARGE, SHUTDOWN, INTERNAL = "28P01", "28000", "53300", "54000", "57P01", "XX000"
# By the codes of refusals, which HTTP shows as they are.
_CODES = {
    "unauthorized": NOT_ALLOWED,
    "invalid_query": BAD_QUESTION,
    "bad_question": BAD_QUESTION,
    "invalid_budget": "22023",
    "invalid_domain": "22023",
    "no_such_dataset": NO_TABLE,
    "budget_exhausted": TOO_LARGE,
    "too_much_work": TOO_LARGE,
    "quota": "53400",
    "rate_limited": "53400",
    "busy": "53000",
    "queue_full": "53000",
    "not_started": "55000",
    "needs_data": "55000",
    "would_spend": "42501",
    "owner_only": "42501",
    "closing": SHUTDOWN,
    "ledger": "58000",
    "keys": "58000",
    "audit": "58000",
}


class WireError(Exception):
    """What a client is told: `at` is a place in its text, counted from 0; `fatal` ends the connection."""

    def __init__(
        self,
        code: str,
        sentence: str,
        *,
        at: int | None = None,
        fatal: bool = False,
        nothing_spent: bool = True,
        hint: str = "",
    ) -> None:
        super().__init__(sentence)
        self.code, self.sentence, self.at, self.fatal, self.hint = code, sentence, at, fatal, hint
        self.nothing_spent = nothing_spent

    def message(self) -> bytes:
        more = {"D": "Nothing was spent."} if self.nothing_spent else {}
        more |= {"H": self.hint} if self.hint else {}
        more |= {} if self.at is None else {"P": str(self.at + 1)}
        return messages.said(b"E", "FATAL" if self.fatal else "ERROR", self.code, self.sentence, **more)


def error_of(error: BaseException) -> WireError:
    """What may be said about an error: its own sentence if it is a public one, else the constant of `serve.refusal`."""
    if isinstance(error, WireError):
        return error
    refusal: Refusal = refusal_of(error)
    hint = "" if refusal.retry_after is None else f"Try again after {refusal.retry_after} s."
    hint = f"Ask at {refusal.server}." if refusal.server else hint
    code = _CODES.get(refusal.code) or (INTERNAL if refusal.status >= 500 else BAD_QUESTION)
    return WireError(code, refusal.sentence, nothing_spent=refusal.nothing_spent, hint=hint)
