"""Start a server in a process of its own on a free loopback port; it ends with the `with`. For benchmarks and tests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, Self

PATIENCE = 600.0  # seconds until what hangs is an error, also on a machine that is a hundred times slower

# Limits guard the machine from one key's traffic. Here the traffic is the measurement, so they are set out of the way.
PROGRAM = """
import sys
from tacit.serve import serve
from tacit.serve.admission import Limits
limits = Limits(rate=1e9, burst=10**9, together=10_000, together_of_one=10_000)
serve([sys.argv[1]], port=0, limits=limits, ready=lambda address: print(address, flush=True))
"""

# The same with PostgreSQL's protocol, whose address is the second line.
BOTH = PROGRAM.replace(
    "ready=", "postgres=('127.0.0.1', 0), postgres_ready=lambda address: print(address, flush=True), ready="
)

# A server does not outlive whoever started it, however that one ended: nothing is ever written here.
_WITH_PARENT = """
import os, threading
threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()
"""


class Server:
    """A running server: `address`, its process's number, and the memory that it holds.

    program: what it runs.
    log: the file of what it complains about, instead of this process's stderr.
    """

    def __init__(self, config: Path, program: str = PROGRAM, log: Path | None = None) -> None:
        command = [sys.executable, "-c", _WITH_PARENT + program, str(config)]
        with nullcontext() if log is None else log.open("w") as stderr:
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": stderr}
            self._process = subprocess.Popen(command, text=True, **pipes)
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        if not self.address.startswith("http://127.0.0.1:"):
            self.kill()
            raise RuntimeError("the server did not start")

    def line(self) -> str:
        """The next line that it prints."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def resident(self) -> int:
        """Bytes of memory."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    @property
    def busy(self) -> float:
        """Seconds of the processor so far."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> int:
        """Ask it to end, as an owner would."""
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(PATIENCE)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.running:
            self.kill()
