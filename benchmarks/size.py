"""How large the house is: lines and modules of each package, and the modules that are over the limit.

python -m benchmarks.size            the tree as it is
python -m benchmarks.size COMMIT     also as it was at a commit
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 400  # lines of a module
Sizes = dict[str, int]  # lines, by the module's path below src/tacit


def now() -> Sizes:
    source = ROOT / "src" / "tacit"
    return {str(path.relative_to(source)): len(path.read_bytes().splitlines()) for path in source.rglob("*.py")}


def at(commit: str) -> Sizes:
    """The same at a commit."""

    def git(*arguments: str) -> bytes:
        return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout

    names = git("ls-tree", "-r", "--name-only", commit, "src/tacit").decode().splitlines()
    modules = [name for name in names if name.endswith(".py")]
    return {name.removeprefix("src/tacit/"): len(git("show", f"{commit}:{name}").splitlines()) for name in modules}


def by_package(sizes: Sizes) -> dict[str, tuple[int, int]]:
    """Lines and modules of each package; modules that stand in none are one."""
    found = defaultdict[str, list[int]](list)
    for name, lines in sizes.items():
        found[name.split("/")[0] if "/" in name else "(top)"].append(lines)
    return {package: (sum(lines), len(lines)) for package, lines in found.items()}


def main(arguments: list[str]) -> None:
    after = now()
    before = at(arguments[0]) if arguments else {}
    old, new = by_package(before), by_package(after)
    print("| package | lines | modules |" + (" lines then | modules then |" if before else ""))
    print("|---|---|---|" + ("---|---|" if before else ""))
    packages = sorted({*old, *new}, key=lambda package: -new.get(package, (0, 0))[0])
    every = {"all": (sum(after.values()), len(after))}, {"all": (sum(before.values()), len(before))}
    for package in (*packages, "all"):
        row = [*(new | every[0]).get(package, (0, 0)), *((old | every[1]).get(package, (0, 0)) if before else ())]
        print(f"| {package} | " + " | ".join(f"{figure:,}" for figure in row) + " |")
    long = sorted(((lines, name) for name, lines in after.items() if lines > LIMIT), reverse=True)
    print(f"\n{len(long)} modules over {LIMIT} lines: " + ", ".join(f"{name} {lines}" for lines, name in long))


if __name__ == "__main__":
    main(sys.argv[1:])
