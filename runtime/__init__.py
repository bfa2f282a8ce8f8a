"""The inference runtime with its fallback (import it as ``crashpath.runtime``).

`open_session` opens a model folder; `FallbackSession` answers on ONNX Runtime and, when that fails for a known reason,
on TorchScript. `ServingError` is the root of what it raises (the tree is in `crashpath.runtime.errors`).
"""

import os

# Before anything imports onnxruntime, whose wheels otherwise report their use: nothing leaves this machine.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

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
