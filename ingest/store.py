"""The store: open it, read from it, write to it.

SQLite (WAL) by default, PostgreSQL by URL. Sessions are opened here, at the edge, and nowhere else:
``store.read()`` for queries, ``store.write()`` for one short transaction that is committed at its end.
On SQLite a writer begins with ``BEGIN IMMEDIATE``: a transaction that reads first and writes later would
fail at once when another writer came between, whatever the busy timeout.
"""

from __future__ import annotations

import hashlib
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect, select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    MultipleResultsFound,
    NoResultFound,
    NoSuchModuleError,
    OperationalError,
)
from sqlalchemy.orm import Session

from crashpath.ingest.store_errors import (
    NotAStore,
    StoreBusy,
    StoreError,
    StoreMissing,
    StoreNewer,
    StoreOutdated,
    StoreReadOnly,
    StoreUnusable,
)
from crashpath.ingest.tables import Project

#: Revision that this code reads and writes; a test holds it to the newest migration.
HEAD = "0011"
#: Milliseconds that a SQLite writer waits for another one. Batches take under half a second each.
BUSY_MS = 10_000
#: Seconds between two looks of a waiting writer.
_LOOK = 0.003
_PROJECT_ID = 1


class Store:
    """An open store of the right schema. ``host_secret`` is the key of its hashes, made at random with the store.

    One that is ``read_only`` refuses every write.
    """

    def __init__(self, engine: Engine, host_secret: bytes, *, read_only: bool = False) -> None:
        self.engine = engine
        self.host_secret = host_secret
        self.read_only = read_only
        self._writer = engine.execution_options(crashpath_writer=True)

    @property
    def is_sqlite(self) -> bool:
        """Whether the store is a SQLite file."""
        return self.engine.dialect.name == "sqlite"

    @property
    def file(self) -> Path | None:
        """The SQLite file; ``None`` for a store on a server."""
        return Path(self.engine.url.database) if self.is_sqlite and self.engine.url.database else None

    def key(self, value: str) -> str:
        """Return the keyed hash of a host or path: 32 hex digits, equal within a store, meaningless outside."""
        return hashlib.blake2b(value.encode("utf-8", "surrogatepass"), key=self.host_secret, digest_size=16).hexdigest()

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Open a session for queries: one consistent snapshot, never blocked by a writer."""
        with spoken(self.engine.url), Session(self.engine) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Open a session for one short transaction; commit at its end, roll back on an error.

        Raises ``StoreReadOnly`` where the store was opened for reading alone.
        """
        if self.read_only:
            raise StoreReadOnly("This store was opened for reading alone.", "Decide where writing is allowed.")
        with spoken(self.engine.url), Session(self._writer, expire_on_commit=False) as session, session.begin():
            yield session

    def close(self) -> None:
        """Let go of all connections."""
        self.engine.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_store(
    url: str, *, create: bool = True, name: str = "crashpath", now: datetime | None = None, read_only: bool = False
) -> Store:
    """Open the store at ``url``, making it (and its schema) when there is none and ``create`` allows it.

    One that is opened ``read_only`` is never made, and every write to it is refused.

    Raises ``StoreMissing``, ``NotAStore``, ``StoreNewer``, ``StoreOutdated`` or ``StoreUnusable``.
    """
    engine = connect(url, create=create and not read_only)
    try:
        with spoken(engine.url):
            state = revision_of(engine)
            if state is None:
                if read_only or not create:
                    raise StoreMissing(
                        f"There is no store at {shown(engine.url)}.", "Run `crashpath nightly LOGS…` first."
                    )
                _make(engine, name, now or datetime.now(UTC))
            else:
                _refuse_other_schema(engine.url, state)
            with Session(engine) as session:
                secret = _secret(session, engine.url)
    except BaseException:
        engine.dispose()
        raise
    return Store(engine, secret, read_only=read_only)


def _secret(session: Session, url: URL) -> bytes:
    """Return the key of the store's hashes. Raises ``NotAStore`` where it is lost: no host or path could be known."""
    try:
        return bytes.fromhex(session.scalars(select(Project.host_secret)).one())
    except (NoResultFound, MultipleResultsFound, ValueError) as error:
        raise NotAStore(f"{shown(url)} is damaged (the key of its hashes is lost).", "Restore a backup.") from error


def connect(url: str, *, create: bool) -> Engine:
    """Make an engine for ``url`` without looking at the schema."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:  # of an address in brackets that is none
        raise StoreUnusable(
            f"{url!r} is not a database URL.", "Use sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME."
        ) from error
    if parsed.drivername in ("postgresql", "postgres"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    if parsed.get_backend_name() == "sqlite":
        return _sqlite(parsed, create)
    try:
        return create_engine(parsed, pool_pre_ping=True)
    except (ImportError, NoSuchModuleError) as error:
        raise StoreUnusable(
            f"The driver of {shown(parsed)} is not installed ({error}).",
            "Install crashpath[postgres], or use sqlite:///FILE.",
        ) from error


def _sqlite(url: URL, create: bool) -> Engine:
    if not url.database or url.database == ":memory:":
        raise StoreUnusable("A store in memory would be gone at once.", "Use sqlite:///FILE.")
    file = Path(url.database)
    if file.is_dir():
        raise NotAStore(f"{file} is a folder.", "Name a file in it: sqlite:///FOLDER/crashpath.db.")
    if not file.exists():
        if not create:
            raise StoreMissing(f"There is no store at {file}.", "Run `crashpath nightly LOGS…` first, or check --db.")
        if not file.parent.is_dir():
            raise StoreUnusable(f"The folder {file.parent} does not exist.", "Make it first, or check --db.")
    engine = create_engine(url, connect_args={"timeout": BUSY_MS / 1000})
    event.listen(engine, "connect", _set_up_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # the driver must not begin by itself: _begin_sqlite does
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
    if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        cursor.execute("PRAGMA journal_mode = WAL")
    # With WAL, NORMAL may lose the last commits when the machine loses power, never part of one: a batch
    # and its offset go together, so the next night reads the batch again.
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA cache_size = -65536")
    cursor.execute("PRAGMA temp_store = MEMORY")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    if not connection.get_execution_options().get("crashpath_writer", False):
        connection.exec_driver_sql("BEGIN")
        return
    # SQLite's own waiting backs off to a look every 100 ms, and beside a night that writes batch after batch it may
    # never look in a gap. Looking every few milliseconds, a person's write gets through between two batches.
    deadline = time.monotonic() + BUSY_MS / 1000
    connection.exec_driver_sql("PRAGMA busy_timeout = 0")
    try:
        while True:
            try:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                return
            except OperationalError as error:
                if "locked" not in str(error.orig) or time.monotonic() > deadline:
                    raise
                time.sleep(_LOOK)
    finally:
        connection.exec_driver_sql(f"PRAGMA busy_timeout = {BUSY_MS}")


def revision_of(engine: Engine) -> str | None:
    """Return the schema's revision, or ``None`` when the database has no table at all."""
    names = set(inspect(engine).get_table_names())
    if "alembic_version" not in names:
        if names:
            raise NotAStore(
                f"{shown(engine.url)} holds other tables and is not a crashpath store.", "Name another one."
            )
        return None
    with engine.connect() as connection:
        revision: Any = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    if revision is None and len(names) > 1:
        raise NotAStore(f"{shown(engine.url)} is damaged (it does not say its schema).", "Restore a backup.")
    return str(revision) if revision is not None else None


def _refuse_other_schema(url: URL, revision: str) -> None:
    refuse_newer(url, revision)
    if revision != HEAD:
        raise StoreOutdated(
            f"{shown(url)} was written by an older crashpath (schema {revision}, this one needs {HEAD}).",
            "Run `crashpath db upgrade`; it makes a backup first.",
        )


def refuse_newer(url: URL, revision: str) -> None:
    """Raise ``StoreNewer`` for a schema that this code cannot know. Revisions are numbered: a newer one sorts after."""
    if revision > HEAD:
        raise StoreNewer(
            f"{shown(url)} was written by a newer crashpath (schema {revision}, this one knows {HEAD}).",
            "Upgrade crashpath, or open another store.",
        )


def _make(engine: Engine, name: str, now: datetime) -> None:
    from crashpath.ingest.migrate import migrate  # Alembic is needed only when a schema is made or changed

    with engine.execution_options(crashpath_writer=True).begin() as connection:
        migrate(connection)
        if connection.execute(select(Project.id)).first() is None:  # another process may have come first
            secret = secrets.token_hex(32)
            connection.execute(
                Project.__table__.insert().values(  # type: ignore[attr-defined]  # typed as FromClause
                    id=_PROJECT_ID, name=name, created_at=now, host_secret=secret, encoder_id=None
                )
            )


def shown(url: URL) -> str:
    """Return a URL as it may be printed: the file's path, or the server without password."""
    return str(url.database) if url.get_backend_name() == "sqlite" else url.render_as_string(hide_password=True)


@contextmanager
def spoken(url: URL) -> Iterator[None]:
    """Turn what a driver raises about the store as such into a ``StoreError``; other errors pass."""
    try:
        yield
    except DBAPIError as error:
        raised = _spoken(url, error)
        if raised is None:
            raise
        raise raised from error


def _spoken(url: URL, error: DBAPIError) -> StoreError | None:
    said = str(error.orig).strip().splitlines()[0] if str(error.orig).strip() else type(error.orig).__name__
    where = shown(url)
    if "not a database" in said or "malformed" in said:
        return NotAStore(
            f"{where} is not a SQLite database, or is damaged ({said}).", "Name another file, or restore a backup."
        )
    if "locked" in said or "lock timeout" in said:
        return StoreBusy(f"{where} was kept locked by another process ({said}).", "Try again when it is done.")
    if isinstance(error, OperationalError) or "read-only" in said:
        return StoreUnusable(f"{where} cannot be used ({said}).", "Check --db, permissions, free space and the server.")
    return None
