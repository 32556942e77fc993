"""The lines of a log and how each follows from the one before. Pure: no files, no clock.

What a line may say, and what the running total is after it, is decided by a `Step`, a function that the log is opened
with. It is asked before a line is written, and again whenever lines are read that others may have written.

The chain shows accidents, old copies and clumsy changes. It does not stop somebody who can write the file and computes
the hashes: he may settle an open intent for less, or write an end that the anchor has not seen. The file also holds
whatever secret a keyed hash would use, so a key would not stop him either. He cannot go back behind the anchor's mark.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, NamedTuple, Protocol

from msgspec import Struct
from msgspec.json import Encoder, encode
from msgspec.structs import replace

from tacit.errors import LedgerError


class Unsound(Exception):
    """A line that may not follow."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A line before it is numbered, timed and sealed. `intent` is the number of the line that it settles."""

    kind: str
    atoms: int
    body: str
    key: str | None = None
    intent: int | None = None


class Line(Struct, frozen=True, gc=False):
    """One line of a log. `spent` is the running total after it, in atoms."""

    seq: int
    kind: str
    key: str | None
    intent: int | None
    atoms: int
    spent: int
    body: str
    time: str
    hash: str


class Charged(Protocol):
    """What the rules read of a line, whether it is a draft or stands in a log."""

    @property
    def kind(self) -> str: ...
    @property
    def atoms(self) -> int: ...
    @property
    def intent(self) -> int | None: ...


class Sealed(Charged, Protocol):
    """The fields of a line that stands somewhere, in whatever order it is written: a `Line`, or one of a file."""

    @property
    def seq(self) -> int: ...
    @property
    def key(self) -> str | None: ...
    @property
    def spent(self) -> int: ...
    @property
    def body(self) -> str: ...
    @property
    def time(self) -> str: ...
    @property
    def hash(self) -> str: ...


class Mark(NamedTuple):
    """A point in a log's history: its newest line, that line's hash, and the running total by then."""

    seq: int
    hash: str
    spent: int


class State(Struct, frozen=True, gc=False):
    """What a history comes to: the running total, what is open, what limits were raised by, and the last settlement.

    One is made for each line of a log: a tuple with names takes three times as long.
    """

    spent: int
    open: Mapping[int, int]  # the atoms that each intent without outcome has set aside, by its number
    settling: int | None = None  # the intent whose outcomes stand last: more of them may follow
    room: int = 0  # the atoms of that intent that no outcome has charged
    raised: int = 0  # the atoms that were added to what may be spent
    closed: bool = False  # whether another log goes on with what was left

    def _replace(self, **changes: Any) -> State:
        return replace(self, **changes)


Step = Callable[[State, int, Charged], State]  # from the state, the number of the next line and the line


class Accepted(NamedTuple):
    """The owner's reason to go on although lines may be lost, and when it was given.

    That is before the log is opened, where the data are read first: lines are published with their times.
    """

    reason: str
    at: str


Acceptance = Accepted | str | None  # a reason alone is given when the log is opened


@dataclass(frozen=True, slots=True)
class Override:
    """The owner's decision to go on although lines may be lost: `anchor` is the newest mark that was seen."""

    reason: str
    anchor: Mark | None
    anchor_id: str
    replaces: str | None  # the log that was here before, if another one was
    lost: str

    def body(self) -> str:
        return canonical(asdict(self))

    @classmethod
    def of(cls, body: str) -> Override:
        form = json.loads(body)
        seen = form["anchor"]
        return cls(**form | {"anchor": None if seen is None else Mark(*seen)})


# Lines that say what may be spent: what another log had spent, that it was raised, and that another log goes on.
LIMITS = ("carried", "closed", "extended")
_CHAINED = 1_000  # lines whose hashes are worked out together
_each = Encoder().encode_lines
_spell = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
_TYPES: tuple[type | tuple[type, ...], ...] = (int, str, (str, type(None)), (int, type(None)), int, int, str, str, str)


def canonical(value: object) -> str:
    """JSON with one spelling for each value."""
    return _spell(value)


def digest(value: object) -> str:
    return hashlib.sha256(_spell(value).encode()).hexdigest()


def line_of(row: Sequence[object]) -> Line:
    """A line as it was stored: every field has its type, whatever the file holds."""
    if not all(map(isinstance, row, _TYPES)):
        raise LedgerError(f"The ledger is damaged: entry {row[0]} is not one that this program wrote.")
    return Line(*row)  # type: ignore[arg-type]


def mark(line: Sealed) -> Mark:
    """The point right after a line."""
    return Mark(line.seq, line.hash, line.spent)


def chain_hash(previous: str, line: Sealed) -> str:
    """The hash that seals a line and, through `previous`, all before it."""
    sealed = (line.seq, line.kind, line.key, line.intent, line.atoms, line.spent, line.body, line.time)
    return _sealed([previous, *sealed])


def seal(head: Mark, draft: Draft, spent: int, time: str, *, seq: int = 0) -> Line:
    """The line of a draft, which follows `head`; its number is the next one by default."""
    fields = (seq or head.seq + 1, draft.kind, draft.key, draft.intent, draft.atoms, spent, draft.body, time)
    return Line(*fields, _sealed([head.hash, *fields]))


def chain_hashes(previous: str, lines: Sequence[Sealed]) -> list[str]:
    """The `chain_hash` of each line after the one before it, whose hash is taken as it stands: all at once."""
    before = [previous, *[line.hash for line in lines]]
    sealed = [
        (hash, line.seq, line.kind, line.key, line.intent, line.atoms, line.spent, line.body, line.time)
        for hash, line in zip(before, lines, strict=False)
    ]
    try:
        spelled = _each(sealed)
    except UnicodeEncodeError:
        spelled = b"\x7f"
    if not spelled.isascii() or b"\x7f" in spelled:  # as in `_sealed`
        return [chain_hash(hash, line) for hash, line in zip(before, lines, strict=False)]
    # JSON has no line break inside a text: each is one line.
    return [hashlib.sha256(one).hexdigest() for one in spelled.split(b"\n")[:-1]]


def _sealed(fields: list[object]) -> str:
    """`digest` of whole numbers and texts, at a tenth of its price: a ledger has millions of lines."""
    try:
        spelled = encode(fields)
    except UnicodeEncodeError:  # half of a surrogate pair, which only `_spell` can spell
        return digest(fields)
    # Both spell printable ASCII in the same way; what is beyond `_spell` writes as \\u….
    same = spelled.isascii() and b"\x7f" not in spelled
    return hashlib.sha256(spelled).hexdigest() if same else digest(fields)


def follow(lines: Iterable[Sealed], at: Mark, state: State, step: Step) -> tuple[Mark, State]:
    """Derive a history again from a point that is trusted, and its state there: the point and the state at its end.

    Guarantee: when it returns, these are the lines that the last hash was worked out from: whoever changes, removes or
        puts in one gets another last hash. If they are not, it raises and names the first bad line.
    Formula: hash = SHA-256(previous hash, line); numbers follow one another, and an override may leave some out; the
        running total is the one that `step` comes to.
    Source: Haber & Stornetta 1991.
    """
    rest = iter(lines)
    while some := list(islice(rest, _CHAINED)):
        before, line = at.seq, some[0]
        try:
            for line, hash in zip(some, chain_hashes(at.hash, some), strict=True):
                seq = line.seq
                state = step(state, seq, line)
                next_one = seq == before + 1 or (line.kind == "override" and seq > before)
                if not next_one or line.spent != state.spent or line.hash != hash:
                    raise Unsound
                before = seq
        except Unsound:
            raise damaged(line) from None
        at = mark(some[-1])
    return at, state


def damaged(line: Sealed) -> LedgerError:
    """What is said of a line that was changed, or does not belong where it stands."""
    return LedgerError(f"The ledger is damaged: entry {line.seq} does not follow from those before it.")
