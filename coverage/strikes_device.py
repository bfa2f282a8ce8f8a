"""Strikes of a GPU: memory that is gone, kernels that fault, devices that are not there.

Those through the driver take a second in a process that has not loaded torch, so they also fit into a request.
"""

from __future__ import annotations

import ctypes

_FAR = 63
"""A device number that no host has."""
_PTX = """
.version 7.0
.target sm_70
.address_size 64
.extern .func __assertfail (.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 c);
.global .align 1 .b8 what[12] = {105, 100, 32, 60, 32, 114, 111, 119, 115, 0};
.global .align 1 .b8 file[12] = {103, 97, 116, 104, 101, 114, 46, 99, 117, 0};
.global .align 1 .b8 name[12] = {103, 97, 116, 104, 101, 114, 0};
.visible .entry store (.param .u64 where) {
    .reg .b64 %p;
    .reg .b32 %v;
    ld.param.u64 %p, [where];
    mov.u32 %v, 1;
    st.global.u32 [%p], %v;
    ret;
}
.visible .entry give_up (.param .u64 where) { trap; }
.visible .entry refuse (.param .u64 where) {
    .reg .b64 %m, %f, %n;
    mov.u64 %m, what; cvta.global.u64 %m, %m;
    mov.u64 %f, file; cvta.global.u64 %f, %f;
    mov.u64 %n, name; cvta.global.u64 %n, %n;
    {
        .param .b64 p0; .param .b64 p1; .param .b32 p2; .param .b64 p3; .param .b64 p4;
        st.param.b64 [p0], %m; st.param.b64 [p1], %f; st.param.b32 [p2], 42;
        st.param.b64 [p3], %n; st.param.b64 [p4], 1;
        call.uni __assertfail, (p0, p1, p2, p3, p4);
    }
    ret;
}
"""


class _Driver:
    """The driver's own functions, on the first device; raises `RuntimeError` with its words."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self("cuDeviceGet", ctypes.byref(device), 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxSetCurrent", context)

    def __call__(self, function: str, *arguments: object) -> None:
        code = getattr(self._library, function)(*arguments)
        if code:
            name, text = ctypes.c_char_p(), ctypes.c_char_p()
            self._library.cuGetErrorName(code, ctypes.byref(name))
            self._library.cuGetErrorString(code, ctypes.byref(text))
            said, called = (text.value or b"").decode(), (name.value or b"").decode()
            raise RuntimeError(f"CUDA error: {said} ({function} returned {code}, {called})")

    def reserve(self, size: int) -> ctypes.c_uint64:
        """Allocate ``size`` bytes."""
        address = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def launch(self, kernel: str, where: ctypes.c_uint64) -> None:
        """Run one thread of a kernel and wait for its end."""
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self("cuModuleLoadData", ctypes.byref(module), _PTX.encode())
        self("cuModuleGetFunction", ctypes.byref(function), module, kernel.encode())
        arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(where), ctypes.c_void_p))
        self("cuLaunchKernel", function, 1, 1, 1, 1, 1, 1, 0, None, arguments, None)
        self("cuCtxSynchronize")


def memory_refused(argument: str) -> None:
    """Allocate through the driver until it refuses, then give everything back."""
    driver, held = _Driver(), []
    try:
        while True:
            held.append(driver.reserve(4 << 30))
    finally:
        for address in held:
            driver("cuMemFree_v2", address)


def kernel_faults(argument: str) -> None:
    """Run a kernel that fails; its context is gone then. ``argument``: address, misaligned, trap or assertion."""
    driver = _Driver()
    kernel = {"trap": "give_up", "assertion": "refuse"}.get(argument, "store")
    where = driver.reserve(4096)
    if argument == "address":
        where.value = 64
    elif argument == "misaligned":
        where.value += 2
    driver.launch(kernel, where)


def device_missing(argument: str) -> None:
    """Ask the driver for a device that this host does not have."""
    _Driver()("cuDeviceGet", ctypes.byref(ctypes.c_int()), _FAR)


def torch_memory_refused(argument: str) -> None:
    """Allocate through torch until it refuses, then give everything back."""
    import torch

    held = []
    try:
        while True:
            held.append(torch.empty(4 << 30, dtype=torch.uint8, device="cuda"))
    finally:
        held.clear()
        torch.cuda.empty_cache()


def torch_assertion(argument: str) -> None:
    """Index out of range through torch: the device asserts, and its context is gone."""
    import torch

    table = torch.zeros(8, 4, device="cuda")
    table[torch.tensor([1 << 20], device="cuda")]
    torch.cuda.synchronize()


def torch_device_missing(argument: str) -> None:
    """Ask torch for a device that this host does not have."""
    import torch

    torch.zeros(1, device=f"cuda:{_FAR}")
