"""A disk that loses power: records what SQLite writes, and builds what may be left of it at any moment."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import apsw
from crash_workload import LEDGER, Report, Shown, broken, make, raises, reopen, seen, step

from tacit.errors import TacitError
from tacit.store import file as durable
from tacit.store.anchor import Anchor
from tacit.store.chain import Line
from tacit.trusted.ledger import Ledger, Outcome

SECTOR = 512
Event = tuple[Any, ...]  # (verb, file name, *details), ("made", ledger id) or ("show", answers)
_SYNC = durable._sync


class Recorder(apsw.VFS):
    """SQLite's files in one folder, with every change appended to `log`. Syncs are noted, not done: it is faster."""

    def __init__(self, folder: Path, log: list[Event]) -> None:
        self.folder, self.log = folder, log
        self.title = f"recorder-{id(self)}"
        super().__init__(self.title, "", iVersion=1)

    def xOpen(self, name: Any, flags: list[int]) -> RecordedFile:
        path = Path(name if isinstance(name, str) else name.filename())
        relative = str(path.relative_to(self.folder))
        if not path.exists():
            self.log.append(("create", relative))
        return RecordedFile(self.log, relative, name, flags)

    def xDelete(self, name: str, sync_folder: bool) -> None:
        super().xDelete(name, False)
        self.log.append(("delete", str(Path(name).relative_to(self.folder))))

    def connect(self, path: Path) -> apsw.Connection:
        return apsw.Connection(str(path), vfs=self.title)


class RecordedFile(apsw.VFSFile):
    def __init__(self, log: list[Event], relative: str, name: Any, flags: list[int]) -> None:
        self.log, self.relative = log, relative
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:
        super().xWrite(data, offset)
        self.log.append(("write", self.relative, offset, bytes(data)))

    def xTruncate(self, size: int) -> None:
        super().xTruncate(size)
        self.log.append(("truncate", self.relative, size))

    def xSync(self, flags: int) -> None:
        self.log.append(("sync", self.relative))


@dataclass(eq=False)
class File:
    """What is on the platter, and what is still on its way there."""

    content: bytearray = field(default_factory=bytearray)
    pending: list[Event] = field(default_factory=list)

    def apply(self, change: Event) -> None:
        match change:
            case ("truncate", _, size):
                del self.content[size:]
            case ("write", _, offset, data):
                self.content.extend(bytes(max(0, offset + len(data) - len(self.content))))
                self.content[offset : offset + len(data)] = data

    def sync(self) -> None:
        for change in self.pending:
            self.apply(change)
        self.pending.clear()

    def lose_power(self, rng: random.Random) -> None:
        """Each change since the last sync arrived, did not arrive, or arrived in some of its sectors."""
        for change in self.pending:
            fate = rng.choice(("arrived", "lost", "torn"))
            if fate == "arrived" or (fate == "torn" and change[0] == "truncate"):
                self.apply(change)
            elif fate == "torn":
                _, name, offset, data = change
                edges = [offset, *range((offset // SECTOR + 1) * SECTOR, offset + len(data), SECTOR)]
                for start, end in zip(edges, [*edges[1:], offset + len(data)], strict=True):
                    if rng.random() < 0.5:
                        self.apply(("write", name, start, data[start - offset : end - offset]))


class Disk:
    """The files after a prefix of a log. Each folder keeps its names apart from what is in the files."""

    def __init__(self, log: list[Event]) -> None:
        self.files: dict[str, File] = {}
        self.durable: dict[str, File] = {}  # the folders as they are on the platter
        self.renamed: dict[Path, list[tuple[str, File | None]]] = {}  # by folder: names on their way, in order
        for event in log:
            match event:
                case ("create", name):
                    self._name(name, File())
                case ("link", old, new):
                    self._name(new, self._file(old))
                case ("delete", name):
                    del self.files[name]
                    self._on_its_way(name).append((name, None))
                case ("write" | "truncate", name, *_):
                    self._file(name).pending.append(event)
                case ("sync", name):
                    self._file(name).sync()
                    if name.endswith("-wal"):  # SQLite syncs the folder of a new log, too
                        self._settle_names(Path(name).parent)
                case ("sync folder", name):
                    self._settle_names(Path(name))

    def _name(self, name: str, file: File) -> None:
        self.files[name] = file
        self._on_its_way(name).append((name, file))

    def _on_its_way(self, name: str) -> list[tuple[str, File | None]]:
        return self.renamed.setdefault(Path(name).parent, [])

    def _file(self, name: str) -> File:
        if name not in self.files:  # made empty, under a name for the time being
            self._name(name, File())
        return self.files[name]

    def _settle_names(self, folder: Path, count: int | None = None) -> None:
        waiting = self.renamed.get(folder, [])
        for name, file in waiting[:count]:
            if file is None:
                self.durable.pop(name, None)
            else:
                self.durable[name] = file
        del waiting[:count]

    def lose_power(self, rng: random.Random) -> dict[str, bytes]:
        for folder, waiting in self.renamed.items():
            self._settle_names(folder, rng.randint(0, len(waiting)))
        for file in {id(file): file for file in self.durable.values()}.values():  # one file may have two names
            file.lose_power(rng)
        return {name: bytes(file.content) for name, file in self.durable.items()}

    def lose_process(self) -> dict[str, bytes]:
        """After kill -9 the operating system still has every write."""
        for file in self.files.values():
            file.sync()
        return {name: bytes(file.content) for name, file in self.files.items()}


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir()
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


@contextmanager
def recording(folder: Path, log: list[Event]) -> Iterator[None]:
    recorder, synced = Recorder(folder, log), durable._sync is _SYNC  # else a planted bug

    def sync(path: Path) -> None:
        if synced:
            log.append(("sync folder" if path.is_dir() else "sync", str(path.relative_to(folder))))

    def link(name: str, path: Path) -> None:
        os.link(name, path)
        log.append(("link", str(Path(name).relative_to(folder)), str(path.relative_to(folder))))

    with (
        mock.patch.object(durable, "_connect", recorder.connect),
        mock.patch.object(durable, "_sync", sync),
        mock.patch.object(durable, "_link", link),
    ):
        yield
    recorder.unregister()


class Died(BaseException):
    """A process dies between storing its answer and telling the anchor."""


def work(folder: Path, log: list[Event], kind: type[Ledger], rng: random.Random, steps: int) -> None:
    """Two ledgers on the same file take turns, also between each other's reservation and outcome."""

    def show(entries: list[Line]) -> None:
        log.append(("show", seen(entries)))

    pair = [reopen(folder, kind), reopen(folder, kind)]
    for _ in range(steps):
        rng.shuffle(pair)
        if rng.random() < 0.05:
            for ledger in pair:
                ledger.close()
            pair = [reopen(folder, kind), reopen(folder, kind)]
        if rng.random() < 0.05:
            key = f"q{rng.getrandbits(60)}"
            with mock.patch.object(Anchor, "advance", side_effect=Died), contextlib.suppress(Died):
                pair[0].settle(None, [Outcome(key, 0, "told", '"told to nobody"')])
            show(list(pair[1].find_many([key]).values()))
        interrupt = rng.random() < 0.3
        show(step(pair[0], rng, between=lambda: show(step(pair[1], rng)) if interrupt else None))  # noqa: B023
    for ledger in pair:
        ledger.close()


def cut_power(folder: Path, *, cuts: int, seed: int, kind: type[Ledger] = Ledger, enough: int | None = None) -> Report:
    """Make a ledger, run the workload, cut the power at random moments, and check the promises on what is left."""
    rng, report = random.Random(seed), Report()
    while report.crashes < cuts:
        here = folder / f"trace{report.crashes}"
        here.mkdir()
        log, start = list[Event](), 0
        with mock.patch.object(durable, "_CHECKPOINT_EVERY", rng.choice((3, 20, 256))):
            with recording(here, log):
                ledger_id = make(here)
                log.append(("made", ledger_id))
                made = len(log)
                work(here, log, kind, rng, steps=20)
            if rng.random() < 0.5:  # first kill the process, go on with what it wrote, then cut
                start = rng.choice([at for at, event in enumerate(log) if event[0] == "sync" and at > made])
                killed = folder / f"killed{report.crashes}"
                write_files(killed, Disk(log[:start]).lose_process())  # written, not synced
                del log[start:]
                with recording(killed, log):
                    try:
                        work(killed, log, kind, rng, steps=4)
                    except TacitError as error:
                        report.violations.append(f"a process failed after the kill: {error}")
        for _ in range(min(50, cuts - report.crashes)):
            near = rng.random() < 0.5  # to the making of the ledger, or to the kill
            cut = rng.randint(start, min(start + 40, len(log)) if near else len(log))
            report.crashes += 1
            left = folder / f"cut{report.crashes}"
            write_files(left, Disk(log[:cut]).lose_power(rng))
            shown: Shown = {}
            for event in log[:cut]:
                if event[0] == "show":
                    shown |= event[1]
            report.shown += len(shown)
            report.raised += raises(shown)
            if cut >= made or (left / LEDGER).exists():
                report.violations += broken(left, shown, ledger_id, kind)[1]
            shutil.rmtree(left, ignore_errors=True)
            if enough is not None and len(report.violations) >= enough:
                return report
    return report
