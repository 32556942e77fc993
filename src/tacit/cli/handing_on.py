"""What may leave the house: published answers, synthetic rows, a report; and checking what others handed on."""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.options import analyst_options, check_writable, json_option, opened, owner_options, writing
from tacit.cli.show import escape, say, show, waiting
from tacit.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.publishing import Verified

TABLES = (".csv", ".parquet")
_force = click.option("--force", is_flag=True, help="Replace the file if there is one.")


@click.command()
@click.option("--output", "-o", required=True, metavar="FILE", help="The file to write.")
@_force
@owner_options
def publish(output: str, force: bool, config: str, as_json: bool, accept_rollback: str | None) -> None:
    """Write what was released to a file for anybody.

    Costs nothing. Whoever has it can ask what it determines, for ever, without the data:  tacit ask --published FILE
    "SELECT …"

    \b
    Examples:
      tacit publish -o people-public.tacit
      tacit publish -o people-public.tacit --force --json
    """
    from tacit.publishing import publish as write

    _free(output, force)
    with opened(config, accept_rollback) as session, waiting("Writing"), writing(output) as path:
        digest = write(session, path, overwrite=force)
    _wrote(output, as_json, sha256=digest)


@click.command()
@click.option("--rows", "-n", type=click.IntRange(min=1), required=True, metavar="N", help="How many rows.")
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Public; the same, the same rows."
)
@click.option("--output", "-o", required=True, metavar="FILE", help="A .csv or .parquet file to write.")
@_force
@analyst_options
def synthesize(
    rows: int,
    seed: int,
    output: str,
    force: bool,
    config: str,
    as_json: bool,
    accept_rollback: str | None,
    published: str | None,
) -> None:
    """Make up rows that look like what was released so far.

    Costs nothing. They are drawn from the answers that were released, never from the data: ask first what they should
    get right.

    \b
    Examples:
      tacit synthesize --rows 1000 --seed 7 -o synthetic.csv
      tacit synthesize --rows 1000 -o synthetic.csv --force --json
    """
    if Path(output).suffix not in TABLES:
        raise click.UsageError(f"the file ends in {' or '.join(TABLES)}, not {Path(output).suffix or 'nothing'}.")
    _free(output, force)
    with opened(config, accept_rollback, published) as session, waiting("Drawing rows"):
        made = session.synthetic(rows, seed=seed)
        with writing(output) as path:
            made.save(path, overwrite=True)
    facts: dict[str, Any] = {"rows": rows, "seed": seed}
    note = getattr(made, "note", "")
    if note:
        say(note)
        facts["note"] = note
    _wrote(output, as_json, **facts)


@click.command()
@click.option("--output", "-o", required=True, metavar="FILE", help="The .html file to write.")
@click.option("--title", metavar="TEXT", help="The heading of the page.")
@_force
@analyst_options
def report(
    output: str,
    title: str | None,
    force: bool,
    config: str,
    as_json: bool,
    accept_rollback: str | None,
    published: str | None,
) -> None:
    """Write a page about the budget and the answers.

    Costs nothing. One file, no scripts, nothing loaded from elsewhere; it shows only what was released.

    \b
    Examples:
      tacit report -o report.html
      tacit report -o people.html --title "Our people" --published people-public.tacit
    """
    from tacit.show.report import report as write

    _free(output, force)
    with opened(config, accept_rollback, published) as session, waiting("Drawing"), writing(output) as path:
        write(session, path, title=title)
    _wrote(output, as_json)


@click.command()
@click.argument("file")
@click.option("--config", "-c", metavar="CONFIG", help="Also check that the owner's ledger begins with this very file.")
@click.option("--receipt", type=(int, str), metavar="ENTRY SEAL", help="Also check that it holds this receipt.")
@json_option
def verify(file: str, config: str | None, receipt: tuple[int, str] | None, as_json: bool) -> None:
    """Check a FILE that `tacit publish` wrote.

    Every hash, running total and price in it is derived again, and the hypothesis that its answers make. A receipt is
    the "entry" and "seal" that came with an answer in JSON.

    \b
    Examples:
      tacit verify people-public.tacit
      tacit verify people-public.tacit --config tacit.toml --json
    """
    from tacit.model.facts import Receipt
    from tacit.publishing import verify as check

    given = None if receipt is None else Receipt(*receipt)
    with nullcontext() if config is None else opened(config) as session, waiting("Deriving it again"):
        found = check(file, receipt=given, session=session)
    show(found.to_dict(), as_json, partial(_print_verified, file, found))


def _print_verified(file: str, found: Verified, to: Console) -> None:
    to.print(f"[bold green]{escape(Path(file).name)} holds.[/] {escape(str(found))}")


def _free(output: str, force: bool) -> None:
    """Refuses, before any work, to replace a file: it may be one that cannot be made again."""
    check_writable(output)
    if Path(output).exists() and not force:
        raise ConfigError(f"{output} exists already; --force replaces it.")


def _wrote(output: str, as_json: bool, **facts: Any) -> None:
    size = Path(output).stat().st_size
    if as_json:
        show({"wrote": output, "bytes": size, **facts}, True, lambda to: None)
    else:
        say(f"Wrote {output} ({size:,} bytes). Nothing was spent.")


COMMANDS = (publish, synthesize, report, verify)
