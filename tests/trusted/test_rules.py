"""The rules of the ledger are one function: a bug in it shows when the ledger spends, and again when it is verified."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ledger_tools import terms

from tacit.errors import BudgetExhausted, LedgerError
from tacit.model.budget import Loss
from tacit.store.chain import Draft, Line, Mark, State, Step, Unsound, follow, mark, seal
from tacit.trusted import ledger as ledger_module
from tacit.trusted.ledger import Ledger, Outcome
from tacit.trusted.rules import step

TOTAL = 30
ORIGIN = Mark(0, "00" * 32, 0)
Rules = Callable[..., State]


# -- the function itself ----------------------------------------------------------------------------------------------

drafts = st.builds(
    Draft,
    st.sampled_from(["intent", "measured", "told", "dropped", "shut", "override", "extended", "outcome"]),
    st.integers(-1, 12),
    st.just("{}"),
    st.none(),
    st.none() | st.integers(1, 12),
)


@given(st.lists(drafts, max_size=12))
def test_what_is_spent_is_what_is_charged_and_what_is_open(given: list[Draft]) -> None:
    """An independent account: the charges of all outcomes and overrides, and the reservations that have none."""
    state, charged, reserved = State(0, {}), 0, dict[int, int]()
    for seq, draft in enumerate(given, start=1):
        try:
            state = step(state, seq, draft, TOTAL)
        except Unsound:
            break
        if draft.kind == "intent":
            reserved[seq] = draft.atoms
        elif draft.kind == "extended":
            assert draft.intent is None
        else:
            charged += draft.atoms
            reserved.pop(draft.intent or 0, None)
        assert state.spent == charged + sum(reserved.values())
        assert dict(state.open) == reserved
        carried = sum(d.atoms for d in given[:seq] if d.kind == "override")
        raised = sum(d.atoms for d in given[:seq] if d.kind == "extended")
        assert state.raised == raised
        assert state.spent <= TOTAL + carried + raised


def test_a_closed_ledger_buys_nothing_whatever_is_put_back() -> None:
    state = step(State(0, {}), 1, Draft("intent", 10, "{}"), TOTAL)
    for wrong in (0, 19, 21):
        with pytest.raises(Unsound):
            step(state, 2, Draft("closed", wrong, "{}"), TOTAL)
    state = step(state, 2, Draft("closed", 20, "{}"), TOTAL)
    assert (state.spent, state.closed) == (TOTAL, True)
    state = step(state, 3, Draft("measured", 4, "{}", "a", 1), TOTAL)  # it was under way, and is paid for
    assert state.spent == TOTAL - 6
    for draft in (Draft("intent", 1, "{}"), Draft("extended", 5, "{}"), Draft("closed", 6, "{}")):
        with pytest.raises(Unsound):
            step(state, 4, draft, TOTAL)
    step(state, 4, Draft("told", 0, "{}", "b"), TOTAL)


def test_a_ledger_that_continues_another_begins_with_what_that_one_spent() -> None:
    first = Draft("carried", 10, "{}")
    assert step(State(0, {}), 1, first, TOTAL, continues=True).spent == 10
    for seq, draft, continues in ((1, Draft("intent", 5, "{}"), True), (1, first, False), (2, first, True)):
        with pytest.raises(Unsound):
            step(State(0, {}), seq, draft, TOTAL, continues=continues)
    with pytest.raises(Unsound):
        step(State(0, {}), 1, Draft("carried", TOTAL + 1, "{}"), TOTAL, continues=True)


# -- mutants of it ----------------------------------------------------------------------------------------------------


def forgets_the_total(state: State, seq: int, line: Draft | Line, total: int, **_: bool) -> State:
    return step(state, seq, line, 10**18)


def forgets_what_was_spent(state: State, seq: int, line: Draft | Line, total: int, **_: bool) -> State:
    if line.kind == "intent":
        return step(state._replace(spent=0), seq, line, total)._replace(spent=state.spent + line.atoms)
    return step(state, seq, line, total)


def settles_twice(state: State, seq: int, line: Draft | Line, total: int, **_: bool) -> State:
    if line.intent is not None and line.intent not in state.open and line.intent != state.settling:
        state = state._replace(open={**state.open, line.intent: 10})
    return step(state, seq, line, total)


def charges_more_than_was_reserved(state: State, seq: int, line: Draft | Line, total: int, **_: bool) -> State:
    if line.intent == state.settling and line.intent is not None:
        state = state._replace(room=10**18)
    return step(state, seq, line, total)


def charges_what_nobody_reserved(state: State, seq: int, line: Draft | Line, total: int, **_: bool) -> State:
    if line.kind == "told" and line.intent is None:
        return state._replace(spent=state.spent + line.atoms)
    return step(state, seq, line, total)


def gives_back(state: State, seq: int, line: Draft | Line, total: int, **_: bool) -> State:
    if line.atoms < 0:
        return state._replace(spent=state.spent + line.atoms)
    return step(state, seq, line, total)


MUTANTS = [
    forgets_the_total,
    forgets_what_was_spent,
    settles_twice,
    charges_more_than_was_reserved,
    charges_what_nobody_reserved,
    gives_back,
]


def check_spending(rules: Rules, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a ledger lets its callers do."""
    monkeypatch.setattr(ledger_module, "step", rules)
    with Ledger.open(folder / "people.tacit", make="new", **{**terms(folder), "total": Loss("epsilon", TOTAL)}) as book:
        first = book.reserve(Loss("epsilon", 10), purpose="count")
        for outcomes in (
            [Outcome("a", 6, "measured", "1"), Outcome("b", 5, "measured", "1")],
            [Outcome("a", -1, "measured", "1")],
        ):
            with pytest.raises(ValueError, match="do not settle"):
                book.settle(first, outcomes)
        book.settle(first, [Outcome("a", 6, "measured", "1"), Outcome("b", 4, "measured", "1")])
        for intent, outcome in ((None, Outcome("c", 1, "told", "1")), (first, Outcome("d", 10, "measured", "1"))):
            with pytest.raises(ValueError, match="do not settle"):
                book.settle(intent, [outcome])
        book.reserve(Loss("epsilon", 20), purpose="the rest")
        with pytest.raises(BudgetExhausted):
            book.reserve(Loss("epsilon", 1), purpose="more")
        assert (book.spent.atoms, book.log.verify()) == (TOTAL, 4)


def check_verifying(rules: Rules) -> None:
    """What a history may say. Each forged one is sealed well, and breaks one rule."""
    sound = (Draft("intent", 10, "{}"), Draft("measured", 6, "{}", "a", 1), Draft("measured", 4, "{}", "b", 1))
    assert verified(rules, *sound, Draft("intent", 20, "{}"), Draft("told", 0, "{}", "c")) == TOTAL
    for forged in (
        (Draft("intent", 31, "{}"),),
        (*sound, Draft("intent", 21, "{}")),
        (*sound, Draft("told", 0, "{}", "c"), Draft("measured", 10, "{}", "d", 1)),
        (*sound[:2], Draft("measured", 5, "{}", "b", 1)),
        (Draft("told", 1, "{}", "c"),),
        (*sound, Draft("told", -10, "{}", "c")),
    ):
        with pytest.raises(LedgerError, match=f"entry {len(forged)} does not follow"):
            verified(rules, *forged)


def verified(rules: Rules, *drafts: Draft) -> int:
    """The total of a history that was sealed by somebody who knows no rules but how totals are written."""
    at, lines, open_ = ORIGIN, list[Line](), dict[int, int]()
    for seq, draft in enumerate(drafts, start=1):
        spent = at.spent + draft.atoms - open_.pop(draft.intent or 0, 0)
        if draft.kind == "intent":
            open_[seq] = draft.atoms
        elif draft.intent is not None and spent == at.spent + draft.atoms and len(drafts) == 5 and seq == 5:
            spent -= 10  # put back once more, as the mutant would
        lines.append(seal(at, draft, spent, "now", seq=seq))
        at = mark(lines[-1])
    one: Step = partial(_of, rules)
    return follow(lines, ORIGIN, State(0, {}), one)[0].spent


def _of(rules: Rules, state: State, seq: int, line: Draft | Line) -> State:
    return rules(state, seq, line, TOTAL)


def test_the_rules_pass_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_spending(step, tmp_path, monkeypatch)
    check_verifying(step)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_mutant_is_caught_when_spending(mutant: Rules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_spending(mutant, tmp_path, monkeypatch)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_mutant_is_caught_when_verifying(mutant: Rules) -> None:
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        check_verifying(mutant)
