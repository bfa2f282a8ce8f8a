"""What somebody who resolved or linked a cluster should know at once, in sentences."""

from __future__ import annotations

import difflib

from sqlalchemy.orm import Session

from crashpath.ingest.clusters import cluster_id
from crashpath.ingest.failed_read import releases
from crashpath.ingest.first_seen import first_days
from crashpath.ingest.schema import UNKNOWN
from crashpath.ingest.tables import Cluster
from crashpath.ingest.trends import Filters, counts

_MOST = 3
"""Releases that are named; the rest is counted."""


def of_release(session: Session, number: int) -> tuple[str, ...]:
    """Say of the release in which a cluster is resolved that nobody knows it, or that the cluster is seen in it or
    later all the same.
    """
    resolved = session.get_one(Cluster, number).resolved_in
    if resolved is None:
        return ()
    known = releases(session)
    said = () if resolved in known else (_nobody_knows(resolved, known),)
    own = [count.key for count in counts(session, "release", Filters(cluster=number))]
    days = first_days(session, {*own, resolved})
    start = days.get(resolved)
    again = [
        one for one in own if one == resolved or (start is not None and one != UNKNOWN and days.get(one, start) > start)
    ]
    return (*said, _seen(number, sorted(again, key=lambda one: (days[one], one)))) if again else said


def of_link(given: str, stored: str | None) -> tuple[str, ...]:
    """Say that a link is not kept as it was given."""
    if stored is None or stored == given.strip():
        return ()
    return (
        "What looks like a secret or a person in the link was replaced before it was kept: see where it leads now.",
    )


def _nobody_knows(release: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(release, known, n=_MOST, cutoff=0.75)
    asked = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"Nothing is known of release {release} yet, so that nobody knows which ones come after it.{asked}"


def _seen(number: int, again: list[str]) -> str:
    more = f" and {len(again) - _MOST:,} more" if len(again) > _MOST else ""
    named = ", ".join(again[-_MOST:])
    return f"{cluster_id(number)} is seen in that release or later ({named}{more}): it counts as regressed."
