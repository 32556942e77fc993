"""The owner's commands of a table that grows: one more block, and what there is of all of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from tacit.cli.options import config_option, json_option, may_spend, rollback_option, start_option
from tacit.cli.show import advance, escape, print_grid, say, show, waiting

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.blocks.series import Series
    from tacit.model.status import Status


@click.command()
@click.argument("source", required=False, metavar="[FILE]")
@click.option("--label", metavar="LABEL", help="What the block is called in questions, like 2026-03.")
@click.option("--table", metavar="TABLE", help="The table, where FILE is a database or an address.")
@config_option
@start_option
@rollback_option
@json_option
def append(
    source: str | None,
    label: str | None,
    table: str | None,
    config: str,
    start: bool,
    accept_rollback: str | None,
    as_json: bool,
) -> None:
    """Add the rows of FILE to a series, as a block of their own.

    The configuration has a section [blocks]. Each block has a ledger and the whole budget for itself, since no row is
    in two of them: labels and numbers of rows are public. The start of a block is drawn to what was released of the
    block before it. With a column in [blocks], the configured table is split by it, and what is new is appended.

    Late rows and corrections of a block are a block of their own.

    \b
    Examples:
      tacit append january.csv --label 2026-01 -c months.toml
      tacit append february.csv --label 2026-02 --start -c months.toml
      tacit ask "SELECT block, COUNT(*) FROM data WHERE smoker GROUP BY block" -c months.toml
    """
    from tacit.config import read_config

    settings = read_config(config)
    column = None if settings.blocks is None else settings.blocks.column
    if column is None and (not source or not label):
        raise click.UsageError("give the file and its --label.")
    if column is not None and label is not None:
        raise click.UsageError(f"the labels of blocks are the values of {column}: --label is not given.")
    with settings.series(accept_rollback=accept_rollback, progress=advance) as blocks:
        may_spend()
        with waiting("Reading the rows"):
            if column is not None:
                added = blocks.append_by(source or settings.data, column, table=table or settings.table, start=start)
            else:
                added = [str(label)]
                blocks.append(source, added[0], table=table, start=start)
        facts = {"appended": added, "blocks": len(blocks.blocks), "rows": blocks.rows}
        show(facts, as_json, partial(_print_added, added, blocks, start))


def _print_added(added: list[str], blocks: Series, started: bool, to: Console) -> None:
    sizes = blocks.sizes
    for label in added:
        to.print(f"[bold]{escape(label)}[/]: {sizes[label]:,} rows")
    to.print(f"{len(sizes):,} blocks, {blocks.rows:,} rows; {blocks.each} for each block")
    if added and not started:
        base = blocks.block(added[-1]).base
        if base.cost.atoms:
            say(f"{base} `tacit start` buys it, of every block that has not got it.")


def print_blocks(blocks: Series, now: Status, to: Console) -> None:
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


COMMANDS = (append,)
