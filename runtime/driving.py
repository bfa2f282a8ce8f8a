"""Drives one request along the steps that `decide` gives: the only place where a path is run for a caller."""

from __future__ import annotations

import time
from collections.abc import Callable

from crashpath.runtime import routes
from crashpath.runtime.decide import Do, Ending, Step, after_fallback, after_main, ending_of, first_step
from crashpath.runtime.errors import (
    DeadlineExceeded,
    Failure,
    Hang,
    InputError,
    NoAnswer,
    Saturated,
    SessionClosed,
    ShapeInference,
    UnsupportedOp,
)
from crashpath.runtime.lane import Lane, LaneState
from crashpath.runtime.ledger import Ledger, Request, Trouble
from crashpath.runtime.reserve import Reserve
from crashpath.runtime.shadow import Shadow
from crashpath.runtime.slots import FairSlots
from crashpath.runtime.standing import Standing, bare
from crashpath.runtime.values import Answer, Arrays, BreakerState, Path, Phase

_OF_THE_FEED = (ShapeInference, UnsupportedOp)
"""What a value in the feed can bring about as well as a broken path: an index out of range, lengths that do not fit.

It is the feed's where the fallback fails for the same reason; then the main path is not at fault."""

_FORGET = 1.01
"""Growth of the quickest answer that is known with each answer, so that an old one is forgotten after some hundreds."""

_SLICE = 0.001
"""Seconds that a request at least waits for a slot of the fallback, however late it is."""

_LOOK = 0.02
"""Seconds between two looks at paths that are both away."""


class Driver:
    """Runs checked feeds. Any number of threads may be in it; no lock is held while a path runs."""

    def __init__(
        self,
        main: Lane,
        fallback: Lane,
        standing: Standing,
        ledger: Ledger,
        reserve: Reserve,
        shadow: Shadow,
        *,
        slots: int,
        poke: Callable[[], None],
        clock: Callable[[], float],
    ) -> None:
        self._main = main
        self._fallback = fallback
        self._standing = standing
        self._policy = standing.policy
        self._ledger = ledger
        self._reserve = reserve
        self._shadow = shadow
        self._slots = FairSlots(slots)
        self._poke = poke
        self._clock = clock
        self._quickest = 0.0  # seconds: the quickest answer of the main path of late; no lock, a guess is enough
        self.closed = False

    def serve(self, feed: Arrays, request: Request) -> Answer:
        """Answer a feed that was checked, or raise what the decision graph says."""
        now = self._clock()
        if now >= request.deadline:
            why = "; the prepare step took it up" if request.prepared else "; give it more time"
            spent = DeadlineExceeded(f"the deadline had passed before a path was tried{why}")
            if request.prepared:  # else it is the caller's, and nothing failed
                request.troubles.append(Trouble(Phase.PREPARE, Path.MAIN, spent))
            raise self._end(request, routes.SPENT, spent)
        step = first_step(self._policy, self._standing.seen())
        if step.do is not Do.TRY_MAIN:
            return self._instead_of_main(feed, request, step)
        deadline = self._main_deadline(request, now)
        if request.short and deadline - now < self._quickest:  # it would cost the others the worker, killed when late
            self._quickest /= _FORGET  # which is a guess, and may be too long
            hopeless = DeadlineExceeded(f"the main path has never answered within {(deadline - now) * 1000:.1f} ms")
            return self._after_failure(feed, request, hopeless)
        try:
            outputs = self._main.run(feed, deadline)
        except Exception as error:  # noqa: BLE001  # the boundary of the main path; what is unknown is raised again
            return self._after_failure(feed, request, error)
        return self._answered(feed, request, outputs, now)

    def _main_deadline(self, request: Request, now: float) -> float:
        if not self._policy.falls_back:
            return request.deadline
        return request.deadline - self._reserve.of(request.deadline - now)

    def _answered(self, feed: Arrays, request: Request, outputs: Arrays, began: float) -> Answer:
        self._standing.succeeded()
        ended = self._clock()
        seconds = ended - request.started
        self._quickest = min(ended - began, self._quickest * _FORGET) if self._quickest else ended - began
        cause = None
        if request.troubles:  # of the prepare step
            cause = _as_failure(request.troubles[0].error)
            self._ledger.request(request, routes.MAIN_ANSWERED, Path.MAIN, seconds)
        else:
            self._ledger.tally.main_answered(seconds, request.shapes)
        self._shadow.sample(feed, outputs, request.id)
        return Answer(outputs, Path.MAIN, cause, routes.MAIN_ANSWERED, self._standing.state, seconds * 1000, request.id)

    def _instead_of_main(self, feed: Arrays, request: Request, step: Step) -> Answer:
        cause = bare(self._standing.cause or Failure("the main path is not ready", "the state of its lane"))
        cause.tried = False  # not by this request
        before = self._standing.flag()  # a path that is not ready has failed, too
        if step.do is Do.TRY_FALLBACK and before and self._policy.once:  # another request was quicker
            step = Step(Do.RAISE_SAME, routes.SECOND)
        if step.do is Do.RAISE_SAME:
            request.troubles.append(Trouble(Phase.INFER, Path.MAIN, cause))
            raise self._end(request, step.route, cause)
        request.rerouted = True
        return self._fall_back(feed, request, step.route, cause)

    def _after_failure(self, feed: Arrays, request: Request, error: Exception) -> Answer:
        if self.closed:
            raise self._cut(request, Path.MAIN) from error
        ending = ending_of(error)
        shared = isinstance(error, _OF_THE_FEED)  # perhaps; the fallback knows
        failed = ending in (Ending.FAILED, Ending.LATE)
        flagged = failed and (self._standing.flagged if shared else self._standing.flag())
        step = after_main(self._policy, flagged, ending, error)
        if isinstance(error, Failure):
            self._poke()
        if isinstance(error, Failure) and not error.tried and step.do is Do.TRY_FALLBACK:
            request.rerouted = True  # one death fails one request, not all that were waiting for their turn
            return self._fall_back(feed, request, step.route, error)
        if ending is Ending.BUSY and step.do is Do.TRY_FALLBACK:
            request.rerouted = True  # it reached nobody, so nothing failed
            return self._fall_back(feed, request, step.route, _as_failure(error))
        if ending is not Ending.REFUSED:
            request.troubles.append(Trouble(Phase.INFER, Path.MAIN, error))
        if isinstance(error, Failure) and not (shared and step.do is Do.TRY_FALLBACK):
            self._standing.failed(error)
        if step.do is Do.RAISE_SAME:
            raise self._end(request, step.route, error)
        return self._fall_back(feed, request, step.route, _as_failure(error), unsure=shared)

    def _fall_back(self, feed: Arrays, request: Request, stem: str, cause: Failure, *, unsure: bool = False) -> Answer:
        """Answer on the fallback. ``unsure``: whether the main path or the feed is at fault shows only now."""
        began = self._clock()
        try:
            outputs = self._run_fallback(feed, request.deadline, began, short=request.short)
        except Exception as error:  # noqa: BLE001  # the boundary of the fallback; it is the last path there is
            if unsure and type(error) is not type(cause):
                self._blame(cause)
                unsure = False
            if isinstance(error, Failure):
                back = self._first_back(request, cause, error)
                if back is Path.FALLBACK:
                    return self._fall_back(feed, request, stem, cause, unsure=unsure)
                if back is Path.MAIN:
                    if error.tried:
                        request.troubles.append(Trouble(Phase.INFER, Path.FALLBACK, error))
                    return self._main_again(feed, request, cause)
            raise self._nobody(request, stem, cause, error) from _chained(cause, error)
        now = self._clock()
        self._reserve.note(now - began)
        if unsure:
            self._blame(cause)
        route = routes.answered(stem)
        state = self._standing.state
        self._ledger.request(request, route, Path.FALLBACK, now - request.started)
        if state is BreakerState.HALF_OPEN:
            self._shadow.probe(feed, outputs, request.id)
        spent = (now - request.started) * 1000
        return Answer(outputs, Path.FALLBACK, cause, route, state, spent, request.id)

    def _blame(self, failure: Failure) -> None:
        """Note a failure of the main path that the fallback did not share."""
        self._standing.flag()
        self._standing.failed(failure)

    def _first_back(self, request: Request, cause: Failure, error: Failure) -> Path | None:
        """Wait until a path that restarts is ready; ``None`` where none does, or the deadline has no room for it.

        A request is not given again to a path that failed at it.
        """
        lanes = [] if error.tried else [self._fallback]
        if not cause.tried and self._standing.may_return:
            lanes.append(self._main)
        while lanes and not self.closed and self._clock() < request.deadline:
            states = [lane.facts().state for lane in lanes]
            if LaneState.READY in states:
                return lanes[states.index(LaneState.READY)].path
            if LaneState.LOADING not in states:
                return None
            time.sleep(_LOOK)
        return None

    def _main_again(self, feed: Arrays, request: Request, cause: Failure) -> Answer:
        """No path was there for the request, and the main path is back first."""
        try:
            outputs = self._main.run(feed, self._main_deadline(request, self._clock()))
        except Exception as error:  # noqa: BLE001  # the boundary of the main path, as in `serve`
            return self._after_failure(feed, request, error)
        self._standing.succeeded()
        seconds = self._clock() - request.started
        state = self._standing.state
        self._ledger.request(request, routes.MAIN_AGAIN, Path.MAIN, seconds)
        return Answer(outputs, Path.MAIN, cause, routes.MAIN_AGAIN, state, seconds * 1000, request.id)

    def _run_fallback(self, feed: Arrays, deadline: float, now: float, *, short: bool) -> Arrays:
        if short and deadline - now < self._reserve.quickest:
            raise DeadlineExceeded(f"the fallback has never answered within {(deadline - now) * 1000:.1f} ms")
        patience = max(deadline - now - self._reserve.median, _SLICE)
        if not self._slots.acquire(patience):
            raise Saturated("the fallback is at its concurrency limit; raise fallback_slots or send fewer requests")
        try:
            return self._fallback.run(feed, deadline)
        finally:
            self._slots.release()

    def _nobody(self, request: Request, stem: str, cause: Failure, error: Exception) -> Exception:
        if self.closed:
            return self._cut(request, Path.FALLBACK)
        ending = ending_of(error)
        step = after_fallback(stem, ending)
        self._poke()
        if ending is not Ending.REFUSED:
            request.troubles.append(Trouble(Phase.INFER, Path.FALLBACK, error))
        if step.do is Do.RAISE_SAME:
            return self._end(request, step.route, error)
        if step.do is Do.RAISE_LATE:
            told = f"nobody answered in {(request.deadline - request.started) * 1000:.0f} ms"
            return self._end(request, step.route, DeadlineExceeded(told))
        return self._end(request, step.route, NoAnswer(cause, error))

    def _end(self, request: Request, route: str, error: Exception) -> Exception:
        """Count a request that gets an error, and give the error back to be raised."""
        self._ledger.request(request, route, None, self._clock() - request.started)
        return error

    def _cut(self, request: Request, path: Path) -> Exception:
        """End a request that was under way when the session was closed: an attempt that nobody answered."""
        error = SessionClosed("the session was closed while it ran")
        request.troubles.append(Trouble(Phase.SHUTDOWN, path, error))
        return self._end(request, routes.CLOSED, error)


def _as_failure(error: Exception) -> Failure:
    if isinstance(error, Failure):
        return error
    failure = Hang("the main path had no turn in its share of the deadline", type(error).__name__)
    failure.__cause__ = error
    return failure


def _chained(cause: Failure, error: Exception) -> Exception:
    """Return what the caller's error is chained to: why the main path failed, or both where it holds both."""
    return cause if isinstance(error, (Saturated, DeadlineExceeded, Hang, InputError)) else error
