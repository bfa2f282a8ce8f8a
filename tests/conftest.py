"""Fixtures that several test modules use."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from crashpath.ingest.store import Store, open_store
from crashpath.ingest.testing import new_database, temporary_postgres

_numbers = itertools.count()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A PostgreSQL of the test run's own; skips where none is installed."""
    try:
        server = temporary_postgres()
        template = server.__enter__()
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    yield template
    server.__exit__(None, None, None)


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """URL of an empty place for a store, on each database in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/crashpath.db"
    return new_database(request.getfixturevalue("postgres_server"), f"store{next(_numbers)}")


@pytest.fixture
def any_store(store_url: str) -> Iterator[Store]:
    """An empty store, on each database in turn."""
    with open_store(store_url) as store:
        yield store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty SQLite store."""
    with open_store(f"sqlite:///{tmp_path}/crashpath.db") as store:
        yield store
