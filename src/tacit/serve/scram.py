"""SCRAM-SHA-256 from the server's side: what is kept instead of a secret, and one login. Pure but for random numbers.

A verifier lets a server check who knows a secret; with the verifier alone nobody can log in. RFC 5802 and RFC 7677.
Over TLS a login may be bound to the server's certificate (SCRAM-SHA-256-PLUS): nobody in between can pass it on.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Self

ITERATIONS = 4_096  # the least that clients take; a key has 256 random bits, so more would not protect it better
MECHANISM, BOUND = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
MAX_LOGIN_MESSAGE = 2_048  # characters of what a client sends in a login
_SALT, _NONCE = 16, 18  # bytes
_STANZA = re.compile(r"SCRAM-SHA-256\$(\d{1,7}):([A-Za-z0-9+/=]+)\$([A-Za-z0-9+/=]+):([A-Za-z0-9+/=]+)")
# A client says p where it binds the channel, n where it cannot, and y where it could and was not offered it.
_FIRST = re.compile(
    r"((n|y|p=tls-server-end-point),(?:a=[^,]*)?,)(n=[^,]*,r=([\x21-\x2b\x2d-\x7e]{8,512})(?:,.*)?)", re.DOTALL
)
_FINAL = re.compile(r"(c=([A-Za-z0-9+/=]+),r=([\x21-\x2b\x2d-\x7e]+)),p=([A-Za-z0-9+/=]+)")


class LoginFailed(Exception):
    """Somebody who does not know the secret, or does not speak the protocol. It is not said which."""


@dataclass(frozen=True)
class Verifier:
    """What is kept of a secret."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of(cls, secret: str) -> Self:
        salt = secrets.token_bytes(_SALT)
        salted = hashlib.pbkdf2_hmac("sha256", secret.encode("utf-8", "surrogatepass"), salt, ITERATIONS)
        stored = hashlib.sha256(_mac(salted, b"Client Key")).digest()
        return cls(salt, ITERATIONS, stored, _mac(salted, b"Server Key"))

    @classmethod
    def nobody(cls, name: str, seed: bytes) -> Self:
        """The verifier of a name that has none: its salt is always the same, and nobody knows a secret for it."""
        return cls(_mac(seed, name.encode())[:_SALT], ITERATIONS, secrets.token_bytes(32), secrets.token_bytes(32))

    @classmethod
    def read(cls, text: str) -> Self | None:
        """A verifier as `str` writes it; None for any other text."""
        match = _STANZA.fullmatch(text)
        try:
            salt, stored, server = (base64.b64decode(part, validate=True) for part in match.groups()[1:])  # type: ignore[union-attr]
        except (AttributeError, binascii.Error):
            return None
        return cls(salt, int(match[1]), stored, server) if len(stored) == len(server) == 32 and match else None

    def __str__(self) -> str:
        """The text in which PostgreSQL keeps it."""
        return (
            f"{MECHANISM}${self.iterations}:{_base64(self.salt)}${_base64(self.stored_key)}:{_base64(self.server_key)}"
        )


class Login:
    """One login: `first` takes what the client says first, `final` what it says then, and each gives the reply.

    `end_point` is the fingerprint of the server's certificate, where a login may be bound to it.
    """

    def __init__(self, verifier: Verifier, end_point: bytes | None = None) -> None:
        self._verifier, self._end_point = verifier, end_point
        self.mechanisms = [MECHANISM] if end_point is None else [BOUND, MECHANISM]
        self._said = ""  # both first messages, without the channel's part
        self._header, self._nonce = b"", ""

    def first(self, message: str, mechanism: str = MECHANISM) -> str:
        match = _FIRST.fullmatch(message) if len(message) <= MAX_LOGIN_MESSAGE else None
        if match is None or mechanism not in self.mechanisms:
            raise LoginFailed
        binds, could = match[2].startswith("p"), match[2] == "y"
        # Whoever could have bound the channel was not told that it may: somebody between us changed what we offered.
        if binds != (mechanism == BOUND) or (could and BOUND in self.mechanisms):
            raise LoginFailed
        self._header = match[1].encode() + (self._end_point or b"" if binds else b"")
        self._nonce = match[4] + secrets.token_urlsafe(_NONCE)
        reply = f"r={self._nonce},s={_base64(self._verifier.salt)},i={self._verifier.iterations}"
        self._said = f"{match[3]},{reply}"
        return reply

    def final(self, message: str) -> str:
        match = _FINAL.fullmatch(message) if len(message) <= MAX_LOGIN_MESSAGE else None
        if match is None:
            raise LoginFailed
        try:
            header, proof = (base64.b64decode(match[part], validate=True) for part in (2, 4))
        except binascii.Error:
            raise LoginFailed from None
        known = self._verifier
        said = f"{self._said},{match[1]}".encode()
        key = bytes(a ^ b for a, b in zip(proof, _mac(known.stored_key, said), strict=False))
        right = hmac.compare_digest(hashlib.sha256(key).digest(), known.stored_key)
        if header != self._header or match[3] != self._nonce or len(proof) != 32 or not right:
            raise LoginFailed
        return f"v={_base64(_mac(known.server_key, said))}"


def _mac(key: bytes, text: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


# The signatures whose hash is known, by their object identifiers as they are encoded. What is signed with MD5 or SHA-1
# is hashed with SHA-256; of other signatures (Ed25519, PSS) the standard says nothing, so nothing is offered there.
_RSA, _ECDSA = bytes.fromhex("2a864886f70d0101"), bytes.fromhex("2a8648ce3d0403")
_HASHES = {
    _RSA + b"\x04": "sha256", _RSA + b"\x05": "sha256", _RSA + b"\x0b": "sha256", _RSA + b"\x0c": "sha384",
    _RSA + b"\x0d": "sha512", _RSA + b"\x0e": "sha224", bytes.fromhex("2a8648ce3d0401"): "sha256",
    _ECDSA + b"\x01": "sha224", _ECDSA + b"\x02": "sha256", _ECDSA + b"\x03": "sha384", _ECDSA + b"\x04": "sha512",
}  # fmt: skip
_SEQUENCE, _OBJECT = 0x30, 0x06


def end_point(certificate: str | Path) -> bytes | None:
    """The fingerprint of the first certificate of a PEM file (tls-server-end-point of RFC 5929); None if it has none.

    A client that sees the same certificate as the server has nobody between them who could pass its login on.
    """
    text = Path(certificate).read_text(errors="replace")
    start, end = text.find("-----BEGIN CERTIFICATE-----"), text.find("-----END CERTIFICATE-----")
    if start < 0 or end < start:
        return None
    encoded = ssl.PEM_cert_to_DER_cert(text[start:end] + "-----END CERTIFICATE-----")
    kind = _HASHES.get(_signature(encoded))
    return None if kind is None else hashlib.new(kind, encoded).digest()


def _signature(encoded: bytes) -> bytes:
    """The object identifier of a certificate's signature: the second part of the outer sequence begins with it."""
    try:
        inside, _ = _item(encoded, 0, _SEQUENCE)
        _, signed = _item(encoded, inside, _SEQUENCE)
        algorithm, _ = _item(encoded, signed, _SEQUENCE)
        first, end = _item(encoded, algorithm, _OBJECT)
    except (IndexError, ValueError):
        return b""
    return encoded[first:end]


def _item(data: bytes, at: int, kind: int) -> tuple[int, int]:
    """Where the content of an item of DER begins and ends."""
    if data[at] != kind:
        raise ValueError
    length, start = data[at + 1], at + 2
    if length & 0x80:
        more = length & 0x7F
        length, start = int.from_bytes(data[start : start + more], "big"), start + more
    return start, start + length
