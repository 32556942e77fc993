"""A file that is there whole or not at all. Called by whatever writes one that others read."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tacit.errors import ConfigError


def write_whole(path: Path, content: Iterable[bytes], *, overwrite: bool, mode: int | None = None) -> None:
    """Write a file that is there whole or not at all, also after a power cut. mode: as for `whole`.

    On a file system without links a power cut may leave an empty file at the place: see `put`.
    """
    with whole(path, overwrite=overwrite, mode=mode) as made, made.open("wb") as file:
        file.writelines(content)


@contextmanager
def whole(path: Path, *, overwrite: bool, mode: int | None = None) -> Iterator[Path]:
    """An empty file beside a place, which comes to its place when all that is written into it here is written.

    mode: who may read it, whatever the umask says; without one it is as any new file.
    """
    path, made = _begun(path, 0o666 if mode is None else 0o600)
    try:
        yield made
        if mode is not None:
            made.chmod(mode)
        put(made, path, overwrite=overwrite)
    except FileExistsError:
        raise ConfigError(f"{path.name} exists already; choose another name, or say overwrite=True.") from None
    except OSError:
        raise ConfigError(f"{path.name} cannot be written.") from None
    finally:
        with suppress(OSError):
            made.unlink()


def _begun(path: Path, mode: int) -> tuple[Path, Path]:
    """The place that a path leads to, and an empty file beside it."""
    try:
        place = Path(os.path.realpath(path))
        # Of this process and no other: in containers that share a folder, all have the same number.
        made = place.with_name(f".{uuid.uuid4().hex}.part")
        os.close(os.open(made, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    except (OSError, ValueError):  # a place without a name, like /, or a text that names none
        raise ConfigError(f"{path.name or path} cannot be written.") from None
    return place, made


def put(made: Path, place: Path, *, overwrite: bool) -> None:
    """Give a file its place when it is on the disk, and wait until its name is. FileExistsError: another is there.

    On a file system without links an empty file takes the place first, where nothing is to be overwritten: a power cut
    may leave that there.
    """
    _sync(made)
    if overwrite:
        os.replace(made, place)
    else:
        _link(made, place)
    _sync(place.parent)


def _link(made: Path, place: Path) -> None:
    """Give a file its place, unless something is there: a rename would replace it."""
    try:
        os.link(made, place)
    except FileExistsError:
        raise
    except OSError:  # a file system without links: the place is taken by an empty file, and then by this one
        os.close(os.open(place, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        try:
            os.replace(made, place)
        finally:
            if made.exists():  # it was not renamed, and what is at its place is the empty file
                place.unlink()


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
