"""Failed attempts summed for a review: a table of them by cohort, and an index that has them by signature."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_INDEX = "ix_failed_daily_release_unit_signature_id_day_attempts"
_KEY = ("release", "day", "unit", "platform", "model")
_COUNTS = ("attempts", "unanswered", "contained")
_DAILY, _COHORTS = (sa.table(name, *map(sa.column, (*_KEY, *_COUNTS))) for name in ("failed_daily", "failed_cohort"))


def upgrade() -> None:
    """Add them; the table is filled from the counts that are there."""
    big = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_index(op.f(_INDEX), "failed_daily", ["release", "unit", "signature_id", "day", "attempts"])
    op.create_table(
        "failed_cohort",
        *(sa.Column(name, sa.Date() if name == "day" else sa.String(), nullable=False) for name in _KEY),
        *(sa.Column(name, big, nullable=False) for name in _COUNTS),
        sa.PrimaryKeyConstraint(*_KEY, name=op.f("pk_failed_cohort")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_failed_cohort_day"), "failed_cohort", ["day"])
    keys = [_DAILY.c[name] for name in _KEY]
    sums = sa.select(*keys, *(sa.func.sum(_DAILY.c[name]) for name in _COUNTS)).group_by(*keys)
    op.get_bind().execute(sa.insert(_COHORTS).from_select([*_KEY, *_COUNTS], sums))


def downgrade() -> None:
    """Drop them."""
    op.drop_table("failed_cohort")
    op.drop_index(op.f(_INDEX), table_name="failed_daily")
