"""The description of the HTTP API in OpenAPI 3.1, made from the table of endpoints; `python -m tacit.serve.openapi`.

The result is kept in openapi.json beside this file, which the server hands out and a test compares.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from tacit.serve.api import ENDPOINTS, Endpoint
from tacit.serve.keys import ROLES
from tacit.serve.limits import MAX_BATCH
from tacit.serve.question import KINDS, MAX_LISTED, MAX_NAMES
from tacit.serve.strict import MAX_TEXT

Schema = dict[str, Any]

_LOSS: Schema = {
    "description": "Privacy loss, in pure epsilon or in zCDP's rho.",
    "type": "object",
    "properties": {"epsilon": {"type": "number"}, "rho": {"type": "number"}},
    "minProperties": 1,
    "maxProperties": 1,
    "additionalProperties": False,
}
_FRACTION: Schema = {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
_NUMBER: Schema = {"type": "number"}
_TEXT: Schema = {"type": "string", "maxLength": MAX_TEXT}
_SCALAR: Schema = {"type": ["string", "number", "boolean"]}
_ERROR_BAR: Schema = {"type": ["number", "null"]}
_OWN_FIELD: dict[str, Schema] = {
    "count": {"$ref": "#/components/schemas/Where"},
    "fraction": {"$ref": "#/components/schemas/Where"},
    "range": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Pair"}},
    "table": {"type": "array", "items": _TEXT, "minItems": 1, "maxItems": MAX_NAMES},
}
_FIELD: dict[str, Schema] = {
    "where": {"$ref": "#/components/schemas/Where"},
    "given": {"$ref": "#/components/schemas/Where"},
    "share": _FRACTION | {"description": "Of the whole budget, for the release that the first such question buys."},
    "q": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "width": {"type": "number", "exclusiveMinimum": 0},
}
# Every status that an endpoint can refuse with.
_ERRORS = {
    400: "A bad host, parameter, body or question",
    401: "No key, or one that is unknown or revoked",
    403: "Not with this key: its role, its quota, or where the request comes from",
    404: "No such data set",
    408: "The body came too slowly",
    409: "The budget does not allow it",
    413: "The body is too large",
    415: "The body is not JSON",
    421: "Another host's name",
    422: "Not a question about the declared domain",
    429: "Too many requests",
    500: "Something went wrong inside",
    503: "Busy, closing, or the ledger cannot be used now",
}
_EVERYWHERE, _WITH_KEY, _WITH_BODY = (400, 421, 500), (401, 403, 429, 503), (400, 408, 413, 415, 429, 503)


def document() -> Schema:
    """The whole document."""
    paths: dict[str, Schema] = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tacit",
            "version": "1",
            "description": "Unlimited questions about a sensitive table under one privacy budget. See docs/SERVER.md.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "bearerFormat": "tacit_…"}},
            "responses": {f"Refused{status}": _bad(words) for status, words in sorted(_ERRORS.items())},
            "schemas": _schemas(),
        },
    }


def _operation(endpoint: Endpoint) -> Schema:
    name, in_dataset = endpoint.answer.__name__, "{dataset}" in endpoint.path
    parameters: list[Schema] = [
        {"name": name, "in": "query", "schema": {"type": "integer", "minimum": low, "maximum": high, "default": unless}}
        for name, (low, high, unless) in endpoint.parameters.items()
    ]
    if in_dataset:
        parameters.insert(0, {"name": "dataset", "in": "path", "required": True, "schema": {"type": "string"}})
    statuses = {*_EVERYWHERE, *(_WITH_BODY if endpoint.body else ())}
    statuses |= {*_WITH_KEY} if endpoint.access != "anyone" else set()
    statuses |= {404} if in_dataset else set()
    statuses |= {409, 422} if in_dataset and endpoint.body else set()
    statuses |= {401, 403} if name == "login" else {403} if name == "logout" else set()
    refusals = {str(status): {"$ref": f"#/components/responses/Refused{status}"} for status in sorted(statuses)}
    made: Schema = {
        "operationId": name,
        "summary": (endpoint.answer.__doc__ or "").strip().splitlines()[0],
        "responses": _good(name) | refusals,
        "security": [] if endpoint.access == "anyone" else [{"key": []}],
        "x-role": endpoint.access,
    }
    if parameters:
        made["parameters"] = parameters
    if endpoint.body:
        made["requestBody"] = {"required": True, "content": _json({"$ref": f"#/components/schemas/{_BODY[name]}"})}
    return made


_BODY = {"login": "Login", "ask": "Ask", "ask_many": "AskMany", "cost": "Ask"}


def _good(name: str) -> dict[str, Schema]:
    if name in ("login", "logout"):
        return {"204": {"description": "Done; the cookie is set or gone"}}
    if name == "published":
        return {"200": {"description": "A file for tacit.read", "content": {"application/jsonl": {}}}}
    return {"200": {"description": "The answer", "content": _json({"$ref": f"#/components/schemas/{_RESULT[name]}"})}}


_RESULT = {
    "health": "Health",
    "openapi": "Document",
    "whoami": "Whoami",
    "datasets": "Datasets",
    "keys": "Keys",
    "ask": "Asked",
    "ask_many": "AskedMany",
    "cost": "Cost",
    "domain": "Domain",
    "budget": "Budget",
    "history": "History",
    "audit": "Audit",
}


def _bad(description: str) -> Schema:
    return {"description": description, "content": _json({"$ref": "#/components/schemas/Error"})}


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


def _closed(optional: Mapping[str, Schema] = MappingProxyType({}), /, **required: Schema) -> Schema:
    """An object with these fields and no others."""
    return {
        "type": "object",
        "properties": required | dict(optional),
        "required": list(required),
        "additionalProperties": False,
    }


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _schemas() -> dict[str, Schema]:
    text: Schema = {"type": "string"}
    whole: Schema = {"type": "integer", "minimum": 0}
    facts = {"confidence": _NUMBER, "source": {"enum": ["measured", "repeat", "hypothesis", "public"]}, "cost": _LOSS}
    told: Schema = {
        "type": "object",
        "description": "With probability `confidence` the truth is within `error` of the value; null: no guarantee.",
        "properties": {
            "kind": {"enum": ["sql", *KINDS]},
            "question": text,
            "value": {"type": ["number", "string"]},
            "columns": _list(text),
            "rows": _list({"type": "array"}),
            "error": _ERROR_BAR,
            "interval": {"type": "array", "minItems": 2, "maxItems": 2},
            "entry": whole | {"description": "Where the answer stands in the ledger."},
            "seal": text | {"description": "The hash that seals that entry and all before it."},
            "note": text,
            **facts,
        },
        "required": ["kind", "question", *facts],
    }
    error = _closed(code=text, message=text, nothing_spent={"type": "boolean"})
    past = _closed(question=text, cost=_LOSS, entry=whole, seal=text)
    quota = _closed(share=_FRACTION, used=_LOSS, of=_LOSS, note=text)
    attribute = _closed(name=text, kind=text, ordered={"type": "boolean"}, size=whole, labels=_list(text), takes=text)
    key = _closed(name=text, role={"enum": list(ROLES)}, quota={"type": ["number", "null"]}, created=text)
    key["properties"]["revoked"] = {"type": ["string", "null"]}
    return {
        "Pair": {"type": "array", "items": _SCALAR, "minItems": 2, "maxItems": 2},
        "Condition": {
            "description": "Equal to a value, missing (null), between [low, high], or any of {in: [...]}.",
            "oneOf": [
                {"type": ["string", "number", "boolean", "null"]},
                _ref("Pair"),
                _closed(
                    **{
                        "in": {
                            "type": "array",
                            "items": {"type": ["string", "number", "boolean", "null"]},
                            "minItems": 1,
                            "maxItems": MAX_LISTED,
                        }
                    }
                ),
            ],
        },
        "Where": {"type": "object", "additionalProperties": _ref("Condition")},
        "Question": {
            "oneOf": [
                _TEXT | {"description": "SQL about the one table `data`.", "examples": ["SELECT COUNT(*) FROM data"]},
                *(_question(kind, more) for kind, more in KINDS.items()),
            ]
        },
        "Ask": _closed(question=_ref("Question")),
        "AskMany": _closed(questions={**_list(_ref("Question")), "minItems": 1, "maxItems": MAX_BATCH}),
        "Login": _closed(key=_TEXT),
        "Answer": told,
        "Asked": _closed(answer=_ref("Answer")),
        "AskedMany": _closed(answers=_list(_ref("Answer"))),
        "Cost": _closed(known={"type": "boolean"}, cost_at_most=_LOSS, why=text),
        "Domain": _closed(rows=whole, cells=whole, attributes=_list(attribute), confidence=_NUMBER, mechanism=text),
        "Budget": _closed(
            budget=_closed(epsilon=_NUMBER, delta=_NUMBER),
            total=_LOSS,
            spent=_LOSS,
            left=_LOSS,
            epsilon_spent=_NUMBER,
            quota={"oneOf": [{"type": "null"}, quota]},
        ),
        "History": _closed(history=_list(past), next={"type": ["integer", "null"]}),
        "Audit": _closed(audit=_list({"type": "object", "required": ["time", "who", "role"]})),
        "Keys": _closed(keys=_list(key)),
        "Whoami": _closed(name=text, role={"enum": list(ROLES)}),
        "Datasets": _closed(datasets=_list(text)),
        "Health": _closed(status={"const": "ok"}),
        "Document": {"type": "object", "required": ["openapi", "paths"]},
        "Error": _closed(error=error),
    }


def _question(kind: str, more: tuple[str, ...]) -> Schema:
    required = {kind: _OWN_FIELD.get(kind, _TEXT)} | ({"q": _FIELD["q"]} if "q" in more else {})
    return _closed({name: _FIELD[name] for name in more if name != "q"}, **required)


if __name__ == "__main__":
    print(json.dumps(document(), indent=1, ensure_ascii=False))
