"""The same answer elsewhere: text to copy into Python, a terminal or curl. Pure; called by the pages.

Python and the command line use the published file, which the page offers: what has just been answered is in it, so
neither data nor budget are needed.
"""

from __future__ import annotations

import json
import shlex

from tacit.reporting.page import code, escaped
from tacit.serve.strict import Json


def ways(given: str | Json, dataset: str, base: str) -> dict[str, str]:
    """The name of each way, and its text."""
    file = f"{dataset}.tacit.jsonl"
    name = "" if isinstance(given, str) else str(given["cdf"])
    call = f"ask({given!r})" if isinstance(given, str) else f"cdf({name!r})"
    python = f'import tacit\n\nknown = tacit.read("{file}")\nprint(known.{call})\n'
    words = ["ask", _argument(given)] if isinstance(given, str) else ["cdf", _argument(name)]
    terminal = f"tacit {words[0]} --published {file} {words[1]}\n"
    body = shlex.quote(json.dumps({"question": given}, ensure_ascii=False))
    curl = (
        'curl -H "Authorization: Bearer $TACIT_KEY" -H "Content-Type: application/json" \\\n'
        f"  -d {body} \\\n  {base}/v1/{dataset}/ask\n"
    )
    return {"Python": python, "Command line": terminal, "curl": curl}


def same_html(given: str | Json, dataset: str, base: str) -> str:
    """The ways as a folded part of the page."""
    blocks = "".join(
        f'<h4>{name}</h4><div class="code">{code(text)}</div>' for name, text in ways(given, dataset, base).items()
    )
    sql = f'<h4>SQL</h4><div class="code">{code(given)}</div>' if isinstance(given, str) else ""
    file = f'<a href="/data/{escaped(dataset)}/published">{escaped(dataset)}.tacit.jsonl</a>'
    note = (
        f"<p>Python and the command line read {file}: download it after asking. It answers for ever, without the data "
        "and for nothing. For curl, <code>TACIT_KEY</code> is your key.</p>"
    )
    title = "The same answer from Python, the command line and curl"
    return f'<details class="same"><summary>{title}</summary>{sql}{blocks}{note}</details>'


def _argument(text: str) -> str:
    """One argument; what begins with a dash is not an option."""
    return ("-- " if text.startswith("-") else "") + shlex.quote(text)
