"""Run files: what one traced run saw, as a file that adds up with those of other runs and machines.

A run writes its file when it begins, holds a lock on it, and puts the finished one in its place at the end. A file that
says ``begun`` and that nobody holds is a run that was lost: its process ended before it could tell what it saw.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from crashpath.coverage.units import Declared, Kind, Placed, Shipped, Timing, Trace, Unit

SCHEMA = "crashpath.coverage/1"
SUFFIX = ".coverage.json"


class RunFileError(Exception):
    """A file is no run file; the message is one sentence."""


class State(StrEnum):
    """``running``: its process still holds it. ``lost``: begun, and nobody holds it."""

    FINISHED = "finished"
    RUNNING = "running"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Seen:
    """One path in a run: the units that its artefact declares, and what was seen of them."""

    declared: Declared
    trace: Trace


@dataclass(frozen=True, slots=True)
class Run:
    """One traced run. ``origin`` says what drove it; ``versions`` are those of the libraries; times are UTC.

    ``routes`` counts declared edges, ``domain`` the shapes of feeds (`domain.bucket`), ``requests`` the feeds.
    """

    id: str
    origin: str
    model: str
    model_hash: str
    release: str
    began: datetime
    ended: datetime | None = None
    versions: tuple[tuple[str, str], ...] = ()
    asked: tuple[str, ...] = ()
    requests: int = 0
    seen: tuple[Seen, ...] = ()
    routes: Mapping[str, int] = field(default_factory=dict)
    domain: Mapping[str, int] = field(default_factory=dict)
    state: State = State.FINISHED


class RunFile:
    """The file of a run under way: made when it begins, replaced by `finish`, left as begun where that never comes."""

    def __init__(self, folder: Path, run: Run) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"{run.began:%Y%m%dT%H%M%S}-{run.id}{SUFFIX}"
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        _lock(self._file)
        os.write(self._file, _as_json(replace(run, state=State.RUNNING)))

    def finish(self, run: Run) -> Path:
        """Put the finished run in its place. Raises `OSError`; then it stays one that was lost."""
        part = self.path.with_name(f".{self.path.name}.part")
        part.write_bytes(_as_json(run))
        os.replace(part, self.path)
        self.leave()
        return self.path

    def leave(self) -> None:
        """Let go of the file as it is."""
        os.close(self._file)


def new_id() -> str:
    """Return an id for a run that no other run on any machine has."""
    return uuid.uuid4().hex[:12]


def run_files(places: Iterable[Path]) -> tuple[Path, ...]:
    """Return the run files that paths name: files as they are, folders with all that is in them, in order of name."""
    found: list[Path] = []
    for place in places:
        found.extend(sorted(place.rglob(f"*{SUFFIX}")) if place.is_dir() else [place])
    return tuple(dict.fromkeys(found))


def read_run(path: Path) -> Run:
    """Read a run file. Raises `RunFileError`."""
    try:
        with path.open("rb") as file:
            held = _is_held(file.fileno())
            raw = json.load(file)
        if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
            raise RunFileError(f"{path} is no run file of this crashpath ({SCHEMA}); trace the run again")
        run = _run(raw)
    except OSError as error:
        raise RunFileError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise RunFileError(f"{path} is cut short or no run file: {error}") from error
    if run.state is State.RUNNING and not held:
        return replace(run, state=State.LOST)
    return run


def _lock(file: int) -> None:
    try:
        import fcntl
    except ImportError:  # not POSIX: a run under way looks lost there
        return
    fcntl.flock(file, fcntl.LOCK_EX)


def _is_held(file: int) -> bool:
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(file, fcntl.LOCK_UN)
    return False


def _as_json(run: Run) -> bytes:
    raw = {"schema": SCHEMA} | {
        name: getattr(run, name)
        for name in ("id", "origin", "model", "model_hash", "release", "asked", "requests", "state")
    }
    raw |= {"began": run.began.isoformat(), "ended": None if run.ended is None else run.ended.isoformat()}
    raw |= {"versions": dict(run.versions), "routes": dict(run.routes), "domain": dict(run.domain)}
    raw["seen"] = [_seen_json(one) for one in run.seen]
    return json.dumps(raw, separators=(",", ":")).encode() + b"\n"


def _seen_json(seen: Seen) -> dict[str, Any]:
    trace = seen.trace
    return {
        "path": trace.path,
        "units": [[u.kind, u.id, u.label, u.where, u.parent, u.reason] for u in seen.declared.units],
        "hits": dict(trace.hits),
        "timings": [asdict(one) for one in trace.timings],
        "placed": [asdict(one) for one in trace.placed],
        "replaced": dict(trace.replaced),
        "shipped": None if trace.shipped is None else asdict(trace.shipped),
    }


def _run(raw: Mapping[str, Any]) -> Run:
    ended = raw["ended"]
    return Run(
        id=str(raw["id"]),
        origin=str(raw["origin"]),
        model=str(raw["model"]),
        model_hash=str(raw["model_hash"]),
        release=str(raw["release"]),
        began=_moment(raw["began"]),
        ended=None if ended is None else _moment(ended),
        versions=tuple((str(k), str(v)) for k, v in raw["versions"].items()),
        asked=tuple(str(one) for one in raw["asked"]),
        requests=int(raw["requests"]),
        seen=tuple(_seen(one) for one in raw["seen"]),
        routes=_counts(raw["routes"]),
        domain=_counts(raw["domain"]),
        state=State(raw["state"]),
    )


def _seen(raw: Mapping[str, Any]) -> Seen:
    path = str(raw["path"])
    units = tuple(
        Unit(Kind(kind), id, label, where, parent, why) for kind, id, label, where, parent, why in raw["units"]
    )
    trace = Trace(
        path,
        _counts(raw["hits"]),
        tuple(Timing(**one) for one in raw["timings"]),
        tuple(Placed(**one) for one in raw["placed"]),
        {str(k): str(v) for k, v in raw["replaced"].items()},
        read_shipped(raw["shipped"]),
    )
    return Seen(Declared(path, units), trace)


def read_shipped(raw: Mapping[str, Any] | None) -> Shipped | None:
    """Return what `asdict` made of it."""
    return None if raw is None else Shipped(raw["ran"], raw["nodes"], tuple(raw["left"]))


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _counts(raw: Mapping[str, Any]) -> dict[str, int]:
    return {str(key): int(value) for key, value in raw.items()}
