"""What is said of nights and stores on the page Ingest health: how the last night went, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from crashpath.dashboard.ingest_view import NightLine
from crashpath.dashboard.plurals import many
from crashpath.ingest.lease import Held

Tone = Literal["good", "running", "warning", "bad"]
AGAIN = "Run the same `crashpath nightly` again: it goes on from where this one stood, and nothing is counted twice."
STALE = timedelta(hours=48)
"""Age of the last night after which somebody should look whether the job still runs."""
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence, the reason that the store has for it (text of logs and files), and what to do (Markdown of ours)."""

    tone: Tone
    sentence: str
    reason: str | None = None
    advice: str | None = None


def standing(last: NightLine, lease: Held | None, now: datetime) -> Said:
    """Say how it stands: of a night that runs, since when, by whom, and whether it is alive."""
    if last.status == "running":
        return _running(last, lease, now)
    said = of_night(last)
    if lease is not None and lease.alive:
        return Said(
            "running",
            f"{said.sentence} Meanwhile {lease.holder} holds the lease, since {_moment(lease.since)}: "
            "a night begins, or clusters are formed anew.",
            said.reason,
            said.advice,
        )
    age = now - (last.finished or last.started)
    if said.tone == "good" and age > STALE:
        return Said(
            "warning", f"{said.sentence} That was {ago(age)} ago.", None, "Look whether the nightly job still runs."
        )
    return said


def of_night(night: NightLine) -> Said:
    """Say how one night went; of the last one, ``standing`` says more."""
    when = _moment(night.finished or night.started)
    if night.status == "complete":
        return Said("good", f"Night {night.id} is complete, {when}: {_found(night)}.")
    if night.status == "partial":
        return Said("warning", f"Night {night.id} is partial, {when}: {_found(night)}.", night.reason, _mend(night))
    if night.status == "failed":
        return Said("bad", f"Night {night.id} failed, {when}. What it stored up to there stays.", night.reason, AGAIN)
    return Said("running", f"Night {night.id} began {_moment(night.started)} and is not over.")


def _running(last: NightLine, lease: Held | None, now: datetime) -> Said:
    since = f"Night {last.id} began {_moment(last.started)}"
    if lease is None:
        return Said("bad", f"{since} and is not over, but nobody holds its lease: it was killed.", None, AGAIN)
    heard = f"last heard of {ago(now - lease.heard)} ago"
    if lease.alive:
        length = ago(now - lease.since)
        return Said("running", f"{since} and runs on {lease.holder}, for {length} so far; its lease is alive, {heard}.")
    if lease.gone:
        return Said("bad", f"{since} on {lease.holder}, and its process has ended before it did.", None, AGAIN)
    return Said(
        "bad", f"{since} on {lease.holder} and is not over, but its lease ran out ({heard}): it was killed, or stands "
        "still.", None, AGAIN,
    )  # fmt: skip


def _mend(night: NightLine) -> str:
    if night.reason and "quarantine" in night.reason:
        return (
            "What could not be decoded is listed under Quarantine. If so much of it is to be expected, allow it with "
            "`--max-quarantine`."
        )
    more = len(night.problems) - 1
    others = f" {many(more, 'more problem')} of it {'is' if more == 1 else 'are'} listed below." if more > 0 else ""
    return f"Mend what stands in the way; all else is stored, and the next night tries again by itself.{others}"


def _found(night: NightLine) -> str:
    parts = []
    if night.read is not None:
        parts.append(f"{many(night.read, 'file')} read")
    if night.new_crashes is not None:
        parts.append(f"{many(night.new_crashes, 'new crash')}")
    if night.new_clusters is not None:
        parts.append(f"{many(night.new_clusters, 'new cluster')}")
    if night.quarantined:
        parts.append(f"{night.quarantined:,} into quarantine")
    if night.seconds is not None:
        parts.append(f"in {length(night.seconds)}")
    return ", ".join(parts) or "no figures were kept"


def length(seconds: float) -> str:
    """Return how long something took: ``0.4 s``, ``12 s``, ``3 min 20 s``, ``1 h 5 min``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def ago(age: timedelta) -> str:
    """Return an age in one unit: ``4 s``, ``12 min``, ``5 h``, ``3 days``; clocks that disagree make it 0 s."""
    seconds = max(0, int(age.total_seconds()))
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 7200:
        return f"{seconds // 60} min"
    if seconds < 172_800:
        return f"{seconds // 3600} h"
    return f"{seconds // 86_400:,} days"


def size(number: float) -> str:
    """Return bytes as people read them: ``826 MiB``."""
    unit = 0
    while number >= 1024 and unit < len(_UNITS) - 1:
        number, unit = number / 1024, unit + 1
    if not unit:
        return many(int(number), "byte")
    return f"{number:.1f} {_UNITS[unit]}" if number < 10 else f"{number:,.0f} {_UNITS[unit]}"


def rows(number: int, kind: str) -> str:
    """Return a number of rows as it is known: ``about 1,000,000``, ``over 50,000``."""
    return f"{kind} {number:,}".strip()


def _moment(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M} UTC"
