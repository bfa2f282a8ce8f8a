"""Which path a drill struck."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column; which path earlier drills struck is not known."""
    with op.batch_alter_table("drill") as table:
        table.add_column(sa.Column("path", sa.String(), nullable=False, server_default="unknown"))
    with op.batch_alter_table("drill") as table:
        table.alter_column("path", existing_type=sa.String(), server_default=None)


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("drill", "path")
