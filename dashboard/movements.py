"""Which classes and clusters moved: from the baseline to the release, and on the last day against those before.

For eyes, not for the verdict: exact conditional tests of one look (of x and k failures, x is binomial with the share of
exposure; Przyborowski and Wilenski, 1940), Holm's correction over all that were tested. Of fewer failed attempts than
``min_count`` nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from scipy.stats import binomtest
from statsmodels.stats.multitest import multipletests

from crashpath.dashboard.evidence import ClusterFacts
from crashpath.dashboard.figures import percent, times
from crashpath.dashboard.plurals import many
from crashpath.dashboard.review_model import Change, Movement
from crashpath.dashboard.sides import Group, Side
from crashpath.ingest.classes import CLASSES, UNCLASSIFIED, headline_of
from crashpath.ingest.clusters import cluster_id

_TITLES = {one.id: one.title for one in CLASSES}
_ORDER = list(Change)


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
    """Return what moved, in the order of ``Change``, the most failures first."""
    found: list[_Found] = []
    for level in ("class", "cluster"):
        counted = _counted(side, base, level)
        found += _corrected(_against_baseline(side, base, level, counted, min_count), alpha)
        found += _corrected(_against_days(side, level, counted, min_count), alpha)
    found.sort(key=lambda one: (_ORDER.index(one.change), -one.counts.failures, -one.counts.before, one.key))
    return tuple(_movement(one, side, base, clusters) for one in found)


def _counted(side: Side, base: Side | None, level: str) -> dict[str, _Counted]:
    counted: dict[str, _Counted] = {}
    for group in side.groups:
        if (key := _key(group, level)) is not None:
            old = counted.get(key, _Counted())
            counted[key] = _Counted(old.failures + group.failures, old.last + group.last, old.before)
    for group in () if base is None else base.groups:
        if (key := _key(group, level)) is not None:
            old = counted.get(key, _Counted())
            counted[key] = _Counted(old.failures, old.last, old.before + group.failures)
    return counted


def _key(group: Group, level: str) -> str | None:
    if level == "class":
        return group.failure_class
    return None if group.cluster is None else cluster_id(group.cluster)


def _against_baseline(
    side: Side, base: Side | None, level: str, counted: Mapping[str, _Counted], min_count: int
) -> list[_Found]:
    if base is None or not side.tally.tried or not base.tally.tried:
        return []
    now, then = side.tally.tried, base.tally.tried
    found = []
    for key, one in counted.items():
        if one.failures + one.before < min_count:
            continue
        more = one.failures * then >= one.before * now
        p = _p(one.failures, one.before, now, then, "greater" if more else "less")
        if not one.before:
            change = Change.NEW
        elif more:
            change = Change.REGRESSED
        else:
            change = Change.FADING if one.failures else Change.GONE
        ratio = (one.failures / now) / (one.before / then) if one.before else None
        found.append(_Found(change, level, key, one, ratio, p))
    return found


def _against_days(side: Side, level: str, counted: Mapping[str, _Counted], min_count: int) -> list[_Found]:
    days = sorted(side.days.keys() - side.without_attempts)
    if len(days) < 2:
        return []
    now = side.days[days[-1]].tried
    then = side.tally.tried - now
    if now <= 0 or then <= 0:
        return []
    found = []
    for key, one in counted.items():
        earlier = one.failures - one.last
        if one.last >= min_count and one.last * then > earlier * now:
            ratio = (one.last / now) / (earlier / then) if earlier else None
            found.append(
                _Found(Change.SPIKING, level, key, one, ratio, _p(one.last, earlier, now, then, "greater"))
            )  # fmt: skip
    return found


def _p(here: int, there: int, now: int, then: int, side: Literal["greater", "less"]) -> float:
    return float(binomtest(here, here + there, now / (now + then), alternative=side).pvalue)


def _corrected(found: Sequence[_Found], alpha: float) -> list[_Found]:
    """Correct for all that were tested; what is new and often enough stays, as that it is there needs no test."""
    if not found:
        return []
    reject, corrected, _, _ = multipletests([one.p for one in found], alpha=alpha, method="holm")
    return [
        _Found(one.change, one.level, one.key, one.counts, one.ratio, float(p))
        for one, p, shown in zip(found, corrected, reject, strict=True)
        if shown or one.change is Change.NEW
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
        day = max(side.days.keys() - side.without_attempts)
        how = f"{times(one.ratio)} the rate of the days before" if one.ratio else "none on the days before"
        return f"{many(one.counts.last, 'failure')} on {day.isoformat()}, {how}"
    if base is None or one.change is Change.NEW:
        return f"{counts}, none in the baseline"
    then = percent(one.counts.before / base.tally.tried)
    if one.change is Change.GONE:
        return f"none, {many(one.counts.before, 'failure')} ({then}) in the baseline"
    return f"{counts}, {then} in the baseline" + (f": {times(one.ratio)}" if one.ratio else "")
