"""A disk that loses power: records what SQLite writes, and builds what may be left of it at any moment."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import apsw
from crash_workload import Report, broken, make, reopen, shut, step

from tacit.errors import TacitError
from tacit.trusted import durable
from tacit.trusted.chain import Entry
from tacit.trusted.ledger import Ledger

SECTOR = 512
Event = tuple[Any, ...]  # (verb, file name, *details), or ("show", answers)


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
    """The files after a prefix of a log."""

    def __init__(self, base: dict[str, bytes], log: list[Event]) -> None:
        self.files = {name: File(bytearray(content)) for name, content in base.items()}
        self.durable = dict(self.files)  # the folder as it is on the platter
        self.renamed: list[tuple[str, File | None]] = []  # creations and deletions on their way, in order
        for event in log:
            match event:
                case ("create", name):
                    self.files[name] = File()
                    self.renamed.append((name, self.files[name]))
                case ("delete", name):
                    del self.files[name]
                    self.renamed.append((name, None))
                case ("write" | "truncate", name, *_):
                    self.files[name].pending.append(event)
                case ("sync", name):
                    file = self.files[name]
                    file.sync()
                    if any(file is other for _, other in self.renamed):  # SQLite syncs the folder of a new log
                        self._settle_names(len(self.renamed))

    def _settle_names(self, count: int) -> None:
        for name, file in self.renamed[:count]:
            if file is None:
                self.durable.pop(name, None)
            else:
                self.durable[name] = file
        del self.renamed[:count]

    def lose_power(self, rng: random.Random) -> dict[str, bytes]:
        self._settle_names(rng.randint(0, len(self.renamed)))
        for file in self.durable.values():
            file.lose_power(rng)
        return {name: bytes(file.content) for name, file in self.durable.items()}

    def lose_process(self) -> dict[str, bytes]:
        """After kill -9 the operating system still has every write."""
        for file in self.files.values():
            file.sync()
        return {name: bytes(file.content) for name, file in self.files.items()}


def write_files(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def read_files(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@contextmanager
def recording(folder: Path, log: list[Event]) -> Iterator[None]:
    recorder = Recorder(folder, log)
    with mock.patch.object(durable, "_connect", recorder.connect):
        yield
    recorder.unregister()


def work(folder: Path, log: list[Event], kind: type[Ledger], rng: random.Random, steps: int) -> None:
    """Two ledgers on the same file take turns, also between each other's reservation and outcome."""

    def show(entries: list[Entry]) -> None:
        log.append(("show", {entry.key: (entry.body, entry.atoms) for entry in entries}))

    pair = [reopen(folder, kind), reopen(folder, kind)]
    for _ in range(steps):
        rng.shuffle(pair)
        if rng.random() < 0.05:
            for ledger in pair:
                shut(ledger)
            pair = [reopen(folder, kind), reopen(folder, kind)]
        interrupt = rng.random() < 0.3
        show(step(pair[0], rng, between=lambda: show(step(pair[1], rng)) if interrupt else None))  # noqa: B023
    for ledger in pair:
        shut(ledger)


def cut_power(folder: Path, *, cuts: int, seed: int, kind: type[Ledger] = Ledger, enough: int | None = None) -> Report:
    """Run the workload, cut the power at random moments, and check the promises on what is left."""
    rng, report = random.Random(seed), Report()
    while report.crashes < cuts:
        here = folder / f"trace{report.crashes}"
        here.mkdir()
        make(here)
        base, log = read_files(here), list[Event]()
        with mock.patch.object(durable, "_CHECKPOINT_EVERY", rng.choice((3, 20, 256))):
            with recording(here, log):
                work(here, log, kind, rng, steps=20)
            start = 0
            if rng.random() < 0.5:  # first kill the process, go on with what it wrote, then cut
                start = rng.choice([at for at, event in enumerate(log) if event[0] == "sync"])  # written, not synced
                killed = folder / f"killed{report.crashes}"
                write_files(killed, Disk(base, log[:start]).lose_process())
                del log[start:]
                with recording(killed, log):
                    try:
                        work(killed, log, kind, rng, steps=4)
                    except TacitError as error:
                        report.violations.append(f"a process failed after the kill: {error}")
        for _ in range(min(50, cuts - report.crashes)):
            cut = rng.randint(start, len(log)) if rng.random() < 0.5 else rng.randint(start, min(start + 40, len(log)))
            left = folder / f"cut{report.crashes}"
            write_files(left, Disk(base, log[:cut]).lose_power(rng))
            shown: dict[str, tuple[str, int]] = {}
            for event in log[:cut]:
                if event[0] == "show":
                    shown |= event[1]
            report.crashes += 1
            report.shown += len(shown)
            report.violations += broken(left, shown, kind)[1]
            shutil.rmtree(left)
            if enough is not None and len(report.violations) >= enough:
                return report
    return report
