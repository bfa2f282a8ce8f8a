"""Each traced run once: the id that its file has, in a column that knows no two of them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_RUN = sa.table("coverage_run", sa.column("id", sa.Integer), sa.column("run", sa.String), sa.column("detail", sa.JSON))
_HIT = sa.table("coverage_hit", sa.column("run_id", sa.Integer))


def upgrade() -> None:
    """Add the column, fill it from the detail of traced runs, and let go of runs that two writers stored at once.

    The table is not made anew: on SQLite its hits would go with it.
    """
    op.add_column("coverage_run", sa.Column("run", sa.String(), nullable=True))
    connection = op.get_bind()
    known: set[str] = set()
    for id, detail in connection.execute(sa.select(_RUN.c.id, _RUN.c.detail).order_by(_RUN.c.id)).all():
        run = detail.get("run") if isinstance(detail, dict) else None
        if not isinstance(run, str):
            continue
        if run in known:
            connection.execute(sa.delete(_HIT).where(_HIT.c.run_id == id))
            connection.execute(sa.delete(_RUN).where(_RUN.c.id == id))
        else:
            connection.execute(sa.update(_RUN).where(_RUN.c.id == id).values(run=run))
        known.add(run)
    op.create_index(op.f("ix_coverage_run_run"), "coverage_run", ["run"], unique=True)


def downgrade() -> None:
    """Drop the column; the id stays in the detail."""
    op.drop_index(op.f("ix_coverage_run_run"), "coverage_run")
    op.drop_column("coverage_run", "run")
