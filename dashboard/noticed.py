"""What a night's digest tells of: what is new, regressed, back, spiking or fixed, at most one line a cluster.

- **new**: a cluster born of failures that nobody had seen. Parts that a re-clustering or a person split off belong to
  no night and are not new; neither is what a re-key writes anew, which stays in its cluster.
- **regressed**: resolved in a release, and seen in that release or in one that came later.
- **back**: seen again after ``quiet_days`` of silence.
- **spiking**: more crashes on the last full UTC day than the days before let expect, of a cluster or of a class (of a
  class only what is not told of its clusters).
- **fixed**: marked as resolved and not seen since, or crashing steadily and then silent for longer than chance explains
  (of days on which anything was heard at all).

Spiking and silent ones are tested each (`rhythm`), with Holm's correction over all that were looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from crashpath.dashboard.history import Days, History, read_history, together
from crashpath.dashboard.holm import rejected
from crashpath.dashboard.plurals import many
from crashpath.dashboard.rhythm import more, silence
from crashpath.ingest.chunks import chunks
from crashpath.ingest.classes import CLASSES
from crashpath.ingest.cluster_days import ActiveCluster, Span, active_clusters, spans_by_cluster
from crashpath.ingest.first_seen import release_days
from crashpath.ingest.outbox import Thing
from crashpath.ingest.schema import UNKNOWN
from crashpath.ingest.tables import Cluster, ClusterEvent, Night

KINDS = ("regressed", "spiking", "back", "new", "fixed")
"""In the order in which they are told: what may have to be left out comes last."""
MOST_TITLE = 160
_TITLES = {one.id: one.title for one in CLASSES}
_STEADY = 5
"""Days with crashes, of those looked at, that make a cluster steady."""
_LENGTH = 120
"""Days that are looked at, at least."""


@dataclass(frozen=True, slots=True)
class Rules:
    """When something is told. ``alpha`` is the chance that anything is said to spike, or to be silent, wrongly.

    ``spike_min`` is the fewest crashes a day that are called a spike, ``spike_days`` how many days before it is
    compared with; after ``quiet_days`` of silence a cluster that is seen again is back.
    """

    spike_min: int = 10
    spike_days: int = 28
    quiet_days: int = 30
    alpha: float = 0.01


@dataclass(frozen=True, slots=True)
class Noticed:
    """``things`` to tell; ``silent`` ones that need no line any more; how many clusters were left out as ``muted``."""

    things: tuple[Thing, ...]
    silent: tuple[Thing, ...]
    muted: int


@dataclass(frozen=True, slots=True)
class _Seen:
    """All that is looked at. ``spans``: the releases of those that were born or resolved; ``made``: the days on which
    people or a re-clustering made clusters out of others; ``releases``: the first day of each release; ``loud``:
    clusters that have a line already."""

    rows: Sequence[ActiveCluster]
    spans: Mapping[int, Sequence[Span]]
    history: History
    rules: Rules
    born: Collection[int]
    made: Mapping[int, date]
    releases: Mapping[str, date]
    muted: Collection[int]
    loud: Mapping[str, Thing]


def notice(
    session: Session,
    night: int,
    rules: Rules,
    *,
    at: datetime,
    since: int | None = None,
    told: Collection[str] = frozenset(),
) -> Noticed:
    """Look at the store after ``night``, at the time ``at``; what has its key in ``told`` is left out.

    ``since`` is the last night that was looked at. Without one (a place that is new), births are those since the last
    night that came to an end, and what was fixed or back before the last full day is silent.
    """
    rows = active_clusters(session)
    muted = {row.number for row in rows if row.muted_until is not None and row.muted_until > at}
    first = last_finished(session, night) if since is None else since
    history = read_history(session, max(_LENGTH, rules.spike_days + 2 * rules.quiet_days), at)
    lines: dict[str, Thing] = {}
    silent: list[Thing] = []
    born, resolved = born_since(session, first, night), {row.number for row in rows if row.resolved_in}
    spans, releases = spans_by_cluster(session, born | resolved), release_days(session) if resolved else {}
    seen = _Seen(rows, spans, history, rules, born, _made(session), releases, muted, lines)
    for look in LOOKS:
        for thing in look(seen):
            if thing.key in told or thing.subject in lines or (since is None and _past(thing, history)):
                silent += [] if thing.key in told else [thing]
            else:
                lines[thing.subject] = thing
    left_out = {name for name, thing in lines.items() if thing.cluster in muted}
    things = [thing for name, thing in lines.items() if name not in left_out]
    silent = [thing for thing in silent if thing.subject not in left_out and thing.cluster not in muted]
    named = {thing.cluster for thing in things if thing.cluster is not None}
    spans |= spans_by_cluster(session, named - spans.keys())
    return Noticed(tuple(_in_order(things, spans, resolved)), tuple(silent), len(left_out))


def _in_order(things: Sequence[Thing], spans: Mapping[int, Sequence[Span]], resolved: Collection[int]) -> list[Thing]:
    """Sort things by kind: what people resolved before what fell silent, clusters before classes, the most crashes
    first."""

    def place(thing: Thing) -> tuple[int, bool, int, int]:
        if thing.cluster is None:
            return KINDS.index(thing.kind), True, 0, 0
        later = thing.kind == "fixed" and thing.cluster not in resolved
        return KINDS.index(thing.kind), later, -_crashes(spans[thing.cluster]), thing.cluster

    return sorted(things, key=place)


def _past(thing: Thing, history: History) -> bool:
    """Whether it was so before a place asked for the first time: nobody there wants to hear of all of it at once."""
    return thing.kind == "fixed" or (thing.kind == "back" and thing.occasion < str(history.full or history.today))


def _new(seen: _Seen) -> Iterator[Thing]:
    for row in seen.rows:
        if row.number in seen.born:
            spans = seen.spans[row.number]
            where = _some([span.release for span in spans])
            yield _thing("new", row, "", f"{many(_crashes(spans), 'crash')} in {where}, first on {row.first_day}")


def _regressed(seen: _Seen) -> Iterator[Thing]:
    for row in seen.rows:
        again = _again(row, seen)
        if row.resolved_in and again:
            yield _thing("regressed", row, row.resolved_in, f"resolved in {row.resolved_in}, seen in {_some(again)}")


def _again(row: ActiveCluster, seen: _Seen) -> list[str]:
    """Return the releases of a cluster in which it was to be gone: where it was resolved, and those that came later."""
    if row.resolved_in is None:
        return []
    releases, own = seen.releases, [span.release for span in seen.spans[row.number]]
    start = releases.get(row.resolved_in)
    later = [one for one in own if start is not None and one != UNKNOWN and releases.get(one, start) > start]
    return sorted([*(one for one in own if one == row.resolved_in), *later], key=lambda one: releases[one])


def _crashes(spans: Sequence[Span]) -> int:
    return sum(span.crashes for span in spans)


def _spiking(seen: _Seen) -> Iterator[Thing]:
    """Test every cluster, and every class, that crashed in the days looked at."""
    history, rules, day = seen.history, seen.rules, seen.history.full
    if day is None:
        return
    of_class: dict[str, list[ActiveCluster]] = {}
    tests: list[tuple[ActiveCluster | str, Days]] = []
    for row in seen.rows:
        if row.number not in seen.muted and row.number in history.clusters:
            of_class.setdefault(row.failure_class, []).append(row)
            if seen.made.get(row.number, day) <= day:
                tests.append((row, history.clusters[row.number]))
    tests += [(name, _sum(history, of_class[name])) for name in sorted(of_class)]
    before = [history.before(days, day, rules.spike_days, heard=True) for _, days in tests]
    shown = rejected(more([days.get(day, 0) for _, days in tests], before), rules.alpha)
    found = [test for test, stands in zip(tests, shown, strict=True) if stands and _often(test[1], day, rules)]
    loud = {row.id for row, _ in found if isinstance(row, ActiveCluster)} | set(seen.loud)
    loud |= {row.id for row in seen.rows if seen.made.get(row.number, day) > day}  # it was told of the whole
    for one, days in found:
        usual = history.before(days, day, rules.spike_days, heard=True)
        words = f"{many(days[day], 'crash')} on {day}, {sum(usual) / len(usual):.3g} a day before"
        if isinstance(one, ActiveCluster):
            yield _thing("spiking", one, str(day), words)
            continue
        rest = _sum(history, [row for row in of_class[one] if row.id not in loud])
        usual = history.before(rest, day, rules.spike_days, heard=True)
        if _often(rest, day, rules) and more([rest[day]], [usual])[0] <= rules.alpha:
            yield Thing("spiking", one, str(day), None, words, _TITLES.get(one, one))


def _often(days: Days, day: date, rules: Rules) -> bool:
    return days.get(day, 0) >= rules.spike_min


def _sum(history: History, rows: Sequence[ActiveCluster]) -> Days:
    return together([history.clusters[row.number] for row in rows])


def _back(seen: _Seen) -> Iterator[Thing]:
    history, quiet = seen.history, timedelta(seen.rules.quiet_days)
    for row in seen.rows:
        days = sorted(history.clusters.get(row.number, ()))
        if not days:
            continue
        before = [history.start - timedelta(1) if row.first_day < history.start else days[0], *days]
        gaps = [(day, last) for last, day in zip(before, days, strict=False) if day - last > quiet]
        if gaps and gaps[-1][0] > history.today - quiet and seen.made.get(row.number, gaps[-1][0]) <= gaps[-1][0]:
            day, last = gaps[-1]
            silent = (day - last).days - 1
            at_least = "at least " if last < history.start else ""
            yield _thing("back", row, str(day), f"seen on {day} after {at_least}{many(silent, 'day')} without it")


def _fixed(seen: _Seen) -> Iterator[Thing]:
    for row in seen.rows:
        if row.resolved_in and row.resolved_in in seen.releases and not _again(row, seen):  # none that is to come
            words = f"marked as resolved in {row.resolved_in}, not seen in it or later"
            yield _thing("fixed", row, row.resolved_in, words)
    quiet = list(_steady(seen))
    p_values = silence([seen.history.heard_after(last) for _, last, _ in quiet], [before for *_, before in quiet])
    for (row, last, before), stands in zip(quiet, rejected(p_values, seen.rules.alpha), strict=True):
        if stands:
            words = f"not seen since {last}, {sum(before) / len(before):.3g} crashes a day before"
            yield _thing("fixed", row, str(last), words)


def _steady(seen: _Seen) -> Iterator[tuple[ActiveCluster, date, list[int]]]:
    """Yield clusters that crashed on enough days before their last one, which was chosen for its crash and is left out.

    Parts that were made after that day are not judged by it.
    """
    for row in seen.rows:
        days = seen.history.clusters.get(row.number, {})
        last = max(days, default=None)
        if row.resolved_in or last is None or seen.made.get(row.number, last) > last:
            continue
        before = seen.history.before(days, last, seen.rules.spike_days, heard=False)
        if sum(count > 0 for count in before) >= _STEADY:
            yield row, last, before


LOOKS: tuple[Callable[[_Seen], Iterator[Thing]], ...] = (_new, _regressed, _spiking, _back, _fixed)
"""The first one that has something to say of a cluster has its line."""


def _thing(kind: str, row: ActiveCluster, occasion: str, words: str) -> Thing:
    title = " ".join((row.name or row.root_line).split())
    title = title if len(title) <= MOST_TITLE else title[: MOST_TITLE - 1] + "…"
    return Thing(
        kind, row.id, occasion, row.number, f"{_TITLES.get(row.failure_class, row.failure_class)}: {words}", title
    )


def _some(names: Sequence[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def last_finished(session: Session, night: int) -> int:
    """Return the last night before ``night`` that came to an end, complete or partial; 0 where there is none."""
    query = select(func.max(Night.id)).where(Night.id < night, Night.status.in_(("complete", "partial")))
    return session.scalar(query) or 0


def born_since(session: Session, since: int, night: int) -> frozenset[int]:
    """Return the clusters born after ``since``, without those that took in one that is older."""
    inside = Cluster.night_id.is_not(None) & (Cluster.night_id > since) & (Cluster.night_id <= night)
    born = sorted(session.scalars(select(Cluster.id).where(inside)))
    older = set()
    for chunk in chunks(born):
        query = select(ClusterEvent.cluster_id, ClusterEvent.other_id).where(
            ClusterEvent.kind == "merged", ClusterEvent.cluster_id.in_(chunk), ClusterEvent.other_id.is_not(None)
        )
        went = dict(
            session.execute(select(Cluster.id, Cluster.merged_into).where(Cluster.merged_into.in_(chunk))).all()
        )
        older |= {number for number, other in session.execute(query) if other in went and other not in born}
    return frozenset(born) - older


def _made(session: Session) -> dict[int, date]:
    query = select(Cluster.id, Cluster.created_at).where(Cluster.night_id.is_(None), Cluster.status == "active")
    return {number: at.date() for number, at in session.execute(query)}
