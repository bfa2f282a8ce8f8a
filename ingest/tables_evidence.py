"""Tables of the evidence: attempts, what people decided, and what was proven about the two paths of the runtime."""

from __future__ import annotations

from datetime import date, datetime

from sqlalchemy import JSON, CheckConstraint, Date, Double, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from crashpath.ingest import tables as tables
from crashpath.ingest import tables_counts as tables_counts
from crashpath.ingest.schema import Base, BigId, Json, UtcTime

#: Whole once this module, ``tables`` and ``tables_counts`` are imported; the whole schema is taken from here.
SCHEMA = Base.metadata


class Attempts(Base):
    """How often something was tried: the denominator of a rate.

    ``rerouted``: attempts that were sent to the fallback without a try of the main path, which only events tell.
    Rows ``via`` a ``file`` are replaced by later files, and what was replaced is kept in ``history``. Rows ``via``
    ``events`` are sums of the runtime's events; ``attempt_counts`` says how the two go together.
    """

    __tablename__ = "attempts"
    __table_args__ = (
        UniqueConstraint("via", "unit", "day", "release", "platform", "model", "path", name="uq_attempts_cohort"),
        CheckConstraint("unit in ('deployment', 'load', 'request')", name="unit"),
        CheckConstraint("attempts >= 0", name="attempts"),
        CheckConstraint("via in ('file', 'events')", name="via"),
        Index(None, "release", "unit", "day"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    unit: Mapped[str]
    day: Mapped[date] = mapped_column(Date)
    release: Mapped[str]
    platform: Mapped[str]
    model: Mapped[str]
    path: Mapped[str]
    attempts: Mapped[int] = mapped_column(BigId)
    failures: Mapped[int | None] = mapped_column(BigId)
    unanswered: Mapped[int | None] = mapped_column(BigId)
    rerouted: Mapped[int | None] = mapped_column(BigId)
    users: Mapped[int | None] = mapped_column(BigId)
    devices: Mapped[int | None] = mapped_column(BigId)
    via: Mapped[str]
    origin: Mapped[str]
    recorded_at: Mapped[datetime] = mapped_column(UtcTime)
    history: Mapped[list[Json]] = mapped_column(JSON)


class EventBatch(Base):
    """One ``attempts`` event that is in the sums; its id (hashed) keeps a copy of its line from counting again."""

    __tablename__ = "event_batch"

    batch_hash: Mapped[str] = mapped_column(primary_key=True)
    night_id: Mapped[int] = mapped_column(ForeignKey("night.id"))
    unit: Mapped[str]
    day: Mapped[date] = mapped_column(Date)
    attempts: Mapped[int] = mapped_column(BigId)


class Review(Base):
    """The evidence for one release against a baseline, and its verdict, at one look."""

    __tablename__ = "review"
    __table_args__ = (
        CheckConstraint("verdict in ('GO', 'NO-GO', 'HOLD')", name="verdict"),
        Index(None, "release", "at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime] = mapped_column(UtcTime)
    release: Mapped[str]
    baseline: Mapped[str | None]
    unit: Mapped[str]
    verdict: Mapped[str]
    look: Mapped[int]
    policy: Mapped[Json] = mapped_column(JSON)
    state: Mapped[Json] = mapped_column(JSON)
    report: Mapped[Json] = mapped_column(JSON)


class Decision(Base):
    """What a person did, for ever: rows are added, never changed. ``before`` holds what an exact undo needs."""

    __tablename__ = "decision"
    __table_args__ = (Index(None, "cluster_id", "at"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    at: Mapped[datetime] = mapped_column(UtcTime)
    who: Mapped[str]
    kind: Mapped[str]
    cluster_id: Mapped[int | None] = mapped_column(ForeignKey("cluster.id"))
    other_id: Mapped[int | None] = mapped_column(ForeignKey("cluster.id"))
    review_id: Mapped[int | None] = mapped_column(ForeignKey("review.id"))
    signatures: Mapped[list[str]] = mapped_column(JSON)
    value: Mapped[str | None]
    why: Mapped[str | None]
    before: Mapped[Json] = mapped_column(JSON)
    undoes_id: Mapped[int | None] = mapped_column(ForeignKey("decision.id"))


class CoverageRun(Base):
    """One observation of one model artefact: what ran it, when, and under which versions.

    ``run`` is the id that a traced run has in its file, and no other has; runs of drills have none.
    """

    __tablename__ = "coverage_run"
    __table_args__ = (Index(None, "release", "at"), Index(None, "run", unique=True))

    id: Mapped[int] = mapped_column(primary_key=True)
    run: Mapped[str | None]
    at: Mapped[datetime] = mapped_column(UtcTime)
    release: Mapped[str]
    model: Mapped[str]
    model_hash: Mapped[str]
    origin: Mapped[str]
    versions: Mapped[Json] = mapped_column(JSON)
    detail: Mapped[Json] = mapped_column(JSON)


class CoverageHit(Base):
    """One declared unit (node, block, placement, route, shape bucket) of a run: how often it ran, or why it cannot."""

    __tablename__ = "coverage_hit"
    __table_args__ = (UniqueConstraint("run_id", "path", "kind", "unit"),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    run_id: Mapped[int] = mapped_column(ForeignKey("coverage_run.id", ondelete="CASCADE"))
    path: Mapped[str]
    kind: Mapped[str]
    unit: Mapped[str]
    hits: Mapped[int] = mapped_column(BigId)
    counted: Mapped[bool]
    reason: Mapped[str | None]
    detail: Mapped[Json | None] = mapped_column(JSON)


class Drill(Base):
    """One fault driven through the runtime: eight cells, each true, false or (with a reason in ``why``) null.

    ``path`` is the one that was struck.
    """

    __tablename__ = "drill"
    __table_args__ = (Index(None, "failure_class", "phase", "at"), Index(None, "release", "at"))

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    run_id: Mapped[int | None] = mapped_column(ForeignKey("coverage_run.id"))
    at: Mapped[datetime] = mapped_column(UtcTime)
    release: Mapped[str]
    model: Mapped[str]
    model_hash: Mapped[str]
    fault: Mapped[str]
    failure_class: Mapped[str]
    phase: Mapped[str]
    path: Mapped[str]
    isolation: Mapped[str]
    passed: Mapped[bool]
    cells: Mapped[Json] = mapped_column(JSON)
    why: Mapped[Json] = mapped_column(JSON)
    requests: Mapped[int]
    unanswered: Mapped[int]
    wrong: Mapped[int]
    seconds: Mapped[float] = mapped_column(Double)
    versions: Mapped[Json] = mapped_column(JSON)
