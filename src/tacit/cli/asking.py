"""The analyst's commands: questions in SQL, tables, curves and quantiles; of the owner's table or a published file."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.options import analyst_options, check_writable, condition, opened, svg_option, where_option, writing
from tacit.cli.show import console, escape, print_answer, print_quantiles, say, show, waiting
from tacit.cli.statements import Statement, moved, read_statements
from tacit.errors import TacitError

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.model.answer import Table
    from tacit.session import DryRun, Session

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)  # shown below a curve


@click.command()
@click.argument("questions", nargs=-1)
@click.option("--file", "-f", metavar="FILE", help="Statements separated by semicolons; - reads standard input.")
@click.option("--dry-run", is_flag=True, help="Say whether it is known and the most it could cost; ask nothing.")
@analyst_options
def ask(
    questions: tuple[str, ...],
    file: str | None,
    dry_run: bool,
    config: str,
    as_json: bool,
    accept_rollback: str | None,
    published: str | None,
) -> None:
    """Ask QUESTIONS in SQL, about the one table `data`.

    A question that was answered before, or whose answer follows from what was published, is free. All are checked
    before any is asked. Without a question, on a terminal, a prompt opens: \\h there says what it understands.

    \b
    Examples:
      tacit ask "SELECT COUNT(*) FROM data WHERE sex = 'F' AND age BETWEEN 20 AND 39"
      tacit ask "SELECT sex, COUNT(*) FROM data GROUP BY sex" --json
      tacit ask --dry-run "SELECT COUNT(*) FROM data WHERE smoker"
      tacit ask --file queries.sql --json
      tacit ask --published people-public.tacit "SELECT COUNT(*) FROM data WHERE sex = 'F'"
    """
    statements = [Statement(question) for question in questions] + ([] if file is None else read_statements(file))
    if not statements and (dry_run or as_json or not (sys.stdin.isatty() and sys.stdout.isatty())):
        raise click.UsageError("give a question, or --file; only on a terminal does a prompt open without one.")
    with opened(config, accept_rollback, published) as session:
        if not statements:
            from tacit.cli.prompt import talk

            talk(session, console())
            return
        costs = []
        for statement in statements:  # refuses a bad one before any is asked
            with placed(statement):
                costs.append(session.dry_run(statement.text))
        if dry_run:
            for statement, cost in zip(statements, costs, strict=True):
                show(_dry_facts(statement, cost), as_json, partial(print_dry_run, statement, cost))
            return
        first: AbstractContextManager[object] = waiting("Working out the answer")  # the first may buy a warm start
        with all_told(session):
            for statement in statements:
                with placed(statement), first:
                    answer = session.ask(statement.text)
                first = nullcontext()
                show(answer.to_dict(), as_json, partial(print_answer, answer, session.rows))


@click.command()
@click.argument("names", nargs=-1, required=True)
@where_option
@svg_option
@click.option("--csv", "csv_file", metavar="FILE", help="Also write the rows to a CSV file.")
@analyst_options
def table(
    names: tuple[str, ...],
    where: str | None,
    svg: str | None,
    csv_file: str | None,
    config: str,
    as_json: bool,
    accept_rollback: str | None,
    published: str | None,
) -> None:
    """Count all combinations of values of the attributes NAMES.

    A marginal, or GROUP BY table, bought as a whole.

    \b
    Examples:
      tacit table sex age
      tacit table age --where "sex = 'F' AND smoker" --svg ages.svg
      tacit table sex smoker --csv counts.csv --json
    """
    if svg is not None and len(names) > 2:
        raise click.UsageError(f"a picture shows one or two attributes, not {len(names)}.")
    check_writable(svg, csv_file)
    with opened(config, accept_rollback, published) as session:
        with conditioned(where), waiting("Working out the table"):
            found = session.table(*names, where=condition(where))
        if svg is not None:
            with writing(svg, paid=True) as path:
                found.chart().save(path)
        if csv_file is not None:
            _write_csv(found, csv_file)
        show(found.to_dict(), as_json, partial(print_answer, found, session.rows))


@click.command()
@click.argument("name")
@svg_option
@analyst_options
def cdf(
    name: str, svg: str | None, config: str, as_json: bool, accept_rollback: str | None, published: str | None
) -> None:
    """Draw how the rows spread over the ordered attribute NAME.

    The curve is the share of the rows up to each value, and the quantiles are listed below it. The first question about
    the ranges of an attribute buys them all for a tenth of the budget; everything else about them is free from then on.
    The dotted band holds for the whole curve at once.

    \b
    Examples:
      tacit cdf age
      tacit cdf age --svg ages.svg
      tacit cdf age --json
    """
    check_writable(svg)
    with opened(config, accept_rollback, published) as session:
        with all_told(session), waiting("Working out the curve"):
            found = session.cdf(name)
            quantiles = [] if as_json else [session.quantile(name, share) for share in QUANTILES]
        if svg is not None:
            with writing(svg, paid=True) as path:
                found.chart().save(path)
        show(found.to_dict(), as_json, partial(print_answer, found, session.rows))
        if quantiles:
            print_quantiles(quantiles, console())


@click.command()
@click.argument("name")
@click.argument("shares", nargs=-1, required=True, type=float, metavar="Q...")
@where_option
@analyst_options
def quantile(
    name: str,
    shares: tuple[float, ...],
    where: str | None,
    config: str,
    as_json: bool,
    accept_rollback: str | None,
    published: str | None,
) -> None:
    """Find quantiles of NAME: 0.5 is the median.

    Each is the bin below the end of which the share Q of the rows lies, with its interval.

    \b
    Examples:
      tacit quantile age 0.5
      tacit quantile age 0.25 0.5 0.75 --json
      tacit quantile age 0.5 --where "sex = 'F'"
    """
    with opened(config, accept_rollback, published) as session:
        with all_told(session), conditioned(where), waiting("Working out the quantiles"):
            found = [session.quantile(name, share, where=condition(where)) for share in shares]
        if as_json:
            for one in found:
                show(one.to_dict(), True, lambda to: None)
            return
        to = console()
        to.print(f"[bold]quantiles of {escape(name + (f' where {where}' if where else ''))}[/]")
        print_quantiles(found, to)
        from tacit.model.answer import cost_words

        to.print(f"{found[0].source}, {cost_words(found[0].cost)}", style="dim")


def _dry_facts(statement: Statement, cost: DryRun) -> dict[str, Any]:
    most = cost.cost_at_most
    return {
        "question": statement.text,
        "known": cost.known,
        "cost_at_most": {most.measure: float(most)},
        "why": cost.why,
    }


def print_dry_run(statement: Statement, cost: DryRun, to: Console) -> None:
    """What asking would mean."""
    text = f"at most {cost.cost_at_most}" if cost.cost_at_most.atoms else "free"
    known = ", and known" if cost.known else ""
    to.print(f"[bold]{escape(statement.text)}[/]")
    to.print(f"[green]{text}[/]{known}: {escape(cost.why)}")


@contextmanager
def placed(statement: Statement) -> Iterator[None]:
    """A refusal says where in the file its statement stands."""
    try:
        yield
    except TacitError as error:
        error.sentence = statement.placed(error.sentence)
        raise


@contextmanager
def all_told(session: Session) -> Iterator[None]:
    """Of several questions, one that is refused says that nothing was spent only if those before it were free too."""
    before = session.spent
    try:
        yield
    except TacitError as error:
        if error.nothing_spent and session.spent != before:
            error.nothing_spent = False
            error.sentence += " What was answered before it stays spent."
        raise


@contextmanager
def conditioned(where: str | None) -> Iterator[None]:
    """A refusal of a condition counts its columns from where the condition begins."""
    try:
        yield
    except TacitError as error:
        if where is not None:
            error.sentence = moved(error.sentence, 0, len(where) - len(condition(where) or ""))
        raise


def _write_csv(table: Table, path: str) -> None:
    with writing(path, paid=True) as file, file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow([*table.names, "rows", "error"])
        writer.writerows([*labels, value, table.error] for labels, value in table.rows())
    say(f"Wrote {table.values.size:,} rows to {path}.")


COMMANDS = (ask, table, cdf, quantile)
