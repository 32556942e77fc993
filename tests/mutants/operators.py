"""Bugs that nobody thought of: single operators of a file swapped, a sample at a time, against the tests of that file.

    PYTHONPATH=src:tests:tests/mutants .venv/bin/python tests/mutants/operators.py trusted/rules.py --sample 20

Survivors are for people to read: many change nothing that can be observed, or cost accuracy alone. One that breaks a
promise gets a test, and a place in the catalogue. So nothing fails here, and no suite runs it.
"""

from __future__ import annotations

import argparse
import ast
import copy
import random
from collections.abc import Iterator
from pathlib import Path

from campaign import ROOT, trial
from mutant import Mutant

# The tests that know each file best; what they miss, others may still catch.
TESTS = {
    "exact/bounds.py": ("trusted/test_loss.py", "exact/test_strategy_sensitivity.py", "exact/test_discovery_pmf.py"),
    "exact/charges.py": ("exact/test_person_sensitivity.py", "exact/test_statistic_sensitivity.py"),
    "exact/gaussian.py": ("exact/test_gaussian_account.py",),
    "exact/price.py": (
        "trusted/test_loss.py",
        "exact/test_noise_pmf.py",
        "exact/test_selection.py",
        "exact/test_sparse_vector.py",
        "exact/test_gaussian_account.py",
        "exact/test_discovery_pmf.py",
    ),
    "store/anchor.py": ("trusted/test_anchor.py", "trusted/test_ledger_copies.py", "trusted/test_two_copies.py"),
    "store/chain.py": ("trusted/test_ledger_copies.py", "trusted/test_rules.py", "trusted/test_ledger.py"),
    "trusted/cells.py": ("trusted/test_cells.py", "trusted/test_person.py", "exact/test_cells_sensitivity.py"),
    "trusted/copy.py": ("engines/test_kinds.py",),
    "trusted/curator.py": ("trusted/test_curator.py", "trusted/test_curator_refusals.py", "trusted/test_lens.py"),
    "trusted/discovery.py": ("trusted/test_look.py", "exact/test_discovery_pmf.py"),
    "trusted/gate.py": ("trusted/test_gate.py", "trusted/test_times.py"),
    "trusted/ledger.py": ("trusted/test_ledger.py", "trusted/test_times.py", "trusted/test_read_only.py"),
    "trusted/noise.py": ("trusted/test_noise.py", "trusted/test_noise_arrays.py", "exact/test_selection.py"),
    "trusted/records.py": ("trusted/test_records.py", "trusted/test_curator.py"),
    "trusted/rules.py": ("trusted/test_rules.py", "trusted/test_accountant.py", "trusted/test_ledger.py"),
    "trusted/sensitivity.py": (
        "exact/test_sensitivity.py",
        "exact/test_person_sensitivity.py",
        "exact/test_strategy_sensitivity.py",
        "exact/test_certificate_sensitivity.py",
        "trusted/test_lens.py",
    ),
}
SWAPPED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
}  # fmt: skip


def changes(node: ast.expr) -> Iterator[ast.expr]:
    """What may stand in the place of an expression: one operator is another, a number is one more, a not is gone."""
    changed = copy.deepcopy(node)
    if isinstance(changed, ast.Compare) and type(changed.ops[0]) in SWAPPED:
        for place, operator in enumerate(changed.ops):
            again = copy.deepcopy(changed)
            again.ops[place] = SWAPPED[type(operator)]()  # type: ignore[call-overload]
            yield again
    elif isinstance(changed, ast.BoolOp | ast.BinOp) and type(changed.op) in SWAPPED:
        changed.op = SWAPPED[type(changed.op)]()  # type: ignore[assignment]
        yield changed
    elif isinstance(changed, ast.UnaryOp) and isinstance(changed.op, ast.Not):
        yield changed.operand
    elif isinstance(changed, ast.Constant) and type(changed.value) is int:
        changed.value += 1
        yield changed
    elif isinstance(changed, ast.Call) and isinstance(changed.func, ast.Name) and changed.func.id in ("min", "max"):
        changed.func.id = "max" if changed.func.id == "min" else "min"
        yield changed


def mutants(file: str, source: str) -> list[Mutant]:
    """Every change of one operator in a file, but for annotations and texts. A bug is the whole source, changed."""
    tree, lines = ast.parse(source), source.splitlines(keepends=True)
    passed_over = {
        id(inside)
        for node in ast.walk(tree)
        for part in (getattr(node, "annotation", None), getattr(node, "returns", None), node)
        if part is not None and (part is not node or isinstance(node, ast.JoinedStr))
        for inside in ast.walk(part)
    }
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line.encode()))
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr) or id(node) in passed_over:
            continue
        begin, end = starts[node.lineno - 1] + node.col_offset, starts[(node.end_lineno or 0) - 1]
        end += node.end_col_offset or 0
        for changed in changes(node):
            text = source.encode()
            words = f"({ast.unparse(changed)})"
            whole = (text[:begin] + words.encode() + text[end:]).decode()
            name = f"{file}:{node.lineno}: {ast.unparse(node)} -> {words}"
            found.append(Mutant(name, "", file, source, whole, tuple(f"tests/{test}" for test in TESTS[file])))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", choices=sorted(TESTS))
    parser.add_argument("--sample", type=int, default=10, help="changes of each file that are tried")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for file in given.files:
        all_of_it = mutants(file, Path(ROOT / "src" / "tacit" / file).read_text())
        some = random.Random(given.seed).sample(all_of_it, min(given.sample, len(all_of_it)))
        noticed = 0
        for mutant in some:
            verdict = trial(mutant.tests, mutant)
            noticed += verdict.failed is not None
            print("noticed " if verdict.failed else "SURVIVED", mutant.name, verdict.failed or "", flush=True)
        print(f"{file}: {noticed} of {len(some)} noticed, out of {len(all_of_it)} changes that there are", flush=True)


if __name__ == "__main__":
    main()
