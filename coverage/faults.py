"""The fault catalogue: what `make corpus` runs, what drills drive, what the classifier learns from."""

from __future__ import annotations

from crashpath.coverage import (
    faults_checkpoint,
    faults_distributed,
    faults_native,
    faults_onnx,
    faults_ort,
    faults_ort_run,
    faults_python,
    faults_torch,
    faults_torchscript,
)
from crashpath.coverage.fault import Arena, Fault, missing

__all__ = ["Arena", "FAULTS", "Fault", "fault_by_id", "missing"]

FAULTS: tuple[Fault, ...] = (
    *faults_torch.FAULTS,
    *faults_checkpoint.FAULTS,
    *faults_distributed.FAULTS,
    *faults_torchscript.FAULTS,
    *faults_onnx.FAULTS,
    *faults_ort.FAULTS,
    *faults_ort_run.FAULTS,
    *faults_python.FAULTS,
    *faults_native.FAULTS,
)


def fault_by_id(fault_id: str) -> Fault:
    """Return the entry with this id. Raises `KeyError` with the id where there is none."""
    for fault in FAULTS:
        if fault.id == fault_id:
            return fault
    raise KeyError(fault_id)
