"""A scene: an open session that is led over named edges of the decision graph, and held to what its callers get.

What a caller gets that is not what the edge says is `Unmet`, at once: a scene that comes to its end went as it should.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from crashpath.coverage.drillstage import Asked, Stage
from crashpath.coverage.spoilers import Spoiler, file_of, spoiled, spoiler
from crashpath.coverage.spoilgraph import edit
from crashpath.coverage.strikes import FUNCTION, packed, read_marks, strike
from crashpath.runtime import routes
from crashpath.runtime.errors import NoAnswer
from crashpath.runtime.lane import LaneState
from crashpath.runtime.values import BreakerState, Phase, Strike
from crashpath.runtime.values import Path as Which

MEMORY = "memory.bytes_refused"
"""A strike that costs nothing and fails the same in both isolations: more memory than an address space has."""
OF_MEMORY = routes.answered(routes.stem(Phase.INFER, "oom_host"))
TURNS_WRONG = Spoiler("poison-answer", "{main}", lambda path: edit(path, "answer"), poisons=True)
"""A main artefact that gives the golden answer, and another one than the fallback for one row more."""
REFUSES = Spoiler("poison-refused", "{main}", lambda path: edit(path, "refuse"), poisons=True)
"""A main artefact whose library refuses one row more as the caller's mistake."""
NO_ROWS = "the rows of this model's inputs cannot be told apart, so no request is known that differs by its rows"
_PAUSE = 0.02
_SHORT_MS, _ROOM = 2000.0, 10.0
"""Milliseconds of a short deadline, and how often an answer fits into it at the least."""
_OFTEN = 100
"""How often a strike that shall hold for a whole scene may hit."""


class Unmet(Exception):  # noqa: N818  # says how it is, and is no mistake of the program
    """A caller got, or a session did, something else than the edge says."""


class NotHere(Exception):  # noqa: N818  # as above
    """The edges of a scene cannot be taken with this model; the message is the reason."""


@dataclass(slots=True)
class Beside:
    """A request in a thread of its own."""

    thread: threading.Thread
    asked: Asked | None = None

    def ended(self, seconds: float) -> Asked:
        """Wait for what it got."""
        self.thread.join(seconds)
        if self.asked is None:
            raise Unmet(f"a request beside the others did not end within {seconds:.0f} s")
        return self.asked


class Scene:
    """Leads one stage. ``requests`` counts what was sent; ``closed``: the scene has closed the session itself."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.requests = 0
        self.closed = False

    def deadline_ms(self) -> float:
        """Return a deadline that the main path and the fallback keep, as quick as the model is, and no longer."""
        return max(_SHORT_MS, _ROOM * self.answered().milliseconds)

    @property
    def patience(self) -> float:
        """Seconds that are waited for what must come."""
        return self.stage.pace.recover + self.stage.pace.load

    def count(self, edge: str) -> int:
        """How often the session took an edge so far."""
        return dict(self.stage.session.facts().figures.routes)[edge]

    def ask(self, kind: str = "golden", deadline_ms: float | None = None) -> Asked:
        """Send a request as `Stage.ask`."""
        self.requests += 1
        return self.stage.ask(kind, deadline_ms)

    def answered(
        self, *edges: str, kind: str = "golden", deadline_ms: float | None = None, right: bool = True
    ) -> Asked:
        """Ask; the answer must come over one of ``edges`` (none named: any), and be right, or wrong where it shall."""
        return held(self.ask(kind, deadline_ms), *edges, right=right)

    def refused(self, edge: str, error: type[Exception], deadline_ms: float | None = None) -> Exception:
        """Ask; the caller must get exactly this error, over this edge. Returns it."""
        return self.raises(edge, error, lambda: self.stage.ask(deadline_ms=deadline_ms))

    def raises(self, edge: str, error: type[Exception], ask: Callable[[], object]) -> Exception:
        """As `refused`, of any call; what `Stage.ask` caught counts as raised."""
        before = self.count(edge)
        self.requests += 1
        got: object
        try:
            got = ask()
        except Exception as raised:  # noqa: BLE001  # whatever the caller gets is what it is held to
            got = raised
        if isinstance(got, Asked):
            got = got.error if got.error is not None else got.answer
        if type(got) is not error or not isinstance(got, Exception):
            raise Unmet(f"{edge}: the caller got {_told(got)} instead of {error.__name__}")
        if self.count(edge) == before:
            raise Unmet(f"{edge}: the caller got its {error.__name__}, but the session counted another edge")
        return got

    def both_failed(self, edge: str, failure_class: str, deadline_ms: float | None = None) -> None:
        """Ask; the caller must get `NoAnswer` that names why each path failed."""
        error = self.refused(edge, NoAnswer, deadline_ms)
        assert isinstance(error, NoAnswer)
        found = getattr(error.fallback, "failure_class", type(error.fallback).__name__)
        if found != failure_class:
            raise Unmet(f"{edge}: the fallback's failure is told as {found} instead of {failure_class}")

    def until_both_failed(self, edge: str) -> None:
        """Ask until `NoAnswer` came over ``edge``: while a path is loading, requests go over another one."""
        end = time.monotonic() + self.patience
        before = self.count(edge)
        while self.count(edge) == before:
            asked = self.ask(deadline_ms=None)
            if not isinstance(asked.error, NoAnswer):
                raise Unmet(f"{edge}: the caller got {_told(asked.error or asked.answer)} instead of NoAnswer")
            if time.monotonic() >= end:
                raise Unmet(f"{edge} was not taken within {self.patience:.0f} s")
            time.sleep(_PAUSE)

    def beside(self, deadline_ms: float) -> Beside:
        """Send a golden request in a thread of its own."""
        self.requests += 1
        here = Beside(threading.Thread(target=lambda: None))

        def ask() -> None:
            here.asked = self.stage.ask(deadline_ms=deadline_ms)

        here.thread = threading.Thread(target=ask, name="route-drill", daemon=True)
        here.thread.start()
        return here

    @contextmanager
    def struck(
        self, path: Which, phase: Phase, name: str, argument: str = "", *, times: int = _OFTEN, least: int = 1
    ) -> Iterator[Callable[[], int]]:
        """Arm a strike meanwhile; yields how often it hit. It must have hit ``least`` times by the end."""
        stage = self.stage
        marks = stage.marks_file()
        text = packed(name, marks, stage.props.fill(argument))

        def hits() -> int:
            return len(read_marks(marks).pids)

        with stage.session.armed(path, Strike(FUNCTION, phase, text, times=times)):
            yield hits
        if hits() < least:
            raise Unmet(f"the strike {name} hit {hits()} times, {least} were needed")

    @contextmanager
    def prepare_struck(self, name: str, argument: str = "") -> Iterator[None]:
        """Strike the prepare step's first way meanwhile; it must have been hit by the end."""
        assert self.stage.prepared is not None  # scenarios that need a step are not led without
        marks = self.stage.marks_file()
        text = packed(name, marks, self.stage.props.fill(argument))
        self.stage.prepared.before = lambda: strike(text)
        try:
            yield
        finally:
            self.stage.prepared.before = None
        if not read_marks(marks).pids:
            raise Unmet(f"the strike {name} did not hit the prepare step")

    @contextmanager
    def spoiled(self, how: Spoiler | str) -> Iterator[None]:
        """Break a file of the copy meanwhile."""
        chosen = spoiler(how) if isinstance(how, str) else how
        file = file_of(chosen, self.stage.folder.path, None)
        assert file is not None  # scenes break artefacts, which every folder has
        with spoiled(chosen, file):
            yield

    @contextmanager
    def served(self, how: Spoiler) -> Iterator[None]:
        """Put a poisonous main artefact into service meanwhile; the whole one is served again in the end."""
        if self.stage.exam.poison_feed is None:
            raise NotHere(NO_ROWS)
        with self.spoiled(how):
            self.reloaded()
            yield
        self.reloaded()

    def reloaded(self) -> None:
        """Take the main path down, and wait until it has loaded what lies in the folder now."""
        self.stage.take_down(Which.MAIN)
        self.ready(Which.MAIN)

    def ready(self, path: Which) -> None:
        """Wait until a path is ready and nothing that was abandoned runs in it."""
        if not self.stage.wait(path, self.patience):
            raise Unmet(f"the {path} path was not ready within {self.patience:.0f} s")

    def until(self, what: str, holds: Callable[[], bool]) -> None:
        """Wait for something that must come."""
        end = time.monotonic() + self.patience
        while not holds():
            if time.monotonic() >= end:
                raise Unmet(f"{what}: it did not come within {self.patience:.0f} s")
            time.sleep(_PAUSE)

    def counted(self, edge: str) -> None:
        """Wait until the session has taken an edge in the background."""
        self.until(edge, lambda: self.count(edge) > 0)

    def down(self, path: Which, phase: Phase) -> None:
        """Wait until a path is down of a load that failed in ``phase``."""

        def is_down() -> bool:
            facts = self.stage.lanes[path].facts()
            return facts.state is LaneState.DOWN and facts.failure is not None and facts.failure.phase == phase

        self.until(f"{path} down in {phase}", is_down)

    def tripped(self) -> None:
        """Strike requests until the breaker opens; each is answered by the fallback, rightly."""
        with self.struck(Which.MAIN, Phase.INFER, MEMORY):
            while self.stage.session.facts().breaker is BreakerState.CLOSED:
                self.answered(OF_MEMORY)
                if self.requests > _OFTEN:
                    raise Unmet(f"the breaker did not open in {self.requests} requests")

    def ended(self) -> None:
        """Hold the session to its callers' rights once more: it answers, rightly, and no look of it failed."""
        if not self.closed:
            if self.stage.policy.falls_back:
                self.ready(Which.FALLBACK)
            held(self.ask())
        facts = self.stage.session.facts()
        if facts.missed_looks:
            raise Unmet(f"{facts.missed_looks} looks of the session at its paths failed")
        if facts.dropped_events:
            raise Unmet(f"{facts.dropped_events} events could not be told")


def held(asked: Asked, *edges: str, right: bool = True) -> Asked:
    """Hold an answer to the edges that it may have come over and to the right answer. Raises `Unmet`."""
    edge = " or ".join(edges) or "an answer"
    if asked.answer is None:
        raise Unmet(f"{edge}: the caller got {_told(asked.error)}")
    if edges and asked.answer.route not in edges:
        raise Unmet(f"{edge}: the answer came over {asked.answer.route}")
    if asked.right is not right:
        raise Unmet(f"{edge}: the answer is {'wrong' if right else 'right, and should be wrong'}")
    return asked


def _told(got: object) -> str:
    if isinstance(got, BaseException):
        return f"{type(got).__name__}: {got}"[:200]
    return "nothing" if got is None else "an answer"
