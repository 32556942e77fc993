"""Requests made from the API's own description, some as it says and some not; and bytes that are no requests at all.

Each client's requests follow from a seed. What comes back is judged by the same description.
"""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from benchmarks.serving.wire import Gone, Plain, Response, request
from jsonschema import Draft202012Validator

from tacit.serve.openapi import document

DOCUMENT = document()
SCHEMAS = DOCUMENT["components"]["schemas"]
OPERATIONS = [(m.upper(), path, what) for path, methods in DOCUMENT["paths"].items() for m, what in methods.items()]
CONDITION = SCHEMAS["CountBody"]["properties"]["count"]["anyOf"][0]["description"]
ASKING = [operation for operation in OPERATIONS if operation[1].endswith(("/ask", "/ask_many", "/cost"))]
SIZES = {"sex": 2, "age": 10, "active": 2, "pay": 3}
NAMES = ["sex", "age", "active", "pay", "Sex", "data", "height", ""]
SCALARS: list[Any] = [
    "F", "M", "X", True, False, 0, 9, 10, 19, 20, 29, 39, 50, 99, 100, -1, 0.5, 1e308, 2**70, "é\u0000", "😀", "'; --",
]  # fmt: skip
CONDITIONS = [
    "sex = 'F'", "age BETWEEN 20 AND 39", "age >= 30", "age < 25", "pay IS NULL", "NOT active", "pay >= 10", "1 = 1",
    "sex IN ('F', 'M')", "age = 'x'", "height > 3", "sex = 'F' OR age < 20", "((((active))))", "name LIKE '%'",
]  # fmt: skip
PIECES = [
    "SELECT", "COUNT(*)", "FROM", "data", "WHERE", "GROUP BY", "sex", "AVG(age)", "SUM(pay)", "MEDIAN(age)", ",", "(",
    ")", "*", "UNION", "--", ";", "JOIN", "HAVING", "LIMIT 3", "ORDER BY 1", "''", '"', "NULL", "1e999", "\\", "WITH",
]  # fmt: skip
JUNK: list[Any] = [None, [], {}, [[]], "", "x" * 300, {"in": []}, [1, 2, 3], {"count": {}}, -0.0, 10**30, [None, 1]]
TYPES = ["application/json", "application/json; charset=utf-8", "text/plain", "application/json; charset=latin-1", "x"]


class Maker:
    """Requests from a seed: (method, path, key's name or None, body's bytes or None, further header lines)."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def requests(self) -> Iterator[tuple[str, str, str | None, bytes | None, str]]:
        rng = self.rng
        while True:
            method, path, what = rng.choice(ASKING if rng.random() < 0.8 else OPERATIONS)
            path = path.replace("{dataset}", "people" if rng.random() < 0.97 else rng.choice(["", "..", "%00", "é"]))
            path += self._parameters(what)
            if rng.random() < 0.03:
                method = rng.choice(["GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "HEAD", "TRACE"])
            who = rng.choices(["ana", "rea", "mia", "olga", None, "wrong"], [60, 20, 10, 5, 3, 2])[0]
            body = self._body(what) if "requestBody" in what else None if rng.random() < 0.9 else b"{}"
            more = f"Content-Type: {rng.choice(TYPES)}\r\n" if rng.random() < 0.02 else ""
            yield method, path.encode("ascii", "ignore").decode().replace(" ", "+"), who, body, more

    def raw(self, key: str) -> bytes:
        """Bytes that begin like a request, or like nothing."""
        rng = self.rng
        method, path, _, body, _ = next(self.requests())
        sent = bytearray(request(method, path, key, body))
        match rng.randrange(6):
            case 0:
                return rng.randbytes(rng.randrange(1, 400))
            case 1:
                return bytes(sent[: rng.randrange(1, len(sent) + 1)])
            case 2:
                return bytes(sent) * rng.randrange(2, 4)
            case 3:
                lengths = [b"-1", b"0x10", b"1" * 30, b"5, 6", b"", b"\xff"]
                return bytes(sent).replace(b"Content-Length: ", b"Content-Length: " + rng.choice(lengths))
            case 4:
                return bytes(sent).replace(b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 1)
            case _:
                return self.mangled(sent)

    def mangled(self, text: bytes | bytearray) -> bytes:
        rng, made = self.rng, bytearray(text)
        for _ in range(rng.randrange(1, 6)):
            place = rng.randrange(len(made) + 1)
            match rng.randrange(3):
                case 0:
                    made[place:place] = rng.randbytes(rng.randrange(1, 4))
                case 1:
                    del made[place : place + rng.randrange(1, 9)]
                case _:
                    made[place : place + 1] = rng.choice([b'"', b"{", b"]", b"\\", b"\xff", b"\x00", b"9" * 40, b"NaN"])
        return bytes(made)

    def _parameters(self, what: dict[str, Any]) -> str:
        rng = self.rng
        if rng.random() < 0.5:
            return ""
        named = [p["name"] for p in what.get("parameters", []) if p["in"] == "query"]
        if named and rng.random() < 0.8:
            return "?" + "&".join(f"{name}={rng.choice(['0', '1', '7', '1000', '-1', 'x', ''])}" for name in named)
        return rng.choice(["?x=1", "?", "?limit=1&limit=2", "?%ff"]) if rng.random() < 0.1 else ""

    def _body(self, what: dict[str, Any]) -> bytes:
        rng = self.rng
        value = self.made(what["requestBody"]["content"]["application/json"]["schema"])
        if rng.random() < 0.2:
            value = self._wrong(value)
        text = json.dumps(value, ensure_ascii=rng.random() < 0.5, allow_nan=True).encode("utf-8", "replace")
        return self.mangled(text) if rng.random() < 0.1 else text

    def made(self, schema: dict[str, Any]) -> Any:
        """A value that the schema describes."""
        rng = self.rng
        if "$ref" in schema:
            return self.made(SCHEMAS[schema["$ref"].rsplit("/", 1)[1]])
        for several in ("oneOf", "anyOf"):
            if several in schema:
                return self.made(rng.choice(schema[several]))
        kind = schema.get("type")
        if kind == "object":
            if schema.get("title") == "FactorForm" and rng.random() < 0.8:
                return self._weights()
            if schema.get("description") == CONDITION:
                return {rng.choice(NAMES[:4]): self._condition() for _ in range(rng.randrange(3))}
            fields = schema.get("properties", {})
            needed = schema.get("required", [])
            made = {name: self.made(of) for name, of in fields.items() if name in needed or rng.random() < 0.4}
            if isinstance(schema.get("additionalProperties"), dict):
                many = rng.randrange(schema.get("minProperties", 0), 3)
                made |= {rng.choice(NAMES[:4]): self.made(schema["additionalProperties"]) for _ in range(many)}
            return made
        if kind == "array":
            return [self.made(schema["items"]) for _ in range(rng.randint(schema.get("minItems", 0), 4))]
        if kind in ("number", "integer"):
            small = "maximum" in schema or "exclusiveMaximum" in schema
            return 10 ** rng.uniform(-9, -4) if small else rng.choice([1, 2, 10, 20, 0.5, 1e-9, 1e12])
        if kind == "string":
            return rng.choice(NAMES) if schema.get("maxLength") and rng.random() < 0.6 else self._sql()
        return rng.choice([True, False]) if kind == "boolean" else None

    def _weights(self) -> dict[str, Any]:
        """Weights over the values of an attribute, as bits or as steps of a grid."""
        name, size = self.rng.choice(list(SIZES.items()))
        if self.rng.random() < 0.3:
            unit, weights = 2**20, [self.rng.randrange(2**20 + 1) for _ in range(size)]
        else:
            length = -(-size // 8)
            unit, weights = 1, (self.rng.getrandbits(size) << 8 * length - size).to_bytes(length).hex()
        return {"scope": [name], "shape": [size], "unit": unit, "weights": weights}

    def _condition(self) -> Any:
        rng = self.rng
        match rng.randrange(5):
            case 0:
                return sorted(rng.sample([0, 10, 20, 30, 50], 2))
            case 1:
                low, high = sorted(rng.sample(range(0, 101, 10), 2))
                return [low, high - 1]
            case 2:
                return {"in": rng.sample(["F", "M", True, False, 20, None], rng.randrange(1, 4))}
            case 3:
                return rng.choice(["F", "M", True, False, None])
            case _:
                return rng.choice(SCALARS)

    def _sql(self) -> str:
        rng = self.rng
        if rng.random() < 0.3:
            return " ".join(rng.choices(PIECES, k=rng.randrange(1, 12)))
        what = rng.choice(["COUNT(*)", "COUNT(*)", "AVG(age)", "SUM(age)", "sex, COUNT(*)", "age, sex, COUNT(*)"])
        where = f" WHERE {rng.choice(CONDITIONS)}{rng.choice(['', ' AND ' + rng.choice(CONDITIONS)])}"
        group = f" GROUP BY {what.rsplit(',', 1)[0]}" if "," in what else ""
        return f"SELECT {what} FROM data{where if rng.random() < 0.8 else ''}{group}"

    def _wrong(self, value: Any) -> Any:
        """The value with one of its parts replaced, left out or put in."""
        rng = self.rng
        if isinstance(value, dict) and value and rng.random() < 0.8:
            name = rng.choice(list(value))
            match rng.randrange(4):
                case 0:
                    return {**value, rng.choice(NAMES): rng.choice(JUNK)}
                case 1:
                    return {k: v for k, v in value.items() if k != name}
                case _:
                    return {**value, name: self._wrong(value[name])}
        if isinstance(value, list) and value and rng.random() < 0.8:
            return [self._wrong(value[0]), *value[1:]]
        return rng.choice([*JUNK, *SCALARS])


@dataclass
class Judge:
    """Counts what came back, adds up what it says was charged, and notes what should not be."""

    statuses: Counter[int] = field(default_factory=Counter)
    charged: int = 0  # atoms
    unsure: int = 0  # refusals that say themselves that something may have been spent before them
    wrong: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    _validators: dict[str, Draft202012Validator] = field(default_factory=dict)

    def see(self, method: str, path: str, sent: bytes | None, response: Response) -> None:
        path = path.partition("?")[0]
        problems = list(self._problems(method, path, response))
        with self.lock:
            self.statuses[response.status] += 1
            self.wrong += [f"{method} {path} {sent!r}: {response.status} {p} {response.body[:300]!r}" for p in problems]
            if response.status == 200 and path.endswith(("/ask", "/ask_many")) and method == "POST":
                got = response.json()
                for answer in got.get("answers") or [got["answer"]]:
                    self.charged += round(sum(answer["cost"].values()) * 10**12)
            self.unsure += response.status in (403, 409) and b'"nothing_spent": false' in response.body

    def _problems(self, method: str, path: str, response: Response) -> Iterator[str]:
        if response.status >= 500:
            yield "is an error inside"
        operation = DOCUMENT["paths"].get(path.replace("/people/", "/{dataset}/"), {})
        operation = operation.get("get" if method == "HEAD" else method.lower())
        if operation is None:
            if response.status < 400:
                yield "where there is nothing"
            return
        described = operation["responses"].get(str(response.status))
        if described is None:
            yield "is not described"
            return
        if "$ref" in described:
            described = DOCUMENT["components"]["responses"][described["$ref"].rsplit("/", 1)[1]]
        content = described.get("content", {}).get("application/json")
        if content and method != "HEAD" and not self._validator(content["schema"]["$ref"]).is_valid(response.json()):
            yield "is not as described"

    def _validator(self, reference: str) -> Draft202012Validator:
        if reference not in self._validators:
            schema = {"$ref": reference, "components": DOCUMENT["components"]}
            self._validators[reference] = Draft202012Validator(schema)
        return self._validators[reference]


def fuzz(address: str, keys: dict[str, str], judge: Judge, count: int, seed: int) -> None:
    """Send requests by the description."""
    clients = {name: Plain(address, key) for name, key in keys.items()} | {"wrong": Plain(address, "tacit_wrong")}
    made = Maker(seed).requests()
    for _ in range(count):
        method, path, who, body, more = next(made)
        client = clients[who] if who else Plain(address)
        try:
            judge.see(method, path, body, _called(client, method, path, body, more))
        except Gone:
            judge.wrong.append(f"{method} {path} {body!r}: no answer")
        if not who:
            client.close()
    for client in clients.values():
        client.close()


def _called(client: Plain, method: str, path: str, body: Any, more: str) -> Response:
    """The answer. A connection that waited for some seconds may be closed: a new one must have an answer."""
    try:
        return client.call(method, path, body, more)
    except Gone:
        return client.call(method, path, body, more)


def fuzz_bytes(address: str, key: str, judge: Judge, count: int, seed: int) -> None:
    """Send bytes of any kind, with a key that cannot spend, and look only for errors inside."""
    maker = Maker(seed)
    for _ in range(count):
        send_bytes(address, maker.raw(key), judge)


def send_bytes(address: str, sent: bytes, judge: Judge) -> None:
    client = Plain(address, timeout=0.02)  # half a request is never answered
    try:
        status = client.raw(sent).status
    except (Gone, ValueError, IndexError):  # closed, silent, or an answer to something that is not HTTP
        status = 0
    with judge.lock:
        judge.statuses[status] += 1
        if status >= 500:
            judge.wrong.append(f"{status} for the bytes {sent!r}")
    client.close()
