"""Exit codes of the command line. A contract: scripts and gates read them."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """What a command's exit code says. 1 means NO-GO and nothing else, ever."""

    DONE = 0
    NO_GO = 1
    USAGE = 2
    HOLD = 3
    FAILED = 4
    PARTIAL = 5
    RED = 6
