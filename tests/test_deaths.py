"""Which process a log says died."""

from __future__ import annotations

import pytest

from crashpath.ingest.victims import victim_of


@pytest.mark.parametrize(
    ("text", "victim"),
    [
        ("Out of memory: Killed process 4121 (python3) total-vm:1kB", "4121"),
        ("Memory cgroup out of memory: Kill process 77 (serve) score 1 or sacrifice child", "77"),
        ("python3[991]: segfault at 0 ip 00007f sp 00007f error 4 in libtorch_cpu.so[7f+1]", "991"),
        ("traps: python3[12] general protection fault ip:7f sp:7f error:0", "12"),
        ("systemd-coredump[9]: Process 345 (python3) of user 1000 dumped core.", "345"),
        ('{"COREDUMP_PID" : "678", "MESSAGE": "core"}', "678"),
        ("serve[1412]: Traceback (most recent call last):", None),
        ("Process 12 started", None),
        ("", None),
    ],
)
def test_victim(text: str, victim: str | None) -> None:
    """The id of the process that died, not of who writes of it; nothing where a line names none."""
    assert victim_of(text) == victim
