"""People with several rows: which rows of theirs are counted, that it is the same everywhere, and what follows."""

from __future__ import annotations

import decimal
import hashlib
import json
import math
import sys
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit.errors import ConfigError, DataError, LedgerError
from tacit.exact.price import MOST_PER_PERSON, Sensitivity
from tacit.load import open_source
from tacit.model.attribute import category, integer
from tacit.model.domain import Domain
from tacit.model.workload import histogram
from tacit.release.online_terms import Terms
from tacit.release.recall import expected_noise
from tacit.trusted import cells as cells_module
from tacit.trusted.cells import read_records

sys.path.insert(0, str(Path(__file__).parents[1] / "load"))
from test_bins import cells

DOMAIN = Domain({"age": integer(0, 99, width=10), "sex": category(["F", "M"], missing="unknown")})
SHIFT = DOMAIN.slots[1].shift
Row = tuple[Any, int, str | None]  # id, age, sex


def word(row: Row) -> int:
    return row[1] // 10 + (["F", "M", None].index(row[2]) << SHIFT)


def spelled(identity: Any) -> str:
    """What an id adds to the digest: text without blanks at its end, a number's whole part if it is not too large."""
    if isinstance(identity, str):
        return identity.rstrip(" ")
    return str(math.floor(float(identity)) if abs(float(identity)) < 2**62 else 0)


def names_nobody(identity: Any) -> bool:
    if isinstance(identity, str):
        return not identity.rstrip(" ")
    return identity is None or identity != identity


def kept(rows: Sequence[Row], each: int) -> Counter[int]:
    """The definition, in Python: the first rows of each person by 12 digits of MD5(id : word), then by the word."""
    people: dict[Any, list[int]] = defaultdict(list)
    for row in rows:
        if not names_nobody(row[0]):
            people[row[0].rstrip(" ") if isinstance(row[0], str) else row[0]].append(word(row))
    found: Counter[int] = Counter()
    for identity, words in people.items():
        digest = {w: hashlib.md5(f"{spelled(identity)}:{w}".encode()).hexdigest()[:12] for w in words}
        found.update(sorted(words, key=lambda w: (digest[w], w))[:each])
    return found


def loaded(data: object, each: int, table: str | None = None) -> Counter[int]:
    held = read_records(open_source(data, table), DOMAIN, person="id", rows_per_person=each)
    assert held.rows_per_person == each
    return Counter({age + (sex << SHIFT): count for (age, sex), count in cells(held).items()})


def arrow(rows: Sequence[Row], kind: pa.DataType) -> pa.Table:
    columns = list(zip(*rows, strict=True))
    return pa.table(
        {"id": pa.array(columns[0], kind), "age": list(columns[1]), "sex": pa.array(columns[2], pa.string())}
    )


# Ids that engines might take for one another, or for missing; text in several scripts; one person with many rows.
TEXT_IDS = ["a", "A", "a ", " a", "", "  ", None, "ä", "日本", "a:1", "'", "\\", "${x}", "007", "7", "NULL"]
WHOLE_IDS = [0, 1, -1, 2**31, 2**53, 2**53 + 1, 2**62, -(2**62) - 1, 2**63 - 1, None]
REAL_IDS = [0.0, -0.0, 1.5, 1.25, -1.5, 1e300, math.inf, -math.inf, math.nan, None]


def rows_of(ids: Sequence[Any], seed: int = 3) -> list[Row]:
    rng = np.random.default_rng(seed)
    sexes = ["F", "M", None]
    found: list[Row] = []
    for identity in ids:
        for _ in range(int(rng.integers(1, 9))):
            found.append((identity, int(rng.integers(0, 100)), sexes[int(rng.integers(0, 3))]))
    return found


IDS = {"text": (TEXT_IDS, pa.string()), "whole": (WHOLE_IDS, pa.int64()), "real": (REAL_IDS, pa.float64())}


@pytest.mark.parametrize("each", [1, 2, 3, 50])
@pytest.mark.parametrize("kind", IDS)
def test_awkward_ids(kind: str, each: int) -> None:
    ids, column = IDS[kind]
    rows = rows_of(ids)
    assert loaded(arrow(rows, column), each) == kept(rows, each)


people = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 3).map(lambda a: 10 * a), st.sampled_from(["F", "M", None])),
    min_size=1,
    max_size=14,
)


@settings(max_examples=15)
@given(others=people, before=people, after=people, each=st.integers(1, 3))
def test_one_person_changes_no_more_kept_rows_than_declared(
    others: list[Row], before: list[Row], after: list[Row], each: int
) -> None:
    # The guarantee itself: whatever the rows of person 9 are, and however many, the others' kept rows stay.
    ours = Counter(loaded(arrow(others, pa.int64()), each))
    for rows in (before, after):
        whole = loaded(arrow([*others, *((9, *row[1:]) for row in rows)], pa.int64()), each)
        assert not ours - whole
        assert (whole - ours).total() == min(each, len(rows))


def whoever(coded: str, words: Sequence[str], rows_per_person: int, *_: object) -> str:
    """A mistake: the first rows of the table, not of each person. As many as should be, where it is tried below."""
    placed = f"SELECT w0, ROW_NUMBER() OVER (ORDER BY MD5(CAST(w0 AS TEXT))) AS place FROM ({coded})"
    return f"SELECT w0 FROM ({placed}) WHERE place <= {3 * rows_per_person}"


def everything(coded: str, *_: object) -> str:
    """A mistake: no bound at all."""
    return f"SELECT w0 FROM ({coded})"


def of_nobody_too(*given: Any) -> tuple[str, str, str]:
    """A mistake: rows without an id are those of one more person, whoever they are."""
    p, _, stirred = IDENTITY(*given)
    return p, "TRUE", stirred


IDENTITY = cells_module._identity


@pytest.mark.parametrize(
    ("name", "mistake"), [("bounded", whoever), ("bounded", everything), ("_identity", of_nobody_too)]
)
def test_planted_mistakes_are_caught(name: str, mistake: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells_module, name, mistake)
    others: list[Row] = [(1, 10, "F"), (2, 20, "M"), (3, 30, "F"), (3, 40, "F")]
    more: list[Row] = [(9, 10 * i, "F") for i in range(10)]
    if mistake is of_nobody_too:  # whoever 9 is has rows that do not say so
        more = [(None if i < 5 else identity, age, sex) for i, (identity, age, sex) in enumerate(more)]
    if mistake is everything:
        with pytest.raises(DataError, match="not those of the table"):
            loaded(arrow(others + more, pa.int64()), 2)
        return
    ours, whole = (loaded(arrow(rows, pa.int64()), 2) for rows in (others, others + more))
    assert ours - whole or (whole - ours).total() > 2


def test_the_same_rows_from_every_kind_of_table(tmp_path: Path) -> None:
    rows = [row for row in rows_of(TEXT_IDS) if row[0] not in ("", "  ")]
    table = arrow(rows, pa.string())
    frame = table.to_pandas()
    expected = kept(rows, 2)
    duckdb.from_arrow(table).write_parquet(str(tmp_path / "p.parquet"))
    pd.DataFrame(frame).to_csv(tmp_path / "p.csv", index=False)
    with duckdb.connect(str(tmp_path / "p.duckdb")) as connection:
        connection.register("given", table)
        connection.execute("CREATE TABLE people AS SELECT * FROM given")
    assert loaded(str(tmp_path / "p.parquet"), 2) == expected
    assert loaded(str(tmp_path / "p.csv"), 2) == expected  # 007 and 7 are two people: an id is text in a CSV file
    assert loaded(str(tmp_path / "p.duckdb"), 2, "people") == expected
    assert loaded(frame, 2) == expected


def test_ids_of_other_types() -> None:
    numbers = rows_of([decimal.Decimal(2**64), decimal.Decimal("1.50"), decimal.Decimal("1.25")])
    assert loaded(arrow(numbers, pa.decimal128(38, 2)), 2) == kept(numbers, 2)
    relation = duckdb.sql("SELECT uuid() AS id, 20 AS age, 'F' AS sex FROM range(5)")
    assert loaded(relation, 1).total() == 5
    for column in (pa.array([True]), pa.array([uuid.uuid4().bytes]), pa.array([None]), pa.array([[1]])):
        with pytest.raises(DataError, match="told apart by text or by numbers"):
            loaded(pa.table({"id": column, "age": [1], "sex": ["F"]}), 2)


def test_an_attribute_may_be_the_person_too() -> None:
    held = read_records(
        open_source(pa.table({"age": [1, 1, 1, 2], "sex": ["F"] * 4})), DOMAIN, person="age", rows_per_person=2
    )
    assert held.rows == 3


def test_what_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    table = arrow([(None, 1, "F")], pa.int64())
    for given_, says in [
        ({"person": "nobody", "rows_per_person": 1}, "no column nobody"),
        ({"rows_per_person": 2}, "needs the column"),
        ({"person": "id", "rows_per_person": 0}, "from 1 to"),
        ({"person": "id", "rows_per_person": True}, "from 1 to"),
        ({"person": "id", "rows_per_person": MOST_PER_PERSON + 1}, "from 1 to"),
        ({"person": "", "rows_per_person": 1}, "name of a column"),
        ({"person": "id", "rows_per_person": 1}, "no rows that name a person"),
    ]:
        with pytest.raises(DataError, match=says):
            read_records(open_source(table), DOMAIN, **given_)  # type: ignore[arg-type]
    # Suggestions about too many cells come from the declared sizes alone.
    monkeypatch.setattr(cells_module, "MAX_HELD_CELLS", 1)
    said = set()
    for rows in (rows_of([1, 2, 3]), rows_of([4, 5, 6, 7], seed=8)):
        with pytest.raises(DataError, match=r"coarser bins or fewer attributes.*age \(10\), sex \(3\)") as error:
            loaded(arrow(rows, pa.int64()), 3)
        said.add(str(error.value))
    assert len(said) == 1


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_how_far_several_rows_move_what_one_row_moves(rows: int) -> None:
    assert Sensitivity(2, 2).times(rows) == Sensitivity(2 * rows, 2 * rows**2)
    assert Sensitivity(3, 5).times(1) == Sensitivity(3, 5)
    assert Sensitivity(0, 0).times(rows) == Sensitivity(0, 0)
    with pytest.raises(ValueError, match="cannot be replaced"):
        Sensitivity(1, 1).times(0)


# From here on: sessions. Three rows each for 4,000 people, of whom a few have more.

SMALL = Domain({"age": integer(0, 9), "sex": category(["F", "M"]), "hair": category(["red", "fair", "dark"])})
BUDGET = tacit.Budget(epsilon=1.0, delta=1e-9)
MECHANISMS: dict[str, dict[str, Any]] = {
    "direct": {"mechanism": "direct", "questions": 20},
    "histogram": {"mechanism": "histogram"},
    "iterative": {"mechanism": "iterative", "hits": 5, "questions": 100, "warm": 0.5},
    "pure": {"mechanism": "iterative", "hits": 3, "questions": 100, "budget": tacit.Budget(epsilon=3.0, delta=0.0)},
    "median": {"mechanism": "median", "warm": 0, "hits": 3, "questions": 100, "databases": 10, "records": 50},
}


def visits() -> pd.DataFrame:
    rng = np.random.default_rng(11)
    return pd.DataFrame(
        {
            "patient": np.concatenate([np.repeat(np.arange(4000), 3), np.arange(50)]),
            "age": rng.integers(0, 10, 12_050),
            "sex": rng.choice(["F", "M"], 12_050, p=[0.8, 0.2]),
            "hair": rng.choice(["red", "fair", "dark"], 12_050),
        }
    )


def opened(folder: Path, name: str, **more: Any) -> tacit.Session:
    options = {"data": visits(), "domain": SMALL, "budget": BUDGET, "person": "patient", "rows_per_person": 3}
    where = {"ledger": folder / f"{name}.tacit", "anchor": folder / "anchor.sqlite"}
    return tacit.open(start=True, **(options | where | MECHANISMS[name] | more))


def ask_some(session: tacit.Session) -> None:
    for sql in ("sex = 'F'", "age < 3", "age < 3 AND hair = 'red'", "sex = 'M' AND hair = 'dark'"):
        session.ask(f"SELECT COUNT(*) FROM data WHERE {sql}")
    session.table("sex", "hair")


@pytest.mark.parametrize("name", MECHANISMS)
def test_what_is_published_can_be_verified_and_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / "public.jsonl"
    with opened(tmp_path, name) as session:
        assert (session.rows, session.rows_per_person) == (12_000, 3)
        ask_some(session)
        tacit.publish(session, path)
        assert tacit.verify(path, session=session).spent == session.spent
        again = session.ask("SELECT COUNT(*) FROM data WHERE sex = 'F'")
    reading = tacit.read(path)
    assert reading.rows_per_person == 3
    assert reading.ask("SELECT COUNT(*) FROM data WHERE sex = 'F'").value == again.value
    # A file that claims fewer rows a person claims prices that its noise does not have.
    lines = path.read_text().splitlines()[:-1]
    head = json.loads(lines[0])
    assert head["rows_per_person"] == 3
    for claim in ({}, {"rows_per_person": 2}, {"rows_per_person": 1}, {"rows_per_person": 0}, {"rows_per_person": 3.0}):
        changed = {k: v for k, v in head.items() if k != "rows_per_person"} | claim
        text = "\n".join([json.dumps(changed, sort_keys=True, separators=(",", ":")), *lines[1:]]) + "\n"
        digest = hashlib.sha256(text.encode()).hexdigest()
        path.write_text(f'{text}{{"sha256":"{digest}"}}\n')
        with pytest.raises(ConfigError, match=r"costs|terms are wrong"):
            tacit.verify(path)


@pytest.mark.parametrize("name", ["direct", "iterative", "median"])
def test_noise_is_as_many_times_as_wide_and_planned_so(name: str, tmp_path: Path) -> None:
    # The same loss buys nine times the variance. Gates have the scales that their thresholds were planned with.
    one_each = visits().drop_duplicates("patient")
    with (
        opened(tmp_path, name, questions=100) as three,
        opened(tmp_path / "..", name, data=one_each, rows_per_person=1, questions=100, ledger=tmp_path / "one.tacit",
               anchor=tmp_path / "other.sqlite") as one,
    ):  # fmt: skip
        loss = three.total.split(10)
        for question in (tacit.count(sex="F").bind(SMALL), histogram(SMALL)):
            wide, narrow = (expected_noise(s._public, question, loss).scale ** 2 for s in (three, one))
            between = 0.1 if loss.measure == "gdp" else 0.0  # whole noise is worth a tenth of a step² less
            assert wide - between == pytest.approx(9 * (narrow - between), rel=1e-12)
        if name != "direct":
            wide_terms, narrow_terms = three._mechanism.terms, one._mechanism.terms
            assert wide_terms.threshold_scale == pytest.approx(3 * narrow_terms.threshold_scale, rel=1e-12)
            gate = three._curator.open_gate(10.0, wide_terms.gate_loss, owner="test")
            assert gate.terms.threshold_scale == wide_terms.threshold_scale
            assert gate.terms.comparison_scale == wide_terms.comparison_scale


def test_terms_are_those_of_one_row_stretched() -> None:
    loss = tacit.Loss.of("rho", 0.1)
    one = Terms.of(loss, hits=5, confidence=0.95)
    many = Terms.of(loss, hits=5, confidence=0.95, rows_per_person=4)
    assert many.threshold(1000) == pytest.approx(4 * one.threshold(1000), rel=1e-12)
    assert many.gate_loss == one.gate_loss


def test_plans_know_of_people() -> None:
    domain = Domain({f"a{i}": integer(0, 9) for i in range(5)})
    one, three = (
        tacit.plan(rows=100_000, domain=domain, budget=BUDGET, questions=1000, rows_per_person=m) for m in (1, 3)
    )
    for narrow, wide in zip(one.forecasts, three.forecasts, strict=True):
        assert narrow.largest is not None
        assert wide.largest is not None
        assert 1.5 * narrow.largest < wide.largest < 3.01 * narrow.largest
        assert narrow.promised is not None
        assert wide.promised is not None
        assert narrow.mean is not None
        assert wide.mean is not None
        assert wide.mean > 2 * narrow.mean
        if wide.mechanism == "iterative":  # some of its error is not noise: what no pair of attributes shows
            assert wide.promised > 1.5 * narrow.promised
        else:
            assert wide.promised == pytest.approx(3 * narrow.promised, rel=0.01)
    assert "3 rows a person" in three.title
    assert "a person" not in one.title
    with pytest.raises(ConfigError, match="rows_per_person"):
        tacit.plan(rows=100, domain=domain, budget=BUDGET, questions=10, rows_per_person=0)


def test_the_ledger_remembers_the_person_and_the_bound(tmp_path: Path) -> None:
    with opened(tmp_path, "direct") as session:
        session.ask("SELECT COUNT(*) FROM data WHERE sex = 'F'")
    with opened(tmp_path, "direct") as session:
        assert session.ask("SELECT COUNT(*) FROM data WHERE sex = 'F'").cost.atoms == 0
    for other, differs in [
        ({"rows_per_person": 4}, "data and rows and rows_per_person"),
        ({"rows_per_person": 2}, "data and rows and rows_per_person"),
        ({"person": None, "rows_per_person": None}, "data and person and rows and rows_per_person"),
    ]:
        with pytest.raises(LedgerError, match=f"other terms: {differs}"):
            opened(tmp_path, "direct", **other)
    for half in ({"person": None}, {"rows_per_person": None}):
        with pytest.raises(ConfigError, match="together"):
            opened(tmp_path, "direct", **half)


def test_ledgers_and_files_where_a_row_is_the_unit_are_as_before(tmp_path: Path) -> None:
    rows: dict[str, Any] = {"person": None, "rows_per_person": None}
    with opened(tmp_path, "direct", **rows) as session:
        session.ask("SELECT COUNT(*) FROM data WHERE sex = 'F'")
        bound = session._ledger.log.identity.terms
        tacit.publish(session, tmp_path / "rows.jsonl")
    assert not {"person", "rows_per_person"} & set(bound)
    assert "rows_per_person" not in (tmp_path / "rows.jsonl").read_text()
    assert tacit.verify(tmp_path / "rows.jsonl").measured == 1
    with pytest.raises(LedgerError, match="other terms: data and person and rows and rows_per_person"):
        opened(tmp_path, "direct")


def test_in_a_configuration_file(tmp_path: Path) -> None:
    from tacit.config import read_config

    text = '[data]\nsource = "visits.csv"\n{}\n[budget]\nepsilon = 1.0\ndelta = 0\n[session]\nledger = "l.tacit"\n'
    text += '[domain.sex]\nkind = "category"\nvalues = ["F", "M"]\n'
    path = tmp_path / "tacit.toml"
    path.write_text(text.format('person = "patient"\nrows_per_person = 3'))
    assert dict(read_config(path).options) == {"person": "patient", "rows_per_person": 3}
    for half in ('person = "patient"', "rows_per_person = 3"):
        path.write_text(text.format(half))
        with pytest.raises(ConfigError, match="or neither"):
            read_config(path)
    path.write_text(text.format('person = "patient"\nrows_per_person = "3"'))
    with pytest.raises(ConfigError, match="a whole number"):
        read_config(path)
