"""The smallest session: a table, a domain, a budget, and a question that is free the second time.

    python examples/first_answer.py

The ledger and its anchor go into a folder that is deleted at the end, so that the example can be run again. Yours stay.
"""

import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import tacit

rng = np.random.default_rng(1)
people = pd.DataFrame({"sex": rng.choice(["F", "M"], 10_000), "age": rng.integers(18, 90, 10_000)})

with tempfile.TemporaryDirectory() as folder:
    session = tacit.open(
        data=people,
        domain=tacit.Domain({"sex": tacit.category(["F", "M"]), "age": tacit.integer(0, 99, width=10)}),
        budget=tacit.Budget(epsilon=1.0, delta=1e-9),
        ledger=Path(folder) / "people.tacit",
        anchor=Path(folder) / "people.anchor",
    )
    with session:
        print(session.choice.mechanism, "because", session.choice.reason)
        print(session.start())  # buys what the answers start from; `session.base` says it before

        answer = session.ask("SELECT COUNT(*) FROM data WHERE sex = 'F' AND age BETWEEN 20 AND 39")
        print("women of 20 to 39:", answer)

        again = session.ask(tacit.count(age=(20, 39), sex="F"))  # the same question in other words
        print("the same again:   ", again)
        assert (again.value, again.cost.atoms) == (answer.value, 0)

        print("mean age:         ", session.mean("age"))
        print("its spread:       ", session.stddev("age"))
        print(f"{session.epsilon_spent:.2f} of epsilon {session.budget.epsilon} is spent")
