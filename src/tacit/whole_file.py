"""A file that is there whole or not at all, for what is public. Called by `publish`."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tacit.errors import ConfigError


def write_whole(path: Path, content: Iterable[bytes], *, overwrite: bool) -> None:
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
