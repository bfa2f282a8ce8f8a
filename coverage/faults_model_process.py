"""Faults of a model folder's runtime: the process that runs a path is killed, crashes, or is refused memory."""

from __future__ import annotations

from crashpath.coverage.drillplan import ENDS_SERVICE, DrillPlan
from crashpath.coverage.fault import Fault
from crashpath.coverage.modelapps import spoilt, struck

LIFE = ("load", "warmup", "infer")


def _dies(fault_id: str, failure_class: str, title: str, strike: str, proof: str, *needs: str) -> Fault:
    """A strike that ends the process; the death is observed, by its signal and by what was said before."""
    plan = DrillPlan(LIFE, proof, strike, process_only=ENDS_SERVICE, needs=needs)
    return Fault(
        fault_id, failure_class, "infer", "python", title, struck(strike, phase="infer"), ("linux",), drill=plan
    )


def _refused(fault_id: str, library: str, title: str, strike: str, proof: str, file: str = "") -> Fault:
    """A strike that is refused memory: under a limit in a worker, beyond any address space in the serving process."""
    argument, bounded = (f"{file}|64", f"{file}|") if file else ("64", "")
    plan = DrillPlan(LIFE, proof, strike, argument, bounded=bounded)
    run = struck(strike, argument, phase="infer")
    return Fault(fault_id, "oom_host", "infer", library, title, run, ("linux",), drill=plan)


FAULTS = (
    _dies("model-killed", "oom_host", "a bare SIGKILL, as the kernel's for memory", "process.killed", "SIGKILL"),
    _dies("model-segmentation-fault", "native_crash", "read address 0", "process.segmentation_fault", "SIGSEGV"),
    _dies("model-abort", "native_crash", "call abort", "process.abort", "SIGABRT"),
    _dies("model-bus-error", "native_crash", "read a mapped file that was cut short", "process.bus_error", "SIGBUS"),
    _dies(
        "model-illegal-instruction",
        "native_crash",
        "run machine code of another processor",
        "process.illegal_instruction",
        "SIGILL",
        "x86-or-arm",
    ),
    _dies(
        "model-uncaught-bad-alloc",
        "oom_host",
        "a C++ allocation that fails with nobody to catch it",
        "process.uncaught_bad_alloc",
        "bad_alloc",
    ),
    _refused("model-bytes-refused", "python", "a buffer that is refused", "memory.bytes_refused", "MemoryError"),
    _refused("model-array-refused", "numpy", "an array that is refused", "memory.array_refused", "Unable to allocate"),
    _refused(
        "model-mapping-refused", "python", "a mapping that is refused", "memory.mapping_refused", "allocate memory"
    ),
    _refused(
        "model-expand-refused",
        "onnxruntime",
        "an Expand of ONNX Runtime that is refused",
        "memory.expand_refused",
        "Failed to allocate memory|bad_alloc",
        "{expand}",
    ),
    Fault(
        "model-request-memory",
        "oom_host",
        "infer",
        "onnxruntime",
        "a request that makes the model's own Expand ask for too much",
        spoilt("poison-memory", phase="infer"),
        drill=DrillPlan(("infer",), "Failed to allocate memory|bad_alloc", spoiler="poison-memory"),
    ),
)
