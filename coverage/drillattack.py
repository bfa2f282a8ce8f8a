"""Attack a stage with one fault in one phase: arm or spoil, send requests, see what happens, undo.

An attack only does and sees; `drilljudge` judges. Whatever happens in between, the strike is disarmed and the folder
mended.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from crashpath.coverage.drillfolder import tokenizer_file
from crashpath.coverage.drilllane import HeardLane
from crashpath.coverage.drillplan import DrillPlan
from crashpath.coverage.drillseen import Seen, note_marks, trace, words
from crashpath.coverage.drillstage import Asked, Stage
from crashpath.coverage.overhear import Overheard
from crashpath.coverage.spoilers import Broken, Spoiler, file_of, spoiled, spoiler
from crashpath.coverage.strikes import FUNCTION, packed, read_marks, strike
from crashpath.coverage.witness import refusal
from crashpath.runtime.lane import LaneState
from crashpath.runtime.values import Path as Which
from crashpath.runtime.values import Phase, Strike

HITS = 2
"""How often a request is struck: the policy ``account`` answers the first failure and hands on the second."""
_PAUSE = 0.02
_MEANWHILE = 3
"""Requests that are sent while a load is under way, before one waits for its end."""
_WAIT_S, _PEEK = 5.0, 0.002
_BUSY_S = 0.1
"""Processor seconds that a loop takes at the least before it counts as seen."""


def attack(stage: Stage, plan: DrillPlan, phase: Phase) -> Seen:
    """Drive one attack and undo it. The path that was struck may still be coming back when this returns."""
    which = Which(plan.path)
    seen = Seen(len(stage.heard()))
    lane = stage.lanes[which]
    stage.props.observe()  # what came before is none of this drill's

    def pid_of() -> int | None:
        return os.getpid() if stage.isolation == "in_process" else lane.facts().pid

    with Overheard(pid_of) as heard:
        if phase is Phase.PREPARE:
            _prepare(stage, plan, seen, heard)
        elif phase is Phase.INFER and plan.spoiler:
            _poisoned(stage, plan, seen, heard)
        elif phase is Phase.INFER:
            _struck_run(stage, plan, which, seen, heard)
        else:
            _struck_load(stage, plan, phase, which, seen, heard)
        seen.output = heard.printed()
    for event in stage.failures(seen.since, which):
        seen.hear(f"{event.type}: {event.message}")
    for asked in seen.asked:
        cause = asked.answer.cause if asked.answer is not None else asked.error
        if cause is not None:
            seen.hear(f"{cause}{_evidence(cause)}")
            seen.trace = seen.trace or trace(cause)
    seen.note(stage.props.observe())
    return seen


def struck_requests(stage: Stage) -> int:
    """How many requests in a row can meet a fault: a policy that leaves for good leaves at the first."""
    return 1 if stage.policy.sticky else HITS


def _prepare(stage: Stage, plan: DrillPlan, seen: Seen, heard: Overheard) -> None:
    assert stage.prepared is not None  # phases that the folder has no step for are not driven
    if plan.spoiler:
        with _spoiled(stage, spoiler(plan.spoiler), seen):
            stage.prepared.renew()
            seen.asked += [replace(stage.ask("raw"), struck=True) for _ in range(HITS)]
        return
    marks = stage.marks_file()
    argument = packed(plan.strike, marks, stage.props.fill(plan.argument_in("in_process")))
    seen.wanted = HITS
    stage.prepared.before = lambda: strike(argument)
    try:
        seen.asked += [_watched(stage, marks, "raw") for _ in range(HITS)]
    finally:
        stage.prepared.before = None
        note_marks(seen, marks, heard.how)


def _watched(stage: Stage, marks: Path, kind: str = "golden") -> Asked:
    """Ask, and say by its marks whether the strike hit this request."""
    before = len(read_marks(marks).pids)
    asked = stage.ask(kind)
    return replace(asked, struck=len(read_marks(marks).pids) > before)


def _struck_run(stage: Stage, plan: DrillPlan, which: Which, seen: Seen, heard: Overheard) -> None:
    """Strike requests, and ask in between while the path is away, as clients do."""
    marks = stage.marks_file()
    argument = packed(plan.strike, marks, stage.props.fill(plan.argument_in(stage.isolation)))
    seen.wanted = struck_requests(stage)
    with stage.session.armed(which, Strike(FUNCTION, Phase.INFER, argument, times=HITS)):
        for _ in range(HITS):
            seen.asked.append(_watched(stage, marks))
            note_marks(seen, marks, heard.how)
            if stage.lanes[which].facts().state is not LaneState.READY:
                seen.asked.append(_watched(stage, marks))
            stage.wait(which, stage.pace.recover)
    note_marks(seen, marks, heard.how)


def _poisoned(stage: Stage, plan: DrillPlan, seen: Seen, heard: Overheard) -> None:
    """Put the poisonous model into service, and send it the request that it cannot take."""
    with _spoiled(stage, spoiler(plan.spoiler), seen):
        stage.take_down(Which.MAIN)
        if not stage.wait(Which.MAIN, stage.pace.recover):
            seen.note("the poisonous model did not come up")
            return
        seen.since = len(stage.heard())
        for number in range(HITS):
            before = heard.computed()
            asked = replace(stage.ask("poison"), struck=number < struck_requests(stage))
            seen.asked.append(asked)
            spent = heard.computed() - before
            if spent >= _BUSY_S:
                seen.note(f"the path computed {spent:.1f} s for the request")
            seen.note(words(asked.answer.cause if asked.answer is not None else asked.error))
            stage.wait(Which.MAIN, stage.pace.recover)
    stage.take_down(Which.MAIN)  # what it serves now is the poisonous model still


def _struck_load(stage: Stage, plan: DrillPlan, phase: Phase, which: Which, seen: Seen, heard: Overheard) -> None:
    """Take the path down and let its next load fail; ask all the while."""
    if plan.spoiler:
        with _spoiled(stage, spoiler(plan.spoiler), seen) as broken:
            stage.take_down(which)
            _ask_until_told(stage, phase, which, seen, lambda: seen.note(broken.observe()))
        return
    marks = stage.marks_file()
    argument = packed(plan.strike, marks, stage.props.fill(plan.argument_in(stage.isolation)))
    waits = plan.strike.startswith("waiting.") or plan.strike == "process.stopped"
    seen.wanted = 1 if waits else HITS

    def look() -> None:
        seen.hits = len(read_marks(marks).pids)

    with stage.session.armed(which, Strike(FUNCTION, phase, argument, times=seen.wanted)):
        stage.take_down(which)
        _ask_until_told(stage, phase, which, seen, look)
    note_marks(seen, marks, heard.how)


def _ask_until_told(stage: Stage, phase: Phase, which: Which, seen: Seen, look: Callable[[], None]) -> None:
    """Ask until all loads that shall fail were hit, one was told of, and a request met it; and once more after that.

    A request has met a failed load of the main path where the session was told so as it chose the path for it, and one
    of the fallback where it began while that was down.
    """
    lane = stage.lanes[which]
    failed = lane.facts().failed_loads
    end = time.monotonic() + stage.pace.load + stage.pace.recover
    more = 1
    while time.monotonic() < end:
        before = lane.facts()
        with lane.looks() as told_of:
            asked = stage.ask()
        met = before if which is Which.FALLBACK else next(iter(told_of), before)
        struck = met.state is LaneState.DOWN and met.failed_loads > failed
        seen.asked.append(replace(asked, struck=struck))
        look()
        told = any(event.phase == phase for event in stage.failures(seen.since, which))
        if told and seen.hits >= seen.wanted and any(one.struck for one in seen.asked):
            if not more:
                return
            more -= 1
        if len(seen.asked) >= _MEANWHILE and not any(one.struck for one in seen.asked):
            _until_down(lane, failed, min(end, time.monotonic() + stage.pace.load + _WAIT_S))
        else:
            time.sleep(_PAUSE)


def _until_down(lane: HeardLane, failed: int, end: float) -> None:
    """Wait for a failed load: a path is down for a tenth of a second, and a request of a large model takes longer."""
    while time.monotonic() < end:
        facts = lane.facts()
        if facts.state is LaneState.DOWN and facts.failed_loads > failed:
            return
        time.sleep(_PEEK)


@contextmanager
def _spoiled(stage: Stage, how: Spoiler, seen: Seen) -> Iterator[Broken]:
    """Break the file, and ask its library about it: not of a poison, which it takes, nor where it would wait."""
    file = file_of(how, stage.folder.path, tokenizer_file(stage.folder))
    assert file is not None  # plans whose file the folder lacks are not driven
    with spoiled(how, file) as broken:
        if not how.poisons and not how.held and not file.is_fifo():
            seen.note(broken.observe())
            seen.note(refusal(how.file, stage.folder.main if how.file == "{external}" else file))
        yield broken


def _evidence(cause: BaseException) -> str:
    evidence = getattr(cause, "evidence", "")
    return f" ({evidence})" if evidence else ""
