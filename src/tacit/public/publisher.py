"""`publish`: everything that a session has released, as one open file."""

from __future__ import annotations

import hashlib
from pathlib import Path

import tacit
from tacit.errors import ConfigError
from tacit.public import file
from tacit.public.file import ChosenMechanism, Header
from tacit.session import Session
from tacit.store.chain import Line


def publish(session: Session, path: str | Path, *, overwrite: bool = False) -> str:
    """Write all that a session has released, and nothing else, to an open file. Returns the file's SHA-256.

    The file holds the sealed entries of the ledger, the declared domain, the number of rows, the budget and the
    mechanism's public settings. It holds no private state: no threshold of a gate, no secret and no fingerprint of the
    data. The same ledger gives the same bytes.

    >>> tacit.publish(session, "survey.tacit.jsonl")   # doctest: +SKIP
    """
    if not isinstance(session, Session):
        raise ConfigError("publish takes an open session and a path.")
    digest = hashlib.sha256()
    file.write(Path(path), file.lines(*contents(session), digest), overwrite=overwrite)
    return digest.hexdigest()


def contents(session: Session) -> tuple[Header, list[Line]]:
    """What a file about this session says now."""
    origin, released = session.transcript()
    header = Header(
        format="tacit published",
        version=3,
        program=tacit.__version__,
        domain=session.domain.to_toml(),
        rows=session.rows,
        rows_per_person=session.rows_per_person,
        budget=session.budget,
        total=session.total,
        confidence=session.confidence,
        mechanism=ChosenMechanism(**session.choice.to_dict()),
        origin=origin,
    )
    return header, released
