"""PostgreSQL's protocol with a real client, psycopg: the same answers, charges and refusals as over HTTP."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import psycopg
import pytest
from serving import Serve, Served

from support import PATIENCE
from tacit.serve.postgres.command import MAX_SETTINGS, ConnectionSettings
from tacit.serve.postgres.sqlstate import WireError
from tacit.serve.question import read

Connect = Callable[..., psycopg.Connection[Any]]
COUNT = "SELECT COUNT(*) FROM data WHERE sex = 'F' AND age BETWEEN 20 AND 39"


@pytest.fixture
def connect(lasting: Served) -> Iterator[Connect]:
    opened: list[psycopg.Connection[Any]] = []

    def start(who: str = "ana", password: str | None = None, dbname: str = "people", **more: Any) -> Any:
        given = {"host": "127.0.0.1", "port": lasting.wire, "user": who, "dbname": dbname, "connect_timeout": PATIENCE}
        made = psycopg.connect(password=password or lasting.keys.get(who, "none"), autocommit=True, **given, **more)
        made.notices = []  # type: ignore[attr-defined]
        made.add_notice_handler(lambda one: made.notices.append(one.message_primary))  # type: ignore[attr-defined]
        opened.append(made)
        return made

    yield start
    for made in opened:
        made.close()


def test_a_table_has_just_the_columns_that_were_asked_for(lasting: Served, connect: Connect) -> None:
    cursor = connect().execute("SELECT sex, COUNT(*) FROM data GROUP BY sex")
    assert [column.name for column in cursor.description or ()] == ["sex", "count"]
    over_http = lasting.ask("SELECT sex, COUNT(*) FROM data GROUP BY sex")
    assert cursor.fetchall() == [tuple(row) for row in over_http["rows"]]
    assert set(over_http["cost"].values()) == {0.0}


SAME = [
    COUNT,
    "SELECT COUNT(*) AS n FROM data WHERE active",
    "SELECT AVG(pay) FROM data WHERE sex = 'F'",
    "SELECT SUM(pay), COUNT(*), sex FROM data GROUP BY sex ORDER BY sex DESC",
    "SELECT active, sex, COUNT(*) FROM data GROUP BY active, sex",
    "SELECT MEDIAN(age) FROM data",
    "SELECT FLOOR(age / 20) * 20 AS twenties, COUNT(*) FROM data GROUP BY twenties LIMIT 3",
    "SELECT SUM(CASE WHEN sex = 'F' THEN pay ELSE 0 END) AS women FROM data",
    "SELECT IF(age < 20, 'young', 'old') AS band, COUNT(*) FROM data GROUP BY band HAVING band <> 'young'",
    "SELECT DISTINCT age FROM data",
    "SELECT sex, COUNT(*) AS n, ERROR(n), LOW(n), HIGH(n), CONFIDENCE() FROM data GROUP BY sex",
    "SELECT COUNT(*) FILTER (WHERE active) / COUNT(*) AS share, sex FROM data GROUP BY sex HAVING COUNT(*) > 10",
    "WITH t AS (SELECT sex, active, COUNT(*) AS n FROM data GROUP BY 1, 2) SELECT MAX(n), sex FROM t GROUP BY sex",
    "SELECT * FROM (SELECT sex, COUNT(*) AS n FROM data GROUP BY sex) AS t ORDER BY n LIMIT 1",
    "SELECT CASE WHEN COUNT(*) > 10 THEN 'many' ELSE 'few' END AS size, COUNT(*), sex FROM data GROUP BY sex",
]


@pytest.mark.parametrize("statement", SAME)
def test_an_answer_is_that_of_http_field_by_field(lasting: Served, connect: Connect, statement: str) -> None:
    client = connect()
    rows = client.execute(statement).fetchall()
    spent = lasting.ana.get("/v1/people/budget").json()["spent"]
    other = lasting.ask(statement)
    listed = [list(row) for row in other["rows"]] if "rows" in other else [[other["value"]]]
    if statement.startswith(("SELECT SUM(pay)", "SELECT COUNT(*) FILTER", "WITH")):  # HTTP lists groups first
        listed = [[*row[1:], row[0]] for row in listed]
    if statement.startswith("SELECT CASE"):
        listed = [[row[0], row[2], row[1]] for row in listed]
    if statement.startswith("SELECT active"):
        listed = [[row[0] == "true", *row[1:]] for row in listed]
    assert [list(row) for row in rows] == listed
    assert lasting.ana.get("/v1/people/budget").json()["spent"] == spent
    kept = lasting.people.audit.last(2)
    assert [line["who"] for line in kept] == ["ana", "ana"]
    assert kept[0]["question"] == kept[1]["question"]


def test_a_notice_tells_source_and_cost(connect: Connect) -> None:
    client, statement = connect(), f"{COUNT} AND active"
    client.execute(statement)
    client.execute(statement)
    first, second = client.notices  # type: ignore[attr-defined]
    assert "measured" in first
    assert "% of the budget" in first
    assert "repeat, free" in second
    client.execute("SET client_min_messages = warning")
    client.execute(statement)
    assert len(client.notices) == 2  # type: ignore[attr-defined]


def test_a_reader_gets_what_is_known_and_buys_nothing(lasting: Served, connect: Connect) -> None:
    statement, before = f"{COUNT} AND pay < 10", len(lasting.people.session.history)
    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="tell what is known") as refused:
        connect("rea").execute(statement)
    assert refused.value.diag.message_detail == "Nothing was spent."
    bought = connect().execute(statement).fetchone()
    assert connect("rea").execute(statement).fetchone() == bought
    assert len(lasting.people.session.history) == before + 1


def test_a_quota_holds_here_too(serve: Serve) -> None:
    served = serve()

    def ask_all() -> None:
        given = {"host": "127.0.0.1", "port": served.wire, "user": "mia", "password": served.keys["mia"]}
        with psycopg.connect(**given, autocommit=True) as client:  # type: ignore[arg-type]
            for low in range(0, 100, 10):
                client.execute(f"SELECT COUNT(*) FROM data WHERE age BETWEEN {low} AND {low + 9} AND active")

    with pytest.raises(psycopg.Error, match="quota") as refused:
        ask_all()
    assert refused.value.sqlstate == "53400"
    quota = served.mia.get("/v1/people/budget").json()["quota"]
    assert sum(quota["used"].values()) > 0


@pytest.mark.parametrize(("who", "password"), [("ana", "tacit_" + "x" * 43), ("nobody", None)])
def test_whoever_has_no_key_is_not_let_in(connect: Connect, who: str, password: str | None) -> None:
    with pytest.raises(psycopg.OperationalError, match="login failed"):
        connect(who, password)


def test_a_revoked_key_is_refused_from_the_next_statement_on(lasting: Served, connect: Connect) -> None:
    from tacit.serve import revoke_key

    client = connect("bob")
    client.execute(COUNT)
    revoke_key(lasting.folder / "tacit.keys", "bob")
    with pytest.raises(psycopg.OperationalError, match="revoked"):
        client.execute(COUNT)
    with pytest.raises(psycopg.OperationalError, match="login failed"):
        connect("bob")


def test_a_database_is_a_data_set_or_all_of_them(connect: Connect) -> None:
    for name in ("people", "tacit", "ana", "postgres"):
        assert connect(dbname=name).execute("SELECT COUNT(*) FROM people").fetchone() == (301.0,)
    with pytest.raises(psycopg.OperationalError, match="The databases are tacit, people"):
        connect(dbname="secret")


REFUSED = [
    ("SELECT foo, COUNT(*) FROM data GROUP BY foo", "unknown column"),
    ("SELECT COUNT(*) FROM data WHERE agee > 10", "unknown column 'agee'"),
    ("SELECT age FROM people", "rows are never shown"),
    ("SELECT * FROM people", "not answered|rows are never shown"),
    ("SELECT COUNT(*) FROM data WHERE age < 33", "nearest bin edges"),
    ("SELECT COUNT(*) FROM data, people", "not answered"),
    ("SELECT COUNT(*) FROM (SELECT * FROM data LIMIT 5) x", "rows are never shown"),
    ("SELECT COUNT(*) FROM people p JOIN people q ON p.age = q.age", "not answered"),
    ("DELETE FROM data", "nothing can be written"),
    ("CREATE TABLE a (b int)", "nothing can be written"),
    ("COPY people TO STDOUT", "rows are never shown"),
    ("EXPLAIN ANALYZE SELECT COUNT(*) FROM data", "would ask the question"),
    ("FROBNICATE", "begins no statement"),
    ("SELECT COUNT(*) FROM data WHERE sex = 'F", "ends inside a quote"),
]


@pytest.mark.parametrize(("statement", "words"), REFUSED)
def test_what_is_refused_costs_nothing_and_the_connection_goes_on(
    lasting: Served, connect: Connect, statement: str, words: str
) -> None:
    client, before = connect(), lasting.people.session.spent
    with pytest.raises(psycopg.Error, match=words):
        client.execute(statement)
    assert lasting.people.session.spent == before
    assert client.execute("SELECT COUNT(*) FROM data").fetchone() == (301.0,)


def test_an_error_has_its_place_in_the_text_of_the_client(connect: Connect) -> None:
    statement = "SELECT COUNT(*)\nFROM public.people AS p WHERE p.sex = 'F' AND agee > 10"
    with pytest.raises(psycopg.errors.SyntaxError, match=r"line 2, column 47") as refused:
        connect().execute(statement)
    assert statement[int(refused.value.diag.statement_position or 0) - 1 :].startswith("agee")


def test_types_are_those_that_people_expect(connect: Connect) -> None:
    for binary in (False, True):
        cursor = connect().execute("SELECT active, age, sex, COUNT(*) FROM data GROUP BY 1, 2, 3", binary=binary)
        assert [column.type_code for column in cursor.description or ()] == [16, 25, 25, 701]
        row = cursor.fetchall()[0]
        assert [type(value) for value in row] == [bool, str, str, float]


def test_comparisons_are_boolean_and_a_case_without_else_may_be_null(connect: Connect) -> None:
    asked = """SELECT COUNT(*) > 5 AS many, COUNT(*) < 5 AS few, NULLIF(COUNT(*), COUNT(*)) > 1 AS none,
        CASE WHEN COUNT(*) < 5 THEN 'few' END AS size,
        CASE WHEN COUNT(*) < 5 THEN 'few' ELSE '' END AS said FROM data"""
    found = connect().execute(asked)
    assert found.description is not None
    assert [one.type_display for one in found.description] == ["bool", "bool", "bool", "text", "text"]
    assert found.fetchone() == (True, False, None, None, "")
    inside = f"SELECT many, size FROM ({asked}) AS t"
    assert connect().execute(inside).fetchone() == (True, None)
    grouped = "SELECT sex, COUNT(*) > 1000000 AS many FROM data GROUP BY sex"
    assert connect().execute(grouped, binary=True).fetchall() == [("F", False), ("M", False)]


def test_parameters_have_the_types_of_their_columns(lasting: Served, connect: Connect) -> None:
    client = connect()
    statement = "SELECT COUNT(*) FROM people WHERE sex = %s AND age BETWEEN %s AND %s AND active = %s AND pay < %s"
    plain = "SELECT COUNT(*) FROM data WHERE sex = 'F' AND age BETWEEN 20 AND 39 AND active = TRUE AND pay < 20"
    given = ("F", 20, 39, True, 20.0)
    assert client.execute(statement, given).fetchone() == (lasting.ask(plain)["value"],)
    assert client.execute(statement, given, prepare=True).fetchone() == (lasting.ask(plain)["value"],)
    few = "SELECT sex FROM people GROUP BY sex HAVING COUNT(*) > %s AND sex <> %s LIMIT %s"
    # Bounds that no noise passes: what was drawn for others before depends on which tests came first.
    assert client.execute(few, (-1e9 + 0.5, "M", 5)).fetchall() == [("F",)]
    assert client.execute(few, (1e9 + 0.5, "M", 5)).fetchall() == []
    with pytest.raises(psycopg.Error, match="has no value"):
        client.execute("SELECT COUNT(*) FROM data WHERE sex = %s", ("F' OR 'a'='a",))
    with pytest.raises(psycopg.Error, match="takes whole numbers"):
        client.execute("SELECT COUNT(*) FROM data WHERE age > %s", (dt.date(2024, 1, 1),))


def test_values_that_python_takes_for_one_are_bound_apart(connect: Connect) -> None:
    """One text, two clients: 0 is an age, and FALSE is none, before and after somebody has bound 0."""
    ana, bob = connect(), connect()
    statement = "SELECT COUNT(*) FROM people WHERE age >= %b"
    for _ in range(2):
        with pytest.raises(psycopg.Error):
            ana.execute(statement, (False,), prepare=True)
        assert bob.execute(statement, (0,), prepare=True).fetchone() is not None


def test_a_column_of_the_bar_is_one_word_away(connect: Connect) -> None:
    asked = "SELECT COUNT(*) AS n, ERROR(COUNT(*)), LOW(n), HIGH(n), CONFIDENCE() FROM people WHERE sex = 'F'"
    cursor = connect().execute(asked)
    assert [column.name for column in cursor.description or ()] == ["n", "error", "low", "high", "confidence"]
    n, error, low, high, sure = cursor.fetchall()[0]
    assert (low, high) == (max(0, n - error), min(301, n + error))
    assert sure == 0.95


def test_several_statements_and_transactions(connect: Connect) -> None:
    client = connect()
    client.autocommit = False
    assert client.execute("SELECT COUNT(*) FROM data; SELECT COUNT(*) FROM people").nextset()
    client.commit()
    client.execute("SELECT COUNT(*) FROM data")
    client.rollback()
    assert sum("Transactions are accepted and mean nothing" in one for one in client.notices) == 1  # type: ignore[attr-defined]


def test_copy_writes_an_answer_as_csv(connect: Connect) -> None:
    with (
        connect()
        .cursor()
        .copy("COPY (SELECT sex, COUNT(*) FROM data GROUP BY sex) TO STDOUT (FORMAT csv, HEADER)") as out
    ):
        text = b"".join(out).decode()
    assert text.splitlines()[0] == "sex,count"
    assert [line.split(",")[0] for line in text.splitlines()[1:]] == ["F", "M"]


@pytest.mark.parametrize(
    ("statement", "at"),
    [
        ("SELECT COUNT(*) FROM people WHERE agee < 30", "agee"),
        ("SELECT COUNT(*) FROM people WHERE active AND sex = 'X'", "sex"),
        ("SELECT COUNT(*) FROM people WHERE sex = 'F'\nAND age < 25", "age"),
        ("SELECT sex, CUONT(*) FROM people GROUP BY sex", "CUONT"),
        ("SELECT COUNT(*) FROM people GROUP BY nothing", "nothing"),
        ("SELECT COUNT(*) FROM people p JOIN people q ON TRUE", "JOIN"),
        ("SELECT COUNT(*) FROM peopel", "peopel"),
        ("SELECT 1; SELECT COUNT(*) FROM pg_class, people", "people"),
        ("SELECT COUNT(*) frm people", "people"),
        ("SELECT pg_sleep(9)", "pg_sleep"),
    ],
)
def test_an_error_shows_where(connect: Connect, statement: str, at: str) -> None:
    with pytest.raises(psycopg.Error) as refused:
        connect().execute(statement)
    assert refused.value.diag.statement_position == str(statement.index(at) + 1)
    assert refused.value.diag.message_detail == "Nothing was spent."


def test_a_data_set_is_never_said_not_to_exist(connect: Connect) -> None:
    for statement in ("TABLE people", "SELECT COUNT(*) FROM ONLY people", "SELECT relname FROM pg_class, people"):
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="people is asked by itself"):
            connect().execute(statement)


@pytest.mark.parametrize(
    ("asked", "of"),
    [
        (f"{COUNT} AND pay >= 20", "rows"),
        ("SELECT sex, age, COUNT(*) FROM data WHERE pay >= 20 GROUP BY sex, age", "rows in each group"),
        ("SELECT SUM(pay) FROM data WHERE sex = 'F' AND age >= 20", "in the unit of pay"),
        ("SELECT STUMP(age, sex) FROM data", "rows"),
    ],
)
def test_explain_is_the_price_and_the_bar_to_expect(lasting: Served, connect: Connect, asked: str, of: str) -> None:
    before = lasting.people.session.spent
    lines = [row[0] for row in connect().execute(f"EXPLAIN {asked}")]
    assert "of the budget" in lines[0]
    assert lasting.people.session.spent == before
    bar = lasting.ask(asked)["error"]
    assert lines[1:] == [f"± {bar:,.0f} {of} (95 %)"]
    spent = lasting.people.session.spent
    known, told = (row[0] for row in connect().execute(f"EXPLAIN {asked}"))
    assert known.startswith("Free, and known")
    assert f"{bar:,.0f}" in told
    assert "repeat, free" in told
    assert lasting.people.session.spent == spent


def test_explain_of_what_is_known_takes_its_work(
    lasting: Served, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_age = "SELECT age, COUNT(*) FROM data GROUP BY age"
    lasting.ask(by_age)
    taken, working = list[int](), lasting.state.traffic.working

    def noted(key: int, work: int) -> AbstractContextManager[None]:
        taken.append(work)
        return working(key, work)

    monkeypatch.setattr(lasting.state.traffic, "working", noted)
    connect().execute(f"EXPLAIN {by_age}")
    assert taken == [read(by_age, lasting.people.session.domain).work]


def test_explain_of_what_is_put_together_tells_the_bar_of_its_counts(lasting: Served, connect: Connect) -> None:
    """What a mean's own bar will be depends on how many rows there are."""
    count = connect().execute(f"EXPLAIN {COUNT} AND pay < 10 AND NOT active").fetchall()[1][0]
    mean = connect().execute("EXPLAIN SELECT AVG(age) FROM data WHERE pay < 10 AND active").fetchall()[1][0]
    assert mean == count.replace("rows", "rows in each count that it is made of")


def test_settings_are_kept_and_shown(connect: Connect) -> None:
    client = connect(application_name="tests")
    assert client.execute("SHOW application_name").fetchone() == ("tests",)
    client.execute("SET search_path TO public, other; SET my.own = -1")
    assert client.execute("SHOW my.own").fetchone() == ("-1",)
    with pytest.raises(psycopg.Error, match="UTF8"):
        client.execute("SET client_encoding TO latin1")
    with pytest.raises(psycopg.errors.UndefinedObject):
        client.execute("SHOW nothing_of_the_kind")


def test_a_connection_with_as_many_settings_as_it_may_have_can_change_them() -> None:
    settings = ConnectionSettings()
    for i in range(MAX_SETTINGS - len(settings.values)):
        settings.set(f"my.{i}", "1")
    with pytest.raises(WireError, match="at most 100 settings"):
        settings.set("one.more", "1")
    settings.set("my.0", "2")
    settings.set("extra_float_digits", None)
    assert (settings.get("my.0"), settings.get("extra_float_digits")) == ("2", "1")


def test_rates_hold_here_too(serve: Serve) -> None:
    from tacit.serve.admission import Limits

    served = serve(limits=Limits(rate=1e-9, burst=2))
    given = {"host": "127.0.0.1", "port": served.wire, "user": "ana", "password": served.keys["ana"]}
    with psycopg.connect(**given, autocommit=True) as client:  # type: ignore[arg-type]
        client.execute("SELECT COUNT(*) FROM data; SELECT COUNT(*) FROM data")
        with pytest.raises(psycopg.Error, match="requests a second"):
            client.execute("SELECT COUNT(*) FROM data")


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("5471", ("127.0.0.1", 5471)),
        ("localhost", ("localhost", 5470)),
        ("0.0.0.0:1", ("0.0.0.0", 1)),
        ("[::1]:5", ("::1", 5)),
        ("[::1]", ("::1", 5470)),
    ],
)
def test_an_address_is_a_host_and_a_port_or_one_of_them(given: str, address: tuple[str, int]) -> None:
    from tacit.cli.serve import _address

    assert _address(given) == address


@pytest.mark.parametrize(("given", "words"), [("people.toml", "configurations first"), ("a:b", "no HOST:PORT")])
def test_an_address_that_is_none_is_refused(given: str, words: str) -> None:
    from people import tacit

    shown = tacit("serve", "--postgres", given)
    assert shown.exit_code == 2
    assert words in " ".join(shown.output.split())
