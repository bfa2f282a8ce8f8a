"""Faults of the device below a model folder's runtime: its memory, its kernels, its absence."""

from __future__ import annotations

from crashpath.coverage.drillplan import DrillPlan
from crashpath.coverage.fault import Fault
from crashpath.coverage.modelapps import struck

STARTING = ("load", "warmup")
LIFE = (*STARTING, "infer")
_POISONED = "it would leave a broken device context in the process that serves, for as long as that lives"


def _strike(
    fault_id: str,
    failure_class: str,
    library: str,
    title: str,
    strike: str,
    proof: str,
    *,
    argument: str = "",
    phases: tuple[str, ...] = LIFE,
    process_only: str = "",
) -> Fault:
    """One through torch strikes the fallback, which has torch loaded: its import alone outlasts a request."""
    path = "torchscript" if library == "torch" else "ort"
    plan = DrillPlan(
        phases, proof, f"device.{strike}", argument, path=path, needs=("device",), process_only=process_only
    )
    needs = ("device", "module:torch") if library == "torch" else ("device",)
    run = struck(f"device.{strike}", argument, phase=phases[-1])
    return Fault(f"model-device-{fault_id}", failure_class, phases[-1], library, title, run, needs, drill=plan)


def _kernel(argument: str, title: str, proof: str) -> Fault:
    return _strike(
        argument, "device_fault", "cuda", title, "kernel_faults", proof, argument=argument, process_only=_POISONED
    )


FAULTS = (
    _strike("memory", "oom_device", "cuda", "allocate until the driver refuses", "memory_refused", "out of memory"),
    _strike(
        "torch-memory", "oom_device", "torch", "allocate until torch refuses", "torch_memory_refused",
        "CUDA out of memory", phases=STARTING,
    ),
    _kernel("address", "a kernel writes to an address that is not its own", "illegal memory access"),
    _kernel("misaligned", "a kernel writes between two words", "misaligned address"),
    _kernel("trap", "a kernel gives up", "unspecified launch failure"),
    _kernel("assertion", "an assertion in a kernel", "device-side assert"),
    _strike(
        "torch-assertion", "device_fault", "torch", "index out of range on the device", "torch_assertion",
        "device-side assert", phases=STARTING, process_only=_POISONED,
    ),
    _strike(
        "ordinal", "device_init", "cuda", "ask for a device that is not there", "device_missing", "invalid device",
        phases=STARTING,
    ),
    _strike(
        "torch-ordinal", "device_init", "torch", "ask torch for a device that is not there", "torch_device_missing",
        "invalid device", phases=STARTING,
    ),
)  # fmt: skip
