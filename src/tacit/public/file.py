"""The open file: one line of JSON for the header, one for each entry of the chain, one for the digest of all of them.

Called by `publish`, `read` and `verify`. Everything that is read is taken for hostile: sizes, types and spelling are
checked before anything is made of it. Two files with the same content have the same bytes.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import json
import mmap
import operator
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, NoReturn, TypeVar, overload

import numpy as np
from msgspec import Meta, MsgspecError, Struct, to_builtins
from msgspec.json import Decoder, Encoder, decode, encode
from numpy.typing import NDArray

from tacit.errors import ConfigError, TacitError
from tacit.exact.price import MOST_PER_PERSON, total
from tacit.model.budget import Budget, Loss
from tacit.model.domain import MAX_ATTRIBUTES, Domain
from tacit.release.hypothesis.prior import Prior
from tacit.release.mechanisms import MECHANISMS, Choice
from tacit.release.settings import Confidence
from tacit.store.chain import Line, canonical

FORMAT, VERSION = "tacit published", 3
MAX_BYTES = 2**32  # of a file
MAX_LINE = 2**28  # of a line: the largest answer has 2^22 numbers
MAX_DOMAIN = 2**24  # characters of a domain
_TABLE = re.compile(r'\[domain\.([A-Za-z0-9_-]{1,128}|"(?:[^"\\]|\\.){1,1000}")\]')
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
MAPPED = 2**24  # bytes from which on a file is mapped, and not copied
_BLOCK, _TOGETHER = 2**18, 250  # bytes, and lines, that are read at a time
_CUT_SHORT = "it was cut short or changed: its last line is not the digest of the others"
_MOST_WHY = 400  # characters of what is said against a file

_DIGEST = re.compile(rb'\{"sha256":"[0-9a-f]{64}"\}\n')
_HEX = b"0123456789abcdef"
_HASH, _KEY = re.compile("[0-9a-f]{64}"), re.compile("[0-9a-f]{64}|gate [0-9]{1,19}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}\+00:00")


class ChosenMechanism(Struct, frozen=True):
    """The mechanism, why it was chosen, and every setting that it has."""

    mechanism: str
    reason: Annotated[str, Meta(max_length=10_000)]
    settings: dict[str, Any]


class Header(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is public about a session beside its entries, and the hash that their chain starts from.

    `rows_per_person` is left out of the file where a person has one row, `prior` where there is none, `aside`, the part
    of delta that was kept for discovered values, where nothing was discovered, and `continues`, the origin of the
    ledger that this one goes on from, where there is none.
    """

    format: Literal["tacit published"]
    version: Literal[3]
    program: Annotated[str, Meta(max_length=100)]
    domain: Annotated[str, Meta(max_length=MAX_DOMAIN)]
    rows: Annotated[int, Meta(ge=1, lt=2**42)]
    rows_per_person: Annotated[int, Meta(ge=1, le=MOST_PER_PERSON)] = 1
    budget: Budget
    aside: Annotated[float, Meta(gt=0, lt=1)] | None = None
    total: Loss
    confidence: Confidence
    mechanism: ChosenMechanism
    origin: str
    continues: str | None = None
    prior: Prior | None = None


class Kind(Struct):
    """What tells one kind of file from another."""

    format: Any = None
    version: Any = None


class Hashed(NamedTuple):
    """The SHA-256 of a file, and whether its last line is that of the lines before it."""

    digest: str
    sealed: bool


@dataclass(frozen=True)
class Contents:
    """What a file says: its header, what two texts of it mean, and its lines."""

    header: Header
    domain: Domain
    choice: Choice
    lines: Sequence[Line]
    hashed: Future[Hashed]  # while the entries are read: it takes a processor of its own

    @property
    def digest(self) -> str:
        """The SHA-256 of the file."""
        return self.hashed.result().digest

    @property
    def sealed(self) -> bool:
        """Whether the last line is the digest of the others. Where it is not, `check.check` says what was changed."""
        return self.hashed.result().sealed


# Whole numbers are below this; SQLite, where they come from, counts to 2^63.
_MOST = 2**62
_WIDE_HASH = 64
Whole = Annotated[int, Meta(ge=0, lt=_MOST)]


class Written(Struct, frozen=True, gc=False):
    """An entry as a line of the file has it, in the order of names; `Line` says what it is."""

    atoms: Whole
    body: str
    hash: Annotated[str, Meta(min_length=_WIDE_HASH, max_length=_WIDE_HASH)]
    intent: Whole | None
    key: str | None
    kind: str
    seq: Whole
    spent: Whole
    time: str


class Heads(NamedTuple):
    """What entries are found by: a list of each field, in their order. An intent of none is 0, which no entry has."""

    seqs: list[int]
    kinds: list[str]
    keys: list[str | None]
    intents: list[int]

    def add(self, lines: Sequence[Line | Written]) -> None:
        self.seqs.extend([line.seq for line in lines])
        self.kinds.extend([sys.intern(line.kind) for line in lines])
        self.keys.extend([line.key for line in lines])
        self.intents.extend([line.intent or 0 for line in lines])


T = TypeVar("T", Header, Line)
_read_line, _read_lines = Decoder(Line).decode, Decoder(Line).decode_lines
_read_written, _write_lines = Decoder(Written).decode_lines, Encoder().encode_lines


def lines(header: Header, entries: Iterable[Line], digest: hashlib._Hash) -> Iterator[bytes]:
    """The file, line by line; `digest` becomes that of the whole file."""
    content: Header | Line
    for content in chain[Header | Line]([header], entries):
        line = written(content)
        digest.update(line)
        yield line
    last = last_line(digest)
    digest.update(last)
    yield last


def written(content: Header | Line) -> bytes:
    """One line of the file."""
    if isinstance(content, Header) and len(content.domain) > MAX_DOMAIN:
        raise ConfigError(f"the domain is written in more than {MAX_DOMAIN:,} characters, too many to be published.")
    if isinstance(content, Line) and _spelled_alike(line := encode(content, order="sorted")):
        return line + b"\n"
    return canonical(to_builtins(content)).encode("ascii") + b"\n"


def last_line(digest: hashlib._Hash) -> bytes:
    """The last line of a file, by the digest of those before it."""
    return f'{{"sha256":"{digest.hexdigest()}"}}\n'.encode("ascii")


def _spelled_alike(line: bytes) -> bool:
    """Whether msgspec, which is quick, spells an entry as `canonical` does: printable ASCII it does."""
    return line.isascii() and b"\x7f" not in line


def load(path: Path) -> Contents:
    """What a file says. Whether it is sealed, and its entries follow from one another, is for `check.check` to say."""
    try:
        with open(path, "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode) or about.st_size > MAX_BYTES:
                refuse(path, f"it is not a plain file of at most {MAX_BYTES >> 30} GB")
            if about.st_size >= MAPPED:
                return _load(path, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
            return _load(path, file.read(MAPPED))
    except OSError:
        raise ConfigError(f"{path.name} cannot be read.") from None


def refuse(path: Path, why: str) -> NoReturn:
    """Say what is wrong with a file. Words of the file's own are shown in part, and never obeyed by a terminal."""
    why = "".join(c if c.isprintable() else "?" for c in why[:_MOST_WHY])
    raise ConfigError(f"{path.name} is not published knowledge that can be relied on: {why}.")


def _load(path: Path, text: bytes | mmap.mmap) -> Contents:
    ends = _ends(text)
    if not len(ends) or ends[0] > MAX_LINE:
        refuse(path, _CUT_SHORT)
    first = text[: int(ends[0])]
    found = None if _DIGEST.fullmatch(first) else _header(path, first[:-1])
    starts = np.concatenate(([0], ends))
    size = len(last_line(hashlib.sha256()))
    short = (int(i) for i in np.flatnonzero(np.diff(starts) == size))
    last = next((i for i in short if _DIGEST.fullmatch(text[int(starts[i]) : int(ends[i])])), None)
    if last is None or np.diff(starts[: last + 1]).max(initial=0) > MAX_LINE:
        refuse(path, _CUT_SHORT)
    if found is None or int(ends[last]) < len(text):
        refuse(path, "something follows its last line" if found else "it is empty")
    thread = ThreadPoolExecutor(1)
    hashed = thread.submit(_hashed, text, int(starts[last]))
    thread.shutdown(wait=False)
    return Contents(*found, PublishedLines(path, text, starts[1 : last + 1]), hashed)


def _hashed(text: bytes | mmap.mmap, last: int) -> Hashed:
    """The digest of a file whose last line begins there."""
    with memoryview(text) as whole, whole[:last] as before:
        digest = hashlib.sha256(before)
    line = text[last:]
    sealed = line == last_line(digest)
    digest.update(line)
    return Hashed(digest.hexdigest(), sealed)


def _ends(text: bytes | mmap.mmap) -> NDArray[np.int64]:
    """Where the lines of a file end, each with the line break that ends it."""
    with memoryview(text) as whole:
        found = [
            start + 1 + np.flatnonzero(np.frombuffer(whole[start : start + _BLOCK], np.uint8) == ord("\n"))
            for start in range(0, len(whole), _BLOCK)
        ]
    return np.concatenate(found, dtype=np.int64) if found else np.zeros(0, np.int64)


class PublishedLines(Sequence[Line]):
    """The entries of a file. It stays where it is, in memory or mapped, and each entry is read when it is asked for.

    Whoever was not there when they were checked goes through `parts` first.
    """

    def __init__(self, path: Path, text: bytes | mmap.mmap, starts: NDArray[np.int64]) -> None:
        """Entry i stands from `starts[i]` to `starts[i + 1]`."""
        self._path, self._text, self._starts = path, text, starts
        self._heads: Heads | None = None

    def __len__(self) -> int:
        return len(self._starts) - 1

    @overload
    def __getitem__(self, at: int) -> Line: ...
    @overload
    def __getitem__(self, at: slice) -> list[Line]: ...
    def __getitem__(self, at: int | slice) -> Line | list[Line]:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        at = range(len(self))[at]  # from the end where it is negative
        return _read_line(self._text[self._starts[at] : self._starts[at + 1]])

    def __iter__(self) -> Iterator[Line]:
        return chain.from_iterable(_read_lines(part) for _, part in self._parts())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(operator.eq, self, other))

    def heads(self) -> Heads:
        """What names each of the entries, kept since they were checked, and given away: it is asked for once."""
        found, self._heads = self._heads, None
        return found or heads_of(self)

    def parts(self) -> Iterator[Sequence[Line | Written]]:
        """The entries, some at a time. Each is one, in its one spelling and with fields that are in their ranges."""
        heads = Heads([], [], [], [])
        for first, part in self._parts():
            lines: Sequence[Line | Written] = _quickly(part) or [
                _line(self._path, line, first + number + 2) for number, line in enumerate(part.split(b"\n")[:-1])
            ]
            heads.add(lines)
            yield lines
        self._heads = heads

    def _parts(self) -> Iterator[tuple[int, bytes]]:
        """The lines in parts of limited numbers of lines and bytes, of one line at least: where each begins, and it."""
        first = 0
        while first < len(self):
            full = int(np.searchsorted(self._starts, self._starts[first] + _BLOCK, side="right")) - 1
            last = min(max(full, first + 1), first + _TOGETHER, len(self))
            yield first, self._text[self._starts[first] : self._starts[last]]
            first = last


def heads_of(lines: Iterable[Line]) -> Heads:
    found = Heads([], [], [], [])
    found.add(list(lines))
    return found


def _quickly(part: bytes) -> list[Written] | None:
    """Entries of which `_line` takes every one; None where one has to be looked at by itself."""
    try:
        lines = _read_written(part)
    except (MsgspecError, UnicodeError, RecursionError):
        return None
    keys = [line.key for line in lines if line.key is not None]
    wide = [key for key in keys if len(key) == _WIDE_HASH]
    fine = (
        _spelled_alike(part)
        and _write_lines(lines) == part
        and not "".join([line.hash for line in lines] + wide).encode().translate(None, _HEX)
        and all(map(_TIME.fullmatch, {line.time for line in lines}))
        and (len(wide) == len(keys) or all(map(_KEY.fullmatch, keys)))
    )
    return lines if fine else None


def _content(path: Path, line: bytes, kind: type[T], wrong: str) -> T:
    """A line as one of these kinds. Encoded again it must be the line: no other name, none twice, no other spelling."""
    why = "it is spelled in another way than here"
    try:
        content = decode(line, type=kind)
        if kind is Line and encode(content, order="sorted") == line and _spelled_alike(line):
            return content
        if canonical(to_builtins(content)).encode("ascii") == line:
            return content
    except (MsgspecError, RecursionError, UnicodeError, TacitError) as error:
        why = str(error).rstrip(".")
    refuse(path, f"{wrong} ({why})")


def _line(path: Path, line: bytes, number: int) -> Line:
    found = _content(path, line, Line, f"line {number:,} is no entry")
    numbers = found.seq, found.atoms, found.spent, found.intent or 0
    if min(numbers) < 0 or max(numbers) >= _MOST:
        refuse(path, f"entry {str(found.seq)[:20]} has a number that is out of range")
    keyed = found.key is None or _KEY.fullmatch(found.key)
    if not (keyed and _HASH.fullmatch(found.hash) and _TIME.fullmatch(found.time)):
        refuse(path, f"entry {found.seq} has a key, a hash or a time that is none")
    return found


def _header(path: Path, line: bytes) -> tuple[Header, Domain, Choice]:
    with contextlib.suppress(MsgspecError, RecursionError, UnicodeError):
        kind = decode(line, type=Kind)
        if kind.format != FORMAT:
            refuse(path, f"it does not begin with a line that says {FORMAT!r}")
        if kind.version != VERSION:
            refuse(path, f"it is of version {str(kind.version)[:20]}, and this program reads version {VERSION}")
    header = _content(path, line, Header, "its terms are wrong")
    chosen = header.mechanism
    try:
        most = total(header.budget, header.total.measure, aside=header.aside or 0.0)
        domain = _domain(header.domain)
        if header.prior is not None:
            header.prior.check(domain)
        choice = Choice(chosen.mechanism, chosen.reason, MECHANISMS[chosen.mechanism].set(chosen.settings))
        sound = (
            domain.to_toml() == header.domain
            and to_builtins(choice.settings) == chosen.settings
            and (header.program + chosen.reason).isprintable()
            and _HASH.fullmatch(header.origin)
            and (header.continues is None or _HASH.fullmatch(header.continues))
            and 1 <= header.total.atoms < _MOST
            and abs(header.total.atoms - most.atoms) <= 1 + most.atoms // 10**9  # the last bits may be a machine's own
        )
    except (KeyError, TypeError, ValueError, TacitError) as error:
        why = error.sentence.rstrip(".") if isinstance(error, TacitError) else "a value that no session has"
        refuse(path, f"its terms are wrong ({why})")
    if not sound:
        refuse(path, "its terms are wrong (a value that is out of range, or a name that is not known)")
    return header, domain, choice


def _domain(text: str) -> Domain:
    """A domain from its TOML form, line by line as `Domain.to_toml` writes it; another spelling is refused later.

    TOML at large has keys of many parts, on which its reader spends the square of their number.
    """
    tables = dict[str, dict[str, Any]]()
    for line in text.split("\n"):
        if head := _TABLE.fullmatch(line):
            name = json.loads(head[1]) if head[1].startswith('"') else head[1]
            tables[name] = {}
            if len(tables) > MAX_ATTRIBUTES or len(name) > 128 or not name.isprintable():
                raise ValueError
        elif line:
            field, _, value = line.partition(" = ")
            try:
                last = tables[next(reversed(tables))]
                last[field] = dt.date.fromisoformat(value) if _DAY.fullmatch(value) else json.loads(value)
            except (StopIteration, RecursionError):
                raise ValueError from None
    return Domain.from_dict(tables)
