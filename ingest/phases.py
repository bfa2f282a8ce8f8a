"""Phase: what a deployment was doing, read from the functions on the stack of the failure (``phases.toml``)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from importlib.resources import files

from crashpath.ingest.model import Frame, Parsed, Phase

_DATA = tomllib.loads(files("crashpath.ingest").joinpath("phases.toml").read_text(encoding="utf-8"))
_NAMES = tuple((Phase(phase), frozenset(names)) for phase, names in _DATA["names"].items())
_PHASE_OF_WORD = {word: Phase(phase) for phase, words in _DATA["words"].items() for word in words}
_WORD = re.compile(r"[A-Z]?[a-z]+")
_SESSIONS = ("onnxruntime", "torch.jit", "torch.serialization", "torch.package")
# Plumbing that runs under anything, so that its functions' names tell nothing.
_PLUMBING = (
    "asyncio", "concurrent", "contextlib", "http", "httpcore", "httpx", "importlib", "multiprocessing", "requests",
    "runpy", "selectors", "socket", "ssl", "subprocess", "threading", "urllib",
)  # fmt: skip


def phase_of(parsed: Parsed) -> str | None:
    """Return the phase that the stacks of the chain show, ``None`` where they show none."""
    frames = [f for thrown in parsed.chain for f in thrown.frames if not f.module.startswith(_PLUMBING)]
    names = {_name(frame) for frame in frames}
    made = any(f.module.startswith(_SESSIONS) and f.function.endswith(("__init__", "load")) for f in frames)
    ran = any(f.module.startswith(_SESSIONS) and _name(f) == "run" for f in frames)
    for phase, known in _NAMES:
        if names & known or (phase is Phase.LOAD and made) or (phase is Phase.INFER and ran):
            return phase
    return _in_own_words(frame for frame in reversed(frames) if frame.in_project)


def _name(frame: Frame) -> str:
    return frame.function.rpartition(".")[2].rpartition("::")[2].strip("<>")


def _in_own_words(frames: Iterable[Frame]) -> str | None:
    for frame in frames:
        for word in _WORD.findall(_name(frame)):
            phase = _PHASE_OF_WORD.get(word.lower())
            if phase is not None:
                return phase
    return None


def in_circumstances(failure_class: str | None, stack: str, phase: str | None) -> str | None:
    """Return the class that the same words mean where the stack shows what was going on.

    Too slow while fetching, loading or warming up is not ready in time; a file that cannot be read while a
    tokenizer is built is the tokenizer's.
    """
    if failure_class == "hang" and phase in (Phase.PREPARE, Phase.LOAD, Phase.WARMUP):
        return "load_timeout"
    if failure_class == "load_corrupt" and "tokeniz" in stack.lower():
        return "tokenizer"
    return failure_class
