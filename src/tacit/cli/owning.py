"""The owner's commands: describe a table, plan, see what was spent and bought."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.options import analyst_options, json_option, opened, writing
from tacit.cli.show import escape, say, show, waiting
from tacit.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.release.plan import Plan
    from tacit.session import Past, Session


@click.command()
@click.argument("data")
@click.option("--table", help="The table, where DATA is a database.")
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
    from tacit.draft import draft
    from tacit.load.peek import look
    from tacit.load.source import is_address, is_query, open_source

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
        show({"wrote": output, "columns": names, "peeked": peek_at_values}, True, lambda to: None)


@click.command()
@click.argument("config", default="tacit.toml", envvar="TACIT_CONFIG")
@click.option("--rows", type=int, metavar="N", help="How many rows there are.")
@click.option("--count-rows", is_flag=True, help="Count the rows of the configured data: n is public by convention.")
@click.option(
    "--questions", type=int, metavar="K", help="About how many questions. [default: as configured, or 10,000]"
)
@click.option(
    "--accuracy", type=float, metavar="A", help="The error wanted for all of them, of the rows: 0.01 is ±1 %."
)
@click.option("--epsilon", type=float, metavar="E", help="Another epsilon than the configured one.")
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
        from tacit.load.source import open_source
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
@analyst_options
def status(config: str, as_json: bool, accept_rollback: str | None, published: str | None) -> None:
    """Show the budget, what was bought with it, and the domain.

    \b
    Examples:
      tacit status
      tacit status --json
    """
    with opened(config, accept_rollback, published) as session:
        past = session.history
        facts = {
            "rows": session.rows,
            "cells": session.domain.size,
            "budget": {"epsilon": session.budget.epsilon, "delta": session.budget.delta},
            "mechanism": session.choice.mechanism,
            "reason": session.choice.reason,
            "total": {session.total.measure: float(session.total)},
            "spent": {session.spent.measure: float(session.spent)},
            "left": {session.left.measure: float(session.left)},
            "epsilon_spent": session.epsilon_spent,
            "history": [_line(one) for one in past],
        }
        show(facts, as_json, partial(_print_status, session, past))


@click.command()
@click.option("--all", "everything", is_flag=True, help="Everything ever bought.")
@click.option("-n", "newest", type=click.IntRange(min=1), default=20, show_default=True, help="The newest so many.")
@analyst_options
def history(
    everything: bool, newest: int, config: str, as_json: bool, accept_rollback: str | None, published: str | None
) -> None:
    """List what was bought, what it cost, and its receipt.

    Each question in words, the oldest first. Free answers cost nothing and are not listed. With --json, one document a
    line.

    \b
    Examples:
      tacit history
      tacit history -n 5
      tacit history --all --json
      tacit history --published people-public.tacit
    """
    with opened(config, accept_rollback, published) as session:
        past = session.history
    shown = past if everything else past[-newest:]
    if as_json:
        for one in shown:
            show(_line(one), True, lambda to: None)
        return
    show({}, False, partial(_print_history, shown, len(past)))


def _line(past: Past) -> dict[str, Any]:
    return {
        "question": past.question,
        "cost": float(past.cost),
        "measure": past.cost.measure,
        "entry": past.receipt.entry,
        "seal": past.receipt.seal,
    }


def _print_plan(plan: Plan, to: Console) -> None:
    to.print(plan.table(), soft_wrap=False)
    for note in plan.footnotes:
        to.print(escape(note), style="dim")
    to.print(f"\n[bold green]{plan.name}[/]: {escape(plan.reason)}")
    settings = (
        f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}" for key, value in plan.options.items()
    )
    to.print("In [session]: " + ", ".join(settings), markup=False)


def _print_status(session: Session, past: list[Past], to: Console) -> None:
    spent = session.spent.atoms / session.total.atoms
    filled = round(40 * spent)
    to.print(f"[bold]{session.rows:,}[/] rows, [bold]{session.domain.size:,}[/] cells; {session.budget}")
    to.print(f"mechanism {session.choice.mechanism} ({escape(session.choice.reason.rstrip('.'))})")
    to.print(f"[red]{'█' * filled}[/][green]{'░' * (40 - filled)}[/] {spent:.1%} spent")
    to.print(
        f"spent {session.spent} (epsilon so far {session.epsilon_spent:.4g}), left {session.left} of {session.total}"
    )
    if session.choice.mechanism == "histogram" and past:
        to.print("All was bought at once, one noisy histogram: every question is free from now on.")
    for name, attribute in session.domain.items():
        to.print(f"  {escape(name)}: {attribute.kind}, {escape(attribute.takes)}", style="dim")
    if past:
        _print_history(past[-5:], len(past), to)


def _print_history(shown: list[Past], bought: int, to: Console) -> None:
    from rich.table import Table as Grid

    if not bought:
        say("Nothing was bought yet.")
        return
    grid = Grid("entry", "bought", "cost")
    for past in shown:
        grid.add_row(str(past.receipt.entry), escape(past.question), str(past.cost))
    to.print(grid, soft_wrap=False)
    if len(shown) < bought:
        say(f"The newest {len(shown):,} of {bought:,}; `tacit history --all` lists them all.")


BEFORE, AFTER = (init, plan), (status, history)  # the first question
