"""Attempts: formats, corrections, and rows that cannot be read."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import select

from crashpath.ingest.attempts import Loaded, load_attempts, read_attempts
from crashpath.ingest.store import Store
from crashpath.ingest.store_errors import BadAttempts
from crashpath.ingest.tables_evidence import Attempts

NOW = datetime(2026, 2, 1, tzinfo=UTC)
ROWS = [
    {"unit": "deployment", "day": "2026-01-30", "release": "2.0", "platform": "k8s", "attempts": 1200, "failures": 7},
    {"unit": "request", "day": "2026-01-31", "release": "2.0", "path": "ort", "attempts": 3_000_000_000, "users": 12},
]
CSV = (
    "unit,day,release,platform,path,attempts,failures,users\n"
    "deployment,2026-01-30,2.0,k8s,,1200,7,\n"
    "request,2026-01-31,2.0,,ort,3000000000,,12\n"
)


def _files(folder: Path) -> list[Path]:
    (folder / "a.csv").write_text("\ufeff" + CSV, encoding="utf-8")
    (folder / "a.jsonl").write_text("\n\n".join(json.dumps(row) for row in ROWS))
    table = pa.Table.from_pylist([{"platform": None, "path": None, "failures": None, "users": None, **r} for r in ROWS])
    days = pa.array([date.fromisoformat(r["day"]) for r in ROWS])  # type: ignore[arg-type]
    pq.write_table(table.set_column(table.column_names.index("day"), "day", days), folder / "a.parquet")
    return [folder / name for name in ("a.csv", "a.jsonl", "a.parquet")]


def test_three_formats_say_the_same(tmp_path: Path) -> None:
    """CSV (with a byte order mark), JSONL and Parquet of the same numbers give the same rows; gaps are unknown."""
    first, *others = (read_attempts(str(path)) for path in _files(tmp_path))
    assert all(other == first for other in others)
    assert first[0].key == ("deployment", date(2026, 1, 30), "2.0", "k8s", "unknown", "unknown")
    assert (first[0].failures, first[0].users, first[1].users, first[1].attempts) == (7, None, 12, 3_000_000_000)


def test_loading_again_changes_nothing_and_corrections_are_kept(any_store: Store, tmp_path: Path) -> None:
    """The same file twice is one set of rows; a correction replaces the numbers and keeps the old ones."""
    path = _files(tmp_path)[0]
    assert load_attempts(any_store, str(path), now=NOW) == Loaded(2, 2, 0)
    assert load_attempts(any_store, str(path), now=NOW) == Loaded(2, 0, 0)
    path.write_text(CSV.replace("1200,7", "1300,8"))
    assert load_attempts(any_store, str(path), now=NOW) == Loaded(2, 0, 1)
    with any_store.read() as session:
        row = session.scalars(select(Attempts).where(Attempts.unit == "deployment")).one()
        assert (row.attempts, row.failures) == (1300, 8)
        assert [(h["attempts"], h["failures"], h["origin"]) for h in row.history] == [(1200, 7, "a.csv")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("deploy,2026-01-30,2.0,,,1,,", r"row 2: unit is 'deploy'"),
        ("load,30.01.2026,2.0,,,1,,", r"row 2: day is '30.01.2026'"),
        ("load,,2.0,,,1,,", r"row 2: day is ''"),
        ("load,2026-01-30,2.0,,,-1,,", r"row 2: attempts is '-1'"),
        ("load,2026-01-30,2.0,,,,,", r"row 2: attempts is empty"),
        ("load,2026-01-30,2.0,,,1.5,,", r"row 2: attempts is '1.5'"),
        ("load,2026-01-30,2.0,,,inf,,", r"row 2: attempts is 'inf'"),
        ("load,2026-01-30,2.0,,,9,x,", r"row 2: failures is 'x'"),
        ("deployment,2026-01-30,2.0,k8s,,5,,", r"rows 1 and 2: the same unit, day and cohort twice"),
    ],
)
def test_bad_rows_are_named_and_nothing_is_stored(store: Store, tmp_path: Path, line: str, said: str) -> None:
    """A row that cannot be read is named by its number, with advice, and no row of its file is stored."""
    path = tmp_path / "a.csv"
    path.write_text(CSV.splitlines()[0] + "\n" + CSV.splitlines()[1] + "\n" + line + "\n")
    with pytest.raises(BadAttempts, match=said) as caught:
        load_attempts(store, str(path), now=NOW)
    assert caught.value.advice
    with store.read() as session:
        assert session.scalars(select(Attempts)).all() == []


def test_files_that_are_none(store: Store, tmp_path: Path) -> None:
    """A missing file, another suffix, no header, broken JSON, a text called .parquet: one sentence each."""
    for name, content in (
        ("none.csv", None),
        ("a.txt", "x"),
        ("b.csv", "1,2,3\n"),
        ("c.jsonl", "{not json}\n"),
        ("d.jsonl", "[1]\n"),
        ("e.parquet", "not parquet"),
        ("f.csv", b"\xff\xfe\x00"),
    ):
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(BadAttempts) as caught:
            load_attempts(store, str(path), now=NOW)
        assert name in caught.value.sentence


def test_an_empty_file_is_no_row(store: Store, tmp_path: Path) -> None:
    """A header without rows loads nothing and says so."""
    path = tmp_path / "a.csv"
    path.write_text(CSV.splitlines()[0] + "\n")
    assert load_attempts(store, str(path), now=NOW) == Loaded(0, 0, 0)
