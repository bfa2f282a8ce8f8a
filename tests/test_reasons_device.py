"""The registry of reasons, against what libraries printed on a real GPU (torch 2.11, CUDA 13.0, one device)."""

from __future__ import annotations

import signal

import pytest
import torch

from crashpath.runtime import errors
from crashpath.runtime.errors import Failure
from crashpath.runtime.reasons import recognise, recognise_death
from crashpath.runtime.values import Path, Phase

ADVICE = (
    "\nCUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be"
    " incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\nCompile with `TORCH_USE_CUDA_DSA` to enable"
    " device-side assertions.\n"
)
"""What torch prints below every error of the device, whatever it was."""

DEVICE: tuple[tuple[str, type[Failure]], ...] = (
    ("CUDA error: device-side assert triggered", errors.DeviceFault),
    ("CUDA error: an illegal memory access was encountered", errors.DeviceFault),
    ("CUDA error: misaligned address", errors.DeviceFault),
    ("CUDA error: unspecified launch failure", errors.DeviceFault),
    ("CUDA error: operation not supported on global/shared address space", errors.DeviceFault),
    ("CUDA error: invalid device ordinal\nGPU device may be out of range, do you have enough GPUs?", errors.DeviceInit),
    ("CUDA error: no kernel image is available for execution on the device", errors.DeviceInit),
    ("CUDA error: out of memory", errors.DeviceMemory),
)
PLAIN: tuple[tuple[str, type[Failure]], ...] = (
    ("CUDA error: an illegal memory access was encountered (cuCtxSynchronize returned 700, CUDA_ERROR_ILLEGAL_ADDRESS)",
     errors.DeviceFault),
    ("CUDA error: device-side assert triggered (cuCtxSynchronize returned 710, CUDA_ERROR_ASSERT)", errors.DeviceFault),
    ("CUDA error: out of memory (cuMemAlloc_v2 returned 2, CUDA_ERROR_OUT_OF_MEMORY)", errors.DeviceMemory),
    ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", errors.DeviceMemory),
    ("CUDA error: invalid device ordinal (cuDeviceGet returned 101, CUDA_ERROR_INVALID_DEVICE)", errors.DeviceInit),
    ("No CUDA GPUs are available", errors.DeviceInit),
    ("Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver from"
     " http://www.nvidia.com/Download/index.aspx", errors.DeviceInit),
    ("Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start"
     " method", errors.DeviceInit),
    ("Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.", errors.DeviceInit),
    ("nvrtc: error: failed to open libnvrtc-builtins.so.13.0.\n  Make sure that libnvrtc-builtins.so.13.0 is installed"
     " correctly.", errors.DeviceInit),
    ("NCCL error in: NCCLUtils.cpp:93, invalid usage (run with NCCL_DEBUG=WARN for details), NCCL version 2.28.9\n"
     "Last error:\nDuplicate GPU detected : rank 0 and rank 1 both on CUDA device 60", errors.DeviceInit),
    ("GET was unable to find an engine to execute this computation", errors.UnsupportedOp),
    ("No available kernel. Aborting execution.", errors.UnsupportedOp),
    ("\"addmm_cuda\" not implemented for 'Int'", errors.UnsupportedOp),
    ("Could not run 'quantized::linear' with arguments from the 'QuantizedCUDA' backend.", errors.UnsupportedOp),
)  # fmt: skip


@pytest.mark.parametrize(("message", "failure"), DEVICE)
def test_the_advice_below_an_error_is_no_reason(message: str, failure: type[Failure]) -> None:
    """Rule: torch's error of a device is named by what it says happened, not by the advice below each of them."""
    error = torch.AcceleratorError(message + ADVICE)
    assert type(recognise(error, Phase.INFER, Path.MAIN)) is failure


@pytest.mark.parametrize(("message", "failure"), PLAIN)
def test_what_else_a_device_makes_libraries_say(message: str, failure: type[Failure]) -> None:
    """Rule: the words of the driver, of vendor libraries and of torch's own checks name the same classes."""
    assert type(recognise(RuntimeError(message), Phase.LOAD, Path.MAIN)) is failure


def test_memory_inside_a_scripted_function() -> None:
    """Rule: what the interpreter of TorchScript wraps counts as what was raised in it."""
    text = (
        "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript (most recent call"
        " last):\n  File \"engine.py\", line 6, in attend\n    return torch.matmul(q, k)\n           ~~~~ <--- HERE\n"
        "RuntimeError: CUDA out of memory. Tried to allocate 432.00 GiB. GPU 0 has a total capacity of 139.80 GiB"
    )  # fmt: skip
    assert type(recognise(RuntimeError(text), Phase.INFER, Path.FALLBACK)) is errors.DeviceMemory


@pytest.mark.parametrize(
    ("said", "failure"),
    [
        ("terminate called after throwing an instance of 'std::runtime_error'\n  what():  CUDA failure 710: device-side"
         " assert triggered; cudaDeviceSynchronize()", errors.DeviceFault),
        ("terminate called after throwing an instance of 'c10::AcceleratorError'\n  what():  CUDA error: invalid"
         " device ordinal" + ADVICE, errors.DeviceInit),
        ("terminate called after throwing an instance of 'std::runtime_error'\n  what():  CUDA failure 2: out of"
         " memory; cudaMalloc(&data, bytes)", errors.DeviceMemory),
        ("terminate called after throwing an instance of 'c10::AcceleratorError'\n  what():  CUDA error: out of memory"
         + ADVICE, errors.DeviceMemory),
    ],
)  # fmt: skip
def test_the_last_words_of_a_worker_on_a_device(said: str, failure: type[Failure]) -> None:
    """Rule: a worker that a device's error ended is counted for the device, not for the abort nor for the host."""
    assert type(recognise_death(-signal.SIGABRT, said, phase=Phase.INFER)) is failure
