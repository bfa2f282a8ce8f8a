"""Faults of numpy, the standard library, imports and versions."""

from __future__ import annotations

from crashpath.coverage.app import Code
from crashpath.coverage.fault import Arena, Fault


def _module_missing(arena: Arena) -> None:
    name = arena.rng.choice(
        ("flash_attn", "xformers", "bitsandbytes", "auto_gptq", "tensorrt", "vllm", "faiss", "triton_kernels")
    )
    arena.serve(Code.of("return None", f"import {name}"))


FAULTS = (
    Fault(
        "python-module-missing",
        "dependency",
        "load",
        "python",
        "import a package that is not installed",
        _module_missing,
    ),
)
