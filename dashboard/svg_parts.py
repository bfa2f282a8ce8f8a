"""What pictures are made of: the frame with its title, lines and letters, all text inert."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from rich.cells import cell_len, set_cell_size

from crashpath.dashboard.inert import inert

LETTER = 6.6
"""About how wide a letter of 12 pixels is; the page has no way to ask."""
LIMIT = 'stroke="currentColor" stroke-width="1.5" stroke-dasharray="7 3"'
GRID = 'stroke="currentColor" stroke-opacity=".18"'


@dataclass(frozen=True, slots=True)
class Words:
    """What a picture is called, what it shows in a sentence, and the id of both on the page."""

    id: str
    title: str
    text: str


def whole(words: Words, width: int, height: float, body: Sequence[str]) -> str:
    """Return the picture around its marks."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" width="{width}" '
        f'height="{height:.0f}" role="img" aria-labelledby="{words.id}-t {words.id}-d" font-family="sans-serif" '
        f'font-size="12" fill="currentColor"><title id="{words.id}-t">{safe(words.title)}</title>'
        f'<desc id="{words.id}-d">{safe(words.text)}</desc>' + "".join(body) + "</svg>"
    )


def line(one: tuple[float, float], other: tuple[float, float], look: str, kind: str = "") -> str:
    """Return a line between two points; ``look`` are attributes."""
    of = f' class="{kind}"' if kind else ""
    return f'<line{of} x1="{one[0]:.1f}" y1="{one[1]:.1f}" x2="{other[0]:.1f}" y2="{other[1]:.1f}" {look}/>'


def text(x: float, y: float, words: str, anchor: str = "start", kind: str = "") -> str:
    """Return letters whose foot stands at ``y``."""
    of = f' class="{kind}"' if kind else ""
    return f'<text{of} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{safe(words)}</text>'


def anchor_of(at: float, width: float) -> str:
    """Return the side of a label that stands at a pixel, so that it stays in the picture."""
    return "start" if at < 60 else "end" if at > width - 60 else "middle"


def fit(words: str, room: float) -> str:
    """Return words cut to about so many pixels."""
    one, most = " ".join(inert(words).split()), max(4, int(room / LETTER))
    return one if cell_len(one) <= most else set_cell_size(one, most - 1).rstrip() + "…"


def safe(words: str) -> str:
    """Return words that no markup, no direction and no control character of theirs can get out of."""
    return escape(inert(words))
