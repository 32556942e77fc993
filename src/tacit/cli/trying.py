"""Commands that need no data of one's own: the demonstration and the benchmark."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import click

from tacit.cli.options import json_option
from tacit.cli.show import console, say, show, waiting


@click.command()
@click.option("--serve", "as_server", is_flag=True, help="Serve the table to a browser on this machine, until Ctrl+C.")
@click.option("--port", type=click.IntRange(0, 65535), default=8470, show_default=True, help="For --serve.")
@json_option
def demo(as_server: bool, port: int, as_json: bool) -> None:
    """Show private answers about a real table beside the truth.

    It has 20,190 rows of the RAND Health Insurance Experiment. The table is public, so the truth can be shown beside
    the private answers.

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
    from tacit.demo import run

    run(None if as_json else console(), as_json=as_json)


@click.command()
@click.option("--rows", type=click.IntRange(100, 1_000_000), default=50_000, show_default=True, metavar="N")
@click.option("--columns", type=click.IntRange(2, 8), default=5, show_default=True, metavar="D")
@click.option("--values", type=click.IntRange(2, 20), default=6, show_default=True, help="Of each column.", metavar="V")
@click.option("--questions", type=click.IntRange(10, 10_000), default=1_000, show_default=True, metavar="K")
@click.option("--epsilon", type=float, default=1.0, show_default=True, metavar="E")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the made table.")
@click.option("--median", is_flag=True, help="Also the median mechanism, which takes a minute more.")
@json_option
def bench(
    rows: int, columns: int, values: int, questions: int, epsilon: float, seed: int, median: bool, as_json: bool
) -> None:
    """Measure the mechanisms on this machine, on a made table.

    It has N rows and D columns of V values. Each mechanism answers the same K random conditions on up to three columns
    under one budget. Ratios are against independent noise for every question, in the same run; below 1 is better. With
    the sizes given, under a minute.

    \b
    Examples:
      tacit bench --rows 2000 --columns 3 --questions 100
      tacit bench --rows 2000 --columns 3 --questions 100 --epsilon 0.5 --json
    """
    from tacit.cli.bench import measure, print_bench

    with waiting("Measuring"):
        found = measure(
            rows=rows,
            columns=columns,
            values=values,
            questions=questions,
            epsilon=epsilon,
            seed=seed,
            median=median,
        )
    show(found.to_dict(), as_json, partial(print_bench, found))


COMMANDS = (demo, bench)
