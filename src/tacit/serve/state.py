"""What the API and the pages share: data sets, keys, logins and traffic. Made by `run.serve` and by tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.requests import Request

from tacit.serve.dataset import Dataset
from tacit.serve.keys import KeyRing
from tacit.serve.limits import Limits, Traffic
from tacit.serve.login import Logins


@dataclass
class State:
    """One server. `hosts` are the names it goes by, None for any; `port` and `secure` are for its cookies."""

    datasets: Mapping[str, Dataset]
    keys: KeyRing
    limits: Limits = field(default_factory=Limits)
    hosts: frozenset[str] | None = None
    port: int = 0
    secure: bool = False

    def __post_init__(self) -> None:
        self.traffic = Traffic(self.limits)
        self.logins = Logins(self.keys, self.secure, self.port)

    def close(self) -> None:
        """Finish what is queued, and let go of everything."""
        for dataset in self.datasets.values():
            dataset.close()
        self.keys.close()


def state_of(request: Request) -> State:
    """The server that a request came to."""
    state = request.app.state.tacit
    assert isinstance(state, State)
    return state
