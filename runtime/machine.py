"""What this machine, container or cgroup has: memory, space, files. Figures in bytes; ``None`` where it is not told."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import psutil

_UNLIMITED = 1 << 60
"""A cgroup of the first kind says "no limit" with a number near 2**63."""


@dataclass(frozen=True, slots=True)
class Group:
    """The tightest memory limit over this process: the limit, what is used of it, and the file that says so."""

    limit: int
    used: int
    source: str


def memory_group(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> Group | None:
    """Return the tightest memory limit of this process's cgroups, of either version; ``None`` where there is none."""
    found = []
    for folder in _folders(root, own):
        for limit_file, used_file in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            limit, used = _number(folder / limit_file), _number(folder / used_file)
            if limit is not None and used is not None and limit < _UNLIMITED:
                found.append(Group(limit, used, str(folder / limit_file)))
    return min(found, key=lambda one: one.limit - one.used, default=None)


def memory_free() -> int:
    """Return the bytes that a new process could have: what the system has left, or the tightest cgroup."""
    free = int(psutil.virtual_memory().available)
    group = memory_group()
    return free if group is None else max(0, min(free, group.limit - group.used))


def free_space(path: Path) -> int:
    """Return the bytes free for this user in the file system of a path."""
    stat = os.statvfs(path)
    return stat.f_bavail * stat.f_frsize


def open_files() -> tuple[int, int]:
    """Return how many files are open in this process, and how many may be."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        used = len(os.listdir("/proc/self/fd"))
    except OSError:
        used = int(psutil.Process().num_fds())
    return used, soft


def _folders(root: Path, own: Path) -> list[Path]:
    """Folders of this process's memory cgroup and of all above it; inside a container the root is its own group."""
    try:
        lines = own.read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    folders = []
    for line in lines:
        _, controllers, inside = line.split(":", 2)
        if controllers == "":
            base = root
        elif "memory" in controllers.split(","):
            base = root / "memory"
        else:
            continue
        folder = base / inside.lstrip("/")
        folders += [one for one in (folder, *folder.parents) if one == base or base in one.parents]
    return folders


def _number(path: Path) -> int | None:
    try:
        text = path.read_text(encoding="utf-8").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
