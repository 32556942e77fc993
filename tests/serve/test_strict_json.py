"""What is not plain JSON about a question is refused with a 4xx that says what is allowed, and charges nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from serving import Serve, Served

from support import PATIENCE
from tacit.serve import schema
from tacit.serve.admission import MAX_BODY, Limits
from tacit.serve.refusal import Refusal

WOMEN = b'{"question": "SELECT COUNT(*) FROM data WHERE sex = \'F\'"}'
BAD: list[tuple[str, bytes, int, str]] = [
    ("empty", b"", 400, "bad_json"),
    ("not JSON", b"{'question': 1}", 400, "bad_json"),
    ("cut short", b'{"question": ', 400, "bad_json"),
    ("two values", b'{"question": "x"} {}', 400, "bad_json"),
    ("NaN", b'{"question": {"count": {"age": NaN}}}', 400, "bad_json"),
    ("Infinity", b'{"question": {"count": {"age": [0, Infinity]}}}', 400, "bad_json"),
    ("minus Infinity", b'{"question": {"count": {"age": -Infinity}}}', 400, "bad_json"),
    ("too large a number", b'{"question": {"count": {"age": 1e999}}}', 400, "bad_json"),
    ("more than 64 bits", b'{"question": {"count": {"age": 9223372036854775808}}}', 400, "bad_json"),
    ("too many digits", b'{"question": {"count": {"age": ' + b"9" * 5000 + b"}}}", 400, "bad_json"),
    ("a key twice", b'{"question": {"count": {"sex": "F", "sex": "M"}}}', 400, "bad_json"),
    ("a key twice at the top", b'{"question": "x", "question": "y"}', 400, "bad_json"),
    ("bad UTF-8", b'{"question": "\xff\xfe"}', 400, "bad_json"),
    ("a byte order mark", b"\xef\xbb\xbf" + WOMEN, 400, "bad_json"),
    ("UTF-16", WOMEN.decode().encode("utf-16"), 400, "bad_json"),
    ("half a surrogate pair", b'{"question": "\\ud800"}', 400, "bad_json"),
    ("deep", b'{"question": ' + b"[" * 12 + b"]" * 12 + b"}", 400, "bad_json"),
    ("abysmal", b"[" * 200_000, 400, "bad_json"),
    ("abysmal objects", b'{"a":' * 100_000, 400, "bad_json"),
    ("a huge array", b'{"questions": [' + b"1," * 60_000 + b"1]}", 400, "bad_json"),
    ("a long text", b'{"question": "' + b"x" * 20_000 + b'"}', 400, "bad_json"),
    ("not an object", b'"SELECT COUNT(*) FROM data"', 400, "bad_json"),
    ("null", b"null", 400, "bad_json"),
    ("an unknown field", b'{"question": "x", "epsilon": 1}', 400, "unknown_field"),
    ("a number", b'{"question": 3}', 400, "bad_question"),
    ("no kind", b'{"question": {}}', 400, "bad_question"),
    ("another kind", b'{"question": {"drop": "data"}}', 400, "bad_question"),
    ("two kinds", b'{"question": {"count": {}, "cdf": "age"}}', 400, "unknown_field"),
    ("a field of another kind", b'{"question": {"count": {}, "q": 0.5}}', 400, "unknown_field"),
    ("count of a list", b'{"question": {"count": ["F"]}}', 400, "bad_question"),
    ("three ends", b'{"question": {"count": {"age": [1, 2, 3]}}}', 400, "bad_question"),
    ("an end that is a list", b'{"question": {"count": {"age": [[1], 2]}}}', 400, "bad_question"),
    ("in of nothing", b'{"question": {"count": {"sex": {"in": []}}}}', 400, "bad_question"),
    ("in of lists", b'{"question": {"count": {"sex": {"in": [["F"]]}}}}', 400, "bad_question"),
    ("an unknown condition", b'{"question": {"count": {"sex": {"not": "F"}}}}', 400, "unknown_field"),
    ("table of nothing", b'{"question": {"table": []}}', 400, "bad_question"),
    ("table of numbers", b'{"question": {"table": [1]}}', 400, "bad_question"),
    ("cdf of a list", b'{"question": {"cdf": ["age"]}}', 400, "bad_question"),
    ("quantile without q", b'{"question": {"quantile": "age"}}', 400, "bad_question"),
    ("q is true", b'{"question": {"quantile": "age", "q": true}}', 400, "bad_question"),
    ("share is text", b'{"question": {"cdf": "age", "share": "all"}}', 400, "bad_question"),
    ("range without ends", b'{"question": {"range": {"age": 20}}}', 400, "bad_question"),
    ("range of nothing", b'{"question": {"range": {}}}', 400, "bad_question"),
    ("range of three", b'{"question": {"range": {"age": [0, 9], "b": [0, 1], "c": [0, 1]}}}', 400, "bad_question"),
    ("width of nothing", b'{"question": {"histogram": "age", "width": 0}}', 422, "invalid_query"),
    ("q out of range", b'{"question": {"quantile": "age", "q": 2}}', 422, "invalid_query"),
    ("share out of range", b'{"question": {"cdf": "age", "share": 2}}', 422, "invalid_query"),
    ("no such column", b'{"question": {"count": {"height": 1}}}', 422, "invalid_query"),
    ("no such value", b'{"question": {"count": {"sex": "X"}}}', 422, "invalid_query"),
    ("a cut bin", b'{"question": {"count": {"age": [21, 39]}}}', 422, "invalid_query"),
    ("not SQL", b'{"question": "hello"}', 422, "invalid_query"),
    ("another table", b'{"question": "SELECT COUNT(*) FROM ledger"}', 422, "invalid_query"),
    ("a NUL", b'{"question": "SELECT COUNT(*) FROM data WHERE sex = \'\\u0000\'"}', 422, "invalid_query"),
]  # fmt: skip


def test_every_bad_body_is_refused_and_nothing_is_charged(served: Served) -> None:
    for what, body, status, code in BAD:
        response = served.ana.post("/v1/people/ask", content=body, headers={"content-type": "application/json"})
        error = response.json()["error"]
        assert (response.status_code, error["code"], error["nothing_spent"]) == (status, code, True), (what, error)
        priced = served.ana.post("/v1/people/cost", content=body, headers={"content-type": "application/json"})
        assert priced.json() == response.json(), what
        assert len(error["message"]) < 500, what
    good = served.ana.post("/v1/people/cost", content=WOMEN, headers={"content-type": "application/json"})
    assert good.status_code == 200  # the control: the same way in, a good body
    assert served.people.session.spent.atoms == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "application/json", "content-encoding": "gzip"},
        {},
    ],
    ids=str,
)
def test_the_content_type_is_json(served: Served, headers: dict[str, str]) -> None:
    response = served.ana.post("/v1/people/ask", content=WOMEN, headers=headers)
    assert (response.status_code, response.json()["error"]["code"]) == (415, "wrong_content_type")
    accepted = {"content-type": "application/json; charset=utf-8"}
    assert served.ana.post("/v1/people/cost", content=WOMEN, headers=accepted).status_code == 200


def test_the_body_is_measured_as_it_comes(served: Served) -> None:
    kind = {"content-type": "application/json"}
    announced = served.ana.post("/v1/people/ask", content=b" " * (MAX_BODY + 1), headers=kind)
    assert (announced.status_code, announced.json()["error"]["code"]) == (413, "body_too_large")

    def endless() -> Iterator[bytes]:
        for _ in range(MAX_BODY // 1024 + 2):
            yield b" " * 1024

    streamed = served.ana.post("/v1/people/ask", content=endless(), headers=kind)  # no Content-Length
    assert (streamed.status_code, streamed.json()["error"]["code"]) == (413, "body_too_large")
    lying = served.ana.post("/v1/people/ask", content=WOMEN, headers=kind | {"content-length": "-5"})
    assert lying.status_code == 413
    fits = WOMEN + b" " * (MAX_BODY - len(WOMEN))
    assert served.ana.post("/v1/people/cost", content=fits, headers=kind).status_code == 200


def raw(served: Served, messages: list[dict[str, Any] | None]) -> list[dict[str, Any]]:
    """What the application sends for a request whose body comes like this; None: it does not come at all."""
    headers = {"host": "127.0.0.1", "authorization": f"Bearer {served.keys['ana']}", "content-type": "application/json"}
    scope = {
        "type": "http", "method": "POST", "path": "/v1/people/ask", "query_string": b"", "http_version": "1.1",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }  # fmt: skip
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        message = messages.pop(0) if messages else None
        if message is None:
            await asyncio.Event().wait()  # for ever
        assert message is not None
        return message

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(served.nobody.app(scope, receive, send))
    return sent


def test_a_body_that_does_not_come(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    served = serve(limits=Limits(body_seconds=0.05))
    half = {"type": "http.request", "body": WOMEN[:20], "more_body": True}
    sent = raw(served, [half, None])
    assert sent[0]["status"] == 408
    assert b"slow_body" in sent[1]["body"]
    served.state.limits = Limits(body_seconds=PATIENCE)
    assert raw(served, [half, {"type": "http.disconnect"}]) == []  # nobody is left to be told
    assert not caplog.records
    assert raw(served, [half, {"type": "http.request", "body": WOMEN[20:]}])[0]["status"] == 200
    assert served.people.session.spent.atoms > 0  # the control: whole, it is asked


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a": [1, 2.5, true, null, "\xc3\xa9"]}', {"a": [1, 2.5, True, None, "é"]}),
        (b'"\\ud83d\\ude00"', "😀"),
        (b"-0.0", -0.0),
        (b"[[[[[[[[1]]]]]]]]", [[[[[[[[1]]]]]]]]),
    ],
)
def test_plain_json_is_read(text: bytes, value: Any) -> None:
    assert schema.parse(text) == value


def test_one_level_too_many() -> None:
    with pytest.raises(Refusal, match="at most 8 levels"):
        schema.parse(b"[" * 9 + b"1" + b"]" * 9)
