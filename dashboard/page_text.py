"""Text of logs and people for the pages: whatever it holds, it is shown as it is and never as markup.

Streamlit takes labels, captions and messages as Markdown, Plotly takes labels as a few tags of HTML.
"""

from __future__ import annotations

import html
import re

from crashpath.dashboard.inert import inert

MOST = 400
"""Characters of a text in a sentence or a label; a log line may have millions."""
_SPECIAL = re.compile(r"([!-/:-@\[-`{-~])")
"""All punctuation of ASCII: each may be escaped, and nothing else begins anything in Markdown."""


def one_line(text: str, most: int = MOST) -> str:
    """Return text on one line, cut to ``most`` characters; what could steer or hide is spelled out."""
    head = text[: 8 * most]  # so that a line of megabytes costs nothing
    line = " ".join(inert(part) for part in head.split())
    return line if len(line) <= most and len(head) == len(text) else line[: most - 1] + "…"


def as_markdown(text: str, most: int = MOST) -> str:
    """Return text for a label, caption, message or heading of Streamlit."""
    return _SPECIAL.sub(r"\\\1", one_line(text, most))


def as_label(text: str, most: int = 60) -> str:
    """Return text for Plotly: an axis, a legend, a hover."""
    return html.escape(one_line(text, most))


def as_html(text: str) -> str:
    """Return text for the inside of an element of HTML; lines and blanks stay."""
    return html.escape("\n".join(inert(line) for line in text.split("\n")))
