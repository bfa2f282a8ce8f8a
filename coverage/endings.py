"""How the worker processes of a session ended, as the kernel told it, and which of them this process killed itself.

The exit status is the one that the standard library got from the kernel when the process was waited for. Whether a
kill was this process's own, and not the fault's, is seen where Python sends it: a drill that a session's own kill would
prove proves nothing.
"""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
import time
from typing import Any

_STEP_S = 0.005
_killed: set[int] = set()
_listening = False


class Endings:
    """Watches processes of which somebody in this process holds a `subprocess.Popen`. One thread at a time calls it."""

    def __init__(self) -> None:
        listen()
        self._watched: dict[int, subprocess.Popen[Any]] = {}

    def watch(self, pid: int) -> None:
        """Remember a child; call it while the child lives."""
        if pid in self._watched:
            return
        _killed.discard(pid)  # an earlier process may have had its number
        for one in gc.get_objects():
            if type(one) is subprocess.Popen and one.pid == pid:
                self._watched[pid] = one
                return

    def how(self, pid: int, seconds: float) -> str:
        """Say how a watched child ended; ``""`` where it was not seen to, within ``seconds``."""
        process = self._watched.get(pid)
        end = time.monotonic() + seconds
        while process is not None:
            if process.returncode is not None:
                return "was ended by who serves" if pid in _killed else ending(process.returncode)
            if time.monotonic() >= end:
                break
            time.sleep(_STEP_S)
        return ""


def ending(returncode: int) -> str:
    """Return a return code in words: the signal's name, or the exit code."""
    if returncode >= 0:
        return f"ended with exit code {returncode}"
    try:
        return f"ended by {signal.Signals(-returncode).name}"
    except ValueError:  # a real-time signal has no name
        return f"ended by signal {-returncode}"


def listen() -> None:
    """Begin to note whom this process kills. A hook of the interpreter cannot be taken away; it costs next to nothing.

    It sees `os.kill` and what is built on it, as `subprocess.Popen.kill` is.
    """
    global _listening  # the hook itself is one a process, for good
    if not _listening:
        _listening = True
        sys.addaudithook(_heard)


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "os.kill" and arguments[1] == signal.SIGKILL:
        _killed.add(arguments[0])
