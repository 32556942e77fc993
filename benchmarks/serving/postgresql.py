"""A PostgreSQL server of its own that holds a made table, for a comparison: it ends with the `with`."""

from __future__ import annotations

import contextlib
import glob
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

USER, PASSWORD = "tacit", "for a comparison"


def programs() -> Path | None:
    """The folder of initdb and postgres; None where PostgreSQL is not installed."""
    found = shutil.which("initdb") or next(iter(sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))[::-1]), None)
    return None if found is None else Path(found).resolve().parent


class PostgreSQL:
    """A running server, with the rows of a CSV file in its table `data`: `port`, and the processor's time that it took.

    As PostgreSQL comes, but for the disk: what is measured is reading. Without a file it is empty.
    """

    def __init__(self, csv: Path | None = None) -> None:
        found = programs()
        if found is None:
            raise RuntimeError("PostgreSQL is not installed")
        self._folder = Path(tempfile.mkdtemp(prefix="tacit-postgresql-"))
        as_user: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        if os.getuid() == 0:  # PostgreSQL does not run as root
            names = {one.pw_name for one in pwd.getpwall()}
            owner = "postgres" if "postgres" in names else "nobody"
            shutil.chown(self._folder, owner)
            as_user |= {"user": owner, "cwd": self._folder}
        secret = self._folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        data = str(self._folder / "data")
        login = ["-A", "scram-sha-256", "-U", USER, "--pwfile", str(secret)]
        subprocess.run([found / "initdb", "-D", data, "-E", "UTF8", "--locale=C", *login], check=True, **as_user)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        listens = ["-h", "127.0.0.1", "-p", str(self.port), "-k", str(self._folder), "-F"]
        self._process = subprocess.Popen([found / "postgres", "-D", data, *listens], **as_user)
        with self._connected() as connection:
            if csv is not None:
                self._load(connection, csv)

    @property
    def url(self) -> str:
        return f"postgresql://{USER}:{quote(PASSWORD)}@127.0.0.1:{self.port}/postgres"

    def _connected(self) -> Any:
        import psycopg

        for _ in range(100):
            with contextlib.suppress(psycopg.OperationalError):
                return psycopg.connect(self.url, autocommit=True)
            time.sleep(0.2)
        raise RuntimeError("PostgreSQL did not start")

    def _load(self, connection: Any, csv: Path) -> None:
        with csv.open() as rows:
            columns = ", ".join(f'"{name}" integer' for name in rows.readline().strip().split(","))
            connection.execute(f"CREATE TABLE data ({columns})".encode())
            with connection.cursor().copy("COPY data FROM STDIN (FORMAT csv)") as copy:
                for block in iter(lambda: rows.read(2**16), ""):
                    copy.write(block)
            connection.execute("VACUUM ANALYZE data")

    @property
    def busy(self) -> float:
        """Seconds of the processor so far: of the server, of its children, and of those that have ended."""
        ticks = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text().rsplit(")", 1)[1].split()
            except OSError:  # it has ended
                continue
            if int(stat.parent.name) == self._process.pid:
                ticks += sum(map(int, fields[11:15]))
            elif int(fields[1]) == self._process.pid:
                ticks += sum(map(int, fields[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(60)
        shutil.rmtree(self._folder, ignore_errors=True)
