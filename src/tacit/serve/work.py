"""How much work a question is, by public things alone, and the most that one request may be. Pure; for the server.

Work is counted in cells that are gone through. Reading a statement is work too: it is counted before it is done, so
that what is too much is refused before a label is made.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.errors import InvalidQuery
from tacit.model.ask import Ask, Cdf, Count, Covariance, Crosstab, Derived, Histogram, Quantile, Select
from tacit.model.domain import Domain
from tacit.model.query import Query
from tacit.model.values import Listed
from tacit.release.evidence import separate
from tacit.release.ranges.band import simulations
from tacit.serve.refusal import Refusal

MAX_SERVED_CELLS = 100_000  # of one table, curve or histogram
MAX_WORK = 2**27  # of one request, see `Question.work`
COUNT_WORK = 2**12  # what a count takes, however few its cells are
_EACH, _CELL = 4, 64  # what a cell of a question's weights takes, and one of a table that is bought whole
_ONCE = 1  # what a weight of a count takes that is only looked up
_ENTRY, _PAGE = 2**10, 2**23  # what an entry of a ledger takes that is added up, and a page
_LINE, _CHARACTER, _STEPS = 2**14, 4, 8  # what a line takes that is shown, each of its characters, and so many steps
_SHAPE = 2**8  # what a value takes that is drawn
_ONE_BY_ONE = 10_000  # cells of a table that may be counts of their own


@dataclass
class Meter:
    """The work of one request, counted while it is read, and held against what a request may be."""

    work: int = 0

    def takes(self, work: int) -> None:
        """Count work that is about to be done; refused where it is too much."""
        self.work += work
        if self.work > MAX_WORK:
            raise Refusal(
                422,
                "too_much_work",
                f"the request goes through more than {MAX_WORK:,} cells: the values of the attributes that each "
                "question is about, for all its questions. Ask fewer at once.",
            )

    def table(self, groups: int, values: int) -> None:
        """Refuse a table of so many groups, about attributes of so many values, that `work_of` would refuse later."""
        check_cells("the table", groups)
        if groups <= _ONE_BY_ONE and self.work + groups * values > MAX_WORK:
            self.takes(groups * values)


def check_cells(what: str, cells: int, instead: str = "") -> None:
    """Refuse a table, a curve or a histogram of too many cells, which would take long to send, let alone to read."""
    if cells > MAX_SERVED_CELLS:
        raise InvalidQuery(f"{what} would have {cells:,} cells; over HTTP the most is {MAX_SERVED_CELLS:,}{instead}.")


def check_bins(domain: Domain, name: str, width: float | None = None) -> None:
    """Refuse a histogram of too many bins, before they are looked for."""
    attribute = domain[domain.resolve(name)]
    if isinstance(attribute.values, Listed):
        return  # it has no order, and is refused for that
    bins, across = attribute.bins, attribute.edge(attribute.bins) - attribute.edge(0)
    if width is not None and width > 0:  # a width that is finer than the declared bins is refused for that
        bins = math.ceil(min(across / width, bins))
    least = math.ceil(across / MAX_SERVED_CELLS) if attribute.values.whole else across / MAX_SERVED_CELLS
    wider = f": ask for wider bins, with a width of {least:,.6g} or more"
    check_cells("the histogram", bins, "" if attribute.kind == "date" else wider)


def work_of(ask: Ask, domain: Domain) -> int:
    """How much work a question is, at most, whatever the data and the mechanism: see `Question.work`."""
    match ask:
        case Count():
            return COUNT_WORK + _EACH * _weights(ask.query)
        case Crosstab():
            cells = ask.table.size(domain)
            check_cells("the table", cells)
            return COUNT_WORK + _table_work(cells, _named(ask.names, domain) + _weights(ask.where))
        case Select() | Derived():
            work = cells = 0
            for one in ask.selects:
                groups = math.prod(group.number(domain) for group in one.groups)
                about = sum(_about(column.value, domain) for column in one.columns)
                # Each column is a table of its own.
                work += COUNT_WORK + len(one.columns) * _table_work(
                    groups, _named([group.name for group in one.groups], domain) + about
                )
                cells += max(1, len(one.columns)) * groups  # without a column it lists the declared values
            check_cells("the table", cells)
            return work
        case Cdf():
            bins = domain[ask.name].bins
            wider = "" if domain[ask.name].kind == "date" else 'wider bins, like {"histogram": …, "width": …}, '
            instead = f": ask for {wider}ranges or quantiles"
            check_cells(f"the curve of {ask.name}", bins, instead)
            return COUNT_WORK + _CELL * _about(ask, domain) + _simulated(bins) + _looked_up(bins, ask.name, domain)
        case Histogram():
            cells = len(ask.cuts) - 1
            check_cells("the histogram", cells)
            return COUNT_WORK + _CELL * _about(ask, domain) + _looked_up(cells, ask.name, domain)
        case Quantile() if ask.from_ranges and domain[ask.name].bins > MAX_SERVED_CELLS:
            # Its bar comes with the band of the whole curve, so it may be all that a request may be.
            return min(MAX_WORK, COUNT_WORK + _CELL * _about(ask, domain) + _simulated(domain[ask.name].bins))
    return COUNT_WORK + _CELL * _about(ask, domain)


def _simulated(bins: int) -> int:
    """The band of a curve is simulated, by whoever asks for the first one."""
    return bins * simulations(bins)


def _looked_up(cells: int, name: str, domain: Domain) -> int:
    """The counts of neighbouring bins, which may have been told before: each is a question of its own."""
    return cells * (COUNT_WORK + _ONCE * domain.sizes[name]) if separate(cells, domain.sizes[name]) else 0


def _about(ask: object, domain: Domain) -> int:
    """The values of the attributes that a question names, and of those that its conditions are about."""
    if isinstance(ask, Covariance):  # it weighs the pairs of their values
        return math.prod(domain.sizes[name] for name in ask.names) + _weights(ask.where)
    fields = [getattr(ask, name, None) for name in getattr(ask, "__dataclass_fields__", ())]
    named = _named([name for name in fields if isinstance(name, str) and name in domain.sizes], domain)
    return named + sum(_weights(part) for part in fields if isinstance(part, Query))


def _named(names: Sequence[str], domain: Domain) -> int:
    return sum(domain.sizes[name] for name in names)


def _weights(query: Query) -> int:
    return sum(factor.weights.size for factor in query.factors)


def _table_work(cells: int, each: int) -> int:
    """The work of a table: the cells of a small one may be counts of their own, which go through several values."""
    return _CELL * cells if cells > _ONE_BY_ONE else cells * each


def report_work(entries: int) -> int:
    """What it takes to add up so many entries, which is done once, and to write a page of it."""
    return min(MAX_WORK, _PAGE + _ENTRY * entries)


def line_work(characters: int, steps: int) -> int:
    """What it takes to show a line of so many characters, whose question is made in so many steps: see `steps_of`."""
    return _LINE + _CHARACTER * characters + steps // _STEPS


def picture_work(values: int, *, curved: bool) -> int:
    """What it takes to draw a release of so many values; a curve has a band, which is simulated for the first one."""
    return _SHAPE * values + (_simulated(max(1, values)) if curved else 0)
