"""The server on the demonstration table, for trying it: `tacit demo --serve`. Called by the command line."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path

from tacit.serve.keys import make_key
from tacit.serve.run import PORT, serve

_CONFIG = """[data]
source = {source}
[budget]
epsilon = {epsilon}
delta = {delta}
[session]
ledger = "demo.tacit"
anchor = "demo.anchor"
questions = 1000
{domain}"""


def serve_demo(port: int = PORT, *, say: Callable[[str], None] = print) -> None:
    """Serve the demonstration table on this machine until interrupted; everything is made new and goes with it.

    port: where to listen; 0 takes any free one.
    say: told, once the server is up, the address that logs a browser in (once), and keys for each role.
    """
    from tacit.demo import BUDGET, DOMAIN, view
    from tacit.model.domain import toml_value

    with (
        tempfile.TemporaryDirectory(prefix="tacit-demo-") as made,
        as_file(files("tacit.demo") / "randhie.csv.gz") as csv,
    ):
        folder = Path(made)
        config = folder / "demo.toml"
        source = toml_value(view(csv).strip())
        text = _CONFIG.format(source=source, epsilon=BUDGET.epsilon, delta=BUDGET.delta, domain=DOMAIN.to_toml())
        config.write_text(text, encoding="utf-8")
        keys = {role: make_key(folder / "tacit.keys", role, role) for role in ("owner", "analyst", "reader")}
        word = secrets.token_urlsafe(24)

        def ready(address: str) -> None:
            say(
                f"The demonstration is at {address}\n"
                f"  open this, once: {address}/enter/{word}\n"
                f"  or log in with a key, as the owner:  {keys['owner']}\n"
                f"                         an analyst:  {keys['analyst']}\n"
                f"                           a reader:  {keys['reader']}\n"
                "Ctrl+C ends it, and nothing stays."
            )

        serve([config], port=port, ready=ready, invitations={word: keys["owner"]})
