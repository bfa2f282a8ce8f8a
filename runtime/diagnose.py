"""Look at a model folder before anything is served from it, and say what would fail, and how to put it right.

::

    found = diagnose("models/minilm")
    print(found.verdict)
    for finding in found.findings:
        print(finding.status, finding.check, finding.evidence, finding.fix)

Every check names the failure class that it keeps out of the field. Artefacts are loaded in children with a deadline
and a cap on memory: one that crashes, hangs or takes all memory is a finding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from crashpath.runtime.checks_device import DEVICE_CHECKS
from crashpath.runtime.checks_files import FILE_CHECKS
from crashpath.runtime.checks_graph import GRAPH_CHECKS
from crashpath.runtime.checks_machine import MACHINE_CHECKS
from crashpath.runtime.checks_memory import MEMORY_CHECKS
from crashpath.runtime.checks_paths import PATH_CHECKS
from crashpath.runtime.errors import ModelFolderError
from crashpath.runtime.finding import Check, Finding, Status, skip
from crashpath.runtime.folder import read_folder
from crashpath.runtime.look import Look, Wanted

_PROVIDER, _DRIVER, *_DEVICE = DEVICE_CHECKS
CHECKS: tuple[Check, ...] = (
    *MACHINE_CHECKS,
    *FILE_CHECKS,
    *GRAPH_CHECKS,
    _PROVIDER,
    _DRIVER,
    *PATH_CHECKS,
    *_DEVICE,
    *MEMORY_CHECKS,
)
"""In the order in which they are asked: a check stands behind those that it needs."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found. ``model`` is the folder's name and hash, its path where ``model.toml`` was not understood."""

    model: str
    findings: tuple[Finding, ...]

    @property
    def status(self) -> Status:
        """The worst of all: ``fail``, ``warn`` or ``ok``."""
        found = {one.status for one in self.findings}
        return Status.FAIL if Status.FAIL in found else Status.WARN if Status.WARN in found else Status.OK

    @property
    def verdict(self) -> str:
        """One line."""
        of = {status: [one.check for one in self.findings if one.status is status] for status in Status}
        if of[Status.FAIL]:
            return f"FAIL: do not serve {self.model}: {_some(of[Status.FAIL])}"
        if of[Status.WARN]:
            return f"WARN: {self.model} can be served, but see {_some(of[Status.WARN])}"
        return f"OK: {self.model} can be served: {len(of[Status.OK])} checks ok, {len(of[Status.SKIP])} skipped"


def diagnose(
    folder: Path | str,
    wanted: Wanted | None = None,
    *,
    checks: Sequence[Check] = CHECKS,
    progress: Callable[[Finding], None] | None = None,
) -> Diagnosis:
    """Ask the checks about a folder that exists. ``progress`` gets each finding as it comes.

    Raises ``NotADirectoryError`` where there is no such folder; whatever is wrong inside of it is a finding.
    """
    path = Path(folder)
    if not path.is_dir():
        raise NotADirectoryError(f"{path} is no folder")
    look = _look(path, wanted or Wanted(), ahead=checks is CHECKS)
    findings: list[Finding] = []
    without: dict[str, str] = {}  # a check without an answer → the check that is the reason
    try:
        for check in checks:
            lacks = next((without[one] for one in check.needs if one in without), None)
            result = check.run(look) if lacks is None else skip(f"needs {lacks}")
            if result.status in (Status.FAIL, Status.SKIP):
                without[check.id] = lacks or check.id
            findings.append(Finding(check.id, check.prevents, result.status, result.evidence, result.fix))
            if progress is not None:
                progress(findings[-1])
    finally:
        look.close()
    model = str(path) if look.folder is None else f"{look.folder.name} ({look.folder.hash})"
    return Diagnosis(model, tuple(findings))


def _look(path: Path, wanted: Wanted, *, ahead: bool) -> Look:
    try:
        return Look(path, wanted, folder=read_folder(path), ahead=ahead)
    except ModelFolderError as error:
        return Look(path, wanted, problem=error, ahead=ahead)


def _some(checks: list[str], most: int = 3) -> str:
    more = f" and {len(checks) - most} more" if len(checks) > most else ""
    return ", ".join(checks[:most]) + more
