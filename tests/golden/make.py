"""Write the golden files anew. Only after a format, a price or a sentence was changed on purpose: read the diff.

python tests/golden/make.py            what follows from the kept ledgers: answers, published files, keys, prices
python tests/golden/make.py ledgers    the ledgers too, asked again with fresh noise: after a change of their format;
                                       names after that word choose some
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import tacit
from golden import cases
from golden.questions import FIRST
from tacit.serve.openapi import document


def make_ledgers(names: Collection[str]) -> None:
    """Ask every session everything, and keep what its ledger and its anchor hold."""
    (cases.HERE / "ledgers").mkdir(exist_ok=True)
    for name in names or cases.SESSIONS:
        while not _made(name):  # the noise decides how many questions are hard
            print(f"{name}: once more")


def _made(name: str) -> bool:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with cases.open_at(folder, name) as session:
            cases.ask(session, (*FIRST, *cases.QUESTIONS))
            hard = sum(past.question == "a hard question found" for past in session.history)
        text = cases.dump(folder / "golden.tacit")
        if session.choice.mechanism in ("iterative", "median") and (not hard or 'INTO "private"' not in text):
            return False  # no gate was shut, or none is open
        db = sqlite3.connect(folder / "golden.anchor")
        with db:
            db.execute("UPDATE anchors SET path = NULL")  # a folder of this machine
        db.close()
        for kind in ("tacit", "anchor"):
            text = cases.dump(folder / f"golden.{kind}")
            (cases.HERE / "ledgers" / f"{name}.{kind}.sql").write_text(text)
    return True


def make_answers() -> None:
    """What the sessions answer from the kept ledgers, and what they publish."""
    (cases.HERE / "published").mkdir(exist_ok=True)
    tacit.__version__ = cases.PROGRAM
    for name in cases.SESSIONS:
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            cases.restore(folder, name)
            with cases.open_at(folder, name) as session:
                cases.write(f"answers/{name}.json", cases.observe(session))
                published = cases.HERE / "published" / f"{name}.jsonl"
                tacit.publish(session, published, overwrite=True)
            cases.write(f"published/{name}.json", cases.observe_published(published))
    with tempfile.TemporaryDirectory() as made:
        cases.restore(Path(made), "direct")
        cases.write("http.json", cases.observe_http(Path(made)))
    cases.write("keys.json", cases.keys())
    cases.write("prices.json", cases.prices())
    cases.write("plans.json", cases.plans())
    (cases.HERE / "openapi.json").write_text(json.dumps(document(), indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["ledgers"]:
        make_ledgers(sys.argv[2:])
    make_answers()
