"""The budget of a series is raised: in its manifest first, then in the ledger of every block, and of those to come."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import tacit
from tacit.blocks import budgets as block_budgets
from tacit.cli import main
from tacit.exact.price import total
from tacit.model.budget import Budget
from test_series import BUDGET, CONFIGURATION, DOMAIN, LONG, ledgers, made, month, value

MORE = Budget(epsilon=2.0, delta=1e-9)
MOST = Budget(epsilon=3.0, delta=1e-9)


def raised(series: tacit.Series) -> list[list[Budget]]:
    """The decisions in the ledger of every block."""
    return [[one.budget for one in series.block(label).extensions] for label in series.blocks]


def test_every_block_and_those_to_come_have_the_new_budget(tmp_path: Path) -> None:
    with made(tmp_path, months=2) as series:
        first, before = value(series, LONG), series.total
        price = series.dry_run("SELECT COUNT(*) FROM data WHERE stay = 1").cost_at_most
        done = series.extend(MORE)
        assert (done.budget, done.total) == (MORE, total(MORE, before.measure))
        series.append(month(7), "2026-03")
        assert series.extend(MOST).budget == MOST
        series.append(month(8), "2026-04")
        assert raised(series) == [[MORE, MOST]] * 4
        assert {series.block(label).total for label in series.blocks} == {total(MOST, before.measure)}
        assert {series.block(label).made_with for label in series.blocks} == {(BUDGET, before)}
        assert value(series, f"{LONG} AND block <= '2026-02'") == first  # nothing that was bought changes
        assert series.dry_run("SELECT COUNT(*) FROM data WHERE stay = 1").cost_at_most == price
        status = series.status()
        assert (status.budget, status.total) == (MOST, total(MOST, before.measure))
        assert [one.budget for one in status.extensions] == [MORE, MOST]
        published = tmp_path / "one.jsonl"
        series.block("2026-04").publish(published)
        assert [one.budget for one in tacit.read(published).extensions] == [MORE, MOST]
    with tacit.series(ledger=tmp_path / "stays.tacit", domain=DOMAIN, budget=MOST) as again:
        assert again.each == MOST
    for other in (BUDGET, MORE):
        with pytest.raises(tacit.LedgerError, match="tacit extend"):
            tacit.series(ledger=tmp_path / "stays.tacit", domain=DOMAIN, budget=other)


@pytest.mark.parametrize("other", [BUDGET, Budget(epsilon=0.5, delta=1e-9), Budget(epsilon=2.0), "more"])
def test_a_budget_is_only_raised(tmp_path: Path, other: Budget) -> None:
    with made(tmp_path, months=1) as series:
        entries = series.block("2026-01").entries
        with pytest.raises(tacit.TacitError):
            series.extend(other)
        assert series.extensions == ()
        assert series.block("2026-01").entries == entries
        series.extend(MORE)
        with pytest.raises(tacit.TacitError, match="is not more than"):
            series.extend(MORE)
        assert len(series.extensions) == 1


def test_what_was_cut_short_is_finished_by_whoever_opens_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with made(tmp_path, months=3) as series:
        total_now = series.total
        raise_budget, calls = block_budgets.raise_budget, list[Path]()

        def once(path: Path, *given: object) -> object:
            if calls:
                raise KeyboardInterrupt
            calls.append(path)
            return raise_budget(path, *given)  # type: ignore[arg-type]

        with monkeypatch.context() as cut:
            cut.setattr(block_budgets, "raise_budget", once)
            with pytest.raises(KeyboardInterrupt):
                series.extend(MORE)
        # What is open goes on with what it has: more in the first block, not yet in the others.
        assert [one.total.atoms > total_now.atoms for one in series.status().blocks] == [True, False, False]
    with tacit.series(ledger=tmp_path / "stays.tacit") as again:
        assert [one.total for one in again.status().blocks] == [total(MORE, total_now.measure)] * 3
        assert raised(again) == [[MORE]] * 3
        assert len(again.extensions) == 1


def test_what_was_cut_short_is_finished_when_it_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise KeyboardInterrupt

    with made(tmp_path, months=2) as series:
        for budget in (MORE, MOST):
            with monkeypatch.context() as cut:
                cut.setattr(block_budgets, "raise_budget", never)
                with pytest.raises(KeyboardInterrupt):
                    series.extend(budget)
        assert raised(series) == [[], []]
        series.extend(MOST)
        assert raised(series) == [[MORE, MOST]] * 2
        assert [one.budget for one in series.extensions] == [MORE, MOST]


def test_of_two_who_finish_a_ledger_each_decision_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with made(tmp_path, months=1) as series:
        raise_budget = block_budgets.raise_budget

        def twice(*given: object) -> object:
            raise_budget(*given)  # type: ignore[arg-type]  # another process is quicker
            return raise_budget(*given)  # type: ignore[arg-type]

        with monkeypatch.context() as raced:
            raced.setattr(block_budgets, "raise_budget", twice)
            series.extend(MORE)
        assert raised(series) == [[MORE]]


def test_of_a_person_over_blocks_all_blocks_stay_within_the_new_budget(tmp_path: Path) -> None:
    terms = {"person": "who", "rows_per_person": 2, "protects": "person over blocks", "most_blocks": 3}
    with made(tmp_path, months=2, **terms) as series:
        series.extend(MORE)
        series.append(month(9), "2026-03")
        each = [series.block(label).total for label in series.blocks]
        assert len(set(each)) == 1
        assert sum(one.atoms for one in each) <= total(MORE, each[0].measure).atoms
        assert sum(one.atoms for one in each) > 0.99 * total(MORE, each[0].measure).atoms
        assert series.each == series.terms.of_block(MORE)
        assert series.budget_of_all == MORE


def test_groups_of_blocks_are_raised_too(tmp_path: Path) -> None:
    """Groups that there are, and those to come: for every row, its ledgers stay within the new budget."""
    with made(tmp_path, months=3, mechanism="histogram", expected=9, windows=[3]) as series:
        assert len(series.groups) == 1
        series.extend(MORE)
        for number in (4, 5, 6):
            series.append(month(number), f"2026-0{number}")
        status = series.status()
        (group,) = {one.total for one in status.groups}
        (block,) = {one.total for one in status.blocks}
        assert len(status.groups) == 2
        assert status.total == total(MORE, block.measure)
        assert 0.99 * status.total.atoms < group.atoms + block.atoms <= status.total.atoms


def test_a_series_that_went_back_is_not_extended(tmp_path: Path) -> None:
    with made(tmp_path, months=1):
        pass
    path, old = tmp_path / "stays.tacit", tmp_path / "old"
    shutil.copy(path, old)
    with tacit.series(ledger=path) as series:
        series.extend(MORE)
    for one in tmp_path.glob("stays.tacit-*"):
        one.unlink()
    shutil.copy(old, path)
    with tacit.series(ledger=path, accept_rollback="a disk") as series:
        with pytest.raises(tacit.LedgerError, match="no more budget"):
            series.extend(MOST)
        # And a ledger that has more than the manifest knows of is not asked.
        with pytest.raises(tacit.LedgerError, match="raised by"):
            series.ask(LONG)


def test_a_series_with_a_ledger_that_went_back_is_not_extended(tmp_path: Path) -> None:
    with made(tmp_path, months=2) as series:
        value(series, LONG)
    second = ledgers(tmp_path)[1]
    old = tmp_path / "old"
    shutil.copy(second, old)
    with tacit.series(ledger=tmp_path / "stays.tacit") as series:
        value(series, "SELECT COUNT(*) FROM data WHERE stay = 1")
    for one in second.parent.glob(f"{second.name}-*"):
        one.unlink()
    shutil.copy(old, second)
    tacit.open(
        data=str(tmp_path / "2.csv"), domain=DOMAIN, budget=BUDGET, ledger=second, accept_rollback="a disk"
    ).close()
    with tacit.series(ledger=tmp_path / "stays.tacit") as series:
        with pytest.raises(tacit.LedgerError, match="is not raised"):
            series.extend(MORE)
        assert series.extensions == ()
        assert raised(series) == [[], []]


def test_a_ledger_that_was_raised_by_other_decisions_is_refused(tmp_path: Path) -> None:
    with made(tmp_path, months=2) as series:
        origin = series._ledgers._manifest.origin
        block_budgets.raise_budget(ledgers(tmp_path)[0], Budget(epsilon=1.5, delta=1e-9), None, origin)
        with pytest.raises(tacit.LedgerError, match="by other decisions"):
            series.extend(MORE)
        assert series.extensions == ()
    with tacit.series(ledger=tmp_path / "stays.tacit") as again, pytest.raises(tacit.LedgerError, match="raised by"):
        again.ask(LONG)


def test_a_series_continues_nothing_and_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(tacit.ConfigError, match="a new series"):
        made(tmp_path, months=0, continues="old.tacit")
    assert not (tmp_path / "stays.tacit").exists()
    made(tmp_path, months=1).close()
    with pytest.raises(tacit.LedgerError, match="a series of blocks"):
        tacit.extend(tmp_path / "stays.tacit", MORE)


def test_the_command_line_raises_the_budget_of_a_series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tacit.toml").write_text(CONFIGURATION)
    month(0).to_csv("0.csv", index=False)
    run = CliRunner()
    assert run.invoke(main, ["append", "0.csv", "--label", "2026-01"]).exit_code == 0
    assert run.invoke(main, ["extend", "--epsilon", "2"]).exit_code == 2
    done = run.invoke(main, ["extend", "--epsilon", "2", "--yes", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["budget_of_a_block"]["epsilon"] == 2
    assert run.invoke(main, ["status"]).exit_code != 0
    Path("tacit.toml").write_text(CONFIGURATION.replace("epsilon = 1.0", "epsilon = 2"))
    status = json.loads(run.invoke(main, ["status", "--json"]).stdout)
    assert status["budget_of_a_block"]["epsilon"] == 2
