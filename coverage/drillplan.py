"""How a fault is driven through the runtime: what is struck or spoiled, where that can be, and how it shows."""

from __future__ import annotations

import os
import platform
import shutil
from dataclasses import dataclass
from pathlib import Path

ISOLATIONS = ("process", "in_process")

BOUND_S = "12"
"""Seconds after which a strike that waits comes back in the serving process, where no thread can be cut."""

ENDS_SERVICE = "it would end or freeze the process that serves: only a worker of its own can be struck so"


@dataclass(frozen=True, slots=True)
class DrillPlan:
    """One way to raise a fault inside the guarded call of a path.

    ``phases``: each is driven apart. Either ``strike`` (a name of `strikes.named`, with ``argument``; braces name what
    `props.Props` makes: ``{loop}``, ``{address-401}``) or ``spoiler`` (a name of `spoilers.spoiler`). ``bounded`` is
    the argument in the serving process, where no thread can be cut and no limit set. ``proof``: a pattern that must
    match what was observed, else the fault counts as not raised. ``process_only`` says why it cannot be driven in the
    serving process. ``needs``: what the machine or the folder must have, see `missing_for`.
    """

    phases: tuple[str, ...]
    proof: str
    strike: str = ""
    argument: str = ""
    bounded: str | None = None
    spoiler: str = ""
    path: str = "ort"
    process_only: str = ""
    needs: tuple[str, ...] = ()

    def argument_in(self, isolation: str) -> str:
        """The strike's argument in this isolation, its braces not filled in yet."""
        return self.argument if isolation == "process" or self.bounded is None else self.bounded


_GROUPS = Path("/sys/fs/cgroup/memory")
_DRIVERS = (Path("/dev/nvidiactl"), Path("/dev/kfd"))


def device_is_here() -> bool:
    """Whether a driver has made the nodes of a GPU."""
    return any(one.exists() for one in _DRIVERS)


def missing_for(plan: DrillPlan, isolation: str) -> str | None:
    """Say why the plan cannot be driven here in this isolation, or ``None`` where it can."""
    if isolation == "in_process" and plan.process_only:
        return plan.process_only
    return next((reason for need in plan.needs if (reason := _lacks(need))), None)


def _lacks(need: str) -> str | None:
    root = hasattr(os, "geteuid") and os.geteuid() == 0
    match need:
        case "root":
            return None if root else "it takes root's rights (mounts, memory groups)"
        case "not-root":
            return "root opens files of every mode" if root else None
        case "device":
            return None if device_is_here() else "there is no device here"
        case "no-device":
            return "there is a device here, so its driver is not missing" if device_is_here() else None
        case "memory-group":
            usable = root and _GROUPS.is_dir() and os.access(_GROUPS, os.W_OK)
            return None if usable else "memory groups (cgroup version 1, writable) are not here"
        case "x86-or-arm":
            return None if platform.machine() in ("x86_64", "aarch64") else f"not known for {platform.machine()}"
        case _:
            return None if shutil.which(need) else f"{need} is not installed"
