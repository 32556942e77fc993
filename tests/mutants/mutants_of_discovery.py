"""Planted bugs in the look before a domain is declared: values told of which a neighbour has none."""

from __future__ import annotations

from mutant import plant

_LOOK, _PRICE, _BOUNDS = "trusted/discovery.py", "exact/price.py", "exact/bounds.py"
_NOISY = "trusted/test_look.py::test_what_is_told_of_a_value_is_its_count_with_noise"
_CHANCE = "exact/test_discovery_pmf.py::test_whatever_one_person_brings_is_told_with_a_chance_of_delta_at_most"

DISCOVERY = (
    plant(
        "columns that are looked up aloud",
        "messages of the engines are never shown",
        "load/__init__.py",
        "return quietly(lambda: self.engine.columns(domain, person), self.engine.failure)",
        "return self.engine.columns(domain, person)",
        "test_discovery.py::test_what_an_engine_says_of_rows_is_never_shown",
        "contracts/test_engine_names.py::test_nobody_asks_an_engine_but_quietly",
    ),
    plant(
        "every value told",
        "a value that one row has is told with a chance of delta at most",
        _LOOK,
        "if n >= least]",
        "if n >= 0]",
        _NOISY,
    ),
    plant(
        "values told by their true counts",
        "a value that one row has is told with a chance of delta at most",
        _LOOK,
        "noisy = add_noise(tally.counts, noise).tolist()",
        "noisy = tally.counts.tolist()",
        _NOISY,
    ),
    plant(
        "discovery after a rollback",
        "the deltas of all looks add up to what was set aside",
        _LOOK,
        'next(ledger.log.lines(kinds=("override",)), None) is not None',
        "ledger.aside is None",
        "trusted/test_look.py::test_after_an_accepted_rollback_no_values_are_discovered",
    ),
    plant(
        "one delta for every look",
        "the deltas of all looks add up to what was set aside",
        _PRICE,
        "delta = aside / among / 2.0 ** min(intent, 1000)",
        "delta = aside / among / 2.0",
        "exact/test_discovery_pmf.py::test_the_deltas_of_all_looks_add_up_to_what_was_set_aside",
    ),
    plant(
        "one delta for every column",
        "the deltas of all looks add up to what was set aside",
        _PRICE,
        "delta = aside / among / 2.0 ** min(intent, 1000)",
        "delta = aside / 2.0 ** min(intent, 1000)",
        "exact/test_discovery_pmf.py::test_the_deltas_of_all_looks_add_up_to_what_was_set_aside",
    ),
    plant(
        "a threshold for values that nobody has",
        "a value that one row has is told with a chance of delta at most",
        _BOUNDS,
        "math.erfc((t - move - 1) / (scale * math.sqrt(2)))",
        "math.erfc(t / (scale * math.sqrt(2)))",
        _CHANCE,
    ),
    plant(
        "one value of a person who brings several",
        "a value that one row has is told with a chance of delta at most",
        _BOUNDS,
        "return values * math.erfc(",
        "return math.erfc(",
        _CHANCE,
    ),
    plant(
        "delta spent twice",
        "what is set aside of delta is left out of the total",
        _PRICE,
        "delta = math.nextafter(budget.delta - aside, 0.0) if aside else budget.delta",
        "delta = budget.delta",
        "trusted/test_look.py::test_a_discovery_does_not_make_the_total_larger",
    ),
    plant(
        "counts of values that move by 1",
        "the counts of all values of a column move by two when a row is replaced",
        _PRICE,
        "return price(noise, Sensitivity(2, 2).times(rows_per_person), 1, measure)",
        "return price(noise, Sensitivity(1, 1).times(rows_per_person), 1, measure)",
        "exact/test_discovery_pmf.py::test_what_is_told_costs_no_more_than_it_is_charged",
    ),
)
