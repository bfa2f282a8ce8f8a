"""Faults of a device's memory, raised by torch: caches, weights, activations, shares, neighbours."""

from __future__ import annotations

import subprocess
import sys

from crashpath.coverage.app import Code
from crashpath.coverage.cuda_apps import NN, TORCH, around, on_device
from crashpath.coverage.fault import Arena

_KV = """
heads, dim = 8, 128
cache = []
for layer in range(80):
    shape = (batch * 16, heads, big, dim)
    keys = torch.empty(shape, dtype=torch.float16, device="cuda")
    cache.append((keys, torch.empty_like(keys)))
return cache
"""
_KV_PAGED = """
blocks = big * 4
return [torch.zeros(2, blocks, 16, 8, 128, dtype=torch.bfloat16, device="cuda:0") for layer in range(64)]
"""
_WEIGHTS = """
with torch.device("meta"):
    decoder = nn.ModuleList(nn.TransformerEncoderLayer(8192, 64, 28672, batch_first=True) for _ in range(80))
return decoder.to_empty(device="cuda").eval()
"""
_WEIGHTS_HALF = """
torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    experts = [nn.Sequential(nn.Linear(16384, 65536), nn.SiLU(), nn.Linear(65536, 16384)) for _ in range(64)]
return experts
"""
_SCORES = """
q = torch.randn(batch, 32, big, 128, dtype=torch.float16, device="cuda")
scores = torch.matmul(q, q.transpose(2, 3)) / 11.3
return torch.softmax(scores.float(), dim=-1)
"""
_SCORES_MASKED = """
q = torch.randn(batch * 2, 16, big, 64, device="cuda")
mask = torch.ones(big, big, dtype=torch.bool, device="cuda").tril()
with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
    return F.scaled_dot_product_attention(q, q, q, attn_mask=mask)
"""
_LOGITS = """
hidden = torch.randn(batch * 4, big, 1024, dtype=torch.bfloat16, device="cuda")
head = nn.Linear(1024, 152064, bias=False, dtype=torch.bfloat16, device="cuda")
with torch.inference_mode():
    return head(hidden).float().log_softmax(-1)
"""
_IMAGES = """
net = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 128, 3, padding=1)).cuda().eval()
with torch.no_grad():
    return net(torch.zeros(batch * 64, 3, 2048, 2048, device="cuda"))
"""
_TILES = """
frames = torch.zeros(batch * 8, 64, 1024, 1024, dtype=torch.float16, device="cuda")
return F.relu(torch.cat([frames.flip(-1)] * 96))
"""
_FRACTION = """
torch.cuda.set_per_process_memory_fraction(share, 0)
table = torch.nn.Embedding(big * 64, 1024, device="cuda")
return [table.weight * n for n in range(64)]
"""
_KEPT = """
history = []
for request in range(100_000):
    features = torch.randn(batch * 4096, 65536, device="cuda")
    history.append((request, features.relu()))
return history
"""
_CUBLAS = """
a = torch.ones(width + 8, 64, device="cuda")
held = []
for size in (1 << 30, 64 << 20, 2 << 20):
    try:
        while True:  # what the other models of this process take
            held.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError:
        pass
return a @ a.T
"""
_CHECKPOINT = """
torch.cuda.set_per_process_memory_fraction(0.0004)
return torch.load(path, map_location="cuda")
"""
_ATTEND = """
q = torch.zeros(batch, 16, big * 2, 64, device="cuda")
return attend(q, q)
"""
_SCRIPTED = """
@torch.jit.script
def attend(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return torch.softmax(torch.matmul(q, k.transpose(-2, -1)), dim=-1)
"""


def _checkpoint_too_large(arena: Arena) -> None:
    import torch

    path = arena.path("models/{model}/{stem}.pt")
    torch.save({f"layers.{n}.weight": torch.zeros(1024, 2048) for n in range(16)}, path)
    arena.serve(Code.of(_CHECKPOINT, TORCH, once=True, path=path))


_NEIGHBOUR = """
import torch, time
held = []
for size in (1 << 30, 1 << 28):
    try:
        while True:
            held.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError:
        pass
del held[-2:]
print("full", flush=True)
time.sleep(60)
"""


def _neighbour_holds_it(arena: Arena) -> None:
    """Another process of the same app has the memory; the message counts what it holds."""
    other = subprocess.Popen([sys.executable, "-c", _NEIGHBOUR], stdout=subprocess.PIPE)
    assert other.stdout is not None
    other.stdout.readline()
    body = 'with torch.device("cuda"):\n    return [torch.nn.Embedding(1_000_000, 1024) for shard in range(48)]'
    try:
        arena.serve(Code.of(body, TORCH, once=True))
    finally:
        other.kill()


FAULTS = (
    on_device("kv-cache", "memory", "torch", "load", "reserve a cache of keys and values",
        around("load", _KV, _KV_PAGED)),
    on_device("weights", "memory", "torch", "load", "place weights",
        around("load", _WEIGHTS, _WEIGHTS_HALF, imports=NN)),
    on_device("scores", "memory", "torch", "infer", "attention over a long text",
        around("infer", _SCORES, _SCORES_MASKED, imports=NN)),
    on_device("logits", "memory", "torch", "infer", "logits of a large vocabulary",
        around("infer", _LOGITS, imports=NN)),
    on_device("images", "memory", "torch", "infer", "a large batch of images",
        around("infer", _IMAGES, _TILES, imports=NN)),
    on_device("share", "memory", "torch", "load", "more than this process's share",
        around("load", _FRACTION, numbers={"share": 0.05})),
    on_device("kept", "memory", "torch", "infer", "answers that are never let go", around("infer", _KEPT)),
    on_device("cublas", "memory", "torch", "infer", "no room for cuBLAS itself", around("infer", _CUBLAS)),
    on_device("checkpoint", "memory", "torch", "load", "load a checkpoint onto the device", _checkpoint_too_large),
    on_device("neighbour", "memory", "torch", "load", "another process holds the memory", _neighbour_holds_it),
    on_device("scripted", "memory", "torch", "infer", "a scripted function asks for too much", around(
        "infer", _ATTEND,
        definitions=_SCRIPTED)),
)  # fmt: skip
