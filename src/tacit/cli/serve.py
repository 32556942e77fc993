"""Commands of the server: who may ask, and the server itself."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

import click

from tacit.cli.options import json_option, unlimited_option
from tacit.cli.show import escape, print_grid, say, show

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.serve import Key

_ROLES = ("owner", "analyst", "reader")
_keys = click.option("--keys", default="tacit.keys", show_default=True, metavar="FILE", help="The file of keys.")


@click.command()
@click.argument("configs", nargs=-1)
@click.option("--published", is_flag=True, help="The files are published ones: no data, no keys, nothing is bought.")
@click.option("--owner-url", default="", metavar="URL", help="With --published: the server that has the data.")
@unlimited_option
@click.option("--state", metavar="FOLDER", help="With --published: keep here what takes long to work out of the files.")
@click.option("--config", "-c", "more", multiple=True, metavar="CONFIG", help="The same as CONFIG by its place.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=8470, show_default=True, help="0 takes any free port.")
@click.option(
    "--postgres",
    is_flag=False,
    flag_value="127.0.0.1:5470",
    metavar="[HOST:PORT]",
    help="Speak PostgreSQL's protocol too, at 127.0.0.1:5470 unless said otherwise.",
)
@click.option("--keys", metavar="FILE", help="The file of keys.  [default: tacit.keys beside the first CONFIG]")
@click.option("--tls-cert", metavar="FILE", help="A PEM certificate; with it and --tls-key the server speaks TLS.")
@click.option("--tls-key", metavar="FILE", help="Its private key.")
@click.option("--insecure", is_flag=True, help="Serve other machines without TLS, as behind a proxy that adds it.")
def serve(
    configs: tuple[str, ...],
    published: bool,
    owner_url: str,
    unlimited: bool,
    state: str | None,
    more: tuple[str, ...],
    host: str,
    port: int,
    postgres: str | None,
    keys: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    insecure: bool,
) -> None:
    """Answer over HTTP, in the browser and to PostgreSQL.

    Each CONFIG, tacit.toml by default, is a data set with its own budget, named after its file. Whoever asks needs a
    key: see `tacit token`. By default only this machine is served; --host changes that.

    With --published the files are those of `tacit publish`. Everybody may read them, and what would have to be bought
    is refused, with --owner-url. Any number of such servers may stand behind a balancer. Nothing is written unless
    --state names a folder, so that the next start is quicker.

    \b
    Examples (each goes on until Ctrl+C):
      $ tacit serve
      $ tacit serve people.toml visits.toml --port 8471
      $ tacit serve people.toml --postgres
      $ tacit serve --host 0.0.0.0 --tls-cert cert.pem --tls-key key.pem
      $ tacit serve --published people.json --owner-url https://tacit.example.org
      $ tacit serve --published people.json --state /var/cache/tacit
    """
    files = (*configs, *more)
    if published and keys is not None:
        raise click.UsageError("what is published is for everybody: --published takes no --keys.")
    for option, given in (("--owner-url", owner_url), ("--unlimited", unlimited), ("--state", state is not None)):
        if given and not published:
            raise click.UsageError(f"{option} is for --published.")
    if published and not files:
        raise click.UsageError("--published needs the files: tacit serve --published people.json.")
    with suppress(KeyboardInterrupt):  # which is how it ends
        if published:
            from tacit.serve import serve_published

            run = partial(serve_published, files, host, port, owner_url=owner_url, unlimited=unlimited, state=state)
        else:
            from tacit.serve import serve as serve_data

            run = partial(serve_data, files or ("tacit.toml",), host, port, keys)
        password = "without a password" if published else "with a key as password"

        def ready(address: str) -> None:
            say(f"Serving at {address}; Ctrl+C ends it.")
            if published and not owner_url:
                say("What would have to be bought is refused without saying where: no --owner-url is given.")

        run(
            tls_cert=tls_cert,
            tls_key=tls_key,
            insecure=insecure,
            postgres=_address(postgres),
            postgres_ready=lambda address: say(f"PostgreSQL's clients connect to {address}, {password}."),
            ready=ready,
        )


def _address(given: str | None) -> tuple[str, int] | None:
    """HOST:PORT, or one of the two."""
    if given is None:
        return None
    if given.endswith(".toml"):  # the option has taken what was meant as a configuration
        words = f"write the configurations first: tacit serve {given} --postgres."
        raise click.BadParameter(words, param_hint="--postgres")
    host, colon, port = given.rpartition(":") if not given.endswith("]") else (given, "", "")
    if not colon:
        host, port = ("", given) if given.isdecimal() else (given, "")
    if port and not (port.isdecimal() and int(port) < 65_536):
        raise click.BadParameter(f"{given} is no HOST:PORT, like 127.0.0.1:5470.", param_hint="--postgres")
    return host.strip("[]") or "127.0.0.1", int(port or 5470)


@click.group()
def token() -> None:
    """Make, list and revoke the keys of a server's users.

    A reader gets what is public already, for free; an analyst may spend the budget; an owner also sees who asked what.
    They all share one budget, whoever works together.

    \b
    Examples:
      tacit token make ada --role analyst
      tacit token list
    """


@token.command()
@click.argument("name")
@click.option("--role", type=click.Choice(_ROLES), default="analyst", show_default=True)
@click.option(
    "--quota",
    type=float,
    metavar="SHARE",
    help="The share of each budget that NAME may spend; 1 is all. An analyst has a quarter of what is left by default.",
)
@_keys
@json_option
def make(name: str, role: str, quota: float | None, keys: str, as_json: bool) -> None:
    """Make a key for NAME. It is shown once: only its hash is kept.

    \b
    Examples:
      tacit token make ada
      tacit token make bob --role reader
      tacit token make eve --quota 0.1 --json
    """
    from tacit.serve import make_key

    key = make_key(keys, name, role, quota)  # type: ignore[arg-type]  # click has checked it
    if not as_json:
        say(f"The key of {name}, {role}. Hand it over now: only its hash is kept in {keys}.")
    show({"name": name, "role": role, "quota": quota, "key": key}, as_json, lambda out: out.print(key, markup=False))


@token.command(name="list")
@_keys
@json_option
def list_(keys: str, as_json: bool) -> None:
    """List the keys, without their secrets.

    \b
    Example:
      tacit token list --json
    """
    from tacit.serve import list_keys

    found = list_keys(keys)
    show({"keys": [asdict(key) for key in found]}, as_json, partial(_print_keys, found))


@token.command()
@click.argument("name")
@_keys
@json_option
def revoke(name: str, keys: str, as_json: bool) -> None:
    """Revoke the key of NAME, for a running server too.

    \b
    Example:
      tacit token revoke ada
    """
    from tacit.serve import revoke_key

    key = revoke_key(keys, name)
    show(asdict(key), as_json, lambda out: out.print(f"The key of {name} opens nothing any more.", markup=False))


def _quota(key: Key) -> str:
    return "" if key.quota is None else f"{key.quota:.0%}{' of what is left' if key.of_left else ''}"


def _print_keys(keys: list[Key], out: Console) -> None:
    rows = ((escape(key.name), key.role, _quota(key), key.created, key.revoked or "") for key in keys)
    print_grid(out, ("name", "role", "quota", "made", "revoked"), (), rows)
