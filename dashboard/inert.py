"""Text of logs as it may be printed: what could steer a terminal, or hide what is there, is spelled out."""

from __future__ import annotations

import unicodedata

_STEERING = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_TAB = "    "


def inert(text: str) -> str:
    r"""Return one line with control, direction and invisible characters as ``\x1b`` or ``\u202e``; tabs as blanks."""
    if text.isprintable():
        return text
    return "".join(_TAB if c == "\t" else _spelled(c) if unicodedata.category(c) in _STEERING else c for c in text)


def _spelled(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
