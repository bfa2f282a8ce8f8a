"""How much later a line is than the lines before, where the clocks of several components meet in one log."""

from __future__ import annotations

from datetime import datetime

_DIGITS = str.maketrans("123456789", "000000000")
_SHAPE = 20
_ZONE_STEP = 1800.0
_ZONE_SLACK = 60.0


class Clocks:
    """The latest time of each clock. Stamps of one format are taken for one clock.

    A library may stamp its lines in UTC where the application tells local time, and a component's clock may be late,
    so a time is held against its own clock if there is one; against another, whole half hours are no time passed.
    """

    __slots__ = ("_latest", "_newest", "_stamp")

    def __init__(self) -> None:
        self._latest: dict[str, datetime] = {}
        self._newest: datetime | None = None
        self._stamp: str | None = None

    def later(self, at: datetime | None, stamp: str | None) -> float:
        """Return by how many seconds the time is after the latest; 0 where it is before or nothing is known."""
        if at is None or stamp is None or self._newest is None or at == self._newest:
            return 0.0
        before = self._latest.get(_shape(stamp))
        if before is not None:
            return max(0.0, (at - before).total_seconds())
        seconds = (at - self._newest).total_seconds()
        off = seconds - round(seconds / _ZONE_STEP) * _ZONE_STEP
        return max(0.0, off if abs(off) <= _ZONE_SLACK else seconds)

    def saw(self, at: datetime, stamp: str | None) -> None:
        """Remember a time."""
        if stamp == self._stamp:
            return
        self._stamp = stamp
        shape = _shape(stamp or "")
        before = self._latest.get(shape)
        if before is None or at > before:
            self._latest[shape] = at
        self._newest = at


def _shape(stamp: str) -> str:
    return (stamp[:_SHAPE] + stamp[-1:]).translate(_DIGITS)
