"""Opens a model folder as a session: lanes, limits, tokenizer, event file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, Literal

from crashpath.runtime.backends import CPU, OrtBackend, TorchScriptBackend
from crashpath.runtime.errors import ModelFolderError
from crashpath.runtime.eventfile import EventFile
from crashpath.runtime.events import Cohort, Listener
from crashpath.runtime.folder import FALLBACK_FILE, MAIN_FILE, ModelFolder, open_folder
from crashpath.runtime.inprocess import InProcessLane
from crashpath.runtime.lane import Lane
from crashpath.runtime.logged import EventLog
from crashpath.runtime.policy import Policy, named
from crashpath.runtime.prepare import PrepareStep
from crashpath.runtime.session import FallbackSession
from crashpath.runtime.tokenizer import fallback_tokenizer, main_tokenizer
from crashpath.runtime.values import Arrays, Path
from crashpath.runtime.workerlane import WorkerLane

Isolation = Literal["in_process", "process"]


@dataclass(frozen=True, slots=True)
class LaneSettings:
    """How the two paths run. ``slots``: requests at once on a path of this process (a worker takes one at a time)."""

    isolation: Isolation = "in_process"
    providers: tuple[str, ...] = (CPU,)
    slots: int = 1
    abandoned_cap: int = 4


def open_session(
    folder: FilePath | str | ModelFolder,
    *,
    policy: str | Policy = "breaker",
    isolation: Isolation = "in_process",
    providers: Sequence[str] = (CPU,),
    slots: int = 1,
    events: FilePath | str | None = None,
    listeners: Sequence[Listener] = (),
    release: str = "",
    prepare: PrepareStep | None = None,
    deadline_ms: float | None = None,
    load_s: float | None = None,
    fallback_slots: int = 8,
    sample: float = 0.01,
    seed: int = 0,
    flush_s: float = 10.0,
    log: bool = True,
) -> FallbackSession:
    """Open a model folder and return a session that is ready.

    ``isolation``: ``in_process`` is fast and has a soft deadline; ``process`` runs each path in a worker of its own,
    so that a crash or a hang of native code costs a restart. ``events`` is a file that gets the session's events as
    JSON lines; failures, and paths that go, are logged (``crashpath.runtime``) unless ``log`` is false. Limits,
    tolerance and tokenizer are the folder's, unless they are given. ``fallback_slots`` to ``flush_s`` are those of
    `FallbackSession`.

    Raises `ModelFolderError` (the folder cannot be served as it is), a `Failure` of the fallback, `ValueError` for an
    option that cannot be, or an unknown error. Nothing is left open then.
    """
    opened = folder if isinstance(folder, ModelFolder) else open_folder(folder)
    chosen = named(policy)
    check_artefacts(opened, fallback=chosen.falls_back)
    feed, golden = opened.golden()
    if prepare is None and opened.tokenizer is not None:
        prepare = PrepareStep(main_tokenizer(opened), fallback_tokenizer(opened))
    limits = opened.limits
    with ExitStack() as stack:
        file = None if events is None else stack.enter_context(EventFile(events))
        main, fallback = lanes(opened, feed, LaneSettings(isolation, tuple(providers), slots))
        stack.callback(fallback.close)
        stack.callback(main.close)
        session = FallbackSession(
            main,
            fallback,
            chosen,
            inputs=opened.inputs,
            tolerance=opened.tolerance,
            golden=golden,
            deadline_ms=limits.deadline_ms if deadline_ms is None else deadline_ms,
            load_s=limits.load_s if load_s is None else load_s,
            prepare=prepare,
            fallback_slots=fallback_slots,
            sample=sample,
            seed=seed,
            listeners=(*((EventLog(),) if log else ()), *listeners, *(() if file is None else (file,))),
            cohort=Cohort(release=release, model=opened.name, model_hash=opened.hash),
            flush_s=flush_s,
            on_close=() if file is None else (file.close,),
        )
        stack.pop_all()  # the session closes them
        return session


def lanes(folder: ModelFolder, feed: Arrays, settings: LaneSettings) -> tuple[Lane, Lane]:
    """Make both lanes of a folder; nothing is loaded yet."""
    if settings.isolation == "process":
        return (
            WorkerLane(Path.MAIN, "ort", folder, feed, providers=settings.providers),
            WorkerLane(Path.FALLBACK, "torchscript", folder, feed),
        )
    if settings.isolation != "in_process":
        raise ValueError(f"isolation is in_process or process, not {settings.isolation!r}")
    threads = folder.limits.threads

    def make_main() -> OrtBackend:
        return OrtBackend(folder, threads=threads, providers=settings.providers)

    def make_fallback() -> TorchScriptBackend:
        return TorchScriptBackend(folder, threads)

    def in_process(path: Path, make: Callable[[], Any]) -> Lane:
        return InProcessLane(
            path,
            make,
            feed,
            abandoned_cap=settings.abandoned_cap,
            slots=settings.slots,
            reload_timeout=folder.limits.load_s,
        )

    return in_process(Path.MAIN, make_main), in_process(Path.FALLBACK, make_fallback)


def check_artefacts(folder: ModelFolder, *, fallback: bool = True) -> None:
    """See that the artefacts are there. Raises `ModelFolderError`, one sentence."""
    for path, what in ((folder.main, MAIN_FILE), (folder.fallback, FALLBACK_FILE)):
        if not path.is_file() and (fallback or what == MAIN_FILE):
            role = "main path" if what == MAIN_FILE else "fallback"
            raise ModelFolderError(f"{folder.path} has no {what}, its {role}; crashpath export writes both artefacts")
