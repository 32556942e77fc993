"""The owner's commands before the first question, once the configuration is written: plan, and start."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from tacit.cli.options import (
    Options,
    at_terminal,
    buy_base,
    config_anywhere,
    json_option,
    opened,
    rollback_option,
    units_option,
    writing,
)
from tacit.cli.show import escape, say, show, waiting

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.release.offer import Started
    from tacit.release.plan import Plan


@click.command()
@config_anywhere
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
@config_anywhere
@click.option("--yes", is_flag=True, help="Buy without asking back.")
@click.option("--dry-run", is_flag=True, help="Say what would be bought, for how much, and buy nothing.")
@rollback_option
@units_option
@json_option
def start(config: str, yes: bool, dry_run: bool, accept_rollback: str | None, units: bool, as_json: bool) -> None:
    """Buy what the answers start from, once.

    For most tables that is the largest purchase of all: one noisy release of tables of up to three attributes, or one
    noisy histogram. Most questions are free from then on. It is said first what is bought, for how much of the budget,
    and which errors to expect; then you are asked. What is spent cannot be had back.

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
                    raise click.UsageError(f"say --yes to buy this: {base} Nothing was spent.")
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


COMMANDS = (plan, start)
