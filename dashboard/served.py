"""The dashboard, served for as long as a block runs: for tests in a browser, the pictures of docs/ and benchmarks."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

START_SECONDS = 120.0
_END_SECONDS = 30.0
_POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Served:
    """A dashboard that answers at ``url``; ``pid`` is the command's, whose only child is Streamlit's server."""

    url: str
    pid: int


@contextmanager
def served(db: str, log: Path, *flags: str, env: Mapping[str, str] | None = None) -> Iterator[Served]:
    """Run ``crashpath dashboard`` on a store at a free port, until it is healthy and then until the block ends.

    What it prints goes into ``log``. ``RuntimeError`` with the end of that where it does not come up.
    """
    port = free_port()
    command = [sys.executable, "-m", "crashpath.dashboard.cli", "dashboard", "--db", db, "--port", str(port), *flags]
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=os.environ | dict(env or {}), stdout=out, stderr=subprocess.STDOUT)
    try:
        url = f"http://127.0.0.1:{port}"
        _await_health(process, url, log)
        yield Served(url, process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def free_port() -> int:
    """Return a port that nothing listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_health(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < end:
        try:
            urllib.request.urlopen(f"{url}/_stcore/health", timeout=2).close()
        except (urllib.error.URLError, OSError):
            time.sleep(_POLL_SECONDS)
        else:
            return
    told = log.read_text(encoding="utf-8", errors="replace")[-2000:]
    raise RuntimeError(f"The dashboard did not come up at {url}. It printed: {told}")
