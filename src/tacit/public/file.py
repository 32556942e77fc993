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
import os
import re
import stat
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import Meta, MsgspecError, Struct, to_builtins
from msgspec.json import decode, encode
from numpy.typing import NDArray

from tacit.errors import ConfigError, TacitError
from tacit.exact.price import MOST_PER_PERSON, total
from tacit.model.budget import Budget, Loss
from tacit.model.domain import MAX_ATTRIBUTES, Domain
from tacit.public.lines import BLOCK, HASH, MOST_WRITTEN, PublishedLines, content, refuse, spelled_alike
from tacit.release.hypothesis.prior import Prior
from tacit.release.mechanisms import MECHANISMS, Choice
from tacit.release.settings import Confidence
from tacit.store.chain import Line, canonical

FORMAT, VERSION = "tacit published", 4
MAX_BYTES = 2**32  # of a file
MAX_LINE = 2**28  # of a line: the largest answer has 2^22 numbers
MAX_DOMAIN = 2**24  # characters of a domain
_TABLE = re.compile(r'\[domain\.([A-Za-z0-9_-]{1,128}|"(?:[^"\\]|\\.){1,1000}")\]')
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
MAPPED = 2**24  # bytes from which on a file is mapped, and not copied
_CUT_SHORT = "it was cut short or changed: its last line is not the digest of the others"
_DIGEST = re.compile(rb'\{"sha256":"[0-9a-f]{64}"\}\n')


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
    version: Literal[4]
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
    lines: PublishedLines
    size: int  # bytes of the file
    hashed: Future[Hashed]  # while the entries are read: it takes a processor of its own

    @property
    def digest(self) -> str:
        """The SHA-256 of the file."""
        return self.hashed.result().digest

    @property
    def sealed(self) -> bool:
        """Whether the last line is the digest of the others. Where it is not, `check.check` says what was changed."""
        return self.hashed.result().sealed


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
    if isinstance(content, Line) and spelled_alike(line := encode(content, order="sorted")):
        return line + b"\n"
    return canonical(to_builtins(content)).encode("ascii") + b"\n"


def last_line(digest: hashlib._Hash) -> bytes:
    """The last line of a file, by the digest of those before it."""
    return f'{{"sha256":"{digest.hexdigest()}"}}\n'.encode("ascii")


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
    return Contents(*found, PublishedLines(path, text, starts[1 : last + 1]), len(text), hashed)


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
            start + 1 + np.flatnonzero(np.frombuffer(whole[start : start + BLOCK], np.uint8) == ord("\n"))
            for start in range(0, len(whole), BLOCK)
        ]
    return np.concatenate(found, dtype=np.int64) if found else np.zeros(0, np.int64)


def _header(path: Path, line: bytes) -> tuple[Header, Domain, Choice]:
    with contextlib.suppress(MsgspecError, RecursionError, UnicodeError):
        kind = decode(line, type=Kind)
        if kind.format != FORMAT:
            refuse(path, f"it does not begin with a line that says {FORMAT!r}")
        if kind.version != VERSION:
            refuse(path, f"it is of version {str(kind.version)[:20]}, and this program reads version {VERSION}")
    header = content(path, line, Header, "its terms are wrong")
    chosen = header.mechanism
    try:
        most = total(header.budget, header.total.measure, aside=header.aside or 0.0)
        domain = _domain(header.domain)
        if header.prior is not None:
            header.prior.check(domain)
        choice = Choice(chosen.mechanism, chosen.reason, MECHANISMS[chosen.mechanism].set(chosen.settings))
        sound = (
            domain.to_toml() == header.domain
            and canonical(to_builtins(choice.settings)) == canonical(chosen.settings)  # 0 is another spelling of 0.0
            and (header.program + chosen.reason).isprintable()
            and HASH.fullmatch(header.origin)
            and (header.continues is None or HASH.fullmatch(header.continues))
            and 1 <= header.total.atoms < MOST_WRITTEN
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
