"""Alembic's entry: runs on the connection that ``upgrade.migrate`` passes in; there is no alembic.ini."""

from __future__ import annotations

from alembic import context

from crashpath.ingest.tables_evidence import SCHEMA

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=SCHEMA,
    render_as_batch=connection.dialect.name == "sqlite",
    transaction_per_migration=False,
)
context.run_migrations()
