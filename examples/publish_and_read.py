"""Hand on what was answered: one file that anybody can ask for ever, and check, without the data.

python examples/publish_and_read.py
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import tacit

rng = np.random.default_rng(3)
survey = pd.DataFrame(
    {
        "region": rng.choice(["north", "east", "south"], 20_000, p=[0.5, 0.3, 0.2]),
        "age": np.clip(rng.normal(45, 18, 20_000), 17, 90).astype(int),
    }
)
domain = tacit.Domain({"region": tacit.category(["north", "east", "south"]), "age": tacit.integer(17, 90)})

with tempfile.TemporaryDirectory() as made:
    folder = Path(made)

    # Where the data are: ask, then publish.
    with tacit.open(
        data=survey,
        domain=domain,
        budget=tacit.Budget(epsilon=1.0, delta=1e-9),
        ledger=folder / "survey.tacit",
        anchor=folder / "survey.anchor",
        mechanism="direct",
        questions=20,
    ) as session:
        north = session.ask("SELECT COUNT(*) FROM data WHERE region = 'north'")
        session.cdf("age")  # all ranges of age, at once
        digest = tacit.publish(session, folder / "survey.jsonl")
        print("announce this:", digest)

    # Anywhere else: neither rows nor ledger.
    reading = tacit.read(folder / "survey.jsonl")
    again = reading.ask("SELECT COUNT(*) FROM data WHERE region = 'north'")
    assert (again.value, again.error, again.receipt) == (north.value, north.error, north.receipt)
    print("north:", again)
    print("20 to 39:", reading.range("age", 20, 39))  # never asked before: it follows from the curve
    print("median:", reading.quantile("age", 0.5))
    try:
        reading.ask("SELECT COUNT(*) FROM data WHERE region = 'east' AND age < 30")
    except tacit.NeedsData as refused:
        print(refused)
    print(tacit.verify(folder / "survey.jsonl", receipt=north.receipt))
