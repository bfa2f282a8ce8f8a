"""`FallbackSession`: answers on the main path, and on the fallback where the policy lets that failure fall back."""

from __future__ import annotations

import itertools
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Any, ClassVar, Protocol, Self

from crashpath.runtime import routes
from crashpath.runtime.driving import Driver
from crashpath.runtime.errors import Failure, InputError, SessionClosed
from crashpath.runtime.events import Cohort, Listener
from crashpath.runtime.feeds import FeedCheck
from crashpath.runtime.folder import TensorSpec, Tolerance
from crashpath.runtime.inside import Inside
from crashpath.runtime.lane import Clock, Lane, LaneState
from crashpath.runtime.ledger import Ledger, Request
from crashpath.runtime.minder import Minder, Watch
from crashpath.runtime.options import check_options, seconds_of
from crashpath.runtime.policy import Policy, named
from crashpath.runtime.prepare import PrepareStep
from crashpath.runtime.preparing import prepare_feed
from crashpath.runtime.reserve import Reserve
from crashpath.runtime.session_facts import Readiness, SessionFacts
from crashpath.runtime.shadow import ShadowThread
from crashpath.runtime.standing import Standing
from crashpath.runtime.startup import Expected, agreed, check_alike, check_lane, load_all, wrong_load
from crashpath.runtime.tally import Tally
from crashpath.runtime.teller import Teller
from crashpath.runtime.values import Answer, Arrays, BreakerState, Path, Phase, Strike

_WAIT_AT_CLOSE = 1.0
"""Seconds that `FallbackSession.close` waits for a run that cannot be cut."""


class Tracing(Protocol):
    """Sees what the sessions of a process are asked (`coverage.tracing`)."""

    def asked(self, session: FallbackSession, feed: Arrays) -> None:
        """A feed was checked and will be answered; the time that this takes is not the request's."""

    def closed(self, session: FallbackSession) -> None:
        """A session ended."""


class FallbackSession:
    """Serves one model on two paths.

    ``inputs`` are what the model declares; ``tolerance`` says when two answers are the same; ``golden`` is the answer
    to the feed that the lanes warm up on. ``deadline_ms`` holds for both paths together. At most ``fallback_slots``
    requests are on the fallback at once. A share ``sample`` of the main path's answers is compared with the
    fallback's in the background, drawn from ``seed``. ``clock`` is monotonic seconds, the one that the lanes use;
    ``now`` seconds since the epoch, for events. Counts are told every ``flush_s`` seconds and at `close`,
    which then calls each of ``on_close``.

    Construction loads both lanes side by side and returns when both are ready. A main lane that fails to load with a
    `Failure` is tried again in the background while the fallback answers; a fallback that fails to load is no
    fallback: its error is raised. Raises `ModelFolderError` where the two do not serve the same model. With the policy
    ``off`` the fallback is not loaded.
    """

    tracing: ClassVar[Tracing | None] = None
    """Who traces the sessions of this process: for tests, never in production."""

    def __init__(
        self,
        main: Lane,
        fallback: Lane,
        policy: str | Policy = "breaker",
        *,
        inputs: tuple[TensorSpec, ...],
        tolerance: Tolerance | None = None,
        golden: Arrays | None = None,
        deadline_ms: float = 2000.0,
        load_s: float = 60.0,
        prepare: PrepareStep | None = None,
        fallback_slots: int = 8,
        sample: float = 0.01,
        seed: int = 0,
        listeners: Sequence[Listener] = (),
        cohort: Cohort | None = None,
        clock: Clock = time.monotonic,
        now: Callable[[], float] = time.time,
        flush_s: float = 10.0,
        on_close: Sequence[Callable[[], None]] = (),
    ) -> None:
        self.id = uuid.uuid4().hex[:16]
        self._pid = os.getpid()
        self._main, self._fallback = main, fallback
        self._prepare = prepare
        check_options(deadline_ms=deadline_ms, load_s=load_s, flush_s=flush_s, slots=fallback_slots, sample=sample)
        self._clock = clock
        self._deadline = deadline_ms / 1000
        self._on_close = tuple(on_close)
        self._check = FeedCheck(inputs)
        self._numbers = itertools.count(1)
        self.cohort = cohort or Cohort()
        self._teller = Teller(listeners, self.cohort, self.id, now)
        tally = Tally()
        self._standing = Standing(main, named(policy), tally, self._teller, clock)
        self._ledger = Ledger(tally, self._teller, lambda: self._standing.state, tuple(one.name for one in inputs))
        self._expected = Expected(inputs, tolerance or Tolerance(), golden)
        falls_back = self._standing.policy.falls_back
        self._inside = Inside(self._end)
        try:
            self._start(load_s, falls_back)
            reserve = Reserve()
            self._shadow = ShadowThread(
                main.run, fallback.run, self._standing, self._ledger, reserve, self._teller,
                self._expected.tolerance, clock,
                share=sample if falls_back else 0.0, seed=seed, seconds=self._deadline,
            )  # fmt: skip
            lanes = (main, fallback) if falls_back else (main,)
            watches = [Watch(lane, load_s, self._ledger, self._others_ready(lane), clock) for lane in lanes]
            self._minder = Minder(watches, self._ledger, clock, flush_s)
            self._driver = Driver(
                main,
                fallback,
                self._standing,
                self._ledger,
                reserve,
                self._shadow,
                slots=fallback_slots,
                poke=self._minder.poke,
                clock=clock,
            )
            self._minder.start()
        except BaseException:
            main.close()
            fallback.close()
            self._inside.shut()
            self._inside.wait(0.0)
            raise

    def run(self, feed: Mapping[str, Any], *, deadline_ms: float | None = None) -> Answer:
        """Answer a feed: arrays by name, of the declared dtypes and shapes.

        Raises `InputError` (the feed is wrong), `DeadlineExceeded`, `Saturated`, `NoAnswer` (both paths failed),
        `SessionClosed`, a `Failure` that the policy does not let fall back, and an unknown error as it is.
        """
        request = self._request(deadline_ms)
        self._enter(request)
        try:
            return self._serve(feed, request)
        finally:
            self._inside.leave()

    def run_raw(self, raw: Any, *, deadline_ms: float | None = None) -> Answer:
        """Answer a raw input: the prepare step first, in the same deadline. Raises as `run` and, besides, as that step.

        An answer whose feed came from the prepare step's fallback has that failure as its ``cause`` where the main
        path answered.
        """
        if self._prepare is None:
            raise TypeError("this session has no prepare step; give it one, or call run with a feed")
        request = self._request(deadline_ms)
        self._enter(request)
        try:
            feed = prepare_feed(self._prepare, raw, request, self._ledger, self._standing, self._clock)
            request.prepared = True
            return self._serve(feed, request)
        finally:
            self._inside.leave()

    def ready(self) -> Readiness:
        """Say whether requests are answered now, as the backends are now."""
        if self._inside.closed:
            return Readiness(False, True, "the session is closed")
        main = self._main.facts().state is LaneState.READY
        fallback = self._standing.policy.falls_back and self._fallback.facts().state is LaneState.READY
        troubles = []
        if not main:
            troubles.append(f"the main path is {self._main.facts().state}")
        if self._standing.state is not BreakerState.CLOSED:
            troubles.append(f"the breaker is {self._standing.state}")
        if self._standing.flagged:
            troubles.append(f"policy {self._standing.policy.name}: a failure has happened")
        if not fallback:
            off = "switched off" if not self._standing.policy.falls_back else str(self._fallback.facts().state)
            troubles.append(f"the fallback is {off}")
        return Readiness(main or fallback, bool(troubles), "; ".join(troubles))

    @contextmanager
    def armed(self, path: Path, strike: Strike) -> Iterator[None]:
        """Arm a strike on a path for as long as the block runs."""
        lane = self._main if path is Path.MAIN else self._fallback
        lane.arm(strike)
        try:
            yield
        finally:
            lane.arm(None)

    def facts(self) -> SessionFacts:
        """Return state and figures of this moment."""
        return SessionFacts(
            self._main.facts(),
            self._fallback.facts(),
            self._standing.state,
            self._standing.flagged,
            self._ledger.tally.figures(),
            self._teller.dropped,
            self._shadow.skipped,
            self._minder.missed,
        )

    def close(self) -> None:
        """End both paths; requests under way get `SessionClosed`. Tells the last counts. May be called twice.

        A run in this process that cannot be cut is waited for a second; the last request out tells the last counts.
        """
        if not self._inside.shut():
            return
        self._driver.closed = True
        self._main.close()
        self._fallback.close()
        self._shadow.close()
        self._minder.close()
        self._inside.wait(_WAIT_AT_CLOSE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _request(self, deadline_ms: float | None) -> Request:
        started = self._clock()
        budget = self._deadline if deadline_ms is None else seconds_of(deadline_ms)
        number = next(self._numbers)
        return Request(f"{self.id}-{number}", started, started + budget, short=budget < self._deadline)

    def _enter(self, request: Request) -> None:
        if os.getpid() != self._pid:
            raise SessionClosed("a session belongs to the process that opened it; open one after the fork")
        if not self._inside.enter():
            self._ledger.refused(routes.CLOSED, self._clock() - request.started)
            raise SessionClosed("the session is closed; open a new one")

    def _serve(self, feed: Mapping[str, Any], request: Request) -> Answer:
        try:
            arrays = self._check(feed)
        except InputError:
            self._ledger.request(request, routes.INPUT_WRONG, None, self._clock() - request.started)
            raise
        request.shapes = tuple(array.shape for array in arrays.values())
        if (tracing := FallbackSession.tracing) is not None:
            before = self._clock()
            tracing.asked(self, arrays)
            spent = self._clock() - before  # it is no part of the request: neither of its deadline nor of its time
            request.started, request.deadline = request.started + spent, request.deadline + spent
        return self._driver.serve(arrays, request)

    def _others_ready(self, lane: Lane) -> Callable[[], bool]:
        """Return whether requests are answered while this lane is away."""
        other = self._fallback if lane is self._main else self._main
        falls_back = self._standing.policy.falls_back
        return lambda: falls_back and other.facts().state is LaneState.READY

    def _end(self) -> None:
        if (tracing := FallbackSession.tracing) is not None:
            tracing.closed(self)
        self._ledger.flush()
        for close in self._on_close:
            close()

    def _start(self, load_s: float, falls_back: bool) -> None:
        lanes = (self._main, self._fallback) if falls_back else (self._main,)
        loaded = {one.lane.path: one for one in load_all(lanes, load_s, self._ledger, self._clock)}
        main = loaded[Path.MAIN]
        fallback = loaded.get(Path.FALLBACK)
        if fallback is not None and fallback.error is not None:
            raise fallback.error
        if main.error is not None and (fallback is None or not isinstance(main.error, Failure)):
            raise main.error
        if fallback is not None:
            check_lane(self._fallback, self._expected)
        if main.error is None:
            check_lane(self._main, self._expected)
            if fallback is not None:
                check_alike(self._main, self._fallback, self._expected)
                self._expected = agreed(self._expected, self._main.warm())
        else:
            main.error.phase = main.error.phase or Phase.LOAD
            self._standing.remember(main.error)
            self._ledger.lane(Path.MAIN, "degraded", routes.START_DEGRADED, self._main.facts())
        for lane in lanes:
            lane.check_with(partial(wrong_load, lane.path, expected=self._expected))
