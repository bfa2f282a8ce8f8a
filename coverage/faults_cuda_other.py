"""Faults of a device below other libraries than torch: CuPy, JAX, Triton, Numba, NCCL and programs in CUDA C++."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from crashpath.coverage.app import Code, write_app
from crashpath.coverage.cuda_apps import (
    NEEDS_HIDING,
    around,
    build_cuda,
    on_device,
    without_device,
    without_libraries,
)
from crashpath.coverage.fault import Arena
from crashpath.coverage.native import become, run_script

_CUPY = "import cupy as cp"
_NUMBA = "from numba import cuda\nimport numpy as np"
_JAX = "import jax\nimport jax.numpy as jnp"


_POOL = "cp.get_default_memory_pool().set_limit(size=width << 20)\nreturn [cp.ones((big, 1 << 10)) for _ in range(16)]"
_INDEX = "index = cp.zeros((big * 128, 1 << 16), dtype=cp.float32)\nreturn cp.argsort(index.sum(axis=1))"
_PAIRS = (
    "points = cp.random.rand(big * 16, 3, dtype=cp.float32)\nreturn ((points[:, None] - points[None]) ** 2).sum(-1)"
)
_RAW = '''
KERNEL = cp.RawKernel(r"""
extern "C" __global__ void {name}(const float* x, float* y, long long n) {{
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    {line}
}}""", "{name}")
'''
_RAW_ADDRESS = _RAW.format(name="pool_rows", line="y[i * n] = x[i] * 0.5f;")
_RAW_MISALIGNED = _RAW.format(
    name="load_half_rows", line="float4 v = *(const float4*)((const char*)x + 4 * i + 2); y[i] = v.x + v.w;"
)
_RAW_TRAP = _RAW.format(name="check_finite", line='if (!isfinite(x[i])) asm("trap;"); y[i] = x[i];')
_LAUNCH = (
    "x, y = cp.ones(4096, cp.float32), cp.zeros(4096, cp.float32)\n"
    "{poke}KERNEL((64,), (64,), (x, y, {n}))\nreturn {end}"
)

_JAX_CACHE = "return [jnp.zeros((batch, big, 128, 64), jnp.bfloat16).block_until_ready() for _ in range(400)]"
_JAX_SCORES = """
@jax.jit
def scores(x):
    return jax.nn.softmax(jnp.einsum("bhqd,bhkd->bhqk", x, x), axis=-1)


"""
_JAX_STEP = "x = jnp.ones((batch, 32, big, 64), jnp.float32)\nreturn scores(x).sum().block_until_ready()"

_TRITON = "import torch\nimport triton\nimport triton.language as tl"
_SCALE = """
@triton.jit
def scale_rows(x, y, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    tl.store(y + row * stride + cols, tl.load(x + row * stride + cols) * 2)
"""
_SCALE_RUN = (
    'x = torch.ones(64, 1024, device="cuda")\nscale_rows[(64,)](x, torch.empty_like(x), 1 << 36, BLOCK=1024)\n'
    "torch.cuda.synchronize()"
)
_SCALE_READ = (
    'x = torch.ones(64, 1024, device="cuda")\ny = torch.empty_like(x)\n'
    "scale_rows[(1 << 20,)](x, y, 1 << 20, BLOCK=1024)\n"
    "return y.sum().item()"
)
_MATMUL = """
@triton.jit
def matmul_tile(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rm, rn, rk = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rm[:, None] * K + (rk + k)[None, :])
        right = tl.load(b + (rk + k)[:, None] * BN + rn[None, :])
        total += tl.dot(left, right)
    tl.store(c + rm[:, None] * BN + rn[None, :], total)
"""
_MATMUL_RUN = """
a = torch.ones(256, 4096, device="cuda", dtype=torch.float16)
b = torch.ones(4096, 256, device="cuda", dtype=torch.float16)
c = torch.empty(256, 256, device="cuda")
matmul_tile[(1,)](a, b, c, 4096, BM=256, BN=256, BK={bk}, num_stages={stages}, num_warps=8)
return c
"""
_CHECKED = """
@triton.jit
def gather(table, ids, out, rows, WIDTH: tl.constexpr):
    row = tl.load(ids + tl.program_id(0))
    tl.device_assert((row >= 0) & (row < rows), "row outside of the table")
    cols = tl.arange(0, WIDTH)
    tl.store(out + tl.program_id(0) * WIDTH + cols, tl.load(table + row * WIDTH + cols))
"""
_CHECKED_RUN = """
table = torch.randn(100, 64, device="cuda")
ids = torch.tensor([1, 2, 100 + batch], device="cuda")
out = torch.empty(3, 64, device="cuda")
gather[(3,)](table, ids, out, 100, WIDTH=64, debug=True)
return out.cpu()
"""
_CAST = """
@triton.jit
def quantise(x, y, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.store(y + cols, tl.load(x + cols).to(tl.{dtype}).to(tl.float32))
"""
_CAST_RUN = 'x = torch.ones(256, device="cuda")\nquantise[(1,)](x, x, BLOCK=256)\nreturn x'

_NUMBA_BIG = "table = cuda.device_array((big * 1024, 4096), dtype=np.float32)\nreturn table"
_NUMBA_FIRST = "x = cuda.to_device(np.ones(width))\nreturn x.copy_to_host()"


def _hidden(hide: str, body: str, imports: str, **env: str) -> Callable[[Arena], None]:
    """The library meets a host without a visible device, without its nodes, or without a library (``lib…``)."""

    def run(arena: Arena) -> None:
        os.environ |= env
        given: dict[str, object] = {"width": arena.variation.width} if "width" in body else {}
        code = Code.of(body, imports, definitions="", phase="load", once=True, **given)
        if hide == "nodes":
            without_device(arena, code)
        elif hide == "visible":
            os.environ["CUDA_VISIBLE_DEVICES"] = arena.rng.choice(("", "-1"))
            arena.serve(code, fresh=True)
        else:
            without_libraries(arena, code, hide)

    return run


def _program(mode: str, *flags: str) -> Callable[[Arena], None]:
    """A compiled engine that fails as ``mode`` says."""

    def run(arena: Arena) -> None:
        program = build_cuda(arena, *(flags or ("-arch=native",)))
        size = arena.rng.randint(40, 96) if mode == "memory" else arena.rng.randint(1, 7)
        run_script(arena, f"./{program.relative_to(arena.root)} {mode} {size}\nexit $?")

    return run


def _sanitized(arena: Arena) -> None:
    program = build_cuda(arena, "-arch=native", "-lineinfo")
    mode = arena.rng.choice(("address", "misaligned"))
    become(
        arena,
        "compute-sanitizer",
        "--print-limit",
        "3",
        "--error-exitcode",
        "9",
        f"./{program.relative_to(arena.root)}",
        mode,
        "5",
    )


_RANKS = """
def run(rank, port):
    dist.init_process_group("nccl", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    torch.cuda.set_device(0)
    weights = torch.full((8,), float(rank), device="cuda")
    {call}
    torch.cuda.synchronize()
"""
_COLLECTIVES = ("dist.all_reduce(weights)", "dist.broadcast(weights, 0)", "dist.barrier(device_ids=[0])")


def _duplicate(arena: Arena) -> None:
    """Two ranks on the same device, which NCCL refuses."""
    definitions = _RANKS.replace("{call}", arena.rng.choice(_COLLECTIVES))
    code = Code.of(
        "mp.spawn(run, args=(port,), nprocs=2)",
        "import torch\nimport torch.distributed as dist\nimport torch.multiprocessing as mp",
        definitions=definitions,
        once=True,
        port=arena.rng.randint(20000, 29000),
    )
    entry = write_app(arena.root, arena.variation, code)
    become(arena, sys.executable, "-u", entry)


FAULTS = (
    on_device("array", "memory", "cupy", "infer", "an array larger than the device",
        around("infer", _INDEX, _PAIRS, imports=_CUPY)),
    on_device("pool", "memory", "cupy", "infer", "more than the pool's limit", around("infer", _POOL, imports=_CUPY)),
    on_device("address", "fault", "cupy", "infer", "a kernel writes beyond its array", around(
        "infer", *(_LAUNCH.format(poke="", n="1 << 32", end=end) for end in ("y.get()", "float(y.sum())")),
        imports=_CUPY, definitions=_RAW_ADDRESS)),
    on_device("misaligned", "fault", "cupy", "infer", "a kernel reads between two words", around(
        "infer", _LAUNCH.format(poke="", n="1", end="y.get()"), imports=_CUPY, definitions=_RAW_MISALIGNED)),
    on_device("trap", "fault", "cupy", "infer", "a kernel gives up", around(
        "infer", _LAUNCH.format(poke="x[7] = cp.nan\n", n="1", end="y.get()"), imports=_CUPY, definitions=_RAW_TRAP)),
    on_device("ordinal", "init", "cupy", "load", "a device number that is not there", around(
        "load", "cp.cuda.Device(batch).use()\nreturn cp.zeros(4)", imports=_CUPY)),
    on_device("none-visible", "init", "cupy", "load", "no device is visible",
        _hidden("visible", "return cp.zeros(width)", _CUPY)),
    on_device("nvrtc", "init", "cupy", "load", "the compiler's library is not there", _hidden(
        "libnvrtc.so", "return (cp.arange(width) * 2).sum()", _CUPY), *NEEDS_HIDING),
    on_device("array", "memory", "jax", "infer", "arrays larger than the device", around(
        "load", _JAX_CACHE, imports=_JAX, env={"XLA_PYTHON_CLIENT_PREALLOCATE": "false"})),
    on_device("share", "memory", "jax", "infer", "more than this process's share", around(
        "infer", _JAX_STEP, imports=_JAX, definitions=_JAX_SCORES, env={"XLA_PYTHON_CLIENT_MEM_FRACTION": ".10"})),
    on_device("none-visible", "init", "jax", "load", "no device is visible", _hidden(
        "visible", "return jnp.ones(width).sum()", _JAX, JAX_PLATFORMS="cuda")),
    on_device("library", "init", "jax", "load", "cuDNN is not there", _hidden(
        "libcudnn", "return jax.devices()[0], jnp.ones(width).sum()", _JAX, JAX_PLATFORMS="cuda"), *NEEDS_HIDING),
    on_device("platform", "init", "jax", "load", "a platform that is not installed", around(
        "load", "return jax.devices()", imports=_JAX, env={"JAX_PLATFORMS": "rocm"})),
    on_device("address", "fault", "triton", "infer", "a kernel reads beyond its array", around(
        "infer", _SCALE_RUN, _SCALE_READ, imports=_TRITON, definitions=_SCALE, fresh=True)),
    on_device("assertion", "fault", "triton", "infer", "a check in a kernel", around(
        "infer", _CHECKED_RUN, imports=_TRITON, definitions=_CHECKED, fresh=True)),
    on_device("shared-memory", "op", "triton", "infer", "a tile larger than a multiprocessor holds", around(
        "infer", *(_MATMUL_RUN.format(bk=bk, stages=stages) for bk, stages in ((128, 3), (64, 6), (256, 2))),
        imports=_TRITON, definitions=_MATMUL, fresh=True)),
    on_device("dtype", "op", "triton", "infer", "a dtype that this device does not have", around(
        "infer", _CAST_RUN, imports=_TRITON, definitions=_CAST.format(dtype="float8e4b8"), fresh=True)),
    on_device("no-driver", "init", "triton", "load", "no driver is active", _hidden(
        "visible", "return triton.runtime.driver.active.get_current_target()", "import triton")),
    on_device("array", "memory", "numba", "infer", "an array larger than the device",
        around("infer", _NUMBA_BIG, imports=_NUMBA)),
    on_device("none-visible", "init", "numba", "load", "no device is visible",
        _hidden("visible", _NUMBA_FIRST, _NUMBA)),
    on_device("nodes", "init", "numba", "load", "the container was given no device",
        _hidden("nodes", _NUMBA_FIRST, _NUMBA),
           *NEEDS_HIDING),
    on_device("driver", "init", "numba", "load", "the driver's library is not there",
        _hidden("libcuda.so", _NUMBA_FIRST, _NUMBA),
           *NEEDS_HIDING),
    on_device("pool", "memory", "cuda", "infer", "cudaMalloc is refused", _program("memory")),
    on_device("cublas", "memory", "cuda", "infer", "no room for cuBLAS itself",
        _program("cublas", "-arch=native", "-DWITH_CUBLAS", "-lcublas")),
    on_device("address", "fault", "cuda", "infer", "a kernel writes beyond its array", _program("address")),
    on_device("misaligned", "fault", "cuda", "infer", "a kernel reads between two words", _program("misaligned")),
    on_device("assertion", "fault", "cuda", "infer", "an assert in a kernel", _program("assert")),
    on_device("trap", "fault", "cuda", "infer", "a kernel gives up", _program("trap")),
    on_device("stack", "fault", "cuda", "infer", "a kernel's stack overflows", _program("stack")),
    on_device("sanitizer", "fault", "cuda", "infer", "a memory checker finds the access",
        _sanitized, "compute-sanitizer"),
    on_device("ordinal", "init", "cuda", "load", "a device number that is not there", _program("ordinal")),
    on_device("kernel-image", "init", "cuda", "load", "compiled for another device", _program(
        "plain", "-gencode", "arch=compute_100,code=sm_100")),
    on_device("duplicate-device", "init", "nccl", "load", "two ranks on one device", _duplicate),
)  # fmt: skip
