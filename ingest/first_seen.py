"""When a cluster or a release was first seen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from crashpath.ingest.chunks import chunks
from crashpath.ingest.schema import UNKNOWN
from crashpath.ingest.tables import CrashDaily, Signature
from crashpath.ingest.tables_counts import FailedDaily
from crashpath.ingest.tables_evidence import Attempts


def has_earlier(session: Session, release: str) -> bool:
    """Whether another release crashed before this one: else all that it has is new, and that says nothing."""
    first = select(func.min(CrashDaily.day))
    own = session.scalar(first.where(CrashDaily.release == release))
    others = session.scalar(first.where(CrashDaily.release.not_in((release, UNKNOWN))))
    return own is not None and others is not None and others < own


def first_releases(session: Session, numbers: Sequence[int], last: str) -> dict[int, str]:
    """Return the release in which each cluster was first seen; of one day several releases, the first by name.

    Release ``last`` comes behind them: what another one had on the same day is not known to be new in it.
    """
    first: dict[int, tuple[date, bool, str]] = {}
    for chunk in chunks(numbers):
        query = (
            select(Signature.cluster_id, CrashDaily.release, func.min(CrashDaily.day))
            .join(Signature, Signature.id == CrashDaily.signature_id)
            .where(Signature.cluster_id.in_(chunk))
            .group_by(Signature.cluster_id, CrashDaily.release)
        )
        for number, release, day in session.execute(query):
            assert number is not None  # the query asked for these
            place = (day, release == last, release)
            first[number] = min(first.get(number, place), place)
    return {number: release for number, (_, _, release) in first.items()}


def first_days(session: Session, releases: Iterable[str]) -> dict[str, date]:
    """Return the first day on which each release is known to have run: it crashed, or it was tried."""
    first: dict[str, date] = {}
    for release in releases:  # one by one: an index has the first day of each, and of none all of them
        crashed = select(func.min(FailedDaily.day)).where(FailedDaily.release == release)
        tried = select(func.min(Attempts.day)).where(Attempts.release == release, Attempts.attempts > 0)
        days = [day for day in (session.scalar(crashed), session.scalar(tried)) if day is not None]
        if days:
            first[release] = min(days)
    return first


def release_days(session: Session) -> dict[str, date]:
    """Return the first day of each release of which a crash or an attempt is known."""
    first: dict[str, date] = {}
    days = select(CrashDaily.day, CrashDaily.release).distinct().subquery().c  # read in order, and nothing is sorted
    for query in (
        select(days.release, func.min(days.day)).group_by(days.release),
        select(Attempts.release, func.min(Attempts.day)).where(Attempts.attempts > 0).group_by(Attempts.release),
    ):
        for release, day in session.execute(query):
            first[release] = min(day, first.get(release, day))
    return first
