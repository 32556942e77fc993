"""The description of the HTTP API in OpenAPI 3.1: the table of endpoints, and the classes that their JSON is read into.

`GET /v1/openapi.json` gives it; `python -m tacit.serve.openapi` prints it.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import msgspec

from tacit.replies import ErrorReply
from tacit.serve.api import ENDPOINTS
from tacit.serve.endpoint import Endpoint
from tacit.serve.formats import MEDIA
from tacit.serve.forms import KINDS
from tacit.serve.schema import Text

Schema = dict[str, Any]

_REF = "#/components/schemas/{name}"
# Every status that an endpoint can refuse with.
_ERRORS = {
    400: "A bad host, parameter, body or question",
    401: "No key, or one that is unknown or revoked",
    403: "Not with this key: its role, its quota, or where the request comes from",
    404: "No such data set",
    406: "Arrow or Parquet, where pyarrow is not installed",
    408: "The body came too slowly",
    409: "The budget does not allow it, or the data are elsewhere",
    413: "The body is too large",
    415: "The body is not JSON",
    421: "Another host's name",
    422: "Not a question about the declared domain",
    429: "Too many requests",
    500: "Something went wrong inside",
    503: "Busy, closing, or the ledger cannot be used now",
}
_EVERYWHERE, _WITH_KEY, _WITH_BODY = (400, 421, 500), (401, 403, 429, 503), (400, 408, 413, 415, 429, 503)


@cache
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
            "description": "Unlimited questions about a sensitive table, one budget. See docs/reference/http.md.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "bearerFormat": "tacit_…"}},
            "responses": {
                f"Refused{status}": {"description": words, "content": _json(ErrorReply)}
                for status, words in sorted(_ERRORS.items())
            },
            "schemas": _schemas(),
        },
    }


def _schemas() -> dict[str, Schema]:
    named = [kind for endpoint in ENDPOINTS for kind in (endpoint.body, endpoint.result) if kind is not None]
    _, schemas = msgspec.json.schema_components([*named, *KINDS.values(), ErrorReply], ref_template=_REF)
    schemas["AnswerLine"]["properties"]["kind"]["enum"] = ["sql", *KINDS]
    sql = msgspec.json.schema(Text) | {"description": "SQL about the one table `data`."}
    forms = [{"$ref": _REF.format(name=kind.__name__)} for kind in KINDS.values()]
    return dict(sorted({**schemas, "Question": {"oneOf": [sql, *forms]}}.items()))


def _operation(endpoint: Endpoint) -> Schema:
    name, in_dataset = endpoint.answer.__name__, "{dataset}" in endpoint.path
    parameters: list[Schema] = [
        {
            "name": name,
            "in": "query",
            "schema": {"type": "integer", "minimum": low, "maximum": high, "default": default},
        }
        for name, (low, high, default) in endpoint.parameters.items()
    ]
    parameters += [
        {"name": name, "in": "query", "schema": {"type": "string"}, "description": words}
        for name, words in endpoint.texts.items()
    ]
    if in_dataset:
        parameters.insert(0, {"name": "dataset", "in": "path", "required": True, "schema": {"type": "string"}})
    statuses = {*_EVERYWHERE, *(_WITH_BODY if endpoint.body else ())}
    statuses |= {*_WITH_KEY} if endpoint.access != "anyone" else set()
    statuses |= {404} if in_dataset else set()
    statuses |= {406} if endpoint.framed else set()
    statuses |= {409, 422} if in_dataset and (endpoint.body or endpoint.one_of) else set()
    statuses |= {409} if endpoint.access == "owner" else set()
    statuses |= {401, 403} if name == "login" else {403} if name == "logout" else set()
    refusals = {str(status): {"$ref": f"#/components/responses/Refused{status}"} for status in sorted(statuses)}
    made: Schema = {
        "operationId": name,
        "summary": (endpoint.answer.__doc__ or "").strip().splitlines()[0],
        "responses": _good(endpoint) | refusals,
        "security": [] if endpoint.access == "anyone" else [{"key": []}],
        "x-role": endpoint.access,
    }
    if parameters:
        made["parameters"] = parameters
    if endpoint.body:
        made["requestBody"] = {"required": True, "content": _json(endpoint.body)}
    return made


def _good(endpoint: Endpoint) -> dict[str, Schema]:
    if endpoint.result is not None:
        same: dict[str, Schema] = {}
        if endpoint.one_of:
            same = {"304": {"description": "The client has it: If-None-Match"}}
        tables: Schema = {MEDIA[form].partition(";")[0]: {} for form in MEDIA if form != "json" and endpoint.framed}
        return {"200": {"description": "The answer", "content": _json(endpoint.result) | tables}} | same
    if endpoint.method == "GET":
        return {"200": {"description": "A file for tacit.read", "content": {"application/jsonl": {}}}}
    return {"204": {"description": "Done; the cookie is set or gone"}}


def _json(kind: type[msgspec.Struct]) -> Schema:
    return {"application/json": {"schema": {"$ref": _REF.format(name=kind.__name__)}}}


if __name__ == "__main__":
    print(json.dumps(document(), indent=1, ensure_ascii=False))
