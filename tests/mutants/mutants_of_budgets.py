"""Planted bugs in how a budget is raised."""

from __future__ import annotations

from mutant import plant

BUDGETS = (
    plant(
        "an extension that gives budget back",
        "raising the budget changes nothing that was spent",
        "trusted/rules.py",
        "return rested._replace(raised=state.raised + line.atoms)",
        "return rested._replace(spent=max(0, state.spent - line.atoms))",
        "test_extension.py::test_a_larger_budget_is_worth_what_it_would_have_been_worth_from_the_first",
    ),
    plant(
        "an extension that settles a reservation",
        "only outcomes settle an intent",
        "trusted/rules.py",
        'line.kind == "extended" and line.intent is None',
        'line.kind == "extended"',
        "trusted/test_rules.py::test_what_is_spent_is_what_is_charged_and_what_is_open",
    ),
    plant(
        "an extension counted twice",
        "what was added is added once",
        "trusted/rules.py",
        "total + state.raised)",
        "total + 2 * state.raised)",
        "test_extension.py::test_prices_stay_and_there_are_as_many_more_questions",
    ),
    plant(
        "extensions forgotten when a ledger is opened",
        "what the owner added stays",
        "store/log.py",
        "raised = rows.raised_by(db, start.seq)",
        "raised = 0",
        "test_extension.py::test_prices_stay_and_there_are_as_many_more_questions",
    ),
    plant(
        "a budget raised by what it is worth by itself",
        "the larger budget is for all that was ever released",
        "exact/price.py",
        "more = total(budget, whole.measure, aside=aside) - whole",
        "more = total(budget, whole.measure, aside=aside)",
        "test_extension.py::test_a_larger_budget_is_worth_what_it_would_have_been_worth_from_the_first",
    ),
    plant(
        "the delta of discovered values spent twice",
        "what is kept of delta for values is in no total",
        "exact/price.py",
        "more = total(budget, whole.measure, aside=aside) - whole",
        "more = total(budget, whole.measure) - whole",
        "test_extension.py::test_what_was_kept_of_delta_for_values_is_not_given_out_again",
    ),
    plant(
        "a published extension that is believed",
        "a published file states what each budget is worth",
        "public/check.py",
        "raised_to(found.header.budget, declared.total, decisions(found.lines),",
        "raised_to(found.header.budget, declared.total, [],",
        "test_extension.py::test_a_published_extension_adds_what_its_budget_is_worth",
    ),
    plant(
        "a raised budget whose early gates are forgotten",
        "the bar for all free answers has one chance of being wrong, for all gates ever",
        "release/online.py",
        "            chance -= (before - opened) / most\n",
        "",
        "test_extension.py::test_the_bar_for_all_free_answers_divides_one_chance_among_all_gates_ever",
    ),
)
