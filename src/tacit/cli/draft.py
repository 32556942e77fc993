"""`tacit init`: the draft of a configuration, from columns' names and types and the answers to five questions.

The names and types of columns are taken to be public. Their values are not: they are looked at only when the owner says
so.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tacit.cli.options import at_terminal, json_option, writing
from tacit.cli.show import print_json, say, waiting
from tacit.errors import ConfigError

if TYPE_CHECKING:
    from tacit.load.columns import TableColumn
    from tacit.load.look import Seen

# Columns that name somebody: better left out of what can be asked about. The first group may say whose row it is.
_WHOSE = re.compile(r"(.*_)?(id|uid|uuid|guid|mrn|ssn|person|patient|subject|user|customer|client|member)")
_NAMES = re.compile(
    r"names?|(.*_)?((first|last|full|sur|given|family|middle|user|nick)_?name|(e_?)?mail|phone|address)|rownames?|index|seqn"
)
_FEW = 0.01  # values for each row: what has fewer is no identifier, whatever it is called
IDENTIFIES = 0.9  # the share of the rows with a value of their own from which on a column looks like an identifier


@dataclass(frozen=True)
class DraftTerms:
    """The five things that nobody but the owner knows."""

    person: str | None
    rows_per_person: int
    epsilon: float
    questions: int
    peek: bool
    ledger: str


@click.command()
@click.argument("data", required=False)
@click.option(
    "--from", "made_from", metavar="LEDGER", help="Write the configuration back that this ledger was made with."
)
@click.option("--table", help="The table to read, if DATA is a database.")
@click.option("--output", "-o", default="tacit.toml", show_default=True, help="The file to write.")
@click.option("--force", is_flag=True, help="Replace the file if there is one.")
@click.option("--person", metavar="COLUMN", help="Who is protected: the column that says whose row it is.")
@click.option(
    "--rows-per-person",
    type=click.IntRange(min=1),
    metavar="M",
    help="How many rows of one person count.  [default: 3]",
)
@click.option("--epsilon", type=float, metavar="E", help="The privacy budget for everything together.  [default: 1]")
@click.option(
    "--questions", type=click.IntRange(min=1), metavar="K", help="About how many are expected.  [default: 10000]"
)
@click.option("--ledger", metavar="FILE", help="Where every charge and answer is recorded.  [default: DATA.tacit]")
@click.option(
    "--peek-at-values/--no-peek",
    default=None,
    help="The values are public: look at the rows to guess bounds and categories. What is written then is exact and no "
    "longer private.",
)
@json_option
def init(
    data: str | None,
    made_from: str | None,
    table: str | None,
    output: str,
    force: bool,
    person: str | None,
    rows_per_person: int | None,
    epsilon: float | None,
    questions: int | None,
    ledger: str | None,
    peek_at_values: bool | None,
    as_json: bool,
) -> None:
    """Draft a commented configuration for DATA.

    DATA is a file, a SELECT over files, or a postgresql:// address. Only the names and types of the columns are looked
    at; you fill in bounds and categories, or leave them to `tacit discover`. At a terminal you are asked five things,
    unless the options say them: what a person is, epsilon, how many questions, what is public, and where the ledger
    lives.

    \b
    Examples:
      tacit init people.csv
      tacit init visits.csv --person patient_id --rows-per-person 3 --epsilon 0.5 --questions 500
      tacit init warehouse.duckdb --table people -o people.toml
      tacit init people.parquet --peek-at-values
      tacit init people.csv --from people.tacit
    """
    from tacit.load import is_address, is_query, open_source
    from tacit.load.look import look
    from tacit.model.budget import Budget

    path = Path(output)
    if path.exists() and not force:
        raise ConfigError(f"{output} exists already; choose another name with --output, or say --force.")
    if made_from is not None:
        _write_back(Path(made_from), data, path, as_json)
        return
    if data is None:
        raise click.UsageError("name the DATA: a file, a SELECT over files, or a postgresql:// address.")
    if rows_per_person is not None and person is None:
        raise click.UsageError("--rows-per-person needs --person: the column that says whose row it is.")
    is_file = not (is_query(data) or is_address(data))
    with waiting("Looking at the columns"):
        found = open_source(data, table).describe()
    given = DraftTerms(
        person, rows_per_person or 3, 1.0 if epsilon is None else epsilon, questions or 10_000, bool(peek_at_values),
        ledger or f"{Path(data).stem if is_file else 'data'}.tacit",
    )  # fmt: skip
    if at_terminal():
        said = {"person": person, "epsilon": epsilon, "questions": questions, "peek": peek_at_values, "ledger": ledger}
        given = _asked(given, found, [name for name, value in said.items() if value is None])
    if given.person is not None:
        given = replace(given, person=_column(found, given.person))
    Budget(epsilon=given.epsilon, delta=1e-9)  # refuses an epsilon that is none
    seen = None
    if given.peek:
        with waiting("Looking at the values"):
            seen = look(data, table)
    source = os.path.relpath(data, path.parent) if is_file else data
    text = draft(source, Path(data).name if is_file else "the data", table, given, found, seen)
    with writing(output) as file:
        file.write_text(text, encoding="utf-8")
    left_out = [column.name for column in found if identifies(column, (seen or {}).get(column.name))]
    attributes = len(tomllib.loads(text).get("domain", {}))
    _say_what_next(output, attributes, found, left_out, given)
    if as_json:
        names = [column.name for column in found]
        print_json({"wrote": output, "columns": names, "left_out": left_out, "peeked": given.peek})


def _write_back(ledger: Path, data: str | None, output: Path, as_json: bool) -> None:
    """The configuration of a ledger, from the ledger."""
    from tacit.load import is_address, is_query
    from tacit.owner.terms import MadeWith

    made_with = MadeWith.of(ledger)
    if made_with is None:
        raise ConfigError(f"there is no ledger {ledger}.")
    folder = output.parent
    source = data or "DATA"
    if data is not None and not (is_query(data) or is_address(data)):
        source = os.path.relpath(data, folder)
    with writing(str(output)) as file:
        file.write_text(made_with.to_toml(source, os.path.relpath(ledger, folder)), encoding="utf-8")
    say(f"Wrote {output}: what {ledger.name} was made with.")
    if data is None:
        say('The ledger does not say where the table is: fill in source = "DATA".')
    if made_with.prior is not None:
        say("It was started with a prior: name the same one in [session], prior = FILE.")
    if as_json:
        print_json({"wrote": str(output), "ledger": str(ledger)})


def _column(found: Sequence[TableColumn], name: str) -> str:
    """A column's own spelling."""
    for column in found:
        if column.name.lower() == name.lower():
            return column.name
    raise ConfigError(f"there is no column {name}; the columns are {', '.join(column.name for column in found)}.")


def _asked_column(found: Sequence[TableColumn]) -> str:
    """A column that somebody names, asked until there is one of that name; or nothing."""
    while said := str(click.prompt("   column", default="", show_default=False, err=True)).strip():
        try:
            return _column(found, said)
        except ConfigError as error:
            say(f"   {error.sentence}")
    return ""


def _asked(given: DraftTerms, found: Sequence[TableColumn], unsaid: Sequence[str]) -> DraftTerms:
    """What the options do not say, asked at the terminal."""
    ask = click.prompt
    if "person" in unsaid:
        likely = [column.name for column in found if says_whose(column.name)]
        say("1. Who is protected? If a person may have several rows, name the column that says whose row it is;")
        say(f"   just Enter: every row is another person.{f' It could be {likely[0]}.' if likely else ''}")
        said = _asked_column(found)
        if said:
            given = replace(given, person=said)
            most = ask(
                "   at most so many rows of one person count", type=click.IntRange(1, 10_000), default=3, err=True
            )
            given = replace(given, rows_per_person=most)
    if "epsilon" in unsaid:
        say("2. How much may everything together tell about one of them? 1 is common, 0.1 strict, 10 weak.")
        given = replace(given, epsilon=ask("   epsilon", type=float, default=1.0, err=True))
    if "questions" in unsaid:
        say("3. About how many questions will be asked? A guess is enough.")
        given = replace(given, questions=ask("   questions", type=click.IntRange(min=1), default=10_000, err=True))
    if "peek" in unsaid:
        say("4. Is it public which values the columns have? Then the rows are looked at, and bounds and categories")
        say("   filled in; what is written so is exact, and no longer private.")
        given = replace(given, peek=click.confirm("   look at the values", default=False, err=True))
    if "ledger" in unsaid:
        say("5. Where shall every charge and every answer be recorded? Keep that file as secret as the data.")
        given = replace(given, ledger=str(ask("   ledger", default=given.ledger, err=True)))
    return given


def _say_what_next(
    output: str, attributes: int, found: Sequence[TableColumn], left_out: Sequence[str], given: DraftTerms
) -> None:
    many = "attribute" if attributes == 1 else "attributes"
    columns = "column" if len(found) == 1 else "columns"
    say(f"Wrote {output} with {attributes} {many} from {len(found)} {columns}.")
    if left_out:
        say(f"Left out, since they name somebody: {', '.join(left_out)}.")
    likely = [name for name in left_out if says_whose(name)]
    if given.person is None and likely:
        say(f'A row is protected. If one person may have several, protect persons: person = "{likely[0]}" in [data].')
    if given.peek:
        say("Bounds and categories were read from the rows: keep only what you are content to make public.")
    else:
        say("Only the names and types of the columns were looked at. Fill in the values and bins that you know; the")
        say("others `tacit discover` finds privately, for a part of the budget that `tacit discover --dry-run` names.")
    say("`tacit check` then says what is wrong with it, and `tacit try` rehearses it on made-up rows: both for free.")


# -- the text: templates/tacit.toml ------------------------------------------------------------------------------------


def draft(
    source: str,
    shown: str,
    table: str | None,
    terms: DraftTerms,
    columns: tuple[TableColumn, ...],
    seen: Mapping[str, Seen] | None,
) -> str:
    """The text of a configuration. `seen` holds what was read from the rows, if the owner allowed it."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from tacit.model.domain import toml_key, toml_value
    from tacit.model.sql.spelling import column as column_in_sql
    from tacit.release.sought_columns import OTHERS

    made = Environment(
        loader=PackageLoader("tacit.cli"), undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    made.filters |= {
        "toml": toml_value,
        "toml_key": toml_key,
        "whole_bins": _whole_bins,
        "edges": _edges,
        "other": partial(_free, OTHERS),  # what is not listed
        "missing": partial(_free, ("unknown", "missing", "no value", "not said")),
        "sql": column_in_sql,
    }
    looked = seen or {}
    found: list[tuple[Any, ...]] = [
        (toml_key(column.name), column, looked.get(column.name), identifies(column, looked.get(column.name)))
        for column in columns
        if column.name != terms.person
    ]
    likely = next((column.name for column in columns if says_whose(column.name)), "patient_id")
    return made.get_template("tacit.toml").render(
        source=source, shown=shown, table=table, title=Path(terms.ledger).stem, terms=terms, columns=found,
        peeked=seen is not None, likely=likely,
    )  # fmt: skip


def identifies(column: TableColumn, seen: Seen | None) -> bool:
    """Whether a column names somebody: by what it is called, or since nearly every row has a value of its own."""
    if column.type not in ("text", "number", "decimal"):
        return False
    if _NAMES.fullmatch(column.name.lower()):
        return True
    if seen is None:
        return says_whose(column.name)
    return seen.different >= (_FEW if says_whose(column.name) else IDENTIFIES) and not column.fractions


def says_whose(name: str) -> bool:
    """Whether a column is called as if it said whose row it is."""
    return _WHOSE.fullmatch(name.lower()) is not None or name.endswith(("Id", "ID"))


def _free(words: Sequence[str], seen: Seen) -> str:
    """The first of the words that is not one of the listed values itself."""
    taken = {value.lower() for value in seen.values or ()}
    return next(word for word in words if word not in taken)


def _whole_bins(seen: Seen) -> tuple[int, int, int]:
    """Round bounds of whole numbers, and the width of about 40 bins."""
    low, high = float(seen.low), float(seen.high)
    width = max(1, round(_step((high - low) / 40)))
    return math.floor(low / width) * width, math.floor(high / width) * width + width - 1, width


def _edges(seen: Seen) -> list[float]:
    """Round edges of about 10 bins."""
    low, high = float(seen.low), float(seen.high)
    step = _step((high - low) / 10)
    exact = [i * step for i in range(math.floor(low / step), math.floor(high / step) + 2)]
    rounded = [float(f"{edge:.12g}") for edge in exact]  # 0.3, not 0.30000000000000004
    return rounded if len(set(rounded)) == len(exact) else exact


def _step(wanted: float) -> float:
    """A round width of at least so much: round bounds say less than exact ones."""
    from tacit.show.chart.axes import round_number

    return round_number(wanted, up=True) if wanted > 0 else 1.0
