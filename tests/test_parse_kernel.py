"""Rules of kernel messages: the line that names the victim, in each generation of the OOM killer."""

from __future__ import annotations

import pytest

from crashpath.ingest.parse import parse


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),task=python3,pid=7,uid=0\n"
            "Out of memory: Killed process 7 (python3) total-vm:53312244kB, anon-rss:31451456kB\n"
            "oom_reaper: reaped process 7 (python3), now anon-rss:0kB\n",
            "Out of memory: Killed process 7 (python3) total-vm:53312244kB, anon-rss:31451456kB",
        ),
        (
            "[ 8120.110] Memory cgroup out of memory: Killed process 9 (triton) total-vm:1kB\n",
            "Memory cgroup out of memory: Killed process 9 (triton) total-vm:1kB",
        ),
        (
            "Out of memory: Kill process 12 (java) score 901 or sacrifice child\nKilled process 12 (java)\n",
            "Out of memory: Kill process 12 (java) score 901 or sacrifice child",
        ),
        (
            "python3 invoked oom-killer: gfp_mask=0x100cca, order=0\n",
            "python3 invoked oom-killer: gfp_mask=0x100cca, order=0",
        ),
    ],
)
def test_an_oom_kill_is_one_exception(text: str, message: str) -> None:
    """Old, new and cgroup kills are each one exception, with the signal that the victim got."""
    parsed = parse(text)
    assert [(t.type, t.message) for t in parsed.chain] == [("oom-kill", message)]
    assert (parsed.format, parsed.signal) == ("kernel_oom", "SIGKILL")


def test_a_user_mode_fault_names_its_library() -> None:
    """The kernel's segfault line gives the signal and the library."""
    parsed = parse("python3[77]: segfault at 18 ip 00007f21aa sp 00007ffc error 4 in libmodel.so.1[7f21aa+3000]\n")
    assert parsed.signal == "SIGSEGV"
    assert [frame.module for frame in parsed.chain[0].frames] == ["libmodel"]


def test_a_device_out_of_memory_is_not_the_kernels() -> None:
    """``out of memory`` without a victim is not an OOM kill."""
    assert parse("CUDA out of memory. Tried to allocate 2.00 GiB\n").signal is None
