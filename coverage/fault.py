"""A fault: a failure of a deployment that is produced for real, on demand, in a process of its own.

``Fault.run`` gets an `Arena`: a scratch folder and the values that vary. It prepares real files, then lets the
real library fail, most often inside a small app that `Arena.serve` writes to disk. It returns only where the
process that failed was another one (a worker, a compiled program) or the failure was caught and logged.
"""

from __future__ import annotations

import importlib.util
import os
import random
import shutil
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from crashpath.coverage.app import Code, preload, run_app, run_app_fresh, write_app
from crashpath.coverage.breakage import drop_privileges, limit_memory
from crashpath.coverage.drillplan import DrillPlan, device_is_here
from crashpath.coverage.variation import Variation


@dataclass(frozen=True, slots=True)
class Arena:
    """Where a fault runs: an empty folder of its own, what varies, and random numbers of the same seed."""

    folder: Path
    variation: Variation
    rng: random.Random

    @property
    def root(self) -> Path:
        """The app's root folder inside the scratch folder."""
        path = self.folder / self.variation.layout.root
        path.mkdir(parents=True, exist_ok=True)
        return path

    def path(self, name: str) -> Path:
        """Return a path below the app's root, its folder made, ``{model}`` and ``{stem}`` filled in."""
        path = self.root / name.format(model=self.variation.model, stem=self.variation.stem)
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def serve(self, code: Code, *, fresh: bool = False, memory_mib: int = 0, as_nobody: bool = False) -> None:
        """Write the app whose innermost function is ``code`` and run it as the main program of this process.

        ``fresh`` replaces the process by a new interpreter: for failures of the process itself, whose dumps
        must not show this package. ``memory_mib`` limits the address space to so much more than is used already.
        ``as_nobody`` drops root's rights first. What the app raises ends the process as it would end any program.
        """
        entry = write_app(self.root, self.variation, code)
        if memory_mib or as_nobody:
            preload()
        if memory_mib:
            limit_memory(memory_mib)
        if as_nobody:
            drop_privileges()
        (run_app_fresh if fresh else run_app)(entry, self.folder)


@dataclass(frozen=True, slots=True)
class Fault:
    """One entry of the catalogue.

    ``needs`` names what must be there: ``linux``, ``root``, ``device`` (a GPU), ``python-headers``,
    ``module:gunicorn``, else a program on the path (``g++``). ``undo`` says what must be undone after it, beyond
    removing the scratch folder and ending the process group, which `faultrun.run_fault` always does. ``drill`` says how
    the same fault is raised inside the runtime, where it can be.
    """

    id: str
    failure_class: str
    phase: str
    library: str
    title: str
    run: Callable[[Arena], None]
    needs: tuple[str, ...] = ()
    timeout_s: float = 120.0
    undo: str = "nothing: the scratch folder and the process are all it touches"
    drill: DrillPlan | None = None


def missing(fault: Fault) -> str | None:
    """Return the first need of ``fault`` that this machine lacks, or ``None`` where it can run."""
    return next((need for need in fault.needs if not _has(need)), None)


def _has(need: str) -> bool:
    if need == "linux":
        return sys.platform.startswith("linux")
    if need == "root":
        return hasattr(os, "geteuid") and os.geteuid() == 0
    if need == "device":
        return device_is_here()
    if need == "python-headers":
        return Path(sysconfig.get_paths()["include"], "Python.h").exists()
    if need.startswith("module:"):
        return importlib.util.find_spec(need.removeprefix("module:")) is not None
    return shutil.which(need) is not None
