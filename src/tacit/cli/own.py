"""The owner's commands before the first question, once the configuration is written: plan, and start."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from tacit.cli.options import (
    Options,
    asked,
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

    from tacit.config import Config
    from tacit.model.budget import Budget
    from tacit.model.started import Started
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
        with waiting("Counting the rows"):
            rows = settings.rows().read().rows
    prior = settings.options.get("prior")
    if prior is not None:
        from tacit.owner.prior import read_prior

        prior = read_prior(prior, settings.domain)
    made = make(
        rows=rows,
        domain=settings.domain,
        budget=budget,
        questions=settings.options.get("questions", 10_000) if questions is None else questions,
        accuracy=accuracy,
        confidence=settings.options.get("confidence", 0.95),
        rows_per_person=settings.options.get("rows_per_person", 1),
        prior_rows=0 if prior is None else prior.counts_on(settings.domain),
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
    from tacit.config import read_config

    if read_config(config).blocks is not None:
        _start_blocks(Options(config, as_json, accept_rollback), yes=yes, dry_run=dry_run)
        return
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


@click.command()
@config_anywhere
@click.option("--epsilon", type=float, required=True, metavar="E", help="What the budget's epsilon shall be.")
@click.option("--delta", type=float, metavar="D", help="And its delta. [default: as it is]")
@click.option("--yes", is_flag=True, help="Raise it without asking back.")
@json_option
def extend(config: str, epsilon: float, delta: float | None, yes: bool, as_json: bool) -> None:
    """Raise the budget of a ledger, for good.

    The decision is an entry of the ledger, and whoever reads what is published sees it. What was bought stays as it is,
    and prices stay what they were: there are more questions at the same price. Everything ever released is from then on
    promised by the new budget, and no longer by the old one. The data are not read.

    \b
    Examples:
      tacit extend --epsilon 8 --yes
      tacit extend --epsilon 8 --delta 1e-8 --yes --json
    """
    from tacit.config import read_config
    from tacit.exact.price import extension
    from tacit.model.budget import Budget
    from tacit.owner.terms import extend as raise_budget
    from tacit.owner.terms import newest_terms

    settings = read_config(config)
    if settings.blocks is not None:
        _extend_blocks(settings, config, epsilon, delta, yes=yes, as_json=as_json)
        return
    made = newest_terms(settings.ledger, settings.options.get("anchor"))
    budget = Budget(epsilon=epsilon, delta=made.now.delta if delta is None else delta)
    whole = made.whole + extension(made.whole, made.now, budget, aside=made.aside)
    times = f"{whole.atoms / made.whole.atoms:.3g}"
    what = f"From {made.now} to {budget}, {times} times as much to spend, for everything that was ever released."
    if not yes:
        if not at_terminal():
            raise click.UsageError(f"say --yes to raise the budget: {what} Nothing was changed.")
        say(what)
        click.confirm("Raise it for good?", abort=True, err=True)
    done = raise_budget(settings.ledger, budget, anchor=settings.options.get("anchor"))
    facts = {
        "budget": {"epsilon": budget.epsilon, "delta": budget.delta},
        "before": {"epsilon": made.now.epsilon, "delta": made.now.delta},
        "total": done.total.to_dict(),
        "entry": done.receipt.entry,
        "seal": done.receipt.seal,
    }
    show(facts, as_json, lambda to: to.print(f"{what} It is entry {done.receipt.entry} of {settings.ledger.name}."))
    _say_budget(settings, config, budget)


def _extend_blocks(
    settings: Config, config: str, epsilon: float, delta: float | None, *, yes: bool, as_json: bool
) -> None:
    """The same for every block of a series, and for those to come."""
    from tacit.blocks.opening import open_series
    from tacit.model.budget import Budget

    with open_series(ledger=settings.ledger, anchor=settings.options.get("anchor")) as blocks:
        now = blocks.budget_of_all
        budget = Budget(epsilon=epsilon, delta=now.delta if delta is None else delta)
        what = f"From {now} to {budget}, of {len(blocks.blocks):,} blocks and those to come, for everything released."
        if not yes:
            if not at_terminal():
                raise click.UsageError(f"say --yes to raise the budget: {what} Nothing was changed.")
            say(what)
            click.confirm("Raise it for good?", abort=True, err=True)
        done = blocks.extend(budget)
        each = {"epsilon": done.budget.epsilon, "delta": done.budget.delta}
        facts = {
            "budget": {"epsilon": budget.epsilon, "delta": budget.delta},
            "budget_of_a_block": each,
            "total": done.total.to_dict(),
            "entry": done.receipt.entry,
            "seal": done.receipt.seal,
        }
        name = settings.ledger.name
        show(facts, as_json, lambda to: to.print(f"{what} It is entry {done.receipt.entry} of {name}."))
    _say_budget(settings, config, budget)


def _say_budget(settings: Config, config: str, budget: Budget) -> None:
    """What has to be written into the configuration now."""
    if settings.budget != budget:
        delta_line = f" and delta = {budget.delta:g}" if budget.delta != settings.budget.delta else ""
        say(f"Write epsilon = {budget.epsilon:g}{delta_line} into [budget] of {config}: it opens with nothing else.")


def _start_blocks(options: Options, *, yes: bool, dry_run: bool) -> None:
    """The same for every block of a series that is not started."""
    from tacit.blocks.series import Series

    with asked(options) as blocks:
        assert isinstance(blocks, Series)
        status = blocks.status()
        new = [one.label for one in (*status.blocks, *status.groups) if not one.started]
        if new and not dry_run:
            said = f"{len(new):,} blocks: {', '.join(new[:8])}{', …' * (len(new) > 8)}."
            if not yes:
                if not at_terminal():
                    raise click.UsageError(f"say --yes to buy what answers start from, of {said} Nothing was spent.")
                say(f"What answers start from, of {said}")
                click.confirm("Buy it now?", abort=True, err=True)
            with waiting("Buying what the answers start from"):
                blocks.start()
        show(
            {"started": [] if dry_run else new, "not_started": new if dry_run else []},
            options.as_json,
            lambda to: to.print(f"{'to start' if dry_run else 'started'}: {escape(', '.join(new) or 'none')}"),
        )


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


COMMANDS = (plan, start, extend)
