"""What reading a published file may cost: all entries together, in steps by the size of the file, before the work."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import tacit
from forgery import resealed
from tacit.cli import main
from tacit.model.budget import Loss
from tacit.model.factor import Factor, _projections, irreducible, write_weights
from tacit.model.query import MOST_READ, Query, query_key
from tacit.model.request import Declared
from tacit.public import quick, work
from tacit.public.quick import QuickJudge
from tacit.public.work import MADE, MOST_READ_STEPS, PER_BYTE, TooMuch, Work, steps_of
from tacit.serve.served_data import Replica
from tacit.store.chain import Line, canonical

BINS, NAMES = 2**17, ("u", "v")
DOMAIN = tacit.Domain({name: tacit.integer(0, BINS - 1) for name in NAMES} | {"w": tacit.integer(0, 9)})


def told(seq: int, question: dict[str, Any], key: str) -> Line:
    body = canonical({"bars": [], "note": "", "question": question, "told": 1})
    return Line(seq, "told", key, None, 0, 0, body, "2026-01-01T00:00:00.000+00:00", "0" * 64)


def wide(seq: int) -> Line:
    """A free answer about two attributes of 2^17 values, in some hundred characters."""
    runs = [BINS // 4 + seq, 1000, BINS - BINS // 4 - seq - 1000]
    factors = [{"scope": [name], "shape": [BINS], "unit": 1, "weights": runs} for name in NAMES]
    question = {"complement": False, "factors": factors, "kind": "query"}
    return told(seq, question, query_key(",".join(map(canonical, factors)).encode(), complement=False))


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A file of ten such answers, and how it looks to somebody who has no more steps than four of them take."""
    data = pd.DataFrame({name: [1, 2] for name in DOMAIN.sizes})
    settings: dict[str, Any] = {"data": data, "domain": DOMAIN, "budget": tacit.Budget(epsilon=1.0)}
    with tacit.open(**settings, ledger=tmp_path / "l.tacit", mechanism="direct") as session:
        tacit.publish(session, tmp_path / "p.json")
    header, last = (json.loads(line) for line in (tmp_path / "p.json").read_text().splitlines())
    made = [wide(seq) for seq in range(1, 11)]
    entries = [{name: getattr(line, name) for name in line.__struct_fields__} for line in made]
    resealed(tmp_path / "p.json", [header, *entries, last])
    return tmp_path / "p.json"


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "MOST_READ_STEPS", 4 * len(NAMES) * BINS * MADE)
    monkeypatch.setattr(work, "PER_BYTE", 0)


def serve(path: Path, **more: Any) -> None:
    Replica.open("p", path, **more).close()


READERS: tuple[Callable[..., object], ...] = (tacit.read, tacit.verify, serve)


@pytest.mark.parametrize("read", READERS)
def test_all_entries_together_take_no_more_steps_than_a_file_may(
    hostile: Path, four: None, read: Callable[..., object]
) -> None:
    with pytest.raises(tacit.ConfigError, match=r"entry 5 takes about 1,048,576 steps, and 0 of 4,194,304") as refused:
        read(hostile)
    assert "unlimited=True, or --unlimited" in str(refused.value)
    read(hostile, unlimited=True)  # every entry of it is sound


def test_a_larger_file_has_more_steps(hostile: Path, four: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "PER_BYTE", -(-6 * len(NAMES) * BINS * MADE // hostile.stat().st_size))
    assert tacit.verify(hostile).told == 10


def test_the_commands_have_the_option_that_the_refusal_names(hostile: Path, four: None) -> None:
    def ran(*words: str) -> tuple[int, str]:
        found = CliRunner().invoke(main, [*words])
        return found.exit_code, found.output

    ask = "ask", "SELECT COUNT(*) FROM data", "--published", str(hostile)
    for command in (("verify", str(hostile)), ask):
        code, output = ran(*command)
        assert code != 0
        assert "--unlimited" in " ".join(output.split())
        assert ran(*command, "--unlimited")[0] == 0
    for command in (("status", "--unlimited"), ("serve", "--unlimited")):
        assert "is for --published" in ran(*command)[1]


def test_counts_on_wide_attributes_are_judged_without_making_them(
    hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unmade(form: dict[str, Any]) -> Query:
        raise AssertionError("a question was made")

    monkeypatch.setattr(Query, "from_dict", unmade)
    assert tacit.verify(hostile).told == 10


def test_a_wide_count_that_could_not_be_read_again_is_not_waved_through(monkeypatch: pytest.MonkeyPatch) -> None:
    declared = Declared(DOMAIN, 2, 1, Loss("gdp", 10**12))
    # Somebody will make it, for a report or for an answer.
    assert QuickJudge(declared).judged([wide(1)]) == [2 * BINS * MADE] == [steps_of(wide(1), DOMAIN)]
    monkeypatch.setattr(quick, "MOST_READ", 2 * BINS - 1)
    assert QuickJudge(declared).judged([wide(1)]) == [None]


@pytest.mark.parametrize(
    ("lines", "why"), [(10, "another entry has the same key"), (9, r"entry 10 takes .*, and 0 of")]
)
def test_what_a_report_would_make_is_counted_once_when_a_file_is_read(
    hostile: Path, monkeypatch: pytest.MonkeyPatch, lines: int, why: str
) -> None:
    """40 counts of 16 conditions on 2^24 bins, in 74 KB, were read at once, and a report of them took 10 GB.

    The last one has the key of the first, so that none is waved through: each of them is judged again.
    """
    header, *entries, last = (json.loads(line) for line in hostile.read_text().splitlines())
    resealed(hostile, [header, *entries[:-1], entries[0] | {"seq": 10}, last])
    monkeypatch.setattr(work, "MOST_READ_STEPS", lines * len(NAMES) * BINS * MADE)
    monkeypatch.setattr(work, "PER_BYTE", 0)
    with pytest.raises(tacit.ConfigError, match=why):
        tacit.read(hostile)


def test_the_keys_of_old_answers_are_read_without_their_questions(
    hostile: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A histogram, or a base, answers what nothing had told before it: only keys are needed for that."""
    with tacit.read(hostile) as read:
        keys = [answer.key for answer in read._public.answers()]
        monkeypatch.setattr(Query, "from_dict", lambda form: pytest.fail("a question was made"))
        assert read._public.keys_before(2**62) == set(keys)
        assert read._public.keys_before(4) == set(keys[:3])
    assert len(set(keys)) == 10


def test_steps_are_those_of_what_is_announced() -> None:
    def steps(question: dict[str, Any], kind: str = "measured", **body: Any) -> int:
        return steps_of(Line(1, kind, None, None, 0, 0, canonical({"question": question, **body}), "", ""), DOMAIN)

    one = {"factors": [{"scope": ["u"], "shape": [2**24], "unit": 1, "weights": [1, 2**24 - 1]}]}
    tied = {"factors": [{"scope": list("abcdefgh"), "shape": [8192, *[2] * 7], "unit": 1, "weights": [1]}]}
    names = [f"a{i:02}" for i in range(20)]
    residuals = {"kind": "residuals", "scopes": [[name] for name in names], "weights": [1] * 20}
    assert steps({"kind": "query", **one}) == MADE * 2**24
    assert steps({"kind": "marginal", "names": ["w"], "where": one}) == MADE * 2**24
    assert steps(tied) > 50 * 2**20
    assert steps(residuals) > 20 * 2**20
    assert steps(residuals | {"scopes": [[f"a{i}"] for i in range(21)]}) < 2**16  # no set of them is tried
    for kind in ("told", "chosen", "compared"):
        assert steps(one, kind) == MADE * 2**24
    inside = canonical({"measured": {"question": tied}})
    assert steps_of(Line(1, "discovered", None, None, 0, 0, inside, "", ""), DOMAIN) == steps(tied)
    assert steps({"kind": "tree", "name": "u"}) == steps(one, "intent") == 0
    for body in ("", "[", '{"question":1}', '{"question":{"factors":[{"shape":"x"}]}}'):
        assert steps_of(Line(1, "told", None, None, 0, 0, body, "", ""), DOMAIN) == MADE * MOST_READ
    for shape in ([], [0], [-5], [2**40], [2] * 100_000):  # refused where a question is made of it, at once
        assert steps({"factors": [{"shape": shape}]}) == 0


def test_no_question_that_can_be_read_is_beyond_an_empty_file() -> None:
    Work(0).take(1, MADE * MOST_READ)
    with pytest.raises(TooMuch):
        Work(0).take(1, MOST_READ_STEPS + 1)
    Work(1).take(1, MOST_READ_STEPS + PER_BYTE)


# -- tables over several attributes ------------------------------------------------------------------------------------


def is_product(weights: Any, some: tuple[int, ...]) -> bool:
    rest = tuple(axis for axis in range(weights.ndim) if axis not in some)
    sizes = [np.count_nonzero(weights.max(axis=axes)) for axes in (some, rest)]
    return bool(math.prod(sizes) == np.count_nonzero(weights))


def test_irreducible_parts_are_those_of_trying_every_split() -> None:
    rng, whole = np.random.default_rng(5), 0
    for _ in range(300):
        axes = int(rng.integers(2, 6))
        shape = tuple(rng.integers(2, 4, axes).tolist())
        weights = np.ones(shape, np.uint8)
        for _ in range(int(rng.integers(1, 4))):  # a product of a few tables, or nothing of the kind
            some = sorted(rng.choice(axes, int(rng.integers(1, axes + 1)), replace=False).tolist())
            part = rng.integers(0, 2, [n if axis in some else 1 for axis, n in enumerate(shape)])
            weights = weights * part.astype(np.uint8)
        if not weights.any():
            continue
        names = tuple("abcdef"[:axes])
        parts = irreducible(Factor(names, weights, 1))
        product = np.ones(shape, np.uint8)
        for part in parts:
            spread = [n if a in part.scope else 1 for a, n in zip(names, shape, strict=True)]
            product = product * part.weights.reshape(spread)
            tied = part.weights
            sizes = range(1, tied.ndim)
            assert not any(is_product(tied, some) for size in sizes for some in combinations(range(tied.ndim), size))
        assert (product == weights).all()
        whole += len(parts) == 1
    assert 30 < whole < 270


def test_the_search_for_irreducible_parts_looks_at_few_cells() -> None:
    """676 characters announced eight attributes and took seven seconds: all cells were looked at 324 times."""
    looked = 0

    class Counted(np.ndarray[Any, Any]):
        def max(self, *given: Any, **more: Any) -> Any:
            nonlocal looked
            looked += self.size
            return super().max(*given, **more)

    shape = (64, *[2] * 7)
    onto = _projections(np.zeros(shape, np.uint8).view(Counted))
    for size in range(1, 8):
        for some in combinations(range(8), size):
            onto(some)
    assert looked <= 2 * math.prod(n + 1 for n in shape) < 40 * math.prod(shape)


def test_a_table_whose_parity_alone_is_asked_for_is_irreducible() -> None:
    weights = np.zeros((256, *[2] * 7), np.uint8)
    weights[:2] = np.indices([2] * 8).sum(axis=0) % 2  # no two attributes of it depend on each other
    factor = Factor(tuple("abcdefgh"), weights, 1)
    assert isinstance(write_weights(factor), list)
    (only,) = irreducible(factor)
    assert only is factor
