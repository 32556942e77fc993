"""A session as its users see it: the same question once, errors that cost nothing, restarts, and both mechanisms."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from support import once
from tacit import questions as asking
from tacit.model.ask import Stat
from tacit.owner.binding import choose
from tacit.release.settings import IterativeSettings
from tacit.serve import question
from tacit.session import Session

DOMAIN = tacit.Domain(
    {
        "sex": tacit.category(["F", "M"]),
        "age": tacit.integer(0, 99, width=10),
        "smoker": tacit.boolean(missing="unknown"),
    }
)
N = 600


def people() -> pd.DataFrame:
    i = np.arange(N)
    smoker = pd.Series(np.where(i % 7 == 0, None, i % 3 == 0), dtype="object")
    return pd.DataFrame({"sex": np.where(i % 3, "F", "M"), "age": i % 100, "smoker": smoker})


SOURCE = once(people())


def start(folder: Path, **changes: Any) -> Session:
    settings: dict[str, Any] = {
        "data": SOURCE,
        "domain": DOMAIN,
        "budget": tacit.Budget(epsilon=5.0, delta=1e-9),
        "ledger": folder / "people.tacit",
        "mechanism": "direct",
        "questions": 10,
    }
    return tacit.open(**({"start": True} | settings | changes))


SAME = [
    "SELECT COUNT(*) FROM data WHERE sex = 'F' AND age BETWEEN 20 AND 39",
    "select count(*) from data where not (age < 20 or age >= 40 or sex <> 'F')",
    tacit.count(sex="F", age=(20, 39)),
    tacit.count(age=(20, 39)) & tacit.count(sex=["F"]),
    tacit.count(sex="F", age=(20, 29)) | tacit.count(sex="F", age=(30, 39)),
    tacit.count(tacit.count(age=(0, 39)), tacit.count(age=(20, 99)), sex="F"),
]


def test_the_same_question_is_paid_once_however_it_is_written(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        answers = [session.ask(question) for question in SAME]
        spent = session.spent
    assert len({(a.value, a.error, a.receipt) for a in answers if isinstance(a, tacit.Answer)}) == 1
    assert [a.source for a in answers] == ["measured"] + ["repeat"] * 5
    assert spent == answers[0].cost
    assert all(a.cost.atoms == 0 for a in answers[1:])


def test_the_same_bytes_after_a_restart_and_for_another_session(tmp_path: Path) -> None:
    with start(tmp_path) as one, start(tmp_path) as two:
        first = one.ask(SAME[0])
        paid = {"source": "", "cost": "", "percent": "", "total": ""}
        assert two.ask(SAME[2]).to_dict() | paid == first.to_dict() | paid
        table = one.table("sex", "age")
        assert two.table("age", "sex").values.T.tolist() == table.values.tolist()
        spent = one.spent
    with start(tmp_path) as again:
        assert again.spent == spent
        assert again.ask(SAME[1]).value == first.value  # type: ignore[union-attr]
        assert again.table("sex", "age").values.tolist() == table.values.tolist()
        assert again.spent == spent
        assert [past.question for past in again.history] == ["age in 20–29 … 30–39 and sex = F", "table of age, sex"]


def test_a_complement_and_the_whole_are_free(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        women = session.ask(tacit.count(sex="F"))
        men = session.ask(tacit.count(sex="M"))
        assert isinstance(women, tacit.Answer)
        assert isinstance(men, tacit.Answer)
        assert women.value + men.value == N
        assert men.cost.atoms == 0
        everyone, nobody = session.ask("SELECT COUNT(*) FROM data"), session.ask(tacit.count(sex=[]))
        assert (everyone.value, nobody.value) == (N, 0)  # type: ignore[union-attr]
        assert everyone.source == nobody.source == "public"
        assert session.ask(tacit.weigh("sex", weights=[0.25, 0.25])).value == N / 4  # type: ignore[union-attr]


def test_a_cell_of_a_released_table_is_free_and_the_same_as_in_the_table(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        table = session.table("sex", "smoker")
        spent = session.spent
        for i, sex in enumerate(["F", "M"]):
            for j, smoker in enumerate([False, True, None]):
                cell = session.ask(tacit.count(sex=sex, smoker=smoker))
                assert isinstance(cell, tacit.Answer)
                assert (cell.value, cell.source) == (table.values[i, j], "hypothesis")
        assert session.spent == spent


def test_batches_share_a_commit_and_count_duplicates_once(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        before = len(list(session._ledger.log.lines()))
        answers = session.ask_many([*SAME[:3], tacit.count(smoker=True), "SELECT COUNT(*) FROM data"])
        assert [a.source for a in answers] == ["measured", "repeat", "repeat", "measured", "public"]
        entries = list(session._ledger.log.lines())[before:]
        assert [entry.kind for entry in entries] == ["intent", "measured", "measured"]
        assert sum(a.cost.atoms for a in answers) == session.spent.atoms


@pytest.mark.real_noise
def test_error_bars_cover(tmp_path: Path) -> None:
    # 400 measured answers at 90 %: at least 318 must cover (fewer: a chance of 1.4e-10), and not all, which would mean
    # bars that are too wide (noise of scale 10: each covers with a chance of 0.912 at most, and all with one of 1e-16).
    truth = people()
    with start(tmp_path, questions=400, confidence=0.9, budget=tacit.Budget(epsilon=40.0, delta=0.0)) as session:
        questions, truths = [], []
        for sex in (["F"], ["M"], ["F", "M"]):
            for low in range(0, 100, 10):
                for high in range(low + 9, 100, 10):
                    for smoker in (True, False, None):
                        if len(questions) < 400 and not (len(sex) == 2 and (low, high) == (0, 99)):
                            questions.append(tacit.count(sex=sex, age=(low, high), smoker=smoker))
                            chosen = truth.sex.isin(sex) & truth.age.between(low, high)
                            chosen &= truth.smoker.isna() if smoker is None else truth.smoker == smoker
                            truths.append(int(chosen.sum()))
        answers = session.ask_many(questions)
    covered = sum(abs(a.value - t) <= a.error for a, t in zip(answers, truths, strict=True))
    assert 318 <= covered < 400


def test_exhaustion_spends_nothing_and_known_answers_stay_free(tmp_path: Path) -> None:
    with start(tmp_path, questions=2) as session:
        session.ask(tacit.count(age=(0, 9)))
        session.ask(tacit.count(age=(10, 19)))
        left = session.left
        with pytest.raises(tacit.BudgetExhausted, match=r"costs .* % of the budget and .* left\. Nothing was spent\.$"):
            session.ask(tacit.count(age=(20, 29)))
        with pytest.raises(tacit.BudgetExhausted):
            session.ask_many([tacit.count(age=(0, 9)), tacit.count(age=(30, 39))])
        assert session.left == left
        assert session.ask(tacit.count(age=(0, 9))).source == "repeat"
        assert session.cost_at_most(tacit.count(age=(0, 9))).atoms == 0
        assert session.cost_at_most("SELECT sex, COUNT(*) FROM data GROUP BY sex").atoms > 0


def test_exactly_as_many_questions_as_declared_for_any_number(tmp_path: Path) -> None:
    for questions in (1, 3, 7):
        folder = tmp_path / str(questions)
        folder.mkdir()
        with start(folder, questions=questions, budget=tacit.Budget(epsilon=1.0, delta=0.0)) as session:
            for i in range(questions):
                session.ask(tacit.count(age=(10 * i, 10 * i + 9)))
            with pytest.raises(tacit.BudgetExhausted):
                session.ask(tacit.count(age=(90, 99)))


BAD: list[Any] = [
    "SELECT COUNT(*) FROM data WHERE agee = 1",
    "SELECT COUNT(*) FROM data WHERE age = 120",
    "SELECT COUNT(*) FROM data WHERE age BETWEEN 20 AND 35",
    "DROP TABLE data",
    "",
    tacit.count(sex="X"),
    tacit.count(nothing=1),
    tacit.count(age=(0, 200)),
    tacit.count(age=(5, 9)),
    tacit.weigh("age", weights=[math.nan] * 10),
    tacit.weigh("age", weights=[2.0] * 10),
    tacit.weigh("age", weights=[0.5] * 3),
    tacit.weigh("age", weights="abc"),
    None,
    42,
    b"SELECT COUNT(*) FROM data",
    ["SELECT COUNT(*) FROM data"],
]


@pytest.mark.parametrize("mechanism", ["direct", "histogram"])
def test_bad_questions_cost_nothing_and_say_so(tmp_path: Path, mechanism: str) -> None:
    with start(tmp_path, mechanism=mechanism) as session:
        for question in BAD:
            with pytest.raises(tacit.InvalidQuery) as caught:
                session.ask(question)
            assert str(caught.value).endswith("Nothing was spent.")
            with pytest.raises(tacit.InvalidQuery):
                session.ask_many([SAME[0], question])
            with pytest.raises(tacit.InvalidQuery):
                session.cost_at_most(question)
        for names in ((), ("sex", "sex"), ("nothing",), (1,)):
            with pytest.raises(tacit.InvalidQuery):
                session.table(*names)  # type: ignore[arg-type]
        with pytest.raises(tacit.InvalidQuery):
            session.table("age", where=tacit.weigh("sex", weights=[0.5, 1.0]))
        for batch in ([], "SELECT COUNT(*) FROM data", None):
            with pytest.raises(tacit.InvalidQuery):
                session.ask_many(batch)  # type: ignore[arg-type]
        assert session.spent.atoms == 0
        assert session.history == []


def test_a_large_batch_is_answered_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "MAX_COMMIT", 100)  # 10,000 are a hundred times the work, and the same two parts
    seen, answer_many = list[int](), Session.answer_many
    monkeypatch.setattr(Session, "answer_many", lambda self, asks: seen.append(len(asks)) or answer_many(self, asks))
    with start(tmp_path, mechanism="direct") as session:
        answers = session.ask_many([SAME[0]] * 100 + [SAME[0], tacit.count(sex="M")])
        assert seen == [100, 2]
        assert len(answers) == 102
        assert len({answer.value for answer in answers[:101]}) == 1
        assert [place for place, answer in enumerate(answers) if answer.cost.atoms] == [0, 101]
        with pytest.raises(tacit.InvalidQuery):
            session.ask_many([tacit.count(age=(0, 19))] * 100 + [BAD[0]])
        assert len(session.history) == 2  # all are checked before any is asked


@pytest.mark.parametrize("mechanism", ["direct", "iterative", "histogram"])
def test_statistics_are_answered_under_every_mechanism(tmp_path: Path, mechanism: str) -> None:
    with start(tmp_path, mechanism=mechanism, start=False) as session:
        asked = tacit.stump("age", predicts="sex")
        price = session.dry_run(asked)
        assert not price.known
        answer = session.ask(asked)  # though the session is not started: it is bought by itself
        assert isinstance(answer, tacit.Answer)
        assert answer.source == "measured"
        assert answer.cost == price.cost_at_most == session.spent
        assert abs(answer.value - session._curator._records.answer(asked.bind(DOMAIN))) <= answer.bars[0].width
        again = session.ask("SELECT STUMP(age, sex) FROM data")
        assert (again.value, again.source, again.cost.atoms) == (answer.value, "repeat", 0)  # type: ignore[union-attr]
        assert session.dry_run(asked).known
        both = session.ask_many(["SELECT QUANTILE_DISTANCE(age, 0.5, 0, 39) FROM data"])
        assert both[0].cost == answer.cost
        if mechanism != "direct":
            session.start()
            assert session.ask(tacit.count(sex="F")).bars  # type: ignore[union-attr]
            assert session.ask(asked).value == answer.value  # type: ignore[union-attr]


def test_the_owners_statistics_are_asked_by_their_names(tmp_path: Path) -> None:
    @tacit.statistic("fullest decade", DOMAIN, "age", arguments=[(1,), (2,)])
    def fullest(tables: Any, place: int) -> Any:
        return np.sort(tables, axis=1)[:, -place]

    with start(tmp_path, mechanism="direct") as session:
        answer = session.ask(fullest(1))
        forms = (
            "SELECT FULLEST_DECADE(1) FROM data",
            "SELECT fullest_decade(age, 1) FROM data",
            "SELECT STATISTIC('fullest decade', 1) FROM data",
        )
        for sql in forms:
            assert session.ask(sql).value == answer.value  # type: ignore[union-attr]
        assert question.read({"statistic": "fullest decade", "arguments": [1]}, DOMAIN).ask == Stat(fullest(1))
        for bad in ("FULLEST_DECADE(3)", "FULLEST_DECADE(sex, 1)", "STATISTIC('emptiest')", "STATISTIC()"):
            with pytest.raises(tacit.InvalidQuery):
                session.ask(f"SELECT {bad} FROM data")
        assert session.spent == answer.cost  # type: ignore[union-attr]


def test_rows_are_chosen_by_sql_words_too(tmp_path: Path) -> None:
    with start(tmp_path, mechanism="direct") as session:
        table = session.table("age", where="sex = 'F'")
        for same in (tacit.count(sex="F"), "SELECT COUNT(*) FROM data WHERE sex = 'F'", "not sex <> 'F'"):
            assert np.array_equal(session.table("age", where=same).values, table.values)
        spent = session.spent
        for bad in ("sex = 'F' GROUP BY sex", "sex = 'F'; SELECT COUNT(*) FROM data", "", "sex", "hue = 1", "COUNT(*)"):
            with pytest.raises(tacit.InvalidQuery):
                session.table("age", where=bad)
        with pytest.raises(tacit.InvalidQuery, match="line 1, column 11"):  # of what was written, not of what it is in
            session.table("age", where="sex = 'F' || 'G'")
        assert session.spent == spent


def test_a_domain_may_be_given_as_a_dict(tmp_path: Path) -> None:
    given = {"sex": tacit.category(["F", "M"])}
    rows = people()
    for number, form in enumerate((given, {"sex": {"kind": "category", "values": ["F", "M"]}})):
        with start(tmp_path, data=rows, domain=form, ledger=tmp_path / f"{number}.tacit") as session:
            assert session.domain.key == tacit.Domain(given).key
    for bad, words in (({"a": 1}, "a is declared with"), ({}, "maps 1 to"), (7, "a dict like"), (None, "a dict like")):
        with pytest.raises(tacit.TacitError, match=words):
            start(tmp_path, data=rows, domain=bad, ledger=tmp_path / "bad.tacit")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"questions": 0}, tacit.ConfigError),
        ({"questions": 1.5}, tacit.ConfigError),
        ({"confidence": 95}, tacit.ConfigError),
        ({"confidence": math.nan}, tacit.ConfigError),
        ({"mechanism": "magic"}, tacit.ConfigError),
        ({"budget": 1.0}, tacit.ConfigError),
        ({"domain": "nowhere.toml"}, tacit.ConfigError),
        ({"data": "nowhere.csv"}, tacit.DataError),
        ({"data": 7}, tacit.DataError),
        ({"data": people().drop(columns="age")}, tacit.DataError),
        ({"data": people().assign(age=200)}, tacit.DataError),
        ({"data": people().head(0)}, tacit.DataError),
        ({"budget": tacit.Budget(epsilon=1e-9, delta=1e-9)}, tacit.InvalidBudget),
        ({"ledger": "no/such/folder/l.tacit"}, tacit.LedgerError),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(tmp_path: Path, changes: Any, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        start(tmp_path, **changes)
    assert str(caught.value).endswith("Nothing was spent.")
    assert caught.value.__cause__ is None
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"data": people().assign(sex="F")}, "data"),
        ({"budget": tacit.Budget(epsilon=6.0, delta=1e-9)}, "budget"),
        ({"mechanism": "histogram"}, "mechanism"),
        ({"questions": 11}, "questions"),
        ({"domain": DOMAIN.project(["sex", "age"])}, "it has "),
    ],
)
def test_a_ledger_of_something_else_is_refused(tmp_path: Path, changes: Any, named: str) -> None:
    start(tmp_path).close()
    with pytest.raises(tacit.LedgerError, match=named):
        start(tmp_path, **changes)


def test_a_planner_that_changes_its_mind_does_not_lock_the_owner_out(tmp_path: Path, monkeypatch: Any) -> None:
    auto = {"mechanism": "auto", "questions": None, "domain": DOMAIN, "budget": tacit.Budget(epsilon=1.0, delta=1e-9)}
    planned = SimpleNamespace(
        mechanism="iterative", reason="it is planned.", options={"questions": 10_000, "warm": 0.5, "hits": 7}
    )
    monkeypatch.setattr("tacit.release.plan.plan", lambda **_: planned)
    with start(tmp_path, **auto) as session:
        first = session.ask(SAME[0])
        choice, spent = session.choice, session.spent
    assert choice.settings == IterativeSettings(warm=0.5, hits=7, questions=10_000)

    def another_opinion(**_: object) -> None:
        raise AssertionError("what the ledger was made with is not planned again")

    monkeypatch.setattr("tacit.release.plan.plan", another_opinion)
    named = {"mechanism": "iterative", "warm": 0.5, "hits": 7, "questions": 10_000, "confidence": 0.95}
    for again in ({}, {"mechanism": "iterative"}, named):
        with start(tmp_path, **auto | again) as session:
            assert session.choice == choice
            assert session.ask(SAME[0]).value == first.value  # type: ignore[union-attr]
            assert session.spent == spent


@pytest.mark.parametrize(
    ("made", "named", "words"),
    [
        ({"mechanism": "iterative", "warm": 0.5}, {"warm": 0.25}, "warm is 0.5, not 0.25"),
        ({"mechanism": "iterative"}, {"mechanism": "median"}, "mechanism is iterative, not median"),
        ({"mechanism": "iterative"}, {"confidence": 0.9}, "confidence is 0.95, not 0.9"),
        ({"mechanism": "iterative"}, {"hits": 9, "questions": 11}, "questions is 10, not 11; hits is 200, not 9"),
        ({"mechanism": "median"}, {"seed": 3, "records": 999}, "records is 50000, not 999; seed is 0, not 3"),
        ({"mechanism": "median", "warm": 0}, {"warm": 0.7}, "warm is 0.0, not 0.7"),
        (
            {"mechanism": "median", "sampler": "fractions"},
            {"sampler": "databases"},
            "sampler is fractions, not databases",
        ),
        (
            {},
            {"budget": tacit.Budget(epsilon=6.0, delta=1e-9)},
            "budget is epsilon = 5, delta = 1e-09, not epsilon = 6",
        ),
    ],
)
def test_a_setting_that_is_not_the_ledgers_is_refused_with_both_values(
    tmp_path: Path, made: Any, named: Any, words: str
) -> None:
    start(tmp_path, **made).close()
    start(tmp_path, **made | {"questions": None, "mechanism": "auto"}).close()
    with pytest.raises(tacit.LedgerError) as caught:
        start(tmp_path, **made | named)
    assert words in str(caught.value)
    assert "another ledger" not in str(caught.value)


def test_the_order_of_rows_does_not_matter_to_the_ledger(tmp_path: Path) -> None:
    start(tmp_path).close()
    start(tmp_path, data=people().sample(frac=1, random_state=1)).close()


def test_restoring_an_old_ledger_is_refused_until_the_owner_says_so(tmp_path: Path) -> None:
    path = tmp_path / "people.tacit"
    with start(tmp_path) as session:
        session.ask(tacit.count(sex="F"))
    old = path.read_bytes()
    with start(tmp_path) as session:
        session.ask(tacit.count(age=(0, 9)))
        spent = session.spent
    for name in ("people.tacit-wal", "people.tacit-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    path.write_bytes(old)
    with pytest.raises(tacit.LedgerError, match="accept"):
        start(tmp_path)
    with start(tmp_path, accept_rollback="disk failure") as session:
        assert spent <= session.spent


def test_the_histogram_is_bought_once_and_answers_everything(tmp_path: Path) -> None:
    with start(tmp_path, mechanism="histogram") as session:
        first = session.ask(tacit.count(sex="F"))
        assert first.source == "measured"
        assert session.left.atoms == 0
        table = session.table("sex", "age")
        women = session.table("age", where=tacit.count(sex="F"))
        assert women.values.tolist() == table.values[0].tolist()
        assert session.ask(tacit.count(sex="F")).value == first.value  # type: ignore[union-attr]
        wide = session.ask(~tacit.count(sex="F", age=(0, 9)))
        narrow = session.ask(tacit.count(sex="F", age=(0, 9)))
        assert isinstance(wide, tacit.Answer)
        assert isinstance(narrow, tacit.Answer)
        assert wide.value + narrow.value == N
        assert wide.error == narrow.error
    with start(tmp_path, mechanism="histogram") as session:
        assert session.ask(tacit.count(sex="F")).value == first.value  # type: ignore[union-attr]


def test_auto_chooses_by_public_sizes_alone() -> None:
    pure, approximate = tacit.Budget(epsilon=1.0, delta=0.0), tacit.Budget(epsilon=1.0, delta=1e-9)
    assert choose("auto", DOMAIN, approximate, 1000, {"questions": 3}).mechanism == "direct"  # 60 cells
    assert choose("auto", DOMAIN, approximate, 1000, {"questions": 1000}).mechanism == "histogram"
    assert choose("auto", DOMAIN, pure, 1000, {"questions": 2}).mechanism == "direct"
    assert choose("auto", DOMAIN, pure, 1000, {}).mechanism == "histogram"
    adult = tacit.Domain({f"a{i}": tacit.integer(0, 7) for i in range(7)})
    warm = choose("auto", adult, approximate, 50_000, {})
    assert warm.mechanism == "iterative"
    assert 0.5 <= warm.settings.warm < 1  # type: ignore[attr-defined]
    named = choose("auto", adult, approximate, 50_000, {"hits": 3, "warm": 0.25})
    assert named.settings == IterativeSettings(hits=3, warm=0.25)
    assert choose("iterative", adult, approximate, 50_000, {}).settings == IterativeSettings(warm=0.0)
    large = tacit.Domain({f"a{i}": tacit.integer(0, 99) for i in range(15)})
    assert large.size == 10**30
    assert choose("auto", large, approximate, 10**6, {"questions": 10**6}).mechanism == "iterative"
    wide = tacit.Domain({f"a{i}": tacit.integer(0, 999) for i in range(10)})
    assert choose("auto", wide, pure, 1000, {"questions": 10**9}).mechanism == "direct"


def test_a_domain_of_ten_to_the_thirty_works(tmp_path: Path) -> None:
    domain = tacit.Domain({f"a{i}": tacit.integer(0, 99) for i in range(15)})
    rows = pd.DataFrame({f"a{i}": [i, i + 1, i + 2] for i in range(15)})
    with start(
        tmp_path, data=rows, domain=domain, budget=tacit.Budget(epsilon=1000.0, delta=0.0), questions=1
    ) as session:
        answer = session.ask(tacit.count(**{f"a{i}": i for i in range(15)}))
    assert answer.value == 1  # type: ignore[union-attr]


def test_a_release_never_changes_an_answer_already_given(tmp_path: Path) -> None:
    # Catches a stored measurement that takes the place of what an earlier table had told.
    with start(tmp_path, questions=20) as session:
        session.table("age", "sex")
        before = session.table("age").values.tolist(), session.ask(tacit.count(age=(0, 9))).to_dict()["value"]
        session.release([["age"], ["sex"]], rounds=2, share=0.3, alpha=0.0001)
        session.release([tacit.count(age=(0, 9)), tacit.count(sex="F")], rounds=2, share=0.3, alpha=0.0001)
        after = session.table("age").values.tolist(), session.ask(tacit.count(age=(0, 9))).to_dict()["value"]
        assert after == before


def test_an_error_in_the_middle_says_what_stays_spent(tmp_path: Path) -> None:
    with start(tmp_path, questions=20) as session:
        with pytest.raises(tacit.InvalidQuery, match="Nothing was spent"):
            session.release([tacit.stump("age", predicts="sex"), tacit.count(sex="F")], rounds=2, share=0.5)
        session.release([["age"]], rounds=1, share=0.6, alpha=0.0001)
        with pytest.raises(tacit.BudgetExhausted) as caught:
            session.release([["age", "sex"], ["age", "smoker"]], rounds=2, share=0.7, alpha=0.0001)
        assert "stays spent" in str(caught.value)
        assert "Nothing was spent" not in str(caught.value)
