"""Moments as people write them: what ``--as-of`` takes for now, until when a cluster is muted."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from crashpath.dashboard.errors import UsageError

_YEARS = range(1970, 3000)
"""What is reckoned with a moment, some hundred years back or ahead, has to be a date, too."""


def as_of_time(text: str, tz: str) -> datetime:
    """Return what ``--as-of`` says."""
    return moment_of(text, tz, "--as-of")


def moment_of(text: str, tz: str, option: str) -> datetime:
    """Return a moment in UTC; a time without a zone is of zone ``tz``. Raises ``UsageError`` that names ``option``."""
    try:
        time = datetime.fromisoformat(text)
        moment = (time if time.tzinfo else time.replace(tzinfo=ZoneInfo(tz))).astimezone(UTC)
        if moment.year not in _YEARS:
            raise OverflowError
        return moment
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{option} {text} is no time: write it as 2026-01-31 or 2026-01-31T02:00:00+00:00.") from error
