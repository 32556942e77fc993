"""The server from the command line: keys are made, listed and revoked, and a server starts, answers and ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from people import CSV, configuration, tacit
from support import PATIENCE


@pytest.fixture
def folder(here: Path) -> Path:
    (here / "people.csv").write_text(CSV)
    (here / "people.toml").write_text(configuration("sex", epsilon=1.0, anchor="people.anchor", mechanism="direct"))
    return here


def said(*arguments: str, code: int = 0) -> str:
    done = tacit(*arguments)
    assert done.exit_code == code, done.output
    return done.stdout if code == 0 else done.stderr


def test_keys_are_made_listed_and_revoked(folder: Path) -> None:
    key = said("token", "make", "ada", "--role", "reader").strip()
    assert re.fullmatch(r"tacit_[\w-]{43}", key)
    assert key.encode() not in (folder / "tacit.keys").read_bytes()
    made = json.loads(said("token", "make", "bob", "--quota", "0.25", "--json"))
    assert (made["role"], made["quota"]) == ("analyst", 0.25)
    assert said("token", "revoke", "ada") == "The key of ada opens nothing any more.\n"
    listed = json.loads(said("token", "list", "--json"))["keys"]
    assert [(one["name"], bool(one["revoked"])) for one in listed] == [("ada", True), ("bob", False)]
    text = said("token", "list")
    assert "25%" in text
    assert made["key"] not in text
    assert "bob" in said("token", "make", "bob", code=1)
    assert "nobody" in said("token", "revoke", "nobody", code=1)
    assert "quota" in said("token", "make", "eve", "--quota", "2", code=1)


def test_what_cannot_be_served_is_one_sentence(folder: Path) -> None:
    assert "make the first key" in said("serve", "people.toml", "--port", "0", code=1)
    said("token", "make", "ada")
    for arguments, words in ((["missing.toml"], "missing.toml"), (["people.toml", "--host", "0.0.0.0"], "TLS|tls")):
        sentence = said("serve", *arguments, "--port", "0", code=1)
        assert re.search(words, sentence)
        assert "Traceback" not in sentence


def test_a_server_starts_answers_and_ends(folder: Path) -> None:
    key = said("token", "make", "ada").strip()
    command = [str(Path(sys.executable).parent / "tacit"), "serve", "people.toml", "--port", "0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"})
    try:
        assert server.stderr is not None
        found = re.match(r"Serving at (http://127\.0\.0\.1:\d+);", server.stderr.readline())
        assert found is not None
        body = json.dumps({"question": "SELECT COUNT(*) FROM data WHERE sex = 'F'"}).encode()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
        asked = urllib.request.Request(f"{found[1]}/v1/people/ask", body, headers)
        with urllib.request.urlopen(asked, timeout=PATIENCE) as reply:
            answer = json.load(reply)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(
                urllib.request.Request(asked.full_url, body, {**headers, "Authorization": "Bearer x"})
            )
        assert refused.value.code == 401
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(PATIENCE) == 0
    told = json.loads(said("ask", "SELECT COUNT(*) FROM data WHERE sex = 'F'", "-c", "people.toml", "--json"))
    shown = answer.get("answer", answer)
    assert (told["value"], told["error"], told["entry"]) == (shown["value"], shown["error"], shown["entry"])
    assert told["source"] == "repeat"
