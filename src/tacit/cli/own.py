"""The owner's commands before the first question: draft a configuration, plan, and start.

The names and types of columns are taken to be public. Their values are not: they are looked at only when the owner says
so.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tacit.cli.options import (
    Options,
    at_terminal,
    buy_base,
    json_option,
    opened,
    rollback_option,
    units_option,
    writing,
)
from tacit.cli.show import escape, print_json, say, show, waiting
from tacit.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.load.columns import TableColumn
    from tacit.load.engines import Seen
    from tacit.release.offer import Started
    from tacit.release.plan import Plan


@click.command()
@click.argument("data")
@click.option("--table", help="The table to read, if DATA is a database.")
@click.option("--output", "-o", default="tacit.toml", show_default=True, help="The file to write.")
@click.option(
    "--peek-at-values",
    is_flag=True,
    help="Look at the rows to guess bounds and categories. What is written then is exact and no longer private: using "
    "it is your decision to treat it as public.",
)
@json_option
def init(data: str, table: str | None, output: str, peek_at_values: bool, as_json: bool) -> None:
    """Draft a commented configuration for DATA.

    DATA is a file, a SELECT over files, or a postgresql:// address. Only the names and types of the columns are looked
    at; you fill in bounds and categories.

    \b
    Examples:
      tacit init people.csv
      tacit init warehouse.duckdb --table people -o people.toml
      tacit init people.parquet --peek-at-values
    """
    from tacit.load import is_address, is_query, open_source
    from tacit.load.engines import look

    path = Path(output)
    if path.exists():
        raise ConfigError(f"{output} exists already; choose another name with --output.")
    with waiting("Looking at the columns"):
        found = open_source(data, table).describe()
        seen = look(data, table) if peek_at_values else None
    is_file = not (is_query(data) or is_address(data))
    source = os.path.relpath(data, path.parent) if is_file else data
    ledger = f"{Path(data).stem if is_file else 'data'}.tacit"
    text = draft(source, Path(data).name if is_file else "the data", table, ledger, found, seen)
    with writing(output) as file:
        file.write_text(text, encoding="utf-8")
    say(f"Wrote {output} with {len(found)} columns.")
    if seen is None:
        say("Fill in the values and bins: only the names and types of the columns were looked at.")
    else:
        say("Bounds and categories were read from the rows: keep only what you are content to make public.")
    if as_json:
        names = [column.name for column in found]
        print_json({"wrote": output, "columns": names, "peeked": peek_at_values})


@click.command()
@click.argument("config", default="tacit.toml", envvar="TACIT_CONFIG")
@click.option("--rows", type=int, metavar="N", help="How many rows there are.")
@click.option("--count-rows", is_flag=True, help="Count the rows of the configured data: n is public by convention.")
@click.option(
    "--questions", type=int, metavar="K", help="About how many will be asked. [default: as configured, or 10,000]"
)
@click.option("--accuracy", type=float, metavar="A", help="The error wanted, as a share of the rows: 0.01 is ±1 %.")
@click.option("--epsilon", type=float, metavar="E", help="Instead of the configured epsilon.")
@click.option("--svg", metavar="FILE", help="Also draw the errors against epsilon and the number of questions.")
@json_option
def plan(
    config: str,
    rows: int | None,
    count_rows: bool,
    questions: int | None,
    accuracy: float | None,
    epsilon: float | None,
    svg: str | None,
    as_json: bool,
) -> None:
    """Say which mechanism to use, and what errors to expect.

    Nothing is bought, and only public facts are used: the domain, the budget and the number of rows. The data are not
    looked at, unless you ask for their rows to be counted.

    \b
    Examples:
      tacit plan --rows 48842
      tacit plan people.toml --rows 48842 --questions 10000 --accuracy 0.01
      tacit plan --count-rows --epsilon 0.5 --svg plan.svg
    """
    from tacit.config import read_config
    from tacit.model.budget import Budget
    from tacit.release.plan import plan as make

    if (rows is None) != count_rows:
        raise click.UsageError("give the number of rows with --rows N, or have them counted with --count-rows.")
    settings = read_config(config)
    budget = settings.budget if epsilon is None else Budget(epsilon=epsilon, delta=settings.budget.delta)
    if rows is None:
        from tacit.load import open_source
        from tacit.trusted.cells import read_records

        with waiting("Counting the rows"):
            whose = {k: v for k, v in settings.options.items() if k in ("person", "rows_per_person")}
            rows = read_records(open_source(settings.data, settings.table), settings.domain, **whose).rows
    made = make(
        rows=rows,
        domain=settings.domain,
        budget=budget,
        questions=settings.options.get("questions", 10_000) if questions is None else questions,
        accuracy=accuracy,
        confidence=settings.options.get("confidence", 0.95),
        rows_per_person=settings.options.get("rows_per_person", 1),
    )
    if svg is not None:
        with writing(svg) as file:
            made.chart().save(file)
    show(made.to_dict(), as_json, partial(_print_plan, made))


@click.command()
@click.argument("config", default="tacit.toml", envvar="TACIT_CONFIG")
@click.option("--yes", is_flag=True, help="Buy without asking back.")
@click.option("--dry-run", is_flag=True, help="Say what would be bought, for how much, and buy nothing.")
@rollback_option
@units_option
@json_option
def start(config: str, yes: bool, dry_run: bool, accept_rollback: str | None, units: bool, as_json: bool) -> None:
    """Buy what the answers start from, once.

    For most tables that is the largest purchase of all: noisy tables of the attributes and of their pairs, or one noisy
    histogram. Most questions are free from then on. It is said first what is bought, for how much of the budget, and
    which errors to expect; then you are asked. What is spent cannot be had back.

    \b
    Examples:
      tacit start --dry-run
      tacit start --yes
      tacit start people.toml --yes --json
    """
    with opened(Options(config, as_json, accept_rollback)) as session:
        base = session.base
        if not dry_run and base.cost.atoms:
            if not yes:
                if not at_terminal():
                    raise click.UsageError(f"say --yes to buy this: {base}")
                say(str(base))
                click.confirm("Buy it now?", abort=True, err=True)
            base = buy_base(session)
        show(base.to_dict(), as_json, partial(_print_base, base, units))


def _print_base(base: Started, units: bool, to: Console) -> None:
    to.print(escape(str(base)))
    if units:
        to.print(f"  cost {base.cost}")


def _print_plan(plan: Plan, to: Console) -> None:
    to.print(plan.table(), soft_wrap=False)
    for note in plan.footnotes:
        to.print(escape(note), style="dim")
    to.print(f"\n[bold green]{plan.name}[/]: {escape(plan.reason)}")
    settings = (
        f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}" for key, value in plan.options.items()
    )
    to.print("In [session]: " + ", ".join(settings), markup=False)


# -- the draft of a configuration: templates/tacit.toml ----------------------------------------------------------------


def draft(
    source: str,
    shown: str,
    table: str | None,
    ledger: str,
    columns: tuple[TableColumn, ...],
    seen: Mapping[str, Seen] | None,
) -> str:
    """The text of a configuration. `seen` holds what was read from the rows, if the owner allowed it."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from tacit.model.domain import toml_key, toml_value

    made = Environment(
        loader=PackageLoader("tacit.cli"), undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    made.filters |= {"toml": toml_value, "whole_bins": _whole_bins, "edges": _edges}
    found = [(toml_key(column.name), column.type, (seen or {}).get(column.name)) for column in columns]
    template = made.get_template("tacit.toml")
    peeked = seen is not None
    return template.render(source=source, shown=shown, table=table, ledger=ledger, columns=found, peeked=peeked)


def _whole_bins(seen: Seen) -> tuple[int, int, int]:
    """Round bounds of whole numbers, and the width of about 40 bins."""
    low, high = float(seen.low), float(seen.high)
    width = max(1, round(_step((high - low) / 40)))
    return math.floor(low / width) * width, math.floor(high / width) * width + width - 1, width


def _edges(seen: Seen) -> list[float]:
    """Round edges of about 10 bins."""
    low, high = float(seen.low), float(seen.high)
    step = _step((high - low) / 10)
    return [float(f"{i * step:.12g}") for i in range(math.floor(low / step), math.floor(high / step) + 2)]


def _step(wanted: float) -> float:
    """A round width of at least so much: round bounds say less than exact ones."""
    from tacit.show.chart.axes import round_number

    return round_number(wanted, up=True) if wanted > 0 else 1.0


COMMANDS = (init, plan, start)
