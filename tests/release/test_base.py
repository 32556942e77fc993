"""A certified base: what it answers, what its bars cover, and that nothing changes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

import tacit
from support import once
from tacit.errors import ConfigError, NotStarted
from tacit.model.ask import Count, Sum
from tacit.model.budget import Loss
from tacit.model.certificate import Certificate, Certificates
from tacit.model.factor import GRID, Factor
from tacit.model.query import Query
from tacit.release import base as base_module
from tacit.release import classes, knowledge
from tacit.release.base import Base, CertifiedFigure, of_the_base
from tacit.release.classes import Miss, attributes, boxes, left_out, ramps, sample, sampled, scopes, sums
from tacit.release.corner_sums import Side
from tacit.release.hypothesis.cell_weights import Dense
from tacit.release.hypothesis.mixture import Mixture
from tacit.release.knowledge import planned_lists
from tacit.release.online import Online
from tacit.release.parts import Parts
from tacit.release.warm_start import recalled
from tacit.session import Session
from tacit.trusted.curator import Curator
from tacit.trusted.records import Records

SIZES = {"a": 12, "b": 5, "c": 3, "d": 2}
DOMAIN = tacit.Domain(
    {
        "a": tacit.integer(0, 11),
        "b": tacit.category(list(range(5))),
        "c": tacit.category(list(range(3)), missing="unknown"),
        "d": tacit.boolean(),
    }
)
N = 5_000


def make_rows() -> pd.DataFrame:
    rng = np.random.default_rng(7)
    a = rng.integers(0, 12, N)
    b = (a // 3 + rng.integers(0, 2, N)) % 5
    c = np.where(rng.random(N) < 0.1, None, (a + b) % 3)
    return pd.DataFrame({"a": a, "b": b, "c": c, "d": rng.random(N) < a / 12})


ROWS = make_rows()
SOURCE = once(ROWS)


def start(folder: Path, **changes: Any) -> Session:
    settings: dict[str, Any] = {
        "data": SOURCE,
        "domain": DOMAIN,
        "budget": tacit.Budget(epsilon=1.0, delta=1e-9),
        "ledger": folder / "l.tacit",
        "mechanism": "iterative",
        "hits": 5,
        "warm": 0.7,
        "certify": 0.2,
    }
    return tacit.open(**({"start": True} | settings | changes))


def base_of(session: Session) -> Base:
    assert isinstance(session._mechanism, Online)
    assert session._mechanism.base is not None
    return session._mechanism.base


def records_of(session: Session) -> Records:
    assert session._curator is not None
    return session._curator._records


def spend(session: Session, share: float) -> None:
    """On a question that no other test asks."""
    assert session._curator is not None
    loss = Loss(session.total.measure, int(session.total.atoms * share))
    session._curator.measure([tacit.count(a=[1, 4, 7], c=0).bind(DOMAIN)], loss)


@contextmanager
def cut_off(monkeypatch: pytest.MonkeyPatch, after: int) -> Iterator[None]:
    """What is done here is interrupted after so many purchases."""
    measure, calls = Curator.measure, list[object]()

    def interrupted(self: Curator, *asked: Any, **other: Any) -> Any:
        calls.append(asked)
        if len(calls) > after:
            raise KeyboardInterrupt
        return measure(self, *asked, **other)

    with monkeypatch.context() as patched:
        patched.setattr(Curator, "measure", interrupted)
        with pytest.raises(KeyboardInterrupt):
            yield


def begin(session: Session) -> Base:
    session.ask(tacit.count(a=(0, 5)))
    return base_of(session)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """One session with a base, for all tests that leave it as it is: a base never changes, which two tests show."""
    with start(tmp_path_factory.mktemp("begun")) as session:
        begin(session)
        yield session


QUESTIONS = {
    "a range": tacit.count(a=(2, 7)),
    "a value": tacit.count(b=3),
    "a set of values": tacit.count(b=[0, 3, 4]),
    "missing": tacit.count(c="unknown"),
    "three conditions": tacit.count(a=(2, 7), b=[0, 2], d=True),
    "four conditions": tacit.count(a=(2, 7), b=1, c=1, d=True),
    "a complement": ~tacit.count(a=(2, 7), b=1),
    "from a value on": ~tacit.count(a=(0, 3)),
    "a wide range": tacit.count(a=(1, 8)),
    "two ranges": tacit.count(a=[1, 2, 8]),
    "all but a range": tacit.count(a=[0, 1, 9, 10, 11], b=[0, 2], d=True),
    "or": tacit.count(b=1) | tacit.count(a=3),
    "neither of two": ~tacit.count(a=[0, 1, 2, 11], c=[0, 2]),
}
MIXED = {
    "two ranges": tacit.count(a=[1, 2, 8]),
    "three ranges and a set": tacit.count(a=[1, 4, 8], c=[0, 2]),
    "a complement": ~tacit.count(a=[1, 2, 8], d=True),
}
OTHERS = {
    "four ranges": tacit.count(a=[1, 4, 7, 10]),
    "a tie": tacit.count(b=1, a=3) | tacit.count(b=2, a=5),
}


@pytest.mark.parametrize("words", QUESTIONS)
def test_a_certified_answer_is_the_base_s_and_free(begun: Session, words: str) -> None:
    base, before, spent = base_of(begun), begun.entries, begun.spent
    answer = begun.ask(QUESTIONS[words])
    assert isinstance(answer, tacit.Answer)
    assert (begun.entries, begun.spent) == (before, spent)
    assert (answer.source, answer.cost.atoms, answer.receipt) == ("hypothesis", 0, base.receipt)
    query = QUESTIONS[words].bind(DOMAIN)
    assert abs(answer.value - base.hypothesis.answer(query) * N) <= 0.5 + 1e-3
    assert any("questions like this one" in bar.about.words for bar in answer.bars)
    assert begun.dry_run(QUESTIONS[words]).known


def test_other_questions_go_through_the_gate(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        begin(session)
        for question in OTHERS.values():
            before = session.entries
            answer = session.ask(question)
            assert isinstance(answer, tacit.Answer)
            assert session.entries > before
            assert not any("like this one" in bar.about.words for bar in answer.bars)


WEIGHTS = {
    "rising": np.linspace(0, 1, 12),
    "a hill": np.array([0, 0.2, 0.5, 1, 0.5, 0.1, 0, 0, 0, 0, 0, 0]),
    "a valley": np.abs(np.linspace(-1, 1, 12)),
}


def certain(base: Base, query: Query, records: Records) -> None:
    """The value is the hypothesis', and the bar is the largest box error times the boxes that it is a mixture of."""
    found = base.estimate(query)
    assert found is not None
    rows = found.value / query.unit
    assert abs(rows - base.hypothesis.answer(query) * N) <= 0.51
    bar = found.facts.bars[-1]
    assert "at once" in bar.about.words
    assert all(abs(rows - records.answer(query) / query.unit) <= bar.width / query.unit for bar in found.facts.bars)


@pytest.mark.parametrize("where", [{}, {"b": 2}, {"c": [0, 2], "d": True}])
@pytest.mark.parametrize("shape", WEIGHTS)
def test_sums_are_mixtures_of_boxes(begun: Session, shape: str, where: dict[str, Any]) -> None:
    weighed = Query.weighted(DOMAIN, ["a"], WEIGHTS[shape])
    query = Query.all([weighed, tacit.count(**where).bind(DOMAIN)]) if where else weighed
    certain(base_of(begun), query, records_of(begun))


def test_the_number_of_boxes_is_half_of_the_rise_and_fall() -> None:
    def boxes_of(weights: NDArray[np.float64]) -> float:
        return Side.of(Factor(("a",), np.rint(weights * GRID).astype(np.int32), GRID), DOMAIN, 2).boxes

    assert boxes_of(WEIGHTS["rising"]) == 1
    assert boxes_of(WEIGHTS["a hill"]) == 1
    assert boxes_of(WEIGHTS["a valley"]) == pytest.approx(2 - 1 / 11, abs=1e-5)
    assert boxes_of(WEIGHTS["rising"] / 2) == 0.5
    for chosen in product([0, 1], repeat=6):  # every set of values: as many boxes as it has runs
        weights = np.array([*chosen, 0, 0, 0, 0, 0, 0])
        if weights.any():
            runs = len("".join(map(str, chosen)).replace("0", " ").split())
            assert boxes_of(weights.astype(np.float64)) == runs


@pytest.mark.parametrize("words", MIXED)
def test_sets_of_a_few_ranges_are_mixtures_too(begun: Session, words: str) -> None:
    before = begun.entries
    certain(base_of(begun), MIXED[words].bind(DOMAIN), records_of(begun))
    begun.ask(MIXED[words])
    assert begun.entries == before


def test_a_mean_comes_from_the_base_too(begun: Session) -> None:
    before = begun.entries
    answer = begun.mean("a", tacit.count(d=True))
    assert begun.entries == before
    assert answer.source == "hypothesis"
    assert answer.bars
    assert answer.error is not None
    assert abs(answer.value - ROWS[ROWS.d].a.mean()) <= answer.error


def test_the_same_for_ever_in_every_process_and_in_every_published_file(tmp_path: Path) -> None:
    asked = list(QUESTIONS.values())
    with start(tmp_path) as session:
        begin(session)
        first = [answer.to_dict() for answer in session.ask_many(asked)]
        for question in OTHERS.values():  # these teach, where they are hard, and are written down in any case
            session.ask(question)
        curator = session._curator
        assert curator is not None
        curator.measure([QUESTIONS["three conditions"].bind(DOMAIN)], session.left.split(2))
        session.ask(tacit.count(a=[0, 2, 5, 9]))  # catches up with what was measured
        assert [answer.to_dict() for answer in session.ask_many(asked)] == first
        session.publish(tmp_path / "out.jsonl")
    sharper = list(QUESTIONS).index("three conditions")
    with start(tmp_path) as again, tacit.read(tmp_path / "out.jsonl") as reader:
        for opened in (again, reader):
            later = [answer.to_dict() for answer in opened.ask_many(asked)]
            assert "a sharper answer was bought" in later[sharper].pop("note")  # which is all that has changed
            assert later == first
    assert tacit.verify(tmp_path / "out.jsonl")


def test_a_table_has_the_cells_that_are_asked_one_by_one(begun: Session) -> None:
    table = begun.table("b", "d")
    for (i, b), (j, d) in product(enumerate(range(5)), enumerate([False, True])):
        assert begun.ask(tacit.count(b=b, d=d)).value == table.values[i, j]  # type: ignore[union-attr]
    assert table.source == "hypothesis"


def test_each_cell_of_a_table_has_the_bar_of_its_own_question(begun: Session) -> None:
    """A count of few rows has a narrower one than a count of many, in a table as by itself, in every form."""
    table = begun.ask("SELECT b, c, COUNT(*) FROM data GROUP BY b, c")
    listed = begun.ask("SELECT b, c, COUNT(*), AVG(a) FROM data GROUP BY b, c")
    assert isinstance(table, tacit.Table)
    assert isinstance(listed, tacit.Listing)
    alone = [begun.ask(tacit.count(b=b, c=c)) for b, c in product(range(5), (0, 1, 2, "unknown"))]
    errors = [answer.error for answer in alone if isinstance(answer, tacit.Answer)]
    assert len(set(errors)) > 1
    assert table.errors.ravel().tolist() == errors == [row.errors[0] for row in listed.listed]
    assert table.error == max(error for error in errors if error is not None)
    assert "each at most ±" in str(table)
    assert table.frame().to_pandas()["error"].tolist() == errors
    assert table.to_dict()["own"] == errors
    assert begun.table("c", "b").errors.T.ravel().tolist() == errors


def test_sums_and_counts_have_one_figure_and_bars_of_their_own(begun: Session) -> None:
    base = base_of(begun)
    (joint,) = (one for one in base.certificates if isinstance(one.question, Certificates))
    kinds = [base_module.SAMPLE, classes.MEANS]  # values begin at 0, so that their sums are parts of means
    assert [one.kind for one in joint.question.each] == kinds  # type: ignore[union-attr]
    for figure in base.summed.values():
        assert figure.seen.error == base.share.seen.error == int(joint.values[0])
        assert figure.certificate.steps != base.share.certificate.steps


def test_what_a_mean_is_made_of_is_certified_and_its_bar_is_that_of_one_part(begun: Session) -> None:
    has, lacks = ramps(DOMAIN, "a")[classes.MEANS]
    assert (has + lacks).tolist() == [GRID] * 12
    table = records_of(begun).table(("d", "a"))
    true = table @ np.arange(12) / table.sum(axis=1)
    spent = begun.spent
    by_group = begun.ask("SELECT d, AVG(a) FROM data GROUP BY d").to_pandas()
    for d in range(2):
        one = begun.ask(f"SELECT AVG(a) FROM data WHERE {'NOT ' * (1 - d)}d")
        assert isinstance(one, tacit.Answer)
        assert by_group.iloc[d, 1:].tolist() == [one.value, one.error]  # whichever way it is asked
        assert one.error is not None
        assert abs(one.value - true[d]) <= one.error  # seeded noise: one run for ever
        parts = [base_of(begun).estimate(tacit.count(d=bool(d)).bind(DOMAIN) & weighted(w)) for w in (has, lacks)]
        widths = [part.facts.width / GRID for part in parts if part is not None and part.facts.width is not None]
        assert len(widths) == 2
        rows = sum(part.value for part in parts if part is not None) / GRID
        assert one.error <= 11 * max(widths) / rows * 1.001
    assert begun.spent == spent


def test_sums_that_are_no_part_of_a_mean_have_a_list_of_their_own() -> None:
    domain = tacit.Domain(
        {"up": tacit.integer(10, 18), "both": tacit.integer(-5, 5), "name": tacit.category(["x", "y"])}
    )
    many = {name: [len(some) for some in ramps(domain, name).values()] for name in domain.names}
    assert many == {"up": [2, 1], "both": [2, 2], "name": [0, 0]}


def test_the_sum_of_all_rows_has_the_bar_of_its_list_whichever_way_it_is_kept(tmp_path: Path) -> None:
    """Of values from 10 on, what is asked is kept as all rows less the rest."""
    domain = tacit.Domain({"up": tacit.integer(10, 29), "d": tacit.boolean()})
    rows = pd.DataFrame({"up": 10 + np.arange(N) % 20, "d": np.arange(N) % 3 == 0})
    settings: dict[str, Any] = {"mechanism": "iterative", "warm": 0.6, "certify": 0.2, "hits": 2, "start": True}
    budget = tacit.Budget(epsilon=1.0, delta=1e-9)
    with tacit.open(data=rows, domain=domain, budget=budget, ledger=tmp_path / "l", **settings) as session:
        session.start()
        (part,) = Sum(domain, "up").formula.parts
        query = part.query(domain)
        assert query.complement
        found = base_of(session).estimate(query)
        assert found is not None
        assert any("like this one" in bar.about.words for bar in found.facts.bars)


def weighted(steps: Any) -> Query:
    return Query.weighted(DOMAIN, ["a"], steps / GRID)


def test_the_bars_cover_what_they_are_about(begun: Session) -> None:
    """All of it against the data, question by question: seeded noise, so this is one run for ever."""
    base, records = base_of(begun), records_of(begun)
    share, most = base.share.certificate, base.largest
    lists = sample(DOMAIN, base.hypothesis, N, share.attributes)
    within = []
    for one in lists[::3]:
        true, guessed = one.sums(records.table(one.names)), np.rint(one.sums(one.guess) / GRID)
        within += [abs(t - g) <= base.share.width(int(g)) for t, g in zip(true, guessed, strict=True)]
    assert np.mean(within) >= 0.95
    assert set(base.summed) == {classes.MEANS}
    for kind, figure in base.summed.items():
        within = []
        for one in sums(DOMAIN, base.hypothesis, N, kind):
            true, guessed = one.sums(records.table(one.names) * GRID), one.sums(one.guess)
            wide = [GRID * figure.width(-(-int(guess) // GRID)) for guess in guessed]
            within += [abs(t - g) <= w for t, g, w in zip(true, guessed, wide, strict=True)]
        assert len(within) == figure.certificate.questions
        assert np.mean(within) >= 0.95
    assert most is not None
    listed, reached = boxes(DOMAIN, base.hypothesis, N, most.certificate.attributes)
    assert reached == most.certificate.attributes == 4
    assert sum(one.size for one in listed) == most.certificate.questions
    for one in listed[::3]:
        true, guessed = one.sums(records.table(one.names)), np.rint(one.sums(one.guess) / GRID)
        assert all(abs(t - g) <= most.width(int(g)) for t, g in zip(true, guessed, strict=True))


def test_the_noise_that_a_bar_adds_is_that_of_the_purchase(begun: Session, tmp_path: Path) -> None:
    base = base_of(begun)
    for measured in base.certificates:
        true = base_of_truth(measured.question, begun)
        assert true != int(measured.values[0])  # what is released has noise
        assert measured.cost.atoms > 0
    with start(
        tmp_path, ledger=tmp_path / "people", data=ROWS.assign(who=ROWS.index // 3), person="who", rows_per_person=3
    ) as session:
        wide = begin(session)
        for one, three in zip(base.certificates, wide.certificates, strict=True):
            assert three.noise.scale == pytest.approx(3 * one.noise.scale, rel=1e-3)  # a person moves it three times


def base_of_truth(certificate: object, session: Session) -> int:
    from dataclasses import replace

    from tacit.trusted.sensitivity import order_statistics

    base = base_of(session)
    if isinstance(certificate, Certificates):
        return max(base_of_truth(one, session) for one in certificate.each)
    assert isinstance(certificate, Certificate)
    lists = {
        base_module.SAMPLE: lambda: sample(DOMAIN, base.hypothesis, N, certificate.attributes),
        base_module.BOXES: lambda: boxes(DOMAIN, base.hypothesis, N, certificate.attributes)[0],
        **{kind: partial(sums, DOMAIN, base.hypothesis, N, kind) for kind in (classes.MEANS, classes.SUMS)},
    }[certificate.kind]()
    return int(order_statistics(replace(certificate, lists=tuple(lists)), records_of(session))[0])


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999, 0.99999])
def test_what_a_bar_may_miss_adds_up(confidence: float) -> None:
    miss = Miss.of(of_the_base(confidence))
    assert (1 - miss.noise - miss.sample) * miss.share >= of_the_base(confidence) - 1e-12
    assert of_the_base(confidence) > confidence
    for questions in (10, 1000, 2**18):
        rank = miss.rank(questions)
        assert miss.share * questions < rank
        # The exact chance that so many of independent draws are below what the share errs by.
        assert rank > questions or binom.sf(rank - 1, questions, miss.share) <= miss.sample
    assert (miss.rank(2**18) <= 2**18) == (confidence < 0.9999)
    assert miss.rank(1000, left_out=1 - miss.share) > 1000


def test_a_question_that_was_answered_before_the_base_stays_as_it_was(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        query = QUESTIONS["a range"].bind(DOMAIN)
        assert session._curator is not None
        bought = session._curator.measure([query], session.total.split(100))[0]
        begin(session)
        assert session.ask(query).value == bought.values[0]  # type: ignore[union-attr]


def test_a_start_that_was_cut_off_before_its_certificate_buys_it_at_the_next_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(tmp_path) as session, monkeypatch.context() as patched:
        patched.setattr(base_module, "_wanted", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            session.ask(QUESTIONS["a value"])
    with start(tmp_path) as session:
        answer = session.ask(QUESTIONS["a value"])
        assert isinstance(answer, tacit.Answer)
        assert any("like this one" in bar.about.words for bar in answer.bars)
        spent = session.spent
    with start(tmp_path) as session:
        assert session.ask(QUESTIONS["a value"]).value == answer.value  # type: ignore[union-attr]
        assert session.spent == spent


def test_the_certificate_is_priced_like_any_purchase(begun: Session) -> None:
    bought = [past for past in begun.history if "certificate" in past.question]
    assert len(bought) == 2
    total = sum(past.cost.atoms for past in bought)
    assert 0.199 * begun.total.atoms <= total <= 0.2 * begun.total.atoms


def test_a_certificate_that_was_cut_off_is_taken_up_again_for_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measure = Curator.measure
    seen = []

    def interrupted(self: Curator, questions: Any, *more: Any, **other: Any) -> Any:
        if isinstance(questions[0], Certificate | Certificates):
            seen.append(type(questions[0]))
            if len(seen) > 1:
                raise KeyboardInterrupt
        return measure(self, questions, *more, **other)

    with start(tmp_path) as session:
        with monkeypatch.context() as patched:
            patched.setattr(Curator, "measure", interrupted)
            with pytest.raises(KeyboardInterrupt):
                begin(session)
        assert not isinstance(session._mechanism, Online) or session._mechanism.base is None
    assert seen == [Certificate, Certificates]  # the one without which there is no base comes last
    with start(tmp_path) as session:
        base = begin(session)
        assert len(base.certificates) == 2
        assert sum("certificate" in past.question for past in session.history) == 2


def test_a_dry_run_spends_nothing_where_a_start_was_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with start(tmp_path) as session, cut_off(monkeypatch, after=2):
        begin(session)
    with start(tmp_path) as session:
        spent = session.spent
        session.dry_run(QUESTIONS["a value"])
        assert session.spent == spent


def test_a_certificate_that_says_less_than_its_bar_is_not_taken_for_one(tmp_path: Path) -> None:
    """Rank 1 of three errors, and offsets that fall: whoever may measure can buy that, and it says nothing."""
    with start(tmp_path, certify=0.0) as session:
        session.ask(QUESTIONS["a value"])
        mechanism, curator = session._mechanism, session._curator
        assert isinstance(mechanism, Online)
        assert isinstance(curator, Curator)
        found = recalled(session._public)
        assert found is not None
        some = sample(DOMAIN, found.hypothesis, N, 1)[:1]
        for ranks, steps in (((1,), ()), ((some[0].size,), ((0, 9000), (1, 0)))):
            weak = Certificate(found.name, base_module.SAMPLE, 1, some[0].size, ranks, steps, tuple(some))
            curator.measure([weak], session.left.split(10))
        assert base_module.certify(session._public, None, found, session.total, 0.95) is None


def test_a_certificate_of_sums_is_not_taken_for_one_of_the_parts_of_means(tmp_path: Path) -> None:
    """Earlier versions bought counts and sums each by itself; what rows lack was not among these sums."""
    with start(tmp_path, certify=0.0) as session:
        session.ask(QUESTIONS["a value"])
        found = recalled(session._public)
        assert found is not None
        assert isinstance(session._curator, Curator)
        lists = {
            "conjunctions": sample(DOMAIN, found.hypothesis, N, attributes(DOMAIN)),
            "sums": sums(DOMAIN, found.hypothesis, N, classes.MEANS),
        }
        for kind, some in lists.items():
            many = sum(one.size for one in some)
            earlier = Certificate(found.name, kind, attributes(DOMAIN), many, (many,), (), tuple(some))
            session._curator.measure([earlier], session.left.split(10))
        base = base_module.certify(session._public, None, found, session.total, 0.95)
        assert base is not None
        assert len(base.certificates) == 2
        assert set(base.summed) == {classes.SUMS}
        has, lacks = ramps(DOMAIN, "a")[classes.MEANS]
        for weights, was_listed in ((has, True), (lacks, False)):
            part = base.estimate(tacit.count(d=True).bind(DOMAIN) & weighted(weights))
            listed = part is not None and any("like this one" in bar.about.words for bar in part.facts.bars)
            assert listed == was_listed
        for asked in (has, GRID - has):  # of all rows, a sum and its rest are one question
            whole = base.estimate(weighted(asked))
            assert whole is not None
            assert any("like this one" in bar.about.words for bar in whole.facts.bars)


def test_sums_of_an_earlier_version_are_not_read_with_a_newer_list(tmp_path: Path) -> None:
    """They were bought before the conjunctions, and no condition of theirs had two ranges: a start that was cut off
    between the two goes on with its own sums, in the process that buys them and in every other."""
    with start(tmp_path, certify=0.0) as session:
        session.ask(QUESTIONS["a value"])
        found = recalled(session._public)
        assert found is not None
        assert isinstance(session._curator, Curator)
        some = sums(DOMAIN, found.hypothesis, N, classes.MEANS)
        many = sum(one.size for one in some)
        earlier = Certificate(found.name, "sums", attributes(DOMAIN), many, (many,), (), tuple(some))
        session._curator.measure([earlier], session.left.split(10))
        bought = base_module.certify(session._public, session._curator, found, session.left.split(2), 0.95)
        again = base_module.certify(session._public, None, found, session.total, 0.95)
        assert bought is not None
        assert again is not None
        for base in (bought, again):
            assert base.summed[classes.MEANS].certificate.ranks != (many,)
            assert {one.receipt for one in base.certificates} == {one.receipt for one in again.certificates}


def test_means_are_answered_as_they_were_where_an_earlier_version_has_certified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what their rows have and how many there are: neither costs anything, and both have bars of their lists."""
    with start(tmp_path, hits=50) as session:
        with monkeypatch.context() as patched:
            patched.setattr(knowledge, "certify", lambda *_: None)
            session.start()
        found = recalled(session._public)
        assert found is not None
        assert isinstance(session._curator, Curator)
        listed = sums(DOMAIN, found.hypothesis, N, classes.MEANS)
        has = [one for one in listed if one.weights is not None and one.weights[0] == 0]
        most = attributes(DOMAIN)
        lists = {"boxes": boxes(DOMAIN, found.hypothesis, N, most)[0], "sums": has}
        for kind, some in (lists | {"conjunctions": sample(DOMAIN, found.hypothesis, N, most)}).items():
            many = sum(one.size for one in some)
            earlier = Certificate(found.name, kind, most, many, (many,), (), tuple(some))
            session._curator.measure([earlier], session.left.split(10))
    asked = "SELECT AVG(a) FROM data WHERE d"
    with start(tmp_path, hits=50) as session:
        spent, base = session.spent, base_of(session)
        assert classes.MEANS not in base.summed
        mean, by_group = session.ask(asked), session.ask("SELECT d, AVG(a) FROM data GROUP BY d").to_pandas()
        assert isinstance(mean, tacit.Answer)
        assert session.spent == spent
        assert by_group.iloc[1, 1:].tolist() == [mean.value, mean.error]
        women = tacit.count(d=True).bind(DOMAIN)
        parts = [base.estimate(one) for one in (women & weighted(ramps(DOMAIN, "a")[classes.MEANS][0]), women)]
        assert parts[0] is not None
        assert parts[1] is not None
        assert mean.value == pytest.approx(11 * parts[0].value / GRID / parts[1].value)
        assert mean.error is not None
        # What an answer is certified to be is as sure in a file as in its ledger.
        session.publish(tmp_path / "p.jsonl")
        assert tacit.read(tmp_path / "p.jsonl").ask(asked).to_dict() == mean.to_dict()


def asked_at_random(rng: np.random.Generator) -> Query:
    """Conditions on some attributes, and now and then weights of one of them."""
    parts = list[Query]()
    for name in rng.permutation(list(SIZES))[: rng.integers(1, 5)]:
        size = DOMAIN[name].size
        if rng.random() < 0.3 and not any(part.unit > 1 for part in parts):
            known = [one for some in ramps(DOMAIN, name).values() for one in some]
            drawn = [*known, rng.integers(0, GRID, size), np.sort(rng.integers(0, GRID, size))]
            parts.append(Query.weighted(DOMAIN, [name], drawn[rng.integers(len(drawn))] / GRID))
        else:
            parts.append(Query.among(DOMAIN, name, np.flatnonzero(rng.random(size) < rng.random()).tolist()))
    made = Query.all(parts) if rng.random() < 0.9 else Query.any(parts)
    return ~made if rng.random() < 0.2 else made


def test_what_a_certificate_answers_is_known_before_it_is_bought(begun: Session) -> None:
    rng, base, seen = np.random.default_rng(3), base_of(begun), set[bool]()
    lists = {kind: figure.certificate.attributes for kind, figure in base._figures.items()}
    assert planned_lists(DOMAIN, 0.95) == lists
    for _ in range(2_000):
        query = asked_at_random(rng)
        if not query.is_constant and query.core.key not in base._earlier:
            answered = base.estimate(query) is not None
            assert begun.certifies(query) == answered
            seen.add(answered)
    assert seen == {False, True}


def test_the_list_of_the_parts_of_means_is_as_long_as_was_foretold(begun: Session) -> None:
    made = sums(DOMAIN, base_of(begun).hypothesis, N, classes.MEANS)
    assert [one.size for one in made] == [one.questions for one in classes.summed(DOMAIN, classes.MEANS)]
    assert classes.MEANS in planned_lists(DOMAIN, 0.95)


@pytest.mark.parametrize("rows", [2**21, 2**31, 2**39])
def test_a_table_of_any_number_of_rows_is_certified(rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts and means: floats alone would have added up the errors of fewer rows exactly."""
    times, init = rows // N + 1, Records.__init__

    def many(self: Records, domain: tacit.Domain, codes: Any, counts: NDArray[np.int64], *more: int) -> None:
        init(self, domain, codes, counts * times, *more)

    monkeypatch.setattr(Records, "__init__", many)
    with start(tmp_path, budget=tacit.Budget(epsilon=1.0, delta=1e-14)) as session:
        assert session.rows == N * times >= rows
        assert set(begin(session)._figures) >= {base_module.SAMPLE, base_module.BOXES, classes.MEANS}
        spent, some = session.spent, ROWS[(ROWS.a >= 2) & (ROWS.a <= 7)]
        count = session.ask("SELECT COUNT(*) FROM data WHERE a BETWEEN 2 AND 7 AND d")
        mean = session.ask("SELECT AVG(a) FROM data WHERE d")
        assert session.spent == spent
        assert abs(count.value - times * some.d.sum()) <= 4 * count.error
        assert abs(mean.value - ROWS.a[ROWS.d].mean()) <= 4 * mean.error


def test_what_an_earlier_version_has_certified_is_about_single_ranges(tmp_path: Path) -> None:
    """Its list had no condition of two ranges: these keep the bar of the boxes that they are made of."""
    with start(tmp_path, certify=0.0) as session:
        session.ask(QUESTIONS["a value"])
        found = recalled(session._public)
        assert found is not None
        assert isinstance(session._curator, Curator)
        lists = sample(DOMAIN, found.hypothesis, N, attributes(DOMAIN))
        many = sum(one.size for one in lists)
        earlier = Certificate(found.name, "conjunctions", attributes(DOMAIN), many, (many,), (), tuple(lists))
        session._curator.measure([earlier], session.left.split(10))
        base = base_module.certify(session._public, None, found, session.total, 0.95)
        assert base is not None
        assert base.estimate(QUESTIONS["three conditions"].bind(DOMAIN)) is not None
        for words in ("all but a range", "neither of two"):
            assert base.estimate(QUESTIONS[words].bind(DOMAIN)) is None


def test_no_bar_is_shown_that_a_list_is_too_short_to_prove(tmp_path: Path) -> None:
    with start(tmp_path, confidence=0.999999) as session:
        session.ask(QUESTIONS["a value"])
        assert isinstance(session._mechanism, Online)
        assert session._mechanism.base is None
        assert not any("certificate" in past.question for past in session.history)


@pytest.mark.parametrize(
    ("name", "values"), [("a", [0, 11]), ("a", [0, 1, 11]), ("a", range(1, 11)), ("a", range(1, 12)), ("b", [2])]
)
def test_the_bar_of_a_condition_by_itself_is_that_of_its_own_size(
    begun: Session, name: str, values: Sequence[int]
) -> None:
    """A range is kept as the rows outside it where these are fewer; what was certified is for the range's own size."""
    base, attribute = base_of(begun), DOMAIN[name]
    chosen = set(values)
    sides = [chosen, set(range(attribute.size)) - chosen]
    runs = [sum(value - 1 not in side for value in side) for side in sides]
    certified = sides[runs[0] > runs[1]] if attribute.ordered else chosen
    found, own = (base.estimate(Query.among(DOMAIN, name, some)) for some in (chosen, certified))
    assert found is not None
    assert own is not None
    assert base.largest is not None
    assert [bar.width for bar in found.facts.bars] == [base.share.width(own.value), base.largest.width(own.value)]


def test_what_was_learned_stays_learned_where_a_certificate_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start(tmp_path) as session, monkeypatch.context() as patched:
        patched.setattr(base_module, "_wanted", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            session.ask(QUESTIONS["a value"])
    with start(tmp_path) as session:
        assert session._curator is not None
        session._curator.measure([QUESTIONS["four conditions"].bind(DOMAIN)], session.left.split(2))
        first = [array.tobytes() for array in session.arrays()]
        assert [array.tobytes() for array in session.arrays()] == first


def test_the_least_confidence_there_is_has_bars_too(tmp_path: Path) -> None:
    with start(tmp_path, confidence=0.5) as session:
        begin(session)
        answer = session.ask(QUESTIONS["a range"])
        assert isinstance(answer, tacit.Answer)
        assert len([bar for bar in answer.bars if bar.about.words != "this noise"]) == 2


@pytest.mark.parametrize("settings", [{"warm": 0.0}, {"warm": 0.8}])
def test_a_certificate_needs_a_start_and_room_beside_it(tmp_path: Path, settings: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="certify"):
        start(tmp_path, **settings)


def test_domains_too_large_to_list_are_sampled_in_public() -> None:
    large = tacit.Domain({f"a{i}": tacit.integer(0, 9) for i in range(40)})
    assert attributes(large) == 3
    by_size = scopes(large, 3)
    assert [len(of_size) for of_size in by_size] == [40, classes.MOST_SCOPES, classes.MOST_SCOPES]
    assert by_size == scopes(large, 3)
    lists = sample(large, Mixture.uniform(large), 1000, 3)
    assert left_out([one.names for one in lists], 40) == 1 / (classes.MOST_SCOPES + 1)
    assert left_out([one.scope for one in sampled(DOMAIN, 4)], 4) == 0
    assert left_out([one.scope for one in sampled(DOMAIN, 1)], 10**6) == 1 / 5  # four of a million
    huge = tacit.Domain({f"a{i}": tacit.integer(0, 9) for i in range(200)})
    assert [len(of_size) for of_size in scopes(huge, 3)] == [200, classes.MOST_SCOPES, classes.MOST_SCOPES]


@pytest.mark.parametrize("bins", [2_000, 100_000, 500_000])
def test_attributes_of_very_many_bins_are_listed_in_little_memory(bins: int) -> None:
    wide = tacit.Domain({"x": tacit.integer(0, bins - 1), "y": tacit.boolean()})
    lists = sample(wide, Dense(wide), 1000, 2)
    assert sum(matrix.nbytes for one in lists for matrix in one.conditions) <= 2**27
    assert all("x" not in one.names for one in lists) == (bins > classes.MOST_QUESTION_CELLS)
    assert boxes(wide, Dense(wide), 1000, 2) == ([], 0)
    alone = tacit.Domain({"x": tacit.integer(0, classes.MOST_QUESTION_CELLS)})
    assert sample(alone, Dense(alone), 1000, 1) == []


@pytest.mark.parametrize("name", SIZES)
def test_as_many_sides_as_are_counted_and_every_range_as_likely(name: str) -> None:
    attribute, rng = DOMAIN[name], np.random.Generator(np.random.PCG64(1))
    every = {row.tobytes() for row in classes._all(attribute)}
    assert len(every) == len(classes._all(attribute)) == classes._sides(attribute)
    twice = rng.random(100 * len(every)) < 1 / 8
    drawn = [row.tobytes() for row in classes._random(attribute, twice, rng)]
    if attribute.ordered:
        bits = np.frombuffer(b"".join(drawn), np.uint8).reshape(len(drawn), -1)
        runs = (np.diff(bits, axis=1, prepend=0) == 1).sum(axis=1)
        assert runs.tolist() == (1 + twice).tolist()
        assert {row for row, many in zip(drawn, runs, strict=True) if many == 1} == every
        assert max(map(drawn.count, every)) < 200  # 87 each: a chance of far less than 1e-9, and the seed is fixed
    else:
        assert every <= set(drawn)


def test_the_curator_refuses_a_certificate_without_its_list(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        curator = session._curator
        assert isinstance(curator, Curator)
        with pytest.raises(tacit.InvalidQuery, match="list"):
            curator.measure([Certificate("a", "b", 1, 10, (10,))], session.total.split(10))
        assert session.spent.atoms == 0


def test_queries_of_another_kind_are_not_taken_for_certified_ones(begun: Session) -> None:
    base = base_of(begun)
    weighted = Query.weighted(DOMAIN, ["a"], np.linspace(0, 1, 12))
    joined = Query.weighted(DOMAIN, ["a", "d"], np.eye(12)[:, :2])
    twice = Query.all([weighted, Query.weighted(DOMAIN, ["b"], np.linspace(0, 1, 5))])
    assert base.estimate(twice) is None
    assert base.estimate(joined) is None
    assert base.estimate(Query.constant(everyone=True)) is None


def test_a_figure_that_noise_made_too_low_leaves_a_row(begun: Session) -> None:
    low = [replace(one, values=one.values - N) for one in base_of(begun).certificates]
    each = [(one, some) for one in low for some in getattr(one.question, "each", [one.question])]
    assert {CertifiedFigure(*one, 0.01).width(guess) for one in each for guess in (0, 100, N)} == {1}


@pytest.mark.parametrize("gone", [0.12, 0.3, 0.88])
def test_a_start_takes_its_shares_of_what_is_left_and_no_question_buys_it(tmp_path: Path, gone: float) -> None:
    with start(tmp_path, start=False) as session:
        spend(session, gone)
        left = session.left
        foretold = session.base
        assert not session.started
        assert foretold.cost.atoms == pytest.approx(0.9 * left.atoms, rel=1e-6)
        for question in QUESTIONS.values():
            with pytest.raises(NotStarted):
                session.ask(question)
        assert session.left == left
        bought = session.start()
        assert bought.certified
        assert bought.cost.atoms == left.atoms - session.left.atoms
        assert 0.99 * foretold.cost.atoms < bought.cost.atoms <= foretold.cost.atoms
        assert session.started
        assert session.ask(QUESTIONS["a value"]).cost.atoms == 0
    with start(tmp_path, start=False) as session:
        assert session.start().cost.atoms == 0  # once


def test_where_a_tenth_is_not_left_there_is_no_start_and_it_is_said(tmp_path: Path) -> None:
    with start(tmp_path, start=False) as session:
        spend(session, 0.91)
        assert session.started
        assert "Too little" in str(session.base)
        foreseen, before = session.dry_run(QUESTIONS["a value"]), session.spent
        cost = session.ask(QUESTIONS["a value"]).cost
        assert cost.atoms == session.spent.atoms - before.atoms <= foreseen.cost_at_most.atoms
        assert "Too little" in str(session.start())
        assert not session.base.bought
        # Once the budget is raised there is enough, and it has to be asked for.
        session.extend(tacit.Budget(epsilon=3.0, delta=1e-9))
        assert not session.started
        other = QUESTIONS["a range"]
        with pytest.raises(NotStarted):
            session.ask(other)
        session.start()
        answer = session.ask(other)
        known = [array.tobytes() for array in session.arrays()]
    with start(tmp_path, start=False, budget=tacit.Budget(epsilon=3.0, delta=1e-9)) as session:
        assert session.ask(other).value == answer.value
        assert [array.tobytes() for array in session.arrays()] == known


@pytest.mark.parametrize(("stop", "delta"), [(1, 1e-9), (2, 1e-9), (1, 0.0), (2, 0.0), (3, 0.0)])
def test_no_question_buys_the_rest_of_a_start_that_was_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int, delta: float
) -> None:
    about = {"start": False, "budget": tacit.Budget(epsilon=1.0, delta=delta)}

    with start(tmp_path, **about) as session, cut_off(monkeypatch, after=stop):
        session.start()
    with start(tmp_path, **about) as session:
        spent, foretold = session.spent, session.base.cost
        assert not session.started
        with pytest.raises(NotStarted):
            session.ask(QUESTIONS["a value"])
        assert session.spent == spent
        assert session.start().certified
        assert session.spent.atoms - spent.atoms <= foretold.atoms
        assert 0.85 * session.total.atoms < session.spent.atoms <= 0.9 * session.total.atoms


def test_no_question_buys_a_start_that_can_be_paid_since_a_moment_ago(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The budget is raised between the look whether the session is started and the question's turn."""
    fetch = Parts.fetch
    with start(tmp_path, start=False) as session:
        spend(session, 0.91)

        def raised(self: Parts, *asked: Any, **other: Any) -> Any:
            if len(session.status().extensions) == 0:
                session.extend(tacit.Budget(epsilon=3.0, delta=1e-9))
            return fetch(self, *asked, **other)

        monkeypatch.setattr(Parts, "fetch", raised)
        foreseen, before = session.dry_run(QUESTIONS["a value"]), session.spent
        assert session.ask(QUESTIONS["a value"]).cost.atoms <= foreseen.cost_at_most.atoms
        assert session.spent.atoms - before.atoms <= foreseen.cost_at_most.atoms
        assert not session.base.bought
        with pytest.raises(NotStarted):
            session.ask(QUESTIONS["a range"])


@pytest.mark.parametrize("late", [0.03, 0.3])
@pytest.mark.parametrize("delta", [1e-9, 0.0])
@pytest.mark.parametrize("first", [0.0, 0.3])
def test_a_start_that_was_cut_off_goes_on_as_it_was_begun_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, delta: float, late: float, first: float
) -> None:
    """Whatever is bought before it and between: `start` costs what it said, buys nothing twice, and never fails."""
    domain = tacit.Domain({"a": tacit.integer(0, 1_999), "d": tacit.boolean(), "e": tacit.boolean()})
    source = once(pd.DataFrame({"a": np.arange(N) % 2_000, "d": np.arange(N) % 3 == 0, "e": np.arange(N) % 5 == 0}))
    about = {"start": False, "budget": tacit.Budget(epsilon=1.0, delta=delta), "domain": domain, "data": source}

    with start(tmp_path, **about) as session:
        if first:
            session.cdf("a", share=first)
        with cut_off(monkeypatch, after=1):
            session.start()
        session.cdf("a", share=late, strategy="cells")
        foretold, spent = session.base.cost, session.spent
        found = session.start()
        assert found.cost.atoms == session.spent.atoms - spent.atoms <= foretold.atoms
        asked = [past.question for past in session.history if "release" in past.question or "table" in past.question]
        assert len(asked) == len(set(asked))
        assert session.started or session.base.cost.atoms
        foreseen = session.dry_run(tacit.count(d=True, a=(3, 40)))
        before = session.spent
        session.ask(tacit.count(d=True, a=(3, 40)))
        assert session.spent.atoms - before.atoms <= foreseen.cost_at_most.atoms
    with start(tmp_path, **about) as again:
        assert again.base.cost.atoms == 0


def test_a_late_start_of_another_process_is_learned_as_there(tmp_path: Path) -> None:
    raised = tacit.Budget(epsilon=3.0, delta=1e-9)
    with start(tmp_path, start=False) as one:
        spend(one, 0.91)
        one.ask(QUESTIONS["a value"])
        with start(tmp_path, start=False) as other:
            other.extend(raised)
            other.start()
            questions = [QUESTIONS["a range"], QUESTIONS["four conditions"]]
            told = [str(other.ask(question)).split(" (")[0] for question in questions]
            assert [str(one.ask(question)).split(" (")[0] for question in questions] == told
            assert [a.tobytes() for a in one.arrays()] == [a.tobytes() for a in other.arrays()]


def test_attributes_of_one_value_have_nothing_to_start_from(tmp_path: Path) -> None:
    domain = tacit.Domain({"a": tacit.integer(4, 4)})
    with start(tmp_path, start=False, domain=domain, data=once(pd.DataFrame({"a": [4] * 50}))) as session:
        assert session.started
        assert session.start().cost.atoms == 0


def test_the_most_that_the_first_question_costs_holds_where_the_start_is_cheaper(tmp_path: Path) -> None:
    """Without sums to certify the start costs less than was foretold, and a gate and an answer fit after all."""
    domain = tacit.Domain({name: tacit.category(["x", "y", "z"]) for name in "abcde"})
    rows = pd.DataFrame({name: np.random.default_rng(ord(name)).choice(["x", "y", "z"], 900) for name in "abcde"})
    about = {"domain": domain, "data": once(rows), "warm": 0.6, "certify": 0.2, "hits": 1}
    with start(tmp_path, **about) as session:
        assert session._curator is not None
        loss = Loss(session.total.measure, int(session.total.atoms * 0.0137))
        session._curator.measure([tacit.count(a="x", b="y", c="z").bind(domain)], loss)
        asked = tacit.count(a="x", b="x", c="x", d="x", e="y")
        foreseen, before = session.dry_run(asked), session.spent
        session.ask(asked)
        assert session.spent.atoms - before.atoms <= foreseen.cost_at_most.atoms


def test_a_start_whose_missing_table_was_bought_by_itself_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain = tacit.Domain({"a": tacit.integer(0, 4_999), "d": tacit.boolean()})
    source = once(pd.DataFrame({"a": np.arange(N) % 5_000, "d": np.arange(N) % 3 == 0}))
    about = {"start": False, "domain": domain, "data": source}

    with start(tmp_path, **about) as session:
        with cut_off(monkeypatch, after=1):
            session.start()
        session.cdf("a", share=0.1, strategy="two levels")
        foretold = session.base.cost
        found = session.start()
        assert 0 < found.cost.atoms <= foretold.atoms
        assert found.certified
        assert (session.started, session.base.cost.atoms) == (True, 0)


def test_a_session_that_goes_on_without_its_start_publishes_what_it_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = {"start": False, "budget": tacit.Budget(epsilon=1.0)}

    with start(tmp_path, **about) as session:
        with cut_off(monkeypatch, after=2):
            session.start()
        session.cdf("a", share=0.6)
        assert session.started  # the rest can no longer be paid
        asked = [QUESTIONS["a value"], QUESTIONS["a range"], QUESTIONS["missing"]]
        told = [session.ask(question).value for question in asked]
        session.publish(tmp_path / "p.jsonl")
    reading = tacit.read(tmp_path / "p.jsonl")
    assert [reading.ask(question).value for question in asked] == told
    assert (reading.started, reading.base.cost.atoms) == (True, 0)


def test_attributes_of_very_many_bins_and_few_rows_have_a_start(tmp_path: Path) -> None:
    """Whose tree would get nothing of so small a budget: it is left out."""
    domain = tacit.Domain({"a": tacit.integer(0, 4_999), "d": tacit.boolean()})
    source = once(pd.DataFrame({"a": np.arange(500), "d": np.arange(500) % 3 == 0}))
    small = tacit.Budget(epsilon=0.1, delta=1e-9)
    with start(tmp_path, start=False, domain=domain, data=source, budget=small) as session:
        foretold = session.base.cost
        assert 0 < session.start().cost.atoms <= foretold.atoms
        assert session.started


def test_no_question_buys_a_histogram_that_can_be_paid_since_a_moment_ago(tmp_path: Path) -> None:
    with start(tmp_path, start=False, mechanism="histogram", warm=None, certify=None, hits=None) as session:
        spend(session, 0.5)
        mechanism = session._mechanism
        with pytest.raises(NotStarted):
            mechanism.estimate([QUESTIONS["a value"].bind(DOMAIN)])
        spent = session.spent
        assert session.start().cost.atoms == session.spent.atoms - spent.atoms > 0
        assert session.ask(QUESTIONS["a value"]).cost.atoms == 0


WIDE = tacit.Domain({"a": tacit.integer(0, 11), **{f"k{i}": tacit.category(["x", "y", "z"]) for i in range(5)}})


def wide_rows() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    a = rng.integers(0, 12, N)
    return pd.DataFrame({"a": a, **{f"k{i}": rng.choice(["x", "y", "z"], N, p=[0.6, 0.3, 0.1]) for i in range(5)}})


def at_once(answer: Any) -> float:
    return next(bar.width for bar in answer.bars if bar.about.at_once)


def test_more_conditions_than_are_certified_have_no_more_rows_than_some_of_them(tmp_path: Path) -> None:
    """Whatever the noise is: the answer is free, and its bar reaches to 0 and to the least end of its parts."""
    rng, asked = np.random.default_rng(9), []
    with start(tmp_path, data=wide_rows(), domain=WIDE) as session:
        session.start()
        most, together = base_of(session).share.certificate.attributes, base_of(session)._most["boxes"]
        before = session.spent
        for _ in range(30):
            low = int(rng.integers(0, 12))
            where: dict[str, Any] = {"a": (low, int(rng.integers(low, 12)))} if rng.random() < 0.8 else {}
            where |= {f"k{i}": str(rng.choice(["x", "y", "z"])) for i in range(5)}
            found = session.ask(tacit.count(**where))
            if len(where) <= most or where.get("a") == (0, 11):
                continue
            asked.append(found.value)
            parts = [dict(some) for some in combinations(where.items(), min(together, len(where)))]
            answers = [session.ask(tacit.count(**part)) for part in parts]
            end = min(one.value + at_once(one) for one in answers)
            assert found.error == max(1, found.value, end - found.value)
            assert at_once(found) == found.error
            assert 0 <= found.value <= end
        assert session.spent == before
        assert len(asked) > 10
        tacit.publish(session, tmp_path / "p.jsonl")
        again = tacit.read(tmp_path / "p.jsonl").ask(tacit.count(**where))
        assert (again.value, again.error) == (found.value, found.error)


def test_a_bar_that_is_wider_than_the_gates_is_not_shown_in_its_place(tmp_path: Path) -> None:
    with start(tmp_path, data=wide_rows(), domain=WIDE) as session:
        session.start()
        base, asked = base_of(session), session.question(tacit.count(a=(0, 5), **{f"k{i}": "x" for i in range(5)}))
        assert isinstance(asked, Count)
        found = base.bounded(asked.query, np.inf)
        assert found is not None
        width = found.facts.bars[0].width
        assert base.bounded(asked.query, width) == found
        assert base.bounded(asked.query, width - 1) is None
        many = session.question(tacit.count(a=(0, 10), **{f"k{i}": ["x", "y"] for i in range(5)}))
        assert isinstance(many, Count)
        nearly_all = base.bounded(many.query, np.inf)
        assert nearly_all is not None
        # Half of the rows, and a few hundred more at most: so it is farther from 0 than from that.
        assert nearly_all.facts.bars[0].width == nearly_all.value > N / 4
        other_rows = base.bounded(~asked.query, np.inf)
        assert other_rows is not None
        assert (other_rows.value, other_rows.facts) == (N - found.value, found.facts)
        weighted = Query.weighted(WIDE, ["a"], np.linspace(0, 1, 12).tolist()) & asked.query
        assert base.bounded(weighted, np.inf) is None


def test_a_long_conjunction_and_its_complement_are_one_question(tmp_path: Path) -> None:
    """Neither goes through a gate, whichever is asked first."""
    where = " AND ".join([*(f"k{i} = 'x'" for i in range(5)), "a < 6"])
    with start(tmp_path, data=wide_rows(), domain=WIDE) as session:
        session.start()
        n, spent = session.rows, session.spent
        for first, second in ((f"NOT ({where})", where), (where, f"NOT ({where})")):
            both = [session.ask(f"SELECT COUNT(*) FROM data WHERE {one}") for one in (first, second)]
            assert both[0].value + both[1].value == n
            assert both[0].error == both[1].error
        assert session.spent == spent
