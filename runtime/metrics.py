"""Figures of a session for Prometheus, read when they are scraped: a request pays nothing for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import REGISTRY, Collector, CollectorRegistry

from crashpath.runtime.lane import LaneFacts, LaneState
from crashpath.runtime.session import FallbackSession
from crashpath.runtime.session_facts import SessionFacts
from crashpath.runtime.tally import BUCKETS, Latency
from crashpath.runtime.values import BreakerState, Path


class SessionCollector(Collector):
    """One session's metrics, all with the label ``model``.

    ``crashpath_routes_total`` has a series for every declared route, also those never taken: an alert on a route needs
    no first event.
    """

    def __init__(self, facts: Callable[[], SessionFacts], model: str) -> None:
        self._facts = facts
        self._model = model

    def describe(self) -> Iterator[Metric]:
        """Nothing: names are not checked at registration, so that two models may be served by one process."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of this moment."""
        facts = self._facts()
        figures = facts.figures
        for unit, count in (("request", figures.requests), ("load", figures.loads)):
            for name in ("attempts", "failures", "unanswered", "rerouted"):
                family = CounterMetricFamily(f"crashpath_{unit}_{name}", _HELP[name], labels=["model"])
                family.add_metric([self._model], getattr(count, name))
                yield family
        routes = CounterMetricFamily("crashpath_routes", "Times a declared route was taken", labels=["model", "route"])
        for route, times in figures.routes:
            routes.add_metric([self._model, route], times)
        yield routes
        yield self._latency(figures.latencies)
        yield self._breaker(facts)
        yield from self._lanes(((Path.MAIN, facts.main), (Path.FALLBACK, facts.fallback)))
        for name, text, value in (
            ("dropped_events", "Events that a listener raised on", facts.dropped_events),
            ("skipped_comparisons", "Sampled answers that were not compared: the queue was full", facts.skipped),
        ):
            counter = CounterMetricFamily(f"crashpath_{name}", text, labels=["model"])
            counter.add_metric([self._model], value)
            yield counter

    def _latency(self, latencies: tuple[Latency, ...]) -> Metric:
        family = HistogramMetricFamily("crashpath_answer_seconds", "Seconds to an answer", labels=["model", "path"])
        for one in latencies:
            total = 0
            buckets = []
            for end, count in zip((*map(str, BUCKETS), "+Inf"), one.counts, strict=True):
                total += count
                buckets.append((end, total))
            family.add_metric([self._model, one.path], buckets, one.seconds)
        return family

    def _breaker(self, facts: SessionFacts) -> Metric:
        family = GaugeMetricFamily("crashpath_breaker_state", "1 at the state it is in", labels=["model", "state"])
        for state in BreakerState:
            family.add_metric([self._model, state], float(facts.breaker is state))
        return family

    def _lanes(self, lanes: tuple[tuple[Path, LaneFacts], ...]) -> Iterator[Metric]:
        ready = GaugeMetricFamily("crashpath_path_ready", "1 while the path is ready", labels=["model", "path"])
        rss = GaugeMetricFamily("crashpath_path_rss_bytes", "Resident bytes of a worker", labels=["model", "path"])
        left = GaugeMetricFamily("crashpath_path_abandoned", "Runs nobody waits for", labels=["model", "path"])
        restarts = CounterMetricFamily("crashpath_path_restarts", "Restarts of a path", labels=["model", "path"])
        for path, facts in lanes:
            ready.add_metric([self._model, path], float(facts.state is LaneState.READY))
            rss.add_metric([self._model, path], facts.rss)
            left.add_metric([self._model, path], facts.abandoned)
            restarts.add_metric([self._model, path], facts.restarts)
        yield from (ready, rss, left, restarts)


_HELP = {
    "attempts": "How often it was tried",
    "failures": "Attempts in which a path failed",
    "unanswered": "Failed attempts that nobody answered",
    "rerouted": "Attempts that went to the fallback without a try of the main path",
}


def register(session: FallbackSession, model: str, registry: CollectorRegistry = REGISTRY) -> Callable[[], None]:
    """Show a session's figures in ``registry``; the function that is returned takes them out again."""
    collector = SessionCollector(session.facts, model)
    registry.register(collector)
    return lambda: registry.unregister(collector)
