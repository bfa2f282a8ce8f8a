"""Drive a fault through the runtime: see that the session is whole, attack it, judge what was seen."""

from __future__ import annotations

import time

from crashpath.coverage.drillattack import attack
from crashpath.coverage.drillcase import Case, not_here, null_result
from crashpath.coverage.drillcells import DrillResult
from crashpath.coverage.drilljudge import judged
from crashpath.coverage.drillstage import Stage
from crashpath.runtime.values import Phase


class DrillError(Exception):
    """A drill cannot be driven: the session did not answer on its main path before anything was broken."""


def drive(stage: Stage, case: Case) -> DrillResult:
    """Drive one case on a stage. Raises `DrillError` where the main path did not answer before it."""
    if why := not_here(case, stage.isolation, stage):
        return null_result(case, stage.isolation, stage.policy.name, why)
    if not stage.main_answers(stage.pace.recover, "raw" if case.phase is Phase.PREPARE else "golden"):
        raise DrillError(f"before {case.fault.id} the main path did not answer the golden request; is the model whole?")
    began = time.monotonic()
    seen = attack(stage, case.plan, case.phase)
    cells = judged(stage, case, seen)
    return DrillResult(
        case.fault.id,
        case.fault.failure_class,
        case.phase,
        stage.isolation,
        stage.policy.name,
        case.plan.path,
        cells,
        requests=len(seen.asked),
        unanswered=sum(asked.answer is None for asked in seen.asked),
        wrong=sum(asked.right is False for asked in seen.asked),
        seconds=time.monotonic() - began,
        observed="; ".join(seen.notes),
        told="; ".join(seen.told),
        printed=seen.printed,
    )
