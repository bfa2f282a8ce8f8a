"""What a session remembers between requests: the breaker, the flag of `sticky` and `account`, the last failure."""

from __future__ import annotations

import threading
from collections.abc import Callable

from crashpath.runtime import routes
from crashpath.runtime.breaker import Breaker, Change
from crashpath.runtime.decide import Seen, stem_of
from crashpath.runtime.errors import Failure
from crashpath.runtime.events import BreakerEvent
from crashpath.runtime.lane import Lane, LaneFacts, LaneState
from crashpath.runtime.policy import Policy
from crashpath.runtime.tally import Tally
from crashpath.runtime.teller import Teller
from crashpath.runtime.values import BreakerState, Phase

_ROUTE_OF = {
    ("rate", BreakerState.OPEN): routes.TRIPPED,
    ("abandoned", BreakerState.OPEN): routes.ABANDONED,
    ("time", BreakerState.HALF_OPEN): routes.PROBING,
    ("probe", BreakerState.CLOSED): routes.CLOSED_AGAIN,
}


class Standing:
    """The main path's standing; any thread may ask and tell."""

    def __init__(self, main: Lane, policy: Policy, tally: Tally, tell: Teller, clock: Callable[[], float]) -> None:
        self._main = main
        self._tally = tally
        self._tell = tell
        self._lock = threading.Lock()
        self._flagged = False
        self.policy = policy
        self.breaker = None if policy.breaker is None else Breaker(policy.breaker, clock)
        self.cause: Failure | None = None
        self._prepare_failed = False
        self._last: Failure | None = None

    @property
    def state(self) -> BreakerState:
        """The breaker's, closed where the policy has none."""
        return BreakerState.CLOSED if self.breaker is None else self.breaker.state

    @property
    def flagged(self) -> bool:
        """Whether a failure has set the flag of `sticky` or `account`."""
        return self._flagged

    @property
    def may_return(self) -> bool:
        """Whether a request may go to the main path as soon as that is ready."""
        return self.state is BreakerState.CLOSED and not self._flagged

    def seen(self) -> Seen:
        """Look at everything that chooses the first path."""
        if self.breaker is not None:
            self._moved(self.breaker.admit())
        facts = self._main.facts()
        if facts.state is LaneState.READY:
            return Seen(self.state, self._flagged)
        down = self._why_down(facts)
        return Seen(self.state, self._flagged, down, self.cause is None or self.policy.covers(self.cause))

    def flag(self) -> bool:
        """Set the flag, where the policy has one; whether it was set before."""
        if not (self.policy.sticky or self.policy.once):
            return False
        with self._lock:
            before, self._flagged = self._flagged, True
        return before

    def succeeded(self) -> None:
        """Note that the main path answered."""
        if self.breaker is not None:
            self._moved(self.breaker.note(failed=False))

    def failed(self, failure: Failure) -> None:
        """Note that the main path failed; abandoned runs at the lane's cap open the breaker at once."""
        self.remember(failure)
        if self.breaker is None:
            return
        self._moved(self.breaker.note(failed=True))
        facts = self._main.facts()
        if facts.abandoned and facts.state is LaneState.DOWN:
            self._moved(self.breaker.trip("abandoned"))

    def prepare_failed(self) -> bool:
        """Note that the prepare step failed; whether it had failed before, where the policy counts that."""
        if not self.policy.once:
            return False
        with self._lock:
            before, self._prepare_failed = self._prepare_failed, True
        return before

    def remember(self, failure: Failure) -> None:
        """Keep a failure as the reason for later requests, without the frames (and feeds) that it holds on to."""
        self.cause = bare(failure)

    def probed(self, *, passed: bool) -> None:
        """Note how a probe ended."""
        if self.breaker is not None:
            self._moved(self.breaker.probed(passed=passed))

    def _why_down(self, facts: LaneFacts) -> str:
        if facts.failure is not None and facts.failure is not self._last:
            self._last = facts.failure
            self.remember(facts.failure)
        cause = self.cause
        if facts.state is LaneState.DOWN and cause is not None and cause.phase in (Phase.LOAD, Phase.WARMUP):
            return stem_of(cause)
        return routes.RESTARTING

    def _moved(self, change: Change | None) -> None:
        if change is None:
            return
        route = _ROUTE_OF.get((change.why, change.after), routes.PROBE_FAILED)
        if (change.why, change.after) in _ROUTE_OF:  # a probe's own route is counted where the probe is
            self._tally.route(route)
        self._tell(BreakerEvent(self._tell.now(), change.before, change.after, change.why, route))


def bare(failure: Failure) -> Failure:
    """Return an equal failure that was never raised: one that is raised again and again grows with each time."""
    again = type(failure)(failure.detail, failure.evidence)
    again.phase = failure.phase
    return again
