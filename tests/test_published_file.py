"""The published file as hostile input, what it must not hold, and what verifying it notices. Planted bugs included."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import random
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from audit_record import record
from support import PATIENCE, Stopwatch, calls, once
from tacit.errors import TacitError
from tacit.model.budget import Loss
from tacit.public import file
from tacit.public import lines as published_lines
from tacit.session import Session
from tacit.store.chain import Line, canonical, chain_hash
from tacit.trusted.ledger import Outcome

DOMAIN = tacit.Domain({"a": tacit.integer(0, 5), "b": tacit.category(["x", "y"])})
N = 500
Change = Callable[[dict[str, Any], list[dict[str, Any]]], None]


def people() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame({"a": rng.binomial(5, 0.3, N), "b": np.where(rng.random(N) < 0.3, "x", "y")})


SOURCE = once(people())


def start(folder: Path, **changes: Any) -> Session:
    settings: dict[str, Any] = {"data": SOURCE, "domain": DOMAIN, "budget": tacit.Budget(epsilon=8.0, delta=1e-9)}
    settings |= {"ledger": folder / "l.tacit", "mechanism": "iterative", "hits": 3, "questions": 20}
    return tacit.open(start=True, **(settings | changes))


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = tmp_path_factory.mktemp("sample")
    return make(folder, anchor=folder / "anchor").read_bytes()


@pytest.fixture
def published(tmp_path: Path, sample: bytes) -> Path:
    """A small file with an entry of every kind, whose ledger is elsewhere."""
    (tmp_path / "p.jsonl").write_bytes(sample)
    return tmp_path / "p.jsonl"


def make(folder: Path, **changes: Any) -> Path:
    with start(folder, **changes) as session:
        session.cdf("a", share=0.05)
        session.release([tacit.count(a=1), tacit.count(b="x")], rounds=1, share=0.1, distinguisher="sparse")
        session.release([["a"], ["b"]], rounds=1, share=0.1)
        for value in range(6):
            session.ask(tacit.count(a=value, b="x"))
        tacit.publish(session, folder / "p.jsonl")
    return folder / "p.jsonl"


def resealed(path: Path, change: Change, *, chain: bool = True) -> Path:
    """The file after a change, with its digest made right again, and every hash and running total too if `chain`."""
    header, *entries = (json.loads(line) for line in path.read_text().splitlines()[:-1])
    change(header, entries)
    if chain:
        at, spent, reserved = header["origin"], 0, dict[int, int]()
        for entry in entries:
            spent += entry["atoms"] - reserved.pop(entry["intent"], 0)
            if entry["kind"] == "intent":
                reserved[entry["seq"]] = entry["atoms"]
            entry["spent"] = spent
            at = entry["hash"] = chain_hash(at, Line(**entry))
    lines = [f"{canonical(content)}\n".encode() for content in (header, *entries)]
    digest = hashlib.sha256(b"".join(lines)).hexdigest()
    out = path.with_name("changed.jsonl")
    out.write_bytes(b"".join(lines) + f'{{"sha256":"{digest}"}}\n'.encode())
    return out


def first(entries: list[dict[str, Any]], word: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The first entry whose body has this name, and the body."""
    return next((entry, body) for entry in entries if word in (body := json.loads(entry["body"])))


def in_body(word: str, change: Callable[[dict[str, Any]], None]) -> Change:
    def changed(_: dict[str, Any], entries: list[dict[str, Any]]) -> None:
        entry, body = first(entries, word)
        change(body)
        entry["body"] = canonical(body)

    return changed


def test_an_unchanged_file_passes_and_the_same_ledger_gives_the_same_bytes(tmp_path: Path) -> None:
    published = make(tmp_path)
    assert resealed(published, lambda header, entries: None).read_bytes() == published.read_bytes()
    found = tacit.verify(published)
    assert found.digest == hashlib.sha256(published.read_bytes()).hexdigest()
    assert found == tacit.verify(published)
    assert "entries follow from one another" in str(found)
    with start(tmp_path) as session:
        assert tacit.publish(session, tmp_path / "again.jsonl") == found.digest
        assert session._ledger.log.head()[:2][1] == found.seal
        assert (found.spent, found.total) == (session.spent, session.total)
        assert found == tacit.verify(published, session=session, receipt=session.history[-1].receipt)
    tacit.publish(tacit.read(published), tmp_path / "third.jsonl")  # what was read can be handed on
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "third.jsonl").read_bytes() == published.read_bytes()
    json.dumps(found.to_dict())
    assert found.measured >= 3
    assert found.told + found.gates >= 1


def test_a_changed_byte_anywhere_is_refused(tmp_path: Path) -> None:
    with start(tmp_path, mechanism="direct") as session:
        session.ask_many([tacit.count(a=1), tacit.count(b="x")])
        tacit.publish(session, tmp_path / "p.jsonl")
    whole = (tmp_path / "p.jsonl").read_bytes()
    bad, rng = tmp_path / "bad.jsonl", np.random.default_rng(0)
    for place, bit in enumerate(rng.integers(0, 8, len(whole)).tolist()):
        changed = bytearray(whole)
        changed[place] ^= 1 << bit
        bad.write_bytes(changed)
        with pytest.raises(tacit.ConfigError):
            tacit.read(bad)
    for other in (whole[:-1], whole + b"\n", whole + b" ", whole[1:], b"", whole + whole, b"\xff" * 99, whole[:700]):
        bad.write_bytes(other)
        with pytest.raises(tacit.ConfigError):
            tacit.read(bad)
    lines = whole.splitlines(keepends=True)
    for gone in range(len(lines)):
        bad.write_bytes(b"".join(lines[:gone] + lines[gone + 1 :]))
        with pytest.raises(tacit.ConfigError):
            tacit.read(bad)


def test_an_edited_file_is_told_which_entry_was_edited(published: Path) -> None:
    lines = published.read_bytes().splitlines(keepends=True)
    bad = published.with_name("bad.jsonl")
    at = next(place for place, line in enumerate(lines) if b'"kind":"measured"' in line)
    seq = json.loads(lines[at])["seq"]
    for number, (old, new) in enumerate(((b'"atoms":', b'"atoms":1'), (b'"kind":"measured"', b'"kind":"measured "'))):
        changed = [*lines[:at], lines[at].replace(old, new), *lines[at + 1 :]]
        bad.write_bytes(b"".join(changed))
        with pytest.raises(tacit.ConfigError, match=f"[Ee]ntry {seq}" if number == 0 else f"{seq}|line {at + 1}"):
            tacit.verify(bad)
    bad.write_bytes(b"".join(lines[:-1]) + b'{"sha256":"' + b"0" * 64 + b'"}\n')
    with pytest.raises(tacit.ConfigError, match="not the digest of all"):
        tacit.verify(bad)
    bad.write_bytes(b"".join([*lines[:3], lines[3].replace(b"{", b"{ ", 1), *lines[4:]]))
    with pytest.raises(tacit.ConfigError, match="line 4 is no entry"):
        tacit.verify(bad)


def cheaper(header: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    entry, _ = first(entries, "values")
    entry["atoms"] -= 1


def cheaper_gate(header: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    """A gate that states a lower price, consistently everywhere."""
    intent, body = next(
        (e, b) for e in entries if e["kind"] == "intent" and isinstance((b := json.loads(e["body"]))["purpose"], dict)
    )
    for entry in entries:
        if entry is intent or entry["intent"] == intent["seq"]:
            entry["atoms"] -= 1
    body["purpose"]["atoms"] -= 1
    intent["body"] = canonical(body)


def richer(header: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    header["total"]["atoms"] *= 2


def over(header: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    """An intent that passes the total, and is never settled."""
    last, atoms = entries[-1], header["total"]["atoms"]
    body = canonical({"purpose": "measure 1"})
    new = {"seq": last["seq"] + 1, "kind": "intent", "key": None, "intent": None, "atoms": atoms, "body": body}
    entries.append(last | new)


def twice(header: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    entry, _ = first(entries, "told")
    entries.append(entry | {"seq": entries[-1]["seq"] + 1, "intent": None, "atoms": 0})


def charged(header: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    entry, _ = first(entries, "told")
    entry["atoms"] = 5


def gate_intent(entries: list[dict[str, Any]]) -> dict[str, Any]:
    return next(e for e in entries if e["kind"] == "intent" and isinstance(json.loads(e["body"])["purpose"], dict))


def unlock(header: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    """A gate that ended with a free answer, so that nothing was charged for it."""
    gate, (told, _) = gate_intent(entries), first(entries, "told")
    entries[entries.index(gate) + 1 :] = [told | {"seq": gate["seq"] + 1, "intent": gate["seq"]}]


def add_dropped(entries: list[dict[str, Any]], intent: int, atoms: int, earlier: int) -> None:
    last, body = entries[-1], canonical({"answered_by": earlier})
    new = {"seq": last["seq"] + 1, "kind": "dropped", "key": None, "intent": intent, "atoms": atoms, "body": body}
    entries.append(last | new)


def gates_for_nothing(header: dict[str, Any], entries: list[dict[str, Any]]) -> None:
    """Many gates, every one of them dropped at no charge in favour of the first answer."""
    intent, answer = gate_intent(entries), next(filter(is_answer, entries))
    del entries[entries.index(answer) + 1 :]
    for _ in range(5):
        entries.append(intent | {"seq": entries[-1]["seq"] + 1})
        add_dropped(entries, entries[-1]["seq"], 0, answer["seq"])


def dropped(atoms: float, earlier: Callable[[dict[str, Any]], bool]) -> Change:
    """A measurement that was dropped for a part of what was set aside for it, in favour of such an entry."""

    def change(header: dict[str, Any], entries: list[dict[str, Any]]) -> None:
        last = entries[-1]
        new = {"seq": last["seq"] + 1, "kind": "intent", "key": None, "intent": None, "atoms": 1000}
        entries.append(last | new | {"body": canonical({"purpose": "measure 1"})})
        add_dropped(entries, last["seq"] + 1, int(1000 * atoms), next(e["seq"] for e in entries if earlier(e)))

    return change


def is_answer(entry: dict[str, Any]) -> bool:
    return entry["key"] is not None


# Everything here has its hashes and running totals made right again: what is left to notice is what it says.
LIES: dict[str, Change] = {
    "price": cheaper,
    "gate price": cheaper_gate,
    "noise": in_body("values", lambda body: body["noise"].update(scale=body["noise"]["scale"] / 2)),
    "noise law": in_body("values", lambda body: body["noise"].update(kind="laplace")),
    "question": in_body("told", lambda body: body["question"].update(complement=True)),
    "question of a choice": in_body("choice", lambda body: body.update(choice=99)),
    "grid": in_body("values", lambda body: body.update(unit=2)),
    "values": in_body("values", lambda body: body["values"].append(1)),
    "value": in_body("values", lambda body: body["values"].__setitem__(0, 0.5)),
    "huge shape": in_body("told", lambda body: body["question"]["factors"][0].update(shape=[2**40])),
    "other attribute": in_body("told", lambda body: body["question"]["factors"][0].update(scope=["z"])),
    "negative width": in_body("told", lambda body: body["bars"].append([-1, "this answer", 0.95])),
    "one more field": in_body("told", lambda body: body.update(private=1)),
    "total": richer,
    "over": over,
    "same key twice": twice,
    "free answer charged": charged,
    "gate ended by a free answer": unlock,
    "gates charged nothing": gates_for_nothing,
    "dropped for nothing": dropped(0, is_answer),
    "dropped for less": dropped(0.999, is_answer),
    "dropped for an intent": dropped(1, lambda entry: entry["kind"] == "intent"),
    "note": in_body("told", lambda body: body.update(note="\x1b[31mred")),
    "bar": in_body("told", lambda body: body.update(bars=[[1, "\x1b]0;title\x07", 0.95]])),
    "long note": in_body("told", lambda body: body.update(note="x" * 100_000)),
    "purpose": in_body("purpose", lambda body: body.update(purpose="\x1b]0;title\x07")),
    "reason": lambda header, _: header["mechanism"].update(reason="\x1b[2J"),
    "program": lambda header, _: header.update(program="1.0\n"),
    "version": lambda header, _: header.update(version="\x1b[31m"),
    "name of an attribute": lambda header, _: header.update(domain='[domain."\\u001b[31m"]\nkind = "boolean"\n'),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_follows_by_its_hashes_but_is_not_true_is_refused(published: Path, lie: str) -> None:
    with pytest.raises(tacit.ConfigError, match=r"changed\.jsonl is not published knowledge") as refused:
        tacit.verify(resealed(published, LIES[lie]))
    assert str(refused.value).isprintable()
    assert "does not follow" not in str(refused.value) or lie in ("over", "free answer charged")  # the chain is sound
    with pytest.raises(tacit.ConfigError):
        tacit.read(published.with_name("changed.jsonl"))


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of six counts that were asked one by one, so that their intents have one body and one price."""
    folder = tmp_path_factory.mktemp("asked")
    with start(folder, mechanism="direct", hits=None) as session:
        for value in range(6):
            session.ask(tacit.count(a=value))
        tacit.publish(session, folder / "p.jsonl")
    lines = [json.loads(line) for line in (folder / "p.jsonl").read_text().splitlines()[1:-1]]
    assert Counter((e["body"], e["atoms"]) for e in lines if e["kind"] == "intent").most_common(1)[0][1] == 6
    return folder / "p.jsonl"


WRONG_INTENTS: dict[str, tuple[dict[str, Any], str]] = {
    "another name of the same length": ({"body": '{"Purpose":"measure 1"}'}, "not one that this program wrote"),
    "another spelling": ({"body": '{"purpose": "measure 1"}'}, "not in the one spelling"),
    "a purpose that a terminal obeys": ({"body": canonical({"purpose": "\x1b[2J"})}, "not a printable text"),
    "a key": ({"key": "0" * 64}, "only outcomes have keys and intents"),
    "an intent of its own": ({"intent": 5}, "only outcomes have keys and intents"),
    "more than is charged": ({"atoms": 10**11}, "not charged what was set aside"),
}


@pytest.mark.parametrize("wrong", WRONG_INTENTS)
def test_a_wrong_intent_among_many_that_say_the_same_is_named(asked: Path, wrong: str) -> None:
    """What their one body says is remembered; whether it may stand in a line is judged for every line."""
    changes, why = WRONG_INTENTS[wrong]

    def change(header: dict[str, Any], entries: list[dict[str, Any]]) -> None:
        (intent,) = (entry for entry in entries if entry["seq"] == 7)
        assert intent["kind"] == "intent"
        intent.update(changes)

    tacit.verify(asked)  # so that the body was taken before
    with pytest.raises(tacit.ConfigError, match=f"Entry 7 is wrong: .*{why}"):
        tacit.verify(resealed(asked, change))


def test_intents_with_one_body_have_each_its_own_atoms(asked: Path, published: Path) -> None:
    honest = tacit.verify(asked)

    def more(header: dict[str, Any], entries: list[dict[str, Any]]) -> None:
        for _ in range(2):
            dropped(1, is_answer)(header, entries)
        entries[-2]["atoms"] = entries[-1]["atoms"] = 2000

    found = tacit.verify(resealed(asked, more))
    assert found.spent.atoms == honest.spent.atoms + 1000 + 2000

    def same_gate_for_less(header: dict[str, Any], entries: list[dict[str, Any]]) -> None:
        last, gate = entries[-1], gate_intent(entries)
        entries.append(gate | {"seq": last["seq"] + 1, "atoms": 1000})

    number = tacit.verify(published).entries + 1
    with pytest.raises(tacit.ConfigError, match=f"Entry {number} is wrong: its noise costs"):
        tacit.verify(resealed(published, same_gate_for_less))


def test_a_line_of_another_kind_does_not_say_what_an_intent_said(asked: Path) -> None:
    def change(header: dict[str, Any], entries: list[dict[str, Any]]) -> None:
        entries.append(entries[0] | {"seq": entries[-1]["seq"] + 1, "kind": "terms", "atoms": 0})

    number = tacit.verify(asked).entries + 1
    with pytest.raises(tacit.ConfigError, match=f"Entry {number} is wrong: it is not one that this program wrote"):
        tacit.verify(resealed(asked, change))


def test_what_was_dropped_at_its_full_charge_is_sound(published: Path) -> None:
    honest = tacit.verify(published)  # the control of the lies above: two processes may buy the same at once
    found = tacit.verify(resealed(published, dropped(1, is_answer)))
    assert (found.entries, found.spent.atoms) == (honest.entries + 2, honest.spent.atoms + 1000)


def test_an_entry_that_was_answered_meanwhile_is_published_and_verified(tmp_path: Path) -> None:
    """Two outcomes for one key, as two processes store them that do not wait for a turn; and a gate that was lost."""
    with start(tmp_path, mechanism="direct") as session:
        session.ask(tacit.count(a=1))
        (entry,) = (e for e in session._ledger.log.lines(kinds=["measured"]))
        again = session._ledger.reserve(Loss(session.total.measure, entry.atoms), purpose="measure 1")
        session._ledger.settle(again, [Outcome(str(entry.key), entry.atoms, "measured", entry.body)])
        gate = session._curator.open_gate(10.0, session.total.split(20), owner="online")
        session._ledger.take_private(gate._intent)  # and the process that held it is gone
        tacit.publish(session, tmp_path / "p.jsonl")
        found = tacit.verify(tmp_path / "p.jsonl", session=session)
        assert (found.entries, found.spent, found.measured, found.gates) == (5, session.spent, 1, 0)


HOSTILE_DOMAINS = {
    "dotted key": ".".join(["a"] * 20_000) + " = 1",
    "dotted table": "[domain." + ".".join(["a"] * 20_000) + "]",
    "dotted quoted table": "[domain." + ".".join(['"a"'] * 20_000) + "]",
    "dotted key in an inline table": "[domain.a]\nkind = {" + ".".join(["a"] * 20_000) + " = 1}",
    "deep list": "[domain.a]\nvalues = " + "[" * 100_000 + "]" * 100_000,
    "many tables": "\n".join(f"[domain.a{i}]" for i in range(100_000)),
    "many equal tables": "[domain.a]\n" * 100_000,
    "long name": f"[domain.{'a' * 2**20}]",
    "huge number": "[domain.a]\nlow = " + "9" * 2**20,
    "not ours, but TOML": '[domain]\na = {kind = "boolean"}\n',
    "a comment": '# hello\n[domain.a]\nkind = "boolean"\n',
    "too long": "\n" * (file.MAX_DOMAIN + 1),
}


@pytest.mark.parametrize("which", HOSTILE_DOMAINS)
def test_a_domain_in_another_form_is_refused_at_once(published: Path, which: str) -> None:
    changed = resealed(published, lambda header, _: header.update(domain=HOSTILE_DOMAINS[which]))

    def refuse() -> None:
        with pytest.raises(tacit.ConfigError, match="its terms are wrong"):
            tacit.read(changed)

    # Linear in the lines. TOML's own reader makes 200,000 calls for a key of 20,000 parts, in seconds and a gigabyte.
    assert calls(refuse) < 10_000 + 20 * HOSTILE_DOMAINS[which].count("\n")


def test_every_kind_of_attribute_is_read_as_it_was_written(tmp_path: Path) -> None:
    domain = tacit.Domain(
        {
            "plain_name-1": tacit.integer(-5, 20, width=3, clamp=True),
            'quoted "name" = [x] \\ é .': tacit.category(["a b", "[1, 2]", "=", '"', "\\", "é", "#"], other="more"),
            "numbers": tacit.category([3, -1, 2**52], missing="none"),
            "real": tacit.numeric([-1e299, -0.5, 0, 1e-7, 1e22], missing="unknown"),
            "day": tacit.date("1999-12-01", "2024-02-29", by="month", other="else"),
            "flag": tacit.boolean(missing="not said"),
        }
    )
    assert file._domain(domain.to_toml()) == domain == tacit.Domain.from_toml(domain.to_toml())
    assert list(file._domain(domain.to_toml())) == list(domain)


def test_a_domain_that_could_not_be_read_is_not_published(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = tacit.read(published)
    monkeypatch.setattr(file, "MAX_DOMAIN", 10)
    with pytest.raises(tacit.ConfigError, match="too many to be published"):
        tacit.publish(reading, published.with_name("again.jsonl"))
    assert not published.with_name("again.jsonl").exists()


def test_the_first_entry_that_is_wrong_is_named(published: Path) -> None:
    with pytest.raises(tacit.ConfigError, match=r"Entry \d+ is wrong: its noise costs rho = "):
        tacit.verify(resealed(published, cheaper))
    lines = published.read_text().splitlines()[1:-1]
    second = [json.loads(line)["seq"] for line in lines if "values" in json.loads(json.loads(line)["body"])][1]

    def later(header: dict[str, Any], entries: list[dict[str, Any]]) -> None:
        next(entry for entry in entries if entry["seq"] == second)["atoms"] -= 1

    with pytest.raises(tacit.ConfigError, match=f"Entry {second} is wrong"):
        tacit.verify(resealed(published, later))


def test_the_digest_alone_does_not_make_a_file_true(published: Path) -> None:
    change = in_body("values", lambda body: body["values"].__setitem__(0, body["values"][0] + 1))
    with pytest.raises(tacit.ConfigError, match=r"entry \d+ does not follow"):
        tacit.read(resealed(published, change, chain=False))
    moved = tacit.verify(resealed(published, change))  # the whole chain made anew: only somebody's receipt shows it
    honest = tacit.verify(published)
    assert moved.seal != honest.seal
    receipt = tacit.read(published).history[-1].receipt
    assert tacit.verify(published, receipt=receipt) == honest
    with pytest.raises(tacit.LedgerError, match="does not hold the receipt"):
        tacit.verify(published.with_name("changed.jsonl"), receipt=receipt)


def test_a_file_of_another_session_or_a_later_one_is_told_from_this(tmp_path: Path) -> None:
    published = make(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    with start(other) as session:
        session.ask(tacit.count(a=1))
        with pytest.raises(tacit.LedgerError, match="terms or entries differ"):
            tacit.verify(published, session=session)
    with start(tmp_path) as session:
        session.ask(tacit.count(a=(1, 3), b="y"))
        tacit.verify(published, session=session)  # older, but of this ledger
        tacit.publish(session, tmp_path / "later.jsonl")
    with pytest.raises(tacit.LedgerError):
        tacit.verify(tmp_path / "later.jsonl", session=tacit.read(published))


JUNK = (None, True, -1, 2**70, 1.5, 1e308, "", "x", [], [1], {}, {"kind": "query"}, "9" * 50, [[]] * 3)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    listed = value[:2] if isinstance(value, list) else []
    items: Iterable[Any] = value.items() if isinstance(value, dict) else enumerate(listed)
    for name, inner in items:
        yield from places(inner, (*path, name))


def put(value: Any, path: tuple[Any, ...], junk: Any) -> None:
    for name in path[:-1]:
        value = value[name]
    value[path[-1]] = junk


def test_junk_in_any_field_is_refused_in_words_or_harmless(published: Path) -> None:
    """No other exception than ours, whatever stands where; what is accepted still answers or refuses in words."""
    header, *lines = (json.loads(line) for line in published.read_text().splitlines()[:-1])
    kinds = {json.dumps([e["kind"], sorted(json.loads(e["body"]))]): i for i, e in reversed(list(enumerate(lines)))}
    jobs: list[tuple[int | None, bool, tuple[Any, ...]]] = [(None, False, path) for path in places(header)]
    for i in kinds.values():
        jobs += [(i, False, path) for path in places(lines[i]) if path[0] not in ("hash", "spent")]  # made right again
        jobs += [(i, True, path) for path in places(json.loads(lines[i]["body"]))]
    refused, rng = 0, np.random.default_rng(0)
    for at, inside, path in jobs:
        for which in rng.choice(len(JUNK), 3, replace=False).tolist():

            def change(
                head: dict[str, Any],
                entries: list[dict[str, Any]],
                at: int | None = at,
                inside: bool = inside,
                path: tuple[Any, ...] = path,
                junk: Any = JUNK[which],
            ) -> None:
                if at is None:
                    put(head, path, junk)
                elif inside:
                    body = json.loads(entries[at]["body"])
                    put(body, path, junk)
                    entries[at]["body"] = canonical(body)
                else:
                    put(entries[at], path, junk)

            try:
                changed = resealed(published, change)
            except TypeError:  # not even sums and hashes can be made of it
                changed = resealed(published, change, chain=False)
            try:
                tacit.read(changed).ask(tacit.count(a=2))
            except TacitError:
                refused += 1
    assert refused > 0.9 * 3 * len(jobs)


def tampered(rng: random.Random) -> Change:
    """One to four changes: junk in any place, a line that is gone, is there twice, or has changed places."""

    def change(header: dict[str, Any], entries: list[dict[str, Any]]) -> None:
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(entries))
            match rng.randrange(8):
                case 0:
                    del entries[at]
                case 1:
                    entries.insert(at, dict(rng.choice(entries)))
                case 2:
                    entries[0], entries[at] = entries[at], entries[0]
                case 3:
                    put(header, rng.choice(list(places(header))), rng.choice(JUNK))
                case 4:
                    put(entries[at], rng.choice(list(places(entries[at]))), rng.choice(JUNK))
                case _ if isinstance(entries[at]["body"], str):
                    body = json.loads(entries[at]["body"])
                    if inside := list(places(body)):
                        put(body, rng.choice(inside), rng.choice(JUNK))
                    entries[at]["body"] = canonical(body)

    return change


@pytest.mark.parametrize("files", [60, pytest.param(50_000, marks=pytest.mark.audit)])
def test_files_with_several_changes_are_refused_in_words_or_sound(published: Path, files: int, size: float) -> None:
    """As above, and with bytes that are changed after the digest is right: half of the files have that, too."""
    watch, rng, refused = Stopwatch(), random.Random(files), 0
    many = max(60, round(size * files))
    for _ in range(many):
        try:
            changed = resealed(published, tampered(rng), chain=rng.random() < 0.7)
        except (TypeError, KeyError, AttributeError, ValueError):  # no sums and hashes can be made of it
            changed = published
        content = bytearray(changed.read_bytes())
        if changed is published or rng.random() < 0.5:
            place = rng.randrange(len(content))
            content[place : place + rng.randrange(3)] = rng.randbytes(rng.randrange(1, 4))
            changed = published.with_name("changed.jsonl")
            changed.write_bytes(content)
        try:
            with tacit.read(changed) as session:
                assert session.spent <= session.total
                session.ask(tacit.count(a=2))
        except TacitError:
            refused += 1
    if files > 60:
        record("requests", "published files, changed", sent=many, refused=refused, wrong=0,
               taken=str(watch))  # fmt: skip
    assert refused > 0.9 * many


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000 + b"\n",
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n",
        b'{"format":"tacit published","version":4}\n',
        b'{"format":"tacit published","format":"x"}\n',
        b'{"format": "tacit published"}\n',
        b'{"a":NaN}\n',
        b'{"a":1e999}\n',
        b'{"a":' + b"9" * 10_000 + b"}\n",
        b"null\n",
        b"\n",
        b'{"\xc3\xa9":1}\n',
    ],
    ids=range(11),
)
def test_lines_that_are_not_ours_are_refused(tmp_path: Path, line: bytes) -> None:
    digest = hashlib.sha256(line).hexdigest()
    (tmp_path / "x.jsonl").write_bytes(line + f'{{"sha256":"{digest}"}}\n'.encode())
    with pytest.raises(tacit.ConfigError, match=r"x\.jsonl is not published knowledge"):
        tacit.read(tmp_path / "x.jsonl")


def test_files_that_are_no_files_and_files_that_are_too_large(
    published: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in (tmp_path, tmp_path / "none", Path("/dev/null")):
        with pytest.raises(tacit.ConfigError):
            tacit.read(path)
    monkeypatch.setattr(file, "MAX_LINE", 300)
    with pytest.raises(tacit.ConfigError):
        tacit.read(published)
    monkeypatch.undo()
    monkeypatch.setattr(file, "MAX_BYTES", 300)
    with pytest.raises(tacit.ConfigError, match="plain file"):
        tacit.read(published)


def test_nothing_is_overwritten_unasked_and_nothing_is_left_behind(published: Path, tmp_path: Path) -> None:
    reading = tacit.read(published)
    target = tmp_path / "there.jsonl"
    target.write_text("mine")
    with pytest.raises(tacit.ConfigError, match="exists already"):
        tacit.publish(reading, target)
    assert target.read_text() == "mine"
    tacit.publish(reading, target, overwrite=True)
    assert target.read_bytes() == published.read_bytes()
    assert target.stat().st_mode & 0o777 == 0o644
    with pytest.raises(tacit.ConfigError, match="cannot be written"):
        tacit.publish(reading, tmp_path / "no" / "such" / "folder.jsonl")
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]


def test_what_a_crash_and_a_rollback_left_in_the_ledger_is_published_as_it_counts(tmp_path: Path) -> None:
    with start(tmp_path) as session:
        session.ask(tacit.count(a=1))
    copy = (tmp_path / "l.tacit").read_bytes()
    with start(tmp_path) as session:
        session.cdf("a", share=0.1)
        session._ledger.reserve(session.total.split(50), purpose="measure 1")  # and then the process was killed
        tacit.publish(session, tmp_path / "crash.jsonl")
        found, reading = tacit.verify(tmp_path / "crash.jsonl", session=session), tacit.read(tmp_path / "crash.jsonl")
        assert reading.spent == session.spent == found.spent
        assert [entry.seq for entry in reading._public._lines.kept_intents()][-1] == found.entries
    for name in ("l.tacit", "l.tacit-wal", "l.tacit-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    (tmp_path / "l.tacit").write_bytes(copy)
    with start(tmp_path, accept_rollback="the disk died") as session:
        session.ask(tacit.count(a=2))
        tacit.publish(session, tmp_path / "old.jsonl")
        found = tacit.verify(tmp_path / "old.jsonl", session=session)
        assert found.spent == session.spent
        assert tacit.read(tmp_path / "old.jsonl").ask(tacit.count(a=2)).value == session.ask(tacit.count(a=2)).value
    with pytest.raises(tacit.LedgerError, match="differ"):  # what was lost is another history
        tacit.verify(tmp_path / "crash.jsonl", session=tacit.read(tmp_path / "old.jsonl"))


# -- what must not be in it --------------------------------------------------------------------------------------------


def leaks(ledger: Path, content: bytes) -> list[str]:
    """Which of the ledger's secrets stand in the file, in decimal, hexadecimal or as they are."""
    with sqlite3.connect(ledger) as db:
        meta = dict(db.execute("SELECT key, value FROM meta").fetchall())
        private = [value for (value,) in db.execute("SELECT value FROM private").fetchall()]
    secrets = {f"private {i}": value for i, value in enumerate(private)}
    secrets |= {name: meta[name] for name in ("secret", "id", "anchor")}
    secrets["fingerprint"] = json.loads(meta["terms"])["data"]
    secrets["secret as bytes"] = bytes.fromhex(meta["secret"]).decode("latin-1")
    secrets |= {f"{name} in hex": value.encode().hex() for name, value in secrets.items()}
    return [name for name, value in secrets.items() if value.encode("latin-1") in content]


def keep_gate_open(folder: Path) -> Session:
    """A session with an open gate whose threshold noise is a number that stands nowhere by chance."""
    session = start(folder, questions=10**9)
    session.ask(tacit.count(a=(2, 3)))
    with sqlite3.connect(folder / "l.tacit") as db:
        planted = db.execute("UPDATE private SET value = '271828182845904'").rowcount
    assert planted == 1
    return session


def test_no_private_state_is_in_the_file(tmp_path: Path) -> None:
    with keep_gate_open(tmp_path) as session:
        tacit.publish(session, tmp_path / "p.jsonl")
        assert leaks(tmp_path / "l.tacit", (tmp_path / "p.jsonl").read_bytes()) == []
        assert tacit.verify(tmp_path / "p.jsonl", session=session).told >= 1


def test_planted_leaks_are_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = tmp_path / "l.tacit"
    honest = file.to_builtins

    def mutant(extra: Callable[[sqlite3.Connection], Any]) -> Callable[[Any], dict[str, Any]]:
        def form(content: Any) -> dict[str, Any]:
            with sqlite3.connect(ledger) as db:
                return honest(content) | ({"extra": extra(db)} if isinstance(content, file.Header) else {})

        return form

    plants: dict[str, Callable[[sqlite3.Connection], Any]] = {
        "private 0": lambda db: [int(value) for (value,) in db.execute("SELECT value FROM private")],
        "secret": lambda db: dict(db.execute("SELECT key, value FROM meta").fetchall())["secret"],
        "fingerprint": lambda db: json.loads(dict(db.execute("SELECT key, value FROM meta").fetchall())["terms"]),
        "private 0 in hex": lambda db: db.execute("SELECT hex(value) FROM private").fetchone()[0].lower(),
    }
    with keep_gate_open(tmp_path) as session:
        for caught, extra in plants.items():
            monkeypatch.setattr(file, "to_builtins", mutant(extra))
            tacit.publish(session, tmp_path / "bad.jsonl", overwrite=True)
            monkeypatch.undo()
            assert caught in leaks(ledger, (tmp_path / "bad.jsonl").read_bytes())
            with pytest.raises(tacit.ConfigError):  # nor does a reader take a field that is not in the format
                tacit.read(tmp_path / "bad.jsonl")


def test_what_is_published_while_others_write_is_of_one_moment(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"mechanism": "direct", "questions": 2000}
    with start(tmp_path, **settings) as one, start(tmp_path, **settings) as two:
        stop, wrote, count = threading.Event(), threading.Semaphore(0), 0

        def write() -> None:
            rng = np.random.default_rng(4)
            while not stop.is_set():
                two.ask(tacit.weigh("a", weights=rng.random(6).round(6).tolist()))
                wrote.release()

        writer = threading.Thread(target=write)
        writer.start()
        try:
            while count < 5:
                tacit.publish(one, tmp_path / f"{count}.jsonl")
                count += 1
                while wrote.acquire(blocking=False):
                    pass
                # The first answer from here on may have been stored before what was published. The second was not.
                assert wrote.acquire(timeout=PATIENCE)
                assert wrote.acquire(timeout=PATIENCE)
        finally:
            stop.set()
            writer.join()
        sizes = []
        for i in range(count):
            reading = tacit.read(tmp_path / f"{i}.jsonl")
            assert reading._public._lines.kept_intents() == []  # no question is caught between charge and answer
            sizes.append(tacit.verify(tmp_path / f"{i}.jsonl", session=one).entries)
        assert sizes == sorted(sizes)
        assert sizes[0] < sizes[-1]  # others did write meanwhile


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with counts that were bought, some of them wide, and counts that were told."""
    folder = tmp_path_factory.mktemp("counted")
    with start(folder, questions=200) as session:
        for value in range(6):
            for other in range(value, 6):
                session.ask(tacit.count(a=(value, other)))
                session.ask(tacit.count(a=(value, other), b="x"))
                session.ask(~tacit.count(a=(value, other), b="y"))
        session.ask(tacit.count(a=1), within=20)
        tacit.publish(session, folder / "p.jsonl")
    return folder / "p.jsonl"


@pytest.mark.parametrize("name", ["certify", "warm"])
def test_a_setting_in_another_spelling_is_refused(published: Path, name: str) -> None:
    def respell(header: dict[str, Any], _: list[dict[str, Any]]) -> None:
        assert header["mechanism"]["settings"][name] == 0.0
        header["mechanism"]["settings"][name] = 0

    with pytest.raises(tacit.ConfigError, match="its terms are wrong"):
        tacit.read(resealed(published, respell))


def test_a_key_that_two_counts_have_is_found_also_in_parts_that_are_read_apart(
    counted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def twice(header: dict[str, Any], entries: list[dict[str, Any]]) -> None:
        told = [entry for entry in entries if entry["kind"] == "told"]
        entries.append(told[0] | {"seq": entries[-1]["seq"] + 1})

    monkeypatch.setattr(published_lines, "_TOGETHER", 7)
    tacit.read(counted)
    with pytest.raises(tacit.ConfigError, match="same key"):
        tacit.read(resealed(counted, twice))


def test_a_large_file_is_mapped_and_says_the_same(counted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading, questions = tacit.read(counted), [tacit.count(a=(i, 5), b="x") for i in range(6)]
    answers = [reading.ask(question) for question in questions]
    monkeypatch.setattr(file, "MAPPED", 1)
    found = file.load(counted)
    assert isinstance(found.lines._text, mmap.mmap)
    mapped = tacit.read(counted)
    assert [mapped.ask(question) for question in questions] == answers
    assert mapped.transcript() == reading.transcript()
    assert mapped.history == reading.history
    assert list(found.lines) == found.lines[:] == [found.lines[i] for i in range(len(found.lines))]
    with pytest.raises(IndexError):
        found.lines[len(found.lines)]
    for cut in (b"", b"\n", counted.read_bytes()[:-1], counted.read_bytes() + b"{}\n"):
        (bad := counted.with_name("bad.jsonl")).write_bytes(cut)
        with pytest.raises(tacit.ConfigError):
            tacit.read(bad)
