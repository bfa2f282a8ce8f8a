"""The inference runtime with its fallback (import it as ``crashpath.runtime``).

`open_session` opens a model folder; `FallbackSession` answers on ONNX Runtime and, when that fails for a known reason,
on TorchScript. `ServingError` is the root of what it raises (the tree is in `crashpath.runtime.errors`).
"""

import importlib
import os
from typing import TYPE_CHECKING, Any

# Before anything imports onnxruntime, whose wheels otherwise report their use: nothing leaves this machine.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

if TYPE_CHECKING:
    from crashpath.runtime.errors import (
        DeadlineExceeded,
        Failure,
        InputError,
        ModelFolderError,
        NoAnswer,
        Saturated,
        ServingError,
        SessionClosed,
    )
    from crashpath.runtime.folder import ModelFolder, open_folder
    from crashpath.runtime.opening import open_session
    from crashpath.runtime.policy import POLICIES, BreakerSettings, Policy
    from crashpath.runtime.prepare import PrepareStep
    from crashpath.runtime.session import FallbackSession
    from crashpath.runtime.session_facts import Readiness
    from crashpath.runtime.values import Answer, Path, Phase, Strike

__all__ = [
    "open_session",
    "open_folder",
    "FallbackSession",
    "ModelFolder",
    "Answer",
    "Readiness",
    "Path",
    "Phase",
    "POLICIES",
    "Policy",
    "BreakerSettings",
    "PrepareStep",
    "Strike",
    "ServingError",
    "ModelFolderError",
    "InputError",
    "DeadlineExceeded",
    "Saturated",
    "NoAnswer",
    "SessionClosed",
    "Failure",
]

_HOMES = {
    **dict.fromkeys(
        (
            "DeadlineExceeded",
            "Failure",
            "InputError",
            "ModelFolderError",
            "NoAnswer",
            "Saturated",
            "ServingError",
            "SessionClosed",
        ),
        "errors",
    ),
    **dict.fromkeys(("ModelFolder", "open_folder"), "folder"),
    **dict.fromkeys(("open_session",), "opening"),
    **dict.fromkeys(("POLICIES", "BreakerSettings", "Policy"), "policy"),
    **dict.fromkeys(("PrepareStep",), "prepare"),
    **dict.fromkeys(("FallbackSession",), "session"),
    **dict.fromkeys(("Readiness",), "session_facts"),
    **dict.fromkeys(("Answer", "Path", "Phase", "Strike"), "values"),
}
"""The modules of these names, imported when one is asked for: whoever needs a value alone waits for no more."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
