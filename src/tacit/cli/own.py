"""The owner's commands once the configuration is written: plan, start, and later budgets, blocks and copies."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.options import (
    Options,
    asked,
    buy_base,
    check_dry_run,
    config_anywhere,
    config_option,
    confirm,
    json_option,
    may_spend,
    opened,
    rollback_option,
    start_option,
    units_option,
    writing,
)
from tacit.cli.show import advance, escape, say, show, waiting

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.blocks.series import Series
    from tacit.config import Config
    from tacit.model.budget import Budget
    from tacit.model.status import Extension, Started
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

    if dry_run:
        check_dry_run(accept_rollback)
    if read_config(config).blocks is not None:
        _start_blocks(Options(config, as_json, accept_rollback), yes=yes, dry_run=dry_run)
        return
    with opened(Options(config, as_json, accept_rollback), looking=dry_run) as session:
        base = session.base
        if not dry_run and base.cost.atoms:
            if not yes:
                confirm("Buy it now?", f"buy this: {base} Nothing was spent.", str(base))
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
        _confirm_raise(what)
    done = raise_budget(settings.ledger, budget, anchor=settings.options.get("anchor"))
    facts = {"budget": _numbers(budget), "before": _numbers(made.now)}
    _show_raise(what, settings, config, budget, done, facts, as_json)


def _extend_blocks(
    settings: Config, config: str, epsilon: float, delta: float | None, *, yes: bool, as_json: bool
) -> None:
    """Raise the budget of every block of a series, and of those to come."""
    from tacit.blocks.opening import open_series
    from tacit.model.budget import Budget

    with open_series(ledger=settings.ledger, anchor=settings.options.get("anchor")) as blocks:
        now = blocks.budget_of_all
        budget = Budget(epsilon=epsilon, delta=now.delta if delta is None else delta)
        what = f"From {now} to {budget}, of {len(blocks.blocks):,} blocks and those to come, for everything released."
        if not yes:
            _confirm_raise(what)
        done = blocks.extend(budget)
    facts = {"budget": _numbers(budget), "budget_of_a_block": _numbers(done.budget)}
    _show_raise(what, settings, config, budget, done, facts, as_json)


def _confirm_raise(what: str) -> None:
    confirm("Raise it for good?", f"raise the budget: {what} Nothing was changed.", what)


def _numbers(budget: Budget) -> dict[str, float]:
    return {"epsilon": budget.epsilon, "delta": budget.delta}


def _show_raise(
    what: str, settings: Config, config: str, budget: Budget, done: Extension, facts: dict[str, Any], as_json: bool
) -> None:
    """The decision and its receipt, and what has to be written into the configuration now."""
    at = done.receipt
    facts |= {"total": done.total.to_dict(), "entry": at.entry, "seal": at.seal}
    show(facts, as_json, lambda to: to.print(f"{what} It is entry {at.entry} of {settings.ledger.name}."))
    if settings.budget != budget:
        delta_line = f" and delta = {budget.delta:g}" if budget.delta != settings.budget.delta else ""
        say(f"Write epsilon = {budget.epsilon:g}{delta_line} into [budget] of {config}: it opens with nothing else.")


def _start_blocks(options: Options, *, yes: bool, dry_run: bool) -> None:
    """Start every block of a series that is not started."""
    from tacit.blocks.series import Series

    with asked(options) as blocks:
        assert isinstance(blocks, Series)
        status = blocks.status()
        new = [one.label for one in (*status.blocks, *status.groups) if not one.started]
        if new and not dry_run:
            said = f"{len(new):,} blocks: {', '.join(new[:8])}{', …' * (len(new) > 8)}."
            if not yes:
                to_do = f"buy what answers start from, of {said} Nothing was spent."
                confirm("Buy it now?", to_do, f"What answers start from, of {said}")
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
    from tacit.owner.copies import write_copy

    wanted = read_config(config).rows()
    if wanted.held == "memory":
        raise ConfigError('a copy is for held = "engine": write that into [data].')
    with waiting("Encoding the table") as loading:
        copy = write_copy(wanted, loading)
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
