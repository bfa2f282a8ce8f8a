"""What a review counts: failed attempts by day, who was heard, what was told; devices beside users."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_COHORT = ("release", "platform", "model")
_CRASH = sa.table("crash", sa.column("day", sa.Date))
_STALE = sa.table("stale_day", sa.column("day", sa.Date), sa.column("touched", sa.BigInteger))


def upgrade() -> None:
    """Add them; every day with a crash is to be counted."""
    big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    time = sa.DateTime(timezone=True)
    op.add_column("attempts", sa.Column("devices", big, nullable=True))
    counts = [sa.Column(name, big, nullable=False) for name in ("attempts", "unanswered", "contained", "witnesses")]
    op.create_table(
        "failed_daily",
        sa.Column("release", sa.String(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        *(sa.Column(name, sa.String(), nullable=False) for name in ("unit", "platform", "model", "signature_id")),
        *counts,
        sa.PrimaryKeyConstraint(
            "release", "day", "unit", "platform", "model", "signature_id", name=op.f("pk_failed_daily")
        ),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_failed_daily_day"), "failed_daily", ["day"])
    op.create_table(
        "stale_day",
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("touched", big, nullable=False),
        sa.PrimaryKeyConstraint("day", name=op.f("pk_stale_day")),
    )
    op.create_table(
        "heard",
        *(sa.Column(name, sa.String(), nullable=False) for name in ("origin_key", *_COHORT)),
        sa.Column("first_at", time, nullable=False),
        sa.Column("last_at", time, nullable=False),
        sa.PrimaryKeyConstraint("origin_key", *_COHORT, name=op.f("pk_heard")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_heard_release"), "heard", ["release"])
    _told(big, time)
    days = sa.select(_CRASH.c.day, sa.literal(1)).distinct()
    op.get_bind().execute(sa.insert(_STALE).from_select(["day", "touched"], days))


def _told(big: sa.types.TypeEngine[int], time: sa.DateTime) -> None:
    op.create_table(
        "told",
        sa.Column("id", big, nullable=False),
        *(sa.Column(name, sa.String(), nullable=False) for name in ("thing", "place", "kind")),
        sa.Column("cluster_id", sa.Integer(), nullable=True),
        sa.Column("night_id", sa.Integer(), nullable=True),
        sa.Column("noticed_at", time, nullable=False),
        sa.Column("told_at", time, nullable=True),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("sentence", sa.String(), nullable=False),
        sa.CheckConstraint("state in ('waiting', 'sending', 'told')", name=op.f("ck_told_state")),
        sa.ForeignKeyConstraint(["cluster_id"], ["cluster.id"], name=op.f("fk_told_cluster_id_cluster")),
        sa.ForeignKeyConstraint(["night_id"], ["night.id"], name=op.f("fk_told_night_id_night")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_told")),
        sa.UniqueConstraint("thing", "place", name=op.f("uq_told_thing_place")),
    )
    op.create_index(op.f("ix_told_place_state"), "told", ["place", "state"])


def downgrade() -> None:
    """Drop them."""
    for table in ("told", "heard", "stale_day", "failed_daily"):
        op.drop_table(table)
    op.drop_column("attempts", "devices")
