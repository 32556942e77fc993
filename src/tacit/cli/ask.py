"""The analyst's commands: questions in SQL, tables, curves and quantiles; of a table, a server or a published file."""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.options import (
    Options,
    asked,
    asker_options,
    check_dry_run,
    check_writable,
    confirm,
    spent_here,
    starting,
    svg_option,
    where_option,
    writing,
)
from tacit.cli.show import (
    as_text,
    console,
    escape,
    print_answer,
    print_dry_run,
    print_json,
    print_quantiles,
    say,
    show,
)
from tacit.cli.statements import Statement, condition_of, placed, read_statements
from tacit.errors import InvalidQuery, TacitError

if TYPE_CHECKING:
    from tacit.cli.options import Opened
    from tacit.model.status import DryRun
    from tacit.model.table import Answers, CdfAnswer, Table

FORMS = {".csv": "csv", ".json": "json", ".md": "markdown", ".svg": "svg"}  # what a file is written as, by its ending
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)  # shown below a curve


@click.command()
@click.argument("questions", nargs=-1)
@click.option("--file", "-f", metavar="FILE", help="A file of statements separated by semicolons; - is standard input.")
@click.option("--dry-run", is_flag=True, help="Say whether the answer is known and its cost at most; ask nothing.")
@click.option("--bars", is_flag=True, help="Every error bar that is proved, not only the narrowest.")
@click.option(
    "--within",
    type=float,
    metavar="W",
    help="Buy each count, sum, or share of all rows by itself, within ± W, unless it is known so well.",
)
@click.option("--yes", is_flag=True, help="With --within, buy without asking back.")
@click.option("--output", "-o", metavar="FILE", help="Write the answer to this file: .csv, .json, .md or .svg.")
@asker_options
def ask(
    options: Options,
    questions: tuple[str, ...],
    output: str | None,
    file: str | None,
    dry_run: bool,
    bars: bool,
    within: float | None,
    yes: bool,
) -> None:
    """Ask QUESTIONS in SQL, about the one table `data`.

    A question that was answered before, or whose answer follows from what was released, is free. All questions are
    checked before any is asked. Without a question, a prompt opens if this is a terminal: type \\h there for help.

    With --within, the price is said first, and you are asked. Plain questions get the answer that was given first.

    \b
    Examples:
      tacit ask "SELECT COUNT(*) FROM data WHERE sex = 'F' AND age BETWEEN 20 AND 39"
      tacit ask "SELECT sex, COUNT(*) FROM data GROUP BY sex" --json
      tacit ask --dry-run "SELECT COUNT(*) FROM data WHERE smoker"
      tacit ask --within 50 --dry-run "SELECT COUNT(*) FROM data WHERE smoker"
      tacit ask --within 50 --yes "SELECT COUNT(*) FROM data WHERE smoker"
      tacit ask --file queries.sql --json
      tacit ask -o smokers.csv "SELECT smoker, COUNT(*) FROM data GROUP BY smoker"
      tacit ask --published people-public.tacit "SELECT COUNT(*) FROM data WHERE sex = 'F'"
      tacit ask --server https://tacit.example.org -k my.key "SELECT COUNT(*) FROM data WHERE sex = 'F'"
    """
    statements = [Statement(question) for question in questions] + ([] if file is None else read_statements(file))
    if not statements and (dry_run or options.as_json or not (sys.stdin.isatty() and sys.stdout.isatty())):
        raise click.UsageError("give a question or --file; a prompt opens without one, but only on a terminal.")
    if (within is not None and not statements) or (yes and within is None):
        raise click.UsageError("--within is about a question, and --yes about --within.")
    if dry_run:
        check_dry_run(options.accept_rollback, start=options.start)
    if output is not None:
        if len(statements) != 1 or dry_run:
            raise click.UsageError("--output takes the answer of one question.")
        if Path(output).suffix.lower() not in FORMS:
            raise click.UsageError(f"the file ends in {', '.join(FORMS)}; {Path(output).name} does not.")
        check_writable(output)
    with asked(options, looking=dry_run) as session:
        if not statements:
            from tacit.cli.prompt import talk

            talk(session, console())
            return
        asks: list[Any] = []
        costs: list[DryRun] = []
        for statement in statements:  # refuses a bad one before any is asked
            with placed(statement):
                asks.append(statement.text if options.server else session.question(statement.text))
                costs.append(session.price(asks[-1], within=within))
        if dry_run:
            for question, cost in zip(statements, costs, strict=True):
                show(
                    _dry_facts(question.text, cost, within),
                    options.as_json,
                    partial(print_dry_run, question.text, cost, units=options.units),
                )
            return
        if within is not None and not yes:
            _confirm(costs, session)
        with all_told(session):
            for i, (statement, one) in enumerate(zip(statements, asks, strict=True)):
                work = partial(session.answer, one, within=within)
                with placed(statement):  # the first may buy what the session starts from, and shows a bar
                    answer = starting(session, "" if i else "answer", work)
                _show(answer, session, options, bars=bars)
                if output is not None:
                    _write(answer, output)


@click.command()
@click.argument("names", nargs=-1, required=True)
@where_option
@svg_option
@click.option("--csv", "csv_file", metavar="FILE", help="Also write the rows to a CSV file.")
@asker_options
def table(options: Options, names: tuple[str, ...], where: str | None, svg: str | None, csv_file: str | None) -> None:
    """Count all combinations of values of the attributes NAMES.

    The table, a marginal or GROUP BY table, is answered as a whole: for nothing where what was bought tells it.

    \b
    Examples:
      tacit table sex age
      tacit table age --where "sex = 'F' AND smoker" --svg ages.svg
      tacit table sex smoker --csv counts.csv --json
    """
    if svg is not None and len(names) > 2:
        raise click.UsageError(f"a picture shows one or two attributes, not {len(names)}.")
    check_writable(svg, csv_file)
    condition = condition_of(where)
    with asked(options) as session:
        with placed(condition) as rows:
            found = starting(session, "table", partial(session.table, *names, where=rows))
        _draw(found, svg)
        if csv_file is not None:
            _write_csv(found, csv_file)
        _show(found, session, options)


@click.command()
@click.argument("name")
@svg_option
@asker_options
def cdf(options: Options, name: str, svg: str | None) -> None:
    """Draw how the rows spread over the ordered attribute NAME.

    The curve is the share of the rows up to each value, and the quantiles are listed below it. Where nothing
    that was bought tells it, all ranges of the attribute are bought for a tenth of the budget, and free from then on.
    The dotted band holds for the whole curve at once.

    \b
    Examples:
      tacit cdf age
      tacit cdf age --svg ages.svg
      tacit cdf age --json
    """
    check_writable(svg)
    with asked(options) as session:
        with all_told(session):
            found = starting(session, "curve", partial(session.cdf, name))
            quantiles = [] if options.as_json else [session.quantile(name, share) for share in QUANTILES]
        _draw(found, svg)
        _show(found, session, options)
        if quantiles:
            print_quantiles(quantiles, console())


@click.command()
@click.argument("name")
@click.argument("shares", nargs=-1, required=True, type=float, metavar="Q...")
@where_option
@asker_options
def quantile(options: Options, name: str, shares: tuple[float, ...], where: str | None) -> None:
    """Find quantiles of NAME: 0.5 is the median.

    Each answer is the bin in which the share Q of the rows is reached, with its confidence interval.

    \b
    Examples:
      tacit quantile age 0.5
      tacit quantile age 0.25 0.5 0.75 --json
      tacit quantile age 0.5 --where "sex = 'F'"
    """
    condition = condition_of(where)
    with asked(options) as session, all_told(session), placed(condition) as rows:
        ask = partial(session.quantile, name, where=rows)
        found = starting(session, "quantiles", lambda: [ask(share) for share in shares])
    if options.as_json:
        for one in found:
            print_json(one.to_dict())
        return
    from tacit.model.answer import cost_words, source_words

    to = console()
    to.print(f"[bold]quantiles of {escape(name + (f' where {where}' if where else ''))}[/]")
    print_quantiles(found, to)
    unit = f" ({found[0].cost})" if options.units else ""
    to.print(f"{source_words(found[0])}, {cost_words(found[0].facts)}{unit}", style="dim")


def _confirm(costs: Sequence[DryRun], session: Opened) -> None:
    """Say what single answers cost, and ask whether to buy them."""
    from tacit.model.budget import Loss, percent_of

    whole = Loss(session.total.measure, sum(cost.cost_at_most.atoms for cost in costs))
    if not whole.atoms or not whole <= session.left:  # nothing to buy; or it is refused, which says why
        return
    price = f"{percent_of(whole, session.total)} of the budget"
    confirm(f"Buy this for {price}?", f"buy this for {price}.")


def _show(answer: Answers, session: Opened, options: Options, *, bars: bool = False) -> None:
    text = partial(print_answer, answer, session.rows, bars=bars, units=options.units)
    show(answer.to_dict(), options.as_json, text)


def _dry_facts(question: str, cost: DryRun, within: float | None) -> dict[str, object]:
    return {
        "question": question,
        **({} if within is None else {"within": within}),
        "known": cost.known,
        "cost_at_most": cost.cost_at_most.to_dict(),
        "percent": cost.percent,
        "why": cost.why,
    }


@contextmanager
def all_told(session: Opened) -> Iterator[None]:
    """A refusal among several questions says that nothing was spent only if those before it were free too."""
    before = spent_here(session)
    try:
        yield
    except TacitError as error:
        if error.nothing_spent and spent_here(session) != before:
            error.nothing_spent = False
            error.sentence += " What the questions before it cost stays spent."
        raise


def _draw(answer: Table | CdfAnswer, svg: str | None) -> None:
    if svg is not None:
        with writing(svg, paid=True) as path:
            answer.chart().save(path)


def _write(answer: Answers, output: str) -> None:
    """Write an answer in the form that the file's ending says."""
    from tacit.model.table import CdfAnswer, Listing, Table

    form = FORMS[Path(output).suffix.lower()]
    with writing(output, paid=True) as path:
        if form != "svg":
            path.write_text(as_text(answer, form), encoding="utf-8")
        elif isinstance(answer, Table | CdfAnswer | Listing):
            answer.chart().save(path)
        else:
            raise InvalidQuery("one number has no picture: write it to a .csv, .json or .md file. The answer is kept.")
    say(f"Wrote {output}.")


def _write_csv(table: Table, path: str) -> None:
    with writing(path, paid=True) as file, file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow([*table.names, "rows", "error"])
        errors = ("" if math.isinf(error) else error for error in table.errors.flat)
        writer.writerows([*labels, value, error] for (labels, value), error in zip(table.rows(), errors, strict=True))
    say(f"Wrote {table.values.size:,} rows to {path}.")
