"""The fingerprint of a server's certificate that a login is bound to: tls-server-end-point of RFC 5929. Pure.

A client that sees the same certificate as the server has nobody between them who could pass its login on.
"""

from __future__ import annotations

import hashlib
import ssl
from pathlib import Path

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
    """The fingerprint of the first certificate of a PEM file; None where the standard gives it none."""
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
