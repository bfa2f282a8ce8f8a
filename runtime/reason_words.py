"""Words that the tables of reasons are written in: whose errors, which phases, and how an entry is made."""

from __future__ import annotations

import re

from crashpath.runtime.errors import Failure, InputError
from crashpath.runtime.reason import Reason
from crashpath.runtime.values import Phase

ORT = ("onnxruntime.*",)
TORCH = ("builtins.RuntimeError",)  # torch.jit.Error is what a script itself raised: the model's words, no reason
NATIVE = (*ORT, "builtins.RuntimeError")
OS = ("builtins.OSError",)
LOADING = (Phase.LOAD, Phase.WARMUP)
STARTING = (Phase.PREPARE, Phase.LOAD, Phase.WARMUP)
STATE = "onnxruntime.capi.onnxruntime_pybind11_state"


def any_of(*patterns: str) -> re.Pattern[str]:
    """Return a pattern that any of the given ones makes match."""
    return re.compile("|".join(f"(?:{one})" for one in patterns))


def on(
    failure: type[Failure] | type[InputError],
    types: tuple[str, ...],
    *patterns: str,
    phases: tuple[Phase, ...] = (),
    note: str = "",
) -> Reason:
    """Make an entry of the registry; without patterns the type alone decides."""
    return Reason(failure, types, any_of(*patterns) if patterns else None, phases, note)
