"""Attempts: formats, corrections, and rows that cannot be read."""

from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import select

from crashpath.ingest.attempts import Loaded, load_attempts, read_attempts
from crashpath.ingest.event_attempts import attempt_counts
from crashpath.ingest.store import Store
from crashpath.ingest.store_errors import BadAttempts
from crashpath.ingest.tables_evidence import Attempts

NOW = datetime(2026, 2, 1, tzinfo=UTC)
ROWS = [
    {"unit": "deployment", "day": "2026-01-30", "release": "2.0", "platform": "k8s", "attempts": 1200, "failures": 7},
    {
        "unit": "request", "day": "2026-01-31", "release": "2.0", "path": "ort", "attempts": 3_000_000_000,
        "users": 12, "devices": 9,
    },
]  # fmt: skip
CSV = (
    "unit,day,release,platform,path,attempts,failures,users,devices\n"
    "deployment,2026-01-30,2.0,k8s,,1200,7,,\n"
    "request,2026-01-31,2.0,,ort,3000000000,,12,9\n"
)


def _files(folder: Path) -> list[Path]:
    (folder / "a.csv").write_text("\ufeff" + CSV, encoding="utf-8")
    (folder / "a.jsonl").write_text("\n\n".join(json.dumps(row) for row in ROWS))
    gaps = dict.fromkeys(("platform", "path", "failures", "users", "devices"))
    table = pa.Table.from_pylist([gaps | row for row in ROWS])
    days = pa.array([date.fromisoformat(r["day"]) for r in ROWS])  # type: ignore[arg-type]
    pq.write_table(table.set_column(table.column_names.index("day"), "day", days), folder / "a.parquet")
    return [folder / name for name in ("a.csv", "a.jsonl", "a.parquet")]


def test_three_formats_say_the_same(tmp_path: Path) -> None:
    """CSV (with a byte order mark), JSONL and Parquet of the same numbers give the same rows; gaps are unknown."""
    first, *others = (read_attempts(str(path)) for path in _files(tmp_path))
    assert all(other == first for other in others)
    assert first[0].key == ("deployment", date(2026, 1, 30), "2.0", "k8s", "unknown", "unknown")
    assert [one.counts for one in first] == [(1200, 7, None, None, None), (3_000_000_000, None, None, 12, 9)]


def test_loading_again_changes_nothing_and_corrections_are_kept(any_store: Store, tmp_path: Path) -> None:
    """The same file twice is one set of rows; a correction replaces the numbers and keeps the old ones."""
    path = _files(tmp_path)[0]
    assert load_attempts(any_store, str(path), now=NOW) == Loaded(2, 2, 0)
    assert load_attempts(any_store, str(path), now=NOW) == Loaded(2, 0, 0)
    path.write_text(CSV.replace("1200,7", "1300,8"))
    assert load_attempts(any_store, str(path), now=NOW) == Loaded(2, 0, 1)
    path.write_text(CSV.replace("1200,7,,", "1300,8,,40"))
    assert load_attempts(any_store, str(path), now=NOW) == Loaded(2, 0, 1)
    with any_store.read() as session:
        row = session.scalars(select(Attempts).where(Attempts.unit == "deployment")).one()
        assert (row.attempts, row.failures, row.devices) == (1300, 8, 40)
        told = [(h["attempts"], h["failures"], h["devices"], h["origin"]) for h in row.history]
        assert told == [(1200, 7, None, "a.csv"), (1300, 8, None, "a.csv")]
        assert [one.devices for one in attempt_counts(session, releases=["2.0"])] == [40, 9]


def test_what_a_review_has_to_speak_of_is_stored(store: Store, tmp_path: Path) -> None:
    """More failures than attempts, no attempts at all, and days to come are kept as they were told."""
    path = tmp_path / "a.csv"
    path.write_text("unit,day,attempts,failures\nload,2026-01-30,5,9\nload,2026-01-31,0,\nload,2999-01-01,7,0\n")
    assert load_attempts(store, str(path), now=NOW) == Loaded(3, 3, 0)
    with store.read() as session:
        told = [(one.day.year, one.attempts, one.failures) for one in attempt_counts(session)]
    assert told == [(2026, 5, 9), (2026, 0, None), (2999, 7, 0)]


def test_which_rows_of_events_a_file_may_include(store: Store) -> None:
    """Each is left out that any row of a file could have in it: same unit and day, no part that differs."""
    rng = random.Random(4)
    rows = {
        (via, rng.choice(("load", "request")), rng.randrange(3), *(rng.choice(("unknown", "a", "b")) for _ in range(4)))
        for via in rng.choices(("file", "events"), weights=(1, 9), k=400)
    }
    names = ("via", "unit", "day", "release", "platform", "model", "path")
    base = {"attempts": 1, "origin": "x", "recorded_at": NOW, "history": []}
    with store.write() as session:
        for row in rows:
            values = dict(zip(names, row, strict=True)) | base
            session.add(Attempts(**values | {"day": NOW.date() + timedelta(days=int(row[2]))}))

    def included(row: tuple[object, ...]) -> bool:
        files = [one for one in rows if one[0] == "file" and one[1:3] == row[1:3]]
        pairs = [zip(one[3:], row[3:], strict=True) for one in files]
        return any(all(a == b or "unknown" in (a, b) for a, b in parts) for parts in pairs)

    expected = {row for row in rows if row[0] == "file" or not included(row)}
    with store.read() as session:
        for wanted in (None, ["a"], ["b", "unknown"]):
            found = {
                (one.via, one.unit, (one.day - NOW.date()).days, one.release, one.platform, one.model, one.path)
                for one in attempt_counts(session, releases=wanted)
            }
            assert found == {row for row in expected if wanted is None or row[3] in wanted}
    assert 20 < len(expected) < len(rows)


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
        ("deployment,2026-01-30,2.0,k8s,,5,,,", r"rows 1 and 2: the same unit, day and cohort twice"),
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


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("relase", "there is no column relase; did you mean release?"),
        ("Release", "there is no column Release; did you mean release?"),
        ("model_name", "there is no column model_name; did you mean model?"),
        ("notes", "there is no column notes."),
    ],
)
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_column_that_is_none_is_refused(tmp_path: Path, suffix: str, column: str, said: str) -> None:
    """A slip in an optional name would store the row under another cohort; the nearest known name is told."""
    row = {"unit": "load", "day": "2026-01-30", "attempts": 5, column: "2.0"}
    path = tmp_path / f"a.{suffix}"
    if suffix == "csv":
        path.write_text(f"{','.join(row)}\n{','.join(str(value) for value in row.values())}\n")
    elif suffix == "jsonl":
        path.write_text(json.dumps(row) + "\n")
    else:
        pq.write_table(pa.Table.from_pylist([row]), path)
    with pytest.raises(BadAttempts) as caught:
        read_attempts(str(path))
    where = f"{path}, row 1" if suffix == "jsonl" else str(path)
    assert caught.value.sentence == f"{where}: {said}"
    assert "optionally release" in str(caught.value.advice)


def test_the_index_of_a_data_frame_is_no_column(tmp_path: Path) -> None:
    """What a data frame writes of its own accord has no name that could be a slip."""
    row = {"unit": "load", "day": "2026-01-30", "attempts": 5}
    (tmp_path / "a.csv").write_text(",unit,day,attempts\n0,load,2026-01-30,5\n")
    pq.write_table(pa.Table.from_pylist([row | {"__index_level_0__": 0}]), tmp_path / "a.parquet")
    first, second = (read_attempts(str(tmp_path / name)) for name in ("a.csv", "a.parquet"))
    assert first == second
    assert [one.attempts for one in first] == [5]


def test_a_row_longer_than_the_line_of_names_is_refused(tmp_path: Path) -> None:
    """The comma in 12,000 would make it 12 attempts."""
    (tmp_path / "a.csv").write_text("unit,day,attempts\nload,2026-01-30,12,000\n")
    with pytest.raises(BadAttempts, match="row 1: more values than columns"):
        read_attempts(str(tmp_path / "a.csv"))


@pytest.mark.parametrize("zone", ["America/New_York", "+09:00", "UTC", None])
def test_the_day_of_a_time_is_the_utc_day(tmp_path: Path, zone: str | None) -> None:
    """A moment is counted on one day, whichever zone a table keeps it in; one without a zone is read as it stands."""
    moments = [datetime(2026, 1, 31, 2, tzinfo=UTC), datetime(2026, 1, 31, 22, tzinfo=UTC)]
    stamps = pa.array(moments, type=pa.timestamp("us", tz="UTC")).cast(pa.timestamp("us", tz=zone))
    columns = {"unit": ["load", "request"], "day": stamps, "attempts": [5, 6]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    assert [one.day for one in read_attempts(str(tmp_path / "a.parquet"))] == [date(2026, 1, 31)] * 2


@pytest.mark.parametrize(
    ("seconds", "zone"), [(0, "Nowhere/Land"), (2**42, None), (-62_135_596_800, "America/New_York")]
)
def test_a_time_that_is_no_day_is_refused(tmp_path: Path, seconds: int, zone: str | None) -> None:
    """A zone that nobody knows and a year that no calendar has are one sentence, never a traceback."""
    stamps = pa.array([seconds], pa.int64()).cast(pa.timestamp("s", tz=zone))
    pq.write_table(pa.table({"unit": ["load"], "day": stamps, "attempts": [5]}), tmp_path / "a.parquet")
    with pytest.raises(BadAttempts, match=r"a\.parquet has a time that cannot be read") as caught:
        read_attempts(str(tmp_path / "a.parquet"))
    assert caught.value.advice


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
@pytest.mark.parametrize("name", ["release", "platform", "model", "path"])
def test_a_fact_that_is_a_number_with_a_point_is_refused(tmp_path: Path, name: str, suffix: str) -> None:
    """2026.10 was made 2026.1 before it came here, another release; a whole number, a text and a gap are taken."""
    path = tmp_path / f"a.{suffix}"

    def written(value: object) -> str:
        row = {"unit": "load", "day": "2026-01-30", "attempts": 5, name: value}
        if suffix == "jsonl":
            path.write_text(json.dumps(row) + "\n")
        else:
            pq.write_table(pa.Table.from_pylist([row]), path)
        return str(path)

    with pytest.raises(BadAttempts, match=rf"row 1: {name} is 2026\.1, not a text") as caught:
        read_attempts(written(2026.10))
    assert "as text" in str(caught.value.advice)
    for value, expected in ((7, "7"), ("2026.10", "2026.10"), (float("nan"), "unknown"), (None, "unknown")):
        (row,) = read_attempts(written(value))
        assert getattr(row, name) == expected


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
