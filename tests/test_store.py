"""Opening, refusing, upgrading, copying and checking a store."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text

from crashpath.ingest import migrate, store_errors, upgrade
from crashpath.ingest.store import HEAD, Store, connect, open_store, revision_of
from crashpath.ingest.tables import Night
from crashpath.ingest.tables_evidence import SCHEMA

NOW = datetime(2026, 2, 1, 3, 0, tzinfo=UTC)


def test_models_equal_migrations(any_store: Store) -> None:
    """The migrations make exactly the tables that the models describe, on each database."""
    with any_store.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, SCHEMA) == []


def test_head_is_the_newest_migration() -> None:
    """The revision that the code asks for is the last of the packaged ones, and they are numbered in order."""
    revisions = [script.revision for script in migrate.scripts().walk_revisions()]
    assert revisions[0] == HEAD
    assert revisions == sorted(revisions, reverse=True)


def test_downgrade_and_up_again(store_url: str) -> None:
    """Each migration can be taken back: down to nothing leaves no table, and up again gives the whole schema."""
    from alembic import command

    engine = connect(store_url, create=True)
    with engine.execution_options(crashpath_writer=True).begin() as connection:
        migrate.migrate(connection)
        config = migrate._config()
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
        names = set(connection.dialect.get_table_names(connection))
        assert names == {"alembic_version"}
        migrate.migrate(connection)
    assert revision_of(engine) == HEAD
    engine.dispose()


def test_reopening_keeps_the_secret(store_url: str) -> None:
    """The key of the host hashes is made once, at random, and stays with the store."""
    with open_store(store_url) as first, open_store(store_url) as second:
        assert first.key("node-1") == second.key("node-1") != first.key("node-2")
        assert len(first.host_secret) == 32


def test_two_processes_make_one_store(store_url: str) -> None:
    """Two processes that find no store make one between them, and both can use it."""
    code = "import sys; from crashpath.ingest.store import open_store; print(open_store(sys.argv[1]).host_secret.hex())"
    both = [
        subprocess.Popen([sys.executable, "-c", code, store_url], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=60) for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert said[0][0] == said[1][0]


def test_newer_schema_is_refused(store_url: str) -> None:
    """A store of a newer crashpath is refused in one sentence with advice, by opening and by upgrading."""
    _set_revision(store_url, "9001")
    for use in (lambda: open_store(store_url), lambda: upgrade.upgrade(store_url, now=NOW)):
        with pytest.raises(store_errors.StoreNewer, match=r"newer crashpath \(schema 9001") as caught:
            use()
        assert caught.value.advice


def test_older_schema_asks_for_an_upgrade_which_backs_up(tmp_path: Path) -> None:
    """An older store is not touched by opening it; the upgrade copies it first and keeps its rows."""
    url = f"sqlite:///{tmp_path}/old.db"
    engine = connect(url, create=True)
    with engine.execution_options(crashpath_writer=True).begin() as connection:
        migrate.migrate(connection, "0001")
        connection.execute(text("INSERT INTO project VALUES (1, 'old', '2026-01-01 00:00:00.000000', 'ab12', NULL)"))
    engine.dispose()
    with pytest.raises(store_errors.StoreOutdated, match="crashpath db upgrade"):
        open_store(url)
    done = upgrade.upgrade(url, now=NOW)
    assert (done.old, done.new) == ("0001", HEAD)
    assert done.backup is not None
    kept = sqlite3.connect(done.backup)
    assert kept.execute("SELECT version_num FROM alembic_version").fetchone() == ("0001",)
    kept.close()
    with open_store(url) as store:
        assert store.host_secret == b"\xab\x12"
    assert upgrade.upgrade(url, now=NOW).backup is None


def test_drills_of_an_older_store_have_no_known_path(tmp_path: Path) -> None:
    """A drill that was kept before drills said which path they struck is kept, and its path is unknown."""
    url = f"sqlite:///{tmp_path}/old.db"
    engine = connect(url, create=True)
    with engine.execution_options(crashpath_writer=True).begin() as connection:
        migrate.migrate(connection, "0006")
        connection.execute(
            text(
                "INSERT INTO drill (at, release, model, model_hash, fault, failure_class, phase, isolation, passed, "
                "cells, why, requests, unanswered, wrong, seconds, versions) VALUES ('2026-01-01 00:00:00.000000', '', "
                "'m', 'h', 'f', 'hang', 'infer', 'process', 1, '{}', '{}', 2, 0, 0, 1.0, '{}')"
            )
        )
        connection.execute(text("INSERT INTO project VALUES (1, 'old', '2026-01-01 00:00:00.000000', 'ab12', NULL)"))
    engine.dispose()
    upgrade.upgrade(url, now=NOW)
    with open_store(url) as store, store.read() as session:
        assert session.execute(text("SELECT fault, path FROM drill")).all() == [("f", "unknown")]


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    """A text file, a folder, another program's database, a missing folder: one sentence each, nothing overwritten."""
    (tmp_path / "text.db").write_text("not a database " * 100)
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE songs (id)")
    other.close()
    for name, error in (
        ("text.db", store_errors.NotAStore),
        ("other.db", store_errors.NotAStore),
        (".", store_errors.NotAStore),
        ("no/such.db", store_errors.StoreUnusable),
    ):
        with pytest.raises(error) as caught:
            open_store(f"sqlite:///{tmp_path}/{name}")
        assert "\n" not in str(caught.value)
        assert caught.value.advice
    assert (tmp_path / "text.db").read_text().startswith("not a database")


def test_missing_store_is_not_made_for_a_reader(tmp_path: Path) -> None:
    """With ``create=False`` a missing file stays missing."""
    with pytest.raises(store_errors.StoreMissing, match="crashpath nightly"):
        open_store(f"sqlite:///{tmp_path}/none.db", create=False)
    assert list(tmp_path.iterdir()) == []


def test_unreachable_server_and_bad_url() -> None:
    """A server that does not answer and a URL that is none give a sentence, without the password."""
    with pytest.raises(store_errors.StoreUnusable) as caught:
        open_store("postgresql://someone:hunter2@127.0.0.1:1/x")
    assert "hunter2" not in str(caught.value)
    with pytest.raises(store_errors.StoreUnusable, match="not a database URL"):
        open_store("crashpath.db")


def test_naive_times_are_refused(any_store: Store) -> None:
    """A time without zone cannot be stored; one with a zone comes back as the same moment in UTC."""
    from datetime import timedelta, timezone

    from sqlalchemy.exc import StatementError

    east = datetime(2026, 1, 1, 1, 0, tzinfo=timezone(timedelta(hours=2)))
    with any_store.write() as session:
        session.add(_night(east))
    with any_store.read() as session:
        back = session.get_one(Night, 1).started_at
    assert back == east
    assert back.isoformat() == "2025-12-31T23:00:00+00:00"
    with pytest.raises(StatementError, match="without zone"), any_store.write() as session:
        session.add(_night(datetime(2026, 1, 1)))


def test_foreign_keys_are_enforced(any_store: Store) -> None:
    """A row that points at nothing is refused."""
    from sqlalchemy.exc import IntegrityError

    dangling = (
        "INSERT INTO coverage_hit (run_id, path, kind, unit, hits, counted) VALUES (7, 'main', 'n', 'u', 1, true)"
    )
    with pytest.raises(IntegrityError), any_store.write() as session:
        session.execute(text(dangling))


def test_backup_is_a_whole_store(store: Store, tmp_path: Path) -> None:
    """A copy made while a writer is in the middle of a transaction opens, is sound and has the committed rows only."""
    with store.write() as session:
        session.add(_night(NOW))
    with store.write() as session:
        session.add(_night(NOW))
        session.flush()
        upgrade.backup(store, tmp_path / "copy.db")
    with open_store(f"sqlite:///{tmp_path}/copy.db") as copy:
        assert dict(upgrade.check(copy).rows)["night"] == 1
        assert copy.key("x") == store.key("x")
    assert [p.name for p in tmp_path.glob("*.tmp")] == []


def test_backup_of_a_server_names_its_tool(any_store: Store, tmp_path: Path) -> None:
    """PostgreSQL has its own tool for backups, and the message names it."""
    if any_store.is_sqlite:
        return
    with pytest.raises(store_errors.BackupImpossible, match="pg_dump"):
        upgrade.backup(any_store, tmp_path / "copy")


def test_check_finds_damage(store: Store, tmp_path: Path) -> None:
    """A sound store has no problems; one with a dangling row and one with wrong daily counts are told."""
    assert upgrade.check(store).problems == ()
    raw = sqlite3.connect(tmp_path / "crashpath.db")
    raw.execute("INSERT INTO coverage_hit (run_id, path, kind, unit, hits, counted) VALUES (7, 'main', 'n', 'u', 1, 1)")
    raw.commit()
    raw.close()
    assert any("coverage_hit" in problem for problem in upgrade.check(store).problems)


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    """A store with overwritten pages gives a sentence or a list of problems, never a driver's traceback."""
    open_store(f"sqlite:///{tmp_path}/a.db").close()
    with (tmp_path / "a.db").open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 40_000)
    try:
        with open_store(f"sqlite:///{tmp_path}/a.db") as store:
            told = upgrade.check(store).problems
    except store_errors.StoreError as error:
        told = (error.sentence,)
    assert told


def _night(at: datetime) -> Night:
    return Night(started_at=at, status="complete", holder="x", counts={}, seconds={}, versions={})


def _set_revision(url: str, revision: str) -> None:
    open_store(url).close()
    engine = connect(url, create=False)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :r"), {"r": revision})
    engine.dispose()
