"""Hostile and odd input: no line, name or file may end a night, for it would end every night after it too."""

from __future__ import annotations

import json
import os
import sqlite3
import time
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from crashpath.dashboard.testing import a_night
from crashpath.ingest import analyse
from crashpath.ingest.analyse import Analyser
from crashpath.ingest.clock import parse_stamp
from crashpath.ingest.facts import read_sidecar
from crashpath.ingest.jsonlog import open_json
from crashpath.ingest.opening import kind_of
from crashpath.ingest.read import open_source
from crashpath.ingest.redact import redact
from crashpath.ingest.rules import load_rules
from crashpath.ingest.split import SplitOptions, one_record
from crashpath.ingest.store import open_store
from crashpath.ingest.store_errors import NotAStore
from crashpath.ingest.unpack import DamagedArchiveError, DeniedSourceError

TRACE = b'Traceback (most recent call last):\n  File "/app/x.py", line 3, in f\n    g()\nValueError: bad thing\n'
LATEST = datetime(2026, 1, 1, tzinfo=UTC)
SECONDS = 20.0
"""Far more than any text here takes (under one), far less than one that costs its square (minutes)."""


@pytest.mark.parametrize(
    "text",
    ["2024-01-01 10:00:00+99:99", "2024-01-01 10:00:00 +24:00", "2024-01-01T10:00:00.²", "2024-01-01 10:00:00.12²"],
)
def test_what_is_no_time_is_none_and_never_an_error(text: str) -> None:
    """Rule: a stamp of impossible zone or digits is no stamp; it raises nothing."""
    assert parse_stamp(text, tz=UTC, latest=LATEST) is None


def test_the_end_of_the_calendar_is_a_bound_like_any_other() -> None:
    """Rule: a stamp without year is read even where no day comes after the latest one."""
    latest = datetime(9999, 12, 31, 12, tzinfo=UTC)
    assert parse_stamp("Jan  1 10:00:00", tz=UTC, latest=latest) == datetime(9999, 1, 1, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    "fields",
    [
        {"PRIORITY": "²"},
        {"PRIORITY": "9" * 4000},
        {"exception": [{"exc_type": "E", "frames": 5}]},
        {"exception": [{"exc_type": None, "frames": [5, None, {"lineno": {}}]}]},
        {"level": 10**300, "timestamp": 10**300, "host": ["a"]},
    ],
)
def test_json_of_any_shape_is_read(fields: dict[str, object]) -> None:
    """Rule: whatever types the fields of a JSON line have, its message is read."""
    inside = open_json(json.dumps({"message": "ValueError: x"} | fields))
    assert inside is not None
    assert inside.text.startswith("ValueError: x")


def test_a_sidecar_of_any_content_is_survived(tmp_path: Path) -> None:
    """Rule: a sidecar nested too deep, or a pipe in its place, tells nothing; one with a mark (BOM) is read."""
    log = tmp_path / "a.log"
    beside = tmp_path / "a.log.meta.json"
    beside.write_text("[" * 200_000)
    assert read_sidecar(str(log)).facts.release is None
    beside.write_text('\ufeff{"release": "7"}', encoding="utf-8")
    assert read_sidecar(str(log)).facts.release == "7"
    beside.unlink()
    os.mkfifo(beside)
    assert read_sidecar(str(log)).facts.release is None


@pytest.mark.parametrize("hole", [5_000, 300_000, 700_001])
def test_a_log_cut_back_under_its_writer_is_read_behind_the_hole(tmp_path: Path, hole: int) -> None:
    """Rule: NULs at the start of a file, however many, hide nothing of the text after them."""
    log = tmp_path / "a.log"
    log.write_bytes(b"\0" * hole + TRACE)
    with open_store(f"sqlite:///{tmp_path}/s.db") as store:
        night = a_night(store, [log])
        assert (night.status, night.records, night.quarantined) == ("complete", 1, 0)
        assert a_night(store, [log]).new_crashes == 0


def test_a_binary_file_that_begins_with_a_hole_is_still_none_of_ours(tmp_path: Path) -> None:
    """Rule: NULs at the start make no binary file a log."""
    image = tmp_path / "disk.img"
    image.write_bytes(b"\0" * 4096 + bytes(range(256)) * 8)
    with open_store(f"sqlite:///{tmp_path}/s.db") as store:
        assert a_night(store, [image]).unreadable == 1


def test_a_zip_whose_names_are_damaged_is_a_damaged_archive(tmp_path: Path) -> None:
    """Rule: damage in an archive's own tables is told as damage, not raised as an error of its library."""
    archive = tmp_path / "a.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("ü.log", TRACE)
    archive.write_bytes(archive.read_bytes().replace("ü".encode(), b"\xff\xfe"))
    with pytest.raises(DamagedArchiveError), open_source(str(archive)) as source:
        list(source.lines())


def test_a_file_that_cannot_be_read_from_its_first_byte_is_told() -> None:
    """Rule: an input/output error at the very first read is a source that cannot be read, like any later one."""
    with pytest.raises(DeniedSourceError):
        open_source("/proc/self/mem")


def test_names_that_are_no_text_do_not_end_the_night(tmp_path: Path) -> None:
    """Rule: file names that are not UTF-8 and hosts that no encoding has are stored as well as they can be, once."""
    logs = tmp_path / "logs"
    logs.mkdir()
    Path(os.fsdecode(os.fsencode(logs) + b"/a\xff.log")).write_bytes(TRACE)
    Path(os.fsdecode(os.fsencode(logs) + b"/a\xfe.log")).write_bytes(TRACE.replace(b"bad", b"worse"))
    (logs / "b.log").write_text(json.dumps({"level": "error", "message": "KeyError: x", "host": "\ud800"}) + "\n")
    os.symlink("nowhere", os.fsencode(logs) + b"/gone\xff.log")
    with open_store(f"sqlite:///{tmp_path}/s.db") as store:
        night = a_night(store, [logs])
        assert (night.new_crashes, night.unreadable) == (3, 1)
        json.dumps(night.document(), ensure_ascii=False).encode()
        assert a_night(store, [logs]).new_crashes == 0


def test_a_record_that_breaks_a_parser_is_kept_as_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rule: a defect in a parser or rule costs one record its root line, not the night; secrets are redacted still."""

    def broken(_text: str) -> object:
        raise IndexError

    monkeypatch.setattr(analyse, "parse", broken)
    record = one_record("\nValueError: token=abcd1234efgh\n", source="x", options=SplitOptions())
    found = Analyser(load_rules(), redacting=True).analyse(record)
    assert (found.root.rule, found.root.message) == ("defect:IndexError", "ValueError: token=<secret>")
    assert (found.redactions, len(found.root.roles)) == (1, record.text.count("\n") + 1)


@pytest.mark.parametrize(
    "text",
    [
        "token " + "a_" * 60_000,
        "token_" * 20_000,
        "a@b http://x " + "a-" * 60_000,
        "a." * 60_000 + "@x",
        "a://" * 30_000 + "@x",
        "?sig=" * 30_000,
        "password " * 15_000,
    ],
    ids=lambda text: text[:8],
)
def test_redaction_costs_the_length_of_a_line_and_not_its_square(text: str) -> None:
    """Rule: no line makes a pattern try every beginning against every end."""
    started = time.process_time()
    redact(text)
    assert time.process_time() - started < SECONDS


def test_a_long_rule_of_equal_signs_is_quickly_no_failure() -> None:
    """Rule: nor do the patterns that look for the head of a native report."""
    started = time.process_time()
    kind_of("=" * 200_000, None, lambda _: False)
    assert time.process_time() - started < SECONDS


@pytest.mark.parametrize(
    "damage",
    ["DELETE FROM project", "UPDATE project SET host_secret = 'zz'", "DELETE FROM alembic_version"],
)
def test_a_store_that_lost_what_it_is_opened_by_says_that_it_is_damaged(tmp_path: Path, damage: str) -> None:
    """Rule: a store without its key or its revision is damaged: not missing, not empty, no defect of the program."""
    url = f"sqlite:///{tmp_path}/s.db"
    open_store(url).close()
    with sqlite3.connect(tmp_path / "s.db") as connection:
        connection.execute(damage)
    connection.close()
    with pytest.raises(NotAStore, match="damaged"):
        open_store(url)
