"""The page of an audit, `build/audit/report.html`: what was tried, how often, what it proved, and what was planted.

    python tests/audit_report.py [--commit COMMIT --size SIZE --tests FILE] [--publish docs/log/audit.html]

`make audit` and `make soak` call it at their end. A section that was not run says so. With `--publish`, which `make
audit` gives, the page is copied to where the documentation links to it; it says nothing of the machine but how large
that is.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from xml.etree import ElementTree

sys.path.append(str(Path(__file__).parent / "serve"))

from soak import ALLOWED, Sample, picture

from audit_record import FOLDER, ROOT, record, recorded
from tacit.show.chart import Axis, Chart, Points
from tacit.show.chart.paint import COLOUR_ROLES, FONT, Picture
from tacit.show.pages import environment

Row = Sequence[str]
TEMPLATE = Path(__file__).with_suffix(".html")
# A place from the root of a machine's files: neither the end of a tag nor a part of a longer path or address.
ABSOLUTE = re.compile(r"(?<![\w.<:/-])/[\w.-]+/[\w.-]+|file:/")


@dataclass(frozen=True)
class Section:
    """A heading with what was tried, in words, and a table of what came of it."""

    heading: str
    words: str
    head: Row
    rows: Sequence[Row]
    right: Sequence[int] = ()
    picture: Picture | None = None

    @property
    def caption(self) -> str:
        return self.heading


def run(folder: Path) -> Section:
    """What was run as a whole, when and on what; and its tests, by pytest's own report."""
    head = ("commit", "date", "size", "passed", "skipped", "failed", "minutes", "machine")
    found = recorded("run", folder)
    if not found:
        return Section("The run", "The whole of it in one go.", head, ())
    one = found[0]
    failed = "; ".join(one["failed"]) or "none"
    row = (one["commit"], one["date"], f"{one['size']:g}", f"{one['passed']:,}", f"{one['skipped']:,}",
           f"{len(one['failed']):,}", f"{one['minutes']:.0f}", one["machine"])  # fmt: skip
    return Section(
        "The run",
        f"Size 1 is the whole of each attack, 0.1 a tenth. Tests that failed: {failed}.",
        head,
        [row],
        (2, 3, 4, 5, 6),
    )


def mutants(folder: Path) -> Section:
    found = recorded("mutants", folder)
    rows = [
        (one["name"], one["promise"], one["file"], one["failed"] or "-", "caught" if one["caught"] else "survived")
        for one in sorted(found, key=lambda one: bool(one["caught"]))
    ]
    return Section(
        "Planted bugs",
        "Each is applied to a copy of the code, and a named test of the ordinary suite must fail.",
        ("bug", "what it breaks", "file", "test that fails", "outcome"),
        rows,
    )


def adversaries(folder: Path) -> Section:
    found = recorded("adversaries", folder)
    rows = [
        (one["name"], f"{one['transcripts']:,}", f"{one['delta']:g}", f"{one['bound']:.3f}", f"{one['price']:.3f}",
         "below" if one["bound"] <= one["price"] else "ABOVE", one["bug"], f"{one['control']:.3f}")
        for one in found
    ]  # fmt: skip
    chart = None
    if found:
        places = list(range(len(found)))
        chart = Chart(
            "What adversaries prove, and what is paid",
            x=Axis("", categories=[one["name"] for one in found]),
            y=Axis("epsilon", low=0),
            marks=[
                Points(places, [one["bound"] for one in found], name="proved"),
                Points(places, [one["price"] for one in found], name="paid", shape="square"),
                Points(places, [one["control"] for one in found], name="proved with the bug", shape="triangle"),
            ],
        )
    return Section(
        "Adversaries",
        "Each knows two neighbouring tables and talks to whole sessions on both. A bound on epsilon is above the truth "
        "once in 10^10 times at most, so it stays below the price, and a planted bug leads it above.",
        ("adversary", "transcripts", "delta", "epsilon at least", "price", "", "planted", "with it, at least"),
        rows,
        (1, 2, 3, 4, 7),
        chart,
    )


def reconstruction(folder: Path) -> Section:
    rows = [
        (one["name"], f"{one['guesses']:,}", f"{one['share']:.3f}", f"{one['most']:.3f}")
        for one in recorded("reconstruction", folder)
    ]
    return Section(
        "Reconstruction and membership",
        "Secret bits by a linear program, and who is in a table at all, over HTTP: the share that is guessed rightly, "
        "and the most that any attack could. A coin gets 0.5; the exact server is the control.",
        ("attack", "guesses", "right", "any attack at most"),
        rows,
        (1, 2, 3),
    )


def crashes(folder: Path) -> Section:
    rows = [
        (one["name"], f"{one['times']:,}", f"{one['shown']:,}", f"{one['broken']:,}")
        for one in recorded("crashes", folder)
    ]
    return Section(
        "Crashes",
        "Processes that are killed, and disks that lose power, while questions are asked, budgets raised, blocks "
        "appended, ledgers continued and copies of them used: no answer that was shown is lost, changed or uncharged, "
        "and nothing is spent twice.",
        ("crash", "times", "answers shown", "promises broken"),
        rows,
        (1, 2, 3),
    )


def requests(folder: Path) -> Section:
    rows = [
        (one["name"], f"{one['sent']:,}", f"{one['refused']:,}", f"{one['wrong']:,}")
        for one in recorded("requests", folder)
    ]
    return Section(
        "Generated requests",
        "Right ones, wrong ones, and bytes that are none: no error inside, no charge without an answer that says so.",
        ("what", "sent", "refused", "wrong"),
        rows,
        (1, 2, 3),
    )


def soaked(folder: Path) -> Section:
    words = "A server at mixed load. Files and memory may grow with the ledger's lines, and descriptors with nothing."
    head = ("", "minutes", "requests", "lines", "memory, MB", "descriptors", "ledger, MB", "audit log, MB")
    runs = recorded("soak", folder)
    if not runs:
        return Section("Soak", words, head, ())
    samples = [Sample(**one) for one in runs[0]["samples"]]
    wrong = "; ".join(runs[0]["wrong"]) or ALLOWED
    rows = [
        (name, f"{one.minutes:.1f}", f"{one.requests:,}", f"{one.lines:,}", f"{one.memory / 2**20:.1f}",
         f"{one.descriptors}", f"{one.ledger / 2**20:.1f}", f"{one.audit / 2**20:.1f}")
        for name, one in (("start", samples[0]), ("middle", samples[len(samples) // 2]), ("end", samples[-1]))
    ]  # fmt: skip
    words = f"{words} At commit {runs[0].get('commit', 'unknown')}. Found: {wrong}."
    return Section("Soak", words, head, rows, range(1, 8), picture(samples))


SECTIONS = (run, mutants, adversaries, reconstruction, crashes, requests, soaked)


def page(folder: Path) -> str:
    """The page, of what lies in a folder."""
    sections = [make(folder) for make in SECTIONS]
    facts = [(one.heading, f"{len(one.rows):,} rows" if one.rows else "not run") for one in sections[1:]]
    template = environment("tacit.show").from_string(TEMPLATE.read_text())
    return template.render(sections=sections, facts=facts, roles=COLOUR_ROLES, font=FONT)


def note(commit: str, size: float, tests: Path) -> None:
    """Keep what is known of a whole run when it has ended. `tests` is what pytest wrote with `--junitxml`."""
    suites = list(ElementTree.parse(tests).getroot().iter("testsuite"))
    counted = {name: sum(int(one.get(name, 0)) for one in suites) for name in ("tests", "skipped")}
    cases = [case for suite in suites for case in suite.iter("testcase")]
    failed = sorted(
        {
            f"{case.get('classname')}::{case.get('name')}"
            for case in cases
            if case.find("failure") is not None or case.find("error") is not None
        }
    )
    record(
        "run",
        "run",
        commit=commit,
        date=f"{date.today():%-d %B %Y}",
        size=size,
        passed=counted["tests"] - counted["skipped"] - len(failed),
        skipped=counted["skipped"],
        failed=failed,
        minutes=sum(float(one.get("time", 0)) for one in suites) / 60,
        machine=f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}",
    )


def publish(made: str, file: Path) -> None:
    """Copy a page to where it is published, unless it names a place on this machine."""
    places = sorted(set(ABSOLUTE.findall(made)))
    if places:
        raise ValueError(f"the page is not published, because it names places on this machine: {', '.join(places)}")
    file.write_text(made, encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--commit", help="that was run")
    parser.add_argument("--size", type=float, default=1.0)
    parser.add_argument("--tests", type=Path, help="what pytest wrote with --junitxml")
    parser.add_argument("--publish", type=Path, help="a copy for the documentation")
    options = parser.parse_args(arguments)
    if options.commit and options.tests and options.tests.exists():
        note(options.commit, options.size, options.tests)
    made = page(FOLDER)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "report.html").write_text(made, encoding="utf-8")
    print(f"the report is {FOLDER.relative_to(ROOT)}/report.html")
    if options.publish:
        publish(made, options.publish)
        print(f"and its copy for the documentation {options.publish}")


if __name__ == "__main__":
    main()
