"""What the tests of the server share: a small table with secrets in it, its configuration, and clients with keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from tacit.serve.api import Server
from tacit.serve.dataset import Dataset
from tacit.serve.keys import Role

CSV = (
    "name,sex,age,active,pay\n"
    + "".join(f"p{i},{'FM'[i % 2]},{20 + i % 50},{i % 3 == 0},{i % 50}\n" for i in range(300))
    + "Wilhelmina,F,44,true,49.5\n"
)
CONFIG = """
[data]
source = "people.csv"
[budget]
epsilon = 5.0
delta = 1e-9
[session]
ledger = "{name}.tacit"
mechanism = "{mechanism}"
questions = {questions}
anchor = "{name}.anchor"
[domain.sex]
kind = "category"
values = ["F", "M"]
[domain.age]
kind = "integer"
low = 0
high = 99
width = 10
[domain.active]
kind = "boolean"
[domain.pay]
kind = "numeric"
edges = [0, 10, 20, 50]
"""


def write_config(folder: Path, name: str = "people", mechanism: str = "direct", questions: int = 20) -> Path:
    (folder / "people.csv").write_text(CSV)
    path = folder / f"{name}.toml"
    path.write_text(CONFIG.format(name=name, mechanism=mechanism, questions=questions))
    return path


@dataclass
class Served:
    """A running application and its folder; `ana`, `bob`, `rea` and `olga` are clients with keys of their own."""

    folder: Path
    state: Server
    keys: dict[str, str]
    clients: dict[str, TestClient] = field(default_factory=dict)

    def __getattr__(self, name: str) -> TestClient:
        try:
            return self.__dict__["clients"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def people(self) -> Dataset:
        return self.state.datasets["people"]

    def ask(self, question: Any, who: str = "ana", path: str = "/v1/people/ask") -> Any:
        """The answer, which must be there."""
        response = self.clients[who].post(path, json={"question": question})
        assert response.status_code == 200, response.text
        return response.json().get("answer", response.json())


Serve = Callable[..., Served]
WHO: dict[str, tuple[Role, float | None]] = {
    "ana": ("analyst", None),
    "bob": ("analyst", None),
    "mia": ("analyst", 0.1),
    "rea": ("reader", None),
    "olga": ("owner", None),
}
