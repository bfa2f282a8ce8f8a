"""A crash's text as inert HTML: its lines with a sign and a colour for their role, and the legend of both.

Whatever the text holds stays text: it is escaped, control and direction characters are spelled out, and nothing that
it says becomes an attribute. The colours stand beside the text and tint its ground, so that it is read in the theme's
own colour, light or dark; the signs are those of ``crashpath show`` and tell the same without colours.
"""

from __future__ import annotations

from collections.abc import Sequence

from crashpath.dashboard.page_text import as_html
from crashpath.dashboard.plurals import many
from crashpath.dashboard.show_text import MARKS
from crashpath.ingest.model import Role

MOST_LINES = 60
MOST_CHARACTERS = 600
"""Of one line; a log line may have millions."""
COLOURS = {Role.ROOT: "#D55E00", Role.CASCADE: "#0072B2", Role.CONFIRMATION: "#009E73", Role.CONTEXT: "transparent"}
"""Of Okabe and Ito (2008), which the colour-blind can tell apart."""
MEANING = {
    Role.ROOT: "root line: states the cause",
    Role.CASCADE: "cascade: follows from it",
    Role.CONFIRMATION: "confirmation: a second witness",
    Role.CONTEXT: "context",
}
_TINT = {
    Role.ROOT: "rgba(213, 94, 0, .20)",
    Role.CASCADE: "rgba(0, 114, 178, .12)",
    Role.CONFIRMATION: "rgba(0, 158, 115, .16)",
    Role.CONTEXT: "transparent",
}
_BOX = (
    "font-family: monospace; font-size: .8rem; line-height: 1.5; border: 1px solid rgba(128, 128, 128, .4);"
    " border-radius: .4rem; padding: .4rem 0; overflow: hidden"
)
_NOTE = "padding: 0 .6rem; font-style: italic; opacity: .8"
_TEXT = "white-space: pre-wrap; overflow-wrap: anywhere; min-width: 0"


def legend() -> str:
    """Return what signs and colours mean, as HTML."""
    parts = (
        f'<span style="{_line(role)}; display: inline-flex">{_sign(role)}<span>{as_html(words)}</span></span>'
        for role, words in MEANING.items()
    )
    return f'<div style="font-size: .8rem; display: flex; flex-wrap: wrap; gap: .3rem .6rem">{"".join(parts)}</div>'


def crash_html(text: str, roles: Sequence[Role], root_line: int, most: int = MOST_LINES) -> str:
    """Return at most ``most`` lines of a text around its root line (counted from 0), as HTML.

    What is left out is said: lines before and behind, and the rest of a line that is too long.
    """
    first, shown, behind = window(text, root_line, most)
    lines = [_div(f"… {many(first, 'line')} before", _NOTE)] if first else []
    lines += [_html(line, _role(roles, number)) for number, line in enumerate(shown, start=first)]
    lines += [_div(f"… {many(behind, 'line')} behind", _NOTE)] if behind else []
    return f'<div style="{_BOX}">{"".join(lines)}</div>'


def window(text: str, root_line: int, most: int) -> tuple[int, list[str], int]:
    """Return how many lines are left out before, those that are shown, and how many are left out behind."""
    lines = text.split("\n")
    first = max(0, min(root_line - most // 2, len(lines) - most))
    shown = lines[first : first + most]
    return first, shown, len(lines) - first - len(shown)


def cut_words(text: str, root_line: int, most: int = MOST_LINES) -> str:
    """Say what is not shown of a text; empty where all of it is."""
    first, shown, behind = window(text, root_line, most)
    long = sum(len(line) > MOST_CHARACTERS for line in shown)
    told = [f"{first + behind:,} of {many(first + behind + len(shown), 'line')}"] if first + behind else []
    told += [f"what {many(long, 'line')} have beyond {MOST_CHARACTERS} characters"] if long > 1 else []
    told += [f"what 1 line has beyond {MOST_CHARACTERS} characters"] if long == 1 else []
    return f"Not shown: {', and '.join(told)}." if told else ""


def _role(roles: Sequence[Role], number: int) -> Role:
    return roles[number] if number < len(roles) else Role.CONTEXT


def _html(line: str, role: Role) -> str:
    cut = line[:MOST_CHARACTERS]
    rest = f' <em style="opacity: .8">… {len(line) - len(cut):,} more characters</em>' if len(line) > len(cut) else ""
    weight = "; font-weight: 600" if role is Role.ROOT else ""
    label = f' title="{MEANING[role]}"' if role is not Role.CONTEXT else ""
    return (
        f'<div style="{_line(role)}; display: flex"{label}>{_sign(role)}'
        f'<span style="{_TEXT}{weight}">{as_html(cut) or "&nbsp;"}{rest}</span></div>'
    )


def _line(role: Role) -> str:
    return f"border-left: 4px solid {COLOURS[role]}; background: {_TINT[role]}; padding-right: .6rem"


def _sign(role: Role) -> str:
    sign = as_html(MARKS[role].strip()) or "&nbsp;"
    return f'<span style="flex: none; width: 1.6em; text-align: center">{sign}</span>'


def _div(text: str, style: str) -> str:
    return f'<div style="{style}">{as_html(text)}</div>'
