"""What privacy rests on is one list: the linter's, the files' own first lines, and the privacy page's numbers."""

from __future__ import annotations

import pytest
from benchmarks.trust import CONTRACTS, PACKAGES, ROOT, SOURCE, counted, imported, imported_words, listed, trusted_words


def test_the_list_has_what_trusted_code_loads_and_nothing_else() -> None:
    assert trusted_words() == imported_words()


def test_trusted_code_loads_nothing_else_of_ours() -> None:
    others = {path for path in imported() if path.parent.name not in (*PACKAGES, "model")}
    assert others == {SOURCE / "errors.py"}


@pytest.mark.parametrize("trusted", CONTRACTS)
def test_each_of_these_files_says_so_in_its_first_line(trusted: str) -> None:
    says_so = {path for path in SOURCE.rglob("*.py") if path.read_text(encoding="utf-8").startswith(f'"""{trusted}: ')}
    assert says_so == set(listed(trusted))


def test_who_makes_a_ledger_or_promises_anything_of_several_is_listed() -> None:
    """Whoever says what a ledger may spend: it makes or raises one, or states a guarantee."""
    decides = ("Guarantee:", "Ledger.open(", "Manifest.open(", "transaction.append(", "raise_budget(")
    files = [*SOURCE.glob("*.py"), *(path for room in ("owner", "blocks") for path in (SOURCE / room).glob("*.py"))]
    found = {path for path in files if any(word in path.read_text(encoding="utf-8") for word in decides)}
    assert found <= set(listed("Trusted with budgets"))


def test_the_privacy_page_has_the_numbers_that_the_command_prints() -> None:
    page = (ROOT / "docs" / "understand" / "privacy.md").read_text(encoding="utf-8")
    for name, (files, lines) in counted().items():
        assert f"| {name} | {files} | {lines:,} |" in page
    every, all_lines = (sum(column) for column in zip(*counted().values(), strict=True))
    assert f"| together | {every} | {all_lines:,} |" in page


def test_what_can_leak_a_row_is_read_in_an_hour() -> None:
    assert counted()["trusted"][1] <= 1500  # comments included: whoever needs more finds what does not belong there
