"""Phase: what a deployment was doing, read from the functions on the stack of the failure (``phases.toml``)."""

from __future__ import annotations

import tomllib
from importlib.resources import files

from crashpath.ingest.model import Parsed, Phase, Thrown

_LOADERS = ("onnxruntime", "torch.jit", "torch.serialization", "torch.package")
_INNERMOST = 5  # frames that tell what was being built when a file turned out to be missing or broken
_NAMES = tuple(
    (Phase(phase), frozenset(names))
    for phase, names in tomllib.loads(
        files("crashpath.ingest").joinpath("phases.toml").read_text(encoding="utf-8")
    ).items()
)


def phase_of(parsed: Parsed) -> str | None:
    """Return the phase that the stacks of the chain show, ``None`` where they show none."""
    frames = [frame for thrown in parsed.chain for frame in thrown.frames]
    names = {frame.function.rpartition(".")[2].rpartition("::")[2].strip("<>") for frame in frames}
    loading = any(f.function.endswith(("__init__", "load")) and f.module.startswith(_LOADERS) for f in frames)
    for phase, known in _NAMES:
        if names & known or (phase is Phase.LOAD and loading):
            return phase
    return None


def in_circumstances(failure_class: str | None, thrown: Thrown | None, phase: str | None) -> str | None:
    """Return the class that the same words mean where the stack shows what was going on.

    Too slow while loading or warming up is not ready in time; a file that cannot be read while a tokenizer is built
    is the tokenizer's.
    """
    if failure_class == "hang" and phase in (Phase.LOAD, Phase.WARMUP):
        return "load_timeout"
    if failure_class == "load_corrupt" and thrown is not None:
        frames = thrown.frames[-_INNERMOST:]
        if any("tokeniz" in f"{frame.module}.{frame.function}".lower() for frame in frames):
            return "tokenizer"
    return failure_class
