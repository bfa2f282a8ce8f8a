"""Decisions, reviews, coverage and drills."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "review",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("release", sa.String(), nullable=False),
        sa.Column("baseline", sa.String(), nullable=True),
        sa.Column("unit", sa.String(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("look", sa.Integer(), nullable=False),
        sa.Column("policy", sa.JSON(), nullable=False),
        sa.Column("state", sa.JSON(), nullable=False),
        sa.Column("report", sa.JSON(), nullable=False),
        sa.CheckConstraint("verdict in ('GO', 'NO-GO', 'HOLD')", name=op.f("ck_review_verdict")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_review")),
    )
    op.create_index(op.f("ix_review_release_at"), "review", ["release", "at"], unique=False)
    op.create_table(
        "decision",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("who", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("cluster_id", sa.Integer(), nullable=True),
        sa.Column("other_id", sa.Integer(), nullable=True),
        sa.Column("review_id", sa.Integer(), nullable=True),
        sa.Column("signatures", sa.JSON(), nullable=False),
        sa.Column("value", sa.String(), nullable=True),
        sa.Column("why", sa.String(), nullable=True),
        sa.Column("before", sa.JSON(), nullable=False),
        sa.Column("undoes_id", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["cluster_id"], ["cluster.id"], name=op.f("fk_decision_cluster_id_cluster")),
        sa.ForeignKeyConstraint(["other_id"], ["cluster.id"], name=op.f("fk_decision_other_id_cluster")),
        sa.ForeignKeyConstraint(["review_id"], ["review.id"], name=op.f("fk_decision_review_id_review")),
        sa.ForeignKeyConstraint(["undoes_id"], ["decision.id"], name=op.f("fk_decision_undoes_id_decision")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_decision")),
    )
    op.create_index(op.f("ix_decision_cluster_id_at"), "decision", ["cluster_id", "at"], unique=False)
    op.create_table(
        "coverage_run",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("release", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("model_hash", sa.String(), nullable=False),
        sa.Column("origin", sa.String(), nullable=False),
        sa.Column("versions", sa.JSON(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_coverage_run")),
    )
    op.create_index(op.f("ix_coverage_run_release_at"), "coverage_run", ["release", "at"], unique=False)
    op.create_table(
        "coverage_hit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("unit", sa.String(), nullable=False),
        sa.Column("hits", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("counted", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.String(), nullable=True),
        sa.Column("detail", sa.JSON(), nullable=True),
        sa.ForeignKeyConstraint(
            ["run_id"], ["coverage_run.id"], name=op.f("fk_coverage_hit_run_id_coverage_run"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_coverage_hit")),
        sa.UniqueConstraint("run_id", "path", "kind", "unit", name=op.f("uq_coverage_hit_run_id_path_kind_unit")),
    )
    op.create_table(
        "drill",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("release", sa.String(), nullable=False),
        sa.Column("model", sa.String(), nullable=False),
        sa.Column("model_hash", sa.String(), nullable=False),
        sa.Column("fault", sa.String(), nullable=False),
        sa.Column("failure_class", sa.String(), nullable=False),
        sa.Column("phase", sa.String(), nullable=False),
        sa.Column("isolation", sa.String(), nullable=False),
        sa.Column("passed", sa.Boolean(), nullable=False),
        sa.Column("cells", sa.JSON(), nullable=False),
        sa.Column("why", sa.JSON(), nullable=False),
        sa.Column("requests", sa.Integer(), nullable=False),
        sa.Column("unanswered", sa.Integer(), nullable=False),
        sa.Column("wrong", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("versions", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["coverage_run.id"], name=op.f("fk_drill_run_id_coverage_run")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_drill")),
    )
    op.create_index(op.f("ix_drill_failure_class_phase_at"), "drill", ["failure_class", "phase", "at"], unique=False)
    op.create_index(op.f("ix_drill_release_at"), "drill", ["release", "at"], unique=False)


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("drill")
    op.drop_table("coverage_hit")
    op.drop_table("coverage_run")
    op.drop_table("decision")
    op.drop_table("review")
