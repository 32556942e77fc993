"""`tacit completion`: the script that lets a shell complete commands and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class


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


COMMANDS = (completion,)
