"""What a policy asks of the failure classes and clusters of a release: is one new, or more frequent than it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from crashpath.dashboard.evalues import above_limit, worse_than
from crashpath.dashboard.evidence import ClusterFacts
from crashpath.dashboard.figures import percent
from crashpath.dashboard.policy import Policy
from crashpath.dashboard.question import (
    Family,
    Question,
    margin_words,
    measured_words,
    of_words,
    rate_of,
    trends_command,
)
from crashpath.dashboard.sides import Group, Side
from crashpath.ingest.clusters import cluster_id

_SHOWN_EVIDENCE = 5
"""Most clusters named beside a class."""
_Key = TypeVar("_Key", str, int)


def class_questions(
    side: Side, base: Side | None, clusters: Mapping[int, ClusterFacts], policy: Policy
) -> Iterator[Question]:
    """Ask of every class, and of every cluster, whether it is new or more frequent than the baseline allows.

    Without a baseline that can be asked of clusters alone, and only of those that were first seen in this release.
    """
    before = () if base is None else base.groups
    if base is not None:
        now, then = _counted(side.groups, _failure_class), _counted(before, _failure_class)
        members = _members(side, clusters)
        for name in sorted(now.keys() | then.keys()):
            yield from _class(side, base, name, now[name], then[name], members.get(name, ()), policy)
    here, there = _counted(side.groups, _cluster), _counted(before, _cluster)
    for number in sorted(here.keys() | there.keys()):
        facts, id = clusters.get(number), cluster_id(number)
        if base is not None or (facts is not None and facts.first_release == side.release):
            title = id if facts is None else f"{id} ({facts.title})"
            yield from _class(side, base, title, here[number], there[number], (id,), policy)


def _class(
    side: Side, base: Side | None, subject: str, failures: int, before: int, ids: Sequence[str], policy: Policy
) -> Iterator[Question]:
    """Ask of a class or cluster how frequent it is, against the baseline where that had it, else against a limit.

    What the baseline did not have is shown to be bad where it is over the limit and more frequent than in the baseline:
    of a class at its old rate a short baseline may have none by chance.

    Of fewer failures than the policy counts nothing is said.
    """
    classes, attempts, enough = policy.classes, side.tally.tried, failures >= policy.classes.min_count
    of_all, bad = f"{of_words(failures, attempts, side.unit)} failed with it", 0.0
    if base is not None and before:
        if classes.regressed_ratio is None:
            return
        tried, rule = base.tally.tried, "classes.regressed_ratio"
        limit = margin_words(classes.regressed_ratio, before, tried, classes.regressed_floor)
        said = f"{of_all}, against {rate_of(before, tried)} in the baseline"
        if enough:
            worse = worse_than(failures, attempts, before, tried, classes.regressed_ratio)
            bad = min(worse, above_limit(failures, attempts, classes.regressed_floor))
    else:
        if classes.new_rate is None:
            return
        rule, limit = "classes.new_rate", f"at most {percent(classes.new_rate)}"
        none = "it was first seen in this release" if base is None else f"none of {base.tally.tried:,} in the baseline"
        said = f"{of_all}; {none}" if base is None else f"{of_all}, against {none}"
        if enough:
            bad = above_limit(failures, attempts, classes.new_rate)
            if base is not None:  # none in a few attempts is not yet more frequent than in these
                bad = min(bad, worse_than(failures, attempts, 0, base.tally.tried, 1.0))
    yield Question(
        family=Family.CLASS,
        rule=rule,
        unit=side.unit,
        subject=subject,
        limit=limit,
        measured=measured_words(failures, attempts),
        said=said,
        bad=bad,
        good=None,
        evidence=tuple(ids[:_SHOWN_EVIDENCE]),
        command=f"crashpath show {ids[0]}" if ids else trends_command(side),
    )


def _counted(groups: Iterable[Group], key: Callable[[Group], _Key | None]) -> Counter[_Key]:
    counted: Counter[_Key] = Counter()
    for group in groups:
        if (named := key(group)) is not None:
            counted[named] += group.failures
    return counted


def _failure_class(group: Group) -> str:
    return group.failure_class


def _cluster(group: Group) -> int | None:
    return group.cluster


def _members(side: Side, clusters: Mapping[int, ClusterFacts]) -> dict[str, list[str]]:
    """Return the ids of each class's clusters, the most failures first."""
    found: dict[str, list[str]] = {}
    for group in sorted(side.groups, key=lambda one: (-one.failures, one.cluster or 0)):
        if group.cluster is not None and group.cluster in clusters:
            found.setdefault(group.failure_class, []).append(clusters[group.cluster].id)
    return found
