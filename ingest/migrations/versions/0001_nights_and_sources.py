"""Nights, sources, quarantine and attempts."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "project",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("host_secret", sa.String(), nullable=False),
        sa.Column("encoder_id", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project")),
    )
    op.create_table(
        "lease",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("host", sa.String(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("born", sa.Double(), nullable=False),
        sa.Column("token", sa.String(), nullable=False),
        sa.Column("acquired_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_lease")),
    )
    op.create_table(
        "night",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("holder", sa.String(), nullable=False),
        sa.Column("counts", sa.JSON(), nullable=False),
        sa.Column("seconds", sa.JSON(), nullable=False),
        sa.Column("versions", sa.JSON(), nullable=False),
        sa.CheckConstraint("status in ('running', 'complete', 'partial', 'failed')", name=op.f("ck_night_status")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_night")),
    )
    op.create_table(
        "source",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("path_key", sa.String(), nullable=False),
        sa.Column("family_key", sa.String(), nullable=False),
        sa.Column("stem_key", sa.String(), nullable=False),
        sa.Column("host_key", sa.String(), nullable=False),
        sa.Column("inode", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("head_hash", sa.String(), nullable=False),
        sa.Column("head_len", sa.Integer(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("compressed", sa.Boolean(), nullable=False),
        sa.Column("offset", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("seen", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("size", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("mtime", sa.DateTime(timezone=True), nullable=True),
        sa.Column("first_night_id", sa.Integer(), nullable=False),
        sa.Column("last_night_id", sa.Integer(), nullable=False),
        sa.Column("superseded", sa.Boolean(), nullable=False),
        sa.Column("problem", sa.String(), nullable=True),
        sa.ForeignKeyConstraint(["first_night_id"], ["night.id"], name=op.f("fk_source_first_night_id_night")),
        sa.ForeignKeyConstraint(["last_night_id"], ["night.id"], name=op.f("fk_source_last_night_id_night")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_source")),
    )
    op.create_index(op.f("ix_source_host_key_head_hash"), "source", ["host_key", "head_hash"], unique=False)
    op.create_index(op.f("ix_source_host_key_inode"), "source", ["host_key", "inode"], unique=False)
    op.create_index(op.f("ix_source_host_key_path_key"), "source", ["host_key", "path_key"], unique=False)
    op.create_table(
        "quarantine",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("source_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("offset", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("end", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("night_id", sa.Integer(), nullable=False),
        sa.Column("touched_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("sha256", sa.String(), nullable=False),
        sa.Column("preview", sa.String(), nullable=False),
        sa.ForeignKeyConstraint(["night_id"], ["night.id"], name=op.f("fk_quarantine_night_id_night")),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_quarantine_source_id_source")),
        sa.ForeignKeyConstraint(["touched_id"], ["night.id"], name=op.f("fk_quarantine_touched_id_night")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_quarantine")),
        sa.UniqueConstraint("source_id", "offset", name=op.f("uq_quarantine_source_id_offset")),
    )
    op.create_index(op.f("ix_quarantine_night_id"), "quarantine", ["night_id"], unique=False)
    op.create_table(
        "attempts",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("unit", sa.String(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("release", sa.String(), nullable=False),
        sa.Column("platform", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("attempts", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("failures", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("unanswered", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("users", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=True),
        sa.Column("origin", sa.String(), nullable=False),
        sa.Column("recorded_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("history", sa.JSON(), nullable=False),
        sa.CheckConstraint("unit in ('deployment', 'load', 'request')", name=op.f("ck_attempts_unit")),
        sa.CheckConstraint("attempts >= 0", name=op.f("ck_attempts_attempts")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempts")),
        sa.UniqueConstraint("unit", "day", "release", "platform", "model", "path", name="uq_attempts_cohort"),
    )
    op.create_index(op.f("ix_attempts_release_unit_day"), "attempts", ["release", "unit", "day"], unique=False)


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("attempts")
    op.drop_table("quarantine")
    op.drop_table("source")
    op.drop_table("night")
    op.drop_table("lease")
    op.drop_table("project")
