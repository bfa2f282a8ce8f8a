"""The fault catalogue: what `make corpus` runs, what drills drive, what the classifier learns from."""

from __future__ import annotations

from crashpath.coverage import faults_python
from crashpath.coverage.fault import Arena, Fault, missing

__all__ = ["Arena", "FAULTS", "Fault", "fault_by_id", "missing"]

FAULTS: tuple[Fault, ...] = (*faults_python.FAULTS,)


def fault_by_id(fault_id: str) -> Fault:
    """Return the entry with this id. Raises `KeyError` with the id where there is none."""
    for fault in FAULTS:
        if fault.id == fault_id:
            return fault
    raise KeyError(fault_id)
