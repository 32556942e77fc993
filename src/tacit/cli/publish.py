"""Commands about what was released, which cost nothing: the budget and its history, published answers, synthetic rows,
a report, and checking what others published.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.options import (
    Options,
    analyst_options,
    asked,
    check_writable,
    json_option,
    opened,
    publisher_options,
    reached,
    reader_options,
    unlimited_option,
    writing,
)
from tacit.cli.show import console, escape, print_grid, print_json, say, show, waiting
from tacit.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.blocks.series import Series
    from tacit.model.domain import Domain
    from tacit.model.status import Past, Status
    from tacit.owner.inspection import Inspected
    from tacit.public import Verified

TABLES = (".csv", ".parquet")
_force = click.option("--force", is_flag=True, help="Replace the file if there is one.")


@click.command()
@reader_options
def status(options: Options) -> None:
    """Show the budget, what was bought with it, and the domain.

    \b
    Examples:
      tacit status
      tacit status --json
      tacit status --server https://tacit.example.org -k my.key
    """
    if options.server is None and options.published is None and options.block is None:
        from tacit.config import read_config

        if read_config(options.config).blocks is not None:
            _show_blocks(options)
            return
    with reached(options, without_data=True, looking=True) as session:
        past, now = session.history, session.status()
        facts = {**now.to_dict(), "history": [_line(one) for one in past]}
        show(facts, options.as_json, partial(_print_status, now, session.domain, past, options.units))


@click.command()
@click.option("--all", "everything", is_flag=True, help="List everything ever bought.")
@click.option("-n", "newest", type=click.IntRange(min=1), default=20, show_default=True, help="How many of the newest.")
@reader_options
def history(options: Options, everything: bool, newest: int) -> None:
    """List what was bought, what it cost, and its receipt.

    Questions are in words, the oldest first. Free answers are not listed. With --json, each line is one document.

    \b
    Examples:
      tacit history
      tacit history -n 5
      tacit history --all --json
      tacit history --published people-public.tacit
      tacit history --server https://tacit.example.org -k my.key
    """
    with reached(options, without_data=True, looking=True) as session:
        past = session.history
    shown = past if everything else past[-newest:]
    if options.as_json:
        for one in shown:
            print_json(_line(one))
    else:
        _print_history(shown, len(past), options.units, console())


@click.command()
@click.option("--output", "-o", required=True, metavar="FILE", help="The file to write.")
@_force
@publisher_options
def publish(options: Options, output: str, force: bool) -> None:
    """Write what was released to a file that anybody may have.

    Costs nothing. Whoever has the file can ask, free of charge and without the data, everything that it determines:
    tacit ask --published FILE "SELECT …"

    \b
    Examples:
      tacit publish -o people-public.tacit
      tacit publish -o people-public.tacit --force --json
      tacit publish -o people-public.tacit --server https://tacit.example.org -k my.key
    """
    _free(output, force)
    with reached(options, without_data=True) as session, waiting("Writing"), writing(output) as path:
        digest = session.publish(path, overwrite=force)
    _wrote(options, output, sha256=digest)


@click.command()
@click.option("--rows", "-n", type=click.IntRange(min=1), required=True, metavar="N", help="How many rows.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Public: it decides the rows.")
@click.option("--output", "-o", required=True, metavar="FILE", help="A .csv or .parquet file to write.")
@_force
@analyst_options
def synthesize(options: Options, rows: int, seed: int, output: str, force: bool) -> None:
    """Make up rows that look like what was released so far.

    Costs nothing. The rows are drawn from the released answers, never from the data, so ask first what they should get
    right.

    \b
    Examples:
      tacit synthesize --rows 1000 --seed 7 -o synthetic.csv
      tacit synthesize --rows 1000 -o synthetic.csv --force --json
    """
    if Path(output).suffix not in TABLES:
        raise click.UsageError(f"the file ends in {' or '.join(TABLES)}, not {Path(output).suffix or 'nothing'}.")
    _free(output, force)
    with opened(options, without_data=True) as session, waiting("Drawing rows"):
        made = session.synthetic(rows, seed=seed)
        with writing(output) as path:
            made.save(path, overwrite=True)
    say(made.note)
    _wrote(options, output, rows=rows, seed=seed, note=made.note)


@click.command()
@click.option("--output", "-o", required=True, metavar="FILE", help="The .html file to write.")
@click.option("--title", metavar="TEXT", help="The heading of the page.")
@_force
@analyst_options
def report(options: Options, output: str, title: str | None, force: bool) -> None:
    """Write a page about the budget and the answers.

    Costs nothing. The page is one file, without scripts, that loads nothing from elsewhere. It shows only what was
    released.

    \b
    Examples:
      tacit report -o report.html
      tacit report -o people.html --title "Our people" --published people-public.tacit
    """
    from tacit.show.report import report as write

    if Path(output).suffix.lower() not in (".html", ".htm"):
        raise click.UsageError(f"a report is a page: the file ends in .html, and {Path(output).name} does not.")
    _free(output, force)
    with opened(options, without_data=True) as session, waiting("Drawing"), writing(output) as path:
        write(session, path, title=title)
    _wrote(options, output)


@click.command()
@click.argument("file")
@click.option("--config", "-c", metavar="CONFIG", help="Also check that the owner's ledger begins with this file.")
@click.option("--receipt", type=(int, str), metavar="ENTRY SEAL", help="Also check that the file holds this receipt.")
@click.option("--anchor", metavar="ANCHOR", help="Where the anchor of a ledger is, if not where it is by default.")
@unlimited_option
@json_option
def verify(
    file: str,
    config: str | None,
    receipt: tuple[int, str] | None,
    anchor: str | None,
    unlimited: bool,
    as_json: bool,
) -> None:
    """Check a FILE that `tacit publish` wrote, or a whole ledger.

    Every hash, running total and price in the file is worked out again, and so is the hypothesis that its answers lead
    to. A receipt is the "entry" and "seal" that came with an answer in JSON.

    Of a ledger, every entry is: that it is as it was written, follows from those before it, and stays within the
    budget; and that the anchor has seen no newer state. The exit code is 1 where anything is wrong.

    \b
    Examples:
      tacit verify people-public.tacit
      tacit verify people-public.tacit --config tacit.toml --json
      tacit verify people.tacit
    """
    from tacit.owner.inspection import inspect, is_ledger

    if is_ledger(Path(file)):
        if config is not None or receipt is not None or unlimited:
            raise click.UsageError(
                "--config, --receipt and --unlimited are for what was published; a ledger is checked by itself."
            )
        with waiting("Deriving it again"):
            ledger = inspect(Path(file), None if anchor is None else Path(anchor))
        show(ledger.to_dict(), as_json, partial(_print_verified, file, ledger))
        return
    from tacit.model.facts import Receipt
    from tacit.public import verify as check

    given = None if receipt is None else Receipt(*receipt)
    with (
        nullcontext() if config is None else opened(Options(config), without_data=True) as session,
        waiting("Deriving it again"),
    ):
        found = check(file, receipt=given, session=session, unlimited=unlimited)
    show(found.to_dict(), as_json, partial(_print_verified, file, found))
    if config is not None:
        say(f"It was compared with the ledger of {config}, which has the same terms and entries.")


def _show_blocks(options: Options) -> None:
    """The status of a series: every block, and what is spent of its budget."""
    from tacit.blocks.series import Series

    with asked(options, looking=True) as blocks:
        assert isinstance(blocks, Series)
        status = blocks.status()
        each, groups = ([one.to_dict() for one in some] for some in (status.blocks, status.groups))
        budget = {"epsilon": blocks.each.epsilon, "delta": blocks.each.delta}
        facts = {"rows": blocks.rows, "budget_of_a_block": budget, "protects": blocks.terms.protects, "blocks": each}
        if blocks.plan:
            facts |= {"groups": groups, "plan": blocks.plan}
        show(facts, options.as_json, partial(_print_blocks, blocks, status))


def _print_blocks(blocks: Series, now: Status, to: Console) -> None:
    """All blocks of a series, the groups of them that have ledgers, and what is spent of each one's budget."""
    to.print(f"[bold]{len(now.blocks):,}[/] blocks, [bold]{blocks.rows:,}[/] rows; {blocks.each} for each block")
    to.print(f"what is protected: {blocks.terms.protects}", style="dim")
    if blocks.plan:
        to.print(blocks.plan, style="dim")
    rows = (
        (escape(one.label), f"{one.rows:,}", "yes" if one.started else "no", f"{one.spent.atoms / one.total.atoms:.1%}")
        for one in (*now.blocks, *now.groups)
    )
    print_grid(to, ("block",), ("rows", "started", "spent"), rows)


def _line(past: Past) -> dict[str, Any]:
    return {
        "question": past.question,
        "cost": float(past.cost),
        "measure": past.cost.measure,
        "percent": past.percent,
        "entry": past.receipt.entry,
        "seal": past.receipt.seal,
    }


def _print_status(now: Status, domain: Domain, past: list[Past], units: bool, to: Console) -> None:
    from tacit.model.budget import percent_of, percent_words
    from tacit.model.description import values_of
    from tacit.model.status import rows_in_words
    from tacit.release.mechanisms import MECHANISMS

    spent = now.spent.atoms / now.total.atoms
    filled = round(40 * spent)
    rows = rows_in_words(now.rows, now.rows_per_person)
    to.print(f"[bold]{rows}[/], [bold]{len(domain):,}[/] columns; {now.budget}")
    to.print(f"mechanism {now.mechanism} ({escape(now.reason.rstrip('.'))})")
    to.print(f"[red]{'█' * filled}[/][green]{'░' * (40 - filled)}[/] {spent:.1%} spent")
    to.print(f"everything released so far amounts to epsilon = {now.epsilon_spent:.4g}")
    if now.continues is not None:
        to.print(f"continues the ledger {now.continues[:16]}…: what that one spent counts here")
    if now.continued_by is not None:
        to.print(f"continued by the ledger {now.continued_by[:16]}…, which has what was left")
    for one in now.extensions:
        to.print(f"raised to {one.budget} on {one.time[:10]} (entry {one.receipt.entry})")
    if now.quota is not None:
        to.print(f"your key has used {percent_of(now.quota.used, now.quota.of)} of its quota")
    if units:
        to.print(f"spent {now.spent}, left {now.left} of {now.total}")
    row = MECHANISMS.get(now.mechanism)  # a server of another version may have others
    if row is not None and row.everything and past:
        to.print(f"{row.everything.capitalize()} was bought: every question is free from now on.")
    for name, attribute in domain.items():
        to.print(f"  {escape(name)}: {attribute.kind}, {escape(values_of(attribute))}", style="dim")
    found = [one for one in past if one.kind == "discovered"]
    if found:
        share = f"{percent_words(sum(one.percent for one in found))} of the budget"
        to.print(f"{len(found):,} purchases of `tacit discover`, before the session: {share}", markup=False)
    rest = [one for one in past if one.kind != "discovered"]
    if rest:
        _print_history(rest[-5:], len(rest), units, to)


def _print_history(shown: list[Past], bought: int, units: bool, to: Console) -> None:
    from tacit.model.budget import percent_words

    if not bought:
        say("Nothing was bought yet.")
        return
    rows = (
        (str(past.receipt.entry), escape(past.question), *((str(past.cost),) * units), percent_words(past.percent))
        for past in shown
    )
    print_grid(to, ("entry", "bought", *(("cost",) * units)), ("of the budget",), rows)
    if len(shown) < bought:
        say(f"The newest {len(shown):,} of {bought:,}; `tacit history --all` lists them all.")


def _print_verified(file: str, found: Verified | Inspected, to: Console) -> None:
    to.print(f"[bold green]{escape(Path(file).name)} holds.[/] {escape(str(found))}")


def _free(output: str, force: bool) -> None:
    """Refuses, before any work, to replace a file: it may be one that cannot be made again."""
    check_writable(output)
    if Path(output).exists() and not force:
        raise ConfigError(f"{output} exists already; --force replaces it.")


def _wrote(options: Options, output: str, **facts: Any) -> None:
    size = Path(output).stat().st_size
    if options.as_json:
        print_json({"wrote": output, "bytes": size, **facts})
    else:
        say(f"Wrote {output} ({size:,} bytes). Nothing was spent.")
