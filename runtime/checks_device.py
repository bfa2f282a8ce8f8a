"""Checks of execution providers and their devices: really usable, driver and libraries fit, memory is enough."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass

from crashpath.runtime import peak
from crashpath.runtime.finding import Check, Result, fail, ok, skip, warn
from crashpath.runtime.look import CPU, MIB, Look
from crashpath.runtime.probe_child import MAIN, PROVIDER

NVIDIA = frozenset({"CUDAExecutionProvider", "TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider"})
_PACKAGES = {
    "CUDAExecutionProvider": "onnxruntime-gpu",
    "TensorrtExecutionProvider": "onnxruntime-gpu",
    "OpenVINOExecutionProvider": "onnxruntime-openvino",
    "DmlExecutionProvider": "onnxruntime-directml",
    "QNNExecutionProvider": "onnxruntime-qnn",
}
_CONTEXT = 512 * MIB
"""What a CUDA context with its libraries takes on the device before there is a model."""
_QUERY_S = 30.0


@dataclass(frozen=True, slots=True)
class Gpu:
    """One device as the vendor's tool tells it; memory in bytes."""

    name: str
    driver: str
    total: int
    free: int


def provider(look: Look) -> Result:
    """Every provider asked for computes a graph of one node; nothing falls back to the processor in silence."""
    found = look.probe(PROVIDER)
    if found.loaded and not found.failure:
        return ok(f"{', '.join(look.wanted.providers)} computes (onnxruntime {found.version})")
    first = next((one for one in look.wanted.providers if one not in found.providers), look.wanted.providers[0])
    package = _PACKAGES.get(first)
    fix = f"pip install {package} in place of onnxruntime" if package else f"Install an onnxruntime with {first}"
    there = ", ".join(found.providers) or CPU
    return fail(found.message, f"{fix}; or ask for what is there: --provider {there.split(', ')[-1]}")


def driver(look: Look) -> Result:
    """A driver answers for the device, in the same container."""
    if not NVIDIA & set(look.wanted.providers):
        return skip("no provider of a GPU is asked for")
    gpus = query_gpus()
    if not gpus:
        return fail("nvidia-smi is not there or sees no device", "Start the container with the GPU (--gpus all).")
    return ok("; ".join(f"{one.name}, driver {one.driver}" for one in gpus))


def memory(look: Look) -> Result:
    """The predicted peak of the main path fits into the device's free memory."""
    if not NVIDIA & set(look.wanted.providers):
        return skip("no provider of a GPU is asked for")
    gpus = query_gpus()
    if not gpus:
        return skip("no device answers")
    need = peak.device_peak(look.graph()) + _CONTEXT
    told = f"{need / MIB:,.0f} MiB predicted, {gpus[0].free / MIB:,.0f} of {gpus[0].total / MIB:,.0f} MiB free"
    if need > gpus[0].free:
        return fail(told, "See who holds the memory: nvidia-smi; else a smaller batch or quantised weights.")
    return ok(told)


def computes(look: Look) -> Result:
    """The device gave the golden answer without a fault."""
    if set(look.wanted.providers) == {CPU}:
        return skip("no provider of a device is asked for")
    found = look.probe(MAIN)
    if found.failure in ("device_fault", "device_init", "oom_device"):
        return fail(found.message, "Take the device out of service, or restart its processes; see dmesg for Xid lines.")
    return ok("the device answered the golden feed") if found.compared else warn("no answer", "See main.runs.")


def query_gpus() -> tuple[Gpu, ...]:
    """Return the NVIDIA devices that are seen here; none where the tool is absent or fails."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    query = [tool, "--query-gpu=name,driver_version,memory.total,memory.free", "--format=csv,noheader,nounits"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=_QUERY_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return ()
    return parse_gpus(done.stdout)


def parse_gpus(text: str) -> tuple[Gpu, ...]:
    """Parse the tool's lines ``name, driver, MiB in all, MiB free``; a figure that is not told counts 0."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == 4:
            total, free = (int(cell) * MIB if cell.isdigit() else 0 for cell in cells[2:])
            found.append(Gpu(cells[0], cells[1], total, free))
    return tuple(found)


DEVICE_CHECKS = (
    Check("device.provider", "device_init", "the provider asked for computes", provider),
    Check("device.driver", "device_init", "the device's driver answers", driver),
    Check("device.memory", "oom_device", "the model fits into the device", memory, ("graph.parses",)),
    Check("device.computes", "device_fault", "the device computes right", computes, ("main.load",)),
)
