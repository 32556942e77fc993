"""Questions that change while they are read, arrays that share their memory, amounts that lie about their measure.

What an asker hands over runs the asker's code whenever it is looked at. Each test here plants such code, and fails when
the curator looks twice, keeps what is not its own, or shows a private value when something goes wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tacit
from curators import curating
from tacit.errors import AnswerWithheld, InvalidBudget, InvalidQuery
from tacit.model.answer import Told
from tacit.model.budget import Budget, Loss
from tacit.model.domain import Domain
from tacit.model.expression import Expression
from tacit.model.query import GRID, Factor, Query
from tacit.model.statistic import Statistic, Unbound
from tacit.model.workload import marginal
from tacit.session import Session
from tacit.trusted import curator as curator_module
from tacit.trusted import lens as lens_module
from tacit.trusted import questions as questions_module
from tacit.trusted.curator import Curator, Disagreement, Distance, own
from tacit.trusted.lens import own_lens
from tacit.trusted.loss import gate_scales
from tacit.trusted.questions import plain

DOMAIN = Domain(
    {
        "sex": tacit.category(["F", "M"]),
        "age": tacit.integer(0, 5, missing="unknown"),
        "city": tacit.category(["x", "y", "z"]),
    }
)
N = 100
WOMEN = Query.among(DOMAIN, "sex", [0])  # 70 of them
IN_X = Query.among(DOMAIN, "city", [0])  # 34
EPSILON = Loss.of("epsilon", 0.5)
BUDGET = Budget(epsilon=10.0, delta=0.0)


def people() -> pa.Table:
    sexes, cities = ["F"] * 70 + ["M"] * 30, ["xyz"[i % 3] for i in range(N)]
    return pa.table({"sex": sexes, "age": [i % 6 for i in range(N)], "city": cities})


@pytest.fixture
def curator(tmp_path: Path) -> Iterator[Curator]:
    with curating(tmp_path, people(), DOMAIN, BUDGET) as made:
        yield made


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Curator]:
    """One for everything that is refused: nothing is ever spent on it."""
    with curating(tmp_path_factory.mktemp("untouched"), people(), DOMAIN, BUDGET) as made:
        yield made


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("session")
    files: dict[str, Any] = {"ledger": folder / "l.tacit", "anchor": folder / "a.sqlite"}
    with tacit.open(data=people(), domain=DOMAIN, budget=BUDGET, mechanism="direct", questions=20, **files) as opened:
        yield opened


def nothing_happened(curator: Curator) -> bool:
    return curator.spent.atoms == 0 and not list(curator._ledger.log.lines())


# Fields that change while they are read


class Growing(tuple[str, ...]):
    """A scope that makes its factor's grid finer whenever it is walked through."""

    factor: Factor

    def __iter__(self) -> Iterator[str]:
        object.__setattr__(self.factor, "unit", 2**30)
        return super().__iter__()


class Resetting(tuple[Factor, ...]):
    """Factors that look harmless again whenever somebody starts to copy them."""

    def __iter__(self) -> Iterator[Factor]:
        for factor in super().__iter__():
            object.__setattr__(factor, "unit", GRID)
        return super().__iter__()


def growing(name: str, weights: list[int]) -> Factor:
    factor = Factor((name,), np.array(weights, dtype=np.int64), GRID)
    scope = Growing((name,))
    scope.factor = factor
    object.__setattr__(factor, "scope", scope)
    return factor


def heavy() -> Query:
    """Each weight is up to 1024 counts if the first look at the grid is checked and the second one is used."""
    factors = growing("sex", [2**29, 2**30]), growing("age", [2**30 - 1] * 6 + [2**29])
    return Query(Resetting(factors), complement=False)


def test_the_grid_of_a_factor_is_read_once(untouched: Curator) -> None:
    fair = Query((growing("sex", [GRID // 2, GRID]),), complement=False)
    copy = own(fair, DOMAIN)
    assert isinstance(copy, Query)
    assert [factor.unit for factor in copy.factors] == [GRID]
    for use in (lambda: untouched.measure([heavy()], EPSILON), lambda: untouched.find([heavy()])):
        with pytest.raises(InvalidQuery, match="between 0 and 1"):
            use()
    assert nothing_happened(untouched)


class Turning:
    """Weights that put something else in the place of their query's `complement` when they are made an array."""

    def __init__(self) -> None:
        self.query = IN_X

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        object.__setattr__(self.query, "complement", Unsure())
        return np.array([1, 0, 0], dtype=np.uint8)


class Unsure:
    """True where it is asked for a truth value, and 0 where it is written into a key."""

    def __bool__(self) -> bool:
        return True

    def __index__(self) -> int:
        return 0


def test_whether_a_query_is_a_complement_is_read_once(curator: Curator) -> None:
    # Read again, the copy would have the key of those in x, and the answer of those who are not.
    weights = Turning()
    factor = Factor(("city",), np.array([1, 0, 0], dtype=np.uint8), 1)
    object.__setattr__(factor, "weights", weights)
    weights.query = Query((factor,), complement=False)
    copy = own(weights.query, DOMAIN)
    assert isinstance(copy, Query)
    assert copy.complement is False
    assert copy.key == IN_X.key
    assert curator._records.answer(copy) == 34


class Fickle(list[Any]):
    """A list that shows one content to whoever walks through it first, and another one from then on."""

    def __init__(self, first: list[Any], later: list[Any]) -> None:
        super().__init__(later)
        self.first: list[Any] | None = first

    def __iter__(self) -> Iterator[Any]:
        shown, self.first = self.first, None
        return super().__iter__() if shown is None else iter(shown)


def test_a_search_is_remembered_by_the_guesses_that_were_compared(curator: Curator) -> None:
    # Otherwise what was found for a guess of 0 would be read back for a guess of 70.
    first = curator.first_far([WOMEN], Fickle([0.0], [70.0]), 30.0, EPSILON)
    other = curator.first_far([WOMEN], [70.0], 30.0, EPSILON)
    same = curator.first_far([WOMEN], [0.0], 30.0, EPSILON)
    walked = curator.first_far([WOMEN], (guess for guess in [0.0]), 30.0, EPSILON)  # type: ignore[arg-type]
    assert other.receipt != first.receipt
    assert other.cost == first.cost
    assert same.receipt == walked.receipt == first.receipt
    assert same.cost.atoms == walked.cost.atoms == 0


def test_a_search_is_remembered_by_the_questions_that_were_compared(curator: Curator) -> None:
    first = curator.first_far(Fickle([~WOMEN], [WOMEN]), [0.0], 30.0, EPSILON)
    assert curator.first_far([WOMEN], [0.0], 30.0, EPSILON).receipt != first.receipt
    assert curator.first_far([~WOMEN], [0.0], 30.0, EPSILON).receipt == first.receipt


# Arrays that somebody else goes on writing to


class Lender:
    """Makes itself an array by lending its own memory, even to those who ask for a copy."""

    def __init__(self, values: Any) -> None:
        self.memory = np.array(values)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray[Any, Any]:
        return self.memory


def lent_query() -> tuple[Query, Lender]:
    factor, lender = Factor(("city",), np.array([1, 0, 0]), 1), Lender([1, 0, 0])
    object.__setattr__(factor, "weights", lender)
    return Query((factor,), complement=False), lender


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray[Any, Any]]:
    """Every array that the trusted code takes from outside."""
    taken: list[np.ndarray[Any, Any]] = []

    def watched(*given: Any) -> np.ndarray[Any, Any]:
        taken.append(plain(*given))
        return taken[-1]

    for module in (questions_module, lens_module, curator_module):
        monkeypatch.setattr(module, "plain", watched)
    return taken


def test_numpys_own_copy_is_none() -> None:
    # Why `plain` copies what numpy says is a copy. If this fails one day, numpy has changed for the better.
    lender = Lender([1.0, 2.0])
    assert np.shares_memory(np.array(lender, dtype=np.float64, copy=True, subok=False), lender.memory)


@pytest.mark.parametrize("kind", [np.array, np.ma.MaskedArray])
@pytest.mark.parametrize("dtype", [None, np.float64])
def test_a_plain_array_is_nobody_elses(kind: Any, dtype: Any) -> None:
    lender = Lender(0)
    lender.memory = memory = kind([1.0, 2.0])
    ours = plain(lender, dtype)
    assert type(ours) is np.ndarray
    memory[...] = 9.0
    assert ours.tolist() == [1.0, 2.0]


def test_no_copy_shares_memory_with_what_was_lent(
    curator: Curator, copied: list[np.ndarray[Any, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Between the check of such an array and its use somebody else could change it.
    query, weights = lent_query()
    databases, guess = Lender([10.0, 20.0]), Lender([70.0])
    own(query, DOMAIN)
    own_lens(Disagreement(databases, 5.0))  # type: ignore[arg-type]
    monkeypatch.setattr(curator_module, "own", lambda question, domain: question)
    curator.select_worst([WOMEN], [guess], EPSILON)
    lenders = [weights, databases, guess]
    assert [array.tolist() for array in copied] == [lender.memory.tolist() for lender in lenders]
    assert not any(np.shares_memory(array, lender.memory) for array in copied for lender in lenders)


def test_our_copies_do_not_change_with_what_was_lent() -> None:
    query, weights = lent_query()
    databases = Lender([10.0, 20.0])
    copy = own(query, DOMAIN)
    first = own_lens(Disagreement(databases, 5.0))  # type: ignore[arg-type]
    for lender in (weights, databases):
        lender.memory[...] = 3
    assert isinstance(copy, Query)
    assert copy.factors[0].weights.tolist() == [1, 0, 0]
    assert isinstance(first, Disagreement)
    assert first.values.tolist() == [10 * GRID, 20 * GRID]


# Amounts that are not what they say


class Lie(str):
    """Equal to nothing and different from nothing: no branch on the measure is the right one."""

    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return False

    def __ne__(self, other: object) -> bool:
        return False


class Discounted(Loss):
    """Of a type that could answer otherwise when it is looked at again."""

    __slots__ = ()


USES: dict[str, Callable[[Curator, Loss], object]] = {
    "measure": lambda curator, loss: curator.measure([WOMEN], loss),
    "compare": lambda curator, loss: curator.compare(WOMEN, Distance(0.0), 50.0, loss),
    "first_far": lambda curator, loss: curator.first_far([WOMEN], [0.0], 50.0, loss),
    "select_worst": lambda curator, loss: curator.select_worst([WOMEN, ~WOMEN], [0.0, 0.0], loss),
    "open_gate": lambda curator, loss: curator.open_gate(50.0, loss),
    "expected_noise": lambda curator, loss: curator.expected_noise(WOMEN, loss),
}
ATOMS = EPSILON.atoms


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(
    "loss",
    [
        Loss(Lie("epsilon"), ATOMS),  # type: ignore[arg-type]
        Loss(Lie("rho"), ATOMS),  # type: ignore[arg-type]
        Loss(np.str_("epsilon"), ATOMS),  # type: ignore[arg-type]
        Loss("rho", ATOMS),
        Discounted("epsilon", ATOMS),
        Loss("epsilon", True),
        Loss("epsilon", np.int64(ATOMS)),  # type: ignore[arg-type]
        Loss("epsilon", float(ATOMS)),  # type: ignore[arg-type]
        Loss("epsilon", 0),
        Loss("epsilon", -ATOMS),
        None,
        0.5,
    ],
    ids=repr,
)
def test_an_amount_that_is_not_plainly_one_is_refused(untouched: Curator, use: str, loss: Any) -> None:
    # Noise for rho, charged as if it were epsilon, would cost a hundredth of its price.
    with pytest.raises(InvalidBudget):
        USES[use](untouched, loss)
    assert nothing_happened(untouched)


@pytest.mark.parametrize("use", USES)
def test_an_honest_amount_is_taken(curator: Curator, use: str) -> None:
    USES[use](curator, Loss("epsilon", ATOMS))
    assert curator.spent.atoms <= ATOMS
    assert (curator.spent.atoms > 0) == (use != "expected_noise")


# What a session is handed by `bind`


class Forged(Unbound):
    """Binds to whatever it was made with."""

    def bind(self, domain: Domain) -> Any:
        return self.make(domain)


class ForgedRows(Expression):
    """The same among conditions."""

    def __init__(self, made: object) -> None:
        self.made = made

    def truth(self, domain: Domain, wanted: bool) -> Any:
        return self.made


class Heavier(Query):
    pass


ASK: list[Callable[[Session, Any], object]] = [
    lambda session, question: session.ask(question),
    lambda session, question: session.ask_many([question]),
    lambda session, question: session.cost_at_most(question),
    lambda session, question: session.table("city", where=question),
]


@pytest.mark.parametrize("ask", ASK, ids=["ask", "ask_many", "cost_at_most", "table"])
@pytest.mark.parametrize("wrap", [lambda made: Forged("x", lambda _: made), ForgedRows], ids=["statistic", "rows"])
@pytest.mark.parametrize(
    "forge",
    [heavy, lambda: Heavier(WOMEN.factors, complement=False), lambda: marginal(DOMAIN, "sex"), lambda: "SELECT 1"],
    ids=["heavy", "subclass", "table", "text"],
)
def test_what_an_expression_binds_to_is_checked(session: Session, ask: Any, wrap: Any, forge: Any) -> None:
    with pytest.raises(InvalidQuery):
        ask(session, wrap(forge()))


@pytest.mark.parametrize("ask", ASK[:2], ids=["ask", "ask_many"])
def test_what_an_expression_binds_to_is_copied(session: Session, ask: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # A field of its own that hides `evaluate` would decide what is told, and kept, as the honest question's answer.
    bound = tacit.quantile_distance("age", 0.5, low=4).bind(DOMAIN)
    object.__setattr__(bound, "evaluate", lambda tables: np.full(len(tables), 99))
    reached: list[Statistic] = []
    estimate = session._mechanism.estimate

    def spy(asked: Any) -> Any:
        reached.extend(asked)
        return estimate(asked)

    monkeypatch.setattr(session._mechanism, "estimate", spy)
    monkeypatch.setattr(session._curator, "find", lambda questions: [None] * len(questions))  # as if never asked
    ask(session, Forged("x", lambda _: bound))
    assert reached == [bound]
    assert reached[0] is not bound
    assert set(vars(reached[0])) == {"name", "scope", "arguments"}


# A gate stands where it was paid to stand


def test_a_gate_cannot_be_moved(curator: Curator) -> None:
    gate = curator.open_gate(10.0, EPSILON)
    scales = tuple(scale / GRID for scale in gate_scales(EPSILON, GRID))
    for name in ("threshold", "threshold_scale", "comparison_scale"):
        with pytest.raises(AttributeError):
            setattr(gate, name, 1e-6)
    assert (gate.threshold, gate.threshold_scale, gate.comparison_scale) == (10.0, *scales)


@pytest.mark.parametrize("threshold", [True, np.float64(5), "5", None, float("nan"), 2.0**40], ids=repr)
def test_a_gate_stands_at_a_plain_count(untouched: Curator, threshold: Any) -> None:
    with pytest.raises(InvalidQuery):
        untouched.open_gate(threshold, EPSILON)
    assert nothing_happened(untouched)


# What is told


@pytest.mark.parametrize("half_width", [-1, True, 3.0, np.int64(3), "narrow", float("nan"), {"a": 1}], ids=repr)
def test_a_half_width_is_a_whole_number_of_steps(untouched: Curator, half_width: Any) -> None:
    with pytest.raises(InvalidQuery, match="half width"):
        untouched.tell([(~WOMEN, 1, 2, "fine"), (WOMEN, 1, half_width, "not fine")])
    assert nothing_happened(untouched)


@pytest.mark.parametrize("half_width", [None, 0, 7])
def test_an_honest_half_width_is_kept(curator: Curator, half_width: int | None) -> None:
    told = curator.tell([(WOMEN, 1, half_width, "")])[0]
    assert isinstance(told, Told)
    assert told.half_width == half_width


# What a traceback shows


def inside(shown: object) -> Iterator[int]:
    """The whole numbers in a value, as a report that prints local variables would show them."""
    if isinstance(shown, int | np.integer):
        yield int(shown)
    elif isinstance(shown, dict):
        yield from inside(list(shown.values()))
    elif isinstance(shown, list | tuple | set | np.ndarray):
        for part in shown:
            yield from inside(part)


def locals_of(trace: TracebackType | None) -> Iterator[tuple[str, str, int]]:
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        if frame.f_code.co_filename == curator_module.__file__:
            for name, value in frame.f_locals.items():
                yield from ((frame.f_code.co_name, name, number) for number in inside(value))


def fail_to_settle(curator: Curator, monkeypatch: pytest.MonkeyPatch, use: str) -> list[tuple[str, str, int]]:
    def broken(*_: Any, **__: Any) -> Any:
        raise AnswerWithheld("could not be stored")

    monkeypatch.setattr(curator._ledger, "settle", broken)
    with pytest.raises(AnswerWithheld) as caught:
        USES[use](curator, EPSILON)
    assert caught.value.__context__ is None
    return list(locals_of(caught.value.__traceback__))


TRUE = {70, 70 * GRID, 30, 30 * GRID}  # of either sex, in counts and in steps: also the scores against guesses of 0


@pytest.mark.parametrize("use", ["measure", "compare", "first_far", "select_worst"])
def test_no_true_value_is_left_in_a_traceback(curator: Curator, monkeypatch: pytest.MonkeyPatch, use: str) -> None:
    monkeypatch.setattr(curator_module, "add_noise", lambda values, noise: values + 12_345)
    shown = fail_to_settle(curator, monkeypatch, use)
    assert shown  # the walk sees the curator's frames
    assert [found for found in shown if found[2] in TRUE] == []


def test_the_noise_of_a_search_is_not_left_in_a_traceback(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    # Who knows the threshold's noise knows more than the search was paid to tell.
    monkeypatch.setattr(curator_module, "draw_geometric", lambda scale, size: np.full(size, 987_654_321))
    assert [found for found in fail_to_settle(curator, monkeypatch, "first_far") if found[2] == 987_654_321] == []


def test_planted_truths_in_a_traceback_are_found(curator: Curator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curator_module, "add_noise", lambda values, noise: values)  # so what was drawn is the truth
    assert ("_measure", "drawn", 70) in fail_to_settle(curator, monkeypatch, "measure")
