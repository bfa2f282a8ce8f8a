"""Tables that a night writes: nights, sources, crashes and what was made of them, clusters.

Attempts, what people decided and what was proven of the two paths are in ``tables_evidence``. A crash points at
its variant and a variant at its signature, so a new signature algorithm re-keys variants and leaves
crashes alone. ``crash_daily`` counts crashes by day, cohort and signature: trends stay quick whatever
the number of crashes.
"""

from __future__ import annotations

from datetime import date, datetime

from sqlalchemy import JSON, CheckConstraint, Date, Double, ForeignKey, Index, LargeBinary, String, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from crashpath.ingest.schema import Base, BigId, Json, UtcTime


class Project(Base):
    """The one row about this store: when it began, the secret of its host hashes, the encoder it is tied to."""

    __tablename__ = "project"

    id: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(UtcTime)
    host_secret: Mapped[str]
    encoder_id: Mapped[str | None]


class Lease(Base):
    """Who may write a night now. The row stays; a holder that stopped beating loses it."""

    __tablename__ = "lease"

    name: Mapped[str] = mapped_column(primary_key=True)
    host: Mapped[str]
    pid: Mapped[int]
    born: Mapped[float] = mapped_column(Double)
    token: Mapped[str]
    acquired_at: Mapped[datetime] = mapped_column(UtcTime)
    heartbeat_at: Mapped[datetime] = mapped_column(UtcTime)
    expires_at: Mapped[datetime] = mapped_column(UtcTime)


class Night(Base):
    """One run of the nightly job."""

    __tablename__ = "night"
    __table_args__ = (CheckConstraint("status in ('running', 'complete', 'partial', 'failed')", name="status"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    started_at: Mapped[datetime] = mapped_column(UtcTime)
    finished_at: Mapped[datetime | None] = mapped_column(UtcTime)
    status: Mapped[str]
    reason: Mapped[str | None]
    holder: Mapped[str]
    counts: Mapped[Json] = mapped_column(JSON)
    seconds: Mapped[Json] = mapped_column(JSON)
    versions: Mapped[Json] = mapped_column(JSON)


class Source(Base):
    """Ledger of what was read, and how far. Paths are kept redacted; ``*_key`` columns are keyed hashes for matching.

    ``offset`` is the last checkpoint: every record before it is stored. ``seen`` is the end of what was
    read, ``size`` and ``mtime`` those of the file when it was last read to its end (``None`` until then).
    ``tail_hash`` is that of the ``tail_len`` decoded bytes that end at ``tail_end``, the furthest that was read.
    """

    __tablename__ = "source"
    __table_args__ = (
        Index(None, "host_key", "head_hash"),
        Index(None, "host_key", "path_key"),
        Index(None, "host_key", "inode"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    path: Mapped[str]
    path_key: Mapped[str]
    family_key: Mapped[str]
    stem_key: Mapped[str]
    host_key: Mapped[str]
    inode: Mapped[int | None] = mapped_column(BigId)
    head_hash: Mapped[str]
    head_len: Mapped[int]
    generation: Mapped[int]
    compressed: Mapped[bool]
    offset: Mapped[int] = mapped_column(BigId)
    seen: Mapped[int] = mapped_column(BigId)
    tail_end: Mapped[int | None] = mapped_column(BigId)
    tail_len: Mapped[int | None]
    tail_hash: Mapped[str | None]
    size: Mapped[int | None] = mapped_column(BigId)
    mtime: Mapped[datetime | None] = mapped_column(UtcTime)
    first_night_id: Mapped[int] = mapped_column(ForeignKey("night.id"))
    last_night_id: Mapped[int] = mapped_column(ForeignKey("night.id"))
    superseded: Mapped[bool]
    problem: Mapped[str | None]


class Quarantine(Base):
    """What could not be decoded: reason, place, hash and a redacted preview, never the raw bytes."""

    __tablename__ = "quarantine"
    __table_args__ = (UniqueConstraint("source_id", "offset"),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    source_id: Mapped[int] = mapped_column(ForeignKey("source.id"))
    offset: Mapped[int] = mapped_column(BigId)
    end: Mapped[int] = mapped_column(BigId)
    night_id: Mapped[int] = mapped_column(ForeignKey("night.id"), index=True)
    touched_id: Mapped[int] = mapped_column(ForeignKey("night.id"))
    at: Mapped[datetime] = mapped_column(UtcTime)
    reason: Mapped[str]
    sha256: Mapped[str]
    preview: Mapped[str]


class Cluster(Base):
    """A group of signatures whose id outlives every refit. ``name`` is a person's, ``label`` the machine's."""

    __tablename__ = "cluster"
    __table_args__ = (
        CheckConstraint("status in ('active', 'merged', 'retired')", name="status"),
        Index(None, "failure_class"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str | None]
    label: Mapped[str]
    status: Mapped[str]
    merged_into: Mapped[int | None] = mapped_column(ForeignKey("cluster.id"))
    created_at: Mapped[datetime] = mapped_column(UtcTime)
    night_id: Mapped[int | None] = mapped_column(ForeignKey("night.id"))
    encoder_id: Mapped[str]
    spread: Mapped[float | None] = mapped_column(Double)
    failure_class: Mapped[str]
    probability: Mapped[float | None] = mapped_column(Double)
    class_by: Mapped[str]
    evidence: Mapped[list[str]] = mapped_column(JSON)
    assignee: Mapped[str | None]
    resolved_in: Mapped[str | None]
    muted_until: Mapped[datetime | None] = mapped_column(UtcTime)
    ticket: Mapped[str | None]


class Signature(Base):
    """One signature of one algorithm, the text that is embedded for it, and the cluster it belongs to."""

    __tablename__ = "signature"
    __table_args__ = (Index(None, "cluster_id"),)

    id: Mapped[str] = mapped_column(String(64), primary_key=True)
    algorithm: Mapped[str]
    text: Mapped[str]
    tree: Mapped[Json] = mapped_column(JSON)
    root_type: Mapped[str]
    root_message: Mapped[str]
    cue_class: Mapped[str | None]
    first_seen: Mapped[datetime] = mapped_column(UtcTime)
    last_seen: Mapped[datetime] = mapped_column(UtcTime)
    night_id: Mapped[int] = mapped_column(ForeignKey("night.id"))
    cluster_id: Mapped[int | None] = mapped_column(ForeignKey("cluster.id"))
    joined_at: Mapped[datetime | None] = mapped_column(UtcTime)
    joined_by: Mapped[str | None]
    why: Mapped[Json | None] = mapped_column(JSON)
    is_exemplar: Mapped[bool]
    map_x: Mapped[float | None] = mapped_column(Double)
    map_y: Mapped[float | None] = mapped_column(Double)


class Variant(Base):
    """One distinct redacted input of the signature; ``key`` is the hash of its content."""

    __tablename__ = "variant"
    __table_args__ = (UniqueConstraint("key"), Index(None, "signature_id"))

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    key: Mapped[str] = mapped_column(String(40))
    signature_id: Mapped[str] = mapped_column(ForeignKey("signature.id"))
    chain: Mapped[list[str]] = mapped_column(JSON)
    root_type: Mapped[str]
    root_message: Mapped[str]
    frames: Mapped[list[list[str | bool]]] = mapped_column(JSON)


class Crash(Base):
    """One failure that a source told of. ``night_id`` stored it first, ``touched_id`` wrote it last.

    ``process_key`` is the keyed hash of who wrote it (process, pod), where its lines say so. ``unit`` (what was tried)
    and ``outcome`` (``contained``, ``unanswered``) are told by the runtime's events alone.
    """

    __tablename__ = "crash"
    __table_args__ = (
        UniqueConstraint("source_id", "offset"),
        Index(None, "variant_id"),
        Index(None, "day", "release"),
        Index(None, "attempt_id"),
        Index(None, "process_key", "host_key"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    source_id: Mapped[int] = mapped_column(ForeignKey("source.id"))
    offset: Mapped[int] = mapped_column(BigId)
    end: Mapped[int] = mapped_column(BigId)
    night_id: Mapped[int] = mapped_column(ForeignKey("night.id"))
    touched_id: Mapped[int] = mapped_column(ForeignKey("night.id"))
    at: Mapped[datetime] = mapped_column(UtcTime)
    day: Mapped[date] = mapped_column(Date)
    at_inferred: Mapped[bool]
    release: Mapped[str]
    platform: Mapped[str]
    host_key: Mapped[str | None]
    model: Mapped[str]
    path: Mapped[str]
    phase: Mapped[str]
    attempt_id: Mapped[str | None]
    process_key: Mapped[str | None]
    unit: Mapped[str | None]
    outcome: Mapped[str | None]
    format: Mapped[str]
    signal: Mapped[str | None]
    exit_code: Mapped[int | None]
    root_rule: Mapped[str]
    cue_class: Mapped[str | None]
    variant_id: Mapped[int] = mapped_column(ForeignKey("variant.id"))
    truncated: Mapped[bool]
    redactions: Mapped[int]


class CrashDaily(Base):
    """Crashes by day, cohort and signature; kept in step with ``crash`` in the same transaction.

    The index has all columns: sums by signature under any filter are read from it in its order, in a third of the time.
    """

    __tablename__ = "crash_daily"
    __table_args__ = (
        Index(
            "ix_crash_daily_by_signature",
            "signature_id", "day", "release", "platform", "path", "phase", "model", "crashes",
        ),
        {"sqlite_with_rowid": False},
    )  # fmt: skip

    day: Mapped[date] = mapped_column(Date, primary_key=True)
    release: Mapped[str] = mapped_column(primary_key=True)
    platform: Mapped[str] = mapped_column(primary_key=True)
    model: Mapped[str] = mapped_column(primary_key=True)
    path: Mapped[str] = mapped_column(primary_key=True)
    phase: Mapped[str] = mapped_column(primary_key=True)
    signature_id: Mapped[str] = mapped_column(ForeignKey("signature.id"), primary_key=True)
    crashes: Mapped[int] = mapped_column(BigId)


class Exemplar(Base):
    """Redacted text of one crash (zstd), with one letter a line for its role; the first K a signature and release."""

    __tablename__ = "exemplar"
    __table_args__ = (UniqueConstraint("crash_id"), Index(None, "signature_id", "release"))

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    crash_id: Mapped[int] = mapped_column(ForeignKey("crash.id", ondelete="CASCADE"))
    signature_id: Mapped[str] = mapped_column(ForeignKey("signature.id"))
    release: Mapped[str]
    root_line: Mapped[int]
    text: Mapped[bytes] = mapped_column(LargeBinary)
    roles: Mapped[bytes] = mapped_column(LargeBinary)


class Embedding(Base):
    """Vector of one text under one encoder: little-endian float32. The first one stored wins."""

    __tablename__ = "embedding"

    encoder_id: Mapped[str] = mapped_column(primary_key=True)
    text_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    vector: Mapped[bytes] = mapped_column(LargeBinary)


class ClusterEvent(Base):
    """Lineage: what happened to a cluster, and why."""

    __tablename__ = "cluster_event"
    __table_args__ = (Index(None, "cluster_id", "at"),)

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    at: Mapped[datetime] = mapped_column(UtcTime)
    night_id: Mapped[int | None] = mapped_column(ForeignKey("night.id"))
    kind: Mapped[str]
    cluster_id: Mapped[int] = mapped_column(ForeignKey("cluster.id"))
    other_id: Mapped[int | None] = mapped_column(ForeignKey("cluster.id"))
    signature_id: Mapped[str | None] = mapped_column(ForeignKey("signature.id"))
    detail: Mapped[Json] = mapped_column(JSON)
