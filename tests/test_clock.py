"""Time stamps of the field."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from crashpath.ingest.clock import parse_stamp

LATEST = datetime(2025, 11, 19, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "iso"),
    [
        ("2024-06-28T06:40:11.685300953Z", "2024-06-28T06:40:11.685300+00:00"),
        ("2021-07-07 09:31:08.226141730", "2021-07-07T09:31:08.226141+00:00"),
        ("2023/09/27 08:11:20", "2023-09-27T08:11:20+00:00"),
        ("2024-11-18T17:10:02,496", "2024-11-18T17:10:02.496000+00:00"),
        ("2024-07-18 09:40:10 +0200", "2024-07-18T07:40:10+00:00"),
        ("2025-03-01T00:00:00.5+05:30", "2025-02-28T18:30:00.500000+00:00"),
        ("Nov 15 22:10:38", "2025-11-15T22:10:38+00:00"),
        ("Dec  5 22:10:38", "2024-12-05T22:10:38+00:00"),
        ("11-19 13:40:12", "2025-11-19T13:40:12+00:00"),
        ("08-01 21:40:07.556", "2025-08-01T21:40:07.556000+00:00"),
        ("1110 01:51:02.118850", "2025-11-10T01:51:02.118850+00:00"),
        ("Wed Oct 11 14:32:52.123 2000", "2000-10-11T14:32:52.123000+00:00"),
        ("11/Oct/2000:13:55:36 +0000", "2000-10-11T13:55:36+00:00"),
        ("12/01/2024-10:11:12", "2024-12-01T10:11:12+00:00"),
        ("1735689605", "2025-01-01T00:00:05+00:00"),
        ("1735689605.25", "2025-01-01T00:00:05.250000+00:00"),
        ("1735689605250", "2025-01-01T00:00:05.250000+00:00"),
    ],
)
def test_stamps_of_the_field(text: str, iso: str) -> None:
    """Each format gives its time in UTC; one without year, the latest not after the limit."""
    at = parse_stamp(text, tz=UTC, latest=LATEST)
    assert at is not None
    assert at.isoformat() == iso


def test_a_stamp_without_zone_takes_the_given_one_and_one_with_a_zone_does_not() -> None:
    """The machine's own zone never matters."""
    zone = timezone(timedelta(hours=-8))
    assert parse_stamp("2024-01-01 00:00:00", tz=zone, latest=LATEST) == datetime(2024, 1, 1, 8, tzinfo=UTC)
    assert parse_stamp("2024-01-01T00:00:00Z", tz=zone, latest=LATEST) == datetime(2024, 1, 1, tzinfo=UTC)


def test_the_year_is_the_latest_not_after_the_limit_and_a_day() -> None:
    """A stamp one day ahead is of this year (clocks differ); one further ahead is of the year before."""
    assert parse_stamp("Nov 20 11:59:00", tz=UTC, latest=LATEST) == datetime(2025, 11, 20, 11, 59, tzinfo=UTC)
    assert parse_stamp("Nov 20 12:01:00", tz=UTC, latest=LATEST) == datetime(2024, 11, 20, 12, 1, tzinfo=UTC)
    new_year = datetime(2025, 12, 31, 23, tzinfo=UTC)
    assert parse_stamp("Jan  1 00:30:00", tz=UTC, latest=new_year) == datetime(2026, 1, 1, 0, 30, tzinfo=UTC)


def test_the_29th_of_february_is_of_a_leap_year() -> None:
    """A day that this year lacks is looked for in earlier years."""
    assert parse_stamp("02-29 10:00:00", tz=UTC, latest=LATEST) == datetime(2024, 2, 29, 10, tzinfo=UTC)


@pytest.mark.parametrize("text", ["", "soon", "2024-13-01 00:00:00", "2024-01-01", "25:61:00", "8120.110774"])
def test_what_is_no_stamp_is_none(text: str) -> None:
    """A date that cannot be, a bare clock time and words are no stamps."""
    assert parse_stamp(text, tz=UTC, latest=LATEST) is None
