"""The open file: one line of JSON for the terms, one for each entry of the chain, one for the digest of all of them.

Called by `publishing.knowledge`. Everything that is read is taken for hostile: sizes, types and spelling are checked
before anything is made of it. Two files with the same content have the same bytes.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import IO, Any, NoReturn

from tacit.errors import ConfigError, TacitError
from tacit.model.budget import Budget, Loss
from tacit.model.domain import MAX_ATTRIBUTES, Domain
from tacit.release.mechanisms import MECHANISMS, Choice
from tacit.store.chain import Line, canonical
from tacit.trusted.loss import MOST_PER_PERSON, total

FORMAT, VERSION = "tacit published", 2
MAX_BYTES = 2**32  # of a file
MAX_LINE = 2**28  # of a line: the largest answer has 2^22 numbers
MAX_DOMAIN = 2**24  # characters of a domain
_MOST = 2**62  # whole numbers; SQLite, where they come from, counts to 2^63
_HASH, _GATE = re.compile("[0-9a-f]{64}"), re.compile("gate [0-9]{1,19}")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}\+00:00")
_TABLE = re.compile(r'\[domain\.([A-Za-z0-9_-]{1,128}|"(?:[^"\\]|\\.){1,1000}")\]')
_DAY = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOST_WHY = 400  # characters of what is said against a file
_ENTRY = tuple(field.name for field in fields(Line))


@dataclass(frozen=True)
class Terms:
    """What is public about a session beside its entries, and the hash that their chain starts from."""

    domain: Domain
    rows: int
    budget: Budget
    total: Loss
    confidence: float
    choice: Choice
    origin: str
    program: str
    rows_per_person: int = 1


def lines(terms: Terms, entries: Iterable[Line], digest: hashlib._Hash) -> Iterator[bytes]:
    """The file, line by line; `digest` becomes that of the whole file."""
    if len(terms.domain.to_toml()) > MAX_DOMAIN:
        raise ConfigError(f"the domain is written in more than {MAX_DOMAIN:,} characters, too many to be published.")
    for content in chain([_form(terms)], ({name: getattr(entry, name) for name in _ENTRY} for entry in entries)):
        line = f"{canonical(content)}\n".encode("ascii")
        digest.update(line)
        yield line
    last = _last(digest.hexdigest())
    digest.update(last)
    yield last


def write(path: Path, content: Iterable[bytes], *, overwrite: bool) -> None:
    """Write a file that is there whole or not at all, also after a power cut."""
    path = Path(os.path.realpath(path))
    made: str | None = None
    try:
        handle, made = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.writelines(content)
            file.flush()
            os.fchmod(file.fileno(), 0o644)  # it is public
            os.fsync(file.fileno())
        if overwrite:
            os.replace(made, path)
            made = None
        else:
            os.link(made, path)  # unlike a rename, refuses to replace what is there
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except FileExistsError:
        raise ConfigError(f"{path.name} exists already; choose another name, or say overwrite=True.") from None
    except OSError:
        raise ConfigError(f"{path.name} cannot be written there.") from None
    finally:
        if made is not None:
            with contextlib.suppress(OSError):
                os.unlink(made)


def load(path: Path) -> tuple[Terms, list[Line], str]:
    """What a file says, and its SHA-256. Whether its entries follow from one another is checked elsewhere."""
    try:
        with open(path, "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode) or about.st_size > MAX_BYTES:
                refuse(path, f"it is not a plain file of at most {MAX_BYTES >> 30} GB")
            return _load(path, file)
    except OSError:
        raise ConfigError(f"{path.name} cannot be read.") from None


def refuse(path: Path, why: str) -> NoReturn:
    """Say what is wrong with a file. Words of the file's own are shown in part, and never obeyed by a terminal."""
    why = "".join(c if c.isprintable() else "?" for c in why[:_MOST_WHY])
    raise ConfigError(f"{path.name} is not published knowledge that can be relied on: {why}.")


def _load(path: Path, file: IO[bytes]) -> tuple[Terms, list[Line], str]:
    digest, terms, entries = hashlib.sha256(), None, list[Line]()
    while True:
        line = file.readline(MAX_LINE + 1)
        if line == _last(digest.hexdigest()):
            digest.update(line)
            break
        if len(line) > MAX_LINE or not line.endswith(b"\n"):
            refuse(path, "it was cut short or changed: its last line is not the digest of the others")
        digest.update(line)
        content = _content(path, line)
        if terms is None:
            terms = _terms(path, content)
        else:
            entries.append(_entry(path, content))
    if terms is None or file.read(1):
        refuse(path, "something follows its last line" if terms else "it is empty")
    return terms, entries, digest.hexdigest()


def _last(digest: str) -> bytes:
    return f'{{"sha256":"{digest}"}}\n'.encode("ascii")


def _content(path: Path, line: bytes) -> dict[str, Any]:
    try:
        text = line[:-1].decode("ascii")
        content = json.loads(text)
        if isinstance(content, dict) and canonical(content) == text:  # so no name twice, and no number beyond floats
            return content
    except (ValueError, RecursionError):
        pass
    refuse(path, "a line is not an object in the one spelling of JSON that is used here")


def _entry(path: Path, content: dict[str, Any]) -> Line:
    if set(content) != set(_ENTRY):
        refuse(path, f"an entry has {', '.join(_ENTRY)}")
    entry = Line(**content)
    texts = [entry.kind, entry.body, entry.time, entry.hash, *([] if entry.key is None else [entry.key])]
    numbers = [entry.seq, entry.atoms, entry.spent, *([] if entry.intent is None else [entry.intent])]
    if any(type(text) is not str for text in texts) or any(not _whole(number, 0, _MOST) for number in numbers):
        refuse(path, f"entry {str(entry.seq)[:20]} has a field of the wrong type")
    keyed = entry.key is None or _HASH.fullmatch(entry.key) or _GATE.fullmatch(entry.key)
    if not (keyed and _HASH.fullmatch(entry.hash) and _TIME.fullmatch(entry.time)):
        refuse(path, f"entry {entry.seq} has a key, a hash or a time that is none")
    return entry


def _form(terms: Terms) -> dict[str, Any]:
    # Left out where a person has one row, as in files from before people could have more.
    people = {"rows_per_person": terms.rows_per_person} if terms.rows_per_person != 1 else {}
    return people | {
        "format": FORMAT,
        "version": VERSION,
        "program": terms.program,
        "domain": terms.domain.to_toml(),
        "rows": terms.rows,
        "budget": {"epsilon": terms.budget.epsilon, "delta": terms.budget.delta},
        "total": {"measure": terms.total.measure, "atoms": terms.total.atoms},
        "confidence": terms.confidence,
        "mechanism": terms.choice.to_dict(),
        "origin": terms.origin,
    }


def _terms(path: Path, form: dict[str, Any]) -> Terms:
    if form.get("format") != FORMAT:
        refuse(path, f"it does not begin with a line that says {FORMAT!r}")
    if form.get("version") != VERSION:
        refuse(path, f"it is of version {str(form.get('version'))[:20]}, and this program reads version {VERSION}")
    try:
        domain, budget = _domain(_text(form["domain"], MAX_DOMAIN)), Budget(**_object(form["budget"]))
        terms = Terms(
            domain=domain,
            rows=form["rows"],
            rows_per_person=form.get("rows_per_person", 1),
            budget=budget,
            total=Loss(**_object(form["total"])),
            confidence=form["confidence"],
            choice=_choice(_object(form["mechanism"])),
            origin=_text(form["origin"], 64),
            program=_words(form["program"], 100),
        )
        most = total(budget)
        sound = (
            canonical(_form(terms)) == canonical(form)  # every field, and no other
            and _HASH.fullmatch(terms.origin)
            and _whole(terms.rows, 1, 2**42)
            and _whole(terms.rows_per_person, 1, MOST_PER_PERSON + 1)
            and type(terms.confidence) is float
            and 0.5 <= terms.confidence <= 1 - 1e-9
            and terms.total.measure == most.measure
            and _whole(terms.total.atoms, 1, _MOST)
            and abs(terms.total.atoms - most.atoms) <= 1 + most.atoms // 10**9  # the last bits may be a machine's own
        )
    except (KeyError, TypeError, ValueError, TacitError) as error:
        why = error.sentence.rstrip(".") if isinstance(error, TacitError) else "a field is missing, or of another type"
        refuse(path, f"its terms are wrong ({why})")
    if not sound:
        refuse(path, "its terms are wrong (a value that is out of range, or a name that is not known)")
    return terms


def _choice(form: dict[str, Any]) -> Choice:
    """The mechanism and its settings. What no mechanism has is refused here, and another spelling of it later."""
    name, settings = form["mechanism"], _object(form["settings"])
    if name not in MECHANISMS:
        raise ValueError
    return Choice(name, _words(form["reason"], 10_000), MECHANISMS[name].set(settings))


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _text(value: object, most: int) -> str:
    if not isinstance(value, str) or len(value) > most:
        raise TypeError
    return value


def _words(value: object, most: int) -> str:
    """A text that can be shown: a terminal would obey the others."""
    if not _text(value, most).isprintable():
        raise ValueError
    return _text(value, most)


def _domain(text: str) -> Domain:
    """A domain from its TOML form, line by line as `Domain.to_toml` writes it; another spelling is refused later.

    TOML at large has keys of many parts, on which its reader spends the square of their number.
    """
    tables = dict[str, dict[str, Any]]()
    for line in text.split("\n"):
        if head := _TABLE.fullmatch(line):
            name = _words(json.loads(head[1]) if head[1].startswith('"') else head[1], 128)
            tables[name] = {}
            if len(tables) > MAX_ATTRIBUTES:
                raise ValueError
        elif line:
            field, _, value = line.partition(" = ")
            try:
                last = tables[next(reversed(tables))]
                last[field] = dt.date.fromisoformat(value) if _DAY.fullmatch(value) else json.loads(value)
            except (StopIteration, RecursionError):
                raise ValueError from None
    return Domain.from_dict(tables)


def _whole(value: object, low: int, high: int) -> bool:
    return type(value) is int and low <= value < high
