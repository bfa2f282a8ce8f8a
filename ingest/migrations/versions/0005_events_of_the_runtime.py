"""Events of the runtime: attempts that add up, and what they tell of a crash."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_COHORT = ["unit", "day", "release", "platform", "model", "path"]


def upgrade() -> None:
    """Add the columns and the table; all attempts so far came from files."""
    big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.add_column("crash", sa.Column("process_key", sa.String(), nullable=True))
    op.add_column("crash", sa.Column("unit", sa.String(), nullable=True))
    with op.batch_alter_table("attempts") as table:
        table.add_column(sa.Column("via", sa.String(), nullable=False, server_default="file"))
        table.add_column(sa.Column("rerouted", big, nullable=True))
        table.drop_constraint("uq_attempts_cohort", type_="unique")
        table.create_unique_constraint("uq_attempts_cohort", ["via", *_COHORT])
        table.create_check_constraint(op.f("ck_attempts_via"), "via in ('file', 'events')")
    with op.batch_alter_table("attempts") as table:
        table.alter_column("via", existing_type=sa.String(), server_default=None)
    op.create_table(
        "event_batch",
        sa.Column("batch_hash", sa.String(), nullable=False),
        sa.Column("night_id", sa.Integer(), nullable=False),
        sa.Column("unit", sa.String(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("attempts", big, nullable=False),
        sa.ForeignKeyConstraint(["night_id"], ["night.id"], name=op.f("fk_event_batch_night_id_night")),
        sa.PrimaryKeyConstraint("batch_hash", name=op.f("pk_event_batch")),
    )


def downgrade() -> None:
    """Drop them; sums of events go, because an older release would take them for a file's."""
    op.drop_table("event_batch")
    op.execute("DELETE FROM attempts WHERE via = 'events'")
    with op.batch_alter_table("attempts") as table:
        table.drop_constraint("uq_attempts_cohort", type_="unique")
        table.drop_constraint(op.f("ck_attempts_via"), type_="check")
        table.create_unique_constraint("uq_attempts_cohort", _COHORT)
        table.drop_column("rerouted")
        table.drop_column("via")
    for name in ("unit", "process_key"):
        op.drop_column("crash", name)
