"""`tacit discover`: find categories, ranges and bins privately, and write them into the configuration."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.options import (
    at_terminal,
    check_dry_run,
    check_writable,
    confirm,
    json_option,
    may_spend,
    rollback_option,
    writing,
)
from tacit.cli.show import console, escape, print_grid, show, waiting

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.owner.discovery import Discovery, Offer

_SHARE = 0.1
_WIDE = 110  # characters of a line of the configuration
_DESCRIPTION = re.compile(r"\s*description\s*=")
_HEADER = re.compile(r"\s*\[\s*domain\s*\.\s*(.+?)\s*\]\s*(#.*)?")


@click.command()
@click.argument("config", default="tacit.toml", envvar="TACIT_CONFIG")
@click.option(
    "--share",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=_SHARE,
    show_default=True,
    metavar="S",
    help="The part of the whole budget that it may take.",
)
@click.option("--yes", is_flag=True, help="Buy without asking back.")
@click.option("--dry-run", is_flag=True, help="Say what would be bought, for how much, and buy nothing.")
@click.option("--output", "-o", metavar="FILE", help="Write the configuration there, instead of into CONFIG.")
@rollback_option
@json_option
def discover(
    config: str, share: float, yes: bool, dry_run: bool, output: str | None, accept_rollback: str | None, as_json: bool
) -> None:
    """Find categories, ranges and bins privately, and write them down.

    Of every attribute of the configuration that says `discover = true` it finds the values that enough rows have, the
    bounds of whole numbers and dates, or bins of equal weight, and which columns determine others. What it finds is
    public, and written into the configuration; what it cost is an entry of the ledger that the session goes on with.

    \b
    Examples:
      tacit discover --dry-run
      tacit discover --yes
      tacit discover people.toml --share 0.05 --yes -o people-found.toml
    """
    from tacit.config import read_columns
    from tacit.owner.discovery import discover as buy
    from tacit.owner.discovery import offer

    if dry_run:
        check_dry_run(accept_rollback)
    read = read_columns(config)
    terms: dict[str, Any] = {
        "columns": read.columns,
        "budget": read.budget,
        "ledger": read.ledger,
        "share": share,
        "accept_rollback": accept_rollback,
        **{name: value for name, value in read.options.items() if name != "person"},
    }
    priced = offer(**terms)
    if dry_run:
        show(priced.to_dict(), as_json, partial(_print_offer, priced))
        return
    check_writable(output or config)
    if priced.cost.atoms and not yes:
        if at_terminal():
            _print_offer(priced, console(error=True))
        confirm("Discover it now?", f"buy this: {priced} Nothing was spent.")
    may_spend()
    with waiting("Looking at the columns"):
        found = buy(data=read.data, table=read.table, person=read.options.get("person"), **terms)
    text = with_tables(Path(config).read_text(encoding="utf-8"), found.tables, found.empty)
    with writing(output or config, paid=True) as file:
        file.write_text(text, encoding="utf-8")
    show({"wrote": output or config, **found.to_dict()}, as_json, partial(_print_found, found, output or config))


def _print_offer(priced: Offer, to: Console) -> None:
    rows = [(one.name, one.what, "free" if one.known else one.percent_of(priced.total)) for one in priced.columns]
    print_grid(to, ("column", "what is found"), ("of the budget",), rows)
    to.print(escape(str(priced)))


def _print_found(found: Discovery, wrote: str, to: Console) -> None:
    to.print(escape(str(found)))
    to.print(f"Written into {escape(wrote)}: read it, mend what you know better, then `tacit check` and `tacit start`.")


def with_tables(text: str, tables: Mapping[str, Mapping[str, Any]], empty: Iterable[str] = ()) -> str:
    """The text of a configuration with these attributes in the place of those that were sought; the rest as it is."""
    from tacit.model.domain import toml_key

    lines, inside = list[str](), ""  # `inside` the table of a name that is replaced
    paragraph = False  # and in the paragraph that the table begins with, whose remarks go with it
    for line in text.split("\n"):
        if line.lstrip().startswith("["):
            header = _HEADER.fullmatch(line)
            name = next(iter(tomllib.loads(f"{header[1]} = 0"))) if header else ""
            inside = name if name in tables or name in empty else ""
            paragraph = bool(inside)
            if name in tables:
                fields = (f"{key} = {_wrapped(value)}" for key, value in tables[name].items())
                lines += [f"[domain.{toml_key(name)}]   # discovered", *fields]
                continue
            if inside:
                lines.append(f"# {name}: no value of it is had by enough rows. List them, or leave it out.")
                lines.append(f"# [domain.{toml_key(name)}]")
                continue
        if inside and _DESCRIPTION.match(line):
            lines.append(line)
            continue
        blank = not line.strip()
        paragraph = paragraph and not blank
        if not inside or blank or (line.lstrip().startswith("#") and not paragraph):
            lines.append(line)
    return "\n".join(lines)


def _wrapped(value: Any) -> str:
    """A value of TOML, a long list over several lines."""
    from tacit.model.domain import toml_value

    whole = toml_value(value)
    if not isinstance(value, list) or len(whole) <= _WIDE:
        return whole
    rows, row = list[str](), ""
    for item in map(toml_value, value):
        if len(row) + len(item) > _WIDE:
            rows.append(row.rstrip())
            row = ""
        row += f"{item}, "
    return "[\n" + "".join(f"    {one}\n" for one in (*rows, row.rstrip())) + "]"
