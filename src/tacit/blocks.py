"""A table that grows: blocks of different rows, each with a ledger and a budget of its own, asked about together.

A row is in one block, and what is bought about a block is charged to its ledger alone. So each block has the whole
budget, however many there are: docs/understand/privacy.md proves it. What is asked over several blocks is the sum of
what each of them answers.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from msgspec import to_builtins

from tacit.errors import ConfigError, InvalidQuery, LedgerError, NeedsData, NotStarted, TacitError
from tacit.load import open_source
from tacit.load.split import split_by
from tacit.manifest import Block, Manifest
from tacit.model.ask import Ask
from tacit.model.block import check_label, with_blocks
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.model.dry_run import DryRun
from tacit.model.query import Query
from tacit.model.table import Answers
from tacit.model.workload import Marginal
from tacit.opening import BlockRows, choose, declared, open_session
from tacit.questions import Questions
from tacit.release.answering import combine, parts
from tacit.release.blockwise import BlockTerms, Blockwise
from tacit.release.estimate import Estimate
from tacit.release.evidence import FEW, Setting
from tacit.release.mechanisms import check_names
from tacit.release.need import Need, Part
from tacit.series_terms import SeriesTerms, new_terms
from tacit.session import Session
from tacit.store.anchor import Anchor
from tacit.store.file import make_folder
from tacit.terms import MadeWith, reopen
from tacit.trusted.cells import read_records

if TYPE_CHECKING:
    from tacit.release.hypothesis.prior import Prior

MOST_KEPT = 200_000  # answers of blocks that are kept in memory
MOST_HELD = 100  # ledgers whose files are held open between questions: five files each


def open_series(
    *,
    ledger: str | Path,
    domain: Domain | Mapping[str, Any] | str | Path | None = None,
    budget: Budget | None = None,
    name: str = "block",
    protects: str | None = None,
    most_blocks: int | None = None,
    person: str | None = None,
    rows_per_person: int | None = None,
    prior: bool = True,
    anchor: str | Path | None = None,
    accept_rollback: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    **settings: Any,
) -> Series:
    """Open a table of blocks, each of different rows, that grows by `append`. It is made on the first call.

    Each block has a ledger of its own, with the whole budget. What is asked over blocks is the sum of their answers.

    ledger: the manifest of the series, which lists its blocks. Their ledgers lie beside it, in a folder of its name.
    domain, budget: as for `tacit.open`; they hold for every block. Left out, they are what the series was made with.
    name: what the column of blocks is called in questions: `WHERE block BETWEEN '2026-01' AND '2026-06'`.
    protects: "row" (one row, in its block), "person within a block" (what is known of a person from any one block), or
        "person over blocks" (from all of them together): then `most_blocks` is how many blocks there may ever be, and
        each of them has that part of the budget. With a `person`, the second is the default.
    person, rows_per_person: as for `tacit.open`, in each block.
    prior: whether a block's start is drawn to what was released of the block before it, as far as its own noisy tables
        bear that out. It costs nothing.
    settings: the mechanism, and its settings, for all blocks. What is planned for the first block holds for all.

    >>> months = tacit.series(ledger="stays.tacit", domain=domain, budget=budget)   # doctest: +SKIP
    >>> months.append("march.csv", label="2026-03")   # doctest: +SKIP
    >>> months.ask("SELECT block, COUNT(*) FROM data WHERE stay >= 5 GROUP BY block")   # doctest: +SKIP
    """
    path, remembered = Path(ledger), Anchor(None if anchor is None else Path(anchor))
    written = Manifest.terms(path)
    named = {key: value for key, value in settings.items() if value is not None}
    mechanism, rest = named.get("mechanism", "auto"), {key: one for key, one in named.items() if key != "mechanism"}
    check_names(mechanism, rest)
    if written is None:
        if domain is None or budget is None:
            raise ConfigError(f"there is no series {path.name} yet: a new one needs a domain and a budget.")
        if not isinstance(budget, Budget):
            raise ConfigError("budget is a tacit.Budget, like tacit.Budget(epsilon=1.0, delta=1e-9).")
        if mechanism != "auto":
            choose(mechanism, declared(domain), budget, 1, rest)  # refuses settings that it has not
        terms = new_terms(declared(domain), budget, name, protects, most_blocks, person, rows_per_person, prior, named)
    else:
        terms = SeriesTerms.read(written)
        given = {
            "domain": None if domain is None else declared(domain),
            "budget": budget,
            "name": name if name != "block" else None,
            "protects": protects,
            "most": most_blocks,
            "person": person,
            "rows_per_person": rows_per_person,
            "settings": named or None,
        }
        differ = [word for word, value in given.items() if value is not None and value != getattr(terms, word)]
        if differ:
            raise LedgerError(
                f"The series {path.name} was made with another {' and another '.join(differ)}. Open it with what it "
                "was made with; what is left out is read from it."
            )
    if written is None and any(_folder(path).glob("*.tacit")):
        raise LedgerError(
            f"There are ledgers of blocks in {_folder(path).name}, and {path.name}, the manifest that lists them, is "
            "gone. Bring it back: a new one would give their rows a second budget. A new series has another name."
        )
    manifest = Manifest.open(path, terms.written(), remembered, accept_rollback, make=written is None)
    return Series(path, manifest, terms, anchor=anchor, accept_rollback=accept_rollback, progress=progress)


def _folder(path: Path) -> Path:
    """Where the ledgers of a manifest's blocks lie."""
    return path.with_name(f"{path.name}.blocks")


class BlockStatus(NamedTuple):
    """One block as its owner sees it."""

    label: str
    rows: int
    spent: Loss
    total: Loss
    started: bool


class Series(Questions):
    """Answers questions about all blocks of a series, or some. Made by `tacit.series`; closes like a session."""

    def __init__(
        self,
        path: Path,
        manifest: Manifest,
        terms: SeriesTerms,
        *,
        anchor: str | Path | None = None,
        accept_rollback: str | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.path, self._manifest, self.terms = path, manifest, terms
        self._folder = _folder(path)
        self._anchor, self._accept_rollback, self._progress = anchor, accept_rollback, progress
        self._blocks: list[Block] = []
        self._open: dict[str, Session] = {}
        self._with_data: set[str] = set()
        self._held: set[str] = set()
        self._answers: dict[str, dict[Need, Part]] = {}
        self._domain = terms.domain
        self._catch_up()

    # -- what is public -----------------------------------------------------------------------------------------------

    @property
    def blocks(self) -> list[str]:
        """The labels of the blocks, in the order in which they were appended."""
        self._catch_up()
        return [block.label for block in self._blocks]

    @property
    def sizes(self) -> dict[str, int]:
        """How many rows each block has. Public."""
        self._catch_up()
        return {block.label: block.rows for block in self._blocks}

    @property
    def rows(self) -> int:
        """The number of rows of all blocks, which is public."""
        return sum(block.rows for block in self._blocks)

    @property
    def domain(self) -> Domain:
        """The declared attributes, and the column of blocks before them."""
        self._catch_up()
        return self._domain

    @property
    def budget(self) -> Budget:
        """The budget of the guarantee: of each block, or of all together where a person is protected over blocks."""
        return self.terms.budget

    @property
    def confidence(self) -> float:
        return self._any().confidence

    @property
    def total(self) -> Loss:
        """The budget of one block."""
        return self._any().total

    @property
    def spent(self) -> Loss:
        """The most that is spent of the blocks that were opened so far."""
        spent = [session.spent for session in self._open.values()]
        return max(spent, key=lambda one: one.atoms) if spent else Loss(self.terms.budget.measure, 0)

    @property
    def left(self) -> Loss:
        """The least that is left of the blocks that were opened so far."""
        return Loss(self.total.measure, max(0, self.total.atoms - self.spent.atoms))

    def status(self) -> list[BlockStatus]:
        """Every block: its rows, and what is spent of its budget. No rows are read."""
        self._catch_up()
        found = list[BlockStatus]()
        for block in self._blocks:
            session = self._light(block)
            found.append(BlockStatus(block.label, block.rows, session.spent, session.total, session.started))
            self._rest(block.label, session)
        return found

    def _catch_up(self) -> None:
        """Know the blocks that this or another process has appended."""
        blocks = self._manifest.blocks()
        if len(blocks) != len(self._blocks):
            self._blocks = blocks
            self._domain = with_blocks(self.terms.domain, self.terms.name, [block.label for block in blocks])

    # -- blocks -------------------------------------------------------------------------------------------------------

    def append(self, data: Any, label: str, *, table: str | None = None, start: bool = False) -> Session:
        """One more block: rows that are in no other. Returns its session.

        Block sizes and labels are public. Rows that a block has already are refused; so is a label that there is. Late
        rows and corrections are a block of their own. With `start`, what answers start from is bought at once.
        """
        check_label(label)
        terms = self.terms
        with self._manifest.turn():
            self._catch_up()
            self._manifest.check(label, "")  # before the rows are read
            if terms.most is not None and len(self._blocks) >= terms.most:
                raise LedgerError(
                    f"The series was made for {terms.most:,} blocks, among which the budget of a person was divided, "
                    "and it has them. More need a new series, whose loss for the same people adds to this one's."
                )
            people = 1 if terms.rows_per_person is None else terms.rows_per_person
            source = open_source(data, table)
            rows = read_records(source, terms.domain, person=terms.person, rows_per_person=people)
            fingerprint = rows.fingerprint(self._manifest.secret)
            self._manifest.check(label, fingerprint)
            drawn_to = self._prior()
            make_folder(self._folder)
            ledger = f"{_slug(label)}-{secrets.token_hex(4)}.tacit"
            try:
                if drawn_to is not None:
                    _keep(self._folder / ledger, drawn_to)
                new = BlockRows(rows, self._manifest.origin)
                session = self._opened(ledger, new, drawn_to, **self._settings())
                place = data if isinstance(data, str) else os.path.abspath(data) if isinstance(data, Path) else None
                if isinstance(data, str) and os.path.isfile(data):
                    place = os.path.abspath(data)
                digest = None if drawn_to is None else drawn_to.digest
                block = Block(label, session.rows, ledger, session.origin, fingerprint, place, table, digest)
                self._manifest.add(block)
            except BaseException:
                self._forget(ledger)
                raise
            self._open[label] = session
            self._with_data.add(label)
            self._catch_up()
        if start:
            session.start()
        self._rest(label, session)
        return session

    def _forget(self, ledger: str) -> None:
        """Remove a ledger that nothing lists: nobody has seen it. Where that cannot be told, it stays."""
        with suppress(TacitError, OSError):
            if ledger not in (block.ledger for block in self._manifest.blocks()):
                for one in self._folder.glob(f"{ledger}*"):
                    one.unlink()

    def append_by(self, data: Any, column: str, *, table: str | None = None, start: bool = False) -> list[str]:
        """Split a table by the values of a column, and append those that are no blocks yet: their labels, in order.

        Which values there are, and how many rows have each, is public from then on. Every row has one.
        """
        begun = list[str]()
        for label, rows in split_by(data, column, table):
            if label not in self.blocks:
                self.append(rows, label, start=start)
                begun.append(label)
        return begun

    def block(self, label: str) -> Session:
        """The session of one block, with its rows where they can be read."""
        return self._full(self._named(label))

    def start(self, label: str | None = None) -> list[str]:
        """Buy what answers start from, of one block or of all that have not: which were started now."""
        wanted = [block for block in self._blocks if label in (None, block.label)]
        begun = list[str]()
        for block in wanted:
            if not self._light(block).started:
                self._full(block).start()
                begun.append(block.label)
        return begun

    def _named(self, label: str) -> Block:
        self._catch_up()
        found = next((block for block in self._blocks if block.label == label), None)
        if found is None:
            raise InvalidQuery(f"there is no block {label!r}; there are {', '.join(self.blocks[:8]) or 'none yet'}.")
        return found

    def _settings(self) -> dict[str, Any]:
        """The mechanism and settings of a new block: as named, or as they were planned for the first block."""
        if not self._blocks:
            return dict(self.terms.settings)
        made = MadeWith.of(self._folder / self._blocks[0].ledger)
        if made is None:
            raise LedgerError(f"The ledger of the block {self._blocks[0].label} is gone.")
        choice, confidence = made.choice(
            {key: value for key, value in self.terms.settings.items() if key != "mechanism"}
        )
        return {"mechanism": choice.mechanism, **to_builtins(choice.settings), "confidence": confidence}

    def _prior(self) -> Prior | None:
        """What was released of the newest block that is started, as a public table like the next one."""
        from tacit.release.hypothesis.prior import MOST_CELLS as MOST
        from tacit.release.hypothesis.prior import Prior

        settings = self._settings()
        if not self.terms.prior or not self._blocks or not settings.get("warm"):
            return None
        for block in reversed(self._blocks):
            session = self._light(block)
            if session.base.bought:
                drawn = session.synthetic(min(session.rows, MOST))
                cells, counts = np.unique(np.stack(drawn.codes).astype(np.intp), axis=1, return_counts=True)
                return Prior.of(list(drawn.domain), list(cells), counts)
        return None

    def _opened(self, ledger: str, data: Any, prior: Prior | None, **settings: Any) -> Session:
        terms = self.terms
        return open_session(
            data=data,
            domain=terms.domain,
            budget=terms.each,
            ledger=self._folder / ledger,
            person=terms.person,
            rows_per_person=terms.rows_per_person,
            prior=prior,
            progress=self._progress,
            anchor=self._anchor,
            accept_rollback=self._accept_rollback,
            **settings,
        )

    def _light(self, block: Block) -> Session:
        """What a block's ledger knows, without its rows; with them where they are open already."""
        if block.label not in self._open:
            prior = None if block.prior is None else _kept(self._folder / block.ledger, block)
            found = reopen(self._folder / block.ledger, anchor=self._anchor, prior=prior)
            self._open[block.label] = self._checked(block, found)
        return self._open[block.label]

    def _full(self, block: Block) -> Session:
        """The session of a block with its rows."""
        if block.label not in self._with_data:
            if block.source is None:
                raise NeedsData(
                    f"The rows of the block {block.label} were not given as a file or an address, so they cannot be "
                    "read again here."
                )
            if not (self._folder / block.ledger).exists():
                raise LedgerError(
                    f"The ledger of the block {block.label} is gone: bring it back, with what it has spent."
                )
            prior = None if block.prior is None else _kept(self._folder / block.ledger, block)
            try:
                found = self._opened(block.ledger, open_source(block.source, block.table), prior)
            except LedgerError as error:
                raise _about_block(error, block) from None
            before = self._open.pop(block.label, None)
            if before is not None:
                before.close()
            self._open[block.label] = self._checked(block, found)
            self._with_data.add(block.label)
        return self._open[block.label]

    def _checked(self, block: Block, session: Session) -> Session:
        """Refuse the ledger of another block in the place of this one's, and one whose budget was raised by itself."""
        if session.origin != block.origin:
            session.close()
            raise LedgerError(f"The ledger of the block {block.label} is not the one that it was appended with.")
        if session.budget != self.terms.each:
            session.close()
            raise LedgerError(
                f"The budget of the block {block.label} was raised by itself: the series promises {self.terms.each} "
                "for each block, and cannot keep that."
            )
        return session

    def _any(self) -> Session:
        if not self._blocks:
            raise InvalidQuery("the series has no block yet: append one first.")
        return next(iter(self._open.values()), None) or self._light(self._blocks[-1])

    # -- two verbs ----------------------------------------------------------------------------------------------------

    def answer(self, ask: Ask, *, within: float | None = None) -> Answers:
        _refuse_within(within)
        return self.answer_many([ask])[0]

    def answer_many(self, asks: Sequence[Ask]) -> list[Answers]:
        blocks, setting, needs = self._bound(asks)
        found = self._found([need for one in needs for need in one], blocks)
        own = [{need: found[need] for need in mine} for mine in needs]
        made = (combine(ask, mine, setting) for ask, mine in zip(asks, own, strict=True))
        return [
            replace(one, facts=replace(one.facts, total=self.total)) if one.facts.cost.atoms else one for one in made
        ]

    def price(self, ask: Ask, *, within: float | None = None) -> DryRun:
        _refuse_within(within)
        blocks, setting, (needs,) = self._bound([ask])
        apart = self._apart(needs, blocks)
        wanted = [(block, apart.of_block(place)) for place, block in enumerate(blocks)]
        each = [self._light(block).priced(needs) for block, needs in wanted if needs]
        if not each:
            return DryRun(True, setting.free, "it follows from what is declared", self.total)
        most = max(each, key=lambda one: (not one.known, one.cost_at_most.atoms))
        return replace(most, total=self.total)

    def _bound(self, asks: Sequence[Ask]) -> tuple[list[Block], Setting, list[tuple[Need, ...]]]:
        """The blocks that questions are about, and what they need: those that there were when they were put.

        Blocks are only ever added, so these are the first ones; somebody may have appended since.
        """
        blocks = self._blocks
        setting = self._setting(blocks)
        needs = [parts(ask, setting) for ask in asks]
        known = min((size for one in needs for need in one for size in self._tied(need)), default=len(blocks))
        if known < len(blocks):
            blocks = blocks[:known]
            setting = self._setting(blocks)
            needs = [parts(ask, setting) for ask in asks]
        return blocks, setting, needs

    def _tied(self, need: Need) -> Iterator[int]:
        """How many blocks there were when a question that names some was put."""
        query = need.where if isinstance(need, Marginal) else need
        for factor in query.factors if isinstance(query, Query) else ():
            if self.terms.name in factor.scope:
                yield factor.weights.shape[factor.scope.index(self.terms.name)]

    def _setting(self, blocks: Sequence[Block]) -> Setting:
        one = self._any()
        domain = with_blocks(self.terms.domain, self.terms.name, [block.label for block in blocks])
        free = Loss(one.total.measure, 0)

        def piecewise(names: tuple[str, ...], pieces: Sequence[Query]) -> bool:
            return not one.fresh or len(pieces) < FEW

        rows = sum(block.rows for block in blocks)
        return Setting(domain, rows, one.confidence, free, one.fresh, piecewise)

    def _found(self, needs: Sequence[Need], blocks: Sequence[Block]) -> dict[Need, Part]:
        apart = self._apart(needs, blocks)
        return apart.put_together([self._told(block, apart.of_block(at)) for at, block in enumerate(blocks)])

    def _apart(self, needs: Sequence[Need], blocks: Sequence[Block]) -> Blockwise:
        one, terms = self._any(), self.terms
        sizes = [block.rows for block in blocks]
        free = Loss(one.total.measure, 0)

        def read(query: Query) -> Estimate:
            found = self._found([query], blocks)[query]
            assert isinstance(found, Estimate)
            return found

        return Blockwise(needs, BlockTerms(terms.name, terms.domain, sizes, one.learns, one.confidence, free), read)

    def _told(self, block: Block, needs: Sequence[Need]) -> dict[Need, Part]:
        """What a block says; it is opened where something is asked of it, with its rows where that is not known.

        An answer that is known stays what it is, so it is kept here: most questions need no ledger.
        """
        kept = self._answers.setdefault(block.label, {})
        new = [need for need in needs if need not in kept]
        found = {need: kept[need] for need in needs if need in kept}
        if not new:
            return found
        session = self._light(block)
        try:
            known = session.known(new)
            if known is None:
                session = self._full(block)
                found |= session.found(new)
            else:
                found |= known
                kept.update({need: part for need, part in known.items() if isinstance(part, Estimate)})
        except NotStarted as error:
            raise NotStarted(f"In the block {block.label}: {error.sentence}") from None
        if sum(map(len, self._answers.values())) > MOST_KEPT:
            self._answers.clear()
        self._rest(block.label, session)
        return found

    def _rest(self, label: str, session: Session) -> None:
        """Let go of a block's files where so many are held that a process could not hold all of them."""
        if label in self._held or len(self._held) < MOST_HELD:
            self._held.add(label)
        else:
            session.rest()

    def close(self) -> None:
        for session in self._open.values():
            session.close()
        self._manifest.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        labels = f", {self._blocks[0].label} to {self._blocks[-1].label}" if self._blocks else ""
        return f"Series({len(self._blocks):,} blocks{labels}; {self.rows:,} rows; {self.terms.each} for each)"


def _refuse_within(within: float | None) -> None:
    if within is not None:
        raise InvalidQuery("an answer as sharp as wanted is bought of one block: series.block('2026-03').ask(…).")


def _about_block(error: LedgerError, block: Block) -> LedgerError:
    """The refusal of a block's ledger, with the way that there is where rows have changed."""
    if "other terms: data" not in error.sentence:
        return LedgerError(f"In the block {block.label}: {error.sentence}")
    return LedgerError(
        f"The rows of the block {block.label} are not those that it was appended with. What was spent on them stays "
        f"spent, so they stay: late rows and corrections are a block of their own, like {block.label}-late."
    )


def _slug(label: str) -> str:
    """A label as part of a file's name."""
    return re.sub(r"[^A-Za-z0-9.]+", "-", label).strip("-.")[:32] or "block"


# -- what a start is drawn to, which cannot be worked out again once more is bought of the block before ----------------


def _keep(ledger: Path, prior: Prior) -> None:
    path = ledger.with_name(f"{ledger.name}.prior")
    names = np.array(prior.attributes)
    with open(path, "xb", opener=lambda file, flags: os.open(file, flags, 0o600)) as file:
        np.savez_compressed(file, names=names, codes=np.array(prior.codes), counts=np.array(prior.counts))
        file.flush()
        os.fsync(file.fileno())


def _kept(ledger: Path, block: Block) -> Prior:
    from tacit.release.hypothesis.prior import Prior

    path = ledger.with_name(f"{ledger.name}.prior")
    try:
        with np.load(path, allow_pickle=False) as kept:
            names, codes, counts = kept["names"].tolist(), list(kept["codes"]), kept["counts"]
        found = Prior.of(names, codes, counts)
    except (OSError, ValueError, KeyError):
        raise LedgerError(f"{path.name}, which the block {block.label} was started from, cannot be read.") from None
    if found.digest != block.prior:
        raise LedgerError(f"{path.name} is not what the block {block.label} was started from.")
    return found
