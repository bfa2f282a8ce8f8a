"""A long-lived session under a mix of faults: how many requests went unanswered or got a wrong answer."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from crashpath.coverage.claims import lower_bound
from crashpath.coverage.drillcase import Case
from crashpath.coverage.drillplan import missing_for
from crashpath.coverage.drillstage import Asked, Stage
from crashpath.coverage.strikes import FUNCTION, packed, read_marks
from crashpath.runtime.lane import LaneState
from crashpath.runtime.policy import BreakerSettings, Policy
from crashpath.runtime.values import Path as Which
from crashpath.runtime.values import Phase, Strike

PLAIN = 2
"""Requests without a fault after each struck one: so the failure rate stays below what opens the breaker."""
_WEIGHTS = {"process": 1.0, "waiting": 0.2}
"""How often a strike of a module is drawn, beside 10 for one that costs no restart."""
_USUAL = 10.0


@dataclass(frozen=True, slots=True)
class MixResult:
    """``requests`` met a fault that was seen to be raised; ``others`` came beside them, also while a path was away.

    ``wanted`` of them were asked for. ``policy`` is the one that ran, ``breaker`` its settings (empty where it has
    none). ``unanswered`` and ``wrong`` count over all requests; ``misnamed`` struck requests were put under another
    class. ``faults``: how often each was raised. ``restarts`` of the main path's worker.
    """

    wanted: int
    isolation: str
    policy: str
    breaker: tuple[tuple[str, float], ...]
    requests: int
    others: int
    unanswered: int
    wrong: int
    late: int
    misnamed: int
    faults: tuple[tuple[str, int], ...]
    restarts: int
    errors: tuple[str, ...]
    versions: tuple[tuple[str, str], ...]

    @property
    def misses(self) -> int:
        """Struck requests that were not answered rightly, at most."""
        return min(self.requests, self.unanswered + self.wrong)

    @property
    def faulty(self) -> tuple[str, ...]:
        """Why the mix is red, a reason each; nothing where it is green."""
        found = (
            (self.requests < self.wanted, f"{self.requests:,} of {self.wanted:,} requests met a fault"),
            (self.unanswered > 0, f"{self.unanswered:,} unanswered"),
            (self.wrong > 0, f"{self.wrong:,} wrong answers"),
            (self.late > 0, f"{self.late:,} late"),
            (self.misnamed > 0, f"{self.misnamed:,} under another class"),
        )
        return tuple(reason for holds, reason in found if holds)

    @property
    def bound(self) -> float:
        """The share of struck requests that are answered right: lower bound, 95 % confidence."""
        return lower_bound(self.requests, self.misses)


def mixable(cases: Sequence[Case], isolation: str) -> tuple[Case, ...]:
    """Return the cases that one session can meet in any order: strikes of single requests of the main path."""
    return tuple(
        case
        for case in cases
        if case.phase is Phase.INFER
        and case.plan.strike
        and case.plan.path == Which.MAIN
        and missing_for(case.plan, isolation) is None
    )


def patient(policy: Policy) -> Policy:
    """Return a breaker that a share of one failure in three never opens, so that each request is struck for real.

    It is not the policy as it ships, so it has a name of its own.
    """
    if policy.breaker is None:
        return policy
    settings = BreakerSettings(calls=100, minimum=20, rate=0.9)
    return Policy(f"{policy.name}, patient", policy.fall_back_on, settings, policy.sticky, policy.once)


class Mix:
    """Drives a mix on a stage; `run` may be called once."""

    def __init__(self, stage: Stage, cases: Sequence[Case], seed: int) -> None:
        self._stage = stage
        self._cases = cases
        self._rng = random.Random(seed)
        self._raised: Counter[str] = Counter()
        self._struck = self._others = 0
        self._unanswered = self._wrong = self._late = self._misnamed = 0
        self._errors: list[str] = []
        self._arguments = {
            case.fault.id: (stage.marks_file(), stage.props.fill(case.plan.argument_in(stage.isolation)))
            for case in cases
        }

    def run(self, requests: int, progress: Callable[[int], None] = lambda done: None) -> MixResult:
        """Go on until ``requests`` have met a fault that was seen to be raised, or half as many again were armed."""
        weights = [_weight(case) for case in self._cases]
        for _ in range(requests + requests // 2 + 10):
            if self._struck >= requests:
                break
            self._strike(self._rng.choices(self._cases, weights)[0])
            progress(self._struck)
        policy = self._stage.policy
        return MixResult(
            wanted=requests,
            isolation=self._stage.isolation,
            policy=policy.name,
            breaker=() if policy.breaker is None else tuple(asdict(policy.breaker).items()),
            requests=self._struck,
            others=self._others,
            unanswered=self._unanswered,
            wrong=self._wrong,
            late=self._late,
            misnamed=self._misnamed,
            faults=tuple(self._raised.most_common()),
            restarts=self._stage.session.facts().main.restarts,
            errors=tuple(self._errors[:5]),
            versions=tuple(self._stage.versions().items()),
        )

    def _strike(self, case: Case) -> None:
        stage = self._stage
        marks, argument = self._arguments[case.fault.id]
        text = packed(case.plan.strike, marks, argument)
        hits = len(read_marks(marks).pids)
        with stage.session.armed(Which.MAIN, Strike(FUNCTION, Phase.INFER, text)):
            asked = self._count(stage.ask())
        if len(read_marks(marks).pids) > hits:
            self._struck += 1
            self._raised[case.fault.id] += 1
            cause = asked.answer.cause if asked.answer is not None else None
            self._misnamed += cause is None or cause.failure_class != case.fault.failure_class
        else:
            self._others += 1
        marks.unlink(missing_ok=True)
        if stage.lanes[Which.MAIN].facts().state is not LaneState.READY:
            self._count(stage.ask())
            self._others += 1
            stage.wait(Which.MAIN, stage.pace.recover)
        for _ in range(PLAIN):
            self._count(stage.ask())
            self._others += 1

    def _count(self, asked: Asked) -> Asked:
        self._unanswered += asked.answer is None
        self._wrong += asked.right is False
        self._late += asked.milliseconds > self._stage.folder.limits.deadline_ms
        if asked.error is not None:
            self._errors.append(f"{type(asked.error).__name__}: {asked.error}"[:200])
        return asked


def _weight(case: Case) -> float:
    return _WEIGHTS.get(case.plan.strike.partition(".")[0], _USUAL)
