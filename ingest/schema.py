"""What all tables share: base class, constraint names, and a time that is always UTC."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger, DateTime, Integer, MetaData
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase
from sqlalchemy.types import TypeDecorator

#: Every constraint has a name that can be told from its columns, so that a migration can find it again.
NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

#: What a cohort is called when nothing said which it is. It is stored, counted and shown like any other.
UNKNOWN = "unknown"


def may_be(one: str, other: str) -> bool:
    """Whether two parts of cohorts can be one: they are the same, or one of them was not told."""
    return one == other or UNKNOWN in (one, other)


#: 64 bits everywhere; SQLite gives out row ids only for a plain INTEGER.
BigId = BigInteger().with_variant(Integer, "sqlite")

Json = dict[str, Any]


class UtcTime(TypeDecorator[datetime]):
    """A moment, kept as UTC. A datetime without zone is refused, because nobody can know which moment it means."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a time without zone cannot be stored: {value.isoformat()}")
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """Base of all tables; ``Base.metadata`` is the whole schema once the table modules are imported."""

    metadata = MetaData(naming_convention=NAMES)
