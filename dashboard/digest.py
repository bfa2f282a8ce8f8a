"""The digest of a night as Markdown: its figures, and what is new, regressed, back, spiking or fixed."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from crashpath.dashboard.errors import InputError
from crashpath.dashboard.message import count_words, cut
from crashpath.dashboard.noticed import KINDS
from crashpath.dashboard.plurals import many
from crashpath.dashboard.summary import NightSummary
from crashpath.ingest.outbox import Thing, by_kind

MOST_LINES = 100
"""Things of one kind that are listed; the rest is counted."""
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()<>#+!|~&@.:-])")


def write_digest(summary: NightSummary, file: Path, things: Sequence[Thing] = (), *, muted: int = 0) -> None:
    """Write the digest, whole or not at all. Raises ``InputError`` where the file cannot be written."""
    draft = file.with_name(file.name + ".tmp")
    try:
        draft.write_text(digest(summary, things, muted=muted), encoding="utf-8", errors="backslashreplace")
        os.replace(draft, file)
    except OSError as error:
        raise InputError(f"The digest cannot be written to {file}: {error.strerror}. Name another place.") from error


def digest(summary: NightSummary, things: Sequence[Thing] = (), *, muted: int = 0) -> str:
    """Return the figures of a night as Markdown, the headline first, then what there is to tell."""
    total = sum(count for _, count in summary.headline) or 1
    lines = [f"# Night {summary.night}: {summary.status}", ""]
    lines += ["| headline | crashes | share |", "|---|---:|---:|"]
    lines += [f"| {name} | {count} | {count / total:.1%} |" for name, count in summary.headline]
    lines += ["", "| class | crashes | share |", "|---|---:|---:|"]
    lines += [f"| {name} | {count} | {count / total:.1%} |" for name, count in summary.classes]
    lines += [
        "",
        f"{many(summary.new_crashes, 'new crash')}, {many(summary.new_signatures, 'new signature')}, "
        f"{many(summary.new_clusters, 'new cluster')}. Unclassified: {summary.unclassified_share:.1%}. "
        f"Quarantine: {summary.quarantined}. Redactions: {summary.redactions}.",
    ]
    lines += [summary.note] if summary.note else []
    lines += [f"- {escaped(cut(problem))}" for problem in summary.problems]
    lines += _told(things, muted)
    return "\n".join(lines) + "\n"


def _told(things: Sequence[Thing], muted: int) -> list[str]:
    lines = [] if things else ["", "Nothing is new, regressed, back, spiking or fixed."]
    for kind, several in by_kind(things, KINDS):
        lines += ["", f"## {kind.capitalize()}: {len(several):,}", ""]
        lines += [f"- **{escaped(one.subject)}** {escaped(cut(one.words))} {span(one.title)}".rstrip()
                  for one in several[:MOST_LINES]]  # fmt: skip
        if len(several) > MOST_LINES:
            lines.append(f"- … and {count_words([(kind, len(several) - MOST_LINES)])} more")
    return lines + (["", f"{many(muted, 'muted cluster')} left out."] if muted else [])


def escaped(text: str) -> str:
    """Return text that Markdown shows as it is: no link, no picture, no HTML, and nobody who is called by it."""
    return _MARKDOWN.sub(r"\\\1", text)


def span(text: str) -> str:
    """Return text in a code span that none of its own backticks can end; nothing for no text."""
    line = cut(text)
    fence = "`" * (max((len(run) for run in re.findall("`+", line)), default=0) + 1)
    return f"{fence} {line} {fence}" if line else ""
