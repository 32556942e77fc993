"""From a client's first byte to its name: encryption, the version, and SCRAM with a key as the password."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ssl import SSLContext
from typing import TYPE_CHECKING

from tacit.serve.app import is_loopback
from tacit.serve.key import Key, visitor
from tacit.serve.postgres import messages
from tacit.serve.postgres.channel import Channel
from tacit.serve.postgres.messages import Cancel, Malformed
from tacit.serve.postgres.sqlstate import BAD_LOGIN, NOT_ALLOWED, UNSUPPORTED, WireError
from tacit.serve.scram import Login, LoginFailed, Verifier

if TYPE_CHECKING:
    from tacit.serve.keys import KeyRing


@dataclass(frozen=True)
class Door:
    """Who is let in, and how. `seed` makes the salts of names that have no key; `insecure` needs no TLS anywhere.

    `end_point` is the fingerprint of the certificate that a login over TLS may be bound to. Without keys everybody is
    let in, by any name and without a password.
    """

    keys: KeyRing | None
    seed: bytes
    tls: SSLContext | None = None
    insecure: bool = False
    end_point: bytes | None = None

    async def enter(self, channel: Channel) -> tuple[Key, Mapping[str, str]] | Cancel:
        """Whose connection it is, and the settings it begins with; or all that it wanted, a request to cancel."""
        first, secure = await channel.first(), False
        while isinstance(first, messages.Encryption):
            if first.tls and self.tls is not None and not secure:
                await channel.encrypt(self.tls)
                secure = True
            else:
                channel.say(b"N")
            first = await channel.first()
        if isinstance(first, Cancel):
            return first
        if first.version >> 16 != 3:
            raise WireError(UNSUPPORTED, "This server speaks version 3 of the protocol.", fatal=True)
        if not (secure or self.insecure or is_loopback(channel.peer)):
            raise WireError(NOT_ALLOWED, "From other machines TLS is needed: sslmode=require.", fatal=True)
        options = [name for name in first.parameters if name.startswith("_pq_.")]
        if first.version & 0xFFFF or options:
            channel.say(messages.negotiated(0, options))
        key = await self._login(channel, first.parameters.get("user", ""), self.end_point if secure else None)
        return key, first.parameters

    async def _login(self, channel: Channel, name: str, end_point: bytes | None) -> Key:
        """A name without a key takes as long as one with a key, and fails at the same place."""
        if self.keys is None:
            return visitor(channel.peer)
        found = self.keys.named(name)
        login = Login(found[1] if found else Verifier.nobody(name, self.seed), end_point)
        channel.say(messages.sasl(login.mechanisms))
        try:
            body = messages.Body(await _password(channel))
            mechanism, first = body.text(), body.value()
            body.end()
            channel.say(messages.sasl_more(login.first((first or b"").decode(), mechanism), final=False))
            reply = login.final((await _password(channel)).decode())
            if found is None:
                raise LoginFailed
        except (LoginFailed, UnicodeDecodeError):
            words = "The login failed: the user is the name of a key, and the password is the key."
            raise WireError(BAD_LOGIN, words, fatal=True) from None
        channel.say(messages.sasl_more(reply, final=True))
        return found[0]


async def _password(channel: Channel) -> bytes:
    message = await channel.next()
    if not isinstance(message, messages.Password):
        raise Malformed
    return message.data
