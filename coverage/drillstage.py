"""A stage: a session that is open on a copy of a model folder, everything it tells kept, ready to be struck."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from crashpath.coverage.drillfolder import Exam, copied, exam_of, prepare_step
from crashpath.coverage.props import Props
from crashpath.runtime.backends import OrtBackend, TorchScriptBackend
from crashpath.runtime.compare import same
from crashpath.runtime.events import Cohort, FailureEvent, Listener, Told
from crashpath.runtime.folder import ModelFolder
from crashpath.runtime.inprocess import InProcessLane
from crashpath.runtime.lane import Lane, LaneState
from crashpath.runtime.policy import Policy
from crashpath.runtime.prepare import PrepareStep
from crashpath.runtime.session import FallbackSession
from crashpath.runtime.values import Answer, Arrays
from crashpath.runtime.values import Path as Which
from crashpath.runtime.workerlane import WorkerLane

_KNOWN_S = 10.0
"""Seconds in which a lane at the latest knows that its worker died."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds: ``start`` to open a session, ``load`` until a struck path must be ready again, ``recover`` to wait."""

    start: float = 120.0
    load: float = 8.0
    recover: float = 60.0


@dataclass(frozen=True, slots=True)
class Asked:
    """One request: what it got, whether that was right (``None``: no answer), and the milliseconds that it took."""

    answer: Answer | None
    error: Exception | None
    right: bool | None
    milliseconds: float


class Stage:
    """An open session with what a drill needs around it. Use `opened`; one thread drives it."""

    def __init__(
        self,
        folder: ModelFolder,
        session: FallbackSession,
        lanes: Mapping[Which, Lane],
        props: Props,
        scratch: Path,
        isolation: str,
        policy: Policy,
        pace: Pace,
        heard: list[Told],
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
        self.before_prepare: Callable[[], None] | None = None
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

    def ask(self, kind: str = "golden") -> Asked:
        """Send one request: ``golden``, ``poison`` or ``raw``."""
        began = time.monotonic()
        try:
            answer = self.session.run_raw(self.exam.raw) if kind == "raw" else self.session.run(self._feed(kind))
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


@contextmanager
def opened(
    folder: ModelFolder,
    isolation: str,
    policy: Policy,
    *,
    pace: Pace | None = None,
    listeners: tuple[Listener, ...] = (),
    sample: float = 0.0,
) -> Iterator[Stage]:
    """Open a session on a copy of ``folder`` and close it, with all that was made for it, in the end."""
    pace = pace or Pace()
    with tempfile.TemporaryDirectory(prefix="drill-") as name:
        scratch = Path(name)
        scratch.chmod(0o755)  # a strike that gives up root's rights still reaches its marks
        copy = copied(folder, scratch / "model")
        lanes = {which: _lane(which, copy, isolation, pace) for which in Which}
        heard: list[Told] = []
        lock = threading.Lock()

        def listen(told: Told) -> None:
            with lock:
                heard.append(told)

        # The step asks for the stage when a request comes; by then there is one.
        stages: list[Stage] = []
        session = FallbackSession(
            lanes[Which.MAIN],
            lanes[Which.FALLBACK],
            policy,
            inputs=copy.inputs,
            tolerance=copy.tolerance,
            golden=copy.golden()[1],
            deadline_ms=copy.limits.deadline_ms,
            load_s=pace.start,
            prepare=_struck_step(prepare_step(copy), stages),
            listeners=(listen, *listeners),
            cohort=Cohort(model=copy.name, model_hash=copy.hash),
            sample=sample,
        )
        with Props(scratch) as props, session:
            stage = Stage(copy, session, lanes, props, scratch, isolation, policy, pace, heard)
            stages.append(stage)
            if stage.exam.raw is not None:
                stage.raw_answer = session.run_raw(stage.exam.raw).outputs
            yield stage


def _struck_step(step: PrepareStep | None, stages: list[Stage]) -> PrepareStep | None:
    if step is None:
        return None
    main = step.main

    def struck(raw: Any) -> Arrays:
        if stages and stages[0].before_prepare is not None:
            stages[0].before_prepare()
        return main(raw)

    return PrepareStep(struck, step.fallback)


def _lane(which: Which, folder: ModelFolder, isolation: str, pace: Pace) -> Lane:
    feed = folder.golden()[0]
    patience = pace.load if which is Which.MAIN else pace.start
    if isolation == "process":
        kind = "ort" if which is Which.MAIN else "torchscript"
        return WorkerLane(which, kind, folder, feed, start_timeout=patience)
    threads = folder.limits.threads
    if which is Which.MAIN:
        return InProcessLane(which, lambda: OrtBackend(folder, threads=threads), feed, reload_timeout=patience)
    return InProcessLane(which, lambda: TorchScriptBackend(folder, threads), feed, reload_timeout=patience)
