"""The table of mechanisms: a new one is a row, and everything that opens, reads or checks a session finds it there."""

from __future__ import annotations

import inspect
import io
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from msgspec import Struct
from rich.console import Console

import tacit
from support import once
from tacit.cli.publish import _print_status
from tacit.config import read_config
from tacit.owner.opening import open_session
from tacit.release.direct import Direct
from tacit.release.mechanisms import MECHANISMS, Mechanism, setting_names
from tacit.release.settings import Share, WholeSetting, names_of

DOMAIN = tacit.Domain({"sex": tacit.category(["F", "M"]), "age": tacit.integer(0, 99, width=10)})
ROWS = pd.DataFrame({"sex": ["F", "M", "F", "F"] * 50, "age": [i % 100 for i in range(200)]})
SOURCE = once(ROWS)


class HalfSettings(Struct, frozen=True, kw_only=True):
    """A mechanism of one's own: fresh noise from a part of the budget."""

    free: ClassVar[tuple[str, ...]] = ()
    gated: ClassVar[float] = 0.0
    questions: WholeSetting = 4
    part: Share = 0.5


def half(public: Any, curator: Any, settings: HalfSettings, confidence: float, _: Any) -> Direct:
    return Direct(public, curator, questions=int(settings.questions / settings.part), confidence=confidence)


def start(folder: Path, **settings: Any) -> tacit.Session:
    return tacit.open(
        data=SOURCE,
        domain=DOMAIN,
        budget=tacit.Budget(epsilon=5.0, delta=1e-9),
        ledger=folder / "l.tacit",
        **settings,
    )


def test_a_mechanism_of_ones_own_is_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MECHANISMS, "half", Mechanism("half", HalfSettings, half))
    with start(tmp_path, mechanism="half", part=0.25) as session:
        assert session.choice.settings == HalfSettings(part=0.25)
        answer = session.ask(tacit.count(sex="F"))
        assert answer.cost.atoms == session.total.atoms // 16
        session.publish(tmp_path / "p.jsonl")
        assert tacit.report(session, tmp_path / "r.html")
    with start(tmp_path) as session:  # the ledger knows the rest
        assert session.choice.settings == HalfSettings(part=0.25)
        assert session.ask(tacit.count(sex="F")).value == answer.value
        assert tacit.verify(tmp_path / "p.jsonl", session=session).measured == 1
    with pytest.raises(tacit.LedgerError, match=r"part is 0\.25, not 0\.5\."):
        start(tmp_path, part=0.5)
    with pytest.raises(tacit.ConfigError, match="part is a share of the budget, from 0 to below 1, not 2"):
        start(tmp_path, part=2)
    assert tacit.read(tmp_path / "p.jsonl").ask(tacit.count(sex="F")).value == answer.value
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    text = '[data]\nsource = "rows.csv"\n[budget]\nepsilon = 5.0\ndelta = 1e-9\n[session]\nledger = "m.tacit"\n'
    (tmp_path / "tacit.toml").write_text(text + 'mechanism = "half"\npart = 0.25\n' + DOMAIN.to_toml())
    config = read_config(tmp_path / "tacit.toml")
    given: dict[str, Any] = {"domain": config.domain, "budget": config.budget, "ledger": config.ledger}
    with tacit.open(data=config.data, **given, **config.options) as session:
        assert session.choice.settings == HalfSettings(part=0.25)
    (tmp_path / "tacit.toml").write_text(text + 'part = "all"\n' + DOMAIN.to_toml())
    with pytest.raises(tacit.ConfigError, match=r"in \[session\] part is a share"):
        read_config(tmp_path / "tacit.toml")


def test_what_a_row_says_is_not_asked_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mechanism that votes, learns or sells one thing for everything is known by its row, whatever it is called."""
    learning, voting = MECHANISMS["iterative"], MECHANISMS["median"]
    monkeypatch.setitem(MECHANISMS, "choir", replace(voting, name="choir"))
    monkeypatch.setitem(MECHANISMS, "pupil", replace(learning, name="pupil"))
    monkeypatch.setitem(MECHANISMS, "shop", replace(MECHANISMS["histogram"], name="shop", everything="one noisy shelf"))
    women, sure = tacit.count(sex="F"), "A question is answered from all of them together"
    for name, more in (("choir", {"warm": 0.5}), ("pupil", {"warm": 0.5}), ("shop", {})):
        (folder := tmp_path / name).mkdir()
        with start(folder, mechanism=name, start=True, **more) as session:
            session.ask(women)
            assert (sure in tacit.report(session, folder / "r.html").read_text()) == (name != "shop")
            if name == "choir":
                assert (np.diff(session.votes(women)) >= 0).all()
                continue
            with pytest.raises(tacit.InvalidQuery, match='votes with mechanism="median" or mechanism="choir" only'):
                session.votes(women)
            shown = io.StringIO()
            past = list(session.history)
            _print_status(session.status(), session.domain, past, False, Console(file=shown, width=200))
            words = "One noisy shelf was bought: every question is free from now on."
            assert (words in shown.getvalue()) == (name == "shop")


def test_without_its_row_nothing_knows_it(tmp_path: Path) -> None:
    with pytest.raises(tacit.ConfigError, match="mechanism is one of auto, direct, histogram, iterative, median, not"):
        start(tmp_path, mechanism="half")
    with pytest.raises(tacit.ConfigError, match="there is no setting part; there are confidence, questions"):
        start(tmp_path, part=0.5)
    assert not (tmp_path / "l.tacit").exists()


def test_every_setting_is_documented_where_it_is_declared_and_where_it_is_given() -> None:
    for row in MECHANISMS.values():
        assert all(name in (inspect.getdoc(row.settings) or "") for name in names_of(row.settings))
    assert all(f"{name}" in (inspect.getdoc(open_session) or "") for name in setting_names())
