"""Crashes, what was made of them, and clusters."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "cluster",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=True),
        sa.Column("label", sa.String(), nullable=False),
        sa.Column("status", sa.String(), nullable=False),
        sa.Column("merged_into", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("night_id", sa.Integer(), nullable=True),
        sa.Column("encoder_id", sa.String(), nullable=False),
        sa.Column("spread", sa.Double(), nullable=True),
        sa.Column("failure_class", sa.String(), nullable=False),
        sa.Column("probability", sa.Double(), nullable=True),
        sa.Column("class_by", sa.String(), nullable=False),
        sa.Column("evidence", sa.JSON(), nullable=False),
        sa.Column("assignee", sa.String(), nullable=True),
        sa.Column("resolved_in", sa.String(), nullable=True),
        sa.Column("muted_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ticket", sa.String(), nullable=True),
        sa.CheckConstraint("status in ('active', 'merged', 'retired')", name=op.f("ck_cluster_status")),
        sa.ForeignKeyConstraint(["merged_into"], ["cluster.id"], name=op.f("fk_cluster_merged_into_cluster")),
        sa.ForeignKeyConstraint(["night_id"], ["night.id"], name=op.f("fk_cluster_night_id_night")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cluster")),
    )
    op.create_index(op.f("ix_cluster_failure_class"), "cluster", ["failure_class"], unique=False)
    op.create_table(
        "signature",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("algorithm", sa.String(), nullable=False),
        sa.Column("text", sa.String(), nullable=False),
        sa.Column("tree", sa.JSON(), nullable=False),
        sa.Column("root_type", sa.String(), nullable=False),
        sa.Column("root_message", sa.String(), nullable=False),
        sa.Column("cue_class", sa.String(), nullable=True),
        sa.Column("first_seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("night_id", sa.Integer(), nullable=False),
        sa.Column("cluster_id", sa.Integer(), nullable=True),
        sa.Column("joined_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("joined_by", sa.String(), nullable=True),
        sa.Column("why", sa.JSON(), nullable=True),
        sa.Column("is_exemplar", sa.Boolean(), nullable=False),
        sa.Column("map_x", sa.Double(), nullable=True),
        sa.Column("map_y", sa.Double(), nullable=True),
        sa.ForeignKeyConstraint(["cluster_id"], ["cluster.id"], name=op.f("fk_signature_cluster_id_cluster")),
        sa.ForeignKeyConstraint(["night_id"], ["night.id"], name=op.f("fk_signature_night_id_night")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_signature")),
    )
    op.create_index(op.f("ix_signature_cluster_id"), "signature", ["cluster_id"], unique=False)
    op.create_table(
        "variant",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("key", sa.String(length=40), nullable=False),
        sa.Column("signature_id", sa.String(length=64), nullable=False),
        sa.Column("chain", sa.JSON(), nullable=False),
        sa.Column("root_type", sa.String(), nullable=False),
        sa.Column("root_message", sa.String(), nullable=False),
        sa.Column("frames", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["signature_id"], ["signature.id"], name=op.f("fk_variant_signature_id_signature")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_variant")),
        sa.UniqueConstraint("key", name=op.f("uq_variant_key")),
    )
    op.create_index(op.f("ix_variant_signature_id"), "variant", ["signature_id"], unique=False)
    op.create_table(
        "crash",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("source_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("offset", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("end", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("night_id", sa.Integer(), nullable=False),
        sa.Column("touched_id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("at_inferred", sa.Boolean(), nullable=False),
        sa.Column("release", sa.String(), nullable=False),
        sa.Column("platform", sa.String(), nullable=False),
        sa.Column("host_key", sa.String(), nullable=True),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("phase", sa.String(), nullable=False),
        sa.Column("attempt_id", sa.String(), nullable=True),
        sa.Column("outcome", sa.String(), nullable=True),
        sa.Column("format", sa.String(), nullable=False),
        sa.Column("signal", sa.String(), nullable=True),
        sa.Column("exit_code", sa.Integer(), nullable=True),
        sa.Column("root_rule", sa.String(), nullable=False),
        sa.Column("cue_class", sa.String(), nullable=True),
        sa.Column("variant_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("truncated", sa.Boolean(), nullable=False),
        sa.Column("redactions", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["night_id"], ["night.id"], name=op.f("fk_crash_night_id_night")),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_crash_source_id_source")),
        sa.ForeignKeyConstraint(["touched_id"], ["night.id"], name=op.f("fk_crash_touched_id_night")),
        sa.ForeignKeyConstraint(["variant_id"], ["variant.id"], name=op.f("fk_crash_variant_id_variant")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_crash")),
        sa.UniqueConstraint("source_id", "offset", name=op.f("uq_crash_source_id_offset")),
    )
    op.create_index(op.f("ix_crash_attempt_id"), "crash", ["attempt_id"], unique=False)
    op.create_index(op.f("ix_crash_day_release"), "crash", ["day", "release"], unique=False)
    op.create_index(op.f("ix_crash_variant_id"), "crash", ["variant_id"], unique=False)
    op.create_table(
        "crash_daily",
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("release", sa.String(), nullable=False),
        sa.Column("platform", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("phase", sa.String(), nullable=False),
        sa.Column("signature_id", sa.String(length=64), nullable=False),
        sa.Column("crashes", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(["signature_id"], ["signature.id"], name=op.f("fk_crash_daily_signature_id_signature")),
        sa.PrimaryKeyConstraint(
            "day", "release", "platform", "model", "path", "phase", "signature_id", name=op.f("pk_crash_daily")
        ),
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("ix_crash_daily_signature_id_day_crashes"), "crash_daily", ["signature_id", "day", "crashes"], unique=False
    )
    op.create_table(
        "exemplar",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("crash_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("signature_id", sa.String(length=64), nullable=False),
        sa.Column("release", sa.String(), nullable=False),
        sa.Column("root_line", sa.Integer(), nullable=False),
        sa.Column("text", sa.LargeBinary(), nullable=False),
        sa.Column("roles", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["crash_id"], ["crash.id"], name=op.f("fk_exemplar_crash_id_crash"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["signature_id"], ["signature.id"], name=op.f("fk_exemplar_signature_id_signature")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_exemplar")),
        sa.UniqueConstraint("crash_id", name=op.f("uq_exemplar_crash_id")),
    )
    op.create_index(op.f("ix_exemplar_signature_id_release"), "exemplar", ["signature_id", "release"], unique=False)
    op.create_table(
        "embedding",
        sa.Column("encoder_id", sa.String(), nullable=False),
        sa.Column("text_hash", sa.String(length=64), nullable=False),
        sa.Column("vector", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("encoder_id", "text_hash", name=op.f("pk_embedding")),
    )
    op.create_table(
        "cluster_event",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("night_id", sa.Integer(), nullable=True),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("cluster_id", sa.Integer(), nullable=False),
        sa.Column("other_id", sa.Integer(), nullable=True),
        sa.Column("signature_id", sa.String(length=64), nullable=True),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["cluster_id"], ["cluster.id"], name=op.f("fk_cluster_event_cluster_id_cluster")),
        sa.ForeignKeyConstraint(["night_id"], ["night.id"], name=op.f("fk_cluster_event_night_id_night")),
        sa.ForeignKeyConstraint(["other_id"], ["cluster.id"], name=op.f("fk_cluster_event_other_id_cluster")),
        sa.ForeignKeyConstraint(
            ["signature_id"], ["signature.id"], name=op.f("fk_cluster_event_signature_id_signature")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_cluster_event")),
    )
    op.create_index(op.f("ix_cluster_event_cluster_id_at"), "cluster_event", ["cluster_id", "at"], unique=False)


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("cluster_event")
    op.drop_table("embedding")
    op.drop_table("exemplar")
    op.drop_table("crash_daily")
    op.drop_table("crash")
    op.drop_table("variant")
    op.drop_table("signature")
    op.drop_table("cluster")
