"""The digest of a night as Markdown."""

from __future__ import annotations

import os
from pathlib import Path

from crashpath.dashboard.errors import InputError
from crashpath.dashboard.plurals import many
from crashpath.dashboard.summary import NightSummary


def write_digest(summary: NightSummary, file: Path) -> None:
    """Write the digest, whole or not at all. Raises ``InputError`` where the file cannot be written."""
    draft = file.with_name(file.name + ".tmp")
    try:
        draft.write_text(digest(summary), encoding="utf-8")
        os.replace(draft, file)
    except OSError as error:
        raise InputError(f"The digest cannot be written to {file}: {error.strerror}. Name another place.") from error


def digest(summary: NightSummary) -> str:
    """Return the figures of a night as Markdown, the headline first."""
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
    lines += [f"- {problem}" for problem in summary.problems]
    return "\n".join(lines) + "\n"
