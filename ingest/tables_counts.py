"""Tables of what is counted for a release: failed attempts by day, who was heard, and what was told to people."""

from __future__ import annotations

from datetime import date, datetime

from sqlalchemy import CheckConstraint, Date, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from crashpath.ingest.schema import Base, BigId, UtcTime


class FailedDaily(Base):
    """Failed attempts of a UTC day by unit, cohort and signature: the numerator of every rate, counted once a night.

    ``unit`` is as in ``failed_attempts``. A day that is in ``stale_day`` may be wrong here and is counted anew.
    The rows of a release stand together, because a review reads all of them, and the second index has all that it
    needs to sum them by signature in the order of the index.
    """

    __tablename__ = "failed_daily"
    __table_args__ = (
        Index(None, "day"),
        Index(None, "release", "unit", "signature_id", "day", "attempts"),
        {"sqlite_with_rowid": False},
    )

    release: Mapped[str] = mapped_column(primary_key=True)
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    unit: Mapped[str] = mapped_column(primary_key=True)
    platform: Mapped[str] = mapped_column(primary_key=True)
    model: Mapped[str] = mapped_column(primary_key=True)
    signature_id: Mapped[str] = mapped_column(primary_key=True)
    attempts: Mapped[int] = mapped_column(BigId)
    unanswered: Mapped[int] = mapped_column(BigId)
    contained: Mapped[int] = mapped_column(BigId)
    witnesses: Mapped[int] = mapped_column(BigId)


class FailedCohort(Base):
    """The sums of ``failed_daily`` over signatures, a tenth of its rows; written with it, so never another count."""

    __tablename__ = "failed_cohort"
    __table_args__ = (Index(None, "day"), {"sqlite_with_rowid": False})

    release: Mapped[str] = mapped_column(primary_key=True)
    day: Mapped[date] = mapped_column(Date, primary_key=True)
    unit: Mapped[str] = mapped_column(primary_key=True)
    platform: Mapped[str] = mapped_column(primary_key=True)
    model: Mapped[str] = mapped_column(primary_key=True)
    attempts: Mapped[int] = mapped_column(BigId)
    unanswered: Mapped[int] = mapped_column(BigId)
    contained: Mapped[int] = mapped_column(BigId)


class StaleDay(Base):
    """A UTC day whose failed attempts have to be counted anew.

    ``touched`` grows with each write to its crashes, and whoever counts the day puts a number of its own there.
    """

    __tablename__ = "stale_day"

    day: Mapped[date] = mapped_column(Date, primary_key=True)
    touched: Mapped[int] = mapped_column(BigId)


class Heard(Base):
    """A cohort that a log source told of, and when a night last looked at that source, whatever it found there.

    ``origin_key`` is the keyed hash of the source's path. A cohort nobody was heard from has no failures that anybody
    would know of, which is not the same as none.
    """

    __tablename__ = "heard"
    __table_args__ = (Index(None, "release"), {"sqlite_with_rowid": False})

    origin_key: Mapped[str] = mapped_column(primary_key=True)
    release: Mapped[str] = mapped_column(primary_key=True)
    platform: Mapped[str] = mapped_column(primary_key=True)
    model: Mapped[str] = mapped_column(primary_key=True)
    first_at: Mapped[datetime] = mapped_column(UtcTime)
    last_at: Mapped[datetime] = mapped_column(UtcTime)


class Told(Base):
    """One thing that a digest told, or has still to tell, at one place; the pair is there once, so never told twice.

    ``thing`` names kind, cluster and occasion (``new C-0042``, ``regressed C-0042 1.4``); ``place`` is ``file`` or the
    keyed hash of a webhook's address.
    """

    __tablename__ = "told"
    __table_args__ = (
        UniqueConstraint("thing", "place"),
        CheckConstraint("state in ('waiting', 'sending', 'told')", name="state"),
        Index(None, "place", "state"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    thing: Mapped[str]
    place: Mapped[str]
    kind: Mapped[str]
    cluster_id: Mapped[int | None] = mapped_column(ForeignKey("cluster.id"))
    night_id: Mapped[int | None] = mapped_column(ForeignKey("night.id"))
    noticed_at: Mapped[datetime] = mapped_column(UtcTime)
    told_at: Mapped[datetime | None] = mapped_column(UtcTime)
    state: Mapped[str]
    sentence: Mapped[str]
