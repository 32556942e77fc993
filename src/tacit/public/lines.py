"""The entries of the open file, one a line. Called by `file`, `check` and who reads what was checked.

Everything is taken for hostile: an entry is taken in one spelling only, and with fields that are in their ranges.
"""

from __future__ import annotations

import mmap
import operator
import re
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, NamedTuple, NoReturn, TypeVar, overload

import numpy as np
from msgspec import Meta, MsgspecError, Struct, to_builtins
from msgspec.json import Decoder, Encoder, decode, encode
from numpy.typing import NDArray

from tacit.errors import ConfigError, TacitError
from tacit.store.chain import Line, Sealed, canonical

BLOCK, _TOGETHER = 2**18, 250  # bytes, and lines, that are read at a time
_MOST_WHY = 400  # characters of what is said against a file
_HEX = b"0123456789abcdef"
HASH, _KEY = re.compile("[0-9a-f]{64}"), re.compile("[0-9a-f]{64}|gate [0-9]{1,19}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}\+00:00")
# Whole numbers are below this; SQLite, where they come from, counts to 2^63.
MOST_WRITTEN = 2**62
_WIDE_HASH = 64
WrittenCount = Annotated[int, Meta(ge=0, lt=MOST_WRITTEN)]


class Written(Struct, frozen=True, gc=False):
    """An entry as a line of the file has it, in the order of names; `Line` says what it is."""

    atoms: WrittenCount
    body: str
    hash: Annotated[str, Meta(min_length=_WIDE_HASH, max_length=_WIDE_HASH)]
    intent: WrittenCount | None
    key: str | None
    kind: str
    seq: WrittenCount
    spent: WrittenCount
    time: str


class Heads(NamedTuple):
    """What entries are found by: a list of each field, in their order. An intent of none is 0, which no entry has."""

    seqs: list[int]
    kinds: list[str]
    keys: list[str | None]
    intents: list[int]

    def add(self, lines: Sequence[Sealed]) -> None:
        self.seqs.extend([line.seq for line in lines])
        self.kinds.extend([sys.intern(line.kind) for line in lines])
        self.keys.extend([line.key for line in lines])
        self.intents.extend([line.intent or 0 for line in lines])


T = TypeVar("T", bound=Struct)
_read_line, _read_lines = Decoder(Line).decode, Decoder(Line).decode_lines
_read_written, _write_lines = Decoder(Written).decode_lines, Encoder().encode_lines


def refuse(path: Path, why: str) -> NoReturn:
    """Say what is wrong with a file. Words of the file's own are shown in part, and never obeyed by a terminal."""
    why = "".join(c if c.isprintable() else "?" for c in why[:_MOST_WHY])
    raise ConfigError(f"{path.name} is not published knowledge that can be relied on: {why}.")


def spelled_alike(line: bytes) -> bool:
    """Whether msgspec, which is quick, spells an entry as `canonical` does: printable ASCII it does."""
    return line.isascii() and b"\x7f" not in line


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
        if found is None:
            found = Heads([], [], [], [])
            found.add(list(self))
        return found

    def parts(self) -> Iterator[Sequence[Sealed]]:
        """The entries, some at a time. Each is one, in its one spelling and with fields that are in their ranges."""
        heads = Heads([], [], [], [])
        for first, part in self._parts():
            lines: Sequence[Sealed] = _quickly(part) or [
                _line(self._path, line, first + number + 2) for number, line in enumerate(part.split(b"\n")[:-1])
            ]
            heads.add(lines)
            yield lines
        self._heads = heads

    def _parts(self) -> Iterator[tuple[int, bytes]]:
        """The lines in parts of limited numbers of lines and bytes, of one line at least: where each begins, and it."""
        first = 0
        while first < len(self):
            full = int(np.searchsorted(self._starts, self._starts[first] + BLOCK, side="right")) - 1
            last = min(max(full, first + 1), first + _TOGETHER, len(self))
            yield first, self._text[self._starts[first] : self._starts[last]]
            first = last


def _quickly(part: bytes) -> list[Written] | None:
    """Entries of which `_line` takes every one; None where one has to be looked at by itself."""
    try:
        lines = _read_written(part)
    except (MsgspecError, UnicodeError, RecursionError):
        return None
    keys = [line.key for line in lines if line.key is not None]
    wide = [key for key in keys if len(key) == _WIDE_HASH]
    fine = (
        spelled_alike(part)
        and _write_lines(lines) == part
        and not "".join([line.hash for line in lines] + wide).encode().translate(None, _HEX)
        and all(map(_TIME.fullmatch, {line.time for line in lines}))
        and (len(wide) == len(keys) or all(map(_KEY.fullmatch, keys)))
    )
    return lines if fine else None


def content(path: Path, line: bytes, kind: type[T], wrong: str) -> T:
    """A line as one of these kinds. Encoded again it must be the line: no other name, none twice, no other spelling."""
    why = "it is spelled in another way than here"
    try:
        content = decode(line, type=kind)
        if kind is Line and encode(content, order="sorted") == line and spelled_alike(line):
            return content
        if canonical(to_builtins(content)).encode("ascii") == line:
            return content
    except (MsgspecError, RecursionError, UnicodeError, TacitError) as error:
        why = str(error).rstrip(".")
    refuse(path, f"{wrong} ({why})")


def _line(path: Path, line: bytes, number: int) -> Line:
    found = content(path, line, Line, f"line {number:,} is no entry")
    numbers = found.seq, found.atoms, found.spent, found.intent or 0
    if min(numbers) < 0 or max(numbers) >= MOST_WRITTEN:
        refuse(path, f"entry {str(found.seq)[:20]} has a number that is out of range")
    keyed = found.key is None or _KEY.fullmatch(found.key)
    if not (keyed and HASH.fullmatch(found.hash) and _TIME.fullmatch(found.time)):
        refuse(path, f"entry {found.seq} has a key, a hash or a time that is none")
    return found
