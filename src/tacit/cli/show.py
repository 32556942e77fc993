"""How answers look: JSON, or text with error bars. Data go to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from tacit.model.answer import Answer, QuantileAnswer
    from tacit.model.status import DryRun
    from tacit.model.table import CdfAnswer, Listing, Table

    Shown = Answer | Table | CdfAnswer | QuantileAnswer | Listing

MOST_SCREEN_ROWS = 200  # of a table on the screen; --csv and --json have them all
_WIDE = 160  # letters in a line when nobody's window says otherwise
_WIDTH, HEIGHT = 56, 10  # letters, of a curve
_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))  # of a braille letter: four down, two across


def console(*, error: bool = False) -> Console:
    """Where text goes. Rich drops colours where there is no terminal, and where NO_COLOR is set.

    Lines are left to the window to wrap; tables are fitted to it.
    """
    from rich.console import Console

    made = Console(stderr=error, highlight=False, soft_wrap=True)
    if not made.is_terminal:
        made.width = _WIDE
    return made


def show(facts: dict[str, Any], as_json: bool, text: Callable[[Console], None]) -> None:
    """One JSON document on one line, or text."""
    if as_json:
        print_json(facts)
    else:
        text(console())


def print_json(facts: dict[str, Any]) -> None:
    """One JSON document on one line."""
    click.echo(as_document(facts))


def as_document(facts: dict[str, Any]) -> str:
    """JSON on one line; with escapes where the terminal cannot show all letters."""
    plain = (sys.stdout.encoding or "").lower().replace("-", "") != "utf8"
    return json.dumps(facts, ensure_ascii=plain)


def say(sentence: str) -> None:
    """A remark to a person: never on standard output, where data go."""
    click.echo(sentence, err=True)


_waiting: list[Callable[[float], None]] = []  # the bars that are shown now, the newest last


def advance(done: int, most: int) -> None:
    """Moves the bar that is shown, if there is one: how many steps are done, and of how many."""
    move(done / max(1, most))


def move(share: float) -> None:
    """Moves the bar that is shown, if there is one, to this share."""
    if _waiting:
        _waiting[-1](share)


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

        def show_share(share: float) -> None:
            progress.update(task, total=1.0, completed=share)

        _waiting.append(show_share)
        try:
            yield show_share
        finally:
            _waiting.remove(show_share)


def print_answer(answer: Shown, rows: int, to: Console, *, bars: bool = False, units: bool = False) -> None:
    """Any kind of answer as text, grey where it says nothing.

    With `bars`, every bar that is proved; with `units`, the cost as a privacy loss.
    """
    from tacit.model.answer import Answer, bar_line
    from tacit.model.table import CdfAnswer, Listing, Table

    to.print(f"[bold]{escape(answer.question)}[/]")
    if isinstance(answer, Table):
        _print_table(answer, to)
    elif isinstance(answer, CdfAnswer):
        _print_cdf(answer, to)
    elif isinstance(answer, Listing):
        _print_listing(answer, to)
    else:
        number, _, rest = str(answer).partition(" ")
        to.print(f"[bold {colour(answer)}]{escape(number)}[/] {escape(rest)}")
        if isinstance(answer, Answer) and isinstance(answer.value, int):  # a number of rows; others are floats
            bar = error_bar(answer.value, answer.error, rows, width=48)
            to.print(f"[{colour(answer)}]{bar}[/] [dim]of {rows:,} rows[/]")
    for one in answer.bars if bars else ():
        to.print(f"  {escape(bar_line(one))}")
    if units:
        to.print(f"  cost {answer.cost}")


def as_text(answer: Shown, form: str) -> str:
    """An answer's columns as csv, json or markdown."""
    if form == "json":
        return as_document(answer.to_dict()) + "\n"
    if form == "csv":
        return answer.frame().csv()
    names, *rows = [[cell.replace("|", "\\|") for cell in row] for row in answer.frame().cells()]
    lines = [names, ["---"] * len(names), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def colour(answer: Shown) -> str:
    return "bright_black" if answer.says == "nothing" else "green"


def print_grid(to: Console, left: Iterable[str], right: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """A table fitted to the window: columns of words on the left, columns of numbers on the right."""
    from rich.table import Table as Grid

    grid = Grid(*left)
    for heading in right:
        grid.add_column(heading, justify="right")
    for row in rows:
        grid.add_row(*row)
    to.print(grid, soft_wrap=False)


def _print_table(table: Table, to: Console) -> None:
    from rich.table import Table as Grid

    grid = Grid(*map(escape, table.names))
    grid.add_column("rows", justify="right")
    grid.add_column("" if table.error is None else f"± {table.error:,.0f}", no_wrap=True)
    most = max(float(table.values.max()) + (table.error or 0.0), 1.0)
    left_out = table.values.size - MOST_SCREEN_ROWS
    shown = zip(table.rows(), table.errors.flat, range(MOST_SCREEN_ROWS), strict=False)
    for (labels, value), error, _ in shown:
        bar = f"[{colour(table)}]{error_bar(value, None if table.error is None else error, most)}[/]"
        grid.add_row(*map(escape, labels), f"{value:,.0f}", bar)
    to.print(grid, soft_wrap=False, style=None if table.says != "nothing" else "bright_black")
    if left_out > 0:
        to.print(f"… and {left_out:,} more rows: see them all with --csv or --json")
    to.print(escape(table.caption), style="dim")


def _print_listing(listing: Listing, to: Console) -> None:
    rows = (
        [*map(escape, row.labels), *map(_dimmed, cells[len(row.labels) :], listing.grey(row))]
        for row, cells in zip(listing.listed, listing.cells(MOST_SCREEN_ROWS), strict=False)
    )
    print_grid(to, map(escape, listing.names), map(escape, listing.titles), rows)
    if len(listing.listed) > MOST_SCREEN_ROWS:
        to.print(f"… and {len(listing.listed) - MOST_SCREEN_ROWS:,} more rows: see them all with --json")
    to.print(escape(listing.caption), style="dim")


def _dimmed(cell: str, grey: bool) -> str:
    return f"[bright_black]{escape(cell)}[/]" if grey else escape(cell)


def _print_cdf(cdf: CdfAnswer, to: Console) -> None:
    places = [cdf.start, *cdf.ends.tolist()] if not cdf.dated else [float(i) for i in range(len(cdf.labels) + 1)]
    for line in curve(places, [0.0, *cdf.shares.tolist()], cdf.error / cdf.rows):
        to.print(f"[{colour(cdf)}]{line}[/]")
    first, last = cdf.labels[0], cdf.labels[-1]
    to.print(f"     └{'─' * 56}")
    to.print(f"      {escape(first)}{' ' * max(1, 56 - len(first) - len(last))}{escape(last)}")
    from tacit.model.answer import bar_words

    to.print(
        f"share of {cdf.rows:,} rows up to each {escape(cdf.name)}; in rows, all at once {escape(bar_words(cdf))}",
        style="dim",
    )


def print_quantiles(found: Sequence[QuantileAnswer], to: Console) -> None:
    """Quantiles as a table: one line each."""
    from tacit.model.answer import percent

    sure = percent(found[0].confidence)
    rows = (
        (f"{one.share:g}", escape(str(one.value)), f"{escape(str(one.low))} to {escape(str(one.high))}")
        for one in found
    )
    print_grid(to, ("quantile", "value", f"between ({sure})"), (), rows)


def print_dry_run(question: str, cost: DryRun, to: Console, *, units: bool = False) -> None:
    """What asking would mean."""
    unit = f" ({cost.cost_at_most})" if units and cost.cost_at_most.atoms else ""
    to.print(f"[bold]{escape(question)}[/]")
    to.print(f"[green]{cost.price}[/]{unit}: {escape(cost.why)}")


def escape(text: str) -> str:
    """Text as it is, whatever brackets it has."""
    from rich.markup import escape as plain

    return plain(text)


# -- small pictures made of letters: they know only numbers ------------------------------------------------------------


def error_bar(value: float, error: float | None, most: float, width: int = 24) -> str:
    """A bar up to `value` on a scale from 0 to `most`, with the interval around its end.

    >>> error_bar(50, 20, 100, width=20)
    '━━━━━━├───┼───┤     '
    >>> error_bar(50, 1, 100, width=20)
    '━━━━━━━━━━┃         '
    >>> error_bar(50, None, 100, width=20)
    '━━━━━━━━━━          '
    """
    if not most > 0:
        return " " * width

    def place(number: float) -> int:
        return min(max(int(width * number / most), 0), width - 1)

    if error is None:
        return ("━" * round(width * min(max(value / most, 0), 1))).ljust(width)
    low, middle, high = place(value - error), place(value), place(value + error)
    if high - low < 2:
        return ("━" * middle + "┃").ljust(width)
    letters = list("━" * low + "─" * (high - low + 1) + " " * (width - high - 1))
    letters[low], letters[high], letters[middle] = "├", "┤", "┼"
    return "".join(letters)


def curve(
    x: Sequence[float], shares: Sequence[float], error: float, *, width: int = _WIDTH, height: int = HEIGHT
) -> list[str]:
    """A curve of shares of the rows from 0 to 1, with its band dotted around it: lines of text, the top one first."""
    import numpy as np

    dots, before, fine = list[tuple[int, float]](), None, 4 * height
    for column, share in enumerate(np.interp(np.linspace(x[0], x[-1], 2 * width), x, shares).tolist()):
        steps = 1 if before is None else max(1, round(abs(share - before) * fine))  # steep parts have no gaps
        for step in range(1, steps + 1):
            dots.append((column, share if before is None else before + (share - before) * step / steps))
        if column % 3 == 0 and error * fine >= 2:  # a band thinner than the line is not drawn
            dots += [(column, share - error), (column, share + error)]
        before = share
    words = {0: "100%", height // 2: " 50%", height - 1: "  0%"}
    return [f"{words.get(i, ''):>4} ┤{line}" for i, line in enumerate(_dotted(dots, width, height))]


def cloud(values: Sequence[float], most: float, number: int, *, width: int = _WIDTH, height: int = 5) -> list[str]:
    """A dot for each value, in their order from left to right, on a scale from -most to most: lines of text.

    number: how many values there will be in the end; until then the right side is empty.

    >>> cloud([0, 0, 0, 0], 1, 4, width=2, height=1)
    ['⠤⠤']
    """
    dots = ((place * 2 * width // max(1, number), (1 + value / most) / 2) for place, value in enumerate(values))
    return _dotted(dots, width, height)


def _dotted(dots: Iterable[tuple[int, float]], width: int, height: int) -> list[str]:
    """Braille letters with these dots: the column of each, of two in a letter, and how far up it is, from 0 to 1."""
    canvas, down = [[0] * width for _ in range(height)], 4 * height
    for column, up in dots:
        row = round((1 - min(max(up, 0.0), 1.0)) * (down - 1))
        canvas[row // 4][column // 2] |= _DOTS[row % 4][column % 2]
    return ["".join(chr(0x2800 + cell) for cell in line) for line in canvas]
