"""What privacy rests on: the files and lines that a reviewer of privacy reads, by package.

python -m benchmarks.trust

`trusted/` looks at the truth, draws and admits charges. `exact/` draws noise by law, says what noise costs, and works
out numbers that are exact, or rounded the safe way; `store/` keeps what was written. Listed in contracts of the import
linter, in pyproject.toml, are the files of `model/` that these three import; the files that decide what a ledger is
made with, and that several ledgers together keep one promise; and those that are believed where an engine holds the
rows, or where tables are joined.
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "tacit"
PACKAGES = ("trusted", "exact", "store")
# What the first lines of the other files begin with, and the contract of the import linter whose list is the one list.
CONTRACTS = {
    "Trusted words": "Trusted words rest on no other words",
    "Trusted with budgets": "What is trusted with budgets knows nobody who asks",
    "Trusted with counts": "What is trusted with counts knows nobody who asks",
}


def listed(trusted: str) -> list[Path]:
    """The files of one of these lists."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = {contract["name"]: contract for contract in settings["tool"]["importlinter"]["contracts"]}
    modules = contracts[CONTRACTS[trusted]]["source_modules"]
    return sorted(SOURCE.parent / f"{module.replace('.', '/')}.py" for module in modules)


def trusted_words() -> list[str]:
    """The files of `model/` on which privacy rests, as the one list has them."""
    return [path.stem for path in listed("Trusted words")]


def imported_words() -> list[str]:
    """The files of `model/` that trusted code loads, by whatever detour."""
    return sorted(path.stem for path in imported() if path.parent.name == "model" and path.stem != "__init__")


def imported() -> set[Path]:
    """All files of Tacit that trusted code loads, and its own."""
    waiting = [path for package in PACKAGES for path in (SOURCE / package).glob("*.py")]
    seen = set(waiting)
    while waiting:
        for path in _imports(waiting.pop()):
            if path not in seen:
                seen.add(path)
                waiting.append(path)
    return seen


def _imports(path: Path) -> list[Path]:
    """The files of Tacit that a file imports when it is loaded."""
    names = set[str]()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    places = [SOURCE.parent / f"{name.replace('.', '/')}.py" for name in names if name.startswith("tacit.")]
    return [place for place in places if place.exists()]


def counted() -> dict[str, tuple[int, int]]:
    """Files and lines of each package, and of each list."""
    files = {package: sorted((SOURCE / package).glob("*.py")) for package in PACKAGES}
    files["trusted words in model"] = listed("Trusted words")
    files["trusted with budgets"] = listed("Trusted with budgets")
    files["trusted with counts"] = listed("Trusted with counts")
    found = {}
    for name, paths in files.items():
        texts = [path.read_text(encoding="utf-8").splitlines() for path in paths]
        found[name] = (sum(bool(text) for text in texts), sum(map(len, texts)))
    return found


def main() -> None:
    rows = counted()
    for name, (files, lines) in rows.items():
        print(f"{name:<24}{files:>4} files {lines:>7,} lines")
    files, lines = (sum(row[i] for row in rows.values()) for i in (0, 1))
    print(f"{'what privacy rests on':<24}{files:>4} files {lines:>7,} lines")


if __name__ == "__main__":
    main()
