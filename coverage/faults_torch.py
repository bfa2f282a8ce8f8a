"""Faults of torch in one process, without TorchScript: shapes, dtypes, kernels, devices, memory, operator libraries."""

from __future__ import annotations

from crashpath.coverage.app import Code
from crashpath.coverage.breakage import compile_shared
from crashpath.coverage.fault import Arena, Fault

TORCH = "import torch"


def _cuda_requested(arena: Arena) -> None:
    v = arena.variation
    move = arena.rng.choice(
        ('model.to("cuda")', "model.cuda()", 'model.to(torch.device("cuda:0"))', 'model.half().to("cuda")')
    )
    arena.serve(
        Code.of(
            f"""
            model = torch.nn.Sequential(torch.nn.Linear(width, other), torch.nn.ReLU()).eval()
            return {move}
            """,
            TORCH,
            width=v.width,
            other=v.other,
        )
    )


def _matmul_shapes(arena: Arena) -> None:
    v = arena.variation
    call = arena.rng.choice(
        ("self.head(x)", "x @ self.head.weight", "torch.matmul(x, self.proj)", "torch.addmm(self.bias, x, self.proj)")
    )
    arena.serve(
        Code.of(
            "with torch.inference_mode():\n    return Head(width, other)(torch.randn(batch, other + 1))",
            TORCH,
            definitions=f"""
            class Head(torch.nn.Module):
                def __init__(self, width, other):
                    super().__init__()
                    self.head = torch.nn.Linear(width, other)
                    self.proj = torch.nn.Parameter(torch.zeros(width, other))
                    self.bias = torch.nn.Parameter(torch.zeros(other))

                def forward(self, x):
                    return {call}
            """,
            phase="infer",
            batch=v.batch,
            width=v.width,
            other=v.width + v.other,
        )
    )


def _conv_channels(arena: Arena) -> None:
    v = arena.variation
    arena.serve(
        Code.of(
            """
            net = torch.nn.Sequential(torch.nn.Conv2d(channels, 8, 3), torch.nn.ReLU(), torch.nn.Flatten())
            return net.eval()(torch.zeros(batch, given, side, side))
            """,
            TORCH,
            phase="infer",
            batch=v.batch,
            channels=3,
            given=arena.rng.choice((1, 4, 6)),
            side=arena.rng.choice((32, 64, 96)),
        )
    )


def _broadcast_shapes(arena: Arena) -> None:
    v = arena.variation
    call = arena.rng.choice(
        (
            "a + b",
            "torch.cat([a, b], dim=0)",
            "torch.stack([a, b])",
            "a.view(batch, -1, width + 1)",
            "torch.einsum('ij,kj->ik', a, b)",
        )
    )
    arena.serve(
        Code.of(
            f"a, b = torch.zeros(batch, width), torch.zeros(batch, other)\nreturn {call}",
            TORCH,
            phase="infer",
            batch=v.batch,
            width=v.width,
            other=v.other,
        )
    )


def _operand_dtypes(arena: Arena) -> None:
    v = arena.variation
    given = arena.rng.choice(("float64", "float16", "bfloat16", "int64"))
    arena.serve(
        Code.of(
            f"""
            layer = torch.nn.Linear(width, other).eval()
            features = torch.ones(batch, width, dtype=torch.{given})
            return layer(features)
            """,
            TORCH,
            phase="infer",
            batch=v.batch,
            width=v.width,
            other=v.other,
        )
    )


def _op_not_for_dtype(arena: Arena) -> None:
    v = arena.variation
    call = arena.rng.choice(
        (
            "torch.linalg.inv(torch.eye(n, dtype=torch.float16))",
            "torch.bitwise_and(torch.ones(n), torch.ones(n))",
            "torch.linalg.cholesky(torch.eye(n, dtype=torch.bfloat16))",
            "torch.nn.functional.softmax(torch.ones(n, dtype=torch.int64), dim=0)",
            "torch.fft.fft(torch.ones(n, dtype=torch.bfloat16))",
            "torch.svd(torch.ones(n, n, dtype=torch.float16))",
            "torch.nn.functional.gelu(torch.ones(n, dtype=torch.int32))",
        )
    )
    arena.serve(Code.of(f"return {call}", TORCH, phase="infer", n=v.width))


def _op_not_for_backend(arena: Arena) -> None:
    v = arena.variation
    call = arena.rng.choice(
        (
            "torch.nn.functional.max_pool1d(torch.eye(n).to_sparse(), 2)",
            "torch.ops.quantized.relu6(torch.ones(n), False)",
            "torch.ops.quantized.mul(torch.ones(n), torch.ones(n), 1.0, 0)",
            "torch.sort(torch.eye(n).to_sparse())",
            "torch.quantize_per_tensor(torch.ones(n), 0.1, 0, torch.qint8).exp()",
            "torch.erfinv(torch.quantize_per_tensor(torch.ones(n), 0.1, 0, torch.quint8))",
        )
    )
    arena.serve(Code.of(f"return {call}", TORCH, phase="infer", n=v.width))


def _memory_limit(arena: Arena) -> None:
    import torch

    torch.zeros(8, 8) @ torch.zeros(8, 8)
    v = arena.variation
    call = arena.rng.choice(
        (
            "torch.zeros(rows, 1024)",
            "torch.randn(1024, rows).exp()",
            "torch.ones(1, 1024).repeat(rows, 1)",
            "torch.empty(rows * 1024)",
        )
    )
    phase = arena.rng.choice(("load", "infer"))
    arena.serve(
        Code.of(f"table = {call}\nreturn table.sum()", TORCH, phase=phase, rows=(v.mib << 10) // 2 + v.width * 97),
        memory_mib=v.mib,
    )


def _custom_library(arena: Arena) -> None:
    library = arena.path("ext/lib{stem}_ops.so")
    if arena.rng.random() < 0.7:
        symbol = arena.rng.choice(
            (
                "_ZN2at4_ops9nms_fused4callERKNS_6TensorE",
                "_ZN3c106detail14torchCheckFailEPKcS2_jRKSs",
                "_ZNK3c1010TensorImpl4blobEv",
            )
        )
        compile_shared(f"extern void {symbol}(void);\nvoid ops_init(void) {{ {symbol}(); }}\n", library, "-Wl,-z,now")
    arena.serve(Code.of("torch.ops.load_library(path)\nreturn torch.ops.serving_ops", TORCH, path=library))


FAULTS = (
    Fault(
        "torch-cuda-requested", "device_init", "load", "torch", "move a module to CUDA on a CPU build", _cuda_requested
    ),
    Fault(
        "torch-matmul-shapes", "shape_inference", "infer", "torch", "multiply matrices that do not fit", _matmul_shapes
    ),
    Fault(
        "torch-conv-channels",
        "shape_inference",
        "infer",
        "torch",
        "convolve an image of other channels",
        _conv_channels,
    ),
    Fault(
        "torch-broadcast-shapes",
        "shape_inference",
        "infer",
        "torch",
        "combine tensors of other sizes",
        _broadcast_shapes,
    ),
    Fault("torch-operand-dtypes", "shape_inference", "infer", "torch", "feed a layer another dtype", _operand_dtypes),
    Fault(
        "torch-op-not-for-dtype",
        "unsupported_op",
        "infer",
        "torch",
        "call an operator without a kernel for the dtype",
        _op_not_for_dtype,
    ),
    Fault(
        "torch-op-not-for-backend",
        "unsupported_op",
        "infer",
        "torch",
        "call an operator without a kernel for the backend",
        _op_not_for_backend,
    ),
    Fault(
        "torch-memory-limit",
        "oom_host",
        "infer",
        "torch",
        "allocate more than the address-space limit",
        _memory_limit,
        ("linux",),
    ),
    Fault(
        "torch-custom-library",
        "dependency",
        "load",
        "torch",
        "load an operator library with an undefined symbol",
        _custom_library,
        ("gcc",),
    ),
)
