"""A stage: a session that is open on a copy of a model folder, everything it tells kept, ready to be struck."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast, get_args

from numpy.typing import NDArray

from crashpath.coverage.drillfolder import Exam, Prepared, copied, exam_of, prepared
from crashpath.coverage.drilllane import HeardLane
from crashpath.coverage.props import Props
from crashpath.coverage.spoilers import file_of, spoiled, spoiler
from crashpath.runtime.backends import CPU
from crashpath.runtime.compare import same
from crashpath.runtime.events import Cohort, FailureEvent, Listener, Told
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.lane import Lane, LaneState
from crashpath.runtime.opening import Isolation, LaneSettings, lanes
from crashpath.runtime.policy import Policy
from crashpath.runtime.session import FallbackSession
from crashpath.runtime.values import Answer, Arrays
from crashpath.runtime.values import Path as Which

_KNOWN_S = 10.0
"""Seconds in which a lane at the latest knows that its worker died."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds: ``start`` to open a session, ``load`` until a path that loads again must be ready, ``recover`` to wait.

    ``load`` stands in for the folder's own limit, which is longer than anybody waits for a load that hangs.
    """

    start: float = 120.0
    load: float = 10.0
    recover: float = 60.0


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: what it got, whether that was right (``None``: no answer), and the milliseconds that it took.

    ``struck``: it met the fault, as an attack saw it; others came beside it.
    """

    answer: Answer | None
    error: Exception | None
    right: bool | None
    milliseconds: float
    struck: bool = False


class Stage:
    """An open session with what a drill needs around it. Use `opened`; one thread drives it."""

    def __init__(
        self,
        folder: ModelFolder,
        session: FallbackSession,
        lanes: Mapping[Which, HeardLane],
        props: Props,
        scratch: Path,
        isolation: str,
        policy: Policy,
        pace: Pace,
        heard: list[Told],
        prepared: Prepared | None,
    ) -> None:
        self.folder = folder
        self.session = session
        self.lanes = lanes
        self.props = props
        self.scratch = scratch
        self.isolation = isolation
        self.policy = policy
        self.pace = pace
        self.exam: Exam = exam_of(folder)
        self.prepared = prepared
        self.raw_answer: Mapping[str, NDArray[Any]] | None = None
        self._heard = heard
        self._number = 0

    def marks_file(self) -> Path:
        """Return a new file for the marks of a strike."""
        self._number += 1
        return self.scratch / f"marks-{self._number}"

    def heard(self, since: int = 0) -> list[Told]:
        """Return what the session told from number ``since`` on."""
        return self._heard[since:]

    def failures(self, since: int, path: Which) -> list[FailureEvent]:
        """Return the failures of ``path`` that the session told of."""
        events = [told.event for told in self.heard(since)]
        return [event for event in events if isinstance(event, FailureEvent) and event.path == path]

    def ask(self, kind: str = "golden", deadline_ms: float | None = None) -> Asked:
        """Send one request: ``golden``, ``poison`` or ``raw``; any thread may."""
        began = time.monotonic()
        try:
            if kind == "raw":
                answer = self.session.run_raw(self.exam.raw, deadline_ms=deadline_ms)
            else:
                answer = self.session.run(self._feed(kind), deadline_ms=deadline_ms)
        except Exception as error:  # noqa: BLE001  # whatever a caller would have got is what the drill is about
            return Asked(None, error, None, (time.monotonic() - began) * 1000)
        spent = (time.monotonic() - began) * 1000
        return Asked(answer, None, self._right(kind, answer), spent)

    def _feed(self, kind: str) -> Arrays:
        feed = self.exam.poison_feed if kind == "poison" else self.exam.feed
        assert feed is not None  # plans with a poison are not driven where there is none
        return feed

    def _right(self, kind: str, answer: Answer) -> bool:
        wanted = {"golden": self.exam.answer, "poison": self.exam.poison_answer, "raw": self.raw_answer}[kind]
        return wanted is not None and same(answer.outputs, wanted, self.folder.tolerance).equal

    def wait(self, path: Which, seconds: float) -> bool:
        """Wait until ``path`` is ready and nothing that was abandoned runs in it any more."""
        lane = self.lanes[path]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            facts = lane.facts()
            if facts.state is LaneState.READY and not facts.abandoned:
                return True
            time.sleep(0.02)
        return False

    def versions(self) -> dict[str, str]:
        """Names and versions of what runs the two paths."""
        facts = self.session.facts()
        return dict((*facts.main.versions, *facts.fallback.versions))

    def answers_itself(self, path: Which, seconds: float) -> str:
        """Ask the path itself, past the session, until it gives the golden answer; return why not, or ``""``."""
        end = time.monotonic() + seconds
        while True:
            why = self._asked_itself(path)
            if not why or time.monotonic() >= end:
                return why
            time.sleep(0.05)

    def _asked_itself(self, path: Which) -> str:
        try:
            outputs = self.lanes[path].run(self.exam.feed, time.monotonic() + self.folder.limits.deadline_ms / 1000)
        except Exception as error:  # noqa: BLE001  # whatever the path says is the reason
            return f"the path itself raises {type(error).__name__}: {error}"[:200]
        return "" if same(outputs, self.exam.answer, self.folder.tolerance).equal else "the path itself answers wrongly"

    def take_down(self, path: Which) -> None:
        """Kill a path and wait until its lane knows, so that what comes next meets the load and not the death."""
        lane = self.lanes[path]
        restarts = lane.facts().restarts
        lane.kill()
        end = time.monotonic() + _KNOWN_S
        while lane.facts().restarts == restarts and time.monotonic() < end:
            time.sleep(0.005)

    def main_answers(self, seconds: float, kind: str = "golden") -> bool:
        """Ask until the main path gives the right answer, without a trouble on the way."""
        end = time.monotonic() + seconds
        while True:
            asked = self.ask(kind)
            if asked.answer is not None and asked.right and asked.answer.path is Which.MAIN and not asked.answer.cause:
                return True
            if time.monotonic() >= end:
                return False
            time.sleep(0.05)


@dataclass(frozen=True, slots=True)
class Options:
    """What a session may be told besides. ``deadline_ms``: longer than the folder's, where that is shorter.

    ``broken`` is the name of a spoiler whose file is broken while the session opens, and whole afterwards.
    """

    sample: float = 0.0
    fallback_slots: int = 8
    deadline_ms: float = 0.0
    broken: str = ""


@contextmanager
def opened(
    folder: ModelFolder,
    isolation: str,
    policy: Policy,
    *,
    pace: Pace | None = None,
    listeners: tuple[Listener, ...] = (),
    options: Options | None = None,
    providers: tuple[str, ...] = (CPU,),
) -> Iterator[Stage]:
    """Open a session on a copy of ``folder`` and close it, with all that was made for it, in the end.

    It is made of the lanes, limits and tokenizer that a production session of the folder has, but for the time that a
    load may take (`Pace`) and for what a drill needs to strike the prepare step.
    """
    pace, options = pace or Pace(), options or Options()
    if isolation not in get_args(Isolation):
        raise ValueError(f"isolation is one of {', '.join(get_args(Isolation))}, not {isolation!r}")
    with tempfile.TemporaryDirectory(prefix="drill-") as name:
        scratch = Path(name)
        scratch.chmod(0o755)  # a strike that gives up root's rights still reaches its marks
        copy = copied(folder, scratch / "model")
        copy = replace(copy, limits=replace(copy.limits, load_s=pace.load))
        feed, golden = copy.golden()
        settings = LaneSettings(cast(Isolation, isolation), providers)
        made = {path: HeardLane(lane) for path, lane in zip(Which, lanes(copy, feed, settings), strict=True)}
        heard: list[Told] = []
        lock = threading.Lock()

        def listen(told: Told) -> None:
            with lock:
                heard.append(told)

        step = prepared(copy)
        with _broken(options.broken, copy.path):
            session = FallbackSession(
                cast(Lane, made[Which.MAIN]),
                cast(Lane, made[Which.FALLBACK]),
                policy,
                inputs=copy.inputs,
                tolerance=copy.tolerance,
                golden=golden,
                deadline_ms=max(copy.limits.deadline_ms, options.deadline_ms),
                load_s=pace.start,
                prepare=None if step is None else step.step,
                listeners=(listen, *listeners),
                cohort=Cohort(model=copy.name, model_hash=copy.hash),
                sample=options.sample,
                fallback_slots=options.fallback_slots,
            )
        with Props(scratch) as props, session:
            stage = Stage(copy, session, made, props, scratch, isolation, policy, pace, heard, step)
            if stage.exam.raw is not None:
                stage.raw_answer = session.run_raw(stage.exam.raw).outputs
            yield stage


@contextmanager
def _broken(name: str, folder: Path) -> Iterator[None]:
    """Break the file of a spoiler meanwhile; of no name, nothing."""
    if not name:
        yield
        return
    file = file_of(spoiler(name), folder, None)
    assert file is not None  # options name spoilers of files that every folder has
    with spoiled(spoiler(name), file):
        yield
