"""Records for ``classify`` and ``group``: from JSON lines, one a line, or cut out of logs. No store is touched."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Any

from crashpath.dashboard.errors import InputError
from crashpath.ingest.event_lines import split_all
from crashpath.ingest.model import Record
from crashpath.ingest.read import Found, expand, open_source
from crashpath.ingest.rules import Rules
from crashpath.ingest.split import SplitOptions, Undecodable, one_record
from crashpath.ingest.unpack import SourceError

STDIN = "-"
RECORDS = (".jsonl", ".ndjson")
LONGEST = 1 << 24
PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"PK\x03\x04")


@dataclass(frozen=True, slots=True)
class Fields:
    """Which keys of a JSON line hold the text and the id."""

    text: str = "log"
    id: str = "id"


def sources(paths: Sequence[str], exclude: Sequence[str] = ()) -> tuple[Found, ...]:
    """Return what files, folders, globs and ``-`` name, less what is excluded.

    A glob without a slash is held against the file's name, one with a slash against the path or its end.
    """
    return tuple(found for found in expand(paths) if not any(_fits(found.path, glob) for glob in exclude))


def _fits(path: str, glob: str) -> bool:
    if "/" not in glob:
        return fnmatchcase(PurePath(path).name, glob)
    return fnmatchcase(path, glob) or fnmatchcase(path, f"*/{glob.removeprefix('./')}")


def looks_like_records(path: str, fields: Fields) -> bool:
    """Whether a file seems to hold one record a line: by its name, and by an object with a text in its first line."""
    if not path.endswith(RECORDS):
        return False
    try:
        with open(path, "rb") as file:
            document = json.loads(file.readline(LONGEST))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and isinstance(document.get(fields.text), str)


@dataclass(frozen=True, slots=True)
class Given:
    """One record with the id under which it is answered; ``record`` is ``None`` where there was no text to read."""

    id: Any
    record: Record | None


def given_lines(path: str, fields: Fields, tz: tzinfo) -> Iterator[Given]:
    """Yield one record a line of JSON: none is split, none is dropped. An empty or unreadable line has no record.

    Raises ``InputError`` where the file as such cannot be read.
    """
    options = SplitOptions(tz=tz, as_of=datetime.now(UTC))
    for number, line in enumerate(_raw_lines(path), start=1):
        yield _given(line, number, fields, options)


def _given(line: bytes, number: int, fields: Fields, options: SplitOptions) -> Given:
    fallback = f"line-{number}"
    try:
        document = json.loads(line, parse_constant=lambda word: None)  # NaN is no JSON, and no id
    except (ValueError, RecursionError):  # also where the bytes are no text, or are nested without end
        return Given(fallback, None)
    if not isinstance(document, dict):
        return Given(fallback, None)
    id = document.get(fields.id, fallback)
    text = document.get(fields.text)
    if not isinstance(text, str) or not text.strip():
        return Given(id, None)
    return Given(id, one_record(text, source=str(id), options=options))


def _raw_lines(path: str) -> Iterator[bytes]:
    """Yield whole lines, however long: a record that was cut would be no JSON. Compressed files are refused."""
    try:
        with nullcontext(sys.stdin.buffer) if path == STDIN else open(path, "rb") as file:
            for number, line in enumerate(file):
                if number == 0 and line.startswith(PACKED):
                    raise InputError(f"{path} is compressed: unpack it first, one line of JSON is one record.")
                yield line
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}. Check the path and its permissions.") from error


def given_logs(paths: list[str], rules: Rules, tz: tzinfo) -> Iterator[Given | InputError]:
    """Yield the records of log files, folders or globs, and in their place what could not be read.

    The id of a record is ``path:offset``.
    """
    for found in expand(paths):
        if found.problem is not None:
            yield InputError(found.problem)
            continue
        try:
            with open_source(found.path) as source:
                options = SplitOptions(tz=tz, as_of=datetime.now(UTC), mtime=source.mtime, is_failure=rules.is_failure)
                for item in split_all(source.lines(), found.path, options, source.head):
                    if isinstance(item, Record):
                        yield Given(f"{found.path}:{item.offset}", item)
                    elif isinstance(item, Undecodable):
                        yield Given(f"{found.path}:{item.offset}", None)
        except SourceError as error:
            yield InputError(str(error))
