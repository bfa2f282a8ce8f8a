"""What a route drill is: the edges that it takes, the session that it needs, and how it is led over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from crashpath.coverage.drillcells import Verdict
from crashpath.coverage.drillplan import ISOLATIONS
from crashpath.coverage.drillstage import Options
from crashpath.coverage.routescene import Scene
from crashpath.runtime.policy import POLICIES, BreakerSettings, Policy

BREAKER = "breaker"
NO_STEP = "this model folder declares no tokenizer, so it has no prepare step"


@dataclass(frozen=True, slots=True)
class Scenario:
    """``edges`` are those that it takes. ``lead`` raises `Unmet` or `NotHere` where it cannot be led to its end.

    ``settings`` are the breaker's where those that ship are too slow, or too quick. ``not_in`` says, an isolation
    each, why it cannot be there; ``prepares``: it needs a prepare step.
    """

    id: str
    edges: tuple[str, ...]
    lead: Callable[[Scene], None]
    policy: str = BREAKER
    settings: BreakerSettings | None = None
    options: Options = field(default_factory=Options)
    not_in: tuple[tuple[str, str], ...] = ()
    prepares: bool = False

    def session_policy(self) -> Policy:
        """The policy of its session."""
        preset = POLICIES[self.policy]
        if self.settings is None:
            return preset
        return Policy(preset.name, preset.fall_back_on, self.settings, preset.sticky, preset.once)

    def not_here(self, isolation: str) -> str | None:
        """Say why it cannot be in an isolation, whichever model it is."""
        return dict(self.not_in).get(isolation)


@dataclass(frozen=True, slots=True)
class RouteResult:
    """How a scenario went. ``taken``: how often its session took each of ``edges``; ``why`` it is not green."""

    scenario: str
    isolation: str
    policy: str
    edges: tuple[str, ...]
    verdict: Verdict
    why: str = ""
    taken: tuple[tuple[str, int], ...] = ()
    requests: int = 0
    seconds: float = 0.0


def impossible(results: tuple[RouteResult, ...]) -> dict[str, str]:
    """Return the edges that could be taken in no isolation, each with the reason; all isolations must have said so."""
    said: dict[str, dict[str, str]] = {}
    could: set[str] = set()
    for one in results:
        for edge in one.edges:
            if one.verdict is Verdict.NULL:
                said.setdefault(edge, {})[one.isolation] = one.why
            else:
                could.add(edge)
    return {
        edge: f"cannot be driven here: {next(iter(whys.values()))}"
        for edge, whys in said.items()
        if edge not in could and set(whys) == set(ISOLATIONS)
    }
