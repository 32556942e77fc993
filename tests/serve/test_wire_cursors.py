"""PREPARE, EXECUTE, cursors and binary COPY: what psycopg's named cursors and DuckDB's extension send."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from serving import Served

from support import PATIENCE

TABLE = "SELECT age, COUNT(*) FROM people GROUP BY age"
COUNT = "SELECT COUNT(*) FROM people WHERE sex = $1 AND age >= $2"


@pytest.fixture
def client(lasting: Served) -> Iterator[psycopg.Connection[Any]]:
    given = {"host": "127.0.0.1", "port": lasting.wire, "user": "ana", "dbname": "people", "connect_timeout": PATIENCE}
    with psycopg.connect(password=lasting.keys["ana"], autocommit=True, **given) as made:
        yield made


def spent(lasting: Served) -> Any:
    return lasting.ana.get("/v1/people/budget").json()["spent"]


def test_a_statement_is_prepared_and_executed_by_words(lasting: Served, client: psycopg.Connection[Any]) -> None:
    before = spent(lasting)
    client.execute(f"PREPARE Women (text, bigint) AS {COUNT}")
    assert spent(lasting) == before  # it is asked when it is executed
    (value,) = client.execute("EXECUTE women ('F', 20)").fetchone() or ()
    assert value == lasting.ask("SELECT COUNT(*) FROM data WHERE sex = 'F' AND age >= 20")["value"]
    assert client.execute("EXECUTE women (text 'F', '20'::bigint)", prepare=True).fetchone() == (value,)
    with pytest.raises(psycopg.errors.DuplicatePreparedStatement):
        client.execute(f"PREPARE women AS {TABLE}")
    for wrong in ("EXECUTE women ('F')", "EXECUTE women ('F', 1 + 1)", "EXECUTE women 'F'"):
        with pytest.raises(psycopg.Error):
            client.execute(wrong)
    client.execute("DEALLOCATE women")
    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        client.execute("EXECUTE women ('F', 20)")


@pytest.mark.parametrize("words", ["EXPLAIN SELECT 1", "BEGIN", "PREPARE b AS SELECT 1", "DELETE FROM people"])
def test_only_a_select_is_prepared(client: psycopg.Connection[Any], words: str) -> None:
    with pytest.raises(psycopg.Error):
        client.execute(f"PREPARE a AS {words}")


@pytest.mark.parametrize("binary", [False, True])
def test_a_named_cursor_of_psycopg_gives_rows_by_and_by(
    lasting: Served, client: psycopg.Connection[Any], binary: bool
) -> None:
    whole = client.execute(TABLE).fetchall()
    before = spent(lasting)
    with client.transaction(), client.cursor("mine", binary=binary) as cursor:
        cursor.execute(TABLE)
        assert [column.name for column in cursor.description or ()] == ["age", "count"]
        assert cursor.fetchone() == whole[0]
        assert cursor.fetchmany(4) == whole[1:5]
        assert cursor.fetchall() == whole[5:]
        assert cursor.fetchone() is None
    assert spent(lasting) == before  # the same question
    with client.transaction(), client.cursor("again") as cursor:
        cursor.itersize = 3
        cursor.execute("SELECT age, COUNT(*) FROM people WHERE sex = %s GROUP BY age", ["F"])
        expected = client.execute("SELECT age, COUNT(*) FROM people WHERE sex = 'F' GROUP BY age").fetchall()
        assert list(cursor) == expected


def test_cursors_live_as_long_as_their_transaction_unless_they_hold(client: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.errors.NoActiveSqlTransaction):
        client.execute(f"DECLARE a CURSOR FOR {TABLE}")
    client.execute("BEGIN")
    client.execute(f"DECLARE a NO SCROLL CURSOR FOR {TABLE}")
    client.execute(f"DECLARE b CURSOR WITH HOLD FOR {TABLE}")
    with pytest.raises(psycopg.errors.DuplicateCursor):
        client.execute(f"DECLARE a CURSOR FOR {TABLE}")
    assert client.execute("MOVE 2 IN b").statusmessage == "MOVE 2"
    client.execute("COMMIT")
    with pytest.raises(psycopg.errors.InvalidCursorName):
        client.execute("FETCH a")
    whole = client.execute(TABLE).fetchall()
    found = client.execute("FETCH FORWARD 3 FROM b")
    assert (found.statusmessage, found.fetchall()) == ("FETCH 3", whole[2:5])
    assert client.execute("FETCH NEXT FROM b").fetchall() == whole[5:6]
    assert client.execute("FETCH ALL FROM b").fetchall() == whole[6:]
    for wrong in ("FETCH BACKWARD 1 FROM b", "FETCH -1 FROM b", "FETCH 1.5 FROM b", "FETCH FROM", "DECLARE c CURSOR"):
        with pytest.raises(psycopg.Error):
            client.execute(wrong)
    client.execute("CLOSE b")
    with pytest.raises(psycopg.errors.InvalidCursorName):
        client.execute("CLOSE b")


def test_the_header_of_a_binary_copy_comes_with_its_first_row(client: psycopg.Connection[Any]) -> None:
    def copied(statement: str) -> list[bytes]:
        with client.cursor().copy(f'COPY ({statement}) TO STDOUT (FORMAT "binary")') as copy:
            return [bytes(block) for block in copy]

    first, *others = copied("SELECT sex, COUNT(*) FROM people GROUP BY sex")
    assert first.startswith(b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\0\2\0\0\0\1F")  # DuckDB's extension waits for it
    assert others[-1] == b"\xff\xff"
    (empty,) = copied("SELECT sex, COUNT(*) AS n FROM people GROUP BY sex HAVING n > 1e9")
    assert empty == b"PGCOPY\n\xff\r\n\0" + bytes(8) + b"\xff\xff"
