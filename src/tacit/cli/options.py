"""What the commands share: their options; how a session, a server or a published file is opened; writing files."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from tacit.cli.show import advance, move, say, waiting
from tacit.errors import ConfigError, LedgerError, NotStarted

if TYPE_CHECKING:
    from tacit.blocks.series import Series
    from tacit.client import Client
    from tacit.config import Config
    from tacit.model.budget import Loss
    from tacit.model.status import Started
    from tacit.session import Session

    Command = Callable[..., Any]
    Opened = Session | Series | Client

T = TypeVar("T")
STOPPED = "tacit.stopped"  # where a command that is interrupted leaves what it has spent: a `Stopped`
config_option = click.option(
    "--config", "-c", default="tacit.toml", show_default=True, envvar="TACIT_CONFIG", help="The configuration file."
)


class Stopped(NamedTuple):
    """What somebody is told who stops a run: about what it has spent, and whether that is nothing for certain."""

    words: str = "Nothing was spent."
    nothing_spent: bool = True


def config_anywhere(command: Command) -> Command:
    """Gives a command that takes nothing else by its place the configuration file both ways: `CONFIG`, or -c CONFIG."""

    @wraps(command)
    def call(by_place: str | None, config: str, **given: Any) -> Any:
        named = click.get_current_context().get_parameter_source("config")
        if by_place is not None and named is click.core.ParameterSource.COMMANDLINE and by_place != config:
            raise click.UsageError("one configuration file is named, by its place or with -c.")
        return command(config=by_place or config, **given)

    made: Command = config_option(call)
    return click.argument("by_place", required=False, metavar="[CONFIG]")(made)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON: one line for each answer.")
rollback_option = click.option(
    "--accept-rollback", metavar="REASON", help="Continue with an older copy of the ledger, which records the reason."
)
published_option = click.option(
    "--published",
    metavar="FILE",
    help="Answer from a file that `tacit publish` wrote, instead of --config: free, and without the data.",
)
unlimited_option = click.option(
    "--unlimited",
    is_flag=True,
    help="Read also a published file that is far more work than others of its size. For files of people you trust.",
)
server_options = (
    click.option("--server", metavar="URL", help="Ask a server, like https://tacit.example.org, instead of --config."),
    click.option(
        "--key-file",
        "-k",
        metavar="FILE",
        envvar="TACIT_KEY_FILE",
        help="A file with your key at the server, which nobody else can read. Or set TACIT_KEY, or use a keyring.",
    ),
    click.option("--data", metavar="NAME", help="Which of the server's data sets; not needed where it has one."),
    click.option("--plain-http", is_flag=True, help="Send the key to another machine without TLS."),
)
start_option = click.option(
    "--start", is_flag=True, help="Buy what the answers start from, where that is still to do: see `tacit start`."
)
units_option = click.option(
    "--units", is_flag=True, help="Prices also as privacy loss, in gdp, rho or epsilon; --json has both in any case."
)
where_option = click.option("--where", metavar="CONDITION", help="Use only the rows that meet this SQL condition.")
svg_option = click.option("--svg", metavar="FILE", help="Also draw the answer, to this SVG file.")


@dataclass(frozen=True)
class Options:
    """The options of every command that opens a table, a server or a published file."""

    config: str
    as_json: bool = False
    accept_rollback: str | None = None
    published: str | None = None
    unlimited: bool = False
    start: bool = False
    units: bool = False
    block: str | None = None
    server: str | None = None
    key_file: str | None = None
    data: str | None = None
    plain_http: bool = False


def _as_record(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Gives a command these options, as one record."""
    names = [field.name for field in fields(Options)]

    def give(command: Command) -> Command:
        @wraps(command)
        def call(**given: Any) -> Any:
            shared = {name: given.pop(name) for name in names if name in given}
            if shared.get("unlimited") and shared["published"] is None:
                raise click.UsageError("--unlimited is for --published.")
            return command(Options(**shared), **given)

        made: Command = call
        for option in reversed(options):  # click lists the last one added first
            made = option(made)
        return made

    return give


block_option = click.option("--block", metavar="LABEL", help="Of a series of blocks: this one alone.")
_ALL = json_option, rollback_option, block_option
# Of commands about a table or a server; a table or a published file; any of the three; and of those that ask.
publisher_options = _as_record(config_anywhere, *_ALL, *server_options)
analyst_options = _as_record(config_anywhere, *_ALL, published_option, unlimited_option, units_option)
reader_options = _as_record(config_anywhere, *_ALL, published_option, unlimited_option, units_option, *server_options)
asker_options = _as_record(
    config_option, *_ALL, published_option, unlimited_option, start_option, units_option, *server_options
)


def check_dry_run(accept_rollback: str | None, *, start: bool = False) -> None:
    """Refuse, of a dry run, what would write to the ledger."""
    if accept_rollback is not None or start:
        which = "--start" if accept_rollback is None else "--accept-rollback"
        raise click.UsageError(f"--dry-run writes nothing, and {which} writes to the ledger: give one of the two.")


@contextmanager
def reached(options: Options, *, without_data: bool = False, looking: bool = False) -> Iterator[Session | Client]:
    """The server's data set, where --server names one, or what `opened` gives. Closed at the end."""
    _check_server(options)
    if options.server is None:
        with opened(options, without_data=without_data, looking=looking) as session:
            yield session
        return
    from tacit.client import connect

    key = None if options.key_file is None or "TACIT_KEY" in os.environ else Path(options.key_file)
    with (
        connect(options.server, key, data=options.data, plain_http=options.plain_http) as client,
        _telling(client),
    ):
        yield client


@contextmanager
def opened(options: Options, *, without_data: bool = False, looking: bool = False) -> Iterator[Session]:
    """The configured session, or what a published file knows. Closed at the end.

    without_data: what the ledger knows is enough; the table is read only where there is no ledger yet.
    looking: nothing is to be bought or kept, so that no ledger is made where there is none.
    """
    if options.published is None:
        from tacit.config import read_config

        config = read_config(options.config)
        if options.block is not None:
            with _series(config, options, looking=looking) as blocks:
                may_spend()
                yield blocks.block(options.block)
            return
        if looking and options.accept_rollback is None:
            with config.unbound() as trial:
                if trial is not config:
                    with _read_table(trial, options) as session, session.free():
                        yield session
                    return
        known = config.reopen() if without_data and options.accept_rollback is None else None
        if known is not None:
            session, differ = known
            if differ:
                say(f"{options.config} is not what the ledger was made with: {'; '.join(differ)}.")
        else:
            session = _read_table(config, options)
    else:
        if _names_config() or options.accept_rollback or options.start:
            raise click.UsageError(
                "--published is used instead of --config, --accept-rollback and --start, not with them."
            )
        from tacit.public import read

        with waiting("Reading what was published"):
            session = read(options.published, unlimited=options.unlimited)
    with session, _telling(session):
        yield session


def _read_table(config: Config, options: Options) -> Session:
    """The configured session, with a bar while its table is read."""
    with waiting("Reading the table") as loading, _no_garbage():
        more: dict[str, Any] = {"start": True} if options.start else {}
        # Whatever bar is shown later: an encoded copy is also counted after it was opened.
        share = None if loading is None else move
        return config.open(accept_rollback=options.accept_rollback, loading=share, progress=advance, **more)


def _series(config: Config, options: Options, *, looking: bool) -> Series:
    """The configured series of blocks. Who only looks makes none."""
    if looking and config.is_new:
        raise LedgerError(
            f"{config.ledger.name} has no block yet: `tacit append` adds the first, and makes the series."
        )
    return config.series(accept_rollback=options.accept_rollback, progress=advance)


@contextmanager
def asked(options: Options, *, looking: bool = False) -> Iterator[Opened]:
    """The same for who asks: a series of blocks, where the configuration has one and no block of it is named."""
    _check_server(options)
    from tacit.config import read_config

    config = read_config(options.config) if options.published is None and options.server is None else None
    if config is None or config.blocks is None or options.block is not None:
        with reached(options, looking=looking) as session:
            yield session
        return
    with _series(config, options, looking=looking) as blocks:
        may_spend()
        if options.start:
            blocks.start()
        yield blocks


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Without looks for garbage, of which loading a program and a table makes none: a tenth of a short command."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _check_server(options: Options) -> None:
    """Refuse options that have nothing to do with each other."""
    if options.server is None:
        if options.data is not None or options.plain_http:
            raise click.UsageError("--data and --plain-http are about a server: say --server URL too.")
        return
    if options.published or _names_config() or options.accept_rollback or options.start or options.block:
        raise click.UsageError(
            "--server is used instead of --config, --published, --accept-rollback, --start and --block, not with them."
        )
    if options.key_file is not None and options.key_file.startswith("tacit_"):
        raise click.UsageError("a key on a command line is seen by others: set TACIT_KEY, or name a file with -k.")


def _names_config() -> bool:
    """Whether the command line names a configuration."""
    context = click.get_current_context()
    with_c = context.get_parameter_source("config") is click.core.ParameterSource.COMMANDLINE
    return bool(context.params.get("by_place")) or with_c


@contextmanager
def _telling(session: Opened) -> Iterator[None]:
    """Whoever stops a run is told what it has spent, also while it closes its files and ends."""
    before, meta = spent_here(session), click.get_current_context().meta
    try:
        yield
    except (KeyboardInterrupt, click.Abort):
        meta[STOPPED] = _spent_since(session, before)
        raise
    meta[STOPPED] = _spent_since(session, before)


def may_spend() -> None:
    """From here on something may be spent, and whoever stops the run is told where it stands how much."""
    kept = "What was bought is kept, and `tacit status` says what was spent."
    click.get_current_context().meta[STOPPED] = Stopped(kept, nothing_spent=False)


def spent_here(session: Opened) -> Loss:
    """What is spent, as far as this run can tell: at a server others spend too."""
    paid: Loss | None = getattr(session, "paid", None)
    return session.spent if paid is None else paid


def _spent_since(session: Opened, before: Loss) -> Stopped:
    """What was spent in this run, for somebody who stopped it."""
    from tacit.model.budget import percent_of

    now = spent_here(session)
    if now == before:
        return Stopped()
    spent = percent_of(now - before, session.total)
    said = f"{spent} of the budget was spent in this run; what it bought is kept"
    if click.get_current_context().info_name == "start":  # of several purchases, some may still be to do
        said += ", and `tacit start` goes on where it stopped: `tacit start --dry-run` says what is left to buy."
    else:
        said += ", and asking again what was answered is free."
    return Stopped(said, nothing_spent=False)


def at_terminal() -> bool:
    """Whether a person reads what is asked here, and can say yes."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm(question: str, to_do: str, words: str = "") -> None:
    """Ask whether to go on, after `words`; where nobody can answer, refuse and say what --yes would do."""
    if not at_terminal():
        raise click.UsageError(f"say --yes to {to_do}")
    if words:
        say(words)
    click.confirm(question, abort=True, err=True)


def starting(session: Opened, what: str, work: Callable[[], T]) -> T:
    """Do it, with a bar while `what` is worked out, if it is said.

    Where the session has to be started first, a person at a terminal is asked whether to.
    """
    try:
        with waiting(f"Working out the {what}") if what else nullcontext():
            return work()
    except NotStarted:
        from tacit.session import Session

        if not at_terminal() or not isinstance(session, Session):
            raise
        say(f"The session is not started. {session.base}")
        if not click.confirm("Buy it now?", err=True):
            raise
    buy_base(session)
    return work()


def buy_base(session: Session) -> Started:
    """Buy what the session starts from, with a bar."""
    with waiting("Buying what the answers start from"):
        return session.start()


def check_writable(*paths: str | None) -> None:
    """Refuses a file that cannot be written, before anything is bought for it."""
    for path in paths:
        if path is None:
            continue
        there = Path(path)
        if there.is_dir() or not os.access(there if there.exists() else there.parent, os.W_OK):
            raise ConfigError(f"{path} cannot be written.")


@contextmanager
def writing(path: str, *, paid: bool = False) -> Iterator[Path]:
    """A file that is about to be written; what the system says against it becomes one sentence.

    paid: what goes into it may just have been bought, so the sentence does not say that nothing was spent.
    """
    try:
        yield Path(path)
    except OSError:
        error = ConfigError(f"{path} cannot be written.")
        if paid:
            error.nothing_spent = False
            error.sentence += " The answer is kept: asking again is free."
        raise error from None
