"""Statements that ask nothing of the data: transactions, settings, and what clients send to tidy up. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from tacit.serve.postgres.messages import Field
from tacit.serve.postgres.source import SentStatement, name_of
from tacit.serve.postgres.sqlstate import BAD_SETTING, NO_SETTING, READ_ONLY, SYNTAX, UNSUPPORTED, WireError
from tacit.serve.postgres.types import TEXT

MAX_SETTINGS, MAX_SETTING = 100, 1_000  # of one connection, and characters of one
SERVER_VERSION = "15.0"  # what clients may expect of the protocol and of the catalogues
TRANSACTIONS = (
    "Transactions are accepted and mean nothing: answers are released one by one, and what was paid for stays paid for."
)
_TRANSACTION = {
    "BEGIN": "BEGIN", "START": "START TRANSACTION", "COMMIT": "COMMIT", "END": "COMMIT", "ROLLBACK": "ROLLBACK",
    "ABORT": "ROLLBACK", "SAVEPOINT": "SAVEPOINT", "RELEASE": "RELEASE",
}  # fmt: skip
_TIDY = {
    "DISCARD": "DISCARD ALL", "DEALLOCATE": "DEALLOCATE", "CLOSE": "CLOSE CURSOR", "UNLISTEN": "UNLISTEN",
    "LISTEN": "LISTEN", "RESET": "RESET",
}  # fmt: skip
_WRITING = {
    "INSERT", "UPDATE", "DELETE", "MERGE", "CREATE", "DROP", "ALTER", "TRUNCATE", "GRANT", "REVOKE", "COMMENT",
    "VACUUM", "ANALYZE", "REINDEX", "REFRESH", "CALL", "DO", "LOCK", "NOTIFY", "CLUSTER", "IMPORT", "SECURITY",
}  # fmt: skip
REPORTED = (
    "server_version", "server_encoding", "client_encoding", "DateStyle", "IntervalStyle", "TimeZone",
    "integer_datetimes", "standard_conforming_strings", "is_superuser", "session_authorization", "application_name",
    "in_hot_standby", "default_transaction_read_only",
)  # fmt: skip
DEFAULTS = {
    "server_version": SERVER_VERSION,
    "server_version_num": "150000",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "standard_conforming_strings": "on",
    "is_superuser": "off",
    "session_authorization": "",
    "application_name": "",
    "in_hot_standby": "off",
    "default_transaction_read_only": "on",
    "transaction_read_only": "on",
    "transaction_isolation": "read committed",
    "default_transaction_isolation": "read committed",
    "search_path": '"$user", public',
    "extra_float_digits": "1",
    "client_min_messages": "notice",
    "bytea_output": "hex",
    "statement_timeout": "0",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "row_security": "off",
    "jit": "off",
    "lc_collate": "C",
    "lc_ctype": "C",
    "role": "none",
    "ssl": "off",
}  # fmt: skip
_FIXED = {
    "server_version", "server_version_num", "server_encoding", "integer_datetimes", "is_superuser", "in_hot_standby",
    "session_authorization", "max_identifier_length", "max_index_keys", "ssl",
}  # fmt: skip


@dataclass
class ConnectionSettings:
    """The settings of one connection: the client's own words, which change nothing here but which notices are sent."""

    values: dict[str, str] = field(default_factory=lambda: dict(DEFAULTS))

    def __post_init__(self) -> None:
        self._first = dict(self.values)

    def begin(self, given: Mapping[str, str], user: str) -> None:
        """Take the settings of the first message; what is no setting here is left out."""
        if given.get("replication", "false").lower() not in ("false", "off", "no", "0"):
            raise WireError(UNSUPPORTED, "There is nothing to replicate.", fatal=True)
        self.values["session_authorization"] = user
        for name, value in given.items():
            if name not in ("user", "database", "options", "replication") and not name.startswith("_pq_."):
                with suppress(WireError):
                    self.set(name, value)
        self._first = dict(self.values)

    def find(self, name: str) -> str | None:
        """The name of a setting as it is kept."""
        return next((known for known in self.values if known.lower() == name.lower()), None)

    def get(self, name: str) -> str:
        known = self.find(name)
        if known is None:
            raise WireError(NO_SETTING, f"there is no setting {name[:60]!r}.")
        return self.values[known]

    def set(self, name: str, value: str | None) -> str:
        """Take a value, or None for the first one, and give the setting's name."""
        known = self.find(name) or name
        if value is None:
            value = self._first.get(known, "")
        word = value.lower().replace("-", "").replace("_", "")
        if known == "client_encoding" and word not in ("utf8", "unicode", "default"):
            raise WireError(BAD_SETTING, "texts are in UTF8, and in no other encoding.")
        if known == "DateStyle" and "iso" not in word:
            raise WireError(BAD_SETTING, "dates are written as ISO has them, 2024-05-31, and in no other way.")
        if known in _FIXED or (known == "standard_conforming_strings" and word != "on"):
            if value != self.values[known]:
                raise WireError(BAD_SETTING, f"{known} cannot be changed.")
            return known
        one_more = known not in self.values and len(self.values) >= MAX_SETTINGS
        if one_more or len(name) > MAX_SETTING or len(value) > MAX_SETTING:
            raise WireError(BAD_SETTING, f"a connection has at most {MAX_SETTINGS} settings, none of them long.")
        if known not in ("client_encoding", "DateStyle"):
            self.values[known] = value
        return known

    def reset(self) -> None:
        self.values = dict(self._first)


@dataclass(frozen=True)
class Command:
    """A statement that is done at once: its tag, and what it changes or shows."""

    tag: str
    transaction: bool | None = None  # begins one, or ends it
    changes: Mapping[str, str | None] = field(default_factory=dict)
    shows: str = ""
    forgets: str | None = None  # a prepared statement, or "" for all that was prepared
    closes: str | None = None  # a cursor, or "" for all of them
    resets: bool = False

    @property
    def fields(self) -> tuple[Field, ...] | None:
        if not self.shows:
            return None
        if self.shows == "ALL":
            return tuple(Field(name, TEXT) for name in ("name", "setting", "description"))
        return (Field(self.shows, TEXT),)


def command_of(statement: SentStatement) -> Command | None:
    """The command that a statement is; None if it may be a question. Refuses what is neither."""
    word = statement.words[0]
    if word in _TRANSACTION:
        ends = word in ("COMMIT", "END", "ABORT") or (word == "ROLLBACK" and "TO" not in statement.words)
        return Command(_TRANSACTION[word], transaction=word in ("BEGIN", "START") or (False if ends else None))
    if word == "SET":
        return _set(statement)
    if word == "SHOW":
        name = " ".join(token.text for token in statement.tokens[1:]).replace(" . ", ".")
        known = {"TRANSACTION ISOLATION LEVEL": "transaction_isolation", "TIME ZONE": "TimeZone"}
        return Command("SHOW", shows=known.get(name.upper(), "ALL" if name.upper() == "ALL" else name) or "ALL")
    if word in _TIDY:
        return _tidy(statement)
    if word in _WRITING:
        raise WireError(
            READ_ONLY, f"{word} is not done here: the server answers questions, and nothing can be written."
        )
    return None


def _tidy(statement: SentStatement) -> Command:
    word, rest = statement.words[0], statement.tokens[1:]
    every = not rest or statement.words[-1] in ("ALL", "*")
    name = "" if every else name_of(rest[-1])
    if word == "DEALLOCATE":
        return Command("DEALLOCATE ALL" if every else "DEALLOCATE", forgets=name)
    if word == "CLOSE":
        return Command("CLOSE CURSOR ALL" if every else "CLOSE CURSOR", closes=name)
    if word == "DISCARD":
        return Command(f"DISCARD {statement.words[-1]}", forgets="", closes="", resets=True)
    if word == "RESET" and not every:
        return Command("RESET", changes={name: None})
    return Command(_TIDY[word], resets=word == "RESET")


def _set(statement: SentStatement) -> Command:
    tokens = list(statement.tokens[1:])
    if tokens and tokens[0].text.upper() in ("SESSION", "LOCAL"):
        tokens.pop(0)
    words = [token.text.upper() for token in tokens]
    if words[:1] in (["CHARACTERISTICS"], ["TRANSACTION"], ["CONSTRAINTS"], ["AUTHORIZATION"]):
        if words[0] == "AUTHORIZATION":
            raise WireError(UNSUPPORTED, "who asks is settled by the key; connect again with another one.")
        return Command("SET")
    if words[:2] == ["TIME", "ZONE"]:
        return Command("SET", changes={"TimeZone": " ".join(token.text for token in tokens[2:])})
    if words[:1] == ["NAMES"]:
        return Command("SET", changes={"client_encoding": tokens[1].text if len(tokens) > 1 else "UTF8"})
    name, at = "", 0
    while at < len(tokens) and tokens[at].text.upper() not in ("=", "TO"):  # a name may have dots
        name += tokens[at].text
        at += 1
    if not name or at + 1 >= len(tokens):
        raise WireError(SYNTAX, "a setting is written SET name = value.", at=statement.start)
    given = tokens[at + 1 :]
    value = given[0].text if len(given) == 1 else statement.text[given[0].start : given[-1].end + 1]
    return Command("SET", changes={name: None if value.upper() == "DEFAULT" else value})
