"""Numbers with their noun: ``1 crash``, ``2 crashes``."""

from __future__ import annotations

_HISSING = ("s", "sh", "ch", "x")


def many(number: int, noun: str) -> str:
    """Return the number, thousands parted, and the noun in the form that goes with it."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith(_HISSING) else 's'}"
