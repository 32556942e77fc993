"""Logins by SCRAM: the example of RFC 7677, and everything in it that must be right for a login to succeed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable

import pytest

from tacit.serve.scram import Login, LoginFailed, Verifier

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
