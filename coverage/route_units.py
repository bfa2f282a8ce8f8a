"""The runtime's declared edges as units: all are in the denominator but those that the policy in use never takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from crashpath.coverage.drillroutes import SCENARIOS
from crashpath.coverage.report import Cell
from crashpath.coverage.units import Kind, Unit
from crashpath.runtime.routes import NOT_COVERED, OFF_FAILED, ROUTES, SECOND, SWITCHED, Route, answered
from crashpath.runtime.values import Phase

_ONLY_UNDER: Mapping[str, str] = {
    answered(SWITCHED): "sticky",
    "sticky:* -> fallback:failed": "sticky",
    SECOND: "account",
    OFF_FAILED: "off",
    NOT_COVERED: "a policy of its own that leaves reasons out",
}
_BREAKERS = "breaker"
DEFAULT_POLICIES = frozenset({_BREAKERS})
"""What a session has that is told nothing else."""


def declared_routes(
    policies: frozenset[str] = DEFAULT_POLICIES, cells: Sequence[Cell] = (), reasons: Mapping[str, str] | None = None
) -> tuple[Unit, ...]:
    """Return a unit for each declared edge.

    ``policies`` are those in use; the edges of others say so. ``cells`` say which failures cannot be raised here: an
    edge that only such a failure takes says why, and where nothing of the prepare phase can be, all its edges do.
    ``reasons`` say so of edges that no route drill could take.
    """
    refused = {f"{cell.phase}:{cell.failure_class}": cell.reason for cell in cells if cell.reason is not None}
    prepare = [cell.reason for cell in cells if cell.phase == Phase.PREPARE]
    no_step = prepare[0] if prepare and None not in prepare else None
    units = (_unit(route, policies, refused, no_step) for route in ROUTES)
    return tuple(replace(one, reason=one.reason or (reasons or {}).get(one.id)) for one in units)


def route_drills(policies: frozenset[str] = DEFAULT_POLICIES) -> dict[str, str]:
    """Return the edges that a route drill takes, each with the policy of that drill."""
    return {edge: one.policy for one in SCENARIOS for edge in one.edges if one.policy in policies | DEFAULT_POLICIES}


def _unit(route: Route, policies: frozenset[str], refused: Mapping[str, str], no_step: str | None) -> Unit:
    only = _ONLY_UNDER.get(route.id)
    reason = refused.get(route.id.partition(" -> ")[0])
    if only is not None and only not in policies:
        reason = f"taken only under the policy {only}" if " " not in only else f"taken only under {only}"
    elif _BREAKERS not in policies and route.id.startswith(("breaker:", "probe:")):
        reason = f"taken only under the policy {_BREAKERS}"
    elif route.phase is Phase.PREPARE:
        reason = no_step or reason
    return Unit(Kind.ROUTE, route.id, route.text, reason=reason)
