"""What is judged by its text alone is what the slow way takes: the same questions, spellings, keys and prices."""

from __future__ import annotations

import importlib
import json
import re
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from msgspec.structs import replace as replaced

import tacit
from tacit.errors import TacitError
from tacit.model.budget import Loss
from tacit.model.query import GRID, Query, query_key
from tacit.model.request import Declared
from tacit.model.workload import table_key
from tacit.public import file
from tacit.public.quick import QuickJudge
from tacit.public.work import MADE, Work
from tacit.store.chain import Line, canonical

GOLDEN = Path(__file__).parent / "golden" / "published"
N = 300
BUDGET = tacit.Budget(epsilon=8.0, delta=1e-9)


def published(
    folder: Path, values: Mapping[str, Sequence[Any]], ask: Callable[[tacit.Session], None], **how: Any
) -> Path:
    """What a session about attributes with these values publishes when it was asked something."""
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({name: [some[code] for code in rng.integers(0, len(some), N)] for name, some in values.items()})
    domain = tacit.Domain(
        {
            name: tacit.integer(0, len(some) - 1) if isinstance(some, range) else tacit.category(list(some))
            for name, some in values.items()
        }
    )
    given = {"mechanism": "direct", "questions": 60, "ledger": folder / "l.tacit", **how}
    with tacit.open(data=rows, domain=domain, budget=BUDGET, start=True, **given) as session:
        ask(session)
        tacit.publish(session, folder / "p.jsonl")
    return folder / "p.jsonl"


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Counts that were bought and counts that were told, of a session that learns."""
    values = {"a": range(6), "b": "xy"}

    def ask(session: tacit.Session) -> None:
        for value in range(6):
            for other in range(value, 6):
                session.ask(tacit.count(a=(value, other)))
                session.ask(tacit.count(a=(value, other), b="x"))
                session.ask(~tacit.count(a=(value, other), b="y"))
        session.ask(tacit.count(a=1), within=20)

    folder = tmp_path_factory.mktemp("counted")
    return published(folder, values, ask, mechanism="iterative", hits=3, questions=200)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Conditions that are written in runs, and as bits, of attributes of 300 values; and their sums."""
    values = {"v": range(300), "w": range(300), "x": range(4)}

    def ask(session: tacit.Session) -> None:
        session.ask(tacit.count(v=(0, 9)))
        session.ask(tacit.count(v=(10, 99), w=(200, 299)))
        session.ask(tacit.count(v=list(range(0, 300, 7)), w=5))
        session.ask(tacit.count(v=5, x=1))
        session.ask(~tacit.count(v=(3, 200), w=list(range(0, 300, 3)), x=1))
        session.ask("SELECT SUM(v) FROM data WHERE w < 20")
        session.ask("SELECT x, COUNT(*) FROM data WHERE v < 7 GROUP BY x")

    return published(tmp_path_factory.mktemp("wide"), values, ask)


@pytest.fixture(scope="module")
def bought(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sums, means, tables and ties, also about names that JSON spells in another way than they are."""
    values = {"age": range(10), "größe": range(7), 'he said "b","c"': "xy", "sex": "FM", "z": range(4)}

    def ask(session: tacit.Session) -> None:
        for question in (
            "SELECT SUM(age) FROM data",
            "SELECT SUM(age) FROM data WHERE age >= 3 AND sex = 'F'",
            "SELECT SUM(\"größe\") FROM data WHERE sex = 'F' AND z IN (0, 2)",
            'SELECT AVG(z) FROM data WHERE "größe" < 3 AND age > 2',
            "SELECT STDDEV(age) FROM data WHERE z = 1",
            "SELECT sex, COUNT(*) FROM data WHERE age < 3 GROUP BY sex",
            'SELECT z, "größe", COUNT(*) FROM data WHERE age < 3 OR sex = \'F\' GROUP BY z, "größe"',
            "SELECT COUNT(*) FROM data WHERE age < 3 AND sex = 'F' OR age > 6 AND sex = 'M'",
            "SELECT COUNT(*) FROM data WHERE age < 4 AND sex = 'F' OR age > 2 AND sex = 'M'",
            "SELECT COUNT(*) FROM data WHERE z < 2 AND (age < 3 AND sex = 'F' OR age > 6 AND sex = 'M')",
            "SELECT COUNT(*) FROM data WHERE age < 3 AND sex = 'F' OR z = 1 AND \"größe\" > 2",
            'SELECT COUNT(*) FROM data WHERE "he said ""b"",""c""" = \'x\' AND z = 2',
        ):
            session.ask(question)

    return published(tmp_path_factory.mktemp("bought"), values, ask)


def slowly(line: Line, declared: Declared) -> bool:
    """Whether the slow way takes a line: its body, its key, its price. Its intent is there."""
    reader = importlib.import_module("tacit.public.check")
    intents = {} if line.intent is None else {line.intent: reader._Intended(line.atoms, False)}
    try:
        entry = reader._entry(line)
        reader._judge(line, entry, declared, intents, set(), Work(0))
    except (reader._Wrong, TacitError, KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError):
        return False
    return True


def test_lines_are_judged_the_quick_way_only_where_the_slow_way_takes_them(
    counted: Path, wide: Path, bought: Path
) -> None:
    quick = Counter[str]()
    for path in [counted, wide, bought, *sorted(GOLDEN.glob("*.jsonl"))]:
        found = file.load(path)
        declared = Declared(found.domain, found.header.rows, found.header.rows_per_person, found.header.total)
        lines = list(found.lines)
        right = QuickJudge(declared).judged(lines)
        for line, steps in zip(lines, right, strict=True):
            assert steps is None or slowly(line, declared)
            assert steps is not None or path not in (wide, bought), line
        some = [line for line, steps in zip(lines, right, strict=True) if steps is not None]
        quick.update(form_of(line) for line in some)
        for line in some if path == bought else some[:7]:
            judge = QuickJudge(declared)
            for other in changed(line):
                (alone,) = QuickJudge(declared).judged([other])
                _, beside, again = judge.judged([line, other, line])  # however they stand beside each other
                assert alone == beside
                assert again is not None
                assert alone is None or slowly(other, declared), other
    assert min(quick[form] for form in ("count", "sum", "table", "told", "intent")) >= 3


def form_of(line: Line) -> str:
    if line.kind != "measured":
        return line.kind
    if '"kind":"marginal"' in line.body:
        return "table"
    return "sum" if f'"unit":{GRID}' in line.body else "count"


@pytest.mark.parametrize("conditions", [15, 16, 17, 60])
def test_conjunctions_of_many_conditions_are_judged_beside_a_wide_one(conditions: int) -> None:
    sizes = {f"a{i:02}": 2 for i in range(conditions)} | {"w": 300}
    domain = tacit.Domain({name: tacit.integer(0, size - 1) for name, size in sizes.items()})
    judge = QuickJudge(Declared(domain, N, 1, Loss("gdp", 10**12)))
    query = Query.all(Query.among(domain, name, [0]) for name in sizes)
    body = canonical({"bars": [], "note": "", "question": {**query.to_dict(), "kind": "query"}, "told": 0})
    assert judge.judged([Line(1, "told", query.key, None, 0, 0, body, "", "")]) == [0]
    body = body.replace('"weights":"80"', '"weights":"c0"', 1)  # which all values meet
    assert judge.judged([Line(1, "told", key_as_written(body), None, 0, 0, body, "", "")]) == [None]


def test_a_short_count_that_announces_much_is_judged_without_making_it() -> None:
    narrow, wide = 2**16, 2**22
    bins = {f"a{i:02}": wide if i else narrow for i in range(20)}
    domain = tacit.Domain({name: tacit.integer(0, size - 1) for name, size in bins.items()})
    judge = QuickJudge(Declared(domain, N, 1, Loss("gdp", 10**12)))

    def told(*names: str) -> Line:
        shapes = [{"shape": [bins[name]], "unit": 1, "weights": [bins[name] - 1, 1]} for name in names]
        factors = [{"scope": [name], **shape} for name, shape in zip(names, shapes, strict=True)]
        query = Query.from_dict({"complement": False, "factors": factors})
        body = {"bars": [], "note": "", "question": {**query.to_dict(), "kind": "query"}, "told": 0}
        return Line(1, "told", query.key, None, 0, 0, canonical(body), "", "")

    lines = told("a00"), told(*domain.names[1:])
    assert len(lines[1].body) < 2_000
    tracemalloc.start()
    try:
        assert judge.judged(lines) == [narrow * MADE, 19 * wide * MADE]  # 19 conditions are 76 MB
        assert tracemalloc.get_traced_memory()[1] < wide
    finally:
        tracemalloc.stop()


def test_long_lists_take_little_memory_where_they_are_not_what_they_should_be() -> None:
    """As a group of a pattern, each number of a list took kilobytes: two million characters were a machine's memory."""
    names, numbers = [f"a{i:03}" for i in range(200)], ",".join(["0"] * 20_000)
    declared = Declared(tacit.Domain(dict.fromkeys(names, tacit.integer(0, 1))), N, 1, Loss("gdp", 10**12))
    steps = f'{{"scope":["a199"],"shape":[2],"unit":{GRID},"weights":[{numbers}]}}'
    condition = '{"scope":["a000"],"shape":[2],"unit":1,"weights":"40"}'
    noise = '{"noise":{"kind":"gaussian","scale":9.5},"question":{'
    bodies = [
        f'{noise}"complement":false,"factors":[{steps}],"kind":"query"}},"unit":{GRID},"values":[1]}}',
        f'{noise}"kind":"marginal","names":["a001"],"where":{{"complement":false,"factors":[{condition}]}}}},'
        f'"unit":1,"values":[{numbers}]}}',
    ]
    judge = QuickJudge(declared)
    for body in bodies:
        line = Line(2, "measured", key_as_written(body), 1, 1, 1, body, "", "")
        assert judge.judged([line]) == [None]
        tracemalloc.start()
        try:
            assert judge.judged([line]) == [None]
            assert tracemalloc.get_traced_memory()[1] < 20 * len(body)
        finally:
            tracemalloc.stop()


# What may stand as weights in a file: the first are ten values of 300 as bits.
OTHER_WEIGHTS = f"""\
"ffc{"0" * 73}"
"ffc{"0" * 72}8"
"FFc{"0" * 73}"
ffc{"0" * 73}
[00,10,290]
[0,010,290]
[0, 10,290]
[0,10,0,290]
[0,10,290,0]
[[0,10,290]]
[0,10,290"
[0,10,290
0,10,290
[1.0,299]
[true,299]
[-1,301]
[0,0,300]
[0,300]
[300]
[1,2]
[0]
[]
{{}}
""
"

""".splitlines()


def changed(line: Line) -> Iterator[Line]:
    """A line after changes of any kind: other spellings, other values, other keys and prices.

    Whoever changes a question can work out the key of what he has written: each change comes with that key as well.
    """
    for body in {*changed_bodies(line.body)} - {line.body}:
        yield replaced(line, body=body)
        yield replaced(line, body=body, key=key_as_written(body))
    yield replaced(line, key="0" * 64)
    yield replaced(line, key=None)
    yield replaced(line, intent=1)
    yield replaced(line, atoms=line.atoms + 1)
    yield replaced(line, atoms=line.atoms // 2)
    yield replaced(line, atoms=line.atoms * 2)
    for kind in ("told", "measured", "intent"):
        yield replaced(line, kind=kind)


def key_as_written(body: str) -> str:
    """The key that a question has if its text is taken as it stands."""
    factors = re.search(r'"factors":\[(.*)\](?:,"kind":"query"\}|\}\})', body, re.DOTALL)
    names = re.search(r'"kind":"marginal","names":(\[.*?\])', body)
    key = query_key(factors[1].encode() if factors else b"", complement='"complement":true' in body)
    try:
        return table_key(json.loads(names[1]), key) if names else key
    except ValueError:
        return key


def changed_bodies(body: str) -> Iterator[str]:
    changes = [
        (" ", ""),
        (",", ", "),
        ('"unit":1', '"unit":1.0'),
        ('"unit":1', '"unit":true'),
        ('"unit":1', '"unit":1048576'),
        ('"unit":1,"weights"', '"unit":1048576,"weights"'),
        ('"unit":1048576', '"unit":1'),
        ('"unit":1048576', '"unit":2'),
        ('"unit":1048576,"values"', '"unit":1,"values"'),
        ('"unit":1,', '"unit":1,"unit":1,'),
        ("f", "F"),
        ("0", "f"),
        ('"weights":"', '"weights":"00'),
        ('"complement":false', '"complement":true'),
        ('"complement":true', '"complement":false'),
        ('"complement":false', '"complement":true,"complement":false'),
        ('"kind":"query"', '"kind":"query","more":1'),
        ('"kind":"marginal"', '"kind":"marginal","more":1'),
        ('"kind":"marginal"', '"kind":"query"'),
        ('"kind":"gaussian"', '"kind":"laplace"'),
        ('"names":["sex"]', '"names":["z"]'),
        ('"names":["sex"]', '"names":["sex","sex"]'),
        ('"names":["sex"]', '"names":["none"]'),
        ('"names":["sex"]', '"names":[]'),
        ('"names":["gr\\u00f6\\u00dfe","z"]', '"names":["z","gr\\u00f6\\u00dfe"]'),
        ('"names":["gr\\u00f6\\u00dfe","z"]', '"names":["größe","z"]'),
        ("gr\\u00f6\\u00dfe", "größe"),
        ("gr\\u00f6\\u00dfe", "gr\\u00F6\\u00dfe"),
        ('\\"b\\",\\"c\\"', 'b","c'),
        ('"values":[', '"values":[1,'),
        ('"values":[', '"values":[1.0,'),
        ('"values":[', '"values":[-0,'),
        ('"values":[', '"values":[9223372036854775807'),
        ('"scale":', '"scale":1'),
        ('"note":"', '"note":"\\u007f'),
        ('"note":"', '"note":"\\n'),
        ('"note":"', '"note":"é'),
        ('"note":"', '"note":"\\u00e9'),
        ('"note":"', '"note":"\\ud800'),
        ('"bars":[[', '"bars":[[-1,"x",0.5],['),
        ('"bars":[[', '"bars":[[1,"x",1e-05],['),
        ('"bars":[[', '"bars":[[1,"x",1.5],['),
        ('"told":', '"told":9223372036854775807'),
        ('"a"', '"b"'),
        ('"purpose":"', '"purpose":"\\n'),
        ('"purpose":"', '"purpose":"\\u00e9'),
        ('"purpose":"', '"purpose":"' + "x" * 100),
        ("}", "}\n{}"),
        ("}", ',"more":1}'),
        ('"},{"', '"}, {"'),
        ('"scope":["a"]', '"scope":["a","b"]'),
        ('"scope":["a"]', '"scope":["\\u0061"]'),
        ('"scope":["age","sex"]', '"scope":["sex","age"]'),
        ('"scope":["age","sex"],"shape":[10,2]', '"scope":["sex","age"],"shape":[2,10]'),
        ('"scope":["age","sex"]', '"scope":["age","z"]'),
        ('"scope":["z"],"shape":[4]', '"scope":["age","sex"],"shape":[10,2]'),
        ('"scope":["z"],"shape":[4]', '"scope":["age","sex","z"],"shape":[10,2,4]'),
        ('"scope":["z"],"shape":[4]', '"scope":[""],"shape":[]'),
        ('"scope":["age"],"shape":[10]', '"scope":[""],"shape":[]'),
        ('"shape":[', '"shape":[0'),
        ('"shape":[10,2]', '"shape":[2,10]'),
        ('"shape":[10,2]', '"shape":[20]'),
        ('"note":"', '"note":"\\"factors\\":[{\\"scope\\":[\\"'),
        ('"note":"', '"note":"\\"}],\\"kind\\":\\"query\\"}'),
        ('"factors":[', '"factors":[{"scope":["a"],"shape":[6],"unit":1,"weights":"04"},'),
        ('"factors":[', '"factors":[{"scope":["age"],"shape":[10],"unit":1,"weights":"0400"},'),
        ('],"kind":"query"}', '],"kind":"query"},"told":0}],"kind":"query"}'),
    ]
    for old, new in changes:
        yield body.replace(old, new)
        yield body.replace(old, new, 1)
    for new in OTHER_WEIGHTS:
        yield re.sub(r'"weights":[^}]*', f'"weights":{new}', body)
    yield re.sub(r'"values":\[(-?[0-9]+),', r'"values":[', body)
    for written in re.findall(r'"weights":("[0-9a-f]*"|\[[0-9,]*\])', body):
        for new in changed_weights(json.loads(written)):
            yield body.replace(f'"weights":{written}', f'"weights":{new}', 1)


def changed_weights(given: str | list[int]) -> Iterator[str]:
    """Other weights on as many values: orders, complements, products, conditions that all or none meet."""
    if isinstance(given, str):
        bits = np.unpackbits(np.frombuffer(bytes.fromhex(given), dtype=np.uint8))
        rows = np.arange(len(bits)) % 2
        for other in (1 - bits, bits[::-1], 0 * bits, 0 * bits + 1, rows, bits * rows, bits | rows, 1 - rows):
            yield json.dumps(np.packbits(other.astype(np.uint8)).tobytes().hex())
    else:
        steps = np.array(given)
        others = [GRID - steps, steps[::-1], 0 * steps, 0 * steps + GRID, 0 * steps + 5, (steps > 9) * GRID]
        others += [steps + 1, steps - 1, steps // 2, np.maximum(steps, GRID // 2), steps[1:], np.append(steps, 0)]
        for one in others:
            yield json.dumps(one.tolist(), separators=(",", ":"))
        yield json.dumps(given)
        yield json.dumps([float(one) for one in given], separators=(",", ":"))
        yield "[0" + json.dumps(given, separators=(",", ":"))[1:]
