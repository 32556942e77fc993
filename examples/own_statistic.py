"""A question of your own that is no count: how unevenly patients are spread over the wards.

    python examples/own_statistic.py

The owner vouches that one replaced row moves the value by at most one count. Here that is so: each entry of the table
moves by at most one, the largest and the smallest of them too, and half of their difference, rounded down, by one.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import tacit

domain = tacit.Domain({"ward": tacit.category(["north", "east", "south"]), "ill": tacit.boolean()})


@tacit.statistic("half the gap between the fullest and the emptiest ward", domain, "ward")
def unevenness(tables: np.ndarray) -> np.ndarray:
    """One database for each entry of the first axis, counts by ward in the second."""
    return (tables.max(axis=1) - tables.min(axis=1)) // 2


# A function that one row can move by two is refused, with a counterexample, before it can be asked.
try:

    @tacit.statistic("the whole gap", domain, "ward")
    def gap(tables: np.ndarray) -> np.ndarray:
        return tables.max(axis=1) - tables.min(axis=1)

except tacit.InvalidQuery as refused:
    print(refused)

rng = np.random.default_rng(4)
rows = pd.DataFrame({"ward": rng.choice(["north", "east", "south"], 9_000, p=[0.5, 0.3, 0.2]), "ill": True})
with (
    tempfile.TemporaryDirectory() as folder,
    tacit.open(
        data=rows,
        domain=domain,
        budget=tacit.Budget(epsilon=1.0, delta=1e-9),
        ledger=Path(folder) / "wards.tacit",
        anchor=Path(folder) / "wards.anchor",
        mechanism="direct",
        questions=10,
    ) as session,
):
    print("half the gap:", session.ask(unevenness()))
