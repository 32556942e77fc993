"""A table of blocks: what is appended stays apart, what is asked is the sum, and nothing is taken for another."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tacit
from people import answered
from people import tacit as command
from tacit.blocks.series import Series
from tacit.owner.manifest import Manifest
from tacit.owner.manifest_entry import Block
from tacit.store.chain import Draft, Override

DOMAIN = tacit.Domain({"ward": tacit.category(["a", "b"]), "stay": tacit.integer(0, 7)})
BUDGET = tacit.Budget(epsilon=1.0, delta=1e-9)
LONG = "SELECT COUNT(*) FROM data WHERE stay >= 4"


def month(number: int, rows: int = 400) -> pd.DataFrame:
    chance = np.random.default_rng(number)
    return pd.DataFrame(
        {"who": np.arange(rows) // 2, "ward": chance.choice(["a", "b"], rows), "stay": chance.integers(0, 8, rows)}
    )


def made(folder: Path, months: int = 3, **terms: object) -> Series:
    options = {"mechanism": "direct", **terms}
    series = tacit.series(ledger=folder / "stays.tacit", domain=DOMAIN, budget=BUDGET, **options)  # type: ignore[arg-type]
    for number in range(months):
        path = folder / f"{number + 1}.csv"
        month(number).to_csv(path, index=False)
        series.append(str(path), f"2026-0{number + 1}")
    return series


@pytest.fixture
def series(tmp_path: Path) -> Iterator[Series]:
    with made(tmp_path) as found:
        yield found


def value(series: tacit.Series, question: str) -> float:
    found = series.ask(question)
    assert isinstance(found, tacit.Answer)
    return found.value


def test_a_window_is_the_sum_of_its_blocks(series: Series) -> None:
    each = [series.block(label).ask(LONG) for label in series.blocks]
    values = [float(one) for one in each]  # type: ignore[arg-type]
    assert value(series, LONG) == sum(values)
    assert value(series, f"{LONG} AND block BETWEEN '2026-02' AND '2026-12'") == sum(values[1:])
    assert value(series, f"{LONG} AND block IN ('2026-01', '2026-03')") == values[0] + values[2]
    assert value(series, f"{LONG} AND block < '2026-02'") == values[0]
    assert value(series, f"{LONG} AND NOT block <= '2026-02'") == values[2]
    table = series.ask(f"SELECT block, COUNT(*) {LONG[LONG.index('FROM') :]} GROUP BY block")
    assert isinstance(table, tacit.Table)
    assert table.values.tolist() == values
    assert table.names == ("block",)


def test_groups_of_blocks_are_windows(series: Series) -> None:
    halves = "CASE WHEN block < '2026-02' THEN 'first' ELSE 'rest' END"
    table = series.ask(f"SELECT {halves} AS half, COUNT(*) {LONG[LONG.index('FROM') :]} GROUP BY half")
    assert isinstance(table, tacit.Listing)
    spent = series.status().blocks[0].spent
    windows = [value(series, f"{LONG} AND block {part} '2026-02'") for part in ("<", ">=")]
    assert [(*row.labels, *row.values) for row in table.listed] == list(zip(("first", "rest"), windows, strict=True))
    assert series.status().blocks[0].spent == spent


def test_bars_of_a_window_add_like_independent_errors(series: Series) -> None:
    each = [series.block(label).ask(LONG).error for label in series.blocks]
    whole = series.ask(LONG)
    assert whole.confidence == 0.95
    assert whole.error is not None
    assert whole.error < 0.65 * sum(error for error in each if error is not None)
    assert whole.receipt is None


def test_what_is_asked_of_one_block_is_charged_to_it_alone(series: Series) -> None:
    answer = series.ask(f"{LONG} AND block = '2026-02'")
    assert answer.source == "measured"
    assert [one.spent.atoms > 0 for one in series.status().blocks] == [False, True, False]
    # Over all blocks it costs each of the others as much: the budget of one, not three of them.
    alone = answer.cost
    both = series.ask(LONG)
    assert both.cost == alone
    assert len({one.spent for one in series.status().blocks}) == 1
    assert series.ask(LONG).cost.atoms == 0


def test_sizes_are_public_and_cost_nothing(series: Series) -> None:
    found = series.ask("SELECT block, COUNT(*) FROM data GROUP BY block")
    assert isinstance(found, tacit.Table)
    assert (found.values.tolist(), found.error, found.cost.atoms) == ([400.0] * 3, 0, 0)
    assert series.dry_run("SELECT COUNT(*) FROM data WHERE block >= '2026-02'").known
    assert value(series, "SELECT COUNT(*) FROM data WHERE block >= '2026-02'") == 800
    assert not series.dry_run(LONG).known
    assert all(not one.spent.atoms for one in series.status().blocks)


def test_means_tables_quantiles_and_curves_over_a_window(series: Series) -> None:
    rows = pd.concat([month(number) for number in (1, 2)])
    mean = series.ask("SELECT AVG(stay) FROM data WHERE block > '2026-01'")
    assert isinstance(mean, tacit.Answer)
    assert mean.error is not None
    assert abs(mean.value - rows["stay"].mean()) <= mean.error
    table = series.ask("SELECT ward, COUNT(*) FROM data WHERE block > '2026-01' GROUP BY ward")
    assert isinstance(table, tacit.Table)
    assert table.values.shape == (2,)
    both = series.table("block", "ward")
    assert both.values.shape == (3, 2)
    assert both.values[1:].sum(axis=0).tolist() == table.values.tolist()
    curve = series.cdf("stay")
    assert curve.rows == 1200
    assert curve.error is not None
    assert np.abs(curve.values - np.cumsum(np.bincount(pd.concat(map(month, range(3)))["stay"]))).max() <= curve.error
    assert series.quantile("stay", 0.5).value in ("2", "3", "4")
    medians = series.ask("SELECT ward, MEDIAN(stay) FROM data WHERE block > '2026-01' GROUP BY ward")
    assert isinstance(medians, tacit.Listing)
    known = [row for row in medians.listed if row.errors[0] is not None]  # the other may have no rows, by its bar
    assert known
    for row in known:
        error = row.errors[0]
        assert error is not None
        assert abs(row.values[0] - rows[rows["ward"] == row.labels[0]]["stay"].median()) <= error


def test_what_counts_are_put_together_to_is_no_surer_than_they_are(tmp_path: Path) -> None:
    """Gates of two blocks hold at once at 90 %: a mean of two such counts at 80 %, a quantile of three at 70 %."""
    with made(tmp_path, 2, mechanism="iterative") as series:
        assert series.ask(f"{LONG} AND ward = 'a'").confidence == pytest.approx(0.9)
        for question, confidence in (
            ("SELECT ward, COUNT(*) AS n FROM data WHERE stay >= 4 GROUP BY ward", 0.9),
            ("SELECT AVG(stay) FROM data WHERE ward = 'a'", 0.8),
            ("SELECT ward, AVG(stay) FROM data GROUP BY ward", 0.8),
            ("SELECT MEDIAN(stay) FROM data WHERE ward = 'a'", 0.7),
            ("SELECT ward, MEDIAN(stay) FROM data GROUP BY ward", 0.7),
        ):
            assert series.ask(question).confidence == pytest.approx(confidence), question
        assert series.cdf("stay").confidence == pytest.approx(0.3)  # seven counts; the last one is public


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("SELECT STUMP(stay, ward) FROM data", "a statistic is no sum over rows"),
        ("SELECT COUNT(*) FROM data WHERE block = '2027-01'", "block has no value '2027-01'"),
        ("SELECT COUNT(*) FROM data WHERE block < 5", "block is compared with a label"),
    ],
)
def test_what_has_no_answer_over_blocks_is_refused(series: Series, question: str, says: str) -> None:
    with pytest.raises(tacit.InvalidQuery, match=says):
        series.ask(question)


def test_it_is_read_back_without_rows(tmp_path: Path) -> None:
    with made(tmp_path) as first:
        said = value(first, LONG)
    for file in tmp_path.glob("*.csv"):
        file.unlink()
    with tacit.series(ledger=tmp_path / "stays.tacit") as again:
        assert again.blocks == ["2026-01", "2026-02", "2026-03"]
        assert value(again, LONG) == said
        with pytest.raises(tacit.DataError, match="there is no file"):
            again.ask("SELECT COUNT(*) FROM data WHERE stay >= 5")


def test_a_label_and_rows_stand_once(series: Series, tmp_path: Path) -> None:
    with pytest.raises(tacit.LedgerError, match=r"2026-02 is there already.*2026-02-late"):
        series.append(month(9), "2026-02")
    shuffled = month(1).sample(frac=1, random_state=1)
    with pytest.raises(tacit.LedgerError, match="the rows of the block 2026-02"):
        series.append(shuffled, "2026-04")
    assert series.blocks == ["2026-01", "2026-02", "2026-03"]
    assert len(list((tmp_path / "stays.tacit.blocks").glob("*.tacit"))) == 3
    series.append(month(9, rows=3), "2026-02-late")  # the way that there is
    assert series.sizes["2026-02-late"] == 3


@pytest.mark.parametrize("label", ["", " a", "a\n", "x" * 65, 5])
def test_a_label_is_text_that_can_be_asked_for(series: Series, label: str) -> None:
    with pytest.raises(tacit.ConfigError, match="label"):
        series.append(month(9), label)


def test_rows_that_changed_are_refused_with_the_way_that_there_is(tmp_path: Path) -> None:
    made(tmp_path).close()
    pd.concat([month(1), month(9, rows=1)]).to_csv(tmp_path / "2.csv", index=False)
    with (
        tacit.series(ledger=tmp_path / "stays.tacit") as series,
        pytest.raises(tacit.LedgerError, match="2026-02-late"),
    ):
        series.ask(LONG)


def ledgers(folder: Path) -> list[Path]:
    return sorted((folder / "stays.tacit.blocks").glob("*.tacit"))


def test_another_blocks_ledger_is_not_taken_for_its_own(tmp_path: Path) -> None:
    made(tmp_path).close()
    first, second, _ = ledgers(tmp_path)
    aside = tmp_path / "aside"
    first.rename(aside)
    second.rename(first)
    aside.rename(second)
    with (
        tacit.series(ledger=tmp_path / "stays.tacit") as series,
        pytest.raises(tacit.LedgerError, match="is not the one that it was appended with"),
    ):
        series.ask(LONG)


def test_an_old_copy_of_one_blocks_ledger_is_noticed(tmp_path: Path) -> None:
    with made(tmp_path) as series:
        old = ledgers(tmp_path)[1]
        series.close()
        shutil.copy(old, tmp_path / "old")
    with tacit.series(ledger=tmp_path / "stays.tacit") as series:
        series.ask(LONG)
    shutil.copy(tmp_path / "old", old)
    with (
        tacit.series(ledger=tmp_path / "stays.tacit") as series,
        pytest.raises(tacit.LedgerError, match=r"older|newer|seen"),
    ):
        series.ask(LONG)


def test_an_old_copy_of_the_manifest_is_noticed(tmp_path: Path) -> None:
    made(tmp_path, months=1).close()
    shutil.copy(tmp_path / "stays.tacit", tmp_path / "old")
    with tacit.series(ledger=tmp_path / "stays.tacit") as series:
        series.append(month(5), "2026-02")
    shutil.copy(tmp_path / "old", tmp_path / "stays.tacit")
    with pytest.raises(tacit.LedgerError, match=r"older|newer|seen"):
        tacit.series(ledger=tmp_path / "stays.tacit")


def test_a_series_that_went_back_takes_no_more_blocks(tmp_path: Path) -> None:
    """A lost block, spent or not, is not appended again with a new budget; nor are more blocks than were declared."""
    terms = {"person": "who", "rows_per_person": 2, "protects": "person over blocks", "most_blocks": 2}
    made(tmp_path, months=1, **terms).close()
    path = tmp_path / "stays.tacit"
    shutil.copy(path, tmp_path / "old")
    with tacit.series(ledger=path) as series:
        series.append(month(5), "2026-02").ask("SELECT COUNT(*) FROM data WHERE ward = 'a'")
    there = sorted(ledgers(tmp_path))
    shutil.copy(tmp_path / "old", path)
    for reason in ("the disk broke", None):  # then and ever after
        with tacit.series(ledger=path, accept_rollback=reason) as series:
            for rows, label in ((month(5), "2026-02"), (month(5), "again"), (month(6), "2026-03"), ("none.csv", "x")):
                with pytest.raises(tacit.TacitError, match="takes no more blocks"):  # before the rows are read
                    series.append(rows, label)
            assert series.blocks == ["2026-01"]
            assert value(series, LONG) == value(series, f"{LONG} AND block = '2026-01'")
    assert sorted(ledgers(tmp_path)) == there
    path.unlink()
    for more in ({}, {"accept_rollback": "deleted"}, {"anchor": tmp_path / "another"}):
        with pytest.raises(tacit.LedgerError, match="the manifest that lists them"):
            made(tmp_path, months=0, **terms, **more)
        assert not path.exists()


def test_a_block_whose_ledger_is_gone_gets_no_new_one(tmp_path: Path) -> None:
    rows = tmp_path / "rows.parquet"
    month(5).to_parquet(rows)
    with made(tmp_path, months=0) as series:
        series.append(rows, "2026-01")
    (lost,) = (tmp_path / "stays.tacit.blocks").glob("*.tacit")
    lost.rename(tmp_path / "lost")
    with tacit.series(ledger=tmp_path / "stays.tacit") as series, pytest.raises(tacit.LedgerError, match="is gone"):
        series.block("2026-01")
    assert not lost.exists()


def test_a_rollback_that_is_accepted_meanwhile_is_noticed(series: Series, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line of a block is written by a transaction that sees no override, whatever was looked up before."""
    manifest = series._ledgers._manifest
    monkeypatch.setattr(Manifest, "check", lambda *_: None)
    log = manifest._log
    draft = Draft("override", 0, Override("a disk", None, log.identity.anchor, None, "unknown").body())
    log.write(lambda transaction: transaction.append(draft, transaction.state, time=log.time()))
    with pytest.raises(tacit.LedgerError, match="takes no more blocks"):
        series.append(month(7), "2026-04")


def test_an_append_that_fails_leaves_nothing(series: Series, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Manifest, "add", fail)
        with pytest.raises(KeyboardInterrupt):
            series.append(month(7), "2026-04")
    assert len(ledgers(tmp_path)) == 3
    assert series.blocks == ["2026-01", "2026-02", "2026-03"]
    series.append(month(7), "2026-04")
    assert len(series.blocks) == 4


def test_a_block_that_is_listed_keeps_its_ledger_whatever_fails_then(
    series: Series, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Manifest.add

    def stored_and_interrupted(self: Manifest, block: Block) -> None:
        add(self, block)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Manifest, "add", stored_and_interrupted)
        with pytest.raises(KeyboardInterrupt):
            series.append(month(7), "2026-04")
    assert len(ledgers(tmp_path)) == 4
    assert [one.label for one in series.status().blocks][-1] == "2026-04"


def test_of_two_who_append_the_same_label_at_once_one_does(tmp_path: Path) -> None:
    made(tmp_path, months=1).close()
    said: list[str] = []
    start = threading.Barrier(2)

    def work(number: int) -> None:
        with tacit.series(ledger=tmp_path / "stays.tacit") as series:
            start.wait()
            try:
                series.append(month(number), "2026-02")
                said.append("appended")
            except tacit.LedgerError as error:
                said.append(error.sentence)

    both = [threading.Thread(target=work, args=(number,)) for number in (7, 8)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert said.count("appended") == 1
    assert any("is there already" in one for one in said)
    with tacit.series(ledger=tmp_path / "stays.tacit") as series:
        assert series.blocks == ["2026-01", "2026-02"]
        assert len(ledgers(tmp_path)) == 2


def test_another_process_sees_what_was_appended(series: Series, tmp_path: Path) -> None:
    with tacit.series(ledger=tmp_path / "stays.tacit") as other:
        other.append(month(7), "2026-04")
    assert series.blocks[-1] == "2026-04"
    assert value(series, "SELECT COUNT(*) FROM data") == 1600


def test_a_question_is_about_the_blocks_that_there_were_when_it_was_put(series: Series, tmp_path: Path) -> None:
    later = "SELECT COUNT(*) FROM data WHERE block >= '2026-02'"
    each = "SELECT block, COUNT(*) FROM data GROUP BY block"
    asks = [series.question(later), series.question(f"{LONG} AND block <> '2026-01'")]
    with tacit.series(ledger=tmp_path / "stays.tacit") as other:
        other.append(month(7), "2026-04")
    assert series.blocks[-1] == "2026-04"
    assert float(series.answer(asks[0])) == 800  # type: ignore[arg-type]
    assert float(series.answer(asks[1])) == value(series, f"{LONG} AND block BETWEEN '2026-02' AND '2026-03'")  # type: ignore[arg-type]
    assert value(series, later) == 1200
    assert len(series.ask(each)) == 4  # type: ignore[arg-type]


def test_a_person_over_blocks_has_a_part_of_the_budget_in_each(tmp_path: Path) -> None:
    terms = {"person": "who", "rows_per_person": 2, "protects": "person over blocks", "most_blocks": 3}
    with made(tmp_path, months=3, **terms) as series:
        each = [session.total for session in (series.block(label) for label in series.blocks)]
        from tacit.exact.price import total

        assert sum(one.atoms for one in each) <= total(BUDGET, each[0].measure).atoms
        assert series.terms.each.epsilon < BUDGET.epsilon
        with pytest.raises(tacit.LedgerError, match="made for 3 blocks"):
            series.append(month(9), "2026-04")
    with made(
        tmp_path / "x" if (tmp_path / "x").mkdir() is None else tmp_path, months=1, person="who", rows_per_person=2
    ) as within:
        assert within.terms.protects == "person within a block"
        assert within.terms.each == BUDGET


@pytest.mark.parametrize(
    "terms",
    [
        {"protects": "person over blocks", "most_blocks": 3},
        {"person": "who", "rows_per_person": 2, "protects": "row"},
        {"person": "who", "rows_per_person": 2, "most_blocks": 3},
        {"person": "who", "rows_per_person": 2, "protects": "person over blocks"},
        {"person": "who", "rows_per_person": 2, "protects": "person over blocks", "most_blocks": 0},
        {"protects": "everybody"},
        {"person": "who"},
        {"person": "who", "rows_per_person": 0},
        {"person": "who", "rows_per_person": 1.5},
        {"person": "", "rows_per_person": 2},
        {"name": "Ward"},
    ],
)
def test_terms_that_say_nothing_are_refused(tmp_path: Path, terms: dict[str, object]) -> None:
    with pytest.raises(tacit.TacitError):
        made(tmp_path, months=0, **terms)
    assert not (tmp_path / "stays.tacit").exists()


def test_other_terms_and_other_ledgers_are_refused(tmp_path: Path) -> None:
    made(tmp_path, months=1).close()
    with pytest.raises(tacit.LedgerError, match="another budget"):
        tacit.series(ledger=tmp_path / "stays.tacit", budget=tacit.Budget(epsilon=2.0, delta=1e-9))
    with pytest.raises(tacit.LedgerError, match="is a series of blocks"):
        tacit.open(data=month(1), domain=DOMAIN, budget=BUDGET, ledger=tmp_path / "stays.tacit")
    with pytest.raises(tacit.LedgerError, match="ledger of one table"):
        tacit.series(ledger=ledgers(tmp_path)[0])
    with pytest.raises(tacit.ConfigError, match="needs a domain"):
        tacit.series(ledger=tmp_path / "none.tacit")


def test_a_start_is_drawn_to_the_block_before_and_kept(tmp_path: Path) -> None:
    terms = {"mechanism": "iterative", "warm": 0.7, "certify": 0.2}
    with made(tmp_path, months=0, **terms) as series:
        assert series.append(month(0), "1", start=True).prior is None
        second = series.append(month(1), "2", start=True)
        assert second.prior is not None
        said = series.ask(LONG)
        assert isinstance(said, tacit.Answer)
        assert [bar.confidence for bar in said.bars] == [0.95] * len(said.bars)
    with tacit.series(ledger=tmp_path / "stays.tacit") as again:
        assert value(again, LONG) == said.value
        assert again.ask(LONG).bars == said.bars
    (kept,) = (tmp_path / "stays.tacit.blocks").glob("*.prior")
    kept.unlink()
    with tacit.series(ledger=tmp_path / "stays.tacit") as again, pytest.raises(tacit.LedgerError, match=r"\.prior"):
        again.ask(LONG)


def test_one_table_is_split_by_a_column(tmp_path: Path) -> None:
    rows = pd.concat([month(number).assign(day=f"d{number}") for number in (2, 0, 1)])
    with tacit.series(
        ledger=tmp_path / "a.tacit", domain=DOMAIN, budget=BUDGET, name="day", mechanism="direct"
    ) as series:
        assert series.append_by(rows, "day") == ["d0", "d1", "d2"]
        assert series.append_by(rows, "day") == []
        assert value(series, "SELECT COUNT(*) FROM data WHERE day <= 'd1'") == 800
        with pytest.raises(tacit.DataError, match="some rows have no day"):
            series.append_by(pd.concat([rows, month(3)]), "day")
        with pytest.raises(tacit.DataError, match="no column night"):
            series.append_by(rows, "night")


CONFIGURATION = """
[budget]
epsilon = 1.0
delta = 1e-9
[session]
ledger = "stays.tacit"
mechanism = "direct"
[blocks]
[domain.ward]
kind = "category"
values = ["a", "b"]
[domain.stay]
kind = "integer"
low = 0
high = 7
"""


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tacit.toml").write_text(CONFIGURATION)
    for number in (0, 1):
        month(number).to_csv(f"{number}.csv", index=False)
    assert answered("append", "0.csv", "--label", "2026-01")[0]["blocks"] == 1
    assert "400 rows" in command("append", "1.csv", "--label", "2026-02").output
    assert command("append", "1.csv", "--label", "2026-02").exit_code == 1
    assert command("append", "1.csv").exit_code == 2
    (table,) = answered("ask", "SELECT block, COUNT(*) FROM data WHERE stay >= 4 GROUP BY block")
    assert [row[:1] for row in table["rows"]] == [["2026-01"], ["2026-02"]]
    (status,) = answered("status")
    assert [one["block"] for one in status["blocks"]] == ["2026-01", "2026-02"]
    assert "2026-02" in command("status").output
    assert command("publish", "-o", "x").exit_code == 1
    assert command("publish", "-o", "x", "--block", "2026-02").exit_code == 0
    (one,) = answered("ask", "SELECT COUNT(*) FROM data WHERE stay >= 4", "--block", "2026-02")
    assert one["source"] == "repeat"
    assert json.loads(command("start", "--yes", "--json").output) == {"started": [], "not_started": []}
    pd.concat([month(n).assign(day=f"d{n}") for n in (0, 1)]).to_csv("all.csv", index=False)
    split = CONFIGURATION.replace("[blocks]", '[blocks]\ncolumn = "day"').replace("stays.tacit", "split.tacit")
    Path("split.toml").write_text(f'data.source = "all.csv"\n{split}')
    assert answered("append", "-c", "split.toml")[0]["appended"] == ["d0", "d1"]
    assert command("append", "-c", "split.toml", "--label", "x").exit_code == 2


def test_the_budget_of_a_block_stays_what_the_series_promises(tmp_path: Path) -> None:
    """Whoever tries: with the block's session, without it, with the ledger alone, or by a ledger that continues it."""
    more = tacit.Budget(epsilon=5.0, delta=1e-9)
    with made(tmp_path, months=1) as series:
        (path,) = ledgers(tmp_path)
        before = series.block("2026-01").total
        with pytest.raises(tacit.LedgerError, match="is the ledger of a block"):
            series.block("2026-01").extend(more)
        with pytest.raises(tacit.LedgerError, match="is the ledger of a block"):
            tacit.extend(path, more)
        with pytest.raises(tacit.LedgerError, match="is the ledger of a block"):
            tacit.reopen(path).extend(more)
        with (
            tacit.open(data=str(tmp_path / "1.csv"), domain=DOMAIN, budget=BUDGET, ledger=path) as alone,
            pytest.raises(tacit.LedgerError, match="is the ledger of a block"),
        ):
            alone.extend(more)
        terms = {"data": str(tmp_path / "1.csv"), "domain": DOMAIN, "budget": more, "mechanism": "direct"}
        with pytest.raises(tacit.LedgerError, match="is the ledger of a block"):
            tacit.open(**terms, ledger=tmp_path / "on.tacit", continues=path)
        assert not (tmp_path / "on.tacit").exists()
        with pytest.raises(tacit.LedgerError, match="budget is") as refused:
            tacit.open(**terms, ledger=path)
        assert "tacit extend" not in str(refused.value)
        assert series.block("2026-01").total == before
    Path(tmp_path / "block.toml").write_text(
        f'data.source = "1.csv"\nbudget = {{epsilon = 1, delta = 1e-9}}\nsession.ledger = "{path}"\n{DOMAIN.to_toml()}'
    )
    tried = command("extend", "-c", str(tmp_path / "block.toml"), "--epsilon", "5", "--yes")
    assert tried.exit_code != 0
    assert "is the ledger of a block" in tried.stderr.replace("\n", " ")


def test_a_block_whose_budget_was_raised_by_itself_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path, months=1).close()
    monkeypatch.setattr("tacit.extension.PART_OF", "no term of it")  # as somebody who writes the file could
    tacit.extend(ledgers(tmp_path)[0], tacit.Budget(epsilon=2.0, delta=1e-9))
    with tacit.series(ledger=tmp_path / "stays.tacit") as series, pytest.raises(tacit.LedgerError, match="raised by"):
        series.ask(LONG)


def test_counts_along_blocks_are_drawn_as_lines_with_bands(series: Series) -> None:
    alone, both = series.table("block", where="stay >= 4"), series.table("ward", "block")
    assert (alone.along, both.along) == ("block", "block")
    kinds = [[type(mark).__name__ for mark in table.chart().marks] for table in (alone, both)]
    assert kinds == [["Area", "Polyline"], ["Area", "Polyline", "Area", "Polyline"]]
    assert "2026-02" in alone.chart().svg()
    assert [type(mark).__name__ for mark in series.table("ward").chart().marks] == ["Bars"]


@pytest.mark.audit
@pytest.mark.real_noise
def test_bars_over_windows_hold_as_often_as_they_say(tmp_path: Path) -> None:
    """Every question has noise of its own in every block, so misses are independent: a false alarm in 10^9 runs."""
    from scipy.stats import binom

    rows = [month(number, rows=3000) for number in range(4)]
    there = pd.concat(rows)
    with made(tmp_path, months=0, questions=250) as series:
        for number, some in enumerate(rows):
            series.append(some, f"{number}")
        missed = asked = 0
        for low, high, ward in product(range(8), range(8), ("a", "b")):
            if low > high or (low, high) == (0, 7):  # one ward is all rows less the other: one question
                continue
            found = series.ask(f"SELECT COUNT(*) FROM data WHERE stay BETWEEN {low} AND {high} AND ward = '{ward}'")
            assert found.confidence == 0.95
            assert found.error is not None
            true = (there["stay"].between(low, high) & (there["ward"] == ward)).sum()
            asked += 1
            missed += abs(float(found) - true) > found.error  # type: ignore[arg-type]
    assert missed <= binom.isf(1e-9, asked, 0.05)


def test_what_a_ledger_charges_is_counted_whatever_its_price_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with made(tmp_path) as series:
        monkeypatch.setattr(tacit.Session, "known", tacit.Session.found)  # as if all were known already
        before = {one.label: one.spent.atoms for one in series.status().blocks}
        with series.paying() as paid:
            series.ask("SELECT COUNT(*) FROM data WHERE stay = 1 AND ward = 'a'")
        after = {one.label: one.spent.atoms for one in series.status().blocks}
        assert paid == {label: after[label] - before[label] for label in after}
        assert min(paid.values()) > 0


def test_an_answer_costs_what_a_row_paid_and_no_more_than_its_price(series: Series) -> None:
    """Two counts of one statement are about two blocks: no row pays for both."""
    apart = ", ".join(f"COUNT(*) FILTER (WHERE block = '2026-0{i}' AND stay = {i})" for i in (1, 2))
    price = series.dry_run(f"SELECT {apart} FROM data").cost_at_most
    assert series.ask(f"SELECT {apart} FROM data").cost == price == series.status().spent
