"""What a key is, and what stands for one where everybody may read. Pure; `keys` has the file that keys are kept in."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import get_args

from tacit.replies import Role as Role

ROLES: tuple[Role, ...] = get_args(Role)
PREFIX = "tacit_"  # so that a key is recognised where it should not be: in a log, in a repository
DEFAULT_QUOTA = 0.25  # of what is left, for an analyst


@dataclass(frozen=True, slots=True)
class Key:
    """A key without its secret: whose it is and what it opens. `quota` is a share of each budget, for fairness."""

    id: int
    name: str
    role: Role
    quota: float | None
    created: str
    revoked: str | None
    of_left: bool = False  # the quota is a share of what was left of each budget when this name first asked

    @property
    def may_spend(self) -> bool:
        return self.role in ("owner", "analyst")

    @property
    def may_spend_all(self) -> bool:
        """Whether nothing but the budget limits it."""
        return self.may_spend and (self.quota is None or self.quota >= 1)

    @property
    def is_visitor(self) -> bool:
        """Whether it stands for somebody who needs no key."""
        return self.id < 0


def visitor(address: str) -> Key:
    """What stands for whoever comes from an address to a server without keys: each address is counted by itself."""
    number = int.from_bytes(hashlib.sha256(address.encode("utf-8", "surrogatepass")).digest()[:7])
    return Key(-1 - number, "anyone", "reader", None, "", None)


def digest(secret: str) -> bytes:
    """What stands for a secret where it is kept."""
    # A plain hash is enough for 256 random bits: there is no dictionary to try.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
