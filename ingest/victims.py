"""Which process died, where a log names it by its id: what joins a kernel's line to the event of the same death."""

from __future__ import annotations

import re

_NAMED = re.compile(
    r"Kill(?:ed)? process (?P<killed>\d+) \("
    r"|\S\[(?P<faulted>\d+)\]: segfault at "
    r"|traps: \S+?\[(?P<trapped>\d+)\]"
    r"|Process (?P<dumped>\d+) \([^)\n]*\) of user \d+ dumped core"
    r"|\"COREDUMP_PID\"\s*:\s*\"(?P<journal>\d+)\""
)
"""The OOM killer and faults (Linux, mm/oom_kill.c and arch/x86/mm/fault.c), and systemd-coredump."""


def victim_of(text: str) -> str | None:
    """Return the id of the process that a record says died, ``None`` where it names none."""
    found = _NAMED.search(text) if "rocess" in text or "]: " in text or "PID" in text or "traps: " in text else None
    return None if found is None else next(one for one in found.groups() if one is not None)
