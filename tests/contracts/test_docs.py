"""The documentation is executed: every Python block of every page runs, in order, in a folder of its own.

Links, anchors, named files, settings and extras are checked.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from support import PATIENCE
from tacit.config import BudgetSection, DataSection, JoinSection, SessionSection
from tacit.release.mechanisms import setting_names
from tacit.release.settings import names_of

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^[ \t]*(?:```|~~~)[ \t]*([^\s`]*)(.*)$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?://)([^)#\s]*)(?:#([^)\s]+))?\)")
PATH = re.compile(r"`((?:src|tests|docs|examples|benchmarks|[a-z]+)/[\w./-]+?)`")
CITED = re.compile(r"docs/[\w./-]+?\.(?:md|py|svg)")

# The pages that have Python. One that is not here has none; one that is here and has none any more is noticed, too.
EXECUTED = {
    "README.md",
    "docs/do/analysts.md",
    "docs/do/clients.md",
    "docs/do/epsilon.md",
    "docs/do/large.md",
    "docs/do/monthly.md",
    "docs/do/owners.md",
    "docs/do/planning.md",
    "docs/do/row-or-person.md",
    "docs/do/server.md",
    "docs/do/story.md",
    "docs/do/wide-bars.md",
    "docs/reference/config.md",
    "docs/reference/http.md",
    "docs/reference/published.md",
    "docs/reference/sql.md",
    "docs/understand/guarantees.md",
    "docs/understand/mechanisms.md",
    "docs/understand/seeds.md",
}


@pytest.mark.parametrize("name", sorted(EXECUTED))
def test_python_blocks_run(name: str, tmp_path: Path) -> None:
    blocks = BLOCK.findall((ROOT / name).read_text())
    assert blocks
    code = "\n".join(["import seeded_noise; seeded_noise.begin()", *blocks])  # the same noise in every run
    path = os.pathsep.join([str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    command, environment = [sys.executable, "-c", code], {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr


def test_no_page_has_python_that_is_not_executed() -> None:
    """A block that is indented, or fenced in another way, would be passed over in silence."""
    assert {name for name, page in zip(NAMES, PAGES, strict=True) if BLOCK.search(page.read_text())} == EXECUTED
    for name, page in zip(NAMES, PAGES, strict=True):
        text = page.read_text()
        opened = FENCE.findall(text)[::2]  # the others close
        assert {kind for kind, _ in opened} <= {"", "console", "python", "sh", "toml"}, name
        assert not [more for _, more in opened if more], name
        assert sum(kind == "python" for kind, _ in opened) == len(BLOCK.findall(text)), name


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_what_a_page_points_to_is_there(page: Path) -> None:
    text = page.read_text()
    missing = []
    for target, anchor in LINK.findall(text):
        there = (page.parent / target).resolve() if target else page
        if not there.exists():
            missing.append(target)
        elif anchor and anchor not in anchors(there.read_text()):
            missing.append(f"{target}#{anchor}")
    for named in PATH.findall(text):
        if not (ROOT / named).exists() and not (ROOT / "src/tacit" / named).exists():
            missing.append(named)
    assert not missing


def anchors(text: str) -> set[str]:
    """The names of a page's headings, as links have them."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_pages_that_the_code_names_exist() -> None:
    files = [path for folder in ("src", "tests", "benchmarks", "examples") for path in (ROOT / folder).rglob("*.py")]
    cited = {(str(path.relative_to(ROOT)), named) for path in files for named in CITED.findall(path.read_text())}
    assert len(cited) > 10
    assert not [one for one in cited if not (ROOT / one[1]).exists()]


def test_the_index_has_every_page_by_its_room() -> None:
    """Names are lower case, and each thing stands in one of four rooms."""
    linked = {target for target, _ in LINK.findall((DOCS / "README.md").read_text())}
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"README.md"}
    assert {page.split("/")[0] for page in pages} == {"do", "understand", "reference", "log"}
    assert all(page == page.lower() for page in pages)
    shown = {page for page in pages if not page.startswith("log/decisions/")}
    assert shown <= linked
    assert shown <= set(re.findall(r": ([\w/.-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))


def test_every_decision_has_a_number_of_its_own() -> None:
    numbers = Counter(page.name[:5] for page in (DOCS / "log/decisions").iterdir())
    assert all(re.fullmatch(r"\d{4}-", number) for number in numbers)
    assert not [number for number, times in numbers.items() if times > 1]


def test_the_list_of_decisions_has_every_one_by_its_title() -> None:
    pages = sorted((DOCS / "log/decisions").iterdir())
    titles = [re.sub(r"^# (\d{4}: )?", "", page.read_text().splitlines()[0]) for page in pages]
    said = [line for line in (DOCS / "log/decisions.md").read_text().splitlines() if line.startswith("- ")]
    named = zip(pages, titles, strict=True)
    assert said == [f"- [{page.name[:4]}](decisions/{page.name}): {title}" for page, title in named]


def test_make_targets_named_in_the_docs_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {name for page in PAGES for name in re.findall(r"(?:`|\$ )make ([a-z]+)", page.read_text())}
    assert {"demo", "test"} <= named <= targets


def test_the_configuration_page_has_every_extra() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    page = (DOCS / "reference/config.md").read_text()
    assert set(extras) == set(
        re.findall(r"^\| `(\w+)` \|", page.split("## The environment, and extras")[1], re.MULTILINE)
    )


def test_the_configuration_page_has_every_setting_once() -> None:
    page = (DOCS / "reference/config.md").read_text()
    sections = dict(re.findall(r"^## \[+([\w.]+)\]+\n(.*?)(?=^## )", page, re.MULTILINE | re.DOTALL))
    named = {name: re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) for name, text in sections.items()}
    assert sorted(named["data"]) == sorted(names_of(DataSection))
    assert sorted(named["data.join"]) == sorted(names_of(JoinSection))
    assert sorted(named["budget"]) == sorted(names_of(BudgetSection))
    assert sorted(named["session"]) == sorted({*names_of(SessionSection), *setting_names()})


def test_the_reference_is_what_the_docstrings_say() -> None:
    page = runpy.run_path(str(DOCS / "reference/api.py"))["page"]
    assert (DOCS / "reference/api.md").read_text() == page(), "run: .venv/bin/python docs/reference/api.py"


def test_drawn_pictures_are_what_their_program_draws() -> None:
    """Those without noise in them."""
    drawn = runpy.run_path(str(DOCS / "pictures/draw.py"))
    for name in ("Tree", "Triangle"):
        assert (DOCS / f"pictures/{name.lower()}.svg").read_text() == drawn[name]().svg()


def test_doctests_of_the_package() -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--doctest-modules",
        "src/tacit",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "passed" in done.stdout
