"""What Prometheus reads of a session is what the session did."""

from __future__ import annotations

import numpy as np
from prometheus_client import CollectorRegistry, generate_latest

from crashpath.runtime.errors import HostMemory
from crashpath.runtime.fakelane import FakeLane
from crashpath.runtime.folder import TensorSpec
from crashpath.runtime.metrics import register
from crashpath.runtime.routes import ROUTES
from crashpath.runtime.session import FallbackSession
from crashpath.runtime.values import Arrays, Path

FEED = {"x": np.ones(2, np.float32)}


def _session() -> tuple[FallbackSession, FakeLane]:
    def answer(feed: Arrays) -> Arrays:
        return {"y": feed["x"]}

    main, fallback = FakeLane(Path.MAIN, answer), FakeLane(Path.FALLBACK, answer)
    return FallbackSession(main, fallback, inputs=(TensorSpec("x", "float32", ("n",)),), sample=0.0), main


def test_figures() -> None:
    """Counters, routes, latencies and states follow the session; the text that is scraped can be made."""
    registry = CollectorRegistry()
    session, main = _session()
    with session:
        register(session, "m", registry)
        main.script.append(HostMemory("x"))
        for _ in range(3):
            session.run(FEED)

        def value(name: str, **labels: str) -> float | None:
            return registry.get_sample_value(name, {"model": "m"} | labels)

        assert value("crashpath_request_attempts_total") == 3
        assert value("crashpath_request_failures_total") == 1
        assert value("crashpath_request_unanswered_total") == 0
        assert value("crashpath_load_attempts_total") == 2
        assert value("crashpath_routes_total", route="main:answered") == 2
        assert value("crashpath_routes_total", route="infer:oom_host -> fallback:answered") == 1
        assert value("crashpath_answer_seconds_count", path="ort") == 2
        assert value("crashpath_answer_seconds_bucket", path="torchscript", le="+Inf") == 1
        assert value("crashpath_breaker_state", state="closed") == 1
        assert value("crashpath_breaker_state", state="open") == 0
        assert value("crashpath_path_ready", path="ort") == 1
        assert b"crashpath_answer_seconds_bucket" in generate_latest(registry)


def test_every_route_has_a_series() -> None:
    """A route that was never taken is there, so that an alert on it can be written beforehand."""
    registry = CollectorRegistry()
    session, _ = _session()
    with session:
        register(session, "m", registry)
        for route in ROUTES:
            assert registry.get_sample_value("crashpath_routes_total", {"model": "m", "route": route.id}) is not None


def test_two_models_and_taking_one_out() -> None:
    """Two sessions share a registry under their models' names; one that is taken out leaves the other."""
    registry = CollectorRegistry()
    first, _ = _session()
    second, _ = _session()
    with first, second:
        take_out = register(first, "a", registry)
        register(second, "b", registry)
        first.run(FEED)
        assert registry.get_sample_value("crashpath_request_attempts_total", {"model": "a"}) == 1
        assert registry.get_sample_value("crashpath_request_attempts_total", {"model": "b"}) == 0
        take_out()
        assert registry.get_sample_value("crashpath_request_attempts_total", {"model": "a"}) is None
        assert registry.get_sample_value("crashpath_request_attempts_total", {"model": "b"}) == 0
