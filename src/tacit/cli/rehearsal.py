"""The owner's commands that spend nothing and tell nobody else anything: `tacit check` and `tacit try`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tacit.cli.options import at_terminal, config_anywhere, config_option, json_option
from tacit.cli.show import console, escape, print_answer, print_json, say, show, waiting
from tacit.errors import DataError, TacitError

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.config import Config
    from tacit.load import Source
    from tacit.load.look import Fit
    from tacit.model.attribute import Attribute
    from tacit.session import Session

MUCH_OUTSIDE = 0.02  # the share of the rows from which on values that are not declared are remarked on
ROWS = 10_000


@dataclass
class Findings:
    """What is wrong, which refuses the table, and what may be meant. `passed` has facts that are neither."""

    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    passed: list[str] = field(default_factory=list)


@click.command()
@config_anywhere
@json_option
def check(config: str, as_json: bool) -> None:
    """Say all that is wrong with the configuration and the rows.

    For the owner alone: the figures are exact and come from the rows. Nothing is bought, and no ledger is opened. It
    lists values that are not declared and how many rows have them, rows without a value, how many rows people have, the
    share that clamping moves, and attributes with a single value. The exit code is 1 if the table would be refused.

    \b
    Examples:
      tacit check
      tacit check people.toml --json
    """
    from tacit.config import read_config

    found = Findings()
    try:
        read = read_config(config)
    except TacitError as error:
        found.problems += error.sentence.split("\n")
    else:
        with waiting("Looking at the rows"):
            _inspect(read, found)
    facts = {"owner_only": True, "problems": found.problems, "remarks": found.remarks, "passed": found.passed}
    show(facts, as_json, partial(_print_findings, found))
    click.get_current_context().exit(1 if found.problems else 0)


def _inspect(config: Config, found: Findings) -> None:
    from tacit.load import open_source
    from tacit.load.look import fits

    try:
        source = open_source(config.data, config.table)
        columns = {column.name.lower(): column.name for column in source.describe()}
    except DataError as error:
        found.problems.append(error.sentence)
        return
    for name, seen in fits(source, config.domain):
        if isinstance(seen, DataError):
            found.problems.append(seen.sentence)
        else:
            _inspect_column(name, config.domain[name], seen, found)
    person = config.options.get("person")
    try:
        if person is not None:
            _inspect_people(source, person, config.options["rows_per_person"], found)
        else:
            _suggest_person(source, columns, config, found)
    except (DataError, StopIteration) as error:
        found.problems.append(error.sentence if isinstance(error, DataError) else f"the table has no column {person}.")


def _inspect_column(name: str, attribute: Attribute, seen: Fit, found: Findings) -> None:
    examples = f" ({seen.examples})" if seen.examples else ""
    outside = f"{name}: {_share(seen.outside, seen.rows)} values that are not declared{examples}"
    absent = f"{name}: {_share(seen.missing, seen.rows)} no value"
    bearable = found.remarks if seen.outside >= MUCH_OUTSIDE * seen.rows else found.passed
    if seen.outside and attribute.clamp:
        bearable.append(f"{outside}; clamp = true moves them to the ends.")
    elif seen.outside and attribute.other is not None:
        bearable.append(f"{outside}; they count as {attribute.other!r}.")
    elif seen.outside:
        clamp = ", or clamp = true" if attribute.ordered else ""
        found.problems.append(f'{outside}. Declare them, or add other = "other"{clamp}.')
    if seen.missing and attribute.missing is None:
        found.problems.append(f'{absent}. Add missing = "unknown".')
    elif seen.missing:
        found.passed.append(f"{absent}; they count as {attribute.missing!r}.")
    if seen.used <= 1 and not seen.outside and not seen.missing:
        found.remarks.append(f"{name}: all rows have the same value or bin. It tells nothing: delete [domain.{name}].")


def _share(rows: int, of: int) -> str:
    return f"{rows:,} rows ({100 * rows / of:.2g} %) have"


def _inspect_people(source: Source, person: str, most: int, found: Findings) -> None:
    from tacit.load.look import rows_by_person

    people = rows_by_person(source, person)
    rows, counted = (sum(f(n) * k for n, k in people.items()) for f in (int, lambda n: min(n, most)))
    said = f"{person}: {sum(people.values()):,} people with {max(people, default=0):,} rows at most"
    if counted < rows:
        found.remarks.append(
            f"{said}; rows_per_person = {most} leaves out {_share(rows - counted, rows).removesuffix(' have')}."
        )
    else:
        found.passed.append(f"{said}; all of them count.")
        if people and max(people) < most:
            found.remarks.append(f"rows_per_person = {max(people)} would be enough, with less noise.")


def _suggest_person(source: Source, columns: dict[str, str], config: Config, found: Findings) -> None:
    """Point to a column that seems to say whose row it is, and repeats: that rows are protected may be a mistake."""
    from tacit.cli.draft import says_whose
    from tacit.load.look import rows_by_person

    for lower, name in columns.items():
        if says_whose(name) and lower not in {one.lower() for one in config.domain}:
            people = rows_by_person(source, name)
            if max(people, default=1) > 1:
                rows = sum(n * k for n, k in people.items())
                found.remarks.append(
                    f"{name} repeats: {sum(people.values()):,} different values in {rows:,} rows. Is it a person? "
                    f'Rows are protected now; person = "{name}" in [data] protects persons.'
                )


def _print_findings(found: Findings, to: Console) -> None:
    to.print("[bold]For the owner alone:[/] these figures are exact and come from the rows.")
    marked = {"[red]✗[/]": found.problems, "[yellow]![/]": found.remarks, "[green]✓[/]": found.passed}
    for mark, lines in marked.items():
        for line in lines:
            to.print(f" {mark} {escape(line)}")
    if found.problems:
        number = "1 problem" if len(found.problems) == 1 else f"{len(found.problems)} problems"
        to.print(f"{number}: as it is, the table is refused. Nothing was spent.")
    else:
        to.print("[green]The rows fit what is declared.[/] Nothing was spent.")


# -- a rehearsal -------------------------------------------------------------------------------------------------------


@click.command(name="try")
@click.argument("questions", nargs=-1)
@config_option
@click.option("--rows", type=click.IntRange(100, 1_000_000), default=ROWS, show_default=True, metavar="N")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Decides the made-up rows.")
@json_option
def try_(questions: tuple[str, ...], config: str, rows: int, seed: int, as_json: bool) -> None:
    """Rehearse the whole session on made-up rows.

    The rows are drawn at random from the declared domain; yours are not looked at, and nothing is spent. The bars are
    those that N rows and this budget would have. Without a question, a prompt opens if this is a terminal.

    \b
    Examples:
      tacit try "SELECT COUNT(*) FROM data WHERE sex = 'F'" "SELECT sex, AVG(age) FROM data GROUP BY sex"
      tacit try --rows 500 --json "SELECT COUNT(*) FROM data WHERE sex = 'F'"
    """
    if not questions and (as_json or not at_terminal()):
        raise click.UsageError("give a question; a prompt opens without one, but only on a terminal.")
    with _rehearsal(config, rows, seed) as (session, base):
        if not as_json:
            say(f"A rehearsal: {rows:,} made-up rows, which say nothing about yours. Nothing is spent.")
            say(base or "There is nothing to buy before the first question.")
        for question in questions:
            answer = session.ask(question)
            if as_json:
                print_json({**answer.to_dict(), "rehearsal": True})
            else:
                print_answer(answer, session.rows, console())
        if not questions:
            from tacit.cli.prompt import talk

            talk(session, console())


@contextmanager
def _rehearsal(config: str, rows: int, seed: int) -> Iterator[tuple[Session, str]]:
    import tempfile
    from dataclasses import replace

    from tacit.config import read_config
    from tacit.demo.rehearsal import write_rows
    from tacit.owner.discovery import left_after_discovery
    from tacit.owner.prior import check_prior

    read = read_config(config)
    check_prior(read.options.get("prior"), read.data)  # the real rows are not looked at, by this way either
    read.check_one_table()
    with tempfile.TemporaryDirectory() as name:
        folder, person = Path(name), read.options.get("person")
        made = folder / "made-up.csv"
        write_rows(made, read.domain, rows, seed, person, read.options.get("rows_per_person", 1))
        options = {**read.options, "anchor": folder / "anchor.sqlite"}
        with waiting("Making up rows, and buying what the answers start from"):
            budget = left_after_discovery(read.budget, read.ledger, read.options.get("anchor"))
            rehearsed = replace(read, data=str(made), table=None, budget=budget, ledger=folder / "try.tacit")
            session = replace(rehearsed, options=options).open()
        with session:
            base = session.start()
            yield session, (str(base) if base.what else "")
