"""Trusted with budgets: private discovery buys what a domain is made of, for a small part. `tacit.discover`.

A column is *sought* where nobody can list its values or bins: a table as in TOML, with `discover` in the place of
these. What is found is public, like everything a ledger releases, and the session that opens with it goes on in the
same ledger. Where a ledger is made by a discovery, a tenth of delta is kept for the values of categories.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path
from typing import Any

from tacit.errors import ConfigError, DataError, InvalidBudget
from tacit.exact.price import check_person, threshold_of, total, values_noise
from tacit.load import Source, open_source
from tacit.model.attribute import category
from tacit.model.budget import Budget, Loss, percent_of
from tacit.model.domain import Domain
from tacit.model.entry import Discovered, Found, Measured, decode
from tacit.model.facts import Receipt
from tacit.model.noise_law import quantile
from tacit.model.statistic import Statistic
from tacit.model.workload import leaves
from tacit.owner.binding import bound_on_rows, unit_terms
from tacit.owner.terms import MadeWith
from tacit.release.epsilon import epsilon_spent
from tacit.release.ranges.choice import choose, signal
from tacit.release.ranges.distribution import Distribution
from tacit.release.sought_columns import Sought, said
from tacit.store.anchor import Anchor
from tacit.store.chain import Line
from tacit.store.conditions import accepted
from tacit.store.log import Log
from tacit.trusted.cells import read_records, read_tally
from tacit.trusted.discovery import discover as look
from tacit.trusted.ledger import Ledger

_SHARE = 0.1  # of the budget
ASIDE = 0.1  # of delta, for values that are discovered
PAIRS = 0.1  # of what a discovery costs, for which columns determine each other
DETERMINED = 0.02  # of the rows may be exceptions
MOST_PAIRED, MOST_PAIR_CELLS = 16, 2**20  # attributes that are compared by pairs, and cells of a pair
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Offered:
    """What one column costs, and what is told of it."""

    name: str
    what: str
    price: Loss
    known: bool

    def percent_of(self, whole: Loss) -> str:
        return percent_of(self.price, whole)


@dataclass(frozen=True)
class Offer:
    """What a discovery would cost, from public parameters alone. Nothing is bought by it."""

    columns: tuple[Offered, ...]
    cost: Loss
    total: Loss

    def to_dict(self) -> dict[str, Any]:
        """Its fields as a dict for JSON."""
        columns = [{"name": one.name, "what": one.what, "percent": self._percent(one.price)} for one in self.columns]
        return {"percent": self._percent(self.cost), "cost": self.cost.to_dict(), "columns": columns}

    def _percent(self, loss: Loss) -> float:
        return 100 * loss.atoms / self.total.atoms

    def __str__(self) -> str:
        names = ", ".join(one.name for one in self.columns if not one.known)
        price = percent_of(self.cost, self.total)
        return f"Discovering {names} costs {price} of the budget." if names else "All of it is known: it costs nothing."


@dataclass(frozen=True)
class Discovery:
    """What was discovered: public, and paid for.

    tables: each attribute as a configuration has it. `tacit.Domain.from_dict` makes a domain of them.
    empty: columns of which no value was had by enough rows.
    notes: what else is worth knowing, in words: which columns determine others, which values were left out.
    """

    tables: Mapping[str, Mapping[str, Any]]
    empty: tuple[str, ...]
    notes: tuple[str, ...]
    cost: Loss
    total: Loss

    @property
    def domain(self) -> Domain:
        return Domain.from_dict(self.tables)

    def to_dict(self) -> dict[str, Any]:
        """Its fields as a dict for JSON."""
        domain = self.domain.to_dict() if self.tables else {}
        percent = 100 * self.cost.atoms / self.total.atoms
        return {"percent": percent, "domain": domain, "empty": list(self.empty), "notes": list(self.notes)}

    def __str__(self) -> str:
        lines = [f"{name}: {said(table)}" for name, table in self.tables.items()]
        lines += [f"{name}: no value that enough rows have" for name in self.empty]
        return "\n".join([*lines, *self.notes, f"{percent_of(self.cost, self.total)} of the budget was spent."])


def offer(
    columns: Mapping[str, Any],
    budget: Budget,
    ledger: str | Path,
    *,
    rows_per_person: int | None = None,
    share: float = _SHARE,
    anchor: str | Path | None = None,
    accept_rollback: str | None = None,
) -> Offer:
    """What `discover` would cost with the same arguments, and from how many rows on a value would be told."""
    sought, declared = _read(columns)
    people = 1 if rows_per_person is None else rows_per_person
    check_person("anybody", people)
    whole, aside = _whole(budget, Path(ledger))
    known, newest = _known(Path(ledger), Anchor(None if anchor is None else Path(anchor)), accept_rollback)
    new = [one for one in sought if _recalled(one, known) is None]
    each, pairs = _losses(whole, share, len(new), len(sought) + len(declared))
    lines = []
    for one in sought:
        is_new = one in new
        what = _offered(one, each, people, aside, newest + 1, new) if is_new else "known"
        lines.append(Offered(one.name, what, each if is_new else Loss.nothing(whole.measure), not is_new))
    cost = Loss(whole.measure, each.atoms * len(new) + (pairs.atoms if new else 0))
    return Offer(tuple(lines), cost, whole)


def discover(
    *,
    data: Any,
    columns: Mapping[str, Any],
    budget: Budget,
    ledger: str | Path,
    table: str | None = None,
    person: str | None = None,
    rows_per_person: int | None = None,
    share: float = _SHARE,
    anchor: str | Path | None = None,
    accept_rollback: str | None = None,
) -> Discovery:
    """Find categories, ranges and bins of columns privately, before a session opens with the same ledger.

    columns: a table for each, as in TOML: {"clinic": {"kind": "category", "discover": True},
        "cost": {"kind": "numeric", "discover": 12, "low": 0, "high": 1_000_000}}. Those without `discover` are declared
        already: they are compared with the others, and cost nothing else. `low` and `high` may be as wide as you like;
        without them the grid has two digits, from a thousandth to a hundred million.
    budget, ledger, person, rows_per_person, anchor, accept_rollback: as for `tacit.open`, which goes on in the ledger.
    share: of the whole budget, for all that is discovered now. A column that was discovered before costs nothing.

    A value is told where so many rows have it that its noisy count passes a threshold, which `offer` names; the others
    go to `other`. That needs a delta. Bounds leave out about half a per cent of the rows at either end, or as many as
    the noise hides; edges of numeric bins are noisy quantiles.
    """
    begun = datetime.now(UTC)  # before the data are looked at
    sought, declared = _read(columns)
    people = bound_on_rows(person, rows_per_person)
    if not isinstance(share, float) or not 0 < share < 1:
        raise ConfigError(f"share is the part of the budget that discovery may take, like 0.1, not {share!r}.")
    path = Path(ledger)
    whole, aside = _whole(budget, path)
    if any(one.kind == "category" for one in sought) and not aside:
        raise InvalidBudget("without a delta, which values a column has cannot be discovered: list them, or set delta.")
    source = open_source(data, table)
    whose: dict[str, Any] = {"person": person, "rows_per_person": people}
    book = Ledger.open(
        path,
        make="missing",
        budget=budget,
        total=whole,
        aside=aside,
        binding=unit_terms(person, people),
        anchor=Anchor(None if anchor is None else Path(anchor)),
        accept_rollback=accepted(accept_rollback, begun),
    )
    with book, book.log.conditions.asked_at(begun):
        before, known = book.spent, _known_lines(book.log.lines(kinds=("found", "discovered")))
        new = [one for one in sought if _recalled(one, known) is None]
        each, pairs = _losses(whole, share, len(new), len(sought) + len(declared))
        tallies = [read_tally(source, _unlisted(source, one, person), **whose) for one in new if one.kind == "category"]
        asked = []
        for one in new:
            if one.kind != "category":
                records = read_records(source, one.wide(), **whose)
                strength = signal(records.rows, each) / people
                about = leaves(records.domain[one.name])
                chosen = choose(one.name, about, each.measure, about="thresholds", signal=strength)
                asked.append((chosen.strategy, records))
        if new:
            known = {**known, **_known_lines(look(book, tallies, asked, each))}
        tables, empty, notes = _tables(sought, known)
        everything = {**declared, **tables}
        if new and len(everything) > 1:
            try:
                _compare(book, source, Domain.from_dict(everything), whose, pairs)
            except DataError:  # what was found is paid for, and told; how rows fit is for their owner alone
                notes.append(
                    "Which columns determine others was not looked at: some row does not fit what is declared. `tacit "
                    "check` says how. Keep this to yourself: it is about the rows, and has no noise."
                )
        notes += _rules(book.log.lines(kinds=("discovered",)))
        return Discovery(tables, empty, tuple(notes), book.spent - before, whole)


def left_after_discovery(budget: Budget, ledger: Path, anchor: str | Path | None = None) -> Budget:
    """A budget that is worth what discoveries in a ledger have left of this one, to rehearse with."""
    made = MadeWith.of(ledger)
    if made is None:
        return budget
    with closing(Log.open(ledger, None, Anchor(None if anchor is None else Path(anchor)), made.rules)) as log:
        spent = max((line.spent for line in log.lines(kinds=("found", "discovered"))), default=0)
    if not spent:
        return budget
    left = Loss(made.total.measure, total(budget, made.total.measure, aside=made.aside).atoms - spent)
    return Budget(epsilon=max(1e-9, epsilon_spent(left, budget)), delta=budget.delta)


# -- what is sought, and what it costs -----------------------------------------------------------------------------


def _read(columns: Mapping[str, Any]) -> tuple[list[Sought], dict[str, Any]]:
    """What is sought, and what is declared already."""
    tables = {name: table for name, table in columns.items() if isinstance(table, Mapping)}
    if len(tables) < len(columns):
        raise ConfigError('columns are tables, like {"clinic": {"kind": "category", "discover": True}}.')
    sought = [Sought.of(name, table) for name, table in tables.items() if "discover" in table]
    if not sought:
        raise ConfigError("nothing is to be discovered: say discover = true in the tables of some columns.")
    return sought, {name: table for name, table in tables.items() if "discover" not in table}


def _whole(budget: Budget, path: Path) -> tuple[Loss, float]:
    """The whole budget, and the part of delta for values: as the ledger has it, or as a new one will."""
    made = MadeWith.of(path)
    if made is not None and made.settings:
        raise ConfigError(f"{path.name} answers questions already: discovery comes before the first of them.")
    measure = budget.measure if made is None else made.total.measure
    aside = budget.delta * ASIDE if made is None else made.aside
    return total(budget, measure, aside=aside), aside


def _losses(whole: Loss, share: float, columns: int, attributes: int) -> tuple[Loss, Loss]:
    """For each new column, and for all pairs together."""
    paired = PAIRS if attributes > 1 else 0.0
    each = int(whole.atoms * share * (1 - paired) / max(1, columns))
    return Loss(whole.measure, each), Loss(whole.measure, int(whole.atoms * share * paired))


def _offered(one: Sought, loss: Loss, people: int, aside: float, intent: int, new: Sequence[Sought]) -> str:
    if one.kind == "category":
        if not aside:
            raise InvalidBudget("without a delta, which values a column has cannot be discovered: list them.")
        among = sum(other.kind == "category" for other in new)
        least = threshold_of(values_noise(loss, people), people, aside, intent, among)
        return f"values that {least:,} rows or more have"
    return {"integer": "bounds of whole numbers", "numeric": "bins of equal weight", "date": "first and last"}[one.kind]


# -- what is known -------------------------------------------------------------------------------------------------

Known = Mapping[str, tuple[Found | Discovered, Line]]


def _known(path: Path, anchor: Anchor, accept_rollback: str | None) -> tuple[Known, int]:
    """What was discovered before, if the ledger is the newest that its anchor has seen; and its last entry's number."""
    made = MadeWith.of(path)
    if made is None:
        return {}, 0
    with closing(Log.open(path, None, anchor, made.rules, accept_rollback)) as log:
        return _known_lines(log.lines(kinds=("found", "discovered"))), log.head().seq


def _known_lines(lines: Iterator[Line] | Sequence[Line]) -> dict[str, tuple[Found | Discovered, Line]]:
    """By column: what was found, or the last wide measurement."""
    known: dict[str, tuple[Found | Discovered, Line]] = {}
    for line in lines:
        if line.kind in ("found", "discovered"):
            entry = decode(line.kind, line.body)
            if isinstance(entry, Found):
                known[entry.name] = entry, line
            elif isinstance(entry, Discovered) and len(entry.domain) == 1:
                known[entry.domain.names[0]] = entry, line
    return known


def _recalled(one: Sought, known: Known) -> tuple[Found | Discovered, Line] | None:
    """What was discovered of a column before, if it was sought in the same way."""
    entry, line = known.get(one.name, (None, None))
    if line is None or entry is None or isinstance(entry, Found) != (one.kind == "category"):
        return None
    return (entry, line) if isinstance(entry, Found) or entry.domain == one.wide() else None


def _unlisted(source: Source, one: Sought, person: str | None) -> Domain:
    """The column as a category of which no value is known: of text, or of whole numbers where it holds numbers."""
    text = Domain({one.name: category(["?"], missing=one.missing)})
    wanted = one.name.lower()
    held = {column.name.lower(): column.type for column in source.columns(text, person)}
    return Domain({one.name: category([0])}) if held.get(wanted) in ("number", "decimal") else text


def _tables(sought: Sequence[Sought], known: Known) -> tuple[dict[str, Any], tuple[str, ...], list[str]]:
    tables, empty, notes = dict[str, Any](), list[str](), list[str]()
    for one in sought:
        entry, line = known[one.name]
        if isinstance(entry, Found):
            table = one.from_values(entry)
            if table is None:
                empty.append(one.name)
                continue
            notes.append(
                f"{one.name}: values that fewer than about {entry.threshold:,} rows have are {table['other']!r}."
            )
        else:
            counts = _distribution(entry, line)
            table = one.from_counts(counts)
            notes.append(
                f"{one.name}: {one.outside(counts)}, and count at the nearest end. Write wider ones if you know."
            )
        tables[one.name] = table
    return tables, tuple(empty), notes


def _distribution(entry: Discovered, line: Line) -> Distribution:
    taken = entry.measured
    measured = Measured(
        key=str(line.key),
        question=taken.question,
        values=taken.values,
        unit=taken.unit,
        noise=taken.noise,
        cost=Loss.nothing("gdp"),
        receipt=Receipt(0, line.hash),
    )
    return Distribution(measured, entry.domain, entry.rows, CONFIDENCE)


def _compare(book: Ledger, source: Source, domain: Domain, whose: Mapping[str, Any], loss: Loss) -> None:
    """Buy, for every pair of attributes, a noisy count of the exceptions to the best rule from one to the other.

    A rule needs at least as many values as it has results: other pairs are not asked about.
    """
    names = sorted(sorted(domain, key=lambda name: domain[name].size)[:MOST_PAIRED])
    bins = {name: domain[name].bins for name in names}
    pairs = [(a, b) for a, b in permutations(names, 2) if 1 < bins[b] <= bins[a] <= MOST_PAIR_CELLS // domain[b].size]
    each = Loss(loss.measure, loss.atoms // max(1, len(pairs)))
    if not each.atoms or not pairs:
        return
    records = read_records(source, domain.project(names), **whose)
    rules = [Statistic("exceptions", (a, b), (bins[a], bins[b])) for a, b in pairs]
    look(book, [], [(rule, records.project(sorted(rule.scope))) for rule in rules], each)


def _rules(lines: Iterator[Line]) -> list[str]:
    """Which attributes follow from which, in words, by what was bought."""
    notes = []
    for line in lines:
        entry = decode(line.kind, line.body)
        assert isinstance(entry, Discovered)
        asked = entry.measured.question
        if isinstance(asked, Statistic) and asked.name == "exceptions":
            most = int(entry.measured.values[0]) + quantile(entry.measured.noise, CONFIDENCE)
            if most <= DETERMINED * entry.rows:
                share = f"{100 * max(most, 1) / entry.rows:.2g}"
                first, second = asked.scope
                notes.append(f"{first} determines {second}: at most {share} % of the rows are exceptions (95 %).")
    return notes
