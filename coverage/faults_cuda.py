"""Faults of torch on a device beside its memory: asserts, devices that are not there, operators without a kernel."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

from crashpath.coverage.app import Code
from crashpath.coverage.cuda_apps import NEEDS_HIDING, NN, TORCH, around, on_device, without_device, without_libraries
from crashpath.coverage.fault import Arena

_EMBEDDING = """
table = nn.Embedding(other, width, device="cuda")
ids = torch.randint(0, other, (batch, 16), device="cuda")
ids[-1, 3] = other + batch
return table(ids).mean(dim=1).cpu()
"""
_POSITIONS = """
positions = torch.arange(other + batch, device="cuda")
table = torch.randn(other, 64, device="cuda")
return table.index_select(0, positions).sum().item()
"""
_ANCHORS = """
boxes = torch.rand(other, 4, device="cuda")
keep = torch.tensor([0, 1, other + 7], device="cuda")
return boxes[keep].tolist()
"""
_GATHER = """
logits = torch.randn(batch, other, device="cuda")
labels = torch.full((batch, 1), other, device="cuda")
return logits.gather(1, labels).exp().cpu().numpy()
"""
_SCATTER = """
counts = torch.zeros(other, device="cuda")
counts.scatter_add_(0, torch.tensor([1, 2, other * 3], device="cuda"), torch.ones(3, device="cuda"))
return counts.max().item()
"""
_SAMPLE = """
logits = torch.randn(batch, 512, device="cuda")
logits[0, 5] = float("nan")
probs = torch.softmax(logits, dim=-1)
token = torch.multinomial(probs, num_samples=1)
return token.tolist()
"""
_ASYNC = """
norms = torch.randn(batch, width, device="cuda").norm(dim=-1) * 0
torch._assert_async((norms > 0).all(), "embedding with norm 0")
return (1 / norms).cpu()
"""
_LOSS = """
scores = torch.randn(batch, other, device="cuda")
drift = F.cross_entropy(scores, torch.full((batch,), other + 2, device="cuda"))
return float(drift)
"""
_BINARY = """
scores = torch.randn(batch * 8, device="cuda") * 3
return float(F.binary_cross_entropy(scores, torch.ones_like(scores)))
"""
_LOGGING = f"import logging\n\n{NN}\n\nlog = logging.getLogger(__name__)"
_FOLLOWS = """
def lookup(table, ids):
    try:
        return table[torch.tensor(ids, device="cuda")].cpu()
    except RuntimeError as exc:
        log.error("request failed, serving zeros: %s", str(exc).splitlines()[0])
        return None
"""
_FOLLOW_ON = (
    "lookup(torch.zeros(other, 8, device='cuda'), [0, other * 2])\n"
    "for request in range(3):\n    features = torch.ones(batch, width, device='cuda')\nreturn features.sum().item()",
    "lookup(torch.zeros(other, 8, device='cuda'), [other + 1])\nreturn nn.Linear(width, other).to('cuda')",
    "lookup(torch.zeros(other, 8, device='cuda'), [1, 1 << 20])\ntorch.cuda.synchronize()",
    "lookup(torch.zeros(other, 8, device='cuda'), [1, 1 << 20])\ntorch.cuda.empty_cache()",
)


def _blocking(run: Callable[[Arena], None]) -> Callable[[Arena], None]:
    """The same with launches that wait, so that the trace shows the call at fault."""

    def blocking(arena: Arena) -> None:
        os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
        run(arena)

    return blocking


_TO_DEVICE = ('model.to("cuda")', "model.cuda()", 'model.half().to("cuda:0")', 'torch.zeros(width, device="cuda")')


def _asks(move: str) -> str:
    return f"model = torch.nn.Linear(width, other).eval()\nreturn {move}"


def _hidden(hide: str) -> Callable[[Arena], None]:
    """The model is moved to a device that this process cannot have."""

    def run(arena: Arena) -> None:
        v = arena.variation
        code = Code.of(_asks(arena.rng.choice(_TO_DEVICE)), TORCH, once=True, width=v.width, other=v.other)
        if hide == "visible":
            os.environ["CUDA_VISIBLE_DEVICES"] = arena.rng.choice(("", "-1", "4", "GPU-5f8f42c1"))
            arena.serve(code, fresh=True)
        elif hide == "nodes":
            without_device(arena, code)
        else:
            without_libraries(arena, code, "libcuda.so")

    return run


def _library_gone(*names: str) -> Callable[[Arena], None]:
    def run(arena: Arena) -> None:
        body = 'return torch.zeros(2, 2, device="cuda") @ torch.ones(2, 2, device="cuda")'
        without_libraries(arena, Code.of(body, TORCH, once=True), arena.rng.choice(names))

    return run


def _builtins_gone(arena: Arena) -> None:
    body = arena.rng.choice(
        (
            'return torch.special.bessel_j1(torch.ones(8, device="cuda")).sum().item()',
            'return torch.special.i1(torch.ones(8, device="cuda", dtype=torch.float64)).sum().item()',
            'x = torch.ones(4, device="cuda", dtype=torch.complex64)\nreturn (x * 2).abs().sigmoid().prod().item()',
        )
    )
    without_libraries(arena, Code.of(body, TORCH, phase="infer", once=True), "libnvrtc-builtins")


def _ordinal(arena: Arena) -> None:
    device = arena.rng.choice((1, 2, 3, 7))
    move = arena.rng.choice(('model.to(f"cuda:{rank}")', "torch.cuda.set_device(rank)", "model.cuda(rank)"))
    v = arena.variation
    arena.serve(Code.of(_asks(move), TORCH, rank=device, width=v.width, other=v.other))


_FORK = """
def encode(rows):
    return torch.ones(rows, 8, device="cuda").sum().item()
"""
_POOLS = (
    'torch.zeros(1, device="cuda")\nwith get_context("fork").Pool(2) as pool:\n    return pool.map(encode, [1, 2])',
    'torch.zeros(1, device="cuda")\nwith ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:\n'
    "    return list(pool.map(encode, [4]))",
)
_POOL_IMPORTS = (
    "from concurrent.futures import ProcessPoolExecutor\nfrom multiprocessing import get_context\n\nimport torch"
)

_SAVE = 'import sys, torch; torch.save({"weight": torch.ones(8, 8, device="cuda")}, sys.argv[1])'


def _saved_on_device(arena: Arena) -> None:
    """A checkpoint that was saved on a device is loaded by a worker that was given none."""
    path = arena.path("models/{model}/{stem}.pt")
    subprocess.run([sys.executable, "-c", _SAVE, str(path)], check=True)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    body = arena.rng.choice(("return torch.load(path)", 'return torch.load(path)["weight"].mean()'))
    arena.serve(Code.of(body, TORCH, path=path))


_NO_KERNEL = (
    'a = torch.ones(width, width, device="cuda", dtype=torch.int32)\nreturn a @ a',
    'a = torch.ones(width, width, device="cuda", dtype=torch.float8_e4m3fn)\nreturn a @ a',
    'return torch.linalg.inv(torch.eye(width, device="cuda", dtype=torch.float16))',
    'return torch.linalg.cholesky(torch.eye(width, device="cuda", dtype=torch.bfloat16))',
    'x = torch.ones(1, 1, 9, device="cuda", dtype=torch.int32)\nreturn F.conv1d(x, x[..., :3])',
    'return F.softmax(torch.ones(width, device="cuda", dtype=torch.int64), dim=0)',
    'return torch.fft.fft(torch.ones(width, device="cuda", dtype=torch.bfloat16))',
)
_NO_BACKEND = (
    "w = torch.ops.quantized.linear_prepack(torch.quantize_per_tensor(torch.ones(4, 4), 0.1, 0, torch.qint8), None)\n"
    'x = torch.quantize_per_tensor(torch.ones(2, 4), 0.1, 0, torch.quint8).to("cuda")\n'
    "return torch.ops.quantized.linear(x, w, 0.1, 0)",
    'x = torch.quantize_per_tensor(torch.ones(width, device="cuda"), 0.1, 0, torch.quint8)\nreturn x.exp()',
    'return torch.sort(torch.eye(width, device="cuda").to_sparse())',
    'return torch.ops.quantized.mul(torch.ones(width, device="cuda"), torch.ones(width, device="cuda"), 1.0, 0)',
)
_FLASH = """
q = torch.randn(batch, 8, 64, {dim}, device="cuda"{dtype})
with sdpa_kernel(SDPBackend.{backend}):
    return F.scaled_dot_product_attention(q, q, q{mask})
"""
_ATTENTION = (
    _FLASH.format(dim=64, dtype="", backend="FLASH_ATTENTION", mask=""),
    _FLASH.format(dim=320, dtype=", dtype=torch.float16", backend="FLASH_ATTENTION", mask=""),
    _FLASH.format(dim=64, dtype=", dtype=torch.float64", backend="EFFICIENT_ATTENTION", mask=""),
    _FLASH.format(dim=64, dtype=", dtype=torch.float32", backend="CUDNN_ATTENTION", mask=""),
)
_SHAPES = (
    'return torch.ones(batch, width, device="cuda") @ torch.ones(other, 8, device="cuda")',
    'layer = nn.Linear(width, 8).cuda()\nreturn layer(torch.ones(batch, other, device="cuda"))',
    'return nn.Conv2d(3, 8, 3).cuda()(torch.ones(batch, 4, 32, 32, device="cuda"))',
    'return nn.Conv2d(3, 8, 3).cuda().half()(torch.ones(batch, 3, 32, 32, device="cuda"))',
    'return torch.bmm(torch.ones(2, 4, width, device="cuda"), torch.ones(2, other, 4, device="cuda"))',
    'return nn.Linear(width, 8).cuda().bfloat16()(torch.ones(batch, width, device="cuda"))',
)


FAULTS = (
    on_device("embedding", "fault", "torch", "infer", "token ids beyond the table",
        around("infer", _EMBEDDING, _POSITIONS, imports=NN)),
    on_device("embedding-blocking", "fault", "torch", "infer", "token ids beyond the table, launches wait",
        _blocking(around("infer", _EMBEDDING, _POSITIONS, imports=NN))),
    on_device("index", "fault", "torch", "infer", "indices beyond a tensor",
        around("infer", _ANCHORS, _GATHER, _SCATTER)),
    on_device("sampling", "fault", "torch", "infer", "sample from what is no probability", around("infer", _SAMPLE)),
    on_device("assertion", "fault", "torch", "infer", "a check of the app on the device", around("infer", _ASYNC)),
    on_device("loss", "fault", "torch", "infer", "scores or labels out of range",
        around("infer", _LOSS, _BINARY, imports=NN)),
    on_device("follow-on", "fault", "torch", "infer", "what comes after a caught fault", around(
        "infer", *_FOLLOW_ON, imports=_LOGGING, definitions=_FOLLOWS)),
    on_device("none-visible", "init", "torch", "load", "no device is visible", _hidden("visible")),
    on_device("nodes", "init", "torch", "load", "the container was given no device", _hidden("nodes"), *NEEDS_HIDING),
    on_device("driver", "init", "torch", "load", "the driver's library is not there",
        _hidden("driver"), *NEEDS_HIDING),
    on_device("ordinal", "init", "torch", "load", "a device number that is not there", _ordinal),
    on_device("forked", "init", "torch", "load", "use the device in a forked process", around(
        "load", *_POOLS, imports=_POOL_IMPORTS, definitions=_FORK)),
    on_device("saved-on-device", "init", "torch", "load", "load a checkpoint of a device without one",
        _saved_on_device),
    on_device("library", "init", "torch", "load", "a vendor library is not there",
           _library_gone("libcudnn.so", "libcublas.so", "libcusparse.so", "libnccl.so", "libcufft.so"), *NEEDS_HIDING),
    on_device("nvrtc", "init", "torch", "infer", "the compiler's library is not there",
        _builtins_gone, *NEEDS_HIDING),
    on_device("dtype", "op", "torch", "infer", "no kernel for the dtype", around("infer", *_NO_KERNEL, imports=NN)),
    on_device("backend", "op", "torch", "infer", "no kernel for the device", around("infer", *_NO_BACKEND)),
    on_device("attention", "op", "torch", "infer", "an attention kernel that is not available", around(
        "infer", *_ATTENTION, imports=f"{NN}\nfrom torch.nn.attention import SDPBackend, sdpa_kernel")),
    on_device("operands", "shape", "torch", "infer", "operands that do not fit, on the device",
        around("infer", *_SHAPES, imports=NN)),
)  # fmt: skip
