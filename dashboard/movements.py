"""Which classes and clusters moved: from the baseline to the release, and on the last day against those before.

For eyes, not for the verdict: exact conditional tests of one look (of x and k failures, x is binomial with the share of
exposure; Przyborowski and Wilenski, 1940), in both directions against the baseline, with Holm's correction over all
that were tested. Of fewer failed attempts than ``min_count`` nothing is said. What the baseline had none of is said to
be new without a test, as that is no question of chance; its p still tells how little that may mean.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrc

from crashpath.dashboard.evidence import ClusterFacts
from crashpath.dashboard.figures import percent, times
from crashpath.dashboard.holm import corrected
from crashpath.dashboard.plurals import many
from crashpath.dashboard.review_model import Change, Movement
from crashpath.dashboard.sides import Group, Side, Tally
from crashpath.ingest.classes import CLASSES, UNCLASSIFIED, headline_of
from crashpath.ingest.clusters import cluster_id

_TITLES = {one.id: one.title for one in CLASSES}
_ORDER = list(Change)
Chances = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Counted:
    """Failed attempts of one class or cluster: in the release, on its last day, in the baseline."""

    failures: int = 0
    last: int = 0
    before: int = 0


@dataclass(frozen=True, slots=True)
class _Found:
    change: Change
    level: str
    key: str
    counts: _Counted
    ratio: float | None
    p: float


def movements(
    side: Side, base: Side | None, clusters: Mapping[int, ClusterFacts], *, min_count: int, alpha: float
) -> tuple[Movement, ...]:
    """Return what moved, in the order of ``Change``, the most failures first; nothing of counts that cannot be."""
    if not _can_be(side.tally):
        return ()
    base = base if base is not None and _can_be(base.tally) else None
    tested: list[_Found] = []
    for level in ("class", "cluster"):
        counted = _counted(side, base, level)
        if base is not None:
            tested += _against_baseline(side.tally.tried, base.tally.tried, level, counted, min_count)
        tested += _against_days(side, level, counted, min_count)
    found = [
        one for one in _corrected(tested, alpha) if one.change is not Change.SPIKING or one.counts.last >= min_count
    ]
    found.sort(key=lambda one: (_ORDER.index(one.change), -one.counts.failures, -one.counts.before, one.key))
    return tuple(_movement(one, side, base, clusters) for one in found)


def _can_be(tally: Tally) -> bool:
    return tally.tried > 0 and tally.primary <= tally.tried


def _counted(side: Side, base: Side | None, level: str) -> dict[str, _Counted]:
    counted: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for group in side.groups:
        if (key := _key(group, level)) is not None:
            counted[key][0] += group.failures
            counted[key][1] += group.last
    for group in () if base is None else base.groups:
        if (key := _key(group, level)) is not None:
            counted[key][2] += group.failures
    return {key: _Counted(*counts) for key, counts in counted.items()}


def _key(group: Group, level: str) -> str | None:
    if level == "class":
        return group.failure_class
    return None if group.cluster is None else cluster_id(group.cluster)


def _against_baseline(
    now: int, then: int, level: str, counted: Mapping[str, _Counted], min_count: int
) -> Iterator[_Found]:
    """Test everything with enough failures on both sides together: which side they are on decides nothing of that."""
    enough = {key: one for key, one in counted.items() if one.failures + one.before >= min_count}
    more, less = _tails([(one.failures, one.before) for one in enough.values()], now, then)
    either = np.minimum(1.0, 2 * np.minimum(more, less))  # nobody said before in which direction it would move
    for (key, one), p in zip(enough.items(), either, strict=True):
        ratio = (one.failures / now) / (one.before / then) if one.before else None
        yield _Found(_change(one, now, then), level, key, one, ratio, float(p))


def _change(one: _Counted, now: int, then: int) -> Change:
    if not one.before:
        return Change.NEW
    if one.failures * then >= one.before * now:
        return Change.REGRESSED
    return Change.FADING if one.failures else Change.GONE


def _against_days(side: Side, level: str, counted: Mapping[str, _Counted], min_count: int) -> Iterator[_Found]:
    """Test the last day of which attempts are told against those before: everything with enough failures on all."""
    day = _last_day(side)
    now = side.days[day].tried if day is not None else 0
    then = side.tally.tried - now
    if now <= 0 or then <= 0:
        return
    enough = {key: one for key, one in counted.items() if one.failures >= min_count}
    more, _ = _tails([(one.last, one.failures - one.last) for one in enough.values()], now, then)
    for (key, one), p in zip(enough.items(), more, strict=True):
        earlier = one.failures - one.last
        ratio = (one.last / now) / (earlier / then) if earlier else None
        yield _Found(Change.SPIKING, level, key, one, ratio, float(p))


def _last_day(side: Side) -> date | None:
    return max(side.days.keys() - side.without_attempts, default=None)


def _tails(counts: Sequence[tuple[int, int]], now: int, then: int) -> tuple[Chances, Chances]:
    """Return the chances of so many failures here or more, and of so many or fewer, where both rates are the same.

    ``counts`` are failures here and there, ``now`` and ``then`` the attempts that they are of.
    """
    here, there = np.array(counts, dtype=np.int64).reshape(-1, 2).T
    share = now / (now + then)
    more = np.where(here > 0, bdtrc(np.maximum(here, 1) - 1, here + there, share), 1.0)
    return more, np.asarray(bdtr(here, here + there, share))


def _corrected(tested: Sequence[_Found], alpha: float) -> list[_Found]:
    """Correct for all that were tested; what is new and often enough stays, as that it is there needs no test."""
    if not tested:
        return []
    return [
        replace(one, p=float(p))
        for one, p in zip(tested, corrected([one.p for one in tested]), strict=True)
        if p <= alpha or one.change is Change.NEW
    ]


def _movement(one: _Found, side: Side, base: Side | None, clusters: Mapping[int, ClusterFacts]) -> Movement:
    failure_class, title = one.key, _TITLES.get(one.key, one.key)
    if one.level == "cluster":
        facts = clusters.get(int(one.key.removeprefix("C-")))
        failure_class = UNCLASSIFIED if facts is None else facts.failure_class
        title = one.key if facts is None else facts.title
    return Movement(
        one.change, one.level, one.key, title, headline_of(failure_class), one.counts.failures, one.counts.before,
        one.ratio, one.p, _sentence(one, side, base),
    )  # fmt: skip


def _sentence(one: _Found, side: Side, base: Side | None) -> str:
    now = percent(one.counts.failures / side.tally.tried)
    counts = f"{many(one.counts.failures, 'failure')} ({now} of {side.unit}s)"
    if one.change is Change.SPIKING:
        day = _last_day(side)
        assert day is not None  # it has a spike
        how = f"{times(one.ratio)} the rate of the days before" if one.ratio else "none on the days before"
        return f"{many(one.counts.last, 'failure')} on {day.isoformat()}, {how}"
    if base is None or one.change is Change.NEW:
        return f"{counts}, none in the baseline"
    then = percent(one.counts.before / base.tally.tried)
    if one.change is Change.GONE:
        return f"none now, {many(one.counts.before, 'failure')} ({then} of {side.unit}s) in the baseline"
    return f"{counts}, {then} in the baseline" + (f": {times(one.ratio)}" if one.ratio else "")
