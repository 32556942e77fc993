"""Start a server: open the data sets, bind the address, and serve until told to stop. Called by the command line.

`serve_demo` does so on the demonstration table, for trying it: `tacit demo --serve`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from importlib.resources import as_file
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from tacit.errors import ConfigError
from tacit.serve.key import ROLES
from tacit.shelf import MOST_FILES, READ, Cache

if TYPE_CHECKING:
    from ssl import SSLContext

    from tacit.config import Config
    from tacit.serve.admission import Limits
    from tacit.serve.keys import KeyRing
    from tacit.serve.served_data import ServedData

_PORT = 8470
KEYS = "tacit.keys"  # beside the first configuration
_URL = re.compile(r"https?://[!-~]{1,2000}")
_GRACE = 30  # seconds for the requests that are being answered when the server is told to stop


@dataclass(frozen=True)
class _Door:
    """Where and how a server is reached: see `serve`."""

    host: str
    port: int
    tls_cert: str | Path | None
    tls_key: str | Path | None
    insecure: bool
    hosts: Sequence[str] | None
    ready: Callable[[str], None]
    postgres: tuple[str, int] | None
    postgres_ready: Callable[[str], None]


def serve(
    configs: Sequence[str | Path] | Mapping[str, str | Path | Config],
    host: str = "127.0.0.1",
    port: int = _PORT,
    keys: str | Path | None = None,
    tls_cert: str | Path | None = None,
    tls_key: str | Path | None = None,
    *,
    insecure: bool = False,
    hosts: Sequence[str] | None = None,
    limits: Limits | None = None,
    ready: Callable[[str], None] = lambda address: None,
    invitations: Mapping[str, str] | None = None,
    landing: str = "/",
    postgres: tuple[str, int] | None = None,
    postgres_ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve data sets over HTTP until interrupted or terminated; what is queued then is finished.

    configs: configuration files; a data set is called like its file without the ending (that of a tacit.toml like its
        ledger), or as the mapping says, which may also have what `tacit.config.read_config` gives.
    host, port: where to listen. Beyond this machine TLS is needed, or `insecure`. Port 0 takes any free one.
    keys: the file of keys, see `make_key`; by default `tacit.keys` beside the first configuration.
    tls_cert, tls_key: PEM files; with them the server speaks TLS.
    insecure: serve other machines without TLS all the same, for instance behind a proxy that adds it.
    hosts: the names that clients may call it by; by default localhost and the like for a loopback address, else any.
    ready: told the address once requests are answered.
    invitations: words that log a browser in once, at /enter/WORD, each with the key that it stands for.
    landing: the address on this server that an invitation leads to.
    postgres: a host and a port, to speak PostgreSQL's protocol there too; `postgres_ready` is told the address.
    """
    _check_installed()
    named = _names(configs)

    def opened(undo: ExitStack) -> tuple[dict[str, ServedData], KeyRing]:
        from tacit.serve.keys import KeyRing
        from tacit.serve.series import open_data

        first = next(iter(named.values()))
        near = first if isinstance(first, Path) else first.ledger
        ring = KeyRing(near.parent / KEYS if keys is None else keys)
        undo.callback(ring.close)
        datasets: dict[str, ServedData] = {}
        for name, config in named.items():
            datasets[name] = open_data(name, config, ring)
            undo.callback(datasets[name].close)
        return datasets, ring

    door = _Door(
        host=host,
        port=port,
        tls_cert=tls_cert,
        tls_key=tls_key,
        insecure=insecure,
        hosts=hosts,
        ready=ready,
        postgres=postgres,
        postgres_ready=postgres_ready,
    )
    _run(opened, door, limits, invitations=invitations, landing=landing)


def serve_published(
    files: Sequence[str | Path] | Mapping[str, str | Path],
    host: str = "127.0.0.1",
    port: int = _PORT,
    tls_cert: str | Path | None = None,
    tls_key: str | Path | None = None,
    *,
    owner_url: str = "",
    unlimited: bool = False,
    state: str | Path | None = None,
    insecure: bool = False,
    hosts: Sequence[str] | None = None,
    limits: Limits | None = None,
    ready: Callable[[str], None] = lambda address: None,
    postgres: tuple[str, int] | None = None,
    postgres_ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Answer from published files alone: no data, no ledger, no keys. Nothing is written unless a folder is named, so
    any number may run.

    Everybody who reaches the address may read. What would have to be bought is refused, with `owner_url`.

    files: published files; each is called like its file up to the first dot, or as the mapping says.
    owner_url: the address of the server that has the data.
    unlimited: take also files that are much more work than others of their size, as `tacit.read` does.
    state: a folder for what takes long to work out from the files, so that the next start is quicker. Servers may share
        it, and it may be read-only, or deleted at any time. Whoever may write there decides what is answered.
    The rest is as in `serve`.
    """
    _check_installed()
    if owner_url and not _URL.fullmatch(owner_url):
        raise ConfigError("the owner's address begins with http:// or https://, and has no blanks.")
    files = [files] if isinstance(files, str | Path) else files
    if isinstance(files, Mapping):
        named = {str(name): Path(path) for name, path in files.items()}
    else:
        named = {Path(path).name.partition(".")[0].lower(): Path(path) for path in files}
    if len(named) < len(files) or not named:
        raise ConfigError("a server of published files needs at least one, and a name of its own for each.")

    keep = partial(Cache, state=_own(Path(state)), most=MOST_FILES * len(named)) if state else None

    def opened(undo: ExitStack) -> tuple[dict[str, ServedData], None]:
        from tacit.serve.served_data import Replica

        datasets: dict[str, ServedData] = {}
        for name, path in named.items():
            datasets[name] = Replica.open(name, path, owner_url, unlimited=unlimited, keep=keep)
            undo.callback(datasets[name].close)
        return datasets, None

    door = _Door(
        host=host,
        port=port,
        tls_cert=tls_cert,
        tls_key=tls_key,
        insecure=insecure,
        hosts=hosts,
        ready=ready,
        postgres=postgres,
        postgres_ready=postgres_ready,
    )
    _run(opened, door, limits or _open_limits(), owner_url)


def _run(
    opened: Callable[[ExitStack], tuple[dict[str, ServedData], KeyRing | None]],
    at: _Door,
    limits: Limits | None,
    elsewhere: str = "",
    invitations: Mapping[str, str] | None = None,
    landing: str = "/",
) -> None:
    """Bind, open what is served, and serve it until told to stop."""
    import uvicorn

    from tacit.serve.admission import Limits
    from tacit.serve.app import LOOPBACK, is_loopback, make_app
    from tacit.serve.connections import BACKLOG, MAX_CONNECTIONS, Complaints, HttpConnection, room
    from tacit.serve.page.routes import routes
    from tacit.serve.server import Server

    host, postgres = at.host.strip("[]"), at.postgres
    tls = _tls(at.tls_cert, at.tls_key)
    secure = tls is not None
    if postgres is not None:
        postgres = postgres[0].strip("[]"), postgres[1]
    for one in (host, *(postgres[:1] if postgres is not None else ())):
        if not (is_loopback(one) or secure or at.insecure):
            raise ConfigError(
                f"{one} is reached from other machines, and keys and answers would travel in the clear: give tls_cert "
                "and tls_key, or say that it is insecure on purpose."
            )
    known = frozenset(at.hosts) if at.hosts is not None else None
    if at.hosts is None and is_loopback(host):
        known = frozenset({*LOOPBACK, host})
    with ExitStack() as undo:
        listening = _bind(host, at.port)
        undo.callback(listening.close)
        door = None if postgres is None else _bind(*postgres)
        if door is not None:
            undo.callback(door.close)
        datasets, ring = opened(undo)
        undo.pop_all()  # from here on the application closes them, when it has answered what was queued
    server = Server(datasets, ring, limits or Limits(), known, listening.getsockname()[1], secure, elsewhere)
    address = f"{'https' if secure else 'http'}://{_shown(listening)}"
    beside: Callable[[], AbstractAsyncContextManager[None]] = nullcontext
    most = room(others=0 if door is None else MAX_CONNECTIONS)
    if door is not None:
        from tacit.serve.postgres.channel import WireLimits
        from tacit.serve.postgres.listener import Listener
        from tacit.serve.scram import end_point

        wire = WireLimits(connections=most - most // 10, unknown=most // 10)
        bound_to = None if at.tls_cert is None else end_point(at.tls_cert)
        listener = Listener(server, tls=tls, end_point=bound_to, insecure=at.insecure, limits=wire)
        beside = partial(listener.open, door)

    complain = Complaints()

    def told() -> None:
        asyncio.get_running_loop().set_exception_handler(complain)
        at.ready(address)
        if door is not None:
            at.postgres_ready(f"postgresql://{_shown(door)}")

    logging.basicConfig(format="tacit: %(message)s")
    uvicorn.Server(
        uvicorn.Config(
            make_app(server, pages=routes(invitations, landing), ready=told, beside=beside),
            http=type("HttpConnection", (HttpConnection,), {"most": most}),
            backlog=BACKLOG,
            ws="none",
            loop="asyncio",
            lifespan="on",
            log_config=None,
            log_level="error",  # a warning for everything that is not HTTP would let anybody fill the log
            access_log=False,  # the audit log is the record; addresses need none
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=_GRACE,
            ssl_certfile=None if at.tls_cert is None else os.fspath(at.tls_cert),
            ssl_keyfile=None if at.tls_key is None else os.fspath(at.tls_key),
        )
    ).run(sockets=[listening])


def _own(state: Path) -> Path:
    """The folder of a server's state, unless everybody may write there.

    What is kept there is of a public file and has no secret to seal it, so that whoever writes it is believed.
    """
    for folder in (state, state / READ):
        with suppress(OSError):  # one that is not there, or that nobody may look into, is nobody's to write to
            if folder.stat().st_mode & 0o002:
                raise ConfigError(
                    f"everybody on this machine may write to {folder}, and so decide what is answered: name a folder "
                    f"that others may not write to, or take their right away with chmod o-w {folder}."
                )
    return state


def _open_limits() -> Limits:
    """For a server that everybody may read: behind a balancer all come from one address, which is not one client."""
    from tacit.serve.admission import Limits

    together = Limits().together
    return Limits(rate=100_000, burst=200_000, together_of_one=together)


def _check_installed() -> None:
    try:
        import starlette
        import uvicorn
    except ImportError:
        raise ConfigError('the server needs Starlette and uvicorn: pip install "tacit-dp[serve]".') from None
    del starlette, uvicorn


def serve_demo(port: int = _PORT, *, say: Callable[[str], None] = print) -> None:
    """Serve the demonstration table on this machine until interrupted; everything is made new and goes with it.

    What its answers start from is bought before, and the link opens on an answer.

    port: where to listen; 0 takes any free one.
    say: told, once the server is up, the address that logs a browser in (once), and keys for each role.
    """
    from tacit.demo import FILE, PICTURED, config
    from tacit.serve.keys import make_key

    with tempfile.TemporaryDirectory(prefix="tacit-demo-") as made, as_file(FILE) as csv:
        folder = Path(made)
        table = config(csv, folder, questions=1000)
        with table.open() as session:
            session.start()
        keys = {role: make_key(folder / KEYS, role, role) for role in ROLES}
        word = secrets.token_urlsafe(24)

        def ready(address: str) -> None:
            say(
                f"The demonstration is at {address}\n"
                f"  open this, once: {address}/enter/{word}\n"
                f"  or log in with a key, as the owner:  {keys['owner']}\n"
                f"                         an analyst:  {keys['analyst']}\n"
                f"                           a reader:  {keys['reader']}\n"
                "What its answers start from is bought; for a table of yours, you would be asked first.\n"
                "Ctrl+C ends it, and nothing stays."
            )

        landing = f"/data/demo?{urlencode({'sql': PICTURED})}"
        serve({"demo": table}, port=port, ready=ready, invitations={word: keys["owner"]}, landing=landing)


def _names(configs: Sequence[str | Path] | Mapping[str, str | Path | Config]) -> dict[str, Path | Config]:
    if isinstance(configs, str | Path):
        configs = [configs]
    if not configs:
        raise ConfigError("a server needs at least one configuration.")
    if isinstance(configs, Mapping):
        return {str(name): Path(config) if isinstance(config, str) else config for name, config in configs.items()}
    named: dict[str, Path | Config] = {_name(Path(path)): Path(path) for path in configs}
    if len(named) < len(configs):
        raise ConfigError("two configurations have the same name; a mapping can give them different ones.")
    return named


def _name(config: Path) -> str:
    """A data set is called like its configuration; one that is called as `tacit init` calls all, like its ledger.

    Where that is no name for a data set, such as one with a blank, it stays `tacit`.
    """
    if config.name != "tacit.toml":
        return config.stem.lower()
    from tacit.config import read_config
    from tacit.serve.served_data import DATASET_NAME

    ledger = read_config(config).ledger.stem.lower()
    return ledger if DATASET_NAME.fullmatch(ledger) else config.stem


def _shown(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _tls(tls_cert: str | Path | None, tls_key: str | Path | None) -> SSLContext | None:
    """What the server speaks TLS with; None where it has no certificate."""
    if (tls_cert is None) != (tls_key is None):
        raise ConfigError("TLS takes both files, the certificate and its key.")
    if tls_cert is None or tls_key is None:
        return None
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(tls_cert, tls_key)
    except OSError:  # SSLError is one
        raise ConfigError("the certificate and its key cannot be read as PEM files that belong together.") from None
    return context


def _bind(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # asyncio turns Nagle's algorithm off only where it is told that this is TCP: 40 ms for every answer otherwise.
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(1024)
    except (OSError, OverflowError):
        raise ConfigError(f"cannot listen on {host}, port {port}: it is taken, or not an address here.") from None
    return listening
