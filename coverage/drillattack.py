"""Attack a stage with one fault in one phase: arm or spoil, send requests, see what happens, undo.

An attack only does and sees; `drill` judges. Whatever happens in between, the strike is disarmed and the folder mended.
"""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from crashpath.coverage.drillfolder import tokenizer_file
from crashpath.coverage.drillplan import DrillPlan
from crashpath.coverage.drillstage import Asked, Stage
from crashpath.coverage.overhear import Overheard, alive
from crashpath.coverage.spoilers import Broken, Spoiler, file_of, spoiled, spoiler
from crashpath.coverage.strikes import FUNCTION, packed, read_marks, strike
from crashpath.runtime import routes
from crashpath.runtime.lane import LaneState
from crashpath.runtime.values import Path as Which
from crashpath.runtime.values import Phase, Strike

HITS = 2
"""How often a request is struck: the policy ``account`` answers the first failure and hands on the second."""
_PAUSE = 0.02
_BUSY_S = 0.1
"""Processor seconds that a loop takes at the least before it counts as seen."""


@dataclass(slots=True)
class Seen:
    """What an attack saw. ``since`` is the number of the first event that it may have caused."""

    since: int
    asked: list[Asked] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    printed: str = ""

    def note(self, text: str) -> None:
        """Keep an observation, once."""
        if text and text not in self.notes:
            self.notes.append(text)


def attack(stage: Stage, plan: DrillPlan, phase: Phase) -> Seen:
    """Drive one attack and undo it. The path that was struck may still be coming back when this returns."""
    which = Which(plan.path)
    seen = Seen(len(stage.heard()))
    lane = stage.lanes[which]

    def pid_of() -> int | None:
        return os.getpid() if stage.isolation == "in_process" else lane.facts().pid

    with Overheard(pid_of) as heard:
        if phase is Phase.PREPARE:
            _prepare(stage, plan, seen)
        elif phase is Phase.INFER and plan.spoiler:
            _poisoned(stage, plan, seen, heard)
        elif phase is Phase.INFER:
            _struck_run(stage, plan, which, seen)
        else:
            _struck_load(stage, plan, phase, which, seen)
        seen.printed = heard.printed()
    for event in stage.failures(seen.since, which):
        seen.note(f"{event.type}: {event.message}")
    for asked in seen.asked:
        cause = asked.answer.cause if asked.answer is not None else asked.error
        if cause is not None:
            seen.note(f"{cause}{_evidence(cause)}")
            seen.printed = seen.printed or _trace(cause)
    seen.note(stage.props.observe())
    return seen


def _prepare(stage: Stage, plan: DrillPlan, seen: Seen) -> None:
    with _in_prepare(stage, plan, seen):
        for _ in range(HITS):
            seen.asked.append(stage.ask("raw"))


@contextmanager
def _in_prepare(stage: Stage, plan: DrillPlan, seen: Seen) -> Iterator[None]:
    if plan.spoiler:
        with _spoiled(stage, spoiler(plan.spoiler)) as broken:
            seen.note(broken.observe())
            yield
        return
    marks = stage.marks_file()
    argument = packed(plan.strike, marks, stage.props.fill(plan.argument_in("in_process")))
    stage.before_prepare = lambda: strike(argument)
    try:
        yield
    finally:
        stage.before_prepare = None
        _note_marks(marks, seen)


def _struck_run(stage: Stage, plan: DrillPlan, which: Which, seen: Seen) -> None:
    """Strike requests, and ask in between while the path is away, as clients do."""
    marks = stage.marks_file()
    argument = packed(plan.strike, marks, stage.props.fill(plan.argument_in(stage.isolation)))
    with stage.session.armed(which, Strike(FUNCTION, Phase.INFER, argument, times=HITS)):
        for _ in range(HITS):
            seen.asked.append(stage.ask())
            _note_marks(marks, seen)
            if stage.lanes[which].facts().state is not LaneState.READY:
                seen.asked.append(stage.ask())
            stage.wait(which, stage.pace.recover)
    _note_marks(marks, seen)


def _poisoned(stage: Stage, plan: DrillPlan, seen: Seen, heard: Overheard) -> None:
    """Put the poisonous model into service, and send it the request that it cannot take."""
    with _spoiled(stage, spoiler(plan.spoiler)):
        stage.take_down(Which.MAIN)
        if not stage.wait(Which.MAIN, stage.pace.recover):
            seen.note("the poisonous model did not come up")
            return
        seen.since = len(stage.heard())
        for _ in range(HITS):
            before = heard.computed()
            asked = stage.ask("poison")
            seen.asked.append(asked)
            spent = heard.computed() - before
            if spent >= _BUSY_S:
                seen.note(f"the path computed {spent:.1f} s for the request")
            stage.wait(Which.MAIN, stage.pace.recover)
    stage.take_down(Which.MAIN)  # what it serves now is the poisonous model still


def _struck_load(stage: Stage, plan: DrillPlan, phase: Phase, which: Which, seen: Seen) -> None:
    """Take the path down and let its next load fail; ask all the while."""
    if plan.spoiler:
        with _spoiled(stage, spoiler(plan.spoiler)) as broken:
            stage.take_down(which)
            _ask_until_told(stage, phase, which, seen, lambda: seen.note(broken.observe()))
        return
    marks = stage.marks_file()
    argument = packed(plan.strike, marks, stage.props.fill(plan.argument_in(stage.isolation)))
    waits = plan.strike.startswith("waiting.") or plan.strike == "process.stopped"
    with stage.session.armed(which, Strike(FUNCTION, phase, argument, times=1 if waits else HITS)):
        stage.take_down(which)
        _ask_until_told(stage, phase, which, seen, lambda: None)
    _note_marks(marks, seen)


def _ask_until_told(stage: Stage, phase: Phase, which: Which, seen: Seen, look: Callable[[], None]) -> None:
    """Ask until the session has told of the failed load and a request has met it, and once more after that."""
    end = time.monotonic() + stage.pace.load + stage.pace.recover
    met = which is Which.FALLBACK
    more = 1
    while time.monotonic() < end:
        asked = stage.ask()
        seen.asked.append(asked)
        look()
        told = any(event.phase == phase for event in stage.failures(seen.since, which))
        met = met or asked.answer is None or asked.answer.route.startswith((f"{phase}:", routes.SWITCHED))
        if told and met:
            if not more:
                return
            more -= 1
        time.sleep(_PAUSE)


@contextmanager
def _spoiled(stage: Stage, how: Spoiler) -> Iterator[Broken]:
    file = file_of(how, stage.folder.path, tokenizer_file(stage.folder))
    assert file is not None  # plans whose file the folder lacks are not driven
    with spoiled(how, file) as broken:
        yield broken


def _note_marks(marks: Path, seen: Seen) -> None:
    """Say which processes the strike reached, whether it came back, and whether they still live."""
    found = read_marks(marks)
    for pid in found.pids:
        seen.note(f"hit {'this process' if pid == os.getpid() else 'a worker'}")
        if pid != os.getpid() and not alive(pid):
            seen.note("that worker is gone")
    if len(found.pids) > len(found.ended):
        seen.note("hit, and not back")
    for ended in found.ended:
        seen.note(f"ended with {ended}")


def _evidence(cause: BaseException) -> str:
    evidence = getattr(cause, "evidence", "")
    return f" ({evidence})" if evidence else ""


def _trace(cause: BaseException) -> str:
    """The traceback of the library's error: that of the worker where it was raised there."""
    library = cause.__cause__
    if library is None:
        return ""
    trace: str = getattr(library, "trace", "")
    return trace or "".join(traceback.format_exception(library))
