"""Real engines, local to this machine: a PostgreSQL server and a Spark of our own, for every test here."""

from __future__ import annotations

import getpass
import glob
import os
import pwd
import shutil
import subprocess
import tempfile
import urllib.parse
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import pytest

from support import PATIENCE, until


def unavailable(why: str) -> NoReturn:
    """Skips, or fails where the engines were promised."""
    if os.environ.get("TACIT_REQUIRE_ENGINES"):
        pytest.fail(why)
    pytest.skip(why)


@pytest.fixture(scope="package")
def postgres() -> Iterator[str]:
    """A server of our own in a temporary folder, reached through a socket there; its address."""
    if find_spec("psycopg") is None:
        unavailable("psycopg is not installed")
    found = shutil.which("initdb") or next(iter(sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))[::-1]), None)
    if found is None:
        unavailable("there is no PostgreSQL server on this machine")
    programs = Path(found).parent
    user = getpass.getuser()
    if os.geteuid() == 0:  # the server refuses to run as root
        user = next((u.pw_name for name in ("postgres", "nobody") for u in pwd.getpwall() if u.pw_name == name), "")
        if not user:
            unavailable("PostgreSQL does not run as root, and there is no user postgres or nobody")
    folder = tempfile.mkdtemp(prefix="pg")
    as_user: dict[str, Any] = {"cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
    if os.geteuid() == 0:
        shutil.chown(folder, user)
        as_user |= {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}
    data = os.path.join(folder, "data")
    try:
        initdb = [
            programs / "initdb",
            "-D",
            data,
            "-U",
            "tacit",
            "-A",
            "trust",
            "-E",
            "UTF8",
            "--locale=C",
            "--no-sync",
        ]
        subprocess.run(initdb, check=True, timeout=PATIENCE, **as_user)
        server = subprocess.Popen([programs / "postgres", "-D", data, "-k", folder, "-h", "", "-F"], **as_user)
        try:
            url = f"postgresql://tacit@/postgres?host={urllib.parse.quote(folder, safe='')}"
            until(lambda: _answers(url))
            yield url
        finally:
            server.terminate()
            server.wait(PATIENCE)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _answers(url: str) -> bool:
    import psycopg

    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.fixture(scope="package")
def spark() -> Iterator[Any]:
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        unavailable("there is no Java on this machine")
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        unavailable("pyspark is not installed")
    builder = SparkSession.builder.master("local[2]").appName("tacit tests")
    settings = {
        "ui.enabled": "false",
        "sql.shuffle.partitions": "2",
        "driver.host": "127.0.0.1",
        "driver.bindAddress": "127.0.0.1",
    }
    for name, value in settings.items():
        builder = builder.config(f"spark.{name}", value)
    with tempfile.TemporaryDirectory(prefix="spark") as folder:
        session = builder.config("spark.sql.warehouse.dir", folder).getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()
