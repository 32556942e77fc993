"""`tacit demo`: what Tacit does that fresh noise cannot, on a real public table, in half a minute.

The table is public, so the truth can be shown beside the answers. The noise is real, and differs each time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.options import at_terminal, json_option
from tacit.cli.show import cloud, console, escape, print_json, say, waiting
from tacit.errors import TacitError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.live import Live

    from tacit.demo.contest import Contestant, Single, Truth, Worst
    from tacit.model.answer import Answer
    from tacit.session import Session

QUESTIONS = 1_000
FRESH, OURS = "yellow", "green"  # the colours of the two contestants
_WIDTH = 55  # letters, of the two clouds


@click.command()
@click.option("--serve", "as_server", is_flag=True, help="Serve the table to a browser on this machine, until Ctrl+C.")
@click.option("--port", type=click.IntRange(0, 65535), default=8470, show_default=True, help="The port of --serve.")
@json_option
def demo(as_server: bool, port: int, as_json: bool) -> None:
    """Ask a thousand questions about a real table.

    It has 20,190 rows of the RAND Health Insurance Experiment. The answers are compared with fresh noise that has the
    same budget, and, since the table is public, with the truth. At a terminal you are asked for questions of your own
    at the end.

    \b
    Examples:
      tacit demo
      tacit demo --json
      $ tacit demo --serve
    """
    if as_server:
        from tacit.serve import serve_demo

        with suppress(KeyboardInterrupt):  # which is how it ends
            serve_demo(port, say=say)
        return
    from tacit.demo.contest import ONE_MORE, Truth, ask_singly, ask_worst, conditions, contest

    to = console()
    with _contestants() as both:
        truth, ours = Truth(), both[1]
        with _live(to) if to.is_terminal and not as_json else nullcontext() as screen:
            for last in contest(both, conditions(QUESTIONS), truth):
                if screen is not None:
                    screen.update(_screen(both, last))
        after = [one.answers_one_more(ONE_MORE) for one in both]
        singles = ask_singly(ours.session, truth)
        worst = ask_worst(ours.session, truth)
        if as_json:
            print_json(_facts(both, after, singles, worst))
            return
        _print_contest(both, after, to)
        _print_singles(singles, worst, ours.session, to)
        if at_terminal():
            _talk(ours.session, truth, to)


@contextmanager
def _contestants() -> Iterator[list[Contestant]]:
    """Fresh noise and Tacit, each with a budget of its own; Tacit has bought what its answers start from."""
    import tempfile

    from tacit.demo import open_demo
    from tacit.demo.contest import Contestant

    with tempfile.TemporaryDirectory() as name, ExitStack() as opened:
        with waiting("Reading the table, and buying what Tacit's answers start from"):
            folder = Path(name)
            fresh = opened.enter_context(open_demo(folder, mechanism="direct", questions=QUESTIONS))
            ours = opened.enter_context(open_demo(folder, questions=QUESTIONS))
            ours.start()
        yield [Contestant("fresh noise", fresh), Contestant("Tacit", ours)]


def _facts(
    both: Sequence[Contestant], after: Sequence[str], singles: Sequence[Single], worst: Worst | None
) -> dict[str, Any]:
    compared = [
        {
            "name": one.name,
            "questions": len(one.errors),
            "mean_error": one.mean,
            "largest_error": one.worst,
            "within_bar": one.covered,
            "budget_left": one.left[-1],
            "next_question": next_one,
        }
        for one, next_one in zip(both, after, strict=True)
    ]
    told = [{**one.answer.to_dict(), "truth": one.truth} for one in singles]
    hardest = None if worst is None else {**worst.answer.to_dict(), "published": worst.published, "truth": worst.truth}
    return {"compared": compared, "answers": told, "worst": hardest, "budget_left": both[1].share_left}


# -- the contest, as it goes on and at its end -------------------------------------------------------------------------


def _live(to: Console) -> Live:
    """The screen while questions are asked, which is gone afterwards."""
    from rich.live import Live

    return Live(console=to, transient=True, refresh_per_second=12)


def _screen(both: Sequence[Contestant], condition: str = "", after: Sequence[str] = ()) -> RenderableType:
    """How far off every answer was, as clouds on one scale, and what that amounts to.

    condition: the one that was asked last, while questions are asked; `after`: what becomes of one more, at the end.
    """
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table as Grid
    from rich.text import Text

    session, asked = both[1].session, len(both[1].errors)
    head = Text.from_markup(
        f"\n [bold]{QUESTIONS:,} questions[/] about {session.rows:,} rows of the RAND Health Insurance Experiment,\n"
        " each a person in a year. [bold]One privacy budget[/] for all of them: "
        f"epsilon = {session.budget.epsilon:g}.\n"
    )
    bar = Grid.grid(padding=(0, 1))
    if after:
        bar.add_row("", Text("how far off each answer is", "dim"))
    else:
        done = ProgressBar(total=QUESTIONS, completed=asked, width=20)
        bar.add_row("", done, f"{asked:,}", Text(condition, "dim", no_wrap=True))
    clouds = Grid.grid(padding=(0, 1))
    table = Grid(box=None, padding=(0, 2, 0, 1), header_style="dim")
    table.add_column("off by, in rows")
    for heading in ("mean", "worst", "within ±", "budget left"):
        table.add_column(heading, justify="right")
    table.add_column("one question more" if after else "")
    most = max(1, both[0].worst)
    for i, (one, colour) in enumerate(zip(both, (FRESH, OURS), strict=True)):
        lines = cloud(one.errors, most, QUESTIONS, width=_WIDTH)
        clouds.add_row("", Text("\n".join(lines), colour), Text(f"{one.name}\nup to ± {one.worst:,}", colour))
        figures = f"{one.mean:,.0f}", f"{one.worst:,}", _percent(one.covered), _percent(one.left[-1])
        table.add_row(one.name, *figures, after[i] if after else "", style=f"bold {colour}")
    return Group(head, bar, clouds, Text(), table)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _print_contest(both: Sequence[Contestant], after: Sequence[str], to: Console) -> None:
    to.print(_screen(both, after=after), soft_wrap=False)
    to.print(
        f"\n Tacit spent {_percent(1 - both[1].left[0])} of its budget once, before the first question. Every answer\n"
        " since then was free, and so is every other question of this kind.\n",
        style="dim",
    )


# -- single answers ----------------------------------------------------------------------------------------------------


def _print_singles(singles: Sequence[Single], worst: Worst | None, session: Session, to: Console) -> None:
    from rich.table import Table as Grid

    from tacit.model.budget import percent_of

    grid = Grid(box=None, padding=(0, 1, 0, 1), header_style="dim")
    grid.add_column("how many rows have …", no_wrap=True)
    for heading in ("answer", "±", "truth*"):
        grid.add_column(heading, justify="right")
    grid.add_column("bar and truth")
    grid.add_column("cost", justify="right")
    seen = set[float]()
    for one in [*singles, *([] if worst is None else [worst])]:
        answer, note = one.answer, "†" if one is worst else " (the same)" if one.answer.value in seen else ""
        seen.add(answer.value)
        error = "" if answer.error is None else f"{answer.error:,.0f}"
        cost = percent_of(answer.cost, session.total) if answer.cost.atoms else "free"
        value = f"[bold {OURS}]{answer.value:,.0f}[/]"
        grid.add_row(escape(one.words) + note, value, error, f"{one.truth:,}", _interval(answer, one.truth), cost)
    to.print(grid, soft_wrap=False)
    notes = "\n * The table is public, so the truth can be shown here. Tacit itself never shows it."
    if worst is not None:
        caught = (
            "Tacit noticed, and bought a fresh answer." if worst.answer.cost.atoms else "This time it was not noticed."
        )
        notes += (
            f"\n † The rows of {worst.combinations:,} combinations of values, picked by somebody who knows the truth:\n"
            f"   what is published is off by {abs(worst.truth - worst.published):,} rows there. {caught}"
        )
    left = percent_of(session.left, session.total)
    to.print(notes, style="dim")
    to.print(f"\n [bold]{left}[/] of the budget is left. Whatever was asked stays free for ever.\n")


def _interval(answer: Answer, true: int, width: int = 15) -> str:
    """The error bar with the answer in its middle, on a scale of one and a half bars, and the truth as a dot."""
    error, middle = answer.error, width // 2
    if not error:
        return ""

    def place(value: float) -> int:
        return min(max(round(middle + (value - answer.value) / (1.5 * error) * middle), 0), width - 1)

    low, high = place(answer.value - error), place(answer.value + error)
    letters = [" "] * low + ["─"] * (high - low + 1) + [" "] * (width - high - 1)
    letters[low], letters[high], letters[middle] = "├", "┤", "┼"
    inside, dot = abs(true - answer.value) <= error, place(true)
    if not inside:  # also where rounding to a letter would put it on the end of the bar
        dot = min(dot, low - 1) if true < answer.value else max(dot, high + 1)
    letters[dot] = f"[bold {OURS if inside else FRESH}]●[/]"
    return "".join(letters)


def _talk(session: Session, truth: Truth, to: Console) -> None:
    """Questions of the reader's own, until an empty line."""
    from tacit.cli.prompt import completing
    from tacit.model.description import values_of

    to.print(" [bold]Now you.[/] A condition, like  visits >= 10 AND health = 'excellent'  (Enter leaves)")
    for name, attribute in session.domain.items():
        to.print(f"   {name:<12} {escape(values_of(attribute))}", style="dim")
    read = completing(session.domain)
    while True:
        try:
            line = read(" how many rows have: ").strip().rstrip(";")
        except (EOFError, KeyboardInterrupt):
            to.print()
            return
        if not line:
            return
        try:
            _print_own(line, session, truth, to)
        except TacitError as error:
            to.print(f" {escape(str(error))}", style=FRESH)


def _print_own(line: str, session: Session, truth: Truth, to: Console) -> None:
    from tacit.cli.show import print_answer
    from tacit.demo.contest import SELECT
    from tacit.model.answer import Answer
    from tacit.model.ask import Count
    from tacit.model.budget import percent_of

    asked = session.question(line if line.upper().startswith("SELECT ") else SELECT + line)
    answer = session.answer(asked)
    if not isinstance(answer, Answer) or not isinstance(asked, Count) or answer.error is None:
        print_answer(answer, session.rows, to)
        return
    true = truth.of(asked.query)
    cost = f"{percent_of(answer.cost, session.total)} of the budget" if answer.cost.atoms else "free"
    value = f"[bold {OURS}]{answer.value:,.0f}[/] ± {answer.error:,.0f}"
    to.print(f" {value}   truth {true:,}   {_interval(answer, true)}   {cost}")
