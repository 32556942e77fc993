"""People with several rows: a hospital's visits, where a patient, with all of their visits, is what is protected.

python examples/hospital.py
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import tacit

rng = np.random.default_rng(2)
patients, visits = 8_000, 20_000
of = rng.integers(0, patients, visits)  # whose visit it is
visit = pd.DataFrame(
    {
        "patient": of,
        "ward": rng.choice(["surgery", "heart", "children"], visits, p=[0.5, 0.3, 0.2]),
        "age": 18 + (of * 7919) % 70,
        "nights": np.minimum(rng.geometric(0.3, visits), 14),
    }
)
domain = tacit.Domain(
    {
        "ward": tacit.category(["surgery", "heart", "children"]),
        "age": tacit.integer(0, 99, width=10),
        "nights": tacit.integer(1, 14, clamp=True),  # longer stays count as 14
    }
)
budget = tacit.Budget(epsilon=2.0, delta=1e-9)

# At most three visits of each patient are counted. Noise is three times as wide as for a single row: a smaller bound
# leaves out visits of those who come often, a larger one drowns all answers. Choose it from what you know about any
# such table, before you look at this one.
with (
    tempfile.TemporaryDirectory() as folder,
    tacit.open(
        data=visit,
        domain=domain,
        budget=budget,
        ledger=Path(folder) / "visits.tacit",
        anchor=Path(folder) / "visits.anchor",
        person="patient",
        rows_per_person=3,
        mechanism="direct",
        questions=20,
    ) as session,
):
    print(f"{session.rows:,} of {visits:,} visits are counted; that number is public")
    question = "SELECT ward, COUNT(*), AVG(nights), STDDEV(nights) FROM data GROUP BY ward"
    print(session.dry_run(question).why)
    print(session.ask(question))
    print("median age:", session.quantile("age", 0.5))
    for past in session.history:
        print(past.receipt, past.question, past.cost)
