"""Every error a user can meet. A message is one public sentence: what was given, what is allowed, no private value."""

from __future__ import annotations


class TacitError(Exception):
    """Something was refused. Unless a subclass says otherwise, nothing was spent, and the message says so.

    `code` names the error for machines and never changes; the sentence is for people.
    """

    code = "refused"
    nothing_spent = True
    after: int | None = None  # the newest entry before the question that was refused; None where it did not come so far

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.nothing_spent = type(self).nothing_spent

    def __str__(self) -> str:
        return f"{self.sentence} Nothing was spent." if self.nothing_spent else self.sentence


class InvalidDomain(TacitError):
    """The declared domain is wrong: an empty attribute, edges out of order, a name given twice."""

    code = "invalid_domain"


class InvalidQuery(TacitError):
    """The question is not about the declared domain, or is not one that can be asked."""

    code = "invalid_query"
    at: int | None = None  # where in a statement, in characters from its beginning, if that is known

    def __init__(self, sentence: str, suggestion: str | None = None) -> None:
        super().__init__(sentence)
        self.suggestion = suggestion  # the declared name or value that was probably meant; the sentence says it too


class InvalidBudget(TacitError):
    """A privacy parameter is not a number in its allowed range."""

    code = "invalid_budget"


class BudgetExhausted(TacitError):
    """The question would cost more than what is left."""

    code = "budget_exhausted"


class NotStarted(TacitError):
    """The question needs the session's base, which is bought by `Session.start`, not by a question."""

    code = "not_started"


class DataError(TacitError):
    """The table could not be read into the declared domain. Seen by the owner at load, never by an analyst."""

    code = "data"


class LedgerError(TacitError):
    """The ledger cannot be used: another data set's, an old copy, a broken chain, or held by somebody else."""

    code = "ledger"


class ConfigError(TacitError):
    """The configuration file is wrong."""

    code = "config"


class NeedsData(TacitError):
    """The question would have to be bought, and what was published is read where there are no data."""

    code = "needs_data"


class WouldSpend(TacitError):
    """The question would have to be bought, and it was asked where nothing may be: `Session.free`."""

    code = "would_spend"


class ServerError(TacitError):
    """A server cannot be reached, or refuses for a reason of its own: a wrong key, a quota, too many requests.

    `code` is the server's. Where the connection broke, something may have been spent; asking again is free.
    """

    code = "server"


class AnswerWithheld(TacitError):
    """The charge is durable but the answer could not be stored, so it is not shown: the reservation stays spent."""

    code = "answer_withheld"
    nothing_spent = False
