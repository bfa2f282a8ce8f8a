"""What a digest says to a webhook: as JSON for any receiver, and as text in the form that Slack takes.

Words of logs, of people and of releases stand in code spans: nothing in them is a link, a format or a call to everyone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from crashpath.dashboard.inert import inert
from crashpath.dashboard.noticed import KINDS
from crashpath.dashboard.plurals import many
from crashpath.ingest.outbox import Thing

Form = Literal["json", "slack"]
MOST_WORDS = 240
_SLACK = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "`": "'"})


@dataclass(frozen=True, slots=True)
class News:
    """What one message tells: ``shown`` of all things that were noticed, ``rest`` counts the others by kind."""

    night: int
    status: str
    shown: tuple[Thing, ...]
    rest: tuple[tuple[str, int], ...]
    muted: int


def news(things: Sequence[Thing], most: int, *, night: int, status: str, muted: int) -> News:
    """Return the news with at most ``most`` lines, what people have to act on first."""
    ranked = sorted(things, key=lambda one: KINDS.index(one.kind) if one.kind in KINDS else len(KINDS))
    rest = [one.kind for one in ranked[most:]]
    counts = tuple((kind, rest.count(kind)) for kind in dict.fromkeys(rest))
    return News(night, status, tuple(ranked[:most]), counts, muted)


def document(told: News, form: Form) -> dict[str, Any]:
    """Return what is posted."""
    return {"text": _slack(told)} if form == "slack" else _json(told)


def count_words(counts: Sequence[tuple[str, int]]) -> str:
    """Say how many of each kind: ``3 new, 1 spiking``."""
    return ", ".join(f"{count:,} {kind}" for kind, count in counts)


def cut(text: str, most: int = MOST_WORDS) -> str:
    """Return one line of at most ``most`` characters, with what could steer a terminal spelled out."""
    line = inert(" ".join(text.split()))
    return line if len(line) <= most else line[: most - 1] + "…"


def _json(told: News) -> dict[str, Any]:
    return {
        "night": told.night,
        "status": told.status,
        "things": [
            {"kind": one.kind, "subject": one.subject, "words": cut(one.words), "title": cut(one.title)}
            for one in told.shown
        ],
        "more": dict(told.rest),
        "muted": told.muted,
    }


def _slack(told: News) -> str:
    counts = [(kind, sum(one.kind == kind for one in told.shown) + dict(told.rest).get(kind, 0)) for kind in KINDS]
    lines = [f"*crashpath* night {told.night}: {count_words([one for one in counts if one[1]])}"]
    lines += [f"• *{one.kind}* {_span(one.subject)} {_span(one.words)} {_span(one.title)}" for one in told.shown]
    if told.rest:
        lines.append(f"… and {count_words(told.rest)} more")
    if told.muted:
        lines.append(f"{many(told.muted, 'muted cluster')} left out")
    return "\n".join(line.rstrip() for line in lines)


def _span(text: str) -> str:
    """Return text in a code span; a span cannot be empty, nor begin or end with what would close it."""
    return f"`{cut(text).translate(_SLACK)}`" if text.strip() else ""
