"""The owner's commands that spend nothing and tell nobody else anything: `tacit check` and `tacit try`.

The first looks at the rows; the second looks at none, and makes up rows of the declared domain.
"""

from __future__ import annotations

import datetime as dt
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
    import numpy as np
    from rich.console import Console

    from tacit.config import Config
    from tacit.load import Source
    from tacit.load.look import Fit
    from tacit.model.attribute import Attribute
    from tacit.model.domain import Domain
    from tacit.model.values import Value
    from tacit.session import Session

MUCH_OUTSIDE = 0.02  # the share of the rows from which on values that are not declared are remarked on
_ROWS = 10_000
TILT = 0.7  # below 1, shares of made-up values differ much from each other: as in most tables


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
    outside = f"{name}: {_share(seen.outside, seen.rows)} have values that are not declared{examples}"
    absent = f"{name}: {_share(seen.missing, seen.rows)} have no value"
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
    return f"{rows:,} rows ({100 * rows / of:.2g} %)"


def _inspect_people(source: Source, person: str, most: int, found: Findings) -> None:
    from tacit.load.look import rows_by_person

    people = rows_by_person(source, person)
    rows, counted = (sum(f(n) * k for n, k in people.items()) for f in (int, lambda n: min(n, most)))
    said = f"{person}: {sum(people.values()):,} people with {max(people, default=0):,} rows at most"
    if counted < rows:
        found.remarks.append(f"{said}; rows_per_person = {most} leaves out {_share(rows - counted, rows)}.")
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
@click.option("--rows", type=click.IntRange(100, 1_000_000), default=_ROWS, show_default=True, metavar="N")
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
    from tacit.owner.discovery import left_after_discovery
    from tacit.owner.prior import check_prior

    read = read_config(config)
    check_prior(read.options.get("prior"), read.data)  # the real rows are not looked at, by this way either
    read.check_one_table()
    with tempfile.TemporaryDirectory() as name:
        folder, person = Path(name), read.options.get("person")
        made = folder / "made-up.csv"
        _write_rows(made, read.domain, rows, seed, person, read.options.get("rows_per_person", 1))
        options = {**read.options, "anchor": folder / "anchor.sqlite"}
        with waiting("Making up rows, and buying what the answers start from"):
            budget = left_after_discovery(read.budget, read.ledger, read.options.get("anchor"))
            rehearsed = replace(read, data=str(made), table=None, budget=budget, ledger=folder / "try.tacit")
            session = replace(rehearsed, options=options).open()
        with session:
            base = session.start()
            yield session, (str(base) if base.what else "")


def _write_rows(path: Path, domain: Domain, rows: int, seed: int, person: str | None, rows_per_person: int) -> None:
    """Write made-up rows with the columns that the domain is read from, and the person's.

    Nobody's data: drawn at random from what is public.
    """
    import csv

    import numpy as np

    rng = np.random.default_rng(seed)
    columns = {name: _column(attribute, rows, rng) for name, attribute in domain.items() if attribute.part is None}
    for name in _sources(domain):
        if name not in columns:
            columns[name] = _times(dt.date(2020, 1, 1), dt.date(2023, 12, 31), rows, rng)
        else:  # the day is that of the declared date; its hour is made up
            hours = rng.integers(0, 24, rows)
            days = columns[name] if _may_miss(domain, name) else _filled(columns[name])
            columns[name] = [f"{day} {hour:02d}:00:00" if day else day for day, hour in zip(days, hours, strict=True)]
    if person is not None:
        columns[person] = [str(i // rows_per_person) for i in range(rows)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))


def _sources(domain: Domain) -> Iterator[str]:
    """The columns of times of which parts are declared; spelled like the attribute where there is one of that name."""
    declared = {name.lower(): name for name in domain}
    wanted = {attribute.of for attribute in (domain[name] for name in domain) if attribute.of is not None}
    yield from dict.fromkeys(declared.get(of.lower(), of) for of in sorted(wanted))


def _may_miss(domain: Domain, column: str) -> bool:
    """Whether all parts of a column of times have a label for rows without a value: else no such row is made up."""
    parts = (domain[name] for name in domain if (domain[name].of or "").lower() == column.lower())
    return all(part.missing is not None for part in parts)


def _filled(values: list[str]) -> list[str]:
    some = next(filter(None, values), "2020-01-01")
    return [value or some for value in values]


def _column(attribute: Attribute, rows: int, rng: np.random.Generator) -> list[str]:
    """Values of one attribute; each has a share of its own. What lies outside an ordered one is not made up."""
    import numpy as np

    from tacit.model.values import Listed

    places = [i for i in range(attribute.size) if i != attribute.other_index or isinstance(attribute.values, Listed)]
    shares = rng.dirichlet(np.full(len(places), TILT)) if len(places) <= 10_000 else None
    drawn = rng.choice(len(places), rows, p=shares)
    written = {i: _written(attribute.typical(places[i])) for i in np.unique(drawn).tolist()}
    return [written[i] for i in drawn.tolist()]


def _written(value: Value | None) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _times(first: dt.date, last: dt.date, rows: int, rng: np.random.Generator) -> list[str]:
    days, hours = rng.integers(first.toordinal(), last.toordinal() + 1, rows), rng.integers(0, 24, rows)
    return [
        f"{dt.date.fromordinal(day)} {hour:02d}:00:00" for day, hour in zip(days.tolist(), hours.tolist(), strict=True)
    ]
