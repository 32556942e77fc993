"""The owner raises the budget beside a server that is running: it goes on with the larger one, and says so."""

from __future__ import annotations

from serving import Served

import tacit
from tacit.config import read_config


def test_a_running_server_goes_on_with_the_larger_budget(served: Served) -> None:
    config = read_config(served.folder / "people.toml")
    before = served.mia.get("/v1/people/budget").json()
    assert (before["extensions"], before["continues"], before["continued_by"]) == ([], None, None)
    first = config.budget
    larger = tacit.Budget(epsilon=2 * first.epsilon, delta=first.delta)
    done = tacit.extend(config.ledger, larger, anchor=config.options.get("anchor"))
    after = served.mia.get("/v1/people/budget").json()
    assert after["budget"]["epsilon"] == larger.epsilon
    assert after["total"] == done.total.to_dict()
    assert [(one["entry"], one["seal"]) for one in after["extensions"]] == [(done.receipt.entry, done.receipt.seal)]
    # A quota that is named is a share of the budget as it is now.
    assert after["quota"]["share"] == before["quota"]["share"] == 0.1
    assert after["quota"]["of"]["gdp"] > before["quota"]["of"]["gdp"]
    cost = served.ask({"count": {"sex": "F"}})["cost"]
    assert cost["gdp"] <= sum(before["total"].values()) / 20  # prices stay shares of the first budget
