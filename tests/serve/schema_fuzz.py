"""Let schemathesis send what it makes of the API's description to a real server, then raw bytes; `make fuzz` runs it.

    python tests/serve/schema_fuzz.py path/to/schemathesis [--requests 40000] [--raw 10000]

Schemathesis is a program by others that reads openapi.json and nothing else of ours, so it also notices what the tests'
own generator, which is written by those who wrote the server, does not think of. It judges every response: no status of
500 or above, none that is not described, no body and no content type other than described. Afterwards the ledgers are
opened again: what they spent is the sum of their entries, of the audit log, and of what the answers said they cost.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.serving.launch import Server
from benchmarks.serving.wire import Plain
from fuzzing import CONDITION, CONDITIONS, NAMES, Judge, fuzz_bytes
from serving import write_config

import tacit
from support import PATIENCE, Stopwatch
from tacit.config import read_config
from tacit.serve import make_key
from tacit.serve.keys import Role
from tacit.serve.openapi import document

SEED = 20
ATOMS = 10**12
MAX_GROWTH = 200 * 2**20  # bytes of memory: caches fill up, and then it must stop
ROUND = 60  # seconds of schemathesis at a time
CLIENTS = 3  # that send raw bytes
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "response_headers_conformance,unsupported_method,allow_header_conformance,ignored_auth"
)
# What breaks the description must be refused. What breaks only the narrow one need not be.
ALSO = {"served": ",negative_data_rejection", "narrow": ""}
ROLES: dict[str, Role] = {"olga": "owner", "ana": "analyst", "rea": "reader"}
# At once in one round: an owner, who may do everything, and another key; by the description as it is served, and by
# the one with this table's names in it.
ROUNDS = [(("olga", "narrow"), ("rea", "narrow")), (("ana", "narrow"), ("olga", "served"))]
# Mechanism, epsilon and expected questions: plenty, used up from the start, and one where most answers are free.
DATASETS = {"people": ("direct", 5.0, 1_000_000), "scarce": ("direct", 0.05, 2), "gated": ("iterative", 5.0, 1_000)}
PROGRAM = """
import pathlib, sys
from tacit.serve import serve
from tacit.serve.admission import Limits
limits = Limits(rate=1e9, burst=10**9, together=10_000, together_of_one=10_000)
configs = sorted(pathlib.Path(sys.argv[1]).parent.glob("*.toml"))
serve(configs, port=0, limits=limits, ready=lambda address: print(address, flush=True))
"""


@dataclass
class Told:
    """What the responses said, by the notes that schemathesis's hooks took."""

    statuses: Counter[int] = field(default_factory=Counter)
    atoms: Counter[str] = field(default_factory=Counter)  # charged, by data set
    unsure: Counter[str] = field(default_factory=Counter)  # refusals after which something may have been spent
    answers: int = 0

    def read(self, notes: Path) -> None:
        for line in notes.read_text().splitlines():
            note = json.loads(line)
            self.statuses[note["status"]] += 1
            if "unsure" in note:
                self.unsure[note["dataset"]] += 1
            for cost in note.get("costs", ()):
                self.answers += 1
                self.atoms[note["dataset"]] += round(cost * ATOMS)


def main(arguments: Sequence[str] | None = None) -> None:
    options = _options(arguments)
    told, findings, watch = Told(), 0, Stopwatch()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        keys = prepare(folder)
        with Server(folder / "people.toml", PROGRAM) as server:
            (folder / "narrow.json").write_text(json.dumps(narrowed()))
            sources = {"narrow": str(folder / "narrow.json"), "served": f"{server.address}/v1/openapi.json"}
            everything = {"question": {"cdf": "age", "share": 1}}  # from here on this one has nothing left
            bought = Plain(server.address, keys["olga"]).call("POST", "/v1/scarce/ask", everything).json()["answer"]
            told.atoms["scarce"] += round(sum(bought["cost"].values()) * ATOMS)
            number, before = 0, 0
            while told.statuses.total() < options.requests:
                running, sent = [], told.statuses.total()
                for who, source in ROUNDS[number % len(ROUNDS)]:
                    phases = "examples,coverage,fuzzing" if number < len(ROUNDS) else "fuzzing"  # the others never vary
                    notes = folder / f"notes-{len(running)}-{number}"
                    command = [options.schemathesis, *_command(server.address, keys[who], sources[source], phases)]
                    command += ["--checks", CHECKS + ALSO[source]]
                    command += ["--seed", str(SEED + 2 * number + len(running))]
                    running.append((_started(command, folder, notes), notes))
                for process, notes in running:
                    if process.wait(ROUND + PATIENCE):
                        findings += 1
                        print(notes.with_suffix(".log").read_text())
                    told.read(notes)
                # However slow the machine is, every round gets somewhere: so the rounds come to an end.
                assert told.statuses.total() > sent, f"a round without a request, after {sent:,}"
                number, before = number + 1, before or server.resident
            taken, spent = str(watch), _spent(server, keys["olga"])
            judge = Judge()
            raw(server.address, keys["rea"], judge, options.raw)
            assert judge.wrong == [], judge.wrong
            assert _spent(server, keys["olga"]) == spent, "raw bytes with a reader's key were charged"
            growth = server.resident - before
            assert server.running
            assert len(list(Path(f"/proc/{server.pid}/fd").iterdir())) < 100
            assert server.stop() is not None
        for name in DATASETS:
            print(accounted_for(folder, name, told))
    print(
        f"{told.statuses.total():,} requests by schemathesis in {taken}, {number} rounds of two keys, "
        f"{told.answers:,} answers, statuses {dict(sorted(told.statuses.items()))}\n"
        f"{judge.statuses.total():,} times raw bytes, statuses {dict(sorted(judge.statuses.items()))}; "
        f"{growth / 2**20:.0f} MB more memory after the first round; {findings} runs with findings"
    )
    assert findings == 0, "schemathesis has findings: see above"
    assert not [status for status in told.statuses if status == 0 or status >= 500]
    least = min(told.statuses[status] for status in (200, 403, 409, 422))
    assert least > options.requests / 10_000, "too little of one kind to mean anything"
    assert growth < MAX_GROWTH


def prepare(folder: Path) -> dict[str, str]:
    """Three data sets with the same rows, and a key for each role."""
    for name, (mechanism, epsilon, questions) in DATASETS.items():
        config = write_config(folder, name, mechanism, questions)
        config.write_text(config.read_text().replace("epsilon = 5.0", f"epsilon = {epsilon}"))
    (folder / "client").mkdir()
    (folder / "client" / "schemathesis.toml").write_text("")  # else it looks for one in the folders above
    return {name: make_key(folder / "tacit.keys", name, role) for name, role in ROLES.items()}


def narrowed() -> dict[str, Any]:
    """The description with this table's names where it allows any text, without which nearly all is refused early.

    Schemathesis breaks the description on purpose in half of its requests, so other names come, too.
    """
    made = copy.deepcopy(document())
    schemas, names = made["components"]["schemas"], [name for name in NAMES if name]
    for methods in made["paths"].values():
        for operation in methods.values():
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "path":
                    parameter["schema"] = {"enum": [*DATASETS]}
    where = {
        "type": "object",
        "properties": {
            "sex": {"anyOf": [{"enum": ["F", "M", {"in": ["F", None]}]}, {"$ref": "#/components/schemas/AnyOf"}]},
            "age": {"type": "array", "items": {"enum": [*range(0, 100, 10), *range(9, 100, 10)]}} | _PAIR,
            "active": {"enum": [True, False, None]},
            "pay": {"type": "array", "items": {"enum": [0, 10, 20, 50]}} | _PAIR,
        },
        "additionalProperties": False,
    }
    _, *kinds = schemas["Question"]["oneOf"]
    for kind in kinds:
        fields = schemas[kind["$ref"].rpartition("/")[2]]["properties"]
        for name, schema in fields.items():
            first = schema.get("anyOf", [schema])[0]
            if first.get("description") == CONDITION:
                fields[name] = {"anyOf": [where, *schema["anyOf"][1:]]}
            elif "type" not in schema:
                continue
            elif schema["type"] == "string":
                fields[name] = {"enum": names}
            elif schema["type"] == "array":
                fields[name] = schema | {"items": {"enum": names}}
            elif schema["type"] == "object":
                fields[name] = where
    schemas["Question"]["oneOf"] = [{"enum": _sql()}, *kinds]
    return made


_PAIR = {"minItems": 2, "maxItems": 2}


def _sql() -> list[str]:
    wheres = [
        "",
        *(f" WHERE {one}" for one in CONDITIONS),
        *(f" WHERE {a} AND {b}" for a in CONDITIONS for b in CONDITIONS),
    ]
    texts = [f"SELECT {what} FROM data{where}" for what in ("COUNT(*)", "AVG(age)", "SUM(pay)") for where in wheres]
    return texts + [f"SELECT sex, COUNT(*) FROM data{where} GROUP BY sex" for where in wheres]


def _command(address: str, key: str, source: str, phases: str) -> list[str]:
    return [
        *("--config-file", "schemathesis.toml", "run", source, "--url", address),
        *("--header", f"Authorization: Bearer {key}", "--workers", "1", "--max-time", str(ROUND), "--phases", phases),
        *("--continue-on-failure", "--no-shrink", "--generation-database", "none", "--request-timeout", str(PATIENCE)),
        *("--suppress-health-check", "all", "--warnings", "off", "--no-color"),
    ]


def _started(command: list[str], folder: Path, notes: Path) -> subprocess.Popen[bytes]:
    """One run with one key. With findings its exit status is not 0."""
    notes.touch()
    hooks = {"SCHEMATHESIS_HOOKS": "schema_notes", "PYTHONPATH": str(Path(__file__).parent), "TACIT_NOTES": str(notes)}
    with notes.with_suffix(".log").open("wb") as log:
        return subprocess.Popen(command, env=os.environ | hooks, cwd=folder / "client", stdout=log, stderr=log)


def raw(address: str, key: str, judge: Judge, count: int) -> None:
    """Bytes of any kind, from a few clients at once."""
    each = -(-count // CLIENTS)
    threads = [threading.Thread(target=fuzz_bytes, args=(address, key, judge, each, SEED + i)) for i in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _spent(server: Server, key: str) -> list[Any]:
    client = Plain(server.address, key)
    return [client.call("GET", f"/v1/{name}/budget").json()["spent"] for name in DATASETS]


def accounted_for(folder: Path, name: str, told: Told) -> str:
    """Open a ledger again: its total is the sum of its entries, of the audit log, and of what the clients were told."""
    settings = read_config(folder / f"{name}.toml")
    files = {"data": settings.data, "domain": settings.domain, "ledger": settings.ledger}
    with tacit.open(budget=settings.budget, **files, **settings.options) as session:
        spent, total = session.spent.atoms, session.total.atoms
        _, entries = session.transcript()
    settled = {entry.intent for entry in entries if entry.intent is not None}
    bought = sum(entry.atoms for entry in entries if entry.kind not in ("intent", "override"))
    gates = sum(entry.atoms for entry in entries if entry.kind == "intent" and entry.seq not in settled)
    assert bought + gates == spent <= total, "the ledger's total is not the sum of its own entries"
    logs = sorted(folder.glob(f"{name}.tacit.audit*"))
    records = [json.loads(line) for log in logs for line in log.read_text().splitlines()]
    costs = [
        (round(sum(record["cost"].values()) * ATOMS), "refused" in record) for record in records if "cost" in record
    ]
    cut = sum(atoms for atoms, refused in costs if refused)  # of requests that were refused half-way, and said so
    assert sum(atoms for atoms, _ in costs) + gates == spent, "the audit log does not have every charge"
    assert told.atoms[name] + cut + gates == spent, "something was charged that no answer told"
    assert sum(refused for _, refused in costs) <= told.unsure[name], "a refusal was charged and did not say so"
    return f"{name}: {spent:,} of {total:,} atoms spent, all in entries, audit log and answers; {cut:,} by cut requests"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("schemathesis", type=lambda path: str(Path(path).absolute()), help="the program's path")
    parser.add_argument("--requests", type=int, default=40_000, help="at least so many by schemathesis")
    parser.add_argument("--raw", type=int, default=10_000, help="and so many of raw bytes")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
