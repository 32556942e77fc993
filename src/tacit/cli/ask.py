"""The analyst's commands: questions in SQL, tables, curves and quantiles; of the owner's table or a published file."""

from __future__ import annotations

import csv
import re
import sys
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tacit.cli.options import (
    Options,
    asker_options,
    at_terminal,
    check_writable,
    opened,
    starting,
    svg_option,
    where_option,
    writing,
)
from tacit.cli.show import (
    console,
    escape,
    print_answer,
    print_dry_run,
    print_json,
    print_quantiles,
    say,
    show,
)
from tacit.errors import ConfigError, InvalidQuery, TacitError

if TYPE_CHECKING:
    from tacit.model.table import CdfAnswer, Table
    from tacit.release.answering import Answers
    from tacit.session import DryRun, Session

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)  # shown below a curve
MAX_STATEMENTS = 10_000
MAX_TEXT = 16 * 2**20  # bytes of a file of questions
_PLACE = re.compile(r"\(line (\d+), column (\d+)\)")
_ROWS = "SELECT COUNT(*) FROM data WHERE "  # makes a statement of a condition


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
@asker_options
def ask(
    options: Options,
    questions: tuple[str, ...],
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
      tacit ask --published people-public.tacit "SELECT COUNT(*) FROM data WHERE sex = 'F'"
    """
    statements = [Statement(question) for question in questions] + ([] if file is None else read_statements(file))
    if not statements and (dry_run or options.as_json or not (sys.stdin.isatty() and sys.stdout.isatty())):
        raise click.UsageError("give a question or --file; a prompt opens without one, but only on a terminal.")
    if (within is not None and not statements) or (yes and within is None):
        raise click.UsageError("--within is about a question, and --yes about --within.")
    with opened(options) as session:
        if not statements:
            from tacit.cli.prompt import talk

            talk(session, console())
            return
        asks, costs = [], []
        for statement in statements:  # refuses a bad one before any is asked
            with placed(statement):
                asks.append(session.question(statement.text))
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
            for i, (statement, asked) in enumerate(zip(statements, asks, strict=True)):
                work = partial(session.answer, asked, within=within)
                with placed(statement):  # the first may buy what the session starts from, and shows a bar
                    answer = starting(session, "" if i else "answer", work)
                _show(answer, session, options, bars=bars)


@click.command()
@click.argument("names", nargs=-1, required=True)
@where_option
@svg_option
@click.option("--csv", "csv_file", metavar="FILE", help="Also write the rows to a CSV file.")
@asker_options
def table(options: Options, names: tuple[str, ...], where: str | None, svg: str | None, csv_file: str | None) -> None:
    """Count all combinations of values of the attributes NAMES.

    The table, a marginal or GROUP BY table, is bought as a whole.

    \b
    Examples:
      tacit table sex age
      tacit table age --where "sex = 'F' AND smoker" --svg ages.svg
      tacit table sex smoker --csv counts.csv --json
    """
    if svg is not None and len(names) > 2:
        raise click.UsageError(f"a picture shows one or two attributes, not {len(names)}.")
    check_writable(svg, csv_file)
    condition = _condition(where)
    with opened(options) as session:
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
    with opened(options) as session:
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
    condition = _condition(where)
    with opened(options) as session, all_told(session), placed(condition) as rows:
        ask = partial(session.quantile, name, where=rows)
        found = starting(session, "quantiles", lambda: [ask(share) for share in shares])
    if options.as_json:
        for one in found:
            print_json(one.to_dict())
        return
    from tacit.model.answer import cost_words

    to = console()
    to.print(f"[bold]quantiles of {escape(name + (f' where {where}' if where else ''))}[/]")
    print_quantiles(found, to)
    unit = f" ({found[0].cost})" if options.units else ""
    to.print(f"{found[0].source}, {cost_words(found[0].facts)}{unit}", style="dim")


def _confirm(costs: Sequence[DryRun], session: Session) -> None:
    """Say what single answers cost, and ask whether to buy them."""
    from tacit.model.budget import Loss, percent_of

    whole = Loss(session.total.measure, sum(cost.cost_at_most.atoms for cost in costs))
    if not whole.atoms or not whole <= session.left:  # nothing to buy; or it is refused, which says why
        return
    price = f"{percent_of(whole, session.total)} of the budget"
    if not at_terminal():
        raise click.UsageError(f"say --yes to buy this for {price}.")
    click.confirm(f"Buy this for {price}?", abort=True, err=True)


def _show(answer: Answers, session: Session, options: Options, *, bars: bool = False) -> None:
    text = partial(print_answer, answer, session.rows, bars=bars, units=options.units)
    show(answer.to_dict(), options.as_json, text)


def _dry_facts(question: str, cost: DryRun, within: float | None) -> dict[str, object]:
    most = cost.cost_at_most
    return {
        "question": question,
        **({} if within is None else {"within": within}),
        "known": cost.known,
        "cost_at_most": {most.measure: float(most)},
        "percent": cost.percent,
        "why": cost.why,
    }


@contextmanager
def all_told(session: Session) -> Iterator[None]:
    """Of several questions, one that is refused says that nothing was spent only if those before it were free too."""
    before = session.spent
    try:
        yield
    except TacitError as error:
        if error.nothing_spent and session.spent != before:
            error.nothing_spent = False
            error.sentence += " What the questions before it cost stays spent."
        raise


def _draw(answer: Table | CdfAnswer, svg: str | None) -> None:
    if svg is not None:
        with writing(svg, paid=True) as path:
            answer.chart().save(path)


def _write_csv(table: Table, path: str) -> None:
    with writing(path, paid=True) as file, file.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out)
        writer.writerow([*table.names, "rows", "error"])
        writer.writerows([*labels, value, table.error] for labels, value in table.rows())
    say(f"Wrote {table.values.size:,} rows to {path}.")


# -- statements, and where each begins, so that a refusal names its place ----------------------------------------------


@dataclass(frozen=True)
class Statement:
    """One statement, and where it begins in `file`; one that was typed begins at line 1 of no file."""

    text: str
    file: str = ""
    line: int = 1
    column: int = 1

    def placed(self, sentence: str) -> str:
        """A refusal of this statement, with its places counted from the beginning of the file.

        >>> Statement("SELECT agee", "week.sql", line=5, column=3).placed("unknown column 'agee' (line 1, column 8)")
        "week.sql, line 5: unknown column 'agee' (line 5, column 10)"
        """

        def place(found: re.Match[str]) -> str:
            line, column = int(found[1]), int(found[2])
            return f"(line {line + self.line - 1}, column {column + (self.column - 1 if line == 1 else 0)})"

        file = f"{self.file}, line {self.line}: " if self.file else ""
        return file + _PLACE.sub(place, sentence)


@contextmanager
def placed(statement: Statement | None) -> Iterator[str | None]:
    """The text of a statement; a refusal of it says where it stands."""
    try:
        yield None if statement is None else statement.text
    except TacitError as error:
        if statement is not None:
            error.sentence = statement.placed(error.sentence)
        raise


def _condition(where: str | None) -> Statement | None:
    """The statement that counts the rows of a condition, which begins where the condition does."""
    if where is None:
        return None
    if not where.strip():
        raise click.UsageError("--where has no condition.")
    return Statement(_ROWS + where, column=1 - len(_ROWS))


def read_statements(path: str) -> list[Statement]:
    """The statements of a file; "-" is standard input."""
    shown = "standard input" if path == "-" else Path(path).name or path
    try:
        if path == "-":
            raw = sys.stdin.buffer.read(MAX_TEXT + 1)
        else:
            with Path(path).open("rb") as file:
                raw = file.read(MAX_TEXT + 1)
        text = raw.decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"there is no file {path}.") from None
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"{shown} cannot be read as a text file.") from None
    if len(raw) > MAX_TEXT:
        raise ConfigError(f"{shown} is larger than {MAX_TEXT // 2**20} MiB; ask its questions in parts.")
    return split(text, shown)


def split(text: str, file: str = "") -> list[Statement]:
    """Cut at the semicolons that are not part of a string, a name or a comment.

    >>> [one.text for one in split("SELECT 1 WHERE a = ';'; -- the next; one\\nSELECT 2;;")]
    ["SELECT 1 WHERE a = ';'", 'SELECT 2']
    """
    from sqlglot import TokenType
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import SqlglotError

    try:
        tokens = DuckDB().tokenize(text)
    except SqlglotError:
        where = f"{file or 'the text'} cannot be read"
        raise InvalidQuery(f"{where}: a quotation mark or a comment is opened and never closed.") from None
    parts: list[list[int]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            parts.append([])
        else:
            parts[-1] += [token.start, token.end + 1]
    ends = [(part[0], part[-1]) for part in parts if part]
    if not ends:
        raise InvalidQuery(f"{file or 'the text'} has no statement.")
    if len(ends) > MAX_STATEMENTS:
        raise InvalidQuery(f"{file or 'the text'} has {len(ends):,} statements; {MAX_STATEMENTS:,} at most.")
    starts = [0, *(found.end() for found in re.finditer("\n", text))]  # of the lines
    made = []
    for start, end in ends:
        line = bisect_right(starts, start)
        made.append(Statement(text[start:end], file, line, start - starts[line - 1] + 1))
    return made


COMMANDS = (ask, table, cdf, quantile)
