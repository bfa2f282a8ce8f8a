"""The runtime's declared edges as units: all are in the denominator but those that the policy in use never takes."""

from __future__ import annotations

from collections.abc import Mapping

from crashpath.coverage.units import Kind, Unit
from crashpath.runtime.routes import NOT_COVERED, OFF_FAILED, ROUTES, SECOND, SWITCHED, answered

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


def declared_routes(policies: frozenset[str] = DEFAULT_POLICIES) -> tuple[Unit, ...]:
    """Return a unit for each declared edge. ``policies`` are those in use; the edges of others say so."""
    return tuple(_unit(route.id, route.text, policies) for route in ROUTES)


def _unit(id: str, text: str, policies: frozenset[str]) -> Unit:
    only = _ONLY_UNDER.get(id)
    reason = None
    if only is not None and only not in policies:
        reason = f"taken only under the policy {only}" if " " not in only else f"taken only under {only}"
    elif _BREAKERS not in policies and id.startswith(("breaker:", "probe:")):
        reason = f"taken only under the policy {_BREAKERS}"
    return Unit(Kind.ROUTE, id, text, reason=reason)
