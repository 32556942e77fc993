"""What is handed on: the wheel says what it should of itself, and the container's files name things that are there."""

from __future__ import annotations

import re
import tomllib
import zipfile
from email import message_from_string
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

from tacit.cli import main
from tacit.config import read_config

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DEPLOY = ROOT / "deploy"
CONTAINER = (DEPLOY / "Containerfile").read_text()
COMPOSE = (DEPLOY / "compose.yaml").read_text()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    (built,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    return zipfile.ZipFile(built)


def test_the_wheel_has_a_name_of_its_own(wheel: zipfile.ZipFile) -> None:
    """`tacit` on the package index is a stranger's; the module is called so all the same."""
    (info,) = {name.split("/")[0] for name in wheel.namelist()} - {"tacit"}
    said = message_from_string(wheel.read(f"{info}/METADATA").decode())
    assert said["Name"] == PROJECT["name"] == "tacit-dp"
    assert said["Version"] == PROJECT["version"]
    assert set(said.get_all("Provides-Extra") or []) == set(PROJECT["optional-dependencies"])
    assert "tacit = tacit.cli:main" in wheel.read(f"{info}/entry_points.txt").decode()


def test_the_wheel_has_what_is_no_code(wheel: zipfile.ZipFile) -> None:
    held = set(wheel.namelist())
    files = (path for path in (ROOT / "src/tacit").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    assert {str(path.relative_to(ROOT / "src")) for path in files} <= held
    assert {"tacit/demo/randhie.csv.gz", "tacit/cli/templates/tacit.toml", "tacit/py.typed"} <= held


def test_whatever_says_pip_install_names_this_distribution() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.py")]
    named = {
        found
        for page in pages
        for found in re.findall(r"pip install ['\"]?(tacit[\w-]*)\[([\w{}]+)\]", page.read_text())
    }
    assert {name for name, _ in named} == {PROJECT["name"]}
    assert {extra for _, extra in named} <= {*PROJECT["optional-dependencies"], "{extra}"}


def test_the_lock_of_setup_has_what_the_tutorials_import() -> None:
    locked = (ROOT / "requirements/core.lock").read_text()
    for line in (ROOT / "requirements/setup.in").read_text().splitlines():
        if line and not line.startswith("#"):
            assert re.search(rf"^{re.match(r'[a-z]+', line)[0]}==", locked, re.MULTILINE), line  # type: ignore[index]


def test_the_container_copies_what_is_there_and_is_not_root() -> None:
    for line in re.findall(r"^COPY (?!--from)(.*)$", CONTAINER, re.MULTILINE):
        *sources, _ = line.split()
        assert all((ROOT / source).exists() for source in sources), line
    last = CONTAINER.split("\nFROM ")[-1]
    assert re.search(r"^USER \d+:\d+$", last, re.MULTILINE)
    assert "/v1/health" in last
    command = re.search(r'^CMD \["(\w+)"', last, re.MULTILINE)
    assert command is not None
    assert command[1] in main.commands


def test_the_composed_server_can_write_to_its_volumes_alone() -> None:
    server = COMPOSE.split("\n  tacit:\n")[1].split("\nnetworks:")[0]
    assert "read_only: true" in server
    assert "cap_drop: [ALL]" in server
    assert "no-new-privileges:true" in server
    assert '"127.0.0.1:8470:8470"' in server  # from this machine alone
    assert "internal: true" in COMPOSE  # the database is reached by the server alone
    for mounted in re.findall(r"- \./([\w.]+):", COMPOSE):
        assert (DEPLOY / mounted).exists(), mounted


def test_the_composed_configuration_is_one() -> None:
    config = read_config(DEPLOY / "people.toml")
    assert config.data.startswith("postgresql://")
    assert ":" not in config.data.removeprefix("postgresql://").partition("@")[0]  # no password
    made = (DEPLOY / "people.sql").read_text()
    assert all(f"AS {name}" in made for name in config.domain)
