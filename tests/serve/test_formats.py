"""Answers as CSV, Arrow and Parquet over HTTP: the columns of Python's frames, read back by others' programs."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from serving import Served
from starlette.testclient import TestClient
from test_replica import GOLDEN, replicas

import tacit
from tacit.serve.formats import MEDIA
from tacit.serve.question import read
from tacit.show import streams
from tacit.show.frames import Frame, FrameColumn

ASK = "/v1/people/ask"
QUESTIONS: list[Any] = [
    {"count": {"smoker": True}},
    "SELECT age, region, COUNT(*) FROM data GROUP BY age, region",
    "SELECT region, COUNT(*) AS n, AVG(age) FROM data GROUP BY region",
    {"cdf": "joined"},
    {"quantile": "age", "q": 0.5},
    {"mean": "age"},
    {"table": ["age", "smoker"]},
]


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with replicas(1, GOLDEN / "iterative.jsonl") as (one,):
        yield one


@pytest.fixture(scope="module")
def session() -> tacit.Session:
    return tacit.read(GOLDEN / "iterative.jsonl")


def table_of(form: str, content: bytes) -> pa.Table:
    if form == "arrow":
        return pa.ipc.open_stream(content).read_all()
    return pq.read_table(io.BytesIO(content))


@pytest.mark.parametrize("form", ["arrow", "parquet"])
@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_the_columns_are_those_of_python(client: TestClient, session: tacit.Session, question: Any, form: str) -> None:
    local = session.answer(read(question, session.domain).ask)
    response = client.post(ASK, json={"question": question}, headers={"accept": MEDIA[form]})
    assert (response.status_code, response.headers["content-type"]) == (200, MEDIA[form])
    found = table_of(form, response.content)
    assert found.replace_schema_metadata().equals(local.to_arrow().replace_schema_metadata())
    said = json.loads(found.schema.metadata[b"tacit"])
    assert said["source"] == local.facts.source
    assert "rows" not in said
    asked = {"sql": question} if isinstance(question, str) else {"question": json.dumps(question)}
    link = client.get(ASK, params=asked, headers={"accept": MEDIA[form]})
    assert table_of(form, link.content).equals(found)
    assert link.headers["etag"].endswith(f'-{form}"')
    again = client.get(ASK, params=asked, headers={"accept": MEDIA[form], "if-none-match": link.headers["etag"]})
    assert again.status_code == 304


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_csv_is_read_by_pandas(client: TestClient, session: tacit.Session, question: Any) -> None:
    local = session.answer(read(question, session.domain).ask)
    response = client.post(ASK, json={"question": question}, headers={"accept": "text/csv"})
    assert response.text == local.frame().csv()
    found = pd.read_csv(io.StringIO(response.text), keep_default_na=False)
    assert list(found.columns) == list(local.to_pandas().columns)


def test_duckdb_reads_the_file_of_the_page(client: TestClient, session: tacit.Session, tmp_path: Path) -> None:
    sql = str(QUESTIONS[1])
    page = client.get("/data/people", params={"sql": sql})
    assert "/answer.parquet?" in page.text
    assert "/answer.arrow?" in page.text
    downloaded = client.get("/data/people/answer.parquet", params={"sql": sql})
    assert downloaded.headers["content-disposition"] == 'attachment; filename="people-answer.parquet"'
    (path := tmp_path / "answer.parquet").write_bytes(downloaded.content)
    found = duckdb.sql(f"SELECT SUM(value), COUNT(*) FROM '{path}'").fetchall()
    local = session.ask(sql).to_pandas()
    assert found == [(local["value"].sum(), len(local))]
    stream = client.get("/data/people/answer.arrow", params={"sql": sql})
    assert table_of("arrow", stream.content).equals(pq.read_table(path))


def test_a_batch_is_one_table_with_a_row_for_each(client: TestClient, session: tacit.Session) -> None:
    questions = [{"count": {"smoker": True, "region": region}} for region in ("north", "south", "east")]
    local = tacit.frame([session.answer(read(question, session.domain).ask) for question in questions])
    for form in ("arrow", "parquet"):
        response = client.post(f"{ASK}_many", json={"questions": questions}, headers={"accept": MEDIA[form]})
        assert table_of(form, response.content).replace_schema_metadata().equals(local.to_arrow())
    assert client.post(f"{ASK}_many", json={"questions": questions}, headers={"accept": "text/csv"}).text == local.csv()


@pytest.mark.parametrize(
    ("accept", "sent"),
    [
        ("", "json"),
        ("*/*", "json"),
        ("text/html,application/xhtml+xml,*/*;q=0.8", "json"),
        ("text/csv;q=0.5, application/json;q=0.4", "csv"),
        ("text/csv;q=0.4, application/json", "json"),
        ("TEXT/CSV; charset=utf-8", "csv"),
        ("application/vnd.apache.parquet;q=0, text/csv;q=0.1", "csv"),
        ("application/vnd.apache.arrow.stream, */*;q=0.1", "arrow"),
        (";;;,,/,*", "json"),
    ],
)
def test_the_client_gets_what_it_likes_best(client: TestClient, accept: str, sent: str) -> None:
    response = client.post(ASK, json={"question": QUESTIONS[0]}, headers={"accept": accept})
    assert response.headers["content-type"] == MEDIA[sent]  # type: ignore[index]


def test_without_pyarrow_it_is_refused_before_anything_is_spent(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    before = served.people.session.spent
    for form in ("arrow", "parquet"):
        response = served.ana.post(
            ASK, json={"question": "SELECT COUNT(*) FROM data WHERE sex = 'F'"}, headers={"accept": MEDIA[form]}
        )
        error = response.json()["error"]
        assert (response.status_code, error["code"], error["nothing_spent"]) == (406, "not_acceptable", True)
        assert "tacit-dp[arrow]" in error["message"]
    assert served.people.session.spent == before
    asked = served.ana.post(ASK, json={"question": {"count": {}}}, headers={"accept": "text/csv"})
    assert asked.text.startswith("question,value")


def test_long_tables_are_sent_in_parts() -> None:
    rows = 3 * streams.PART + 1
    places = np.arange(rows) % 3
    frame = Frame(
        (
            FrameColumn("label", "text", ["a", "b", None], places),
            FrameColumn("day", "day", [pd.Timestamp("2020-02-29").date(), None] * (rows // 2) + [None]),
            FrameColumn("number", "whole", np.arange(rows)),
            FrameColumn("true", "truth", [True, None] * (rows // 2) + [False]),
            FrameColumn("value", "real", [0.5, None] * (rows // 2) + [1.5]),
        )
    )
    whole = frame.to_arrow()
    for form, write in (("arrow", streams.to_arrow), ("parquet", streams.to_parquet)):
        parts = list(write(frame, {}))
        assert len(parts) >= 5
        assert max(map(len, parts)) < 1.2 * sum(map(len, parts)) / 3
        assert table_of(form, b"".join(parts)).replace_schema_metadata().equals(whole)
    parts = list(streams.to_csv(frame))
    assert len(parts) == 4
    assert b"".join(parts).decode() == frame.csv()
    empty = Frame((FrameColumn("label", "text", []), FrameColumn("value", "real", [])))
    assert b"".join(streams.to_csv(empty)) == b"label,value\n"
    assert table_of("arrow", b"".join(streams.to_arrow(empty, {}))).num_rows == 0
    assert table_of("parquet", b"".join(streams.to_parquet(empty, {}))).column_names == ["label", "value"]
