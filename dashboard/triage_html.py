"""The facts of a cluster's row as inert HTML: cells that stand under each other, and flow on a narrow screen.

Texts take the theme's own colour; grounds are tints that are seen in light and dark, each with a sign beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from crashpath.dashboard.page_text import as_html, one_line
from crashpath.dashboard.pictures import looks_of
from crashpath.dashboard.triage_view import Row
from crashpath.dashboard.triage_words import (
    SIGNS,
    contained_words,
    crashes_words,
    last_words,
    platform_words,
    since_words,
    spark_words,
    standing_words,
)
from crashpath.ingest.cluster_facts import Outcomes

TINTS = {
    "new": "rgba(213, 94, 0, .28)",
    "regressed": "rgba(204, 30, 60, .28)",
    "spiking": "rgba(230, 159, 0, .30)",
    "back": "rgba(136, 34, 170, .25)",
    "fixed": "rgba(0, 158, 115, .25)",
}
_GRID = (
    "display: grid; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); gap: .15rem .9rem;"
    " font-size: .85rem; line-height: 1.45"
)
_CELL = "overflow-wrap: anywhere; min-width: 0"
_CHIP = "border-radius: .3rem; padding: 0 .4rem; white-space: nowrap"
_SOFT = "opacity: .75"
_SPARK = "display: flex; align-items: flex-end; gap: 1px; height: 1.2rem; max-width: 9rem"
_MOST = 60
"""Characters of a name in a cell."""


def row_html(row: Row, now: datetime) -> str:
    """Return the facts of a row: mark and class, weight and days, since when, where, whether contained, who."""
    cells = (
        [mark_chip(row.mark.kind) if row.mark else "", class_chip(row.failure_class)],
        [as_html(crashes_words(row)), spark_html(row)],
        [_text(since_words(row.seen)), _text(last_words(row.seen), _SOFT)],
        [_text(platform_words(row.platforms))],
        [contained_html(row.outcomes)],
    )
    facts = "".join(f'<div style="{_CELL}">{_stacked(cell)}</div>' for cell in cells if any(cell))
    told = [row.mark.words] if row.mark and row.mark.kind != "new" else []
    line = _text(" · ".join([*told, *standing_words(row, now)]), _SOFT, 400)
    return f'<div style="{_GRID}">{facts}</div>' + (f'<div style="font-size: .85rem">{line}</div>' if line else "")


def facts_html(facts: Sequence[tuple[str, str]], most: int = 300) -> str:
    """Return facts under their names, in cells that flow. Both are plain text."""
    small = f"{_SOFT}; font-size: .8em"
    cells = (
        f'<div style="{_CELL}"><div style="{small}">{as_html(name)}</div>{_text(value, "", most)}</div>'
        for name, value in facts
    )
    return f'<div style="{_GRID}; row-gap: .6rem">{"".join(cells)}</div>'


def mark_chip(kind: str) -> str:
    """Return a mark with its sign."""
    tint = TINTS.get(kind, "transparent")
    return f'<span style="{_CHIP}; background: {tint}; font-weight: 600">{SIGNS.get(kind, "")} {as_html(kind)}</span>'


def class_chip(failure_class: str) -> str:
    """Return a class with the colour that it has in every picture."""
    colour = looks_of([failure_class])[failure_class].colour
    box = f"display: inline-block; width: .7em; height: .7em; border-radius: .15em; background: {colour}"
    edge = "outline: 1px solid rgba(128, 128, 128, .6)"  # one of the colours is black, which a dark ground swallows
    return f'<span style="white-space: nowrap"><span style="{box}; {edge}"></span> {_text(failure_class)}</span>'


def contained_html(came_of: Outcomes) -> str:
    """Say whether it is contained, with a sign."""
    if not came_of.known:
        return f'<span style="{_SOFT}">? {as_html(contained_words(came_of))}</span>'
    sign = "✓" if not came_of.unanswered else "✗" if not came_of.contained else "◐"
    return f"<span>{sign} {as_html(contained_words(came_of))}</span>"


def spark_html(row: Row) -> str:
    """Return the days of a row as small bars, with words for who cannot see them."""
    words = as_html(spark_words(row.since, row.days))
    most = max(row.days, default=0) or 1
    bars = "".join(_bar(crashes / most) for crashes in row.days)
    return f'<span role="img" aria-label="{words}" title="{words}" style="{_SPARK}">{bars}</span>'


def _bar(share: float) -> str:
    """A day: a thin line where there was no crash, else at least a little more than that."""
    height, opacity = ("1px", ".35") if not share else (f"{15 + 85 * share:.0f}%", ".65")
    return f'<span style="flex: 1; height: {height}; background: currentColor; opacity: {opacity}"></span>'


def _text(text: str, style: str = "", most: int = _MOST) -> str:
    if not text:
        return ""
    shown = as_html(one_line(text, most))
    return f'<span style="{style}">{shown}</span>' if style else f"<span>{shown}</span>"


def _stacked(parts: Iterable[str]) -> str:
    return "".join(f"<div>{part}</div>" for part in parts if part)
