"""PostgreSQL's protocol by its bytes: portals, errors and skipping, cancelling, TLS, and clients that behave badly."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from benchmarks.serving.frontend import (
    FLUSH,
    SYNC,
    TERMINATE,
    Frontend,
    bind,
    cancelling,
    describe,
    execute,
    message,
    parse,
    query,
    startup,
    text,
)
from benchmarks.serving.wire import Gone
from serving import Serve, Served

from support import PATIENCE
from tacit.serve.admission import Limits
from tacit.serve.keys import KeyRing
from tacit.serve.postgres.channel import WireLimits
from tacit.serve.postgres.listener import Listener
from tacit.serve.scram import ITERATIONS, Login, LoginFailed, Verifier, end_point

COUNT = "SELECT COUNT(*) FROM data"
AGES = "SELECT age, COUNT(*) FROM people GROUP BY age"


def kinds(said: list[Any]) -> str:
    return b"".join(one.kind for one in said if one.kind != b"N").decode()


@pytest.fixture
def client(lasting: Served) -> Any:
    with Frontend(lasting.wire, "ana", lasting.keys["ana"]) as made:
        yield made


def test_portals_give_rows_by_and_by(client: Frontend) -> None:
    said = (
        client.ask(query("BEGIN"), parse(AGES), bind([], "p"), describe("p"), execute("p", 4), SYNC)
        + client.until_ready()
    )
    assert kinds(said) == "CZ12TDDDDsZ"
    assert kinds(client.ask(execute("p", 4), SYNC)) == "DDDDsZ"
    last = client.ask(execute("p", 4), SYNC)
    assert kinds(last) == "DDCZ"
    assert last[-2].body == b"SELECT 10\0"
    assert last[-1].body == b"T"
    assert kinds(client.ask(query("COMMIT"))) == "CZ"
    assert kinds(client.ask(execute("p"), SYNC)) == "EZ"  # it went with the transaction


def test_a_portal_is_asked_once(lasting: Served, client: Frontend) -> None:
    before = len(lasting.people.session.history)
    asked = parse("SELECT COUNT(*) FROM people WHERE age < 50 AND pay < 20")
    assert kinds(client.ask(asked, bind([]), describe(), SYNC)) == "12TZ"
    assert len(lasting.people.session.history) == before  # describing asks nothing
    assert kinds(client.ask(asked, bind([]), execute(most=1), execute(), execute(), SYNC)) == "12DsCCZ"
    assert len(lasting.people.session.history) == before + 1


def test_formats_are_as_wished(client: Frontend) -> None:
    said = client.ask(parse("SELECT sex, COUNT(*) FROM people GROUP BY sex"), bind([], formats=(0, 1)), execute(), SYNC)
    rows = [one.row for one in said if one.kind == b"D"]
    assert [row[0] for row in rows] == [b"F", b"M"]
    assert all(struct.unpack("!d", row[1] or b"")[0] > 100 for row in rows)


def test_after_an_error_all_is_skipped_until_sync(client: Frontend) -> None:
    said = client.ask(parse("SELECT age FROM people"), bind([]), execute(), parse(COUNT), bind([]), execute(), SYNC)
    assert kinds(said) == "EZ"
    assert kinds(client.ask(SYNC)) == "Z"
    assert kinds(client.ask(parse(COUNT), FLUSH, bind([]), execute(), SYNC)) == "12DCZ"


def test_parameters_are_described(client: Frontend) -> None:
    statement = (
        "SELECT COUNT(*) FROM people WHERE sex = $1 AND age BETWEEN $2 AND $3 AND active = $4 AND pay < $5 LIMIT $6"
    )
    said = client.ask(parse(statement, "s"), describe("s", portal=False), SYNC)
    assert kinds(said) == "1tTZ"
    assert struct.unpack("!H6I", said[1].body) == (6, 25, 20, 20, 16, 701, 20)
    given = [b"F", b"20", b"39", b"t", b"20", b"1"]
    first = client.ask(bind(given, name="s"), execute(), SYNC)
    assert kinds(first) == "2DCZ"
    assert kinds(client.ask(bind(given[:5], name="s"), SYNC)) == "EZ"
    assert kinds(client.ask(bind([*given[:1], b"x'); --", *given[2:]], name="s"), SYNC)) == "EZ"
    assert kinds(client.ask(message(b"C", b"S" + text("s")), bind(given, name="s"), SYNC)) == "3EZ"


def test_empty_statements_and_unknown_ones(client: Frontend) -> None:
    assert kinds(client.ask(query(" ; -- nothing"))) == "IZ"
    assert kinds(client.ask(parse(""), bind([]), describe(), execute(), SYNC)) == "12nIZ"
    assert kinds(client.ask(parse("", "none"), query("EXECUTE none"))) == "1IZ"
    (gone, _) = client.ask(execute(), SYNC)  # the unnamed portal went with what was sent before
    assert b"C34000\0" in gone.body
    assert kinds(client.ask(message(b"F", b"\0\0\0\1"), SYNC)) == "EZ"


def test_a_copy_is_in_the_extended_protocol_too(client: Frontend) -> None:
    said = client.ask(parse(f"COPY ({AGES}) TO STDOUT (FORMAT binary)"), bind([]), describe(), execute(), SYNC)
    assert kinds(said) == "12nH" + "d" * 11 + "cCZ"  # its head comes with the first row, as PostgreSQL sends it
    data = b"".join(one.body for one in said if one.kind == b"d")
    assert data.startswith(b"PGCOPY\n\xff\r\n\0")
    assert data.endswith(b"\xff\xff")
    assert said[-2].body == b"COPY 10\0"


def test_versions_and_options_that_are_not_spoken(lasting: Served) -> None:
    with Frontend(lasting.wire) as client:
        client.send(message(b"", struct.pack("!i", (3 << 16) + 2) + text("user", "ana", "_pq_.odd", "1") + b"\0"))
        said = client.read()
        assert (said.kind, struct.unpack_from("!ii", said.body)) == (b"v", (3 << 16, 1))
        assert client.read().kind == b"R"
    with Frontend(lasting.wire) as client:
        client.send(message(b"", struct.pack("!i", 2 << 16) + b"\0"))
        assert client.read().fields["C"] == "0A000"


# -- cancelling -------------------------------------------------------------------------------------------------------


def test_what_waits_can_be_cancelled_and_is_not_asked(serve: Serve) -> None:
    served = serve()
    go, begun = threading.Event(), threading.Event()
    served.people.writer.do(lambda: (begun.set(), go.wait(PATIENCE)))  # the writer is busy with something else
    assert begun.wait(PATIENCE)
    with Frontend(served.wire, "ana", served.keys["ana"]) as client:
        client.send(query("SELECT COUNT(*) FROM data WHERE active"))
        for secret in (client.secret ^ 1, client.secret):  # only who knows the secret can
            with Frontend(served.wire) as other:
                other.send(cancelling(client.process, secret))
                with pytest.raises(Gone):
                    other.read()
        said = client.until_ready()
        assert said[0].fields["C"] == "57014"
        go.set()
        assert kinds(client.ask(query(COUNT))) == "TDCZ"
    assert not served.people.session.spent.atoms


@contextmanager
def listening(served: Served, **settings: Any) -> Iterator[int]:
    """Another listener of the same server, on a loop of its own; its port."""
    door = socket.create_server(("127.0.0.1", 0))
    stop: list[Any] = []
    ready = threading.Event()

    async def listen() -> None:
        stop.extend((asyncio.get_running_loop(), asyncio.Event()))
        async with Listener(served.state, **settings).open(door):
            ready.set()
            await stop[1].wait()

    thread = threading.Thread(target=asyncio.run, args=(listen(),))
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        yield door.getsockname()[1]
    finally:
        stop[0].call_soon_threadsafe(stop[1].set)
        thread.join(PATIENCE)
        assert not thread.is_alive()


# -- TLS --------------------------------------------------------------------------------------------------------------


def test_tls_and_nothing_else_from_other_machines(
    lasting: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    from tacit.serve.postgres.channel import Channel

    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    made += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run(made, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    with listening(lasting, tls=context, end_point=end_point(cert)) as port:
        given = {"host": "127.0.0.1", "port": port, "user": "ana", "password": lasting.keys["ana"], "dbname": "people"}
        for bound in ("require", "prefer", "disable"):
            with psycopg.connect(**given, sslmode="require", channel_binding=bound) as client:  # type: ignore[arg-type]
                assert client.pgconn.ssl_in_use
        secure = {"sslmode": "verify-full", "sslrootcert": str(cert)}
        with psycopg.connect(**given, **secure, autocommit=True) as client:  # type: ignore[arg-type]
            assert client.pgconn.ssl_in_use
            assert client.execute(COUNT).fetchone() == (301.0,)
        with psycopg.connect(**given, sslmode="disable", autocommit=True) as client:  # type: ignore[arg-type]
            assert client.execute(COUNT).fetchone() == (301.0,)  # loopback may do without
        monkeypatch.setattr(Channel, "peer", property(lambda self: "192.0.2.1"))
        with pytest.raises(psycopg.OperationalError, match="TLS is needed"):
            psycopg.connect(**given, sslmode="disable")  # type: ignore[arg-type]
        with psycopg.connect(**given, sslmode="require", autocommit=True) as client:  # type: ignore[arg-type]
            assert client.execute(COUNT).fetchone() == (301.0,)
        with Frontend(port) as client:  # what was put in before TLS began is never read as if it came through it
            client.send(message(b"", struct.pack("!i", 80877103)) + startup("ana"))
            assert client.read().fields["C"] == "08P01"


# -- clients that behave badly ----------------------------------------------------------------------------------------


def test_whoever_says_nothing_or_half_of_it_is_cut_off(serve: Serve) -> None:
    served = serve(wire=WireLimits(login_seconds=0.3))
    for sent in (b"", b"\0\0\0", startup("ana")):
        with Frontend(served.wire) as client:
            client.send(sent)
            said = client.read()
            if said.kind == b"R":
                said = client.read()
            assert said.fields["M"] == "The login took too long."
    patient = WireLimits(login_seconds=PATIENCE, message_seconds=0.3)  # whoever is slow is not cut off before
    with listening(served, limits=patient) as port, Frontend(port, "ana", served.keys["ana"]) as client:
        client.send(query(COUNT)[:-3])
        assert client.read().fields["C"] == "08P01"
        with pytest.raises(Gone):
            client.read()


def test_strangers_give_way_to_each_other_and_to_keys(serve: Serve) -> None:
    served = serve(wire=WireLimits(unknown=5, of_one_key=2))
    strangers = [Frontend(served.wire) for _ in range(20)]
    with Frontend(served.wire, "ana", served.keys["ana"]) as one, Frontend(served.wire, "ana", served.keys["ana"]):
        assert strangers[0].read().fields["C"] == "53300"
        with pytest.raises(PermissionError, match="too many"):
            Frontend(served.wire, "ana", served.keys["ana"])
        with Frontend(served.wire, "bob", served.keys["bob"]):
            assert kinds(one.ask(query(COUNT))) == "TDCZ"
    for stranger in strangers:
        stranger.close()


def test_whoever_does_not_read_is_cut_off(serve: Serve) -> None:
    served = serve(wire=WireLimits(send_seconds=0.3))
    client = Frontend(served.wire, "ana", served.keys["ana"])

    def send_for_ever() -> None:
        for _ in range(10_000):
            client.send(query("SHOW nothing") * 100)

    with pytest.raises(ConnectionError):
        send_for_ever()
    with Frontend(served.wire, "bob", served.keys["bob"]) as other:
        assert kinds(other.ask(query(COUNT))) == "TDCZ"
    client.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\xff" * 100,
        struct.pack("!ii", 2**30, 3 << 16),
        struct.pack("!ii", 4, 0),
        struct.pack("!ii", 9, 3 << 16) + b"u",
        struct.pack("!ii", 10_001, 3 << 16),
    ],
)
def test_what_is_no_first_message_ends_the_connection(lasting: Served, sent: bytes) -> None:
    with Frontend(lasting.wire) as client:
        client.send(sent)
        assert client.read().fields["C"] in ("08P01", "0A000")
        with pytest.raises(Gone):
            client.read()


def test_too_much_is_refused(lasting: Served, client: Frontend) -> None:
    for number in range(500):
        client.send(parse(COUNT, f"s{number}"))
    assert kinds(client.ask(parse(COUNT, "more"), SYNC)) == "1" * 500 + "EZ"
    assert kinds(client.ask(query("DEALLOCATE ALL"))) == "CZ"
    client.send(b"".join(parse(COUNT) + bind([], f"p{number}") for number in range(33)))
    assert kinds(client.ask(SYNC)).endswith("1EZ")
    client.send(b"Q" + struct.pack("!i", 2**20 + 5))
    assert client.read().fields["C"] == "08P01"
    with Frontend(lasting.wire, "ana", lasting.keys["ana"]) as other:
        assert kinds(other.ask(query("SELECT 1; " * 101))) == "EZ"
        other.send(TERMINATE)
        with pytest.raises(Gone):
            other.read()


def test_one_client_that_sends_much_does_not_hold_up_the_others(serve: Serve) -> None:
    served = serve(limits=Limits(rate=1e9, burst=10**9))
    with (
        Frontend(served.wire, "ana", served.keys["ana"]) as busy,
        Frontend(served.wire, "bob", served.keys["bob"]) as other,
    ):
        busy.send(query("SHOW nothing") * 20_000)
        assert kinds(other.ask(query(COUNT))) == "TDCZ"


def test_a_server_that_closes_ends_connections_when_they_are_answered(serve: Serve) -> None:
    served = serve()
    go, begun = threading.Event(), threading.Event()
    served.people.writer.do(lambda: (begun.set(), go.wait(PATIENCE)))
    assert begun.wait(PATIENCE)
    with ExitStack() as door:
        port = door.enter_context(listening(served))
        idle = Frontend(port, "bob", served.keys["bob"])
        client = Frontend(port, "ana", served.keys["ana"])
        client.send(query(COUNT))
        closing = threading.Timer(0.2, door.pop_all().close)  # it has begun to wait by then, or is refused
        closing.start()
        assert idle.read().fields["C"] == "57P01"
        go.set()
        said = [client.read()]
        while said[-1].kind != b"E":
            said.append(client.read())
        assert kinds(said) in ("TDCZE", "E")
        assert said[-1].fields["C"] == "57P01"
        closing.join(PATIENCE)
    idle.close()
    client.close()


def test_what_is_heavy_is_not_kept_for_a_client(lasting: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    from tacit.serve import question

    monkeypatch.setattr(question, "LIGHT", -1)
    asked = "SELECT COUNT(*) FROM people WHERE age < 90"
    with Frontend(lasting.wire, "ana", lasting.keys["ana"]) as client:
        assert kinds(client.ask(parse(asked, "s"), describe("s", portal=False), SYNC)) == "1tTZ"
        assert kinds(client.ask(bind([], "p", "s"), SYNC)) == "EZ"
        assert kinds(client.ask(bind([], "", "s"), execute(), SYNC)) == "2DCZ"


# -- SCRAM ------------------------------------------------------------------------------------------------------------


def test_a_verifier_is_kept_and_read_and_says_nothing_of_the_key() -> None:
    made = Verifier.of("tacit_secret")
    assert Verifier.read(str(made)) == made
    assert str(made).startswith(f"SCRAM-SHA-256${ITERATIONS}:")
    assert Verifier.of("tacit_secret") != made
    assert Verifier.read("SCRAM-SHA-256$4096:a$b:c") is None
    assert Verifier.read("") is None


def test_the_exchange_of_the_standard() -> None:
    """RFC 7677, section 3, with the nonces that it has."""
    login = Login(
        Verifier.read(
            "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:"
            "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
        )
        or Verifier.of("")
    )
    login.first("n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    login._said = (
        "n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        "s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    login._nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    final = f"c=biws,r={login._nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    assert login.final(final) == "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    for wrong in (final.replace("biws", "eSws"), final[:-4] + "AAA=", final.replace("c=biws,", "")):
        with pytest.raises(LoginFailed):
            login.final(wrong)


def test_a_key_from_before_there_were_verifiers_gets_one_over_http(serve: Serve) -> None:
    import sqlite3

    served = serve()
    with sqlite3.connect(served.folder / "tacit.keys") as db:
        db.execute("UPDATE keys SET verifier = NULL WHERE name = 'bob'")
    db.close()
    with pytest.raises(PermissionError, match="login failed"):
        Frontend(served.wire, "bob", served.keys["bob"])
    assert served.bob.get("/v1/whoami").status_code == 200
    Frontend(served.wire, "bob", served.keys["bob"]).close()


def test_a_file_of_keys_from_before_gets_the_column(tmp_path: Path) -> None:
    import sqlite3

    from tacit.serve.keys import make_key

    secret = make_key(tmp_path / "tacit.keys", "ana", "analyst")
    with sqlite3.connect(tmp_path / "tacit.keys") as db:
        db.execute("ALTER TABLE keys DROP COLUMN verifier")
    db.close()
    ring = KeyRing(tmp_path / "tacit.keys")
    assert ring.named("ana") is None
    assert ring.find(secret) is not None
    assert ring.named("ana") is not None
    ring.close()
