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
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from crashpath.coverage.runparts import count, counts, key, moment, name, nested, once, seconds, text, texts
from crashpath.coverage.units import Declared, Kind, Placed, Shipped, Timing, Trace, Unit
from crashpath.coverage.wholefile import part_of, write_whole
from crashpath.runtime.folder_read import open_plain
from crashpath.runtime.values import Path as Which

SCHEMA = "crashpath.coverage/1"
SUFFIX = ".coverage.json"
MALFORMED = (ValueError, TypeError, AttributeError, LookupError, OverflowError, RecursionError)
"""What reading JSON raises that has not the shape which was expected."""
_MOST_BYTES = 1 << 29
"""Of a run file: one with a million units has a quarter of it."""
_LONGEST = 240
"""Characters of what is wrong with one."""


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
        part = part_of(self.path)  # held and whole before anybody can see it
        self._file: int | None = os.open(part, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            _lock(self._file)
            os.write(self._file, _as_json(replace(run, state=State.RUNNING)))
            os.replace(part, self.path)
        except BaseException:
            self.leave()
            part.unlink(missing_ok=True)
            raise

    def finish(self, run: Run) -> Path:
        """Put the finished run in its place, and let go. Raises `OSError`; then it stays one that was lost."""
        try:
            write_whole(self.path, _as_json(run))
        finally:
            self.leave()
        return self.path

    def leave(self) -> None:
        """Let go of the file as it is. May be called twice."""
        held, self._file = self._file, None
        if held is not None:
            os.close(held)

    def remove(self) -> None:
        """Take the file away and let go: the run never began."""
        self.path.unlink(missing_ok=True)
        self.leave()


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
    run = _look(path)
    # whoever opened it just before its process put the finished one there sees the one that nobody holds any more
    return _look(path) if run.state is State.LOST else run


def _look(path: Path) -> Run:
    try:
        with open_plain(path) as file:
            held = _is_held(file.fileno())
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise RunFileError(f"{path} has more than {_MOST_BYTES:,} bytes and is no run file")
        raw = json.loads(content)
        if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
            raise RunFileError(f"{path} is no run file of this crashpath ({SCHEMA}); trace the run again")
        run = _run(raw)
    except OSError as error:
        raise RunFileError(f"{path} cannot be read: {error.strerror or error}") from error
    except MALFORMED as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST]
        raise RunFileError(f"{path} is cut short or no run file ({said})") from error
    return replace(run, state=State.LOST) if run.state is State.RUNNING and not held else run


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
        "replaced": dict(trace.replaced),
    } | told_of(trace)


def told_of(trace: Trace) -> dict[str, Any]:
    """Return what a trace tells besides its units, as `read_trace` reads it."""
    return {
        "timings": [asdict(one) for one in trace.timings],
        "placed": [asdict(one) for one in trace.placed],
        "shipped": None if trace.shipped is None else asdict(trace.shipped),
        "problems": list(trace.problems),
    }


def _run(raw: Mapping[str, Any]) -> Run:
    began, ended, state = moment(raw["began"]), raw["ended"], State(raw["state"])
    ended = None if ended is None else moment(ended)
    if (ended is None and state is State.FINISHED) or (ended is not None and ended < began):
        raise ValueError("it ended before it began, or is finished without an end")
    seen = tuple(_seen(one) for one in raw["seen"])
    once([one.declared.path for one in seen])
    return Run(
        id=name(raw["id"]),
        origin=text(raw["origin"]),
        model=key(raw["model"]),
        model_hash=name(raw["model_hash"]),
        release=key(raw["release"]),
        began=began,
        ended=ended,
        versions=tuple((text(k), text(v)) for k, v in raw["versions"].items()),
        asked=texts(raw["asked"]),
        requests=count(raw["requests"]),
        seen=seen,
        routes=counts(raw["routes"]),
        domain=counts(raw["domain"]),
        state=state,
    )


def _seen(raw: Mapping[str, Any]) -> Seen:
    path = Which(raw["path"]).value
    units = tuple(
        Unit(Kind(kind), name(id), text(label), text(where), key(parent), None if why is None else text(why))
        for kind, id, label, where, parent, why in raw["units"]
    )
    once([unit.id for unit in units])
    nested(units)
    replaced = {key(unit): text(why) for unit, why in raw["replaced"].items()}
    return Seen(Declared(path, units), replace(read_trace(path, raw), hits=counts(raw["hits"]), replaced=replaced))


def read_trace(path: str, raw: Mapping[str, Any]) -> Trace:
    """Return what `told_of` told, without hits. Raises those of `MALFORMED`."""
    placed = tuple(
        Placed(text(one["node"]), text(one["operator"]), text(one["assigned"]), text(one["ran"]))
        for one in raw["placed"]
    )
    return Trace(
        path,
        timings=tuple(_timing(path, one) for one in raw["timings"]),
        placed=placed,
        shipped=_shipped(raw["shipped"]),
        problems=texts(raw.get("problems") or []),
    )


def _timing(path: str, raw: Mapping[str, Any]) -> Timing:
    if raw["path"] != path:
        raise ValueError(f"a timing of the path {raw['path']!r:.40} is among those of {path}")
    return Timing(path, text(raw["operator"]), count(raw["batch"]), count(raw["calls"]), seconds(raw["seconds"]))


def _shipped(raw: Mapping[str, Any] | None) -> Shipped | None:
    if raw is None:
        return None
    told = Shipped(count(raw["ran"]), count(raw["nodes"]), texts(raw["left"]), texts(raw.get("problems") or []))
    if told.ran > told.nodes:
        raise ValueError(f"{told.ran} nodes of {told.nodes} ran")
    return told
