"""Make or change the schema with the packaged Alembic migrations; no alembic.ini is needed."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

#: One key for all crashpath processes of a PostgreSQL database: two that make the schema at once take turns.
_PG_LOCK = 0x0C7A54


def scripts() -> ScriptDirectory:
    """Return the packaged migrations."""
    return ScriptDirectory.from_config(_config())


def migrate(connection: Connection, revision: str = "head") -> None:
    """Bring the schema of an open transaction to ``revision``; the caller commits."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _PG_LOCK})
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, revision)


def _config() -> Config:
    config = Config()
    # Percent signs are interpolated by Alembic's parser, so a folder's own must be doubled.
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config
