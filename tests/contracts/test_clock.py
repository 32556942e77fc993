"""No test decides by the clock: only what is listed here reads one, and only PATIENCE, which is long, ends a wait.

A test that times itself fails on a busy machine and passes on a fast one. What must be quick is bounded by counting its
steps (`support.calls`, pages read, statements run), and timed in benchmarks/; how long something took is told by
`support.Stopwatch`, in words, which nobody compares. Waiting for another thread or process ends after
`support.PATIENCE`, a hundred times what it takes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from support import PATIENCE

TESTS = Path(__file__).parents[1]
# Every use of a clock and every other limit of time, by its file and the function or class around it; and why.
LISTED = {
    "how long PATIENCE is": {
        "support.py PATIENCE = 600",
    },
    "a wait for what is about to happen, which ends after PATIENCE": {
        "support.py until: time.monotonic",
        "support.py until: time.sleep",
        "crash/test_forks.py exit_of: time.monotonic",
        "crash/test_forks.py exit_of: time.sleep",
        "test_cli_prompt.py _until: time.monotonic",
        "test_cli_prompt.py _until: select.select([descriptor], [], [], 1.0)",
        "serve/wire_fuzzing.py _idle: asyncio.sleep(0.0002 if connection._talk.asking is not None else 0)",
    },
    "a record for a report": {
        "audit_report.py note: datetime.date.today",
        "support.py Stopwatch: time.perf_counter",
        "serve/soak.py sample: time.perf_counter",
        "serve/soak.py soak: time.perf_counter",
        "serve/soak.py soak: time.sleep",
        "serve/soak.py ask_new: time.perf_counter",
    },
    "another moment for something to happen, all of which are judged alike": {
        "support.py pause: time.sleep",
        "crash/test_forks.py test_a_thread_in_a_transaction_delays_the_fork: threading.Timer",
        "crash/test_interrupts.py test_an_interrupt_while_waiting_for_another_process: threading.Timer",
        "serve/test_wire_protocol.py test_a_server_that_closes_ends_connections_when_they_are_answered: "
        "threading.Timer",
    },
    "a limit of Tacit's own or of a client, short because what it waits for never comes": {
        "crash/test_forks.py test_a_turn_ends_with_its_parent_and_is_not_the_childs: "
        "mock.patch.object(durable, '_PATIENCE', 0.1)",
        "crash/test_interrupts.py test_an_interrupt_at_any_moment: monkeypatch.setattr(durable, '_PATIENCE', 1.0)",
        "serve/fuzzing.py send_bytes: timeout=0.02",
        "serve/test_client.py test_a_silent_server_takes_too_long: seconds=0.01",
        "serve/test_strict_json.py test_a_body_that_does_not_come: body_seconds=0.05",
        "serve/test_wire_catalogue.py test_a_look_is_bounded_in_time_and_rows: "
        "short.setattr(catalogue, '_seconds', 0.5)",
        "serve/test_wire_protocol.py test_whoever_says_nothing_or_half_of_it_is_cut_off: login_seconds=0.3",
        "serve/test_wire_protocol.py test_whoever_says_nothing_or_half_of_it_is_cut_off: message_seconds=0.3",
        "serve/test_wire_protocol.py test_whoever_does_not_read_is_cut_off: send_seconds=0.3",
        "trusted/test_ledger.py test_a_ledger_held_too_long_is_reported: "
        "monkeypatch.setattr(durable, '_PATIENCE', 0.02)",
        "trusted/test_ledger_files.py test_a_turn_of_somebody_who_hangs_is_not_waited_for_for_ever: "
        "monkeypatch.setattr(durable, '_PATIENCE', 0.1)",
    },
    "the time that a line of a ledger says, mostly of a clock that is put in for it": {
        "crash/test_forks.py test_a_child_forked_inside_a_transaction_refuses: tacit.store.conditions.now",
        "crash/test_interrupts.py test_a_signal_handler_cannot_undo_what_it_interrupts: tacit.store.conditions.now",
        "trusted/ledger_tools.py forge: tacit.store.conditions.now",
        "trusted/test_ledger_copies.py test_verify_asks_for_the_next_number: tacit.store.conditions.now",
        "trusted/test_times.py clock: made.now",
        "trusted/test_times.py told_beside: tacit.store.log.now",
        "trusted/test_times.py test_planted_times_of_writing: clock.now",
        "trusted/test_times.py reads_for_an_hour: clock.now",
        "trusted/test_times.py test_an_accepted_rollback_has_the_time_at_which_it_was_asked_for: clock.now",
        "trusted/test_times.py test_a_rollback_that_a_discovery_accepts_has_the_time_of_its_beginning: clock.now",
    },
    "seconds that a benchmark made up": {
        "test_benchmark_programs.py test_scores_are_printed_with_ratios_to_the_best_peer_and_drawn: scores.seconds",
        "test_benchmark_programs.py test_the_writers_queue_waits_and_refuses_as_arithmetic_says: alone.busy",
    },
}
# What tells the time or acts by it, whatever it was imported as; and the names of what others have measured.
CLOCK = re.compile(
    r"(time|timeit|sched)\.\w+|os\.times|resource\.getrusage"
    r"|.+\.(now|utcnow|today|Timer|call_later|call_at|busy|elapsed|seconds|total_seconds)"
)
# A name of seconds, and calls whose last argument is seconds.
LIMIT = re.compile(r"[\w-]*(timeout|deadline|patience|seconds)", re.IGNORECASE)
WAIT = re.compile(
    r"select\.select|asyncio\.sleep|.+\.(WebDriverWait|\w*timeout)"
    r"|.+\.(wait|wait_for|join|result|acquire|poll|create_connection|alarm|setitimer|implicitly_wait)"
)
PATIENT = re.compile(r"(\w+ \+ )?PATIENCE|str\(PATIENCE\)|0|0\.0|None|False")


def uses(source: str) -> Iterator[str]:
    """The clocks that a file reads and the limits of time that it sets, by the function or class around them."""
    tree = ast.parse(source)
    known = dict(_imported(tree))
    for part in tree.body:
        inside = f"{part.name}: " if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else ""
        for node in ast.walk(part):
            if isinstance(node, ast.Name | ast.Attribute) and CLOCK.fullmatch(clock := _whole(node, known)):
                yield inside + clock
            if any(not PATIENT.fullmatch(ast.unparse(value)) for value in _limits(node, known)):
                yield inside + ast.unparse(node)


def _imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """What the names of imports stand for."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            yield from ((one.asname or one.name, module + one.name) for one in node.names)


def _whole(node: ast.AST, known: dict[str, str]) -> str:
    """A name with its modules."""
    match node:
        case ast.Name(id=name):
            return known.get(name, name)
        case ast.Attribute(value=of, attr=name):
            return f"{_whole(of, known)}.{name}"
    return "()"


def _limits(node: ast.AST, known: dict[str, str]) -> Iterator[ast.expr]:
    """The seconds that a piece of a program sets or hands on."""
    match node:
        case ast.keyword(arg=str(name), value=value) if LIMIT.fullmatch(name):
            yield value
        case ast.Assign(targets=[ast.Attribute(attr=name) | ast.Name(id="PATIENCE" as name)], value=value):
            yield from [value] if LIMIT.fullmatch(name) else []
        case ast.Dict(keys=keys, values=values):
            yield from _named(zip(keys, values, strict=True))
        case ast.Call(func=func, args=[*_, last] as args):
            name, first = _whole(func, known), args[0]
            turned = (
                name.endswith((".get", ".put")) and isinstance(first, ast.Constant) and first.value in (True, False)
            )
            words = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Constant | ast.JoinedStr)
            if (WAIT.fullmatch(name) or turned) and _is_number(last) and not words:
                yield last
            yield from _named(pairwise(args))


def _named(pairs: Iterable[tuple[ast.expr | None, ast.expr]]) -> Iterator[ast.expr]:
    """What stands after the name of a limit, in quotes."""
    for name, value in pairs:
        if isinstance(name, ast.Constant) and LIMIT.fullmatch(str(name.value)):
            yield value


def _is_number(value: ast.expr) -> bool:
    """Whether it can be one, by the look of it."""
    words = (
        ast.Call | ast.Lambda | ast.JoinedStr | ast.List | ast.Tuple | ast.Starred | ast.Subscript | ast.comprehension
    )
    return not any(
        isinstance(part, words) or isinstance(getattr(part, "value", None), str | bytes) for part in ast.walk(value)
    )


def test_no_test_decides_by_the_clock() -> None:
    files = {path.relative_to(TESTS).as_posix(): path.read_text() for path in sorted(TESTS.rglob("*.py"))}
    found = {f"{name} {use}" for name, source in files.items() for use in uses(source)}
    listed = set().union(*LISTED.values())
    assert found - listed == set(), "count steps instead, or wait for support.PATIENCE"
    assert listed - found == set(), "these are there no more: take them from the list"
    assert PATIENCE >= 600


@pytest.mark.parametrize(
    "bad",
    [
        "start = time.perf_counter()\nassert time.perf_counter() - start < 1",
        "a, start = 1, time.process_time_ns()",
        "def took():\n    start = time.monotonic()\n    work()\n    return time.monotonic() - start",
        "class Timed:\n    def begin(self):\n        self.start = time.perf_counter()",
        "from time import perf_counter as clock\nstart = clock()",
        "import time as t\nif t.time() > end:\n    pytest.fail('slow')",
        "times.append(time.perf_counter() - start)",
        "taken: float = time.perf_counter() - start",
        "assert (now := time.perf_counter()) < 5",
        "clock = time.perf_counter",
        "start = os.times()",
        "start = datetime.now()",
        "from datetime import datetime as day\nstart = day.utcnow()",
        "assert resource.getrusage(resource.RUSAGE_SELF).ru_utime < 1",
        "assert server.busy - before < 1",
        "with measured() as run:\n    work()\nassert run.seconds < 1",
        "assert (end - start).total_seconds() < 1",
        "time.sleep(0.1)\nassert server.closed",
        "await asyncio.sleep(SHORT)\nassert server.closed",
        "threading.Timer(1, stop).start()",
        "select.select([pipe], [], [], 5)",
        "queue.get(True, 5)",
        "subprocess.run(command, timeout=60)",
        "subprocess.run(command, timeout=LIMIT)",
        "subprocess.run(command, timeout=PATIENCE / 100)",
        "thread.join(60)",
        "thread.join(LIMIT)",
        "assert ready.wait(self.limit)",
        "await asyncio.wait_for(scene(), 60)",
        "from selenium.webdriver.support.ui import WebDriverWait\nWebDriverWait(driver, LIMIT)",
        "driver.set_page_load_timeout(LIMIT)",
        "driver.config.timeout = LIMIT",
        "signal.alarm(60)",
        "@settings(deadline=200)\ndef test() -> None: ...",
        "psycopg.connect(**{'connect_timeout': 10})",
        "run('curl', '--connect-timeout', '10')",
        "monkeypatch.setattr(durable, '_PATIENCE', 1)",
        "PATIENCE = 5",
    ],
)
def test_a_test_that_times_itself_is_seen(bad: str) -> None:
    assert list(uses(bad))


def test_patience_and_words_are_no_limits() -> None:
    good = "run(timeout=PATIENCE)\nthread.join(PATIENCE)\ncheck(seconds=0)\nselect([pipe], [], [], 0)\n"
    good += "connect(connect_timeout=PATIENCE, deadline=None)\nrun('curl', '--connect-timeout', str(PATIENCE))\n"
    good += "pool.get(PATIENCE)\nsignal.alarm(PATIENCE)\nprocess.wait(ROUND + PATIENCE)\nloop.run(wait(page, found))\n"
    assert not list(uses(good + "', '.join(words)\ntable.get('a', 5)\nprint(Stopwatch())\nline.time\ntimes = []"))
