"""An index that has all of ``crash_daily`` by signature, so that whatever is asked of it is read in its order."""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_NAME = "ix_crash_daily_by_signature"
_COLUMNS = ["signature_id", "day", "release", "platform", "path", "phase", "model", "crashes"]
_BEFORE = "ix_crash_daily_signature_id_day_crashes"


def upgrade() -> None:
    """Put it in the place of the one that has days and crashes alone."""
    op.create_index(_NAME, "crash_daily", _COLUMNS)
    op.drop_index(op.f(_BEFORE), table_name="crash_daily")


def downgrade() -> None:
    """Put that one back."""
    op.create_index(op.f(_BEFORE), "crash_daily", ["signature_id", "day", "crashes"])
    op.drop_index(_NAME, table_name="crash_daily")
