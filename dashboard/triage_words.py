"""What the page Triage says, as plain text: of the last night, of a cluster's row, and of what its marks mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta

from crashpath.dashboard.decide_text import muted, resolved
from crashpath.dashboard.figures import percent
from crashpath.dashboard.marks import BROKEN, Marks
from crashpath.dashboard.plurals import many
from crashpath.dashboard.triage_view import Listing, Row
from crashpath.ingest.cluster_facts import Outcomes, Seen
from crashpath.ingest.nights import NightSeen
from crashpath.ingest.trends import Count

MARKS = {
    "new": "nobody had seen it before the last night",
    "regressed": "people resolved it, and it is seen again",
    "spiking": "far more crashes on the last full day than the days before let expect",
    "back": "seen again after a long silence",
    "fixed": "resolved and not seen since, or silent for longer than chance explains",
}
"""Marks in the order in which they are counted, and what each says."""
SIGNS = {"new": "✦", "regressed": "↩", "spiking": "▲", "back": "↺", "fixed": "✓"}
"""A sign for each mark, so that none is told by its colour alone."""
_NONE = "new, regressed, spiking or back"
_OLD = timedelta(hours=36)


def night_words(marks: Marks, now: datetime) -> str:
    """Say which night the page tells of: when it ended, and how; what runs or failed since."""
    night, last = marks.night, marks.last
    if night is None:
        return _only(last)
    ended = night.finished_at or night.started_at
    old = f", {ago(ended, now)}" if now - ended > _OLD else ""
    said = f"Night {night.id} ended {_moment(ended)}{old}: {night.status}"
    said += f" ({night.reason.rstrip('.')})." if night.reason else "."
    return said if last is None or last.id == night.id else f"{said} {_since(last)}"


def _only(last: NightSeen | None) -> str:
    if last is None:
        return "No night was run on this store yet, so that nothing is marked as new."
    if last.status == "running":
        return (
            f"Night {last.id} is the first one and is running since {_moment(last.started_at)}: nothing is marked yet."
        )
    return f"Night {last.id} failed{_because(last)}. No night came to an end yet, so that nothing is marked."


def _since(last: NightSeen) -> str:
    if last.status == "running":
        return f"Night {last.id} is running since {_moment(last.started_at)}; its marks come when it ends."
    return f"Night {last.id}, which began {_moment(last.started_at)}, failed{_because(last)}."


def _because(night: NightSeen) -> str:
    return f" ({night.reason.rstrip('.')})" if night.reason else ""


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def ago(at: datetime, now: datetime) -> str:
    """Return how long ago a moment is: ``5 hours ago``, ``3 days ago``."""
    hours = int((now - at).total_seconds() // 3600)
    return f"{many(hours, 'hour')} ago" if hours < 48 else f"{many(hours // 24, 'day')} ago"


def broke_words(counts: dict[str, int]) -> str:
    """Say how many clusters broke: ``What broke: 2 new, 1 regressed.``"""
    told = [f"{counts[kind]:,} {kind}" for kind in MARKS if kind in BROKEN and counts.get(kind)]
    return (
        f"What broke: {', '.join(told)}." if told else "Nothing broke: no cluster is new, regressed, spiking or back."
    )


def title_of(row: Row) -> str:
    """Return what people call a cluster, else its root line."""
    return row.name or row.root_line or "(no root line)"


def since_words(seen: Seen | None) -> str:
    """Say since when, and in which release."""
    return "" if seen is None else f"since {seen.first_day} in {seen.first_release}"


def last_words(seen: Seen | None) -> str:
    """Say when it was seen last."""
    return "" if seen is None else f"last seen {seen.last_day}"


def platform_words(platforms: Sequence[Count]) -> str:
    """Say on which platform most of it is, and on how many it is at all."""
    if not platforms:
        return ""
    worst = platforms[0]
    if len(platforms) == 1:
        return f"on {worst.key} alone"
    total = sum(one.crashes for one in platforms)
    return f"on {worst.key} most ({percent(worst.crashes / total)}), {many(len(platforms), 'platform')}"


def contained_words(came_of: Outcomes) -> str:
    """Say whether the fallback contained it: in how many of the failed attempts of which an event tells."""
    if not came_of.known:
        return "containment unknown: no runtime event tells"
    if not came_of.unanswered:
        return f"contained: the fallback answered all {came_of.known:,}" if came_of.known > 1 else "contained: answered"
    if not came_of.contained:
        return f"not contained: nobody answered {many(came_of.known, 'failed attempt')}"
    return f"partly contained: {came_of.contained:,} of {came_of.known:,} answered"


def crashes_words(row: Row) -> str:
    """Say how many crashes it has of those that pass, and which share."""
    return f"{many(row.crashes, 'crash')} ({percent(row.share)})" if row.crashes else "no crash in these days"


def standing_words(row: Row, now: datetime) -> Iterator[str]:
    """Say what people said of it."""
    if row.assignee:
        yield f"owner {row.assignee}"
    if row.resolved_in:
        yield resolved(row.resolved_in)
    if row.muted_until is not None and row.muted_until > now:
        yield muted(row.muted_until)
    if row.ticket:
        yield "has a ticket"


def spark_words(since: date, days: Sequence[int]) -> str:
    """Say the same in words, for who cannot see it."""
    most = max(days, default=0)
    if not most:
        return "no crash in these days"
    day = since + timedelta(days.index(most))
    return f"crashes by day from {since} to {since + timedelta(len(days) - 1)}: at most {most:,} on {day}"


def total_words(listing: Listing, every: int) -> str:
    """Say how many clusters and crashes pass, and what is not among them."""
    said = f"{many(listing.crashes, 'crash')} of {many(listing.clusters + listing.muted_clusters, 'cluster')} pass"
    if listing.muted_clusters:
        said += f", {listing.muted_clusters:,} of them muted"
    if listing.pending:
        said += f"; {many(listing.pending, 'crash')} more wait for the night to put them into a cluster"
    left = every - listing.clusters - listing.muted_clusters
    return f"{said}. {many(left, 'cluster')} {'has' if left == 1 else 'have'} none." if left > 0 else f"{said}."
