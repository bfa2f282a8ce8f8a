"""The end of what was read of a source."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; a source that was read before has none until it is read again."""
    big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.add_column("source", sa.Column("tail_end", big, nullable=True))
    op.add_column("source", sa.Column("tail_len", sa.Integer(), nullable=True))
    op.add_column("source", sa.Column("tail_hash", sa.String(), nullable=True))


def downgrade() -> None:
    """Drop the columns."""
    for name in ("tail_hash", "tail_len", "tail_end"):
        op.drop_column("source", name)
