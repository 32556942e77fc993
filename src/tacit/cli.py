"""The command line. Every command has examples in its --help; errors are one sentence on standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit import __version__
from tacit.errors import BudgetExhausted, ConfigError, TacitError
from tacit.model.answer import Answer, Table
from tacit.model.budget import Loss

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.release.plan import Plan
    from tacit.session import Session

EXIT_REFUSED, EXIT_EXHAUSTED = 1, 3  # click itself exits with 2 on wrong usage
_CONFIG = click.option(
    "--config", "-c", default="tacit.toml", show_default=True, envvar="TACIT_CONFIG", help="The configuration file."
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
_ROLLBACK = click.option(
    "--accept-rollback", metavar="REASON", help="Go on with an older copy of the ledger; the reason is recorded in it."
)


class Group(click.Group):
    """Turns every refusal into one sentence and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except TacitError as error:
            click.echo(f"tacit: {error}", err=True)
            ctx.exit(EXIT_EXHAUSTED if isinstance(error, BudgetExhausted) else EXIT_REFUSED)
        except BrokenPipeError:  # the reader of our output has gone, as in `tacit ask … | head -1`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)


@click.group(cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="tacit")
def main() -> None:
    """Ask unlimited questions about a sensitive table under one differential privacy budget.

    \b
    Try it on a real table:       tacit demo
    Describe your own table:      tacit init people.csv      (then edit tacit.toml)
    See what to expect:           tacit plan --rows 48842
    Ask:                          tacit ask "SELECT COUNT(*) FROM data WHERE sex = 'F'"
    See what is left:             tacit status

    Exit codes: 0 answered, 1 refused (nothing was spent unless it says so), 2 wrong usage, 3 budget exhausted.
    """


@main.command()
@click.argument("data")
@click.option("--table", help="The table, where DATA is a database.")
@click.option("--output", "-o", default="tacit.toml", show_default=True, help="The file to write.")
@click.option(
    "--peek-at-values",
    is_flag=True,
    help="Look at the rows to guess bounds and categories. What is written then is exact and no longer private: using "
    "it is your decision to treat it as public.",
)
def init(data: str, table: str | None, output: str, peek_at_values: bool) -> None:
    """Draft a commented configuration for DATA: a file, a SELECT over files, or a postgresql:// address.

    Only the names and types of the columns are looked at; you fill in bounds and categories.

    \b
    Examples:
      tacit init people.csv
      tacit init warehouse.duckdb --table people -o people.toml
      tacit init people.parquet --peek-at-values
    """
    from tacit.draft import draft
    from tacit.trusted.peek import columns, look
    from tacit.trusted.sources import is_address, is_query

    path = Path(output)
    if path.exists():
        raise ConfigError(f"{output} exists already; choose another name with --output.")
    found = columns(data, table)
    seen = look(data, table) if peek_at_values else None
    is_file = not (is_query(data) or is_address(data))
    source = os.path.relpath(data, path.parent) if is_file else data
    ledger = f"{Path(data).stem if is_file else 'data'}.tacit"
    text = draft(source, Path(data).name if is_file else "the data", table, ledger, found, seen)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError:
        raise ConfigError(f"{output} cannot be written.") from None
    click.echo(f"Wrote {output} with {len(found)} columns.")
    if seen is None:
        click.echo("Fill in the values and bins: only the names and types of the columns were looked at.")
    else:
        click.echo("Bounds and categories were read from the rows: keep only what you are content to make public.")


@main.command()
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
@_JSON
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
    """Say which mechanism to open CONFIG with, and what errors to expect. Nothing is bought.

    Only public facts are used: the domain, the budget and the number of rows. The data are not looked at, unless you
    ask for their rows to be counted.

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
        from tacit.trusted.records import Records

        rows = Records.load(settings.data, settings.domain, settings.table).rows
    made = make(
        rows=rows,
        domain=settings.domain,
        budget=budget,
        questions=settings.options.get("questions", 10_000) if questions is None else questions,
        accuracy=accuracy,
        confidence=settings.options.get("confidence", 0.95),
    )
    if svg is not None:
        try:
            made.chart().save(svg)
        except OSError:
            raise ConfigError(f"{svg} cannot be written.") from None
    _show(made.to_dict(), as_json, partial(_print_plan, made))


@main.command()
@click.argument("questions", nargs=-1, required=True)
@_CONFIG
@_JSON
@_ROLLBACK
@click.option("--dry-run", is_flag=True, help="Say the most it could cost, and ask nothing.")
def ask(questions: tuple[str, ...], config: str, as_json: bool, accept_rollback: str | None, dry_run: bool) -> None:
    """Ask one or more QUESTIONS in SQL, about the one table `data`.

    A question that was answered before, or whose answer follows from what was published, is free.

    \b
    Examples:
      tacit ask "SELECT COUNT(*) FROM data WHERE sex = 'F' AND age BETWEEN 20 AND 39"
      tacit ask "SELECT sex, COUNT(*) FROM data GROUP BY sex" --json
      tacit ask --dry-run "SELECT COUNT(*) FROM data WHERE smoker"
    """
    with _open(config, accept_rollback) as session:
        costs = [session.cost_at_most(question) for question in questions]  # refuses a bad one before any is asked
        for question, cost in zip(questions, costs, strict=True):
            if dry_run:
                facts = {"question": question, "cost_at_most": {cost.measure: float(cost)}}
                _show(facts, as_json, partial(_print_cost, question, cost))
                continue
            answer = session.ask(question)
            _show(answer.to_dict(), as_json, partial(_print, answer))


@main.command()
@_CONFIG
@_JSON
@_ROLLBACK
def status(config: str, as_json: bool, accept_rollback: str | None) -> None:
    """Show the budget, what was bought with it, and the domain.

    \b
    Example:
      tacit status --json
    """
    with _open(config, accept_rollback) as session:
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
            "history": [
                {
                    "question": past.question,
                    "cost": float(past.cost),
                    "entry": past.receipt.entry,
                    "seal": past.receipt.seal,
                }
                for past in session.history
            ],
        }
        _show(facts, as_json, partial(_status, session))


@main.command()
@_JSON
def demo(as_json: bool) -> None:
    """Private answers about a real table: 20,190 rows of the RAND Health Insurance Experiment.

    The table is public, so the truth can be shown beside the private answers.
    """
    from tacit.demo import run

    run(None if as_json else _console(), as_json=as_json)


def _open(config: str, accept_rollback: str | None) -> Session:
    from tacit.config import read_config
    from tacit.opening import open_session

    settings = read_config(config)
    return open_session(
        data=settings.data,
        table=settings.table,
        domain=settings.domain,
        budget=settings.budget,
        ledger=settings.ledger,
        accept_rollback=accept_rollback,
        **settings.options,
    )


def _console() -> Console:
    from rich.console import Console

    return Console()


def _show(facts: dict[str, Any], as_json: bool, text: Callable[[Console], None]) -> None:
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False))
    else:
        text(_console())


def _print_cost(question: str, cost: Loss, console: Console) -> None:
    text = f"at most {cost}" if cost.atoms else "free: the answer is already known"
    console.print(f"{question}: {text}", highlight=False, markup=False)


def _print_plan(plan: Plan, console: Console) -> None:
    console.print(plan.table())
    for note in plan.footnotes:
        console.print(note, style="dim", highlight=False, markup=False)
    console.print(f"\n[bold green]{plan.name}[/]: {_escape(plan.reason)}", highlight=False)
    settings = (
        f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}" for key, value in plan.options.items()
    )
    console.print("In [session]: " + ", ".join(settings), highlight=False, markup=False)


def _print(answer: Answer | Table, console: Console) -> None:
    console.print(f"[bold]{_escape(answer.question)}[/]", highlight=False)
    if isinstance(answer, Answer):
        number, _, rest = str(answer).partition(" ")
        console.print(f"[bold green]{number}[/] {rest}", highlight=False)
        return
    from rich.table import Table as Grid

    grid = Grid(*answer.names, caption=answer.caption)
    grid.add_column("count", justify="right")
    most = max(float(answer.values.max()), 1.0)
    grid.add_column("")
    for labels, value in list(answer.rows())[:200]:
        bar = "█" * round(24 * max(value, 0) / most)
        grid.add_row(*map(_escape, labels), f"{value:,.0f}", f"[green]{bar}[/]")
    console.print(grid)


def _status(session: Session, console: Console) -> None:
    from rich.table import Table as Grid

    spent = session.spent.atoms / session.total.atoms
    filled = round(40 * spent)
    console.print(
        f"[bold]{session.rows:,}[/] rows, [bold]{session.domain.size:,}[/] cells; {session.budget}", highlight=False
    )
    console.print(f"mechanism {session.choice.mechanism} ({session.choice.reason.rstrip('.')})", highlight=False)
    console.print(f"[red]{'█' * filled}[/][green]{'░' * (40 - filled)}[/] {spent:.1%} spent", highlight=False)
    console.print(
        f"spent {session.spent} (epsilon so far {session.epsilon_spent:.4g}), left {session.left} of {session.total}",
        highlight=False,
    )
    if session.history:
        grid = Grid("entry", "bought", "cost")
        for past in session.history[-20:]:
            grid.add_row(str(past.receipt.entry), _escape(past.question), str(past.cost))
        console.print(grid)


def _escape(text: str) -> str:
    from rich.markup import escape

    return escape(text)
