"""What the golden files are about: a small table, six sessions on it, and what each of them is asked.

`make.py` writes the files with these functions, `tests/test_golden.py` compares with them. A question is a line of
Python about `session`, so that a golden file reads like a transcript.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import tacit
from golden.questions import CONDITIONS, FOLLOWING, HTTP, NEW, QUERIES, QUESTIONS, WORKLOADS
from tacit.exact.bounds import rho_from
from tacit.exact.price import Sensitivity, choice_price, choice_scale, gate_price, gate_scales, noise_for, price, total
from tacit.model import ask as model_ask
from tacit.model.budget import Loss, Measure
from tacit.model.description import describe
from tacit.model.noise_law import Noise, quantile, quantile_of_sum, variance
from tacit.model.residuals import Residuals
from tacit.model.workload import Convolution, Product, Tree, histogram, key, marginal, to_dict
from tacit.release.epsilon import epsilon_from
from tacit.session import Session

HERE = Path(__file__).parent
PROGRAM = "0.1.0"  # the version that published files name: pinned, so that a new version needs no new files
ROWS = 600
DOMAIN = tacit.Domain(
    {
        "age": tacit.integer(0, 79, width=20, missing="unknown"),
        "region": tacit.category(["north", "south", "east"], other="abroad", missing="nowhere"),
        "smoker": tacit.boolean(),
        "joined": tacit.date("2020-01-01", "2023-12-31", by="year"),
        "pay": tacit.numeric([-10, 0, 10, 50]),
    }
)
LARGE, PURE = tacit.Budget(epsilon=20.0, delta=1e-6), tacit.Budget(epsilon=40.0, delta=0.0)
HUGE = tacit.Budget(epsilon=100.0, delta=1e-6)
SESSIONS: dict[str, dict[str, Any]] = {
    "direct": {"mechanism": "direct", "questions": 60, "budget": LARGE},
    "histogram": {"mechanism": "histogram", "budget": LARGE},
    "iterative": {"mechanism": "iterative", "questions": 200, "hits": 4, "warm": 0.5, "budget": LARGE},
    "median": {
        "mechanism": "median", "questions": 200, "hits": 12, "databases": 12, "records": 60, "seed": 7, "warm": 0,
        "budget": HUGE,
    },
    "person": {"mechanism": "direct", "questions": 60, "person": "id", "rows_per_person": 2, "budget": PURE},
    "discovered": {"mechanism": "direct", "questions": 60, "budget": LARGE},
}  # fmt: skip
SOUGHT: dict[str, dict[str, Any]] = {
    "region": {"kind": "category", "discover": True},
    "age": {"kind": "integer", "discover": 8, "low": 0, "high": 99},
    "smoker": {"kind": "boolean"},
}


# -- the table and the sessions ---------------------------------------------------------------------------------------


def write_table(path: Path) -> None:
    """The table: three attributes of which no two, but all three together, tell something; and two beside them."""
    rows, state = ["id,age,region,smoker,joined,pay"], 1
    for i in range(ROWS):
        state = (state * 1103515245 + 12345) % 2**31  # the C library's old generator: the same for ever
        place, year, age, pay = (state >> 8) % 7, (state >> 12) % 4, (state >> 16) % 90, (state >> 20) % 60 - 10
        region = ("north", "south", "north", "south", "east", "Atlantis", "")[place]
        smoker = (place + year) % 2 == 0
        spelled = "" if age >= 80 else str(age)
        rows.append(f"p{i // 3},{spelled},{region},{str(smoker).lower()},{2020 + year}-0{1 + i % 9}-11,{pay}")
    path.write_text("\n".join(rows) + "\n")


def open_at(folder: Path, name: str) -> Session:
    """One of the sessions, with its ledger and anchor in `folder`."""
    write_table(folder / "people.csv")
    files: dict[str, Any] = {
        "data": str(folder / "people.csv"), "ledger": folder / "golden.tacit", "anchor": folder / "golden.anchor",
    }  # fmt: skip
    if name == "discovered" and not files["ledger"].exists():
        tacit.discover(columns=SOUGHT, budget=SESSIONS[name]["budget"], **files)
    return tacit.open(start=True, domain=DOMAIN, **files, **SESSIONS[name])


def dump(path: Path) -> str:
    """An SQLite file as text."""
    db = sqlite3.connect(path)
    try:
        return "\n".join(db.iterdump()) + "\n"
    finally:
        db.close()


def restore(folder: Path, name: str) -> None:
    """The ledger and the anchor of a session, as SQLite files in `folder`."""
    for kind in ("tacit", "anchor"):
        path = folder / f"golden.{kind}"
        db = sqlite3.connect(path)
        db.execute("PRAGMA journal_mode=WAL").fetchall()
        db.executescript((HERE / "ledgers" / f"{name}.{kind}.sql").read_text())
        db.close()
        path.chmod(0o600)


# -- what is looked at ------------------------------------------------------------------------------------------------


def ask(session: Session, texts: Sequence[str]) -> list[dict[str, Any]]:
    """Each question with its answer, or with the sentence that refuses it."""
    return [{"ask": text, **_outcome(session, text)} for text in texts]


def _outcome(session: Session, text: str) -> dict[str, Any]:
    try:
        words = {"session": session, "tacit": tacit, "ask": model_ask, "domain": session.domain}
        rows = lambda **where: tacit.count(**where).bind(session.domain)  # noqa: E731
        return {"answer": _form(eval(text, words | {"rows": rows}))}
    except tacit.TacitError as error:
        return {"refused": [error.code, str(error)]}


def _form(answer: Any) -> Any:
    if isinstance(answer, list):
        return [_form(one) for one in answer]
    if isinstance(answer, Loss):
        return [answer.measure, answer.atoms]
    if hasattr(answer, "codes"):  # synthetic rows
        return [list(map(str, row)) for row in answer.rows()]
    if hasattr(answer, "cost_at_most"):
        return {"known": answer.known, "cost_at_most": _form(answer.cost_at_most), "why": answer.why}
    if hasattr(answer, "steps"):
        return {"steps": [[step.candidate, step.gap] for step in answer.steps], "accurate": answer.accurate}
    return answer.to_dict()


def observe(session: Session) -> dict[str, Any]:
    """All that a session says of itself, without spending: the ledger takes nothing meanwhile."""
    with session.free():
        return {
            "repr": repr(session),
            "choice": session.choice.to_dict(),
            "total": _form(session.total),
            "spent": _form(session.spent),
            "left": _form(session.left),
            "epsilon_spent": session.epsilon_spent,
            "entries": session.entries,
            "answers": ask(session, QUESTIONS),
            "prices": ask(session, NEW),
            "history": [[p.question, _form(p.cost), p.receipt.entry, p.receipt.seal] for p in session.history],
        }


def observe_published(path: Path) -> dict[str, Any]:
    """What a published file says, and what it answers. The digest of its hypothesis is a machine's own: left out."""
    found = tacit.verify(path).to_dict()
    reading = tacit.read(path)
    return {
        "verified": {name: value for name, value in found.items() if name != "knowledge"},
        "answers": ask(reading, QUESTIONS),
        "following": ask(reading, FOLLOWING),
    }


def observe_http(folder: Path) -> list[dict[str, Any]]:
    """What a server says to a reader about the direct session that `folder` holds."""
    from starlette.testclient import TestClient

    from tacit.serve.admission import Limits
    from tacit.serve.app import LOOPBACK, make_app
    from tacit.serve.dataset import Dataset
    from tacit.serve.keys import KeyRing, make_key
    from tacit.serve.server import Server

    write_table(folder / "people.csv")
    config = folder / "golden.toml"
    config.write_text(
        '[data]\nsource = "people.csv"\n[budget]\nepsilon = 20.0\ndelta = 1e-6\n'
        '[session]\nledger = "golden.tacit"\nanchor = "golden.anchor"\nmechanism = "direct"\nquestions = 60\n'
        + DOMAIN.to_toml()
    )
    secret = make_key(folder / "tacit.keys", "rea", "reader", None)
    ring = KeyRing(folder / "tacit.keys")
    state = Server({"golden": Dataset.open("golden", config, ring)}, ring, Limits(), LOOPBACK, 8470)
    headers = {"authorization": f"Bearer {secret}"}
    found = []
    with TestClient(make_app(state), base_url="http://127.0.0.1:8470", headers=headers) as client:
        for method, path, body in HTTP:
            response = client.request(method, path, json=body)
            found.append({"request": [method, path, body], "status": response.status_code, "response": response.json()})
    return found


# -- keys and prices --------------------------------------------------------------------------------------------------


def keys() -> list[dict[str, Any]]:
    """Each question's canonical key, its words and its JSON form."""
    names = {"tacit": tacit, "DOMAIN": DOMAIN, "marginal": marginal, "histogram": histogram}
    names |= {"Tree": Tree, "Convolution": Convolution, "Product": Product, "Residuals": Residuals}
    return [
        {"question": text, "key": key(question), "words": describe(question, DOMAIN), "form": to_dict(question)}
        for text, question in _questions(names)
    ]


def _questions(names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    from tacit.model import sql

    for condition in CONDITIONS:
        asked = sql.parse(f"SELECT COUNT(*) FROM data WHERE {condition}", DOMAIN)
        value = asked.columns[0].value if isinstance(asked, model_ask.Select) else asked  # ROUND leaves a note
        yield condition, value.query
    for text in QUERIES:
        yield text, eval(text, names).bind(DOMAIN)
    for text in WORKLOADS:
        yield text, eval(text, names)


def prices() -> dict[str, list[list[Any]]]:
    """What noise costs and what a loss buys, over a grid; amounts are in atoms, scales are exact."""
    moves = [Sensitivity(1, 1), Sensitivity(2, 2), Sensitivity(6, 18), Sensitivity(40, 130)]
    scales = [0.5, 1.0, 3.7, 100.0, 12345.678, 2.0**40]
    measures: tuple[Measure, ...] = ("epsilon", "rho", "gdp")
    losses = [Loss(m, a) for m in measures for a in (1_000, 10**9, 31_415_926_535, 10**12, 20 * 10**12)]
    budgets = [(1.0, 1e-9), (20.0, 1e-6), (0.01, 1e-9), (3.0, 0.0), (100.0, 1e-12)]
    laws = [("laplace", "epsilon"), *((kind, measure) for measure in measures[1:] for kind in ("laplace", "gaussian"))]
    noises = [Noise(kind, scale) for kind in ("laplace", "gaussian") for scale in scales[:5]]
    found: dict[str, list[list[Any]]] = {
        "price": [
            [kind, scale, s.l1, s.l2_squared, unit, measure, price(Noise(kind, scale), s, unit, measure).atoms]
            for kind, measure in laws
            for scale in scales
            for s in moves
            for unit in (1, 1000)
        ],
        "noise_for": [
            [loss.measure, loss.atoms, s.l1, s.l2_squared, unit, noise_for(loss, s, unit).scale]
            for loss in losses
            for s in moves
            for unit in (1, 1000)
        ],
        "choice": [[m, s, d, choice_price(s, d, m).atoms] for m in measures for s in scales for d in (1, 2, 6)],
        "choice_scale": [[x.measure, x.atoms, d, choice_scale(x, d)] for x in losses for d in (1, 2, 6)],
        "gate": [[m, s, 2 * s, d, gate_price(s, 2 * s, d, m).atoms] for m in measures for s in scales for d in (1, 6)],
        "gate_scales": [[x.measure, x.atoms, d, *gate_scales(x, d)] for x in losses for d in (1, 6)],
        "total": [[e, d, total(tacit.Budget(epsilon=e, delta=d)).atoms] for e, d in budgets],
        "total_rho": [[e, d, total(tacit.Budget(epsilon=e, delta=d), "rho").atoms] for e, d in budgets if d],
        "rho_from": [[e, d, rho_from(e, d)] for e, d in budgets if d],
        "epsilon_from": [[rho, d, epsilon_from(rho, d)] for rho in (1e-6, 0.01, 1.0, 30.0) for d in (1e-6, 1e-12)],
        "variance": [[n.kind, n.scale, variance(n)] for n in noises],
        "quantile": [[n.kind, n.scale, c, quantile(n, c)] for n in noises for c in (0.5, 0.95, 1 - 1e-9)],
        "quantile_of_sum": [[n.kind, n.scale, k, quantile_of_sum(n, k, 0.95)] for n in noises for k in (2, 10, 5000)],
    }  # fmt: skip
    return found


def plans() -> list[dict[str, Any]]:
    """What is planned for public sizes."""
    small = tacit.Domain({"sex": tacit.boolean(), "age": tacit.integer(0, 99, width=10)})
    large = tacit.Domain({f"a{i}": tacit.integer(0, 9) for i in range(6)})
    asked: list[dict[str, Any]] = [
        {"rows": 50_000, "domain": small, "budget": tacit.Budget(epsilon=1.0, delta=1e-9), "questions": 10_000},
        {"rows": 20_000, "domain": DOMAIN, "budget": tacit.Budget(epsilon=1.0, delta=1e-9), "questions": 20},
        {"rows": 20_000, "domain": large, "budget": tacit.Budget(epsilon=1.0, delta=1e-9), "questions": 10_000},
        {
            "rows": 20_000, "domain": large, "budget": PURE, "questions": 500, "accuracy": 0.02, "rows_per_person": 3,
        },
    ]  # fmt: skip
    found = [tacit.plan(**one) for one in asked]
    return [
        {
            "options": one.options,
            "reason": one.reason,
            "forecasts": [forecast.to_dict() for forecast in one.forecasts],
        }
        for one in found
    ]


# -- comparing --------------------------------------------------------------------------------------------------------


def write(name: str, content: Any) -> None:
    """Keep something as JSON, one short line for each item."""
    path = HERE / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(_lines(content, 0) + "\n")


def _lines(content: Any, depth: int) -> str:
    flat = json.dumps(content, ensure_ascii=False, sort_keys=True)
    if len(flat) <= 160 or depth > 3 or not isinstance(content, list | dict):
        return flat
    inner = " " * (depth + 1)
    if isinstance(content, list):
        parts = [_lines(one, depth + 1) for one in content]
        return "[\n" + ",\n".join(inner + part for part in parts) + f"\n{' ' * depth}]"
    pairs = [f"{json.dumps(name)}: {_lines(one, depth + 1)}" for name, one in sorted(content.items())]
    return "{\n" + ",\n".join(inner + pair for pair in pairs) + f"\n{' ' * depth}}}"


def kept(name: str) -> Any:
    """What a golden file says."""
    return json.loads((HERE / name).read_text())


def differences(found: Any, golden: Any, where: str = "") -> list[str]:
    """Where two JSON values differ. Floats may differ in their last bits, which are a machine's own; nothing else."""
    if isinstance(found, tuple):
        found = list(found)
    if isinstance(found, float) or isinstance(golden, float):
        numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (found, golden))
        same = numbers and math.isclose(found, golden, rel_tol=1e-12, abs_tol=1e-9)
    elif isinstance(found, dict) and isinstance(golden, dict) and set(found) == set(golden):
        return [line for name in found for line in differences(found[name], golden[name], f"{where}.{name}")]
    elif isinstance(found, list) and isinstance(golden, list) and len(found) == len(golden):
        pairs = enumerate(zip(found, golden, strict=True))
        return [line for i, (one, other) in pairs for line in differences(one, other, f"{where}[{i}]")]
    else:
        same = type(found) is type(golden) and found == golden
    return [] if same else [f"{where}: {found!r} is {golden!r} in the golden file"]
