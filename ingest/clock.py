"""Time stamps of the field, as UTC."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import MAXYEAR, UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import NamedTuple

_NAMES = "jan feb mar apr may jun jul aug sep oct nov dec"
_MONTHS = {_NAMES[at : at + 3]: at // 4 + 1 for at in range(0, 48, 4)}  # not the calendar's: those follow the locale
_TIME = r"(?P<h>\d{1,2}):(?P<m>\d\d)(?::(?P<s>\d\d)(?:[.,](?P<f>\d{1,9}))?)?"
_PACKED = r"(?P<h>\d\d):?(?P<m>\d\d):?(?P<s>\d\d)(?:[.,](?P<f>\d+))?"
_ZONE = r"\s*(?P<z>Z|UTC|GMT|[+-]\d\d:?\d\d|[+-]\d\d)?"
_MONTH = r"(?P<mon>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"

STAMPS: tuple[re.Pattern[str], ...] = (
    re.compile(rf"(?P<Y>\d{{4}})[-/.](?P<M>\d\d)[-/.](?P<D>\d\d)(?:[T _-]|\s-\s){_TIME}{_ZONE}$"),
    re.compile(
        rf"(?P<Y>\d{{4}})(?P<M>\d\d)(?P<D>\d\d)[T ]?(?P<h>\d\d):?(?P<m>\d\d):?(?P<s>\d\d)(?:[.,](?P<f>\d+))?{_ZONE}$"
    ),
    re.compile(rf"(?P<M>\d\d)[-/](?P<D>\d\d)\s+{_TIME}{_ZONE}$"),  # 11-19 13:40:12, logcat
    re.compile(rf"(?P<M>\d\d)(?P<D>\d\d)\s+{_TIME}{_ZONE}$"),  # klog: 1110 01:51:02.118850
    re.compile(
        rf"(?:\w{{3}},?\s+)?{_MONTH}\s+(?P<D>\d{{1,2}})\s+{_TIME}{_ZONE}(?:\s+(?P<Y>\d{{4}}))?$"
    ),  # syslog, asctime
    re.compile(rf"(?:\w{{3}},?\s+)?(?P<D>\d{{1,2}})[ /-]{_MONTH}[ /-](?P<Y>\d{{4}})[: ]{_TIME}{_ZONE}$"),  # web servers
    re.compile(rf"(?P<M>\d\d)/(?P<D>\d\d)/(?P<Y>\d{{4}})[- ,]+{_TIME}{_ZONE}$"),  # trtexec: 12/01/2024-10:11:12
    re.compile(rf"(?P<Y>\d\d)/(?P<M>\d\d)/(?P<D>\d\d)\s+{_TIME}{_ZONE}$"),  # Spark: 24/03/28 02:11:40
)

_EPOCH = re.compile(r"\d{10}(?:\.\d+)?$|\d{13}$|\d{16}$|\d{19}$")
_EPOCH_SCALE = {13: 1e3, 16: 1e6, 19: 1e9}


class _Wall(NamedTuple):
    """A stamp as written: ``year`` 0 where it has none, ``zone`` None where it has none."""

    year: int
    month: int
    day: int
    hour: int
    minute: int
    second: int
    micro: int
    zone: tzinfo | None


def parse_stamp(text: str, *, tz: tzinfo, latest: datetime) -> datetime | None:
    """Return the time in UTC, or ``None`` where the text is no stamp.

    ``tz`` is the zone of stamps that name none. A stamp without year gets the latest year that puts it not later
    than ``latest`` (aware) + 1 day.
    """
    point = max(text.rfind("."), text.rfind(","))
    if point < 8 or text[point - 3] != ":":
        return _parse(text, tz, latest)
    # The fraction goes apart, so that the stamps of a second are worked out once.
    end = point + 1
    while end < len(text) and text[end].isdecimal():
        end += 1
    at = _parse(text[:point] + text[end:], tz, latest)
    if at is None or end == point + 1:
        return at
    return at.replace(microsecond=int(text[point + 1 : end][:6].ljust(6, "0")))


@lru_cache(maxsize=4096)
def _parse(text: str, tz: tzinfo, latest: datetime) -> datetime | None:
    try:
        wall = _wall(text.strip())
    except (ValueError, OverflowError):  # a zone of 99 hours, an epoch beyond the calendar
        return None
    if wall is None or isinstance(wall, datetime):
        return wall
    return _in_year(wall, tz, latest) if wall.year == 0 else _as_utc(wall, wall.year, tz)


def _in_year(wall: _Wall, tz: tzinfo, latest: datetime) -> datetime | None:
    limit = latest + timedelta(days=1) if latest.year < MAXYEAR else latest
    for year in range(limit.year + 1, limit.year - 9, -1):  # 29 February may lie 8 years back
        at = _as_utc(wall, year, tz)
        if at is not None and at <= limit:
            return at
    return None


def _as_utc(wall: _Wall, year: int, tz: tzinfo) -> datetime | None:
    try:
        local = datetime(year, wall.month, wall.day, wall.hour, wall.minute, min(wall.second, 59), wall.micro)
        return local.replace(tzinfo=wall.zone or tz).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _wall(text: str) -> _Wall | datetime | None:
    if _EPOCH.match(text):
        digits = text.partition(".")[0]
        return datetime.fromtimestamp(float(text) / _EPOCH_SCALE.get(len(digits), 1.0), UTC)
    for pattern in STAMPS:
        if found := pattern.match(text):
            return _read(found.groupdict().get)
    return None


def _read(part: Callable[[str], str | None]) -> _Wall:
    def number(name: str) -> int:
        return int(part(name) or 0)

    year = number("Y")
    named = part("mon")
    return _Wall(
        year=year + 2000 if 0 < year < 100 else year,
        month=_MONTHS[named.lower()] if named else number("M"),
        day=number("D"),
        hour=number("h"),
        minute=number("m"),
        second=number("s"),
        micro=int((part("f") or "0")[:6].ljust(6, "0")),
        zone=_zone(part("z")),
    )


def _zone(text: str | None) -> tzinfo | None:
    if not text:
        return None
    if text in ("Z", "UTC", "GMT"):
        return UTC
    sign = -1 if text[0] == "-" else 1
    digits = text[1:].replace(":", "").ljust(4, "0")
    return timezone(timedelta(minutes=sign * (int(digits[:2]) * 60 + int(digits[2:4]))))
