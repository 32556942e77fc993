"""Where a client's key comes from: an argument, the environment, a file of one's own, or the system's keyring."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from tacit.errors import ConfigError

SERVICE = "tacit"  # in the keyring, where the user is the server's address
_KEY = re.compile(r"tacit_[A-Za-z0-9_-]{1,200}")
_LONGEST = 4096  # bytes of a file that holds a key


def find_key(given: str | Path | None, address: str) -> str | None:
    """The key for a server: a text is the key itself, a path is a file that holds it.

    Without either it is TACIT_KEY, the file that TACIT_KEY_FILE names, what the keyring has for the address, or none:
    a server of published files needs none.
    """
    if isinstance(given, Path):
        return _checked(_read(given), str(given))
    if given is not None:
        return _checked(given, "what was given")
    if (key := os.environ.get("TACIT_KEY")) is not None:
        return _checked(key, "TACIT_KEY")
    if (path := os.environ.get("TACIT_KEY_FILE")) is not None:
        return _checked(_read(Path(path)), path)
    key = _from_keyring(address)
    return None if key is None else _checked(key, "what the keyring has")


def no_key(address: str) -> ConfigError:
    """What is said where a server wants a key, and there is none."""
    return ConfigError(
        f"there is no key for {address}: give one to connect, set TACIT_KEY, or name a file in TACIT_KEY_FILE; or "
        f"`keyring set {SERVICE} {address}`, where Python's keyring is installed."
    )


def _checked(key: str, where: str) -> str:
    """The key without spaces around it. What is no key is not repeated: it may be another secret."""
    key = key.strip()
    if not _KEY.fullmatch(key):
        raise ConfigError(f"a key begins with tacit_, and {where} does not.")
    return key


def _read(path: Path) -> str:
    """What a file holds that nobody else may read. It is looked at once it is open: a name can be given away."""
    try:
        file = os.open(path.expanduser(), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        raise ConfigError(f"the key file {path} cannot be read.") from None
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(f"the key file {path} is no plain file.")
        if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO) or found.st_uid not in (os.getuid(), 0):
            raise ConfigError(f"others can read the key file {path}: `chmod 600 {path}`, and think of a new key.")
        return os.read(file, _LONGEST).decode("ascii", "replace")
    finally:
        os.close(file)


def _from_keyring(address: str) -> str | None:
    try:
        import keyring
    except ImportError:
        return None
    try:
        found = keyring.get_password(SERVICE, address)
    except Exception:  # a keyring that is locked, or has no place to keep anything, is as good as none
        return None
    return found if isinstance(found, str) else None
