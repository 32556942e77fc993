"""The command line. Every command has examples in its --help; errors are one sentence on standard error.

Nothing heavy is imported here: each command loads what it needs when it runs.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Any, NoReturn

import click
from click.shell_completion import get_completion_class

from tacit import __version__
from tacit.cli import ask, bench, demo, discovery, draft, own, publish, rehearsal, serve
from tacit.cli.options import STOPPED, Stopped
from tacit.cli.show import as_document
from tacit.errors import BudgetExhausted, TacitError

EXIT_REFUSED, EXIT_USAGE, EXIT_EXHAUSTED, EXIT_STOPPED = 1, 2, 3, 130


class Commands(click.Group):
    """Turns every refusal into one sentence, or one JSON document, and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # in the order in which they are needed, not of the alphabet

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["tacit.json"] = "--json" in args
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # a letter that cannot be shown is no reason to fail
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            _wrong_usage(ctx, error)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except TacitError as error:
            _complain(ctx, str(error), error.code, error.sentence, error.nothing_spent)
            ctx.exit(EXIT_EXHAUSTED if isinstance(error, BudgetExhausted) else EXIT_REFUSED)
        except click.UsageError as error:
            _wrong_usage(ctx, error)
        except (KeyboardInterrupt, click.Abort) as stopped:
            words, nothing_spent = ctx.meta.get(STOPPED, Stopped())
            _complain(ctx, f"Stopped. {words}", "stopped", "Stopped.", nothing_spent)
            by_hand = isinstance(stopped, KeyboardInterrupt) or isinstance(stopped.__context__, KeyboardInterrupt)
            ctx.exit(EXIT_STOPPED if by_hand else EXIT_REFUSED)  # 1 for a question that was answered with no
        except BrokenPipeError:  # the reader of our output has gone, as in `tacit ask … | head -1`
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)


def _wrong_usage(ctx: click.Context, error: click.UsageError) -> NoReturn:
    if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):  # the help is what was wanted
        raise error
    message = error.format_message()
    message += "" if message[-1] in ".?" else "."
    command = (error.ctx or ctx).command_path
    _complain(ctx, f"{message} `{command} --help` has examples.", "usage", message, nothing_spent=True)
    ctx.exit(EXIT_USAGE)


def _complain(ctx: click.Context, text: str, code: str, message: str, nothing_spent: bool) -> None:
    if ctx.meta["tacit.json"]:
        error = {"code": code, "message": message, "nothing_spent": nothing_spent}
        text = as_document({"error": error})
    else:
        text = "tacit: " + " ".join(text.split())
    click.echo(text, err=True)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="tacit")
@click.option("--statistics", metavar="FILE.py", help="The owner's Python that registers statistics; it is run first.")
def main(statistics: str | None) -> None:
    """Ask unlimited questions about a sensitive table under one differential privacy budget.

    \b
    Try it on a real table:       tacit demo
    Describe your own table:      tacit init people.csv      # then edit tacit.toml
    Find values and bins:         tacit discover --dry-run
    Find all that is wrong:       tacit check
    Rehearse on made-up rows:     tacit try "SELECT COUNT(*) FROM data WHERE sex = 'F'"
    See what to expect:           tacit plan --rows 48842
    Buy what answers start from:  tacit start --yes
    Ask:                          tacit ask "SELECT COUNT(*) FROM data WHERE sex = 'F'"
    See what is left:             tacit status
    Publish what was released:    tacit publish -o people-public.tacit
    Let others ask:               tacit serve

    With --json, each answer is a JSON document on a line of standard output, and a refusal is one on standard error:
    {"error": {"code": …, "message": …, "nothing_spent": …}}.

    Exit codes: 0 answered, 1 refused (nothing was spent unless it says so), 2 wrong usage, 3 budget exhausted,
    130 stopped with Ctrl-C.
    """
    if statistics is not None:
        _register(statistics)


def _register(path: str) -> None:
    """Run the owner's file. A configuration cannot name one: code comes only from whoever starts the process."""
    import runpy

    from tacit.errors import ConfigError

    try:
        runpy.run_path(path)
    except TacitError:
        raise
    except Exception as error:
        raise ConfigError(f"{path} cannot be run: {type(error).__name__}: {error}.") from None


@click.command()
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
def completion(shell: str) -> None:
    """Print the script that lets a shell complete commands.

    Write it to a file, and have the shell read that when it starts: `source FILE` in ~/.bashrc, say.

    \b
    Examples:
      tacit completion bash
      tacit completion zsh
      tacit completion fish
    """
    made = get_completion_class(shell)
    assert made is not None  # click knows these three
    root = click.get_current_context().find_root()
    click.echo(made(root.command, {}, "tacit", "_TACIT_COMPLETE").source())


for _command in (  # in the order of need
    draft.init, discovery.discover, rehearsal.check, rehearsal.try_,
    own.plan, own.start, own.extend, own.append, own.encode, own.forget,
    ask.ask, ask.table, ask.cdf, ask.quantile,
    publish.status, publish.history, publish.publish, publish.synthesize, publish.report, publish.verify,
    serve.serve, serve.token, demo.demo, bench.bench, completion,
):  # fmt: skip
    main.add_command(_command)
