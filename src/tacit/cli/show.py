"""How answers look: JSON, or text with error bars. Data go to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.sketch import curve, error_bar

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.model.answer import Answer, Table
    from tacit.model.distribution_answer import CdfAnswer, QuantileAnswer
    from tacit.model.listing import Listing

    Shown = Answer | Table | CdfAnswer | QuantileAnswer | Listing

MOST_ROWS = 200  # of a table on the screen; --csv and --json have them all
WIDE = 160  # letters in a line when nobody's window says otherwise


def console(*, error: bool = False) -> Console:
    """Where text goes. Rich drops colours where there is no terminal, and where NO_COLOR is set.

    Lines are left to the window to wrap; tables are fitted to it.
    """
    from rich.console import Console

    made = Console(stderr=error, highlight=False, soft_wrap=True)
    if not made.is_terminal:
        made.width = WIDE
    return made


def show(facts: dict[str, Any], as_json: bool, text: Callable[[Console], None]) -> None:
    """One JSON document on one line, or text."""
    if as_json:
        click.echo(as_document(facts))
    else:
        text(console())


def as_document(facts: dict[str, Any]) -> str:
    """JSON on one line; with escapes where the terminal cannot show all letters."""
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    return json.dumps(facts, ensure_ascii=plain)


def say(sentence: str) -> None:
    """A remark to a person: never on standard output, where data go."""
    click.echo(sentence, err=True)


_waiting: list[Callable[[float], None]] = []  # the bars that are shown now, the newest last


def advance(done: int, most: int) -> None:
    """Moves the bar that is shown, if there is one: so many steps of so many are done."""
    if _waiting:
        _waiting[-1](done / max(1, most))


@contextmanager
def waiting(label: str) -> Iterator[Callable[[float], None] | None]:
    """A bar while something takes long; on a terminal only, and gone afterwards.

    What it gives may be called with the share that is done, where somebody knows it; until then it only shows life.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console(error=True), transient=True) as progress:
        task = progress.add_task(label, total=None)

        def move(share: float) -> None:
            progress.update(task, total=1.0, completed=share)

        _waiting.append(move)
        try:
            yield move
        finally:
            _waiting.remove(move)


def print_answer(answer: Shown, rows: int, to: Console) -> None:
    """Any kind of answer as text."""
    from tacit.model.answer import Answer, Table
    from tacit.model.distribution_answer import CdfAnswer
    from tacit.model.listing import Listing

    to.print(f"[bold]{escape(answer.question)}[/]")
    if isinstance(answer, Table):
        _print_table(answer, to)
    elif isinstance(answer, CdfAnswer):
        _print_cdf(answer, to)
    elif isinstance(answer, Listing):
        _print_listing(answer, to)
    else:
        number, _, rest = str(answer).partition(" ")
        to.print(f"[bold green]{escape(number)}[/] {escape(rest)}")
        if isinstance(answer, Answer) and isinstance(answer.value, int):  # a number of rows; others are floats
            bar = error_bar(answer.value, answer.error, rows, width=48)
            to.print(f"[green]{bar}[/] [dim]of {rows:,} rows[/]")


def _print_table(table: Table, to: Console) -> None:
    from rich.table import Table as Grid

    grid = Grid()
    for name in table.names:
        grid.add_column(escape(name))
    grid.add_column("rows", justify="right")
    grid.add_column("" if table.error is None else f"± {table.error:,.0f}", no_wrap=True)
    most = max(float(table.values.max()) + (table.error or 0.0), 1.0)
    left_out = table.values.size - MOST_ROWS
    for (labels, value), _ in zip(table.rows(), range(MOST_ROWS), strict=False):
        grid.add_row(*map(escape, labels), f"{value:,.0f}", f"[green]{error_bar(value, table.error, most)}[/]")
    to.print(grid, soft_wrap=False)
    if left_out > 0:
        to.print(f"… and {left_out:,} more rows: see them all with --csv or --json")
    to.print(escape(table.caption), style="dim")


def _print_listing(listing: Listing, to: Console) -> None:
    from rich.table import Table as Grid

    grid = Grid(*map(escape, listing.names))
    for title in listing.titles:
        grid.add_column(escape(title), justify="right")
    for row in listing.listed[:MOST_ROWS]:
        cells = (_with_error(value, error) for value, error in zip(row.values, row.errors, strict=True))
        grid.add_row(*map(escape, row.labels), *cells)
    to.print(grid, soft_wrap=False)
    if len(listing.listed) > MOST_ROWS:
        to.print(f"… and {len(listing.listed) - MOST_ROWS:,} more rows: see them all with --json")
    to.print(escape(listing.caption), style="dim")


def _with_error(value: float, error: float | None) -> str:
    return f"{_number(value)} [dim]{'(no guarantee)' if error is None else '± ' + _number(error)}[/]"


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() or abs(value) >= 1000 else f"{value:.4g}"


def _print_cdf(cdf: CdfAnswer, to: Console) -> None:
    places = [cdf.start, *cdf.ends.tolist()] if not cdf.dated else [float(i) for i in range(len(cdf.labels) + 1)]
    for line in curve(places, [0.0, *cdf.shares.tolist()], cdf.error / cdf.rows):
        to.print(f"[green]{line}[/]")
    first, last = cdf.labels[0], cdf.labels[-1]
    to.print(f"     └{'─' * 56}")
    to.print(f"      {escape(first)}{' ' * max(1, 56 - len(first) - len(last))}{escape(last)}")
    from tacit.model.answer import bar

    to.print(
        f"share of {cdf.rows:,} rows up to each {escape(cdf.name)}; in rows, all at once {escape(bar(cdf, cdf.error))}",
        style="dim",
    )


def print_quantiles(found: list[QuantileAnswer], to: Console) -> None:
    """Quantiles as a table: one line each."""
    from rich.table import Table as Grid

    sure = f"{100 * found[0].confidence:.10g}%"
    grid = Grid("quantile", "value", f"between ({sure})")
    for one in found:
        grid.add_row(f"{one.share:g}", escape(str(one.value)), f"{escape(str(one.low))} to {escape(str(one.high))}")
    to.print(grid, soft_wrap=False)


def escape(text: str) -> str:
    """Text as it is, whatever brackets it has."""
    from rich.markup import escape as plain

    return plain(text)
