"""Logins by SCRAM: the example of RFC 7677, and everything in it that must be right for a login to succeed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from tacit.serve.scram import Login, LoginFailed, Verifier, end_point

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT, SERVER = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
PROOF = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
FIRST, FINAL = f"n,,n=user,r={CLIENT}", f"c=biws,r={CLIENT}{SERVER},p={PROOF}"


@pytest.fixture
def begin(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Login]:
    """A login that has come to its second half, of a key kept by its secret."""
    monkeypatch.setattr(secrets, "token_bytes", lambda size: SALT)
    monkeypatch.setattr(secrets, "token_urlsafe", lambda size: SERVER)

    def begun(secret: str = "pencil") -> Login:
        kept = Verifier.read(str(Verifier.of(secret)))
        assert kept is not None
        login = Login(kept)
        assert login.first(FIRST) == f"r={CLIENT}{SERVER},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        return login

    return begun


def test_the_example_of_the_standard(begin: Callable[..., Login]) -> None:
    assert begin().final(FINAL) == "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@pytest.mark.parametrize("bit", [0, 7, 128, 255])
def test_a_proof_with_one_wrong_bit_fails(begin: Callable[..., Login], bit: int) -> None:
    proof = bytearray(base64.b64decode(PROOF))
    proof[bit // 8] ^= 1 << bit % 8
    with pytest.raises(LoginFailed):
        begin().final(FINAL.replace(PROOF, base64.b64encode(proof).decode()))


@pytest.mark.parametrize("length", [0, 1, 31, 33])
def test_a_proof_of_another_length_fails(begin: Callable[..., Login], length: int) -> None:
    proof = (base64.b64decode(PROOF) * 2)[:length]
    with pytest.raises(LoginFailed):
        begin().final(FINAL.replace(PROOF, base64.b64encode(proof).decode()))


def test_another_secret_fails(begin: Callable[..., Login]) -> None:
    with pytest.raises(LoginFailed):
        begin("pencils").final(FINAL)


def test_a_login_that_was_overheard_is_of_no_use(begin: Callable[..., Login], monkeypatch: pytest.MonkeyPatch) -> None:
    kept = begin()._verifier
    monkeypatch.setattr(secrets, "token_urlsafe", lambda size: "another" + SERVER)
    again = Login(kept)
    again.first(FIRST)
    with pytest.raises(LoginFailed):
        again.final(FINAL)


def _proved(login: Login, secret_key: Callable[[bytes], bytes], without_proof: str) -> str:
    """What somebody sends who knows the secret, and says something else than was agreed."""
    said = f"{login._said},{without_proof}".encode()
    return f"{without_proof},p={base64.b64encode(secret_key(said)).decode()}"


@pytest.mark.parametrize(
    "without_proof", [f"c=biws,r={CLIENT}{SERVER}x", f"c=biws,r={CLIENT}", f"c=eSws,r={CLIENT}{SERVER}"]
)
def test_nonce_and_channel_are_those_that_were_agreed(begin: Callable[..., Login], without_proof: str) -> None:
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", SALT, 4096)
    client = hmac.digest(salted, b"Client Key", "sha256")
    stored = hashlib.sha256(client).digest()

    def proof(said: bytes) -> bytes:
        return bytes(a ^ b for a, b in zip(client, hmac.digest(stored, said, "sha256"), strict=True))

    right = begin()
    assert _proved(right, proof, FINAL.partition(",p=")[0]) == FINAL
    with pytest.raises(LoginFailed):
        right.final(_proved(right, proof, without_proof))


def said(secret: str, login: Login, header: bytes, *, mechanism: str, seen: bytes) -> str:
    """What a client says last that has seen a certificate of this fingerprint."""
    bare = f"n=user,r={CLIENT}"
    reply = login.first(header.decode() + bare, mechanism)
    nonce, salt, iterations = (part[2:] for part in reply.split(","))
    salted = hashlib.pbkdf2_hmac("sha256", secret.encode(), base64.b64decode(salt), int(iterations))
    key = hmac.digest(salted, b"Client Key", "sha256")
    final = f"c={base64.b64encode(header + seen).decode()},r={nonce}"
    signature = hmac.digest(hashlib.sha256(key).digest(), f"{bare},{reply},{final}".encode(), "sha256")
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    return f"{final},p={base64.b64encode(proof).decode()}"


BINDS, OURS, THEIRS = b"p=tls-server-end-point,,", b"o" * 32, b"t" * 32


def test_a_login_is_bound_to_the_certificate_that_both_sides_see() -> None:
    login = Login(Verifier.of("pencil"), OURS)
    assert login.mechanisms == ["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"]
    final = said("pencil", login, BINDS, mechanism="SCRAM-SHA-256-PLUS", seen=OURS)
    assert login.final(final).startswith("v=")
    relayed = Login(Verifier.of("pencil"), OURS)  # somebody between has a certificate of his own
    with pytest.raises(LoginFailed):
        relayed.final(said("pencil", relayed, BINDS, mechanism="SCRAM-SHA-256-PLUS", seen=THEIRS))


@pytest.mark.parametrize(
    ("header", "mechanism", "offered"),
    [
        (b"y,,", "SCRAM-SHA-256", OURS),  # it could have bound, and was not told of the offer
        (b"n,,", "SCRAM-SHA-256-PLUS", OURS),
        (BINDS, "SCRAM-SHA-256", OURS),
        (BINDS, "SCRAM-SHA-256-PLUS", None),  # which was not offered
        (b"p=tls-unique,,", "SCRAM-SHA-256-PLUS", OURS),
        (b"n,,", "SCRAM-SHA-1", OURS),
    ],
)
def test_what_does_not_fit_the_offer_fails(header: bytes, mechanism: str, offered: bytes | None) -> None:
    login = Login(Verifier.of("pencil"), offered)
    with pytest.raises(LoginFailed):
        login.first(f"{header.decode()}n=user,r={CLIENT}", mechanism)


def test_without_binding_both_other_ways_to_begin_are_taken() -> None:
    for header, offered in ((b"y,,", None), (b"n,,", None), (b"n,,", OURS)):
        login = Login(Verifier.of("pencil"), offered)
        assert login.final(said("pencil", login, header, mechanism="SCRAM-SHA-256", seen=b"")).startswith("v=")


@pytest.mark.parametrize(
    ("signed", "kind"), [("2a864886f70d01010c", "sha384"), ("2a8648ce3d040304", "sha512"), ("2b6570", None)]
)
def test_a_certificate_is_hashed_as_it_is_signed(tmp_path: Path, signed: str, kind: str | None) -> None:
    def item(kind: int, content: bytes) -> bytes:
        length = len(content)
        size = bytes([length]) if length < 128 else b"\x82" + length.to_bytes(2, "big")
        return bytes([kind]) + size + content

    encoded = item(0x30, item(0x30, bytes(300)) + item(0x30, item(0x06, bytes.fromhex(signed))) + item(0x03, bytes(9)))
    file = tmp_path / "cert.pem"
    file.write_text("some words\n" + ssl.DER_cert_to_PEM_cert(encoded) + ssl.DER_cert_to_PEM_cert(b"another"))
    assert end_point(file) == (None if kind is None else hashlib.new(kind, encoded).digest())
    file.write_text(ssl.DER_cert_to_PEM_cert(encoded[:5]))
    assert end_point(file) is None
