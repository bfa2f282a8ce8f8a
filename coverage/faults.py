"""The fault catalogue: what `make corpus` runs, what drills drive, what the classifier learns from."""

from __future__ import annotations

from crashpath.coverage import (
    faults_checkpoint,
    faults_cuda,
    faults_cuda_memory,
    faults_cuda_other,
    faults_distributed,
    faults_hub,
    faults_jvm,
    faults_limits,
    faults_model_device,
    faults_model_files,
    faults_model_host,
    faults_model_process,
    faults_model_waiting,
    faults_native,
    faults_network,
    faults_node,
    faults_numpy,
    faults_onnx,
    faults_ort,
    faults_ort_kernels,
    faults_ort_run,
    faults_process,
    faults_python,
    faults_server,
    faults_tokenizer,
    faults_torch,
    faults_torchscript,
    faults_transformers,
    faults_waiting,
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
    *faults_ort_kernels.FAULTS,
    *faults_ort_run.FAULTS,
    *faults_hub.FAULTS,
    *faults_tokenizer.FAULTS,
    *faults_transformers.FAULTS,
    *faults_python.FAULTS,
    *faults_numpy.FAULTS,
    *faults_waiting.FAULTS,
    *faults_native.FAULTS,
    *faults_network.FAULTS,
    *faults_server.FAULTS,
    *faults_process.FAULTS,
    *faults_jvm.FAULTS,
    *faults_node.FAULTS,
    *faults_limits.FAULTS,
    *faults_cuda_memory.FAULTS,
    *faults_cuda.FAULTS,
    *faults_cuda_other.FAULTS,
    *faults_model_process.FAULTS,
    *faults_model_waiting.FAULTS,
    *faults_model_files.FAULTS,
    *faults_model_host.FAULTS,
    *faults_model_device.FAULTS,
)


def fault_by_id(fault_id: str) -> Fault:
    """Return the entry with this id. Raises `KeyError` with the id where there is none."""
    for fault in FAULTS:
        if fault.id == fault_id:
            return fault
    raise KeyError(fault_id)
