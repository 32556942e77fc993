"""The owner's commands for the encoded copy of a table that is larger than memory: encode, and forget."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.options import config_anywhere, json_option
from tacit.cli.show import escape, show, waiting

if TYPE_CHECKING:
    from rich.console import Console


@click.command()
@config_anywhere
@json_option
def encode(config: str, as_json: bool) -> None:
    """Write the encoded copy that held = "engine" counts in.

    It has a row of small whole numbers for each row that counts, one or two bytes for each attribute, and no
    identifiers. It is written once: whatever becomes of the table, all answers are about that one state of it. Opening
    a session writes it too, where it is missing; this command only does it at a time of your choosing. Nothing is
    spent. The copy is as secret as the data.

    \b
    Examples:
      tacit encode
      tacit encode people.toml --json
    """
    from tacit.config import read_config
    from tacit.errors import ConfigError
    from tacit.load import open_source

    wanted = read_config(config).rows()
    if wanted.held == "memory":
        raise ConfigError('a copy is for held = "engine": write that into [data].')
    source = open_source(wanted.data, wanted.table)
    copy = wanted.copy_in(source)
    if copy.exists:
        raise ConfigError(f"{copy.place} is there already; `tacit forget` deletes it.")
    with waiting("Encoding the table") as loading:
        wanted.encode(source, loading)
        rows = copy.rows()
    size = os.path.getsize(copy.place) if os.path.isfile(copy.place) else None
    facts = {"copy": copy.place, "rows": rows, "attributes": len(wanted.domain), "bytes": size}
    show(facts, as_json, partial(_print_copy, facts))


@click.command()
@config_anywhere
@json_option
def forget(config: str, as_json: bool) -> None:
    """Delete the encoded copy of the table.

    The table itself, the ledger and what it has released stay as they are. A session that needs the copy makes it
    again; the ledger takes it only if the table is still what it was.

    \b
    Examples:
      tacit forget
      tacit forget people.toml
    """
    from tacit.config import read_config

    place, there = read_config(config).rows().forget()
    said = f"{place} is deleted." if there else f"There is no copy at {place}."
    show({"copy": place, "deleted": there}, as_json, lambda to: to.print(escape(said)))


def _print_copy(facts: dict[str, Any], to: Console) -> None:
    size = "" if facts["bytes"] is None else f", {facts['bytes'] / 1e6:,.1f} MB"
    text = f"{facts['copy']}: {facts['rows']:,} rows of {facts['attributes']} attributes{size}."
    to.print(escape(text))
    to.print("It is as secret as the data. `tacit forget` deletes it.", style="dim")


COMMANDS = (encode, forget)
