"""A kernel's line and an event of one death are found by who died."""

from __future__ import annotations

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the index."""
    op.create_index(op.f("ix_crash_process_key_host_key"), "crash", ["process_key", "host_key"])


def downgrade() -> None:
    """Drop the index."""
    op.drop_index(op.f("ix_crash_process_key_host_key"), "crash")
